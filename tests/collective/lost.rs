use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, long, said, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::{End, Nodes, Outcome};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const CALLS: [&str; 28] = [
    "barrier",
    "bcast 8",
    "bcast 8000",
    "bcast 3000000",
    "reduce 8000",
    "reduce 3000000",
    "allreduce 8",
    "allreduce 3000000",
    "gather 2000",
    "gather 400000",
    "allgather 400000",
    "scatter 2000",
    "alltoall 2000",
    "alltoall 400000",
    "reduce_scatter 8000",
    "scan 300000",
    "exscan 300000",
    "gatherv 2000",
    "allgatherv 400000",
    "scatterv 400000",
    "alltoallv 2000",
    "ibcast 8000",
    "iallreduce 8000",
    "ireduce 8000",
    "ialltoall 2000",
    "several 8000",
    "neighbours 200000",
    "several 200000",
];

/// Tests until the call is over; its code.
fn completed(begun: i32, test: impl Fn(Out<i32>) -> i32) -> i32 {
    let (mut code, mut done) = (begun, 0);
    while code == 0 && done == 0 {
        code = test((&mut done).into());
        std::thread::yield_now();
    }
    code
}

/// One call of the kind; its code.
fn call(kind: &str, buf: &mut [u8], round: usize) -> i32 {
    let (name, bytes) = kind.split_once(' ').unwrap_or((kind, "0"));
    let bytes: usize = bytes.parse().unwrap();
    // Blocks for and from everybody have room for seven ranks.
    let (buf, other) = buf.split_at_mut(3_000_000);
    let other = other.as_ptr().cast();
    let (of_each, packed) = (vec![bytes; size() as usize], std::ptr::null());
    let sizes = of_each.as_ptr();
    let (p, count, root) = (buf.as_mut_ptr().cast(), (bytes / 8) as i32, (round % size() as usize) as i32);
    // SAFETY: the buffer has as many bytes.
    unsafe {
        match name {
            "barrier" => fmpl_barrier(WORLD),
            "bcast" => fmpl_bcast(p, bytes, root, WORLD),
            "gather" => fmpl_gather(other, bytes, p, root, WORLD),
            "allgather" => fmpl_allgather(other, bytes, p, WORLD),
            "scatter" => fmpl_scatter(other, bytes, p, root, WORLD),
            "alltoall" => fmpl_alltoall(other, bytes, p, WORLD),
            "reduce_scatter" => fmpl_reduce_scatter(other, p, count, Some(fmpl_dsum), WORLD),
            "scan" => fmpl_scan(p, count, Some(fmpl_dsum), WORLD),
            "exscan" => fmpl_exscan(p, count, Some(fmpl_dsum), WORLD),
            "gatherv" => fmpl_gatherv(other, bytes, p, sizes, packed, root, WORLD),
            "allgatherv" => fmpl_allgatherv(other, bytes, p, sizes, packed, WORLD),
            "scatterv" => fmpl_scatterv(other, sizes, packed, p, bytes, root, WORLD),
            "alltoallv" => fmpl_alltoallv(other, sizes, packed, p, sizes, packed, WORLD),
            "ibcast" => completed(fmpl_ibcast(p, bytes, root, WORLD), |done| fmpl_ibcast_test(WORLD, done)),
            "iallreduce" => completed(fmpl_iallreduce(p, count, Some(fmpl_dsum), WORLD, null_mut()), |done| {
                fmpl_iallreduce_test(WORLD, done)
            }),
            "ireduce" => completed(fmpl_ireduce(p, count, Some(fmpl_dsum), root, WORLD, null_mut()), |done| {
                fmpl_ireduce_test(WORLD, done)
            }),
            "ialltoall" => completed(fmpl_ialltoall(other, bytes, p, WORLD), |done| fmpl_ialltoall_test(WORLD, done)),
            "neighbours" => {
                let (dims, mut cart) = (size(), NULL);
                match fmpl_cart_create(WORLD, 1, &dims, &1, (&mut cart).into()) {
                    0 => {
                        let code = fmpl_neighbour_alltoall(other, bytes, p, cart);
                        free(cart);
                        code
                    }
                    code => code,
                }
            }
            "several" => crate::begun::some(bytes),
            "reduce" => fmpl_reduce(p, count, Some(fmpl_dsum), root, WORLD, null_mut()),
            _ => fmpl_allreduce(p, count, Some(fmpl_dsum), WORLD, null_mut()),
        }
    }
}

/// Makes the call over and over until a rank is lost: one that is killed from outside, or that dies before it meets anybody.
pub fn loses() {
    init(1);
    let kind = std::env::var("CALL").unwrap();
    let mut buf = vec![0u8; 6_000_000];
    match std::env::var("DIES_AT_ONCE") {
        // SAFETY: no memory.
        Ok(victim) if victim == rank().to_string() => _ = unsafe { libc::raise(libc::SIGKILL) },
        Ok(_) => {}
        Err(_) => barrier(),
    }
    println!("begun");
    for round in 0.. {
        let since = Instant::now();
        let code = call(&kind, &mut buf, round);
        if code != 0 {
            let text = last_error();
            assert!(code == PEER && text.contains("has died"), "code {code}: {text}");
            println!("error {:.3} {text}", since.elapsed().as_secs_f64());
            break;
        }
    }
    // The communicator stays broken, and says so at once; messages between the survivors go on.
    fails(fmpl_barrier_code(), PEER);
    fails(call("allreduce 8", &mut buf, 0), PEER);
    fails(call("several 8", &mut buf, 0), PEER);
    println!("well");
    let _ = try_finalize();
}

