//! Every blocking call.

use std::time::Duration;

use fmpl::{Buffer, Code, Counter, Mode, PROC_NULL, Strided, StridedMut};

use crate::{filled, on_ranks};

on_ranks!(messages_of_all_lengths_arrive_whole, [1, 2, 3], 2, |_job, world| {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in [0usize, 1, 2, 3, 100, 128, 129, 1000, 8000, 100_000] {
        // To oneself nobody receives at the same time: what is sent waits in the spool.
        world.send(&filled(len, rank), next, 0)?;
        let mut data = vec![u64::MAX; len + 1];
        let received = world.recv(&mut data, last, 0)?;
        assert_eq!((received.len, received.bytes, received.index), (len, 8 * len, 0));
        assert_eq!(data[..len], filled(len, last));
        assert_eq!(data[len], u64::MAX, "nothing is written behind the message");
    }
});

on_ranks!(types_are_typed, [2], 8, |_job, world| {
    if world.rank() == 0 {
        world.send(&[1u8, 2, 3, 4, 5, 6, 7], 1, 0)?;
        world.send(&[[1.5f32, -2.5], [3.5, f32::INFINITY]], 1, 1)?;
        world.send(&[u128::MAX], 1u32, 2)?;
        world.send(&[0i8; 0], Some(1), 3)?;
    } else {
        let mut words = [0u16; 8];
        let received = world.recv(&mut words, 0, 0)?;
        // Seven bytes are three whole numbers of two.
        assert_eq!((received.len, received.bytes), (3, 7));
        assert_eq!(words[..3], [1 | 2 << 8, 3 | 4 << 8, 5 | 6 << 8].map(u16::from_le));
        let mut pairs = [[0f32; 2]; 2];
        world.recv(&mut pairs, 0, 1)?;
        assert_eq!(pairs, [[1.5, -2.5], [3.5, f32::INFINITY]]);
        let mut big = [0u128];
        world.recv(&mut big, 0, 2)?;
        assert_eq!(big, [u128::MAX]);
        assert_eq!(world.recv(&mut [0i8; 0], 0, 3)?.len, 0);
    }
});

on_ranks!(blocks_and_lists_are_streams_of_bytes, [2], 4, |_job, world| {
    const COLUMNS: usize = 70;
    let matrix = filled(50 * COLUMNS, 1);
    if world.rank() == 0 {
        world.send_block(Strided::new(&matrix[3..], 50, 1, COLUMNS)?, 1, 0)?;
        world.send(&matrix[..600], 1, 1)?;
        let rows: Vec<&[u64]> = (0..50).map(|i| &matrix[i * COLUMNS..][..i]).collect();
        world.send_list(&rows, 1, 2)?;
        world.send(&matrix[..100], 1, 3)?;
    } else {
        let mut column = [0; 50];
        assert_eq!(world.recv(&mut column, 0, 0)?.len, 50);
        assert!(column.iter().enumerate().all(|(i, x)| *x == matrix[i * COLUMNS + 3]));
        let mut part = vec![0; 50 * COLUMNS];
        let mut shape = StridedMut::new(&mut part[10..], 30, 20, COLUMNS)?;
        assert_eq!((shape.len(), shape.reborrow().is_empty()), (600, false));
        assert_eq!(world.recv_block(shape, 0, 1)?.len, 600);
        for (k, x) in part.iter().enumerate() {
            let (i, j) = (k / COLUMNS, (k % COLUMNS).wrapping_sub(10));
            assert_eq!(*x, if i < 30 && j < 20 { matrix[i * 20 + j] } else { 0 });
        }
        let mut packed = vec![0; 50 * 49 / 2];
        assert_eq!(world.recv(&mut packed, 0, 2)?.len, packed.len());
        let triangle = (0..50).flat_map(|i| matrix[i * COLUMNS..][..i].iter());
        assert!(packed.iter().eq(triangle));
        let (mut a, mut b, mut c) = ([0; 10], [0; 0], [0; 95]);
        assert_eq!(world.recv_list(&mut [&mut a[..], &mut b[..], &mut c[..]], 0, 3)?.len, 100);
        assert!(a == matrix[..10] && c[..90] == matrix[10..100] && c[90..] == [0; 5]);
    }
});

