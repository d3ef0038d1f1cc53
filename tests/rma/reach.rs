//! Copies and atomic operations between all kinds of memory of all ranks.

use crate::acp::*;
use crate::ranks::{Job, calls, long};

/// The ways in which it must all come to the same.
const WAYS: [&str; 7] = [
    "",
    "FMPL_CMA=off",
    "FMPL_WAIT=block",
    "FMPL_RMA_PEERS=1",
    "FMPL_RMA_COMMANDS=2 FMPL_CMA=off FMPL_RMA_PEERS=2",
    "FMPL_RMA_KEYS=1000 FMPL_WAIT=spin",
    "FMPL_RMA_STARTER=64k",
];

pub fn everywhere() {
    for (n, way) in WAYS.into_iter().enumerate() {
        // More ranks than cores must not spin.
        let ranks = if way.contains("spin") { 2 } else { 3 + n % 2 };
        Job::new(ranks, "reaches").settings(way).run();
    }
    Job::new(1, "reaches").run();
}

const LEN: usize = 512 << 10;
const KINDS: [Kind; 2] = [Kind::Shared, Kind::Private];

struct Place {
    /// Where to read from, by rank.
    from: Vec<u64>,
    /// Where to write to, by rank.
    to: Vec<u64>,
}

pub fn reaches() {
    // This keeps the job while global memory is left and entered again.
    calls::init(0);
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let (mut memories, mut places) = (Vec::new(), Vec::new());
    for (n, kind) in KINDS.into_iter().enumerate() {
        let (from, to) = (Memory::new(kind, LEN), Memory::new(kind, LEN));
        from.fill(1 + me as u8 * 2 + n as u8);
        let (from_ga, to_ga) = (register(from.ptr(), LEN).1, register(to.ptr(), LEN).1);
        places.push(Place { from: exchange(2 * n, from_ga), to: exchange(2 * n + 1, to_ga) });
        memories.extend([from, to]);
    }
    queries(&memories[0], &places[0]);
    let own = Memory::new(Kind::Shared, LEN);
    let (_, own_ga) = register(own.ptr(), LEN);

    let zero = vec![0; LEN];
    let pattern = |seed: usize| (0..LEN).map(|n| byte(1 + seed as u8, n)).collect::<Vec<u8>>();
    let patterns: Vec<Vec<u8>> = (0..2 * size).map(pattern).collect();

    // Each rank writes into a part of its own of everybody's memory.
    let part = LEN / size / 16 * 16;
    let sizes = [0, 1, 3, 4, 8, 9, 64, 1000, 4096, 20_000, part - 64];
    let mut case = me;
    for (sa, source) in places.iter().enumerate() {
        for target in &places {
            for a in 0..size {
                for b in 0..size {
                    // All sizes for neighbours, some for the others.
                    for n in sizes {
                        case += 1;
                        if !(long() || case % 3 == 0 || a == b) {
                            continue;
                        }
                        let (skip, shift) = (case % 5 * 8 + case % 3, case % 7);
                        let n = n.min(part - 64);
                        let dst = target.to[b] + (me * part + shift) as u64;
                        copy_now(dst, source.from[a] + skip as u64, n);
                        own.set(&zero[..n + 1]);
                        copy_now(own_ga, dst, n);
                        let got = own.get(n + 1);
                        let want = &patterns[a * 2 + sa][skip..];
                        assert!(got[..n] == want[..n], "{n} bytes from {a} to {b} by {me}");
                        assert_eq!(got[n], 0, "behind {n} bytes");
                    }
                }
            }
        }
    }
    sync();
    for to in [&memories[1], &memories[3]] {
        to.fill(0);
    }
    sync();
    atomics(&places);
    sync();
    overlapping(&own, own_ga);
    finalize();
    // Once more from the beginning: nothing is left of the first time.
    init();
    assert!(starter_words().iter().all(|w| w.load(std::sync::atomic::Ordering::Relaxed) == 0));
    let (key, ga) = register(own.ptr(), LEN);
    assert_eq!(exchange(0, ga).len(), size);
    unregister(key);
    finalize();
    drop((own, memories));
    calls::finalize();
}

