//! Data that members take while the master copies it into the block, chunk by chunk.
//!
//! ```text
//!   data:   place 0 | place 1 | place 2 | ...        a place for each chunk, if need be
//!   behind: [ place of chunk 0, 1, 2, ... | a line for each member: chunks that it has, where it runs ]
//!
//!   master      chunk k into a place that nobody needs; where it is; there = its end
//!   member n    there > at: copies; chunks that it has = k + 1
//! ```
//! A chunk that all members have leaves its place to another, the one left last first, so that few places are used where members keep up. The
//! master waits for nobody: for members that are late every chunk finds a place. It copies short messages past the caches: members on other cores
//! then fetch the lines from memory, many at a time, and take none out of the master's cache; nor does the master wait for lines that they have.
//! Of long ones that would be a part of what is written to memory, and that is what takes the time: they stay in the caches, unless that is far
//! slower ([`Trial`]).

use core::ops::Range;

use super::record::Shared;
use super::spread::{processor, spread};
use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::clock::now_ns;
use crate::base::copying::{Copying, long};
use crate::base::run::Run;
use crate::wait::Waiter;

/// Bytes of a chunk: a part of a core's own cache. What is not longer is copied into the block in one go.
pub(super) const CHUNK: usize = if cfg!(loom) { 16 } else { 64 << 10 };
/// Words of a line.
const LINE: usize = 16;

/// The chunks of a block that is followed.
pub(super) struct Chunks<'a> {
    shared: &'a Shared<'a>,
    /// Bytes of the message.
    len: usize,
}

/// How the master of a long message copies: by both ways by turns at first, then by the better one. Within the caches it may take half as long again,
/// since the members' copies then have the memory for themselves; but where cores have no cache in common each line that a member has read costs
/// ten times as much. The first chunks may be where none has read before, so those that follow are timed, too.
#[derive(Default)]
struct Trial {
    /// The shortest times of the first chunks: within the caches, past them.
    took: [Option<u64>; 2],
    /// Chunks in a row that took far longer within the caches.
    slow: usize,
}

impl Trial {
    /// Chunks that go both ways by turns.
    const FIRST: usize = 4;
    /// So many slow ones in a row, and all that follow go past the caches.
    const ENOUGH: usize = 3;

    fn how(&self, chunk: usize) -> Copying {
        let cached = match self.took {
            [Some(cached), Some(past)] if chunk >= Trial::FIRST => 2 * cached <= 3 * past && self.slow < Trial::ENOUGH,
            _ => chunk.is_multiple_of(2),
        };
        if cached { Copying::Cached } else { Copying::Past }
    }

    /// A chunk was copied in this way in `spent` nanoseconds.
    fn note(&mut self, chunk: usize, how: Copying, spent: u64) {
        if chunk < Trial::FIRST {
            let least = &mut self.took[(how == Copying::Past) as usize];
            *least = Some(least.map_or(spent, |before| before.min(spent)));
        } else if how == Copying::Cached && self.slow < Trial::ENOUGH {
            let remote_longer = self.took[1].is_some_and(|past| spent > 2 * past);
            self.slow = if remote_longer { self.slow + 1 } else { 0 };
        }
    }
}

impl<'a> Chunks<'a> {
    /// Bytes behind the data of a message of `len` bytes to so many members.
    pub(super) fn bytes(len: usize, members: usize) -> usize {
        // To the next line, the chunks' places, the members' lines.
        64 + (len.div_ceil(CHUNK).next_multiple_of(LINE) + members * LINE) * 4
    }

