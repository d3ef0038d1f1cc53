//! The calls of the C interface whose message is a sub-matrix or a list of pieces.

use core::ffi::{c_int, c_void};

use super::{fmpl_block, fmpl_comm, iovec};
use crate::base::error::{Code, Result, error};
use crate::base::layout::{Form, Layout};
use crate::p2p;

const unsafe fn runs(buf: *const c_void, block: fmpl_block) -> Layout {
    // SAFETY: as the caller of the C function promises.
    unsafe { Layout::new(Form::Block { ptr: buf as *mut u8, block }) }
}

unsafe fn pieces(call: &str, iov: *const iovec, n: c_int) -> Result<Layout> {
    let negative = |_| error!(Code::Argument, "{call}: the number of pieces is negative");
    // SAFETY: as above.
    usize::try_from(n).map_err(negative).map(|n| unsafe { Layout::new(Form::List { iov, n }) })
}

calls! {
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
    unsafe fn fmpl_send_block(buf: *const c_void, block: fmpl_block, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::send(comm, runs(buf, block), dst, mai);

    /// Receives into the runs of a block: `fmpl_recv` for a sub-matrix, with no copy where the fabric can gather and
    /// scatter.
    ///
    /// * buf: the first byte of the first run.
    /// * block: the shape.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_recv`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
    unsafe fn fmpl_recv_block(buf: *mut c_void, block: fmpl_block, src: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::recv(comm, runs(buf, block), src, mai);

    /// Begins to send the runs of a block: `fmpl_isend` for a sub-matrix, with no copy where the fabric can gather and
    /// scatter.
    ///
    /// * buf: the first byte of the first run.
    /// * block: the shape.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_isend`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
    unsafe fn fmpl_isend_block(buf: *const c_void, block: fmpl_block, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::isend(comm, runs(buf, block), dst, mai);

    /// Begins to receive into the runs of a block: `fmpl_irecv` for a sub-matrix, with no copy where the fabric can
    /// gather and scatter.
    ///
    /// * buf: the first byte of the first run.
    /// * block: the shape.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_irecv`; `FMPL_ERR_ARGUMENT` also when the shape overflows.
    unsafe fn fmpl_irecv_block(buf: *mut c_void, block: fmpl_block, src: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::irecv(comm, runs(buf, block), src, mai);

    /// Sends the pieces of a list: `fmpl_send` for triangles and the like.
    ///
    /// * iov: the pieces' descriptors; they are only read, during the call.
    /// * n: their number, 0 or more.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_send`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
    unsafe fn fmpl_send_list(iov: *const iovec, n: c_int, dst: c_int, mai: c_int, comm: fmpl_comm)
        = pieces("fmpl_send_list", iov, n).and_then(|all| p2p::send(comm, all, dst, mai));

    /// Receives into the pieces of a list: `fmpl_recv` for triangles and the like.
    ///
    /// * iov: the pieces' descriptors; they are only read, during the call.
    /// * n: their number, 0 or more.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_recv`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
    unsafe fn fmpl_recv_list(iov: *const iovec, n: c_int, src: c_int, mai: c_int, comm: fmpl_comm)
        = pieces("fmpl_recv_list", iov, n).and_then(|all| p2p::recv(comm, all, src, mai));

    /// Begins to send the pieces of a list: `fmpl_isend` for triangles and the like.
    ///
    /// * iov: the pieces' descriptors; they are only read, but must stay until the request is completed.
    /// * n: their number, 0 or more.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_isend`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
    unsafe fn fmpl_isend_list(iov: *const iovec, n: c_int, dst: c_int, mai: c_int, comm: fmpl_comm)
        = pieces("fmpl_isend_list", iov, n).and_then(|all| p2p::isend(comm, all, dst, mai));

    /// Begins to receive into the pieces of a list: `fmpl_irecv` for triangles and the like.
    ///
    /// * iov: the pieces' descriptors; they are only read, but must stay until the request is completed.
    /// * n: their number, 0 or more.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, or `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_irecv`; `FMPL_ERR_ARGUMENT` also for a negative `n`.
    unsafe fn fmpl_irecv_list(iov: *const iovec, n: c_int, src: c_int, mai: c_int, comm: fmpl_comm)
        = pieces("fmpl_irecv_list", iov, n).and_then(|all| p2p::irecv(comm, all, src, mai));
}
