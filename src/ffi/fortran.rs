//! Fortran names: subroutines `fmpl_*_` whose arguments are addresses, with the return code in the trailing `ier`.
//!
//! Any compiler reaches them through `include/fmplf.h`; the module of `include/fmpl.f90` adds interfaces. Both files are
//! generated from this one (`tests/interface/fortran.rs`). INTEGER is default INTEGER, 4 bytes; a subroutine with a size exists
//! twice, `fmpl_send_` with INTEGER and `fmpl_send8_` with INTEGER(8), which the module joins under one name. Flags are INTEGER, 0 or 1:
//! what a LOGICAL looks like differs between compilers. A CHARACTER argument has its length as a hidden last argument.
//!
//! Safety is Fortran's: what it passes are addresses of variables of the types that the interface names.

#![allow(clippy::missing_safety_doc)] // the paragraph above holds for each of them

mod acp;
mod any;
mod collective;
mod counters;
mod functions;
mod groups;
mod lists;
mod loans;
mod shapes;

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use super::c;
use super::outcome::{hand_out, last_error, meaning, wrong};
use lists::Direction;

pub use acp::*;
pub use any::*;
pub use collective::*;
pub use counters::*;
pub use functions::*;
pub use groups::*;
pub use loans::*;
pub use shapes::*;

/// Default INTEGER
pub type Int = c_int;
/// INTEGER(8)
pub type Long = i64;

/// `FMPL_NULL` as Fortran passes it, by address: a number that no buffer begins with by accident ("FMPLNULL").
pub const FMPL_NULL: i64 = 0x4c4c_554e_4c50_4d46;

/// Calls `call` with a size, unless it is negative.
#[inline(always)]
fn sized(name: &str, size: Long, call: impl FnOnce(usize) -> c_int) -> c_int {
    if size < 0 { wrong(&format!("{name}: the size is negative")) } else { call(size as usize) }
}

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

/// Stores a length, which may be too large for the program's INTEGER.
fn small(name: &str, code: c_int, size: usize, keep: impl FnOnce(Int)) -> c_int {
    match Int::try_from(size) {
        Ok(size) if code == 0 => {
            keep(size);
            0
        }
        Err(_) if code == 0 => wrong(&format!("{name}: {size} bytes are too many for an INTEGER; use INTEGER(8)")),
        _ => code,
    }
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

// # Life of the job

/// As [`c::fmpl_init`]; `ma` and `fa` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_init_(ma: *mut c_void, fa: *mut c_void, count: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_init(ma, fa, *count);
    }
}

/// As [`c::fmpl_finalize`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_finalize_(ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_finalize() }
    lists::finalized();
}

/// As [`c::fmpl_initialized`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_initialized_(flag: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_initialized(flag);
    }
}

/// As [`c::fmpl_abort`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_abort_(code: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_abort(*code);
    }
}

/// As [`c::fmpl_comm_rank`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_rank_(comm: *const Int, rank: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_rank(*comm, rank);
    }
}

/// As [`c::fmpl_comm_size`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_size_(comm: *const Int, size: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_comm_size(*comm, size);
    }
}

// # Blocking messages

/// As [`c::fmpl_send`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_(
    buf: *const c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_send", Long::from(*size), |size| c::fmpl_send(buf, size, *dst, *mai, *comm)) }
}

/// As [`c::fmpl_send`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send8_(
    buf: *const c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_send", *size, |size| c::fmpl_send(buf, size, *dst, *mai, *comm)) }
}

/// As [`c::fmpl_recv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_(
    buf: *mut c_void,
    size: *const Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_recv", Long::from(*size), |size| c::fmpl_recv(buf, size, *src, *mai, *comm)) }
}

/// As [`c::fmpl_recv`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv8_(
    buf: *mut c_void,
    size: *const Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_recv", *size, |size| c::fmpl_recv(buf, size, *src, *mai, *comm)) }
}

/// As [`c::fmpl_sendrecv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sendrecv_(
    sbuf: *const c_void,
    ssize: *const Int,
    dst: *const Int,
    smai: *const Int,
    rbuf: *mut c_void,
    rsize: *const Int,
    src: *const Int,
    rmai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_sendrecv", Long::from(*ssize), |ssize| {
            sized("fmpl_sendrecv", Long::from(*rsize), |rsize| {
                c::fmpl_sendrecv(sbuf, ssize, *dst, *smai, rbuf, rsize, *src, *rmai, *comm)
            })
        })
    }
}

/// As [`c::fmpl_sendrecv`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sendrecv8_(
    sbuf: *const c_void,
    ssize: *const Long,
    dst: *const Int,
    smai: *const Int,
    rbuf: *mut c_void,
    rsize: *const Long,
    src: *const Int,
    rmai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_sendrecv", *ssize, |ssize| {
            sized("fmpl_sendrecv", *rsize, |rsize| {
                c::fmpl_sendrecv(sbuf, ssize, *dst, *smai, rbuf, rsize, *src, *rmai, *comm)
            })
        })
    }
}

// # Non-blocking messages

/// As [`c::fmpl_isend`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_(
    buf: *const c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_isend", Long::from(*size), |size| c::fmpl_isend(buf, size, *dst, *mai, *comm)) }
}

/// As [`c::fmpl_isend`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend8_(
    buf: *const c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_isend", *size, |size| c::fmpl_isend(buf, size, *dst, *mai, *comm)) }
}

/// As [`c::fmpl_irecv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_(
    buf: *mut c_void,
    size: *const Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_irecv", Long::from(*size), |size| c::fmpl_irecv(buf, size, *src, *mai, *comm)) }
}

/// As [`c::fmpl_irecv`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv8_(
    buf: *mut c_void,
    size: *const Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_irecv", *size, |size| c::fmpl_irecv(buf, size, *src, *mai, *comm)) }
}

