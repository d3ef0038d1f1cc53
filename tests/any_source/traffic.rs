use crate::ranks::Job;
use crate::ranks::bytes::{Draw, check, message, seed};
use crate::ranks::calls::*;
use std::collections::HashMap;

/// Everybody sends to rank 0, which takes what comes and knows each message by its source and number.
pub fn sends_in_order() {
    init(16);
    let (me, n) = (rank(), size());
    for (round, timeout) in [10, 1, 0, -1].into_iter().enumerate() {
        sendbuf_set(if round == 1 { 100_000 } else { 16 << 20 }, timeout);
        barrier();
        let each = crate::number_of("EACH").unwrap_or(120);
        if me == 0 {
            let mut next: HashMap<i32, u64> = HashMap::new();
            let mut draw = Draw(9 + round as u64);
            let mut buf = vec![0; 400_000];
            for k in 0..each * (n as u64 - 1) {
                if draw.one_in(60) {
                    sleep_ms(2);
                }
                let (src, len) = match draw.below(3) {
                    0 => recv_any(&mut buf, 3),
                    1 => {
                        irecv_any(&mut buf, 3);
                        irecv_any_wait(3)
                    }
                    _ => {
                        irecv_any(&mut buf, 3);
                        loop {
                            if let Some(found) = irecv_any_test(3) {
                                break found;
                            }
                            std::thread::yield_now();
                        }
                    }
                };
                let seq = next.entry(src).or_insert(0);
                let s = seed(src, round as i32, 3, *seq);
                assert_eq!(len, length(s, timeout), "message {seq} of rank {src}, the {k}th of all");
                check(&buf[..len], s, &format!("message {seq} of rank {src}, mode {timeout}"));
                *seq += 1;
            }
            assert!((1..n).all(|r| next[&r] == each));
            assert_eq!(probe_any(3), None);
        } else {
            for seq in 0..each {
                let s = seed(me, round as i32, 3, seq);
                let data = message(length(s, timeout), s);
                // In buffered mode it is the program that waits.
                if s.is_multiple_of(3) {
                    while with_room(try_isend_any(&data, 0, 3)) {}
                    let done = s.is_multiple_of(2) && isend_any_test(0, 3);
                    if !done {
                        isend_any_wait(0, 3);
                    }
                } else {
                    while with_room(try_send_any(&data, 0, 3)) {}
                }
            }
        }
    }
    barrier();
    println!(
        "has the counters of {} shares of others",
        fmpl::p2p::endpoint::endpoint().unwrap().any_source.guests.count()
    );
    finalize();
}

/// Is there no room, so that the call is to be made again?
fn with_room(code: i32) -> bool {
    if code == SPOOL_FULL {
        sleep_ms(1);
        return true;
    }
    ok(code);
    false
}

fn length(seed: u64, timeout: i32) -> usize {
    let most = if timeout == 0 { 20_000 } else { 300_000 };
    Draw(seed).size(most)
}

pub fn in_order() {
    for settings in [
        "FMPL_ANY_SLOTS=256",
        "FMPL_ANY_SLOTS=2 FMPL_WAIT=block",
        "FMPL_CMA=off FMPL_ANY_SLOTS=16",
        "FMPL_ANY_SLOTS=8 FMPL_WAIT=spin",
        "FMPL_ANY_SLOTS=16 FMPL_SPREAD=4",
        "FMPL_ANY_SLOTS=4 FMPL_SPREAD=2 FMPL_CMA=off FMPL_WAIT=block",
    ] {
        let ranks = if settings.contains("spin") { 2 } else { 5 };
        Job::new(ranks, "in order").settings(settings).run();
    }
}

