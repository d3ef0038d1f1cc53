//! What a multicast consists of: its block in the master's spool, the note that goes down the tree, the tree.

use crate::base::record::of_atomics;
use static_assertions::const_assert;

#[cfg(loom)]
use super::chunks::Chunks;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::run::Run;
use crate::lane::record::BLOCK_HEADER;
use crate::p2p::any_source::ring::{AREA_BYTES, SLOTS_MOST};

of_atomics! { Record:
    /// The first lines of a multicast's block, behind the block's header.
    #[repr(C, align(64))]
    pub(super) struct Record {
        /// Bytes of the message.
        pub(super) size: AtomicU64,
        /// Where it is in the master's memory; 0: in the block.
        pub(super) address: AtomicU64,
        /// Words of each bitmap.
        pub(super) words: AtomicU32,
        /// Members.
        pub(super) count: AtomicU32,
        /// 1: the master has given up, since a member has died or freed the communicator; who has not entered must not.
        pub(super) withdrawn: AtomicU32,
        /// The master's sleep byte.
        pub(super) asleep: AtomicU32,
        /// The communicator, as the master knows it.
        pub(super) handle: AtomicU32,
        /// Bytes between the records and the data: what a multicast to several nodes has there; 0: it is within this node.
        pub(super) extra: AtomicU32,
        /// Such a one's master: rank in the world.
        pub(super) master: AtomicU32,
        /// 1: the address is in the master's heap.
        pub(super) in_heap: AtomicU32,
        /// Bytes of the message that are in the block so far.
        pub(super) there: AtomicU64,
        /// 1: members follow while it is filled, and chunks are where `multicast/chunks.rs` says.
        pub(super) followed: AtomicU32,
        /// On which processor the master has begun to fill it, + 1.
        pub(super) master_at: AtomicU32,
    }
}

const_assert!(size_of::<Record>() == 64);
const_assert!(SLOTS_MOST >= 256);

/// What is sent down the tree.
#[derive(Clone, Copy)]
pub(super) struct Told {
    /// The block in the master's spool.
    pub(super) at: u64,
    pub(super) generation: u32,
    /// The master: rank in the world.
    pub(super) master: u32,
}

impl Told {
    /// As it is sent.
    pub(super) fn words(self) -> [u64; TOLD_WORDS] {
        [self.at, self.generation as u64 | (self.master as u64) << 32]
    }
    pub(super) fn of([at, whose]: [u64; TOLD_WORDS]) -> Told {
        Told { at, generation: whose as u32, master: (whose >> 32) as u32 }
    }
}

pub(super) const TOLD_WORDS: usize = 2;
const_assert!(TOLD_WORDS * 8 <= AREA_BYTES);

/// The parent of a number, which is not 0.
pub(super) fn parent(number: u32) -> u32 {
    number & (number - 1)
}

/// The children of a number among so many, the one with the largest part of the tree first.
pub(super) fn children(number: u32, count: u32) -> impl Iterator<Item = u32> {
    let top = if number == 0 { 31 } else { number.trailing_zeros() };
    (0..top).rev().map(move |k| number as u64 + (1u64 << k)).filter(move |n| *n < count as u64).map(|n| n as u32)
}

/// The members of a bitmap, in order.
pub(in crate::p2p) fn members(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
    bits.iter()
        .enumerate()
        .flat_map(|(w, word)| (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| w as u32 * 64 + b))
}

/// A multicast's block, mapped.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    /// All of it, and what may lie behind.
    pub(super) block: Run,
    pub(super) record: &'a Record,
    pub(super) words: usize,
    pub(super) count: usize,
    /// Bytes of the message, and what lies before the data: as the record said when it was read, once.
    pub(super) size: usize,
    pub(super) extra: usize,
}

impl<'a> Shared<'a> {
    /// Bytes of a block, without its header and the data.
    pub(super) fn bytes(words: usize, count: usize) -> usize {
        size_of::<Record>() + (words * 24 + count * 4).next_multiple_of(64)
    }

