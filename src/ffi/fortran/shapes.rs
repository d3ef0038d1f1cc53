//! The Fortran names of the calls whose message is a sub-matrix or a list of pieces.

use super::entry::{Array8, Buffer, Data, In, In8, entries};
use super::lists::{Direction, blocking, pending, shape};
use crate::ffi::c;

entries! {
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
    fmpl_send_block_(buf: Data, run: In8, count: In8, stride: In8, dst: In, mai: In, comm: In)
        = { shape("fmpl_send_block", run, count, stride, |block| c::fmpl_send_block(buf, block, dst, mai, comm)) };

    /// As [`c::fmpl_isend_block`]; the shape is three INTEGER(8).
    /// Parameters: as above.
    fmpl_isend_block_(buf: Data, run: In8, count: In8, stride: In8, dst: In, mai: In, comm: In)
        = { shape("fmpl_isend_block", run, count, stride, |block| c::fmpl_isend_block(buf, block, dst, mai, comm)) };

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
    fmpl_recv_block_(buf: Buffer, run: In8, count: In8, stride: In8, src: In, mai: In, comm: In)
        = { shape("fmpl_recv_block", run, count, stride, |block| c::fmpl_recv_block(buf, block, src, mai, comm)) };

    /// As [`c::fmpl_irecv_block`]; the shape is three INTEGER(8).
    /// Parameters: as above.
    fmpl_irecv_block_(buf: Buffer, run: In8, count: In8, stride: In8, src: In, mai: In, comm: In)
        = { shape("fmpl_irecv_block", run, count, stride, |block| c::fmpl_irecv_block(buf, block, src, mai, comm)) };

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
    fmpl_send_list_(base: Data, displ: Array8, lens: Array8, n: In, dst: In, mai: In, comm: In)
        = { blocking("fmpl_send_list", base, displ, lens, n, |iov, n| c::fmpl_send_list(iov, n, dst, mai, comm)) };

    /// As [`c::fmpl_isend_list`]; the pieces are given by their distances from `base`.
    /// Parameters: as above.
    fmpl_isend_list_(base: Data, displ: Array8, lens: Array8, n: In, dst: In, mai: In, comm: In) = {
        let key = (Direction::Send, dst, mai, comm);
        pending("fmpl_isend_list", base, displ, lens, n, key, |iov, n| c::fmpl_isend_list(iov, n, dst, mai, comm))
    };

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
    fmpl_recv_list_(base: Buffer, displ: Array8, lens: Array8, n: In, src: In, mai: In, comm: In)
        = { blocking("fmpl_recv_list", base, displ, lens, n, |iov, n| c::fmpl_recv_list(iov, n, src, mai, comm)) };

    /// As [`c::fmpl_irecv_list`]; the pieces are given by their distances from `base`.
    /// Parameters: as above.
    fmpl_irecv_list_(base: Buffer, displ: Array8, lens: Array8, n: In, src: In, mai: In, comm: In) = {
        let key = (Direction::Receive, src, mai, comm);
        pending("fmpl_irecv_list", base, displ, lens, n, key, |iov, n| c::fmpl_irecv_list(iov, n, src, mai, comm))
    };
}
