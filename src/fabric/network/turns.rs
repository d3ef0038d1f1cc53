//! Connections come and go: what [`handshake`](super::handshake) decides is done here, with packets, queue pairs and the node's
//! [`room`](super::room).
//!
//! A thread that wants to post where there is no connection stays here until there is one, and takes part in what must be done for it;
//! otherwise the thread of the fabric does it, which looks at all connections that are between two states every few moments, and sleeps
//! when there are none. [`places`] has what is done for places, [`silence`] when a peer that does not answer is late.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) mod line;
mod places;
mod silence;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

use super::control::Shared;
use super::device::End;
use super::handshake::{Deed, Outcome, Say, State};
use super::hello::{Hello, Kind};
use super::link::ending::{LATE_NS, Reason};
use super::link::{InVain, Link, Posted};
use super::room::Which;
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::base::lock::MutexGuard;
use crate::base::log::{Level, tell};
use crate::base::rules::{Rule, holds};
use crate::base::thread::yield_core;
#[cfg(feature = "trace")]
use crate::base::trace::What;
use crate::base::trace::traced;
use silence::Silence;

/// How often a connection is looked at that waits for something nobody tells of: for room, or for what it has posted.
const TICK_NS: u64 = 5_000_000;
/// No connection is between two states.
pub(super) const SETTLED: u64 = u64::MAX;
/// How long a thread that waits for a connection sleeps if nobody wakes it.
const DOZE: Duration = Duration::from_millis(100);
/// From saying something to saying it again: at first, and at most.
const FIRST_PATIENCE_NS: u64 = 20_000_000;
const LAST_PATIENCE_NS: u64 = 250_000_000;
/// A peer that does not answer for so long while its connection is given up is tried over the connection itself.
const SILENCE_NS: u64 = 1_000_000_000;

/// A lock that is not had in so many turns is held for long.
const SOON: u32 = 64;

/// When something was said and heard, in nanoseconds; 0: not.
#[derive(Default)]
pub(super) struct Times {
    said: u64,
    patience: u64,
    heard: u64,
    /// The state began.
    since: u64,
    /// It is up since then, and so many requests were posted before.
    up: (u64, u64),
    /// Room was made for it.
    room: u64,
    /// The place that it waits for; who had last taken one of that kind, by the table's clock, and for how long nobody has; it was said that there is
    /// none.
    lacks: Option<Which>,
    stands: Option<((Which, u32), InVain)>,
    is_placeless: bool,
    /// The peer has given so many words, and has been silent since.
    words: u32,
    silence: Silence,
    /// Its device was tried.
    tried_device: u64,
    /// A ping is not answered since then.
    pinged: Option<InVain>,
    /// The peer's end, until there is room for this side's.
    end: Option<End>,
    state: Option<State>,
}

impl Times {
    /// When the peer was last known to be there.
    fn heard_of(&self) -> u64 {
        self.heard.max(self.since)
    }
    /// It is there.
    fn hears(&mut self, now: u64) {
        self.heard = now;
        self.silence.ends(now);
    }
}

/// What is left to be done when the lock of a connection is given back.
#[derive(Default)]
struct After {
    came_up: bool,
    needs_room: Option<Which>,
}

impl Shared {
    /// The connection is to be made; nobody waits for it here.
    pub(super) fn want(&self, link: &Link, posted: &mut Posted) {
        let outcome = posted.hand.want();
        self.take(link, posted, outcome, None);
    }

