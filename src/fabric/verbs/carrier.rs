//! Datagrams by a queue pair of unreliable datagrams (UD): a carrier of channels, with which a process needs no connection at all.
//!
//! What comes lands in receives that all peers share, or in those of a [ring](super::rings) that a busy peer has for itself; each is posted again as soon as it has been looked at. What leaves is copied to places
//! of their own, which are free again when the device has done with them.

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use super::completion::{Channel, CompletionQueue};
use super::device::Port;
use super::ffi::{SendFlags, SendWr, Sge, Wc, opcode, wc_status};
use super::network::{QKEY, Reached};
use super::protection::Protection;
use super::queue_pair::{AddressHandle, Depth, QueuePair};
use super::rings::Rings;
use crate::base::error::Result;
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::{Carrier, OVERHEAD, Ring, SPOT, Spot, Taker};
use crate::fabric::network::device::{Access, Address, OPAQUE};
use crate::fabric::network::region::Arena;

/// Receives of a process, each of a packet: four of them have the 2048 of the paper's node.
const RECEIVES: usize = 512;
/// Completions of what comes for which there is room, without rings.
pub(super) const COMPLETIONS: u32 = RECEIVES as u32 + 16;
/// Datagrams that are on their way to the device at most.
const SENDS: usize = 64;
/// Ways to peers that are kept; of more all are made anew, when they are needed.
const WAYS: usize = 1024;
/// Bytes that a receive has in front: the global route header.
pub(super) const GRH: usize = 40;
/// Completions that are taken at a time.
const AT_A_TIME: usize = 32;

/// See the head of this file.
pub struct Ud {
    // The queue pair before what it uses: dropped first.
    pair: QueuePair,
    rings: Arc<Rings>,
    port: Port,
    protection: Arc<Protection>,
    sending: Mutex<Sending>,
    sent: Arc<CompletionQueue>,
    queue: Arc<CompletionQueue>,
    channel: Arc<Channel>,
    receives: Arena,
    ways: Mutex<HashMap<Spot, Arc<AddressHandle>>>,
}

/// Places of what leaves: those that are free, and the ways of those that are not.
struct Sending {
    memory: Arena,
    free: Vec<usize>,
    ways: Vec<Option<Arc<AddressHandle>>>,
}

/// Where datagrams reach a queue pair of a port.
pub(super) fn spot(port: &Port, pair: &QueuePair) -> Spot {
    let reached = Reached { qp_num: pair.number(), gid: port.address.gid, lid: port.lid };
    let address = reached.address();
    std::array::from_fn::<u8, SPOT, _>(|k| address.0[k])
}

/// Bytes from one receive to the next.
pub(super) fn stride(port: &Port) -> usize {
    (GRH + port.mtu as usize).next_multiple_of(64)
}

impl Ud {
    /// Uses this port from now on.
    pub fn open(port: Port) -> Result<Ud> {
        let protection = Protection::new(&port.device)?;
        let domain = protection.domain();
        let channel = Channel::new(&port.device)?;
        let sent = CompletionQueue::new(&port.device, SENDS as u32 + 16, None)?;
        let queue = CompletionQueue::new(&port.device, COMPLETIONS, Some(&channel))?;
        let depth = Depth { sends: SENDS as u32, receives: RECEIVES as u32, pieces: 1, inline: 0 };
        let pair = QueuePair::datagrams(&protection, &port, [&sent, &queue], depth, QKEY)?;
        let receives = Arena::new(&domain, RECEIVES * stride(&port), Access::LOCAL_WRITE)?;
        let memory = Arena::new(&domain, SENDS * port.mtu as usize, Access::LOCAL_WRITE)?;
        let sending = Sending { memory, free: (0..SENDS).collect(), ways: vec![None; SENDS] };
        let rings = Rings::new(&port, &protection, &domain, [&sent, &queue], COMPLETIONS);
        let ud = Ud {
            pair,
            rings,
            port,
            protection,
            sending: Mutex::new(sending),
            sent,
            queue,
            channel,
            receives,
            ways: Mutex::default(),
        };
        (0..RECEIVES).try_for_each(|n| ud.post_receive(n))?;
        Ok(ud)
    }

    fn post_receive(&self, n: usize) -> Result<()> {
        let (at, len) = (self.receives.as_ptr() as u64 + (n * stride(&self.port)) as u64, GRH + self.port.mtu as usize);
        // SAFETY: places lie within the arena, and each is posted again only after its datagram has been read.
        unsafe { self.pair.post_receive(n as u64, at, len as u32, self.receives.region().lkey()) }
    }

    /// Where what came to a place begins.
    fn datagram(&self, place: usize) -> *const u8 {
        self.receives.as_ptr().wrapping_add(place * stride(&self.port) + GRH).cast_const()
    }

    /// The way to a peer; `None`: the network does not say now where that is.
    fn way(&self, to: &Spot) -> Option<Arc<AddressHandle>> {
        let mut ways = lock(&self.ways);
        if let Some(way) = ways.get(to) {
            return Some(way.clone());
        }
        let Reached { gid, lid, .. } = reached(to);
        let way = Arc::new(AddressHandle::new(&self.protection, &self.port, gid, lid).ok()??);
        if ways.len() >= WAYS {
            ways.clear();
        }
        ways.insert(*to, way.clone());
        Some(way)
    }

