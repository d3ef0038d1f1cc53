//! The declarations against those of the crate `ibverbs-sys`, which are made from the header of rdma-core by a program; and the devices that
//! are here, opened through that crate and by our own loader, side by side.
//!
//! Only with the feature `ibverbs`. What can be compared when compiled is: where something differs this file does not compile. The names
//! of structures, fields and constants are those of the header, to be found by searching for them.

use std::ffi::{CStr, c_int};
use std::mem::{offset_of, size_of};

use fmpl::fabric::verbs::device::{Device, GidKind, mtu_bytes, mtu_code, names};
use fmpl::fabric::verbs::ffi::{self, Access, LAYOUTS, QpAttrMask, SendFlags, event, opcode, state, wc_status};
use fmpl::fabric::verbs::load::Library;
use ibverbs_sys::*;

// ---- layouts

const fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// Asserts that fields lie at the same places and have the same sizes, and lists them. `whole`: the structures have one size, too.
macro_rules! same_layouts {
    ($( $ours:ident = $theirs:ident $whole:literal { $($f:ident $(as $tf:ident)?),* $(,)? } )*) => {
        $( const _: () = {
            assert!(!$whole || size_of::<ffi::$ours>() == size_of::<$theirs>());
            assert!(size_of::<ffi::$ours>() % align_of::<$theirs>() == 0 && align_of::<ffi::$ours>() == align_of::<$theirs>());
            $( same_layouts!(@field $ours $theirs $f $($tf)? ); )*
        }; )*
        /// What was compared: the header's names of structures, and our names of fields.
        const COMPARED: &[(&str, &[&str])] = &[ $( (stringify!($theirs), &[ $( stringify!($f) ),* ]) ),* ];
    };
    (@field $ours:ident $theirs:ident $f:ident) => { same_layouts!(@field $ours $theirs $f $f) };
    (@field $ours:ident $theirs:ident $f:ident $tf:ident) => {
        assert!(offset_of!(ffi::$ours, $f) == offset_of!($theirs, $tf));
        assert!(size_of_field(|s: &ffi::$ours| &s.$f) == size_of_field(|s: &$theirs| &s.$tf));
    };
}

