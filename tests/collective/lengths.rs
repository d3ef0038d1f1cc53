//! Ranks that make a call with different lengths, or different calls: an error that names them, at all ranks that take part in the
//! failure, nobody waits for ever, and the job goes on.

use crate::ranks::Job;
use crate::ranks::calls::*;
use fmpl::ffi::c::*;
use fmpl::launch::embedded::Nodes;
use std::ptr::null_mut;

const CALLS: [&str; 15] = [
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "reduce_scatter",
    "scan",
    "barrier",
    "gatherv",
    "allgatherv",
    "scatterv",
    "alltoallv",
    "exscan",
];

/// Pairs of bytes of a block: within a line, a line and a cell, a cell and several, within a ring and beyond.
const LENGTHS: [[usize; 2]; 8] =
    [[8, 16], [16, 32], [40, 48], [16, 1024], [1024, 2048], [4096, 40_000], [100_000, 100_008], [8, 2_000_000]];

fn call(name: &str, comm: i32, len: usize, memory: &mut [u8], other: &mut [u8]) -> i32 {
    let (p, q, count) = (memory.as_mut_ptr().cast(), other.as_mut_ptr().cast(), (len / 8) as i32);
    let sum = Some(fmpl_dsum as _);
    let (of_each, packed) = (vec![len; size() as usize], std::ptr::null());
    let sizes = of_each.as_ptr();
    // SAFETY: both have room for `len` bytes for each rank.
    unsafe {
        match name {
            "bcast" => fmpl_bcast(p, len, 0, comm),
            "reduce" => fmpl_reduce(p, count, sum, 0, comm, null_mut()),
            "allreduce" => fmpl_allreduce(p, count, sum, comm, null_mut()),
            "gather" => fmpl_gather(p, len, q, 0, comm),
            "allgather" => fmpl_allgather(p, len, q, comm),
            "scatter" => fmpl_scatter(p, len, q, 0, comm),
            "alltoall" => fmpl_alltoall(p, len, q, comm),
            "reduce_scatter" => fmpl_reduce_scatter(p, q, count, sum, comm),
            "scan" => fmpl_scan(p, count, sum, comm),
            "gatherv" => fmpl_gatherv(p, len, q, sizes, packed, 0, comm),
            "allgatherv" => fmpl_allgatherv(p, len, q, sizes, packed, comm),
            "scatterv" => fmpl_scatterv(p, sizes, packed, q, len, 0, comm),
            "alltoallv" => fmpl_alltoallv(p, sizes, packed, q, sizes, packed, comm),
            "exscan" => fmpl_exscan(p, count, sum, comm),
            _ => fmpl_barrier(comm),
        }
    }
}

/// The last rank makes the call with another length than the others.
pub fn differ() {
    init(1);
    let (me, n) = (rank(), size());
    let last = me == n - 1;
    for name in &CALLS[..9] {
        for [a, b] in LENGTHS {
            for [most, one] in [[a, b], [b, a]] {
                let len = if last { one } else { most };
                let (mut p, mut q) = (vec![1; len * n as usize], vec![2; len * n as usize]);
                let own = dup(WORLD);
                let what = format!("{name} of {most} bytes, and {one} at the last of {n}, at {me}");
                let mut told = call(name, own, len, &mut p, &mut q);
                let early = told == 0;
                if early {
                    // Who has all that it needs leaves early; what comes next tells it.
                    told = call("barrier", own, 0, &mut [], &mut []);
                }
                assert_eq!(told, ARGUMENT, "{what}: {}", last_error());
                let error = last_error();
                let lengths = error.contains(&format!("with {most}")) && error.contains(&format!("with {one}"));
                assert!(lengths || error.contains("another call than"), "{what}: {error}");
                assert!(error.contains("rank "), "{what}: {error}");
                // Others' lengths are found out where the payload says them.
                if lengths {
                    assert!(error.contains("makes the call with"), "{what}: {error}");
                }
                // The communicator is lost to collective calls; the job is not.
                fails(call("barrier", own, 0, &mut [], &mut []), ARGUMENT);
                let mut sum = [1.0f64];
                // SAFETY: one element.
                ok(unsafe { fmpl_allreduce(sum.as_mut_ptr().cast(), 1, Some(fmpl_dsum), WORLD, null_mut()) });
                assert_eq!(sum, [n as f64], "{what}");
                free(own);
            }
        }
    }
    finalize();
}

