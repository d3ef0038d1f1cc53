//! Non-blocking receives: posting, completing, cancelling, probing.

use super::*;

/// Non-blocking receive.
#[inline(always)]
pub fn irecv(comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    let Form::Contiguous(run) = data.form() else {
        return irecv_slow(endpoint()?, comm, data, src, index);
    };
    let ep = endpoint()?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        // A long message that is there already is worth taking at once.
        if slot < lane.limit() as usize && run.len() <= POST_AT_ONCE && !run.is_nowhere() && ep.event.get().is_none() {
            let progress = lane.progress(slot);
            let flags = &progress.recv_flags;
            let now = flags.load(Ordering::Relaxed);
            if now & (RECV_PENDING | RECV_CHAIN | RECV_OWES) == 0 {
                let seq = progress.received.load(Ordering::Relaxed) + 1;
                if slot.is_multiple_of(PROGRESS_GROUP) {
                    lane.fetch_next_group(slot);
                }
                post_short(ep, lane, slot, seq, run);
                // SYNC POINT: pairs with `holds_annex`, as all stores of these flags do: each may cover the one after which the last
                // annex belongs to the sending thread.
                flags.store(now | RECV_PENDING, Ordering::Release);
                return Ok(());
            }
        }
    }
    irecv_run(ep, comm, run, src, index)
}

/// [`irecv_slow`] of a run of bytes, as for `recv`.
#[cold]
#[inline(never)]
fn irecv_run(ep: &'static Endpoint, comm: i32, run: Run, src: i32, index: i32) -> Result<()> {
    irecv_slow(ep, comm, run.into(), src, index)
}

#[cold]
#[inline(never)]
fn irecv_slow(ep: &'static Endpoint, comm: i32, data: Layout, src: i32, index: i32) -> Result<()> {
    if src == PROC_NULL {
        return ep.check_comm(comm);
    }
    if index == TAG_ANY {
        return any_index::irecv(ep, comm, data, src);
    }
    let (lane, slot) = find(ep, comm, src, index)?;
    irecv_on(ep, lane.lane(), slot, data)
}

/// Non-blocking receive on a slot.
pub(in crate::p2p) fn irecv_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    let cap = data.len_checked()?;
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(busy(ep, lane, slot, "irecv"));
    }
    begin(&Receiver::new(ep, lane, slot, data, cap))
}

/// The short path of completing a receive: it is of one run of bytes, and its message is in the landing or an annex, or will be
/// within so many turns. `false`: not this way.
#[inline(always)]
fn complete_short(lane: &Lane, slot: usize, patience: u32) -> bool {
    let progress = lane.progress(slot);
    let flags = &progress.recv_flags;
    if flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_READY | RECV_CHAIN | RECV_LOAN) != RECV_PENDING {
        return false;
    }
    let Some(run) = lane.wanted(slot).get() else { return false };
    // A window of requests is completed in the order of its indices: have the line of one further on come meanwhile.
    // Or in the reverse order.
    let pending = |(_, its): &(usize, &Progress)| its.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0;
    let next =
        lane.near(progress, slot, AHEAD).filter(pending).or_else(|| lane.near(progress, slot, -AHEAD).filter(pending));
    if let Some((next, _)) = next {
        prefetch(lane.receiving(next).0);
    }
    if run.len() > SPLIT_BYTES
        && let Some((next, its)) = lane.near(progress, slot, 1).filter(pending)
    {
        fetch_annex(lane, next, its, run.len());
    }
    if !take_short::<false>(lane, progress, slot, run, || patience) {
        return false;
    }
    flags.store(flags.load(Ordering::Relaxed) & !RECV_PENDING, Ordering::Release);
    true
}

