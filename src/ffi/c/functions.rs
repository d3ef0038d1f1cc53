//! The predefined functions of reductions, as the program names them, passes them, or calls them itself.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too
#![allow(rustdoc::broken_intra_doc_links)] // inout[k] is an element, not a link

use core::ffi::{c_int, c_void};

use crate::base::bytes::{Bytes, Room};
use crate::coll::function::{self, PREDEFINED};
use crate::ffi::fortran;

/// inout = inout ∘ in, of a predefined function.
///
/// # Safety
/// `count` elements at each, which do not overlap.
unsafe fn apply(n: usize, inout: *mut c_void, input: *const c_void, count: c_int) {
    let len = usize::try_from(count).unwrap_or(0) * PREDEFINED[n].size;
    // SAFETY: so many bytes, as the caller promises.
    let (inout, input) = unsafe { (Room::new(inout.cast(), len), Bytes::new(input.cast(), len)) };
    function::apply(n, inout, input);
}

/// Makes the functions from a table: `name = number of the function, its Fortran name;`.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $fortran:ident;)*) => {
        /// Tells the reductions where the predefined functions are, in C and in Fortran.
        pub(in crate::ffi) fn introduce() {
            crate::coll::function::introduce(|| {
                vec![$(($number, [$name as *const () as usize, fortran::$fortran as *const () as usize])),*]
            });
        }

        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(inout: *mut c_void, input: *const c_void, count: c_int) {
                // SAFETY: the caller promises `count` elements at each.
                unsafe { apply($number, inout, input, count) }
            }
        )*
    };
}

functions! {
    // # Predefined functions of reductions

    /// int: inout[k] = inout[k] + in[k].
    fmpl_isum = 0, fmpl_isum_;
    /// float: inout[k] = inout[k] + in[k].
    fmpl_ssum = 1, fmpl_ssum_;
    /// double: inout[k] = inout[k] + in[k].
    fmpl_dsum = 2, fmpl_dsum_;
    /// complex float: inout[k] = inout[k] + in[k].
    fmpl_csum = 3, fmpl_csum_;
    /// complex double: inout[k] = inout[k] + in[k].
    fmpl_zsum = 4, fmpl_zsum_;
    /// int: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
    fmpl_iamax = 5, fmpl_iamax_;
    /// float: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
    fmpl_samax = 6, fmpl_samax_;
    /// double: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
    fmpl_damax = 7, fmpl_damax_;
    /// complex float: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones the larger real part, then imaginary part.
    fmpl_camax = 8, fmpl_camax_;
    /// complex double: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones the larger real part, then imaginary part.
    fmpl_zamax = 9, fmpl_zamax_;
    /// int: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
    fmpl_iamin = 10, fmpl_iamin_;
    /// float: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
    fmpl_samin = 11, fmpl_samin_;
    /// double: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
    fmpl_damin = 12, fmpl_damin_;
    /// complex float: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones the smaller real part, then imaginary part.
    fmpl_camin = 13, fmpl_camin_;
    /// complex double: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones the smaller real part, then imaginary part.
    fmpl_zamin = 14, fmpl_zamin_;
    /// int: of inout[k] and in[k] the larger one.
    fmpl_imaxval = 15, fmpl_imaxval_;
    /// float: of inout[k] and in[k] the larger one.
    fmpl_smaxval = 16, fmpl_smaxval_;
    /// double: of inout[k] and in[k] the larger one.
    fmpl_dmaxval = 17, fmpl_dmaxval_;
    /// int: of inout[k] and in[k] the smaller one.
    fmpl_iminval = 18, fmpl_iminval_;
    /// float: of inout[k] and in[k] the smaller one.
    fmpl_sminval = 19, fmpl_sminval_;
    /// double: of inout[k] and in[k] the smaller one.
    fmpl_dminval = 20, fmpl_dminval_;

    // # The same by the paper's names, which readers of MPI take for other functions: FMPL_PAPER_NAMES declares them

    /// The paper's name for `fmpl_iamax`: by absolute value.
    fmpl_imax = 5, fmpl_imax_;
    /// The paper's name for `fmpl_samax`: by absolute value.
    fmpl_smax = 6, fmpl_smax_;
    /// The paper's name for `fmpl_damax`: by absolute value.
    fmpl_dmax = 7, fmpl_dmax_;
    /// The paper's name for `fmpl_camax`: by absolute value.
    fmpl_cmax = 8, fmpl_cmax_;
    /// The paper's name for `fmpl_zamax`: by absolute value.
    fmpl_zmax = 9, fmpl_zmax_;
    /// The paper's name for `fmpl_iamin`: by absolute value.
    fmpl_imin = 10, fmpl_imin_;
    /// The paper's name for `fmpl_samin`: by absolute value.
    fmpl_smin = 11, fmpl_smin_;
    /// The paper's name for `fmpl_damin`: by absolute value.
    fmpl_dmin = 12, fmpl_dmin_;
    /// The paper's name for `fmpl_camin`: by absolute value.
    fmpl_cmin = 13, fmpl_cmin_;
    /// The paper's name for `fmpl_zamin`: by absolute value.
    fmpl_zmin = 14, fmpl_zmin_;
}
