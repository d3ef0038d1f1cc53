//! Messages in place that are on their way.

use std::sync::{Arc, Mutex, PoisonError};

use fmpl::Code;
use fmpl::comm::claim::Direction;
use fmpl::p2p::{self, Lent, any_source};
use pyo3::prelude::*;

use crate::comm::Comm;
use crate::error::{raise, wrong};
use crate::group::{Group, OwnClaim, change};
use crate::life::{LIFE, in_handler};
use crate::loan::Loan;
use crate::orphans::ORPHANS;
use crate::peer::Peer;

/// One that is not over.
struct Open {
    group: Arc<Group>,
    /// None: any source.
    peer: Option<i32>,
    index: i32,
    _claim: Option<OwnClaim>,
}

impl Open {
    fn complete(&self, wait: bool) -> fmpl::Result<Option<(Lent, i32)>> {
        let (comm, index) = (self.group.id, self.index);
        match self.peer {
            Some(peer) if wait => p2p::irecv_loan_wait(comm, peer, index).map(|lent| Some((lent, peer))),
            Some(peer) => Ok(p2p::irecv_loan_test(comm, peer, index)?.map(|lent| (lent, peer))),
            None if wait => any_source::irecv_loan_any_wait(comm, index).map(Some),
            None => any_source::irecv_loan_any_test(comm, index),
        }
    }

    /// Withdraws it; one that is too late for that is received, and given back.
    fn withdraw(&self) -> fmpl::Result<bool> {
        match self.peer {
            Some(peer) => p2p::irecv_cancel(self.group.id, peer, self.index),
            None => any_source::irecv_any_cancel(self.group.id, self.index),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        change(&self.group.open, -1);
    }
}

/// A receive in place under way: `Comm.irecv_loan`, `Comm.irecv_loan_any`. One that is let go is withdrawn.
#[pyclass(frozen, module = "fmpl")]
pub struct LoanRequest(Mutex<Option<Open>>);

impl LoanRequest {
    fn begin(
        py: Python<'_>,
        group: &Arc<Group>,
        peer: Option<i32>,
        index: i32,
        begin: impl FnOnce() -> fmpl::Result<()>,
    ) -> PyResult<LoanRequest> {
        let about = group.about(peer, Some(index));
        let _in = group.enter(py)?;
        ORPHANS.look();
        let claim = peer.map_or(Ok(None), |peer| group.claim(Direction::Receive, peer, index));
        let claim = claim.map_err(|error| raise(py, &error, about))?.map(|claim| OwnClaim::of(group, claim));
        begin().map_err(|error| raise(py, &error, about))?;
        change(&group.open, 1);
        Ok(LoanRequest(Mutex::new(Some(Open { group: group.clone(), peer, index, _claim: claim }))))
    }

    fn take(&self) -> Option<Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, open: Open) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
    }

    /// Completes it; None: it is not over. A wait that ends by an error, or by a signal, ends it.
    fn complete(&self, py: Python<'_>, wait: bool) -> PyResult<Option<Loan>> {
        let Some(open) = self.take() else {
            return Err(wrong(
                py,
                Code::Request,
                "the request is over, or another thread completes it",
                Default::default(),
            ));
        };
        let (group, about) = (open.group.clone(), open.group.about(open.peer, Some(open.index)));
        let entered = match group.enter(py) {
            Ok(entered) => entered,
            Err(error) => {
                self.put_back(open);
                return Err(error);
            }
        };
        if !wait {
            return match open.complete(false) {
                Ok(None) => {
                    self.put_back(open);
                    Ok(None)
                }
                Ok(Some((lent, source))) => Ok(Some(Loan::of(lent, source, group.generation))),
                Err(error) => Err(raise(py, &error, about)),
            };
        }
        let over = || fmpl::Error::new(Code::Request, "the wait has ended without a message");
        let loan = Loan::received(py, about, group.generation, || open.complete(true)?.ok_or_else(over));
        drop(open);
        drop(entered);
        loan.map(Some)
    }
}

#[pymethods]
impl LoanRequest {
    /// Waits for the message: the `Loan` that it is in. Once.
    fn wait(&self, py: Python<'_>) -> PyResult<Loan> {
        let over = || wrong(py, Code::Request, "the wait has ended without a message", Default::default());
        self.complete(py, true)?.ok_or_else(over)
    }

    /// The `Loan` if the message is there, else None.
    fn test(&self, py: Python<'_>) -> PyResult<Option<Loan>> {
        self.complete(py, false)
    }

    /// Withdraws it. True: no message has come, and none will. False: one is there or on its way.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(open) = self.take() else { return Ok(false) };
        let (group, about) = (open.group.clone(), open.group.about(open.peer, Some(open.index)));
        let withdrawn = group.enter(py).and_then(|_in| open.withdraw().map_err(|error| raise(py, &error, about)));
        if !matches!(withdrawn, Ok(true)) {
            self.put_back(open);
        }
        withdrawn
    }
}

impl Drop for LoanRequest {
    fn drop(&mut self) {
        let Some(open) = self.take() else { return };
        if !LIFE.is_usable(open.group.generation) || in_handler() {
            // Nobody's any more; its claim ends with the job.
            std::mem::forget(open);
            return;
        }
        // What cannot be withdrawn is there, or about to be.
        if let Ok(false) = open.withdraw()
            && let Ok(Some((lent, _))) = open.complete(true)
        {
            let _ = p2p::loan_return(lent.at);
        }
    }
}

#[pymethods]
impl Comm {
    /// Begins to receive a message in place, whatever its length; see `recv_loan`.
    #[pyo3(signature = (src, index=0))]
    fn irecv_loan(&self, py: Python<'_>, src: Peer, index: i32) -> PyResult<LoanRequest> {
        let (comm, src) = (self.0.id, src.of(py, &self.0)?);
        LoanRequest::begin(py, &self.0, Some(src), index, || p2p::irecv_loan(comm, src, index))
    }

    /// Begins to receive the next message of any source on `index` in place; see `recv_loan_any`.
    #[pyo3(signature = (index=0))]
    fn irecv_loan_any(&self, py: Python<'_>, index: i32) -> PyResult<LoanRequest> {
        let comm = self.0.id;
        LoanRequest::begin(py, &self.0, None, index, || any_source::irecv_loan_any(comm, index))
    }
}
