//! Memory of a node's ranks side by side, as buffers of Python.
//!
//! A window is one buffer, of all parts; a view of a part is a slice of that. So one count of exports says whether anybody looks at it. While
//! one does it is not given back, and the job is not left.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fmpl::base::bytes::Room;
use fmpl::base::unused::Unused;
use fmpl::{Code, coll, comm};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice};

use crate::error::{raise, wrong};
use crate::group::Group;
use crate::life::{LIFE, Thing, undisturbed};
use crate::orphans::again;
use crate::views::Views;

/// Memory of a node's ranks side by side, which each of them reads and writes as its own (`Comm.shared_window`).
///
/// `window[rank]` is the part of a rank, as a memoryview that can be written; `memoryview(window)`, `numpy.frombuffer(window)` is all of it,
/// one part right behind the other in the order of the ranks; `len(window)` is the number of parts. What one rank writes is certain to be
/// there for another behind a barrier or a message.
///
/// It is given back by `free()`, which is the end of its `with` block; let go, it keeps its memory until the job ends.
#[pyclass(frozen, module = "fmpl")]
pub struct SharedWindow {
    group: Arc<Group>,
    at: usize,
    /// Where this rank's part begins: by that the library knows it.
    mine: usize,
    /// Where each rank's part ends, from `at` on.
    ends: Vec<usize>,
    views: Views,
    /// Given back, or not to be any more: it has no more views to give.
    closed: AtomicBool,
}

impl SharedWindow {
    /// Makes one, with so many bytes of this rank's; all ranks call it.
    pub fn new(py: Python<'_>, group: &Arc<Group>, size: usize) -> PyResult<SharedWindow> {
        let _in = group.enter(py)?;
        let made = again(|| undisturbed(py, || group.collective(|| make(group, size))));
        let (at, mine, ends) = made.map_err(|error| raise(py, &error, group.about(None, None)))?;
        let (views, closed) = (Views::default(), AtomicBool::new(false));
        Ok(SharedWindow { group: group.clone(), at, mine, ends, views, closed })
    }

    /// The bytes of all parts.
    fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Where a new window begins, where this rank's part does, and where from the beginning on each part ends. It is full of zeros.
fn make(group: &Group, size: usize) -> fmpl::Result<(usize, usize, Vec<usize>)> {
    let mine = comm::shared_alloc(group.id, size)?;
    // SAFETY: so much has just been allocated; the others, who have it, too, touch it behind the barrier only.
    unsafe { Room::new(mine, size) }.zero();
    coll::barrier(group.id)?;
    let part = |rank: usize| comm::shared_query(mine, rank as i32).map(|(at, bytes)| (at as usize, bytes));
    let at = part(0)?.0;
    let ends =
        (0..group.size).map(|rank| part(rank).map(|(from, bytes)| from + bytes - at)).collect::<fmpl::Result<_>>()?;
    Ok((at, mine as usize, ends))
}

#[pymethods]
impl SharedWindow {
    /// The number of parts: the ranks of its communicator.
    fn __len__(&self) -> usize {
        self.ends.len()
    }

    /// The part of a rank.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, rank: isize) -> PyResult<Bound<'py, PyAny>> {
        let ends = &slf.get().ends;
        let Some((place, end)) = usize::try_from(rank).ok().and_then(|rank| Some((rank, *ends.get(rank)?))) else {
            return Err(PyIndexError::new_err(format!("a window of {} ranks has no part of rank {rank}", ends.len())));
        };
        let begin = if place == 0 { 0 } else { ends[place - 1] };
        PyMemoryView::from(slf)?.get_item(PySlice::new(slf.py(), begin as isize, end as isize, 1))
    }

    /// Gives the memory back; all ranks of its communicator call it. No view of it may be alive in this process (an array made by
    /// `numpy.frombuffer` is one): that is an `Error` of `Code.BUSY`, and changes nothing. Behind any other error the memory stays until the
    /// job ends, and cannot be looked at any more. It need not be freed again.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (group, about) = (&*self.group, self.group.about(None, None));
        let _in = group.enter(py)?;
        let views = self.views.alive();
        if views != 0 {
            let text =
                format!("freeing a shared window of which {views} views are alive; release them, del the arrays");
            return Err(wrong(py, Code::Busy, &text, about));
        }
        // No other thread gets a view while this one waits.
        self.closed.store(true, Ordering::Relaxed);
        // SAFETY: nobody looks at it, as has been seen with the interpreter's lock, and nobody will, since it is closed; it opens again only
        // where nothing has been done. The other ranks promise the same of theirs: of this very window, or none is given back.
        let call = || comm::shared_free(self.mine as *mut u8, unsafe { Unused::promised() });
        let freed = again(|| undisturbed(py, || group.collective(call)));
        freed.map_err(|error| {
            if error.code() == Code::Busy {
                self.closed.store(false, Ordering::Relaxed);
            }
            raise(py, &error, about)
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Frees it, unless an exception leaves the block: the others may not come.
    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        if !kind.is_none() { Ok(()) } else { self.free(py) }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let window = slf.get();
        if window.closed.load(Ordering::Relaxed) || !LIFE.is_usable(window.group.generation) {
            return Err(PyBufferError::new_err("the window has been freed, or its job is over"));
        }
        // SAFETY: the view to fill; so many bytes are there until the window is given back or the job is left, neither of which is done
        // while there are views.
        unsafe { window.views.give(&slf, view, (window.at, window.bytes()), true, flags) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.release();
    }

    fn __repr__(&self) -> String {
        format!("<fmpl.SharedWindow: {} parts, {} bytes together>", self.ends.len(), self.bytes())
    }
}
