//! Where the bytes of a message lie in the caller's memory: one run, a block of strided runs (a sub-matrix), or a list.
//!
//! The bytes are a stream: the two sides of a message may have different layouts.

use core::mem::MaybeUninit;

use crate::base::copying::Copying;
use crate::base::error::{Code, Error, Result};

/// `fmpl_block`: `count` runs of `run` bytes each, their beginnings `stride` bytes apart.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bytes in a run.
    pub run: usize,
    /// Number of runs.
    pub count: usize,
    /// Bytes from the beginning of a run to the beginning of the next; may be negative.
    pub stride: isize,
}

/// The memory of one message.
#[repr(C, u32)]
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// `len` bytes at `ptr`; `ptr` may be null when `len` is 0.
    Contiguous {
        /// The first byte.
        ptr: *mut u8,
        /// Bytes.
        len: usize,
    },
    /// Runs of bytes, evenly spaced.
    Block {
        /// The first byte of the first run.
        ptr: *mut u8,
        /// The shape.
        block: Block,
    },
    /// `n` pieces, in order.
    List {
        /// The first of the `n` descriptors; they are only read.
        iov: *const libc::iovec,
        /// Number of pieces.
        n: usize,
    },
}
/// Is this memory of some size at no address? One test, since there mostly is an address.
#[inline(always)]
pub fn is_nowhere(ptr: *const u8, len: usize) -> bool {
    #[cold]
    #[inline(never)]
    fn has_size(len: usize) -> bool {
        len != 0
    }
    ptr.is_null() && has_size(len)
}

impl Layout {
    /// The number of bytes, or an error when the shape makes no sense (null memory with a size, overflow).
    ///
    /// # Safety
    /// The descriptors of a list must be readable.
    pub unsafe fn len_checked(&self) -> Result<usize> {
        let wrong = |text: &str| Err(Error::new(Code::Argument, text));
        match *self {
            Layout::Contiguous { ptr, len } => {
                if is_nowhere(ptr, len) {
                    return wrong("null buffer with a size");
                }
                if len > isize::MAX as usize { wrong("size overflows") } else { Ok(len) }
            }
            Layout::Block { ptr, block } => {
                let Some(total) = block.run.checked_mul(block.count).filter(|t| *t <= isize::MAX as usize) else {
                    return wrong("run times count overflows");
                };
                if ptr.is_null() && total != 0 {
                    return wrong("null buffer with a size");
                }
                if block.count > 1 && block.stride.checked_mul(block.count as isize).is_none() {
                    return wrong("stride times count overflows");
                }
                Ok(total)
            }
            Layout::List { iov, n } => {
                if n == 0 {
                    return Ok(0);
                }
                if iov.is_null() {
                    return wrong("null list with a count");
                }
                let mut total = 0usize;
                for k in 0..n {
                    // SAFETY: the caller promises `n` readable descriptors at `iov`.
                    let piece = unsafe { &*iov.add(k) };
                    if piece.iov_base.is_null() && piece.iov_len != 0 {
                        return wrong("null piece with a size in the list");
                    }
                    total = match total.checked_add(piece.iov_len) {
                        Some(t) if t <= isize::MAX as usize => t,
                        _ => return wrong("sizes in the list overflow"),
                    };
                }
                Ok(total)
            }
        }
    }
}

/// Runs of up to so many bytes are brought together before they go on.
const TOGETHER_RUN: usize = 512;
/// So many bytes at a time.
const TOGETHER: usize = 2048;

#[repr(align(64))]
struct Room([MaybeUninit<u8>; TOGETHER]);

/// A place in the stream of bytes of a layout, from which runs are taken in order.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    layout: Layout,
    /// Which run or piece.
    piece: usize,
    /// Bytes of it already taken.
    within: usize,
    /// How its parts are copied.
    how: Copying,
}

impl Cursor {
    /// The place `at` bytes from the beginning.
    ///
    /// # Safety
    /// The descriptors of a list must be readable as long as the cursor is used.
    pub unsafe fn new(layout: Layout, at: usize) -> Cursor {
        let mut c = Cursor { layout, piece: 0, within: 0, how: Copying::Cached };
        match layout {
            Layout::Contiguous { .. } => c.within = at,
            Layout::Block { block, .. } if block.run > 0 => {
                c.piece = at / block.run;
                c.within = at % block.run;
            }
            Layout::Block { .. } => {}
            Layout::List { iov, n } => {
                let mut left = at;
                while c.piece < n {
                    // SAFETY: piece < n, and the descriptors are readable.
                    let len = unsafe { (*iov.add(c.piece)).iov_len };
                    if left < len {
                        break;
                    }
                    left -= len;
                    c.piece += 1;
                }
                c.within = left;
            }
        }
        c
    }

