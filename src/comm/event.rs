//! A descriptor for event loops and async code.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::base::error::{Error, Result};
use crate::base::system;
use crate::comm::{Job, job};

/// A descriptor that becomes readable when a request of this process completes that was begun after [`Job::event`]: a
/// completion is not lost between a look at the requests and the wait for the descriptor, if it is drained before the look.
///
/// ```no_run
/// # fn poll(_: &impl std::os::fd::AsFd) {}
/// let job = fmpl::init(4)?;
/// let event = job.event()?;
/// let mut data = [0u8; 100];
/// job.world().scope(|s| {
///     let mut request = s.irecv(&mut data, 1, 0)?;
///     loop {
///         event.drain()?;
///         if let Some(received) = request.test()? {
///             return Ok(received.bytes);
///         }
///         poll(&event); // poll(2), epoll, a reactor: together with the program's other descriptors
///     }
/// })?;
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// A send in standard mode rings when its receive is posted, but nobody rings when its time-out passes and it may be spooled: a
/// program that only has such sends to wait for gives its `poll` a time-out too.
///
/// The descriptor belongs to the library; there is one for the whole process.
#[derive(Debug)]
pub struct Event<'job> {
    fd: RawFd,
    _job: PhantomData<&'job Job>,
}

impl<'job> Event<'job> {
    pub(crate) fn new(_job: &'job Job) -> Result<Event<'job>> {
        Ok(Event { fd: job::event_fd()?, _job: PhantomData })
    }

    /// Makes the descriptor quiet until the next completion; says whether it was readable. Then test the requests.
    pub fn drain(&self) -> Result<bool> {
        system::hear(&self.fd).map_err(|_| Error::system("reading the event descriptor"))
    }
}

impl AsRawFd for Event<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.fd
    }
}

impl AsFd for Event<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open while the job lives, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}
