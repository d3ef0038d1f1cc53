//! The Fortran names of ACP's basic layer.
//!
//! ACP has none: these are its C functions with results as arguments, and the return code, an error of FMPL, in the trailing `ier`.
//! Addresses, keys, handles and sizes are INTEGER(8), words of 4 bytes INTEGER.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use core::ffi::{c_char, c_void};

use super::{Int, Long};
use crate::base::error::{Code, Error, Result};
use crate::comm;
use crate::ffi::acp as c;
use crate::ffi::outcome::{hand_out, number, wrong};
use crate::rma::{self, AddressKey, Atomic, Fetch, GlobalAddress, Into, Rma, rma};

fn ga(bits: Long) -> GlobalAddress {
    GlobalAddress::from_bits(bits as u64)
}

fn rank_of(rank: Int) -> u32 {
    u32::try_from(rank).unwrap_or(u32::MAX)
}

/// An operation's handle and how it went. One that was refused has a handle too, after which nothing starts.
struct Issued(Long, Result<()>);

impl Issued {
    fn of(kind: u32, order: Long, issue: impl FnOnce(&'static Rma) -> Result<Long>) -> Issued {
        match rma() {
            Ok(r) => match issue(r) {
                Ok(handle) => Issued(handle, Ok(())),
                Err(error) => Issued(r.refuse(kind, order, &error).0, Err(error)),
            },
            Err(error) => Issued(0, Err(error)),
        }
    }

    /// Hands the handle out, and returns the return code.
    fn hand_out(self, handle: &mut Long) -> Int {
        *handle = self.0;
        number(self.1)
    }
}

fn fetch(dst: Long, src: Long, op: Atomic, wide: bool, value: u64, expected: u64, order: Long) -> Issued {
    let fetch = Fetch { at: ga(src), op, wide, value, expected };
    Issued::of(op as u32, order, |r| r.fetch::<false>(fetch, Into::Address(ga(dst)), order))
}

// # Global memory (ACP): infrastructure

/// As [`c::acp_init`].
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_init_(ier: *mut Int) {
    // SAFETY: Fortran passes the addresses of its variables; so below.
    unsafe { *ier = number(comm::global_open()) }
}

/// As [`c::acp_finalize`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_finalize_(ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = number(comm::global_close()) }
}

/// As [`c::acp_reset`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_reset_(rank: *const Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = number(rma::reset(*rank)) }
}

/// As [`c::acp_abort`].
/// * str: what to say.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort_(str: *const c_char, length: usize) {
    // SAFETY: a CHARACTER of that length.
    let text = unsafe { core::slice::from_raw_parts(str.cast::<u8>(), length) };
    crate::base::error::say(&format!("abort: {}", String::from_utf8_lossy(text).trim_end()));
    comm::abort(1)
}

/// As [`c::acp_sync`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_sync_(ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = number(rma::sync()) }
}

/// As [`c::acp_rank`].
/// * rank: set to the rank.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_rank_(rank: *mut Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = hand_out(rma(), |r| *rank = r.rank() as Int) }
}

/// As [`c::acp_procs`].
/// * procs: set to the number of ranks.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_procs_(procs: *mut Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = hand_out(rma(), |r| *procs = r.size() as Int) }
}

// # Global memory (ACP): registration and addresses

/// As [`c::acp_query_starter_ga`].
/// * rank: the rank.
/// * ga: set to the address.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_starter_ga_(rank: *const Int, ga: *mut Long, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = hand_out(rma().and_then(|r| r.starter(rank_of(*rank))), |a| *ga = a.bits() as Long) }
}

/// As [`c::acp_register_memory`].
/// * addr: the memory.
/// * size: bytes, at least 1.
/// * color: 0 to `acp_colors` - 1.
/// * atkey: set to the key.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_register_memory_(
    addr: *mut c_void,
    size: *const Long,
    color: *const Int,
    atkey: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above; the program keeps the memory until the registration has ended.
    unsafe {
        *ier = match usize::try_from(*size) {
            Ok(size) => hand_out(rma().and_then(|r| r.register(addr.cast(), size, rank_of(*color))), |key| {
                *atkey = key.bits() as Long;
            }),
            Err(_) => wrong("acp_register_memory: the size is negative"),
        };
    }
}

/// As [`c::acp_unregister_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_unregister_memory_(atkey: *const Long, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = number(rma().and_then(|r| r.unregister(AddressKey::from_bits(*atkey as u64)))) }
}

/// As [`c::acp_query_ga`].
/// * atkey: the registration's key.
/// * addr: a variable in the registered memory.
/// * ga: set to its global address.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_ga_(atkey: *const Long, addr: *const c_void, ga: *mut Long, ier: *mut Int) {
    // SAFETY: as above.
    unsafe {
        let found = rma().and_then(|r| r.address_of(AddressKey::from_bits(*atkey as u64), addr.cast()));
        *ier = hand_out(found, |a| *ga = a.bits() as Long);
    }
}

/// As [`c::acp_query_address`].
/// * ga: the global address.
/// * addr: set to the address.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_address_(ga: *const Long, addr: *mut *mut c_void, ier: *mut Int) {
    // SAFETY: as above.
    unsafe {
        let found = rma().and_then(|r| r.local_address(GlobalAddress::from_bits(*ga as u64)));
        *ier = hand_out(found, |a| *addr = a.cast());
    }
}

