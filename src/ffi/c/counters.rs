//! The calls of the C interface for counters.

use core::ffi::c_int;

use crate::comm;
use crate::ffi::outcome::Out;

calls! {
    // # Counters

    /// What this process has done since init, in numbers. The call takes a while: it is not meant for every message.
    ///
    /// * which: `FMPL_COUNTER_*`.
    /// * value: set to the counter's value.
    ///
    /// Returns: `FMPL_ERR_ARGUMENT` when there is no such counter, or for a NULL pointer.
    fn fmpl_counter(which: c_int, value: Out<usize>) -> value = comm::counter(which).map(|n| n as usize);
}
