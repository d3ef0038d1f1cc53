//! The model: senders, counters and a receiver as a queueing network, event by event.
//!
//! ```text
//!                 look, ticket                     slot
//!   sender ──────────────────────▶ counter   sender ─────▶ port ──▶ slots of its share ──▶ receiver
//!      ▲    way    port, counter      │                                                       │
//!      └──────────────────────────────┘ way                            freed ◀────────────────┘
//! ```
//! Each station serves one request after the other, in the order in which they come, for a fixed time: a **counter** gives out tickets and is
//! looked at, a **port** is all that comes to a node, the **receiver** takes messages from the shares in turn. A sender does what
//! `src/p2p/any_source/remote/road.rs` does: looks while it knows of no room, longer and longer apart; adds one to the counter; keeps a ticket
//! that there is no room for yet; writes the slot, and looks behind it.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one thing takes, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The receiver, for a message that is there.
    pub take: f64,
    /// A sender's processor, for a message that there is room for.
    pub send: f64,
    /// A counter, for a ticket or a look.
    pub counter: f64,
    /// A node, for a request of any kind that comes to it.
    pub port: f64,
    /// From a sender to a counter or slot, or back.
    pub way: f64,
    /// The same two, while the other side is at work.
    pub taking: f64,
    pub sending: f64,
    /// A rank that gives way to another one on its processor, until that goes on.
    pub yields: f64,
    /// The receiver, to wake senders that sleep.
    pub wake: f64,
    /// From when it begins to until they go on.
    pub woken: f64,
}

#[cfg(test)]
impl Times {
    /// For tests: no side is held up by the other.
    pub const ALONE: Times = Times {
        take: 200.0,
        send: 50.0,
        counter: 40.0,
        port: 10.0,
        way: 30.0,
        taking: 0.0,
        sending: 0.0,
        yields: 0.0,
        wake: 0.0,
        woken: 0.0,
    };
}

/// Where the counters of the shares are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the receiver's memory, each in a line of its own; requests to different lines do not wait for each other.
    Memory,
    /// The same, behind one port.
    Port,
    /// Each on another node, behind a port of its own; the receiver writes there what it has taken.
    Nodes,
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub senders: usize,
    /// Slots of all shares together.
    pub slots: usize,
    pub shares: usize,
    pub place: Place,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// From one message taken to the next, ns.
    pub each: f64,
    /// Looks at a counter for each message.
    pub looks: f64,
}

/// Pauses between looks at a full ring, first and longest; as in `road.rs`.
const PAUSE: [f64; 2] = [50_000.0, 4_000_000.0];
/// Messages that are played; and events at most, so many and so many for each sender: a ring that has collapsed is not played to its end.
const MESSAGES: usize = 40_000;
const EVENTS: [usize; 2] = [800_000, 4];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Time to look.
    Look,
    /// What the look found is back.
    Seen,
    /// The ticket is back.
    Drawn,
    /// The slot's message is there.
    Filled,
    /// The receiver has taken a message of this share.
    Taken,
}

/// An event; times are whole picoseconds, so that they can be ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event(Reverse<u64>, u64, u8, u32);

#[derive(Clone, Copy, Default)]
struct Sender {
    room: u64,
    sent: u64,
    held: Option<u64>,
    pause: f64,
    /// What the request under way brings back.
    found: (u64, u64),
}

struct Share {
    sent: u64,
    freed: u64,
    next: u64,
    filled: Vec<bool>,
    /// When the counter, and the port it is behind, are free again.
    counter: f64,
    port: f64,
}

struct Play {
    times: Times,
    scene: Scene,
    now: f64,
    order: u64,
    events: BinaryHeap<Event>,
    senders: Vec<Sender>,
    shares: Vec<Share>,
    /// The receiver's port.
    port: f64,
    turn: usize,
    busy: bool,
    looks: usize,
}

