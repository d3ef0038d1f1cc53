//! The loops of the copy engine, written once for vectors of any width.
//!
//! ```text
//!            |<- head ->|  whole lines of the destination, two at a time   |<- tail ->|
//!  to     ...|..........|================|================|================|..........|
//!             < 1 line                                                < 1 line
//! ```
//!
//! Head and tail go by two copies that may overlap: some bytes are written twice, with the same value unless somebody writes the source
//! meanwhile. So nothing is copied by the byte.

use core::ptr::{copy_nonoverlapping, read_unaligned, write_unaligned};

use crate::base::prefetch::prefetch_run_to_write;

/// The lines that a destination is aligned to. A larger or smaller one of a processor costs nothing but a little speed.
const LINE: usize = 64;
/// What a turn of the loop copies.
const TURN: usize = 2 * LINE;

/// What one instruction loads and stores.
pub trait Unit: Copy {
    /// # Safety
    /// Readable at `at`, whatever the alignment; the processor has the instruction.
    unsafe fn load(at: *const u8) -> Self;
    /// # Safety
    /// Writable at `at`, whatever the alignment; the processor has the instruction.
    unsafe fn store(self, at: *mut u8);
    /// Past the caches.
    ///
    /// # Safety
    /// Writable at `at`, which is aligned; the processor has the instruction.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no other processor's loop goes there"))]
    unsafe fn stream(self, at: *mut u8);
}

