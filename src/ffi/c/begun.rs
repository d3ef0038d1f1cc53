//! Collective calls of the C interface that do not wait: one of a communicator at a time. Several: `tickets.rs`.

use core::ffi::{c_int, c_void};

use super::collective::{ends, found, whole_room};
use super::{fmpl_comm, fmpl_func};
use crate::base::bytes::Room;
use crate::base::error::Result;
use crate::coll::{self, Ask, Elements, Kind, Sides};
use crate::ffi::outcome::Out;

/// The sides of an exchange.
///
/// # Safety
/// As many blocks as the call reads and writes, until it is completed.
pub(super) unsafe fn sides(give: *const c_void, size: usize, take: *mut c_void) -> Sides {
    // SAFETY: as the caller promises; the core looks at null and size itself.
    let (give, take) = unsafe { ends(give, take) };
    Sides { give, size, take }
}

/// What a reduction combines, and with what.
///
/// # Safety
/// So many elements of the function's, until the call is completed; functions of the program stay.
pub(super) unsafe fn vector(buf: *mut c_void, count: c_int, func: fmpl_func) -> Result<Elements> {
    // SAFETY: as the caller promises.
    found(func).map(|f| Elements { data: unsafe { whole_room(buf) }, count, f })
}

calls! {
    // # Collective calls that do not wait

    /// Begins a barrier. A communicator has at most one collective call without a ticket under way: until this one is
    /// completed all others get `FMPL_ERR_BUSY`. A call that has begun moves on while this process tests it or waits
    /// for anything else.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_barrier`; `FMPL_ERR_BUSY`.
    fn fmpl_ibarrier(comm: fmpl_comm) = coll::begin(comm, Ask::Barrier);

    /// Waits until every rank of the communicator has begun the barrier of `fmpl_ibarrier`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_barrier`, and the call is over.
    fn fmpl_ibarrier_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Barrier);

    /// Has every rank begun the barrier of `fmpl_ibarrier`?
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_ibarrier_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_ibarrier_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Barrier);

    /// Begins to copy a buffer of one rank to all ranks, as `fmpl_bcast` does. The buffer must not be touched, at the
    /// root not be changed, until the call is completed. Until then all other collective calls of the communicator
    /// without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * buf: the message at the root, room for it elsewhere; may be NULL when `size` is 0.
    /// * size: bytes, the same on all ranks.
    /// * root: the rank whose buffer it is.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`.
    unsafe fn fmpl_ibcast(buf: *mut c_void, size: usize, root: c_int, comm: fmpl_comm)
        = coll::begin(comm, Ask::Bcast(Room::new(buf.cast(), size), size, root));

    /// Completes the call of `fmpl_ibcast`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_bcast`, and the call is over.
    fn fmpl_ibcast_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Bcast);

    /// Completes the call of `fmpl_ibcast` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_ibcast_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_ibcast_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Bcast);

    /// Begins to combine the ranks' vectors as `fmpl_allreduce` does. The buffer must not be touched until the call is
    /// completed. Until then all other collective calls of the communicator without tickets get `FMPL_ERR_BUSY`. A
    /// function of the program may be called in any call of the library that waits or tests, also by another thread.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined.
    /// * comm: the communicator.
    /// * work: room for as many elements as `buf` has, which the library may use until the call is completed, or NULL.
    ///
    /// Returns: as `fmpl_reduce`.
    unsafe fn fmpl_iallreduce(buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm, work: *mut c_void)
        = vector(buf, count, func).and_then(|vector| coll::begin(comm, Ask::Allreduce(vector)));

    /// Completes the call of `fmpl_iallreduce`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_allreduce`, and the call is over.
    fn fmpl_iallreduce_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Allreduce);

    /// Completes the call of `fmpl_iallreduce` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_iallreduce_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_iallreduce_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Allreduce);

    /// Begins to combine the ranks' vectors, as `fmpl_reduce` does. Until the call is completed all other collective
    /// calls of the communicator without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * buf: the vector; may be NULL when `count` is 0. It must not be touched until the call is completed.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined.
    /// * root: the rank that gets the result.
    /// * comm: the communicator.
    /// * work: room for as many elements as `buf` has, which the library may use until the call is completed, or NULL.
    ///
    /// Returns: `FMPL_ERR_BUSY`, and otherwise as `fmpl_reduce`.
    ///
    /// Source: `MPI_Ireduce`.
    unsafe fn fmpl_ireduce(
        buf: *mut c_void, count: c_int, func: fmpl_func, root: c_int, comm: fmpl_comm, work: *mut c_void,
    ) = vector(buf, count, func).and_then(|vector| coll::begin(comm, Ask::Reduce(vector, root)));

    /// Completes the call of `fmpl_ireduce`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_reduce`, and the call is over.
    fn fmpl_ireduce_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Reduce);

    /// Completes the call of `fmpl_ireduce` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_ireduce_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_ireduce_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Reduce);

    /// Begins to collect a message of each rank at one rank, as `fmpl_gather` does. Until the call is completed all
    /// other collective calls of the communicator without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * buf: this rank's message, as for `fmpl_gather`; it must not change until the call is completed.
    /// * size: bytes, the same on all ranks.
    /// * all: at the root room for a message of each rank, not to be touched until the call is completed; elsewhere it
    ///   is not looked at.
    /// * root: the rank that collects.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_BUSY`, and otherwise as `fmpl_gather`.
    ///
    /// Source: `MPI_Igather`.
    unsafe fn fmpl_igather(buf: *const c_void, size: usize, all: *mut c_void, root: c_int, comm: fmpl_comm)
        = coll::begin(comm, Ask::Gather(sides(buf, size, all), root));

    /// Completes the call of `fmpl_igather`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_gather`, and the call is over.
    fn fmpl_igather_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Gather);

    /// Completes the call of `fmpl_igather` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_igather_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_igather_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Gather);

    /// Begins to collect a message of each rank at all ranks, as `fmpl_allgather` does. Until the call is completed all
    /// other collective calls of the communicator without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * buf: this rank's message, as for `fmpl_allgather`; it must not change until the call is completed.
    /// * size: bytes, the same on all ranks.
    /// * all: room for a message of each rank, not to be touched until the call is completed.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_BUSY`, and otherwise as `fmpl_allgather`.
    ///
    /// Source: `MPI_Iallgather`.
    unsafe fn fmpl_iallgather(buf: *const c_void, size: usize, all: *mut c_void, comm: fmpl_comm)
        = coll::begin(comm, Ask::Allgather(sides(buf, size, all)));

    /// Completes the call of `fmpl_iallgather`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_allgather`, and the call is over.
    fn fmpl_iallgather_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Allgather);

    /// Completes the call of `fmpl_iallgather` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_iallgather_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_iallgather_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Allgather);

    /// Begins to give each rank its own message of one rank, as `fmpl_scatter` does. Until the call is completed all
    /// other collective calls of the communicator without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * all: at the root a message for each rank, not to be changed until the call is completed; elsewhere it is not
    ///   looked at.
    /// * size: bytes of one message, the same on all ranks.
    /// * buf: room for this rank's message, as for `fmpl_scatter`; it must not be touched until the call is completed.
    /// * root: the rank that has the messages.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_BUSY`, and otherwise as `fmpl_scatter`.
    ///
    /// Source: `MPI_Iscatter`.
    unsafe fn fmpl_iscatter(all: *const c_void, size: usize, buf: *mut c_void, root: c_int, comm: fmpl_comm)
        = coll::begin(comm, Ask::Scatter(sides(all, size, buf), root));

    /// Completes the call of `fmpl_iscatter`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_scatter`, and the call is over.
    fn fmpl_iscatter_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Scatter);

    /// Completes the call of `fmpl_iscatter` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_iscatter_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_iscatter_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Scatter);

    /// Begins to give each rank its own message of each rank, as `fmpl_alltoall` does. Until the call is completed all
    /// other collective calls of the communicator without tickets get `FMPL_ERR_BUSY`.
    ///
    /// * sent: a message for each rank, not to be changed until the call is completed.
    /// * size: bytes of one message, the same on all ranks.
    /// * received: room for a message of each rank, which does not overlap with `sent`; not to be touched until the
    ///   call is completed.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_BUSY`, and otherwise as `fmpl_alltoall`.
    ///
    /// Source: `MPI_Ialltoall`.
    unsafe fn fmpl_ialltoall(sent: *const c_void, size: usize, received: *mut c_void, comm: fmpl_comm)
        = coll::begin(comm, Ask::Alltoall(sides(sent, size, received)));

    /// Completes the call of `fmpl_ialltoall`.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_REQUEST` when none has begun here; otherwise as `fmpl_alltoall`, and the call is over.
    fn fmpl_ialltoall_wait(comm: fmpl_comm) = coll::wait(comm, Kind::Alltoall);

    /// Completes the call of `fmpl_ialltoall` if that takes no waiting.
    ///
    /// * comm: the communicator.
    /// * done: set to 1, and the call is over, or 0.
    ///
    /// Returns: as `fmpl_ialltoall_wait`; `FMPL_ERR_ARGUMENT` when `done` is NULL.
    fn fmpl_ialltoall_test(comm: fmpl_comm, done: Out<c_int>) -> done = coll::test(comm, Kind::Alltoall);
}