fn fmpl_barrier_code() -> i32 {
    fmpl_barrier(WORLD)
}

const SETTINGS: [&str; 5] =
    ["FMPL_LOG=warn", "FMPL_WAIT=block", "FMPL_CMA=off", "FMPL_COLL_NODES=2", "FMPL_COLL_NODES=16 FMPL_WAIT=block"];

/// Have all but the victim heard of its death? After how many seconds the last one has.
fn heard(outcome: &Outcome, victim: usize, met: bool, what: &str) -> f64 {
    assert!(matches!(outcome.ends[victim], End::Signal { signal: 9, .. }), "{what}: {}", story(outcome));
    let mut slowest = 0.0f64;
    for survivor in (0..outcome.ends.len()).filter(|r| *r != victim) {
        let text = said(outcome, survivor);
        if !text.contains("begun") {
            // Under load the kill may come before all have met, which is an error of init or of the first barrier.
            continue;
        }
        assert!(outcome.ends[survivor] == End::Exit(0) && text.contains("well"), "{what}: {}", story(outcome));
        let line = text.lines().find(|l| l.starts_with("error")).unwrap_or_else(|| panic!("{what}: {text}"));
        // Of one that nobody has met nobody can tell whether it has died, or left because of another's death: any of them may be named.
        let named = line.contains(&format!("rank {victim} has died")) || !met && line.contains("has died");
        assert!(named, "{what}: {line}");
        let seconds: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        slowest = slowest.max(seconds);
    }
    slowest
}

pub fn killed() {
    let mut draw = Draw(std::process::id() as u64);
    let mut slowest = 0.0f64;
    for round in 0..CALLS.len() * if long() { 10 } else { 1 } {
        let ranks = 2 + draw.below(4);
        let kind = CALLS[round % CALLS.len()];
        let settings = SETTINGS[draw.below(SETTINGS.len())];
        let job = Job::new(ranks, "loses").env("CALL", kind).settings(settings).seconds(40).keep_going();
        let running = job.launcher().start().unwrap();
        let pids = running.pids();
        let victim = draw.below(ranks);
        let wait = Duration::from_micros(80_000 + draw.below(100_000) as u64);
        let pid = pids[victim];
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            // SAFETY: no memory; the pid is the rank's until the job has ended.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        let outcome = running.wait();
        killer.join().unwrap();
        let what = format!("round {round}: {kind} on {ranks} ranks, {settings}, rank {victim} killed after {wait:?}");
        slowest = slowest.max(heard(&outcome, victim, true, &what));
    }
    println!("  the slowest error came {slowest:.3} s after its call began");
}

/// A rank that dies before anybody has met it: who waits for it, and who waits for those, hears of it all the same.
pub fn unmet() {
    let mut draw = Draw(std::process::id() as u64);
    let mut slowest = 0.0f64;
    for round in 0..CALLS.len() * if long() { 10 } else { 1 } {
        let (ranks, kind) = (2 + draw.below(6), CALLS[round % CALLS.len()]);
        let (victim, settings) = (draw.below(ranks), SETTINGS[draw.below(SETTINGS.len())]);
        let job = Job::new(ranks, "loses").env("CALL", kind).env("DIES_AT_ONCE", victim).settings(settings);
        let outcome = job.seconds(40).keep_going().outcome();
        let what = format!("round {round}: {kind} on {ranks} ranks, {settings}, rank {victim} dead at once");
        slowest = slowest.max(heard(&outcome, victim, false, &what));
    }
    println!("  the slowest error came {slowest:.3} s after its call began");
}

