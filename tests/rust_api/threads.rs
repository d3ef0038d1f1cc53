//! Threads: on different indices at once, and kept apart on the same.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fmpl::Code;

use crate::{filled, on_ranks};

const LENGTHS: [usize; 6] = [1, 2, 40, 200, 1200, 9000];

on_ranks!(four_threads_on_indices_of_their_own, [2], 64, |_job, world| {
    let peer = 1 - world.rank();
    thread::scope(|threads| {
        for t in 0..4usize {
            threads.spawn(move || {
                // Neighbouring indices, so that whatever they share is shared by threads.
                for k in 0..600usize {
                    let len = LENGTHS[(k + t) % LENGTHS.len()];
                    let (index, mut data) = (4 * (k % 3) + t, vec![0; len]);
                    world.sendrecv(&filled(len, k + t + world.rank()), peer, index, &mut data, peer, index).unwrap();
                    assert_eq!(data, filled(len, k + t + peer), "thread {t}, message {k}");
                }
            });
        }
    });
});

on_ranks!(the_two_halves_of_channels_in_threads_of_their_own, [2], 4, |_job, world| {
    let peer = 1 - world.rank();
    thread::scope(|threads| {
        for index in 0..2usize {
            let (mut sender, mut receiver) = world.channel(peer, index).unwrap().split();
            threads.spawn(move || {
                for k in 0..1000usize {
                    sender.send(&filled(LENGTHS[k % LENGTHS.len()], k)).unwrap();
                }
            });
            threads.spawn(move || {
                let mut data = vec![0; 9000];
                for k in 0..1000usize {
                    let len = receiver.recv(&mut data).unwrap().len;
                    assert_eq!(data[..len], filled(LENGTHS[k % LENGTHS.len()], k), "index {index}, message {k}");
                }
            });
        }
    });
});

on_ranks!(scopes_in_threads, [2], 40, |_job, world| {
    let peer = 1 - world.rank();
    thread::scope(|threads| {
        for t in 0..4usize {
            threads.spawn(move || {
                for k in 0..100usize {
                    let len = LENGTHS[(k + t) % LENGTHS.len()];
                    let outgoing = filled(len, k);
                    let mut incoming = vec![vec![0; len]; 3];
                    world
                        .scope(|s| {
                            for (n, data) in incoming.iter_mut().enumerate() {
                                std::mem::forget(s.irecv(data, peer, 10 * t + n)?);
                            }
                            (0..3).try_for_each(|n| s.isend(&outgoing, peer, 10 * t + n).map(drop))
                        })
                        .unwrap();
                    assert!(incoming.iter().all(|data| *data == outgoing));
                }
            });
        }
    });
});

on_ranks!(threads_on_one_index_are_told_and_nothing_is_lost, [2], 2, |_job, world| {
    // Two threads send numbers on the same index and repeat what was refused; all arrive, each once.
    const EACH: usize = 3000;
    if world.rank() == 0 {
        let refused = AtomicUsize::new(0);
        thread::scope(|threads| {
            for t in 0..2usize {
                let refused = &refused;
                threads.spawn(move || {
                    for k in 0..EACH {
                        while let Err(error) = world.send(&[(t * EACH + k) as u64], 1, 0) {
                            assert_eq!(error.code(), Code::Busy, "{error}");
                            refused.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        println!("{} times refused", refused.into_inner());
    } else {
        let (got, left) = (std::sync::Mutex::new(vec![0u8; 2 * EACH]), AtomicUsize::new(2 * EACH));
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while left.load(Ordering::Acquire) > 0 {
                        // Takes what is there and waits for nothing, so that nobody is left waiting when all have come.
                        let mut number = [0u64];
                        let taken = world.scope(|s| s.irecv(&mut number, 0, 0)?.cancel());
                        match taken {
                            Ok(Some(_)) => {
                                got.lock().unwrap()[number[0] as usize] += 1;
                                left.fetch_sub(1, Ordering::AcqRel);
                            }
                            Ok(None) => thread::yield_now(),
                            Err(error) => assert_eq!(error.code(), Code::Busy, "{error}"),
                        }
                    }
                });
            }
        });
        assert!(got.into_inner().unwrap().iter().all(|n| *n == 1));
    }
});

on_ranks!(who_holds_an_index_holds_it_alone, [2], 8, |_job, world| {
    let peer = 1 - world.rank();
    let busy = |result: fmpl::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::Busy);
        assert!(error.detail().contains(&format!("peer {peer}")), "{error}");
    };
    let mut data = [0u64; 4];
    {
        let _sender = world.sender(peer, 3)?;
        busy(world.send(&[1], peer, 3));
        busy(world.sender(peer, 3).map(drop));
        busy(world.channel(peer, 3).map(drop));
        assert_eq!(world.sendbuf_check().unwrap_err().code(), Code::Busy);
        // A channel that could not be made has claimed nothing.
        let _receiver = world.receiver(peer, 3)?;
        busy(world.recv(&mut data, peer, 3).map(drop));
        busy(world.probe(peer, 3).map(drop));
        busy(world.sendrecv(&[1], peer, 4, &mut data, peer, 3).map(drop));
        busy(world.recv_any_index(&mut data, peer).map(drop));
    }
    // A request holds its index, and one of any index all of the peer's.
    let mut second = [0u64; 4];
    world.scope(|s| {
        let request = s.irecv(&mut data, peer, 3)?;
        busy(world.recv(&mut [0u64], peer, 3).map(drop));
        busy(s.irecv(&mut second, peer, 3).map(drop));
        request.cancel()?;
        Ok(())
    })?;
    world.scope(|s| {
        let request = s.irecv_any_index(&mut data, peer)?;
        busy(world.recv(&mut second, peer, 5).map(drop));
        busy(world.recv_any_index(&mut second, peer).map(drop));
        request.cancel()?;
        Ok(())
    })?;
    // And all of it is free again.
    world.barrier()?;
    world.sendrecv(&[world.rank() as u64; 4], peer, 3, &mut data, peer, 3)?;
    assert_eq!(data, [peer as u64; 4]);
    assert_eq!(world.sendbuf_check()?.1, 0);
});

