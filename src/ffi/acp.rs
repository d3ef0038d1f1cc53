//! The C interface of ACP's basic layer: `include/acp.h`.
//!
//! The header is generated from this file like `include/fmpl.h` from `c.rs`, and the same marks stand in the comments. Names, types and
//! meanings are ACP's, so that programs written for it compile as they are; what is not ACP's says so. ACP's functions return -1, a
//! null or nothing when something is wrong: `acp_errno` and `acp_last_error` tell what. Long because each function stands with what
//! the header says of it.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too
#![allow(non_camel_case_types)] // C's names

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};

use super::outcome::{fail, last_error};
use crate::base::error::{Code, Error, Result, say};
use crate::base::log::report;
use crate::base::unused::Unused;
use crate::comm;
use crate::rma::{self, AddressKey, Atomic, Failure, Fetch, GlobalAddress, Into, Rma, rma};

/// A global address: a number that names a byte of some rank's registered memory. Add bytes to it; read it by `acp_query_rank`,
/// `acp_query_color`, `acp_query_address`.
pub type acp_ga_t = u64;
/// Names a registration of this rank.
pub type acp_atkey_t = u64;
/// Names an operation of this rank.
pub type acp_handle_t = i64;

// # Constants

/// No address.
pub const ACP_GA_NULL: u64 = 0;
/// No registration.
pub const ACP_ATKEY_NULL: u64 = 0;
/// As an order: after everything issued so far. In `acp_complete` and `acp_inquire`: all operations.
pub const ACP_HANDLE_ALL: u64 = rma::ALL as u64;
/// As an order: right after the operation issued last, and so after everything before it.
pub const ACP_HANDLE_CONT: u64 = rma::CONT as u64;
/// As an order: at once. As a result: there is no global memory, since `acp_init` was not called.
pub const ACP_HANDLE_NULL: u64 = 0;
/// A bit of the handle of an operation that was refused (not ACP's): nothing has been done, and nothing that is ordered after it will be.
pub const ACP_HANDLE_REFUSED: u64 = rma::REFUSED as u64;

/// The kind of a copy; those of the others are their numbers.
pub(super) const COPY: u32 = 0;

thread_local! {
    static ERRNO: Cell<c_int> = const { Cell::new(0) };
}

/// Keeps what went wrong, and returns -1.
#[cold]
fn failed(error: Error) -> c_int {
    keep(fail(error));
    -1
}

/// Keeps the number of an error for `acp_errno`, and returns it.
#[cold]
pub(super) fn keep(code: c_int) -> c_int {
    // A thread that is ending has no place for it any more.
    let _ = ERRNO.try_with(|e| e.set(code));
    code
}

#[inline(always)]
fn outcome(result: Result<()>) -> c_int {
    result.map_or_else(failed, |()| 0)
}

/// The value, or null.
#[inline(always)]
fn or_null<T: Default>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| {
        failed(error);
        T::default()
    })
}

#[inline(always)]
fn ga(bits: acp_ga_t) -> GlobalAddress {
    GlobalAddress::from_bits(bits)
}

#[inline(always)]
fn fetch(dst: acp_ga_t, src: acp_ga_t, op: Atomic, wide: bool, value: u64, expected: u64, order: i64) -> acp_handle_t {
    let fetch = Fetch { at: ga(src), op, wide, value, expected };
    issued(op as u32, order, |r| r.fetch::<false>(fetch, Into::Address(ga(dst)), order))
}

/// The handle of an operation, which may have been refused. Kinds are those of [`Rma::refuse`].
#[inline(always)]
fn issued(kind: u32, order: i64, issue: impl FnOnce(&'static Rma) -> Result<i64>) -> acp_handle_t {
    match rma() {
        Ok(r) => issue(r).unwrap_or_else(|error| refused(r, kind, order, error)),
        Err(error) => {
            failed(error);
            ACP_HANDLE_NULL as acp_handle_t
        }
    }
}

/// Most programs never look whether an operation was refused: they are told.
#[cold]
fn refused(r: &Rma, kind: u32, order: i64, error: Error) -> acp_handle_t {
    let (handle, news) = r.refuse(kind, order, &error);
    if news {
        report(&format!(
            "{}: refused, and so is what is ordered after it (said once for each kind of operation; others are counted)",
            error.detail()
        ));
    }
    failed(error);
    handle
}

// # Infrastructure

/// Joins the job and makes this rank's global memory; returns when all ranks have theirs. Counted: a further init succeeds. A program
/// that also uses messages calls `fmpl_init` as well, before or after. After the last finalize init begins anew, as `fmpl_init` does.
///
/// * argc: the address of main's argc; left as it is, may be NULL.
/// * argv: the address of main's argv; left as it is, may be NULL.
///
/// Returns: 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    let _ = (argc, argv);
    outcome(comm::global_open())
}

/// Completes this rank's operations, waits for all ranks, and leaves. All registrations end. With several inits the last finalize
/// does it.
///
/// Returns: 0, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_finalize() -> c_int {
    // SAFETY: the interface's demand, as for fmpl_finalize.
    outcome(comm::global_close(unsafe { Unused::promised() }))
}

