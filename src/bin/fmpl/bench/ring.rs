//! A ring with more ranks than cores: a token of 8 B goes round all of them, or every rank passes one on at once. Ranks that wait
//! must leave the cores to those that have something to do.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "ring",
    about: "8 ranks, more than the cores: 8 B round the ring, one token (time per hop) and all at once (time per step)",
    ranks: 8,
    indices: 64,
    figures: &[Figure::time("hop or step", "us", 1e-3)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let k = o.iterations.unwrap_or(50);
    [("token", 0), ("all at once", 1)]
        .map(|(name, shift)| {
            Case::named_only(name, format!("ring 8 {k} {} {shift}", o.warm(k))).blocks(o.blocks.unwrap_or(9))
        })
        .into()
}

/// `ring SIZE K WARM SHIFT`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    let (next, before) = ((r.rank + 1) % r.size, (r.rank + r.size - 1) % r.size);
    let each = rounds(a[1], a[2], |i| {
        r.sb.stamp(0, n, i);
        if a[3] != 0 {
            r.exchange(n, next, before, 0)?;
        } else {
            if r.rank == 0 {
                r.send(r.sb.part(0, n), next, 0)?;
            }
            r.recv(r.rb.part(0, n), before, 0)?;
            if r.rank != 0 {
                r.send(r.sb.part(0, n), next, 0)?;
            }
        }
        r.rb.check(0, n, i)?;
        Ok(())
    })?;
    Ok(vec![if a[3] != 0 { each } else { each / r.size as f64 }])
}
