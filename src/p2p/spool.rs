//! The spool: the sender's shared memory for messages whose receive has not come in time.
//!
//! Messages of one index lie in **blocks** ([`Block`]) that the receiver reads by itself. A block belongs to the index that took it
//! until its receiver marks it *done*, with the generation of that use; then whoever needs room may take it. Nothing here locks:
//! blocks are bits in words that threads compare and swap.
//!
//! ```text
//!  spool     64 KiB page | 64 KiB page | ...
//!            a page holds blocks of one size (256 B to 32 KiB), or is part of a run of pages that is one large block
//!  private   a word of bits for the pages (1: free), for each page its class and the bits of its free blocks,
//!            for each possible block a word: generation << 1 | taken, and what it is charged with
//! ```

use std::cell::Cell;

use crate::base::atomics::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::base::error::{Code, Error, Result};
use crate::base::log::{Level, tell};
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::region::{Mapping, Region, SPOOL_AT, SPOOL_WINDOW};
use crate::lane::record::{BLOCK_HEADER, Block};
use crate::lane::table::COMMUNICATORS;
use crate::lane::{BlockRef, Lane, PeerSpool};

// A model has few and small pages, since it looks at each word of them.
pub(super) const PAGE: usize = if cfg!(loom) { 1024 } else { 64 * 1024 };
const SMALLEST: usize = 256;
const CLASSES: usize = if cfg!(loom) { 3 } else { 8 };
const PAGES: usize = SPOOL_WINDOW / PAGE;
const BLOCKS_IN_PAGE: usize = PAGE / SMALLEST;

const CLASS_FREE: u32 = 0;
const CLASS_LARGE: u32 = 100;

struct Page {
    /// 0 free or unknown; 1..=CLASSES: blocks of SMALLEST << (class - 1); CLASS_LARGE: the first of a run
    class: AtomicU32,
    /// Pages of the run.
    run: AtomicU32,
    /// Free blocks, one bit each.
    free: [AtomicU64; BLOCKS_IN_PAGE.div_ceil(64)],
}

struct BlockState {
    /// generation << 1 | taken
    word: AtomicU32,
    /// Which budget it is charged to.
    budget: AtomicU32,
    charge: AtomicU64,
}

/// How much a communicator, or the job, may spool, and how patient its sends are.
pub struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    timeout_ms: AtomicI32,
    /// 1: it has been set.
    own: AtomicU32,
}

impl Budget {
    /// Bytes that may be spooled.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// Bytes that are taken now, or not yet known to be free again.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// The time-out: negative infinite, 0 buffered.
    pub fn timeout_ms(&self) -> i32 {
        self.timeout_ms.load(Ordering::Relaxed)
    }
    /// Sets both; what is spooled stays.
    pub fn set(&self, limit: usize, timeout_ms: i32) {
        self.limit.store(limit, Ordering::Relaxed);
        self.timeout_ms.store(timeout_ms, Ordering::Relaxed);
        self.own.store(1, Ordering::Release);
    }
}

/// All spools of a process: their memory, and a budget for the job and for each communicator that has its own.
pub struct Spool {
    window: Mapping,
    tables: Tables,
    /// Pages below this have been free to take; grows with the budgets.
    open_pages: AtomicUsize,
    /// Pages from here on have never been taken: whoever looks at all pages in use ends here, however large the budgets are.
    untaken: AtomicUsize,
    /// Told before pages are given back to the system: who has them registered with a device.
    pub on_remove: std::sync::OnceLock<crate::fabric::shm::region::OnRemove>,
}

/// The private tables, sparse.
struct Tables {
    pages: Zeroed<Page>,
    states: Zeroed<BlockState>,
    page_bits: Zeroed<AtomicU64>,
    /// The job's budget, then those of the communicators by their places in the table of handles. All zero: has none of its own.
    budgets: Zeroed<Budget>,
}

impl Tables {
    fn new() -> Result<Tables> {
        // SAFETY: they are made of atomic numbers, of which zero is one.
        unsafe {
            Ok(Tables {
                pages: Zeroed::new(PAGES)?,
                states: Zeroed::new(SPOOL_WINDOW / SMALLEST)?,
                page_bits: Zeroed::new(PAGES / 64)?,
                budgets: Zeroed::new(BUDGETS)?,
            })
        }
    }
}

/// The job's budget, and one for each communicator.
const BUDGETS: usize = 1 + COMMUNICATORS;

