//! Sums of binary16 by the processor's own conversions (F16C). The portable loop gives the same bits, four to five times as slowly.

#[cfg(target_arch = "x86_64")]
use super::any;
use super::{F16, Loops, Sum};

/// The loops of a sum.
#[cfg(target_arch = "x86_64")]
pub(super) const F16_SUM: Loops = Loops { size: size_of::<F16>(), any: any::<F16, Sum>, best: f16_sum };
#[cfg(not(target_arch = "x86_64"))]
pub(super) const F16_SUM: Loops = Loops::of::<F16, Sum>();

/// out = a + b
///
/// # Safety
/// As for [`each`](super::each), on a processor with these.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn f16_sum(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    use core::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128, _mm256_add_ps, _mm256_cvtph_ps, _mm256_cvtps_ph};
    let mut at = 0;
    // SAFETY: as the caller promises. Eight elements are read before any of them is written, so the output may be an input.
    unsafe {
        while at + 8 <= n {
            let from = |p: *const u8| _mm256_cvtph_ps(_mm_loadu_si128(p.add(2 * at).cast()));
            // 0: to the nearest, of two the even one.
            let sum = _mm256_cvtps_ph::<0>(_mm256_add_ps(from(a), from(b)));
            _mm_storeu_si128(out.add(2 * at).cast(), sum);
            at += 8;
        }
        any::<F16, Sum>(out.add(2 * at), a.add(2 * at), b.add(2 * at), n - at);
    }
}
