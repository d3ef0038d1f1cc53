//! The values that stand for open requests: a number in the scope's records, and what is needed to say how the request ended.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::{Open, Scope};
use crate::base::error::{Code, Error, Result};
use crate::comm::{FromAny, Plain, Received};
use crate::p2p::any_source::{self, multicast};
use crate::p2p::request::Several;
use crate::wait::Waiter;

/// A request's place in its scope; `None` when it is over.
pub(super) struct Record<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) id: Option<usize>,
}

impl Record<'_, '_> {
    /// Runs a call on the request; `over` says of its outcome whether the request is over. An error ends it, too, but `Busy`: then nothing has
    /// happened. And so does a panic of its function.
    fn with<R>(&mut self, call: impl FnOnce(&Open<'_>) -> Result<R>, over: impl FnOnce(&R) -> bool) -> Result<R> {
        let gone = || Error::new(Code::Request, "the request is over");
        let ended = Ended { scope: self.scope, id: self.id.take().ok_or_else(gone)? };
        let result = call(self.scope.open.borrow().get(ended.id).ok_or_else(gone)?);
        let over = match &result {
            Ok(outcome) => over(outcome),
            Err(error) => error.code() != Code::Busy,
        };
        if !over {
            self.id = Some(ended.id);
            std::mem::forget(ended);
        }
        result
    }

    /// Waits for the end of a request that has nothing to tell.
    fn wait(&mut self) -> Result<()> {
        if self.id.is_none() { Ok(()) } else { self.with(|open| open.wait(), |()| true) }
    }

    /// Is such a request over?
    fn test(&mut self) -> Result<bool> {
        if self.id.is_none() { Ok(true) } else { self.with(|open| open.test(), |done| *done) }
    }
}

/// A request that is over, unless this is forgotten: its record goes when this does.
struct Ended<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    id: usize,
}

impl Drop for Ended<'_, '_> {
    fn drop(&mut self) {
        // What a function owns goes when nobody looks into the records.
        let open = self.scope.open.borrow_mut().remove(self.id);
        drop(open);
    }
}

/// A send under way. Dropped or forgotten, it is completed by its scope.
#[must_use = "the scope completes it, but `wait` tells how it went"]
pub struct SendRequest<'scope, 'env> {
    pub(super) record: Record<'scope, 'env>,
}

impl SendRequest<'_, '_> {
    /// Waits until the message is sent, in the sense of the [`Mode`](crate::Mode).
    pub fn wait(mut self) -> Result<()> {
        self.record.wait()
    }

    /// Is it sent? Then, and after an error, the request is over.
    pub fn test(&mut self) -> Result<bool> {
        self.record.test()
    }
}

/// A collective call under way. Dropped or forgotten, it is completed by its scope.
#[must_use = "the scope completes it, but `wait` tells how it went"]
pub struct CollectiveRequest<'scope, 'env> {
    pub(super) record: Record<'scope, 'env>,
}

impl CollectiveRequest<'_, '_> {
    /// Waits for the end of the call.
    pub fn wait(mut self) -> Result<()> {
        self.record.wait()
    }

    /// Is the call over?
    pub fn test(&mut self) -> Result<bool> {
        self.record.test()
    }
}

/// A slice that a scope has for a receive.
pub struct Lent<'scope, T: Plain> {
    data: NonNull<[T]>,
    _lent: PhantomData<&'scope mut [T]>,
}

impl<'scope, T: Plain> Lent<'scope, T> {
    // Not kept as a reference: it must not claim that the memory is quiet.
    pub(super) fn new(data: &'scope mut [T]) -> Lent<'scope, T> {
        Lent { data: NonNull::from(data), _lent: PhantomData }
    }
}

/// A receive under way. Dropped or forgotten, it is completed by its scope.
#[must_use = "the scope completes it, but `wait` tells what came"]
pub struct RecvRequest<'scope, 'env, D = ()> {
    pub(super) record: Record<'scope, 'env>,
    /// Bytes of an element.
    pub(super) size: usize,
    /// What `test` has found.
    pub(super) outcome: Option<Received>,
    pub(super) data: D,
}

impl<D> RecvRequest<'_, '_, D> {
    fn complete(&mut self) -> Result<Received> {
        if let Some(received) = self.outcome {
            return Ok(received);
        }
        let size = self.size;
        self.record.with(
            |open| {
                open.wait()?;
                Ok(Received::new(open.received()?, size))
            },
            |_| true,
        )
    }

