//! What is played on the simulated network with links alone: streams of records between all ranks, while connections come and go, datagrams
//! are lost and doubled, connections break and ranks die.
//!
//! Each rank sends numbered records to each other one: the bytes into one of some places of the peer's front, then the number. Who sees the
//! number finds the bytes; it answers with how far it has come, and what it reads at the peer is what the peer has there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::batches::LeftOut;
use super::fate::{Fate, Faults};
use super::{Ether, Weather};
use crate::base::clock::now_ns;
use crate::base::key::Key;
use crate::base::rules::Rule;
use crate::base::simulation::{self, Lot, pause};
use crate::fabric::network::control::{Fabric, Hooks, Terms, Who};
use crate::fabric::network::link::{COUNTED, Link, Window};
use crate::fabric::network::room::TABLES_BYTES;
use crate::fabric::network::{Card, Choice};
use crate::fabric::shm::region::{NODE_AT, Region};

/// Places for records that are under way; bytes of each.
const PLACES: u64 = 8;
const PLACE: usize = 256;
/// So long a rank is stopped: longer than all time-outs together.
const STOPPED_NS: u64 = 300_000_000_000;
/// So long all are: longer than a peer may be silent, and not as long as a first contact may take.
const ALL_STOPPED_NS: u64 = 15_000_000_000;
/// Turns of all threads together until a run counts as one that does not end.
const TURNS: u64 = 4_000_000;

/// How a run is.
#[derive(Clone, Copy, Debug)]
struct Plan {
    ranks: u32,
    /// Records from each to each.
    records: u64,
    /// Connections, contexts and rings that a node may have.
    places: [usize; 3],
    weather: Weather,
    faults: Faults,
    /// Links change between the ways so often.
    every_ns: u64,
    /// A peer may be silent for so many seconds.
    patience_s: u64,
}

/// [`Fabric::switches`] of all runs of this process.
static TAKEN: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// What a rank has with another one.
struct With {
    peer: u32,
    link: Arc<Link>,
    /// Two chunks: of one the peer's key comes with each connection, the other's may have to be asked for.
    fronts: [Arc<Window>; 2],
    sent: u64,
    got: u64,
    /// Why it has ended, if it has.
    ended: Option<String>,
    /// When it was over, in one way or the other; 0: it is not.
    over_ns: u64,
}

fn words_of(from: u32, to: u32, n: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|k| n << 20 | u64::from(from) << 16 | u64::from(to) << 12 | k).collect()
}

