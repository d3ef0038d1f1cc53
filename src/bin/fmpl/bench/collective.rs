//! Collective calls: barrier, bcast, reduce, allreduce, allgather, scan, by size and number of ranks; and calls beside others that do the
//! same.
//!
//! The root goes round with every call, so that a call cannot begin before the last one has come to its root; the buffers are taken
//! in turn from a pool that is larger than the inner caches; the first and the last element are changed and checked in every call.
//! The time is that of the slowest rank for all calls of a block, divided by their number.

use std::sync::atomic::{AtomicU64, Ordering};

use fmpl::base::bytes::Room;

use super::rank::{Outcome, Rank, now, rounds};
use super::{Bench, Case, Figure, Options, size_text, sizes};

const TIME: &[Figure] = &[Figure::time("call", "us", 1e-3)];

const fn bench(name: &'static str, about: &'static str, plan: fn(&Options) -> Vec<Case>) -> Bench {
    Bench { name, about, ranks: 2, indices: 64, figures: TIME, plan }
}

pub static BARRIER: Bench = bench("barrier", "all ranks meet (--ranks)", |o| {
    let k = o.iterations.unwrap_or(2000);
    vec![Case::named_only("barrier", format!("barrier {k} {}", o.warm(k)))]
});
pub static BCAST: Bench = bench("bcast", "a buffer of one rank to all; the root goes round", |o| plan("bcast", o));
pub static REDUCE: Bench = bench("reduce", "sum of double to one rank; the root goes round", |o| plan("reduce", o));
pub static ALLREDUCE: Bench = bench("allreduce", "sum of double to all ranks", |o| plan("allreduce", o));
pub static ALLGATHER: Bench = bench("allgather", "so many bytes of each rank to all ranks", |o| plan("allgather", o));
pub static SCAN: Bench = bench("scan", "sum of double over the ranks up to each", |o| plan("scan", o));

/// What a call must not take longer than: others that do the same (Träff, Gropp, Thakur: *Self-consistent MPI performance
/// requirements*, EuroPVM/MPI 2007).
pub static GUIDELINES: Bench = Bench {
    name: "guidelines",
    about: "calls beside others that do the same, by turns: allreduce / reduce and bcast, bcast / scatter and allgather, barrier / allreduce of 4 B",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("the call", "us", 1e-3), Figure::time("in its place", "us", 1e-3)],
    plan: |o| {
        let sizes = if o.sizes.is_empty() { vec![8, 8 << 10, 1 << 20] } else { o.sizes.clone() };
        let line = |which: usize, n: usize| {
            let k = o.iterations.unwrap_or(calls_of(n, o));
            let command = format!("guideline {which} {n} {}", (k + PARTS - 1) / PARTS);
            Case {
                label: format!("{} {}", PAIRS[which].0, size_text(n)),
                ..Case::sized(n, command).by_rank().of_doubles()
            }
        };
        // What is scattered has a part of whole elements for each rank, or there is no such line.
        let parts = 8 * o.ranks.unwrap_or(2);
        let fits =
            move |which: &usize, n: usize| if *which == 0 { n.is_multiple_of(8) } else { n.is_multiple_of(parts) };
        let sized =
            sizes.into_iter().flat_map(|n| [0, 1].into_iter().filter(move |w| fits(w, n)).map(move |w| line(w, n)));
        sized.chain([Case { label: PAIRS[2].0.into(), ..line(2, 8) }]).collect()
    },
};

/// A line for each size.
pub fn plan(name: &str, o: &Options) -> Vec<Case> {
    let make = |n: usize| {
        let k = o.iterations.unwrap_or(calls_of(n, o));
        Case::sized(n, format!("{name} {n} {k} {}", o.warm(k))).by_rank().of_doubles()
    };
    // All ranks' blocks are in every rank's memory.
    let most = if name == ALLGATHER.name { 1 << 20 } else { usize::MAX };
    sizes(o, 8, 8 << 20).into_iter().filter(|n| n % 8 == 0 && *n <= most).map(make).collect()
}

/// Calls in a block: a multiple of the number of ranks, most likely, so that the roots are the same in every block. Between nodes a call takes far
/// longer, and on devices of software, where each packet costs processor time, very long.
fn calls_of(n: usize, o: &Options) -> i64 {
    match (n, o.nodes.is_some()) {
        (0..=8192, false) => 1008,
        (8193..=65_536, false) => 240,
        (65_537..=1_048_576, false) => 48,
        (_, false) | (0..=8192, true) => 8,
        _ => 4,
    }
}

/// Bytes of buffers that are used in turn.
const POOL: usize = 8 << 20;

/// `barrier K WARM`
pub fn barrier(r: &mut Rank, a: &[i64]) -> Outcome {
    for _ in 0..a[1] {
        r.barrier()?;
    }
    let t0 = now();
    for _ in 0..a[0] {
        r.barrier()?;
    }
    r.slowest((now() - t0) / a[0] as f64)
}

/// A call on this memory, the one of this number, with its marks.
type Call = fn(&Rank, Room<'static>, i64) -> Result<(), String>;

/// `bcast SIZE K WARM`
pub fn bcast(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, bcast_once)
}

fn bcast_once(r: &Rank, p: Room<'static>, i: i64) -> Result<(), String> {
    let root = (i % r.size as i64) as i32;
    mark_ends(p, if r.rank == root { i as f64 } else { -1.0 });
    r.bcast(p, root)?;
    check_ends(p, i as f64, i)
}

/// `reduce SIZE K WARM`
pub fn reduce(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, i| {
        let root = (i % r.size as i64) as i32;
        mark_ends(p, i as f64);
        r.reduce(p, root)?;
        check_ends(p, i as f64 * if r.rank == root { r.size as f64 } else { 1.0 }, i)
    })
}

