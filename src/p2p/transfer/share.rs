//! One copy by the kernel, whose pieces both sides claim.

use super::{Chunk, Put, across_to};
use crate::base::atomics::{Ordering, fence};
use crate::base::error::Result;
use crate::base::layout::Form;
use crate::fabric::shm::across::Way::{Pull, Push};
use crate::fabric::shm::cma::CmaError;
use crate::lane::map::TRANSFERS;
use crate::lane::record::*;
use crate::lane::{SendState, WayTaken};
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::wait::Waiter;

impl Sender {
    /// Shares the copying with the receiver, if that comes before it is over; of a request nobody waits for the receiver's pieces. `None`: no
    /// transfer block is free.
    pub(super) fn share(&mut self, target: Form, n: usize) -> Option<Put> {
        let lane = self.lane;
        // The message before this one is received, so nobody looks any more how it went.
        self.end_offer();
        let (block, tag) = self.claim_transfer()?;
        let t = lane.transfer(lane.out, block);
        let piece = self.ways().coop_piece;
        let pieces = pieces_of(n, piece);
        self.describe(t, tag, piece);
        t.claim.store(claim_word(tag, 0), Ordering::Relaxed);
        self.take_landing();
        let side = lane.send_side(self.slot);
        side.transfer.set(block as u32 + 1);
        side.tag.set(tag);
        self.publish(WayTaken::Shared, Kind::Coop, self.len as u64, block as u64 | (tag as u64) << 32);
        let mut done = 0u32;
        while let Some(k) = t.claim(tag, pieces) {
            let (at, end) = bounds_of(n, piece, k);
            match across_to(lane, Push, self.data, target, at, end - at) {
                Ok(()) => done += 1,
                Err(CmaError::Gone) => {
                    let gone = lane.peer_error(self.ep.rank, "has died", "send to", self.index());
                    return Some(Put::Failed(gone));
                }
                Err(e) => {
                    self.not_allowed(e);
                    t.settle(tag, OFFER_REFUSED);
                    break;
                }
            }
        }
        // SYNC POINT: pairs with the acquire in `Receiver::share`.
        t.done_s.store((tag as u64) << 32 | done as u64, Ordering::Release);
        side.theirs.set(pieces - done);
        let scene = self.waiting(true, true);
        let mut waiter = Waiter::new();
        loop {
            if self.has_been_copied() {
                return Some(Put::Done);
            }
            if self.request {
                return Some(Put::Under(SendState::Shared));
            }
            if waiter.spin() {
                continue;
            }
            if self.was_moved() {
                return Some(Put::Done);
            }
            if let Err(e) = waiter.slow(&scene) {
                self.end_offer();
                return Some(Put::Failed(e));
            }
        }
    }

    /// Has the message that was shared gone, one way or the other?
    pub fn has_been_shared(&mut self) -> bool {
        self.has_been_copied() || self.was_moved()
    }

    /// Has the receiver copied the pieces that it has claimed?
    fn has_been_copied(&self) -> bool {
        let side = self.lane.send_side(self.slot);
        let t = self.lane.transfer(self.lane.out, side.transfer.get() as usize - 1);
        // SYNC POINT: pairs with the release in `Receiver::share`: it reads our memory no more.
        if word_of(t.done_r.load(Ordering::Acquire), side.tag.get()).unwrap_or(0) == side.theirs.get() {
            self.end_offer();
            return true;
        }
        false
    }

    /// Was the message moved into the spool, since a piece could not be copied?
    fn was_moved(&mut self) -> bool {
        // The block stays until the next message: the receiver may come long after, and must not take the block of another transfer for the
        // end of this one.
        self.is_refused() && self.move_offer(true)
    }

    /// No more copies by the kernel with this peer, if that is what it said.
    fn not_allowed(&self, e: CmaError) {
        if let Some(peer) = self.lane.peer.as_ref().filter(|_| e == CmaError::Denied) {
            peer.cma_off();
        }
    }
}

/// Pieces of a shared copy of `n` bytes: two halves when a half is no longer than `piece`, since each call to the kernel costs as
/// much as copying 20 KiB; for more bytes runs of four, two long ones and two short ones that even out who was late.
fn pieces_of(n: usize, piece: usize) -> u32 {
    if n <= 2 * piece { 2 } else { 4 * n.div_ceil(8 * piece) as u32 }
}

/// The same, of a size of pieces that a peer has written; `None`: no copy is cut so.
fn pieces_of_peer(n: usize, piece: usize) -> Option<u32> {
    let counted = piece != 0 && n / piece < 1 << 30;
    (counted && piece <= usize::MAX >> 8).then(|| pieces_of(n, piece))
}

