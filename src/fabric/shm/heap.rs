//! The memory of `fmpl_alloc`: blocks in a window of the own region, which peers map as well, so that a sender can store
//! straight into a receive buffer.
//!
//! The window's address range is reserved once, at the first allocation, and published in the region's header. The accounts are
//! kept in private memory, three ordered maps under one mutex (this is no fast path), so no peer can damage them:
//!
//! ```text
//!  window   │ in use │   free   │ in use │ in use │          free           │
//!           used: start → length         free: start → (length, dirty)
//!                                        by_len: (length, start), for the best fit
//! ```
//! Free neighbours are joined. `dirty` bounds how many bytes of a free block may still occupy pages; when it reaches
//! [`DIRTY_MOST`] the block's whole pages go back to the system. Blocks are aligned to 64 bytes, to a page from 4096 bytes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError};

use super::region::{HEAP_AT, LANES_AT, Mapping, OnRemove, PeerRegion, Region, page_size};
use crate::base::atomics::Ordering;
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::record::Record;
use crate::base::run::Run;

/// The grain of blocks: a cache line, so that two blocks never share one.
const GRAIN: usize = 64;
/// From this size on a block begins at a page.
const PAGED: usize = 4096;
/// A free block keeps fewer bytes than this from the system.
const DIRTY_MOST: usize = 64 << 10;
/// The window that is reserved: at most …
const WINDOW_MOST: usize = 256 << 30;
/// … normally at least …
const WINDOW_USUAL: usize = 64 << 30;
/// … and where the address space is limited no less than this.
const WINDOW_LEAST: usize = 64 << 20;

static_assertions::const_assert!(HEAP_AT + WINDOW_MOST as u64 <= LANES_AT);

/// The allocator of this rank's shared memory.
pub struct Heap {
    region: Arc<Region>,
    window: OnceLock<Mapping>,
    accounts: Mutex<Accounts>,
    /// Told before pages are given back to the system: who has them registered with a device.
    pub on_remove: OnceLock<OnRemove>,
}

impl Heap {
    /// An allocator that has reserved nothing yet.
    pub fn new(region: Arc<Region>) -> Heap {
        Heap { region, window: OnceLock::new(), accounts: Mutex::default(), on_remove: OnceLock::new() }
    }

    /// A block of `size` bytes, aligned to 64 bytes, to a page from 4096 bytes on. A block of no bytes has an address of its own.
    /// Its contents are not defined.
    ///
    /// `Memory`: more than the machine has, or the window is full.
    pub fn alloc(&self, size: usize) -> Result<*mut u8> {
        let machine = Machine::get();
        if size as u64 > machine.memory {
            return Err(self.no_memory(size, &format!("the machine has {} bytes in all", machine.memory)));
        }
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let window = self.window(&mut accounts)?;
        let len = size.max(1).next_multiple_of(GRAIN);
        let align = if size >= PAGED { page_size() } else { GRAIN };
        let Some(start) = accounts.take(len, align) else {
            let (used, free) = (accounts.in_use, accounts.by_len.last().map_or(0, |(len, _)| *len));
            let what = format!("{used} bytes of {} are in use, the largest free block has {free}", window.len());
            return Err(self.no_memory(size, &what));
        };
        if machine.strict
            && let Err(e) = self.region.commit(HEAP_AT + start as u64, len as u64)
        {
            accounts.give_back(start);
            return Err(e);
        }
        // SAFETY: the block lies within the window.
        Ok(unsafe { window.as_ptr().add(start) })
    }

