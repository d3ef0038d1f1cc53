//! A run of bytes that may be read and written: the memory of a message, or a part of what processes share.
//!
//! Who makes a [`Run`] promises, once, that its bytes are there. Who has one copies it, cuts it and reads words of it without a promise of
//! its own: nothing here goes beyond its end. A run is used as long as the calls, requests and records that it was given to last; for memory
//! of one call there are [`Bytes`](super::bytes::Bytes) and [`Room`](super::bytes::Room), which the compiler keeps within a borrow.

use crate::base::atomics::{copy, reads, writes};
use crate::base::copying::Copying;
use crate::base::ownership::take_over;
use crate::base::plain::Plain;
use crate::base::prefetch::{prefetch_run, prefetch_run_to_write};
use crate::base::record::Record;

/// `len` bytes at an address, which may be null when there are none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Run {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: an address; which thread uses what is there makes no difference to what its maker has promised.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

impl Run {
    /// No bytes.
    pub const NOTHING: Run = Run { ptr: core::ptr::null_mut(), len: 0 };

    /// # Safety
    /// As long as the run, or what has been made of it, is in use (by calls and requests to which it was given, too), `len` bytes at `ptr`,
    /// unless that is null, are readable, and writable if it is given to something that writes. Whoever else reads or writes them meanwhile
    /// does so as the protocol allows: nobody but the library for the memory of a message; for shared records what orders both sides. (A run
    /// of some size at no address is refused by all calls.)
    #[inline(always)]
    pub const unsafe fn new(ptr: *mut u8, len: usize) -> Run {
        Run { ptr, len }
    }

    /// Lends bytes or words of this process's own to a call, which gives nobody the run that outlives it.
    #[inline]
    pub(crate) fn with_room<T: Plain, R>(room: &mut [T], call: impl FnOnce(Run) -> R) -> R {
        // SAFETY: borrowed for the call; any bytes are numbers.
        call(unsafe { Run::new(room.as_mut_ptr().cast(), size_of_val(room)) })
    }

    /// The same of bytes that are only read.
    #[inline]
    pub(crate) fn with_bytes<T: Plain, R>(values: &[T], call: impl FnOnce(Run) -> R) -> R {
        // SAFETY: borrowed for the call, and only read.
        call(unsafe { Run::new(values.as_ptr().cast_mut().cast(), size_of_val(values)) })
    }

    /// Where it begins.
    #[inline(always)]
    pub const fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Its bytes.
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Has it no bytes?
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Is this memory of some size at no address? One test, since there mostly is an address.
    #[inline(always)]
    pub fn is_nowhere(self) -> bool {
        #[cold]
        #[inline(never)]
        fn has_size(len: usize) -> bool {
            len != 0
        }
        self.ptr.is_null() && has_size(self.len)
    }

    /// Its first `n` bytes, or all, if it has no more.
    #[inline(always)]
    pub(crate) fn first(self, n: usize) -> Run {
        Run { len: self.len.min(n), ..self }
    }

    /// What follows its first `n` bytes, or nothing.
    #[inline(always)]
    pub(crate) fn after(self, n: usize) -> Run {
        let n = n.min(self.len);
        Run { ptr: self.ptr.wrapping_add(n), len: self.len - n }
    }

    /// `n` bytes from `at` on, as far as it has them.
    #[inline(always)]
    pub(crate) fn part(self, at: usize, n: usize) -> Run {
        self.after(at).first(n)
    }

    /// Copies to another run as many bytes as both have.
    #[inline(always)]
    pub(crate) fn copy_to(self, to: Run) {
        // SAFETY: both have so many bytes, as their makers promise; a message and what it is copied to are different memory.
        unsafe { copy(self.ptr, to.ptr, self.len.min(to.len)) }
    }

    /// The same in another manner.
    #[inline]
    pub(crate) fn copy_to_by(self, to: Run, how: Copying) {
        // SAFETY: as in `copy_to`.
        unsafe { how.copy(self.ptr, to.ptr, self.len.min(to.len)) }
    }

