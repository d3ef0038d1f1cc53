use crate::ranks::bytes::{check, message, seed};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, long};
use fmpl::ffi::c::*;

pub fn ten_thousand() {
    Job::new(3, "makes and frees").env("TIMES", if long() { 100_000 } else { 10_000 }).seconds(900).run();
    Job::new(4, "makes and frees").settings("TIMES=300 FMPL_WAIT=block").run();
}

/// What peers on other nodes wrote into is there until both sides have freed the communicator, and no longer.
pub fn between_nodes() {
    let job = || Job::new(3, "makes and frees").env("TIMES", if long() { 20_000 } else { 1000 }).seconds(900);
    job().nodes(Nodes::Cyclic(3)).settings("FMPL_NETWORK=tcp").run();
    job().nodes(Nodes::Cyclic(2)).settings("FMPL_NETWORK=udp").run();
}

pub fn hundreds() {
    Job::new(4, "keeps hundreds").run();
}

pub fn all_places() {
    Job::new(2, "takes all places").run();
}

pub fn successors() {
    for settings in ["", "FMPL_SHM_PATH=spool", "FMPL_CMA=off FMPL_WAIT=block"] {
        Job::new(3, "leaves messages").settings(settings).run();
    }
}

/// What this process takes: (proportional bytes, descriptors, mappings).
fn takes() -> (usize, usize, usize) {
    let smaps = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let pss =
        smaps.lines().find_map(|l| l.strip_prefix("Pss:")).and_then(|l| l.split_whitespace().next()?.parse().ok());
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count());
    let mappings = std::fs::read_to_string("/proc/self/maps").map_or(0, |m| m.lines().count());
    (pss.unwrap_or(0usize) << 10, descriptors, mappings)
}

/// One communicator of each kind, used and freed.
fn one_round(turn: i32) {
    let me = rank();
    let made = match turn % 4 {
        0 => create(0),
        1 => split(WORLD, me % 2, -me),
        2 => dup(WORLD),
        _ => create(if me == turn % 3 { -1 } else { 2 }),
    };
    if made == NULL {
        return;
    }
    on(made);
    let (next, last) = ((rank() + 1) % size(), (rank() + size() - 1) % size());
    let len = [8, 100, 3000, 9000][turn as usize / 4 % 4];
    let (sent, mut got) = (message(len, seed(rank(), next, 1, turn as u64)), vec![0; len]);
    sendrecv(&sent, next, 1, &mut got, last, 1);
    check(&got, seed(last, rank(), 1, turn as u64), "in a ring");
    // What a communicator has beside its lanes is made when it is first called for.
    match turn / 4 % 5 {
        1 => barrier(),
        2 => sums(),
        3 => all_to_the_first(),
        _ => {}
    }
    on(WORLD);
    free(made);
}

/// A sum over all ranks, of so many that it goes through the members' rings.
fn sums() {
    let mut v = vec![1.0f64; 900];
    // SAFETY: a vector of so many elements.
    ok(unsafe { fmpl_allreduce(v.as_mut_ptr().cast(), 900, Some(fmpl_dsum), comm(), std::ptr::null_mut()) });
    assert!(v.iter().all(|x| *x == size() as f64));
}

/// Everybody sends to the first rank, which receives from any and tells all by a multicast.
fn all_to_the_first() {
    let (me, n) = (rank(), size());
    let mut got = [0; 600];
    // SAFETY: memory that stays until the call returns; a word for up to 64 ranks.
    unsafe {
        if me != 0 {
            send_any(&[me as u8; 500], 0, 2);
            ok(fmpl_mcast_recv(got.as_mut_ptr().cast(), 600, comm(), Out::NULL, Out::NULL));
            assert_eq!(got[599], 7);
            return;
        }
        for _ in 1..n {
            assert_eq!(recv_any(&mut got, 2).1, 500);
        }
        let others = (1u64 << n) - 2;
        if others != 0 {
            ok(fmpl_mcast([7u8; 600].as_ptr().cast(), 600, &others, comm(), Out::NULL));
        }
    }
}

