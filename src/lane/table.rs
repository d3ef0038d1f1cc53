//! Finding a lane, by a load or two and no lock.
//!
//! The world's lanes on the node stand in a hash table with open addressing that is only ever added to; the peer's rank is its own hash. Each
//! other communicator has a small table of the same kind, which it takes along when it is freed:
//!
//! ```text
//!  world     [ peer 0 | peer 1 |   | peer 3 | ... ]
//!  others    [ communicator & 4095 ] ── Few: mask, [ peer & mask | ... ]      twice as large whenever it is half full
//! ```
//! Lanes between nodes may go at any time, when their peer is forgotten: they are found by [`doors`], and whoever uses one is counted.

mod doors;

use std::ptr::null_mut;

use super::Lane;
use super::remote::{REMOTE, Remote};
use super::watched::Signpost;
use crate::base::atomics::{AtomicPtr, Mutex, MutexGuard, Ordering, changes};
use crate::base::error::{Code, Error, Result};
use crate::base::unused::Unused;
use crate::base::zeroed::Zeroed;
pub use doors::Door;
use doors::{Doors, Found};

/// Communicators that a process can belong to at a time, the world included.
pub const COMMUNICATORS: usize = 4096;

/// The lanes of this process, by (communicator, peer).
pub struct LaneTable {
    slots: Box<[AtomicPtr<Lane>]>,
    mask: u64,
    others: Zeroed<AtomicPtr<Few>>,
    doors: Doors,
    all: Mutex<Vec<&'static Lane>>,
    /// For those who read the numbers of all lanes from without.
    signpost: Box<Signpost>,
    /// Tables that have been replaced by larger ones, by communicator; somebody may still look into them.
    replaced: Mutex<Vec<(i32, *mut Few)>>,
    /// In a model: the lanes, which were made before its threads began, and come into the table while they run.
    #[cfg(loom)]
    stock: std::sync::Mutex<Vec<&'static Lane>>,
}

// SAFETY: the tables behind the pointers are boxes of atomics, freed only when nobody looks into them.
unsafe impl Send for LaneTable {}
// SAFETY: as above.
unsafe impl Sync for LaneTable {}

/// A lane for as long as it is used: one between nodes does not go while this lives. (One on the node stays with its communicator.)
pub struct Used {
    lane: &'static Lane,
    door: Option<&'static Door>,
}

impl Used {
    /// A lane on the node, which nobody counts.
    #[inline(always)]
    pub fn here(lane: &'static Lane) -> Used {
        Used { lane, door: None }
    }

    /// The lane, not to be used any more when this is gone.
    #[inline(always)]
    pub fn lane(&self) -> &'static Lane {
        self.lane
    }

    /// Its remote part, of a lane between nodes.
    pub fn expect_remote(&self) -> &Remote {
        self.lane.remote().expect("a lane between nodes")
    }

    /// The lane is used until its communicator is freed, or the job ends: its peer is not forgotten before.
    pub fn for_good(self) -> &'static Lane {
        self.lane.pinned.store(true, Ordering::Relaxed);
        self.lane
    }
}

impl core::ops::Deref for Used {
    type Target = Lane;
    #[inline(always)]
    fn deref(&self) -> &Lane {
        self.lane
    }
}

impl Drop for Used {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(door) = self.door {
            door.leave();
        }
    }
}

