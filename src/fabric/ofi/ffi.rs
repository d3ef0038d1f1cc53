//! The types of libfabric, declared by hand and checked when compiled: each structure's size and the offset of each field that is used.
//!
//! Almost all of libfabric's interface are inline functions over tables of function pointers, which objects carry. Structures that the
//! library makes are declared as far as they are used, under the name *prefix*: newer versions append fields at the end, and objects are
//! handed out by pointer only. What this side fills is declared whole as of API 1.14, and what the library writes into room of ours has
//! room to grow ([`CqErrEntry`]). The numbers are those of `<rdma/fabric.h>` and its neighbours on 64-bit Linux, API 1.14 to 2.x.
//!
//! Long because it is one list of declarations. A test compiles a C program against the headers of the machine, where it has them, and
//! compares [`LAYOUTS`] with what that prints.

#![expect(missing_docs, reason = "the fields and constants are those of the C headers, which document them")]

use std::ffi::{c_char, c_int, c_void};

use libc::iovec;

use crate::base::library::layouts;

type Unused = *mut c_void;

/// `FI_VERSION(major, minor)`.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

// ---- what a provider offers: `fi_info` and what hangs on it

/// `struct fi_info`, prefix; made by [`fi_dupinfo`](super::load::Library) only.
/// Formats of addresses of the internet: `FI_SOCKADDR`, `_IN`, `_IN6`.
pub const SOCKADDRS: [u32; 3] = [1, 2, 3];

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
}

/// `struct fi_tx_attr`, prefix.
#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
}

/// `struct fi_rx_attr`, prefix.
#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

/// `struct fi_ep_attr`, prefix.
#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
}

/// `struct fi_domain_attr`, prefix.
#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut FidDomain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
}

/// `struct fi_fabric_attr`.
#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut FidFabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

/// `enum fi_ep_type`.
pub const EP_RDM: c_int = 3;
/// `enum fi_threading`: any thread may call at any time.
pub const THREAD_SAFE: c_int = 1;
/// `enum fi_progress`: things go on while the library is called.
pub const PROGRESS_MANUAL: c_int = 2;
/// `enum fi_resource_mgmt`: a queue that is full says so.
pub const RM_ENABLED: c_int = 2;
/// `enum fi_cq_format`: with the data that comes with a write.
pub const CQ_FORMAT_DATA: c_int = 3;
/// `enum fi_wait_obj`.
pub const WAIT_NONE: c_int = 0;
pub const WAIT_FD: c_int = 3;
/// Commands of `fi_control`.
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;

/// Capabilities, and flags of completions.
pub mod cap {
    pub const MSG: u64 = 1 << 1;
    pub const RMA: u64 = 1 << 2;
    pub const READ: u64 = 1 << 8;
    pub const WRITE: u64 = 1 << 9;
    pub const RECV: u64 = 1 << 10;
    pub const TRANSMIT: u64 = 1 << 11;
    pub const REMOTE_READ: u64 = 1 << 12;
    pub const REMOTE_WRITE: u64 = 1 << 13;
}

/// What an operation is to do beside.
pub mod flag {
    pub const REMOTE_CQ_DATA: u64 = 1 << 17;
    pub const COMPLETION: u64 = 1 << 24;
    /// It completes when its bytes are in the other end's memory.
    pub const DELIVERY_COMPLETE: u64 = 1 << 28;
    /// A bound queue gets completions of those operations only that ask for one.
    pub const SELECTIVE_COMPLETION: u64 = 1 << 59;
}

/// What a provider asks of its user.
pub mod mode {
    pub const CONTEXT: u64 = 1 << 59;
    pub const CONTEXT2: u64 = 1 << 52;
}

/// How memory is registered.
pub mod mr {
    use std::ffi::c_int;
    /// The old way, which all providers in software still know: addresses are virtual, the provider makes keys, memory is there.
    pub const BASIC: c_int = 1;
    pub const LOCAL: c_int = 1 << 2;
    pub const RAW: c_int = 1 << 3;
    pub const VIRT_ADDR: c_int = 1 << 4;
    pub const ALLOCATED: c_int = 1 << 5;
    pub const PROV_KEY: c_int = 1 << 6;
    pub const ENDPOINT: c_int = 1 << 9;
}

