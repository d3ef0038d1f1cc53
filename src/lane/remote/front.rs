//! What the peer's device writes for this side: the front of each index, and the page of the lane. And what this side keeps beside them.
//!
//! ```text
//!  front of an index, 256 bytes, written by the peer's device
//!  0     landing   land | check | ack | 104 bytes of data             the peer as sender
//!  128   posting   addr | cap | meta + key | seq | shape (3) | check  the peer as receiver: where this side may put
//!  192   ack                                                          the peer as receiver, of an index that is not on the board
//!  200   mark      208 tail    216 (unused)                           the peer as sender
//!  224   chain     first | addr | key 32, generation 32 | size/64 32, check 32
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use static_assertions::const_assert;

use super::board::BOARD;
use super::{CHUNK_SLOTS, HINT_KEYED, REMOTE_INLINE};
use crate::base::lock::Mutex;
use crate::base::published::Published;
use crate::base::rules::{Rule, holds};
use crate::fabric::network::cache::Kept;
use crate::fabric::network::control::{CHUNK_BYTES, CHUNKS_MOST, FIRST_CHUNK, PAGE_BYTES};
use crate::fabric::network::link::Window;
use crate::lane::map::{ANNOUNCED_QUEUE, SLOTS, SYSTEM_INDICES, Side};
use crate::lane::record::{Land, PostingKind};

/// In a front's mark: as [`WANTS`](crate::lane::record::WANTS), and nobody looks for the posting.
pub(super) const PENDING: u64 = 3;

/// See the drawing above.
#[repr(C, align(64))]
pub(super) struct Front {
    pub(super) landing: [AtomicU64; 16],
    pub(super) posting: [AtomicU64; 8],
    pub(super) ack: AtomicU64,
    pub(super) mark: AtomicU64,
    pub(super) tail: AtomicU64,
    _pad: AtomicU64,
    pub(super) chain: [AtomicU64; 4],
}

/// That of a slot in the window of a chunk.
#[inline(always)]
fn front_of(chunk: &Window, n: usize) -> &Front {
    // SAFETY: within the window's memory, which lives as long as the window; a front is atomics only.
    unsafe { &*chunk.memory.as_ptr().cast::<Front>().add(n % CHUNK_SLOTS) }
}

/// Has the peer ever sent a message into this chunk?
pub(super) fn has_messages(chunk: &Window) -> bool {
    (0..CHUNK_SLOTS).any(|n| front_of(chunk, n).has_message())
}

pub(super) const POSTING_AT: usize = 128;
pub(super) const ACK_AT: usize = 192;
pub(super) const MARK_AT: usize = 200;
pub(super) const TAIL_AT: usize = 208;
pub(super) const CHAIN_AT: usize = 224;
const_assert!(SLOTS / CHUNK_SLOTS == CHUNKS_MOST as usize && FIRST_CHUNK as usize * CHUNK_SLOTS == SYSTEM_INDICES);
const_assert!(size_of::<Front>() == 256 && size_of::<Front>() * CHUNK_SLOTS == CHUNK_BYTES);
const_assert!(core::mem::offset_of!(Front, posting) == POSTING_AT && core::mem::offset_of!(Front, ack) == ACK_AT);
const_assert!(core::mem::offset_of!(Front, tail) == TAIL_AT && core::mem::offset_of!(Front, chain) == CHAIN_AT);

