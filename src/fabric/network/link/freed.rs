//! Windows of a lane whose communicator both sides have freed go back to the system.
//!
//! ```text
//!   one side                                     the other
//!   frees the communicator
//!   FREED  ------------------------------------>
//!                                                frees it, too: has heard FREED
//!          <------------------------------------ DONE: writes nothing there any more
//!   has heard it: DONE ------------------------>
//!   gives its windows back                       has heard it: gives its windows back
//! ```
//!
//! - **Who has only freed still answers**: the other one's program may yet ask something by this lane, until it frees the communicator.
//! - **DONE is the last write**: it is posted, and the lane's windows are closed, with the link locked, as all writes are. What was posted before it
//!   is there before it, and who has heard it hears nothing more; so memory may go when DONE was both said and heard.
//! - Nothing is waited for: each side looks when it frees a communicator. Where there is no connection nothing is said until there is one.
//! - A lane that is the only one known stays, since the two are to know of some memory of each other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Link;
use super::memory::{Window, Windows};

/// In [`Window::said`](super::memory::Window): the communicator of the lane is freed here, which the peer does not know.
const UNSAID: u64 = 1;
/// The same, and what is said of it: the communicator is freed.
const FREED: u64 = 2;
/// Nothing is written into the lane's windows any more.
const DONE: u64 = 3;

impl Windows {
    /// Is there another lane, by which the two know of each other's memory? It is that of which the next packet tells.
    pub(super) fn leaves_others(&mut self, lane: u64) -> bool {
        let is_other = |w: &&Arc<Window>| w.lane() != lane && w.name().1 != 0 && !w.is_annex() && w.is_known();
        if self.recent.0 == lane
            && let Some(other) = self.all.values().rfind(is_other)
        {
            self.recent = (other.lane(), other.name().1 - 1);
        }
        self.recent.0 != lane
    }
}

impl Link {
    /// This process has freed the communicator of a lane.
    pub fn lane_is_freed(&self, lane: u64) {
        self.lane_is_over(lane);
        if let Some(page) = self.windows().all.get(&(lane, 0)) {
            page.said.fetch_max(UNSAID, Ordering::Relaxed);
        }
    }

    /// The pages of lanes whose communicators this process has freed.
    pub fn freed_lanes(&self) -> Vec<Arc<Window>> {
        let is_freed = |w: &&Arc<Window>| w.name().1 == 0 && w.said.load(Ordering::Relaxed) != 0;
        self.windows().all.values().filter(is_freed).cloned().collect()
    }

    /// The peer has said `theirs` of such a lane, and is told there, `at`, what this side has to say. Both done, its windows go.
    pub fn follow_freed(&self, page: &Window, at: usize, theirs: u64) {
        let word = if theirs >= FREED { DONE } else { FREED };
        if page.said.load(Ordering::Relaxed) < word && self.write_last(page, at, word, word == DONE) {
            page.said.fetch_max(word, Ordering::Relaxed);
        }
        if theirs == DONE && page.said.load(Ordering::Relaxed) == DONE {
            self.give_back(page.lane());
        }
    }

    fn give_back(&self, lane: u64) {
        let mut windows = self.windows();
        let names: Vec<_> = windows.of(lane).map(|window| window.name()).collect();
        let gone: Vec<_> = names.iter().filter_map(|name| windows.all.remove(name)).collect();
        gone.iter().for_each(|window| window.memory.close());
        drop(windows);
    }
}
