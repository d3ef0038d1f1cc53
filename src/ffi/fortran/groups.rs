//! The communicators of the Fortran interface.

use super::Int;
use crate::ffi::c;

// # Communicators

/// As [`c::fmpl_comm_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_create_(comm: *mut Int, key: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_create(comm, *key);
    }
}

/// As [`c::fmpl_comm_split`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_split_(
    comm: *const Int,
    colour: *const Int,
    order: *const Int,
    newcomm: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_split(*comm, *colour, *order, newcomm);
    }
}

/// As [`c::fmpl_comm_dup`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_dup_(comm: *const Int, newcomm: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_dup(*comm, newcomm);
    }
}

/// As [`c::fmpl_comm_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_free_(comm: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_free(comm);
    }
}

/// As [`c::fmpl_comm_translate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_translate_(
    from: *const Int,
    rank: *const Int,
    to: *const Int,
    result: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_translate(*from, *rank, *to, result);
    }
}
