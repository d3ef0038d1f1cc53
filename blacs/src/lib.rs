//! BLACS over FMPL: the communication layer of ScaLAPACK, so that its programs run without MPI.
//!
//! The BLACS (Dongarra and Whaley, *A User's Guide to the BLACS*, LAPACK Working Note 94) arrange processes in two-dimensional grids and
//! move matrices between them. Here a grid, a *context*, is a group of FMPL ranks with indices of its own, one for
//! point-to-point messages and one for each scope (row, column, all): so contexts and scopes never mix, and messages of one
//! sender come in order, as the BLACS promise. A send is FMPL's in buffered mode: it never waits for its receiver. A matrix whose
//! columns follow each other goes as it lies in memory; a part of one goes as a block, a trapezoid as a list of its
//! columns, so nothing is packed but what fits a landing.
//!
//! The names are those of the reference, for Fortran (`dgesd2d_`) and C (`Cdgesd2d`): an unmodified ScaLAPACK program takes them
//! from this library when it is loaded before its own (`fmpl run -n 4 --preload libfmpl_blacs.so -- ./xdlu`), or linked before it.
//!
//! | module | what it does |
//! |---|---|
//! | `names` | the Fortran and C names |
//! | `process` | this process: init, exit, the table of contexts |
//! | `context` | grids: who is where, get and set |
//! | `matrix` | what a message consists of: rectangles and trapezoids |
//! | `scope` | a row, a column, or all of a grid: ranks and the index they use |
//! | `broadcast` | topologies as trees |
//! | `combine`, `order` | sums and extremes: who sends to whom, and what is done with two elements |
//! | `library` | the FMPL of this process, of which there must be one |
//! | `report` | errors and warnings in the reference's words |
//!
//! Like the reference, it is for one thread of a process at a time.

#![allow(clippy::unnecessary_cast, reason = "the integer of the interface has 32 or 64 bits")]

/// The integer of the interface: 32 bits (LP64). `libfmpl_blacs64` is the same source with 64.
pub(crate) type Int = i32;
/// The same, shared.
pub(crate) type AtomicInt = core::sync::atomic::AtomicI32;

mod broadcast;
mod combine;
mod context;
mod library;
mod matrix;
mod names;
mod order;
mod process;
mod report;
mod scope;
