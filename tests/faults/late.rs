//! A peer that is stopped for longer than every time-out, at any moment, is late and not dead: when it goes on, so does the job. Many that are late
//! are waited for at the same time.

use crate::ranks::bytes::{check, message};
use crate::ranks::calls::*;
use crate::ranks::{Job, Nodes, complaints, long, said, story};
use fmpl::ffi::acp::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When rank 1 stops itself.
const MOMENTS: [&str; 8] =
    ["before first contact", "traffic", "long message", "barrier", "any source", "global memory", "split", "finalize"];

/// Behind nothing: it starts when it is issued.
const AT_ONCE: acp_handle_t = ACP_HANDLE_NULL as acp_handle_t;

fn stop_myself() {
    // SAFETY: no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

pub fn is_stopped_for_long() {
    let moment = std::env::var("MOMENT").unwrap();
    let at = |name: &str| moment == name;
    let global = at("global memory");
    init(16);
    if global {
        assert_eq!(acp_init(std::ptr::null_mut(), std::ptr::null_mut()), 0);
    }
    let (me, other) = (rank(), other());
    let stops = |here: &str| {
        if me == 1 && at(here) {
            stop_myself();
        }
    };
    stops("before first contact");
    if at("before first contact") && me == 0 {
        // Until the other has stopped.
        sleep_ms(300);
    }
    for round in 0..100 {
        if round == 50 {
            stops("traffic");
        }
        let mut b = [0; 600];
        sendrecv(&[round; 600], other, 0, &mut b, other, 0);
        assert!(b.iter().all(|b| *b == round));
    }
    stops("long message");
    let (data, mut buf) = (message(1 << 20, me as u64), vec![0; 1 << 20]);
    sendrecv(&data, other, 1, &mut buf, other, 1);
    check(&buf, other as u64, "around a stop");
    for round in 0..20 {
        if round == 10 {
            stops("barrier");
        }
        barrier();
    }
    if me == 0 {
        (0..200).for_each(|k| send_any(&[k; 3000], 1, 2));
    } else {
        stops("any source");
        for k in 0..200 {
            let mut b = [0; 3000];
            assert_eq!(recv_any(&mut b, 2), (0, 3000));
            assert!(b.iter().all(|b| *b == k));
        }
    }
    if global {
        copies_around_a_stop(stops);
    }
    stops("split");
    let part = split(WORLD, 0, -me);
    on(part);
    barrier();
    on(WORLD);
    free(part);
    stops("finalize");
    if global {
        // SAFETY: nothing is used any more.
        assert_eq!(unsafe { acp_finalize() }, 0);
    }
    finalize();
    println!("well");
}

/// Rank 0 writes into the other's memory and reads it back, while that one is stopped.
fn copies_around_a_stop(stops: impl Fn(&str)) {
    // SAFETY: the starter memories are the library's; so many bytes are there.
    unsafe {
        let me = acp_rank();
        let (mine, theirs) = (acp_query_starter_ga(me), acp_query_starter_ga(1 - me));
        acp_sync();
        stops("global memory");
        if me == 0 {
            let words = acp_query_address(mine).cast::<u64>();
            for round in 1..50u64 {
                words.write_volatile(round);
                acp_complete(acp_copy(theirs + 8, mine, 8, AT_ONCE));
                acp_complete(acp_copy(mine + 16, theirs + 8, 8, AT_ONCE));
                assert_eq!(words.add(2).read_volatile(), round);
            }
        }
        acp_sync();
    }
}

/// Is a process stopped?
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
}

pub fn stopped_for_long() {
    let stop = Duration::from_millis(if long() { 5000 } else { 900 });
    for moment in MOMENTS {
        for settings in ["FMPL_WAIT=adaptive", "FMPL_WAIT=block FMPL_CMA=off"] {
            let job = Job::new(2, "is stopped for long").env("MOMENT", moment).settings(settings).seconds(60);
            let job = job.settings("FMPL_ATTACH_TIMEOUT=0.2 FMPL_STALL=0.3 FMPL_TIMEOUT=1");
            let running = job.launcher().start().unwrap();
            let (pid, over, began) = (running.pids()[1], AtomicBool::new(false), Instant::now());
            let (outcome, stopped) = std::thread::scope(|scope| {
                let waker = scope.spawn(|| {
                    while !is_stopped(pid) && !over.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let stopped = is_stopped(pid);
                    std::thread::sleep(stop);
                    // SAFETY: no memory; the pid is the rank's until the job has been waited for, and that it does not do before this.
                    unsafe { libc::kill(pid, libc::SIGCONT) };
                    stopped
                });
                let outcome = running.wait();
                over.store(true, Ordering::Release);
                (outcome, waker.join().unwrap())
            });
            let what = format!("stopped in {moment}, {settings}");
            assert!(outcome.code == 0, "{what}: {}", story(&outcome));
            assert!(stopped && began.elapsed() >= stop, "{what}: it never stopped");
            let words = complaints(&outcome);
            assert!(!words.contains("has died"), "{what}: {words}");
            if moment == "before first contact" {
                assert!(words.contains("in the first contact with rank 1"), "{what}: {words}");
            }
        }
    }
    println!("  stopped for {:.1} s in: {}; every job went on", stop.as_secs_f64(), MOMENTS.join(", "));
}

