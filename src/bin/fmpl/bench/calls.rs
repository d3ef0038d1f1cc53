//! The C interface as the benchmarks call it: through a table of function pointers that the compiler cannot see through, since a
//! user's calls cross the boundary of a shared library too. Nothing of the library is inlined into the loops that are timed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;

use fmpl::ffi::c;
use fmpl::p2p::layout::Block;

/// The functions that the loops use, with the types of `include/fmpl.h`.
#[derive(Clone, Copy)]
pub struct Calls {
    pub init: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    pub finalize: unsafe extern "C" fn() -> c_int,
    pub comm_rank: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    pub comm_size: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    pub send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, c_int) -> c_int,
    pub recv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int) -> c_int,
    pub isend: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, c_int) -> c_int,
    pub irecv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int) -> c_int,
    pub isend_wait: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int,
    pub irecv_wait: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int,
    pub irecv_test: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_int) -> c_int,
    pub received: unsafe extern "C" fn(c_int, c_int, c_int, *mut usize, *mut c_int) -> c_int,
    #[allow(clippy::type_complexity, reason = "the signature is the C interface's")]
    pub sendrecv:
        unsafe extern "C" fn(*const c_void, usize, c_int, c_int, *mut c_void, usize, c_int, c_int, c_int) -> c_int,
    pub send_block: unsafe extern "C" fn(*const c_void, Block, c_int, c_int, c_int) -> c_int,
    pub recv_block: unsafe extern "C" fn(*mut c_void, Block, c_int, c_int, c_int) -> c_int,
    pub send_any: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, c_int) -> c_int,
    pub recv_any_from: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, *mut c_int, *mut usize) -> c_int,
    pub mcast: unsafe extern "C" fn(*const c_void, usize, *const u64, c_int, *mut u64) -> c_int,
    pub mcast_wait: unsafe extern "C" fn(u64) -> c_int,
    pub mcast_recv: unsafe extern "C" fn(*mut c_void, usize, c_int, *mut usize, *mut c_int) -> c_int,
    pub sendbuf_set: unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int,
    pub barrier: unsafe extern "C" fn(c_int) -> c_int,
    pub bcast: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int) -> c_int,
    pub reduce: unsafe extern "C" fn(*mut c_void, c_int, c::fmpl_func, c_int, c_int, *mut c_void) -> c_int,
    pub allreduce: unsafe extern "C" fn(*mut c_void, c_int, c::fmpl_func, c_int, *mut c_void) -> c_int,
    pub scatter: unsafe extern "C" fn(*const c_void, usize, *mut c_void, c_int, c_int) -> c_int,
    pub allgather: unsafe extern "C" fn(*const c_void, usize, *mut c_void, c_int) -> c_int,
    pub scan: unsafe extern "C" fn(*mut c_void, c_int, c::fmpl_func, c_int) -> c_int,
    pub isum: unsafe extern "C" fn(*mut c_void, *const c_void, c_int),
    pub dsum: unsafe extern "C" fn(*mut c_void, *const c_void, c_int),
    pub dmax: unsafe extern "C" fn(*mut c_void, *const c_void, c_int),
    pub last_error: unsafe extern "C" fn() -> *const c_char,
}

impl Calls {
    /// The table, hidden from the optimiser.
    pub fn new() -> Calls {
        black_box(Calls {
            init: c::fmpl_init,
            finalize: c::fmpl_finalize,
            comm_rank: c::fmpl_comm_rank,
            comm_size: c::fmpl_comm_size,
            send: c::fmpl_send,
            recv: c::fmpl_recv,
            isend: c::fmpl_isend,
            irecv: c::fmpl_irecv,
            isend_wait: c::fmpl_isend_wait,
            irecv_wait: c::fmpl_irecv_wait,
            irecv_test: c::fmpl_irecv_test,
            received: c::fmpl_received,
            sendrecv: c::fmpl_sendrecv,
            send_block: c::fmpl_send_block,
            recv_block: c::fmpl_recv_block,
            send_any: c::fmpl_send_any,
            recv_any_from: c::fmpl_recv_any_from,
            mcast: c::fmpl_mcast,
            mcast_wait: c::fmpl_mcast_wait,
            mcast_recv: c::fmpl_mcast_recv,
            sendbuf_set: c::fmpl_sendbuf_set,
            barrier: c::fmpl_barrier,
            bcast: c::fmpl_bcast,
            reduce: c::fmpl_reduce,
            allreduce: c::fmpl_allreduce,
            scatter: c::fmpl_scatter,
            allgather: c::fmpl_allgather,
            scan: c::fmpl_scan,
            isum: c::fmpl_isum,
            dsum: c::fmpl_dsum,
            dmax: c::fmpl_dmax,
            last_error: c::fmpl_last_error,
        })
    }

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
