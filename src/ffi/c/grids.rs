//! Grids of ranks, and exchanges with neighbours on them, in the C interface.

use core::ffi::{c_int, c_void};

use super::collective::{whole, whole_room};
use super::fmpl_comm;
use crate::ffi::outcome::{Out, hand_to, wrong};
use crate::{coll, comm, p2p};

/// A rank, or nobody.
fn or_nobody(rank: Option<u32>) -> c_int {
    rank.map_or(p2p::PROC_NULL, |rank| rank as c_int)
}

// # Grids

/// Makes a communicator whose ranks form a Cartesian grid; all ranks of the communicator call it, with the same dimensions. The first ranks are
/// in it, in the same order, the last dimension's neighbours side by side.
///
/// * comm: the communicator.
/// * ndims: dimensions, 1 or more.
/// * dims: ranks along each, 1 or more; together no more than `comm` has.
/// * periods: for each 1 if it closes, so that the last rank's neighbour is the first, else 0; NULL: none closes.
/// * cart: set to the communicator, or to `FMPL_COMM_NULL` at ranks that have no place in it.
///
/// Returns: as `fmpl_comm_split`; `FMPL_ERR_ARGUMENT` for a NULL pointer, and when that is no grid of so many ranks.
///
/// Source: `MPI_Cart_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_cart_create(
    comm: fmpl_comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    cart: Out<fmpl_comm>,
) -> c_int {
    if dims.is_null() {
        return wrong("fmpl_cart_create: dims is NULL");
    }
    // SAFETY: as many as `ndims` says.
    let side = |k| unsafe {
        let closes = !periods.is_null() && *periods.add(k) != 0;
        (u32::try_from(*dims.add(k)).unwrap_or(0), closes)
    };
    let sides = (0..usize::try_from(ndims).unwrap_or(0)).map(side);
    hand_to(cart, "fmpl_cart_create: cart is NULL", || comm::cart_create(comm, sides).map(comm::or_null))
}

calls! {
    /// Where in its grid a rank is.
    ///
    /// * cart: a communicator of `fmpl_cart_create`.
    /// * rank: a rank of it.
    /// * coords: set to its coordinates, from 0 on; as many as the grid has dimensions.
    ///
    /// Returns: `FMPL_ERR_COMM` (also for one that is no grid), `FMPL_ERR_RANK`; `FMPL_ERR_ARGUMENT` for a NULL
    /// pointer.
    ///
    /// Source: `MPI_Cart_coords`.
    unsafe fn fmpl_cart_coords(cart: fmpl_comm, rank: c_int, coords: *mut c_int) needs coords
        = comm::cart_coords(cart, rank)
            .map(|at| at.into_iter().enumerate().for_each(|(k, at): (usize, u32)| *coords.add(k) = at as c_int));

    /// Which rank of a grid is at a place.
    ///
    /// * cart: a communicator of `fmpl_cart_create`.
    /// * coords: the coordinates; in a dimension that closes they go round.
    /// * rank: set to the rank, or to `FMPL_PROC_NULL` beyond an edge.
    ///
    /// Returns: as `fmpl_cart_coords`.
    ///
    /// Source: `MPI_Cart_rank`.
    unsafe fn fmpl_cart_rank(cart: fmpl_comm, coords: *const c_int, rank: Out<c_int>) needs coords -> rank
        = comm::cart_dimensions(cart)
            .and_then(|n| comm::cart_rank(cart, (0..n).map(|k| i64::from(*coords.add(k)))))
            .map(or_nobody);

    /// From whom this rank receives, and to whom it sends, when all ranks of a grid send so many steps along a
    /// dimension.
    ///
    /// * cart: a communicator of `fmpl_cart_create`.
    /// * dim: the dimension, from 0 on.
    /// * steps: how far; may be negative.
    /// * src: set to the rank to receive from, or to `FMPL_PROC_NULL`.
    /// * dst: set to the rank to send to, or to `FMPL_PROC_NULL`.
    ///
    /// Returns: as `fmpl_cart_coords`; `FMPL_ERR_ARGUMENT` also for a dimension that there is not.
    ///
    /// Source: `MPI_Cart_shift`.
    fn fmpl_cart_shift(cart: fmpl_comm, dim: c_int, steps: c_int, src: Out<c_int>, dst: Out<c_int>) needs src or dst
        = comm::cart_shift(cart, dim, steps).map(|(from, to)| {
            src.set(or_nobody(from));
            dst.set(or_nobody(to));
        });

    /// Gives each neighbour on a grid the same message, and collects one of each: of each dimension that of the rank
    /// before this one, then that of the rank behind. What would come from beyond an edge is not touched.
    ///
    /// * buf: this rank's message; may be NULL when `size` is 0.
    /// * size: bytes, the same on all ranks.
    /// * all: room for two messages for each dimension; it does not overlap with `buf`.
    /// * cart: a communicator of `fmpl_cart_create`.
    ///
    /// Returns: as `fmpl_bcast`; `FMPL_ERR_COMM` also for a communicator that is no grid.
    ///
    /// Source: `MPI_Neighbor_allgather`.
    unsafe fn fmpl_neighbour_allgather(buf: *const c_void, size: usize, all: *mut c_void, cart: fmpl_comm)
        = coll::neighbours(cart, whole(buf), true, size, whole_room(all));

    /// Gives each neighbour on a grid its own message, and collects one of each, in the order of
    /// `fmpl_neighbour_allgather`.
    ///
    /// * sent: two messages for each dimension: for the rank before this one, for the one behind.
    /// * size: bytes of one message, the same on all ranks.
    /// * received: room for as many; it does not overlap with `sent`.
    /// * cart: a communicator of `fmpl_cart_create`.
    ///
    /// Returns: as `fmpl_neighbour_allgather`.
    ///
    /// Source: `MPI_Neighbor_alltoall`.
    unsafe fn fmpl_neighbour_alltoall(sent: *const c_void, size: usize, received: *mut c_void, cart: fmpl_comm)
        = coll::neighbours(cart, whole(sent), false, size, whole_room(received));
}