/// Order of operations on the other end's memory.
pub mod order {
    pub const RAW: u64 = 1 << 1;
    pub const WAW: u64 = 1 << 4;
    pub const RMA_RAW: u64 = 1 << 33;
    pub const RMA_WAW: u64 = 1 << 35;
    /// Of completions: as what is completed came.
    pub const STRICT: u64 = 0x1ff;
}

/// Errors of libfabric's own, beside those of the system.
pub mod error {
    use std::ffi::c_int;
    pub const AGAIN: isize = libc::EAGAIN as isize;
    /// There is an error to be read from the queue.
    pub const AVAIL: isize = 259;
    pub const CANCELED: c_int = libc::ECANCELED;
}

// ---- objects

/// Declares a table of functions of an object's, which begins with its size: `name: fn(types) -> type`, or a name alone of what is not used.
macro_rules! operations {
    ($(#[$about:meta])* pub struct $name:ident { $( $field:ident $(: fn($($arg:ty),*) -> $ret:ty)? ),* $(,)? }) => {
        $(#[$about])*
        #[repr(C)]
        pub struct $name {
            pub size: usize,
            $( pub $field: operations!(@ $(fn($($arg),*) -> $ret)?), )*
        }
    };
    (@) => { Unused };
    (@ $($call:tt)+) => { unsafe extern "C" $($call)+ };
}

/// `struct fid`: what every object begins with.
#[repr(C)]
pub struct Fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *mut Ops,
}

operations! {
    /// `struct fi_ops`, prefix.
    pub struct Ops {
        close: fn(*mut Fid) -> c_int,
        bind: fn(*mut Fid, *mut Fid, u64) -> c_int,
        control: fn(*mut Fid, c_int, *mut c_void) -> c_int,
    }
}

/// `struct fid_fabric`, prefix.
#[repr(C)]
pub struct FidFabric {
    pub fid: Fid,
    pub ops: *mut OpsFabric,
}

operations! {
    /// `struct fi_ops_fabric`, prefix.
    pub struct OpsFabric {
        domain: fn(*mut FidFabric, *mut Info, *mut *mut FidDomain, *mut c_void) -> c_int,
        _passive_ep,
        _eq_open,
        _wait_open,
        trywait: fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int,
    }
}

/// `struct fid_domain`.
#[repr(C)]
pub struct FidDomain {
    pub fid: Fid,
    pub ops: *mut OpsDomain,
    pub mr: *mut OpsMr,
}

operations! {
    /// `struct fi_ops_domain`, prefix.
    pub struct OpsDomain {
        av_open: fn(*mut FidDomain, *mut AvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
        cq_open: fn(*mut FidDomain, *mut CqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
        endpoint: fn(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int,
    }
}

operations! {
    /// `struct fi_ops_mr`, prefix.
    pub struct OpsMr {
        reg: fn(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut FidMr, *mut c_void) -> c_int,
    }
}

/// `struct fid_mr`.
#[repr(C)]
pub struct FidMr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

/// `struct fi_av_attr`.
#[repr(C)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

/// `struct fid_av`.
#[repr(C)]
pub struct FidAv {
    pub fid: Fid,
    pub ops: *mut OpsAv,
}

operations! {
    /// `struct fi_ops_av`, prefix.
    pub struct OpsAv {
        insert: fn(*mut FidAv, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
        _insertsvc,
        _insertsym,
        remove: fn(*mut FidAv, *mut u64, usize, u64) -> c_int,
    }
}

/// `struct fi_cq_attr`.
#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

/// `struct fid_cq`.
#[repr(C)]
pub struct FidCq {
    pub fid: Fid,
    pub ops: *mut OpsCq,
}

operations! {
    /// `struct fi_ops_cq`, prefix.
    pub struct OpsCq {
        read: fn(*mut FidCq, *mut c_void, usize) -> isize,
        _readfrom,
        readerr: fn(*mut FidCq, *mut CqErrEntry, u64) -> isize,
        _sread,
        _sreadfrom,
        _signal,
        strerror: fn(*mut FidCq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
    }
}

/// `struct fi_cq_data_entry`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CqEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
}

impl CqEntry {
    pub const NONE: CqEntry =
        CqEntry { op_context: std::ptr::null_mut(), flags: 0, len: 0, buf: std::ptr::null_mut(), data: 0 };
}

/// `struct fi_cq_err_entry`, which has grown once, and room for it to grow again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CqErrEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: usize,
    pub src_addr: u64,
    _more: [u64; 4],
}

impl CqErrEntry {
    pub const NONE: CqErrEntry = CqErrEntry {
        op_context: std::ptr::null_mut(),
        flags: 0,
        len: 0,
        buf: std::ptr::null_mut(),
        data: 0,
        tag: 0,
        olen: 0,
        err: 0,
        prov_errno: 0,
        err_data: std::ptr::null_mut(),
        err_data_size: 0,
        src_addr: 0,
        _more: [0; 4],
    };
}

/// `struct fid_ep`, prefix.
#[repr(C)]
pub struct FidEp {
    pub fid: Fid,
    _ops: Unused,
    pub cm: *mut OpsCm,
    pub msg: *mut OpsMsg,
    pub rma: *mut OpsRma,
}

operations! {
    /// `struct fi_ops_cm`, prefix.
    pub struct OpsCm {
        _setname,
        getname: fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    }
}

operations! {
    /// `struct fi_ops_msg`, prefix.
    pub struct OpsMsg {
        recv: fn(*mut FidEp, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
        _recvv,
        _recvmsg,
        send: fn(*mut FidEp, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    }
}

operations! {
    /// `struct fi_ops_rma`.
    pub struct OpsRma {
        _read,
        _readv,
        readmsg: fn(*mut FidEp, *const MsgRma, u64) -> isize,
        _write,
        _writev,
        writemsg: fn(*mut FidEp, *const MsgRma, u64) -> isize,
        inject: fn(*mut FidEp, *const c_void, usize, u64, u64, u64) -> isize,
        _writedata,
        injectdata: fn(*mut FidEp, *const c_void, usize, u64, u64, u64, u64) -> isize,
    }
}

/// `struct fi_rma_iov`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RmaIov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

/// `struct fi_msg_rma`.
#[repr(C)]
pub struct MsgRma {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

layouts! {
    Info = "fi_info", 0, {
        next: 0, caps: 8, mode: 16, addr_format: 24, src_addrlen: 32, dest_addrlen: 40, src_addr: 48, dest_addr: 56, handle: 64,
        tx_attr: 72, rx_attr: 80, ep_attr: 88, domain_attr: 96, fabric_attr: 104,
    }
    TxAttr = "fi_tx_attr", 0, {
        caps: 0, mode: 8, op_flags: 16, msg_order: 24, comp_order: 32, inject_size: 40, size: 48, iov_limit: 56, rma_iov_limit: 64,
    }
    RxAttr = "fi_rx_attr", 0, {
        caps: 0, mode: 8, op_flags: 16, msg_order: 24, comp_order: 32, total_buffered_recv: 40, size: 48, iov_limit: 56,
    }
    EpAttr = "fi_ep_attr", 0, {
        kind as "type": 0, protocol: 4, protocol_version: 8, max_msg_size: 16, msg_prefix_size: 24, max_order_raw_size: 32,
        max_order_war_size: 40, max_order_waw_size: 48,
    }
    DomainAttr = "fi_domain_attr", 0, {
        domain: 0, name: 8, threading: 16, control_progress: 20, data_progress: 24, resource_mgmt: 28, av_type: 32, mr_mode: 36,
        mr_key_size: 40, cq_data_size: 48, cq_cnt: 56, ep_cnt: 64,
    }
    FabricAttr = "fi_fabric_attr", 32, { fabric: 0, name: 8, prov_name: 16, prov_version: 24, api_version: 28 }
    Fid = "fid", 24, { fclass: 0, context: 8, ops: 16 }
    Ops = "fi_ops", 0, { size: 0, close: 8, bind: 16, control: 24 }
    FidFabric = "fid_fabric", 0, { fid: 0, ops: 24 }
    OpsFabric = "fi_ops_fabric", 0, { size: 0, domain: 8, trywait: 40 }
    FidDomain = "fid_domain", 40, { fid: 0, ops: 24, mr: 32 }
    OpsDomain = "fi_ops_domain", 0, { size: 0, av_open: 8, cq_open: 16, endpoint: 24 }
    OpsMr = "fi_ops_mr", 0, { size: 0, reg: 8 }
    FidMr = "fid_mr", 40, { fid: 0, mem_desc: 24, key: 32 }
    AvAttr = "fi_av_attr", 48, { kind as "type": 0, rx_ctx_bits: 4, count: 8, ep_per_node: 16, name: 24, map_addr: 32, flags: 40 }
    FidAv = "fid_av", 32, { fid: 0, ops: 24 }
    OpsAv = "fi_ops_av", 0, { size: 0, insert: 8, remove: 32 }
    CqAttr = "fi_cq_attr", 40, { size: 0, flags: 8, format: 16, wait_obj: 20, signaling_vector: 24, wait_cond: 28, wait_set: 32 }
    FidCq = "fid_cq", 32, { fid: 0, ops: 24 }
    OpsCq = "fi_ops_cq", 0, { size: 0, read: 8, readerr: 24, strerror: 56 }
    CqEntry = "fi_cq_data_entry", 40, { op_context: 0, flags: 8, len: 16, buf: 24, data: 32 }
    CqErrEntry = "fi_cq_err_entry", 0, {
        op_context: 0, flags: 8, len: 16, buf: 24, data: 32, tag: 40, olen: 48, err: 56, prov_errno: 60, err_data: 64,
        err_data_size: 72,
    }
    FidEp = "fid_ep", 0, { fid: 0, cm: 32, msg: 40, rma: 48 }
    OpsCm = "fi_ops_cm", 0, { size: 0, getname: 16 }
    OpsMsg = "fi_ops_msg", 0, { size: 0, recv: 8, send: 32 }
    OpsRma = "fi_ops_rma", 0, { size: 0, readmsg: 24, writemsg: 48, inject: 56, injectdata: 72 }
    RmaIov = "fi_rma_iov", 24, { addr: 0, len: 8, key: 16 }
    MsgRma = "fi_msg_rma", 64, {
        msg_iov: 0, desc: 8, iov_count: 16, addr: 24, rma_iov: 32, rma_iov_count: 40, context: 48, data: 56,
    }
}

/// A constant: its name in C, and its value.
pub const NUMBERS: &[(&str, u64)] = &[
    ("FI_EP_RDM", EP_RDM as u64),
    ("FI_THREAD_SAFE", THREAD_SAFE as u64),
    ("FI_PROGRESS_MANUAL", PROGRESS_MANUAL as u64),
    ("FI_RM_ENABLED", RM_ENABLED as u64),
    ("FI_CQ_FORMAT_DATA", CQ_FORMAT_DATA as u64),
    ("FI_WAIT_NONE", WAIT_NONE as u64),
    ("FI_WAIT_FD", WAIT_FD as u64),
    ("FI_GETWAIT", GETWAIT as u64),
    ("FI_ENABLE", ENABLE as u64),
    ("FI_MSG", cap::MSG),
    ("FI_RMA", cap::RMA),
    ("FI_READ", cap::READ),
    ("FI_WRITE", cap::WRITE),
    ("FI_RECV", cap::RECV),
    ("FI_TRANSMIT", cap::TRANSMIT),
    ("FI_REMOTE_READ", cap::REMOTE_READ),
    ("FI_REMOTE_WRITE", cap::REMOTE_WRITE),
    ("FI_REMOTE_CQ_DATA", flag::REMOTE_CQ_DATA),
    ("FI_COMPLETION", flag::COMPLETION),
    ("FI_DELIVERY_COMPLETE", flag::DELIVERY_COMPLETE),
    ("FI_SELECTIVE_COMPLETION", flag::SELECTIVE_COMPLETION),
    ("FI_CONTEXT", mode::CONTEXT),
    ("FI_CONTEXT2", mode::CONTEXT2),
    ("FI_MR_BASIC", mr::BASIC as u64),
    ("FI_MR_LOCAL", mr::LOCAL as u64),
    ("FI_MR_RAW", mr::RAW as u64),
    ("FI_MR_VIRT_ADDR", mr::VIRT_ADDR as u64),
    ("FI_MR_ALLOCATED", mr::ALLOCATED as u64),
    ("FI_MR_PROV_KEY", mr::PROV_KEY as u64),
    ("FI_MR_ENDPOINT", mr::ENDPOINT as u64),
    ("FI_ORDER_RAW", order::RAW),
    ("FI_ORDER_WAW", order::WAW),
    ("FI_ORDER_RMA_RAW", order::RMA_RAW),
    ("FI_ORDER_RMA_WAW", order::RMA_WAW),
    ("FI_ORDER_STRICT", order::STRICT),
    ("FI_EAGAIN", error::AGAIN as u64),
    ("FI_EAVAIL", error::AVAIL as u64),
    ("FI_ECANCELED", error::CANCELED as u64),
];