on_ranks!(one_thread_at_a_time_in_the_barrier, [2], 1, |_job, world| {
    if world.rank() == 1 {
        // One of the two stays in the barrier until the other has been refused and has told rank 0, which then comes too.
        let come = move || match world.barrier() {
            Ok(()) => 0,
            Err(error) => {
                assert_eq!(error.code(), Code::Busy);
                world.send(&[1u8], 0, 0).unwrap();
                1
            }
        };
        let refused = thread::scope(|threads| {
            let other = threads.spawn(come);
            come() + other.join().unwrap()
        });
        assert_eq!(refused, 1);
    } else {
        world.recv(&mut [0u8], 1, 0)?;
        world.barrier()?;
    }
});

/// Looks at an index, as another thread than the one that has a request there, until it is told to stop.
fn looked_at_meanwhile(look: impl Fn() + Sync, work: impl FnOnce()) {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                look();
            }
        });
        work();
        stop.store(true, Ordering::Relaxed);
    });
}

on_ranks!(a_request_is_not_lost_by_a_look_of_another_thread, [2], 2, |_job, world| {
    const MESSAGES: usize = 300;
    let peer = 1 - world.rank();
    if world.rank() == 1 {
        for k in 0..5 * MESSAGES {
            // Each is awaited before it is sent, as a rule.
            world.recv(&mut [0u8], peer, 0)?;
            if k % 3 != 0 {
                thread::yield_now();
            }
            world.send_any(&filled(100, k), peer, 0)?;
        }
        return Ok(());
    }
    let look = || match world.probe_any(0) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.code(), Code::Busy, "{error}"),
    };
    let mut data = vec![0; 100];
    looked_at_meanwhile(look, || {
        for k in 0..5 * MESSAGES {
            let mut begun = false;
            while !begun {
                // A look at this moment is another thread's use of the index.
                let ended = world.scope(|s| {
                    let mut call = s.irecv_any(&mut data, 0)?;
                    begun = true;
                    world.send(&[1u8], peer, 0)?;
                    match k % 5 {
                        0 => assert_eq!(call.wait()?.len, 100),
                        1 => while call.test()?.is_none() {},
                        // Left to the scope.
                        2 => drop(call),
                        3 => std::mem::forget(call),
                        _ => while !call.cancel()? && call.test()?.is_none() {},
                    }
                    Ok(())
                });
                if let Err(error) = ended {
                    assert!(!begun && error.code() == Code::Busy, "message {k}: {error}");
                }
            }
            if data != filled(100, k) {
                assert_eq!(k % 5, 4, "only what was cancelled is left over");
                while let Err(error) = world.recv_any(&mut data, 0) {
                    assert_eq!(error.code(), Code::Busy, "{error}");
                }
            }
            assert_eq!(data, filled(100, k));
        }
    });
});
