//! How many connections the processes of a node may have together: a table in memory that they share.
//!
//! Each connection takes a place of the table for as long as its queue pair exists. A place says whose it is in one word, so it is taken
//! and given back by one exchange, and what a process held that has died is found and given back by whoever finds no place free.
//!
//! ```text
//!  0        owner: process 32 | when it began 32     0: free
//!  8        rank
//!  12       peer
//!  16       last use, by the table's clock
//!  20       when the owner was asked to give it back, in milliseconds; 0: not
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use static_assertions::const_assert;

use crate::base::clock::now_ns;
use crate::fabric::shm::region::Mapping;

/// Most places that a setting can ask for.
pub const PLACES_MOST: usize = 1 << 16;
/// Bytes of the table: its clock, and the places.
pub const TABLE_BYTES: usize = size_of::<Clock>() + PLACES_MOST * size_of::<Seat>();

#[repr(C, align(64))]
struct Clock {
    /// Goes on with every place that is taken.
    now: AtomicU32,
}

#[repr(C)]
struct Seat {
    owner: AtomicU64,
    rank: AtomicU32,
    peer: AtomicU32,
    used: AtomicU32,
    asked: AtomicU32,
    _pad: AtomicU64,
}
const_assert!(size_of::<Seat>() == 32 && size_of::<Clock>() == 64);

/// The table, as one process sees it.
#[derive(Debug)]
pub struct Room {
    table: Mapping,
    limit: usize,
    me: u64,
    rank: u32,
}

/// Whose connection is to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// This process's, with this peer.
    Mine(u32),
    /// Of another process: its rank.
    Of(u32),
}

/// From asking the owner of a place to the next who asks for it, or asks somebody else.
const ASKED_MS: u32 = 50;

impl Room {
    /// The table in this window, of [`TABLE_BYTES`], with `limit` places for all.
    pub fn new(table: Mapping, limit: usize, rank: u32) -> Room {
        let me = std::process::id();
        let began = life(me).unwrap_or(0);
        Room { table, limit: limit.clamp(1, PLACES_MOST), me: (me as u64) << 32 | began as u64, rank }
    }
    /// Places for all processes of the node.
    pub fn limit(&self) -> usize {
        self.limit
    }
    fn seats(&self) -> &[Seat] {
        // SAFETY: the window has room for the clock and PLACES_MOST seats, which are atomics only, and lives as long as self.
        unsafe {
            let first = self.table.as_ptr().add(size_of::<Clock>()).cast::<Seat>();
            std::slice::from_raw_parts(first, self.limit)
        }
    }
    /// The time by which uses are compared.
    #[inline]
    pub fn now(&self) -> u32 {
        // SAFETY: the clock stands at the begin of the window.
        unsafe { &*self.table.as_ptr().cast::<Clock>() }.now.load(Ordering::Relaxed)
    }
    /// The place was used just now.
    #[inline]
    pub fn use_now(&self, place: usize, now: u32) {
        self.seats()[place].used.store(now, Ordering::Relaxed);
    }

