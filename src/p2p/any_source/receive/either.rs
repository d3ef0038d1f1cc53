//! Several rings for one index, looked at in turn: the shares of that of this node's senders, and those of all others'.

use std::sync::{Arc, OnceLock};

use super::{Arrived, Death, Incoming};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::{Code, Error, Result, error};
use crate::base::run::Run;
use crate::lane::remote::{Ask, Asked};
use crate::p2p::any_source::garbled;
use crate::p2p::any_source::remote::{Away, RemoteRing, RemoteShare};
use crate::p2p::any_source::ring::{Arrival, Kind};
use crate::p2p::any_source::share::Share;
use crate::p2p::endpoint::Endpoint;

/// Where messages come besides the first share. The thread that has the ring claimed uses it.
///
/// All are counted through: the shares of this node's senders first, from 0 on, then those of senders of other nodes.
pub(super) struct Sides {
    /// The shares of this node's senders from the second one on.
    pub(super) shares: Box<[Share]>,
    /// Senders of other nodes, if there are such members.
    remote: Option<RemoteSide>,
    /// Which is looked at first.
    turn: AtomicU32,
    /// A share + 1 of which a message is in the caller's buffer in part: nothing else may go there. 0: none.
    underway: AtomicU32,
}

/// The receiver's part of a remote ring.
struct RemoteSide {
    made: OnceLock<Made>,
    /// How many remote rings this process had when this one was looked for last.
    looked: AtomicU32,
}

/// A remote ring, once a sender of another node has asked for it.
struct Made {
    ring: Arc<RemoteRing>,
    /// The next ticket to be taken, of each share.
    next: Box<[AtomicU64]>,
}

impl Sides {
    /// `spans`: there are members on other nodes.
    pub(super) fn new(shares: Vec<Share>, spans: bool) -> Sides {
        let remote = spans.then(|| RemoteSide { made: OnceLock::new(), looked: AtomicU32::new(0) });
        Sides { shares: shares.into(), remote, turn: AtomicU32::new(0), underway: AtomicU32::new(0) }
    }
}

impl Incoming {
    /// Are there members on other nodes?
    pub(super) fn spans(&self) -> bool {
        self.remote_side().is_some()
    }

    fn remote_side(&self) -> Option<&RemoteSide> {
        self.sides.as_ref()?.remote.as_ref()
    }

    /// Takes the next message from whichever has one, in turn.
    #[inline(never)]
    pub(super) fn take_any(&self, ep: &'static Endpoint, sides: &Sides, to: Run) -> Result<Option<Arrived>> {
        let local = 1 + sides.shares.len();
        let all = local + sides.remote.as_ref().map_or(0, |remote| self.remote_shares(ep, remote));
        let (first, looks) = match sides.underway.load(Ordering::Relaxed) {
            0 => (sides.turn.load(Ordering::Relaxed) as usize, all),
            n => (n as usize - 1, 1),
        };
        for n in 0..looks {
            let taken = self.take_of(ep, sides, (first + n) % all, all, to)?;
            if taken.is_some() || sides.underway.load(Ordering::Relaxed) != 0 {
                return Ok(taken);
            }
        }
        Ok(None)
    }

    /// The same from one of `all`.
    fn take_of(&self, ep: &'static Endpoint, sides: &Sides, at: usize, all: usize, to: Run) -> Result<Option<Arrived>> {
        let local = 1 + sides.shares.len();
        let taken = if at < local {
            let share = if at == 0 { &self.first } else { &sides.shares[at - 1] };
            let taken = self.take_local(ep, share, to);
            let underway = matches!(taken, Ok(None)) && self.is_underway_in(ep, share);
            sides.underway.store(if underway { at as u32 + 1 } else { 0 }, Ordering::Relaxed);
            taken?
        } else {
            self.take_remote(ep, at - local, to)?
        };
        if taken.is_some() {
            sides.turn.store(((at + 1) % all) as u32, Ordering::Relaxed);
        }
        Ok(taken)
    }

    /// Takes the message that [`Incoming::peek`] has found, or the one of which a part is in the buffer, and no other.
    pub(in crate::p2p::any_source) fn take_turn(&self, ep: &'static Endpoint, to: Run) -> Result<Option<Arrived>> {
        let Some(sides) = &self.sides else {
            return self.take(ep, to);
        };
        let all = 1 + sides.shares.len() + sides.remote.as_ref().map_or(0, |remote| self.remote_shares(ep, remote));
        let at = match sides.underway.load(Ordering::Relaxed) {
            0 => sides.turn.load(Ordering::Relaxed) as usize,
            n => n as usize - 1,
        };
        self.take_of(ep, sides, at, all, to)
    }

