//! Levels of the network: what is sent between nodes crosses the upper ones as rarely as can be; a setting that cannot be is an error that says why.

use crate::ranks::bytes::{check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, said, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::Nodes;
use fmpl::p2p::endpoint::endpoint;

const LEN: usize = 96 << 10;
const TURNS: u64 = 10;

/// Bytes that this process has written to each other one, or read there.
fn sent() -> Vec<u64> {
    let mut to = vec![0; size() as usize];
    for link in endpoint().unwrap().fabric_here().unwrap().links() {
        to[link.peer as usize] += link.done()[2];
    }
    to
}

/// Says how much goes between this rank and each other one in some calls of each kind, each in messages of the payload's length.
pub fn counts_crossings() {
    init(4);
    let (me, n) = (rank(), size());
    let mut data = message(LEN, 1);
    let mut sums = vec![1.0f64; LEN / 8];
    let everybody = [(1u64 << n) - 1];
    let mut call = |kind: &str, turn: u64| match kind {
        "bcast" => {
            data.fill(0);
            if me == 3 {
                data.copy_from_slice(&message(LEN, turn));
            }
            // SAFETY: valid memory.
            ok(unsafe { fmpl_bcast(data.as_mut_ptr().cast(), LEN, 3, WORLD) });
            check(&data, turn, "a broadcast");
        }
        "reduce" => {
            sums.fill(1.0);
            let (ptr, count) = (sums.as_mut_ptr().cast(), sums.len() as i32);
            // SAFETY: valid memory.
            ok(unsafe { fmpl_mcast_reduce(ptr, count, Some(fmpl_dsum), everybody.as_ptr(), 0, WORLD) });
            assert!(sums.iter().all(|x| *x == if me == 0 { n as f64 } else { 1.0 }));
        }
        _ => {
            let (mut len, mut master, mut ticket) = (0, -1, 0);
            let whole = message(LEN, turn);
            // SAFETY: valid memory; the ticket is waited for.
            unsafe {
                if me == 0 {
                    ok(fmpl_mcast(whole.as_ptr().cast(), LEN, everybody.as_ptr(), WORLD, (&mut ticket).into()));
                }
                ok(fmpl_mcast_recv(data.as_mut_ptr().cast(), LEN, WORLD, (&mut len).into(), (&mut master).into()));
                if me == 0 {
                    ok(fmpl_mcast_wait(ticket));
                }
            }
            check(&data, turn, "a multicast");
        }
    };
    for kind in ["bcast", "reduce", "mcast"] {
        // The first ones make connections.
        (0..2).for_each(|turn| call(kind, turn));
        barrier();
        let before = sent();
        (0..TURNS).for_each(|turn| call(kind, turn));
        barrier();
        let payloads =
            sent().iter().zip(before).map(|(now, then)| (now - then).div_euclid(LEN as u64)).collect::<Vec<_>>();
        println!("{kind} {payloads:?}");
    }
    finalize();
}

/// Payloads that cross switches of so many ranks each, in one call of a kind.
fn crossed(outcome: &fmpl::launch::embedded::Outcome, kind: &str, below: usize) -> u64 {
    let of = |rank: usize| {
        let said = said(outcome, rank);
        let line =
            said.lines().find_map(|line| line.strip_prefix(&format!("{kind} "))).unwrap_or_else(|| panic!("{said}"));
        let numbers: Vec<u64> = line.trim_matches(['[', ']']).split(", ").map(|n| n.parse().unwrap()).collect();
        (0..8).filter(|peer| peer / below != rank / below).map(|peer| numbers[peer]).sum::<u64>()
    };
    (0..8).map(of).sum::<u64>() / TURNS
}

pub fn crossings() {
    let job = || Job::new(8, "counts crossings").nodes(Nodes::Cyclic(8)).settings("FMPL_NETWORK=tcp");
    let without = job().run();
    for topology in ["blocks:2,4", "((0-1)(2,3))((4,5)(6-7))"] {
        for form in ["tree", "chain", "doubling"] {
            let outcome = job().env("FMPL_TOPOLOGY", topology).env("FMPL_MCAST_FAR", form).run();
            for kind in ["bcast", "reduce", "mcast"] {
                let [upper, lower] = [4, 2].map(|below| crossed(&outcome, kind, below));
                // By parts each comes from where the form has it.
                if kind != "mcast" || form != "doubling" {
                    assert_eq!((upper, lower), (1, 3), "{kind}, {form}: {}", story(&outcome));
                }
            }
        }
    }
    // Beside a tree that knows nothing of switches.
    assert!(crossed(&without, "bcast", 4) > 1, "{}", story(&without));
}

pub fn refused() {
    for (topology, why) in
        [("blocks:2,3", "switches of 3 nodes cannot consist"), ("(0-1)", "node 2 of 3 is below no switch")]
    {
        let job = Job::new(3, "counts crossings").nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp").keep_going();
        let outcome = job.env("FMPL_TOPOLOGY", topology).outcome();
        let all = story(&outcome);
        assert!(all.contains(&format!("FMPL_TOPOLOGY={topology}: ")) && all.contains(why), "{all}");
    }
}
