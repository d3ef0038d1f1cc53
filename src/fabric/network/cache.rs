//! User memory that stays registered from one message to the next, until the program unmaps it.
//!
//! A registration pins pages, not addresses: when a program unmaps a buffer and maps something else there, an old registration leads
//! the device to the old pages, and a message would be lost in them without a word. So the kernel is asked to tell: the cached ranges
//! are given to a *userfaultfd*, whose events report each unmapping, moving and emptying of a range. The thread that unmaps is
//! held up until the event has been read, and it is read under the cache's lock:
//!
//! ```text
//!   program: munmap ── waits ──────────────────────────────────┐ returns; maps anew; sends from there
//!   our thread:        lock   read event   forget the range   unlock
//!   send:                                                        lock: the range is not there, is registered anew
//! ```
//! No faults are asked for, so nothing but these calls becomes slower, and no right is needed. Under the lock nothing is allocated or
//! freed, since that might unmap and wait for the thread that waits for the lock. Nor does that thread end a registration: whoever has the
//! lock of the network's library that this takes may be unmapping something just now. Others do, as soon as they are woken. Where the kernel refuses (an old one, a container's
//! rules) memory is registered for each message, and so is shared memory: whoever has its file can punch a hole into it, which is
//! reported to nobody. Blocks of `fmpl_alloc` are kept whole all the same; their allocator tells when their pages go.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use super::device::Access;
use super::region::{Domain, Region};
use crate::base::error::{Error, Result};
use crate::base::log::{Level, tell};
use crate::base::system;
use crate::fabric::shm::region::page_size;

/// Registrations that are kept at most.
pub const ENTRIES: usize = 256;

struct Entry {
    start: u64,
    end: u64,
    writable: bool,
    used: u64,
    region: Arc<Region>,
}

struct Table {
    entries: Box<[Option<Entry>]>,
    clock: u64,
}

/// The registrations that are kept.
pub struct Cache {
    domain: Arc<Domain>,
    shared: Option<Arc<Shared>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    table: Mutex<Table>,
    /// The thread's; it closes it when it ends, so that nobody is held up by reports that nobody reads.
    uffd: RawFd,
    stop: OwnedFd,
    /// What the kernel says of each page: see `is_private`.
    pages: Option<File>,
    /// Registrations that were used again, made, and forgotten because their memory went away.
    counts: [AtomicU64; 3],
    /// Registrations that are to be ended, and whether there are some. There are never more than its capacity: whoever makes another ends
    /// these first.
    over: Mutex<Vec<Arc<Region>>>,
    some_over: AtomicBool,
    /// Has another thread call [`Cache::end`].
    wake: Box<dyn Fn() + Send + Sync>,
}

/// What the cache has done: registrations used again, made, forgotten because their memory went away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Used again.
    pub hits: u64,
    /// Made.
    pub made: u64,
    /// Forgotten.
    pub forgotten: u64,
}

/// `struct uffd_msg`, as far as these events use it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    _reserved: [u8; 7],
    arg: [u64; 3],
}
static_assertions::const_assert!(size_of::<Message>() == 32);

const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;
const USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xaa;
/// `_IOWR(0xAA, 0x3F, struct uffdio_api)`
const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
/// `_IOWR(0xAA, 0x00, struct uffdio_register)`
const IOCTL_REGISTER: libc::c_ulong = 0xc020_aa00;
const FEATURES: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 6;
const MODE_WRITE_PROTECT: u64 = 2;

/// A userfaultfd that reports unmapping; `None`: the kernel refuses.
fn reporter() -> Option<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: the call takes flags only.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as RawFd;
    if fd < 0 {
        return None;
    }
    // SAFETY: a new descriptor that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut api = [UFFD_API, FEATURES, 0];
    // SAFETY: the structure has the size that is in the number.
    (unsafe { libc::ioctl(fd.as_raw_fd(), IOCTL_API, api.as_mut_ptr()) } == 0).then_some(fd)
}

