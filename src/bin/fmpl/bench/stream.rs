//! Stream: blocking sends one after the other on one index, one answer at the end.

use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options, sizes};

pub static BENCH: Bench = Bench {
    name: "stream",
    about: "blocking sends one after the other on one index: the time of each",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("each", "ns", 1.0).bandwidth()],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let make = |n| {
        let k = o.iterations.unwrap_or(if n <= 1024 { 10_000 } else { o.rounds_of(n) });
        Case::sized(n, format!("stream {n} {k} {}", o.warm(k)))
    };
    sizes(o, 8, 64 << 10).into_iter().map(make).collect()
}

/// `stream SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let mut each = 0.0;
    for k in [a[2], a[1]] {
        let t0 = now();
        if r.rank == 0 {
            for i in 0..k {
                r.sb.stamp(0, n, i);
                r.send(r.sb.part(0, n), 1, 0)?;
            }
            r.recv(r.rb.part(0, 0), 1, 1)?;
        } else {
            for i in 0..k {
                r.recv(r.rb.part(0, n), 0, 0)?;
                r.rb.check(0, n, i)?;
            }
            r.send(r.sb.part(0, 0), 0, 1)?;
        }
        each = (now() - t0) / k as f64;
    }
    Ok(vec![each])
}
