//! Buffers of Python, exported for as long as the library has them.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

use fmpl::Code;
use fmpl::base::bytes::{Bytes, Room};
use fmpl::base::layout::{Block, Form, Layout};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::{About, wrong};

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

    /// To be read by a call.
    ///
    /// # Safety
    /// The call is over before the export is.
    pub unsafe fn bytes<'a>(self) -> Bytes<'a> {
        // SAFETY: exported, so it is there, and stays as the caller says. Other threads of the program may write there meanwhile: what is read
        // is then whatever they leave, by copies of the library's own that expect that of shared memory.
        unsafe { Bytes::new(self.at, self.len) }
    }

    /// To be written by a call.
    ///
    /// # Safety
    /// The call is over before the export is, which is of memory that may be written.
    pub unsafe fn room<'a>(self) -> Room<'a> {
        // SAFETY: as for `bytes`.
        unsafe { Room::new(self.at, self.len) }
    }

    /// Have the two a byte in common?
    pub fn overlaps(self, other: Memory) -> bool {
        let (a, b) = (self.at as usize, other.at as usize);
        self.len != 0 && other.len != 0 && a < b + other.len && b < a + self.len
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
        self.take(object, ffi::PyBUF_STRIDES)?;
        self.memory(object.py(), false)
    }

    /// The same, to be written.
    #[inline]
    pub fn write(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        self.take(object, ffi::PyBUF_STRIDES | ffi::PyBUF_WRITABLE)?;
        self.memory(object.py(), true)
    }

    /// One or the other, with the format of its elements; contiguous.
    pub fn typed(&mut self, object: &Bound<'_, PyAny>, written: bool) -> PyResult<(Memory, String)> {
        let writable = if written { ffi::PyBUF_WRITABLE } else { 0 };
        self.take(object, ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT | writable)?;
        let memory = self.memory(object.py(), written)?.whole(object.py())?;
        // SAFETY: taken.
        let format = unsafe { self.view.assume_init_ref() }.format;
        let format = if format.is_null() {
            "B".to_string()
        } else {
            // SAFETY: a text that lasts as long as the export.
            unsafe { CStr::from_ptr(format) }.to_string_lossy().into_owned()
        };
        Ok((memory, format))
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
