//! What each side of a pair of ranks keeps for an index beside the shared window: its [`Progress`], and for indices that were ever
//! used off the short path a [`SendSide`] and a [`ReceiveSide`].
//!
//! **Who may use the two sides.** They are cells behind shared references: calls of one thread nest (a send looks for what is
//! consumed, a wait moves other sends on), and each has a reference of its own. Between threads this holds:
//!
//! - One thread at a time sends on a slot, and one receives; the interface demands it, the safe one makes sure of it
//!   (`comm::claim`). Only that thread uses the side. When another thread takes its place the program has ordered the two.
//! - While a send request is *open* ([`SEND_OPEN`]) any thread that waits may move it on, and does then what the sending thread
//!   does. So it is whoever has [`SendSide::held`] that uses the side; the sending thread too must have it. Taking it acquires what
//!   was released by the last who had it. Without it the sending thread reads only what stays as the request began:
//!   `deadline_ns`, `len`.
//! - Who comes by for a request that is completed meanwhile finds `state` at [`SendState::Sent`], and touches nothing else. `state`
//!   is written by whoever holds only.
//! - What others want to know at any time is atomic: [`Progress`], `spooled`.

use std::cell::Cell;

use static_assertions::const_assert;

use super::Lane;
use super::peer_spool::PeerBlock;
use super::record::*;
use crate::base::atomics::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::base::prefetch::prefetch_to_write;
use crate::base::run::Run;

/// What a side knows of its own traffic on an index, private to the process. With what a pending receive was given ([`Wanted`]) it has a
/// line of its own, which is all that a process keeps for an index of short messages: so threads on different indices never write the
/// same line, and a receive that is posted touches one of them.
///
/// The sending thread writes `sent`, `sent_bytes`, `received_then` and `send_flags`, the receiving thread the others.
#[repr(C, align(32))]
pub struct Progress {
    /// Number of the last message sent.
    pub sent: AtomicU64,
    /// Number of the last message received.
    pub received: AtomicU64,
    /// Number of the last message that the peer is known to have received, by its landings; it may have received more. Its low 32 bits:
    /// it is never further behind `sent` than a chain is long.
    acked: AtomicU32,
    /// Length of the last message received; `u32::MAX`: that or more, see [`ReceiveSide::long_len`].
    pub(super) last_len: AtomicU32,
    /// The bytes of all messages sent, their low 32 bits: see [`Lane::count_sent`](super::Lane::count_sent).
    pub(super) sent_bytes: AtomicU32,
    /// What `received` was when the last message was sent, its low 16 bits: a change means that the traffic goes both ways.
    received_then: AtomicU16,
    /// `SEND_*`
    pub send_flags: AtomicU8,
    /// `RECV_*`
    pub recv_flags: AtomicU8,
}
const_assert!(LOANED_AT + size_of::<[AtomicU64; 2]>() <= PROGRESS_STRIDE);

/// Bytes from one slot's record to the next one's.
pub(super) const PROGRESS_STRIDE: usize = 64;
/// Where in them [`Wanted`] lies.
pub(super) const WANTED_AT: usize = size_of::<Progress>();
/// Where the numbers of loans lie, see [`Lane::loaned`].
pub(super) const LOANED_AT: usize = WANTED_AT + size_of::<Wanted>();
/// So many records lie in one page of the smallest size; the first slot of so many asks for the lines of the next.
pub const PROGRESS_GROUP: usize = 4096 / PROGRESS_STRIDE;

/// How many indices ahead a line is asked for, in a window of requests that goes over its indices in order.
pub const AHEAD: isize = 4;

/// Bytes of so many slots' records.
pub(super) const fn progress_bytes(slots: usize) -> usize {
    slots.next_multiple_of(PROGRESS_GROUP) * PROGRESS_STRIDE
}

