//! Multicasts to groups that overlap, many in flight, no two ranks in step: nobody waits for ever, nothing is lost, twice or out of order;
//! and the same when a rank dies in the middle of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::multicast::{mcast_wait, try_mcast, try_mcast_recv};
use crate::number_of;
use crate::ranks::bytes::{Draw, check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, long};
use fmpl::launch::embedded::Nodes;
use fmpl::p2p::any_source::multicast::{multicasts_put_aside, parts_gathered};

/// A multicast of the storm, as all ranks draw it.
struct Cast {
    id: u64,
    master: i32,
    group: u64,
    len: usize,
}

/// The next round: so many of each rank.
fn round(draw: &mut Draw, next: &mut u64, each: u64, longest: usize) -> Vec<Cast> {
    let n = size() as u64;
    let casts = (0..n * each).map(|k| {
        *next += 1;
        // Some go to all: what comes to the same group comes in order.
        let group = if draw.one_in(4) { (1 << n) - 1 } else { 1 + draw.number() % ((1 << n) - 1) };
        let len = 8 + if draw.one_in(40) { draw.below(longest) } else { draw.below(longest / 8) };
        Cast { id: *next, master: (k % n) as i32, group, len }
    });
    casts.collect()
}

fn bytes_of(cast: &Cast) -> Vec<u8> {
    let mut bytes = cast.id.to_le_bytes().to_vec();
    bytes.extend(message(cast.len - 8, cast.id));
    bytes
}

/// Every rank sends all of a round before it receives any, so all of them are under way at once, and everybody has them in another order.
pub fn storms() {
    init(4);
    let me = rank();
    let (rounds, each) = (number_of("ROUNDS").unwrap(), number_of("EACH").unwrap());
    let longest = number_of("LONGEST").unwrap_or(40_000) as usize;
    let mut draw = Draw(number_of("SEED").unwrap());
    let (mut next, mut buf) = (0, vec![0; longest + 8]);
    barrier();
    for _ in 0..rounds {
        let casts = round(&mut draw, &mut next, each, longest);
        let mut mine = Vec::new();
        for cast in casts.iter().filter(|cast| cast.master == me) {
            let (data, mut ticket) = (bytes_of(cast), 0);
            ok(try_mcast(&data, &[cast.group], Some(&mut ticket)));
            mine.push((data, ticket));
        }
        let mut wanted: BTreeMap<u64, &Cast> =
            casts.iter().filter(|cast| cast.group >> me & 1 == 1).map(|cast| (cast.id, cast)).collect();
        let mut last = BTreeMap::new();
        while !wanted.is_empty() {
            let (code, len, master) = try_mcast_recv(&mut buf);
            ok(code);
            let id = u64::from_le_bytes(buf[..8].try_into().unwrap());
            let cast = wanted.remove(&id).unwrap_or_else(|| panic!("number {id} again, or not for this rank"));
            assert_eq!((len, master), (cast.len, cast.master), "number {id}");
            check(&buf[8..len], id, "an overlapping multicast");
            let before = last.insert((master, cast.group), id).unwrap_or(0);
            assert!(before < id, "{id} of rank {master} behind {before}, to the same group {:b}", cast.group);
        }
        mine.into_iter().for_each(|(_, ticket)| ok(mcast_wait(ticket)));
        barrier();
    }
    let [hoped, above] = parts_gathered().unwrap();
    println!("put aside {}, parts of others {hoped}, of who told it {above}", multicasts_put_aside().unwrap());
    finalize();
}

fn sums(outcome: &fmpl::launch::embedded::Outcome, ranks: usize) -> [u64; 3] {
    let of = |rank: usize| {
        let said = crate::ranks::said(outcome, rank);
        let numbers: Vec<u64> = said.split([' ', ',', '\n']).filter_map(|word| word.parse().ok()).collect();
        [0, 1, 2].map(|n| numbers[n])
    };
    (0..ranks).map(of).fold([0; 3], |all, of| [0, 1, 2].map(|n| all[n] + of[n]))
}

