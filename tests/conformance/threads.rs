//! Many threads of both processes on indices of their own, in both directions at once, by the C functions.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use std::sync::Mutex;
use std::thread;

const THREADS: i32 = 8;
const LENGTHS: [usize; 8] = [8, 0, 17, 100, 1025, 4097, 60_000, 300_000];

fn rounds() -> u64 {
    if crate::ranks::long() { 3000 } else { 150 }
}

/// Sends, where the spool may be full of what threads that are ahead of their receivers have sent: then nothing was sent.
fn send_when_there_is_room(data: &[u8], peer: i32, index: i32) {
    loop {
        match try_send(data, peer, index) {
            SPOOL_FULL => thread::yield_now(),
            code => break ok(code),
        }
    }
}

/// Each index has a thread that sends and one that receives, on both sides: sixteen threads in each process, neighbours in memory.
pub fn on_their_own_indices(me: i32) {
    let peer = 1 - me;
    for timeout in [0, 10, -1] {
        sendbuf_set(64 << 20, timeout);
        barrier();
        thread::scope(|threads| {
            for t in 0..THREADS {
                let len = move |k: u64| LENGTHS[(k as usize * 3 + t as usize) % LENGTHS.len()];
                threads.spawn(move || {
                    for k in 0..rounds() / 3 {
                        let data = message(len(k), seed(me, peer, t, k));
                        if (k + t as u64).is_multiple_of(3) {
                            isend(&data, peer, t);
                            isend_wait(peer, t);
                            continue;
                        }
                        send_when_there_is_room(&data, peer, t);
                    }
                });
                threads.spawn(move || {
                    for k in 0..rounds() / 3 {
                        let mut buf = vec![0; len(k)];
                        if (k + t as u64).is_multiple_of(4) {
                            irecv(&mut buf, peer, t);
                            irecv_poll(peer, t);
                        } else {
                            recv(&mut buf, peer, t);
                        }
                        check(&buf, seed(peer, me, t, k), &format!("thread {t}, message {k}, time-out {timeout}"));
                    }
                });
            }
        });
        barrier();
    }
}

/// Threads that send on indices of their own, and on the other side one that receives by any index; both ways at once.
pub fn to_any_index(me: i32) {
    let peer = 1 - me;
    for timeout in [0, 5, -1] {
        sendbuf_set(64 << 20, timeout);
        barrier();
        let each = rounds() / 3;
        let len = |index: i32, k: u64| LENGTHS[(k as usize + index as usize) % LENGTHS.len()];
        let index_of = |t: i32| 100 + 37 * t;
        thread::scope(|threads| {
            for t in 0..THREADS / 2 {
                threads.spawn(move || {
                    for k in 0..each {
                        let index = index_of(t);
                        let data = message(len(index, k), seed(me, peer, index, k));
                        if k % 3 == 0 {
                            isend(&data, peer, index);
                            isend_wait(peer, index);
                        } else {
                            send_when_there_is_room(&data, peer, index);
                        }
                    }
                });
            }
            let counts = Mutex::new(vec![0u64; THREADS as usize / 2]);
            threads.spawn(move || {
                let mut counts = counts.lock().expect("counts");
                let mut buf = vec![0; 300_000];
                for n in 0..each * (THREADS as u64 / 2) {
                    if n % 2 == 0 {
                        recv(&mut buf, peer, ANY);
                    } else {
                        irecv(&mut buf, peer, ANY);
                        irecv_poll(peer, ANY);
                    }
                    let (got, index) = received(peer, ANY);
                    let t = ((index - 100) / 37) as usize;
                    let k = counts[t];
                    counts[t] += 1;
                    assert_eq!(got, len(index, k), "message {k} of index {index}");
                    let what = format!("message {k} of index {index} by any, time-out {timeout}");
                    check(&buf[..got], seed(peer, me, index, k), &what);
                }
                assert!(counts.iter().all(|n| *n == each));
            });
        });
        barrier();
    }
}