fn sum_of(n: u64, counted: u64) -> u64 {
    if n == 0 { 0 } else { (n << 32 ^ counted).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
}

fn chunk_of(n: u64) -> usize {
    n.is_multiple_of(5) as usize
}

fn count_of(n: u64) -> usize {
    1 + (n % 31) as usize
}

impl With {
    fn word(&self, chunk: usize, at: usize) -> u64 {
        // SAFETY: within a chunk of fronts, which lives as long as the window; atomics only.
        unsafe { &*self.fronts[chunk].memory.as_ptr().add(at).cast::<AtomicU64>() }.load(Ordering::Acquire)
    }
    /// The peer's records up to here have come, with the last of its writes that are counted. (Three words of one write, which come in any
    /// order.)
    fn come(&self) -> Option<(u64, u64)> {
        let [come, counted, sum] = [0, 8, 16].map(|at| self.word(0, at));
        (sum == sum_of(come, counted)).then_some((come, counted))
    }
    /// It has got mine up to there.
    fn acked(&self) -> u64 {
        self.word(0, 64)
    }

    fn write(&self, chunk: usize, at: usize, words: &[u64]) -> crate::Result<u64> {
        self.link.write_into(&self.fronts[chunk], at, || None, |record| record.put(words))
    }

    /// Sends the next record if there is room.
    fn send(&mut self, me: u32, most: u64) -> crate::Result<bool> {
        if self.sent == most || self.sent - self.acked() >= PLACES {
            return Ok(false);
        }
        let n = self.sent + 1;
        let place = (n % PLACES + 1) as usize * PLACE;
        self.write(chunk_of(n), place, &words_of(me, self.peer, n, count_of(n)))?;
        let link = &self.link;
        if n.is_multiple_of(3) {
            link.write_into(
                &self.fronts[0],
                0,
                || Some(COUNTED),
                |record| {
                    let counted = link.next_counted();
                    record.put(&[n, counted, sum_of(n, counted)]);
                },
            )?;
        } else {
            self.write(0, 0, &[n, 0, sum_of(n, 0)])?;
        }
        self.sent = n;
        Ok(true)
    }

    /// Takes what has come.
    fn take(&mut self, me: u32) -> crate::Result<bool> {
        let Some((come, counted)) = self.come() else { return Ok(false) };
        assert!(come >= self.got, "{me} from {}: record {come} after {}", self.peer, self.got);
        if come == self.got {
            return Ok(false);
        }
        self.link.until_arrived(counted)?;
        for n in self.got + 1..=come {
            let place = (n % PLACES + 1) as usize * PLACE;
            let words: Vec<u64> = (0..count_of(n)).map(|k| self.word(chunk_of(n), place + 8 * k)).collect();
            assert_eq!(words, words_of(self.peer, me, n, count_of(n)), "{me} from {}: record {n}", self.peer);
        }
        self.got = come;
        self.write(0, 64, &[come])?;
        Ok(true)
    }
}

struct Shown {
    cards: Vec<Card>,
}

/// One rank's program.
fn rank(me: u32, fabric: &Fabric, shown: &Shown, terms: &Plan, lot: &mut Lot) -> Vec<(Option<String>, u64)> {
    let mut all = Vec::new();
    let mut ends = vec![(None, 0); terms.ranks as usize];
    for peer in (0..terms.ranks).filter(|p| *p != me) {
        let contact = |chunk| fabric.contact(peer, &shown.cards[peer as usize], 0, chunk, Duration::from_secs(30));
        match contact(1).and_then(|second| Ok((contact(0)?, second.2))) {
            Ok(((link, _page, first), second)) => {
                all.push(With { peer, link, fronts: [first, second], sent: 0, got: 0, ended: None, over_ns: 0 });
            }
            Err(e) => ends[peer as usize] = (Some(e.detail().to_owned()), now_ns()),
        }
    }
    let mut turns = 0u64;
    loop {
        let mut busy = false;
        for _ in 0..all.len() {
            let k = lot.below(all.len() as u64) as usize;
            let with = &mut all[k];
            if with.ended.is_some() {
                continue;
            }
            let done = with.take(me).and_then(|took| Ok(with.send(me, terms.records)? || took));
            match done {
                Ok(did) => busy |= did,
                Err(e) => with.ended = Some(e.detail().to_owned()),
            }
        }
        let over = |w: &With| w.ended.is_some() || w.got == terms.records && w.acked() == terms.records;
        all.iter_mut().filter(|w| w.over_ns == 0 && over(w)).for_each(|w| w.over_ns = now_ns());
        if all.iter().all(over) {
            break;
        }
        if !busy {
            pause();
            turns += 1;
            if turns.is_multiple_of(16) {
                for with in all.iter_mut().filter(|w| !over(w)) {
                    with.link.tend();
                    if let Some(why) = with.link.failure() {
                        with.ended = Some(format!("rank {me}: rank {} {why}", with.peer));
                    }
                }
            }
        }
    }
    loop {
        let until = now_ns() + 1_000_000_000;
        fabric.links().iter().for_each(|link| link.drain(until));
        fabric.leave(until);
        // Once more where all were stopped meanwhile, and what was under way had no time.
        if now_ns() < until + ALL_STOPPED_NS / 2 {
            break;
        }
    }
    fabric.stop();
    for with in all {
        ends[with.peer as usize] = (with.ended, with.over_ns);
    }
    ends
}

/// What became of a rank with each other, if it came to an end: why that has ended, if it has, and when it was over.
type Ends = Option<Vec<(Option<String>, u64)>>;

/// Of a process that has nothing above the network, knows no cards, and uses what it has with others to the end.
pub fn idle_hooks(region: &Arc<Region>) -> Hooks {
    let tables = region.clone();
    Hooks {
        on_number: Box::new(|_, _| ()),
        moves_on: Box::new(|| ()),
        came_up: Box::new(|_| ()),
        opened: Box::new(|_, _| ()),
        settle: Box::new(|_| ()),
        owes: Box::new(|_| false),
        has_unmade: Box::new(|_| false),
        close: Box::new(|_| None),
        open: Box::new(|_| ()),
        free: Box::new(|_| ()),
        card_of: Box::new(|rank| panic!("the card of rank {rank}")),
        tables: Box::new(move || tables.map(NODE_AT, TABLES_BYTES).ok().map(Arc::new)),
    }
}

/// Plays a run; what became of each rank.
fn play(seed: u64, terms: Plan) -> (Vec<Ends>, simulation::Run) {
    let ether = Ether::new(terms.ranks as usize, terms.weather);
    let devices: Vec<_> = (0..terms.ranks).map(|rank| ether.device(rank)).collect();
    let shown = Arc::new(Shown { cards: devices.iter().map(|d| Card { address: d.address() }).collect() });
    let outcomes = Arc::new(Mutex::new(vec![None; terms.ranks as usize]));
    let programs = devices.into_iter().enumerate().map(|(me, device)| {
        let (shown, outcomes, me) = (shown.clone(), outcomes.clone(), me as u32);
        let run = move || {
            let region = Arc::new(Region::create(me, terms.ranks).expect("a region"));
            let cards = shown.clone();
            let hooks = Hooks { card_of: Box::new(move |rank| Ok(cards.cards[rank as usize])), ..idle_hooks(&region) };
            let how = Terms {
                stall: Duration::ZERO,
                keep: None,
                strict: false,
                places: terms.places,
                ways: Choice::Random { seed: u64::from(me), every_ns: terms.every_ns },
                patience: Duration::from_secs(terms.patience_s),
                comes_before: Box::new(move |peer| me < peer),
            };
            let fabric = Fabric::start(Who::of(region), device, how).expect("a fabric");
            fabric.open(&Key::of(b"a world's"), hooks).expect("its thread");
            let mut lot = Lot::new(seed ^ u64::from(me + 1) << 40);
            let ends = rank(me, &fabric, &shown, &terms, &mut lot);
            for (all, n) in TAKEN.iter().zip(fabric.switches().unwrap_or_default()) {
                all.fetch_add(n, Ordering::Relaxed);
            }
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[me as usize] = Some(ends);
        };
        Box::new(run) as Box<dyn FnOnce() + Send>
    });
    let fate = Fate::new(ether.clone(), terms.faults);
    let run = simulation::run(seed, &fate, programs.collect(), TURNS).unwrap_or_else(|why| panic!("{why}"));
    let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcomes, run)
}

