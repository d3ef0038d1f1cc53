//! The arena: the memory that the members of a communicator on one node have in common for its collective calls.
//!
//! It is a window of the region of its first member, sparse, mapped by every member at its first collective call. Each word has
//! one writer, except the claims. For `n` members:
//!
//! ```text
//!  header      failed, digest                                     1 line
//!  sleep       4 B a member: asleep, and for whom                 written by the sleeper, read at every publication
//!  arrive      8 B a member: barriers it has come to              eight members to a line: few members, few lines
//!  groups      two lines for every 64 members, one for each 8     the second level of larger barriers
//!  small       2 x 32 B a member: a payload with its number       two members to a line
//!  posts       2 lines a member: what it offers, how far it is    large payloads
//!  flags       a line for each cell of each ring
//!  rings       n + 1 rings of CELLS cells of CELL_BYTES           ring n belongs to whoever broadcasts
//! ```
//! A ring costs memory only as far as it has been used: 128 KiB for each member, and as much again for broadcasts.

use static_assertions::const_assert;

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, writes};
use crate::base::bytes::Room;
use crate::base::error::Result;
use crate::fabric::shm::region::{ARENAS_AT, GROUPS_AT, Mapping};

/// From one communicator's arena to the next.
const ARENA_STRIDE: u64 = 1 << 28;
const ARENAS: u64 = 1 << 25;
const_assert!(ARENAS_AT + ARENAS * ARENA_STRIDE <= GROUPS_AT);

/// Where the arena of a communicator lies in the region of its first member. Epochs of communicators that a rank belongs to differ, so
/// its arenas do, and one that has been used before is used again after millions of others only.
pub fn arena_at(epoch: u32) -> u64 {
    ARENAS_AT + (epoch as u64 % ARENAS) * ARENA_STRIDE
}

// A model has few and small cells, so that they are soon used again.
/// Bytes of a cell.
pub const CELL_BYTES: usize = if cfg!(loom) { 256 } else { 8192 };
/// Cells of a ring.
pub const CELLS: usize = if cfg!(loom) { 2 } else { 16 };
/// Bytes of a ring.
pub const RING_BYTES: usize = CELL_BYTES * CELLS;
/// Bytes that travel in a line of their own together with their number.
pub const SMALL_BYTES: usize = 24;
/// Bytes that travel in the line of a cell's flag.
pub const FLAG_BYTES: usize = 56;

/// Most members that share an arena.
pub const MEMBERS_MOST: usize = 1024;
const_assert!(MEMBERS_MOST * (RING_BYTES + CELLS * 64 + 512) + (1 << 20) < ARENA_STRIDE as usize);

/// What concerns all members.
#[repr(C, align(64))]
pub struct Header {
    /// 0, or why no collective call can succeed any more: `reason << 32 | member + 1`. Set once.
    pub failed: AtomicU64,
    /// What must be alike at all members; set by the first that comes.
    pub digest: AtomicU64,
    /// Pieces that are claimed of a payload that all work on: `call << 32 | next piece`.
    pub claim: Line,
}

/// A word in a line of its own.
#[repr(C, align(64))]
pub struct Line {
    /// The word.
    pub word: AtomicU64,
}

/// A payload of up to [`SMALL_BYTES`] and the number of the call that it belongs to.
#[repr(C, align(32))]
pub struct Small {
    /// The payload.
    pub data: [AtomicU64; 3],
    /// `number << LENGTH_BITS | bytes`: the call, and how long the payload is; stored last.
    pub call: AtomicU64,
}

/// What a member offers to the others, and how far it is.
#[repr(C, align(64))]
pub struct Post {
    /// The call that the offer belongs to; stored last.
    pub call: AtomicU64,
    /// Where its buffer is.
    pub addr: AtomicU64,
    /// 1: the buffer is in its heap, so that others have it mapped.
    pub in_heap: AtomicU64,
    /// Pieces of this member's buffer that others or itself have taken on: `call << 32 | next piece`.
    pub claim: AtomicU64,
    /// Pieces of this member's buffer that the root has written: `call << 32 | pieces`.
    pub pushed: AtomicU64,
    /// Copies between processes: 0 not tried, 1 they work with every member, 2 they do not.
    pub copies: AtomicU64,
    /// Bytes of its buffer, with `addr`.
    pub bytes: AtomicU64,
    /// [`Posting::check`](crate::lane::record::Posting::check) of call, address, bytes and `in_heap`: others write where the offer says.
    pub check: AtomicU64,
    /// The last call whose shared memory this member has done with.
    pub finished: AtomicU64,
    /// The call for which this member may be writing into other members' buffers; 0: none.
    pub writing: AtomicU64,
    /// The call of the program that this member waits in: `number << 8 | which`, stored after `length`. Written only by who waits long.
    pub entered: AtomicU64,
    /// Bytes of that call.
    pub length: AtomicU64,
    /// What this member has found when lengths differ: its own, and the other's. Written before [`Header::failed`].
    pub found: [AtomicU64; 2],
    _pad1: [AtomicU64; 2],
}

