//! Broadcasts between nodes by a multicast group. In a kernel with devices (`tests/rig`) the real thing; elsewhere that doing without works.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, has_devices, in_software, said, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::{End, Nodes};
use std::time::Instant;

/// Bytes of a message in a packet of 1024 bytes.
const PAYLOAD: usize = 1024 - 32;

fn counter(which: i32) -> usize {
    let mut value = 0;
    ok(fmpl_counter(which, (&mut value).into()));
    value
}

fn counters() -> [usize; 3] {
    [FMPL_COUNTER_MULTICAST_PACKETS, FMPL_COUNTER_MULTICAST_AGAIN, FMPL_COUNTER_MULTICAST_GROUPS].map(counter)
}

#[track_caller]
fn bcast(comm: i32, root: i32, bytes: usize, number: u64, waits: bool) {
    let mut me = 0;
    // SAFETY: a number, and a buffer of so many bytes that stays until the call is complete.
    unsafe {
        ok(fmpl_comm_rank(comm, (&mut me).into()));
        let sent = message(bytes, number);
        let mut buf = if me == root { sent.clone() } else { vec![0x55; bytes] };
        let p = buf.as_mut_ptr().cast();
        if waits {
            ok(fmpl_bcast(p, bytes, root, comm));
        } else {
            ok(fmpl_ibcast(p, bytes, root, comm));
            ok(fmpl_ibcast_wait(comm));
        }
        let wrong = (0..bytes).find(|k| buf[*k] != sent[*k]);
        assert_eq!(wrong, None, "rank {me}: {bytes} bytes from {root}");
    }
}

/// Random sizes and roots. Each rank says what it has sent by multicast and what it should have.
pub fn broadcasts() {
    init(1);
    let (me, ranks) = (rank(), size());
    let number = |name: &str| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let (calls, most) = (number("CALLS"), number("MOST") as usize);
    let mut draw = Draw(number("SEED"));
    let firsts: Vec<i32> = std::env::var("FIRSTS").unwrap().split(',').map(|node| node.parse().unwrap()).collect();
    // The first one makes the group.
    bcast(WORLD, 0, 1, 1, true);
    let before = counters();
    let mut mine = 0;
    for call in 0..calls {
        let root = draw.below(ranks as usize) as i32;
        let bytes = match draw.below(4) {
            // Around the bounds of packets and windows.
            0 => PAYLOAD * [1, 2, 63, 64, 65, 128, 129][draw.below(7)] + draw.below(3) - 1,
            _ => 1 + draw.below(most),
        };
        if firsts[root as usize] == me {
            mine += bytes.div_ceil(PAYLOAD);
        }
        if me == draw.below(ranks as usize) as i32 {
            sleep_ms(draw.below(3) as u64);
        } else {
            draw.below(3);
        }
        bcast(WORLD, root, bytes, 100 + call, call % 5 != 4);
    }
    let after = counters();
    println!("sent {} of {mine} again {} groups {}", after[0] - before[0], after[1] - before[1], after[2]);
    // Communicators made together have groups of their own; and there are so many only.
    let comm = split(WORLD, me % 2, me);
    let mut n = 0;
    ok(fmpl_comm_size(comm, (&mut n).into()));
    for call in 0..3 {
        bcast(comm, call % n, 50_000, 1000 + (me % 2) as u64, true);
    }
    assert!(counter(FMPL_COUNTER_MULTICAST_GROUPS) <= after[2] + 1);
    barrier();
    free(comm);
    finalize();
}

fn job(ranks: i32, nodes: Nodes, calls: usize, most: usize, settings: &str) -> Job {
    let firsts: Vec<String> = (0..ranks)
        .map(|r| match nodes {
            Nodes::Blocks(n) => (0..ranks).find(|f| f * n as i32 / ranks == r * n as i32 / ranks).unwrap(),
            Nodes::Cyclic(n) => r % n as i32,
        })
        .map(|first| first.to_string())
        .collect();
    Job::new(ranks as usize, "broadcasts")
        .env("CALLS", calls)
        .env("MOST", most)
        .env("SEED", 5 + calls)
        .env("FIRSTS", firsts.join(","))
        .settings("FMPL_COLL_FAR_BCAST=multicast FMPL_VERBS_MTU=1024")
        .settings(settings)
        .nodes(nodes)
        .seconds(240)
}

pub fn over_rdma() {
    if in_software() || !has_devices() {
        return;
    }
    let short = std::env::var_os("RIG_SHORT").is_some();
    // What each node sends gets lost at random, messages too; a device repeats those after a quarter of a second.
    rig_link(&["all", "loss", "2%"]);
    let again = play(job(5, Nodes::Blocks(4), 12, 200_000, "FMPL_LOG=info"));
    rig_link(&["all", "clear"]);
    assert!(again > 0, "nothing was lost");
    if !short {
        play(job(4, Nodes::Cyclic(4), 60, 400_000, "FMPL_WAIT=block"));
        play(job(8, Nodes::Cyclic(4), 60, 100_000, "FMPL_WAIT=adaptive"));
        // By link-local addresses of IPv6.
        play(job(4, Nodes::Cyclic(4), 20, 100_000, "FMPL_VERBS_GID=0"));
    }
    killed();
}

fn rig_link(arguments: &[&str]) {
    let done = std::process::Command::new("rig-link").args(arguments).status();
    assert!(done.as_ref().is_ok_and(|s| s.success()), "rig-link {arguments:?}: {done:?}");
}

/// Each packet has been sent to all once; how many were sent again to one.
fn play(job: Job) -> usize {
    let since = Instant::now();
    let outcome = job.run();
    let (mut sent, mut again) = (0, 0);
    for rank in 0..outcome.ends.len() {
        let text = said(&outcome, rank);
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |k: usize| -> usize { words[k].parse().unwrap() };
        assert_eq!(number(1), number(3), "rank {rank}: each packet is sent once: {text} {}", complaints(&outcome));
        (sent, again) = (sent + number(1), again + number(5));
    }
    println!("  {sent} packets to all, {again} again to one: {:.1} s", since.elapsed().as_secs_f64());
    assert!(sent > 0, "{}", story(&outcome));
    again
}

/// A rank dies in the middle of broadcasts.
pub fn loses() {
    init(1);
    let me = rank();
    bcast(WORLD, 0, 100_000, 1, true);
    let mut code = 0;
    for call in 0..50 {
        if call == 3 && me == 2 {
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        let mut buf = vec![0u8; 100_000];
        // SAFETY: a buffer of so many bytes.
        code = unsafe { fmpl_bcast(buf.as_mut_ptr().cast(), buf.len(), call % 2, WORLD) };
        if code != 0 {
            break;
        }
    }
    fails(code, PEER);
    let _ = try_finalize();
}

fn killed() {
    let since = Instant::now();
    let job = Job::new(4, "loses in a broadcast").settings("FMPL_COLL_FAR_BCAST=multicast").nodes(Nodes::Cyclic(4));
    let outcome = job.seconds(60).keep_going().outcome();
    for rank in [0, 1, 3] {
        assert_eq!(outcome.ends[rank], End::Exit(0), "rank {rank}: {}", story(&outcome));
    }
    println!("  a rank dies: {:.1} s", since.elapsed().as_secs_f64());
}

/// Forced, where nobody has a group: no error, and nothing sent.
pub fn without() {
    let outcome = job(5, Nodes::Blocks(1), 6, 100_000, "FMPL_COLL_NODES=3").run();
    for rank in 0..5 {
        assert!(said(&outcome, rank).starts_with("sent 0 of"), "{}", story(&outcome));
    }
}
