//! One end of a reliable connection, as the protocol between nodes wants it.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use static_assertions::const_assert;

use super::completion::{CompletionQueue, status_text};
use super::device::Port;
use super::ffi::{Atomic, Gid, Rdma, SendFlags, SendWr, Sge, Target, Wc, opcode, wc_status};
use super::protection::Protection;
use super::queue_pair::{Depth, QueuePair, Remote, SharedReceives, first_packet};
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::device::{
    Access, Change, Completion, Data, End, OPAQUE, Pair, Piece, Place, RECORD_MOST, Request, Status, What,
};
use crate::fabric::network::link::PIECES;
use crate::fabric::network::region::{Arena, Domain};

/// By the addresses of their completion queues: the numbers of queue pairs.
pub(super) type Queues = Mutex<HashMap<usize, u32>>;

/// A queue pair, and where its requests complete.
pub(super) struct Connection {
    // Before the memory: dropped first.
    qp: QueuePair,
    queue: Arc<CompletionQueue>,
    end: Remote,
    /// Requests under way at most.
    depth: u32,
    /// Copies of records where the device takes too little inline: a place for each request.
    copies: OnceLock<Arena>,
    domain: Arc<Domain>,
    queues: Arc<Queues>,
}

// A list of pieces is handed to the library as it is.
const_assert!(size_of::<Piece>() == size_of::<Sge>() && align_of::<Piece>() == align_of::<Sge>());
const_assert!(offset_of!(Piece, addr) == offset_of!(Sge, addr) && offset_of!(Piece, len) == offset_of!(Sge, length));
const_assert!(offset_of!(Piece, lkey) == offset_of!(Sge, lkey));

impl Connection {
    /// For `depth` requests under way; what comes by it goes to `arrived`.
    pub fn new(
        (protection, domain): (&Arc<Protection>, &Arc<Domain>),
        port: &Port,
        (arrived, numbers): (&Arc<CompletionQueue>, &Arc<SharedReceives>),
        queues: &Arc<Queues>,
        depth: u32,
    ) -> Result<Connection> {
        let queue = CompletionQueue::new(&port.device, depth + 16, None)?;
        let room = Depth { sends: depth + 8, receives: 0, pieces: PIECES, inline: RECORD_MOST as u32 };
        let qp = QueuePair::reliable(protection, port, [&queue, arrived], numbers, room)?;
        let psn = first_packet()?;
        let end = Remote { qp_num: qp.number(), psn, gid: port.address.gid, lid: port.lid, mtu: port.mtu };
        queues.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.name(), qp.number());
        let (domain, queues) = (domain.clone(), queues.clone());
        Ok(Connection { qp, queue, end, depth, copies: OnceLock::new(), domain, queues })
    }

    /// Copies a record to the place of its request.
    #[cold]
    fn copy(&self, id: u64, record: &[u8]) -> Result<Sge> {
        let copies = match self.copies.get() {
            Some(copies) => copies,
            None => {
                let copies = Arena::new(&self.domain, self.depth as usize * RECORD_MOST, Access::LOCAL_WRITE)?;
                self.copies.get_or_init(|| copies)
            }
        };
        let place = (id % self.depth as u64) as usize * RECORD_MOST;
        debug_assert!(record.len() <= RECORD_MOST);
        // SAFETY: the place's last request was `depth` requests ago, so it has completed; places lie in the arena.
        unsafe {
            let to = copies.as_ptr().add(place);
            std::ptr::copy_nonoverlapping(record.as_ptr(), to, record.len());
            Ok(Sge { addr: to as u64, length: record.len() as u32, lkey: copies.region().lkey() })
        }
    }

    /// Posts any request.
    ///
    /// # Safety
    /// As for [`Pair::post`].
    #[inline(never)]
    unsafe fn post_any(&self, request: &Request<'_>) -> Result<bool> {
        let Place { addr, rkey } = request.to;
        let rdma = Target { rdma: Rdma { remote_addr: addr, rkey } };
        let atomic = |compare_add, swap| Target { atomic: Atomic { remote_addr: addr, compare_add, swap, rkey } };
        let mut number = 0;
        let (code, target) = match request.what {
            What::Write => (opcode::RDMA_WRITE, rdma),
            What::WriteWithNumber(n) => {
                number = n;
                (opcode::RDMA_WRITE_WITH_IMM, rdma)
            }
            What::Read => (opcode::RDMA_READ, rdma),
            What::Change(Change::Add(n)) => (opcode::ATOMIC_FETCH_AND_ADD, atomic(n, 0)),
            What::Change(Change::Swap(expected, new)) => (opcode::ATOMIC_CMP_AND_SWP, atomic(expected, new)),
            What::Append { .. } => return Err(Error::new(Code::Unsupported, "a device cannot append")),
        };
        let mut flags = if request.signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
        let mut one;
        let (list, count) = match request.data {
            Data::Record(record) => {
                if record.len() <= self.qp.depth.inline as usize {
                    one = Sge { addr: record.as_ptr() as u64, length: record.len() as u32, lkey: 0 };
                    flags |= SendFlags::INLINE;
                } else {
                    one = self.copy(request.id, record)?;
                }
                (&raw mut one, !record.is_empty() as i32)
            }
            Data::Pieces(pieces) => (pieces.as_ptr().cast_mut().cast::<Sge>(), pieces.len() as i32),
        };
        let mut wr = SendWr::new(code, flags, target);
        (wr.wr_id, wr.imm_data, wr.sg_list, wr.num_sge) = (request.id, number.to_be(), list, count);
        // SAFETY: the request is whole; its data is inline, copied, or as the caller promises.
        unsafe { self.qp.post(&mut wr) }.map(|()| true)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.queue.name());
    }
}

