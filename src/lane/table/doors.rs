//! How the lanes between nodes are found: by a look without a lock, as the others are, although one may go while others look for it.
//!
//! ```text
//!  heads [hash of the key] ──▶ door ──▶ door ──▶ …          idle ──▶ door ──▶ …
//!                              │ key    whose lane it is, or NOBODY
//!                              │ users  threads that use the lane | GOING
//!                              └ lane
//! ```
//! A door is never freed while others may look, but used again for another lane. So whoever has found the key counts himself in first and looks at
//! the key again then: if it is still that, the lane stays until he has counted himself out. Who wants the lane to go closes the door,
//! which he can only while nobody is counted. Doors are put into chains and taken out under the lock of all lanes; who follows a chain
//! meanwhile may be led into another one, finds nothing there, and looks again with the lock.

use std::ptr::null_mut;

use super::Lane;
use crate::base::atomics::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::zeroed::Zeroed;

/// Chains, a power of two: of as many lanes each is of length one or so.
const CHAINS: usize = 4096;
/// Who follows a chain for longer may be going in a circle.
const LONGEST: usize = 64;
/// In `users`: nobody may come in.
const GOING: u32 = 1 << 31;
/// No lane has such a key.
const NOBODY: u64 = u64::MAX;

/// See the head of this file.
pub struct Door {
    key: AtomicU64,
    users: AtomicU32,
    lane: AtomicPtr<Lane>,
    next: AtomicPtr<Door>,
}

/// What the door of a key leads to.
pub(super) enum Found {
    /// There is none.
    Nothing,
    /// The lane is going: to be asked again.
    Going,
    /// The lane, and its door, by which one is counted.
    Lane(&'static Lane, &'static Door),
}

impl Door {
    /// Comes in, if this is the key's, and open.
    #[inline(always)]
    fn enter(&'static self, key: u64) -> Found {
        // SYNC POINT: pairs with the release in `open`: who is counted while the door is open sees its key and its lane.
        let before = self.users.fetch_add(1, Ordering::Acquire);
        let same = self.key.load(Ordering::Relaxed) == key;
        if before & GOING == 0 && same {
            // SAFETY: a leaked box, freed only when nobody is counted.
            return Found::Lane(unsafe { &*self.lane.load(Ordering::Relaxed) }, self);
        }
        self.leave();
        if same { Found::Going } else { Found::Nothing }
    }

    /// Goes out again.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // SYNC POINT: pairs with the acquire in `close`: what was done with the lane came before.
        self.users.fetch_sub(1, Ordering::Release);
    }

    /// Lets nobody in from here on, if nobody is.
    pub(super) fn close(&self) -> bool {
        // SYNC POINT: pairs with the release in `leave`.
        self.users.compare_exchange(0, GOING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Lets others in.
    pub(super) fn open(&self) {
        // SYNC POINT: pairs with the acquire in `enter`.
        self.users.fetch_sub(GOING, Ordering::Release);
    }

    pub(in crate::lane) fn is_closed(&self) -> bool {
        self.users.load(Ordering::Relaxed) & GOING != 0
    }
}

/// The doors of a process.
pub(super) struct Doors {
    heads: Zeroed<AtomicPtr<Door>>,
    idle: AtomicPtr<Door>,
}

impl Doors {
    pub fn new() -> Result<Doors> {
        Ok(Doors { heads: Zeroed::new(CHAINS)?, idle: AtomicPtr::new(null_mut()) })
    }

    #[inline(always)]
    fn head(&self, key: u64) -> &AtomicPtr<Door> {
        let hash = (key as u32).wrapping_add(((key >> 32) as u32).wrapping_mul(61));
        &self.heads[hash as usize & (CHAINS - 1)]
    }

    #[inline(always)]
    fn follow(at: &AtomicPtr<Door>) -> Option<&'static Door> {
        // SYNC POINT: pairs with the release in `add`.
        // SAFETY: null, or a leaked box, freed only with all doors.
        unsafe { at.load(Ordering::Acquire).as_ref() }
    }

    /// The lane of this key, with its user counted. Without the lock of all lanes nothing may be found that is there.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Found {
        let mut at = Doors::follow(self.head(key));
        for _ in 0..LONGEST {
            let Some(door) = at else { return Found::Nothing };
            if door.key.load(Ordering::Relaxed) == key {
                return door.enter(key);
            }
            at = Doors::follow(&door.next);
        }
        Found::Nothing
    }

    /// A door to a new lane, through which whoever calls has come in. With the lock of all lanes.
    pub fn add(&self, key: u64, lane: *mut Lane) -> &'static Door {
        let head = self.head(key);
        let door = match Doors::follow(&self.idle) {
            Some(door) => {
                self.idle.store(door.next.load(Ordering::Relaxed), Ordering::Relaxed);
                door
            }
            None => Box::leak(Box::new(Door {
                key: AtomicU64::new(NOBODY),
                users: AtomicU32::new(GOING),
                lane: AtomicPtr::new(null_mut()),
                next: AtomicPtr::new(null_mut()),
            })),
        };
        door.lane.store(lane, Ordering::Relaxed);
        door.key.store(key, Ordering::Relaxed);
        door.next.store(head.load(Ordering::Relaxed), Ordering::Relaxed);
        door.users.fetch_add(1, Ordering::Relaxed);
        door.open();
        // SYNC POINT: pairs with the acquire in `follow`.
        head.store(std::ptr::from_ref(door).cast_mut(), Ordering::Release);
        door
    }

    /// Takes a door out, for which nobody is to be in. With the lock of all lanes.
    pub fn take_out(&self, door: &'static Door) {
        let mut at = self.head(door.key.load(Ordering::Relaxed));
        while let Some(there) = Doors::follow(at) {
            if std::ptr::eq(there, door) {
                at.store(there.next.load(Ordering::Relaxed), Ordering::Release);
                break;
            }
            at = &there.next;
        }
        door.key.store(NOBODY, Ordering::Relaxed);
        if !door.is_closed() && !door.close() {
            // Somebody only looks at the key, or has left without going out: no other lane may be behind it.
            return;
        }
        door.lane.store(null_mut(), Ordering::Relaxed);
        door.next.store(self.idle.load(Ordering::Relaxed), Ordering::Release);
        self.idle.store(std::ptr::from_ref(door).cast_mut(), Ordering::Release);
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        for head in self.heads.iter().chain([&self.idle]) {
            let mut at = head.load(Ordering::Relaxed);
            while !at.is_null() {
                // SAFETY: leaked in `add`, in one chain each, and nobody uses the table any more.
                let door = unsafe { Box::from_raw(at) };
                at = door.next.load(Ordering::Relaxed);
            }
        }
    }
}
