//! The region: all the memory that one rank shows to the others of its node.
//!
//! It is one sealed memfd, a sparse file far larger than any machine. It has no name, so nothing is left behind however the job
//! ends; it never grows or shrinks, so a peer that has mapped a window of it cannot be made to fault; and a page that nobody has
//! touched costs nothing. Everything in it is zero until written. What lies where is fixed:
//!
//! ```text
//!  offset
//!  0          ┌────────────────────────┐
//!             │ RegionHeader  (4 KiB)  │  who this is, how far it has come, where its heap is
//!  BOARD_AT   ├────────────────────────┤  4 KiB
//!             │ notice board  (12 KiB) │  what this rank waits for; written by `wait`
//!  BOARD_END  ├────────────────────────┤  16 KiB
//!             │ stakes        (64 KiB) │  what this rank is about to take of others; written by `p2p::any_source`
//!             ├────────────────────────┤  80 KiB
//!             ┆                        ┆
//!  LIVES_AT   ├────────────────────────┤  1 GiB
//!             │ lives (8 MiB)          │  which communicator has each unit, by its epoch
//!             ├────────────────────────┤
//!             ┆                        ┆
//!  RMA_AT     ├────────────────────────┤  2 GiB
//!             │ global memory (16 MiB) │  registrations and remote commands; written by `rma`
//!  RMA_END    ├────────────────────────┤
//!             ┆                        ┆
//!  NODE_AT    ├────────────────────────┤  3 GiB
//!             │ connections (8 MiB)    │  those of all processes of the node, if this is its lowest rank; `verbs::room`
//!             ├────────────────────────┤
//!             ┆                        ┆
//!  SPOOL_AT   ├────────────────────────┤  64 GiB
//!             │ spools                 │
//!  HEAP_AT    ├────────────────────────┤  1 TiB
//!             │ fmpl_alloc             │
//!  LANES_AT   ├────────────────────────┤  2 TiB
//!             │ lanes of the world     │
//!  ARENAS_AT  ├────────────────────────┤   8 PiB
//!             │ arenas of collectives  │
//!  ANY_AT     ├────────────────────────┤  16 PiB
//!             │ rings of any source    │
//!  PLACES_AT  ├────────────────────────┤  32 PiB
//!             │ of other communicators │
//!  REGION_END └────────────────────────┘  64 PiB
//! ```
//!
//! The owner holds a [`Region`], everybody else a [`PeerRegion`], which is checked from seals to layout version before any of
//! it is believed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;

use static_assertions::const_assert;

use super::heap::HeapWindow;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::clock;
use crate::base::error::{Code, Error, Result};

/// The version of everything that two ranks share: this map, the header, the lane's records. Any change to one of them changes it.
pub const LAYOUT_VERSION: u32 = 18;

/// Where the owner's pulse is, a word: see [`super::pulse`]. A region of before it has 0 there, which is no pulse.
pub const PULSE_AT: u64 = 2048;

/// Where the notice board begins.
pub const BOARD_AT: u64 = 4096;
/// Where the notice board ends.
pub const BOARD_END: u64 = 16384;
/// The notice board's length in bytes.
pub const BOARD_LEN: usize = (BOARD_END - BOARD_AT) as usize;
/// Where this rank's stakes in rings of others begin.
pub const STAKES_AT: u64 = BOARD_END;
/// Their length in bytes.
pub const STAKES_LEN: usize = 64 << 10;
/// Where the lives of communicators are: for each unit a word that says which communicator the owner has there, and whether it has
/// freed it. Written by the owner only.
pub const LIVES_AT: u64 = 1 << 30;
/// Where the records of global memory begin.
pub const RMA_AT: u64 = 2 << 30;
/// Where they end.
pub const RMA_END: u64 = RMA_AT + (16 << 20);
/// Where the lowest rank of a node has the tables of the node's connections and contexts with others.
pub const NODE_AT: u64 = 3 << 30;
/// Where the spools begin.
pub const SPOOL_AT: u64 = 1 << 36;
/// Most bytes that all spools of a process may take together.
pub const SPOOL_WINDOW: usize = 16 << 30;
/// Where the memory of `fmpl_alloc` begins.
pub const HEAP_AT: u64 = 1 << 40;
/// Where the lanes begin.
pub const LANES_AT: u64 = 1 << 41;
/// Where the rings begin in which messages of any source arrive.
pub const ANY_AT: u64 = 1 << 54;
/// Where the lanes of communicators other than the world begin.
pub const PLACES_AT: u64 = 1 << 55;
/// Where the arenas of collective calls begin, of the communicators whose first member this rank is.
pub const ARENAS_AT: u64 = 1 << 53;
/// The length of the file.
pub const REGION_END: u64 = 1 << 56;

