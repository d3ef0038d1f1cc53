//! Tickets of remote commands between nodes under which no command comes: what is behind them goes on all the same.

use crate::acp::*;
use crate::ranks::calls::ARGUMENT;
use fmpl::fabric::network::{Change, Piece, Place};
use fmpl::p2p::endpoint::endpoint;
use std::sync::atomic::Ordering;
use std::time::Instant;

fn send_signal(pid: u64, signal: i32) {
    // SAFETY: no memory; a rank of this job, which is waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// Waits for a word of the own starter memory.
fn until(n: usize, value: u64) {
    while starter_words()[n].load(Ordering::Acquire) != value {
        std::thread::yield_now();
    }
}

/// Stores a word in a rank's starter memory; waits for nothing.
fn tell(rank: i32, n: usize, value: u64) {
    starter_words()[900].store(value, Ordering::Release);
    copy(starter(rank) + 8 * n as u64, starter(crate::acp::rank()) + 7200, 8, NOW);
}

/// Commands that only rank 0 can obey, from rank 2.
fn ask_rank_0(count: usize) {
    for n in 0..count as u64 {
        complete(copy(starter(0) + 4000 + 8 * n, starter(0) + 4096, 8, NOW));
    }
}

/// Rank 1 has a ticket of the full ring of rank 0 and waits, when its operation comes to an end: the ticket is used up.
pub fn leaves() {
    init();
    let (me, memory) = (rank(), Memory::new(Kind::Private, 64));
    let (key, ga) = register(memory.ptr(), 64);
    starter_words()[0].store(ga, Ordering::Release);
    sync();
    match me {
        0 => {
            tell(1, 101, std::process::id().into());
            complete(ALL);
            // SAFETY: this process stops itself; rank 1 has it go on.
            unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
        }
        1 => {
            // From here on it keeps what it needs of the others' tables; rank 0 keeps nothing, since it could not discard it.
            let all = [0, 1, 2].map(|r| {
                copy_now(starter(1) + 16, starter(r), 8);
                starter_words()[2].load(Ordering::Acquire)
            });
            copy_now(starter(1) + 16, all[2], 8);
            copy_now(starter(1) + 16, all[0], 8);
            while starter_words()[101].load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            let owner = starter_words()[101].load(Ordering::Acquire);
            while !std::fs::read_to_string(format!("/proc/{owner}/stat")).unwrap().contains(") T") {
                std::thread::yield_now();
            }
            for n in 0..2 {
                copy(starter(2) + 4096 + 8 * n, all[0], 8, NOW);
            }
            copy(all[2], all[0], 8, NOW);
            tell(2, 100, 1);
            until(100, 2);
            // The last one has failed by now, or does so when its turn comes: before there is room.
            std::thread::sleep(std::time::Duration::from_millis(300));
            send_signal(owner, libc::SIGCONT);
            assert_eq!(complete_with_error(ALL), ARGUMENT, "{}", last_error());
            assert!(last_error().contains("registered"), "{}", last_error());
            tell(2, 100, 3);
        }
        _ => {
            until(100, 1);
            unregister(key);
            tell(1, 100, 2);
            until(100, 3);
            ask_rank_0(10);
        }
    }
    sync();
    finalize();
}

/// All send each other commands that only the one who gets them can obey, more than there is room for.
pub fn asks() {
    init();
    let (me, size) = (rank(), procs());
    let private = Memory::new(Kind::Private, 8192);
    let at = exchange(0, register(private.ptr(), 8192).1);
    let count = if crate::ranks::short() { 60 } else { 1000 };
    (0..8).for_each(|k| private.word(512 + k).store(1000 * me as u64 + k as u64, Ordering::Release));
    sync();
    for n in 0..count as u64 {
        let to = (me as u64 + 1 + n % (size as u64 - 1)) % size as u64;
        let owner = at[to as usize];
        copy(owner + 8 * (8 * me as u64 + n % 8), owner + 8 * (512 + n % 8), 8, NOW);
    }
    complete(ALL);
    sync();
    for from in (0..size as usize).filter(|r| *r != me as usize) {
        // Everybody has sent here with some numbers, if not with all.
        let sent = (0..count as usize).filter(|n| (from + 1 + n % (size as usize - 1)) % size as usize == me as usize);
        let mut want = [0; 8];
        sent.for_each(|n| want[n % 8] = 1000 * me as u64 + n as u64 % 8);
        let got: Vec<u64> = (0..8).map(|k| private.word(8 * from + k).load(Ordering::Acquire)).collect();
        assert_eq!(got, want, "of rank {from}");
    }
    sync();
    finalize();
}

/// Rank 1 dies with a ticket of rank 0's ring; rank 2 has commands for rank 0 behind it.
pub fn draws() {
    init();
    let me = rank();
    copy_now(starter(me) + 16, starter((me + 1) % 3), 8);
    copy_now(starter(me) + 16, starter((me + 2) % 3), 8);
    sync();
    match me {
        0 => {
            until(100, 1);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        1 => {
            let ep = endpoint().unwrap();
            let card = ep.launch.get(0, "fmpl-rma-0-0").unwrap();
            let addr = u64::from_le_bytes(card[..8].try_into().unwrap());
            let rkey = u32::from_le_bytes(card[8..12].try_into().unwrap());
            let link = ep.link(0).unwrap();
            let bounce = ep.fabric_here().unwrap().bounce().unwrap();
            let to = Piece { addr: bounce.arena().as_ptr() as u64, len: 8, lkey: bounce.arena().region().lkey() };
            // SAFETY: the buffer stays until the wait is over.
            let ticket = unsafe { link.atomic(Change::Add(1), to, Place { addr, rkey }).unwrap() };
            link.wait(ticket).unwrap();
            tell(2, 100, 1);
            complete(ALL);
            send_signal(std::process::id().into(), libc::SIGKILL);
        }
        _ => {
            until(100, 1);
            while !is_refused(try_copy(starter(2) + 16, starter(1), 8, NOW)) && complete_with_error(ALL) == 0 {}
            let known = Instant::now();
            ask_rank_0(10);
            println!("10 commands were obeyed {:.3} s after the death was known", known.elapsed().as_secs_f64());
            println!("well");
            tell(0, 100, 1);
            complete_with_error(ALL);
        }
    }
    // Nobody can finalize together with the dead.
    std::process::exit(0);
}
