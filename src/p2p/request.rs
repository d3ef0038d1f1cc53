//! Non-blocking requests. There are no request objects: an index has at most one send and one receive under way, and (peer, index)
//! names it.

use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::record::*;
use crate::lane::*;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::layout::Layout;
use crate::p2p::receive::{Found, Receiver};
use crate::p2p::send::{Sender, Waiting, busy};
use crate::p2p::transfer::Put;
use crate::p2p::{PROC_NULL, Received, TAG_ANY, any_index};
use crate::wait::{Turn, Waiter, doorbell};

/// Non-blocking send. Its time-out runs from here.
///
/// # Safety
/// `data` must stay readable and unchanged until the request is completed.
pub unsafe fn isend(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    // SAFETY: as the caller promises.
    let len = unsafe { data.len_checked()? };
    let progress = lane.progress(slot);
    let flags = progress.send_flags.load(Ordering::Relaxed);
    if flags & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "isend"));
    }
    let pending = |state: SendState| {
        let flags = progress.send_flags.load(Ordering::Relaxed);
        progress.send_flags.store(flags | SEND_PENDING, Ordering::Relaxed);
        if state != SendState::Sent || lane.send_side(slot).state != SendState::Sent {
            lane.send_side(slot).state = state;
        }
    };
    if let Layout::Contiguous { ptr, len } = data
        && len <= INLINE_BYTES
        && lane.special.load(Ordering::Relaxed) == 0
        // SAFETY: `len` readable bytes.
        && unsafe { super::send::send_inline(lane, slot, ptr, len) }
    {
        pending(SendState::Sent);
        return Ok(());
    }
    let mut sender = Sender::new(ep, lane, slot, data, len);
    sender.check_peer()?;
    sender.end_offer();
    let timeout = ep.spool.budget(lane.comm()).timeout_ms();
    // SAFETY: as the caller promises.
    if sender.is_short() && timeout >= 0 && unsafe { sender.place_short() } {
        pending(SendState::Sent);
        return Ok(());
    }
    let side = lane.send_side(slot);
    (side.layout, side.len) = (data, len);
    side.deadline_ns = match timeout {
        t if t < 0 => u64::MAX,
        t => now_ns() + t as u64 * 1_000_000,
    };
    // SAFETY: the data stays readable until completion.
    let mut state = unsafe { start(&mut sender, timeout)? };
    // What the receiver cannot be offered would move only in this thread's own isend_wait. A thread that first waits for its peer,
    // which does the same, would never come there: so it goes into the spool at once, if there is room.
    // SAFETY: the data is readable.
    if state == SendState::Waits && timeout >= 0 && !sender.is_short() && unsafe { sender.spool() } {
        state = SendState::Sent;
    }
    if state == SendState::Waits {
        let mark = &lane.head(lane.out, slot).mark;
        mark.store(sender.seq << 2 | WANTS, Ordering::Release);
        if lane.peer_side().any.load(Ordering::Relaxed) != 0 {
            any_index::announce(lane, slot);
        }
        arm_send(ep, lane, slot);
    }
    pending(state);
    Ok(())
}

