//! Both sides of a channel, and a network between them that does as a seed says.

use std::collections::BTreeSet;

use super::*;
use crate::base::simulation::Lot;

/// What goes from one side to the other: a frame, and an acknowledgement.
#[derive(Clone, Debug)]
struct Datagram {
    frame: Option<u64>,
    ack: (u64, u64, u32),
}

struct Side {
    out: Outgoing,
    inn: Incoming,
    end: u64,
    /// Frames kept early, as a real one keeps their bytes; and room for them.
    kept: BTreeSet<u64>,
    room: usize,
    granted: u32,
    /// Datagrams for which the other side has room, if it has a ring.
    slots: u32,
    arrived: Vec<u64>,
    owes: bool,
}

/// Bytes of a frame, so that it varies.
fn cost(seq: u64) -> u32 {
    if seq.is_multiple_of(5) { 16 << 10 } else { 64 + seq as u32 % 100 }
}

struct World {
    sides: [Side; 2],
    /// When it arrives, where.
    flying: Vec<(u64, usize, Datagram)>,
    lot: Lot,
    now: u64,
    loses: u64,
    doubles: u64,
    delays: u64,
    /// A datagram takes longer than another by so many nanoseconds at most, and has not left once in so many times.
    varies: u64,
    stays: u64,
    sent: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut lot = Lot::new(seed);
        let side = |lot: &mut Lot| Side {
            out: Outgoing::new(),
            inn: Incoming::default(),
            end: lot.one_of(&[0, 1, 10, 100, 300]),
            kept: BTreeSet::new(),
            room: lot.one_of(&[0, 1, 8, 64]),
            granted: lot.one_of(&[1, 4 << 10, 64 << 10, 1 << 20]),
            slots: 0,
            arrived: Vec::new(),
            owes: false,
        };
        let mut sides = [side(&mut lot), side(&mut lot)];
        for side in &mut sides {
            side.slots = lot.one_of(&[0, 0, 1, 3, 16]);
            side.out.has_slots(side.slots);
        }
        let [loses, doubles, delays] = [&[0, 2, 10, 50][..], &[0, 5, 50], &[0, 3, 20]].map(|odds| lot.one_of(odds));
        World { sides, flying: Vec::new(), lot, now: 1, loses, doubles, delays, varies: 5_000, stays: 97, sent: 0 }
    }

    fn fly(&mut self, from: usize, frame: Option<u64>) {
        let side = &mut self.sides[from];
        side.owes = false;
        let ack = (side.inn.applied(), side.inn.kept(), side.granted);
        self.sent += 1;
        for _ in 0..1 + u64::from(self.lot.once_in(self.doubles)) {
            if self.lot.once_in(self.loses) {
                continue;
            }
            let late = if self.lot.once_in(self.delays) { self.lot.below(40_000_000) } else { 0 };
            let at = self.now + 10_000 + self.lot.below(self.varies) + late;
            self.flying.push((at, 1 - from, Datagram { frame, ack }));
        }
    }

    fn send(&mut self, from: usize) {
        loop {
            let (now, side) = (self.now, &mut self.sides[from]);
            side.out.expire(now);
            let Some(seq) = side.out.send(side.end, cost, |_| false, now) else { break };
            assert!(seq <= side.end && seq > side.out.acked() && seq <= side.out.acked() + WINDOW);
            // Each is a datagram by itself here.
            let out = &side.out;
            let under_way = bits(out.next() - 1 - out.acked()) & !(out.kept | out.lost);
            assert!(side.slots == 0 || under_way.count_ones() <= side.slots, "{under_way:b} by {} slots", side.slots);
            if self.lot.once_in(self.stays) {
                self.sides[from].out.has_not_left(seq, cost(seq));
                break;
            }
            self.fly(from, Some(seq));
        }
        if self.sides[from].owes {
            self.fly(from, None);
        }
    }

    fn receive(&mut self, at: usize, datagram: Datagram) {
        let side = &mut self.sides[at];
        side.out.hear(datagram.ack, cost, self.now).expect("nobody lies");
        let Some(seq) = datagram.frame else { return };
        side.owes = true;
        match side.inn.what_is(seq) {
            Comes::Again => {}
            Comes::Beyond => panic!("{seq} is too far ahead"),
            Comes::Early if side.kept.len() < side.room => {
                side.inn.keep(seq);
                assert!(side.kept.insert(seq));
            }
            Comes::Early => {}
            Comes::Next => {
                side.arrived.push(seq);
                side.inn.apply();
                while side.inn.has_next() {
                    let next = side.inn.applied() + 1;
                    assert!(side.kept.remove(&next));
                    side.arrived.push(next);
                    side.inn.apply();
                }
            }
        }
    }

    /// Until all has arrived, and both know; how many datagrams that took.
    fn run(mut self) -> u64 {
        let mut turns = 0;
        while self.sides.iter().any(|s| s.out.acked() < s.end) {
            turns += 1;
            assert!(turns < 200_000, "it comes to no end: {:?}", self.sides.map(|s| (s.end, s.out)));
            (0..2).for_each(|from| self.send(from));
            let next = self.flying.iter().map(|f| f.0).chain(self.sides.iter().map(|s| s.out.due_ns())).min();
            self.now = self.now.max(next.filter(|n| *n != NEVER).expect("something is still to happen"));
            let now = self.now;
            while let Some(k) = self.flying.iter().position(|f| f.0 <= now) {
                let (_, at, datagram) = self.flying.remove(k);
                self.receive(at, datagram);
            }
        }
        for side in 0..2 {
            let whole: Vec<u64> = (1..=self.sides[side].end).collect();
            assert_eq!(self.sides[1 - side].arrived, whole);
            assert!(!self.sides[side].out.is_under_way() && self.sides[side].out.due_ns() == NEVER);
        }
        self.sent
    }
}

