//! Renumbering, several inits, dead ranks.

use crate::acp::*;
use crate::ranks::calls::{self, ARGUMENT};
use crate::ranks::{Job, said, story};
use fmpl::ffi::acp::*;
use fmpl::launch::embedded::End;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub fn renumbered() {
    for ranks in [1, 2, 4] {
        Job::new(ranks, "renumbers").run();
    }
    Job::new(4, "renumbers").settings("FMPL_RMA_PEERS=1 FMPL_CMA=off").run();
}

pub fn renumbers() {
    init();
    calls::init(1);
    let (world, size) = (rank(), procs());
    for round in 0..4 {
        let private = Memory::new(Kind::Private, 64);
        let (key, ga) = register(private.ptr(), 64);
        private.word(0).store(1000 + rank() as u64, Ordering::Release);
        let all = exchange(0, ga);
        let result = starter(rank()) + 8;
        for (other, ga) in all.iter().enumerate() {
            complete(fetch8(Op::Add, result, *ga, 0, 0, NOW));
            assert_eq!(starter_words()[1].load(Ordering::Acquire), 1000 + other as u64, "round {round}");
        }
        sync();
        // Numbers that will not do leave everything as it is.
        for wrong in [if rank() == size - 1 { size } else { rank() }, 0, -1] {
            let code = acp_reset(wrong);
            if size == 1 && wrong == 0 {
                assert_eq!(code, 0);
                continue;
            }
            assert_eq!((code, acp_errno()), (-1, ARGUMENT), "{}", last_error());
            assert!(last_error().contains("each once"), "{}", last_error());
        }
        if size > 1 {
            copy_now(result, all[0], 8);
            assert_eq!(starter_words()[1].load(Ordering::Acquire), 1000);
        }
        let next = match round {
            0 => size - 1 - rank(),
            1 => (rank() + 1) % size,
            2 => rank(),
            _ => (rank() * 3 + 1) % size,
        };
        let next = if round == 3 && size == 3 { rank() } else { next };
        ok(acp_reset(next));
        assert_eq!((rank(), procs(), calls::rank()), (next, size, world));
        assert!(starter_words().iter().all(|w| w.load(Ordering::Acquire) == 0));
        assert_eq!(acp_unregister_memory(key), -1, "nothing of before is registered");
        let handle = try_copy(starter(next), all[0], 8, NOW);
        assert!(is_refused(handle) && complete_with_error(handle) == ARGUMENT);
        assert!(last_error().contains("nothing is registered"), "{}", last_error());
        sync();
    }
    calls::finalize();
    finalize();
}

pub fn counted() {
    Job::new(2, "counts").run();
    Job::new(1, "counts").run();
}

pub fn counts() {
    init();
    init();
    calls::init(4);
    finalize();
    assert!(rank() >= 0);
    copy_now(starter(rank()), starter(procs() - 1), 8);
    finalize();
    assert_eq!(rank(), -1);
    // Messages go on.
    calls::barrier();
    init();
    copy_now(starter(rank()), starter(procs() - 1), 8);
    calls::finalize();
    assert!(rank() >= 0);
    finalize();
    assert_eq!(calls::try_finalize(), calls::INIT);
}

/// A rank is killed while the others use its memory in every way.
pub fn dead() {
    let mut slowest = 0.0f64;
    let ways = ["", "FMPL_CMA=off", "FMPL_WAIT=block", "", "", "FMPL_RMA_COMMANDS=2", "FMPL_RMA_PEERS=1", ""];
    for (round, way) in ways.iter().enumerate() {
        let job = Job::new(3, "loses").settings(way).env("KIND", round % 5).seconds(60).keep_going();
        let running = job.launcher().start().unwrap();
        let victim = running.pids()[2];
        let wait = Duration::from_millis(150 + 77 * round as u64);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            // SAFETY: no memory; the pid is the rank's until the job has ended.
            unsafe { libc::kill(victim, libc::SIGKILL) };
        });
        let outcome = running.wait();
        killer.join().unwrap();
        assert!(matches!(outcome.ends[2], End::Signal { signal: 9, .. }), "{}", story(&outcome));
        for survivor in 0..2 {
            let text = said(&outcome, survivor);
            if !text.contains("begun") {
                continue; // killed before all had met, which is an error of init
            }
            assert!(outcome.ends[survivor] == End::Exit(0) && text.contains("well"), "{way}: {}", story(&outcome));
            let line = text.lines().find(|l| l.starts_with("error")).unwrap_or_else(|| panic!("{way}: {text}"));
            assert!(line.contains("rank 2 has died"), "{way}: {line}");
            slowest = slowest.max(line.split(' ').nth(1).unwrap().parse().unwrap());
        }
    }
    println!("  the slowest error came {slowest:.3} s after its call began");
}

