//! What happens in a world: what its network does, and beside that a rank is killed, or a connection breaks.

use std::cell::Cell;
use std::sync::Arc;

use super::Ether;
use crate::base::simulation::{self, Events, Lot};

/// The network, and what happens to ranks.
pub struct Fate {
    ether: Arc<Ether>,
    dies: Option<(u32, u64)>,
    breaks: Option<(u32, u64)>,
    happened: Cell<u64>,
}

impl Fate {
    /// `dies`: a rank that is killed, and after so many events; `breaks`: one whose device cannot go on with some of its connections, from so
    /// many events on.
    pub fn new(ether: Arc<Ether>, dies: Option<(u32, u64)>, breaks: Option<(u32, u64)>) -> Fate {
        Fate { ether, dies, breaks, happened: Cell::new(0) }
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
        if let Some((rank, _)) = self.dies.filter(|(_, at)| *at == n) {
            self.ether.bury(rank);
            simulation::kill(rank);
        } else if let Some((rank, at)) = self.breaks.filter(|(_, at)| n >= *at)
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
