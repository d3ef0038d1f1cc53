//! Receiving from any source: the slots in the order of their tickets.

mod deaths;
mod either;
pub(super) mod task;
mod waiting;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::key_of;
use super::multicast::Early;
use super::offer::Fetching;
use super::ring::*;
use super::share::{Share, limit_of};
use super::stake::{Stakes, is_orphan};
use super::{Domain, check_buffer};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::looking::between_looks;
use crate::base::run::Run;
use crate::base::table::{Key, Keyed};
use crate::base::trace::traced;
use crate::base::unwinding::NoWayOut;
use crate::lane::loan::Descriptor;
use crate::lane::record::{ASLEEP, EVENT};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::loan::Lent;
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell, patience};
use deaths::Death;
use either::Sides;
use waiting::{ACQUAINTANCE_NS, MEETING_NS, Waiting};

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
        Err(error!(
            Code::Truncate,
            "any-source receive on index {index}: a message of {} bytes of rank {} for a buffer of {}",
            self.len,
            self.source,
            self.capacity
        ))
    }
}

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
    /// 1: a receive of this or a multicast looks for the multicast first.
    news_first: AtomicU32,
    /// Dead ranks that a receive here has told of.
    told: Mutex<BTreeSet<u32>>,
    /// The loan that was taken last, or one that a message is being received into. For the thread that has the ring claimed.
    pub(super) lent: Cell<Option<Lent>>,
    /// The same of ranks that have not answered for long: until when they were late when that was told.
    told_late: Mutex<BTreeMap<u32, u64>>,
    /// A request that is tested again and again: when it makes the acquaintance of a member next; 0: it has just begun. And of which.
    meets_ns: AtomicU64,
    meets: AtomicU32,
    /// Of multicasts: messages that were taken out of the ring before they were received.
    pub(super) early: Early,
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
/// A thread has it for a moment, and does not count.
const TENDED: u32 = 3;

/// A thread's claim on a ring.
pub(super) struct Claim<'a>(&'a Incoming);

impl Drop for Claim<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC POINT: pairs with the exchanges in `claim` and `claim_to_complete`.
        self.0.busy.store(FREE, Ordering::Release);
    }
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
            news_first: AtomicU32::new(0),
            told: Mutex::default(),
            lent: Cell::new(None),
            told_late: Mutex::default(),
            meets_ns: AtomicU64::new(0),
            meets: AtomicU32::new(0),
            early: Early::default(),
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
            Err(TENDED) => self.claim_soon(),
            Err(_) => Err(self.busy_error("another thread receives there")),
        }
    }

    /// The same when the moment is over for which another thread has it.
    #[cold]
    #[inline(never)]
    fn claim_soon(&self) -> Result<Claim<'_>> {
        while self.busy.load(Ordering::Relaxed) == TENDED {
            crate::base::thread::yield_core();
        }
        self.claim()
    }

    /// Takes the ring for a moment, if nobody has it.
    pub(super) fn claim_for_a_moment(&self) -> Option<Claim<'_>> {
        // SYNC POINT: as in `claim`.
        let claimed = self.busy.compare_exchange(FREE, TENDED, Ordering::Acquire, Ordering::Relaxed);
        claimed.is_ok().then_some(Claim(self))
    }

    /// The same to complete or withdraw the request. Whoever else looks at the ring meanwhile has it for a moment only, and does not count:
    /// `None`, or with `wait` the end of that moment.
    pub(super) fn claim_to_complete(&self, wait: bool) -> Result<Option<Claim<'_>>> {
        loop {
            // SYNC POINT: as in `claim`.
            match self.busy.compare_exchange(FREE, COMPLETED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Some(Claim(self))),
                Err(COMPLETED) => return Err(self.busy_error("another thread completes the request there")),
                Err(TENDED) => crate::base::thread::yield_core(),
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
        error!(Code::Busy, "any-source receive on index {}: {what}", self.index)
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
            None => self.take_local(ep, &self.first, to),
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
    fn take_local(&self, ep: &'static Endpoint, share: &Share, to: Run) -> Result<Option<Arrived>> {
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

    /// Has so much come that who sends next may soon wait for room?
    pub(super) fn is_crowded(&self, ep: &Endpoint) -> bool {
        self.shares().any(|share| !share.ring.has_much_room()) || self.is_crowded_remote(ep)
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
        !self.early.is_empty()
            || self.has_remote_arrival(ep)
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

    fn peek_local(&self, share: &Share) -> Option<Arrived> {
        let arrival = share.arrival()?;
        let len = match arrival.kind {
            Kind::Inline | Kind::Area | Kind::Nothing | Kind::Damaged => arrival.len as usize,
            Kind::Spooled | Kind::Offered => share.ring.away(share.next()).len as usize,
            Kind::Loan => Descriptor::length(share.ring.away(share.next()).len) as usize,
        };
        Some(Arrived { source: self.domain.rank_here(arrival.source), len, capacity: 0 })
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
        let scene = Waiting::new(ep, self);
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
        error!(
            Code::Argument,
            "rank {}: any-source receive on index {}: there is no other rank and no other thread, so it would wait for ever",
            ep.rank,
            self.index
        )
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
        between_looks();
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
        return Err(error!(Code::Argument, "rank {}: a limit of {most} messages", ep.rank));
    }
    let inc = find(ep, comm, index)?;
    let shares = 1 + inc.others().len();
    for (n, share) in inc.shares().enumerate() {
        share.set_limit(limit_of(most as u64, shares, n));
    }
    if inc.spans()
        && let Some(ring) = ep.any_source.make_remote_ring(ep, inc.domain.number, index)
    {
        ring.set_limit(most as u64);
    }
    Ok(())
}
