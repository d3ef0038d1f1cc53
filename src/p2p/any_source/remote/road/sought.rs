//! A sender asks the receiver for its ring, and whether there still is one.

use std::sync::atomic::Ordering;

use super::RemoteRoad;
use crate::base::clock::now_ns;
use crate::lane::Lane;
use crate::lane::remote::{Ask, Asked};

/// What the receiver says of its ring where it has freed the communicator: no memory lies there.
pub(in crate::p2p::any_source) const FREED: [u64; 2] = [0; 2];
/// How often a wait asks whether it has.
const ASKS_NS: u64 = 1_000_000_000;
/// For how long it waits for the answer, at first and at most: it has other things to do, but a peer that is always slower is to be heard too.
const HEARS_NS: [u64; 2] = [20_000_000, 640_000_000];

/// What a receiver has said of its ring.
pub enum Sought {
    /// It is there.
    Found(Box<RemoteRoad>),
    /// It is not there yet, and the call is to be made again.
    NotYet,
    /// There is none any more: the receiver has freed the communicator.
    Freed,
}

impl RemoteRoad {
    /// Asks the receiver for its ring of this index.
    pub fn find(lane: &'static Lane, index: usize) -> Sought {
        // With the counters at home, if who has them elsewhere cannot be reached.
        for home in [0, 1] {
            match ask(lane, index, home, u64::MAX) {
                Some(FREED) => return Sought::Freed,
                Some(said) => {
                    if let Some(road) = RemoteRoad::of(lane, index, said) {
                        return Sought::Found(Box::new(road));
                    }
                }
                None => break,
            }
        }
        Sought::NotYet
    }

    /// What a lasting wait does for the connection.
    pub fn tend(&self) {
        self.remote().tend();
        self.counters().0.tend();
        let (now, next_ns) = (now_ns(), self.asks_ns.load(Ordering::Relaxed));
        if self.lane.place().units == 0 || now < next_ns {
            return;
        }
        // Not at once: nearly all waits end before.
        self.asks_ns.store(now + ASKS_NS, Ordering::Relaxed);
        // Another peer may have had the place of the connection, which is asked for and not waited for.
        if next_ns == 0 || !self.remote().link.is_there() {
            return;
        }
        let hears_ns = self.hears_ns.load(Ordering::Relaxed).max(HEARS_NS[0]);
        match ask(self.lane, self.index, 0, now + hears_ns) {
            Some(FREED) => self.is_freed.store(true, Ordering::Relaxed),
            Some(_) => {}
            None => self.hears_ns.store((2 * hears_ns).min(HEARS_NS[1]), Ordering::Relaxed),
        }
    }
}

/// What the receiver says of its ring of this index, if it does so in time.
fn ask(lane: &Lane, index: usize, home: u64, until_ns: u64) -> Option<[u64; 2]> {
    let (epoch, unit) = (lane.place().epoch, lane.place().unit);
    let asked = Asked { what: Ask::Ring, slot: index, seq: home, at: u64::from(epoch) << 32 | u64::from(unit) };
    lane.remote()?.ask_for(asked, || lane.gone().is_none() && now_ns() < until_ns).flatten()
}
