//! The map of a lane: where in its window each record lies.
//!
//! A lane is a window of the lower rank's region; the higher rank maps it too. It is sparse: what is never touched costs
//! no page, so every array has room for the most indices there can be, and an index is found by a shift and an addition.
//!
//! ```text
//!  0         header: state of each side, touched groups
//!  768       hot lines             64 B an index: the first 52 are on the header's page
//!  10 MiB    transfer blocks       2 directions x 64 x 256 B
//!   + 64 K   ring flags            2 directions x 4 rings x 64 lines; between those of the first ring a line for each side's count
//!   + 96 K   flags of areas used in turn   2 areas x 256 lines
//!   + 128 K  announced indices     2 directions x (summary, bits, queue), used once somebody receives from any index
//!   + 1 M    ring chunks           2 directions x 4 rings x 256 KiB
//!   + 3 M    areas used in turn    2 x 16 MiB
//!  46 MiB    postings              2 directions x 32 B an index
//!            shapes                2 directions x 32 B
//!            heads                 2 directions x 16 B
//!            split lines           3 x 64 B: in turn, and one for each direction
//!            annexes               3 x 1 KiB: likewise
//!            long annexes          3 x 3 KiB: what continues them
//! ```
//!
//! So lies the world's lane. The lane of another communicator is a window of its own, elsewhere in the same region, with room for as
//! many slots as its members agreed on. It uses the transfer blocks, rings and areas of the world's lane, and the rest lies closer, so that
//! a few indices touch one page:
//!
//! ```text
//!  0         header
//!  768       hot lines, postings, heads, split lines, shapes; announced indices and their queues; annexes, long annexes
//! ```

use crate::base::atomics::{AtomicU32, AtomicU64};
use crate::fabric::shm::region::{ARENAS_AT, LANES_AT, PLACES_AT, REGION_END};
use static_assertions::const_assert;

/// Indices of the library's own below the user's, in each communicator: the first slots of a lane.
///
/// | slots | whose |
/// |---|---|
/// | 0 to 15 | barriers |
/// | 16 | finalize |
/// | 17 | making communicators |
/// | 18 to 28 | collectives |
/// | 29 | making a communicator of some ranks |
pub const SYSTEM_INDICES: usize = 32;
/// The slot of finalize.
pub const FINALIZE_SLOT: usize = 16;
/// The slot on which the members of a communicator agree on a new one.
pub const CREATE_SLOT: usize = 17;
/// The slot on which some ranks of a communicator agree on one of their own.
pub const PART_SLOT: usize = 29;
/// The first slot of the collectives, which have all from here to [`PART_SLOT`].
pub const COLLECTIVE_SLOT: usize = 18;
/// The slot of reductions in groups that are chosen for each.
pub const GROUP_SLOT: usize = COLLECTIVE_SLOT + 1;
/// The slot that collective calls use in turn with theirs when two messages follow each other closely.
pub const CHAIN_SLOT: usize = COLLECTIVE_SLOT + 2;
/// The first slot of collective calls with tickets, which take them in turn.
pub const TICKET_SLOT: usize = COLLECTIVE_SLOT + 3;
/// How many such slots there are.
pub const TICKET_SLOTS: usize = 8;
const_assert!(TICKET_SLOT + TICKET_SLOTS <= PART_SLOT && PART_SLOT < SYSTEM_INDICES);
/// Most indices that a rank may ask for.
pub const INDEX_MAX: usize = (1 << 17) - SYSTEM_INDICES;
/// Slots of the world's lanes: the system's indices and the user's.
pub const SLOTS: usize = INDEX_MAX + SYSTEM_INDICES;
/// Indices that share a bit in the map of what was ever used: as many hot lines as a page has room for.
pub const GROUP_INDICES: usize = 64;
/// Bytes that an index may send through an annex. (A model's messages are short.)
pub const ANNEX_BYTES: usize = if cfg!(loom) { 128 } else { 1024 };
/// Bytes that it may send through an annex and the long annex that continues it. They lie apart, so that short messages on many
/// indices touch few pages.
pub const ANNEX_MOST: usize = 4 * ANNEX_BYTES;
/// Bytes that travel half in the landing and half in the split line, which ends in the number of its message.
pub const SPLIT_BYTES: usize = 16 + 56;

