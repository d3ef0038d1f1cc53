//! The same on several nodes, by RDMA: in a short form, since the processors of the rig are emulated.

use crate::ranks::{Job, has_devices, in_software, long, said, skipped, story};
use fmpl::launch::embedded::Nodes;
use std::time::Instant;

/// Body, ranks, nodes, settings.
const JOBS: [(&str, usize, u32, &str); 11] = [
    ("reaches", 2, 2, ""),
    ("orders", 3, 3, ""),
    ("fills", 2, 2, "FMPL_RMA_COMMANDS=2"),
    ("leaves", 3, 3, "FMPL_RMA_COMMANDS=2"),
    ("asks", 3, 2, "FMPL_RMA_COMMANDS=4 FMPL_SPREAD=2"),
    ("errs", 2, 2, ""),
    ("renews", 3, 3, "FMPL_RMA_KEYS=2"),
    ("sums", 8, 8, "KIND=shared COUNT=40 FMPL_WAIT=block"),
    ("sums", 4, 2, "KIND=shared COUNT=60"),
    ("renumbers", 3, 3, ""),
    ("counts", 2, 2, ""),
];

/// With `FMPL_TEST_LONG=1` also these, several ranks on a node among them.
const LONG: [(&str, usize, u32, &str); 10] = [
    ("reaches", 3, 2, ""),
    ("fills", 3, 2, "FMPL_WAIT=block"),
    ("asks", 6, 6, "FMPL_RMA_COMMANDS=16 FMPL_SPREAD=4"),
    ("registers", 3, 2, ""),
    ("renews", 3, 2, "FMPL_RMA_KEYS=2 FMPL_RMA_PEERS=1"),
    ("sums", 4, 2, "KIND=shared COUNT=200"),
    ("sums", 8, 4, "KIND=private COUNT=1000 FMPL_WAIT=block"),
    ("renumbers", 4, 2, ""),
    ("commands", 2, 2, "COUNT=20000"),
    ("computes", 2, 2, ""),
];

pub fn nodes() {
    if !has_devices() {
        return;
    }
    let only = std::env::var("BODY").unwrap_or_default();
    let more: &[_] = if long() { &LONG } else { &[] };
    for (body, ranks, nodes, way) in JOBS.iter().chain(more).copied().filter(|j| j.0.contains(&only)) {
        if in_software() && body == "leaves" {
            skipped("a stopped process answers nobody over a provider in software");
            continue;
        }
        let since = Instant::now();
        let job = Job::new(ranks, body).nodes(Nodes::Cyclic(nodes)).settings(way).env("FMPL_TEST_SHORT", 1);
        let outcome = job.seconds(150).run();
        println!("  {body} on {ranks} ranks of {nodes} nodes, {way}: {:.1} s", since.elapsed().as_secs_f64());
        print!("{}", said(&outcome, 0));
    }
    if "draws".contains(&only) {
        let job = Job::new(3, "draws").nodes(Nodes::Cyclic(3)).env("FMPL_TEST_SHORT", 1).keep_going();
        let outcome = job.seconds(60).outcome();
        let text = said(&outcome, 2);
        assert!(text.contains("well"), "{}", story(&outcome));
        print!("  a dead rank's ticket: {text}");
    }
}
