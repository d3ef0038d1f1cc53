//! The Fortran names of the calls for messages of any source.

use super::entry::{Buffer, Data, In, In8, Members, Out, Out8, entries};
use crate::ffi::c;

entries! {
    // # Messages of any source

    fmpl_send_any_, fmpl_send_any8_(buf: Data, size: Size, dst: In, mai: In, comm: In) = fmpl_send_any;
    fmpl_recv_any_, fmpl_recv_any8_(buf: Buffer, size: Size, mai: In, comm: In) = fmpl_recv_any;
    fmpl_isend_any_, fmpl_isend_any8_(buf: Data, size: Size, dst: In, mai: In, comm: In) = fmpl_isend_any;
    fmpl_irecv_any_, fmpl_irecv_any8_(buf: Buffer, size: Size, mai: In, comm: In) = fmpl_irecv_any;
    fmpl_recv_any_from_, fmpl_recv_any_from8_(buf: Buffer, size: Size, mai: In, comm: In, src: Out, received: Length)
        = fmpl_recv_any_from;
    fmpl_irecv_any_wait_, fmpl_irecv_any_wait8_(mai: In, comm: In, src: Out, received: Length) = fmpl_irecv_any_wait;
    fmpl_irecv_any_test_, fmpl_irecv_any_test8_(mai: In, comm: In, done: Out, src: Out, received: Length)
        = fmpl_irecv_any_test;
    fmpl_probe_any_, fmpl_probe_any8_(mai: In, comm: In, there: Out, src: Out, size: Length) = fmpl_probe_any;
    fmpl_isend_any_wait_(dst: In, mai: In, comm: In) = fmpl_isend_any_wait;
    fmpl_isend_any_test_(dst: In, mai: In, comm: In, done: Out) = fmpl_isend_any_test;
    fmpl_irecv_any_cancel_(mai: In, comm: In, cancelled: Out) = fmpl_irecv_any_cancel;
    fmpl_recv_any_limit_(most: In, mai: In, comm: In) = fmpl_recv_any_limit;

    // # Multicast to a group chosen for each message

    /// As [`c::fmpl_mcast`]; the bitmap is an array of INTEGER(8), and there is always a ticket.
    ///
    /// * buf: the message; must stay unchanged until the ticket is complete.
    /// * size: bytes.
    /// * members: the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
    /// * comm: the communicator.
    /// * ticket: set to a number by which fmpl_mcast_wait and fmpl_mcast_test know this multicast.
    /// * ier: the return code.
    fmpl_mcast_, fmpl_mcast8_(buf: Data, size: Size, members: Members, comm: In, ticket: Out8)
        = fmpl_mcast;
    fmpl_mcast_recv_, fmpl_mcast_recv8_(buf: Buffer, capacity: Size, comm: In, size: Length, master: Out)
        = fmpl_mcast_recv;
    fmpl_recv_any_or_mcast_, fmpl_recv_any_or_mcast8_(buf: Buffer, size: Size, mai: In, comm: In, src: Out, received: Length, is_mcast: Out)
        = fmpl_recv_any_or_mcast;
    fmpl_mcast_irecv_, fmpl_mcast_irecv8_(buf: Buffer, capacity: Size, comm: In) = fmpl_mcast_irecv;
    fmpl_mcast_irecv_wait_, fmpl_mcast_irecv_wait8_(comm: In, size: Length, master: Out) = fmpl_mcast_irecv_wait;
    fmpl_mcast_irecv_test_, fmpl_mcast_irecv_test8_(comm: In, done: Out, size: Length, master: Out)
        = fmpl_mcast_irecv_test;
    fmpl_mcast_wait_(ticket: In8) = { c::fmpl_mcast_wait(ticket as u64) };
    fmpl_mcast_test_(ticket: In8, done: Out) = { c::fmpl_mcast_test(ticket as u64, done) };
    fmpl_mcast_irecv_cancel_(comm: In) = fmpl_mcast_irecv_cancel;
}
