//! Where the bytes of a message lie in the caller's memory: one run, a block of strided runs (a sub-matrix), or a list.
//!
//! The bytes are a stream: the two sides of a message may have different layouts.

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
impl Layout {
    /// The number of bytes, or an error when the shape makes no sense (null memory with a size, overflow).
    ///
    /// # Safety
    /// The descriptors of a list must be readable.
    pub unsafe fn len_checked(&self) -> Result<usize> {
        let wrong = |text: &str| Err(Error::new(Code::Argument, text));
        match *self {
            Layout::Contiguous { ptr, len } => {
                if ptr.is_null() && len != 0 {
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
