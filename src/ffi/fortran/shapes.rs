//! The Fortran names of the calls whose message is a sub-matrix or a list of pieces.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::c_void;

use super::lists::{self, Direction};
use super::{Int, Long};
use crate::ffi::c;

/// An element of an INTEGER(8) array; the array's address is passed.
pub type LongArray = i64;

// # Sub-matrices and lists

/// As [`c::fmpl_send_block`]; the shape is three INTEGER(8).
///
/// * buf: the first element of the first run.
/// * run: bytes in a run.
/// * count: number of runs.
/// * stride: bytes from the beginning of a run to that of the next; may be negative.
/// * dst: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_block_(
    buf: *const c_void,
    run: *const Long,
    count: *const Long,
    stride: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::shape("fmpl_send_block", *run, *count, *stride, |block| {
            c::fmpl_send_block(buf, block, *dst, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_isend_block`]; the shape is three INTEGER(8).
///
/// * buf: the first element of the first run.
/// * run: bytes in a run.
/// * count: number of runs.
/// * stride: bytes from the beginning of a run to that of the next; may be negative.
/// * dst: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_block_(
    buf: *const c_void,
    run: *const Long,
    count: *const Long,
    stride: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::shape("fmpl_isend_block", *run, *count, *stride, |block| {
            c::fmpl_isend_block(buf, block, *dst, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_recv_block`]; the shape is three INTEGER(8).
///
/// * buf: the first element of the first run.
/// * run: bytes in a run.
/// * count: number of runs.
/// * stride: bytes from the beginning of a run to that of the next; may be negative.
/// * src: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_block_(
    buf: *mut c_void,
    run: *const Long,
    count: *const Long,
    stride: *const Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::shape("fmpl_recv_block", *run, *count, *stride, |block| {
            c::fmpl_recv_block(buf, block, *src, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_irecv_block`]; the shape is three INTEGER(8).
///
/// * buf: the first element of the first run.
/// * run: bytes in a run.
/// * count: number of runs.
/// * stride: bytes from the beginning of a run to that of the next; may be negative.
/// * src: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_block_(
    buf: *mut c_void,
    run: *const Long,
    count: *const Long,
    stride: *const Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::shape("fmpl_irecv_block", *run, *count, *stride, |block| {
            c::fmpl_irecv_block(buf, block, *src, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_send_list`]; the pieces are given by their distances from `base`.
///
/// * base: what the distances count from.
/// * displ: for each piece its distance from `base` in bytes; may be negative.
/// * lens: for each piece its bytes.
/// * n: number of pieces. The two arrays are read during the call only.
/// * dst: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_list_(
    base: *const c_void,
    displ: *const LongArray,
    lens: *const LongArray,
    n: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::blocking("fmpl_send_list", base, displ, lens, *n, |iov, n| {
            c::fmpl_send_list(iov, n, *dst, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_isend_list`]; the pieces are given by their distances from `base`.
///
/// * base: what the distances count from.
/// * displ: for each piece its distance from `base` in bytes; may be negative.
/// * lens: for each piece its bytes.
/// * n: number of pieces. The two arrays are read during the call only.
/// * dst: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_list_(
    base: *const c_void,
    displ: *const LongArray,
    lens: *const LongArray,
    n: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier =
            lists::pending("fmpl_isend_list", base, displ, lens, *n, (Direction::Send, *dst, *mai, *comm), |iov, n| {
                c::fmpl_isend_list(iov, n, *dst, *mai, *comm)
            })
    }
}

/// As [`c::fmpl_recv_list`]; the pieces are given by their distances from `base`.
///
/// * base: what the distances count from.
/// * displ: for each piece its distance from `base` in bytes; may be negative.
/// * lens: for each piece its bytes.
/// * n: number of pieces. The two arrays are read during the call only.
/// * src: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_list_(
    base: *mut c_void,
    displ: *const LongArray,
    lens: *const LongArray,
    n: *const Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::blocking("fmpl_recv_list", base.cast_const(), displ, lens, *n, |iov, n| {
            c::fmpl_recv_list(iov, n, *src, *mai, *comm)
        })
    }
}

/// As [`c::fmpl_irecv_list`]; the pieces are given by their distances from `base`.
///
/// * base: what the distances count from.
/// * displ: for each piece its distance from `base` in bytes; may be negative.
/// * lens: for each piece its bytes.
/// * n: number of pieces. The two arrays are read during the call only.
/// * src: the peer's rank.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_list_(
    base: *mut c_void,
    displ: *const LongArray,
    lens: *const LongArray,
    n: *const Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::pending(
            "fmpl_irecv_list",
            base.cast_const(),
            displ,
            lens,
            *n,
            (Direction::Receive, *src, *mai, *comm),
            |iov, n| c::fmpl_irecv_list(iov, n, *src, *mai, *comm),
        )
    }
}
