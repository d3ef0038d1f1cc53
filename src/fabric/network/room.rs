//! How many connections, contexts and rings the processes of a node may have together: tables in memory that they share.
//!
//! Each connection takes a place of its table for as long as its queue pair exists, each context of the second for as long as its memory is
//! registered, each ring of the third for as long as it is there. A place says whose it is in one word, so it is taken
//! and given back by one exchange, and what a process held that has died is found and given back by whoever finds no place free.
//!
//! ```text
//!  0        owner: process 32 | when it began 32     0: free
//!  8        rank
//!  12       peer
//!  16       last use, by the table's clock
//!  20       when the owner was asked to give it back, in milliseconds; 0: not
//!  24       1: it could be given back at once
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use static_assertions::const_assert;

use crate::base::clock::now_ns;
use crate::fabric::shm::region::Mapping;

/// Most places that a setting can ask for.
pub const PLACES_MOST: usize = 1 << 16;
/// Bytes of a table: its clock, and the places.
const TABLE_BYTES: usize = size_of::<Clock>() + PLACES_MOST * size_of::<Seat>();
/// Bytes of the tables, in the order of [`Which`], that of rings last.
pub const TABLES_BYTES: usize = 3 * TABLE_BYTES;

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
    idle: AtomicU32,
    _pad: AtomicU32,
}
const_assert!(size_of::<Seat>() == 32 && size_of::<Clock>() == 64);

/// A table, as one process sees it.
#[derive(Debug)]
pub struct Room {
    tables: Arc<Mapping>,
    at: usize,
    limit: usize,
    me: u64,
    rank: u32,
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Connections.
    Pairs = 0,
    /// Contexts.
    Contexts = 1,
}

/// Which table is that of rings, which nobody is asked to give up.
pub(super) const RINGS: usize = 2;

/// Whose place is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// This process's, with this peer.
    Mine(u32),
    /// Of another process: its rank.
    Of(u32),
}

/// A place that is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    pub room: Arc<Room>,
    pub place: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.give_back(self.place);
    }
}

/// From asking the owner of a place to the next who asks for it, or asks somebody else.
const ASKED_MS: u32 = 50;

