//! Exchange: both ranks send and receive at once, on the same index, as neighbours do with their halos.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, sizes};

pub static BENCH: Bench = Bench {
    name: "exchange",
    about: "sendrecv in both directions at once: the time of both messages",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("exchange", "us", 1e-3).bandwidth()],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let make = |n| {
        let k = o.rounds_of(n);
        Case::sized(n, format!("exchange {n} {k} {}", o.warm(k)))
    };
    sizes(o, 8, 1 << 20).into_iter().map(make).collect()
}

/// `exchange SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let (peer, me) = (r.peer(), r.rank as i64);
    let each = rounds(a[1], a[2], |i| {
        r.sb.stamp(0, n, i + me);
        r.exchange(n, peer, peer, 0)?;
        r.rb.check(0, n, i + 1 - me)?;
        Ok(())
    })?;
    Ok(vec![each])
}
