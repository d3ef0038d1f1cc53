//! Buffers of Python, exported for as long as the library has them.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

use fmpl::Code;
use fmpl::base::bytes::Room;
use fmpl::base::layout::{Block, Form, Layout};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::{About, wrong};

/// What is asked of every buffer.
const FORM: c_int = ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT;

/// An export of a buffer, released when it is dropped, with the interpreter's lock.
pub struct Export {
    view: MaybeUninit<ffi::Py_buffer>,
    taken: bool,
}

// SAFETY: an export belongs to no thread; it is made and dropped with the interpreter's lock.
unsafe impl Send for Export {}
// SAFETY: as above; what is shared is not looked at.
unsafe impl Sync for Export {}

/// Memory that is exported; used for no longer than its export lasts.
#[derive(Clone, Copy)]
pub struct Memory {
    pub at: *mut u8,
    /// Bytes of a message in it.
    pub len: usize,
    /// Bytes of an element.
    pub item: usize,
    /// How it lies.
    pub layout: Layout,
}

// SAFETY: an address, as a `Layout` is.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// No memory.
    pub const NOTHING: Memory = Memory { at: std::ptr::null_mut(), len: 0, item: 1, layout: Layout::NOTHING };

    /// The same, as one run of bytes.
    pub fn whole(self, py: Python<'_>) -> PyResult<Memory> {
        if matches!(self.layout.form(), Form::Contiguous(_)) {
            return Ok(self);
        }
        Err(wrong(py, Code::Argument, "this call needs a contiguous buffer; copy it first", About::default()))
    }

    /// Its address and its bytes.
    pub fn parts(self) -> (*mut u8, usize) {
        (self.at, self.len)
    }

    /// To be read by a call, or written.
    ///
    /// # Safety
    /// The call is over before the export is, which is of memory that may be written if it is.
    pub unsafe fn room<'a>(self) -> Room<'a> {
        // SAFETY: exported, so it is there, and stays as the caller says. Other threads of the program may write there meanwhile: what is read
        // is then whatever they leave, by copies of the library's own that expect that of shared memory.
        unsafe { Room::new(self.at, self.len) }
    }

    /// The address of its first byte, that behind its last one, and of evenly spaced runs the bytes of one and from one to the next.
    fn extent(self) -> (usize, usize, Option<(usize, usize)>) {
        let at = self.at as usize;
        let Form::Block { block: Block { run, count, stride }, .. } = self.layout.form() else {
            return (at, at + self.len, None);
        };
        let far = at.wrapping_add_signed(stride * (count as isize - 1));
        (at.min(far), at.max(far) + run, Some((run, stride.unsigned_abs())))
    }

    /// Have the two a byte in common? So it is found of two that are one run each, or evenly spaced by the same stride, such as columns of a
    /// matrix; of others it is not known, and `false`.
    pub fn overlaps(self, other: Memory) -> bool {
        if self.len == 0 || other.len == 0 {
            return false;
        }
        let (mut low, mut high) = (self.extent(), other.extent());
        if low.0 > high.0 {
            (low, high) = (high, low);
        }
        if low.1 <= high.0 {
            return false;
        }
        match (low.2, high.2) {
            (None, None) => true,
            (Some((run, stride)), Some((other, same))) if stride == same && stride != 0 => {
                let gap = (high.0 - low.0) % stride;
                gap < run || gap + other > stride
            }
            _ => false,
        }
    }
}

impl Export {
    /// None yet.
    pub const fn new() -> Export {
        Export { view: MaybeUninit::uninit(), taken: false }
    }

