//! User memory that stays registered from one message to the next, until the program unmaps it.
//!
//! A registration pins pages, not addresses: when a program unmaps a buffer and maps something else there, an old registration leads
//! the device to the old pages, and a message would be lost in them without a word. So the kernel is asked to tell
//! (`reports.rs`), and the thread that unmaps is held up until the event has been read. What is registered is found without a lock
//! ([`table`]): so the event is read when whoever looks has been told that something changes:
//!
//! ```text
//!   program: munmap ── waits ──────────────────────────────────────┐ returns; maps anew; sends from there
//!   our thread:        lock, odd   read event   forget the range   even, unlock
//!   send:                                                            not odd: the range is not there, is registered anew
//! ```
//! Whoever uses memory that another thread unmaps at the same time is in error; what is promised is that a look-up which begins after
//! `munmap` has returned does not find what was registered before.
//!
//! Under the lock nothing is allocated or freed, since that might unmap and wait for the thread that waits for the lock. Nor does that thread end a
//! registration: whoever has the lock of the network's library that this takes may be unmapping something just now. Others do, as soon as
//! they are woken. Where the kernel refuses (an old one, a container's rules) memory is registered for each message, and so is shared
//! memory: whoever has its file can punch a hole into it, which is reported to nobody. Blocks of `fmpl_alloc` are kept whole all the same;
//! their allocator tells when their pages go.
//!
//! **Bounds.** The ranks of a node keep `FMPL_REGISTRATIONS` together, and `FMPL_REGISTERED_MEMORY` bytes; each has an equal share, which it
//! does not lend to others. Where registering locks pages the bytes are half of what the process may lock (`ulimit -l`) at most: the rest is
//! for what is registered as long as it is used. What messages under way hold counts only while it could be found.

mod kept;
mod order;
mod pool;
mod reports;
pub mod table;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;
mod useful;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::device::Access;
use super::region::{Domain, Region};
use crate::base::error::{Error, Result};
use crate::base::lock::lock;
use crate::base::log::{Level, tell};
use crate::base::system;
use crate::fabric::shm::region::page_size;
use reports::{Reports, reporter};
pub use table::Bounds;
use table::{Counts, Table};

/// A registration that stays until this is dropped, whether it is kept beyond that or not.
pub type Kept = table::Kept<Region>;

/// Tables that no cache uses any more, to be used by others: whoever holds a registration may look into its table at any time.
static TABLES: Mutex<Vec<&'static Table<Region>>> = Mutex::new(Vec::new());

/// The registrations that are kept.
pub struct Cache {
    domain: Arc<Domain>,
    shared: Option<Arc<Shared>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    table: &'static Table<Region>,
    reports: Reports,
    stop: OwnedFd,
    /// What the kernel says of each page: see `is_private`.
    pages: Option<File>,
    made: AtomicU64,
    /// Has another thread call [`Cache::end`].
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Bounds {
    /// The share of one of so many ranks of a node. `pins`: registering locks pages.
    pub fn share(registrations: usize, bytes: Option<u64>, ranks: usize, pins: bool) -> Bounds {
        let ranks = ranks.max(1);
        let bytes = bytes.unwrap_or_else(|| system::memory_bytes()[0] / 2) / ranks as u64;
        let locked = if pins { system::lockable_bytes().map_or(u64::MAX, |bytes| bytes / 2) } else { u64::MAX };
        Bounds { ranges: (registrations / ranks).max(1), bytes: bytes.min(locked) }
    }
}

impl Cache {
    /// An empty cache within these bounds; `None`: one that keeps nothing. `wake` is called when memory has gone, and has another thread call
    /// [`end`](Cache::end); it allocates nothing.
    pub fn new(domain: &Arc<Domain>, bounds: Option<Bounds>, wake: Box<dyn Fn() + Send + Sync>) -> Result<Cache> {
        let mut cache = Cache { domain: domain.clone(), shared: None, thread: Mutex::new(None) };
        let Some((bounds, uffd)) = bounds.and_then(|bounds| Some((bounds, reporter()?))) else { return Ok(cache) };
        let stop = system::event().map_err(|_| Error::system("a descriptor to end a thread (eventfd)"))?;
        let shared = Arc::new(Shared {
            table: table_for(bounds)?,
            reports: Reports::new(&uffd),
            stop,
            pages: File::open("/proc/self/pagemap").ok(),
            made: AtomicU64::new(0),
            wake,
        });
        let run = shared.clone();
        let thread = crate::base::thread::spawn("fmpl-memory", 64 << 10, move || run.run(uffd));
        // Without the thread whoever unmaps would wait for ever: then keep nothing.
        if let Ok(thread) = thread {
            cache.shared = Some(shared);
            cache.thread = Mutex::new(Some(thread));
        }
        Ok(cache)
    }

    /// Does it keep anything?
    pub fn keeps(&self) -> bool {
        self.shared.is_some()
    }

    /// Registrations made so far, and what has become of those that were kept.
    pub fn counts(&self) -> (u64, Counts) {
        let counts = |shared: &Arc<Shared>| (shared.made.load(Ordering::Relaxed), shared.table.counts());
        self.shared.as_ref().map(counts).unwrap_or_default()
    }

    /// Bytes of its own memory.
    pub fn memory(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| shared.table.memory())
    }