/// What is said of the lane as a whole, written by the peer: its side, how many announcements it has taken, and those it makes.
#[repr(C, align(64))]
pub(super) struct Page {
    pub(super) side: Side,
    pub(super) taken: AtomicU64,
    /// The peer knows that what all members do together can never be completed: which rank of the world is lost and how, plus one.
    pub(super) broken: AtomicU64,
    /// The peer has freed the communicator, or writes nothing here any more.
    pub(super) freed: AtomicU64,
    _pad: [AtomicU64; 5],
    /// number of the request, what, slot, seq, an address, their sum
    pub(super) request: [AtomicU64; 8],
    /// number of the request << 1 | yes
    pub(super) answer: AtomicU64,
    /// 1: somebody of the peer sleeps; who publishes next wakes it, and sets this to 0.
    pub(super) asleep: AtomicU64,
    /// What comes with an answer: two words, their sum.
    pub(super) found: [AtomicU64; 3],
    _rest: [AtomicU64; 3],
    /// How far the program's first indices are received, see [`board`](super::board).
    pub(super) board: [AtomicU64; BOARD],
}
pub(super) const TAKEN_AT: usize = 64;
pub(super) const BROKEN_AT: usize = 72;
pub(super) const FREED_AT: usize = 80;
pub(super) const REQUEST_AT: usize = 128;
pub(super) const ANSWER_AT: usize = 192;
pub(super) const ASLEEP_AT: usize = 200;
pub(super) const FOUND_AT: usize = 208;
pub(super) const BOARD_AT: usize = 256;
/// The heads of announcements.
pub(super) const QUEUE_AT: usize = 1024;
const_assert!(core::mem::offset_of!(Page, taken) == TAKEN_AT && core::mem::offset_of!(Page, request) == REQUEST_AT);
const_assert!(core::mem::offset_of!(Page, answer) == ANSWER_AT && core::mem::offset_of!(Page, asleep) == ASLEEP_AT);
const_assert!(core::mem::offset_of!(Page, found) == FOUND_AT && core::mem::offset_of!(Page, broken) == BROKEN_AT);
const_assert!(core::mem::offset_of!(Page, freed) == FREED_AT && core::mem::offset_of!(Page, board) == BOARD_AT);
const_assert!(size_of::<Page>() <= QUEUE_AT);
const_assert!(QUEUE_AT + ANNOUNCED_QUEUE * 8 <= PAGE_BYTES);

/// The page that a window is.
pub(super) fn page_of(window: &Window) -> &Page {
    // SAFETY: the memory is longer, lives as long as the window, and a page is atomics only.
    unsafe { &*window.memory.as_ptr().cast::<Page>() }
}

/// Where that of announcement `n` lies in the page.
pub(super) fn queue_at(n: u64) -> usize {
    QUEUE_AT + (n as usize % ANNOUNCED_QUEUE) * 8
}

/// The chain of an index as its receiver follows it.
#[derive(Default)]
pub struct RemoteChain {
    /// The block in the sender's memory, its key, the generation of its use, its bytes.
    pub addr: u64,
    /// See above.
    pub key: u32,
    /// See above.
    pub generation: u32,
    /// See above.
    pub size: u64,
    /// Offset of the next record in the block.
    pub next: u64,
    /// A piece of the block, fetched when the chain had come as far as `sure`, from offset `from` on.
    pub piece: Vec<u8>,
    /// See above.
    pub from: u64,
    /// See above.
    pub sure: u64,
    /// The next message has been told of and is not there: when that cannot be any more; 0: it is not so.
    pub late_ns: u64,
}

/// What this side keeps of an index of a remote lane. Each field belongs to the index's sending or receiving thread, but `acked`.
#[derive(Default)]
pub struct RemoteSlot {
    /// As sender: everything up to this message is known to be received.
    pub(super) acked: AtomicU64,
    /// As receiver: everything up to this message is received, its reads are over.
    pub(super) received: AtomicU64,
    /// As receiver: so far the peer has been told, at least.
    pub(super) told: AtomicU64,
    /// As receiver: the last message longer than a landing came by the annex.
    pub(super) by_annex: AtomicBool,
    /// As receiver: a receive has begun then that the peer is not told of, in nanoseconds; 0: none.
    pub(super) unposted_ns: AtomicU64,
    /// As sender: the sum of the posting that was taken over last.
    pub(super) posting_seen: AtomicU64,
    /// As sender: the ticket after which the device has read the memory of the request, and that memory's registration.
    pub read: Mutex<Option<(u64, Kept)>>,
    /// As receiver: the registration of the posted buffer.
    pub buffer: Mutex<Option<Kept>>,
    /// As receiver: the chain, once there is one.
    chain: Published<Mutex<RemoteChain>>,
}

