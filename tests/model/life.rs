//! Two ranks that have not met when the threads begin, one of which dies at any access to shared memory: while it greets, while it makes its
//! lanes, in the middle of a message, after all it had to do. The other, which may still be in its init then, gets every message whose send has
//! ended, and then hears of the death; no wait of it is left.

use std::cell::Cell;
use std::rc::Rc;

use crate::stage::{Buffer, model, recv, send};
use fmpl::Code;
use fmpl::base::bytes::Room;
use fmpl::coll::model::Member;
use fmpl::p2p::model::{Terms, World};
use fmpl::p2p::{self, COMM_WORLD};

fn terms() -> Terms {
    Terms { meet: true, ..Terms::default() }
}

/// What rank 1 does if it lives long enough.
#[derive(Clone, Copy)]
enum Does {
    /// Nothing: it is rank 0 that makes its acquaintance.
    Nothing,
    /// It greets rank 0, makes its lane, and sends so many messages.
    Sends(u8),
}

/// Rank 1 does what it does, or dies before; how many messages it has sent.
fn lives(w: World, does: Does) -> impl FnOnce() -> u8 {
    let sent = Rc::new(Cell::new(0));
    let count = sent.clone();
    let threads = w.dies(move || {
        let Does::Sends(messages) = does else { return };
        assert!(w.endpoint(1).lane(0).is_ok());
        for n in 1..=messages {
            if send(0, 0, Buffer::new(w, 1, 0, 8), n).is_err() {
                break;
            }
            count.set(n);
        }
    });
    move || {
        threads.into_iter().for_each(|t| t.join().expect("rank 1"));
        sent.get()
    }
}

/// Rank 0 receives until it hears of the death; how many messages.
fn receives(w: World) -> u8 {
    let buffer = Buffer::new(w, 0, 0, 8);
    let mut got = 0;
    loop {
        match p2p::recv(COMM_WORLD, buffer.layout(), 1, 0) {
            Ok(()) => {
                got += 1;
                buffer.holds(got, 8);
            }
            Err(e) => {
                assert!(e.code() == Code::Peer && e.detail().contains("has died"), "{e}");
                return got;
            }
        }
    }
}

fn dies(name: &str, terms: Terms, does: Does) {
    model(name, terms, move |w| {
        let service = w.spawn(0, move || w.serves());
        let ended = lives(w, does);
        let receiver = w.spawn(0, move || receives(w));
        let (sent, got) = (ended(), receiver.join().expect("rank 0"));
        assert!(got == sent || got == sent + 1, "{got} of {sent} messages have come");
        w.is_over();
        service.join().expect("rank 0, its service");
    });
}

#[test]
fn dies_when_it_is_greeted() {
    dies("dies_when_it_is_greeted", terms(), Does::Nothing);
}

#[test]
fn dies_when_it_has_greeted() {
    dies("dies_when_it_has_greeted", terms(), Does::Sends(0));
}

#[test]
fn dies_after_a_message() {
    dies("dies_after_a_message", terms(), Does::Sends(1));
}

#[test]
fn dies_and_wakes_a_sleeper() {
    dies("dies_and_wakes_a_sleeper", Terms { sleeps: true, ..terms() }, Does::Sends(1));
}

/// What a rank did last comes before the news of its end.
#[test]
fn last_words_are_heard() {
    model("last_words_are_heard", terms(), |w| {
        w.know_each_other();
        let dies = w.spawn(1, move || send(0, 0, Buffer::new(w, 1, 0, 8), 1).expect("sent"));
        let service = w.spawn(0, move || {
            dies.join().expect("rank 1");
            w.is_told_of_a_death();
        });
        let receives = w.spawn(0, move || recv(1, 0, Buffer::new(w, 0, 0, 8), 1, 8));
        service.join().expect("rank 0, its service");
        receives.join().expect("rank 0");
    });
}

/// A broadcast of the rank that dies, and a barrier. What they came to; a death is an error that names the dead.
fn calls(m: &Member) -> [bool; 2] {
    let mut v = [if m.me() == 1 { 7u8 } else { 0 }; 8];
    let had = m.bcast(Room::of(&mut v), 1);
    assert!(had.is_err() || v == [7; 8]);
    let met = m.barrier();
    [had, met].map(|call| match call {
        Ok(()) => true,
        Err(e) => {
            assert!(e.code() == Code::Peer && e.detail().contains("rank 1 has died"), "{e}");
            false
        }
    })
}

/// The same of a collective call.
#[test]
fn last_words_of_a_member_are_heard() {
    model("last_words_of_a_member_are_heard", terms(), |w| {
        w.know_each_other();
        let dies = w.spawn(1, move || {
            let (member, mut v) = (Member::joins(w, 1, 0), [7u8; 8]);
            member.bcast(Room::of(&mut v), 1).expect("a broadcast");
        });
        let service = w.spawn(0, move || {
            dies.join().expect("rank 1");
            w.is_told_of_a_death();
        });
        let member = w.spawn(0, move || assert_eq!(calls(&Member::joins(w, 0, 0)), [true, false]));
        service.join().expect("rank 0, its service");
        member.join().expect("rank 0");
    });
}

#[test]
fn dies_in_a_collective_call() {
    model("dies_in_a_collective_call", terms(), |w| {
        w.know_each_other();
        let service = w.spawn(0, move || w.serves());
        let threads = w.dies(move || {
            calls(&Member::joins(w, 1, 0));
        });
        let member = w.spawn(0, move || {
            calls(&Member::joins(w, 0, 0));
        });
        threads.into_iter().for_each(|t| t.join().expect("rank 1"));
        member.join().expect("rank 0");
        w.is_over();
        service.join().expect("rank 0, its service");
    });
}

/// The news ends a sleep.
#[test]
fn told_when_asleep() {
    model("told_when_asleep", Terms { sleeps: true, ..terms() }, |w| {
        w.know_each_other();
        let service = w.spawn(0, move || w.is_told_of_a_death());
        let receives = w.spawn(0, move || assert_eq!(receives(w), 0));
        service.join().expect("rank 0, its service");
        receives.join().expect("rank 0");
    });
}

/// A peer that is known dies while its lane is made.
#[test]
fn told_while_its_lane_is_made() {
    model("told_while_its_lane_is_made", terms(), |w| {
        w.is_greeted();
        let service = w.spawn(0, move || w.is_told_of_a_death());
        let receives = w.spawn(0, move || assert_eq!(receives(w), 0));
        service.join().expect("rank 0, its service");
        receives.join().expect("rank 0");
    });
}