/// Everybody has met everybody: who waits long makes the acquaintance of whom it waits for, which is no growth.
fn meets_all() {
    let (me, n) = (rank(), size());
    for d in 1..n {
        sendrecv(&[1], (me + d) % n, 0, &mut [0], (me + n - d) % n, 0);
    }
}

pub fn makes_and_frees() {
    init(4);
    meets_all();
    let times: i32 = std::env::var("TIMES").unwrap().parse().unwrap();
    for turn in 0..200 {
        one_round(turn);
    }
    barrier();
    // What leaks, leaks in every stretch of the way. A page of the spool that a late receiver needed once, or of a table of handles,
    // comes in one of them.
    let before = takes();
    let mut seen = vec![before];
    for stretch in 0..10 {
        for turn in 0..times / 10 {
            one_round(stretch * (times / 10) + turn);
        }
        barrier();
        seen.push(takes());
    }
    let after = seen[10];
    let mut grown: Vec<isize> = seen.windows(2).map(|w| w[1].0 as isize - w[0].0 as isize).collect();
    grown.sort_unstable();
    assert!(grown[5] < 24 << 10, "memory: {seen:?}");
    assert!(after.0 < before.0 + (8 << 20), "memory: {seen:?}");
    assert_eq!(after.1, before.1, "descriptors: {before:?}, then {after:?}");
    assert!(after.2 <= before.2 + 4, "mappings: {before:?}, then {after:?}");
    finalize();
}

pub fn keeps_hundreds() {
    init(4);
    meets_all();
    let me = rank();
    (0..8).for_each(one_round);
    barrier();
    let before = takes();
    let mut comms = Vec::new();
    for k in 0..500 {
        let comm = create(if k % 7 == me { -1 } else { me * (k % 3) / 2 });
        if comm != NULL {
            comms.push(comm);
        }
    }
    let distinct: std::collections::BTreeSet<i32> = comms.iter().copied().collect();
    assert_eq!(distinct.len(), comms.len());
    let unused = takes();
    assert!(unused.0 < before.0 + comms.len() * 1024, "{} unused ones: {before:?}, then {unused:?}", comms.len());
    for turn in 0..2 {
        for comm in &comms {
            on(*comm);
            let (next, last) = ((rank() + 1) % size(), (rank() + size() - 1) % size());
            send(&message(16, seed(rank(), next, 0, turn)), next, 0);
            let mut got = [0; 16];
            recv(&mut got, last, 0);
            check(&got, seed(last, rank(), 0, turn), "one of hundreds");
        }
        on(WORLD);
        barrier();
    }
    let used = takes();
    // Two lanes each at most: half of a shared page, a page of its own, and what says where they are.
    assert!(used.0 < unused.0 + comms.len() * 2 * 10_000, "{} used ones: {unused:?}, then {used:?}", comms.len());
    for comm in comms {
        free(comm);
    }
    barrier();
    let after = takes();
    assert!(after.0 < before.0 + (1 << 20), "{before:?}, then {after:?}");
    assert_eq!(after.1, before.1);
    finalize();
}

/// As many as there can be, and one more.
pub fn takes_all_places() {
    init(4);
    let all: Vec<i32> = (0..4095).map(|_| dup(WORLD)).collect();
    let mut one_more = NULL;
    fails(fmpl_comm_dup(WORLD, (&mut one_more).into()), MEMORY);
    let error = last_error();
    assert!(error.contains("no room for one more communicator (at most 4095 at a time)"), "{error}");
    all.into_iter().for_each(free);
    free(dup(WORLD));
    finalize();
}

