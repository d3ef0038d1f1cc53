//! What one thread of a rank leaves to another: the annex and its turn, what the peer is known to have received, blocks of the spool,
//! rings, transfer blocks.

use crate::stage::{Buffer, arrived, irecv, isend, isend_wait, model, pause, recv, send};
use fmpl::Code;
use fmpl::p2p::model::{Terms, World};
use fmpl::p2p::{self, COMM_WORLD};

const ANNEX: usize = 96;

/// Rank 0 sends what `sends` says. A thread of rank 1 receives it, takes the annex in turn by that, and does more, as `receives` says;
/// another thread of rank 1 sends with that annex.
fn turn_left_by(
    name: &str,
    terms: Terms,
    sends: impl Fn(World) + Copy + 'static + Send + Sync,
    receives: impl Fn(World) + Copy + 'static + Send + Sync,
) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || {
            sends(w);
            recv(1, 0, Buffer::new(w, 0, 1024, ANNEX), 11, ANNEX);
        });
        let b = w.spawn(1, move || receives(w));
        let c = w.spawn(1, move || {
            (0..3).for_each(|_| pause());
            send(0, 0, Buffer::new(w, 1, 1024, ANNEX), 11).expect("sent");
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1, receiving");
        c.join().expect("rank 1, sending");
    });
}

fn one(w: World) {
    send(1, 0, Buffer::new(w, 0, 0, ANNEX), 1).expect("sent");
}

fn two(w: World) {
    one(w);
    send(1, 0, Buffer::new(w, 0, 512, 8), 2).expect("sent");
}

#[test]
fn turn_left_by_a_receive_from_the_chain() {
    turn_left_by("turn_left_by_a_receive_from_the_chain", Terms::default(), two, |w| {
        recv(0, 0, Buffer::new(w, 1, 0, ANNEX), 1, ANNEX);
        recv(0, 0, Buffer::new(w, 1, 512, 8), 2, 8);
    });
}

/// With an event descriptor a request looks before it posts, and tells when the message is there.
#[test]
fn turn_left_by_a_request_that_found_its_message() {
    let terms = Terms { event: true, ..Terms::default() };
    turn_left_by("turn_left_by_a_request_that_found_its_message", terms, one, |w| {
        pause();
        let buffer = Buffer::new(w, 1, 0, ANNEX);
        irecv(0, 0, buffer);
        arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, buffer, 1, ANNEX);
    });
}

#[test]
fn turn_left_by_a_request_that_waits() {
    turn_left_by("turn_left_by_a_request_that_waits", Terms::default(), one, |w| {
        let buffer = Buffer::new(w, 1, 0, ANNEX);
        irecv(0, 0, buffer);
        arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, buffer, 1, ANNEX);
    });
}

#[test]
fn turn_left_by_a_request_that_is_begun() {
    model("turn_left_by_a_request_that_is_begun", Terms::default(), |w| {
        let a = w.spawn(0, move || {
            one(w);
            recv(1, 0, Buffer::new(w, 0, 1024, ANNEX), 11, ANNEX);
            send(1, 0, Buffer::new(w, 0, 512, 8), 2).expect("sent");
        });
        let b = w.spawn(1, move || {
            let next = Buffer::new(w, 1, 512, 8);
            recv(0, 0, Buffer::new(w, 1, 0, ANNEX), 1, ANNEX);
            irecv(0, 0, next);
            arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, next, 2, 8);
        });
        let c = w.spawn(1, move || {
            (0..3).for_each(|_| pause());
            send(0, 0, Buffer::new(w, 1, 1024, ANNEX), 11).expect("sent");
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1, receiving");
        c.join().expect("rank 1, sending");
    });
}

/// The ranks speak in turn, so the last message is owed its acknowledgement: another thread's landing may say it, or a probe gives it.
fn turn_left_by_one_who_owes(name: &str, probes: bool) {
    model(name, Terms::default(), move |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, ANNEX), n).expect("sent");
                recv(1, 0, Buffer::new(w, 0, 1024, ANNEX), 10 + n, ANNEX);
            }
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, ANNEX), 1, ANNEX);
            send(0, 0, Buffer::new(w, 1, 1024, ANNEX), 11).expect("sent");
            let c = w.spawn(1, move || {
                (0..2).for_each(|_| pause());
                send(0, 0, Buffer::new(w, 1, 1024, ANNEX), 12).expect("sent");
            });
            recv(0, 0, Buffer::new(w, 1, 0, ANNEX), 2, ANNEX);
            if probes {
                assert_eq!(p2p::probe(COMM_WORLD, 0, 0).expect("a look"), None);
            }
            c
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1, receiving").join().expect("rank 1, sending");
    });
}

