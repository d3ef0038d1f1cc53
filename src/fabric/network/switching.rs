//! Has links take the ways that [`ways`](super::ways) chooses, where the device has both: a peer is reached by datagrams first, and is connected
//! while it is among the busiest.
//!
//! ```text
//!   once a window: requests posted to each peer ──▶ Ways::decide ──▶ who is to be connected, who not
//!   as many of these as have to: give up their connection        ──▶ the next turn goes by datagrams
//!   as soon as a place is free: one of those takes it            ──▶ the next turn is connected, if the peer has a place too
//! ```
//! A switch is the next turn of the [handshake](super::handshake) and nothing else: what was posted by one way is in the peer's memory before
//! anything is posted by the other. Connections are given up only for others, so a job with few peers keeps all of them.
//!
//! Which side wants to be connected need not be the one that proposes: whoever has taken a place of its node for the next turn says so when it
//! asks, and the place is given back if the turn goes by datagrams all the same. It does not try again for a while then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use super::control::Shared;
use super::handshake::{Say, State};
use super::hello::Hello;
use super::link::{Link, Posted};
use super::room::{Room, Taken};
use super::turns::SETTLED;
use super::ways::{Budgets, Change, Costs, Way, Ways};
use crate::base::clock::now_ns;
use crate::base::lock::Mutex;
use crate::base::log::{Level, tell};
use crate::base::scattered::{STEP, scattered};

/// A window.
const WINDOW_NS: u64 = 1_000_000_000;
/// Peers of which is known how busy they are, beside those that are connected.
const KEEPS: usize = 4096;
/// From a turn that the peer has declined to the next attempt, at first and at most.
const PAUSE_NS: [u64; 2] = [2_000_000_000, 64_000_000_000];
/// Who is connected again within so long was wanted all the while.
const AGAIN_NS: u64 = 8 * WINDOW_NS;
/// So many of them, of late, are told of.
const AGAIN: f32 = 16.;
/// What is kept of that number from one window to the next.
const OF_LATE: f32 = 15. / 16.;
/// Of a message and of a switch, in the order of [`Way`]: estimates for RDMA devices, not measured here. A ring is what datagrams are as long as
/// there is none.
const COSTS: Costs = Costs { latency: [6000., 6000., 2000.], switch: [100_000., 100_000., 2_000_000.] };

/// Which way peers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The busiest are connected.
    Busiest {
        /// There are connections for all peers of the node, so each has one from the first message on.
        fits: bool,
    },
    /// For tests: each switches at random.
    Random {
        /// By this number,
        seed: u64,
        /// so often.
        every_ns: u64,
    },
}

/// What a link is about to do.
#[derive(Debug, Default)]
pub(super) struct Switch {
    /// The place for the next turn, which is to be connected.
    taken: Option<Taken>,
    /// As the peer wants the next turn, or has proposed it.
    asked: bool,
    /// It was declined: not tried again before, and how long the last pause was.
    not_before: u64,
    pause: u64,
    /// When its connection was given up for others.
    left_ns: u64,
    /// Requests that were posted before this window.
    counted: u64,
}

