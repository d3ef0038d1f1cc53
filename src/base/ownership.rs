//! Which core owns a line that two of them use.
//!
//! Lines that one core writes and another reads, again and again, cost most where they are written: the writer has them still, but so has
//! the reader, whose copies must go first. On Zen 4 (cores with a cache in common) that takes 7 ns a line,
//! one after the other, although all lines are known beforehand; asking for them early changes nothing. A reader that *stores* into each
//! line after it has read it owns it from then on, and the writer gets it back by the dozen: 64 KiB from core to core through a ring of
//! 256 KiB take 2.3 µs in place of 7.8. The other way is a ring that no inner cache keeps (2 MiB: 2.2 µs), or one that both write in turn.
//!
//! ```text
//!   writer    W  W  W  ─ ─ ─   7 ns each: I own it, but the reader's copy must go
//!   reader       R  R  R
//!
//!   writer    W  W  W  ─ ─ ─   1.5 ns each, many at a time
//!   reader       Rs Rs Rs      s: a store into the line: mine
//! ```

use super::atomics::{Setting, writes};

/// 1: readers take lines over.
static TAKES: Setting = Setting::new(0);
/// From core to core lines come in this size on every processor on which it pays.
const LINE: usize = 64;

/// From the tuning file, or a setting: do readers take lines over?
pub fn configure(takes: bool) {
    TAKES.set(takes as u64);
}

/// Do readers take lines over?
#[inline(always)]
pub fn takes_over() -> bool {
    TAKES.get() != 0
}

/// Less is not worth it: the writer has so few lines under way at once in any case.
const LEAST: usize = if cfg!(loom) { LINE } else { 1024 };

/// What this core has read is written again by the core that wrote it: takes the whole lines of it over, if that pays. Their bytes are lost.
///
/// SYNC POINT: the stores come after the acquire by which this core found the payload, and before the release by which it says that it has
/// done with it (`finished` of a call, `consumed` of a ring, the `freed` of a share), which its writer acquires before it writes there again:
/// so they can destroy nothing that was written since. To the model checker they are writes of payload.
///
/// # Safety
/// `len` writable bytes at `at`, which nobody else reads or writes before this core says that it has read them.
#[inline(always)]
pub unsafe fn take_over(at: *mut u8, len: usize) {
    if len < LEAST || !takes_over() {
        return;
    }
    let first = (LINE - at as usize % LINE) % LINE;
    for line in (first..len - LINE + 1).step_by(LINE) {
        // A payload's store like any other for a model: it is a fault beside whatever the writer does there.
        writes(at.wrapping_add(line), 1);
        // SAFETY: as the caller promises. Volatile: nobody looks at what is stored, only at who has stored it.
        unsafe { at.add(line).write_volatile(0) };
    }
}
