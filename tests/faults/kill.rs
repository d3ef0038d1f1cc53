use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, long, said, story};
use fmpl::ffi::c::fmpl_irecv_any_test;
use fmpl::launch::embedded::End;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count())
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").map_or(0, |m| m.lines().filter(|l| l.contains("memfd:")).count())
}

/// Random traffic with everybody until somebody dies; then: errors from the dead one only, and the survivors go on.
pub fn traffic() {
    let before = (descriptors(), mappings());
    // A death that comes before all have met is an error of init, and names who died.
    let code = try_init(64);
    if code != 0 {
        assert!(code == PEER && last_error().contains("rank "), "code {code}: {}", last_error());
        println!("{BEFORE_THE_START}");
        return;
    }
    let (me, ranks) = (rank(), size());
    let number: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let mut draw = Draw(number);
    let most = [16, 2000, 100_000, 3_000_000][draw.below(4)];
    let data = vec![me as u8; most];
    let mut buf = vec![0u8; most];
    let mut dead = None;
    // All pairs in the same order, over and over. Who dies is told by the first error.
    'traffic: for round in 0.. {
        for low in 0..ranks {
            for high in low + 1..ranks {
                if low != me && high != me {
                    continue;
                }
                let peer = low + high - me;
                let len = Draw(number ^ (round * 977 + (low * 31 + high) as u64)).size(most);
                let index = (round % 5) as i32;
                let since = Instant::now();
                let mut codes = [0; 2];
                match round % 4 {
                    0 if me == low => codes[0] = try_send(&data[..len], peer, index),
                    0 => codes[0] = try_recv(&mut buf[..len], peer, index),
                    1 if me == high => codes[0] = try_send(&data[..len], peer, index),
                    1 => codes[0] = try_recv(&mut buf[..len], peer, index),
                    _ => {
                        codes[0] = try_irecv(&mut buf[..len], peer, index + 10);
                        codes[1] = try_isend(&data[..len], peer, index + 10);
                        if codes[1] == 0 {
                            codes[1] = try_isend_wait(peer, index + 10);
                        }
                        if codes[0] == 0 {
                            codes[0] = try_irecv_wait(peer, index + 10);
                        }
                    }
                }
                for code in codes.into_iter().filter(|c| *c != 0) {
                    let text = last_error();
                    assert!(code == PEER && text.contains(&format!("rank {peer} ")), "code {code}: {text}");
                    dead = Some(peer);
                    println!("error {peer} {:.3}", since.elapsed().as_secs_f64());
                }
                if dead.is_some() {
                    break 'traffic;
                }
            }
        }
    }
    let dead = dead.unwrap();
    // Whoever waits for the dead one from now on hears at once; who waits for a survivor that has found out meanwhile must be
    // released, so all survivors meet here, pair by pair, on an index that traffic did not use.
    let since = Instant::now();
    fails(try_recv(&mut buf[..8], dead, 40), PEER);
    fails(try_send(&vec![0; 500_000], dead, 40), PEER);
    fails(try_irecv(&mut buf[..8], dead, 41).max(try_irecv_wait(dead, 41)), PEER);
    println!("again {:.3}", since.elapsed().as_secs_f64());
    // Some may still hang in traffic with this rank: what they wait for is sent, what they send is taken, until all answer.
    let others: Vec<i32> = (0..ranks).filter(|r| *r != me && *r != dead).collect();
    let (out, mut inn) = (vec![me as u8; 20_000], vec![vec![0; 20_000]; ranks as usize]);
    for other in &others {
        isend(&out, *other, 50);
        irecv(&mut inn[*other as usize], *other, 50);
    }
    let since = Instant::now();
    let mut junk = vec![0; most];
    let mut waiting = others.clone();
    while !waiting.is_empty() {
        assert!(since.elapsed() < Duration::from_secs(20), "ranks {waiting:?} do not come");
        waiting.retain(|other| {
            for index in (0..5).chain(10..15) {
                if probe(*other, index).is_some() {
                    let _ = try_recv(&mut junk, *other, index);
                }
            }
            help(*other, &data);
            !irecv_test(*other, 50)
        });
        std::thread::yield_now();
    }
    for other in &others {
        assert!(inn[*other as usize].iter().all(|b| *b == *other as u8));
        isend_wait(*other, 50);
    }
    println!("met");
    let code = try_finalize();
    assert!(code == 0 || code == PEER || code == PENDING, "finalize: {code} {}", last_error());
    let after = (descriptors(), mappings());
    // The launcher's connection closes with finalize.
    assert!(
        after.0 <= before.0 && after.1 == 0,
        "descriptors {} then {}, memory of peers {}",
        before.0,
        after.0,
        after.1
    );
    println!("well");
}

/// Sends what a peer may wait for that is one message behind in the traffic.
fn help(other: i32, data: &[u8]) {
    for index in (0..5).chain(10..15) {
        // One message of no bytes for each index is enough; more find the spool.
        thread_local!(static HELPED: std::cell::RefCell<std::collections::HashSet<(i32, i32)>> = Default::default());
        if HELPED.with(|h| h.borrow_mut().insert((other, index))) {
            let code = try_send(&data[..0], other, index);
            assert!(code == 0 || code == PEER || code == BUSY, "{code} {}", last_error());
        }
    }
}

