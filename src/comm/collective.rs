//! The collective calls of a communicator.

use crate::base::error::Result;
use crate::coll::{self, Function};
use crate::comm::communicator::number;
use crate::comm::{Comm, Plain};

/// How two elements are combined: [`Sum`], [`Max`] and so on, or a closure of two elements.
///
/// The elements are combined in the order of the ranks, ((x0 ∘ x1) ∘ x2) ∘ …, so a closure need not commute. Ranks must give functions that do
/// the same.
pub trait Reduce<T: Plain> {
    #[doc(hidden)]
    fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R;
}

impl<T: Plain, F: Fn(T, T) -> T> Reduce<T> for F {
    fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R {
        let closure = |inout: *mut u8, input: *const u8, count: usize| {
            let (inout, input) = (inout.cast::<T>(), input.cast::<T>());
            for k in 0..count {
                // SAFETY: the library passes `count` elements at each; any bits are a value of a plain type.
                unsafe {
                    let (a, b) = (inout.add(k).read_unaligned(), input.add(k).read_unaligned());
                    inout.add(k).write_unaligned(self(a, b));
                }
            }
        };
        call(&Function::rust(size_of::<T>(), &closure))
    }
}

/// a + b; of integers modulo 2^32. A complex number is an array of two.
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The element with the larger absolute value, with its sign (complex: by |re| + |im|).
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The element with the smaller absolute value, with its sign.
#[derive(Clone, Copy, Debug)]
pub struct Min;
/// The larger element.
#[derive(Clone, Copy, Debug)]
pub struct MaxVal;
/// The smaller element.
#[derive(Clone, Copy, Debug)]
pub struct MinVal;

macro_rules! predefined {
    ($($name:ident: $($t:ty = $n:literal),*;)*) => { $($(
        impl Reduce<$t> for $name {
            fn with<R>(&self, call: impl FnOnce(&Function<'_>) -> R) -> R {
                call(&Function::predefined($n))
            }
        }
    )*)* };
}
// The places in `coll::function::PREDEFINED`.
predefined! {
    Sum: i32 = 0, f32 = 1, f64 = 2, [f32; 2] = 3, [f64; 2] = 4;
    Max: i32 = 5, f32 = 6, f64 = 7, [f32; 2] = 8, [f64; 2] = 9;
    Min: i32 = 10, f32 = 11, f64 = 12, [f32; 2] = 13, [f64; 2] = 14;
    MaxVal: i32 = 15, f32 = 16, f64 = 17;
    MinVal: i32 = 18, f32 = 19, f64 = 20;
}

/// What collective calls have in common: every rank of the communicator makes them, in the same order, with the same sizes and root; one
/// thread of each process at a time ([`Code::Busy`](crate::Code::Busy)). After a rank has died they end with
/// [`Code::Peer`](crate::Code::Peer), this one and all later ones.
impl Comm<'_> {
    /// Waits until all ranks have come here.
    pub fn barrier(&self) -> Result<()> {
        self.claims.collective(|| coll::barrier(self.id))?
    }

    /// Copies the root's slice to all ranks.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut numbers = if world.rank() == 0 { [1.5, 2.5] } else { [0.0; 2] };
    /// world.bcast(&mut numbers, 0)?;
    /// assert_eq!(numbers, [1.5, 2.5]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn bcast<T: Plain>(&self, data: &mut [T], root: usize) -> Result<()> {
        let (ptr, len) = (data.as_mut_ptr().cast(), size_of_val(data));
        // SAFETY: the borrow lasts for the call.
        self.claims.collective(|| unsafe { coll::bcast(self.id, ptr, len, number(root)) })?
    }

    /// Combines the ranks' slices element by element into the root's; the others' stay as they are.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut parts = [world.rank() as f64; 3];
    /// world.reduce(&mut parts, fmpl::Sum, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn reduce<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>, root: usize) -> Result<()> {
        let (ptr, count) = (data.as_mut_ptr().cast(), number(data.len()));
        // SAFETY: the borrow lasts for the call, and the function is one of such elements.
        function.with(|f| self.claims.collective(|| unsafe { coll::reduce(self.id, ptr, count, f, number(root)) }))?
    }

    /// Combines the ranks' slices element by element; everybody's becomes the result, with the same bits.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut most = [world.rank() as i64];
    /// world.allreduce(&mut most, |a: i64, b: i64| a.max(b))?;
    /// assert_eq!(most[0], world.size() as i64 - 1);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn allreduce<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>) -> Result<()> {
        let (ptr, count) = (data.as_mut_ptr().cast(), number(data.len()));
        // SAFETY: as above.
        function.with(|f| self.claims.collective(|| unsafe { coll::allreduce(self.id, ptr, count, f) }))?
    }
}
