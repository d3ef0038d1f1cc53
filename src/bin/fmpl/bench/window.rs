//! A window of non-blocking messages on as many indices, as `osu_bw` has them, answered once a window: the rate of short ones, the
//! bandwidth of long ones. The receiver waits for them in their order, or (`waitany`) takes each as it comes.

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options, sizes};

pub static BENCH: Bench = Bench {
    name: "window",
    about: "64 non-blocking messages under way on 64 indices (4 MB: 16, 16 MB: 4): the time of each",
    ranks: 2,
    indices: 128,
    figures: &[Figure::time("each", "us", 1e-3).bandwidth()],
    plan: |o| plan(o, 0),
};

pub static WAITANY: Bench = Bench {
    name: "waitany",
    about: "the same where the receiver takes each as it comes (MPI: MPI_Waitany)",
    plan: |o| plan(o, 1),
    ..BENCH
};

/// Messages under way.
const WINDOW: usize = 64;
/// Bytes of all of them at most, but for four of any size.
const ROOM: usize = 64 << 20;

fn plan(o: &Options, any: i64) -> Vec<Case> {
    let make = |n: usize| {
        let window = (ROOM / n).clamp(4, WINDOW);
        let k = o.iterations.unwrap_or(match n {
            0..=1024 => 200,
            1025..=8192 => 40,
            _ => (o.rounds_of(n) / 8).max(2),
        });
        Case::sized(n, format!("window {n} {k} {} {window} {any}", o.warm(k)))
    };
    sizes(o, 8, 16 << 20).into_iter().map(make).collect()
}

/// `window SIZE K WARM W ANY`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, w, any) = (a[0] as usize, a[3] as i32, a[4] != 0);
    r.need(n * w as usize);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let at = |j: i32| n * j as usize;
    let mut open = Vec::with_capacity(w as usize);
    let mut each = 0.0;
    for k in [a[2], a[1]] {
        let t0 = now();
        for i in 0..k {
            if r.rank == 0 {
                for j in 0..w {
                    r.sb.stamp(at(j), n, i + j as i64);
                    r.isend(r.sb.part(at(j), n), 1, j)?;
                }
                for j in 0..w {
                    r.isend_wait(1, j)?;
                }
                r.recv(r.rb.part(0, 0), 1, w)?;
            } else {
                for j in 0..w {
                    r.irecv(r.rb.part(at(j), n), 0, j)?;
                }
                if any {
                    open.extend(0..w);
                    take_as_they_come(r, &mut open)?;
                } else {
                    for j in 0..w {
                        r.irecv_wait(0, j)?;
                    }
                }
                for j in 0..w {
                    r.rb.check(at(j), n, i + j as i64)?;
                }
                r.send(r.sb.part(0, 0), 0, w)?;
            }
        }
        each = (now() - t0) / (k * w as i64) as f64;
    }
    Ok(vec![each])
}

/// Completes the receives on these indices, each when it is found done.
fn take_as_they_come(r: &Rank, open: &mut Vec<i32>) -> Result<(), String> {
    while !open.is_empty() {
        let mut failed = Ok(());
        open.retain(|j| match r.irecv_test(0, *j) {
            Ok(done) => !done,
            Err(e) => {
                failed = Err(e);
                true
            }
        });
        failed?;
    }
    Ok(())
}
