//! Non-blocking requests. There are no request objects: an index has at most one send and one receive under way, and (peer, index)
//! names it.

use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::base::prefetch::{prefetch, prefetch_to_write};
use crate::lane::far::Call;
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::record::*;
use crate::lane::*;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::layout::Layout;
use crate::p2p::receive::{Receiver, post_short, take_short};
use crate::p2p::send::{Sender, Waiting, busy};
use crate::p2p::transfer::{Put, Ring};
use crate::p2p::{PROC_NULL, Received, TAG_ANY, any_index};
use crate::wait::{Scene, Turn, Waiter, doorbell, patience};

/// Non-blocking send. Its time-out runs from here.
///
/// # Safety
/// `data` must stay readable and unchanged until the request is completed.
#[inline(always)]
pub unsafe fn isend(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Layout::Contiguous { ptr, len } = data else {
        // SAFETY: as the caller promises.
        return unsafe { isend_slow(ep, comm, data, dst, index) };
    };
    if len <= INLINE_BYTES
        && let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32))
    {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && lane.special.load(Ordering::Relaxed) == 0 && !(ptr.is_null() && len != 0) {
            // SAFETY: `len` readable bytes at `ptr`, as the caller promises.
            if unsafe { super::send::send_inline(lane, slot, ptr, len) } {
                let progress = lane.progress(slot);
                let flags = &progress.send_flags;
                flags.store(flags.load(Ordering::Relaxed) | SEND_PENDING, Ordering::Relaxed);
                // A window of requests goes over the indices in order: one that is a message behind is likely to be next.
                let ahead = slot + AHEAD;
                if ahead < lane.limit() as usize
                    && lane.progress(ahead).sent.load(Ordering::Relaxed) + 1 == progress.sent.load(Ordering::Relaxed)
                {
                    prefetch_to_write(lane.hot(ahead));
                }
                return Ok(());
            }
        }
    }
    // As in `send`.
    // SAFETY: as the caller promises.
    unsafe { isend_slow(ep, comm, Layout::Contiguous { ptr, len }, dst, index) }
}

#[cold]
#[inline(never)]
unsafe fn isend_slow(ep: &'static Endpoint, comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    let timeout = ep.spool.budget(lane.comm()).timeout_ms();
    // SAFETY: as the caller promises.
    unsafe { isend_on(ep, lane, slot, data, timeout) }
}

/// Non-blocking send on a slot; `timeout`: milliseconds, negative: synchronous.
///
/// # Safety
/// As for [`isend`].
pub(super) unsafe fn isend_on(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    data: Layout,
    timeout: i32,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let len = unsafe { data.len_checked()? };
    let progress = lane.progress(slot);
    if progress.send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "isend"));
    }
    let pending = |state: SendState| {
        let flags = progress.send_flags.load(Ordering::Relaxed);
        // What is sent already has nothing to look up when it is completed.
        let open = if state == SendState::Sent { 0 } else { SEND_OPEN };
        progress.send_flags.store(flags | SEND_PENDING | open, Ordering::Relaxed);
        if open != 0 {
            lane.send_side(slot).state.set(state);
        }
    };
    let mut sender = Sender::new(ep, lane, slot, data, len);
    sender.check_peer()?;
    // SAFETY: as the caller promises.
    if sender.is_short() && timeout >= 0 && unsafe { sender.place_short() } {
        pending(SendState::Sent);
        return Ok(());
    }
    let side = lane.send_side(slot);
    // Another thread may still come by for the request before, which it finds done.
    let _hold = side.hold();
    side.layout.set(data);
    side.len.set(len);
    side.deadline_ns.set(match timeout {
        t if t < 0 => u64::MAX,
        t => now_ns() + t as u64 * 1_000_000,
    });
    // SAFETY: the data stays readable until completion.
    let state = unsafe { start(&mut sender, timeout)? };
    if state == SendState::Waits {
        let mark = &lane.head(lane.out, slot).mark;
        lane.touch(slot);
        mark.store(sender.seq << 2 | WANTS, Ordering::Relaxed);
        if let Some(far) = lane.far() {
            // Before the announcement: who finds that looks for this.
            far.mark(slot, sender.seq, true);
        }
        doorbell::light_barrier();
        if lane.is_subscribed() {
            any_index::announce(lane, slot);
        }
    }
    pending(state);
    if state == SendState::Waits {
        ep.waiting_sends.add(lane, slot);
        if let Some(far) = lane.far() {
            // In the list first: the peer's call comes to the fabric's thread, which moves on what it finds there.
            far.call(Call::Marks);
        }
    }
    if state != SendState::Sent {
        arm_send(ep, lane, slot, state, len);
    }
    Ok(())
}