thread_local! {
    /// The page in which this thread last found a block of each class, + 1: threads drift apart and do not share words.
    static NEAR: Cell<[u32; CLASSES]> = const { Cell::new([0; CLASSES]) };
}

/// Will nobody read or write this block any more, since its communicator is freed on both sides?
fn is_nobodys(header: &Block) -> bool {
    let place = header.place.load(Ordering::Acquire);
    let reader = header.owner.load(Ordering::Relaxed) as u32;
    let freed = |ep: &crate::p2p::endpoint::Endpoint| ep.is_freed_by_both(reader, place as u32, (place >> 32) as u32);
    place != 0 && crate::p2p::endpoint::endpoint().is_ok_and(freed)
}

/// The spool has come to take more bytes than ever: said from 1 MB on, whenever it doubles.
fn tell_growth(before: usize, now: usize) {
    if now >= 1 << 20 && now.next_power_of_two() > before.next_power_of_two() {
        tell(Level::Debug, || format!("messages without a receive have come to take {} KiB of the spool", now >> 10));
    }
}

fn class_of(bytes: usize) -> Option<usize> {
    (0..CLASSES).find(|c| SMALLEST << c >= bytes)
}

impl Spool {
    /// Where its private tables lie, and their bytes.
    pub fn tables(&self) -> [(*const u8, usize); 4] {
        fn of<T>(table: &[T]) -> (*const u8, usize) {
            (table.as_ptr().cast(), size_of_val(table))
        }
        let t = &self.tables;
        [of(&t.pages), of(&t.states), of(&t.page_bits), of(&t.budgets)]
    }

    /// An empty spool with the job's budget.
    pub fn new(region: &Region, limit: usize, timeout_ms: i32) -> Result<Spool> {
        let spool = Spool {
            window: region.map(SPOOL_AT, SPOOL_WINDOW)?,
            tables: Tables::new()?,
            open_pages: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
            on_remove: Default::default(),
        };
        spool.budget_at(0).set(limit, timeout_ms);
        spool.widen();
        Ok(spool)
    }

    /// Prepares for a model: few pages, and the tables declared shared.
    #[cfg(loom)]
    pub fn in_model(&self, pages: usize) {
        use crate::base::shadow::share;
        self.open_pages.store(pages, Ordering::Relaxed);
        self.untaken.store(pages, Ordering::Relaxed);
        share(self.bytes(0), SPOOL_WINDOW);
        share(self.tables.pages.as_ptr().cast_mut().cast(), PAGES * size_of::<Page>());
        share(self.tables.states.as_ptr().cast_mut().cast(), SPOOL_WINDOW / SMALLEST * size_of::<BlockState>());
        share(self.tables.page_bits.as_ptr().cast_mut().cast(), PAGES / 8);
    }

    /// The window as the other rank of a model sees it.
    #[cfg(loom)]
    pub fn view(&self) -> Mapping {
        self.window.view()
    }

    /// Begins an execution of a model: what is not shared memory is as in the beginning.
    #[cfg(loom)]
    pub fn renew(&self) {
        NEAR.set([0; CLASSES]);
        for n in 0..2 {
            self.budget_at(n).used.store(0, Ordering::Relaxed);
        }
    }

    /// The budget of a communicator: its own, or the job's.
    #[inline(always)]
    pub fn budget(&self, comm: i32) -> &Budget {
        self.budget_at(self.budget_number(comm))
    }

    #[inline(always)]
    fn budget_number(&self, comm: i32) -> usize {
        let n = 1 + (comm as usize & (COMMUNICATORS - 1));
        if self.budget_at(n).own.load(Ordering::Relaxed) != 0 { n } else { 0 }
    }

    #[inline(always)]
    fn budget_at(&self, n: usize) -> &Budget {
        debug_assert!(n < BUDGETS);
        // SAFETY: `n` is below the number of budgets; zero bytes are a budget that has not been set.
        unsafe { self.tables.budgets.get_unchecked(n) }
    }

    /// A communicator is freed: its place gets the job's budget again. What is charged to it stays charged until it is received.
    pub fn forget(&self, comm: i32) {
        let budget = self.budget_at(1 + (comm as usize & (COMMUNICATORS - 1)));
        if budget.own.swap(0, Ordering::AcqRel) != 0 {
            budget.limit.store(0, Ordering::Relaxed);
        }
    }

