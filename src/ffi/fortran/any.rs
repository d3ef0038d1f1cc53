//! The Fortran names of the calls for messages of any source.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::{c_int, c_void};

use super::shapes::LongArray;
use super::{Int, Long, sized};
use crate::base::error::Code;
use crate::ffi::c;
use crate::ffi::outcome::wrong;

/// Stores a length, also that of a message that was cut; it may be too large for the program's INTEGER.
fn keep(name: &str, code: c_int, length: usize, to: &mut Int) -> c_int {
    if code != 0 && code != Code::Truncate as c_int {
        return code;
    }
    match Int::try_from(length) {
        Ok(length) => {
            *to = length;
            code
        }
        Err(_) => wrong(&format!("{name}: {length} bytes are too many for an INTEGER; use INTEGER(8)")),
    }
}

/// The same for an INTEGER(8).
fn keep8(code: c_int, length: usize, to: &mut Long) -> c_int {
    if code == 0 || code == Code::Truncate as c_int {
        *to = length as Long;
    }
    code
}

// # Messages of any source

/// As [`c::fmpl_send_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_any_(
    buf: *const c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_send_any", Long::from(*size), |size| c::fmpl_send_any(buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_send_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_any8_(
    buf: *const c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_send_any", *size, |size| c::fmpl_send_any(buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_recv_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_any_(
    buf: *mut c_void,
    size: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_recv_any", Long::from(*size), |size| c::fmpl_recv_any(buf, size, *mai, *comm));
    }
}

/// As [`c::fmpl_recv_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_any8_(
    buf: *mut c_void,
    size: *const Long,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_recv_any", *size, |size| c::fmpl_recv_any(buf, size, *mai, *comm));
    }
}

/// As [`c::fmpl_isend_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_any_(
    buf: *const c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_isend_any", Long::from(*size), |size| c::fmpl_isend_any(buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_isend_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_any8_(
    buf: *const c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_isend_any", *size, |size| c::fmpl_isend_any(buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_irecv_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_(
    buf: *mut c_void,
    size: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_irecv_any", Long::from(*size), |size| c::fmpl_irecv_any(buf, size, *mai, *comm));
    }
}

/// As [`c::fmpl_irecv_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any8_(
    buf: *mut c_void,
    size: *const Long,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_irecv_any", *size, |size| c::fmpl_irecv_any(buf, size, *mai, *comm));
    }
}

/// As [`c::fmpl_recv_any_from`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_any_from_(
    buf: *mut c_void,
    size: *const Int,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    received: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_recv_any_from", Long::from(*size), |size| {
            let mut length = 0;
            let code = c::fmpl_recv_any_from(buf, size, *mai, *comm, src, &mut length);
            keep("fmpl_recv_any_from", code, length, &mut *received)
        });
    }
}

/// As [`c::fmpl_irecv_any_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_wait_(
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    received: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_irecv_any_wait(*mai, *comm, src, &mut length);
        *ier = keep("fmpl_irecv_any_wait", code, length, &mut *received);
    }
}

/// As [`c::fmpl_irecv_any_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_test_(
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    src: *mut Int,
    received: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_irecv_any_test(*mai, *comm, done, src, &mut length);
        *ier = if *done != 0 { keep("fmpl_irecv_any_test", code, length, &mut *received) } else { code };
    }
}

/// As [`c::fmpl_probe_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_probe_any_(
    mai: *const Int,
    comm: *const Int,
    there: *mut Int,
    src: *mut Int,
    size: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_probe_any(*mai, *comm, there, src, &mut length);
        *ier = keep("fmpl_probe_any", code, length, &mut *size);
    }
}

/// As [`c::fmpl_recv_any_from`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_any_from8_(
    buf: *mut c_void,
    size: *const Long,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    received: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_recv_any_from", *size, |size| {
            let mut length = 0;
            let code = c::fmpl_recv_any_from(buf, size, *mai, *comm, src, &mut length);
            keep8(code, length, &mut *received)
        });
    }
}

/// As [`c::fmpl_irecv_any_wait`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_wait8_(
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    received: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_irecv_any_wait(*mai, *comm, src, &mut length);
        *ier = keep8(code, length, &mut *received);
    }
}

/// As [`c::fmpl_irecv_any_test`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_test8_(
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    src: *mut Int,
    received: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_irecv_any_test(*mai, *comm, done, src, &mut length);
        *ier = if *done != 0 { keep8(code, length, &mut *received) } else { code };
    }
}

/// As [`c::fmpl_probe_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_probe_any8_(
    mai: *const Int,
    comm: *const Int,
    there: *mut Int,
    src: *mut Int,
    size: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_probe_any(*mai, *comm, there, src, &mut length);
        *ier = keep8(code, length, &mut *size);
    }
}

/// As [`c::fmpl_isend_any_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_any_wait_(dst: *const Int, mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_isend_any_wait(*dst, *mai, *comm);
    }
}

