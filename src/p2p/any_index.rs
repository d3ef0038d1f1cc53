//! `FMPL_TAG_ANY`: a receive that matches any index of one source.
//!
//! Such a receive carries no address: with one, the sender (giving a new message to it) and the receiver (taking an old landing)
//! could both satisfy it. It is a subscription instead. The receiver raises a flag that the sender looks at after each
//! publication; from then on the sender puts the index into a small queue, or, when that is full, marks it in a bitmap of two levels;
//! the receiver takes these marks and does an ordinary receive on the index it finds. Raising the flag needs the order of both sides bought with `membarrier`, or a message could be
//! missed for ever; then the landings of all groups of indices that were ever used are looked through once.
//!
//! A message of the landing's own bytes comes **with its announcement**, which is published first: who receives by any index has it with one
//! line, and the landing, which follows, is for those who receive by the index. Whoever of them comes later finds it received.
//!
//! One mark of the bitmap may stand for several messages, so a mark is kept until a look at its index finds nothing.
//!
//! A synchronous send wants to know that its receive is posted. So a receive that is begun leaves a **posting of kind any-index**, one word
//! for the lane, which a synchronous send may *claim* for its message, by compare-and-swap; from then on the receive is that message's,
//! whose sender goes on as if it were posted for. The receiver takes the word back in the same way before it chooses another message, and as
//! soon as it waits: then it looks for itself.

use crate::base::lock::MutexGuard;
use std::ops::{Deref, DerefMut};

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::{Form, Layout, Run};
use crate::base::looking::between_looks;
use crate::base::prefetch::prefetch;
use crate::base::unwinding::NoWayOut;
use crate::lane::map::{ANNOUNCED_QUEUE, ANNOUNCED_SUMMARY, GROUP_INDICES, SYSTEM_INDICES};
use crate::lane::record::*;
use crate::lane::remote::Ask;
use crate::lane::{AnyRequest, AnyState, Lane, RECV_PENDING, Used};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::receive::{Receiver, recv_inline, take_carried};
use crate::p2p::{Received, TAG_ANY};
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell, patience};

mod announce;
mod posting;
mod scene;

#[cfg(loom)]
pub use announce::Bitmap;
pub(super) use announce::{announce, announce_message, wake_receiver};
use announce::{announced, dequeue, pass_over, take_bits};
pub(super) use posting::{claim, grant, is_posted, want_posting};
use posting::{post, take_back};
use scene::{AnyScene, arm};

/// The request is completed, or withdrawn.
fn over(lane: &Lane, state: &mut AnyState) {
    state.request = None;
    scene::disarm(lane);
}

/// The slot of the message that claimed the receive. `None`: an indexed receive has taken the message since, or is there for it; so its
/// sender was right that there is one.
fn claimed(ep: &'static Endpoint, lane: &Lane, claim: u64) -> Option<usize> {
    let slot = slot_of_claim(claim);
    (is_open(ep, lane, slot)
        && !is_pending(lane, slot)
        && any_claim(slot, lane.progress(slot).received.load(Ordering::Relaxed) + 1) == claim)
        .then_some(slot)
}

/// The slot whose message the pending receive is for: one that has claimed it, else what [`next`] finds.
fn choose(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState, wait: bool) -> Option<usize> {
    let mut found = None;
    if !wait && lane.any_posting(lane.inn).load(Ordering::Relaxed) == ANY_POSTED {
        // Who only looks leaves it there for those who come later.
        found = Some(next(ep, lane, state)?);
    }
    if let Some(claim) = take_back(lane) {
        if let Some(slot) = claimed(ep, lane, claim) {
            return Some(slot);
        }
        if !wait {
            post(lane, state);
            return choose(ep, lane, state, wait);
        }
    }
    found.or_else(|| next(ep, lane, state))
}

