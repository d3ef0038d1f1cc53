//! Queue pairs: reliable connections (RC), which carry the lanes, and unreliable datagrams (UD), which carry their setting up.

use std::ffi::c_int;
use std::sync::Arc;

use super::completion::CompletionQueue;
use super::device::{Port, mtu_code};
use super::ffi::{self, Access, Gid, QpAttr, QpAttrMask, RecvWr, SendWr, state};
use super::protection::Protection;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::random;

/// Receives that are shared by several queue pairs.
pub struct SharedReceives {
    protection: Arc<Protection>,
    srq: *mut ffi::Srq,
}

// SAFETY: the library's functions may be called from any thread; drivers lock what must be locked.
unsafe impl Send for SharedReceives {}
// SAFETY: as above.
unsafe impl Sync for SharedReceives {}

impl SharedReceives {
    /// Room for `n` receives.
    pub fn new(protection: &Arc<Protection>, n: u32) -> Result<Arc<SharedReceives>> {
        let max_wr = n.min(protection.device.attr().max_srq_wr.max(1) as u32);
        let mut init = ffi::SrqInitAttr { srq_context: std::ptr::null_mut(), max_wr, max_sge: 1, srq_limit: 0 };
        // SAFETY: the domain lives, the structure is filled.
        let srq = unsafe { (protection.device.lib.create_srq)(protection.pd, &mut init) };
        if srq.is_null() {
            return Err(Error::system(format!("shared receives of {} (ibv_create_srq)", protection.device.name())));
        }
        Ok(Arc::new(SharedReceives { protection: protection.clone(), srq }))
    }

    /// Posts a receive of no bytes, for a write with immediate data to use up.
    pub fn post_empty(&self) -> Result<()> {
        let Some(post) = self.protection.device.ops().post_srq_recv else { return Err(absent(&self.protection)) };
        let mut wr = RecvWr { wr_id: 0, next: std::ptr::null_mut(), sg_list: std::ptr::null_mut(), num_sge: 0 };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the request is whole; the driver copies it.
        posted(unsafe { post(self.srq, &mut wr, &mut bad) }, "ibv_post_srq_recv")
    }
}

impl Drop for SharedReceives {
    fn drop(&mut self) {
        // SAFETY: made in `new`; queue pairs hold it, so none is left.
        unsafe { (self.protection.device.lib.destroy_srq)(self.srq) };
    }
}

#[cold]
fn absent(protection: &Protection) -> Error {
    error!(Code::Unsupported, "the driver of {} lacks a call", protection.device.name())
}

fn posted(r: c_int, call: &str) -> Result<()> {
    if r == 0 {
        return Ok(());
    }
    let why = std::io::Error::from_raw_os_error(r.abs());
    Err(error!(Code::System, "{call}: {why}"))
}

/// What a queue pair is to have room for.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Send requests under way.
    pub sends: u32,
    /// Receive requests (without shared receives).
    pub receives: u32,
    /// Pieces of a request.
    pub pieces: u32,
    /// Bytes that may be sent inline.
    pub inline: u32,
}

/// The other end of a reliable connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Number of its queue pair.
    pub qp_num: u32,
    /// Its first packet's number.
    pub psn: u32,
    /// Its port's address.
    pub gid: Gid,
    /// Its port's address in the subnet (InfiniBand).
    pub lid: u16,
    /// Bytes in a packet at most.
    pub mtu: u32,
}

/// A number for a connection's first packet that nobody could have guessed, so that nobody can add packets to it.
pub fn first_packet() -> Result<u32> {
    Ok(u32::from_le_bytes(random()?) & 0xff_ffff)
}

/// A queue pair.
pub struct QueuePair {
    protection: Arc<Protection>,
    _send: Arc<CompletionQueue>,
    _receive: Arc<CompletionQueue>,
    _shared: Option<Arc<SharedReceives>>,
    port: Port,
    qp: *mut ffi::Qp,
    /// What it has room for.
    pub depth: Depth,
}

// SAFETY: the library's functions may be called from any thread; drivers lock what must be locked.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

/// A reliable connection gives up on a peer after so many repetitions (Soft-RoCE takes 7 for no end) …
const RETRIES: u8 = 6;
/// … each after 4.096 µs × 2^this: 537 ms. Shorter ones take a busy node for a dead one; what is lost is repeated sooner, since waits see to it
/// (`link::under_way`).
const RETRY_TIMEOUT: u8 = 17;
/// After so long a device has given up (some take up to four times as long as they are told).
pub(super) const SILENCE_MOST_NS: u64 = 5_000_000_000;
/// And, when the peer has no receive posted, never: the receives are replenished by a thread of the library.
const RNR_RETRIES: u8 = 7;

/// The first multicast address of an InfiniBand subnet; Ethernet has none, and drivers ask for one all the same.
const MULTICAST_LID: u16 = 0xc000;

