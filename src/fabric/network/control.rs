//! This process on the fabric: its port, what it has with each peer, and the thread that answers the peers.

mod contact;
mod leaving;
mod terms;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use super::arrivals::{Arrival, Arrivals};
use super::bounce::BOUNCE_BYTES;
use super::cache::Cache;
use super::crowd::Crowd;
use super::device::{Device, DeviceError};
use super::hello::Card;
use super::kept::Shelf;
use super::link::Link;
use super::link::ending::Reason;
use super::multicast::{self, Group, Name};
use super::packed::{Back, Packed};
use super::region::{Arena, Domain, Ranges};
use super::room::{Room, Which};
use super::stamps::Stamps;
use super::switching::Switching;
use super::turns::SETTLED;
use super::turns::line::Line;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::Key;
use crate::base::lock::{Condvar, Mutex, MutexGuard};
use crate::base::run::Run;
use crate::base::thread::{self, Started};
pub use contact::Contact;
pub use terms::{Close, Hooks, OnNumber, Terms, Who};

/// What is said of all peers when this process ends its part.
pub(super) const FINALIZED: &str = "is left: this process has finalized";
/// From one request to its first repetition; later ones wait longer.
pub(super) const FIRST_PATIENCE: Duration = Duration::from_millis(20);
const LAST_PATIENCE: Duration = Duration::from_millis(250);
const STACK: usize = 256 << 10;

/// Bytes of a lane's page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a chunk of fronts.
pub const CHUNK_BYTES: usize = 8 << 10;
/// Chunks of a lane at most.
pub const CHUNKS_MOST: u32 = 4096;
/// The chunk that is made with a lane: the program's first indices. The library's own, before it, is made when it is needed.
pub const FIRST_CHUNK: u32 = 1;
/// In the place of a chunk's number: the annex of a lane.
pub const ANNEX_CHUNK: u32 = CHUNKS_MOST;
/// Bytes of an annex: a line for each of its parts, and these.
pub const REMOTE_ANNEX_BYTES: usize = ANNEX_PARTS * (64 + ANNEX_PART);
/// Parts of an annex, and bytes of each: of a message that goes by it.
pub const ANNEX_PARTS: usize = 2;
/// See above.
pub const ANNEX_PART: usize = 8 << 10;
/// Annexes of a process at most.
pub const ANNEXES_MOST: usize = 6;
pub(super) const WINDOW_BYTES: [usize; 2] = [PAGE_BYTES, CHUNK_BYTES];

/// This process on the fabric.
pub struct Fabric {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<Started>>,
    pid: u32,
}

/// What the callers' threads and the fabric's share.
pub(super) struct Shared {
    this: Weak<Shared>,
    pub rank: u32,
    who: Who,
    pub device: Arc<dyn Device>,
    /// Once the job's key is known.
    stamps: OnceLock<Stamps>,
    groups: OnceLock<Key>,
    pub arrivals: Arc<Arrivals>,
    links: Mutex<Links>,
    /// Something has come that a caller may wait for; with the lock of the links.
    pub answered: Condvar,
    pub hooks: OnceLock<Hooks>,
    /// When a connection that is between two states is to be looked at next, in nanoseconds; [`SETTLED`]: none is.
    pub due_ns: AtomicU64,
    pub rooms: OnceLock<[Arc<Room>; 3]>,
    pub places: [usize; 3],
    /// The connections that wait for a place, of each kind.
    pub in_line: [Mutex<Line>; 2],
    pub patience_ns: u64,
    stall: Duration,
    pub switching: Switching,
    pub shelf: Shelf,
    /// Connections that were given up for others, and contexts.
    pub retired: AtomicU64,
    pub put_away: AtomicU64,
    /// Peers that were forgotten, and links that there ever were.
    pub forgotten: AtomicU64,
    lives: AtomicU64,
    comes_before: Box<dyn Fn(u32) -> bool + Send + Sync>,
    thread: OnceLock<thread::Id>,
    stop: AtomicBool,
    /// By when this process has said what it has to say at its end, in nanoseconds; `u64::MAX`: it is not at its end.
    pub ends_ns: AtomicU64,
    rejected: AtomicU64,
    /// Datagrams sent.
    datagrams: AtomicU64,
    strict: bool,
    spool: Ranges,
    cache: Cache,
    pub(super) bounces: Mutex<Vec<Arena>>,
    /// Annexes of lanes that there are.
    pub annexes: Arc<AtomicUsize>,
    copied: AtomicU64,
    multicast: Arc<multicast::Counts>,
    /// No link is packed.
    pub keeps_all: AtomicBool,
}

