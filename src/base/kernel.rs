//! The arithmetic of the predefined functions: out = a ∘ b, element by element, as loops that the compiler turns into vector code.
//!
//! The output may be one of the inputs, and then nothing else may overlap; each of the three cases has a loop of its own, in which
//! the compiler knows that nothing overlaps. Buffers of a program may have any alignment. On x86-64 each loop exists twice,
//! for every processor and for those with AVX2.
//!
//! Sum, maximum, minimum of a pair do not depend on the order of the two, but for the bits of a NaN. Of two elements with the same
//! absolute value the maximum is the larger one (3, not -3) and the minimum the smaller one; of complex ones that are equal in
//! |re| + |im| the real part decides, then the imaginary part. A NaN is larger and smaller than every number: the result shows it.

use super::atomics::{reads, writes};
use super::bytes::{Bytes, Room};
use super::plain::Plain;

/// An element as the program has it, with no promise of alignment.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Loose<T>(T);

/// out = a ∘ b for `n` elements.
type Run = unsafe fn(out: *mut u8, a: *const u8, b: *const u8, n: usize);

/// A loop over elements, which this processor runs.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Bytes of an element.
    pub size: usize,
    run: Run,
}

impl Kernel {
    /// The best of a predefined function.
    pub fn of(function: usize) -> Kernel {
        Kernel::all(function)[1]
    }

    /// All of a predefined function: the one for every processor, the best one.
    pub fn all(function: usize) -> [Kernel; 2] {
        let (size, any, _avx2) = KERNELS[function];
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return [any, _avx2].map(|run| Kernel { size, run });
        }
        [Kernel { size, run: any }; 2]
    }

    /// out = a ∘ b for `n` elements; `out` is `a`, or `b`, or overlaps with neither.
    #[inline(always)]
    pub fn run(self, out: Room<'_>, a: Bytes<'_>, b: Bytes<'_>, n: usize) {
        let bytes = n.saturating_mul(self.size);
        assert!(bytes <= out.len().min(a.len()).min(b.len()));
        for input in [a, b] {
            let (out, input) = (out.part(0, bytes), input.part(0, bytes));
            assert!(core::ptr::eq(out.as_ptr(), input.as_ptr()) || out.is_apart_from(input), "vectors that overlap");
        }
        reads(a.as_ptr(), bytes);
        reads(b.as_ptr(), bytes);
        writes(out.as_mut_ptr(), bytes);
        // SAFETY: there are `n` elements at each, `out` is the inputs' or overlaps with neither, and the processor runs it.
        unsafe { (self.run)(out.as_mut_ptr(), a.as_ptr(), b.as_ptr(), n) }
    }
}

/// One of the two, by what `measure` says of them.
#[inline(always)]
fn pick<T: Copy, M: PartialOrd>(a: T, b: T, larger: bool, measure: impl Fn(T) -> M, order: impl Fn(T, T) -> bool) -> T {
    let (x, y) = (measure(a), measure(b));
    // What is no number compares as neither larger nor smaller than itself.
    #[expect(clippy::eq_op, reason = "a NaN")]
    let b_is_nan = y != y;
    let b_wins = if larger { y > x } else { y < x };
    if b_is_nan | b_wins | ((x == y) & order(a, b)) { b } else { a }
}

/// The operations on a type.
trait Element: Copy {
    /// a + b
    fn sum(a: Self, b: Self) -> Self;
    /// The one with the larger (smaller) absolute value.
    fn by_size(a: Self, b: Self, larger: bool) -> Self;
    /// The larger (smaller) one.
    fn by_value(a: Self, b: Self, larger: bool) -> Self;
}

