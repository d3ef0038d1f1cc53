//! The spool: messages announced by the landing, blocks used again, blocks that threads take from each other, want of room.

use crate::stage::{Buffer, model, recv, send};
use fmpl::p2p::model::Terms;

#[test]
fn blocks_used_again() {
    model("blocks_used_again", Terms { eager: 16, pages: 2, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, 32), 1).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            send(1, 0, Buffer::new(w, 0, 0, 40), 2).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 32), 3).expect("sent");
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 32), 1, 32);
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 0, Buffer::new(w, 1, 0, 40), 2, 40);
            recv(0, 0, Buffer::new(w, 1, 0, 32), 3, 32);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// There is room for two small blocks; whoever needs one takes what the other's receiver is done with.
#[test]
fn threads_share_the_blocks() {
    let terms = Terms { eager: 16, pages: 1, spool: 300, timeout_ms: 1, ..Terms::default() };
    model("threads_share_the_blocks", terms, |w| {
        let sender = move |index: i32, many: u8| {
            move || {
                for n in 1..=many {
                    send(1, index, Buffer::new(w, 0, index as usize * 512, 104), n).expect("sent");
                }
            }
        };
        let (a, c) = (w.spawn(0, sender(0, 2)), w.spawn(0, sender(1, 1)));
        let b = w.spawn(1, move || {
            for (index, n) in [(0, 1), (1, 1), (0, 2)] {
                recv(0, index, Buffer::new(w, 1, 0, 104), n, 104);
            }
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

/// There is no room when the sender would leave the chain for a spooled landing; later there is.
#[test]
fn no_room_on_leaving_the_chain() {
    let terms = Terms { eager: 88, pages: 4, spool: 620, timeout_ms: 1, preemptions: 1, ..Terms::default() };
    model("no_room_on_leaving_the_chain", terms, |w| {
        let a = w.spawn(0, move || {
            send(1, 1, Buffer::new(w, 0, 512, 96), 1).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 8), 1).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 8), 2).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            send(1, 0, Buffer::new(w, 0, 0, 104), 3).expect("sent");
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 8), 1, 8);
            recv(0, 0, Buffer::new(w, 1, 0, 8), 2, 8);
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 1, Buffer::new(w, 1, 512, 96), 1, 96);
            recv(0, 0, Buffer::new(w, 1, 0, 104), 3, 104);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}
