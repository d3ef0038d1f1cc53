//! A rank that cannot do its part of a call: nobody takes its later messages for those of that call.

use std::ptr::null_mut;

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
