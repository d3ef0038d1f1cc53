//! Shares: a ring of very many senders, split over groups of them.
//!
//! All senders of a ring take their tickets from one counter, and a counter gives out one after the other, however many wait. So the ring can be
//! split: each **share** has counters and slots of its own, and each sender belongs to one, the same as long as the job lasts, so that its
//! messages stay in order.
//!
//! ```text
//!   senders 0, 4, 8, …   ──▶  share 0   sent, freed, N/4 slots  ──┐
//!           1, 5, 9, …   ──▶  share 1   sent, freed, N/4 slots  ──┤    the receiver looks at one after the other,
//!           2, 6, 10, …  ──▶  share 2   …                         ├──▶ and goes on behind the one that had a message
//!           3, 7, 11, …  ──▶  share 3   …                       ──┘
//! ```
//! The slots are those that the ring has anyway, so the receiver's memory is bounded as before; and as with one counter each message has its slot
//! before it is sent. What it costs is that the receiver looks at more than one line while there is nothing, and that a group of senders
//! has fewer slots when the others send nothing. (*Methods for memory saving communication library using remote atomic communication*,
//! section 4.4: counters split over several places together with their buffers, the shares not more than the buffers there are.)

use super::ring::{Arrival, ROOM, Ring, SLOTS_MOST, TAKEN};
use crate::base::atomics::{AtomicU64, Ordering, fence};
use crate::fabric::shm::region::RegionHeader;
use crate::wait::doorbell;

/// Most shares of a ring.
pub const SHARES_MOST: usize = 64;
/// Where nothing is set, a ring has up to [`SHARES_SOON`] shares, each for so many senders: one counter is slower than the receiver.
const SENDERS_SOON: usize = 64;
const SHARES_SOON: usize = 4;
/// More shares than that for so many senders each, so that looking for room wears none out. Were there more, a share's few slots would be
/// used up before it is its turn. (By the example `incast`; docs/tuning.md.)
const SENDERS_PER_SHARE: usize = 512;
/// The bit of a share's bell on which those sleep who wait for room; those who wait for a message to be taken have the others.
pub(super) const ROOM_BITS: u32 = 1;
/// How many of those who wait for room are woken at a time: it has many messages, most likely.
const WAKE_AT_ONCE: i32 = 1;

/// Into how many shares a ring of `slots` slots for at most `senders` is split; a power of two. `setting`: `FMPL_SPREAD`, 0 for `auto`.
/// Each share has two slots at least.
pub fn shares(setting: usize, senders: usize, slots: usize) -> usize {
    let wanted = match setting {
        0 => (senders / SENDERS_SOON).clamp(1, SHARES_SOON).max(senders / SENDERS_PER_SHARE),
        n => n,
    };
    1 << wanted.min(SHARES_MOST).min((slots / 2).max(1)).ilog2()
}

/// The share of a sender, by its number among those who may send.
#[inline]
pub fn share_of(sender: u32, shares: usize) -> usize {
    sender as usize % shares
}

/// Where a share lies whose ring begins at `ring`; `slots`: of each share.
pub fn share_at(ring: u64, slots: usize, share: usize) -> u64 {
    ring + (share * Ring::bytes(slots)) as u64
}

/// The slots of each share of a rank's rings, and how many shares there are, as its region says. `None`: no ring has such a shape.
pub fn of_region(header: &RegionHeader) -> Option<(usize, usize)> {
    let (slots, shares) = (header.any_slots.load(Ordering::Acquire), header.any_shares.load(Ordering::Acquire));
    split(slots.into(), shares.into())
}

/// The same, by two numbers that another rank has written.
pub fn split(slots: u64, shares: u64) -> Option<(usize, usize)> {
    let (slots, shares) = (usize::try_from(slots).ok()?, usize::try_from(shares.max(1)).ok()?);
    let fits = slots.is_power_of_two() && slots <= SLOTS_MOST && shares.is_power_of_two();
    (fits && shares <= SHARES_MOST.min(slots)).then(|| (slots / shares, shares))
}

/// How many messages may be outstanding in a share when `most` may be in all; at least one, since its senders have no other. 0: no limit.
pub fn limit_of(most: u64, shares: usize, share: usize) -> u64 {
    let (each, rest) = (most / shares as u64, most % shares as u64);
    if most == 0 { 0 } else { (each + u64::from((share as u64) < rest)).max(1) }
}

/// A share of a ring in shared memory, as its receiver has it: of the whole ring, if it is not split.
pub struct Share {
    /// Its counters and slots.
    pub ring: Ring,
    /// Where it lies in the receiver's region, which is its name in stakes.
    pub at: u64,
    /// The next ticket to be taken.
    next: AtomicU64,
    /// The value of `next` at which it is time to see who sleeps for room.
    look_at: AtomicU64,
}

impl Share {
    /// The share at this place of the own region.
    pub fn new(at: u64, ring: Ring) -> Share {
        let next = ring.header().freed.load(Ordering::Acquire);
        Share { ring, at, next: AtomicU64::new(next), look_at: AtomicU64::new(next) }
    }

