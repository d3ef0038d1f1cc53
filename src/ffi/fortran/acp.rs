//! The Fortran names of ACP's basic layer.
//!
//! ACP has none: these are its C functions with results as arguments, and the return code, an error of FMPL, in the trailing `ier`.
//! Addresses, keys, handles and sizes are INTEGER(8), words of 4 bytes INTEGER.

use core::ffi::{c_char, c_void};

use super::entry::{Buffer, Data, In, In8, Int, Lent, Long, Out, Out8, entries};
use crate::base::error::{Code, Error, Result, say};
use crate::base::unused::Unused;
use crate::comm;
use crate::ffi::acp as c;
use crate::ffi::outcome::{self, Out as Variable, last_error, wrong};
use crate::rma::{self, AddressKey, Atomic, Fetch, GlobalAddress, Into, Rma, rma};

/// The return code, which `acp_errno` has too when it is an error.
fn noted(code: Int) -> Int {
    if code == 0 { 0 } else { c::keep(code) }
}

fn number(result: Result<()>) -> Int {
    noted(outcome::number(result))
}

fn hand_out<T>(result: Result<T>, keep: impl FnOnce(T)) -> Int {
    noted(outcome::hand_out(result, keep))
}

fn ga(bits: Long) -> GlobalAddress {
    GlobalAddress::from_bits(bits as u64)
}

fn key(bits: Long) -> AddressKey {
    AddressKey::from_bits(bits as u64)
}

fn rank_of(rank: Int) -> u32 {
    u32::try_from(rank).unwrap_or(u32::MAX)
}

/// Issues an operation and hands its handle out. One that was refused has a handle too, after which nothing starts.
fn issued(handle: Variable<u64>, kind: u32, order: Long, issue: impl FnOnce(&'static Rma) -> Result<Long>) -> Int {
    handle.set(0u64);
    let issued = rma().and_then(|r| issue(r).inspect_err(|error| handle.set(r.refuse(kind, order, error).0 as u64)));
    hand_out(issued, |issued| handle.set(issued as u64))
}

/// The operands of an atomic operation: the value, and what must be there.
trait Operands {
    const WIDE: bool;
    fn bits(self) -> (u64, u64);
}

impl Operands for (Int, Int) {
    const WIDE: bool = false;

    fn bits(self) -> (u64, u64) {
        (u64::from(self.0 as u32), u64::from(self.1 as u32))
    }
}

impl Operands for (Long, Long) {
    const WIDE: bool = true;

    fn bits(self) -> (u64, u64) {
        (self.0 as u64, self.1 as u64)
    }
}

fn fetch<T: Operands>(handle: Variable<u64>, op: Atomic, dst: Long, src: Long, operands: T, order: Long) -> Int {
    let (value, expected) = operands.bits();
    let fetch = Fetch { at: ga(src), op, wide: T::WIDE, value, expected };
    issued(handle, op as u32, order, |r| r.fetch::<false>(fetch, Into::Address(ga(dst)), order))
}

entries! {
    // # Global memory (ACP): infrastructure

    /// As [`c::acp_init`].
    /// * ier: the return code.
    acp_init_() = { number(comm::global_open()) };
    acp_finalize_() = { number(comm::global_close(Unused::promised())) };
    acp_reset_(rank: In) = { number(rma::reset(rank)) };
}

/// As [`c::acp_abort`].
/// * str: what to say.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort_(str: *const c_char, length: usize) {
    // SAFETY: a CHARACTER of that length.
    let text = unsafe { core::slice::from_raw_parts(str.cast::<u8>(), length) };
    say(&format!("abort: {}", String::from_utf8_lossy(text).trim_end()));
    comm::abort(1)
}

entries! {
    acp_sync_() = { number(rma::sync()) };

    /// As [`c::acp_rank`].
    /// * rank: set to the rank.
    /// * ier: the return code.
    acp_rank_(rank: Out) = { hand_out(rma(), |r| rank.set(r.rank() as Int)) };

    /// As [`c::acp_procs`].
    /// * procs: set to the number of ranks.
    /// * ier: the return code.
    acp_procs_(procs: Out) = { hand_out(rma(), |r| procs.set(r.size() as Int)) };

    /// As [`c::acp_errno`]; every call returns it in `ier`, too.
    /// * code: set to 0, or `FMPL_ERR_*`; it is 0 again after this call.
    /// * ier: always `FMPL_SUCCESS`.
    acp_errno_(code: Out) = {
        code.set(c::acp_errno());
        0
    };
}