    /// Takes back the places of what has left.
    fn take_back(&self, sending: &mut Sending) -> io::Result<()> {
        let mut wc = [Wc::default(); AT_A_TIME];
        loop {
            let n = self.sent.poll(&mut wc).map_err(|e| io::Error::other(e.detail().to_owned()))?;
            for c in &wc[..n] {
                let place = c.wr_id as usize;
                sending.ways[place] = None;
                sending.free.push(place);
            }
            if n < wc.len() {
                return Ok(());
            }
        }
    }
}

fn reached(spot: &Spot) -> Reached {
    let mut address = Address([0; OPAQUE]);
    address.0[..SPOT].copy_from_slice(spot);
    Reached::at(&address)
}

impl Carrier for Ud {
    fn describe(&self) -> String {
        format!("{}, without connections", self.port)
    }
    fn network(&self) -> String {
        if self.port.ethernet { "RoCE datagrams" } else { "InfiniBand datagrams" }.into()
    }
    fn most(&self) -> usize {
        self.port.mtu as usize
    }
    /// A short one takes up a receive as a long one does.
    fn room(&self) -> u32 {
        RECEIVES as u32 * 2 * OVERHEAD
    }
    fn spot(&self) -> Spot {
        spot(&self.port, &self.pair)
    }

    fn ring(&self) -> Result<Box<dyn Ring>> {
        Ok(Box::new(self.rings.add()?))
    }

    unsafe fn send(&self, to: &Spot, parts: &[libc::iovec], ends: &[usize]) -> io::Result<usize> {
        // What cannot be reached now is lost, as it might be further on.
        let Some(way) = self.way(to) else { return Ok(ends.len()) };
        let mut sending = lock(&self.sending);
        let sending = &mut *sending;
        self.take_back(sending)?;
        let (target, mtu, mut from) = (way.to(reached(to).qp_num, QKEY), self.port.mtu as usize, 0);
        for (k, end) in ends.iter().enumerate() {
            if sending.free.is_empty() {
                self.take_back(sending)?;
            }
            let Some(place) = sending.free.pop() else { return Ok(k) };
            let (at, mut len) = (sending.memory.as_ptr() as u64 + (place * mtu) as u64, 0);
            for part in &parts[from..*end] {
                let n = part.iov_len.min(mtu - len);
                // SAFETY: readable, as the caller promises; the place is this datagram's alone, and has room for so many.
                unsafe { std::ptr::copy_nonoverlapping(part.iov_base.cast::<u8>(), (at + len as u64) as *mut u8, n) };
                len += n;
            }
            from = *end;
            let mut sge = Sge { addr: at, length: len as u32, lkey: sending.memory.region().lkey() };
            let mut wr = SendWr::new(opcode::SEND, SendFlags::SIGNALED, target);
            (wr.wr_id, wr.sg_list, wr.num_sge) = (place as u64, &mut sge, 1);
            sending.ways[place] = Some(way.clone());
            // SAFETY: the request is whole; memory and way stay until its completion.
            if unsafe { self.pair.post(&mut wr) }.is_err() {
                sending.ways[place] = None;
                sending.free.push(place);
                return Ok(k);
            }
        }
        Ok(ends.len())
    }

    fn receive(&self, with: &mut dyn Taker) -> io::Result<bool> {
        let mut wc = [Wc::default(); AT_A_TIME];
        let n = self.queue.poll(&mut wc).map_err(|e| io::Error::other(e.detail().to_owned()))?;
        for c in &wc[..n] {
            let (ring, place) = ((c.wr_id >> 32) as u32, c.wr_id as u32 as usize);
            let len = (c.byte_len as usize).saturating_sub(GRH);
            let ring = match ring {
                0 => None,
                // Of one that is gone nothing is wanted any more.
                number => match self.rings.of(number) {
                    Some(ring) => Some(ring),
                    None => continue,
                },
            };
            let at = match &ring {
                Some(ring) => ring.datagram(&self.port, place),
                None => (place < RECEIVES).then(|| self.datagram(place)),
            };
            if let Some(at) = at.filter(|_| c.status == wc_status::SUCCESS && len <= self.port.mtu as usize) {
                // SAFETY: the datagram lies in its place of the arena, which the device has finished with.
                with.take(unsafe { std::slice::from_raw_parts(at, len) });
            }
            let _ = match &ring {
                Some(ring) => ring.post(&self.port, place),
                None => self.post_receive(place),
            };
        }
        Ok(n == wc.len())
    }

    fn refusals(&self, _with: &mut dyn FnMut(&Spot)) {}
    fn fd(&self) -> RawFd {
        self.channel.fd()
    }
    fn arm(&self) -> Result<()> {
        self.queue.arm()
    }
    fn is_awake(&self) {
        self.channel.take_events();
    }
    fn bytes(&self) -> usize {
        self.receives.len() + lock(&self.sending).memory.len()
    }
}
