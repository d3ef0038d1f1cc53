//! Overlap: how much of a transfer hides behind computing. Both sides start a message, compute for as long as the transfer alone
//! takes, and wait; the least of each kind counts. 1 means that all of it was hidden, 0 that nothing was.

use std::hint::black_box;

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "overlap",
    about: "how much of a non-blocking transfer hides behind computing, at the sender and at the receiver (1: all)",
    ranks: 2,
    indices: 64,
    figures: &[
        Figure::time("transfer", "us", 1e-3),
        Figure::share("hidden at sender"),
        Figure::share("hidden at receiver"),
    ],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let sizes = if o.sizes.is_empty() { vec![64 << 10, 1 << 20, 4 << 20] } else { o.sizes.clone() };
    let make = |n| {
        let k = o.rounds_of(n);
        Case::sized(n, format!("overlap {n} {k} {}", o.warm(k)))
    };
    sizes.into_iter().map(make).collect()
}

fn compute(turns: i64) {
    let mut x = black_box(1u64);
    for _ in 0..turns {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    black_box(x);
}

/// `overlap SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let per_turn = (0..4)
        .map(|_| {
            let t0 = now();
            compute(20_000);
            (now() - t0) / 20_000.0
        })
        .fold(f64::MAX, f64::min);
    let mut spent = [f64::INFINITY; 3];
    let mut turns = 0;
    // Warm-up, transfer alone, computing alone, both.
    for pass in 0..4 {
        let k = if pass == 0 { a[2] } else { a[1] };
        for _ in 0..k {
            if r.rank == 0 {
                r.recv(r.rb.part(0, 0), 1, 1)?
            } else {
                r.send(r.sb.part(0, 0), 0, 1)?
            }
            let t0 = now();
            if pass != 2 {
                if r.rank == 0 { r.isend(r.sb.part(0, n), 1, 0)? } else { r.irecv(r.rb.part(0, n), 0, 0)? }
            }
            if pass >= 2 {
                compute(turns);
            }
            if pass != 2 {
                if r.rank == 0 { r.isend_wait(1, 0)? } else { r.irecv_wait(0, 0)? }
            }
            if pass > 0 {
                spent[pass - 1] = f64::min(spent[pass - 1], now() - t0);
            }
        }
        if pass == 1 {
            turns = (spent[0] / per_turn) as i64;
        }
    }
    let share = (spent[0] + spent[1] - spent[2]) / spent[0].min(spent[1]);
    let mut other = [share];
    if r.rank == 1 {
        r.send_figures(&other, 2)?;
        return Ok(vec![]);
    }
    r.recv_figures(&mut other, 1, 2)?;
    Ok(vec![spent[0], share, other[0]])
}
