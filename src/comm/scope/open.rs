//! The requests of a scope that are not over yet.

use super::*;
use crate::comm::requests::{self, Request, What};

/// Requests that a scope keeps without memory from the heap.
pub(super) const INLINE: usize = 8;

/// What a message is matched by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    /// Peer and index.
    Pair,
    /// The index, of any source.
    AnySource,
    /// Being a member: a multicast.
    Multicast,
}

/// A request that is not completed.
pub(super) struct Open<'scope> {
    pub(super) comm: i32,
    pub(super) peer: i32,
    pub(super) index: i32,
    pub(super) direction: Direction,
    /// Given back when the record goes.
    pub(super) _claim: Option<Claim<'scope>>,
    /// The descriptors of a list, which the library reads until the end.
    pub(super) _list: Option<List>,
    pub(super) domain: Domain,
    /// A collective call; direction, peer and index mean nothing.
    pub(super) collective: Option<Begun>,
    /// What it combines elements with, which the library uses until the end.
    pub(super) _function: Option<Boxed<'scope>>,
}

impl<'scope> Open<'scope> {
    /// The request of this name.
    pub(super) fn of(comm: i32, peer: i32, index: i32, direction: Direction) -> Open<'scope> {
        Open {
            comm,
            peer,
            index,
            direction,
            _claim: None,
            _list: None,
            domain: Domain::Pair,
            collective: None,
            _function: None,
        }
    }

    /// Its name, if it is a receive whose message has to be taken.
    pub(super) fn taken(&self) -> Option<Request> {
        let what = match (self.domain, self.direction) {
            _ if self.collective.is_some() => return None,
            (Domain::Pair, Direction::Receive) if self.index == TAG_ANY => What::Receive,
            (Domain::AnySource, Direction::Receive) => What::ReceiveAny,
            (Domain::Multicast, _) => What::ReceiveMulticast,
            _ => return None,
        };
        Some(Request { kind: what as i32, peer: self.peer, index: self.index, comm: self.comm, ticket: 0 })
    }

    /// The request is over when this returns, with or without an error, or when it is left by a panic; but with `Busy` nothing has happened.
    pub(super) fn wait(&self) -> Result<()> {
        if let Some(call) = self.collective {
            return call.wait(self.comm);
        }
        match (self.domain, self.direction) {
            (Domain::Pair, Direction::Send) => p2p::isend_wait(self.comm, self.peer, self.index),
            (Domain::Pair, Direction::Receive) => p2p::irecv_wait(self.comm, self.peer, self.index),
            (Domain::AnySource, Direction::Send) => any_source::isend_any_wait(self.comm, self.peer, self.index),
            (Domain::AnySource, Direction::Receive) => {
                any_source::irecv_any_wait(self.comm, self.index).and_then(|a| a.whole(self.index))
            }
            (Domain::Multicast, _) => multicast::mcast_irecv_end(self.comm, true)
                .and_then(|arrived| arrived.map_or(Ok(()), |arrived| arrived.whole(self.index))),
        }
    }

    /// The request is over unless this is `Ok(false)`; of `Busy` and a panic as above.
    pub(super) fn test(&self) -> Result<bool> {
        if let Some(call) = self.collective {
            return call.test(self.comm);
        }
        if self.domain == Domain::AnySource && self.direction == Direction::Send {
            return any_source::isend_any_test(self.comm, self.peer, self.index);
        }
        match self.direction {
            Direction::Send => p2p::isend_test(self.comm, self.peer, self.index),
            Direction::Receive => p2p::irecv_test(self.comm, self.peer, self.index),
        }
    }

    /// The request is over unless this is `Ok(false)`: too late; of `Busy` as above.
    pub(super) fn cancel(&self) -> Result<bool> {
        match self.direction {
            _ if self.collective.is_some() => Ok(false),
            Direction::Send => Ok(false),
            Direction::Receive if self.domain == Domain::AnySource => {
                any_source::irecv_any_cancel(self.comm, self.index)
            }
            // Nothing is read for it but where it is completed: it is never too late.
            Direction::Receive if self.domain == Domain::Multicast => {
                multicast::mcast_irecv_cancel(self.comm).map(|()| true)
            }
            Direction::Receive => p2p::irecv_cancel(self.comm, self.peer, self.index),
        }
    }

    /// Brings the request to its end, which returns the panic of its function; `whole`: its message is wanted.
    pub(super) fn end(&self, whole: bool) -> std::thread::Result<Result<()>> {
        if let Some(call) = self.collective {
            return call.join(self.comm);
        }
        if !whole && !matches!(until_free(|| self.cancel()), Ok(false)) {
            return Ok(Ok(()));
        }
        Ok(until_free(|| self.wait()))
    }

    pub(super) fn received(&self) -> Result<p2p::Received> {
        p2p::received(self.comm, self.peer, self.index)
    }
}

#[derive(Default)]
pub(super) struct Register<'scope> {
    pub(super) few: [Option<Open<'scope>>; INLINE],
    pub(super) more: Vec<Option<Open<'scope>>>,
    /// Free records among `more`.
    pub(super) free: Vec<usize>,
}

impl<'scope> Register<'scope> {
    pub(super) fn add(&mut self, open: Open<'scope>) -> usize {
        if let Some(at) = self.few.iter().position(Option::is_none) {
            self.few[at] = Some(open);
            return at;
        }
        if let Some(at) = self.free.pop() {
            self.more[at] = Some(open);
            return INLINE + at;
        }
        self.more.push(Some(open));
        INLINE + self.more.len() - 1
    }

    pub(super) fn get(&self, id: usize) -> Option<&Open<'scope>> {
        if id < INLINE { self.few[id].as_ref() } else { self.more.get(id - INLINE)?.as_ref() }
    }

    pub(super) fn remove(&mut self, id: usize) -> Option<Open<'scope>> {
        if id < INLINE {
            return self.few[id].take();
        }
        let open = self.more[id - INLINE].take();
        if open.is_some() {
            self.free.push(id - INLINE);
        }
        open
    }

    /// Completes those whose messages have to be taken, as they come, as long as nothing but truncated messages fails: the first error, and
    /// whether that is so.
    #[cold]
    pub(super) fn take(&mut self) -> (Result<()>, bool) {
        let all = self.few.iter_mut().chain(&mut self.more);
        let taken = all.filter_map(|open| Some((open.as_ref()?.taken()?, open)));
        let (mut names, opens): (Vec<_>, Vec<_>) = taken.unzip();
        let (mut first, mut whole) = (Ok(()), true);
        let waited = requests::take(&mut names, |_, ended| {
            whole &= ended.as_ref().err().is_none_or(|error| error.code() == Code::Truncate);
            if first.is_ok() {
                first = ended;
            }
            whole
        });
        for (name, open) in names.iter().zip(opens) {
            if name.kind == 0 {
                *open = None;
            }
        }
        whole &= waited.is_ok();
        (first.and(waited), whole)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Open<'scope>> {
        self.few.iter().chain(&self.more).flatten()
    }
}