/// Begins anew with another rank; collective. All registrations end, starter memory is zero. (The ranks of `fmpl_comm_rank` stay.)
///
/// * rank: this rank's new number, another one for each rank, from 0 to `acp_procs()` - 1.
///
/// Returns: 0, or -1; when the numbers are not each once, at all ranks, which then keep those that they have.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reset(rank: c_int) -> c_int {
    outcome(rma::reset(rank))
}

/// Ends the whole job, every rank of it, with a message. Does not return.
///
/// * str: what to say; may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort(str: *const c_char) {
    let said = if str.is_null() {
        String::new()
    } else {
        // SAFETY: not null, so the caller's text, which ends with a NUL.
        unsafe { CStr::from_ptr(str) }.to_string_lossy().into_owned()
    };
    // SAFETY: the text ends with a NUL and stays until this thread's next failing call.
    let why = unsafe { CStr::from_ptr(last_error()) }.to_string_lossy().into_owned();
    let rank = rma().map_or_else(|_| "a process".to_owned(), |r| format!("rank {}", r.rank()));
    say(&format!("{rank} aborts the job: {said}{}{why}", if said.is_empty() || why.is_empty() { "" } else { ": " }));
    comm::abort(1)
}

/// Waits until all ranks have called it. Operations need not be over.
///
/// Returns: 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_sync() -> c_int {
    outcome(rma::sync())
}

/// This process's rank.
///
/// Returns: 0 to `acp_procs()` - 1, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_rank() -> c_int {
    rma().map_or_else(failed, |r| r.rank() as c_int)
}

/// The number of ranks.
///
/// Returns: 1 or more, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_procs() -> c_int {
    rma().map_or_else(failed, |r| r.size() as c_int)
}

/// What went wrong last in a call of this thread (not ACP's).
///
/// Returns: 0, or the number of an error of fmpl.h, FMPL_ERR_*; it is 0 again after this call.
#[unsafe(no_mangle)]
pub extern "C" fn acp_errno() -> c_int {
    ERRNO.try_with(|e| e.replace(0)).unwrap_or(0)
}

/// The text of what went wrong last in a call of this thread (not ACP's).
///
/// Returns: the text, which names ranks, addresses and the cause, until the thread's next failing call; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn acp_last_error() -> *const c_char {
    last_error()
}

// # Global memory management

/// The address of a rank's starter memory, which is registered from init on: what ranks tell each other other addresses by. It is
/// `FMPL_RMA_STARTER` bytes long, 10 KiB without it, and zero at first.
///
/// * rank: the rank.
///
/// Returns: the address, or `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_starter_ga(rank: c_int) -> acp_ga_t {
    or_null(rma().and_then(|r| r.starter(u32::try_from(rank).unwrap_or(u32::MAX)).map(|ga| ga.bits())))
}

/// Registers memory: from then on all ranks reach it by its global addresses. Memory of `fmpl_alloc` is reached fastest. A rank can
/// have 255 registrations at a time (`FMPL_RMA_KEYS`), each of at most 16 GiB.
///
/// * addr: the memory.
/// * size: bytes, at least 1.
/// * color: 0 to `acp_colors()` - 1; a part of its addresses that makes no difference here.
///
/// Returns: the key, or `ACP_ATKEY_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_register_memory(addr: *mut c_void, size: usize, color: c_int) -> acp_atkey_t {
    let colour = u32::try_from(color).unwrap_or(u32::MAX);
    // SAFETY: the caller keeps the memory until the registration has ended.
    or_null(rma().and_then(|r| unsafe { r.register(addr.cast(), size, colour) }.map(|key| key.bits())))
}

/// Ends a registration. Returns when no operation of any rank uses the memory any more; later ones on its addresses fail, until the key
/// is given out again for other memory.
///
/// * atkey: the key.
///
/// Returns: 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_unregister_memory(atkey: acp_atkey_t) -> c_int {
    outcome(rma().and_then(|r| r.unregister(AddressKey::from_bits(atkey))))
}

/// The global address of an address within a registration.
///
/// * atkey: the registration's key.
/// * addr: the address.
///
/// Returns: the global address, or `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_ga(atkey: acp_atkey_t, addr: *mut c_void) -> acp_ga_t {
    or_null(rma().and_then(|r| r.address_of(AddressKey::from_bits(atkey), addr.cast())).map(|ga| ga.bits()))
}

/// The address in this process of a global address of this rank.
///
/// * ga: the global address.
///
/// Returns: the address, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_address(ga: acp_ga_t) -> *mut c_void {
    let found = rma().and_then(|r| r.local_address(GlobalAddress::from_bits(ga)));
    found.map_or_else(
        |error| {
            failed(error);
            core::ptr::null_mut()
        },
        |at| at.cast(),
    )
}

/// The rank whose memory a global address names.
///
/// * ga: the global address.
///
/// Returns: the rank, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_rank(ga: acp_ga_t) -> c_int {
    rma().and_then(|r| r.rank_of(GlobalAddress::from_bits(ga))).map_or_else(failed, |rank| rank as c_int)
}

