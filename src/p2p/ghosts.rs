//! Ghosts: ranks of a job that are no processes, but that one process answers for, so that a real rank can be seen among millions.
//!
//! To the real ranks a ghost is a rank like any other: it has all that a process has on the network (`Fabric`, links, fronts of a lane, the
//! handshake, the turn by which peers are forgotten), by the same code, and its own name in each packet. It has no region, no endpoint and no
//! thread: one thread takes all that comes to the one port, and gives every ghost its turn ([`ghost`]).
//!
//! ```text
//!   real ranks ◀──── network ────▶ port ── thread ──┬── ghost: Port (device) ── Fabric ── Link ── Remote
//!   launcher: what has rank r published? ◀── Crowd ─┴── ghost …
//! ```
//! On an errand a ghost greets a real rank, sends it messages, one when the last is acknowledged, waits for the answer to all of them and acknowledges
//! that; then it is quiet, and goes when it is told to, or when the real rank asks to be forgotten. Ghosts that nobody has to do with take no memory here either.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::base::clock::now_ns;
use crate::base::config::Config;
use crate::base::error::{Code, Result, error};
use crate::base::key::Key;
use crate::base::lock::lock;
use crate::fabric::network::Card;
use crate::fabric::network::control::{CHUNK_BYTES, PAGE_BYTES};
use crate::fabric::network::device::{Arrived, Device};
use crate::fabric::network::room::TABLES_BYTES;
use crate::fabric::shm::region::{Mapping, NODE_AT, Region};
use crate::fabric::{areas, networks};
use crate::launch::embedded::Side;
use ghost::{Errand, Ghost, Stage};
use port::rank_of;

mod ghost;
mod port;

/// What the ghosts are to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Ranks of the job, of which the first so many are processes.
    pub world: u32,
    /// See above.
    pub real: u32,
    /// Ghosts that have an errand.
    pub errands: u32,
    /// Each sends its messages on this index, and is answered there.
    pub index: usize,
    /// How many it sends, numbered.
    pub messages: u32,
    /// So many are on their way at most that are not answered yet.
    pub at_once: usize,
    /// The other way round: the real ranks speak first, and the ghosts answer.
    pub answers: bool,
    /// All go to rank 0.
    pub incast: bool,
}

impl Plan {
    /// The rank of the ghost that has this errand; they are spread over the world, up to its last rank.
    pub fn ghost(&self, errand: u32) -> u32 {
        let last = u64::from(self.world - self.real).saturating_sub(1);
        let place = last * u64::from(errand) / u64::from(self.errands.saturating_sub(1).max(1));
        self.real + place as u32
    }
    /// What message number `n` of a ghost says, from 0 on; and, turned round, the answer to the last.
    pub fn says(&self, ghost: u32, n: u32) -> [u64; 2] {
        let said = u64::from(n) << 32 | u64::from(ghost);
        [said, !said]
    }
    /// The real rank that it goes to.
    pub fn to(&self, errand: u32) -> u32 {
        if self.incast { 0 } else { errand % self.real }
    }
}

/// What a real rank publishes when it may be come to, and when those who have come may go.
pub const COME: &str = "fmpl-ghosts-come";
/// See [`COME`].
pub const GO: &str = "fmpl-ghosts-go";

/// More ghosts than this at a time have their memory in one piece.
const LENT_FROM: usize = 4096;
/// The thread sleeps so long at most.
const SLEEP: Duration = Duration::from_millis(20);
/// What has come is taken after so many turns at least: the network keeps little of it, and more is lost.
const TURNS: usize = 32;
/// Those that wait for messages are looked at so often at most, since they may be many: so many nanoseconds for each of them, and at most.
const LISTENS_NS: [u64; 2] = [200, 500_000];

/// What the thread, the launcher and the ghosts themselves share.
struct Common {
    plan: Plan,
    device: Arc<dyn Device>,
    tables: Arc<Mapping>,
    indices: u32,
    version: u32,
    drawn: OnceLock<Vec<u8>>,
    key: OnceLock<Key>,
    cards: Mutex<HashMap<u32, Card>>,
    come: AtomicBool,
    go: AtomicBool,
    stop: AtomicBool,
    answered: AtomicU32,
    over: AtomicU32,
    /// Highest number that any ghost has begun from.
    numbers: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// How far the errands are.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Ghosts that have been answered; and those that the real ranks have forgotten, or the other way round.
    pub answered: u32,
    /// See above.
    pub over: u32,
    /// The first thing that went wrong.
    pub trouble: Option<String>,
}

