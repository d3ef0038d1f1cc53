//! Values in memory that somebody else has made: as a slice ([`Values`]), or shared with other processes, word by word ([`SharedValues`]).

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use super::bytes::Room;
use super::plain::Plain;

/// Values that are this one's own, as those of a box are; who has it gives the memory back.
pub struct Values<T: Plain> {
    at: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its values, as a box does, and plain ones may be used from any thread.
unsafe impl<T: Plain> Send for Values<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Values<T> {}

impl<T: Plain> Values<T> {
    /// `len` values at `at`; none where that is no address.
    ///
    /// # Safety
    /// As long as this lasts the memory is there, aligned, and has contents, and nobody else writes it, or reads it while it is written
    /// here.
    #[inline]
    pub unsafe fn new(at: *mut T, len: usize) -> Values<T> {
        match NonNull::new(at) {
            Some(at) => Values { at, len },
            None => Values { at: NonNull::dangling(), len: 0 },
        }
    }

    /// The address that it was made of.
    #[inline]
    pub fn address(&self) -> *mut u8 {
        if self.at == NonNull::dangling() { core::ptr::null_mut() } else { self.at.as_ptr().cast() }
    }

    /// Only the first `len` of them from now on; more than there are: all.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl<T: Plain> Deref for Values<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: as the maker promised; whatever the bytes are, they are values.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Values<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

/// Values that other threads and processes read and write at the same time, by copies and atomics only.
pub struct SharedValues<T: Plain> {
    at: NonNull<T>,
    len: usize,
    _of: PhantomData<T>,
}

// SAFETY: read and written by copies and atomics only, which any thread may do.
unsafe impl<T: Plain> Send for SharedValues<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for SharedValues<T> {}

impl<T: Plain> SharedValues<T> {
    /// `len` values at `at`.
    ///
    /// # Safety
    /// As long as this lasts the memory is there, aligned, has contents, and is accessed in this way only.
    pub const unsafe fn new(at: NonNull<T>, len: usize) -> SharedValues<T> {
        SharedValues { at, len, _of: PhantomData }
    }

    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where they are.
    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr().cast()
    }

    /// Their memory, for copies.
    pub fn room(&self) -> Room<'_> {
        // SAFETY: as the maker promised.
        unsafe { Room::new(self.as_ptr(), self.len * size_of::<T>()) }
    }

    fn place(&self, index: usize) -> *mut u8 {
        assert!(index < self.len, "value {index} of {}", self.len);
        self.as_ptr().wrapping_add(index * size_of::<T>())
    }

    /// A value as it is now; panics when there is no such one. A value of more than 8 bytes may be half old, half new.
    pub fn get(&self, index: usize) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: within the memory; all bytes of the value are written, and whatever they are they are a value.
        unsafe {
            load(self.place(index), value.as_mut_ptr().cast(), size_of::<T>());
            value.assume_init()
        }
    }

    /// Sets a value; panics when there is no such one.
    pub fn set(&self, index: usize, value: T) {
        // SAFETY: within the memory; a plain value has no byte that is not written.
        unsafe { store((&raw const value).cast(), self.place(index), size_of::<T>()) };
    }
}

impl SharedValues<u64> {
    /// A word as the processor's atomic.
    pub fn atomic(&self, index: usize) -> &AtomicU64 {
        // SAFETY: within the memory, aligned, and an atomic has the size of its word.
        unsafe { &*self.place(index).cast() }
    }
}

impl SharedValues<u32> {
    /// A word as the processor's atomic.
    pub fn atomic(&self, index: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.place(index).cast() }
    }
}

