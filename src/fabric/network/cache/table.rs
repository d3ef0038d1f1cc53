//! What is kept of ranges of memory, found without a lock by whoever uses a part of one.
//!
//! ```text
//!   orders   for reading: ranges that peers may read only          which slot, by address        (order.rs)
//!            for writing: ranges that peers may write, too
//!   slots    used: holders 20, times found 44 │ end │ value        64 bytes for a registration   (pool.rs)
//!   notes    start and marks │ times found before │ score          for those who have the lock
//! ```
//! - **Found.** A search reads the version, which is odd while somebody changes the orders, searches, *holds* the slot, and reads the version
//!   again. If it is the same, what was found was there at that time, and stays until it is let go. Otherwise it searches again, after some
//!   turns under the lock. So a search begun after a change is over knows of it, and one begun after a change has begun waits for it.
//! - **Held.** The table holds each slot that is in an order, and so does whoever has found it. The last to let go ends the value. A slot that
//!   nobody holds is not found: it is held by adding to a number that is not zero.
//! - **Within, beside, across.** Ranges are kept as they come. One that lies within another of the same order would never be found: it goes
//!   when the larger one comes. Those that touch or overlap stay beside each other: to make them one, all would have to be registered anew.
//! - **Bounds.** There are so many ranges and bytes at most. A hand goes round, and what makes room is the first that it comes by that nobody
//!   else holds and that was not found lately, or else the least useful of some: what was found least often lately, counted by what it costs to
//!   register it again, and, where bytes are short, for each byte. So what is used again stays while ever so much comes by once.
//!
//! Under the lock nothing is allocated or freed, and no value ends: see the head of `cache.rs`.

use std::sync::PoisonError;

pub use super::kept::Kept;
use super::kept::{FOUND, HOLDER, HOLDERS, Slot};
use super::order::{Block, Order, Place, blocks_for};
use super::pool::Pool;
use crate::base::atomics::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, changes, fence, spin_loop};
use crate::base::error::Result;
use crate::base::record::of_atomics;
use crate::base::zeroed::Zeroed;

/// Ranges and bytes that are kept at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Ranges.
    pub ranges: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// What a table has done, and has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Found and held so far.
    pub found: u64,
    /// Forgotten so far because their memory went away.
    pub forgotten: u64,
    /// Given up so far to make room.
    pub evicted: u64,
    /// Ranges that are kept now.
    pub kept: u64,
    /// Their bytes.
    pub bytes: u64,
}

of_atomics! { Record:
    /// What those with the lock keep of a slot.
    pub(super) struct Note {
        /// The first address, a multiple of 4: | LISTED | WRITABLE
        pub start: AtomicU64,
        /// Times found, when the hand came by last; of one that is in no order: the number + 1 of the next in its [`Chain`].
        pub seen: AtomicU32,
        pub score: AtomicU32,
    }
}
/// The slot is in an order.
pub(super) const LISTED: u64 = 1;
/// In that for writing.
pub(super) const WRITABLE: u64 = 2;

/// Turns of a search before it takes the lock.
const TURNS: usize = if cfg!(loom) { 2 } else { 64 };
/// See the head of this file.
pub struct Table<T: 'static> {
    version: Line,
    pub(super) slots: Pool<Slot<T>>,
    pub(super) blocks: Pool<Block>,
    pub(super) orders: [Order; 2],
    notes: Zeroed<Note>,
    bounds: Bounds,
    lock: Mutex<()>,
    pub(super) books: Books,
}

/// On a line that a search only reads.
#[repr(align(128))]
struct Line(AtomicU64);

/// Of who has the lock.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Books {
    kept: AtomicU32,
    bytes: AtomicU64,
    /// Times that slots were found which are free again.
    found: AtomicU64,
    forgotten: AtomicU64,
    pub evicted: AtomicU64,
    /// The slot that is looked at next when room is made.
    pub hand: AtomicU32,
    /// The first, + 1, of those that others are to let go; 0: there are none.
    over: AtomicU32,
}

/// Slots that are in no order any more and that the table still holds: the first + 1, and how many.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain(u32, usize);

impl<T: Send + Sync> Table<T> {
    /// An empty table.
    pub fn new(bounds: Bounds) -> Result<Table<T>> {
        // Those that are held and in no order take slots too, for a while.
        let slots = bounds.ranges + bounds.ranges / 16 + 64;
        Ok(Table {
            version: Line(AtomicU64::new(0)),
            slots: Pool::new(slots)?,
            blocks: Pool::new(2 * blocks_for(bounds.ranges))?,
            orders: [Order::new(bounds.ranges)?, Order::new(bounds.ranges)?],
            notes: Zeroed::new(slots)?,
            bounds,
            lock: Mutex::new(()),
            books: Books::default(),
        })
    }