/// The ghosts of a job.
pub struct Crowd {
    common: Arc<Common>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Crowd {
    /// Answers for all ghosts from now on, over the network that the settings name.
    pub fn start(plan: Plan) -> Result<Crowd> {
        if plan.errands > plan.world.saturating_sub(plan.real) {
            return Err(error!(
                Code::Argument,
                "{} ghosts in a world of {} ranks, of which {} are processes", plan.errands, plan.world, plan.real
            ));
        }
        // Of very many at a time each piece of memory by itself would be more mappings than a process may have.
        if plan.at_once > LENT_FROM {
            areas::lend_own(plan.at_once.min(plan.errands as usize) * (PAGE_BYTES + CHUNK_BYTES))?;
        }
        let config = Config::from_environment()?;
        let device = networks::choose(&config, 0)?;
        let region = Region::create(plan.real, plan.world)?;
        region.have_indices(plan.index as u32 + 1);
        let common = Arc::new(Common {
            plan,
            device,
            tables: Arc::new(region.map(NODE_AT, TABLES_BYTES)?),
            indices: region.indices(),
            version: region.version(),
            drawn: OnceLock::new(),
            key: OnceLock::new(),
            cards: Mutex::default(),
            come: AtomicBool::new(false),
            go: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            answered: AtomicU32::new(0),
            over: AtomicU32::new(0),
            numbers: AtomicU64::new(0),
            trouble: Mutex::default(),
        });
        let own = common.clone();
        let thread = crate::base::thread::spawn("fmpl-ghosts", 1 << 20, move || Host::new(own).run())
            .map_err(|e| error!(Code::System, "starting the thread of the ghosts: {e}"))?;
        Ok(Crowd { common, thread: Some(thread) })
    }

    /// What the launcher asks, and tells.
    pub fn side(&self) -> Arc<dyn Side> {
        self.common.clone()
    }

    /// How far they are.
    pub fn progress(&self) -> Progress {
        let c = &self.common;
        Progress {
            answered: c.answered.load(Ordering::Acquire),
            over: c.over.load(Ordering::Acquire),
            trouble: lock(&c.trouble).clone(),
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::Release);
        self.common.device.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Common {
    /// The key of the job, once rank 0 has drawn it.
    fn key(&self) -> Option<&Key> {
        if self.key.get().is_none() {
            let key = crate::launch::drawn_key(self.drawn.get()?, self.plan.world);
            self.device.know(&key);
            let _ = self.key.set(key);
        }
        self.key.get()
    }
    fn is_ghost(&self, rank: u32) -> bool {
        (self.plan.real..self.plan.world).contains(&rank)
    }
    /// A number above all that any ghost has said so far: the same rank may have been here before.
    fn fresh(&self) -> u64 {
        let now = now_ns();
        self.numbers.fetch_max(now, Ordering::Relaxed).max(now) + 1
    }
    fn is_in_trouble(&self, rank: u32, why: &str) {
        lock(&self.trouble).get_or_insert_with(|| format!("the ghost of rank {rank}: its peer {why}"));
    }
}

impl Side for Common {
    fn value(&self, key: &str) -> Option<Vec<u8>> {
        let rank: u32 = key.strip_prefix(crate::p2p::endpoint::FABRIC_KEY)?.parse().ok()?;
        let card = Card { address: self.device.address() };
        self.is_ghost(rank).then(|| card.encode(&self.device.network()))
    }
    fn is_told(&self, key: &str, value: &[u8]) {
        if key == crate::launch::KEY {
            let _ = self.drawn.set(value.to_vec());
        } else if let Some(rank) = key.strip_prefix(crate::p2p::endpoint::FABRIC_KEY).and_then(|r| r.parse().ok()) {
            lock(&self.cards).extend(Card::decode(value).map(|(card, _)| (rank, card)));
        } else if key == COME {
            self.come.store(true, Ordering::Release);
        } else if key == GO {
            self.go.store(true, Ordering::Release);
        }
        self.device.wake();
    }
}

/// What the thread of the ghosts has.
struct Host {
    common: Arc<Common>,
    ghosts: HashMap<u32, Ghost>,
    /// Whose each pair of the device is.
    pairs: HashMap<u32, u32>,
    /// Ghosts that wait for a message, and when they were looked at last.
    listening: Vec<u32>,
    listened_ns: u64,
    /// When ghosts have something to do.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The next errand, and how many are not answered yet.
    next: u32,
    waiting: usize,
    leaving: bool,
}

impl Host {
    fn new(common: Arc<Common>) -> Host {
        let (ghosts, pairs, listening, due) = Default::default();
        Host { common, ghosts, pairs, listening, due, listened_ns: 0, next: 0, waiting: 0, leaving: false }
    }

    fn run(mut self) {
        let common = self.common.clone();
        let mut touched = Vec::new();
        while !common.stop.load(Ordering::Acquire) {
            let _ = common.device.arm();
            self.collect(&mut touched);
            self.listen(&mut touched);
            self.begin(&mut touched);
            let now = now_ns();
            while let Some(Reverse((at, rank))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                self.due.pop();
                if self.ghosts.get(&rank).is_some_and(|ghost| ghost.due == at) {
                    touched.push(rank);
                }
            }
            if touched.is_empty() {
                let next =
                    self.due.peek().map_or(SLEEP, |Reverse((at, _))| Duration::from_nanos(at.saturating_sub(now)));
                let most = if self.listening.is_empty() { SLEEP } else { Duration::from_nanos(self.listens_ns()) };
                common.device.sleep(Some(next.min(most)));
                continue;
            }
            touched.sort_unstable();
            touched.dedup();
            for some in std::mem::take(&mut touched).chunks(TURNS) {
                some.iter().for_each(|rank| self.give_turn(*rank));
                self.collect(&mut touched);
            }
        }
    }

    fn listens_ns(&self) -> u64 {
        (LISTENS_NS[0] * self.listening.len() as u64).min(LISTENS_NS[1])
    }

    /// Gives what has come to whose it is.
    fn collect(&mut self, touched: &mut Vec<u32>) {
        if self.common.key().is_none() {
            return;
        }
        let mut came = Vec::new();
        let device = self.common.device.clone();
        let _ = device.collect(&mut |arrived| match arrived {
            Arrived::Datagram(packet) => came.push((rank_of(packet), port::Came::Packet(*packet))),
            Arrived::Number(pair, number) => {
                came.push((self.pairs.get(&pair).copied(), port::Came::Number(pair, number)));
            }
            Arrived::Damaged => {}
        });
        for (rank, what) in came {
            let Some(rank) = rank.filter(|rank| self.common.is_ghost(*rank)) else { continue };
            self.ghost(rank).port.put(what);
            touched.push(rank);
        }
    }

    /// Nobody tells of what is written without a number.
    fn listen(&mut self, touched: &mut Vec<u32>) {
        let now = now_ns();
        if now - self.listened_ns < self.listens_ns() {
            return;
        }
        self.listened_ns = now;
        self.listening.retain(|rank| self.ghosts.get(rank).is_some_and(Ghost::listens));
        touched.extend(self.listening.iter().filter(|rank| self.ghosts[rank].has_come(&self.common.plan)));
    }

    fn ghost(&mut self, rank: u32) -> &mut Ghost {
        let common = &self.common;
        self.ghosts.entry(rank).or_insert_with(|| Ghost::new(common, rank))
    }

    /// Sends more of them on their way, and tells them to go.
    fn begin(&mut self, touched: &mut Vec<u32>) {
        let plan = self.common.plan;
        if !self.common.come.load(Ordering::Acquire) || self.common.key().is_none() {
            return;
        }
        while !plan.answers && self.next < plan.errands && self.waiting < plan.at_once {
            let (rank, to) = (plan.ghost(self.next), plan.to(self.next));
            let Some(card) = lock(&self.common.cards).get(&to).copied() else { return };
            self.ghost(rank).errand = Some(Errand::new(to, card));
            (self.next, self.waiting) = (self.next + 1, self.waiting + 1);
            touched.push(rank);
        }
        if !self.leaving && self.common.go.load(Ordering::Acquire) {
            self.leaving = true;
            touched.extend(self.ghosts.keys());
        }
    }

    fn give_turn(&mut self, rank: u32) {
        let Some(ghost) = self.ghosts.get_mut(&rank) else { return };
        let (before, listened) = (ghost.stage(), ghost.listens());
        let due = ghost.turn(&self.common, self.leaving);
        self.pairs.extend(ghost.port.new_pairs().into_iter().map(|pair| (pair, rank)));
        let after = ghost.stage();
        if ghost.listens() && !listened {
            self.listening.push(rank);
        }
        if before.is_some_and(|s| s < Stage::Answered) && after.is_some_and(|s| s >= Stage::Answered) {
            self.waiting -= 1;
            self.common.answered.fetch_add(1, Ordering::AcqRel);
        }
        if ghost.is_gone() {
            if ghost.errand.is_some() {
                self.common.over.fetch_add(1, Ordering::AcqRel);
            }
            if let Some(ghost) = self.ghosts.remove(&rank) {
                for pair in ghost.port.all_pairs() {
                    self.pairs.remove(&pair);
                }
            }
            return;
        }
        ghost.due = due;
        self.due.push(Reverse((due, rank)));
    }
}
