//! Between nodes that share no memory; see `tests/rig`. Emulated processors are slow, so a short run does each thing once.

use crate::faults::well;
use crate::ranks::{Job, has_devices, in_software, said, story};
use fmpl::launch::embedded::Nodes;

fn rig_link(arguments: &[&str]) {
    let done = std::process::Command::new("rig-link").args(arguments).status();
    assert!(done.as_ref().is_ok_and(|s| s.success()), "rig-link {arguments:?}: {done:?}");
}

fn job(ranks: usize, body: &str, settings: &str) -> Job {
    Job::new(ranks, body).settings(settings).seconds(200)
}

fn apart(ranks: usize, body: &str, settings: &str) -> Job {
    job(ranks, body, settings).env("APART", 1).nodes(Nodes::Cyclic(ranks as u32))
}

pub fn over_rdma() {
    if !has_devices() {
        return;
    }
    let short = std::env::var_os("RIG_SHORT").is_some();
    let only = std::env::var("RIG_SCENE").unwrap_or_default();
    let run = |name: &str, what: &dyn Fn()| {
        if name.contains(&only) {
            let since = std::time::Instant::now();
            what();
            println!("  {name}: {:.1} s", since.elapsed().as_secs_f64());
        }
    };
    // A sender shares a node with the receiver, or none does.
    run("in order", &|| {
        job(5, "in order", "FMPL_ANY_SLOTS=16 EACH=8").nodes(Nodes::Blocks(4)).run();
        // In shares, on the node and between nodes.
        job(5, "in order", "FMPL_ANY_SLOTS=16 FMPL_SPREAD=4 EACH=8").nodes(Nodes::Cyclic(2)).run();
        if !short {
            apart(4, "in order", "FMPL_ANY_SLOTS=4 EACH=20 FMPL_WAIT=block").run();
            apart(4, "takes turns", "FMPL_ANY_SLOTS=1024 FMPL_SPREAD=4").run();
        }
    });
    // The counters of all shares but one are with ranks that are neither the receiver nor on a node of the senders.
    if !short || only == "elsewhere" {
        run("elsewhere", &|| {
            let settings = "FMPL_COUNTERS=elsewhere FMPL_ANY_SLOTS=16";
            let outcome = job(5, "in order", settings).env("EACH", 8).nodes(Nodes::Cyclic(3)).run();
            let hosted = |rank| !said(&outcome, rank).contains("the counters of 0 shares");
            assert!((1..4).any(hosted), "{}", story(&outcome));
            apart(4, "takes turns", settings).settings("FMPL_ANY_SLOTS=1024 FMPL_SPREAD=4").run();
            let outcome = apart(3, "host dies", settings).keep_going().outcome();
            assert!([0, 2].iter().all(|r| well(&outcome, *r)), "{}", story(&outcome));
        });
    }
    run("requests", &|| drop(apart(2, "requests", "FMPL_ANY_SLOTS=64").run()));
    // A provider in software does nothing in a process that is stopped.
    run("stopped", &|| {
        if in_software() {
            return;
        }
        apart(4, "stopped", "FMPL_ANY_SLOTS=64 LIMIT=5 FMPL_WAIT=block").run();
        if !short {
            apart(4, "stopped", "FMPL_ANY_SLOTS=64").run();
            apart(4, "stopped", "FMPL_ANY_SLOTS=64 FMPL_SPREAD=2 LIMIT=5").run();
        }
    });
    run("facing", &|| drop(apart(2, "facing", "FMPL_ANY_SLOTS=16 ROUNDS=3").run()));
    run("groups", &|| {
        job(5, "groups", "ROUNDS=9").nodes(Nodes::Blocks(4)).run();
        if !short {
            job(8, "groups", "ROUNDS=40 FMPL_WAIT=block").nodes(Nodes::Cyclic(3)).run();
            job(8, "mcast stopped", "APART=1").nodes(Nodes::Blocks(4)).run();
        }
    });
    run("dies", &|| {
        for settings in ["FMPL_ANY_SLOTS=64", "FMPL_ANY_SLOTS=64 FMPL_SPREAD=4"] {
            let outcome = apart(3, "dies with a slot", settings).keep_going().outcome();
            assert!([0, 2].iter().all(|r| well(&outcome, *r)), "{}", story(&outcome));
        }
    });
    if !short || only == "loss" {
        // Each lost packet costs a device a quarter of a second.
        run("loss", &|| {
            rig_link(&["all", "loss", "2%"]);
            job(5, "in order", "FMPL_ANY_SLOTS=16 EACH=8").nodes(Nodes::Blocks(4)).run();
            apart(4, "in order", "FMPL_ANY_SLOTS=4 EACH=10 FMPL_WAIT=block").run();
            apart(2, "requests", "FMPL_ANY_SLOTS=64").run();
            apart(4, "stopped", "FMPL_ANY_SLOTS=64 LIMIT=5").run();
            job(5, "groups", "ROUNDS=9").nodes(Nodes::Blocks(4)).run();
            rig_link(&["all", "clear"]);
        });
    }
    if !short {
        run("traffic", &|| {
            let outcome = apart(4, "mcast member dies", "").keep_going().outcome();
            assert!([0, 1, 3].iter().all(|r| well(&outcome, *r)), "{}", story(&outcome));
            for us in [20_000, 200_000, 900_000] {
                let job = apart(4, "dies in traffic", "FMPL_ANY_SLOTS=16 EACH=150").env("US", us);
                let outcome = job.keep_going().outcome();
                assert!([0, 2, 3].iter().all(|r| well(&outcome, *r)), "after {us} us: {}", story(&outcome));
            }
        });
    }
}
