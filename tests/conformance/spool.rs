//! The spool: how much it holds, what it counts, what happens when it is full.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;

/// Counts are exact: spooled and waiting, delivered since the last look.
pub fn counts(me: i32) {
    mode(1);
    sendbuf_set(16 << 20, 1);
    barrier();
    if me == 0 {
        sendbuf_check();
        assert_eq!(sendbuf_check(), (0, 0));
    }
    barrier();
    for (n, len) in [(1, 10_000), (5, 10_000), (3, 200_000)] {
        if me == 0 {
            for i in 0..n {
                send(&message(len, i as u64), 1, i);
            }
            assert_eq!(sendbuf_check(), (0, n), "{n} of {len} bytes wait");
            assert_eq!(sendbuf_check(), (0, n));
            barrier();
            barrier();
            assert_eq!(sendbuf_check(), (1, n - 1), "one is delivered");
            barrier();
            barrier();
            assert_eq!(sendbuf_check(), (n - 1, 0), "all are delivered");
            assert_eq!(sendbuf_check(), (0, 0));
        } else {
            barrier();
            let mut buf = vec![0; len];
            recv(&mut buf, 0, 0);
            check(&buf, 0, "spooled");
            barrier();
            barrier();
            for i in 1..n {
                recv(&mut buf, 0, i);
                check(&buf, i as u64, "spooled");
            }
            barrier();
        }
        barrier();
    }
    // Several on one index.
    if me == 0 {
        (0..7).for_each(|k| send(&message(9000, k), 1, 0));
        assert_eq!(sendbuf_check(), (0, 7));
        barrier();
        for left in (0..7).rev() {
            barrier();
            assert_eq!(sendbuf_check(), (1, left));
            barrier();
        }
    } else {
        barrier();
        for k in 0..7 {
            let mut buf = vec![0; 9000];
            recv(&mut buf, 0, 0);
            check(&buf, k, "spooled on one index");
            barrier();
            barrier();
        }
    }
}

/// Buffered and full: an error, nothing sent; room again when the receiver has taken something.
pub fn full_and_buffered(me: i32) {
    for len in [8usize, 900, 3000, 10_000, 100_000] {
        sendbuf_set(256 << 10, 0);
        barrier();
        if me == 0 {
            let mut sent = 0u64;
            loop {
                match try_send(&message(len, sent), 1, 6) {
                    0 => sent += 1,
                    code => break fails(code, SPOOL_FULL),
                }
                assert!(sent < 1_000_000, "256 KiB hold more than a million messages");
            }
            assert!(last_error().contains("peer 1") && last_error().contains("index 6"), "{}", last_error());
            assert!(sent as usize * len <= (256 << 10) + len, "{sent} messages of {len} bytes in 256 KiB");
            assert!((sent as usize + 2) * (len + 16) * 3 > 256 << 10, "only {sent} messages of {len} bytes in 256 KiB");
            fails(try_send(&message(len, sent), 1, 6), SPOOL_FULL);
            // Another index has no room either, unless its landing takes the message as it is.
            if len > 16 {
                fails(try_send(&message(300_000, 0), 1, 7), SPOOL_FULL);
            }
            let note = sent.to_le_bytes();
            mode(10_000);
            send(&note, 1, 8);
            // With a time-out it waits, and is delivered in order.
            send(&message(len, sent), 1, 6);
            barrier();
        } else {
            let mut note = [0; 8];
            recv(&mut note, 0, 8);
            let sent = u64::from_le_bytes(note);
            for seq in 0..=sent {
                let mut buf = vec![0; len];
                recv(&mut buf, 0, 6);
                check(&buf, seq, &format!("message {seq} of {sent}, {len} bytes"));
            }
            assert_eq!(probe(0, 6), None);
            barrier();
        }
    }
}

/// A sendrecv whose message cannot be sent, or has no room in buffered mode: an error, and nothing has come. Where a message has come, which nobody
/// could give back, it waits for room.
pub fn full_and_exchanged(me: i32) {
    sendbuf_set(64 << 10, 0);
    let (long, mut got) = (message(200_000, 0), vec![0; 100]);
    if me == 0 {
        fails(try_sendrecv(&long, 1, 4, &mut got, 1, 3), SPOOL_FULL);
        barrier();
        while probe(1, 3).is_none() {}
        fails(try_sendrecv(&long, 2, 4, &mut got, 1, 3), RANK);
        fails(try_sendrecv(&long, 1, -1, &mut got, 1, 3), INDEX);
        isend(&long[..8], 1, 5);
        fails(try_sendrecv(&long, 1, 5, &mut got, 1, 3), BUSY);
        isend_wait(1, 5);
        sendrecv(&long, 1, 4, &mut got, 1, 3);
        check(&got, 7, "received beside a message without room");
    } else {
        barrier();
        send(&message(100, 7), 0, 3);
        sleep_ms(20);
        let mut buf = vec![0; 200_000];
        recv(&mut buf, 0, 4);
        check(&buf, 0, "sent when there was room");
        recv(&mut buf, 0, 5);
    }
}