/// What an isend can do at once.
unsafe fn start(sender: &mut Sender, timeout: i32) -> Result<SendState> {
    // SAFETY (all calls): the data is readable until completion.
    if sender.posting().is(sender.seq) {
        // SAFETY: see above.
        match unsafe { sender.put(Ring::IfAwaited) } {
            Put::Done => return Ok(SendState::Sent),
            Put::Failed(e) => return Err(e),
            Put::NotNow => {}
        }
        // As in `step`.
        // SAFETY: see above.
        if (timeout < 0 || sender.fits_nowhere() || sender.lane.far().is_some()) && unsafe { sender.spool() } {
            return Ok(SendState::Sent);
        }
    }
    // SAFETY: see above.
    if timeout < 0 && unsafe { sender.place_claimed() } {
        return Ok(SendState::Sent);
    }
    if sender.is_short() {
        // SAFETY: see above.
        if timeout < 0 && !sender.lane.is_self() && sender.consumed_all() && unsafe { sender.place_synchronous() } {
            return Ok(SendState::Unconfirmed);
        }
        return Ok(SendState::Waits);
    }
    // SAFETY: see above.
    if unsafe { sender.offer() } {
        return Ok(SendState::Offered);
    }
    Ok(SendState::Waits)
}

/// With an event descriptor, asks the receiver to ring when it posts or acknowledges.
fn arm_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, state: SendState, len: usize) {
    let Some(event) = ep.event.get() else { return };
    let tx = &lane.sending(slot).0.tx;
    // SYNC POINT: pairs with the receiver's look at the sleep byte after it has posted or acknowledged.
    tx.store(tx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
    if lane.special.load(Ordering::Relaxed) & SPECIAL_SYNCHRONOUS != 0 {
        any_index::want_posting(lane);
    }
    doorbell::barrier();
    if let Some(far) = lane.far() {
        far.fall_asleep();
    }
    let published = state != SendState::Waits;
    let seq = lane.progress(slot).sent.load(Ordering::Relaxed) + !published as u64;
    if (Waiting { ep, lane, slot, seq, len, confirm: published, midway: false }).ready() {
        event.signal();
    }
}

#[inline]
fn find(ep: &'static Endpoint, comm: i32, peer: i32, index: i32) -> Result<(&'static Lane, usize)> {
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, peer as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize {
            return Ok((lane, slot));
        }
    }
    ep.resolve(comm, peer, index)
}

#[cold]
fn no_request(ep: &Endpoint, what: &str, lane: &Lane, slot: usize) -> Error {
    let name = lane.name(slot as i32 - SYSTEM_INDICES as i32);
    Error::new(Code::Request, format!("rank {}: no {what} is pending on {name}", ep.rank))
}

/// Completes the send on (peer, index), spooling when its time-out has passed.
#[inline(always)]
pub fn isend_wait(comm: i32, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if is_sent(ep, comm, dst, index) { Ok(()) } else { isend_complete(ep, comm, dst, index, true).map(|_| ()) }
}

/// The short path of completing a send: the message went at once.
#[inline(always)]
fn is_sent(ep: &Endpoint, comm: i32, dst: i32, index: i32) -> bool {
    let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32)) else { return false };
    let slot = index as u32 as usize + SYSTEM_INDICES;
    if slot >= lane.limit() as usize {
        return false;
    }
    let flags = &lane.progress(slot).send_flags;
    let now = flags.load(Ordering::Relaxed);
    if now & (SEND_PENDING | SEND_OPEN) != SEND_PENDING {
        return false;
    }
    flags.store(now & !SEND_PENDING, Ordering::Relaxed);
    true
}