/// Two of three ranks free a communicator into which the third one goes on sending, and make another where it lay.
pub fn is_sent_to_when_freed() {
    init(4);
    let me = rank();
    // Where a communicator lies follows from the number of the one that it is made from: two numbers so far apart lead to one place.
    let pair = split(WORLD, if me < 2 { 0 } else { -1 }, 0);
    for _ in 0..511 {
        free(dup(WORLD));
    }
    let all = dup(WORLD);
    for turn in 0..20u64 {
        let first = dup(all);
        on(first);
        if me == 2 {
            send_any(&[0xee; 100], 0, 1);
        } else if me == 0 {
            assert_eq!(recv_any(&mut [0; 200], 1), (2, 100));
        }
        on(WORLD);
        barrier();
        if me == 2 {
            // The others have freed it, or will have at any moment.
            on(first);
            mode(0);
            for k in 0..400usize {
                try_send_any(&vec![0xee; 40 + k], 0, (k % 2) as i32);
            }
            mode(10);
            on(WORLD);
        } else {
            free(first);
            let second = dup(pair);
            on(second);
            for k in 0..400usize {
                let len = 8 + k * 7 % 900;
                if me == 1 {
                    send_any(&message(len, turn * 1000 + k as u64), 0, 1);
                } else {
                    let mut got = vec![0; 1000];
                    assert_eq!(recv_any(&mut got, 1), (1, len), "turn {turn}, message {k}");
                    check(&got[..len], turn * 1000 + k as u64, "in the one made after");
                }
            }
            on(WORLD);
            free(second);
        }
        barrier();
        if me == 2 {
            free(first);
        }
    }
    free(all);
    finalize();
}

/// Messages that nobody receives before the communicator is freed: by every way that a message can wait, on every index.
pub fn leaves_messages() {
    init(8);
    let me = rank();
    let (next, last) = ((me + 1) % 3, (me + 2) % 3);
    for turn in 0..40u64 {
        let first = dup(WORLD);
        on(first);
        mode(0);
        for (index, len) in [8usize, 40, 900, 3000, 20_000, 8, 8].into_iter().enumerate() {
            // Several on one index, so that there is a chain.
            for _ in 0..1 + turn % 4 {
                send(&vec![0xee; len], next, index as i32);
            }
        }
        // One is received by half of the ranks, which so have opened their side; another begins a receive and withdraws it.
        if turn % 2 == me as u64 % 2 {
            let mut buf = [0; 8];
            recv(&mut buf, last, 0);
            let mut late = vec![0; 9000];
            irecv(&mut late, last, 7);
            assert!(cancel(last, 7));
        }
        on(WORLD);
        // All has been sent, and nobody waits for anything.
        barrier();
        free(first);
        let second = split(WORLD, 0, if turn % 2 == 0 { me } else { -me });
        on(second);
        let (next, last) = ((rank() + 1) % 3, (rank() + 2) % 3);
        for index in 0..8 {
            assert_eq!(probe(last, index), None, "turn {turn}, index {index}");
        }
        assert_eq!(probe(last, ANY), None, "turn {turn}");
        barrier();
        for (index, len) in [3000usize, 8, 20_000, 40, 8, 900, 100_000].into_iter().enumerate() {
            let mut got = vec![0; len];
            irecv(&mut got, last, index as i32);
            send(&message(len, seed(rank(), next, index as i32, turn)), next, index as i32);
            irecv_wait(last, index as i32);
            assert_eq!(received(last, index as i32).0, len);
            check(&got, seed(last, rank(), index as i32, turn), "in the successor");
        }
        on(WORLD);
        free(second);
    }
    // What was spooled for nobody is given back: far more than the spool holds has been left by now.
    on(WORLD);
    sendbuf_set(1 << 20, 0);
    for _ in 0..30 {
        let comm = dup(WORLD);
        on(comm);
        for index in 0..6 {
            send(&vec![1; 50_000], next, index);
        }
        on(WORLD);
        barrier();
        free(comm);
    }
    finalize();
}

pub fn late() {
    Job::new(3, "is sent to when freed").seconds(60).run();
}