/// A value in shared memory as words that are accessed atomically, each as long as its place allows: other threads and ranks may do so, too.
///
/// # Safety
/// `bytes` bytes at `shared`, which everybody accesses in this way only as long as this lasts.
unsafe fn words(shared: *mut u8, bytes: usize, mut access: impl FnMut(usize, AtomicWord<'_>)) {
    let mut k = 0;
    while k < bytes {
        let (at, left) = (shared.wrapping_add(k), bytes - k);
        let fits = |n: usize| left >= n && at.addr().is_multiple_of(n);
        // SAFETY: within the value, aligned, and accessed atomically, whichever it is.
        let word = unsafe {
            match () {
                () if fits(8) => AtomicWord::U64(&*at.cast()),
                () if fits(4) => AtomicWord::U32(&*at.cast()),
                () if fits(2) => AtomicWord::U16(&*at.cast()),
                () => AtomicWord::U8(&*at.cast()),
            }
        };
        let n = word.bytes();
        access(k, word);
        k += n;
    }
}

enum AtomicWord<'a> {
    U64(&'a AtomicU64),
    U32(&'a AtomicU32),
    U16(&'a AtomicU16),
    U8(&'a AtomicU8),
}

impl AtomicWord<'_> {
    fn bytes(&self) -> usize {
        match self {
            AtomicWord::U64(_) => 8,
            AtomicWord::U32(_) => 4,
            AtomicWord::U16(_) => 2,
            AtomicWord::U8(_) => 1,
        }
    }
}

/// Reads a value out of shared memory.
///
/// # Safety
/// As for [`words`]; as many writable bytes at `to`.
unsafe fn load(shared: *mut u8, to: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises; the words are of these bytes.
    unsafe {
        words(shared, bytes, |k, word| match word {
            AtomicWord::U64(w) => to.add(k).cast::<u64>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U32(w) => to.add(k).cast::<u32>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U16(w) => to.add(k).cast::<u16>().write_unaligned(w.load(Relaxed)),
            AtomicWord::U8(w) => to.add(k).write(w.load(Relaxed)),
        });
    }
}

/// Writes a value into shared memory.
///
/// # Safety
/// As for [`words`]; as many readable bytes at `from`.
unsafe fn store(from: *const u8, shared: *mut u8, bytes: usize) {
    // SAFETY: as above.
    unsafe {
        words(shared, bytes, |k, word| match word {
            AtomicWord::U64(w) => w.store(from.add(k).cast::<u64>().read_unaligned(), Relaxed),
            AtomicWord::U32(w) => w.store(from.add(k).cast::<u32>().read_unaligned(), Relaxed),
            AtomicWord::U16(w) => w.store(from.add(k).cast::<u16>().read_unaligned(), Relaxed),
            AtomicWord::U8(w) => w.store(from.add(k).read(), Relaxed),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads read and write the same values at once, of every size and place. (Under Miri: without a data race.)
    #[test]
    fn values_are_words() {
        #[repr(align(64))]
        struct Memory([u8; 64]);
        let mut memory = Memory([0; 64]);
        let at = (&raw mut memory.0).cast::<u8>().addr();
        let base = std::sync::atomic::AtomicPtr::new((&raw mut memory.0).cast::<u8>());
        assert!(at.is_multiple_of(64));
        for (from, bytes) in [(0, 8), (8, 4), (12, 4), (16, 2), (18, 1), (19, 3), (24, 24), (49, 15)] {
            std::thread::scope(|s| {
                for value in [1u8, 2] {
                    let base = &base;
                    s.spawn(move || {
                        let (mine, mut got) = ([value; 32], [0u8; 32]);
                        let shared = base.load(Relaxed).wrapping_add(from);
                        // SAFETY: within the memory, which is accessed in this way only while the threads run.
                        unsafe {
                            store(mine.as_ptr(), shared, bytes);
                            load(shared, got.as_mut_ptr(), bytes);
                        }
                        assert!(
                            got[..bytes].iter().all(|b| [1, 2].contains(b)) && got[bytes..].iter().all(|b| *b == 0)
                        );
                    });
                }
            });
        }
        // Nothing between them was touched.
        assert!([22, 23, 48].iter().all(|k| memory.0[*k] == 0));
    }
}
