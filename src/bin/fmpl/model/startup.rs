//! `fmpl model --startup`: how long a job takes to start whose ranks meet by keepers (`src/launch/keeper.rs`), beside
//! one whose values are all held by rank 0, for sizes that no machine here has.
//!
//! Each keeper is a queue: what it is asked waits until it has answered what came before. What a greeting, an
//! introduction and a question take is measured on two real keepers of this machine over the loopback; to that comes
//! the way through the network. All that is sent in a start-up is simulated, connection by connection: the way down the
//! tree, how the ring comes to be known, the values that are put and got until `fmpl_init` returns. A fence is the
//! depth of the tree, twice. The launcher starts all ranks at the same moment, which is the worst for the root; what a
//! system does when its queue of connections is full is left out, for both.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::process::ExitCode;

use fmpl::launch::{Measured, measure};
use serde_json::json;

/// One way through the network, in nanoseconds.
const NETWORK: f64 = 2000.;
/// Children of a keeper, and keepers of a level of the ring (`keeper/family.rs`, `keeper/ring.rs`).
const BRANCHES: u64 = 4;
const BASE: u64 = 64;
/// Values that one rank takes from others at a time when nodes are found out (`launch/mod.rs`).
const GATHER: u64 = 4;
/// Connections of a keeper beside those with its ranks: in the tree, of guests, of its own.
const TREE: u64 = 1 + BRANCHES;
const GUESTS: u64 = 8;
const OWN: u64 = 4;
/// Bytes of asking for the way, of a question without what is put, of an answer without what is got, of an address, of
/// a piece of news, of a word of a fence; and of a card as it travels.
const WAY: u64 = 62;
const QUESTION: u64 = 112;
const ANSWER: u64 = 90;
const ADDRESS: u64 = 22;
const NEWS: u64 = 100;
const FENCE: u64 = 64;
const CARD: u64 = 400;
/// Lines that each rank says to rank 0 where that holds all: joining, its values, what it gets, fences.
const LINES: f64 = 20.;

/// What a job of some size takes, in nanoseconds; held by keepers, and by rank 0.
struct Row {
    ranks: u64,
    keepers: u64,
    joined: f64,
    started: [f64; 2],
    /// A get with nothing else under way, and where every node asks at once.
    get: [f64; 2],
    get_at_once: [f64; 2],
    connections: [u64; 2],
    /// Read by the rank that reads most.
    bytes: [u64; 2],
}

/// Keepers and when each has answered all that has come.
struct Keepers {
    of: u64,
    free: Vec<f64>,
    bytes: Vec<u64>,
    cost: Measured,
    lot: u64,
}

impl Keepers {
    fn new(of: u64, cost: Measured) -> Keepers {
        Keepers { of, free: vec![0.; of as usize], bytes: vec![0; of as usize], cost, lot: 7 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.lot = self.lot.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.lot >> 33) % below
    }

    /// Something comes to a keeper at a time: when its answer is back.
    fn ask(&mut self, keeper: u64, at: f64, takes: f64, trips: f64) -> f64 {
        let free = &mut self.free[keeper as usize];
        *free = free.max(at + NETWORK) + takes;
        *free + NETWORK * (2. * trips - 1.)
    }

    /// A question over a connection that is made for it.
    fn visit(&mut self, from: u64, keeper: u64, at: f64, bytes: [u64; 2]) -> f64 {
        self.bytes[keeper as usize] += bytes[0];
        self.bytes[from as usize] += bytes[1];
        let Measured { greeting, introduction, question } = self.cost;
        self.ask(keeper, at, greeting + introduction + question, 3.)
    }

    /// All come down the tree from the root: the depth, and when the last is in its place.
    fn join(&mut self, each: u64) -> (u64, f64) {
        let size = self.of * each;
        let mut children = vec![[u32::MAX; BRANCHES as usize]; self.of as usize];
        let mut ranges = vec![(0, size); self.of as usize];
        // Who comes to the root first is open.
        let mut coming: BinaryHeap<Reverse<(u64, u64, u32)>> =
            (1..self.of).map(|keeper| Reverse((self.random(1000), keeper, 0))).collect();
        let (mut last, mut depth, mut depths) = (0f64, 0, vec![0; self.of as usize]);
        while let Some(Reverse((at, keeper, above))) = coming.pop() {
            let greeted = self.ask(above as u64, at as f64, self.cost.greeting, 1.5);
            let (from, to) = ranges[above as usize];
            let bound = |k: u64| from + (to - from) * k / BRANCHES;
            let part = (0..BRANCHES).find(|k| keeper * each < bound(k + 1)).unwrap_or(BRANCHES - 1);
            let child = &mut children[above as usize][part as usize];
            if *child != u32::MAX {
                coming.push(Reverse((greeted as u64, keeper, *child)));
                continue;
            }
            *child = keeper as u32;
            ranges[keeper as usize] = (bound(part), bound(part + 1));
            depths[keeper as usize] = depths[above as usize] + 1;
            depth = depth.max(depths[keeper as usize]);
            self.bytes[above as usize] += QUESTION;
            last = last.max(self.ask(above as u64, greeted, self.cost.introduction, 1.));
        }
        (depth, last)
    }