/// A lane that is not freed while this lives, see [`LaneTable::hold`].
pub struct Held(&'static Lane);

impl Held {
    /// Holds the lane; called while the table of lanes is locked, so that nobody frees it meanwhile.
    fn of(lane: &'static Lane) -> Held {
        lane.held.fetch_add(1, Ordering::Relaxed);
        Held(lane)
    }

    /// Its remote part, of a lane between nodes.
    pub fn remote(&self) -> &Remote {
        self.0.remote().expect("a lane between nodes")
    }
}

impl core::ops::Deref for Held {
    type Target = Lane;
    fn deref(&self) -> &Lane {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SYNC POINT: pairs with the acquire in `Lane::until_released`: what was done with the lane came before.
        self.0.held.fetch_sub(1, Ordering::Release);
    }
}

/// The lanes of one communicator.
struct Few {
    mask: u64,
    slots: Box<[AtomicPtr<Lane>]>,
}

impl Few {
    fn new(slots: usize) -> Few {
        Few { mask: slots as u64 - 1, slots: empty(slots) }
    }

    fn add(&self, lane: *mut Lane) {
        // SAFETY: lanes in a table are leaked boxes, and so is this one.
        insert(&self.slots, self.mask, unsafe { (*lane).peer_rank() }, lane);
    }
}

fn empty(n: usize) -> Box<[AtomicPtr<Lane>]> {
    (0..n).map(|_| AtomicPtr::new(null_mut())).collect()
}

/// Puts a lane into a table that has room.
fn insert(slots: &[AtomicPtr<Lane>], mask: u64, peer: u32, lane: *mut Lane) {
    let mut at = peer as u64 & mask;
    while !slots[at as usize].load(Ordering::Relaxed).is_null() {
        at = (at + 1) & mask;
    }
    // SYNC POINT: pairs with the acquire in `look`.
    slots[at as usize].store(lane, Ordering::Release);
}

/// The lane of this key in a table, `mask` + 1 slots long.
#[inline(always)]
fn look(slots: &[AtomicPtr<Lane>], mask: u64, key: u64) -> Option<&'static Lane> {
    let mut at = key & mask;
    loop {
        // SYNC POINT: pairs with the release in `insert`.
        // SAFETY: `at` is masked to the table's size, a power of two; the mask is never wider than 32 bits, the peer's part of the key.
        let p = unsafe { slots.get_unchecked(at as usize) }.load(Ordering::Acquire);
        if p.is_null() {
            return None;
        }
        // SAFETY: lanes in a table are leaked boxes, freed only when no thread uses them any more.
        let lane: &'static Lane = unsafe { &*p };
        if lane.key() == key {
            return Some(lane);
        }
        at = (at + 1) & mask;
    }
}

impl LaneTable {
    /// Where others find the numbers of all lanes: stays there as long as this does.
    pub fn signpost(&self) -> &Signpost {
        &self.signpost
    }

    /// Room for this many lanes of the world, and for those of all other communicators.
    pub fn new(most: usize) -> Result<LaneTable> {
        let n = (most * 2).next_power_of_two();
        Ok(LaneTable {
            slots: empty(n),
            mask: n as u64 - 1,
            others: Zeroed::new(COMMUNICATORS)?,
            doors: Doors::new()?,
            all: Mutex::new(Vec::new()),
            signpost: Box::default(),
            replaced: Mutex::new(Vec::new()),
            #[cfg(loom)]
            stock: Default::default(),
        })
    }