    /// Is the message that [`Incoming::peek`] has found of this kind, and of this node?
    pub(in crate::p2p::any_source) fn turn_is(&self, kind: Kind) -> bool {
        let at = self.sides.as_ref().map_or(0, |sides| sides.turn.load(Ordering::Relaxed) as usize);
        self.shares().nth(at).and_then(|share| share.arrival()).is_some_and(|a| a.kind == kind)
    }

    /// Where the message is that `take` would take: who sent it, how long it is. The next `take` takes it.
    pub(in crate::p2p::any_source) fn peek(&self, ep: &Endpoint) -> Option<Arrived> {
        let Some(sides) = &self.sides else { return self.peek_local(&self.first) };
        let local = 1 + sides.shares.len();
        let all = local + sides.remote.as_ref().map_or(0, |remote| self.remote_shares(ep, remote));
        let first = sides.turn.load(Ordering::Relaxed) as usize;
        (0..all).map(|n| (first + n) % all).find_map(|at| {
            let found = match at {
                0 => self.peek_local(&self.first),
                at if at < local => self.peek_local(&sides.shares[at - 1]),
                at => self.peek_remote(at - local),
            };
            found.inspect(|_| sides.turn.store(at as u32, Ordering::Relaxed))
        })
    }

    // ---- the remote ring

    /// Are half of the slots taken that the remote ring has, or is there one that was never looked at?
    pub(super) fn is_crowded_remote(&self, ep: &Endpoint) -> bool {
        let Some(remote) = self.remote_side() else { return false };
        match remote.made.get() {
            Some(made) => (0..made.next.len()).any(|n| made.ring.share(n).is_half_full()),
            None => ep.any_source.remote_made.load(Ordering::Relaxed) != remote.looked.load(Ordering::Relaxed),
        }
    }

    /// How many shares the remote ring has: none, before a sender of another node has asked for it.
    fn remote_shares(&self, ep: &Endpoint, remote: &RemoteSide) -> usize {
        if let Some(made) = remote.made.get() {
            return made.next.len();
        }
        // SYNC POINT: pairs with the release in `make_remote_ring`.
        let count = ep.any_source.remote_made.load(Ordering::Acquire);
        if count == remote.looked.swap(count, Ordering::Relaxed) {
            return 0;
        }
        let Some(ring) = ep.any_source.remote_ring(self.domain.number, self.index) else { return 0 };
        let next = (0..ring.shares()).map(|n| AtomicU64::new(ring.share(n).freed())).collect();
        let made = remote.made.get_or_init(|| Made { ring, next });
        let armed = self.pending.get().is_some() && ep.event.get().is_some();
        made.ring.set_asleep(armed);
        made.next.len()
    }

    /// What is next in a share of the remote ring. Slots that turned out not to be needed are passed over.
    fn remote_arrival(&self, share: usize) -> Option<(RemoteShare<'_>, u64, Arrival, Option<Away>)> {
        let made = self.remote_side()?.made.get()?;
        let (next, share) = (made.next.get(share)?, made.ring.share(share));
        loop {
            let ticket = next.load(Ordering::Relaxed);
            let Some((arrival, away)) = share.arrival(ticket) else {
                share.run_dry();
                return None;
            };
            if arrival.kind != Kind::Nothing {
                return Some((share, ticket, arrival, away));
            }
            next.store(ticket + 1, Ordering::Relaxed);
            share.free(ticket + 1);
        }
    }

    /// Is there a message of another node?
    pub(super) fn has_remote_arrival(&self, ep: &Endpoint) -> bool {
        self.remote_side()
            .is_some_and(|remote| (0..self.remote_shares(ep, remote)).any(|n| self.remote_arrival(n).is_some()))
    }

    /// The slot that is next in a share of the remote ring is done with.
    pub(super) fn pass_over_remote(&self, share: usize) {
        if let Some(made) = self.remote_side().and_then(|remote| remote.made.get()) {
            let next = made.next[share].fetch_add(1, Ordering::Relaxed) + 1;
            made.ring.share(share).free(next);
        }
    }

