//! Has links take the ways that [`ways`](super::ways) chooses, where the device has several: a peer is reached by datagrams first, and is
//! connected, or has a ring for its datagrams, while it is among the busiest.
//!
//! ```text
//!   once a window: requests posted to each peer, what was lost ──▶ Ways::decide ──▶ who is to be connected, or to have a ring
//!   as many of the others as have to: give up their place        ──▶ the next turn goes by datagrams as all do
//!   as soon as a place is free: one of those takes it            ──▶ the next turn goes by its way, if the peer has a place too
//! ```
//! A switch is the next turn of the [handshake](super::handshake) and nothing else: what was posted by one way is in the peer's memory before
//! anything is posted by the other. Connections and rings are given up only for others, so a job with few peers keeps all of them.
//!
//! Which side wants a place need not be the one that proposes: whoever has taken one of its node for the next turn says so when it asks, and it
//! is given back if the turn goes by another way all the same. It does not try again for a while then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use super::control::Shared;
use super::costs::{self, Measured};
use super::handshake::{Say, State};
use super::hello::Hello;
use super::kept::Kept;
use super::link::{Link, Posted};
use super::room::{RINGS, Room, Taken, Which};
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

/// Which way peers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The busiest are connected, and those that come next have rings.
    Busiest {
        /// There are connections for all peers of the node, so each has one from the first message on.
        fits: bool,
    },
    /// This one, from the first message on, as long as there are places.
    Always(Way),
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
    /// The place for the next turn, which is to go by this way.
    pub next: Option<(Way, Taken)>,
    /// As the peer wants the next turn, or has proposed it.
    asked: Way,
    /// When the turn was ended for that.
    began_ns: u64,
    /// The connection of an earlier turn, and that by which the next one is to go, as both have said.
    pub kept: Option<Box<Kept>>,
    pub agreed: Option<Box<Kept>>,
    /// It was declined: not tried again before, and how long the last pause was.
    not_before: u64,
    pause: u64,
    /// When its connection was given up for others.
    left_ns: u64,
    /// Requests that were posted before this window, and what its pair had lost.
    counted: u64,
    repaired: u64,
}

