//! The predefined functions of reductions by their Fortran names. They may be passed or called.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::c_void;

use super::Int;
use crate::ffi::c;

// # Predefined functions of reductions

/// As [`c::fmpl_isum`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isum_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_isum(inout, input, *count) }
}

/// As [`c::fmpl_ssum`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ssum_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_ssum(inout, input, *count) }
}

/// As [`c::fmpl_dsum`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dsum_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_dsum(inout, input, *count) }
}

/// As [`c::fmpl_csum`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_csum_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_csum(inout, input, *count) }
}

/// As [`c::fmpl_zsum`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zsum_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_zsum(inout, input, *count) }
}

/// As [`c::fmpl_imax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imax_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_imax(inout, input, *count) }
}

/// As [`c::fmpl_smax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smax_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_smax(inout, input, *count) }
}

/// As [`c::fmpl_dmax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmax_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_dmax(inout, input, *count) }
}

/// As [`c::fmpl_cmax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_cmax_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_cmax(inout, input, *count) }
}

/// As [`c::fmpl_zmax`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zmax_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_zmax(inout, input, *count) }
}

/// As [`c::fmpl_imin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imin_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_imin(inout, input, *count) }
}

/// As [`c::fmpl_smin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smin_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_smin(inout, input, *count) }
}

/// As [`c::fmpl_dmin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmin_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_dmin(inout, input, *count) }
}

/// As [`c::fmpl_cmin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_cmin_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_cmin(inout, input, *count) }
}

/// As [`c::fmpl_zmin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zmin_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_zmin(inout, input, *count) }
}

/// As [`c::fmpl_imaxval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imaxval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_imaxval(inout, input, *count) }
}

/// As [`c::fmpl_smaxval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smaxval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_smaxval(inout, input, *count) }
}

/// As [`c::fmpl_dmaxval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmaxval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_dmaxval(inout, input, *count) }
}

/// As [`c::fmpl_iminval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_iminval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_iminval(inout, input, *count) }
}

/// As [`c::fmpl_sminval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sminval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_sminval(inout, input, *count) }
}

/// As [`c::fmpl_dminval`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dminval_(inout: *mut c_void, input: *const c_void, count: *const Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { c::fmpl_dminval(inout, input, *count) }
}