fn plan(lot: &mut Lot) -> Plan {
    let ranks = lot.one_of(&[2, 3, 3, 4]);
    let pairs = 1 + lot.below(u64::from(ranks)) as usize;
    let contexts = pairs + lot.below(2) as usize;
    let weather = Weather::of(lot);
    Plan {
        ranks,
        records: lot.one_of(&[3, 10, 30]),
        places: [pairs, contexts, 0],
        weather,
        faults: Faults::default(),
        every_ns: lot.one_of(&[1_000_000, 3_000_000, 20_000_000]),
        patience_s: 10,
    }
}

/// All that is sent comes, once and in order, whatever places there are and whatever becomes of datagrams.
fn connections_come_and_go(seed: u64) {
    nothing_ends(seed, plan(&mut Lot::new(seed)));
}

fn nothing_ends(seed: u64, terms: Plan) {
    let (outcomes, _) = play(seed, terms);
    for (me, outcome) in outcomes.iter().enumerate() {
        let ends = outcome.as_ref().expect("its end");
        assert!(ends.iter().all(|(end, _)| end.is_none()), "rank {me}: {ends:?}");
    }
}

/// The same while all ranks are stopped for longer than any may be silent: nobody takes that for silence.
fn all_ranks_stop(seed: u64) {
    let mut lot = Lot::new(seed);
    let mut terms = if lot.once_in(2) { changing(&mut lot) } else { plan(&mut lot) };
    terms.faults.all_stop = Some((lot.below(400), ALL_STOPPED_NS));
    nothing_ends(seed, terms);
}

