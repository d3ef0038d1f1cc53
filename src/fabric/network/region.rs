//! Memory that the device may reach.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use super::device::{Access, Atomics, Registrar, Registration};
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::system::limit;
use crate::fabric::areas;

/// Where memory is registered: pairs and regions of one domain may be used together.
pub struct Domain {
    registrar: Arc<dyn Registrar>,
    /// How the device changes words.
    atomics: Atomics,
    /// Ends some registrations that are kept for their next use only; did it?
    relief: OnceLock<Relief>,
}

/// See [`Domain::set_relief`].
pub type Relief = Box<dyn Fn(usize) -> bool + Send + Sync>;

impl Domain {
    /// A new domain, of a device that changes words like this.
    pub fn new(registrar: Arc<dyn Registrar>, atomics: Atomics) -> Arc<Domain> {
        Arc::new(Domain { registrar, atomics, relief: OnceLock::new() })
    }

    /// Says what gives some registered memory up, so many bytes if there are, when a registration fails; did it? It is called by whoever
    /// registers, again and again until that succeeds or nothing can be spared any more.
    pub fn set_relief(&self, relief: Relief) {
        let _ = self.relief.set(relief);
    }

    /// Registers `len` bytes at `at`: the pages stay in memory, and the device reaches them by the region's keys.
    ///
    /// `Memory`: the limit on locked memory is met; the text has the number.
    ///
    /// # Safety
    /// The memory must stay mapped as long as the region lives, and whoever gets its keys may write what `access` allows.
    pub unsafe fn register(self: &Arc<Domain>, at: *mut u8, len: usize, access: Access) -> Result<Region> {
        // SAFETY: as the caller promises.
        let register = || unsafe { self.registrar.clone().register(at, len, access) };
        let mut registered = register();
        while registered.as_ref().is_err_and(is_limit) && self.relief.get().is_some_and(|relief| relief(len)) {
            registered = register();
        }
        let registration = registered.map_err(|why| cannot_register(len, &self.registrar.name(), &why))?;
        let keys = [registration.lkey(), registration.rkey()];
        Ok(Region { _registration: registration, _domain: self.clone(), addr: at as u64, len, keys })
    }
}

/// May this be the limit on locked memory? Some drivers say that they have no more room.
fn is_limit(why: &std::io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN))
}

#[cold]
fn cannot_register(len: usize, with: &str, why: &std::io::Error) -> Error {
    let limit = memory_limit();
    error!(Code::Memory, "registering {len} bytes with {with}: {why}; {limit}")
}

/// What the system says of the limit on locked memory, which registered memory counts for, and how to lift it.
#[cold]
pub fn memory_limit() -> String {
    match limit(libc::RLIMIT_MEMLOCK).map_or(0, |limit| limit.rlim_cur) {
        libc::RLIM_INFINITY => "there is no limit on locked memory".to_owned(),
        n => format!(
            "locked memory is limited to {n} bytes; `ulimit -l unlimited` before the start lifts that (limits.conf: memlock)"
        ),
    }
}

/// Registered memory; dropping it takes the device's reach away, but not the memory.
pub struct Region {
    // Before the domain: dropped first.
    _registration: Box<dyn Registration>,
    _domain: Arc<Domain>,
    addr: u64,
    len: usize,
    /// The key for this process's requests, and the one for peers'.
    keys: [u32; 2],
}

impl Region {
    /// The key by which this process's requests name it.
    pub fn lkey(&self) -> u32 {
        self.keys[0]
    }
    /// The key by which a peer's requests name it.
    pub fn rkey(&self) -> u32 {
        self.keys[1]
    }
    /// Where it begins.
    pub fn addr(&self) -> u64 {
        self.addr
    }
    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Do these bytes lie in it?
    pub fn covers(&self, at: u64, len: usize) -> bool {
        at >= self.addr()
            && (at - self.addr()) as usize <= self.len()
            && len <= self.len() - (at - self.addr()) as usize
    }
}

/// Zeroed memory of its own pages, registered: what records and bounce buffers lie in.
pub struct Arena {
    // Before the memory: dropped first.
    region: Region,
    memory: Pages,
}

#[derive(Debug)]
struct Pages {
    at: *mut u8,
    len: usize,
    /// They lie in an area of the program's.
    lent: bool,
}

// SAFETY: plain memory; who uses it orders its accesses.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.lent {
            return areas::give_back(self.at, self.len);
        }
        // SAFETY: mapped in `new` with this length.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

