//! Ranges of memory in the order of their addresses: each by its first address, and the number of the slot that has the rest. Sorted blocks,
//! and over them one list of what each begins with.
//!
//! ```text
//!   firsts   1000 │ 8000 │ 9f000 │ …          where a block begins: searched first
//!   blocks     #3 │   #0 │    #7 │ …          which block that is, and how many are in it
//!   block #0  8000 8200 9000 … │ slot slot slot …
//! ```
//! No range here lies within another: so the ends grow as the beginnings do, and of all ranges that begin at an address or before it the last
//! one reaches furthest. A search for that one is a search for all.
//!
//! Who changes the order has the table's lock, and tells of it by the table's version. Who searches has none: it may meet what is half
//! changed, never goes out of bounds, always ends, and finds out afterwards.

use static_assertions::const_assert;

use super::pool::Pool;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::prefetch::prefetch_run;
use crate::base::record::of_atomics;
use crate::base::zeroed::Zeroed;

/// Ranges of a block.
const KEYS: usize = 42;

of_atomics! { Record:
    /// Ranges that follow each other.
    #[repr(C, align(512))]
    pub(super) struct Block {
        keys: [AtomicU64; KEYS],
        slots: [AtomicU32; KEYS],
    }
}
const_assert!(size_of::<Block>() == 512);

/// See the head of this file.
pub(super) struct Order {
    firsts: Zeroed<AtomicU64>,
    /// The number of the block << 8 | ranges in it.
    blocks: Zeroed<AtomicU32>,
    len: AtomicU32,
}

/// Where a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    block: usize,
    within: usize,
}

/// Blocks of an order of so many ranges at most: two that are neighbours have more than half of one's together.
pub(super) fn blocks_for(ranges: usize) -> usize {
    ranges.div_ceil(KEYS / 4) + 2
}

/// How many of the first `n` keys, which ascend, are not above `at`. Without a branch that depends on them: where they lie is not foreseen.
#[inline(always)]
fn not_above(keys: &[AtomicU64], n: usize, at: u64) -> usize {
    let (mut from, mut left) = (0, n.min(keys.len()));
    if left == 0 {
        return 0;
    }
    while left > 1 {
        let half = left / 2;
        let is_above = keys[from + half].load(Ordering::Relaxed) > at;
        from = core::hint::select_unpredictable(is_above, from, from + half);
        left -= half;
    }
    from + (keys[from].load(Ordering::Relaxed) <= at) as usize
}

