//! What starts after what; queues that are full.

use crate::acp::*;
use crate::ranks::{Job, said};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An operation that cannot be over yet keeps those waiting that were issued after it and name a later one, and no others.
pub fn in_order() {
    for way in ["", "FMPL_WAIT=block", "FMPL_CMA=off"] {
        Job::new(3, "orders").settings(way).run();
        stopped(way);
    }
}

/// Chains of operations whose results show in which order they were done.
pub fn orders() {
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let (private, shared) = (Memory::new(Kind::Private, 4096), Memory::new(Kind::Shared, 4096));
    let (private_at, shared_at) =
        (exchange(0, register(private.ptr(), 4096).1), exchange(1, register(shared.ptr(), 4096).1));
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    let (next, after) = ((me + 1) % size, (me + 2) % size);
    for round in 0..200u64 {
        // A word of private memory takes a remote command; what follows it can be done at once, and must wait all the same.
        let at = private_at[next] + 512 + me as u64 * 64;
        let other = shared_at[after] + 512 + me as u64 * 64;
        let a = fetch8(Op::Add, result, at, 1, 0, NOW);
        let b = copy(result + 8, result, 8, a); // what the addition found
        let c = fetch8(Op::Add, result + 16, at, 1, 0, NOW);
        let d = copy(other, result + 8, 8, c); // after c: and so after a and b
        let e = copy(result + 24, other, 8, CONT);
        let f = fetch8(Op::Add, result + 32, at, 1, 0, ALL);
        assert!(a <= b && b <= c && c <= d && d <= e && e <= f);
        complete(f);
        for h in [a, b, c, d, e, f, NOW, ALL, 1 << 50] {
            assert!(!inquire(h));
        }
        let got: Vec<u64> = (0..5).map(|n| results.word(n).load(Ordering::Acquire)).collect();
        assert_eq!(got, [3 * round, 3 * round, 3 * round + 1, 3 * round, 3 * round + 2], "round {round}");
    }
    // Nobody calls the library here: what waits moves on all the same.
    let flag = private_at[next] + 1024 + me as u64 * 64;
    for round in 1..50u64 {
        let a = fetch8(Op::Swap, result, private_at[next] + 2048 + me as u64 * 8, round, 0, NOW);
        results.word(10).store(round, Ordering::Release);
        let b = fetch8(Op::Swap, result + 40, flag, round, 0, a);
        copy(result + 88, result + 80, 8, b);
        while results.word(11).load(Ordering::Acquire) != round {
            std::thread::yield_now();
        }
    }
    complete(ALL);
    sync();
    finalize();
}

/// The owner of a slow operation is stopped, so that it is not over for as long as the test wants.
fn stopped(way: &str) {
    let job = Job::new(2, "follows").settings(way);
    let running = job.launcher().start().unwrap();
    let victim = running.pids()[1];
    let signals = std::thread::spawn(move || {
        // SAFETY: no memory; the job is waited for below, so the pid is the rank's. Signals before it is ready do no harm: it says
        // that it is stopped by not answering.
        std::thread::sleep(Duration::from_millis(1500));
        // SAFETY: as above.
        unsafe { libc::kill(victim, libc::SIGCONT) };
    });
    let outcome = running.wait();
    signals.join().unwrap();
    assert_eq!(outcome.code, 0, "{}", crate::ranks::story(&outcome));
    assert!(said(&outcome, 0).contains("slow one was waited for"), "{}", crate::ranks::story(&outcome));
}

