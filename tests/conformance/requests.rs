//! Requests: what may overlap, cancelling, probing, time-outs, delivery without the sender.

use fmpl::ffi::c::*;

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::placed::*;

/// What is BUSY and what is not, as promised, and that the index is usable afterwards.
pub fn what_may_overlap(me: i32) {
    let (a, b) = (message(5000, 1), message(5000, 2));
    for timeout in [-1, 1000] {
        mode(timeout);
        barrier();
        if me == 0 {
            isend(&a, 1, 0);
            fails(try_isend(&b, 1, 0), BUSY);
            fails(try_send(&b, 1, 0), BUSY);
            fails(try_send(&b[..8], 1, 0), BUSY);
            assert!(last_error().contains("peer 1") && last_error().contains("index 0"), "{}", last_error());
            // Other indices and the other direction do not mind.
            isend(&b, 1, 1);
            barrier();
            isend_wait(1, 0);
            isend_wait(1, 1);
            fails(try_isend_wait(1, 0), REQUEST);
            isend(&b, 1, 0);
            isend_wait(1, 0);
            barrier();
        } else {
            let (mut x, mut y) = (vec![0; 5000], vec![0; 5000]);
            barrier();
            irecv(&mut x, 0, 0);
            fails(try_irecv(&mut y, 0, 0), BUSY);
            fails(try_recv(&mut y, 0, 0), BUSY);
            fails(try_recv(&mut y[..8], 0, 0), BUSY);
            irecv(&mut y, 0, 1);
            irecv_wait(0, 1);
            irecv_wait(0, 0);
            check(&x, 1, "the first");
            check(&y, 2, "on the other index");
            fails(try_irecv_wait(0, 0), REQUEST);
            recv(&mut x, 0, 0);
            check(&x, 2, "after BUSY");
            barrier();
        }
    }
    // A request that was complete at once keeps the index busy all the same.
    mode(0);
    barrier();
    if me == 0 {
        isend(&a[..8], 1, 2);
        fails(try_isend(&a[..8], 1, 2), BUSY);
        fails(try_send(&a[..8], 1, 2), BUSY);
        isend_wait(1, 2);
        // Sends over sent messages are legal.
        for k in 0..50 {
            send(&message(8 + k % 3 * 3000, k as u64), 1, 2);
        }
        barrier();
        barrier();
    } else {
        barrier();
        let mut x = vec![0; 8];
        irecv(&mut x, 0, 2);
        fails(try_irecv(&mut [0; 8], 0, 2), BUSY);
        fails(try_recv(&mut [0; 8], 0, 2), BUSY);
        assert!(irecv_test(0, 2));
        check(&x, 1, "complete at once");
        for k in 0..50 {
            let mut x = vec![0; 8 + k % 3 * 3000];
            recv(&mut x, 0, 2);
            check(&x, k as u64, "a stream");
        }
        barrier();
    }
}

/// A cancelled receive leaves the message for the next one; one that was not cancelled completes.
pub fn cancelled(me: i32) {
    let mut outcomes = [0; 2];
    for round in 0..if crate::slow_links() { 150u64 } else { 400 } {
        let timeout = [-1, 1, 0][round as usize % 3];
        let len = [8, 600, 5000, 60_000, 300_000][round as usize % 5];
        if me == 0 {
            sendbuf_set(64 << 20, timeout);
        }
        barrier();
        let content = seed(0, 1, 40, round);
        if me == 0 {
            for _ in 0..(round * 37) % 500 {
                std::hint::spin_loop();
            }
            let data = message(len, content);
            if round % 2 == 0 {
                send(&data, 1, 40);
            } else {
                isend(&data, 1, 40);
                isend_wait(1, 40);
            }
        } else {
            let mut first = vec![0x11; len];
            let mut second = vec![0x22; len];
            irecv(&mut first, 0, 40);
            for _ in 0..(round * 53) % 1500 {
                std::hint::spin_loop();
            }
            if round % 7 == 0 && irecv_test(0, 40) {
                outcomes[0] += 1;
                check(&first, content, "tested");
                continue;
            }
            if cancel(0, 40) {
                outcomes[1] += 1;
                fails(try_irecv_wait(0, 40), REQUEST);
                let before = first.clone();
                recv(&mut second, 0, 40);
                check(&second, content, &format!("cancelled, then received: {len} bytes, round {round}"));
                assert!(
                    first == before && first.iter().all(|b| *b == 0x11),
                    "a cancelled buffer was written, {len} bytes"
                );
            } else {
                outcomes[0] += 1;
                irecv_wait(0, 40);
                check(&first, content, &format!("not cancelled: {len} bytes, round {round}"));
            }
        }
    }
    barrier();
    // Nobody sends: it is always in time.
    if me == 1 {
        let mut buf = [0; 100];
        for _ in 0..100 {
            irecv(&mut buf, 0, 40);
            assert!(cancel(0, 40));
            fails_cancel(40);
        }
        println!("not cancelled {}, cancelled {}", outcomes[0], outcomes[1]);
    }
}

