//! A port that a process uses, as the protocol between nodes wants it: its datagrams, its connections, and what comes.
//!
//! Each datagram and each write with a number uses up a receive, which is posted again as soon as it has been looked at.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::completion::{Channel, CompletionQueue, status_text};
use super::connection::{Connection, Queues};
use super::device::{self, Port};
use super::ffi::{Gid, SendFlags, SendWr, Sge, WC_RECV_RDMA_WITH_IMM, Wc, opcode, wc_status};
use super::multicast;
use super::protection::Protection;
use super::queue_pair::{AddressHandle, Depth, QueuePair, SILENCE_MOST_NS, SharedReceives};
use crate::base::error::{Code, Error, Result, error};
use crate::base::system;
use crate::fabric::network::device::{
    Access, Address, Arrived, DATAGRAM, Device, DeviceError, Limits, OPAQUE, Pair, Registrar,
};
use crate::fabric::network::multicast::{Counts, Group, Name};
use crate::fabric::network::region::{Arena, Domain};
use crate::fabric::two_ways::Connected;

/// The key of our datagrams; others' are dropped by the device.
pub const QKEY: u32 = 0x464d_504c;
/// Datagrams that may arrive before anybody has looked; more are lost, and repeated by their senders.
const DATAGRAMS: usize = 128;
/// Writes with a number that may arrive before anybody has looked.
const NUMBERS: usize = 512;
/// Bytes that a datagram's receive buffer has in front: the global route header.
const GRH: usize = 40;
/// Bytes of a request at most. Each ends with a packet that the peer acknowledges, and an acknowledgement gives the connection all its
/// repetitions back: so a link that loses packets is not taken for a dead one, as it would be by some devices in a request of many.
const LONGEST: u32 = 32 << 10;
const STRIDE: usize = (GRH + DATAGRAM).next_multiple_of(64);

/// See the head of this file.
pub struct Verbs {
    // Queue pairs before what they use: dropped first.
    /// The datagram queue pair, which sends and receives.
    datagrams: QueuePair,
    port: Port,
    protection: Arc<Protection>,
    domain: Arc<Domain>,
    /// What is sent by datagram; one at a time.
    sending: Mutex<Sending>,
    sent: Arc<CompletionQueue>,
    /// Completions of receives, of all queue pairs.
    queue: Arc<CompletionQueue>,
    channel: Arc<Channel>,
    /// The receives of all connections.
    numbers: Arc<SharedReceives>,
    memory: Arena,
    ways: Mutex<HashMap<Address, Arc<AddressHandle>>>,
    queues: Arc<Queues>,
    /// Where the device tells of errors.
    errors: RawFd,
    /// Ends a sleep.
    wake: OwnedFd,
}

struct Sending {
    memory: Arena,
    /// The way of the datagram that has not left yet: the device reads both until it has.
    on_its_way: Option<Arc<AddressHandle>>,
}

/// A datagram that has not left for so long is an error; it still may.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

impl Verbs {
    /// Uses this port from now on, and receives datagrams.
    pub fn open(port: Port) -> Result<Verbs> {
        let protection = Protection::new(&port.device)?;
        let domain = protection.domain();
        let channel = Channel::new(&port.device)?;
        let sent = CompletionQueue::new(&port.device, 16, None)?;
        let queue = CompletionQueue::new(&port.device, (DATAGRAMS + NUMBERS) as u32 + 16, Some(&channel))?;
        let numbers = SharedReceives::new(&protection, NUMBERS as u32)?;
        (0..NUMBERS).try_for_each(|_| numbers.post_empty())?;
        let depth = Depth { sends: 8, receives: DATAGRAMS as u32, pieces: 1, inline: 0 };
        let datagrams = QueuePair::datagrams(&protection, &port, [&sent, &queue], depth, QKEY)?;
        let memory = Arena::new(&domain, DATAGRAMS * STRIDE, Access::LOCAL_WRITE)?;
        let sending = Sending { memory: Arena::new(&domain, DATAGRAM, Access::LOCAL_WRITE)?, on_its_way: None };
        let wake =
            system::event().map_err(|_| Error::system("a descriptor to wake the thread between nodes (eventfd)"))?;
        let verbs = Verbs {
            datagrams,
            errors: port.device.watch_errors(),
            port,
            protection,
            domain,
            sending: Mutex::new(sending),
            sent,
            queue,
            channel,
            numbers,
            memory,
            ways: Mutex::default(),
            queues: Arc::default(),
            wake,
        };
        (0..DATAGRAMS).try_for_each(|n| verbs.post_receive(n))?;
        Ok(verbs)
    }

