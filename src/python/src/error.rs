//! `fmpl.Error` from the library's errors.

use fmpl::{Code, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whom and what a call was about, for the error that it may raise.
#[derive(Clone, Copy, Default)]
pub struct About {
    pub rank: Option<usize>,
    pub peer: Option<i32>,
    pub index: Option<i32>,
}

/// The exception of an error.
#[cold]
pub fn raise(py: Python<'_>, error: &Error, about: About) -> PyErr {
    raise_as(py, error.code(), &error.to_string(), about)
}

/// An exception with a text of this package's.
#[cold]
pub fn wrong(py: Python<'_>, code: Code, text: &str, about: About) -> PyErr {
    raise(py, &Error::new(code, text), about)
}

fn raise_as(py: Python<'_>, code: Code, text: &str, about: About) -> PyErr {
    let make = || -> PyResult<Bound<'_, PyAny>> {
        let class =
            CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("fmpl._error")?.getattr("Error")?.unbind()))?;
        let known = |n: Option<i32>| n.filter(|n| *n >= 0);
        class.bind(py).call1((code as i32, text, about.rank, known(about.peer), known(about.index)))
    };
    match make() {
        Ok(value) => PyErr::from_value(value),
        Err(other) => other,
    }
}