/// "FMPLREGN", so that a dump shows it.
const MAGIC: u64 = u64::from_le_bytes(*b"FMPLREGN");

/// [`RegionHeader::state`]: the owner is still in init.
pub const STARTING: u32 = 0;
/// [`RegionHeader::state`]: the owner takes part in the job.
pub const ALIVE: u32 = 1;
/// [`RegionHeader::state`]: the owner has left in good order; its end is no death.
pub const FINALIZED: u32 = 2;

/// [`RegionHeader::order`]: the owner's threads execute a fence whenever another process calls `membarrier`.
pub const REACHED: u32 = 1;
/// [`RegionHeader::order`]: a process that is not reached has mapped the region.
pub const STRANGER: u32 = 2;

/// The first bytes of a region.
///
/// ```text
///  0         8         12     16     20    24        28       32          40         48         56          60
///  ┌─────────┬─────────┬──────┬──────┬─────┬─────────┬────────┬───────────┬──────────┬──────────┬───────────┬────────────┐
///  │ magic   │ version │ rank │ size │ pid │ indices │ state  │ heap_base │ heap_len │ start_ns │ any_slots │ any_shares │
///  └─────────┴─────────┴──────┴──────┴─────┴─────────┴────────┴───────────┴──────────┴──────────┴───────────┴────────────┘
///  64      68     72
///  ┌───────┬──────┬───────┐
///  │ order │      │ loans │
///  └───────┴──────┴───────┘
/// ```
/// Written by the owner only, but for the order, in which whoever maps the region may set [`STRANGER`]. Magic, version, rank, size, pid and
/// start are written once, before anybody else has the file.
#[repr(C)]
pub struct RegionHeader {
    magic: AtomicU64,
    layout_version: AtomicU32,
    rank: AtomicU32,
    size: AtomicU32,
    pid: AtomicU32,
    /// How many indices this rank has for each peer; the smaller of a pair's numbers holds for it.
    pub indices: AtomicU32,
    /// [`STARTING`], [`ALIVE`] or [`FINALIZED`].
    pub state: AtomicU32,
    /// The owner's own address of [`HEAP_AT`]; 0 as long as it has no heap. Stored with release after `heap_len`.
    pub heap_base: AtomicU64,
    /// The length in bytes of the owner's heap window.
    pub heap_len: AtomicU64,
    start_ns: AtomicU64,
    /// The slots of each ring of this rank in which messages of any source arrive; written once, before anybody else has the file.
    pub any_slots: AtomicU32,
    /// How many shares these are split into (`FMPL_SPREAD`); written once, as above. 0 is 1.
    pub any_shares: AtomicU32,
    /// [`REACHED`], [`STRANGER`]: see [`RegionHeader::is_ordered`].
    order: AtomicU32,
    _pad0: AtomicU32,
    /// The owner's own address of the words by which its loans come back, in its heap; 0: it has made none.
    pub loans: AtomicU64,
    _pad: [AtomicU32; 12],
}

