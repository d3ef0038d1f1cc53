//! Sends that are not complete yet: the calls that complete them move them on, and any wait of the process does.

use super::*;
use crate::base::lock::{Mutex, MutexGuard};

pub(in crate::p2p) fn complete_send(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    wait: bool,
) -> Result<bool> {
    let flags = &lane.progress(slot).send_flags;
    let now = flags.load(Ordering::Relaxed);
    if now & SEND_PENDING == 0 {
        return Err(no_request(ep, "isend", lane, slot));
    }
    if now & SEND_OPEN == 0 {
        flags.store(now & !SEND_PENDING, Ordering::Relaxed);
        return Ok(true);
    }
    let done = drive(ep, lane, slot, wait);
    if done != Ok(false) {
        disarm_send(lane, slot);
        flags.store(flags.load(Ordering::Relaxed) & !(SEND_PENDING | SEND_OPEN), Ordering::Relaxed);
    }
    done
}

/// Requests that are looked at in every turn of a wait; more would keep it from its own message.
const FEW: u32 = 4;

/// Sends of this process that nothing moves but itself. Whoever of its threads waits for something moves them on meanwhile, so that
/// two ranks that both first wait and then complete their sends do not wait for ever.
#[derive(Default)]
pub struct WaitingSends {
    /// How many are listed: read without a lock, and late at worst.
    count: AtomicU32,
    /// Whoever goes through the list has its lock meanwhile, and may wait for a connection with it.
    list: Mutex<Vec<(&'static Lane, usize)>>,
    /// Those that came since. Nothing is waited for with this lock: the thread that makes connections lists requests too.
    added: Mutex<Vec<(&'static Lane, usize)>>,
    beside: std::sync::OnceLock<fn() -> bool>,
}

impl WaitingSends {
    /// Lists a request whose side is held.
    pub(super) fn add(&self, lane: &'static Lane, slot: usize) {
        if lane.send_side(slot).waiting.replace(true) {
            return;
        }
        let mut added = self.added();
        added.push((lane, slot));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn added(&self) -> MutexGuard<'_, Vec<(&'static Lane, usize)>> {
        self.added.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes those that came into the list, and leaves those in it for which that is so. `true`: some are left.
    fn retain(
        &self,
        list: &mut Vec<(&'static Lane, usize)>,
        stays: impl FnMut(&(&'static Lane, usize)) -> bool,
    ) -> bool {
        list.append(&mut self.added());
        let before = list.len();
        list.retain(stays);
        self.count.fetch_sub((before - list.len()) as u32, Ordering::Relaxed);
        !list.is_empty()
    }

    /// May a request of this lane be listed, perhaps one that is completed? Whoever moves them on has the list, and may wait for a connection
    /// with it: this thread may be the one that waits, or the one that makes the connection.
    pub fn may_have(&self, lane: &Lane) -> bool {
        let Ok(list) = self.list.try_lock() else { return true };
        list.iter().chain(self.added().iter()).any(|(listed, _)| std::ptr::eq(*listed, lane))
    }

    /// A communicator is freed, all of whose requests are completed; some may still be listed.
    pub fn forget(&self, comm: i32) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        self.retain(&mut list, |(lane, _)| lane.comm() != comm);
    }

    /// Something else to be moved on at the same times: collective calls that do not wait. It says whether some are left.
    pub fn beside(&self, push: fn() -> bool) {
        self.beside.get_or_init(|| push);
    }

    /// Moves them on, as far as they go. `true`: some are left.
    pub fn push(&self, ep: &'static Endpoint) -> bool {
        let left = self.beside.get().is_some_and(|push| push());
        self.push_sends(ep) | left
    }

    /// The same at every turn of a wait, where there are but a few: of long messages that cross, one waits for what the other brings.
    #[inline]
    pub fn push_few(&self, ep: &'static Endpoint) {
        if (1..=FEW).contains(&self.count.load(Ordering::Relaxed)) {
            self.push_sends(ep);
        }
    }

    #[cold]
    fn push_sends(&self, ep: &'static Endpoint) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Somebody else is at it.
        let Ok(mut list) = self.list.try_lock() else { return true };
        self.retain(&mut list, |(lane, slot)| {
            let side = lane.send_side(*slot);
            // The request's own thread has it.
            let Some(_hold) = side.try_hold() else { return true };
            side.waiting.set(false);
            if !side.state.get().is_moved_on() {
                return false;
            }
            match step(ep, lane, *slot, Ring::Never, true, may_last(ep)) {
                Ok(Step::Done) => side.state.set(SendState::Sent),
                Ok(Step::Not) => {}
                Err(e) => {
                    side.error.set(Some(Box::new(e)));
                    side.state.set(SendState::Sent);
                }
            }
            if side.state.get() == SendState::Sent
                && let Some(event) = ep.event.get()
            {
                event.signal();
            }
            side.waiting.set(side.state.get().is_moved_on());
            side.waiting.get()
        })
    }
}

/// What a step of a pending send came to.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    Not,
}

/// Moves a pending send on; `true` when it is complete.
fn drive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    let side = lane.send_side(slot);
    let synchronous = side.deadline_ns.get() == u64::MAX;
    // To itself: nobody but this thread could receive it.
    let alone = wait && synchronous && lane.is_self() && ep.single_threaded();
    let mut waiter = Waiter::until((!synchronous).then_some(side.deadline_ns.get()));
    let mut published = false;
    loop {
        if let Some(_hold) = side.try_hold() {
            if let Some(e) = side.error.take() {
                return Err(*e);
            }
            match step(ep, lane, slot, Ring::IfAwaited, !wait, !wait && may_last(ep)) {
                Ok(Step::Done) => {
                    side.state.set(SendState::Sent);
                    return Ok(true);
                }
                Ok(Step::Not) => {}
                Err(e) => {
                    side.state.set(SendState::Sent);
                    return Err(e);
                }
            }
            published = side.state.get() != SendState::Waits;
            if alone {
                let sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
                if !lane.posting_there(slot).is(sender.seq) && !any_index::is_posted(lane) {
                    side.state.set(SendState::Sent);
                    return Err(sender.never_received());
                }
            }
        }
        if !wait {
            // Another of this process's sends may be what the peer needs before it comes to this one.
            ep.meanwhile(lane);
            if let Some(what) = lane.gone() {
                return Err(give_up(
                    ep,
                    lane,
                    slot,
                    lane.peer_error(ep.rank, what, "isend to", slot as i32 - SYSTEM_INDICES as i32),
                ));
            }
            return Ok(false);
        }
        if waiter.spin() {
            continue;
        }
        let seq = lane.progress(slot).sent.load(Ordering::Relaxed) + !published as u64;
        let scene = Waiting { ep, lane, slot, seq, len: side.len.get(), confirm: published, midway: false };
        match waiter.slow(&scene) {
            Ok(Turn::Again) => {}
            Ok(Turn::TimedOut) => waiter = Waiter::new(),
            Err(e) => return Err(give_up(ep, lane, slot, e)),
        }
    }
}

/// What is left of a send that has failed.
#[cold]
fn give_up(ep: &'static Endpoint, lane: &'static Lane, slot: usize, e: Error) -> Error {
    let_go(ep, lane, slot);
    e
}

/// Gives a pending send up: nobody will touch its memory any more. A peer that lives may be about to read what it was offered, since
/// what has ended the call may be a third rank's death: it gets a copy, or is waited for.
fn let_go(ep: &'static Endpoint, lane: &'static Lane, slot: usize) {
    let side = lane.send_side(slot);
    let _hold = side.hold();
    if side.state.get() == SendState::Offered {
        let mut sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
        sender.seq -= 1;
        while lane.gone().is_none() && !sender.acknowledged() && !sender.move_offer(true) {
            crate::base::thread::yield_core();
        }
        sender.end_offer();
    }
    if side.state.get() == SendState::Shared {
        let mut sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
        while lane.gone().is_none() && !sender.has_been_shared() {
            crate::base::thread::yield_core();
        }
        sender.end_offer();
    }
    if side.state.get() == SendState::Read {
        let sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
        // Failed or not: the device is done with the memory.
        let _ = sender.has_been_read(true);
    }
    side.state.set(SendState::Sent);
}

/// Gives up a pending send that nobody will complete.
pub(in crate::p2p) fn abandon_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize) {
    let flags = &lane.progress(slot).send_flags;
    if flags.load(Ordering::Relaxed) & SEND_OPEN != 0 {
        let_go(ep, lane, slot);
    }
    disarm_send(lane, slot);
    flags.store(flags.load(Ordering::Relaxed) & !(SEND_PENDING | SEND_OPEN), Ordering::Relaxed);
}

/// May a device read a request's memory longer than the call lasts that gave it the message? Nothing signals an event descriptor then.
pub(super) fn may_last(ep: &Endpoint) -> bool {
    ep.event.get().is_none()
}

/// One attempt to move a pending send on; `later`: it may be left to a device. The side is held. A thread that does it by the way, while
/// it waits for something else, must not be held up by a ring: two of them would wait for each other. Nor by a connection: it would not
/// see what becomes of its own peer meanwhile.
fn step(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    ring: Ring,
    by_the_way: bool,
    later: bool,
) -> Result<Step> {
    let side = lane.send_side(slot);
    let synchronous = side.deadline_ns.get() == u64::MAX;
    let mut sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
    (sender.request, sender.later) = (true, later);
    if matches!(side.state.get(), SendState::Offered | SendState::Unconfirmed) {
        // The request's message is the last one sent, not the next.
        sender.seq -= 1;
    }
    match side.state.get() {
        SendState::Sent => return Ok(Step::Done),
        SendState::Waits => {
            let late = !synchronous && now_ns() >= side.deadline_ns.get();
            let at_once = ep.spool.budget(lane.comm()).timeout_ms() == 0;
            let state = sender.attempt(Patience { synchronous, late, at_once, by_the_way }, ring)?;
            if state == SendState::Sent {
                return Ok(Step::Done);
            }
            side.state.set(state);
        }
        SendState::Read => {
            if sender.has_been_read(!later)? {
                return Ok(Step::Done);
            }
        }
        SendState::Shared => {
            if sender.has_been_shared() {
                return Ok(Step::Done);
            }
        }
        SendState::Unconfirmed => {
            if sender.confirmed() || any_index::claim(lane, slot, sender.seq) {
                return Ok(Step::Done);
            }
        }
        SendState::Offered => {
            if sender.acknowledged() {
                sender.end_offer();
                return Ok(Step::Done);
            }
            let late = || !synchronous && now_ns() >= side.deadline_ns.get();
            // A receive that was posted when the offer was just being made: synchronous sends wait for no more than that, and the receiver
            // may look for the offer long after.
            let posting = lane.posting_there(slot);
            let awaited = || (posting.meta.load(Ordering::Relaxed) >> 8) as u8 & HINT_WAITING != 0;
            let posted =
                synchronous && (posting.is(sender.seq) && !awaited() || any_index::claim(lane, slot, sender.seq));
            if (posted || sender.is_refused() || late()) && sender.move_offer(posted) {
                sender.end_offer();
                return Ok(Step::Done);
            }
        }
    }
    Ok(Step::Not)
}

#[cfg(loom)]
impl WaitingSends {
    /// As at the beginning.
    pub fn renew(&self) {
        self.list.lock().unwrap_or_else(|e| e.into_inner()).clear();
        self.added().clear();
        self.count.store(0, Ordering::Relaxed);
    }
}
