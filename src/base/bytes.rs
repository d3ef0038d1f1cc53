//! Memory of a call as a value that carries the promise: [`Bytes`] can be read, a [`Room`] can be written, too. Who makes one from an
//! address promises once what there is ([`Bytes::new`], [`Room::new`]); who has one promises nothing any more: parts of it lie within it, and
//! what is copied has room.
//!
//! Neither is a reference of Rust: the same bytes may be in several of them, as parts of a vector or for the other process that reads them
//! meanwhile. What orders that are the atomics around it, as for [`copy`]. A [`Run`] is the same without a lifetime: the memory of a message,
//! which lasts as long as the request that it was given to.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::Deref;

use super::atomics::{AtomicU8, AtomicU32, AtomicU64, Ordering, copy, fence};
use super::copying::Copying;
use super::ownership::take_over;
use super::plain::Plain;
use super::run::Run;

/// Bytes that can be read.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    at: *const u8,
    len: usize,
    _of: PhantomData<&'a [u8]>,
}

/// Bytes that can be read and written.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a>(Bytes<'a>);

/// What lies beyond the end is an error of the library's own.
#[cold]
#[inline(never)]
fn beyond(at: usize, n: usize, len: usize) -> ! {
    panic!("{n} bytes from {at} on, of {len}")
}

impl<'a> Bytes<'a> {
    /// `len` bytes at `at`; none where that is no address or no length.
    ///
    /// # Safety
    /// As long as `'a` lasts they can be read, and nobody writes there but who is ordered against the readers by atomics.
    #[inline(always)]
    pub unsafe fn new(at: *const u8, len: usize) -> Bytes<'a> {
        let len = if at.is_null() || len > isize::MAX as usize { 0 } else { len };
        Bytes { at, len, _of: PhantomData }
    }

    /// Those of a slice.
    #[inline(always)]
    pub fn of<T: Plain>(data: &'a [T]) -> Bytes<'a> {
        Bytes { at: data.as_ptr().cast(), len: size_of_val(data), _of: PhantomData }
    }

    /// None.
    pub const fn none() -> Bytes<'static> {
        Bytes { at: core::ptr::null(), len: 0, _of: PhantomData }
    }

    /// How many.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Are there none?
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where they are.
    #[inline(always)]
    pub fn as_ptr(self) -> *const u8 {
        self.at
    }

    /// `n` of them from `at` on.
    #[inline(always)]
    pub fn part(self, at: usize, n: usize) -> Bytes<'a> {
        if at > self.len || n > self.len - at {
            beyond(at, n, self.len);
        }
        Bytes { at: self.at.wrapping_add(at), len: n, _of: PhantomData }
    }

    /// Has neither a byte of the other?
    #[inline(always)]
    pub fn is_apart_from(self, other: Bytes<'_>) -> bool {
        let (a, b) = (self.at as usize, other.at as usize);
        a + self.len <= b || b + other.len <= a || self.len == 0 || other.len == 0
    }
}