/// Several threads of two ranks send to four indices of the third, on each of which a thread receives.
pub fn uses_threads() {
    init(8);
    let me = rank();
    barrier();
    let (threads, each) = (3u64, 2000u64);
    std::thread::scope(|s| {
        if me == 0 {
            for index in 0..4 {
                s.spawn(move || {
                    let mut next: HashMap<(i32, u64), u64> = HashMap::new();
                    let mut buf = [0u8; 4000];
                    for _ in 0..2 * threads * each / 4 {
                        let (src, len) = recv_any(&mut buf, index);
                        let word = u64::from_le_bytes(buf[..8].try_into().unwrap());
                        let (thread, seq) = (word >> 32, word & 0xffff_ffff);
                        let of = next.entry((src, thread)).or_insert(0);
                        assert_eq!(*of, seq, "rank {src}, thread {thread}, index {index}");
                        assert_eq!(len, 8 + (seq as usize * 37) % 3000);
                        *of += 1;
                    }
                });
            }
        } else {
            for thread in 0..threads {
                s.spawn(move || {
                    let mut buf = [0u8; 4000];
                    for k in 0..each {
                        let seq = k / 4;
                        buf[..8].copy_from_slice(&(thread << 32 | seq).to_le_bytes());
                        send_any(&buf[..8 + (seq as usize * 37) % 3000], 0, (k % 4) as i32);
                    }
                });
            }
        }
    });
    barrier();
    finalize();
}

pub fn threads() {
    Job::new(3, "threads").run();
    Job::new(3, "threads").settings("FMPL_ANY_SLOTS=4 FMPL_WAIT=block").run();
}

/// What may be pending, what a probe sees, what cancel leaves, truncation, messages to itself.
pub fn uses_requests() {
    init(8);
    let me = rank();
    let other = 1 - me;
    barrier();
    let mut buf = vec![0; 100_000];
    // To itself: short, long, from the spool and offered.
    for len in [0, 8, 48, 49, 1024, 1025, 5000, 90_000] {
        let data = message(len, len as u64);
        isend_any(&data, me, 1);
        assert_eq!(probe_any(1), Some((me, len)));
        assert_eq!(recv_any(&mut buf, 1), (me, len));
        check(&buf[..len], len as u64, "to itself, a request");
        isend_any_wait(me, 1);
        send_any(&data, me, 1);
        assert_eq!(recv_any(&mut buf, 1), (me, len));
        check(&buf[..len], len as u64, "to itself");
    }
    // A receive that is withdrawn leaves the message to the next.
    if me == 0 {
        irecv_any(&mut buf, 2);
        fails(try_irecv_any(&mut [], 2), BUSY);
        fails(try_recv_any(&mut [], 2).0, BUSY);
        assert!(irecv_any_cancel(2));
        assert_eq!(probe_any(2), None);
        barrier();
        barrier();
        assert_eq!(probe_any(2), Some((1, 70_000)));
        let mut small = [0; 100];
        let (code, src, len) = try_recv_any(&mut small, 2);
        fails(code, TRUNCATE);
        assert_eq!((src, len), (1, 70_000));
        check(&small, 5, "the first bytes of an offer");
        let (code, src, len) = try_recv_any(&mut small, 2);
        fails(code, TRUNCATE);
        assert_eq!((src, len), (1, 2000));
        check(&small, 6, "the first bytes of a spooled message");
        assert_eq!(recv_any(&mut small, 2), (1, 100));
        check(&small, 7, "a message after two that were cut");
    } else {
        barrier();
        let (long, middle, short) = (message(70_000, 5), message(2000, 6), message(100, 7));
        isend_any(&long, other, 2);
        fails(try_isend_any(&long, other, 2), BUSY);
        send_any(&middle, other, 2);
        send_any(&short, other, 2);
        barrier();
        isend_any_wait(other, 2);
        fails(try_isend_any_wait(other, 2), REQUEST);
    }
    barrier();
    // Synchronous: over when it is received, not before.
    mode(-1);
    barrier();
    for len in [8, 500, 3000, 80_000] {
        if me == 0 {
            let data = message(len, 8);
            isend_any(&data, 1, 3);
            barrier();
            assert!(!isend_any_test(1, 3), "{len} bytes, not received");
            barrier();
            isend_any_wait(1, 3);
        } else {
            barrier();
            barrier();
            assert_eq!(recv_any(&mut buf, 3), (0, len));
            check(&buf[..len], 8, "synchronous");
        }
        barrier();
    }
    finalize();
}

pub fn requests() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_CMA=off", "FMPL_WAIT=block FMPL_ANY_SLOTS=4"] {
        Job::new(2, "requests").settings(settings).run();
    }
}