const_assert!(size_of::<usize>() == 8);
const_assert!(size_of::<RegionHeader>() == 128);
const_assert!(size_of::<RegionHeader>() as u64 <= BOARD_AT);
const_assert!(core::mem::offset_of!(RegionHeader, magic) == 0);
const_assert!(core::mem::offset_of!(RegionHeader, layout_version) == 8);
const_assert!(core::mem::offset_of!(RegionHeader, rank) == 12);
const_assert!(core::mem::offset_of!(RegionHeader, size) == 16);
const_assert!(core::mem::offset_of!(RegionHeader, pid) == 20);
const_assert!(core::mem::offset_of!(RegionHeader, indices) == 24);
const_assert!(core::mem::offset_of!(RegionHeader, state) == 28);
const_assert!(core::mem::offset_of!(RegionHeader, heap_base) == 32);
const_assert!(core::mem::offset_of!(RegionHeader, heap_len) == 40);
const_assert!(core::mem::offset_of!(RegionHeader, start_ns) == 48);
const_assert!(core::mem::offset_of!(RegionHeader, any_slots) == 56);
const_assert!(core::mem::offset_of!(RegionHeader, any_shares) == 60);
const_assert!(core::mem::offset_of!(RegionHeader, order) == 64);
const_assert!(core::mem::offset_of!(RegionHeader, loans) == 72);

impl RegionHeader {
    /// The owner's version of the shared layout.
    pub fn layout_version(&self) -> u32 {
        self.layout_version.load(Ordering::Relaxed)
    }
    /// The owner's rank.
    pub fn rank(&self) -> u32 {
        self.rank.load(Ordering::Relaxed)
    }
    /// The number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }
    /// The owner's process id, as the owner sees it.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
    /// When the region was made, in nanoseconds of [`clock::now_ns`].
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Relaxed)
    }
    /// The owner says, before anybody else has the file, that it is reached by the `membarrier` of others.
    pub fn say_reached(&self) {
        self.order.store(REACHED, Ordering::Relaxed);
    }
    /// Is the owner reached by the `membarrier` of others?
    pub fn is_reached(&self) -> bool {
        self.order.load(Ordering::Relaxed) & REACHED != 0
    }
    /// Are all reached that can write in this region: its owner and all who have mapped it? Then one of them that calls `membarrier`
    /// has the order of all bought. Who buys it asks *afterwards*.
    #[inline(always)]
    pub fn is_ordered(&self) -> bool {
        self.order.load(Ordering::Relaxed) == REACHED
    }
    /// A process has mapped the region, and says what it is before it uses anything in it.
    pub(super) fn mapped_by(&self, reached: bool) {
        if !reached {
            self.order.fetch_or(STRANGER, Ordering::SeqCst);
            // SYNC POINT: pairs with the fence of `doorbell::barrier`: either who buys the order sees the stranger afterwards, or the stranger
            // sees all that was stored before.
            fence(Ordering::SeqCst);
        }
    }
}

/// Told before pages are given back to the system: the first byte, and how many.
pub type OnRemove = Box<dyn Fn(*mut u8, usize) + Send + Sync>;

/// The size of a page in bytes.
pub fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: sysconf has no preconditions.
        let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(n).ok().filter(|n| n.is_power_of_two()).unwrap_or(4096)
    })
}

/// A window of a region in this process's memory, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    /// What was asked for.
    ptr: NonNull<u8>,
    len: usize,
    /// What was mapped: the same, rounded outwards to pages.
    page: NonNull<u8>,
    pages_len: usize,
}

