//! The Fortran names of the calls that complete several requests at a time.

use super::entry::{Codes, In, Out, Requests, entries};
use crate::ffi::c;

entries! {
    // # Several requests at a time

    fmpl_waitall_(requests: Requests, n: In, codes: Codes) = fmpl_waitall;
    fmpl_testall_(requests: Requests, n: In, done: Out, codes: Codes) = fmpl_testall;
    /// As [`c::fmpl_waitany`]; places count from 1, and 0 means that all are over already.
    ///
    /// * requests: which; those of kind FMPL_REQUEST_NONE are over.
    /// * n: their number.
    /// * which: set to the place of the one that is over.
    /// * ier: the return code.
    fmpl_waitany_(requests: Requests, n: In, which: Out) = {
        let mut at = -1;
        let code = c::fmpl_waitany(requests, n, (&mut at).into());
        which.set(at + 1);
        code
    };
    /// As [`c::fmpl_waitsome`]; places count from 1.
    ///
    /// * requests: which; those of kind FMPL_REQUEST_NONE are over.
    /// * n: their number.
    /// * count: set to how many this call has completed.
    /// * which: set to their places; room for n.
    /// * codes: set to the code of each of these, in the same order.
    /// * ier: the return code.
    fmpl_waitsome_(requests: Requests, n: In, count: Out, which: Codes, codes: Codes) = {
        let mut ended = 0;
        let code = c::fmpl_waitsome(requests, n, (&mut ended).into(), which, codes);
        count.set(ended);
        (0..ended as usize).for_each(|k| *which.add(k) += 1);
        code
    };
}
