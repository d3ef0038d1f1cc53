//! Requests of all kinds, completed several at a time.

use core::ffi::c_int;

use super::fmpl_request;
use crate::comm::requests::{self, Request};
use crate::ffi::outcome::{Out, fail, number, wrong};

/// The requests of a call, if there are some; else the call is wrong, as `text` says.
///
/// # Safety
/// So many at `at`, which are this call's own.
unsafe fn several<'a>(at: *mut fmpl_request, n: c_int, text: &str) -> Result<&'a mut [Request], c_int> {
    match usize::try_from(n) {
        Ok(0) => Ok(&mut []),
        // SAFETY: so many, as the caller promises, which are its own until the call is over.
        Ok(n) if !at.is_null() => Ok(unsafe { core::slice::from_raw_parts_mut(at, n) }),
        _ => Err(wrong(text)),
    }
}

/// An array of the caller's with as many numbers as requests, or none.
///
/// # Safety
/// So many at `at`, or null.
unsafe fn numbers(at: *mut c_int) -> impl FnMut(usize, c_int) {
    move |k, value| {
        if !at.is_null() {
            // SAFETY: as many as requests, as the caller promises.
            unsafe { *at.add(k) = value };
        }
    }
}

fn code(ended: &crate::Result<()>) -> c_int {
    ended.as_ref().map_or_else(|error| error.code() as c_int, |()| 0)
}

// # Several requests at a time

/// Waits until all of several requests are over, whatever becomes of each. Of a request that is over `kind` is `FMPL_REQUEST_NONE`;
/// of a receive, `peer`, `index` and `ticket` are the message's source, index and bytes.
///
/// * requests: which; those of kind `FMPL_REQUEST_NONE` are over.
/// * n: their number.
/// * codes: set to what the call that completes each alone would return, but for those that are over already; may be NULL.
///
/// Returns: the code of the first that failed, which after `FMPL_ERR_BUSY` (another thread completes it) is not over;
/// `FMPL_ERR_ARGUMENT` for a negative number, no requests, or a kind that there is not.
///
/// Source: `MPI_Waitall`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_waitall(requests: *mut fmpl_request, n: c_int, codes: *mut c_int) -> c_int {
    // SAFETY: as described.
    let (all, mut note) =
        unsafe { (several(requests, n, "fmpl_waitall: n is negative, or requests is NULL"), numbers(codes)) };
    all.map_or_else(|code| code, |all| number(requests::wait_all(all, |at, ended| note(at, code(ended)))))
}

/// Completes those of several requests that need no waiting, and says whether that leaves none.
///
/// * requests: as for `fmpl_waitall`.
/// * n: their number.
/// * done: set to 1 when all are over, else to 0.
/// * codes: set for those that this call has completed, as by `fmpl_waitall`; may be NULL.
///
/// Returns: as `fmpl_waitall`; `FMPL_ERR_ARGUMENT` for a NULL pointer.
///
/// Source: `MPI_Testall`, which completes none unless all are done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_testall(
    requests: *mut fmpl_request,
    n: c_int,
    done: Out<c_int>,
    codes: *mut c_int,
) -> c_int {
    if done.is_null() {
        return wrong("fmpl_testall: done is NULL");
    }
    done.set(false);
    // SAFETY: as described.
    let (all, mut note) =
        unsafe { (several(requests, n, "fmpl_testall: n is negative, or requests is NULL"), numbers(codes)) };
    match all {
        Ok(all) => {
            let result = requests::test_all(all, |at, ended| note(at, code(ended)));
            done.set(all.iter().all(|request| request.kind == 0));
            number(result)
        }
        Err(code) => code,
    }
}

/// Waits until one of several requests is over, whichever.
///
/// * requests: as for `fmpl_waitall`.
/// * n: their number.
/// * which: set to the place of the one that is over, from 0 on; to -1 when all are over already, or none is: after
///   `FMPL_ERR_BUSY`, and `FMPL_ERR_DEADLOCK` of several requests.
///
/// Returns: what the call that completes it alone would return; `FMPL_ERR_ARGUMENT` as for `fmpl_waitall`, and for a NULL pointer.
///
/// Source: `MPI_Waitany`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_waitany(requests: *mut fmpl_request, n: c_int, which: Out<c_int>) -> c_int {
    if which.is_null() {
        return wrong("fmpl_waitany: which is NULL");
    }
    which.set(-1);
    // SAFETY: as described.
    let all = unsafe { several(requests, n, "fmpl_waitany: n is negative, or requests is NULL") };
    match all.map(requests::wait_any) {
        Ok(Ok(None)) => 0,
        Ok(Ok(Some((at, ended)))) => {
            which.set(at as c_int);
            number(ended)
        }
        Ok(Err(error)) => fail(error),
        Err(code) => code,
    }
}

/// Waits until one of several requests is over, and completes all that are over then.
///
/// * requests: as for `fmpl_waitall`.
/// * n: their number.
/// * count: set to how many this call has completed; 0: all were over already.
/// * which: set to their places, from 0 on; room for n.
/// * codes: set to the code of each of these, in the same order; may be NULL.
///
/// Returns: the code of the first that failed; `FMPL_ERR_ARGUMENT` as for `fmpl_waitall`, and for a NULL pointer.
///
/// Source: `MPI_Waitsome`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_waitsome(
    requests: *mut fmpl_request,
    n: c_int,
    count: Out<c_int>,
    which: *mut c_int,
    codes: *mut c_int,
) -> c_int {
    if count.is_null() || which.is_null() {
        return wrong("fmpl_waitsome: count or which is NULL");
    }
    count.set(0);
    // SAFETY: as described.
    let (all, mut place, mut note) = unsafe {
        let all = several(requests, n, "fmpl_waitsome: n is negative, or requests is NULL");
        (all, numbers(which), numbers(codes))
    };
    match all {
        Ok(all) => {
            let mut ended = 0;
            let result = requests::wait_some(all, |at, outcome| {
                place(ended, at as c_int);
                note(ended, code(outcome));
                ended += 1;
            });
            count.set(ended as c_int);
            number(result)
        }
        Err(code) => code,
    }
}
