//! `Request`.

use std::sync::{Arc, Mutex, PoisonError};

use fmpl::comm::claim::Direction;
use fmpl::comm::requests::{self, What};
use fmpl::p2p::any_source::multicast;
use fmpl::p2p::{self, TAG_ANY, any_source};
use fmpl::{Code, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::comm::Received;
use crate::error::{About, raise, wrong};
use crate::group::{Group, OwnClaim, change};
use crate::life::{LIFE, Thing, detached, in_handler, wait, whole};
use crate::orphans::ORPHANS;

/// A request that is not over. What it holds lasts until it is: the buffer, the claim, the communicator.
pub struct Open {
    pub what: What,
    pub group: Arc<Group>,
    pub peer: i32,
    pub index: i32,
    /// Bytes of an element of the buffer.
    pub item: usize,
    /// Of a multicast, and of a collective call that has one.
    ticket: u64,
    _claim: Option<OwnClaim>,
    _held: Held,
}

/// What a request keeps until it is over, its buffers among it; dropped with the interpreter's lock.
pub type Held = Box<dyn Send + Sync>;

fn is_receive(what: What) -> bool {
    matches!(what, What::Receive | What::ReceiveAny | What::ReceiveMulticast)
}

/// What came: source, index and bytes; of other requests nothing.
type Got = Option<(i32, i32, usize)>;

impl Open {
    /// One that the library has begun. Made and dropped with the interpreter's lock.
    pub fn new(
        what: What,
        group: &Arc<Group>,
        (peer, index): (i32, i32),
        ticket: u64,
        claim: Option<OwnClaim>,
        (held, item): (Held, usize),
    ) -> Open {
        change(&group.open, 1);
        Open { what, group: group.clone(), peer, index, item, ticket, _claim: claim, _held: held }
    }

    fn about(&self) -> About {
        self.group.about(Some(self.peer), Some(self.index))
    }

    /// Is it a collective call, which others rely on?
    fn is_collective(&self) -> bool {
        !matches!(
            self.what,
            What::Send | What::Receive | What::SendAny | What::ReceiveAny | What::Multicast | What::ReceiveMulticast
        )
    }

    /// Its name, by which the library knows it.
    fn name(&self) -> requests::Request {
        let comm = self.group.id;
        requests::Request { kind: self.what as i32, peer: self.peer, index: self.index, comm, ticket: self.ticket }
    }

    /// Completes it, waiting if need be. It is over unless this is `Ok(None)` or `Busy`.
    pub fn complete(&self, wait: bool) -> fmpl::Result<Option<Got>> {
        let (comm, peer, index) = (self.group.id, self.peer, self.index);
        match self.what {
            What::Receive => {
                let done = if wait {
                    p2p::irecv_wait(comm, peer, index).map(|()| true)?
                } else {
                    p2p::irecv_test(comm, peer, index)?
                };
                if !done {
                    return Ok(None);
                }
                let received = p2p::received(comm, peer, index)?;
                Ok(Some(Some((peer, received.index, received.len))))
            }
            What::ReceiveAny => {
                let arrived = if wait {
                    Some(any_source::irecv_any_wait(comm, index)?)
                } else {
                    any_source::irecv_any_test(comm, index)?
                };
                let Some(arrived) = arrived else { return Ok(None) };
                arrived.whole(index)?;
                Ok(Some(Some((arrived.source, index, arrived.len))))
            }
            What::ReceiveMulticast => {
                let Some(arrived) = multicast::mcast_irecv_end(comm, wait)? else { return Ok(None) };
                arrived.whole(-1)?;
                Ok(Some(Some((arrived.source, -1, arrived.len))))
            }
            _ => Ok(self.name().complete(wait)?.then_some(None)),
        }
    }

    /// Withdraws a receive; `false`: it goes on.
    fn cancel(&self) -> fmpl::Result<bool> {
        match self.what {
            What::Receive => p2p::irecv_cancel(self.group.id, self.peer, self.index),
            What::ReceiveAny => any_source::irecv_any_cancel(self.group.id, self.index),
            What::ReceiveMulticast => multicast::mcast_irecv_cancel(self.group.id).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Has it come to its end, by a test, or by being withdrawn?
    pub fn is_over(&self) -> bool {
        let busy = |error: &Error| error.code() == Code::Busy;
        match self.complete(false) {
            Ok(Some(_)) => true,
            Err(error) => !busy(&error),
            Ok(None) => match self.cancel() {
                Ok(withdrawn) => withdrawn,
                Err(error) => !busy(&error),
            },
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        change(&self.group.open, -1);
    }
}

enum State {
    Open(Open),
    /// A thread completes it.
    Taken,
    Over(Option<Py<Received>>),
    Withdrawn,
}

/// A message or a collective call under way. Its buffer is held, and may not be used, until the request is over: by `wait`, by `test` or
/// `cancel` when they say so, by `await`, or at the end of a `with` block.
///
/// In `with comm.irecv(buf, src) as request:` the end of the block waits for the message; when an exception leaves the block a receive
/// is withdrawn instead.
///
/// One that is let go without that is a receive withdrawn; anything else goes on by itself, and its buffer stays held until it is over.
#[pyclass(frozen, module = "fmpl", weakref)]
pub struct Request {
    state: Mutex<State>,
    what: What,
    taken: bool,
}

impl Request {
    pub fn new(open: Open) -> Request {
        Request { what: open.what, taken: open.name().is_taken(), state: Mutex::new(State::Open(open)) }
    }

    fn set(&self, state: State) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// Takes it, to be completed by this thread; or what it has come to.
    fn take(&self, py: Python<'_>) -> PyResult<Result<Open, Option<Py<Received>>>> {
        match self.set(State::Taken) {
            State::Open(open) => Ok(Ok(open)),
            State::Taken => Err(wrong(py, Code::Busy, "another thread completes this request", About::default())),
            over => {
                let received =
                    if let State::Over(received) = &over { received.as_ref().map(|r| r.clone_ref(py)) } else { None };
                self.set(over);
                Ok(Err(received))
            }
        }
    }

    /// Completes it; `Ok(None)`: it is not over.
    fn complete(&self, py: Python<'_>, waits: bool) -> PyResult<Option<Option<Py<Received>>>> {
        let open = match self.take(py)? {
            Ok(open) => open,
            Err(received) => return Ok(Some(received)),
        };
        let about = open.about();
        // Busy: nothing has happened; another thread is at what it needs, which nobody is for long.
        let call = || loop {
            match open.complete(waits) {
                Err(error) if error.code() == Code::Busy && waits => std::thread::yield_now(),
                Err(error) if error.code() == Code::Busy => return Ok(None),
                done => return done,
            }
        };
        let group = open.group.clone();
        let entered = match group.enter(py) {
            Ok(entered) => entered,
            Err(error) => {
                self.set(State::Open(open));
                return Err(error);
            }
        };
        let done = match waits {
            false => call().map_err(|error| raise(py, &error, about)),
            true if open.is_collective() => whole(py, about, call),
            true => wait(py, about, call),
        };
        drop(entered);
        match done {
            Ok(None) => {
                self.set(State::Open(open));
                Ok(None)
            }
            Ok(Some(got)) => {
                let received = got.map(|got| Received::object(py, got, open.item)).transpose()?;
                drop(open);
                self.set(State::Over(received.as_ref().map(|r| r.clone_ref(py))));
                Ok(Some(received))
            }
            // A wait that ends by an error, or by a signal, has ended its request.
            Err(error) => {
                drop(open);
                self.set(State::Withdrawn);
                Err(error)
            }
        }
    }
}

#[pymethods]
impl Request {
    /// Waits until it is over: what came (`Received`), or None for what is no receive.
    ///
    /// An error, and an exception of a signal's handler such as KeyboardInterrupt, end the request too.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Py<Received>>> {
        Ok(self.complete(py, true)?.flatten())
    }

    /// Whether it is over, which takes no waiting.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.complete(py, false)?.is_some())
    }

    /// Withdraws a receive. True: no message has come, and none will. False: one is there or on its way, or it is no receive; it goes on.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let open = match self.take(py)? {
            Ok(open) => open,
            Err(_) => {
                return Ok(matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Withdrawn));
            }
        };
        let group = open.group.clone();
        let withdrawn = group.enter(py).map(|_in| open.cancel().map_err(|error| raise(py, &error, open.about())));
        match withdrawn {
            Ok(Ok(true)) => {
                drop(open);
                self.set(State::Withdrawn);
                Ok(true)
            }
            Ok(other) => {
                self.set(State::Open(open));
                other
            }
            Err(error) => {
                self.set(State::Open(open));
                Err(error)
            }
        }
    }

    /// Whether it is known to be over: what `test` has said last.
    #[getter]
    fn done(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Over(_) | State::Withdrawn)
    }

    /// Of a receive that is over, what came; else None.
    #[getter]
    fn received(&self, py: Python<'_>) -> Option<Py<Received>> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Over(received) => received.as_ref().map(|r| r.clone_ref(py)),
            _ => None,
        }
    }

    /// Whether it is a receive, of which the buffer is given back as soon as that can be.
    #[getter]
    fn _is_receive(&self) -> bool {
        is_receive(self.what)
    }

    /// Whether it is a receive whose message this process has to take, so that its sender may wait for that.
    #[getter]
    fn _is_taken(&self) -> bool {
        self.taken
    }

    /// Whether it is a send, of which the event descriptor does not tell when its time-out passes, or has to do with a multicast, of which it
    /// tells nothing.
    #[getter]
    fn _is_send(&self) -> bool {
        matches!(self.what, What::Send | What::SendAny | What::Multicast | What::ReceiveMulticast)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = matches!(*state, State::Open(_) | State::Taken);
        drop(state);
        if !open {
            return Ok(());
        }
        if !kind.is_none() && self.cancel(py)? {
            return Ok(());
        }
        // Of a send that an exception leaves, too: its buffer may be changed behind the block.
        self.wait(py).map(|_| ())
    }

    fn __await__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import("fmpl.aio")?.getattr("wait")?.call1((slf,))?.call_method0("__await__")
    }

    fn __repr__(&self) -> String {
        format!("<fmpl.Request: {:?}, {}>", self.what, if self.done() { "over" } else { "under way" })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let State::Open(open) = self.set(State::Taken) {
            if !LIFE.is_usable(open.group.generation) {
                // The job ended before it did, so its memory stays for ever.
                std::mem::forget(open);
            } else if in_handler() || !open.is_over() {
                ORPHANS.add(open);
            }
        }
    }
}