/// The same where a peer may be silent for a second only, in which many wait for places.
fn patience_is_short(seed: u64) {
    let mut lot = Lot::new(seed);
    let terms = if lot.once_in(2) { changing(&mut lot) } else { plan(&mut lot) };
    let (ranks, records) = (lot.one_of(&[3, 4]), lot.one_of(&[10, 30]));
    // Of packets that are repeated four times a second some have to come.
    let weather = Weather { loses: lot.one_of(&[0, 50]), ..terms.weather };
    nothing_ends(seed, Plan { ranks, records, weather, places: [1, 1, terms.places[2]], patience_s: 1, ..terms });
}

/// The same while each link changes between the ways at random, and a node has places for some connections only, or for all.
fn links_change_ways(seed: u64) {
    nothing_ends(seed, changing(&mut Lot::new(seed)));
}

fn changing(lot: &mut Lot) -> Plan {
    let mut terms = plan(lot);
    terms.weather.ways = true;
    terms.places[2] = lot.below(u64::from(terms.ranks) + 1) as usize;
    terms.records = lot.one_of(&[10, 30, 100]);
    terms
}

/// Whoever has to do with a rank that dies hears of it, and nobody else does.
fn a_rank_dies(seed: u64) {
    dies(seed, plan);
}

/// The same while links change between the ways.
fn ways_change_and_a_rank_dies(seed: u64) {
    dies(seed, changing);
}

fn dies(seed: u64, plan: fn(&mut Lot) -> Plan) {
    let mut lot = Lot::new(seed);
    let mut terms = plan(&mut lot);
    let dead = lot.below(u64::from(terms.ranks)) as u32;
    terms.faults.dies = Some((dead, lot.below(400)));
    let (outcomes, _) = play(seed, terms);
    for (me, outcome) in outcomes.iter().enumerate().filter(|(me, _)| *me as u32 != dead) {
        let ends = outcome.as_ref().expect("its end");
        for (peer, end) in ends.iter().enumerate().filter_map(|(peer, (end, _))| Some((peer as u32, end.as_ref()?))) {
            assert!(peer == dead && end.contains(&format!("rank {me}: rank {dead} ")), "rank {me} of {peer}: {end}");
        }
    }
}

/// A rank that is stopped holds nobody else up: all that the others have with each other is over before it goes on, also where all places are its.
fn a_rank_stops(seed: u64) {
    stops(seed, plan);
}

/// The same while links change between the ways.
fn ways_change_and_a_rank_stops(seed: u64) {
    stops(seed, changing);
}

fn stops(seed: u64, plan: fn(&mut Lot) -> Plan) {
    let mut lot = Lot::new(seed);
    let mut terms = plan(&mut lot);
    let stopped = lot.below(u64::from(terms.ranks)) as u32;
    terms.faults.stops = Some((stopped, lot.below(400), STOPPED_NS));
    let (outcomes, _) = play(seed, terms);
    for (me, outcome) in outcomes.iter().enumerate().filter(|(me, _)| *me as u32 != stopped) {
        let ends = outcome.as_ref().expect("its end");
        for (peer, (end, over_ns)) in ends.iter().enumerate().filter(|(peer, _)| *peer != me) {
            let text = end.as_deref().unwrap_or_default();
            if peer as u32 == stopped {
                assert!(text.is_empty() || text.contains(&format!("rank {me}: rank {peer} ")), "rank {me}: {text}");
            } else {
                assert!(end.is_none(), "rank {me} of {peer}: {text}");
                assert!(*over_ns < STOPPED_NS, "rank {me} and {peer} have waited until rank {stopped} went on");
            }
        }
    }
}

