//! Through a ring of a few chunks: two copies, by both sides at the same time, in the caches.

use super::Chunk;
use crate::base::atomics::Ordering;
use crate::base::error::Result;
use crate::base::layout::Cursor;
use crate::lane::map::{RING_BYTES, RING_CHUNKS, RINGS, ring_pitch};
use crate::lane::record::Kind;
use crate::lane::{Lane, WayTaken};
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::wait::Waiter;

/// Messages of more bytes than this leave the inner caches on their way: their chunks lie apart.
const LONG: usize = 64 << 10;

impl Sender {
    /// Through a ring. `false`: none is free.
    pub(super) fn through_ring(&mut self, n: usize) -> Result<bool> {
        let lane = self.lane;
        let Some(ring) = claim_ring(lane) else { return Ok(false) };
        let log = self.ways().ring_chunk.trailing_zeros();
        let spread = self.len > LONG;
        let (chunk, pitch) = (1usize << log, ring_pitch(log, spread));
        let places = (RING_BYTES / pitch).min(RING_CHUNKS).min(self.ways().ring_chunks);
        let first = lane.ring_sent[ring].load(Ordering::Relaxed);
        self.take_landing();
        self.publish(
            WayTaken::Ring,
            Kind::Ring,
            self.len as u64,
            ring as u64 | (log as u64) << 8 | (spread as u64) << 15 | (places as u64) << 16 | first << 24,
        );
        // The message is published; from here on it is given up only if the peer dies.
        let consumed = &lane.ring_flag(lane.out, ring, RING_CHUNKS).n;
        let data = lane.ring_data(lane.out, ring);
        let scene = self.waiting(true, true);
        let mut from = Cursor::new(self.data, 0);
        // Everything that ever went through it is consumed.
        let mut seen = first;
        let (mut k, mut left) = (first, n);
        while left > 0 {
            if k.saturating_sub(seen) >= places as u64 {
                let mut waiter = Waiter::new();
                loop {
                    // SYNC POINT: pairs with the release in `Receiver::through_ring`.
                    seen = consumed.load(Ordering::Acquire);
                    if k.checked_sub(seen).is_none_or(|ahead| ahead < places as u64) {
                        break;
                    }
                    if !waiter.spin()
                        && let Err(e) = waiter.slow(&scene)
                    {
                        release_ring(lane, ring);
                        return Err(e);
                    }
                }
            }
            let place = (k % places as u64) as usize;
            let bytes = left.min(chunk);
            from.gather(data.part(place * pitch, bytes));
            // SYNC POINT: pairs with the acquire in `Receiver::through_ring`.
            lane.ring_flag(lane.out, ring, place).n.store(k + 1, Ordering::Release);
            left -= bytes;
            k += 1;
        }
        lane.ring_sent[ring].store(k, Ordering::Relaxed);
        release_ring(lane, ring);
        Ok(true)
    }
}

/// A ring that nobody uses and whose chunks are all consumed.
fn claim_ring(lane: &Lane) -> Option<usize> {
    for ring in 0..RINGS {
        let bit = 1u32 << ring;
        if lane.rings_used.load(Ordering::Relaxed) & bit != 0
            || lane.rings_used.fetch_or(bit, Ordering::Acquire) & bit != 0
        {
            continue;
        }
        let sent = lane.ring_sent[ring].load(Ordering::Relaxed);
        if lane.ring_flag(lane.out, ring, RING_CHUNKS).n.load(Ordering::Acquire) == sent {
            return Some(ring);
        }
        release_ring(lane, ring);
    }
    None
}

fn release_ring(lane: &Lane, ring: usize) {
    lane.rings_used.fetch_and(!(1 << ring), Ordering::Release);
}

impl Receiver {
    /// Takes `n` bytes out of a ring as they come.
    pub fn through_ring(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (ring, log, places, first) = ((at & 0xff) as usize, (at >> 8 & 0x7f) as u32, (at >> 16 & 0xff), at >> 24);
        let spread = at >> 15 & 1 != 0;
        if ring >= RINGS
            || !(8..=16).contains(&log)
            || places == 0
            || places as usize * ring_pitch(log, spread) > RING_BYTES
        {
            return Err(self.garbled("a landing, which names a ring"));
        }
        let pitch = ring_pitch(log, spread);
        let data = lane.ring_data(lane.inn, ring);
        let consumed = &lane.ring_flag(lane.inn, ring, RING_CHUNKS).n;
        let mut to = Cursor::new(self.data, 0);
        let (mut k, mut left) = (first, n);
        while left > 0 {
            let place = k % places;
            let flag = &lane.ring_flag(lane.inn, ring, place as usize).n;
            let mut waiter = Waiter::new();
            // SYNC POINT: pairs with the release in `Sender::through_ring`.
            while flag.load(Ordering::Acquire) != k + 1 {
                if !waiter.spin() {
                    waiter.slow(&Chunk { wait: self.awaiting(), ready: &|| flag.load(Ordering::Relaxed) == k + 1 })?;
                }
            }
            let bytes = left.min(1 << log);
            let from = data.part(place as usize * pitch, bytes);
            to.scatter(from);
            from.take_over();
            left -= bytes;
            k += 1;
            consumed.store(k, Ordering::Release);
        }
        Ok(())
    }
}
