//! The spool: messages announced by the landing, blocks used again, blocks that threads take from each other, want of room.

use crate::stage::{Buffer, model, pause, recv, send};
use fmpl::base::atomics::Ordering;
use fmpl::base::shadow;
use fmpl::p2p::COMM_WORLD;
use fmpl::p2p::model::{Terms, World};

#[test]
fn blocks_used_again() {
    model("blocks_used_again", Terms { eager: 16, pages: 2, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, 136), 1).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            send(1, 0, Buffer::new(w, 0, 0, 144), 2).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 136), 3).expect("sent");
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 136), 1, 136);
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 0, Buffer::new(w, 1, 0, 144), 2, 144);
            recv(0, 0, Buffer::new(w, 1, 0, 136), 3, 136);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// There is room for two small blocks; whoever needs one takes what the other's receiver is done with.
#[test]
fn threads_share_the_blocks() {
    let terms = Terms { eager: 16, pages: 1, spool: 500, timeout_ms: 1, ..Terms::default() };
    model("threads_share_the_blocks", terms, |w| {
        let sender = move |index: i32, many: u8| {
            move || {
                for n in 1..=many {
                    send(1, index, Buffer::new(w, 0, index as usize * 512, 200), n).expect("sent");
                }
            }
        };
        let (a, c) = (w.spawn(0, sender(0, 2)), w.spawn(0, sender(1, 1)));
        let b = w.spawn(1, move || {
            for (index, n) in [(0, 1), (1, 1), (0, 2)] {
                recv(0, index, Buffer::new(w, 1, 0, 200), n, 200);
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
    let terms = Terms { eager: 88, pages: 4, spool: 660, timeout_ms: 1, preemptions: 1, ..Terms::default() };
    model("no_room_on_leaving_the_chain", terms, |w| {
        let a = w.spawn(0, move || {
            send(1, 1, Buffer::new(w, 0, 512, 136), 1).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 8), 1).expect("sent");
            send(1, 0, Buffer::new(w, 0, 0, 8), 2).expect("sent");
            recv(1, 0, Buffer::new(w, 0, 1024, 8), 50, 8);
            send(1, 0, Buffer::new(w, 0, 0, 200), 3).expect("sent");
        });
        let b = w.spawn(1, move || {
            recv(0, 0, Buffer::new(w, 1, 0, 8), 1, 8);
            recv(0, 0, Buffer::new(w, 1, 0, 8), 2, 8);
            send(0, 0, Buffer::new(w, 1, 1024, 8), 50).expect("sent");
            recv(0, 1, Buffer::new(w, 1, 512, 136), 1, 136);
            recv(0, 0, Buffer::new(w, 1, 0, 200), 3, 200);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// The same block for the next message of the index; nobody waits for a posting, since the receiver is elsewhere.
#[test]
fn the_same_block_again() {
    model("the_same_block_again", Terms { eager: 16, pages: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for n in 1..=2 {
                send(1, 0, Buffer::new(w, 0, 0, 128 + 8 * n as usize), n).expect("sent");
                pause();
            }
        });
        let b = w.spawn(1, move || {
            for n in 1..=2 {
                pause();
                recv(0, 0, Buffer::new(w, 1, 0, 144), n, 128 + 8 * n as usize);
                pause();
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// One message fills the spool. The next, on another index, waits until the receiver is done with the block.
#[test]
fn room_for_one() {
    model("room_for_one", Terms { eager: 16, pages: 1, spool: 210, timeout_ms: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            for index in 0..2 {
                send(1, index, Buffer::new(w, 0, index as usize * 512, 200), 1).expect("sent");
            }
        });
        let b = w.spawn(1, move || {
            pause();
            for index in 0..2 {
                recv(0, index, Buffer::new(w, 1, 0, 200), 1, 200);
                pause();
            }
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// Two threads that both want the only block.
#[test]
fn two_want_the_room() {
    model("two_want_the_room", Terms { eager: 16, pages: 1, spool: 210, timeout_ms: 1, ..Terms::default() }, |w| {
        let sender =
            move |index: i32| move || send(1, index, Buffer::new(w, 0, index as usize * 512, 200), 1).expect("sent");
        let (a, c) = (w.spawn(0, sender(0)), w.spawn(0, sender(1)));
        let b = w.spawn(1, move || {
            pause();
            recv(0, 0, Buffer::new(w, 1, 0, 200), 1, 200);
            pause();
            recv(0, 1, Buffer::new(w, 1, 0, 200), 1, 200);
        });
        a.join().expect("rank 0");
        c.join().expect("rank 0, its other thread");
        b.join().expect("rank 1");
    });
}

/// A page of small blocks becomes one of larger blocks.
#[test]
fn a_page_serves_another_size() {
    model("a_page_serves_another_size", Terms { eager: 16, pages: 1, timeout_ms: 1, ..Terms::default() }, |w| {
        let a = w.spawn(0, move || {
            send(1, 0, Buffer::new(w, 0, 0, 200), 1).expect("sent");
            send(1, 1, Buffer::new(w, 0, 512, 600), 1).expect("sent");
        });
        let b = w.spawn(1, move || {
            pause();
            recv(0, 0, Buffer::new(w, 1, 0, 200), 1, 200);
            pause();
            recv(0, 1, Buffer::new(w, 1, 512, 600), 1, 600);
        });
        a.join().expect("rank 0");
        b.join().expect("rank 1");
    });
}

/// Takes a block of rank 0's spool, if there is one, and writes its payload; where it is, and its generation.
fn take_and_write(w: World, payload: usize) -> Option<(u64, u32)> {
    let spool = &w.endpoint(0).spool;
    let block = spool.take(COMM_WORLD, payload, 0)?;
    shadow::writes(spool.bytes(block.at).wrapping_add(128), payload);
    Some((block.at, block.generation))
}

/// The only page, of small blocks, is given back and taken for larger ones, while another thread looks for a small block in it. Either
/// it has one, or the page is the other's.
#[test]
fn a_page_changes_its_size_under_a_look() {
    let terms = Terms { pages: 1, preemptions: 3, ..Terms::default() };
    model("a_page_changes_its_size_under_a_look", terms, |w| {
        let spool = &w.endpoint(0).spool;
        let before = w.spawn(0, move || spool.take(COMM_WORLD, 100, 0).is_some_and(|block| spool.give_back(block)));
        assert!(before.join().expect("the first use"));
        let a = w.spawn(0, move || take_and_write(w, 300));
        let b = w.spawn(0, move || take_and_write(w, 100));
        a.join().expect("who wants a large block");
        b.join().expect("who wants a small block");
    });
}

/// A small block is given back when its receiver has read it; then its page serves larger ones.
#[test]
fn a_page_that_was_read() {
    model("a_page_that_was_read", Terms { pages: 1, preemptions: 3, ..Terms::default() }, |w| {
        let spool = &w.endpoint(0).spool;
        let block = w.spawn(0, move || spool.take(COMM_WORLD, 100, 0).expect("a block")).join().expect("the first use");
        let reads = w.spawn(1, move || {
            shadow::reads(spool.bytes(block.at).wrapping_add(128), 100);
            spool.block(block.at).done.store(block.generation, Ordering::Release);
        });
        let gives = w.spawn(0, move || spool.is_done(block) && spool.give_back(block));
        let wants = w.spawn(0, move || take_and_write(w, 300));
        reads.join().expect("rank 1");
        gives.join().expect("rank 0");
        wants.join().expect("rank 0, its other thread");
    });
}
