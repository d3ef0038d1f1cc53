//! What elements are reduced with: the predefined functions as types, and closures.

use crate::base::bytes::{Bytes, Room};
use crate::base::kernel::{Kind, Operation, combine};
use crate::base::located::{Located, Value};
use crate::base::short_float::{Bf16, F16};
use crate::coll::Function;
use crate::coll::function::Closure;
use crate::comm::Plain;

/// How two elements are combined: [`Sum`], [`MaxVal`] and so on, or a closure of two elements. Sum, product, maximum, minimum and the bits of integers are
/// those of C's functions: `fmpl_dsum` is `Sum` of `f64`.
///
/// The elements are combined in the order of the ranks, ((x0 ∘ x1) ∘ x2) ∘ …, so a closure need not commute. Ranks must give functions that do
/// the same.
pub trait Reduce<T: Plain> {
    #[doc(hidden)]
    fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R;
    /// The same for a call that lasts as long as what this returns.
    #[doc(hidden)]
    fn boxed<'a>(self) -> Boxed<'a>
    where
        Self: Sized + 'a;
}

/// A function that a call under way needs.
#[doc(hidden)]
pub enum Boxed<'a> {
    Predefined(Function<'static>),
    Closure(usize, Box<Closure<'a>>),
}

impl Boxed<'_> {
    pub(super) fn function(&self) -> Function<'_> {
        match self {
            Boxed::Predefined(function) => *function,
            // The closure in the box, not the box as one: that may move.
            Boxed::Closure(size, closure) => Function::rust(*size, &**closure),
        }
    }
}

impl<T: Plain, F: Fn(T, T) -> T> Reduce<T> for F {
    fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R {
        let closure = |inout: Room<'_>, input: Bytes<'_>, count: usize| combine(inout, input, count, self);
        call(&Function::rust(size_of::<T>(), &closure))
    }
    fn boxed<'a>(self) -> Boxed<'a>
    where
        Self: 'a,
    {
        let closure = move |inout: Room<'_>, input: Bytes<'_>, count: usize| combine(inout, input, count, &self);
        Boxed::Closure(size_of::<T>(), Box::new(closure))
    }
}

/// `impl Reduce` for a predefined function.
macro_rules! of_kernels {
    ($name:ident = $operation:ident on $t:ty $(, $value:ident)?) => {
        impl$(<$value: Value>)? Reduce<$t> for $name {
            fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R {
                call(&Function::predefined(<$t as Element>::KIND, Operation::$operation))
            }
            fn boxed<'a>(self) -> Boxed<'a>
            where
                Self: 'a,
            {
                Boxed::Predefined(Function::predefined(<$t as Element>::KIND, Operation::$operation))
            }
        }
    };
}

macro_rules! predefined {
    ($($(#[$doc:meta])* $name:ident $(= $operation:ident: $($t:ty)*)?;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        $($(of_kernels!($name = $operation on $t);)*)?
    )* };
}
predefined! {
    /// a + b; of integers modulo a power of two. A complex number is an array of two. [`F16`] and [`Bf16`] are rounded after each sum.
    Sum = sum: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 [f32; 2] [f64; 2] F16 Bf16;
    /// a · b; of integers modulo a power of two. A complex number is an array of two.
    Prod = prod: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 [f32; 2] [f64; 2];
    /// The larger element. A NaN is larger than every number.
    MaxVal = maxval: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    /// The smaller element. A NaN is smaller than every number, too.
    MinVal = minval: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    /// The element with the larger absolute value, with its sign (complex: by |re| + |im|).
    AbsMax = amax: i32 f32 f64 [f32; 2] [f64; 2];
    /// The element with the smaller absolute value, with its sign.
    AbsMin = amin: i32 f32 f64 [f32; 2] [f64; 2];
    /// The larger value with its index; of equal ones the lower index. Elements are [`Located`].
    MaxLoc;
    /// The smaller value with its index; of equal ones the lower index. Elements are [`Located`].
    MinLoc;
    /// 1 if neither is 0, else 0. What C calls `bool` is a `u8` here.
    Land = land: i8 i16 i32 i64 u8 u16 u32 u64;
    /// 0 if both are 0, else 1.
    Lor = lor: i8 i16 i32 i64 u8 u16 u32 u64;
    /// 1 if just one of them is 0, else 0.
    Lxor = lxor: i8 i16 i32 i64 u8 u16 u32 u64;
    /// The bits that both have.
    Band = band: i8 i16 i32 i64 u8 u16 u32 u64;
    /// The bits that one of them has.
    Bor = bor: i8 i16 i32 i64 u8 u16 u32 u64;
    /// The bits that just one of them has.
    Bxor = bxor: i8 i16 i32 i64 u8 u16 u32 u64;
}
of_kernels!(MaxLoc = maxloc on Located<T>, T);
of_kernels!(MinLoc = minloc on Located<T>, T);

/// A type with predefined functions.
trait Element {
    const KIND: Kind;
}

macro_rules! elements {
    ($($t:ty = $kind:ident;)*) => { $(
        impl Element for $t {
            const KIND: Kind = Kind::$kind;
        }
    )* };
}
elements! {
    i8 = i8; i16 = i16; i32 = i; i64 = i64; u8 = u8; u16 = u16; u32 = u32; u64 = u64; f32 = s; f64 = d;
    [f32; 2] = c; [f64; 2] = z; F16 = f16; Bf16 = bf16;
}

#[cfg(feature = "num-complex")]
mod complex {
    use super::*;
    use num_complex::Complex;

    elements! {
        Complex<f32> = c; Complex<f64> = z;
    }
    of_kernels!(Sum = sum on Complex<f32>);
    of_kernels!(Sum = sum on Complex<f64>);
    of_kernels!(Prod = prod on Complex<f32>);
    of_kernels!(Prod = prod on Complex<f64>);
    of_kernels!(AbsMax = amax on Complex<f32>);
    of_kernels!(AbsMax = amax on Complex<f64>);
    of_kernels!(AbsMin = amin on Complex<f32>);
    of_kernels!(AbsMin = amin on Complex<f64>);
}

impl<T: Value> Element for Located<T> {
    const KIND: Kind = T::KIND;
}
