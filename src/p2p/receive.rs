//! Receiving: look at the landing, or at the next record of the chain; when nothing is there, post and wait.
//!
//! What is already there is taken without a posting. A short receive spins a little before it posts, since its message is most
//! likely on the way into the landing; a long one posts at once, so that the sender can put the payload into its place.

use core::cell::Cell;

use crate::base::atomics::{AtomicU32, Ordering, spin_loop};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::layout::{Cursor, Form, Layout, Run};
use crate::base::trace::traced;
use crate::base::unwinding::NoWayOut;
use crate::lane::loan::Descriptor;
use crate::lane::map::{ANNEX_BYTES, ANNEX_MOST, SPLIT_BYTES, SYSTEM_INDICES};
use crate::lane::record::*;
use crate::lane::remote::{REMOTE_INLINE, Remote};
use crate::lane::*;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::loan::Lent;
use crate::p2p::remote::recv_remote;
use crate::p2p::send::{find_remote, wake};
use crate::p2p::{PROC_NULL, TAG_ANY};
use crate::wait::{Board, Operation, Scene, Waiter, Waits, YIELDS, doorbell, patience};

mod awaiting;
mod chain;
mod short;
mod take;

pub(super) use awaiting::Awaiting;
pub(super) use short::owe_or_acknowledge;
pub(crate) use short::settle;
pub use short::{configure, recv_inline};
pub(super) use short::{fetch_annex, fetch_spooled, post_short, take_carried, take_short};
use short::{heap_hint, is_split, take_chained, wake_sender};
pub(super) use take::Found;
use take::is_loan;

/// Receives of more bytes than this post before they spin.
pub(super) const POST_AT_ONCE: usize = if cfg!(loom) { 2048 } else { ANNEX_MOST };
/// Turns of the wait loop after which a short receive posts.
const POST_AFTER: u32 = if cfg!(loom) { 0 } else { 16 };
/// Turns for which a split line is awaited before it is a wait like any other.
const SPLIT_PATIENCE: u32 = if cfg!(loom) { 1 } else { 256 };

/// Between nodes a posting costs a write, which a message that fits the landing does not need: a receive of so few bytes posts when it
/// has waited so long, which is before any sleep. Only a message that is longer than its buffer waits for that.
const POST_AFTER_REMOTE_NS: u64 = 200_000;

/// Blocking receive. `Truncate`: the message was longer than the buffer, whose bytes are delivered.
#[inline(always)]
pub fn recv(comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    let Form::Contiguous(run) = data.form() else {
        return recv_slow(endpoint()?, comm, data, src, index);
    };
    let ep = endpoint()?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && !run.is_nowhere() {
            return recv_found::<true>(ep, lane, slot, run);
        }
    }
    recv_run(ep, comm, run, src, index)
}

/// What [`recv`] does before it waits: takes a message that is there, or will be within moments. `false`: nothing has happened.
#[inline]
pub fn recv_soon(comm: i32, data: Layout, src: i32, index: i32) -> Result<bool> {
    let Form::Contiguous(run) = data.form() else { return Ok(false) };
    let Some(lane) = endpoint()?.lanes.find(Lane::key_of(comm, src as u32)) else { return Ok(false) };
    let slot = index as u32 as usize + SYSTEM_INDICES;
    let fits = slot < lane.limit() as usize && run.len() <= POST_AT_ONCE && !run.is_nowhere();
    Ok(fits && recv_inline::<true>(lane, slot, run))
}

/// [`recv`] of a run of bytes on a lane that is found. `OWE`: as for [`take_short`].
#[inline(always)]
pub(super) fn recv_found<const OWE: bool>(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    run: Run,
) -> Result<()> {
    if recv_inline::<OWE>(lane, slot, run) { Ok(()) } else { recv_next(ep, lane, slot, run) }
}

/// A receive off the short path whose lane is found: most likely the chain's next record.
#[inline(never)]
fn recv_next(ep: &'static Endpoint, lane: &'static Lane, slot: usize, run: Run) -> Result<()> {
    if take_chained(lane, slot, run) { Ok(()) } else { recv_on(ep, lane, slot, run.into()) }
}