/// A send request is not completed.
pub const SEND_PENDING: u8 = 1;
/// The pending request has something left to do: see [`SendSide::state`].
pub const SEND_OPEN: u8 = 16;
/// The last message went into the chain.
pub const SEND_CHAIN: u8 = 2;
/// How often the annex was given away, modulo 2.
pub const SEND_ANNEX: u8 = 4;

/// A receive request is not completed.
pub const RECV_PENDING: u8 = 1;
/// The last message came from the chain.
pub const RECV_CHAIN: u8 = 2;
/// How often the annex was received, modulo 2.
pub const RECV_ANNEX: u8 = 4;
/// The pending receive has its message already.
pub const RECV_READY: u8 = 8;
/// The pending receive's message was longer than the buffer.
pub const RECV_TRUNCATED: u8 = 16;
/// The pending receive wants a loan.
pub const RECV_LOAN: u8 = 32;
/// The last message is not acknowledged yet: the next one sent will say it.
pub const RECV_OWES: u8 = 128;

/// At least every so many messages are acknowledged at once, so that acknowledgements in 24 bits are never far behind.
const ACK_EVERY: u64 = 64;

/// How far a pending send has come.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SendState {
    /// The message is on its way; nothing is left to do.
    #[default]
    Sent = 0,
    /// Waits for its posting.
    Waits,
    /// Offered: the receiver pulls.
    Offered,
    /// Published, synchronous: waits until it is known to be received.
    Unconfirmed,
    /// Published, between nodes: the device still reads its memory.
    Read,
    /// Published: the receiver still copies pieces of it.
    Shared,
}

impl SendState {
    /// Does any wait of the process move it on? What a device reads is looked at by its own completion, and so is what only needs to be confirmed.
    pub fn is_moved_on(self) -> bool {
        matches!(self, SendState::Waits | SendState::Offered | SendState::Shared)
    }
}

/// A block of the spool, as the sender remembers it. Size 0: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRef {
    /// Offset in the spool.
    pub at: u64,
    /// Bytes of the block with its header.
    pub size: u64,
    /// Generation of this use.
    pub generation: u32,
}

impl BlockRef {
    /// No block.
    pub const NONE: BlockRef = BlockRef { at: 0, size: 0, generation: 0 };
    /// Is there one?
    pub fn is_some(&self) -> bool {
        self.size != 0
    }
}

/// What the sending side of an index keeps once it was used off the short path. All zero bytes are its first state.
///
/// For the slot's sending thread; from `held` on the pending request's, for whoever holds that, who then also sends: see the module.
#[repr(C)]
pub struct SendSide {
    /// Where chained records go now, or the last block used for a single message.
    pub block: Cell<BlockRef>,
    /// Bytes of it that are written.
    pub used: Cell<u64>,
    /// Blocks left behind that may be done.
    pub behind: [Cell<BlockRef>; 2],
    /// Is the slot in the lane's list of spooled ones?
    pub listed: Cell<bool>,
    /// Is the pending request in the process's list of those that any wait moves on?
    pub waiting: Cell<bool>,
    /// How often in turn, at most four times, no posting came while a buffered send looked for it.
    pub misses: Cell<u8>,
    /// Messages that went through the spool, ever.
    pub(super) spooled: AtomicU64,
    /// Number of the last message whose landing said spooled.
    pub spooled_landing: Cell<u64>,
    /// Number of the first message of the current chain.
    pub chain_first: Cell<u64>,
    /// 1: a thread moves the pending request on.
    held: AtomicU32,
    /// The pending request.
    pub state: Cell<SendState>,
    /// Its memory.
    pub layout: Cell<Layout>,
    /// Its length.
    pub len: Cell<usize>,
    /// When its patience ends, in nanoseconds of the clock; `u64::MAX`: never (synchronous).
    pub deadline_ns: Cell<u64>,
    /// Its transfer block + 1; 0: none.
    pub transfer: Cell<u32>,
    /// The tag of that transfer.
    pub tag: Cell<u32>,
    /// Pieces of it that the receiver has claimed.
    pub theirs: Cell<u32>,
    /// An error found while completing it.
    pub error: Cell<Option<Box<Error>>>,
}

