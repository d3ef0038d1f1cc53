//! A receive of any index: ping-pong of 8 B over 65 536 indices in a scattered order, received by the index or by any.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "anyindex",
    about: "one-way time of 8 B over 65 536 indices in a scattered order, received by the index and by any index",
    ranks: 2,
    indices: 65_536,
    figures: &[Figure::time("one-way", "ns", 1.0)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let k = o.iterations.unwrap_or(20_000);
    [("indexed", 0), ("any", 1)]
        .map(|(name, any)| {
            Case::named_only(name, format!("anyindex {any} {k} {} {}", o.warm(k), BENCH.indices))
                .blocks(o.blocks.unwrap_or(5))
        })
        .into()
}

/// `anyindex ANY K WARM INDICES`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    r.need(8);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let (peer, any) = (r.peer(), a[0] != 0);
    let mut x = 12345u64;
    let each = rounds(a[1], a[2], |i| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let index = ((x >> 33) % a[3] as u64) as i32;
        let by = if any { fmpl::p2p::TAG_ANY } else { index };
        r.sb.stamp(0, 8, i);
        if r.rank == 0 {
            r.send(r.sb.part(0, 8), peer, index)?;
        }
        r.recv(r.rb.part(0, 8), peer, by)?;
        let found = r.received_index(peer, by)?;
        if found != index {
            return Err(format!("index {found} at message {i}, expected {index}"));
        }
        r.rb.check(0, 8, i)?;
        if r.rank == 1 {
            r.send(r.sb.part(0, 8), peer, index)?;
        }
        Ok(())
    })?;
    Ok(vec![each / 2.0])
}
