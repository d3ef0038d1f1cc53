//! The way that each source is to take: connectionless into buffers that all share, connectionless into a ring of its
//! own, or connected; so that the latency to be expected is least while connections, rings and contexts are few.
//!
//! ```text
//!   heard(source, messages) ──▶ History ── once a window, as long as a second ──▶ Ways::decide ──▶ who changes to which way
//!                               the busiest sources                              (budgets, costs)
//! ```
//! *History*: a table of bounded size. When it is full the lighter half of those who have no place goes; so whoever is
//! not in it was lighter than all who stayed.
//!
//! *Choice*: a source is worth what its messages, as expected, save by a way, for as long as the choice is expected to
//! hold, less the cost of switching. The most valuable get the places, and of these those whose gain over a ring is
//! largest get connections. How many messages are to be expected, and for how long, nobody knows beforehand: traffic
//! that moves wants a short memory, traffic that alternates a long one. So several [`Rule`]s choose side by side, each
//! for itself, and each pays in a book what its choice would have cost. The one that was cheapest lately is followed;
//! another one only when what it has saved pays for going over to it.
//!
//! Where all share the buffers messages are lost when many send at a time, and their repair takes longer than anything else:
//! so what a source has lost there, beyond what it loses in a ring, counts as latency of its messages.
//!
//! Nothing here knows of clocks, or of connections: the caller says when a window is over, and what has come of a
//! change.

use std::collections::HashMap;

use crate::base::sorting::sort_by;

#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// How messages of a source come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Way {
    /// Connectionless, into buffers that all sources share.
    #[default]
    Shared,
    /// Connectionless, into a ring of its own.
    Ring,
    /// By a connection.
    Connected,
}

impl Way {
    /// All of them, in order.
    pub(super) const ALL: [Way; 3] = [Way::Shared, Way::Ring, Way::Connected];
}

/// Places of a node. A ring takes a context, and so does a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budgets {
    pub(super) connections: usize,
    pub(super) rings: usize,
    pub(super) contexts: usize,
}

/// What is measured, in nanoseconds, by way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Of a message.
    pub(super) latency: [f32; 3],
    /// Of coming to the way from another.
    pub(super) switch: [f32; 3],
    /// Of repairing a loss.
    pub(super) repair: f32,
}

impl Costs {
    fn latency(&self, way: Way) -> f32 {
        self.latency[way as usize]
    }

    fn switching(&self, from: Way, to: Way) -> f32 {
        if from == to { 0. } else { self.switch[to as usize] }
    }

    /// Of a message, against the shared buffers, of which so many are lost in these and so many elsewhere.
    fn saves(&self, way: Way, (shared, elsewhere): (f32, f32)) -> f32 {
        let losses = if way == Way::Shared { 0. } else { (shared - elsewhere).max(0.) };
        self.latency(Way::Shared) - self.latency(way) + losses * self.repair
    }
}

/// What a choice goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// All that was ever heard.
    All,
    /// Mostly the last sixteen windows.
    Slow,
    /// Mostly the last two.
    Fast,
    /// Nobody changes who has a place, as long as it is heard at all.
    Still,
}

const RULES: [Rule; 4] = [Rule::All, Rule::Slow, Rule::Fast, Rule::Still];

impl Rule {
    /// Messages of the source in a window, as expected.
    fn expects(self, source: &Source, windows: f32) -> f32 {
        match self {
            Rule::All | Rule::Still => source.all / windows,
            Rule::Slow => source.slow,
            Rule::Fast => source.fast,
        }
    }

    /// Windows for which that is expected to hold: as many as it goes by.
    fn holds(self, windows: f32) -> f32 {
        match self {
            Rule::All | Rule::Still => windows.clamp(4., 128.),
            Rule::Slow => windows.clamp(4., 16.),
            Rule::Fast => 4.,
        }
    }
}