    /// The same place, from or to which parts are copied so.
    pub fn by(self, how: Copying) -> Cursor {
        Cursor { how, ..self }
    }

    /// The next run of at most `most` bytes, or an empty one at the end.
    ///
    /// # Safety
    /// As for [`Cursor::new`].
    #[inline]
    pub unsafe fn take(&mut self, most: usize) -> (*mut u8, usize) {
        match self.layout {
            Layout::Contiguous { ptr, len } => {
                let n = most.min(len - self.within);
                let p = ptr.wrapping_add(self.within);
                self.within += n;
                (p, n)
            }
            Layout::Block { ptr, block } => {
                if self.piece >= block.count || block.run == 0 {
                    return (core::ptr::null_mut(), 0);
                }
                if block.stride == block.run as isize {
                    // No gaps: one long run.
                    let at = self.piece * block.run + self.within;
                    let n = most.min(block.run * block.count - at);
                    let end = at + n;
                    (self.piece, self.within) = (end / block.run, end % block.run);
                    return (ptr.wrapping_add(at), n);
                }
                let n = most.min(block.run - self.within);
                let p = ptr.wrapping_offset(self.piece as isize * block.stride).wrapping_add(self.within);
                self.within += n;
                if self.within == block.run {
                    (self.piece, self.within) = (self.piece + 1, 0);
                }
                (p, n)
            }
            Layout::List { iov, n } => {
                while self.piece < n {
                    // SAFETY: piece < n, and the descriptors are readable.
                    let piece = unsafe { &*iov.add(self.piece) };
                    let left = piece.iov_len - self.within;
                    if left == 0 {
                        (self.piece, self.within) = (self.piece + 1, 0);
                        continue;
                    }
                    let k = most.min(left);
                    let p = piece.iov_base.cast::<u8>().wrapping_add(self.within);
                    self.within += k;
                    return (p, k);
                }
                (core::ptr::null_mut(), 0)
            }
        }
    }

