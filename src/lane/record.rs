//! The records that two processes share, drawn and asserted.
//!
//! **Hot line**, one for a pair of ranks and an index. Each side writes only its own half, so one line that the two cores
//! take in turn carries landings and acknowledgements of both directions:
//!
//! ```text
//!  byte 0        8        12       16                     32
//!  +--------+--------+--------+----------------------+----------------------------------------------+
//!  |  land  |   rx   |   tx   |  data 0   |  data 1  |   the same five words of the other side      |
//!  +--------+--------+--------+----------------------+----------------------------------------------+
//!   land  seq 24 | got 12 | kind 4 | inline length 7 | now 1 | epoch 16     written last, by one release store
//!   rx    acknowledged seq 24 | sleep 8                    by the side's receiving thread
//!   tx    first seq of the chain 24 | sleep 8              by the side's sending thread
//!   data  the bytes (up to 16), or {length, location}
//! ```
//!
//! `got` is how many messages the sender of the landing had received on the index when it published: in traffic that
//! alternates a reply carries the acknowledgement, and the receiver stores none of its own (see [`crate::lane::Progress`]).
//!
//! **Posting**, 32 bytes in an array of its own for each direction, written by the receiver only: where message `seq` may be put.
//!
//! **Head**, 16 bytes in a third array, written by the sender only: where the chain begins, and which message the sender is
//! about to put or waits to put.
//!
//! **Block**, in the sender's spool: a header and packed records of one index; the receiver walks it by itself.
//!
//! ```text
//!  +----------------------------------+----------------------------------+--------+---------+--------+---------+-----
//!  | sender's line: first, owner, gen | receiver's line: taken, done     | record | payload | record | payload | 0
//!  +----------------------------------+----------------------------------+--------+---------+--------+---------+-----
//!   record  seq 32 | kind 8 | length 24 (or, all ones, the length is in the next word)    written last, by release
//! ```
//! The word after a record is zeroed before the record is published, so the receiver can poll it.

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::record::of_atomics;
use crate::base::variants::variants;

mod any_index;
mod shape_of_records;
pub use any_index::*;

/// Bytes that travel in the hot line itself.
pub const INLINE_BYTES: usize = 16;

variants! {
    /// How a landing's payload travelled.
    pub enum Kind: u8 {
        /// In the landing's data words.
        Inline = 1,
        /// In the annex that both directions use in turn; data: length.
        Annex = 2,
        /// In the sender's spool; data: length, offset of the record.
        Spooled = 3,
        /// Already in the posted buffer; data: length.
        Direct = 4,
        /// Comes through a ring; data: length, ring and its first chunk number.
        Ring = 5,
        /// Both sides copy; data: length, transfer block.
        Coop = 6,
        /// The receiver fetches it; data: length, transfer block.
        Pull = 7,
        /// The first 16 bytes in the data words, the rest in the split line, which is written behind the landing and ends in the
        /// message's [`split_mark`].
        Split = 9,
        /// In the direction's own annex; data: length.
        OwnAnnex = 10,
        /// As split, with the direction's own split line.
        OwnSplit = 11,
        /// Between nodes: in the landing at the receiver.
        RemoteInline = 12,
        /// Comes through an area that both directions use in turn; data: length; area, log2 of its chunks, tag.
        Turn = 13,
        /// In memory that is handed over: the words are a [`Descriptor`](super::loan::Descriptor). In a block: so are the next two words.
        Loan = 14,
        /// Between nodes: in the annex at the receiver; data: length, which part.
        RemoteAnnex = 15,
        /// In a block: the chain goes on in another block; the next word is its offset.
        Link = 8,
    }
}

/// A landing word, taken apart and put together.
///
/// 24 bits of a number are enough: a chain is shorter than that, so the last landing is never further behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Land(pub u64);

const GOT_BITS: u32 = 12;
const GOT_AT: u32 = 24;
const KIND_AT: u32 = 36;
const INLINE_LEN_AT: u32 = 40;
const NOW: u64 = 1 << 47;
const EPOCH_AT: u32 = 48;

