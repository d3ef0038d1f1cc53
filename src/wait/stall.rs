//! The stall report: who waits for whom, and whether it is a deadlock.
//!
//! A wait that outlives `FMPL_STALL` says so once, with what the peer waits for in turn, as far as the chain goes. When the chain
//! comes back to this process and no process in it has another thread, it is a [`Suspicion`]: a deadlock, if the same waits go on
//! though each of their threads has looked for what it waits for since.

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

/// From one look at a cycle to the next: longer than the longest sleep.
const NEXT_LOOK_NS: u64 = 300_000_000;
/// And where there is no cycle, at last.
const LAST_LOOK_NS: u64 = 10_000_000_000;
/// Rounds in which each wait of a cycle has looked twice, so once from beginning to end: in the first, threads may still have done
/// for each other what lay about (a buffered message, an answer); in the second they would have found it. However late a thread
/// of a busy machine gets its turn, a message that is there for it is never taken for none.
const ROUNDS: u32 = 2;

/// Tells the report about the job; `None` when it has ended.
pub fn set_job(job: Known) {
    *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner()) = job;
    NAMED.store(false, Ordering::Relaxed);
}

fn job() -> Known {
    *JOB.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner())
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
        Operation::Several if w.peer == rank => "waitany".to_owned(),
        Operation::Several => format!("waitany, one of them recv(src {}, index {})", w.peer, w.index),
        Operation::Multicast => "mcast_wait, for its members".to_owned(),
        Operation::SendAny => format!("send_any(dst {}, index {}, {} bytes)", w.peer, w.index, w.bytes),
        collective => format!("{}(comm {}, {} bytes), for rank {}", collective.name(), w.comm, w.bytes, w.peer),
    };
    format!("rank {rank}: {seconds:.1} s in {what}")
}

/// Prints the report of a wait of this process, which is looked at again from then on: see [`Suspicion`].
pub fn report(mine: &Waits) -> Option<Box<Suspicion>> {
    let (job, _) = job()?;
    let now = now_ns();
    let mut lines = vec![describe(job.rank(), mine, now)];
    let cycle = follow(job, mine, Some((&mut lines, now)));
    log::report(&format!("stalled: {}", lines.join("; ")));
    traced!(crate::base::trace::write(Some("stalled")));
    let mut suspicion = Box::new(Suspicion::default());
    suspicion.begin(job, cycle, now);
    Some(suspicion)
}

/// A wait of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Member {
    rank: u32,
    since_ns: u64,
}

/// Waits that may be a deadlock, as the thread sees them whose own wait has been reported.
#[derive(Default)]
pub struct Suspicion {
    /// The cycle; empty: there is none that is certain.
    cycle: Vec<Member>,
    /// How often each has looked at the beginning of the round.
    looks: Vec<u32>,
    rounds: u32,
    next_ns: u64,
    pause_ns: u64,
}

impl Suspicion {
    /// The chain of waits is this one from now on. Where it is no cycle it is looked at ever more seldom: some process may not have been seen,
    /// or have had another thread for a moment.
    fn begin(&mut self, job: &dyn Job, cycle: Option<Vec<Member>>, now: u64) {
        self.cycle = cycle.unwrap_or_default();
        self.looks = looks(job, &self.cycle).unwrap_or_default();
        if self.looks.is_empty() {
            self.cycle.clear();
        }
        self.rounds = 0;
        self.pause_ns = match self.cycle.is_empty() {
            true => (2 * self.pause_ns).clamp(NEXT_LOOK_NS, LAST_LOOK_NS),
            false => NEXT_LOOK_NS,
        };
        self.next_ns = now + self.pause_ns;
    }

    /// A later look, by the thread that suspects; `false`: it has been named. A deadlock is named, and with `FMPL_DEADLOCK=abort` its waits are
    /// condemned: see [`verdict`].
    pub fn goes_on(&mut self, mine: &Waits, now: u64) -> bool {
        if now < self.next_ns {
            return true;
        }
        let Some((job, on_deadlock)) = job() else { return false };
        let cycle = follow(job, mine, None);
        let looks = looks(job, &self.cycle).filter(|_| cycle.as_ref() == Some(&self.cycle));
        let Some(looks) = looks else {
            self.begin(job, cycle, now);
            return true;
        };
        self.next_ns = now + NEXT_LOOK_NS;
        if looks.iter().zip(&self.looks).all(|(new, old)| new.wrapping_sub(*old) >= 2) {
            self.looks = looks;
            self.rounds += 1;
        }
        if self.rounds < ROUNDS {
            return true;
        }
        self.name(job, on_deadlock, now);
        false
    }

    fn name(&self, job: &dyn Job, on_deadlock: OnDeadlock, now: u64) {
        // One voice for the cycle: who began to wait last, and so is the only one sure to find it closed when its time has come.
        let last = self.cycle.iter().max_by_key(|m| (m.since_ns, m.rank)).map(|m| m.rank);
        if last != Some(job.rank()) {
            return;
        }
        if !NAMED.swap(true, Ordering::Relaxed) {
            let names: Vec<String> = self.cycle.iter().map(|m| m.rank.to_string()).collect();
            log::report(&format!("deadlock: ranks {} wait for each other in a cycle", names.join(" -> ")));
        }
        if on_deadlock == OnDeadlock::Abort {
            // All of them: once one has left the cycle, the others could not find it any more.
            for board in self.cycle.iter().filter_map(|m| job.board(m.rank)) {
                board.condemned_ns.fetch_max(now, Ordering::AcqRel);
                doorbell::ring(&board.bell, u32::MAX);
            }
        }
    }
}

/// How often each wait of a cycle has looked; `None`: one of them has ended.
fn looks(job: &dyn Job, cycle: &[Member]) -> Option<Vec<u32>> {
    cycle.iter().map(|m| job.board(m.rank)?.looks(m.since_ns)).collect()
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

/// Does a wait end by what this one peer does in a call of the program's? A barrier waits for all; and a message of a collective call (its
/// index is the library's, below 0) may come while its sender waits for something else, or hang on a third rank's part.
fn is_of_one(wait: &Waits) -> bool {
    match wait.operation {
        Operation::Send | Operation::Recv => wait.index >= 0,
        Operation::RecvAny | Operation::SendAny => true,
        _ => false,
    }
}

/// Follows the waits from `mine` on; the cycle, when they come back here.
fn follow(job: &dyn Job, mine: &Waits, mut out: Option<(&mut Vec<String>, u64)>) -> Option<Vec<Member>> {
    let mut cycle = vec![Member { rank: job.rank(), since_ns: mine.since_ns }];
    let mut certain = job.threads(job.rank()) <= 1 && is_of_one(mine);
    let mut rank = mine.peer;
    let of_many =
        |o| matches!(o, Operation::RecvAnySource | Operation::Multicast | Operation::Global | Operation::Several);
    if of_many(mine.operation) {
        return None; // Anybody may end it.
    }
    while !cycle.iter().any(|m| m.rank == rank) {
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
        certain &= is_of_one(next);
        if of_many(next.operation) {
            return None;
        }
        cycle.push(Member { rank, since_ns: next.since_ns });
        rank = next.peer;
    }
    let start = cycle.iter().position(|m| m.rank == rank)?;
    (certain && start == 0).then_some(cycle)
}
