//! Multicast groups over verbs: see [`network::multicast`](crate::fabric::network::multicast).
//!
//! A group is a multicast address that its members make of its name. On Ethernet (RoCE version 2) that is an IP address, and joining takes
//! two things: the queue pair is attached to the address, so that the device takes its packets, and a socket joins it on the port's network
//! interface, so that interface, switches and kernel bring them to the device.
//!
//! ```text
//!   packet:   at most the port's MTU
//!   memory:   [ headers, one for each packet of a window | an empty message | places of two windows, each 40 bytes longer than a packet ]
//! ```
//! Packets are sent from where the message lies, the header gathered from its own memory. They arrive in places of registered memory that the
//! device fills in turn, so those of one window are copied out while the next one's come. What is lost is for those above to find out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::completion::CompletionQueue;
use super::device::{GidKind, Port};
use super::ffi::{Gid, SendFlags, SendWr, Sge, Wc, opcode, wc_status};
use super::protection::Protection;
use super::queue_pair::{AddressHandle, Depth, QueuePair};
use crate::base::bytes::Bytes;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::{Key, random};
use crate::fabric::network::device::Access;
use crate::fabric::network::multicast::{Counts, GROUPS_MOST, Group, HEADER, Header, Name, WINDOW};
use crate::fabric::network::region::{Arena, Domain, Region};

/// Bytes that a receive has in front: the global route header.
const GRH: usize = 40;
/// The queue pair that stands for all members.
const EVERYBODY: u32 = 0xff_ffff;
/// How long packets may take to leave.
const LEAVING_NS: u64 = 5_000_000_000;

/// The address of a group of this name on a port like this. `Unsupported`: the port's kind has none.
fn address(name: &Name, port: &Port) -> Result<IpAddr> {
    let b = name.place.to_le_bytes();
    match port.address.kind {
        _ if !port.ethernet => Err(error!(
            Code::Unsupported,
            "{port}: a group on InfiniBand is made by the subnet manager, which is not asked"
        )),
        // RFC 2365: addresses within an organization, 239.192.0.0/14.
        GidKind::V2Ipv4 => Ok(IpAddr::V4(Ipv4Addr::new(239, 192 | b[0] & 3, b[1], b[2]))),
        // RFC 4291: transient, of the scope of a site (5).
        GidKind::V2Ipv6 | GidKind::V2LinkLocal => {
            let at = |k: usize| u16::from_le_bytes([b[k], b[k + 1]]);
            Ok(IpAddr::V6(Ipv6Addr::new(0xff15, 0, 0, 0, 0x464d, 0x504c, at(0), at(2))))
        }
        kind => Err(error!(Code::Unsupported, "{port}: {kind} has no multicast over IP")),
    }
}

fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(v4) => Gid(v4.to_ipv6_mapped().octets()),
        IpAddr::V6(v6) => Gid(v6.octets()),
    }
}

/// A socket that has joined the address on the port's network interface; the membership lasts as long as it.
fn join(port: &Port, address: IpAddr) -> Result<UdpSocket> {
    let cannot = |e: std::io::Error| error!(Code::Unsupported, "joining {address} on the interface of {port}: {e}");
    let socket = UdpSocket::bind(match address {
        IpAddr::V4(_) => "0.0.0.0:0",
        IpAddr::V6(_) => "[::]:0",
    });
    let socket = socket.map_err(cannot)?;
    let own = Ipv6Addr::from(port.address.gid.0);
    match (address, own.to_ipv4_mapped()) {
        (IpAddr::V4(group), Some(own)) => socket.join_multicast_v4(&group, &own).map_err(cannot)?,
        (IpAddr::V6(group), _) => socket.join_multicast_v6(&group, interface(port)?).map_err(cannot)?,
        _ => return Err(error!(Code::Unsupported, "{port} has no IPv4 address to join {address} by")),
    }
    Ok(socket)
}

/// The number of the network interface behind the port's address.
fn interface(port: &Port) -> Result<u32> {
    let path = format!(
        "/sys/class/infiniband/{}/ports/{}/gid_attrs/ndevs/{}",
        port.device.name(),
        port.number,
        port.address.index
    );
    let name = std::fs::read_to_string(&path).unwrap_or_default();
    let index = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", name.trim()));
    let index = index.ok().and_then(|text| text.trim().parse().ok());
    index.ok_or_else(|| error!(Code::Unsupported, "the network interface of {port} is not known ({path})"))
}

