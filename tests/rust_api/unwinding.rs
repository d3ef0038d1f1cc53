//! What becomes of a panic in a function that the library calls: it stays with the call that it belongs to, whatever thread moved that on,
//! and the other ranks are told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fmpl::{Code, Comm, MaxVal, Sum};

use crate::{filled, on_ranks};

const WORDS: usize = 1 << 16;

/// What a panic says.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().expect("the panic of the function, not another")
}

/// Runs what is left by a panic of a function; what that says.
fn left_by<R>(call: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).err().expect("left by a panic");
    said(&*panic).to_owned()
}

/// The error of a rank because the function of another one has panicked.
fn is_told<R: std::fmt::Debug>(result: fmpl::Result<R>, rank: usize) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::Peer);
    assert!(error.detail().contains(&format!("the function of rank {rank} has panicked")), "{error}");
}

on_ranks!(a_panic_does_not_leave_the_receive_of_another_thread, [2], 8, |_job, world| {
    if world.rank() == 1 {
        let mut v = vec![2.0f64; 1000];
        let called = world.scope(|s| {
            // Rank 0 has something to combine from here on.
            let call = s.iallreduce(&mut v, Sum)?;
            world.recv(&mut [0u8], 0, 5)?;
            thread::sleep(Duration::from_millis(50));
            world.send(&filled(WORDS, 1), 0, 0)?;
            call.wait()
        });
        // It may have had all that it needed before the panic.
        if called.is_err() {
            is_told(called, 0);
        }
        return Ok(());
    }
    let (begun, over, panics) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|threads| {
        threads.spawn(|| {
            while !begun.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            let mut data = vec![7; WORDS];
            world.send(&[1u8], 1, 5).unwrap();
            let received = catch_unwind(AssertUnwindSafe(|| world.recv(&mut data, 1, 0).unwrap().len));
            over.store(true, Ordering::SeqCst);
            assert!(received.is_ok_and(|len| len == WORDS), "the panic of another thread's call came out of a receive");
            assert_eq!(data, filled(WORDS, 1));
        });
        let mut v = vec![1.0f64; 1000];
        let left = left_by(|| {
            world.scope(|s| {
                let call = s.iallreduce(&mut v, |_: f64, _: f64| -> f64 {
                    panics.fetch_add(1, Ordering::SeqCst);
                    panic!("on purpose")
                })?;
                begun.store(true, Ordering::SeqCst);
                // This thread computes, and the other one moves the call on.
                while !over.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                call.wait()
            })
        });
        assert_eq!((left.as_str(), panics.load(Ordering::SeqCst)), ("on purpose", 1));
    });
});

/// Makes a call whose function panics on one rank, if it combines something there. Was this rank left by the panic?
fn ended(call: impl FnOnce() -> fmpl::Result<()>, guilty: usize, me: usize) -> bool {
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(panic) => {
            assert_eq!((me, said(&*panic)), (guilty, "on purpose"));
            true
        }
        // The others may have had all that they needed.
        Ok(done) => {
            if let Err(error) = done {
                is_told::<()>(Err(error), guilty);
            }
            false
        }
    }
}

/// Does one of the ranks say yes?
fn any(world: Comm<'_>, yes: bool) -> fmpl::Result<bool> {
    let mut most = [yes as i32];
    world.allreduce(&mut most, MaxVal)?;
    Ok(most[0] == 1)
}

/// What a rank does with a call whose function panics on it.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Waited,
    Tested,
    Dropped,
    Forgotten,
    WithAnError,
    WithAnotherPanic,
}

fn reduced(world: Comm<'_>, v: &mut [f64], panics: Option<&AtomicBool>, how: Ends) -> fmpl::Result<()> {
    let function = move |a: f64, b: f64| {
        let Some(panicked) = panics else { return a + b };
        panicked.store(true, Ordering::SeqCst);
        panic!("on purpose")
    };
    world.scope(|s| {
        let mut call = s.iallreduce(v, function)?;
        match how {
            Ends::Waited => call.wait(),
            Ends::Tested => {
                while !call.test()? {
                    thread::yield_now();
                }
                Ok(())
            }
            Ends::Dropped => {
                drop(call);
                Ok(())
            }
            Ends::Forgotten => {
                std::mem::forget(call);
                Ok(())
            }
            Ends::WithAnError => Err(fmpl::Error::new(Code::Argument, "mine")),
            Ends::WithAnotherPanic => panic!("another"),
        }
    })
}

