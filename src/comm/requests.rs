//! Requests of all kinds by their names, completed several at a time.

use crate::base::error::{Code, Error, Result, error};
use crate::coll::{Begun, Kind};
use crate::p2p;
use crate::p2p::any_source::{self, multicast};
use crate::p2p::request::Several;
use crate::wait::Waiter;

/// A request by its name, as C has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its [`What`] as a number; 0: there is none, or no more.
    pub kind: i32,
    /// The peer; of a receive that is completed, the source.
    pub peer: i32,
    /// The index; of a receive of any index that is completed, that of the message.
    pub index: i32,
    /// The communicator.
    pub comm: i32,
    /// Of a multicast and of a collective call with a ticket that; of a receive that is completed, the bytes of the message.
    pub ticket: u64,
}

/// What a request is.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A send to an index.
    Send = 1,
    /// A receive from a rank, on an index or on any.
    Receive,
    /// A send to a receiver of any source.
    SendAny,
    /// A receive of any source.
    ReceiveAny,
    /// A multicast, at its master.
    Multicast,
    /// A receive of a multicast.
    ReceiveMulticast,
    /// A barrier that does not wait.
    Barrier,
    /// A broadcast that does not wait.
    Bcast,
    /// A reduction to all ranks that does not wait.
    Allreduce,
    /// A reduction to one rank that does not wait.
    Reduce,
    /// A gather that does not wait.
    Gather,
    /// An allgather that does not wait.
    Allgather,
    /// A scatter that does not wait.
    Scatter,
    /// An exchange of all with all that does not wait.
    Alltoall,
}

impl What {
    fn of(kind: i32) -> Option<What> {
        use What::*;
        let messages = [Send, Receive, SendAny, ReceiveAny, Multicast, ReceiveMulticast];
        let calls = [Barrier, Bcast, Allreduce, Reduce, Gather, Allgather, Scatter, Alltoall];
        messages.into_iter().chain(calls).find(|what| *what as i32 == kind)
    }
}

impl Request {
    fn what(&self) -> Result<Option<What>> {
        if self.kind == 0 {
            return Ok(None);
        }
        let wrong = || error!(Code::Argument, "{} is no kind of request", self.kind);
        What::of(self.kind).map(Some).ok_or_else(wrong)
    }

    /// Has its message to be taken by this process? Nobody puts it anywhere before: so its sender may wait, or a rank that this one is to tell of a
    /// multicast.
    pub fn is_taken(&self) -> bool {
        let is = |what: What| self.kind == what as i32;
        is(What::ReceiveAny) || is(What::ReceiveMulticast) || is(What::Receive) && self.index == p2p::TAG_ANY
    }

    /// Completes it, `wait`ing if need be. `Ok(false)`: it is not over. An error ends it as well, but [`Code::Busy`], by which nothing has
    /// happened.
    pub fn complete(&mut self, wait: bool) -> Result<bool> {
        let Some(what) = self.what()? else { return Ok(true) };
        let result = self.complete_as(what, wait);
        if !matches!(&result, Ok(false)) && !result.as_ref().is_err_and(|e| e.code() == Code::Busy) {
            self.kind = 0;
        }
        result
    }

    fn complete_as(&mut self, what: What, wait: bool) -> Result<bool> {
        let Request { peer, index, comm, ticket, .. } = *self;
        let collective = |kind| {
            let call = Begun::named(kind, comm, ticket);
            if wait { call.wait(comm).map(|()| true) } else { call.test(comm) }
        };
        match what {
            What::Send if wait => p2p::isend_wait(comm, peer, index).map(|()| true),
            What::Send => p2p::isend_test(comm, peer, index),
            What::Receive => {
                let done = if wait {
                    p2p::irecv_wait(comm, peer, index).map(|()| true)
                } else {
                    p2p::irecv_test(comm, peer, index)
                };
                let came = match &done {
                    Ok(came) => *came,
                    Err(error) => error.code() == Code::Truncate,
                };
                if came && let Ok(received) = p2p::received(comm, peer, index) {
                    (self.index, self.ticket) = (received.index, received.len as u64);
                }
                done
            }
            What::SendAny if wait => any_source::isend_any_wait(comm, peer, index).map(|()| true),
            What::SendAny => any_source::isend_any_test(comm, peer, index),
            What::ReceiveAny => {
                let arrived = if wait {
                    Some(any_source::irecv_any_wait(comm, index)?)
                } else {
                    any_source::irecv_any_test(comm, index)?
                };
                let Some(arrived) = arrived else { return Ok(false) };
                (self.peer, self.ticket) = (arrived.source, arrived.len as u64);
                arrived.whole(index).map(|()| true)
            }
            What::Multicast if wait => multicast::mcast_wait(ticket).map(|()| true),
            What::Multicast => multicast::mcast_test(ticket),
            What::ReceiveMulticast => {
                let Some(arrived) = multicast::mcast_irecv_end(comm, wait)? else { return Ok(false) };
                (self.peer, self.ticket) = (arrived.source, arrived.len as u64);
                arrived.whole(-1).map(|()| true)
            }
            What::Barrier => collective(Kind::Barrier),
            What::Bcast => collective(Kind::Bcast),
            What::Allreduce => collective(Kind::Allreduce),
            What::Reduce => collective(Kind::Reduce),
            What::Gather => collective(Kind::Gather),
            What::Allgather => collective(Kind::Allgather),
            What::Scatter => collective(Kind::Scatter),
            What::Alltoall => collective(Kind::Alltoall),
        }
    }
}

