//! Sending: the sender alone decides how a message travels, and publishes it exactly once.
//!
//! 1. Short, and everything before it is consumed: into the landing, or the annex beside it.
//! 2. Its posting is there: straight into the receiver's buffer ([`super::transfer`]).
//! 3. Otherwise into the spool: by the landing if that is free, else into the **chain**, the packed records that the receiver walks
//!    by itself. A short message does so at once, a long one when the time-out has passed.
//!
//! Whether message s may use the landing is decided once, from one answer to the question whether everything before s is
//! consumed ([`Sender::consumed_all`]).

use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::copying::{self, Copying};
use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::{Cursor, Form, Layout, Run};
use crate::base::rules::{Rule, holds};
use crate::base::trace::traced;
use crate::base::tuning::Crossovers;
use crate::base::unwinding::NoWayOut;
use crate::lane::map::{ANNEX_BYTES, SPLIT_BYTES, SYSTEM_INDICES};
use crate::lane::record::*;
use crate::lane::remote::Remote;
use crate::lane::*;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::remote::{lend, send_remote};
use crate::p2p::transfer::Ring;
use crate::p2p::{PROC_NULL, any_index};
use crate::wait::{Board, Operation, Scene, Turn, Waiter, Waits, doorbell, patience};

mod chain;
mod decide;
mod place;
mod publish;
mod short;
mod waiting;

pub(super) use decide::Patience;
pub(super) use short::acked_soon;
use short::fill_annex;
pub use short::send_inline;
pub(super) use short::send_short;
pub(super) use waiting::Waiting;
use waiting::is_confirmed;
pub(crate) use waiting::is_consumed;

/// Largest block of a chain of short messages: a few of them in turn stay in the innermost caches of both cores.
const CHAIN_BLOCK: usize = if cfg!(loom) { 512 } else { 4 << 10 };
/// Turns that a send waits for the acknowledgement of the last one before it goes into the chain.
const ACK_PATIENCE: u32 = if cfg!(loom) { 1 } else { 24 };
/// Messages that a chain may have: until the next landing, landings and acknowledgements of before it are known by 24 bits.
const CHAIN_MOST: u64 = 1 << 22;
/// The longest that a buffered send looks for its posting before it copies into memory that the spool has used before, or into new pages.
const SPOOL_PATIENCE_NS: u64 = 50_000;
/// What a fetch out of the spool takes over a network that the peer has to drive.
const FETCH_NS: u64 = 20_000;
const NEW_PAGES_PATIENCE_NS: u64 = 1_000_000;
/// Shorter messages touch few of them.
const NEW_PAGES: u64 = 64 << 10;
/// Bytes kept free at the end of a block for the link to the next.
const LINK_BYTES: usize = 24;

/// Blocking send.
#[inline(always)]
pub fn send(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let Form::Contiguous(run) = data.form() else {
        return send_slow(endpoint()?, comm, data, dst, index);
    };
    let ep = endpoint()?;
    if run.len() <= ep.tuning.annex
        && let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32))
    {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && lane.special.load(Ordering::Relaxed) == 0 && !run.is_nowhere() {
            return if send_short(lane, lane.progress(slot), slot, run) {
                Ok(())
            } else {
                send_next(ep, lane, slot, run)
            };
        }
    }
    send_run(ep, comm, run, dst, index)
}

/// What [`send`] does with a short message whose predecessor is received. `false`: nothing has happened.
#[inline]
pub fn send_soon(comm: i32, data: Layout, dst: i32, index: i32) -> Result<bool> {
    let Form::Contiguous(run) = data.form() else { return Ok(false) };
    let ep = endpoint()?;
    let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32)) else { return Ok(false) };
    let slot = index as u32 as usize + SYSTEM_INDICES;
    let fits = run.len() <= ep.tuning.annex && slot < lane.limit() as usize && !run.is_nowhere();
    let plain = lane.special.load(Ordering::Relaxed) == 0;
    Ok(fits && plain && send_short(lane, lane.progress(slot), slot, run))
}

/// A send off the short path whose lane is found: most likely the chain's next record.
#[inline(never)]
fn send_next(ep: &'static Endpoint, lane: &'static Lane, slot: usize, run: Run) -> Result<()> {
    let progress = lane.progress(slot);
    let (data, len) = (run.into(), run.len());
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) == SEND_CHAIN && !progress.is_two_way()
    {
        let sender = Sender::new(ep, lane, slot, data, len);
        if sender.is_short() && sender.append() {
            lane.count_spooled(slot);
            lane.count_sent(progress, sender.seq, len);
            after_publish(lane, slot, sender.theirs());
            traced!(lane.note_sent(slot, "overflow queue", len, sender.seq));
            return Ok(());
        }
    }
    send_on(ep, lane, slot, data)
}

