//! The arithmetic of the predefined functions: out = a ∘ b, element by element, as loops that the compiler turns into vector code.
//!
//! The output may be one of the inputs, and then nothing else may overlap; each of the three cases has a loop of its own, in which
//! the compiler knows that nothing overlaps. Buffers of a program may have any alignment. Each function exists twice: with
//! these loops, on x86-64 for processors with AVX2, and for every processor with a single one. Signed and unsigned integers share a loop where the bits are the same.
//!
//! [`predefined`] lists the functions, once: the C and Fortran names are made from it.

mod floats;
mod long_double;
mod operations;

use core::mem::MaybeUninit;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use super::atomics::{reads, writes};
use super::bytes::{Bytes, Room};
use super::located::Located;
use super::plain::Plain;
use super::short_float::{Bf16, F16};
use long_double::Long;
use operations::*;

macro_rules! names {
    ($(#[$meta:meta])* $name:ident: $($(#[$of:meta])* $variant:ident)*) => {
        $(#[$meta])*
        #[allow(non_camel_case_types, reason = "as parts of the functions' names are written")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$of])* $variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// As it stands in the names of functions.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant)),* }
            }
        }
    };
}

names! {
    /// What elements are, by the first part of the functions' names: `i s d c z` as in the BLAS, else how they are made and their bits.
    Kind:
    /// `int8_t`
    i8
    /// `int16_t`
    i16
    /// `int`, of 32 bits
    i
    /// `int64_t`
    i64
    /// `uint8_t`
    u8
    /// `uint16_t`
    u16
    /// `uint32_t`
    u32
    /// `uint64_t`
    u64
    /// `float`
    s
    /// `double`
    d
    /// `long double` of the x87
    f80
    /// `float complex`
    c
    /// `double complex`
    z
    /// binary16 of IEEE 754
    f16
    /// bfloat16
    bf16
    /// `bool`, of one byte
    b8
}

names! {
    /// What is done with them, by the second part of the names.
    Operation:
    /// a + b
    sum
    /// a · b
    prod
    /// The larger one.
    maxval
    /// The smaller one.
    minval
    /// The one with the larger absolute value.
    amax
    /// The one with the smaller absolute value.
    amin
    /// The larger value, with its index.
    maxloc
    /// The smaller value, with its index.
    minloc
    /// Logical and.
    land
    /// Logical or.
    lor
    /// Logical exclusive or.
    lxor
    /// Bitwise and.
    band
    /// Bitwise or.
    bor
    /// Bitwise exclusive or.
    bxor
}

/// Gives a macro the predefined functions: for each kind of elements its operations.
macro_rules! predefined {
    ($to:ident) => {
        $to! {
            i8: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            i16: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            i: sum prod maxval minval amax amin maxloc minloc land lor lxor band bor bxor;
            i64: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            u8: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            u16: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            u32: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            u64: sum prod maxval minval maxloc minloc land lor lxor band bor bxor;
            s: sum prod maxval minval amax amin maxloc minloc;
            d: sum prod maxval minval amax amin maxloc minloc;
            #[cfg(target_arch = "x86_64")]
            f80: sum prod maxval minval maxloc minloc;
            c: sum prod amax amin;
            z: sum prod amax amin;
            f16: sum;
            bf16: sum;
            b8: land lor lxor;
        }
    };
}
pub(crate) use predefined;

/// A predefined function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predefined {
    /// What its elements are.
    pub kind: Kind,
    /// What it does with them.
    pub operation: Operation,
}

