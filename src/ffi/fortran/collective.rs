//! The Fortran names of the collective calls.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::c_void;

use super::{Int, Long, sized};
use crate::ffi::c::{self, fmpl_func};
use crate::ffi::outcome::{number, wrong};

/// An external subroutine (inout, in, count), as Fortran passes it: the subroutine's address.
pub type Function = fmpl_func;

// # Collective calls

/// As [`c::fmpl_barrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_barrier_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_barrier(*comm);
    }
}

/// As [`c::fmpl_bcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_bcast_(
    buf: *mut c_void,
    size: *const Int,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_bcast", Long::from(*size), |size| c::fmpl_bcast(buf, size, *root, *comm)) }
}

/// As [`c::fmpl_bcast`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_bcast8_(
    buf: *mut c_void,
    size: *const Long,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_bcast", *size, |size| c::fmpl_bcast(buf, size, *root, *comm)) }
}

/// As [`c::fmpl_reduce`]; `work` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_reduce_(
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    root: *const Int,
    comm: *const Int,
    work: *mut c_void,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_reduce(buf, *count, func, *root, *comm, work) }
}

/// As [`c::fmpl_allreduce`]; `work` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_allreduce_(
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    comm: *const Int,
    work: *mut c_void,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_allreduce(buf, *count, func, *comm, work) }
}

/// As [`c::fmpl_func_register`]; the function is a subroutine (inout, in, count) with an INTEGER count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_func_register_(
    func: Function,
    element_size: *const Int,
    commutes: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let _ = *commutes;
        *ier = match (usize::try_from(*element_size), func) {
            (Ok(size), Some(func)) => {
                c::introduce();
                number(crate::coll::function::register(func as *const () as usize, size, true))
            }
            _ => wrong("fmpl_func_register: the element size is negative, or there is no function"),
        };
    }
}
