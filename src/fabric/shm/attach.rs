//! First contact: how two ranks of a node come to know each other.
//!
//! Each rank listens on an abstract Unix socket, whose name it publishes in its *card* with the launcher. Whoever wants to talk
//! to it first connects and greets; both hand the other the descriptor of their region:
//!
//! ```text
//!   S (initiator, the calling thread)                    R (its service thread)
//!   ── connect ────────────────────────────────────────▶ credentials: same user?
//!   ── Hello: magic, version, check, + S's region ─────▶ checked, S is known here from now on
//!   ◀───────────── Welcome: the same,    + R's region ──
//!   checked, R is known here from now on
//! ```
//! S *pushes* its region, so R can reach S's memory even if S is stopped the moment after; and R is answered for by its service
//! thread, so S need not wait until R's program calls the library. Both may begin at once: the first to be through counts.
//!
//! The connection stays open. The same thread watches it, and the peer's pidfd, so that a death is known within moments: the pidfd
//! tells when the process ends, the connection when it executes another program, which keeps its number. Contacts are kept waiting until the job's
//! key is known ([`Attach::open`]). Strangers are turned away by user, magic, version and check before anything of theirs is used.

mod card;
mod limit;
#[cfg(loom)]
mod model;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::greet::{Greeted, Greeting, KEPT};
use super::hello::{Flags, HELLO_LEN, Hello, Kind, PROBE_LEN, Reason};
use super::peer::{Peer, probe_cma};
use super::region::Region;
use super::service::Service;
use super::socket::{self, Name};
use crate::base::atomics::{AtomicBool, AtomicU64, Mutex, MutexGuard, OnceLock, Ordering};
use crate::base::by_rank::ByRank;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::{self, CHECK, Key};
use crate::base::log::{Level, tell};
use crate::launch::place::Node;
pub(super) use card::Card;
use limit::RaisedLimit;

/// The settings that first contact depends on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `FMPL_CMA`: use cross-memory copies where they work.
    pub cma: bool,
}

/// This rank's side of all first contacts, and its service thread.
pub struct Attach {
    pub(super) shared: Arc<Shared>,
    pub(super) card: Card,
    thread: Mutex<Option<JoinHandle<()>>>,
    pid: u32,
    _raised: Option<RaisedLimit>,
}

/// What the service thread and the threads that call [`Attach::contact`] have in common.
pub(super) struct Shared {
    pub region: Arc<Region>,
    pub rank: u32,
    pub size: u32,
    pub secret: OnceLock<Key>,
    pub service: Service,
    pub stop: AtomicBool,
    options: Options,
    peers: ByRank<OnceLock<Arc<Peer>>>,
    /// Held while a peer is made known, so that each becomes known once, and its death comes after it.
    installing: Mutex<()>,
    /// Peers that were dead when they became known.
    pub born_dead: std::sync::Mutex<Vec<u32>>,
    /// Greetings whose answer nobody waits for at the moment: whoever asks for the peer next does. Not one more for each time that somebody
    /// asks: a peer with little time would come to answer none of them.
    pub greetings: std::sync::Mutex<BTreeMap<u32, Greeting>>,
    probe: Box<Private>,
    /// For each rank that was greeted memory to try its writes on.
    scratch: ByRank<Private>,
    on_death: OnDeath,
    on_contact: OnContact,
    rejected: [AtomicU64; Reason::ALL.len()],
    /// In a model: the rank that answers a greeting, unless it has ended.
    #[cfg(loom)]
    pub answers: std::sync::OnceLock<Answers>,
}

#[cfg(loom)]
type Answers = Box<dyn Fn(u32) -> Option<Arc<Peer>> + Send + Sync>;

type OnDeath = Box<dyn Fn(u32) + Send + Sync>;
type OnContact = Box<dyn Fn(&Arc<Peer>) + Send + Sync>;

/// Private memory that other processes read and write by [`super::cma`].
type Private = [AtomicU64; PROBE_LEN / 8];