impl Pages {
    /// The same in an area of the program's, where one has room.
    fn lent(len: usize) -> Option<Pages> {
        let len = len.next_multiple_of(crate::fabric::shm::region::page_size());
        areas::piece(len).map(|at| Pages { at, len, lent: true }.kept_from_children())
    }

    /// `len` bytes, rounded up to pages, all zero.
    fn new(len: usize) -> Result<Pages> {
        let len = len.next_multiple_of(crate::fabric::shm::region::page_size());
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Error::system(format!("{len} bytes to be registered (mmap)")));
        }
        Ok(Pages { at: at.cast(), len, lent: false }.kept_from_children())
    }

    /// A child of fork must not share these pages: a write by the parent would move them away from under the device.
    fn kept_from_children(self) -> Pages {
        // SAFETY: a mapping of ours.
        unsafe { libc::madvise(self.at.cast(), self.len, libc::MADV_DONTFORK) };
        self
    }
}

impl Arena {
    /// `len` bytes, rounded up to pages.
    pub fn new(domain: &Arc<Domain>, len: usize, access: Access) -> Result<Arena> {
        let memory = Pages::new(len)?;
        // SAFETY: the pages live as long as the region, which is dropped first.
        let region = unsafe { domain.register(memory.at, len, access)? };
        Ok(Arena { region, memory })
    }
    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.at
    }
    /// Its bytes.
    pub fn len(&self) -> usize {
        self.memory.len
    }
    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.memory.len == 0
    }
    /// Its registration.
    pub fn region(&self) -> &Region {
        &self.region
    }
    /// Its bytes as room, for whom they are; a device that writes there is asked whether it has, before.
    pub fn room(&self) -> Room<'_> {
        // SAFETY: mapped as long as self lives.
        unsafe { Room::known(self.memory.at, self.memory.len) }
    }
    /// A word of it; panics when there is none at this place.
    #[inline]
    pub fn word(&self, at: usize) -> &crate::base::atomics::AtomicU64 {
        self.room().part(at, 8).word()
    }
}

/// Zeroed memory of its own pages, for what a peer's device writes. It stays where it is, and holds what was written, for as long as self
/// lives; registered it is for some of that time only. While it is not, pages in which nothing was ever written take no memory.
pub struct Ground {
    // Before the memory: dropped first.
    region: Mutex<Option<Region>>,
    memory: Pages,
    /// Bytes of its pages that are there.
    there: AtomicUsize,
}

impl Ground {
    /// `len` bytes, rounded up to pages; not registered.
    pub fn new(len: usize) -> Result<Ground> {
        let memory = Pages::lent(len).map_or_else(|| Pages::new(len), Ok)?;
        Ok(Ground { region: Mutex::default(), memory, there: AtomicUsize::new(0) })
    }
    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.at
    }
    /// Bytes of its pages that are there.
    pub fn there(&self) -> usize {
        self.there.load(Ordering::Relaxed)
    }
    fn words(&self, at: usize, bytes: usize) -> &[AtomicU64] {
        assert!(at.is_multiple_of(8) && at + bytes <= self.memory.len && bytes.is_multiple_of(8));
        // SAFETY: within the memory, which lives as long as self; whoever else uses it does so by atomics.
        unsafe { std::slice::from_raw_parts(self.memory.at.add(at).cast::<AtomicU64>(), bytes / 8) }
    }
    /// Its first bytes, as they are while it is not registered.
    pub fn bytes(&self, len: usize) -> Vec<u8> {
        self.words(0, len).iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }
    /// Puts bytes where they were in another one, before this one is shown to anybody.
    pub fn put_back(&self, at: usize, bytes: &[u8]) {
        let page = crate::fabric::shm::region::page_size();
        for (at, byte) in (at..).zip(bytes) {
            let word = &self.words(at & !7, 8)[0];
            let mut all = word.load(Ordering::Relaxed).to_ne_bytes();
            all[at & 7] = *byte;
            word.store(u64::from_ne_bytes(all), Ordering::Relaxed);
        }
        // As far as is known: more exactly when it is registered next, and given up again.
        let there = (at + bytes.len()).next_multiple_of(page).min(self.memory.len);
        self.there.fetch_max(there, Ordering::Relaxed);
    }
    /// The key by which a peer's requests name it, while it is registered.
    pub fn key(&self) -> Option<u32> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Region::rkey)
    }
    /// Registers it, unless it is.
    pub fn open(&self, domain: &Arc<Domain>, access: Access) -> Result<()> {
        let mut region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        if region.is_none() {
            // SAFETY: the pages live as long as the region, which is dropped first.
            *region = Some(unsafe { domain.register(self.memory.at, self.memory.len, access)? });
            self.there.store(self.memory.len, Ordering::Relaxed);
        }
        Ok(())
    }
    /// Ends the registration: the device does not reach it any more. Nothing of what is in it changes, so others may look at it meanwhile.
    pub fn close(&self) {
        let mut region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        if region.take().is_none() {
            return;
        }
        let page = crate::fabric::shm::region::page_size();
        let mut there = 0;
        for at in (0..self.memory.len).step_by(page) {
            // SAFETY: within the memory; whoever else uses it does so by atomics.
            let words = unsafe { std::slice::from_raw_parts(self.memory.at.add(at).cast::<AtomicU64>(), page / 8) };
            // Zero now, and for good: the device wrote it, and nobody here writes anything but zero.
            let zero = words.iter().all(|w| w.load(Ordering::Relaxed) == 0);
            // SAFETY: a private mapping of ours; pages that are given back read as zero, which is what they hold.
            if !zero || unsafe { libc::madvise(self.memory.at.add(at).cast(), page, libc::MADV_DONTNEED) } != 0 {
                there += page;
            }
        }
        self.there.store(there, Ordering::Relaxed);
    }
}

