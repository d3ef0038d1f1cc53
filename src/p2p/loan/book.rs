//! Which addresses are loans of this process: the ones it has made, and those of others that it holds. So a pointer that a program gives is
//! believed only when it is the start of one, and nothing is read where it points.
//!
//! ```text
//!   address   16 bits: top | 12 bits: middle | 14 bits: leaf | 6
//!   entry     own | ticket, or: lender 16 | ticket 20 | generation 28          0: none
//! ```

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::base::error::Result;
use crate::base::zeroed::Zeroed;

const GRAIN_BITS: usize = crate::lane::loan::LOAN_GRAIN.trailing_zeros() as usize;
const LEAF_BITS: usize = 14;
const MIDDLE_BITS: usize = 12;
const TOP_BITS: usize = 48 - GRAIN_BITS - LEAF_BITS - MIDDLE_BITS;

type Leaf = Zeroed<AtomicU64>;
type Middle = Zeroed<AtomicPtr<Leaf>>;

/// The entries by address. Parts of it are made when an address is first entered, and stay.
pub(super) struct Book {
    top: Zeroed<AtomicPtr<Middle>>,
}

impl Book {
    pub fn new() -> Result<Book> {
        // SAFETY: null pointers.
        Ok(Book { top: unsafe { Zeroed::new(1 << TOP_BITS)? } })
    }

    /// The entry of an address, if ever a loan began near it.
    #[inline(always)]
    pub fn find(&self, at: *const u8) -> Option<&AtomicU64> {
        let at = at as usize;
        if at >> (TOP_BITS + MIDDLE_BITS + LEAF_BITS + GRAIN_BITS) != 0 || !at.is_multiple_of(1 << GRAIN_BITS) {
            return None;
        }
        let top = &self.top[at >> (MIDDLE_BITS + LEAF_BITS + GRAIN_BITS)];
        // SAFETY: set once to what is never freed before the book is.
        let middle = unsafe { top.load(Ordering::Acquire).as_ref()? };
        let leaf = &middle[at >> (LEAF_BITS + GRAIN_BITS) & ((1 << MIDDLE_BITS) - 1)];
        // SAFETY: as above.
        let leaf = unsafe { leaf.load(Ordering::Acquire).as_ref()? };
        Some(&leaf[at >> GRAIN_BITS & ((1 << LEAF_BITS) - 1)])
    }

    /// The same, making room for it. The address is a multiple of the grain.
    #[cold]
    pub fn open(&self, at: *const u8) -> Result<&AtomicU64> {
        let n = at as usize;
        let middle = made(&self.top[n >> (MIDDLE_BITS + LEAF_BITS + GRAIN_BITS)], 1 << MIDDLE_BITS)?;
        let leaf = made(&middle[n >> (LEAF_BITS + GRAIN_BITS) & ((1 << MIDDLE_BITS) - 1)], 1 << LEAF_BITS)?;
        Ok(&leaf[n >> GRAIN_BITS & ((1 << LEAF_BITS) - 1)])
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
        fn there<T>(place: &AtomicPtr<T>) -> Option<&T> {
            // SAFETY: as in `find`.
            unsafe { place.load(Ordering::Acquire).as_ref() }
        }
        self.top.iter().filter_map(there).flat_map(|m| m.iter()).filter_map(there).flat_map(|l| l.iter())
    }
}

/// A pointer that is null, or an entry of nothing.
///
/// # Safety
/// Zero bytes are a value, and need no drop.
unsafe trait Empty {}
// SAFETY: null.
unsafe impl<T> Empty for AtomicPtr<T> {}
// SAFETY: a number.
unsafe impl Empty for AtomicU64 {}

/// What a pointer leads to, made by whoever comes first.
fn made<T: Empty>(place: &AtomicPtr<Zeroed<T>>, n: usize) -> Result<&Zeroed<T>> {
    let mut now = place.load(Ordering::Acquire);
    if now.is_null() {
        // SAFETY: zero bytes are a `T`, as it promises.
        let new = Box::into_raw(Box::new(unsafe { Zeroed::new(n)? }));
        now = match place.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made just now, and nobody else has it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: not null; stays until the book goes.
    Ok(unsafe { &*now })
}

impl Drop for Book {
    fn drop(&mut self) {
        for middle in self.top.iter() {
            let middle = middle.load(Ordering::Acquire);
            if middle.is_null() {
                continue;
            }
            // SAFETY: made by `made`, and this is the only owner.
            let middle = unsafe { Box::from_raw(middle) };
            for leaf in middle.iter().map(|l| l.load(Ordering::Acquire)).filter(|l| !l.is_null()) {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(leaf) });
            }
        }
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