#[track_caller]
fn fails_cancel(index: i32) {
    let mut cancelled = 0;
    fails(fmpl::ffi::c::fmpl_irecv_cancel(0, index, WORLD, (&mut cancelled).into()), REQUEST);
}

pub fn probed(me: i32) {
    for (k, len) in [0usize, 8, 16, 17, 1000, 5000, 100_000].into_iter().enumerate() {
        for timeout in [0, 1] {
            mode(timeout);
            let index = 50 + k as i32;
            if me == 0 {
                send(&message(len, 3), 1, index);
                send(&message(len + 1, 4), 1, index);
                barrier();
                barrier();
            } else {
                barrier();
                assert_eq!(probe(0, index), Some(len));
                assert_eq!(probe(0, index), Some(len));
                let mut buf = vec![0; len + 1];
                recv(&mut buf, 0, index);
                check(&buf[..len], 3, "probed");
                assert_eq!(probe(0, index), Some(len + 1));
                assert_eq!(received(0, index), (len, index));
                irecv(&mut buf, 0, index);
                irecv_wait(0, index);
                check(&buf, 4, "probed");
                assert_eq!(probe(0, index), None);
                barrier();
            }
        }
        // What is offered or waits is there or not, by what the library can know; it must not be taken for another.
        mode(-1);
        if me == 0 {
            let data = message(len, 5);
            isend(&data, 1, 60);
            barrier();
            isend_wait(1, 60);
        } else {
            barrier();
            let found = probe(0, 60);
            assert!(found.is_none() || found == Some(len), "{found:?}");
            let mut buf = vec![0; len];
            recv(&mut buf, 0, 60);
            check(&buf, 5, "probed while it waits");
        }
    }
}

/// isend, wait: spooled when the time-out has passed, though nobody receives; received later. Many at once.
pub fn isend_spools_after_its_time(me: i32) {
    sendbuf_set(64 << 20, 3);
    for len in [8usize, 5000, 100_000] {
        barrier();
        if me == 0 {
            let data: Vec<_> = (0..150).map(|i| message(len, seed(0, 1, i, 0))).collect();
            for i in 0..150 {
                isend(&data[i as usize], 1, i);
            }
            for i in 0..150 {
                if i % 3 == 0 { isend_poll(1, i) } else { isend_wait(1, i) }
            }
            drop(data);
            // Once more over what nobody has received yet.
            let data: Vec<_> = (0..150).map(|i| message(len / 2, seed(0, 1, i, 1))).collect();
            for i in 0..150 {
                if i % 2 == 0 { isend(&data[i as usize], 1, i) } else { send(&data[i as usize], 1, i) }
            }
            for i in (0..150).step_by(2) {
                isend_wait(1, i);
            }
            drop(data);
            barrier();
        } else {
            barrier();
            for i in (0..150).rev() {
                for (seq, n) in [(0, len), (1, len / 2)] {
                    let mut buf = vec![0; n];
                    recv(&mut buf, 0, i);
                    check(&buf, seed(0, 1, i, seq), &format!("late, index {i}, message {seq}, {n} bytes"));
                }
            }
        }
    }
}

