use std::collections::BTreeSet;

use crate::hand::contents;
use crate::lend::*;
use crate::ranks::calls::*;
use crate::ranks::{Job, said, story};

/// Rank 0 hands each loan over to some of all ranks, itself among them; they hold it for different times. `FMPL_LOANS=10,100M`
pub fn to_some() {
    init(8);
    let (me, ranks) = (rank(), size());
    for round in 0..60u64 {
        let members: Vec<i32> = (0..ranks).filter(|r| (round >> r) & 1 == 1 || round.is_multiple_of(7)).collect();
        let len = [8, 100, 5000, 1_000_000][round as usize % 4];
        let bytes = contents(0, 0, round, len);
        let mut mine = std::ptr::null_mut();
        if round.is_multiple_of(4) {
            // Not more are out than there may be, however slow their holders are.
            barrier();
        }
        if me == 0 && !members.is_empty() {
            mine = loan(len);
            // SAFETY: a loan of that length.
            unsafe { mine.copy_from_nonoverlapping(bytes.as_ptr(), len) };
            ok(try_mcast_loan(mine, len, &members, 0));
            fails(try_mcast_loan(mine, len, &members, 0), ARGUMENT);
        }
        if members.contains(&me) {
            if me == 2 && round.is_multiple_of(3) {
                let mut buf = vec![0; len];
                recv(&mut buf, 0, 0);
                assert!(buf == bytes);
            } else {
                let lent = recv_loan(0, 0);
                assert!(me != 0 || lent.0 == mine);
                fails(try_send_loan(lent.0, 1, 0, 1), ARGUMENT);
                if round % 5 == me as u64 {
                    sleep_ms(2);
                }
                is_filled(lent, &bytes);
            }
        }
        if me == 0 && !members.is_empty() {
            fails(try_give_back(mine), ARGUMENT);
        }
        if round % 20 == 19 {
            barrier();
            if me == 0 {
                let all: BTreeSet<usize> = (0..10).map(|_| loan(100) as usize).collect();
                assert_eq!(all.len(), 10, "all have come back");
                all.into_iter().for_each(|at| give_back(at as At));
            }
        }
    }
    if me == 0 {
        let at = loan(8);
        fails(try_mcast_loan(at, 8, &[], 0), ARGUMENT);
        fails(try_mcast_loan(at, 8, &[ranks], 0), RANK);
        fails(try_mcast_loan(at, 9, &[0], 0), ARGUMENT);
        fails(try_mcast_loan(at, 8, &[0], 8), INDEX);
        give_back(at);
    }
    barrier();
    finalize();
}

/// Rank 0 hands loans over to itself and to ranks of two nodes: one that has no room in the spool, and one that another thread returns while the
/// call still waits for a member. `FMPL_LOANS=4,100M`
pub fn to_nodes() {
    init(8);
    let (me, len) = (rank(), 1_000_000);
    let filled = |round| {
        let at = loan(len);
        // SAFETY: a loan of that length.
        unsafe { at.copy_from_nonoverlapping(contents(0, 0, round, len).as_ptr(), len) };
        at
    };
    if me == 0 {
        sendbuf_set(64 << 10, 0);
        ok(try_mcast_loan(filled(0), len, &[0, 1, 2], 0));
    } else {
        sleep_ms(50);
    }
    is_filled(recv_loan(0, 0), &contents(0, 0, 0, len));
    barrier();
    if me == 0 {
        sendbuf_set(64 << 10, -1);
        let at = filled(1);
        std::thread::scope(|s| {
            s.spawn(|| {
                is_filled(recv_loan(0, 1), &contents(0, 0, 1, len));
                // Rank 1 has not come to it, so nobody is given its memory.
                let others: Vec<usize> = (0..3).map(|_| loan(len) as usize).collect();
                fails(try_loan(len, &mut std::ptr::null_mut()), fmpl::Code::Memory as i32);
                others.into_iter().for_each(|other| give_back(other as At));
                send(b"now", 1, 2);
            });
            ok(try_mcast_loan(at, len, &[0, 1], 1));
        });
        fails(try_give_back(at), ARGUMENT);
    } else if me == 1 {
        recv(&mut [0; 3], 0, 2);
        is_filled(recv_loan(0, 1), &contents(0, 0, 1, len));
    }
    barrier();
    finalize();
}

/// Three hold one loan; one of them dies with it, one before it receives it, one returns it. `FMPL_LOANS=1,1M`
pub fn some_die() {
    init(8);
    let me = rank();
    if me == 0 {
        let at = loan(64);
        ok(try_mcast_loan(at, 64, &[1, 2, 3], 0));
        let mut none = std::ptr::null_mut();
        fails(try_loan(64, &mut none), fmpl::Code::Memory as i32);
        for dead in [1, 2] {
            send(b"now", dead, 1);
            while try_send(b"there?", dead, 2) == 0 {
                sleep_ms(1);
            }
            fails(try_loan(64, &mut none), fmpl::Code::Memory as i32);
        }
        send(b"now", 3, 1);
        recv(&mut [0; 3], 3, 1);
        assert_eq!(loan(64), at);
        println!("has it again");
        return;
    }
    let lent = if me == 2 { (std::ptr::null_mut(), 0) } else { recv_loan(0, 0) };
    recv(&mut [0; 3], 0, 1);
    if me != 3 {
        // SAFETY: no memory; this is the end.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    give_back(lent.0);
    send(b"ok.", 0, 1);
}

pub fn deaths() {
    let outcome = Job::new(4, "some die").settings("FMPL_LOANS=1,1M").keep_going().outcome();
    assert!(said(&outcome, 0).contains("has it again"), "{}", story(&outcome));
}
