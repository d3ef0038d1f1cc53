//! Ping-pong between two ranks that receive from any source.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, sizes};

pub static BENCH: Bench = Bench {
    name: "anysource",
    about: "one-way time of a message that is received from any source (MPI: MPI_ANY_SOURCE), by size",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("one-way", "us", 1e-3).bandwidth()],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let case = |n: usize| {
        let k = o.rounds_of(n);
        Case::sized(n, format!("anysource {n} {k} {}", o.warm(k)))
    };
    sizes(o, 8, 1 << 20).into_iter().map(case).collect()
}

/// `anysource SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let peer = r.peer();
    let each = rounds(a[1], a[2], |i| {
        r.sb.stamp(0, n, i);
        if r.rank == 0 {
            r.send_any(r.sb.part(0, n), peer, 0)?;
        }
        if r.recv_any(r.rb.part(0, n), 0)? != peer {
            return Err(format!("message {i} is from somebody else"));
        }
        r.rb.check(0, n, i)?;
        if r.rank == 1 {
            r.send_any(r.sb.part(0, n), peer, 0)?;
        }
        Ok(())
    })?;
    Ok(vec![each / 2.0])
}