pub fn follows() {
    init();
    let me = rank() as usize;
    let private = Memory::new(Kind::Private, 4096);
    let at = exchange(0, register(private.ptr(), 4096).1);
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    let peer_result = exchange(1, result);
    if me == 1 {
        // SAFETY: this process stops itself; the test has it go on.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
        sync();
        assert_eq!(results.word(5).load(Ordering::Acquire), 1);
        assert_eq!(private.word(0).load(Ordering::Acquire), 7);
        return finalize();
    }
    // Until the peer has stopped its helper answers: try until it does not.
    let slow = loop {
        let handle = fetch8(Op::Add, result, at[1] + 16, 1, 0, NOW);
        std::thread::sleep(Duration::from_millis(50));
        if inquire(handle) {
            break handle;
        }
    };
    results.word(4).store(1, Ordering::Release);
    let named = copy(result + 48, result + 32, 8, NOW); // at once
    assert_eq!(results.word(6).load(Ordering::Acquire), 1);
    let follower = copy(peer_result[1] + 40, result + 32, 8, named); // after `named`, and so after `slow`
    let last = fetch8(Op::Swap, result + 8, at[1], 7, 0, follower);
    let free = copy(result + 56, result + 32, 8, NOW);
    assert_eq!(results.word(7).load(Ordering::Acquire), 1, "what names nothing waits for nothing");
    for handle in [slow, named, follower, last, free] {
        assert!(inquire(handle), "in the order of the calls nothing from the slow one on is over");
    }
    // Into the peer's mapped memory nothing may have come.
    let look = |n: u64| {
        copy(result + 72, peer_result[1] + 8 * n, 8, NOW);
        results.word(9).load(Ordering::Acquire)
    };
    assert_eq!(look(5), 0, "the follower has started before the slow one was over");
    println!("slow one was waited for");
    complete(last);
    assert_eq!(look(5), 1);
    sync();
    finalize();
}

/// Every rank's queue is full of the others' commands, and nobody computes anything but commands.
pub fn full() {
    for way in [
        "FMPL_RMA_COMMANDS=2",
        "FMPL_RMA_COMMANDS=2 FMPL_WAIT=block",
        "FMPL_RMA_COMMANDS=16",
        "FMPL_RMA_COMMANDS=16 FMPL_SPREAD=8",
        "",
    ] {
        for ranks in [2, 4] {
            Job::new(ranks, "fills").settings(way).run();
        }
    }
}

pub fn fills() {
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let private = Memory::new(Kind::Private, 4096);
    let at = exchange(0, register(private.ptr(), 4096).1);
    let results = Memory::new(Kind::Private, 65536);
    let (_, result) = register(results.ptr(), 65536);
    // More than a queue has room for, without a look in between.
    let count = 3000u64;
    for n in 0..count {
        let to = (me + 1 + n as usize % (size - 1)) % size;
        fetch8(Op::Add, result + n % 8192 * 8, at[to], 1, 0, if n % 10 == 9 { CONT } else { NOW });
    }
    complete(ALL);
    sync();
    assert_eq!(private.word(0).load(Ordering::Acquire), count);
    finalize();
}

/// The owner of the memory computes and calls nothing.
pub fn served() {
    for way in ["", "FMPL_CMA=off", "FMPL_WAIT=block"] {
        Job::new(2, "computes").settings(way).run();
    }
}

pub fn computes() {
    init();
    let me = rank() as usize;
    let private = Memory::new(Kind::Private, 65536);
    let at = exchange(0, register(private.ptr(), 65536).1);
    let results = Memory::new(Kind::Private, 65536);
    let (_, result) = register(results.ptr(), 65536);
    if me == 1 {
        while private.word(1).load(Ordering::Acquire) == 0 {
            std::hint::spin_loop();
        }
        assert_eq!(private.word(0).load(Ordering::Acquire), 100);
        assert!((1024..60_000).all(|n| private.at(n) == byte(3, n)));
    } else {
        results.fill(3);
        for _ in 0..100 {
            complete(fetch8(Op::Add, result, at[1], 1, 0, NOW));
        }
        complete(copy(at[1] + 1024, result + 1024, 60_000, NOW));
        complete(fetch8(Op::Swap, result, at[1] + 8, 1, 0, NOW));
    }
    sync();
    finalize();
}
