//! Fortran names: subroutines `fmpl_*_` whose arguments are addresses, with the return code in the trailing `ier`.
//!
//! Any compiler reaches them through `include/fmplf.h`; the module of `include/fmpl.f90` adds interfaces. Both files are
//! generated from this one (`tests/interface/fortran.rs`). INTEGER is default INTEGER, 4 bytes; a subroutine with a size exists
//! twice, `fmpl_send_` with INTEGER and `fmpl_send8_` with INTEGER(8), which the module joins under one name. Flags are INTEGER,
//! 0 or 1: what a LOGICAL looks like differs between compilers. A CHARACTER argument has its length as a hidden last argument.
//!
//! Most are entries of a table (`entry.rs`); the few that are written out have no `ier` at their end.
//!
//! Safety is Fortran's: what it passes are addresses of variables of the types that the interface names.

#![allow(clippy::missing_safety_doc)] // the paragraph above holds for each of them

mod acp;
mod any;
mod begun;
mod collective;
mod entry;
mod functions;
mod grids;
mod lists;
mod loans;
mod prepared;
mod requests;
mod shapes;

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::ffi::CString;

use super::c;
use super::outcome::{hand_out, last_error, meaning, number, wrong};
use crate::comm;
use entry::{Address, Array, Buffer, Data, Function, In, NewAddress, Out, entries};
use lists::{Direction, ended, tested};

pub(in crate::ffi) use functions::*;

/// `FMPL_NULL` as Fortran passes it, by address: a number that no buffer begins with by accident ("FMPLNULL").
pub const FMPL_NULL: i64 = 0x4c4c_554e_4c50_4d46;

/// The address of a spool, or null where the program gave `FMPL_NULL`.
///
/// # Safety
/// `size` bytes must be readable at `buf`, or it is `FMPL_NULL`.
unsafe fn area(buf: *mut c_void, size: usize) -> *mut c_void {
    let null = FMPL_NULL.to_ne_bytes();
    let looked_at = size.min(null.len());
    // SAFETY: `FMPL_NULL` has 8 bytes, a buffer has `size`.
    let begins = unsafe { core::slice::from_raw_parts(buf.cast_const().cast::<u8>(), looked_at) };
    if begins == &null[..looked_at] { ptr::null_mut() } else { buf }
}

/// Fills a CHARACTER variable with a text, and with blanks behind it.
///
/// # Safety
/// `length` bytes must be writable at `to`, and `text` must end with a NUL.
unsafe fn fill(to: *mut c_char, length: usize, text: *const c_char) {
    // SAFETY: as promised; the two do not overlap, one is the program's and one the library's.
    unsafe {
        let bytes = libc::strlen(text).min(length);
        ptr::copy_nonoverlapping(text, to, bytes);
        ptr::write_bytes(to.add(bytes), b' ', length - bytes);
    }
}