    /// A registration that covers these bytes, for reading by the device and by peers and, `writable`, for writing by them.
    /// `block`: the block of memory that they lie in, if its owner calls [`forget`](Cache::forget) before its pages go.
    ///
    /// # Safety
    /// The memory stays mapped as long as the caller lets the device use the registration.
    #[inline]
    pub unsafe fn get(
        &self,
        at: *mut u8,
        len: usize,
        writable: bool,
        block: impl FnOnce() -> Option<(*mut u8, usize)>,
    ) -> Result<Kept> {
        let Some(shared) = &self.shared else {
            // SAFETY: as the caller promises.
            return unsafe { self.register(at as u64, at as u64 + len as u64, writable) }.map(Kept::alone);
        };
        let (start, end) = pages(at as u64, len);
        match shared.table.find(start, end, writable) {
            Some(kept) => Ok(kept),
            // SAFETY: as the caller promises.
            None => unsafe { self.get_new(shared, (start, end), writable, block()) },
        }
    }

    /// Registers memory that is not registered, and keeps that if it can be kept.
    ///
    /// # Safety
    /// As for [`get`](Cache::get).
    #[cold]
    unsafe fn get_new(
        &self,
        shared: &Shared,
        (start, end): (u64, u64),
        writable: bool,
        block: Option<(*mut u8, usize)>,
    ) -> Result<Kept> {
        self.end();
        let (start, end) = block.map_or((start, end), |(at, len)| pages(at as u64, len));
        let told = block.is_some() || shared.reports.ask(start, end);
        // For writing in any case: a page that was never written may be one that all such pages share, and the first write would put
        // another in its place.
        let reading = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::MAY_GO;
        let access = if writable { reading | Access::REMOTE_WRITE } else { reading };
        // SAFETY: as the caller promises.
        let made = unsafe { self.domain.register(start as *mut u8, (end - start) as usize, access) };
        shared.made.fetch_add(1, Ordering::Relaxed);
        tell(Level::Debug, || format!("{} bytes at {start:#x} are registered with the device", end - start));
        let region = match made {
            Ok(region) => region,
            // Memory that can only be read is not kept either.
            // SAFETY: as the caller promises.
            Err(_) if !writable => return unsafe { self.register(start, end, false) }.map(Kept::alone),
            Err(e) => return Err(e),
        };
        // Of memory whose unmapping is not reported nothing is kept, nor of shared memory, which others can empty. The pages are there by
        // now, and stay, so it can be asked whose they are.
        if told && (block.is_some() || shared.is_private(start, end)) {
            return Ok(shared.table.keep(start, end, writable, region));
        }
        Ok(Kept::alone(region))
    }

    /// Ends the registrations whose memory has gone.
    pub fn end(&self) {
        if let Some(shared) = &self.shared {
            shared.table.end();
        }
    }

    /// The pages of this memory go: what is registered of it is forgotten.
    pub fn forget(&self, at: *mut u8, len: usize) {
        if let Some(shared) = &self.shared {
            shared.table.forget(at as u64, at as u64 + len as u64);
        }
    }

    /// What gives up some of the registrations that nobody uses just now, when another fails.
    pub fn relief(&self) -> super::region::Relief {
        let table = self.shared.as_ref().map(|shared| shared.table);
        Box::new(move |len| table.is_some_and(|table| table.shed(len as u64) > 0))
    }

    unsafe fn register(&self, start: u64, end: u64, writable: bool) -> Result<Region> {
        let access = if writable { Access::LOCAL_WRITE | Access::REMOTE_WRITE } else { Access::REMOTE_READ };
        let access = access | Access::MAY_GO;
        // SAFETY: as the caller promises.
        unsafe { self.domain.register(start as *mut u8, (end - start) as usize, access) }
    }

    /// Ends the thread. Nothing may be asked for afterwards.
    pub fn stop(&self) {
        let Some(shared) = &self.shared else { return };
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        system::tell(&shared.stop);
        let _ = thread.join();
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.stop();
        // Whoever still holds a registration keeps its table from being used again.
        if let Some(table) = self.shared.as_ref().map(|shared| shared.table)
            && table.clear()
        {
            lock(&TABLES).push(table);
        }
    }
}

/// The pages that these bytes lie in.
#[inline(always)]
fn pages(at: u64, len: usize) -> (u64, u64) {
    let page = page_size() as u64;
    (at & !(page - 1), (at + len as u64).next_multiple_of(page))
}

/// An empty table.
fn table_for(bounds: Bounds) -> Result<&'static Table<Region>> {
    let mut tables = lock(&TABLES);
    match tables.iter().position(|table| table.bounds() == bounds) {
        Some(n) => Ok(tables.swap_remove(n)),
        None => Ok(Box::leak(Box::new(Table::new(bounds)?))),
    }
}

impl Shared {
    /// Are all these pages there and of this process alone? Bit 63 of a page's word says that it is there, bit 61 that it is a file's or
    /// shared (Linux, Documentation/admin-guide/mm/pagemap.rst).
    fn is_private(&self, start: u64, end: u64) -> bool {
        let Some(pages) = &self.pages else { return false };
        let mut words = [0u8; 4096];
        let (mut at, end) = (start / page_size() as u64 * 8, end / page_size() as u64 * 8);
        while at < end {
            let n = words.len().min((end - at) as usize);
            if pages.read_exact_at(&mut words[..n], at).is_err() {
                return false;
            }
            // The highest byte of each word (little endian).
            if words[..n].chunks_exact(8).any(|w| w[7] & 0xa0 != 0x80) {
                return false;
            }
            at += n as u64;
        }
        true
    }

    /// The thread: reads what is reported. It has the descriptor, and closes it when it ends, so that nobody is held up by reports that nobody
    /// reads.
    fn run(&self, uffd: OwnedFd) {
        let mut fds =
            [&uffd, &self.stop].map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        loop {
            let _ = system::poll(&mut fds, -1);
            if fds[1].revents != 0 {
                return;
            }
            if self.table.forget_later(|| reports::next(&uffd)) > 0 {
                (self.wake)();
            }
        }
    }
}
