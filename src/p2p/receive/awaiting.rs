//! What a receive waits for.

use super::*;

/// The wait for a split line: its sender is at work, and wakes nobody when it has written it.
pub(super) struct Splitting {
    pub wait: Awaiting,
    pub which: usize,
}

impl Scene for Splitting {
    fn board(&self) -> &'static Board {
        self.wait.board()
    }
    fn bits(&self) -> u32 {
        self.wait.bits()
    }
    fn ready(&self) -> bool {
        is_split(self.wait.lane, self.which, self.wait.slot, self.wait.seq)
    }
    fn gone(&self) -> Option<Error> {
        self.wait.gone()
    }
    fn may_end(&self) -> bool {
        false
    }
    fn waits(&self) -> Waits {
        self.wait.waits()
    }
}

/// What a receive waits for.
pub(in crate::p2p) struct Awaiting {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub seq: u64,
}

impl Scene for Awaiting {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        self.lane.remote().is_none().then(|| &self.lane.receiving(self.slot).1.rx)
    }
    fn is_ordered(&self) -> bool {
        self.lane.is_ordered()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(self.slot)
    }
    fn ready(&self) -> bool {
        let r = Receiver::of_message(self.ep, self.lane, self.slot, Layout::NOTHING, 0, self.seq);
        r.look().is_some()
    }
    fn naps(&self) -> u32 {
        self.lane.naps()
    }
    fn longest_ns(&self) -> u64 {
        self.lane.tend_within_ns()
    }
    fn fall_asleep(&self) -> bool {
        self.lane.fall_asleep(self.sleep_word())
    }
    fn meanwhile(&self) -> bool {
        self.ep.meanwhile(self.lane)
    }
    fn gone(&self) -> Option<Error> {
        self.ep.gone(self.lane, self.slot, "recv from")
    }
    fn may_be_left(&self) -> bool {
        // A message of a collective call is a part of what others wait for.
        self.slot >= SYSTEM_INDICES
    }
    fn waits(&self) -> Waits {
        Waits {
            operation: Operation::Recv,
            peer: self.lane.world,
            index: self.slot as i32 - SYSTEM_INDICES as i32,
            comm: self.lane.comm(),
            bytes: 0,
            since_ns: 0,
        }
    }
}
