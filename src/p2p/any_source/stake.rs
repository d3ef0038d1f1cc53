//! Stakes: what a death leaves behind of a sender that had taken a ticket and had not filled its slot.
//!
//! A ticket says nothing about who has it, and the receiver cannot go on before that slot is filled. So a sender writes down in its own
//! region which ticket it is about to try for, before it does, and wipes it out after it has published:
//!
//! ```text
//!   sender                                   receiver, at a slot that stays empty, when somebody is known to be dead
//!   stake = (receiver, ring, ticket)         sent > ticket?                  no: nobody has it yet
//!   sent: ticket → ticket + 1                a dead rank's stake says it?    no: somebody alive has it, wait
//!   slot, mark                               a living rank's stake says it?  yes: wait, it fills the slot or tries another
//!   stake = none                             the slot is still empty?        then it was the dead one's: skip it
//! ```
//! Whoever has the ticket had its stake on it before `sent` passed it, and has it still if the slot is empty. So when no living rank
//! has a stake on it, nobody living can ever fill the slot.
//!
//! Each thread that sends has a stake of its own, in a line of its own: a few plain stores for each message, to a line nobody reads.

#[cfg(not(loom))]
use std::cell::Cell;

use static_assertions::const_assert;

use super::ring::Ring;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::lock::Mutex;
use crate::fabric::shm::region::{Mapping, PeerRegion, Region, STAKES_AT, STAKES_LEN};

/// Stakes of a process; the first line says how many are in use, the last stake is shared by threads beyond that.
pub const STAKES: usize = STAKES_LEN / 64 - 1;

/// One stake.
#[repr(C, align(64))]
struct Stake {
    /// 1: held.
    held: AtomicU32,
    receiver: AtomicU32,
    ring: AtomicU64,
    ticket: AtomicU64,
    _pad: [AtomicU64; 5],
}

const_assert!(size_of::<Stake>() == 64);

/// Which stakes belong to a thread of this process, one bit each.
#[cfg(not(loom))]
static TAKEN: [core::sync::atomic::AtomicU64; STAKES.div_ceil(64)] =
    [const { core::sync::atomic::AtomicU64::new(0) }; STAKES.div_ceil(64)];
/// Who uses the last stake.
static SHARED: Mutex<()> = Mutex::new(());
const LAST: usize = STAKES - 1;

/// A thread's stake + 1; 0: none yet. Given back when the thread ends.
#[cfg(not(loom))]
struct Mine(Cell<u32>);

#[cfg(not(loom))]
impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(n) = (self.0.get() as usize).checked_sub(1) {
            TAKEN[n / 64].fetch_and(!(1 << (n % 64)), Ordering::AcqRel);
        }
    }
}

#[cfg(not(loom))]
thread_local! {
    static MINE: Mine = const { Mine(Cell::new(0)) };
}

#[cfg(not(loom))]
#[cold]
fn take_one() -> Option<u32> {
    for n in 0..LAST {
        let bit = 1 << (n % 64);
        if TAKEN[n / 64].load(Ordering::Relaxed) & bit == 0 && TAKEN[n / 64].fetch_or(bit, Ordering::AcqRel) & bit == 0
        {
            return Some(n as u32);
        }
    }
    None
}

/// The calling thread's own stake.
#[cfg(not(loom))]
#[inline(always)]
fn mine() -> Option<u32> {
    let n = MINE.try_with(|m| m.0.get()).ok()?;
    if n != 0 {
        return Some(n - 1);
    }
    let n = take_one()?;
    MINE.with(|m| m.0.set(n + 1));
    Some(n)
}

/// In a model all threads are one of the system's: theirs are counted in the order in which they come.
#[cfg(loom)]
fn mine() -> Option<u32> {
    super::model::thread_number()
}

/// Is a ticket given out whose slot nobody can fill any more? `dead`: has a dead rank a stake on it; `living`: a living one.
pub fn is_orphan(ring: &Ring, ticket: u64, dead: impl FnOnce() -> bool, living: impl FnOnce() -> bool) -> bool {
    // In this order: see the drawing.
    ring.is_claimed(ticket) && dead() && !living() && ring.arrival(ticket).is_none()
}

/// The stakes of a process, its own or a peer's.
pub struct Stakes(Mapping);

