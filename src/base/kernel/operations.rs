//! The operations on two elements.
//!
//! Sum, maximum, minimum of a pair do not depend on the order of the two, but for the bits of a NaN. Of two elements with the same
//! absolute value the maximum is the larger one (3, not -3) and the minimum the smaller one; of complex ones that are equal in
//! |re| + |im| the real part decides, then the imaginary part; of two zeros the maximum is +0, the minimum -0; of equal values with an
//! index the lower index decides. A NaN is larger and smaller than every number: the result shows it.

use super::{F16, Located, Long};
use crate::base::located::Value;
use crate::base::short_float::Bf16;

/// An operation on elements of a type.
pub trait Combine<T> {
    /// a ∘ b
    fn of(a: T, b: T) -> T;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        pub enum $name {}
    )* };
}
operations! {
    /// a + b; of integers modulo a power of two.
    Sum
    /// a · b; of integers modulo a power of two.
    Product
    /// The larger one.
    Max
    /// The smaller one.
    Min
    /// The one with the larger absolute value.
    AbsMax
    /// The one with the smaller absolute value.
    AbsMin
    /// 1 if neither is 0, else 0.
    LogicalAnd
    /// 0 if both are 0, else 1.
    LogicalOr
    /// 1 if just one of them is 0, else 0.
    LogicalXor
    /// The bits that both have.
    And
    /// The bits that one of them has.
    Or
    /// The bits that just one of them has.
    Xor
}

macro_rules! combine {
    ($($operation:ident: $t:ty = $f:expr;)*) => { $(
        impl Combine<$t> for $operation {
            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                $f(a, b)
            }
        }
    )* };
}

macro_rules! of_bits {
    ($($t:ty)*) => { $(
        combine! {
            Sum: $t = <$t>::wrapping_add;
            Product: $t = <$t>::wrapping_mul;
            LogicalAnd: $t = |a, b| <$t>::from((a != 0) & (b != 0));
            LogicalOr: $t = |a, b| <$t>::from((a | b) != 0);
            LogicalXor: $t = |a, b| <$t>::from((a != 0) ^ (b != 0));
            And: $t = |a, b| a & b;
            Or: $t = |a, b| a | b;
            Xor: $t = |a, b| a ^ b;
        }
    )* };
}
of_bits!(u8 u16 u32 u64);

macro_rules! integers {
    ($($t:ty)*) => { $(
        combine! {
            Max: $t = Ord::max;
            Min: $t = Ord::min;
        }
    )* };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

combine! {
    AbsMax: i32 = |a, b| pick(a, b, true, i32::unsigned_abs, |a, b| b > a);
    AbsMin: i32 = |a, b| pick(a, b, false, i32::unsigned_abs, |a, b| b < a);
    Sum: F16 = |a, b| F16::from(f32::from(a) + f32::from(b));
    Sum: Bf16 = |a, b| Bf16::from(f32::from(a) + f32::from(b));
}

/// One of the two, by what `measure` says of them, and where that is equal by whether `order` wants the second.
#[inline(always)]
fn pick<T: Copy, M: PartialOrd>(a: T, b: T, larger: bool, measure: impl Fn(T) -> M, order: impl Fn(T, T) -> bool) -> T {
    let (x, y) = (measure(a), measure(b));
    // What is no number compares as neither larger nor smaller than itself.
    #[expect(clippy::eq_op, reason = "a NaN")]
    let b_is_nan = y != y;
    let b_wins = if larger { y > x } else { y < x };
    if b_is_nan | b_wins | ((x == y) & order(a, b)) { b } else { a }
}

macro_rules! ordered_floats {
    ($($t:ty)*) => { $( combine! {
        Max: $t = |a: $t, b: $t| pick(a, b, true, |x| x, |a: $t, b: $t| a.is_sign_negative() & !b.is_sign_negative());
        Min: $t = |a: $t, b: $t| pick(a, b, false, |x| x, |a: $t, b: $t| b.is_sign_negative() & !a.is_sign_negative());
    } )* };
}
ordered_floats!(f32 f64 Long);

macro_rules! floats {
    ($($t:ty)*) => { $( combine! {
        Sum: $t = |a, b| a + b;
        Product: $t = |a, b| a * b;
        AbsMax: $t = |a, b| pick(a, b, true, <$t>::abs, |a, b| b > a);
        AbsMin: $t = |a, b| pick(a, b, false, <$t>::abs, |a, b| b < a);
        Product: [$t; 2] = |a: [$t; 2], b: [$t; 2]| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]];
        AbsMax: [$t; 2] = |a, b| pick(a, b, true, |z: [$t; 2]| z[0].abs() + z[1].abs(), |a: [$t; 2], b: [$t; 2]| {
            let (x, y) = where_they_differ(a, b);
            y > x
        });
        AbsMin: [$t; 2] = |a, b| pick(a, b, false, |z: [$t; 2]| z[0].abs() + z[1].abs(), |a: [$t; 2], b: [$t; 2]| {
            let (x, y) = where_they_differ(a, b);
            y < x
        });
    } )* };
}
floats!(f32 f64);

/// The parts of two complex numbers that decide which is the larger one: the first that differ.
#[inline(always)]
fn where_they_differ<T: Copy + PartialEq>(a: [T; 2], b: [T; 2]) -> (T, T) {
    if a[0] == b[0] { (a[1], b[1]) } else { (a[0], b[0]) }
}

/// One of two values with their indices: the larger (smaller) value, of equal ones the lower index, of values that are no numbers as well.
#[inline(always)]
fn locate<T: Value>(a: Located<T>, b: Located<T>, larger: bool) -> Located<T> {
    let (x, y) = (a.value(), b.value());
    #[expect(clippy::eq_op, reason = "a NaN")]
    let (a_is_nan, b_is_nan) = (x != x, y != y);
    let b_wins = if larger { y > x } else { y < x };
    let equal = (x == y) | (a_is_nan & b_is_nan);
    if b_wins | (b_is_nan & !a_is_nan) | (equal & (b.index() < a.index())) { b } else { a }
}

impl<T: Value> Combine<Located<T>> for Max {
    #[inline(always)]
    fn of(a: Located<T>, b: Located<T>) -> Located<T> {
        locate(a, b, true)
    }
}

impl<T: Value> Combine<Located<T>> for Min {
    #[inline(always)]
    fn of(a: Located<T>, b: Located<T>) -> Located<T> {
        locate(a, b, false)
    }
}
