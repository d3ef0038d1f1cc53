//! 10 000 messages that nobody has asked for yet, each on an index of its own, then received late and in reverse order: what they
//! cost in time, and in the receiver's memory.

use std::sync::atomic::Ordering;

use super::memory::{proc_kb, pss_kb};
use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "unexpected",
    about: "10 000 sends of 8 B on as many indices before any receive, then received in reverse order: time of each, memory of the receiver",
    ranks: 2,
    indices: 10_002,
    figures: &[
        Figure::time("send", "ns", 1.0),
        Figure::time("late receive", "ns", 1.0),
        Figure::time("receiver grew, PSS", "KiB", 1.0).growth(),
        Figure::time("receiver grew, shared", "KiB", 1.0).growth(),
    ],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let n = o.counts.first().copied().unwrap_or(10_000).min(10_000);
    vec![Case::counted(format!("{n} sends"), n, format!("unexpected {n}")).blocks(o.blocks.unwrap_or(3)).cold()]
}

/// `unexpected N`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as i32;
    r.need(n as usize * 8 + 8);
    if r.rank > 1 {
        return Ok(vec![]);
    }
    let mut v = [0.0; 4];
    if r.rank == 0 {
        r.timeout(0)?;
        r.send(r.sb.part(0, 8), 1, n)?;
        r.recv(r.rb.part(0, 0), 1, n)?;
        let t0 = now();
        for i in 0..n as i64 {
            r.sb.part(0, 8).word().store(i as u64, Ordering::Relaxed);
            r.send(r.sb.part(0, 8), 1, i as i32)?;
        }
        v[0] = (now() - t0) / n as f64;
        r.send(r.sb.part(0, 0), 1, n + 1)?;
        r.recv_figures(&mut v[1..], 1, n)?;
        r.timeout(10)?;
        return Ok(v.to_vec());
    }
    let taken = || (pss_kb(), proc_kb("/proc/self/status", "RssShmem:"));
    // Before anything is counted: code that runs for the first time takes memory too, but none for a message.
    r.recv(r.rb.part(0, 8), 0, n)?;
    taken();
    let (pss, shmem) = taken();
    r.send(r.sb.part(0, 0), 0, n)?;
    r.recv(r.rb.part(0, 0), 0, n + 1)?;
    let waiting = taken();
    let t0 = now();
    for i in (0..n).rev() {
        r.recv(r.rb.part(0, 8), 0, i)?;
        let found = r.rb.part(0, 8).word().load(Ordering::Relaxed);
        if found != i as u64 {
            return Err(format!("message {found} on index {i}"));
        }
    }
    v[1] = (now() - t0) / n as f64;
    // Once more after the receives: records of ours that only the receive touched count as well.
    let received = taken();
    v[2] = waiting.0.max(received.0) - pss;
    v[3] = waiting.1.max(received.1) - shmem;
    r.send_figures(&v[1..], n)?;
    Ok(vec![])
}
