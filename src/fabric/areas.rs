//! Memory that the program has brought along, in which the library's may lie: areas of `fmpl_init` and `fmpl_sendbuf_set`, in jobs on several
//! nodes. The whole pages within an area are the library's until the last finalize; then they are memory of the program's again, all zero.
//!
//! Only private memory is taken, of whose pages nobody else knows. What is put in its place has its addresses:
//!
//! ```text
//!   areas of fmpl_init          new private pages, given out in pieces for what peers write
//!   area of fmpl_sendbuf_set    pages of the spool that were never used before: they lie here and in the spool's window
//! ```

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use crate::base::error::Result;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::run::Run;
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::region::{Region, page_size};

/// Areas that the library has, and pieces of them that are free.
struct Areas {
    all: Vec<Range<usize>>,
    free: Vec<Range<usize>>,
}

static AREAS: Mutex<Areas> = Mutex::new(Areas { all: Vec::new(), free: Vec::new() });

fn lock() -> MutexGuard<'static, Areas> {
    AREAS.lock().unwrap_or_else(|e| e.into_inner())
}

/// The memory from its first page on, as many times `unit` bytes as there are. `None`: not once.
fn within(area: Run, unit: usize) -> Option<Range<usize>> {
    let (start, end) = ((area.ptr() as usize).next_multiple_of(page_size()), area.ptr() as usize + area.len());
    let units = end.checked_sub(start)? / unit;
    (units > 0).then_some(start..start + units * unit)
}

/// Is all of it memory of this process alone that may be written?
fn is_private(area: &Range<usize>) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut at = area.start;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (range, access) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let bounds = range.split_once('-').map(|(a, b)| [a, b].map(|n| usize::from_str_radix(n, 16).unwrap_or(0)));
        if let Some([from, to]) = bounds
            && (from..to).contains(&at)
        {
            if access != "rw-p" {
                return false;
            }
            at = to;
        }
        if at >= area.end {
            return true;
        }
    }
    false
}

/// New private pages, all zero, in the place of what is there, which is the library's.
fn renew(area: &Range<usize>) -> bool {
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: whole pages of an area that the program has handed over.
    unsafe { libc::mmap(area.start as *mut libc::c_void, area.len(), access, flags, -1, 0) != libc::MAP_FAILED }
}

impl Areas {
    /// Takes an area over, unless a part of it is the library's already.
    fn take(&mut self, area: &Range<usize>) -> bool {
        let is_new = !self.all.iter().any(|other| other.start < area.end && area.start < other.end);
        let takes = is_new && is_private(area);
        if takes {
            self.all.push(area.clone());
        }
        takes
    }
}

/// Takes over an area for what peers write.
pub fn lend(area: Run) {
    let mut areas = lock();
    if let Some(area) = within(area, page_size())
        && areas.take(&area)
        && renew(&area)
    {
        areas.free.push(area);
    }
}

/// The same of memory of its own, for a process that has more pieces than the system allows mappings; until it ends.
pub fn lend_own(bytes: usize) -> Result<()> {
    let own = ManuallyDrop::new(Zeroed::<AtomicU64>::new(bytes.next_multiple_of(page_size()) / 8)?);
    let area = own.as_ptr() as usize..own.as_ptr() as usize + own.len() * 8;
    let mut areas = lock();
    areas.all.push(area.clone());
    areas.free.push(area);
    Ok(())
}

/// A piece of so many bytes, a multiple of a page: the library's, all zero. `None`: no area has room for it.
pub(super) fn piece(len: usize) -> Option<*mut u8> {
    let mut areas = lock();
    let n = areas.free.iter().position(|free| free.len() >= len)?;
    let at = areas.free[n].start;
    areas.free[n].start += len;
    if areas.free[n].is_empty() {
        areas.free.swap_remove(n);
    }
    Some(at as *mut u8)
}

/// A piece is not needed any more.
pub(super) fn give_back(at: *mut u8, len: usize) {
    let (mut areas, mut piece) = (lock(), at as usize..at as usize + len);
    // Otherwise it is the program's again.
    if areas.all.iter().any(|area| area.start <= piece.start && piece.end <= area.end) && renew(&piece) {
        // With what lies beside it and is free.
        areas.free.retain(|free| {
            let touches = free.end == piece.start || free.start == piece.end;
            if touches {
                piece = piece.start.min(free.start)..piece.end.max(free.end);
            }
            !touches
        });
        areas.free.push(piece);
    }
}

/// Takes over an area for a piece of this rank's region, in units of `unit` bytes, of at most `most`: how many bytes.
pub fn lay(region: &Region, offset: u64, area: Run, unit: usize, most: usize) -> usize {
    let Some(area) = within(area.first(area.len().min(most + page_size())), unit) else { return 0 };
    let mut areas = lock();
    if !areas.take(&area) {
        return 0;
    }
    // SAFETY: whole pages of an area that the program has handed over.
    let lies = unsafe { region.lay(offset, area.len(), area.start) };
    if lies { area.len() } else { 0 }
}

/// The job is over, and nothing of the library's lies there any more: all areas are the program's again.
pub fn end() {
    let mut areas = lock();
    areas.free.clear();
    for area in std::mem::take(&mut areas.all) {
        renew(&area);
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_taken_in_whole_pages_and_comes_back() {
        let page = page_size();
        let mut memory = vec![7u8; 10 * page];
        let at = memory.as_mut_ptr();
        // SAFETY: the vector's, which is not touched until the end.
        let area = unsafe { Run::new(at.wrapping_add(100), 9 * page) };
        lend(area);
        let first = (at as usize + 100).next_multiple_of(page);
        let pieces = [piece(2 * page), piece(3 * page), piece(2 * page), piece(4 * page)];
        // Other tests of this process may have areas too, but none that is lent.
        let [Some(a), Some(b), Some(c), None] = pieces else { panic!("{pieces:?}") };
        assert_eq!([a as usize, b as usize, c as usize], [first, first + 2 * page, first + 5 * page]);
        // SAFETY: pieces of so many bytes.
        unsafe {
            assert!((0..7 * page).all(|k| *a.add(k) == 0), "all zero");
            b.write_bytes(3, 3 * page);
            give_back(b, 3 * page);
            let again = piece(3 * page).expect("what was given back");
            assert!(again == b && (0..3 * page).all(|k| *b.add(k) == 0));
        }
        lend(area);
        assert!(piece(2 * page).is_none(), "it is the library's already");
        [(c, 2), (a, 2), (b, 3)].into_iter().for_each(|(at, pages)| give_back(at, pages * page));
        assert_eq!(piece(8 * page).map(|at| at as usize), Some(first), "one piece again");
        end();
        assert!(piece(page).is_none());
        assert_eq!((memory[99], memory[first - at as usize]), (7, 0), "what is around it stays");
        memory.fill(1);
        // Shared memory is left alone.
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping.
        let shared = unsafe { libc::mmap(std::ptr::null_mut(), 4 * page, access, flags, -1, 0) };
        // SAFETY: so many bytes long.
        let area = unsafe { Run::new(shared.cast(), 4 * page) };
        lend(area);
        assert!(piece(page).is_none());
    }
}
