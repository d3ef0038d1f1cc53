//! The calls of the C interface for messages of any source.

use core::ffi::{c_int, c_void};

use super::{bitmap, bytes, fmpl_comm};
use crate::base::error::{Code, Error, Result};
use crate::ffi::outcome::Out;
use crate::p2p::any_source::{self, Arrived, Came, multicast};

calls! {
    // # Messages of any source

    /// Sends `size` bytes to index `mai` of rank `dst`, to be received by whoever receives from any source there. These
    /// indices have nothing to do with those of indexed messages. The receiver has room for a number of messages that
    /// does not depend on how many send (`FMPL_ANY_SLOTS`, 512 without it; `fmpl_recv_any_limit`); when they are all
    /// taken the send waits. Messages of one sender to one (receiver, index, communicator) arrive in order. Any number
    /// of threads may send at once.
    ///
    /// Returns when `buf` may be written again: a message of up to 1 KiB is then at the receiver, a longer one has been
    /// fetched by it or, after the time-out of `fmpl_sendbuf_set`, is in the spool. In synchronous mode, when it is
    /// received.
    ///
    /// * buf: the message; may be NULL when `size` is 0.
    /// * size: bytes; there is no upper bound but memory.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index, 0 to count - 1 of the smaller count of the two ranks.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_SPOOL_FULL`
    /// (time-out 0 only: no room at the receiver or in the spool, nothing was sent), `FMPL_ERR_PEER` (the receiver has
    /// died or left, or has freed the communicator, where this would wait for it).
    ///
    /// Source: FMPL paper, section 3.2.4; buffer acquisition by remote atomics, section 4.
    unsafe fn fmpl_send_any(buf: *const c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = any_source::send_any(comm, bytes(buf, size), dst, mai);

    /// Receives the next message on index `mai`, whoever sends it.
    ///
    /// * buf: where it goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_recv_any_from`.
    ///
    /// Source: FMPL paper, section 3.2.4.
    unsafe fn fmpl_recv_any(buf: *mut c_void, size: usize, mai: c_int, comm: fmpl_comm)
        = any_source::recv_any(comm, bytes(buf, size), mai)
            .and_then(|arrived| given(arrived, mai, Out::NULL, Out::NULL));

    /// Receives the next message on index `mai`, whoever sends it, and tells who did and how long it is.
    ///
    /// * buf: where it goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * src: set to the sender's rank; may be NULL.
    /// * received: set to the message's length in bytes, which is more than `size` when it was truncated; may be NULL.
    ///
    /// Returns: `FMPL_ERR_TRUNCATE` (the message was longer; its first `size` bytes are in `buf`), `FMPL_ERR_ARGUMENT`,
    /// `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (another thread receives there, or an irecv_any is not
    /// completed), `FMPL_ERR_PEER`: a rank has died, which a waiting receive tells once on each index; later receives
    /// go on with the others.
    unsafe fn fmpl_recv_any_from(
        buf: *mut c_void, size: usize, mai: c_int, comm: fmpl_comm, src: Out<c_int>, received: Out<usize>,
    ) = any_source::recv_any(comm, bytes(buf, size), mai).and_then(|arrived| given(arrived, mai, src, received));
}

/// Hands out who has sent a message and how long it is; an error if it was longer than the buffer.
#[inline(always)]
fn given(arrived: Arrived, mai: c_int, src: Out<c_int>, received: Out<usize>) -> Result<()> {
    src.set(arrived.source);
    received.set(arrived.len);
    if arrived.len <= arrived.capacity { Ok(()) } else { arrived.whole(mai) }
}

/// The same for a test.
#[inline(always)]
fn tested(arrived: Option<Arrived>, mai: c_int, done: Out<c_int>, src: Out<c_int>, received: Out<usize>) -> Result<()> {
    done.set(arrived.is_some());
    arrived.map_or(Ok(()), |arrived| given(arrived, mai, src, received))
}

calls! {
    /// Looks whether a receive from any source would find a message now, from whom, and how long it is. Takes nothing.
    ///
    /// * mai: the index.
    /// * comm: the communicator.
    /// * there: set to 1 or 0.
    /// * src: set to the sender's rank when it is there; may be NULL.
    /// * size: set to the message's length in bytes when it is there, else to 0; may be NULL.
    ///
    /// Returns: `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY`; `FMPL_ERR_ARGUMENT` when `there` is NULL.
    fn fmpl_probe_any(mai: c_int, comm: fmpl_comm, there: Out<c_int>, src: Out<c_int>, size: Out<usize>) needs there
        = any_source::probe_any(comm, mai).map(|found| {
            there.set(found.is_some());
            size.set(found.map_or(0, |found| found.len));
            if let Some(found) = found {
                src.set(found.source);
            }
        });

    /// Begins to send to a receiver of any source. The buffer must stay unchanged until `fmpl_isend_any_wait` or
    /// `fmpl_isend_any_test` has completed the request; (`dst`, `mai`, `comm`) names it.
    ///
    /// * buf: the message; may be NULL when `size` is 0.
    /// * size: bytes.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_send_any`; `FMPL_ERR_BUSY` when such a request is not completed.
    unsafe fn fmpl_isend_any(buf: *const c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = any_source::isend_any(comm, bytes(buf, size), dst, mai);

    /// Waits until the buffer of the isend_any to (`dst`, `mai`, `comm`) may be written again.
    ///
    /// * dst: the receiver's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; otherwise as `fmpl_send_any`.
    fn fmpl_isend_any_wait(dst: c_int, mai: c_int, comm: fmpl_comm) = any_source::isend_any_wait(comm, dst, mai);

    /// Completes the isend_any to (`dst`, `mai`, `comm`) if that needs no waiting.
    ///
    /// * dst: the receiver's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    ///
    /// Returns: as `fmpl_isend_any_wait`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_isend_any_test(dst: c_int, mai: c_int, comm: fmpl_comm, done: Out<c_int>) -> done
        = any_source::isend_any_test(comm, dst, mai);

    /// Begins to receive from any source. The buffer must not be touched until `fmpl_irecv_any_wait` or
    /// `fmpl_irecv_any_test` has completed the request, or `fmpl_irecv_any_cancel` has withdrawn it; (`mai`, `comm`)
    /// names it.
    ///
    /// * buf: where the message goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY`.
    unsafe fn fmpl_irecv_any(buf: *mut c_void, size: usize, mai: c_int, comm: fmpl_comm)
        = any_source::irecv_any(comm, bytes(buf, size), mai);

    /// Waits until the message of the irecv_any on (`mai`, `comm`) is in its buffer.
    ///
    /// * mai: the index.
    /// * comm: the communicator.
    /// * src: set to the sender's rank; may be NULL.
    /// * received: set to the message's length in bytes; may be NULL.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; otherwise as `fmpl_recv_any_from`, and the request is
    /// over.
    fn fmpl_irecv_any_wait(mai: c_int, comm: fmpl_comm, src: Out<c_int>, received: Out<usize>)
        = any_source::irecv_any_wait(comm, mai).and_then(|arrived| given(arrived, mai, src, received));

    /// Completes the irecv_any on (`mai`, `comm`) if its message is there.
    ///
    /// * mai: the index.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    /// * src: set to the sender's rank when `done` is 1; may be NULL.
    /// * received: set to the message's length in bytes when `done` is 1; may be NULL.
    ///
    /// Returns: as `fmpl_irecv_any_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_irecv_any_test(
        mai: c_int, comm: fmpl_comm, done: Out<c_int>, src: Out<c_int>, received: Out<usize>,
    ) needs done = any_source::irecv_any_test(comm, mai).and_then(|arrived| tested(arrived, mai, done, src, received));

    /// Withdraws the irecv_any on (`mai`, `comm`), unless a message is already on its way into the buffer.
    ///
    /// * mai: the index.
    /// * comm: the communicator.
    /// * cancelled: set to 1: the buffer is the caller's again; or to 0: too late, complete the request as usual.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_irecv_any_cancel(mai: c_int, comm: fmpl_comm, cancelled: Out<c_int>) -> cancelled
        = any_source::irecv_any_cancel(comm, mai);

    /// Limits how many messages to index `mai` of this rank may be outstanding, that is, sent and not yet received.
    /// Senders beyond wait. May be changed at any time.
    ///
    /// * most: the limit; 0: as many as there is room for, which is also the most (`FMPL_ANY_SLOTS`).
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` for a negative limit, `FMPL_ERR_INDEX`, `FMPL_ERR_COMM`.
    ///
    /// Source: limit of the number of messages by remote atomics, section 4.
    fn fmpl_recv_any_limit(most: c_int, mai: c_int, comm: fmpl_comm) = any_source::recv_any_limit(comm, most, mai);

    // # Multicast to a group chosen for each message

    /// Sends `size` bytes to the ranks whose bits are set. The group is chosen anew for each call; nobody else takes
    /// part, and no communicator is made. The caller, the master, sends one message, to the member of the lowest rank;
    /// the members pass the news on by a binomial tree and take the data out of the master's memory by themselves. Each
    /// member calls `fmpl_mcast_recv`. Any number of multicasts to different groups may be under way; those of one
    /// master may arrive in another order when the groups differ.
    ///
    /// * buf: the message; may be NULL when `size` is 0. With a ticket it must stay unchanged until that is complete.
    /// * size: bytes.
    /// * members: the bitmap: bit r % 64 of word r / 64 for rank r; a word for each 64 ranks of the communicator. The
    ///   caller may be a member.
    /// * comm: the communicator.
    /// * ticket: set to a number by which `fmpl_mcast_wait` and `fmpl_mcast_test` know this multicast; or NULL: the
    ///   message is copied, `buf` may be changed on return, and nobody is told when it has arrived.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` (nobody is a member), `FMPL_ERR_RANK`, `FMPL_ERR_COMM`, `FMPL_ERR_SPOOL_FULL` (no
    /// room for the message or its records: in buffered mode, or ever), `FMPL_ERR_PEER`.
    ///
    /// Source: dynamic multicast, section 3.
    unsafe fn fmpl_mcast(buf: *const c_void, size: usize, members: *const u64, comm: fmpl_comm, ticket: Out<u64>)
        = bitmap(members, comm)
            .and_then(|to| multicast::mcast(comm, bytes(buf, size), to, !ticket.is_null()))
            .map(|number| ticket.set(number));

    /// Waits until every member of a multicast has its data; the buffer may then be changed.
    ///
    /// * ticket: what `fmpl_mcast` gave.
    ///
    /// Returns: `FMPL_ERR_PEER` when a member has died or, on this node, freed the communicator without: the multicast is
    /// given up, its ticket is over, and members that have not begun to receive it get `FMPL_ERR_PEER`;
    /// `FMPL_ERR_REQUEST` for what is no ticket.
    fn fmpl_mcast_wait(ticket: u64) = multicast::mcast_wait(ticket);

    /// Tells whether every member of a multicast has its data.
    ///
    /// * ticket: what `fmpl_mcast` gave.
    /// * done: set to 1 or 0.
    ///
    /// Returns: as `fmpl_mcast_wait`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    fn fmpl_mcast_test(ticket: u64, done: Out<c_int>) -> done = multicast::mcast_test(ticket);

    /// Receives the next multicast of which this rank is a member.
    ///
    /// * buf: where it goes; may be NULL when `capacity` is 0.
    /// * capacity: bytes of room.
    /// * comm: the communicator.
    /// * size: set to the message's length in bytes, which is more than `capacity` when it was truncated; may be NULL.
    /// * master: set to the rank that has sent it; may be NULL.
    ///
    /// Returns: `FMPL_ERR_TRUNCATE`, `FMPL_ERR_ARGUMENT`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (another thread receives
    /// multicasts, or a request is not completed), `FMPL_ERR_PEER`: a rank has died, as for `fmpl_recv_any_from`, or a
    /// multicast was given up.
    ///
    /// Source: dynamic multicast, section 3.
    unsafe fn fmpl_mcast_recv(buf: *mut c_void, capacity: usize, comm: fmpl_comm, size: Out<usize>, master: Out<c_int>)
        = multicast::mcast_recv(comm, bytes(buf, capacity)).and_then(|arrived| given(arrived, -1, master, size));

    /// Receives the next message on index `mai`, whoever sends it, or the next multicast of which this rank is a
    /// member, whichever comes first: for a worker that gets tasks of its own, and is a member of groups that it does
    /// not know beforehand. Where both are there each has its turn.
    ///
    /// * buf: where it goes; may be NULL when `size` is 0.
    /// * size: bytes of room.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * src: set to the rank that has sent it, of a multicast its master; may be NULL.
    /// * received: set to the message's length in bytes, which is more than `size` when it was truncated; may be NULL.
    /// * is_mcast: set to 1 for a multicast, to 0 for a message; may be NULL.
    ///
    /// Returns: as `fmpl_recv_any_from` and as `fmpl_mcast_recv`; a death is told once for both.
    ///
    /// Source: dynamic multicast, section 4.5.
    unsafe fn fmpl_recv_any_or_mcast(
        buf: *mut c_void, size: usize, mai: c_int, comm: fmpl_comm, src: Out<c_int>, received: Out<usize>,
        is_mcast: Out<c_int>,
    ) = any_source::recv_any_or_mcast(comm, bytes(buf, size), mai).and_then(|came| {
        let (multicast, arrived) = match came {
            Came::Message(arrived) => (false, arrived),
            Came::Multicast(arrived) => (true, arrived),
        };
        is_mcast.set(multicast);
        given(arrived, if multicast { -1 } else { mai }, src, received)
    });

    /// Begins to receive the next multicast of which this rank is a member. The buffer must not be touched until
    /// `fmpl_mcast_irecv_wait` or `fmpl_mcast_irecv_test` has completed the request, or `fmpl_mcast_irecv_cancel` has
    /// withdrawn it. Members further down the tree wait for that.
    ///
    /// * buf: where it goes; may be NULL when `capacity` is 0.
    /// * capacity: bytes of room.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY`.
    unsafe fn fmpl_mcast_irecv(buf: *mut c_void, capacity: usize, comm: fmpl_comm)
        = multicast::mcast_irecv(comm, bytes(buf, capacity));

    /// Waits for the multicast of `fmpl_mcast_irecv`.
    ///
    /// * comm: the communicator.
    /// * size: set to the message's length in bytes; may be NULL.
    /// * master: set to the rank that has sent it; may be NULL.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; otherwise as `fmpl_mcast_recv`, and the request is
    /// over.
    fn fmpl_mcast_irecv_wait(comm: fmpl_comm, size: Out<usize>, master: Out<c_int>)
        = multicast::mcast_irecv_end(comm, true).and_then(|arrived| match arrived {
            Some(arrived) => given(arrived, -1, master, size),
            None => Err(Error::new(Code::Argument, "fmpl_mcast_irecv_wait: nothing came")),
        });

    /// Completes the request of `fmpl_mcast_irecv` if its multicast is there.
    ///
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    /// * size: set to the message's length in bytes when `done` is 1; may be NULL.
    /// * master: set to the rank that has sent it when `done` is 1; may be NULL.
    ///
    /// Returns: as `fmpl_mcast_irecv_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_mcast_irecv_test(comm: fmpl_comm, done: Out<c_int>, size: Out<usize>, master: Out<c_int>) needs done
        = multicast::mcast_irecv_end(comm, false).and_then(|arrived| tested(arrived, -1, done, master, size));

    /// Withdraws the request of `fmpl_mcast_irecv`: the buffer is the caller's again.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; `FMPL_ERR_COMM`.
    fn fmpl_mcast_irecv_cancel(comm: fmpl_comm) = multicast::mcast_irecv_cancel(comm);
}
