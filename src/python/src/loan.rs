//! Messages that are handed over, as buffers of Python.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use fmpl::Code;
use fmpl::p2p::{self, Lent};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyType};

use crate::error::{About, wrong};
use crate::life::{LIFE, detached, in_handler};
use crate::views::Views;

/// Loans that this process has, by their addresses.
static HELD: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn held<R>(call: impl FnOnce(&mut HashSet<usize>) -> R) -> R {
    call(HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Returns all loans, of which no view is alive: the end of the job, after which their objects are not what they were.
pub fn return_all() {
    for at in held(std::mem::take) {
        let _ = p2p::loan_return(at as *const u8);
    }
}

/// Memory of a message that is handed over, not copied: to fill and to send (`Job.loan`, `Comm.send_loan`), or one that was received, to be
/// read (`Comm.recv_loan`). It is a buffer: `memoryview(loan)`, `numpy.frombuffer(loan)`.
///
/// It goes back when it is released, at the end of its `with` block, or when nobody has it any more; while a view of it is alive, when the
/// last one goes.
#[pyclass(frozen, module = "fmpl")]
pub struct Loan {
    at: usize,
    len: usize,
    writable: bool,
    source: Option<usize>,
    generation: u64,
    views: Views,
    /// Released, or sent: it has no more views to give.
    closed: AtomicBool,
    /// Neither sent nor returned.
    own: AtomicBool,
    /// What `with` has handed out.
    entered: Mutex<Option<Py<PyMemoryView>>>,
}

impl Loan {
    /// One to fill.
    pub fn lent(py: Python<'_>, about: About, generation: u64, size: usize) -> PyResult<Loan> {
        let (at, raised) = detached(py, about, || p2p::loan(size).map(|at| at as usize))?;
        let loan = Loan::new(at, size, true, None, generation);
        // Returned, when a signal's handler has raised.
        raised.map_or(Ok(loan), Err)
    }

    /// One that is received by a call, which gives also who has sent it.
    pub fn received(
        py: Python<'_>,
        about: About,
        generation: u64,
        receive: impl FnOnce() -> fmpl::Result<(Lent, i32)> + Send,
    ) -> PyResult<Loan> {
        let receive = || receive().map(|(lent, source)| (lent.at as usize, lent.len, source));
        let ((at, len, source), raised) = detached(py, about, receive)?;
        let loan = Loan::new(at, len, false, usize::try_from(source).ok(), generation);
        raised.map_or(Ok(loan), Err)
    }

    /// One that has been received, and who has sent it.
    pub fn of(lent: Lent, source: i32, generation: u64) -> Loan {
        Loan::new(lent.at as usize, lent.len, false, usize::try_from(source).ok(), generation)
    }

    fn new(at: usize, len: usize, writable: bool, source: Option<usize>, generation: u64) -> Loan {
        if at != 0 {
            held(|held| held.insert(at));
        }
        let (views, closed, own) = (Views::default(), AtomicBool::new(false), AtomicBool::new(true));
        Loan { at, len, writable, source, generation, views, closed, own, entered: Mutex::new(None) }
    }

    /// Hands it over by a call, which gets its address and the bytes of the message. It is the caller's as before if that fails.
    pub fn hand_over(
        &self,
        py: Python<'_>,
        about: About,
        bytes: Option<usize>,
        send: impl FnOnce(*mut u8, usize) -> fmpl::Result<()> + Send,
    ) -> PyResult<()> {
        let len = bytes.unwrap_or(self.len);
        let why = if self.closed.load(Ordering::Relaxed) || self.generation != LIFE.generation() {
            Some("it has been sent or released".to_string())
        } else if self.views.alive() != 0 {
            Some(format!("{} views of it are alive; release them first", self.views.alive()))
        } else if !self.writable {
            Some("it was received, so it is only to be read; copy it into a loan of your own".to_string())
        } else if len > self.len {
            Some(format!("it has {} bytes, not {len}", self.len))
        } else {
            None
        };
        if let Some(why) = why {
            return Err(wrong(py, Code::Argument, &format!("a loan cannot be sent: {why}"), about));
        }
        let at = self.at;
        // So that no other thread gets a view meanwhile. What is sent is the receiver's.
        self.closed.store(true, Ordering::Relaxed);
        self.own.store(false, Ordering::Relaxed);
        held(|held| held.remove(&at));
        match detached(py, about, || send(at as *mut u8, len)) {
            Ok(((), raised)) => raised.map_or(Ok(()), Err),
            Err(error) => {
                self.own.store(true, Ordering::Relaxed);
                self.closed.store(false, Ordering::Relaxed);
                held(|held| held.insert(at));
                Err(error)
            }
        }
    }

    fn give_back_if_over(&self) {
        let over = self.closed.load(Ordering::Relaxed) && self.views.alive() == 0;
        // Once: the same address may be another loan's by now.
        if !over || !self.own.swap(false, Ordering::Relaxed) || self.generation != LIFE.generation() {
            return;
        }
        // In a signal's handler it stays until the end of the job; in a forked child, too.
        if !in_handler() && held(|held| held.remove(&self.at)) {
            let _ = p2p::loan_return(self.at as *const u8);
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.give_back_if_over();
    }
}

#[pymethods]
impl Loan {
    /// Returns it: now, or when the last view of it goes. It can be looked at no more, and need not be released again.
    fn release(&self, py: Python<'_>) {
        if let Some(view) = self.entered.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Fails where an array still looks through it.
            let _ = view.call_method0(py, "release");
        }
        self.closed.store(true, Ordering::Relaxed);
        self.give_back_if_over();
    }

    /// Its bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.len
    }

    /// Who has sent it; None for one to fill, and for a message of nobody.
    #[getter]
    fn source(&self) -> Option<usize> {
        self.source
    }

    /// Whether it is one to fill.
    #[getter]
    fn writable(&self) -> bool {
        self.writable
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = PyMemoryView::from(slf)?;
        *slf.get().entered.lock().unwrap_or_else(PoisonError::into_inner) = Some(view.clone().unbind());
        Ok(view)
    }

    /// One to fill stays, to be sent; what was received is released.
    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        if !self.writable {
            return self.release(py);
        }
        if let Some(view) = self.entered.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = view.call_method0(py, "release");
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let loan = slf.get();
        if loan.closed.load(Ordering::Relaxed) || !LIFE.is_usable(loan.generation) {
            return Err(PyBufferError::new_err("the loan has been sent or released, or its job is over"));
        }
        // SAFETY: the view to fill; so many bytes are there until the loan is returned, which no view outlives.
        unsafe { loan.views.give(&slf, view, (loan.at, loan.len), loan.writable, flags) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.release();
        self.give_back_if_over();
    }

    fn __repr__(&self) -> String {
        let what = if self.writable { "to fill" } else { "received" };
        format!("<fmpl.Loan: {} bytes, {what}>", self.len)
    }
}