/// The colour of a global address.
///
/// * ga: the global address.
///
/// Returns: the colour, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_query_color(ga: acp_ga_t) -> c_int {
    let of = |ga| rma().and_then(|r| r.rank_of(ga).map(|_| r.split().colour(ga)));
    of(GlobalAddress::from_bits(ga)).map_or_else(failed, |colour| colour as c_int)
}

/// How many colours there are.
///
/// Returns: the number.
#[unsafe(no_mangle)]
pub extern "C" fn acp_colors() -> c_int {
    1 << rma::address::COLOUR_BITS
}

// # Global memory access

/// Copies between any two global addresses, of whatever ranks.
///
/// * dst: where to.
/// * src: where from.
/// * size: bytes.
/// * order: it starts when this operation and all issued before it are over; `ACP_HANDLE_NULL`: at once.
///
/// Returns: its handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_copy(dst: acp_ga_t, src: acp_ga_t, size: usize, order: acp_handle_t) -> acp_handle_t {
    issued(COPY, order, |r| r.copy::<false>(ga(dst), ga(src), size, order))
}

/// Replaces a word of 4 bytes if it has the old value.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * oldval: what must be there.
/// * newval: what replaces it.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_cas4(
    dst: acp_ga_t,
    src: acp_ga_t,
    oldval: u32,
    newval: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    fetch(dst, src, Atomic::Cas, false, u64::from(newval), u64::from(oldval), order)
}

/// Replaces a word of 4 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap4(dst: acp_ga_t, src: acp_ga_t, value: u32, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Swap, false, u64::from(value), 0, order)
}

/// Adds to a word of 4 bytes, wrapping.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_add4(dst: acp_ga_t, src: acp_ga_t, value: u32, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Add, false, u64::from(value), 0, order)
}

/// Exclusive or on a word of 4 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_xor4(dst: acp_ga_t, src: acp_ga_t, value: u32, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Xor, false, u64::from(value), 0, order)
}

/// Or on a word of 4 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_or4(dst: acp_ga_t, src: acp_ga_t, value: u32, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Or, false, u64::from(value), 0, order)
}

/// And on a word of 4 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_and4(dst: acp_ga_t, src: acp_ga_t, value: u32, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::And, false, u64::from(value), 0, order)
}

/// Replaces a word of 8 bytes if it has the old value.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * oldval: what must be there.
/// * newval: what replaces it.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_cas8(
    dst: acp_ga_t,
    src: acp_ga_t,
    oldval: u64,
    newval: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    fetch(dst, src, Atomic::Cas, true, newval, oldval, order)
}

/// Replaces a word of 8 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap8(dst: acp_ga_t, src: acp_ga_t, value: u64, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Swap, true, value, 0, order)
}

/// Adds to a word of 8 bytes, wrapping.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_add8(dst: acp_ga_t, src: acp_ga_t, value: u64, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Add, true, value, 0, order)
}

/// Exclusive or on a word of 8 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_xor8(dst: acp_ga_t, src: acp_ga_t, value: u64, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Xor, true, value, 0, order)
}

/// Or on a word of 8 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_or8(dst: acp_ga_t, src: acp_ga_t, value: u64, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::Or, true, value, 0, order)
}

/// And on a word of 8 bytes.
///
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
///
/// Returns: the operation's handle; with the bit `ACP_HANDLE_REFUSED` when it was refused.
#[unsafe(no_mangle)]
pub extern "C" fn acp_and8(dst: acp_ga_t, src: acp_ga_t, value: u64, order: acp_handle_t) -> acp_handle_t {
    fetch(dst, src, Atomic::And, true, value, 0, order)
}

/// Waits until an operation and all issued before it are over. A failure among them, of which nobody has been told, is said on standard
/// error and kept for `acp_errno`; of one that was refused it is only kept. From then on operations may be ordered after later ones again.
///
/// * handle: the operation; `ACP_HANDLE_ALL`: all. Of one that is over, or was never issued, it returns at once.
#[unsafe(no_mangle)]
pub extern "C" fn acp_complete(handle: acp_handle_t) {
    if let Err(failure) = rma().map_err(Failure::from).and_then(|r| r.complete(handle)) {
        told(failure);
    }
}

/// Looks whether an operation, or one issued before it, is not over. Failures as for `acp_complete`.
///
/// * handle: the operation; `ACP_HANDLE_ALL`: all.
///
/// Returns: 1 when something is not over, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_inquire(handle: acp_handle_t) -> c_int {
    match rma().map_err(Failure::from).and_then(|r| r.inquire(handle)) {
        Ok(open) => c_int::from(open),
        Err(failure) => {
            told(failure);
            0
        }
    }
}

/// What cannot be returned is said; what was refused was said, or counted, then.
#[cold]
fn told(failure: Failure) {
    if failure.error.code() != Code::Init && !failure.refused {
        report(&failure.error.to_string());
    }
    failed(failure.error);
}
