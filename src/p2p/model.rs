//! Two ranks in one process, for the model checker: real endpoints, lanes, spools and boards over real mapped memory, which both
//! ranks see at the same addresses. `tests/model` runs the protocol on them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::atomics::{AtomicU32, Ordering, spin_loop};
use crate::base::config::{Config, WaitMode};
use crate::base::error::Result;
use crate::base::ownership;
use crate::base::shadow::{self, Membarrier};
use crate::base::tuning::Given;
use crate::fabric::shm::cma;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{LANES_AT, LAYOUT_VERSION, Mapping, PLACES_AT, PeerRegion};
use crate::lane::map::{LANE_BYTES, LANE_STRIDE, SYSTEM_INDICES, UNIT_BYTES};
use crate::lane::{Lane, Place};
pub use crate::p2p::any_index::Bitmap;
use crate::p2p::endpoint::model::{ENDED, GREETED, OVER};
use crate::p2p::endpoint::{Endpoint, WORLD_EPOCH};
use crate::p2p::{COMM_WORLD, any_source};
use crate::rma::{self, record::Window};
use crate::wait::event::Event;

/// Indices that models use: 0 and up.
const INDICES: usize = 4;
/// A communicator of both.
pub const COMMUNICATOR: i32 = 1;
/// Bytes of memory for messages, for each rank.
const BUFFER: usize = 4096;

/// Memory begins at a line, as a block does.
#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u64; 8]);

thread_local! {
    /// Which rank a thread of the model belongs to.
    static RANKS: RefCell<HashMap<loom::thread::ThreadId, &'static Endpoint>> = RefCell::default();
}

/// The endpoint of the calling thread of a model.
pub fn current() -> Option<&'static Endpoint> {
    if !shadow::is_active() {
        return None;
    }
    let me = loom::thread::current().id();
    RANKS.with(|r| r.borrow().get(&me).copied())
}

/// What a model runs with.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The time-out of sends: 0 buffered, negative synchronous.
    pub timeout_ms: i32,
    /// Messages up to this long are sent without waiting for their receive.
    pub eager: usize,
    /// From this many bytes on a copy is shared.
    pub coop_min: usize,
    /// Up to this many bytes a waiting receiver gets a message through the ring.
    pub ring_max: usize,
    /// Up to this many bytes it gets one through memory used in turn.
    pub turn_max: usize,
    /// Bytes of a ring's chunk (a power of two, 256 or more), and chunks in use.
    pub ring: (usize, usize),
    /// Pages of 1 KiB in each spool.
    pub pages: usize,
    /// Bytes that each rank may spool.
    pub spool: usize,
    /// Waits sleep at once, and only a ring ends a sleep.
    pub sleeps: bool,
    /// The kernel refuses to copy between the ranks.
    pub refuses: bool,
    /// What the system lets each rank do.
    pub membarrier: [Membarrier; 2],
    /// Rank 1 has an event descriptor.
    pub event: bool,
    /// The ranks meet while the threads run, and hear of each other's death ([`World::dies`]).
    pub meet: bool,
    /// Most changes of thread that no wait calls for.
    pub preemptions: usize,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            timeout_ms: 0,
            eager: 1024,
            coop_min: usize::MAX,
            ring_max: 0,
            turn_max: 0,
            ring: (2048, 4),
            pages: 3,
            spool: 1 << 20,
            sleeps: false,
            refuses: false,
            membarrier: [Membarrier::Has; 2],
            event: false,
            meet: false,
            preemptions: 2,
        }
    }
}

