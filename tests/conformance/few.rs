//! Few connections and many peers: nodes may have 4 contexts, and every rank talks to 12 others on nodes of their own, or several ranks of
//! a node share them. Connections are given up and made again all the time, and memory registered again; no message is lost, doubled or
//! overtaken.

use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use fmpl::Counter;
use std::collections::HashMap;

/// Indices of a pair that are in use.
const INDICES: usize = 3;

struct Message {
    src: i32,
    dst: i32,
    index: i32,
    len: usize,
    seq: u64,
    waits: bool,
}

/// The same at all ranks: who sends what to whom, in which order.
fn schedule(ranks: usize, count: usize, start: u64) -> Vec<Message> {
    let mut draw = Draw(start);
    let mut numbers: HashMap<(i32, i32, i32), u64> = HashMap::new();
    (0..count)
        .map(|_| {
            let src = draw.below(ranks) as i32;
            let dst = (src + 1 + draw.below(ranks - 1) as i32) % ranks as i32;
            let index = draw.below(INDICES) as i32;
            let len = if draw.one_in(12) { 20_000 + draw.below(80_000) } else { draw.size(5000) };
            let seq = numbers.entry((src, dst, index)).or_default();
            *seq += 1;
            Message { src, dst, index, len, seq: *seq, waits: draw.one_in(3) }
        })
        .collect()
}

fn count(which: Counter) -> u64 {
    fmpl::comm::counter(which as i32).expect("a counter")
}

fn number(name: &str) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} is a number"))
}

/// Everybody walks through the schedule and begins what is its own; what is pending on an index is completed before the next there, and
/// some things at once. So the earliest message that is not over is always one that both sides have come to.
pub fn random_traffic() {
    init(INDICES as i32);
    let (me, most) = (rank(), [number("FMPL_QUEUE_PAIRS"), number("FMPL_CONTEXTS")].map(|n| n as u64));
    let mut pending: HashMap<(bool, i32, i32), (Vec<u8>, u64)> = HashMap::new();
    let finish = |sends: bool, peer: i32, index: i32, (buf, seed): (Vec<u8>, u64)| {
        if sends {
            isend_wait(peer, index);
        } else {
            irecv_wait(peer, index);
            assert_eq!(received(peer, index).0, buf.len(), "{peer} to {me} on {index}");
            check(&buf, seed, &format!("{peer} to {me} on {index}"));
        }
    };
    barrier();
    let since = std::time::Instant::now();
    for (n, m) in schedule(size() as usize, number("FEW_MESSAGES"), number("FEW_SEED") as u64).into_iter().enumerate() {
        if n % 50 == 0 {
            sendbuf_set(64 << 20, [10, 0, -1][n / 50 % 3]);
        }
        if std::env::var_os("FEW_PAUSE").is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let sends = m.src == me;
        if !sends && m.dst != me {
            continue;
        }
        let peer = if sends { m.dst } else { m.src };
        if let Some(before) = pending.remove(&(sends, peer, m.index)) {
            finish(sends, peer, m.index, before);
        }
        let seed = seed(m.src, m.dst, m.index, m.seq);
        let mut buf = if sends { message(m.len, seed) } else { vec![0; m.len] };
        if sends {
            isend(&buf, peer, m.index);
        } else {
            irecv(&mut buf, peer, m.index);
        }
        if m.waits {
            finish(sends, peer, m.index, (buf, seed));
        } else {
            pending.insert((sends, peer, m.index), (buf, seed));
        }
        let pairs = [Counter::RdmaPairs, Counter::RdmaNodePairs].map(count);
        let contexts = [Counter::RdmaContexts, Counter::RdmaNodeContexts].map(count);
        let within = |these: [u64; 2], most: u64| these.iter().all(|n| *n <= most);
        assert!(
            within(pairs, most[0]) && within(contexts, most[1]),
            "{pairs:?} queue pairs and {contexts:?} contexts where {most:?} may be"
        );
    }
    for ((sends, peer, index), one) in pending {
        finish(sends, peer, index, one);
    }
    barrier();
    let [retired, away] = [Counter::RdmaRetired, Counter::RdmaPutAway].map(count);
    println!("retired {retired} and put away {away} in {:.2} s", since.elapsed().as_secs_f64());
    let fabric = fmpl::p2p::endpoint::endpoint().expect("this rank").fabric_here();
    if let Some([_, rings, ..]) = fabric.and_then(|fabric| fabric.switches()) {
        println!("rings {rings}");
    }
    finalize();
}

/// Rank 0 talks to all others, one after the other, each on a node of its own, and to the first one again: what it takes does not grow with how many
/// they are.
pub fn peers_in_turn() {
    init(INDICES as i32);
    let (me, ranks) = (rank(), size());
    let with = |peer: i32, round: u64| {
        let other = if me == 0 { peer } else { 0 };
        for (index, len) in [(0, 8), (1, 2000), (2, 40_000)] {
            let out = message(len, seed(me, other, index, round));
            let mut buf = vec![0; len];
            irecv(&mut buf, other, index);
            isend(&out, other, index);
            irecv_wait(other, index);
            isend_wait(other, index);
            check(&buf, seed(other, me, index, round), &format!("round {round} with rank {other} on {index}"));
        }
    };
    let launch = &fmpl::p2p::endpoint::endpoint().expect("this rank").launch;
    if me != 0 {
        with(me, 1);
        // Who waits for rank 0 is not forgotten by it, and all would in finalize. (By the launcher, which nobody needs a lane for.)
        while launch.get(0, "looked").is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if me == 1 {
            with(me, 2);
        }
        return finalize();
    }
    let (mut early, few) = (0, 4 * number("FMPL_CONTEXTS") as i32);
    for peer in 1..ranks {
        with(peer, 1);
        if peer == few || peer == ranks - 1 {
            until_forgotten(peer as u64 - number("FMPL_CONTEXTS") as u64);
        }
        if peer == few {
            early = taken();
        }
    }
    let late = taken();
    launch.put("looked", b"1").expect("said");
    with(1, 2);
    println!(
        "{} forgotten, {early} bytes after {few} peers and {late} after {}",
        count(Counter::RdmaForgotten),
        ranks - 1
    );
    finalize();
}

/// Bytes that the library takes for other nodes, but for those of its spool, which go with how far messages are ahead.
fn taken() -> u64 {
    let parts = fmpl::comm::memory().expect("what it takes");
    parts.iter().filter(|part| !part.name.contains("spool")).map(|part| part.bytes).sum()
}

/// Waits until so many peers are forgotten: that goes on in the background.
fn until_forgotten(peers: u64) {
    let since = std::time::Instant::now();
    while count(Counter::RdmaForgotten) < peers {
        assert!(since.elapsed().as_secs() < 60, "{} of {peers} are forgotten", count(Counter::RdmaForgotten));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
