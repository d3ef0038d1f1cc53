//! The notice board of a process, in its region: its doorbells, and what its threads wait for.
//!
//! ```text
//!  0     bell, event bell, condemned         one line, written by peers
//!  64    entry 0 .. entry 31                 one line each, written by the waiting thread
//! ```
//! Entries are written when a wait has outlived its spinning, so they cost nothing on the path of a message.

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::record::of_atomics;
use crate::base::variants::variants;
use static_assertions::const_assert;

/// Threads of a process that can be seen waiting at a time; more wait unseen.
pub const ENTRIES: usize = 32;

variants! {
    /// What a thread waits in.
    pub enum Operation: u32, name {
        /// A send waits for its receive, or for room in the spool.
        Send = 1 => "send",
        /// A receive waits for its message.
        Recv = 2 => "recv",
        /// A receive of any index.
        RecvAny = 3 => "recv",
        /// A barrier.
        Barrier = 4 => "barrier",
        /// The end of the job.
        Finalize = 5 => "finalize",
        /// A receive of any source.
        RecvAnySource = 6 => "recv_any",
        /// A send to a receiver of any source waits for room, or for its message to be taken.
        SendAny = 7 => "send_any",
        /// The master of a multicast, for its members.
        Multicast = 8 => "mcast",
        /// A broadcast.
        Bcast = 9 => "bcast",
        /// A reduction to one rank.
        Reduce = 10 => "reduce",
        /// A reduction to all ranks.
        Allreduce = 11 => "allreduce",
        /// A gather.
        Gather = 12 => "gather",
        /// An allgather.
        Allgather = 13 => "allgather",
        /// A scatter.
        Scatter = 14 => "scatter",
        /// An exchange of all with all.
        Alltoall = 15 => "alltoall",
        /// A reduction of which each rank gets a block.
        ReduceScatter = 16 => "reduce_scatter",
        /// A reduction of all ranks before.
        Scan = 17 => "scan",
        /// The completion of operations on global memory; its peer serves them by itself.
        Global = 18 => "global memory",
        /// Several requests, of which any ends the wait; peer and index are one's.
        Several = 19 => "waitany",
        /// A gather of messages of different lengths.
        Gatherv = 20 => "gatherv",
        /// An allgather of such.
        Allgatherv = 21 => "allgatherv",
        /// A scatter of such.
        Scatterv = 22 => "scatterv",
        /// An exchange of such of all with all.
        Alltoallv = 23 => "alltoallv",
        /// A reduction of the ranks before this one.
        Exscan = 24 => "exscan",
        /// A block of each rank to its neighbours on a grid.
        NeighbourAllgather = 25 => "neighbour_allgather",
        /// A block to each neighbour on a grid.
        NeighbourAlltoall = 26 => "neighbour_alltoall",
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// In which call.
    pub operation: Operation,
    /// For whom.
    pub peer: u32,
    /// On which index (the user's numbering; meaningless in a barrier).
    pub index: i32,
    /// On which communicator.
    pub comm: i32,
    /// Bytes to move, 0 when unknown.
    pub bytes: u64,
    /// Since when, in nanoseconds of the node's clock.
    pub since_ns: u64,
}

of_atomics! { Record:
    #[repr(C, align(64))]
    struct Entry {
        /// 0 free, 1 being written, 2 valid
        state: AtomicU32,
        operation: AtomicU32,
        peer: AtomicU32,
        index: AtomicU32,
        comm: AtomicU32,
        /// How often the thread has found nothing since.
        looks: AtomicU32,
        bytes: AtomicU64,
        since_ns: AtomicU64,
        _pad1: [AtomicU64; 2],
    }
}

of_atomics! { Record:
    /// The records of the board.
    #[repr(C, align(64))]
    pub struct Board {
        /// Rung for threads that sleep; they wait on its value.
        pub bell: AtomicU32,
        /// Rung for the event descriptor.
        pub event_bell: AtomicU32,
        /// Waits of this process that began before this time are part of a deadlock that is to end; written by whoever finds it.
        pub condemned_ns: AtomicU64,
        _pad: [AtomicU32; 12],
        entries: [Entry; ENTRIES],
    }
}

const_assert!(size_of::<Entry>() == 64);
const_assert!(size_of::<Board>() == 64 * (ENTRIES + 1));

impl Board {
    /// Hangs up a notice; `None` when the board is full.
    pub fn hang(&self, w: &Waits) -> Option<Notice<'_>> {
        for entry in &self.entries {
            if entry.state.load(Ordering::Relaxed) == 0
                && entry.state.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                entry.operation.store(w.operation as u32, Ordering::Relaxed);
                entry.peer.store(w.peer, Ordering::Relaxed);
                entry.index.store(w.index as u32, Ordering::Relaxed);
                entry.comm.store(w.comm as u32, Ordering::Relaxed);
                entry.bytes.store(w.bytes, Ordering::Relaxed);
                entry.since_ns.store(w.since_ns, Ordering::Relaxed);
                entry.looks.store(0, Ordering::Relaxed);
                // SYNC POINT: pairs with the load in `read`.
                entry.state.store(2, Ordering::Release);
                return Some(Notice(entry));
            }
        }
        None
    }

    /// Has a thread of this process been waiting for a while?
    pub fn is_waiting(&self) -> bool {
        self.entries[..4].iter().any(|e| e.state.load(Ordering::Relaxed) == 2)
    }

    /// What the threads of this process wait for now.
    pub fn read(&self) -> Vec<Waits> {
        self.entries.iter().filter_map(Entry::read).collect()
    }

    /// How often the wait that began at this time has found nothing, see [`Notice::look`]; `None`: it has ended.
    pub fn looks(&self, since_ns: u64) -> Option<u32> {
        let is_it = |e: &&Entry| e.read().is_some_and(|w| w.since_ns == since_ns);
        self.entries.iter().find(is_it).map(|e| e.looks.load(Ordering::Relaxed))
    }
}

