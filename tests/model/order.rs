//! The order of both sides where the system refuses `membarrier` to one rank, to the other, to both, or to one later: a receive that is
//! withdrawn against a put, the event descriptor, sleep and wake, the first receive of any index. (Where it is refused to none: the other
//! models.)

use crate::stage::{Buffer, irecv, model, recv, send};
use crate::{any_index, posting, sleeping};
use fmpl::base::shadow::Membarrier::{self, Has, Refused, RefusedLater};
use fmpl::p2p::model::{Terms, World};
use fmpl::p2p::{self, COMM_WORLD, TAG_ANY, any_source};

/// The same model in each setting: the sender's, the receiver's.
macro_rules! settings {
    ($model:ident: $($name:ident = $sender:ident, $receiver:ident;)*) => {
        $(#[test]
        fn $name() {
            $model(stringify!($name), [$sender, $receiver]);
        })*
    };
}

fn withdraw(name: &str, membarrier: [Membarrier; 2]) {
    posting::withdraw(name, Terms { membarrier, ..posting::long(0) });
}

settings! { withdraw:
    withdraw_refused_to_both = Refused, Refused;
    withdraw_refused_to_the_sender = Refused, Has;
    withdraw_refused_to_the_receiver = Has, Refused;
    withdraw_refused_later_to_the_receiver = Has, RefusedLater;
    withdraw_refused_later_to_a_stranger = Refused, RefusedLater;
}

/// Tests, and sleeps on the descriptor when the test says no.
fn event_loop(w: World, test: impl Fn() -> Result<bool, fmpl::Error>) {
    let event = w.endpoint(1).event.get().expect("a descriptor");
    while !test().expect("a request") {
        event.wait();
    }
}

fn event_terms(membarrier: [Membarrier; 2]) -> Terms {
    Terms { eager: 16, timeout_ms: -1, event: true, membarrier, preemptions: 3, ..Terms::default() }
}

/// The receiver's loop, by this index.
fn event_of_index(index: i32, name: &str, terms: Terms) {
    model(name, terms, move |w| {
        let a = w.spawn(0, move || send(1, 1, Buffer::new(w, 0, 0, 8), 1).expect("sent"));
        let b = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 8);
            irecv(0, index, buffer);
            event_loop(w, || p2p::irecv_test(COMM_WORLD, 0, index));
            buffer.holds(1, 8);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

fn event_of_a_receive(name: &str, membarrier: [Membarrier; 2]) {
    event_of_index(1, name, event_terms(membarrier));
}

fn event_of_any_index(name: &str, membarrier: [Membarrier; 2]) {
    event_of_index(TAG_ANY, name, Terms { timeout_ms: 0, ..event_terms(membarrier) });
}

settings! { event_of_a_receive:
    event_refused_to_none = Has, Has;
    event_refused_to_both = Refused, Refused;
    event_refused_to_the_sender = Refused, Has;
    event_refused_to_the_receiver = Has, Refused;
    event_refused_later = Has, RefusedLater;
}

settings! { event_of_any_index:
    event_of_any_index_refused_to_none = Has, Has;
    event_of_any_index_refused_to_both = Refused, Refused;
    event_of_any_index_refused_to_the_sender = Refused, Has;
    event_of_any_index_refused_to_the_receiver = Has, Refused;
}

/// The loop of a sender, whose message waits for its receive. (Rank 1 sends.)
fn event_of_a_send(name: &str, [sender, receiver]: [Membarrier; 2]) {
    model(name, event_terms([receiver, sender]), |w| {
        let a = w.spawn(0, move || recv(1, 0, Buffer::new(w, 0, 0, 8), 1, 8));
        let b = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 8).fill(1);
            p2p::isend(COMM_WORLD, buffer.layout(), 0, 0).expect("begun");
            event_loop(w, || p2p::isend_test(COMM_WORLD, 0, 0));
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

settings! { event_of_a_send:
    event_of_a_send_refused_to_none = Has, Has;
    event_of_a_send_refused_to_both = Refused, Refused;
    event_of_a_send_refused_to_the_sender = Refused, Has;
    event_of_a_send_refused_to_the_receiver = Has, Refused;
}

/// A receive of any source.
fn event_of_any_source(name: &str, membarrier: [Membarrier; 2]) {
    model(name, Terms { timeout_ms: 10_000, ..event_terms(membarrier) }, |w| {
        let a = w.spawn(0, move || {
            let buffer = Buffer::new(w, 0, 0, 24).fill(1);
            let len = buffer.parts().1;
            any_source::send_any(COMM_WORLD, buffer.run(len), 1, 0).expect("sent");
        });
        let b = w.spawn(1, move || {
            let buffer = Buffer::new(w, 1, 0, 24);
            let len = buffer.parts().1;
            any_source::irecv_any(COMM_WORLD, buffer.run(len), 0).expect("begun");
            event_loop(w, || any_source::irecv_any_test(COMM_WORLD, 0).map(|arrived| arrived.is_some()));
            buffer.holds(1, 24);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

settings! { event_of_any_source:
    event_of_any_source_refused_to_none = Has, Has;
    event_of_any_source_refused_to_both = Refused, Refused;
    event_of_any_source_refused_to_the_sender = Refused, Has;
    event_of_any_source_refused_to_the_receiver = Has, Refused;
}

/// Both sleep: the sender until there is a posting, the receiver until the message is put into it.
fn sleep(name: &str, membarrier: [Membarrier; 2]) {
    let terms = Terms { eager: 16, timeout_ms: -1, sleeps: true, membarrier, ..Terms::default() };
    sleeping::messages(name, terms, &[8, 32]);
}

settings! { sleep:
    sleep_refused_to_both = Refused, Refused;
    sleep_refused_to_the_sender = Refused, Has;
    sleep_refused_to_the_receiver = Has, Refused;
    sleep_refused_later = RefusedLater, Has;
}

/// A first receive of any index against the message that it must find.
fn any_index(name: &str, membarrier: [Membarrier; 2]) {
    any_index::subscribed(name, Terms { membarrier, ..Terms::default() }, 8, &[(0, 1), (1, 11)]);
}

settings! { any_index:
    any_index_refused_to_both = Refused, Refused;
    any_index_refused_to_the_sender = Refused, Has;
    any_index_refused_to_the_receiver = Has, Refused;
    any_index_refused_later = Has, RefusedLater;
}
