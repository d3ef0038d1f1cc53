use fmpl::{Code, Mode};
use std::time::Duration;

use crate::{filled, on_ranks};

on_ranks! {
    /// Rows and columns of a grid, and messages on them and on the world at once, by every kind of call.
    a_grid, [1, 4, 6], 4, |job, world| {
        let (me, wide) = (world.rank(), 2);
        let node = world.split_node(-(me as i32))?;
        assert_eq!((node.size(), node.rank()), (world.size(), world.size() - 1 - me));
        node.free()?;
        if me % 2 == 0 {
            // The even ranks, backwards: they alone call it.
            let even: Vec<usize> = (0..world.size()).step_by(2).rev().collect();
            let some = world.group(&even)?;
            assert_eq!((some.size(), even[some.rank()]), (even.len(), me));
            some.comm().barrier()?;
            assert_eq!(world.group(&[me, me]).unwrap_err().code(), Code::Argument);
        }
        let row = world.split(Some(me / wide), 0)?.expect("a colour");
        let column = world.split(Some(me % wide), -(me as i32))?.expect("a colour");
        assert_eq!(row.rank(), me % wide);
        assert_eq!(column.rank(), column.size() - 1 - me / wide);
        for (number, comm) in [row.comm(), column.comm(), world].into_iter().enumerate() {
            let (rank, size) = (comm.rank(), comm.size());
            let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
            let sent = filled(500, number * 100 + rank);
            let mut got = vec![0u64; 500];
            comm.scope(|s| {
                let arriving = s.irecv(&mut got, last, 1)?;
                s.isend(&sent, next, 1)?.wait()?;
                arriving.wait().map(drop)
            })?;
            assert_eq!(got, filled(500, number * 100 + last));
            let (mut to, mut from) = (comm.sender(next, 2)?, comm.receiver(last, 2)?);
            to.send(&[rank as u64])?;
            let mut one = [0u64];
            from.recv(&mut one)?;
            assert_eq!(one, [last as u64]);
            comm.barrier()?;
        }
        assert_eq!(world.translate(me, &row.comm())?, Some(me % wide));
        assert_eq!(row.comm().translate(row.rank(), &world)?, Some(me));
        if world.size() > 2 {
            assert_eq!(world.translate((me + wide) % world.size(), &row.comm())?, None);
        }
        row.comm().set_send_buffer(1 << 20, Mode::Standard(Duration::from_millis(5)))?;
        row.free()?;
        let pair = column.comm().duplicate()?;
        pair.comm().barrier()?;
        drop(pair);
        column.comm().barrier()?;
        assert!(job.create(None)?.is_none());
        let all = job.create(Some(3))?.expect("a key");
        assert_eq!((all.rank(), all.size()), (me, world.size()));
        assert_eq!(all.comm().send(&[0u8], 100usize, 0).unwrap_err().code(), Code::Rank);
    }
}

on_ranks! {
    /// Multicasts to groups chosen for each, of a communicator with a name, received with tasks and alone.
    multicasts, [1, 3, 4], 2, |job, world| {
        let (me, size) = (world.rank(), world.size());
        let all = world.duplicate()?;
        let comm = all.comm();
        comm.set_name("parameters")?;
        assert_eq!(comm.name()?, "parameters");
        let unknown = comm.mcast(&[0u8], [size]).unwrap_err();
        assert!(unknown.code() == Code::Rank, "{unknown}");
        let ticket = if me == 0 {
            for rank in 1..size {
                comm.send_any(&[rank as u32], rank, 1)?;
            }
            Some(comm.mcast(&[7u32, 8], 0..size)?)
        } else {
            None
        };
        let mut seen = [false; 2];
        for _ in 0..if me == 0 { 1 } else { 2 } {
            let mut data = [0u32; 2];
            let (got, is_multicast) = comm.recv_any_or_mcast(&mut data, 1)?;
            assert!(!std::mem::replace(&mut seen[is_multicast as usize], true));
            assert_eq!(got.source, 0);
            assert_eq!(&data[..got.len], if is_multicast { vec![7, 8] } else { vec![me as u32] });
        }
        if let Some(ticket) = ticket {
            comm.mcast_wait(ticket)?;
        }
        // One that is looked at until it is there: nobody waits for it meanwhile.
        if me == size - 1 {
            let ticket = comm.mcast(&[me], [0, me])?;
            let mut got = [0];
            comm.mcast_recv(&mut got)?;
            assert_eq!(got, [me]);
            while !comm.mcast_test(ticket)? {
                job.progress()?;
            }
        } else if me == 0 {
            let mut got = [0];
            assert_eq!(comm.mcast_recv(&mut got)?.source, size - 1);
            assert_eq!(got, [size - 1]);
        }
        world.barrier()?;
        // Received while other work is done: waited for, looked at, left to the end of the scope, truncated, withdrawn.
        let (mut first, mut second, mut third, mut short) = ([0u64; 4], [0u64; 4], [0u64; 4], [0u64; 2]);
        let sent = |round: u64| -> fmpl::Result<()> {
            match me == size - 1 {
                true => comm.mcast(&[round, 2, 3, 4], 0..size).map(drop),
                false => Ok(()),
            }
        };
        comm.scope(|s| {
            let coming = s.mcast_irecv(&mut first)?;
            assert_eq!(comm.mcast_recv(&mut [0u64]).unwrap_err().code(), Code::Busy);
            sent(1)?;
            let got = coming.wait()?;
            assert_eq!((got.source, got.len), (size - 1, 4));
            let mut coming = s.mcast_irecv(&mut second)?;
            sent(2)?;
            while coming.test()?.is_none() {
                job.progress()?;
            }
            assert_eq!(coming.test().unwrap_err().code(), Code::Request);
            let _left = s.mcast_irecv(&mut third)?;
            sent(3)
        })?;
        assert_eq!((first, second, third), ([1, 2, 3, 4], [2, 2, 3, 4], [3, 2, 3, 4]));
        comm.scope(|s| {
            let coming = s.mcast_irecv(&mut short)?;
            sent(4)?;
            assert_eq!(coming.wait().unwrap_err().code(), Code::Truncate);
            s.mcast_irecv(&mut first)?.cancel()?;
            Ok(())
        })?;
        assert_eq!((short, first), ([4, 2], [1, 2, 3, 4]));
        // An error of the closure withdraws it: nobody sends.
        let left = comm.scope(|s| {
            let _never = s.mcast_irecv(&mut first)?;
            Err::<(), _>(fmpl::Error::new(Code::System, "left"))
        });
        assert_eq!(left.unwrap_err().code(), Code::System);
        world.barrier()?;
    }
}

