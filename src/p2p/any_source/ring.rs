//! The ring of an index at its receiver: its records, where they lie, and the few operations on them.
//!
//! ```text
//!  0        sent          line, senders          tickets given out (SendCNT)
//!  64       freed, limit  line, receiver         messages taken (RecvCNT); how many may be outstanding, 0: all slots
//!  128      asleep        line, receiver         its sleep byte
//!  192      wanted, bell  line, senders          somebody sleeps until there is room; what they sleep on
//!  4 KiB    slots         64 B each
//!           areas         1 KiB for each slot, for messages that do not fit the slot's own line
//! ```
//! A **slot**, written by the sender that has its ticket, and only then:
//!
//! ```text
//!      +--------+-----------------------+----------------------------------------------------+
//!      |  mark  |  source 32 | length 32|  up to 48 bytes of message, or where it is         |
//!      +--------+-----------------------+----------------------------------------------------+
//!  mark   ticket + 1 32 | kind 8 | 0 | epoch 16     one release store, last: the slot is valid
//! ```
//! A mark is for one ticket only, so nobody has to clear it: in the next round the slot is given out under another number.
//!
//! With many senders a ring is several of these, one behind the other, each with a share of the slots: see [`super::share`].
//!
//! This file is the seam to the fabric: all that a sender does to a ring is [`Ring::claim`] (a fetch-and-add that adds only while there
//! is room), the read of `freed` in it, and [`Ring::publish`] (a put of one line, mark last, with an area before it).

use core::mem::offset_of;

use static_assertions::const_assert;

use super::share::SHARES_MOST;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::prefetch::prefetch_run_to_write;
use crate::base::record::{Record, of_atomics};
use crate::base::run::Run;
use crate::fabric::shm::region::{ANY_AT, Mapping, PLACES_AT};
use crate::lane::map::{SLOTS as INDICES, UNIT_SLOTS, UNITS};

/// Bytes of message in a slot itself.
pub const SLOT_BYTES: usize = 48;
/// Bytes of message in a slot's area.
pub const AREA_BYTES: usize = 1024;
/// Most slots that a ring can have.
pub const SLOTS_MOST: usize = 4096;
/// Distance of rings in the region.
const STRIDE: u64 = 8 << 20;
const SLOTS_AT: usize = 4096;
/// Slots whose areas' pages are mapped together.
const GROUP: u64 = 64;
/// Rings of communicators other than the world come behind the world's: so many for each of their units.
const PER_UNIT: u64 = UNIT_SLOTS as u64;

const_assert!(SHARES_MOST * SLOTS_AT + SLOTS_MOST * (64 + AREA_BYTES) <= STRIDE as usize);
const_assert!(SLOTS_MOST as u64 / GROUP <= u64::BITS as u64);
const_assert!(ANY_AT + (INDICES as u64 + UNITS as u64 * PER_UNIT) * STRIDE <= PLACES_AT);

/// Where in the receiver's region the ring of an index lies; `unit`: the communicator's first, none for the world.
pub fn ring_at(unit: Option<u32>, index: usize) -> u64 {
    let first = unit.map_or(0, |u| INDICES as u64 + u as u64 * PER_UNIT);
    ANY_AT + (first + index as u64) * STRIDE
}

/// The rings of a communicator with these units: first byte and bytes.
pub fn rings_of(unit: u32, units: u32) -> (u64, u64) {
    (ring_at(Some(unit), 0), units as u64 * PER_UNIT * STRIDE)
}

/// What is in a slot.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The message, in the slot's line.
    Inline = 1,
    /// The message, in the slot's area.
    Area = 2,
    /// Where in the source's spool the message is: {length, block, generation}.
    Spooled = 3,
    /// Where in the source's spool an offer is: {length, block, generation}.
    Offered = 4,
    /// No message: a ticket between nodes that turned out not to be needed.
    Nothing = 5,
    /// It is handed over: {the words of its [`Descriptor`](crate::lane::loan::Descriptor)}.
    Loan = 7,
    /// Never written: what is read where the slot says what none can.
    Damaged = 6,
}

impl Kind {
    /// Bytes that a slot of this kind has at most, by its own word.
    #[inline(always)]
    fn most(self) -> u32 {
        if self == Kind::Inline { SLOT_BYTES as u32 } else { AREA_BYTES as u32 }
    }

