//! A launcher's connection that an MPI in the same process may still need: `PMI_FD`, on which MPICH says init and finalize itself; or the PMIx
//! server, which counts.
//!
//! This library speaks there within init only, and leaves the descriptor as it found it. A launcher takes a process that has said init and ends
//! without finalize for one that failed. So finalize is said when the process ends, unless MPI has been initialised by then: it says it
//! itself. A rank that has not left its job does not say it, and counts as failed, as everywhere.

use super::mpi::Mpi;
use super::pmi;
use crate::base::error::Result;
use crate::base::system;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// How long the launcher may take to answer the last word.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is left to do at the end of the process.
struct Held {
    /// The connection, and the MPI that may have taken it over.
    line: Option<(OwnedFd, &'static Mpi)>,
    /// Leaves a PMIx server.
    last: Vec<Box<dyn FnOnce() + Send>>,
    /// This process is in a job that it has joined by the connection.
    joined: bool,
    /// Times that it has joined by it.
    times: u32,
    pid: u32,
}

static HELD: Mutex<Held> = Mutex::new(Held { line: None, last: Vec::new(), joined: false, times: 0, pid: 0 });

fn held() -> std::sync::MutexGuard<'static, Held> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if held.pid != pid {
        // A forked child has none of it, and ends nothing.
        let theirs = std::mem::replace(&mut *held, Held { line: None, last: Vec::new(), joined: false, times: 0, pid });
        std::mem::forget(theirs.last);
    }
    held
}

/// The same, and the end of the process is minded from now on.
fn hold() -> std::sync::MutexGuard<'static, Held> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        system::at_exit(at_exit);
    });
    held()
}

/// A connection of this process's own to what is at the other end of the descriptor, and how often it was asked for before.
pub(super) fn speak(fd: RawFd, mpi: &'static Mpi) -> Result<(OwnedFd, u32)> {
    let second = || pmi::second(fd);
    let (ours, mut held) = (second()?, hold());
    if held.line.is_none() {
        held.line = Some((second()?, mpi));
    }
    held.joined = true;
    held.times += 1;
    Ok((ours, held.times))
}

/// This process has left its job in good order.
pub(super) fn left() {
    held().joined = false;
}

/// Asks the launcher to end the job, if MPI cannot be asked any more, or not yet.
pub(super) fn abort(code: i32) {
    let line = held().line.take();
    if let Some((line, _)) = line {
        let _ = pmi::send(line.as_raw_fd(), &format!("cmd=abort exitcode={code}\n"));
    }
}

/// Does this when the process ends.
pub(super) fn at_the_end(last: impl FnOnce() + Send + 'static) {
    hold().last.push(Box::new(last));
}

extern "C" fn at_exit() {
    let (line, last, joined) = {
        let mut held = held();
        (held.line.take(), std::mem::take(&mut held.last), held.joined)
    };
    last.into_iter().for_each(|leave| leave());
    if let Some((line, mpi)) = line
        && !joined
        && !mpi.was_initialized()
    {
        say_finalize(&line);
    }
}

fn say_finalize(line: &OwnedFd) {
    if pmi::send(line.as_raw_fd(), "cmd=finalize\n").is_err() {
        return;
    }
    let until = Instant::now() + PATIENCE;
    let mut heard = Vec::new();
    while !heard.contains(&b'\n') {
        let mut fds = [libc::pollfd { fd: line.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut bytes = [0; 256];
        if left == 0 || !system::poll(&mut fds, left).is_ok_and(|n| n > 0) {
            return;
        }
        match system::read(line, &mut bytes) {
            Ok(n @ 1..) => heard.extend_from_slice(&bytes[..n]),
            _ => return,
        }
    }
}
