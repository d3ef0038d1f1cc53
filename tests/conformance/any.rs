//! Receives of any index of one source.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use std::collections::HashMap;

/// Takes one message of any index and checks that it is the next one of its index.
fn take(src: i32, next: &mut HashMap<i32, u64>, len_of: impl Fn(i32, u64) -> usize, with: usize) -> i32 {
    let mut buf = vec![0; 200_000];
    match with {
        0 => recv(&mut buf, src, ANY),
        1 => {
            irecv(&mut buf, src, ANY);
            irecv_wait(src, ANY);
        }
        _ => {
            irecv(&mut buf, src, ANY);
            irecv_poll(src, ANY);
        }
    }
    let (len, index) = received(src, ANY);
    let seq = next.entry(index).or_insert(0);
    assert_eq!(len, len_of(index, *seq), "message {seq} of index {index}");
    check(&buf[..len], seed(src, rank(), index, *seq), &format!("message {seq} of index {index} by any"));
    assert_eq!(received(src, index), (len, index), "the index itself knows it as well");
    *seq += 1;
    index
}

fn len_of(index: i32, seq: u64) -> usize {
    [8, 0, 16, 17, 700, 5000, 70_000, 150_000][(index as u64 * 3 + seq) as usize % 8]
}

/// Random indices, all modes, blocking and not; the receiver takes whatever comes.
pub fn takes_whatever_comes(me: i32) {
    let mut sent: HashMap<i32, u64> = HashMap::new();
    let mut got: HashMap<i32, u64> = HashMap::new();
    for src in 0..2 {
        sent.clear();
        got.clear();
        let mut draw = Draw(7);
        for timeout in [0, 1, -1, 10] {
            sendbuf_set(64 << 20, timeout);
            barrier();
            for _ in 0..if crate::slow_links() { 50 } else { 150 } {
                let index = draw.below(40) as i32;
                if me == src {
                    let seq = sent.entry(index).or_insert(0);
                    let data = message(len_of(index, *seq), seed(src, 1 - src, index, *seq));
                    *seq += 1;
                    if draw.clone().one_in(2) {
                        send(&data, 1 - src, index);
                    } else {
                        isend(&data, 1 - src, index);
                        isend_wait(1 - src, index);
                    }
                } else {
                    let with = draw.clone().below(3);
                    if draw.clone().one_in(30) {
                        sleep_ms(3);
                    }
                    take(src, &mut got, len_of, with);
                }
            }
        }
        barrier();
        if me != src {
            assert_eq!(probe(src, ANY), None);
        }
    }
}

/// Raised when messages lie there already: in the landing, in the chain, in the spool, as an offer.
pub fn sees_what_was_sent_before(me: i32) {
    mode(1);
    if me == 0 {
        let large = message(100_000, seed(0, 1, 402, 0));
        for index in [300, 301, 365] {
            for seq in 0..5 {
                send(&message(len_of(index, seq), seed(0, 1, index, seq)), 1, index);
            }
        }
        isend(&large, 1, 402);
        barrier();
        isend_wait(1, 402);
        barrier();
    } else {
        barrier();
        let mut got = HashMap::new();
        let len = |index: i32, seq: u64| if index == 402 { 100_000 } else { len_of(index, seq) };
        for with in 0..16 {
            take(0, &mut got, len, with % 3);
        }
        assert_eq!(got.values().copied().collect::<std::collections::BTreeSet<_>>(), [1, 5].into());
        barrier();
    }
}

/// A synchronous sender that waits, on indices that were never used, is found, short and long.
pub fn finds_waiting_senders(me: i32) {
    mode(-1);
    barrier();
    for (k, len) in [8usize, 16, 900, 5000, 200_000].into_iter().enumerate() {
        for (j, request) in [false, true].into_iter().enumerate() {
            for (i, late) in [true, false].into_iter().enumerate() {
                // Groups of indices that nobody has touched.
                let index = 600 + 64 * ((k * 2 + j) * 2 + i) as i32;
                let what = format!("{len} bytes, request {request}, late {late}");
                if me == 0 {
                    let data = message(len, seed(0, 1, index, 0));
                    if request {
                        isend(&data, 1, index);
                        isend_wait(1, index);
                    } else {
                        send(&data, 1, index);
                    }
                } else {
                    if late {
                        sleep_ms(5);
                    }
                    let mut buf = vec![0; len];
                    if i == 0 {
                        recv(&mut buf, 0, ANY);
                    } else {
                        irecv(&mut buf, 0, ANY);
                        irecv_poll(0, ANY);
                    }
                    assert_eq!(received(0, ANY), (len, index), "{what}");
                    check(&buf, seed(0, 1, index, 0), &what);
                }
                barrier();
            }
        }
    }
}

