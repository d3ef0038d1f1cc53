//! Views that Python has of memory of the library: so many of each object, and of all together. The interpreter's lock guards the counts.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::group::change;

static ALL: AtomicU32 = AtomicU32::new(0);

/// How many views are alive, of all objects.
pub fn all() -> u32 {
    ALL.load(Ordering::Relaxed)
}

/// The views of one object.
#[derive(Default)]
pub struct Views(AtomicU32);

impl Views {
    /// How many are alive.
    pub fn alive(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Fills one, of `len` bytes of an object at `at`; 0: they are none.
    ///
    /// # Safety
    /// `view` is to be filled, and so many bytes are there for as long as views are alive.
    pub unsafe fn give<T>(
        &self,
        object: &Bound<'_, T>,
        view: *mut ffi::Py_buffer,
        (at, len): (usize, usize),
        writable: bool,
        flags: c_int,
    ) -> PyResult<()> {
        // An address even where there are no bytes.
        static NOTHING: u8 = 0;
        let at = if at == 0 { (&raw const NOTHING).cast_mut() } else { at as *mut u8 };
        let readonly = c_int::from(!writable);
        // SAFETY: as the caller promises.
        if unsafe { ffi::PyBuffer_FillInfo(view, object.as_ptr(), at.cast(), len as isize, readonly, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        change(&self.0, 1);
        change(&ALL, 1);
        Ok(())
    }

    /// One is released.
    pub fn release(&self) {
        change(&self.0, -1);
        change(&ALL, -1);
    }
}
