//! What a rank knows of a peer whatever the communicator.

use std::sync::Arc;
use std::sync::OnceLock;

use super::distance::Gauge;
use super::map::*;
use super::traffic::Counts;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::tuning::Distance;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{LIVES_AT, Mapping};
use crate::wait::Board;

/// What a rank knows of a peer whatever the communicator: its ways for long messages, its spool, its board.
pub struct Pair {
    /// The peer's rank in the world.
    pub world: u32,
    /// 1: the peer is dead.
    pub dead: AtomicU32,
    /// The peer; `None`: myself.
    pub peer: Option<Arc<Peer>>,
    /// The peer's board (for a lane to myself, mine).
    peer_board: *const Board,
    /// The peer's spool, once something came from there.
    pub spool: OnceLock<Mapping>,
    /// Transfer blocks in use, as a sender.
    pub transfers_used: AtomicU64,
    /// Tag of the next transfer.
    pub transfer_tag: AtomicU32,
    /// The peer's lives of communicators, once asked for.
    lives: OnceLock<Option<Mapping>>,
    /// Rings in use, as a sender.
    pub rings_used: AtomicU32,
    /// Chunks ever sent through each ring.
    pub ring_sent: [AtomicU64; RINGS],
    /// Areas used in turn: a bit for each whose holder is not the one of the beginning.
    pub turns: AtomicU32,
    /// The area in which the last message came.
    pub turn_last: AtomicU32,
    /// The tag of the last message in each area that this side holds.
    pub turn_tags: [AtomicU64; TURNS],
    /// Bytes of each area that this side has ever written.
    pub turn_reach: [AtomicU64; TURNS],
    /// Bytes of messages that have gone another way since an area last grew, because it was not worth its memory yet.
    pub turn_missed: AtomicU64,
    /// Whether this side's requests to send come in windows.
    pub windows: Windows,
    /// Whether the cores of the two have a common cache.
    pub gauge: Gauge,
    /// By which way messages went, as a sender.
    pub(super) traffic: Counts,
    /// The world's lane, which has the transfer blocks, rings and areas.
    pub(super) window: Mapping,
}

/// So many requests in a row whose receives are posted, while the receiver waits for another one, are a window.
const WINDOW: u32 = 2;
/// So many that follow are taken to belong to it, before one is looked at again.
const UNSEEN: u32 = 15;

/// Do requests to send to a peer come in windows? To look at what the receiver has posted for each costs both sides a line, and in a window
/// it says the same each time.
#[derive(Default)]
pub struct Windows(AtomicU32);

impl Windows {
    /// A request has found its receive posted, in memory that it cannot be stored into. `awaited`: the receiver waits for this message.
    #[inline]
    pub fn found(&self, awaited: bool) {
        let seen = if awaited { 0 } else { (self.0.load(Ordering::Relaxed) + 1).min(WINDOW) };
        self.0.store(seen, Ordering::Relaxed);
    }

    /// Is the next request taken to belong to a window?
    #[inline]
    pub fn goes_on(&self) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        let goes = (WINDOW..WINDOW + UNSEEN).contains(&now);
        if now >= WINDOW {
            self.0.store(if goes { now + 1 } else { WINDOW - 1 }, Ordering::Relaxed);
        }
        goes
    }
}

// SAFETY: the board and the window are memory that lives as long as the job; what is behind them is atomics, or claimed by those.
unsafe impl Send for Pair {}
// SAFETY: as above.
unsafe impl Sync for Pair {}

impl Pair {
    /// The peer's board.
    #[inline]
    pub fn board(&self) -> &Board {
        // SAFETY: in the region of the peer, which stays mapped as long as this has it; or in this process's own.
        unsafe { &*self.peer_board }
    }

    /// The pair with a peer, whose lane of the world lies in `window`.
    pub fn new(world: u32, peer: Option<Arc<Peer>>, peer_board: *const Board, window: Mapping) -> Pair {
        Pair {
            world,
            dead: AtomicU32::new(0),
            peer,
            peer_board,
            spool: OnceLock::new(),
            lives: OnceLock::new(),
            transfers_used: AtomicU64::new(0),
            transfer_tag: AtomicU32::new(1),
            rings_used: AtomicU32::new(0),
            ring_sent: Default::default(),
            turns: AtomicU32::new(0),
            turn_last: AtomicU32::new(0),
            turn_tags: Default::default(),
            turn_reach: Default::default(),
            turn_missed: AtomicU64::new(0),
            windows: Windows::default(),
            gauge: Gauge::default(),
            traffic: Counts::default(),
            window,
        }
    }

    /// Have the cores of the two ranks a common cache, as far as is known? For messages that are not short.
    #[inline]
    pub fn distance(&self) -> Distance {
        self.gauge.distance()
    }

    /// A message of `n` bytes passes that is not short, of this side, which is `side` of the two: looks at the distance now and then.
    /// Has that changed, as far as is known?
    #[inline]
    pub fn passed(&self, n: usize, side: usize) -> bool {
        self.gauge.is_time(n) && self.gauge.look(self.count_line(side), self.count_line(1 - side))
    }

    /// The line in which a side counts (see [`Gauge`]): in the page of the first ring's flags, which has room for more than there are.
    fn count_line(&self, side: usize) -> &AtomicU64 {
        // SAFETY: within the window, which lives as long as this, at a whole line that nothing else uses; an atomic.
        unsafe { &*self.window.as_ptr().add(COUNTS_AT + side % 2 * COUNTS_APART).cast() }
    }

    /// The other side's memory in a model.
    #[cfg(loom)]
    pub fn lives_in_model(&self, lives: Mapping) {
        assert!(self.lives.set(Some(lives)).is_ok());
    }

    /// What the peer says of the communicator that it has in this unit under this epoch. (Not for a lane to myself.)
    #[cold]
    pub fn life(&self, unit: u32, epoch: u32) -> Life {
        let Some(peer) = &self.peer else { return Life::Member };
        let Some(lives) = self.lives.get_or_init(|| peer.region.map(LIVES_AT, UNITS * 8).ok()) else {
            return Life::Member;
        };
        // SAFETY: units are below UNITS; a life is an atomic.
        let word = unsafe { &*lives.as_ptr().cast::<AtomicU64>().add(unit as usize % UNITS) };
        // SYNC POINT: pairs with the release in `Endpoint::say_life`.
        Life::read(word.load(Ordering::Acquire), epoch)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Requests that nobody waits for go by without a look, but one now and then, until one is waited for.
    #[test]
    fn a_window_is_looked_at_now_and_then() {
        let windows = Windows::default();
        let mut looks = Vec::new();
        for n in 0..100 {
            if !windows.goes_on() {
                looks.push(n);
                windows.found(false);
            }
        }
        assert_eq!(looks, [0, 1, 17, 33, 49, 65, 81, 97]);
        while windows.goes_on() {}
        windows.found(true);
        assert!(!windows.goes_on() && !windows.goes_on());
    }
}