entries! {
    // # Life of the job

    /// As [`c::fmpl_init`]; `ma` and `fa` may be `FMPL_NULL`.
    fmpl_init_(ma: Buffer, fa: Buffer, count: In) = fmpl_init;
    fmpl_finalize_() = {
        let code = c::fmpl_finalize();
        lists::finalized();
        code
    };
    fmpl_initialized_(flag: Out) = fmpl_initialized;
    fmpl_abort_(code: In) = fmpl_abort;
    fmpl_comm_rank_(comm: In, rank: Out) = fmpl_comm_rank;
    fmpl_comm_size_(comm: In, size: Out) = fmpl_comm_size;

    // # Blocking messages

    fmpl_send_, fmpl_send8_(buf: Data, size: Size, dst: In, mai: In, comm: In) = fmpl_send;
    fmpl_recv_, fmpl_recv8_(buf: Buffer, size: Size, src: In, mai: In, comm: In) = fmpl_recv;
    fmpl_sendrecv_, fmpl_sendrecv8_(sbuf: Data, ssize: Size, dst: In, smai: In, rbuf: Buffer, rsize: Size, src: In, rmai: In, comm: In)
        = fmpl_sendrecv;

    // # Non-blocking messages

    fmpl_isend_, fmpl_isend8_(buf: Data, size: Size, dst: In, mai: In, comm: In) = fmpl_isend;
    fmpl_irecv_, fmpl_irecv8_(buf: Buffer, size: Size, src: In, mai: In, comm: In) = fmpl_irecv;
    fmpl_isend_wait_(dst: In, mai: In, comm: In)
        = { ended(c::fmpl_isend_wait(dst, mai, comm), true, (Direction::Send, dst, mai, comm)) };
    fmpl_isend_test_(dst: In, mai: In, comm: In, done: Out)
        = { tested(done, (Direction::Send, dst, mai, comm), |flag| c::fmpl_isend_test(dst, mai, comm, flag)) };
    fmpl_irecv_wait_(src: In, mai: In, comm: In)
        = { ended(c::fmpl_irecv_wait(src, mai, comm), true, (Direction::Receive, src, mai, comm)) };
    fmpl_irecv_test_(src: In, mai: In, comm: In, done: Out)
        = { tested(done, (Direction::Receive, src, mai, comm), |flag| c::fmpl_irecv_test(src, mai, comm, flag)) };
    fmpl_irecv_cancel_(src: In, mai: In, comm: In, cancelled: Out)
        = { tested(cancelled, (Direction::Receive, src, mai, comm), |flag| c::fmpl_irecv_cancel(src, mai, comm, flag)) };
    fmpl_received_, fmpl_received8_(src: In, mai: In, comm: In, size: Length, index: Out) = fmpl_received;
    fmpl_probe_, fmpl_probe8_(src: In, mai: In, comm: In, there: Out, size: Length) = fmpl_probe;

    // # Modes of sending

    /// As [`c::fmpl_sendbuf_set`]; `buf` may be `FMPL_NULL`.
    fmpl_sendbuf_set_, fmpl_sendbuf_set8_(buf: Buffer, size: Size, timeout_ms: In)
        = { c::fmpl_sendbuf_set(area(buf, size), size, timeout_ms) };

    /// As [`c::fmpl_comm_sendbuf_set`]; `buf` may be `FMPL_NULL`.
    fmpl_comm_sendbuf_set_, fmpl_comm_sendbuf_set8_(comm: In, buf: Buffer, size: Size, timeout_ms: In)
        = { c::fmpl_comm_sendbuf_set(comm, area(buf, size), size, timeout_ms) };
    fmpl_sendbuf_check_(nsend: Out, nspool: Out) = fmpl_sendbuf_check;
}

// # Time, progress

/// As [`c::fmpl_wtime`]: a DOUBLE PRECISION function.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_wtime_() -> f64 {
    c::fmpl_wtime()
}

entries! {
    fmpl_progress_() = fmpl_progress;
    fmpl_event_fd_(fd: Out) = fmpl_event_fd;

    // # Memory that peers can reach

    /// As [`c::fmpl_alloc`]; the address goes to `ptr`, a TYPE(C_PTR) or an INTEGER(8).
    ///
    /// * size: bytes.
    /// * ptr: set to the address, or to null when it fails.
    /// * ier: the return code.
    fmpl_alloc_, fmpl_alloc8_(size: Size, ptr: NewAddress)
        = { hand_out(crate::comm::alloc(size), |memory| ptr.set(memory.cast::<c_void>())) };

    /// As [`c::fmpl_free`].
    ///
    /// * ptr: what `fmpl_alloc` gave.
    /// * ier: the return code.
    fmpl_free_(ptr: Address) = fmpl_free;
}

// # Errors and version

/// What an error code means, in a few words; padded with blanks.
///
/// * code: an error code.
/// * text: set to its meaning.
/// * ier: always `FMPL_SUCCESS`.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_strerror_(code: In, text: *mut c_char, ier: Out, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        fill(text, length, meaning(*code).as_ptr());
        *ier = 0;
    }
}

/// What went wrong in the last call of this thread that failed; padded with blanks, blank when none has.
///
/// * text: set to the text.
/// * ier: always `FMPL_SUCCESS`.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_last_error_(text: *mut c_char, ier: Out, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        fill(text, length, last_error());
        *ier = 0;
    }
}