impl Land {
    /// The word of message `seq`, from a side that has received `got` messages.
    #[inline(always)]
    pub fn new(seq: u64, got: u64, kind: Kind, inline_len: usize, epoch: u16) -> Land {
        Land(
            (seq & SEQ24 as u64)
                | (got & ((1 << GOT_BITS) - 1)) << GOT_AT
                | (kind as u64) << KIND_AT
                | (inline_len as u64 & 0x7f) << INLINE_LEN_AT
                | (epoch as u64) << EPOCH_AT,
        )
    }
    /// The same, to be acknowledged at once: its sender waits for that.
    #[inline(always)]
    pub fn now(self) -> Land {
        Land(self.0 | NOW)
    }
    /// Is this the landing of message `seq`?
    #[inline(always)]
    pub fn is(self, seq: u64, epoch: u16) -> bool {
        (self.0 ^ (seq & SEQ24 as u64 | (epoch as u64) << EPOCH_AT)) & (0xffff << EPOCH_AT | SEQ24 as u64) == 0
    }
    /// The number of its [`Kind`].
    #[inline(always)]
    pub fn kind(self) -> u8 {
        (self.0 >> KIND_AT) as u8 & 0xf
    }
    /// Is the message in the data words, and its sender not in a wait for the acknowledgement? As short a look as that at the kind.
    #[inline(always)]
    pub fn is_plain_inline(self) -> bool {
        (self.0 >> KIND_AT) & (0xf | NOW >> KIND_AT) == Kind::Inline as u64
    }
    /// Bytes in the data words.
    #[inline(always)]
    pub fn inline_len(self) -> usize {
        (self.0 >> INLINE_LEN_AT) as usize & 0x7f
    }
    /// Does its sender wait for the acknowledgement?
    #[inline(always)]
    pub fn is_now(self) -> bool {
        self.0 & NOW != 0
    }
    /// How many of this side's messages its sender had received, given that it was at least `known`; too few, by a multiple of
    /// 4096, if it was 4096 or more beyond.
    #[inline(always)]
    pub fn got(self, known: u64) -> u64 {
        known + ((self.0 >> GOT_AT).wrapping_sub(known) & ((1 << GOT_BITS) - 1))
    }
    /// The same where it may have been less: `None` then, or if it was 2048 or more beyond.
    #[inline(always)]
    pub fn got_beyond(self, known: u64) -> Option<u64> {
        let got = self.got(known);
        (got - known < 1 << (GOT_BITS - 1)).then_some(got)
    }
}

/// What the split line of message `seq` of a direction ends in. Both directions use the line in turn, each with its own numbers.
#[inline(always)]
pub fn split_mark(seq: u64, direction: usize) -> u64 {
    seq << 1 | direction as u64
}

/// 24 bits of a sequence number above 8 bits that say how the writer sleeps.
pub const SEQ24: u32 = 0xff_ffff;
pub use crate::wait::{ASLEEP, EVENT};

/// `rx` or `tx` of a half.
#[inline(always)]
pub fn word24(seq: u64, sleep: u32) -> u32 {
    ((seq as u32 & SEQ24) << 8) | sleep
}

/// One side's half of the hot line.
#[repr(C, align(32))]
pub struct Half {
    /// See [`Land`].
    pub land: AtomicU64,
    /// Acknowledged seq and sleep byte, by the receiving thread.
    pub rx: AtomicU32,
    /// First seq of the chain and sleep byte, by the sending thread.
    pub tx: AtomicU32,
    /// The bytes, or length and location.
    pub data: [AtomicU64; 2],
}

/// The hot line.
#[repr(C, align(64))]
pub struct Hot {
    /// By side: the lower rank's, the higher rank's.
    pub half: [Half; 2],
}

impl Half {
    /// Publishes a landing: everything stored before is visible to who sees it.
    /// SYNC POINT: pairs with [`Half::landing`].
    #[inline(always)]
    pub fn publish(&self, land: Land) {
        self.land.store(land.0, Ordering::Release);
    }
    /// SYNC POINT: pairs with [`Half::publish`].
    #[inline(always)]
    pub fn landing(&self) -> Land {
        Land(self.land.load(Ordering::Acquire))
    }
    /// Acknowledges: the receiver's reads of message `seq`'s memory are over.
    /// SYNC POINT: pairs with [`Half::acked`].
    #[inline(always)]
    pub fn acknowledge(&self, seq: u64, sleep: u32) {
        self.rx.store(word24(seq, sleep), Ordering::Release);
    }
    /// Has message `seq` (the last one sent) been acknowledged?
    /// SYNC POINT: pairs with [`Half::acknowledge`].
    #[inline(always)]
    pub fn acked(&self, seq: u64) -> bool {
        self.rx.load(Ordering::Acquire) >> 8 == seq as u32 & SEQ24
    }
    /// The last acknowledgement in full width, `sent` messages having been sent: at most so many, and less than 2^24 fewer.
    /// SYNC POINT: pairs with [`Half::acknowledge`].
    #[inline(always)]
    pub fn acked_of(&self, sent: u64) -> u64 {
        sent.saturating_sub(((sent as u32).wrapping_sub(self.rx.load(Ordering::Acquire) >> 8) & SEQ24) as u64)
    }
}

