//! The service thread: answers first contacts and watches over the peers, asleep in `epoll_wait` otherwise.
//!
//! It never waits for anybody: a connection is either answered in one go or put aside until its packet is there, and only so
//! many for only so long. Who says nothing makes room for others; a genuine peer that had to make room tries again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::attach::Shared;
use super::hello::{self, HELLO_LEN, Kind, Packet, Reason};
use super::peer::Peer;
use super::pulse;
use super::region::PeerRegion;
use super::socket;
use crate::base::atomics::Ordering;
use crate::base::error::Code;
use crate::base::system::epoll::{Epoll, Event};
use crate::base::system::unshared::Unshared;
use crate::base::system::{self, event, hear, tell};
use crate::base::thread;

/// The thread's stack: it calls nothing deep.
const STACK: usize = 128 << 10;
/// At most this many connections may be silent at a time.
const PENDING: usize = 64;
/// And each for at most this long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many connections are accepted before deaths and other packets get a look in.
const BURST: usize = 64;
/// How long not to accept when there are no descriptors left.
const RECOVERY: Duration = Duration::from_millis(20);

/// What an event is about: the upper half says which kind, the lower which one.
const WAKE: u64 = 0;
const LISTENER: u64 = 1 << 32;
const CONNECTION: u64 = 2 << 32;
const PROCESS: u64 = 3 << 32;
const LINE: u64 = 4 << 32;

/// The descriptors that the thread sleeps on.
pub(super) struct Service {
    epoll: Epoll,
    wake: OwnedFd,
    /// A peer that finds nobody listening knows that this process is gone.
    listener: Unshared<OwnedFd>,
    /// In a model: what the kernel has told the thread.
    #[cfg(loom)]
    news: crate::base::atomics::AtomicU32,
}

/// In a model: the news that the thread is to look around.
#[cfg(loom)]
const WOKEN: u32 = 1 << 31;

#[cfg(loom)]
impl Service {
    pub fn in_model(&self) {
        crate::base::shadow::share((&raw const self.news).cast(), size_of::<u32>());
    }

    pub fn tell(&self, news: u32) {
        self.news.fetch_or(news, Ordering::Release);
    }

    pub fn news(&self, seen: u32) -> u32 {
        loop {
            let now = self.news.load(Ordering::Acquire);
            if now != seen {
                return now;
            }
            // A sleep would be a fence, and order what it should not.
            crate::base::atomics::spin_loop();
        }
    }
}

impl Service {
    pub fn new(listener: OwnedFd) -> io::Result<Service> {
        let (epoll, wake) = (Epoll::new()?, event()?);
        let service = Service {
            epoll,
            wake,
            listener: Unshared::new(listener),
            #[cfg(loom)]
            news: Default::default(),
        };
        service.epoll.add(service.wake.as_raw_fd(), libc::EPOLLIN, WAKE)?;
        Ok(service)
    }

    /// Contacts are answered from now on.
    pub fn listen(&self) -> io::Result<()> {
        self.epoll.add(self.listener.as_raw_fd(), libc::EPOLLIN, LISTENER)
    }

    fn listen_again(&self, yes: bool) {
        // It is registered, so this cannot fail for a reason that matters.
        let _ = self.epoll.change(self.listener.as_raw_fd(), if yes { libc::EPOLLIN } else { 0 }, LISTENER);
    }

    /// The end of this process is news.
    pub fn watch(&self, pidfd: BorrowedFd<'_>, rank: u32) -> io::Result<()> {
        self.epoll.add(pidfd.as_raw_fd(), libc::EPOLLIN, PROCESS | u64::from(rank))
    }

    /// What this peer says on a connection is news, and that it closes it.
    pub fn watch_line(&self, line: BorrowedFd<'_>, rank: u32) -> io::Result<()> {
        self.epoll.add(line.as_raw_fd(), libc::EPOLLIN | libc::EPOLLRDHUP, LINE | u64::from(rank))
    }

    pub fn unwatch(&self, fd: BorrowedFd<'_>) {
        self.epoll.remove(fd.as_raw_fd());
    }

    /// A descriptor that is there for its number.
    fn spare(&self) -> Option<OwnedFd> {
        self.wake.try_clone().ok()
    }

    /// Has the thread look around.
    pub fn wake(&self) {
        #[cfg(loom)]
        self.tell(WOKEN);
        tell(&self.wake);
    }

    fn wait(&self, events: &mut [Event], timeout: Option<Duration>) -> usize {
        // Rounded up, so as not to wake just before the time and find nothing to do.
        let ms = timeout.map_or(-1, |t| t.as_millis().min(60_000) as i32 + 1);
        self.epoll.wait(events, ms).len()
    }
}

