//! A communicator, as calls and requests hold it.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fmpl::base::unused::Unused;
use fmpl::comm::claim::{Claim, Claims, Direction};
use fmpl::p2p::{COMM_WORLD, PROC_NULL};
use fmpl::{Code, comm};
use pyo3::prelude::*;

use crate::error::{About, raise, wrong};
use crate::life::{self, LIFE, in_handler};
use crate::orphans::again;

/// A communicator. Its counters are changed with the interpreter's lock only.
pub struct Group {
    pub id: i32,
    pub rank: usize,
    pub size: usize,
    claims: Arc<Claims>,
    /// The life of the job that it belongs to.
    pub generation: u64,
    calls: AtomicU32,
    /// Requests that are not over.
    pub open: AtomicU32,
    freed: AtomicBool,
}

/// A call on a communicator while it lasts.
pub struct InCall<'a> {
    group: &'a Group,
    _life: life::InCall<'a>,
}

impl Drop for InCall<'_> {
    #[inline]
    fn drop(&mut self) {
        change(&self.group.calls, -1);
    }
}

/// Changes a counter that the interpreter's lock guards.
#[inline]
pub fn change(counter: &AtomicU32, by: i32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(by), Ordering::Relaxed);
}

impl Group {
    /// The communicator of this handle, of the job that is open.
    pub fn new(id: i32) -> fmpl::Result<Arc<Group>> {
        let (rank, size) = (comm::comm_rank(id)? as usize, comm::comm_size(id)? as usize);
        Ok(Arc::new(Group {
            id,
            rank,
            size,
            // Its own for the world, too: objects of an earlier job keep theirs.
            claims: Claims::of_communicator(size),
            generation: LIFE.generation(),
            calls: AtomicU32::new(0),
            open: AtomicU32::new(0),
            freed: AtomicBool::new(false),
        }))
    }

    /// Begins a call.
    #[inline]
    pub fn enter<'a>(&'a self, py: Python<'a>) -> PyResult<InCall<'a>> {
        let life = LIFE.enter(py, self.generation)?;
        if self.freed.load(Ordering::Relaxed) {
            return Err(wrong(py, Code::Comm, "the communicator has been freed", self.about(None, None)));
        }
        change(&self.calls, 1);
        Ok(InCall { group: self, _life: life })
    }

    /// For errors of a call.
    #[inline]
    pub fn about(&self, peer: Option<i32>, index: Option<i32>) -> About {
        About { rank: Some(self.rank), peer, index }
    }

    /// Claims a direction of (peer, index).
    #[inline]
    pub fn claim(&self, direction: Direction, peer: i32, index: i32) -> fmpl::Result<Option<Claim<'_>>> {
        if peer == PROC_NULL {
            return Ok(None);
        }
        again(|| self.claims.claim(self.id, direction, peer, index)).map(Some)
    }

    /// Claims all receives from a peer.
    pub fn claim_any(&self, peer: i32) -> fmpl::Result<Option<Claim<'_>>> {
        if peer == PROC_NULL {
            return Ok(None);
        }
        again(|| self.claims.claim_any(self.id, peer)).map(Some)
    }

    /// Makes a collective call, unless another thread is in one.
    pub fn collective<R>(&self, call: impl FnOnce() -> fmpl::Result<R>) -> fmpl::Result<R> {
        self.claims.collective(call)?
    }

    /// Frees it. Requests of its that were let go are not over, or another thread is in a call: `Busy`.
    pub fn free(&self, py: Python<'_>) -> PyResult<()> {
        let about = self.about(None, None);
        drop(LIFE.enter(py, self.generation)?);
        if self.freed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (calls, open) = (self.calls.load(Ordering::Relaxed), self.open.load(Ordering::Relaxed));
        if calls + open != 0 {
            let text =
                format!("freeing a communicator with {calls} calls under way and {open} requests that are not over");
            return Err(wrong(py, Code::Busy, &text, about));
        }
        self.end().map_err(|e| raise(py, &e, about))?;
        self.freed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn end(&self) -> fmpl::Result<()> {
        // SAFETY: no call is under way and no request open, as the caller has seen, and none begins: the interpreter's lock is held, or
        // nobody has this any more.
        comm::comm_free(self.id, unsafe { Unused::promised() })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let freed = self.id == COMM_WORLD || self.freed.load(Ordering::Relaxed);
        // In a signal's handler it stays until the end of the job.
        if !freed && LIFE.is_usable(self.generation) && !in_handler() {
            let _ = self.end();
        }
    }
}

/// A claim of a request, with what it is a claim of.
pub struct OwnClaim {
    claim: ManuallyDrop<Claim<'static>>,
    _claims: Arc<Claims>,
}

impl OwnClaim {
    /// The claim of a group that lasts longer than it may.
    pub fn of(group: &Group, claim: Claim<'_>) -> OwnClaim {
        // SAFETY: it points into the table that is kept beside it, and goes first.
        let claim = unsafe { std::mem::transmute::<Claim<'_>, Claim<'static>>(claim) };
        OwnClaim { claim: ManuallyDrop::new(claim), _claims: group.claims.clone() }
    }
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        // SAFETY: dropped here only.
        unsafe { ManuallyDrop::drop(&mut self.claim) }
    }
}
