//! The types of libibverbs, declared by hand and checked when compiled: each structure's size and the offset of each field that is used.
//!
//! Structures that this side fills are declared whole. Those that the library makes and hands out by pointer are declared as far as
//! they are read, under the name *prefix*. The numbers are those of `<infiniband/verbs.h>` of rdma-core on 64-bit Linux; they have
//! not changed since its first release but for [`PortAttr`], which grew at its end and is given room to grow again.
//!
//! Long because it is one list of declarations. A test compiles a C program against the header of the machine, where it has one, and compares [`LAYOUTS`] with what that prints.

#![expect(missing_docs, reason = "the fields and constants are those of the C header, which documents them")]

use crate::base::library::layouts;
use bitflags::bitflags;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A 16-byte address of a port, in network order.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gid(pub [u8; 16]);

/// `struct ibv_device`: never looked into.
#[repr(C)]
pub struct Device {
    _opaque: [u8; 0],
}

/// `struct ibv_pd`, prefix.
#[repr(C)]
pub struct Pd {
    _context: *mut Context,
    _handle: u32,
}

/// `struct ibv_ah`: never looked into.
#[repr(C)]
pub struct Ah {
    _opaque: [u8; 0],
}

/// `struct ibv_context`, prefix. The fast path goes through `ops`.
#[repr(C)]
pub struct Context {
    pub device: *mut Device,
    pub ops: ContextOps,
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
}

type Unused = *mut c_void;

/// `struct ibv_context_ops`: the calls that the header defines as inline functions.
#[repr(C)]
pub struct ContextOps {
    _before_poll: [Unused; 11],
    pub poll_cq: Option<unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int>,
    pub req_notify_cq: Option<unsafe extern "C" fn(*mut Cq, c_int) -> c_int>,
    _before_srq_recv: [Unused; 7],
    pub post_srq_recv: Option<unsafe extern "C" fn(*mut Srq, *mut RecvWr, *mut *mut RecvWr) -> c_int>,
    _before_send: [Unused; 4],
    pub post_send: Option<unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int>,
    pub post_recv: Option<unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int>,
    _rest: [Unused; 5],
}

/// `struct ibv_comp_channel`, prefix.
#[repr(C)]
pub struct CompChannel {
    pub context: *mut Context,
    pub fd: c_int,
}

/// `struct ibv_cq`, prefix.
#[repr(C)]
pub struct Cq {
    pub context: *mut Context,
    pub channel: *mut CompChannel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
}

/// `struct ibv_srq`, prefix.
#[repr(C)]
pub struct Srq {
    pub context: *mut Context,
}

/// `struct ibv_qp`, prefix.
#[repr(C)]
pub struct Qp {
    pub context: *mut Context,
    _qp_context: *mut c_void,
    _pd: *mut Pd,
    _send_cq: *mut Cq,
    _recv_cq: *mut Cq,
    _srq: *mut Srq,
    _handle: u32,
    pub qp_num: u32,
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    pub context: *mut Context,
    pub pd: *mut Pd,
    pub addr: *mut c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

/// `struct ibv_device_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceAttr {
    pub fw_ver: [c_char; 64],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: c_uint,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    pub max_pd: c_int,
    pub max_qp_rd_atom: c_int,
    pub max_ee_rd_atom: c_int,
    pub max_res_rd_atom: c_int,
    pub max_qp_init_rd_atom: c_int,
    pub max_ee_init_rd_atom: c_int,
    pub atomic_cap: c_int,
    pub max_ee: c_int,
    pub max_rdd: c_int,
    pub max_mw: c_int,
    pub max_raw_ipv6_qp: c_int,
    pub max_raw_ethy_qp: c_int,
    pub max_mcast_grp: c_int,
    pub max_mcast_qp_attach: c_int,
    pub max_total_mcast_qp_attach: c_int,
    pub max_ah: c_int,
    pub max_fmr: c_int,
    pub max_map_per_fmr: c_int,
    pub max_srq: c_int,
    pub max_srq_wr: c_int,
    pub max_srq_sge: c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

/// `struct ibv_port_attr`, with room behind it: the structure has grown once, and what the library writes must fit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PortAttr {
    pub state: c_int,
    pub max_mtu: c_int,
    pub active_mtu: c_int,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
    _room: [u8; 72],
}

