//! Sleep and wake: every wait sleeps at once, and only a ring ends a sleep, so a lost wake-up is a deadlock.

use crate::stage::{Buffer, arrived, irecv, model, recv, send};
use fmpl::p2p::model::Terms;
use fmpl::p2p::{self, COMM_WORLD};

fn asleep() -> Terms {
    Terms { sleeps: true, ..Terms::default() }
}

/// Messages of these lengths, one after the other.
pub fn messages(name: &str, terms: Terms, lengths: &'static [usize]) {
    let numbered = || (1..).zip(lengths.iter().copied());
    model(name, terms, move |w| {
        let a = w.spawn(0, move || {
            for (n, len) in numbered() {
                send(1, 0, Buffer::new(w, 0, 0, len), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            for (n, len) in numbered() {
                recv(0, 0, Buffer::new(w, 1, 0, len), n, len);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn receiver_sleeps() {
    messages("receiver_sleeps", Terms { preemptions: 3, ..asleep() }, &[8, 8]);
}

/// The sender sleeps until there is a posting, the receiver until the message is put into it.
#[test]
fn both_sleep() {
    model("both_sleep", Terms { eager: 16, timeout_ms: -1, ..asleep() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 32), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            irecv(0, 0, Buffer::new(w, 1, 0, 32));
            arrived(p2p::irecv_wait(COMM_WORLD, 0, 0), 0, 0, Buffer::new(w, 1, 0, 32), 1, 32);
            recv(0, 0, Buffer::new(w, 1, 0, 32), 2, 32);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// A sleep between two uses of an annex: the sleep byte shares a word with the acknowledgement.
#[test]
fn sleep_between_annexes() {
    messages("sleep_between_annexes", asleep(), &[96, 96]);
}
