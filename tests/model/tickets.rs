//! The ring of any source, below its calls: room that one thread has seen and another uses, stakes of a process that dies before it
//! has tried for its ticket, and the tree of acknowledgements of a multicast.

use crate::stage::{Buffer, model, pause};
use fmpl::base::atomics::{AtomicU64, Ordering, spin_loop};
use fmpl::base::run::Run;
use fmpl::p2p::any_source::model::{MulticastBlock, SLOTS};
use fmpl::p2p::any_source::ring::{Claimed, Ring, ring_at};
use fmpl::p2p::any_source::stake::is_orphan;
use fmpl::p2p::endpoint::WORLD_EPOCH;
use fmpl::p2p::model::{Terms, World};

/// Bytes of message: they lie in the slot's area.
const LEN: usize = 56;

fn ring(w: World) -> Ring {
    Ring::new(w.ring(1), SLOTS, WORLD_EPOCH)
}

/// A word of rank 0's memory.
fn word(w: World) -> &'static AtomicU64 {
    // SAFETY: memory that lives as long as the world, and is used as an atomic only.
    unsafe { &*w.memory(0, 2048).cast::<AtomicU64>() }
}

/// Tries once for a ticket, and publishes a message under it.
fn put(w: World, room: &AtomicU64, buffer: Buffer) {
    let ring = ring(w);
    if let Claimed::Ticket(ticket) = ring.claim(room, |_| ()) {
        ring.publish(ticket, 0, buffer.run(LEN));
    }
}

/// Both slots are full; the receiver frees the first. One of two senders sees that, the other may take the ticket.
#[test]
fn room_of_another_thread() {
    model("room_of_another_thread", Terms { preemptions: 3, ..Terms::default() }, |w| {
        let first = w.spawn(0, move || (0..2).for_each(|k| put(w, word(w), Buffer::new(w, 0, k * 64, LEN).fill(1))));
        first.join().expect("who fills the ring");
        let receives = w.spawn(1, move || {
            let (ring, buffer) = (ring(w), Buffer::new(w, 1, 0, LEN));
            let came = ring.arrival(0).expect("the first message");
            ring.deliver(0, came.kind, buffer.run(LEN));
            ring.free(1);
        });
        let senders = [2, 3].map(|k| w.spawn(0, move || put(w, word(w), Buffer::new(w, 0, k * 64, LEN).fill(2))));
        senders.into_iter().for_each(|s| s.join().expect("rank 0"));
        receives.join().expect("rank 1");
    });
}

/// A process dies with a stake on a ticket that it has not got: a living thread has it, fills its slot, and does `after`. Nobody may
/// think that the slot is the dead one's.
fn dies_before_its_ticket(name: &str, after: impl Fn(World) + Copy + 'static + Send + Sync) {
    model(name, Terms { preemptions: 3, ..Terms::default() }, move |w| {
        let at = ring_at(None, 0);
        let dies = w.spawn(0, move || {
            w.endpoint(0).any_source.stakes.abandon(1, at, |held| held.on(0));
            word(w).store(1, Ordering::Release);
        });
        let lives = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 8).fill(5);
            w.endpoint(1).any_source.stakes.with(1, at, |held| {
                let ring = ring(w);
                assert_eq!(ring.claim(&AtomicU64::new(0), |t| held.on(t)), Claimed::Ticket(0));
                ring.publish(0, 1, buffer.run(8));
            });
            after(w);
        });
        let receives = w.spawn(1, move || {
            let ring = ring(w);
            let has = |rank: usize| w.endpoint(rank).any_source.stakes.has(1, at, 0);
            while ring.arrival(0).is_none() {
                let dead = word(w).load(Ordering::Acquire) == 1;
                assert!(!(dead && is_orphan(&ring, 0, || has(0), || has(1))), "somebody living has the ticket");
                spin_loop();
            }
        });
        dies.join().expect("the dead");
        lives.join().expect("the living");
        receives.join().expect("the receiver");
    });
}

#[test]
fn stake_wiped_out() {
    dies_before_its_ticket("stake_wiped_out", |_| ());
}

#[test]
fn stake_on_the_next_ticket() {
    dies_before_its_ticket("stake_on_the_next_ticket", |w| {
        let at = ring_at(None, 0);
        w.endpoint(1).any_source.stakes.with(1, at, |held| held.on(1));
    });
}

#[test]
fn stake_at_another_receiver() {
    dies_before_its_ticket("stake_at_another_receiver", |w| {
        let at = ring_at(None, 0);
        w.endpoint(1).any_source.stakes.with(0, at, |held| held.on(0));
    });
}

#[test]
fn stake_in_another_ring() {
    dies_before_its_ticket("stake_in_another_ring", |w| {
        let at = ring_at(None, 1);
        w.endpoint(1).any_source.stakes.with(1, at, |held| held.on(0));
    });
}

/// Three members copy the data of a multicast and acknowledge; whoever completes the tree gives the data to its master, who writes it.
#[test]
fn multicast_acknowledged() {
    model("multicast_acknowledged", Terms { preemptions: 3, ..Terms::default() }, |w| {
        // SAFETY: it lives as long as the world, and is longer.
        let block = unsafe { Run::new(w.memory(0, 0), 2048) };
        MulticastBlock::make(block, 3, 16);
        let data = Buffer::new(w, 0, 2048, 16);
        let members = [0u32, 1, 2].map(|n| {
            w.spawn(n as usize % 2, move || {
                data.is_read();
                if MulticastBlock::acknowledge(block, 3, n) {
                    data.fill(9);
                }
                pause();
            })
        });
        members.into_iter().for_each(|m| m.join().expect("a member"));
    });
}

/// Two members take a message of three chunks while its master copies it into the block; who is early enough makes room for the third in
/// the place of the first. Whoever completes the tree gives the block to its master, who writes it.
#[test]
fn multicast_in_chunks() {
    const LEN: usize = 40;
    model("multicast_in_chunks", Terms { preemptions: 3, ..Terms::default() }, |w| {
        // SAFETY: it lives as long as the world, and is longer.
        let block = unsafe { Run::new(w.memory(0, 0), 2048) };
        MulticastBlock::make(block, 2, LEN);
        let data = Buffer::new(w, 0, 2048, LEN).fill(7);
        let master = w.spawn(0, move || {
            let places = MulticastBlock::fill(block, 2, data.run(LEN));
            assert!((1..=3).contains(&places));
        });
        let members = [0u32, 1].map(|n| {
            w.spawn(1 - n as usize, move || {
                let mine = Buffer::new(w, 1, n as usize * 512, LEN);
                let mut at = 0;
                while at < LEN {
                    let got = MulticastBlock::take(block, 2, n, at, mine.run(LEN));
                    if got == at {
                        spin_loop();
                    }
                    at = got;
                }
                mine.holds(7, LEN);
                if MulticastBlock::acknowledge(block, 2, n) {
                    // The block's data, which is another use's from now on.
                    Buffer::new(w, 0, 256, 48).fill(9);
                }
            })
        });
        members.into_iter().for_each(|m| m.join().expect("a member"));
        master.join().expect("the master");
    });
}
