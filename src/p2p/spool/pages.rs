//! The pages of the spool: cut into blocks, or runs of them for one, found and given back.

use super::*;
use crate::fabric::areas;

impl Spool {
    /// Opens pages until a run of so many is free, as far as the window goes.
    pub(super) fn open(&self, run: usize) {
        let open = self.open_pages.load(Ordering::Relaxed);
        if let Some(n) = self.take_pages(run, open) {
            return self.free_pages(n, run);
        }
        self.open_to(open + run);
    }

    /// Pages that were never used lie in this memory of the program's from now on, as many as find room.
    pub fn lie_in(&self, region: &Region, area: Run) {
        let from = self.laid.load(Ordering::Relaxed).max(self.untaken.load(Ordering::Relaxed));
        let laid = areas::lay(region, SPOOL_AT + (from * PAGE) as u64, area, PAGE, (PAGES - from) * PAGE);
        // Those that are taken next.
        self.laid.store(from + laid / PAGE, Ordering::Relaxed);
    }

    pub(super) fn open_to(&self, want: usize) {
        let want = want.next_multiple_of(64).min(PAGES);
        let mut have = self.open_pages.load(Ordering::Relaxed);
        while have < want {
            match self.open_pages.compare_exchange(have, have + 64, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.page_word(have / 64).store(u64::MAX, Ordering::Relaxed);
                    have += 64;
                }
                Err(now) => have = now,
            }
        }
    }

    pub(super) fn find(&self, bytes: usize) -> Option<(u64, usize)> {
        match class_of(bytes) {
            Some(class) => self.find_small(class).map(|at| (at, SMALLEST << class)),
            None => {
                let run = bytes.div_ceil(PAGE);
                // Pages that were taken before are there; to touch new ones costs more than to look for what is done.
                let n = self.take_pages(run, self.untaken.load(Ordering::Relaxed)).or_else(|| {
                    self.reclaim_large();
                    self.take_pages(run, self.open_pages.load(Ordering::Relaxed))
                })?;
                self.page(n).run.store(run as u32, Ordering::Relaxed);
                self.page(n).class.store(CLASS_LARGE, Ordering::Release);
                Some(((n * PAGE) as u64, run * PAGE))
            }
        }
    }

    pub(super) fn find_small(&self, class: usize) -> Option<u64> {
        let near = NEAR.get()[class] as usize;
        let mine = |n: usize| self.page(n).class.load(Ordering::Relaxed) == class as u32 + 1;
        if near != 0
            && mine(near - 1)
            && let Some(at) = self.take_block(near - 1, class)
        {
            return Some(at);
        }
        let remember = |n: usize| {
            let mut all = NEAR.get();
            all[class] = n as u32 + 1;
            NEAR.set(all);
        };
        let find = || {
            let mut pages = (0..self.untaken.load(Ordering::Relaxed)).filter(|n| mine(*n));
            pages.find_map(|n| Some((n, self.take_block(n, class)?)))
        };
        let found = find().or_else(|| if self.reclaim_of(class) { find() } else { None });
        if let Some((n, at)) = found {
            remember(n);
            return Some(at);
        }
        let n = self.take_pages(1, self.open_pages.load(Ordering::Relaxed))?;
        let page = self.page(n);
        let blocks = PAGE / (SMALLEST << class);
        // The first block is ours before anybody can see the page.
        for (w, word) in page.free.iter().enumerate() {
            let left = blocks.saturating_sub(w * 64);
            let bits = if left >= 64 { u64::MAX } else { (1u64 << left) - 1 };
            // SYNC POINT: pairs with the acquire in `take_block`, which then sees the class that the page has, or had last.
            word.store(if w == 0 { bits & !1 } else { bits }, Ordering::Release);
        }
        page.class.store(class as u32 + 1, Ordering::Release);
        remember(n);
        Some((n * PAGE) as u64)
    }

    pub(super) fn take_block(&self, n: usize, class: usize) -> Option<u64> {
        let page = self.page(n);
        for (w, word) in page.free.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                let k = bits.trailing_zeros();
                match word.compare_exchange_weak(bits, bits & !(1 << k), Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        // The page may have been given back and taken for another class since we looked.
                        if page.class.load(Ordering::Relaxed) != class as u32 + 1 {
                            word.fetch_or(1 << k, Ordering::Relaxed);
                            return None;
                        }
                        return Some((n * PAGE + (w * 64 + k as usize) * (SMALLEST << class)) as u64);
                    }
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Takes `run` free pages in a row, all of them below `end`.
    pub(super) fn take_pages(&self, run: usize, end: usize) -> Option<usize> {
        let mut start = 0;
        while start + run <= end {
            // Look before taking: how far do free pages go from here?
            let mut n = start;
            while n < start + run && self.page_word(n / 64).load(Ordering::Relaxed) >> (n % 64) & 1 == 1 {
                n += 1;
            }
            if n < start + run {
                start = n + 1;
                continue;
            }
            let mut taken = start;
            while taken < start + run {
                let bit = 1u64 << (taken % 64);
                // SYNC POINT: pairs with the release in `free_pages`.
                if self.page_word(taken / 64).fetch_and(!bit, Ordering::Acquire) & bit == 0 {
                    break;
                }
                taken += 1;
            }
            if taken == start + run {
                if self.untaken.load(Ordering::Relaxed) < taken {
                    let before = self.untaken.fetch_max(taken, Ordering::Relaxed);
                    tell_growth(before * PAGE, taken * PAGE);
                }
                return Some(start);
            }
            // Somebody took one in the middle: give back what we have and go on behind it.
            self.free_pages(start, taken - start);
            start = taken + 1;
        }
        None
    }

    pub(super) fn free_pages(&self, first: usize, run: usize) {
        for n in first..first + run {
            // SYNC POINT: pairs with the acquire in `take_pages`.
            self.page_word(n / 64).fetch_or(1 << (n % 64), Ordering::Release);
        }
    }

    /// Takes back every block that its receiver has marked done, and the charge of those whose messages are all taken but where the
    /// receiver still looks for the next: a look at all blocks, for when room is short.
    pub fn reclaim(&self) {
        self.for_each_taken(|block| {
            let header = self.block(block.at);
            if self.is_done(block) || is_nobodys(header) {
                self.give_back(block);
                return;
            }
            if header.first.load(Ordering::Acquire) != 0
                && header.taken.load(Ordering::Relaxed) == header.last.load(Ordering::Relaxed)
            {
                self.discharge(block.at);
            }
        });
    }

    /// Before one more page is taken for a class: takes back the blocks that are done, unless few were when it had half as
    /// many. Is there one? So what is done takes no more memory than what is not, and a look at all blocks pays for as many to come.
    fn reclaim_of(&self, class: usize) -> bool {
        let (next, all) = (&self.looks[class], 0..self.untaken.load(Ordering::Relaxed));
        let is_of = |n: &usize| self.page(*n).class.load(Ordering::Relaxed) == class as u32 + 1;
        // (A model has fewer pages.)
        let pages = if cfg!(loom) { 0 } else { all.filter(is_of).count() };
        if pages < next.load(Ordering::Relaxed).max(LOOK_FROM) {
            return false;
        }
        let mut freed = 0;
        self.for_each_of(
            |c| c == class as u32 + 1,
            |block| freed += usize::from(self.is_done(block) && self.give_back(block)),
        );
        let few = freed < pages * (PAGE / (SMALLEST << class)) / 4;
        next.store(if few { 2 * pages } else { pages }, Ordering::Relaxed);
        freed > 0
    }

    /// Takes back the blocks of whole pages that their receivers have marked done: those of senders that went on to another block meanwhile.
    pub(super) fn reclaim_large(&self) {
        self.for_each_of(
            |class| class == CLASS_LARGE,
            |block| {
                if self.is_done(block) {
                    self.give_back(block);
                }
            },
        );
    }

    /// Gives pages back whose blocks are all free, so that they can serve another size.
    pub(super) fn release_pages(&self) {
        for n in 0..self.untaken.load(Ordering::Relaxed) {
            let page = self.page(n);
            let class = page.class.load(Ordering::Relaxed);
            if class == CLASS_FREE || class == CLASS_LARGE {
                continue;
            }
            let blocks = PAGE / (SMALLEST << (class - 1));
            let words = blocks.div_ceil(64);
            let full = |w: usize| if blocks - w * 64 >= 64 { u64::MAX } else { (1u64 << (blocks - w * 64)) - 1 };
            let mut closed = 0;
            // SYNC POINT: pairs with the releases of those who gave the blocks back.
            while closed < words
                && page.free[closed].compare_exchange(full(closed), 0, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                closed += 1;
            }
            if closed == words
                && page.class.compare_exchange(class, CLASS_FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                self.free_pages(n, 1);
            } else {
                for w in 0..closed {
                    page.free[w].fetch_or(full(w), Ordering::Relaxed);
                }
            }
        }
    }
}