impl Cache {
    /// An empty cache; `keep`: false for one that keeps nothing. `wake` is called when memory has gone, and has another thread call
    /// [`end`](Cache::end); it allocates nothing.
    pub fn new(domain: &Arc<Domain>, keep: bool, wake: Box<dyn Fn() + Send + Sync>) -> Result<Cache> {
        let mut cache = Cache { domain: domain.clone(), shared: None, thread: Mutex::new(None) };
        let Some(uffd) = keep.then(reporter).flatten() else { return Ok(cache) };
        let stop = system::event().map_err(|_| Error::system("a descriptor to end a thread (eventfd)"))?;
        let table = Table { entries: (0..ENTRIES).map(|_| None).collect(), clock: 0 };
        let shared = Arc::new(Shared {
            table: Mutex::new(table),
            uffd: uffd.as_raw_fd(),
            stop,
            pages: File::open("/proc/self/pagemap").ok(),
            counts: Default::default(),
            over: Mutex::new(Vec::with_capacity(2 * ENTRIES)),
            some_over: AtomicBool::new(false),
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

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let Some(shared) = &self.shared else { return Counts::default() };
        let [hits, made, forgotten] = [0, 1, 2].map(|i| shared.counts[i].load(Ordering::Relaxed));
        Counts { hits, made, forgotten }
    }

    /// A registration that covers these bytes, for reading by the device and by peers and, `writable`, for writing by them.
    /// `block`: the block of memory that they lie in, if its owner calls [`forget`](Cache::forget) before its pages go.
    ///
    /// # Safety
    /// The memory stays mapped as long as the caller lets the device use the registration.
    pub unsafe fn get(
        &self,
        at: *mut u8,
        len: usize,
        writable: bool,
        block: impl FnOnce() -> Option<(*mut u8, usize)>,
    ) -> Result<Arc<Region>> {
        let page = page_size() as u64;
        let pages = |at: u64, len: usize| (at & !(page - 1), (at + len as u64).next_multiple_of(page));
        let (start, end) = pages(at as u64, len);
        let Some(shared) = &self.shared else {
            // SAFETY: as the caller promises.
            return unsafe { self.register(at as u64, at as u64 + len as u64, writable) }.map(Arc::new);
        };
        if let Some(region) = shared.find(start, end, writable) {
            shared.counts[0].fetch_add(1, Ordering::Relaxed);
            return Ok(region);
        }
        self.end();
        let block = block();
        let (start, end) = block.map_or((start, end), |(at, len)| pages(at as u64, len));
        let mut range = [start, end - start, MODE_WRITE_PROTECT, 0];
        // SAFETY: the structure has the size that is in the number.
        let mut reported = || unsafe { libc::ioctl(shared.uffd, IOCTL_REGISTER, range.as_mut_ptr()) } == 0;
        let told = block.is_some() || reported();
        // For writing in any case: a page that was never written may be one that all such pages share, and the first write would put
        // another in its place.
        let reading = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::MAY_GO;
        let access = if writable { reading | Access::REMOTE_WRITE } else { reading };
        // SAFETY: as the caller promises.
        let kept = unsafe { self.domain.register(start as *mut u8, (end - start) as usize, access) };
        shared.counts[1].fetch_add(1, Ordering::Relaxed);
        tell(Level::Debug, || format!("{} bytes at {start:#x} are registered with the device", end - start));
        let (region, keep) = match kept {
            Ok(region) => (Arc::new(region), told),
            // Memory that can only be read is not kept either.
            // SAFETY: as the caller promises.
            Err(_) if !writable => (Arc::new(unsafe { self.register(start, end, false)? }), false),
            Err(e) => return Err(e),
        };
        // Of memory whose unmapping is not reported nothing is kept, nor of shared memory, which others can empty. The pages are there by
        // now, and stay, so it can be asked whose they are.
        if keep && (block.is_some() || shared.is_private(start, end)) {
            // What has to make room is dropped here, without the lock.
            drop(shared.keep(Entry { start, end, writable, used: 0, region: region.clone() }));
        }
        Ok(region)
    }

    /// Ends the registrations whose memory has gone.
    pub fn end(&self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| shared.some_over.load(Ordering::Relaxed)) else {
            return;
        };
        let mut over = Vec::with_capacity(2 * ENTRIES);
        shared.some_over.store(false, Ordering::Relaxed);
        std::mem::swap(&mut over, &mut *shared.over.lock().unwrap_or_else(PoisonError::into_inner));
        drop(over);
    }

    /// The pages of this memory go: what is registered of it is forgotten.
    pub fn forget(&self, at: *mut u8, len: usize) {
        let Some(shared) = &self.shared else { return };
        let mut gone: [Option<Entry>; ENTRIES] = [const { None }; ENTRIES];
        shared.take_out(&mut shared.lock(), at as u64, at as u64 + len as u64, &mut gone);
    }

    /// What gives up the registrations that nobody uses just now, when another fails.
    pub fn relief(&self) -> super::region::Relief {
        let shared = self.shared.as_ref().map(Arc::downgrade);
        Box::new(move || shared.as_ref().and_then(Weak::upgrade).is_some_and(|shared| shared.shed()))
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
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, start: u64, end: u64, writable: bool) -> Option<Arc<Region>> {
        let mut table = self.lock();
        table.clock += 1;
        let now = table.clock;
        let fits = |e: &&mut Entry| e.start <= start && e.end >= end && (e.writable || !writable);
        let entry = table.entries.iter_mut().flatten().find(fits)?;
        entry.used = now;
        Some(entry.region.clone())
    }

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

    /// Keeps an entry; what it took the place of.
    fn keep(&self, mut entry: Entry) -> Option<Entry> {
        let mut table = self.lock();
        table.clock += 1;
        entry.used = table.clock;
        let place = table.entries.iter_mut().min_by_key(|e| e.as_ref().map_or(0, |e| e.used))?;
        place.replace(entry)
    }

    /// Forgets the registrations that nobody uses just now; were there any? Whoever looks one up holds it from under the lock on.
    fn shed(&self) -> bool {
        let mut gone: [Option<Entry>; ENTRIES] = [const { None }; ENTRIES];
        let mut table = self.lock();
        let mut n = 0;
        for place in &mut table.entries {
            if place.as_ref().is_some_and(|e| Arc::strong_count(&e.region) == 1) {
                gone[n] = place.take();
                n += 1;
            }
        }
        // What has to go is dropped without the lock.
        drop(table);
        n > 0
    }

    /// Takes the entries out that reach into a range; how many.
    fn take_out(&self, table: &mut Table, start: u64, end: u64, gone: &mut [Option<Entry>; ENTRIES]) -> usize {
        let mut n = 0;
        for place in &mut table.entries {
            if place.as_ref().is_some_and(|e| e.start < end && e.end > start) {
                gone[n] = place.take();
                n += 1;
            }
        }
        self.counts[2].fetch_add(n as u64, Ordering::Relaxed);
        n
    }

    /// The thread: reads what is reported.
    fn run(&self, uffd: OwnedFd) {
        let mut fds =
            [&uffd, &self.stop].map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        // Taken out under the lock, dropped without it.
        let mut gone: [Option<Entry>; ENTRIES] = [const { None }; ENTRIES];
        loop {
            let _ = system::poll(&mut fds, -1);
            if fds[1].revents != 0 {
                return;
            }
            let n;
            {
                let mut table = self.lock();
                let mut message = Message::default();
                // SAFETY: a message is writable for its size; the descriptor does not block.
                let got = unsafe { libc::read(uffd.as_raw_fd(), (&raw mut message).cast(), size_of::<Message>()) };
                if got != size_of::<Message>() as isize {
                    continue;
                }
                let (start, end) = match message.event {
                    EVENT_REMAP => (message.arg[0], message.arg[0].saturating_add(message.arg[2])),
                    EVENT_REMOVE | EVENT_UNMAP => (message.arg[0], message.arg[1]),
                    _ => continue,
                };
                n = self.take_out(&mut table, start, end, &mut gone);
            }
            if n > 0 {
                self.hand_over(&mut gone[..n]);
            }
        }
    }

    /// Registrations are to be ended by others.
    fn hand_over(&self, gone: &mut [Option<Entry>]) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        for region in gone.iter_mut().filter_map(Option::take).map(|entry| entry.region) {
            // Nothing is allocated here either. What would be too many stays registered.
            if over.len() < over.capacity() { over.push(region) } else { std::mem::forget(region) }
        }
        self.some_over.store(true, Ordering::Relaxed);
        drop(over);
        (self.wake)();
    }
}