#[derive(Default)]
pub(super) struct Links {
    pub by_peer: BTreeMap<u32, Arc<Link>>,
    /// Peers that refused, and why.
    refused: HashMap<u32, u32>,
    /// Peers that have answered a probe.
    probed: HashSet<u32>,
    /// Whether strangers are let in.
    pub crowd: Crowd,
    pub packed: Packed,
    pub back: Back,
}

impl Fabric {
    /// Takes part with this device. Requests are answered once the job's key is known.
    pub fn start(who: Who, device: Arc<dyn Device>, terms: Terms) -> Result<Fabric> {
        let (rank, before) = (who.rank, who.before);
        let arrivals = Arc::new(Arrivals::new(&device));
        let spool = Ranges::new(device.domain());
        let wakes = device.clone();
        let cache = Cache::new(device.domain(), terms.keep, Box::new(move || wakes.wake()))?;
        device.domain().set_relief(cache.relief());
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            rank,
            who,
            device,
            stamps: OnceLock::new(),
            groups: OnceLock::new(),
            arrivals,
            links: Mutex::default(),
            answered: Condvar::new(),
            hooks: OnceLock::new(),
            due_ns: AtomicU64::new(SETTLED),
            rooms: OnceLock::new(),
            in_line: [Which::Pairs, Which::Contexts].map(|which| Mutex::new(Line::new(which))),
            places: terms.places,
            switching: Switching::new(terms.ways),
            shelf: Shelf::default(),
            patience_ns: terms.patience.as_nanos() as u64,
            stall: terms.stall,
            retired: AtomicU64::new(0),
            put_away: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            lives: AtomicU64::new(before),
            comes_before: terms.comes_before,
            thread: OnceLock::new(),
            stop: AtomicBool::new(false),
            ends_ns: AtomicU64::new(u64::MAX),
            rejected: AtomicU64::new(0),
            datagrams: AtomicU64::new(0),
            strict: terms.strict,
            spool,
            cache,
            bounces: Mutex::default(),
            annexes: Arc::default(),
            copied: AtomicU64::new(0),
            multicast: Arc::default(),
            keeps_all: AtomicBool::new(false),
        });
        Ok(Fabric { shared, thread: Mutex::new(None), pid: std::process::id() })
    }

    /// The job's key is known: requests are answered from now on, by a thread.
    pub fn open(&self, job: &Key, hooks: Hooks) -> Result<()> {
        self.know(job, hooks);
        self.shared.device.arm()?;
        let shared = self.shared.clone();
        let thread = thread::start("fmpl-network", STACK, move || shared.run());
        let thread = thread.map_err(|e| error!(Code::System, "starting the thread between nodes: {e}"))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// The same, by whoever calls [`turn`](Fabric::turn).
    pub fn know(&self, job: &Key, hooks: Hooks) {
        let Who { rank, size, before, .. } = self.shared.who;
        let _ = self.shared.stamps.set(Stamps::new(job, rank, size, before));
        let _ = self.shared.groups.set(job.derive("multicast groups", &[]));
        let _ = self.shared.hooks.set(hooks);
        self.shared.device.know(job);
    }

    /// Deals with what has come, and does what is due; what its thread does between two sleeps. When there is more to do, in nanoseconds; `None`:
    /// nothing before something comes.
    pub fn turn(&self) -> Option<u64> {
        self.shared.turn();
        Some(self.shared.due_ns.load(Ordering::Acquire)).filter(|due| *due != SETTLED)
    }

    /// Gives the connection with a peer up, and what it has of this process's places, as if others needed them.
    pub fn part(&self, link: &Link) {
        self.shared.part(link);
    }

    /// What the others need to reach this process, to be published with the launcher.
    pub fn card(&self) -> Card {
        self.shared.card()
    }
    /// Peers that were forgotten so far.
    pub fn forgotten(&self) -> u64 {
        self.shared.forgotten.load(Ordering::Relaxed)
    }
    /// Peers that were let in beyond what there is room for, since nobody has gone for long.
    pub fn let_in(&self) -> u64 {
        self.shared.lock().crowd.beyond()
    }
    /// Where peers are reached by several ways: turns that were connected, that had rings, connections given up for others, turns that the peer
    /// had no place for, peers that were connected again soon, and turns by connections that had been kept.
    pub fn switches(&self) -> Option<[u64; 6]> {
        let Switching { connected, rings, left, declined, again, .. } = &self.shared.switching;
        let all = [connected, rings, left, declined, again, &self.shared.shelf.used].map(|n| n.load(Ordering::Relaxed));
        self.shared.device.has_ways().then_some(all)
    }
    /// The device in use.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.shared.device
    }
    /// Does a message that is put into a buffer come with a completion at its receiver?
    pub fn strict(&self) -> bool {
        self.shared.strict
    }
    /// Where memory is registered.
    pub fn domain(&self) -> &Arc<Domain> {
        self.shared.device.domain()
    }
    /// The key by which peers reach a piece of the spool, registered when first asked for.
    pub fn spool_key(&self, piece: Run) -> Result<u32> {
        // SAFETY: the spool stays mapped as long as the process is on the fabric, and its allocator gives out what is free.
        unsafe { self.shared.spool.key(piece.ptr(), piece.len()) }
    }
    /// Ends the registrations of pieces of the spool that are in no use; were there any?
    pub fn shed_spool(&self, is_free: impl Fn(u64, usize) -> bool) -> bool {
        self.shared.spool.shed(is_free)
    }
    /// A piece of the spool is given back to the system.
    pub fn forget_spool(&self, at: *mut u8, len: usize) {
        self.shared.spool.forget(at, len);
    }
    /// Registrations of user memory.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }
    /// Connections that exist.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.shared.links()
    }
    /// That with this rank, if there is one.
    pub fn known(&self, peer: u32) -> Option<Arc<Link>> {
        self.shared.known(peer)
    }
    /// What was done on all connections so far: writes, reads, their bytes, bytes of messages that were copied, completions taken;
    /// connections that there are, of this process and of the node; how many were given up; packets sent to multicast groups, packets of
    /// these that were sent again, groups that this process is in; contexts that there are, of this process and of the node, and how many of
    /// this process's were put away.
    pub fn done(&self) -> [u64; 14] {
        let taken = |which: usize| self.shared.rooms.get().map_or((0, 0), |rooms| rooms[which].taken());
        let ((mine, all), (mine_in, all_in)) = (taken(0), taken(1));
        let away = self.shared.put_away.load(Ordering::Relaxed);
        let retired = self.shared.retired.load(Ordering::Relaxed) + self.shared.switching.left.load(Ordering::Relaxed);
        let copied = self.shared.copied.load(Ordering::Relaxed);
        let counts = &*self.shared.multicast;
        let [sent, again, groups] = [&counts.sent, &counts.resent, &counts.groups].map(|n| n.load(Ordering::Relaxed));
        let [mine, all, mine_in, all_in] = [mine, all, mine_in, all_in].map(|n| n as u64);
        let mut sum = [0, 0, 0, copied, 0, mine, all, retired, sent, again, groups, mine_in, all_in, away];
        for link in self.links() {
            let [writes, reads, bytes, completions] = link.done();
            [0, 1, 2, 4].into_iter().zip([writes, reads, bytes, completions]).for_each(|(i, n)| sum[i] += n);
        }
        sum
    }
    /// Bytes of its registered memory, by what it is for.
    pub fn memory(&self) -> Vec<(&'static str, u64)> {
        let bounces = self.shared.bounces.lock().unwrap_or_else(PoisonError::into_inner).len() * BOUNCE_BYTES;
        let links = self.links();
        let annexes: usize = links.iter().map(|link| link.annex_bytes()).sum();
        let windows: usize = links.iter().map(|link| link.window_bytes() + link.pair_bytes()).sum();
        vec![
            ("between nodes: links with peers", (links.len() * size_of::<Link>()) as u64),
            ("between nodes: peers that are packed", self.shared.lock().packed.bytes() as u64),
            ("between nodes: fronts and pages of lanes", windows.saturating_sub(annexes) as u64),
            ("between nodes: annexes of lanes", annexes as u64),
            ("between nodes: bounce buffers", bounces as u64),
            ("between nodes: table of kept registrations", self.shared.cache.memory() as u64),
            ("between nodes: how busy peers are", self.shared.switching.bytes() as u64),
            ("between nodes: datagrams", self.shared.device.bytes() as u64),
        ]
    }
    /// What a thread that waits does, on a network where things go on only while somebody calls. `true`: something has come, within so many looks.
    pub fn drive(&self, looks: u32) -> bool {
        self.shared.arrivals.drive(looks)
    }
    /// Joins the multicast group for this purpose, the same with all its members. `Unsupported`: it cannot be joined, and why.
    pub fn join_group(&self, purpose: [u64; 2]) -> Result<Box<dyn Group>> {
        let early = || Error::new(Code::Init, "a multicast group before the job's key is known");
        let name = Name::new(self.shared.groups.get().ok_or_else(early)?, purpose);
        self.shared.device.join(name, &self.shared.multicast)
    }
    /// A processor has copied so many bytes of a message.
    pub fn count_copied(&self, bytes: usize) {
        self.shared.copied.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    /// Datagrams that were not from this job.
    pub fn rejected(&self) -> u64 {
        self.shared.rejected.load(Ordering::Relaxed) + self.shared.arrivals.rejected.load(Ordering::Relaxed)
    }

    /// Ends the thread and breaks off all connections: from here on no peer writes anything here.
    pub fn stop(&self) {
        if self.pid != std::process::id() {
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            thread.join();
        }
        self.shared.cache.stop();
        self.links().iter().for_each(|link| link.fail(Reason::Other, FINALIZED.into()));
        self.shared.bury_all();
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn card(&self) -> Card {
        Card { address: self.device.address() }
    }
    /// Nothing is kept of the numbers of packets from and to a peer.
    pub fn forget_stamps(&self, peer: u32) {
        self.stamps.get().inspect(|stamps| stamps.forget(peer));
    }
    fn version(&self) -> u32 {
        self.who.version
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        self.device.wake();
    }
    /// Is this process about to end its part?
    pub fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
    /// Is the caller the fabric's thread?
    pub fn is_its_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current())
    }

    /// The link with a peer, made if need be.
    pub fn link(&self, peer: u32) -> Arc<Link> {
        let mut links = self.lock();
        let Links { by_peer, packed, .. } = &mut *links;
        let life = || self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let named = |life| Link::new(self, &self.this, peer, (self.comes_before)(peer), life);
        let make = || Arc::new(packed.take(peer).map_or_else(|| named(life()), |record| self.unpacks(&record, named)));
        by_peer.entry(peer).or_insert_with(make).clone()
    }
    /// The link with a peer, if there is one.
    pub fn known(&self, peer: u32) -> Option<Arc<Link>> {
        self.lock().by_peer.get(&peer).cloned()
    }

    /// The thread sleeps until something arrives, or has to be done.
    pub fn rest(&self) {
        let patience = match self.due_ns.load(Ordering::Acquire) {
            SETTLED => None,
            due => Some(Duration::from_millis(due.saturating_sub(now_ns()).div_ceil(1_000_000).min(1000))),
        };
        if self.device.sleep(patience) {
            self.take_errors();
        }
        // Ask first, then look: what comes in between makes an event.
        if let Err(e) = self.device.arm() {
            let _ = self.arrivals.broken.set(e.detail().to_owned());
        }
    }

    /// What the device has told by itself.
    fn take_errors(&self) {
        while let Some(error) = self.device.next_error() {
            if let DeviceError::All(why) = &error {
                let _ = self.arrivals.broken.set(why.clone());
            }
            self.links().iter().for_each(|link| link.told(&error));
        }
    }

    /// Nothing comes here any more: all connections end, and whoever waits hears of it.
    fn is_broken(&self) -> bool {
        let broken = self.arrivals.broken.get().is_some();
        if broken {
            self.links().iter().for_each(|link| self.check_device(link));
        }
        broken
    }

    /// Ends the connection if the device of this node has failed.
    pub(super) fn check_device(&self, link: &Link) {
        if let Some(why) = self.arrivals.broken.get() {
            link.fail(Reason::Device, format!("is out of reach: the device of this node has failed ({why})"));
        }
    }

    fn is_flooded(&self, peer: u32) {
        if let Some(link) = self.known(peer) {
            let _ = link.damaged("the numbers of its calls, of which more come than there can be");
        }
    }

    /// The connections that there are.
    pub(super) fn links(&self) -> Vec<Arc<Link>> {
        self.lock().by_peer.values().cloned().collect()
    }

    fn run(&self) {
        let _ = self.thread.set(thread::current());
        while !self.stop.load(Ordering::Acquire) {
            self.rest();
            if !self.turn() {
                return;
            }
        }
    }

    /// Deals with what has come, and does what is due. `false`: nothing comes any more.
    fn turn(&self) -> bool {
        self.cache.end();
        loop {
            self.arrivals.collect();
            let Some(arrival) = self.arrivals.next() else { break };
            match arrival {
                Arrival::Packet(bytes) => self.packet(&bytes),
                // It may be packed meanwhile: packets overtake numbers where a thread waits.
                Arrival::Number(peer, number) => {
                    if let (Some(link), Some(hooks)) = (self.has(peer).then(|| self.link(peer)), self.hooks.get()) {
                        (hooks.on_number)(&link, number);
                    }
                }
                Arrival::Flood(peer) => self.is_flooded(peer),
            }
        }
        if self.is_broken() {
            return false;
        }
        if self.device.limits().is_driven
            && let Some(hooks) = self.hooks.get()
        {
            (hooks.moves_on)();
        }
        if self.due_ns.load(Ordering::Acquire) <= now_ns() {
            self.tick();
        }
        true
    }
}
