//! A wait of a message that is being sent: for room, or until it is taken.

use super::*;

/// How long whoever waits for room yields its core before it sleeps: as long as it takes to empty a good part of a ring. Others wait as well.
pub(super) const YIELDS_NS: u64 = 100_000;
/// How long it sleeps at most: a receiver that has freed a few places, and waits for something else then, does not ring.
const LOOKS_NS: u64 = 50_000_000;

/// What a message that is being sent waits for.
pub(in crate::p2p::any_source) struct Waiting<'a> {
    pub(super) ep: &'static Endpoint,
    pub(super) message: &'a Message,
}

impl Waiting<'_> {
    fn local(&self) -> Option<&Ring> {
        match &self.message.out.way {
            Way::Local(local) => Some(&local.ring),
            Way::Remote(_) => None,
        }
    }
    /// Is it for room in a ring of this node?
    fn is_for_room(&self) -> bool {
        matches!(self.message.stage, Stage::Waits) && self.local().is_some()
    }
}

impl Scene for Waiting<'_> {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        match &self.message.stage {
            Stage::Offered(offered) => Some(offered.asleep(self.ep)),
            _ => None,
        }
    }
    fn is_ordered(&self) -> bool {
        match (&self.message.stage, &self.message.out.way) {
            // The receiver rings for what it finds in its own region.
            (Stage::Waits | Stage::Unconfirmed(_), Way::Local(Local { peer: Some(peer), .. })) => {
                peer.region.header().is_ordered()
            }
            _ => self.ep.is_ordered(),
        }
    }
    fn bits(&self) -> u32 {
        match &self.message.stage {
            Stage::Waits => crate::p2p::any_source::share::ROOM_BITS,
            Stage::Unconfirmed(_) => !crate::p2p::any_source::share::ROOM_BITS,
            Stage::Offered(_) | Stage::RemoteOffered(_) => doorbell::bit(self.message.out.index as usize),
        }
    }
    /// Many processes wait for room in one ring: they sleep on a bell of the ring.
    fn bell(&self) -> &AtomicU32 {
        match (&self.message.stage, self.local()) {
            (Stage::Waits | Stage::Unconfirmed(_), Some(ring)) => &ring.header().bell,
            _ => &self.ep.board().bell,
        }
    }
    fn fall_asleep(&self) -> bool {
        // A ring on another node is looked at again and again.
        let Some(ring) = self.local() else { return false };
        match &self.message.stage {
            Stage::RemoteOffered(_) => return false,
            Stage::Offered(offered) => {
                let word = offered.asleep(self.ep);
                // SYNC POINT: pairs with the receiver's look at it after it has changed the offer; ordered by `membarrier`.
                word.store(word.load(Ordering::Relaxed) | ASLEEP, Ordering::Relaxed);
            }
            // Nobody rings for room in the spool.
            Stage::Waits if self.message.is_long() && self.message.payload.is_none() => return false,
            // The receiver takes it away when it rings.
            Stage::Waits => {
                ring.header().wanted.fetch_or(ROOM, Ordering::AcqRel);
                // SYNC POINT: pairs with the fence in the receiver's `look_for_sleepers`.
                fence(Ordering::SeqCst);
            }
            Stage::Unconfirmed(_) => drop(ring.header().wanted.fetch_or(TAKEN, Ordering::AcqRel)),
        }
        true
    }
    fn needs_barrier(&self) -> bool {
        !self.is_for_room()
    }
    fn longest_ns(&self) -> u64 {
        if self.is_for_room() { LOOKS_NS } else { u64::MAX }
    }
    fn yields_ns(&self) -> u64 {
        if self.is_for_room() { YIELDS_NS } else { u64::MAX }
    }
    fn ready(&self) -> bool {
        let message = self.message;
        let late = || message.timeout >= 0 && now_ns() >= message.deadline_ns;
        match (&message.stage, &message.out.way) {
            (Stage::Offered(offered), _) => {
                matches!(offered.fetch(self.ep), Fetch::Asked | Fetch::Done | Fetch::Streaming) || late()
            }
            (Stage::RemoteOffered(payload), _) => payload.is_done(self.ep) || late(),
            (_, Way::Remote(road)) => road.is_due(),
            (Stage::Waits, Way::Local(local)) => local.ring.header().sent.load(Ordering::Relaxed) < local.ring.room(),
            (Stage::Unconfirmed(ticket), Way::Local(local)) => local.ring.is_taken(*ticket),
        }
    }
    fn meanwhile(&self) -> bool {
        let more = self.ep.waiting_sends.push(self.ep);
        if let Way::Remote(road) = &self.message.out.way {
            road.tend();
        }
        let late = matches!(self.message.stage, Stage::Offered(_)) && self.message.timeout >= 0;
        more | self.ep.any_source.push(self.ep) | late
    }
    fn gone(&self) -> Option<Error> {
        let out = self.message.out;
        let damaged = || {
            let full =
                matches!(self.message.stage, Stage::Waits) && self.local().is_some_and(|ring| ring.is_damaged(None));
            full.then_some("has a ring whose counters have been damaged by some rank")
        };
        out.takes_nothing_more(self.ep).or_else(damaged).map(|what| out.gone_error(self.ep, what))
    }
    /// Not while the receiver may fetch the message out of the caller's memory.
    fn may_be_left(&self) -> bool {
        matches!(self.message.stage, Stage::Waits | Stage::Unconfirmed(_))
    }
    fn waits(&self) -> Waits {
        let out = self.message.out;
        Waits {
            operation: Operation::SendAny,
            peer: out.rank,
            index: out.index,
            comm: out.comm,
            bytes: self.message.data.len() as u64,
            since_ns: 0,
        }
    }
}