entries! {
    /// The version of the library that is running: 10000 * major + 100 * minor + patch.
    ///
    /// * version: set to it.
    /// * ier: always `FMPL_SUCCESS`.
    fmpl_version_(version: Out) = {
        version.set(c::FMPL_VERSION);
        0
    };

    // # Ranks from outside

    /// As [`c::fmpl_init_with`]; the exchange is a subroutine (mine, all, bytes, ier) with INTEGER bytes and ier, which it sets to 0 when all went
    /// well. What else it needs is in its module.
    fmpl_init_with_(rank: In, size: In, exchange: Function, count: In) = {
        let address = exchange.map_or(ptr::null_mut(), |f| f as *mut c_void);
        let through: c::fmpl_exchange = if address.is_null() { None } else { Some(in_fortran) };
        c::fmpl_init_with(rank, size, through, address, count)
    };

    /// As [`c::fmpl_id_create`].
    ///
    /// * id: 128 bytes of any type, such as INTEGER(8) id(16); set to the identifier.
    /// * ier: the return code.
    fmpl_id_create_(id: Buffer) = { c::fmpl_id_create(c::Out::at(id.cast())) };

    /// As [`c::fmpl_init_id`].
    fmpl_init_id_(id: Data, rank: In, size: In, count: In) = { c::fmpl_init_id(id.cast(), rank, size, count) };

    // # Shared windows

    fmpl_shared_alloc_, fmpl_shared_alloc8_(size: Size, comm: In, mine: NewAddress) = fmpl_shared_alloc;
    fmpl_shared_query_, fmpl_shared_query8_(mine: Address, rank: In, at: NewAddress, size: Length) = fmpl_shared_query;
    fmpl_shared_free_(mine: Address) = fmpl_shared_free;

    // # Communicators

    fmpl_comm_create_(comm: Out, key: In) = fmpl_comm_create;
    fmpl_comm_split_(comm: In, colour: In, order: In, newcomm: Out) = fmpl_comm_split;
    fmpl_comm_split_node_(comm: In, order: In, newcomm: Out) = fmpl_comm_split_node;
    fmpl_comm_dup_(comm: In, newcomm: Out) = fmpl_comm_dup;
    /// As [`c::fmpl_comm_group_create`]; an array of INTEGER.
    fmpl_comm_group_create_(comm: In, ranks: Array, n: In, newcomm: Out)
        = { c::fmpl_comm_group_create(comm, ranks, n, newcomm) };
    fmpl_comm_free_(comm: Out) = { c::fmpl_comm_free(comm.variable()) };
    fmpl_comm_translate_(from: In, rank: In, to: In, result: Out) = fmpl_comm_translate;
}

/// As [`c::fmpl_comm_set_name`]. Blanks at the end do not count.
///
/// * comm: the communicator.
/// * name: its name.
/// * ier: the return code.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_set_name_(comm: In, name: *const c_char, ier: Out, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables; a CHARACTER of that length.
    unsafe {
        let text = core::slice::from_raw_parts(name.cast::<u8>(), length);
        *ier = match core::str::from_utf8(text) {
            Ok(text) => number(comm::comm_set_name(*comm, text.trim_end_matches(' '))),
            Err(_) => wrong("fmpl_comm_set_name: the name is no UTF-8"),
        };
    }
}

/// As [`c::fmpl_comm_name`]; padded with blanks, blank when it has none.
///
/// * comm: the communicator.
/// * name: set to its name.
/// * ier: the return code.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_name_(comm: In, name: *mut c_char, ier: Out, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables; a CHARACTER of that length. A name has no zero in it.
    unsafe {
        *ier = hand_out(comm::comm_name_within(*comm, length), |text| {
            let text = CString::new(text).unwrap_or_default();
            fill(name, length, text.as_ptr());
        });
    }
}

/// Calls an exchange of Fortran's, whose address is the state.
unsafe extern "C" fn in_fortran(state: *mut c_void, mine: *const c_void, all: *mut c_void, size: usize) -> c_int {
    type Exchange = unsafe extern "C" fn(*const c_void, *mut c_void, *const c_int, *mut c_int);
    let (bytes, mut ier) = (size as c_int, 0);
    // SAFETY: the address of such a subroutine, as the program promises; arguments by their addresses.
    unsafe { core::mem::transmute::<*mut c_void, Exchange>(state)(mine, all, &bytes, &mut ier) };
    ier
}
