//! What a model needs of this domain: threads that can be told apart, the other rank, rings with few slots.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::ring::{Header, Ring};
use super::table::key_of;
use super::{Incoming, Outgoing};
use crate::base::atomics::Ordering;
use crate::base::shadow;
use crate::fabric::shm::peer::Peer;
use crate::lane::Lane;
use crate::p2p::COMM_WORLD;
use crate::p2p::endpoint::Endpoint;

thread_local! {
    static NUMBERS: RefCell<HashMap<loom::thread::ThreadId, u32>> = RefCell::default();
}

/// The number of the calling thread among all of the model.
pub(super) fn thread_number() -> Option<u32> {
    let me = loom::thread::current().id();
    NUMBERS.with(|n| {
        let mut numbers = n.borrow_mut();
        let next = numbers.len() as u32;
        Some(*numbers.entry(me).or_insert(next))
    })
}

/// The other rank of a model.
pub(super) fn peer_of(ep: &Endpoint) -> Option<Arc<Peer>> {
    shadow::is_active().then(|| ep.lanes.find(Lane::key_of(COMM_WORLD, 1 - ep.rank as i32 as u32))?.peer.clone())?
}
