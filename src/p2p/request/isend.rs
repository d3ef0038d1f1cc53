//! Non-blocking sends: what goes at once, and their completion.

use super::pending::may_last;
use super::*;

/// Non-blocking send. Its time-out runs from here.
#[inline(always)]
pub fn isend(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let Form::Contiguous(run) = data.form() else {
        return isend_slow(endpoint()?, comm, data, dst, index);
    };
    let ep = endpoint()?;
    if run.len() <= ep.tuning.annex
        && let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32))
    {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && lane.special.load(Ordering::Relaxed) == 0 && !run.is_nowhere() {
            let progress = lane.progress(slot);
            if crate::p2p::send::send_short(lane, progress, slot, run) {
                let flags = &progress.send_flags;
                flags.store(flags.load(Ordering::Relaxed) | SEND_PENDING, Ordering::Relaxed);
                // A window of requests goes over the indices in order: one that is a message behind is likely to be next.
                if let Some((ahead, its)) = lane.near(progress, slot, AHEAD)
                    && its.sent.load(Ordering::Relaxed) + 1 == progress.sent.load(Ordering::Relaxed)
                {
                    prefetch_to_write(lane.sending(ahead).0);
                }
                return Ok(());
            }
        }
    }
    isend_run(ep, comm, run, dst, index)
}

/// [`isend_slow`] of a run of bytes, as for `send`.
#[cold]
#[inline(never)]
fn isend_run(ep: &'static Endpoint, comm: i32, run: Run, dst: i32, index: i32) -> Result<()> {
    isend_slow(ep, comm, run.into(), dst, index)
}

#[cold]
#[inline(never)]
fn isend_slow(ep: &'static Endpoint, comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = find(ep, comm, dst, index)?;
    let timeout = ep.spool.budget(lane.comm()).timeout_ms();
    isend_on(ep, lane.lane(), slot, data, timeout)
}

/// Non-blocking send on a slot; `timeout`: milliseconds, negative: synchronous.
pub(in crate::p2p) fn isend_on(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    data: Layout,
    timeout: i32,
) -> Result<()> {
    let len = data.len_checked()?;
    let progress = lane.progress(slot);
    // A window of requests goes over its indices in order.
    if let Some((ahead, _)) = lane.near(progress, slot, AHEAD).filter(|_| lane.remote().is_none()) {
        prefetch(lane.posting_there(ahead));
        prefetch_to_write(lane.sending(ahead).0);
    }
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
    // The copy of the one before may still be on its way to its lines; those of the block that this one is likely to go into come meanwhile.
    let (ahead, block) = (copying::ahead(), lane.send_side(slot).block.get());
    if ahead != 0 && !sender.is_short() && block.is_some() {
        prefetch_run_to_write((&raw const *ep.spool.block(block.at)).cast(), size_of::<Block>() + ahead);
    }
    if timeout >= 0 && (sender.is_short() || sender.is_of_window()) && sender.place_short() {
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
    (sender.request, sender.later) = (true, may_last(ep));
    let patience = Patience { synchronous: timeout < 0, late: false, at_once: false, by_the_way: false };
    let state = sender.attempt(patience, Ring::IfAwaited)?;
    if state == SendState::Waits {
        let mark = &lane.head(lane.out, slot).mark;
        lane.touch(slot);
        mark.store(sender.seq << 2 | WANTS, Ordering::Relaxed);
        if let Some(remote) = lane.remote() {
            // Before the announcement: who finds that looks for this.
            remote.mark(slot, sender.seq, calls(remote));
        }
        doorbell::light_barrier();
        if lane.is_subscribed() {
            any_index::announce(lane, slot);
        }
    }
    pending(state);
    if state.is_moved_on() {
        ep.waiting_sends.add(lane, slot);
    }
    if state == SendState::Waits
        && let Some(remote) = lane.remote().filter(|remote| calls(remote))
    {
        // In the list first: the peer's call comes to the fabric's thread, which moves on what it finds there.
        remote.call(Call::Marks);
    }
    if state != SendState::Sent {
        arm_send(ep, lane, slot, state, len);
    }
    Ok(())
}

/// Does a peer have to call for a pending send when it posts? Where this process does the network's part, it sees the posting come.
fn calls(remote: &Remote) -> bool {
    !remote.link.limits().is_driven
}

/// With an event descriptor, asks the receiver to ring when it posts or acknowledges.
fn arm_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, state: SendState, len: usize) {
    let Some(event) = ep.event.get() else { return };
    let tx = &lane.sending(slot).0.tx;
    // SYNC POINT: pairs with the receiver's look at the sleep byte after it has posted or acknowledged.
    tx.store(tx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
    lane.my_side().asleep.fetch_add(1, Ordering::Relaxed);
    if lane.special.load(Ordering::Relaxed) & SPECIAL_SYNCHRONOUS != 0 {
        any_index::want_posting(lane);
    }
    ep.order_event(event, || lane.is_ordered());
    if let Some(remote) = lane.remote() {
        remote.fall_asleep();
    }
    let published = state != SendState::Waits;
    let seq = lane.progress(slot).sent.load(Ordering::Relaxed) + !published as u64;
    if (Waiting { ep, lane, slot, seq, len, confirm: published, midway: false }).ready() {
        event.signal();
    }
}

/// It need not ring any more.
pub(super) fn disarm_send(lane: &Lane, slot: usize) {
    let tx = &lane.sending(slot).0.tx;
    let now = tx.load(Ordering::Relaxed);
    if now & EVENT != 0 {
        tx.store(now & !EVENT, Ordering::Relaxed);
        lane.my_side().asleep.fetch_sub(1, Ordering::Relaxed);
    }
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
    complete_send(ep, lane.lane(), slot, wait)
}

/// Completes the send if that takes no waiting.
#[inline(always)]
pub fn isend_test(comm: i32, dst: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    if is_sent(ep, comm, dst, index) { Ok(true) } else { isend_complete(ep, comm, dst, index, false) }
}
