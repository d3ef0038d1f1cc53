//! Which addresses are loans of this process: the ones it has made, and those of others that it holds. So a pointer that a program gives is
//! believed only when it is the start of one, and nothing is read where it points.
//!
//! ```text
//!   address   16 bits: top | 12 bits: middle | 14 bits: leaf | 6
//!   entry     own | ticket, or: lender 16 | ticket 20 | generation 28          0: none
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::error::Result;
use crate::base::zeroed::{Later, Zeroed};

const GRAIN_BITS: usize = crate::lane::loan::LOAN_GRAIN.trailing_zeros() as usize;
const LEAF_BITS: usize = 14;
const MIDDLE_BITS: usize = 12;
const TOP_BITS: usize = 48 - GRAIN_BITS - LEAF_BITS - MIDDLE_BITS;

/// The entries by address. Parts of it are made when an address is first entered, and stay. Each leads straight to the first of its values:
/// each look is one load less.
pub(in crate::p2p) struct Book {
    top: Zeroed<Later<Middle, { 1 << MIDDLE_BITS }>>,
}

type Middle = Later<AtomicU64, { 1 << LEAF_BITS }>;

/// The place of an address in a table of so many bits, so many bits above the grain.
#[inline(always)]
fn place(at: usize, bits: usize, above: usize) -> usize {
    at >> (GRAIN_BITS + above) & ((1 << bits) - 1)
}

impl Book {
    pub fn new() -> Result<Book> {
        Ok(Book { top: Zeroed::new(1 << TOP_BITS)? })
    }

    /// The entry of an address, if ever a loan began near it.
    #[inline(always)]
    pub fn find(&self, at: *const u8) -> Option<&AtomicU64> {
        let at = at as usize;
        if at >> 48 != 0 || !at.is_multiple_of(1 << GRAIN_BITS) {
            return None;
        }
        let middle = self.top[place(at, TOP_BITS, LEAF_BITS + MIDDLE_BITS)].get()?;
        let leaf = middle[place(at, MIDDLE_BITS, LEAF_BITS)].get()?;
        Some(&leaf[place(at, LEAF_BITS, 0)])
    }

    /// The same, making room for it. The address is a multiple of the grain.
    #[cold]
    pub fn open(&self, at: *const u8) -> Result<&AtomicU64> {
        let n = at as usize;
        let middle = self.top[place(n, TOP_BITS, LEAF_BITS + MIDDLE_BITS)].make()?;
        let leaf = middle[place(n, MIDDLE_BITS, LEAF_BITS)].make()?;
        Ok(&leaf[place(n, LEAF_BITS, 0)])
    }

    /// Begins an execution of a model: no loan of others is held.
    #[cfg(loom)]
    pub fn renew(&self) {
        let held = self.entries().filter(|e| super::lender_of(e.load(Ordering::Relaxed)) != super::OWN);
        held.for_each(|e| e.store(0, Ordering::Relaxed));
    }

    /// All entries that say something. Walks over what was ever opened.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.entries().map(|e| e.load(Ordering::Relaxed)).filter(|e| *e != 0)
    }

    fn entries(&self) -> impl Iterator<Item = &AtomicU64> {
        self.top.iter().filter_map(Later::get).flatten().filter_map(Later::get).flatten()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_entries_of_their_own_and_others_none() {
        let book = Book::new().unwrap();
        let places = [64usize, 128, 1 << 20, (1 << 20) + 64, 1 << 32, 0x7fff_ffff_ffc0, 0x5555_0000_0000];
        assert!(places.iter().all(|p| book.find(*p as *const u8).is_none()));
        for (k, p) in places.iter().enumerate() {
            book.open(*p as *const u8).unwrap().store(k as u64 + 1, Ordering::Relaxed);
        }
        for (k, p) in places.iter().enumerate() {
            assert_eq!(book.find(*p as *const u8).unwrap().load(Ordering::Relaxed), k as u64 + 1);
            assert!(book.find((p + 1) as *const u8).is_none());
        }
        assert_eq!(book.all().count(), places.len());
        assert!(book.find(usize::MAX as *const u8).is_none() && book.find((1usize << 48) as *const u8).is_none());
    }
}
