//! The Fortran names of the calls for counters.

#![allow(clippy::missing_safety_doc)] // what `fortran.rs` says of safety holds here too

use super::{Int, Long};
use crate::ffi::c;

// # Counters

/// As [`c::fmpl_counter`]; the value is an INTEGER(8).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_counter_(which: *const Int, value: *mut Long, ier: *mut Int) {
    let mut n = 0;
    // SAFETY: Fortran passes the addresses of its variables.
    unsafe {
        *ier = c::fmpl_counter(*which, &mut n);
        if *ier == 0 {
            *value = n as Long;
        }
    }
}
