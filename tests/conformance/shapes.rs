//! Blocks and lists on either side and on both.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::placed::*;
use fmpl::ffi::c::{fmpl_loan_return, fmpl_recv_loan};

/// Every pair of shapes, posted before and after, in every mode.
pub fn on_both_sides(me: i32) {
    let mut seq = 0u64;
    for (round, timeout) in [0, 2, -1].into_iter().enumerate() {
        sendbuf_set(64 << 20, timeout);
        barrier();
        for len in [0usize, 9, 16, 60, 1020, 4100, 36_000, 300_000] {
            for (k, (from, to)) in SHAPES.into_iter().flat_map(|from| SHAPES.map(|to| (from, to))).enumerate() {
                // In a short run each pair of shapes has one of the time-outs.
                if crate::ranks::short() && (k + len + round) % 3 != 0 {
                    continue;
                }
                seq += 1;
                let (request_out, request_in, late) =
                    (seq.is_multiple_of(2), seq.is_multiple_of(3), seq.is_multiple_of(7));
                let (src, index) = ((seq % 2) as i32, 20 + (seq % 4) as i32);
                let content = seed(src, 1 - src, index, seq);
                let what = format!("{len} bytes from {from:?} to {to:?}, time-out {timeout}");
                if me == src {
                    let mut place = Placed::new(from, len);
                    place.put(&message(len, content));
                    ok(place.send(1 - src, index, request_out));
                    if request_out {
                        isend_wait(1 - src, index);
                    }
                } else {
                    let mut place = Placed::new(to, len);
                    if late {
                        sleep_ms(3);
                    }
                    ok(place.recv(src, index, request_in));
                    if request_in && seq % 5 < 2 {
                        irecv_poll(src, index);
                    } else if request_in {
                        irecv_wait(src, index);
                    }
                    check(&place.get(len, &what), content, &what);
                }
            }
        }
    }
}

/// Shapes within one process.
pub fn to_itself(me: i32) {
    let mut seq = 0u64;
    for timeout in [0, -1] {
        sendbuf_set(64 << 20, timeout);
        for len in [0usize, 9, 60, 4100, 36_000] {
            for from in SHAPES {
                for to in SHAPES {
                    seq += 1;
                    let content = seed(me, me, 30, seq);
                    let what = format!("to itself: {len} bytes from {from:?} to {to:?}, time-out {timeout}");
                    let (mut out, mut inn) = (Placed::new(from, len), Placed::new(to, len));
                    out.put(&message(len, content));
                    ok(inn.recv(me, 30, true));
                    ok(out.send(me, 30, false));
                    irecv_wait(me, 30);
                    check(&inn.get(len, &what), content, &what);
                }
            }
        }
    }
}

/// Truncation into shapes: exactly the first bytes are there.
pub fn truncated(me: i32) {
    let mut seq = 0u64;
    for timeout in [0, 2, -1] {
        sendbuf_set(64 << 20, timeout);
        barrier();
        for (len, room) in [
            (16usize, 9usize),
            (17, 9),
            (1000, 60),
            (9, 0),
            (5000, 4100),
            (40_000, 36_000),
            (400_000, 36_000),
            (1 << 20, 0),
        ] {
            for to in SHAPES {
                for request in [false, true] {
                    seq += 1;
                    let what = format!("{len} bytes into {room} of {to:?}, time-out {timeout}, request {request}");
                    let content = seed(0, 1, 35, seq);
                    if me == 0 {
                        let data = message(len, content);
                        if seq.is_multiple_of(2) {
                            isend(&data, 1, 35);
                            isend_wait(1, 35);
                        } else {
                            send(&data, 1, 35);
                        }
                    } else {
                        if seq.is_multiple_of(5) {
                            sleep_ms(3);
                        }
                        let mut place = Placed::new(to, room);
                        let mut code = place.recv(0, 35, request);
                        if request {
                            ok(code);
                            code = try_irecv_wait(0, 35);
                        }
                        fails(code, TRUNCATE);
                        let text = last_error();
                        assert!(text.contains(&len.to_string()) && text.contains("index 35"), "{what}: {text}");
                        check(&place.get(room, &what), content, &what);
                        assert_eq!(received(0, 35), (len, 35), "{what}");
                    }
                }
            }
        }
    }
}

/// Messages longer than the spool into memory where no device of another node can put them: short runs, lists, and rooms so small that their
/// receives wait for short messages. Posted before and about then, in every mode.
pub fn beyond_the_spool(me: i32) {
    // Products of two primes: blocks of them have runs of 787 and 1013 bytes.
    let length = if crate::slow_links() { 509 * 787 } else { 1009 * 1013 };
    let (other, mut seq) = (1 - me, 0u64);
    for timeout in [5, -1, 0] {
        sendbuf_set(length / 3, timeout);
        for shape in [Shape::Block, Shape::Downwards, Shape::List, Shape::Halves, Shape::Flat] {
            for room in [length, 20, 0] {
                seq += 1;
                let (src, content) = ((seq % 2) as i32, seed(0, 1, 36, seq));
                let what = format!("{length} bytes beyond the spool into {room} of {shape:?}, time-out {timeout}");
                // Buffered sends are promised room only for what is posted.
                let posted = timeout == 0 || seq.is_multiple_of(3);
                barrier();
                if me == src {
                    let data = message(length, content);
                    if posted {
                        recv(&mut [], other, 37);
                    }
                    if seq.is_multiple_of(4) {
                        isend(&data, other, 36);
                        isend_wait(other, 36);
                    } else {
                        send(&data, other, 36);
                    }
                } else {
                    let mut place = Placed::new(shape, room);
                    ok(place.recv(other, 36, true));
                    if posted {
                        send(&[], other, 37);
                    }
                    let code = try_irecv_wait(other, 36);
                    if room == length {
                        ok(code)
                    } else {
                        fails(code, TRUNCATE)
                    }
                    check(&place.get(room, &what), content, &what);
                    assert_eq!(received(other, 36).0, length, "{what}");
                }
            }
        }
    }
    // One that is wanted as a loan.
    mode(10);
    sendbuf_set(length / 3, 10);
    if me == 0 {
        send(&message(length, 38), 1, 38);
    } else {
        let (mut at, mut len) = (std::ptr::null::<std::ffi::c_void>(), 0);
        ok(fmpl_recv_loan((&mut at).into(), (&mut len).into(), 0, 38, comm()));
        // SAFETY: so many bytes, until they are returned.
        check(unsafe { std::slice::from_raw_parts(at.cast::<u8>(), len) }, 38, "a loan longer than the spool");
        ok(fmpl_loan_return(at));
    }
    mode(10);
}
