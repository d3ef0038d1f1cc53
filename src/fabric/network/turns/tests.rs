//! What is known of a peer's silence, and of places: which states it belongs to, and what it ends.

use super::*;
use crate::base::key::Key;
use crate::base::simulation::Lot;
use crate::fabric::network::control::{Fabric, Terms, Who};
use crate::fabric::network::simulated::{Ether, Weather, idle_hooks};
use crate::fabric::network::stamps::Stamps;
use crate::fabric::network::{Card, Choice};
use crate::fabric::shm::region::Region;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

/// Two processes, which do nothing by themselves.
fn two() -> [Fabric; 2] {
    let ether = ether(2);
    [0, 1].map(|me| process(&ether, me, 2, 2))
}

fn ether(ranks: u32) -> Arc<Ether> {
    Ether::new(ranks as usize, Weather { ways: false, ..Weather::of(&mut Lot::new(1)) })
}

/// One of so many, where there are so many connections.
fn process(ether: &Arc<Ether>, me: u32, ranks: u32, pairs: usize) -> Fabric {
    let region = Arc::new(Region::create(me, ranks).expect("a region"));
    let hooks = idle_hooks(&region);
    let terms = Terms {
        keep: None,
        strict: false,
        places: [pairs, ranks as usize, 0],
        ways: Choice::Random { seed: 1, every_ns: SECOND },
        stall: Duration::ZERO,
        patience: Duration::from_secs(10),
        comes_before: Box::new(move |peer| me < peer),
    };
    let fabric = Fabric::start(Who::of(region), ether.device(me), terms).expect("a fabric");
    fabric.know(&Key::of(b"a world's"), hooks);
    fabric
}

/// What one has with the other, whose card it knows.
fn links([first, second]: &[Fabric; 2]) -> [Arc<Link>; 2] {
    let links = [first.shared.link(1), second.shared.link(0)];
    let cards: [Card; 2] = [second.card(), first.card()];
    links.iter().zip(cards).for_each(|(link, card)| _ = link.card.set(card));
    links
}

/// A packet of the peer about the connection of a turn.
fn said(of: &Fabric, link: &Link, say: Say, turn: u32, change: impl FnOnce(Hello) -> Hello) {
    let hello = Hello { turn, from: link.peer, to: link.me, ..of.shared.hello_to(Kind::Say(say), link) };
    of.shared.said(link, say, &change(hello));
}

/// It wants the connection, and does its part.
fn wants(of: &Fabric, link: &Link) -> State {
    of.shared.want(link, &mut link.lock());
    of.shared.advance(link);
    link.lock().hand.state()
}

#[test]
fn who_has_no_place_is_not_silent() {
    let fabrics = two();
    let [link, _] = links(&fabrics);
    link.has_no_place("finds no place".into());
    assert_eq!((link.failure(), link.silence(), link.is_unheard()), (Some("finds no place"), None, false));
    link.give_up();
    assert!(!link.has_ended(), "it answers");
    link.is_heard();
    assert!(link.lateness().is_some(), "that there is no place is no less true for that");
    link.has_a_place();
    assert_eq!(link.lateness(), None);
    link.is_late("says nothing".into());
    link.has_a_place();
    assert!(link.silence().is_some() && link.is_unheard());
    link.give_up();
    assert!(link.has_ended());
}

#[test]
fn busy_is_believed_where_it_is_waited_for() {
    let fabrics = two();
    let [first, second] = links(&fabrics);
    let busy = |of: usize, link: &Link, turn| {
        said(&fabrics[of], link, Say::Busy, turn, |hello| Hello { kept: true, ..hello });
        link.lateness().is_some()
    };
    assert!(!busy(0, &first, 0) && !busy(0, &first, 1), "nobody has asked");
    assert_eq!(wants(&fabrics[0], &first), State::Offered);
    assert!(!busy(0, &first, 0) && !busy(0, &first, 2), "of another turn");
    assert!(busy(0, &first, 1));
    assert!(!first.lock().times.is_placeless, "this side has a place, and does not say that it has none");

    assert_eq!(wants(&fabrics[1], &second), State::Asking);
    assert!(!busy(1, &second, 0));
    assert!(busy(1, &second, 1));
    let end = first.end(&first.lock());
    said(&fabrics[1], &second, Say::Connect, 1, |hello| Hello { end, ..hello });
    assert_eq!((second.lock().hand.state(), second.lateness()), (State::Accepted, None));
    assert!(!busy(1, &second, 1), "it waits for no place of the peer's");
}