/// What follows every publication: wake the receiver if it sleeps, announce the index if it receives from any.
#[inline(always)]
pub(in crate::p2p) fn after_publish(lane: &Lane, slot: usize, theirs: &Half) {
    after_landing(lane, slot, theirs);
    if lane.peer_side().any.load(Ordering::Relaxed) != 0 {
        any_index::announce(lane, slot);
    }
}

/// The first half of it: wakes who sleeps on the slot.
#[inline(always)]
fn after_landing(lane: &Lane, slot: usize, theirs: &Half) {
    // SYNC POINT: the sleeper sets its byte and has the order bought by `membarrier`; no fence here.
    doorbell::light_barrier();
    let sleep = theirs.rx.load(Ordering::Relaxed) & 0xff;
    if sleep != 0 {
        wake(lane, slot, sleep);
    }
}

/// Rings for the peer's threads that sleep on this slot.
#[cold]
#[inline(never)]
pub(super) fn wake(lane: &Lane, slot: usize, sleep: u32) {
    let board = lane.board();
    if sleep & ASLEEP != 0 {
        doorbell::ring(&board.bell, doorbell::bit(slot));
    }
    if sleep & EVENT != 0 {
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

/// A send of a run of bytes off the short path of a node: perhaps it is for another node. (By the parts of the run, which need not go through
/// memory.)
#[inline(never)]
fn send_run(ep: &'static Endpoint, comm: i32, run: Run, dst: i32, index: i32) -> Result<()> {
    if let Some((lane, slot)) = find_remote(ep, comm, dst, index)
        && !run.is_nowhere()
        && send_remote(lane.lane(), slot, run)
    {
        return Ok(());
    }
    send_slow(ep, comm, run.into(), dst, index)
}

/// The lane with a rank of another node, and the slot of an index, if both are open.
#[inline(always)]
pub(super) fn find_remote(ep: &'static Endpoint, comm: i32, peer: i32, index: i32) -> Option<(Used, usize)> {
    let lane = ep.lanes.find_remote(Lane::key_of(comm, peer as u32))?;
    let slot = index as u32 as usize + SYSTEM_INDICES;
    (slot < lane.limit() as usize).then_some((lane, slot))
}

#[cold]
#[inline(never)]
fn send_slow(ep: &'static Endpoint, comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = ep.resolve(comm, dst, index)?;
    send_on(ep, lane.lane(), slot, data)
}

/// Blocking send on a slot.
pub fn send_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    let len = data.len_checked()?;
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "send"));
    }
    let mut sender = Sender::new(ep, lane, slot, data, len);
    if sender.is_short() && lane.special.load(Ordering::Relaxed) & !SPECIAL_REMOTE == 0 && sender.place_short() {
        return Ok(());
    }
    sender.check_peer()?;
    let timeout = ep.spool.budget(lane.comm()).timeout_ms();
    let deadline = match timeout {
        t if t < 0 => u64::MAX,
        0 => 0,
        t => now_ns() + t as u64 * 1_000_000,
    };
    if timeout == 0 && !lane.is_self() {
        sender.posted_soon();
    }
    if lane.is_self() {
        // Nobody else will post while this thread waits, unless the program has other threads.
        let posted = lane.posting_there(slot).is(sender.seq) || any_index::is_posted(lane);
        if timeout < 0 && !posted && ep.single_threaded() {
            return Err(sender.never_received());
        }
        return sender.until_sent(if timeout < 0 { u64::MAX } else { 0 }, timeout);
    }
    sender.until_sent(deadline, timeout)
}

/// The same for who must not be refused in buffered mode: it waits for room in the spool, or for the receive.
pub fn send_patiently(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    let len = data.len_checked()?;
    Sender::new(ep, lane, slot, data, len).until_sent(0, 1)
}

/// The error of a call on an index whose request is not completed.
#[cold]
pub(super) fn busy(ep: &Endpoint, lane: &Lane, slot: usize, what: &str) -> Error {
    let name = lane.name(slot as i32 - SYSTEM_INDICES as i32);
    error!(Code::Busy, "rank {}: {what} on {name}: complete the pending one first", ep.rank)
}

/// Is a message of so many bytes sent without waiting for its receive?
fn is_short(ep: &Endpoint, lane: &Lane, slot: usize, len: usize) -> bool {
    len <= ep.tuning.eager && !waits(lane, slot)
}