    /// Takes a block back. `Argument`: no block in use begins there, which may mean that it has been freed before.
    /// A null pointer is fine, as for `free`.
    pub fn free(&self, ptr: *mut u8) -> Result<()> {
        if ptr.is_null() {
            return Ok(());
        }
        let rank = self.region.rank();
        let wrong = |what: &str| Err(error!(Code::Argument, "rank {rank}: free({ptr:p}): {what}"));
        let Some(start) = self.offset(ptr) else {
            return wrong("this address is not from fmpl_alloc");
        };
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(clean) = accounts.give_back(start) else {
            return match accounts.used.range(..start).next_back().filter(|(s, len)| **s + **len > start) {
                Some((s, _)) => {
                    wrong(&format!("this address lies {} bytes within a block, not at its beginning", start - s))
                }
                None => wrong("no block is in use here; it may have been freed before"),
            };
        };
        // Under the lock still: afterwards the pages may be somebody's again.
        if let Some((at, len)) = clean {
            if let (Some(tell), Some(window)) = (self.on_remove.get(), self.window.get()) {
                tell(window.as_ptr().wrapping_add(at), len);
            }
            self.region.punch(HEAP_AT + at as u64, len as u64)?;
        }
        Ok(())
    }

    /// A block for the words by which loans come back, published in the region's header.
    pub(crate) fn publish_loans<T: Record>(&self, n: usize) -> Result<&'static [T]> {
        let at = self.alloc(n * size_of::<T>())?;
        // SYNC POINT: pairs with the acquire in `PeerRegion::loans`.
        self.region.header().loans.store(at as u64, Ordering::Release);
        // SAFETY: a block of the heap that is never given back, at a line; whoever has it has this heap as long.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), n) })
    }

    /// Where in the window an address of it lies.
    #[inline(always)]
    pub fn place_of(&self, ptr: *const u8) -> Option<u64> {
        self.offset(ptr).map(|at| at as u64)
    }

    /// The address of these bytes of the window.
    pub fn at(&self, place: u64, len: u64) -> Option<*mut u8> {
        let window = self.window.get()?;
        within(window, place, len)
    }

    /// The block in use that these bytes lie in.
    pub fn block_of(&self, ptr: *const u8, len: usize) -> Option<(*mut u8, usize)> {
        let at = self.offset(ptr)?;
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, have) = accounts.used.range(..=at).next_back()?;
        let block = self.window.get()?.as_ptr().wrapping_add(*start);
        (len <= have.checked_sub(at - start)?).then_some((block, *have))
    }

    /// Do these bytes lie in the window, so that a peer can reach them by [`HeapWindow::translate`]?
    #[inline]
    pub fn contains(&self, ptr: *const u8, len: usize) -> bool {
        let Some(window) = self.window.get() else { return false };
        let at = (ptr as usize).wrapping_sub(window.as_ptr() as usize);
        at < window.len() && len <= window.len() - at
    }

    #[inline]
    fn offset(&self, ptr: *const u8) -> Option<usize> {
        let window = self.window.get()?;
        (ptr as usize).checked_sub(window.as_ptr() as usize).filter(|at| *at < window.len())
    }

    /// The window, reserved and published at the first call. Called under the lock.
    fn window(&self, accounts: &mut Accounts) -> Result<&Mapping> {
        if let Some(window) = self.window.get() {
            return Ok(window);
        }
        let mut len = (Machine::get().memory as usize).checked_next_power_of_two().unwrap_or(WINDOW_MOST);
        len = len.clamp(WINDOW_USUAL, WINDOW_MOST);
        let window = loop {
            match self.region.map_apart(HEAP_AT, len) {
                Ok(window) => break window,
                Err(e) if len / 4 < WINDOW_LEAST => return Err(e),
                Err(_) => len /= 4,
            }
        };
        accounts.insert_free(0, len, 0);
        let header = self.region.header();
        header.heap_len.store(len as u64, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire load in `PeerRegion::heap`.
        header.heap_base.store(window.as_ptr() as u64, Ordering::Release);
        Ok(self.window.get_or_init(|| window))
    }

    #[cold]
    fn no_memory(&self, size: usize, what: &str) -> Error {
        error!(Code::Memory, "rank {}: alloc of {size} bytes: {what}", self.region.rank())
    }
}

