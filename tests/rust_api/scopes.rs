//! Requests, and all the ways in which a scope ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fmpl::{Code, Error, Mode, Strided, StridedMut};

use crate::{filled, on_ranks, start};

on_ranks!(begin_compute_wait, [1, 2, 4], 2, |_job, world| {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in [1, 100, 5000, 300_000] {
        let (outgoing, mut incoming) = (filled(len, rank), vec![0; len]);
        let sum = world.scope(|s| {
            let arriving = s.irecv(&mut incoming, last, 0)?;
            let leaving = s.isend(&outgoing, next, 0)?;
            // What is sent may still be read.
            let sum = outgoing.iter().fold(0u64, |a, b| a.wrapping_add(*b));
            let (data, received) = arriving.wait_slice()?;
            assert_eq!((received.len, received.index), (len, 0));
            assert_eq!(data, filled(len, last));
            leaving.wait()?;
            Ok(sum)
        })?;
        assert_eq!(sum, outgoing.iter().fold(0u64, |a, b| a.wrapping_add(*b)));
        assert_eq!(incoming, filled(len, last));
    }
});

on_ranks!(requests_are_tested_until_they_are_over, [2], 2, |_job, world| {
    let peer = 1 - world.rank();
    let (outgoing, mut incoming) = (filled(50_000, world.rank()), vec![0; 50_000]);
    world.scope(|s| {
        let mut arriving = s.irecv(&mut incoming, peer, 0)?;
        let mut leaving = s.isend(&outgoing, peer, 0)?;
        let (mut sent, mut got) = (false, None);
        while !sent || got.is_none() {
            sent |= leaving.test()?;
            got = got.or(arriving.test()?);
        }
        // Over is over.
        assert!(leaving.test()?);
        assert_eq!(arriving.test()?.map(|r| r.len), Some(50_000));
        assert_eq!(arriving.wait()?.len, 50_000);
        leaving.wait()
    })?;
    assert_eq!(incoming, filled(50_000, peer));
});

on_ranks!(what_others_wait_for_is_completed_by_the_scope_before_the_rest, [3], 2, |job, world| {
    let (mut last, mut of_any, mut of_master) = ([0u64], [0u64], [0u64]);
    world.scope(|s| {
        match world.rank() {
            0 => return world.mcast(&[5u64], [1, 2]).map(drop),
            1 => {
                let _ = s.irecv(&mut last, 2, 0)?;
                let _ = s.irecv_any(&mut of_any, 1)?;
                let _ = s.mcast_irecv(&mut of_master)?;
            }
            _ => {
                job.set_send_buffer(1 << 20, Mode::Synchronous)?;
                world.mcast_recv(&mut of_master)?;
                world.send_any(&[6u64], 1, 1)?;
                world.send(&[7u64], 1, 0)?;
            }
        }
        Ok(())
    })?;
    if world.rank() == 1 {
        assert_eq!((last, of_any, of_master), ([7], [6], [5]));
    }
});

on_ranks!(forgotten_and_dropped_requests_are_completed_by_the_scope, [2], 200, |_job, world| {
    let peer = 1 - world.rank();
    // More than a scope keeps in itself; every third is forgotten, every third dropped, every third waited for out of order.
    for len in [10, 3000] {
        let outgoing: Vec<Vec<u64>> = (0..150).map(|k| filled(len, k + world.rank())).collect();
        let mut incoming = vec![vec![0; len]; 150];
        world.scope(|s| {
            let mut waited = Vec::new();
            for (k, data) in incoming.iter_mut().enumerate() {
                let request = s.irecv(data, peer, k)?;
                match k % 3 {
                    0 => std::mem::forget(request),
                    1 => drop(request),
                    _ => waited.push(request),
                }
            }
            for (k, data) in outgoing.iter().enumerate() {
                let request = s.isend(data, peer, k)?;
                if k % 2 == 0 {
                    std::mem::forget(request);
                }
            }
            waited.into_iter().rev().try_for_each(|request| request.wait().map(drop))
        })?;
        assert!(incoming.iter().enumerate().all(|(k, data)| *data == filled(len, k + peer)));
    }
});

