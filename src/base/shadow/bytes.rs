//! Runs of bytes in a model: which of the checker's cells they are.

use super::*;

pub(super) fn granules(at: usize, n: usize) -> impl Iterator<Item = usize> {
    (at & !7..at + n).step_by(8)
}

/// Reads shared memory as payload.
pub fn reads(from: *const u8, n: usize) {
    if !ACTIVE.get() || n == 0 || !with(|m| m.shares(from as usize)) {
        return;
    }
    for granule in granules(from as usize, n) {
        with(|m| m.cell(granule)).with(|_| ());
    }
}

/// Is about to write shared memory as payload.
pub fn writes(to: *const u8, n: usize) {
    if !ACTIVE.get() || n == 0 || !with(|m| m.shares(to as usize)) {
        return;
    }
    for granule in granules(to as usize, n) {
        with(|m| m.cell(granule)).with_mut(|_| ());
    }
}

/// Copies a payload.
///
/// # Safety
/// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    reads(from, n);
    writes(to, n);
    // SAFETY: as the caller promises.
    unsafe { core::ptr::copy_nonoverlapping(from, to, n) };
    if !ACTIVE.get() || !with(|m| m.shares(to as usize)) {
        return;
    }
    // Where a payload covers what is, or was, a record's word, a look at that word sees the payload.
    for at in granules(to as usize, n).filter(|at| *at >= to as usize && at + 8 <= to as usize + n) {
        let word = with(|m| m.words64.get(&at).cloned());
        if let Some(word) = word {
            // SAFETY: within what was written just now.
            word.store(unsafe { (at as *const u64).read() }, Ordering::Relaxed);
        }
    }
}