impl<'a> Room<'a> {
    /// `len` bytes at `at`; none where that is no address or no length.
    ///
    /// # Safety
    /// As long as `'a` lasts they can be read, and written by the calls that write what they are given; nobody else uses them but who is
    /// ordered against that by atomics.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8, len: usize) -> Room<'a> {
        // SAFETY: what can be written can be read.
        Room(unsafe { Bytes::new(at, len) })
    }

    /// The same of an address that is one, and a length that can be.
    ///
    /// # Safety
    /// As for [`Room::new`].
    #[inline(always)]
    pub const unsafe fn known(at: *mut u8, len: usize) -> Room<'a> {
        Room(Bytes { at, len, _of: PhantomData })
    }

    /// That of a slice.
    #[inline(always)]
    pub fn of<T: Plain>(data: &'a mut [T]) -> Room<'a> {
        Room(Bytes { at: data.as_mut_ptr().cast(), len: size_of_val(data), _of: PhantomData })
    }

    /// That of words beside an atomic that says who may use them.
    #[inline(always)]
    pub(crate) fn of_words(words: &'a [AtomicU64]) -> Room<'a> {
        Room(Bytes { at: words.as_ptr().cast(), len: size_of_val(words), _of: PhantomData })
    }

    /// None.
    pub const fn none() -> Room<'static> {
        Room(Bytes::none())
    }

    /// Where it is.
    #[inline(always)]
    pub fn as_mut_ptr(self) -> *mut u8 {
        self.0.at.cast_mut()
    }

    /// `n` bytes of it from `at` on.
    #[inline(always)]
    pub fn part(self, at: usize, n: usize) -> Room<'a> {
        Room(self.0.part(at, n))
    }

    /// Copies bytes to its beginning; they do not overlap with it.
    #[inline(always)]
    pub fn copy_from(self, from: Bytes<'_>) {
        self.copy_by(Copying::Cached, from);
    }

    /// The same, into or past the caches.
    #[inline(always)]
    pub fn copy_by(self, how: Copying, from: Bytes<'_>) {
        assert!(self.part(0, from.len).is_apart_from(from), "a copy onto itself");
        // SAFETY: both are readable or writable as their makers promised, there is room, and they do not overlap.
        unsafe {
            match how {
                Copying::Cached => copy(from.at, self.as_mut_ptr(), from.len),
                how => how.copy(from.at, self.as_mut_ptr(), from.len),
            }
        }
    }

    /// Copies bytes to its beginning that others may use at the same time, and that may overlap with it. An aligned word of 4 or 8 bytes is
    /// copied as one, and released: it may be a flag that somebody polls.
    #[inline(always)]
    pub fn copy_as_words(self, from: Bytes<'_>) {
        let (len, ends) = (from.len, from.at as usize | self.0.at as usize);
        let to = self.part(0, len).as_mut_ptr();
        // SAFETY: both are readable or writable as their makers promised, there is room, and words are aligned.
        unsafe {
            match len {
                8 if ends.is_multiple_of(8) => {
                    let v = (*from.at.cast::<AtomicU64>()).load(Ordering::Acquire);
                    (*to.cast::<AtomicU64>()).store(v, Ordering::Release);
                }
                4 if ends.is_multiple_of(4) => {
                    let v = (*from.at.cast::<AtomicU32>()).load(Ordering::Acquire);
                    (*to.cast::<AtomicU32>()).store(v, Ordering::Release);
                }
                _ => {
                    fence(Ordering::Acquire);
                    if (from.at as usize).abs_diff(to as usize) >= len {
                        copy(from.at, to, len);
                    } else {
                        core::ptr::copy(from.at, to, len);
                    }
                    fence(Ordering::Release);
                }
            }
        }
    }

    /// Is it so many bytes, aligned as a word of as many?
    #[inline(always)]
    pub fn is_word(self, bytes: usize) -> bool {
        self.0.len >= bytes && (self.0.at as usize).is_multiple_of(bytes)
    }

    /// Its first eight bytes as a word, aligned, which others use by atomic operations, too.
    #[inline(always)]
    pub fn word(self) -> &'a AtomicU64 {
        assert!(self.is_word(8));
        // SAFETY: within it and aligned; any content is valid.
        unsafe { &*self.0.at.cast() }
    }

    /// The same of four bytes.
    #[inline(always)]
    pub fn half_word(self) -> &'a AtomicU32 {
        assert!(self.is_word(4));
        // SAFETY: as above.
        unsafe { &*self.0.at.cast() }
    }

    /// One of its bytes, which others use by atomic operations, too.
    #[inline(always)]
    pub fn byte(self, at: usize) -> &'a AtomicU8 {
        // SAFETY: within it; any content is valid.
        unsafe { &*self.part(at, 1).as_ptr().cast() }
    }

    /// Makes all its bytes 0.
    pub fn zero(self) {
        self.fill(0);
    }

    /// Makes all its bytes this one.
    pub fn fill(self, byte: u8) {
        // SAFETY: writable, as its maker promised.
        unsafe { self.as_mut_ptr().write_bytes(byte, self.0.len) };
    }

    /// [`take_over`] of its lines: its bytes are lost.
    #[inline(always)]
    pub fn take_over(self) {
        // SAFETY: writable, as its maker promised.
        unsafe { take_over(self.as_mut_ptr(), self.0.len) };
    }
}

