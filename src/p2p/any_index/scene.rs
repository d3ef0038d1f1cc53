//! The wait of a receive of any index.

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
        self.lane.far().is_none().then(|| &self.lane.my_side().any_sleep)
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
