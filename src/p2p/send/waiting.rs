//! What a send waits for.

use super::*;

/// Is the receive of message `seq`, the last one published, known to be posted or done?
pub(super) fn is_confirmed(ep: &Endpoint, lane: &Lane, slot: usize, seq: u64) -> bool {
    lane.take_over_outgoing(slot);
    lane.posting_there(slot).seq.load(Ordering::Relaxed) >= seq || is_consumed(ep, lane, slot, seq)
}

/// Has the receiver consumed message `seq`, the last one published?
pub(crate) fn is_consumed(ep: &Endpoint, lane: &Lane, slot: usize, seq: u64) -> bool {
    lane.take_over_outgoing(slot);
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_CHAIN != 0 {
        // The receiver's progress in the chain stands in the block's own line.
        // SYNC POINT: pairs with the release in `Receiver::take`.
        ep.spool.block(lane.send_side(slot).block.get().at).taken.load(Ordering::Acquire) == seq as u32
    } else {
        lane.progress(slot).is_acked(seq) || lane.sending(slot).1.acked(seq)
    }
}

/// A send that waits.
pub(in crate::p2p) struct Waiting {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub seq: u64,
    pub len: usize,
    /// Waits until the message is acknowledged, not until it can go.
    pub confirm: bool,
    /// The receiver is at work in a transfer and rings for nothing in between: sleep shortly only.
    pub midway: bool,
}

impl Waiting {
    /// Would a receive of any index end this wait?
    fn synchronous(&self) -> bool {
        !self.midway
            && self.slot >= SYSTEM_INDICES
            && self.lane.special.load(Ordering::Relaxed) & SPECIAL_SYNCHRONOUS != 0
    }
}

impl Scene for Waiting {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&crate::base::atomics::AtomicU32> {
        (!self.midway && self.lane.remote().is_none()).then(|| &self.lane.sending(self.slot).0.tx)
    }
    fn is_ordered(&self) -> bool {
        self.lane.is_ordered()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(self.slot)
    }
    fn ready(&self) -> bool {
        self.lane.take_over_outgoing(self.slot);
        let any = self.synchronous() && any_index::is_posted(self.lane);
        if self.confirm {
            return any || is_confirmed(self.ep, self.lane, self.slot, self.seq);
        }
        let posted = self.lane.posting_there(self.slot).seq.load(Ordering::Relaxed) >= self.seq;
        let short = || is_short(self.ep, self.lane, self.slot, self.len);
        posted || (any || short()) && is_consumed(self.ep, self.lane, self.slot, self.seq - 1)
    }
    fn naps(&self) -> u32 {
        self.lane.naps()
    }
    fn longest_ns(&self) -> u64 {
        self.lane.tend_within_ns()
    }
    fn fall_asleep(&self) -> bool {
        if self.lane.remote().is_none() && self.synchronous() {
            any_index::want_posting(self.lane);
        }
        let word = self.sleep_word();
        if word.is_some() {
            self.lane.my_side().asleep.fetch_add(1, Ordering::Relaxed);
        }
        self.lane.fall_asleep(word)
    }
    fn wake_up(&self) {
        if let Some(word) = self.sleep_word() {
            crate::wait::mark_awake(word);
            self.lane.my_side().asleep.fetch_sub(1, Ordering::Relaxed);
        }
    }
    fn meanwhile(&self) -> bool {
        self.ep.meanwhile(self.lane)
    }
    fn may_end(&self) -> bool {
        !self.midway
    }
    fn may_be_left(&self) -> bool {
        !self.midway && self.slot >= SYSTEM_INDICES
    }
    fn gone(&self) -> Option<Error> {
        match self.midway {
            true => self.ep.peer_gone(self.lane, self.slot, "send to"),
            false => self.ep.gone(self.lane, self.slot, "send to"),
        }
    }
    fn waits(&self) -> Waits {
        Waits {
            operation: Operation::Send,
            peer: self.lane.world,
            index: self.slot as i32 - SYSTEM_INDICES as i32,
            comm: self.lane.comm(),
            bytes: self.len as u64,
            since_ns: 0,
        }
    }
}