#[inline(never)]
fn isend_complete(ep: &'static Endpoint, comm: i32, dst: i32, index: i32, wait: bool) -> Result<bool> {
    if dst == PROC_NULL {
        return ep.check_comm(comm).map(|()| true);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    complete_send(ep, lane, slot, wait)
}

/// Completes the send if that takes no waiting.
#[inline(always)]
pub fn isend_test(comm: i32, dst: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    if is_sent(ep, comm, dst, index) { Ok(true) } else { isend_complete(ep, comm, dst, index, false) }
}

pub(super) fn complete_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    let flags = &lane.progress(slot).send_flags;
    let now = flags.load(Ordering::Relaxed);
    if now & SEND_PENDING == 0 {
        return Err(no_request(ep, "isend", lane, slot));
    }
    if now & SEND_OPEN == 0 {
        flags.store(now & !SEND_PENDING, Ordering::Relaxed);
        return Ok(true);
    }
    // SAFETY: the memory stays the request's until it is completed here.
    let done = unsafe { drive(ep, lane, slot, wait) };
    if done != Ok(false) {
        let tx = &lane.sending(slot).0.tx;
        tx.store(tx.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
        flags.store(flags.load(Ordering::Relaxed) & !(SEND_PENDING | SEND_OPEN), Ordering::Relaxed);
    }
    done
}

/// Sends of this process that nothing moves but itself. Whoever of its threads waits for something moves them on meanwhile, so that
/// two ranks that both first wait and then complete their sends do not wait for ever.
#[derive(Default)]
pub struct WaitingSends {
    /// How many are in the list: read without its lock, and late at worst.
    count: AtomicU32,
    list: std::sync::Mutex<Vec<(&'static Lane, usize)>>,
    beside: std::sync::OnceLock<fn() -> bool>,
}

impl WaitingSends {
    fn add(&self, lane: &'static Lane, slot: usize) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        list.push((lane, slot));
        self.count.store(list.len() as u32, Ordering::Relaxed);
    }

    /// A communicator is freed, all of whose requests are completed; some may still be listed.
    pub fn forget(&self, comm: i32) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        list.retain(|(lane, _)| lane.comm() != comm);
        self.count.store(list.len() as u32, Ordering::Relaxed);
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

    fn push_sends(&self, ep: &'static Endpoint) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Somebody else is at it.
        let Ok(mut list) = self.list.try_lock() else { return true };
        list.retain(|(lane, slot)| {
            let side = lane.send_side(*slot);
            // The request's own thread has it.
            let Some(_hold) = side.try_hold() else { return true };
            if side.state.get() != SendState::Waits {
                return false;
            }
            // SAFETY: the request is not completed, so its memory is still readable.
            match unsafe { step(ep, lane, *slot, Ring::Never) } {
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
            side.state.get() == SendState::Waits
        });
        self.count.store(list.len() as u32, Ordering::Relaxed);
        !list.is_empty()
    }
}

/// What a step of a pending send came to.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    Not,
}

/// Moves a pending send on; `true` when it is complete.
unsafe fn drive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
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
            // SAFETY: as the caller promises.
            match unsafe { step(ep, lane, slot, Ring::IfAwaited) } {
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
                if !lane.posting(lane.out, slot).is(sender.seq) && !any_index::is_posted(lane) {
                    side.state.set(SendState::Sent);
                    return Err(sender.never_received());
                }
            }
        }
        if !wait {
            // Another of this process's sends may be what the peer needs before it comes to this one.
            ep.tend(lane);
            ep.waiting_sends.push(ep);
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

/// The peer is gone: nobody will touch the request's memory or its offer any more.
#[cold]
fn give_up(ep: &'static Endpoint, lane: &'static Lane, slot: usize, e: Error) -> Error {
    let side = lane.send_side(slot);
    let _hold = side.hold();
    if side.state.get() == SendState::Offered {
        Sender::new(ep, lane, slot, side.layout.get(), side.len.get()).end_offer();
    }
    side.state.set(SendState::Sent);
    e
}

/// Gives a pending send up: nobody of this process will touch its memory any more.
pub(super) fn abandon_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize) {
    let flags = &lane.progress(slot).send_flags;
    if flags.load(Ordering::Relaxed) & SEND_OPEN != 0 {
        let side = lane.send_side(slot);
        let _hold = side.hold();
        if side.state.get() == SendState::Offered {
            Sender::new(ep, lane, slot, side.layout.get(), side.len.get()).end_offer();
        }
        side.state.set(SendState::Sent);
    }
    flags.store(flags.load(Ordering::Relaxed) & !(SEND_PENDING | SEND_OPEN), Ordering::Relaxed);
}

/// One attempt to move a pending send on. The side is held. A thread that does it by the way, while it waits for something else, must
/// not be held up by a ring: two of them would wait for each other.
unsafe fn step(ep: &'static Endpoint, lane: &'static Lane, slot: usize, ring: Ring) -> Result<Step> {
    let side = lane.send_side(slot);
    let synchronous = side.deadline_ns.get() == u64::MAX;
    let mut sender = Sender::new(ep, lane, slot, side.layout.get(), side.len.get());
    if matches!(side.state.get(), SendState::Offered | SendState::Unconfirmed) {
        // The request's message is the last one sent, not the next.
        sender.seq -= 1;
    }
    // SAFETY (all calls): the request's memory is readable until completion.
    match side.state.get() {
        SendState::Sent => return Ok(Step::Done),
        SendState::Waits => {
            if sender.posting().is(sender.seq) {
                // SAFETY: see above.
                match unsafe { sender.put(ring) } {
                    Put::Done => return Ok(Step::Done),
                    Put::Failed(e) => return Err(e),
                    Put::NotNow => {}
                }
                // The receive is known to be posted, which is all that a synchronous send waits for.
                // SAFETY: see above.
                if (synchronous || sender.fits_nowhere() || sender.lane.far().is_some()) && unsafe { sender.spool() } {
                    return Ok(Step::Done);
                }
            }
            // SAFETY: see above.
            if synchronous && unsafe { sender.place_claimed() } {
                return Ok(Step::Done);
            }
            // SAFETY: see above.
            if sender.is_short() && !synchronous && unsafe { sender.place_short() } {
                return Ok(Step::Done);
            }
            if sender.is_short()
                && synchronous
                && !lane.is_self()
                && sender.consumed_all()
                // SAFETY: see above.
                && unsafe { sender.place_synchronous() }
            {
                side.state.set(SendState::Unconfirmed);
                return Ok(Step::Not);
            }
            // SAFETY: see above.
            if !sender.is_short() && unsafe { sender.offer() } {
                side.state.set(SendState::Offered);
                return Ok(Step::Not);
            }
            if !synchronous && now_ns() >= side.deadline_ns.get() {
                // SAFETY: see above.
                if !sender.is_short() && unsafe { sender.spool() } {
                    return Ok(Step::Done);
                }
                if ep.spool.budget(lane.comm()).timeout_ms() == 0 {
                    return Err(sender.spool_full());
                }
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
            let posting = lane.posting(lane.out, slot);
            let awaited = || (posting.meta.load(Ordering::Relaxed) >> 8) as u8 & HINT_WAITING != 0;
            let posted =
                synchronous && (posting.is(sender.seq) && !awaited() || any_index::claim(lane, slot, sender.seq));
            // SAFETY: see above.
            if (posted || sender.is_refused() || late()) && unsafe { sender.move_offer(posted) } {
                sender.end_offer();
                return Ok(Step::Done);
            }
        }
    }
    Ok(Step::Not)
}

/// Non-blocking receive.
///
/// # Safety
/// `data` must stay writable and untouched until the request is completed or cancelled.
#[inline(always)]
pub unsafe fn irecv(comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Layout::Contiguous { ptr, len } = data else {
        // SAFETY: as the caller promises.
        return unsafe { irecv_slow(ep, comm, data, src, index) };
    };
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && !(ptr.is_null() && len != 0) && ep.event.get().is_none() {
            let flags = &lane.progress(slot).recv_flags;
            let now = flags.load(Ordering::Relaxed);
            // SAFETY: as the caller promises; nothing is pending.
            if now & RECV_PENDING == 0 && unsafe { post_short(ep, lane, slot, ptr, len) } {
                // SYNC POINT: pairs with `holds_annex`, as all stores of these flags do: each may cover the one after which the last
                // annex belongs to the sending thread.
                flags.store(now | RECV_PENDING, Ordering::Release);
                return Ok(());
            }
        }
    }
    // As in `send`.
    // SAFETY: as the caller promises.
    unsafe { irecv_slow(ep, comm, Layout::Contiguous { ptr, len }, src, index) }
}

#[cold]
#[inline(never)]
unsafe fn irecv_slow(ep: &'static Endpoint, comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    if src == PROC_NULL {
        return ep.check_comm(comm);
    }
    if index == TAG_ANY {
        // SAFETY: as the caller promises.
        return unsafe { any_index::irecv(ep, comm, data, src) };
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    // SAFETY: as the caller promises.
    unsafe { irecv_on(ep, lane, slot, data) }
}

/// Non-blocking receive on a slot.
///
/// # Safety
/// As for [`irecv`].
pub(super) unsafe fn irecv_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    // SAFETY: as the caller promises.
    let cap = unsafe { data.len_checked()? };
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(busy(ep, lane, slot, "irecv"));
    }
    // SAFETY: as the caller promises.
    unsafe { begin(&Receiver::new(ep, lane, slot, data, cap)) }
}

