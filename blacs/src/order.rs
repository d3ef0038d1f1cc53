//! What a combine does with two elements: sums and extremes of the five types.
//!
//! The first of two elements is always that of the lower number in the combine's order, so every process gets the same bits, also
//! where the operation is not commutative in every bit (which of two NaNs, which of two zeros).

use core::ffi::{c_int, c_void};

use crate::Int;
use crate::library::{fmpl, fmpl_func};
use crate::report::check;

/// A complex number, single or double.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

/// An element with the place it came from: how far behind the destination, in the scope.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed<T> {
    pub value: T,
    pub distance: u32,
}

/// An element of a matrix.
pub trait Element: Copy {
    /// What its size is compared by.
    type Size: PartialOrd;
    /// FMPL's own function for sums, if it has one for this type.
    fn whole_sum() -> fmpl_func {
        None
    }
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// The absolute value; |re| + |im| of a complex number.
    fn size(self) -> Self::Size;
    /// Comes after the other of the same size.
    fn greater(self, other: Self) -> bool;
}

impl Element for Int {
    type Size = u64;
    fn whole_sum() -> fmpl_func {
        (size_of::<Int>() == 4).then_some(fmpl().isum)
    }
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn size(self) -> u64 {
        self.unsigned_abs() as u64
    }
    fn greater(self, other: Self) -> bool {
        self > other
    }
}

macro_rules! real {
    ($($t:ty: $sum:ident $complex:ident),*) => { $(
        impl Element for $t {
            type Size = $t;
            fn whole_sum() -> fmpl_func {
                Some(fmpl().$sum)
            }
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn size(self) -> $t {
                self.abs()
            }
            fn greater(self, other: Self) -> bool {
                self > other
            }
        }
        impl Element for Complex<$t> {
            type Size = $t;
            fn whole_sum() -> fmpl_func {
                Some(fmpl().$complex)
            }
            fn plus(self, other: Self) -> Self {
                Complex { re: self.re + other.re, im: self.im + other.im }
            }
            fn size(self) -> $t {
                self.re.abs() + self.im.abs()
            }
            fn greater(self, other: Self) -> bool {
                self.re > other.re || self.re == other.re && self.im > other.im
            }
        }
    )* };
}
real!(f32: ssum csum, f64: dsum zsum);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Sum,
    /// The element of the largest absolute value.
    Largest,
    /// Of the smallest.
    Smallest,
}

/// Combines `count` elements of two arrays into a third, which may be one of the two.
pub type Kernel = unsafe fn(first: *const u8, second: *const u8, result: *mut u8, count: usize);

/// The same as FMPL's collective calls want it.
#[derive(Clone, Copy)]
pub struct Operator {
    /// Of two.
    pub kernel: Kernel,
    /// Of all.
    pub whole: fmpl_func,
}

/// An operation on elements without places.
pub fn plain<T: Element>(operation: Operation) -> Operator {
    match operation {
        Operation::Sum => Operator { whole: T::whole_sum().or(Some(whole::<T, Sum>)), kernel: run::<T, Sum> },
        Operation::Largest => of::<T, Extreme<true>>(),
        Operation::Smallest => of::<T, Extreme<false>>(),
    }
}

/// An extreme that keeps places: elements are [`Placed`].
pub fn placed<T: Element>(operation: Operation) -> Operator {
    match operation {
        Operation::Smallest => of::<Placed<T>, Extreme<false>>(),
        _ => of::<Placed<T>, Extreme<true>>(),
    }
}

fn of<E: Copy, C: Combine<E>>() -> Operator {
    Operator { kernel: run::<E, C>, whole: Some(whole::<E, C>) }
}

/// Tells FMPL of the functions that are not its own.
pub fn register() {
    fn type_<T: Element>() {
        use Operation::{Largest, Smallest, Sum};
        let mut functions = vec![(plain::<T>(Largest), false), (plain::<T>(Smallest), false)];
        functions.extend([(placed::<T>(Largest), true), (placed::<T>(Smallest), true)]);
        if T::whole_sum().is_none() {
            functions.push((plain::<T>(Sum), false));
        }
        for (operator, placed) in functions {
            let size = if placed { size_of::<Placed<T>>() } else { size_of::<T>() };
            // SAFETY: functions of this type on elements of this size.
            check(unsafe { (fmpl().func_register)(operator.whole, size, 1) }, -1, "BLACS_PINFO");
        }
    }
    type_::<Int>();
    type_::<f32>();
    type_::<f64>();
    type_::<Complex<f32>>();
    type_::<Complex<f64>>();
}