impl Entry {
    fn read(&self) -> Option<Waits> {
        // SYNC POINT: pairs with the release in `hang`. A torn read (the notice went down and another came up meanwhile) is
        // found out by whoever reads twice.
        if self.state.load(Ordering::Acquire) != 2 {
            return None;
        }
        let w = Waits {
            operation: Operation::from_number(self.operation.load(Ordering::Relaxed))?,
            peer: self.peer.load(Ordering::Relaxed),
            index: self.index.load(Ordering::Relaxed) as i32,
            comm: self.comm.load(Ordering::Relaxed) as i32,
            bytes: self.bytes.load(Ordering::Relaxed),
            since_ns: self.since_ns.load(Ordering::Relaxed),
        };
        (self.state.load(Ordering::Acquire) == 2).then_some(w)
    }
}

/// A notice on the board; dropping it takes it down.
pub struct Notice<'a>(&'a Entry);

impl Notice<'_> {
    /// The thread has looked again, and done what it can do for others, and found nothing.
    pub fn look(&self) {
        // Only this thread writes it, and who reads it reads nothing else by it.
        self.0.looks.store(self.0.looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        self.0.state.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_go_up_and_down() {
        // SAFETY: a board is atomics only; all zero is its empty state.
        let board: Box<Board> = unsafe { Box::new(core::mem::zeroed()) };
        let w = Waits { operation: Operation::Recv, peer: 3, index: -1, comm: 0, bytes: 8, since_ns: 77 };
        let first = board.hang(&w).unwrap();
        assert_eq!(board.read(), vec![w]);
        first.look();
        assert_eq!((board.looks(77), board.looks(78)), (Some(1), None));
        let others: Vec<_> = (1..ENTRIES).map(|_| board.hang(&w).unwrap()).collect();
        assert!(board.hang(&w).is_none());
        drop(first);
        assert_eq!(board.read().len(), ENTRIES - 1);
        drop(others);
        assert!(board.read().is_empty());
        assert_eq!(board.looks(77), None);
    }
}
