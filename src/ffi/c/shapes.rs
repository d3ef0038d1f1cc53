//! The calls of the C interface whose message is a sub-matrix or a list of pieces.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too

use core::ffi::{c_int, c_void};

use super::{fmpl_block, fmpl_comm, iovec};
use crate::base::layout::{Form, Layout};
use crate::ffi::outcome::{number, wrong};
use crate::p2p;

const unsafe fn runs(buf: *const c_void, block: fmpl_block) -> Layout {
    // SAFETY: as the caller of the C function promises.
    unsafe { Layout::new(Form::Block { ptr: buf as *mut u8, block }) }
}

const unsafe fn pieces(iov: *const iovec, n: c_int) -> Layout {
    // SAFETY: as above.
    unsafe { Layout::new(Form::List { iov, n: n as usize }) }
}

// # Sub-matrices and lists

/// Sends the runs of a block: `fmpl_send` for a sub-matrix, with no copy where the fabric can gather and scatter.
///
/// * buf: the first byte of the first run.
/// * block: the shape.
/// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
/// * mai: the index.
/// * comm: the communicator.
///
/// Returns: as `fmpl_send`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_block(
    buf: *const c_void,
    block: fmpl_block,
    dst: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    // SAFETY: the caller promises readable runs at `buf` for the call.
    number(unsafe { p2p::send(comm, runs(buf, block), dst, mai) })
}

/// Receives into the runs of a block: `fmpl_recv` for a sub-matrix, with no copy where the fabric can gather and scatter.
///
/// * buf: the first byte of the first run.
/// * block: the shape.
/// * src: the sender's rank, or `FMPL_PROC_NULL`.
/// * mai: the index, or `FMPL_TAG_ANY`.
/// * comm: the communicator.
///
/// Returns: as `fmpl_recv`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_block(
    buf: *mut c_void,
    block: fmpl_block,
    src: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    // SAFETY: the caller promises writable runs at `buf` for the call.
    number(unsafe { p2p::recv(comm, runs(buf, block), src, mai) })
}

/// Begins to send the runs of a block: `fmpl_isend` for a sub-matrix, with no copy where the fabric can gather and scatter.
///
/// * buf: the first byte of the first run.
/// * block: the shape.
/// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
/// * mai: the index.
/// * comm: the communicator.
///
/// Returns: as `fmpl_isend`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_block(
    buf: *const c_void,
    block: fmpl_block,
    dst: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    // SAFETY: the caller promises readable runs at `buf` until the request is completed.
    number(unsafe { p2p::isend(comm, runs(buf, block), dst, mai) })
}

/// Begins to receive into the runs of a block: `fmpl_irecv` for a sub-matrix, with no copy where the fabric can gather and scatter.
///
/// * buf: the first byte of the first run.
/// * block: the shape.
/// * src: the sender's rank, or `FMPL_PROC_NULL`.
/// * mai: the index, or `FMPL_TAG_ANY`.
/// * comm: the communicator.
///
/// Returns: as `fmpl_irecv`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_block(
    buf: *mut c_void,
    block: fmpl_block,
    src: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    // SAFETY: the caller promises writable runs at `buf` until the request is completed or withdrawn.
    number(unsafe { p2p::irecv(comm, runs(buf, block), src, mai) })
}

/// Sends the pieces of a list: `fmpl_send` for triangles and the like.
///
/// * iov: the pieces' descriptors; they are only read, during the call.
/// * n: their number, 0 or more.
/// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
/// * mai: the index.
/// * comm: the communicator.
///
/// Returns: as `fmpl_send`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_list(iov: *const iovec, n: c_int, dst: c_int, mai: c_int, comm: fmpl_comm) -> c_int {
    if n < 0 {
        return wrong("fmpl_send_list: the number of pieces is negative");
    }
    // SAFETY: the caller promises `n` descriptors of readable memory for the call.
    number(unsafe { p2p::send(comm, pieces(iov, n), dst, mai) })
}

/// Receives into the pieces of a list: `fmpl_recv` for triangles and the like.
///
/// * iov: the pieces' descriptors; they are only read, during the call.
/// * n: their number, 0 or more.
/// * src: the sender's rank, or `FMPL_PROC_NULL`.
/// * mai: the index, or `FMPL_TAG_ANY`.
/// * comm: the communicator.
///
/// Returns: as `fmpl_recv`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_list(iov: *const iovec, n: c_int, src: c_int, mai: c_int, comm: fmpl_comm) -> c_int {
    if n < 0 {
        return wrong("fmpl_recv_list: the number of pieces is negative");
    }
    // SAFETY: the caller promises `n` descriptors of writable memory for the call.
    number(unsafe { p2p::recv(comm, pieces(iov, n), src, mai) })
}

/// Begins to send the pieces of a list: `fmpl_isend` for triangles and the like.
///
/// * iov: the pieces' descriptors; they are only read, but must stay until the request is completed.
/// * n: their number, 0 or more.
/// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
/// * mai: the index.
/// * comm: the communicator.
///
/// Returns: as `fmpl_isend`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_list(
    iov: *const iovec,
    n: c_int,
    dst: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    if n < 0 {
        return wrong("fmpl_isend_list: the number of pieces is negative");
    }
    // SAFETY: the caller promises `n` descriptors of readable memory until the request is completed.
    number(unsafe { p2p::isend(comm, pieces(iov, n), dst, mai) })
}

/// Begins to receive into the pieces of a list: `fmpl_irecv` for triangles and the like.
///
/// * iov: the pieces' descriptors; they are only read, but must stay until the request is completed.
/// * n: their number, 0 or more.
/// * src: the sender's rank, or `FMPL_PROC_NULL`.
/// * mai: the index, or `FMPL_TAG_ANY`.
/// * comm: the communicator.
///
/// Returns: as `fmpl_irecv`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_list(
    iov: *const iovec,
    n: c_int,
    src: c_int,
    mai: c_int,
    comm: fmpl_comm,
) -> c_int {
    if n < 0 {
        return wrong("fmpl_irecv_list: the number of pieces is negative");
    }
    // SAFETY: the caller promises `n` descriptors of writable memory until the request is completed or withdrawn.
    number(unsafe { p2p::irecv(comm, pieces(iov, n), src, mai) })
}