    /// Every keeper goes its ways, a list of keepers to be visited one after the other, all from the same moment on:
    /// when the last is done, and how long one took in the middle.
    fn segment(&mut self, begin: f64, ways: impl Fn(&mut Keepers, u64) -> Vec<(u64, [u64; 2])>) -> (f64, f64) {
        self.free.fill(begin);
        let mut lists: Vec<Vec<(u64, [u64; 2])>> = Vec::with_capacity(self.of as usize);
        for keeper in 0..self.of {
            let mut list = ways(self, keeper);
            list.reverse();
            lists.push(list);
        }
        let mut due: BinaryHeap<Reverse<(u64, u64)>> =
            (0..self.of).map(|keeper| Reverse((begin as u64, keeper))).collect();
        let (mut last, mut sum) = (begin, 0.);
        while let Some(Reverse((at, keeper))) = due.pop() {
            match lists[keeper as usize].pop() {
                Some((to, bytes)) => due.push(Reverse((self.visit(keeper, to, at as f64, bytes) as u64, keeper))),
                None => {
                    last = last.max(at as f64);
                    sum += at as f64 - begin;
                }
            }
        }
        (last, sum / self.of as f64)
    }

    /// The way to a keeper that nobody could know: by the digits of the distance.
    fn way(&mut self, from: u64, bytes: [u64; 2]) -> Vec<(u64, [u64; 2])> {
        let distance = self.random(self.of);
        let (mut all, mut step) = (Vec::new(), BASE.pow(4));
        let mut gone = 0;
        while step > 0 {
            let digit = distance / step % BASE;
            if digit > 0 {
                gone += digit * step;
                all.push(((from + gone) % self.of, [WAY, ANSWER]));
            }
            step /= BASE;
        }
        all.iter_mut().last().iter_mut().for_each(|last| last.1 = bytes);
        all
    }

    /// The same, and on to the next keeper, with which it is put once more.
    fn way_to_put(&mut self, from: u64, bytes: u64) -> Vec<(u64, [u64; 2])> {
        let bytes = [QUESTION + bytes, ANSWER + ADDRESS];
        let mut all = self.way(from, bytes);
        let last = all.last().map_or(from, |last| last.0);
        all.push(((last + 1) % self.of, bytes));
        all
    }

    /// Whom a keeper asks so that it knows its part of the ring.
    fn learns(&self, from: u64) -> Vec<(u64, [u64; 2])> {
        let (mut all, mut step) = (Vec::new(), 1);
        while step < self.of {
            let wanted = ((self.of - 1) / step).min(BASE - 1);
            let mut known = 1;
            while known < wanted {
                let more = known.min(wanted - known);
                all.push(((from + known * step) % self.of, [QUESTION, ANSWER + more * ADDRESS]));
                known += more;
            }
            if self.of > step * BASE {
                all.push(((from + wanted * step) % self.of, [QUESTION, ANSWER + ADDRESS]));
            }
            step *= BASE;
        }
        all
    }
}

/// A job with so many ranks on each of its nodes, started.
fn start(keepers: u64, each: u64, cost: Measured) -> Row {
    let mut sim = Keepers::new(keepers, cost);
    let (depth, joined) = sim.join(each);
    let fence = 2. * depth as f64 * (NETWORK + cost.question);
    let mut fences = 5;
    let ranks = keepers * each;
    let puts = |sim: &mut Keepers, from: u64, count: u64, bytes: u64| {
        (0..count).flat_map(|_| sim.way_to_put(from, bytes)).collect::<Vec<_>>()
    };
    let mut at = joined + fence;
    at = sim.segment(at, |sim, from| sim.learns(from)).0;
    // Where its ranks are; then these are gathered, in a tree over the ranks; then what the ranks say of themselves.
    at = sim.segment(at, |sim, from| puts(sim, from, each, 0)).0 + fence;
    let mut span = 1;
    while span < ranks {
        let gathers = |sim: &mut Keepers, from: u64| {
            let first = from * each;
            let mut all = puts(
                sim,
                from,
                (first..first + each).filter(|r| r % span == 0 && r % (span * GATHER) != 0).count() as u64,
                50,
            );
            let takes = (first..first + each).filter(|r| r % (span * GATHER) == 0).count() as u64 * (GATHER - 1);
            (0..takes).for_each(|_| all.extend(sim.way(from, [QUESTION, ANSWER + 50])));
            all
        };
        at = sim.segment(at, gathers).0 + fence;
        (span, fences) = (span * GATHER, fences + 1);
    }
    at = sim.segment(at, |sim, from| puts(sim, from, 2 * each, CARD)).0 + 2. * fence;
    let (started, _) =
        sim.segment(at, |sim, from| (0..2).flat_map(|_| sim.way(from, [QUESTION, ANSWER + CARD])).collect());
    // What the root heard while they came: no more often than each third of the time.
    let news = BRANCHES * (3. * (joined / 2e7).max(1.).ln()).ceil() as u64 + BRANCHES;
    sim.bytes[0] += NEWS * news;
    // The word of each child, and two of the one above.
    sim.bytes.iter_mut().for_each(|bytes| *bytes += fences * (BRANCHES + 2) * FENCE);
    let most = sim.bytes.iter().copied().max().unwrap_or(0);
    let one = |sim: &mut Keepers, from: u64| sim.way(from, [QUESTION, ANSWER + CARD]);
    let (_, at_once) = sim.segment(0., one);
    let hops = (0..1000).map(|_| sim.way(0, [0; 2]).len()).sum::<usize>() as f64 / 1000.;
    let n = ranks as f64;
    Row {
        ranks,
        keepers,
        joined,
        started: [started, n * (cost.greeting + cost.introduction) + n * LINES * cost.question],
        get: [hops * (6. * NETWORK + cost.greeting + cost.introduction + cost.question), 2. * NETWORK + cost.question],
        get_at_once: [at_once, 2. * NETWORK + n * cost.question / 2.],
        connections: [each - 1 + TREE + GUESTS + OWN, ranks - 1],
        bytes: [most, ranks * (LINES as u64 * QUESTION / 2 + 2 * CARD)],
    }
}