    /// How much it keeps at most.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What is kept of a range that reaches over this one: of those for writing, or of all.
    #[inline]
    pub fn find(&'static self, start: u64, end: u64, writable: bool) -> Option<Kept<T>> {
        for _ in 0..TURNS {
            // SYNC POINT: pairs with the release in `change`: what was done before that is seen here.
            let version = self.version.0.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                let held = self.look(start, end, writable);
                // SYNC POINT: pairs with the fence in `change`: who has seen a part of a change sees here that there is one.
                fence(Ordering::Acquire);
                if self.version.0.load(Ordering::Relaxed) == version {
                    return held;
                }
                if let Some(held) = held {
                    held.was_not_found();
                }
            }
            spin_loop();
        }
        let _locked = self.lock();
        self.look(start, end, writable)
    }

    #[inline(always)]
    fn look(&'static self, start: u64, end: u64, writable: bool) -> Option<Kept<T>> {
        self.orders[writable as usize..].iter().find_map(|order| {
            let slot = self.slots.get(order.find(&self.blocks, start)?)?;
            if slot.end.load(Ordering::Relaxed) < end {
                return None;
            }
            let mut used = slot.used.load(Ordering::Relaxed);
            while used & HOLDERS != 0 && used & HOLDERS != HOLDERS {
                // The version orders what the slot has: whoever meets another use of it here sees another version, and lets go unseen.
                let holds = used + FOUND + HOLDER;
                match slot.used.compare_exchange_weak(used, holds, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Some(Kept::of(self, slot)),
                    Err(now) => used = now,
                }
            }
            None
        })
    }

    /// Keeps a value for a range, and holds it. It is only held, and ends then, if it is longer than all that may be kept, if something else
    /// is kept meanwhile that reaches over it, or if all that is kept is in use.
    pub fn keep(&'static self, start: u64, end: u64, writable: bool, value: T) -> Kept<T> {
        let (mut value, mut gone) = (Some(value), Chain::default());
        let locked = self.lock();
        let slot = locked.keep(start, end, writable, &mut value, &mut gone);
        drop(locked);
        self.let_go(gone);
        match (slot, value) {
            (Some(slot), _) => Kept::of(self, slot),
            (None, Some(value)) => Kept::alone(value),
            (None, None) => unreachable!("a value is taken for a slot"),
        }
    }

    /// The memory of a range goes away: how many of those that are kept reach into it, which end here, or where they are held.
    pub fn forget(&'static self, start: u64, end: u64) -> usize {
        let locked = self.lock();
        let gone = locked.change(|| locked.take_out(start, end));
        drop(locked);
        self.let_go(gone);
        gone.1
    }

    /// The same of the range that `which` tells. A search that begins after `which` has been called finds none of it. They wait for
    /// [`end`](Table::end) to be called.
    pub fn forget_later(&'static self, which: impl FnOnce() -> Option<(u64, u64)>) -> usize {
        let locked = self.lock();
        let gone = locked.change(|| which().map_or(Chain::default(), |(start, end)| locked.take_out(start, end)));
        let mut last = gone.0;
        while last != 0 && self.note(last - 1).seen.load(Ordering::Relaxed) != 0 {
            last = self.note(last - 1).seen.load(Ordering::Relaxed);
        }
        if last != 0 {
            self.note(last - 1).seen.store(self.books.over.load(Ordering::Relaxed), Ordering::Relaxed);
            self.books.over.store(gone.0, Ordering::Relaxed);
        }
        gone.1
    }

    /// Lets go what [`forget_later`](Table::forget_later) has left.
    pub fn end(&'static self) {
        if self.books.over.load(Ordering::Relaxed) == 0 {
            return;
        }
        let locked = self.lock();
        let gone = Chain(self.books.over.swap(0, Ordering::Relaxed), 0);
        drop(locked);
        self.let_go(gone);
    }

    /// Gives up the least useful of what nobody holds, of so many bytes, or a quarter of all if that is more: how many.
    pub fn shed(&'static self, bytes: u64) -> usize {
        let (mut gone, mut left) = (Chain::default(), bytes.max(self.books.bytes.load(Ordering::Relaxed) / 4));
        let locked = self.lock();
        while left > 0
            && let Some(slot) = locked.least_useful(true)
        {
            left = left.saturating_sub(self.bytes_of(slot));
            locked.evict(slot, &mut gone);
        }
        drop(locked);
        self.let_go(gone);
        gone.1
    }

    /// Lets go all that is kept. Is nothing of it held by others?
    pub fn clear(&'static self) -> bool {
        self.end();
        self.forget(0, u64::MAX);
        let locked = self.lock();
        let unused = self.slots.count() == 0;
        drop(locked);
        unused
    }

    /// What it has done so far, and has now.
    pub fn counts(&'static self) -> Counts {
        let _locked = self.lock();
        let taken = (0..self.slots.untaken()).filter(|n| self.slots.is_taken(*n));
        let found = taken.map(|n| self.slot(n).used.load(Ordering::Relaxed) / FOUND).sum::<u64>();
        let [gone, forgotten, evicted, bytes] =
            [&self.books.found, &self.books.forgotten, &self.books.evicted, &self.books.bytes]
                .map(|n| n.load(Ordering::Relaxed));
        let kept = self.books.kept.load(Ordering::Relaxed) as u64;
        Counts { found: found + gone, forgotten, evicted, kept, bytes }
    }

    /// Bytes of its own memory.
    pub fn memory(&'static self) -> usize {
        let _locked = self.lock();
        let notes = self.slots.untaken() as usize * size_of::<Note>();
        self.slots.bytes() + self.blocks.bytes() + notes + self.orders.iter().map(Order::bytes).sum::<usize>()
    }

    pub(super) fn slot(&self, n: u32) -> &Slot<T> {
        self.slots.get(n).expect("a slot of this table")
    }
    pub(super) fn note(&self, n: u32) -> &Note {
        &self.notes[n as usize]
    }
    pub(super) fn start_of(&self, n: u32) -> u64 {
        self.note(n).start.load(Ordering::Relaxed) & !(LISTED | WRITABLE)
    }
    fn end_of(&self, n: u32) -> u64 {
        self.slot(n).end.load(Ordering::Relaxed)
    }
    pub(super) fn bytes_of(&self, n: u32) -> u64 {
        self.end_of(n) - self.start_of(n)
    }

    /// A slot that nobody holds any more, and whose value is gone, may be taken again.
    pub(super) fn free(&'static self, slot: &Slot<T>) {
        let _locked = self.lock();
        let found = slot.used.swap(0, Ordering::Relaxed) / FOUND;
        self.books.found.store(self.books.found.load(Ordering::Relaxed) + found, Ordering::Relaxed);
        self.slots.give_back(self.slots.number(slot));
    }

    fn lock(&'static self) -> Locked<T> {
        Locked { table: self, _guard: self.lock.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The table lets go of slots, which must not be done under the lock: values may end.
    fn let_go(&'static self, gone: Chain) {
        let mut next = gone.0;
        while next != 0 {
            let slot = self.slot(next - 1);
            next = self.note(next - 1).seen.load(Ordering::Relaxed);
            drop(Kept::of(self, slot));
        }
    }

    /// Begins an execution of a model: the value of the first slot is as in the beginning. All else are words, which the model sets back.
    #[cfg(loom)]
    pub fn renew(&'static self, first: T) {
        // SAFETY: before the threads of the execution; what an execution before has left there was ended by it, or is nobody's.
        unsafe { (*self.slot(0).value.get()).write(first) };
    }

    /// Declares it shared by the threads of a model.
    #[cfg(loom)]
    pub fn in_model(&'static self) {
        use crate::base::shadow::{share, share_lock};
        share((&raw const *self).cast(), size_of::<Table<T>>());
        share(self.notes.as_ptr().cast(), size_of_val(&*self.notes));
        share_lock(&self.lock);
        self.slots.in_model();
        self.blocks.in_model();
        self.orders.iter().for_each(Order::in_model);
        (0..4).for_each(|n| crate::base::shadow::share_thing(&self.slot(n).value));
    }
}

/// A table whose lock this thread has.
pub(super) struct Locked<T: 'static> {
    pub table: &'static Table<T>,
    _guard: MutexGuard<'static, ()>,
}

