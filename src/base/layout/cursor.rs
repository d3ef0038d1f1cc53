//! A place in the stream of bytes of a layout, from which runs are taken and copied in order.

use core::mem::MaybeUninit;

use super::{Form, Layout, Run};
use crate::base::copying::Copying;

/// Runs of up to so many bytes are brought together before they go on.
const TOGETHER_RUN: usize = 512;
/// So many bytes at a time.
const TOGETHER: usize = 2048;

#[repr(align(64))]
struct Room([MaybeUninit<u8>; TOGETHER]);

/// A place in the stream of bytes of a layout, from which runs are taken in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    form: Form,
    /// Which run or piece.
    piece: usize,
    /// Bytes of it already taken.
    within: usize,
    /// How its parts are copied.
    how: Copying,
}

impl Cursor {
    /// The place `at` bytes from the beginning.
    #[inline]
    pub fn new(layout: Layout, at: usize) -> Cursor {
        // SAFETY: what the maker of the layout has promised is more.
        unsafe { Cursor::of_addresses(layout.0, at) }
    }

    /// A cursor of which only addresses are asked: those of another process's memory.
    ///
    /// # Safety
    /// The descriptors of a list are readable as long as the cursor is used, and nothing is copied by it.
    pub unsafe fn of_addresses(form: Form, at: usize) -> Cursor {
        let mut c = Cursor { form, piece: 0, within: 0, how: Copying::Cached };
        match form {
            Form::Contiguous(run) => c.within = at.min(run.len()),
            Form::Block { block, .. } if block.run > 0 => {
                c.piece = at / block.run;
                c.within = at % block.run;
            }
            Form::Block { .. } => {}
            Form::List { iov, n } => {
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
    #[inline]
    pub fn take(&mut self, most: usize) -> Run {
        let (ptr, len) = match self.form {
            Form::Contiguous(run) => {
                let taken = run.part(self.within, most);
                self.within += taken.len();
                return taken;
            }
            Form::Block { ptr, block } => {
                if self.piece >= block.count || block.run == 0 {
                    return Run::NOTHING;
                }
                if block.stride == block.run as isize {
                    // No gaps: one long run.
                    let at = self.piece * block.run + self.within;
                    let n = most.min(block.run * block.count - at);
                    let end = at + n;
                    (self.piece, self.within) = (end / block.run, end % block.run);
                    (ptr.wrapping_add(at), n)
                } else {
                    let n = most.min(block.run - self.within);
                    let p = ptr.wrapping_offset(self.piece as isize * block.stride).wrapping_add(self.within);
                    self.within += n;
                    if self.within == block.run {
                        (self.piece, self.within) = (self.piece + 1, 0);
                    }
                    (p, n)
                }
            }
            Form::List { iov, n } => loop {
                if self.piece >= n {
                    return Run::NOTHING;
                }
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
                break (p, k);
            },
        };
        // SAFETY: within a run of the block or a piece of the list, or within all of a block without gaps.
        unsafe { Run::new(ptr, len) }
    }

    /// Copies the next bytes to `to`, as many as fit. That is mostly memory whose lines the other side has read last, where a line that two
    /// short copies write in turn costs twice: short runs are brought together in the innermost cache before they go on.
    #[inline]
    pub fn gather(&mut self, mut to: Run) {
        while to.len() >= TOGETHER / 2 && self.is_ragged(to) {
            let mut room = Room([MaybeUninit::uninit(); TOGETHER]);
            // SAFETY: within the room, of which only what has been written is read.
            let room = unsafe { Run::new(room.0.as_mut_ptr().cast(), to.len().min(TOGETHER)) };
            let k = room.len() - self.gather_runs(room).len();
            room.first(k).copy_to_by(to, self.how);
            if k == 0 {
                return;
            }
            to = to.after(k);
        }
        self.gather_runs(to);
    }

    /// Are the next runs short, and would their ends at `to` lie within lines?
    #[inline]
    fn is_ragged(&self, to: Run) -> bool {
        match self.form {
            Form::Contiguous(_) => false,
            Form::Block { block, .. } => {
                let gaps = block.stride != block.run as isize;
                gaps && (17..=TOGETHER_RUN).contains(&block.run) && !(to.ptr() as usize | block.run).is_multiple_of(64)
            }
            // SAFETY: `piece` < n, and the descriptors are readable.
            Form::List { iov, n } => self.piece < n && unsafe { (*iov.add(self.piece)).iov_len } <= TOGETHER_RUN,
        }
    }

    /// [`Cursor::gather`] run by run; what is left of `to` when the layout has no more.
    #[inline]
    fn gather_runs(&mut self, mut to: Run) -> Run {
        while !to.is_empty() {
            if let Some((from, step, run, count)) = self.take_runs(to.len()) {
                // SAFETY: whole runs of the block, which together are no longer than `to`.
                unsafe { copy_runs(from, step, to.ptr(), run as isize, run, count, self.how) };
                to = to.after(run * count);
                continue;
            }
            let from = self.take(to.len());
            if from.is_empty() {
                break;
            }
            from.copy_to_by(to, self.how);
            to = to.after(from.len());
        }
        to
    }

    /// Copies `from` into the layout, as far as it has bytes.
    #[inline]
    pub fn scatter(&mut self, mut from: Run) {
        while !from.is_empty() {
            if let Some((to, step, run, count)) = self.take_runs(from.len()) {
                // SAFETY: whole runs of the block, which together are no longer than `from`.
                unsafe { copy_runs(from.ptr(), run as isize, to, step, run, count, self.how) };
                from = from.after(run * count);
                continue;
            }
            let to = self.take(from.len());
            if to.is_empty() {
                return;
            }
            from.copy_to_by(to, self.how);
            from = from.after(to.len());
        }
    }

    /// The next bytes as words, as many as there are.
    pub fn gather_words<const N: usize>(&mut self) -> [u64; N] {
        let mut words = [0u64; N];
        self.gather_into(&mut words);
        words
    }

    /// [`Cursor::gather`] into words of this process's own.
    pub fn gather_into(&mut self, words: &mut [u64]) {
        Run::with_room(words, |to| self.gather(to));
    }

    /// Copies the first `n` bytes of two words into the layout.
    pub fn scatter_words(&mut self, words: [u64; 2], n: usize) {
        Run::with_bytes(&words, |from| self.scatter(from.first(n)));
    }

    /// [`Cursor::scatter`] of bytes of this process's own.
    pub fn scatter_bytes(&mut self, bytes: &[u8]) {
        Run::with_bytes(bytes, |from| self.scatter(from));
    }

    /// The next whole runs of a block, of at most `most` bytes together, if the cursor is at the beginning of one: where the first is, how
    /// far it is from one to the next, bytes of a run, and how many.
    #[inline]
    fn take_runs(&mut self, most: usize) -> Option<(*mut u8, isize, usize, usize)> {
        let Form::Block { ptr, block } = self.form else { return None };
        if self.within != 0 || block.run == 0 || block.stride == block.run as isize {
            return None;
        }
        let count = (most / block.run).min(block.count.saturating_sub(self.piece));
        let first = ptr.wrapping_offset(self.piece as isize * block.stride);
        self.piece += count;
        (count > 0).then_some((first, block.stride, block.run, count))
    }

    /// Describes the next bytes, at most `most`, by at most `out.len()` pieces: (pieces, bytes).
    pub fn pieces(&mut self, most: usize, out: &mut [libc::iovec]) -> (usize, usize) {
        let (mut n, mut bytes) = (0, 0);
        while n < out.len() && bytes < most {
            let run = self.take(most - bytes);
            if run.is_empty() {
                break;
            }
            out[n] = libc::iovec { iov_base: run.ptr().cast(), iov_len: run.len() };
            n += 1;
            bytes += run.len();
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

/// Copies `n` bytes from one layout to another in the same address space, from the given places on.
pub(crate) fn copy(from: Layout, from_at: usize, to: Layout, to_at: usize, n: usize) {
    let (mut from, mut to, mut left) = (Cursor::new(from, from_at), Cursor::new(to, to_at), n);
    while left > 0 {
        let run = from.take(left);
        if run.is_empty() {
            return;
        }
        to.scatter(run);
        left -= run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Block;
    use super::*;
    use proptest::prelude::*;

    fn layout_of(kind: u8, memory: &mut [u8], iov: &mut Vec<libc::iovec>) -> (Layout, Vec<usize>) {
        // The layout, and the offsets of its bytes in stream order.
        let ptr = memory.as_mut_ptr();
        let (form, offsets) = match kind {
            // SAFETY: within `memory`, which lives longer.
            0 => (Form::Contiguous(unsafe { Run::new(ptr, 240) }), (0..240).collect()),
            1 => {
                let block = Block { run: 6, count: 40, stride: 9 };
                (Form::Block { ptr, block }, (0..240).map(|k| k / 6 * 9 + k % 6).collect())
            }
            2 => {
                let block = Block { run: 10, count: 24, stride: -17 };
                let start = 23 * 17;
                let p = ptr.wrapping_add(start);
                (Form::Block { ptr: p, block }, (0..240).map(|k| start - k / 10 * 17 + k % 10).collect())
            }
            3..6 => {
                // Elements of a row of a matrix.
                let run = 4usize << (kind - 3);
                let block = Block { run, count: 240 / run, stride: run as isize + 3 };
                (Form::Block { ptr, block }, (0..240).map(|k| k / run * (run + 3) + k % run).collect())
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
                (Form::List { iov: iov.as_ptr(), n: iov.len() }, offsets)
            }
        };
        // SAFETY: within `memory`; both vectors live longer.
        (unsafe { Layout::new(form) }, offsets)
    }

    proptest! {
        #[test]
        fn bytes_are_a_stream_whatever_the_shapes(from in 0u8..7, to in 0u8..7, a in 0usize..200, n in 0usize..40, step in 1usize..50) {
            let mut source: Vec<u8> = (0..1024).map(|k| (k * 7 % 251) as u8).collect();
            let mut target = vec![255u8; 1024];
            let (mut i, mut j) = (Vec::new(), Vec::new());
            let (f, f_at) = layout_of(from, &mut source, &mut i);
            let (t, t_at) = layout_of(to, &mut target, &mut j);
            copy(f, a, t, a, n);
            for k in 0..n {
                prop_assert_eq!(target[t_at[a + k]], source[f_at[a + k]]);
            }
            prop_assert_eq!(target.iter().filter(|b| **b != 255).count() <= n, true);
            // Through a bounce buffer in steps, and by descriptors.
            let mut bounce = vec![0u8; 240];
            // SAFETY: all of the vector, which lives longer.
            let whole = unsafe { Run::new(bounce.as_mut_ptr(), 240) };
            let mut c = Cursor::new(f, 0);
            (0..240).step_by(step).for_each(|at| c.gather(whole.part(at, step)));
            for k in 0..240 {
                prop_assert_eq!(bounce[k], source[f_at[k]]);
            }
            target.fill(255);
            let mut c = Cursor::new(t, 0);
            (0..240).step_by(step).for_each(|at| c.scatter(whole.part(at, step)));
            for k in 0..240 {
                prop_assert_eq!(target[t_at[k]], bounce[k]);
            }
            prop_assert!(target.iter().filter(|b| **b != 255).count() <= 240);
        }
    }
}
