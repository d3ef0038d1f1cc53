//! The job as a value: while a [`Job`] lives this process belongs to it, and what was made from it cannot outlive it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Code, Result, error};
use crate::base::unused::Unused;
use crate::comm::claim::Claims;
use crate::comm::{Comm, Counter, Event, job};
use crate::lane::Traffic;
use crate::launch::find::How;
use crate::launch::id;
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
    let count = i32::try_from(count).map_err(|_| error!(Code::Argument, "init with {count} indices"))?;
    job::init_raw(count)?;
    begun()
}

/// The same with ranks of the program's own, as where another library has started it: this process is `rank` of `size`, and `exchange` is an
/// allgather among them. It gets the bytes of this rank, and room for as many of each rank, in the order of the ranks. It is called within
/// this call only, by this thread, equally often and with equally many bytes on all ranks (twice, with some hundred); an error of it on one
/// rank is an error of init on all.
///
/// Errors: as [`init`]; [`Code::Launch`]: the exchange has failed, or gives each part to another rank than it is of.
///
/// ```no_run
/// # fn allgather(_: &[u8], _: &mut [u8]) -> Result<(), String> { Ok(()) }
/// # let (rank, size) = (0, 1);
/// let job = fmpl::init_with(rank, size, 16, |mine, all| allgather(mine, all))?;
/// # job.finalize()
/// # ; Ok::<(), fmpl::Error>(())
/// ```
pub fn init_with<E: std::fmt::Display>(
    rank: usize,
    size: usize,
    count: usize,
    mut exchange: impl FnMut(&[u8], &mut [u8]) -> std::result::Result<(), E>,
) -> Result<Job> {
    let (rank, size, count) = place(rank, size, count)?;
    let mut exchange = |mine: &[u8], all: &mut [u8]| {
        exchange(mine, all)
            .map_err(|e| error!(Code::Launch, "rank {rank}: the exchange that init was given has failed: {e}"))
    };
    job::init_by(How::With(rank, size, &mut exchange), count)?;
    begun()
}

/// The same with an identifier of the job, which one process has made and the program has passed round. All ranks call it; the one that has
/// made the identifier must be among them. Nothing is gathered.
///
/// Errors: as [`init`]; [`Code::Argument`]: no identifier, or a rank that is none. Ranks that do not come are named after `FMPL_START_TIMEOUT`.
///
/// ```
/// let id = fmpl::Id::create()?;
/// let bytes = *id.as_bytes(); // to the other ranks, by files, sockets, MPI …
/// let job = fmpl::init_id(&fmpl::Id::from(bytes), 0, 1, 16)?;
/// job.finalize()?;
/// # Ok::<(), fmpl::Error>(())
/// ```
pub fn init_id(id: &Id, rank: usize, size: usize, count: usize) -> Result<Job> {
    let (rank, size, count) = place(rank, size, count)?;
    job::init_by(How::Id(&id.0, rank, size), count)?;
    begun()
}

/// An identifier of a job, for [`init_id`]. Whoever has it can join the job: it has a secret in it, and is not shown.
#[derive(Clone)]
pub struct Id([u8; id::BYTES]);

impl Id {
    /// Makes one. The process listens from then on, and serves the job when it joins.
    pub fn create() -> Result<Id> {
        id::create().map(Id)
    }

    /// Its bytes, to be passed round.
    pub fn as_bytes(&self) -> &[u8; id::BYTES] {
        &self.0
    }
}

impl From<[u8; id::BYTES]> for Id {
    fn from(bytes: [u8; id::BYTES]) -> Id {
        Id(bytes)
    }
}

fn place(rank: usize, size: usize, count: usize) -> Result<(u32, u32, i32)> {
    match (u32::try_from(rank), u32::try_from(size), i32::try_from(count)) {
        (Ok(rank), Ok(size), Ok(count)) => Ok((rank, size, count)),
        _ => Err(error!(Code::Argument, "init as rank {rank} of {size} with {count} indices")),
    }
}

/// The job that an init of this call's own has joined.
fn begun() -> Result<Job> {
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
    /// left all the same, and the process, if it would end with exit code 0, ends with 1 and says why.
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

    /// Moves pending sends on that only this process can move. All else moves without its sender, and so do these while it waits for
    /// something: to be called now and then by a program that computes long.
    pub fn progress(&self) -> Result<()> {
        crate::comm::progress()
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
