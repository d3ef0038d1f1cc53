//! Slices of plain values as the memory of messages.

use std::mem::size_of_val;

use crate::base::layout::{Layout, Run};
pub use crate::base::plain::Plain;

/// The bytes of a slice that is sent. Sending only reads them; who gives them to a request keeps the slice borrowed until that is over.
#[inline(always)]
pub(crate) fn bytes<T: Plain>(data: &[T]) -> Run {
    // SAFETY: all of the slice, while it is borrowed.
    unsafe { Run::new(data.as_ptr().cast_mut().cast(), size_of_val(data)) }
}

/// The same of a slice that is received into.
#[inline(always)]
pub(crate) fn room<T: Plain>(data: &mut [T]) -> Run {
    // SAFETY: as above; values are plain, so any bytes may come.
    unsafe { Run::new(data.as_mut_ptr().cast(), size_of_val(data)) }
}

/// The layout of a slice that is sent.
#[inline(always)]
pub(crate) fn outgoing<T: Plain>(data: &[T]) -> Layout {
    bytes(data).into()
}

/// The layout of a slice that is received into.
#[inline(always)]
pub(crate) fn incoming<T: Plain>(data: &mut [T]) -> Layout {
    room(data).into()
}