impl<T: Send + Sync> Locked<T> {
    /// Changes the orders.
    pub fn change<R>(&self, how: impl FnOnce() -> R) -> R {
        let version = &self.table.version.0;
        let now = version.load(Ordering::Relaxed);
        version.store(now + 1, Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in `find`.
        fence(Ordering::Release);
        let done = how();
        // SYNC POINT: pairs with the acquire in `find`.
        version.store(now + 2, Ordering::Release);
        done
    }

    fn keep(
        &self,
        start: u64,
        end: u64,
        writable: bool,
        value: &mut Option<T>,
        gone: &mut Chain,
    ) -> Option<&'static Slot<T>> {
        let (table, bytes) = (self.table, end - start);
        let covers = |order: &Order| {
            let place = order.last_to(&table.blocks, start)?;
            order.slot(&table.blocks, place).filter(|slot| table.end_of(*slot) >= end)
        };
        if bytes > table.bounds.bytes || table.orders[writable as usize..].iter().any(|order| covers(order).is_some()) {
            return None;
        }
        loop {
            let (ranges, short) = self.is_short(bytes);
            if !ranges && !short {
                break;
            }
            self.evict(self.least_useful(short)?, gone);
        }
        let n = table.slots.take()?;
        let (slot, note) = (table.slot(n), table.note(n));
        changes(&raw const slot.value, false);
        // SAFETY: taken just now, and held by nobody, so nobody looks at its value.
        unsafe { (*slot.value.get()).write(value.take()?) };
        slot.end.store(end, Ordering::Relaxed);
        note.seen.store(0, Ordering::Relaxed);
        note.score.store(0, Ordering::Relaxed);
        note.start.store(start | LISTED | if writable { WRITABLE } else { 0 }, Ordering::Relaxed);
        // By the caller and by the table.
        slot.used.store(2 * HOLDER, Ordering::Relaxed);
        self.count(n, true);
        let order = &table.orders[writable as usize];
        let listed = self.change(|| {
            (0..=writable as usize).for_each(|of| self.take_out_within(of, start, end, gone));
            order.insert(&table.blocks, start, n)
        });
        if !listed {
            note.start.store(start, Ordering::Relaxed);
            self.count(n, false);
            slot.used.fetch_sub(HOLDER, Ordering::Relaxed);
        }
        Some(slot)
    }