/// Ranks 0 and 1.
#[derive(Clone, Copy)]
pub struct World {
    ranks: [&'static Endpoint; 2],
    lanes: [&'static Lane; 2],
    buffers: [*mut u8; 2],
    rings: [&'static Mapping; 2],
    windows: [&'static Window; 2],
    membarrier: [Membarrier; 2],
    /// Each rank as the other knows it.
    peers: [&'static Arc<Peer>; 2],
    kernel: &'static Kernel,
}

/// What the system knows of the ranks.
#[derive(Default)]
struct Kernel {
    /// 1: the rank has ended.
    ended: [AtomicU32; 2],
    /// 1: rank 0 knows rank 1, which has greeted it.
    greeted: AtomicU32,
}

// SAFETY: a world is leaked; what its threads may touch is the subject of the models.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    fn new(terms: Terms) -> World {
        let config = Config {
            wait: if terms.sleeps { WaitMode::Block } else { WaitMode::Spin },
            stall_s: 0.0,
            timeout_ms: terms.timeout_ms,
            spool_bytes: terms.spool,
            numbers: Given {
                eager: Some(terms.eager),
                coop_min: Some(terms.coop_min),
                ring_max: Some(terms.ring_max),
                turn_max: Some(terms.turn_max),
                ring_chunk: Some(terms.ring.0),
                ring_chunks: Some(terms.ring.1),
                take_over: Some(1),
                ..Given::default()
            },
            any_slots: any_source::model::SLOTS,
            loans: (1, 1 << 20),
            ..Config::default()
        };
        shadow::forget();
        crate::wait::configure(&config, 2, 2);
        ownership::configure(config.numbers.take_over == Some(1));
        let must = "the memory of a model";
        let rank =
            |r| -> &'static Endpoint { Box::leak(Box::new(Endpoint::in_model(r, 2, config.clone()).expect(must))) };
        let ranks = [rank(0), rank(1)];
        let reached = terms.membarrier.map(|m| m != Membarrier::Refused);
        for (ep, _) in ranks.iter().zip(reached).filter(|(_, reached)| *reached) {
            ep.region.header().say_reached();
        }
        if terms.event {
            assert!(ranks[1].event.set(Event::in_model(ranks[1].board()).expect(must)).is_ok());
        }
        ranks.iter().for_each(|ep| ep.loans.in_model(&ep.heap));
        let window = ranks[0].region.map(LANES_AT + LANE_STRIDE, LANE_BYTES).expect(must);
        let rings =
            [0, 1].map(|me: usize| -> &'static Mapping { Box::leak(Box::new(any_source::model::window(ranks[me]))) });
        let peers = [0usize, 1].map(|rank| -> &'static Arc<Peer> {
            let fd = ranks[rank].region.fd().try_clone_to_owned().expect(must);
            let region = PeerRegion::adopt(fd, rank as u32, 2, LAYOUT_VERSION).expect(must);
            region.heap_in_model(&ranks[rank].heap);
            Box::leak(Box::new(Arc::new(Peer::in_model(region, reached[1 - rank]))))
        });
        let lanes = [0usize, 1].map(|me| {
            let (other, peer) = (ranks[1 - me], peers[1 - me].clone());
            let lane = ranks[me].lanes.find_or_make(Lane::key_of(COMM_WORLD, other.rank), || {
                let board = other.region.board().cast_const().cast();
                Lane::new(
                    COMM_WORLD,
                    WORLD_EPOCH,
                    me as u32,
                    other.rank,
                    Some(peer.clone()),
                    board,
                    window.view(),
                    INDICES,
                )
            });
            let lane = lane.expect(must);
            ranks[me].apply_mode(lane);
            assert!(lane.spool.set(other.spool.view()).is_ok());
            lane.in_model();
            ranks[me].any_source.in_model(ranks[me], other, peer, rings);
            ranks[me].any_source.spool_in_model(other.rank, other.spool.view());
            ranks[me].spool.in_model(terms.pages);
            shadow::share(ranks[me].region.board(), 8);
            lane
        });
        shadow::share(window.leak(), LANE_BYTES);
        let buffer = || vec![Line([0; 8]); BUFFER / size_of::<Line>()].into_boxed_slice();
        let buffers = [0, 1].map(|_| Box::leak(buffer()).as_mut_ptr().cast::<u8>());
        for b in buffers {
            shadow::share(b, BUFFER);
        }
        let windows = ranks.map(|ep| rma::model::window(ep));
        let kernel = Box::leak(Box::default());
        let world = World { ranks, lanes, buffers, rings, windows, membarrier: terms.membarrier, peers, kernel };
        if terms.meet {
            world.meet().expect(must);
        }
        world
    }

    /// The ranks have not met when the threads begin.
    fn meet(self) -> Result<()> {
        shadow::may_die();
        shadow::share((&raw const *self.kernel).cast(), size_of::<Kernel>());
        self.uses_communicator();
        for (me, ep) in self.ranks.into_iter().enumerate() {
            self.lanes[me].dies_in_model();
            self.lanes[me].pair.lives_in_model(self.ranks[1 - me].lives_in_model());
            self.peers[me].may_die_in_model();
            ep.meets_in_model(move |peer| self.answer(peer as usize))?;
        }
        (0..2).try_for_each(|me| self.ranks[me].is_told_of(self.ranks[1 - me]))
    }

    /// Makes rank 0's lane of [`COMMUNICATOR`] beside the world's.
    fn of_communicator(&self, lane: &Lane) -> Result<Lane> {
        let window = self.ranks[0].region.map(PLACES_AT + UNIT_BYTES, UNIT_BYTES as usize)?;
        Lane::of_communicator(COMMUNICATOR, 1, lane, Place { epoch: 2, unit: 1, units: 1 }, window)
    }

    /// Rank 0 uses a communicator with rank 1 for the first time.
    pub fn uses_communicator(&self) -> &'static Lane {
        let key = Lane::key_of(COMMUNICATOR, 1);
        self.ranks[0].lanes.find_or_make(key, || self.of_communicator(self.lanes[0])).expect("made before")
    }

    /// A rank greets another: who that is when its service thread has answered; nobody, if it has ended.
    fn answer(&self, peer: usize) -> Option<Arc<Peer>> {
        if self.kernel.ended[peer].load(Ordering::Acquire) != 0 {
            return None;
        }
        // Rank 1 has no such thread here: what it knows of rank 0 is not looked at.
        if peer == 0 {
            self.ranks[0].tell(GREETED);
            while self.kernel.greeted.load(Ordering::Acquire) == 0 {
                spin_loop();
            }
        }
        Some(self.peers[peer].clone())
    }

    /// The service thread of rank 0, until that is over: it answers greetings, and hears of the end of rank 1.
    pub fn serves(self) {
        self.ranks[0].serve_in_model(self.peers[1], || self.kernel.greeted.store(1, Ordering::Release));
    }

    /// Both ranks, as others know them.
    pub fn peers(&self) -> [Arc<Peer>; 2] {
        self.peers.map(Arc::clone)
    }

    /// The ranks know each other, and have made their lanes, before the threads begin.
    pub fn know_each_other(&self) {
        for me in 0..2 {
            self.ranks[me].knows_in_model(self.peers[1 - me]);
            assert!(self.ranks[me].lane(1 - me as u32).is_ok());
        }
    }

    /// Rank 1 has greeted rank 0.
    pub fn is_greeted(&self) {
        self.ranks[0].knows_in_model(self.peers[1]);
    }

    /// A death of rank 1 is told to rank 0, which knows it.
    pub fn is_told_of_a_death(&self) {
        self.ranks[0].hears_in_model(self.peers[1]);
    }

    /// Rank 0's program is over, and nothing more is served.
    pub fn is_over(&self) {
        self.ranks[0].tell(OVER);
    }

    /// Starts the only thread of rank 1, which may end at any access to shared memory; when it has ended, as it must or by itself, the system
    /// tells rank 0. The second thread is the one that kills it.
    pub fn dies(self, body: impl FnOnce() + 'static) -> [loom::thread::JoinHandle<()>; 2] {
        let ep = self.ranks[1];
        let rank = loom::thread::spawn(move || {
            RANKS.with(|r| r.borrow_mut().insert(loom::thread::current().id(), ep));
            shadow::enter_mortal(self.membarrier[1]);
            if let Err(what) = catch_unwind(AssertUnwindSafe(body))
                && !what.is::<shadow::Died>()
            {
                resume_unwind(what);
            }
            shadow::leave();
            self.kernel.ended[1].store(1, Ordering::Release);
            self.ranks[0].tell(ENDED);
        });
        let death = loom::thread::spawn(shadow::kill);
        [rank, death]
    }

    fn renew(&self) {
        RANKS.with(|r| r.borrow_mut().clear());
        any_source::model::renew();
        for k in 0..2 {
            self.ranks[k].renew();
            self.lanes[k].renew(SYSTEM_INDICES..SYSTEM_INDICES + INDICES);
            self.ranks[k].spool.renew();
            self.ranks[k].loans.renew();
            if let Some(event) = self.ranks[k].event.get() {
                event.renew();
            }
        }
    }

    /// Starts a thread of a rank.
    pub fn spawn<R: 'static>(&self, rank: usize, body: impl FnOnce() -> R + 'static) -> loom::thread::JoinHandle<R> {
        let (ep, membarrier) = (self.ranks[rank], self.membarrier[rank]);
        loom::thread::spawn(move || {
            let me = loom::thread::current().id();
            RANKS.with(|r| r.borrow_mut().insert(me, ep));
            shadow::enter(membarrier);
            let result = body();
            shadow::leave();
            result
        })
    }

    /// The memory of the ring of index 0 at a rank, where messages of any source arrive.
    pub fn ring(&self, rank: usize) -> Mapping {
        self.rings[rank].view()
    }

    /// The records of global memory that a rank shows.
    pub fn window(&self, rank: usize) -> &'static Window {
        self.windows[rank]
    }