    fn post_receive(&self, n: usize) -> Result<()> {
        let at = self.memory.as_ptr() as u64 + (n * STRIDE) as u64;
        // SAFETY: places lie within the arena, and each is posted again only after its datagram has been read.
        unsafe { self.datagrams.post_receive(n as u64, at, (GRH + DATAGRAM) as u32, self.memory.region().lkey()) }
    }

    fn way(&self, to: &Address) -> Result<Option<Arc<AddressHandle>>> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get(to) {
            return Ok(Some(way.clone()));
        }
        let Reached { gid, lid, .. } = Reached::at(to);
        let way = AddressHandle::new(&self.protection, &self.port, gid, lid)?.map(Arc::new);
        if let Some(way) = &way {
            ways.insert(*to, way.clone());
        }
        Ok(way)
    }

    /// Waits until the datagram that is on its way has completed, which it does when it has left; with which status.
    fn has_left(&self, sending: &mut Sending, within: Duration) -> Result<i32> {
        let (since, mut wc) = (Instant::now(), [Wc::default()]);
        while sending.on_its_way.is_some() {
            // Read before the device is asked: this thread may be stopped in between.
            let waited = since.elapsed();
            if self.sent.poll(&mut wc)? != 0 {
                sending.on_its_way = None;
            } else if waited >= within {
                return Err(error!(Code::System, "a datagram has not left {} for 5 s", self.port));
            } else {
                std::thread::yield_now();
            }
        }
        Ok(wc[0].status)
    }

    fn note(&self, c: &Wc, with: &mut dyn FnMut(Arrived<'_>)) {
        if c.qp_num != self.datagrams.number() {
            if c.status == wc_status::SUCCESS && c.opcode == WC_RECV_RDMA_WITH_IMM {
                let _ = self.numbers.post_empty();
                with(Arrived::Number(c.qp_num, u32::from_be(c.imm_data)));
            }
            return;
        }
        let n = c.wr_id as usize;
        if c.status == wc_status::SUCCESS && c.byte_len as usize == GRH + DATAGRAM && n < DATAGRAMS {
            // SAFETY: the datagram lies in its place of the arena, which the device has finished with.
            with(Arrived::Datagram(unsafe { &*self.memory.as_ptr().add(n * STRIDE + GRH).cast() }));
        } else {
            with(Arrived::Damaged);
        }
        let _ = self.post_receive(n);
    }
}

impl Device for Verbs {
    fn describe(&self) -> String {
        self.port.to_string()
    }
    fn network(&self) -> String {
        if self.port.ethernet { "RoCE" } else { "InfiniBand" }.into()
    }
    fn limits(&self) -> Limits {
        Limits {
            longest: self.port.max_message.min(LONGEST),
            write_most: 16 << 10,
            copy_most: 64 << 10,
            pieces: self.port.device.attr().max_sge.max(1) as u32,
            atomics: self.protection.atomics(),
            silence_ns: SILENCE_MOST_NS,
            holds_pages: true,
            reads_early: false,
            is_driven: false,
            has_annexes: false,
            appends: false,
        }
    }
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
    fn address(&self) -> Address {
        Reached { qp_num: self.datagrams.number(), gid: self.port.address.gid, lid: self.port.lid }.address()
    }

    fn send(&self, to: &Address, datagram: &[u8; DATAGRAM]) -> Result<bool> {
        let Some(way) = self.way(to)? else { return Ok(false) };
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was late has left by now, or nothing can be sent.
        self.has_left(&mut sending, Duration::ZERO)?;
        let memory = &sending.memory;
        // SAFETY: the arena has room, and nothing from it is on its way.
        unsafe { std::ptr::copy_nonoverlapping(datagram.as_ptr(), memory.as_ptr(), DATAGRAM) };
        let mut sge = Sge { addr: memory.as_ptr() as u64, length: DATAGRAM as u32, lkey: memory.region().lkey() };
        let mut wr = SendWr::new(opcode::SEND, SendFlags::SIGNALED, way.to(Reached::at(to).qp_num, QKEY));
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole; memory and way stay until its completion.
        unsafe { self.datagrams.post(&mut wr)? };
        sending.on_its_way = Some(way);
        let status = self.has_left(&mut sending, LEAVES_WITHIN)?;
        if status != wc_status::SUCCESS {
            let why = status_text(status);
            return Err(error!(Code::System, "sending a datagram by {}: {why}", self.port));
        }
        Ok(true)
    }