/// [`PortAttr::state`]: messages can be sent.
pub const PORT_ACTIVE: c_int = 4;
/// [`PortAttr::link_layer`]: InfiniBand (0 means the same, in old drivers).
pub const LINK_INFINIBAND: u8 = 1;
/// [`PortAttr::link_layer`]: Ethernet, so RoCE.
pub const LINK_ETHERNET: u8 = 2;

/// `struct ibv_gid_entry`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct GidEntry {
    pub gid: Gid,
    pub gid_index: u32,
    pub port_num: u32,
    pub gid_type: u32,
    pub ndev_ifindex: u32,
}

/// [`GidEntry::gid_type`]: InfiniBand.
pub const GID_IB: u32 = 0;
/// [`GidEntry::gid_type`]: RoCE version 1.
pub const GID_ROCE_V1: u32 = 1;
/// [`GidEntry::gid_type`]: RoCE version 2.
pub const GID_ROCE_V2: u32 = 2;

/// `struct ibv_global_route`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct GlobalRoute {
    pub dgid: Gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

/// `struct ibv_ah_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AhAttr {
    pub grh: GlobalRoute,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

/// `struct ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct QpCap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub struct QpInitAttr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub cap: QpCap,
    pub qp_type: c_int,
    pub sq_sig_all: c_int,
}

/// [`QpInitAttr::qp_type`]: reliable connection.
pub const QPT_RC: c_int = 2;
/// [`QpInitAttr::qp_type`]: unreliable datagram.
pub const QPT_UD: c_int = 4;

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpAttr {
    pub qp_state: c_int,
    pub cur_qp_state: c_int,
    pub path_mtu: c_int,
    pub path_mig_state: c_int,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_uint,
    pub cap: QpCap,
    pub ah_attr: AhAttr,
    pub alt_ah_attr: AhAttr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}

/// States of a queue pair, [`QpAttr::qp_state`].
pub mod state {
    use std::ffi::c_int;
    /// Made, and nothing else.
    pub const RESET: c_int = 0;
    /// Receives may be posted.
    pub const INIT: c_int = 1;
    /// Ready to receive.
    pub const RTR: c_int = 2;
    /// Ready to send.
    pub const RTS: c_int = 3;
    /// Every work request is flushed with an error.
    pub const ERR: c_int = 6;
}

bitflags! {
    /// `enum ibv_qp_attr_mask`: which fields of a [`QpAttr`] count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct QpAttrMask: c_int {
        const STATE = 1;
        const ACCESS_FLAGS = 1 << 3;
        const PKEY_INDEX = 1 << 4;
        const PORT = 1 << 5;
        const QKEY = 1 << 6;
        const AV = 1 << 7;
        const PATH_MTU = 1 << 8;
        const TIMEOUT = 1 << 9;
        const RETRY_CNT = 1 << 10;
        const RNR_RETRY = 1 << 11;
        const RQ_PSN = 1 << 12;
        const MAX_QP_RD_ATOMIC = 1 << 13;
        const MIN_RNR_TIMER = 1 << 15;
        const SQ_PSN = 1 << 16;
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        const DEST_QPN = 1 << 20;
    }

    /// `enum ibv_access_flags`: what may be done to a region or through a queue pair.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: c_int {
        const LOCAL_WRITE = 1;
        const REMOTE_WRITE = 1 << 1;
        const REMOTE_READ = 1 << 2;
        const REMOTE_ATOMIC = 1 << 3;
    }

    /// `enum ibv_send_flags`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SendFlags: c_uint {
        /// Starts only when all earlier reads and atomics of the queue pair have completed.
        const FENCE = 1;
        /// A successful completion is reported too.
        const SIGNALED = 1 << 1;
        /// Wakes a receiver that asked for solicited events only.
        const SOLICITED = 1 << 2;
        /// The data is copied when the request is posted.
        const INLINE = 1 << 3;
    }
}

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

