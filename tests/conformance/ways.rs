//! Several ways to ranks on other nodes (`FMPL_CONNECT`): links change between them under traffic, at random; and the busiest are connected.

use std::time::Instant;

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::{self, Job};
use fmpl::fabric::network::Way;
use fmpl::launch::embedded::Nodes;

/// The network with several ways that is here; `None`: another one is named.
fn network() -> Option<String> {
    let has_ports = || std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut all| all.next().is_some());
    let here = || if has_ports() { "verbs" } else { "tcp" }.to_owned();
    let network = std::env::var("FMPL_NETWORK").unwrap_or_else(|_| here());
    if network.starts_with("tcp") || network == "verbs" {
        return Some(network);
    }
    println!("  {network} has one way only");
    None
}

/// Random traffic while each link changes between datagrams, some of which are lost, doubled or late, the same into a ring, and a connection, at
/// random every 50 ms.
pub fn random() {
    let Some(network) = network() else { return };
    let (seconds, since) = (if ranks::long() { 300 } else { 3 }, Instant::now());
    let (mut jobs, mut left, mut rings) = (0, 0, 0);
    let messages = if std::env::var_os("RIG_SHORT").is_some() { 150 } else { 600 };
    while jobs < 2 || since.elapsed().as_secs() < seconds {
        // Connections for all, and for some; rings for some, and for all.
        let job = Job::new(4, "few queue pairs").nodes(Nodes::Cyclic(4)).env("FMPL_QUEUE_PAIRS", [2, 128][jobs % 2]);
        let job = job.env("FMPL_RINGS", [256, 1][jobs % 2]);
        let job = job.env("FMPL_NETWORK", &network).env("FMPL_CONNECT", "random").env("FMPL_CONTEXTS", 1024);
        let job = job.env("FMPL_WEATHER", format!("loss=2,double=1,late=1,seed={jobs}")).env("FEW_PAUSE", 1);
        let job = job.env("FEW_MESSAGES", messages).env("FEW_SEED", 300 + jobs).env("FMPL_STALL", 60);
        let outcome = job.seconds(600).run();
        let count = |rank: usize, what: &str| {
            let said = ranks::said(&outcome, rank);
            let number = said.split_whitespace().skip_while(|word| *word != what).nth(1);
            number.and_then(|n| n.parse::<u64>().ok()).expect("a count")
        };
        left += (0..4).map(|rank| count(rank, "retired")).sum::<u64>();
        rings += (0..4).map(|rank| count(rank, "rings")).sum::<u64>();
        jobs += 1;
    }
    let time = since.elapsed().as_secs_f64();
    let all = jobs * messages;
    println!("  {network}: {all} messages, {left} times from a connection to datagrams, {rings} rings, {time:.1} s");
    assert!(left.min(rings) >= 2 * jobs as u64, "{left} changes and {rings} rings in {jobs} jobs");
}

/// Each rank is on a node with one connection; the one with whom it exchanges most changes from one phase to the next.
pub fn busiest() {
    let Some(network) = network() else { return };
    let job = Job::new(4, "busiest").nodes(Nodes::Cyclic(4)).env("FMPL_QUEUE_PAIRS", 1).env("FMPL_STALL", 60);
    // Where processors are emulated nobody is busy who spins.
    let job = job.env("FMPL_WAIT", "block");
    let outcome = job.env("FMPL_NETWORK", &network).env("FMPL_CONNECT", "busiest").seconds(300).run();
    (0..4).for_each(|rank| print!("  rank {rank}: {}", ranks::said(&outcome, rank)));
}

/// A phase may last so long.
const SECONDS: u64 = 60;

pub fn phases() {
    init(2);
    let me = rank();
    let mut all = Vec::new();
    for distance in [1, 2, 1] {
        // The phase is over when both have seen it.
        let (busy, others) = (me ^ distance, [1, 2, 3].map(|d| me ^ d));
        let (since, mut rounds, mut seen) = (Instant::now(), 0u64, false);
        // All have something with each other.
        others.into_iter().for_each(|peer| _ = exchange(peer, 1, distance as u64, false));
        loop {
            rounds += 1;
            seen |= is_connected(busy);
            if exchange(busy, 0, rounds, seen || since.elapsed().as_secs() >= SECONDS) {
                break;
            }
        }
        all.push(format!("{rounds} rounds, {:.1} s", since.elapsed().as_secs_f64()));
        assert!(seen, "rank {busy} is the busiest of rank {me}, and not connected after {rounds} rounds");
        let connected = others.into_iter().filter(|peer| is_connected(*peer)).count();
        assert!(connected <= 1, "one connection is all that there is, not {connected}");
        // Nobody goes on before all have looked.
        barrier();
    }
    println!("{}", all.join("; "));
    finalize();
}

fn is_connected(peer: i32) -> bool {
    let link = fmpl::p2p::endpoint::endpoint().expect("this rank").link_to(peer as u32);
    link.is_some_and(|link| link.way() == Some(Way::Connected))
}

/// One message each way; says whether this side is at its end, and returns whether both are.
fn exchange(peer: i32, index: i32, round: u64, over: bool) -> bool {
    let me = rank();
    let said = |from: i32, to: i32, over: bool| message(40, seed(from, to, index + 2 * i32::from(over), round));
    let mut buf = vec![0; 40];
    sendrecv(&said(me, peer, over), peer, index, &mut buf, peer, index);
    let ends = buf == said(peer, me, true);
    assert!(ends || buf == said(peer, me, false), "round {round} from {peer} to {me} on {index}");
    over && ends
}
