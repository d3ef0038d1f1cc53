//! Worlds of whole ranks on the [simulated network](crate::fabric::network::simulated), for tests: each rank an endpoint that sends, receives
//! and finalizes as a program's does.
//!
//! `cargo test --lib comm::simulated` plays some of each scene; `FMPL_SCHEDULES=10000` so many, `FMPL_SEEDS=17` that one of the test named.

mod messages;
mod together;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use super::job;
use crate::base::config::{Config, WaitMode};
use crate::base::log::{self, Level};
use crate::base::simulation::{self, Lot, Run};
use crate::base::unused::Unused;
use crate::fabric::network::Card;
use crate::fabric::network::simulated::fate::{Fate, Faults};
use crate::fabric::network::simulated::{Ether, Weather};
use crate::p2p::endpoint::Endpoint;
use crate::{Error, wait};

/// Turns of all threads together until a run counts as one that does not end.
const TURNS: u64 = 4_000_000;

/// How a world is.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    ranks: u32,
    /// Connections and contexts that a node may have.
    places: [usize; 2],
    weather: Weather,
    /// A message that is put into a buffer comes with a completion at its receiver.
    strict: bool,
    /// For how many milliseconds a send waits for its receive before it goes into the spool.
    timeout_ms: i32,
    wait: WaitMode,
    /// How much of what the scene does.
    rounds: u64,
    faults: Faults,
}

impl Plan {
    /// Of a seed, with nothing worse than losses.
    fn of(seed: u64) -> Plan {
        let lot = &mut Lot::new(seed);
        let ranks = lot.one_of(&[2, 2, 3, 4]);
        let pairs = 1 + lot.below(u64::from(ranks)) as usize;
        Plan {
            seed,
            ranks,
            places: [pairs, pairs + lot.below(2) as usize],
            weather: Weather::of(lot),
            strict: lot.once_in(4),
            timeout_ms: lot.one_of(&[0, 0, 1, 10]),
            wait: lot.one_of(&[WaitMode::Block, WaitMode::Block, WaitMode::Adaptive]),
            rounds: lot.one_of(&[2, 4, 8]),
            faults: Faults::default(),
        }
    }

    /// The same for calls of all ranks: in some of them sends wait for their receives, and rings of any source are short. With faults there are
    /// connections enough then, and two at least otherwise: who waits for the connection of one silent rank may miss that another one is late.
    fn for_all(mut self) -> Plan {
        let synchronous = Lot::new(self.seed ^ 1 << 59).once_in(2);
        if synchronous {
            self.timeout_ms = -1;
        }
        self
    }

    /// The same with one connection and one context for each, so that ranks forget each other between their messages.
    fn of_forgetful(seed: u64) -> Plan {
        let plan = Plan::of(seed);
        let weather = Weather { doubles: 2, ..plan.weather };
        Plan { ranks: 3 + (seed % 2) as u32, places: [1, 1], rounds: 16, weather, ..plan }
    }

    /// The same among more ranks, and a send waits for no receive.
    fn of_late(seed: u64) -> Plan {
        let plan = Plan::of_forgetful(seed);
        Plan { ranks: 3 + (seed % 3) as u32, rounds: 1 + seed % 3, timeout_ms: 0, ..plan }
    }

    /// The same, and a rank is killed in the middle of it.
    fn with_a_death(seed: u64) -> Plan {
        Plan::of(seed).in_which_one_dies()
    }

    fn in_which_one_dies(mut self) -> Plan {
        let lot = &mut Lot::new(self.seed ^ 1 << 60);
        self.faults.dies = Some((lot.below(u64::from(self.ranks)) as u32, lot.below(600)));
        self
    }

    /// The same, and connections of a rank break.
    fn with_breaks(seed: u64) -> Plan {
        let (mut plan, lot) = (Plan::of(seed), &mut Lot::new(seed ^ 1 << 61));
        plan.faults.breaks = Some((lot.below(u64::from(plan.ranks)) as u32, lot.below(600)));
        plan
    }

    /// The same, and a rank is stopped for a while: for less than others wait for it, or for more.
    fn with_a_stop(seed: u64) -> Plan {
        let (mut plan, lot) = (Plan::of(seed), &mut Lot::new(seed ^ 1 << 62));
        let rank = lot.below(u64::from(plan.ranks)) as u32;
        let seconds = lot.one_of(&[1, 3, 9, 11, 13, 30]);
        plan.faults.stops = Some((rank, lot.below(600), seconds * 1_000_000_000));
        plan
    }

    fn config(&self) -> Config {
        Config {
            wait: self.wait,
            stall_s: 0.0,
            timeout_ms: self.timeout_ms,
            spool_bytes: 1 << 20,
            attach_s: 10.0,
            verbs_cache: false,
            verbs_strict: self.strict,
            queue_pairs: self.places[0],
            contexts: self.places[1],
            // In buffered mode a ring that is full is an error.
            any_slots: if self.timeout_ms < 0 { 4 } else { 256 },
            ..Config::default()
        }
    }
}

/// A rank, while its program runs.
struct Rank {
    me: u32,
    plan: Plan,
    failed: RefCell<Vec<Failed>>,
    gives_up: Cell<bool>,
}