same_layouts! {
    Context = ibv_context false { device, ops, cmd_fd, async_fd, num_comp_vectors }
    ContextOps = ibv_context_ops true { poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv }
    CompChannel = ibv_comp_channel false { context, fd }
    Cq = ibv_cq false { context, channel, cq_context, handle, cqe }
    Srq = ibv_srq false { context }
    Qp = ibv_qp false { context, qp_num }
    Mr = ibv_mr true { context, pd, addr, length, handle, lkey, rkey }
    DeviceAttr = ibv_device_attr true {
        fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id, vendor_part_id, hw_ver, max_qp, max_qp_wr,
        device_cap_flags, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom,
        max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp,
        max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr,
        max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt,
    }
    PortAttr = ibv_port_attr false {
        state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr, pkey_tbl_len, lid,
        sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer, flags,
        port_cap_flags2,
    }
    GidEntry = ibv_gid_entry true { gid, gid_index, port_num, gid_type, ndev_ifindex }
    GlobalRoute = ibv_global_route true { dgid, flow_label, sgid_index, hop_limit, traffic_class }
    AhAttr = ibv_ah_attr true { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
    QpCap = ibv_qp_cap true { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
    QpInitAttr = ibv_qp_init_attr true { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
    QpAttr = ibv_qp_attr true {
        qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr,
        alt_ah_attr, pkey_index, alt_pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic,
        min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit,
    }
    Sge = ibv_sge true { addr, length, lkey }
    SendWr = ibv_send_wr true { wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data as __bindgen_anon_1, wr }
    Rdma = ibv_send_wr__bindgen_ty_2__bindgen_ty_1 true { remote_addr, rkey }
    Atomic = ibv_send_wr__bindgen_ty_2__bindgen_ty_2 true { remote_addr, compare_add, swap, rkey }
    Datagram = ibv_send_wr__bindgen_ty_2__bindgen_ty_3 true { ah, remote_qpn, remote_qkey }
    RecvWr = ibv_recv_wr true { wr_id, next, sg_list, num_sge }
    // Its other fields are private there: see the test.
    Wc = ibv_wc true { imm_data, qp_num, src_qp, wc_flags, pkey_index, slid, sl, dlid_path_bits }
    AsyncEvent = ibv_async_event true { element, event_type }
}

// What is within another structure here or there, or a union.
const _: () = {
    assert!(size_of::<ffi::SrqInitAttr>() == size_of::<ibv_srq_init_attr>());
    assert!(offset_of!(ffi::SrqInitAttr, srq_context) == offset_of!(ibv_srq_init_attr, srq_context));
    assert!(offset_of!(ffi::SrqInitAttr, max_wr) == offset_of!(ibv_srq_init_attr, attr.max_wr));
    assert!(offset_of!(ffi::SrqInitAttr, max_sge) == offset_of!(ibv_srq_init_attr, attr.max_sge));
    assert!(offset_of!(ffi::SrqInitAttr, srq_limit) == offset_of!(ibv_srq_init_attr, attr.srq_limit));
    assert!(size_of::<ffi::Target>() == size_of::<ibv_send_wr__bindgen_ty_2>());
    assert!(size_of::<ffi::Gid>() == size_of::<ibv_gid>() && align_of::<ffi::Gid>() == align_of::<ibv_gid>());
    assert!(size_of::<ffi::PortAttr>() >= size_of::<ibv_port_attr>());
};

/// What our declaration asserts of itself, and a C program compares, is compared here too.
#[test]
fn every_structure_is_compared() {
    for (name, _, fields) in LAYOUTS {
        let compared = COMPARED.iter().find(|(n, _)| n == name).map(|(_, f)| *f);
        for (field, _) in *fields {
            let elsewhere = field.starts_with("attr.") || ["srq_context", "wr_id", "status"].contains(field);
            let of_wc = *name == "ibv_wc" && ["opcode", "vendor_err", "byte_len"].contains(field);
            assert!(elsewhere || of_wc || compared.is_some_and(|f| f.contains(field)), "{name}.{field}");
        }
    }
}

/// A work completion that we have written, as the crate reads it: its first fields are private there.
#[test]
fn a_completion_reads_the_same() {
    let ours = ffi::Wc {
        wr_id: 0x0102_0304_0506_0708,
        status: wc_status::FLUSHED,
        opcode: ffi::WC_RECV_RDMA_WITH_IMM,
        vendor_err: 0x1122_3344,
        byte_len: 0x5566_7788,
        ..ffi::Wc::default()
    };
    // SAFETY: as large, all of it numbers; status and opcode are numbers there as well.
    let theirs = unsafe { std::mem::transmute::<ffi::Wc, ibv_wc>(ours) };
    assert_eq!((theirs.wr_id(), theirs.len()), (0x0102_0304_0506_0708, 0x5566_7788));
    assert_eq!(theirs.error(), Some((ibv_wc_status::IBV_WC_WR_FLUSH_ERR, 0x1122_3344)));
    assert_eq!(theirs.opcode(), ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM);
}

// ---- numbers

macro_rules! same_numbers {
    ($( $ours:expr => $theirs:expr ),* $(,)?) => { $( const _: () = assert!($ours as i64 == $theirs as i64); )* };
}

same_numbers! {
    ffi::PORT_ACTIVE => ibv_port_state::IBV_PORT_ACTIVE,
    ffi::LINK_INFINIBAND => IBV_LINK_LAYER_INFINIBAND,
    ffi::LINK_ETHERNET => IBV_LINK_LAYER_ETHERNET,
    ffi::GID_IB => IBV_GID_TYPE_IB,
    ffi::GID_ROCE_V1 => IBV_GID_TYPE_ROCE_V1,
    ffi::GID_ROCE_V2 => IBV_GID_TYPE_ROCE_V2,
    ffi::QPT_RC => ibv_qp_type::IBV_QPT_RC,
    ffi::QPT_UD => ibv_qp_type::IBV_QPT_UD,
    state::RESET => ibv_qp_state::IBV_QPS_RESET,
    state::INIT => ibv_qp_state::IBV_QPS_INIT,
    state::RTR => ibv_qp_state::IBV_QPS_RTR,
    state::RTS => ibv_qp_state::IBV_QPS_RTS,
    state::ERR => ibv_qp_state::IBV_QPS_ERR,
    opcode::RDMA_WRITE => ibv_wr_opcode::IBV_WR_RDMA_WRITE,
    opcode::RDMA_WRITE_WITH_IMM => ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM,
    opcode::SEND => ibv_wr_opcode::IBV_WR_SEND,
    opcode::RDMA_READ => ibv_wr_opcode::IBV_WR_RDMA_READ,
    opcode::ATOMIC_CMP_AND_SWP => ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP,
    opcode::ATOMIC_FETCH_AND_ADD => ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD,
    wc_status::SUCCESS => ibv_wc_status::IBV_WC_SUCCESS,
    wc_status::LOCAL_QP_OP => ibv_wc_status::IBV_WC_LOC_QP_OP_ERR,
    wc_status::FLUSHED => ibv_wc_status::IBV_WC_WR_FLUSH_ERR,
    wc_status::REMOTE_ACCESS => ibv_wc_status::IBV_WC_REM_ACCESS_ERR,
    wc_status::RETRY_EXCEEDED => ibv_wc_status::IBV_WC_RETRY_EXC_ERR,
    wc_status::RNR_RETRY_EXCEEDED => ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR,
    ffi::WC_RECV => ibv_wc_opcode::IBV_WC_RECV,
    ffi::WC_RECV_RDMA_WITH_IMM => ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM,
    event::CQ_ERR => IBV_EVENT_CQ_ERR,
    event::QP_FATAL => IBV_EVENT_QP_FATAL,
    event::QP_REQ_ERR => IBV_EVENT_QP_REQ_ERR,
    event::QP_ACCESS_ERR => IBV_EVENT_QP_ACCESS_ERR,
    event::DEVICE_FATAL => IBV_EVENT_DEVICE_FATAL,
    event::SRQ_ERR => IBV_EVENT_SRQ_ERR,
}

/// Flags, and that there are no others of ours.
macro_rules! same_flags {
    ($( $ours:ident = $theirs:ident { $($f:ident => $tf:ident),* $(,)? } )*) => { $(
        $( const _: () = assert!($ours::$f.bits() as i64 == $theirs::$tf.0 as i64); )*
        const _: () = assert!($ours::all().bits() as i64 == (0 $(| $theirs::$tf.0 as i64)*));
    )* };
}

same_flags! {
    QpAttrMask = ibv_qp_attr_mask {
        STATE => IBV_QP_STATE, ACCESS_FLAGS => IBV_QP_ACCESS_FLAGS, PKEY_INDEX => IBV_QP_PKEY_INDEX, PORT => IBV_QP_PORT,
        QKEY => IBV_QP_QKEY, AV => IBV_QP_AV, PATH_MTU => IBV_QP_PATH_MTU, TIMEOUT => IBV_QP_TIMEOUT, RETRY_CNT => IBV_QP_RETRY_CNT,
        RNR_RETRY => IBV_QP_RNR_RETRY, RQ_PSN => IBV_QP_RQ_PSN, MAX_QP_RD_ATOMIC => IBV_QP_MAX_QP_RD_ATOMIC,
        MIN_RNR_TIMER => IBV_QP_MIN_RNR_TIMER, SQ_PSN => IBV_QP_SQ_PSN, MAX_DEST_RD_ATOMIC => IBV_QP_MAX_DEST_RD_ATOMIC,
        DEST_QPN => IBV_QP_DEST_QPN,
    }
    Access = ibv_access_flags {
        LOCAL_WRITE => IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE => IBV_ACCESS_REMOTE_WRITE, REMOTE_READ => IBV_ACCESS_REMOTE_READ,
        REMOTE_ATOMIC => IBV_ACCESS_REMOTE_ATOMIC,
    }
    SendFlags = ibv_send_flags {
        FENCE => IBV_SEND_FENCE, SIGNALED => IBV_SEND_SIGNALED, SOLICITED => IBV_SEND_SOLICITED, INLINE => IBV_SEND_INLINE,
    }
}

#[test]
fn packet_sizes_have_the_same_numbers() {
    let all =
        [(IBV_MTU_256, 256), (IBV_MTU_512, 512), (IBV_MTU_1024, 1024), (IBV_MTU_2048, 2048), (IBV_MTU_4096, 4096)];
    for (number, bytes) in all {
        assert_eq!((mtu_bytes(number as c_int), mtu_code(bytes)), (bytes, number as c_int));
    }
}

// ---- functions

/// Bytes of the arguments of a function, and of what it returns.
trait Signature {
    const BYTES: &[usize];
}
macro_rules! signatures {
    ($( ($($a:ident),*) )*) => { $(
        impl<$($a,)* R> Signature for unsafe extern "C" fn($($a),*) -> R {
            const BYTES: &[usize] = &[$(size_of::<$a>(),)* size_of::<R>()];
        }
    )* };
}
signatures! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

fn bytes_of_ours<F: Signature>(_: fn(&Library) -> F) -> &'static [usize] {
    F::BYTES
}
fn bytes_of<F: Signature>(_: F) -> &'static [usize] {
    F::BYTES
}

macro_rules! same_functions {
    ($( $ours:ident = $theirs:ident($($a:tt),*) ),* $(,)?) => { $(
        let theirs = bytes_of($theirs as unsafe extern "C" fn($($a),*) -> _);
        assert_eq!(bytes_of_ours(|l| l.$ours), theirs, stringify!($theirs));
    )* };
}

#[test]
fn functions_take_and_return_the_same() {
    same_functions! {
        get_device_list = ibv_get_device_list(_), free_device_list = ibv_free_device_list(_), get_device_name = ibv_get_device_name(_),
        open_device = ibv_open_device(_), close_device = ibv_close_device(_), query_device = ibv_query_device(_, _),
        query_port = ibv_query_port(_, _, _), query_gid = ibv_query_gid(_, _, _, _), query_pkey = ibv_query_pkey(_, _, _, _),
        alloc_pd = ibv_alloc_pd(_), dealloc_pd = ibv_dealloc_pd(_), reg_mr = ibv_reg_mr(_, _, _, _), dereg_mr = ibv_dereg_mr(_),
        create_comp_channel = ibv_create_comp_channel(_), destroy_comp_channel = ibv_destroy_comp_channel(_),
        create_cq = ibv_create_cq(_, _, _, _, _), destroy_cq = ibv_destroy_cq(_), get_cq_event = ibv_get_cq_event(_, _, _),
        ack_cq_events = ibv_ack_cq_events(_, _), resize_cq = ibv_resize_cq(_, _), get_async_event = ibv_get_async_event(_, _),
        ack_async_event = ibv_ack_async_event(_), create_srq = ibv_create_srq(_, _), destroy_srq = ibv_destroy_srq(_),
        create_qp = ibv_create_qp(_, _), destroy_qp = ibv_destroy_qp(_), modify_qp = ibv_modify_qp(_, _, _),
        create_ah = ibv_create_ah(_, _), destroy_ah = ibv_destroy_ah(_), attach_mcast = ibv_attach_mcast(_, _, _),
        detach_mcast = ibv_detach_mcast(_, _, _), wc_status_str = ibv_wc_status_str(_),
    }
}

// ---- devices

/// The devices of this machine, opened through the crate: with the name of each.
struct Theirs {
    list: *mut *mut ibv_device,
    open: Vec<(String, *mut ibv_device, *mut ibv_context)>,
}

impl Theirs {
    fn open() -> Theirs {
        let mut n = 0;
        // SAFETY: a writable number; the list has so many entries, whose names end with NUL; a null list has none.
        unsafe {
            let list = ibv_get_device_list(&mut n);
            let all = (0..if list.is_null() { 0 } else { n as usize }).map(|i| {
                let device = *list.add(i);
                let name = CStr::from_ptr(ibv_get_device_name(device)).to_string_lossy().into_owned();
                let context = ibv_open_device(device);
                assert!(!context.is_null(), "{name}: {}", std::io::Error::last_os_error());
                (name, device, context)
            });
            Theirs { open: all.collect(), list }
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: opened above, and closed once.
        unsafe {
            self.open.iter().for_each(|(_, _, context)| assert_eq!(ibv_close_device(*context), 0));
            if !self.list.is_null() {
                ibv_free_device_list(self.list);
            }
        }
    }
}

/// Fields of two structures, ours and the crate's, which must be equal.
macro_rules! same_values {
    ($ours:expr, $theirs:expr, $what:expr, $($f:ident),* $(,)?) => { $(
        assert_eq!($ours.$f as i128, $theirs.$f as i128, "{}: {}", $what, stringify!($f));
    )* };
}

#[test]
fn a_device_says_the_same_through_the_crate() {
    let theirs = Theirs::open();
    let all: Vec<&String> = theirs.open.iter().map(|(name, ..)| name).collect();
    assert_eq!(names().unwrap_or_default().iter().collect::<Vec<_>>(), all);
    if all.is_empty() {
        crate::skip::note("a_device_says_the_same_through_the_crate", "there is no RDMA device");
    }
    for (name, device, context) in &theirs.open {
        let ours = Device::open(name).expect("it opens");
        // SAFETY: the crate's structures are numbers, for which zero will do; device and context are open, and the places of the right types.
        // The port's is asked for under its first name, which writes what is there: the crate's structure is its newest, and longest.
        unsafe {
            let mut attr: ibv_device_attr = std::mem::zeroed();
            assert_eq!(ibv_query_device(*context, &mut attr), 0);
            same_values!(
                ours.attr(),
                attr,
                name,
                node_guid,
                sys_image_guid,
                max_mr_size,
                page_size_cap,
                vendor_id,
                vendor_part_id,
                hw_ver,
                max_qp,
                max_qp_wr,
                device_cap_flags,
                max_sge,
                max_sge_rd,
                max_cq,
                max_cqe,
                max_mr,
                max_pd,
                max_qp_rd_atom,
                max_res_rd_atom,
                max_qp_init_rd_atom,
                atomic_cap,
                max_mcast_grp,
                max_mcast_qp_attach,
                max_ah,
                max_srq,
                max_srq_wr,
                max_srq_sge,
                max_pkeys,
                local_ca_ack_delay,
                phys_port_cnt,
            );
            assert_eq!(ours.attr().fw_ver, attr.fw_ver, "{name}");
            assert_eq!(ours.attr().node_guid, ibv_get_device_guid(*device), "{name}");
            assert!(attr.max_qp > 0 && attr.phys_port_cnt > 0, "{name}: {attr:?}");
            for number in 1..=attr.phys_port_cnt {
                let mut port: ibv_port_attr = std::mem::zeroed();
                assert_eq!(ibv_query_port(*context, number, (&raw mut port).cast()), 0);
                let mine = ours.port(number).expect("the port answers");
                same_values!(
                    mine,
                    port,
                    name,
                    state,
                    max_mtu,
                    active_mtu,
                    gid_tbl_len,
                    port_cap_flags,
                    max_msg_sz,
                    pkey_tbl_len,
                    lid,
                    sm_lid,
                    lmc,
                    max_vl_num,
                    sm_sl,
                    subnet_timeout,
                    init_type_reply,
                    active_width,
                    active_speed,
                    phys_state,
                    link_layer,
                    flags,
                );
                let addresses = ours.addresses(number).expect("the port has addresses");
                assert!(!addresses.is_empty(), "{name}:{number}");
                let mut entries =
                    vec![std::mem::zeroed::<ibv_gid_entry>(); port.gid_tbl_len as usize * attr.phys_port_cnt as usize];
                let n =
                    _ibv_query_gid_table(*context, entries.as_mut_ptr(), entries.len(), 0, size_of::<ibv_gid_entry>());
                entries.truncate(usize::try_from(n).expect("the table of addresses"));
                entries.retain(|e| e.port_num == number as u32 && e.gid_index < 256);
                assert_eq!(addresses.len(), entries.len(), "{name}:{number}");
                for (address, entry) in addresses.iter().zip(&entries) {
                    let mut gid: ibv_gid = std::mem::zeroed();
                    assert_eq!(ibv_query_gid(*context, number, address.index as c_int, &mut gid), 0);
                    assert_eq!((address.gid.0, address.gid.0), (gid.raw, entry.gid.raw), "{name}: {address}");
                    assert_eq!(address.index as u32, entry.gid_index);
                    let first = address.kind == GidKind::V1;
                    assert_eq!(first, entry.gid_type == IBV_GID_TYPE_ROCE_V1, "{name}: {address}");
                }
                for (index, key) in ours.pkeys(number).expect("the port has partitions").into_iter().enumerate() {
                    let mut theirs = 0;
                    assert_eq!(ibv_query_pkey(*context, number, index as c_int, &mut theirs), 0);
                    assert_eq!(key, u16::from_be(theirs), "{name}:{number}");
                }
                println!(
                    "{name}:{number}: {} addresses, state {}, MTU {}",
                    addresses.len(),
                    mine.state,
                    mine.active_mtu
                );
            }
        }
    }
}

/// What the crate has made, seen through our declarations: the functions of the fast path, a queue, a queue pair, a region.
#[test]
fn what_the_crate_makes_has_our_layout() {
    let theirs = Theirs::open();
    for (name, _, context) in &theirs.open {
        // SAFETY: whatever is made here lives until it is destroyed at the end, in order; the buffer until after its region; our declarations
        // of these structures are what is being tested, and the compile-time checks above say that they reach no further than the crate's.
        unsafe {
            let (ours, theirs) = (&*context.cast::<ffi::Context>(), &**context);
            let table = [ours.ops.poll_cq.map(|f| f as usize), ours.ops.req_notify_cq.map(|f| f as usize)];
            assert_eq!(table, [theirs.ops.poll_cq.map(|f| f as usize), theirs.ops.req_notify_cq.map(|f| f as usize)]);
            let table = [ours.ops.post_send.map(|f| f as usize), ours.ops.post_recv.map(|f| f as usize)];
            assert_eq!(table, [theirs.ops.post_send.map(|f| f as usize), theirs.ops.post_recv.map(|f| f as usize)]);
            assert_eq!(ours.ops.post_srq_recv.map(|f| f as usize), theirs.ops.post_srq_recv.map(|f| f as usize));
            assert!(
                ours.ops.poll_cq.is_some() && ours.ops.post_send.is_some() && ours.ops.post_srq_recv.is_some(),
                "{name}"
            );
            assert_eq!(
                (ours.cmd_fd, ours.async_fd, ours.num_comp_vectors),
                (theirs.cmd_fd, theirs.async_fd, theirs.num_comp_vectors)
            );
            assert_eq!(ours.device.cast(), theirs.device);

            let pd = ibv_alloc_pd(*context);
            let channel = ibv_create_comp_channel(*context);
            assert!(!pd.is_null() && !channel.is_null(), "{name}: {}", std::io::Error::last_os_error());
            let cq = ibv_create_cq(*context, 16, context.cast(), channel, 0);
            assert!(!cq.is_null(), "{name}: {}", std::io::Error::last_os_error());
            let seen = &*cq.cast::<ffi::Cq>();
            assert_eq!(
                (seen.context.cast(), seen.channel.cast(), seen.cq_context),
                (*context, channel, context.cast())
            );
            assert_eq!((seen.handle, seen.cqe), ((*cq).handle, (*cq).cqe));
            assert!(seen.cqe >= 16 && (*channel.cast::<ffi::CompChannel>()).fd == (*channel).fd, "{name}");

            let mut srq_attr =
                ffi::SrqInitAttr { srq_context: std::ptr::null_mut(), max_wr: 8, max_sge: 1, srq_limit: 0 };
            let srq = ibv_create_srq(pd, (&raw mut srq_attr).cast());
            assert!(!srq.is_null() && (*srq.cast::<ffi::Srq>()).context.cast() == *context, "{name}");
            // Ours to the crate's function: a queue pair as the library makes them.
            let mut init = ffi::QpInitAttr {
                qp_context: std::ptr::null_mut(),
                send_cq: cq.cast(),
                recv_cq: cq.cast(),
                srq: srq.cast(),
                cap: ffi::QpCap {
                    max_send_wr: 4,
                    max_recv_wr: 0,
                    max_send_sge: 2,
                    max_recv_sge: 0,
                    max_inline_data: 64,
                },
                qp_type: ffi::QPT_RC,
                sq_sig_all: 0,
            };
            let qp = ibv_create_qp(pd, (&raw mut init).cast());
            assert!(!qp.is_null(), "{name}: {}", std::io::Error::last_os_error());
            assert!(init.cap.max_send_wr >= 4 && init.cap.max_inline_data >= 64, "{name}: {:?}", init.cap);
            assert_eq!((*qp.cast::<ffi::Qp>()).qp_num, (*qp).qp_num);
            assert_eq!(((*qp).srq, (*qp).send_cq, (*qp).qp_type as c_int), (srq, cq, ffi::QPT_RC));

            let mut memory = vec![0u8; 3 << 12];
            let access = (Access::LOCAL_WRITE | Access::REMOTE_READ).bits();
            let mr = ibv_reg_mr(pd, memory.as_mut_ptr().cast(), memory.len(), access);
            assert!(!mr.is_null(), "{name}: {}", std::io::Error::last_os_error());
            let seen = &*mr.cast::<ffi::Mr>();
            assert_eq!((seen.addr.cast(), seen.length), (memory.as_mut_ptr(), memory.len()));
            assert_eq!((seen.handle, seen.lkey, seen.rkey), ((*mr).handle, (*mr).lkey, (*mr).rkey));

            assert_eq!(
                [ibv_dereg_mr(mr), ibv_destroy_qp(qp), ibv_destroy_srq(srq), ibv_destroy_cq(cq)],
                [0; 4],
                "{name}"
            );
            assert_eq!([ibv_destroy_comp_channel(channel), ibv_dealloc_pd(pd)], [0; 2], "{name}");
        }
    }
}