#[test]
fn turn_left_by_one_who_owes_and_answers() {
    turn_left_by_one_who_owes("turn_left_by_one_who_owes_and_answers", false);
}

#[test]
fn turn_left_by_one_who_owes_and_probes() {
    turn_left_by_one_who_owes("turn_left_by_one_who_owes_and_probes", true);
}

/// The higher rank sends, always by its direction's own annex. A landing of another thread of its peer, or the acknowledgement that
/// it finds then, says that the annex is free.
#[test]
fn acknowledged_by_a_landing_of_another_thread() {
    model("acknowledged_by_a_landing_of_another_thread", Terms::default(), |w| {
        let a = w.spawn(1, move || {
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 1).expect("sent");
            recv(0, 0, Buffer::new(w, 1, 1024, 8), 11, 8);
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 2).expect("sent");
        });
        let b = w.spawn(0, move || {
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 1, ANNEX);
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 2, ANNEX);
        });
        let c = w.spawn(0, move || {
            pause();
            send(1, 0, Buffer::new(w, 0, 1024, 8), 11).expect("sent");
        });
        a.join().expect("rank 1");
        b.join().expect("rank 0, receiving");
        c.join().expect("rank 0, sending");
    });
}

/// One thread receives the answer that says that the annex is free, the other writes there again.
#[test]
fn acknowledged_to_another_thread() {
    model("acknowledged_to_another_thread", Terms::default(), |w| {
        let a = w.spawn(1, move || {
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 1).expect("sent");
            (0..2).for_each(|_| pause());
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 2).expect("sent");
        });
        let c = w.spawn(1, move || recv(0, 0, Buffer::new(w, 1, 1024, 8), 11, 8));
        let b = w.spawn(0, move || {
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 1, ANNEX);
            send(1, 0, Buffer::new(w, 0, 1024, 8), 11).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 2, ANNEX);
        });
        a.join().expect("rank 1, sending");
        c.join().expect("rank 1, receiving");
        b.join().expect("rank 0");
    });
}

/// One thread sends by the annex, by the chain, and by the annex again when the other has received an answer: what it knows of its
/// receiver then is in the chain's block.
fn annex_after_a_chain(name: &str, chained: u8) {
    model(name, Terms { preemptions: 1, ..Terms::default() }, move |w| {
        let a = w.spawn(1, move || {
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 1).expect("sent");
            for n in 0..chained {
                send(0, 0, Buffer::new(w, 1, 0, 8), 2 + n).expect("sent");
            }
            (0..3).for_each(|_| pause());
            send(0, 0, Buffer::new(w, 1, 0, ANNEX), 2 + chained).expect("sent");
        });
        let c = w.spawn(1, move || recv(0, 0, Buffer::new(w, 1, 1024, 8), 11, 8));
        let b = w.spawn(0, move || {
            pause();
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 1, ANNEX);
            for n in 0..chained {
                recv(1, 0, Buffer::new(w, 0, 512, 8), 2 + n, 8);
            }
            send(1, 0, Buffer::new(w, 0, 1024, 8), 11).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 0, ANNEX), 2 + chained, ANNEX);
        });
        a.join().expect("rank 1, sending");
        c.join().expect("rank 1, receiving");
        b.join().expect("rank 0");
    });
}