impl RemoteSlot {
    /// As receiver: the chain.
    pub fn chain(&self) -> &Mutex<RemoteChain> {
        self.chain.get_or_make(Mutex::default)
    }
    /// As receiver: how far it has received, which the peer is told now.
    #[inline]
    pub(super) fn tells(&self) -> u64 {
        let received = self.received.load(Ordering::Acquire);
        self.told.store(received, Ordering::Relaxed);
        received
    }
    fn bytes(&self) -> usize {
        size_of::<RemoteSlot>() + self.chain.get().map_or(0, size_of_val)
    }
}

/// Slots of which this side's own is made at once.
pub(super) const FEW: usize = 4;

/// The fronts of [`CHUNK_SLOTS`] indices, and what this side keeps of those that are used.
pub(super) struct Chunk {
    pub(super) window: Arc<Window>,
    slots: [Published<[RemoteSlot; FEW]>; CHUNK_SLOTS / FEW],
}

/// Chunks that are found together.
const ROW: usize = 64;

/// The chunks of a lane that this side has opened.
pub(super) struct Chunks([Published<[Published<Chunk>; ROW]>; SLOTS / CHUNK_SLOTS / ROW]);

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks([const { Published::nothing() }; SLOTS / CHUNK_SLOTS / ROW])
    }
}

/// A posting as its sender reads it from its front, whole.
#[derive(Clone, Copy, Debug)]
pub struct RemotePosting {
    /// Virtual address in the receiver.
    pub addr: u64,
    /// Capacity.
    pub cap: usize,
    /// [`PostingKind`], hints, key.
    pub meta: u64,
    /// Run, count, stride of a block.
    pub shape: [u64; 3],
}

impl RemotePosting {
    /// What the words of a posting say. `None`: no receiver has such memory.
    pub(super) fn of([addr, cap, meta, _, run, count, stride, _]: [u64; 8]) -> Option<RemotePosting> {
        let cap = usize::try_from(cap).ok().filter(|cap| *cap <= isize::MAX as usize)?;
        let ends = match meta as u8 {
            kind if kind == PostingKind::Contiguous as u8 => addr.checked_add(cap as u64).is_some(),
            kind if kind == PostingKind::List as u8 => true,
            kind if kind == PostingKind::Block as u8 => {
                let whole = run.checked_mul(count) == Some(cap as u64) && run <= isize::MAX as u64;
                // From the first run to the last, in either direction.
                let reach = i64::try_from(count.saturating_sub(1)).ok().and_then(|n| n.checked_mul(stride as i64));
                let last = reach.and_then(|reach| addr.checked_add_signed(reach));
                whole && [Some(addr), last].into_iter().all(|at| at.and_then(|at| at.checked_add(run)).is_some())
            }
            _ => false,
        };
        // Nothing may lie anywhere.
        let ends = ends || cap == 0 && (1..=PostingKind::List as u64).contains(&(meta & 0xff));
        ends.then_some(RemotePosting { addr, cap, meta, shape: [run, count, stride] })
    }
    /// The key, if its memory is registered.
    pub fn key(&self) -> Option<u32> {
        ((self.meta >> 8) as u8 & HINT_KEYED != 0).then_some((self.meta >> 32) as u32)
    }
    /// Its kind.
    pub fn kind(&self) -> u8 {
        self.meta as u8
    }
}

/// Where a chain begins, as its receiver reads it from its front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStart {
    /// Its first message.
    pub first: u64,
    /// The block.
    pub addr: u64,
    /// Its key.
    pub key: u32,
    /// The generation of its use.
    pub generation: u32,
    /// Its bytes.
    pub size: u64,
}

