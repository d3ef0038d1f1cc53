//! What a combine does with two elements: sums and extremes of the five types.
//!
//! The first of two elements is always that of the lower number in the combine's order, so every process gets the same bits, also
//! where the operation is not commutative in every bit (which of two NaNs, which of two zeros).

use core::ffi::{c_int, c_void};

use fmpl::base::bytes::Room;

use crate::Int;
use crate::library::{fmpl, fmpl_func};
use crate::matrix::Stored;
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
pub trait Element: Stored {
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

impl<T: Stored> Stored for Complex<T> {}
impl<T: Stored> Stored for Placed<T> {}

impl Element for Int {
    type Size = u64;
    fn whole_sum() -> fmpl_func {
        if size_of::<Int>() == 4 { fmpl().isum } else { None }
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
                fmpl().$sum
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
                fmpl().$complex
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
pub type Kernel = fn(first: Room<'_>, second: Room<'_>, result: Room<'_>, count: usize);

/// The same as FMPL's collective calls want it.
#[derive(Clone, Copy)]
pub struct Operator {
    /// Of two.
    pub kernel: Kernel,
    /// Of all.
    pub whole: Whole,
}

/// A function of FMPL's collective calls, with the bytes of an element.
#[derive(Clone, Copy)]
pub struct Whole {
    function: fmpl_func,
    size: usize,
}

impl Whole {
    pub fn function(self) -> fmpl_func {
        self.function
    }
    pub fn size(self) -> usize {
        self.size
    }
}

/// An operation on elements without places.
pub fn plain<T: Element>(operation: Operation) -> Operator {
    match operation {
        Operation::Sum => of::<T, Sum>(T::whole_sum()),
        Operation::Largest => of::<T, Extreme<true>>(None),
        Operation::Smallest => of::<T, Extreme<false>>(None),
    }
}

/// An extreme that keeps places: elements are [`Placed`].
pub fn placed<T: Element>(operation: Operation) -> Operator {
    match operation {
        Operation::Smallest => of::<Placed<T>, Extreme<false>>(None),
        _ => of::<Placed<T>, Extreme<true>>(None),
    }
}

/// `known`: FMPL's own function of this kind.
fn of<E: Stored, C: Combine<E>>(known: fmpl_func) -> Operator {
    Operator { kernel: run::<E, C>, whole: Whole { function: known.or(Some(whole::<E, C>)), size: size_of::<E>() } }
}

/// Tells FMPL of the functions that are not its own.
pub fn register() {
    fn type_<T: Element>() {
        use Operation::{Largest, Smallest, Sum};
        let mut functions =
            vec![plain::<T>(Largest), plain::<T>(Smallest), placed::<T>(Largest), placed::<T>(Smallest)];
        if T::whole_sum().is_none() {
            functions.push(plain::<T>(Sum));
        }
        functions.iter().for_each(|operator| check(fmpl().func_register(operator.whole), -1, "BLACS_PINFO"));
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

fn run<E: Stored, C: Combine<E>>(first: Room<'_>, second: Room<'_>, result: Room<'_>, count: usize) {
    let [a, b, to] = [first, second, result].map(|room| room.part(0, count * size_of::<E>()).as_mut_ptr().cast::<E>());
    for k in 0..count {
        // SAFETY: `count` elements each, whatever their bytes are; the result may be one of the others.
        unsafe { to.add(k).write_unaligned(C::combine(a.add(k).read_unaligned(), b.add(k).read_unaligned())) };
    }
}

/// # Safety
/// `count` elements at each, which do not overlap.
#[inline(never)] // one address, by which FMPL knows it
unsafe extern "C" fn whole<E: Stored, C: Combine<E>>(inout: *mut c_void, other: *const c_void, count: c_int) {
    let bytes = count as usize * size_of::<E>();
    // SAFETY: as the caller promises; the other elements are only read.
    let [inout, other] = unsafe { [inout, other.cast_mut()].map(|at| Room::new(at.cast(), bytes)) };
    run::<E, C>(inout, other, inout, count as usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::slots;

    fn one<E: Stored>(operator: Operator, a: E, b: E) -> E {
        let mut memory = [0u64; 6];
        let memory = Room::of(&mut memory);
        let [first, second, result] = [0, 16, 32].map(|at| memory.part(at, 16));
        slots(first).take(1).for_each(|slot| slot.put(a));
        slots(second).take(1).for_each(|slot| slot.put(b));
        (operator.kernel)(first, second, result, 1);
        slots(result).next().unwrap().get()
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