/// Posting kinds: what `addr` points at in the receiver's memory.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingKind {
    /// `cap` bytes.
    Contiguous = 1,
    /// Strided runs; the shape is in the shape array.
    Block = 2,
    /// A list, whose descriptors lie in the receiver; their number is in the shape array.
    List = 3,
    /// Nothing: a receive of any index, see [`ANY_POSTED`].
    AnyIndex = 4,
    /// Nothing: a receive that wants a loan, be it made by the sender or by the receiver.
    Loan = 5,
}

/// Posting hint: the receiver is in a wait for this message and follows a ring at once.
pub const HINT_WAITING: u8 = 1;
/// Posting hint: the buffer is in memory from `fmpl_alloc`.
pub const HINT_HEAP: u8 = 2;

/// Where message `seq` may be put. Written by the receiver only.
#[repr(C, align(32))]
pub struct Posting {
    /// Virtual address in the receiver.
    pub addr: AtomicU64,
    /// Capacity in bytes.
    pub cap: AtomicU64,
    /// kind 8 | hint 8 | epoch 16 | on shared memory [`Posting::check`], between nodes the key 32
    pub meta: AtomicU64,
    /// Full width: a stale posting must never look valid again. 0: withdrawn.
    pub seq: AtomicU64,
}

impl Posting {
    /// A run of bytes.
    #[inline(always)]
    pub fn post(&self, seq: u64, addr: u64, cap: u64, kind: PostingKind, hint: u8, epoch: u16) {
        self.post_shaped(seq, [addr, cap], kind, hint, epoch, 0);
    }
    /// `shape`: [`Posting::check_shape`] of what is no run.
    /// SYNC POINT: pairs with [`Posting::is`].
    #[inline(always)]
    pub fn post_shaped(&self, seq: u64, [addr, cap]: [u64; 2], kind: PostingKind, hint: u8, epoch: u16, shape: u64) {
        self.addr.store(addr, Ordering::Relaxed);
        self.cap.store(cap, Ordering::Relaxed);
        let check = Posting::check(seq, addr, cap, kind as u64) ^ shape;
        self.meta.store(Posting::meta(kind, hint, epoch) | check << 32, Ordering::Relaxed);
        self.seq.store(seq, Ordering::Release);
    }
    /// What a posting of these words carries along, in 32 bits. The bytes of a message go wherever the posting says, be it by the kernel into
    /// memory that nobody shares; so a sender makes sure that it is as the receiver wrote it.
    #[inline(always)]
    pub fn check(seq: u64, addr: u64, cap: u64, kind: u64) -> u64 {
        let sum = addr.wrapping_add(cap.rotate_left(19)).wrapping_add(seq.rotate_left(41)).wrapping_add(kind << 7);
        sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }
    /// The same of a shape, to be added by exclusive or.
    pub fn check_shape([run, count, stride]: [u64; 3]) -> u64 {
        Posting::check(run, count, stride, 0)
    }
    /// Is this the posting for message `seq`? SYNC POINT: pairs with [`Posting::post`].
    #[inline(always)]
    pub fn is(&self, seq: u64) -> bool {
        self.seq.load(Ordering::Acquire) == seq
    }
    /// The meta word.
    #[inline(always)]
    pub fn meta(kind: PostingKind, hint: u8, epoch: u16) -> u64 {
        kind as u64 | (hint as u64) << 8 | (epoch as u64) << 16
    }
}

/// The shape of a posted block, or the length of a posted list, beside its posting, written by the receiver before the posting; and a word of the sender's, for
/// messages that are offered without a posting.
#[repr(C, align(32))]
pub struct Shape {
    /// Bytes in a run.
    pub run: AtomicU64,
    /// Number of runs, or of descriptors.
    pub count: AtomicU64,
    /// Bytes from run to run, two's complement.
    pub stride: AtomicU64,
    /// By the sender: offset in its spool of the offered message that it has moved there.
    pub moved: AtomicU64,
}

/// Written by the sender only, off the path of short messages.
#[repr(C, align(16))]
pub struct Head {
    /// Offset in the spool of the block where the chain begins.
    pub chain: AtomicU64,
    /// seq << 2 | [`WANTS`] or [`PUTS`]: the message that the sender waits to put, or is putting, into its posting.
    pub mark: AtomicU64,
}

/// The sender waits for the posting of this message.
pub const WANTS: u64 = 1;
/// The sender is putting this message into its posting: too late to withdraw.
pub const PUTS: u64 = 2;

