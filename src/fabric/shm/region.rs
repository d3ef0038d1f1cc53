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
//!             │ lives (2 MiB)          │  which communicator has each unit, by its epoch
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
//!  ARENAS_AT  ├────────────────────────┤  32 PiB
//!             │ arenas of collectives  │
//!  GROUPS_AT  ├────────────────────────┤  48 PiB
//!             │ ranks of communicators │  for all their members on the node, if this is the lowest; `p2p::group`
//!  ANY_AT     ├────────────────────────┤  64 PiB
//!             │ rings of any source    │
//!  PLACES_AT  ├────────────────────────┤   2 EiB
//!             │ of other communicators │
//!  REGION_END └────────────────────────┘   4 EiB
//! ```
//!
//! The owner holds a [`Region`], everybody else a [`PeerRegion`], which is checked from seals to layout version before any of
//! it is believed.

mod mapping;

mod layout;

mod others;

use std::ffi::CString;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;

use static_assertions::const_assert;

use super::heap::HeapWindow;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use crate::base::clock;
use crate::base::error::{Code, Error, Result, error};
use crate::base::record::Record;
use crate::base::system;
use layout::MAGIC;
pub use layout::{
    ALIVE, ANY_AT, ARENAS_AT, BOARD_AT, BOARD_END, BOARD_LEN, FINALIZED, GROUPS_AT, HEAP_AT, LANES_AT, LAYOUT_VERSION,
    LIVES_AT, NODE_AT, PLACES_AT, PULSE_AT, REACHED, REGION_END, RMA_AT, RMA_END, RegionHeader, SPOOL_AT, SPOOL_WINDOW,
    STAKES_AT, STAKES_LEN, STARTING, STRANGER,
};
pub use mapping::{Mapping, page_size};

/// Told before pages are given back to the system: the first byte, and how many.
pub type OnRemove = Box<dyn Fn(*mut u8, usize) + Send + Sync>;

/// A region, whosever it is: what is mapped of it from the beginning on.
#[derive(Debug)]
pub struct Shown {
    fd: OwnedFd,
    first: Mapping,
    rank: u32,
}

impl Shown {
    fn of(fd: OwnedFd, rank: u32) -> Result<Shown> {
        let first = Mapping::of(fd.as_fd(), 0, BOARD_END as usize)
            .map_err(|e| error!(Code::Memory, "mapping the header of the region of rank {rank}: {e}"))?;
        Ok(Shown { fd, first, rank })
    }

    /// The owner's rank. (The header says so to others, who may damage it; what concerns this process is read nowhere but here.)
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The owner's header, as it is shown to others.
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

    /// The owner's notice board: [`BOARD_LEN`] bytes, at a page.
    pub fn board(&self) -> *mut u8 {
        // SAFETY: the first mapping reaches to BOARD_END.
        unsafe { self.first.as_ptr().add(BOARD_AT as usize) }
    }

    /// The same as what lies there.
    pub fn board_of<T: Record>(&self) -> &T {
        self.first.record(BOARD_AT as usize)
    }

    /// Maps `len` bytes from `offset` on. `Memory`: the address space or a limit on it is used up; `Argument`: beyond the region.
    pub fn map(&self, offset: u64, len: usize) -> Result<Mapping> {
        Mapping::of(self.fd.as_fd(), offset, len).map_err(|e| map_error(e, self.rank, offset, len))
    }

    /// Maps a piece in the place of what is there; did it?
    ///
    /// # Safety
    /// Whole pages from `at` on, which are the caller's to be replaced.
    pub(in crate::fabric) unsafe fn lay(&self, offset: u64, len: usize, at: usize) -> bool {
        Mapping::at(self.fd.as_fd(), offset, len, Some(at)).map(std::mem::forget).is_ok()
    }