on_ranks!(sendrecv_and_nobody, [1, 2, 4], 2, |_job, world| {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in [1, 1000, 50_000] {
        let mut data = vec![0; len];
        assert_eq!(world.sendrecv(&filled(len, rank), next, 0, &mut data, last, 0)?.len, len);
        assert_eq!(data, filled(len, last));
    }
    world.send(&[1], PROC_NULL, 0)?;
    let mut kept = [7];
    let received = world.recv(&mut kept, None, 1)?;
    assert_eq!((received.len, received.index, kept), (0, 1, [7]));
    assert_eq!(world.recv_any_index(&mut kept, PROC_NULL)?.len, 0);
    assert_eq!(world.sendrecv(&[1], PROC_NULL, 0, &mut kept, PROC_NULL, 0)?.len, 0);
    let mut nowhere = world.channel(PROC_NULL, 0)?;
    nowhere.send(&[1])?;
    assert_eq!(nowhere.recv(&mut kept)?.bytes, 0);
    assert_eq!(kept, [7]);
});

on_ranks!(any_index_and_probe, [2], 100, |_job, world| {
    if world.rank() == 0 {
        for index in [5usize, 99, 0] {
            world.send(&filled(index + 1, index), 1, index)?;
        }
        world.barrier()?;
    } else {
        world.barrier()?;
        assert_eq!(world.probe(0, 99)?, Some(800));
        assert_eq!(world.probe(0, 98)?, None);
        assert!(world.probe_any_index(0)?.is_some());
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut data = [0; 100];
            let received = world.recv_any_index(&mut data, 0)?;
            assert_eq!(received.len, received.index + 1);
            assert_eq!(data[..received.len], filled(received.len, received.index));
            seen.push(received.index);
        }
        seen.sort();
        assert_eq!(seen, [0, 5, 99]);
        assert_eq!((world.probe_any_index(0)?, world.probe(0, 5)?), (None, None));
    }
});

on_ranks!(what_is_counted, [1, 2, 3], 2, |job, world| {
    let of = |which| job.counter(which);
    world.barrier()?;
    let (messages, bytes) = (of(Counter::ShmMessages)?, of(Counter::ShmBytes)?);
    // The barrier's rounds are not counted: they are the library's own messages.
    assert_eq!((messages, bytes), (0, 0));
    for len in [0, 5, 16, 50, 900, 4000, 100_000usize] {
        let message = vec![1u8; len];
        if world.rank() == 0 && world.size() > 1 {
            world.send(&message, 1, 0)?;
        } else if world.rank() == 1 {
            world.recv(&mut vec![0u8; len], 0, 0)?;
        }
    }
    world.sendrecv(&[1u8; 9], world.rank(), 1, &mut [0u8; 9], world.rank(), 1)?;
    let sent = if world.rank() == 0 && world.size() > 1 { (7, 104_971) } else { (0, 0) };
    assert_eq!((of(Counter::ShmMessages)?, of(Counter::ShmBytes)?), sent);
    // The barrier needs the first rank's memory only.
    let peers = of(Counter::ShmPeers)?;
    assert!((world.size() as u64).min(2) - 1 <= peers && peers < world.size() as u64, "{peers} peers");
});

