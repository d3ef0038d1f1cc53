//! Copies past the caches, for payloads that do not stay in them.
//!
//! An ordinary store fetches the line that it writes, and pushes another out of the cache; a long copy so moves twice the bytes that it
//! writes, and what it pushes out is what is used next. Stores past the caches do neither. On a processor of two cores with a cache of
//! 32 MiB three copies of 8 MiB took half the time.

use super::atomics::copy;

/// From this many bytes on a payload goes past the caches: no core's own cache keeps so much.
pub const LONG: usize = 1 << 20;

/// Copies a part of a payload of `whole` bytes, past the caches if that is long. What orders it against the other side are the atomics
/// around it.
///
/// # Safety
/// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
pub unsafe fn copy_part(from: *const u8, to: *mut u8, n: usize, whole: usize) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    if whole >= LONG && n >= 64 {
        // SAFETY: as the caller promises.
        unsafe { stream(from, to, n) };
        return;
    }
    let _ = whole;
    // SAFETY: as the caller promises.
    unsafe { copy(from, to, n) }
}

/// # Safety
/// As for [`copy_part`]; at least 64 bytes.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
unsafe fn stream(from: *const u8, to: *mut u8, n: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    // Whole lines of the destination.
    let head = to.align_offset(64);
    let end = head + (n - head) / 64 * 64;
    // SAFETY: all offsets are within the two runs; from `head` on the destination is aligned to a line. The fence orders these
    // stores before those that follow.
    unsafe {
        copy(from, to, head);
        let mut at = head;
        while at < end {
            let (source, line) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
            let words = [0, 1, 2, 3].map(|k| _mm_loadu_si128(source.add(k)));
            for (k, word) in words.into_iter().enumerate() {
                _mm_stream_si128(line.add(k), word);
            }
            at += 64;
        }
        _mm_sfence();
        copy(from.add(end), to.add(end), n - end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_no_other() {
        let most = LONG + 300;
        let source: Vec<u8> = (0..most + 70).map(|k| (k * 7 + k / 251) as u8).collect();
        let cases = [
            (0, 0, LONG, 0),
            (1, 0, LONG + 1, 0),
            (3, 63, LONG + 63, 0),
            (64, 1, 1000, 0),
            (64, 1, 1000, LONG),
            (0, 63, 64, LONG),
            (9, 1, 63, LONG),
            (5, 5, 0, LONG),
        ];
        for (skip, shift, n, whole) in cases {
            let mut room = vec![0xeeu8; most + 200];
            let at = room.as_ptr().align_offset(64) + shift;
            // SAFETY: both have so many bytes behind the offsets.
            unsafe { copy_part(source.as_ptr().add(skip), room.as_mut_ptr().add(at), n, n.max(whole)) };
            assert!(room[at..at + n] == source[skip..skip + n], "{skip} {shift} {n}");
            assert!(room[..at].iter().chain(&room[at + n..]).all(|b| *b == 0xee), "{skip} {shift} {n}: bytes around");
        }
    }
}