/// An isend of long data of any shape, buffered or not, moves while its sender sleeps. Needs the kernel's copy or an offer.
pub fn isend_moves_without_its_sender(me: i32) {
    mode(-1);
    for (round, from) in SHAPES.into_iter().enumerate() {
        let to = SHAPES[(round + 2) % SHAPES.len()];
        let (len, what) = (1 << 20, format!("pulled from {from:?} to {to:?}"));
        barrier();
        if me == 0 {
            let mut place = Placed::new(from, len);
            place.put(&message(len, 77));
            ok(place.send(1, 3, true));
            barrier();
            // This side does nothing for its isend until the other one says, on another index, that it has the message.
            recv(&mut [0; 8], 1, 4);
            isend_wait(1, 3);
        } else {
            barrier();
            let mut place = Placed::new(to, len);
            ok(place.recv(0, 3, false));
            check(&place.get(len, &what), 77, &what);
            send(&[1; 8], 0, 4);
        }
    }
}

/// A receive of any shape is filled while its receiver does something else.
pub fn irecv_is_filled_without_its_receiver(me: i32) {
    mode(-1);
    for (round, to) in SHAPES.into_iter().enumerate() {
        let from = SHAPES[(round + 4) % SHAPES.len()];
        let (len, what) = (300_000, format!("put from {from:?} to {to:?}"));
        let mut place = Placed::new(if me == 0 { from } else { to }, len);
        if me == 0 {
            place.put(&message(len, 78));
            barrier();
            // Synchronous, so this returns when the message is in its place, or in the spool where the kernel does not copy.
            ok(place.send(1, 3, false));
            barrier();
        } else {
            ok(place.recv(0, 3, true));
            barrier();
            barrier();
            irecv_wait(0, 3);
            check(&place.get(len, &what), 78, &what);
        }
    }
}

/// Memory that the kernel copies for nobody but its owner, as it does with a device's: secret memory where there is such.
fn kept_from_the_kernel(len: usize) -> &'static mut [u8] {
    // SAFETY: a new mapping of its own, which stays; without secret memory, or the right to so much, an ordinary one.
    unsafe {
        let fd = libc::syscall(libc::SYS_memfd_secret, 0) as i32;
        let secret = fd >= 0 && libc::ftruncate(fd, len as i64) == 0;
        let map = |flags, fd| libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
        let mut at = if secret { map(libc::MAP_SHARED, fd) } else { libc::MAP_FAILED };
        if at == libc::MAP_FAILED {
            at = map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        }
        assert!(at != libc::MAP_FAILED);
        libc::close(fd);
        std::slice::from_raw_parts_mut(at.cast(), len)
    }
}

/// Requests in such memory, whose receiver does something else, go another way.
pub fn memory_that_the_kernel_does_not_copy(me: i32) {
    const LEN: usize = 300_000;
    mode(1);
    let (secret, mut plain) = (kept_from_the_kernel(LEN), vec![0; LEN]);
    for round in 0..4u64 {
        let secret_here = round >> me & 1 != 0;
        let buf: &mut [u8] = if secret_here { secret } else { &mut plain };
        if me == 0 {
            buf.copy_from_slice(&message(LEN, round));
            barrier();
            isend(buf, 1, 3);
            isend_wait(1, 3);
            barrier();
        } else {
            irecv(buf, 0, 3);
            barrier();
            barrier();
            irecv_wait(0, 3);
            check(buf, round, "into or out of memory that the kernel does not copy");
        }
        barrier();
    }
    // Both wait for the message in the receive, blocking and not; then the sender waits for the answer before it completes its send.
    for round in 0..8u64 {
        let [blocking, answered] = [4, 2].map(|bit| round & bit != 0);
        let secret_here = round as i32 & 1 == me;
        let buf: &mut [u8] = if secret_here { secret } else { &mut plain };
        barrier();
        if me == 0 {
            buf.copy_from_slice(&message(LEN, 10 + round));
            match blocking {
                true => send(buf, 1, 3),
                false => isend(buf, 1, 3),
            }
            if answered {
                recv(&mut [0; 8], 1, 4);
            }
            if !blocking {
                isend_wait(1, 3);
            }
        } else {
            recv(buf, 0, 3);
            check(buf, 10 + round, "waited for, into or out of memory that the kernel does not copy");
            if answered {
                send(&[1; 8], 0, 4);
            }
        }
    } // A shared copy that was moved keeps its transfer block until the next long message.
    if me == 0 {
        send(&message(LEN, 30), 1, 3);
    } else {
        recv(&mut plain, 0, 3);
    }
}