impl QueuePair {
    fn new(
        protection: &Arc<Protection>,
        port: &Port,
        qp_type: c_int,
        queues: [&Arc<CompletionQueue>; 2],
        shared: Option<&Arc<SharedReceives>>,
        depth: Depth,
    ) -> Result<QueuePair> {
        let attr = protection.device.attr();
        let mut depth = Depth {
            sends: depth.sends.min(attr.max_qp_wr.max(1) as u32),
            pieces: depth.pieces.min(attr.max_sge.max(1) as u32),
            ..depth
        };
        // What a device takes inline is found out by asking for it.
        loop {
            let mut init = ffi::QpInitAttr {
                qp_context: std::ptr::null_mut(),
                send_cq: queues[0].cq,
                recv_cq: queues[1].cq,
                srq: shared.map_or(std::ptr::null_mut(), |s| s.srq),
                cap: ffi::QpCap {
                    max_send_wr: depth.sends,
                    max_recv_wr: if shared.is_some() { 0 } else { depth.receives },
                    max_send_sge: depth.pieces,
                    max_recv_sge: 1,
                    max_inline_data: depth.inline,
                },
                qp_type,
                sq_sig_all: 0,
            };
            // SAFETY: everything named in the structure lives, and is held by the queue pair from now on.
            let qp = unsafe { (protection.device.lib.create_qp)(protection.pd, &mut init) };
            if !qp.is_null() {
                return Ok(QueuePair {
                    protection: protection.clone(),
                    _send: queues[0].clone(),
                    _receive: queues[1].clone(),
                    _shared: shared.cloned(),
                    port: port.clone(),
                    qp,
                    depth,
                });
            }
            if depth.inline == 0 {
                return Err(Error::system(format!("a queue pair of {} (ibv_create_qp)", protection.device.name())));
            }
            depth.inline = if depth.inline > 64 { depth.inline / 2 } else { 0 };
        }
    }

    /// One end of a reliable connection, to be [connected](QueuePair::connect).
    pub fn reliable(
        protection: &Arc<Protection>,
        port: &Port,
        queues: [&Arc<CompletionQueue>; 2],
        shared: &Arc<SharedReceives>,
        depth: Depth,
    ) -> Result<QueuePair> {
        let qp = QueuePair::new(protection, port, ffi::QPT_RC, queues, Some(shared), depth)?;
        let mut attr = QpAttr {
            qp_state: state::INIT,
            qp_access_flags: (Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).bits() as u32,
            pkey_index: port.pkey.0,
            port_num: port.number,
            ..QpAttr::default()
        };
        qp.modify(&mut attr, QpAttrMask::STATE | QpAttrMask::ACCESS_FLAGS | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT)?;
        Ok(qp)
    }

    /// A datagram queue pair that sends and receives at once.
    pub fn datagrams(
        protection: &Arc<Protection>,
        port: &Port,
        queues: [&Arc<CompletionQueue>; 2],
        depth: Depth,
        qkey: u32,
    ) -> Result<QueuePair> {
        let qp = QueuePair::new(protection, port, ffi::QPT_UD, queues, None, depth)?;
        let mut attr =
            QpAttr { qp_state: state::INIT, pkey_index: port.pkey.0, port_num: port.number, qkey, ..QpAttr::default() };
        qp.modify(&mut attr, QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY)?;
        attr = QpAttr { qp_state: state::RTR, ..QpAttr::default() };
        qp.modify(&mut attr, QpAttrMask::STATE)?;
        attr = QpAttr { qp_state: state::RTS, ..QpAttr::default() };
        qp.modify(&mut attr, QpAttrMask::STATE | QpAttrMask::SQ_PSN)?;
        Ok(qp)
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair lives as long as self.
        unsafe { (*self.qp).qp_num }
    }

    /// Connects to the other end: ready to receive, then ready to send. `psn` is this end's first packet number.
    pub fn connect(&self, remote: &Remote, psn: u32) -> Result<()> {
        let reads = self.protection.device.attr().max_qp_rd_atom.clamp(1, 16) as u8;
        let first = self.protection.device.attr().max_qp_init_rd_atom.clamp(1, 16) as u8;
        let mut attr = QpAttr {
            qp_state: state::RTR,
            path_mtu: mtu_code(remote.mtu.min(self.port.mtu)),
            dest_qp_num: remote.qp_num,
            rq_psn: remote.psn,
            max_dest_rd_atomic: reads,
            min_rnr_timer: 12,
            ah_attr: route(&self.port, remote.gid, remote.lid),
            ..QpAttr::default()
        };
        self.modify(
            &mut attr,
            QpAttrMask::STATE
                | QpAttrMask::AV
                | QpAttrMask::PATH_MTU
                | QpAttrMask::DEST_QPN
                | QpAttrMask::RQ_PSN
                | QpAttrMask::MAX_DEST_RD_ATOMIC
                | QpAttrMask::MIN_RNR_TIMER,
        )?;
        let mut attr = QpAttr {
            qp_state: state::RTS,
            timeout: RETRY_TIMEOUT,
            retry_cnt: RETRIES,
            rnr_retry: RNR_RETRIES,
            sq_psn: psn,
            max_rd_atomic: first,
            ..QpAttr::default()
        };
        self.modify(
            &mut attr,
            QpAttrMask::STATE
                | QpAttrMask::TIMEOUT
                | QpAttrMask::RETRY_CNT
                | QpAttrMask::RNR_RETRY
                | QpAttrMask::SQ_PSN
                | QpAttrMask::MAX_QP_RD_ATOMIC,
        )
    }

