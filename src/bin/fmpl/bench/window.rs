//! A window of non-blocking messages on as many indices, answered once a window: the rate of short ones (`rate`) and the bandwidth
//! of long ones (`bandwidth`).

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options, sizes};

pub static RATE: Bench = Bench {
    name: "rate",
    about: "a window of 64 non-blocking messages on 64 indices: the time of each",
    ranks: 2,
    indices: 128,
    figures: &[Figure::time("each", "ns", 1.0).bandwidth()],
    plan: plan_rate,
};

pub static BANDWIDTH: Bench = Bench {
    name: "bandwidth",
    about: "a window of up to 64 long non-blocking messages: the time of each, and what they come to in MB/s",
    ranks: 2,
    indices: 128,
    figures: &[Figure::time("each", "us", 1e-3).bandwidth()],
    plan: plan_bandwidth,
};

const WINDOW: usize = 64;

fn plan_rate(o: &Options) -> Vec<Case> {
    let make = |n| {
        let k = o.iterations.unwrap_or(if n <= 1024 { 200 } else { 40 });
        Case::sized(n, format!("window {n} {k} {} {WINDOW}", o.warm(k)))
    };
    sizes(o, 8, 8 << 10).into_iter().map(make).collect()
}

fn plan_bandwidth(o: &Options) -> Vec<Case> {
    let make = |n: usize| {
        let window = ((32 << 20) / n).clamp(4, WINDOW);
        let k = o.iterations.unwrap_or((o.rounds_of(n) / 8).max(2));
        Case::sized(n, format!("window {n} {k} {} {window}", o.warm(k)))
    };
    sizes(o, 4 << 10, 16 << 20).into_iter().map(make).collect()
}

/// `window SIZE K WARM W`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, w) = (a[0] as usize, a[3] as i32);
    r.need(n * w as usize);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let at = |j: i32| n * j as usize;
    let mut each = 0.0;
    for k in [a[2], a[1]] {
        let t0 = now();
        for i in 0..k {
            if r.rank == 0 {
                for j in 0..w {
                    r.sb.stamp(at(j), n, i + j as i64);
                    r.isend(r.sb.at(at(j)), n, 1, j)?;
                }
                for j in 0..w {
                    r.isend_wait(1, j)?;
                }
                r.recv(r.rb.at(0), 0, 1, w)?;
            } else {
                for j in 0..w {
                    r.irecv(r.rb.at(at(j)), n, 0, j)?;
                }
                for j in 0..w {
                    r.irecv_wait(0, j)?;
                }
                for j in 0..w {
                    r.rb.check(at(j), n, i + j as i64)?;
                }
                r.send(r.sb.at(0), 0, 0, w)?;
            }
        }
        each = (now() - t0) / (k * w as i64) as f64;
    }
    Ok(vec![each])
}