/// More requests at once than there are transfer blocks, and blocks whose message was moved to the spool.
pub fn more_offers_than_blocks(me: i32) {
    for round in 0..3u64 {
        mode(if round == 0 { -1 } else { 1 });
        barrier();
        if me == 0 {
            let data: Vec<_> = (0..200).map(|i| message(6000 + i as usize, seed(0, 1, i, round))).collect();
            (0..200).for_each(|i| isend(&data[i as usize], 1, i));
            if round > 0 {
                (0..200).for_each(|i| isend_wait(1, i));
            }
            barrier();
            if round == 0 {
                (0..200).for_each(|i| isend_wait(1, i));
            }
        } else {
            barrier();
            for i in 0..200 {
                let i = if round == 1 { i } else { 199 - i };
                let mut buf = vec![0; 6000 + i as usize];
                recv(&mut buf, 0, i);
                check(&buf, seed(0, 1, i, round), "one of many offers");
            }
        }
    }
}

/// An offer that was moved into the spool gives its transfer block back at once: any number of them may lie unreceived.
pub fn moved_offers_keep_nothing(me: i32) {
    mode(1);
    barrier();
    if me == 0 {
        let data: Vec<_> = (0..100).map(|i| message(6000, seed(0, 1, i, 5))).collect();
        (0..100).for_each(|i| isend(&data[i as usize], 1, i));
        (0..100).for_each(|i| isend_wait(1, i));
        let lane = fmpl::p2p::endpoint::endpoint().unwrap().lane(1).unwrap();
        assert_eq!(lane.transfers_used.load(std::sync::atomic::Ordering::Relaxed), 0, "transfer blocks in use");
        drop(data);
        barrier();
        // Offers in blocks that moved ones had.
        mode(-1);
        let data: Vec<_> = (0..30).map(|i| message(6000, seed(0, 1, i, 6))).collect();
        (0..30).for_each(|i| isend(&data[i as usize], 1, 100 + i));
        barrier();
        (0..30).for_each(|i| isend_wait(1, 100 + i));
    } else {
        barrier();
        barrier();
        for i in 0..30 {
            let mut buf = vec![0; 6000];
            recv(&mut buf, 0, i);
            check(&buf, seed(0, 1, i, 5), "moved, and its block used again");
            recv(&mut buf, 0, 100 + i);
            check(&buf, seed(0, 1, i, 6), "offered in a block used before");
        }
        for i in 30..100 {
            let mut buf = vec![0; 6000];
            recv(&mut buf, 0, i);
            check(&buf, seed(0, 1, i, 5), "moved");
        }
    }
    barrier();
}

