//! The collective calls of the C interface with messages of different lengths.

use core::ffi::{c_int, c_void};

use super::collective::{whole, whole_room};
use super::fmpl_comm;
use crate::base::error::{Code, Error, Result};
use crate::coll::{self, Sizes};
use crate::comm;

/// Which may not be null in an alltoallv.
const SIZES: &str = "fmpl_alltoallv: sent_sizes or received_sizes is NULL";

/// Sizes and places, one of each rank, of a call that looks at them; `root`: only there.
///
/// # Safety
/// So many at each, or null.
unsafe fn of_each<'a>(
    comm: fmpl_comm,
    root: Option<c_int>,
    sizes: *const usize,
    places: *const usize,
    null: &str,
) -> Result<Sizes<'a>> {
    let n = comm::comm_size(comm)? as usize;
    if root.is_some_and(|root| comm::comm_rank(comm).ok() != Some(root)) {
        return Ok(Sizes { sizes: &[], places: &[] });
    }
    if sizes.is_null() {
        return Err(Error::new(Code::Argument, null));
    }
    // SAFETY: not null, so there are so many; no places are none.
    let all = |at: *const usize| if at.is_null() { &[] } else { unsafe { core::slice::from_raw_parts(at, n) } };
    Ok(Sizes { sizes: all(sizes), places: all(places) })
}

calls! {
    // # Collective calls with messages of different lengths

    /// Collects a message of each rank at the root, of different lengths.
    ///
    /// * buf: this rank's message; may be NULL when `size` is 0. At the root it may be its place in `all`.
    /// * size: its bytes.
    /// * all: room for all of them; only the root's is looked at.
    /// * sizes: bytes of each rank's message, which must be what it gives; only the root's are looked at.
    /// * places: where in `all` each belongs, in bytes; NULL: one right behind the other.
    /// * root: the rank that gets them.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_bcast`; `FMPL_ERR_ARGUMENT`, at the root, when a rank gives fewer or more bytes than that; the
    /// communicator goes on.
    ///
    /// Source: `MPI_Gatherv`.
    unsafe fn fmpl_gatherv(
        buf: *const c_void, size: usize, all: *mut c_void, sizes: *const usize, places: *const usize, root: c_int,
        comm: fmpl_comm,
    ) = of_each(comm, Some(root), sizes, places, "fmpl_gatherv: sizes is NULL")
        .and_then(|sizes| coll::gatherv(comm, whole(buf), size, whole_room(all), sizes, root));

    /// Collects a message of each rank at all ranks, of different lengths.
    ///
    /// * buf: this rank's message; may be NULL when `size` is 0. It may be its place in `all`.
    /// * size: its bytes.
    /// * all: room for all of them.
    /// * sizes: bytes of each rank's message, the same on all ranks.
    /// * places: where in `all` each belongs, in bytes; NULL: one right behind the other.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_gatherv`.
    ///
    /// Source: `MPI_Allgatherv`.
    unsafe fn fmpl_allgatherv(
        buf: *const c_void, size: usize, all: *mut c_void, sizes: *const usize, places: *const usize, comm: fmpl_comm,
    ) = of_each(comm, None, sizes, places, "fmpl_allgatherv: sizes is NULL")
        .and_then(|sizes| coll::allgatherv(comm, whole(buf), size, whole_room(all), sizes));

    /// Gives each rank its own message of the root's, of different lengths.
    ///
    /// * all: the messages; only the root's are looked at.
    /// * sizes: bytes of each rank's message; only the root's are looked at.
    /// * places: where in `all` each lies, in bytes; NULL: one right behind the other.
    /// * buf: room for this rank's message; may be NULL when `size` is 0. At the root it may be the place in `all`
    ///   where it lies.
    /// * size: its bytes, which must be what the root gives.
    /// * root: the rank that has the messages.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_gatherv`, at the rank that takes.
    ///
    /// Source: `MPI_Scatterv`.
    unsafe fn fmpl_scatterv(
        all: *const c_void, sizes: *const usize, places: *const usize, buf: *mut c_void, size: usize, root: c_int,
        comm: fmpl_comm,
    ) = of_each(comm, Some(root), sizes, places, "fmpl_scatterv: sizes is NULL")
        .and_then(|sizes| coll::scatterv(comm, whole(all), sizes, whole_room(buf), size, root));

    /// Gives each rank its own message of each rank, of different lengths.
    ///
    /// * sent: the messages for the ranks.
    /// * sent_sizes: bytes of each.
    /// * sent_places: where in `sent` each lies, in bytes; NULL: one right behind the other.
    /// * received: room for the ranks' messages; it does not overlap with `sent`.
    /// * received_sizes: bytes of each, which must be what the rank gives.
    /// * received_places: where in `received` each belongs, in bytes; NULL: one right behind the other.
    /// * comm: the communicator.
    ///
    /// Returns: as `fmpl_gatherv`.
    ///
    /// Source: `MPI_Alltoallv`.
    unsafe fn fmpl_alltoallv(
        sent: *const c_void, sent_sizes: *const usize, sent_places: *const usize, received: *mut c_void,
        received_sizes: *const usize, received_places: *const usize, comm: fmpl_comm,
    ) = of_each(comm, None, sent_sizes, sent_places, SIZES).and_then(|given| {
        let taken = of_each(comm, None, received_sizes, received_places, SIZES)?;
        coll::alltoallv(comm, whole(sent), given, whole_room(received), taken)
    });
}