of_atomics! { Record:
/// The header of a block of the spool.
#[repr(C, align(64))]
pub struct Block {
    /// Sequence number of the first record, full width.
    pub first: AtomicU64,
    /// index << 32 | peer: whose block it is.
    pub owner: AtomicU64,
    /// Generation of this use of the block.
    pub gener: AtomicU32,
    /// In a chain: the last record written, its low 32 bits.
    pub last: AtomicU32,
    /// Whose message it is, for the sender alone: epoch 32 | first unit 32 of the communicator; 0: the world.
    pub place: AtomicU64,
    _pad1: [AtomicU64; 4],
    /// Receiver: the last record taken (its low 32 bits).
    pub taken: AtomicU32,
    /// Receiver: the generation it will never look at again.
    pub done: AtomicU32,
    _pad2: [AtomicU64; 7],
}
}

/// Bytes of a block before its first record.
pub const BLOCK_HEADER: usize = 128;
/// In a record: the length is in the next word.
pub const LONG_LENGTH: u64 = 0xff_ffff;

/// The first word of a record in a block.
#[inline(always)]
pub fn record_word(seq: u64, kind: Kind, len: usize) -> u64 {
    let short = if (len as u64) < LONG_LENGTH { len as u64 } else { LONG_LENGTH };
    (seq & 0xffff_ffff) | (kind as u64) << 32 | short << 40
}

/// Bytes that a record takes in a block, with its header.
#[inline(always)]
pub fn record_bytes(len: usize) -> usize {
    let header = if (len as u64) < LONG_LENGTH { 8 } else { 16 };
    header + len.div_ceil(8) * 8
}

/// Tagged claim of pieces of a transfer: tag 32 | next piece 32.
#[inline(always)]
pub fn claim_word(tag: u32, piece: u32) -> u64 {
    (tag as u64) << 32 | piece as u64
}

/// State of an offer to pull, beside its tag.
pub const OFFER_OPEN: u32 = 1;
/// The receiver has it.
pub const OFFER_TAKEN: u32 = 2;
/// The sender moved the message to its spool.
pub const OFFER_MOVED: u32 = 3;
/// The kernel would not copy it: the sender must move it.
pub const OFFER_REFUSED: u32 = 4;

/// A transfer that both sides may work on: cooperative copies and offers to pull.
/// Four lines: the claims, what the sender says, what the sender has done, what the receiver has done.
#[repr(C, align(64))]
pub struct Transfer {
    /// [`claim_word`]; both sides compare-and-swap it.
    pub claim: AtomicU64,
    /// tag 32 | OFFER_*; both sides compare-and-swap it.
    pub offer: AtomicU64,
    _pad0: [AtomicU64; 6],
    /// Sender's layout: [`PostingKind`].
    pub kind: AtomicU64,
    /// Virtual address in the sender.
    pub addr: AtomicU64,
    /// Length of the message.
    pub len: AtomicU64,
    /// Bytes in a piece.
    pub piece: AtomicU64,
    /// Runs of a block.
    pub run: AtomicU64,
    /// Number of runs, or of a list's descriptors.
    pub count: AtomicU64,
    /// From run to run.
    pub stride: AtomicU64,
    _pad3: AtomicU64,
    /// tag 32 | pieces the sender has copied.
    pub done_s: AtomicU64,
    _pad1: [AtomicU64; 7],
    /// tag 32 | pieces the receiver has copied.
    pub done_r: AtomicU64,
    _pad2: [AtomicU64; 7],
}

impl Transfer {
    /// Claims the next piece of transfer `tag`, if one of `pieces` is left. The tag is checked with the piece: a latecomer
    /// never takes a piece of the next transfer in this block. A claim carries no bytes over: the counts of pieces done do.
    #[inline]
    pub fn claim(&self, tag: u32, pieces: u32) -> Option<u32> {
        let mut now = self.claim.load(Ordering::Relaxed);
        loop {
            let next = now as u32;
            if (now >> 32) as u32 != tag || next >= pieces {
                return None;
            }
            match self.claim.compare_exchange_weak(now, now + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(next),
                Err(other) => now = other,
            }
        }
    }
    /// Moves the offer of `tag` from open to `to`; `false`: the other side was first. What it says was published by the landing; who
    /// is second looks at the offer again.
    #[inline]
    pub fn settle(&self, tag: u32, to: u32) -> bool {
        self.offer
            .compare_exchange(claim_word(tag, OFFER_OPEN), claim_word(tag, to), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// One ring of chunks: the flags of its chunks by the sender, the progress of the receiver.
#[repr(C, align(64))]
pub struct RingFlag {
    /// Sender: number of the chunk in this place + 1. Receiver's: number of chunks consumed.
    pub n: AtomicU64,
    _pad: [AtomicU64; 7],
}
