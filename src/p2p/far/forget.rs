//! What the lanes with a peer have to say when it is to be forgotten: is anything under way there?
//!
//! The numbers of an index begin anew afterwards, on both sides: so all that this side has sent is received, its memory is its own again, and
//! nothing that it was given is in the peer's. What the peer has sent is the peer's to say.

use std::sync::atomic::Ordering;

use super::is_of;
use crate::fabric::network::link::Link;
use crate::lane::far::Far;
use crate::lane::{Lane, RECV_PENDING, SEND_OPEN, SEND_PENDING};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::{any_index, send, sendbuf};

/// See [`Hooks::close`](crate::fabric::network::control::Hooks).
pub(super) fn close(link: &Link) -> Option<usize> {
    let ep = endpoint().ok()?;
    ep.lanes.close(|far| is_of(far, link), |lane, far| is_quiet(ep, lane, far))
}

/// See there.
pub(super) fn open(link: &Link) {
    if let Ok(ep) = endpoint() {
        ep.lanes.open(|far| is_of(far, link));
    }
}

/// See there.
pub(super) fn free(link: &Link) {
    if let Ok(ep) = endpoint() {
        ep.lanes.free_closed(|far| is_of(far, link), |lane| sendbuf::let_go(ep, lane, true));
    }
}

/// Is nothing under way on a lane that nobody uses?
fn is_quiet(ep: &Endpoint, lane: &Lane, far: &Far) -> bool {
    // (Announcements are of messages on some index; and who receives from any one subscribes anew.)
    let begun = any_index::is_begun(lane) || far.owes() || ep.waiting_sends.has(lane);
    !begun && far.used_slots().all(|slot| is_slot_quiet(ep, lane, far, slot))
}

fn is_slot_quiet(ep: &Endpoint, lane: &Lane, far: &Far, slot: usize) -> bool {
    let progress = lane.progress(slot);
    let sends = progress.send_flags.load(Ordering::Acquire) & (SEND_PENDING | SEND_OPEN) != 0;
    let receives = progress.recv_flags.load(Ordering::Acquire) & RECV_PENDING != 0;
    if sends || receives || far.has_memory(slot) {
        return false;
    }
    lane.take_over_outgoing(slot);
    lane.take_over_incoming(slot, progress.received.load(Ordering::Relaxed) + 1);
    let (sent, next) = (progress.sent.load(Ordering::Relaxed), progress.received.load(Ordering::Relaxed) + 1);
    let come = lane.receiving(slot).0.landing().is(next, lane.epoch) || far.chain_tail(slot) >= next;
    !come && (sent == 0 || send::is_consumed(ep, lane, slot, sent))
}