    fn take_remote(&self, ep: &'static Endpoint, share: usize, to: Run) -> Result<Option<Arrived>> {
        let Some((ring, ticket, arrival, away)) = self.remote_arrival(share) else { return Ok(None) };
        let source = self.domain.rank_here(arrival.source);
        if arrival.kind == Kind::Damaged || source < 0 {
            self.pass_over_remote(share);
            return Err(self.damaged(ep, arrival.source));
        }
        let mut len = arrival.len as usize;
        let mut fetched = Ok(());
        if let Some(away) = away {
            len = away.len as usize;
            let lane = ep.context(self.comm).and_then(|context| ep.lane_of(context, source));
            fetched = match lane.as_ref().map(|lane| lane.remote()) {
                Ok(Some(remote)) => away.fetch(remote, arrival.kind == Kind::Offered, to),
                _ => Err(garbled(ep, arrival.source)),
            };
        } else {
            ring.deliver(ticket, to.first(len));
        }
        self.pass_over_remote(share);
        fetched.map_err(|e| self.lost(ep, arrival.source, len, &e))?;
        Ok(Some(Arrived { source, len, capacity: to.len() }))
    }

    #[cold]
    fn lost(&self, ep: &Endpoint, source: u32, len: usize, why: &Error) -> Error {
        let (me, index) = (ep.rank, self.index);
        error!(
            Code::Peer,
            "rank {me}: any-source receive on index {index}: a message of {len} bytes of rank {source} could not be fetched and is \
                 lost, later receives go on: {}",
            why.detail()
        )
    }

    fn peek_remote(&self, share: usize) -> Option<Arrived> {
        let (_, _, arrival, away) = self.remote_arrival(share)?;
        let len = away.map_or(arrival.len as u64, |away| away.len);
        Some(Arrived { source: self.domain.rank_here(arrival.source), len: len as usize, capacity: 0 })
    }

    /// Has somebody of another node a ticket whose message has not come?
    pub(super) fn has_remote_claim(&self, ep: &Endpoint) -> bool {
        let Some(remote) = self.remote_side() else { return false };
        let shares = self.remote_shares(ep, remote);
        let Some(made) = remote.made.get() else { return false };
        (0..shares).any(|n| {
            let (share, ticket) = (made.ring.share(n), made.next[n].load(Ordering::Relaxed));
            share.is_claimed(ticket) && share.arrival(ticket).is_none()
        })
    }

    /// What deaths mean for the remote ring, of which nothing has come. `None`: nothing; `Some(None)`: what is missing is on its way.
    pub(super) fn look_for_remote_holes(
        &self,
        ep: &'static Endpoint,
        dead: &[u32],
        elsewhere: &[u32],
    ) -> Option<Option<Death>> {
        let remote = self.remote_side()?;
        let shares = self.remote_shares(ep, remote);
        let made = remote.made.get()?;
        let mut claimed = false;
        for n in 0..shares {
            let (share, ticket) = (made.ring.share(n), made.next[n].load(Ordering::Relaxed));
            if share.is_damaged(ticket, ep.size as u64) && share.arrival(ticket).is_none() {
                return Some(Some(Death::Damaged(1 + self.others().len() + n)));
            }
            if !share.is_claimed(ticket) {
                continue;
            }
            claimed = true;
            // Everything that the others have written under it is here when they have answered.
            let has = |rank: &u32| !dead.contains(rank) && self.has_ticket(ep, *rank, share, ticket);
            if !self.domain.group.members().any(|r| has(&r)) && share.arrival(ticket).is_none() {
                let owner = dead.iter().find(|r| elsewhere.contains(r)).or(dead.first());
                return Some(owner.map(|r| Death::RemoteHole(n, *r)));
            }
        }
        claimed.then_some(None)
    }

    /// Has a rank of another node this ticket of a share of the remote ring?
    fn has_ticket(&self, ep: &'static Endpoint, rank: u32, share: RemoteShare<'_>, ticket: u64) -> bool {
        let here = self.domain.rank_here(rank);
        let lane = || ep.context(self.comm).and_then(|context| ep.lane_of(context, here)).ok();
        // Who has not asked for a ring here has drawn no ticket, and need not answer: it may be late.
        let Some(lane) = ep.may_hold_a_ticket(rank).then(lane).flatten() else { return false };
        let asked = Asked { what: Ask::Ticket, slot: 0, seq: ticket, at: share.place().0.addr };
        lane.remote().and_then(|remote| remote.ask_for(asked, || lane.gone().is_none())).flatten().is_some()
    }

    /// With an event descriptor: senders of other nodes call this process.
    pub(super) fn arm_remote(&self, ep: &Endpoint) {
        if self.remote_side().is_some_and(|remote| self.remote_shares(ep, remote) != 0) {
            self.set_asleep_remote(true);
        }
    }

    /// Senders of other nodes call this process when they have sent something, or do not.
    pub(super) fn set_asleep_remote(&self, asleep: bool) {
        if let Some(made) = self.remote_side().and_then(|remote| remote.made.get()) {
            made.ring.set_asleep(asleep);
        }
    }
}
