//! The functions of `acp.h`, with slices and without `unsafe`. Those that do not say `try` want success.

use fmpl::ffi::acp::*;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const ALL: i64 = ACP_HANDLE_ALL as i64;
pub const CONT: i64 = ACP_HANDLE_CONT as i64;
pub const NOW: i64 = 0;

// SAFETY, for all calls of this file: the addresses are checked by the library; what is registered is kept by the callers, tests all,
// until the registration ends.

pub fn last_error() -> String {
    // SAFETY: the text ends with a NUL and stays until the thread's next failing call.
    unsafe { CStr::from_ptr(acp_last_error()) }.to_string_lossy().into_owned()
}
#[track_caller]
pub fn ok(code: i32) {
    assert!(code == 0, "{code}: {}", last_error());
}
#[track_caller]
pub fn init() {
    ok(acp_init(std::ptr::null_mut(), std::ptr::null_mut()));
}
pub fn try_finalize() -> i32 {
    // SAFETY: all is over that this rank has begun.
    let code = unsafe { acp_finalize() };
    crate::ranks::calls::FINALIZE_FAILED.fetch_or(code != 0, Ordering::Relaxed);
    code
}
#[track_caller]
pub fn finalize() {
    ok(try_finalize());
}
#[track_caller]
pub fn sync() {
    ok(acp_sync());
}
pub fn rank() -> i32 {
    acp_rank()
}
pub fn procs() -> i32 {
    acp_procs()
}
#[track_caller]
pub fn starter(rank: i32) -> u64 {
    let ga = acp_query_starter_ga(rank);
    assert!(ga != 0, "{}", last_error());
    ga
}
/// The own starter memory as words.
pub fn starter_words() -> &'static [AtomicU64] {
    // SAFETY: the starter memory has 10 KiB at least in these tests, and lives until finalize.
    unsafe { std::slice::from_raw_parts(acp_query_address(starter(rank())).cast(), 1280) }
}
pub fn try_register(at: *const u8, len: usize, colour: i32) -> u64 {
    // SAFETY: see above.
    unsafe { acp_register_memory(at.cast_mut().cast(), len, colour) }
}
/// Registers memory; its key and the address of its first byte.
#[track_caller]
pub fn register(at: *const u8, len: usize) -> (u64, u64) {
    let key = try_register(at, len, 0);
    assert!(key != 0, "{}", last_error());
    (key, address(key, at))
}
#[track_caller]
pub fn unregister(key: u64) {
    ok(acp_unregister_memory(key));
}
#[track_caller]
pub fn address(key: u64, at: *const u8) -> u64 {
    let ga = acp_query_ga(key, at.cast_mut().cast());
    assert!(ga != 0, "{}", last_error());
    ga
}
pub fn try_copy(dst: u64, src: u64, len: usize, order: i64) -> i64 {
    acp_copy(dst, src, len, order)
}
/// Was the operation refused?
pub fn is_refused(handle: i64) -> bool {
    handle & ACP_HANDLE_REFUSED as i64 != 0
}
#[track_caller]
pub fn copy(dst: u64, src: u64, len: usize, order: i64) -> i64 {
    let handle = try_copy(dst, src, len, order);
    assert!(handle > 0 && !is_refused(handle), "{}", last_error());
    handle
}
#[track_caller]
pub fn complete(handle: i64) {
    acp_errno();
    acp_complete(handle);
    assert!(acp_errno() == 0, "{}", last_error());
    assert_eq!(acp_inquire(handle), 0);
}
/// Completes with a failure: its number.
pub fn complete_with_error(handle: i64) -> i32 {
    acp_errno();
    acp_complete(handle);
    acp_errno()
}
pub fn inquire(handle: i64) -> bool {
    acp_inquire(handle) == 1
}
#[track_caller]
pub fn copy_now(dst: u64, src: u64, len: usize) {
    complete(copy(dst, src, len, NOW));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Cas,
    Swap,
    Add,
    Xor,
    Or,
    And,
}
pub const OPS: [Op; 6] = [Op::Cas, Op::Swap, Op::Add, Op::Xor, Op::Or, Op::And];