/// Where piece `k` begins and ends.
fn bounds_of(n: usize, piece: usize, k: u32) -> (usize, usize) {
    // A model's messages are short.
    const GRAIN: usize = if cfg!(loom) { 16 } else { 4096 };
    let place = |tenths: usize, run: usize, from: usize| {
        (from + (run / 16 * tenths + run % 16 * tenths / 16).next_multiple_of(GRAIN)).min(from + run)
    };
    if n <= 2 * piece {
        let half = place(8, n, 0);
        return if k == 0 { (0, half) } else { (half, n) };
    }
    let runs = pieces_of(n, piece) as usize / 4;
    let (run, part) = (k as usize / 4, k as usize % 4);
    let begin = |run: usize| (n as u128 * run as u128 / runs as u128) as usize;
    let from = begin(run);
    let len = begin(run + 1) - from;
    let cuts = [0, 6, 12, 14, 16];
    (
        if part == 0 { from } else { place(cuts[part], len, from) },
        if part == 3 { from + len } else { place(cuts[part + 1], len, from) },
    )
}

fn word_of(word: u64, tag: u32) -> Option<u32> {
    ((word >> 32) as u32 == tag).then_some(word as u32)
}

impl Receiver {
    /// The transfer block that a landing names, and for which message.
    pub(super) fn named(&self, at: u64) -> Result<(&'static Transfer, u32)> {
        let block = (at & 0xffff_ffff) as usize;
        if block >= TRANSFERS {
            return Err(self.garbled("a landing, which names a transfer block"));
        }
        Ok((self.lane.transfer(self.lane.inn, block), (at >> 32) as u32))
    }

    /// Does its share of a copy that the sender has begun, and waits for the sender's.
    pub fn share(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (t, tag) = self.named(at)?;
        let piece = t.piece.load(Ordering::Relaxed) as usize;
        // A transfer that is over may have made room for the next one in its block; then the tag no longer fits, here or below.
        if word_of(t.done_s.load(Ordering::Acquire), tag).is_none() {
            return Ok(());
        }
        let described = self.source(t, n).zip(pieces_of_peer(n, piece));
        // SYNC POINT: pairs with the fence in `describe`: what was read may be the next transfer's, and then the claims say so.
        fence(Ordering::Acquire);
        if word_of(t.claim.load(Ordering::Acquire), tag).is_none() {
            return Ok(());
        }
        let Some((source, pieces)) = described else { return Err(self.garbled("a transfer block")) };
        let mut done = 0u32;
        while let Some(k) = t.claim(tag, pieces) {
            let (from, end) = bounds_of(n, piece, k);
            match across_to(lane, Pull, self.data, source, from, end - from) {
                Ok(()) => done += 1,
                Err(CmaError::Gone) => {
                    return Err(lane.peer_error(self.ep.rank, "has died", "recv from", self.index()));
                }
                Err(_) => {
                    t.settle(tag, OFFER_REFUSED);
                    self.wake_sender();
                    break;
                }
            }
            // SYNC POINT: pairs with the acquire in `Sender::has_been_shared`.
            t.done_r.store((tag as u64) << 32 | done as u64, Ordering::Release);
        }
        let moved = claim_word(tag, OFFER_MOVED);
        let mut waiter = Waiter::new();
        loop {
            let now = t.done_s.load(Ordering::Acquire);
            match word_of(now, tag) {
                // The sender has finished and gone on.
                None => return Ok(()),
                // It writes into our memory no more.
                Some(theirs) if theirs.wrapping_add(done) == pieces => return Ok(()),
                _ => {}
            }
            if !waiter.spin() {
                if t.offer.load(Ordering::Relaxed) == moved {
                    return self.take_moved(t, tag, n);
                }
                let ready = || t.done_s.load(Ordering::Relaxed) != now || t.offer.load(Ordering::Relaxed) == moved;
                // A sender that lives may be writing into our memory, whatever it has damaged.
                if let Err(e) = waiter.slow(&Chunk { wait: self.awaiting(), ready: &ready })
                    && lane.is_dead()
                {
                    return Err(e);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whatever a damaged peer says of the size of pieces, they are of the message, or there are none.
    #[test]
    fn no_size_of_pieces_is_too_wild() {
        for n in [1, 4096, 70_000, 1 << 30, 1 << 46, isize::MAX as usize] {
            for piece in [0, 1, 2, 3, 4096, 1 << 20, 1 << 40, 1 << 55, 1 << 56, 1 << 63, usize::MAX] {
                let Some(pieces) = pieces_of_peer(n, piece) else { continue };
                for k in [0, 1, 2, pieces / 2, pieces - 1] {
                    let (from, end) = bounds_of(n, piece, k);
                    assert!(from <= end && end <= n, "{n} {piece} {k}: {from} to {end}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_every_byte_once(n in 1usize..50_000_000, piece in 1usize..2_000_000) {
            let pieces = pieces_of(n, piece);
            let mut at = 0;
            for k in 0..pieces {
                let (from, end) = bounds_of(n, piece, k);
                prop_assert_eq!(from, at);
                prop_assert!(end >= from);
                at = end;
            }
            prop_assert_eq!(at, n);
        }
    }
}