/// What an address says of itself.
fn queries(memory: &Memory, place: &Place) {
    use fmpl::ffi::acp::*;
    let (me, size) = (rank(), procs());
    for r in 0..size {
        for ga in [place.from[r as usize], place.from[r as usize] + 12345, acp_query_starter_ga(r)] {
            assert_eq!(acp_query_rank(ga), r, "{}", last_error());
            assert_eq!(acp_query_color(ga), 0);
        }
    }
    let ga = place.from[me as usize] + 77;
    assert_eq!(acp_query_address(ga).cast::<u8>().cast_const(), memory.ptr().wrapping_add(77));
    if size > 1 {
        assert!(acp_query_address(place.from[(me as usize + 1) % size as usize]).is_null());
        assert!(last_error().contains("another rank"), "{}", last_error());
    }
    assert_eq!(acp_colors(), 2);
    let key = try_register(memory.ptr(), 64, 1);
    assert_eq!(acp_query_color(address(key, memory.ptr())), 1);
    unregister(key);
    let keys: u32 = std::env::var("FMPL_RMA_KEYS").map_or(255, |v| v.parse().unwrap());
    // 21, 1, 8 and 34 bits, the rank stored plus one.
    if keys == 255 {
        assert_eq!(acp_query_starter_ga(me) >> 43, me as u64 + 1);
        assert_eq!(place.from[0] >> 34 & 255, 1, "the first key");
    }
}

fn atomics(places: &[Place]) {
    let (me, size) = (rank() as usize, procs() as usize);
    for kind in KINDS {
        let results = Memory::new(kind, 4096);
        let (key, result_ga) = register(results.ptr(), 4096);
        for place in places {
            for b in 0..size {
                // A word of each rank's own, between neighbours that must not change.
                let at = place.to[b] + 4096 + me as u64 * 64;
                let (mut was, mut round) = (0u64, 0u64);
                for op in OPS.into_iter().cycle().take(18) {
                    round += 1;
                    let value = round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let old = if round % 12 == 1 { was } else { 99 };
                    complete(fetch8(op, result_ga + 8, at + 8, value, old, NOW));
                    let got = results.word(1).load(std::sync::atomic::Ordering::Acquire);
                    assert_eq!(got, was, "{op:?} at {b} by {me}");
                    was = result(op, was, value, old);
                }
                let mut half = 0u32;
                for op in OPS.into_iter().cycle().take(18) {
                    round += 1;
                    let value = (round as u32).wrapping_mul(0x9e37_79b9);
                    let old = if round % 12 == 7 { half } else { 99 };
                    complete(fetch4(op, result_ga + 4, at + 20, value, old, NOW));
                    assert_eq!(
                        results.half(1).load(std::sync::atomic::Ordering::Acquire),
                        half,
                        "{op:?} at {b} by {me}"
                    );
                    half = result(op, u64::from(half), u64::from(value), u64::from(old)) as u32;
                }
                copy_now(result_ga + 64, at, 64);
                let words: Vec<u64> =
                    (8..16).map(|k| results.word(k).load(std::sync::atomic::Ordering::Relaxed)).collect();
                assert_eq!(words, [0, was, u64::from(half) << 32, 0, 0, 0, 0, 0]);
                assert_eq!(results.half(0).load(std::sync::atomic::Ordering::Relaxed), 0);
                // As it was, for the next kind of result; and waits for nothing.
                let ga = results.word(20);
                ga.store(0, std::sync::atomic::Ordering::Relaxed);
                for k in [1u64, 2] {
                    complete(copy(at + 8 * k, result_ga + 160, 8, ALL));
                }
            }
        }
        unregister(key);
    }
}

