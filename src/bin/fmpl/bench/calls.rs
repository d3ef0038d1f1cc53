//! The C interface as the benchmarks call it: through a table of function pointers that the compiler cannot see through, since a
//! user's calls cross the boundary of a shared library too. Nothing of the library is inlined into the loops that are timed.

use std::ffi::{CStr, c_char, c_int, c_void};

use fmpl::ffi::c;
use fmpl::p2p::layout::Block;

/// Makes such a table: `Name of module { function as short(…) -> …; … }`.
macro_rules! calls {
    ($(#[$doc:meta])* $name:ident of $module:ident {
        $($function:ident as $short:ident($($argument:ty),*) $(-> $out:ty)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name { $(pub $short: unsafe extern "C" fn($($argument),*) $(-> $out)?,)* }

        impl $name {
            /// The table, hidden from the optimiser.
            pub fn new() -> $name {
                std::hint::black_box($name { $($short: $module::$function,)* })
            }
        }
    };
}
pub(super) use calls;

calls! {
    /// The functions that the loops use, with the types of `include/fmpl.h`.
    Calls of c {
        fmpl_init as init(*mut c_void, *mut c_void, c_int) -> c_int;
        fmpl_finalize as finalize() -> c_int;
        fmpl_comm_rank as comm_rank(c_int, *mut c_int) -> c_int;
        fmpl_comm_size as comm_size(c_int, *mut c_int) -> c_int;
        fmpl_send as send(*const c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_recv as recv(*mut c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_isend as isend(*const c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_irecv as irecv(*mut c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_isend_wait as isend_wait(c_int, c_int, c_int) -> c_int;
        fmpl_irecv_wait as irecv_wait(c_int, c_int, c_int) -> c_int;
        fmpl_irecv_test as irecv_test(c_int, c_int, c_int, *mut c_int) -> c_int;
        fmpl_received as received(c_int, c_int, c_int, *mut usize, *mut c_int) -> c_int;
        fmpl_sendrecv as sendrecv(*const c_void, usize, c_int, c_int, *mut c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_send_block as send_block(*const c_void, Block, c_int, c_int, c_int) -> c_int;
        fmpl_recv_block as recv_block(*mut c_void, Block, c_int, c_int, c_int) -> c_int;
        fmpl_send_any as send_any(*const c_void, usize, c_int, c_int, c_int) -> c_int;
        fmpl_recv_any_from as recv_any_from(*mut c_void, usize, c_int, c_int, *mut c_int, *mut usize) -> c_int;
        fmpl_mcast as mcast(*const c_void, usize, *const u64, c_int, *mut u64) -> c_int;
        fmpl_mcast_wait as mcast_wait(u64) -> c_int;
        fmpl_mcast_recv as mcast_recv(*mut c_void, usize, c_int, *mut usize, *mut c_int) -> c_int;
        fmpl_sendbuf_set as sendbuf_set(*mut c_void, usize, c_int) -> c_int;
        fmpl_barrier as barrier(c_int) -> c_int;
        fmpl_bcast as bcast(*mut c_void, usize, c_int, c_int) -> c_int;
        fmpl_reduce as reduce(*mut c_void, c_int, c::fmpl_func, c_int, c_int, *mut c_void) -> c_int;
        fmpl_allreduce as allreduce(*mut c_void, c_int, c::fmpl_func, c_int, *mut c_void) -> c_int;
        fmpl_scatter as scatter(*const c_void, usize, *mut c_void, c_int, c_int) -> c_int;
        fmpl_allgather as allgather(*const c_void, usize, *mut c_void, c_int) -> c_int;
        fmpl_scan as scan(*mut c_void, c_int, c::fmpl_func, c_int) -> c_int;
        fmpl_isum as isum(*mut c_void, *const c_void, c_int);
        fmpl_dsum as dsum(*mut c_void, *const c_void, c_int);
        fmpl_dmax as dmax(*mut c_void, *const c_void, c_int);
        fmpl_last_error as last_error() -> *const c_char;
    }
}

impl Calls {
    /// The text of the last error of this thread.
    #[cold]
    pub fn error_text(&self, code: c_int) -> String {
        // SAFETY: the function returns null or a NUL-terminated text that lives until this thread's next call.
        let text = unsafe {
            let p = (self.last_error)();
            if p.is_null() { String::new() } else { CStr::from_ptr(p).to_string_lossy().into_owned() }
        };
        format!("code {code}: {text}")
    }
}
