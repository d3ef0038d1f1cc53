//! The other side of a message, as Python names it.

use fmpl::Code;
use fmpl::p2p::PROC_NULL;
use pyo3::prelude::*;

use crate::error::{About, wrong};
use crate::group::Group;

/// A rank, or nobody. Negative numbers are no ranks; that -2 is nobody is a matter of C.
pub struct Peer(Option<i32>);

impl<'a, 'py> FromPyObject<'a, 'py> for Peer {
    type Error = PyErr;
    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Peer> {
        object.extract().map(Peer)
    }
}

impl Peer {
    /// What the library calls it, in a call on a communicator.
    #[inline]
    pub fn of(self, py: Python<'_>, group: &Group) -> PyResult<i32> {
        match self.0 {
            None => Ok(PROC_NULL),
            Some(rank @ ..0) => Err(negative(py, group, rank)),
            Some(rank) => Ok(rank),
        }
    }
}

/// The error of a negative number; that there is no such call now comes before.
#[cold]
fn negative(py: Python<'_>, group: &Group, rank: i32) -> PyErr {
    let text = format!("peer {rank}: ranks count from 0, and nobody is None");
    match group.enter(py) {
        Ok(_in) => wrong(py, Code::Rank, &text, group.about(Some(rank), None)),
        Err(e) => e,
    }
}

/// The index of a receive that does not wait: -1 is any index to the library, which is a call of its own here.
pub fn of_receive(py: Python<'_>, index: i32, about: About) -> PyResult<i32> {
    match index {
        ..0 => Err(wrong(py, Code::Index, &format!("index {index}: indices count from 0"), about)),
        _ => Ok(index),
    }
}