on_ranks!(shapes_lists_channels_and_any_index, [2], 6, |_job, world| {
    let peer = 1 - world.rank();
    let from = filled(4000, world.rank());
    let expected = filled(4000, peer);
    let (mut block, mut a, mut b, mut any, mut by) = (vec![0; 4000], [0; 30], [0; 70], [0; 500], vec![0; 2000]);
    let mut channel = world.channel(peer, 4)?;
    let (sender, receiver) = channel.both();
    let mut parts = [&mut a[..], &mut b[..]];
    world.scope(|s| {
        let block = s.irecv_block(StridedMut::new(&mut block, 40, 50, 100)?, peer, 0)?;
        let list = s.irecv_list(&mut parts, peer, 1)?;
        let by = s.irecv_by(receiver, &mut by)?;
        s.isend_block(Strided::new(&from, 40, 50, 100)?, peer, 0)?.wait()?;
        s.isend_list(&[&from[..20], &from[20..100]], peer, 1)?.wait()?;
        s.isend_by(sender, &from[..2000])?.wait()?;
        assert_eq!((block.wait()?.len, list.wait()?.len, by.wait()?.len), (2000, 100, 2000));
        Ok(())
    })?;
    for (k, x) in block.iter().enumerate() {
        assert_eq!(*x, if k % 100 < 50 { expected[k] } else { 0 });
    }
    assert!(a == expected[..30] && b == expected[30..100] && by == expected[..2000]);
    drop(channel);

    world.scope(|s| {
        let request = s.irecv_any_index(&mut any, peer)?;
        let leaving = s.isend(&from[..500], peer, 3 + world.rank())?;
        let received = request.wait()?;
        leaving.wait()?;
        assert_eq!((received.len, received.index), (500, 3 + peer));
        Ok(())
    })?;
    assert_eq!(any, expected[..500]);
});

on_ranks!(cancelled_receives_give_their_buffer_and_index_back, [2], 3, |_job, world| {
    let mut data = [0; 1000];
    if world.rank() == 1 {
        let cancelled = world.scope(|s| s.irecv(&mut data, 0, 0)?.cancel())?;
        assert_eq!(cancelled, None);
        // Any index too.
        assert_eq!(world.scope(|s| s.irecv_any_index(&mut data, 0)?.cancel())?, None);
        world.barrier()?;
        // The message is there, so it is too late.
        world.barrier()?;
        let mut other = [0; 1000];
        let too_late = world.scope(|s| s.irecv(&mut other, 0, 0)?.cancel())?;
        assert_eq!(too_late.map(|r| r.len), Some(1000));
        assert_eq!(other[..], filled(1000, 5));
        assert_eq!(data, [0; 1000], "nothing went into the buffer of the cancelled receive");
        world.recv(&mut data, 0, 0)?;
        assert_eq!(data[..], filled(1000, 6));
    } else {
        world.barrier()?;
        world.send(&filled(1000, 5), 1, 0)?;
        world.barrier()?;
        world.send(&filled(1000, 6), 1, 0)?;
    }
});

on_ranks!(a_panic_leaves_the_scope_with_nothing_under_way, [2], 20, |_job, world| {
    let peer = 1 - world.rank();
    for len in [2, 2000, 200_000] {
        let outgoing = filled(len, world.rank());
        let mut incoming = vec![vec![0; len]; 12];
        let panic = catch_unwind(AssertUnwindSafe(|| {
            world.scope(|s| {
                for (k, data) in incoming.iter_mut().enumerate() {
                    std::mem::forget(s.irecv(data, peer, k)?);
                }
                // A send cannot be withdrawn: the scope waits until the spool has it.
                std::mem::forget(s.isend(&outgoing, peer, 15)?);
                if len > 0 {
                    panic!("on purpose");
                }
                Ok(())
            })
        }));
        assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
        drop(incoming);
        world.barrier()?;
        // All indices are free again, and what was sent arrives.
        let mut data = vec![0; len];
        world.recv(&mut data, peer, 15)?;
        assert_eq!(data, filled(len, peer));
        for k in 0..12 {
            world.sendrecv(&filled(len, k), peer, k, &mut data, peer, k)?;
            assert_eq!(data, filled(len, k));
        }
        world.barrier()?;
    }
});