/// A standard send waits while the spool is full, and a message that is larger than the spool waits for its posting.
pub fn full_and_standard(me: i32) {
    sendbuf_set(128 << 10, 1);
    barrier();
    let messages = 60u64;
    let len = |k: u64| [20_000, 8, 300_000, 2000, 60_000][k as usize % 5];
    if me == 0 {
        for k in 0..messages {
            if k % 4 == 3 {
                let data = message(len(k), k);
                isend(&data, 1, 2);
                isend_wait(1, 2);
            } else {
                send(&message(len(k), k), 1, 2);
            }
        }
    } else {
        for k in 0..messages {
            if k % 10 == 5 {
                sleep_ms(5);
            }
            let mut buf = vec![0; len(k)];
            recv(&mut buf, 0, 2);
            check(&buf, k, &format!("message {k}"));
        }
    }
}

/// Setting again at any time: larger, smaller, with and without memory of the caller, while messages lie there.
pub fn set_again(me: i32) {
    let own = Box::leak(vec![0x5a; 1 << 20].into_boxed_slice());
    barrier();
    if me == 0 {
        sendbuf_set(1 << 20, 1);
        (0..10).for_each(|k| send(&message(50_000, k), 1, 0));
        sendbuf_set(2 << 20, 0);
        (10..20).for_each(|k| send(&message(50_000, k), 1, 0));
        // SAFETY: the memory is never given back.
        ok(unsafe { fmpl::ffi::c::fmpl_sendbuf_set(own.as_mut_ptr().cast(), own.len(), 0) });
        // What lies there counts until it is drained, or the new buffer is its own; either way a full one says so.
        let mut k = 20;
        while k < 100 {
            match try_send(&message(50_000, k), 1, 0) {
                0 => k += 1,
                code => {
                    fails(code, SPOOL_FULL);
                    break;
                }
            }
        }
        // SAFETY: as above.
        ok(unsafe { fmpl::ffi::c::fmpl_comm_sendbuf_set(WORLD, std::ptr::null_mut(), 1 << 20, 0) });
        let mut more = k;
        while more < k + 5 {
            match try_send(&message(50_000, more), 1, 0) {
                0 => more += 1,
                code => {
                    fails(code, SPOOL_FULL);
                    break;
                }
            }
        }
        assert!(more > k, "a communicator's own spool is empty at first");
        mode(10);
        send(&more.to_le_bytes(), 1, 1);
        // SAFETY: null buffers, a wrong time-out.
        fails(unsafe { fmpl::ffi::c::fmpl_sendbuf_set(std::ptr::null_mut(), 1 << 20, -2) }, ARGUMENT);
        // SAFETY: as above.
        fails(unsafe { fmpl::ffi::c::fmpl_comm_sendbuf_set(5, std::ptr::null_mut(), 1 << 20, 0) }, COMM);
        barrier();
        // SAFETY: as above.
        ok(unsafe { fmpl::ffi::c::fmpl_comm_sendbuf_set(WORLD, std::ptr::null_mut(), 16 << 20, 10) });
    } else {
        let mut total = [0; 8];
        recv(&mut total, 0, 1);
        for k in 0..u64::from_le_bytes(total) {
            let mut buf = vec![0; 50_000];
            recv(&mut buf, 0, 0);
            check(&buf, k, &format!("message {k} through changing spools"));
        }
        barrier();
        // SAFETY: as above.
        ok(unsafe { fmpl::ffi::c::fmpl_comm_sendbuf_set(WORLD, std::ptr::null_mut(), 16 << 20, 10) });
    }
    barrier();
}

/// Counting while another thread of the process sends: nothing is counted twice or forgotten.
pub fn counts_beside_a_sender(me: i32) {
    const MANY: i32 = 3000;
    sendbuf_set(64 << 20, 0);
    let lane = fmpl::p2p::endpoint::endpoint().unwrap().lane(1 - me as u32).unwrap();
    let ever = || -> u64 {
        (0..7)
            .map(|k| lane.spooled_ever(k + fmpl::lane::map::SYSTEM_INDICES).load(std::sync::atomic::Ordering::Relaxed))
            .sum()
    };
    let before = ever();
    if me == 0 {
        sendbuf_check();
    }
    barrier();
    if me == 0 {
        let mut delivered = 0;
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let data = message(5000, 3);
                (0..MANY).for_each(|k| send(&data[..[20, 5000, 700][k as usize % 3]], 1, k % 7));
            });
            while !sender.is_finished() {
                delivered += sendbuf_check().0;
            }
        });
        barrier();
        let (more, waiting) = sendbuf_check();
        assert_eq!(waiting, 0);
        delivered += more;
        assert_eq!(delivered as u64, ever() - before, "messages that went through the spool");
        assert_eq!(sendbuf_check(), (0, 0));
    } else {
        let mut buf = vec![0; 5000];
        for k in 0..MANY {
            recv(&mut buf, 0, k % 7);
        }
        barrier();
    }
    barrier();
}