    /// Are there too many ranges for one more of so many bytes? Too many bytes?
    fn is_short(&self, bytes: u64) -> (bool, bool) {
        let (bounds, books) = (self.table.bounds, &self.table.books);
        let kept = books.kept.load(Ordering::Relaxed) as usize;
        (kept >= bounds.ranges, books.bytes.load(Ordering::Relaxed) + bytes > bounds.bytes)
    }

    /// A range is kept, or not any more.
    fn count(&self, n: u32, comes: bool) {
        let (books, bytes) = (&self.table.books, self.table.bytes_of(n));
        let (kept, all) = (books.kept.load(Ordering::Relaxed), books.bytes.load(Ordering::Relaxed));
        books.kept.store(if comes { kept + 1 } else { kept - 1 }, Ordering::Relaxed);
        books.bytes.store(if comes { all + bytes } else { all - bytes }, Ordering::Relaxed);
    }

    /// A slot that an order has just lost.
    fn unlist(&self, n: u32, gone: &mut Chain) {
        let note = self.table.note(n);
        self.count(n, false);
        note.start.store(self.table.start_of(n), Ordering::Relaxed);
        note.seen.store(gone.0, Ordering::Relaxed);
        *gone = Chain(n + 1, gone.1 + 1);
    }

    /// Takes out of an order, from here on, what `goes` says so of.
    pub fn cut(&self, of: usize, from: Option<Place>, gone: &mut Chain, goes: impl Fn(u32) -> bool) {
        let Some(from) = from else { return };
        let order = &self.table.orders[of];
        order.cut(&self.table.blocks, from, |slot| {
            let goes = goes(slot);
            if goes {
                self.unlist(slot, gone);
            }
            goes
        });
    }

    /// Takes out all ranges that reach into this one. In a change.
    fn take_out(&self, start: u64, end: u64) -> Chain {
        let (table, mut gone) = (self.table, Chain::default());
        let blocks = &table.blocks;
        for (of, order) in table.orders.iter().enumerate() {
            let reaches = |place: &Place| order.slot(blocks, *place).is_some_and(|slot| table.end_of(slot) > start);
            // The ends grow: those that reach into it follow each other.
            let mut from = order.last_to(blocks, start);
            while let Some(before) = from.and_then(|place| order.before(blocks, place)).filter(reaches) {
                from = Some(before);
            }
            let from = from.filter(reaches).or_else(|| order.behind(blocks, from));
            self.cut(of, from, &mut gone, |slot| table.start_of(slot) < end);
        }
        let forgotten = table.books.forgotten.load(Ordering::Relaxed);
        table.books.forgotten.store(forgotten + gone.1 as u64, Ordering::Relaxed);
        gone
    }

    /// Takes out all ranges of an order that lie within this one. In a change.
    fn take_out_within(&self, of: usize, start: u64, end: u64, gone: &mut Chain) {
        let (table, order) = (self.table, &self.table.orders[of]);
        let last = order.last_to(&table.blocks, start);
        let begins_there =
            |place: &Place| order.slot(&table.blocks, *place).map(|slot| table.start_of(slot)) == Some(start);
        let from = last.filter(begins_there).or_else(|| order.behind(&table.blocks, last));
        self.cut(of, from, gone, |slot| table.end_of(slot) <= end);
    }
}