/// Does a name in a directory of temporary files say which process it is of, and does that live? It is not what a dead one has left.
fn is_in_use(name: &str) -> bool {
    let pid = name.rsplit(['-', '.']).find_map(|word| word.parse::<u32>().ok());
    pid.is_some_and(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists())
}

/// What jobs have left in the places where they keep something, by its path.
pub fn litter() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for dir in ["/dev/shm", "/tmp"] {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // What the scripts of the tests keep there while they run belongs to another job than this one.
            let of_tests = name.starts_with("fmpl-rig.") || name.starts_with("fmpl-tests.");
            if name.to_lowercase().contains("fmpl") && !of_tests && !is_in_use(&name) {
                all.insert(format!("{dir}/{name}"));
            }
        }
    }
    all
}

/// What a survivor says whose init came to nothing.
const BEFORE_THE_START: &str = "a rank died before all had met";

pub fn killed_in_traffic() {
    let times = if long() { 100 } else { 20 };
    let mut draw = Draw(std::process::id() as u64);
    let (mut slowest, mut early, before) = (0.0f64, 0, litter());
    for round in 0..times {
        let ranks = 2 + draw.below(3);
        let seed = draw.number() % 100_000;
        let settings =
            ["FMPL_SHM_PATH=auto", "FMPL_WAIT=block", "FMPL_CMA=off", "FMPL_SHM_PATH=coop", "FMPL_SHM_PATH=ring"]
                [round % 5];
        let job = Job::new(ranks, "traffic").env("SEED", seed).settings(settings).seconds(40).keep_going();
        let running = job.launcher().start().unwrap();
        let pids = running.pids();
        let victim = draw.below(ranks);
        let pid = pids[victim];
        let wait = Duration::from_micros(20_000 + draw.below(120_000) as u64);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            // SAFETY: no memory; the pid is the rank's until the job has ended. If it has, the outcome tells what went wrong.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        let outcome = running.wait();
        killer.join().unwrap();
        let what =
            format!("round {round}: {ranks} ranks, seed {seed}, {settings}, rank {victim} killed after {wait:?}");
        assert!(matches!(outcome.ends[victim], End::Signal { signal: 9, .. }), "{what}: {}", story(&outcome));
        for survivor in (0..ranks).filter(|r| *r != victim) {
            let text = said(&outcome, survivor);
            if text.contains(BEFORE_THE_START) {
                early += 1;
                continue;
            }
            assert!(outcome.ends[survivor] == End::Exit(0), "{what}: rank {survivor}: {}", story(&outcome));
            for line in text.lines().filter(|l| l.starts_with("error") || l.starts_with("again")) {
                let seconds: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
                slowest = slowest.max(seconds);
                assert!(
                    !line.starts_with("error") || line.split(' ').nth(1) == Some(&victim.to_string()),
                    "{what}: {line}"
                );
            }
            assert!(text.contains("met\n") && text.contains("well\n"), "{what}: {text}");
        }
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{what}: process {pid} is left");
        }
    }
    assert_eq!(litter(), before, "files are left behind");
    println!(
        "  {times} ranks killed, {early} survivors heard of it in init; the slowest error came {slowest:.3} s after the call began"
    );
}

