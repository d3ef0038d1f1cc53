//! The short path between nodes: a run of few bytes that goes by the landing and is taken from it, with one look-up, and nothing in between.
//!
//! What cannot go this way at once (a request pending, a queue begun, an acknowledgement or the connection not there, a first message) is
//! left to the way of all messages, which begins anew.

use std::sync::atomic::Ordering;

use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::base::trace::traced;
use crate::lane::progress::*;
use crate::lane::record::{Kind, Land};
use crate::lane::remote::REMOTE_INLINE;
use crate::lane::{Lane, SPECIAL_REMOTE};
use crate::p2p::any_index;

/// Sends. `false`: not this way.
#[inline(always)]
pub(in crate::p2p) fn send_remote(lane: &Lane, slot: usize, run: Run) -> bool {
    let progress = lane.progress(slot);
    let before = progress.sent.load(Ordering::Relaxed);
    let Some(remote) = lane.remote() else { return false };
    if run.len() > REMOTE_INLINE
        || before == 0
        || lane.special.load(Ordering::Relaxed) != SPECIAL_REMOTE
        || progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
    {
        return false;
    }
    let seq = before + 1;
    let land = || Land::new(seq, progress.got(), Kind::RemoteInline, run.len(), lane.epoch);
    if !remote.land_run(slot, before, land, run) {
        return false;
    }
    traced!(lane.note_sent(slot, "inline", run.len(), seq));
    lane.count_sent(progress, seq, run.len());
    if remote.is_subscribed() && holds(Rule::Announced) {
        any_index::announce(lane, slot);
    }
    true
}

/// Receives, if the message comes within so many turns. `false`: not this way.
#[inline(always)]
pub(in crate::p2p) fn recv_remote(lane: &Lane, slot: usize, run: Run, patience: u32) -> bool {
    let progress = lane.progress(slot);
    let Some(remote) = lane.remote() else { return false };
    if progress.recv_flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_CHAIN) != 0 {
        return false;
    }
    let seq = progress.received.load(Ordering::Relaxed) + 1;
    let Some(taken) = remote.take_landed(slot, seq, lane.epoch, run, patience) else { return false };
    progress.note_acked(taken.land, lane.receiving(slot).0);
    progress.count_received(seq);
    lane.note_len(progress, slot, taken.len);
    traced!(lane.note_received(slot, taken.len, seq));
    remote.acknowledge_taken(slot, seq, &taken, progress);
    true
}
