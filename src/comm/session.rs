//! The job as a value: while a [`Job`] lives this process belongs to it, and what was made from it cannot outlive it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Code, Error, Result};
use crate::base::unused::Unused;
use crate::comm::claim::Claims;
use crate::comm::{Comm, Counter, Event, job};
use crate::lane::Traffic;
use crate::p2p::{COMM_WORLD, TIMEOUT_INFINITE};

/// Joins the job with `count` indices for each peer: 0 to `count - 1`. Of two ranks that ask for different numbers the smaller
/// holds between them. Started without a launcher, the process is a job of one rank.
///
/// May be called again while a [`Job`] lives, by a library that sits on FMPL: each call gives a `Job` of its own, the largest
/// count holds from then on, and the last one to be finalized ends the job. After that it may be called again, by all ranks, where
/// what started them lets them join again: `fmpl run` does, and a job of one needs nobody.
///
/// Errors: [`Code::Argument`] (more indices than there can be), [`Code::Launch`], [`Code::Setting`], [`Code::Memory`],
/// [`Code::System`], [`Code::Fork`] (in a child of a process that had initialised).
///
/// ```
/// let job = fmpl::init(16)?;
/// let world = job.world();
/// println!("rank {} of {}", world.rank(), world.size());
/// job.finalize()?;
/// # Ok::<(), fmpl::Error>(())
/// ```
pub fn init(count: usize) -> Result<Job> {
    let count = i32::try_from(count).map_err(|_| Error::new(Code::Argument, format!("init with {count} indices")))?;
    job::init_raw(count)?;
    let join = || Ok((job::comm_rank(COMM_WORLD)? as usize, job::comm_size(COMM_WORLD)? as usize));
    match join() {
        Ok((rank, size)) => Ok(Job { rank, size, claims: Claims::of_job(size), ended: false }),
        Err(error) => {
            // SAFETY: the init was this call's own; if it was the first, nobody knows of it.
            let _ = job::finalize_raw(unsafe { Unused::promised() });
            Err(error)
        }
    }
}

/// When a send that has no matching receive yet returns: the paper's three modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At once: the message is copied into the spool. [`Code::SpoolFull`] when that has no room.
    Buffered,
    /// After this time at the latest, in whole milliseconds; then the message is copied into the spool. A full spool makes
    /// it wait. The default, with 10 ms.
    Standard(Duration),
    /// Only when the receive is known to have been posted.
    Synchronous,
}

impl Mode {
    pub(crate) fn timeout_ms(self) -> i32 {
        match self {
            Mode::Buffered => 0,
            // Standard is never buffered, which would refuse a message instead of waiting.
            Mode::Standard(time) => time.as_millis().clamp(1, i32::MAX as u128) as i32,
            Mode::Synchronous => TIMEOUT_INFINITE,
        }
    }
}

/// This process's part in the job, from [`init`] until it is finalized or dropped.
///
/// [`Comm`], [`Buffer`](crate::Buffer), [`Event`] borrow it, so none of them can be used after the end:
///
/// ```compile_fail,E0505
/// let job = fmpl::init(1)?;
/// let world = job.world();
/// job.finalize()?;
/// world.barrier()?; // borrow of moved value
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// It may be shared between threads, by reference with [`std::thread::scope`], or in an [`Arc`].
///
/// Dropping it finalizes the job and ignores errors; [`Job::finalize`] tells them. Both wait for all ranks. When it is
/// dropped by a panic nobody is waited for: the process leaves the job when it ends, and counts as dead.
pub struct Job {
    rank: usize,
    size: usize,
    claims: Arc<Claims>,
    /// Finalized: dropping it does nothing more.
    ended: bool,
}

impl Job {
    /// The communicator of all ranks.
    pub fn world(&self) -> Comm<'_> {
        Comm { id: COMM_WORLD, rank: self.rank, size: self.size, claims: &self.claims, _job: PhantomData }
    }

    /// Leaves the job, if this is its last [`Job`] in the process. Collective: waits for all ranks, so that all that they will
    /// receive is received.
    ///
    /// [`Code::Pending`] names the first message that nobody has received; [`Code::Peer`] a rank that has died. The job is
    /// left all the same.
    pub fn finalize(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        // SAFETY: what was made from this job borrowed it, requests among it; other jobs of the process count for themselves.
        job::finalize_raw(unsafe { Unused::promised() })
    }

    /// Ends the job, all its ranks, with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        job::abort(code)
    }

    /// Sets the spool's size in bytes and the mode of sending, for all communicators that have none of their own. The mode
    /// changes at once. Without it, 16 MiB and [`Mode::Standard`] with 10 ms.
    pub fn set_send_buffer(&self, size: usize, mode: Mode) -> Result<()> {
        crate::p2p::sendbuf_set(None, size, mode.timeout_ms())
    }

    /// What this process has done since init, in numbers.
    pub fn counter(&self, which: Counter) -> Result<u64> {
        crate::comm::counter(which as i32)
    }

    /// By which way the messages went that this process has sent so far.
    pub fn traffic(&self) -> Result<Traffic> {
        crate::comm::traffic()
    }

    /// A descriptor that becomes readable when a request of this process completes: for event loops and async code.
    pub fn event(&self) -> Result<Event<'_>> {
        Event::new(self)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // The others may wait for what a panicking rank will never send: waiting for them would make a hang of the panic.
        if !self.ended && !std::thread::panicking() {
            let _ = self.end();
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("rank", &self.rank).field("size", &self.size).finish()
    }
}