// SAFETY: a mapping is an address range that belongs to this value alone; any thread may use or unmap it. What is read and
// written through it is shared with other processes anyway, and ordered by the records that live there.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; `&Mapping` gives out nothing but the address and the length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of the region `fd` from `offset` on, for reading and writing. `offset` need not be at a page.
    fn of(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Mapping> {
        Mapping::at(fd, offset, len, None)
    }

    /// The same for the heap of a rank, at an address that the first levels of caches can tell from the same place in another rank's.
    ///
    /// AMD's processors look a line up in the innermost cache by a hash of bits 12 to 27 of its address, and of two lines with the same hash
    /// keep one. Heaps of the same size lie one behind the other, and what ranks have in common lies at the same place in each, so
    /// of two such places one would push the other out: a copy of 8 KiB takes 107 ns in place of 70. So each rank's heap begins some pages
    /// behind a multiple of 2^28.
    fn apart(fd: BorrowedFd<'_>, offset: u64, len: usize, rank: u32) -> io::Result<Mapping> {
        const PERIOD: usize = 1 << 28;
        let Some(room) = len.checked_add(PERIOD + 2 * page_size()) else { return Mapping::of(fd, offset, len) };
        let (no_access, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), room, no_access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Mapping::of(fd, offset, len);
        }
        let start = start as usize;
        let place = (start & !(PERIOD - 1)) + (rank as usize).wrapping_mul(101) % 256 * page_size();
        let place = if place < start { place + PERIOD } else { place };
        let mapping = Mapping::at(fd, offset, len, Some(place));
        // What is not needed of the room: all of it, if there is no mapping.
        let rest = match &mapping {
            Ok(m) => {
                let (first, end) = (m.page.as_ptr() as usize, m.page.as_ptr() as usize + m.pages_len);
                [(start, first - start), (end, start + room - end)]
            }
            Err(_) => [(start, room), (start, 0)],
        };
        for (at, bytes) in rest.into_iter().filter(|r| r.1 != 0) {
            // SAFETY: parts of the room, which this function has made, without the mapping.
            unsafe { libc::munmap(at as *mut libc::c_void, bytes) };
        }
        mapping.or_else(|_| Mapping::of(fd, offset, len))
    }

    /// `place`: where the pages go, in place of what is mapped there, which is the caller's.
    fn at(fd: BorrowedFd<'_>, offset: u64, len: usize, place: Option<usize>) -> io::Result<Mapping> {
        let page_mask = page_size() as u64 - 1;
        let end = offset.checked_add(len as u64).filter(|end| *end <= REGION_END && len > 0);
        let end = end.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let first = offset & !page_mask;
        let pages_len = (((end + page_mask) & !page_mask) - first) as usize;
        let (at, fixed) = place.map_or((std::ptr::null_mut(), 0), |p| (p as *mut libc::c_void, libc::MAP_FIXED));
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing, and what another one replaces is the caller's. The
        // file is sealed against shrinking (ours at creation, a peer's checked), so no access within it can fault for want of a file.
        let page = unsafe {
            libc::mmap(
                at,
                pages_len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | fixed,
                fd.as_raw_fd(),
                first as libc::off_t,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A core dump of one rank need not hold the memory of all. Only advice: its failure harms nobody.
        // SAFETY: the range was mapped just now.
        unsafe { libc::madvise(page, pages_len, libc::MADV_DONTDUMP) };
        let page = NonNull::new(page.cast::<u8>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: offset - first is less than a page, and the mapping has `len` bytes from there on.
        let ptr = unsafe { page.add((offset - first) as usize) };
        Ok(Mapping { ptr, len, page, pages_len })
    }

    /// The address of the window's first byte.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The window's length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The same window once more, for the other side of a model in one process; the first must outlive it.
    #[cfg(loom)]
    pub fn view(&self) -> Mapping {
        Mapping { pages_len: 0, ..*self }
    }

    /// Leaves the window mapped until the process ends.
    pub fn leak(self) -> *mut u8 {
        let ptr = self.as_ptr();
        std::mem::forget(self);
        ptr
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped, and nobody else unmaps it.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.pages_len) };
    }
}

/// This rank's own region.
#[derive(Debug)]
pub struct Region {
    fd: OwnedFd,
    first: Mapping,
    rank: u32,
    size: u32,
    version: u32,
    indices: AtomicU32,
}

impl Region {
    /// Makes the region of `rank` in a job of `size` ranks, with its header written and its state [`STARTING`].
    ///
    /// `Memory`: a limit stands in the way, and the text says which.
    pub fn create(rank: u32, size: u32) -> Result<Region> {
        Region::create_with_version(rank, size, LAYOUT_VERSION)
    }

