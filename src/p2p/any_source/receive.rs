//! Receiving from any source: the slots in the order of their tickets.

mod either;

use std::cell::Cell;
use std::collections::BTreeSet;

use super::key_of;
use super::offer::Fetching;
use super::ring::*;
use super::share::{Share, limit_of};
use super::stake::{Stakes, is_orphan};
use super::{Domain, check_buffer};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::Mutex;
use crate::base::run::Run;
use crate::base::table::{Key, Keyed};
use crate::base::trace::traced;
use crate::base::unwinding::NoWayOut;
use crate::lane::loan::Descriptor;
use crate::lane::record::{ASLEEP, EVENT};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::loan::Lent;
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell, patience};
use either::Sides;

/// What a receive has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Who sent it: rank in the communicator.
    pub source: i32,
    /// Bytes of the message.
    pub len: usize,
    /// Bytes of the buffer.
    pub capacity: usize,
}

impl Arrived {
    /// `Truncate` if the message was longer than the buffer.
    pub fn whole(&self, index: i32) -> Result<()> {
        if self.len <= self.capacity {
            return Ok(());
        }
        Err(Error::new(
            Code::Truncate,
            format!(
                "any-source receive on index {index}: a message of {} bytes of rank {} for a buffer of {}",
                self.len, self.source, self.capacity
            ),
        ))
    }
}

/// A waiting receive looks at the senders' counters once in so many slow turns.
const LOOKS: u32 = if cfg!(loom) { u32::MAX } else { 64 };

/// A ring of this process. The thread that has it claimed uses what is private.
#[repr(align(64))]
pub struct Incoming {
    key: Key,
    /// [`FREE`], [`HELD`] or [`COMPLETED`].
    busy: AtomicU32,
    /// 1: there is a request that is not completed. So long nobody who has the ring claimed waits, but who completes it.
    requested: AtomicU32,
    /// The ring for senders of this node, or its first share.
    first: Share,
    pub(super) comm: i32,
    pub(super) index: i32,
    domain: Domain,
    /// Where else messages come, if they do: other shares, senders of other nodes.
    sides: Option<Sides>,
    /// Where the message of a request goes that is not completed.
    pub(super) pending: Cell<Option<Run>>,
    /// Dead ranks that a receive here has told of.
    told: Mutex<BTreeSet<u32>>,
    /// The loan that was taken last, or one that a message is being received into. For the thread that has the ring claimed.
    pub(super) lent: Cell<Option<Lent>>,
    /// The same of ranks that have not answered for long.
    told_late: Mutex<BTreeSet<u32>>,
    /// A request that is tested again and again: when it makes the acquaintance of a member next; 0: it has just begun. And of which.
    meets_ns: AtomicU64,
    meets: AtomicU32,
}

// SAFETY: `pending` and `lent` are used only by the thread that has the ring claimed.
unsafe impl Send for Incoming {}
// SAFETY: as above.
unsafe impl Sync for Incoming {}

impl Keyed for Incoming {
    fn key(&self) -> Key {
        self.key
    }
}

/// Nobody has the ring claimed.
const FREE: u32 = 0;
/// A thread is in a call.
const HELD: u32 = 1;
/// A thread completes the request.
const COMPLETED: u32 = 2;

/// A thread's claim on a ring.
pub(super) struct Claim<'a>(&'a Incoming);

impl Drop for Claim<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT: pairs with the exchanges in `claim` and `claim_to_complete`.
        self.0.busy.store(FREE, Ordering::Release);
    }
}

/// What a death means for a receive that finds nothing.
enum Death {
    /// The next slot of this share was this rank's, and stays empty.
    Hole(usize, u32),
    /// The same in the far ring; if several have died it is one of them.
    FarHole(usize, u32),
    /// This rank has died; others may still send.
    News(u32),
    /// This rank has not answered for long; it may again.
    Late(u32),
    /// Nobody is left who could send.
    Alone,
    /// The counters of this share are damaged: which messages it has cannot be told any more.
    Damaged(usize),
}