fn lacks_descriptors(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Starts the thread.
pub(super) fn spawn(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let spare = shared.service.spare();
    thread::spawn("fmpl-service", STACK, move || {
        let thread = Thread { shared: &shared, pending: std::array::from_fn(|_| None), paused_until: None, spare };
        pulse::with(shared.region.pulse(), || thread.run());
    })
}

/// A connection that has not said anything yet.
struct Pending {
    fd: OwnedFd,
    pid: libc::pid_t,
    since: Instant,
}

struct Thread<'a> {
    shared: &'a Shared,
    pending: [Option<Pending>; PENDING],
    /// There are no descriptors: no use in accepting before.
    paused_until: Option<Instant>,
    /// A descriptor to give up when there are no others, so as to be able to say so.
    spare: Option<OwnedFd>,
}

impl Thread<'_> {
    fn run(mut self) {
        let service = &self.shared.service;
        let mut events = [Event { events: 0, u64: 0 }; 64];
        while !self.shared.stop.load(Ordering::Acquire) {
            let n = service.wait(&mut events, self.time_left());
            for event in &events[..n] {
                let data = event.u64;
                let which = data as u32;
                match data & !u64::from(u32::MAX) {
                    WAKE => self.woken(),
                    LISTENER => self.accept(),
                    CONNECTION => self.packet(which as usize),
                    LINE => self.shared.look_at_lines(which),
                    _ => self.shared.announce_death(which),
                }
            }
            self.expire();
        }
        (0..PENDING).for_each(|i| drop(self.close(i)));
    }

    /// Until when the thread may sleep: a silent connection's time, or the next attempt to accept. Mostly for ever.
    fn time_left(&self) -> Option<Duration> {
        let oldest = self.pending.iter().flatten().map(|p| p.since + PATIENCE).min();
        let next = oldest.into_iter().chain(self.paused_until).min();
        next.map(|t| t.saturating_duration_since(Instant::now()))
    }

    fn woken(&self) {
        let _ = hear(&self.shared.service.wake);
        let dead = std::mem::take(&mut *self.shared.born_dead.lock().unwrap_or_else(PoisonError::into_inner));
        dead.into_iter().for_each(|rank| self.shared.announce_death(rank));
    }

    fn accept(&mut self) {
        for _ in 0..BURST {
            let fd = match socket::accept(self.shared.service.listener.as_fd()) {
                Ok(fd) => fd,
                Err(e) => match e.raw_os_error() {
                    Some(libc::EINTR | libc::ECONNABORTED) => continue,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => {
                        return self.out_of_descriptors();
                    }
                    _ => return,
                },
            };
            let Ok(them) = socket::credentials(fd.as_fd()) else { continue };
            if them.uid != system::user() {
                self.shared.reject(Reason::User, them.pid);
                continue;
            }
            // Genuine peers greet right after connecting: their packet is mostly there.
            if let Some(peer) = self.answer(fd.as_fd(), them.pid) {
                self.keep(fd, peer);
                continue;
            }
            let slot = self.free_slot();
            if self.shared.service.epoll.add(fd.as_raw_fd(), libc::EPOLLIN, CONNECTION | slot as u64).is_ok() {
                self.pending[slot] = Some(Pending { fd, pid: them.pid, since: Instant::now() });
            }
        }
    }

    /// A place for a silent connection, the oldest one's if need be.
    fn free_slot(&mut self) -> usize {
        self.pending.iter().position(Option::is_none).or_else(|| self.evict_oldest()).unwrap_or(0)
    }

    fn evict_oldest(&mut self) -> Option<usize> {
        let (_, slot) = self.pending.iter().enumerate().filter_map(|(i, p)| p.as_ref().map(|p| (p.since, i))).min()?;
        if let Some(p) = self.close(slot) {
            self.shared.reject(Reason::Silent, p.pid);
        }
        Some(slot)
    }

    /// Without descriptors a contact is turned down rather than left to wait: who began it is to hear what is missing here.
    fn out_of_descriptors(&mut self) {
        self.shared.reject(Reason::Descriptors, 0);
        if self.evict_oldest().is_some() {
            return;
        }
        let had_spare = self.spare.take().is_some();
        let refused = had_spare && self.turn_down_one();
        self.spare = self.shared.service.spare();
        if !refused {
            self.shared.service.listen_again(false);
            self.paused_until = Some(Instant::now() + RECOVERY);
        }
    }

    fn turn_down_one(&self) -> bool {
        let Ok(fd) = socket::accept(self.shared.service.listener.as_fd()) else { return false };
        if socket::credentials(fd.as_fd()).is_ok_and(|them| them.uid == system::user()) {
            // What it has said is taken in first: who hangs up on unheard words says nothing but that. If it does not listen, so be it.
            let _ = socket::receive(fd.as_fd(), &mut [0; HELLO_LEN + 1]);
            let _ = socket::send(fd.as_fd(), &hello::refusal(self.shared.version(), Reason::Descriptors), None);
        }
        true
    }

    fn expire(&mut self) {
        if self.paused_until.is_none() && self.pending.iter().all(Option::is_none) {
            return;
        }
        let now = Instant::now();
        if self.paused_until.is_some_and(|t| t <= now) {
            self.paused_until = None;
            self.shared.service.listen_again(true);
        }
        for slot in 0..PENDING {
            if self.pending[slot].as_ref().is_some_and(|p| p.since + PATIENCE <= now)
                && let Some(p) = self.close(slot)
            {
                self.shared.reject(Reason::Silent, p.pid);
            }
        }
    }

    /// Takes a connection off the watch, and out of its place. Off the watch first: a forked child may hold the descriptor too,
    /// and then closing ours would not end it.
    fn close(&mut self, slot: usize) -> Option<Pending> {
        let p = self.pending[slot].take()?;
        self.shared.service.unwatch(p.fd.as_fd());
        Some(p)
    }

    /// A silent connection has something to say, or is closed.
    fn packet(&mut self, slot: usize) {
        let Some(p) = self.pending[slot].as_ref() else { return };
        if let Some(peer) = self.answer(p.fd.as_fd(), p.pid)
            && let Some(p) = self.close(slot)
        {
            self.keep(p.fd, peer);
        }
    }

    /// A connection that has been answered stays open if a peer greeted by it.
    fn keep(&self, fd: OwnedFd, peer: Option<Arc<Peer>>) {
        if let Some(peer) = peer {
            // Unwatched it would say nothing, and its pidfd is watched in any case.
            let _ = peer.keep(fd, false, |fd| self.shared.service.watch_line(fd, peer.rank));
        }
    }

    /// Answers a connection if its packet is there: with whom, if it was a peer. `None`: not yet.
    fn answer(&self, fd: BorrowedFd<'_>, pid: libc::pid_t) -> Option<Option<Arc<Peer>>> {
        let mut packet = [0; HELLO_LEN + 1];
        let got = match socket::receive(fd, &mut packet) {
            Ok(got) => Ok(got),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return None,
            Err(e) if lacks_descriptors(&e) => Err(Reason::Descriptors),
            Err(_) => Ok((0, Vec::new())),
        };
        match got.and_then(|(len, fds)| self.greeted(fd, pid, &packet[..len.min(HELLO_LEN + 1)], fds)) {
            Ok(peer) => Some(Some(peer)),
            Err(reason) => {
                self.shared.reject(reason, pid);
                if reason != Reason::Garbage {
                    // If it does not listen, so be it.
                    let _ = socket::send(fd, &hello::refusal(self.shared.version(), reason), None);
                }
                Some(None)
            }
        }
    }

    /// Takes in who sent this packet, and sends the welcome.
    fn greeted(
        &self,
        fd: BorrowedFd<'_>,
        pid: libc::pid_t,
        packet: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Arc<Peer>, Reason> {
        let shared = self.shared;
        let hello = match hello::decode(packet, shared.version()) {
            Packet::Hello(h) if h.kind == Kind::Hello => h,
            Packet::Version(_) => return Err(Reason::Version),
            _ => return Err(Reason::Garbage),
        };
        // Set before the listener was watched.
        let secret = shared.secret.get().ok_or(Reason::Secret)?;
        if !hello.knows(secret) {
            return Err(Reason::Secret);
        }
        if hello.to != shared.rank || hello.from >= shared.size || hello.size != shared.size {
            return Err(Reason::Rank);
        }
        let [region]: [OwnedFd; 1] = fds.try_into().map_err(|_| Reason::Region)?;
        let peer = match shared.known(hello.from) {
            Some(p) => Arc::clone(p),
            None => {
                let region =
                    PeerRegion::adopt(region, hello.from, shared.size, shared.version()).map_err(|e| {
                        match e.code() {
                            Code::Version => Reason::Version,
                            Code::Memory => Reason::Resources,
                            _ => Reason::Region,
                        }
                    })?;
                // A peer that has ended since is taken in too: what it has left in its memory may still be wanted.
                let pidfd = socket::pidfd(fd, pid).map_err(|e| match e.kind() {
                    // It has given this attempt up, and lives: it greets again.
                    io::ErrorKind::ConnectionAborted => Reason::Silent,
                    _ if lacks_descriptors(&e) => Reason::Descriptors,
                    _ => Reason::Resources,
                })?;
                let cma = pidfd.is_some() && shared.reaches(pid, &hello);
                let reached = shared.region.header().is_reached();
                let peer = Arc::new(Peer::new(pid, pidfd, region, cma, reached));
                shared.install(peer).map_err(|_| Reason::Resources)?
            }
        };
        let welcome = shared.introduce(Kind::Welcome, hello.from, secret, peer.cma());
        // It may have ended, or given up; then it is known here all the same.
        let _ = socket::send(fd, &welcome, Some(shared.region.fd()));
        Ok(peer)
    }
}