pub(crate) const PAGE: usize = 4096;
/// Next to the header, so that first contact costs one page; it begins a pair of lines.
pub(crate) const HOT_AT: usize = size_of::<LaneHeader>().next_multiple_of(128);
/// What follows them: what each pair of ranks has once.
const WAYS_AT: usize = (HOT_AT + SLOTS * 64).next_multiple_of(2 << 20);
pub(crate) const POSTING_AT: usize = WAYS_AT + (36 << 20);
pub(crate) const SHAPE_AT: usize = POSTING_AT + 2 * SLOTS * 32;
pub(crate) const HEAD_AT: usize = SHAPE_AT + 2 * SLOTS * 32;
pub(crate) const SPLIT_AT: usize = HEAD_AT + 2 * SLOTS * 16;
pub(crate) const ANNEX_AT: usize = SPLIT_AT + 3 * SLOTS * 64;
pub(crate) const LONG_ANNEX_AT: usize = ANNEX_AT + 3 * SLOTS * ANNEX_BYTES;
pub(crate) const LONG_ANNEX_BYTES: usize = ANNEX_MOST - ANNEX_BYTES;

/// Transfer blocks for each direction.
pub const TRANSFERS: usize = 64;
/// Rings for each direction.
pub const RINGS: usize = 4;
/// Bytes of a ring's chunks together.
pub const RING_BYTES: usize = 256 * 1024;
/// Most chunks of a ring.
pub const RING_CHUNKS: usize = 16;

/// From one chunk of a ring to the next, by the logarithm of its bytes. Spread, each lies in pages of its own, where no processor that reads
/// ahead comes upon the lines of another, which the other side is using; and not at the same place of a page.
pub const fn ring_pitch(log: u32, spread: bool) -> usize {
    (1 << log) + if spread { PAGE + 64 } else { 0 }
}

/// Areas of memory that both directions use in turn.
pub const TURNS: usize = 2;
/// Bytes of an area: the longest message that goes through it.
pub const TURN_BYTES: usize = 16 << 20;
/// Most chunks of a message there.
pub const TURN_CHUNKS: usize = 128;

pub(crate) const TRANSFERS_AT: usize = WAYS_AT;
pub(crate) const RING_FLAGS_AT: usize = WAYS_AT + 64 * 1024;
/// Every second one is used: processors fetch lines in pairs.
pub(crate) const RING_FLAG_LINES: usize = 64;
/// The lines in which both sides count (see [`super::distance`]), behind the flags of the first ring, in their page.
pub(crate) const COUNTS_AT: usize = RING_FLAGS_AT + (2 * RING_CHUNKS + 8) * 64;
/// From the lower rank's to the higher rank's.
pub(crate) const COUNTS_APART: usize = 8 * 64;
pub(crate) const ANNOUNCED_AT: usize = WAYS_AT + 128 * 1024;
/// Words of the summary of announced indices, one bit for each word of bits.
pub(crate) const ANNOUNCED_SUMMARY: usize = (1 << 17) / 64 / 64;
pub(crate) const ANNOUNCED_BYTES: usize = (ANNOUNCED_SUMMARY + (1 << 17) / 64) * 8;
/// Entries of the queue of announcements that comes before the bitmap.
pub(crate) const ANNOUNCED_QUEUE: usize = if cfg!(loom) { 4 } else { 256 };
pub(crate) const ANNOUNCED_QUEUE_AT: usize = ANNOUNCED_AT + 2 * ANNOUNCED_BYTES;
/// The queues of both directions: a line for each, in which its receiver says how far it has come, then the entries, of which the
/// two of a number share a line. So where both sides receive by any index they write a line in turn.
pub(crate) const ANNOUNCED_QUEUES_BYTES: usize = 2 * 64 + ANNOUNCED_QUEUE * 64;
pub(crate) const RING_DATA_AT: usize = WAYS_AT + (1 << 20);
pub(crate) const TURN_FLAGS_AT: usize = WAYS_AT + 96 * 1024;
pub(crate) const TURN_DATA_AT: usize = WAYS_AT + (3 << 20);

/// Slots in a unit, of which the lanes of communicators other than the world consist.
pub const UNIT_SLOTS: usize = 64;
/// Bytes of a unit.
pub const UNIT_BYTES: u64 = 1 << 20;
/// Units that a pair of ranks has for all its communicators. The last one stands for the world.
pub const UNITS: usize = 1 << 18;
/// The unit under which a rank tells of the world.
pub const WORLD_UNIT: u32 = UNITS as u32 - 1;

/// A rank's part in a communicator, as it tells the others: epoch 32 | about 30 | state 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has the communicator.
    Member,
    /// It takes part in no further agreement: this rank of the world is dead, or lost otherwise ([`how_lost`]).
    Broken(u32),
    /// It has freed it.
    Freed,
}

/// In the number of a rank that is lost for all that its communicator does together: it lives, but has left a call by a panic.
pub const PANICKED: u32 = 1 << 29;
/// The same: it has made another call than a second rank, or one of another length.
pub const DIFFERS: u32 = 1 << 28;
/// The same: what it has offered to others of its node cannot be copied.
pub const OFFERS_IN_VAIN: u32 = PANICKED | DIFFERS;
/// The same: it could not do its part of a call, for want of memory or the like.
pub const UNABLE: u32 = 1 << 27;