    /// A region that claims some version of the layout: the tests make old ones.
    pub(crate) fn create_with_version(rank: u32, size: u32, layout_version: u32) -> Result<Region> {
        check_file_limit(rank)?;
        let fd = memfd(rank)?;
        // SAFETY: fd is an open memfd of ours.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), REGION_END as libc::off_t) } != 0 {
            return Err(Error::system(format!("rank {rank}: making room for the shared region (ftruncate)")));
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: as above.
        if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
            return Err(Error::system(format!("rank {rank}: sealing the shared region (F_ADD_SEALS)")));
        }
        let first = Mapping::of(fd.as_fd(), 0, BOARD_END as usize)
            .map_err(|e| Error::new(Code::Memory, format!("rank {rank}: mapping the shared region's header: {e}")))?;
        let region = Region { fd, first, rank, size, version: layout_version, indices: AtomicU32::new(0) };
        let h = region.header();
        h.layout_version.store(layout_version, Ordering::Relaxed);
        h.rank.store(rank, Ordering::Relaxed);
        h.size.store(size, Ordering::Relaxed);
        h.pid.store(std::process::id(), Ordering::Relaxed);
        h.start_ns.store(clock::now_ns(), Ordering::Relaxed);
        h.magic.store(MAGIC, Ordering::Release);
        Ok(region)
    }

    /// This rank. (The header says so to others, who may damage it; what concerns this process is read nowhere but here.)
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The layout version that this process stands for.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// How many indices this rank has for each peer.
    pub fn indices(&self) -> u32 {
        self.indices.load(Ordering::Acquire)
    }

    /// It has so many from now on, or as many as before if those were more; others are told.
    pub fn have_indices(&self, indices: u32) {
        let most = self.indices.fetch_max(indices, Ordering::AcqRel).max(indices);
        self.header().indices.store(most, Ordering::Release);
    }

    /// The header, as it is shown to others.
    #[inline]
    pub fn header(&self) -> &RegionHeader {
        // SAFETY: the first page is mapped as long as self lives, and every field is an atomic.
        unsafe { &*self.first.as_ptr().cast::<RegionHeader>() }
    }

    /// The owner's pulse.
    #[inline]
    pub(super) fn pulse(&self) -> &AtomicU32 {
        // SAFETY: in the first mapping, which lasts as long as self, and an atomic; the header before it ends well below.
        unsafe { &*self.first.as_ptr().add(PULSE_AT as usize).cast::<AtomicU32>() }
    }

    /// The notice board: [`BOARD_LEN`] bytes, at a page.
    pub fn board(&self) -> *mut u8 {
        // SAFETY: the first mapping reaches to BOARD_END.
        unsafe { self.first.as_ptr().add(BOARD_AT as usize) }
    }

    /// Maps `len` bytes from `offset` on. `Memory`: the address space or a limit on it is used up; `Argument`: beyond the region.
    pub fn map(&self, offset: u64, len: usize) -> Result<Mapping> {
        Mapping::of(self.fd.as_fd(), offset, len)
            .map_err(|e| map_error(e, &format!("rank {}: its own region", self.rank), offset, len))
    }

    /// The same for the heap, apart from others' heaps where the caches look them up.
    pub fn map_apart(&self, offset: u64, len: usize) -> Result<Mapping> {
        let rank = self.rank;
        Mapping::apart(self.fd.as_fd(), offset, len, rank)
            .map_err(|e| map_error(e, &format!("rank {rank}: its own region"), offset, len))
    }

    /// Bytes of the pages between two offsets that are there.
    pub fn allocated(&self, from: u64, to: u64) -> Result<u64> {
        let seek = |at: u64, whence: libc::c_int| {
            // SAFETY: an open file of ours, whose position nobody uses.
            let found = unsafe { libc::lseek(self.fd.as_raw_fd(), at as libc::off_t, whence) };
            u64::try_from(found).ok()
        };
        let (mut at, mut sum) = (from, 0);
        // Beyond the last page there is no data: an error, and the end.
        while at < to
            && let Some(begin) = seek(at, libc::SEEK_DATA).filter(|begin| *begin < to)
        {
            let end = seek(begin, libc::SEEK_HOLE).unwrap_or(to).min(to);
            sum += end - begin;
            at = end;
        }
        Ok(sum)
    }

    /// Gives the pages of `len` bytes from `offset` on back to the system; they read as zero afterwards, for everybody.
    /// Parts of pages at the ends are set to zero.
    pub fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.fallocate(mode, offset, len, "giving back memory")
    }

    /// Has the system find memory for these bytes now instead of at the first touch, where want of it would be a signal.
    pub fn commit(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate(0, offset, len, "committing memory")
    }

    fn fallocate(&self, mode: libc::c_int, offset: u64, len: u64, what: &str) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let rank = self.rank;
        if offset.checked_add(len).is_none_or(|end| end > REGION_END) {
            return Err(Error::new(
                Code::Argument,
                format!("rank {rank}: {what}: {len} bytes at {offset:#x} are beyond the region"),
            ));
        }
        loop {
            // SAFETY: fd is ours; the range lies within the file.
            let r = unsafe { libc::fallocate(self.fd.as_raw_fd(), mode, offset as libc::off_t, len as libc::off_t) };
            if r == 0 {
                return Ok(());
            }
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ENOSPC | libc::ENOMEM) => {
                    return Err(Error::new(
                        Code::Memory,
                        format!("rank {rank}: {what}: {len} bytes at {offset:#x} of the region: {e}"),
                    ));
                }
                _ => {
                    return Err(Error::new(
                        Code::System,
                        format!("rank {rank}: {what}: {len} bytes at {offset:#x} of the region: {e}"),
                    ));
                }
            }
        }
    }

    /// The descriptor, to be handed to peers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Another rank's region.
