//! The stall report: who waits for whom, and whether it is a deadlock.
//!
//! A wait that outlives `FMPL_STALL` says so once, with what the peer waits for in turn, as far as the chain goes. When the chain
//! comes back to this process, no process in it has another thread, and nothing has changed on a second look, it is a deadlock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::board::{Board, Operation, Waits};
use super::doorbell;
use crate::base::clock::now_ns;
use crate::base::config::OnDeadlock;
use crate::base::error::{Code, Error};
use crate::base::log;
use crate::base::trace::traced;

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

type Known = Option<(&'static dyn Job, OnDeadlock)>;

static JOB: OnceLock<std::sync::Mutex<Known>> = OnceLock::new();
static NAMED: AtomicBool = AtomicBool::new(false);

/// From the first look at a cycle to the second: longer than the longest sleep, so that whatever still moves has moved.
const SECOND_LOOK: std::time::Duration = std::time::Duration::from_millis(300);

/// Tells the report about the job; `None` when it has ended.
pub fn set_job(job: Known) {
    *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner()) = job;
    NAMED.store(false, Ordering::Relaxed);
}

fn describe(rank: u32, w: &Waits, now: u64) -> String {
    let seconds = now.saturating_sub(w.since_ns) as f64 / 1e9;
    let what = match w.operation {
        Operation::Send => format!("send(dst {}, index {}, {} bytes)", w.peer, w.index, w.bytes),
        Operation::Recv => format!("recv(src {}, index {})", w.peer, w.index),
        Operation::RecvAny => format!("recv(src {}, any index)", w.peer),
        Operation::Barrier => format!("barrier(comm {}), for rank {}", w.comm, w.peer),
        Operation::Finalize => format!("finalize, for rank {}", w.peer),
        Operation::RecvAnySource => format!("recv_any(index {})", w.index),
        Operation::Global => format!("complete (global memory), for rank {}", w.peer),
        Operation::Multicast => "mcast_wait, for its members".to_owned(),
        Operation::SendAny => format!("send_any(dst {}, index {}, {} bytes)", w.peer, w.index, w.bytes),
        collective => format!("{}(comm {}, {} bytes), for rank {}", collective.name(), w.comm, w.bytes, w.peer),
    };
    format!("rank {rank}: {seconds:.1} s in {what}")
}

/// Prints the report of a wait of this process. With `FMPL_DEADLOCK=abort` the waits of a deadlock are condemned: see [`verdict`].
pub fn report(mine: &Waits) {
    let Some((job, on_deadlock)) = *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner()) else {
        return;
    };
    let now = now_ns();
    let mut lines = vec![describe(job.rank(), mine, now)];
    let chain = follow(job, mine, Some((&mut lines, now)));
    log::report(&format!("stalled: {}", lines.join("; ")));
    traced!(crate::base::trace::write(Some("stalled")));
    let Some(cycle) = chain else { return };
    std::thread::sleep(SECOND_LOOK);
    if follow(job, mine, None).as_ref() != Some(&cycle) {
        return;
    }
    let names: Vec<String> = cycle.iter().map(|(rank, _)| rank.to_string()).collect();
    let text = format!("ranks {} wait for each other in a cycle", names.join(" -> "));
    // One voice for the cycle: who began to wait last, and so is the only one sure to find it closed when its time has come.
    let last = cycle.iter().max_by_key(|(rank, since)| (*since, *rank)).map(|(rank, _)| *rank);
    if last == Some(job.rank()) && !NAMED.swap(true, Ordering::Relaxed) {
        log::report(&format!("deadlock: {text}"));
    }
    if last == Some(job.rank()) && on_deadlock == OnDeadlock::Abort {
        // All of them: once one has left the cycle, the others could not find it any more.
        for board in cycle.iter().filter_map(|(rank, _)| job.board(*rank)) {
            board.condemned_ns.fetch_max(now, Ordering::AcqRel);
            doorbell::ring(&board.bell, u32::MAX);
        }
    }
}

/// The error of a wait of this process that is part of a deadlock, with `FMPL_DEADLOCK=abort`.
pub fn verdict(board: &Board, started_ns: u64) -> Option<Error> {
    (started_ns < board.condemned_ns.load(Ordering::Acquire)).then(|| {
        Error::new(
            Code::Deadlock,
            "this wait is part of a cycle of waits, named on the standard error of one of its ranks",
        )
    })
}

/// Follows the waits from `mine` on; the cycle, when they come back here.
fn follow(job: &dyn Job, mine: &Waits, mut out: Option<(&mut Vec<String>, u64)>) -> Option<Vec<(u32, u64)>> {
    let mut cycle = vec![(job.rank(), mine.since_ns)];
    let mut certain = job.threads(job.rank()) <= 1;
    let mut rank = mine.peer;
    let of_many = |o| matches!(o, Operation::RecvAnySource | Operation::Multicast | Operation::Global);
    if of_many(mine.operation) {
        return None; // Anybody may end it.
    }
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
        certain &=
            matches!(next.operation, Operation::Send | Operation::Recv | Operation::RecvAny | Operation::SendAny);
        if of_many(next.operation) {
            return None;
        }
        cycle.push((rank, next.since_ns));
        rank = next.peer;
    }
    let start = cycle.iter().position(|(r, _)| *r == rank)?;
    (certain && start == 0).then_some(cycle)
}
