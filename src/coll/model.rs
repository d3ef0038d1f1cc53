//! A team for the model checker: two or three members in one process, with an arena of few and small cells, and the calls of a
//! node as they stand. `tests/model/arena.rs` runs them.

use core::future::Future;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::arena::{Arena, arena_at};
use super::exchange::{Blocks, Pattern, exchange};
use super::function::{Function, Vector};
use super::reduce::{To, reduce};
use super::team::Team;
use super::{barrier, bcast, partial};
use crate::base::atomics::spin_loop;
use crate::base::bytes::{Bytes, Room};
use crate::base::config::{Config, WaitMode};
use crate::base::error::Result;
use crate::base::kernel::{Kind, Operation};
use crate::base::shadow::{self, Membarrier};
use crate::base::tuning::Given;
use crate::fabric::shm::cma;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{LAYOUT_VERSION, Mapping, PeerRegion};
use crate::lane::Place;
use crate::lane::map::Life;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::model::{Explored, World, explore};
use crate::wait::Board;

thread_local! {
    /// The boards of the members: each has one address, whoever looks.
    static BOARDS: RefCell<Vec<&'static Board>> = const { RefCell::new(Vec::new()) };
}

/// A member's board in a model, if this is one.
pub(super) fn board_of(member: usize) -> Option<&'static Board> {
    BOARDS.with(|b| b.borrow().get(member).copied())
}

/// Bytes of memory for the calls of a program, for each member.
const MEMORY: usize = 2048;

/// What a model of a team runs with.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How many members there are.
    pub members: usize,
    /// Ways, and whether lines are taken over.
    pub config: Config,
    /// Waits sleep at once, and only a ring ends a sleep.
    pub sleeps: bool,
    /// The kernel refuses to read another member's memory.
    pub refuses_reads: bool,
    /// A call may fail: the checker watches what tells the others.
    pub fails: bool,
}

impl Terms {
    /// Two members that take lines over.
    pub fn new() -> Terms {
        let config = Config {
            stall_s: 0.0,
            numbers: Given { coll_chunk: Some(64), take_over: Some(1), ..Given::default() },
            ..Config::default()
        };
        Terms { members: 2, config, sleeps: false, refuses_reads: false, fails: false }
    }
}

impl Default for Terms {
    fn default() -> Terms {
        Terms::new()
    }
}

/// The members.
#[derive(Clone, Copy)]
pub struct Group(&'static Members);

struct Members {
    ranks: Vec<&'static Endpoint>,
    peers: Vec<Arc<Peer>>,
    window: Mapping,
    memory: Vec<*mut u8>,
}

// SAFETY: leaked; what its threads may touch is the subject of the models.
unsafe impl Send for Group {}
// SAFETY: as above.
unsafe impl Sync for Group {}

impl Group {
    fn new(terms: &Terms) -> Group {
        let must = "the memory of a model";
        let n = terms.members;
        let wait = if terms.sleeps { WaitMode::Block } else { WaitMode::Spin };
        let config = Config { wait, ..terms.config.clone() };
        shadow::forget();
        crate::wait::configure(&config, n, n);
        crate::base::ownership::configure(config.numbers.take_over == Some(1));
        let ranks: Vec<&'static Endpoint> = (0..n as u32)
            .map(|r| -> &'static Endpoint {
                Box::leak(Box::new(Endpoint::in_model(r, n as u32, config.clone()).expect(must)))
            })
            .collect();
        let peers = ranks
            .iter()
            .map(|ep| {
                let fd = ep.region.fd().try_clone_to_owned().expect(must);
                let region = PeerRegion::adopt(fd, ep.rank, n as u32, LAYOUT_VERSION).expect(must);
                Arc::new(Peer::in_model(region, true))
            })
            .collect();
        let mut window = None;
        let arena = Arena::new(n, |bytes| {
            let mapping = ranks[0].region.map(arena_at(0), bytes)?;
            let view = mapping.view();
            window = Some(mapping);
            Ok(view)
        });
        let (arena, window) = (arena.expect(must), window.expect(must));
        // What no model of these terms looks at is the machine's: each look more at a word makes many executions more.
        let from = if terms.fails {
            0
        } else if terms.sleeps {
            size_of_val(arena.header())
        } else {
            (&raw const *arena.arrive(0)) as usize - window.as_ptr() as usize
        };
        shadow::share(window.as_ptr().wrapping_add(from), window.len() - from);
        let boards = ranks.iter().map(|ep| {
            shadow::share(ep.region.board(), 8);
            // SAFETY: the board of a region that is never unmapped.
            unsafe { &*ep.region.board().cast_const().cast::<Board>() }
        });
        BOARDS.with(|b| *b.borrow_mut() = boards.collect());
        let memory = (0..n)
            .map(|_| {
                let memory = Box::leak(vec![0u64; MEMORY / 8].into_boxed_slice()).as_mut_ptr().cast::<u8>();
                shadow::share(memory, MEMORY);
                memory
            })
            .collect();
        Group(Box::leak(Box::new(Members { ranks, peers, window, memory })))
    }

    /// Starts a member, whose only thread this is.
    pub fn spawn(self, me: usize, body: impl FnOnce(&Member) + 'static) -> loom::thread::JoinHandle<()> {
        let all = self.0;
        loom::thread::spawn(move || {
            shadow::enter(Membarrier::Has);
            let team = Team::in_model(all.ranks[me], all.ranks.len(), Place::default(), all.window.view(), &all.peers);
            let member = Member { team: team.expect("a team"), memory: all.memory.clone(), place: Place::default() };
            body(&member);
            shadow::leave();
        })
    }
}