/// Synchronous, to itself: an error when only the waiting thread could receive it, in any length; otherwise it is received.
pub fn isend_to_itself(me: i32) {
    mode(-1);
    for len in [8usize, 60, 700, 5000, 300_000] {
        let data = message(len, 9);
        isend(&data, me, 70);
        assert!(!isend_test(me, 70));
        fails(try_isend_wait(me, 70), ARGUMENT);
        assert!(last_error().contains("to itself on index 70"), "{}", last_error());
        fails(try_isend_wait(me, 70), REQUEST);
        assert_eq!(probe(me, 70), None, "nothing was sent");
        // Received before it is completed, by each kind of call.
        let mut buf = vec![0; len];
        isend(&data, me, 70);
        recv(&mut buf, me, 70);
        check(&buf, 9, "received over a pending isend");
        isend_wait(me, 70);
        buf.fill(0);
        isend(&data, me, 70);
        irecv(&mut buf, me, 70);
        isend_wait(me, 70);
        irecv_wait(me, 70);
        check(&buf, 9, "irecv after isend");
        buf.fill(0);
        irecv(&mut buf, me, 70);
        isend(&data, me, 70);
        isend_poll(me, 70);
        irecv_poll(me, 70);
        check(&buf, 9, "isend after irecv");
    }
    // A list, whose pieces only the receiving call knows.
    let data = message(3000, 10);
    let (mut one, mut two) = (vec![0u8; 1000], vec![0u8; 2000]);
    let list = [&mut one, &mut two].map(|v| libc::iovec { iov_base: v.as_mut_ptr().cast(), iov_len: v.len() });
    isend(&data, me, 71);
    // SAFETY: the list and its pieces live for the length of the call.
    ok(unsafe { fmpl::ffi::c::fmpl_recv_list(list.as_ptr(), 2, me, 71, WORLD) });
    isend_wait(me, 71);
    one.extend(two);
    check(&one, 10, "a list received over a pending isend");
}

/// Messages longer than the spool go both ways at once, posted first, in every order of completing them and by tests alone.
pub fn longer_than_the_spool_both_ways(me: i32) {
    let length = if crate::slow_links() { 1_300_000 } else { 3_000_000 };
    let other = 1 - me;
    for (round, timeout) in [5, -1, 0].into_iter().enumerate() {
        sendbuf_set(1 << 20, timeout);
        for order in 0..6u64 {
            if timeout == 0 && order == 0 {
                // Buffered sends are promised room only for what is posted.
                continue;
            }
            let content = |from: i32, index: i32| seed(from, 1 - from, index, order * 3 + round as u64);
            let out = [80, 81].map(|i| message(length, content(me, i)));
            let mut inn = [vec![0; length], vec![0; length]];
            barrier();
            if order == 0 {
                sendrecv(&out[0], other, 80, &mut inn[0], other, 80);
                sendrecv(&out[1], other, 81, &mut inn[1], other, 81);
            } else {
                let [first, second] = &mut inn;
                irecv(first, other, 80);
                irecv(second, other, 81);
                if timeout == 0 {
                    barrier();
                }
                if order == 5 {
                    send(&out[0], other, 80);
                    send(&out[1], other, 81);
                } else {
                    isend(&out[0], other, 80);
                    isend(&out[1], other, 81);
                }
                match order {
                    1 => {
                        (80..82).for_each(|i| isend_wait(other, i));
                        (80..82).for_each(|i| irecv_wait(other, i));
                    }
                    2 => {
                        (80..82).rev().for_each(|i| irecv_wait(other, i));
                        (80..82).for_each(|i| isend_wait(other, i));
                    }
                    3 => {
                        irecv_wait(other, 81);
                        isend_wait(other, 80);
                        irecv_wait(other, 80);
                        isend_wait(other, 81);
                    }
                    4 => {
                        let mut left = vec![(true, 80), (false, 80), (true, 81), (false, 81)];
                        while !left.is_empty() {
                            left.retain(|(s, i)| if *s { !isend_test(other, *i) } else { !irecv_test(other, *i) });
                        }
                    }
                    _ => (80..82).for_each(|i| irecv_wait(other, i)),
                }
            }
            for (k, i) in [80, 81].into_iter().enumerate() {
                check(&inn[k], content(other, i), &format!("beyond the spool, order {order}, time-out {timeout}"));
            }
        }
    }
    mode(10);
}