    /// The lane of this key, if it exists.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<&'static Lane> {
        if key >> 32 == super::COMM_WORLD as u64 {
            return look(&self.slots, self.mask, key);
        }
        // SYNC POINT: pairs with the release in `find_or_make`.
        let few = self.other((key >> 32) as i32).load(Ordering::Acquire);
        if few.is_null() {
            return None;
        }
        // SAFETY: a leaked box, freed with its communicator, which nobody uses any more by then. What another communicator has
        // left its place to is found by its own keys only.
        let few = unsafe { &*few };
        look(&few.slots, few.mask, key)
    }

    #[inline(always)]
    fn other(&self, comm: i32) -> &AtomicPtr<Few> {
        // SAFETY: masked to the table's size.
        unsafe { self.others.get_unchecked(comm as usize & (COMMUNICATORS - 1)) }
    }

    /// The lane of this key between nodes, if it exists. While another thread makes one there may seem to be none.
    #[inline(always)]
    pub fn find_remote(&self, key: u64) -> Option<Used> {
        match self.doors.find(key | REMOTE) {
            Found::Lane(lane, door) => Some(Used { lane, door: Some(door) }),
            Found::Going | Found::Nothing => None,
        }
    }

    /// The lane of this key on the node, made by `make` if it does not exist. One is made at a time.
    pub fn find_or_make(&self, key: u64, make: impl FnOnce() -> Result<Lane>) -> Result<&'static Lane> {
        let mut all = self.all();
        if let Some(lane) = self.find(key) {
            return Ok(lane);
        }
        let comm = Lane::comm_of(key);
        let here = all.iter().filter(|l| l.comm() == comm && l.remote().is_none()).count();
        let world = key >> 32 == super::COMM_WORLD as u64;
        if world && (here + 1) * 2 > self.slots.len() {
            return Err(Error::new(Code::Memory, format!("all {here} lanes of this process are in use")));
        }
        let lane = match self.stocked(key) {
            Some(lane) => lane,
            None => Box::into_raw(Box::new(make()?)),
        };
        changes(lane.cast_const(), false);
        if world {
            insert(&self.slots, self.mask, key as u32, lane);
        } else {
            self.add(comm, here, lane);
        }
        // SAFETY: just leaked.
        let lane = unsafe { &*lane };
        self.list_also(&mut all, lane);
        Ok(lane)
    }

    /// The same between nodes. `None`: the one that there is goes just now; to be asked again.
    pub fn find_or_make_remote(&self, key: u64, make: impl FnOnce() -> Result<Lane>) -> Result<Option<Used>> {
        let mut all = self.all();
        match self.doors.find(key | REMOTE) {
            Found::Lane(lane, door) => return Ok(Some(Used { lane, door: Some(door) })),
            Found::Going => return Ok(None),
            Found::Nothing => {}
        }
        let lane = Box::into_raw(Box::new(make()?));
        let door = self.doors.add(key | REMOTE, lane);
        // SAFETY: just leaked.
        let lane: &'static Lane = unsafe { &*lane };
        let _ = lane.door.set(door);
        self.list_also(&mut all, lane);
        Ok(Some(Used { lane, door: Some(door) }))
    }

    fn list_also(&self, all: &mut Vec<&'static Lane>, lane: &'static Lane) {
        all.push(lane);
        self.signpost.show(all);
    }

    /// A model has its lanes from before its threads began; there are none otherwise.
    #[cfg(not(loom))]
    #[inline(always)]
    fn stocked(&self, _key: u64) -> Option<*mut Lane> {
        None
    }

    /// Puts a lane into the table of its communicator, which has `here` lanes already.
    fn add(&self, comm: i32, here: usize, lane: *mut Lane) {
        let other = self.other(comm);
        let old = other.load(Ordering::Relaxed);
        // SAFETY: a leaked box; only this function and `forget` replace it, both under the lock of all lanes.
        if let Some(few) = unsafe { old.as_ref() }
            && (here + 1) * 2 <= few.slots.len()
        {
            return few.add(lane);
        }
        let larger = Few::new(((here + 1) * 4).next_power_of_two());
        // SAFETY: as above.
        if let Some(few) = unsafe { old.as_ref() } {
            few.slots.iter().map(|s| s.load(Ordering::Relaxed)).filter(|l| !l.is_null()).for_each(|l| larger.add(l));
            self.replaced.lock().unwrap_or_else(|e| e.into_inner()).push((comm, old));
        }
        larger.add(lane);
        // SYNC POINT: pairs with the acquire in `find`.
        other.store(Box::into_raw(Box::new(larger)), Ordering::Release);
    }

    /// All lanes, in the order in which they were made. While the guard lives none is made and none freed.
    #[cfg_attr(loom, track_caller)]
    pub fn all(&self) -> MutexGuard<'_, Vec<&'static Lane>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The lanes that fit, none of which is freed while it is held: for threads that serve peers, whatever the program does; for calls
    /// that look at lanes of other communicators than their own, which other threads may free meanwhile; and for finalize, which nobody
    /// is to wait for with the guard, while peers are still forgotten. (A lane that is going has nothing under way.)
    pub fn hold(&self, fits: impl Fn(&Lane) -> bool) -> Vec<Held> {
        self.all().iter().filter(|lane| !lane.is_going() && fits(lane)).map(|lane| Held::of(lane)).collect()
    }

    /// As [`hold`](LaneTable::hold), of the lanes between nodes.
    pub fn hold_remote(&self, fits: impl Fn(&Lane, &Remote) -> bool) -> Vec<Held> {
        self.hold(|lane| lane.remote().is_some_and(|remote| fits(lane, remote)))
    }

    /// As [`hold_remote`](LaneTable::hold_remote); none, if another thread has the lanes just now.
    pub fn try_hold_remote(&self, fits: impl Fn(&Lane, &Remote) -> bool) -> Vec<Held> {
        let Ok(all) = self.all.try_lock() else { return Vec::new() };
        let fits = |lane: &&&'static Lane| !lane.is_going() && lane.remote().is_some_and(|remote| fits(lane, remote));
        all.iter().filter(fits).map(|lane| Held::of(lane)).collect()
    }

    /// Frees the lanes of a communicator, not the world. Those that are [held](LaneTable::hold) are waited for.
    pub fn forget(&self, comm: i32, _unused: &Unused) {
        let mut all = self.all();
        let mut replaced = self.replaced.lock().unwrap_or_else(|e| e.into_inner());
        let few = self.other(comm).swap(null_mut(), Ordering::AcqRel);
        let old = replaced.extract_if(.., |(of, _)| *of == comm).map(|(_, few)| few);
        for few in old.chain([few]).filter(|f| !f.is_null()) {
            // SAFETY: a box leaked in `add`; the caller promises that nobody looks into it.
            drop(unsafe { Box::from_raw(few) });
        }
        let freed = self.take_out(&mut all, |lane| lane.comm() == comm);
        // Whoever holds one may need the others.
        drop((replaced, all));
        for lane in freed {
            lane.until_released();
            changes(lane, true);
            // The next execution of a model has it again.
            #[cfg(loom)]
            if crate::base::shadow::is_active() {
                continue;
            }
            // SAFETY: a box leaked in `find_or_make`; the caller promises that nobody uses it, and nobody holds it or can hold it again.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(lane).cast_mut()) });
        }
    }

    /// Takes lanes out of the list, and those between nodes from behind their doors.
    fn take_out(&self, all: &mut Vec<&'static Lane>, fits: impl Fn(&Lane) -> bool) -> Vec<&'static Lane> {
        let out: Vec<&'static Lane> = all.extract_if(.., |lane| fits(lane)).collect();
        self.signpost.show(all);
        out.iter().filter_map(|lane| lane.door.get()).for_each(|door| self.doors.take_out(door));
        out
    }

    /// Nobody may use these lanes between nodes from here on: how many they are. `None`: somebody does now, or one of them is not `quiet`.
    pub fn close(&self, fits: impl Fn(&Remote) -> bool, quiet: impl Fn(&Lane, &Remote) -> bool) -> Option<usize> {
        let all = self.all();
        let (mut closed, mut may) = (Vec::new(), true);
        for (lane, remote) in all.iter().filter_map(|lane| Some((lane, lane.remote().filter(|remote| fits(remote))?))) {
            let Some(door) = lane.door.get().filter(|door| door.close()) else {
                may = false;
                break;
            };
            closed.push(door);
            // SYNC POINT: pairs with the release in the drop of `Held`.
            let used = lane.held.load(Ordering::Acquire) != 0 || lane.pinned.load(Ordering::Relaxed);
            if used || !quiet(lane, remote) {
                may = false;
                break;
            }
        }
        if !may {
            closed.iter().for_each(|door| door.open());
        }
        may.then_some(closed.len())
    }

    /// Lanes that were [closed](LaneTable::close) may be used again.
    pub fn open(&self, fits: impl Fn(&Remote) -> bool) {
        let all = self.all();
        let theirs = all.iter().filter(|lane| lane.remote().is_some_and(&fits));
        theirs.filter_map(|lane| lane.door.get()).filter(|door| door.is_closed()).for_each(|door| door.open());
    }

    /// Frees lanes that were [closed](LaneTable::close), each after a last look.
    pub fn free_closed(&self, fits: impl Fn(&Remote) -> bool, last: impl Fn(&Lane)) {
        let out = {
            let mut all = self.all();
            self.take_out(&mut all, |lane| lane.is_going() && lane.remote().is_some_and(&fits))
        };
        for lane in out {
            last(lane);
            // The next lane with this peer has the same place, and begins with nothing. (Refused is it where nothing else would go either.)
            let _ = lane.give_pages_back(0);
            // SAFETY: a box leaked in `find_or_make_remote`; its door was closed when nobody was in, and leads to nothing any more.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(lane).cast_mut()) });
        }
    }

    /// Frees all lanes.
    pub fn clear(&self, unused: &Unused) {
        let comms: Vec<i32> = self.all().iter().map(|l| l.comm()).collect();
        self.slots.iter().for_each(|slot| slot.store(null_mut(), Ordering::Release));
        for comm in comms {
            // (The world has no table of its own here; its lanes are freed like the others'.)
            self.forget(comm, unused);
        }
    }
}