impl Progress {
    /// Notes a message sent; what of the bytes of all messages does not fit here any more.
    #[inline(always)]
    pub(super) fn count_sent(&self, seq: u64, len: usize) -> u64 {
        self.sent.store(seq, Ordering::Relaxed);
        self.received_then.store(self.received.load(Ordering::Relaxed) as u16, Ordering::Relaxed);
        let bytes = self.sent_bytes.load(Ordering::Relaxed) as u64 + len as u64;
        self.sent_bytes.store(bytes as u32, Ordering::Relaxed);
        bytes & !(u32::MAX as u64)
    }
    /// How many messages have been received, for a landing. SYNC POINT: pairs with [`Progress::count_received`], for a thread
    /// that only sends: the peer takes the number for the end of all reads of those messages' memory.
    #[inline(always)]
    pub fn got(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }
    /// Notes message `seq` received; its memory is read no more.
    #[inline(always)]
    pub fn count_received(&self, seq: u64) {
        self.received.store(seq, Ordering::Release);
    }
    /// Notes what a landing says of this side's messages, before the landing is acknowledged: so the next landing's number is no
    /// smaller than any noted here. `theirs`: the half it came in.
    /// SYNC POINT: pairs with [`Progress::is_acked`].
    #[inline(always)]
    pub fn note_acked(&self, land: Land, theirs: &Half) {
        let known = self.acked.load(Ordering::Relaxed);
        let sent = self.sent.load(Ordering::Relaxed);
        // In full width: near `sent`, or one beyond, when a message that another thread is just sending is acknowledged already.
        let known = sent.wrapping_add_signed(known.wrapping_sub(sent as u32) as i32 as i64);
        // A landing that is looked at twice was written before what the half said at the first look: it tells nothing new.
        let mut acked = land.got_beyond(known).unwrap_or(known);
        if acked != sent {
            // Perhaps more messages went since the last landing from there than its number tells apart.
            acked = acked.max(theirs.acked_of(sent));
        }
        if acked != known {
            self.acked.store(acked as u32, Ordering::Release);
        }
    }
    /// Has the peer said in a landing that it received everything up to message `seq`, the last one sent?
    #[inline(always)]
    pub fn is_acked(&self, seq: u64) -> bool {
        self.acked.load(Ordering::Acquire) == seq as u32
    }
    /// May the acknowledgement of message `seq`, whose landing has just come, be left to the next message that this side sends?
    /// So it is when the two sides speak in turn: this side has answered the message before, and the peer had the answer when
    /// it sent. (Where both send at once the peer may have it by now, and had it not then.)
    #[inline(always)]
    pub fn alternates(&self, seq: u64, land: Land) -> bool {
        let sent = self.sent.load(Ordering::Relaxed);
        sent != 0
            && land.got(sent) == sent
            && self.received_then.load(Ordering::Relaxed) == (seq - 1) as u16
            && !seq.is_multiple_of(ACK_EVERY)
    }
    /// Do the two sides speak in turn, and it is the peer's? It had received all but the last message sent, when it sent its last one. (Where
    /// both send at once it had not.)
    #[inline(always)]
    pub fn awaits_answer(&self) -> bool {
        self.acked.load(Ordering::Relaxed).wrapping_add(1) == self.sent.load(Ordering::Relaxed) as u32
    }
    /// Has a message come since the last was sent? To who sends that says that messages go both ways.
    #[inline(always)]
    pub fn is_two_way(&self) -> bool {
        self.received.load(Ordering::Relaxed) as u16 != self.received_then.load(Ordering::Relaxed)
    }
    /// The same to who receives the next one: has nothing been sent since the last came, so that messages only come?
    #[inline(always)]
    pub fn is_inward(&self) -> bool {
        self.is_two_way()
    }
}

