//! What memory a rank takes once every rank has met every other, as the kernel counts it: the proportional set size, in which a
//! page shared by n processes counts 1/n for each.

use super::rank::{Outcome, Rank};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "memory",
    about: "64 ranks with 1024 indices, after all have met: the memory (PSS) of a rank",
    ranks: 64,
    indices: 1024,
    figures: &[Figure::time("PSS, mean", "KiB", 1.0), Figure::time("PSS, most", "KiB", 1.0)],
    plan,
};

fn plan(_: &Options) -> Vec<Case> {
    vec![Case::named_only("all have met", "memory".into()).blocks(1)]
}

/// `memory`
pub fn block(r: &mut Rank, _: &[i64]) -> Outcome {
    r.need(8);
    let n = r.size;
    for step in 1..n {
        r.exchange(8, (r.rank + step) % n, (r.rank + n - step) % n, 0)?;
    }
    r.barrier()?;
    let mut pss = [pss_kb()];
    let (mut sum, mut most) = (pss[0], pss[0]);
    if r.rank == 0 {
        for src in 1..n {
            r.recv_figures(&mut pss, src, 1)?;
            sum += pss[0];
            most = most.max(pss[0]);
        }
    } else {
        r.send_figures(&pss, 1)?;
    }
    // Nobody leaves, and so changes a neighbour's share, before all have looked.
    r.barrier()?;
    Ok(vec![sum / n as f64, most])
}

/// The number behind `name` in a file of /proc/self, in KiB; 0 when the kernel does not tell.
pub fn proc_kb(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.split_ascii_whitespace().next()).and_then(|w| w.parse().ok()).unwrap_or(0.0)
}

/// The proportional set size of this process.
pub fn pss_kb() -> f64 {
    proc_kb("/proc/self/smaps_rollup", "Pss:")
}