/// The short path of completing a receive: it is of one run of bytes, and its message is in the landing or an annex, or will be
/// within so many turns. `false`: not this way.
#[inline(always)]
fn complete_short(lane: &Lane, slot: usize, patience: u32) -> bool {
    let flags = &lane.progress(slot).recv_flags;
    if flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_READY | RECV_CHAIN) != RECV_PENDING {
        return false;
    }
    let posting = lane.posting(lane.inn, slot);
    if posting.meta.load(Ordering::Relaxed) as u8 != PostingKind::Contiguous as u8 {
        return false;
    }
    // A window of requests is completed in the order of its indices: have the line of one further on come meanwhile.
    let ahead = slot + AHEAD;
    if ahead < lane.limit() as usize && lane.progress(ahead).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        prefetch(lane.hot(ahead));
    }
    let (ptr, cap) = (posting.addr.load(Ordering::Relaxed) as *mut u8, posting.cap.load(Ordering::Relaxed) as usize);
    // SAFETY: the request's buffer, writable until completion.
    if !unsafe { take_short::<false>(lane, slot, ptr, cap, patience) } {
        return false;
    }
    flags.store(flags.load(Ordering::Relaxed) & !RECV_PENDING, Ordering::Release);
    true
}

/// How many indices ahead a line is asked for.
const AHEAD: usize = 4;