/// What is kept of each window in the next, of the short memories; and of the books.
const SLOW: f32 = 15. / 16.;
const FAST: f32 = 1. / 2.;
const BOOK: f64 = 15. / 16.;
/// The same of losses, where they are seen and where not; and of fewer messages than these a loss says little.
const LOSSES: f32 = 7. / 8.;
const FADES: f32 = 127. / 128.;
const FEW: f32 = 64.;

/// A source in the table.
#[derive(Clone, Debug)]
struct Source {
    peer: u32,
    /// Messages in the window that is under way, and losses.
    now: u32,
    lost: u32,
    all: f32,
    slow: f32,
    fast: f32,
    /// Of a message of its: losses in the shared buffers, and in a ring, if it had one.
    loses: [Option<f32>; 2],
    /// As each rule has chosen, and as it is.
    chosen: [Way; RULES.len()],
    is: Way,
}

impl Source {
    fn new(peer: u32) -> Source {
        let chosen = Default::default();
        Source { peer, now: 0, lost: 0, all: 0., slow: 0., fast: 0., loses: [None; 2], chosen, is: Way::Shared }
    }

    fn has_a_place(&self) -> bool {
        self.chosen.iter().chain([&self.is]).any(|way| *way != Way::Shared)
    }

    fn weight(&self) -> f32 {
        self.now as f32 + self.slow
    }

    /// Losses of a message in the shared buffers, and elsewhere, which are those of the network.
    fn losses(&self, rings: f32) -> (f32, f32) {
        (self.loses[0].unwrap_or(0.), self.loses[1].unwrap_or(rings))
    }

    /// Takes over what was lost in a window, by the way that it is on.
    fn note_losses(&mut self) {
        let lost = std::mem::take(&mut self.lost) as f32;
        let (now, other) = match self.is {
            Way::Shared => (0, 1),
            Way::Ring => (1, 0),
            Way::Connected => return,
        };
        if self.now > 0 {
            let share = lost / (self.now as f32).max(FEW);
            let before = self.loses[now];
            self.loses[now] = Some(before.map_or(share, |before| before * LOSSES + share * (1. - LOSSES)));
        }
        // What is not seen any more may have changed.
        self.loses[other] = self.loses[other].map(|share| share * FADES);
    }
}

/// A source is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) peer: u32,
    pub(super) from: Way,
    pub(super) to: Way,
}