    /// A rank's endpoint.
    pub fn endpoint(&self, rank: usize) -> &'static Endpoint {
        self.ranks[rank]
    }

    /// A rank's lane to the other.
    pub fn lane(&self, rank: usize) -> &'static Lane {
        self.lanes[rank]
    }

    /// The slot of an index.
    pub fn slot(&self, index: i32) -> usize {
        index as usize + SYSTEM_INDICES
    }

    /// Memory of a rank for messages, `at` bytes from its beginning, which the checker watches.
    pub fn memory(&self, rank: usize, at: usize) -> *mut u8 {
        assert!(at < BUFFER);
        self.buffers[rank].wrapping_add(at)
    }
}

/// How much a model has looked at.
#[derive(Clone, Copy, Debug)]
pub struct Explored {
    /// Executions.
    pub executions: usize,
    /// Were these all there are within the bound of preemptions?
    pub complete: bool,
    /// How long it took.
    pub took: Duration,
}

/// Runs `body`, which starts the threads of a model and waits for them, in every order that the bounds allow. It panics when one of
/// them fails, or cannot end.
pub fn check(terms: Terms, at_most: Duration, body: impl Fn(World) + Send + Sync + 'static) -> Explored {
    cma::REFUSES.with(|r| r.set(terms.refuses));
    let world = World::new(terms);
    explore(terms.preemptions, at_most, move || {
        world.renew();
        body(world);
    })
}

/// Runs an execution again and again, in every order that the bounds allow.
pub fn explore(preemptions: usize, at_most: Duration, execution: impl Fn() + Send + Sync + 'static) -> Explored {
    use std::sync::atomic::AtomicUsize;
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        if !shadow::is_provisional() {
            hook(what);
        }
    }));
    let execution = Arc::new(execution);
    let began = Instant::now();
    loop {
        let executions = Arc::new(AtomicUsize::new(0));
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.max_threads = 5;
        builder.checkpoint_interval = 100;
        builder.max_duration = Some(at_most);
        let (count, execution) = (executions.clone(), execution.clone());
        let this = Instant::now();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                shadow::begin();
                count.fetch_add(1, Ordering::Relaxed);
                execution();
                shadow::end();
            });
        }));
        match ran {
            Ok(()) if !shadow::is_provisional() => {
                let complete = this.elapsed() < at_most;
                return Explored { executions: executions.load(Ordering::Relaxed), complete, took: began.elapsed() };
            }
            Ok(()) => {}
            Err(_) if shadow::is_provisional() => {}
            Err(what) if what.is::<shadow::Again>() => {}
            Err(what) => resume_unwind(what),
        }
        shadow::end();
        shadow::again();
    }
}
