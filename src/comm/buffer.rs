//! Memory of `fmpl_alloc` as a slice: ranks of the node store into it directly.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::base::bytes::Room;
use crate::base::error::{Code, Result, error};
use crate::base::unused::Unused;
use crate::base::values::Values;
use crate::comm::{Job, Plain, job};

/// Memory that the ranks of the node reach directly: a message received into it is stored by its sender with one copy and
/// no system call. Otherwise a slice like any other, freed when it is dropped.
///
/// ```
/// use fmpl::Buffer;
/// let job = fmpl::init(1)?;
/// let mut halo: Buffer<f64> = Buffer::new(&job, 1000)?;
/// halo[0] = 1.5;
/// assert_eq!(halo.iter().sum::<f64>(), 1.5);
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// A request borrows it, so it cannot be freed while the library may touch it:
///
/// ```compile_fail,E0505
/// # let job = fmpl::init(1)?;
/// let mut halo = fmpl::Buffer::<f64>::new(&job, 1000)?;
/// job.world().scope(|s| {
///     let request = s.irecv(&mut halo, 0, 0)?;
///     drop(halo); // cannot move out of `halo` because it is borrowed
///     request.wait()
/// })?;
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct Buffer<'job, T: Plain> {
    values: Values<T>,
    _job: PhantomData<&'job Job>,
}

/// What `fmpl_alloc` aligns to.
const ALIGNED: usize = 64;

static_assertions::assert_impl_all!(Buffer<'static, u64>: Send, Sync);

impl<'job, T: Plain> Buffer<'job, T> {
    /// `len` elements, all of whose bytes are 0. [`Code::Memory`] when there is not so much.
    pub fn new(job: &'job Job, len: usize) -> Result<Buffer<'job, T>> {
        let mut buffer = Buffer::raw(job, len)?;
        Room::of(&mut buffer.values).zero();
        Ok(buffer)
    }

    /// `len` elements of this value.
    pub fn filled(job: &'job Job, len: usize, value: T) -> Result<Buffer<'job, T>> {
        let mut buffer = Buffer::raw(job, len)?;
        buffer.fill(value);
        Ok(buffer)
    }

    /// The memory with whatever is there.
    fn raw(_job: &'job Job, len: usize) -> Result<Buffer<'job, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b <= isize::MAX as usize);
        let Some(bytes) = bytes.filter(|_| align_of::<T>() <= ALIGNED) else {
            return Err(error!(
                Code::Argument,
                "buffer of {len} elements of {} bytes, aligned to {}",
                size_of::<T>(),
                align_of::<T>()
            ));
        };
        let at = if bytes == 0 {
            NonNull::dangling()
        } else {
            let memory = NonNull::new(job::alloc(bytes)?);
            memory.ok_or_else(|| error!(Code::Memory, "buffer of {bytes} bytes"))?.cast()
        };
        // SAFETY: memory for so many, mapped, so that it has contents; it is this value's until it is dropped.
        let values = unsafe { Values::new(at.as_ptr(), len) };
        Ok(Buffer { values, _job: PhantomData })
    }
}

impl<T: Plain> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        if size_of_val(&self.values[..]) != 0 {
            // SAFETY: requests borrow the buffer, so none uses it any more. (In a forked child it stays.)
            let _ = job::free(self.values.address(), unsafe { Unused::promised() });
        }
    }
}

impl<T: Plain> Deref for Buffer<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: Plain> DerefMut for Buffer<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for Buffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