/// `allreduce SIZE K WARM`
pub fn allreduce(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, allreduce_once)
}

fn allreduce_once(r: &Rank, p: Room<'static>, i: i64) -> Result<(), String> {
    mark_ends(p, i as f64);
    r.allreduce(p)?;
    check_ends(p, i as f64 * r.size as f64, i)
}

/// One after the other, as a program would call them: by themselves reduces and broadcasts run ahead of each other.
fn reduce_and_bcast(r: &Rank, p: Room<'static>, i: i64) -> Result<(), String> {
    let root = (i % r.size as i64) as i32;
    mark_ends(p, i as f64);
    r.reduce(p, root)?;
    r.bcast(p, root)?;
    check_ends(p, i as f64 * r.size as f64, i)
}

fn scatter_and_allgather(r: &Rank, p: Room<'static>, i: i64) -> Result<(), String> {
    let part = p.len() / r.size as usize;
    let own = r.rb.part(0, part);
    let root = (i % r.size as i64) as i32;
    mark_ends(p, if r.rank == root { i as f64 } else { -1.0 });
    r.scatter(p, own, root)?;
    r.allgather(own, p)?;
    check_ends(p.part(0, part * r.size as usize), i as f64, i)
}

fn barrier_once(r: &Rank, _: Room<'static>, _: i64) -> Result<(), String> {
    r.barrier()
}

fn allreduce_of_4_bytes(r: &Rank, p: Room<'static>, i: i64) -> Result<(), String> {
    let word = p.half_word();
    word.store(i as u32, Ordering::Relaxed);
    r.allreduce_int(p)?;
    if word.load(Ordering::Relaxed) == i as u32 * r.size as u32 {
        Ok(())
    } else {
        Err(format!("wrong value in call {i}"))
    }
}

/// A call, and what does the same.
const PAIRS: [(&str, Call, Call); 3] = [
    ("allreduce", allreduce_once, reduce_and_bcast),
    ("bcast", bcast_once, scatter_and_allgather),
    ("barrier", barrier_once, allreduce_of_4_bytes),
];
/// How often they take turns in a block.
const PARTS: i64 = 8;

/// `guideline PAIR SIZE K`: K calls in each turn
pub fn guideline(r: &mut Rank, a: &[i64]) -> Outcome {
    let (_, call, instead) = PAIRS[a[0] as usize];
    let (n, k) = (a[1] as usize, a[2]);
    let buffers = pool(r, n);
    let mut spent = [0.0; 2];
    for part in 0..PARTS {
        for (which, call) in [call, instead].into_iter().enumerate() {
            r.barrier()?;
            // The first ones find what the other left in the caches.
            let warm = 1.max(k / 8);
            spent[which] += each(r, (n, buffers), part * (k + warm), (k, warm), call)? / PARTS as f64;
        }
    }
    Ok([r.slowest(spent[0])?, r.slowest(spent[1])?].concat())
}

/// `allgather SIZE K WARM`: SIZE bytes of each rank
pub fn allgather(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, ranks) = (a[0] as usize, r.size as usize);
    let whole = [(n * ranks) as i64, a[1], a[2]];
    calls(r, &whole, |r, p, i| {
        let block = |rank: usize| p.part(rank * n, n);
        mark_ends(block(r.rank as usize), i as f64);
        // In place: this rank's bytes are where they belong.
        r.allgather(block(r.rank as usize), p)?;
        (0..ranks).try_for_each(|rank| check_ends(block(rank), i as f64, i))
    })
}

/// `scan SIZE K WARM`
pub fn scan(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, i| {
        mark_ends(p, i as f64);
        r.scan(p)?;
        check_ends(p, i as f64 * (r.rank + 1) as f64, i)
    })
}

/// How many buffers of `n` bytes are used in turn: they are there.
fn pool(r: &mut Rank, n: usize) -> usize {
    let buffers = (POOL / n).clamp(2, 64);
    r.need(buffers * n);
    // Sums stay small: what is in the buffers is zero but for the marks.
    r.sb.part(0, buffers * n).zero();
    buffers
}

fn calls(r: &mut Rank, a: &[i64], call: impl Fn(&Rank, Room<'static>, i64) -> Result<(), String>) -> Outcome {
    let (n, k, warm) = (a[0] as usize, a[1], a[2]);
    let buffers = pool(r, n);
    r.barrier()?;
    let spent = each(r, (n, buffers), 0, (k, warm), call)?;
    r.slowest(spent)
}

/// The time of each of `k` calls behind `warm` others; the first of them all has this number.
fn each(
    r: &Rank,
    (n, buffers): (usize, usize),
    first: i64,
    (k, warm): (i64, i64),
    call: impl Fn(&Rank, Room<'static>, i64) -> Result<(), String>,
) -> Result<f64, String> {
    rounds(k, warm, |i| {
        let number = first + i;
        call(r, r.sb.part(number as usize % buffers * n, n), number)
    })
}

/// The first and the last word.
#[inline]
pub fn ends(p: Room<'static>) -> [&'static AtomicU64; 2] {
    [p.word(), p.part(p.len() / 8 * 8 - 8, 8).word()]
}

#[inline]
fn mark_ends(p: Room<'static>, mark: f64) {
    ends(p).iter().for_each(|end| end.store(mark.to_bits(), Ordering::Relaxed));
}

#[inline]
fn check_ends(p: Room<'static>, want: f64, i: i64) -> Result<(), String> {
    let [first, last] = ends(p).map(|end| f64::from_bits(end.load(Ordering::Relaxed)));
    if first == want && last == want {
        Ok(())
    } else {
        Err(format!("wrong values in call {i}: first {first}, last {last}, expected {want}"))
    }
}