    pub(super) fn from_number(n: u8) -> Option<Kind> {
        let kinds = [Kind::Inline, Kind::Area, Kind::Spooled, Kind::Offered, Kind::Nothing, Kind::Loan];
        kinds.into_iter().find(|k| *k as u8 == n)
    }
}

of_atomics! { Record:
/// The first lines of a ring.
#[repr(C, align(64))]
pub struct Header {
    /// Tickets given out: SendCNT.
    pub sent: AtomicU64,
    _pad0: [AtomicU64; 7],
    /// Messages taken: RecvCNT. Slots of tickets below are free again.
    pub freed: AtomicU64,
    /// Most messages outstanding; 0: as many as there are slots.
    pub limit: AtomicU64,
    _pad1: [AtomicU64; 6],
    /// The receiver's sleep byte.
    pub asleep: AtomicU32,
    _pad2: [AtomicU32; 15],
    /// `ROOM`, `TAKEN`: what senders sleep for.
    pub wanted: AtomicU32,
    /// What they sleep on (futex).
    pub bell: AtomicU32,
    _pad3: [AtomicU32; 14],
}
}

const_assert!(size_of::<Header>() == 256);

/// [`Header::wanted`]: room for another message.
pub const ROOM: u32 = 1;
/// [`Header::wanted`]: that a certain message is taken.
pub const TAKEN: u32 = 2;

of_atomics! { Record:
/// One slot.
#[repr(C, align(64))]
pub struct Slot {
    mark: AtomicU64,
    source: AtomicU64,
    data: [AtomicU64; SLOT_BYTES / 8],
}
}

const_assert!(size_of::<Slot>() == 64);

/// A valid slot's mark and source, as they were read.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// What is in it.
    pub kind: Kind,
    /// Who sent it: rank in the world.
    pub source: u32,
    /// Bytes, for what lies in slot or area.
    pub len: u32,
}

/// Where a message is that lies in no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Bytes of the message.
    pub len: u64,
    /// The block in the source's spool.
    pub at: u64,
    /// Its generation.
    pub generation: u32,
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// This ticket: its slot is the caller's to fill.
    Ticket(u64),
    /// No room.
    Full,
}

/// A ring as one process sees it.
pub struct Ring {
    window: Mapping,
    mask: u64,
    epoch: u16,
    /// Of which groups of areas this process has had the pages mapped: a bit for each.
    mapped: AtomicU64,
}

impl Ring {
    /// Bytes of a ring of so many slots.
    pub fn bytes(slots: usize) -> usize {
        SLOTS_AT + slots * (64 + AREA_BYTES)
    }

    /// The ring in a window of [`Ring::bytes`] bytes; `slots` is a power of two.
    pub fn new(window: Mapping, slots: usize, epoch: u16) -> Ring {
        assert!(slots.is_power_of_two() && slots <= SLOTS_MOST && window.len() >= Ring::bytes(slots));
        Ring { window, mask: slots as u64 - 1, epoch, mapped: AtomicU64::new(1) }
    }

    /// The first lines.
    #[inline(always)]
    pub fn header(&self) -> &Header {
        self.record(0)
    }

    /// A record at a place that there is.
    #[inline(always)]
    fn record<T: Record>(&self, at: usize) -> &T {
        // SAFETY: the window begins at a line and holds a header and a slot for each number that the mask leaves, all of them atomics only.
        unsafe { &*self.window.as_ptr().add(at).cast::<T>() }
    }

    #[inline(always)]
    fn slot(&self, ticket: u64) -> &Slot {
        self.record(SLOTS_AT + (ticket & self.mask) as usize * 64)
    }

    /// The bytes of a slot's line that are the message's.
    #[inline(always)]
    fn line(&self, ticket: u64) -> Run {
        self.run(SLOTS_AT + (ticket & self.mask) as usize * 64 + offset_of!(Slot, data), SLOT_BYTES)
    }

    /// Bytes at a place that there are.
    #[inline(always)]
    fn run(&self, at: usize, len: usize) -> Run {
        // SAFETY: within the window. They are the ticket holder's alone until the mark is there, and the receiver's until it is freed.
        unsafe { Run::new(self.window.as_ptr().add(at), len) }
    }

