//! Non-blocking calls. As with indexed messages there are no request objects: (receiver, index) names a send, the index a receive.
//!
//! A send that could not go at once is moved on by its wait or test, and by every wait of this process. Nothing of a receive is known to
//! anybody before it is completed: it takes the next message when it is tested or waited for.

use super::check_buffer;
use super::receive::{Arrived, find};
use super::send::{Message, Outgoing, Stage};
use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::run::Run;
use crate::p2p::PROC_NULL;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::Waiter;

/// Receivers to which this process has requests that are not sent yet.
#[derive(Default)]
pub(super) struct Waiting {
    count: AtomicU32,
    list: Mutex<Vec<&'static Outgoing>>,
}

impl Waiting {
    fn add(&self, out: &'static Outgoing) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        list.push(out);
        self.count.store(list.len() as u32, Ordering::Release);
    }

    fn remove(&self, out: &'static Outgoing) {
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        list.retain(|o| !std::ptr::eq(*o, out));
        self.count.store(list.len() as u32, Ordering::Release);
    }

    /// Moves them on, as far as they go. `true`: some are left.
    pub fn push(&self, ep: &'static Endpoint) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let Ok(list) = self.list.try_lock() else { return true };
        let all = list.clone();
        drop(list);
        all.into_iter().fold(false, |left, out| left | push_request(ep, out))
    }
}

/// Moves a request on, unless another thread is at it. `true`: it still has something to do.
pub(super) fn push_request(ep: &'static Endpoint, out: &'static Outgoing) -> bool {
    let Ok(mut slot) = out.request.try_lock() else { return true };
    let Some(request) = slot.as_mut() else { return false };
    if request.over.is_none() {
        let was = matches!(request.message.stage, Stage::Waits);
        match request.message.step(ep) {
            Ok(false) => {}
            Ok(true) => request.over = Some(Ok(())),
            Err(e) => request.over = Some(Err(e)),
        }
        if was && (request.over.is_some() || !matches!(request.message.stage, Stage::Waits)) {
            out.set_unplaced(false);
        }
        if request.over.is_some()
            && let Some(event) = ep.event.get()
        {
            event.signal();
        }
    }
    request.over.is_none()
}

/// A send under way.
pub(super) struct Request {
    message: Message,
    over: Option<Result<()>>,
}

impl Request {
    pub fn scene<'a>(&'a self, ep: &'static Endpoint) -> super::send::Waiting<'a> {
        self.message.scene(ep)
    }
}

/// Non-blocking send to a receiver of any source.
pub fn isend_any(comm: i32, data: Run, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    check_buffer(ep, data)?;
    let out = ep.outgoing(comm, dst, index)?;
    out.check_peer(ep)?;
    let mut slot = out.request.lock().unwrap_or_else(|e| e.into_inner());
    if slot.is_some() {
        return Err(error!(
            Code::Busy,
            "rank {}: any-source isend to (rank {dst}, index {index}): complete the pending one first", ep.rank
        ));
    }
    let mut message = Message::new(ep, out, data);
    let over = match message.step(ep) {
        Ok(true) => Some(Ok(())),
        Ok(false) => None,
        Err(e) => {
            message.drop_goods(ep);
            return Err(e);
        }
    };
    match &message.stage {
        Stage::Waits if over.is_none() => out.set_unplaced(true),
        Stage::Offered(offered) => offered.arm(ep),
        _ => {}
    }
    let open = over.is_none();
    *slot = Some(Request { message, over });
    drop(slot);
    if open {
        ep.any_source.waiting.add(out);
    }
    Ok(())
}