/// An isend nobody waits for yet is found: its sender makes no call meanwhile.
pub fn finds_pending_isends(me: i32) {
    for (k, timeout) in [-1, 10_000, 0].into_iter().enumerate() {
        mode(timeout);
        for (j, len) in [8usize, 900, 5000, 200_000].into_iter().enumerate() {
            let index = 2500 + 64 * (k * 4 + j) as i32;
            if me == 0 {
                let data = message(len, seed(0, 1, index, 0));
                isend(&data, 1, index);
                barrier();
                isend_wait(1, index);
            } else {
                barrier();
                let mut buf = vec![0; len];
                recv(&mut buf, 0, ANY);
                assert_eq!(received(0, ANY), (len, index));
                check(&buf, seed(0, 1, index, 0), "a pending isend by any");
            }
            barrier();
        }
    }
}

/// The indexed receive that is pending has precedence; what it leaves over is not lost for any.
pub fn leaves_indexed_receives_alone(me: i32) {
    mode(0);
    for round in 0..20 {
        if me == 0 {
            barrier();
            for seq in 0..3 {
                send(&message(24, seed(0, 1, 70, round * 3 + seq)), 1, 70);
            }
            barrier();
        } else {
            let (mut first, mut buf) = ([0; 24], [0; 24]);
            irecv(&mut first, 0, 70);
            irecv(&mut buf, 0, ANY);
            assert!(!irecv_test(0, ANY));
            barrier();
            barrier();
            // Only what belongs to the pending receive is first in line.
            assert!(!irecv_test(0, ANY), "took the message of a pending indexed receive");
            irecv_wait(0, 70);
            check(&first, seed(0, 1, 70, round * 3), "the indexed one");
            irecv_wait(0, ANY);
            check(&buf, seed(0, 1, 70, round * 3 + 1), "the first of any");
            assert_eq!(received(0, ANY), (24, 70));
            if round % 2 == 0 {
                recv(&mut buf, 0, ANY);
            } else {
                recv(&mut buf, 0, 70);
            }
            check(&buf, seed(0, 1, 70, round * 3 + 2), "the last");
        }
    }
}

pub fn can_be_cancelled(me: i32) {
    for round in 0..60u64 {
        mode([-1, 1][round as usize % 2]);
        let len = [8, 5000, 100_000][round as usize % 3];
        barrier();
        if me == 0 {
            if round % 4 < 2 {
                sleep_ms(round % 3);
            }
            send(&message(len, seed(0, 1, 80, round)), 1, 80);
        } else {
            let mut buf = vec![0; len];
            let mut tries = 0;
            loop {
                irecv(&mut buf, 0, ANY);
                fails(try_irecv(&mut [0; 8], 0, ANY), BUSY);
                if tries % 2 == 1 && irecv_test(0, ANY) {
                    break;
                }
                if !cancel(0, ANY) {
                    irecv_wait(0, ANY);
                    break;
                }
                fails(try_irecv_wait(0, ANY), REQUEST);
                tries += 1;
                if tries > 20 {
                    recv(&mut buf, 0, if round % 2 == 0 { ANY } else { 80 });
                    break;
                }
            }
            check(&buf, seed(0, 1, 80, round), "after cancelling");
        }
    }
}