    #[inline(always)]
    fn area(&self, ticket: u64) -> Run {
        self.areas(ticket, 1)
    }

    /// So many areas from that of a ticket on, which are there.
    #[inline(always)]
    fn areas(&self, ticket: u64, many: usize) -> Run {
        let (slots, n) = (self.mask as usize + 1, (ticket & self.mask) as usize);
        self.run(SLOTS_AT + slots * 64 + n * AREA_BYTES, many * AREA_BYTES)
    }

    /// Before something is written to an area: has the pages of its group mapped in one go, which takes a tenth of the time that a fault
    /// for each of them takes. Those of the first group come as they are needed, so that an index of few messages takes few pages.
    #[inline(always)]
    fn map_group(&self, ticket: u64) {
        let group = (ticket & self.mask) / GROUP;
        if self.mapped.load(Ordering::Relaxed) >> group & 1 == 0 {
            self.map_pages(group);
        }
    }

    #[cold]
    #[inline(never)]
    fn map_pages(&self, group: u64) {
        self.mapped.fetch_or(1 << group, Ordering::Relaxed);
        #[cfg(not(loom))]
        crate::base::system::populate(self.areas(group * GROUP, GROUP as usize));
    }

    /// Has the lines come that a message of so many bytes under this ticket would be written to, the slot's own excepted, at which the
    /// receiver may be looking.
    #[inline(always)]
    pub fn prefetch_area(&self, ticket: u64, len: usize) {
        let area = self.area(ticket).ptr();
        prefetch_run_to_write(area, len.min(AREA_BYTES));
    }

    /// How many messages may be outstanding.
    pub fn limit(&self) -> u64 {
        let slots = self.mask + 1;
        match self.header().limit.load(Ordering::Relaxed) {
            0 => slots,
            n => n.min(slots),
        }
    }

    /// Below which ticket there is room, as the receiver says now.
    #[inline]
    pub fn room(&self) -> u64 {
        // SYNC POINT: pairs with the release in `free`: the receiver's reads of the slots below are over.
        self.header().freed.load(Ordering::Acquire).saturating_add(self.limit())
    }

    /// Is there room for several messages, so that it is worth coming for it?
    pub fn has_much_room(&self) -> bool {
        self.header().sent.load(Ordering::Relaxed).saturating_add(self.limit() / 4) <= self.room()
    }

    /// Do the counters say what they never can, since no sender takes a ticket before there is a slot for it? `taken`: messages taken, if
    /// the caller is who takes them.
    pub fn is_damaged(&self, taken: Option<u64>) -> bool {
        let header = self.header();
        let freed = header.freed.load(Ordering::Acquire);
        let sent = header.sent.load(Ordering::Acquire);
        // What is freed between the two looks says nothing of what was when the other was read.
        let still = header.freed.load(Ordering::Acquire) == freed;
        taken.is_some_and(|taken| taken != freed) || still && sent.wrapping_sub(freed) > self.mask + 1
    }