/// What a model makes of it: lanes are made before its threads begin, since what the checker watches stays where it is.
#[cfg(loom)]
impl LaneTable {
    /// Declares the lock and the places of the table, and takes all lanes out of it: they are to come into it while the threads run.
    pub fn in_model(&self) {
        use crate::base::shadow::{share, share_lock, share_thing};
        share_lock(&self.all);
        for slot in self.slots.iter() {
            share((&raw const *slot).cast(), size_of::<AtomicPtr<Lane>>());
        }
        for lane in self.all().iter() {
            share_thing::<Lane>(lane);
            share((&raw const lane.held).cast(), size_of_val(&lane.held));
            share((&raw const lane.special).cast(), size_of_val(&lane.special));
        }
        *self.stock.lock().unwrap_or_else(|e| e.into_inner()) = self.all().clone();
        self.slots.iter().for_each(|slot| slot.store(null_mut(), Ordering::Relaxed));
        self.renew();
    }

    /// At the beginning of an execution: all lanes are yet to be made.
    pub fn renew(&self) {
        self.all().clear();
        self.others.iter().take(8).for_each(|few| few.store(null_mut(), Ordering::Relaxed));
        self.replaced.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }

    fn stocked(&self, key: u64) -> Option<*mut Lane> {
        let stock = self.stock.lock().unwrap_or_else(|e| e.into_inner());
        let lane = stock.iter().find(|lane| lane.key == key && crate::base::shadow::is_active());
        lane.map(|lane| std::ptr::from_ref::<Lane>(lane).cast_mut())
    }
}
