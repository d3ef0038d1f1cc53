//! Every size in every mode by every pair of calls; order on one index; many indices.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;

const SIZES: [usize; 26] = [
    0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 255, 256, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 49151, 49152, 49153, 65535,
    65536, 65537, 1_048_579,
];
/// A large message; less in a short run, and where the ends of a ring sleep at each turn.
fn large() -> usize {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    let slow_ring = is("FMPL_SHM_PATH", "ring") && is("FMPL_WAIT", "block");
    if slow_ring || crate::ranks::short() { 3 << 20 } else { 20 << 20 }
}

/// Those of this run; in a short one every other.
fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().step_by(if crate::ranks::short() { 2 } else { 1 }).chain([large()])
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// A blocking call.
    Blocking,
    /// Begun, then waited for.
    Waited,
    /// Begun, then tested until done.
    Tested,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// The receive comes first.
    First,
    /// At about the same time.
    Together,
    /// The receive comes when the time-out of the send has passed.
    Late,
}

#[expect(clippy::too_many_arguments, reason = "a row of the table of cases")]
fn one(me: i32, src: i32, len: usize, index: i32, seq: u64, out: Way, inn: Way, when: When, what: &str) {
    let dst = 1 - src;
    let content = seed(src, dst, index, seq);
    if me == src {
        if when == When::First {
            sleep_ms(1);
        }
        let data = message(len, content);
        match out {
            Way::Blocking => send(&data, dst, index),
            Way::Waited => {
                isend(&data, dst, index);
                isend_wait(dst, index);
            }
            Way::Tested => {
                isend(&data, dst, index);
                isend_poll(dst, index);
            }
        }
    } else {
        if when == When::Late {
            sleep_ms(4);
        }
        let mut room = vec![0xee; len + 16];
        let (buf, rest) = room.split_at_mut(len);
        match inn {
            Way::Blocking => recv(buf, src, index),
            Way::Waited => {
                irecv(buf, src, index);
                irecv_wait(src, index);
            }
            Way::Tested => {
                irecv(buf, src, index);
                irecv_poll(src, index);
            }
        }
        check(buf, content, what);
        assert!(rest.iter().all(|b| *b == 0xee), "{what}: bytes behind the buffer were written");
        assert_eq!(received(src, index), (len, index), "{what}");
    }
}

pub fn every_size_in_every_mode(me: i32) {
    let mut seq = 0;
    for (turn, timeout) in [0, 2, -1].into_iter().enumerate() {
        sendbuf_set(64 << 20, timeout);
        barrier();
        for (k, len) in sizes().enumerate() {
            let mut combination = 0;
            for out in [Way::Blocking, Way::Waited, Way::Tested] {
                for inn in [Way::Blocking, Way::Waited, Way::Tested] {
                    for when in [When::First, When::Together, When::Late] {
                        combination += 1;
                        // In a run that is not long each combination of a size has one of the time-outs. Large messages take a part of
                        // the combinations each, together all of them; all meet on few indices.
                        let share = if len > 2 << 20 || len > 1 << 20 && crate::slow_links() {
                            9
                        } else if len > 60_000 || !crate::ranks::long() {
                            3
                        } else {
                            1
                        };
                        if (combination + k + turn) % share != 0 || when == When::Late && combination % 2 == k % 2 {
                            continue;
                        }
                        for src in 0..2 {
                            seq += 1;
                            let index = (seq % 3) as i32;
                            let what =
                                format!("time-out {timeout}, {len} bytes, {out:?} to {inn:?}, {when:?}, from {src}");
                            one(me, src, len, index, seq, out, inn, when, &what);
                        }
                    }
                }
            }
        }
        barrier();
    }
}

pub fn order_on_one_index(me: i32) {
    for src in 0..2 {
        let (mut draw, mut pause) = (Draw(41 + src as u64), Draw(97 + me as u64));
        let messages = match (crate::ranks::long(), crate::ranks::short()) {
            (true, _) => 20_000,
            (_, true) => 400,
            _ => 1500,
        };
        for seq in 0..messages {
            let len = draw.size(100_000);
            let change = draw.one_in(20).then(|| [0, 1, 10, -1][draw.below(4)]);
            let with_request = draw.one_in(3);
            if pause.one_in(150) {
                sleep_ms(pause.below(6) as u64);
            }
            let content = seed(src, 1 - src, 5, seq);
            if me == src {
                if let Some(timeout) = change {
                    sendbuf_set(64 << 20, if timeout == 0 && len > 50_000 { 10 } else { timeout });
                }
                let data = message(len, content);
                if with_request {
                    isend(&data, 1 - src, 5);
                    if pause.one_in(2) {
                        isend_poll(1 - src, 5);
                    } else {
                        isend_wait(1 - src, 5);
                    }
                } else {
                    // Buffered and the spool full of what the receiver has not come to yet: try again.
                    loop {
                        match try_send(&data, 1 - src, 5) {
                            SPOOL_FULL => sleep_ms(1),
                            code => break ok(code),
                        }
                    }
                }
            } else {
                let mut buf = vec![0; if pause.one_in(2) { len } else { len + 100 }];
                match pause.below(3) {
                    0 => recv(&mut buf, src, 5),
                    1 => {
                        irecv(&mut buf, src, 5);
                        irecv_wait(src, 5);
                    }
                    _ => {
                        irecv(&mut buf, src, 5);
                        irecv_poll(src, 5);
                    }
                }
                assert_eq!(received(src, 5).0, len, "message {seq} from {src}");
                check(&buf[..len], content, &format!("message {seq} from {src}"));
            }
        }
        barrier();
    }
}