/// Plays a scene in which every sender has another message as soon as one is sent.
pub fn play(scene: Scene, times: Times) -> Outcome {
    let each = scene.slots / scene.shares;
    let share = || Share { sent: 0, freed: 0, next: 0, filled: vec![false; each], counter: 0.0, port: 0.0 };
    let mut p = Play {
        times,
        scene,
        now: 0.0,
        order: 0,
        events: BinaryHeap::new(),
        senders: vec![Sender::default(); scene.senders],
        shares: (0..scene.shares).map(|_| share()).collect(),
        port: 0.0,
        turn: 0,
        busy: false,
        looks: 0,
    };
    for s in 0..scene.senders {
        p.go(s);
    }
    // The beginning, when the ring is empty, does not count.
    let warm = scene.slots * 4;
    let (mut taken, mut since, mut looks_before) = (0, 0.0, 0);
    let mut events = 0;
    while let Some(Event(Reverse(at), _, step, who)) = p.events.pop() {
        p.now = at as f64 / 1000.0;
        events += 1;
        if p.step(step, who as usize) {
            taken += 1;
            if taken == warm {
                (since, looks_before) = (p.now, p.looks);
            }
        }
        if taken == warm + MESSAGES || events == EVENTS[0] + EVENTS[1] * scene.senders {
            break;
        }
    }
    if taken <= warm {
        // It has collapsed before the ring was used four times: all of it is the figure.
        return Outcome { each: p.now / taken.max(1) as f64, looks: p.looks as f64 / taken.max(1) as f64 };
    }
    let count = (taken - warm) as f64;
    Outcome { each: (p.now - since) / count, looks: (p.looks - looks_before) as f64 / count }
}

const STEPS: [Step; 5] = [Step::Look, Step::Seen, Step::Drawn, Step::Filled, Step::Taken];

impl Play {
    fn at(&mut self, when: f64, step: Step, who: usize) {
        self.order += 1;
        let n = STEPS.iter().position(|s| *s == step).unwrap_or(0) as u8;
        // Of two at the same time the one that was put in first.
        self.events.push(Event(Reverse((when * 1000.0) as u64), u64::MAX - self.order, n, who as u32));
    }

    /// When a request to the counter of a share is answered.
    fn counter(&mut self, k: usize) -> f64 {
        let t = self.times;
        let share = &mut self.shares[k];
        let mut when = self.now + t.way;
        let port = match self.scene.place {
            Place::Memory => None,
            Place::Port => Some(&mut self.port),
            Place::Nodes => Some(&mut share.port),
        };
        if let Some(port) = port {
            *port = port.max(when) + t.port;
            when = *port;
        }
        share.counter = share.counter.max(when) + t.counter;
        share.counter
    }

    /// A sender goes on with its message.
    fn go(&mut self, s: usize) {
        let k = s % self.scene.shares;
        let sender = self.senders[s];
        let next = sender.held.unwrap_or(sender.sent);
        if next >= sender.room {
            return self.look(s, k);
        }
        match sender.held {
            Some(ticket) => self.fill(s, k, ticket),
            None => {
                let served = self.counter(k);
                let share = &mut self.shares[k];
                self.senders[s].found.0 = share.sent;
                share.sent += 1;
                let back = served + self.times.way;
                self.at(back, Step::Drawn, s);
            }
        }
    }

    fn look(&mut self, s: usize, k: usize) {
        self.looks += 1;
        let back = self.counter(k) + self.times.way;
        self.at(back, Step::Seen, s);
    }

    /// The message goes into its slot; behind it the sender looks at the counters.
    fn fill(&mut self, s: usize, k: usize, ticket: u64) {
        let t = self.times;
        let mut when = self.now + t.send + t.way;
        if self.scene.place != Place::Memory {
            self.port = self.port.max(when) + t.port;
            when = self.port;
        }
        let n = ticket as usize % self.shares[k].filled.len();
        self.at(when, Step::Filled, k * self.scene.slots + n);
        let sender = &mut self.senders[s];
        (sender.held, sender.pause) = (None, 0.0);
        sender.sent = ticket + 1;
        let later = self.now + t.send;
        self.at(later, Step::Look, s);
    }