impl Element for i32 {
    #[inline(always)]
    fn sum(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn by_size(a: i32, b: i32, larger: bool) -> i32 {
        pick(a, b, larger, i32::unsigned_abs, |a, b| (b > a) == larger)
    }
    #[inline(always)]
    fn by_value(a: i32, b: i32, larger: bool) -> i32 {
        if larger { a.max(b) } else { a.min(b) }
    }
}

macro_rules! real {
    ($($t:ty)*) => { $(
        impl Element for $t {
            #[inline(always)]
            fn sum(a: $t, b: $t) -> $t {
                a + b
            }
            #[inline(always)]
            fn by_size(a: $t, b: $t, larger: bool) -> $t {
                pick(a, b, larger, <$t>::abs, |a, b| if larger { b > a } else { b < a })
            }
            #[inline(always)]
            fn by_value(a: $t, b: $t, larger: bool) -> $t {
                // Of two zeros the maximum is +0, the minimum -0.
                let sign = |a: $t, b: $t| if larger { a.is_sign_negative() & !b.is_sign_negative() } else { b.is_sign_negative() & !a.is_sign_negative() };
                pick(a, b, larger, |x| x, sign)
            }
        }
        impl Element for [$t; 2] {
            #[inline(always)]
            fn sum(a: [$t; 2], b: [$t; 2]) -> [$t; 2] {
                [a[0] + b[0], a[1] + b[1]]
            }
            #[inline(always)]
            fn by_size(a: [$t; 2], b: [$t; 2], larger: bool) -> [$t; 2] {
                pick(a, b, larger, |z| z[0].abs() + z[1].abs(), |a, b| {
                    let at = (a[0] == b[0]) as usize;
                    let (x, y) = if at == 0 { (a[0], b[0]) } else { (a[1], b[1]) };
                    if larger { y > x } else { y < x }
                })
            }
            #[inline(always)]
            fn by_value(a: [$t; 2], b: [$t; 2], larger: bool) -> [$t; 2] {
                Self::by_size(a, b, larger)
            }
        }
    )* };
}
real!(f32 f64);

/// inout = f(inout, input) for `n` elements, which do not overlap.
pub fn combine<T: Plain>(inout: Room<'_>, input: Bytes<'_>, n: usize, f: impl Fn(T, T) -> T) {
    let bytes = n.saturating_mul(size_of::<T>());
    let (inout, input) = (inout.part(0, bytes), input.part(0, bytes));
    assert!(inout.is_apart_from(input), "vectors that overlap");
    // SAFETY: there are `n` elements at each, whatever their bits.
    unsafe { each(inout.as_mut_ptr(), inout.as_ptr(), input.as_ptr(), n, f) }
}

/// out = f(a, b).
///
/// # Safety
/// `n` elements at each; `out` is `a`, or `b`, or overlaps with neither.
#[inline(always)]
unsafe fn each<T: Copy>(out: *mut u8, a: *const u8, b: *const u8, n: usize, f: impl Fn(T, T) -> T) {
    use core::slice::{from_raw_parts, from_raw_parts_mut};
    let (out, a, b) = (out.cast::<Loose<T>>(), a.cast::<Loose<T>>(), b.cast::<Loose<T>>());
    if n == 0 {
        return;
    }
    // SAFETY: as the caller promises; a `Loose` has no alignment, and its type's bit patterns are all valid.
    unsafe {
        if core::ptr::eq(out, a) {
            for (x, y) in from_raw_parts_mut(out, n).iter_mut().zip(from_raw_parts(b, n)) {
                *x = Loose(f(x.0, y.0));
            }
        } else if core::ptr::eq(out, b) {
            for (y, x) in from_raw_parts_mut(out, n).iter_mut().zip(from_raw_parts(a, n)) {
                *y = Loose(f(x.0, y.0));
            }
        } else {
            let inputs = from_raw_parts(a, n).iter().zip(from_raw_parts(b, n));
            for (z, (x, y)) in from_raw_parts_mut(out, n).iter_mut().zip(inputs) {
                *z = Loose(f(x.0, y.0));
            }
        }
    }
}

macro_rules! kernels {
    ($($name:ident, $avx2:ident, $t:ty, $f:expr;)*) => { $(
        unsafe fn $name(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
            // SAFETY: as the caller promises.
            unsafe { each::<$t>(out, a, b, n, $f) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $avx2(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
            // SAFETY: as the caller promises.
            unsafe { each::<$t>(out, a, b, n, $f) }
        }
    )*
        /// The elements' bytes and the two forms of each kernel: for every processor, for those with AVX2.
        static KERNELS: &[(usize, Run, Run)] = &[$(
            #[cfg(target_arch = "x86_64")]
            (size_of::<$t>(), $name, $avx2),
            #[cfg(not(target_arch = "x86_64"))]
            (size_of::<$t>(), $name, $name),
        )*];
    };
}

kernels! {
    isum, isum_avx2, i32, i32::sum;
    ssum, ssum_avx2, f32, f32::sum;
    dsum, dsum_avx2, f64, f64::sum;
    csum, csum_avx2, [f32; 2], <[f32; 2]>::sum;
    zsum, zsum_avx2, [f64; 2], <[f64; 2]>::sum;
    imax, imax_avx2, i32, |a, b| i32::by_size(a, b, true);
    smax, smax_avx2, f32, |a, b| f32::by_size(a, b, true);
    dmax, dmax_avx2, f64, |a, b| f64::by_size(a, b, true);
    cmax, cmax_avx2, [f32; 2], |a, b| <[f32; 2]>::by_size(a, b, true);
    zmax, zmax_avx2, [f64; 2], |a, b| <[f64; 2]>::by_size(a, b, true);
    imin, imin_avx2, i32, |a, b| i32::by_size(a, b, false);
    smin, smin_avx2, f32, |a, b| f32::by_size(a, b, false);
    dmin, dmin_avx2, f64, |a, b| f64::by_size(a, b, false);
    cmin, cmin_avx2, [f32; 2], |a, b| <[f32; 2]>::by_size(a, b, false);
    zmin, zmin_avx2, [f64; 2], |a, b| <[f64; 2]>::by_size(a, b, false);
    imaxval, imaxval_avx2, i32, |a, b| i32::by_value(a, b, true);
    smaxval, smaxval_avx2, f32, |a, b| f32::by_value(a, b, true);
    dmaxval, dmaxval_avx2, f64, |a, b| f64::by_value(a, b, true);
    iminval, iminval_avx2, i32, |a, b| i32::by_value(a, b, false);
    sminval, sminval_avx2, f32, |a, b| f32::by_value(a, b, false);
    dminval, dminval_avx2, f64, |a, b| f64::by_value(a, b, false);
}