pub fn many_indices_in_reverse_order(me: i32) {
    const INDICES: i32 = 1000;
    let len = |i: i32| [8, 0, 100, 16, 3000, 1, 17, 9000][i as usize % 8];
    for (round, posted_first) in [true, false, true, false].into_iter().enumerate() {
        mode(if posted_first { -1 } else { 0 });
        let content = |i: i32| seed(0, 1, i, round as u64);
        if me == 1 {
            let mut bufs: Vec<Vec<u8>> = (0..INDICES).map(|i| vec![0; len(i)]).collect();
            if posted_first {
                (0..INDICES).for_each(|i| irecv(&mut bufs[i as usize], 0, i));
            }
            barrier();
            if posted_first {
                for i in (0..INDICES).rev() {
                    irecv_wait(0, i);
                }
            } else {
                barrier();
                for i in (0..INDICES).rev() {
                    recv(&mut bufs[i as usize], 0, i);
                }
            }
            for i in 0..INDICES {
                check(&bufs[i as usize], content(i), &format!("index {i}, round {round}"));
            }
        } else {
            barrier();
            for i in 0..INDICES {
                let i = if posted_first { INDICES - 1 - i } else { i };
                send(&message(len(i), content(i)), 1, i);
            }
            if !posted_first {
                barrier();
            }
        }
        barrier();
    }
}

pub fn both_ways_at_once(me: i32) {
    let peer = 1 - me;
    for (round, len) in sizes().enumerate() {
        for timeout in [10, -1] {
            sendbuf_set(64 << 20, timeout);
            barrier();
            let repeat = if len > 100_000 || crate::ranks::short() { 2 } else { 10 };
            for k in 0..repeat {
                let id = (round * 100 + k) as u64;
                let data = message(len, seed(me, peer, 9, id));
                let mut buf = vec![0; len];
                sendrecv(&data, peer, 9, &mut buf, peer, 9);
                check(&buf, seed(peer, me, 9, id), &format!("exchange of {len} bytes"));
                // The same with requests, both begun before either is completed.
                irecv(&mut buf, peer, 10);
                isend(&data, peer, 10);
                if k % 2 == 0 {
                    irecv_wait(peer, 10);
                    isend_wait(peer, 10);
                } else {
                    isend_wait(peer, 10);
                    irecv_wait(peer, 10);
                }
                check(&buf, seed(peer, me, 9, id), &format!("exchange of {len} bytes by requests"));
            }
        }
    }
}

pub fn to_itself(me: i32) {
    let mut seq = 0;
    for timeout in [0, 2, -1] {
        sendbuf_set(64 << 20, timeout);
        for len in sizes() {
            seq += 1;
            let content = seed(me, me, 4, seq);
            let data = message(len, content);
            let mut buf = vec![0; len];
            let what = format!("to itself, time-out {timeout}, {len} bytes");
            irecv(&mut buf, me, 4);
            send(&data, me, 4);
            irecv_wait(me, 4);
            check(&buf, content, &what);
            buf.fill(0);
            isend(&data, me, 4);
            if timeout >= 0 && seq % 2 == 0 {
                isend_wait(me, 4);
                recv(&mut buf, me, 4);
            } else {
                irecv(&mut buf, me, 4);
                isend_wait(me, 4);
                irecv_wait(me, 4);
            }
            check(&buf, content, &what);
            if timeout >= 0 {
                buf.fill(0);
                // Two of them, and then the receives.
                send(&data, me, 4);
                send(&data, me, 4);
                recv(&mut buf, me, 4);
                check(&buf, content, &what);
                recv(&mut buf, me, 4);
                check(&buf, content, &what);
            } else {
                fails(try_send(&data, me, 4), ARGUMENT);
            }
            sendrecv(&data, me, 4, &mut buf, me, 4);
            check(&buf, content, &what);
        }
    }
}