impl SendSide {
    /// Takes the pending request to move it on, unless another thread has it.
    pub fn try_hold(&self) -> Option<Hold> {
        self.held.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Hold(&raw const self.held))
    }
    /// As [`SendSide::try_hold`], waiting for the other thread, which has it for moments only.
    pub fn hold(&self) -> Hold {
        loop {
            if let Some(hold) = self.try_hold() {
                return hold;
            }
            crate::base::atomics::spin_loop();
        }
    }
}

/// A pending request held; dropping it lets it go.
pub struct Hold(*const AtomicU32);

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: send sides live as long as their lane, and lanes as long as anybody is in a call.
        unsafe { (*self.0).store(0, Ordering::Release) };
    }
}

/// What the receiving side of an index keeps once it was used off the short path. All zero bytes are its first state.
///
/// For the slot's receiving thread.
#[repr(C)]
pub struct ReceiveSide {
    /// The block whose records are being read, while [`RECV_CHAIN`] says so.
    pub block: Cell<PeerBlock>,
    /// Offset of the next record in the block.
    pub next: Cell<u64>,
    /// The pending request's memory.
    pub layout: Cell<Layout>,
    /// Its capacity.
    pub cap: Cell<usize>,
    /// Length of the last message received, if that does not fit [`Progress`].
    pub(super) long_len: Cell<usize>,
    /// An error found while completing it.
    pub error: Cell<Option<Box<Error>>>,
}

/// What a pending receive of a slot was given. The posting says the same to the sender, who may damage it: so it is never read back.
#[repr(C)]
pub struct Wanted(Cell<Run>);

/// More bytes than a buffer can have.
const SHAPED: usize = usize::MAX;

impl Wanted {
    /// Notes a run of bytes.
    #[inline(always)]
    pub fn set(&self, buffer: Run) {
        self.0.set(buffer);
    }
    /// Notes that it is a block or a list, which stands in [`ReceiveSide`].
    #[inline(always)]
    pub fn set_shaped(&self) {
        // SAFETY: no bytes of it are ever used: see `get`.
        self.0.set(unsafe { Run::new(std::ptr::null_mut(), SHAPED) });
    }
    /// The run of bytes, if it is one.
    #[inline(always)]
    pub fn get(&self) -> Option<Run> {
        let run = self.0.get();
        (run.len() != SHAPED).then_some(run)
    }
}

