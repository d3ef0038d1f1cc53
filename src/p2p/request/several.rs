//! The wait for any of several requests.

use super::*;
use crate::p2p::receive::Awaiting;
use crate::wait::{Board, Operation, Waits};

/// Requests of which any ends a wait. Receives on an index say on their slots that this thread sleeps; for anything else nobody rings, and
/// the thread looks again after short sleeps.
pub struct Several {
    ep: &'static Endpoint,
    receives: Vec<Awaiting>,
    others: bool,
    one: Waits,
}

impl Several {
    /// None yet.
    pub fn new() -> Result<Several> {
        let ep = endpoint()?;
        let one = Waits { operation: Operation::Several, peer: ep.rank, index: 0, comm: 0, bytes: 0, since_ns: 0 };
        Ok(Several { ep, receives: Vec::new(), others: false, one })
    }

    /// The pending receive on (peer, index) as well.
    pub fn add_receive(&mut self, comm: i32, src: i32, index: i32) {
        match find(self.ep, comm, src, index) {
            Ok((lane, slot)) if index != TAG_ANY => {
                let seq = lane.progress(slot).received.load(Ordering::Relaxed) + 1;
                self.one = Waits { peer: lane.world, index, comm, ..self.one };
                // A lane on which a receive is pending stays.
                self.receives.push(Awaiting { ep: self.ep, lane: lane.lane(), slot, seq });
            }
            _ => self.add_other(),
        }
    }

    /// Another request as well.
    pub fn add_other(&mut self) {
        self.others = true;
    }
}

impl Scene for Several {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn bits(&self) -> u32 {
        self.receives.iter().fold(if self.others { u32::MAX } else { 0 }, |bits, r| bits | r.bits())
    }
    fn fall_asleep(&self) -> bool {
        if self.others {
            return false;
        }
        let asleep = self.receives.iter().take_while(|r| r.fall_asleep()).count();
        if asleep < self.receives.len() {
            self.receives[..asleep].iter().for_each(Scene::wake_up);
        }
        asleep == self.receives.len()
    }
    fn wake_up(&self) {
        self.receives.iter().for_each(Scene::wake_up);
    }
    fn is_ordered(&self) -> bool {
        self.receives.iter().all(Scene::is_ordered)
    }
    fn naps(&self) -> u32 {
        self.receives.iter().map(Scene::naps).max().unwrap_or(0)
    }
    fn longest_ns(&self) -> u64 {
        self.receives.iter().map(Scene::longest_ns).min().unwrap_or(u64::MAX)
    }
    fn ready(&self) -> bool {
        self.receives.iter().any(|r| r.ready() || r.lane.gone().is_some())
    }
    fn meanwhile(&self) -> bool {
        let more = self.ep.waiting_sends.push(self.ep);
        more | self.ep.any_source.push(self.ep)
    }
    // Who looks at each of them finds the dead.
    fn gone(&self) -> Option<Error> {
        None
    }
    fn may_be_left(&self) -> bool {
        true
    }
    fn waits(&self) -> Waits {
        match &self.receives[..] {
            // All are for one rank, so the wait may be part of a cycle.
            [first, more @ ..] if !self.others && more.iter().all(|r| r.lane.world == first.lane.world) => {
                first.waits()
            }
            _ => self.one,
        }
    }
}