trait Combine<E> {
    fn combine(first: E, second: E) -> E;
}
struct Sum;
struct Extreme<const LARGEST: bool>;

impl<T: Element> Combine<T> for Sum {
    #[inline(always)]
    fn combine(first: T, second: T) -> T {
        first.plus(second)
    }
}

/// Is the second one wanted rather than the first? `None`: they are of the same size, or cannot be compared.
#[inline(always)]
fn prefers_second<T: Element, const LARGEST: bool>(first: T, second: T) -> Option<bool> {
    let (a, b) = (first.size(), second.size());
    if a == b { None } else { Some(if LARGEST { a < b } else { a > b }) }
}

impl<T: Element, const LARGEST: bool> Combine<T> for Extreme<LARGEST> {
    #[inline(always)]
    fn combine(first: T, second: T) -> T {
        // Of two of the same size the greater one, for the largest and for the smallest.
        let second_wins = prefers_second::<T, LARGEST>(first, second).unwrap_or_else(|| second.greater(first));
        if second_wins { second } else { first }
    }
}

impl<T: Element, const LARGEST: bool> Combine<Placed<T>> for Extreme<LARGEST> {
    #[inline(always)]
    fn combine(first: Placed<T>, second: Placed<T>) -> Placed<T> {
        let second_wins =
            prefers_second::<T, LARGEST>(first.value, second.value).unwrap_or(first.distance > second.distance);
        if second_wins { second } else { first }
    }
}

/// # Safety
/// `count` readable elements at `first` and `second`, room for as many at `result`; `result` may be one of the two.
unsafe fn run<E: Copy, C: Combine<E>>(first: *const u8, second: *const u8, result: *mut u8, count: usize) {
    let (a, b, to) = (first.cast::<E>(), second.cast::<E>(), result.cast::<E>());
    for k in 0..count {
        // SAFETY: as the caller promises.
        unsafe { to.add(k).write_unaligned(C::combine(a.add(k).read_unaligned(), b.add(k).read_unaligned())) };
    }
}

/// # Safety
/// `count` elements at each, which do not overlap.
#[inline(never)] // one address, by which FMPL knows it
unsafe extern "C" fn whole<E: Copy, C: Combine<E>>(inout: *mut c_void, other: *const c_void, count: c_int) {
    // SAFETY: as the caller promises.
    unsafe { run::<E, C>(inout.cast(), other.cast(), inout.cast(), count as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<E: Copy>(operator: Operator, a: E, b: E) -> E {
        let kernel = operator.kernel;
        let mut result = a;
        // SAFETY: one element each.
        unsafe { kernel((&raw const a).cast(), (&raw const b).cast(), (&raw mut result).cast(), 1) };
        result
    }

    #[test]
    fn extremes_return_the_signed_element() {
        assert_eq!(one(plain::<f64>(Operation::Largest), -3.0, 2.0), -3.0);
        assert_eq!(one(plain::<f64>(Operation::Smallest), -3.0, 2.0), 2.0);
        assert_eq!(one(plain::<Int>(Operation::Largest), Int::MIN, Int::MAX), Int::MIN);
        assert_eq!(one(plain::<Int>(Operation::Sum), Int::MAX, 1), Int::MIN);
        let (p, q) = (Complex { re: 1.0f32, im: -4.0 }, Complex { re: -2.0, im: 2.0 });
        assert_eq!(one(plain::<Complex<f32>>(Operation::Largest), p, q), p);
        assert_eq!(one(plain::<Complex<f32>>(Operation::Smallest), p, q), q);
    }

    #[test]
    fn ties_go_to_the_greater_value_or_to_the_nearer_place() {
        for operation in [Operation::Largest, Operation::Smallest] {
            assert_eq!(one(plain::<f64>(operation), -3.0, 3.0), 3.0);
            assert_eq!(one(plain::<f64>(operation), 3.0, -3.0), 3.0);
            let (p, q) = (Complex { re: 2.0f64, im: 1.0 }, Complex { re: 2.0, im: -1.0 });
            assert_eq!(one(plain::<Complex<f64>>(operation), q, p), p);
            let (near, far) = (Placed { value: -3.0, distance: 1 }, Placed { value: 3.0, distance: 2 });
            assert_eq!(one(placed::<f64>(operation), far, near), near);
            assert_eq!(one(placed::<f64>(operation), near, far), near);
        }
    }
}