/// A receive of a run of bytes off the short path of a node: perhaps it is from another node. (By the parts of the run, which need not go
/// through memory.)
#[inline(never)]
fn recv_run(ep: &'static Endpoint, comm: i32, run: Run, src: i32, index: i32) -> Result<()> {
    if let Some((lane, slot)) = find_remote(ep, comm, src, index)
        && !run.is_nowhere()
        // A long one is not waited for before it is posted: each turn of a network in software is a call of the system.
        && recv_remote(lane.lane(), slot, run, if run.len() > REMOTE_INLINE { 1 } else { patience() })
    {
        return Ok(());
    }
    recv_slow(ep, comm, run.into(), src, index)
}

#[cold]
#[inline(never)]
fn recv_slow(ep: &'static Endpoint, comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    if src == PROC_NULL {
        return ep.check_comm(comm);
    }
    if index == TAG_ANY {
        return super::any_index::recv(ep, comm, data, src);
    }
    let (lane, slot) = ep.resolve(comm, src, index)?;
    recv_on(ep, lane.lane(), slot, data)
}

/// Blocking receive on a slot.
pub fn recv_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    let cap = data.len_checked()?;
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(super::send::busy(ep, lane, slot, "recv"));
    }
    let receiver = Receiver::new(ep, lane, slot, data, cap);
    receiver.until_received(false)
}

/// One receive.
pub(super) struct Receiver {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub data: Layout,
    pub cap: usize,
    /// The number of the message it is for.
    pub seq: u64,
    /// It wants a loan, and has no buffer.
    pub wants_loan: bool,
    /// The one that it has got.
    pub lent: Cell<Option<Lent>>,
}

impl Receiver {
    pub fn new(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout, cap: usize) -> Receiver {
        settle(lane, slot);
        let seq = lane.progress(slot).received.load(Ordering::Relaxed) + 1;
        Receiver::of_message(ep, lane, slot, data, cap, seq)
    }

    /// One of the message with this number.
    pub fn of_message(
        ep: &'static Endpoint,
        lane: &'static Lane,
        slot: usize,
        data: Layout,
        cap: usize,
        seq: u64,
    ) -> Receiver {
        Receiver { ep, lane, slot, data, cap, seq, wants_loan: false, lent: Cell::new(None) }
    }

