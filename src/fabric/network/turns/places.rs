//! The places of connections and contexts on a node: taken when one is made, and had from another when there are none. Which one goes is
//! decided here; [`room`](super::super::room) keeps the places.
//!
//! When no place is free on this node, the connection that was not used for longest is given up, whichever process has it. One that has
//! come about just now is left alone until it was used, so that each makes its way.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::super::control::Shared;
use super::super::handshake::{Outcome, State};
use super::super::hello::Kind;
use super::super::link::ending::{LATE_NS, Reason};
use super::super::link::{InVain, Link, Posted};
use super::super::room::{Least, Room, Taken, Which};
use super::super::ways::Way;
use super::line::Line;
use crate::base::clock::now_ns;
use crate::base::lock::MutexGuard;
use crate::base::rules::{Rule, holds};

/// A connection that was not used since it came about is left alone for so long.
const FRESH_NS: u64 = 50_000_000;
/// From making room, or asking for it, to the next time for the same connection.
const ROOM_NS: u64 = 50_000_000;
/// The same where none could be given up.
const ROOM_SOON_NS: u64 = 10_000_000;
/// So many more places are made free at most when one is needed.
const AHEAD: usize = 16;
/// Room is made by so many of those who wait for it: the others have their turn later.
const NEXT: u64 = 32;
/// That there is no place is said when none has changed hands for twice as long as a peer may be silent, or twice this: those who have one may wait for
/// places of their peers, and so on, and one of these for a peer that has died.
const STANDS_NS: u64 = 10_000_000_000;
/// Whoever finds no place names so many of those that have one.
const NAMED: usize = 4;

impl Shared {
    /// Takes places and makes context and queue pair. If there is no place, room is to be made, there.
    pub(super) fn reserve(&self, link: &Link, posted: &mut Posted, came_up: &mut bool, now: u64) -> Option<Which> {
        let [room, contexts, _] = self.rooms()?;
        posted.times.lacks = None;
        // Nobody gives way to a peer that does not answer; it is asked for a word meanwhile.
        if link.is_unheard() && holds(Rule::LateGivesWay) {
            self.give_context_back(link, posted);
            return None;
        }
        // Who has waited longest for a place is the next: otherwise who has just given his up, and wants it back, is there first each time.
        if link.is_idle() && self.in_line(Which::Contexts).has_others(link) {
            self.give_context_back(link, posted);
        }
        let mut missing = |which: Which, before: u64| {
            posted.times.lacks = Some(which);
            let due = now.saturating_sub(posted.times.room) > ROOM_NS;
            if due {
                posted.times.room = now;
                self.waits_for_room(link, now);
            }
            (due && before < NEXT).then_some(which)
        };
        let take = |room: &Room, which: Which| {
            let mut line = self.in_line(which);
            let before = line.joins(link, || self.known(link.peer)).unwrap_or(u64::MAX);
            let place = (before == 0).then(|| room.take(link.peer)).flatten().ok_or(before)?;
            line.first_has_it();
            Ok(place)
        };
        // The context first: others wait for a connection's place only with theirs in hand, so no two wait for each other's.
        if link.is_in() {
            link.set_idle(!holds(Rule::StaysRegistered));
        } else {
            let place = match take(&contexts, Which::Contexts) {
                Ok(place) => place,
                Err(before) => return missing(Which::Contexts, before),
            };
            if let Err(e) = link.bring_in(&contexts, place) {
                contexts.give_back(place);
                link.fail(Reason::Other, format!("cannot be connected with ({})", e.detail()));
                return None;
            }
        }
        let (way, taken) = if self.device.has_ways() {
            self.way_to_take(link, posted, now)
        } else if !self.counts_pairs() {
            (Way::Connected, None)
        } else {
            match take(&room, Which::Pairs) {
                Ok(place) => (Way::Connected, Some(Taken { room, place })),
                Err(before) => return missing(Which::Pairs, before),
            }
        };
        let kept = self.kept_for(link, posted, way);
        match link.make_pair(&self.device, (way, taken), kept) {
            Ok(mut made) => {
                let connected = posted.times.end.map_or(Ok(()), |end| made.connect(&end));
                posted.made = Some(made);
                if let Err(e) = connected {
                    // With its place.
                    link.drop_pair(posted);
                    link.fail(Reason::Other, format!("cannot be connected with ({})", e.detail()));
                    return None;
                }
                let outcome = posted.hand.reserved();
                *came_up |= self.take(link, posted, outcome, None);
            }
            Err(e) => link.fail(Reason::Other, format!("cannot be connected with ({})", e.detail())),
        }
        None
    }