    /// Takes a place for a connection with `peer`, if one is free.
    pub fn take(&self, peer: u32) -> Option<usize> {
        let free = |(_, seat): &(usize, &Seat)| {
            seat.owner.load(Ordering::Relaxed) == 0
                && seat.owner.compare_exchange(0, self.me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let (place, seat) = self.seats().iter().enumerate().find(free)?;
        seat.rank.store(self.rank, Ordering::Relaxed);
        seat.peer.store(peer, Ordering::Relaxed);
        seat.asked.store(0, Ordering::Relaxed);
        // SAFETY: as in `now`.
        let now = unsafe { &*self.table.as_ptr().cast::<Clock>() }.now.fetch_add(1, Ordering::Relaxed);
        seat.used.store(now, Ordering::Relaxed);
        Some(place)
    }

    /// Gives a place back.
    pub fn give_back(&self, place: usize) {
        let _ = self.seats()[place].owner.compare_exchange(self.me, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Gives back what processes held that have died; how many places.
    pub fn reap(&self) -> usize {
        let mut last = (self.me, true);
        let dead = |seat: &&Seat| {
            let owner = seat.owner.load(Ordering::Acquire);
            if owner == 0 || owner == self.me {
                return false;
            }
            if last.0 != owner {
                last = (owner, life((owner >> 32) as u32) == Some(owner as u32));
            }
            !last.1 && seat.owner.compare_exchange(owner, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        self.seats().iter().filter(dead).count()
    }

    /// The connection that was not used for longest, of those that nobody was asked for just now and that `mine` does not hold back. The
    /// place counts as asked for from now on.
    pub fn least_useful(&self, mine: impl Fn(u32) -> bool) -> Option<Least> {
        let (now, ms) = (self.now(), (now_ns() / 1_000_000) as u32 | 1);
        let may = |seat: &&Seat| {
            let owner = seat.owner.load(Ordering::Acquire);
            let asked = seat.asked.load(Ordering::Relaxed);
            owner != 0
                && (asked == 0 || ms.wrapping_sub(asked) > ASKED_MS)
                && (owner != self.me || mine(seat.peer.load(Ordering::Relaxed)))
        };
        let age = |seat: &&Seat| now.wrapping_sub(seat.used.load(Ordering::Relaxed));
        let seat = self.seats().iter().filter(may).max_by_key(age)?;
        seat.asked.store(ms, Ordering::Relaxed);
        Some(if seat.owner.load(Ordering::Acquire) == self.me {
            Least::Mine(seat.peer.load(Ordering::Relaxed))
        } else {
            Least::Of(seat.rank.load(Ordering::Relaxed))
        })
    }

    /// The peer of this process's connection that was not used for longest, of those that others have asked for.
    pub fn asked_of_me(&self) -> Vec<u32> {
        let asked = |s: &&Seat| s.owner.load(Ordering::Acquire) == self.me && s.asked.load(Ordering::Relaxed) != 0;
        self.seats().iter().filter(asked).map(|s| s.peer.load(Ordering::Relaxed)).collect()
    }

    /// Places that are taken: by this process, by all.
    pub fn taken(&self) -> (usize, usize) {
        let owners = self.seats().iter().map(|s| s.owner.load(Ordering::Relaxed));
        owners.fold((0, 0), |(mine, all), o| (mine + (o == self.me) as usize, all + (o != 0) as usize))
    }
}

/// When a process began, in clock ticks since the system did (proc(5), stat, field 22); `None`: it has ended.
fn life(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let began: u64 = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(began as u32 | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::shm::region::{NODE_AT, Region};

    #[test]
    fn places_are_counted_over_processes_and_come_back_from_the_dead() {
        let region = Region::create(0, 1).expect("a region");
        let window = || region.map(NODE_AT, TABLE_BYTES).expect("a window");
        let room = Room::new(window(), 4, 0);
        let places: Vec<usize> = (10..14).map(|peer| room.take(peer).expect("a place")).collect();
        assert_eq!(room.take(14), None);
        assert_eq!(room.taken(), (4, 4));
        // The one used longest ago goes first; nobody is asked for the same again at once.
        room.use_now(places[0], room.now());
        assert_eq!(room.least_useful(|_| true), Some(Least::Mine(11)));
        assert_eq!(room.least_useful(|peer| peer != 12), Some(Least::Mine(13)));
        assert_eq!(room.asked_of_me(), [11, 13]);
        room.give_back(places[1]);
        assert_eq!(room.take(14), Some(places[1]));
        places.iter().for_each(|p| room.give_back(*p));

        // Another process has two places, and is killed.
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().expect("a process");
        let owner = (other.id() as u64) << 32 | life(other.id()).expect("it lives") as u64;
        room.seats()[..2].iter().for_each(|s| s.owner.store(owner, Ordering::Release));
        assert_eq!((room.reap(), room.taken()), (0, (0, 2)), "the other process lives");
        assert_eq!(room.least_useful(|_| false), Some(Least::Of(0)));
        other.kill().expect("killed");
        // It is a zombie from then on, until it is waited for.
        while life(other.id()).is_some() {
            std::thread::yield_now();
        }
        assert_eq!((room.reap(), room.taken()), (2, (0, 0)));
        let _ = other.wait();
        assert_eq!(room.take(3), Some(0));
    }
}
