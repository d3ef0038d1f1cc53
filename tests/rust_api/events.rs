//! The event descriptor: a receiver that sleeps in poll(2) and finds all its messages.

use std::os::fd::{AsFd, AsRawFd};

use crate::{filled, on_ranks};

/// Sleeps until the descriptor is readable.
fn sleep(event: &impl AsFd) {
    let mut waited = libc::pollfd { fd: event.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, as said. A test that sleeps for ever is ended from outside.
    let woken = unsafe { libc::poll(&raw mut waited, 1, 60_000) };
    assert_eq!(woken, 1, "nothing completed in a minute");
}

on_ranks!(an_event_loop_finds_every_message, [2, 3], 8, |job, world| {
    const MESSAGES: usize = 300;
    let (rank, size) = (world.rank(), world.size());
    if rank == 0 {
        let event = job.event()?;
        for len in [1, 50, 3000] {
            let mut counts = vec![0; size];
            for _ in 0..MESSAGES {
                let mut data = vec![vec![0; len]; size];
                let come = world.scope(|s| {
                    let mut requests = Vec::new();
                    for (peer, data) in data.iter_mut().enumerate().skip(1) {
                        if counts[peer] < MESSAGES {
                            requests.push((peer, s.irecv(data, peer, 0)?));
                        }
                    }
                    let mut come = Vec::new();
                    while !requests.is_empty() {
                        event.drain()?;
                        let before = requests.len();
                        let mut left = Vec::new();
                        for (peer, mut request) in requests {
                            match request.test()? {
                                Some(received) => come.push((peer, received.len)),
                                None => left.push((peer, request)),
                            }
                        }
                        requests = left;
                        if requests.len() == before {
                            sleep(&event);
                        }
                    }
                    Ok(come)
                })?;
                for (peer, got) in come {
                    assert_eq!((got, &data[peer]), (len, &filled(len, counts[peer] + peer)));
                    counts[peer] += 1;
                }
            }
            assert!(counts[1..].iter().all(|n| *n == MESSAGES));
        }
        while event.drain()? {}
        assert!(!event.drain()?);
    } else {
        for len in [1, 50, 3000] {
            for k in 0..MESSAGES {
                if k % 50 == 0 {
                    // Now and then the receiver has long been asleep.
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                world.send(&filled(len, k + rank), 0, 0)?;
            }
        }
    }
});

on_ranks!(a_send_that_waits_rings_too, [2], 2, |job, world| {
    let message = filled(100_000, 1);
    if world.rank() == 0 {
        job.set_send_buffer(1 << 20, fmpl::Mode::Synchronous)?;
        let event = job.event()?;
        world.scope(|s| {
            let mut request = s.isend(&message, 1, 0)?;
            while !request.test()? {
                sleep(&event);
                event.drain()?;
            }
            Ok(())
        })?;
    } else {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut data = vec![0; 100_000];
        world.recv(&mut data, 0, 0)?;
        assert_eq!(data, message);
    }
});