/// What an isend can do at once.
unsafe fn start(sender: &mut Sender, timeout: i32) -> Result<SendState> {
    // SAFETY (all calls): the data is readable until completion.
    if sender.lane.posting(sender.lane.out, sender.slot).is(sender.seq) {
        // SAFETY: see above.
        match unsafe { sender.put() } {
            Put::Done => return Ok(SendState::Sent),
            Put::Failed(e) => return Err(e),
            Put::NotNow => {}
        }
    }
    if sender.is_short() {
        // SAFETY: see above.
        if timeout < 0 && sender.consumed_all() && unsafe { sender.place_short() } {
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
fn arm_send(ep: &Endpoint, lane: &Lane, slot: usize) {
    if ep.event.get().is_some() {
        let tx = &lane.hot(slot).half[lane.out].tx;
        tx.store(tx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
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
fn no_request(ep: &Endpoint, what: &str, peer: i32, index: i32) -> Error {
    Error::new(Code::Request, format!("rank {}: no {what} is pending on (peer {peer}, index {index})", ep.rank))
}

/// Completes the send on (peer, index), spooling when its time-out has passed.
pub fn isend_wait(comm: i32, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    complete_send(ep, lane, slot, true, index).map(|_| ())
}

/// Completes the send if that takes no waiting.
pub fn isend_test(comm: i32, dst: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return ep.check_comm(comm).map(|()| true);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    complete_send(ep, lane, slot, false, index)
}

fn complete_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool, index: i32) -> Result<bool> {
    let progress = lane.progress(slot);
    if progress.send_flags.load(Ordering::Relaxed) & SEND_PENDING == 0 {
        return Err(no_request(ep, "isend", lane.peer_rank() as i32, index));
    }
    let side = lane.send_side(slot);
    let finish = || progress.send_flags.store(progress.send_flags.load(Ordering::Relaxed) & !SEND_PENDING, Ordering::Relaxed);
    if side.state == SendState::Sent {
        finish();
        return Ok(true);
    }
    // SAFETY: the memory stays the request's until it is completed here.
    let done = unsafe { drive(ep, lane, slot, wait) };
    match done {
        Ok(false) => {
            let deadline = side.deadline_ns;
            debug_assert!(!wait || deadline == 0, "a wait ends only with the request");
            Ok(false)
        }
        Ok(true) => {
            side.state = SendState::Sent;
            let tx = &lane.hot(slot).half[lane.out].tx;
            tx.store(tx.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
            finish();
            Ok(true)
        }
        Err(e) => {
            if side.state == SendState::Offered {
                // The peer is gone: nobody will touch the offer any more.
                Sender::new(ep, lane, slot, side.layout, side.len).end_offer();
            }
            side.state = SendState::Sent;
            finish();
            Err(e)
        }
    }
}

/// Moves a pending send on; `true` when it is complete.
unsafe fn drive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    let side = lane.send_side(slot);
    let synchronous = side.deadline_ns == u64::MAX;
    let mut late = !synchronous && now_ns() >= side.deadline_ns;
    let mut waiter = Waiter::until((!synchronous && !late).then_some(side.deadline_ns));
    loop {
        let published = matches!(side.state, SendState::Offered | SendState::Unconfirmed);
        let mut sender = Sender::new(ep, lane, slot, side.layout, side.len);
        if published {
            // The request's message is the last one sent, not the next.
            sender.seq -= 1;
        }
        // SAFETY (all calls): the request's memory is readable until completion.
        match side.state {
            SendState::Sent => return Ok(true),
            SendState::Waits => {
                if lane.posting(lane.out, slot).is(sender.seq) {
                    // SAFETY: see above.
                    match unsafe { sender.put() } {
                        Put::Done => return Ok(true),
                        Put::Failed(e) => return Err(e),
                        Put::NotNow => {}
                    }
                }
                // SAFETY: see above.
                if sender.is_short() && (!synchronous || sender.consumed_all()) && unsafe { sender.place_short() } {
                    if !synchronous {
                        return Ok(true);
                    }
                    side.state = SendState::Unconfirmed;
                    continue;
                }
                // SAFETY: see above.
                if !sender.is_short() && unsafe { sender.offer() } {
                    side.state = SendState::Offered;
                    continue;
                }
                // SAFETY: see above.
                if late && !sender.is_short() && unsafe { sender.spool() } {
                    return Ok(true);
                }
            }
            SendState::Unconfirmed => {
                if sender.confirmed() {
                    return Ok(true);
                }
            }
            SendState::Offered => {
                if sender.acknowledged() {
                    sender.end_offer();
                    return Ok(true);
                }
                // SAFETY: see above.
                if (late || sender.is_refused()) && unsafe { sender.move_offer() } {
                    // The block of the offer stays taken until the message is acknowledged.
                    return Ok(true);
                }
            }
        }
        if !wait {
            sender.check_peer()?;
            return Ok(false);
        }
        let scene = Waiting { ep, lane, slot, seq: sender.seq, len: side.len, confirm: published, midway: false };
        if late && ep.spool.budget(lane.comm()).timeout_ms() == 0 && side.state == SendState::Waits {
            return Err(sender.spool_full());
        }
        if !waiter.spin() && waiter.slow(&scene)? == Turn::TimedOut {
            late = true;
            waiter = Waiter::new();
        }
    }
}

/// Non-blocking receive.
///
/// # Safety
/// `data` must stay writable and untouched until the request is completed or cancelled.
pub unsafe fn irecv(comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if src == PROC_NULL {
        return ep.check_comm(comm);
    }
    if index == TAG_ANY {
        // SAFETY: as the caller promises.
        return unsafe { any_index::irecv(ep, comm, data, src) };
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    // SAFETY: as the caller promises.
    let cap = unsafe { data.len_checked()? };
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(busy(ep, lane, slot, "irecv"));
    }
    // SAFETY: as the caller promises.
    unsafe { begin(&Receiver::new(ep, lane, slot, data, cap)) }
}

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
                lane.receive_side(slot).error = Some(Box::new(e));
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
        (side.layout, side.cap) = (receiver.data, receiver.cap);
    }
    if let Some(event) = ep.event.get() {
        let rx = &lane.hot(slot).half[1 - lane.inn].rx;
        // SYNC POINT: pairs with the sender's look at the sleep byte after publishing.
        rx.store(rx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        doorbell::barrier();
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
        (side.layout, side.cap)
    };
    Receiver::new(ep, lane, slot, data, cap)
}

/// Completes the receive on (peer, index).
pub fn irecv_wait(comm: i32, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
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
pub fn irecv_test(comm: i32, src: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
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
        return Err(no_request(ep, "irecv", lane.peer_rank() as i32, slot as i32 - SYSTEM_INDICES as i32));
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
        let rx = &lane.hot(slot).half[1 - lane.inn].rx;
        rx.store(rx.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
    }
    finish();
    result.map(|()| true)
}

fn withdraw(lane: &Lane, slot: usize) {
    lane.posting(lane.inn, slot).seq.store(0, Ordering::Release);
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
        return Err(no_request(ep, "irecv", lane.peer_rank() as i32, slot as i32 - SYSTEM_INDICES as i32));
    }
    if flags & RECV_READY != 0 {
        return Ok(false);
    }
    let receiver = pending(ep, lane, slot);
    withdraw(lane, slot);
    // SYNC POINT: pairs with `Sender::put`: either it sees the posting gone, or we see its mark.
    if !doorbell::barrier() {
        crate::base::atomics::fence(Ordering::SeqCst);
    }
    let puts = lane.head(lane.inn, slot).mark.load(Ordering::Acquire) == (receiver.seq << 2 | PUTS);
    if puts || matches!(receiver.look(), Some(Found::Landing(_) | Found::Record(_))) {
        // Post again what was withdrawn, so that completing it finds its buffer.
        let posting = lane.posting(lane.inn, slot);
        posting.seq.store(receiver.seq, Ordering::Release);
        return Ok(false);
    }
    progress.recv_flags.store(flags & !RECV_PENDING, Ordering::Release);
    Ok(true)
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
            format!("rank {}: nothing has been received on (peer {src}, index {index}) yet", ep.rank),
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
pub unsafe fn sendrecv(comm: i32, sdata: Layout, dst: i32, sindex: i32, rdata: Layout, src: i32, rindex: i32) -> Result<()> {
    let ep = endpoint()?;
    if let (Layout::Contiguous { ptr, len }, Layout::Contiguous { ptr: to, len: cap }) = (sdata, rdata)
        && len <= INLINE_BYTES
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
            && unsafe { super::send::send_inline(out, o, ptr, len) }
        {
            // The send is over, so nothing is won by posting first.
            // SAFETY: as the caller promises.
            return unsafe { super::receive::recv(comm, rdata, src, rindex) };
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