/// Moves `from..to` of words by `up` places, or down.
macro_rules! shift {
    ($words:expr, $from:expr, $to:expr, up $by:expr) => {
        for n in ($from..$to).rev() {
            $words[n + $by].store($words[n].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    };
    ($words:expr, $from:expr, $to:expr, down $by:expr) => {
        for n in $from..$to {
            $words[n - $by].store($words[n].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    };
}

impl Order {
    /// An empty order of at most so many ranges.
    pub fn new(ranges: usize) -> Result<Order> {
        let n = blocks_for(ranges);
        Ok(Order { firsts: Zeroed::new(n)?, blocks: Zeroed::new(n)?, len: AtomicU32::new(0) })
    }

    #[inline(always)]
    fn len(&self) -> usize {
        (self.len.load(Ordering::Relaxed) as usize).min(self.firsts.len())
    }

    /// A block, and how many are in it.
    #[inline(always)]
    fn block<'a>(&self, pool: &'a Pool<Block>, n: usize) -> Option<(&'a Block, usize)> {
        let word = self.blocks[n].load(Ordering::Relaxed);
        Some((pool.get(word >> 8)?, (word as usize & 0xff).min(KEYS)))
    }

    /// The slot of the last range that begins at this address or before it. For anybody: see the head of this file.
    #[inline(always)]
    pub fn find(&self, pool: &Pool<Block>, at: u64) -> Option<u32> {
        let n = not_above(&self.firsts, self.len(), at).checked_sub(1)?;
        let (block, count) = self.block(pool, n)?;
        prefetch_run((&raw const *block).cast(), size_of::<Block>());
        let within = not_above(&block.keys, count, at).checked_sub(1)?;
        Some(block.slots[within].load(Ordering::Relaxed))
    }

    // ---- for who has the lock

    /// The last range that begins at this address or before it.
    pub fn last_to(&self, pool: &Pool<Block>, at: u64) -> Option<Place> {
        let block = not_above(&self.firsts, self.len(), at).checked_sub(1)?;
        let (found, count) = self.block(pool, block)?;
        Some(Place { block, within: not_above(&found.keys, count, at).checked_sub(1)? })
    }

    /// The range before.
    pub fn before(&self, pool: &Pool<Block>, place: Place) -> Option<Place> {
        if place.within > 0 {
            return Some(Place { within: place.within - 1, ..place });
        }
        let block = place.block.checked_sub(1)?;
        Some(Place { block, within: self.block(pool, block)?.1 - 1 })
    }

    /// The range behind; behind none comes the first.
    pub fn behind(&self, pool: &Pool<Block>, place: Option<Place>) -> Option<Place> {
        let Some(place) = place else { return (self.len() > 0).then_some(Place { block: 0, within: 0 }) };
        let (_, count) = self.block(pool, place.block)?;
        if place.within + 1 < count {
            return Some(Place { within: place.within + 1, ..place });
        }
        (place.block + 1 < self.len()).then_some(Place { block: place.block + 1, within: 0 })
    }

    /// The slot of a range.
    pub fn slot(&self, pool: &Pool<Block>, place: Place) -> Option<u32> {
        Some(self.block(pool, place.block)?.0.slots[place.within].load(Ordering::Relaxed))
    }

    /// Adds a range, which begins where no other does. `false`: there is no room.
    pub fn insert(&self, pool: &Pool<Block>, key: u64, slot: u32) -> bool {
        let mut n = not_above(&self.firsts, self.len(), key).saturating_sub(1);
        if self.len() == 0 && !self.add_block(pool, 0) {
            return false;
        }
        let Some((mut block, mut count)) = self.block(pool, n) else { return false };
        let mut at = not_above(&block.keys, count, key);
        if count == KEYS {
            // Ranges that come in the order of their addresses fill their blocks.
            let stay = if at == KEYS { KEYS } else { KEYS / 2 };
            if !self.add_block(pool, n + 1) {
                return false;
            }
            self.move_over(pool, n, stay);
            if at > stay || stay == KEYS {
                (n, at) = (n + 1, at - stay);
            }
            let Some(found) = self.block(pool, n) else { return false };
            (block, count) = found;
        }
        shift!(block.keys, at, count, up 1);
        shift!(block.slots, at, count, up 1);
        block.keys[at].store(key, Ordering::Relaxed);
        block.slots[at].store(slot, Ordering::Relaxed);
        self.set_count(n, block, count + 1);
        self.join(pool, n);
        true
    }

    /// Takes out the ranges from this one on for as long as `goes` says so of their slots.
    pub fn cut(&self, pool: &Pool<Block>, from: Place, mut goes: impl FnMut(u32) -> bool) {
        let (mut n, mut at) = (from.block, from.within);
        while n < self.len() {
            let Some((block, count)) = self.block(pool, n) else { return };
            let end = (at..count).find(|k| !goes(block.slots[*k].load(Ordering::Relaxed)));
            let (end, over) = (end.unwrap_or(count), end.is_some());
            shift!(block.keys, end, count, down end - at);
            shift!(block.slots, end, count, down end - at);
            self.set_count(n, block, count - (end - at));
            if over {
                break;
            }
            (n, at) = (n + 1, 0);
        }
        // Those that are empty now follow each other.
        let empty = |n: &usize| self.blocks[*n].load(Ordering::Relaxed) & 0xff == 0;
        let first = if from.block < self.len() && empty(&from.block) { from.block } else { from.block + 1 };
        let end = (first..self.len()).find(|n| !empty(n)).unwrap_or(self.len()).max(first);
        self.remove_blocks(pool, first.min(self.len()), end.min(self.len()));
        for n in [from.block + 1, from.block, from.block.saturating_sub(1)] {
            self.join(pool, n);
        }
    }

    fn set_count(&self, n: usize, block: &Block, count: usize) {
        let word = self.blocks[n].load(Ordering::Relaxed);
        self.blocks[n].store(word & !0xff | count as u32, Ordering::Relaxed);
        self.firsts[n].store(block.keys[0].load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// A new, empty block before block `n`.
    fn add_block(&self, pool: &Pool<Block>, n: usize) -> bool {
        let len = self.len();
        if len == self.firsts.len() {
            return false;
        }
        let Some(number) = pool.take() else { return false };
        shift!(self.firsts, n, len, up 1);
        shift!(self.blocks, n, len, up 1);
        self.blocks[n].store(number << 8, Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
        true
    }

    fn remove_blocks(&self, pool: &Pool<Block>, from: usize, to: usize) {
        (from..to).for_each(|n| pool.give_back(self.blocks[n].load(Ordering::Relaxed) >> 8));
        let len = self.len();
        shift!(self.firsts, to, len, down to - from);
        shift!(self.blocks, to, len, down to - from);
        self.len.store((len - (to - from)) as u32, Ordering::Relaxed);
    }

    /// The ranges of a block from `stay` on go to the beginning of the next one, behind those that `stay` there.
    fn move_over(&self, pool: &Pool<Block>, n: usize, stay: usize) {
        let (Some((from, count)), Some((to, _))) = (self.block(pool, n), self.block(pool, n + 1)) else { return };
        for k in stay..count {
            to.keys[k - stay].store(from.keys[k].load(Ordering::Relaxed), Ordering::Relaxed);
            to.slots[k - stay].store(from.slots[k].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.set_count(n + 1, to, count - stay);
        self.set_count(n, from, stay);
    }

    /// A block and the next one become one if that is half full then at most.
    fn join(&self, pool: &Pool<Block>, n: usize) {
        if n + 1 >= self.len() {
            return;
        }
        let (Some((to, had)), Some((from, comes))) = (self.block(pool, n), self.block(pool, n + 1)) else { return };
        if had + comes > KEYS / 2 {
            return;
        }
        for k in 0..comes {
            to.keys[had + k].store(from.keys[k].load(Ordering::Relaxed), Ordering::Relaxed);
            to.slots[had + k].store(from.slots[k].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.set_count(n, to, had + comes);
        self.remove_blocks(pool, n + 1, n + 2);
    }

    /// Bytes of the list over the blocks.
    pub fn bytes(&self) -> usize {
        self.len() * (size_of::<u64>() + size_of::<u32>())
    }

    /// Declares it shared by the threads of a model.
    #[cfg(loom)]
    pub fn in_model(&self) {
        crate::base::shadow::share(self.firsts.as_ptr().cast(), size_of_val(&*self.firsts));
        crate::base::shadow::share(self.blocks.as_ptr().cast(), size_of_val(&*self.blocks));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Order {
        fn all(&self, pool: &Pool<Block>) -> Vec<u32> {
            let next = |place: &Place| self.behind(pool, Some(*place));
            let places = std::iter::successors(self.behind(pool, None), next);
            places.map(|place| self.slot(pool, place).expect("a slot")).collect()
        }
    }

    proptest! {
        #[test]
        fn as_a_map_would(steps in prop::collection::vec((0u8..4, 0u64..600, 1usize..200), 1..400)) {
            let (order, pool) = (Order::new(600).expect("an order"), Pool::new(blocks_for(600)).expect("blocks"));
            let mut map = BTreeMap::new();
            for (what, key, count) in steps {
                if what < 3 {
                    // In runs, ascending or descending.
                    for k in 0..count as u64 / 4 {
                        let key = if what == 1 { key.saturating_sub(k) } else { (key + k * what as u64).min(599) };
                        if map.insert(key, key as u32 * 7).is_none() {
                            prop_assert!(order.insert(&pool, key, key as u32 * 7));
                        }
                    }
                } else if let Some(place) = order.last_to(&pool, key) {
                    let from = map.range(..=key).next_back().map(|(k, _)| *k).expect("the same");
                    let goes: Vec<u64> = map.range(from..).take(count).map(|(k, _)| *k).collect();
                    let mut left = count + 1;
                    order.cut(&pool, place, |_| {
                        left = left.saturating_sub(1);
                        left > 0
                    });
                    goes.iter().for_each(|k| _ = map.remove(k));
                }
                prop_assert_eq!(order.all(&pool), map.values().copied().collect::<Vec<_>>());
                prop_assert_eq!(order.find(&pool, key), map.range(..=key).next_back().map(|(_, v)| *v));
                prop_assert!(pool.count() as usize <= blocks_for(map.len()) && pool.count() as usize == order.len());
            }
        }
    }
}
