//! The collective calls of the C interface.

use core::ffi::{c_int, c_void};

use super::functions::introduce;
use super::{fmpl_comm, fmpl_func};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result};
use crate::coll::{self, Function, function};
use crate::ffi::outcome::number;

/// The function at an address.
pub(in crate::ffi) fn found(func: fmpl_func) -> Result<Function<'static>> {
    introduce();
    match func {
        Some(func) => function::find(func as *const () as usize),
        None => Err(Error::new(Code::Argument, "the function is NULL")),
    }
}

/// What a call reads that is as long as the communicator or the function says.
///
/// # Safety
/// As many bytes as the call reads, or NULL.
pub(super) unsafe fn whole<'a>(at: *const c_void) -> Bytes<'a> {
    // SAFETY: as the caller promises; what the call does not read is nobody's.
    unsafe { Bytes::new(at.cast(), isize::MAX as usize) }
}

/// The same of what it writes.
///
/// # Safety
/// Room for as many bytes as the call writes, or NULL.
pub(super) unsafe fn whole_room<'a>(at: *mut c_void) -> Room<'a> {
    // SAFETY: as for `whole`.
    unsafe { Room::new(at.cast(), isize::MAX as usize) }
}

/// Both, of an exchange.
///
/// # Safety
/// As for [`whole`] and [`whole_room`].
pub(super) unsafe fn ends<'a>(give: *const c_void, take: *mut c_void) -> (Bytes<'a>, Room<'a>) {
    // SAFETY: as the caller promises.
    unsafe { (whole(give), whole_room(take)) }
}

