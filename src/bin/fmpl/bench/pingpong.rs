//! Ping-pong: the one-way time of a message, from one buffer into another on each side; `echo`: the received buffer itself is sent
//! back, so that every byte really moves between the cores' caches; with `--strided RUN` both sides are strided.

use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, sizes};
use fmpl::p2p::layout::Block;

pub static BENCH: Bench = Bench {
    name: "pingpong",
    about: "one-way time of a message (--strided RUN: from and into runs of RUN bytes)",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("one-way", "us", 1e-3).bandwidth()],
    plan: |o| match o.strided {
        Some(run) => plan(o, STRIDED, run),
        None => plan(o, SEPARATE, 0),
    },
};

pub static ECHOED: Bench = Bench {
    name: "echo",
    about: "the same where the received buffer goes back: all bytes move between the caches",
    plan: |o| plan(o, ECHO, 0),
    ..BENCH
};

/// What both buffers are.
pub const SEPARATE: i64 = 0;
pub const ECHO: i64 = 1;
pub const STRIDED: i64 = 2;

fn plan(o: &Options, mode: i64, run: usize) -> Vec<Case> {
    sizes(o, 8, 16 << 20)
        .into_iter()
        .filter(|n| mode != STRIDED || n % run.max(1) == 0)
        .map(|n| case(o, n, mode, run))
        .collect()
}

/// A ping-pong of this size.
pub fn case(o: &Options, n: usize, mode: i64, run: usize) -> Case {
    let k = o.rounds_of(n);
    let case = Case::sized(n, format!("pingpong {n} {k} {} {mode} {run}", o.warm(k)));
    if mode == ECHO { case.by_rank() } else { case }
}

/// `pingpong SIZE K WARM MODE RUN`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, k, warm) = (a[0] as usize, a[1], a[2]);
    let run = a[4].max(1) as usize;
    let strided = a[3] == STRIDED;
    let shape = Block { run, count: n / run, stride: 2 * run as isize };
    let span = if strided { 2 * n - run } else { n };
    r.need(if strided { 2 * n } else { n });
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let from = if a[3] == ECHO { &r.rb } else { &r.sb };
    let peer = r.peer();
    let send = |r: &Rank| {
        if strided { r.send_block(from.part(0, span), shape, peer, 0) } else { r.send(from.part(0, n), peer, 0) }
    };
    let recv = |r: &Rank| {
        if strided { r.recv_block(r.rb.part(0, span), shape, peer, 0) } else { r.recv(r.rb.part(0, n), peer, 0) }
    };
    let each = rounds(k, warm, |i| {
        if r.rank == 0 {
            from.stamp(0, span, i);
            send(r)?;
            recv(r)?;
            r.rb.check(0, span, i + 77)?;
        } else {
            recv(r)?;
            r.rb.check(0, span, i)?;
            from.stamp(0, span, i + 77);
            send(r)?;
        }
        Ok(())
    })?;
    Ok(vec![each / 2.0])
}
