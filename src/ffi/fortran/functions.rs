//! The predefined functions of reductions by their Fortran names. They may be passed or called.

use super::entry::{Buffer, Data, In};
use crate::base::kernel::{Kind, Operation, Predefined, predefined};
use crate::ffi::c::{self, papers};

/// As Fortran calls one.
pub(in crate::ffi) type Subroutine = unsafe extern "C" fn(Buffer, Data, In);

/// Makes the subroutine of a name.
macro_rules! subroutine {
    ($name:ident = $c:path, $symbol:expr) => {
        #[unsafe(export_name = $symbol)]
        pub(in crate::ffi) unsafe extern "C" fn $name(inout: Buffer, input: Data, count: In) {
            // SAFETY: Fortran passes the addresses of its variables.
            unsafe { $c(inout, input, *count) }
        }
    };
}

macro_rules! functions {
    ($($(#[$here:meta])* $kind:ident: $($operation:ident)*;)*) => {
        mod reductions {
            $($(#[$here])*
            pub mod $kind {
                use super::super::*;
                $(subroutine!(
                    $operation = c::reductions::$kind::$operation,
                    concat!("fmpl_", stringify!($kind), stringify!($operation), "_")
                );)*
            })*
        }

        /// The predefined functions that this processor has.
        pub(in crate::ffi) fn predefined_functions() -> Vec<(Predefined, Subroutine)> {
            let mut all = by_paper_names().to_vec();
            $($(#[$here])* {
                const OF_KIND: &[(Predefined, Subroutine)] = &[$((
                    Predefined { kind: Kind::$kind, operation: Operation::$operation },
                    reductions::$kind::$operation,
                )),*];
                all.extend_from_slice(OF_KIND);
            })*
            all
        }
    };
}
predefined!(functions);

/// The paper's names: `name: kind operation;`.
macro_rules! paper_names {
    ($($name:ident: $kind:ident $operation:ident;)*) => {
        $(subroutine!($name = c::$name, concat!(stringify!($name), "_"));)*

        const fn by_paper_names() -> &'static [(Predefined, Subroutine)] {
            &[$((Predefined { kind: Kind::$kind, operation: Operation::$operation }, $name)),*]
        }
    };
}
papers!(paper_names);