/// The flag of a cell, with the payload itself when that is short; otherwise the first word says how long the whole payload is.
#[repr(C, align(64))]
pub struct Flag {
    /// A payload of up to [`FLAG_BYTES`].
    pub data: [AtomicU64; 7],
    /// `number << LENGTH_BITS | bytes`: the number of what is in the line or the cell, and the bytes in the line, 0 if it is in the cell.
    /// Stored last.
    pub number: AtomicU64,
}

/// Bits below a number that say how long the payload beside it is.
pub const LENGTH_BITS: u32 = 6;
const_assert!(FLAG_BYTES < 1 << LENGTH_BITS && SMALL_BYTES <= FLAG_BYTES);

/// The least word that says that payload `number` is there.
#[inline(always)]
pub fn there(number: u64) -> u64 {
    number << LENGTH_BITS
}

/// The bytes of a short payload whose word is there.
#[inline(always)]
fn short_of(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed) & ((1 << LENGTH_BITS) - 1)
}

impl Flag {
    /// Room for a short payload.
    #[inline(always)]
    pub fn line(&self) -> Room<'_> {
        Room::of_words(&self.data)
    }

    /// Says that a cell is filled, of a payload of so many bytes in all.
    #[inline(always)]
    pub fn publish(&self, number: u64, whole: usize) {
        self.data[0].store(whole as u64, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `Until`.
        self.number.store(there(number), Ordering::Release);
    }

    /// Says that so many bytes are in the line.
    #[inline(always)]
    pub fn publish_short(&self, number: u64, bytes: usize) {
        // SYNC POINT: pairs with the acquire in `Until`.
        self.number.store(there(number) | bytes as u64, Ordering::Release);
    }

    /// How long a block of the whole payload is, of so many that go into one line: asked when it is there.
    #[cold]
    pub fn length(&self, blocks: usize) -> u64 {
        match short_of(&self.number) {
            0 => self.data[0].load(Ordering::Relaxed),
            short => short / blocks as u64,
        }
    }

    /// Is it a payload in cells, of so many bytes in all? Asked when it is there.
    #[inline(always)]
    pub fn is_of(&self, whole: usize) -> bool {
        short_of(&self.number) == 0 && self.data[0].load(Ordering::Relaxed) == whole as u64
    }

    /// Is it a payload of so many bytes in the line? Asked when it is there.
    #[inline(always)]
    pub fn is_short_of(&self, bytes: usize) -> bool {
        short_of(&self.number) == bytes as u64
    }
}

impl Small {
    /// Room for the payload.
    #[inline(always)]
    pub fn line(&self) -> Room<'_> {
        Room::of_words(&self.data)
    }

    /// Says that so many bytes are there.
    #[inline(always)]
    pub fn publish(&self, number: u64, bytes: usize) {
        // SYNC POINT: pairs with the acquire in `Until`.
        self.call.store(there(number) | bytes as u64, Ordering::Release);
    }

    /// How many bytes they are: asked when they are there.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        short_of(&self.call)
    }
}

const_assert!(size_of::<Header>() == 128);
const_assert!(size_of::<Small>() == 32);
const_assert!(size_of::<Post>() == 128 && core::mem::offset_of!(Post, finished) == 64);
const_assert!(size_of::<Flag>() == 64 && core::mem::offset_of!(Flag, number) == 56);

/// Members that share a line of arrivals.
pub const GROUP: usize = if cfg!(loom) { 2 } else { 8 };

/// The arena as this process has it mapped.
pub struct Arena {
    window: Mapping,
    sleep_at: usize,
    arrive_at: usize,
    group_at: usize,
    release_at: usize,
    small_at: usize,
    posts_at: usize,
    flags_at: usize,
    rings_at: usize,
    members: usize,
}