/// Waits until one of several requests is over, and gives its place; None: all are over already.
///
/// An error is that request's own, which then is over.
#[pyfunction]
pub fn wait_any(py: Python<'_>, requests: Vec<Py<Request>>) -> PyResult<Option<usize>> {
    let mut open: Vec<(usize, Open)> = Vec::new();
    let put_back = |open: Vec<(usize, Open)>| {
        open.into_iter().for_each(|(at, open)| drop(requests[at].get().set(State::Open(open))));
    };
    for (at, request) in requests.iter().enumerate() {
        match request.get().take(py) {
            Ok(Ok(one)) => open.push((at, one)),
            Ok(Err(_)) => {}
            // Taken: also of a request that is named twice.
            Err(error) => {
                put_back(open);
                return Err(error);
            }
        }
    }
    if open.is_empty() {
        return Ok(None);
    }
    let mut named: Vec<_> = open.iter().map(|(_, open)| open.name()).collect();
    // Of an earlier job, one would have the name of another request by now.
    let stale = open.iter().position(|(_, open)| !LIFE.is_usable(open.group.generation)).unwrap_or(0);
    let group = open[stale].1.group.clone();
    let entered = match group.enter(py) {
        Ok(entered) => entered,
        Err(error) => {
            put_back(open);
            return Err(error);
        }
    };
    // A single one is waited for as such, so it is over whatever comes.
    let alone = open.len() == 1;
    let (list, ended) = (&mut named, Mutex::new(None));
    let call = || {
        let which = requests::wait_any(list)?;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = which;
        Ok(())
    };
    let about = group.about(None, None);
    let done = if alone && open[0].1.is_collective() { whole(py, about, call) } else { wait(py, about, call) };
    drop(entered);
    let which = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = which.as_ref().map(|(place, _)| *place).or(alone.then_some(0));
    let Some(place) = place.filter(|place| named[*place].kind == 0) else {
        put_back(open);
        done?;
        return Err(PyRuntimeError::new_err("the wait has ended without a request"));
    };
    let (at, over) = open.swap_remove(place);
    put_back(open);
    let request = requests[at].get();
    let about = over.about();
    let (name, item) = (named[place], over.item);
    drop(over);
    request.set(State::Withdrawn);
    done?;
    if let Some((_, Err(error))) = which {
        return Err(raise(py, &error, about));
    }
    let got = is_receive(request.what)
        .then(|| Received::object(py, (name.peer, name.index, name.ticket as usize), item))
        .transpose()?;
    request.set(State::Over(got));
    Ok(Some(at))
}