#[test]
fn all_arrive_once_and_in_order() {
    let seeds = std::env::var("FMPL_SEEDS").ok().and_then(|s| s.parse().ok());
    let all = if std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1") { 200_000 } else { 10_000 };
    for seed in seeds.map_or(0..all, |seed: u64| seed..seed + 1) {
        let went = std::panic::catch_unwind(|| World::new(seed).run());
        assert!(went.is_ok(), "with FMPL_SEEDS={seed}");
    }
}

/// Where nothing is lost nothing is sent twice, and acknowledgements go along with what goes anyway.
#[test]
fn a_good_network_carries_each_frame_once() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        (world.loses, world.doubles, world.delays, world.varies, world.stays) = (0, 0, 0, 1, 0);
        let frames: u64 = world.sides.iter().map(|s| s.end).sum();
        let sent = world.run();
        // At worst each is acknowledged by a datagram of its own.
        assert!(sent <= 2 * frames, "{sent} datagrams for {frames} frames");
    }
}

#[test]
fn the_silent_are_asked_more_and_more_rarely() {
    let mut out = Outgoing::new();
    assert_eq!(out.send(1, cost, |_| false, 0), Some(1));
    let mut last = 0;
    let mut pauses = Vec::new();
    for _ in 0..12 {
        let due = out.due_ns();
        pauses.push(due - last);
        last = due;
        assert!(!out.expire(due - 1) && out.expire(due));
        assert_eq!(out.send(1, cost, |_| false, due), Some(1));
        assert_eq!(out.send(1, cost, |_| false, due), None);
    }
    assert!(pauses.windows(2).all(|w| w[1] == (2 * w[0]).min(MOST_NS)), "{pauses:?}");
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut out = Outgoing::new();
    out.send(2, cost, |_| false, 0);
    out.send(2, cost, |_| false, 0);
    assert_eq!(out.hear((3, 0, 1), cost, 1), Err(Impossible));
    assert_eq!(out.hear((1, u64::MAX, 1), cost, 1), Ok(()));
    assert_eq!(out.hear((0, 0, 1), cost, 1), Ok(()), "an old one");
    assert_eq!(out.acked(), 1);
    assert_eq!(out.hear((2, 0, 1), cost, 1), Ok(()));
    assert!(!out.is_under_way());
}

#[test]
fn places_are_told_apart() {
    let mut inn = Incoming::default();
    assert_eq!([0, 1, 2, 64, 65, u64::MAX].map(|seq| inn.what_is(seq)), {
        use Comes::*;
        [Again, Next, Early, Early, Beyond, Beyond]
    });
    inn.keep(3);
    inn.apply();
    assert_eq!(inn.what_is(3), Comes::Again);
    assert!(!inn.has_next());
    inn.apply();
    assert!(inn.has_next());
}
