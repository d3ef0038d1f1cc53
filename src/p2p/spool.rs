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

mod budget;

mod pages;

use crate::base::record::{Record, of_atomics};
use static_assertions::const_assert;
use std::cell::Cell;

use crate::base::atomics::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::base::config::SPOOL_MOST;
use crate::base::error::{Code, Result, error};
use crate::base::log::{Level, tell};
use crate::base::run::Run;
use crate::base::system;
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::region::{Mapping, Region, SPOOL_AT, SPOOL_WINDOW};
use crate::lane::record::{BLOCK_HEADER, Block};
use crate::lane::table::COMMUNICATORS;
use crate::lane::{BlockRef, Lane, PeerSpool};
pub use budget::Budget;

// A model has few and small pages, since it looks at each word of them.
pub(super) const PAGE: usize = if cfg!(loom) { 1024 } else { 64 * 1024 };
const SMALLEST: usize = 256;
const CLASSES: usize = if cfg!(loom) { 3 } else { 8 };
const PAGES: usize = SPOOL_WINDOW / PAGE;
// As many pages are opened as twice the limits need.
const_assert!(SPOOL_MOST == SPOOL_WINDOW / 2);
const BLOCKS_IN_PAGE: usize = PAGE / SMALLEST;

/// Of fewer pages of a class none are looked through for blocks that are done.
const LOOK_FROM: usize = 4;

const CLASS_FREE: u32 = 0;
const CLASS_LARGE: u32 = 100;

of_atomics! { Record:
    struct Page {
        /// 0 free or unknown; 1..=CLASSES: blocks of SMALLEST << (class - 1); CLASS_LARGE: the first of a run
        class: AtomicU32,
        /// Pages of the run.
        run: AtomicU32,
        /// Free blocks, one bit each.
        free: [AtomicU64; BLOCKS_IN_PAGE.div_ceil(64)],
    }
}

of_atomics! { Record:
    struct BlockState {
        /// generation << 1 | taken
        word: AtomicU32,
        /// Which budget it is charged to.
        budget: AtomicU32,
        charge: AtomicU64,
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
    /// How often [`Spool::stays_within`] says no before it looks at all blocks again.
    in_vain: AtomicU32,
    /// Pages below this lie in areas of the program's, or have been used before.
    laid: AtomicUsize,
    /// Blocks of a class that are done are looked for when it has so many pages.
    looks: [AtomicUsize; CLASSES],
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
        Ok(Tables {
            pages: Zeroed::new(PAGES)?,
            states: Zeroed::new(SPOOL_WINDOW / SMALLEST)?,
            page_bits: Zeroed::new(PAGES / 64)?,
            budgets: Zeroed::new(BUDGETS)?,
        })
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
            in_vain: AtomicU32::new(0),
            laid: AtomicUsize::new(0),
            looks: std::array::from_fn(|_| AtomicUsize::new(0)),
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
        self.in_vain.store(0, Ordering::Relaxed);
    }

    /// Sets limit and time-out, of the job or of a communicator, which has its own from then on.
    pub fn set(&self, comm: Option<i32>, limit: usize, timeout_ms: i32) -> Result<()> {
        if limit > SPOOL_MOST {
            return Err(error!(Code::Memory, "a spool of {limit} bytes; the most is {SPOOL_MOST}"));
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

    fn page_word(&self, n: usize) -> &AtomicU64 {
        &self.tables.page_bits[n]
    }
    fn page(&self, n: usize) -> &Page {
        &self.tables.pages[n]
    }
    fn state(&self, at: u64) -> &BlockState {
        &self.tables.states[at as usize / SMALLEST]
    }
    /// The block at an offset.
    #[inline]
    pub fn block(&self, at: u64) -> &Block {
        debug_assert!(at as usize + BLOCK_HEADER <= SPOOL_WINDOW);
        self.record(at)
    }
    #[inline]
    fn record<T: Record>(&self, at: u64) -> &T {
        // SAFETY: within the window, as the two that call this have seen to, and aligned; atomics only.
        unsafe { &*self.bytes(at).cast() }
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
    pub fn extent(&self, block: BlockRef) -> Run {
        self.run((block.at as usize / PAGE * PAGE) as u64, (block.size as usize).max(PAGE))
    }
    /// Bytes of its pages that have ever been in use.
    pub fn most(&self) -> usize {
        self.untaken.load(Ordering::Relaxed) * PAGE
    }
    /// The window as one finds blocks in it that others have named.
    pub fn as_peers(&self) -> PeerSpool {
        PeerSpool::new(&self.window)
    }
    /// The address of an offset.
    #[inline]
    pub fn bytes(&self, at: u64) -> *mut u8 {
        debug_assert!((at as usize) < SPOOL_WINDOW);
        self.window.as_ptr().wrapping_add(at as usize)
    }
    /// `len` bytes of a block, from an offset on.
    #[inline]
    pub fn run(&self, at: u64, len: usize) -> Run {
        debug_assert!(at as usize + len <= SPOOL_WINDOW);
        // SAFETY: within the window. Its block is its owner's to write until it says so, and again when its reader is done with it.
        unsafe { Run::new(self.bytes(at), len) }
    }
    /// The word at an offset of a block, a multiple of 8.
    #[inline]
    pub fn word(&self, at: u64) -> &AtomicU64 {
        debug_assert!((at as usize) < SPOOL_WINDOW && at.is_multiple_of(8));
        self.record(at)
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
        let budget = self.budget(comm);
        // As many bytes as before stay charged.
        if state.charge.load(Ordering::Relaxed) != charge as u64 || budget.used() > budget.limit() {
            self.discharge(block.at);
            if !self.charge(budget, charge) {
                self.give_back(block);
                return None;
            }
            state.charge.store(charge as u64, Ordering::Relaxed);
        }
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
                // Nobody has them: the receiver is done.
                system::give_back(self.run(block.at, run * PAGE));
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

    /// Has a block been given out here for this use, now or before? The numbers of uses come round: the later half has not been yet.
    pub fn was_taken(&self, block: BlockRef) -> bool {
        let last = self.state(block.at).word.load(Ordering::Relaxed) >> 1;
        last != 0 && last.wrapping_sub(block.generation) & 0x7fff_ffff < 1 << 30
    }

    /// Has the receiver finished with this block?
    #[inline]
    pub fn is_done(&self, block: BlockRef) -> bool {
        self.block(block.at).done.load(Ordering::Acquire) == block.generation
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
}

#[cfg(test)]
mod tests;
