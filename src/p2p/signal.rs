//! The library's own messages, on indices below those of the program: what barriers, which have no bytes, and agreements are made of.
//!
//! They obey no mode of sending: a signal that waited for its receiver, as a synchronous send does, would close a ring of waits in
//! which every rank signals before it listens.

use crate::base::error::Result;
use crate::base::layout::{Layout, Run};
use crate::lane::Lane;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::request;
use crate::p2p::send::{self, Sender};

/// Signals on a slot of the library's own.
pub fn signal(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<()> {
    let mut sender = Sender::new(ep, lane, slot, Layout::NOTHING, 0);
    sender.check_peer()?;
    if sender.place_short() {
        return Ok(());
    }
    lane.open_fronts(slot)?;
    send::send_on(ep, lane, slot, Layout::NOTHING)
}

/// Sends a message of the library's own. It obeys no mode of sending either, and takes no room in the spool that it could not
/// do without: it waits until the receiver takes it.
pub fn message(ep: &'static Endpoint, lane: &'static Lane, slot: usize, bytes: &[u8]) -> Result<()> {
    lane.open_fronts(slot)?;
    Run::with_bytes(bytes, |data| {
        let mut sender = Sender::new(ep, lane, slot, data.into(), data.len());
        sender.check_peer()?;
        sender.until_sent(u64::MAX, 1)
    })
}

/// Receives a message of the library's own.
pub fn receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, bytes: &mut [u8]) -> Result<()> {
    lane.open_fronts(slot)?;
    Run::with_room(bytes, |to| crate::p2p::receive::recv_on(ep, lane, slot, to.into()))
}

/// Begins to send a message of the library's own; [`end_send`] completes it.
pub fn begin_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, run: Run) -> Result<()> {
    let (data, len) = (run.into(), run.len());
    // A short one goes at once; a long one when its receive is posted, and is never spooled because nobody came in time.
    let timeout = if Sender::new(ep, lane, slot, data, len).is_short() { i32::MAX } else { -1 };
    request::isend_on(ep, lane, slot, data, timeout)
}

/// Begins to receive a message of the library's own; [`end_receive`] completes it.
pub fn begin_receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, run: Run) -> Result<()> {
    request::irecv_on(ep, lane, slot, run.into())
}

/// Completes what [`begin_send`] began. `false`: that would take waiting, and `wait` says no.
pub fn end_send(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    request::complete_send(ep, lane, slot, wait)
}

/// Completes what [`begin_receive`] began.
pub fn end_receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, wait: bool) -> Result<bool> {
    request::complete_receive(ep, lane, slot, wait)
}

/// Bytes of the message that was received last.
pub fn received_len(ep: &Endpoint, lane: &Lane, slot: usize) -> u64 {
    ep.last_received(lane, slot).unwrap_or(0) as u64
}

/// Gives a message up that was begun: its memory is its owner's again. A message that is being put into it at this moment is waited for.
pub fn give_up(ep: &'static Endpoint, lane: &'static Lane, slot: usize, sends: bool) {
    if sends {
        request::abandon_send(ep, lane, slot);
    } else if let Ok(false) = request::cancel(ep, lane, slot) {
        // What comes of it interests nobody any more.
        let _ = request::complete_receive(ep, lane, slot, true);
    }
}
