//! Messages of the C interface that are prepared once and begun over and over.

use core::ffi::{c_int, c_void};

use super::fmpl_comm;
use crate::base::run::Run;
use crate::p2p;

calls! {
    // # Prepared messages

    /// Prepares a send that is begun over and over with the same buffer, by `fmpl_send_start`; what was prepared on
    /// this (peer, index) before is forgotten. Nothing is sent, and the buffer may be changed until a start. It meets
    /// the peer, as the first message does.
    ///
    /// * buf: the message of every start; may be NULL when `size` is 0.
    /// * size: bytes.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator; what is prepared on it ends with it.
    ///
    /// Returns: as `fmpl_isend`.
    ///
    /// Source: FMPL paper, section 3.2.2; `MPI_Send_init`.
    unsafe fn fmpl_send_init(buf: *const c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::send_init(comm, Run::new(buf.cast_mut().cast(), size), dst, mai);

    /// Prepares a receive that is begun over and over with the same buffer, by `fmpl_recv_start`; what was prepared on
    /// this (peer, index) before is forgotten. Nothing is received, and the buffer may be used until a start.
    ///
    /// * buf: where the message of every start goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index; not `FMPL_INDEX_ANY`.
    /// * comm: the communicator; what is prepared on it ends with it.
    ///
    /// Returns: as `fmpl_irecv`.
    ///
    /// Source: FMPL paper, section 3.2.2; `MPI_Recv_init`.
    unsafe fn fmpl_recv_init(buf: *mut c_void, size: usize, src: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::recv_init(comm, Run::new(buf.cast(), size), src, mai);

    /// Begins the send that is prepared. From here on it is a request as that of `fmpl_isend`, and completed as that;
    /// then it can be started again.
    ///
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_isend`; `FMPL_ERR_REQUEST` when nothing is prepared.
    ///
    /// Source: FMPL paper, section 3.2.2; `MPI_Start`.
    fn fmpl_send_start(dst: c_int, mai: c_int, comm: fmpl_comm) = p2p::send_start(comm, dst, mai);

    /// Begins the receive that is prepared. From here on it is a request as that of `fmpl_irecv`, and completed or
    /// withdrawn as that; then it can be started again.
    ///
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_irecv`; `FMPL_ERR_REQUEST` when nothing is prepared.
    ///
    /// Source: FMPL paper, section 3.2.2; `MPI_Start`.
    fn fmpl_recv_start(src: c_int, mai: c_int, comm: fmpl_comm) = p2p::recv_start(comm, src, mai);
}
