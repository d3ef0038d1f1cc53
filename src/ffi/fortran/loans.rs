//! The Fortran names of the calls for messages that are handed over. Addresses are TYPE(C_PTR), or INTEGER(8) without the module.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::c_void;
use core::ptr;

use super::shapes::LongArray;
use super::{Int, Long, sized, small};
use crate::ffi::c;

// # Messages that are handed over

/// As [`c::fmpl_loan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_loan_(size: *const Int, buf: *mut *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *buf = ptr::null_mut();
        *ier = sized("fmpl_loan", Long::from(*size), |size| c::fmpl_loan(size, buf));
    }
}

/// As [`c::fmpl_loan`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_loan8_(size: *const Long, buf: *mut *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *buf = ptr::null_mut();
        *ier = sized("fmpl_loan", *size, |size| c::fmpl_loan(size, buf));
    }
}

/// As [`c::fmpl_send_loan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_loan_(
    buf: *const *mut c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_send_loan", Long::from(*size), |size| c::fmpl_send_loan(*buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_send_loan`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_loan8_(
    buf: *const *mut c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_send_loan", *size, |size| c::fmpl_send_loan(*buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_recv_loan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_loan_(
    buf: *mut *mut c_void,
    size: *mut Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_recv_loan(buf.cast(), &mut length, *src, *mai, *comm);
        *ier = small("fmpl_recv_loan", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_recv_loan`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_loan8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_recv_loan(buf.cast(), &mut length, *src, *mai, *comm);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_irecv_loan`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_(src: *const Int, mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_irecv_loan(*src, *mai, *comm) }
}

/// As [`c::fmpl_irecv_loan_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_wait_(
    buf: *mut *mut c_void,
    size: *mut Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_loan_wait(buf.cast(), &mut length, *src, *mai, *comm);
        *ier = small("fmpl_irecv_loan_wait", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_irecv_loan_wait`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_wait8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_irecv_loan_wait(buf.cast(), &mut length, *src, *mai, *comm);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_irecv_loan_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_test_(
    buf: *mut *mut c_void,
    size: *mut Int,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_loan_test(buf.cast(), &mut length, *src, *mai, *comm, done);
        *ier = small("fmpl_irecv_loan_test", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_irecv_loan_test`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_test8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    src: *const Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_irecv_loan_test(buf.cast(), &mut length, *src, *mai, *comm, done);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_mcast_loan`].
///
/// * buf: the beginning of a loan from `fmpl_loan`.
/// * size: bytes of the message, no more than the loan has.
/// * members: the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
/// * mai: the index.
/// * comm: the communicator.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_loan_(
    buf: *const *mut c_void,
    size: *const Int,
    members: *const LongArray,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let size = Long::from(*size);
        *ier = sized("fmpl_mcast_loan", size, |size| c::fmpl_mcast_loan(*buf, size, members.cast(), *mai, *comm));
    }
}

/// As [`c::fmpl_mcast_loan`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_mcast_loan8_(
    buf: *const *mut c_void,
    size: *const Long,
    members: *const LongArray,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_mcast_loan", *size, |size| c::fmpl_mcast_loan(*buf, size, members.cast(), *mai, *comm));
    }
}

/// As [`c::fmpl_send_loan_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_loan_any_(
    buf: *const *mut c_void,
    size: *const Int,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let size = Long::from(*size);
        *ier = sized("fmpl_send_loan_any", size, |size| c::fmpl_send_loan_any(*buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_send_loan_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_send_loan_any8_(
    buf: *const *mut c_void,
    size: *const Long,
    dst: *const Int,
    mai: *const Int,
    comm: *const Int,
    ier: *mut Int,
) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = sized("fmpl_send_loan_any", *size, |size| c::fmpl_send_loan_any(*buf, size, *dst, *mai, *comm));
    }
}

/// As [`c::fmpl_recv_loan_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_loan_any_(
    buf: *mut *mut c_void,
    size: *mut Int,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_recv_loan_any(buf.cast(), &mut length, *mai, *comm, src);
        *ier = small("fmpl_recv_loan_any", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_recv_loan_any`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_recv_loan_any8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_recv_loan_any(buf.cast(), &mut length, *mai, *comm, src);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_irecv_loan_any`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_any_(mai: *const Int, comm: *const Int, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_irecv_loan_any(*mai, *comm) }
}

/// As [`c::fmpl_irecv_loan_any_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_any_wait_(
    buf: *mut *mut c_void,
    size: *mut Int,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_loan_any_wait(buf.cast(), &mut length, *mai, *comm, src);
        *ier = small("fmpl_irecv_loan_any_wait", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_irecv_loan_any_wait`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_any_wait8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    mai: *const Int,
    comm: *const Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_irecv_loan_any_wait(buf.cast(), &mut length, *mai, *comm, src);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_irecv_loan_any_test`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_any_test_(
    buf: *mut *mut c_void,
    size: *mut Int,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        let code = c::fmpl_irecv_loan_any_test(buf.cast(), &mut length, *mai, *comm, done, src);
        *ier = small("fmpl_irecv_loan_any_test", code, length, |length| *size = length);
    }
}

/// As [`c::fmpl_irecv_loan_any_test`], with INTEGER(8) sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_irecv_loan_any_test8_(
    buf: *mut *mut c_void,
    size: *mut Long,
    mai: *const Int,
    comm: *const Int,
    done: *mut Int,
    src: *mut Int,
    ier: *mut Int,
) {
    let mut length = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_irecv_loan_any_test(buf.cast(), &mut length, *mai, *comm, done, src);
        if *ier == 0 {
            *size = length as Long;
        }
    }
}

/// As [`c::fmpl_loan_return`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_loan_return_(buf: *const *mut c_void, ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe { *ier = c::fmpl_loan_return(*buf) }
}