/// Runs `body`, which starts the members and waits for them, in every order that the bounds allow.
pub fn check(
    terms: &Terms,
    preemptions: usize,
    at_most: Duration,
    body: impl Fn(Group) + Send + Sync + 'static,
) -> Explored {
    cma::REFUSES_READS.with(|r| r.set(terms.refuses_reads));
    let group = Group::new(terms);
    explore(preemptions, at_most, move || body(group))
}

/// A member, as the program that makes the calls.
pub struct Member {
    team: Team,
    memory: Vec<*mut u8>,
    place: Place,
}

/// Where two communicators of a world lie that follow each other in one unit.
const PLACES: [Place; 2] = [Place { epoch: 2, unit: 1, units: 1 }, Place { epoch: 3, unit: 1, units: 1 }];

thread_local! {
    /// The arenas of the communicators of a world, which is known by its first rank.
    static ARENAS: RefCell<(Option<&'static Endpoint>, Vec<&'static Mapping>)> = const { RefCell::new((None, Vec::new())) };
}

/// A communicator of the two ranks of a world, from being made to being freed.
impl Member {
    /// A rank of a world, which knows the other, in the first or the second communicator.
    pub fn joins(w: World, me: usize, which: usize) -> Member {
        let (place, must) = (PLACES[which], "the memory of a model");
        let window = ARENAS.with(|arenas| {
            let (of, arenas) = &mut *arenas.borrow_mut();
            // Another world's memory would not be watched any more.
            let first = w.endpoint(0);
            if !of.replace(first).is_some_and(|of| std::ptr::eq(of, first)) {
                arenas.clear();
            }
            while arenas.len() <= which {
                let at = arena_at(PLACES[arenas.len()].epoch);
                let mut made = None;
                let arena = Arena::new(2, |bytes| {
                    let mapping = first.region.map(at, bytes)?;
                    let view = mapping.view();
                    shadow::share(mapping.as_ptr(), bytes);
                    made = Some(mapping);
                    Ok(view)
                });
                arena.expect(must);
                arenas.push(Box::leak(Box::new(made.expect(must))));
            }
            arenas[which].view()
        });
        let team = Team::in_model(w.endpoint(me), 2, place, window, &w.peers());
        w.endpoint(me).say_life(place, Life::Member);
        Member { team: team.expect("a team"), memory: Vec::new(), place }
    }

    /// It tells the others that it has freed the communicator.
    pub fn leaves(&self) {
        self.team.ep.say_life(self.place, Life::Freed);
    }

    /// Its part in the team ends, when it may: what `sweep` does, which is called again and again.
    pub fn ends(self) {
        while !self.team.is_over() {
            spin_loop();
        }
        self.team.free().expect("the memory of a model");
    }
}

impl Member {
    /// Its number.
    pub fn me(&self) -> usize {
        self.team.me
    }

    /// Memory of a member, from `at` on, which the checker watches.
    pub fn memory(&self, member: usize, at: usize) -> *mut u8 {
        assert!(at < MEMORY);
        self.memory[member].wrapping_add(at)
    }

    fn run(&self, call: impl Future<Output = Result<()>>) -> Result<()> {
        self.team.run(call)
    }

    /// `fmpl_barrier`
    pub fn barrier(&self) -> Result<()> {
        self.run(barrier::barrier(&self.team))
    }

    /// `fmpl_bcast`
    pub fn bcast(&self, data: Room<'_>, root: usize) -> Result<()> {
        self.run(bcast::bcast(&self.team, data, root))
    }

    /// `fmpl_reduce`: sums of `i32`.
    pub fn reduce(&self, data: Room<'_>, root: usize) -> Result<()> {
        self.run(reduce(&self.team, sums(data, &Function::predefined(Kind::i, Operation::sum)), To::Root(root)))
    }

    /// `fmpl_allreduce`: sums of `i32`.
    pub fn allreduce(&self, data: Room<'_>) -> Result<()> {
        self.run(reduce(&self.team, sums(data, &Function::predefined(Kind::i, Operation::sum)), To::All))
    }

    /// `fmpl_reduce_scatter`: sums of `i32`.
    pub fn reduce_scatter(&self, give: Bytes<'_>, take: Room<'_>) -> Result<()> {
        self.run(partial::reduce_scatter(&self.team, give, sums(take, &Function::predefined(Kind::i, Operation::sum))))
    }

    /// `fmpl_scan`: sums of `i32`.
    pub fn scan(&self, data: Room<'_>) -> Result<()> {
        self.run(partial::scan(&self.team, sums(data, &Function::predefined(Kind::i, Operation::sum))))
    }

    /// `fmpl_gather`
    pub fn gather(&self, give: Bytes<'_>, take: Room<'_>, root: usize) -> Result<()> {
        self.run(exchange(&self.team, Pattern::Gather(root), Blocks { give, take, size: give.len() }))
    }

    /// `fmpl_scatter`
    pub fn scatter(&self, give: Bytes<'_>, take: Room<'_>, root: usize) -> Result<()> {
        self.run(exchange(&self.team, Pattern::Scatter(root), Blocks { give, take, size: take.len() }))
    }

    /// `fmpl_allgather`
    pub fn allgather(&self, give: Bytes<'_>, take: Room<'_>) -> Result<()> {
        self.run(exchange(&self.team, Pattern::Allgather, Blocks { give, take, size: give.len() }))
    }

    /// `fmpl_alltoall`
    pub fn alltoall(&self, give: Bytes<'_>, take: Room<'_>) -> Result<()> {
        let size = give.len() / self.team.n;
        self.run(exchange(&self.team, Pattern::Alltoall, Blocks { give, take, size }))
    }
}

/// A vector of `i32`.
fn sums<'a>(data: Room<'a>, f: &'a Function<'a>) -> Vector<'a> {
    Vector::new(data, data.len() / f.size, f)
}
