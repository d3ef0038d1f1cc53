//! The predefined functions of reductions, as the program names them, passes them, or calls them itself.

#![allow(clippy::missing_safety_doc)] // what `c.rs` says of safety holds here too
#![allow(rustdoc::broken_intra_doc_links)] // inout[k] is an element, not a link

use core::ffi::{c_int, c_void};

use crate::coll::function::apply;

/// Tells the reductions where the predefined functions are, in C and in Fortran.
pub(in crate::ffi) fn introduce() {
    use crate::ffi::fortran as f;
    crate::coll::function::introduce(|| {
        vec![
            [fmpl_isum as *const () as usize, f::fmpl_isum_ as *const () as usize],
            [fmpl_ssum as *const () as usize, f::fmpl_ssum_ as *const () as usize],
            [fmpl_dsum as *const () as usize, f::fmpl_dsum_ as *const () as usize],
            [fmpl_csum as *const () as usize, f::fmpl_csum_ as *const () as usize],
            [fmpl_zsum as *const () as usize, f::fmpl_zsum_ as *const () as usize],
            [fmpl_imax as *const () as usize, f::fmpl_imax_ as *const () as usize],
            [fmpl_smax as *const () as usize, f::fmpl_smax_ as *const () as usize],
            [fmpl_dmax as *const () as usize, f::fmpl_dmax_ as *const () as usize],
            [fmpl_cmax as *const () as usize, f::fmpl_cmax_ as *const () as usize],
            [fmpl_zmax as *const () as usize, f::fmpl_zmax_ as *const () as usize],
            [fmpl_imin as *const () as usize, f::fmpl_imin_ as *const () as usize],
            [fmpl_smin as *const () as usize, f::fmpl_smin_ as *const () as usize],
            [fmpl_dmin as *const () as usize, f::fmpl_dmin_ as *const () as usize],
            [fmpl_cmin as *const () as usize, f::fmpl_cmin_ as *const () as usize],
            [fmpl_zmin as *const () as usize, f::fmpl_zmin_ as *const () as usize],
            [fmpl_imaxval as *const () as usize, f::fmpl_imaxval_ as *const () as usize],
            [fmpl_smaxval as *const () as usize, f::fmpl_smaxval_ as *const () as usize],
            [fmpl_dmaxval as *const () as usize, f::fmpl_dmaxval_ as *const () as usize],
            [fmpl_iminval as *const () as usize, f::fmpl_iminval_ as *const () as usize],
            [fmpl_sminval as *const () as usize, f::fmpl_sminval_ as *const () as usize],
            [fmpl_dminval as *const () as usize, f::fmpl_dminval_ as *const () as usize],
        ]
    });
}

// # Predefined functions of reductions

/// int: inout[k] = inout[k] + in[k].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_isum(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(0, inout, input, count) }
}

/// float: inout[k] = inout[k] + in[k].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_ssum(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(1, inout, input, count) }
}

/// double: inout[k] = inout[k] + in[k].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dsum(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(2, inout, input, count) }
}

/// complex float: inout[k] = inout[k] + in[k].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_csum(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(3, inout, input, count) }
}

/// complex double: inout[k] = inout[k] + in[k].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zsum(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(4, inout, input, count) }
}

/// int: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imax(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(5, inout, input, count) }
}

/// float: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smax(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(6, inout, input, count) }
}

/// double: of inout[k] and in[k] the one with the larger absolute value; of equal ones the larger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmax(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(7, inout, input, count) }
}

/// complex float: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones the larger real part, then imaginary part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_cmax(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(8, inout, input, count) }
}

/// complex double: of inout[k] and in[k] the one with the larger absolute value (|re| + |im|); of equal ones the larger real part, then imaginary part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zmax(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(9, inout, input, count) }
}

/// int: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imin(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(10, inout, input, count) }
}

/// float: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smin(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(11, inout, input, count) }
}

/// double: of inout[k] and in[k] the one with the smaller absolute value; of equal ones the smaller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmin(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(12, inout, input, count) }
}

/// complex float: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones the smaller real part, then imaginary part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_cmin(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(13, inout, input, count) }
}

/// complex double: of inout[k] and in[k] the one with the smaller absolute value (|re| + |im|); of equal ones the smaller real part, then imaginary part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_zmin(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(14, inout, input, count) }
}

/// int: of inout[k] and in[k] the larger one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_imaxval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(15, inout, input, count) }
}

/// float: of inout[k] and in[k] the larger one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_smaxval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(16, inout, input, count) }
}

/// double: of inout[k] and in[k] the larger one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dmaxval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(17, inout, input, count) }
}

/// int: of inout[k] and in[k] the smaller one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_iminval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(18, inout, input, count) }
}

/// float: of inout[k] and in[k] the smaller one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_sminval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(19, inout, input, count) }
}

/// double: of inout[k] and in[k] the smaller one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fmpl_dminval(inout: *mut c_void, input: *const c_void, count: c_int) {
    // SAFETY: the caller promises `count` elements at each.
    unsafe { apply(20, inout, input, count) }
}