/// Takes the message if it is there, else posts.
pub(in crate::p2p) fn begin(receiver: &Receiver) -> Result<()> {
    let (ep, lane, slot) = (receiver.ep, receiver.lane, receiver.slot);
    let progress = lane.progress(slot);
    let set = |bits: u8| {
        let flags = progress.recv_flags.load(Ordering::Relaxed);
        let loan = if receiver.wants_loan { RECV_LOAN } else { 0 };
        progress.recv_flags.store(flags | RECV_PENDING | loan | bits, Ordering::Release);
    };
    if let Some(found) = receiver.look() {
        match receiver.take(found) {
            Ok(()) => {
                if receiver.wants_loan {
                    lane.wanted(slot).set(receiver.lent().bytes());
                }
                set(RECV_READY)
            }
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
    if !matches!(receiver.data.form(), Form::Contiguous(_)) {
        let side = lane.receive_side(slot);
        side.layout.set(receiver.data);
        side.cap.set(receiver.cap);
    }
    if let Some(event) = ep.event.get() {
        let rx = &lane.receiving(slot).1.rx;
        // SYNC POINT: pairs with the sender's look at the sleep byte after publishing.
        rx.store(rx.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        ep.order_event(event, || lane.is_ordered());
        if let Some(remote) = lane.remote() {
            remote.fall_asleep();
        }
        if receiver.look().is_some() {
            event.signal();
        }
    }
    receiver.post(false);
    if receiver.cap > POST_AT_ONCE {
        lane.posted_long.store(slot as u32 + 1, Ordering::Relaxed);
    }
    set(0);
    Ok(())
}

/// The pending receive of a slot, as it was posted.
fn pending(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Receiver {
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_LOAN != 0 {
        return Receiver::of_loan(ep, lane, slot);
    }
    let (data, cap) = match lane.wanted(slot).get() {
        Some(run) => (run.into(), run.len()),
        None => {
            let side = lane.receive_side(slot);
            (side.layout.get(), side.cap.get())
        }
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
    complete_receive(ep, lane.lane(), slot, true).map(|_| ())
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
    complete_receive(ep, lane.lane(), slot, false)
}

pub(in crate::p2p) fn complete_receive(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    wait: bool,
) -> Result<bool> {
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_LOAN != 0 {
        return Err(no_request(ep, "irecv, but an irecv_loan,", lane, slot));
    }
    complete(ep, lane, slot, wait, None)
}

/// The same of a receive that wants a loan, which is what it gives.
pub(in crate::p2p) fn complete_loan(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    wait: bool,
) -> Result<Option<Lent>> {
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_LOAN == 0 {
        return Err(no_request(ep, "irecv_loan", lane, slot));
    }
    let lent = Cell::new(Lent::NOTHING);
    let done = complete(ep, lane, slot, wait, Some(&lent))?;
    Ok(done.then(|| lent.get()))
}

fn complete(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    wait: bool,
    lent: Option<&Cell<Lent>>,
) -> Result<bool> {
    let progress = lane.progress(slot);
    let flags = progress.recv_flags.load(Ordering::Relaxed);
    if flags & RECV_PENDING == 0 {
        return Err(no_request(ep, "irecv", lane, slot));
    }
    let finish = || {
        let flags = progress.recv_flags.load(Ordering::Relaxed);
        let over = RECV_PENDING | RECV_READY | RECV_TRUNCATED | RECV_LOAN;
        progress.recv_flags.store(flags & !over, Ordering::Release);
    };
    if flags & RECV_READY != 0 {
        finish();
        if flags & RECV_TRUNCATED != 0
            && let Some(e) = lane.receive_side(slot).error.take()
        {
            return Err(*e);
        }
        if let Some(lent) = lent {
            lent.set(lane.wanted(slot).get().map_or(Lent::NOTHING, Lent::of));
        }
        return Ok(true);
    }
    let receiver = pending(ep, lane, slot);
    let result = match receiver.look() {
        Some(found) if found.is_spooled() => {
            if let Some((next, its)) = lane.near(progress, slot, 1)
                && its.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0
            {
                fetch_spooled(ep, lane, next, its);
            }
            receiver.take(found)
        }
        Some(found) => receiver.take(found),
        None if !wait => {
            lane.remote().inspect(|remote| receiver.goes_on(remote));
            ep.meanwhile(lane);
            return match lane.gone() {
                None => Ok(false),
                // The last thing the peer did may have been to answer.
                Some(_) if receiver.look().is_some() => complete(ep, lane, slot, wait, lent),
                // It lives, and is putting the message.
                Some(_) if !lane.is_dead() && !take_back(&receiver) => Ok(false),
                Some(what) => {
                    withdraw(lane, slot);
                    receiver.let_go();
                    finish();
                    Err(lane.peer_error(ep.rank, what, "irecv from", receiver.index()))
                }
            };
        }
        None => receiver.until_received(true),
    };
    if ep.event.get().is_some() {
        let rx = &lane.receiving(slot).1.rx;
        rx.store(rx.load(Ordering::Relaxed) & !EVENT, Ordering::Relaxed);
    }
    finish();
    if let Some(lent) = lent {
        lent.set(receiver.lent());
    }
    result.map(|()| true)
}

fn withdraw(lane: &Lane, slot: usize) {
    lane.posting_here(slot).seq.store(0, Ordering::Relaxed);
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
    cancel(ep, lane.lane(), slot)
}

pub(in crate::p2p) fn cancel(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<bool> {
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
    progress.recv_flags.store(flags & !(RECV_PENDING | RECV_LOAN), Ordering::Release);
    Ok(true)
}

/// Takes a posting back. `false`: its message is there or being put; the posting stays, and the message must be received.
pub(in crate::p2p) fn take_back(receiver: &Receiver) -> bool {
    let (lane, slot) = (receiver.lane, receiver.slot);
    withdraw(lane, slot);
    if let Some(remote) = lane.remote() {
        return crate::p2p::remote::take_back(receiver, remote);
    }
    // SYNC POINT: pairs with `Sender::put`: either it sees the posting gone, or we see its mark. Who puts has a fence where this side said at
    // its start that it may not call.
    if !doorbell::barrier() && receiver.ep.region.header().is_reached() {
        doorbell::pause();
    }
    let puts = lane.head(lane.inn, slot).mark.load(Ordering::Acquire) == (receiver.seq << 2 | PUTS);
    if puts || receiver.look().is_some() {
        // Post again what was withdrawn, so that completing it finds its buffer; who puts has seen the rest of the posting.
        lane.posting_here(slot).seq.store(receiver.seq, Ordering::Relaxed);
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
    let none = || {
        let text = format!("rank {}: nothing has been received on {} yet", ep.rank, lane.name(index));
        Error::new(Code::Request, text)
    };
    Ok(Received { len: ep.last_received(&lane, slot).ok_or_else(none)?, index })
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
        return Err(busy(ep, &lane, slot, "probe"));
    }
    Ok(peek(ep, lane.lane(), slot))
}

pub(in crate::p2p) fn peek(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Option<usize> {
    let receiver = Receiver::new(ep, lane, slot, Layout::NOTHING, 0);
    receiver.look().map(|found| receiver.length(found))
}