    fn take(&mut self) {
        let count = self.shares.len();
        for n in 0..count {
            let k = (self.turn + n) % count;
            let share = &mut self.shares[k];
            let slot = share.next as usize % share.filled.len();
            if std::mem::take(&mut share.filled[slot]) {
                share.next += 1;
                self.turn = (k + 1) % count;
                self.busy = true;
                let done = self.now + self.times.take;
                return self.at(done, Step::Taken, k);
            }
        }
        self.busy = false;
    }

    /// `true`: a message was taken.
    fn step(&mut self, step: u8, who: usize) -> bool {
        let k = who % self.scene.shares;
        match STEPS[step as usize] {
            Step::Look => self.look(who, k),
            Step::Seen => {
                let (sent, freed) = (self.shares[k].sent, self.shares[k].freed);
                let each = self.shares[k].filled.len() as u64;
                let sender = &mut self.senders[who];
                sender.room = sender.room.max(freed + each);
                sender.sent = sender.sent.max(sent);
                if sender.held.unwrap_or(sender.sent) < sender.room {
                    self.go(who);
                } else {
                    sender.pause = (2.0 * sender.pause).clamp(PAUSE[0], PAUSE[1]);
                    let later = self.now + sender.pause;
                    self.at(later, Step::Look, who);
                }
            }
            Step::Drawn => {
                let ticket = self.senders[who].found.0;
                self.senders[who].held = Some(ticket);
                self.go(who);
            }
            Step::Filled => {
                let (share, slot) = (who / self.scene.slots, who % self.scene.slots);
                self.shares[share].filled[slot] = true;
                if !self.busy {
                    self.take();
                }
            }
            Step::Taken => {
                let t = self.times;
                if self.scene.place == Place::Nodes {
                    // A write to the counter's node.
                    let share = &mut self.shares[who];
                    share.port = share.port.max(self.now + t.way) + t.port;
                }
                let share = &mut self.shares[who];
                share.freed += 1;
                self.take();
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times::ALONE;

    fn each(senders: usize, shares: usize, place: Place, times: Times) -> f64 {
        play(Scene { senders, slots: 512, shares, place }, times).each
    }

    #[test]
    fn one_sender_takes_as_long_as_its_way() {
        let times = Times { take: 1.0, ..TIMES };
        // Ticket, slot, look: two ways there and back, and the work.
        let want = 2.0 * (2.0 * 30.0 + 40.0) + 50.0;
        assert!((each(1, 1, Place::Memory, times) - want).abs() < 1.0);
    }

    #[test]
    fn enough_senders_keep_the_receiver_busy() {
        for place in [Place::Memory, Place::Port, Place::Nodes] {
            for (senders, shares) in [(8, 1), (32, 1), (32, 4)] {
                let each = each(senders, shares, place, TIMES);
                assert!((each / 200.0 - 1.0).abs() < 0.02, "{senders} {shares} {place:?}: {each}");
            }
        }
    }

    #[test]
    fn a_slow_counter_holds_all_and_shares_relieve_it() {
        let times = Times { take: 20.0, counter: 100.0, port: 1.0, ..TIMES };
        let one = each(64, 1, Place::Memory, times);
        // A ticket and a look for each message.
        assert!(one >= 199.0, "{one}");
        let eight = each(64, 8, Place::Memory, times);
        assert!(eight < one / 6.0, "{one} {eight}");
        assert!(each(64, 8, Place::Nodes, times) < one / 6.0);
    }

    #[test]
    fn a_port_of_its_own_relieves_the_receivers() {
        let times = Times { take: 20.0, counter: 10.0, port: 100.0, ..TIMES };
        let (port, nodes) = (each(64, 8, Place::Port, times), each(64, 8, Place::Nodes, times));
        assert!(port >= 299.0 && nodes < port / 2.0, "{port} {nodes}");
    }
}