on_ranks! {
    /// Threads use communicators of their own; the spool is counted over all of them.
    threads_have_their_own, [2], 2, |_job, world| {
        let comms: Vec<_> = (0..3).map(|_| world.duplicate()).collect::<fmpl::Result<_>>()?;
        let peer = 1 - world.rank();
        std::thread::scope(|s| {
            for comm in &comms {
                s.spawn(move || {
                    let comm = comm.comm();
                    for k in 0..300u64 {
                        let mut got = [0u64];
                        comm.sendrecv(&[k], peer, 0, &mut got, peer, 0).unwrap();
                        assert_eq!(got, [k]);
                    }
                });
            }
        });
        let request = comms[0].comm().sender(peer, 0)?;
        assert_eq!(world.sendbuf_check().unwrap_err().code(), Code::Busy);
        drop(request);
        assert_eq!(world.sendbuf_check()?.1, 0);
    }
}

on_ranks! {
    /// Windows as values: each writes its own, all see it; the memory goes when all give the same one back, and not otherwise.
    windows, [1, 2, 4], 2, |_job, world| {
        let (me, size) = (world.rank(), world.size());
        let window = world.shared_window::<u64>(me + 1)?;
        for k in 0..=me {
            assert_eq!(window.part(me).get(k), 0);
            window.part(me).set(k, (me * 10 + k) as u64);
        }
        world.barrier()?;
        for rank in 0..size {
            let part = window.part(rank);
            assert_eq!((part.len(), part.get(rank)), (rank + 1, (rank * 11) as u64));
        }
        world.barrier()?;
        for _ in 0..100 {
            window.part(0).atomic(0).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        world.barrier()?;
        assert_eq!(window.part(0).get(0), 100 * size as u64);
        // Too many at one rank, and values that another's part has not: all are told.
        let many = if me == 0 { usize::MAX / 4 } else { 1 };
        assert_eq!(world.shared_window::<u64>(many).err().unwrap().code(), Code::Memory);
        if size > 1 {
            let odd = if me == 0 { world.shared_window::<u32>(1).err() } else { world.shared_window::<u64>(1).err() };
            assert_eq!(odd.expect("no whole values of 8 bytes").code(), Code::Argument);
        }
        // Each gives another one back: none goes, so what is written into the one cannot come into new memory.
        if size > 1 {
            let other = world.shared_window::<u64>(1)?;
            let (mine, kept) = if me == 0 { (window, other) } else { (other, window) };
            assert_eq!(mine.free().unwrap_err().code(), Code::Argument);
            kept.part(0).set(0, 7);
            assert_eq!(kept.part(0).get(0), 7);
            world.barrier()?;
        } else {
            window.free()?;
        }
        for _ in 0..50 {
            world.shared_window::<u8>(100_000)?.free()?;
        }
    }
}

on_ranks! {
    /// A window given back while another rank makes another call: it stays.
    a_window_is_not_given_back_by_a_barrier, [2], 2, |job, world| {
        let window = world.shared_window::<u64>(8)?;
        if world.rank() == 0 {
            assert!(window.free().is_err());
            let fresh = fmpl::Buffer::<u64>::new(job, 16)?;
            world.recv(&mut [0u8], 1, 0)?;
            assert!(fresh.iter().all(|value| *value == 0));
        } else {
            let _ = world.barrier();
            window.part(0).set(3, 77);
            world.send(&[1u8], 0, 0)?;
        }
    }
}
