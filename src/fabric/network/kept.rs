//! Connections that are given up for others stay as they are, some of them, and are used again when their peer is connected the next time: so
//! that does not take making queue pairs and connecting them.
//!
//! ```text
//!   a turn that was connected is over     ──▶ both ends keep theirs, without a place of the node     the one kept longest goes when there are too many
//!   the first proposes one by what it kept ──▶ the second has kept the other end of it: it is used as it is
//!                                              it has not: the turn is over before it is there, and the next one is made anew
//! ```
//! All requests of both sides are over when a turn is, so nothing is under way by what is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use super::control::Shared;
use super::device::{End, Pair};
use super::hello::Hello;
use super::link::{Link, Made, Posted};
use super::ways::Way;
use crate::base::lock::{Mutex, MutexGuard};

/// Connections that a process keeps at most. (Simulated ranks one, so that they often have to let go what the other end has kept.)
const MOST: usize = if cfg!(test) { 1 } else { 8 };

/// A connection that is not used.
pub(super) struct Kept {
    pub pair: Arc<dyn Pair>,
    /// The end to which it is connected.
    pub other: Box<End>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kept({})", self.pair.number())
    }
}

/// Whose are kept.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Peers, the one whose was kept first in front; of some of them it is gone already.
    peers: Mutex<VecDeque<u32>>,
    /// Connections that were used again.
    pub used: AtomicU64,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The turn of this connection is over: it is kept, if it may be.
    pub(super) fn keep(&self, link: &Link, posted: &mut Posted, made: Made) {
        let may = self.device.has_ways() && made.way == Way::Connected && !posted.parts;
        let Some(other) = made.other.filter(|_| may && made.pair.is_whole()) else { return };
        if link.has_ended() || link.has_left() {
            return;
        }
        posted.switch.kept = Some(Box::new(Kept { pair: made.pair, other }));
        let mut peers = self.shelf.lock();
        peers.retain(|peer| *peer != link.peer);
        peers.push_back(link.peer);
        while peers.len() > MOST
            && let Some(oldest) = peers.pop_front()
        {
            let Some(link) = self.known(oldest) else { continue };
            let Some(mut posted) = link.try_lock() else {
                // Somebody posts there at this moment: another time.
                peers.push_back(oldest);
                break;
            };
            posted.switch.kept = None;
        }
    }

    /// What the first proposes to the second: a connection that it has kept, or not. Does the second go along?
    pub(super) fn hears_of_kept(&self, link: &Link, posted: &mut Posted, hello: &Hello) -> bool {
        let kept = posted.switch.kept.take();
        self.shelf.lock().retain(|peer| *peer != link.peer);
        posted.switch.agreed = kept.filter(|kept| hello.kept && *kept.other == hello.end && kept.pair.is_whole());
        posted.switch.agreed.is_some() == hello.kept
    }

    /// The kept connection by which a turn of this way goes, if there is one.
    pub(super) fn kept_for(&self, link: &Link, posted: &mut Posted, way: Way) -> Option<Box<Kept>> {
        let agreed = posted.switch.agreed.take();
        if way != Way::Connected {
            return None;
        }
        let kept = if posted.hand.is_first() {
            self.shelf.lock().retain(|peer| *peer != link.peer);
            posted.switch.kept.take().filter(|kept| kept.pair.is_whole())
        } else {
            agreed
        };
        kept.inspect(|_| _ = self.shelf.used.fetch_add(1, Ordering::Relaxed))
    }

    /// The second has not kept its end of what the first has proposed: that is not kept any longer, and its place is for the next turn. `false`: it
    /// was nothing kept.
    pub(super) fn is_kept_alone(&self, posted: &mut Posted) -> bool {
        let Some(made) = posted.made.as_mut().filter(|made| made.is_kept) else { return false };
        made.other = None;
        posted.switch.next = made.taken.take().map(|place| (Way::Connected, place));
        self.shelf.used.fetch_sub(1, Ordering::Relaxed);
        true
    }
}
