//! The time between two looks at a word that another core is about to write.
//!
//! Two cores that answer each other are in step: each look of the one falls at a certain moment of the other's store. A look that asks for the
//! line while its writer is making it its own sends it back and forth once more, and in such a step they stay. How long the pause is that
//! the processor offers (`pause`) decides which step that is: on Zen 5 a bad one, 55 ns for a line between near cores where 38 are possible.
//! Reading the counter of the clock takes another time, and not always the same: the two fall into a better step, and out of a bad one.
//!
//! ```text
//!   writer   makes the line its own ──── stores                makes the line its own ─ stores
//!   looker      look ↑   takes it back ↑     look ↑                                       look ↑
//! ```
//!
//! Which of the two it is stands in the tuning file (`look_by_clock`), or is set (`FMPL_LOOK_BY_CLOCK`).

use super::atomics::{Setting, spin_loop};

/// 1: by the clock's counter.
static BY_CLOCK: Setting = Setting::new(0);
/// Looks by the counter for one by the processor's pause, in about the same time.
const LOOKS: u32 = 2;
/// Readings of the counter that are timed.
const READINGS: u32 = 256;
/// Where one takes longer than this, as in virtual machines that answer it themselves, the counter is not read.
const DEAR_NS: u64 = 50;

/// From the tuning file, or a setting: is the counter read between two looks?
pub fn configure(by_clock: bool) {
    BY_CLOCK.set((by_clock && is_cheap()) as u64);
}

/// Is the counter read between two looks?
#[inline(always)]
fn by_clock() -> bool {
    cfg!(all(target_arch = "x86_64", not(any(loom, miri, test)))) && BY_CLOCK.get() != 0
}

/// So many looks take as long as `n` with the processor's pause between them; one stays one.
#[inline(always)]
pub fn looks(n: u32) -> u32 {
    if by_clock() && n > 1 { n * LOOKS } else { n }
}

/// What is done between two looks.
#[inline(always)]
pub fn between_looks() {
    if by_clock() { counter() } else { spin_loop() }
}

#[inline(always)]
fn counter() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri, test))))]
    // SAFETY: every x86-64 processor has a counter that programs may read; where they may not, `is_cheap` has met that.
    core::hint::black_box(unsafe { core::arch::x86_64::_rdtsc() });
}

fn is_cheap() -> bool {
    if !cfg!(all(target_arch = "x86_64", not(any(loom, miri, test)))) {
        return false;
    }
    let start = super::clock::now_ns();
    (0..READINGS).for_each(|_| counter());
    super::clock::now_ns() - start <= READINGS as u64 * DEAR_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Patience for one look, as ranks have that share cores, stays so; and what is read between looks can be read anywhere.
    #[test]
    fn one_look_stays_one() {
        configure(true);
        assert_eq!(looks(1), 1);
        assert!(looks(48) >= 48);
        between_looks();
        configure(false);
        assert_eq!(looks(48), 48);
    }
}
