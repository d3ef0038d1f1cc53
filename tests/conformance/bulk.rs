//! Very many indices, and very long messages.

use crate::ranks::Job;
use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::placed::{Placed, Shape};
use fmpl::ffi::c::{fmpl_alloc, fmpl_free};

/// 65 536 indices at once: all posted, or all sent before a receive, in order and in reverse; then by any index.
pub fn indices() {
    const INDICES: i32 = 65_536;
    init(INDICES);
    let me = rank();
    sendbuf_set(64 << 20, 0);
    let forward = || (0..INDICES).collect::<Vec<_>>();
    let backward = || (0..INDICES).rev().collect::<Vec<_>>();
    let content = |i: i32, round: u64| seed(0, 1, i, round).to_le_bytes();
    for (round, (posted_first, sends, receives)) in [
        (true, forward(), forward()),
        (true, backward(), forward()),
        (true, forward(), backward()),
        (false, forward(), forward()),
        (false, forward(), backward()),
        (false, backward(), forward()),
    ]
    .into_iter()
    .enumerate()
    {
        let round = round as u64;
        if me == 0 {
            barrier();
            // Two on each index when nothing is posted: the second goes into a chain.
            for again in 0..if posted_first { 1 } else { 2 } {
                sends.iter().for_each(|i| send(&content(*i, 2 * round + again), 1, *i));
            }
            barrier();
        } else {
            let mut bufs = vec![[0u8; 8]; INDICES as usize];
            if posted_first {
                receives.iter().for_each(|i| irecv(&mut bufs[*i as usize], 0, *i));
                barrier();
                receives.iter().for_each(|i| irecv_wait(0, *i));
                barrier();
                (0..INDICES).for_each(|i| assert_eq!(bufs[i as usize], content(i, 2 * round), "index {i}"));
            } else {
                barrier();
                barrier();
                for again in 0..2 {
                    for i in &receives {
                        recv(&mut bufs[*i as usize], 0, *i);
                        assert_eq!(bufs[*i as usize], content(*i, 2 * round + again), "index {i}, round {round}");
                    }
                }
            }
        }
        barrier();
    }
    // Whatever is there, far more than the queue of announcements holds.
    let mut buf = [0; 8];
    if me == 1 {
        irecv(&mut buf, 0, ANY);
    }
    barrier();
    if me == 0 {
        (0..INDICES).step_by(3).for_each(|i| send(&content(i, 99), 1, i));
        barrier();
    } else {
        barrier();
        let mut seen = vec![false; INDICES as usize];
        for k in 0..(0..INDICES).step_by(3).len() {
            if k == 0 {
                irecv_wait(0, ANY)
            } else {
                recv(&mut buf, 0, ANY)
            }
            let (len, index) = received(0, ANY);
            assert!(len == 8 && index % 3 == 0 && !seen[index as usize], "index {index} of {len} bytes");
            seen[index as usize] = true;
            assert_eq!(buf, content(index, 99), "index {index} by any");
        }
        assert_eq!(probe(0, ANY), None);
    }
    finalize();
}

/// Messages of more than 4 GiB, whole, truncated, and strided. Some of it in memory from `fmpl_alloc`.
pub fn lengths() {
    init(4);
    let me = rank();
    let len = (4usize << 30) + 4099;
    if std::env::var("FMPL_SHM_PATH").is_ok_and(|v| v == "spool") {
        sendbuf_set(5 << 30, 0);
    } else {
        sendbuf_set(64 << 20, -1);
    }
    let heap = fmpl_alloc(len).cast::<u8>();
    assert!(!heap.is_null(), "{}", last_error());
    // SAFETY: `len` bytes of ours.
    let whole = unsafe { std::slice::from_raw_parts_mut(heap, len) };
    if me == 0 {
        fill(whole, 5);
        send(whole, 1, 0);
        barrier();
        send(whole, 1, 0);
        barrier();
        isend(whole, 1, 0);
        isend_wait(1, 0);
    } else {
        recv(whole, 0, 0);
        assert_eq!(received(0, 0), (len, 0));
        check(whole, 5, "more than 4 GiB");
        barrier();
        whole[..5000].fill(0);
        fails(try_recv(&mut whole[..4099], 0, 0), TRUNCATE);
        assert_eq!(received(0, 0), (len, 0));
        check(&whole[..4099], 5, "more than 4 GiB into little");
        assert!(whole[4099..5000].iter().all(|b| *b == 0), "written beyond the buffer");
        barrier();
        whole.fill(0);
        irecv(whole, 0, 0);
        irecv_wait(0, 0);
        check(whole, 5, "more than 4 GiB by requests");
    }
    barrier();
    // SAFETY: from `fmpl_alloc`.
    ok(unsafe { fmpl_free(heap.cast()) });
    // A stream that is longer than its runs reach: 600 MB in blocks on one side, a list on the other.
    let len = 600_000_000;
    sendbuf_set(64 << 20, if me == 0 { -1 } else { 10 });
    if std::env::var("FMPL_SHM_PATH").is_ok_and(|v| v == "spool") {
        sendbuf_set(1 << 30, 0);
    }
    let mut place = Placed::new(if me == 0 { Shape::Block } else { Shape::Halves }, len);
    if me == 0 {
        place.put(&message(len, 6));
        ok(place.send(1, 1, false));
    } else {
        ok(place.recv(0, 1, false));
        check(&place.get(len, "strided"), 6, "strided, 600 MB");
    }
    finalize();
}

/// Rank 0 sends more messages one way than a chain may have, never so many ahead that the spool could be full; rank 1 says now and then how
/// far it is.
pub fn millions_of_messages() {
    const MESSAGES: u64 = (1 << 22) + (1 << 20);
    const AHEAD: u64 = 4096;
    init(8);
    sendbuf_set(16 << 20, 0);
    let mut got = [0; 8];
    if rank() == 0 {
        for k in 0..MESSAGES {
            if k % AHEAD == 0 && k >= 2 * AHEAD {
                recv(&mut got, 1, 1);
            }
            send(&k.to_ne_bytes(), 1, 0);
        }
    } else {
        for k in 0..MESSAGES {
            recv(&mut got, 0, 0);
            assert_eq!(u64::from_ne_bytes(got), k);
            if k % AHEAD == 0 && k >= AHEAD && k + AHEAD < MESSAGES {
                send(&got, 0, 1);
            }
        }
    }
    finalize();
}

pub fn millions() {
    Job::new(2, "millions").seconds(300).run();
}
