//! Messages that do not lie in one piece: sub-matrices as strided runs, and lists of slices. The library moves them without
//! packing. The two sides of a message may have different shapes; its bytes are a stream.

use std::mem::{MaybeUninit, size_of};

use crate::base::error::{Code, Error, Result};
use crate::base::layout::{Block, Form, Layout};
use crate::comm::Plain;

/// Checks the bounds of `count` runs of `run` elements, `stride` elements from one beginning to the next, in a slice of `len`.
fn check(len: usize, count: usize, run: usize, stride: usize, apart: bool) -> Result<()> {
    let wrong = |text: String| Err(Error::new(Code::Argument, text));
    if count == 0 || run == 0 {
        return Ok(());
    }
    let end = (count - 1).checked_mul(stride).and_then(|at| at.checked_add(run));
    if end.is_none_or(|end| end > len) {
        return wrong(format!("{count} runs of {run} elements, {stride} apart, do not fit into a slice of {len}"));
    }
    if apart && count > 1 && stride < run {
        return wrong(format!("runs of {run} elements, {stride} apart, overlap: they cannot be received into"));
    }
    Ok(())
}

fn block<T>(ptr: *mut T, count: usize, run: usize, stride: usize) -> Layout {
    // `check` saw that all of it lies in a slice, whose bytes fit into an isize. An empty block needs no stride.
    let stride = if count == 0 || run == 0 { 0 } else { stride.wrapping_mul(size_of::<T>()) as isize };
    let stride = if count > 1 { stride } else { 0 };
    let block = Block { run: run.wrapping_mul(size_of::<T>()), count, stride };
    of_slices(Form::Block { ptr: ptr.cast(), block })
}

/// Parts of slices as the memory of a message.
fn of_slices(form: Form) -> Layout {
    // SAFETY: the slices are borrowed until the call, or the request, is over, and descriptors of them are kept as long.
    unsafe { Layout::new(form) }
}

/// `count` runs of `run` elements each in a slice, `stride` elements from the beginning of one to the beginning of the next: the
/// rows of a sub-matrix, or with `run` 1 a column.
///
/// ```
/// # use fmpl::Strided;
/// let matrix = [0.0f64; 60 * 80];
/// // 20 rows from row 10 on, 10 columns from column 5 on.
/// let part = Strided::new(&matrix[10 * 80 + 5..], 20, 10, 80)?;
/// assert_eq!(part.len(), 200);
/// # Ok::<(), fmpl::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a, T: Plain> {
    data: &'a [T],
    count: usize,
    run: usize,
    stride: usize,
}

impl<'a, T: Plain> Strided<'a, T> {
    /// `count` runs of `run` elements, `stride` elements apart. [`Code::Argument`] when the last would end outside the slice.
    pub fn new(data: &'a [T], count: usize, run: usize, stride: usize) -> Result<Strided<'a, T>> {
        check(data.len(), count, run, stride, false)?;
        Ok(if count == 0 || run == 0 {
            Strided { data, count: 0, run: 0, stride: 0 }
        } else {
            Strided { data, count, run, stride }
        })
    }

    /// Elements in all runs together.
    pub fn len(&self) -> usize {
        self.count * self.run
    }

    /// Are there no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn layout(&self) -> Layout {
        block(self.data.as_ptr().cast_mut(), self.count, self.run, self.stride)
    }
}

/// Like [`Strided`], to be received into. The runs must not overlap, so `stride` is at least `run`.
#[derive(Debug)]
pub struct StridedMut<'a, T: Plain> {
    data: &'a mut [T],
    count: usize,
    run: usize,
    stride: usize,
}