    /// Does all that may be up take a place among the connections? Otherwise contexts are what others ask for, whichever way a peer is reached.
    fn counts_pairs(&self) -> bool {
        self.places[Which::Pairs as usize] > 0 && !self.device.has_ways()
    }

    fn in_line(&self, which: Which) -> MutexGuard<'_, Line> {
        self.in_line[which as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the context away of a link without connection.
    pub(in crate::fabric::network) fn give_context_back(&self, link: &Link, posted: &Posted) {
        if link.put_away(posted) {
            self.put_away.fetch_add(1, Ordering::Relaxed);
            // A connection may wait for its place.
            self.nudge();
        }
    }

    /// Has a connection waited for a place for twice as long as its peer may be silent, and more, in which none of that kind has changed hands?
    /// What is said of it. (A peer that holds one, and is silent, has lost it by then.)
    pub(super) fn finds_no_place(&self, posted: &mut Posted, now: u64) -> Option<String> {
        let which = posted.times.lacks?;
        let room = &self.rooms()?[which as usize];
        let (seen, times, most) =
            ((which, room.now()), &mut posted.times, 2 * self.patience_ns.max(STANDS_NS) + LATE_NS);
        let Some((_, vain)) = times.stands.as_mut().filter(|(before, _)| *before == seen) else {
            (times.stands, times.is_placeless) = (Some((seen, InVain::since(now))), false);
            return None;
        };
        if vain.look(now) <= most {
            return None;
        }
        // Said again after a while.
        (times.stands, times.is_placeless) = (Some((seen, InVain::since(now + LATE_NS))), true);
        let (what, setting) = match which {
            Which::Pairs => ("connections", "FMPL_QUEUE_PAIRS"),
            Which::Contexts => ("contexts", "FMPL_CONTEXTS"),
        };
        let holders: Vec<String> =
            room.holders(NAMED).map(|(rank, peer)| format!("rank {rank} for rank {peer}")).collect();
        Some(format!(
            "cannot be connected with: in {:.1} s none of the {} places for {what} on the node of rank {} has changed hands; held by {} \
             ({setting} sets how many there are)",
            most as f64 / 1e9,
            room.limit(),
            self.rank,
            holders.join(", "),
        ))
    }

    /// Makes room for a connection, or soon again if none could be given up.
    pub(super) fn make_room_for(&self, link: &Link, which: Which) {
        if !self.make_room(which)
            && let Some(mut posted) = link.try_lock()
        {
            // All are in use for the first time.
            posted.times.room = posted.times.room.saturating_sub(ROOM_NS - ROOM_SOON_NS);
        }
    }

    /// The connections or contexts of the node are too many: what was used longest ago is given up, or its process is asked to. `false`: none
    /// can be now.
    fn make_room(&self, which: Which) -> bool {
        self.make_room_in(which, which, which)
    }

    /// Makes room for who wants a place of that kind: in this table, by giving up what is `leaving`.
    fn make_room_in(&self, table: Which, leaving: Which, wanted: Which) -> bool {
        let Some(rooms) = self.rooms() else { return false };
        let (room, idle) = (&rooms[table as usize], leaving == Which::Contexts);
        if room.reap() > 0 {
            return true;
        }
        let may = |peer| self.known(peer).is_some_and(|link| may_go(&link, leaving));
        let Some(first) = room.least_useful(idle, 0, may) else {
            // A connection that is given up for a context takes its own along; so does a peer that is reached without one.
            let table = if self.counts_pairs() { Which::Pairs } else { Which::Contexts };
            return leaving == Which::Contexts && self.make_room_in(table, Which::Pairs, wanted);
        };
        // Whoever speaks to one peer after the other would wait each time: so some more go that were not used for long.
        let (old, more) = ((room.limit() / 2) as u32, (room.limit() / 8).min(AHEAD));
        let more = (0..more).map_while(|_| room.least_useful(idle, old, may));
        let mut others = BTreeSet::new();
        for least in std::iter::once(first).chain(more) {
            match least {
                Least::Mine(peer) => {
                    if let Some(link) = self.known(peer) {
                        self.give_up(&link, leaving, wanted);
                    }
                }
                Least::Of(rank) => {
                    others.insert(rank);
                }
            }
        }
        for rank in others {
            if let Some(card) = self.hooks.get().and_then(|h| (h.card_of)(rank).ok()) {
                let _ = self.send(&card, &self.hello(Kind::Yield(wanted), rank));
            }
        }
        true
    }

    /// Another process of the node needs a place.
    pub(in crate::fabric::network) fn make_room_for_others(&self, which: Which) {
        let Some(rooms) = self.rooms() else { return };
        let tables = [Which::Pairs, Which::Contexts];
        for table in tables.into_iter().filter(|table| [*table, Which::Contexts].contains(&which)) {
            for link in rooms[table as usize].asked_of_me().into_iter().filter_map(|peer| self.known(peer)) {
                let leaving = if self.counts_pairs() || may_go(&link, table) { table } else { Which::Pairs };
                if may_go(&link, leaving) {
                    self.give_up(&link, leaving, which);
                }
            }
        }
    }

    fn give_up(&self, link: &Link, leaving: Which, wanted: Which) {
        match leaving {
            Which::Pairs => {
                if let Some(mut posted) = link.try_lock() {
                    posted.parts |= wanted == Which::Contexts;
                }
                self.retire(link);
            }
            Which::Contexts => {
                if let Some(posted) = link.try_lock().filter(|posted| Link::may_be_put_away(posted)) {
                    self.give_context_back(link, &posted);
                }
            }
        }
    }

    /// This side is done with a peer: its connection is given up, and then its context.
    pub(in crate::fabric::network) fn part(&self, link: &Link) {
        if link.is_up() {
            return self.retire(link);
        }
        if let Some(posted) = link.try_lock().filter(|posted| Link::may_be_put_away(posted) && posted.made.is_none()) {
            self.give_context_back(link, &posted);
        }
    }

    /// Gives a connection up.
    fn retire(&self, link: &Link) {
        if !link.is_up() {
            // It has been in the making, or about to be given up, for long, and nobody knows whether the peer will ever answer.
            if link.try_lock().is_some_and(|mut posted| is_held_for_nobody(link, &mut posted)) {
                link.give_place_up();
            }
            self.advance(link);
            return;
        }
        self.settle(link);
        let mut posted = link.lock();
        if link.has_left() && link.is_quiet(&mut posted) {
            drop(posted);
            link.fail(Reason::Other, "has finalized".into());
        } else {
            posted.hand.retire();
            self.retired.fetch_add(1, Ordering::Relaxed);
            self.take(link, &mut posted, Outcome::default(), None);
            drop(posted);
        }
        self.advance(link);
    }

    /// The places of this node's connections, contexts and rings; `None`: too early.
    pub(in crate::fabric::network) fn rooms(&self) -> Option<[Arc<Room>; 3]> {
        if let Some(rooms) = self.rooms.get() {
            return Some(rooms.clone());
        }
        let tables = (self.hooks.get()?.tables)()?;
        Some(self.rooms.get_or_init(|| Room::all(tables, self.places, self.rank)).clone())
    }
}

/// Does a connection in the making, or one that is being given up, keep its place for a peer that is late? Others would wait for it for as long as
/// that is stopped, or for ever, if it has died. Late in this state: what is remembered of an earlier one is no reason.
fn is_held_for_nobody(link: &Link, posted: &mut Posted) -> bool {
    matches!(posted.hand.state(), State::Offered | State::Accepted | State::Closing)
        && link.is_unheard()
        && holds(Rule::LateGivesWay)
        && posted.times.silence.gives_way(now_ns())
}

/// May this connection be given up now, or this context?
fn may_go(link: &Link, which: Which) -> bool {
    let Some(mut posted) = link.try_lock() else { return false };
    if which == Which::Contexts {
        return Link::may_be_put_away(&posted);
    }
    if is_held_for_nobody(link, &mut posted) {
        return true;
    }
    let (since, before) = posted.times.up;
    posted.hand.is_up()
        && !link.has_ended()
        && (link.has_left() || posted.last > before || now_ns().saturating_sub(since) > FRESH_NS)
}