    /// Copies the next `n` bytes to `to`. That is mostly memory whose lines the other side has read last, where a line that two short
    /// copies write in turn costs twice: short runs are brought together in the innermost cache before they go on.
    ///
    /// # Safety
    /// The layout must have `n` more readable bytes, and `to` room for them; the two must not overlap.
    #[inline]
    pub unsafe fn gather(&mut self, mut to: *mut u8, mut n: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            while n >= TOGETHER / 2 && self.is_ragged(to) {
                let mut room = Room([MaybeUninit::uninit(); TOGETHER]);
                let (room, k) = (room.0.as_mut_ptr().cast::<u8>(), n.min(TOGETHER));
                self.gather_runs(room, k);
                self.how.copy(room, to, k);
                (to, n) = (to.add(k), n - k);
            }
            self.gather_runs(to, n);
        }
    }

    /// Are the next runs short, and would their ends at `to` lie within lines?
    #[inline]
    fn is_ragged(&self, to: *mut u8) -> bool {
        match self.layout {
            Layout::Contiguous { .. } => false,
            Layout::Block { block, .. } => {
                let gaps = block.stride != block.run as isize;
                gaps && (17..=TOGETHER_RUN).contains(&block.run) && !(to as usize | block.run).is_multiple_of(64)
            }
            // SAFETY: `piece` < n, and the descriptors are readable.
            Layout::List { iov, n } => self.piece < n && unsafe { (*iov.add(self.piece)).iov_len } <= TOGETHER_RUN,
        }
    }

    /// [`Cursor::gather`] run by run.
    ///
    /// # Safety
    /// As for [`Cursor::gather`].
    #[inline]
    unsafe fn gather_runs(&mut self, mut to: *mut u8, mut n: usize) {
        while n > 0 {
            // SAFETY: as the caller promises; whole runs that are left are within the layout.
            unsafe {
                if let Some((from, step, run, count)) = self.take_runs(n) {
                    copy_runs(from, step, to, run as isize, run, count, self.how);
                    (to, n) = (to.add(run * count), n - run * count);
                    continue;
                }
                let (from, k) = self.take(n);
                if k == 0 {
                    return;
                }
                self.how.copy(from, to, k);
                (to, n) = (to.add(k), n - k);
            }
        }
    }

    /// Copies `n` bytes from `from` into the layout.
    ///
    /// # Safety
    /// The layout must have `n` more writable bytes, and `from` as many readable ones; the two must not overlap.
    #[inline]
    pub unsafe fn scatter(&mut self, mut from: *const u8, mut n: usize) {
        while n > 0 {
            // SAFETY: as the caller promises; whole runs that are left are within the layout.
            unsafe {
                if let Some((to, step, run, count)) = self.take_runs(n) {
                    copy_runs(from, run as isize, to, step, run, count, self.how);
                    (from, n) = (from.add(run * count), n - run * count);
                    continue;
                }
                let (to, k) = self.take(n);
                if k == 0 {
                    return;
                }
                self.how.copy(from, to, k);
                (from, n) = (from.add(k), n - k);
            }
        }
    }

    /// The next whole runs of a block, of at most `most` bytes together, if the cursor is at the beginning of one: where the first is, how
    /// far it is from one to the next, bytes of a run, and how many.
    #[inline]
    fn take_runs(&mut self, most: usize) -> Option<(*mut u8, isize, usize, usize)> {
        let Layout::Block { ptr, block } = self.layout else { return None };
        if self.within != 0 || block.run == 0 || block.stride == block.run as isize {
            return None;
        }
        let count = (most / block.run).min(block.count.saturating_sub(self.piece));
        let first = ptr.wrapping_offset(self.piece as isize * block.stride);
        self.piece += count;
        (count > 0).then_some((first, block.stride, block.run, count))
    }

    /// Describes the next bytes, at most `most`, by at most `out.len()` pieces: (pieces, bytes).
    ///
    /// # Safety
    /// As for [`Cursor::new`].
    pub unsafe fn pieces(&mut self, most: usize, out: &mut [libc::iovec]) -> (usize, usize) {
        let (mut n, mut bytes) = (0, 0);
        while n < out.len() && bytes < most {
            // SAFETY: as the caller promises.
            let (p, k) = unsafe { self.take(most - bytes) };
            if k == 0 {
                break;
            }
            out[n] = libc::iovec { iov_base: p.cast(), iov_len: k };
            n += 1;
            bytes += k;
        }
        (n, bytes)
    }
}

/// Copies `count` runs of `run` bytes each, their beginnings `from_step` and `to_step` bytes apart. The runs of a row of a matrix are
/// single elements: for these a call each would cost more than the copying.
///
/// # Safety
/// All runs readable at `from` and writable at `to`; the two do not overlap.
#[inline]
unsafe fn copy_runs(
    from: *const u8,
    from_step: isize,
    to: *mut u8,
    to_step: isize,
    run: usize,
    count: usize,
    how: Copying,
) {
    #[inline(always)]
    unsafe fn each(from: *const u8, from_step: isize, to: *mut u8, to_step: isize, run: usize, count: usize) {
        let (mut from, mut to) = (from, to);
        for _ in 0..count {
            // SAFETY: as the caller promises.
            unsafe { crate::base::atomics::copy(from, to, run) };
            (from, to) = (from.wrapping_offset(from_step), to.wrapping_offset(to_step));
        }
    }
    // SAFETY: as the caller promises.
    unsafe {
        match run {
            4 => each(from, from_step, to, to_step, 4, count),
            8 => each(from, from_step, to, to_step, 8, count),
            16 => each(from, from_step, to, to_step, 16, count),
            _ if how == Copying::Past => {
                for k in 0..count as isize {
                    how.copy(from.wrapping_offset(k * from_step), to.wrapping_offset(k * to_step), run);
                }
            }
            _ => each(from, from_step, to, to_step, run, count),
        }
    }
}

