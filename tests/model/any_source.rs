//! Messages of any source: a ring of two slots.

use crate::stage::{Buffer, model};
use fmpl::base::atomics::{AtomicU64, Ordering, spin_loop};
use fmpl::p2p::COMM_WORLD;
use fmpl::p2p::any_source::ring::{Claimed, Ring, ring_at};
use fmpl::p2p::any_source::stake::is_orphan;
use fmpl::p2p::any_source::{self, model::SLOTS};
use fmpl::p2p::endpoint::WORLD_EPOCH;
use fmpl::p2p::model::{Terms, World};

fn send(buffer: Buffer, n: u8) {
    buffer.fill(n);
    let len = buffer.parts().1;
    any_source::send_any(COMM_WORLD, buffer.run(len), 1, 0).expect("sent");
    // It is the sender's again.
    buffer.fill(99);
}

fn recv(buffer: Buffer) -> usize {
    let len = buffer.parts().1;
    let got = any_source::recv_any(COMM_WORLD, buffer.run(len), 0).expect("received");
    assert_eq!(got.source, 0);
    got.len
}

/// One sender, three messages: the third goes into the slot of the first.
fn one_sender(name: &str, terms: Terms, len: usize) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || (1..=3).for_each(|n| send(Buffer::new(w, 0, 0, len), n)));
        let b = w.spawn(1, move || {
            for n in 1..=3 {
                let buffer = Buffer::new(w, 1, 0, len);
                assert_eq!(recv(buffer), len);
                buffer.holds(n, len);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

fn waits() -> Terms {
    // Buffered mode would tell the sender that there is no room.
    Terms { timeout_ms: 10_000, ..Terms::default() }
}

#[test]
fn any_source_in_the_line() {
    one_sender("any_source_in_the_line", waits(), 24);
}

#[test]
fn any_source_in_the_area() {
    one_sender("any_source_in_the_area", waits(), 56);
}

#[test]
fn any_source_asleep() {
    one_sender("any_source_asleep", Terms { sleeps: true, ..waits() }, 8);
}

#[test]
fn any_source_synchronous_asleep() {
    one_sender("any_source_synchronous_asleep", Terms { sleeps: true, timeout_ms: -1, ..Terms::default() }, 8);
}

/// Two threads send at once: each gets a slot of its own, and their own messages stay in order.
fn two_senders(name: &str, terms: Terms, len: usize) {
    model(name, terms, move |w| {
        let senders = [0u8, 1].map(|t| {
            let body = move || (1..=2 - t).for_each(|n| send(Buffer::new(w, 0, t as usize * 512, len), 10 * t + n));
            w.spawn(0, body)
        });
        let b = w.spawn(1, move || {
            let mut next = [1u8, 11];
            for _ in 0..3 {
                let buffer = Buffer::new(w, 1, 0, len);
                assert_eq!(recv(buffer), len);
                let of = buffer.number() as usize / 10;
                buffer.holds(next[of], len);
                next[of] += 1;
            }
        });
        senders.into_iter().for_each(|s| s.join().expect("rank 0"));
        b.join().expect("rank 1");
    });
}

#[test]
fn any_source_two_threads() {
    two_senders("any_source_two_threads", waits(), 24);
}

/// A long message: the sender's patience ends while the receiver takes the offer.
fn one_long(name: &str, terms: Terms) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || send(Buffer::new(w, 0, 0, 1032), 1));
        let b = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 1032);
            assert_eq!(recv(buffer), 1032);
            buffer.holds(1, 1032);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn any_source_offer_taken_or_moved() {
    one_long("any_source_offer_taken_or_moved", Terms { timeout_ms: 2, pages: 4, ..Terms::default() });
}

#[test]
fn any_source_offer_refused() {
    one_long("any_source_offer_refused", Terms { timeout_ms: -1, pages: 4, refuses: true, ..Terms::default() });
}

/// The kernel refuses to copy, and the spool has no room for the message: it goes in three pieces through a block that holds two.
#[test]
fn any_source_in_pieces() {
    let terms = Terms { timeout_ms: -1, pages: 2, refuses: true, ..Terms::default() };
    one_long("any_source_in_pieces", terms);
}

/// Two threads receive on one index, once each: one is told that it is busy, or each gets a message of its own.
#[test]
fn any_source_receivers_in_turn() {
    model("any_source_receivers_in_turn", waits(), |w| {
        let a = w.spawn(0, move || (1..=2).for_each(|n| send(Buffer::new(w, 0, 0, 24), n)));
        let receivers = [0usize, 1].map(|k| {
            w.spawn(1, move || {
                let buffer = Buffer::new(w, 1, k * 512, 24);
                let len = buffer.parts().1;
                if let Err(e) = any_source::recv_any(COMM_WORLD, buffer.run(len), 0) {
                    assert_eq!(e.code(), fmpl::Code::Busy);
                    return 0;
                }
                let n = buffer.number();
                buffer.holds(n, 24);
                n
            })
        });
        a.join().expect("rank 0");
        let got = receivers.map(|r| r.join().expect("rank 1"));
        assert!(matches!(got, [0 | 2, 1] | [1, 0 | 2]), "{got:?}");
    });
}

fn ring(w: World) -> Ring {
    Ring::new(w.ring(1), SLOTS, WORLD_EPOCH)
}

/// A sender dies between its ticket and its slot; another, of the receiver's own process, sends beside it. Exactly the dead one's slot
/// is passed over, whichever it was.
#[test]
fn any_source_orphan() {
    model("any_source_orphan", Terms { preemptions: 3, ..Terms::default() }, |w| {
        let at = ring_at(None, 0);
        // SAFETY: a word of memory that the checker watches, as long as the world lives; used as an atomic only.
        let dead = move || unsafe { &*w.memory(0, 2048).cast::<AtomicU64>() };
        let dies = w.spawn(0, move || {
            w.endpoint(0).any_source.stakes.abandon(1, at, |held| {
                let claimed = ring(w).claim(&AtomicU64::new(0), |t| held.on(t));
                assert!(matches!(claimed, Claimed::Ticket(_)));
            });
            dead().store(1, Ordering::Release);
        });
        let lives = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 8).fill(5);
            w.endpoint(1).any_source.stakes.with(1, at, |held| {
                let ring = ring(w);
                let Claimed::Ticket(ticket) = ring.claim(&AtomicU64::new(0), |t| held.on(t)) else {
                    panic!("there is room");
                };
                ring.publish(ticket, 1, buffer.run(8));
            });
        });
        let receives = w.spawn(1, move || {
            let (ring, buffer) = (ring(w), Buffer::new(w, 1, 512, 8));
            let (mut got, mut passed) = (0, 0);
            for ticket in 0..2 {
                loop {
                    if let Some(came) = ring.arrival(ticket) {
                        ring.deliver(ticket, came.kind, buffer.run(8));
                        buffer.holds(5, 8);
                        got += 1;
                        break;
                    }
                    let has = |rank: usize| w.endpoint(rank).any_source.stakes.has(1, at, ticket);
                    if dead().load(Ordering::Acquire) == 1 && is_orphan(&ring, ticket, || has(0), || has(1)) {
                        passed += 1;
                        break;
                    }
                    spin_loop();
                }
                ring.free(ticket + 1);
            }
            assert_eq!((got, passed), (1, 1));
        });
        dies.join().expect("the dead");
        lives.join().expect("the living");
        receives.join().expect("the receiver");
    });
}