fn send_init(buf: &[u8], dst: i32, index: i32) -> i32 {
    // SAFETY: the buffer stays until the last request is completed, as the callers see to.
    unsafe { fmpl_send_init(buf.as_ptr().cast(), buf.len(), dst, index, comm()) }
}

fn recv_init(buf: &mut [u8], src: i32, index: i32) -> i32 {
    // SAFETY: as above.
    unsafe { fmpl_recv_init(buf.as_mut_ptr().cast(), buf.len(), src, index, comm()) }
}

fn send_start(dst: i32, index: i32) -> i32 {
    fmpl_send_start(dst, index, comm())
}

fn recv_start(src: i32, index: i32) -> i32 {
    fmpl_recv_start(src, index, comm())
}

/// Messages that are prepared once and begun over and over, by one side or both, of every length, in every mode.
pub fn prepared(me: i32) {
    let (peer, world) = (1 - me, comm());
    fails(send_start(peer, 90), REQUEST);
    fails(recv_start(peer, 90), REQUEST);
    assert!(last_error().contains("index 90") && last_error().contains("recv_init"), "{}", last_error());
    fails(recv_init(&mut [], peer, ANY), INDEX);
    fails(send_init(&[], 7, 90), RANK);
    ok(send_init(&[1], FMPL_PROC_NULL, 90));
    ok(send_start(FMPL_PROC_NULL, 90));
    isend_wait(FMPL_PROC_NULL, 90);
    for (k, len) in [0usize, 8, 17, 1000, 5000, 100_000].into_iter().enumerate() {
        for timeout in [-1, 0, 1000] {
            mode(timeout);
            barrier();
            let index = 91 + k as i32;
            let mut buf = vec![0u8; len];
            if me == 0 {
                ok(send_init(&buf, 1, index));
            } else {
                ok(recv_init(&mut buf, 0, index));
            }
            for round in 0..10u64 {
                let content = seed(0, 1, index, round);
                let plain = round % 5 == 3;
                if me == 0 {
                    fill(&mut buf, content);
                    if plain {
                        isend(&buf, 1, index)
                    } else {
                        ok(send_start(1, index))
                    }
                    fails(send_start(1, index), BUSY);
                    fails(send_init(&buf, 1, index), BUSY);
                    if round % 3 == 0 {
                        isend_poll(1, index)
                    } else {
                        isend_wait(1, index)
                    }
                    continue;
                }
                if round % 5 == 2 {
                    irecv(&mut buf, 0, index)
                } else {
                    ok(recv_start(0, index))
                }
                fails(recv_start(0, index), BUSY);
                fails(recv_init(&mut buf, 0, index), BUSY);
                if round % 3 == 1 {
                    irecv_poll(0, index)
                } else {
                    irecv_wait(0, index)
                }
                check(&buf, content, &format!("prepared, {len} bytes, round {round}"));
            }
        }
    }
    // With another buffer, and on another communicator, which takes what was prepared on it away.
    let (mut a, mut b, mine) = ([0u8; 8], [0u8; 8], [me as u8 + 1; 8]);
    for _ in 0..3 {
        let other = dup(world);
        on(other);
        fails(recv_start(peer, 3), REQUEST);
        ok(recv_init(&mut a, peer, 3));
        ok(recv_init(&mut b, peer, 3));
        ok(send_init(&mine, peer, 3));
        ok(recv_start(peer, 3));
        ok(send_start(peer, 3));
        irecv_wait(peer, 3);
        isend_wait(peer, 3);
        assert_eq!((a, b), ([0; 8], [peer as u8 + 1; 8]));
        b = [0; 8];
        on(world);
        free(other);
    }
    // One that is withdrawn can be started again.
    barrier();
    if me == 1 {
        ok(recv_init(&mut a, 0, 99));
        ok(recv_start(0, 99));
        assert!(cancel(0, 99));
        ok(recv_start(0, 99));
        barrier();
        irecv_wait(0, 99);
        assert_eq!(a, [9; 8]);
    } else {
        barrier();
        send(&[9; 8], 1, 99);
    }
}
