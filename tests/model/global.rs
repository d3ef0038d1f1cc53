//! Global memory: uses of a key against the end of its registration; commands, replies, and the sleep of who waits for them.

use crate::stage::{Buffer, model};
use fmpl::base::atomics::{AtomicU64, Ordering, fence, spin_loop};
use fmpl::p2p::any_source::model::SLOTS;
use fmpl::p2p::any_source::ring::{Claimed, Ring};
use fmpl::p2p::endpoint::WORLD_EPOCH;
use fmpl::p2p::model::{Terms, World};
use fmpl::rma::model::{KEY, uses, with_use};
use fmpl::rma::record::{DelegatedCopy, Entry};

/// Rank 0 reads what rank 1 has registered, if it is; rank 1 ends the registration and has the memory to itself. `threads`: of rank 0.
fn ends_a_registration(name: &'static str, threads: usize) {
    model(name, Terms { preemptions: 3, ..Terms::default() }, move |w| {
        let entry = move || w.window(1).entry(KEY as usize);
        let readers: Vec<_> = (0..threads)
            .map(|_| {
                w.spawn(0, move || {
                    with_use(w.window(0), 1, || {
                        // As `Rma::resolve` does.
                        if entry().life.load(Ordering::Acquire) & Entry::VALID != 0 {
                            Buffer::new(w, 1, 0, 8).is_read();
                        }
                    })
                })
            })
            .collect();
        let owner = w.spawn(1, move || {
            // As `Rma::clear_entry` does.
            entry().life.store(0, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            while uses(w.window(0), 1) {
                spin_loop();
            }
            Buffer::new(w, 1, 0, 8).fill(7);
        });
        readers.into_iter().for_each(|r| r.join().expect("rank 0"));
        owner.join().expect("rank 1");
    });
}

#[test]
fn global_registration_ends() {
    ends_a_registration("global_registration_ends", 1);
}

#[test]
fn global_two_uses_end() {
    ends_a_registration("global_two_uses_end", 2);
}

fn ring(w: World) -> Ring {
    Ring::new(w.ring(1), SLOTS, WORLD_EPOCH)
}

/// Rank 0 has rank 1 do something, which sleeps until a command comes; rank 0 sleeps until the reply is there.
#[test]
fn global_command_and_reply() {
    model("global_command_and_reply", Terms { sleeps: true, ..Terms::default() }, |w| {
        let asks = w.spawn(0, move || {
            // What the command is about.
            let buffer = Buffer::new(w, 0, 0, 8).fill(3);
            let ring = ring(w);
            let Claimed::Ticket(ticket) = ring.claim(&AtomicU64::new(0), |_| ()) else { panic!("there is room") };
            ring.publish(ticket, 0, buffer.run(8));
            w.window(1).wake();
            loop {
                let (word, value) = w.window(0).answered(0);
                if word == 5 << 8 {
                    assert_eq!(value, 77);
                    break;
                }
                w.window(0).sleep(|| if w.window(0).answered(0).0 == 0 { u64::MAX } else { 0 });
            }
            // What the command did is there.
            Buffer::new(w, 1, 512, 8).holds(9, 8);
        });
        let serves = w.spawn(1, move || {
            let (ring, copy) = (ring(w), Buffer::new(w, 1, 0, 8));
            let came = loop {
                match ring.arrival(0) {
                    Some(came) => break came,
                    None => w.window(1).sleep(|| if ring.arrival(0).is_none() { u64::MAX } else { 0 }),
                }
            };
            ring.deliver(0, came.kind, copy.run(8));
            copy.holds(3, 8);
            ring.free(1);
            Buffer::new(w, 1, 512, 8).fill(9);
            w.window(0).answer(0, 5 << 8, 77);
        });
        asks.join().expect("rank 0");
        serves.join().expect("rank 1");
    });
}

/// Rank 0 asks rank 1 for a copy, and takes that back if rank 1 has not begun with it.
#[test]
fn global_delegated_copy() {
    model("global_delegated_copy", Terms::default(), |w| {
        let asks = w.spawn(0, move || {
            let (buffer, copy, asker) = (Buffer::new(w, 0, 0, 8).fill(3), w.window(1).delegated(), 1 << 32);
            assert!(copy.ask(asker, 0, 0, 8));
            let mut looks = 0;
            loop {
                match copy.state() {
                    DelegatedCopy::DONE => break,
                    DelegatedCopy::ASKED if looks > 0 && copy.withdraw(asker) => {
                        // The memory is the asker's alone again.
                        buffer.fill(5);
                        return;
                    }
                    _ => spin_loop(),
                }
                looks += 1;
            }
            assert_eq!(copy.clear(), 0);
            Buffer::new(w, 1, 512, 8).holds(3, 8);
        });
        let runs = w.spawn(1, move || {
            for _ in 0..2 {
                if let Some([taken, ..]) = w.window(1).delegated().take() {
                    Buffer::new(w, 0, 0, 8).holds(3, 8);
                    Buffer::new(w, 1, 512, 8).fill(3);
                    w.window(1).delegated().done(taken, 0);
                    return;
                }
                spin_loop();
            }
        });
        asks.join().expect("rank 0");
        runs.join().expect("rank 1");
    });
}
