//! Blocks and lists as Fortran gives them: a block as three numbers, a list as two arrays of displacements and lengths.
//!
//! The core wants descriptors (`struct iovec`) that live as long as the request. For a blocking call they are made on the spot;
//! for a non-blocking one they are kept here, under (direction, peer, index, communicator), until the wait, test or cancel that
//! completes it. Programs without lists pay one load of a counter in those calls.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::error::Code;
use crate::comm;
use crate::ffi::c::{fmpl_block, iovec};
use crate::ffi::outcome::{Out, wrong};

/// Which of the two requests of a (peer, index).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    /// `isend`
    Send,
    /// `irecv`
    Receive,
}

/// Direction, peer, index, communicator.
type Key = (Direction, c_int, c_int, c_int);

struct Pieces(#[expect(dead_code, reason = "kept alive, not read")] Box<[iovec]>);

// SAFETY: the descriptors are numbers here; nothing is reached through them.
unsafe impl Send for Pieces {}

static KEPT: Mutex<BTreeMap<Key, Pieces>> = Mutex::new(BTreeMap::new());
/// Entries of `KEPT`. Relaxed: who completes a request has begun it, or was told of it by who did.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn kept() -> MutexGuard<'static, BTreeMap<Key, Pieces>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `call` with a block, unless a number is negative that must not be.
#[inline(always)]
pub(super) fn shape(name: &str, run: i64, count: i64, stride: i64, call: impl FnOnce(fmpl_block) -> c_int) -> c_int {
    if run < 0 || count < 0 {
        return wrong(&format!("{name}: run or count is negative"));
    }
    call(fmpl_block { run: run as usize, count: count as usize, stride: stride as isize })
}

/// The descriptors of a list, or the number of the error.
///
/// # Safety
/// `displ` and `lens` must have `n` elements.
unsafe fn pieces(
    name: &str,
    base: *const c_void,
    displ: *const i64,
    lens: *const i64,
    n: c_int,
) -> Result<Box<[iovec]>, c_int> {
    if n < 0 {
        return Err(wrong(&format!("{name}: the number of pieces is negative")));
    }
    (0..n as usize)
        .map(|at| {
            // SAFETY: `at` is below `n`.
            let (displ, len) = unsafe { (*displ.add(at), *lens.add(at)) };
            if len < 0 {
                return Err(wrong(&format!("{name}: the length of piece {} is negative", at + 1)));
            }
            Ok(iovec { iov_base: base.cast_mut().wrapping_byte_offset(displ as isize), iov_len: len as usize })
        })
        .collect()
}

/// A blocking call with a list.
///
/// # Safety
/// `displ` and `lens` must have `n` elements.
pub(super) unsafe fn blocking(
    name: &str,
    base: *const c_void,
    displ: *const i64,
    lens: *const i64,
    n: c_int,
    call: impl FnOnce(*const iovec, c_int) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { pieces(name, base, displ, lens, n) } {
        Ok(pieces) => call(pieces.as_ptr(), n),
        Err(code) => code,
    }
}

/// A call that begins a request with a list.
///
/// # Safety
/// `displ` and `lens` must have `n` elements.
pub(super) unsafe fn pending(
    name: &str,
    base: *const c_void,
    displ: *const i64,
    lens: *const i64,
    n: c_int,
    key: Key,
    call: impl FnOnce(*const iovec, c_int) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let pieces = match unsafe { pieces(name, base, displ, lens, n) } {
        Ok(pieces) => pieces,
        Err(code) => return code,
    };
    let code = call(pieces.as_ptr(), n);
    if code == 0 {
        // What stood there belonged to a request that has ended, or this one would have been refused as busy.
        let mut kept = kept();
        kept.insert(key, Pieces(pieces));
        COUNT.store(kept.len(), Ordering::Relaxed);
    }
    code
}

/// Passes the result of a wait, test or cancel on, and forgets the list of a request that it has ended, by its flag.
#[inline(always)]
pub(super) fn ended(code: c_int, flag: bool, key: Key) -> c_int {
    if COUNT.load(Ordering::Relaxed) != 0 && (code == Code::Truncate as c_int || (code == 0 && flag)) {
        forget(key);
    }
    code
}

/// The same for a test, which says whether the request has ended.
#[inline(always)]
pub(super) fn tested(done: Out<c_int>, key: Key, test: impl FnOnce(Out<c_int>) -> c_int) -> c_int {
    let mut flag = 0;
    let code = test((&mut flag).into());
    if code == 0 {
        done.set(flag);
    }
    ended(code, flag != 0, key)
}

#[cold]
fn forget(key: Key) {
    let mut kept = kept();
    kept.remove(&key);
    COUNT.store(kept.len(), Ordering::Relaxed);
}

/// After a finalize: once it was the last, no request is left.
pub(super) fn finalized() {
    if COUNT.load(Ordering::Relaxed) != 0 && !comm::initialized() {
        let mut kept = kept();
        kept.clear();
        COUNT.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_live_from_the_post_to_its_completion() {
        let (displ, lens) = ([8i64, -16], [4i64, 0]);
        let mut seen = Vec::new();
        let key = (Direction::Receive, 3, 70_000, 0);
        let base = core::ptr::without_provenance::<c_void>(4096);
        // SAFETY: two elements each.
        let code = unsafe {
            pending("test", base, displ.as_ptr(), lens.as_ptr(), 2, key, |iov, n| {
                for at in 0..n as usize {
                    let piece = *iov.add(at);
                    seen.push((piece.iov_base as usize, piece.iov_len));
                }
                0
            })
        };
        assert_eq!((code, seen), (0, vec![(4104, 4), (4080, 0)]));
        assert!(kept().contains_key(&key));
        ended(0, false, key);
        assert!(kept().contains_key(&key), "a test that was too early ends nothing");
        ended(Code::Truncate as c_int, false, key);
        assert!(!kept().contains_key(&key));
    }

    #[test]
    fn negative_numbers_are_refused_before_the_core_is_called() {
        let wrong = Code::Argument as c_int;
        assert_eq!(shape("test", -1, 1, 1, |_| unreachable!()), wrong);
        assert_eq!(shape("test", 1, -1, 1, |_| unreachable!()), wrong);
        let (displ, lens) = ([0i64], [-1i64]);
        // SAFETY: one element each; none is read for a negative number.
        unsafe {
            let base = core::ptr::null();
            assert_eq!(blocking("test", base, displ.as_ptr(), lens.as_ptr(), 1, |_, _| unreachable!()), wrong);
            assert_eq!(blocking("test", base, displ.as_ptr(), lens.as_ptr(), -1, |_, _| unreachable!()), wrong);
        }
    }
}