impl Room {
    /// The tables in this window, of [`TABLES_BYTES`], with so many places for all: connections, contexts, without which there are none of the
    /// others, and rings.
    pub fn all(tables: Arc<Mapping>, [pairs, contexts, rings]: [usize; 3], rank: u32) -> [Arc<Room>; 3] {
        let me = std::process::id();
        let me = (me as u64) << 32 | life(me).ok().flatten().unwrap_or(UNKNOWN) as u64;
        [(pairs.max(1), Which::Pairs as usize), (contexts.max(1), Which::Contexts as usize), (rings, RINGS)].map(
            |(limit, at)| {
                let (at, limit) = (at * TABLE_BYTES, limit.min(contexts.max(1)).min(PLACES_MOST));
                Arc::new(Room { tables: tables.clone(), at, limit, me, rank })
            },
        )
    }
    /// Places for all processes of the node.
    pub fn limit(&self) -> usize {
        self.limit
    }
    fn seats(&self) -> &[Seat] {
        // SAFETY: the table has room for the clock and PLACES_MOST seats, which are atomics only, and lives as long as self.
        unsafe {
            let first = self.tables.as_ptr().add(self.at + size_of::<Clock>()).cast::<Seat>();
            std::slice::from_raw_parts(first, self.limit)
        }
    }
    fn clock(&self) -> &AtomicU32 {
        // SAFETY: the clock stands at the begin of the table.
        &unsafe { &*self.tables.as_ptr().add(self.at).cast::<Clock>() }.now
    }
    /// The time by which uses are compared.
    #[inline]
    pub fn now(&self) -> u32 {
        self.clock().load(Ordering::Relaxed)
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
        seat.idle.store(0, Ordering::Relaxed);
        seat.used.store(self.clock().fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(place)
    }
    /// The place could be given back at once, or not any more.
    pub fn set_idle(&self, place: usize, idle: bool) {
        let seat = &self.seats()[place];
        seat.used.store(self.clock().fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        seat.asked.store(0, Ordering::Relaxed);
        seat.idle.store(idle as u32, Ordering::Relaxed);
    }

    /// Could it?
    pub fn is_idle(&self, place: usize) -> bool {
        self.seats()[place].idle.load(Ordering::Relaxed) != 0
    }

    /// Gives a place back.
    pub fn give_back(&self, place: usize) {
        let _ = self.seats()[place].owner.compare_exchange(self.me, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Gives back what processes held that have died; how many places.
    pub fn reap(&self) -> usize {
        // Each process is asked for once, however many places it has.
        let mut known = BTreeMap::from([(self.me, true)]);
        let dead = |seat: &&Seat| {
            let owner = seat.owner.load(Ordering::Acquire);
            if owner == 0 || owner == self.me {
                return false;
            }
            let lives = *known.entry(owner).or_insert_with(|| match life((owner >> 32) as u32) {
                Ok(began) => began.is_some_and(|began| [began, UNKNOWN].contains(&(owner as u32))),
                // That it cannot be known is no death.
                Err(_) => true,
            });
            !lives && seat.owner.compare_exchange(owner, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        self.seats().iter().filter(dead).count()
    }

    /// Whose place was not used for longest, of those that nobody was asked for just now and that `mine` does not hold back; `idle`: of
    /// those that can be given back at once; `old`: of those since whose last use so many places were taken. The place counts as asked for from
    /// now on.
    pub fn least_useful(&self, idle: bool, old: u32, mine: impl Fn(u32) -> bool) -> Option<Least> {
        let (now, ms) = (self.now(), (now_ns() / 1_000_000) as u32 | 1);
        let may = |seat: &&Seat| {
            let owner = seat.owner.load(Ordering::Acquire);
            let asked = seat.asked.load(Ordering::Relaxed);
            owner != 0
                && now.wrapping_sub(seat.used.load(Ordering::Relaxed)) >= old
                && (!idle || seat.idle.load(Ordering::Relaxed) != 0)
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

    /// Who has the first so many of those that are taken: rank and peer.
    pub fn holders(&self, most: usize) -> impl Iterator<Item = (u32, u32)> {
        let taken = |seat: &&Seat| seat.owner.load(Ordering::Acquire) != 0;
        let who = |seat: &Seat| (seat.rank.load(Ordering::Relaxed), seat.peer.load(Ordering::Relaxed));
        self.seats().iter().filter(taken).map(who).take(most)
    }

    /// Places that are taken: by this process, by all.
    pub fn taken(&self) -> (usize, usize) {
        let owners = self.seats().iter().map(|s| s.owner.load(Ordering::Relaxed));
        owners.fold((0, 0), |(mine, all), o| (mine + (o == self.me) as usize, all + (o != 0) as usize))
    }
}

/// When a process began that could not find that out; the time of others is odd.
const UNKNOWN: u32 = 0;

/// When a process began, in clock ticks since the system did (proc(5), stat, field 22), and odd; `None`: it has ended.
fn life(pid: u32) -> io::Result<Option<u32>> {
    let text = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(e) => return Err(e),
    };
    let parse = || {
        let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        Some((fields.next()?, fields.nth(18)?.parse::<u64>().ok()?))
    };
    let (state, began) = parse().ok_or(io::ErrorKind::InvalidData)?;
    Ok((!matches!(state, "Z" | "X" | "x")).then_some(began as u32 | 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::shm::region::{NODE_AT, Region};

    #[test]
    fn places_are_counted_over_processes_and_come_back_from_the_dead() {
        let region = Region::create(0, 1).expect("a region");
        let window = region.map(NODE_AT, TABLES_BYTES).expect("a window");
        let [room, contexts, rings] = Room::all(std::sync::Arc::new(window), [4, 5, 1], 0);
        let places: Vec<usize> = (10..14).map(|peer| room.take(peer).expect("a place")).collect();
        assert_eq!(room.take(14), None);
        assert_eq!(room.taken(), (4, 4));
        // The one used longest ago goes first; nobody is asked for the same again at once.
        room.use_now(places[0], room.now());
        assert_eq!(room.least_useful(false, 0, |_| true), Some(Least::Mine(11)));
        assert_eq!(room.least_useful(false, 0, |peer| peer != 12), Some(Least::Mine(13)));
        assert_eq!(room.asked_of_me(), [11, 13]);
        room.give_back(places[1]);
        assert_eq!(room.take(14), Some(places[1]));
        places.iter().for_each(|p| room.give_back(*p));

        // Another process has two places, and is killed.
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().expect("a process");
        let owner = (other.id() as u64) << 32 | life(other.id()).expect("/proc").expect("it lives") as u64;
        room.seats()[..2].iter().for_each(|s| s.owner.store(owner, Ordering::Release));
        assert_eq!((room.reap(), room.taken()), (0, (0, 2)), "the other process lives");
        assert_eq!(room.least_useful(false, 0, |_| false), Some(Least::Of(0)));
        other.kill().expect("killed");
        // It is a zombie from then on, until it is waited for.
        while life(other.id()).expect("/proc").is_some() {
            std::thread::yield_now();
        }
        assert_eq!((room.reap(), room.taken()), (2, (0, 0)));
        let _ = other.wait();
        assert_eq!(room.take(3), Some(0));

        // Of the contexts only those that are idle.
        let places: Vec<usize> = (10..15).map(|peer| contexts.take(peer).expect("a place")).collect();
        assert_eq!((contexts.take(15), contexts.taken(), room.taken()), (None, (5, 5), (1, 1)));
        assert_eq!((rings.take(3), rings.take(4), rings.taken(), contexts.taken()), (Some(0), None, (1, 1), (5, 5)));
        assert_eq!(contexts.least_useful(true, 0, |_| true), None);
        [3, 1, 2].into_iter().for_each(|n| contexts.set_idle(places[n], true));
        contexts.set_idle(places[2], false);
        assert_eq!(contexts.least_useful(true, 0, |_| true), Some(Least::Mine(13)));
        assert_eq!(contexts.least_useful(true, 0, |_| true), Some(Least::Mine(11)));
        assert_eq!(contexts.asked_of_me(), [11, 13]);
        assert_eq!(contexts.least_useful(true, 0, |_| true), None, "asked for just now");
    }
}