/// The word of a posting that is withdrawn.
pub const WITHDRAWN: RemotePosting =
    RemotePosting { addr: 0, cap: 0, meta: PostingKind::Contiguous as u64, shape: [0; 3] };

/// The sum that shows that a record is whole. The key is taken in as the words are: if it were only added to the first one, a record's new key and
/// first word would go with the old rest and the old sum whenever both have changed by the same bits.
#[inline]
pub fn sum(key: u64, words: &[u64]) -> u64 {
    let mut sum = SumOf::key(key);
    words.iter().for_each(|w| sum.take(*w));
    sum.end()
}

/// The same, word by word.
pub(super) struct SumOf(u64);

impl SumOf {
    #[inline(always)]
    pub(super) fn key(key: u64) -> SumOf {
        let mut sum = SumOf(0x9e37_79b9_7f4a_7c15);
        sum.take(key);
        sum
    }
    #[inline(always)]
    pub(super) fn take(&mut self, word: u64) {
        let h = (self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.0 = h ^ h >> 32;
    }
    #[inline(always)]
    pub(super) fn end(self) -> u64 {
        self.0 | 1
    }
}

impl Chunk {
    pub(super) fn new(window: Arc<Window>) -> Chunk {
        Chunk { window, slots: Default::default() }
    }
    /// What this side keeps of a slot of the chunk.
    pub(super) fn slot(&self, n: usize) -> &RemoteSlot {
        &self.slots[n / FEW].get_or_make(Default::default)[n % FEW]
    }
    /// The same, of a slot that was used before.
    #[inline(always)]
    pub(super) fn known_slot(&self, n: usize) -> Option<&RemoteSlot> {
        Some(&self.slots[n / FEW].get()?[n % FEW])
    }
    /// What the peer writes of a slot of the chunk.
    #[inline(always)]
    pub(super) fn front(&self, n: usize) -> &Front {
        front_of(&self.window, n)
    }
    fn bytes(&self) -> usize {
        size_of_val(self) + self.slots.iter().filter_map(Published::get).flatten().map(RemoteSlot::bytes).sum::<usize>()
    }
}

impl Chunks {
    /// The chunk of this number.
    #[inline(always)]
    pub(super) fn get(&self, n: usize) -> Option<&Chunk> {
        self.0[n / ROW].get()?[n % ROW].get()
    }
    /// The same, made if it is not there yet.
    pub(super) fn get_or_make(&self, n: usize, make: impl FnOnce() -> Chunk) -> &Chunk {
        let row = self.0[n / ROW].get_or_make(|| [const { Published::nothing() }; ROW]);
        row[n % ROW].get_or_make(make)
    }
    /// Bytes of what this side keeps of slots.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.0.iter().filter_map(Published::get);
        rows.map(|row| size_of_val(row) + row.iter().filter_map(Published::get).map(Chunk::bytes).sum::<usize>()).sum()
    }
}

impl Front {
    /// Has the peer ever sent a message there?
    pub(super) fn has_message(&self) -> bool {
        self.landing[0].load(Ordering::Acquire) != 0 || self.tail.load(Ordering::Acquire) != 0
    }

    pub(super) fn whole_posting(&self) -> Option<[u64; 8]> {
        let mut words = [0u64; 8];
        words.iter_mut().zip(&self.posting).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        (sum(POSTING_AT as u64, &words[..7]) == words[7] || !holds(Rule::WholePosting)).then_some(words)
    }