/// Within one memory, source and destination may overlap.
fn overlapping(own: &Memory, ga: u64) {
    for (dst, src) in [(100, 0), (0, 100), (50, 50)] {
        own.fill(9);
        let want: Vec<u8> = (0..1000).map(|n| own.at(src + n)).collect();
        copy_now(ga + dst as u64, ga + src as u64, 1000);
        assert!((0..1000).all(|n| own.at(dst + n) == want[n]), "{src} to {dst}");
    }
}

/// Two ranks copy between the private memory of two others, one copy soon after the other: themselves, or by whoever of those is awake.
pub fn third() {
    for way in ["", "FMPL_WAIT=block", "FMPL_CMA=off", "FMPL_RMA_PEERS=1", "COMPUTES=1"] {
        Job::new(4, "asks_around").settings(way).run();
    }
}

pub fn asks_around() {
    const HALF: usize = 128 << 10;
    init();
    let me = rank() as usize;
    let memory = Memory::new(Kind::Private, 2 * HALF);
    memory.fill(1 + me as u8);
    let all = exchange(0, register(memory.ptr(), 2 * HALF).1);
    let own = Memory::new(Kind::Shared, 2 * HALF);
    let (_, own_ga) = register(own.ptr(), 2 * HALF);
    let done = starter(1) + 8;
    if me == 0 || me == 3 {
        let at = if me == 0 { 0 } else { HALF };
        for (round, n) in [8, 100, 4096, 8192, 16384, 40_000, 65_536, 70_000].into_iter().cycle().take(40).enumerate() {
            let (from, to) = if round % 3 == 0 { (all[2], all[1]) } else { (all[1], all[2]) };
            for k in 0..60usize {
                // The newest bytes are copied, and no others.
                let stamp = (round * 100 + k) as u64;
                own.set(&stamp.to_le_bytes());
                if k % 20 == 0 {
                    copy_now(from + at as u64, own_ga, 8);
                    copy_now(to + at as u64 + n as u64, own_ga, 8);
                }
                copy_now(to + at as u64, from + at as u64, n);
                if k % 20 == 0 {
                    copy_now(own_ga + 64, to + at as u64, n + 8);
                    let got = own.get(n + 72);
                    assert_eq!(got[64..72], stamp.to_le_bytes());
                    assert_eq!(got[64 + n..], stamp.to_le_bytes(), "behind {n} bytes");
                }
            }
            own.set(&vec![0; n + 64]);
            copy_now(own_ga, to + at as u64, n);
            copy_now(own_ga + HALF as u64, from + at as u64, n);
            let got = own.get(HALF + n);
            assert!(got[..n] == got[HALF..], "{n} bytes");
        }
        complete(fetch8(Op::Add, own_ga, done, 1, 0, NOW));
    } else if std::env::var("COMPUTES").is_ok() {
        while me == 1 && starter_words()[1].load(std::sync::atomic::Ordering::Acquire) < 2 {
            std::hint::spin_loop();
        }
    }
    sync();
    finalize();
}

/// Who may map one rank at a time uses two by turns, whose owners do it: what was mapped before is unmapped.
pub fn by_turns() {
    for way in ["", "FMPL_CMA=off", "FMPL_WAIT=block"] {
        Job::new(3, "turns").settings("FMPL_RMA_PEERS=1").settings(way).run();
    }
}

pub fn turns() {
    init();
    let (me, size) = (rank() as usize, procs() as usize);
    let memory = Memory::new(Kind::Private, 4096);
    let all = exchange(0, register(memory.ptr(), 4096).1);
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let before = maps();
    for n in 0..1000 {
        let other = (me + 1 + n % 2) % size;
        complete(fetch8(Op::Add, starter(me as i32), all[other], 1, 0, NOW));
    }
    sync();
    let behind = maps();
    assert!(behind < before + 100, "{behind} mappings, {before} before");
    assert_eq!(memory.word(0).load(std::sync::atomic::Ordering::Acquire), 1000);
    finalize();
}
