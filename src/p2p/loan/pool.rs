//! The loans that this process has made: blocks of its heap, each with a ticket, in rings of one size.
//!
//! ```text
//!   IDLE ── take ──▶ LENT ── hand_over ──▶ SENT ── the ticket's word, or the holder's end ──▶ IDLE
//!    ▲                │                     │
//!    └─── give_back ──┘                     └─ received here ──▶ OWN ── give_back ──▶ IDLE
//! ```
//! A loan is taken where the ring's cursor stands, by one compare-and-swap. Only when that one is not idle are the words of those behind it
//! looked at, many at once: their lines are written by other cores. A ring in haste is made as long as it takes for that to be rare.

mod making;

use crate::base::record::of_atomics;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::book::Book;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::zeroed::Zeroed;
use crate::fabric::shm::heap::Heap;
use crate::fabric::shm::peer::Peer;
use crate::lane::loan::{LOAN_GRAIN, Returned, TICKETS, next_generation};

/// No memory is bound to the ticket.
const EMPTY: u64 = 0;
/// Nobody has it.
const IDLE: u64 = 1;
/// The program fills it.
const LENT: u64 = 2;
/// It is its receiver's.
const SENT: u64 = 4;
/// Its receiver is this process, and has received it.
const OWN: u64 = 5;
/// It is several receivers': each has a ticket of its own, whose word it returns, a *part*.
const SHARED: u64 = 6;

/// A state, and the generation in which it is that.
const fn word(generation: u32, state: u64) -> u64 {
    (generation as u64) << 8 | state
}
const fn state_of(word: u64) -> u64 {
    word & 0xff
}
const fn generation_of(word: u64) -> u32 {
    (word >> 8) as u32
}

of_atomics! { Empty:
    /// What is kept of a ticket: a line.
    #[repr(C, align(64))]
    struct Slot {
        /// [`word`]
        state: AtomicU64,
        at: AtomicPtr<u8>,
        /// Where that is in the heap.
        place: AtomicU64,
        /// What was asked for at last.
        size: AtomicUsize,
        /// Who has it while it is [`SENT`]; null: this process.
        holder: AtomicPtr<Peer>,
        /// How often it was handed over.
        sent: AtomicU64,
        /// The next ticket of its ring; of a part, the next part + 1.
        next: AtomicU32,
        /// The first of its parts + 1 while it is [`SHARED`].
        parts: AtomicU32,
        /// Of a part: whose it is.
        whole: AtomicU32,
    }
}

static_assertions::const_assert!(size_of::<Slot>() == 64);

/// The blocks of one size.
#[derive(Default)]
struct Ring {
    /// A ticket + 1; 0: there is none.
    cursor: AtomicU32,
    /// The ticket that came last, whose next is the first.
    last: AtomicU32,
    /// How many tickets it has.
    len: AtomicU32,
    /// When a thread last found none idle at the cursor.
    wanted_ns: AtomicU64,
}

/// Sizes of which there are rings: 64 to 256 in steps of 64, then four in each doubling.
const RINGS: usize = 5 + 4 * 40;
/// Tickets that a ring gets at a time: their words share a line.
const RUN: u32 = 16;
/// Loans that are looked at before a new one is made.
const LOOK: u32 = 64;

/// The ring for a size.
#[inline(always)]
fn ring_of(size: usize) -> usize {
    if size <= 256 {
        return size.saturating_sub(1) / 64 + 1;
    }
    let doubling = (size - 1).ilog2() as usize;
    let step = (size - 1 - (1 << doubling)) >> (doubling - 2);
    1 + 4 * (doubling - 7) + step
}

/// The bytes of the blocks of a ring.
fn room_of(ring: usize) -> usize {
    if ring <= 4 {
        return 64 * ring;
    }
    let (doubling, step) = ((ring - 1) / 4 + 7, (ring - 1) % 4);
    (4 + step + 1) << (doubling - 2)
}

/// Loans of a ring that are asked for within this time of each other are made anew, up to [`RUN`], before one that has been sent is looked
/// at again. Who takes longer over each gains nothing by that, and would have the memory of as many written to.
const HURRY_NS: u64 = 20_000;