/// Does every message wait, the shortest too? The library's own do not: nobody posts for them.
fn waits(lane: &Lane, slot: usize) -> bool {
    lane.special.load(Ordering::Relaxed) & SPECIAL_PATIENT != 0 && slot >= SYSTEM_INDICES
}

/// One message on its way out.
pub(super) struct Sender {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub data: Layout,
    pub len: usize,
    /// Its number.
    pub seq: u64,
    /// It waits for its acknowledgement: synchronous.
    pub now: bool,
    /// It is completed by a later call: what a device reads meanwhile need not be waited for.
    pub later: bool,
    /// It is handed over: the words that name its memory.
    pub loan: Option<[u64; 2]>,
    /// It is a request: these come in windows, which one side fills while the other empties it. Who sends and waits is mostly waited for
    /// soon, as in an exchange.
    pub request: bool,
    /// A receive of any index is this message's.
    claimed: bool,
    /// The spool has room, but the receiver on another node cannot be given a key of it.
    pub unkeyed: bool,
}

impl Sender {
    pub fn new(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout, len: usize) -> Sender {
        let seq = lane.progress(slot).sent.load(Ordering::Relaxed) + 1;
        let (now, later, request, loan, claimed, unkeyed) = (false, false, false, None, false, false);
        Sender { ep, lane, slot, data, len, seq, now, later, request, loan, claimed, unkeyed }
    }

    pub fn got(&self) -> u64 {
        self.lane.progress(self.slot).got()
    }