#[derive(Debug)]
pub struct PeerRegion {
    fd: OwnedFd,
    first: Mapping,
    rank: u32,
    pub(super) heap: OnceLock<Option<HeapWindow>>,
}

impl PeerRegion {
    /// Takes a descriptor that claims to be the region of `rank` in a job of `size`, and checks the claim: file type, size and
    /// seals before it is mapped, magic, version, rank and size before it is used.
    ///
    /// `Version`: the peer was built with another layout. `Peer`: it is no region, or another rank's.
    pub fn adopt(fd: OwnedFd, rank: u32, size: u32, my_version: u32) -> Result<PeerRegion> {
        let wrong = |what: String| {
            Error::new(Code::Peer, format!("rank {rank} handed over something that is not its region: {what}"))
        };
        // SAFETY: all-zero is a valid stat.
        let mut st: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fd is open, st is a stat.
        if unsafe { libc::fstat(fd.as_raw_fd(), &mut st) } != 0 {
            return Err(Error::system(format!("looking at the region of rank {rank} (fstat)")));
        }
        if st.st_mode & libc::S_IFMT != libc::S_IFREG || st.st_size as u64 != REGION_END {
            return Err(wrong(format!("a file of mode {:o} and {} bytes", st.st_mode, st.st_size)));
        }
        // SAFETY: fd is open; the call takes no argument.
        let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(wrong("it is not sealed against shrinking".into()));
        }
        let first = Mapping::of(fd.as_fd(), 0, BOARD_END as usize)
            .map_err(|e| Error::new(Code::Memory, format!("mapping the header of the region of rank {rank}: {e}")))?;
        let region = PeerRegion { fd, first, rank, heap: OnceLock::new() };
        let h = region.header();
        if h.magic.load(Ordering::Acquire) != MAGIC {
            return Err(wrong("the magic number is missing".into()));
        }
        if h.layout_version() != my_version {
            return Err(version_error(rank, h.layout_version(), my_version));
        }
        if (h.rank(), h.size()) != (rank, size) {
            return Err(wrong(format!("it says rank {} of {}, not {rank} of {size}", h.rank(), h.size())));
        }
        fence(Ordering::Acquire);
        Ok(region)
    }

    /// The owner's header.
    #[inline]
    pub fn header(&self) -> &RegionHeader {
        // SAFETY: the first page is mapped as long as self lives, and every field is an atomic.
        unsafe { &*self.first.as_ptr().cast::<RegionHeader>() }
    }

    /// The owner's pulse.
    #[inline]
    pub(super) fn pulse(&self) -> &AtomicU32 {
        // SAFETY: in the first mapping, which lasts as long as self, and an atomic; the header before it ends well below.
        unsafe { &*self.first.as_ptr().add(PULSE_AT as usize).cast::<AtomicU32>() }
    }

    /// The owner's notice board: [`BOARD_LEN`] bytes.
    pub fn board(&self) -> *mut u8 {
        // SAFETY: the first mapping reaches to BOARD_END.
        unsafe { self.first.as_ptr().add(BOARD_AT as usize) }
    }

    /// The owner's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Maps `len` bytes from `offset` on. `Memory`: the address space or a limit on it is used up; `Argument`: beyond the region.
    pub fn map(&self, offset: u64, len: usize) -> Result<Mapping> {
        Mapping::of(self.fd.as_fd(), offset, len)
            .map_err(|e| map_error(e, &format!("the region of rank {}", self.rank), offset, len))
    }

    /// The same for the heap, apart from others' heaps where the caches look them up.
    pub fn map_apart(&self, offset: u64, len: usize) -> Result<Mapping> {
        Mapping::apart(self.fd.as_fd(), offset, len, self.rank)
            .map_err(|e| map_error(e, &format!("the region of rank {}", self.rank), offset, len))
    }
}

