//! Collective calls: barrier, bcast, reduce, allreduce, allgather, scan, and pairs of calls that do what another does, by size and number of ranks.
//!
//! The root goes round with every call, so that a call cannot begin before the last one has come to its root; the buffers are taken
//! in turn from a pool that is larger than the inner caches; the first and the last element are changed and checked in every call.
//! The time is that of the slowest rank for all calls of a block, divided by their number.

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options, sizes};

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
/// What an allreduce must not take longer than.
pub static REDUCE_BCAST: Bench =
    bench("reduce-bcast", "a reduce and a bcast of the same root, which do what an allreduce does", |o| {
        plan("reduce-bcast", o)
    });
/// What a bcast must not take longer than.
pub static SCATTER_ALLGATHER: Bench =
    bench("scatter-allgather", "a scatter and an allgather of its parts, which do what a bcast does", |o| {
        plan("scatter-allgather", o)
    });
pub static ALLGATHER: Bench = bench("allgather", "so many bytes of each rank to all ranks", |o| plan("allgather", o));
pub static SCAN: Bench = bench("scan", "sum of double over the ranks up to each", |o| plan("scan", o));

/// A line for each size.
pub fn plan(name: &str, o: &Options) -> Vec<Case> {
    let make = |n: usize| {
        // A multiple of the number of ranks, so that the roots are the same in every block. Between nodes a call takes far longer, and on
        // devices of software, where each packet costs processor time, very long.
        let k = o.iterations.unwrap_or(match (n, o.nodes.is_some()) {
            (0..=8192, false) => 1008,
            (8193..=65_536, false) => 240,
            (65_537..=1_048_576, false) => 48,
            (_, false) | (0..=8192, true) => 8,
            _ => 4,
        });
        Case::sized(n, format!("{name} {n} {k} {}", o.warm(k)))
    };
    // All ranks' blocks are in every rank's memory.
    let most = if name == ALLGATHER.name { 1 << 20 } else { usize::MAX };
    sizes(o, 8, 8 << 20).into_iter().filter(|n| n % 8 == 0 && *n <= most).map(make).collect()
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

/// `bcast SIZE K WARM`
pub fn bcast(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, n, i| {
        let root = (i % r.size as i64) as i32;
        let mark = if r.rank == root { i as f64 } else { -1.0 };
        mark_ends(p, n, mark);
        r.bcast(p, n, root)?;
        check_ends(p, n, i as f64, i)
    })
}

/// `reduce SIZE K WARM`
pub fn reduce(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, n, i| {
        let root = (i % r.size as i64) as i32;
        mark_ends(p, n, i as f64);
        r.reduce(p, n / 8, root)?;
        check_ends(p, n, i as f64 * if r.rank == root { r.size as f64 } else { 1.0 }, i)
    })
}

/// `allreduce SIZE K WARM`
pub fn allreduce(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, n, i| {
        mark_ends(p, n, i as f64);
        r.allreduce(p, n / 8)?;
        check_ends(p, n, i as f64 * r.size as f64, i)
    })
}

/// `reduce-bcast SIZE K WARM`
pub fn reduce_bcast(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, n, i| {
        let root = (i % r.size as i64) as i32;
        mark_ends(p, n, i as f64);
        r.reduce(p, n / 8, root)?;
        r.bcast(p, n, root)?;
        check_ends(p, n, i as f64 * r.size as f64, i)
    })
}

/// `scatter-allgather SIZE K WARM`
pub fn scatter_allgather(r: &mut Rank, a: &[i64]) -> Outcome {
    let part = a[0] as usize / r.size as usize;
    calls(r, a, |r, p, n, i| {
        let own = r.rb.at(0);
        let root = (i % r.size as i64) as i32;
        let mark = if r.rank == root { i as f64 } else { -1.0 };
        mark_ends(p, n, mark);
        r.scatter(p, part, own, root)?;
        r.allgather_from(own, part, p)?;
        check_ends(p, n, i as f64, i)
    })
}

/// `allgather SIZE K WARM`: SIZE bytes of each rank
pub fn allgather(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, ranks) = (a[0] as usize, r.size as usize);
    let whole = [(n * ranks) as i64, a[1], a[2]];
    calls(r, &whole, |r, p, _, i| {
        // SAFETY: a block for each rank is at `p`.
        let block = |rank: usize| unsafe { p.add(rank * n) };
        mark_ends(block(r.rank as usize), n, i as f64);
        r.allgather(p, n)?;
        (0..ranks).try_for_each(|rank| check_ends(block(rank), n, i as f64, i))
    })
}

/// `scan SIZE K WARM`
pub fn scan(r: &mut Rank, a: &[i64]) -> Outcome {
    calls(r, a, |r, p, n, i| {
        mark_ends(p, n, i as f64);
        r.scan(p, n / 8)?;
        check_ends(p, n, i as f64 * (r.rank + 1) as f64, i)
    })
}

fn calls(r: &mut Rank, a: &[i64], call: impl Fn(&Rank, *mut u8, usize, i64) -> Result<(), String>) -> Outcome {
    let (n, k, warm) = (a[0] as usize, a[1], a[2]);
    let buffers = (POOL / n).clamp(2, 64);
    r.need(buffers * n);
    // Sums stay small: what is in the buffers is zero but for the marks.
    // SAFETY: the buffer has so many bytes.
    unsafe { std::ptr::write_bytes(r.sb.at(0), 0, buffers * n) };
    r.barrier()?;
    let mut t0 = now();
    for i in 0..k + warm {
        if i == warm {
            t0 = now();
        }
        call(r, r.sb.at(i as usize % buffers * n), n, i)?;
    }
    let spent = (now() - t0) / k as f64;
    r.slowest(spent)
}

#[inline]
fn mark_ends(p: *mut u8, n: usize, mark: f64) {
    let p = p.cast::<f64>();
    // SAFETY: `n` bytes, a multiple of 8, aligned, at `p`. Volatile: other processes read them.
    unsafe {
        p.write_volatile(mark);
        p.add(n / 8 - 1).write_volatile(mark);
    }
}

#[inline]
fn check_ends(p: *mut u8, n: usize, want: f64, i: i64) -> Result<(), String> {
    let p = p.cast::<f64>();
    // SAFETY: as in `mark_ends`.
    let (first, last) = unsafe { (p.read_volatile(), p.add(n / 8 - 1).read_volatile()) };
    if first == want && last == want {
        Ok(())
    } else {
        Err(format!("wrong values in call {i}: first {first}, last {last}, expected {want}"))
    }
}