/// As [`c::acp_last_error`].
/// * text: set to the text, padded with blanks; blank when nothing has gone wrong.
/// * ier: always `FMPL_SUCCESS`.
/// * length: hidden.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_last_error_(text: *mut c_char, ier: Out, length: usize) {
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        super::fill(text, length, last_error());
        *ier = 0;
    }
}

entries! {
    // # Global memory (ACP): registration and addresses

    /// As [`c::acp_query_starter_ga`].
    /// * rank: the rank.
    /// * ga: set to the address.
    /// * ier: the return code.
    acp_query_starter_ga_(rank: In, ga: Out8)
        = { hand_out(rma().and_then(|r| r.starter(rank_of(rank))), |a| ga.set(a.bits())) };

    /// As [`c::acp_register_memory`].
    /// * addr: the memory.
    /// * size: bytes, at least 1.
    /// * color: 0 to `acp_colors` - 1.
    /// * atkey: set to the key.
    /// * ier: the return code.
    acp_register_memory_(addr: Buffer, size: In8, color: In, atkey: Out8) = {
        match usize::try_from(size) {
            // The program keeps the memory until the registration has ended.
            Ok(size) => hand_out(rma().and_then(|r| r.register(addr.cast(), size, rank_of(color))), |key| {
                atkey.set(key.bits());
            }),
            Err(_) => noted(wrong("acp_register_memory: the size is negative")),
        }
    };
    acp_unregister_memory_(atkey: In8) = { number(rma().and_then(|r| r.unregister(key(atkey)))) };

    /// As [`c::acp_query_ga`].
    /// * atkey: the registration's key.
    /// * addr: a variable in the registered memory.
    /// * ga: set to its global address.
    /// * ier: the return code.
    acp_query_ga_(atkey: In8, addr: Data, ga: Out8)
        = { hand_out(rma().and_then(|r| r.address_of(key(atkey), addr.cast())), |a| ga.set(a.bits())) };

    /// As [`c::acp_query_address`].
    /// * ga: the global address.
    /// * addr: set to the address.
    /// * ier: the return code.
    acp_query_address_(ga: In8, addr: Lent)
        = { hand_out(rma().and_then(|r| r.local_address(self::ga(ga))), |a| addr.set(a.cast_const().cast::<c_void>())) };

    /// As [`c::acp_query_rank`].
    /// * ga: the global address.
    /// * rank: set to the rank.
    /// * ier: the return code.
    acp_query_rank_(ga: In8, rank: Out)
        = { hand_out(rma().and_then(|r| r.rank_of(self::ga(ga))), |n| rank.set(n as Int)) };

    /// As [`c::acp_query_color`].
    /// * ga: the global address.
    /// * color: set to the colour.
    /// * ier: the return code.
    acp_query_color_(ga: In8, color: Out) = {
        let address = self::ga(ga);
        hand_out(rma().and_then(|r| r.rank_of(address).map(|_| r.split().colour(address))), |n| color.set(n as Int))
    };
}

/// As [`c::acp_colors`].
/// * colors: set to the number of colours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_colors_(colors: Out) {
    // SAFETY: Fortran passes the address of its variable.
    unsafe { *colors = c::acp_colors() }
}

