//! The calls of the C interface for counters.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too

use core::ffi::c_int;

use crate::comm;
use crate::ffi::outcome::{hand_out, wrong};

// # Counters

/// What this process has done since init, in numbers. The call takes a while: it is not meant for every message.
///
/// * which: `FMPL_COUNTER_*`.
/// * value: set to the counter's value.
///
/// Returns: `FMPL_ERR_ARGUMENT` when there is no such counter, or for a NULL pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_counter(which: c_int, value: *mut usize) -> c_int {
    if value.is_null() {
        return wrong("fmpl_counter: value is NULL");
    }
    // SAFETY: not null, so the caller's size_t.
    hand_out(comm::counter(which), |n| unsafe { *value = n as usize })
}
