//! All send to one, which does not receive for a while: what it costs the receiver in memory, and how fast it takes the messages then.

use super::memory::{proc_kb, pss_kb};
use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "incast",
    about: "8 senders (--ranks) of 1000 messages of 1 KB each to one that receives from any source after 1 s: drain, memory",
    ranks: 9,
    indices: 64,
    figures: &[
        Figure::time("a message, drained", "ns", 1.0),
        Figure::time("receiver grew, PSS", "KiB", 1.0).growth(),
        Figure::time("receiver grew, resident", "KiB", 1.0).growth(),
    ],
    plan,
};

fn plan(o: &Options) -> Vec<Case> {
    let k = o.iterations.unwrap_or(1000);
    let sizes = if o.sizes.is_empty() { vec![1024] } else { o.sizes.clone() };
    let case = |n: usize| Case::sized(n, format!("incast {n} {k} 1000")).blocks(o.blocks.unwrap_or(2)).cold();
    sizes.into_iter().map(case).collect()
}

/// `incast SIZE K MS`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (n, k) = (a[0] as usize, a[1]);
    r.need(n.max(8));
    let senders = r.size - 1;
    let resident = || proc_kb("/proc/self/status", "VmRSS:");
    if r.rank != 0 {
        // Everybody has met the receiver before anything is measured.
        r.send_any(r.sb.part(0, 0), 0, 1)?;
        r.barrier()?;
        for i in 0..k {
            r.sb.stamp(0, n, i + r.rank as i64);
            r.send_any(r.sb.part(0, n), 0, 0)?;
        }
        return Ok(vec![]);
    }
    for _ in 0..senders {
        r.recv_any(r.rb.part(0, 8), 1)?;
    }
    let mut next = vec![0i64; r.size as usize];
    let (pss, rss) = (pss_kb(), resident());
    r.barrier()?;
    // The receiver makes what progress it can, but receives nothing: as MPI's does in an MPI_Iprobe.
    let end = now() + a[2] as f64 * 1e6;
    while now() < end {
        r.progress()?;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let t0 = now();
    for _ in 0..k * senders as i64 {
        let src = r.recv_any(r.rb.part(0, n), 0)?;
        let seq = &mut next[src as usize];
        r.rb.check(0, n, *seq + src as i64)?;
        *seq += 1;
    }
    let each = (now() - t0) / (k * senders as i64) as f64;
    Ok(vec![each, pss_kb() - pss, resident() - rss])
}
