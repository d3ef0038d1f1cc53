//! Threads of the library's own.

use std::io;
use std::thread::{Builder, JoinHandle, ThreadId};

use super::system::calls;
use super::system::cpus::CpuSet;
use super::system::process::not_started;

/// Starts a thread that no signal reaches: those for the process go to a thread of the program, and its handlers run there.
///
/// All signals are blocked before the thread is there, so there is no moment in which it could take one; the caller's mask is put back.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack: usize,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (mut all, mut before) = (calls::blank(), calls::blank());
    calls::sigfillset(&mut all);
    calls::pthread_sigmask(libc::SIG_SETMASK, Some(&all), Some(&mut before));
    let thread = Builder::new().name(name.into()).stack_size(stack).spawn(run);
    calls::pthread_sigmask(libc::SIG_SETMASK, Some(&before), None);
    thread.map_err(not_started)
}

/// A thread that was [started](start).
#[derive(Debug)]
pub enum Started {
    /// One of the system's.
    Real(JoinHandle<()>),
    /// One of a test's.
    #[cfg(all(test, not(any(loom, miri))))]
    Simulated(usize),
}

/// As [`spawn`]; in a test with simulated processes one of theirs.
pub fn start(name: &str, stack: usize, run: impl FnOnce() + Send + 'static) -> io::Result<Started> {
    #[cfg(all(test, not(any(loom, miri))))]
    if super::simulation::is_active() {
        return Ok(Started::Simulated(super::simulation::spawn(run)));
    }
    spawn(name, stack, run).map(Started::Real)
}

impl Started {
    /// Waits for its end.
    pub fn join(self) {
        match self {
            Started::Real(thread) => _ = thread.join(),
            #[cfg(all(test, not(any(loom, miri))))]
            Started::Simulated(thread) => super::simulation::join(thread),
        }
    }
}

/// What tells the calling thread from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(ThreadId, usize);

/// The calling thread.
pub fn current() -> Id {
    #[cfg(all(test, not(any(loom, miri))))]
    if let Some(simulated) = super::simulation::thread() {
        return Id(std::thread::current().id(), simulated + 1);
    }
    Id(std::thread::current().id(), 0)
}

/// Lets other threads have this core.
#[inline]
pub fn yield_core() {
    #[cfg(all(test, not(any(loom, miri))))]
    if super::simulation::pause() {
        return;
    }
    // SAFETY: no preconditions.
    unsafe { libc::sched_yield() };
}

/// The processor of the calling thread. `None`: the system does not say.
pub fn processor() -> Option<usize> {
    usize::try_from(calls::sched_getcpu()).ok()
}

/// Moves the calling thread to one of the processors that it may use, if `choose` names one, which is asked with what tells whether it may
/// use it; and leaves it as free as it was. Where it has moved to.
pub fn move_to(choose: impl FnOnce(&dyn Fn(usize) -> bool) -> Option<usize>) -> Option<usize> {
    let all = CpuSet::allowed().ok()?;
    let there = choose(&|p| all.has(p)).filter(|p| all.has(*p))?;
    CpuSet::of_cpus([there]).apply().ok()?;
    let _ = all.apply();
    Some(there)
}

/// Has a function called in every child of this process, which forks: it may do no more than a handler of a signal.
pub(crate) fn at_fork(call: extern "C" fn()) {
    // SAFETY: a function that takes nothing.
    unsafe { libc::pthread_atfork(None, None, Some(call)) };
}

/// Sleeps for so long.
pub fn sleep(time: std::time::Duration) {
    #[cfg(all(test, not(any(loom, miri))))]
    if super::simulation::block(0, time.as_nanos() as u64) {
        return;
    }
    std::thread::sleep(time);
}
