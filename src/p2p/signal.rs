//! The library's own messages, on indices below those of the program: what barriers, which have no bytes, and agreements are made of.
//!
//! They obey no mode of sending: a signal that waited for its receiver, as a synchronous send does, would close a ring of waits in
//! which every rank signals before it listens.

use crate::base::error::Result;
use crate::base::layout::Layout;
use crate::lane::Lane;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::request;
use crate::p2p::send::{self, Sender};

/// Signals on a slot of the library's own.
pub fn signal(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<()> {
    let nothing = Layout::Contiguous { ptr: std::ptr::null_mut(), len: 0 };
    let mut sender = Sender::new(ep, lane, slot, nothing, 0);
    sender.check_peer()?;
    // SAFETY: a message of no bytes touches no memory; the system's slots are below every lane's limit.
    unsafe {
        if sender.place_short() {
            return Ok(());
        }
        send::send_on(ep, lane, slot, nothing)
    }
}

/// Sends a message of the library's own. It obeys no mode of sending either, and takes no room in the spool that it could not
/// do without: it waits until the receiver takes it.
pub fn message(ep: &'static Endpoint, lane: &'static Lane, slot: usize, bytes: &[u8]) -> Result<()> {
    let data = Layout::Contiguous { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() };
    let mut sender = Sender::new(ep, lane, slot, data, bytes.len());
    sender.check_peer()?;
    // SAFETY: the bytes are borrowed for the call and only read.
    unsafe { sender.until_sent(u64::MAX, 1) }
}

/// Receives a message of the library's own.
pub fn receive(ep: &'static Endpoint, lane: &'static Lane, slot: usize, bytes: &mut [u8]) -> Result<()> {
    let data = Layout::Contiguous { ptr: bytes.as_mut_ptr(), len: bytes.len() };
    // SAFETY: the bytes are borrowed for the call.
    unsafe { crate::p2p::receive::recv_on(ep, lane, slot, data) }
}

/// Begins to send a message of the library's own; [`end_send`] completes it.
///
/// # Safety
/// `len` readable bytes at `ptr` until the message is sent, or given up.
pub unsafe fn begin_send(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    ptr: *const u8,
    len: usize,
) -> Result<()> {
    let data = Layout::Contiguous { ptr: ptr.cast_mut(), len };
    // A short one goes at once; a long one when its receive is posted, and is never spooled because nobody came in time.
    let timeout = if Sender::new(ep, lane, slot, data, len).is_short() { i32::MAX } else { -1 };
    // SAFETY: as the caller promises.
    unsafe { request::isend_on(ep, lane, slot, data, timeout) }
}

/// Begins to receive a message of the library's own; [`end_receive`] completes it.
///
/// # Safety
/// `len` writable bytes at `ptr` until the message is received, or given up.
pub unsafe fn begin_receive(
    ep: &'static Endpoint,
    lane: &'static Lane,
    slot: usize,
    ptr: *mut u8,
    len: usize,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { request::irecv_on(ep, lane, slot, Layout::Contiguous { ptr, len }) }
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
pub fn received_len(lane: &Lane, slot: usize) -> u64 {
    lane.last_len(slot) as u64
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