    /// Exports an object's buffer, to be read.
    #[inline]
    pub fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        self.take(object, FORM)?;
        self.memory(object.py(), false)
    }

    /// The same, to be written.
    #[inline]
    pub fn write(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        self.take(object, FORM | ffi::PyBUF_WRITABLE)?;
        self.memory(object.py(), true)
    }

    /// One or the other, with the format of its elements; contiguous.
    pub fn typed(&mut self, object: &Bound<'_, PyAny>, written: bool) -> PyResult<(Memory, String)> {
        let writable = if written { ffi::PyBUF_WRITABLE } else { 0 };
        self.take(object, FORM | writable)?;
        let memory = self.memory(object.py(), written)?.whole(object.py())?;
        // SAFETY: taken.
        let format = format(unsafe { self.view.assume_init_ref() });
        Ok((memory, format.map_or("B".to_string(), |format| format.to_string_lossy().into_owned())))
    }

    #[inline]
    fn take(&mut self, object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<()> {
        assert!(!self.taken, "an export holds one buffer");
        // SAFETY: an object, and room for a view.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), self.view.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        self.taken = true;
        Ok(())
    }

    /// What has been taken.
    #[inline]
    fn memory(&self, py: Python<'_>, written: bool) -> PyResult<Memory> {
        // SAFETY: taken just now.
        let view = unsafe { self.view.assume_init_ref() };
        if format(view).is_some_and(|format| has_objects(format.to_bytes())) {
            let text = "a buffer of Python objects has only their addresses, which mean nothing to others (send_object pickles them)";
            return Err(wrong(py, Code::Argument, text, About::default()));
        }
        let (at, len, item) = (view.buf.cast::<u8>(), view.len.max(0) as usize, view.itemsize.max(1) as usize);
        let ndim = view.ndim.max(0) as usize;
        if ndim == 0 || view.shape.is_null() || view.strides.is_null() {
            return Ok(contiguous(at, len, item));
        }
        // SAFETY: as many of each as dimensions.
        let (shape, strides) =
            unsafe { (std::slice::from_raw_parts(view.shape, ndim), std::slice::from_raw_parts(view.strides, ndim)) };
        if ndim == 1 && strides[0] == item as isize || len == 0 {
            return Ok(contiguous(at, len, item));
        }
        match block(shape, strides, item) {
            Some(Block { count: 1, .. }) => Ok(contiguous(at, len, item)),
            Some(Block { run, stride, .. }) if written && stride.unsigned_abs() < run => {
                let text = "a buffer to receive into whose elements lie over each other";
                Err(wrong(py, Code::Argument, text, About::default()))
            }
            Some(block) => {
                // SAFETY: the export has these elements, and lasts as long as this is used.
                let layout = unsafe { Layout::new(Form::Block { ptr: at, block }) };
                Ok(Memory { at, len, item, layout })
            }
            // SAFETY: a view that is taken.
            None if unsafe { ffi::PyBuffer_IsContiguous(view, b'F' as _) } != 0 => Ok(contiguous(at, len, item)),
            None => {
                let text = "the elements are neither one run nor evenly spaced runs; copy them first (numpy.ascontiguousarray)";
                Err(wrong(py, Code::Argument, text, About::default()))
            }
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if self.taken {
            // SAFETY: taken, and released once; who drops it has the interpreter's lock.
            unsafe { ffi::PyBuffer_Release(self.view.as_mut_ptr()) }
        }
    }
}

/// The format of a view's elements; without one they are bytes.
#[inline]
fn format(view: &ffi::Py_buffer) -> Option<&CStr> {
    // SAFETY: a text that lasts as long as the view.
    (!view.format.is_null()).then(|| unsafe { CStr::from_ptr(view.format) })
}

/// Are there references to objects among the elements? Names of fields stand between colons.
#[inline]
fn has_objects(format: &[u8]) -> bool {
    let mut is_name = false;
    format.iter().any(|byte| {
        is_name ^= *byte == b':';
        *byte == b'O' && !is_name
    })
}

#[inline]
fn contiguous(at: *mut u8, len: usize, item: usize) -> Memory {
    // SAFETY: the export has so many bytes there, and lasts as long as this is used; what is to be written was exported for that.
    let layout = unsafe { Layout::bytes(at, len) };
    Memory { at, len, item, layout }
}

/// Elements in the order of C as evenly spaced runs, if they are; a count of 1: one run.
fn block(shape: &[isize], strides: &[isize], item: usize) -> Option<Block> {
    let mut dims = shape.iter().copied().zip(strides.iter().copied()).filter(|(n, _)| *n != 1).rev().peekable();
    let mut run = item as isize;
    while let Some((n, _)) = dims.next_if(|(_, stride)| *stride == run) {
        run *= n;
    }
    let Some((mut count, stride)) = dims.next() else {
        return Some(Block { run: run as usize, count: 1, stride: run });
    };
    for (n, outer) in dims {
        if outer != stride * count {
            return None;
        }
        count *= n;
    }
    Some(Block { run: run as usize, count: count as usize, stride })
}
