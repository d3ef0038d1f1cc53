//! How the connection of two processes is made, given up and made again: the states and the packets, and nothing else.
//!
//! Connections between two processes are numbered: their *turns*. Packets are datagrams, which may be lost, doubled and late, so each has
//! its turn, is repeated until it is answered, and is harmless when it comes once more. One side is the **first**: the one on the node
//! of the lower number. It reserves room on its node before the other does, so rooms are always waited for in the order of the
//! nodes, and no ring of nodes can wait for each other.
//!
//! ```text
//!   first                                      second
//!                    ◀──────────────── want(t)   asking: a thread wants to post
//!   reserving ... room: queue pair
//!   offered    connect(t, end) ────────────────▶ reserving ... room: queue pair, connected
//!                    ◀───────── accept(t, end)   accepted: can receive
//!   connected: up    confirm(t) ────────────────▶ up
//!   ...
//!   closing: nothing is posted any more (either side may start, or both at once)
//!   all of its own has completed: quiet
//!              retire(t) ──────────────────────▶ closing; ... quiet as well: down, its queue pair is gone
//!   down             ◀────────────── retired(t)
//! ```
//! Where there are two ways ([`ways`](super::ways)) each turn goes by one, which the packets name, and a switch is nothing but the next turn. The
//! first proposes; the second that has no place for it answers *retired(t)* to *connect(t)*, and the next turn is proposed by the other way.
//!
//! A side takes its queue pair down only when it is quiet *and* knows that the peer is: so no request is ever on its way to a queue pair
//! that is gone, and whatever was posted in a turn is in the peer's memory before the next turn begins.

use crate::base::rules::{Rule, holds};

/// What the connection packets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Say {
    /// The second's: make a connection.
    Want,
    /// The first's: my end.
    Connect,
    /// The second's: my end; I can receive.
    Accept,
    /// The first's: I can receive too.
    Confirm,
    /// I am alive, and wait for room on my node.
    Busy,
    /// All of mine in this turn is over, and nothing more comes.
    Retire,
    /// This turn is over.
    Retired,
}

/// See the drawing above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum State {
    /// No connection.
    Down,
    /// The second has asked for one.
    Asking,
    /// Waits for room on this node.
    Reserving,
    /// The first has sent its end.
    Offered,
    /// The second has sent its end.
    Accepted,
    /// May post.
    Up,
    /// Will not post any more in this turn.
    Closing,
}

/// What is to be done with the queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Connect it to the end that came with the packet.
    Connect,
    /// Remember the end that came with the packet.
    Remember,
    /// Take it down, and give the room back.
    Drop,
}

/// What comes of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// To be done first.
    pub deed: Option<Deed>,
    /// To be sent, and of which turn.
    pub say: Option<(Say, u32)>,
    /// To be remembered after a drop: the end of the next turn came with the packet.
    pub then: Option<Deed>,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Handshake {
    first: bool,
    state: State,
    /// Of the connection that is made, there, or being given up; down and asking: of the last one.
    turn: u32,
    /// A thread of this side waits to post.
    wanted: bool,
    /// Closing: all of ours is over.
    quiet: bool,
    /// Closing: the peer has said the same of its own.
    peer_quiet: bool,
}