/// See the module.
pub(in crate::p2p) struct Pool {
    slots: Zeroed<Slot>,
    rings: [Ring; RINGS],
    /// The tickets' words, in the heap.
    returned: &'static [Returned],
    making: Mutex<Making>,
    /// Tickets for parts that are in no use; held by who makes parts, or looks whether all of a loan are back.
    spare: Mutex<Vec<u32>>,
    rank: u32,
    most_loans: usize,
    most_bytes: usize,
}

/// For who makes loans, or unmakes them.
struct Making {
    next_run: u32,
    /// The tickets of each ring that have never been used: from, to.
    fresh: [(u32, u32); RINGS],
    loans: usize,
    bytes: usize,
}

/// What a program may not do with a loan, in words.
pub(in crate::p2p) enum Wrong {
    /// It has been handed over.
    HandedOver,
    /// It has been given back.
    GivenBack,
    /// It is one that this process has received from itself.
    Received,
    /// It is shorter.
    Shorter(usize),
}

impl Pool {
    pub fn new(heap: &Heap, rank: u32, (most_loans, most_bytes): (usize, usize)) -> Result<Pool> {
        let slots = Zeroed::new(TICKETS)?;
        let returned = heap.publish_loans(TICKETS)?;
        let rings = std::array::from_fn(|_| Ring::default());
        let making = Making { next_run: 0, fresh: [(0, 0); RINGS], loans: 0, bytes: 0 };
        let (making, spare) = (Mutex::new(making), Mutex::default());
        Ok(Pool { slots, rings, returned, making, spare, rank, most_loans, most_bytes })
    }

    #[inline(always)]
    fn slot(&self, ticket: u32) -> &Slot {
        debug_assert!((ticket as usize) < TICKETS);
        &self.slots[ticket as usize]
    }

    fn returned(&self, ticket: u32) -> &Returned {
        &self.returned[ticket as usize]
    }

    /// The words of a model's tickets.
    #[cfg(loom)]
    pub fn words_in_model(&self) -> *const u8 {
        self.returned.as_ptr().cast()
    }

    /// Begins an execution of a model.
    #[cfg(loom)]
    pub fn renew(&self) {
        for slot in self.slots.iter().filter(|s| !s.at.load(Ordering::Relaxed).is_null()) {
            slot.state.store(word(0, IDLE), Ordering::Relaxed);
        }
    }

    /// Memory of `size` bytes to fill.
    #[inline(always)]
    pub fn take(&self, heap: &Heap, book: &Book, size: usize) -> Result<*mut u8> {
        if size <= self.most_bytes {
            let ring = &self.rings[ring_of(size)];
            let n = ring.cursor.load(Ordering::Acquire);
            if n != 0
                && let Some(at) = self.take_idle(ring, n - 1, size)
            {
                return Ok(at);
            }
        }
        self.take_slow(heap, book, size)
    }

    /// This one, if it is idle.
    #[inline(always)]
    fn take_idle(&self, ring: &Ring, ticket: u32, size: usize) -> Option<*mut u8> {
        let slot = self.slot(ticket);
        let now = slot.state.load(Ordering::Relaxed);
        if state_of(now) != IDLE {
            return None;
        }
        let lent = word(next_generation(generation_of(now)), LENT);
        // SYNC POINT: acquires what whoever made it idle has seen: that its holder reads it no more.
        slot.state.compare_exchange(now, lent, Ordering::Acquire, Ordering::Relaxed).ok()?;
        ring.cursor.store(slot.next.load(Ordering::Relaxed) + 1, Ordering::Release);
        slot.size.store(size, Ordering::Relaxed);
        Some(slot.at.load(Ordering::Relaxed))
    }

    /// Is it idle, perhaps since it has come back?
    fn is_idle(&self, ticket: u32) -> bool {
        let slot = self.slot(ticket);
        let now = slot.state.load(Ordering::Acquire);
        if state_of(now) == SHARED {
            return self.all_back(ticket);
        }
        if state_of(now) != SENT {
            return state_of(now) == IDLE;
        }
        let gone = |holder: *mut Peer| {
            // SAFETY: peers stay known as long as the endpoint lives, and so does this pool.
            unsafe { holder.as_ref() }.is_some_and(|peer| peer.is_dead() || peer.has_left())
        };
        let generation = generation_of(now);
        (self.returned(ticket).is(generation) || gone(slot.holder.load(Ordering::Relaxed)))
            && (slot.state)
                .compare_exchange(now, word(generation, IDLE), Ordering::AcqRel, Ordering::Relaxed)
                .map_or_else(|other| state_of(other) == IDLE, |_| true)
    }

