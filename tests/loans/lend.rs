//! The C calls of loans. `try_*` give the code, the others want success.

use std::ffi::c_void;

use crate::ranks::calls::{SPOOL_FULL, comm, ok};
use fmpl::ffi::c::*;

/// Memory of a loan: not a slice, since others read it, too.
pub type At = *mut u8;

// SAFETY, for all calls of this file: pointers out are to variables of these functions; what is sent and returned are addresses, which the
// library looks at itself.

pub fn try_loan(size: usize, at: &mut At) -> i32 {
    let mut there = at.cast::<c_void>();
    let code = fmpl_loan(size, (&mut there).into());
    *at = there.cast();
    code
}
#[track_caller]
pub fn loan(size: usize) -> At {
    let mut at = std::ptr::null_mut();
    ok(try_loan(size, &mut at));
    assert!(!at.is_null() && (at as usize).is_multiple_of(64));
    at
}
pub fn try_send_loan(at: At, size: usize, dst: i32, index: i32) -> i32 {
    fmpl_send_loan(at.cast(), size, dst, index, comm())
}
#[track_caller]
pub fn send_loan(at: At, size: usize, dst: i32, index: i32) {
    ok(try_send_loan(at, size, dst, index));
}
/// A loan of these bytes, sent.
#[track_caller]
pub fn send_filled(bytes: &[u8], dst: i32, index: i32) {
    let at = loan(bytes.len());
    // SAFETY: a loan of that length.
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    send_loan(at, bytes.len(), dst, index);
}
pub fn try_recv_loan(src: i32, index: i32) -> (i32, At, usize) {
    let (mut at, mut size) = (std::ptr::null::<c_void>(), usize::MAX);
    let code = fmpl_recv_loan((&mut at).into(), (&mut size).into(), src, index, comm());
    (code, at.cast_mut().cast(), size)
}
#[track_caller]
pub fn recv_loan(src: i32, index: i32) -> (At, usize) {
    let (code, at, size) = try_recv_loan(src, index);
    ok(code);
    (at, size)
}
#[track_caller]
pub fn irecv_loan(src: i32, index: i32) {
    ok(fmpl_irecv_loan(src, index, comm()));
}
pub fn try_irecv_loan_wait(src: i32, index: i32) -> (i32, At, usize) {
    let (mut at, mut size) = (std::ptr::null::<c_void>(), usize::MAX);
    let code = fmpl_irecv_loan_wait((&mut at).into(), (&mut size).into(), src, index, comm());
    (code, at.cast_mut().cast(), size)
}
#[track_caller]
pub fn irecv_loan_wait(src: i32, index: i32) -> (At, usize) {
    let (code, at, size) = try_irecv_loan_wait(src, index);
    ok(code);
    (at, size)
}
#[track_caller]
pub fn irecv_loan_test(src: i32, index: i32) -> Option<(At, usize)> {
    let (mut at, mut size, mut done) = (std::ptr::null::<c_void>(), usize::MAX, -1);
    ok(fmpl_irecv_loan_test((&mut at).into(), (&mut size).into(), src, index, comm(), (&mut done).into()));
    (done == 1).then_some((at.cast_mut().cast(), size))
}
pub fn try_mcast_loan(at: At, size: usize, members: &[i32], index: i32) -> i32 {
    let mut bits = [0u64; 4];
    members.iter().for_each(|r| bits[*r as usize / 64] |= 1 << (r % 64));
    // SAFETY: see above; more words than there are ranks for.
    unsafe { fmpl_mcast_loan(at.cast(), size, bits.as_ptr(), index, comm()) }
}
pub fn try_send_loan_any(at: At, size: usize, dst: i32, index: i32) -> i32 {
    fmpl_send_loan_any(at.cast(), size, dst, index, comm())
}
/// A loan of these bytes, sent to a receiver of any source.
#[track_caller]
pub fn send_filled_any(bytes: &[u8], dst: i32, index: i32) {
    let at = loan(bytes.len());
    // SAFETY: a loan of that length.
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    // In buffered mode it does not wait for a place; refused, the loan is this rank's still.
    ok(patiently(|| try_send_loan_any(at, bytes.len(), dst, index)));
}
/// The code of a call, made until there is room.
pub fn patiently(call: impl Fn() -> i32) -> i32 {
    loop {
        match call() {
            SPOOL_FULL => std::thread::yield_now(),
            code => return code,
        }
    }
}
/// What came, and from whom.
pub fn try_recv_loan_any(index: i32) -> (i32, (At, usize), i32) {
    let (mut at, mut size, mut src) = (std::ptr::null::<c_void>(), usize::MAX, -1);
    let code = fmpl_recv_loan_any((&mut at).into(), (&mut size).into(), index, comm(), (&mut src).into());
    (code, (at.cast_mut().cast(), size), src)
}
#[track_caller]
pub fn recv_loan_any(index: i32) -> ((At, usize), i32) {
    let (code, lent, src) = try_recv_loan_any(index);
    ok(code);
    (lent, src)
}
#[track_caller]
pub fn irecv_loan_any(index: i32) {
    ok(fmpl_irecv_loan_any(index, comm()));
}
#[track_caller]
pub fn irecv_loan_any_wait(index: i32) -> ((At, usize), i32) {
    let (mut at, mut size, mut src) = (std::ptr::null::<c_void>(), usize::MAX, -1);
    ok(fmpl_irecv_loan_any_wait((&mut at).into(), (&mut size).into(), index, comm(), (&mut src).into()));
    ((at.cast_mut().cast(), size), src)
}
#[track_caller]
pub fn irecv_loan_any_test(index: i32) -> Option<((At, usize), i32)> {
    let (mut at, mut size, mut src, mut done) = (std::ptr::null::<c_void>(), usize::MAX, -1, -1);
    ok(fmpl_irecv_loan_any_test(
        (&mut at).into(),
        (&mut size).into(),
        index,
        comm(),
        (&mut done).into(),
        (&mut src).into(),
    ));
    (done == 1).then_some(((at.cast_mut().cast(), size), src))
}
pub fn try_give_back(at: At) -> i32 {
    fmpl_loan_return(at.cast())
}
#[track_caller]
pub fn give_back(at: At) {
    ok(try_give_back(at));
}
/// The bytes of a loan that this rank has.
pub fn bytes<'a>((at, size): (At, usize)) -> &'a [u8] {
    // SAFETY: tests look at it before they return it.
    unsafe { std::slice::from_raw_parts(at, size) }
}
/// Has these bytes, and returns it.
#[track_caller]
pub fn is_filled(lent: (At, usize), wanted: &[u8]) {
    assert!(bytes(lent) == wanted, "{} bytes are not the {} that were sent", lent.1, wanted.len());
    give_back(lent.0);
}
/// Loans handed over, and bytes copied into loans or out of them.
pub fn counts() -> (u64, u64) {
    let count = |which| {
        let mut n = 0;
        ok(fmpl_counter(which, (&mut n).into()));
        n as u64
    };
    (count(FMPL_COUNTER_LOANS), count(FMPL_COUNTER_LOAN_COPIED))
}
