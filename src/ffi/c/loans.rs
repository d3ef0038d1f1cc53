//! Messages that are handed over, in the C interface.

use core::ffi::{c_int, c_void};

use super::{bitmap, fmpl_comm};
use crate::ffi::outcome::Out;
use crate::p2p::any_source;
use crate::p2p::{self, Lent};

calls! {
    // # Messages that are handed over

    /// Memory to fill and to hand over: a *loan*. On a node its receiver gets this memory itself, so that a message of
    /// any length costs little more than one of 8 bytes. Aligned to 64 bytes, to a page from 4096 bytes on; its
    /// contents are not defined. It is the caller's until `fmpl_send_loan` or `fmpl_loan_return`; not for `fmpl_free`.
    ///
    /// * size: bytes; 0 is fine.
    /// * buf: set to its beginning.
    ///
    /// Returns: `FMPL_ERR_MEMORY` when as many loans or bytes are out as `FMPL_LOANS` allows; `FMPL_ERR_ARGUMENT` for a
    /// NULL pointer.
    fn fmpl_loan(size: usize, buf: Out<*mut c_void>) -> buf = p2p::loan(size).map(|at| at.cast());

    /// Hands a loan over to index `mai` of rank `dst`, and returns at once, in all modes of sending: it waits for no
    /// receive, and its bytes need no room in the spool. It is the receiver's from then on; the caller may neither read
    /// nor write it. To an ordinary receive it is a message like any other, and is copied there. To a rank on another
    /// node its bytes are sent as by `fmpl_send`.
    ///
    /// * buf: the beginning of a loan from `fmpl_loan`.
    /// * size: bytes of the message, no more than the loan has.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` when `buf` is not the beginning of a loan, or the loan is shorter, was received,
    /// was handed over or returned before; otherwise as `fmpl_send`. On an error the loan, if it was one to send, is
    /// still the caller's.
    fn fmpl_send_loan(buf: *mut c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = p2p::send_loan(comm, buf.cast(), size, dst, mai);

    /// Receives the next message on index `mai` from rank `src` in place: sets `buf` to memory that may be read, and
    /// not written, until `fmpl_loan_return`. It stays readable when its owner has ended. A message that was not handed
    /// over is copied into a loan of this rank's. Every loan received is to be returned before `fmpl_finalize`.
    ///
    /// * buf: set to its first byte; NULL from `FMPL_PROC_NULL`.
    /// * size: set to its length in bytes; may be NULL.
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index; not `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_MEMORY` when a message has to be copied and there is no loan for it: it waits for the next
    /// receive; `FMPL_ERR_ARGUMENT` for a NULL pointer; otherwise as `fmpl_recv`.
    fn fmpl_recv_loan(buf: Out<*const c_void>, size: Out<usize>, src: c_int, mai: c_int, comm: fmpl_comm) needs buf
        = p2p::recv_loan(comm, src, mai).map(|lent| give(lent, buf, size));

    /// Begins what `fmpl_recv_loan` does. `fmpl_irecv_cancel` withdraws it.
    ///
    /// * src: the sender's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index; not `FMPL_TAG_ANY`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_irecv`.
    fn fmpl_irecv_loan(src: c_int, mai: c_int, comm: fmpl_comm) = p2p::irecv_loan(comm, src, mai);

    /// Waits until the message of the `fmpl_irecv_loan` on (`src`, `mai`, `comm`) is there.
    ///
    /// * buf: as for `fmpl_recv_loan`.
    /// * size: as for `fmpl_recv_loan`.
    /// * src: the sender's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; otherwise as `fmpl_recv_loan`. The request is over.
    fn fmpl_irecv_loan_wait(
        buf: Out<*const c_void>, size: Out<usize>, src: c_int, mai: c_int, comm: fmpl_comm,
    ) needs buf = p2p::irecv_loan_wait(comm, src, mai).map(|lent| give(lent, buf, size));

    /// Completes the `fmpl_irecv_loan` on (`src`, `mai`, `comm`) if its message is there.
    ///
    /// * buf: as for `fmpl_recv_loan`, when `done` is set to 1.
    /// * size: as for `fmpl_recv_loan`, when `done` is set to 1.
    /// * src: the sender's rank.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    ///
    /// Returns: as `fmpl_irecv_loan_wait`.
    fn fmpl_irecv_loan_test(
        buf: Out<*const c_void>, size: Out<usize>, src: c_int, mai: c_int, comm: fmpl_comm, done: Out<c_int>,
    ) needs buf or done = p2p::irecv_loan_test(comm, src, mai).map(|lent| {
        done.set(lent.is_some());
        if let Some(lent) = lent {
            give(lent, buf, size);
        }
    });

    /// Hands one loan over to several ranks: all read the same memory, and it comes back when each has returned it.
    /// Each receives it as a message of this rank on index `mai`, with `fmpl_recv_loan` or any other receive.
    ///
    /// * buf: the beginning of a loan from `fmpl_loan`.
    /// * size: bytes of the message, no more than the loan has.
    /// * members: bit r % 64 of word r / 64 is set for each rank r that is to have it; this rank may be one of them.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_send_loan`, but without `FMPL_ERR_SPOOL_FULL`: it waits for room in buffered mode, too;
    /// `FMPL_ERR_ARGUMENT` when no bit is set. On an error the loan, if it was one to send, is still the caller's, and
    /// nobody has it. A member that dies in the middle of the call is passed over.
    unsafe fn fmpl_mcast_loan(buf: *mut c_void, size: usize, members: *const u64, mai: c_int, comm: fmpl_comm)
        = bitmap(members, comm).and_then(|members| p2p::mcast_loan(comm, buf.cast(), size, members, mai));

    /// Hands a loan over to index `mai` of rank `dst`, to be received by whoever receives from any source there. It
    /// needs a place at the receiver (`FMPL_ANY_SLOTS`), and waits for one as `fmpl_send_any` does.
    ///
    /// * buf: the beginning of a loan from `fmpl_loan`.
    /// * size: bytes of the message, no more than the loan has.
    /// * dst: the receiver's rank, or `FMPL_PROC_NULL`.
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_send_any`, and of loans as `fmpl_send_loan`. On an error the loan, if it was one to send, is
    /// still the caller's.
    fn fmpl_send_loan_any(buf: *mut c_void, size: usize, dst: c_int, mai: c_int, comm: fmpl_comm)
        = any_source::send_loan_any(comm, buf.cast(), size, dst, mai);

    /// Receives the next message on index `mai` in place, whoever sends it.
    ///
    /// * buf: as for `fmpl_recv_loan`.
    /// * size: as for `fmpl_recv_loan`.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * src: set to the sender's rank; may be NULL.
    ///
    /// Returns: as `fmpl_recv_any_from`, and as `fmpl_recv_loan`.
    fn fmpl_recv_loan_any(
        buf: Out<*const c_void>, size: Out<usize>, mai: c_int, comm: fmpl_comm, src: Out<c_int>,
    ) needs buf = any_source::recv_loan_any(comm, mai).map(|got| give_from(got, buf, size, src));

    /// Begins what `fmpl_recv_loan_any` does. `fmpl_irecv_any_cancel` withdraws it.
    ///
    /// * mai: the index.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_irecv_any`.
    fn fmpl_irecv_loan_any(mai: c_int, comm: fmpl_comm) = any_source::irecv_loan_any(comm, mai);

    /// Waits until a message for the `fmpl_irecv_loan_any` on (`mai`, `comm`) is there.
    ///
    /// * buf: as for `fmpl_recv_loan`.
    /// * size: as for `fmpl_recv_loan`.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * src: set to the sender's rank; may be NULL.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such request; otherwise as `fmpl_recv_loan_any`. The request is
    /// over.
    fn fmpl_irecv_loan_any_wait(
        buf: Out<*const c_void>, size: Out<usize>, mai: c_int, comm: fmpl_comm, src: Out<c_int>,
    ) needs buf = any_source::irecv_loan_any_wait(comm, mai).map(|got| give_from(got, buf, size, src));

    /// Completes the `fmpl_irecv_loan_any` on (`mai`, `comm`) if a message is there.
    ///
    /// * buf: as for `fmpl_recv_loan`, when `done` is set to 1.
    /// * size: as for `fmpl_recv_loan`, when `done` is set to 1.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * done: set to 1 or 0.
    /// * src: set to the sender's rank when `done` is set to 1; may be NULL.
    ///
    /// Returns: as `fmpl_irecv_loan_any_wait`.
    fn fmpl_irecv_loan_any_test(
        buf: Out<*const c_void>, size: Out<usize>, mai: c_int, comm: fmpl_comm, done: Out<c_int>, src: Out<c_int>,
    ) needs buf or done = any_source::irecv_loan_any_test(comm, mai).map(|got| {
        done.set(got.is_some());
        if let Some(got) = got {
            give_from(got, buf, size, src);
        }
    });

    /// Returns a loan: one that was received, or one that was not sent. From any thread, in any order, also after its
    /// owner has ended. Nobody here may read it afterwards.
    ///
    /// * buf: its beginning; NULL: nothing happens.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` when this rank has no loan that begins there: it may have been returned, or handed
    /// over, before.
    fn fmpl_loan_return(buf: *const c_void) = p2p::loan_return(buf.cast());
}

/// Hands out where a message lies that was handed over, and its length.
#[inline(always)]
fn give(lent: Lent, buf: Out<*const c_void>, size: Out<usize>) {
    buf.set(lent.at.cast_const().cast::<c_void>());
    size.set(lent.len);
}

/// The same, and who has sent it.
fn give_from((lent, from): (Lent, i32), buf: Out<*const c_void>, size: Out<usize>, src: Out<c_int>) {
    give(lent, buf, size);
    src.set(from);
}
