//! Memory of a node's ranks side by side: parts of any lengths, which all see; on parts of a communicator; what is refused; a rank that dies.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use fmpl::ffi::c::{Out, fmpl_free, fmpl_shared_alloc, fmpl_shared_free, fmpl_shared_query};
use fmpl::launch::embedded::End;

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, story};

pub fn windows() {
    for ranks in [1, 2, 5] {
        Job::new(ranks, "has windows").run();
    }
    Job::new(4, "is too far for a window").nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=tcp").run();
    let outcome = Job::new(3, "loses a neighbour").keep_going().outcome();
    for (rank, end) in outcome.ends.iter().enumerate() {
        assert!(rank == 0 || matches!(end, End::Exit(0)), "without rank 0: {}", story(&outcome));
    }
}

fn try_window(size: usize, comm: i32, mine: &mut *mut u8) -> i32 {
    let mut there = std::ptr::null_mut::<c_void>();
    let code = fmpl_shared_alloc(size, comm, (&mut there).into());
    *mine = there.cast();
    code
}

fn window(size: usize, comm: i32) -> *mut u8 {
    let mut mine = std::ptr::null_mut();
    ok(try_window(size, comm, &mut mine));
    assert!(!mine.is_null());
    mine
}

fn part(mine: *mut u8, rank: i32) -> (*mut u8, usize) {
    let (mut at, mut size) = (std::ptr::null_mut::<c_void>(), 0);
    ok(fmpl_shared_query(mine.cast(), rank, (&mut at).into(), (&mut size).into()));
    (at.cast(), size)
}

fn try_free_window(mine: *mut u8) -> i32 {
    // SAFETY: nobody uses it any more.
    unsafe { fmpl_shared_free(mine.cast()) }
}

/// The part of `me`, of another length in each window; some have nothing.
fn length(turn: usize, me: i32) -> usize {
    match turn {
        0 => 8,
        1 => me as usize * 24 % 72,
        2 => 100_000 * 8 + me as usize * 8,
        _ => (me == 1) as usize * 4096,
    }
}

pub fn has_windows() {
    init(4);
    let (me, ranks) = (rank(), size());
    let backwards = split(WORLD, 0, -me);
    for comm in [WORLD, backwards] {
        on(comm);
        let me = rank();
        let mine: Vec<_> = (0..4).map(|turn| window(length(turn, me), comm)).collect();
        for (turn, mine) in mine.iter().enumerate() {
            let mut end = part(*mine, 0).0;
            for rank in 0..ranks {
                let (at, bytes) = part(*mine, rank);
                assert_eq!((at, bytes), (end, length(turn, rank)), "side by side");
                end = end.wrapping_add(bytes);
            }
            assert_eq!(part(*mine, me).0, *mine);
            // Everybody writes its own, and afterwards sees what the others have written.
            // SAFETY: parts of this length, written by their rank alone until the barrier, read only behind it.
            unsafe {
                std::slice::from_raw_parts_mut(*mine, length(turn, me)).fill(me as u8 + turn as u8 * 16);
                barrier();
                for rank in 0..ranks {
                    let (at, bytes) = part(*mine, rank);
                    let wanted = rank as u8 + turn as u8 * 16;
                    assert!(std::slice::from_raw_parts(at, bytes).iter().all(|byte| *byte == wanted));
                }
            }
        }
        barrier();
        // Messages out of one part into another, as of any memory.
        let (from, to) = (part(mine[2], me).0, part(mine[2], (me + 1) % ranks).0);
        isend(&[me as u8; 5000], (me + 1) % ranks, 1);
        // SAFETY: of this rank's part the first bytes, which nobody else touches now.
        recv(unsafe { std::slice::from_raw_parts_mut(from, 5000) }, (me + ranks - 1) % ranks, 1);
        isend_wait((me + 1) % ranks, 1);
        barrier();
        // SAFETY: written before the barrier.
        assert_eq!(unsafe { *to }, me as u8);
        // A word that all count in.
        // SAFETY: the first word of rank 0's part, at a page.
        let word = unsafe { &*part(mine[2], 0).0.cast::<AtomicU64>() };
        barrier();
        if me == 0 {
            word.store(0, Ordering::Relaxed);
        }
        barrier();
        for _ in 0..1000 {
            word.fetch_add(1, Ordering::Relaxed);
        }
        barrier();
        assert_eq!(word.load(Ordering::Relaxed), 1000 * ranks as u64);
        mine.into_iter().rev().for_each(|mine| ok(try_free_window(mine)));
        on(WORLD);
    }
    // Again and again, in the same memory: nothing is used up.
    for _ in 0..200 {
        ok(try_free_window(window(1 << 20, backwards)));
    }
    refused(me, ranks, backwards);
    finalize();
}

fn refused(me: i32, ranks: i32, comm: i32) {
    let mine = window(64, comm);
    let mut at = std::ptr::null_mut::<c_void>();
    fails(fmpl_shared_alloc(8, comm, Out::NULL), ARGUMENT);
    fails(fmpl_shared_alloc(8, 4096, (&mut at).into()), COMM);
    fails(fmpl_shared_query(mine.cast(), ranks, (&mut at).into(), Out::NULL), RANK);
    fails(fmpl_shared_query(mine.cast(), 0, Out::NULL, Out::NULL), ARGUMENT);
    fails(fmpl_shared_query(mine.wrapping_add(1).cast(), 0, (&mut at).into(), Out::NULL), ARGUMENT);
    ok(fmpl_shared_query(mine.cast(), 0, (&mut at).into(), Out::NULL));
    fails(try_free_window(std::ptr::null_mut()), ARGUMENT);
    on(comm);
    if rank() == 0 {
        // SAFETY: refused.
        fails(unsafe { fmpl_free(mine.cast()) }, ARGUMENT);
        assert!(last_error().contains("fmpl_shared_free"), "{}", last_error());
    }
    on(WORLD);
    // More than there is: all are told.
    let mut none = std::ptr::null_mut();
    fails(try_window(usize::MAX / 2, comm, &mut none), MEMORY);
    fails(try_window(if me == 0 { usize::MAX } else { 1 }, comm, &mut none), MEMORY);
    assert!(none.is_null());
    ok(try_free_window(mine));
    fails(try_free_window(mine), ARGUMENT);
    // Its communicator goes first: it stays, and the job ends well.
    window(64, comm);
    free(comm);
}

pub fn is_too_far() {
    init(4);
    let mut mine = std::ptr::null_mut();
    fails(try_window(8, WORLD, &mut mine), COMM);
    assert!(last_error().contains("fmpl_comm_split_node"), "{}", last_error());
    let mut node = NULL;
    ok(fmpl::ffi::c::fmpl_comm_split_node(WORLD, 0, (&mut node).into()));
    ok(try_free_window(window(8, node)));
    finalize();
}

/// The rank that has allocated dies: the memory is there for the others, whose calls say what has happened.
pub fn loses_a_neighbour() {
    init(4);
    let me = rank();
    let mine = window(4096, WORLD);
    // SAFETY: this rank's part.
    unsafe { *mine = 10 + me as u8 };
    barrier();
    if me == 0 {
        // SAFETY: ends this process, which is what the test is about.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    fails(try_free_window(mine), PEER);
    for rank in 0..size() {
        // Kept, though no call knows it any more.
        // SAFETY: mapped until the job ends.
        assert_eq!(unsafe { *mine.offset((rank - me) as isize * 4096) }, 10 + rank as u8);
    }
    fails(try_free_window(mine), ARGUMENT);
    std::process::exit(0);
}