/// Raises the flag, the first time, and marks what was sent before. Who waits calls it again: a peer that is late may not have seen the flag,
/// and what it publishes when it goes on is not announced.
fn subscribe(lane: &Lane, state: &mut AnyState) {
    if state.subscribed {
        return;
    }
    // A receive that is posted has its number there.
    let any = &lane.my_side().any;
    any.store(any.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    if let Some(remote) = lane.remote() {
        remote.say_side(lane.my_side());
        // Everything that was published without an announcement is here when the answer is.
        state.subscribed = remote.ask(Ask::Subscribe, 0, 0, || lane.gone().is_none()).is_some();
        state.marked = super::remote::all_slots(remote, lane.limit() as usize, SYSTEM_INDICES);
        return;
    }
    state.subscribed = true;
    // SYNC POINT: pairs with the sender's look at the flag after it has published: it sees the flag, or we see its landing.
    if !(doorbell::barrier() && lane.is_ordered()) {
        doorbell::pause();
    }
    for (w, word) in lane.header().touched[lane.inn].iter().enumerate() {
        let mut groups = word.load(Ordering::Relaxed);
        while groups != 0 {
            let group = w * 64 + groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let first = group * GROUP_INDICES;
            state.marked.extend((first..first + GROUP_INDICES).filter(|s| *s >= SYSTEM_INDICES).map(|s| s as u32));
        }
    }
    // The lowest first, as `next` takes from the end.
    state.marked.reverse();
}

/// A slot on which a message is there, or on which the sender waits for a posting.
fn next(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState) -> Option<usize> {
    loop {
        let slot = next_marked(ep, lane, state);
        if slot.is_some() || !take_marks(ep, lane, state) {
            return slot;
        }
    }
}

/// Such a slot among those whose mark was taken.
#[inline(always)]
fn next_marked(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState) -> Option<usize> {
    let AnyState { marked, held, .. } = state;
    held.retain(|slot| {
        let waits = is_pending(lane, *slot as usize);
        if !waits {
            marked.push(*slot);
        }
        waits
    });
    while let Some(slot) = state.marked.last().map(|s| *s as usize) {
        if slot >= SYSTEM_INDICES && is_open(ep, lane, slot) {
            if is_pending(lane, slot) {
                // An indexed receive has precedence; what it leaves over may have been announced already.
                if !state.held.contains(&(slot as u32)) {
                    state.held.push(slot as u32);
                }
            } else if has_message(ep, lane, slot) {
                return Some(slot);
            }
        }
        state.marked.pop();
    }
    None
}

/// Has the lane this slot? The peer may use indices of a later init that it has not opened yet.
fn is_open(ep: &'static Endpoint, lane: &Lane, slot: usize) -> bool {
    slot < lane.limit() as usize || (ep.widen(lane).is_ok() && slot < lane.limit() as usize)
}

/// Is an indexed receive pending on this slot?
fn is_pending(lane: &Lane, slot: usize) -> bool {
    lane.progress(slot).recv_flags.load(Ordering::Acquire) & RECV_PENDING != 0
}

fn has_message(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> bool {
    if super::request::peek(ep, lane, slot).is_some() {
        return true;
    }
    let seq = lane.progress(slot).received.load(Ordering::Relaxed) + 1;
    lane.head(lane.inn, slot).mark.load(Ordering::Relaxed) == (seq << 2 | WANTS)
}

/// Takes a mark or more. `false`: there are none.
fn take_marks(ep: &'static Endpoint, lane: &Lane, state: &mut AnyState) -> bool {
    if let Some(slot) = dequeue(ep, lane) {
        state.marked.push(slot as u32);
        return true;
    }
    if let Some(remote) = lane.remote() {
        let missed = remote.take_overflow();
        if missed {
            state.marked = super::remote::all_slots(remote, lane.limit() as usize, SYSTEM_INDICES);
        }
        return missed;
    }
    let overflow = &lane.peer_side().any_overflow;
    if overflow.load(Ordering::Relaxed) == 0 {
        return false;
    }
    // Down before the look: who sets it again afterwards has set its bits before. Up again by an exchange, which may cover what the
    // sender has just set, and then has seen its bits.
    overflow.swap(0, Ordering::Acquire);
    let found = take_bits(lane, state);
    if found {
        overflow.swap(1, Ordering::Acquire);
    }
    found
}

fn lane_of(ep: &'static Endpoint, comm: i32, src: i32) -> Result<Used> {
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        return Ok(Used::here(lane));
    }
    ep.lane_of(ep.context(comm)?, src)
}

/// The state, locked.
struct Locked<'a> {
    lane: &'a Lane,
    state: MutexGuard<'a, AnyState>,
}

fn state_of(lane: &Lane) -> Locked<'_> {
    Locked { lane, state: lane.any.lock().unwrap_or_else(|e| e.into_inner()) }
}

