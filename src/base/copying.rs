//! How bytes are copied. The C library's copy knows neither who has the lines nor who wants them next; where that matters:
//!
//! | | what | for |
//! |---|---|---|
//! | plain | the C library's | short messages, and what stays in the inner caches |
//! | wide | 256 B to 2 KiB by the widest loads and stores that a processor with AVX has, line by line | parts of long messages, whose lines two cores write and read in turn: half to four fifths of the time |
//! | cached | the same up to 64 KiB | copies within the inner caches: four fifths of the time, and never twice as long, as `rep movsb` takes in some processes, by which the C library copies more than 2 KiB |
//! | past | stores past the caches | payloads that do not stay in them: an ordinary store fetches the line that it writes, and pushes another out, which is used next. Three copies of 8 MiB took half the time with two cores and a cache of 32 MiB |

use super::atomics::copy;

/// From this many bytes on no core's own cache keeps a payload.
pub const LONG: usize = 1 << 20;
/// What is copied wide; less is not worth it, and more the C library does as well or better.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const WIDE: core::ops::RangeInclusive<usize> = 256..=2048;
/// What is copied so within the caches.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const CACHED: core::ops::RangeInclusive<usize> = 256..=64 << 10;

/// How the parts of a payload are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// As the C library does.
    Plain,
    /// By whole lines, as far as that is better with another core's.
    Wide,
    /// By whole lines, as far as that is better within this core's caches.
    Cached,
    /// Past the caches.
    Past,
}

impl Copying {
    /// For where the receiver of a payload of `n` bytes reads it next: one that no cache keeps goes past them.
    pub fn of(n: usize) -> Copying {
        if n >= LONG { Copying::Past } else { Copying::Plain }
    }

    /// Copies a part of a payload. What orders it against the other side are the atomics around it.
    ///
    /// # Safety
    /// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
    #[inline(always)]
    pub unsafe fn copy(self, from: *const u8, to: *mut u8, n: usize) {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
        match self {
            Copying::Wide if WIDE.contains(&n) && std::arch::is_x86_feature_detected!("avx") => {
                // SAFETY: as the caller promises; the processor has AVX.
                return unsafe { by_lines(from, to, n) };
            }
            Copying::Cached if CACHED.contains(&n) && std::arch::is_x86_feature_detected!("avx") => {
                // SAFETY: as above.
                return unsafe { by_lines(from, to, n) };
            }
            Copying::Past if n >= 64 && std::arch::is_x86_feature_detected!("avx") => {
                // SAFETY: as above.
                return unsafe { past(from, to, n) };
            }
            _ => {}
        }
        // SAFETY: as the caller promises.
        unsafe { copy(from, to, n) }
    }
}

/// Two lines at a time, whole ones of the target.
///
/// # Safety
/// As for [`Copying::copy`], with `n` ≥ [`WIDE`]'s beginning; the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn by_lines(from: *const u8, to: *mut u8, n: usize) {
    use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    /// # Safety
    /// 128 readable bytes at `from`, 128 writable ones at `to`; the processor has AVX.
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn two_lines(from: *const u8, to: *mut u8) {
        let (from, to) = (from.cast::<__m256i>(), to.cast::<__m256i>());
        // SAFETY: four times 32 bytes on both sides, as the caller promises.
        unsafe {
            let (a, b) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            let (c, d) = (_mm256_loadu_si256(from.add(2)), _mm256_loadu_si256(from.add(3)));
            _mm256_storeu_si256(to, a);
            _mm256_storeu_si256(to.add(1), b);
            _mm256_storeu_si256(to.add(2), c);
            _mm256_storeu_si256(to.add(3), d);
        }
    }
    let mut at = 0;
    // SAFETY: `n` is at least two lines, and at + 128 ≤ n wherever something is copied.
    unsafe {
        let within = to as usize % 64;
        if within != 0 {
            two_lines(from, to);
            at = 64 - within;
        }
        while at + 128 <= n {
            two_lines(from.add(at), to.add(at));
            at += 128;
        }
        if at < n {
            two_lines(from.add(n - 128), to.add(n - 128));
        }
    }
}

/// By stores past the caches, the widest that a processor with AVX has: a line by two takes three quarters of the time that it takes by four.
///
/// # Safety
/// As for [`Copying::copy`]; at least 64 bytes; the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn past(from: *const u8, to: *mut u8, n: usize) {
    use core::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    // Whole lines of the destination.
    let head = to.align_offset(64);
    let end = head + (n - head) / 64 * 64;
    // SAFETY: all offsets are within the two runs; from `head` on the destination is aligned to a line. The fence orders these
    // stores before those that follow.
    unsafe {
        copy(from, to, head);
        let mut at = head;
        while at < end {
            let (source, line) = (from.add(at).cast::<__m256i>(), to.add(at).cast::<__m256i>());
            let (a, b) = (_mm256_loadu_si256(source), _mm256_loadu_si256(source.add(1)));
            _mm256_stream_si256(line, a);
            _mm256_stream_si256(line.add(1), b);
            at += 64;
        }
        _mm_sfence();
        copy(from.add(end), to.add(end), n - end);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_no_other() {
        const MOST: usize = LONG + 300;
        let source: Vec<u8> = (0..MOST + 200).map(|k| (k * 7 + k / 251) as u8).collect();
        let mut room = vec![0xeeu8; MOST + 300];
        let lengths = (0..700).step_by(3).chain([0, 1, 63, 64, 65, 127, 128, 255, 256, 257, 383, 384, 385]);
        let lengths = lengths.chain([1023, 1500, 2047, 2048, 2049, 4096, 9000, 65_536, 65_537, LONG, LONG + 63]);
        let shifts = [(0, 0), (1, 0), (0, 1), (63, 64), (17, 40), (64, 127)];
        for (n, (skip, shift)) in lengths.flat_map(|n| shifts.map(|s| (n, s))) {
            for how in [Copying::Plain, Copying::Wide, Copying::Cached, Copying::Past] {
                if n > 9000 && skip > 1 {
                    continue;
                }
                let at = room.as_ptr().align_offset(64) + shift;
                let (from, to) = (source[skip..].as_ptr(), room[at..].as_mut_ptr());
                // SAFETY: both have so many bytes behind the offsets.
                unsafe { how.copy(from, to, n) };
                assert!(room[at..at + n] == source[skip..skip + n], "{how:?} {skip} {shift} {n}");
                let around =
                    room[at.saturating_sub(200)..at].iter().chain(&room[at + n..(at + n + 140).min(MOST + 300)]);
                assert!(around.into_iter().all(|b| *b == 0xee), "{how:?} {skip} {shift} {n}: bytes around");
                room[at..at + n].fill(0xee);
            }
        }
    }
}