/// Sends, and dies without finalize: what was sent is received, and what was not is an error.
pub fn speaks_and_dies() {
    init(16);
    let data = vec![7u8; 300_000];
    if rank() == 0 {
        sendbuf_set(16 << 20, 1);
        send(&data[..8], 1, 0);
        send(&data[..500], 1, 1);
        send(&data[..9000], 1, 2);
        send(&data, 1, 3);
        (0..10).for_each(|k| send(&data[..k * 50], 1, 4));
        barrier();
        sleep_ms(20);
        // SAFETY: no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let mut buf = vec![0u8; 300_000];
    let mut posted = vec![0u8; 100];
    irecv(&mut posted, 0, 5);
    barrier();
    // Until the death is known here.
    fails(try_irecv_wait(0, 5), PEER);
    for (index, len) in [(0, 8), (1, 500), (2, 9000), (3, 300_000)] {
        buf.fill(0);
        recv(&mut buf, 0, index);
        assert_eq!(received(0, index), (len, index));
        assert!(buf[..len].iter().all(|b| *b == 7) && buf[len..].iter().all(|b| *b == 0));
    }
    for k in 0..10 {
        recv(&mut buf, 0, 4);
        assert_eq!(received(0, 4).0, k * 50);
    }
    fails(try_recv(&mut buf, 0, 4), PEER);
    fails(try_recv(&mut buf, 0, ANY), PEER);
    assert!(!irecv_fails_late());
    println!("well");
    fails(try_finalize(), PEER);
}

/// A request begun after the death ends with an error too, by test.
fn irecv_fails_late() -> bool {
    let mut buf = [0; 8];
    if try_irecv(&mut buf, 0, 9) != 0 {
        return false;
    }
    let mut done = 0;
    fmpl::ffi::c::fmpl_irecv_test(0, 9, WORLD, (&mut done).into()) == 0
}

pub fn last_words() {
    for settings in ["FMPL_SHM_PATH=auto", "FMPL_CMA=off", "FMPL_SHM_PATH=spool", "FMPL_WAIT=block"] {
        let outcome = Job::new(2, "speaks and dies").settings(settings).keep_going().outcome();
        assert!(said(&outcome, 1).contains("well"), "{settings}: {}\n{}", story(&outcome), complaints(&outcome));
    }
}

/// Dies between the landing of a message and its split line, as a killed sender may; what it leaves is written here by hand.
pub fn dies_in_a_message() {
    use fmpl::lane::record::{Kind, Land};
    init(16);
    let ep = fmpl::p2p::endpoint::endpoint().unwrap();
    let lane = ep.lane(1 - rank() as u32).unwrap();
    let index = 3 + fmpl::lane::map::SYSTEM_INDICES;
    let mut buf = [0u8; 64];
    let request = std::env::var_os("REQUEST").is_some();
    if rank() == 1 && request {
        irecv(&mut buf, 0, 3);
    }
    barrier();
    if rank() == 0 {
        lane.sending(index).0.publish(Land::new(1, 0, Kind::Split, 40, lane.epoch));
        sleep_ms(50);
        // SAFETY: no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    sleep_ms(10);
    if request {
        while !tested_dead() {}
    } else {
        fails(try_recv(&mut buf, 0, 3), PEER);
    }
    assert!(last_error().contains("rank 0 has died"), "{}", last_error());
    println!("well");
    fails(try_finalize(), PEER);
}

fn tested_dead() -> bool {
    let mut done = 0;
    fmpl::ffi::c::fmpl_irecv_test(0, 3, WORLD, (&mut done).into()) == PEER
}

pub fn half_a_message() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=spin", "FMPL_WAIT=block", "REQUEST=1"] {
        let outcome = Job::new(2, "dies in a message").settings(settings).seconds(10).keep_going().outcome();
        assert!(said(&outcome, 1).contains("well"), "{settings}: {}\n{}", story(&outcome), complaints(&outcome));
    }
}

/// Becomes another program, which does not end by itself, in the process that the others know.
pub fn executes_another_program() {
    init(16);
    if rank() == 0 {
        // SAFETY: no memory.
        let pid = unsafe { libc::getpid() };
        send(&pid.to_ne_bytes(), 1, 0);
        send(&[7; 300_000], 1, 1);
        barrier();
        use std::os::unix::process::CommandExt;
        panic!("{}", std::process::Command::new("sleep").arg("1000").exec());
    }
    let (mut pid, mut buf, mut posted) = ([0; 4], vec![0u8; 300_000], [0; 8]);
    irecv(&mut posted, 0, 2);
    recv(&mut pid, 0, 0);
    barrier();
    fails(try_irecv_wait(0, 2), PEER);
    assert!(last_error().contains("rank 0 has died"), "{}", last_error());
    recv(&mut buf, 0, 1);
    assert!(buf.iter().all(|b| *b == 7));
    fails(try_send(&buf, 0, 3), PEER);
    println!("well");
    fails(try_finalize(), PEER);
    // SAFETY: no memory; it is alive, so the number is still its own.
    unsafe { libc::kill(i32::from_ne_bytes(pid), libc::SIGKILL) };
}

pub fn another_program() {
    for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=spin", "FMPL_WAIT=block"] {
        let outcome = Job::new(2, "executes another program").settings(settings).seconds(20).keep_going().outcome();
        assert!(said(&outcome, 1).contains("well"), "{settings}: {}\n{}", story(&outcome), complaints(&outcome));
    }
}

/// Rank 0 tests for a message of any source and never waits; rank 2, which has never said a word to anybody, dies.
pub fn tests_for_any_source() {
    init(8);
    let mut got = [0; 8];
    match rank() {
        0 => {
            irecv_any(&mut got, 0);
            let text = loop {
                let (mut done, mut src, mut len) = (-1, -1, 0);
                let code = fmpl_irecv_any_test(0, WORLD, (&mut done).into(), (&mut src).into(), (&mut len).into());
                if code != 0 {
                    fails(code, PEER);
                    break last_error();
                }
                assert_eq!(done, 0, "nobody has sent anything");
                std::thread::yield_now();
            };
            assert!(text.contains("rank 2 has died"), "{text}");
            // It goes on with what the others send.
            send(&[1; 8], 1, 1);
            irecv_any(&mut got, 0);
            while irecv_any_test(0).is_none() {
                std::thread::yield_now();
            }
            assert_eq!(got, [5; 8]);
            println!("told");
        }
        1 => {
            recv(&mut got, 0, 1);
            send_any(&[5; 8], 0, 0);
        }
        _ => {
            sleep_ms(500);
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
    // Who knows of the death cannot finalize well.
    try_finalize();
}

pub fn tested_for() {
    let outcome = Job::new(3, "tests for any source").seconds(60).keep_going().outcome();
    assert!(said(&outcome, 0).contains("told"), "{}\n{}", story(&outcome), complaints(&outcome));
}