    pub fn index(&self) -> i32 {
        self.slot as i32 - SYSTEM_INDICES as i32
    }
    /// The numbers of this pair.
    pub fn ways(&self) -> &'static Crossovers {
        self.ep.tuning.pair(self.lane.distance())
    }
    pub fn is_short(&self) -> bool {
        is_short(self.ep, self.lane, self.slot, self.len)
    }
    /// Bytes that it takes in a record of a chain.
    fn record_len(&self) -> usize {
        if self.loan.is_some() { size_of::<[u64; 2]>() } else { self.len }
    }
    fn flags(&self) -> u8 {
        self.lane.progress(self.slot).send_flags.load(Ordering::Relaxed)
    }
    fn set_flags(&self, flags: u8) {
        self.lane.progress(self.slot).send_flags.store(flags, Ordering::Relaxed);
    }
    fn mine(&self) -> &'static Half {
        self.lane.sending(self.slot).0
    }
    fn theirs(&self) -> &'static Half {
        self.lane.sending(self.slot).1
    }
    pub fn posting(&self) -> &'static Posting {
        self.lane.take_over_outgoing(self.slot);
        self.lane.posting_there(self.slot)
    }

    /// The error of a synchronous send to itself that only the thread which waits in it could receive.
    #[cold]
    pub fn never_received(&self) -> Error {
        error!(
            Code::Argument,
            "rank {}: synchronous send to itself on index {}: no receive is posted, so it would wait for ever",
            self.ep.rank,
            self.index()
        )
    }

    /// An error if the peer is dead or has left.
    pub fn check_peer(&self) -> Result<()> {
        match self.lane.gone() {
            Some(_) => self.ep.gone(self.lane, self.slot, "send to").map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    /// Has the receiver consumed everything before this message? Then the landing is free.
    pub fn consumed_all(&self) -> bool {
        is_consumed(self.ep, self.lane, self.slot, self.seq - 1) || !holds(Rule::LandingIsFree)
    }

    /// As `acked_soon` of the short path, for a chain.
    fn consumed_soon(&self) -> bool {
        (0..ACK_PATIENCE.min(patience())).any(|_| {
            crate::base::atomics::spin_loop();
            self.consumed_all()
        })
    }

    /// Has a receiver on another node consumed everything before this message, or is just about to? Over a network that is driven that is
    /// waited for as long as it would take to fetch the message, where one comes for each that goes: both sides send at once.
    fn consumed_remote(&self, remote: &Remote) -> bool {
        let two_way = self.lane.progress(self.slot).is_two_way();
        if self.consumed_all() || !two_way || !remote.link.limits().is_driven {
            return self.consumed_all() || two_way && self.consumed_soon();
        }
        remote.pay();
        self.consumed_within(FETCH_NS)
    }

    /// In buffered mode: before a longer message is copied into the spool, and out of it again, looks for its posting for a quarter of
    /// the time that this would take, and for all of it where new pages are touched, each of which takes some 3 microseconds. An answer
    /// often comes while its receiver is on its way to the receive. Where both sides send before they receive it never comes: each
    /// look in vain halves the next.
    pub(super) fn posted_soon(&self) {
        // Where it takes the receiver a fetch to get it out of the spool, a short one is waited for as long as that.
        let fetched = self.lane.remote().is_some_and(|remote| remote.link.limits().is_driven);
        if cfg!(loom) || self.is_short() && !fetched {
            return;
        }
        let side = self.lane.send_side(self.slot);
        let misses = &side.misses;
        if self.posting().is(self.seq) {
            return misses.set(misses.get().saturating_sub(1));
        }
        let n = self.len as u64;
        // The last block of this index is the next one, if it is large enough. Where ranks share cores the receiver may need this one.
        let longest = match n < NEW_PAGES || side.block.get().size > n || patience() == 1 {
            true if fetched => FETCH_NS.max(n / 16).min(SPOOL_PATIENCE_NS),
            true => (n / 16).min(SPOOL_PATIENCE_NS),
            false => n.min(NEW_PAGES_PATIENCE_NS),
        };
        let end = now_ns() + (longest >> misses.get());
        while !self.posting().is(self.seq) {
            if now_ns() >= end {
                return misses.set((misses.get() + 1).min(4));
            }
            crate::wait::pause();
        }
        misses.set(0);
    }

    /// What it waits for.
    pub(super) fn waiting(&self, confirm: bool, midway: bool) -> Waiting {
        let &Sender { ep, lane, slot, seq, len, .. } = self;
        Waiting { ep, lane, slot, seq, len, confirm, midway }
    }

    /// Waits for the posting, or for the landing, or for the time to spool; returns when the message is sent, in the sense of the
    /// mode. `deadline`: 0 now, `u64::MAX` never.
    pub fn until_sent(&mut self, deadline: u64, timeout: i32) -> Result<()> {
        NoWayOut::during("a send", || self.wait(deadline, timeout))
    }

    fn wait(&mut self, deadline: u64, timeout: i32) -> Result<()> {
        let synchronous = timeout < 0;
        let scene = self.waiting(false, false);
        let mut waiter = Waiter::until((deadline != u64::MAX && deadline != 0).then_some(deadline));
        let mut wants = false;
        let mut late = false;
        let mut tight = false;
        loop {
            let patience =
                Patience { synchronous, late: deadline == 0 || tight, at_once: timeout == 0, by_the_way: false };
            match self.attempt(patience, Ring::IfAwaited)? {
                SendState::Waits => {}
                SendState::Unconfirmed => return self.until_confirmed(),
                _ => return Ok(()),
            }
            // Between nodes it is a write, and most postings are on their way: a receiver that subscribes meanwhile sees it later.
            if !wants && (self.lane.remote().is_none() || late || self.lane.is_subscribed()) {
                // An any-index receiver finds this message by its announcement, and posts for it; one that begins later looks
                // through all indices that were ever touched.
                self.lane.touch(self.slot);
                self.lane.head(self.lane.out, self.slot).mark.store(self.seq << 2 | WANTS, Ordering::Relaxed);
                if let Some(remote) = self.lane.remote() {
                    remote.mark(self.slot, self.seq, false);
                }
                doorbell::light_barrier();
                if self.lane.is_subscribed() {
                    any_index::announce(self.lane, self.slot);
                }
                wants = true;
            }
            if waiter.spin() {
                continue;
            }
            if !wants && !late {
                late = true;
                continue;
            }
            // Between nodes once is enough: whoever subscribes later sees the mark.
            if self.lane.remote().is_none() && self.lane.peer_side().any.load(Ordering::Relaxed) != 0 {
                any_index::announce(self.lane, self.slot);
            }
            if waiter.slow(&scene)? == Turn::TimedOut {
                // From now on spool as soon as there is room; without room wait for it or for the posting.
                tight = true;
                waiter = Waiter::new();
            }
        }
    }

    /// A synchronous message is published: waits until its receive is known to be there.
    fn until_confirmed(&self) -> Result<()> {
        let scene = self.waiting(true, false);
        let mut waiter = Waiter::new();
        while !self.confirmed() && !any_index::claim(self.lane, self.slot, self.seq) {
            if !waiter.spin() {
                waiter.slow(&scene)?;
            }
        }
        Ok(())
    }

    /// Has the receiver finished with this message, which is published?
    pub fn acknowledged(&self) -> bool {
        self.lane.take_over_outgoing(self.slot);
        self.theirs().acked(self.seq)
    }

    /// Is the receive of this message, which is published, known to be posted or done?
    pub fn confirmed(&self) -> bool {
        is_confirmed(self.ep, self.lane, self.slot, self.seq)
    }
}