/// The error of two ranks whose builds do not fit each other.
pub(super) fn version_error(rank: u32, theirs: u32, ours: u32) -> Error {
    Error::new(
        Code::Version,
        format!(
            "rank {rank} has layout version {theirs}, this process has {ours}; start all ranks with the same build of FMPL"
        ),
    )
}

#[cold]
fn map_error(e: io::Error, whose: &str, offset: u64, len: usize) -> Error {
    let code = if e.raw_os_error() == Some(libc::EINVAL) { Code::Argument } else { Code::Memory };
    Error::new(
        code,
        format!(
            "mapping {len} bytes at {offset:#x} of {whose}: {e} (see `ulimit -v` and vm.max_map_count if memory should suffice)"
        ),
    )
}

/// A limit on the size of files would end the process by SIGXFSZ where the region is made: better to say it.
fn check_file_limit(rank: u32) -> Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limit is a valid rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0 && limit.rlim_cur < REGION_END {
        return Err(Error::new(
            Code::Memory,
            format!(
                "rank {rank}: the limit on file sizes ({} bytes) also limits the shared region, a sparse file; lift it with `ulimit -f unlimited`",
                limit.rlim_cur
            ),
        ));
    }
    Ok(())
}

fn memfd(rank: u32) -> Result<OwnedFd> {
    let name = CString::new(format!("fmpl-{rank}")).expect("no NUL in it");
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // MFD_NOEXEC_SEAL is wanted by hardened systems and unknown to kernels before 6.3.
    for flags in [flags | libc::MFD_NOEXEC_SEAL, flags] {
        // SAFETY: name ends with a NUL.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if fd >= 0 {
            // SAFETY: a new descriptor that nobody else knows.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(Error::system(format!("rank {rank}: making the shared region (memfd_create)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adopt(fd: BorrowedFd<'_>, rank: u32) -> Result<PeerRegion> {
        PeerRegion::adopt(fd.try_clone_to_owned().unwrap(), rank, 4, LAYOUT_VERSION)
    }

    #[test]
    fn two_mappings_see_each_other_and_start_at_zero() {
        let region = Region::create(2, 4).unwrap();
        let peer = adopt(region.fd(), 2).unwrap();
        assert_eq!((peer.header().rank(), peer.header().size(), peer.header().pid()), (2, 4, std::process::id()));
        region.header().state.store(ALIVE, Ordering::Release);
        assert_eq!(peer.header().state.load(Ordering::Acquire), ALIVE);
        for offset in [SPOOL_AT, HEAP_AT + 64, LANES_AT + 12345, REGION_END - 8192] {
            let a = region.map(offset, 8192).unwrap();
            let b = peer.map(offset + 100, 4096).unwrap();
            // SAFETY: both windows are mapped, and this thread alone uses them.
            unsafe {
                assert_eq!(*b.as_ptr(), 0);
                *a.as_ptr().add(100) = 77;
                assert_eq!(*b.as_ptr(), 77);
            }
        }
        // SAFETY: the boards are mapped as long as the regions live.
        unsafe {
            *region.board().add(BOARD_LEN - 1) = 5;
            assert_eq!(*peer.board().add(BOARD_LEN - 1), 5);
        }
    }

    #[test]
    fn punched_pages_are_gone_for_everybody() {
        let region = Region::create(0, 4).unwrap();
        let peer = adopt(region.fd(), 0).unwrap();
        let len = 64 * page_size();
        let (a, b) = (region.map(SPOOL_AT, len).unwrap(), peer.map(SPOOL_AT, len).unwrap());
        let blocks = || {
            // SAFETY: all-zero is a valid stat, and the descriptor is open.
            unsafe {
                let mut st: libc::stat = std::mem::zeroed();
                assert_eq!(libc::fstat(region.fd().as_raw_fd(), &mut st), 0);
                st.st_blocks
            }
        };
        let before = blocks();
        // SAFETY: the window has len bytes.
        unsafe { std::ptr::write_bytes(a.as_ptr(), 1, len) };
        assert_eq!(blocks() - before, (len / 512) as i64);
        region.punch(SPOOL_AT, len as u64).unwrap();
        assert_eq!(blocks(), before);
        // SAFETY: as above.
        assert_eq!(unsafe { *b.as_ptr().add(len - 1) }, 0);
        region.commit(SPOOL_AT, len as u64).unwrap();
        assert_eq!(blocks() - before, (len / 512) as i64);
    }

    #[test]
    fn windows_beyond_the_region_are_refused() {
        let region = Region::create(0, 1).unwrap();
        for (offset, len) in [(REGION_END, 1), (REGION_END - 1, 2), (u64::MAX, 1), (0, 0), (1, usize::MAX)] {
            assert_eq!(region.map(offset, len).unwrap_err().code(), Code::Argument, "{offset:#x} {len}");
        }
        assert_eq!(region.punch(REGION_END - 1, 2).unwrap_err().code(), Code::Argument);
    }

    #[test]
    fn foreign_descriptors_are_refused() {
        let region = Region::create(1, 4).unwrap();
        let e = adopt(region.fd(), 2).unwrap_err();
        assert_eq!(e.code(), Code::Peer);
        assert!(e.detail().contains("rank 1 of 4"), "{e}");

        let old = Region::create_with_version(1, 4, LAYOUT_VERSION + 7).unwrap();
        let e = adopt(old.fd(), 1).unwrap_err();
        assert_eq!(e.code(), Code::Version);
        assert!(e.detail().contains(&format!("version {},", LAYOUT_VERSION + 7)), "{e}");
        assert!(e.detail().contains(&format!("this process has {LAYOUT_VERSION};")), "{e}");

        let (pipe, _end) = io::pipe().unwrap();
        assert_eq!(adopt(pipe.as_fd(), 1).unwrap_err().code(), Code::Peer);
        let unsealed = memfd(1).unwrap();
        // SAFETY: an open memfd of ours.
        assert_eq!(unsafe { libc::ftruncate(unsealed.as_raw_fd(), REGION_END as i64) }, 0);
        assert!(adopt(unsealed.as_fd(), 1).unwrap_err().detail().contains("sealed"));
        // SAFETY: as above.
        assert_eq!(unsafe { libc::fcntl(unsealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
        assert!(adopt(unsealed.as_fd(), 1).unwrap_err().detail().contains("magic"));
    }

    #[test]
    fn the_file_cannot_be_cut_short() {
        let region = Region::create(0, 1).unwrap();
        // SAFETY: an open descriptor; the call must fail and changes nothing then.
        assert_eq!(unsafe { libc::ftruncate(region.fd().as_raw_fd(), 4096) }, -1);
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EPERM));
    }
}
