use crate::ranks::calls::*;
use crate::ranks::{Job, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::End;
use std::ptr::null_mut;

/// Zero sizes, wrong arguments, and the same calls afterwards.
pub fn calls() {
    init(1);
    let (me, n) = (rank(), size());
    let mut buf = [me as f64; 4];
    let p = buf.as_mut_ptr().cast();
    // SAFETY: all calls get a buffer of four elements, or a null one that the call must refuse or not need.
    unsafe {
        for root in 0..n {
            ok(fmpl_bcast(null_mut(), 0, root, WORLD));
            ok(fmpl_reduce(null_mut(), 0, Some(fmpl_dsum), root, WORLD, null_mut()));
        }
        ok(fmpl_allreduce(null_mut(), 0, Some(fmpl_dsum), WORLD, null_mut()));
        fails(fmpl_bcast(null_mut(), 8, 0, WORLD), ARGUMENT);
        fails(fmpl_bcast(p, 8, n, WORLD), RANK);
        fails(fmpl_bcast(p, 8, -1, WORLD), RANK);
        fails(fmpl_bcast(p, 8, 0, 4711), COMM);
        fails(fmpl_bcast(p, 8, 0, FMPL_COMM_NULL), COMM);
        fails(fmpl_reduce(p, -1, Some(fmpl_dsum), 0, WORLD, null_mut()), ARGUMENT);
        fails(fmpl_reduce(p, 1, None, 0, WORLD, null_mut()), ARGUMENT);
        fails(fmpl_reduce(p, 1, Some(fmpl_dsum), n, WORLD, null_mut()), RANK);
        fails(fmpl_allreduce(null_mut(), 1, Some(fmpl_dsum), WORLD, null_mut()), ARGUMENT);
        fails(fmpl_allreduce(p, 1, Some(unknown), WORLD, null_mut()), ARGUMENT);
        assert!(last_error().contains("fmpl_func_register"), "{}", last_error());
        let (all, nobody, beyond) = ((1u64 << n) - 1, 0u64, 1u64 << n | 1 << me);
        fails(fmpl_mcast_reduce(p, 4, Some(fmpl_dsum), std::ptr::null(), 0, WORLD), ARGUMENT);
        fails(fmpl_mcast_reduce(p, 4, Some(fmpl_dsum), &nobody, 0, WORLD), ARGUMENT);
        fails(fmpl_mcast_reduce(p, 4, Some(fmpl_dsum), &beyond, 0, WORLD), RANK);
        fails(fmpl_mcast_reduce(p, 4, Some(fmpl_dsum), &all, n, WORLD), RANK);
        fails(fmpl_mcast_alltoall(p, 4, p, std::ptr::null(), WORLD), ARGUMENT);
        fails(fmpl_mcast_alltoall(p, 4, p, &nobody, WORLD), ARGUMENT);
        fails(fmpl_mcast_alltoall(p, 4, p, &beyond, WORLD), RANK);
        fails(fmpl_mcast_alltoall(std::ptr::null(), 4, p, &all, WORLD), ARGUMENT);
        if n > 1 {
            fails(fmpl_mcast_alltoall(p, usize::MAX, p, &all, WORLD), ARGUMENT);
        }
        fails(fmpl_func_register(None, 8, 1), ARGUMENT);
        fails(fmpl_func_register(Some(unknown), 0, 1), ARGUMENT);
        fails(fmpl_func_register(Some(fmpl_dsum), 8, 1), ARGUMENT);
        ok(fmpl_allreduce(p, 4, Some(fmpl_dsum), WORLD, null_mut()));
    }
    assert_eq!(buf, [(0..n).sum::<i32>() as f64; 4]);
    barrier();
    finalize();
}

/// A group of which one has died: told to those who wait for it, and a group without it goes on.
pub fn loses_a_member() {
    init(1);
    let me = rank();
    let reduce = |members: u64, root: i32| {
        let mut v = [1.0f64; 100];
        // SAFETY: a hundred doubles, and a word for up to 64 ranks.
        let code = unsafe { fmpl_mcast_reduce(v.as_mut_ptr().cast(), 100, Some(fmpl_dsum), &members, root, WORLD) };
        (code, v[99])
    };
    // Each gives each its rank and the other's.
    let exchange = |members: u64, dead: Option<i32>| {
        let who: Vec<i32> = (0..5).filter(|r| members >> r & 1 == 1).collect();
        let sent: Vec<[i32; 300]> = who.iter().map(|to| [10 * me + to; 300]).collect();
        let mut received = vec![[-1; 300]; who.len()];
        let (from, to) = (sent.as_ptr().cast(), received.as_mut_ptr().cast());
        // SAFETY: a block of 300 numbers for each member, and a word for up to 64 ranks.
        let code = unsafe { fmpl_mcast_alltoall(from, 1200, to, &members, WORLD) };
        for (k, from) in who.iter().enumerate().filter(|(_, from)| Some(**from) != dead) {
            assert!(received[k] == [10 * from + me; 300], "of rank {from}: {:?}", &received[k][..2]);
        }
        code
    };
    for root in [0, 4, 2] {
        assert_eq!(reduce(0b11111, root), (0, if me == root { 5.0 } else { 1.0 }));
        ok(exchange(0b11111, None));
    }
    barrier();
    if me == 3 {
        // SAFETY: no memory.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    for root in [0, 4, 2] {
        // Who waits for rank 3 is rank 2, for that rank 0, for that the root.
        let (code, _) = reduce(0b11111, root);
        let told = [0, 2, root].contains(&me);
        if told {
            fails(code, PEER);
        }
        assert_eq!(reduce(0b10111, root), (0, if me == root { 4.0 } else { 1.0 }), "without it");
        fails(exchange(0b11111, Some(3)), PEER);
        assert!(last_error().contains("rank 3"), "{}", last_error());
        ok(exchange(0b10111, None));
    }
    let _ = try_finalize();
}

pub fn group() {
    let outcome = Job::new(5, "loses a member").seconds(40).keep_going().launcher().start().unwrap().wait();
    for (rank, end) in outcome.ends.iter().enumerate().filter(|(rank, _)| *rank != 3) {
        assert_eq!(*end, End::Exit(0), "rank {rank}: {}", story(&outcome));
    }
}

unsafe extern "C" fn unknown(_: *mut core::ffi::c_void, _: *const core::ffi::c_void, _: i32) {}

pub fn arguments() {
    for ranks in [1, 2, 3] {
        Job::new(ranks, "calls").run();
    }
}
