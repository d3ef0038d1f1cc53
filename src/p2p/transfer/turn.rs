//! Through memory that both directions use in turn: two copies, by both sides at the same time.
//!
//! A line is cheapest to write for who has read it last, and a message that finds room for all of its bytes never waits for its
//! receiver. So a pair has two areas, each held by one side. Who holds one may write a message there, and hands the area over with it:
//! when the receiver has read the message, it holds the area, and writes its own next message to lines that it has just read.
//! Messages back and forth find an area so, and both ways at once, where each side sends in the one and receives in the other; a
//! stream in one direction finds none after its first message, and goes through the ring.
//!
//! ```text
//!  area   | begin, chunk 0 | chunk 1 | ...    written by its holder, then read by the other, who holds it then
//!  flags  | tag     | tag     | ...           lines of their own: the chunk of the message of that tag is there
//! ```
//!
//! Tags count the messages of an area, so no flag of an earlier one passes for one of this.

use super::Chunk;
use crate::base::atomics::Ordering;
use crate::base::config::Way;
use crate::base::copying::Copying;
use crate::base::error::Result;
use crate::base::layout::{Cursor, Form, Layout};
use crate::base::tuning::Crossovers;
use crate::lane::map::{PAGE, TURN_BYTES, TURN_CHUNKS, TURNS};
use crate::lane::record::Kind;
use crate::lane::{Lane, WayTaken};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::wait::Waiter;

/// log2 of the bytes of the smallest and the largest chunk. (A model's messages are short.)
const CHUNK_LOGS: core::ops::RangeInclusive<u32> = if cfg!(loom) { 6..=17 } else { 11..=17 };

/// The lines that copies are aligned to.
const LINE: usize = 64;
/// Up to so many bytes an area has memory at once.
const AT_ONCE: u64 = (128 << 10) + PAGE as u64;
/// More it gets when messages that are so many times as long as what it grows by could have gone there: a page that is touched for the first
/// time costs some 30 times what a page is copied faster by.
const EARNED: u64 = 32;

/// log2 of the bytes of the chunks of a message: a quarter of it, but no more than what the inner caches keep of several, unless there
/// would be too many.
fn chunk_log(n: usize) -> u32 {
    let log = n.next_power_of_two().trailing_zeros();
    let most = if log <= 18 { 14 } else { 15.max(log - TURN_CHUNKS.trailing_zeros()) };
    log.saturating_sub(2).clamp(*CHUNK_LOGS.start(), most)
}

/// Where a message begins in an area: as far into a line as in its own memory, in whole words, so that lines are copied to lines; and where it
/// is received at such a place, too, both times.
fn begin(data: Layout, n: usize) -> usize {
    match data.form() {
        Form::Contiguous(run) if n <= TURN_BYTES - LINE => (run.ptr().addr() % LINE) & !7,
        _ => 0,
    }
}

/// How a message is copied that stays within the receiver's caches.
fn by_string(ways: &Crossovers, n: usize) -> Copying {
    if n >= ways.turn_string { Copying::String } else { Copying::Cached }
}

impl Sender {
    /// Writes the message into an area that this side holds. `false`: it holds none.
    pub(super) fn in_turn(&mut self, n: usize) -> bool {
        let lane = self.lane;
        let begin = begin(self.data, n);
        let Some((area, tag)) = claim(self.ep, lane, begin + n) else { return false };
        let log = chunk_log(n);
        self.take_landing();
        let at = area as u64 | (log as u64) << 8 | (begin as u64 / 8) << 13 | tag << 16;
        self.publish(WayTaken::Turn, Kind::Turn, self.len as u64, at);
        let mut from = Cursor::new(self.data, 0).by(by_string(self.ways(), n));
        for (k, at) in (0..n).step_by(1 << log).enumerate() {
            from.gather(lane.turn_data(area).part(begin + at, (n - at).min(1 << log)));
            // SYNC POINT: pairs with the acquire in `Receiver::in_turn`.
            lane.turn_flag(area, k).n.store(tag, Ordering::Release);
        }
        true
    }
}