    /// The next ticket to be taken.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The next message, if it is there.
    #[inline(always)]
    pub fn arrival(&self) -> Option<Arrival> {
        self.ring.arrival(self.next())
    }

    /// The slot of this ticket is done with.
    #[inline(always)]
    pub fn advance(&self, ticket: u64) {
        self.next.store(ticket + 1, Ordering::Relaxed);
        self.ring.free(ticket + 1);
        // SYNC POINT: the sleeper sets the word and has the order bought by `membarrier`; no fence here.
        doorbell::light_barrier();
        if self.ring.header().wanted.load(Ordering::Relaxed) & TAKEN != 0 {
            self.say_taken();
        }
        if ticket + 1 >= self.look_at.load(Ordering::Relaxed) {
            self.look_for_sleepers(false);
        }
    }

    #[cold]
    #[inline(never)]
    fn say_taken(&self) {
        let header = self.ring.header();
        header.wanted.fetch_and(!TAKEN, Ordering::AcqRel);
        doorbell::ring(&header.bell, !ROOM_BITS);
    }

    /// Wakes a sender that sleeps for room, if half of the slots are free. It fills those before it sleeps again, so that a message does
    /// not cost a wake-up. `dry`: there is nothing to be taken, so whoever can send should.
    ///
    /// What senders write is looked at no oftener than this can be true: each look takes a line away from who is sending.
    #[cold]
    #[inline(never)]
    fn look_for_sleepers(&self, dry: bool) {
        let header = self.ring.header();
        let (next, limit) = (self.next(), self.ring.limit());
        // No more than there are slots, whatever senders have made of the counter.
        let left = header.sent.load(Ordering::Relaxed).saturating_sub(next).min(SLOTS_MOST as u64);
        if left * 2 > limit && !dry {
            // Not before so many are taken.
            return self.look_at.store((next + left).saturating_sub(limit / 2), Ordering::Relaxed);
        }
        self.look_at.store(next + (limit / 4).max(1), Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in the sender's `fall_asleep`: either this sees that it sleeps, or it sees what is free.
        fence(Ordering::SeqCst);
        if header.wanted.load(Ordering::Relaxed) & ROOM == 0 {
            return;
        }
        // Taken away before the bell is rung: who says it again after that has read the bell before, and does not sleep; or sleeps
        // on its new value.
        header.wanted.fetch_and(!ROOM, Ordering::AcqRel);
        if doorbell::ring_some(&header.bell, ROOM_BITS, WAKE_AT_ONCE) == WAKE_AT_ONCE {
            // There may be more of them.
            header.wanted.fetch_or(ROOM, Ordering::AcqRel);
        }
    }

    /// Nothing is there: senders that sleep are needed. `first`: it was found just now.
    pub fn run_dry(&self, first: bool) {
        let sleepers = || self.ring.header().wanted.load(Ordering::Relaxed) & ROOM != 0;
        // Where there are none nothing else is looked at: somebody may be sending just now.
        if !first {
            // SYNC POINT: as in `look_for_sleepers`.
            fence(Ordering::SeqCst);
        }
        if sleepers() && !self.ring.is_claimed(self.next()) {
            self.look_for_sleepers(true);
        }
    }

    /// Limits how many messages may be outstanding in it; 0: as many as it has slots.
    pub fn set_limit(&self, most: u64) {
        self.ring.header().limit.store(most, Ordering::Release);
        doorbell::ring(&self.ring.header().bell, ROOM_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_senders_have_one_counter() {
        for (senders, want) in [(1, 1), (16, 1), (127, 1), (128, 2), (1000, 4), (3000, 4), (5000, 8), (1 << 20, 64)] {
            assert_eq!(shares(0, senders, 512), want, "{senders} senders");
        }
        for (setting, slots, want) in [(1, 512, 1), (8, 512, 8), (64, 512, 64), (64, 16, 8), (4, 2, 1), (2, 1, 1)] {
            assert_eq!(shares(setting, 1 << 20, slots), want, "{setting} of {slots}");
        }
    }

    /// The shares are no more than what there is, each sender has one, and they are as even as can be.
    #[test]
    fn shares_are_even() {
        for shares in [1usize, 2, 8, 64] {
            let mut count = vec![0; shares];
            (0..1000).for_each(|sender| count[share_of(sender, shares)] += 1);
            assert!(count.iter().max().unwrap() - count.iter().min().unwrap() <= 1);
            for most in [shares as u64, 100, 511, 512] {
                let limits: Vec<u64> = (0..shares).map(|k| limit_of(most, shares, k)).collect();
                assert!(limits.iter().sum::<u64>() == most.max(shares as u64), "{most} in {shares}: {limits:?}");
                assert!(limits.iter().max().unwrap() - limits.iter().min().unwrap() <= 1);
            }
            assert_eq!(limit_of(0, shares, 0), 0);
            let (at, slots) = (7 << 20, 512 / shares);
            let ends = share_at(at, slots, shares);
            assert!(ends <= at + (8 << 20) && share_at(at, slots, 1).is_multiple_of(64));
        }
    }
}