impl From<Run> for Room<'static> {
    /// For as long as the run's maker has promised.
    #[inline(always)]
    fn from(run: Run) -> Room<'static> {
        // SAFETY: as the maker of the run promised, also for what is made of it.
        unsafe { Room::new(run.ptr(), run.len()) }
    }
}

impl<'a> Deref for Room<'a> {
    type Target = Bytes<'a>;
    #[inline(always)]
    fn deref(&self) -> &Bytes<'a> {
        &self.0
    }
}

/// Memory for partial results, in lines, so that vectors in it are aligned.
#[derive(Default)]
pub struct Scratch(Vec<Line>);

#[repr(C, align(64))]
struct Line(UnsafeCell<[u8; 64]>);

impl Scratch {
    /// Room for so many bytes.
    pub fn new(bytes: usize) -> Scratch {
        let mut scratch = Scratch::default();
        scratch.reserve(bytes);
        scratch
    }

    /// Has room for so many bytes from now on.
    pub fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(64);
        if self.0.len() < lines {
            self.0.resize_with(lines, || Line(UnsafeCell::new([0; 64])));
        }
    }

    /// Its room.
    #[inline(always)]
    pub fn room(&self) -> Room<'_> {
        Room(Bytes { at: self.0.as_ptr().cast(), len: size_of_val(&self.0[..]), _of: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_the_whole() {
        let (from, mut to) = ([1u8, 2, 3, 4], [0u32; 2]);
        let (bytes, room) = (Bytes::of(&from), Room::of(&mut to));
        assert_eq!((bytes.len(), room.len(), bytes.part(4, 0).len()), (4, 8, 0));
        room.part(3, 5).copy_from(bytes.part(1, 3));
        assert_eq!(to.map(u32::to_ne_bytes), [[0, 0, 0, 2], [3, 4, 0, 0]]);
        let ended = [(5, 0), (1, 4), (0, usize::MAX), (usize::MAX, 2)]
            .map(|(at, n)| std::panic::catch_unwind(|| Bytes::of(&[0u8; 4]).part(at, n).len()));
        assert!(ended.iter().all(Result::is_err));
        let mut short = [0u8; 3];
        let room = std::panic::AssertUnwindSafe(Room::of(&mut short));
        assert!(std::panic::catch_unwind(|| room.copy_from(Bytes::of(&from))).is_err());
        let onto_itself = std::panic::AssertUnwindSafe(|| room.part(0, 2).copy_from(*room.part(1, 2)));
        assert!(std::panic::catch_unwind(onto_itself).is_err());
    }

    #[test]
    fn no_address_has_no_bytes() {
        // SAFETY: nothing is read there.
        let nowhere = unsafe { Bytes::new(core::ptr::null(), 5) };
        assert_eq!((nowhere.len(), Room::none().len()), (0, 0));
    }

    #[test]
    fn scratch_grows_and_is_aligned() {
        let mut scratch = Scratch::new(65);
        assert_eq!((scratch.room().len(), scratch.room().as_ptr() as usize % 64), (128, 0));
        scratch.reserve(1);
        assert_eq!(scratch.room().len(), 128);
        scratch.room().copy_from(Bytes::of(&[7u8; 128]));
        scratch.reserve(129);
        let mut first = [0u8];
        Room::of(&mut first).copy_from(*scratch.room().part(127, 1));
        assert_eq!((first, scratch.room().len()), ([7], 192));
    }
}
