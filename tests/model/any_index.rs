//! Receives of any index.

use crate::stage::{Buffer, arrived, irecv, model, pause, recv, send};
use fmpl::base::atomics::spin_loop;
use fmpl::p2p::model::{Bitmap, Terms};
use fmpl::p2p::{self, COMM_WORLD, TAG_ANY};

/// Receives a message of any index; which index it was. On index k messages are numbered 10k + 1, 10k + 2, …
fn recv_any(buffer: Buffer, counts: &mut [u8; 2], len: usize) {
    p2p::recv(COMM_WORLD, buffer.layout(), 0, TAG_ANY).expect("received");
    let index = p2p::received(COMM_WORLD, 0, TAG_ANY).expect("one").index as usize;
    counts[index] += 1;
    buffer.holds(10 * index as u8 + counts[index], len);
}

/// Messages on indices, received by any index.
pub fn subscribed(name: &str, terms: Terms, len: usize, sends: &'static [(i32, u8)]) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || {
            for (index, n) in sends {
                send(1, *index, Buffer::new(w, 0, 0, len), *n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            let mut counts = [0; 2];
            for _ in sends {
                recv_any(Buffer::new(w, 1, 0, len), &mut counts, len);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn subscription_and_first_sends() {
    subscribed("subscription_and_first_sends", Terms::default(), 8, &[(0, 1), (1, 11)]);
}

#[test]
fn subscription_asleep() {
    subscribed("subscription_asleep", Terms { sleeps: true, ..Terms::default() }, 8, &[(0, 1), (0, 2)]);
}

#[test]
fn sender_waits_for_a_posting_of_any() {
    subscribed(
        "sender_waits_for_a_posting_of_any",
        Terms { eager: 16, timeout_ms: -1, ..Terms::default() },
        32,
        &[(1, 11)],
    );
}

/// A receive of an index takes one message; the other, announced together with it, is for the receive of any.
#[test]
fn an_indexed_receive_leaves_the_rest() {
    model("an_indexed_receive_leaves_the_rest", Terms { preemptions: 3, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 8), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            let (indexed, any) = (Buffer::new(w, 1, 0, 8), Buffer::new(w, 1, 512, 8));
            irecv(0, TAG_ANY, any);
            irecv(0, 0, indexed);
            let early = p2p::irecv_test(COMM_WORLD, 0, TAG_ANY).expect("a request");
            assert!(!early, "the indexed receive has precedence");
            arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, indexed, 1, 8);
            p2p::irecv_wait(COMM_WORLD, 0, TAG_ANY).expect("received");
            any.holds(2, 8);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// More announcements than the queue holds: those that follow are marks in the bitmap.
#[test]
fn more_than_the_queue_holds() {
    model("more_than_the_queue_holds", Terms { preemptions: 1, ..Terms::default() }, |w| {
        const MANY: u8 = 6;
        let a = w.spawn(0, move || {
            recv(1, 3, Buffer::new(w, 0, 1024, 8), 50, 8);
            for n in 0..MANY {
                send(1, n as i32 % 2, Buffer::new(w, 0, 0, 8), 10 * (n % 2) + n / 2 + 1).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 8);
            irecv(0, TAG_ANY, buffer);
            send(0, 3, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            (0..3).for_each(|_| pause());
            let mut counts = [0; 2];
            p2p::irecv_wait(COMM_WORLD, 0, TAG_ANY).expect("received");
            let index = p2p::received(COMM_WORLD, 0, TAG_ANY).expect("one").index as usize;
            counts[index] += 1;
            buffer.holds(10 * index as u8 + counts[index], 8);
            for _ in 1..MANY {
                recv_any(buffer, &mut counts, 8);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// Two marks of one word of the bitmap: what was written before a mark is there when it is taken, also where the second one is taken together
/// with the first, before its summary is set.
#[test]
fn marks_come_after_what_they_mark() {
    model("marks_come_after_what_they_mark", Terms { preemptions: 3, ..Terms::default() }, |w| {
        const FIRST: usize = 64;
        let written = move |k: usize| Buffer::new(w, 0, k * 64, 8);
        let a = w.spawn(0, move || {
            for k in 0..2 {
                written(k).fill(1 + k as u8);
                Bitmap::mark(w.lane(0), FIRST + k);
            }
        });
        let b = w.spawn(1, move || {
            let mut taken = 0;
            while taken < 2 {
                let marks = Bitmap::take(w.lane(1));
                if marks.is_empty() {
                    spin_loop();
                }
                for slot in &marks {
                    let k = *slot as usize - FIRST;
                    written(k).holds(1 + k as u8, 8);
                }
                taken += marks.len();
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// Both begin a receive of any index and then send synchronously: each send may count on the other's receive.
fn both_send_first(name: &str, terms: Terms, len: usize) {
    model(name, Terms { timeout_ms: -1, ..terms }, move |w| {
        let ends = [0, 1].map(|me| {
            w.spawn(me as usize, move || {
                let (out, inn) = (Buffer::new(w, me as usize, 0, len), Buffer::new(w, me as usize, 512, len));
                irecv(1 - me, TAG_ANY, inn);
                send(1 - me, me, out, 1 + me as u8).expect("sent");
                p2p::irecv_wait(COMM_WORLD, 1 - me, TAG_ANY).expect("received");
                inn.holds(2 - me as u8, len);
            })
        });
        ends.into_iter().for_each(|end| end.join().expect("a rank"));
    });
}

#[test]
fn posted_for_synchronous_sends() {
    both_send_first("posted_for_synchronous_sends", Terms::default(), 8);
}

#[test]
fn posted_for_synchronous_sends_asleep() {
    both_send_first("posted_for_synchronous_sends_asleep", Terms { sleeps: true, ..Terms::default() }, 8);
}

#[test]
fn posted_for_long_synchronous_sends() {
    both_send_first("posted_for_long_synchronous_sends", Terms { eager: 16, ..Terms::default() }, 32);
}

/// The receive is claimed while its receiver takes it back to look for itself.
#[test]
fn claimed_while_it_is_taken_back() {
    let terms = Terms { timeout_ms: -1, ..Terms::default() };
    model("claimed_while_it_is_taken_back", terms, |w| {
        let a = w.spawn(0, move || send(1, 0, Buffer::new(w, 0, 0, 8), 1).expect("sent"));
        let b = w.spawn(1, move || {
            let (any, indexed) = (Buffer::new(w, 1, 0, 8), Buffer::new(w, 1, 512, 8));
            irecv(0, TAG_ANY, any);
            if p2p::irecv_cancel(COMM_WORLD, 0, TAG_ANY).expect("a request") {
                recv(0, 0, indexed, 1, 8);
            } else {
                p2p::irecv_wait(COMM_WORLD, 0, TAG_ANY).expect("received");
                any.holds(1, 8);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// The receive is posted by one that then waits for what its sender does next.
#[test]
fn posted_for_a_sleeper() {
    let terms = Terms { sleeps: true, timeout_ms: -1, ..Terms::default() };
    model("posted_for_a_sleeper", terms, |w| {
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, 8), 1).expect("sent");
            send(1, 1, Buffer::new(w, 0, 0, 8), 11).expect("sent");
        });
        let b = w.spawn(1, move || {
            let any = Buffer::new(w, 1, 0, 8);
            irecv(0, TAG_ANY, any);
            recv(0, 1, Buffer::new(w, 1, 512, 8), 11, 8);
            p2p::irecv_wait(COMM_WORLD, 0, TAG_ANY).expect("received");
            any.holds(1, 8);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}
