//! The shared windows of the C interface.

use core::ffi::{c_int, c_void};

use super::fmpl_comm;
use crate::base::unused::Unused;
use crate::comm;
use crate::ffi::outcome::Out;

calls! {
    // # Shared windows

    /// Allocates memory for each rank of a communicator, side by side in the order of the ranks, which all of them read
    /// and write as their own. All ranks of the communicator call it, and are on one node. When what is written is
    /// there for others, they settle between them, by messages or a barrier.
    ///
    /// * size: bytes of this rank's part; each may have another. The first part is aligned to 64 bytes, to a page from
    ///   4096 bytes in all; each begins where the one before ends.
    /// * comm: the communicator.
    /// * mine: set to where this rank's part begins.
    ///
    /// Returns: `FMPL_ERR_COMM` also when a rank is on another node (`fmpl_comm_split_node` makes a communicator of
    /// one); `FMPL_ERR_MEMORY`; `FMPL_ERR_PEER` when a rank has died; `FMPL_ERR_ARGUMENT` for a NULL pointer.
    ///
    /// Source: `MPI_Win_allocate_shared`.
    fn fmpl_shared_alloc(size: usize, comm: fmpl_comm, mine: Out<*mut c_void>) -> mine
        = comm::shared_alloc(comm, size).map(<*mut u8>::cast);

    /// Where another rank's part of a shared window lies in this process. Waits for nobody.
    ///
    /// * mine: what `fmpl_shared_alloc` has set.
    /// * rank: a rank of the communicator.
    /// * at: set to where its part begins.
    /// * size: set to its bytes; NULL: nobody wants to know.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` when no part of this rank's begins at `mine`, and for a NULL pointer;
    /// `FMPL_ERR_RANK`.
    ///
    /// Source: `MPI_Win_shared_query`.
    fn fmpl_shared_query(mine: *const c_void, rank: c_int, at: Out<*mut c_void>, size: Out<usize>) needs at
        = comm::shared_query(mine.cast(), rank).map(|(place, bytes)| {
            at.set(place.cast::<c_void>());
            size.set(bytes);
        });

    /// Gives the memory of a shared window back. All ranks of the communicator call it; afterwards none uses the
    /// memory.
    ///
    /// * mine: what `fmpl_shared_alloc` has set.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` when no part of this rank's begins there, or when another rank gives another window
    /// back; `FMPL_ERR_COMM` when the communicator has been freed; then the window is as it was. `FMPL_ERR_PEER` when a
    /// rank has died: then nobody may use it any more, and the memory goes with the job at the latest.
    ///
    /// Source: `MPI_Win_free`.
    unsafe fn fmpl_shared_free(mine: *mut c_void) = comm::shared_free(mine.cast(), Unused::promised());
}