/// A call has ended in an error; the peer, unless it was of many ranks.
#[derive(Clone, Debug)]
struct Failed {
    peer: Option<u32>,
    call: &'static str,
    text: String,
}

impl Rank {
    /// It is to end as a process that has not finalized: those who wait for it hear of it.
    fn gives_up(&self) {
        self.gives_up.set(true);
    }

    /// Notes the error of a call.
    fn note<T>(&self, peer: Option<u32>, call: &'static str, done: Result<T, Error>) -> Option<T> {
        let text = match done {
            Ok(value) => return Some(value),
            Err(e) => e.detail().to_owned(),
        };
        self.failed.borrow_mut().push(Failed { peer, call, text });
        None
    }
}

/// What became of a rank: which calls failed, and how it left.
#[derive(Clone, Debug)]
struct End {
    failed: Vec<Failed>,
    left: Result<(), String>,
    /// How many peers it has forgotten, and how often it has packed one.
    forgotten: u64,
    packed: u64,
}

/// Plays a world; what became of each rank. `None`: it was killed.
fn play(plan: Plan, program: fn(&Rank)) -> (Vec<Option<End>>, Run) {
    // Of the process, so of all ranks here.
    log::configure(Level::Off, None);
    wait::configure(&plan.config(), plan.ranks as usize, 1);
    let ether = Ether::new(plan.ranks as usize, plan.weather);
    let devices: Vec<_> = (0..plan.ranks).map(|rank| ether.device(rank)).collect();
    let cards: Arc<[Card]> = devices.iter().map(|d| Card { address: d.address() }).collect();
    let ends = Arc::new(Mutex::new(vec![None; plan.ranks as usize]));
    let programs = devices.into_iter().zip(0..).map(|(device, me)| {
        let (cards, ends, ether) = (cards.clone(), ends.clone(), ether.clone());
        let run = move || {
            let ep = Endpoint::in_simulation(me, plan.config(), device, &cards).expect("a rank");
            let rank = Rank { me, plan, failed: RefCell::default(), gives_up: Cell::new(false) };
            program(&rank);
            let forgotten = ep.fabric_here().map_or(0, |fabric| fabric.forgotten());
            let packed = ep.fabric_here().map_or(0, |fabric| fabric.packed().1);
            let left = match rank.gives_up.get() {
                true => Err("has given up".to_owned()),
                // SAFETY: the program is over, and has no other threads.
                false => job::leave(ep, unsafe { Unused::promised() }).map_err(|e| e.detail().to_owned()),
            };
            let end = End { failed: rank.failed.take(), left, forgotten, packed };
            ends.lock().unwrap_or_else(PoisonError::into_inner)[me as usize] = Some(end);
            if rank.gives_up.get() {
                ether.bury(me);
                simulation::kill(me);
            }
        };
        Box::new(run) as Box<dyn FnOnce() + Send>
    });
    let fate = Fate::new(ether.clone(), plan.faults);
    let run =
        simulation::run(plan.seed, &fate, programs.collect(), TURNS).unwrap_or_else(|why| panic!("{why}\n{plan:?}"));
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (ends, run)
}

/// Plays a world in which nothing fails; how many peers were forgotten, and packed.
fn all_is_well(plan: Plan, program: fn(&Rank)) -> [u64; 2] {
    let (ends, _) = play(plan, program);
    let well = |end: &Option<End>| end.as_ref().is_some_and(|end| end.failed.is_empty() && end.left.is_ok());
    assert!(ends.iter().all(well), "{plan:?}\nof each rank: {ends:#?}");
    let sum = |of: fn(&End) -> u64| ends.iter().flatten().map(of).sum();
    [sum(|end| end.forgotten), sum(|end| end.packed)]
}

/// Plays a world in which only those calls fail that have to do with a rank that dies, is stopped or loses connections, or with one that has
/// left for that reason: it waits for nobody then. Their errors name the peer.
fn the_fault_is_named(plan: Plan, program: fn(&Rank)) {
    let (ends, _) = play(plan, program);
    let has_fled = |rank: u32| ends[rank as usize].as_ref().is_some_and(|end| end.left.is_err());
    let Faults { dies, breaks, stops, all_stop: _ } = plan.faults;
    let dead = dies.map(|d| d.0);
    let impaired = breaks.map(|b| b.0).or(stops.map(|s| s.0));
    for (me, end) in ends.iter().enumerate().map(|(me, end)| (me as u32, end)) {
        let Some(end) = end else {
            assert_eq!(dead, Some(me), "rank {me} has no end");
            continue;
        };
        for Failed { peer, call, text } in &end.failed {
            // Of many ranks each may be the first to have gone.
            let Some(peer) = peer else {
                assert!(text.contains("rank "), "rank {me}: {call}: {text}");
                continue;
            };
            let concerned = dead == Some(*peer) || impaired == Some(*peer) || impaired == Some(me) || has_fled(*peer);
            assert!(concerned, "rank {me}: {call} with rank {peer}: {text}");
            assert!(
                text.contains(&format!("rank {peer}")),
                "rank {me}: {call} with rank {peer} does not name it: {text}"
            );
        }
    }
}
