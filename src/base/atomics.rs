//! The seam between the protocol and the machine: atomics, fences, pauses, and copies of memory that another side may look at.
//!
//! Under `--cfg loom` the words keep their size and place, but inside a model every access to memory that two sides share goes
//! to the model checker (`super::shadow`); the protocol above is the same source.

#[cfg(not(loom))]
pub use super::lock::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::OnceLock;

#[cfg(any(miri, not(any(loom, test))))]
pub use core::hint::spin_loop;
#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// A pause in a loop that looks for something; in a test with simulated processes the others' turn.
#[cfg(all(test, not(any(loom, miri))))]
#[inline]
pub fn spin_loop() {
    if !super::simulation::pause() {
        core::hint::spin_loop();
    }
}

#[cfg(loom)]
pub use super::shadow::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Mutex, MutexGuard, OnceLock, Setting, changes,
    copy, fence, reads, spin_loop, uses, writes,
};
#[cfg(loom)]
pub use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// A number that a process sets at its start and reads often. Models, which run beside each other, have one each.
#[cfg(not(loom))]
pub struct Setting(AtomicU64);

#[cfg(not(loom))]
impl Setting {
    /// A setting that has this value until it is set.
    pub const fn new(value: u64) -> Setting {
        Setting(AtomicU64::new(value))
    }
    /// Its value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Changes it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Copies a payload, long ones by the copy engine ([`super::copying`]). What orders it against the other side are the atomics around it.
///
/// # Safety
/// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
#[cfg(not(loom))]
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        #[cfg(not(miri))]
        if n >= super::copying::LEAST {
            return super::copying::cached(from, to, n);
        }
        core::ptr::copy_nonoverlapping(from, to, n)
    }
}

/// Says that a payload is read in another way than by [`copy`]: to a model; nothing otherwise.
#[cfg(not(loom))]
#[inline(always)]
pub fn reads(_from: *const u8, _n: usize) {}

/// The same of a payload that is written.
#[cfg(not(loom))]
#[inline(always)]
pub fn writes(_to: *const u8, _n: usize) {}

/// Says that something is used which is made and freed beside its users: to a model; nothing otherwise.
#[cfg(not(loom))]
#[inline(always)]
pub fn uses<T>(_thing: &T) {}

/// The same of something that is made, or that ends, with nobody using it.
#[cfg(not(loom))]
#[inline(always)]
pub fn changes<T>(_thing: *const T, _ends: bool) {}