/// A connection that breaks is told at both ends, and all else goes on.
fn a_connection_breaks(seed: u64) {
    let mut lot = Lot::new(seed);
    let mut terms = plan(&mut lot);
    let rank = lot.below(u64::from(terms.ranks)) as u32;
    terms.faults.breaks = Some((rank, lot.below(400)));
    let (outcomes, _) = play(seed, terms);
    for (me, outcome) in outcomes.iter().enumerate() {
        let ends = outcome.as_ref().expect("its end");
        for (peer, end) in ends.iter().enumerate().filter_map(|(peer, (end, _))| Some((peer as u32, end.as_ref()?))) {
            let concerned = peer == rank || me as u32 == rank;
            assert!(concerned && end.contains(&format!("rank {me}: rank {peer} ")), "rank {me} of {peer}: {end}");
        }
    }
}

/// A scene by which it is noticed that a rule is left out.
const NOTICED_BY: [LeftOut; 7] = [
    (Rule::OwnIsOver, "own_is_over", connections_come_and_go),
    (Rule::PeersIsOver, "peers_is_over", connections_come_and_go),
    (Rule::SaidAgain, "said_again", connections_come_and_go),
    (Rule::LateGivesWay, "late_gives_way", a_rank_dies),
    (Rule::LateGivesWay, "late_gives_way_to_the_living", a_rank_stops),
    (Rule::Era, "era", connections_come_and_go),
    (Rule::StaysRegistered, "stays_registered", connections_come_and_go),
];

mod runs {
    use super::super::batches::{again, batch, noticed};

    #[test]
    fn connections_come_and_go() {
        batch("connections_come_and_go", 100, super::connections_come_and_go);
    }
    #[test]
    fn links_change_ways() {
        batch("links_change_ways", 60, super::links_change_ways);
    }
    #[test]
    fn each_way_is_taken() {
        (1..=10).for_each(super::links_change_ways);
        let [connected, rings, .., kept] = super::TAKEN.each_ref().map(|n| n.load(super::Ordering::Relaxed));
        let some = [connected, rings, kept].into_iter().all(|n| n > 10);
        assert!(some && kept < connected, "connections, rings, kept: {connected}, {rings}, {kept}");
    }
    #[test]
    fn ways_change_and_a_rank_dies() {
        batch("ways_change_and_a_rank_dies", 60, super::ways_change_and_a_rank_dies);
    }
    #[test]
    fn a_rank_dies() {
        batch("a_rank_dies", 100, super::a_rank_dies);
    }
    #[test]
    fn a_rank_stops() {
        batch("a_rank_stops", 40, super::a_rank_stops);
    }
    #[test]
    fn all_ranks_stop() {
        batch("all_ranks_stop", 60, super::all_ranks_stop);
    }
    #[test]
    fn patience_is_short() {
        batch("patience_is_short", 40, super::patience_is_short);
    }
    #[test]
    fn ways_change_and_a_rank_stops() {
        batch("ways_change_and_a_rank_stops", 20, super::ways_change_and_a_rank_stops);
    }
    #[test]
    fn a_connection_breaks() {
        batch("a_connection_breaks", 100, super::a_connection_breaks);
    }
    /// Each rule that is left out is noticed within some hundreds of schedules.
    #[test]
    fn rules_left_out_are_noticed() {
        noticed("rules_left_out_are_noticed", 500, &super::NOTICED_BY);
    }
    #[test]
    fn the_same_seed_gives_the_same_run() {
        again(20, |seed| super::play(seed, super::plan(&mut super::Lot::new(seed))).1);
    }
}