/// What is in use and what is free, in offsets from the window's beginning.
#[derive(Debug, Default)]
struct Accounts {
    used: BTreeMap<usize, usize>,
    free: BTreeMap<usize, (usize, usize)>,
    by_len: BTreeSet<(usize, usize)>,
    in_use: usize,
}

impl Accounts {
    /// The smallest free block that has room for `len` bytes at this alignment gives them.
    fn take(&mut self, len: usize, align: usize) -> Option<usize> {
        // Blocks that barely suffice may not, once aligned: look at a few, then for one that does in any case.
        let fits = |&(have, at): &(usize, usize)| {
            let start = at.next_multiple_of(align);
            (start - at + len <= have).then_some((at, start))
        };
        let sure = len.checked_add(align - GRAIN)?;
        let (at, start) = (self.by_len.range((len, 0)..).take(16).find_map(fits))
            .or_else(|| self.by_len.range((sure, 0)..).next().and_then(fits))?;
        let (have, dirty) = self.remove_free(at);
        let (before, after) = (start - at, at + have - (start + len));
        if before > 0 {
            self.insert_free(at, before, dirty.min(before));
        }
        if after > 0 {
            self.insert_free(start + len, after, dirty.min(after));
        }
        self.used.insert(start, len);
        self.in_use += len;
        Some(start)
    }

    /// The block that begins here is free again. `None`: there is no such block. Else perhaps a range of pages that nobody uses
    /// any more and that the system should have back.
    #[expect(clippy::option_option, reason = "two questions with an answer each")]
    fn give_back(&mut self, start: usize) -> Option<Option<(usize, usize)>> {
        let len = self.used.remove(&start)?;
        self.in_use -= len;
        let (mut at, mut have, mut dirty) = (start, len, len);
        if let Some((&before, &(n, d))) = self.free.range(..start).next_back()
            && before + n == start
        {
            self.remove_free(before);
            (at, have, dirty) = (before, have + n, dirty + d);
        }
        if self.free.contains_key(&(start + len)) {
            let (n, d) = self.remove_free(start + len);
            (have, dirty) = (have + n, dirty + d);
        }
        let page = page_size();
        let (first, end) = (at.next_multiple_of(page), (at + have) / page * page);
        if dirty < DIRTY_MOST || first >= end {
            self.insert_free(at, have, dirty);
            return Some(None);
        }
        // What had been clean need not be cleaned again: only the surroundings of this block can be dirty beyond DIRTY_MOST on
        // each side, but where exactly is not kept. Punching holes in holes is cheap.
        self.insert_free(at, have, (first - at) + (at + have - end));
        Some(Some((first, end - first)))
    }

    fn insert_free(&mut self, at: usize, len: usize, dirty: usize) {
        self.free.insert(at, (len, dirty));
        self.by_len.insert((len, at));
    }

    fn remove_free(&mut self, at: usize) -> (usize, usize) {
        let (len, dirty) = self.free.remove(&at).expect("a free block is in both maps");
        self.by_len.remove(&(len, at));
        (len, dirty)
    }
}

/// What the machine has to offer.
struct Machine {
    /// Bytes of memory and swap space.
    memory: u64,
    /// No memory is promised that is not there (`vm.overcommit_memory=2`): ours, being shared, would fail at the first touch.
    strict: bool,
}

impl Machine {
    fn get() -> &'static Machine {
        static MACHINE: OnceLock<Machine> = OnceLock::new();
        MACHINE.get_or_init(|| {
            let [memory, swap] = crate::base::system::memory_bytes();
            let memory = memory.saturating_add(swap);
            let strict = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|s| s.trim() == "2");
            Machine { memory: if memory == 0 { u64::MAX } else { memory }, strict }
        })
    }
}

/// A peer's heap in this process's memory.
#[derive(Debug)]
pub struct HeapWindow {
    owner_base: u64,
    mapping: Mapping,
}

