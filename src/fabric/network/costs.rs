//! What the ways cost here. How they compare is an estimate for RDMA devices; how long anything takes here is measured while they are used: the
//! shortest times from a request to its completion are the unit of latencies, and what switches take is known from switches. So where all is a
//! thousand times slower, processors that are emulated say, as few messages are worth a switch as elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};

use super::link::Link;
use super::ways::{Costs, Way};
use crate::base::clock::now_ns;

/// As long as nothing is measured, in nanoseconds, by [`Way`]. A message takes half a round trip.
const EXPECTED: Costs = Costs { latency: [6000., 6000., 2000.], switch: [100_000., 120_000., 2_000_000.], repair: 1e6 };
/// What is kept of a value in a window in which it is measured, and in one in which it is not.
const KEPT: f32 = 3. / 4.;
const FADES: f32 = 63. / 64.;
/// A loss is repaired within so many times a message's latency, if that is longer.
const REPAIR: f32 = 4.;
/// No measurement counts as longer.
const MOST_NS: u64 = 1_000_000_000;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Measured {
    /// The shortest since the window began; [`u64::MAX`]: none.
    trips: [AtomicU64; 3],
    /// Switches in this window, and what they took together.
    switches: [[AtomicU64; 2]; 3],
}

impl Default for Measured {
    fn default() -> Measured {
        Measured { trips: [const { AtomicU64::new(u64::MAX) }; 3], switches: Default::default() }
    }
}

impl Measured {
    /// A request of this way has completed after so long.
    pub fn trip(&self, way: Way, ns: u64) {
        self.trips[way as usize].fetch_min(ns.min(MOST_NS), Ordering::Relaxed);
    }
    /// A link has come to this way within so long.
    pub fn switch(&self, way: Way, ns: u64) {
        let [n, sum] = &self.switches[way as usize];
        n.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(ns.min(MOST_NS), Ordering::Relaxed);
    }

    /// A window is over: what is known now, of what was before.
    pub fn close_window(&self, costs: &mut Costs) {
        let mixed = |was: f32, expected: f32, now: Option<f32>| match now {
            Some(now) => was * KEPT + now * (1. - KEPT),
            None => was * FADES + expected * (1. - FADES),
        };
        // As many times slower than expected, by the way that is least so.
        let times = |way: usize| {
            let trip = self.trips[way].swap(u64::MAX, Ordering::Relaxed);
            (trip < u64::MAX).then(|| trip as f32 / 2. / EXPECTED.latency[way])
        };
        let unit = (0..3).filter_map(times).min_by(f32::total_cmp);
        let unit = mixed(costs.latency[0] / EXPECTED.latency[0], 1., unit);
        costs.latency = EXPECTED.latency.map(|expected| expected * unit);
        for way in 0..3 {
            let [n, sum] = [0, 1].map(|k| self.switches[way][k].swap(0, Ordering::Relaxed));
            let switch = (n > 0).then(|| sum as f32 / n as f32);
            costs.switch[way] = mixed(costs.switch[way], EXPECTED.switch[way], switch);
        }
        costs.repair = EXPECTED.repair.max(REPAIR * costs.latency[Way::Shared as usize]);
    }
}

/// What is expected before anything is known.
pub(super) fn expected() -> Costs {
    EXPECTED
}

/// A request of which the time is taken.
#[derive(Debug, Default)]
pub(super) struct Timed {
    /// Its number; 0: none.
    ticket: AtomicU64,
    at_ns: AtomicU64,
    way: AtomicU64,
}

impl Timed {
    /// Is none timed?
    #[inline]
    pub fn is_free(&self) -> bool {
        self.ticket.load(Ordering::Relaxed) == 0
    }
    /// The request of this number is being posted.
    pub fn begin(&self, ticket: u64, way: Way) {
        self.at_ns.store(now_ns(), Ordering::Relaxed);
        self.way.store(way as u64, Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `end`.
        self.ticket.store(ticket, Ordering::Release);
    }
    /// All up to this number have completed: how long the one that is timed took, if it is among them, and by which way.
    pub fn end(&self, completed: u64) -> Option<(Way, u64)> {
        // SYNC POINT: pairs with the release in `begin`.
        let ticket = self.ticket.load(Ordering::Acquire);
        if ticket == 0 || completed < ticket {
            return None;
        }
        let took = now_ns().saturating_sub(self.at_ns.load(Ordering::Relaxed));
        let way = Way::ALL[self.way.load(Ordering::Relaxed) as usize % 3];
        self.forget();
        Some((way, took))
    }
    /// It is over without having been carried out.
    pub fn forget(&self) {
        self.ticket.store(0, Ordering::Relaxed);
    }
}

impl Link {
    /// The time of the request of this number is taken, if no other's is.
    #[inline]
    pub(super) fn take_time(&self, ticket: u64, way: Way) {
        if let Some(timed) = self.timed.as_ref().filter(|timed| timed.is_free()) {
            timed.begin(ticket, way);
        }
    }
    /// The time of a request that has completed is noted, if it was taken.
    #[inline]
    pub(super) fn note_time(&self) {
        if let Some(timed) = self.timed.as_ref().filter(|timed| !timed.is_free())
            && let Some((way, took)) = timed.end(self.completed.load(Ordering::Acquire))
            && let Some(home) = self.home.upgrade()
        {
            home.switching.measured.trip(way, took);
        }
    }
}
