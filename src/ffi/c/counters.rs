//! The calls of the C interface for counters.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too

use core::ffi::c_int;

use crate::comm;
use crate::ffi::outcome::{Out, hand_to};

// # Counters

/// What this process has done since init, in numbers. The call takes a while: it is not meant for every message.
///
/// * which: `FMPL_COUNTER_*`.
/// * value: set to the counter's value.
///
/// Returns: `FMPL_ERR_ARGUMENT` when there is no such counter, or for a NULL pointer.
#[unsafe(no_mangle)]
pub extern "C" fn fmpl_counter(which: c_int, value: Out<usize>) -> c_int {
    hand_to(value, "fmpl_counter: value is NULL", || comm::counter(which).map(|n| n as usize))
}