impl Incoming {
    pub(super) fn new(
        key: Key,
        domain: Domain,
        (comm, index): (i32, i32),
        mut shares: Vec<Share>,
        spans: bool,
    ) -> Incoming {
        let first = shares.remove(0);
        Incoming {
            key,
            busy: AtomicU32::new(FREE),
            requested: AtomicU32::new(0),
            first,
            comm,
            index,
            domain,
            sides: (spans || !shares.is_empty()).then(|| Sides::new(shares, spans)),
            pending: Cell::new(None),
            told: Mutex::default(),
            lent: Cell::new(None),
            told_late: Mutex::default(),
            meets_ns: AtomicU64::new(0),
            meets: AtomicU32::new(0),
        }
    }

    /// Is there a request that is not completed? (For finalize, when no other thread is in a call.)
    pub fn is_pending(&self) -> bool {
        self.pending.get().is_some()
    }

    /// Takes the ring for a call of this thread.
    #[inline(always)]
    pub(super) fn claim(&self) -> Result<Claim<'_>> {
        // SYNC POINT: pairs with the release when the claim is dropped.
        match self.busy.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Claim(self)),
            Err(_) => Err(self.busy_error("another thread receives there")),
        }
    }

    /// The same to complete or withdraw the request. Whoever else looks at the ring meanwhile has it for a moment only, and does not count:
    /// `None`, or with `wait` the end of that moment.
    pub(super) fn claim_to_complete(&self, wait: bool) -> Result<Option<Claim<'_>>> {
        loop {
            // SYNC POINT: as in `claim`.
            match self.busy.compare_exchange(FREE, COMPLETED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Some(Claim(self))),
                Err(COMPLETED) => return Err(self.busy_error("another thread completes the request there")),
                Err(_) if self.requested.load(Ordering::Relaxed) == 0 => {
                    return Err(self.busy_error("another thread receives there"));
                }
                Err(_) if !wait => return Ok(None),
                Err(_) => crate::base::thread::yield_core(),
            }
        }
    }

    /// The request is over. The ring is claimed.
    pub(super) fn end(&self) {
        self.pending.set(None);
        self.requested.store(0, Ordering::Relaxed);
        self.disarm();
    }

    #[cold]
    pub(super) fn busy_error(&self, what: &str) -> Error {
        Error::new(Code::Busy, format!("any-source receive on index {}: {what}", self.index))
    }

    /// Begins a request.
    pub(super) fn begin(&self, ep: &'static Endpoint, to: Run) -> Result<()> {
        let _claim = self.claim()?;
        if self.pending.get().is_some() {
            return Err(self.busy_error("complete the pending request first"));
        }
        self.pending.set(Some(to));
        self.requested.store(1, Ordering::Relaxed);
        self.meets_ns.store(0, Ordering::Relaxed);
        self.arm(ep);
        Ok(())
    }

    /// Takes the next message if it is there. The ring is claimed.
    #[inline(always)]
    pub(super) fn take(&self, ep: &'static Endpoint, to: Run) -> Result<Option<Arrived>> {
        let taken = match &self.sides {
            None => self.take_near(ep, &self.first, to),
            Some(sides) => self.take_any(ep, sides, to),
        };
        traced!(self.note(ep, &taken));
        taken
    }

    /// An event, see [`trace`](crate::base::trace).
    #[cfg(feature = "trace")]
    fn note(&self, ep: &Endpoint, taken: &Result<Option<Arrived>>) {
        use crate::base::trace::{Event, What, note};
        let (Ok(Some(arrived)), Ok(context)) = (taken, ep.context(self.comm)) else { return };
        let (peer, bytes) = (context.group.world_rank(arrived.source as u32), arrived.len as u64);
        note(Event { peer, index: self.index, comm: self.comm, bytes, ..Event::new(What::Received, "any source") });
    }

    /// Takes the next message of a share if it is there.
    #[inline(always)]
    fn take_near(&self, ep: &'static Endpoint, share: &Share, to: Run) -> Result<Option<Arrived>> {
        let ticket = share.next();
        let Some(arrival) = share.ring.arrival(ticket) else { return Ok(None) };
        let len = match arrival.kind {
            Kind::Inline | Kind::Area => {
                share.ring.deliver(ticket, arrival.kind, to.first(arrival.len as usize));
                arrival.len as usize
            }
            Kind::Nothing | Kind::Damaged => {
                share.advance(ticket);
                return Err(self.damaged(ep, arrival.source));
            }
            Kind::Loan => match self.take_loan(ep, share, arrival.source, to)? {
                Some(len) => len,
                None => {
                    share.advance(ticket);
                    return Err(self.damaged(ep, arrival.source));
                }
            },
            Kind::Spooled | Kind::Offered => match self.fetch(ep, share, arrival, to) {
                Ok(None) => return Ok(None),
                Ok(Some(len)) => len,
                Err(e) => {
                    share.advance(ticket);
                    return Err(e);
                }
            },
        };
        share.advance(ticket);
        let source = self.domain.rank_here(arrival.source);
        if source < 0 {
            return Err(self.damaged(ep, arrival.source));
        }
        Ok(Some(Arrived { source, len, capacity: to.len() }))
    }

    /// A slot says what none can. Whoever sends here can have written it, so nobody is suspected.
    #[cold]
    pub(super) fn damaged(&self, ep: &Endpoint, source: u32) -> Error {
        let text = format!(
            "rank {}: any-source receive on index {}: a slot of the ring is damaged, which rank {source} is said to have filled; its \
             message is lost, later receives go on",
            ep.rank, self.index
        );
        Error::new(Code::Peer, text)
    }

    /// Nothing is there: senders that sleep are needed.
    pub(super) fn run_dry(&self, first: bool) {
        self.shares().for_each(|share| share.run_dry(first));
    }

    /// The shares behind the first one.
    fn others(&self) -> &[Share] {
        self.sides.as_ref().map_or(&[], |sides| &sides.shares)
    }

    fn shares(&self) -> impl Iterator<Item = &Share> {
        std::iter::once(&self.first).chain(self.others())
    }

    fn fetching(&self, ep: &'static Endpoint, share: &Share, source: u32) -> Fetching<'_> {
        Fetching { ep, inc: self, source, away: share.ring.away(share.next()) }
    }

    /// Fetches a long message; its length. `None`: its sender has to do something first.
    #[cold]
    fn fetch(&self, ep: &'static Endpoint, share: &Share, arrival: Arrival, to: Run) -> Result<Option<usize>> {
        let fetching = self.fetching(ep, share, arrival.source);
        let len = fetching.away.len as usize;
        if arrival.kind == Kind::Spooled {
            fetching.spooled(to)?;
            return Ok(Some(len));
        }
        if fetching.offered(to)? {
            return Ok(Some(len));
        }
        // It says no more, and has died: what it has said is looked at before.
        if ep.is_dead(arrival.source) && !fetching.is_ready() {
            return Err(fetching.lost());
        }
        Ok(None)
    }

    /// Would `take` find something to do?
    fn is_ready(&self, ep: &'static Endpoint) -> bool {
        self.has_far_arrival(ep)
            || self.shares().any(|share| match share.arrival() {
                None => false,
                Some(a) if a.kind == Kind::Offered => {
                    ep.is_dead(a.source) || self.fetching(ep, share, a.source).is_ready()
                }
                Some(_) => true,
            })
    }

    /// Are parts of the next message in the buffer of the pending request already?
    pub(super) fn is_underway(&self, ep: &'static Endpoint) -> bool {
        self.shares().any(|share| self.is_underway_in(ep, share))
    }

    /// Are they of the next message of this share?
    fn is_underway_in(&self, ep: &'static Endpoint, share: &Share) -> bool {
        let offered = share.arrival().filter(|a| a.kind == Kind::Offered);
        offered.is_some_and(|a| self.fetching(ep, share, a.source).is_underway())
    }

    fn peek_near(&self, share: &Share) -> Option<Arrived> {
        let arrival = share.arrival()?;
        let len = match arrival.kind {
            Kind::Inline | Kind::Area | Kind::Nothing | Kind::Damaged => arrival.len as usize,
            Kind::Spooled | Kind::Offered => share.ring.away(share.next()).len as usize,
            Kind::Loan => Descriptor::length(share.ring.away(share.next()).len) as usize,
        };
        Some(Arrived { source: self.domain.rank_here(arrival.source), len, capacity: 0 })
    }

    /// A share with counters that cannot be.
    fn look_for_damage(&self) -> Option<Death> {
        let damaged = |share: &Share| share.ring.is_damaged(Some(share.next())) && share.arrival().is_none();
        self.shares().position(damaged).map(Death::Damaged)
    }

    /// What deaths mean for a receive that finds nothing. Changes nothing.
    fn look_for_the_dead(&self, ep: &'static Endpoint) -> Option<Death> {
        if ep.deaths() != 0
            && let Some(found) = self.look_for_damage()
        {
            return Some(found);
        }
        let (elsewhere, late) =
            if self.spans() { (ep.lost_elsewhere(), ep.late_elsewhere()) } else { Default::default() };
        if ep.deaths() == 0 && elsewhere.is_empty() && late.is_empty()
            || self.shares().any(|share| share.arrival().is_some())
        {
            return None;
        }
        let is_dead = |rank: &u32| ep.is_dead(*rank) || elsewhere.contains(rank);
        let dead: Vec<u32> = self.domain.group.members().filter(is_dead).collect();
        if !late.is_empty() && self.has_far_claim(ep) {
            // The ticket may be that of one who is late, and nobody's message behind it can be taken.
            ep.give_up_late();
            return None;
        }
        if !dead.is_empty()
            && let Some(found) = self.look_for_far_holes(ep, &dead, &elsewhere)
        {
            return found;
        }
        let mut claimed = false;
        for (n, share) in self.shares().enumerate() {
            let ticket = share.next();
            if !share.ring.is_claimed(ticket) {
                continue;
            }
            claimed = true;
            let has = |rank: u32| {
                let stakes = |p: &crate::fabric::shm::peer::Peer| Stakes::of(&p.region).ok();
                let theirs = ep.known(rank).and_then(|p| stakes(&p));
                theirs.is_some_and(|s| s.has(ep.rank, share.at, ticket))
            };
            // A damaged rank's stakes may say anything: where nobody alive can have the ticket a dead one had it, and be it by writing to
            // the counter.
            let all_known = || self.domain.group.members().all(|rank| dead.contains(&rank) || self.knows(ep, rank));
            let first = || dead.first().copied().filter(|_| all_known());
            let owner = dead.iter().copied().find(|r| has(*r)).or_else(first);
            let living = |r: &u32| *r != ep.rank && !dead.contains(r);
            let living = || {
                ep.any_source.stakes.has(ep.rank, share.at, ticket)
                    || self.domain.group.members().filter(living).any(has)
            };
            if let Some(rank) = owner.filter(|_| is_orphan(&share.ring, ticket, || true, living)) {
                return Some(Death::Hole(n, rank));
            }
        }
        if claimed {
            return None;
        }
        let told = self.told.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(rank) = dead.iter().find(|r| !told.contains(r)) {
            return Some(Death::News(*rank));
        }
        let told_late = self.told_late.lock().unwrap_or_else(|e| e.into_inner());
        let untold = |r: &u32| late.contains(r) && !told_late.contains(r);
        if let Some(rank) = self.domain.group.members().find(untold) {
            return Some(Death::Late(rank));
        }
        (dead.len() as u32 + 1 >= self.domain.group.size() && ep.single_threaded()).then_some(Death::Alone)
    }

    /// Can this process look at the stakes of a rank that could send here?
    fn knows(&self, ep: &'static Endpoint, rank: u32) -> bool {
        rank == ep.rank || ep.contact_soon(rank).is_some() || ep.is_elsewhere(rank).is_ok_and(|far| far)
    }

    fn death_error(&self, ep: &Endpoint, death: &Death) -> Error {
        let of = |rank: u32| self.domain.rank_here(rank);
        let what = match death {
            Death::Hole(_, rank) | Death::FarHole(_, rank) => {
                format!(
                    "rank {} has died while it was sending here; that message is lost, later receives go on",
                    of(*rank)
                )
            }
            Death::News(rank) => {
                format!("rank {} has died; later receives go on with what the others send", of(*rank))
            }
            Death::Late(rank) => {
                let why = ep.link_to(*rank).and_then(|link| link.lateness().map(str::to_owned));
                let why = why.unwrap_or_else(|| "did not answer for long".to_owned());
                format!("rank {} {why}; later receives go on with what the others send", of(*rank))
            }
            Death::Alone => "every other rank has died".to_owned(),
            Death::Damaged(share) => {
                format!("the counters of its ring (share {share}) have been damaged by another rank")
            }
        };
        Error::new(Code::Peer, format!("rank {}: any-source receive on index {}: {what}", ep.rank, self.index))
    }

    /// The error of a request that a death has ended, at a test that has found nothing; the next one goes on behind it.
    #[cold]
    pub(super) fn after_death(&self, ep: &'static Endpoint) -> Option<Error> {
        if self.spans() {
            ep.tend_links();
        }
        self.meet_one(ep);
        self.look_for_the_dead(ep).map(|death| self.tell(ep, death))
    }

    /// Who only tests makes the acquaintance of the members on this node as a wait does, see [`Waiting`], but of one at a time: a test takes
    /// no longer than that.
    fn meet_one(&self, ep: &'static Endpoint) {
        let (now, next_ns) = (now_ns(), self.meets_ns.load(Ordering::Relaxed));
        if now < next_ns {
            return;
        }
        self.meets_ns.store(now + if next_ns == 0 { ACQUAINTANCE_NS } else { MEETING_NS }, Ordering::Relaxed);
        if next_ns == 0 {
            return;
        }
        let nodes = ep.launch.nodes();
        let unmet = |rank: &u32| {
            let here = *rank != ep.rank && nodes.node_of(*rank) == nodes.node_of(ep.rank);
            here && ep.known(*rank).is_none() && !ep.is_dead(*rank)
        };
        let from = self.meets.load(Ordering::Relaxed);
        let found = self.domain.group.members().enumerate().filter(|(_, rank)| unmet(rank));
        let all: Vec<(usize, u32)> = found.collect();
        match all.iter().find(|(n, _)| *n as u32 >= from).or(all.first()) {
            Some((n, rank)) => {
                self.meets.store(*n as u32 + 1, Ordering::Relaxed);
                drop(ep.contact_soon(*rank));
            }
            // All are known.
            None => self.meets_ns.store(now + ACQUAINTANCE_NS, Ordering::Relaxed),
        }
    }

    /// The same of a death that was found.
    fn tell(&self, ep: &Endpoint, death: Death) -> Error {
        match death {
            Death::Hole(share, rank) => {
                self.told.lock().unwrap_or_else(|e| e.into_inner()).insert(rank);
                self.shares().nth(share).into_iter().for_each(|share| share.advance(share.next()));
            }
            Death::FarHole(share, rank) => {
                self.told.lock().unwrap_or_else(|e| e.into_inner()).insert(rank);
                self.pass_over_far(share);
            }
            Death::News(rank) => drop(self.told.lock().unwrap_or_else(|e| e.into_inner()).insert(rank)),
            Death::Late(rank) => drop(self.told_late.lock().unwrap_or_else(|e| e.into_inner()).insert(rank)),
            Death::Alone | Death::Damaged(_) => {}
        }
        self.death_error(ep, &death)
    }

    /// Waits for the next message.
    #[inline(never)]
    pub(super) fn wait(&self, ep: &'static Endpoint, to: Run) -> Result<Arrived> {
        NoWayOut::during("a receive of any source", || self.until_taken(ep, to))
    }

    fn until_taken(&self, ep: &'static Endpoint, to: Run) -> Result<Arrived> {
        self.until(ep, || self.take(ep, to))
    }

    /// Waits until a message is taken.
    pub(super) fn until<R>(&self, ep: &'static Endpoint, take: impl Fn() -> Result<Option<R>>) -> Result<R> {
        self.run_dry(true);
        let scene = Waiting { ep, inc: self, found: Cell::new(None), next_ns: Cell::new(0), looks: Cell::new(0) };
        let mut waiter = Waiter::new();
        if self.domain.group.size() == 1 && !self.is_ready(ep) && ep.single_threaded() {
            return Err(self.nobody(ep));
        }
        loop {
            if let Some(arrived) = take()? {
                return Ok(arrived);
            }
            if !waiter.spin() {
                self.run_dry(false);
                if let Err(e) = waiter.slow(&scene) {
                    // A message may have come since. What was found is told all the same, and once.
                    return Err(scene.found.take().map_or(e, |death| self.tell(ep, death)));
                }
            }
        }
    }

    #[cold]
    fn nobody(&self, ep: &Endpoint) -> Error {
        Error::new(
            Code::Argument,
            format!(
                "rank {}: any-source receive on index {}: there is no other rank and no other thread, so it would wait for ever",
                ep.rank, self.index
            ),
        )
    }

    /// With an event descriptor: the sender of the next message is to ring.
    fn arm(&self, ep: &'static Endpoint) {
        let Some(event) = ep.event.get() else { return };
        for share in self.shares() {
            let word = &share.ring.header().asleep;
            // SYNC POINT: pairs with the sender's look at it after it has published; ordered by `membarrier`.
            word.store(word.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        }
        ep.order_event(event, || ep.is_ordered());
        self.arm_far(ep);
        if self.is_ready(ep) {
            event.signal();
        }
    }

    /// The request is over.
    fn disarm(&self) {
        if self.first.ring.header().asleep.load(Ordering::Relaxed) & EVENT == 0 {
            return;
        }
        for share in self.shares() {
            let word = &share.ring.header().asleep;
            word.store(word.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
        }
        self.set_asleep_far(false);
    }
}

/// The own ring of an index.
#[inline(always)]
pub(super) fn find(ep: &'static Endpoint, comm: i32, index: i32) -> Result<&'static Incoming> {
    match ep.any_source.incoming.find(key_of(comm, -1, index)) {
        Some(inc) => Ok(inc),
        None => ep.incoming(comm, index),
    }
}

/// Blocking receive from any source. A message longer than the buffer is cut: see [`Arrived::whole`].
///
/// `Busy`: another thread receives on this index, or a request is not completed. `Peer`: a rank has died, which is told once on each index
/// on which somebody waits; its message, if it was sending one, is lost; later receives go on.
#[inline]
pub fn recv_any(comm: i32, to: Run, index: i32) -> Result<Arrived> {
    let ep = endpoint()?;
    check_buffer(ep, to)?;
    let inc = find(ep, comm, index)?;
    let _claim = inc.claim()?;
    if inc.pending.get().is_some() {
        return Err(inc.busy_error("a request there is not completed"));
    }
    for _ in 0..patience() {
        if let Some(arrived) = inc.take(ep, to)? {
            return Ok(arrived);
        }
        crate::base::atomics::spin_loop();
    }
    inc.wait(ep, to)
}

/// What a receive from any source would find now; takes nothing. (The capacity is 0.)
pub fn probe_any(comm: i32, index: i32) -> Result<Option<Arrived>> {
    let ep = endpoint()?;
    let inc = find(ep, comm, index)?;
    let _claim = inc.claim()?;
    let found = inc.peek(ep);
    if found.is_none() {
        inc.run_dry(false);
    }
    Ok(found)
}

/// Limits how many messages may be outstanding on an index of this process: sent and not yet received. 0: as many as the ring has
/// slots, `FMPL_ANY_SLOTS`, which is also the most. Senders of other nodes have a ring of their own, of half as many slots, with the
/// same limit. A ring in several shares (`FMPL_SPREAD`) has the limit divided among them, at least one message for each.
pub fn recv_any_limit(comm: i32, most: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if most < 0 {
        return Err(Error::new(Code::Argument, format!("rank {}: a limit of {most} messages", ep.rank)));
    }
    let inc = find(ep, comm, index)?;
    let shares = 1 + inc.others().len();
    for (n, share) in inc.shares().enumerate() {
        share.set_limit(limit_of(most as u64, shares, n));
    }
    if inc.spans()
        && let Some(ring) = ep.any_source.make_far_ring(ep, inc.domain.number, index)
    {
        ring.set_limit(most as u64);
    }
    Ok(())
}

/// What a receive of any source waits for.
struct Waiting<'a> {
    ep: &'static Endpoint,
    inc: &'a Incoming,
    /// The death that was found last, if it was found at the last look.
    found: Cell<Option<Death>>,
    /// When it makes the acquaintance of the members on this node next; 0: the wait has not begun.
    next_ns: Cell<u64>,
    /// Looks so far.
    looks: Cell<u32>,
}

/// From the acquaintance of one member to that of the next, of a request that is only tested.
const MEETING_NS: u64 = 10_000_000;
/// A receive that waits so long makes the acquaintance of all members on this node: of who is not known no death would be told.
const ACQUAINTANCE_NS: u64 = 200_000_000;

impl Waiting<'_> {
    fn acquaint(&self) {
        let now = now_ns();
        let next = self.next_ns.get();
        if next != 0 && now >= next {
            self.ep.meet_members(&self.inc.domain.group);
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
        self.inc.set_asleep_far(true);
        true
    }
    fn wake_up(&self) {
        for share in self.inc.shares() {
            let word = &share.ring.header().asleep;
            word.store(word.load(Ordering::Relaxed) & !ASLEEP, Ordering::Relaxed);
        }
        if self.inc.first.ring.header().asleep.load(Ordering::Relaxed) & EVENT == 0 {
            self.inc.set_asleep_far(false);
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