fn complete_send(comm: i32, dst: i32, index: i32, wait: bool) -> Result<bool> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return ep.check_comm(comm).map(|()| true);
    }
    let out = ep.outgoing(comm, dst, index)?;
    let none =
        || error!(Code::Request, "rank {}: no any-source isend is pending to (rank {dst}, index {index})", ep.rank);
    let mut waiter = Waiter::new();
    loop {
        push_request(ep, out);
        let mut slot = out.request.lock().unwrap_or_else(|e| e.into_inner());
        let request = slot.as_mut().ok_or_else(none)?;
        let mut over = request.over.take();
        if over.is_none() && !wait {
            drop(slot);
            // Another of this process's sends may be what the receiver needs first.
            ep.any_source.push(ep);
            ep.waiting_sends.push(ep);
            let Err(gone) = out.check_wait(ep) else { return Ok(false) };
            // What it has taken comes before that.
            push_request(ep, out);
            let taken = out.request.lock().unwrap_or_else(|e| e.into_inner()).as_mut().and_then(|r| r.over.take());
            end(ep, out);
            return taken.unwrap_or(Err(gone)).map(|()| true);
        }
        if over.is_none() && !waiter.spin() {
            // The lock is kept: this is the request's own thread, and whoever else comes by goes on.
            over = waiter.slow(&request.scene(ep)).err().map(Err);
        }
        drop(slot);
        if let Some(result) = over {
            end(ep, out);
            return result.map(|()| true);
        }
    }
}

/// The request is over, whatever became of it.
fn end(ep: &'static Endpoint, out: &'static Outgoing) {
    let ended = out.request.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some(mut request) = ended {
        request.message.drop_goods(ep);
        out.set_unplaced(false);
        ep.any_source.waiting.remove(out);
    }
}

/// Completes the send to (receiver, index).
pub fn isend_any_wait(comm: i32, dst: i32, index: i32) -> Result<()> {
    complete_send(comm, dst, index, true).map(|_| ())
}

/// Completes the send if that takes no waiting.
pub fn isend_any_test(comm: i32, dst: i32, index: i32) -> Result<bool> {
    complete_send(comm, dst, index, false)
}

/// Non-blocking receive from any source.
pub fn irecv_any(comm: i32, to: Run, index: i32) -> Result<()> {
    let ep = endpoint()?;
    check_buffer(ep, to)?;
    let inc = find(ep, comm, index)?;
    inc.begin(ep, to)
}

fn complete_receive(comm: i32, index: i32, wait: bool) -> Result<Option<Arrived>> {
    let ep = endpoint()?;
    let inc = find(ep, comm, index)?;
    let Some(_claim) = inc.claim_to_complete(wait)? else { return Ok(None) };
    let Some(to) = inc.pending.get() else { return Err(no_receive(ep, index)) };
    if to.len() == super::loans::AS_LOAN {
        return Err(no_receive(ep, index));
    }
    let result = if wait {
        inc.wait(ep, to).map(Some)
    } else {
        ep.waiting_sends.push(ep);
        ep.any_source.push(ep);
        match inc.take(ep, to) {
            Ok(None) => {
                inc.run_dry(false);
                inc.after_death(ep).map_or(Ok(None), Err)
            }
            other => other,
        }
    };
    if !matches!(result, Ok(None)) {
        inc.end();
    }
    result
}

#[cold]
fn no_receive(ep: &Endpoint, index: i32) -> Error {
    error!(Code::Request, "rank {}: no any-source irecv is pending on index {index}", ep.rank)
}

/// Completes the receive on an index.
pub fn irecv_any_wait(comm: i32, index: i32) -> Result<Arrived> {
    match complete_receive(comm, index, true)? {
        Some(arrived) => Ok(arrived),
        None => Err(no_receive(endpoint()?, index)),
    }
}

/// Completes the receive if its message is there.
pub fn irecv_any_test(comm: i32, index: i32) -> Result<Option<Arrived>> {
    complete_receive(comm, index, false)
}

/// Withdraws the receive on an index. `false`: its message is being fetched; complete it.
pub fn irecv_any_cancel(comm: i32, index: i32) -> Result<bool> {
    let ep = endpoint()?;
    let inc = find(ep, comm, index)?;
    let _claim = inc.claim_to_complete(true)?;
    if inc.pending.get().is_none() {
        return Err(no_receive(ep, index));
    }
    if inc.is_underway(ep) {
        return Ok(false);
    }
    inc.drop_begun(ep);
    inc.end();
    Ok(true)
}
