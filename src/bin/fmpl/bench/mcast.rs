//! Multicast to a group of half of the ranks: one after the other, each waited for. MPI broadcasts on a communicator of the same ranks,
//! which it has, or makes for each message. Each message is in another of several buffers.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, size_text};

pub static BENCH: Bench = Bench {
    name: "mcast",
    about: "multicast from rank 0 to every other one of 8 ranks (--ranks), or those from 1 on (--members), until all have it; MPI: MPI_Bcast and MPI_Barrier on a communicator that is there, or made each time",
    ranks: 8,
    indices: 64,
    figures: &[Figure::time("a multicast", "us", 1e-3)],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let sizes = if o.sizes.is_empty() { vec![8 << 10, 80 << 10, 8 << 20] } else { o.sizes.clone() };
    let case = |n: usize, fresh: i64| {
        let k = o.iterations.unwrap_or(match n {
            0..=16_384 => 300,
            16_385..=1_048_576 => 60,
            _ => 8,
        });
        let name = if fresh == 0 { "ready" } else { "fresh group" };
        let label = format!("{} {name}", size_text(n));
        let members = o.members.unwrap_or(0);
        Case { label, ..Case::sized(n, format!("mcast {n} {k} {} {fresh} {members}", o.warm(k))) }
            .blocks(o.blocks.unwrap_or(7))
    };
    sizes.into_iter().flat_map(|n| [case(n, 0), case(n, 1)]).collect()
}

/// `mcast SIZE K WARM FRESH MEMBERS`: the group is named anew each time in any case. MEMBERS: ranks from 1 on; 0: every other rank.
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    // As those of the collective calls: what a rank has read before is nowhere in its caches because nobody has written it since.
    let buffers = ((8 << 20) / n).clamp(2, 64);
    r.need(buffers * n);
    let at = |i: i64| i as usize % buffers * n;
    let size = r.size.min(64);
    let members = match a[4] as i32 {
        0 => (1..size / 2).fold(0u64, |m, k| m | 1 << (2 * k)),
        n => (1..size.min(n + 1)).fold(0, |m, k| m | 1 << k),
    };
    if r.rank == 0 {
        let each = rounds(a[1], a[2], |i| {
            r.sb.stamp(at(i), n, i);
            let ticket = r.mcast(r.sb.part(at(i), n), &[members])?;
            r.mcast_wait(ticket)
        });
        return Ok(vec![each?]);
    }
    if members >> r.rank & 1 == 1 {
        for i in 0..a[1] + a[2] {
            r.mcast_recv(r.rb.part(at(i), n))?;
            r.rb.check(at(i), n, i)?;
        }
    }
    Ok(vec![])
}
