//! Large tables of which few entries are ever used.

use std::ops::Deref;
use std::ptr::null_mut;

use super::error::{Error, Result};

/// `n` values of zero bytes, straight from the system: a page of them costs memory only once it is written to. (An allocator may give
/// out pages that were used before, and clear them.)
pub struct Zeroed<T> {
    at: *mut T,
    n: usize,
}

// SAFETY: it owns its values, as a box of them would.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T> Zeroed<T> {
    /// A table of `n`.
    ///
    /// # Safety
    /// Zero bytes are a value of `T`, and it needs no drop.
    pub unsafe fn new(n: usize) -> Result<Zeroed<T>> {
        let bytes = n * size_of::<T>();
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(null_mut(), bytes, prot, flags | libc::MAP_NORESERVE, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(Error::memory(format!("{bytes} bytes of addresses for a table (mmap)")));
        }
        // A huge page for the first entry would be most of what the table ever takes. Only advice: its failure harms nobody.
        // SAFETY: mapped just now.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Zeroed { at: at.cast(), n })
    }
}

impl<T> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: mapped until dropped, page-aligned; zero bytes are values, as the maker promised.
        unsafe { std::slice::from_raw_parts(self.at, self.n) }
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nobody has a reference any more.
        unsafe { libc::munmap(self.at.cast(), self.n * size_of::<T>()) };
    }
}
