//! Waiting ranks must not burn cores: all ranks but 0 wait in a receive for a second; from 20 ms on their processor time is counted
//! by the scheduler's own account.

use std::time::Duration;

use super::rank::{Outcome, Rank};
use super::{Bench, Case, Figure, Options};

pub static BENCH: Bench = Bench {
    name: "idle",
    about: "8 ranks, all but one waiting for a second: processor time of a waiting rank after the first 20 ms (FMPL only)",
    ranks: 8,
    indices: 64,
    figures: &[Figure::time("most of a rank", "ms", 1e-6), Figure::time("mean", "ms", 1e-6)],
    plan,
};

fn plan(_: &Options) -> Vec<Case> {
    vec![Case::named_only("waiting 1 s", "idle 1000".into()).blocks(1).cold()]
}

/// `idle MS`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    r.need(8);
    let mut pid = [std::process::id() as f64];
    if r.rank != 0 {
        r.send_figures(&pid, 1)?;
        r.recv(r.rb.part(0, 8), 0, 0)?;
        return Ok(vec![]);
    }
    let mut pids = Vec::new();
    for src in 1..r.size {
        r.recv_figures(&mut pid, src, 1)?;
        pids.push(pid[0] as u32);
    }
    std::thread::sleep(Duration::from_millis(20));
    let before: Vec<f64> = pids.iter().map(|p| processor_ns(*p)).collect();
    std::thread::sleep(Duration::from_millis(a[0] as u64));
    let spent: Vec<f64> = pids.iter().zip(before).map(|(p, b)| processor_ns(*p) - b).collect();
    for dst in 1..r.size {
        r.send(r.sb.part(0, 8), dst, 0)?;
    }
    Ok(vec![spent.iter().fold(0.0, |m, s| s.max(m)), spent.iter().sum::<f64>() / spent.len() as f64])
}

/// Nanoseconds on a processor, of all threads of a process.
fn processor_ns(pid: u32) -> f64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let of = |path: std::path::PathBuf| -> Option<f64> {
        std::fs::read_to_string(path.join("schedstat")).ok()?.split_ascii_whitespace().next()?.parse().ok()
    };
    threads.flatten().filter_map(|t| of(t.path())).sum()
}