entries! {
    // # Global memory (ACP): access

    /// As [`c::acp_copy`].
    /// * dst: where to.
    /// * src: where from.
    /// * size: bytes.
    /// * order: it starts when this operation and all issued before it are over; `ACP_HANDLE_NULL`: at once.
    /// * handle: set to its handle; when it is refused, to one after which nothing starts.
    /// * ier: the return code.
    acp_copy_(dst: In8, src: In8, size: In8, order: In8, handle: Out8) = {
        issued(handle, c::COPY, order, |r| {
            let negative = |_| Error::new(Code::Argument, "acp_copy: the size is negative");
            r.copy::<false>(ga(dst), ga(src), usize::try_from(size).map_err(negative)?, order)
        })
    };

    /// As [`c::acp_cas4`].
    /// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
    /// * src: the word, of any rank; aligned to 4 bytes.
    /// * oldval: what must be there.
    /// * newval: what replaces it.
    /// * order: as for `acp_copy`.
    /// * handle: set to its handle; when it is refused, to one after which nothing starts.
    /// * ier: the return code.
    acp_cas4_(dst: In8, src: In8, oldval: In, newval: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Cas, dst, src, (newval, oldval), order) };

    /// As [`c::acp_swap4`].
    /// * dst: where in this rank's memory the word's value of before goes; aligned to 4 bytes.
    /// * src: the word, of any rank; aligned to 4 bytes.
    /// * value: the operand.
    /// * order: as for `acp_copy`.
    /// * handle: set to its handle; when it is refused, to one after which nothing starts.
    /// * ier: the return code.
    acp_swap4_(dst: In8, src: In8, value: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Swap, dst, src, (value, 0), order) };

    /// As [`c::acp_add4`].
    /// Parameters: as above.
    acp_add4_(dst: In8, src: In8, value: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Add, dst, src, (value, 0), order) };

    /// As [`c::acp_xor4`].
    /// Parameters: as above.
    acp_xor4_(dst: In8, src: In8, value: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Xor, dst, src, (value, 0), order) };

    /// As [`c::acp_or4`].
    /// Parameters: as above.
    acp_or4_(dst: In8, src: In8, value: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Or, dst, src, (value, 0), order) };

    /// As [`c::acp_and4`].
    /// Parameters: as above.
    acp_and4_(dst: In8, src: In8, value: In, order: In8, handle: Out8)
        = { fetch(handle, Atomic::And, dst, src, (value, 0), order) };

    /// As [`c::acp_cas8`].
    /// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
    /// * src: the word, of any rank; aligned to 8 bytes.
    /// * oldval: what must be there.
    /// * newval: what replaces it.
    /// * order: as for `acp_copy`.
    /// * handle: set to its handle; when it is refused, to one after which nothing starts.
    /// * ier: the return code.
    acp_cas8_(dst: In8, src: In8, oldval: In8, newval: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Cas, dst, src, (newval, oldval), order) };

    /// As [`c::acp_swap8`].
    /// * dst: where in this rank's memory the word's value of before goes; aligned to 8 bytes.
    /// * src: the word, of any rank; aligned to 8 bytes.
    /// * value: the operand.
    /// * order: as for `acp_copy`.
    /// * handle: set to its handle; when it is refused, to one after which nothing starts.
    /// * ier: the return code.
    acp_swap8_(dst: In8, src: In8, value: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Swap, dst, src, (value, 0), order) };

    /// As [`c::acp_add8`].
    /// Parameters: as above.
    acp_add8_(dst: In8, src: In8, value: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Add, dst, src, (value, 0), order) };

    /// As [`c::acp_xor8`].
    /// Parameters: as above.
    acp_xor8_(dst: In8, src: In8, value: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Xor, dst, src, (value, 0), order) };

    /// As [`c::acp_or8`].
    /// Parameters: as above.
    acp_or8_(dst: In8, src: In8, value: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::Or, dst, src, (value, 0), order) };

    /// As [`c::acp_and8`].
    /// Parameters: as above.
    acp_and8_(dst: In8, src: In8, value: In8, order: In8, handle: Out8)
        = { fetch(handle, Atomic::And, dst, src, (value, 0), order) };

    /// As [`c::acp_complete`]; the failure is returned.
    /// * handle: the operation; `ACP_HANDLE_ALL`: all.
    /// * ier: the return code.
    acp_complete_(handle: In8) = { number(rma().and_then(|r| Ok(r.complete(handle)?))) };

    /// As [`c::acp_inquire`]; a failure is returned.
    /// * handle: the operation; `ACP_HANDLE_ALL`: all.
    /// * flag: set to 1 when something is not over, else to 0.
    /// * ier: the return code.
    acp_inquire_(handle: In8, flag: Out)
        = { hand_out(rma().and_then(|r| Ok(r.inquire(handle)?)), |open| flag.set(open)) };
}