impl Switch {
    /// The turn that was to be connected is not.
    fn is_declined(&mut self, now: u64) {
        self.taken = None;
        self.pause = (self.pause * 2).clamp(PAUSE_NS[0], PAUSE_NS[1]);
        self.not_before = now + self.pause;
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Switching {
    choice: Choice,
    state: Mutex<Choosing>,
    /// Peers that were connected, that were left for others, turns that were declined, and peers that were connected again soon.
    pub connected: AtomicU64,
    pub left: AtomicU64,
    pub declined: AtomicU64,
    pub again: AtomicU64,
    has_told: AtomicBool,
}

#[derive(Debug)]
struct Choosing {
    ways: Ways,
    ends_ns: u64,
    /// Those that are to be connected, as soon as there is a place.
    wait: VecDeque<u32>,
    windows: u64,
    /// How many were connected again, of late.
    again: f32,
}

impl Switching {
    pub fn new(choice: Choice) -> Switching {
        let choosing = Choosing { ways: Ways::new(KEEPS), ends_ns: 0, wait: VecDeque::new(), windows: 0, again: 0. };
        Switching {
            choice,
            state: Mutex::new(choosing),
            connected: AtomicU64::new(0),
            left: AtomicU64::new(0),
            declined: AtomicU64::new(0),
            again: AtomicU64::new(0),
            has_told: AtomicBool::new(false),
        }
    }

    /// Bytes of what is kept of peers.
    pub fn bytes(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ways.bytes()
    }

    fn window_ns(&self) -> u64 {
        match self.choice {
            Choice::Busiest { .. } => WINDOW_NS,
            Choice::Random { every_ns, .. } => every_ns,
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    /// Does what is to be done about ways now; when to look again.
    pub(super) fn switch_ways(&self) -> u64 {
        let Some([room, _]) = self.rooms.get().filter(|_| self.device.has_ways()) else { return SETTLED };
        let mut state = self.switching.state.lock().unwrap_or_else(PoisonError::into_inner);
        let links = self.links();
        if !links.iter().any(|link| link.is_up()) && state.wait.is_empty() {
            return SETTLED;
        }
        let now = now_ns();
        if now >= state.ends_ns {
            // Of what went on while nothing was counted nothing is known.
            state.ends_ns = now + self.switching.window_ns();
            state.windows += 1;
            match self.switching.choice {
                Choice::Busiest { .. } => self.choose_busiest(&mut state, &links, room, now),
                Choice::Random { seed, .. } => {
                    let number = scattered((seed ^ state.windows << 32).wrapping_mul(STEP));
                    self.choose_at_random(&mut state, &links, number, now);
                }
            }
        }
        while let Some(peer) = state.wait.pop_front() {
            let Some(link) = self.known(peer) else { continue };
            let Some(place) = room.take(peer) else {
                state.wait.push_front(peer);
                break;
            };
            state.again += f32::from(self.connect(&link, Taken { room: room.clone(), place }, now));
        }
        self.tell_of_thrashing(&state, room);
        state.ends_ns
    }

    fn choose_busiest(&self, state: &mut Choosing, links: &[Arc<Link>], room: &Room, now: u64) {
        state.again *= OF_LATE;
        let mut early = Vec::new();
        for link in links {
            let Some(mut posted) = link.try_lock() else { continue };
            let way = posted.made.as_ref().map_or(Way::Shared, |made| made.way);
            let last = posted.last;
            let requests = last - std::mem::replace(&mut posted.switch.counted, last);
            if requests > 0 || way == Way::Connected {
                state.ways.heard(link.peer, requests.min(u64::from(u32::MAX)) as u32);
                state.ways.is_now(link.peer, way);
            }
            if now < posted.switch.not_before {
                early.push(link.peer);
            }
        }
        let (mine, all) = room.taken();
        let free = room.limit().saturating_sub(all);
        let budgets = Budgets { connections: mine + free, rings: 0, contexts: self.places[1] };
        let changes = state.ways.decide(&budgets, &COSTS);
        let wants = |change: &&Change| change.to == Way::Connected && !early.contains(&change.peer);
        state.wait = changes.iter().filter(wants).map(|change| change.peer).collect();
        let missing = state.wait.len().saturating_sub(free);
        let leaves = changes.iter().filter(|change| change.from == Way::Connected);
        for link in leaves.take(missing).filter_map(|change| self.known(change.peer)) {
            self.leave(&link, now);
        }
    }

    fn choose_at_random(&self, state: &mut Choosing, links: &[Arc<Link>], number: u64, now: u64) {
        state.wait.clear();
        for (n, link) in links.iter().enumerate().filter(|(_, link)| link.is_up()) {
            let is_connected = |posted: &Posted| posted.made.as_ref().is_some_and(|made| made.way == Way::Connected);
            match link.try_lock().map(|posted| is_connected(&posted)) {
                _ if number >> (n % 64) & 1 == 0 => {}
                Some(true) => self.leave(link, now),
                Some(false) => state.wait.push_back(link.peer),
                None => {}
            }
        }
    }

    /// The next turn with this peer is to be connected, with this place. Was it so until a short while ago?
    fn connect(&self, link: &Link, place: Taken, now: u64) -> bool {
        let again = self.begin_anew(link, Way::Shared, |switch| {
            switch.taken = Some(place);
            switch.left_ns > 0 && now.saturating_sub(switch.left_ns) < AGAIN_NS
        });
        if again == Some(true) {
            count(&self.switching.again);
        }
        again == Some(true)
    }

    /// This peer's connection is given up for others.
    fn leave(&self, link: &Link, now: u64) {
        if self.begin_anew(link, Way::Connected, |switch| switch.left_ns = now).is_some() {
            count(&self.switching.left);
        }
    }

    /// Ends the turn with a peer, if it goes by this way, and begins the next. Not of a link that somebody is posting to: who waits for a peer that
    /// has died would have this thread wait too, and with it all other peers.
    fn begin_anew<R>(&self, link: &Link, from: Way, with: impl FnOnce(&mut Switch) -> R) -> Option<R> {
        if link.has_ended() || link.has_left() {
            return None;
        }
        let mut posted = link.try_lock()?;
        if !posted.hand.is_up() || posted.made.as_ref().is_none_or(|made| made.way != from) {
            return None;
        }
        let result = with(&mut posted.switch);
        posted.hand.retire();
        let outcome = posted.hand.want();
        self.take(link, &mut posted, outcome, None);
        drop(posted);
        self.advance(link);
        Some(result)
    }

    fn tell_of_thrashing(&self, state: &Choosing, room: &Room) {
        if state.again >= AGAIN
            && matches!(self.switching.choice, Choice::Busiest { .. })
            && !self.switching.has_told.swap(true, Ordering::Relaxed)
        {
            let (limit, again) = (room.limit(), self.switching.again.load(Ordering::Relaxed));
            tell(Level::Warn, || {
                format!(
                    "connections are too few: {again} were given up for others and made again within seconds; FMPL_QUEUE_PAIRS={limit} is \
                     what the ranks of this node have together, more make it faster (said once)"
                )
            });
        }
    }

    /// As this side wants the next turn.
    pub(super) fn wish(&self, posted: &Posted) -> Way {
        let wants = !self.device.has_ways() || posted.switch.taken.is_some() || self.fits(posted, now_ns());
        if wants { Way::Connected } else { Way::Shared }
    }

    fn fits(&self, posted: &Posted, now: u64) -> bool {
        self.switching.choice == Choice::Busiest { fits: true } && now >= posted.switch.not_before
    }

    /// What a packet says of a way. Is there a place for what it proposes?
    pub(super) fn hears_of_a_way(&self, link: &Link, posted: &mut Posted, say: Say, hello: &Hello) -> bool {
        let (hand, now) = (posted.hand, now_ns());
        let begins = hand.would_begin(hello.turn) && hand.is_first() == (say == Say::Want);
        match say {
            Say::Want if begins || hand.state() == State::Reserving && hand.turn() == hello.turn => {
                posted.switch.asked = hello.way == Way::Connected;
            }
            Say::Connect if begins => {
                posted.switch.asked = hello.way == Way::Connected;
                if posted.switch.asked && posted.switch.taken.is_none() {
                    posted.switch.taken = self.place_for(link);
                }
                return !posted.switch.asked || posted.switch.taken.is_some();
            }
            Say::Retired if hand.state() == State::Offered && hand.turn() == hello.turn => {
                posted.switch.is_declined(now);
                count(&self.switching.declined);
            }
            _ => {}
        }
        true
    }

    fn place_for(&self, link: &Link) -> Option<Taken> {
        let [room, _] = self.rooms()?;
        let place = room.take(link.peer)?;
        Some(Taken { room, place })
    }

    /// The way of the turn that is made now, with the place for it.
    pub(super) fn way_to_take(&self, link: &Link, posted: &mut Posted, now: u64) -> (Way, Option<Taken>) {
        let (first, fits) = (posted.hand.is_first(), self.fits(posted, now));
        let switch = &mut posted.switch;
        let asked = std::mem::take(&mut switch.asked);
        let wanted = switch.taken.is_some();
        // The second does as was proposed.
        let place = if asked || first && (wanted || fits) { switch.taken.take() } else { None };
        let place = place.or_else(|| if first && (asked || fits) { self.place_for(link) } else { None });
        if wanted && place.is_none() {
            switch.is_declined(now);
            count(&self.switching.declined);
        }
        if place.is_some() {
            count(&self.switching.connected);
        }
        (if place.is_some() { Way::Connected } else { Way::Shared }, place)
    }
}
