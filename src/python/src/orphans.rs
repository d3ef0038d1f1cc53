//! What becomes of requests that are let go.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use fmpl::Code;
use pyo3::prelude::*;

use crate::error::About;
use crate::group::Group;
use crate::life::whole;
use crate::request::Open;

/// Requests that were let go and are not over yet.
pub struct Orphans(Mutex<Vec<Open>>);

pub static ORPHANS: Orphans = Orphans(Mutex::new(Vec::new()));

impl Orphans {
    pub fn add(&self, open: Open) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(open);
    }

    fn take(&self) -> Vec<Open> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks which are over by now. Called where requests begin, before calls of any source, where a communicator
    /// is freed, and where something is busy ([`again`]).
    pub fn look(&self) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        // Dropped without the list's lock, since releasing a buffer may call Python.
        let (over, open): (Vec<_>, Vec<_>) = self.take().into_iter().partition(|open| open.is_over());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(open);
        drop(over);
    }

    /// The end of the job: waits for them. What is not over then keeps its memory for ever.
    pub fn end(&self, py: Python<'_>, about: About) -> PyResult<()> {
        let mut first = Ok(());
        for open in self.take() {
            let over = open.is_over() || {
                let done = whole(py, about, || open.complete(true).map(|_| ()));
                let over = done.is_ok();
                first = first.and(done);
                over
            };
            if !over {
                std::mem::forget(open);
            }
        }
        first
    }
}

/// Makes a call that requests which were let go may stand in the way of: they are looked after, and it is made once more, where it is busy.
#[inline]
pub fn again<R>(mut call: impl FnMut() -> fmpl::Result<R>) -> fmpl::Result<R> {
    match call() {
        Err(error) if error.code() == Code::Busy => {
            ORPHANS.look();
            call()
        }
        done => done,
    }
}

/// Whether requests of a communicator that is about to be freed are over.
pub fn settle(group: &Group) {
    if group.open.load(Ordering::Relaxed) != 0 {
        ORPHANS.look();
    }
}
