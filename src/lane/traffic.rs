//! By which way the messages to a peer went, and how many they were.
//!
//! Ways that take long anyway are counted where they are taken ([`Counts`], with the [`Pair`]). The short ones are not: they are what
//! is left of the numbers that the slots keep in any case ([`Sums`]). Only the program's messages to an index count, not the library's own.

use std::sync::PoisonError;

use super::map::SYSTEM_INDICES;
use super::{Lane, Pair};
use crate::base::atomics::{AtomicU64, Ordering};
#[cfg(feature = "trace")]
use crate::base::trace::{Event, What, note};

/// A way that a message has gone.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayTaken {
    /// On this node: in the landing, in an eager slot beside it, or in the overflow queue. Not counted, but what is left.
    Short,
    /// Stored into the posted buffer by the sender: it is memory of `fmpl_alloc`, or the sender's own.
    Store,
    /// Copied into the posted buffer by the kernel, for the sender.
    Kernel,
    /// Through alternating buffers.
    Turn,
    /// Through a ring.
    Ring,
    /// Copied by the kernel, for both sides in pieces.
    Shared,
    /// Copied by the kernel, for the receiver, where its sender has offered it.
    Pulled,
    /// Through the spool.
    Spool,
    /// Handed over.
    Loan,
    /// Between nodes: in the landing or the annex, or short and in the overflow queue. Not counted, but what is left.
    RemoteShort,
    /// Between nodes: put into the posted buffer by the device.
    RemotePut,
    /// Between nodes: fetched from the sender's spool by the receiver.
    RemoteSpool,
}

impl WayTaken {
    /// All ways and their names, in order.
    pub const ALL: [(WayTaken, &'static str); 12] = [
        (WayTaken::Short, "short"),
        (WayTaken::Store, "store"),
        (WayTaken::Kernel, "kernel"),
        (WayTaken::Turn, "turn"),
        (WayTaken::Ring, "ring"),
        (WayTaken::Shared, "shared"),
        (WayTaken::Pulled, "pulled"),
        (WayTaken::Spool, "spool"),
        (WayTaken::Loan, "loan"),
        (WayTaken::RemoteShort, "far short"),
        (WayTaken::RemotePut, "far put"),
        (WayTaken::RemoteSpool, "far spool"),
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        WayTaken::ALL[self as usize].1
    }
}

const WAYS: usize = WayTaken::ALL.len();

/// What is counted for a pair, by any thread that sends. Read by other processes, too (`super::watched`).
#[derive(Default)]
#[repr(C)]
pub struct Counts {
    /// Messages and bytes by way.
    taken: [[AtomicU64; 2]; WAYS],
    /// Messages in the spool that are counted by their way: the others there are short ones in the overflow queue.
    apart: AtomicU64,
    /// What the slots of freed communicators had: as [`Sums`].
    gone: [AtomicU64; SUMS],
}

/// [`Counts`] as numbers.
pub(super) const COUNTS: usize = size_of::<Counts>() / 8;
/// [`Sums`] as numbers.
const SUMS: usize = 6;

/// What the slots of lanes keep, summed up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) received: u64,
    /// Messages that were in the spool.
    pub(super) spooled: u64,
    /// Loans, and their bytes.
    pub(super) loans: [u64; 2],
}

impl Sums {
    fn numbers(&self) -> [u64; SUMS] {
        [self.sent, self.bytes, self.received, self.spooled, self.loans[0], self.loans[1]]
    }

    fn of([sent, bytes, received, spooled, loans, lent]: [u64; SUMS]) -> Sums {
        Sums { sent, bytes, received, spooled, loans: [loans, lent] }
    }

    fn add(&mut self, other: Sums) {
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.received += other.received;
        self.spooled += other.spooled;
        self.loans = [0, 1].map(|k| self.loans[k] + other.loans[k]);
    }
}

const _: () = assert!(COUNTS == 2 * WAYS + 1 + SUMS);

impl Counts {
    /// All of them, in order.
    fn numbers(&self) -> [u64; COUNTS] {
        let all = self.taken.iter().flatten().chain([&self.apart]).chain(&self.gone);
        let mut numbers = [0; COUNTS];
        numbers.iter_mut().zip(all).for_each(|(number, count)| *number = count.load(Ordering::Relaxed));
        numbers
    }
}