/// Copies `n` bytes from one layout to another in the same address space.
///
/// # Safety
/// `from` must have `n` readable and `to` `n` writable bytes from the given places on; they must not overlap.
pub unsafe fn copy(from: Layout, from_at: usize, to: Layout, to_at: usize, n: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let (mut from, mut to) = (Cursor::new(from, from_at), Cursor::new(to, to_at));
        let mut left = n;
        while left > 0 {
            let (p, k) = from.take(left);
            if k == 0 {
                return;
            }
            to.scatter(p, k);
            left -= k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout_of(kind: u8, memory: &mut [u8], iov: &mut Vec<libc::iovec>) -> (Layout, Vec<usize>) {
        // The layout, and the offsets of its bytes in stream order.
        let ptr = memory.as_mut_ptr();
        match kind {
            0 => (Layout::Contiguous { ptr, len: 240 }, (0..240).collect()),
            1 => {
                let block = Block { run: 6, count: 40, stride: 9 };
                (Layout::Block { ptr, block }, (0..240).map(|k| k / 6 * 9 + k % 6).collect())
            }
            2 => {
                let block = Block { run: 10, count: 24, stride: -17 };
                let start = 23 * 17;
                let p = ptr.wrapping_add(start);
                (Layout::Block { ptr: p, block }, (0..240).map(|k| start - k / 10 * 17 + k % 10).collect())
            }
            3..6 => {
                // Elements of a row of a matrix.
                let run = 4usize << (kind - 3);
                let block = Block { run, count: 240 / run, stride: run as isize + 3 };
                (Layout::Block { ptr, block }, (0..240).map(|k| k / run * (run + 3) + k % run).collect())
            }
            _ => {
                let mut offsets = Vec::new();
                for j in 0..30usize {
                    // A triangle, with an empty piece now and then.
                    let len = if j % 7 == 3 { 0 } else { j };
                    iov.push(libc::iovec { iov_base: ptr.wrapping_add(j * 32).cast(), iov_len: len });
                    offsets.extend((0..len).map(|k| j * 32 + k));
                }
                offsets.truncate(240);
                (Layout::List { iov: iov.as_ptr(), n: iov.len() }, offsets)
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_are_a_stream_whatever_the_shapes(from in 0u8..7, to in 0u8..7, a in 0usize..200, n in 0usize..40, step in 1usize..50) {
            let mut source: Vec<u8> = (0..1024).map(|k| (k * 7 % 251) as u8).collect();
            let mut target = vec![255u8; 1024];
            let (mut i, mut j) = (Vec::new(), Vec::new());
            let (f, f_at) = layout_of(from, &mut source, &mut i);
            let (t, t_at) = layout_of(to, &mut target, &mut j);
            // SAFETY: both layouts lie in the vectors and have at least 240 bytes.
            unsafe { copy(f, a, t, a, n) };
            for k in 0..n {
                prop_assert_eq!(target[t_at[a + k]], source[f_at[a + k]]);
            }
            prop_assert_eq!(target.iter().filter(|b| **b != 255).count() <= n, true);
            // Through a bounce buffer in steps, and by descriptors.
            let mut bounce = vec![0u8; 240];
            // SAFETY: as above.
            unsafe {
                let mut c = Cursor::new(f, 0);
                let mut at = 0;
                while at < 240 {
                    let k = step.min(240 - at);
                    c.gather(bounce.as_mut_ptr().add(at), k);
                    at += k;
                }
            }
            for k in 0..240 {
                prop_assert_eq!(bounce[k], source[f_at[k]]);
            }
            target.fill(255);
            // SAFETY: as above.
            unsafe {
                let mut c = Cursor::new(t, 0);
                (0..240).step_by(step).for_each(|at| c.scatter(bounce.as_ptr().add(at), step.min(240 - at)));
            }
            for k in 0..240 {
                prop_assert_eq!(target[t_at[k]], bounce[k]);
            }
            prop_assert!(target.iter().filter(|b| **b != 255).count() <= 240);
        }
    }

    #[test]
    fn shapes_that_make_no_sense_are_refused() {
        let p = 8 as *mut u8;
        let bad = [
            Layout::Contiguous { ptr: core::ptr::null_mut(), len: 1 },
            Layout::Block { ptr: p, block: Block { run: usize::MAX, count: 2, stride: 1 } },
            Layout::Block { ptr: p, block: Block { run: 1, count: 3, stride: isize::MAX } },
            Layout::Block { ptr: core::ptr::null_mut(), block: Block { run: 1, count: 1, stride: 0 } },
            Layout::List { iov: core::ptr::null(), n: 1 },
        ];
        for layout in bad {
            // SAFETY: no list with descriptors among them.
            assert_eq!(unsafe { layout.len_checked() }.unwrap_err().code(), Code::Argument, "{layout:?}");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { Layout::Contiguous { ptr: core::ptr::null_mut(), len: 0 }.len_checked() }, Ok(0));
    }
}