pub fn loses() {
    init();
    let me = rank() as usize;
    let (private, shared) = (Memory::new(Kind::Private, 1 << 20), Memory::new(Kind::Shared, 1 << 20));
    let (private_at, shared_at) =
        (exchange(0, register(private.ptr(), 1 << 20).1), exchange(1, register(shared.ptr(), 1 << 20).1));
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    println!("begun");
    if me == 2 {
        loop {
            std::thread::park();
        }
    }
    let kind: u64 = std::env::var("KIND").unwrap().parse().unwrap();
    let mut since = Instant::now();
    let text = loop {
        since = if since.elapsed() > Duration::ZERO { Instant::now() } else { since };
        let handle = match kind {
            0 => try_fetch8(Op::Add, result, private_at[2], 1, 0, NOW),
            1 => try_copy(private_at[2] + 4096, private_at[1 - me], 100_000, NOW),
            2 => try_copy(shared_at[2] + 4096, private_at[1 - me], 8000, NOW),
            // Which may be made by either of the two.
            3 => try_copy(private_at[2] + 4096, private_at[1 - me], 8000, NOW),
            _ => try_copy(private_at[1 - me] + 200_000, private_at[2], 8000, NOW),
        };
        if is_refused(handle) {
            let text = last_error();
            assert_eq!(complete_with_error(handle), calls::PEER);
            break text;
        }
        let follower = try_copy(result + 8, result, 8, handle);
        if complete_with_error(ALL) != 0 {
            let text = last_error();
            assert!(!inquire(follower));
            break text;
        }
    };
    println!("error {:.3} {text}", since.elapsed().as_secs_f64());
    assert!(text.contains("has died"), "{text}");
    // Later uses say so as soon as this rank knows, which may be a moment after another one did; the living go on with each other.
    for at in [private_at[2], shared_at[2], starter(2)] {
        for use_it in [0, 1] {
            loop {
                let handle = match use_it {
                    0 => try_fetch8(Op::Add, result, at, 1, 0, NOW),
                    _ => try_copy(result, at, 8, NOW),
                };
                complete_with_error(handle);
                if is_refused(handle) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(last_error().contains("rank 2 has died"), "{}", last_error());
        }
    }
    for _ in 0..100 {
        complete(fetch8(Op::Add, result, private_at[1 - me], 1, 0, NOW));
        copy_now(shared_at[1 - me] + 64, private_at[me], 20_000);
    }
    let (key, _) = register(private.ptr(), 8);
    unregister(key);
    println!("well");
    // The others may be slower to find out, and need this one's helper meanwhile. No barrier can bring all together any more.
    std::thread::sleep(Duration::from_millis(1500));
    try_finalize();
}

/// Ranks that are killed while they send commands to one: whatever slot they had taken, the living go on.
pub fn holes() {
    for round in 0..if crate::ranks::long() { 60 } else { 4 } {
        let way = ["FMPL_RMA_COMMANDS=4", "FMPL_RMA_COMMANDS=8 FMPL_SPREAD=4"][round as usize % 2];
        let job = Job::new(4, "dies").settings(way).seconds(60).keep_going();
        let running = job.launcher().start().unwrap();
        let victims = [running.pids()[2], running.pids()[3]];
        let killer = std::thread::spawn(move || {
            for (n, victim) in victims.into_iter().enumerate() {
                std::thread::sleep(Duration::from_micros(250_000 + (round * 7919 + n as u64 * 104_729) % 60_000));
                // SAFETY: no memory; the pid is the rank's until the job has ended.
                unsafe { libc::kill(victim, libc::SIGKILL) };
            }
        });
        let outcome = running.wait();
        killer.join().unwrap();
        let text = said(&outcome, 1);
        assert!(!text.contains("begun") || text.contains("well"), "round {round}: {}", story(&outcome));
    }
}

/// More than all that is counted.
const WELL: u64 = 1 << 40;

pub fn dies() {
    init();
    let me = rank() as usize;
    let private = Memory::new(Kind::Private, 4096);
    let at = exchange(0, register(private.ptr(), 4096).1);
    println!("begun");
    let results = Memory::new(Kind::Shared, 4096);
    let (_, result) = register(results.ptr(), 4096);
    let since = Instant::now();
    // All but rank 0 send to it, for ever or until both have been killed for a while.
    while me > 1 || me == 1 && since.elapsed() < Duration::from_millis(900) {
        for _ in 0..50 {
            fetch8(Op::Add, result, at[0], 1, 0, NOW);
        }
        complete(ALL);
    }
    if me == 1 {
        for _ in 0..1000 {
            complete(fetch8(Op::Add, result, at[0], 1, 0, NOW));
        }
        println!("well");
        // The word that rank 0 may go: it stays for as long as this takes.
        complete(fetch8(Op::Add, result, at[0], WELL, 0, NOW));
    } else {
        // SAFETY: memory of this rank, written by atomic operations of others.
        let count = || unsafe { private.ptr().cast::<u64>().read_volatile() };
        while count() < WELL && since.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    try_finalize();
}
