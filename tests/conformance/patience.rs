//! `FMPL_EAGER=0`: in standard mode every message waits for its receive, the shortest too, for as long as its time-out says at least.

use std::time::{Duration, Instant};

use crate::ranks::Job;
use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use fmpl::launch::embedded::Nodes;

const LENGTHS: [usize; 11] = [0, 1, 8, 16, 17, 72, 104, 1000, 1024, 4096, 5000];
/// What the wait lasts at least.
const MS: i32 = 15;
/// Longer than a test may take.
const FOR_EVER: i32 = 1_000_000;

pub fn body() {
    init(16);
    let me = rank();
    barrier();
    // Nobody receives: each waits, and is spooled then.
    for (n, len) in LENGTHS.into_iter().enumerate() {
        if me == 0 {
            mode(MS);
            let data = message(len, n as u64);
            for request in [false, true] {
                let since = Instant::now();
                if request {
                    isend(&data, 1, 1);
                    isend_wait(1, 1);
                } else {
                    send(&data, 1, 0);
                }
                let waited = since.elapsed();
                assert!(waited >= Duration::from_millis(MS as u64), "{len} bytes: {waited:?}");
            }
        }
    }
    if me == 0 {
        let all = 2 * LENGTHS.len() as i32;
        assert_eq!(sendbuf_check(), (0, all), "all wait in the spool");
        // Those of no time-out do not wait, of whatever length.
        mode(0);
        LENGTHS.iter().for_each(|len| send(&message(*len, 3), 1, 2));
        mode(MS);
    }
    barrier();
    let mut buf = vec![0; 5000];
    for (n, len) in LENGTHS.into_iter().enumerate().filter(|_| me == 1) {
        for (index, seed) in [(0, n as u64), (1, n as u64), (2, 3)] {
            recv(&mut buf[..len], 0, index);
            check(&buf[..len], seed, &format!("{len} bytes on index {index}"));
        }
    }
    barrier();
    // Whoever is received goes at once.
    let mut buffers = LENGTHS.map(|len| vec![0; len]);
    if me == 0 {
        mode(FOR_EVER);
        barrier();
        for (n, len) in LENGTHS.into_iter().enumerate() {
            send(&message(len, n as u64), 1, n as i32);
        }
        // A receive that waits, on its index or on any.
        for (n, len) in LENGTHS.into_iter().enumerate() {
            send(&message(len, n as u64), 1, 12);
            send(&message(len, n as u64), 1, 13);
        }
    } else {
        (0..).zip(&mut buffers).for_each(|(n, buffer)| irecv(buffer, 0, n));
        barrier();
        for (n, buffer) in (0..).zip(&buffers) {
            irecv_wait(0, n);
            check(buffer, n as u64, "received at once");
        }
        for (n, len) in LENGTHS.into_iter().enumerate() {
            for index in [12, -1] {
                recv(&mut buf[..len], 0, index);
                check(&buf[..len], n as u64, &format!("{len} bytes, the receive waits"));
            }
        }
    }
    // The library's own messages do not wait.
    for _ in 0..3 {
        barrier();
    }
    finalize();
}

pub fn test() {
    for way in ["FMPL_SHM_PATH=auto", "FMPL_SHM_PATH=auto FMPL_CMA=off FMPL_WAIT=block", "FMPL_SHM_PATH=cma"] {
        Job::new(2, "patience").settings(&format!("{way} FMPL_EAGER=0")).run();
    }
    Job::new(2, "patience").settings("FMPL_EAGER=0 FMPL_NETWORK=tcp").nodes(Nodes::Cyclic(2)).run();
}
