//! Elements of one size that are taken and given back by their numbers, out of a range of addresses that has room for all. Memory is there
//! for the pages only of which an element is taken, and for one more. The lowest that is free is taken, so what is left after many have
//! gone lies close together.
//!
//! Who takes and gives back has the table's lock. Who looks at elements has none, and may look at one that is given back meanwhile, or
//! whose page is: then it reads what is being written, or zero, and finds out by the table's version.
//!
//! Pages are given back to the system under that lock. That must not be reported to the thread that would wait for the lock: so nothing of
//! what is reported lies in the same units of addresses.

use super::reports::UNIT;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::record::Empty;
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::region::page_size;

/// See the head of this file.
pub(super) struct Pool<T> {
    all: Zeroed<T>,
    /// A bit for each element that is taken.
    taken: Zeroed<AtomicU64>,
    /// Elements that are taken.
    count: AtomicU32,
    /// No element before this one of the words of `taken` is free.
    lowest: AtomicU32,
    /// No element from this one on was ever taken.
    untaken: AtomicU32,
    /// The number + 1 of a page whose memory is there although nothing of it is taken; 0: there is none.
    spare: AtomicU32,
}

impl<T: Empty> Pool<T> {
    /// A pool of at most `most` elements.
    pub fn new(most: usize) -> Result<Pool<T>> {
        let (count, lowest, untaken, spare) = Default::default();
        Ok(Pool {
            all: Zeroed::apart(most, UNIT)?,
            taken: Zeroed::new(most.div_ceil(64))?,
            count,
            lowest,
            untaken,
            spare,
        })
    }

    /// An element, taken or not. `None`: there is none of this number.
    #[inline(always)]
    pub fn get(&self, n: u32) -> Option<&T> {
        self.all.get(n as usize)
    }

    /// The number of an element.
    #[inline]
    pub fn number(&self, of: *const T) -> u32 {
        ((of as usize - self.all.as_ptr() as usize) / size_of::<T>()) as u32
    }

    /// Is it taken?
    pub fn is_taken(&self, n: u32) -> bool {
        self.taken[n as usize / 64].load(Ordering::Relaxed) >> (n % 64) & 1 == 1
    }

    /// Elements that are taken.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// No element from this one on was ever taken.
    pub fn untaken(&self) -> u32 {
        self.untaken.load(Ordering::Relaxed)
    }

    /// Takes the lowest element that is free, whose contents are anything. `None`: all are taken.
    pub fn take(&self) -> Option<u32> {
        let from = self.lowest.load(Ordering::Relaxed) as usize;
        let free = |word: &AtomicU64| word.load(Ordering::Relaxed) != u64::MAX;
        let word = from + self.taken[from..].iter().position(free)?;
        let bits = self.taken[word].load(Ordering::Relaxed);
        let n = (word * 64) as u32 + bits.trailing_ones();
        self.lowest.store(word as u32, Ordering::Relaxed);
        if n as usize >= self.all.len() {
            return None;
        }
        self.taken[word].store(bits | 1 << (n % 64), Ordering::Relaxed);
        self.count.store(self.count() + 1, Ordering::Relaxed);
        self.untaken.store(self.untaken().max(n + 1), Ordering::Relaxed);
        if self.spare.load(Ordering::Relaxed) == self.page_of(n) + 1 {
            self.spare.store(0, Ordering::Relaxed);
        }
        Some(n)
    }

    /// Gives an element back.
    pub fn give_back(&self, n: u32) {
        let word = n as usize / 64;
        let bits = self.taken[word].load(Ordering::Relaxed) & !(1 << (n % 64));
        self.taken[word].store(bits, Ordering::Relaxed);
        self.count.store(self.count() - 1, Ordering::Relaxed);
        self.lowest.store(self.lowest.load(Ordering::Relaxed).min(word as u32), Ordering::Relaxed);
        let page = self.page_of(n);
        if self.is_page_free(page) {
            // Whoever takes one and gives it back again and again does not have the page made each time.
            let spare = self.spare.load(Ordering::Relaxed);
            let (stays, goes) = if spare == 0 { (page + 1, 0) } else { (spare.min(page + 1), spare.max(page + 1)) };
            self.spare.store(stays, Ordering::Relaxed);
            if goes != 0 {
                self.forget(goes - 1);
            }
        }
    }

    /// Elements of a page; none lies in two.
    fn per_page(&self) -> usize {
        page_size() / size_of::<T>()
    }

    fn page_of(&self, n: u32) -> u32 {
        n / self.per_page() as u32
    }

    fn is_page_free(&self, page: u32) -> bool {
        let n = self.per_page();
        let (first, end) = (page as usize * n, ((page as usize + 1) * n).min(self.all.len()));
        let free = |word: usize| {
            let (from, to) = (first.max(word * 64) % 64, end.min((word + 1) * 64) - word * 64);
            let mask = if to - from == 64 { u64::MAX } else { ((1 << (to - from)) - 1) << from };
            self.taken[word].load(Ordering::Relaxed) & mask == 0
        };
        (first / 64..end.div_ceil(64)).all(free)
    }

    /// The memory of a page of which nothing is taken goes back to the system.
    fn forget(&self, page: u32) {
        let n = self.per_page();
        let first = page as usize * n;
        if !cfg!(loom) {
            // SAFETY: nothing of the page is taken, so nobody looks at it but by atomics, and believes nothing of it.
            unsafe { self.all.forget(first..(first + n).min(self.all.len())) };
        }
    }

    /// Bytes of its pages that are there, the bits apart.
    pub fn bytes(&self) -> usize {
        let pages = (0..self.untaken().div_ceil(self.per_page() as u32)).filter(|page| !self.is_page_free(*page));
        (pages.count() + (self.spare.load(Ordering::Relaxed) != 0) as usize) * page_size()
    }

    /// Declares it shared by the threads of a model.
    #[cfg(loom)]
    pub fn in_model(&self) {
        crate::base::shadow::share(self.all.as_ptr().cast(), size_of_val(&*self.all));
        crate::base::shadow::share(self.taken.as_ptr().cast(), size_of_val(&*self.taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_is_taken_and_memory_comes_back() {
        let pool = Pool::<[AtomicU64; 8]>::new(1000).expect("a pool");
        assert_eq!((0..1000).map(|_| pool.take().expect("one")).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        assert_eq!((pool.take(), pool.count(), pool.untaken()), (None, 1000, 1000));
        for n in 0..1000 {
            pool.get(n).expect("one")[3].store(7, Ordering::Relaxed);
        }
        assert_eq!(pool.bytes(), 64_000usize.next_multiple_of(page_size()));
        [700, 5, 999].into_iter().for_each(|n| pool.give_back(n));
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(5), Some(700), Some(999), None]);
        for n in (0..1000).filter(|n| *n != 130) {
            pool.give_back(n);
        }
        assert_eq!((pool.count(), pool.bytes()), (1, 2 * page_size()));
        // What was given back is zero; the page that is left has what was written.
        assert_eq!(pool.get(131).expect("one")[3].load(Ordering::Relaxed), 7);
        if page_size() == 4096 {
            assert_eq!(pool.get(640).expect("one")[3].load(Ordering::Relaxed), 0);
        }
        assert!(pool.is_taken(130) && !pool.is_taken(131) && pool.get(1000).is_none());
    }
}