impl HeapWindow {
    /// Where this process finds what the owner has at `addr`. `None`: some of these bytes are not in the owner's heap.
    #[inline]
    pub fn translate(&self, addr: u64, len: usize) -> Option<*mut u8> {
        self.at(addr.checked_sub(self.owner_base)?, len as u64)
    }

    /// The same as a run, of which the owner has said that this process may use it: for as long as the owner is known.
    #[inline]
    pub(crate) fn run(&self, addr: u64, len: usize) -> Option<Run> {
        // SAFETY: within the mapping, which stays as long as the window does, and as said.
        self.translate(addr, len).map(|at| unsafe { Run::new(at, len) })
    }

    /// The same as room, of which the owner has said that this process may use it.
    #[inline(always)]
    pub fn room(&self, addr: u64, len: usize) -> Option<Room<'_>> {
        // SAFETY: within the mapping, which stays as long as the window does.
        self.translate(addr, len).map(|at| unsafe { Room::known(at, len) })
    }

    /// The same of what lies at an offset in the owner's heap.
    #[inline(always)]
    pub fn at(&self, place: u64, len: u64) -> Option<*mut u8> {
        within(&self.mapping, place, len)
    }

    /// Where it begins here, and its bytes.
    pub fn parts(&self) -> (*mut u8, u64) {
        (self.mapping.as_ptr(), self.mapping.len() as u64)
    }
}

#[inline(always)]
fn within(window: &Mapping, place: u64, len: u64) -> Option<*mut u8> {
    let have = window.len() as u64;
    if place > have || len > have - place {
        return None;
    }
    // SAFETY: within the mapping, or just behind its end when there are no bytes.
    Some(unsafe { window.as_ptr().add(place as usize) })
}

impl PeerRegion {
    /// The peer's heap, mapped at the first call that finds one. `None`: it has none yet, or what it says of it cannot be, or there was no
    /// room to map it; the latter stays so, since other ways serve.
    #[inline]
    pub fn heap(&self) -> Option<&HeapWindow> {
        match self.heap.get() {
            Some(window) => window.as_ref(),
            None => self.map_heap(),
        }
    }

    /// The words by which the owner's loans come back, so many bytes, in its heap. `None`: it has none, or the heap cannot be mapped.
    #[cold]
    pub fn loans(&self, bytes: usize) -> Option<(&HeapWindow, *mut u8)> {
        // SYNC POINT: pairs with the release store in `Heap::publish_loans`.
        let at = self.header().loans.load(Ordering::Acquire);
        let heap = self.heap()?;
        let words = heap.translate(at, bytes).filter(|_| at != 0 && at.is_multiple_of(GRAIN as u64))?;
        Some((heap, words))
    }

    /// The heap of a rank of a model as the other rank sees it: at the same addresses.
    #[cfg(loom)]
    pub fn heap_in_model(&self, heap: &Heap) {
        let window = heap.window.get().expect("a heap");
        let _ = self.heap.set(Some(HeapWindow { owner_base: window.as_ptr() as u64, mapping: window.view() }));
    }

    /// Where its owner has the heap. `None`: it has none, or says what cannot be: a window begins a page, so what is aligned there is so here.
    pub fn heap_base(&self) -> Option<u64> {
        // SYNC POINT: pairs with the release store in `Heap::window`.
        let base = self.header().heap_base.load(Ordering::Acquire);
        (base != 0 && base.is_multiple_of(page_size() as u64)).then_some(base)
    }

    #[cold]
    fn map_heap(&self) -> Option<&HeapWindow> {
        let owner_base = self.heap_base()?;
        let len = self.header().heap_len.load(Ordering::Relaxed).min(WINDOW_MOST as u64) as usize;
        self.heap
            .get_or_init(|| self.map_apart(HEAP_AT, len).ok().map(|mapping| HeapWindow { owner_base, mapping }))
            .as_ref()
    }
}

#[cfg(test)]
mod tests;