    /// Sets limit and time-out, of the job or of a communicator, which has its own from then on.
    pub fn set(&self, comm: Option<i32>, limit: usize, timeout_ms: i32) -> Result<()> {
        if limit > SPOOL_WINDOW / 2 {
            return Err(Error::new(
                Code::Memory,
                format!("a spool of {limit} bytes; the most is {}", SPOOL_WINDOW / 2),
            ));
        }
        self.budget_at(comm.map_or(0, |c| 1 + (c as usize & (COMMUNICATORS - 1)))).set(limit, timeout_ms);
        self.widen();
        Ok(())
    }

    /// Opens as many pages as the budgets can fill: twice their sum, since blocks have headers and round sizes.
    fn widen(&self) {
        self.open_to((self.limits() * 2).div_ceil(PAGE) + 64);
    }

    fn limits(&self) -> usize {
        (0..BUDGETS).map(|n| self.budget_at(n).limit()).sum()
    }

    /// Opens pages until a run of so many is free, as far as the window goes.
    fn open(&self, run: usize) {
        let open = self.open_pages.load(Ordering::Relaxed);
        if let Some(n) = self.take_pages(run, open) {
            return self.free_pages(n, run);
        }
        self.open_to(open + run);
    }

    fn open_to(&self, want: usize) {
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

    fn page_word(&self, n: usize) -> &AtomicU64 {
        debug_assert!(n < PAGES / 64);
        // SAFETY: `n` is below the number of words.
        unsafe { self.tables.page_bits.get_unchecked(n) }
    }
    fn page(&self, n: usize) -> &Page {
        debug_assert!(n < PAGES);
        // SAFETY: `n` is below the number of pages.
        unsafe { self.tables.pages.get_unchecked(n) }
    }
    fn state(&self, at: u64) -> &BlockState {
        debug_assert!((at as usize) < SPOOL_WINDOW);
        // SAFETY: `at` is an offset in the window.
        unsafe { self.tables.states.get_unchecked(at as usize / SMALLEST) }
    }
    /// The block at an offset.
    #[inline]
    pub fn block(&self, at: u64) -> &Block {
        debug_assert!(at as usize + BLOCK_HEADER <= SPOOL_WINDOW);
        // SAFETY: within the window; a block is atomics only.
        unsafe { &*self.window.as_ptr().add(at as usize).cast::<Block>() }
    }
    /// Bytes of the block at an offset, by the private tables; 0: there is none.
    pub fn bytes_of(&self, at: u64) -> usize {
        let page = self.page(at as usize / PAGE);
        match page.class.load(Ordering::Relaxed) {
            CLASS_FREE => 0,
            CLASS_LARGE => page.run.load(Ordering::Relaxed) as usize * PAGE,
            class => SMALLEST << (class - 1),
        }
    }
    /// What a block lies in that is given out to no other use while the block is: its page, or its run of pages.
    pub fn extent(&self, block: BlockRef) -> (*mut u8, usize) {
        let first = block.at as usize / PAGE * PAGE;
        (self.bytes(first as u64), (block.size as usize).max(PAGE))
    }
    /// Bytes of its pages that have ever been in use.
    pub fn most(&self) -> usize {
        self.untaken.load(Ordering::Relaxed) * PAGE
    }
    /// The window as one finds blocks in it that others have named.
    pub fn as_peers(&self) -> PeerSpool {
        PeerSpool::new(&self.window)
    }
    /// The bytes at an offset.
    #[inline]
    pub fn bytes(&self, at: u64) -> *mut u8 {
        debug_assert!((at as usize) < SPOOL_WINDOW);
        // SAFETY: within the window.
        unsafe { self.window.as_ptr().add(at as usize) }
    }

    /// Takes a block for `payload` bytes, charged with `charge`. `None`: no room now.
    pub fn take(&self, comm: i32, payload: usize, charge: usize) -> Option<BlockRef> {
        let budget = self.budget(comm);
        if !self.charge(budget, charge) {
            self.reclaim();
            if !self.charge(budget, charge) {
                return None;
            }
        }
        self.take_charged(comm, payload, charge)
    }

    /// Takes a block for a message whose receive is posted, be the budget spent or not. Its memory is given back to the system
    /// when the block is. `None`: there is no room in the window.
    pub fn take_beyond(&self, comm: i32, payload: usize, charge: usize) -> Option<BlockRef> {
        self.reclaim();
        self.budget(comm).used.fetch_add(charge, Ordering::Relaxed);
        self.open(payload.div_ceil(PAGE) + 1);
        self.take_charged(comm, payload, charge)
    }

    fn take_charged(&self, comm: i32, payload: usize, charge: usize) -> Option<BlockRef> {
        let bytes = payload + BLOCK_HEADER;
        let found = self.find(bytes).or_else(|| {
            self.reclaim();
            self.find(bytes).or_else(|| {
                self.release_pages();
                self.find(bytes)
            })
        });
        let Some((at, size)) = found else {
            self.budget(comm).used.fetch_sub(charge, Ordering::Relaxed);
            return None;
        };
        let state = self.state(at);
        let generation = (state.word.load(Ordering::Relaxed) >> 1).wrapping_add(1) & 0x7fff_ffff;
        state.budget.store(self.budget_number(comm) as u32, Ordering::Relaxed);
        state.charge.store(charge as u64, Ordering::Relaxed);
        let header = self.block(at);
        header.first.store(0, Ordering::Relaxed);
        header.owner.store(0, Ordering::Relaxed);
        header.place.store(0, Ordering::Relaxed);
        header.gener.store(generation, Ordering::Relaxed);
        // These bytes may have been a message's, when other blocks lay here: they must not say that this use is over. Only read as a rule,
        // since the line is the receiver's.
        if header.done.load(Ordering::Relaxed) == generation {
            header.done.store(generation.wrapping_sub(1), Ordering::Relaxed);
        }
        // SYNC POINT: pairs with the acquire in `for_each_taken`: nobody takes it for what it was before.
        state.word.store(generation << 1 | 1, Ordering::Release);
        Some(BlockRef { at, size: size as u64, generation })
    }

    fn charge(&self, budget: &Budget, charge: usize) -> bool {
        let limit = budget.limit();
        let mut used = budget.used.load(Ordering::Relaxed);
        loop {
            let Some(sum) = used.checked_add(charge).filter(|sum| *sum <= limit) else { return false };
            match budget.used.compare_exchange_weak(used, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => used = now,
            }
        }
    }

    /// Takes a block again that its receiver has finished with, under a new generation and charge. `None`: somebody else has it.
    pub fn take_again(&self, comm: i32, block: BlockRef, charge: usize) -> Option<BlockRef> {
        let state = self.state(block.at);
        let generation = (block.generation + 1) & 0x7fff_ffff;
        if state.budget.load(Ordering::Relaxed) as usize != self.budget_number(comm) {
            return None;
        }
        let (old, new) = (block.generation << 1 | 1, generation << 1 | 1);
        state.word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let block = BlockRef { generation, ..block };
        self.discharge(block.at);
        if !self.charge(self.budget(comm), charge) {
            self.give_back(block);
            return None;
        }
        state.charge.store(charge as u64, Ordering::Relaxed);
        let header = self.block(block.at);
        header.first.store(0, Ordering::Relaxed);
        header.owner.store(0, Ordering::Relaxed);
        header.place.store(0, Ordering::Relaxed);
        header.gener.store(generation, Ordering::Relaxed);
        Some(block)
    }

    /// Gives a block back that its receiver has finished with; nothing happens if somebody else took it already.
    pub fn give_back(&self, block: BlockRef) -> bool {
        let state = self.state(block.at);
        if state
            .word
            .compare_exchange(block.generation << 1 | 1, block.generation << 1, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        self.discharge(block.at);
        let n = block.at as usize / PAGE;
        let page = self.page(n);
        let class = page.class.load(Ordering::Relaxed);
        if class == CLASS_LARGE {
            let run = page.run.load(Ordering::Relaxed) as usize;
            page.class.store(CLASS_FREE, Ordering::Relaxed);
            let budget = state.budget.load(Ordering::Relaxed) as usize;
            if run * PAGE > self.budget_at(budget % BUDGETS).limit() && !cfg!(loom) {
                // It was beyond the limit: its memory is not kept.
                if let Some(tell) = self.on_remove.get() {
                    tell(self.bytes(block.at), run * PAGE);
                }
                // SAFETY: pages of the window that nobody has; its receiver is done with them, and they read as zero from now on.
                unsafe { libc::madvise(self.bytes(block.at).cast(), run * PAGE, libc::MADV_REMOVE) };
            }
            self.free_pages(n, run);
        } else {
            let k = (block.at as usize % PAGE) / (SMALLEST << (class - 1));
            // SYNC POINT: pairs with the acquire in `take_block`: who takes it writes after its receiver has read.
            page.free[k / 64].fetch_or(1 << (k % 64), Ordering::Release);
        }
        true
    }

    /// Is this use of the block still the one who remembers it, not given back and perhaps somebody else's?
    pub fn is_held(&self, block: BlockRef) -> bool {
        (block.at as usize) < SPOOL_WINDOW
            && self.state(block.at).word.load(Ordering::Relaxed) == block.generation << 1 | 1
    }

    /// Has the receiver finished with this block?
    #[inline]
    pub fn is_done(&self, block: BlockRef) -> bool {
        self.block(block.at).done.load(Ordering::Acquire) == block.generation
    }

    fn find(&self, bytes: usize) -> Option<(u64, usize)> {
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

    fn find_small(&self, class: usize) -> Option<u64> {
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
        for n in 0..self.untaken.load(Ordering::Relaxed) {
            if mine(n)
                && let Some(at) = self.take_block(n, class)
            {
                remember(n);
                return Some(at);
            }
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

    fn take_block(&self, n: usize, class: usize) -> Option<u64> {
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
    fn take_pages(&self, run: usize, end: usize) -> Option<usize> {
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

    fn free_pages(&self, first: usize, run: usize) {
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

    /// Takes back the blocks of whole pages that their receivers have marked done: those of senders that went on to another block meanwhile.
    fn reclaim_large(&self) {
        self.for_each_of(
            |class| class == CLASS_LARGE,
            |block| {
                if self.is_done(block) {
                    self.give_back(block);
                }
            },
        );
    }

    fn discharge(&self, at: u64) {
        let state = self.state(at);
        let charge = state.charge.swap(0, Ordering::Relaxed) as usize;
        let budget = state.budget.load(Ordering::Relaxed) as usize;
        self.budget_at(budget % BUDGETS).used.fetch_sub(charge, Ordering::Relaxed);
    }

    /// Looks at every block that is in use.
    pub fn for_each_taken(&self, visit: impl FnMut(BlockRef)) {
        self.for_each_of(|_| true, visit)
    }

    /// Looks at every block of these classes that is in use.
    fn for_each_of(&self, of: impl Fn(u32) -> bool, mut visit: impl FnMut(BlockRef)) {
        for n in 0..self.untaken.load(Ordering::Relaxed) {
            let page = self.page(n);
            let class = page.class.load(Ordering::Acquire);
            let size = match class {
                CLASS_FREE => continue,
                c if !of(c) => continue,
                CLASS_LARGE => page.run.load(Ordering::Relaxed) as usize * PAGE,
                c => SMALLEST << (c - 1),
            };
            for k in 0..(PAGE / size).max(1) {
                let at = (n * PAGE + k * size) as u64;
                // SYNC POINT: pairs with the release in `take_charged`.
                let word = self.state(at).word.load(Ordering::Acquire);
                if word & 1 == 1 {
                    visit(BlockRef { at, size: size as u64, generation: word >> 1 });
                }
            }
        }
    }

    /// Messages in all blocks that their receivers have not taken, of the slots that count.
    pub fn waiting(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let mut waiting = 0;
        self.for_each_taken(|block| {
            let header = self.block(block.at);
            // Before the owner, which is written first.
            let first = header.first.load(Ordering::Acquire);
            if self.is_done(block)
                || is_nobodys(header)
                || !counts(Lane::slot_of_owner(header.owner.load(Ordering::Relaxed)))
            {
                return;
            }
            waiting += match first {
                // A single message.
                0 => 1,
                _ => header.last.load(Ordering::Relaxed).wrapping_sub(header.taken.load(Ordering::Relaxed)) as u64,
            };
        });
        waiting
    }

    /// Has pages free whose blocks their receivers have all marked done.
    pub fn free_what_is_done(&self) {
        self.reclaim();
        self.release_pages();
    }

    /// Is there no message in it?
    pub fn is_unused(&self) -> bool {
        let mut unused = true;
        self.for_each_taken(|_| unused = false);
        unused
    }

    /// Are all pages free that this memory of the spool reaches into?
    pub fn is_free(&self, at: u64, len: usize) -> bool {
        let first = (at - self.window.as_ptr() as u64) as usize / PAGE;
        let end = ((at - self.window.as_ptr() as u64) as usize + len).div_ceil(PAGE);
        (first..end).all(|n| self.page_word(n / 64).load(Ordering::Relaxed) >> (n % 64) & 1 == 1)
    }

    /// Gives pages back whose blocks are all free, so that they can serve another size.
    fn release_pages(&self) {
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

#[cfg(test)]
mod tests;
