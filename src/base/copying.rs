//! The copy engine: how bytes of a payload move between memory of the program and memory that processes share.
//!
//! Short runs go by the C library's copy, which is at its best there. From [`LEAST`] bytes on the engine's own loops copy: they align the
//! destination to whole lines, whatever the source's alignment is, and take the same time at every alignment. The C library does not: on
//! many processors it copies 2 KiB to 1 MiB by `rep movsb`, which on Zen 3 runs at 3 GB/s in place of 50 where the source lies on 32 bytes
//! and the destination does not, as it does between shared memory and what `malloc` gives.
//!
//! | | what | for |
//! |---|---|---|
//! | cached | ordinary stores | payloads that stay in the caches |
//! | ahead | the same, behind requests for the lines | blocks that another core has read, where the tuning file says so |
//! | by string | the processor's own instruction (`rep movsb`) | what goes into lines that another core has, where the tuning file says so |
//! | past | stores past the caches | payloads that do not: an ordinary store fetches the line that it writes, and pushes another out, which is used next. Three copies of 8 MiB took half the time with two cores and a cache of 32 MiB |
//!
//! The loop is chosen once, by what the processor has and by how the library was built ([`Loop::best`]), or by the setting `FMPL_COPY`.

mod loops;

use super::atomics::{Setting, copy};
use super::config::Config;
use crate::base::variants::variants;

/// Shorter runs go by the C library.
pub const LEAST: usize = 128;
/// From this many bytes on no core's own cache keeps a payload: see [`long`].
static LONG: Setting = Setting::new(1 << 20);

/// From this many bytes on no core's own cache keeps a payload, as the tuning file says.
#[inline]
pub fn long() -> usize {
    LONG.get() as usize
}

/// Lines of so many bytes before the one that is stored into are asked for: see [`ahead`].
static AHEAD: Setting = Setting::new(0);

/// How many bytes ahead of its stores a copy asks for the lines that it writes, as the tuning file says; 0: it does not. Stores become
/// visible one after the other, so without it a copy into lines that another core has waits for few of them at a time.
#[inline(always)]
pub fn ahead() -> usize {
    AHEAD.get() as usize
}

/// How the parts of a payload are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// Into the caches.
    Cached,
    /// The same, of lines that another core has: they are asked for [`ahead`].
    Ahead,
    /// The same, from another core's.
    String,
    /// Past them.
    Past,
}

impl Copying {
    /// For where the receiver of a payload of `n` bytes reads it next: one that no cache keeps goes past them.
    pub fn of(n: usize) -> Copying {
        if n >= long() { Copying::Past } else { Copying::Cached }
    }

    /// Copies a part of a payload. What orders it against the other side are the atomics around it.
    ///
    /// # Safety
    /// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
    #[inline(always)]
    pub unsafe fn copy(self, from: *const u8, to: *mut u8, n: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                #[cfg(not(any(loom, miri)))]
                Copying::Past if n >= LEAST => past(from, to, n),
                #[cfg(not(any(loom, miri)))]
                Copying::Ahead if n >= LEAST => into_caches(from, to, n, ahead()),
                #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
                Copying::String if n >= LEAST => loops::string(from, to, n),
                _ => copy(from, to, n),
            }
        }
    }
}

variants! {
    /// What the engine copies by.
    pub enum Loop: u8, name {
        /// The C library's copy.
        Libc = 1 => "libc",
        /// Words, on any processor.
        Portable => "portable",
        /// Vectors of 16 bytes (x86-64).
        Sse2 => "sse2",
        /// Vectors of 32 bytes (x86-64 with AVX2).
        Avx2 => "avx2",
        /// Whole lines (x86-64 with AVX-512); past the caches as by the one before.
        Avx512 => "avx512",
    }
}

impl Loop {
    /// Can this processor run it?
    pub fn runs_here(self) -> bool {
        match self {
            Loop::Libc | Loop::Portable => true,
            Loop::Sse2 => cfg!(target_arch = "x86_64"),
            #[cfg(target_arch = "x86_64")]
            Loop::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            // The first processors with such vectors lower their clock for them; those that have these instructions, too, do not.
            #[cfg(target_arch = "x86_64")]
            Loop::Avx512 => {
                std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vbmi2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Loop::Avx2 | Loop::Avx512 => false,
        }
    }

    /// The widest that this processor runs. In builds that are not optimised our loops take several times as long as the C library's copy,
    /// and ten times in an emulator.
    pub fn best() -> Loop {
        if cfg!(debug_assertions) {
            return Loop::Libc;
        }
        *Loop::ALL.iter().rfind(|l| l.runs_here()).unwrap_or(&Loop::Portable)
    }
}

/// The loop in use; 0 until it is chosen.
static CHOSEN: Setting = Setting::new(0);

/// From the settings: one that was asked for, if this processor runs it, else the best. `past`: from so many bytes on a payload is long;
/// `ahead`: as [`ahead`] says.
pub fn configure(config: &Config, past: usize, ahead: usize) {
    LONG.set(past as u64);
    AHEAD.set(ahead as u64);
    CHOSEN.set(config.copy.filter(|l| l.runs_here()).unwrap_or_else(Loop::best) as u64);
}

/// The loop in use.
#[inline(always)]
pub fn chosen() -> Loop {
    Loop::from_number(CHOSEN.get() as u8).unwrap_or_else(choose)
}

#[cold]
fn choose() -> Loop {
    let best = Loop::best();
    CHOSEN.set(best as u64);
    best
}

/// Copies [`LEAST`] bytes or more, into the caches.
///
/// # Safety
/// As for [`Copying::copy`], with `n` ≥ [`LEAST`].
#[cfg(not(any(loom, miri)))]
pub unsafe fn cached(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { into_caches(from, to, n, 0) }
}

/// The same, asking ahead for lines.
///
/// # Safety
/// As for [`cached`].
#[cfg(not(any(loom, miri)))]
#[inline]
unsafe fn into_caches(from: *const u8, to: *mut u8, n: usize, ahead: usize) {
    // SAFETY: as the caller promises; a loop is chosen only where the processor runs it.
    unsafe {
        match chosen() {
            #[cfg(target_arch = "x86_64")]
            Loop::Avx512 => loops::cached_avx512(from, to, n, ahead),
            #[cfg(target_arch = "x86_64")]
            Loop::Avx2 => loops::cached_avx2(from, to, n, ahead),
            #[cfg(target_arch = "x86_64")]
            Loop::Sse2 => loops::cached_sse2(from, to, n, ahead),
            Loop::Libc => core::ptr::copy_nonoverlapping(from, to, n),
            _ => loops::cached_portable(from, to, n, ahead),
        }
    }
}

/// Copies [`LEAST`] bytes or more, past the caches where there are such stores.
///
/// # Safety
/// As for [`cached`].
#[cfg(not(any(loom, miri)))]
unsafe fn past(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as above.
    unsafe {
        match chosen() {
            #[cfg(target_arch = "x86_64")]
            Loop::Avx2 | Loop::Avx512 => loops::past_avx2(from, to, n),
            #[cfg(target_arch = "x86_64")]
            Loop::Sse2 | Loop::Libc => loops::past_sse2(from, to, n),
            _ => cached(from, to, n),
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;