/// The calls of which between nodes, and with tickets within one as well, the lengths of messages tell.
const BETWEEN: [&str; 10] = [
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "reduce_scatter",
    "scan",
    "iallreduce with a ticket",
];

/// The last rank makes the call with another length than the others. Whoever gets a part of it is told, and nobody waits for ever, though the
/// communicator is new, so that most ranks of different nodes have had nothing to do with each other there.
pub fn differ_between() {
    init(1);
    let (me, n) = (rank(), size());
    for name in BETWEEN {
        for [a, b] in [[8, 16], [1024, 2048], [100_000, 100_008]] {
            for [most, one] in [[a, b], [b, a]] {
                let len = if me == n - 1 { one } else { most };
                let (mut p, mut q) = (vec![1; len * n as usize], vec![2; len * n as usize]);
                let own = dup(WORLD);
                let what = format!("{name} of {most} bytes, and {one} at the last of {n}, at {me}");
                let mut told = if name.contains("ticket") {
                    let (mut ticket, sum) = (0, Some(fmpl_dsum as _));
                    // SAFETY: the vector stays until the call is completed.
                    ok(unsafe {
                        let at = p.as_mut_ptr().cast();
                        fmpl_iallreduce_n(at, (len / 8) as i32, sum, own, (&mut ticket).into())
                    });
                    fmpl_coll_wait(ticket)
                } else {
                    call(name, own, len, &mut p, &mut q)
                };
                if told == 0 {
                    // Who has all that it needs leaves early; what comes next tells it.
                    told = call("barrier", own, 0, &mut [], &mut []);
                }
                let error = last_error();
                assert_eq!(told, ARGUMENT, "{what}: {error}");
                let names_both = error.contains("are expected") || error.contains("makes the call with");
                assert!(names_both || error.contains("another call than"), "{what}: {error}");
                // Nobody has died, and other communicators go on.
                fails(call("barrier", own, 0, &mut [], &mut []), ARGUMENT);
                if me == 1 {
                    sleep_ms(5);
                }
                let mut sum = [1.0f64];
                // SAFETY: one element.
                ok(unsafe { fmpl_allreduce(sum.as_mut_ptr().cast(), 1, Some(fmpl_dsum), WORLD, null_mut()) });
                assert_eq!(sum, [n as f64], "{what}");
                free(own);
            }
        }
    }
    finalize();
}

pub fn told_between() {
    for nodes in [Nodes::Blocks(2), Nodes::Cyclic(4)] {
        Job::new(4, "lengths differ between nodes").nodes(nodes).settings("FMPL_NETWORK=tcp").run();
    }
}

fn by_messages(call: &str) -> bool {
    call.ends_with('v') || call == "exscan"
}

/// Each pair of calls, one at the last rank and one at the others.
pub fn other_calls() {
    init(1);
    let (me, n) = (rank(), size());
    let mut failed = 0;
    for others in CALLS {
        // Of two calls that both wait for messages nobody looks what the other is in: that is a wait for ever, which is reported.
        let told = |mine: &&str| *mine != others && !(by_messages(mine) && by_messages(others));
        for mine in CALLS.into_iter().filter(told) {
            let own = dup(WORLD);
            let name = if me == n - 1 { mine } else { others };
            let (mut p, mut q) = (vec![1; 512 * n as usize], vec![2; 512 * n as usize]);
            let mut told = call(name, own, 512, &mut p, &mut q);
            if told == 0 {
                // A call of which none of those is a part.
                told = call("allreduce", own, 8, &mut p, &mut q);
            }
            // Some pairs do the same with the arena: a gather and a reduction, for instance, give alike.
            if told != 0 {
                assert_eq!(told, ARGUMENT, "{mine} among {others}: {}", last_error());
                failed += 1;
            }
            barrier();
            free(own);
        }
    }
    assert!(failed > 30, "only {failed} of the pairs were told");
    finalize();
}

pub fn told() {
    for ranks in [2, 3] {
        let ways: &[&str] = if ranks == 2 { &["", "FMPL_WAIT=block FMPL_CMA=off FMPL_TAKE_OVER=on"] } else { &[""] };
        for way in ways {
            Job::new(ranks, "lengths differ").settings(way).run();
        }
        Job::new(ranks, "other calls").run();
    }
}
