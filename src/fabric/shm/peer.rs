//! A peer of this node after first contact: its region, its pulse, and whether its private memory can be reached.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::hello::{Hello, PROBE_LEN};
use super::region::PeerRegion;
use super::{cma, socket};
use crate::base::atomics::{AtomicBool, Ordering};

/// Another rank of this node.
#[derive(Debug)]
pub struct Peer {
    /// Its rank.
    pub rank: u32,
    /// Its process id, from the credentials of its socket. It may come to mean a stranger once the peer is dead.
    pub pid: libc::pid_t,
    /// Its memory.
    pub region: PeerRegion,
    /// `None`: it had ended before there was time to get one.
    pidfd: Option<OwnedFd>,
    cma: AtomicBool,
    dead: AtomicBool,
}

impl Peer {
    pub(super) fn new(pid: libc::pid_t, pidfd: Option<OwnedFd>, region: PeerRegion, cma: bool) -> Peer {
        let dead = AtomicBool::new(pidfd.is_none());
        Peer { rank: region.rank(), pid, region, pidfd, cma: AtomicBool::new(cma), dead }
    }

    /// A rank of a model, in this process.
    #[cfg(loom)]
    pub fn in_model(region: PeerRegion) -> Peer {
        let mut peer = Peer::new(std::process::id() as libc::pid_t, None, region, true);
        peer.dead = AtomicBool::new(false);
        peer
    }

    /// Cross-memory copies again, at the beginning of an execution of a model.
    #[cfg(loom)]
    pub fn cma_on(&self) {
        self.cma.store(true, Ordering::Relaxed);
    }

    /// Can the private memory of the peer be read and written by [`cma`]? Found out by a real copy at first contact; `false` too
    /// where either side's `FMPL_CMA` says off.
    #[inline]
    pub fn cma(&self) -> bool {
        self.cma.load(Ordering::Relaxed)
    }

    /// No cross-memory copies with this peer from now on: the system has refused one after all.
    pub fn cma_off(&self) {
        self.cma.store(false, Ordering::Relaxed);
    }

    /// Is the peer known to be dead? One load; the service thread keeps it true to life.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Asks the system whether the peer is dead: one system call. Once it is, it can write nothing any more.
    pub fn check_dead(&self) -> bool {
        if self.is_dead() {
            return true;
        }
        // The ranks of a model are threads: no descriptor tells of them, and they do not die.
        #[cfg(loom)]
        if crate::base::shadow::is_active() {
            return false;
        }
        let dead = self.pidfd.as_ref().is_none_or(|p| socket::has_ended(p.as_fd()));
        if dead {
            self.mark_dead();
        }
        dead
    }

    pub(super) fn mark_dead(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Readable when the peer's process has ended.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(|p| p.as_fd())
    }
}

/// Tries cross-memory copies with a real process: reads the probe that its greeting told of, writes `mine` into its scratch and
/// reads it back.
pub(super) fn probe_cma(pid: libc::pid_t, theirs: &Hello, mine: &[u8; PROBE_LEN]) -> bool {
    let mut buf = [0u8; PROBE_LEN];
    // SAFETY: `buf` and `mine` are this process's own; at the other end the addresses are those of memory set aside for nothing
    // else, by a process that has shown the job's secret.
    unsafe {
        cma::read_run(pid, buf.as_mut_ptr(), theirs.probe_at, PROBE_LEN).is_ok()
            && buf == theirs.probe
            && cma::write_run(pid, mine.as_ptr(), theirs.scratch_at, PROBE_LEN).is_ok()
            && cma::read_run(pid, buf.as_mut_ptr(), theirs.scratch_at, PROBE_LEN).is_ok()
            && buf == *mine
    }
}