calls! {
    // # Collective calls

    /// Waits until every rank of the communicator has come here.
    ///
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_PEER` when a rank has died or left.
    ///
    /// Source: FMPL paper, section 3.3.3.
    fn fmpl_barrier(comm: fmpl_comm) = coll::barrier(comm);

    /// Copies a buffer of one rank to all ranks of the communicator. As all collective calls: every rank of the
    /// communicator makes it, in the same order, one thread of each process at a time, with the same size and root; and
    /// after a rank has died every collective call of a communicator that it belongs to ends with an error.
    ///
    /// * buf: the message at the root, room for it elsewhere; may be NULL when `size` is 0.
    /// * size: bytes, the same on all ranks.
    /// * root: the rank whose buffer it is.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK` (the root), `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (another collective
    /// call of this communicator is under way), `FMPL_ERR_PEER` (a rank has died or left).
    ///
    /// Source: FMPL paper, section 3.3.3.
    unsafe fn fmpl_bcast(buf: *mut c_void, size: usize, root: c_int, comm: fmpl_comm)
        = coll::bcast(comm, Room::new(buf.cast(), size), size, root);

    /// Combines the ranks' vectors, element by element and in the order of the ranks: on the ranks of one node the
    /// root's becomes ((x0 o x1) o x2) o ..., with the same bits in every run, whatever the way; between nodes also
    /// (x0 o x1) o (x2 o x3) and the like, so the function must be associative there. The others' stay as they are.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined, a predefined function or one that was registered.
    /// * root: the rank that gets the result.
    /// * comm: the communicator.
    /// * work: room for as many elements as `buf` has, which the library may use, or NULL.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` (also for a function that is not registered), `FMPL_ERR_RANK` (the root),
    /// `FMPL_ERR_COMM`, `FMPL_ERR_BUSY`, `FMPL_ERR_PEER`.
    ///
    /// Source: FMPL paper, section 3.3.3.
    unsafe fn fmpl_reduce(
        buf: *mut c_void, count: c_int, func: fmpl_func, root: c_int, comm: fmpl_comm, work: *mut c_void,
    ) = found(func).and_then(|f| coll::reduce(comm, whole_room(buf), count, &f, root));

    /// Combines the ranks' vectors as `fmpl_reduce` does; everybody's becomes the result, with the same bits.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined.
    /// * comm: the communicator.
    /// * work: room for as many elements as `buf` has, which the library may use, or NULL.
    ///
    /// Returns: as `fmpl_reduce`.
    ///
    /// Source: FMPL paper, section 3.3.3.
    unsafe fn fmpl_allreduce(buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm, work: *mut c_void)
        = found(func).and_then(|f| coll::allreduce(comm, whole_room(buf), count, &f));

    /// Collects a message of each rank at one rank.
    ///
    /// * buf: this rank's message; may be NULL when `size` is 0. At the root it may be the place in `all` where it
    ///   belongs.
    /// * size: bytes, the same on all ranks.
    /// * all: at the root room for a message of each rank, which come in the order of the ranks; elsewhere it is not
    ///   looked at.
    /// * root: the rank that collects.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`.
    unsafe fn fmpl_gather(buf: *const c_void, size: usize, all: *mut c_void, root: c_int, comm: fmpl_comm)
        = coll::gather(comm, whole(buf), size, whole_room(all), root);

    /// Collects a message of each rank at all ranks.
    ///
    /// * buf: this rank's message; may be NULL when `size` is 0. It may be the place in `all` where it belongs.
    /// * size: bytes, the same on all ranks.
    /// * all: room for a message of each rank, which come in the order of the ranks.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`.
    unsafe fn fmpl_allgather(buf: *const c_void, size: usize, all: *mut c_void, comm: fmpl_comm)
        = coll::allgather(comm, whole(buf), size, whole_room(all));

    /// Gives each rank its own message of one rank.
    ///
    /// * all: at the root a message for each rank, in the order of the ranks; elsewhere it is not looked at.
    /// * size: bytes of one message, the same on all ranks.
    /// * buf: room for this rank's message; may be NULL when `size` is 0. At the root it may be the place in `all`
    ///   where it lies.
    /// * root: the rank that has the messages.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`.
    unsafe fn fmpl_scatter(all: *const c_void, size: usize, buf: *mut c_void, root: c_int, comm: fmpl_comm)
        = coll::scatter(comm, whole(all), size, whole_room(buf), root);

    /// Gives each rank its own message of each rank.
    ///
    /// * sent: a message for each rank, in the order of the ranks.
    /// * size: bytes of one message, the same on all ranks.
    /// * received: room for a message of each rank, which come in the order of the ranks; it does not overlap with
    ///   `sent`.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`.
    unsafe fn fmpl_alltoall(sent: *const c_void, size: usize, received: *mut c_void, comm: fmpl_comm)
        = coll::alltoall(comm, whole(sent), size, whole_room(received));

    /// Combines the ranks' vectors as `fmpl_reduce` does; each rank gets a block of the result.
    ///
    /// * all: the vector, a block of `count` elements for each rank, in the order of the ranks; it is not changed.
    /// * buf: room for this rank's block of the result; it does not overlap with `all`.
    /// * count: elements of a block, the same on all ranks.
    /// * func: how two elements are combined.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_reduce`.
    unsafe fn fmpl_reduce_scatter(all: *const c_void, buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm)
        = found(func).and_then(|f| coll::reduce_scatter(comm, whole(all), whole_room(buf), count, &f));

    /// Combines the vectors of the ranks up to each, as `fmpl_reduce` does: that of rank k becomes x0 o ... o xk.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_reduce`.
    unsafe fn fmpl_scan(buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm)
        = found(func).and_then(|f| coll::scan(comm, whole_room(buf), count, &f));

    /// The same without this rank's own: rank k's vector becomes those of ranks 0 to k - 1, combined in this order;
    /// that of rank 0 stays.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all ranks.
    /// * func: how two elements are combined.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_reduce`.
    ///
    /// Source: `MPI_Exscan`.
    unsafe fn fmpl_exscan(buf: *mut c_void, count: c_int, func: fmpl_func, comm: fmpl_comm)
        = found(func).and_then(|f| coll::exscan(comm, whole_room(buf), count, &f));

    /// Combines the vectors of a group of ranks that is chosen for this one call, in the order of the ranks; the root's
    /// becomes the result, the others' stay as they are. All members of the group make the call, with the same group;
    /// nobody else takes part. Calls of one rank with others must be made in the same order by both.
    ///
    /// * buf: the vector; may be NULL when `count` is 0.
    /// * count: elements, the same on all members.
    /// * func: how two elements are combined; it must be associative, and need not commute.
    /// * members: the group, bit r % 64 of word r / 64 for rank r; this rank and the root are among them.
    /// * root: the rank that gets the result.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (a collective call is under
    /// way); `FMPL_ERR_PEER`, at those who wait for it, when a member has died; the communicator can be used as before.
    unsafe fn fmpl_mcast_reduce(
        buf: *mut c_void, count: c_int, func: fmpl_func, members: *const u64, root: c_int, comm: fmpl_comm,
    ) = found(func).and_then(|f| coll::mcast_reduce(comm, whole_room(buf), count, &f, whole(members.cast()), root));

    /// Gives each rank of a group that is chosen for this one call its own message of each. All members of the group
    /// make the call, with the same group and size; nobody else takes part. Calls of one rank with others must be made
    /// in the same order by both.
    ///
    /// * sent: a message for each member, in the order of the ranks; may be NULL when `size` is 0.
    /// * size: bytes of one message, the same on all members.
    /// * received: room for a message of each member, which come in the order of the ranks; it does not overlap with
    ///   `sent`.
    /// * members: the group, bit r % 64 of word r / 64 for rank r; this rank is among them.
    /// * comm: the communicator.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK`, `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (a collective call is under
    /// way); `FMPL_ERR_PEER` when a member has died: the messages of the others have come all the same, and the
    /// communicator can be used as before.
    unsafe fn fmpl_mcast_alltoall(
        sent: *const c_void, size: usize, received: *mut c_void, members: *const u64, comm: fmpl_comm,
    ) = coll::mcast_alltoall(comm, whole(sent), size, whole_room(received), whole(members.cast()));
}

/// Lets a function of the program be used in reductions, on this rank; every rank registers its own. The function is called with parts
/// of the vectors, inout before in in the order of the ranks, and must call nothing of the library. Registering it again
/// replaces what was said before. May be called at any time.
///
/// The function must return. Whatever thread of the process waits in the library may be the one that calls it, for a call that another
/// thread has begun, so nothing can come out of it: an exception of C++, a panic of Rust or the end of its thread (`pthread_exit`,
/// `pthread_cancel`) ends the process with a message that names the rank and the function, and the other ranks get `FMPL_ERR_PEER`. To
/// leave it by `longjmp` is undefined. A function that cannot go on calls `abort`, or keeps its failure where the program finds it.
///
/// * func: inout\[k\] = inout\[k\] o in\[k\] for count elements; `in` is not aligned better than its elements.
/// * element_size: bytes of an element, 1 to 8192.
/// * commutes: 1 if a o b = b o a, else 0. Functions are applied in the order of the ranks in any case.
///
/// Returns: `FMPL_ERR_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_func_register(func: fmpl_func, element_size: usize, commutes: c_int) -> c_int {
    let _ = commutes;
    introduce();
    number(match func {
        // SAFETY: the caller promises that it is such a function of such elements.
        Some(func) => unsafe { function::register(func as *const () as usize, element_size, false) },
        None => Err(Error::new(Code::Argument, "fmpl_func_register: the function is NULL")),
    })
}