/// Prints it for sizes up to 2^20 ranks, so many of them on each node.
pub fn main(each: u64, as_json: bool) -> ExitCode {
    let cost = match measure() {
        Ok(cost) => cost,
        Err(e) => {
            eprintln!("fmpl model: {e}");
            return ExitCode::FAILURE;
        }
    };
    let sizes: Vec<u64> =
        [6, 8, 10, 12, 14, 16, 18, 20].iter().map(|k| (1u64 << k) / each).filter(|k| *k > 0).collect();
    // The largest alone takes as long as all others.
    let rows: Vec<Row> = std::thread::scope(|s| {
        let all: Vec<_> = sizes.iter().map(|keepers| s.spawn(move || start(*keepers, each, cost))).collect();
        all.into_iter().filter_map(|row| row.join().ok()).collect()
    });
    if as_json {
        let row = |r: &Row| {
            json!({
                "ranks": r.ranks, "nodes": r.keepers, "joined_ns": r.joined, "started_ns": r.started, "get_ns": r.get,
                "get_at_once_ns": r.get_at_once, "connections": r.connections, "bytes_read": r.bytes,
            })
        };
        let measured =
            json!({ "greeting_ns": cost.greeting, "introduction_ns": cost.introduction, "question_ns": cost.question });
        println!("{}", json!({ "measured": measured, "rows": rows.iter().map(row).collect::<Vec<_>>() }));
        return ExitCode::SUCCESS;
    }
    println!(
        "start-up of jobs with {each} ranks on each node, by simulation: values with keepers | all with rank 0\n\
         measured here: greeting {:.1} us, introduction {:.1} us, question {:.1} us; the network adds {:.1} us a way\n",
        cost.greeting / 1e3,
        cost.introduction / 1e3,
        cost.question / 1e3,
        NETWORK / 1e3
    );
    println!(
        "{:>8} {:>21} {:>21} {:>23} {:>17} {:>23}",
        "ranks", "started, s", "a get, us", "one of all at once, ms", "connections", "read by a rank, kB"
    );
    for r in &rows {
        println!(
            "{:>8} {:>10.3} |{:>9.3} {:>10.0} |{:>9.0} {:>11.2} |{:>10.2} {:>7} |{:>8} {:>10.1} |{:>11.1}",
            r.ranks,
            r.started[0] / 1e9,
            r.started[1] / 1e9,
            r.get[0] / 1e3,
            r.get[1] / 1e3,
            r.get_at_once[0] / 1e6,
            r.get_at_once[1] / 1e6,
            r.connections[0],
            r.connections[1],
            r.bytes[0] as f64 / 1e3,
            r.bytes[1] as f64 / 1e3
        );
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Measured = Measured { greeting: 30e3, introduction: 40e3, question: 15e3 };

    #[test]
    fn nobody_is_asked_much() {
        let [small, large] = [64, 4096].map(|keepers| start(keepers, 4, COST));
        assert!(large.started[0] < large.started[1] && large.joined < large.started[0]);
        assert!(large.connections[0] == small.connections[0] && large.connections[0] <= 24);
        assert!(large.bytes[0] <= 64 << 10, "{} bytes", large.bytes[0]);
        // Three times as many words for 64 times as many ranks, and not more.
        assert!(large.get[0] < 4. * small.get[0] && large.get_at_once[0] < large.get_at_once[1]);
    }

    #[test]
    fn a_ring_is_learned_in_a_word_for_each_doubling() {
        let sim = Keepers::new(4096, COST);
        let all = sim.learns(5);
        assert!(all.len() <= 14, "{}", all.len());
        assert!(all.iter().all(|(keeper, _)| *keeper < 4096));
        assert_eq!(Keepers::new(1, COST).learns(0), []);
    }
}