pub fn truncates_and_probes(me: i32) {
    mode(1);
    if me == 0 {
        send(&message(5000, seed(0, 1, 90, 0)), 1, 90);
        send(&message(8, seed(0, 1, 91, 0)), 1, 91);
        barrier();
    } else {
        barrier();
        let found = probe(0, ANY);
        assert!(found == Some(5000) || found == Some(8), "{found:?}");
        for _ in 0..2 {
            let mut buf = [0; 100];
            let code = try_recv(&mut buf, 0, ANY);
            match received(0, ANY) {
                (5000, 90) => {
                    fails(code, TRUNCATE);
                    check(&buf, seed(0, 1, 90, 0), "the first bytes");
                }
                (8, 91) => {
                    ok(code);
                    check(&buf[..8], seed(0, 1, 91, 0), "the short one");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(probe(0, ANY), None);
    }
}

pub fn from_itself(me: i32) {
    for (k, timeout) in [0, 2].into_iter().enumerate() {
        mode(timeout);
        for (j, len) in [8usize, 900, 5000, 200_000].into_iter().enumerate() {
            let index = 100 + (k * 4 + j) as i32;
            send(&message(len, seed(me, me, index, 0)), me, index);
            let mut buf = vec![0; len];
            recv(&mut buf, me, ANY);
            assert_eq!(received(me, ANY), (len, index));
            check(&buf, seed(me, me, index, 0), "from itself by any");
        }
    }
}

/// A pending receive of any index is all that a synchronous send waits for, whatever its receiver does meanwhile.
pub fn is_seen_when_posted(me: i32) {
    mode(-1);
    let other = 1 - me;
    for (k, len) in [8usize, 40, 900, 5000, 200_000, 3_000_000, 20_000_000].into_iter().enumerate() {
        if len > 1_000_000 && crate::slow_links() {
            break;
        }
        // Each sends before it completes its own receive; to itself likewise.
        for (round, peer) in [other, other, me].into_iter().enumerate() {
            let index = 3000 + (k * 3 + round) as i32;
            let (data, mut buf) = (message(len, seed(me, peer, index, 0)), vec![0; len]);
            irecv(&mut buf, peer, ANY);
            if round == 1 {
                isend(&data, peer, index);
                isend_wait(peer, index);
            } else {
                send(&data, peer, index);
            }
            if k % 2 == 0 {
                irecv_wait(peer, ANY);
            } else {
                while !irecv_test(peer, ANY) {}
            }
            assert_eq!(received(peer, ANY), (len, index));
            check(&buf, seed(peer, me, index, 0), "by any, both first sending");
        }
        // The receiver is in another wait, before the send and after it; the sender asleep or not.
        let index = 3100 + k as i32;
        if me == 0 {
            sleep_ms(k as u64 % 3 * 4);
            send(&message(len, seed(0, 1, index, 0)), 1, index);
            send(&[1; 8], 1, 3200);
            send(&message(len, seed(0, 1, index, 1)), 1, index);
        } else {
            let mut buf = vec![0; len];
            for seq in 0..2 {
                if seq == 1 {
                    sleep_ms(k as u64 % 2 * 4);
                }
                irecv(&mut buf, 0, ANY);
                if seq == 0 {
                    recv(&mut [0; 8], 0, 3200);
                }
                irecv_wait(0, ANY);
                assert_eq!(received(0, ANY), (len, index));
                check(&buf, seed(0, 1, index, seq), "by any, while elsewhere");
            }
        }
        barrier();
    }
}

/// One receive of any index is for one message: no second synchronous send may count on it. What an indexed receive takes first leaves it
/// for the next.
pub fn is_for_one_message(me: i32) {
    mode(-1);
    for (round, len) in [8usize, 600, 40_000, 300_000].into_iter().enumerate() {
        let base = 3300 + 10 * round as i32;
        let content = |index| message(len, seed(0, 1, index, 0));
        if me == 0 {
            let data = [content(base), content(base + 1)];
            barrier();
            isend(&data[0], 1, base);
            isend(&data[1], 1, base + 1);
            let first = (0..).find(|n| isend_test(1, base + n % 2)).unwrap() % 2;
            for _ in 0..2000 {
                assert!(!isend_test(1, base + 1 - first), "two sends for one receive");
            }
            barrier();
            isend_wait(1, base + 1 - first);
            // The receive that this is sent for is told by its index, whose receive comes first.
            barrier();
            send(&content(base + 2), 1, base + 2);
            barrier();
            send(&content(base + 3), 1, base + 3);
            barrier();
            send(&content(base + 4), 1, base + 4);
            barrier();
        } else {
            let mut buf = vec![0; len];
            irecv(&mut buf, 0, ANY);
            barrier();
            barrier();
            irecv_wait(0, ANY);
            let (_, first) = received(0, ANY);
            check(&buf, seed(0, 1, first, 0), "the one that was done");
            recv(&mut buf, 0, ANY);
            let (_, second) = received(0, ANY);
            assert_eq!(first + second, 2 * base + 1);
            check(&buf, seed(0, 1, second, 0), "the other");
            irecv(&mut buf, 0, ANY);
            barrier();
            // Its send is done, or soon will be.
            let mut indexed = vec![0; len];
            recv(&mut indexed, 0, base + 2);
            check(&indexed, seed(0, 1, base + 2, 0), "the indexed one");
            barrier();
            irecv_wait(0, ANY);
            assert_eq!(received(0, ANY), (len, base + 3));
            check(&buf, seed(0, 1, base + 3, 0), "what came after the indexed one");
            irecv(&mut buf, 0, ANY);
            barrier();
            barrier();
            // Its sender was told that there is a receive.
            assert!(!cancel(0, ANY), "cancelled a receive that its sender counts on");
            irecv_wait(0, ANY);
            check(&buf, seed(0, 1, base + 4, 0), "what could not be cancelled");
        }
    }
}
