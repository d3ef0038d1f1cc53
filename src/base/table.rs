//! Finding by a key what stays: a hash table that grows, read without a lock.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::error::Result;
use super::lock::Mutex;
use super::unused::Unused;

/// What an entry is found by.
pub type Key = (u64, i32);

/// What a table holds.
pub trait Keyed: Send + Sync {
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

    fn put(&self, entry: &'static T) {
        let mut at = self.first(entry.key());
        // Where an entry was is a place for another: the table's lock keeps keys from being put in twice.
        while !matches!(self.slots[at & self.mask].load(Ordering::Relaxed), p if p.is_null() || p == gone()) {
            at += 1;
        }
        // SYNC POINT: pairs with the acquire in `find`.
        self.slots[at & self.mask].store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
    }
}

/// Entries by key. One is made at a time.
pub struct Table<T: 'static> {
    now: AtomicPtr<Array<T>>,
    made: Mutex<Made<T>>,
}

struct Made<T: 'static> {
    all: Vec<&'static T>,
    /// The array in use, and those that were too small: somebody may still be looking at one. Together they are smaller than the one in use.
    arrays: Vec<&'static Array<T>>,
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Frees what was leaked.
///
/// # Safety
/// Nobody uses it.
unsafe fn free<T>(leaked: &'static T) {
    // SAFETY: a box that was leaked above, and is nobody's any more.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(leaked).cast_mut()) });
}

impl<T: Keyed> Default for Table<T> {
    fn default() -> Table<T> {
        let first = leak(Array::new(64));
        let now = AtomicPtr::new(std::ptr::from_ref(first).cast_mut());
        Table { now, made: Mutex::new(Made { all: Vec::new(), arrays: vec![first] }) }
    }
}

impl<T: Keyed> Table<T> {
    /// The entry of this key.
    #[inline(always)]
    pub fn find(&self, key: Key) -> Option<&'static T> {
        self.array().find(key)
    }

    #[inline(always)]
    fn array(&self) -> &Array<T> {
        // SYNC POINT: pairs with the release in `find_or_make`.
        // SAFETY: an array that was ever in use stays until the table is dropped.
        unsafe { &*self.now.load(Ordering::Acquire) }
    }

    /// The entry of this key, made by `make` if it does not exist.
    pub fn find_or_make(&self, key: Key, make: impl FnOnce() -> Result<T>) -> Result<&'static T> {
        let mut made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = self.find(key) {
            return Ok(found);
        }
        let new = leak(make()?);
        made.all.push(new);
        let mut array = self.array();
        if made.all.len() * 2 > array.slots.len() {
            let larger = leak(Array::new(array.slots.len() * 2));
            for &old in &made.all[..made.all.len() - 1] {
                larger.put(old);
            }
            made.arrays.push(larger);
            array = larger;
        }
        array.put(new);
        // SYNC POINT: pairs with the acquire in `array`.
        self.now.store(std::ptr::from_ref(array).cast_mut(), Ordering::Release);
        Ok(new)
    }

    /// Takes entries out.
    pub fn remove(&self, which: impl Fn(Key) -> bool, _unused: &Unused) {
        let mut made = self.made.lock().unwrap_or_else(|e| e.into_inner());
        let array = self.array();
        made.all.retain(|entry| {
            if !which(entry.key()) {
                return true;
            }
            let here = |slot: &&AtomicPtr<T>| std::ptr::eq(slot.load(Ordering::Relaxed), *entry);
            if let Some(slot) = array.slots.iter().find(here) {
                slot.store(gone(), Ordering::Release);
            }
            // SAFETY: nobody uses it, as the caller promises.
            unsafe { free(*entry) };
            false
        });
    }

    /// All entries.
    pub fn all(&self) -> Vec<&'static T> {
        self.made.lock().unwrap_or_else(|e| e.into_inner()).all.clone()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the table goes when no thread is in the library any more.
        made.all.drain(..).for_each(|entry| unsafe { free(entry) });
        // SAFETY: as above.
        made.arrays.drain(..).for_each(|array| unsafe { free(array) });
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