impl Attach {
    /// Begins to listen and to watch. `region` is this rank's own.
    ///
    /// `on_contact` is called once for each peer that becomes known, before [`known`](Attach::known) shows it, by the service
    /// thread or within [`contact`](Attach::contact); it must not call `contact` itself. `on_death` is called where a death is
    /// learnt, and nowhere else is one told of: by the service thread, once for each known peer whose process has ended, however it
    /// ended (the peer's header says whether it had finalized); and within `contact`, of a peer that turns out to have died or left.
    pub fn start(
        region: Arc<Region>,
        options: Options,
        on_death: impl Fn(u32) + Send + Sync + 'static,
        on_contact: impl Fn(&Arc<Peer>) + Send + Sync + 'static,
    ) -> Result<Attach> {
        let (rank, raised) = (region.rank(), RaisedLimit::raise());
        allow_tracing();
        let (shared, card) = Shared::new(region, options, on_death, on_contact)?;
        let thread =
            super::service::spawn(Arc::clone(&shared)).map_err(|e| failed(rank, "starting the service thread", e))?;
        Ok(Attach { shared, card, thread: Mutex::new(Some(thread)), pid: std::process::id(), _raised: raised })
    }

    /// The job's key is known: contacts, those that have been waiting too, are answered from now on.
    pub fn open(&self, job: &Key) -> Result<()> {
        if self.shared.secret.set(job.derive("first contact", &[])).is_err() {
            return Err(error!(Code::Argument, "rank {}: the job's key is set already", self.shared.rank));
        }
        self.shared
            .service
            .listen()
            .map_err(|e| error!(Code::System, "rank {}: watching the socket for first contacts: {e}", self.shared.rank))
    }

    /// What the others need to reach this rank: to be published with the launcher.
    pub fn card(&self) -> Vec<u8> {
        self.card.encode()
    }

    /// The node of the rank that published this card, as people read it.
    pub fn node_of(card: &[u8]) -> Option<String> {
        Card::decode(card).map(|c| c.node.to_string())
    }

    /// Is the rank that published this card on the same node, so that [`contact`](Attach::contact) can reach it?
    pub fn same_node(&self, card: &[u8]) -> bool {
        Card::decode(card).is_some_and(|c| c.node == self.card.node)
    }

    /// The peer, if there has been a contact.
    #[inline]
    pub fn known(&self, peer: u32) -> Option<&Arc<Peer>> {
        self.shared.known(peer)
    }