    /// Takes the next ticket if there is room, as far as `room` says, or the ring itself. `stake` is told each ticket before it is
    /// tried for, so that a death in between leaves a trace.
    #[inline(always)]
    pub fn claim(&self, room: &AtomicU64, stake: impl Fn(u64)) -> Claimed {
        let sent = &self.header().sent;
        let mut ticket = sent.load(Ordering::Relaxed);
        loop {
            // Another thread of this process may have read what it says: its acquire goes on with it.
            if ticket >= room.load(Ordering::Acquire) {
                let now = self.room();
                room.store(now, Ordering::Release);
                if ticket >= now {
                    // The ticket may be an old one, and the ring full for it only.
                    let again = sent.load(Ordering::Relaxed);
                    if again == ticket {
                        return Claimed::Full;
                    }
                    ticket = again;
                    continue;
                }
            }
            stake(ticket);
            // SYNC POINT: pairs with the acquire in `is_claimed`: who sees the ticket gone sees the stake.
            match sent.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Claimed::Ticket(ticket),
                Err(now) => ticket = now,
            }
        }
    }

    /// Publishes a message of up to [`AREA_BYTES`] bytes under a ticket of the caller's, which is not used yet.
    #[inline(always)]
    pub fn publish(&self, ticket: u64, source: u32, from: Run) {
        let slot = self.slot(ticket);
        let kind = if from.len() <= 16 {
            let [a, b] = from.words();
            slot.data[0].store(a, Ordering::Relaxed);
            slot.data[1].store(b, Ordering::Relaxed);
            Kind::Inline
        } else if from.len() <= SLOT_BYTES {
            from.copy_to(self.line(ticket));
            Kind::Inline
        } else {
            self.map_group(ticket);
            from.copy_to(self.area(ticket));
            Kind::Area
        };
        self.mark(slot, ticket, source, from.len() as u32, kind);
    }

    /// Publishes where a message is.
    pub fn publish_away(&self, ticket: u64, source: u32, kind: Kind, away: Away) {
        let slot = self.slot(ticket);
        slot.data[0].store(away.len, Ordering::Relaxed);
        slot.data[1].store(away.at, Ordering::Relaxed);
        slot.data[2].store(away.generation as u64, Ordering::Relaxed);
        self.mark(slot, ticket, source, 0, kind);
    }

    #[inline(always)]
    fn mark(&self, slot: &Slot, ticket: u64, source: u32, len: u32, kind: Kind) {
        slot.source.store(source as u64 | (len as u64) << 32, Ordering::Relaxed);
        let mark = ticket.wrapping_add(1) & 0xffff_ffff | (kind as u64) << 32 | (self.epoch as u64) << 48;
        // SYNC POINT: pairs with the acquire in `arrival`.
        slot.mark.store(mark, Ordering::Release);
    }

    /// The message of a ticket, if it is there.
    #[inline(always)]
    pub fn arrival(&self, ticket: u64) -> Option<Arrival> {
        let slot = self.slot(ticket);
        // SYNC POINT: pairs with the release in `mark`.
        let mark = slot.mark.load(Ordering::Acquire);
        if mark as u32 != ticket.wrapping_add(1) as u32 || (mark >> 48) as u16 != self.epoch {
            return None;
        }
        let source = slot.source.load(Ordering::Relaxed);
        // A slot that says what none can is one with nothing to be had from it.
        let kind = Kind::from_number((mark >> 32) as u8).unwrap_or(Kind::Damaged);
        let (source, len) = (source as u32, (source >> 32) as u32);
        Some(Arrival { kind: if len <= kind.most() { kind } else { Kind::Damaged }, source, len })
    }

    /// Copies the first bytes of a message that lies in slot or area, which has as many as `to`.
    #[inline(always)]
    pub fn deliver(&self, ticket: u64, kind: Kind, to: Run) {
        let slot = self.slot(ticket);
        if kind == Kind::Area {
            let from = self.area(ticket).first(to.len());
            from.copy_to(to);
            from.take_over();
        } else if to.len() <= 16 {
            to.set_words([slot.data[0].load(Ordering::Relaxed), slot.data[1].load(Ordering::Relaxed)], 16);
        } else {
            self.line(ticket).copy_to(to);
        }
    }

    /// Where the message of a ticket is.
    pub fn away(&self, ticket: u64) -> Away {
        let slot = self.slot(ticket);
        Away {
            len: slot.data[0].load(Ordering::Relaxed),
            at: slot.data[1].load(Ordering::Relaxed),
            generation: slot.data[2].load(Ordering::Relaxed) as u32,
        }
    }

    /// Frees the slot of the last message taken: `taken` messages are taken by now.
    #[inline(always)]
    pub fn free(&self, taken: u64) {
        // SYNC POINT: pairs with the acquire in `room`.
        self.header().freed.store(taken, Ordering::Release);
    }

    /// Has somebody taken this ticket?
    pub fn is_claimed(&self, ticket: u64) -> bool {
        // SYNC POINT: pairs with the exchange in `claim`.
        self.header().sent.load(Ordering::Acquire) > ticket
    }

    /// Is the message of this ticket taken?
    #[inline]
    pub fn is_taken(&self, ticket: u64) -> bool {
        self.header().freed.load(Ordering::Acquire) > ticket
    }
}

#[cfg(test)]
mod tests;