/// A group that this process is a member of.
pub struct Joined {
    // Before what it uses: dropped first.
    qp: QueuePair,
    way: AddressHandle,
    address: IpAddr,
    _member: UdpSocket,
    sent: Arc<CompletionQueue>,
    arrived: Arc<CompletionQueue>,
    memory: Arena,
    name: Name,
    mtu: usize,
    /// Since when packets are leaving; 0: none are.
    leaving_ns: u64,
    /// It has failed: nothing is sent any more.
    failed: bool,
    wrs: Vec<SendWr>,
    sges: Vec<[Sge; 2]>,
    counts: Arc<Counts>,
}

// SAFETY: the pointers in the lists of requests are set before each use.
unsafe impl Send for Joined {}

impl Joined {
    /// Joins a group. `Unsupported`: no group can be joined by this port, and why.
    pub fn join(at: (&Arc<Protection>, &Arc<Domain>), port: &Port, name: Name, counts: &Arc<Counts>) -> Result<Joined> {
        let address = address(&name, port)?;
        if port.device.attr().max_mcast_grp <= 0 {
            return Err(error!(Code::Unsupported, "{} has no multicast groups", port.device.name()));
        }
        if counts.groups.fetch_add(1, Ordering::Relaxed) >= GROUPS_MOST {
            counts.groups.fetch_sub(1, Ordering::Relaxed);
            let text = format!("this process is in {GROUPS_MOST} multicast groups already, which is the most");
            return Err(Error::new(Code::Unsupported, text));
        }
        Joined::enter(at, port, name, address, counts)
            .inspect_err(|_| _ = counts.groups.fetch_sub(1, Ordering::Relaxed))
    }

    fn enter(
        (protection, domain): (&Arc<Protection>, &Arc<Domain>),
        port: &Port,
        name: Name,
        address: IpAddr,
        counts: &Arc<Counts>,
    ) -> Result<Joined> {
        let mtu = port.mtu as usize;
        let memory = Arena::new(domain, places_at(mtu) + 2 * WINDOW * stride(mtu), Access::LOCAL_WRITE)?;
        let sent = CompletionQueue::new(&port.device, WINDOW as u32 + 1, None)?;
        let arrived = CompletionQueue::new(&port.device, 2 * WINDOW as u32, None)?;
        let depth = Depth { sends: WINDOW as u32, receives: 2 * WINDOW as u32, pieces: 2, inline: 0 };
        let qp = QueuePair::datagrams(protection, port, [&sent, &arrived], depth, name.key)?;
        let Some(way) = AddressHandle::new(protection, port, gid_of(address), 0)? else {
            return Err(error!(Code::System, "there is no way from {port} to a multicast group (ibv_create_ah)"));
        };
        let member = join(port, address)?;
        qp.attach(gid_of(address))?;
        let everybody = way.to(EVERYBODY, name.key);
        let group = Joined {
            qp,
            way,
            address,
            _member: member,
            sent,
            arrived,
            memory,
            name,
            mtu,
            leaving_ns: 0,
            failed: false,
            wrs: vec![SendWr::new(opcode::SEND, SendFlags::empty(), everybody); WINDOW],
            sges: vec![[Sge::default(); 2]; WINDOW],
            counts: counts.clone(),
        };
        (0..2 * WINDOW).try_for_each(|place| group.post(place))?;
        Ok(group)
    }

    fn place(&self, place: usize) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(places_at(self.mtu) + place * stride(self.mtu))
    }

    fn post(&self, place: usize) -> Result<()> {
        let lkey = self.memory.region().lkey();
        // SAFETY: places lie within the arena, and each is posted again only after its packet has been read.
        unsafe { self.qp.post_receive(place as u64, self.place(place) as u64, (GRH + self.mtu) as u32, lkey) }
    }

    /// Nothing more is sent: the queue pair lets go of all memory.
    #[cold]
    fn give_up(&mut self) {
        (self.failed, self.leaving_ns) = (true, 0);
        let _ = self.qp.break_off();
    }
}

impl Joined {
    /// Puts packet `k` of a list of requests there: `n` bytes at an address under a key.
    fn list(&mut self, operation: u64, (k, number): (usize, u32), n: usize, (addr, lkey): (u64, u32)) {
        let header = Header { tag: self.name.tag, operation, number, len: n as u32 };
        let at = self.memory.as_ptr().wrapping_add(k * HEADER);
        // SAFETY: the headers lie in front of the arena, and the packets before have left.
        unsafe { at.cast::<Header>().write_unaligned(header) };
        let own = Sge { addr: at as u64, length: HEADER as u32, lkey: self.memory.region().lkey() };
        self.sges[k] = [own, Sge { addr, length: n as u32, lkey }];
    }