impl Pair {
    /// A message on this slot goes by a way that is counted.
    pub fn count_taken(&self, slot: usize, way: WayTaken, len: usize) {
        if slot >= SYSTEM_INDICES {
            let [messages, bytes] = &self.traffic.taken[way as usize];
            messages.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
    }
    /// A message on this slot is in the spool and counted by its way.
    pub fn count_apart(&self, slot: usize) {
        self.traffic.apart.fetch_add((slot >= SYSTEM_INDICES) as u64, Ordering::Relaxed);
    }
}

impl Lane {
    fn sums(&self) -> Sums {
        let slots = SYSTEM_INDICES..self.limit() as usize;
        let mut sums = Sums { bytes: self.sent_bytes(slots.clone()), ..Sums::default() };
        for slot in slots {
            let (progress, loaned) = (self.progress(slot), self.loaned(slot));
            sums.sent += progress.sent.load(Ordering::Relaxed);
            sums.received += progress.received.load(Ordering::Relaxed);
            sums.loans = [0, 1].map(|k| sums.loans[k] + loaned[k].load(Ordering::Relaxed));
        }
        let listed = self.spooled.lock().unwrap_or_else(PoisonError::into_inner);
        let spooled = listed.iter().map(|slot| *slot as usize).filter(|slot| *slot >= SYSTEM_INDICES);
        sums.spooled = spooled.map(|slot| self.spooled_ever(slot).load(Ordering::Relaxed)).sum();
        sums
    }

    /// The lane is about to be freed: its numbers go on to count.
    pub fn leave_traffic(&self) {
        for (gone, more) in self.traffic.gone.iter().zip(self.sums().numbers()) {
            gone.fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// Events of messages, see [`trace`](crate::base::trace).
#[cfg(feature = "trace")]
impl Lane {
    /// A message on a slot is on its way.
    pub fn note_sent(&self, slot: usize, way: &'static str, len: usize, seq: u64) {
        self.note(What::Sent, slot, way, len, seq);
    }
    /// A receive has its message.
    pub fn note_received(&self, slot: usize, len: usize, seq: u64) {
        self.note(What::Received, slot, "", len, seq);
    }
    /// A message that was offered is in the spool now.
    pub fn note_moved(&self, slot: usize, len: usize, seq: u64) {
        self.note(What::Moved, slot, "", len, seq);
    }
    fn note(&self, what: What, slot: usize, name: &'static str, len: usize, seq: u64) {
        let index = slot as i32 - SYSTEM_INDICES as i32;
        let (peer, comm, bytes) = (self.world, self.comm(), len as u64);
        note(Event { peer, index, comm, bytes, number: seq, ..Event::new(what, name) });
    }
}

/// The messages of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages and bytes sent, by way.
    pub taken: [[u64; 2]; WAYS],
    /// Of the short ones those through the overflow queue.
    pub queued: u64,
    /// Messages received.
    pub received: u64,
}

impl Traffic {
    /// What all lanes of a process have carried, the world's among them. Where threads send meanwhile it may be a message off.
    pub fn of<'a>(lanes: impl Iterator<Item = &'a Lane>) -> Traffic {
        let mut all = Traffic::default();
        let mut queued = 0i64;
        for lane in lanes {
            // Once for each pair.
            let counts = (lane.comm() == super::COMM_WORLD).then(|| lane.traffic.numbers());
            queued += all.add(lane.remote().is_some(), lane.sums(), counts);
        }
        all.queued = queued.max(0) as u64;
        all.settle();
        all
    }

    /// What a lane has carried, and the counts of its pair, if they are not in yet; how many more were queued.
    pub(super) fn add(&mut self, remote: bool, mut sums: Sums, counts: Option<[u64; COUNTS]>) -> i64 {
        let short = (if remote { WayTaken::RemoteShort } else { WayTaken::Short }) as usize;
        let mut apart = 0;
        if let Some(counts) = counts {
            let (taken, rest) = counts.split_at(2 * WAYS);
            for (way, taken) in taken.chunks_exact(2).enumerate() {
                self.move_to(way, short, [taken[0], taken[1]]);
            }
            apart = rest[0];
            sums.add(Sums::of(std::array::from_fn(|k| rest[1 + k])));
        }
        let sent = &mut self.taken[short];
        *sent = [sent[0].wrapping_add(sums.sent), sent[1].wrapping_add(sums.bytes)];
        self.move_to(WayTaken::Loan as usize, short, sums.loans);
        self.received = self.received.wrapping_add(sums.received);
        sums.spooled.wrapping_sub(apart) as i64
    }

    /// A message that is counted while this looks may have been found among those of its way and not yet among all.
    pub(super) fn settle(&mut self) {
        for number in self.taken.iter_mut().flatten().filter(|n| (**n as i64) < 0) {
            *number = 0;
        }
    }

    /// Of what is counted as short so many went another way.
    fn move_to(&mut self, way: usize, short: usize, taken: [u64; 2]) {
        for k in [0, 1] {
            self.taken[way][k] = self.taken[way][k].wrapping_add(taken[k]);
            self.taken[short][k] = self.taken[short][k].wrapping_sub(taken[k]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counted_while_this_looks_is_none_too_few() {
        let mut all = Traffic::default();
        all.move_to(WayTaken::Spool as usize, WayTaken::Short as usize, [1, 100]);
        all.settle();
        assert_eq!(all.taken[WayTaken::Short as usize], [0, 0]);
        assert_eq!(all.taken[WayTaken::Spool as usize], [1, 100]);
    }
}