pub fn overlapping() {
    // 10^5 in all, or some thousands.
    let rounds = if long() { 50 } else { 1 };
    for (seed, form) in [(1, "auto"), (2, "ring"), (3, "doubling"), (4, "tree"), (5, "flat")] {
        let job = |settings: &str, nodes| {
            let job = Job::new(8, "storms").settings("FMPL_NETWORK=tcp EACH=30").settings(settings).nodes(nodes);
            job.env("FMPL_MCAST_FAR", form).env("SEED", seed).env("ROUNDS", rounds).seconds(if long() {
                3600
            } else {
                120
            })
        };
        let [_, hoped, _] = sums(&job("", Nodes::Cyclic(8)).run(), 8);
        assert_eq!(
            hoped > 0,
            ["ring", "doubling"].contains(&form),
            "parts come from other leaders, in forms with parts"
        );
        // Long ones along a chain among them.
        job("EACH=12 LONGEST=600000", Nodes::Blocks(3)).run();
        if form == "auto" {
            let tuning = std::env::temp_dir().join(format!("chains-{}.tuning", std::process::id()));
            std::fs::write(&tuning, "fmpl tuning 1\n[any]\nmcast_chain = 512k\nmcast_ring = never\n").unwrap();
            job("EACH=20 LONGEST=2000000", Nodes::Cyclic(8)).env("FMPL_TUNING", tuning.display()).run();
            std::fs::remove_file(&tuning).unwrap();
        }
        // Each ring has room for two messages, which nobody receives before all have sent.
        let [aside, ..] = sums(&job("FMPL_ANY_SLOTS=4", Nodes::Cyclic(8)).run(), 8);
        assert!(aside > 0, "rings that are full are emptied");
    }
}

/// The same until a rank dies, at any time: those who wait for it hear of that, and no wait lasts.
pub fn dies_in_a_storm() {
    init(4);
    let (me, victim) = (rank(), number_of("VICTIM").unwrap() as i32);
    let mut draw = Draw(number_of("SEED").unwrap());
    let (mut next, mut buf) = (0, vec![0; 40_008]);
    barrier();
    if me == victim {
        let after = Duration::from_micros(number_of("AFTER").unwrap());
        std::thread::spawn(move || {
            std::thread::sleep(after);
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGKILL) };
        });
    }
    let mut named = 0;
    let mut told = |code: i32| {
        if code != 0 {
            fails(code, PEER);
            let text = last_error();
            // It, or a leader that waited for it and passes nothing on.
            assert!(text.contains(&format!("rank {victim}")) || text.contains("given a multicast up"), "{text}");
            named += text.contains(&format!("rank {victim}")) as u32;
        }
        code == 0
    };
    let (mut heard, mut mine, mut seen) = (false, Vec::new(), BTreeSet::new());
    while !heard {
        let casts = round(&mut draw, &mut next, 6, 40_000);
        for cast in casts.iter().filter(|cast| cast.master == me) {
            let (data, mut ticket) = (bytes_of(cast), 0);
            if told(try_mcast(&data, &[cast.group], Some(&mut ticket))) {
                mine.push((data, ticket, cast.group));
            }
        }
        for _ in casts.iter().filter(|cast| cast.group >> me & 1 == 1) {
            let (code, len, _) = try_mcast_recv(&mut buf);
            if !told(code) {
                heard = true;
                break;
            }
            let id = u64::from_le_bytes(buf[..8].try_into().unwrap());
            check(&buf[8..len], id, "a multicast before the death");
            assert!(seen.insert(id), "{id} twice");
        }
    }
    // Of what the dead one was a member of, somebody is told.
    for (_, ticket, group) in &mine {
        if group >> victim & 1 == 1 {
            told(mcast_wait(*ticket));
        }
    }
    // Who leaves is one that has died, for those who still wait.
    let others = || (0..size()).filter(|r| ![me, victim].contains(r));
    others().for_each(|r| send(&[1], r, 2));
    others().for_each(|r| recv(&mut [0], r, 2));
    println!("well {named}");
    std::process::exit(0);
}

pub fn deaths() {
    let turns = if long() { 400 } else { 6 };
    let mut draw = Draw(5);
    for turn in 0..turns {
        let form = ["ring", "doubling", "tree", "flat"][turn % 4];
        let (victim, after) = (draw.below(5), 200 + draw.below(40_000));
        let job = Job::new(5, "dies in a storm").settings("FMPL_NETWORK=tcp").nodes(Nodes::Cyclic(5)).keep_going();
        let outcome = job
            .env("FMPL_MCAST_FAR", form)
            .env("SEED", turn + 1)
            .env("VICTIM", victim)
            .env("AFTER", after)
            .seconds(60)
            .outcome();
        let all = (0..5).filter(|r| *r != victim).all(|r| crate::faults::well(&outcome, r));
        assert!(all, "rank {victim} dies after {after} us, {form}:\n{}", crate::ranks::story(&outcome));
    }
}