    pub(super) fn new(shared: &'a Shared<'a>) -> Chunks<'a> {
        Chunks { shared, len: shared.size }
    }

    fn word(&self, n: usize) -> &'a AtomicU32 {
        assert!(64 + n * 4 < Chunks::bytes(self.len, self.shared.count));
        self.shared.data().record(self.len.next_multiple_of(64) + n * 4).expect("within the block")
    }
    /// In which place a chunk is.
    fn place(&self, chunk: usize) -> &'a AtomicU32 {
        assert!(chunk < self.len.div_ceil(CHUNK));
        self.word(chunk)
    }
    /// How many chunks a member has.
    fn taken(&self, number: u32) -> &'a AtomicU32 {
        self.word(self.len.div_ceil(CHUNK).next_multiple_of(LINE) + number as usize * LINE)
    }

    /// On which processor a member has begun, + 1; 0: it has not.
    fn begun_at(&self, number: u32) -> &'a AtomicU32 {
        self.word(self.len.div_ceil(CHUNK).next_multiple_of(LINE) + number as usize * LINE + 1)
    }

    /// Nothing is there, and nobody has any.
    pub(super) fn begin(&self) {
        for number in 0..self.shared.count as u32 {
            self.taken(number).store(0, Ordering::Relaxed);
            self.begun_at(number).store(0, Ordering::Relaxed);
        }
        self.shared.record.master_at.store(processor(), Ordering::Relaxed);
        self.shared.record.there.store(0, Ordering::Relaxed);
        self.shared.record.followed.store(1, Ordering::Relaxed);
    }

    /// Where ranks share cores: gives way until all members but `me` have begun, but for no longer than a quarter of what a copy takes. One
    /// that is told by another, and shares the master's core, would begin when the master is done.
    pub(super) fn make_way(&self, me: Option<u32>) {
        if self.len < long() {
            return;
        }
        let (mut waiter, until) = (Waiter::new(), now_ns() + self.len as u64 / 64);
        let has_begun = |n| Some(n) == me || self.begun_at(n).load(Ordering::Relaxed) != 0;
        while !(0..self.shared.count as u32).all(has_begun) && now_ns() < until {
            waiter.spin();
        }
    }

    /// Where ranks share cores: a member begins; if it `moves`, on a core with few others that are at this message.
    pub(super) fn set_out(&self, number: u32, moves: bool) {
        if self.len < long() {
            return;
        }
        let begun_at = self.begun_at(number);
        // Relaxed, here and above: who runs where is a guess, and nothing follows from it but where a thread runs.
        begun_at.store(processor().max(1), Ordering::Relaxed);
        if !moves {
            return;
        }
        let is_at_it =
            |n: &u32| *n != number && self.taken(*n).load(Ordering::Relaxed) < self.len.div_ceil(CHUNK) as u32;
        let members = (0..self.shared.count as u32).filter(is_at_it).map(|n| self.begun_at(n).load(Ordering::Relaxed));
        let master = (self.there() < self.len).then(|| self.shared.record.master_at.load(Ordering::Relaxed));
        begun_at.store(spread(&members.chain(master).collect::<Vec<_>>()).max(1), Ordering::Relaxed);
    }

    /// The master's part; how many places it has used. Where members share its core it does not make way for them: who waits for more takes
    /// a turn with each chunk, and whoever comes later finds several.
    pub(super) fn fill(&self, from: Run) -> usize {
        let len = from.len();
        let members = self.shared.count as u32;
        // SYNC POINT: pairs with the release in `take`: the copies out of a chunk come before another chunk in its place.
        let taken = || (0..members).map(|m| self.taken(m).load(Ordering::Acquire)).min().unwrap_or(0) as usize;
        // Places that nobody needs, of those that were used; chunks that have left theirs; places that were used at all.
        let (mut free, mut left, mut used) = (Vec::new(), 0, 0);
        let (mut trial, long) = (Trial::default(), len >= self::long());
        for chunk in 0..len.div_ceil(CHUNK) {
            let by_all = taken();
            while left < by_all {
                free.push(self.place(left).load(Ordering::Relaxed));
                left += 1;
            }
            let place = free.pop().unwrap_or_else(|| {
                used += 1;
                used - 1
            });
            let (at, n) = (chunk * CHUNK, CHUNK.min(len - chunk * CHUNK));
            let how = if long { trial.how(chunk) } else { Copying::Past };
            let begin = if long { now_ns() } else { 0 };
            from.part(at, n).copy_to_by(self.shared.data().part(place as usize * CHUNK, n), how);
            if long {
                trial.note(chunk, how, now_ns() - begin);
            }
            self.place(chunk).store(place, Ordering::Relaxed);
            // SYNC POINT: pairs with the acquire in `there`. After the last one the block is the members'.
            self.shared.record.there.store((at + n) as u64, Ordering::Release);
            // A model looks first at what the members make of it.
            #[cfg(loom)]
            if at + n < len {
                crate::base::atomics::spin_loop();
            }
        }
        used as usize
    }

    /// Bytes of the message that are there.
    pub(super) fn there(&self) -> usize {
        // SYNC POINT: pairs with the release in `fill`.
        (self.shared.record.there.load(Ordering::Acquire) as usize).min(self.len)
    }

    /// Member `number` copies chunks that are there, as far as its buffer goes; up to which byte it has the message then. `None`: a chunk is
    /// in no place.
    pub(super) fn take(&self, number: u32, range: Range<usize>, to: Run) -> Option<usize> {
        let n = to.len().min(self.len);
        let how = Copying::of(n);
        let mut at = range.start;
        while at < range.end {
            let (chunk, end) = (at / CHUNK, (at + CHUNK).min(self.len));
            let from = self.place(chunk).load(Ordering::Relaxed) as usize * CHUNK;
            if from + (end - at) > self.len {
                return None;
            }
            let (begin, until) = (at.min(n), end.min(n));
            self.shared.data().after(from).copy_to_by(to.part(begin, until - begin), how);
            // SYNC POINT: pairs with the acquire in `fill`.
            self.taken(number).store(chunk as u32 + 1, Ordering::Release);
            at = end;
        }
        Some(at)
    }
}