/// Takes an area that this side holds and that has, or gets, memory for `n` bytes: which one, and the tag of its next message.
fn claim(ep: &Endpoint, lane: &Lane, n: usize) -> Option<(usize, u64)> {
    let mut now = lane.turns.load(Ordering::Relaxed);
    loop {
        // In the beginning each side holds the area of its own direction; a bit is set when that has changed.
        let held = now ^ 1 << lane.out;
        let last = lane.turn_last.load(Ordering::Relaxed) as usize;
        let area = if held >> last & 1 != 0 { last } else { held.trailing_zeros() as usize };
        if area >= TURNS {
            return None;
        }
        // SYNC POINT: pairs with the release in `hold`: another thread may have read the last message there.
        match lane.turns.compare_exchange_weak(now, now ^ 1 << area, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) if has_memory(ep, lane, area, n) => {
                return Some((area, lane.turn_tags[area].load(Ordering::Relaxed) + 1));
            }
            Ok(_) => {
                hold(lane, area);
                return None;
            }
            Err(other) => now = other,
        }
    }
}

/// Does the area have memory for `n` bytes, or may it have more than it ever had? The caller holds it.
fn has_memory(ep: &Endpoint, lane: &Lane, area: usize, n: usize) -> bool {
    let reach = &lane.turn_reach[area];
    let (had, wanted) = (reach.load(Ordering::Relaxed), n.next_multiple_of(PAGE) as u64);
    if wanted <= had {
        return true;
    }
    if wanted > AT_ONCE && ep.tuning.way == Way::Auto {
        let missed = lane.turn_missed.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
        if missed < EARNED * (wanted - had) {
            return false;
        }
        lane.turn_missed.store(0, Ordering::Relaxed);
    }
    if ep.turn_memory.fetch_add(wanted - had, Ordering::Relaxed) + wanted - had > ep.config.turn_memory as u64 {
        ep.turn_memory.fetch_sub(wanted - had, Ordering::Relaxed);
        return false;
    }
    reach.store(wanted, Ordering::Relaxed);
    true
}

/// This side holds the area from now on.
fn hold(lane: &Lane, area: usize) {
    lane.turns.fetch_xor(1 << area, Ordering::Release);
}

impl Receiver {
    /// Takes `n` bytes out of an area as they come, and holds it then.
    pub fn in_turn(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (area, log, begin, tag) =
            ((at & 0xff) as usize, (at >> 8 & 0x1f) as u32, (at >> 13 & 7) as usize * 8, at >> 16);
        if area >= TURNS || !CHUNK_LOGS.contains(&log) || n > TURN_BYTES - begin {
            return Err(self.garbled("a landing, which names memory in turn"));
        }
        // With the area and the sender's memory longer messages fill the outer cache.
        let ways = self.ep.tuning.pair(lane.distance());
        let mut to = Cursor::new(self.data, 0).by(if n > ways.turn_past { Copying::Past } else { by_string(ways, n) });
        for (k, at) in (0..n).step_by(1 << log).enumerate() {
            let flag = &lane.turn_flag(area, k).n;
            let mut waiter = Waiter::new();
            // SYNC POINT: pairs with the release in `Sender::in_turn`.
            while flag.load(Ordering::Acquire) != tag {
                if !waiter.spin() {
                    waiter.slow(&Chunk { wait: self.awaiting(), ready: &|| flag.load(Ordering::Relaxed) == tag })?;
                }
            }
            to.scatter(lane.turn_data(area).part(begin + at, (n - at).min(1 << log)));
        }
        lane.turn_tags[area].store(tag, Ordering::Relaxed);
        lane.turn_last.store(area as u32, Ordering::Relaxed);
        // What was worth it to the sender is so to this side, too.
        lane.turn_missed.fetch_max(EARNED * n as u64, Ordering::Relaxed);
        hold(lane, area);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// All chunks of a message have a flag of their own.
    #[test]
    fn chunks_are_few() {
        for n in (1..TURN_BYTES).step_by(997).chain([TURN_BYTES]) {
            let log = chunk_log(n);
            assert!(CHUNK_LOGS.contains(&log), "{n}");
            assert!(n.div_ceil(1 << log) <= TURN_CHUNKS, "{n} bytes in chunks of {}", 1 << log);
        }
    }
}
