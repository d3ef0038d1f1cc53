//! A wait for a message of any source.

use super::*;

/// A waiting receive looks at the senders' counters once in so many slow turns.
const LOOKS: u32 = if cfg!(loom) { u32::MAX } else { 64 };

/// What a receive of any source waits for.
pub(super) struct Waiting<'a> {
    pub ep: &'static Endpoint,
    pub inc: &'a Incoming,
    /// The death that was found last, if it was found at the last look.
    pub found: Cell<Option<Death>>,
    /// When it makes the acquaintance of the members on this node next; 0: the wait has not begun.
    pub next_ns: Cell<u64>,
    /// Looks so far.
    pub looks: Cell<u32>,
}

/// From the acquaintance of one member to that of the next, of a request that is only tested.
pub(super) const MEETING_NS: u64 = 10_000_000;
/// A receive that waits so long makes the acquaintance of all members on this node: of who is not known no death would be told. And of one on
/// another node, as long as none is known to live.
pub(super) const ACQUAINTANCE_NS: u64 = 200_000_000;

impl<'a> Waiting<'a> {
    pub fn new(ep: &'static Endpoint, inc: &'a Incoming) -> Waiting<'a> {
        Waiting { ep, inc, found: Cell::new(None), next_ns: Cell::new(0), looks: Cell::new(0) }
    }

    fn acquaint(&self) {
        let now = now_ns();
        let next = self.next_ns.get();
        if next != 0 && now >= next {
            self.ep.meet_members(&self.inc.domain.group);
            self.inc.meet_elsewhere(self.ep);
        }
        if now >= next {
            self.next_ns.set(now + ACQUAINTANCE_NS);
        }
    }
}

impl Scene for Waiting<'_> {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        Some(&self.inc.first.ring.header().asleep)
    }
    fn is_ordered(&self) -> bool {
        self.ep.is_ordered()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(self.inc.index as usize)
    }
    fn fall_asleep(&self) -> bool {
        self.inc.shares().for_each(|share| crate::wait::mark_asleep(&share.ring.header().asleep));
        self.inc.set_asleep_remote(true);
        true
    }
    fn wake_up(&self) {
        for share in self.inc.shares() {
            let word = &share.ring.header().asleep;
            word.store(word.load(Ordering::Relaxed) & !ASLEEP, Ordering::Relaxed);
        }
        if self.inc.first.ring.header().asleep.load(Ordering::Relaxed) & EVENT == 0 {
            self.inc.set_asleep_remote(false);
        }
    }
    fn ready(&self) -> bool {
        self.inc.is_ready(self.ep)
    }
    fn meanwhile(&self) -> bool {
        if self.inc.spans() {
            self.ep.tend_links();
        }
        self.acquaint();
        self.ep.waiting_sends.push(self.ep) | self.ep.any_source.push(self.ep)
    }
    fn gone(&self) -> Option<Error> {
        // What senders write is looked at seldom: each look takes a line away from one of them.
        self.looks.set(self.looks.get().wrapping_add(1));
        let seldom = self.looks.get().is_multiple_of(LOOKS).then(|| self.inc.look_for_damage()).flatten();
        let death = seldom.or_else(|| self.inc.look_for_the_dead(self.ep));
        let error = death.as_ref().map(|death| self.inc.death_error(self.ep, death));
        self.found.set(death);
        error
    }
    fn may_be_left(&self) -> bool {
        true
    }
    fn waits(&self) -> Waits {
        Waits {
            operation: Operation::RecvAnySource,
            peer: self.ep.rank,
            index: self.inc.index,
            comm: self.inc.comm,
            bytes: 0,
            since_ns: 0,
        }
    }
}

impl Incoming {
    /// With an event descriptor: the sender of the next message is to ring.
    pub(super) fn arm(&self, ep: &'static Endpoint) {
        let Some(event) = ep.event.get() else { return };
        for share in self.shares() {
            let word = &share.ring.header().asleep;
            // SYNC POINT: pairs with the sender's look at it after it has published; ordered by `membarrier`.
            word.store(word.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        }
        ep.order_event(event, || ep.is_ordered());
        self.arm_remote(ep);
        if self.is_ready(ep) {
            event.signal();
        }
    }

    /// The request is over.
    pub(super) fn disarm(&self) {
        if self.first.ring.header().asleep.load(Ordering::Relaxed) & EVENT == 0 {
            return;
        }
        for share in self.shares() {
            let word = &share.ring.header().asleep;
            word.store(word.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
        }
        self.set_asleep_remote(false);
    }
}