    /// The thread of a caller waits for the connection: does what can be done, then pauses for a moment.
    pub(super) fn wait_for(&self, link: &Link) {
        let outcome = {
            let mut posted = link.lock();
            self.want(link, &mut posted);
            posted.hand.is_up()
        };
        self.check_device(link);
        if outcome || link.failure().is_some() {
            return;
        }
        if self.is_its_thread() {
            // Nobody else would.
            self.pump();
            self.tick();
            if !link.is_up() && link.failure().is_none() {
                self.rest();
            }
            return;
        }
        self.advance(link);
        let links = self.lock();
        if link.is_up() || link.failure().is_some() {
            return;
        }
        drop(self.answered.wait_timeout(links, DOZE).unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes the datagrams that have come. Numbers stay for the thread, which may be waiting itself.
    pub(super) fn pump(&self) {
        self.arrivals.collect();
        while let Some(bytes) = self.arrivals.next_packet() {
            self.packet(&bytes);
        }
    }

    /// Has the thread look at all connections.
    pub(super) fn nudge(&self) {
        if self.due_ns.swap(0, Ordering::AcqRel) != 0 {
            self.wake();
        }
    }

    /// Looks at all connections, and notes when one that is between two states is to be looked at again.
    pub(super) fn tick(&self) {
        self.due_ns.store(SETTLED, Ordering::Release);
        // They are many, and the network has been looked at.
        let due = self
            .links()
            .iter()
            .map(|link| {
                link.take_completions();
                self.go_on(link).min(self.tend_rest(link))
            })
            .min()
            .unwrap_or(SETTLED);
        self.due_ns.fetch_min(due.min(self.switch_ways()), Ordering::AcqRel);
    }

    /// Does what can be done for a connection now. When it is to be looked at again, unless a packet comes before; [`SETTLED`]: not at all.
    pub(super) fn advance(&self, link: &Link) -> u64 {
        link.poll();
        self.go_on(link)
    }

    fn go_on(&self, link: &Link) -> u64 {
        let now = now_ns();
        let heeded = link.heed(now);
        let Some(mut posted) = link.try_lock() else { return now + TICK_NS };
        if link.has_ended() {
            if posted.times.room != u64::MAX {
                // The first time: the peer need not find out by itself.
                (posted.times.room, posted.times.since) = (u64::MAX, now);
                self.say_broken(link);
            }
            return if bury(link, &mut posted) { SETTLED } else { now + TICK_NS };
        }
        let mut after = After::default();
        let words = link.words();
        if std::mem::replace(&mut posted.times.words, words) != words {
            posted.times.hears(now);
        }
        match posted.hand.state() {
            State::Down | State::Up => return if heeded { SETTLED } else { now + TICK_NS },
            State::Reserving => after.needs_room = self.reserve(link, &mut posted, &mut after.came_up, now),
            State::Closing if !posted.hand.is_quiet() && (link.is_quiet(&mut posted) || !holds(Rule::OwnIsOver)) => {
                let outcome = posted.hand.now_quiet();
                after.came_up |= self.take(link, &mut posted, outcome, None);
            }
            // A stopped process does not answer, but its device does.
            State::Closing
                if posted.hand.is_quiet()
                    && now.saturating_sub(posted.times.heard_of().max(posted.times.tried_device)) > SILENCE_NS =>
            {
                posted.times.tried_device = now;
                let _ = link.post_empty(&mut posted);
            }
            _ => {}
        }
        if now.saturating_sub(posted.times.said) >= posted.times.patience {
            let outcome = posted.hand.again();
            let outcome = if holds(Rule::SaidAgain) { outcome } else { Outcome { say: None, ..outcome } };
            self.take(link, &mut posted, outcome, None);
            posted.times.patience = (posted.times.patience * 2).clamp(FIRST_PATIENCE_NS, LAST_PATIENCE_NS);
        }
        self.looks_for_a_word(link, &mut posted, now);
        let due = match posted.hand.state() {
            State::Down | State::Up => SETTLED,
            State::Reserving => now + TICK_NS,
            State::Closing if !posted.hand.is_quiet() => now + TICK_NS,
            _ => posted.times.said + posted.times.patience.max(FIRST_PATIENCE_NS),
        };
        drop(posted);
        self.follow(link, after);
        due
    }

    /// Has a connection between two states not come on for so long that who waits for it is to hear of it? Where this side waits, for a place or for
    /// an end, nothing that it says is answered: so the peer is asked for a sign of life. All with the lock, so that none of it is said of another
    /// state.
    fn looks_for_a_word(&self, link: &Link, posted: &mut Posted, now: u64) {
        let state = posted.hand.state();
        if matches!(state, State::Down | State::Up) || link.has_ended() {
            return;
        }
        posted.times.silence.look(now, self.patience_ns);
        if posted.times.silence.is_late(self.patience_ns, now + LATE_NS) {
            // Said again all the while: it takes up where it was when the peer answers.
            link.is_late_after(posted.times.words, self.no_answer(link));
        } else if state == State::Reserving
            && let Some(why) = self.finds_no_place(posted, now)
        {
            link.has_no_place(why);
        }
        if matches!(state, State::Reserving | State::Closing)
            && posted.times.silence.asks(now, self.patience_ns, link.is_unheard())
        {
            let (say, turn) = posted.hand.sign_of_life();
            let _ = self.say(link, posted, say, turn);
        }
    }

    pub(super) fn no_answer(&self, link: &Link) -> String {
        format!(
            "did not answer over {} within {:.1} s: it has died, it is stopped, or there is no way to its port{} (FMPL_ATTACH_TIMEOUT \
             sets the time)",
            self.device.describe(),
            self.patience_ns as f64 / 1e9,
            self.why_silent(link.card.get()),
        )
    }

    fn follow(&self, link: &Link, after: After) {
        if after.came_up {
            // Under the lock, so that who is about to wait does not miss it.
            drop(self.lock());
            self.answered.notify_all();
            if let Some(hooks) = self.hooks.get() {
                (hooks.came_up)(link);
            }
        }
        if let Some(which) = after.needs_room {
            self.make_room_for(link, which);
        }
    }

    /// Does what an event has led to. `true`: the connection has come about.
    pub(super) fn take(&self, link: &Link, posted: &mut Posted, outcome: Outcome, end: Option<&End>) -> bool {
        for deed in [outcome.deed, outcome.then].into_iter().flatten() {
            match deed {
                Deed::Remember => posted.times.end = end.copied(),
                Deed::Drop => {
                    traced!(link.note(What::GivenUp, posted.hand.turn()));
                    tell(Level::Debug, || format!("the connection with rank {} is given up", link.peer));
                    // Its place goes first, its connection may stay.
                    if let Some(made) = link.take_down(posted) {
                        self.keep(link, posted, made);
                    }
                    posted.times.end = None;
                    if std::mem::take(&mut posted.parts) && Link::may_be_put_away(posted) {
                        self.give_context_back(link, posted);
                    }
                    // Another connection may wait for its place.
                    self.nudge();
                }
                Deed::Connect => {
                    let connected = match (&mut posted.made, end) {
                        (Some(made), Some(end)) => made.connect(end),
                        _ => Ok(()),
                    };
                    if let Err(e) = connected {
                        link.fail(Reason::Other, format!("cannot be connected with ({})", e.detail()));
                    }
                }
            }
        }
        let now = now_ns();
        let state = posted.hand.state();
        let changed = posted.times.state.replace(state) != Some(state);
        if changed {
            (posted.times.since, posted.times.patience, posted.times.heard) = (now, FIRST_PATIENCE_NS, 0);
            (posted.times.stands, posted.times.lacks, posted.times.is_placeless) = Default::default();
            posted.times.silence = Silence::since(now);
            if state != State::Reserving {
                [Which::Pairs, Which::Contexts].into_iter().for_each(|which| link.leaves_line(which as usize));
            }
            if matches!(state, State::Offered | State::Accepted) {
                link.has_a_place();
            }
        }
        if let Some((say, turn)) = outcome.say {
            posted.times.said = now;
            if matches!(state, State::Asking | State::Offered | State::Accepted) {
                posted.times.silence.is_asked(now);
            }
            let _ = self.say(link, posted, say, turn);
        }
        let up = posted.hand.is_up();
        link.set_up(up);
        if changed && !matches!(state, State::Down | State::Up) {
            self.nudge();
        }
        if up && changed {
            link.is_reached();
            posted.times.up = (now, posted.last);
            self.has_switched(posted, now);
            traced!(link.note(What::Connected, posted.hand.turn()));
            tell(Level::Debug, || {
                format!("connected with rank {} (its {}. connection)", link.peer, posted.hand.turn())
            });
        }
        up && changed
    }

    fn say(&self, link: &Link, posted: &Posted, say: Say, turn: u32) -> Result<()> {
        let end = link.end(posted);
        let way = posted.made.as_ref().map_or_else(|| self.wish(posted), |made| made.way);
        let kept = match say {
            Say::Busy => posted.times.is_placeless,
            _ => posted.made.as_ref().is_some_and(|made| made.is_kept),
        };
        let hello = Hello { turn, way, kept, end, memory: self.memory(link), ..self.hello_to(Kind::Say(say), link) };
        self.send_to(link, &hello)
    }

    /// A packet about the connection.
    pub(super) fn said(&self, link: &Link, say: Say, hello: &Hello) {
        if say == Say::Retire && link.is_up() {
            self.settle(link);
        }
        if let Some(told) = &hello.memory {
            self.take_in_memory(link, told);
        }
        let Some(mut posted) = lock_soon(link) else { return };
        posted.times.hears(now_ns());
        posted.times.pinged = None;
        if link.has_ended() {
            return self.say_broken(link);
        }
        if say == Say::Busy && hello.kept && posted.hand.is_put_off_by(hello.turn) {
            link.has_no_place(
                "cannot be connected with: no place for a connection has come free on its node for long (FMPL_QUEUE_PAIRS and \
                 FMPL_CONTEXTS set how many there are)"
                    .to_owned(),
            );
        }
        let before = posted.hand.state();
        let takes = !self.device.has_ways() || self.hears_of_a_way(link, &mut posted, say, hello);
        let outcome = posted.hand.packet(say, hello.turn, takes);
        let came_up = self.take(link, &mut posted, outcome, Some(&hello.end));
        if matches!(say, Say::Connect | Say::Accept) && posted.hand.state() != before {
            // There was a place for it.
            link.is_reached();
        }
        drop(posted);
        self.follow(link, After { came_up, needs_room: None });
        // What follows at once need not wait for the thread.
        self.advance(link);
    }

    /// Tells the peer that the connection has failed, unless it has left.
    pub(super) fn say_broken(&self, link: &Link) {
        if !link.has_left() {
            let hello = Hello { turn: link.reason() as u32, ..self.hello_to(Kind::Broken, link) };
            let _ = self.send_to(link, &hello);
        }
    }

    /// Asks the peer for a word, where there is no connection; a peer that has not answered for long is given up.
    pub(super) fn ping(&self, link: &Link, posted: &mut Posted, now: u64) {
        let pinged = posted.times.pinged.get_or_insert(InVain::since(now));
        if pinged.look(now) > self.patience_ns {
            // Asked anew when it is tried again.
            posted.times.pinged = None;
            link.is_late(self.no_answer(link));
            return;
        }
        let (say, turn) = posted.hand.sign_of_life();
        let _ = self.say(link, posted, say, turn);
    }

    /// Sends what is owed over a connection before it is given up, so that it need not be made again for that.
    fn settle(&self, link: &Link) {
        if let Some(hooks) = self.hooks.get() {
            (hooks.settle)(link);
        }
    }

    /// Takes down all queue pairs and contexts of this process.
    pub(super) fn bury_all(&self) {
        for link in self.links() {
            let mut posted = link.lock();
            link.drop_pair(&mut posted);
            link.put_away(&posted);
            posted.switch = Default::default();
        }
    }
}

/// The lock of a link, unless somebody holds it for longer than it takes to post: who waits for a peer that has died would have all others wait
/// for the thread, and what has come is said again.
fn lock_soon(link: &Link) -> Option<MutexGuard<'_, Posted>> {
    (0..SOON).find_map(|turn| {
        if turn > 0 {
            yield_core();
        }
        link.try_lock()
    })
}

/// Takes down queue pair and context of a connection that has failed, once its device is done with what was posted; has it?
fn bury(link: &Link, posted: &mut Posted) -> bool {
    link.set_up(false);
    if posted.made.is_none() {
        link.put_away(posted);
        posted.switch = Default::default();
        return true;
    }
    // What was under way is flushed within moments; a device that does not report it is out of order.
    if link.completed.load(Ordering::Acquire) < posted.last && now_ns() - posted.times.since < SILENCE_NS {
        return false;
    }
    link.drop_pair(posted);
    link.put_away(posted);
    posted.switch = Default::default();
    true
}