    /// Sends what is in the list.
    ///
    /// # Safety
    /// Its bytes stay unchanged until they have left.
    unsafe fn send_list(&mut self, packets: usize) {
        for k in 0..packets {
            let last = k + 1 == packets;
            let next = if last { std::ptr::null_mut() } else { &raw mut self.wrs[k + 1] };
            let flags = if last { SendFlags::SIGNALED } else { SendFlags::empty() };
            let list = self.sges[k].as_mut_ptr();
            let wr = &mut self.wrs[k];
            (wr.next, wr.sg_list, wr.num_sge, wr.send_flags) = (next, list, 2, flags.bits());
            wr.wr.ud.ah = self.way.ah;
        }
        self.leaving_ns = now_ns();
        // SAFETY: the list of requests is whole and lives in self; the memory is as the caller promises.
        match unsafe { self.qp.post(&mut self.wrs[0]) } {
            Ok(()) => _ = self.counts.sent.fetch_add(packets as u64, Ordering::Relaxed),
            // Some may have been posted without the one that would tell.
            Err(_) => self.give_up(),
        }
    }
}

impl Group for Joined {
    fn address(&self) -> String {
        self.address.to_string()
    }
    fn payload(&self) -> usize {
        self.mtu - HEADER
    }
    fn counts(&self) -> &Counts {
        &self.counts
    }

    unsafe fn send(&mut self, operation: u64, first: u32, bytes: Bytes<'_>, size: usize, region: &Region) {
        let (packets, len) = (bytes.len().div_ceil(size), bytes.len());
        debug_assert!(self.leaving_ns == 0 && packets <= WINDOW && size <= self.payload());
        if self.failed || len == 0 {
            return;
        }
        for k in 0..packets {
            let at = (bytes.as_ptr() as u64 + (k * size) as u64, region.lkey());
            self.list(operation, (k, first + k as u32), size.min(len - k * size), at);
        }
        // SAFETY: as the caller promises.
        unsafe { self.send_list(packets) };
    }

    fn send_zeros(&mut self, packets: usize, size: usize) {
        assert!(self.leaving_ns == 0 && packets <= WINDOW && size <= self.payload());
        if self.failed {
            return;
        }
        let at = (self.memory.as_ptr() as u64 + zeros_at() as u64, self.memory.region().lkey());
        (0..packets).for_each(|k| self.list(0, (k, k as u32), size, at));
        // SAFETY: the zeros are the group's own, and stay.
        unsafe { self.send_list(packets) };
    }

    fn has_left(&mut self) -> bool {
        if self.leaving_ns == 0 {
            return true;
        }
        let mut wc = [Wc::default()];
        match self.sent.poll(&mut wc) {
            Ok(0) if now_ns() - self.leaving_ns < LEAVING_NS => return false,
            Ok(1) if wc[0].status == wc_status::SUCCESS => self.leaving_ns = 0,
            _ => self.give_up(),
        }
        true
    }

    fn take(&mut self, with: &mut dyn FnMut(&Header, Bytes<'_>)) -> usize {
        let mut wc = [Wc::default(); 16];
        let (mut all, mut whole) = (0, true);
        // No more than there are places, so that one who sends without end holds nobody up.
        while whole && all < 2 * WINDOW {
            let n = self.arrived.poll(&mut wc).unwrap_or(0);
            for c in &wc[..n] {
                let place = c.wr_id as usize;
                if c.status != wc_status::SUCCESS || place >= 2 * WINDOW {
                    // Flushed: the queue pair has been broken off.
                    continue;
                }
                let at = self.place(place).wrapping_add(GRH);
                let len = (c.byte_len as usize).saturating_sub(GRH);
                // SAFETY: the device has finished with the place, which is longer than a header.
                let header = unsafe { at.cast::<Header>().read_unaligned() };
                if len >= HEADER && header.tag == self.name.tag && len - HEADER == header.len as usize {
                    // SAFETY: so many bytes have come behind the header, and the place is not given back before this returns.
                    with(&header, unsafe { Bytes::new(at.wrapping_add(HEADER), len - HEADER) });
                } else {
                    self.counts.strange.fetch_add(1, Ordering::Relaxed);
                }
                let _ = self.post(place);
            }
            all += n;
            whole = n == wc.len();
        }
        all
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.until_left();
        let _ = self.qp.detach(gid_of(self.address));
        self.counts.groups.fetch_sub(1, Ordering::Relaxed);
    }
}

fn zeros_at() -> usize {
    WINDOW * HEADER
}
fn places_at(mtu: usize) -> usize {
    zeros_at() + mtu.next_multiple_of(64)
}
fn stride(mtu: usize) -> usize {
    (GRH + mtu).next_multiple_of(64)
}

/// Tries whether a group can be joined by this port: its address.
pub fn try_port(port: &Port) -> Result<IpAddr> {
    let protection = Protection::new(&port.device)?;
    let name = Name::new(&Key::of(&random::<32>()?), [0, 0]);
    Joined::join((&protection, &protection.domain()), port, name, &Arc::default()).map(|group| group.address)
}
