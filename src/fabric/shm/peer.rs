//! A peer of this node after first contact: its region, its pulse, and whether its private memory can be reached.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::hello::{HELLO_LEN, Hello, PROBE_LEN};
use super::region::{FINALIZED, PeerRegion};
use super::{cma, pulse, socket};
use crate::base::atomics::{AtomicBool, Ordering};
use crate::base::bytes::{Bytes, Room};
use crate::base::log::{Level, tell};
use crate::base::system::unshared::Unshared;

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
    /// The connections of first contact: the peer's ends close when it ends, and when it executes another program.
    lines: Mutex<Vec<Line>>,
    cma: AtomicBool,
    dead: AtomicBool,
    /// What it has written that cannot be, if it has.
    broken: OnceLock<&'static str>,
    announced: AtomicBool,
    /// Its loans, once one came.
    pub lending: OnceLock<Lending>,
}

/// What this process knows of a peer that lends.
#[derive(Debug)]
pub struct Lending {
    /// The peer's number among those that lend to this process.
    pub number: u32,
    /// The words by which the peer's loans come back, in its heap.
    pub words: *mut u8,
    /// Its heap as it is mapped here.
    pub heap: *mut u8,
    /// Bytes of that.
    pub len: u64,
}

// SAFETY: the words lie in the peer's heap, which stays mapped as long as the peer is known; they are atomics.
unsafe impl Send for Lending {}
// SAFETY: as above.
unsafe impl Sync for Lending {}

/// A connection that stays open as long as both know each other.
#[derive(Debug)]
struct Line {
    fd: Unshared<OwnedFd>,
    /// The peer will keep it too. (Who greets may give up, and then closes it.)
    kept: bool,
}

impl Peer {
    /// `reached`: is this process reached by the `membarrier` of others?
    pub(super) fn new(pid: libc::pid_t, pidfd: Option<OwnedFd>, region: PeerRegion, cma: bool, reached: bool) -> Peer {
        region.header().mapped_by(reached);
        let dead = AtomicBool::new(pidfd.is_none());
        let (lines, cma, announced) = (Mutex::default(), AtomicBool::new(cma), AtomicBool::new(false));
        let (broken, lending) = (OnceLock::new(), OnceLock::new());
        Peer { rank: region.rank(), pid, region, pidfd, lines, cma, dead, broken, announced, lending }
    }

    /// A rank of a model, in this process.
    #[cfg(loom)]
    pub fn in_model(region: PeerRegion, reached: bool) -> Peer {
        let mut peer = Peer::new(std::process::id() as libc::pid_t, None, region, true, reached);
        peer.dead = AtomicBool::new(false);
        peer
    }

    /// A rank of a model that may die.
    #[cfg(loom)]
    pub fn may_die_in_model(&self) {
        for word in [&self.dead, &self.announced] {
            crate::base::shadow::share((&raw const *word).cast(), size_of::<AtomicBool>());
        }
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
        if self.cma.swap(false, Ordering::Relaxed) {
            tell(Level::Debug, || {
                format!("the kernel refuses copies to and from rank {}: no more are tried", self.rank)
            });
        }
    }

    /// Has the peer said that it has finalized?
    #[inline]
    pub fn has_left(&self) -> bool {
        self.region.header().state.load(Ordering::Acquire) == FINALIZED
    }

    /// Why the peer can do nothing more, if it cannot.
    #[inline(always)]
    pub fn gone(&self) -> Option<&'static str> {
        if self.is_dead() {
            Some("has died")
        } else if self.has_left() {
            Some("has finalized")
        } else {
            self.broken()
        }
    }

    /// What it has written into shared memory that cannot be, in the words of an error, if it has: nothing more is done with it.
    #[inline]
    pub fn broken(&self) -> Option<&'static str> {
        self.broken.get().copied()
    }

    /// It has written what cannot be into a record of shared memory; the words of the error.
    #[cold]
    pub fn break_off(&self, record: &str) -> &'static str {
        // Once for a peer, and as long as the process lives: errors name it.
        self.broken.get_or_init(|| Box::leak(format!("has damaged {record}; nothing more is done with it").into()))
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
        let dead = self.pidfd.as_ref().is_none_or(|p| socket::has_ended(p.as_fd())) || self.has_hung_up();
        if dead {
            self.mark_dead();
        }
        dead
    }

    /// May memory be copied to and from its process, as far as can be known at this moment? One load where its pulse can be felt; else the
    /// system is asked. Whoever sees a `true` copies at once.
    #[inline]
    pub fn may_copy(&self) -> bool {
        !self.is_dead() && (self.has_pulse() || !self.check_dead())
    }

    /// Its process lives, and has executed no other program, for certain.
    #[inline]
    pub(super) fn has_pulse(&self) -> bool {
        !cfg!(loom) && pulse::beats(self.region.pulse())
    }

    pub(super) fn mark_dead(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Its death is to be announced: once.
    pub(super) fn announce(&self) -> bool {
        !self.announced.swap(true, Ordering::Relaxed)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a connection; `kept`: so does the peer. `watch` has the service thread look at it.
    pub(super) fn keep(
        &self,
        fd: OwnedFd,
        kept: bool,
        watch: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut lines = self.lines();
        watch(fd.as_fd())?;
        lines.push(Line { fd: Unshared::new(fd), kept });
        Ok(())
    }

    /// Has the peer's process ended, or executed another program? Either way it writes nothing any more.
    fn has_hung_up(&self) -> bool {
        self.lines().iter().any(|line| line.kept && socket::has_closed(line.fd.as_fd()))
    }

    /// Is there a connection that both keep?
    #[cfg(test)]
    pub(super) fn keeps_a_line(&self) -> bool {
        self.lines().iter().any(|line| line.kept)
    }

    /// Takes what it says on its connections; those that it gave up are closed, after a call of `unwatch`.
    pub(super) fn listen(&self, unwatch: impl Fn(BorrowedFd<'_>)) {
        self.lines().retain_mut(|line| match socket::receive(line.fd.as_fd(), &mut [0; HELLO_LEN]) {
            // That it keeps this one; or a welcome, with its region, that nobody waits for any more, which says as much.
            Ok((n, region)) if n == 1 || !region.is_empty() => {
                line.kept = true;
                true
            }
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => true,
            _ if line.kept => true,
            _ => {
                unwatch(line.fd.as_fd());
                false
            }
        });
    }

    /// Calls `unwatch` with each connection.
    pub(super) fn each_line(&self, mut unwatch: impl FnMut(BorrowedFd<'_>)) {
        self.lines().iter().for_each(|line| unwatch(line.fd.as_fd()));
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
    // At the other end the addresses are those of memory set aside for nothing else, by a process that has shown the job's secret.
    cma::read_into(pid, Room::of(&mut buf), theirs.probe_at).is_ok()
        && buf == theirs.probe
        && cma::write_from(pid, Bytes::of(mine), theirs.scratch_at).is_ok()
        && cma::read_into(pid, Room::of(&mut buf), theirs.scratch_at).is_ok()
        && buf == *mine
}
