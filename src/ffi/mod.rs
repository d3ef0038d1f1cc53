//! The C interface and the Fortran names.

pub mod c;
pub mod fortran;
