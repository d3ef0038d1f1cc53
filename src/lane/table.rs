//! Finding a lane: a hash table with open addressing that is only ever added to, so that a look-up is a load or two and no lock.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Lane;
use crate::base::error::{Code, Error, Result};

/// The lanes of this process, by (communicator, peer).
pub struct LaneTable {
    slots: Box<[AtomicPtr<Lane>]>,
    mask: u64,
    all: Mutex<Vec<&'static Lane>>,
}

impl LaneTable {
    /// Room for this many lanes.
    pub fn new(most: usize) -> LaneTable {
        let n = (most * 2).next_power_of_two();
        LaneTable {
            slots: (0..n).map(|_| AtomicPtr::new(null_mut())).collect(),
            mask: n as u64 - 1,
            all: Mutex::new(Vec::new()),
        }
    }

    #[inline(always)]
    fn first(&self, key: u64) -> u64 {
        // The peer's rank itself for the world: neighbours in ranks are neighbours in the table, and nothing collides.
        (key ^ (key >> 32).wrapping_mul(0x9e37_79b9)) & self.mask
    }

    /// The lane of this key, if it exists.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<&'static Lane> {
        let mut at = self.first(key);
        loop {
            // SYNC POINT: pairs with the release in `insert`.
            // SAFETY: `at` is masked to the table's size, a power of two.
            let p = unsafe { self.slots.get_unchecked(at as usize) }.load(Ordering::Acquire);
            if p.is_null() {
                return None;
            }
            // SAFETY: lanes in the table are leaked boxes, freed only in `clear`, when no thread uses the library any more.
            let lane: &'static Lane = unsafe { &*p };
            if lane.key() == key {
                return Some(lane);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The lane of this key, made by `make` if it does not exist. One is made at a time.
    pub fn find_or_make(&self, key: u64, make: impl FnOnce() -> Result<Lane>) -> Result<&'static Lane> {
        let mut all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(lane) = self.find(key) {
            return Ok(lane);
        }
        if (all.len() + 1) * 2 > self.slots.len() {
            return Err(Error::new(Code::Memory, format!("all {} lanes of this process are in use", all.len())));
        }
        let lane = Box::into_raw(Box::new(make()?));
        let mut at = self.first(key);
        while !self.slots[at as usize].load(Ordering::Relaxed).is_null() {
            at = (at + 1) & self.mask;
        }
        // SYNC POINT: pairs with the acquire in `find`.
        self.slots[at as usize].store(lane, Ordering::Release);
        // SAFETY: just leaked.
        let lane = unsafe { &*lane };
        all.push(lane);
        Ok(lane)
    }

    /// All lanes, in the order in which they were made.
    pub fn all(&self) -> Vec<&'static Lane> {
        self.all.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Frees all lanes.
    ///
    /// # Safety
    /// No reference to a lane may be in use, and none may be used afterwards.
    pub unsafe fn clear(&self) {
        let mut all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        for slot in &self.slots {
            let p = slot.swap(null_mut(), Ordering::AcqRel);
            if !p.is_null() {
                // SAFETY: a box leaked in `find_or_make`; the caller promises that nobody uses it.
                drop(unsafe { Box::from_raw(p) });
            }
        }
        all.clear();
    }
}
