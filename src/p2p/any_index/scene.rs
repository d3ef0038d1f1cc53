//! The wait of a receive of any index, and its event.

use super::*;

/// What a receive of any index waits for.
pub(super) struct AnyScene {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
}

impl Scene for AnyScene {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        self.lane.remote().is_none().then(|| &self.lane.my_side().any_sleep)
    }
    fn is_ordered(&self) -> bool {
        self.lane.is_ordered()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(0)
    }
    fn ready(&self) -> bool {
        announced(self.lane).is_some() || self.lane.peer_side().any_overflow.load(Ordering::Relaxed) != 0
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
        let what = self.lane.gone()?;
        Some(self.lane.peer_error(self.ep.rank, what, "recv of any index from", TAG_ANY))
    }
    fn may_be_left(&self) -> bool {
        true
    }
    fn waits(&self) -> Waits {
        Waits {
            operation: Operation::RecvAny,
            peer: self.lane.world,
            index: TAG_ANY,
            comm: self.lane.comm(),
            bytes: 0,
            since_ns: 0,
        }
    }
}

/// With an event descriptor: the sender is to ring when it announces something.
pub(super) fn arm(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState) {
    let Some(event) = ep.event.get() else { return };
    let word = &lane.my_side().any_sleep;
    // SYNC POINT: pairs with the sender's look at it in `wake_receiver`.
    word.store(word.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
    ep.order_event(event, || lane.is_ordered());
    if let Some(remote) = lane.remote() {
        remote.fall_asleep();
    }
    if next(ep, lane, state).is_some() {
        event.signal();
    }
}

/// It need not ring any more.
pub(super) fn disarm(lane: &Lane) {
    let word = &lane.my_side().any_sleep;
    let now = word.load(Ordering::Relaxed);
    if now & EVENT != 0 {
        word.store(now & !EVENT, Ordering::Relaxed);
    }
}
