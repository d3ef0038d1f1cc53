//! What may lie in memory that processes share, and be looked at there by reference.

use crate::base::atomics::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A type of atomic numbers only.
///
/// # Safety
/// Whatever bytes lie there, they are a value of it; others may change them at any time; and it needs no drop.
pub unsafe trait Record: Sync + 'static {}

macro_rules! records {
    ($($t:ty)*) => { $(
        // SAFETY: an atomic number.
        unsafe impl Record for $t {}
    )* };
}
records!(AtomicU8 AtomicU16 AtomicU32 AtomicU64);

// SAFETY: its elements are.
unsafe impl<T: Record, const N: usize> Record for [T; N] {}