/// The function of rank 0, which combines something in every such call, panics there: the others are told so, on other nodes too.
pub fn panics() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    std::panic::set_hook(Box::new(|_| {}));
    let job = fmpl::init(1).unwrap();
    let world = job.world();
    let twin = world.duplicate().unwrap();
    // Which of the two breaks; the other one is looked at afterwards.
    let in_world = std::env::var_os("IN_WORLD").is_some();
    let second = twin.comm();
    let (own, other) = if in_world { (&world, &second) } else { (&second, &world) };
    let function = |a: f64, b: f64| if world.rank() == 0 { panic!("on purpose") } else { a + b };
    let mut v = vec![1.0; std::env::var("ELEMENTS").unwrap().parse().unwrap()];
    let waits = std::env::var_os("WAITS").is_some();
    let left = catch_unwind(AssertUnwindSafe(|| match waits {
        true => own.allreduce(&mut v, function),
        false => own.scope(|s| s.iallreduce(&mut v, function)?.wait()),
    }));
    let told = |e: fmpl::Error| assert!(e.to_string().contains("the function of rank 0 has panicked"), "{e}");
    match left {
        Err(panic) => assert_eq!((world.rank(), panic.downcast_ref::<&str>()), (0, Some(&"on purpose"))),
        Ok(Err(error)) => told(error),
        Ok(Ok(())) => assert!(world.rank() != 0),
    }
    told(own.barrier().unwrap_err());
    // Between two ranks messages go on.
    if world.rank() < 2 {
        let (peer, mut got) = (1 - world.rank(), [0u8]);
        own.sendrecv(&[7u8], peer, 0, &mut got, peer, 0).unwrap();
    }
    // And other communicators, however long one waits there.
    if world.rank() == 1 {
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    other.barrier().unwrap();
    let mut sum = [1u64; 3000];
    other.allreduce(&mut sum, fmpl::Sum).unwrap();
    assert!(sum.iter().all(|s| *s == world.size() as u64));
    other.scope(|s| s.iallreduce_n(&mut sum, fmpl::Sum)?.wait()).unwrap();
    let third = other.duplicate().unwrap();
    third.comm().barrier().unwrap();
    println!("well");
    drop(third);
    drop(twin);
    drop(job);
}

pub fn panicked() {
    for settings in [
        "FMPL_LOG=warn",
        "FMPL_COLL_NODES=2",
        "FMPL_COLL_NODES=4 FMPL_WAIT=block",
        "FMPL_COLL_NODES=2 FMPL_COLL_BETWEEN=flat",
        "FMPL_NETWORK=tcp",
    ] {
        for (ranks, elements, waits) in [(4, 2, "WAITS=1"), (4, 1000, ""), (5, 1000, "WAITS=1"), (5, 300_000, "")] {
            if settings == "FMPL_LOG=warn" && elements != 2 {
                continue; // There it may be that others combine for rank 0, too.
            }
            let mut job = Job::new(ranks, "panics").settings(settings).settings(waits).env("ELEMENTS", elements);
            if settings.contains("tcp") {
                job = job.nodes(Nodes::Blocks(2));
            }
            let outcome = job.seconds(40).run();
            assert!((0..ranks).all(|r| said(&outcome, r).contains("well")), "{settings}: {}", story(&outcome));
        }
    }
}

/// The world breaks, and no other communicator: on a node and between nodes.
pub fn panicked_in_the_world() {
    for settings in ["FMPL_COLL_NODES=2", "FMPL_NETWORK=tcp"] {
        for (ranks, elements, waits) in [(4, 2, "WAITS=1"), (5, 1000, "")] {
            let mut job = Job::new(ranks, "panics").settings(settings).settings(waits).env("ELEMENTS", elements);
            if settings.contains("tcp") {
                job = job.nodes(Nodes::Blocks(2));
            }
            let outcome = job.env("IN_WORLD", 1).seconds(40).run();
            assert!((0..ranks).all(|r| said(&outcome, r).contains("well")), "{settings}: {}", story(&outcome));
        }
    }
}

/// A function of the C interface that Rust code panics out of.
unsafe extern "C-unwind" fn panics_through_c(_: *mut std::ffi::c_void, _: *const std::ffi::c_void, _: i32) {
    panic!("on purpose")
}

/// Rank 0 has a vector to combine with its own; nothing unwinds out of the call, though there is a handler around it.
pub fn unwinds_into_c() {
    type InC = unsafe extern "C" fn(*mut std::ffi::c_void, *const std::ffi::c_void, i32);
    std::panic::set_hook(Box::new(|_| {}));
    init(1);
    let panics = panics_through_c as unsafe extern "C-unwind" fn(_, _, _);
    // SAFETY: the two are called in the same way; what differs is whether something may come out of it, which the library allows for.
    let function = Some(unsafe { std::mem::transmute::<unsafe extern "C-unwind" fn(_, _, _), InC>(panics) });
    // SAFETY: the function touches no memory.
    ok(unsafe { fmpl_func_register(function, 8, 1) });
    let mut v = [1.0f64; 1000];
    let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: so many elements.
        unsafe { fmpl_allreduce(v.as_mut_ptr().cast(), 1000, function, WORLD, null_mut()) }
    }));
    match left {
        Err(_) => println!("caught"),
        Ok(0) => println!("survived"),
        Ok(code) => println!("code {code}: {}", last_error()),
    }
}

pub fn unwound_into_c() {
    let outcome = Job::new(2, "unwinds into C").seconds(40).keep_going().outcome();
    let text = story(&outcome);
    let aborted = |rank: &usize| matches!(outcome.ends[*rank], End::Signal { signal: libc::SIGABRT, .. });
    let guilty = (0..2).find(aborted).unwrap_or_else(|| panic!("nobody was ended: {text}"));
    let line = text.lines().find(|l| l.contains("the function of a reduction")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(&format!("rank {guilty}:")) && line.contains("a panic (Rust)"), "{line}");
    for rank in 0..2 {
        let said = said(&outcome, rank);
        assert!(!said.contains("caught") && !said.contains("survived"), "{said}");
        assert!(aborted(&rank) || said.contains(&format!("rank {guilty} has died")), "{text}");
    }
}