#[test]
fn the_chain_says_that_the_annex_is_free() {
    annex_after_a_chain("the_chain_says_that_the_annex_is_free", 1);
}

#[test]
fn the_chain_goes_on_and_says_that_the_annex_is_free() {
    annex_after_a_chain("the_chain_goes_on_and_says_that_the_annex_is_free", 2);
}

/// An index whose request another thread completes belongs to the receive of any index from then on.
#[test]
fn an_index_that_another_thread_leaves() {
    model("an_index_that_another_thread_leaves", Terms::default(), |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 8), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            let (indexed, any) = (Buffer::new(w, 1, 0, 8), Buffer::new(w, 1, 512, 8));
            irecv(0, 0, indexed);
            let c = w.spawn(1, move || {
                p2p::recv(COMM_WORLD, any.layout(), 0, p2p::TAG_ANY).expect("received");
                any.holds(2, 8);
            });
            p2p::irecv_wait(COMM_WORLD, 0, 0).expect("received");
            indexed.holds(1, 8);
            c
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1").join().expect("rank 1, any index");
    });
}

/// A thread that wants room finds blocks, or pages, whose receiver is done with them; another takes one of those.
fn room_made_by_another_thread(name: &str, len: usize, terms: Terms) {
    model(name, Terms { eager: 16, timeout_ms: 1, ..terms }, move |w| {
        let message = move |index: i32| Buffer::new(w, 0, if index < 2 { 0 } else { index as usize * 1024 }, len);
        let a = w.spawn(0, move || {
            for index in 0..=2 {
                send(1, index, message(index), 1).expect("sent");
                pause();
            }
        });
        let c = w.spawn(0, move || {
            (0..4).for_each(|_| pause());
            send(1, 3, message(3), 1).expect("sent");
        });
        let b = w.spawn(1, move || {
            pause();
            for index in 0..=3 {
                recv(0, index, Buffer::new(w, 1, 0, len), 1, len);
            }
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

#[test]
fn block_that_another_thread_gave_back() {
    let terms = Terms { pages: 1, spool: 2 * 208, ..Terms::default() };
    room_made_by_another_thread("block_that_another_thread_gave_back", 200, terms);
}

#[test]
fn pages_that_another_thread_gave_back() {
    let terms = Terms { pages: 4, spool: 2 * 908, preemptions: 1, ..Terms::default() };
    room_made_by_another_thread("pages_that_another_thread_gave_back", 900, terms);
}

/// The page of small blocks, done with, becomes one of larger blocks for one thread while another looks for a small block there.
#[test]
fn a_page_that_changes_its_size() {
    model("a_page_that_changes_its_size", Terms { eager: 16, pages: 1, ..Terms::default() }, |w| {
        let sends = move |index: i32, len: usize| {
            while let Err(e) = send(1, index, Buffer::new(w, 0, index as usize * 512, len), 1) {
                assert_eq!(e.code(), Code::SpoolFull);
                pause();
            }
        };
        let a = w.spawn(0, move || {
            sends(0, 40);
            sends(1, 300);
        });
        let c = w.spawn(0, move || {
            (0..2).for_each(|_| pause());
            sends(2, 40);
        });
        let b = w.spawn(1, move || {
            for (index, len) in [(0, 40), (1, 300), (2, 40)] {
                (0..3).for_each(|_| pause());
                recv(0, index, Buffer::new(w, 1, 0, len), 1, len);
            }
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

/// Two threads send to two, the second through the ring that the first has used.
#[test]
fn ring_of_another_pair() {
    let terms = Terms { ring_max: 4096, ring: (256, 1), timeout_ms: -1, eager: 16, preemptions: 1, ..Terms::default() };
    model("ring_of_another_pair", terms, |w| {
        let sides = [0, 1].map(|index| [w.spawn(0, move || sends(w, index)), w.spawn(1, move || receives(w, index))]);
        sides.into_iter().flatten().for_each(|s| s.join().expect("both"));
    });
}

/// A thread sends through the area in which another one of its rank has just received.
#[test]
fn turns_of_two_threads() {
    let terms = Terms { turn_max: 4096, timeout_ms: -1, eager: 16, preemptions: 1, ..Terms::default() };
    model("turns_of_two_threads", terms, |w| {
        let (a, b) = (w.spawn(0, move || sends(w, 0)), w.spawn(1, move || receives(w, 0)));
        let c = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 1024, 40);
            send(0, 1, buffer, 2).expect("sent");
            buffer.fill(99);
        });
        let d = w.spawn(0, move || {
            let buffer = Buffer::new(w, 0, 1024, 40);
            recv(1, 1, buffer, 2, 40);
            buffer.fill(98);
        });
        [a, b, c, d].into_iter().for_each(|s| s.join().expect("all"));
    });
}

fn sends(w: World, index: i32) {
    let buffer = Buffer::new(w, 0, index as usize * 1024, 40);
    send(1, index, buffer, 1).expect("sent");
    buffer.fill(99);
}

fn receives(w: World, index: i32) {
    let buffer = Buffer::new(w, 1, index as usize * 1024, 40);
    recv(0, index, buffer, 1, 40);
    buffer.fill(98);
}

/// A transfer block serves the next message, to another thread, when the receiver of the one before has not looked at it yet.
#[test]
fn transfer_used_again() {
    let terms = Terms { coop_min: 17, eager: 16, timeout_ms: -1, ..Terms::default() };
    model("transfer_used_again", terms, |w| {
        let a = w.spawn(0, move || (0..2).for_each(|index| sends(w, index)));
        let (b, c) = (w.spawn(1, move || receives(w, 0)), w.spawn(1, move || receives(w, 1)));
        a.join().expect("rank 0");
        b.join().expect("rank 1");
        c.join().expect("rank 1, its other thread");
    });
}

/// The block of a shared copy serves an offer, of a shorter message, when the receiver of the copy has not looked at it yet: that claims no
/// piece by what the block says of the offer.
#[test]
fn offer_after_a_shared_copy() {
    let terms = Terms { coop_min: 17, eager: 16, timeout_ms: -1, ..Terms::default() };
    model("offer_after_a_shared_copy", terms, |w| {
        let a = w.spawn(0, move || {
            let (long, short) = (Buffer::new(w, 0, 0, 160), Buffer::new(w, 0, 1024, 20));
            send(1, 0, long, 1).expect("sent");
            long.fill(99);
            isend(1, 1, short, 2);
            isend_wait(1, 1, short);
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 160), 1, 160);
            recv(0, 1, Buffer::new(w, 1, 1024, 20), 2, 20);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// An offer is moved, and its block serves the offer of another thread before the receiver has looked.
#[test]
fn offer_of_another_thread() {
    model("offer_of_another_thread", Terms { eager: 16, preemptions: 1, ..Terms::default() }, |w| {
        let sends = move |index: i32| {
            move || {
                let buffer = Buffer::new(w, 0, index as usize * 512, 136);
                isend(1, index, buffer, 1);
                isend_wait(1, index, buffer);
            }
        };
        let (a, c) = (w.spawn(0, sends(0)), w.spawn(0, sends(1)));
        let b = w.spawn(1, move || {
            for index in 0..2 {
                recv(0, index, Buffer::new(w, 1, 0, 40), 1, 136);
            }
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

/// A moved offer fills the spool. Another message has room when the receiver is done with it.
#[test]
fn room_of_a_moved_offer() {
    model("room_of_a_moved_offer", Terms { eager: 16, pages: 1, spool: 210, timeout_ms: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            let buffer = Buffer::new(w, 0, 0, 200);
            isend(1, 0, buffer, 1);
            isend_wait(1, 0, buffer);
            send(1, 1, Buffer::new(w, 0, 512, 200), 1).expect("sent");
        });
        let b = w.spawn(1, move || {
            (0..2).for_each(|_| pause());
            for index in 0..2 {
                recv(0, index, Buffer::new(w, 1, 0, 200), 1, 200);
                pause();
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}