/// As [`c::acp_query_rank`].
/// * ga: the global address.
/// * rank: set to the rank.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_rank_(ga: *const Long, rank: *mut Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe {
        let found = rma().and_then(|r| r.rank_of(GlobalAddress::from_bits(*ga as u64)));
        *ier = hand_out(found, |n| *rank = n as Int);
    }
}

/// As [`c::acp_query_color`].
/// * ga: the global address.
/// * color: set to the colour.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_query_color_(ga: *const Long, color: *mut Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe {
        let address = GlobalAddress::from_bits(*ga as u64);
        let found = rma().and_then(|r| r.rank_of(address).map(|_| r.split().colour(address)));
        *ier = hand_out(found, |n| *color = n as Int);
    }
}

/// As [`c::acp_colors`].
/// * colors: set to the number of colours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_colors_(colors: *mut Int) {
    // SAFETY: as above.
    unsafe { *colors = c::acp_colors() }
}

// # Global memory (ACP): access

/// As [`c::acp_copy`].
/// * dst: where to.
/// * src: where from.
/// * size: bytes.
/// * order: it starts when this operation and all issued before it are over; `ACP_HANDLE_NULL`: at once.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_copy_(
    dst: *const Long,
    src: *const Long,
    size: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let negative = |_| Error::new(Code::Argument, "acp_copy: the size is negative");
        let copy = |r: &'static Rma| {
            let size = usize::try_from(*size).map_err(negative)?;
            r.copy::<false>(ga(*dst), ga(*src), size, *order)
        };
        *ier = Issued::of(c::COPY, *order, copy).hand_out(&mut *handle);
    }
}

/// As [`c::acp_cas4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * oldval: what must be there.
/// * newval: what replaces it.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_cas4_(
    dst: *const Long,
    src: *const Long,
    oldval: *const Int,
    newval: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let (old, new) = (u64::from(*oldval as u32), u64::from(*newval as u32));
        *ier = fetch(*dst, *src, Atomic::Cas, false, new, old, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_swap4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_swap4_(
    dst: *const Long,
    src: *const Long,
    value: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = u64::from(*value as u32);
        *ier = fetch(*dst, *src, Atomic::Swap, false, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_add4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_add4_(
    dst: *const Long,
    src: *const Long,
    value: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = u64::from(*value as u32);
        *ier = fetch(*dst, *src, Atomic::Add, false, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_xor4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_xor4_(
    dst: *const Long,
    src: *const Long,
    value: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = u64::from(*value as u32);
        *ier = fetch(*dst, *src, Atomic::Xor, false, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_or4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_or4_(
    dst: *const Long,
    src: *const Long,
    value: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = u64::from(*value as u32);
        *ier = fetch(*dst, *src, Atomic::Or, false, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_and4`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
/// * src: the word, of any rank; aligned to 4 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_and4_(
    dst: *const Long,
    src: *const Long,
    value: *const Int,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = u64::from(*value as u32);
        *ier = fetch(*dst, *src, Atomic::And, false, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_cas8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * oldval: what must be there.
/// * newval: what replaces it.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_cas8_(
    dst: *const Long,
    src: *const Long,
    oldval: *const Long,
    newval: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let (old, new) = (*oldval as u64, *newval as u64);
        *ier = fetch(*dst, *src, Atomic::Cas, true, new, old, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_swap8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_swap8_(
    dst: *const Long,
    src: *const Long,
    value: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = *value as u64;
        *ier = fetch(*dst, *src, Atomic::Swap, true, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_add8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_add8_(
    dst: *const Long,
    src: *const Long,
    value: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = *value as u64;
        *ier = fetch(*dst, *src, Atomic::Add, true, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_xor8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_xor8_(
    dst: *const Long,
    src: *const Long,
    value: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = *value as u64;
        *ier = fetch(*dst, *src, Atomic::Xor, true, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_or8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_or8_(
    dst: *const Long,
    src: *const Long,
    value: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = *value as u64;
        *ier = fetch(*dst, *src, Atomic::Or, true, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_and8`].
/// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
/// * src: the word, of any rank; aligned to 8 bytes.
/// * value: the operand.
/// * order: as for `acp_copy`.
/// * handle: set to its handle; when it is refused, to one after which nothing starts.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_and8_(
    dst: *const Long,
    src: *const Long,
    value: *const Long,
    order: *const Long,
    handle: *mut Long,
    ier: *mut Int,
) {
    // SAFETY: as above.
    unsafe {
        let value = *value as u64;
        *ier = fetch(*dst, *src, Atomic::And, true, value, 0, *order).hand_out(&mut *handle);
    }
}

/// As [`c::acp_complete`]; the failure is returned.
/// * handle: the operation; `ACP_HANDLE_ALL`: all.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_complete_(handle: *const Long, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = number(rma().and_then(|r| Ok(r.complete(*handle)?))) }
}

/// As [`c::acp_inquire`]; a failure is returned.
/// * handle: the operation; `ACP_HANDLE_ALL`: all.
/// * flag: set to 1 when something is not over, else to 0.
/// * ier: the return code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_inquire_(handle: *const Long, flag: *mut Int, ier: *mut Int) {
    // SAFETY: as above.
    unsafe { *ier = hand_out(rma().and_then(|r| Ok(r.inquire(*handle)?)), |open| *flag = Int::from(open)) }
}