    /// A block that was made for a multicast of so many words and members, or has room for one with `extra` and `size` bytes.
    pub(super) fn at(block: Run, [words, count, size, extra]: [usize; 4]) -> Shared<'a> {
        let record = block.record(BLOCK_HEADER).expect("a block is longer");
        Shared { block, record, words, count, size, extra }
    }

    /// Fills the records of a block for `len` bytes, which lie in the block, to the members of `bits`, of whom none has done anything.
    pub(super) fn begin(block: Run, comm: i32, len: usize, bits: &[u64]) -> Shared<'a> {
        let count = bits.iter().map(|w| w.count_ones()).sum::<u32>();
        let shared = Shared::at(block, [bits.len(), count as usize, len, 0]);
        let record = shared.record;
        record.size.store(len as u64, Ordering::Relaxed);
        record.address.store(0, Ordering::Relaxed);
        record.words.store(bits.len() as u32, Ordering::Relaxed);
        record.count.store(count, Ordering::Relaxed);
        record.withdrawn.store(0, Ordering::Relaxed);
        record.asleep.store(0, Ordering::Relaxed);
        record.handle.store(comm as u32, Ordering::Relaxed);
        record.extra.store(0, Ordering::Relaxed);
        record.in_heap.store(0, Ordering::Relaxed);
        record.there.store(len as u64, Ordering::Relaxed);
        record.followed.store(0, Ordering::Relaxed);
        for (w, word) in bits.iter().enumerate() {
            shared.bitmap(0, w).store(*word, Ordering::Relaxed);
            shared.bitmap(ENTERED, w).store(0, Ordering::Relaxed);
            shared.bitmap(ACKED, w).store(0, Ordering::Relaxed);
        }
        shared.wait_for_all();
        shared
    }

    /// No member has acknowledged.
    fn wait_for_all(&self) {
        let count = self.count as u32;
        for number in 0..count {
            self.pending(number).store(1 + children(number, count).count() as u32, Ordering::Relaxed);
        }
    }

    pub(super) fn bitmap(&self, which: usize, word: usize) -> &'a AtomicU64 {
        assert!(which < 3 && word < self.words);
        let at = BLOCK_HEADER + size_of::<Record>() + (which * self.words + word) * 8;
        self.block.record(at).expect("within the block")
    }
    pub(super) fn members(&self) -> Vec<u64> {
        (0..self.words).map(|w| self.bitmap(0, w).load(Ordering::Relaxed)).collect()
    }
    pub(super) fn note(&self, which: usize, rank: u32) {
        self.bitmap(which, rank as usize / 64).fetch_or(1 << (rank % 64), Ordering::SeqCst);
    }
    pub(super) fn has(&self, which: usize, rank: u32) -> bool {
        self.bitmap(which, rank as usize / 64).load(Ordering::SeqCst) >> (rank % 64) & 1 == 1
    }
    pub(super) fn pending(&self, number: u32) -> &'a AtomicU32 {
        assert!((number as usize) < self.count);
        let at = BLOCK_HEADER + size_of::<Record>() + self.words * 24 + number as usize * 4;
        self.block.record(at).expect("within the block")
    }
    pub(super) fn records_end(&self) -> Run {
        self.block.after(BLOCK_HEADER + Shared::bytes(self.words, self.count))
    }
    pub(super) fn data(&self) -> Run {
        self.records_end().after(self.extra)
    }

    /// A member has its data: acknowledges, and passes on what is complete. `true`: the root's part was completed by this.
    pub(super) fn acknowledge(&self, rank: u32, mut number: u32) -> bool {
        self.note(ACKED, rank);
        // SYNC POINT: a chain of these, each an acquire and a release, orders all copies before the end at the root.
        while self.pending(number).fetch_sub(1, Ordering::AcqRel) == 1 {
            if number == 0 {
                return true;
            }
            number = parent(number);
        }
        false
    }

    /// Have the members that have acknowledged, by their numbers, passed that on as far as it goes, while others have not? Then they touch the
    /// block no more.
    pub(super) fn is_passed_on(&self, acked: &[bool]) -> bool {
        let count = self.count as u32;
        let mut whole = vec![false; self.count];
        // Children have higher numbers.
        for number in (0..count).rev() {
            let open = children(number, count).filter(|child| !whole[*child as usize]).count();
            let open = open as u32 + u32::from(!acked[number as usize]);
            // SYNC POINT: pairs with the chain in `acknowledge`: they have read before.
            if self.pending(number).load(Ordering::Acquire) != open {
                return false;
            }
            whole[number as usize] = open == 0;
        }
        !whole.first().is_some_and(|whole| *whole)
    }
}