macro_rules! all {
    ($($(#[$here:meta])* $kind:ident: $($operation:ident)*;)*) => {
        /// The predefined functions, also those that only other processors have.
        pub const PREDEFINED: &[Predefined] = &[
            $($(Predefined { kind: Kind::$kind, operation: Operation::$operation }),*),*
        ];
    };
}
predefined!(all);

impl Predefined {
    /// Its name behind `fmpl_`.
    pub fn name(self) -> String {
        format!("{}{}", self.kind.name(), self.operation.name())
    }

    /// The paper's name for it behind `fmpl_`, where that is another one.
    pub fn paper_name(self) -> Option<String> {
        let by_size = matches!(self.operation, Operation::amax | Operation::amin);
        by_size.then(|| format!("{}{}", self.kind.name(), &self.operation.name()[1..]))
    }
}

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
    pub fn of(function: Predefined) -> Kernel {
        Kernel::all(function)[1]
    }

    /// All of a predefined function: the one for every processor, the best one.
    pub fn all(function: Predefined) -> [Kernel; 2] {
        let Loops { size, any, best } = LOOPS[function.kind as usize][function.operation as usize];
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("avx2") || !std::arch::is_x86_feature_detected!("f16c") {
            return [Kernel { size, run: any }; 2];
        }
        [any, best].map(|run| Kernel { size, run })
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

/// The loops of a function: for every processor, and for those with AVX2 and F16C.
#[derive(Clone, Copy)]
struct Loops {
    /// Bytes of an element; 0: there is no such function.
    size: usize,
    any: Run,
    best: Run,
}

impl Loops {
    const NONE: Loops = Loops { size: 0, any: nothing, best: nothing };

    const fn of<T: Copy, F: Combine<T>>() -> Loops {
        Loops { size: size_of::<T>(), any: any::<T, F>, best: best::<T, F> }
    }

    /// Of elements that are two values, each by itself.
    const fn of_pairs<T: Copy, F: Combine<T>>() -> Loops {
        Loops { size: 2 * size_of::<T>(), any: any_pairs::<T, F>, best: best_pairs::<T, F> }
    }
}

/// # Safety
/// As for [`each`], of elements of two values.
unsafe fn any_pairs<T: Copy, F: Combine<T>>(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { any::<T, F>(out, a, b, 2 * n) }
}

/// # Safety
/// As for [`each`], of elements of two values, on a processor with what [`best`] wants.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,f16c"))]
unsafe fn best_pairs<T: Copy, F: Combine<T>>(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { best::<T, F>(out, a, b, 2 * n) }
}

/// # Safety
/// None.
unsafe fn nothing(_: *mut u8, _: *const u8, _: *const u8, _: usize) {
    unreachable!("no function of a reduction");
}

/// For processors of before 2013: one loop for all three cases, on blocks that stay in the cache.
///
/// # Safety
/// As for [`each`].
unsafe fn any<T: Copy, F: Combine<T>>(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { by_blocks(out, a, b, n, size_of::<T>(), in_place::<T, F>) }
}

/// inout = inout ∘ input for `n` elements, which do not overlap.
type InPlace = unsafe fn(inout: *mut u8, input: *const u8, n: usize);

/// # Safety
/// As for [`each`], of elements of `size` bytes, which are `in_place`'s.
#[inline(never)]
unsafe fn by_blocks(out: *mut u8, a: *const u8, b: *const u8, n: usize, size: usize, in_place: InPlace) {
    let mut block = [MaybeUninit::<u8>::uninit(); 2048];
    let most = block.len() / size;
    let second = block.as_mut_ptr().cast::<u8>();
    for from in (0..n).step_by(most) {
        let (at, n) = (from * size, most.min(n - from));
        // SAFETY: as the caller promises, of a part of them; the second input is read before the output is written, which has the first one
        // then.
        unsafe {
            second.copy_from_nonoverlapping(b.add(at), n * size);
            out.add(at).copy_from(a.add(at), n * size);
            in_place(out.add(at), second, n);
        }
    }
}

/// # Safety
/// As for [`InPlace`].
unsafe fn in_place<T: Copy, F: Combine<T>>(inout: *mut u8, input: *const u8, n: usize) {
    // SAFETY: as the caller promises; a `Loose` has no alignment, and its type's bit patterns are all valid.
    let (inout, input) = unsafe { (from_raw_parts_mut(inout.cast::<Loose<T>>(), n), from_raw_parts(input.cast(), n)) };
    combine_in_place::<T, F>(inout, input);
}

/// A function of its own, in which the compiler knows that the two do not overlap.
#[inline(always)]
fn combine_in_place<T: Copy, F: Combine<T>>(inout: &mut [Loose<T>], input: &[Loose<T>]) {
    for (x, y) in inout.iter_mut().zip(input) {
        *x = Loose(F::of(x.0, y.0));
    }
}

/// # Safety
/// As for [`each`], on a processor with these.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,f16c"))]
unsafe fn best<T: Copy, F: Combine<T>>(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    // SAFETY: as the caller promises.
    unsafe { each::<T>(out, a, b, n, F::of) }
}

/// The loops of each function, by kind and operation.
static LOOPS: [[Loops; Operation::ALL.len()]; Kind::ALL.len()] = {
    let mut all = [[Loops::NONE; Operation::ALL.len()]; Kind::ALL.len()];
    let mut k = 0;
    while k < PREDEFINED.len() {
        let Predefined { kind, operation } = PREDEFINED[k];
        all[kind as usize][operation as usize] = loops(kind, operation);
        k += 1;
    }
    all
};

/// The loops of a function that there is.
const fn loops(kind: Kind, operation: Operation) -> Loops {
    use Kind as K;
    /// One for integers of each width, whatever their sign.
    macro_rules! by_width {
        ($f:ty) => {
            match kind {
                K::i8 | K::u8 | K::b8 => Loops::of::<u8, $f>(),
                K::i16 | K::u16 => Loops::of::<u16, $f>(),
                K::i | K::u32 => Loops::of::<u32, $f>(),
                K::i64 | K::u64 => Loops::of::<u64, $f>(),
                _ => Loops::NONE,
            }
        };
    }
    /// One for each type that has an order; `$of` makes the element's type of a value's.
    macro_rules! by_order {
        ($f:ty, $of:ident) => {
            match kind {
                K::i8 => Loops::of::<$of<i8>, $f>(),
                K::i16 => Loops::of::<$of<i16>, $f>(),
                K::i => Loops::of::<$of<i32>, $f>(),
                K::i64 => Loops::of::<$of<i64>, $f>(),
                K::u8 => Loops::of::<$of<u8>, $f>(),
                K::u16 => Loops::of::<$of<u16>, $f>(),
                K::u32 => Loops::of::<$of<u32>, $f>(),
                K::u64 => Loops::of::<$of<u64>, $f>(),
                K::s => Loops::of::<$of<f32>, $f>(),
                K::d => Loops::of::<$of<f64>, $f>(),
                K::f80 => Loops::of::<$of<Long>, $f>(),
                _ => Loops::NONE,
            }
        };
    }
    /// One for each type of the BLAS; `$else` is the others'.
    macro_rules! by_letter {
        ($f:ty, $else:expr) => {
            match kind {
                K::s => Loops::of::<f32, $f>(),
                K::d => Loops::of::<f64, $f>(),
                K::c => Loops::of::<[f32; 2], $f>(),
                K::z => Loops::of::<[f64; 2], $f>(),
                _ => $else,
            }
        };
    }
    type Itself<T> = T;
    match operation {
        Operation::sum => match kind {
            K::f16 => floats::F16_SUM,
            K::bf16 => Loops::of::<Bf16, Sum>(),
            K::c => Loops::of_pairs::<f32, Sum>(),
            K::z => Loops::of_pairs::<f64, Sum>(),
            K::f80 => long_double::SUM,
            K::s => Loops::of::<f32, Sum>(),
            K::d => Loops::of::<f64, Sum>(),
            _ => by_width!(Sum),
        },
        Operation::prod => match kind {
            K::f80 => long_double::PRODUCT,
            _ => by_letter!(Product, by_width!(Product)),
        },
        Operation::maxval => by_order!(Max, Itself),
        Operation::minval => by_order!(Min, Itself),
        Operation::maxloc => by_order!(Max, Located),
        Operation::minloc => by_order!(Min, Located),
        Operation::amax => by_letter!(AbsMax, Loops::of::<i32, AbsMax>()),
        Operation::amin => by_letter!(AbsMin, Loops::of::<i32, AbsMin>()),
        Operation::land => by_width!(LogicalAnd),
        Operation::lor => by_width!(LogicalOr),
        Operation::lxor => by_width!(LogicalXor),
        Operation::band => by_width!(And),
        Operation::bor => by_width!(Or),
        Operation::bxor => by_width!(Xor),
    }
}

#[cfg(test)]
mod tests;
