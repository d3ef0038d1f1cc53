//! Slices of plain values as the memory of messages.

use std::mem::size_of_val;

use crate::base::layout::Layout;
pub use crate::base::plain::Plain;

/// The layout of a slice that is sent. Sending only reads it; who gives it to a request keeps the slice borrowed until that is over.
#[inline(always)]
pub(crate) fn outgoing<T: Plain>(data: &[T]) -> Layout {
    // SAFETY: all of the slice, while it is borrowed.
    unsafe { Layout::bytes(data.as_ptr().cast_mut().cast(), size_of_val(data)) }
}

/// The layout of a slice that is received into.
#[inline(always)]
pub(crate) fn incoming<T: Plain>(data: &mut [T]) -> Layout {
    // SAFETY: as above; values are plain, so any bytes may come.
    unsafe { Layout::bytes(data.as_mut_ptr().cast(), size_of_val(data)) }
}
