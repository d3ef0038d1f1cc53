//! The collective calls of the C interface.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too

use core::ffi::{c_int, c_void};

use super::functions::introduce;
use super::{fmpl_comm, fmpl_func};
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

// # Collective calls

/// Waits until every rank of the communicator has come here.
///
/// * comm: the communicator.
///
/// Returns: `FMPL_ERR_COMM`; `FMPL_ERR_PEER` when a rank has died or left.
///
/// Source: FMPL paper, section 3.3.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_barrier(comm: fmpl_comm) -> c_int {
    number(coll::barrier(comm))
}

/// Copies a buffer of one rank to all ranks of the communicator. As all collective calls: every rank of the communicator makes it, in the
/// same order, one thread of each process at a time, with the same size and root; and after a rank has died every collective
/// call of a communicator that it belongs to ends with an error.
///
/// * buf: the message at the root, room for it elsewhere; may be NULL when `size` is 0.
/// * size: bytes, the same on all ranks.
/// * root: the rank whose buffer it is.
/// * comm: the communicator.
///
/// Returns: `FMPL_ERR_ARGUMENT`, `FMPL_ERR_RANK` (the root), `FMPL_ERR_COMM`, `FMPL_ERR_BUSY` (another collective call of this
/// communicator is under way), `FMPL_ERR_PEER` (a rank has died or left).
///
/// Source: FMPL paper, section 3.3.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_bcast(buf: *mut c_void, size: usize, root: c_int, comm: fmpl_comm) -> c_int {
    // SAFETY: the caller promises `size` bytes at `buf`; the core looks at null and size itself.
    number(unsafe { coll::bcast(comm, buf.cast(), size, root) })
}

/// Combines the ranks' vectors, element by element: the root's becomes ((x0 o x1) o x2) o ..., in the order of the ranks. The others'
/// stay as they are. On the ranks of one node the bits of the result are the same in every run, whatever the way.
///
/// * buf: the vector; may be NULL when `count` is 0.
/// * count: elements, the same on all ranks.
/// * func: how two elements are combined, a predefined function or one that was registered.
/// * root: the rank that gets the result.
/// * comm: the communicator.
/// * work: room for as many elements as `buf` has, which the library may use, or NULL.
///
/// Returns: `FMPL_ERR_ARGUMENT` (also for a function that is not registered), `FMPL_ERR_RANK` (the root), `FMPL_ERR_COMM`,
/// `FMPL_ERR_BUSY`, `FMPL_ERR_PEER`.
///
/// Source: FMPL paper, section 3.3.3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_reduce(
    buf: *mut c_void,
    count: c_int,
    func: fmpl_func,
    root: c_int,
    comm: fmpl_comm,
    work: *mut c_void,
) -> c_int {
    let _ = work;
    // SAFETY: the caller promises `count` elements at `buf`; the core looks at null and count itself.
    number(found(func).and_then(|f| unsafe { coll::reduce(comm, buf.cast(), count, &f, root) }))
}

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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_allreduce(
    buf: *mut c_void,
    count: c_int,
    func: fmpl_func,
    comm: fmpl_comm,
    work: *mut c_void,
) -> c_int {
    let _ = work;
    // SAFETY: the caller promises `count` elements at `buf`; the core looks at null and count itself.
    number(found(func).and_then(|f| unsafe { coll::allreduce(comm, buf.cast(), count, &f) }))
}

/// Lets a function of the program be used in reductions, on this rank; every rank registers its own. The function is called with parts
/// of the vectors, inout before in in the order of the ranks, and must call nothing of the library. Registering it again
/// replaces what was said before. May be called at any time.
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
        Some(func) => function::register(func as *const () as usize, element_size, false),
        None => Err(Error::new(Code::Argument, "fmpl_func_register: the function is NULL")),
    })
}