    /// The acknowledgement that comes with this landing, and the first words of its data, if the landing is whole.
    pub(super) fn whole_landing(&self, land: Land) -> Option<[u64; 4]> {
        let count = 1 + land.inline_len().min(REMOTE_INLINE).div_ceil(8);
        let mut words = [0u64; 14];
        words.iter_mut().zip(&self.landing[2..]).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        let check = self.landing[1].load(Ordering::Acquire);
        let whole = sum(land.0, &words[..count]) == check || !holds(Rule::WholeLanding);
        whole.then_some([words[0], words[1], words[2], words[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::record::Kind;
    use proptest::prelude::*;

    /// A word that is mostly near what a posting has.
    fn word() -> impl Strategy<Value = u64> {
        let near = |around: u64| (0u64..8192).prop_map(move |by| around.wrapping_add(by).wrapping_sub(4096));
        prop_oneof![any::<u64>(), near(0), near(u64::MAX), near(1 << 40), near(1 << 63)]
    }

    /// The old rest of a record with another key and another first word, as both are when it is written over.
    #[test]
    fn a_sum_tells_apart_what_is_alike() {
        let mut sums = std::collections::HashSet::new();
        for (key, first) in (0..512u64).flat_map(|key| (0..512u64).map(move |first| (key, first))) {
            assert!(sums.insert(sum(key | 4 << 48, &[first, 20_000, 0x7ff6_3815_b9a0])), "{key}, {first}");
        }
    }

    proptest! {
        /// Whatever a receiver has posted, what is put there lies within what it has named, without wrapping.
        #[test]
        fn a_posting_names_memory(
            kind in 0u64..6, addr in word(), cap in word(), run in word(), count in 0u64..100, stride in word(), fits: bool,
        ) {
            let cap = if fits { run.wrapping_mul(count) } else { cap };
            let words = [addr, cap, kind | 0xabcd << 32, 9, run, count, stride, 0];
            if let Some(posting) = RemotePosting::of(words) {
                prop_assert!((1..=3).contains(&kind) && posting.cap as u64 == cap && cap <= isize::MAX as u64);
                if kind == PostingKind::Contiguous as u64 {
                    prop_assert!(cap == 0 || addr as u128 + cap as u128 <= u64::MAX as u128);
                }
                if kind == PostingKind::Block as u64 && cap != 0 {
                    prop_assert_eq!(run as u128 * count as u128, cap as u128);
                    for n in 0..count as i128 {
                        let at = addr as i128 + n * stride as i64 as i128;
                        prop_assert!(at >= 0 && at + run as i128 <= u64::MAX as i128, "run {}", n);
                    }
                }
            }
            // What every receiver posts.
            prop_assert!(RemotePosting::of([1 << 40, 4096, 1, 9, 0, 0, 0, 0]).is_some());
            prop_assert!(RemotePosting::of([0, 0, 1, 0, 0, 0, 0, 0]).is_some());
        }
    }

    /// A mixture of two records of one place is not taken for a record.
    #[test]
    fn torn_records_are_not_whole() {
        // SAFETY: a front is atomics only; all zero is its first state.
        let front: Box<Front> = unsafe { Box::new(core::mem::zeroed()) };
        let record = |seq: u64, byte: u8| {
            let land = Land::new(seq, 0, Kind::Inline, 40, 7);
            let mut words = [0u64; 8];
            words[0] = land.0;
            words[2] = seq * 3;
            words[3..].fill(u64::from_ne_bytes([byte; 8]));
            words[1] = sum(land.0, &words[2..]);
            (land, words)
        };
        let ((old_land, old), (land, new)) = (record(4, 0x11), record(5, 0x22));
        for mixture in 0..1u32 << 8 {
            for (n, word) in front.landing.iter().enumerate().take(8) {
                word.store(if mixture >> n & 1 == 1 { new[n] } else { old[n] }, Ordering::Relaxed);
            }
            // The words of the data are equal, so which of them came does not matter, as long as it is one of each record's.
            let whole = front.whole_landing(land).is_some();
            assert_eq!(whole && mixture & 1 == 1, mixture == 0xff, "{mixture:#b}");
            assert_eq!(front.whole_landing(old_land).is_some(), mixture & 0xfe == 0, "{mixture:#b}");
        }
    }
}