impl Switch {
    /// Is there anything that another turn needs?
    pub fn is_under_way(&self) -> bool {
        self.next.is_some() || self.kept.is_some() || self.agreed.is_some()
    }
    /// The turn does not go by the way for which this side has a place.
    fn is_declined(&mut self, now: u64) {
        self.next = None;
        self.pause = (self.pause * 2).clamp(PAUSE_NS[0], PAUSE_NS[1]);
        self.not_before = now + self.pause;
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Switching {
    choice: Choice,
    state: Mutex<Choosing>,
    /// What ways cost here.
    pub measured: Measured,
    /// Peers that were connected, that got rings, whose connections were left for others, turns that were declined, and peers that were connected
    /// again soon.
    pub connected: AtomicU64,
    pub rings: AtomicU64,
    pub left: AtomicU64,
    pub declined: AtomicU64,
    pub again: AtomicU64,
    has_told: AtomicBool,
}

#[derive(Debug)]
struct Choosing {
    ways: Ways,
    ends_ns: u64,
    costs: Costs,
    /// Those that are to go by these ways, as soon as there is a place.
    wait: VecDeque<(u32, Way)>,
    windows: u64,
    /// How many were connected again, of late.
    again: f32,
}

impl Switching {
    pub fn new(choice: Choice) -> Switching {
        let (ways, costs) = (Ways::new(KEEPS), costs::expected());
        let choosing = Choosing { ways, ends_ns: 0, costs, wait: VecDeque::new(), windows: 0, again: 0. };
        Switching {
            choice,
            state: Mutex::new(choosing),
            measured: Measured::default(),
            connected: AtomicU64::new(0),
            rings: AtomicU64::new(0),
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
            Choice::Busiest { .. } | Choice::Always(_) => WINDOW_NS,
            Choice::Random { every_ns, .. } => every_ns,
        }
    }
}

/// Where the places for this way are.
fn room_of(rooms: &[Arc<Room>; 3], way: Way) -> Option<&Arc<Room>> {
    match way {
        Way::Shared => None,
        Way::Ring => Some(&rooms[RINGS]),
        Way::Connected => Some(&rooms[Which::Pairs as usize]),
    }
}

/// The ways that take a place.
const PLACED: [Way; 2] = [Way::Connected, Way::Ring];

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    /// Does what is to be done about ways now; when to look again.
    pub(super) fn switch_ways(&self) -> u64 {
        let Some(rooms) = self.rooms.get().filter(|_| self.device.has_ways()) else { return SETTLED };
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
                Choice::Busiest { .. } => self.choose_busiest(&mut state, &links, rooms, now),
                Choice::Always(_) => {}
                Choice::Random { seed, .. } => {
                    let number = scattered((seed ^ state.windows << 32).wrapping_mul(STEP));
                    self.choose_at_random(&mut state, &links, number, now);
                }
            }
        }
        let mut full = [false; 3];
        for (peer, way) in std::mem::take(&mut state.wait) {
            let (Some(link), Some(room)) = (self.known(peer), room_of(rooms, way)) else { continue };
            match if full[way as usize] { None } else { room.take(peer) } {
                Some(place) => {
                    let place = Taken { room: room.clone(), place };
                    state.again += f32::from(self.change(&link, way, place, now));
                }
                None => {
                    full[way as usize] = true;
                    state.wait.push_back((peer, way));
                }
            }
        }
        self.tell_of_thrashing(&state, &rooms[Which::Pairs as usize]);
        state.ends_ns
    }

    fn choose_busiest(&self, state: &mut Choosing, links: &[Arc<Link>], rooms: &[Arc<Room>; 3], now: u64) {
        state.again *= OF_LATE;
        let (mut early, mut tried) = (Vec::new(), [false; 3]);
        for link in links {
            let Some(mut posted) = link.try_lock() else { continue };
            let (way, lost) = posted.made.as_ref().map_or((Way::Shared, 0), |made| (made.way, made.pair.repairs()));
            let last = posted.last;
            let requests = last - std::mem::replace(&mut posted.switch.counted, last);
            if requests > 0 || way != Way::Shared {
                state.ways.heard(link.peer, requests.min(u64::from(u32::MAX)) as u32);
                state.ways.is_now(link.peer, way);
                let lost = lost.saturating_sub(std::mem::replace(&mut posted.switch.repaired, lost));
                state.ways.lost(link.peer, lost.min(u64::from(u32::MAX)) as u32);
            }
            if now < posted.switch.not_before {
                early.push(link.peer);
            }
            // Of each way that is in use the time is taken, though nobody asks for a completion.
            if requests > 0 && posted.hand.is_up() && !std::mem::replace(&mut tried[way as usize], true) {
                let _ = link.post_empty(&mut posted);
                posted.switch.counted = posted.last;
            }
        }
        self.switching.measured.close_window(&mut state.costs);
        let [mut mine, mut free] = [[0; 3]; 2];
        for way in PLACED {
            let Some(room) = room_of(rooms, way) else { continue };
            let taken = room.taken();
            // What the dead held is found when others need it.
            let taken = if taken.1 >= room.limit() && room.reap() > 0 { room.taken() } else { taken };
            (mine[way as usize], free[way as usize]) = (taken.0, room.limit().saturating_sub(taken.1));
        }
        let places = |way: Way| mine[way as usize] + free[way as usize];
        let (connections, rings) = (places(Way::Connected), places(Way::Ring));
        let changes = state.ways.decide(&Budgets { connections, rings, contexts: self.places[1] }, &state.costs);
        let wants = |change: &&Change| change.to != Way::Shared && !early.contains(&change.peer);
        state.wait = changes.iter().filter(wants).map(|change| (change.peer, change.to)).collect();
        for way in PLACED {
            let waiting = state.wait.iter().filter(|(_, to)| *to == way).count();
            // Who goes from one to the other gives a place up by itself.
            let going = |change: &&Change| change.from == way && change.to != Way::Shared && wants(change);
            let missing = waiting.saturating_sub(free[way as usize] + changes.iter().filter(going).count());
            let leaves = changes.iter().filter(|change| change.from == way && change.to == Way::Shared);
            for link in leaves.take(missing).filter_map(|change| self.known(change.peer)) {
                self.leave(&link, now);
            }
        }
    }

    fn choose_at_random(&self, state: &mut Choosing, links: &[Arc<Link>], number: u64, now: u64) {
        state.wait.clear();
        for (n, link) in links.iter().enumerate().filter(|(_, link)| link.is_up()) {
            let drawn = scattered(number.wrapping_add((n as u64).wrapping_mul(STEP)));
            let way = link.try_lock().and_then(|posted| posted.made.as_ref().map(|made| made.way));
            let mut others = Way::ALL.into_iter().filter(|other| Some(*other) != way);
            match way.filter(|_| drawn & 1 == 0).and(others.nth((drawn >> 1 & 1) as usize)) {
                Some(Way::Shared) => self.leave(link, now),
                Some(to) => state.wait.push_back((link.peer, to)),
                None => {}
            }
        }
    }

    /// The next turn with this peer is to go by this way, with this place. Is it connected again after a short while?
    fn change(&self, link: &Link, to: Way, place: Taken, now: u64) -> bool {
        let again = self.begin_anew(
            link,
            |from| from != to,
            now,
            |switch, from| {
                let again = to == Way::Connected && switch.left_ns > 0 && now.saturating_sub(switch.left_ns) < AGAIN_NS;
                switch.next = Some((to, place));
                (again, from)
            },
        );
        let Some((again, from)) = again else { return false };
        if again {
            count(&self.switching.again);
        }
        if from == Way::Connected {
            count(&self.switching.left);
        }
        again
    }

    /// This peer's connection, or its ring, is given up for others.
    fn leave(&self, link: &Link, now: u64) {
        let left = self.begin_anew(
            link,
            |from| from != Way::Shared,
            now,
            |switch, from| {
                if from == Way::Connected {
                    switch.left_ns = now;
                }
                from
            },
        );
        if left == Some(Way::Connected) {
            count(&self.switching.left);
        }
    }

    /// Ends the turn with a peer, if it goes by such a way, and begins the next. Not of a link that somebody is posting to: who waits for a peer that
    /// has died would have this thread wait too, and with it all other peers.
    fn begin_anew<R>(
        &self,
        link: &Link,
        may: impl FnOnce(Way) -> bool,
        now: u64,
        with: impl FnOnce(&mut Switch, Way) -> R,
    ) -> Option<R> {
        if link.has_ended() || link.has_left() {
            return None;
        }
        let mut posted = link.try_lock()?;
        let from = posted.made.as_ref().map(|made| made.way)?;
        if !posted.hand.is_up() || !may(from) {
            return None;
        }
        let result = with(&mut posted.switch, from);
        posted.switch.began_ns = now;
        posted.hand.retire();
        self.want(link, &mut posted);
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
        match &posted.switch.next {
            Some((way, _)) => *way,
            None if !self.device.has_ways() => Way::Connected,
            None => self.prefers(posted, now_ns()),
        }
    }

    /// A turn of this way has come about: how long it has taken, if it was wanted here.
    pub(super) fn has_switched(&self, posted: &mut Posted, now: u64) {
        let began = std::mem::take(&mut posted.switch.began_ns);
        if let Some(made) = posted.made.as_ref().filter(|_| began > 0) {
            self.switching.measured.switch(made.way, now.saturating_sub(began));
        }
    }

    /// The way of a turn that nobody has asked for.
    fn prefers(&self, posted: &Posted, now: u64) -> Way {
        match self.switching.choice {
            _ if now < posted.switch.not_before => Way::Shared,
            Choice::Busiest { fits: true } => Way::Connected,
            Choice::Always(way) => way,
            _ => Way::Shared,
        }
    }

    /// What a packet says of a way. Is there a place for what it proposes?
    pub(super) fn hears_of_a_way(&self, link: &Link, posted: &mut Posted, say: Say, hello: &Hello) -> bool {
        let (hand, now) = (posted.hand, now_ns());
        let begins = hand.would_begin(hello.turn) && hand.is_first() == (say == Say::Want);
        match say {
            Say::Want if begins || hand.state() == State::Reserving && hand.turn() == hello.turn => {
                posted.switch.asked = hello.way;
            }
            Say::Connect if begins => {
                let (way, switch) = (hello.way, &mut posted.switch);
                switch.asked = way;
                if way != Way::Shared && switch.next.as_ref().is_none_or(|(next, _)| *next != way) {
                    switch.next = self.place_for(link, way).map(|place| (way, place));
                }
                let has_place = way == Way::Shared || switch.next.is_some();
                return has_place && (way != Way::Connected || self.hears_of_kept(link, posted, hello));
            }
            Say::Retired
                if hand.state() == State::Offered && hand.turn() == hello.turn && !self.is_kept_alone(posted) =>
            {
                posted.switch.is_declined(now);
                count(&self.switching.declined);
            }
            _ => {}
        }
        true
    }

    fn place_for(&self, link: &Link, way: Way) -> Option<Taken> {
        let rooms = self.rooms()?;
        let room = room_of(&rooms, way)?;
        let place = room.take(link.peer)?;
        Some(Taken { room: room.clone(), place })
    }

    /// The way of the turn that is made now, with the place for it.
    pub(super) fn way_to_take(&self, link: &Link, posted: &mut Posted, now: u64) -> (Way, Option<Taken>) {
        let (first, prefers) = (posted.hand.is_first(), self.prefers(posted, now));
        let switch = &mut posted.switch;
        let (asked, mut next) = (std::mem::take(&mut switch.asked), switch.next.take());
        let wanted = next.is_some();
        switch.repaired = 0;
        if first {
            // A connection comes before a ring, whichever side wants it.
            let other = asked.max(prefers);
            if next.as_ref().is_none_or(|(way, _)| *way < other) {
                next = self.place_for(link, other).map(|place| (other, place)).or(next);
            }
        } else {
            // The second does as was proposed.
            next = next.filter(|(way, _)| *way == asked);
        }
        let Some((way, place)) = next else {
            if wanted {
                switch.is_declined(now);
                count(&self.switching.declined);
            }
            return (Way::Shared, None);
        };
        match way {
            Way::Connected => count(&self.switching.connected),
            _ => count(&self.switching.rings),
        }
        (way, Some(place))
    }
}