    /// Waits for the message.
    ///
    /// [`Code::Truncate`](crate::Code::Truncate) when it was longer than the buffer.
    pub fn wait(mut self) -> Result<Received> {
        self.complete()
    }

    /// Is the message there? Then, and after an error, the request is over.
    pub fn test(&mut self) -> Result<Option<Received>> {
        if self.outcome.is_some() {
            return Ok(self.outcome);
        }
        let size = self.size;
        let done = self.record.with(
            |open| match open.test()? {
                true => Ok(Some(Received::new(open.received()?, size))),
                false => Ok(None),
            },
            Option::is_some,
        )?;
        self.outcome = done;
        Ok(done)
    }

    /// Withdraws the receive. `Ok(None)`: no message has come and none will. Otherwise one was there or on its way,
    /// and has been received.
    pub fn cancel(mut self) -> Result<Option<Received>> {
        if self.outcome.is_some() {
            return Ok(self.outcome);
        }
        match self.record.with(|open| open.cancel(), |cancelled| *cancelled)? {
            true => Ok(None),
            false => self.complete().map(Some),
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Waits until one of several receives is over, whichever: its place, and what came. `None`: all are over already.
    ///
    /// ```
    /// # let job = fmpl::init(4)?;
    /// # let world = job.world();
    /// let mut numbers = [0u64; 3];
    /// world.scope(|s| {
    ///     let one = |(k, n)| s.irecv(n, 0, k);
    ///     let mut open: Vec<_> = numbers.chunks_mut(1).enumerate().map(one).collect::<Result<_, _>>()?;
    ///     for k in [2, 0, 1] {
    ///         world.send(&[k as u64], 0, k)?;
    ///         let (which, received) = s.wait_any(&mut open).expect("one is left");
    ///         assert_eq!((which, received?.len), (k, 1));
    ///     }
    ///     assert!(s.wait_any(&mut open).is_none());
    ///     Ok(())
    /// })?;
    /// assert_eq!(numbers, [0, 1, 2]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn wait_any<D>(&self, requests: &mut [RecvRequest<'scope, 'env, D>]) -> Option<(usize, Result<Received>)> {
        let mut waiter = Waiter::new();
        loop {
            let (mut left, mut last) = (0, 0);
            for (at, request) in requests.iter_mut().enumerate().filter(|(_, request)| !request.is_over()) {
                match request.test().transpose() {
                    Some(outcome) => return Some((at, outcome)),
                    None => (left, last) = (left + 1, at),
                }
            }
            match left {
                0 => return None,
                // There is no choice left: so it waits as that one alone does.
                1 => {
                    let received = requests[last].complete();
                    requests[last].outcome = received.as_ref().ok().copied();
                    return Some((last, received));
                }
                _ if waiter.spin() => continue,
                _ => {}
            }
            let slow = Several::new().and_then(|mut several| {
                requests.iter().for_each(|request| request.is_awaited(&mut several));
                waiter.slow(&several)
            });
            if let Err(error) = slow {
                return Some((last, Err(error)));
            }
        }
    }

    /// Waits until at least one of several receives is over: the places of all that are, and what came. None: all are over already.
    pub fn wait_some<D>(&self, requests: &mut [RecvRequest<'scope, 'env, D>]) -> Vec<(usize, Result<Received>)> {
        let mut ended: Vec<_> = self.wait_any(requests).into_iter().collect();
        let first = ended.first().map(|(at, _)| *at);
        for (at, request) in requests.iter_mut().enumerate() {
            if first.is_some_and(|first| at != first) && !request.is_over() {
                ended.extend(request.test().transpose().map(|outcome| (at, outcome)));
            }
        }
        ended
    }

    /// Completes those of several receives that need no waiting; whether that leaves none. An error is the first one, of all that were
    /// looked at.
    pub fn test_all<D>(&self, requests: &mut [RecvRequest<'scope, 'env, D>]) -> Result<bool> {
        let open = requests.iter_mut().filter(|request| !request.is_over());
        let first = open.map(|request| request.test().map(drop)).fold(Ok(()), Result::and);
        first.map(|()| requests.iter().all(RecvRequest::is_over))
    }
}

impl<D> RecvRequest<'_, '_, D> {
    fn is_over(&self) -> bool {
        self.outcome.is_some() || self.record.id.is_none()
    }