on_ranks!(the_modes_of_sending, [2], 2, |job, world| {
    let message = filled(20_000, 3);
    if world.rank() == 0 {
        job.set_send_buffer(1 << 20, Mode::Buffered)?;
        let sent = (0..100).take_while(|_| world.send(&message, 1, 0).is_ok()).count();
        assert!((1..100).contains(&sent), "a MiB holds six messages of 160 kB, not {sent}");
        assert_eq!(world.send(&message, 1, 0).unwrap_err().code(), Code::SpoolFull);
        let (delivered, waiting) = world.sendbuf_check()?;
        assert_eq!((delivered, waiting), (0, sent));
        world.send(&[sent as u64], 1, 1)?;
        world.barrier()?;
        assert_eq!(world.sendbuf_check()?.1, 0);

        world.set_send_buffer(1 << 20, Mode::Synchronous)?;
        world.send(&message, 1, 0)?;
        world.send(&[1u64], 1, 1)?;
        world.set_send_buffer(16 << 20, Mode::Standard(Duration::from_millis(1)))?;
        let mut sender = world.sender(1, 0)?;
        sender.send(&message)?;
        assert_eq!(sender.in_spool()?, 1);
        world.barrier()?;
        world.barrier()?;
        assert_eq!(sender.in_spool()?, 0);
    } else {
        let (mut data, mut sent) = (vec![0; 20_000], [0u64]);
        world.recv(&mut sent, 0, 1)?;
        for _ in 0..sent[0] {
            data.fill(0);
            world.recv(&mut data, 0, 0)?;
            assert_eq!(data, message);
        }
        world.barrier()?;
        world.recv(&mut data, 0, 0)?;
        world.recv(&mut sent, 0, 1)?;
        world.barrier()?;
        world.recv(&mut data, 0, 0)?;
        assert_eq!(data, message);
        world.barrier()?;
    }
});

on_ranks!(buffers_and_channels, [2], 4, |job, world| {
    let peer = 1 - world.rank();
    for len in [0usize, 10, 300_000] {
        let mut to = Buffer::<u64>::new(job, len)?;
        assert!(to.iter().all(|x| *x == 0));
        let from = Buffer::filled(job, len, world.rank() as u64 + 1)?;
        let mut channel = world.channel(peer, 0)?;
        assert_eq!(channel.exchange(&from, &mut to)?.len, len);
        assert!(to.iter().all(|x| *x == peer as u64 + 1));
        channel.send(&from)?;
        assert_eq!(channel.recv(&mut to)?.len, len);
        let (mut sender, mut receiver) = channel.split();
        sender.send_block(Strided::new(&from, usize::from(len > 0), len, len)?)?;
        assert_eq!(receiver.recv_list(&mut [&mut to[..]])?.len, len);
        sender.send_list(&[&from[..len / 2], &from[len / 2..]])?;
        assert_eq!(receiver.recv_block(StridedMut::new(&mut to, 1, len, 0)?)?.len, len);
        assert_eq!(receiver.probe()?, None);
        world.barrier()?;
    }
    assert_eq!(Buffer::<u64>::new(job, usize::MAX / 8).unwrap_err().code(), Code::Argument);
    assert_eq!(Buffer::<u64>::new(job, isize::MAX as usize / 8).unwrap_err().code(), Code::Memory);
});

on_ranks!(prepared_messages_are_begun_over_and_over, [1, 2, 3], 4, |_job, world| {
    let (me, ranks) = (world.rank(), world.size());
    let (next, before) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    for len in [0, 1, 700, 200_000] {
        let mut out = world.prepare_send(vec![0u64; len], next, 3)?;
        let mut inn = world.prepare_recv(vec![0u64; len], before, 3)?;
        assert_eq!(world.prepare_send(vec![0u8], next, 3).map(drop).unwrap_err().code(), Code::Busy);
        assert_eq!(inn.wait().unwrap_err().code(), Code::Request);
        out.wait()?;
        for round in 0..20 {
            inn.start()?;
            assert_eq!((inn.data().unwrap_err().code(), inn.start().unwrap_err().code()), (Code::Busy, Code::Busy));
            out.data()?.fill((1000 * me + round) as u64);
            out.start()?;
            let received = match round % 2 {
                0 => inn.wait()?,
                _ => loop {
                    if let Some(received) = inn.test()? {
                        break received;
                    }
                },
            };
            assert_eq!(received.len, len);
            assert!(inn.data()?.iter().all(|x| *x == (1000 * before + round) as u64));
            if round % 3 == 0 { while !out.test()? {} } else { out.wait()? }
        }
        // Dropped while one waits: it is withdrawn.
        world.barrier()?;
        inn.start()?;
        drop(inn);
        world.barrier()?;
    }
    assert!(world.prepare_recv(vec![0u8], 99, 0).is_err());
});
