//! Ranks whose peers have ended before them, over providers that do not tell: what is still said to those at the end is given up soon.

use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, story};

/// Communicators in which every rank has met every other: a rank has so much to say to each at its end.
const MANY: usize = 10;

pub fn meets_all_often() {
    init(2);
    let (me, all) = (rank(), size());
    for _ in 0..MANY {
        on(dup(comm()));
        let others = || (0..all).filter(|other| *other != me);
        others().for_each(|other| isend(&me.to_ne_bytes(), other, 0));
        for other in others() {
            let mut got = [0; 4];
            recv(&mut got, other, 0);
            assert_eq!(i32::from_ne_bytes(got), other);
        }
        others().for_each(|other| isend_wait(other, 0));
    }
    finalize();
}

/// The time for a first contact, for which a peer that may live is waited for, is longer than the job may take.
pub fn ends_all_the_same() {
    if crate::choice::offered().is_none() {
        return;
    }
    for name in ["shm", "udp;ofi_rxd"] {
        let job = Job::new(4, "meets all often").nodes(Nodes::Cyclic(2)).env("FMPL_NETWORK", format!("ofi:{name}"));
        let outcome = job.env("FMPL_ATTACH_TIMEOUT", 600).seconds(200).outcome();
        let text = story(&outcome);
        assert!(outcome.code == 0 || text.contains("has no provider that can be used: "), "{name}: {text}");
    }
}