impl Arena {
    /// Its bytes in the region.
    pub fn bytes(&self) -> usize {
        self.window.len()
    }

    /// Its memory is given back, after which it reads as zero: a write of all of it, to a model.
    pub fn goes(&self) {
        writes(self.window.as_ptr(), self.window.len());
    }

    /// The arena of `members` members; `map` maps its bytes.
    pub fn new(members: usize, map: impl FnOnce(usize) -> Result<Mapping>) -> Result<Arena> {
        let mut at = size_of::<Header>();
        let mut take = |bytes: usize| {
            let here = at;
            at = (at + bytes).next_multiple_of(64);
            here
        };
        let groups = members.div_ceil(GROUP);
        let sleep_at = take(members * 4);
        let arrive_at = take(members * 8);
        let group_at = take(groups * 8);
        let release_at = take(groups * 64);
        let small_at = take(2 * members * size_of::<Small>());
        let posts_at = take(members * size_of::<Post>());
        let flags_at = take((members + 1) * CELLS * size_of::<Flag>());
        let rings_at = at.next_multiple_of(4096);
        let bytes = rings_at + (members + 1) * RING_BYTES;
        let window = map(bytes)?;
        Ok(Arena { window, sleep_at, arrive_at, group_at, release_at, small_at, posts_at, flags_at, rings_at, members })
    }

    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the callers below compute offsets within the window from numbers that are below `members`, 8, 2 and CELLS; the
        // records are atomics, for which any content is valid, and the window is mapped as long as self lives.
        unsafe { &*self.window.as_ptr().add(offset).cast::<T>() }
    }
    /// Where a word of it lies.
    pub fn place_of(&self, word: &AtomicU64) -> usize {
        (&raw const *word as usize).wrapping_sub(self.window.as_ptr() as usize)
    }
    /// The word that lies there.
    pub fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place.is_multiple_of(8) && place < self.rings_at);
        self.at(place)
    }
    /// What concerns all.
    #[inline(always)]
    pub fn header(&self) -> &Header {
        self.at(0)
    }
    /// Is a member asleep, and for whom: [`crate::wait::ASLEEP`], the member waited for from bit 8 on.
    #[inline(always)]
    pub fn sleep(&self, member: usize) -> &AtomicU32 {
        debug_assert!(member < self.members);
        self.at(self.sleep_at + member * 4)
    }
    /// How many barriers a member has come to.
    #[inline(always)]
    pub fn arrive(&self, member: usize) -> &AtomicU64 {
        debug_assert!(member < self.members);
        self.at(self.arrive_at + member * 8)
    }
    /// How many barriers all members of a group have come to; written by its first member.
    #[inline(always)]
    pub fn group(&self, group: usize) -> &AtomicU64 {
        self.at(self.group_at + group * 8)
    }
    /// How many barriers everybody has come to, as the first member of a group tells the others.
    #[inline(always)]
    pub fn release(&self, group: usize) -> &AtomicU64 {
        self.at(self.release_at + group * 64)
    }
    /// A small payload of a member, one of two that it uses in turn.
    #[inline(always)]
    pub fn small(&self, turn: usize, member: usize) -> &Small {
        debug_assert!(member < self.members && turn < 2);
        self.at(self.small_at + (turn * self.members + member) * size_of::<Small>())
    }
    /// What a member offers.
    #[inline(always)]
    pub fn post(&self, member: usize) -> &Post {
        debug_assert!(member < self.members);
        self.at(self.posts_at + member * size_of::<Post>())
    }
    /// The flag of a cell.
    #[inline(always)]
    pub fn flag(&self, ring: usize, cell: usize) -> &Flag {
        debug_assert!(ring <= self.members && cell < CELLS);
        self.at(self.flags_at + (ring * CELLS + cell) * size_of::<Flag>())
    }
    /// A cell, and those behind it in its ring.
    #[inline(always)]
    pub fn cell(&self, ring: usize, cell: usize) -> Room<'_> {
        debug_assert!(ring <= self.members && cell < CELLS);
        // SAFETY: within the window, as in `at`; the flags and `finished` say who may use it.
        unsafe {
            let ring = self.window.as_ptr().add(self.rings_at + ring * RING_BYTES);
            Room::known(ring.add(cell * CELL_BYTES), RING_BYTES - cell * CELL_BYTES)
        }
    }
    /// The ring that belongs to whoever broadcasts.
    #[inline(always)]
    pub fn shared_ring(&self) -> usize {
        self.members
    }
}
