//! Operations on another rank's global memory, one at a time, each completed before the next.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use fmpl::base::bytes::Room;
use fmpl::ffi::{acp, c};

use super::calls::{calls, error_text};
use super::rank::{Outcome, Rank, rounds};
use super::{Bench, Case, Figure, Options, size_text, sizes};

pub static BENCH: Bench = Bench {
    name: "rma",
    about: "put, get, fetch-add and completion, one at a time (MPI: MPI_Put, MPI_Get, MPI_Fetch_and_op and MPI_Win_flush)",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("each", "ns", 1.0).bandwidth()],
    plan,
};

pub static THIRD: Bench = Bench {
    name: "rma3",
    about: "a copy between two ranks, made by a third one and by the owner of the source",
    ranks: 3,
    indices: 64,
    figures: &[Figure::time("third", "ns", 1.0), Figure::time("owner", "ns", 1.0)],
    plan: plan_third,
};

const PUT: i64 = 0;
const GET: i64 = 1;
const ADD: i64 = 2;

fn rounds_of(o: &Options, n: usize) -> i64 {
    o.iterations.unwrap_or(if n <= 64 { 20_000 } else { (64 << 20 >> 5) as i64 / n as i64 + 20 })
}

fn plan(o: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, name) in [(PUT, "put"), (GET, "get")] {
        for n in sizes(o, 8, 1 << 20) {
            let k = rounds_of(o, n);
            let case = Case::sized(n, format!("rma {kind} {n} {k} {}", o.warm(k))).by_rank();
            cases.push(Case { label: format!("{name} {}", size_text(n)), ..case });
        }
    }
    let k = rounds_of(o, 8);
    cases.push(Case::named_only("fetch-add 8 B", format!("rma {ADD} 8 {k} {}", o.warm(k))).by_rank().of_doubles());
    cases
}

fn plan_third(o: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for (private, name) in [(0, "fmpl_alloc"), (1, "private")] {
        for n in sizes(o, 8, 1 << 20) {
            let k = o.iterations.unwrap_or(((32 << 20) / n as i64).clamp(10, 5000));
            let case = Case::sized(n, format!("rma3 {private} {n} {k} {}", o.warm(k))).by_rank();
            cases.push(Case { label: format!("{name} {}", size_text(n)), x: None, ..case });
        }
    }
    cases
}

