//! What goes wrong between nodes. Needs RDMA devices: see `tests/rig`.

use crate::ranks::calls::*;
use crate::ranks::{Job, story};
use fmpl::launch::embedded::{End, Nodes};

fn devices() -> bool {
    let there = std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut d| d.next().is_some());
    if !there {
        println!("  skipped: there are no RDMA devices");
    }
    there
}

/// Ranks 0 and 2 on one node, 1 on another. Rank 1 dies while rank 0 waits for it, after its last message.
pub fn dies_on_another_node() {
    init(8);
    let me = rank();
    let mut got = [0; 8];
    if me == 1 {
        send(&[1; 8], 0, 0);
        recv(&mut got, 0, 0);
        send(&[2; 8], 0, 1);
        // What was posted has left by then.
        sleep_ms(200);
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if me == 0 {
        recv(&mut got, 1, 0);
        send(&got, 1, 0);
        for (what, code) in [
            ("receive", try_recv(&mut got, 1, 2)),
            ("send", try_send(&vec![3; 1 << 20], 1, 3)),
            ("again", try_recv(&mut got, 1, 4)),
        ] {
            assert_eq!(code, PEER, "{what}: {}", last_error());
            let text = last_error();
            assert!(text.contains("rank 1") && text.contains("does not answer"), "{what}: {text}");
        }
        recv(&mut got, 1, 1);
        assert_eq!(got, [2; 8], "the last message of the dead");
        send(&[9; 8], 2, 0);
    } else {
        recv(&mut got, 0, 0);
        assert_eq!(got, [9; 8]);
    }
    assert_eq!(try_finalize(), PEER, "{}", last_error());
}

pub fn killed_there() {
    if devices() {
        let outcome = Job::new(3, "dies on another node").nodes(Nodes::Cyclic(2)).settings("FMPL_ATTACH_TIMEOUT=3");
        let outcome = outcome.keep_going().outcome();
        let ends = &outcome.ends;
        assert!(matches!((&ends[0], &ends[2]), (End::Exit(0), End::Exit(0))), "{}", story(&outcome));
    }
}
