//! Windows of a region in the memory of this process.

use super::*;
use crate::base::record::Record;

/// The size of a page in bytes.
pub fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let n = system::calls::sysconf(libc::_SC_PAGESIZE);
        usize::try_from(n).ok().filter(|n| n.is_power_of_two()).unwrap_or(4096)
    })
}

/// A window of a region in this process's memory, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    /// What was asked for.
    pub(super) ptr: NonNull<u8>,
    pub(super) len: usize,
    /// What was mapped: the same, rounded outwards to pages.
    pub(super) page: NonNull<u8>,
    pub(super) pages_len: usize,
}

// SAFETY: a mapping is an address range that belongs to this value alone; any thread may use or unmap it. What is read and
// written through it is shared with other processes anyway, and ordered by the records that live there.
unsafe impl Send for Mapping {}

// SAFETY: as for Send; `&Mapping` gives out nothing but the address and the length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The record at an offset.
    pub fn record<T: Record>(&self, at: usize) -> &T {
        let from = self.as_ptr().wrapping_add(at);
        assert!(at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len()) && from.cast::<T>().is_aligned());
        // SAFETY: within the mapping, which is readable and writable, and aligned; any bytes are a record.
        unsafe { &*from.cast() }
    }

    /// Maps `len` bytes of the region `fd` from `offset` on, for reading and writing. `offset` need not be at a page.
    pub(super) fn of(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Mapping> {
        Mapping::at(fd, offset, len, None)
    }

    /// The same for the heap of a rank, at an address that the first levels of caches can tell from the same place in another rank's.
    ///
    /// AMD's processors look a line up in the innermost cache by a hash of bits 12 to 27 of its address, and of two lines with the same hash
    /// keep one. Heaps of the same size lie one behind the other, and what ranks have in common lies at the same place in each, so
    /// of two such places one would push the other out: a copy of 8 KiB takes 107 ns in place of 70. So each rank's heap begins some pages
    /// behind a multiple of 2^28.
    pub(super) fn apart(fd: BorrowedFd<'_>, offset: u64, len: usize, rank: u32) -> io::Result<Mapping> {
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
    pub(super) fn at(fd: BorrowedFd<'_>, offset: u64, len: usize, place: Option<usize>) -> io::Result<Mapping> {
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
