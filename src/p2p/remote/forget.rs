//! What the lanes with a peer have to say when it is to be forgotten: is anything under way there?
//!
//! The numbers of an index begin anew afterwards, on both sides: so all that this side has sent is received, its memory is its own again, and
//! nothing that it was given is in the peer's. What the peer has sent is the peer's to say.
//!
//! A program may still ask for the length of the message that it has received last. So much of the peers that were forgotten latest stays:
//! [`Lately`].

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::is_of;
use crate::base::lock::Mutex;
use crate::fabric::network::link::Link;
use crate::lane::remote::{Remote, has_messages};
use crate::lane::{Lane, RECV_PENDING, SEND_OPEN, SEND_PENDING};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::{any_index, send, sendbuf};

/// See [`Hooks::close`](crate::fabric::network::control::Hooks).
pub(super) fn close(link: &Link) -> Option<usize> {
    let ep = endpoint().ok()?;
    if is_unmade_in(ep, link) {
        return None;
    }
    ep.lanes.close(|remote| is_of(remote, link), |lane, remote| is_quiet(ep, lane, remote))
}

/// See there.
pub(super) fn has_unmade(link: &Link) -> bool {
    endpoint().is_ok_and(|ep| is_unmade_in(ep, link))
}

/// Is there a message for a lane that is yet to be made here? Its sender may have freed the communicator since, and know nothing of it any more.
fn is_unmade_in(ep: &Endpoint, link: &Link) -> bool {
    let made = ep.lanes.try_hold_remote(|_, remote| is_of(remote, link));
    let made: Vec<u64> = made.iter().map(|lane| lane.remote().number()).collect();
    link.windows_beside(&made).iter().any(|window| has_messages(window))
}

/// See there.
pub(super) fn owes(link: &Link) -> bool {
    let lanes = endpoint().map_or(Vec::new(), |ep| ep.lanes.try_hold_remote(|_, remote| is_of(remote, link)));
    lanes.iter().any(|lane| lane.remote().owes())
}

/// See there.
pub(super) fn open(link: &Link) {
    if let Ok(ep) = endpoint() {
        ep.lanes.open(|remote| is_of(remote, link));
    }
}

/// See there.
pub(super) fn free(link: &Link) {
    if let Ok(ep) = endpoint() {
        let last = |lane: &Lane| {
            sendbuf::let_go(ep, lane, true);
            lane.remote().inspect(|remote| ep.lately.note(lane, remote));
        };
        ep.lanes.free_closed(|remote| is_of(remote, link), last);
    }
}

/// So many lengths of messages are kept.
const LATELY: usize = 4096;
/// In place of a slot: by a receive of any index.
const ANY: u32 = u32::MAX;

/// The lengths of the messages that were received last from peers that have been forgotten since, the latest last.
#[derive(Default)]
pub struct Lately(Mutex<VecDeque<Last>>);

struct Last {
    /// The lane's key, and the slot by which it was asked for.
    name: (u64, u32),
    received: (usize, u32),
}

impl Lately {
    fn note(&self, lane: &Lane, remote: &Remote) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut note = |by: u32, slot: usize, len: usize| {
            if all.len() == LATELY {
                all.pop_front();
            }
            all.push_back(Last { name: (lane.key(), by), received: (len, slot as u32) });
        };
        for slot in remote.used_slots().filter(|slot| lane.progress(*slot).received.load(Ordering::Relaxed) != 0) {
            note(slot as u32, slot, lane.last_len(slot));
        }
        let slot = lane.any_slot.load(Ordering::Relaxed) as usize;
        if slot != 0 {
            note(ANY, slot, lane.any_len.load(Ordering::Relaxed) as usize);
        }
    }

    /// A communicator is freed.
    pub fn forget(&self, comm: i32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|last| Lane::comm_of(last.name.0) != comm);
    }

    fn find(&self, lane: &Lane, by: u32) -> Option<(usize, usize)> {
        lane.remote()?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = all.iter().rev().find(|last| last.name == (lane.key(), by))?;
        Some((last.received.0, last.received.1 as usize))
    }
}

impl Endpoint {
    /// The length of the message received last on a slot, if there was one.
    pub fn last_received(&self, lane: &Lane, slot: usize) -> Option<usize> {
        match lane.progress(slot).received.load(Ordering::Relaxed) {
            0 => self.lately.find(lane, slot as u32).map(|(len, _)| len),
            _ => Some(lane.last_len(slot)),
        }
    }

    /// The same of the message received last by any index; its length, and its slot.
    pub fn last_of_any(&self, lane: &Lane) -> Option<(usize, usize)> {
        match lane.any_slot.load(Ordering::Relaxed) {
            0 => self.lately.find(lane, ANY),
            slot => Some((lane.any_len.load(Ordering::Relaxed) as usize, slot as usize)),
        }
    }
}

/// Is nothing under way on a lane that nobody uses?
fn is_quiet(ep: &Endpoint, lane: &Lane, remote: &Remote) -> bool {
    // (Announcements are of messages on some index; and who receives from any one subscribes anew.)
    let begun = any_index::is_begun(lane) || remote.owes() || remote.has_unseen() || ep.waiting_sends.may_have(lane);
    !begun && remote.used_slots().all(|slot| is_slot_quiet(ep, lane, remote, slot))
}

fn is_slot_quiet(ep: &Endpoint, lane: &Lane, remote: &Remote, slot: usize) -> bool {
    let progress = lane.progress(slot);
    let sends = progress.send_flags.load(Ordering::Acquire) & (SEND_PENDING | SEND_OPEN) != 0;
    let receives = progress.recv_flags.load(Ordering::Acquire) & RECV_PENDING != 0;
    if sends || receives || remote.has_memory(slot) {
        return false;
    }
    lane.take_over_incoming(slot, progress.received.load(Ordering::Relaxed) + 1);
    let (sent, next) = (progress.sent.load(Ordering::Relaxed), progress.received.load(Ordering::Relaxed) + 1);
    let come = lane.receiving(slot).0.landing().is(next, lane.epoch) || remote.chain_tail(slot) >= next;
    !come && (sent == 0 || send::is_consumed(ep, lane, slot, sent))
}
