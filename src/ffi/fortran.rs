//! Fortran names.