    fn making(&self) -> MutexGuard<'_, Making> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_ring(&self, number: usize) -> impl Iterator<Item = u32> {
        let ring = &self.rings[number];
        let mut ticket = ring.cursor.load(Ordering::Acquire).wrapping_sub(1);
        (0..ring.len.load(Ordering::Acquire)).map(move |_| {
            let next = self.slot(ticket).next.load(Ordering::Acquire);
            std::mem::replace(&mut ticket, next)
        })
    }

    /// What is wrong with a loan in this state, to someone who has it to be filled.
    #[cold]
    fn wrong(state: u64) -> Wrong {
        match state {
            SENT | SHARED => Wrong::HandedOver,
            OWN => Wrong::Received,
            _ => Wrong::GivenBack,
        }
    }

    /// Where in the heap a loan lies that the program has and may hand over, and its generation.
    #[inline(always)]
    pub fn lent(&self, ticket: u32, size: usize) -> std::result::Result<(u64, u32), Wrong> {
        let slot = self.slot(ticket);
        let now = slot.state.load(Ordering::Relaxed);
        if state_of(now) != LENT {
            return Err(Pool::wrong(state_of(now)));
        }
        let have = slot.size.load(Ordering::Relaxed);
        if size > have {
            return Err(Wrong::Shorter(have));
        }
        Ok((slot.place.load(Ordering::Relaxed), generation_of(now)))
    }

    /// It is published, and this holder's. (Who receives it may have returned it by now.)
    #[inline(always)]
    pub fn hand_over(&self, ticket: u32, generation: u32, holder: *const Peer) {
        let slot = self.slot(ticket);
        slot.holder.store(holder.cast_mut(), Ordering::Relaxed);
        slot.sent.store(slot.sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        slot.state.store(word(generation, SENT), Ordering::Release);
    }

    /// It was handed over to nobody, or has been copied.
    pub fn drop_sent(&self, ticket: u32, generation: u32) {
        self.slot(ticket).state.store(word(generation, IDLE), Ordering::Release);
    }

    /// One that this process has sent to itself has been received: it has it now. `false`: there is none such.
    pub fn receive_own(&self, ticket: u32, generation: u32) -> bool {
        let slot = self.slot(ticket);
        let (sent, own) = (word(generation, SENT), word(generation, OWN));
        loop {
            let now = slot.state.load(Ordering::Acquire);
            if now == word(generation, LENT) {
                // Its sender, another thread, has published it and is about to say so.
                crate::base::atomics::spin_loop();
            } else {
                return now == sent
                    && slot.state.compare_exchange(sent, own, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            }
        }
    }

    /// What the program has to fill is only to be read from now on: the library has filled it with a message.
    pub fn keep(&self, ticket: u32) {
        let state = &self.slot(ticket).state;
        state.store(word(generation_of(state.load(Ordering::Relaxed)), OWN), Ordering::Release);
    }

    /// The program returns it without having sent it, or after having received it from itself.
    pub fn give_back(&self, ticket: u32) -> std::result::Result<(), Wrong> {
        let slot = self.slot(ticket);
        let now = slot.state.load(Ordering::Acquire);
        if state_of(now) == SHARED
            && let Some(part) = self.own_part(ticket)
        {
            return self.give_back(part);
        }
        if !matches!(state_of(now), LENT | OWN) {
            return Err(Pool::wrong(state_of(now)));
        }
        let idle = word(generation_of(now), IDLE);
        // SYNC POINT: pairs with the acquire in `take_idle`.
        match slot.state.compare_exchange(now, idle, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(other) => Err(Pool::wrong(state_of(other))),
        }
    }

    /// Tickets for so many parts of a loan that the program has, with their generations. To be [`Pool::share`]d, and then used for publications.
    pub fn part(&self, ticket: u32, parts: usize) -> Result<Vec<(u32, u32)>> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        while spare.len() < parts {
            let mut making = self.making();
            let run = self.next_run(&mut making)?;
            spare.extend(run);
        }
        let at = spare.len() - parts;
        let part = |part: u32| {
            let slot = self.slot(part);
            let generation = next_generation(generation_of(slot.state.load(Ordering::Relaxed)));
            slot.whole.store(ticket, Ordering::Relaxed);
            slot.state.store(word(generation, LENT), Ordering::Release);
            (part, generation)
        };
        Ok(spare.split_off(at).into_iter().map(part).collect())
    }

    /// A loan is that of the holders of these parts, which are about to be published, or to be idle where they are not needed.
    pub fn share(&self, ticket: u32, generation: u32, parts: &[(u32, u32)]) {
        let mut next = 0;
        for (part, _) in parts {
            self.slot(*part).next.store(next, Ordering::Relaxed);
            next = part + 1;
        }
        let slot = self.slot(ticket);
        slot.parts.store(next, Ordering::Relaxed);
        slot.state.store(word(generation, SHARED), Ordering::Release);
    }

    fn parts_of(&self, ticket: u32) -> impl Iterator<Item = u32> {
        let mut next = self.slot(ticket).parts.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let part = next.checked_sub(1)?;
            next = self.slot(part).next.load(Ordering::Acquire);
            Some(part)
        })
    }

    /// Is a shared loan idle, since all its parts have come back? Not while another thread looks.
    #[cold]
    fn all_back(&self, ticket: u32) -> bool {
        let Ok(mut spare) = self.spare.try_lock() else { return false };
        let slot = self.slot(ticket);
        let now = slot.state.load(Ordering::Acquire);
        if state_of(now) != SHARED {
            return state_of(now) == IDLE;
        }
        let back = self.parts_of(ticket).all(|part| self.is_idle(part));
        if back {
            spare.extend(self.parts_of(ticket));
            slot.state.store(word(generation_of(now), IDLE), Ordering::Release);
        }
        back
    }

    /// The loan that a ticket is of: its own, or the one of which it is a part.
    pub fn whole(&self, ticket: u32) -> u32 {
        let slot = self.slot(ticket);
        if slot.at.load(Ordering::Relaxed).is_null() { slot.whole.load(Ordering::Relaxed) } else { ticket }
    }

    /// The part of a shared loan that this process has received from itself.
    #[cold]
    fn own_part(&self, ticket: u32) -> Option<u32> {
        let is_own = |part: &u32| state_of(self.slot(*part).state.load(Ordering::Acquire)) == OWN;
        // Held: a loan all of whose parts are back has none.
        let _spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = state_of(self.slot(ticket).state.load(Ordering::Acquire)) == SHARED;
        self.parts_of(ticket).find(is_own).filter(|_| shared)
    }

    /// How many the program has, to be filled or received from itself.
    pub fn in_hand(&self) -> usize {
        let making = self.making();
        let states = self.slots[..making.next_run as usize].iter().map(|s| state_of(s.state.load(Ordering::Relaxed)));
        states.filter(|s| matches!(*s, LENT | OWN)).count()
    }

    /// How many have been made and not been given back to the heap, and of these the ones that somebody has; their bytes.
    pub fn account(&self) -> [u64; 3] {
        let making = self.making();
        let made = |t: &u32| !self.slot(*t).at.load(Ordering::Relaxed).is_null();
        let tickets = (0..making.next_run).filter(made);
        let out =
            tickets.filter(|t| !self.is_idle(*t) && state_of(self.slot(*t).state.load(Ordering::Relaxed)) != EMPTY);
        [making.loans as u64, out.count() as u64, making.bytes as u64]
    }

    /// How many were handed over.
    pub fn sent(&self) -> u64 {
        let made = self.making().next_run as usize;
        self.slots[..made].iter().map(|s| s.sent.load(Ordering::Relaxed)).sum()
    }
}

static_assertions::const_assert!(LOAN_GRAIN == 64);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rings_have_room_for_their_sizes_and_waste_little() {
        let mut last = 0;
        for size in (0..70_000).chain((17..40).flat_map(|k| [(1usize << k) - 1, 1 << k, (1 << k) + 1])) {
            let ring = ring_of(size);
            let room = room_of(ring);
            assert!(ring < RINGS && room >= size && room.is_multiple_of(64), "{size}: ring {ring} of {room}");
            assert!(ring >= last && (size <= 256 || room <= size + size / 4), "{size}: ring {ring} of {room}");
            assert!(ring == 1 || room_of(ring - 1) < size, "{size}: ring {ring} of {room}");
            last = ring;
        }
    }
}
