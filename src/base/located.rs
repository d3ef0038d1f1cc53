//! A value with an index, as C lays out `struct { T value; int index; }`.

use std::fmt;

use super::kernel::Kind;
use super::plain::Plain;

/// What a [`Located`] has as its value. The two types are the bytes that C leaves free behind value and index.
///
/// # Safety
/// They are just these, so that no byte of a [`Located`] is in none of its fields.
pub unsafe trait Value: Plain + PartialOrd {
    #[doc(hidden)]
    const KIND: Kind;
    #[doc(hidden)]
    type Between: Plain + Default;
    #[doc(hidden)]
    type Behind: Plain + Default;
}

/// A value and where it is: what [`MaxLoc`](crate::MaxLoc) and [`MinLoc`](crate::MinLoc) compare. In C `struct { T value; int index; }`.
///
/// ```
/// # let job = fmpl::init(1)?;
/// # let world = job.world();
/// let mut largest = [fmpl::Located::new(2.5, world.rank() as i32)];
/// world.allreduce(&mut largest, fmpl::MaxLoc)?;
/// assert_eq!((largest[0].value(), largest[0].index()), (2.5, 0)); // of equal ones the lowest index
/// # Ok::<(), fmpl::Error>(())
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Located<T: Value> {
    value: T,
    between: T::Between,
    index: i32,
    behind: T::Behind,
}

// SAFETY: its fields are plain, and there is nothing else in it: see `values`.
unsafe impl<T: Value> Plain for Located<T> {}

impl<T: Value> Located<T> {
    pub(in crate::base) const INDEX_AT: usize = core::mem::offset_of!(Located<T>, index);

    /// A value with its index.
    pub fn new(value: T, index: i32) -> Located<T> {
        Located { value, between: T::Between::default(), index, behind: T::Behind::default() }
    }

    /// The value.
    #[inline(always)]
    pub fn value(self) -> T {
        self.value
    }

    /// Its index.
    #[inline(always)]
    pub fn index(self) -> i32 {
        self.index
    }
}

/// By value and index.
impl<T: Value> PartialEq for Located<T> {
    fn eq(&self, other: &Located<T>) -> bool {
        self.value == other.value && self.index == other.index
    }
}

impl<T: Value + fmt::Debug> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.value, self.index)
    }
}

/// The values, and the bytes that are free behind them and behind the index.
macro_rules! values {
    ($($t:ty = $kind:ident: $between:literal $behind:literal;)*) => { $(
        // SAFETY: asserted below.
        unsafe impl Value for $t {
            const KIND: Kind = Kind::$kind;
            type Between = [u8; $between];
            type Behind = [u8; $behind];
        }
        const _: () = assert!(
            size_of::<Located<$t>>() == size_of::<$t>() + $between + 4 + $behind
                && Located::<$t>::INDEX_AT == size_of::<$t>() + $between
        );
    )* };
}
pub(in crate::base) use values;
values! {
    i8 = i8: 3 0; i16 = i16: 2 0; i32 = i: 0 0; i64 = i64: 0 4;
    u8 = u8: 3 0; u16 = u16: 2 0; u32 = u32: 0 0; u64 = u64: 0 4;
    f32 = s: 0 0; f64 = d: 0 4;
}