    /// How many contacts have been turned away, for whatever reason.
    pub fn rejected(&self) -> u64 {
        self.shared.rejected.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Makes the peer known, and this rank to the peer; at once if it is. Any number of threads, and the peer, may do so at once.
    ///
    /// A peer that lives and does not answer, since it is stopped or on its way through init, is waited for: that it is late says nothing of
    /// its life. `goes_on` is called every so often with how long that has taken; when it says no, the answer is `None`, and the next call goes
    /// on from there.
    ///
    /// `Peer`: it has died or left, or answers nonsense. `Version`: it runs another build. `Unsupported`: it is on another node. `System`,
    /// `Memory`: here or there something ran out, which the error names; a further call tries again. `Init`: before [`open`](Attach::open).
    pub fn contact(
        &self,
        peer: u32,
        card: &[u8],
        mut goes_on: impl FnMut(Duration) -> bool,
    ) -> Result<Option<Arc<Peer>>> {
        let shared = &*self.shared;
        if peer >= shared.size {
            return Err(error!(Code::Rank, "rank {peer} of a job of {}", shared.size));
        }
        if let Some(p) = shared.known(peer) {
            return Ok(Some(Arc::clone(p)));
        }
        let secret = shared.secret.get();
        let secret =
            secret.ok_or_else(|| error!(Code::Init, "contact with rank {peer} before the job's key is known"))?;
        let card = Card::decode(card)
            .ok_or_else(|| error!(Code::Launch, "what rank {peer} published with the launcher is no card of FMPL"))?;
        if card.node != self.card.node {
            return Err(error!(
                Code::Unsupported,
                "rank {peer} is on another node, or in another network, process or user namespace: its memory cannot be shared"
            ));
        }
        let since = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut refused: Option<Instant> = None;
        loop {
            match shared.greet(peer, &card, secret, &mut || goes_on(since.elapsed()))? {
                Greeted::Done(p) => return Ok(Some(p)),
                Greeted::Late(greeting) => {
                    shared.put_aside(peer, greeting);
                    return Ok(None);
                }
                Greeted::Gone(error) => {
                    (shared.on_death)(peer);
                    return Err(error);
                }
                // What it lacks may be there in a moment.
                Greeted::Refused(error) => {
                    if refused.get_or_insert_with(Instant::now).elapsed() > SHORTAGE {
                        return Err(error);
                    }
                }
                // The peer had to make room, or has closed down; the next attempt tells which.
                Greeted::Again => {}
            }
            if !goes_on(since.elapsed() + pause) {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Ends the service thread: neither callback is called any more when this returns. Peers already known stay usable.
    pub fn stop(&self) {
        // A forked child has no such thread to join.
        if self.pid != std::process::id() {
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.service.wake();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread itself may be dropping the last reference, out of a callback: it ends when it returns.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Attach {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How long a peer may turn contacts down for want of descriptors or memory before that is an error.
const SHORTAGE: Duration = Duration::from_secs(1);

impl Shared {
    /// Nobody is known yet, and a socket is there to be greeted at.
    fn new(
        region: Arc<Region>,
        options: Options,
        on_death: impl Fn(u32) + Send + Sync + 'static,
        on_contact: impl Fn(&Arc<Peer>) + Send + Sync + 'static,
    ) -> Result<(Arc<Shared>, Card)> {
        let (rank, size) = (region.rank(), region.size());
        let failed = |what: &str, e| failed(rank, what, e);
        let (listener, name) = socket::listen().map_err(|e| failed("making the socket for first contacts", e))?;
        let card = Card { name, pid: std::process::id(), node: Node::here()? };
        let mut probe = [0; PROBE_LEN];
        key::fill(&mut probe).map_err(|e| failed("getting random bytes", e))?;
        let word = |i: usize| u64::from_ne_bytes(probe[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
        let shared = Arc::new(Shared {
            rank,
            size,
            region,
            secret: OnceLock::new(),
            service: Service::new(listener).map_err(|e| failed("making the service thread's descriptors", e))?,
            stop: AtomicBool::new(false),
            options,
            peers: ByRank::new(size),
            installing: Mutex::new(()),
            born_dead: Default::default(),
            greetings: Default::default(),
            probe: Box::new(std::array::from_fn(|i| AtomicU64::new(word(i)))),
            scratch: ByRank::new(size),
            on_death: Box::new(on_death),
            on_contact: Box::new(on_contact),
            rejected: Default::default(),
            #[cfg(loom)]
            answers: Default::default(),
        });
        Ok((shared, card))
    }

    #[inline]
    pub fn known(&self, peer: u32) -> Option<&Arc<Peer>> {
        self.peers.get(peer)?.get()
    }

    /// The packet that introduces this rank to another.
    pub fn introduce(&self, kind: Kind, to: u32, secret: &Key, reached: bool) -> [u8; HELLO_LEN] {
        let mut flags = Flags::empty();
        flags.set(Flags::CMA_WANTED, self.options.cma);
        flags.set(Flags::CMA_REACHED, reached);
        Hello {
            kind,
            version: self.version(),
            from: self.rank,
            to,
            size: self.size,
            flags,
            check: [0; CHECK],
            probe_at: (&raw const *self.probe) as u64,
            scratch_at: self.scratch.get_or_make(to).map_or(0, |scratch| (&raw const *scratch) as u64),
            probe: self.probe_bytes(),
        }
        .sealed(secret)
        .encode()
    }

    fn probe_bytes(&self) -> [u8; PROBE_LEN] {
        let mut b = [0; PROBE_LEN];
        for (to, from) in b.chunks_exact_mut(8).zip(self.probe.iter()) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
        b
    }

    /// The layout version that this process stands for: that of its own region.
    pub fn version(&self) -> u32 {
        self.region.version()
    }

    /// Can this process copy to and from the private memory of the one that sent this greeting?
    pub fn reaches(&self, pid: libc::pid_t, theirs: &Hello) -> bool {
        self.options.cma && theirs.flags.contains(Flags::CMA_WANTED) && probe_cma(pid, theirs, &self.probe_bytes())
    }

    /// Makes a peer known, unless it is, and begins to watch it.
    pub fn install(&self, peer: Arc<Peer>) -> io::Result<Arc<Peer>> {
        let _guard = self.lock_installing();
        let Some(slot) = self.peers.get_or_make(peer.rank) else { return Err(io::ErrorKind::InvalidInput.into()) };
        if let Some(p) = slot.get() {
            return Ok(Arc::clone(p));
        }
        match peer.pidfd() {
            // Its death, if it comes at once, waits for the lock.
            Some(pidfd) => self.service.watch(pidfd, peer.rank)?,
            None => {
                self.born_dead.lock().unwrap_or_else(PoisonError::into_inner).push(peer.rank);
                self.service.wake();
            }
        }
        (self.on_contact)(&peer);
        let peer = Arc::clone(slot.get_or_init(|| peer));
        let greeting = self.greetings().remove(&peer.rank);
        if let Some(greeting) = greeting {
            self.keep_greeting(&peer, greeting);
        }
        Ok(peer)
    }

    /// A known peer's process has ended. Called by the service thread, once for each.
    pub fn announce_death(&self, rank: u32) {
        drop(self.lock_installing());
        let Some(peer) = self.known(rank) else { return };
        if let Some(pidfd) = peer.pidfd() {
            self.service.unwatch(pidfd);
        }
        peer.each_line(|line| self.service.unwatch(line));
        if !peer.announce() {
            return;
        }
        peer.mark_dead();
        (self.on_death)(rank);
    }

    /// Keeps a connection to a peer, which hears of it. `kept`: the peer has said that it does so too.
    pub fn keep(&self, peer: &Peer, line: OwnedFd, kept: bool) {
        let _ = socket::send(line.as_fd(), &[KEPT], None);
        // Unwatched it would say nothing, and the pidfd is watched in any case.
        let _ = peer.keep(line, kept, |fd| self.service.watch_line(fd, peer.rank));
    }

    /// A connection to a known peer says something, or is closed.
    pub fn look_at_lines(&self, rank: u32) {
        let Some(peer) = self.known(rank) else { return };
        peer.listen(|line| self.service.unwatch(line));
        if peer.check_dead() {
            self.announce_death(rank);
        }
    }

    #[cfg_attr(loom, track_caller)]
    fn lock_installing(&self) -> MutexGuard<'_, ()> {
        self.installing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a contact that was turned away, and logs the first for each reason.
    pub fn reject(&self, reason: Reason, pid: libc::pid_t) {
        let n = self.rejected[reason as usize].fetch_add(1, Ordering::Relaxed);
        if n == 0 {
            let why = reason.text();
            tell(Level::Warn, || {
                format!("turned away a contact from process {pid}: {why} (said once; more are counted)")
            });
        }
    }
}

#[cold]
fn failed(rank: u32, what: &str, e: io::Error) -> Error {
    error!(Code::System, "rank {rank}: {what}: {e}")
}

/// Where Yama lets only ancestors trace, and so copy: let the other ranks, which are siblings, do so too.
fn allow_tracing() {
    if std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|s| s.trim() == "1") {
        // SAFETY: plain numbers. If it is refused, the probe finds out what does not work.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ranks_of_one_process() {
        let start = |rank| {
            let a = Attach::start(Arc::new(Region::create(rank, 2).unwrap()), Options { cma: true }, |_| {}, |_| {})
                .unwrap();
            a.open(&Key::of(&[7; 16])).unwrap();
            a
        };
        let (a, b) = (start(0), start(1));
        assert!(a.same_node(&b.card()));
        let peer = a.contact(1, &b.card(), |waited| waited < Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(
            (peer.rank, peer.pid as u32, peer.is_dead(), peer.check_dead()),
            (1, std::process::id(), false, false)
        );
        assert_eq!(b.known(0).unwrap().region.header().rank(), 0);
        assert_eq!(b.known(0).unwrap().cma(), peer.cma());
        a.stop();
        b.stop();
    }
}