/// Begins a request of (peer, index) by a call.
pub fn begin(
    py: Python<'_>,
    group: &Arc<Group>,
    what: What,
    (peer, index): (i32, i32),
    held: (Held, usize),
    begin: impl FnOnce() -> fmpl::Result<()> + Send,
) -> PyResult<Request> {
    begin_ticketed(py, group, what, (peer, index), held, || begin().map(|()| 0))
}

/// The same by a call that gives a ticket, or 0.
pub fn begin_ticketed(
    py: Python<'_>,
    group: &Arc<Group>,
    what: What,
    (peer, index): (i32, i32),
    held: (Held, usize),
    begin: impl FnOnce() -> fmpl::Result<u64> + Send,
) -> PyResult<Request> {
    let about = group.about(Some(peer), Some(index));
    let _in = group.enter(py)?;
    ORPHANS.look();
    let claim = match what {
        What::Send => group.claim(Direction::Send, peer, index),
        What::Receive if index == TAG_ANY => group.claim_any(peer),
        What::Receive => group.claim(Direction::Receive, peer, index),
        _ => Ok(None),
    };
    let claim = claim.map_err(|error| raise(py, &error, about))?.map(|claim| OwnClaim::of(group, claim));
    // It may wait, for the first contact with a peer.
    let (ticket, raised) = detached(py, about, begin)?;
    let request = Request::new(Open::new(what, group, (peer, index), ticket, claim, held));
    raised.map_or(Ok(request), Err)
}
