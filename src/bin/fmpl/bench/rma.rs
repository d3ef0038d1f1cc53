//! Operations on another rank's global memory, one at a time, each completed before the next.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use fmpl::ffi::{acp, c};

use super::calls::calls;
use super::rank::{Outcome, Rank, now};
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

fn rounds(o: &Options, n: usize) -> i64 {
    o.iterations.unwrap_or(if n <= 64 { 20_000 } else { (64 << 20 >> 5) as i64 / n as i64 + 20 })
}

fn plan(o: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, name) in [(PUT, "put"), (GET, "get")] {
        for n in sizes(o, 8, 1 << 20) {
            let k = rounds(o, n);
            let case = Case::sized(n, format!("rma {kind} {n} {k} {}", o.warm(k))).by_rank();
            cases.push(Case { label: format!("{name} {}", size_text(n)), ..case });
        }
    }
    let k = rounds(o, 8);
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
    /// The functions that the loops use.
    Calls of acp {
        acp_copy as copy(u64, u64, usize, i64) -> i64;
        acp_add8 as add8(u64, u64, u64, i64) -> i64;
        acp_complete as complete(i64);
    }
}

fn ok(r: &Rank, code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(r.calls.error_text(code)) }
}

/// Registered memory, for the length of a block.
struct Memory {
    at: *mut u8,
    private: bool,
    len: usize,
    key: u64,
    /// The global address of what the block works on.
    ga: u64,
}

const PAGE: usize = 4096;

impl Memory {
    /// `behind`: so many bytes behind a page lies what the block works on.
    fn new(len: usize, behind: usize, private: bool) -> Result<Memory, String> {
        let len = len.next_multiple_of(PAGE) + 2 * PAGE;
        let layout = std::alloc::Layout::from_size_align(len, PAGE).map_err(|e| e.to_string())?;
        // SAFETY: not of size 0; the library checks what it is given, and the block ends the registration before the memory goes.
        unsafe {
            let at: *mut u8 = if private { std::alloc::alloc(layout) } else { c::fmpl_alloc(len).cast() };
            if at.is_null() {
                return Err(format!("no {len} bytes"));
            }
            at.write_bytes(1, len);
            let key = acp::acp_register_memory(at.cast::<c_void>(), len, 0);
            let place = at.add(at.align_offset(PAGE) + behind);
            Ok(Memory { at, private, len, key, ga: acp::acp_query_ga(key, place.cast()) })
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: as it was made.
        unsafe {
            acp::acp_unregister_memory(self.key);
            if self.private {
                std::alloc::dealloc(self.at, std::alloc::Layout::from_size_align_unchecked(self.len, PAGE));
            } else {
                c::fmpl_free(self.at.cast());
            }
        }
    }
}

/// Everybody's address of the memory, by way of the starter memory.
fn addresses(r: &Rank, memory: &Memory) -> Result<Vec<u64>, String> {
    // SAFETY: no memory.
    let starter = |rank: i32| unsafe { acp::acp_query_starter_ga(rank) };
    // SAFETY: own starter memory, which has 10 KiB.
    let words = unsafe { acp::acp_query_address(starter(r.rank)).cast::<u64>() };
    // SAFETY: as above.
    unsafe { words.write_volatile(memory.ga) };
    r.barrier()?;
    let mut all = Vec::new();
    for rank in 0..r.size {
        // SAFETY: as above.
        unsafe {
            acp::acp_complete(acp::acp_copy(starter(r.rank) + 8, starter(rank), 8, 0));
            all.push(words.add(1).read_volatile());
        }
    }
    r.barrier()?;
    Ok(all)
}

/// `rma KIND SIZE K WARM`
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let (kind, n) = (a[0], a[1] as usize);
    // SAFETY: null pointers are allowed.
    ok(r, unsafe { acp::acp_init(null_mut(), null_mut()) })?;
    let memory = Memory::new(n, r.offset[0], false)?;
    let all = addresses(r, &memory)?;
    let mut each = 0.0;
    if r.rank == 0 {
        let calls = Calls::new();
        let (mine, theirs) = (all[0], all[1]);
        let mut t0 = 0.0;
        for i in 0..a[2] + a[3] {
            if i == a[3] {
                t0 = now();
            }
            // SAFETY: registered memory.
            let handle = unsafe {
                match kind {
                    PUT => (calls.copy)(theirs, mine, n, 0),
                    GET => (calls.copy)(mine, theirs, n, 0),
                    _ => (calls.add8)(mine, theirs, 1, 0),
                }
            };
            if handle == 0 || handle & acp::ACP_HANDLE_REFUSED as i64 != 0 {
                return Err(r.calls.error_text(-1));
            }
            // SAFETY: no memory.
            unsafe { (calls.complete)(handle) };
        }
        each = (now() - t0) / a[2] as f64;
    }
    r.barrier()?;
    drop(memory);
    // SAFETY: no memory.
    ok(r, unsafe { acp::acp_finalize() })?;
    Ok(vec![each])
}

/// `rma3 PRIVATE SIZE K WARM`
pub fn third(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[1] as usize;
    // SAFETY: null pointers are allowed.
    ok(r, unsafe { acp::acp_init(null_mut(), null_mut()) })?;
    let memory = Memory::new(n, r.offset[0], a[0] != 0)?;
    let all = addresses(r, &memory)?;
    let calls = Calls::new();
    let mut each = [0.0; 2];
    for (turn, each) in each.iter_mut().enumerate() {
        r.barrier()?;
        if r.rank == turn as i32 {
            // Who waits for this rank yields for a while before it sleeps, and one of them may share its processor.
            std::thread::sleep(std::time::Duration::from_millis(3));
            let mut t0 = 0.0;
            for i in 0..a[2] + a[3] {
                if i == a[3] {
                    t0 = now();
                }
                // SAFETY: registered memory.
                unsafe { (calls.complete)((calls.copy)(all[2], all[1], n, 0)) };
            }
            *each = (now() - t0) / a[2] as f64;
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
    // SAFETY: no memory.
    ok(r, unsafe { acp::acp_finalize() })?;
    Ok(each.to_vec())
}
