//! Finding by a key what stays: a hash table that grows, read without a lock.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::error::Result;
use super::lock::Mutex;
use super::unused::Unused;

/// What an entry is found by.
pub type Key = (u64, i32);

/// What a table holds.
pub trait Keyed {
    /// Its key, which never changes.
    fn key(&self) -> Key;
}

/// Stands where an entry was: others may lie behind it.
fn gone<T>() -> *mut T {
    std::ptr::dangling_mut()
}

struct Array<T> {
    mask: usize,
    slots: Box<[AtomicPtr<T>]>,
}

impl<T: Keyed> Array<T> {
    fn new(n: usize) -> Array<T> {
        Array { mask: n - 1, slots: (0..n).map(|_| AtomicPtr::new(null_mut())).collect() }
    }

    #[inline(always)]
    fn first(&self, key: Key) -> usize {
        (key.0 ^ (key.0 >> 32).wrapping_mul(0x9e37_79b9)).wrapping_add((key.1 as u64).wrapping_mul(0x85eb_ca6b))
            as usize
            & self.mask
    }

    #[inline(always)]
    fn find(&self, key: Key) -> Option<&'static T> {
        let mut at = self.first(key);
        for _ in 0..=self.mask {
            // SYNC POINT: pairs with the release in `put`.
            let p = self.slots[at & self.mask].load(Ordering::Acquire);
            if p.is_null() {
                return None;
            }
            if p == gone() {
                at += 1;
                continue;
            }
            // SAFETY: what is in a table is a leaked box, freed only when no thread uses it any more.
            let found: &'static T = unsafe { &*p };
            if found.key() == key {
                return Some(found);
            }
            at += 1;
        }
        None
    }

    fn put(&self, p: *mut T, key: Key) {
        let mut at = self.first(key);
        // Where an entry was is a place for another: the table's lock keeps keys from being put in twice.
        while !matches!(self.slots[at & self.mask].load(Ordering::Relaxed), p if p.is_null() || p == gone()) {
            at += 1;
        }
        // SYNC POINT: pairs with the acquire in `find`.
        self.slots[at & self.mask].store(p, Ordering::Release);
    }
}

/// Entries by key. One is made at a time.
pub struct Table<T> {
    now: AtomicPtr<Array<T>>,
    made: Mutex<Made<T>>,
}

struct Made<T> {
    all: Vec<*mut T>,
    /// Arrays that were too small: somebody may still be looking at one. Together they are smaller than the one in use.
    arrays: Vec<*mut Array<T>>,
}

// SAFETY: the pointers are to leaked boxes of values that threads may share.
unsafe impl<T: Sync + Send> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Sync + Send> Sync for Table<T> {}

impl<T: Keyed> Default for Table<T> {
    fn default() -> Table<T> {
        let first = Box::into_raw(Box::new(Array::new(64)));
        Table { now: AtomicPtr::new(first), made: Mutex::new(Made { all: Vec::new(), arrays: vec![first] }) }
    }
}

impl<T: Keyed> Table<T> {
    /// The entry of this key.
    #[inline(always)]
    pub fn find(&self, key: Key) -> Option<&'static T> {
        // SAFETY: an array that was ever in use stays until the table is dropped.
        unsafe { &*self.now.load(Ordering::Acquire) }.find(key)
    }

    /// The entry of this key, made by `make` if it does not exist.
    pub fn find_or_make(&self, key: Key, make: impl FnOnce() -> Result<T>) -> Result<&'static T> {
        let mut made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = self.find(key) {
            return Ok(found);
        }
        let p = Box::into_raw(Box::new(make()?));
        made.all.push(p);
        // SAFETY: as in `find`.
        let mut array = unsafe { &*self.now.load(Ordering::Relaxed) };
        if made.all.len() * 2 > array.slots.len() {
            let larger = Array::new(array.slots.len() * 2);
            for old in &made.all[..made.all.len() - 1] {
                // SAFETY: a box of ours.
                larger.put(*old, unsafe { (**old).key() });
            }
            let larger = Box::into_raw(Box::new(larger));
            made.arrays.push(larger);
            // SAFETY: just made.
            array = unsafe { &*larger };
            array.put(p, key);
            self.now.store(larger, Ordering::Release);
        } else {
            array.put(p, key);
        }
        // SAFETY: just made, and freed only when nobody uses it.
        Ok(unsafe { &*p })
    }

    /// Takes entries out.
    pub fn remove(&self, which: impl Fn(Key) -> bool, _unused: &Unused) {
        let mut made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: as in `find`.
        let array = unsafe { &*self.now.load(Ordering::Relaxed) };
        made.all.retain(|p| {
            // SAFETY: a box of ours.
            if !which(unsafe { (**p).key() }) {
                return true;
            }
            if let Some(slot) = array.slots.iter().find(|s| s.load(Ordering::Relaxed) == *p) {
                slot.store(gone(), Ordering::Release);
            }
            // SAFETY: leaked in `find_or_make`; nobody uses it, as the caller promises.
            drop(unsafe { Box::from_raw(*p) });
            false
        });
    }

    /// All entries.
    pub fn all(&self) -> Vec<&'static T> {
        let made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: as in `find`.
        made.all.iter().map(|p| unsafe { &**p }).collect()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(|e| e.into_inner());
        for p in made.all.drain(..) {
            // SAFETY: leaked in `find_or_make`; the table goes when no thread is in the library any more.
            drop(unsafe { Box::from_raw(p) });
        }
        for p in made.arrays.drain(..) {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(p) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(a: i32, b: i32, c: i32) -> Key {
        ((a as u64) << 32 | b as u64, c)
    }

    struct Entry(Key);
    impl Keyed for Entry {
        fn key(&self) -> Key {
            self.0
        }
    }

    #[test]
    fn what_was_put_in_is_found_while_it_grows() {
        let table = Table::default();
        let keys: Vec<Key> = (0..1000).map(|n| key_of(n % 3, n * 7, n % 11)).collect();
        for (n, key) in keys.iter().enumerate() {
            assert!(table.find(*key).is_none());
            table.find_or_make(*key, || Ok(Entry(*key))).unwrap();
            assert!(keys[..=n].iter().all(|k| table.find(*k).is_some_and(|e| e.0 == *k)));
        }
        let same = table.find_or_make(keys[5], || unreachable!()).unwrap();
        assert!(std::ptr::eq(same, table.find(keys[5]).unwrap()));
        assert_eq!(table.all().len(), 1000);
        // SAFETY: nobody has an entry.
        table.remove(|key| key.0 >> 32 == 1, &unsafe { Unused::promised() });
        assert!(keys.iter().all(|k| table.find(*k).is_some() == (k.0 >> 32 != 1)));
        for round in 0..5000 {
            let key = key_of(7, round, 3);
            table.find_or_make(key, || Ok(Entry(key))).unwrap();
            // SAFETY: as above.
            table.remove(|k| k == key, &unsafe { Unused::promised() });
            assert!(table.find(key).is_none());
        }
    }
}
