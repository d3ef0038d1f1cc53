//! The library's own messages of no bytes, on indices below those of the program: what barriers are made of.
//!
//! They obey no mode of sending: a signal that waited for its receiver, as a synchronous send does, would close a ring of waits in
//! which every rank signals before it listens.

use crate::base::error::Result;
use crate::lane::Lane;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::layout::Layout;
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