impl Pair for Connection {
    fn number(&self) -> u32 {
        self.qp.number()
    }
    fn end(&self) -> End {
        self.end.encode()
    }
    fn connect(&self, to: &End) -> Result<()> {
        self.qp.connect(&Remote::decode(to), self.end.psn)
    }

    unsafe fn post(&self, request: &Request<'_>) -> Result<bool> {
        // What short messages are made of goes first, and by itself.
        let (code, number) = match request.what {
            What::Write => (opcode::RDMA_WRITE, 0),
            What::WriteWithNumber(number) => (opcode::RDMA_WRITE_WITH_IMM, number),
            // SAFETY: as the caller promises.
            _ => return unsafe { self.post_any(request) },
        };
        match request.data {
            Data::Record(record) if record.len() <= self.qp.depth.inline as usize => {
                let Place { addr, rkey } = request.to;
                let mut one = Sge { addr: record.as_ptr() as u64, length: record.len() as u32, lkey: 0 };
                let flags = if request.signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
                let target = Target { rdma: Rdma { remote_addr: addr, rkey } };
                let mut wr = SendWr::new(code, flags | SendFlags::INLINE, target);
                (wr.wr_id, wr.imm_data, wr.sg_list, wr.num_sge) =
                    (request.id, number.to_be(), &raw mut one, !record.is_empty() as i32);
                // SAFETY: the request is whole, its data inline.
                unsafe { self.qp.post(&mut wr) }.map(|()| true)
            }
            // SAFETY: as the caller promises.
            _ => unsafe { self.post_any(request) },
        }
    }

    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        let mut wc = [Wc::default(); 16];
        loop {
            let n = self.queue.poll(&mut wc)?;
            for c in &wc[..n] {
                let status = match c.status {
                    wc_status::SUCCESS => Status::Done,
                    wc_status::FLUSHED => Status::Flushed,
                    wc_status::RETRY_EXCEEDED => Status::Silent,
                    wc_status::LOCAL_QP_OP => Status::Unlinked,
                    wc_status::REMOTE_ACCESS => Status::Refused,
                    _ => Status::Other,
                };
                done(Completion { id: c.wr_id, status, code: c.status });
            }
            if n < wc.len() {
                return Ok(());
            }
        }
    }

    fn break_off(&self) -> Result<()> {
        self.qp.break_off()
    }
    fn explain(&self, code: i32) -> String {
        status_text(code)
    }
    fn bytes(&self) -> usize {
        self.copies.get().map_or(0, Arena::len)
    }
    fn shorten_queue(&self, entries: u32) -> Result<()> {
        self.queue.resize(entries)
    }
}

impl Remote {
    /// lid 2 | number 4 | first packet 4 | mtu 4 | gid 16
    fn encode(&self) -> End {
        let mut b = [0; OPAQUE];
        b[..2].copy_from_slice(&self.lid.to_le_bytes());
        for (to, n) in b[2..14].chunks_exact_mut(4).zip([self.qp_num, self.psn, self.mtu]) {
            to.copy_from_slice(&n.to_le_bytes());
        }
        b[14..30].copy_from_slice(&self.gid.0);
        End(b)
    }
    fn decode(end: &End) -> Remote {
        let b = &end.0;
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let mut gid = Gid::default();
        gid.0.copy_from_slice(&b[14..30]);
        Remote { lid: u16::from_le_bytes([b[0], b[1]]), qp_num: word(2), psn: word(6), mtu: word(10), gid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_back_as_they_went() {
        let end = Remote { qp_num: 18, psn: 0xabcdef, gid: Gid([8; 16]), lid: 4, mtu: 4096 };
        assert_eq!(Remote::decode(&end.encode()), end);
    }
}
