//! The predefined functions of reductions by their Fortran names. They may be passed or called.

use super::entry::{Buffer, Data, In};
use crate::ffi::c;

macro_rules! functions {
    ($($name:ident = $c:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub(in crate::ffi) unsafe extern "C" fn $name(inout: Buffer, input: Data, count: In) {
            // SAFETY: Fortran passes the addresses of its variables.
            unsafe { c::$c(inout, input, *count) }
        }
    )*};
}

functions! {
    // # Predefined functions of reductions

    fmpl_isum_ = fmpl_isum;
    fmpl_ssum_ = fmpl_ssum;
    fmpl_dsum_ = fmpl_dsum;
    fmpl_csum_ = fmpl_csum;
    fmpl_zsum_ = fmpl_zsum;
    fmpl_iamax_ = fmpl_iamax;
    fmpl_samax_ = fmpl_samax;
    fmpl_damax_ = fmpl_damax;
    fmpl_camax_ = fmpl_camax;
    fmpl_zamax_ = fmpl_zamax;
    fmpl_iamin_ = fmpl_iamin;
    fmpl_samin_ = fmpl_samin;
    fmpl_damin_ = fmpl_damin;
    fmpl_camin_ = fmpl_camin;
    fmpl_zamin_ = fmpl_zamin;
    fmpl_imaxval_ = fmpl_imaxval;
    fmpl_smaxval_ = fmpl_smaxval;
    fmpl_dmaxval_ = fmpl_dmaxval;
    fmpl_iminval_ = fmpl_iminval;
    fmpl_sminval_ = fmpl_sminval;
    fmpl_dminval_ = fmpl_dminval;

    // # The same by the paper's names: by absolute value

    fmpl_imax_ = fmpl_imax;
    fmpl_smax_ = fmpl_smax;
    fmpl_dmax_ = fmpl_dmax;
    fmpl_cmax_ = fmpl_cmax;
    fmpl_zmax_ = fmpl_zmax;
    fmpl_imin_ = fmpl_imin;
    fmpl_smin_ = fmpl_smin;
    fmpl_dmin_ = fmpl_dmin;
    fmpl_cmin_ = fmpl_cmin;
    fmpl_zmin_ = fmpl_zmin;
}
