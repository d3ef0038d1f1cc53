//! The connection of this process with itself: by it its own device changes words of its own memory, so that all changes of a word are made by
//! the same device. A queue pair whose other end it is itself; one request at a time.

use std::sync::{Arc, Mutex, PoisonError};

use super::completion::{CompletionQueue, status_text};
use super::device::Port;
use super::ffi::{Access, Atomic, SendFlags, SendWr, Sge, Target, Wc, opcode, wc_status};
use super::hello::Place;
use super::link::Change;
use super::queue_pair::{Depth, QueuePair, Remote, SharedReceives, first_packet};
use super::region::{Arena, Domain};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};

/// A device that has not answered for so long is out of order.
const PATIENCE_NS: u64 = 5_000_000_000;

/// See the head of this file.
#[derive(Debug)]
pub struct Own {
    qp: QueuePair,
    queue: Arc<CompletionQueue>,
    /// What was there before comes here.
    old: Mutex<Arena>,
}

impl Own {
    /// Connects this process with itself by a port.
    pub fn new(domain: &Arc<Domain>, port: &Port) -> Result<Own> {
        let queue = CompletionQueue::new(&port.device, 4, None)?;
        let none = SharedReceives::new(domain, 1)?;
        let depth = Depth { sends: 2, receives: 0, pieces: 1, inline: 0 };
        let qp = QueuePair::reliable(domain, port, [&queue, &queue], &none, depth)?;
        let psn = first_packet()?;
        qp.connect(&Remote { qp_num: qp.number(), psn, gid: port.address.gid, lid: port.lid, mtu: port.mtu }, psn)?;
        Ok(Own { qp, queue, old: Mutex::new(Arena::new(domain, 8, Access::LOCAL_WRITE)?) })
    }

    /// Changes an aligned word of eight bytes of this process's registered memory; what was there.
    pub fn change(&self, at: Place, change: Change) -> Result<u64> {
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        let (code, compare_add, swap) = match change {
            Change::Add(n) => (opcode::ATOMIC_FETCH_AND_ADD, n, 0),
            Change::Swap(expected, new) => (opcode::ATOMIC_CMP_AND_SWP, expected, new),
        };
        let target = Target { atomic: Atomic { remote_addr: at.addr, compare_add, swap, rkey: at.rkey } };
        let mut sge = Sge { addr: old.as_ptr() as u64, length: 8, lkey: old.region().lkey() };
        let mut wr = SendWr::new(code, SendFlags::SIGNALED, target);
        (wr.sg_list, wr.num_sge) = (&mut sge, 1);
        // SAFETY: the request is whole; its memory is this call's until it has completed, and afterwards nobody else's.
        unsafe { self.qp.post(&mut wr)? };
        let (mut wc, since) = ([Wc::default()], now_ns());
        while self.queue.poll(&mut wc)? == 0 {
            if now_ns() - since > PATIENCE_NS {
                return Err(Error::new(
                    Code::System,
                    "the RDMA device has not changed a word of this process within 5 s",
                ));
            }
            std::thread::yield_now();
        }
        if wc[0].status != wc_status::SUCCESS {
            let text = format!("changing a word of this process by its RDMA device: {}", status_text(wc[0].status));
            return Err(Error::new(Code::System, text));
        }
        // SAFETY: eight bytes that the device has written.
        Ok(unsafe { old.as_ptr().cast::<u64>().read_volatile() })
    }
}