impl Deref for Locked<'_> {
    type Target = AnyState;
    fn deref(&self) -> &AnyState {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut AnyState {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    /// Whoever receives needs to know no more than whether there is anything but the queue; only one thread receives by any index.
    fn drop(&mut self) {
        let AnyState { subscribed, marked, held, request, .. } = &*self.state;
        let plain =
            marked.is_empty() && held.is_empty() && request.is_none() && *subscribed && self.lane.remote().is_none();
        self.lane.any_plain.store(plain, Ordering::Relaxed);
    }
}

/// Notes the last message received by any index.
#[inline(always)]
fn note_received(lane: &Lane, slot: usize) {
    lane.any_len.store(lane.last_len(slot) as u64, Ordering::Relaxed);
    lane.any_slot.store(slot as u32, Ordering::Relaxed);
}

#[cold]
fn busy(ep: &Endpoint, lane: &Lane) -> Error {
    error!(
        Code::Busy,
        "rank {}: a receive of any index on {} is pending: complete it first",
        ep.rank,
        lane.name(TAG_ANY)
    )
}

/// Blocking receive of any index of `src`.
pub(super) fn recv(ep: &'static Endpoint, comm: i32, data: Layout, src: i32) -> Result<()> {
    let used = lane_of(ep, comm, src)?;
    let lane = used.lane();
    if recv_announced(ep, lane, data) {
        return Ok(());
    }
    irecv_on(ep, lane, data, false)?;
    NoWayOut::during("a receive of any index", || complete_on(ep, lane, true)).map(|_| ())
}

/// The short path: within a moment a short message is announced. `false`: not this way.
#[inline(always)]
fn recv_announced(ep: &'static Endpoint, lane: &'static Lane, data: Layout) -> bool {
    let Form::Contiguous(run) = data.form() else { return false };
    if run.is_nowhere() {
        return false;
    }
    if !lane.any_plain.load(Ordering::Relaxed) {
        match recv_marked(ep, lane, run) {
            Some(taken) => return taken,
            None if !lane.any_plain.load(Ordering::Relaxed) => return false,
            None => {}
        }
    }
    let mut turns = 0;
    let head = loop {
        match announced(lane) {
            Some(head) => break head,
            None if turns >= patience() => return false,
            None => between_looks(),
        }
        turns += 1;
    };
    let slot = slot_of_head(head);
    if !(SYSTEM_INDICES..lane.limit() as usize).contains(&slot) {
        return false;
    }
    let taken = if head & CARRIES != 0 {
        let entry = lane.announcement(lane.inn, lane.announced_read.load(Ordering::Relaxed));
        let words = [entry.data[0].load(Ordering::Relaxed), entry.data[1].load(Ordering::Relaxed)];
        take_carried(lane, slot, Land(entry.land.load(Ordering::Relaxed)), words, run)
    } else {
        prefetch(lane.receiving(slot).0);
        prefetch(lane.progress(slot));
        recv_inline::<false>(lane, slot, run)
    };
    if !taken {
        return false;
    }
    // An entry of the queue stands for one message, which was this one or has its own: it leaves no mark.
    pass_over(lane);
    note_received(lane, slot);
    true
}

/// The same, when there are marks: `None`: none is left with a message.
#[cold]
#[inline(never)]
fn recv_marked(ep: &'static Endpoint, lane: &'static Lane, run: Run) -> Option<bool> {
    let mut state = state_of(lane);
    if state.request.is_some() || !state.subscribed || lane.remote().is_some() {
        return Some(false);
    }
    let slot = next_marked(ep, lane, &mut state)?;
    let taken = recv_inline::<false>(lane, slot, run);
    if taken {
        note_received(lane, slot);
    }
    Some(taken)
}

/// Non-blocking receive of any index of `src`.
pub(super) fn irecv(ep: &'static Endpoint, comm: i32, data: Layout, src: i32) -> Result<()> {
    let used = lane_of(ep, comm, src)?;
    let lane = used.lane();
    irecv_on(ep, lane, data, true)
}

/// Begins a receive; `posted`: it is not waited for at once, so senders may know of it.
fn irecv_on(ep: &'static Endpoint, lane: &'static Lane, data: Layout, posted: bool) -> Result<()> {
    let cap = data.len_checked()?;
    let mut state = state_of(lane);
    if state.request.is_some() {
        return Err(busy(ep, lane));
    }
    subscribe(lane, &mut state);
    state.request = Some(AnyRequest { layout: data, cap, bound: None });
    if posted {
        post(lane, &mut state);
        arm(ep, lane, &mut state);
    }
    Ok(())
}

/// Completes the receive of any index of `src`; without `wait` only if its message is there.
pub(super) fn complete(ep: &'static Endpoint, comm: i32, src: i32, wait: bool) -> Result<bool> {
    complete_on(ep, lane_of(ep, comm, src)?.lane(), wait)
}

fn complete_on(ep: &'static Endpoint, lane: &'static Lane, wait: bool) -> Result<bool> {
    let scene = AnyScene { ep, lane };
    let mut waiter = Waiter::new();
    loop {
        let mut state = state_of(lane);
        if state.request.is_none() {
            return Err(error!(
                Code::Request,
                "rank {}: no receive of any index is pending on {}",
                ep.rank,
                lane.name(TAG_ANY)
            ));
        }
        subscribe(lane, &mut state);
        if let Some(done) = progress(ep, lane, &mut state, wait) {
            over(lane, &mut state);
            return done.map(|()| true);
        }
        if !wait {
            ep.meanwhile(lane);
            return match lane.gone() {
                None => Ok(false),
                // It is an ordinary receive by now, and ends as one.
                Some(_) if state.request.as_ref().is_some_and(|request| request.bound.is_some()) => Ok(false),
                Some(_) if next(ep, lane, &mut state).is_some() => continue,
                Some(what) => {
                    take_back(lane);
                    over(lane, &mut state);
                    Err(lane.peer_error(ep.rank, what, "irecv of any index from", TAG_ANY))
                }
            };
        }
        drop(state);
        if !waiter.spin()
            && let Err(e) = waiter.slow(&scene)
        {
            let mut state = state_of(lane);
            take_back(lane);
            over(lane, &mut state);
            return Err(e);
        }
    }
}

/// Moves the pending request on; its outcome when it is complete.
fn progress(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState, wait: bool) -> Option<Result<()>> {
    let slot = match state.request.as_ref()?.bound {
        Some(slot) => slot,
        None => {
            let slot = choose(ep, lane, state, wait)?;
            if let Err(e) = bind(ep, lane, state, slot) {
                return Some(Err(e));
            }
            slot
        }
    };
    let outcome = match super::request::complete_receive(ep, lane, slot, wait) {
        Ok(false) => return None,
        Ok(true) => Ok(()),
        Err(e) => Err(e),
    };
    note_received(lane, slot);
    Some(outcome)
}

/// The pending request becomes an ordinary receive on a slot.
fn bind(ep: &'static Endpoint, lane: &'static Lane, state: &mut AnyState, slot: usize) -> Result<()> {
    let Some(request) = state.request.as_mut() else { return Ok(()) };
    let receiver = Receiver::new(ep, lane, slot, request.layout, request.cap);
    super::request::begin(&receiver)?;
    request.bound = Some(slot);
    Ok(())
}

/// Withdraws the receive of any index. `false`: it has found its message.
pub(super) fn cancel(ep: &'static Endpoint, comm: i32, src: i32) -> Result<bool> {
    let used = lane_of(ep, comm, src)?;
    let lane = used.lane();
    let mut state = state_of(lane);
    let Some(request) = &state.request else {
        return Err(error!(
            Code::Request,
            "rank {}: no receive of any index is pending on {}",
            ep.rank,
            lane.name(TAG_ANY)
        ));
    };
    match request.bound {
        Some(slot) if !super::request::cancel(ep, lane, slot)? => return Ok(false),
        Some(_) => {}
        None => {
            if let Some(slot) = take_back(lane).and_then(|claim| claimed(ep, lane, claim)) {
                // A sender counts on it.
                bind(ep, lane, &mut state, slot)?;
                return Ok(false);
            }
        }
    }
    over(lane, &mut state);
    Ok(true)
}

/// Is a receive of any index of this lane's peer not completed?
pub(crate) fn is_begun(lane: &Lane) -> bool {
    state_of(lane).request.is_some()
}

/// Length and index of the last completed receive of any index of `src`.
pub(super) fn received(ep: &'static Endpoint, comm: i32, src: i32) -> Result<Received> {
    let lane = lane_of(ep, comm, src)?;
    let none = || {
        let text = format!("rank {}: nothing has been received on {} yet", ep.rank, lane.name(TAG_ANY));
        Error::new(Code::Request, text)
    };
    let (len, slot) = ep.last_of_any(&lane).ok_or_else(none)?;
    Ok(Received { len, index: slot as i32 - SYSTEM_INDICES as i32 })
}

/// The length of a message of any index of `src`, if there is one whose length is known.
pub(super) fn probe(ep: &'static Endpoint, comm: i32, src: i32) -> Result<Option<usize>> {
    let used = lane_of(ep, comm, src)?;
    let lane = used.lane();
    let mut state = state_of(lane);
    if state.request.is_some() {
        return Err(busy(ep, lane));
    }
    subscribe(lane, &mut state);
    Ok(next(ep, lane, &mut state).and_then(|slot| super::request::peek(ep, lane, slot)))
}