impl Handshake {
    pub fn new(first: bool) -> Handshake {
        Handshake { first, state: State::Down, turn: 0, wanted: false, quiet: false, peer_quiet: false }
    }
    /// After this turn, with nothing under way.
    pub fn after(first: bool, turn: u32) -> Handshake {
        Handshake { turn, ..Handshake::new(first) }
    }
    pub fn state(&self) -> State {
        self.state
    }
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }
    /// Has all of ours been over since it was closed?
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }
    /// Of the connection that is there or is being made; of the last one if there is none.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Does this side reserve first, and so propose?
    pub fn is_first(&self) -> bool {
        self.first
    }
    /// Would the next turn begin with a packet of this one?
    pub fn would_begin(&self, turn: u32) -> bool {
        let is_free = matches!(self.state, State::Down | State::Asking) || self.state == State::Closing && self.quiet;
        is_free && turn == self.turn + 1
    }

    /// Is there no connection, and does nobody want one?
    pub fn is_at_rest(&self) -> bool {
        self.state == State::Down && !self.wanted
    }

    /// A thread wants to post.
    pub fn want(&mut self) -> Outcome {
        if self.state == State::Up {
            return Outcome::default();
        }
        self.wanted = true;
        self.begin()
    }

    fn begin(&mut self) -> Outcome {
        if self.state != State::Down || !self.wanted {
            return Outcome::default();
        }
        if self.first {
            (self.state, self.turn) = (State::Reserving, self.turn + 1);
            return Outcome::default();
        }
        self.state = State::Asking;
        self.again()
    }

    /// What was reserved is there, and the queue pair made (the second's connected to the end that came).
    pub fn reserved(&mut self) -> Outcome {
        debug_assert_eq!(self.state, State::Reserving);
        self.state = if self.first { State::Offered } else { State::Accepted };
        self.again()
    }

    /// This side wants to give the connection up; nothing may be posted from here on.
    pub fn retire(&mut self) {
        if self.state == State::Up {
            (self.state, self.quiet, self.peer_quiet) = (State::Closing, false, false);
        }
    }

    /// All that this side has posted is over.
    pub fn now_quiet(&mut self) -> Outcome {
        debug_assert_eq!(self.state, State::Closing);
        self.quiet = true;
        if !self.peer_quiet && holds(Rule::PeersIsOver) {
            return self.again();
        }
        self.over(Some((Say::Retired, self.turn)))
    }

    /// The connection of this turn is gone on both sides.
    fn over(&mut self, say: Option<(Say, u32)>) -> Outcome {
        (self.state, self.quiet, self.peer_quiet) = (State::Down, false, false);
        let next = self.begin();
        Outcome { deed: Some(Deed::Drop), say: say.or(next.say), then: None }
    }

    /// What this side goes on saying until it is answered.
    pub fn again(&self) -> Outcome {
        let say = match self.state {
            State::Asking => Some((Say::Want, self.turn + 1)),
            State::Offered => Some((Say::Connect, self.turn)),
            State::Accepted => Some((Say::Accept, self.turn)),
            State::Closing if self.quiet => Some((Say::Retire, self.turn)),
            _ => None,
        };
        Outcome { say, ..Outcome::default() }
    }

    /// What a peer that lives answers in each state, and that changes nothing: a turn is over that is.
    pub fn sign_of_life(&self) -> (Say, u32) {
        let is_last = matches!(self.state, State::Down | State::Asking);
        (Say::Retire, if is_last { self.turn } else { self.turn.saturating_sub(1) })
    }

    /// Does this side wait for the peer's part of this turn, so that *busy* of that one is about it?
    pub fn is_put_off_by(&self, turn: u32) -> bool {
        match self.state {
            State::Asking => turn == self.turn + 1,
            State::Offered => turn == self.turn,
            _ => false,
        }
    }

    /// A packet of the peer. Does this side `take` the turn that it proposes, if it does?
    pub fn packet(&mut self, say: Say, turn: u32, takes: bool) -> Outcome {
        use State::*;
        let answer = |say| Outcome { say: Some((say, turn)), ..Outcome::default() };
        // The peer begins the next turn: so it has taken this one down, and has told what was lost. It did so knowing that we are quiet.
        if matches!(say, Say::Want | Say::Connect)
            && self.state == Closing
            && self.quiet
            && turn == self.turn + 1
            && self.first == (say == Say::Want)
        {
            (self.state, self.quiet, self.peer_quiet) = (Down, false, false);
            let next = self.packet(say, turn, takes);
            return Outcome { deed: Some(Deed::Drop), then: next.deed, ..next };
        }
        match (say, self.state) {
            (Say::Want, Down) if self.first && turn == self.turn + 1 => {
                (self.state, self.turn) = (Reserving, turn);
                answer(Say::Busy)
            }
            (Say::Want, Reserving) if self.first && turn == self.turn => answer(Say::Busy),
            (Say::Want, Offered) if turn == self.turn => self.again(),
            // The turn is over before it was there.
            (Say::Connect, Down | Asking) if !self.first && turn == self.turn + 1 && !takes => {
                self.turn = turn;
                answer(Say::Retired)
            }
            (Say::Connect, Down | Asking) if !self.first && turn <= self.turn => answer(Say::Retired),
            (Say::Retired, Offered) if turn == self.turn => self.over(None),
            (Say::Connect, Down | Asking) if !self.first && turn == self.turn + 1 => {
                (self.state, self.turn) = (Reserving, turn);
                Outcome { deed: Some(Deed::Remember), ..answer(Say::Busy) }
            }
            (Say::Connect, Reserving) if !self.first && turn == self.turn => answer(Say::Busy),
            (Say::Connect, Accepted) if turn == self.turn => self.again(),
            (Say::Accept, Offered) if turn == self.turn => {
                (self.state, self.wanted) = (Up, false);
                Outcome { deed: Some(Deed::Connect), ..answer(Say::Confirm) }
            }
            (Say::Accept, Up) if self.first && turn == self.turn => answer(Say::Confirm),
            (Say::Confirm, Accepted) if turn == self.turn => {
                (self.state, self.wanted) = (Up, false);
                Outcome::default()
            }
            // It is up there and being given up again; nothing was posted here.
            (Say::Retire, Accepted) if turn == self.turn => self.over(Some((Say::Retired, turn))),
            (Say::Retire, Up) if turn == self.turn => {
                self.retire();
                self.peer_quiet = true;
                Outcome::default()
            }
            (Say::Retire, Closing) if turn == self.turn => {
                self.peer_quiet = true;
                if self.quiet { self.over(Some((Say::Retired, turn))) } else { Outcome::default() }
            }
            (Say::Retire, Down | Asking) if turn <= self.turn => answer(Say::Retired),
            (Say::Retire, _) if turn < self.turn => answer(Say::Retired),
            (Say::Retired, Closing) if turn == self.turn && self.quiet => self.over(None),
            _ => Outcome::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap, VecDeque};

    /// Both sides, and every packet that was ever sent: any of them may arrive at any time, and again, or never.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct World {
        sides: [Handshake; 2],
        /// Requests of each side that are under way, in the turn of its queue pair.
        posted: [bool; 2],
        /// The turn of the queue pair that each side has, and of the one that it is connected to.
        pair: [Option<u32>; 2],
        sent: [BTreeSet<(Say, u32)>; 2],
        wishes: [u8; 2],
        retires: [u8; 2],
        declines: u8,
        /// Signs of life that each side asks for.
        asks: [u8; 2],
    }

    const TURNS: u32 = 3;

    impl World {
        fn take(&mut self, who: usize, outcome: Outcome) -> Result<(), String> {
            for deed in [outcome.deed, outcome.then].into_iter().flatten() {
                match deed {
                    Deed::Remember => {}
                    Deed::Connect => {
                        if self.pair[1 - who] != self.pair[who] {
                            return Err("connected to a queue pair that is not there".into());
                        }
                    }
                    Deed::Drop => {
                        if self.posted[who] {
                            return Err("took down a queue pair with requests under way".into());
                        }
                        if self.posted[1 - who] && self.pair[who] == self.pair[1 - who] {
                            return Err("took down the queue pair that the peer posts to".into());
                        }
                        self.pair[who] = None;
                    }
                }
            }
            self.sent[who].extend(outcome.say);
            let side = &self.sides[who];
            if side.is_up() && (self.pair[1 - who] != Some(side.turn) || self.pair[who] != Some(side.turn)) {
                return Err("up without the peer's queue pair".into());
            }
            Ok(())
        }

        /// All that can happen next.
        fn next(&self) -> Vec<Result<World, String>> {
            let mut all = Vec::new();
            for who in 0..2 {
                let mut happens = |event: &dyn Fn(&mut World) -> Option<Outcome>| {
                    let mut w = self.clone();
                    if let Some(outcome) = event(&mut w) {
                        all.push(w.take(who, outcome).map(|()| w));
                    }
                };
                happens(&|w| {
                    (w.wishes[who] > 0).then(|| {
                        w.wishes[who] -= 1;
                        w.sides[who].want()
                    })
                });
                happens(&|w| {
                    (w.sides[who].state == State::Reserving).then(|| {
                        w.pair[who] = Some(w.sides[who].turn);
                        w.sides[who].reserved()
                    })
                });
                happens(&|w| {
                    (w.sides[who].is_up() && !w.posted[who]).then(|| {
                        w.posted[who] = true;
                        Outcome::default()
                    })
                });
                happens(&|w| {
                    w.posted[who].then(|| {
                        w.posted[who] = false;
                        Outcome::default()
                    })
                });
                happens(&|w| {
                    (w.sides[who].is_up() && w.retires[who] > 0).then(|| {
                        w.retires[who] -= 1;
                        w.sides[who].retire();
                        Outcome::default()
                    })
                });
                happens(&|w| {
                    (w.sides[who].state == State::Closing && !w.posted[who] && !w.sides[who].quiet)
                        .then(|| w.sides[who].now_quiet())
                });
                happens(&|w| Some(w.sides[who].again()));
                happens(&|w| {
                    w.asks[who] = w.asks[who].checked_sub(1)?;
                    Some(Outcome { say: Some(w.sides[who].sign_of_life()), ..Outcome::default() })
                });
                // All that is on its way is lost: from here too there must be a way on.
                happens(&|w| {
                    w.sent[who].clear();
                    Some(Outcome::default())
                });
                for (say, turn) in &self.sent[1 - who] {
                    happens(&|w| Some(w.sides[who].packet(*say, *turn, true)));
                    if *say == Say::Connect {
                        happens(&|w| {
                            w.declines = w.declines.checked_sub(1)?;
                            Some(w.sides[who].packet(*say, *turn, false))
                        });
                    }
                }
            }
            all
        }

        /// Nobody wants anything that has not come about.
        fn is_settled(&self) -> bool {
            let done = |s: &Handshake| matches!(s.state, State::Up | State::Down) && !s.wanted;
            self.sides.iter().all(done) && self.sides[0].state == self.sides[1].state
        }
    }

    fn explore(wishes: [u8; 2], retires: [u8; 2], declines: u8, asks: [u8; 2]) -> usize {
        let side = |first| Handshake::new(first);
        let start = World {
            sides: [side(true), side(false)],
            posted: [false; 2],
            pair: [None; 2],
            sent: [BTreeSet::new(), BTreeSet::new()],
            wishes,
            retires,
            declines,
            asks,
        };
        let mut number = HashMap::from([(start.clone(), 0usize)]);
        let mut worlds = vec![start];
        let mut before: Vec<Vec<usize>> = vec![vec![]];
        let mut queue = VecDeque::from([0usize]);
        while let Some(n) = queue.pop_front() {
            for next in worlds[n].next() {
                let next = next.unwrap_or_else(|why| panic!("{why} after {:?}", worlds[n].sides));
                if next.sides.iter().any(|s| s.turn > TURNS) {
                    continue;
                }
                let m = *number.entry(next.clone()).or_insert_with(|| {
                    worlds.push(next);
                    before.push(vec![]);
                    queue.push_back(worlds.len() - 1);
                    worlds.len() - 1
                });
                before[m].push(n);
            }
        }
        // From everywhere there is a way to where all wishes have come true.
        let mut good: Vec<bool> = worlds.iter().map(World::is_settled).collect();
        let mut queue: VecDeque<usize> = (0..worlds.len()).filter(|n| good[*n]).collect();
        while let Some(n) = queue.pop_front() {
            for m in std::mem::take(&mut before[n]) {
                if !std::mem::replace(&mut good[m], true) {
                    queue.push_back(m);
                }
            }
        }
        // Worlds cut off by the bound on turns have no way on, but none with two turns less.
        let stuck = |n: &usize| !good[*n] && worlds[*n].sides.iter().all(|s| s.turn + 1 < TURNS);
        if let Some(n) = (0..worlds.len()).find(stuck) {
            panic!("no way on from {:?}", worlds[n].sides);
        }
        worlds.len()
    }

    /// Every order of events, with packets lost, doubled and late.
    #[test]
    fn no_request_meets_a_queue_pair_that_is_gone() {
        let mut states = 0;
        for (wishes, retires) in
            [([1, 1], [1, 1]), ([2, 0], [1, 1]), ([0, 2], [1, 1]), ([2, 1], [1, 0]), ([1, 2], [0, 1])]
        {
            states += explore(wishes, retires, 0, [0; 2]);
        }
        assert!(states > 10_000, "{states} states");
    }

    /// The same where the second declines some of the turns.
    #[test]
    fn a_turn_that_is_declined_leads_to_the_next() {
        for (wishes, retires, declines) in [([1, 0], [0, 0], 1), ([1, 1], [1, 0], 1), ([1, 1], [0, 1], 1)] {
            assert!(explore(wishes, retires, declines, [0; 2]) > 100);
        }
    }

    /// Who asks for a sign of life changes nothing by that.
    #[test]
    fn a_sign_of_life_ends_no_turn() {
        for (wishes, retires, asks) in [([1, 0], [1, 0], [1, 1]), ([0, 1], [0, 1], [1, 1]), ([2, 0], [1, 0], [1, 0])] {
            assert!(explore(wishes, retires, 0, asks) > 100);
        }
    }
}