    /// Adds it to a wait, unless it is over.
    fn is_awaited(&self, several: &mut Several) {
        let open = self.record.scope.open.borrow();
        if let Some(open) = self.record.id.filter(|_| !self.is_over()).and_then(|id| open.get(id)) {
            several.add_receive(open.comm, open.peer, open.index);
        }
    }
}

impl<'scope, T: Plain> RecvRequest<'scope, '_, Lent<'scope, T>> {
    /// Waits for the message and gives the slice back, of which its elements are the first [`Received::len`]. For use within the
    /// scope; after it the slice is its owner's anyway.
    ///
    /// ```no_run
    /// # let job = fmpl::init(2)?;
    /// # let mut halo = [0.0; 100];
    /// job.world().scope(|s| {
    ///     let request = s.irecv(&mut halo, 1, 0)?;
    ///     let (halo, received) = request.wait_slice()?;
    ///     println!("{:?}", &halo[..received.len]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn wait_slice(mut self) -> Result<(&'scope mut [T], Received)> {
        let received = self.complete()?;
        // SAFETY: borrowed for 'scope, and the request is over, so this is the only way to it.
        Ok((unsafe { &mut *self.data.data.as_ptr() }, received))
    }
}

/// A receive from any source under way. Dropped or forgotten, it is completed by its scope.
#[must_use = "the scope completes it, but `wait` tells what came"]
pub struct AnyRequest<'scope, 'env, T: Plain> {
    pub(super) record: Record<'scope, 'env>,
    pub(super) comm: i32,
    pub(super) index: i32,
    pub(super) _data: PhantomData<&'scope mut [T]>,
}

impl<T: Plain> AnyRequest<'_, '_, T> {
    /// Waits for the message.
    pub fn wait(mut self) -> Result<FromAny> {
        let (comm, index) = (self.comm, self.index);
        let arrived = self.record.with(|_| any_source::irecv_any_wait(comm, index), |_| true)?;
        FromAny::new(arrived, index, size_of::<T>())
    }

    /// Is the message there? Then, and after an error, the request is over.
    pub fn test(&mut self) -> Result<Option<FromAny>> {
        let (comm, index) = (self.comm, self.index);
        let arrived = self.record.with(|_| any_source::irecv_any_test(comm, index), |found| found.is_some())?;
        arrived.map(|arrived| FromAny::new(arrived, index, size_of::<T>())).transpose()
    }

    /// Withdraws the receive. `false`: a message is on its way into the slice.
    pub fn cancel(&mut self) -> Result<bool> {
        self.record.with(|open| open.cancel(), |cancelled| *cancelled)
    }
}

/// A receive of a multicast under way. Dropped or forgotten, it is completed by its scope.
#[must_use = "the scope completes it, but `wait` tells what came"]
pub struct McastRequest<'scope, 'env, T: Plain> {
    pub(super) record: Record<'scope, 'env>,
    pub(super) comm: i32,
    pub(super) _data: PhantomData<&'scope mut [T]>,
}

impl<T: Plain> McastRequest<'_, '_, T> {
    /// Waits for the multicast. [`FromAny::source`] is its master; its index has no meaning.
    pub fn wait(mut self) -> Result<FromAny> {
        match self.complete(true)? {
            Some(came) => Ok(came),
            None => Err(Error::new(Code::Request, "the request is over")),
        }
    }

    /// Is the multicast there? Then, and after an error, the request is over.
    pub fn test(&mut self) -> Result<Option<FromAny>> {
        self.complete(false)
    }

    fn complete(&mut self, wait: bool) -> Result<Option<FromAny>> {
        let comm = self.comm;
        let arrived = self.record.with(|_| multicast::mcast_irecv_end(comm, wait), Option::is_some)?;
        arrived.map(|arrived| FromAny::new(arrived, -1, size_of::<T>())).transpose()
    }

    /// Withdraws the receive, which is over then; the multicast is for the next one.
    pub fn cancel(mut self) -> Result<()> {
        self.record.with(|open| open.cancel(), |_| true).map(drop)
    }
}
