//! Finding libibverbs at run time. A machine without it simply has no verbs fabric. (With the feature `ibverbs` the program is linked with it,
//! by the declarations of the crate `ibverbs-sys`, and does not start without.)
//!
//! The control path is looked up by name and version; the fast path needs no symbol, it goes through the table of functions that
//! an open device carries (`context->ops`). So the program starts everywhere, and the library need not be there to build it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use super::ffi::*;
use crate::base::library::Library as Loaded;

/// Where a function is: the one of this name and version in the library that was loaded.
#[cfg(not(feature = "ibverbs"))]
macro_rules! function {
    ($handle:ident, $symbol:ident, $version:literal) => {
        symbol(
            $handle,
            CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()).unwrap_or(c""),
            $version,
        )?
    };
}

/// Where a function is: the one that the program is linked with, as the crate declares it. That its structures are ours is checked when
/// `tests/verbs` is compiled.
#[cfg(feature = "ibverbs")]
macro_rules! function {
    ($handle:ident, $symbol:ident, $version:literal) => {{
        let _ = ($handle, $version);
        ibverbs_sys::$symbol as *const () as *mut c_void
    }};
}

/// Declares the table of functions and its loading from one list.
macro_rules! functions {
    ($( $field:ident = $symbol:ident @ $version:literal : fn($($arg:ty),*) $(-> $ret:ty)? ; )*) => {
        /// The functions of libibverbs that are used, each under its name without `ibv_`.
        #[expect(missing_docs, reason = "documented in the library's manual pages")]
        pub struct Library {
            $( pub $field: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
        }

        impl Library {
            fn find(handle: *mut c_void) -> Result<Library, String> {
                Ok(Library { $(
                    // SAFETY: the symbol of this name and version has this type.
                    $field: unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(function!(handle, $symbol, $version)) },
                )* })
            }
        }
    };
}

