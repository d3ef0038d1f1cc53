//! The seam between the protocol and the machine: atomics, fences, pauses, and copies of memory that another side may look at.
//!
//! Under `--cfg loom` the words keep their size and place, but inside a model every access to memory that two sides share goes
//! to the model checker (`super::shadow`); the protocol above is the same source.

#[cfg(not(loom))]
pub use core::{
    hint::spin_loop,
    sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    },
};

#[cfg(loom)]
pub use super::shadow::{AtomicU32, AtomicU64, copy, fence, spin_loop};
#[cfg(loom)]
pub use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicUsize, Ordering};

/// Copies a payload. What orders it against the other side are the atomics around it.
///
/// # Safety
/// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
#[cfg(not(loom))]
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { core::ptr::copy_nonoverlapping(from, to, n) }
}