on_ranks!(an_error_ends_the_scope_like_a_panic, [2], 4, |_job, world| {
    let peer = 1 - world.rank();
    let mut data = vec![0u64; 5000];
    let error = world
        .scope(|s| {
            std::mem::forget(s.irecv(&mut data, peer, 0)?);
            Err::<(), _>(Error::new(Code::Argument, "mine"))
        })
        .unwrap_err();
    assert_eq!(error.detail(), "mine");
    world.barrier()?;
    world.sendrecv(&filled(5000, 1), peer, 0, &mut data, peer, 0)?;
    assert_eq!(data, filled(5000, 1));

    // What the scope completes by itself may fail, and is not lost: one is too long, the other arrives.
    let (mut short, mut other) = ([0; 3], [0; 1000]);
    world.send(&filled(1000, 2), peer, 1)?;
    world.send(&filled(1000, 3), peer, 2)?;
    let error = world.scope(|s| {
        std::mem::forget(s.irecv(&mut short, peer, 1)?);
        std::mem::forget(s.irecv(&mut other, peer, 2)?);
        Ok(())
    });
    assert_eq!(error.unwrap_err().code(), Code::Truncate);
    assert!(short[..] == filled(1000, 2)[..3] && other[..] == filled(1000, 3));
});

/// A rank of a job in which another is killed.
fn with_a_dead_peer(job: &fmpl::Job) {
    let world = job.world();
    let mut data = vec![0u64; 100_000];
    if world.rank() == 1 {
        world.recv(&mut data, 0, 1).unwrap();
        // SAFETY: the process kills itself.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    // The launcher ends the others too; this one wants to see its error first.
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    let big = filled(100_000, 4);
    let result = world.scope(|s| {
        std::mem::forget(s.irecv(&mut data, 1, 0)?);
        s.isend(&big, 1, 1)?.wait()?;
        Ok(())
    });
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::Peer, "{error}");
    println!("rank 0 goes on: {error}");
}

#[test]
fn a_dead_peer_ends_the_wait_of_a_scope() {
    if crate::as_rank().is_some() {
        let job = fmpl::init(2).unwrap();
        with_a_dead_peer(&job);
        // Finalize names the dead peer too.
        assert_eq!(job.finalize().unwrap_err().code(), Code::Peer);
        return;
    }
    let output = start(concat!(module_path!(), "::a_dead_peer_ends_the_wait_of_a_scope"), 2);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("rank 0 goes on") && said.contains("rank 1 has died"), "{output:?}");
}

on_ranks!(
    /// Each other rank sends to rank 0, late by its own time; a receive that is truncated is told of at its place, and keeps none of the others.
    a_scope_waits_for_any_of_several_receives, [2, 3, 4], 5, |_job, world| {
        if world.rank() != 0 {
            std::thread::sleep(std::time::Duration::from_millis(if world.rank() == 1 { 60 } else { 0 }));
            let numbers = [world.rank() as u32; 2];
            world.send(if world.rank() == 2 { &numbers[..] } else { &numbers[..1] }, 0, 4)?;
            return Ok(());
        }
        let mut got = vec![0u32; world.size()];
        let others = 1..world.size();
        let mut ended = Vec::new();
        world.scope(|s| {
            let mut open = Vec::new();
            for (rank, into) in got.chunks_mut(1).enumerate().skip(1) {
                open.push(s.irecv(into, rank, 4)?);
            }
            while let Some((at, outcome)) = s.wait_any(&mut open) {
                match outcome {
                    Ok(received) => assert_eq!((received.len, received.index), (1, 4)),
                    Err(error) => assert_eq!((at + 1, error.code()), (2, fmpl::Code::Truncate)),
                }
                ended.push(at + 1);
            }
            Ok(())
        })?;
        assert!(got.iter().enumerate().all(|(rank, n)| rank == 0 || *n == rank as u32));
        if world.size() == 4 {
            assert_eq!(ended.last(), Some(&1), "the late one comes last: {ended:?}");
        }
        ended.sort_unstable();
        assert!(ended.into_iter().eq(others));
});