static_assertions::assert_impl_all!(StridedMut<'static, u64>: Send, Sync);

impl<'a, T: Plain> StridedMut<'a, T> {
    /// `count` runs of `run` elements, `stride` elements apart. [`Code::Argument`] when the last would end outside the slice, or
    /// when they overlap.
    pub fn new(data: &'a mut [T], count: usize, run: usize, stride: usize) -> Result<StridedMut<'a, T>> {
        check(data.len(), count, run, stride, true)?;
        let (count, run, stride) = if count == 0 || run == 0 { (0, 0, 0) } else { (count, run, stride) };
        Ok(StridedMut { data, count, run, stride })
    }

    /// Elements in all runs together.
    pub fn len(&self) -> usize {
        self.count * self.run
    }

    /// Are there no elements?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same for a shorter time, so that one can be used for several calls.
    pub fn reborrow(&mut self) -> StridedMut<'_, T> {
        StridedMut { data: self.data, ..*self }
    }

    pub(crate) fn layout(&mut self) -> Layout {
        block(self.data.as_mut_ptr(), self.count, self.run, self.stride)
    }
}

/// Descriptors that a list has on the stack; a longer one takes memory from the heap.
const ON_STACK: usize = 32;

/// The descriptors of a list of slices for the length of one call.
pub(crate) fn with_list<R>(
    pieces: impl ExactSizeIterator<Item = (*mut u8, usize)>,
    call: impl FnOnce(Layout) -> R,
) -> R {
    let n = pieces.len();
    let descriptor = |(ptr, len): (*mut u8, usize)| libc::iovec { iov_base: ptr.cast(), iov_len: len };
    if n <= ON_STACK {
        let mut iov = [const { MaybeUninit::<libc::iovec>::uninit() }; ON_STACK];
        let mut filled = 0;
        for (at, piece) in iov.iter_mut().zip(pieces) {
            at.write(descriptor(piece));
            filled += 1;
        }
        call(list(iov.as_ptr().cast(), filled))
    } else {
        let iov: Vec<libc::iovec> = pieces.map(descriptor).collect();
        call(list(iov.as_ptr(), iov.len()))
    }
}

/// `n` descriptors as the memory of a message.
fn list(iov: *const libc::iovec, n: usize) -> Layout {
    of_slices(Form::List { iov, n })
}

/// The descriptors of slices that are sent.
pub(crate) fn pieces<T: Plain>(list: &[&[T]]) -> impl ExactSizeIterator<Item = (*mut u8, usize)> {
    list.iter().map(|s| (s.as_ptr().cast_mut().cast(), size_of_val(*s)))
}

/// The descriptors of slices that are received into.
pub(crate) fn pieces_mut<T: Plain>(list: &mut [&mut [T]]) -> impl ExactSizeIterator<Item = (*mut u8, usize)> {
    list.iter_mut().map(|s| (s.as_mut_ptr().cast(), size_of_val(*s)))
}

/// Descriptors that outlive the call: those of a request. Boxed, so that they stay where they are.
pub(crate) struct List(Box<[libc::iovec]>);

impl List {
    pub fn new(pieces: impl ExactSizeIterator<Item = (*mut u8, usize)>) -> List {
        List(pieces.map(|(ptr, len)| libc::iovec { iov_base: ptr.cast(), iov_len: len }).collect())
    }

    pub fn layout(&self) -> Layout {
        list(self.0.as_ptr(), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_stays_within_its_slice() {
        let mut data = [0u32; 100];
        assert_eq!(Strided::new(&data, 10, 10, 10).unwrap().len(), 100);
        assert_eq!(Strided::new(&data, 10, 1, 11).unwrap().len(), 10);
        assert!(Strided::new(&data, 0, usize::MAX, usize::MAX).unwrap().is_empty());
        // A sent run may overlap the next, a received one may not.
        assert_eq!(Strided::new(&data, 3, 5, 1).unwrap().len(), 15);
        for (count, run, stride) in
            [(11, 10, 10), (2, 1, 100), (1, 101, 0), (usize::MAX, 1, usize::MAX), (2, usize::MAX, 1)]
        {
            assert_eq!(Strided::new(&data, count, run, stride).unwrap_err().code(), Code::Argument);
            assert_eq!(StridedMut::new(&mut data, count, run, stride).unwrap_err().code(), Code::Argument);
        }
        assert_eq!(StridedMut::new(&mut data, 3, 5, 4).unwrap_err().code(), Code::Argument);
        assert_eq!(StridedMut::new(&mut data, 2, 50, 50).unwrap().len(), 100);
    }

    #[test]
    fn strides_are_counted_in_bytes_below() {
        let mut data = [0u64; 30];
        let Form::Block { ptr, block } = StridedMut::new(&mut data, 3, 4, 10).unwrap().layout().form() else {
            panic!("no block")
        };
        assert_eq!((block.run, block.count, block.stride), (32, 3, 80));
        assert_eq!(ptr, data.as_mut_ptr().cast());
    }

    #[test]
    fn lists_keep_their_order_on_the_stack_and_off_it() {
        let data: Vec<u16> = (0..200).collect();
        for n in [0, 1, ON_STACK, ON_STACK + 1, 100] {
            let list: Vec<&[u16]> = (0..n).map(|k| &data[k..k + k % 3]).collect();
            with_list(pieces(&list), |layout| {
                let Form::List { iov, n: count } = layout.form() else { panic!("no list") };
                assert_eq!(count, n);
                for (k, piece) in list.iter().enumerate() {
                    // SAFETY: `count` descriptors, alive during this call.
                    let d = unsafe { &*iov.add(k) };
                    assert_eq!((d.iov_base.cast_const().cast(), d.iov_len), (piece.as_ptr(), piece.len() * 2));
                }
            });
        }
    }
}