/// Registered ranges of a memory whose allocator gives out ranges that never overlap those in use. Registrations may overlap: one that
/// reaches beyond a range in question may be in use there.
pub struct Ranges {
    domain: Arc<Domain>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_start: BTreeMap<u64, Region>,
    /// Of which a part was given back to the system, so that no key of theirs is given out any more.
    retired: Vec<Region>,
}

/// Registrations before a range among which one is looked for that covers it.
const LOOKS: usize = 8;

impl Ranges {
    /// None yet.
    pub fn new(domain: &Arc<Domain>) -> Ranges {
        Ranges { domain: domain.clone(), kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These bytes are given back to the system: what is registered of them is no longer what is mapped there.
    pub fn forget(&self, at: *mut u8, len: usize) {
        let (start, end) = (at as u64, at as u64 + len as u64);
        let mut kept = self.lock();
        let over = |(from, region): (&u64, &Region)| (*from + region.len() as u64 > start).then_some(*from);
        let over: Vec<u64> = kept.by_start.range(..end).filter_map(over).collect();
        for from in over {
            if let Some(region) = kept.by_start.remove(&from)
                && (from < start || from + region.len() as u64 > end)
            {
                kept.retired.push(region);
            }
        }
    }

    /// Ends the registrations of memory that is in no use, as `is_free` says of a range; were there any?
    pub fn shed(&self, is_free: impl Fn(u64, usize) -> bool) -> bool {
        let mut kept = self.lock();
        let before = kept.by_start.len() + kept.retired.len();
        kept.by_start.retain(|start, region| !is_free(*start, region.len()));
        kept.retired.retain(|region| !is_free(region.addr(), region.len()));
        kept.by_start.len() + kept.retired.len() < before
    }

    /// The key by which peers read and write `len` bytes at `at`.
    ///
    /// # Safety
    /// The memory stays mapped as long as self lives; who used a part of it before is done with it.
    pub unsafe fn key(&self, at: *mut u8, len: usize) -> Result<u32> {
        let (start, end) = (at as u64, at as u64 + len as u64);
        let mut kept = self.lock();
        let mut before = kept.by_start.range(..=start).rev().take(LOOKS);
        if let Some((_, region)) = before.find(|(_, region)| region.covers(start, len)) {
            return Ok(region.rkey());
        }
        // What lies within is in no other use; what reaches beyond may be.
        let within: Vec<u64> = kept
            .by_start
            .range(start..end)
            .filter(|(from, region)| **from + region.len() as u64 <= end)
            .map(|(from, _)| *from)
            .collect();
        within.iter().for_each(|from| drop(kept.by_start.remove(from)));
        let mut access = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE;
        if self.domain.atomics != Atomics::None {
            access |= Access::REMOTE_ATOMIC;
        }
        // SAFETY: as the caller promises.
        let region = unsafe { self.domain.register(at, len, access)? };
        let key = region.rkey();
        if let Some(shorter) = kept.by_start.insert(start, region) {
            kept.retired.push(shorter);
        }
        Ok(key)
    }
}
