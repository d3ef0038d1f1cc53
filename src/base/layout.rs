//! Where the bytes of a message lie in the caller's memory: one run, a block of strided runs (a sub-matrix), or a list.
//!
//! The bytes are a stream: the two sides of a message may have different layouts.

mod cursor;

use crate::base::error::{Code, Error, Result};
pub use crate::base::run::Run;
pub(crate) use cursor::{Cursor, copy};

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

/// How the memory of one message lies.
#[repr(C, u32)]
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One run.
    Contiguous(Run),
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

/// The memory of one message. Whoever has one may read it, and write it if it was made for that: its maker has promised so.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Layout(Form);

// SAFETY: as for `Run`.
unsafe impl Send for Layout {}
// SAFETY: as above.
unsafe impl Sync for Layout {}

impl From<Run> for Layout {
    #[inline(always)]
    fn from(run: Run) -> Layout {
        Layout(Form::Contiguous(run))
    }
}

impl Layout {
    /// A message of no bytes.
    pub const NOTHING: Layout = Layout(Form::Contiguous(Run::NOTHING));

    /// # Safety
    /// As for [`Run::new`], for each of its runs, unless [`Layout::len_checked`] says that the shape makes no sense. The descriptors of a list
    /// are readable, and do not change, as long.
    #[inline(always)]
    pub const unsafe fn new(form: Form) -> Layout {
        Layout(form)
    }

    /// One run of bytes.
    ///
    /// # Safety
    /// As for [`Run::new`].
    #[inline(always)]
    pub const unsafe fn bytes(ptr: *mut u8, len: usize) -> Layout {
        // SAFETY: the same promise.
        Layout(Form::Contiguous(unsafe { Run::new(ptr, len) }))
    }

    /// How it lies.
    #[inline(always)]
    pub const fn form(self) -> Form {
        self.0
    }

    /// The number of bytes, or an error when the shape makes no sense (null memory with a size, overflow).
    pub fn len_checked(&self) -> Result<usize> {
        let wrong = |text: &str| Err(Error::new(Code::Argument, text));
        match self.0 {
            Form::Contiguous(run) => {
                if run.is_nowhere() {
                    return wrong("null buffer with a size");
                }
                if run.len() > isize::MAX as usize { wrong("size overflows") } else { Ok(run.len()) }
            }
            Form::Block { ptr, block } => {
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
            Form::List { iov, n } => {
                if n == 0 {
                    return Ok(0);
                }
                if iov.is_null() {
                    return wrong("null list with a count");
                }
                let mut total = 0usize;
                for k in 0..n {
                    // SAFETY: a layout has `n` readable descriptors at `iov`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_make_no_sense_are_refused() {
        let p = 8 as *mut u8;
        let bad = [
            // SAFETY: nothing is asked of it but its length.
            Form::Contiguous(unsafe { Run::new(core::ptr::null_mut(), 1) }),
            Form::Block { ptr: p, block: Block { run: usize::MAX, count: 2, stride: 1 } },
            Form::Block { ptr: p, block: Block { run: 1, count: 3, stride: isize::MAX } },
            Form::Block { ptr: core::ptr::null_mut(), block: Block { run: 1, count: 1, stride: 0 } },
            Form::List { iov: core::ptr::null(), n: 1 },
        ];
        for form in bad {
            // SAFETY: as above; and none of the others makes sense.
            let layout = unsafe { Layout::new(form) };
            assert_eq!(layout.len_checked().unwrap_err().code(), Code::Argument, "{layout:?}");
        }
        assert_eq!(Layout::NOTHING.len_checked(), Ok(0));
    }
}
