//! Three and four ranks, which are more than this machine may have cores: all with all, at once and in turn.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use std::collections::HashMap;

const SIZES: [usize; 9] = [0, 8, 17, 100, 1025, 4097, 60_000, 200_000, 1_100_000];

/// Everybody sends to everybody, itself included: all receives and sends are begun before one is completed.
pub fn all_to_all(me: i32) {
    let ranks = size();
    for (k, len) in SIZES.into_iter().enumerate() {
        for timeout in [0, 5, -1] {
            sendbuf_set(64 << 20, timeout);
            let round = (k * 4) as u64 + (timeout + 1) as u64;
            let out: Vec<_> = (0..ranks).map(|dst| message(len, seed(me, dst, 3, round))).collect();
            let mut inn: Vec<_> = (0..ranks).map(|_| vec![0; len]).collect();
            (0..ranks).for_each(|src| irecv(&mut inn[src as usize], src, 3));
            // Each in an order of its own.
            (0..ranks).map(|n| (me + n) % ranks).for_each(|dst| isend(&out[dst as usize], dst, 3));
            for n in 0..ranks {
                let peer = (me + ranks - n) % ranks;
                if n % 2 == 0 {
                    irecv_wait(peer, 3);
                    isend_wait(peer, 3);
                } else {
                    isend_poll(peer, 3);
                    irecv_poll(peer, 3);
                }
            }
            for src in 0..ranks {
                let what = format!("all to all, {len} bytes from {src} to {me}, time-out {timeout}");
                check(&inn[src as usize], seed(src, me, 3, round), &what);
            }
        }
    }
    barrier();
}

/// A ring of blocking calls: each passes on what it has got, and gets its own back.
pub fn around(me: i32) {
    let ranks = size();
    let (next, last) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    for (k, len) in SIZES.into_iter().enumerate() {
        for timeout in [0, 2, -1] {
            sendbuf_set(64 << 20, timeout);
            let mine = seed(me, me, 4, k as u64);
            let mut data = message(len, mine);
            for _ in 0..ranks {
                let mut got = vec![0; len];
                sendrecv(&data, next, 4, &mut got, last, 4);
                data = got;
            }
            check(&data, mine, &format!("{len} bytes around {ranks} ranks, time-out {timeout}"));
            // One after the other: the first sends before it receives.
            if me == 0 {
                send(&data, next, 5);
                recv(&mut data, last, 5);
                check(&data, mine, &format!("{len} bytes around {ranks} ranks in turn, time-out {timeout}"));
            } else {
                let mut got = vec![0; len];
                recv(&mut got, last, 5);
                check(&got, seed(0, 0, 4, k as u64), "passed on");
                send(&got, next, 5);
            }
        }
    }
    barrier();
}

/// Rank 0 serves the others, by any index of each in turn, with answers of another size.
pub fn served(me: i32) {
    const REQUESTS: u64 = 60;
    let ranks = size();
    sendbuf_set(64 << 20, [10, 0, -1][ranks as usize % 3]);
    barrier();
    let asked = |k: u64| [8, 0, 300, 5000, 80_000][k as usize % 5];
    let answered = |k: u64| [80_000, 16, 5000, 0, 300][k as usize % 5];
    if me == 0 {
        let mut counts: HashMap<(i32, i32), u64> = HashMap::new();
        let mut buf = vec![0; 80_000];
        for k in 0..REQUESTS {
            for src in 1..ranks {
                recv(&mut buf, src, ANY);
                let (len, index) = received(src, ANY);
                let seq = counts.entry((src, index)).or_insert(0);
                assert_eq!(len, asked(k), "request {k} of {src}");
                check(&buf[..len], seed(src, 0, index, *seq), &format!("request {k} of {src}"));
                *seq += 1;
                send(&message(answered(k), seed(0, src, index, k)), src, index);
            }
        }
    } else {
        let mut counts: HashMap<i32, u64> = HashMap::new();
        let mut draw = Draw(me as u64);
        for k in 0..REQUESTS {
            let index = draw.below(30) as i32;
            let seq = counts.entry(index).or_insert(0);
            let data = message(asked(k), seed(me, 0, index, *seq));
            *seq += 1;
            let mut buf = vec![0; answered(k)];
            sendrecv(&data, 0, index, &mut buf, 0, index);
            check(&buf, seed(0, me, index, k), &format!("answer {k} to {me}"));
        }
    }
    barrier();
}
