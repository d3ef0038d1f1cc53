//! One direction of an index and both: landings, annexes, acknowledgements, the chain and the way back to the landing.

use crate::stage::{Buffer, model, pause, recv, send};
use fmpl::p2p::model::Terms;

#[test]
fn inline_landings() {
    model("inline_landings", Terms { preemptions: 3, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=3 {
                send(1, 0, Buffer::new(w, 0, 0, 6 + n as usize), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=3 {
                recv(0, 0, Buffer::new(w, 1, 0, 16), n, 6 + n as usize);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// Both ways in turn: the split line and the annex that go from hand to hand.
fn in_turn(name: &str, len: usize) {
    model(name, Terms::default(), move |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, len), n).expect("sent");
                recv(1, 0, Buffer::new(w, 0, 1024, len), 10 + n, len);
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                recv(0, 0, Buffer::new(w, 1, 0, len), n, len);
                send(0, 0, Buffer::new(w, 1, 1024, len), 10 + n).expect("sent");
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn split_lines_in_turn() {
    in_turn("split_lines_in_turn", 40);
}

#[test]
fn annexes_in_turn() {
    in_turn("annexes_in_turn", 96);
}

/// Both sides send first: one of them does not have the annex in turn and takes its own.
fn at_once(name: &str, len: usize) {
    model(name, Terms::default(), move |w| {
        let side = move |me: usize| {
            move || {
                for n in 1..=2 {
                    send(1 - me as i32, 0, Buffer::new(w, me, 0, len), n + 10 * me as u8).expect("sent");
                    recv(1 - me as i32, 0, Buffer::new(w, me, 1024, len), n + 10 * (1 - me) as u8, len);
                }
            }
        };
        let (a, b) = (w.spawn(0, side(0)), w.spawn(1, side(1)));
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn split_lines_at_once() {
    at_once("split_lines_at_once", 40);
}

#[test]
fn annexes_at_once() {
    at_once("annexes_at_once", 96);
}

#[test]
fn split_line_into_a_short_buffer() {
    model("split_line_into_a_short_buffer", Terms::default(), |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 40), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                recv(0, 0, Buffer::new(w, 1, 0, 24), n, 40);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// One way, then an answer, and one way again: landing, chain of three blocks, landing.
fn there_and_back(name: &str, len: usize, many: u8) {
    model(name, Terms { pages: 4, ..Terms::default() }, move |w| {
        let a = w.spawn(0, move || {
            for n in 1..=many {
                send(1, 0, Buffer::new(w, 0, 0, len), n).expect("sent");
            }
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            send(1, 0, Buffer::new(w, 0, 0, len), many + 1).expect("sent");
        });
        let b = w.spawn(1, move || {
            for n in 1..=many {
                recv(0, 0, Buffer::new(w, 1, 0, len), n, len);
            }
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 0, Buffer::new(w, 1, 0, len), many + 1, len);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

#[test]
fn chain_within_a_block() {
    there_and_back("chain_within_a_block", 8, 4);
}

#[test]
fn chain_of_blocks() {
    there_and_back("chain_of_blocks", 184, 4);
}

/// A chain goes on in another block before anything else happens.
#[test]
fn chain_of_two_blocks() {
    crate::sleeping::messages("chain_of_two_blocks", Terms { pages: 4, ..Terms::default() }, &[184; 3]);
}

/// A block used again holds old bytes; these ones look like the record after the next.
#[test]
fn old_bytes_are_no_record() {
    model("old_bytes_are_no_record", Terms { pages: 1, preemptions: 1, ..Terms::default() }, |w| {
        use fmpl::lane::record::{Kind, record_word};
        let fake = record_word(6, Kind::Spooled, 8);
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, 8), 1).expect("sent");
            // Chained, unless the first is consumed by now.
            Buffer::new(w, 0, 512, 64).send_words(1, 0, fake);
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            for n in 3..=6 {
                send(1, 0, Buffer::new(w, 0, 0, 8), n).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 8), 1, 8);
            Buffer::new(w, 1, 512, 64).recv_words(0, 0, fake);
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            for n in 3..=6 {
                recv(0, 0, Buffer::new(w, 1, 0, 8), n, 8);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// One thread of a rank sends on an index, another receives on it. Synchronous sends need every acknowledgement.
#[test]
fn two_threads_on_one_index() {
    let terms = Terms { timeout_ms: -1, ..Terms::default() };
    model("two_threads_on_one_index", terms, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 40), n).expect("sent");
            }
            recv(1, 0, Buffer::new(w, 0, 1024, 40), 11, 40);
        });
        let b = w.spawn(1, move || {
            send(0, 0, Buffer::new(w, 1, 1024, 40), 11).expect("sent");
        });
        let c = w.spawn(1, move || {
            for n in 1..=2 {
                recv(0, 0, Buffer::new(w, 1, 0, 40), n, 40);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1, sending");
        c.join().expect("rank 1, receiving");
    });
}

/// The blocks of a chain are used again as its receiver leaves them, which the sender learns from the blocks alone.
#[test]
fn chain_of_used_blocks() {
    model("chain_of_used_blocks", Terms { pages: 4, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=5 {
                send(1, 0, Buffer::new(w, 0, 0, 184), n).expect("sent");
                if n > 2 {
                    pause();
                }
            }
        });
        let b = w.spawn(1, move || {
            pause();
            for n in 1..=5 {
                recv(0, 0, Buffer::new(w, 1, 0, 184), n, 184);
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// One thread sends, annex, chain, and annex again when the other has received an answer: what it knows of its receiver is in the
/// chain's block.
#[test]
fn one_sends_the_other_receives() {
    model("one_sends_the_other_receives", Terms { preemptions: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=3 {
                send(1, 0, Buffer::new(w, 0, 0, 96), n).expect("sent");
            }
            (0..3).for_each(|_| pause());
            send(1, 0, Buffer::new(w, 0, 0, 96), 4).expect("sent");
        });
        let c = w.spawn(0, move || recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8));
        let b = w.spawn(1, move || {
            pause();
            for n in 1..=3 {
                recv(0, 0, Buffer::new(w, 1, 0, 96), n, 96);
            }
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 0, Buffer::new(w, 1, 0, 96), 4, 96);
        });
        a.join().expect("rank 0, sending");
        c.join().expect("rank 0, receiving");
        b.join().expect("rank 1");
    });
}

/// A thread takes the turn to write an annex, or a split line, from the thread of its rank that has read it.
fn turn_of_another_thread(name: &str, len: usize) {
    model(name, Terms::default(), move |w| {
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, len), 1).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 1024, len), 11, len);
        });
        let b = w.spawn(1, move || recv(0, 0, Buffer::new(w, 1, 0, len), 1, len));
        let c = w.spawn(1, move || {
            (0..2).for_each(|_| pause());
            send(0, 0, Buffer::new(w, 1, 1024, len), 11).expect("sent");
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1, receiving");
        c.join().expect("rank 1, sending");
    });
}

#[test]
fn annex_of_another_thread() {
    turn_of_another_thread("annex_of_another_thread", 96);
}

#[test]
fn split_line_of_another_thread() {
    turn_of_another_thread("split_line_of_another_thread", 40);
}
