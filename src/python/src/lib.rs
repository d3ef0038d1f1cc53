//! The Python package `fmpl`: what Python calls, on the Rust interface below [`fmpl::comm`].
//!
//! | file | what it does |
//! |---|---|
//! | `life` | the job in this process: init, calls under way, signals, the end |
//! | `memory` | buffers of Python, exported for as long as the library has them |
//! | `group` | a communicator, as calls and requests hold it |
//! | `comm`, `pieces` | `Comm`: messages, making communicators; messages of several buffers, multicasts |
//! | `collective`, `begun`, `reduce` | its collective calls; those that do not wait; the named operations on types of elements |
//! | `grid` | Cartesian grids |
//! | `global` | `Global`: global memory, its registrations and operations |
//! | `request`, `orphans` | `Request`, and what becomes of one that is let go |
//! | `loan`, `pending_loan` | `Loan`: messages that are handed over, as buffers; those that are on their way |
//! | `views` | the views of loans and windows, counted |
//! | `window` | `SharedWindow`: memory of a node's ranks side by side, as buffers |
//! | `error` | `fmpl.Error` from the library's errors |
//!
//! **The interpreter's lock.** Calls that may wait release it. Those that cannot (`send_soon`, `recv_soon`) are made with it, since
//! to release it takes longer than they do. With it no lock of the library is waited for that is held in a wait: the main
//! thread takes the interpreter's lock in the middle of a wait, to look for signals ([`life::interrupted`]).
//!
//! **Memory.** Whatever the library has of Python is exported by the buffer protocol until the library has done with it, so it cannot be
//! freed or resized. A request that is let go withdraws its receive, or goes on with its buffer until it is over (`orphans::Orphans`).
//! Requests that are open when the job ends keep their memory for ever.

mod begun;
mod collective;
mod comm;
mod error;
mod global;
mod grid;
mod group;
mod life;
mod loan;
mod memory;
mod orphans;
mod peer;
mod pending_loan;
mod pieces;
mod reduce;
mod request;
mod views;
mod window;

use pyo3::prelude::*;

/// The extension module; `fmpl/__init__.py` has what users see of it.
#[pymodule]
fn _fmpl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<life::Job>()?;
    module.add_class::<comm::Comm>()?;
    module.add_class::<comm::Received>()?;
    module.add_class::<request::Request>()?;
    module.add_class::<loan::Loan>()?;
    module.add_class::<pending_loan::LoanRequest>()?;
    module.add_class::<global::Global>()?;
    module.add_class::<global::Registration>()?;
    module.add_class::<global::Operation>()?;
    module.add_class::<window::SharedWindow>()?;
    module.add_function(wrap_pyfunction!(life::init, module)?)?;
    module.add_function(wrap_pyfunction!(life::init_id, module)?)?;
    module.add_function(wrap_pyfunction!(life::create_id, module)?)?;
    module.add_function(wrap_pyfunction!(life::initialized, module)?)?;
    module.add_function(wrap_pyfunction!(life::wtime, module)?)?;
    module.add_function(wrap_pyfunction!(life::_leave, module)?)?;
    module.add_function(wrap_pyfunction!(life::_generation, module)?)?;
    module.add_function(wrap_pyfunction!(life::_event_fd, module)?)?;
    module.add_function(wrap_pyfunction!(request::wait_any, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
