//! The Fortran names of the collective calls.

use super::entry::{Array8, Buffer, Data, Function, In, Members, entries};
use crate::ffi::c;
use crate::ffi::outcome::{number, wrong};

/// Places, or null where there is `FMPL_NULL`.
///
/// # Safety
/// One can be read.
unsafe fn laid(places: *const i64) -> *const usize {
    // SAFETY: as promised.
    if unsafe { places.read_unaligned() } == super::FMPL_NULL { core::ptr::null() } else { places.cast() }
}

entries! {
    // # Collective calls

    fmpl_barrier_(comm: In) = fmpl_barrier;
    fmpl_bcast_, fmpl_bcast8_(buf: Buffer, size: Size, root: In, comm: In) = fmpl_bcast;

    /// As [`c::fmpl_reduce`]; `work` may be `FMPL_NULL`.
    fmpl_reduce_(buf: Buffer, count: In, func: Function, root: In, comm: In, work: Buffer) = fmpl_reduce;

    /// As [`c::fmpl_allreduce`]; `work` may be `FMPL_NULL`.
    fmpl_allreduce_(buf: Buffer, count: In, func: Function, comm: In, work: Buffer) = fmpl_allreduce;
    fmpl_gather_, fmpl_gather8_(buf: Data, size: Size, all: Buffer, root: In, comm: In) = fmpl_gather;
    fmpl_allgather_, fmpl_allgather8_(buf: Data, size: Size, all: Buffer, comm: In) = fmpl_allgather;
    fmpl_scatter_, fmpl_scatter8_(all: Data, size: Size, buf: Buffer, root: In, comm: In) = fmpl_scatter;
    fmpl_alltoall_, fmpl_alltoall8_(sent: Data, size: Size, received: Buffer, comm: In) = fmpl_alltoall;
    fmpl_reduce_scatter_(all: Data, buf: Buffer, count: In, func: Function, comm: In) = fmpl_reduce_scatter;
    fmpl_scan_(buf: Buffer, count: In, func: Function, comm: In) = fmpl_scan;
    fmpl_exscan_(buf: Buffer, count: In, func: Function, comm: In) = fmpl_exscan;

    /// As [`c::fmpl_gatherv`]; sizes and places are arrays of INTEGER(8), places perhaps \[`FMPL_NULL`\].
    fmpl_gatherv_, fmpl_gatherv8_(buf: Data, size: Size, all: Buffer, sizes: Array8, places: Array8, root: In, comm: In)
        = { c::fmpl_gatherv(buf, size, all, sizes.cast(), laid(places), root, comm) };

    /// As [`c::fmpl_allgatherv`]; sizes and places are arrays of INTEGER(8), places perhaps \[`FMPL_NULL`\].
    fmpl_allgatherv_, fmpl_allgatherv8_(buf: Data, size: Size, all: Buffer, sizes: Array8, places: Array8, comm: In)
        = { c::fmpl_allgatherv(buf, size, all, sizes.cast(), laid(places), comm) };

    /// As [`c::fmpl_scatterv`]; sizes and places are arrays of INTEGER(8), places perhaps \[`FMPL_NULL`\].
    fmpl_scatterv_, fmpl_scatterv8_(all: Data, sizes: Array8, places: Array8, buf: Buffer, size: Size, root: In, comm: In)
        = { c::fmpl_scatterv(all, sizes.cast(), laid(places), buf, size, root, comm) };

    /// As [`c::fmpl_alltoallv`]; sizes and places are arrays of INTEGER(8), places perhaps \[`FMPL_NULL`\].
    fmpl_alltoallv_(sent: Data, sent_sizes: Array8, sent_places: Array8, received: Buffer, received_sizes: Array8, received_places: Array8, comm: In)
        = {
            let (from, to) = (laid(sent_places), laid(received_places));
            c::fmpl_alltoallv(sent, sent_sizes.cast(), from, received, received_sizes.cast(), to, comm)
        };

    /// As [`c::fmpl_mcast_reduce`]; the bitmap is an array of INTEGER(8).
    fmpl_mcast_reduce_(buf: Buffer, count: In, func: Function, members: Members, root: In, comm: In)
        = fmpl_mcast_reduce;

    /// As [`c::fmpl_mcast_alltoall`]; the bitmap is an array of INTEGER(8).
    fmpl_mcast_alltoall_, fmpl_mcast_alltoall8_(sent: Data, size: Size, received: Buffer, members: Members, comm: In)
        = fmpl_mcast_alltoall;

    /// As [`c::fmpl_func_register`]; the function is a subroutine (inout, in, count) with an INTEGER count. It must return:
    /// a STOP in it ends the process, and the other ranks get `FMPL_ERR_PEER`.
    fmpl_func_register_(func: Function, element_size: In, commutes: In) = {
        let _ = commutes;
        match (usize::try_from(element_size), func) {
            (Ok(size), Some(func)) => {
                c::introduce();
                number(crate::coll::function::register(func as *const () as usize, size, true))
            }
            _ => wrong("fmpl_func_register: the element size is negative, or there is no function"),
        }
    };
}