functions! {
    get_device_list = ibv_get_device_list @ c"IBVERBS_1.1": fn(*mut c_int) -> *mut *mut Device;
    free_device_list = ibv_free_device_list @ c"IBVERBS_1.1": fn(*mut *mut Device);
    get_device_name = ibv_get_device_name @ c"IBVERBS_1.1": fn(*mut Device) -> *const c_char;
    open_device = ibv_open_device @ c"IBVERBS_1.1": fn(*mut Device) -> *mut Context;
    close_device = ibv_close_device @ c"IBVERBS_1.1": fn(*mut Context) -> c_int;
    query_device = ibv_query_device @ c"IBVERBS_1.1": fn(*mut Context, *mut DeviceAttr) -> c_int;
    query_port = ibv_query_port @ c"IBVERBS_1.1": fn(*mut Context, u8, *mut PortAttr) -> c_int;
    query_gid = ibv_query_gid @ c"IBVERBS_1.1": fn(*mut Context, u8, c_int, *mut Gid) -> c_int;
    query_pkey = ibv_query_pkey @ c"IBVERBS_1.1": fn(*mut Context, u8, c_int, *mut u16) -> c_int;
    alloc_pd = ibv_alloc_pd @ c"IBVERBS_1.1": fn(*mut Context) -> *mut Pd;
    dealloc_pd = ibv_dealloc_pd @ c"IBVERBS_1.1": fn(*mut Pd) -> c_int;
    reg_mr = ibv_reg_mr @ c"IBVERBS_1.1": fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    dereg_mr = ibv_dereg_mr @ c"IBVERBS_1.1": fn(*mut Mr) -> c_int;
    create_comp_channel = ibv_create_comp_channel @ c"IBVERBS_1.0": fn(*mut Context) -> *mut CompChannel;
    destroy_comp_channel = ibv_destroy_comp_channel @ c"IBVERBS_1.0": fn(*mut CompChannel) -> c_int;
    create_cq = ibv_create_cq @ c"IBVERBS_1.1": fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
    destroy_cq = ibv_destroy_cq @ c"IBVERBS_1.1": fn(*mut Cq) -> c_int;
    get_cq_event = ibv_get_cq_event @ c"IBVERBS_1.1": fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
    ack_cq_events = ibv_ack_cq_events @ c"IBVERBS_1.1": fn(*mut Cq, c_uint);
    resize_cq = ibv_resize_cq @ c"IBVERBS_1.1": fn(*mut Cq, c_int) -> c_int;
    get_async_event = ibv_get_async_event @ c"IBVERBS_1.1": fn(*mut Context, *mut AsyncEvent) -> c_int;
    ack_async_event = ibv_ack_async_event @ c"IBVERBS_1.1": fn(*mut AsyncEvent);
    create_srq = ibv_create_srq @ c"IBVERBS_1.1": fn(*mut Pd, *mut SrqInitAttr) -> *mut Srq;
    destroy_srq = ibv_destroy_srq @ c"IBVERBS_1.1": fn(*mut Srq) -> c_int;
    create_qp = ibv_create_qp @ c"IBVERBS_1.1": fn(*mut Pd, *mut QpInitAttr) -> *mut Qp;
    destroy_qp = ibv_destroy_qp @ c"IBVERBS_1.1": fn(*mut Qp) -> c_int;
    modify_qp = ibv_modify_qp @ c"IBVERBS_1.1": fn(*mut Qp, *mut QpAttr, c_int) -> c_int;
    create_ah = ibv_create_ah @ c"IBVERBS_1.1": fn(*mut Pd, *mut AhAttr) -> *mut Ah;
    destroy_ah = ibv_destroy_ah @ c"IBVERBS_1.1": fn(*mut Ah) -> c_int;
    attach_mcast = ibv_attach_mcast @ c"IBVERBS_1.1": fn(*mut Qp, *const Gid, u16) -> c_int;
    detach_mcast = ibv_detach_mcast @ c"IBVERBS_1.1": fn(*mut Qp, *const Gid, u16) -> c_int;
    wc_status_str = ibv_wc_status_str @ c"IBVERBS_1.1": fn(c_int) -> *const c_char;
}

/// `_ibv_query_gid_table`, in rdma-core from version 33 on: all addresses of a device that are set, with their kinds of RoCE, in one call. (A
/// table may have a thousand places of which three are set.)
type QueryGidTable = unsafe extern "C" fn(*mut Context, *mut GidEntry, usize, u32, usize) -> isize;

fn symbol(handle: *mut c_void, name: &CStr, version: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: an open handle, and strings that end with NUL.
    let p = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    if p.is_null() {
        return Err(format!("libibverbs.so.1 has no {}@{}", name.to_string_lossy(), version.to_string_lossy()));
    }
    Ok(p)
}

struct Found {
    calls: Library,
    query_gid_table: Option<QueryGidTable>,
}

fn found() -> &'static Result<Found, String> {
    static FOUND: OnceLock<Result<Found, String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        // Never unloaded: drivers keep state.
        let library = if cfg!(feature = "ibverbs") { Loaded::EVERYWHERE } else { Loaded::load(c"libibverbs.so.1")? };
        let handle = library.handle();
        let calls = Library::find(handle)?;
        let table = symbol(handle, c"_ibv_query_gid_table", c"IBVERBS_1.11").ok();
        // SAFETY: the symbol of this name and version has this type.
        let query_gid_table = table.map(|p| unsafe { std::mem::transmute::<*mut c_void, QueryGidTable>(p) });
        Ok(Found { calls, query_gid_table })
    })
}

/// The library, or why there is none.
pub fn library() -> Result<&'static Library, &'static str> {
    found().as_ref().map(|f| &f.calls).map_err(String::as_str)
}

pub(super) fn query_gid_table() -> Option<QueryGidTable> {
    found().as_ref().ok().and_then(|f| f.query_gid_table)
}
