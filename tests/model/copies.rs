//! Copies that both sides have a part in: shared pieces, rings of chunks, offers to pull, moved and refused.

use crate::stage::{Buffer, irecv, isend, isend_wait, model, pause, recv, send};
use fmpl::p2p::model::Terms;
use fmpl::p2p::{self, COMM_WORLD};

fn one_after_another(name: &str, terms: Terms, len: usize) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                let buffer = Buffer::new(w, 0, 0, len);
                send(1, 0, buffer, n).expect("sent");
                buffer.fill(99);
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                let buffer = Buffer::new(w, 1, 0, len);
                recv(0, 0, buffer, n, len);
                buffer.fill(98);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn shared_pieces() {
    one_after_another("shared_pieces", Terms { eager: 16, coop_min: 17, timeout_ms: -1, ..Terms::default() }, 136);
}

/// The sender of a request goes on while the receiver copies its pieces, and the next request has another block.
#[test]
fn shared_pieces_of_requests() {
    let terms = Terms { eager: 16, coop_min: 17, ..Terms::default() };
    model("shared_pieces_of_requests", terms, |w| {
        let a = w.spawn(0, move || {
            let buffers = [0, 1].map(|k| Buffer::new(w, 0, k * 512, 136));
            (0..2).for_each(|k| isend(1, k, buffers[k as usize], k as u8 + 1));
            for k in 0..2 {
                isend_wait(1, k, buffers[k as usize]);
            }
        });
        let b = w.spawn(1, move || {
            let buffers = [0, 1].map(|k| Buffer::new(w, 1, k * 512, 136));
            (0..2).for_each(|k| irecv(0, k, buffers[k as usize]));
            for k in 0..2 {
                p2p::irecv_wait(COMM_WORLD, 0, k).expect("received");
                buffers[k as usize].holds(k as u8 + 1, 136);
                buffers[k as usize].fill(98);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn ring() {
    one_after_another("ring", Terms { eager: 16, ring_max: 4096, timeout_ms: -1, ..Terms::default() }, 136);
}

/// There and back, twice, through the area that the last message came in, in chunks.
#[test]
fn in_turn() {
    let terms = Terms { eager: 16, turn_max: 4096, timeout_ms: -1, ..Terms::default() };
    model("in_turn", terms, |w| {
        let side = move |me: usize| {
            move || {
                for n in 1..=4 {
                    let buffer = Buffer::new(w, me, 0, 136);
                    if (n % 2 == 1) == (me == 0) {
                        send(1 - me as i32, 0, buffer, n).expect("sent");
                        buffer.fill(99);
                    } else {
                        recv(1 - me as i32, 0, buffer, n, 136);
                        buffer.fill(98);
                    }
                }
            }
        };
        let (a, b) = (w.spawn(0, side(0)), w.spawn(1, side(1)));
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// The receiver takes the offer, or the sender moves it, or both try.
fn offered(name: &str, terms: Terms) {
    model(name, terms, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                let buffer = Buffer::new(w, 0, 0, 136);
                isend(1, 0, buffer, n);
                isend_wait(1, 0, buffer);
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                recv(0, 0, Buffer::new(w, 1, 0, 136), n, 136);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn offer_taken_or_moved() {
    offered("offer_taken_or_moved", Terms { eager: 16, ..Terms::default() });
}

#[test]
fn offer_refused() {
    offered("offer_refused", Terms { eager: 16, refuses: true, ..Terms::default() });
}

/// An offer that was moved gives its transfer block back at once: the next one may have it before the receiver has looked.
#[test]
fn moved_offer_frees_its_block() {
    model("moved_offer_frees_its_block", Terms { eager: 16, preemptions: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            let (first, second) = (Buffer::new(w, 0, 0, 136), Buffer::new(w, 0, 512, 136));
            for (index, n) in [(0, 1), (0, 2), (1, 3)] {
                let buffer = if index == 0 { first } else { second };
                isend(1, index, buffer, n);
                isend_wait(1, index, buffer);
            }
        });
        let b = w.spawn(1, move || {
            for (index, n) in [(0, 1), (0, 2), (1, 3)] {
                recv(0, index, Buffer::new(w, 1, 0, 136), n, 136);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// A message of three chunks through one place.
#[test]
fn ring_of_one_place() {
    let terms = Terms { eager: 16, ring_max: 4096, ring: (256, 1), timeout_ms: -1, ..Terms::default() };
    one_after_another("ring_of_one_place", terms, 520);
}

/// A thread takes the ring that another has used, whose chunks its receiver may still read.
#[test]
fn ring_of_another_thread() {
    let terms = Terms { eager: 16, ring_max: 4096, timeout_ms: -1, preemptions: 1, ..Terms::default() };
    model("ring_of_another_thread", terms, |w| {
        let side = move |me: usize, index: i32| {
            move || {
                let buffer = Buffer::new(w, me, index as usize * 512, 136);
                if me == 0 {
                    send(1, index, buffer, 1).expect("sent");
                    buffer.fill(99);
                } else {
                    recv(0, index, buffer, 1, 136);
                    buffer.fill(98);
                }
            }
        };
        let (a, c) = (w.spawn(0, side(0, 0)), w.spawn(0, side(0, 1)));
        let b = w.spawn(1, move || {
            side(1, 0)();
            side(1, 1)();
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

/// An offer that the sender moves, since its receiver comes late; its block then serves the next message.
#[test]
fn moved_offer_and_its_block() {
    model("moved_offer_and_its_block", Terms { eager: 16, pages: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                let buffer = Buffer::new(w, 0, 0, 136);
                isend(1, 0, buffer, n);
                isend_wait(1, 0, buffer);
                pause();
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                pause();
                recv(0, 0, Buffer::new(w, 1, 0, 136), n, 136);
                pause();
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}