    /// A datagram queue pair takes what is sent to this multicast address from now on.
    pub fn attach(&self, group: Gid) -> Result<()> {
        // SAFETY: the queue pair lives, the address is readable.
        let r = unsafe { (self.protection.device.lib.attach_mcast)(self.qp, &group, MULTICAST_LID) };
        posted(r, "ibv_attach_mcast")
    }
    /// It does not any more.
    pub fn detach(&self, group: Gid) -> Result<()> {
        // SAFETY: as above.
        let r = unsafe { (self.protection.device.lib.detach_mcast)(self.qp, &group, MULTICAST_LID) };
        posted(r, "ibv_detach_mcast")
    }

    /// Puts it into the error state: what is under way is flushed, and the other end can reach nothing by it any more.
    pub fn break_off(&self) -> Result<()> {
        let mut attr = QpAttr { qp_state: state::ERR, ..QpAttr::default() };
        self.modify(&mut attr, QpAttrMask::STATE)
    }

    fn modify(&self, attr: &mut QpAttr, mask: QpAttrMask) -> Result<()> {
        // SAFETY: the queue pair lives, the structure is filled.
        let r = unsafe { (self.protection.device.lib.modify_qp)(self.qp, attr, mask.bits()) };
        if r != 0 {
            let why = std::io::Error::from_raw_os_error(r.abs());
            return Err(error!(
                Code::System,
                "queue pair {} of {} into state {} (ibv_modify_qp): {why}",
                self.number(),
                self.port,
                attr.qp_state
            ));
        }
        Ok(())
    }

    /// Posts a list of send requests.
    ///
    /// # Safety
    /// The requests and their pieces are whole; memory that they name stays registered and, unless inline, unchanged until
    /// they have completed.
    #[inline]
    pub unsafe fn post(&self, wr: &mut SendWr) -> Result<()> {
        let Some(post) = self.protection.device.ops().post_send else { return Err(absent(&self.protection)) };
        let mut bad = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        posted(unsafe { post(self.qp, wr, &mut bad) }, "ibv_post_send")
    }

    /// Posts a receive of up to `len` bytes at `at`.
    ///
    /// # Safety
    /// The memory is registered under `lkey` and stays so, used by nobody else, until the receive has completed.
    pub unsafe fn post_receive(&self, wr_id: u64, at: u64, len: u32, lkey: u32) -> Result<()> {
        let Some(post) = self.protection.device.ops().post_recv else { return Err(absent(&self.protection)) };
        let mut sge = ffi::Sge { addr: at, length: len, lkey };
        let mut wr = RecvWr { wr_id, next: std::ptr::null_mut(), sg_list: &mut sge, num_sge: 1 };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the request is whole; the driver copies it with its piece.
        posted(unsafe { post(self.qp, &mut wr, &mut bad) }, "ibv_post_recv")
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe { (self.protection.device.lib.destroy_qp)(self.qp) };
    }
}

/// The way from a port to an address.
fn route(port: &Port, gid: Gid, lid: u16) -> ffi::AhAttr {
    ffi::AhAttr {
        grh: ffi::GlobalRoute {
            dgid: gid,
            sgid_index: port.address.index,
            hop_limit: 64,
            ..ffi::GlobalRoute::default()
        },
        dlid: lid,
        is_global: port.ethernet as u8,
        port_num: port.number,
        ..ffi::AhAttr::default()
    }
}

/// The address of a peer for datagrams.
pub struct AddressHandle {
    protection: Arc<Protection>,
    pub(super) ah: *mut ffi::Ah,
}

// SAFETY: the library's functions may be called from any thread.
unsafe impl Send for AddressHandle {}
// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// The way from this port to that address. `None`: the network does not say now where that is. On Ethernet it is asked (ARP, or neighbour
    /// discovery), and question and answer may be lost like any packet.
    pub fn new(protection: &Arc<Protection>, port: &Port, gid: Gid, lid: u16) -> Result<Option<AddressHandle>> {
        let mut attr = route(port, gid, lid);
        // SAFETY: the domain lives, the structure is filled.
        let ah = unsafe { (protection.device.lib.create_ah)(protection.pd, &mut attr) };
        if !ah.is_null() {
            return Ok(Some(AddressHandle { protection: protection.clone(), ah }));
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT | libc::EHOSTUNREACH | libc::ETIMEDOUT | libc::EAGAIN) => Ok(None),
            _ => Err(Error::system(format!("a way from {port} to a peer (ibv_create_ah)"))),
        }
    }
}

impl AddressHandle {
    /// What a request to a datagram queue pair there has as its target.
    pub fn to(&self, qp_num: u32, qkey: u32) -> ffi::Target {
        ffi::Target { ud: ffi::Datagram { ah: self.ah, remote_qpn: qp_num, remote_qkey: qkey } }
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: made in `new`; requests that name it have completed.
        unsafe { (self.protection.device.lib.destroy_ah)(self.ah) };
    }
}
