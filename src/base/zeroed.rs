//! Large tables of which few entries are ever used.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::error::{Error, Result};
use super::record::Empty;

/// `n` values of zero bytes, straight from the system: a page of them costs memory only once it is written to. (An allocator may give
/// out pages that were used before, and clear them.)
pub struct Zeroed<T> {
    at: *mut T,
    n: usize,
    /// What is mapped from there on.
    bytes: usize,
}

// SAFETY: it owns its values, as a box of them would.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T: Empty> Zeroed<T> {
    /// A table of `n`.
    pub fn new(n: usize) -> Result<Zeroed<T>> {
        Zeroed::map(n, n * size_of::<T>())
    }

    /// The same, of whole units of addresses, multiples of `unit` bytes, in which nothing else lies.
    pub fn apart(n: usize, unit: usize) -> Result<Zeroed<T>> {
        let bytes = (n * size_of::<T>()).next_multiple_of(unit);
        let mut all = Zeroed::<T>::map(n, bytes + unit)?;
        let before = (all.at as usize).next_multiple_of(unit) - all.at as usize;
        // SAFETY: what lies around the units is of this mapping, and nobody has it yet.
        unsafe {
            let (from, to) = (all.at.cast::<u8>(), all.at.cast::<u8>().add(before));
            if before > 0 {
                libc::munmap(from.cast(), before);
            }
            libc::munmap(to.add(bytes).cast(), unit - before);
            (all.at, all.bytes) = (to.cast(), bytes);
        }
        Ok(all)
    }

    fn map(n: usize, bytes: usize) -> Result<Zeroed<T>> {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(null_mut(), bytes, prot, flags | libc::MAP_NORESERVE, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(Error::memory(format!("{bytes} bytes of addresses for a table (mmap)")));
        }
        // A huge page for the first entry would be most of what the table ever takes. Only advice: its failure harms nobody.
        // SAFETY: mapped just now.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Zeroed { at: at.cast(), n, bytes })
    }
}

impl<T> Zeroed<T> {
    /// The memory of these elements goes back to the system, as far as they fill pages; they are zero bytes again.
    ///
    /// # Safety
    /// Nobody looks at them meanwhile but by atomics, and they need no drop.
    pub unsafe fn forget(&self, which: Range<usize>) {
        let of = &self[which];
        // SAFETY: mapped by this, and whole elements of it. Only advice: where it fails they stay as they are.
        unsafe { libc::madvise(of.as_ptr().cast_mut().cast(), size_of_val(of), libc::MADV_DONTNEED) };
    }
}

impl<T> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: mapped until dropped, page-aligned; zero bytes are values.
        unsafe { std::slice::from_raw_parts(self.at, self.n) }
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nobody has a reference any more.
        unsafe {
            if std::mem::needs_drop::<T>() {
                std::ptr::slice_from_raw_parts_mut(self.at, self.n).drop_in_place();
            }
            libc::munmap(self.at.cast(), self.bytes);
        }
    }
}

/// A table of `N` that is made when it is first needed, and stays.
pub struct Later<T, const N: usize>(AtomicPtr<T>, PhantomData<Zeroed<T>>);

// SAFETY: null: it is not made yet.
unsafe impl<T, const N: usize> Empty for Later<T, N> {}

impl<T, const N: usize> Default for Later<T, N> {
    /// Not made yet.
    fn default() -> Later<T, N> {
        Later(AtomicPtr::new(null_mut()), PhantomData)
    }
}

impl<T: Empty, const N: usize> Later<T, N> {
    /// The table, if it is made.
    #[inline(always)]
    pub fn get(&self) -> Option<&[T; N]> {
        let first = self.0.load(Ordering::Acquire);
        // SAFETY: null, or the table that `make` has put there, which stays as long as this.
        unsafe { first.cast::<[T; N]>().as_ref() }
    }

    /// The same, made by whoever comes first.
    pub fn make(&self) -> Result<&[T; N]> {
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let new = ManuallyDrop::new(Zeroed::<T>::new(N)?);
        if self.0.compare_exchange(null_mut(), new.at, Ordering::AcqRel, Ordering::Acquire).is_err() {
            drop(ManuallyDrop::into_inner(new));
        }
        self.get().ok_or_else(|| Error::memory("a table that was just made"))
    }
}

impl<T, const N: usize> Drop for Later<T, N> {
    fn drop(&mut self) {
        let at = *self.0.get_mut();
        // As `make` has left it.
        (!at.is_null()).then(|| drop(Zeroed { at, n: N, bytes: N * size_of::<T>() }));
    }
}