pub fn try_fetch8(op: Op, dst: u64, src: u64, value: u64, old: u64, order: i64) -> i64 {
    match op {
        Op::Cas => acp_cas8(dst, src, old, value, order),
        Op::Swap => acp_swap8(dst, src, value, order),
        Op::Add => acp_add8(dst, src, value, order),
        Op::Xor => acp_xor8(dst, src, value, order),
        Op::Or => acp_or8(dst, src, value, order),
        Op::And => acp_and8(dst, src, value, order),
    }
}
pub fn try_fetch4(op: Op, dst: u64, src: u64, value: u32, old: u32, order: i64) -> i64 {
    match op {
        Op::Cas => acp_cas4(dst, src, old, value, order),
        Op::Swap => acp_swap4(dst, src, value, order),
        Op::Add => acp_add4(dst, src, value, order),
        Op::Xor => acp_xor4(dst, src, value, order),
        Op::Or => acp_or4(dst, src, value, order),
        Op::And => acp_and4(dst, src, value, order),
    }
}
#[track_caller]
pub fn fetch8(op: Op, dst: u64, src: u64, value: u64, old: u64, order: i64) -> i64 {
    let handle = try_fetch8(op, dst, src, value, old, order);
    assert!(handle > 0 && !is_refused(handle), "{}", last_error());
    handle
}
#[track_caller]
pub fn fetch4(op: Op, dst: u64, src: u64, value: u32, old: u32, order: i64) -> i64 {
    let handle = try_fetch4(op, dst, src, value, old, order);
    assert!(handle > 0 && !is_refused(handle), "{}", last_error());
    handle
}
/// What an operation makes of a value.
pub fn result(op: Op, was: u64, value: u64, old: u64) -> u64 {
    match op {
        Op::Cas => {
            if was == old {
                value
            } else {
                was
            }
        }
        Op::Swap => value,
        Op::Add => was.wrapping_add(value),
        Op::Xor => was ^ value,
        Op::Or => was | value,
        Op::And => was & value,
    }
}

/// Memory of a test: bytes that may be looked at while others write them.
pub struct Memory {
    at: *mut u8,
    len: usize,
    kind: Kind,
}

/// Where memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `fmpl_alloc`
    Shared,
    /// The process's own.
    Private,
}

impl Memory {
    pub fn new(kind: Kind, len: usize) -> Memory {
        let at = match kind {
            Kind::Shared => {
                let at = fmpl::ffi::c::fmpl_alloc(len);
                assert!(!at.is_null(), "{}", last_error());
                at.cast()
            }
            Kind::Private => {
                let layout = std::alloc::Layout::from_size_align(len, 4096).unwrap();
                // SAFETY: not of size 0.
                unsafe { std::alloc::alloc_zeroed(layout) }
            }
        };
        let memory = Memory { at, len, kind };
        memory.fill(0);
        memory
    }
    pub fn ptr(&self) -> *const u8 {
        self.at
    }
    pub fn fill(&self, seed: u8) {
        let pattern: Vec<u8> =
            if seed == 0 { vec![0; self.len] } else { (0..self.len).map(|n| byte(seed, n)).collect() };
        self.set(&pattern);
    }
    /// Overwrites its first bytes.
    pub fn set(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len);
        // SAFETY: within the memory; a test looks at it by functions of this type only.
        unsafe { self.at.copy_from(bytes.as_ptr(), bytes.len()) };
    }
    /// Its first bytes.
    pub fn get(&self, n: usize) -> Vec<u8> {
        assert!(n <= self.len);
        let mut bytes = vec![0; n];
        // SAFETY: within the memory.
        unsafe { bytes.as_mut_ptr().copy_from(self.at, n) };
        bytes
    }
    pub fn at(&self, n: usize) -> u8 {
        assert!(n < self.len);
        // SAFETY: within the memory.
        unsafe { self.at.add(n).read_volatile() }
    }
    pub fn word(&self, n: usize) -> &AtomicU64 {
        assert!((n + 1) * 8 <= self.len);
        // SAFETY: within the memory, which is aligned.
        unsafe { &*self.at.add(n * 8).cast() }
    }
    pub fn half(&self, n: usize) -> &AtomicU32 {
        assert!((n + 1) * 4 <= self.len);
        // SAFETY: within the memory, which is aligned.
        unsafe { &*self.at.add(n * 4).cast() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: from `fmpl_alloc`.
            Kind::Shared => unsafe {
                fmpl::ffi::c::fmpl_free(self.at.cast());
            },
            // SAFETY: allocated so.
            Kind::Private => unsafe {
                std::alloc::dealloc(self.at, std::alloc::Layout::from_size_align(self.len, 4096).unwrap());
            },
        }
    }
}

/// The n-th byte of a pattern; 0 is nothing but zeros.
pub fn byte(seed: u8, n: usize) -> u8 {
    if seed == 0 { 0 } else { (n as u64).wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(seed) * 77).to_le_bytes()[1] }
}

/// Tells everybody's address of something: each rank puts its own at place `n` of everybody's starter memory.
pub fn exchange(n: usize, ga: u64) -> Vec<u64> {
    let (me, size) = (rank() as usize, procs() as usize);
    let words = starter_words();
    let first = 64 + n * 32;
    assert!(first + 32 <= words.len() && size <= 32);
    words[first + me].store(ga, Ordering::Release);
    sync();
    for other in 0..size {
        copy_now(
            starter(me as i32) + ((first + other) * 8) as u64,
            starter(other as i32) + ((first + other) * 8) as u64,
            8,
        );
    }
    let all = (0..size).map(|r| words[first + r].load(Ordering::Acquire)).collect();
    sync();
    all
}
