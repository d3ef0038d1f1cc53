//! What happens in a world: what its network does, and beside that a rank is killed or stopped, or a connection breaks.

use std::cell::Cell;
use std::sync::Arc;

use super::Ether;
use crate::base::simulation::{self, Events, Lot};

/// What is to happen to ranks: to which, and after so many events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// It is killed.
    pub dies: Option<(u32, u64)>,
    /// Its device cannot go on with some of its connections, from then on.
    pub breaks: Option<(u32, u64)>,
    /// It is stopped; and for so many nanoseconds.
    pub stops: Option<(u32, u64, u64)>,
    /// All ranks are stopped, with their devices; and for so many nanoseconds.
    pub all_stop: Option<(u64, u64)>,
}

impl Faults {
    /// Does anything happen?
    pub fn are_some(&self) -> bool {
        self.dies.is_some() || self.breaks.is_some() || self.stops.is_some() || self.all_stop.is_some()
    }
}

/// The network, and what happens to ranks.
pub struct Fate {
    ether: Arc<Ether>,
    faults: Faults,
    happened: Cell<u64>,
}

impl Fate {
    /// Nothing has happened yet.
    pub fn new(ether: Arc<Ether>, faults: Faults) -> Fate {
        Fate { ether, faults, happened: Cell::new(0) }
    }
}

impl Events for Fate {
    fn can_happen(&self, now: u64) -> bool {
        self.ether.can_happen(now)
    }
    fn due_ns(&self) -> u64 {
        self.ether.due_ns()
    }
    fn happen(&self, now: u64, lot: &mut Lot) {
        let n = self.happened.replace(self.happened.get() + 1);
        if let Some((rank, _)) = self.faults.dies.filter(|(_, at)| *at == n) {
            self.ether.bury(rank);
            simulation::kill(rank);
        } else if let Some((rank, _, ns)) = self.faults.stops.filter(|(_, at, _)| *at == n) {
            simulation::stop(rank, ns);
        } else if let Some((_, ns)) = self.faults.all_stop.filter(|(at, _)| *at == n) {
            self.ether.stands(ns);
            simulation::stop_all(ns);
        } else if let Some((rank, at)) = self.faults.breaks.filter(|(_, at)| n >= *at)
            && n < at + 200
            && lot.once_in(10)
        {
            self.ether.break_one(rank, lot);
        }
        if self.ether.can_happen(now) {
            self.ether.happen(now, lot);
        }
    }
}
