//! Long messages: puts into postings, truncation, a posting that is withdrawn while the sender puts.

use crate::stage::{Buffer, arrived, irecv, model, pause, recv, send};
use fmpl::p2p::model::Terms;
use fmpl::p2p::{self, COMM_WORLD};

/// Long is more than 16 bytes.
pub fn long(timeout_ms: i32) -> Terms {
    Terms { eager: 16, timeout_ms, ..Terms::default() }
}

#[test]
fn put_into_the_posting() {
    model("put_into_the_posting", long(-1), |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                let buffer = Buffer::new(w, 0, 0, 160);
                send(1, 0, buffer, n).expect("sent");
                buffer.fill(99);
            }
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 160), 1, 160);
            recv(0, 0, Buffer::new(w, 1, 512, 136), 2, 160);
            Buffer::new(w, 1, 512, 160).fill(98);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn put_or_spool() {
    model("put_or_spool", long(0), |w| {
        let a = w.spawn(0, move || {
            for n in 1..=3 {
                send(1, 0, Buffer::new(w, 0, 0, 160), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=3 {
                let buffer = Buffer::new(w, 1, 0, 160);
                recv(0, 0, buffer, n, 160);
                buffer.fill(98);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// A receive is withdrawn when the sender may just have seen it; the next one gets the message.
pub fn withdraw(name: &str, terms: Terms) {
    model(name, Terms { preemptions: 3, ..terms }, |w| {
        let a = w.spawn(0, move || {
            pause();
            send(1, 0, Buffer::new(w, 0, 0, 136), 1).expect("sent");
        });
        let b = w.spawn(1, move || {
            let (first, second) = (Buffer::new(w, 1, 0, 136), Buffer::new(w, 1, 512, 136));
            irecv(0, 0, first);
            if p2p::irecv_cancel(COMM_WORLD, 0, 0).expect("a request") {
                // Ours again: nobody may write it any more.
                first.fill(98);
                recv(0, 0, second, 1, 136);
                first.holds(98, 136);
            } else {
                arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, first, 1, 136);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn withdraw_while_the_sender_puts() {
    withdraw("withdraw_while_the_sender_puts", long(-1));
}

/// The sender can do without the posting.
#[test]
fn withdraw_from_one_who_spools() {
    withdraw("withdraw_from_one_who_spools", long(0));
}
