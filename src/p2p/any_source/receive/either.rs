//! Two rings for one index: that of this node's senders and that of all others', in turn.

use std::sync::{Arc, OnceLock};

use super::{Arrived, Incoming};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::{Code, Error, Result};
use crate::lane::far::{Ask, Asked};
use crate::p2p::any_source::far::FarRing;
use crate::p2p::any_source::garbled;
use crate::p2p::any_source::ring::{Arrival, Kind};
use crate::p2p::endpoint::Endpoint;

/// The receiver's part of a far ring. The thread that has the ring claimed uses it.
pub(super) struct FarSide {
    pub(super) ring: OnceLock<Arc<FarRing>>,
    /// How many far rings this process had when this one was looked for last.
    pub(super) looked: AtomicU32,
    /// The next ticket to be taken.
    pub(super) next: AtomicU64,
    /// 1: the far ring is looked at first.
    pub(super) turn: AtomicU32,
}

impl Incoming {
    /// From the two rings in turn.
    ///
    /// # Safety
    /// As for [`Incoming::take`].
    #[inline(never)]
    pub(super) unsafe fn take_either(
        &self,
        ep: &'static Endpoint,
        far: &FarSide,
        to: *mut u8,
        cap: usize,
    ) -> Result<Option<Arrived>> {
        let first = far.turn.load(Ordering::Relaxed);
        for turn in [first, 1 - first] {
            // SAFETY: as the caller promises.
            let taken =
                unsafe { if turn == 1 { self.take_far(ep, far, to, cap)? } else { self.take_near(ep, to, cap)? } };
            if taken.is_some() {
                far.turn.store(1 - turn, Ordering::Relaxed);
                return Ok(taken);
            }
        }
        Ok(None)
    }

    /// The far ring, once a sender of another node has asked for it.
    pub(super) fn far_ring<'a>(&self, ep: &Endpoint, far: &'a FarSide) -> Option<&'a FarRing> {
        if let Some(ring) = far.ring.get() {
            return Some(ring);
        }
        // SYNC POINT: pairs with the release in `make_far_ring`.
        let made = ep.any_source.far_made.load(Ordering::Acquire);
        if made == far.looked.swap(made, Ordering::Relaxed) {
            return None;
        }
        let ring = ep.any_source.far_ring(self.domain.number, self.index)?;
        far.next.store(ring.freed(), Ordering::Relaxed);
        let ring = far.ring.get_or_init(|| ring);
        // SAFETY: claimed, as for all that takes messages.
        let armed = unsafe { (*self.pending.get()).is_some() } && ep.event.get().is_some();
        ring.set_asleep(armed);
        Some(ring)
    }

    /// What is next in the far ring. Slots that turned out not to be needed are passed over.
    pub(super) fn far_arrival<'a>(&self, ep: &Endpoint, far: &'a FarSide) -> Option<(&'a FarRing, u64, Arrival)> {
        let ring = self.far_ring(ep, far)?;
        loop {
            let ticket = far.next.load(Ordering::Relaxed);
            let arrival = ring.arrival(ticket)?;
            if arrival.kind != Kind::Nothing {
                return Some((ring, ticket, arrival));
            }
            far.next.store(ticket + 1, Ordering::Relaxed);
            ring.free(ticket + 1);
        }
    }

    /// # Safety
    /// As for [`Incoming::take`].
    pub(super) unsafe fn take_far(
        &self,
        ep: &'static Endpoint,
        far: &FarSide,
        to: *mut u8,
        cap: usize,
    ) -> Result<Option<Arrived>> {
        let Some((ring, ticket, arrival)) = self.far_arrival(ep, far) else { return Ok(None) };
        let mut len = arrival.len as usize;
        let mut fetched = Ok(());
        if arrival.kind == Kind::Area {
            // SAFETY: as the caller promises; `deliver` bounds by the slot.
            unsafe { ring.deliver(ticket, to, cap.min(len)) };
        } else {
            let away = ring.away(ticket);
            len = away.len as usize;
            let source = self.domain.rank_here(arrival.source);
            let lane = ep.context(self.comm).and_then(|context| ep.lane_of(context, source));
            fetched = match lane.as_ref().map(|lane| lane.far()) {
                // SAFETY: as the caller promises.
                Ok(Some(far)) => unsafe { away.fetch(far, arrival.kind == Kind::Offered, to, cap) },
                _ => Err(garbled(ep, arrival.source)),
            };
        }
        far.next.store(ticket + 1, Ordering::Relaxed);
        ring.free(ticket + 1);
        fetched.map_err(|e| self.lost(ep, arrival.source, len, &e))?;
        Ok(Some(Arrived { source: self.domain.rank_here(arrival.source), len, capacity: cap }))
    }

    #[cold]
    pub(super) fn lost(&self, ep: &Endpoint, source: u32, len: usize, why: &Error) -> Error {
        let (me, index) = (ep.rank, self.index);
        Error::new(
            Code::Peer,
            format!(
                "rank {me}: any-source receive on index {index}: a message of {len} bytes of rank {source} could not be fetched and is \
                 lost, later receives go on: {}",
                why.detail()
            ),
        )
    }

    /// Where the message is that `take` would take: who sent it, how long it is. The next `take` takes it.
    pub(super) fn peek(&self, ep: &Endpoint) -> Option<Arrived> {
        let Some(far) = &self.far else { return self.peek_near() };
        let first = far.turn.load(Ordering::Relaxed);
        for turn in [first, 1 - first] {
            let found = if turn == 1 { self.peek_far(ep, far) } else { self.peek_near() };
            if found.is_some() {
                far.turn.store(turn, Ordering::Relaxed);
                return found;
            }
        }
        None
    }

    pub(super) fn peek_far(&self, ep: &Endpoint, far: &FarSide) -> Option<Arrived> {
        let (ring, ticket, arrival) = self.far_arrival(ep, far)?;
        let len = if arrival.kind == Kind::Area { arrival.len as u64 } else { ring.away(ticket).len };
        Some(Arrived { source: self.domain.rank_here(arrival.source), len: len as usize, capacity: 0 })
    }

    /// Has a rank of another node this ticket of the far ring?
    pub(super) fn has_ticket(&self, ep: &'static Endpoint, rank: u32, ring: &FarRing, ticket: u64) -> bool {
        let known = ep.fabric_here().is_some_and(|fabric| fabric.links().iter().any(|l| l.peer == rank));
        let here = self.domain.rank_here(rank);
        let lane = || ep.context(self.comm).and_then(|context| ep.lane_of(context, here)).ok();
        // Who has no connection with this process has drawn no ticket.
        let Some(lane) = known.then(lane).flatten() else { return false };
        let asked = Asked { what: Ask::Ticket, slot: 0, seq: ticket, at: ring.place().0.addr };
        lane.far().and_then(|far| far.ask_for(asked, || lane.gone().is_none())).flatten().is_some()
    }

    /// Senders of other nodes call this process when they have sent something, or do not.
    pub(super) fn set_asleep_far(&self, asleep: bool) {
        if let Some(ring) = self.far.as_ref().and_then(|far| far.ring.get()) {
            ring.set_asleep(asleep);
        }
    }
}