#[test]
fn what_is_remembered_of_an_earlier_state_ends_no_connection() {
    let fabrics = two();
    let [link, _] = links(&fabrics);
    let shared = &fabrics[0].shared;
    assert_eq!(wants(&fabrics[0], &link), State::Offered);
    let is_asked_for_its_place = || {
        let [pairs, ..] = shared.rooms().expect("tables");
        link.lock().times.room = 0;
        std::thread::sleep(Duration::from_millis(60));
        assert!(pairs.least_useful(false, 0, |_| true).is_some());
        shared.make_room_for_others(Which::Pairs);
        link.has_ended()
    };
    link.is_late("did not answer, in another state".into());
    assert!(!is_asked_for_its_place(), "it may answer now");
    // As if somebody had looked all the while.
    let (mut now, patience_ns) = (now_ns(), shared.patience_ns);
    while !link.lock().times.silence.is_late(patience_ns, now) {
        now += SECOND / 4;
        let mut posted = link.lock();
        posted.times.silence.look(now, patience_ns);
        posted.times.silence.asks(now, patience_ns, true);
    }
    assert!(!is_asked_for_its_place(), "it may have gone on just now");
    std::thread::sleep(Duration::from_millis(500));
    assert!(is_asked_for_its_place(), "others need the place");
}

/// Also where the peer has packed this rank, and says *later*.
#[test]
fn any_packet_is_a_word() {
    let fabrics = two();
    let [link, other] = links(&fabrics);
    let stamps = Stamps::new(&Key::of(b"a world's"), 1, 2, 0);
    let kinds = [Kind::Later, Kind::Kept, Kind::Say(Say::Retired), Kind::Say(Say::Busy)];
    for kind in kinds {
        assert_ne!(wants(&fabrics[0], &link), State::Down);
        link.is_late("did not answer".into());
        let words = link.words();
        let hello = Hello { turn: 0, lives: [1, 0], ..fabrics[1].shared.hello_to(kind, &other) };
        let bytes = stamps.put(&hello);
        fabrics[0].shared.packet(&bytes);
        assert!(link.words() > words && link.failure().is_none() && !link.is_unheard(), "{kind:?}");
    }
}

/// Whoever has waited longest is the next, in whatever order they are looked at; but nobody waits for a peer that does not answer.
#[test]
fn places_are_had_in_the_order_of_the_line() {
    const PEERS: u32 = 60;
    let (ether, mut lot) = (ether(PEERS + 1), Lot::new(7));
    let fabric = process(&ether, 0, PEERS + 1, 4);
    let mut line: Vec<Arc<Link>> = (1..=PEERS).map(|peer| fabric.shared.link(peer)).collect();
    (1..line.len()).rev().for_each(|n| line.swap(n, lot.below(n as u64 + 1) as usize));
    let states: Vec<State> = line.iter().map(|link| wants(&fabric, link)).collect();
    assert!(states[..4].iter().all(|s| *s == State::Offered) && states[4..].iter().all(|s| *s == State::Reserving));
    let mut have: Vec<Arc<Link>> = line.drain(..4).collect();
    let silent = line[20].clone();
    silent.is_late("did not answer".into());
    for round in 0..200 {
        // It declines, and is wanted again.
        let gone = have.remove(lot.below(4) as usize);
        let turn = gone.lock().hand.turn();
        said(&fabric, &gone, Say::Retired, turn, |hello| hello);
        assert_eq!(gone.lock().hand.state(), State::Reserving);
        line.push(gone);
        let next = line.remove(usize::from(Arc::ptr_eq(&line[0], &silent) && silent.is_unheard()));
        let mut looked: Vec<Arc<Link>> = fabric.shared.links();
        (1..looked.len()).rev().for_each(|n| looked.swap(n, lot.below(n as u64 + 1) as usize));
        // The silent one leaves the line when it is the first, perhaps behind the look of the next.
        looked.iter().chain(&looked).for_each(|link| _ = fabric.shared.advance(link));
        assert_eq!(next.lock().hand.state(), State::Offered, "round {round}");
        have.push(next);
        if round == 100 {
            // It is the last when it answers.
            silent.is_heard();
            line.retain(|link| !Arc::ptr_eq(link, &silent));
            fabric.shared.advance(&silent);
            line.push(silent.clone());
        }
    }
    assert!(have.iter().chain(&line).all(|link| !link.has_ended()));
}