    /// The same for the heap, apart from others' heaps where the caches look them up.
    pub fn map_apart(&self, offset: u64, len: usize) -> Result<Mapping> {
        Mapping::apart(self.fd.as_fd(), offset, len, self.rank).map_err(|e| map_error(e, self.rank, offset, len))
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
            return Err(error!(
                Code::Argument,
                "rank {rank}: {what}: {len} bytes at {offset:#x} are beyond the region"
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
                    return Err(error!(
                        Code::Memory,
                        "rank {rank}: {what}: {len} bytes at {offset:#x} of the region: {e}"
                    ));
                }
                _ => {
                    return Err(error!(
                        Code::System,
                        "rank {rank}: {what}: {len} bytes at {offset:#x} of the region: {e}"
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

/// This rank's own region.
#[derive(Debug)]
pub struct Region {
    shown: Shown,
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
        if system::seal(&fd, seals).is_err() {
            return Err(Error::system(format!("rank {rank}: sealing the shared region (F_ADD_SEALS)")));
        }
        let region = Region { shown: Shown::of(fd, rank)?, size, version: layout_version, indices: AtomicU32::new(0) };
        let h = region.header();
        h.layout_version.store(layout_version, Ordering::Relaxed);
        h.rank.store(rank, Ordering::Relaxed);
        h.size.store(size, Ordering::Relaxed);
        h.pid.store(std::process::id(), Ordering::Relaxed);
        h.start_ns.store(clock::now_ns(), Ordering::Relaxed);
        h.magic.store(MAGIC, Ordering::Release);
        Ok(region)
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
}

/// Another rank's region.
#[derive(Debug)]
pub struct PeerRegion {
    shown: Shown,
    pub(super) heap: OnceLock<Option<HeapWindow>>,
}

impl Deref for Region {
    type Target = Shown;
    #[inline(always)]
    fn deref(&self) -> &Shown {
        &self.shown
    }
}

impl Deref for PeerRegion {
    type Target = Shown;
    #[inline(always)]
    fn deref(&self) -> &Shown {
        &self.shown
    }
}

impl PeerRegion {
    /// Takes a descriptor that claims to be the region of `rank` in a job of `size`, and checks the claim: file type, size and
    /// seals before it is mapped, magic, version, rank and size before it is used.
    ///
    /// `Version`: the peer was built with another layout. `Peer`: it is no region, or another rank's.
    pub fn adopt(fd: OwnedFd, rank: u32, size: u32, my_version: u32) -> Result<PeerRegion> {
        let wrong =
            |what: String| error!(Code::Peer, "rank {rank} handed over something that is not its region: {what}");
        let st = system::status(fd.as_raw_fd())
            .map_err(|_| Error::system(format!("looking at the region of rank {rank} (fstat)")))?;
        if st.st_mode & libc::S_IFMT != libc::S_IFREG || st.st_size as u64 != REGION_END {
            return Err(wrong(format!("a file of mode {:o} and {} bytes", st.st_mode, st.st_size)));
        }
        let seals = system::seals(&fd);
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(wrong("it is not sealed against shrinking".into()));
        }
        let region = PeerRegion { shown: Shown::of(fd, rank)?, heap: OnceLock::new() };
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
}

/// The error of two ranks whose builds do not fit each other.
pub(super) fn version_error(rank: u32, theirs: u32, ours: u32) -> Error {
    error!(
        Code::Version,
        "rank {rank} has layout version {theirs}, this process has {ours}; start all ranks with the same build of FMPL"
    )
}

#[cold]
fn map_error(e: io::Error, rank: u32, offset: u64, len: usize) -> Error {
    let code = if e.raw_os_error() == Some(libc::EINVAL) { Code::Argument } else { Code::Memory };
    error!(
        code,
        "mapping {len} bytes at {offset:#x} of the region of rank {rank}: {e} (see `ulimit -v` and vm.max_map_count if memory should suffice)"
    )
}

/// A limit on the size of files would end the process by SIGXFSZ where the region is made: better to say it.
fn check_file_limit(rank: u32) -> Result<()> {
    if let Ok(limit) = system::limit(libc::RLIMIT_FSIZE)
        && limit.rlim_cur < REGION_END
    {
        return Err(error!(
            Code::Memory,
            "rank {rank}: the limit on file sizes ({} bytes) also limits the shared region, a sparse file; lift it with `ulimit -f unlimited`",
            limit.rlim_cur
        ));
    }
    Ok(())
}

fn memfd(rank: u32) -> Result<OwnedFd> {
    let name = CString::new(format!("fmpl-{rank}")).expect("no NUL in it");
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // MFD_NOEXEC_SEAL is wanted by hardened systems and unknown to kernels before 6.3.
    for flags in [flags | libc::MFD_NOEXEC_SEAL, flags] {
        match system::memfd(&name, flags) {
            Ok(fd) => return Ok(fd),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
            Err(_) => break,
        }
    }
    Err(Error::system(format!("rank {rank}: making the shared region (memfd_create)")))
}

#[cfg(test)]
mod tests;