/// What does not fit the records of the slots goes on elsewhere.
impl Lane {
    /// Notes message `seq` of so many bytes sent. `progress`: that of its slot.
    #[inline(always)]
    pub fn count_sent(&self, progress: &Progress, seq: u64, len: usize) {
        let over = progress.count_sent(seq, len);
        if over != 0 {
            self.count_over(over);
        }
    }
    #[cold]
    fn count_over(&self, over: u64) {
        self.sent_bytes.fetch_add(over, Ordering::Relaxed);
    }
    /// The bytes of all messages of these slots so far.
    pub fn sent_bytes(&self, slots: core::ops::Range<usize>) -> u64 {
        let low: u64 = slots.map(|slot| self.progress(slot).sent_bytes.load(Ordering::Relaxed) as u64).sum();
        low + self.sent_bytes.load(Ordering::Relaxed)
    }
    /// Notes a loan of so many bytes sent.
    #[inline(always)]
    pub fn count_loan(&self, slot: usize, len: usize) {
        let [loans, bytes] = self.loaned(slot);
        loans.store(loans.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        bytes.store(bytes.load(Ordering::Relaxed) + len as u64, Ordering::Relaxed);
    }
    /// Notes the length of the last message received. `progress`: that of the slot.
    #[inline(always)]
    pub fn note_len(&self, progress: &Progress, slot: usize, len: usize) {
        progress.last_len.store(len.min(u32::MAX as usize) as u32, Ordering::Relaxed);
        if len >= u32::MAX as usize {
            self.note_long_len(slot, len);
        }
    }
    #[cold]
    fn note_long_len(&self, slot: usize, len: usize) {
        self.receive_side(slot).long_len.set(len);
    }
    /// Has the first lines come that posting takes of the next groups of indices: those of new pages, where no processor asks ahead by
    /// itself. Many receives are posted in the order of their indices.
    #[inline(never)]
    pub fn fetch_next_group(&self, slot: usize) {
        if slot + 2 * PROGRESS_GROUP <= self.limit() as usize {
            for line in [0, 1, 2, 3] {
                prefetch_to_write(self.posting_here(slot + PROGRESS_GROUP + 2 * line));
                prefetch_to_write(self.progress(slot + PROGRESS_GROUP + line));
            }
        }
    }
    /// The length of the last message received, for the thread that receives.
    pub fn last_len(&self, slot: usize) -> usize {
        match self.progress(slot).last_len.load(Ordering::Relaxed) {
            u32::MAX => self.receive_side(slot).long_len.get(),
            len => len as usize,
        }
    }
    /// The index `by` further on than a slot with this record, or further back, and its record. None where another group begins.
    #[inline(always)]
    pub fn near<'a>(&self, progress: &'a Progress, slot: usize, by: isize) -> Option<(usize, &'a Progress)> {
        let (group, at) = (slot & !(PROGRESS_GROUP - 1), slot.wrapping_add_signed(by));
        if at & !(PROGRESS_GROUP - 1) != group {
            return None;
        }
        // SAFETY: the records of a group's slots are open memory, whether they may be used or not, and lie a line apart.
        Some((at, unsafe { &*(&raw const *progress).byte_offset(by * PROGRESS_STRIDE as isize) }))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn zero() -> Progress {
        Progress {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            acked: AtomicU32::new(0),
            last_len: AtomicU32::new(0),
            sent_bytes: AtomicU32::new(0),
            received_then: AtomicU16::new(0),
            send_flags: AtomicU8::new(0),
            recv_flags: AtomicU8::new(0),
        }
    }

    fn half(acked: u64) -> Half {
        Half {
            land: AtomicU64::new(0),
            rx: AtomicU32::new(word24(acked, 0)),
            tx: AtomicU32::new(0),
            data: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    #[test]
    fn bytes_beyond_32_bits_are_handed_on() {
        let p = zero();
        assert_eq!(p.count_sent(1, u32::MAX as usize), 0);
        assert_eq!(p.count_sent(2, 1), 1 << 32);
        assert_eq!(p.count_sent(3, (5 << 32) + 7), 5 << 32);
        assert_eq!(p.sent_bytes.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn acknowledgements_are_followed_past_32_bits_and_one_beyond_what_is_counted() {
        let p = zero();
        let base = (1u64 << 32) - 2;
        p.acked.store(base as u32, Ordering::Relaxed);
        for sent in base..base + 8 {
            p.sent.store(sent, Ordering::Relaxed);
            // The peer has this message and, where another thread is just sending, the next.
            for got in [sent, sent + 1] {
                p.note_acked(Land::new(1, got, Kind::Inline, 8, 1), &half(got));
                assert!(p.is_acked(got), "{got} of {sent}");
            }
        }
        // A landing that is looked at twice, while the half says more than it: what was known stays, for the next landing to go on from.
        let p = zero();
        p.sent.store(7000, Ordering::Relaxed);
        for _ in 0..2 {
            p.note_acked(Land::new(1, 6999, Kind::Inline, 8, 1), &half(7000));
            assert!(p.is_acked(7000));
        }
        p.sent.store(7001, Ordering::Relaxed);
        p.note_acked(Land::new(2, 7001, Kind::Inline, 8, 1), &half(7000));
        assert!(p.is_acked(7001));
        // Many went since the last landing: the acknowledgement in the half is nearer.
        let p = zero();
        p.sent.store(10_000, Ordering::Relaxed);
        p.note_acked(Land::new(1, 9_000, Kind::Inline, 8, 1), &half(9_000));
        assert!(p.is_acked(9_000));
    }
}
