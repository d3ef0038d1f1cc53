//! The predefined functions of reductions, as the program names them, passes them, or calls them itself: `fmpl_`, the kind of elements,
//! the operation. [`predefined`] lists them; what they do is said by [`Operation`](crate::base::kernel::Operation).

use core::ffi::{c_int, c_void};

use crate::base::bytes::{Bytes, Room};
use crate::base::kernel::{Kernel, Kind, Operation, Predefined, predefined};
use crate::ffi::c::fmpl_func;
use crate::ffi::fortran;

/// inout = inout ∘ in, of a predefined function.
///
/// # Safety
/// `count` elements at each, which do not overlap.
unsafe fn apply(function: Predefined, inout: *mut c_void, input: *const c_void, count: c_int) {
    let (kernel, count) = (Kernel::of(function), usize::try_from(count).unwrap_or(0));
    let len = count * kernel.size;
    // SAFETY: so many bytes, as the caller promises.
    let (inout, input) = unsafe { (Room::new(inout.cast(), len), Bytes::new(input.cast(), len)) };
    kernel.run(inout, *inout, input, inout.len().min(input.len()) / kernel.size);
}

/// Makes a function `fmpl_NAME`.
macro_rules! function {
    ($name:ident, $kind:ident $operation:ident, $symbol:expr) => {
        #[doc = concat!("inout = inout ∘ in: `", $symbol, "`.")]
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C" fn $name(inout: *mut c_void, input: *const c_void, count: c_int) {
            let function = Predefined { kind: Kind::$kind, operation: Operation::$operation };
            // SAFETY: the caller promises `count` elements at each.
            unsafe { apply(function, inout, input, count) }
        }
    };
}

macro_rules! functions {
    ($($(#[$here:meta])* $kind:ident: $($operation:ident)*;)*) => {
        /// The functions, by kinds.
        pub mod reductions {
            $($(#[$here])*
            #[doc = concat!("`fmpl_", stringify!($kind), "…`")]
            pub mod $kind {
                use super::super::*;
                $(function!($operation, $kind $operation, concat!("fmpl_", stringify!($kind), stringify!($operation)));)*
            })*
        }

        /// The predefined functions that this processor has.
        pub fn predefined_functions() -> Vec<(Predefined, fmpl_func)> {
            let mut all: Vec<(Predefined, fmpl_func)> = Vec::new();
            $($(#[$here])* {
                const OF_KIND: &[(Predefined, fmpl_func)] = &[$((
                    Predefined { kind: Kind::$kind, operation: Operation::$operation },
                    Some(reductions::$kind::$operation),
                )),*];
                all.extend_from_slice(OF_KIND);
            })*
            all
        }
    };
}
predefined!(functions);

/// The paper's names of functions that have others: `name: kind operation;`.
macro_rules! paper_names {
    ($($name:ident: $kind:ident $operation:ident;)*) => {
        $(function!($name, $kind $operation, stringify!($name));)*

        /// The functions that have further names, by the addresses of these.
        pub(in crate::ffi) const fn by_paper_names() -> &'static [(Predefined, fmpl_func)] {
            &[$((Predefined { kind: Kind::$kind, operation: Operation::$operation }, Some($name))),*]
        }
    };
}

/// The paper's names, for a macro: `name: kind operation;`.
macro_rules! papers {
    ($then:ident) => {
        $then! {
            fmpl_imax: i amax;
            fmpl_smax: s amax;
            fmpl_dmax: d amax;
            fmpl_cmax: c amax;
            fmpl_zmax: z amax;
            fmpl_imin: i amin;
            fmpl_smin: s amin;
            fmpl_dmin: d amin;
            fmpl_cmin: c amin;
            fmpl_zmin: z amin;
        }
    };
}
pub(in crate::ffi) use papers;
papers!(paper_names);

pub use reductions::c::{amax as fmpl_camax, amin as fmpl_camin, sum as fmpl_csum};
pub use reductions::d::{
    amax as fmpl_damax, amin as fmpl_damin, maxval as fmpl_dmaxval, minval as fmpl_dminval, sum as fmpl_dsum,
};
pub use reductions::i::{
    amax as fmpl_iamax, amin as fmpl_iamin, maxval as fmpl_imaxval, minval as fmpl_iminval, sum as fmpl_isum,
};
pub use reductions::s::{
    amax as fmpl_samax, amin as fmpl_samin, maxval as fmpl_smaxval, minval as fmpl_sminval, sum as fmpl_ssum,
};
pub use reductions::z::{amax as fmpl_zamax, amin as fmpl_zamin, sum as fmpl_zsum};

/// Tells the reductions where the predefined functions are, in C and in Fortran.
pub(in crate::ffi) fn introduce() {
    crate::coll::function::introduce(|| {
        let c = predefined_functions().into_iter().chain(by_paper_names().iter().copied());
        let c = c.filter_map(|(function, at)| Some((at? as *const () as usize, function)));
        let fortran = fortran::predefined_functions().into_iter();
        c.chain(fortran.map(|(function, at)| (at as *const () as usize, function))).collect()
    });
}
