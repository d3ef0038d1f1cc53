//! Collective calls of the C interface that do not wait, several of a communicator at a time.

use core::ffi::{c_int, c_void};

use super::begun::{sides, vector};
use super::{fmpl_comm, fmpl_func};
use crate::base::bytes::Room;
use crate::base::error::Result;
use crate::coll::{self, Ask, Ticket};
use crate::ffi::outcome::Out;

/// Begins a call: its ticket.
fn begin(comm: fmpl_comm, ask: Ask) -> Result<u64> {
    coll::begin_apart(comm, ask).map(|begun| begun.0)
}

calls! {
    // # Several collective calls at a time

    /// Begins a barrier, and gives it a ticket. As all calls with tickets: up to `FMPL_TICKETS` of a communicator may
    /// be begun and not completed. All ranks begin them in the same order, also with respect to other collective calls
    /// of the communicator, which can be made meanwhile; each rank completes them in whatever order it wants, by
    /// `fmpl_coll_wait` or `fmpl_coll_test`. They are done by messages between the ranks, eight of a communicator at a
    /// time, and move on while this process tests one or waits for anything else.
    ///
    /// * comm: the communicator.
    /// * ticket: set to the call's name, which is never 0.
    ///
    /// Returns: as `fmpl_barrier`; `FMPL_ERR_BUSY` when so many are begun and not completed, and `FMPL_ERR_ARGUMENT`
    /// when `ticket` is NULL: then nothing has begun.
    ///
    /// Source: `MPI_Ibarrier`.
    fn fmpl_ibarrier_n(comm: fmpl_comm, ticket: Out<u64>) -> ticket = begin(comm, Ask::Barrier);

    /// Begins to copy a buffer of one rank to all ranks, as `fmpl_ibcast` does, and gives the call a ticket: see
    /// `fmpl_ibarrier_n`.
    ///
    /// * buf: the message at the root, room for it elsewhere. It must not be touched, at the root not be changed, until
    ///   the call is completed.
    /// * size: bytes, the same on all ranks.
    /// * root: the rank whose buffer it is.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_bcast`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Ibcast`.
    unsafe fn fmpl_ibcast_n(buf: *mut c_void, size: usize, root: c_int, comm: fmpl_comm, ticket: Out<u64>) -> ticket
        = begin(comm, Ask::Bcast(Room::new(buf.cast(), size), size, root));

    /// Begins to combine the ranks' vectors, as `fmpl_ireduce` does, and gives the call a ticket: see
    /// `fmpl_ibarrier_n`.
    ///
    /// * buf: the vector. It must not be touched until the call is completed.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined; elements may be combined as ((x0 o x1) o (x2 o x3)), so it must be
    ///   associative.
    /// * root: the rank that gets the result.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_reduce`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Ireduce`.
    unsafe fn fmpl_ireduce_n(
        buf: *mut c_void, count: c_int, func: fmpl_func, root: c_int, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Reduce(vector(buf, count, func)?, root));

    /// Begins to combine the ranks' vectors for all ranks, as `fmpl_iallreduce` does, and gives the call a ticket: see
    /// `fmpl_ibarrier_n`.
    ///
    /// * buf: the vector. It must not be touched until the call is completed.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined, as for `fmpl_ireduce_n`.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_allreduce`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Iallreduce`.
    unsafe fn fmpl_iallreduce_n(
        buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Allreduce(vector(buf, count, func)?));

    /// Begins to collect a message of each rank at one rank, as `fmpl_igather` does, and gives the call a ticket: see
    /// `fmpl_ibarrier_n`.
    ///
    /// * buf: this rank's message, as for `fmpl_igather`.
    /// * size: bytes, the same on all ranks.
    /// * all: at the root room for a message of each rank; elsewhere it is not looked at.
    /// * root: the rank that collects.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_gather`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Igather`.
    unsafe fn fmpl_igather_n(
        buf: *const c_void, size: usize, all: *mut c_void, root: c_int, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Gather(sides(buf, size, all), root));

    /// Begins to collect a message of each rank at all ranks, as `fmpl_iallgather` does, and gives the call a ticket:
    /// see `fmpl_ibarrier_n`.
    ///
    /// * buf: this rank's message, as for `fmpl_iallgather`.
    /// * size: bytes, the same on all ranks.
    /// * all: room for a message of each rank.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_allgather`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Iallgather`.
    unsafe fn fmpl_iallgather_n(
        buf: *const c_void, size: usize, all: *mut c_void, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Allgather(sides(buf, size, all)));

    /// Begins to give each rank its own message of one rank, as `fmpl_iscatter` does, and gives the call a ticket: see
    /// `fmpl_ibarrier_n`.
    ///
    /// * all: at the root a message for each rank; elsewhere it is not looked at.
    /// * size: bytes of one message, the same on all ranks.
    /// * buf: room for this rank's message, as for `fmpl_iscatter`.
    /// * root: the rank that has the messages.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_scatter`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Iscatter`.
    unsafe fn fmpl_iscatter_n(
        all: *const c_void, size: usize, buf: *mut c_void, root: c_int, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Scatter(sides(all, size, buf), root));

    /// Begins to give each rank its own message of each rank, as `fmpl_ialltoall` does, and gives the call a ticket:
    /// see `fmpl_ibarrier_n`.
    ///
    /// * sent: a message for each rank.
    /// * size: bytes of one message, the same on all ranks.
    /// * received: room for a message of each rank, which does not overlap with `sent`.
    /// * comm: the communicator.
    /// * ticket: set to the call's name.
    ///
    /// Returns: as `fmpl_alltoall`, and as `fmpl_ibarrier_n`.
    ///
    /// Source: `MPI_Ialltoall`.
    unsafe fn fmpl_ialltoall_n(
        sent: *const c_void, size: usize, received: *mut c_void, comm: fmpl_comm, ticket: Out<u64>,
    ) -> ticket = begin(comm, Ask::Alltoall(sides(sent, size, received)));

    /// Completes a collective call with a ticket. The others of its communicator go on meanwhile.
    ///
    /// * ticket: the call's.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when there is no such call, or it is completed; otherwise what the call that waits
    /// would return, and the call is over.
    fn fmpl_coll_wait(ticket: u64) = Ticket(ticket).wait();

    /// Completes a collective call with a ticket if that takes no waiting.
    ///
    /// * ticket: the call's.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_coll_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_coll_test(ticket: u64, done: Out<c_int>) -> done = Ticket(ticket).test();
}
