//! Memory of `fmpl_alloc` as a slice: ranks of the node store into it directly.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::base::error::{Code, Error, Result};
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
    at: NonNull<T>,
    len: usize,
    _job: PhantomData<&'job Job>,
}

/// What `fmpl_alloc` aligns to.
const ALIGNED: usize = 64;

// SAFETY: it owns its memory, as a Vec does, and plain data may be used from any thread.
unsafe impl<T: Plain> Send for Buffer<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Buffer<'_, T> {}

impl<'job, T: Plain> Buffer<'job, T> {
    /// `len` elements, all of whose bytes are 0. [`Code::Memory`] when there is not so much.
    pub fn new(job: &'job Job, len: usize) -> Result<Buffer<'job, T>> {
        let buffer = Buffer::raw(job, len)?;
        // SAFETY: fresh memory for `len` elements.
        unsafe { buffer.at.write_bytes(0, len) };
        Ok(buffer)
    }

    /// `len` elements of this value.
    pub fn filled(job: &'job Job, len: usize, value: T) -> Result<Buffer<'job, T>> {
        let buffer = Buffer::raw(job, len)?;
        for k in 0..len {
            // SAFETY: fresh memory for `len` elements.
            unsafe { buffer.at.add(k).write(value) };
        }
        Ok(buffer)
    }

    /// The memory, not to be read before it is written.
    fn raw(_job: &'job Job, len: usize) -> Result<Buffer<'job, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b <= isize::MAX as usize);
        let Some(bytes) = bytes.filter(|_| align_of::<T>() <= ALIGNED) else {
            return Err(Error::new(
                Code::Argument,
                format!("buffer of {len} elements of {} bytes, aligned to {}", size_of::<T>(), align_of::<T>()),
            ));
        };
        let at = if bytes == 0 {
            NonNull::dangling()
        } else {
            let memory = NonNull::new(job::alloc(bytes)?);
            memory.ok_or_else(|| Error::new(Code::Memory, format!("buffer of {bytes} bytes")))?.cast()
        };
        Ok(Buffer { at, len, _job: PhantomData })
    }
}

impl<T: Plain> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() != 0 {
            // SAFETY: from `alloc`; requests borrow the buffer, so none uses it any more. (In a forked child it stays.)
            let _ = unsafe { job::free(self.at.as_ptr().cast()) };
        }
    }
}

impl<T: Plain> Deref for Buffer<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements, written when the buffer was made, and this value's own.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for Buffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
