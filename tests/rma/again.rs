//! Joining a job again, in one process, after having left it.

use crate::acp::*;
use crate::ranks::{Job, calls, story};
use fmpl::ffi::acp::*;
use std::process::Command;
use std::sync::atomic::Ordering;

/// Under `fmpl run` and started by nobody it works as often as one likes, and leaves nothing behind.
pub fn joined() {
    for (ranks, way) in [(1, ""), (2, ""), (4, "FMPL_CMA=off"), (2, "FMPL_WAIT=block FMPL_RMA_COMMANDS=2")] {
        Job::new(ranks, "rejoins").settings(way).run();
    }
    let alone = Command::new(std::env::current_exe().unwrap()).env("RANKS_BODY", "rejoins").status().unwrap();
    assert!(alone.success(), "{alone}");
}

/// What this process has of descriptors, threads and mappings.
fn belongings() -> [usize; 3] {
    let entries = |path: &str| std::fs::read_dir(path).unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    [entries("/proc/self/fd"), entries("/proc/self/task"), maps.lines().count()]
}

pub fn rejoins() {
    let count = std::env::var("ROUNDS").map_or(100, |n| n.parse().unwrap());
    let mut after = Vec::new();
    for round in 0..count {
        // Either interface may be the one that joins, and the one that leaves.
        match round % 3 {
            0 => init(),
            1 => {
                calls::init(8);
                init();
            }
            _ => {
                init();
                calls::init(8);
            }
        }
        use_global_memory(round);
        match round % 3 {
            0 => {}
            1 => {
                use_messages(round);
                calls::finalize();
            }
            _ => use_messages(round),
        }
        finalize();
        if round % 3 == 2 {
            calls::finalize();
        }
        assert_eq!(rank(), -1);
        assert_eq!(calls::try_finalize(), calls::INIT);
        after.push(belongings());
    }
    let half = after.len() / 2;
    let (early, late) = (&after[half / 2..half], &after[half..]);
    for (n, what) in ["descriptors", "threads"].iter().enumerate() {
        assert!(late.iter().all(|b| b[n] == after[0][n]), "{what}: {after:?}");
    }
    // What the allocator keeps comes and goes by a few.
    let most = |of: &[[usize; 3]]| of.iter().map(|b| b[2]).max().unwrap();
    assert!(most(late) <= most(early) + 4, "mappings: {after:?}");
}

/// Private and shared memory of every rank, whose contents are those of this round.
fn use_global_memory(round: usize) {
    let (me, size) = (rank() as usize, procs() as usize);
    assert!(starter_words().iter().all(|word| word.load(Ordering::Acquire) == 0), "of an earlier time");
    let (private, shared) = (Memory::new(Kind::Private, 4096), Memory::new(Kind::Shared, 4096));
    private.word(0).store((round * 1000 + me) as u64, Ordering::Release);
    shared.word(0).store((round * 1000 + 100 + me) as u64, Ordering::Release);
    let private_at = exchange(0, register(private.ptr(), 4096).1);
    let shared_at = exchange(1, register(shared.ptr(), 4096).1);
    for other in 0..size {
        for (at, want) in [(private_at[other], round * 1000 + other), (shared_at[other], round * 1000 + 100 + other)] {
            copy_now(starter(me as i32), at, 8);
            assert_eq!(starter_words()[0].load(Ordering::Acquire), want as u64, "round {round}");
        }
        complete(fetch8(Op::Add, starter(me as i32) + 8, private_at[other] + 64, 1, 0, NOW));
    }
    sync();
    assert_eq!(private.word(8).load(Ordering::Acquire), size as u64, "round {round}");
    sync();
}

fn use_messages(round: usize) {
    let (me, size) = (calls::rank() as usize, calls::size() as usize);
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    for len in [8, 100_000] {
        let (mine, mut theirs) = (vec![(round + me) as u8; len], vec![0; len]);
        calls::sendrecv(&mine, next as i32, 3, &mut theirs, last as i32, 3);
        assert!(theirs.iter().all(|b| *b == (round + last) as u8), "round {round}");
    }
    let other = calls::dup(calls::WORLD);
    calls::free(other);
    calls::send_any(&[round as u8], next as i32, 5);
    let mut byte = [0; 1];
    assert_eq!((calls::recv_any(&mut byte, 5), byte[0]), ((last as i32, 1), round as u8));
    calls::barrier();
}

/// What started the ranks by variables is over when they leave: joining again is an error that says so, and nothing ends.
pub fn refused() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ranks: Vec<_> = (0..2)
        .map(|rank| {
            let mut c = Command::new(std::env::current_exe().unwrap());
            c.env("RANKS_BODY", "may_not_rejoin").env("FMPL_RANK", rank.to_string()).env("FMPL_SIZE", "2");
            c.env("FMPL_ROOT", format!("127.0.0.1:{port}")).env("FMPL_SECRET", "only for this test").spawn().unwrap()
        })
        .collect();
    for mut rank in ranks {
        let status = rank.wait().unwrap();
        assert!(status.success(), "{status}");
    }
    // One rank comes back, and the other does not: an error, once that one has ended.
    let outcome = Job::new(2, "rejoins_alone").keep_going().outcome();
    assert!(outcome.stdout[0].ends_with(b"told\n"), "{}", story(&outcome));
}

pub fn may_not_rejoin() {
    init();
    use_global_memory(0);
    finalize();
    assert_eq!(acp_init(std::ptr::null_mut(), std::ptr::null_mut()), -1);
    assert!(last_error().contains("has joined its job before"), "{}", last_error());
    assert_eq!(calls::try_init(1), fmpl::Code::Launch as i32);
    assert!(calls::last_error().contains("fmpl run"), "{}", calls::last_error());
}

pub fn rejoins_alone() {
    init();
    let me = rank();
    finalize();
    if me == 0 {
        assert_eq!(calls::try_init(1), calls::PEER);
        assert!(calls::last_error().contains("rank 1 has left for good"), "{}", calls::last_error());
        println!("told");
    }
}
