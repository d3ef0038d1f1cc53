//! Copies of some hundred bytes to two KiB by the widest loads and stores that a processor with AVX has, whatever the C library's copy
//! thinks best for memory in general. Long messages through a ring, whose lines two cores write and read in turn, take half to four fifths
//! of the time. Longer copies within the inner caches take four fifths of it, and none of them twice as long, as `rep movsb` does in some
//! processes.

/// Copies of at least so many bytes are worth it.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const LEAST: usize = 256;
/// Longer ones the C library does as well or better.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const MOST: usize = 2048;

/// Copies a part of a payload, as [`copy`](super::atomics::copy) does.
///
/// # Safety
/// `n` readable bytes at `from`, `n` writable ones at `to`, which do not overlap.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    if (LEAST..=MOST).contains(&n) && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: as the caller promises; the processor has AVX.
        return unsafe { by_lines(from, to, n) };
    }
    // SAFETY: as the caller promises.
    unsafe { super::atomics::copy(from, to, n) }
}

/// Longest copies for which [`copy_cached`] has an advantage.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
const CACHED: usize = 64 << 10;

/// The same, longer ones too: for memory that is likely to be in this core's caches.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
pub unsafe fn copy_cached(from: *const u8, to: *mut u8, n: usize) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    if (LEAST..=CACHED).contains(&n) && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: as the caller promises; the processor has AVX.
        return unsafe { by_lines(from, to, n) };
    }
    // SAFETY: as the caller promises.
    unsafe { super::atomics::copy(from, to, n) }
}

/// Two lines at a time, whole ones of the target.
///
/// # Safety
/// As for [`copy`], with `n` ≥ [`LEAST`]; the processor has AVX.
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

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn every_byte_and_no_other() {
        let source: Vec<u8> = (0..5000).map(|k| (k * 7 % 251) as u8).collect();
        let copies: [unsafe fn(*const u8, *mut u8, usize); 2] = [super::copy, super::copy_cached];
        for (n, copy) in (0..700).chain([1023, 1024, 1500, 2047, 2048, 2049, 4096]).flat_map(|n| copies.map(|c| (n, c)))
        {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (63, 64), (17, 40), (64, 127)] {
                let mut target = vec![255u8; 5000];
                // SAFETY: both vectors have the bytes.
                unsafe { copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), n) };
                assert_eq!(target[to..to + n], source[from..from + n], "{n} bytes from {from} to {to}");
                assert!(
                    target[..to].iter().chain(&target[to + n..]).all(|b| *b == 255),
                    "{n} bytes from {from} to {to}"
                );
            }
        }
    }
}