on_ranks!(a_pending_call_is_left_by_its_own_panic, [2, 3], 4, |_job, world| {
    let ways = [Ends::Waited, Ends::Tested, Ends::Dropped, Ends::Forgotten, Ends::WithAnError, Ends::WithAnotherPanic];
    let mut panics = 0;
    // In a line, in cells, in slices, and out of the others' memory.
    for (k, len) in [1, 100, 5000, 40_000, 1_000_000].into_iter().enumerate() {
        for (n, how) in ways.into_iter().enumerate() {
            let communicator = world.duplicate()?;
            let (comm, guilty) = (communicator.comm(), (k + n) % world.size());
            let mut v = vec![1.0; len];
            let panicked = AtomicBool::new(false);
            let me = world.rank();
            if me == guilty && matches!(how, Ends::WithAnotherPanic) {
                assert_eq!(left_by(|| reduced(comm, &mut v, Some(&panicked), how)), "another");
            } else if me == guilty {
                let left = catch_unwind(AssertUnwindSafe(|| reduced(comm, &mut v, Some(&panicked), how)));
                match left {
                    Err(panic) => assert_eq!((said(&*panic), panicked.load(Ordering::SeqCst)), ("on purpose", true)),
                    Ok(_) => assert!(!panicked.load(Ordering::SeqCst), "{how:?} of {len}"),
                }
            } else {
                ended(|| reduced(comm, &mut v, None, Ends::Waited), guilty, me);
            }
            // The communicator can do no more that all of it do, at once and everywhere; its messages go on.
            if any(world, panicked.load(Ordering::SeqCst))? {
                panics += 1;
                is_told(comm.barrier(), guilty);
            }
            let (next, last) = ((comm.rank() + 1) % comm.size(), (comm.rank() + comm.size() - 1) % comm.size());
            let mut data = vec![0; 1000];
            comm.sendrecv(&filled(1000, comm.rank()), next, 3, &mut data, last, 3)?;
            assert_eq!(data, filled(1000, last), "{how:?} of {len}");
            world.barrier()?;
            drop(communicator);
        }
    }
    // Of the others the function had nothing to do on this rank.
    assert!(panics >= 10, "{panics} of 30");
});

on_ranks!(a_panic_in_every_call_with_a_function, [2, 3], 1, |_job, world| {
    let (me, size) = (world.rank(), world.size());
    for len in [1usize, 3000, 400_000] {
        for call in 0..5 {
            let communicator = world.duplicate()?;
            let comm = communicator.comm();
            // The last rank combines something in each of them, but not in a reduce to another one.
            let guilty = size - 1;
            let function = |a: f64, b: f64| if me == guilty { panic!("on purpose") } else { a + b };
            let (mut v, all) = (vec![1.0; len], vec![1.0; len * size]);
            let mut made = || match call {
                0 => comm.reduce(&mut v, function, guilty),
                1 => comm.allreduce(&mut v, function),
                2 => comm.scan(&mut v, function),
                3 => comm.exscan(&mut v, function),
                _ => comm.reduce_scatter(&all, &mut v, function),
            };
            let left = ended(&mut made, guilty, me);
            // Of an allreduce, and of a long reduce, it may combine nothing: who has the time takes the pieces, and on few cores one takes all.
            if any(world, left)? {
                is_told(comm.barrier(), guilty);
            } else {
                assert!(call == 1 || call == 0 && len > 3000, "call {call} of {len}");
            }
            world.barrier()?;
        }
    }
});

on_ranks!(a_panic_in_a_group_of_a_moment_is_the_groups_alone, [3, 4], 2, |_job, world| {
    let me = world.rank();
    for len in [1usize, 3000, 400_000] {
        for (guilty, root) in [(0, 0), (0, 2), (2, 0)] {
            let function = |a: f64, b: f64| if me == guilty { panic!("on purpose") } else { a + b };
            // Of three members 0 combines twice; of four, 2 once, too.
            if guilty == 2 && world.size() < 4 {
                continue;
            }
            let mut v = vec![1.0; len];
            let mut made = || world.mcast_reduce(&mut v, function, 0..world.size(), root);
            if me == guilty {
                assert_eq!(left_by(made), "on purpose");
            } else if me == root {
                let error = made().unwrap_err();
                assert!(error.code() == Code::Peer && error.detail().contains("mcast_reduce"), "{error}");
            } else {
                made()?;
            }
            world.barrier()?;
        }
    }
});

/// Panics when it goes.
struct Fuse(&'static str);

impl Drop for Fuse {
    fn drop(&mut self) {
        std::panic::panic_any(self.0);
    }
}

on_ranks!(what_a_function_owns_may_panic_when_it_goes, [2], 3, |_job, world| {
    let peer = 1 - world.rank();
    let (mut v, mut data, mut after) = ([1.0; 100], vec![0; WORDS], vec![0; WORDS]);
    let outgoing = filled(WORDS, world.rank());
    for waits in [true, false] {
        let fuse = Fuse("a fuse");
        let left = left_by(|| {
            world.scope(|s| {
                let call = s.iallreduce(&mut v, move |a: f64, b: f64| {
                    let _whole = &fuse;
                    a + b
                })?;
                std::mem::forget(s.irecv(&mut data, peer, 0)?);
                std::mem::forget(s.isend(&outgoing, peer, 0)?);
                if waits {
                    call.wait()?;
                }
                Ok(())
            })
        });
        assert_eq!(left, "a fuse");
        assert!(waits || data == filled(WORDS, peer), "what was lent to the scope is complete before it is left");
        // A receive that was withdrawn has left its message.
        if data != filled(WORDS, peer) {
            world.recv(&mut after, peer, 0)?;
            assert_eq!(after, filled(WORDS, peer));
        }
        data.fill(0);
        world.barrier()?;
    }
    let left = left_by(|| {
        let fuse = Fuse("a fuse");
        world.allreduce(&mut v, move |a: f64, b: f64| {
            let _whole = &fuse;
            a + b
        })
    });
    assert_eq!(left, "a fuse");
    world.barrier()?;
});
