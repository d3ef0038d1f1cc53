//! Sleeping on a doorbell, and ringing it without a fence on the ringer's side.
//!
//! The sleeper reads the bell, says in the line it waits for that it sleeps, makes sure that everybody sees it, looks once
//! more, and sleeps on the value it read. The ringer stores its record, looks at the sleep byte in the same line, and rings only
//! if it is set. Between the ringer's store and its look there is no fence; the sleeper buys the order with `membarrier`, which
//! interrupts every running process of the job. Until the long sleep a short timed one does without.

use crate::base::atomics::{AtomicU32, Ordering, fence};
use core::sync::atomic::{AtomicBool, compiler_fence};

static BARRIER: AtomicBool = AtomicBool::new(false);

const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;

/// Registers this process for the expedited membarrier; called at init by every rank.
pub fn register() -> bool {
    // SAFETY: membarrier takes numbers only.
    let ok = unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_GLOBAL_EXPEDITED, 0, 0) } == 0;
    BARRIER.store(ok, Ordering::Relaxed);
    ok
}

/// In models the membarrier is there.
#[cfg(loom)]
pub fn claim_barrier() {
    BARRIER.store(true, Ordering::Relaxed);
}

/// Is the expedited membarrier there?
pub fn has_barrier() -> bool {
    BARRIER.load(Ordering::Relaxed)
}

/// Orders this thread's earlier stores before its later loads, and likewise on every running thread of the job.
/// `false` when the system refuses: callers then trust timed sleeps only.
#[cfg_attr(loom, track_caller)]
pub fn barrier() -> bool {
    #[cfg(loom)]
    if crate::base::shadow::is_active() {
        crate::base::shadow::membarrier();
        return true;
    }
    fence(Ordering::SeqCst);
    // SAFETY: membarrier takes numbers only.
    has_barrier() && unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL_EXPEDITED, 0, 0) } == 0
}

/// The side that [`barrier`] spares: orders this thread's earlier stores before its later loads, for whoever calls `barrier`.
/// It costs nothing but what the compiler may no longer do.
#[inline(always)]
pub fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// The bit of a futex's bit set that sleepers of this index share.
#[inline]
pub fn bit(index: usize) -> u32 {
    1 << (index & 31)
}

/// Sleeps until the bell's value is no longer `seen`, it is rung for one of `bits`, or `nanoseconds` are over.
pub fn sleep(bell: &AtomicU32, seen: u32, bits: u32, nanoseconds: u64) {
    #[cfg(loom)]
    if crate::base::shadow::sleep(bell, seen, bits, nanoseconds < 1_000_000) {
        return;
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let until = now.tv_nsec as u64 + nanoseconds;
    now.tv_sec += (until / 1_000_000_000) as libc::time_t;
    now.tv_nsec = (until % 1_000_000_000) as libc::c_long;
    // SAFETY: the bell is mapped for as long as the caller holds the reference; no FUTEX_PRIVATE_FLAG, since other processes
    // ring; the time-out is absolute, as FUTEX_WAIT_BITSET wants it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            bell as *const AtomicU32 as *const u32,
            libc::FUTEX_WAIT_BITSET,
            seen,
            &now as *const libc::timespec,
            core::ptr::null::<u32>(),
            bits,
        )
    };
}

/// Rings: changes the value and wakes whoever sleeps for one of `bits`.
#[cold]
pub fn ring(bell: &AtomicU32, bits: u32) {
    ring_some(bell, bits, i32::MAX);
}

/// Rings for at most so many of those who sleep for one of `bits`; how many were woken. (In a model all are, and none is counted.)
#[cold]
pub fn ring_some(bell: &AtomicU32, bits: u32, most: i32) -> i32 {
    bell.fetch_add(1, Ordering::Release);
    #[cfg(loom)]
    if crate::base::shadow::wake(bell, bits) {
        return 0;
    }
    // SAFETY: as in `sleep`.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            bell as *const AtomicU32 as *const u32,
            libc::FUTEX_WAKE_BITSET,
            most,
            core::ptr::null::<libc::timespec>(),
            core::ptr::null::<u32>(),
            bits,
        ) as i32
    }
}