/// The operation of a [`SendWr`].
pub mod opcode {
    use std::ffi::c_int;
    pub const RDMA_WRITE: c_int = 0;
    pub const RDMA_WRITE_WITH_IMM: c_int = 1;
    pub const SEND: c_int = 2;
    pub const RDMA_READ: c_int = 4;
    pub const ATOMIC_CMP_AND_SWP: c_int = 5;
    pub const ATOMIC_FETCH_AND_ADD: c_int = 6;
}

/// Where an RDMA write or read goes to or comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

/// A remote atomic operation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

/// Whom a datagram is for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    pub ah: *mut Ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

/// The part of a [`SendWr`] that depends on its operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Target {
    pub rdma: Rdma,
    pub atomic: Atomic,
    pub ud: Datagram,
}

/// `struct ibv_send_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SendWr {
    pub wr_id: u64,
    pub next: *mut SendWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
    pub opcode: c_int,
    pub send_flags: c_uint,
    /// In network order.
    pub imm_data: u32,
    pub wr: Target,
    _xrc: u32,
    /// Read for requests of other kinds only.
    _bind: std::mem::MaybeUninit<[u64; 6]>,
}

impl SendWr {
    /// A request of no data; the caller sets what it needs.
    pub fn new(opcode: c_int, flags: SendFlags, wr: Target) -> SendWr {
        SendWr {
            wr_id: 0,
            next: std::ptr::null_mut(),
            sg_list: std::ptr::null_mut(),
            num_sge: 0,
            opcode,
            send_flags: flags.bits(),
            imm_data: 0,
            wr,
            _xrc: 0,
            _bind: std::mem::MaybeUninit::uninit(),
        }
    }
}

/// `struct ibv_recv_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RecvWr {
    pub wr_id: u64,
    pub next: *mut RecvWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wc {
    pub wr_id: u64,
    pub status: c_int,
    pub opcode: c_int,
    pub vendor_err: u32,
    pub byte_len: u32,
    /// In network order.
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

/// Values of [`Wc::status`] that are told apart.
pub mod wc_status {
    use std::ffi::c_int;
    pub const SUCCESS: c_int = 0;
    pub const LOCAL_QP_OP: c_int = 2;
    pub const FLUSHED: c_int = 5;
    pub const REMOTE_ACCESS: c_int = 10;
    pub const RETRY_EXCEEDED: c_int = 12;
    pub const RNR_RETRY_EXCEEDED: c_int = 13;
}

/// [`Wc::opcode`]: set in completions of receives.
pub const WC_RECV: c_int = 1 << 7;
/// [`Wc::opcode`]: a receive that was used up by a write with immediate data.
pub const WC_RECV_RDMA_WITH_IMM: c_int = WC_RECV + 1;

/// `struct ibv_srq_init_attr`.
#[repr(C)]
pub struct SrqInitAttr {
    pub srq_context: *mut c_void,
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}

/// `struct ibv_async_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AsyncEvent {
    pub element: *mut c_void,
    pub event_type: c_int,
}

/// `enum ibv_event_type`, those that end something.
#[expect(missing_docs, reason = "documented in ibv_get_async_event(3)")]
pub mod event {
    use std::ffi::c_int;
    pub const CQ_ERR: c_int = 0;
    pub const QP_FATAL: c_int = 1;
    pub const QP_REQ_ERR: c_int = 2;
    pub const QP_ACCESS_ERR: c_int = 3;
    pub const DEVICE_FATAL: c_int = 8;
    pub const SRQ_ERR: c_int = 14;
}

