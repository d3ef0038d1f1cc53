//! What comes to this process without being asked for: datagrams, and the numbers that come with writes.
//!
//! Each uses up a receive, and a peer whose write finds none has to wait. So receives are posted again at once, by whoever comes along:
//! the thread that deals with what has come, or a thread that waits for room in a connection. Two processes that wait for each
//! other's receives would otherwise wait for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::completion::{Channel, CompletionQueue};
use super::device::Port;
use super::ffi::{Access, WC_RECV_RDMA_WITH_IMM, Wc, wc_status};
use super::hello::HELLO_LEN;
use super::queue_pair::{Depth, QueuePair, SharedReceives};
use super::region::{Arena, Domain};
use crate::base::error::Result;

/// Datagrams that may arrive before anybody has looked, and that are kept; more are lost, and repeated by their senders.
const DATAGRAMS: usize = 128;
/// Writes with a number that may arrive before anybody has looked.
const NUMBERS: usize = 512;
/// Bytes that a datagram's receive buffer has in front: the global route header.
const GRH: usize = 40;
const STRIDE: usize = (GRH + HELLO_LEN).next_multiple_of(64);

/// A number that is only counted: its completion says that everything written before it on its connection is in memory.
pub const COUNTED: u32 = 6 << 28;

/// Something that has come.
pub(super) enum Arrival {
    /// A datagram.
    Packet([u8; HELLO_LEN]),
    /// A number of this peer.
    Number(u32, u32),
}

/// See the head of this file.
pub(super) struct Arrivals {
    /// The datagram queue pair, which sends too.
    pub datagrams: QueuePair,
    /// Completions of receives, of all queue pairs.
    pub queue: Arc<CompletionQueue>,
    /// The receives of all connections.
    pub numbers: Arc<SharedReceives>,
    memory: Arena,
    pending: Mutex<VecDeque<Arrival>>,
    /// Whose each queue pair is, and how often [`COUNTED`] has come from there.
    known: Mutex<HashMap<u32, (u32, Arc<AtomicU64>)>>,
    /// Why nothing comes any more, if so.
    pub broken: OnceLock<String>,
    /// Datagrams of a wrong length, or that came damaged.
    pub rejected: AtomicU64,
}

impl Arrivals {
    /// Receives datagrams with this key from now on. Events of `queue` go to `channel`.
    pub fn new(
        domain: &Arc<Domain>,
        port: &Port,
        channel: &Arc<Channel>,
        sent: &Arc<CompletionQueue>,
        qkey: u32,
    ) -> Result<Arrivals> {
        let queue = CompletionQueue::new(&port.device, (DATAGRAMS + NUMBERS) as u32 + 16, Some(channel))?;
        let numbers = SharedReceives::new(domain, NUMBERS as u32)?;
        (0..NUMBERS).try_for_each(|_| numbers.post_empty())?;
        let depth = Depth { sends: 8, receives: DATAGRAMS as u32, pieces: 1, inline: 0 };
        let datagrams = QueuePair::datagrams(domain, port, [sent, &queue], depth, qkey)?;
        let memory = Arena::new(domain, DATAGRAMS * STRIDE, Access::LOCAL_WRITE)?;
        let arrivals = Arrivals {
            datagrams,
            queue,
            numbers,
            memory,
            pending: Mutex::default(),
            known: Mutex::default(),
            broken: OnceLock::new(),
            rejected: AtomicU64::new(0),
        };
        (0..DATAGRAMS).try_for_each(|n| arrivals.post_receive(n))?;
        Ok(arrivals)
    }

    fn post_receive(&self, n: usize) -> Result<()> {
        let at = self.memory.as_ptr() as u64 + (n * STRIDE) as u64;
        // SAFETY: places lie within the arena, and each is posted again only after its datagram has been read.
        unsafe { self.datagrams.post_receive(n as u64, at, (GRH + HELLO_LEN) as u32, self.memory.region().lkey()) }
    }

    /// Bytes of its buffers.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Notes what has come, and posts its receives again.
    pub fn collect(&self) {
        // Held over the polling, so that what comes later is noted later.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wc = [Wc::default(); 32];
        loop {
            let n = match self.queue.poll(&mut wc) {
                Ok(n) => n,
                Err(e) => return drop(self.broken.set(e.detail().to_owned())),
            };
            wc[..n].iter().filter_map(|c| self.note(c)).for_each(|arrival| put(&mut pending, arrival));
            if n < wc.len() {
                return;
            }
        }
    }

    /// What comes by this queue pair is the peer's from now on, and its [`COUNTED`] are counted there.
    pub fn know(&self, qp: u32, peer: u32, counted: &Arc<AtomicU64>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(qp, (peer, counted.clone()));
    }
    /// Nothing comes by this queue pair any more: what has come is noted first.
    pub fn forget(&self, qp: u32) {
        self.collect();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&qp);
    }

    /// The next of what has come.
    pub fn next(&self) -> Option<Arrival> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next datagram that has come.
    pub fn next_packet(&self) -> Option<[u8; HELLO_LEN]> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pending.iter().position(|a| matches!(a, Arrival::Packet(_)))?;
        match pending.remove(at) {
            Some(Arrival::Packet(packet)) => Some(packet),
            _ => None,
        }
    }

    fn note(&self, c: &Wc) -> Option<Arrival> {
        if c.qp_num != self.datagrams.number() {
            if c.status != wc_status::SUCCESS || c.opcode != WC_RECV_RDMA_WITH_IMM {
                return None;
            }
            let _ = self.numbers.post_empty();
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let (peer, counted) = known.get(&c.qp_num)?;
            if u32::from_be(c.imm_data) == COUNTED {
                // SYNC POINT: pairs with the acquire in `Link::until_arrived`.
                counted.fetch_add(1, Ordering::Release);
                return None;
            }
            return Some(Arrival::Number(*peer, u32::from_be(c.imm_data)));
        }
        let n = c.wr_id as usize;
        let mut arrival = None;
        if c.status == wc_status::SUCCESS && c.byte_len as usize == GRH + HELLO_LEN && n < DATAGRAMS {
            let mut packet = [0u8; HELLO_LEN];
            // SAFETY: the datagram lies in its place of the arena, which the device has finished with.
            unsafe {
                let at = self.memory.as_ptr().add(n * STRIDE + GRH);
                std::ptr::copy_nonoverlapping(at, packet.as_mut_ptr(), HELLO_LEN);
            }
            arrival = Some(Arrival::Packet(packet));
        } else {
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
        let _ = self.post_receive(n);
        arrival
    }
}

/// Puts it last. A number that waits there already counts once, from now on: all of them are calls to look at something.
fn put(pending: &mut VecDeque<Arrival>, arrival: Arrival) {
    match &arrival {
        Arrival::Number(peer, number) => {
            pending.retain(|a| !matches!(a, Arrival::Number(p, n) if (p, n) == (peer, number)));
        }
        Arrival::Packet(_) => {
            if pending.iter().filter(|a| matches!(a, Arrival::Packet(_))).count() >= DATAGRAMS {
                return;
            }
        }
    }
    pending.push_back(arrival);
}
