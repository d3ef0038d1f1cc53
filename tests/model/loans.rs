//! Loans: the one that a rank has is filled again as soon as its word says so, while other messages go on.

use crate::stage::{Buffer, model, pause};
use fmpl::p2p::loan::IN_MODEL;
use fmpl::p2p::model::Terms;
use fmpl::p2p::{self, COMM_WORLD};

/// Fills the loan with message `n` as soon as it is there, and hands it over.
fn hand_over(to: i32, index: i32, n: u8) {
    let at = loop {
        match p2p::loan(IN_MODEL) {
            Ok(at) => break at,
            Err(_) => pause(),
        }
    };
    Buffer::of_loan(at).fill(n);
    p2p::send_loan(COMM_WORLD, at, IN_MODEL, to, index).expect("sent");
}

#[test]
fn loan_filled_again() {
    model("loan_filled_again", Terms::default(), |w| {
        let a = w.spawn(0, move || (1..=2).for_each(|n| hand_over(1, 0, n)));
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                let lent = p2p::recv_loan(COMM_WORLD, 0, 0).expect("a loan");
                Buffer::of_loan(lent.at).holds(n, IN_MODEL);
                p2p::loan_return(lent.at).expect("returned");
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// By the chain, and to a receive that copies.
#[test]
fn loan_in_a_chain() {
    model("loan_in_a_chain", Terms::default(), |w| {
        let a = w.spawn(0, move || {
            crate::stage::send(1, 0, Buffer::new(w, 0, 0, 8), 9).expect("sent");
            (1..=2).for_each(|n| hand_over(1, 0, n));
        });
        let b = w.spawn(1, move || {
            crate::stage::recv(0, 0, Buffer::new(w, 1, 0, 8), 9, 8);
            crate::stage::recv(0, 0, Buffer::new(w, 1, 512, IN_MODEL), 1, IN_MODEL);
            let lent = p2p::recv_loan(COMM_WORLD, 0, 0).expect("a loan");
            Buffer::of_loan(lent.at).holds(2, IN_MODEL);
            p2p::loan_return(lent.at).expect("returned");
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}