    /// Its first sixteen bytes, or as many as it has, as two words in memory order (little endian: byte 0 is the lowest).
    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 2] {
        let (ptr, len) = (self.ptr.cast_const(), self.len.min(16));
        reads(ptr, len);
        // Reads that overlap instead of a loop or a call; only the first `len` bytes are read.
        // SAFETY: within the first `len` bytes.
        unsafe {
            let word = |at: usize| u64::from_le(ptr.add(at).cast::<u64>().read_unaligned());
            let half = |at: usize| u32::from_le(ptr.add(at).cast::<u32>().read_unaligned()) as u64;
            let words = match len {
                8 => [word(0), 0],
                16 => [word(0), word(8)],
                9..16 => [word(0), word(len - 8) >> (8 * (16 - len))],
                4..8 => [half(0) | half(len - 4) << (8 * (len - 4)), 0],
                0 => [0, 0],
                _ => {
                    let (first, middle, last) = (*ptr as u64, *ptr.add(len / 2) as u64, *ptr.add(len - 1) as u64);
                    [first | middle << (8 * (len / 2)) | last << (8 * (len - 1)), 0]
                }
            };
            words.map(u64::to_le)
        }
    }

    /// The same of a run that has sixteen bytes: two loads.
    #[inline(always)]
    pub(crate) fn sixteen(self) -> [u64; 2] {
        if self.len < 16 {
            return self.words();
        }
        reads(self.ptr, 16);
        // SAFETY: sixteen bytes, at any address.
        unsafe { self.ptr.cast::<[u64; 2]>().read_unaligned() }
    }

    /// Writes two words to a run that has sixteen bytes: two stores.
    #[inline(always)]
    pub(crate) fn set_sixteen(self, words: [u64; 2]) {
        if self.len < 16 {
            return self.set_words(words, 16);
        }
        writes(self.ptr, 16);
        // SAFETY: sixteen bytes, at any address.
        unsafe { self.ptr.cast::<[u64; 2]>().write_unaligned(words) };
    }

    /// Writes the first `n` bytes of two words, at most sixteen, or as many as it has.
    #[inline(always)]
    pub(crate) fn set_words(self, words: [u64; 2], n: usize) {
        let [a, b] = words.map(u64::from_le);
        let (ptr, len) = (self.ptr, self.len.min(n).min(16));
        writes(ptr, len);
        // SAFETY: writes that overlap, within the first `len` bytes.
        unsafe {
            let word = |at: usize, v: u64| ptr.add(at).cast::<u64>().write_unaligned(v.to_le());
            let half = |at: usize, v: u64| ptr.add(at).cast::<u32>().write_unaligned((v as u32).to_le());
            match len {
                8 => word(0, a),
                16 => {
                    word(0, a);
                    word(8, b);
                }
                9..16 => {
                    word(0, a);
                    word(len - 8, a >> (8 * (len - 8)) | b << (8 * (16 - len)));
                }
                4..8 => {
                    half(0, a);
                    half(len - 4, a >> (8 * (len - 4)));
                }
                0 => {}
                _ => {
                    *ptr = a as u8;
                    *ptr.add(len / 2) = (a >> (8 * (len / 2))) as u8;
                    *ptr.add(len - 1) = (a >> (8 * (len - 1))) as u8;
                }
            }
        }
    }

    /// Writes words to its beginning, as far as it has room.
    pub(crate) fn write(self, words: &[u64]) {
        Run::with_bytes(words, |from| from.copy_to(self));
    }

    /// The record at an offset. `None`: it would not lie within the run, or not at a place for such a one.
    #[inline]
    pub(crate) fn record<'a, T: Record>(self, at: usize) -> Option<&'a T> {
        let there = self.after(at);
        let fits = at <= self.len && there.len >= size_of::<T>() && there.ptr.cast::<T>().is_aligned();
        // SAFETY: within the run, and aligned; any bytes are a record. It stays as long as what is made of the run is in use.
        fits.then(|| unsafe { &*there.ptr.cast() })
    }

    /// Asks for its lines, before it is copied.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        prefetch_run(self.ptr, self.len);
    }

    /// Asks for its first lines, before they are written: `most` bytes.
    #[inline(always)]
    pub(crate) fn prefetch_to_write(self, most: usize) {
        prefetch_run_to_write(self.ptr, self.len.min(most));
    }

    /// Takes its lines over from the core that wrote them, if that pays. Its bytes are lost: for what this side has read, and has not given back.
    #[inline(always)]
    pub(crate) fn take_over(self) {
        // SAFETY: all of it, which nobody looks at before this side gives it back.
        unsafe { take_over(self.ptr, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_survive_their_words() {
        for len in 0..=16usize {
            let mut source: Vec<u8> = (0..len as u8).map(|k| k.wrapping_mul(37) | 0x81).collect();
            let mut target = [0u8; 24];
            // SAFETY: both are whole, and live longer.
            let (from, to) =
                unsafe { (Run::new(source.as_mut_ptr(), len), Run::new(target.as_mut_ptr(), 24).after(4)) };
            to.set_words(from.words(), len);
            assert_eq!(&target[4..4 + len], &source[..], "{len} bytes");
            assert_eq!(from.sixteen(), from.words(), "{len} bytes");
            assert!(target[..4].iter().chain(&target[4 + len..]).all(|b| *b == 0), "{len} bytes: wrote beyond");
        }
    }

    #[test]
    fn nothing_goes_beyond_the_end() {
        let (mut source, mut target) = ([7u8; 32], [0u8; 24]);
        // SAFETY: both are whole, and live longer.
        let (from, to) = unsafe { (Run::new(source.as_mut_ptr(), 32), Run::new(target.as_mut_ptr(), 24)) };
        from.copy_to(to.part(20, 100));
        from.part(40, 8).copy_to(to);
        to.first(3).set_sixteen([u64::MAX; 2]);
        to.part(4, 16).set_sixteen([0; 2]);
        Run::NOTHING.copy_to(to);
        assert_eq!(Run::NOTHING.words(), [0, 0]);
        assert_eq!(target, [255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
    }
}
