//! The stall report: who waits for whom, and whether it is a deadlock.
//!
//! A wait that outlives `FMPL_STALL` says so once, with what the peer waits for in turn, as far as the chain goes. When the chain
//! comes back to this process, no process in it has another thread, and nothing has changed on a second look, it is a deadlock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::board::{Board, Operation, Waits};
use crate::base::clock::now_ns;
use crate::base::config::OnDeadlock;
use crate::base::error::{Code, Error, Result};

/// What the report needs to know of the job.
pub trait Job: Sync + Send {
    /// This process's rank.
    fn rank(&self) -> u32;
    /// The board of a rank of this node; `None`: it cannot be read.
    fn board(&self, rank: u32) -> Option<&Board>;
    /// Threads of a rank of this node that could call the library.
    fn threads(&self, rank: u32) -> usize;
}

/// Threads of a process, without the library's own.
pub fn threads_of(pid: u32) -> usize {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return usize::MAX };
    tasks
        .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok())
        .filter(|name| !name.starts_with("fmpl-"))
        .count()
}

static JOB: OnceLock<std::sync::Mutex<Option<(&'static dyn Job, OnDeadlock)>>> = OnceLock::new();
static NAMED: AtomicBool = AtomicBool::new(false);
static CONDEMNED_BEFORE: AtomicU64 = AtomicU64::new(0);

/// Tells the report about the job; `None` when it has ended.
pub fn set_job(job: Option<(&'static dyn Job, OnDeadlock)>) {
    *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner()) = job;
    NAMED.store(false, Ordering::Relaxed);
    CONDEMNED_BEFORE.store(0, Ordering::Relaxed);
}

fn describe(rank: u32, w: &Waits, now: u64) -> String {
    let seconds = now.saturating_sub(w.since_ns) as f64 / 1e9;
    let what = match w.operation {
        Operation::Send => format!("send(dst {}, index {}, {} bytes)", w.peer, w.index, w.bytes),
        Operation::Recv => format!("recv(src {}, index {})", w.peer, w.index),
        Operation::RecvAny => format!("recv(src {}, any index)", w.peer),
        Operation::Barrier => format!("barrier(comm {}), for rank {}", w.comm, w.peer),
        Operation::Finalize => format!("finalize, for rank {}", w.peer),
    };
    format!("rank {rank}: {seconds:.1} s in {what}")
}

/// Prints the report of a wait of this process; an error only for a deadlock that is to abort.
pub fn report(mine: &Waits) -> Result<()> {
    let Some((job, on_deadlock)) = *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner()) else {
        return Ok(());
    };
    let now = now_ns();
    let mut lines = vec![describe(job.rank(), mine, now)];
    let chain = follow(job, mine, Some((&mut lines, now)));
    eprintln!("fmpl: stalled: {}", lines.join("; "));
    let Some(cycle) = chain else { return Ok(()) };
    std::thread::sleep(std::time::Duration::from_millis(20));
    if follow(job, mine, None).as_ref() != Some(&cycle) {
        return Ok(());
    }
    let names: Vec<String> = cycle.iter().map(|(rank, _)| rank.to_string()).collect();
    let text = format!("ranks {} wait for each other in a cycle", names.join(" -> "));
    // One voice for the cycle: its lowest rank.
    if cycle.iter().map(|(rank, _)| *rank).min() == Some(job.rank()) && !NAMED.swap(true, Ordering::Relaxed) {
        eprintln!("fmpl: deadlock: {text}");
    }
    if on_deadlock == OnDeadlock::Abort {
        CONDEMNED_BEFORE.store(now, Ordering::Relaxed);
        return Err(Error::new(Code::Deadlock, format!("rank {}: {text}", job.rank())));
    }
    Ok(())
}

/// The error of a wait that began before a deadlock of this process was found, with `FMPL_DEADLOCK=abort`.
pub fn verdict(started_ns: u64) -> Option<Error> {
    let before = CONDEMNED_BEFORE.load(Ordering::Relaxed);
    (started_ns < before).then(|| Error::new(Code::Deadlock, "this wait is part of a cycle of waits"))
}

/// Follows the waits from `mine` on; the cycle, when they come back here.
fn follow(job: &dyn Job, mine: &Waits, mut out: Option<(&mut Vec<String>, u64)>) -> Option<Vec<(u32, u64)>> {
    let mut cycle = vec![(job.rank(), mine.since_ns)];
    let mut certain = job.threads(job.rank()) <= 1;
    let mut rank = mine.peer;
    while !cycle.iter().any(|(r, _)| *r == rank) {
        let Some(board) = job.board(rank) else {
            if let Some((lines, _)) = &mut out {
                lines.push(format!("rank {rank} cannot be seen"));
            }
            return None;
        };
        let waits = board.read();
        if let Some((lines, now)) = &mut out {
            match waits.is_empty() {
                true => lines.push(format!("rank {rank} waits for nobody: it computes, or is stopped")),
                false => lines.extend(waits.iter().map(|w| describe(rank, w, *now))),
            }
        }
        certain &= waits.len() == 1 && job.threads(rank) <= 1;
        let next = waits.first()?;
        // A barrier waits for all; only waits for one peer make a cycle that is certain.
        certain &= matches!(next.operation, Operation::Send | Operation::Recv | Operation::RecvAny);
        cycle.push((rank, next.since_ns));
        rank = next.peer;
    }
    let start = cycle.iter().position(|(r, _)| *r == rank)?;
    (certain && start == 0).then_some(cycle)
}
