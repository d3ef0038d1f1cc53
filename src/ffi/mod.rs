//! The C interface and the Fortran names.
//!
//! Both are thin: they turn their arguments into the core's, call it, and turn its `Result` into a number. `include/fmpl.h`,
//! `include/fmplf.h` and `include/fmpl.f90` are generated from these sources, documentation included, by the test `interface`.
//!
//! A panic never unwinds into the caller: the functions are `extern "C"`, where Rust ends the process with a message instead.
//! The core is written not to panic whatever the arguments are; that is a net, not a way of reporting errors.

pub mod acp;
pub mod c;
pub mod fortran;
mod outcome;
mod second_names;

pub use outcome::last_error_text;