/// As [`c::fmpl_isend_any_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isend_any_test_(
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_isend_any_test(*dst, *mai, *comm, done);
    }
}

/// As [`c::fmpl_irecv_any_cancel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_any_cancel_(mai: *const Int, comm: *const Int, cancelled: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_irecv_any_cancel(*mai, *comm, cancelled);
    }
}

/// As [`c::fmpl_recv_any_limit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_any_limit_(most: *const Int, mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_recv_any_limit(*most, *mai, *comm);
    }
}

// # Multicast to a group chosen for each message

/// As [`c::fmpl_mcast`]; the bitmap is an array of INTEGER(8), and there is always a ticket.
///
/// * buf: the message; must stay unchanged until the ticket is complete.
/// * size: bytes.
/// * members: the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
/// * comm: the communicator.
/// * ticket: set to a number by which fmpl_mcast_wait and fmpl_mcast_test know this multicast.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_(
    buf: *const c_void,
    size: *const Int,
    members: *const LongArray,
    comm: *const Int,
    ticket: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast", Long::from(*size), |size| {
            c::fmpl_mcast(buf, size, members.cast(), *comm, ticket.cast())
        });
    }
}

/// As [`c::fmpl_mcast_recv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_recv_(
    buf: *mut c_void,
    capacity: *const Int,
    comm: *const Int,
    size: *mut Int,
    master: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast_recv", Long::from(*capacity), |capacity| {
            let mut length = 0;
            let code = c::fmpl_mcast_recv(buf, capacity, *comm, &mut length, master);
            keep("fmpl_mcast_recv", code, length, &mut *size)
        });
    }
}

/// As [`c::fmpl_mcast_irecv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_(buf: *mut c_void, capacity: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast_irecv", Long::from(*capacity), |capacity| c::fmpl_mcast_irecv(buf, capacity, *comm));
    }
}

/// As [`c::fmpl_mcast_irecv_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_wait_(comm: *const Int, size: *mut Int, master: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_mcast_irecv_wait(*comm, &mut length, master);
        *ier = keep("fmpl_mcast_irecv_wait", code, length, &mut *size);
    }
}

/// As [`c::fmpl_mcast_irecv_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_test_(
    comm: *const Int,
    done: *mut Int,
    size: *mut Int,
    master: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_mcast_irecv_test(*comm, done, &mut length, master);
        *ier = if *done != 0 { keep("fmpl_mcast_irecv_test", code, length, &mut *size) } else { code };
    }
}

/// As [`c::fmpl_mcast`], with INTEGER(8) sizes; the bitmap is an array of INTEGER(8), and there is always a ticket.
///
/// * buf: the message; must stay unchanged until the ticket is complete.
/// * size: bytes.
/// * members: the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
/// * comm: the communicator.
/// * ticket: set to a number by which fmpl_mcast_wait and fmpl_mcast_test know this multicast.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast8_(
    buf: *const c_void,
    size: *const Long,
    members: *const LongArray,
    comm: *const Int,
    ticket: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast", *size, |size| c::fmpl_mcast(buf, size, members.cast(), *comm, ticket.cast()));
    }
}

/// As [`c::fmpl_mcast_recv`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_recv8_(
    buf: *mut c_void,
    capacity: *const Long,
    comm: *const Int,
    size: *mut Long,
    master: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast_recv", *capacity, |capacity| {
            let mut length = 0;
            let code = c::fmpl_mcast_recv(buf, capacity, *comm, &mut length, master);
            keep8(code, length, &mut *size)
        });
    }
}

/// As [`c::fmpl_mcast_irecv`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv8_(buf: *mut c_void, capacity: *const Long, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast_irecv", *capacity, |capacity| c::fmpl_mcast_irecv(buf, capacity, *comm));
    }
}

/// As [`c::fmpl_mcast_irecv_wait`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_wait8_(comm: *const Int, size: *mut Long, master: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_mcast_irecv_wait(*comm, &mut length, master);
        *ier = keep8(code, length, &mut *size);
    }
}

/// As [`c::fmpl_mcast_irecv_test`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_test8_(
    comm: *const Int,
    done: *mut Int,
    size: *mut Long,
    master: *mut Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let mut length = 0;
        let code = c::fmpl_mcast_irecv_test(*comm, done, &mut length, master);
        *ier = if *done != 0 { keep8(code, length, &mut *size) } else { code };
    }
}

/// As [`c::fmpl_mcast_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_wait_(ticket: *const Long, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_mcast_wait(*ticket as u64);
    }
}

/// As [`c::fmpl_mcast_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_test_(ticket: *const Long, done: *mut Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_mcast_test(*ticket as u64, done);
    }
}

/// As [`c::fmpl_mcast_irecv_cancel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_irecv_cancel_(comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_mcast_irecv_cancel(*comm);
    }
}