on_ranks!(
    /// The others send two messages each, in three rounds that rank 0 opens; it takes all that are there at a time, and then looks until all are.
    a_scope_completes_some_of_several_receives, [2, 3, 4], 3, |job, world| {
        let others = 1..world.size();
        if world.rank() != 0 {
            for index in 0..3 {
                world.send(&[world.rank() as u32, index], 0, index as usize)?;
                world.barrier()?;
            }
            return Ok(());
        }
        let mut got = vec![[0u32; 2]; 3 * world.size()];
        world.scope(|s| {
            let mut open = Vec::new();
            for (at, into) in got.iter_mut().enumerate().skip(3) {
                open.push(s.irecv(into, at / 3, at % 3)?);
            }
            let mut seen = vec![false; open.len()];
            // One of index 1 or 2 cannot come before the round is opened.
            while seen.iter().filter(|seen| **seen).count() < others.len() {
                let some = s.wait_some(&mut open);
                assert!(!some.is_empty());
                for (at, received) in some {
                    assert_eq!((received?.len, at % 3), (2, 0));
                    assert!(!std::mem::replace(&mut seen[at], true));
                }
            }
            assert!(!s.test_all(&mut open)?);
            world.barrier()?;
            world.barrier()?;
            while !s.test_all(&mut open)? {
                job.progress()?;
            }
            assert!(s.wait_some(&mut open).is_empty());
            world.barrier()
        })?;
        assert!(got.iter().enumerate().skip(3).all(|(at, v)| *v == [at as u32 / 3, at as u32 % 3]));
    }
);

on_ranks!(
    /// A message that is too long is told of by its receive, once, and the others come.
    some_of_several_receives_and_all_of_them_have_their_errors, [2], 4, |_job, world| {
        if world.rank() == 1 {
            (0..4).try_for_each(|index| world.send(&[7u8; 4][..if index % 2 == 0 { 4 } else { 1 }], 0, index))?;
            return world.barrier();
        }
        world.barrier()?;
        let mut got = [[0u8; 2]; 4];
        world.scope(|s| {
            let (some, all) = got.split_at_mut(2);
            let begin = |(index, into)| s.irecv::<u8>(into, 1, index);
            let mut some: Vec<_> = some.iter_mut().map(|v| &mut v[..]).enumerate().map(begin).collect::<Result<_, _>>()?;
            let mut all: Vec<_> = (2..).zip(all.iter_mut().map(|v| &mut v[..])).map(begin).collect::<Result<_, _>>()?;
            let mut ended = Vec::new();
            while ended.len() < 2 {
                ended.extend(s.wait_some(&mut some));
            }
            ended.sort_by_key(|(at, _)| *at);
            assert!(matches!(&ended[0], (0, Err(error)) if error.code() == fmpl::Code::Truncate));
            assert!(matches!(&ended[1], (1, Ok(received)) if received.len == 1));
            let mut errors = Vec::new();
            while !s.test_all(&mut all).unwrap_or_else(|error| { errors.push(error.code()); false }) {}
            assert_eq!(errors, [fmpl::Code::Truncate]);
            Ok(())
        })?;
        assert_eq!(got, [[7, 7], [7, 0], [7, 7], [7, 0]]);
    }
);