layouts! {
    Context = "ibv_context", 0, { device: 0, ops: 8, cmd_fd: 264, async_fd: 268, num_comp_vectors: 272 }
    ContextOps = "ibv_context_ops", 256, { poll_cq: 88, req_notify_cq: 96, post_srq_recv: 160, post_send: 200, post_recv: 208 }
    CompChannel = "ibv_comp_channel", 0, { context: 0, fd: 8 }
    Cq = "ibv_cq", 0, { context: 0, channel: 8, cq_context: 16, handle: 24, cqe: 28 }
    Srq = "ibv_srq", 0, { context: 0 }
    Qp = "ibv_qp", 0, { context: 0, qp_num: 52 }
    Mr = "ibv_mr", 48, { addr: 16, length: 24, handle: 32, lkey: 36, rkey: 40 }
    DeviceAttr = "ibv_device_attr", 232, {
        fw_ver: 0, node_guid: 64, max_mr_size: 80, max_qp: 108, max_qp_wr: 112, max_sge: 120, max_cqe: 132, max_mr: 136,
        max_qp_rd_atom: 144, max_qp_init_rd_atom: 156, atomic_cap: 164, max_ah: 200, max_srq: 212, max_srq_wr: 216,
        max_pkeys: 224, phys_port_cnt: 227,
    }
    PortAttr = "ibv_port_attr", 0, {
        state: 0, max_mtu: 4, active_mtu: 8, gid_tbl_len: 12, max_msg_sz: 20, pkey_tbl_len: 32, lid: 34, sm_lid: 36, sm_sl: 40,
        link_layer: 46, flags: 47, port_cap_flags2: 48,
    }
    GidEntry = "ibv_gid_entry", 32, { gid: 0, gid_index: 16, port_num: 20, gid_type: 24, ndev_ifindex: 28 }
    GlobalRoute = "ibv_global_route", 24, { dgid: 0, flow_label: 16, sgid_index: 20, hop_limit: 21, traffic_class: 22 }
    AhAttr = "ibv_ah_attr", 32, { grh: 0, dlid: 24, sl: 26, src_path_bits: 27, static_rate: 28, is_global: 29, port_num: 30 }
    QpCap = "ibv_qp_cap", 20, { max_send_wr: 0, max_recv_wr: 4, max_send_sge: 8, max_recv_sge: 12, max_inline_data: 16 }
    QpInitAttr = "ibv_qp_init_attr", 64, { send_cq: 8, recv_cq: 16, srq: 24, cap: 32, qp_type: 52, sq_sig_all: 56 }
    QpAttr = "ibv_qp_attr", 144, {
        qp_state: 0, path_mtu: 8, qkey: 16, rq_psn: 20, sq_psn: 24, dest_qp_num: 28, qp_access_flags: 32, cap: 36, ah_attr: 56,
        alt_ah_attr: 88, pkey_index: 120, max_rd_atomic: 126, max_dest_rd_atomic: 127, min_rnr_timer: 128, port_num: 129,
        timeout: 130, retry_cnt: 131, rnr_retry: 132, rate_limit: 136,
    }
    Sge = "ibv_sge", 16, { addr: 0, length: 8, lkey: 12 }
    SendWr = "ibv_send_wr", 128, {
        wr_id: 0, next: 8, sg_list: 16, num_sge: 24, opcode: 28, send_flags: 32, imm_data: 36, wr: 40,
    }
    RecvWr = "ibv_recv_wr", 32, { wr_id: 0, next: 8, sg_list: 16, num_sge: 24 }
    Wc = "ibv_wc", 48, {
        wr_id: 0, status: 8, opcode: 12, vendor_err: 16, byte_len: 20, imm_data: 24, qp_num: 28, src_qp: 32, wc_flags: 36,
    }
    SrqInitAttr = "ibv_srq_init_attr", 24, {
        srq_context: 0, max_wr as "attr.max_wr": 8, max_sge as "attr.max_sge": 12, srq_limit as "attr.srq_limit": 16,
    }
    AsyncEvent = "ibv_async_event", 16, { element: 0, event_type: 8 }
}

static_assertions::const_assert!(size_of::<Target>() == 32 && size_of::<Gid>() == 16);
static_assertions::const_assert!(core::mem::offset_of!(Atomic, rkey) == 24 && core::mem::offset_of!(Rdma, rkey) == 8);
static_assertions::const_assert!(core::mem::offset_of!(Datagram, remote_qpn) == 8);
static_assertions::const_assert!(size_of::<PortAttr>() >= 56 + 64);