    fn pair(&self, depth: u32) -> Result<Arc<dyn Pair>> {
        let to = (&self.queue, &self.numbers);
        let connection = Connection::new((&self.protection, &self.domain), &self.port, to, &self.queues, depth)?;
        Ok(Arc::new(connection))
    }

    fn collect(&self, with: &mut dyn FnMut(Arrived<'_>)) -> Result<()> {
        let mut wc = [Wc::default(); 32];
        loop {
            let n = self.queue.poll(&mut wc)?;
            wc[..n].iter().for_each(|c| self.note(c, with));
            if n < wc.len() {
                return Ok(());
            }
        }
    }

    fn arm(&self) -> Result<()> {
        self.queue.arm()
    }

    fn sleep(&self, at_most: Option<Duration>) -> bool {
        let wake = self.wake.as_raw_fd();
        let mut fds =
            [self.channel.fd(), wake, self.errors].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        let patience = at_most.map_or(-1, |time| time.as_millis().min(1 << 20) as i32);
        let _ = system::poll(&mut fds, patience);
        let _ = system::hear(&self.wake);
        self.channel.take_events();
        fds[2].revents != 0
    }

    fn wake(&self) {
        system::tell(&self.wake);
    }

    fn next_error(&self) -> Option<DeviceError> {
        loop {
            return Some(match self.port.device.next_error()? {
                device::DeviceError::Overrun(name) if [&self.queue, &self.sent].iter().any(|q| q.name() == name) => {
                    DeviceError::All("a completion queue of this process was overrun".into())
                }
                device::DeviceError::Overrun(name) => {
                    match self.queues.lock().unwrap_or_else(PoisonError::into_inner).get(&name) {
                        Some(number) => DeviceError::Overrun(*number),
                        // It is gone by now.
                        None => continue,
                    }
                }
                device::DeviceError::Refused(number) => DeviceError::Refused(number),
                device::DeviceError::Pair(number) => DeviceError::Pair(number),
                device::DeviceError::All => DeviceError::All("it has told so itself".into()),
            });
        }
    }

    fn join(&self, name: Name, counts: &Arc<Counts>) -> Result<Box<dyn Group>> {
        let group = multicast::Joined::join((&self.protection, &self.domain), &self.port, name, counts)?;
        Ok(Box::new(group))
    }

    fn bytes(&self) -> usize {
        self.memory.len()
    }
}

impl Connected for Verbs {
    fn registrar(&self) -> Arc<dyn Registrar> {
        self.protection.clone()
    }
    fn fds(&self) -> Vec<RawFd> {
        vec![self.channel.fd(), self.errors]
    }
    fn has_slept(&self) -> bool {
        self.channel.take_events();
        let mut fds = [libc::pollfd { fd: self.errors, events: libc::POLLIN, revents: 0 }];
        let _ = system::poll(&mut fds, 0);
        fds[0].revents != 0
    }
}

/// What an [`Address`] is here: a datagram queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Its number.
    pub qp_num: u32,
    /// Address of its port.
    pub gid: Gid,
    /// Its port's address in the subnet (InfiniBand).
    pub lid: u16,
}

impl Reached {
    /// number 4 | gid 16 | lid 2
    pub fn address(&self) -> Address {
        let mut b = [0; OPAQUE];
        b[..4].copy_from_slice(&self.qp_num.to_le_bytes());
        b[4..20].copy_from_slice(&self.gid.0);
        b[20..22].copy_from_slice(&self.lid.to_le_bytes());
        Address(b)
    }
    /// The one at an address.
    pub fn at(address: &Address) -> Reached {
        let b = &address.0;
        let mut gid = Gid::default();
        gid.0.copy_from_slice(&b[4..20]);
        let qp_num = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Reached { qp_num, gid, lid: u16::from_le_bytes([b[20], b[21]]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_went() {
        let reached = Reached { qp_num: 17, gid: Gid([9; 16]), lid: 3 };
        assert_eq!(Reached::at(&reached.address()), reached);
    }
}