    /// One that wants a loan.
    pub fn of_loan(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Receiver {
        let mut receiver = Receiver::new(ep, lane, slot, Layout::NOTHING, usize::MAX);
        receiver.wants_loan = true;
        receiver
    }

    pub fn index(&self) -> i32 {
        self.slot as i32 - SYSTEM_INDICES as i32
    }
    fn theirs(&self) -> &'static Half {
        self.lane.receiving(self.slot).0
    }
    fn mine(&self) -> &'static Half {
        self.lane.receiving(self.slot).1
    }
    fn remote(&self) -> Option<&'static Remote> {
        self.lane.remote()
    }
    fn flags(&self) -> u8 {
        self.lane.progress(self.slot).recv_flags.load(Ordering::Relaxed)
    }
    fn set_flags(&self, flags: u8) {
        self.lane.progress(self.slot).recv_flags.store(flags, Ordering::Release);
    }

    /// Is the message there?
    #[inline(always)]
    pub fn look(&self) -> Option<Found> {
        self.lane.take_over_incoming(self.slot, self.seq);
        let land = self.theirs().landing();
        if land.is(self.seq, self.lane.epoch) {
            return Some(Found::Landing(land));
        }
        if self.flags() & RECV_CHAIN != 0 {
            return self.look_in_chain();
        }
        // SYNC POINT: pairs with the release of `tx` in `Sender::chain`. The chain says by itself with which message it
        // begins, so a landing that was looked at too early is no danger: this message is in one of the two only.
        if self.theirs().tx.load(Ordering::Acquire) >> 8 == self.seq as u32 & SEQ24 && self.enter_chain() {
            return self.look_in_chain();
        }
        None
    }

    /// Says where the message may be put. `waiting`: this thread stays with it until it is there.
    #[inline(always)]
    pub fn post(&self, waiting: bool) {
        let direction = self.lane.inn;
        let wanted = self.lane.wanted(self.slot);
        wanted.set_shaped();
        let (addr, kind, hint) = match self.data.form() {
            Form::Contiguous(run) => {
                wanted.set(run);
                (run.ptr(), PostingKind::Contiguous, heap_hint(self.ep, run))
            }
            Form::Block { ptr, block } => {
                let shape = self.lane.shape(direction, self.slot);
                shape.run.store(block.run as u64, Ordering::Relaxed);
                shape.count.store(block.count as u64, Ordering::Relaxed);
                shape.stride.store(block.stride as u64, Ordering::Relaxed);
                (ptr, PostingKind::Block, 0)
            }
            Form::List { iov, n } => {
                let shape = self.lane.shape(direction, self.slot);
                shape.count.store(n as u64, Ordering::Relaxed);
                (iov.cast_mut().cast(), PostingKind::List, 0)
            }
        };
        // Between nodes it is posted without a key: so its sender knows of it, and leaves the bytes where they can be fetched.
        let kind = if self.wants_loan && self.remote().is_none() { PostingKind::Loan } else { kind };
        let hint = hint | if waiting { HINT_WAITING } else { 0 };
        let posting = self.lane.posting_here(self.slot);
        let shape = match self.data.form() {
            Form::Contiguous(_) => 0,
            Form::Block { block, .. } => {
                Posting::check_shape([block.run as u64, block.count as u64, block.stride as u64])
            }
            Form::List { n, .. } => Posting::check_shape([0, n as u64, 0]),
        };
        posting.post_shaped(self.seq, [addr as u64, self.cap as u64], kind, hint, self.lane.epoch, shape);
        if let Some(remote) = self.remote() {
            return self.post_remote(remote);
        }
        wake_sender(self.lane, self.slot, self.theirs());
    }

    /// A posting is out already; this thread now stays with it.
    pub fn say_waiting(&self) {
        let meta = &self.lane.posting_here(self.slot).meta;
        meta.store(meta.load(Ordering::Relaxed) | (HINT_WAITING as u64) << 8, Ordering::Relaxed);
    }

    /// Waits for the message and takes it.
    pub fn until_received(&self, posted: bool) -> Result<()> {
        NoWayOut::during("a receive", || self.wait(posted))
    }

    fn wait(&self, mut posted: bool) -> Result<()> {
        let scene = self.awaiting();
        let mut waiter = Waiter::new();
        let mut turns = if self.cap > POST_AT_ONCE { POST_AFTER } else { 0 };
        let mut post_after = POST_AFTER.min(YIELDS * patience());
        let mut late_ns = 0;
        if let Some(remote) = self.remote() {
            if remote.awaits_annex(self.slot, self.cap) {
                (turns, post_after) = (0, u32::MAX);
            } else if self.cap > REMOTE_INLINE {
                turns = post_after;
            } else if patience() > 1 {
                post_after = u32::MAX;
            }
        }
        if posted {
            self.say_waiting();
        }
        loop {
            if let Some(found) = self.look() {
                return self.take(found);
            }
            if !posted {
                if turns >= post_after {
                    self.post(true);
                    posted = true;
                    continue;
                }
                turns += 1;
            }
            if waiter.spin() {
                if self.cap > POST_AT_ONCE {
                    self.ep.waiting_sends.push_few(self.ep);
                }
                continue;
            }
            if posted && let Some(remote) = self.remote() {
                self.goes_on(remote);
            }
            if post_after == u32::MAX && !posted {
                let now = now_ns();
                late_ns = if late_ns == 0 { now + POST_AFTER_REMOTE_NS } else { late_ns };
                turns = if now >= late_ns { post_after } else { 0 };
            }
            if let Err(error) = waiter.slow(&scene)
                // A living peer could still put the message into a buffer that is the caller's again. (The error may be of a third rank's
                // death.)
                && (!posted || self.lane.is_dead() || super::request::take_back(self))
            {
                self.let_go();
                return Err(error);
            }
        }
    }
}