/// Takes the message if it is there, else posts.
pub(super) unsafe fn begin(receiver: &Receiver) -> Result<()> {
    let (ep, lane, slot) = (receiver.ep, receiver.lane, receiver.slot);
    let progress = lane.progress(slot);
    let set = |bits: u32| {
        let flags = progress.recv_flags.load(Ordering::Relaxed);
        progress.recv_flags.store(flags | RECV_PENDING | bits, Ordering::Release);
    };
    if let Some(found) = receiver.look() {
        // SAFETY: the buffer is writable, as the caller promises.
        match unsafe { receiver.take(found) } {
            Ok(()) => set(RECV_READY),
            Err(e) => {
                lane.receive_side(slot).error.set(Some(Box::new(e)));
                set(RECV_READY | RECV_TRUNCATED);
            }
        }
        if let Some(event) = ep.event.get() {
            event.signal();
        }
        return Ok(());
    }
    if !matches!(receiver.data, Layout::Contiguous { .. }) {
        let side = lane.receive_side(slot);
        side.layout.set(receiver.data);
        side.cap.set(receiver.cap);
    }
    if let Some(event) = ep.event.get() {
        let rx = &lane.receiving(slot).1.rx;
        // SYNC POINT: pairs with the sender's look at the sleep byte after publishing.
        rx.store(rx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        doorbell::barrier();
        if let Some(far) = lane.far() {
            far.fall_asleep();
        }
        if receiver.look().is_some() {
            event.signal();
        }
    }
    receiver.post(false);
    set(0);
    Ok(())
}

/// The pending receive of a slot, as it was posted.
fn pending(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Receiver {
    let posting = lane.posting(lane.inn, slot);
    let (data, cap) = if posting.meta.load(Ordering::Relaxed) as u8 == PostingKind::Contiguous as u8 {
        let cap = posting.cap.load(Ordering::Relaxed) as usize;
        (Layout::Contiguous { ptr: posting.addr.load(Ordering::Relaxed) as *mut u8, len: cap }, cap)
    } else {
        let side = lane.receive_side(slot);
        (side.layout.get(), side.cap.get())
    };
    Receiver::new(ep, lane, slot, data, cap)
}

/// Completes the receive on (peer, index).
#[inline(always)]
pub fn irecv_wait(comm: i32, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && ep.event.get().is_none() && complete_short(lane, slot, patience()) {
            return Ok(());
        }
    }
    irecv_wait_slow(ep, comm, src, index)
}

#[cold]
#[inline(never)]
fn irecv_wait_slow(ep: &'static Endpoint, comm: i32, src: i32, index: i32) -> Result<()> {
    if src == PROC_NULL {
        return ep.check_comm(comm);
    }
    if index == TAG_ANY {
        return any_index::complete(ep, comm, src, true).map(|_| ());
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    complete_receive(ep, lane, slot, true).map(|_| ())
}

/// Completes the receive if its message is there.
#[inline(always)]
pub fn irecv_test(comm: i32, src: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && ep.event.get().is_none() && complete_short(lane, slot, 1) {
            return Ok(true);
        }
    }
    irecv_test_slow(ep, comm, src, index)
}

#[inline(never)]
fn irecv_test_slow(ep: &'static Endpoint, comm: i32, src: i32, index: i32) -> Result<bool> {
    if src == PROC_NULL {
        return ep.check_comm(comm).map(|()| true);
    }
    if index == TAG_ANY {
        return any_index::complete(ep, comm, src, false);
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    complete_receive(ep, lane, slot, false)
}

pub(super) fn complete_receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    let progress = lane.progress(slot);
    let flags = progress.recv_flags.load(Ordering::Relaxed);
    if flags & RECV_PENDING == 0 {
        return Err(no_request(ep, "irecv", lane, slot));
    }
    let finish = || {
        let flags = progress.recv_flags.load(Ordering::Relaxed);
        progress.recv_flags.store(flags & !(RECV_PENDING | RECV_READY | RECV_TRUNCATED), Ordering::Release);
    };
    if flags & RECV_READY != 0 {
        finish();
        if flags & RECV_TRUNCATED != 0
            && let Some(e) = lane.receive_side(slot).error.take()
        {
            return Err(*e);
        }
        return Ok(true);
    }
    let receiver = pending(ep, lane, slot);
    let result = match receiver.look() {
        // SAFETY: the request's buffer is writable until completion.
        Some(found) => unsafe { receiver.take(found) },
        None if !wait => {
            ep.tend(lane);
            ep.waiting_sends.push(ep);
            return match lane.gone() {
                None => Ok(false),
                // The last thing the peer did may have been to answer.
                Some(_) if receiver.look().is_some() => complete_receive(ep, lane, slot, wait),
                Some(what) => {
                    withdraw(lane, slot);
                    finish();
                    Err(lane.peer_error(ep.rank, what, "irecv from", receiver.index()))
                }
            };
        }
        // SAFETY: as above.
        None => unsafe { receiver.until_received(true) },
    };
    if ep.event.get().is_some() {
        let rx = &lane.receiving(slot).1.rx;
        rx.store(rx.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
    }
    finish();
    result.map(|()| true)
}

fn withdraw(lane: &Lane, slot: usize) {
    lane.posting(lane.inn, slot).seq.store(0, Ordering::Relaxed);
}

/// Withdraws a receive. `false`: too late, the message is there or being put; complete the request as usual.
pub fn irecv_cancel(comm: i32, src: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    if src == PROC_NULL {
        return ep.check_comm(comm).map(|()| true);
    }
    if index == TAG_ANY {
        return any_index::cancel(ep, comm, src);
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    cancel(ep, lane, slot)
}

pub(super) fn cancel(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<bool> {
    let progress = lane.progress(slot);
    let flags = progress.recv_flags.load(Ordering::Relaxed);
    if flags & RECV_PENDING == 0 {
        return Err(no_request(ep, "irecv", lane, slot));
    }
    if flags & RECV_READY != 0 {
        return Ok(false);
    }
    if !take_back(&pending(ep, lane, slot)) {
        return Ok(false);
    }
    progress.recv_flags.store(flags & !RECV_PENDING, Ordering::Release);
    Ok(true)
}

/// Takes a posting back. `false`: its message is there or being put; the posting stays, and the message must be received.
pub(super) fn take_back(receiver: &Receiver) -> bool {
    let (lane, slot) = (receiver.lane, receiver.slot);
    withdraw(lane, slot);
    if let Some(far) = lane.far() {
        return super::far::take_back(receiver, far);
    }
    // SYNC POINT: pairs with `Sender::put`: either it sees the posting gone, or we see its mark.
    if !doorbell::barrier() {
        crate::base::atomics::fence(Ordering::SeqCst);
    }
    let puts = lane.head(lane.inn, slot).mark.load(Ordering::Acquire) == (receiver.seq << 2 | PUTS);
    if puts || receiver.look().is_some() {
        // Post again what was withdrawn, so that completing it finds its buffer; who puts has seen the rest of the posting.
        lane.posting(lane.inn, slot).seq.store(receiver.seq, Ordering::Relaxed);
        return false;
    }
    true
}

/// Length and index of the last completed receive on (source, index).
pub fn received(comm: i32, src: i32, index: i32) -> Result<Received> {
    let ep = endpoint()?;
    if src == PROC_NULL {
        ep.check_comm(comm)?;
        return Ok(Received { len: 0, index });
    }
    if index == TAG_ANY {
        return any_index::received(ep, comm, src);
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    let progress = lane.progress(slot);
    if progress.received.load(Ordering::Relaxed) == 0 {
        return Err(Error::new(
            Code::Request,
            format!("rank {}: nothing has been received on {} yet", ep.rank, lane.name(index)),
        ));
    }
    Ok(Received { len: progress.last_len.load(Ordering::Relaxed) as usize, index })
}

/// The length of the message that a receive would take now, if there is one.
pub fn probe(comm: i32, src: i32, index: i32) -> Result<Option<usize>> {
    let ep = endpoint()?;
    if src == PROC_NULL {
        ep.check_comm(comm)?;
        return Ok(Some(0));
    }
    if index == TAG_ANY {
        return any_index::probe(ep, comm, src);
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(busy(ep, lane, slot, "probe"));
    }
    Ok(peek(ep, lane, slot))
}

pub(super) fn peek(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Option<usize> {
    let nowhere = Layout::Contiguous { ptr: core::ptr::null_mut(), len: 0 };
    let receiver = Receiver::new(ep, lane, slot, nowhere, 0);
    receiver.look().map(|found| receiver.length(found))
}

/// A send and a receive at the same time.
///
/// # Safety
/// As for send and recv; the two must not overlap.
#[inline]
pub unsafe fn sendrecv(
    comm: i32,
    sdata: Layout,
    dst: i32,
    sindex: i32,
    rdata: Layout,
    src: i32,
    rindex: i32,
) -> Result<()> {
    let ep = endpoint()?;
    if let (Layout::Contiguous { ptr, len }, Layout::Contiguous { ptr: to, len: cap }) = (sdata, rdata)
        && len <= ep.tuning.annex
        && !(ptr.is_null() && len != 0 || to.is_null() && cap != 0)
        && let (Some(out), Some(inn)) =
            (ep.lanes.find(Lane::key_of(comm, dst as u32)), ep.lanes.find(Lane::key_of(comm, src as u32)))
    {
        let (o, i) = (sindex as u32 as usize + SYSTEM_INDICES, rindex as u32 as usize + SYSTEM_INDICES);
        if o < out.limit() as usize
            && i < inn.limit() as usize
            && out.special.load(Ordering::Relaxed) == 0
            && inn.progress(i).recv_flags.load(Ordering::Relaxed) & RECV_PENDING == 0
            // SAFETY: `len` readable bytes.
            && unsafe { super::send::send_short(out, o, ptr, len) }
        {
            // The send is over, so nothing is won by posting first.
            // SAFETY: as the caller promises.
            return unsafe { super::receive::recv_and::<false>(comm, rdata, src, rindex) };
        }
    }
    // SAFETY: as the caller promises; the receive is completed or cancelled before this returns.
    unsafe { irecv(comm, rdata, src, rindex)? };
    // SAFETY: as the caller promises.
    let sent = unsafe { super::send::send(comm, sdata, dst, sindex) };
    if let Err(e) = sent {
        // The receive must not outlive the call, whose buffer the caller gets back.
        if irecv_cancel(comm, src, rindex) == Ok(false) {
            let _ = irecv_wait(comm, src, rindex);
        }
        return Err(e);
    }
    irecv_wait(comm, src, rindex)
}
