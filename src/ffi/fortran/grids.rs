//! The Fortran names of grids and of exchanges with neighbours on them.

use super::entry::{Array, Buffer, Codes, Data, In, Out, entries};
use crate::ffi::c;

entries! {
    // # Grids

    /// As [`c::fmpl_cart_create`]; dimensions and periods are arrays of INTEGER.
    fmpl_cart_create_(comm: In, ndims: In, dims: Array, periods: Array, cart: Out)
        = { c::fmpl_cart_create(comm, ndims, dims, periods, cart) };
    /// As [`c::fmpl_cart_coords`]; coordinates count from 0.
    fmpl_cart_coords_(cart: In, rank: In, coords: Codes) = { c::fmpl_cart_coords(cart, rank, coords) };
    /// As [`c::fmpl_cart_rank`]; coordinates count from 0.
    fmpl_cart_rank_(cart: In, coords: Array, rank: Out) = { c::fmpl_cart_rank(cart, coords, rank) };
    /// As [`c::fmpl_cart_shift`]; dimensions count from 0.
    fmpl_cart_shift_(cart: In, dim: In, steps: In, src: Out, dst: Out) = fmpl_cart_shift;
    fmpl_neighbour_allgather_, fmpl_neighbour_allgather8_(buf: Data, size: Size, all: Buffer, cart: In)
        = fmpl_neighbour_allgather;
    fmpl_neighbour_alltoall_, fmpl_neighbour_alltoall8_(sent: Data, size: Size, received: Buffer, cart: In)
        = fmpl_neighbour_alltoall;
}