/// Which rank is lost.
pub const fn rank_lost(lost: u32) -> u32 {
    lost & (UNABLE - 1)
}

/// How it is lost, if it lives; 0: it has died, as far as is known.
pub const fn how_lost(lost: u32) -> u32 {
    lost & (OFFERS_IN_VAIN | UNABLE)
}

/// What has become of a lost rank, in words.
pub fn lost(lost: u32) -> String {
    let rank = rank_lost(lost);
    match how_lost(lost) {
        PANICKED => format!("the function of rank {rank} has panicked"),
        DIFFERS => format!("rank {rank} has made another call than a second rank, or one of another length"),
        OFFERS_IN_VAIN => format!("what rank {rank} has offered cannot be copied"),
        UNABLE => format!("rank {rank} could not do its part of a call"),
        _ => format!("rank {rank} has died"),
    }
}

impl Life {
    /// The word of a communicator's epoch.
    pub fn word(self, epoch: u32) -> u64 {
        let low = match self {
            Life::Member => 0,
            Life::Broken(dead) => dead << 2 | 1,
            Life::Freed => 2,
        };
        (epoch as u64) << 32 | low as u64
    }

    /// What a word says of the communicator of an epoch. A later one has taken the unit: then this one is freed.
    pub fn read(word: u64, epoch: u32) -> Life {
        match ((word >> 32) as u32).cmp(&epoch) {
            core::cmp::Ordering::Less => Life::Member,
            core::cmp::Ordering::Greater => Life::Freed,
            core::cmp::Ordering::Equal => match word & 3 {
                0 => Life::Member,
                1 => Life::Broken(word as u32 >> 2),
                _ => Life::Freed,
            },
        }
    }
}

/// Where the arrays of a lane lie in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Slots there is room for.
    pub slots: usize,
    pub(crate) hot: usize,
    pub(crate) posting: usize,
    pub(crate) shape: usize,
    pub(crate) head: usize,
    pub(crate) split: usize,
    pub(crate) annex: usize,
    pub(crate) long_annex: usize,
    /// Announced indices of a direction, and from one direction to the next.
    pub(crate) announced: [usize; 2],
    pub(crate) queue: usize,
    /// Bytes of the window.
    pub bytes: usize,
}

impl Map {
    /// The world's lanes.
    pub const WORLD: Map = Map {
        slots: SLOTS,
        hot: HOT_AT,
        posting: POSTING_AT,
        shape: SHAPE_AT,
        head: HEAD_AT,
        split: SPLIT_AT,
        annex: ANNEX_AT,
        long_annex: LONG_ANNEX_AT,
        announced: [ANNOUNCED_AT, ANNOUNCED_BYTES],
        queue: ANNOUNCED_QUEUE_AT,
        bytes: LANE_BYTES,
    };

    /// The lanes of a communicator with so many units.
    pub const fn of_units(units: usize) -> Map {
        let slots = units * UNIT_SLOTS;
        let hot = HOT_AT;
        let posting = hot + slots * 64;
        let head = posting + 2 * slots * 32;
        let split = head + 2 * slots * 16;
        let shape = split + 3 * slots * 64;
        let announced = shape + 2 * slots * 32;
        let announced_bytes = ((ANNOUNCED_SUMMARY + slots / 64) * 8).next_multiple_of(64);
        let queue = announced + 2 * announced_bytes;
        let annex = (queue + ANNOUNCED_QUEUES_BYTES).next_multiple_of(PAGE);
        let long_annex = annex + 3 * slots * ANNEX_BYTES;
        let bytes = long_annex + 3 * slots * LONG_ANNEX_BYTES;
        let announced = [announced, announced_bytes];
        Map { slots, hot, posting, shape, head, split, annex, long_annex, announced, queue, bytes }
    }
}

/// Where each kind of record of the world's lanes begins, in this order: for those who damage them.
pub const RECORDS_AT: [(usize, &str); 13] = [
    (0, "lane header"),
    (HOT_AT, "hot line"),
    (TRANSFERS_AT, "transfer block"),
    (RING_FLAGS_AT, "flags of rings"),
    (TURN_FLAGS_AT, "flags of memory in turn"),
    (ANNOUNCED_AT, "announcements"),
    (RING_DATA_AT, "ring"),
    (TURN_DATA_AT, "memory in turn"),
    (POSTING_AT, "posting"),
    (SHAPE_AT, "shape"),
    (HEAD_AT, "head"),
    (SPLIT_AT, "split line"),
    (ANNEX_AT, "annex"),
];