/// A multicast's block as models use it: data in chunks, and the tree of acknowledgements.
#[cfg(loom)]
pub struct MulticastBlock;

#[cfg(loom)]
impl MulticastBlock {
    fn at<'a>(block: Run, count: u32) -> Shared<'a> {
        let size = Shared::at(block, [0; 4]).record.size.load(Ordering::Relaxed) as usize;
        Shared::at(block, [1, count as usize, size, 0])
    }

    /// Makes one for so many members, ranks from 0 on, and `len` bytes in chunks, at memory that nobody uses yet.
    pub fn make(block: Run, count: u32, len: usize) {
        let shared = Shared::begin(block, 0, len, &[(1 << count) - 1]);
        Chunks::new(&shared).begin();
    }

    /// The master's part; how many places it has used.
    pub fn fill(block: Run, count: u32, from: Run) -> usize {
        let shared = Self::at(block, count);
        Chunks::new(&shared).fill(from)
    }

    /// Member `number` takes what is there from byte `at` on; up to where.
    pub fn take(block: Run, count: u32, number: u32, at: usize, to: Run) -> usize {
        let shared = Self::at(block, count);
        let chunks = Chunks::new(&shared);
        chunks.take(number, at..chunks.there(), to).expect("a chunk")
    }

    /// Member `number` has its data; `true`: all have.
    pub fn acknowledge(block: Run, count: u32, number: u32) -> bool {
        Self::at(block, count).acknowledge(number, number)
    }
}

pub(super) const ENTERED: usize = 1;
pub(super) const ACKED: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of what members have acknowledged, in any order, all is passed on when each has done its part, and not while one of them is on its way.
    #[test]
    fn who_has_passed_on_is_known() {
        for count in 1..=6u32 {
            for set in 0..1u32 << count {
                let bytes = BLOCK_HEADER + Shared::bytes(1, count as usize);
                let mut memory = vec![0u128; bytes.div_ceil(16) + 8];
                let at = memory.as_mut_ptr().cast::<u8>();
                // SAFETY: so many bytes from a multiple of 64 on, of atomic numbers, as long as this goes.
                let block = unsafe { Run::new(at.add(at.align_offset(64)), bytes) };
                let shared = Shared::begin(block, 0, 0, &[(1 << count) - 1]);
                let acked: Vec<bool> = (0..count).map(|n| set >> n & 1 == 1).collect();
                assert_eq!(shared.is_passed_on(&acked), set == 0, "of {count}: {set:b}");
                for n in (0..count).filter(|n| set >> n & 1 == 1) {
                    assert!(!shared.is_passed_on(&acked), "of {count}: {set:b} before {n}");
                    shared.acknowledge(n, n);
                }
                assert_eq!(shared.is_passed_on(&acked), set + 1 != 1 << count, "of {count}: {set:b}");
            }
        }
    }

    /// In stage i of s, whoever has the data sends to number + 2^(s-i).
    #[test]
    fn the_tree_is_the_papers() {
        for count in 1..200u32 {
            let stages = count.next_power_of_two().trailing_zeros();
            let mut has = vec![0u32];
            let mut from = vec![None; count as usize];
            for i in 1..=stages {
                for n in has.clone() {
                    let to = n + (1 << (stages - i));
                    if to < count {
                        assert_eq!(from[to as usize].replace(n), None);
                        has.push(to);
                    }
                }
            }
            assert_eq!(has.len() as u32, count);
            for n in 1..count {
                assert_eq!(from[n as usize], Some(parent(n)));
            }
            for n in 0..count {
                let theirs: Vec<u32> = (0..count).filter(|c| from[*c as usize] == Some(n)).collect();
                let mut mine: Vec<u32> = children(n, count).collect();
                mine.sort_unstable();
                assert_eq!(mine, theirs, "children of {n} of {count}");
            }
        }
    }
}
