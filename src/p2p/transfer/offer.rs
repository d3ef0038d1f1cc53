//! A message that its sender offers and its receiver pulls; and what becomes of it when the sender needs its memory first.

use super::{Chunk, across_to, cma_allowed};
use crate::base::atomics::Ordering;
use crate::base::config::Way;
use crate::base::error::Result;
use crate::base::layout::Cursor;
use crate::base::trace::traced;
use crate::fabric::shm::across::Way::Pull;
use crate::fabric::shm::cma::CmaError;
use crate::lane::record::*;
use crate::lane::{SendState, WayTaken};
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::wait::{Waiter, doorbell};

impl Sender {
    /// Offers the message for the receiver to pull. `false`: it must wait for its posting.
    pub fn offer(&mut self) -> bool {
        let lane = self.lane;
        let way = self.ep.tuning.way;
        if lane.is_self() || !cma_allowed(lane) || !matches!(way, Way::Auto | Way::Cma | Way::Coop) {
            return false;
        }
        if !self.consumed_all() {
            return false;
        }
        self.end_offer();
        let Some((block, tag)) = self.claim_transfer() else { return false };
        let t = lane.transfer(lane.out, block);
        self.describe(t, tag, self.len.max(1));
        self.take_landing();
        let side = lane.send_side(self.slot);
        side.transfer.set(block as u32 + 1);
        side.tag.set(tag);
        self.publish(WayTaken::Pulled, Kind::Pull, self.len as u64, block as u64 | (tag as u64) << 32);
        true
    }

    /// The offer's block is free again: its message is acknowledged, or was moved. Also that of a shared copy that was moved, when the next
    /// message is to go.
    pub fn end_offer(&self) {
        let side = self.lane.send_side(self.slot);
        if side.transfer.get() != 0 {
            self.release_transfer(side.transfer.get() as usize - 1);
            side.transfer.set(0);
        }
    }

    /// Would the kernel not copy it?
    pub fn is_refused(&self) -> bool {
        let side = self.lane.send_side(self.slot);
        let t = self.lane.transfer(self.lane.out, side.transfer.get() as usize - 1);
        t.offer.load(Ordering::Relaxed) == claim_word(side.tag.get(), OFFER_REFUSED)
    }

    /// Moves an offered message into the spool, so that its memory is the caller's again. `false`: no room, or the receiver
    /// has it already and will acknowledge. `posted`: a receive is posted for it, and for that there is room beyond the limit.
    pub fn move_offer(&mut self, posted: bool) -> bool {
        let (lane, spool) = (self.lane, &self.ep.spool);
        let side = lane.send_side(self.slot);
        let t = lane.transfer(lane.out, side.transfer.get() as usize - 1);
        let open = claim_word(side.tag.get(), OFFER_OPEN);
        let refused = claim_word(side.tag.get(), OFFER_REFUSED);
        let state = t.offer.load(Ordering::Relaxed);
        if state != open && state != refused {
            return false;
        }
        if side.block.get().is_some() {
            spool.give_back(side.block.get());
            side.block.set(crate::lane::BlockRef::NONE);
        }
        let block = spool.take(lane.comm(), self.len, self.len);
        let beyond = || posted.then(|| spool.take_beyond(lane.comm(), self.len, self.len)).flatten();
        let Some(block) = block.or_else(beyond) else { return false };
        self.sign(spool.block(block.at));
        let at = block.at + BLOCK_HEADER as u64;
        Cursor::new(self.data, 0).gather(spool.run(at, self.len));
        // Beside the posting, not in the block, which is free for another offer once this one is moved.
        lane.shape(lane.out, self.slot).moved.store(at, Ordering::Relaxed);
        // SYNC POINT: pairs with the receiver's compare-and-swap in `Receiver::pull`: one of the two wins.
        if t.offer
            .compare_exchange(state, claim_word(side.tag.get(), OFFER_MOVED), Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            spool.give_back(block);
            return false;
        }
        side.block.set(block);
        lane.count_spooled(self.slot);
        lane.count_apart(self.slot);
        traced!(lane.note_moved(self.slot, self.len, self.seq));
        spool.block(block.at).owner.store(lane.owner(self.slot, lane.world), Ordering::Relaxed);
        side.spooled_landing.set(self.seq_sent());
        lane.note_spooled(self.slot);
        side.state.set(SendState::Sent);
        true
    }

    fn seq_sent(&self) -> u64 {
        self.lane.progress(self.slot).sent.load(Ordering::Relaxed)
    }
}

impl Receiver {
    /// Fetches an offered message, or what the sender has moved into its spool meanwhile.
    pub fn pull(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (t, tag) = self.named(at)?;
        if t.settle(tag, OFFER_TAKEN) {
            let Some(source) = self.source(t, n) else { return Err(self.garbled("a transfer block")) };
            match across_to(lane, Pull, self.data, source, 0, n) {
                Ok(()) => return Ok(()),
                Err(CmaError::Gone) => {
                    return Err(lane.peer_error(self.ep.rank, "has died", "recv from", self.index()));
                }
                Err(_) => t.offer.store(claim_word(tag, OFFER_REFUSED), Ordering::Relaxed),
            }
            self.wake_sender();
        }
        self.take_moved(t, tag, n)
    }

    /// The sender, which may sleep in its wait, is to look at its offer.
    pub(super) fn wake_sender(&self) {
        doorbell::light_barrier();
        let sleep = self.lane.receiving(self.slot).0.tx.load(Ordering::Relaxed) & 0xff;
        if sleep != 0 {
            crate::p2p::send::wake(self.lane, self.slot, sleep);
        }
    }

    /// Fetches a message that the sender has moved into its spool, or is about to.
    pub(super) fn take_moved(&self, t: &Transfer, tag: u32, n: usize) -> Result<()> {
        let lane = self.lane;
        // Anything but what this side wrote there means that it is moved, and perhaps that the block serves another offer by now.
        // SYNC POINT: pairs with `Sender::move_offer`; a later offer's word is stored after the block was released and claimed.
        let refused = claim_word(tag, OFFER_REFUSED);
        let spool = lane.peer_spool(&self.ep.region)?;
        let mut waiter = Waiter::new();
        while t.offer.load(Ordering::Acquire) == refused {
            if !waiter.spin() {
                waiter.slow(&Chunk { wait: self.awaiting(), ready: &|| t.offer.load(Ordering::Relaxed) != refused })?;
            }
        }
        let at = lane.shape(lane.inn, self.slot).moved.load(Ordering::Relaxed);
        let block = at.checked_sub(BLOCK_HEADER as u64).and_then(|at| spool.block(at));
        let Some((block, from)) = block.and_then(|b| Some((b, b.bytes(BLOCK_HEADER as u64, n as u64)?))) else {
            return Err(self.garbled("the place of an offered message"));
        };
        Cursor::new(self.data, 0).scatter(from);
        block.finish_this();
        Ok(())
    }
}