const_assert!(Map::of_units(1).bytes as u64 <= UNIT_BYTES);
const_assert!(Map::of_units(2).bytes as u64 <= 2 * UNIT_BYTES);
const_assert!(Map::of_units(SLOTS / UNIT_SLOTS).bytes as u64 <= (SLOTS / UNIT_SLOTS) as u64 * UNIT_BYTES);

/// Bytes of a whole lane.
pub const LANE_BYTES: usize = LONG_ANNEX_AT + 3 * SLOTS * LONG_ANNEX_BYTES;
/// Distance of lanes in the region.
pub const LANE_STRIDE: u64 = 2 << 30;

const_assert!(LANE_BYTES as u64 <= LANE_STRIDE);
/// Most ranks of a job.
const RANKS_MOST: u64 = 1 << 23;
const_assert!(LANES_AT + RANKS_MOST * LANE_STRIDE <= ARENAS_AT);
const_assert!(PLACES_AT + RANKS_MOST * UNITS as u64 * UNIT_BYTES <= REGION_END);
const_assert!(TRANSFERS_AT + 2 * TRANSFERS * 256 <= RING_FLAGS_AT);
const_assert!(2 * RING_CHUNKS < RING_FLAG_LINES);
const_assert!(
    COUNTS_AT + COUNTS_APART + 64 <= RING_FLAGS_AT + RING_FLAG_LINES * 64 && RING_FLAGS_AT.is_multiple_of(PAGE)
);
const_assert!(RING_FLAGS_AT + 2 * RINGS * RING_FLAG_LINES * 64 <= TURN_FLAGS_AT);
const_assert!(TURN_FLAGS_AT + TURNS * 2 * TURN_CHUNKS * 64 <= ANNOUNCED_AT);
const_assert!(ring_pitch(16, true) <= RING_BYTES);
const_assert!(ANNOUNCED_QUEUE_AT + ANNOUNCED_QUEUES_BYTES <= RING_DATA_AT && ANNOUNCED_QUEUE_AT.is_multiple_of(64));
const_assert!(RING_DATA_AT + 2 * RINGS * RING_BYTES <= TURN_DATA_AT);
const_assert!(TURN_DATA_AT + TURNS * TURN_BYTES <= POSTING_AT);

/// What a side says of itself; written by that side, its doorbell by both.
#[repr(C, align(64))]
pub struct Side {
    /// Never came, open, or finalized.
    pub state: AtomicU32,
    /// Counts rings; sleepers wait on it (futex).
    pub bell: AtomicU32,
    /// As a receiver: announce what you send, I receive from any index.
    pub any: AtomicU32,
    /// Threads of this side that sleep on the bell without a line of their own (any-index waits).
    pub any_sleep: AtomicU32,
    /// As a sender: the queue of announcements was full, look into the bitmap too.
    pub any_overflow: AtomicU32,
    /// As a sender: how many of its threads and requests have said in a slot's word that they sleep. Who posts looks there only if some have.
    pub asleep: AtomicU32,
    _pad: [AtomicU64; 5],
}

/// The beginning of a lane.
#[repr(C, align(64))]
pub struct LaneHeader {
    /// [`LANE_MAGIC`], written by whichever side comes first; both write the same.
    pub magic: AtomicU64,
    /// The layout version of the records.
    pub version: AtomicU32,
    /// The communicator's epoch, as the landings carry it.
    pub epoch: AtomicU32,
    /// Lanes of communicators only: epoch 32 | [`LIFE_WIPING`] or [`LIFE_OPEN`]; 0: never used, or given back.
    pub life: AtomicU64,
    /// Lanes of communicators only: which sides have closed it, a bit each.
    pub closed: AtomicU64,
    _pad: [AtomicU64; 4],
    /// By side: the lower rank's, the higher rank's.
    pub side: [Side; 2],
    /// By sending side: groups of which an index was ever used, one bit each.
    pub touched: [[AtomicU64; 32]; 2],
}

const_assert!(size_of::<Side>() == 64);
const_assert!(size_of::<LaneHeader>() == 64 * 3 + 512 && HOT_AT == 768);

/// [`LaneHeader::life`]: the first of the two that came is clearing away what an earlier communicator left.
pub const LIFE_WIPING: u64 = 1;
/// [`LaneHeader::life`]: may be used.
pub const LIFE_OPEN: u64 = 2;

/// "FMPLlane"
pub const LANE_MAGIC: u64 = 0x656e_616c_4c50_4d46;
/// [`Side::state`]: has mapped the lane.
pub const SIDE_OPEN: u32 = 1;
/// [`Side::state`]: receives no more, and has sent all it will.
pub const SIDE_FINALIZED: u32 = 2;