/// As [`c::fmpl_isend_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_wait_(dst: *const Int, mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::after(c::fmpl_isend_wait(*dst, *mai, *comm), true, Direction::Send, *dst, *mai, *comm);
    }
}

/// As [`c::fmpl_isend_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_test_(
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_isend_test(*dst, *mai, *comm, done);
        *ier = lists::after(code, code == 0 && *done != 0, Direction::Send, *dst, *mai, *comm);
    }
}

/// As [`c::fmpl_irecv_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_wait_(src: *const Int, mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = lists::after(c::fmpl_irecv_wait(*src, *mai, *comm), true, Direction::Receive, *src, *mai, *comm);
    }
}

/// As [`c::fmpl_irecv_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_test_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_test(*src, *mai, *comm, done);
        *ier = lists::after(code, code == 0 && *done != 0, Direction::Receive, *src, *mai, *comm);
    }
}

/// As [`c::fmpl_irecv_cancel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_cancel_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    cancelled: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_cancel(*src, *mai, *comm, cancelled);
        *ier = lists::after(code, code == 0 && *cancelled != 0, Direction::Receive, *src, *mai, *comm);
    }
}

/// As [`c::fmpl_received`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_received_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    size: *mut Int,
    index: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_received(*src, *mai, *comm, &mut length, index);
        *ier = small("fmpl_received", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_received`], with an INTEGER(8) size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_received8_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    size: *mut Long,
    index: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_received(*src, *mai, *comm, &mut length, index);
        if code == 0 {
            *size = length as Long;
        }
        *ier = code;
    }
}

/// As [`c::fmpl_probe`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_probe_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    there: *mut Int,
    size: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_probe(*src, *mai, *comm, there, &mut length);
        *ier = small("fmpl_probe", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_probe`], with an INTEGER(8) size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_probe8_(
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    there: *mut Int,
    size: *mut Long,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_probe(*src, *mai, *comm, there, &mut length);
        if code == 0 {
            *size = length as Long;
        }
        *ier = code;
    }
}

// # Modes of sending

/// As [`c::fmpl_sendbuf_set`]; `buf` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sendbuf_set_(buf: *mut c_void, size: *const Int, timeout_ms: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier =
            sized("fmpl_sendbuf_set", Long::from(*size), |size| c::fmpl_sendbuf_set(area(buf, size), size, *timeout_ms))
    }
}

/// As [`c::fmpl_sendbuf_set`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sendbuf_set8_(
    buf: *mut c_void,
    size: *const Long,
    timeout_ms: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = sized("fmpl_sendbuf_set", *size, |size| c::fmpl_sendbuf_set(area(buf, size), size, *timeout_ms)) }
}

/// As [`c::fmpl_comm_sendbuf_set`]; `buf` may be `FMPL_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_sendbuf_set_(
    comm: *const Int,
    buf: *mut c_void,
    size: *const Int,
    timeout_ms: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_comm_sendbuf_set", Long::from(*size), |size| {
            c::fmpl_comm_sendbuf_set(*comm, area(buf, size), size, *timeout_ms)
        })
    }
}

/// As [`c::fmpl_comm_sendbuf_set`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_comm_sendbuf_set8_(
    comm: *const Int,
    buf: *mut c_void,
    size: *const Long,
    timeout_ms: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_comm_sendbuf_set", *size, |size| {
            c::fmpl_comm_sendbuf_set(*comm, area(buf, size), size, *timeout_ms)
        })
    }
}

/// As [`c::fmpl_sendbuf_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sendbuf_check_(nsend: *mut Int, nspool: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_sendbuf_check(nsend, nspool);
    }
}

// # Time, progress

/// As [`c::fmpl_wtime`]: a DOUBLE PRECISION function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_wtime_() -> f64 {
    // SAFETY: takes nothing and may be called at any time.
    unsafe { c::fmpl_wtime() }
}

/// As [`c::fmpl_progress`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_progress_(ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_progress();
    }
}

/// As [`c::fmpl_event_fd`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_event_fd_(fd: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_event_fd(fd);
    }
}

// # Memory that peers can reach

/// As [`c::fmpl_alloc`]; the address goes to `ptr`, a TYPE(C_PTR) or an INTEGER(8).
///
/// * size: bytes.
/// * ptr: set to the address, or to null when it fails.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_alloc_(size: *const Int, ptr: *mut *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ptr = ptr::null_mut();
        *ier = sized("fmpl_alloc", Long::from(*size), |size| {
            hand_out(crate::comm::alloc(size), |memory| *ptr = memory.cast())
        })
    }
}

/// As [`c::fmpl_alloc`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_alloc8_(size: *const Long, ptr: *mut *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ptr = ptr::null_mut();
        *ier = sized("fmpl_alloc", *size, |size| hand_out(crate::comm::alloc(size), |memory| *ptr = memory.cast()))
    }
}

/// As [`c::fmpl_free`].
///
/// * ptr: what `fmpl_alloc` gave.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_free_(ptr: *const *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_free(*ptr);
    }
}

// # Errors and version

/// What an error code means, in a few words; padded with blanks.
///
/// * code: an error code.
/// * text: set to its meaning.
/// * ier: always `FMPL_SUCCESS`.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_strerror_(code: *const Int, text: *mut c_char, ier: *mut Int, length: usize) {
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
pub unsafe extern "C" fn fmpl_last_error_(text: *mut c_char, ier: *mut Int, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        fill(text, length, last_error());
        *ier = 0;
    }
}

/// The version of the library that is running: 10000 * major + 100 * minor + patch.
///
/// * version: set to it.
/// * ier: always `FMPL_SUCCESS`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_version_(version: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = 0;
        *version = c::FMPL_VERSION;
    }
}