impl Unit for u64 {
    #[inline(always)]
    unsafe fn load(at: *const u8) -> u64 {
        // SAFETY: as the caller promises.
        unsafe { read_unaligned(at.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { write_unaligned(at.cast(), self) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { self.store(at) }
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::Unit;
    use core::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128, _mm256_loadu_si256,
        _mm256_storeu_si256, _mm256_stream_si256, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512,
    };

    macro_rules! unit {
        ($t:ty, $load:ident, $store:ident, $stream:ident) => {
            impl Unit for $t {
                #[inline(always)]
                unsafe fn load(at: *const u8) -> $t {
                    // SAFETY: as the caller promises.
                    unsafe { $load(at.cast()) }
                }
                #[inline(always)]
                unsafe fn store(self, at: *mut u8) {
                    // SAFETY: as the caller promises.
                    unsafe { $store(at.cast(), self) }
                }
                #[inline(always)]
                unsafe fn stream(self, at: *mut u8) {
                    // SAFETY: as the caller promises.
                    unsafe { $stream(at.cast(), self) }
                }
            }
        };
    }
    unit!(__m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128);
    unit!(__m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256);
    unit!(__m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512);
}

/// [`TURN`] bytes, four units loaded before they are stored, or the two that it has.
///
/// # Safety
/// So many readable and writable bytes; the processor has the unit's instructions.
#[inline(always)]
unsafe fn two_lines<U: Unit>(from: *const u8, to: *mut u8) {
    let unit = size_of::<U>();
    let mut at = 0;
    while at < TURN {
        // SAFETY: within the two lines.
        unsafe {
            let (from, to) = (from.add(at), to.add(at));
            let (a, b) = (U::load(from), U::load(from.add(unit)));
            let rest = (2 * unit < TURN).then(|| (U::load(from.add(2 * unit)), U::load(from.add(3 * unit))));
            a.store(to);
            b.store(to.add(unit));
            if let Some((c, d)) = rest {
                c.store(to.add(2 * unit));
                d.store(to.add(3 * unit));
            }
        }
        at += 4 * unit;
    }
}

/// At most a line, by two copies that may overlap, and nothing beyond it: a store over the end of a line takes two, over the end of a page more
/// than ten.
///
/// # Safety
/// 0 < `n` ≤ [`LINE`] readable and writable bytes.
#[inline(always)]
unsafe fn part_line(from: *const u8, to: *mut u8, n: usize) {
    macro_rules! ends {
        ($half:literal) => {{
            copy_nonoverlapping(from, to, $half);
            copy_nonoverlapping(from.add(n - $half), to.add(n - $half), $half);
        }};
    }
    // SAFETY: as the caller promises.
    unsafe {
        match n {
            33.. => ends!(32),
            17.. => ends!(16),
            9.. => ends!(8),
            5.. => ends!(4),
            3.. => ends!(2),
            _ => ends!(1),
        }
    }
}

/// Asks for the lines that are `ahead` bytes behind those that it stores into; 0: does not.
///
/// # Safety
/// `n` ≥ [`TURN`] readable and writable bytes that do not overlap; the processor has the unit's instructions.
#[inline(always)]
unsafe fn cached<U: Unit>(from: *const u8, to: *mut u8, n: usize, ahead: usize) {
    // SAFETY: at + TURN ≤ n wherever something is copied.
    unsafe {
        let mut at = to.align_offset(LINE);
        if at != 0 {
            part_line(from, to, at);
        }
        if ahead != 0 {
            prefetch_run_to_write(to.add(at), ahead.min(n - at));
            while at + ahead + TURN <= n {
                prefetch_run_to_write(to.add(at + ahead), TURN);
                two_lines::<U>(from.add(at), to.add(at));
                at += TURN;
            }
        }
        while at + TURN <= n {
            two_lines::<U>(from.add(at), to.add(at));
            at += TURN;
        }
        if at + LINE <= n {
            part_line(from.add(at), to.add(at), LINE);
            at += LINE;
        }
        if at < n {
            part_line(from.add(at), to.add(at), n - at);
        }
    }
}

/// Past the caches, but for what is no whole line at the ends. The fence orders these stores before those that follow.
///
/// # Safety
/// As for [`cached`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn past<U: Unit>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as above; streams go to whole lines.
    unsafe {
        let mut at = to.align_offset(LINE);
        copy_nonoverlapping(from, to, at);
        while at + LINE <= n {
            // A line by few wide stores, one behind the other, leaves as one write.
            let end = at + LINE;
            while at < end {
                let (a, b) = (U::load(from.add(at)), U::load(from.add(at + size_of::<U>())));
                a.stream(to.add(at));
                b.stream(to.add(at + size_of::<U>()));
                at += 2 * size_of::<U>();
            }
        }
        copy_nonoverlapping(from.add(at), to.add(at), n - at);
        core::arch::x86_64::_mm_sfence();
    }
}

/// # Safety
/// As for [`cached`].
pub unsafe fn cached_portable(from: *const u8, to: *mut u8, n: usize, ahead: usize) {
    // SAFETY: as the caller promises.
    unsafe { cached::<u64>(from, to, n, ahead) }
}

/// By the processor's own instruction for strings, which on some takes whole lines over from another core without having read them.
///
/// # Safety
/// As for [`cached`].
#[cfg(target_arch = "x86_64")]
pub unsafe fn string(from: *const u8, to: *mut u8, n: usize) {
    use core::arch::x86_64::__m128i;
    // SAFETY: at + lines ≤ n, and the ends are within n.
    unsafe {
        let at = to.align_offset(LINE);
        if at != 0 {
            two_lines::<__m128i>(from, to);
        }
        let lines = (n - at) & !(LINE - 1);
        core::arch::asm!(
            "rep movsb",
            inout("rcx") lines => _,
            inout("rsi") from.add(at) => _,
            inout("rdi") to.add(at) => _,
            options(nostack, preserves_flags),
        );
        if at + lines < n {
            two_lines::<__m128i>(from.add(n - TURN), to.add(n - TURN));
        }
    }
}

macro_rules! vectored {
    ($($unit:ident, $feature:literal: $loop:ident($($ahead:ident)?) = $name:ident;)*) => { $(
        /// # Safety
        /// As for [`cached`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        pub unsafe fn $name(from: *const u8, to: *mut u8, n: usize $(, $ahead: usize)?) {
            // SAFETY: as the caller promises.
            unsafe { $loop::<core::arch::x86_64::$unit>(from, to, n $(, $ahead)?) }
        }
    )* };
}
vectored! {
    __m512i, "avx512f": cached(ahead) = cached_avx512;
    __m256i, "avx2": cached(ahead) = cached_avx2;
    __m256i, "avx2": past() = past_avx2;
    __m128i, "sse2": cached(ahead) = cached_sse2;
    __m128i, "sse2": past() = past_sse2;
}
