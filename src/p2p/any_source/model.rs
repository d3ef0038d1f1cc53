//! What a model needs of this domain: threads that can be told apart, the other rank, rings with few slots.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::key_of;
use super::ring::{Ring, ring_at};
use super::send::{Local, Way};
use super::share::Share;
use super::{AnySource, Incoming, Outgoing};
use crate::base::shadow;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::Mapping;
use crate::lane::Lane;
use crate::p2p::COMM_WORLD;
use crate::p2p::endpoint::{Endpoint, WORLD_EPOCH};

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
    shadow::is_active().then(|| ep.lanes.find(Lane::key_of(COMM_WORLD, 1 - ep.rank))?.peer.clone())?
}

/// Slots of a ring.
pub const SLOTS: usize = 2;

/// The window of a rank's ring of index 0.
pub fn window(ep: &Endpoint) -> Mapping {
    ep.region.map(ring_at(None, 0), Ring::bytes(SLOTS)).expect("a ring")
}

/// Begins an execution.
pub fn renew() {
    NUMBERS.with(|n| n.borrow_mut().clear());
}

pub use super::multicast::MulticastBlock;

impl AnySource {
    /// The other rank's spool as this one sees it.
    pub fn spool_in_model(&self, rank: u32, spool: Mapping) {
        let all = self.spools.get_or_init(|| super::ByRank::new(2));
        assert!(all.get_or_make(rank).is_some_and(|slot| slot.set(spool).is_ok()));
    }

    /// Makes the rings of a model of two ranks by hand: `windows` by rank, and who the other is.
    pub fn in_model(&self, me: &Endpoint, other: &'static Endpoint, peer: Arc<Peer>, windows: [&Mapping; 2]) {
        let ring = |rank: u32| Ring::new(windows[rank as usize].view(), SLOTS, WORLD_EPOCH);
        let at = ring_at(None, 0);
        let key = key_of(COMM_WORLD, other.rank as i32, 0);
        let out = self.outgoing.find_or_make(key, || {
            let board = other.region.board_of();
            let to = (COMM_WORLD, other.rank as i32, 0);
            let local = Local { ring: ring(other.rank), ring_at: at, board, peer: Some(peer) };
            Ok(Outgoing::new(key, to, other.rank, Way::Local(local)))
        });
        let key = key_of(COMM_WORLD, -1, 0);
        let inc = self.incoming.find_or_make(key, || {
            let domain = super::Domain::of(me.context(COMM_WORLD)?);
            Ok(Incoming::new(key, domain, (COMM_WORLD, 0), vec![Share::new(at, ring(me.rank))], false))
        });
        let (out, inc) = (out.expect("a ring"), inc.expect("a ring"));
        shadow::share((&raw const *out).cast(), size_of::<Outgoing>());
        shadow::share((&raw const *inc).cast(), size_of::<Incoming>());
        shadow::share(windows[me.rank as usize].as_ptr(), Ring::bytes(SLOTS));
        self.stakes.in_model();
    }
}