/// How one of several requests ended: its place, and its error if it has one.
pub type Ended = (usize, Result<()>);

/// Waits for all of them; `told` of the end of each. The error of the first in the list that has one, which keeps none of the others from its end.
///
/// As long as some have to be [taken](Request::is_taken), all are completed in whatever order they are over; the others are waited for in theirs.
pub fn wait_all(requests: &mut [Request], mut told: impl FnMut(usize, &Result<()>)) -> Result<()> {
    let mut first: Option<(usize, Error)> = None;
    let mut over = |at: usize, ended: Result<()>| {
        told(at, &ended);
        if let Err(error) = ended
            && first.as_ref().is_none_or(|(before, _)| at < *before)
        {
            first = Some((at, error));
        }
        true
    };
    if requests.iter().any(Request::is_taken) {
        // What ends this wait ends that for the first that is left, too, and is told as its error.
        let _ = take(requests, &mut over);
    }
    for (at, request) in requests.iter_mut().enumerate().filter(|(_, request)| request.kind != 0) {
        over(at, request.complete(true).map(|_| ()));
    }
    first.map_or(Ok(()), |(_, error)| Err(error))
}

/// Completes those that have to be taken, and meanwhile whatever else is over, since a receive of any index leaves an index alone whose own receive
/// is not completed; `over` of the end of each, which says whether to go on. What another thread has is left. An error: of this wait.
pub fn take(requests: &mut [Request], mut over: impl FnMut(usize, Result<()>) -> bool) -> Result<()> {
    let mut waiter = Waiter::new();
    loop {
        let (mut some, mut taken, mut left, mut last) = (false, false, 0, 0);
        for (at, request) in requests.iter_mut().enumerate().filter(|(_, request)| request.kind != 0) {
            let is_taken = request.is_taken();
            match request.complete(false) {
                Ok(false) => {
                    taken |= is_taken;
                    (left, last) = (left + 1, at);
                }
                Err(error) if error.code() == Code::Busy => {}
                ended => {
                    some = true;
                    if !over(at, ended.map(|_| ())) {
                        return Ok(());
                    }
                }
            }
        }
        match left {
            _ if !taken => return Ok(()),
            // There is no choice left: so it waits as that one alone does.
            1 => {
                let ended = requests[last].complete(true).map(|_| ());
                if requests[last].kind == 0 {
                    over(last, ended);
                }
                return Ok(());
            }
            _ if some => waiter = Waiter::new(),
            _ if waiter.spin() => {}
            _ => _ = waiter.slow(&scene(requests)?)?,
        }
    }
}

/// Completes those that are done; the rest as [`wait_all`].
pub fn test_all(requests: &mut [Request], mut told: impl FnMut(usize, &Result<()>)) -> Result<()> {
    let mut first = Ok(());
    for (at, request) in requests.iter_mut().enumerate().filter(|(_, request)| request.kind != 0) {
        let ended = request.complete(false);
        if !matches!(ended, Ok(false)) {
            let ended = ended.map(|_| ());
            told(at, &ended);
            first = first.and(ended);
        }
    }
    first
}

/// Waits until one of them is over; `None`: all are.
pub fn wait_any(requests: &mut [Request]) -> Result<Option<Ended>> {
    let mut waiter = Waiter::new();
    loop {
        let (mut left, mut last, mut held) = (0, 0, None);
        for (at, request) in requests.iter_mut().enumerate().filter(|(_, request)| request.kind != 0) {
            match request.complete(false) {
                Ok(false) => (left, last) = (left + 1, at),
                // Another thread has it.
                Err(error) if error.code() == Code::Busy => held = Some(error),
                ended => return Ok(Some((at, ended.map(|_| ())))),
            }
        }
        if let Some(error) = held {
            return Err(error);
        }
        match left {
            0 => return Ok(None),
            // There is no choice left: so it waits as that one alone does.
            1 => match requests[last].complete(true) {
                Err(error) if error.code() == Code::Busy => return Err(error),
                ended => return Ok(Some((last, ended.map(|_| ())))),
            },
            _ if waiter.spin() => {}
            _ => _ = waiter.slow(&scene(requests)?)?,
        }
    }
}

/// The same, and completes all that are over then; `told` of each of them. The first error.
pub fn wait_some(requests: &mut [Request], mut told: impl FnMut(usize, &Result<()>)) -> Result<()> {
    let Some((first, ended)) = wait_any(requests)? else { return Ok(()) };
    told(first, &ended);
    let (behind, mut outcome) = (first + 1, ended);
    let _ = test_all(&mut requests[behind..], |at, ended| {
        // Another thread has it otherwise.
        if !ended.as_ref().is_err_and(|error| error.code() == Code::Busy) {
            told(behind + at, ended);
            if outcome.is_ok() {
                outcome = ended.clone();
            }
        }
    });
    outcome
}

fn scene(requests: &[Request]) -> Result<Several> {
    let mut several = Several::new()?;
    for request in requests {
        match request.what()? {
            Some(What::Receive) => several.add_receive(request.comm, request.peer, request.index),
            Some(_) => several.add_other(),
            None => {}
        }
    }
    Ok(several)
}
