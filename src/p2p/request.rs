//! Non-blocking requests. There are no request objects: an index has at most one send and one receive under way, and (peer, index)
//! names it.

mod irecv;
mod isend;
mod pending;
mod prepared;
mod several;

use core::cell::Cell;

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::copying;
use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::{Form, Layout, Run};
use crate::base::prefetch::{prefetch, prefetch_run_to_write, prefetch_to_write};
use crate::base::unwinding::NoWayOut;
use crate::lane::map::{SPLIT_BYTES, SYSTEM_INDICES};
use crate::lane::record::*;
use crate::lane::remote::{Call, Remote};
use crate::lane::*;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::loan::Lent;
use crate::p2p::receive::{POST_AT_ONCE, Receiver, fetch_annex, fetch_spooled, post_short, take_short};
use crate::p2p::send::{Patience, Sender, Waiting, busy};
use crate::p2p::transfer::Ring;
use crate::p2p::{PROC_NULL, Received, TAG_ANY, any_index};
use crate::wait::{Scene, Turn, Waiter, doorbell, patience};
pub use irecv::*;
pub use isend::*;
pub use pending::WaitingSends;
pub(super) use pending::{abandon_send, complete_send};
pub use prepared::{Prepared, recv_init, recv_start, send_init, send_start};
pub use several::Several;

#[inline]
fn find(ep: &'static Endpoint, comm: i32, peer: i32, index: i32) -> Result<(Used, usize)> {
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, peer as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize {
            return Ok((Used::here(lane), slot));
        }
    }
    ep.resolve(comm, peer, index)
}

#[cold]
fn no_request(ep: &Endpoint, what: &str, lane: &Lane, slot: usize) -> Error {
    let name = lane.name(slot as i32 - SYSTEM_INDICES as i32);
    error!(Code::Request, "rank {}: no {what} is pending on {name}", ep.rank)
}

/// A send and a receive at the same time.
#[inline]
pub fn sendrecv(comm: i32, sdata: Layout, dst: i32, sindex: i32, rdata: Layout, src: i32, rindex: i32) -> Result<()> {
    if let (Form::Contiguous(from), Form::Contiguous(to)) = (sdata.form(), rdata.form())
        && let ep = endpoint()?
        && from.len() <= ep.tuning.annex
        && !from.is_nowhere()
        && !to.is_nowhere()
        && let (Some(out), Some(inn)) =
            (ep.lanes.find(Lane::key_of(comm, dst as u32)), ep.lanes.find(Lane::key_of(comm, src as u32)))
    {
        let (o, i) = (sindex as u32 as usize + SYSTEM_INDICES, rindex as u32 as usize + SYSTEM_INDICES);
        if o < out.limit() as usize
            && i < inn.limit() as usize
            && out.special.load(Ordering::Relaxed) == 0
            && inn.progress(i).recv_flags.load(Ordering::Relaxed) & RECV_PENDING == 0
            && super::send::send_short(out, out.progress(o), o, from)
        {
            // The send is over, so nothing is won by posting first.
            return super::receive::recv_found::<false>(ep, inn, i, to);
        }
    }
    check_send(comm, sdata, dst, sindex)?;
    irecv(comm, rdata, src, rindex)?;
    let guard = NoWayOut("a send beside a receive");
    let sent = super::send::send(comm, sdata, dst, sindex);
    if let Err(e) = sent {
        // The receive must not outlive the call, whose buffer the caller gets back.
        let ended = match irecv_cancel(comm, src, rindex) {
            Ok(false) => beside_what_came(comm, sdata, (dst, sindex), irecv_wait(comm, src, rindex), e),
            _ => Err(e),
        };
        guard.open();
        return ended;
    }
    let received = irecv_wait(comm, src, rindex);
    guard.open();
    received
}

/// What is wrong with the send of a sendrecv is found before a message can have come.
fn check_send(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if dst == PROC_NULL {
        return Ok(());
    }
    let (used, slot) = find(ep, comm, dst, index)?;
    let (lane, len) = (used.lane(), data.len_checked()?);
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "send"));
    }
    Sender::new(ep, lane, slot, data, len).check_peer()
}

/// The send of a sendrecv has failed, but a message has come, which nobody can give back: so where it has found no room it is waited for that.
#[cold]
fn beside_what_came(comm: i32, data: Layout, to: (i32, i32), came: Result<()>, failed: Error) -> Result<()> {
    let ep = endpoint()?;
    let (lane, slot) = find(ep, comm, to.0, to.1)?;
    if failed.code() != Code::SpoolFull || lane.is_self() {
        return Err(failed);
    }
    super::send::send_patiently(ep, lane.lane(), slot, data).and(came)
}
