//! The Fortran names of the collective calls.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::c_void;

use super::shapes::LongArray;
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

/// As [`c::fmpl_gather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_gather_(
    buf: *const c_void,
    size: *const Int,
    all: *mut c_void,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_gather", Long::from(*size), |size| c::fmpl_gather(buf, size, all, *root, *comm)) }
}

/// As [`c::fmpl_gather`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_gather8_(
    buf: *const c_void,
    size: *const Long,
    all: *mut c_void,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_gather", *size, |size| c::fmpl_gather(buf, size, all, *root, *comm)) }
}

/// As [`c::fmpl_allgather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_allgather_(
    buf: *const c_void,
    size: *const Int,
    all: *mut c_void,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_allgather", Long::from(*size), |size| c::fmpl_allgather(buf, size, all, *comm)) }
}

/// As [`c::fmpl_allgather`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_allgather8_(
    buf: *const c_void,
    size: *const Long,
    all: *mut c_void,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_allgather", *size, |size| c::fmpl_allgather(buf, size, all, *comm)) }
}

/// As [`c::fmpl_scatter`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_scatter_(
    all: *const c_void,
    size: *const Int,
    buf: *mut c_void,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_scatter", Long::from(*size), |size| c::fmpl_scatter(all, size, buf, *root, *comm)) }
}

/// As [`c::fmpl_scatter`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_scatter8_(
    all: *const c_void,
    size: *const Long,
    buf: *mut c_void,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_scatter", *size, |size| c::fmpl_scatter(all, size, buf, *root, *comm)) }
}

/// As [`c::fmpl_alltoall`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_alltoall_(
    sent: *const c_void,
    size: *const Int,
    received: *mut c_void,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_alltoall", Long::from(*size), |size| c::fmpl_alltoall(sent, size, received, *comm)) }
}

/// As [`c::fmpl_alltoall`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_alltoall8_(
    sent: *const c_void,
    size: *const Long,
    received: *mut c_void,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_alltoall", *size, |size| c::fmpl_alltoall(sent, size, received, *comm)) }
}

/// As [`c::fmpl_ibcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibcast_(
    buf: *mut c_void,
    size: *const Int,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_ibcast", Long::from(*size), |size| c::fmpl_ibcast(buf, size, *root, *comm)) }
}

/// As [`c::fmpl_ibcast`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibcast8_(
    buf: *mut c_void,
    size: *const Long,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_ibcast", *size, |size| c::fmpl_ibcast(buf, size, *root, *comm)) }
}

/// As [`c::fmpl_reduce_scatter`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_reduce_scatter_(
    all: *const c_void,
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_reduce_scatter(all, buf, *count, func, *comm) }
}

/// As [`c::fmpl_scan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_scan_(
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_scan(buf, *count, func, *comm) }
}

/// As [`c::fmpl_mcast_reduce`]; the bitmap is an array of INTEGER(8).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_reduce_(
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    members: *const LongArray,
    root: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_mcast_reduce(buf, *count, func, members.cast(), *root, *comm) }
}

/// As [`c::fmpl_ibarrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibarrier_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_ibarrier(*comm);
    }
}

/// As [`c::fmpl_iallreduce`]; `work` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_iallreduce_(
    buf: *mut c_void,
    count: *const Int,
    func: Function,
    comm: *const Int,
    work: *mut c_void,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_iallreduce(buf, *count, func, *comm, work) }
}

/// As [`c::fmpl_ibarrier_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibarrier_wait_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_ibarrier_wait(*comm);
    }
}

/// As [`c::fmpl_ibarrier_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibarrier_test_(comm: *const Int, done: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_ibarrier_test(*comm, done);
    }
}

/// As [`c::fmpl_ibcast_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibcast_wait_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_ibcast_wait(*comm);
    }
}

/// As [`c::fmpl_ibcast_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ibcast_test_(comm: *const Int, done: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_ibcast_test(*comm, done);
    }
}

/// As [`c::fmpl_iallreduce_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_iallreduce_wait_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_iallreduce_wait(*comm);
    }
}

/// As [`c::fmpl_iallreduce_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_iallreduce_test_(comm: *const Int, done: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_iallreduce_test(*comm, done);
    }
}

/// As [`c::fmpl_func_register`]; the function is a subroutine (inout, in, count) with an INTEGER count. It must return: a STOP in it ends
/// the process, and the other ranks get `FMPL_ERR_PEER`.
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