/// The peers go on after so long if rank 0 is not done before: less than it takes to wait for one after the other.
const STOPPED_FOR: Duration = Duration::from_secs(25);

fn signal(pid: i32, signal: i32) {
    // SAFETY: no memory; the pids are the ranks' until the job is over.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// The processes of these peers, as each says after a message.
fn pids(peers: std::ops::Range<i32>) -> Vec<i32> {
    let mut got = [0; 8];
    let ask = |peer| {
        send(&[1; 8], peer, 0);
        recv(&mut got, peer, 0);
        u64::from_ne_bytes(got) as i32
    };
    peers.map(ask).collect()
}

/// Stops these processes until that is done, or for [`STOPPED_FOR`]: then it is told that they have gone on.
fn while_stopped(late: &[i32], does: impl FnOnce(&AtomicBool)) {
    late.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
    while !late.iter().all(|pid| is_stopped(*pid)) {
        sleep_ms(1);
    }
    let (went_on, (done, is_done)) = (&AtomicBool::new(false), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            went_on.store(is_done.recv_timeout(STOPPED_FOR).is_err(), Ordering::Release);
            late.iter().for_each(|pid| signal(*pid, libc::SIGCONT));
        });
        does(went_on);
        done.send(()).expect("the thread waits for it");
    });
}

/// Ranks 0 and 8 on one node, seven others on nodes of their own, with which rank 0 has lanes, but few of them are connected. They are stopped, and 8
/// dies: rank 0 waits no longer for all whom it tells of that than for one, and none of them has gone on before.
pub fn tells_many_late() {
    init(1);
    let (own, mut got) = (dup(WORLD), [0; 8]);
    on(own);
    if rank() != 0 {
        recv(&mut got, 0, 0);
        send(&u64::from(std::process::id()).to_ne_bytes(), 0, 0);
        // Somewhere in here this process is stopped, or killed.
        recv(&mut got, 0, 0);
        assert_eq!(fmpl::ffi::c::fmpl_barrier(own), PEER, "{}", last_error());
    } else {
        let pids = pids(1..9);
        let (late, victim) = (&pids[..7], pids[7]);
        while_stopped(late, |went_on| {
            signal(victim, libc::SIGKILL);
            let since = Instant::now();
            fails(fmpl::ffi::c::fmpl_barrier(own), PEER);
            let text = last_error();
            assert!(text.contains("rank 8 has died"), "{text}");
            assert!(!went_on.load(Ordering::Acquire), "it waits for one after the other");
            println!("told after {:.1} s", since.elapsed().as_secs_f64());
        });
        // Whoever has just gone on may be late until it is heard: then nothing was sent.
        for peer in 1..8 {
            while try_send(&[1; 8], peer, 0) != 0 {
                sleep_ms(10);
            }
        }
    }
    println!("well");
    let _ = try_finalize();
}

/// Rank 0 has exchanged messages with the four others, each on a node of its own, for whom there are two connections: the last two have them. All but
/// the first are stopped. What rank 0 sends to each of these is an error before they go on; what it sends to the first is received.
pub fn sends_to_many_late() {
    init(1);
    let (mut got, long) = ([0; 8], vec![7; 300_000]);
    if rank() == 0 {
        let pids = pids(1..5);
        let late = &pids[1..];
        while_stopped(late, |went_on| {
            for peer in 2..5 {
                let since = Instant::now();
                fails(try_send(&long, peer, 0), PEER);
                let text = last_error();
                assert!(text.contains(&format!("rank {peer} ")) && text.contains("did not answer"), "{text}");
                println!("rank {peer} is late after {:.1} s", since.elapsed().as_secs_f64());
            }
            send(&long, 1, 0);
            recv(&mut got, 1, 0);
            assert!(!went_on.load(Ordering::Acquire), "it waits until they go on");
        });
    } else {
        recv(&mut got, 0, 0);
        send(&u64::from(std::process::id()).to_ne_bytes(), 0, 0);
        if rank() == 1 {
            let mut came = vec![0; long.len()];
            recv(&mut came, 0, 0);
            assert!(came == long);
            send(&[1; 8], 0, 0);
        }
        // Until all have gone on: whoever has finalized gives its connections up.
        sleep_ms(500);
    }
    println!("well");
    let _ = try_finalize();
}

pub fn few_places() {
    let job = Job::new(5, "sends to many late").nodes(Nodes::Cyclic(5)).settings("FMPL_NETWORK=tcp FMPL_TIMEOUT=-1");
    let outcome = job.settings("FMPL_ATTACH_TIMEOUT=3").env("FMPL_QUEUE_PAIRS", 2).keep_going().seconds(80).outcome();
    assert!((0..5).all(|rank| said(&outcome, rank).contains("well")), "{}", story(&outcome));
    print!(
        "{}",
        said(&outcome, 0).lines().filter(|l| l.contains("late")).map(|l| format!("  {l}\n")).collect::<String>()
    );
}

pub fn many_late() {
    let job = Job::new(9, "tells many late").nodes(Nodes::Cyclic(8)).settings("FMPL_NETWORK=tcp FMPL_ATTACH_TIMEOUT=4");
    let outcome = job.env("FMPL_QUEUE_PAIRS", 2).keep_going().seconds(80).outcome();
    assert!((0..8).all(|rank| said(&outcome, rank).contains("well")), "{}", story(&outcome));
    println!("  {}", said(&outcome, 0).lines().next().unwrap_or_default());
}
