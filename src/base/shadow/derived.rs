//! Words that are looked at as something else than a number: truth values and pointers.

use core::sync::atomic::{self as real, Ordering};

use static_assertions::const_assert;

use super::{AtomicU8, AtomicU64};

/// As [`core::sync::atomic::AtomicBool`].
#[repr(transparent)]
#[derive(Default, Debug)]
pub struct AtomicBool(AtomicU8);

impl AtomicBool {
    /// As [`core::sync::atomic`].
    pub const fn new(value: bool) -> AtomicBool {
        AtomicBool(AtomicU8::new(value as u8))
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn load(&self, order: Ordering) -> bool {
        self.0.load(order) != 0
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn store(&self, value: bool, order: Ordering) {
        self.0.store(value as u8, order);
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value as u8, order) != 0
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn compare_exchange(&self, old: bool, new: bool, good: Ordering, bad: Ordering) -> Result<bool, bool> {
        let exchanged = self.0.compare_exchange(old as u8, new as u8, good, bad);
        exchanged.map(|n| n != 0).map_err(|n| n != 0)
    }
}

/// As [`core::sync::atomic::AtomicPtr`].
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicPtr<T>(real::AtomicPtr<T>);

const_assert!(size_of::<AtomicPtr<u8>>() == size_of::<AtomicU64>());
const_assert!(align_of::<AtomicPtr<u8>>() == align_of::<AtomicU64>());

impl<T> AtomicPtr<T> {
    /// As [`core::sync::atomic`].
    pub const fn new(value: *mut T) -> AtomicPtr<T> {
        AtomicPtr(real::AtomicPtr::new(value))
    }
    fn word(&self) -> &AtomicU64 {
        // SAFETY: of the same size and alignment (asserted above), and all bits are a number.
        unsafe { &*(&raw const *self).cast() }
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn load(&self, order: Ordering) -> *mut T {
        self.word().load(order) as *mut T
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn store(&self, value: *mut T, order: Ordering) {
        self.word().store(value as u64, order);
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        self.word().swap(value as u64, order) as *mut T
    }
    /// As [`core::sync::atomic`].
    #[track_caller]
    pub fn compare_exchange(&self, old: *mut T, new: *mut T, good: Ordering, bad: Ordering) -> Result<*mut T, *mut T> {
        let exchanged = self.word().compare_exchange(old as u64, new as u64, good, bad);
        exchanged.map(|p| p as *mut T).map_err(|p| p as *mut T)
    }
    /// As [`core::sync::atomic`].
    pub fn into_inner(self) -> *mut T {
        self.0.into_inner()
    }
}