impl Stakes {
    /// This process's.
    pub fn own(region: &Region) -> Result<Stakes> {
        region.map(STAKES_AT, STAKES_LEN).map(Stakes)
    }

    /// A peer's, to be looked at.
    pub fn of(region: &PeerRegion) -> Result<Stakes> {
        region.map(STAKES_AT, STAKES_LEN).map(Stakes)
    }

    /// Declares them shared by the threads of a model.
    #[cfg(loom)]
    pub fn in_model(&self) {
        crate::base::shadow::share(self.0.as_ptr(), 64 * 8);
    }

    /// Runs `send` with a stake that stays, as that of a process that dies there.
    #[cfg(loom)]
    pub fn abandon(&self, receiver: u32, ring: u64, send: impl FnOnce(&Held<'_>)) {
        let held = std::mem::ManuallyDrop::new(Held(self.at(mine().unwrap_or(0) as usize)));
        self.used().fetch_max(8, Ordering::AcqRel);
        held.0.receiver.store(receiver, Ordering::Release);
        held.0.ring.store(ring, Ordering::Release);
        send(&held);
    }

    fn used(&self) -> &AtomicU32 {
        self.0.record(0)
    }

    #[inline(always)]
    fn at(&self, n: usize) -> &Stake {
        debug_assert!(n < STAKES);
        // SAFETY: the window has room for the first line and `STAKES` stakes.
        unsafe { &*self.0.as_ptr().add(64 + n * 64).cast() }
    }

    /// Runs `send` with the calling thread's stake.
    #[inline(always)]
    pub fn with<R>(&self, receiver: u32, ring: u64, send: impl FnOnce(&Held<'_>) -> R) -> R {
        match mine() {
            Some(n) => self.hold(n as usize, receiver, ring, send),
            None => {
                let _one = SHARED.lock().unwrap_or_else(|e| e.into_inner());
                self.hold(LAST, receiver, ring, send)
            }
        }
    }

    #[inline(always)]
    fn hold<R>(&self, n: usize, receiver: u32, ring: u64, send: impl FnOnce(&Held<'_>) -> R) -> R {
        let stake = self.at(n);
        if self.used().load(Ordering::Relaxed) <= n as u32 {
            self.used().fetch_max(n as u32 + 1, Ordering::AcqRel);
        }
        // Release, all of them: whoever sees one of a later use sees that the slot of the use before is filled.
        stake.receiver.store(receiver, Ordering::Release);
        stake.ring.store(ring, Ordering::Release);
        send(&Held(stake))
    }

    /// Has this process a stake on this ticket?
    pub fn has(&self, receiver: u32, ring: u64, ticket: u64) -> bool {
        let used = (self.used().load(Ordering::Acquire) as usize).min(STAKES);
        (0..used).any(|n| {
            let stake = self.at(n);
            // SYNC POINT: pairs with the release in `drop`: a stake that is gone means a slot that is filled.
            stake.held.load(Ordering::Acquire) != 0
                && stake.receiver.load(Ordering::Acquire) == receiver
                && stake.ring.load(Ordering::Acquire) == ring
                && stake.ticket.load(Ordering::Acquire) == ticket
        })
    }
}

/// A stake in use; wiped out when dropped.
pub struct Held<'a>(&'a Stake);

impl Held<'_> {
    /// The thread is about to try for this ticket.
    #[inline(always)]
    pub fn on(&self, ticket: u64) {
        self.0.ticket.store(ticket, Ordering::Release);
        // Release: whoever finds it held finds the rest. The claim that follows carries it over to the receiver.
        self.0.held.store(1, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT: pairs with the acquire in `has`.
        self.0.held.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stake_is_seen_while_it_is_held() {
        let region = Region::create(0, 2).unwrap();
        let stakes = Stakes::own(&region).unwrap();
        assert!(!stakes.has(1, 4096, 9));
        stakes.with(1, 4096, |held| {
            assert!(!stakes.has(1, 4096, 9));
            held.on(9);
            assert!(stakes.has(1, 4096, 9));
            for (receiver, ring, ticket) in [(2, 4096, 9), (1, 8192, 9), (1, 4096, 8)] {
                assert!(!stakes.has(receiver, ring, ticket));
            }
            held.on(10);
            assert!(!stakes.has(1, 4096, 9) && stakes.has(1, 4096, 10));
        });
        assert!(!stakes.has(1, 4096, 10));
    }
}