/// The changes, in an order in which there is a place for each when its turn comes. Where two wait for each other's,
/// one goes by the shared buffers.
fn in_order(mut wanted: Vec<Change>, mut taken: [usize; 3], budgets: &Budgets) -> Vec<Change> {
    let most = [usize::MAX, budgets.rings, budgets.connections];
    let mut ordered = Vec::with_capacity(wanted.len());
    while !wanted.is_empty() {
        let before = ordered.len();
        wanted.retain(|change| {
            let (from, to) = (change.from as usize, change.to as usize);
            let context = to == 0 || from > 0 || taken[1] + taken[2] < budgets.contexts;
            let goes = taken[to] < most[to] && context;
            if goes {
                (taken[from], taken[to]) = (taken[from] - 1, taken[to] + 1);
                ordered.push(*change);
            }
            !goes
        });
        if ordered.len() > before {
            continue;
        }
        let Some(one) = wanted.iter_mut().find(|change| change.from != Way::Shared) else { break };
        ordered.push(Change { to: Way::Shared, ..*one });
        taken[one.from as usize] -= 1;
        taken[0] += 1;
        one.from = Way::Shared;
    }
    ordered
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Ways {
    sources: Vec<Source>,
    by_peer: HashMap<u32, usize>,
    /// Sources that stay when the table is full.
    keeps: usize,
    /// Windows that are over.
    windows: u32,
    /// Of each rule: what it has cost lately.
    books: [f64; RULES.len()],
    /// Whom we follow.
    followed: usize,
    /// Losses of a message in a ring, of all sources that have one.
    rings_lose: f32,
}

impl Ways {
    /// With a table of twice as many sources as `keeps`, beside those that have a place.
    pub(super) fn new(keeps: usize) -> Ways {
        let (sources, by_peer) = Default::default();
        Ways {
            sources,
            by_peer,
            keeps: keeps.max(1),
            windows: 0,
            books: [0.; RULES.len()],
            followed: 0,
            rings_lose: 0.,
        }
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        self.sources.capacity() * size_of::<Source>() + self.by_peer.capacity() * size_of::<(u32, usize)>()
    }

    /// So many messages have come from this source.
    pub(super) fn heard(&mut self, peer: u32, messages: u32) {
        let at = match self.by_peer.get(&peer) {
            Some(at) => *at,
            None => {
                if self.sources.len() >= 2 * self.keeps {
                    self.forget_the_light();
                }
                self.by_peer.insert(peer, self.sources.len());
                self.sources.push(Source::new(peer));
                self.sources.len() - 1
            }
        };
        let now = &mut self.sources[at].now;
        *now = now.saturating_add(messages);
    }

    /// So many of its messages, at least, were lost on their way and sent again.
    pub(super) fn lost(&mut self, peer: u32, losses: u32) {
        if let Some(at) = self.by_peer.get(&peer) {
            let lost = &mut self.sources[*at].lost;
            *lost = lost.saturating_add(losses);
        }
    }

    fn forget_the_light(&mut self) {
        sort_by(&mut self.sources, |a, b| {
            b.has_a_place().cmp(&a.has_a_place()).then(b.weight().total_cmp(&a.weight()))
        });
        let places = self.sources.partition_point(Source::has_a_place);
        self.sources.truncate(places.max(self.keeps));
        self.by_peer = self.sources.iter().enumerate().map(|(at, source)| (source.peer, at)).collect();
    }

    /// What has become of a source without a choice: its connection has failed, say, or was wanted back.
    pub(super) fn is_now(&mut self, peer: u32, way: Way) {
        if let Some(at) = self.by_peer.get(&peer) {
            self.sources[*at].is = way;
        }
    }

    /// A window is over: who is to change, those first that give a place back, so that there are never more than the
    /// budgets allow.
    pub(super) fn decide(&mut self, budgets: &Budgets, costs: &Costs) -> Vec<Change> {
        self.close_window(costs);
        for rule in 0..RULES.len() {
            let paid = self.choose(rule, budgets, costs);
            self.books[rule] += paid as f64;
        }
        self.follow(costs);
        let followed = self.followed;
        let mut wanted = Vec::new();
        let mut taken = [0; 3];
        for source in &self.sources {
            let (from, to) = (source.is, source.chosen[followed]);
            taken[from as usize] += 1;
            if from != to {
                wanted.push(Change { peer: source.peer, from, to });
            }
        }
        let changes = in_order(wanted, taken, budgets);
        changes.iter().for_each(|change| self.is_now(change.peer, change.to));
        self.drop_the_silent();
        changes
    }

    /// Each rule pays for the messages that have come, as it had chosen; then they belong to the past.
    fn close_window(&mut self, costs: &Costs) {
        self.windows += 1;
        self.books.iter_mut().for_each(|book| *book *= BOOK);
        self.sources.iter_mut().for_each(Source::note_losses);
        let (lost, n) = self.sources.iter().filter_map(|s| s.loses[1]).fold((0., 0.), |(sum, n), x| (sum + x, n + 1.));
        self.rings_lose = if n > 0. { lost / n } else { self.rings_lose * FADES };
        for source in &mut self.sources {
            let (now, losses) = (source.now as f32, source.losses(self.rings_lose));
            for (book, way) in self.books.iter_mut().zip(source.chosen) {
                *book += (now * (costs.latency(Way::Shared) - costs.saves(way, losses))) as f64;
            }
            // Who is new has not been silent before: the short memory takes him as he is, the long one as far as there
            // was a before.
            source.fast = if source.all == 0. { now } else { source.fast * FAST + now * (1. - FAST) };
            source.slow = if self.windows == 1 { now } else { source.slow * SLOW + now * (1. - SLOW) };
            source.all += now;
            source.now = 0;
        }
    }

    /// Makes the choice of a rule; what its switching costs.
    fn choose(&mut self, rule: usize, budgets: &Budgets, costs: &Costs) -> f32 {
        let windows = self.windows as f32;
        let (holds, rings_lose) = (RULES[rule].holds(windows), self.rings_lose);
        let worth = |source: &Source, way: Way| {
            let (is, expected) = (source.chosen[rule], RULES[rule].expects(source, windows));
            if RULES[rule] == Rule::Still && is != Way::Shared && expected > 0. {
                return if way == is { f32::INFINITY } else { 0. };
            }
            expected * holds * costs.saves(way, source.losses(rings_lose)) - costs.switching(is, way)
        };
        // Who is to have a place, by what the better one is worth more than none.
        let better = if costs.latency(Way::Connected) <= costs.latency(Way::Ring) { Way::Connected } else { Way::Ring };
        let gains =
            |source: &Source| worth(source, Way::Connected).max(worth(source, Way::Ring)) - worth(source, Way::Shared);
        let mut order: Vec<(f32, usize)> = self
            .sources
            .iter()
            .enumerate()
            .map(|(at, source)| (gains(source), at))
            .filter(|(gain, _)| *gain > 0.)
            .collect();
        sort_by(&mut order, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.truncate((budgets.connections + budgets.rings).min(budgets.contexts));
        // And which of them the better one, by what that is worth more than the other.
        let other = if better == Way::Connected { Way::Ring } else { Way::Connected };
        let more = |at: usize| {
            let (a, b) = (worth(&self.sources[at], better), worth(&self.sources[at], other));
            if a == b { 0. } else { a - b }
        };
        let mut by_more: Vec<(f32, usize)> = order.iter().map(|(_, at)| (more(*at), *at)).collect();
        sort_by(&mut by_more, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let places = |way: Way| if way == Way::Connected { budgets.connections } else { budgets.rings };
        let mut next = vec![Way::Shared; self.sources.len()];
        for (k, (more, at)) in by_more.iter().enumerate() {
            // Those at the end may have to take the better one though it is no better for them, where there are too few
            // of the other.
            let wants_better = *more > 0. || by_more.len() - k > places(other);
            let way = if k < places(better) && wants_better { better } else { other };
            let none = worth(&self.sources[*at], Way::Shared);
            next[*at] = if worth(&self.sources[*at], way) > none { way } else { Way::Shared };
        }
        let mut paid = 0.;
        for (source, way) in self.sources.iter_mut().zip(next) {
            paid += costs.switching(source.chosen[rule], way);
            source.chosen[rule] = way;
        }
        paid
    }

    /// Goes over to the rule that was cheapest, if it has saved more than that costs.
    fn follow(&mut self, costs: &Costs) {
        let best = (0..RULES.len()).min_by(|a, b| self.books[*a].total_cmp(&self.books[*b])).unwrap_or(0);
        let going: f64 = self.sources.iter().map(|s| costs.switching(s.is, s.chosen[best]) as f64).sum();
        let staying: f64 = self.sources.iter().map(|s| costs.switching(s.is, s.chosen[self.followed]) as f64).sum();
        if self.books[self.followed] - self.books[best] > going - staying {
            self.followed = best;
        }
    }

    /// Those whose messages are so long ago that they count for nothing are forgotten.
    fn drop_the_silent(&mut self) {
        let before = self.sources.len();
        self.sources.retain(|s| s.has_a_place() || s.slow > 1e-3);
        if self.sources.len() < before {
            self.by_peer = self.sources.iter().enumerate().map(|(at, source)| (source.peer, at)).collect();
        }
    }
}
