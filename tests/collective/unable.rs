//! A rank that cannot do its part of a call: nobody takes its later messages for those of that call.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use fmpl::ffi::c::*;

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, story};

/// The process gets no more addresses than it has, but for some small pieces, while this is done.
fn without_addresses<T>(done: impl FnOnce() -> T) -> T {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("what this process has");
    let pages: u64 = pages.split(' ').next().and_then(|n| n.parse().ok()).expect("pages");
    // SAFETY: no memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place of ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut before) }, 0);
    let set = |limit: &libc::rlimit| {
        // SAFETY: no memory.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, limit) }, 0);
    };
    set(&libc::rlimit { rlim_cur: pages * page + (128 << 10), ..before });
    let result = done();
    set(&before);
    result
}

/// A call with a ticket: a sum over all ranks; its code, and what has come of it.
fn sum(comm: i32, value: f64) -> (i32, f64) {
    let (mut v, mut ticket) = (value, 0);
    // SAFETY: one element, which is there until the call is over.
    let begun = unsafe { fmpl_iallreduce_n((&raw mut v).cast(), 1, Some(fmpl_dsum), comm, (&mut ticket).into()) };
    let code = if begun == 0 { fmpl_coll_wait(ticket) } else { begun };
    (code, v)
}

/// Rank 0 has no memory for its lanes in the first call of a communicator. The later ones come to the same slots.
pub fn has_no_addresses() {
    init(1);
    let (me, n) = (rank(), size());
    barrier();
    let own = dup(WORLD);
    let (code, _) = if me == 0 { without_addresses(|| sum(own, 1.0)) } else { sum(own, 1.0) };
    let text = last_error();
    if me == 0 {
        assert_eq!(code, MEMORY, "{text}");
    } else {
        assert_eq!(code, PEER, "{text}");
        assert!(text.contains("rank 0 could not do its part"), "{text}");
    }
    for k in 2..20 {
        let (code, got) = sum(own, f64::from(k));
        assert_eq!(code, PEER, "call {k} got {got}: {}", last_error());
    }
    let mut one = 1.0f64;
    // SAFETY: one element.
    fails(unsafe { fmpl_allreduce((&raw mut one).cast(), 1, Some(fmpl_dsum), own, null_mut()) }, PEER);
    // Of a rank that lives other communicators do not hear.
    let (code, got) = sum(WORLD, 1.0);
    assert!(code == 0 && got == f64::from(n), "{got}: {}", last_error());
    barrier();
    let other = dup(WORLD);
    free(own);
    free(other);
    finalize();
}

/// A rank has no memory for what it shares with the others of its node, which a call of all needs first. They are told, although it has no way to tell
/// them there.
pub fn has_no_arena() {
    init(1);
    let (me, n) = (rank(), size());
    let unable: i32 = std::env::var("UNABLE").unwrap().parse().unwrap();
    send(&[1], (me + 1) % n, 0);
    recv(&mut [0], (me + n - 1) % n, 0);
    let own = if std::env::var("OWN").is_ok() { dup(WORLD) } else { WORLD };
    let code = if me == unable { without_addresses(|| fmpl_barrier(own)) } else { fmpl_barrier(own) };
    let text = last_error();
    if me == unable {
        assert_eq!(code, MEMORY, "{text}");
    } else {
        assert_eq!(code, PEER, "{text}");
        assert!(text.contains(&format!("rank {unable} could not do its part")), "{text}");
    }
    fails(fmpl_barrier(own), PEER);
    if own != WORLD {
        // Of a rank that lives other communicators do not hear.
        barrier();
        free(own);
    }
    finalize();
}

/// Rank 1 is stopped when rank 0 makes a call of both, which breaks the communicator: it cannot be told in time, since there is no connection, and rank
/// 0 has freed the communicator when it goes on. It is told then. (Rank 2 has had the only connection last.)
pub fn is_told_late() {
    static WENT_ON: AtomicBool = AtomicBool::new(false);
    extern "C" fn goes_on(_: i32) {
        WENT_ON.store(true, Ordering::Release);
    }
    let until_it_went_on = || {
        while !WENT_ON.load(Ordering::Acquire) {
            sleep_ms(1);
        }
    };
    // SAFETY: a handler that stores a word.
    unsafe { libc::signal(libc::SIGCONT, goes_on as *const () as libc::sighandler_t) };
    let my_pid = i64::from(std::process::id()).to_ne_bytes();
    init(1);
    let (me, mut got) = (rank(), [0; 8]);
    let own = split(WORLD, i32::from(me == 2), 0);
    assert_eq!(sum(own, 1.0).0, 0, "{}", last_error());
    match me {
        0 => {
            let pids = [1, 2].map(|peer| {
                send(&my_pid, peer, 0);
                recv(&mut got, peer, 0);
                i64::from_ne_bytes(got) as i32
            });
            // SAFETY: no memory; the pids are the ranks' until the job is over.
            let signal = |peer: usize, signal| assert_eq!(unsafe { libc::kill(pids[peer - 1], signal) }, 0);
            signal(1, libc::SIGSTOP);
            fails(sum(own, 1.0).0, PEER);
            assert!(last_error().contains("did not answer"), "{}", last_error());
            free(own);
            signal(1, libc::SIGCONT);
            // Whoever waits for one that was late, before it is heard, would have an error.
            until_it_went_on();
            recv(&mut got, 1, 0);
            signal(2, libc::SIGCONT);
        }
        1 => {
            recv(&mut got, 0, 0);
            send(&my_pid, 0, 0);
            // It is stopped somewhere in here.
            until_it_went_on();
            fails(sum(own, 1.0).0, PEER);
            free(own);
            // SAFETY: no memory; rank 0 waits for it.
            assert_eq!(unsafe { libc::kill(i64::from_ne_bytes(got) as i32, libc::SIGCONT) }, 0);
            send(&[1; 8], 0, 0);
        }
        _ => {
            recv(&mut got, 0, 0);
            send(&my_pid, 0, 0);
            free(own);
            // It wants no connection before the two are done.
            until_it_went_on();
        }
    }
    finalize();
}

pub fn told_late() {
    let job = Job::new(3, "is told late").nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp FMPL_ATTACH_TIMEOUT=1");
    job.env("FMPL_QUEUE_PAIRS", 1).seconds(60).run();
}

pub fn told_without_an_arena() {
    for (ranks, unable) in [(2, 0), (2, 1), (4, 0), (4, 2), (4, 3)] {
        for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block"] {
            let job = || Job::new(ranks, "has no arena").env("UNABLE", unable).settings(settings).seconds(40);
            job().run();
            job().env("OWN", 1).run();
        }
        if ranks == 4 {
            let job = || Job::new(4, "has no arena").env("UNABLE", unable).nodes(Nodes::Blocks(2)).seconds(40);
            job().settings("FMPL_NETWORK=tcp").run();
            job().settings("FMPL_NETWORK=tcp").env("OWN", 1).run();
        }
    }
}

pub fn told() {
    for settings in ["FMPL_LOG=warn", "FMPL_WAIT=block"] {
        for ranks in [2, 3, 4] {
            Job::new(ranks, "has no addresses").settings(settings).seconds(40).run();
        }
    }
    let outcome = Job::new(4, "has no addresses").settings("FMPL_NETWORK=tcp").nodes(Nodes::Blocks(2)).seconds(40);
    let outcome = outcome.outcome();
    assert_eq!(outcome.code, 0, "between nodes: {}", story(&outcome));
}