calls! {
    /// The calls on global memory, whose addresses the library checks.
    Calls of acp {
        acp_init as init() -> c_int = (null_mut() => *mut c_int, null_mut() => *mut *mut *mut c_char);
        acp_finalize as finalize() -> c_int = ();
        acp_copy as copy(to: u64, from: u64, n: usize) -> i64 = (to => u64, from => u64, n => usize, 0 => i64);
        acp_add8 as add8(to: u64, at: u64) -> i64 = (to => u64, at => u64, 1 => u64, 0 => i64);
        acp_complete as complete(handle: i64) = (handle => i64);
        acp_query_starter_ga as starter(rank: i32) -> u64 = (rank => c_int);
        acp_query_address as address(ga: u64) -> *mut c_void = (ga => u64);
        acp_register_memory as register(p: Room<'static>) -> u64
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, 0 => c_int);
        acp_unregister_memory as unregister(key: u64) -> c_int = (key => u64);
        acp_query_ga as ga_of(key: u64, p: Room<'static>) -> u64
            = (key => u64, p.as_mut_ptr().cast() => *mut c_void);
    }
}

calls! {
    /// Memory that all ranks can reach.
    Heap of c {
        fmpl_alloc as alloc(bytes: usize) -> *mut c_void = (bytes => usize);
        fmpl_free as free(at: *mut c_void) -> c_int = (at => *mut c_void);
    }
}

/// Registered memory, for the length of a block.
struct Memory {
    calls: Calls,
    /// What of it is `fmpl_alloc`'s.
    heap: Option<*mut c_void>,
    key: u64,
    /// The global address of what the block works on.
    ga: u64,
}

const PAGE: usize = 4096;

impl Memory {
    /// Of the rank's own buffer or of the heap; what the block works on lies so many bytes behind a page as the rank's buffers do.
    fn new(r: &mut Rank, calls: Calls, len: usize, private: bool) -> Result<Memory, String> {
        let bytes = len.next_multiple_of(PAGE) + 2 * PAGE;
        let (heap, all, behind) = if private {
            r.need(bytes);
            (None, r.sb.part(0, bytes), 0)
        } else {
            let at = Heap::new().alloc(bytes);
            if at.is_null() {
                return Err(format!("no {bytes} bytes"));
            }
            // SAFETY: so many bytes, which are given back when nobody has them any more: the registration ends before.
            let all = unsafe { Room::new(at.cast(), bytes) };
            (Some(at), all, all.as_ptr().align_offset(PAGE) + r.offset[0])
        };
        all.fill(1);
        let key = calls.register(all);
        Ok(Memory { calls, heap, key, ga: calls.ga_of(key, all.part(behind, len)) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = self.calls.unregister(self.key);
        let _ = self.heap.map(|at| Heap::new().free(at));
    }
}

/// Everybody's address of the memory, by way of the starter memory.
fn addresses(r: &Rank, memory: &Memory) -> Result<Vec<u64>, String> {
    let calls = &memory.calls;
    let mine = calls.starter(r.rank);
    // SAFETY: own starter memory, which has 10 KiB until the end of global memory.
    let words = unsafe { Room::new(calls.address(mine).cast(), 16) };
    words.word().store(memory.ga, Ordering::Relaxed);
    r.barrier()?;
    let mut all = Vec::new();
    for rank in 0..r.size {
        calls.complete(calls.copy(mine + 8, calls.starter(rank), 8));
        all.push(words.part(8, 8).word().load(Ordering::Relaxed));
    }
    r.barrier()?;
    Ok(all)
}

/// `rma KIND SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (kind, n) = (a[0], a[1] as usize);
    let calls = Calls::new();
    calls.init()?;
    let memory = Memory::new(r, calls, n, false)?;
    let all = addresses(r, &memory)?;
    let mut each = 0.0;
    if r.rank == 0 {
        let (mine, theirs) = (all[0], all[1]);
        each = rounds(a[2], a[3], |_| {
            let handle = match kind {
                PUT => calls.copy(theirs, mine, n),
                GET => calls.copy(mine, theirs, n),
                _ => calls.add8(mine, theirs),
            };
            if handle == 0 || handle & acp::ACP_HANDLE_REFUSED as i64 != 0 {
                return Err(error_text(-1));
            }
            calls.complete(handle);
            Ok(())
        })?;
    }
    r.barrier()?;
    drop(memory);
    calls.finalize()?;
    Ok(vec![each])
}

/// `rma3 PRIVATE SIZE K WARM`
pub fn third(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[1] as usize;
    let calls = Calls::new();
    calls.init()?;
    let memory = Memory::new(r, calls, n, a[0] != 0)?;
    let all = addresses(r, &memory)?;
    let mut each = [0.0; 2];
    for (turn, each) in each.iter_mut().enumerate() {
        r.barrier()?;
        if r.rank == turn as i32 {
            // Who waits for this rank yields for a while before it sleeps, and one of them may share its processor.
            std::thread::sleep(std::time::Duration::from_millis(3));
            *each = rounds(a[2], a[3], |_| {
                calls.complete(calls.copy(all[2], all[1], n));
                Ok(())
            })?;
        }
        r.barrier()?;
    }
    if r.rank == 1 {
        r.send_figures(&each[1..], 0)?;
    } else if r.rank == 0 {
        r.recv_figures(&mut each[1..], 1, 0)?;
    }
    r.barrier()?;
    drop(memory);
    calls.finalize()?;
    Ok(each.to_vec())
}
