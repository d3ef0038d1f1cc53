use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, long, said, story};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::End;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const CALLS: [&str; 8] = [
    "barrier",
    "bcast 8",
    "bcast 8000",
    "bcast 3000000",
    "reduce 8000",
    "reduce 3000000",
    "allreduce 8",
    "allreduce 3000000",
];

/// One call of the kind; its code.
fn call(kind: &str, buf: &mut [u8], round: usize) -> i32 {
    let (name, bytes) = kind.split_once(' ').unwrap_or((kind, "0"));
    let bytes: usize = bytes.parse().unwrap();
    let (p, count, root) = (buf.as_mut_ptr().cast(), (bytes / 8) as i32, (round % size() as usize) as i32);
    // SAFETY: the buffer has as many bytes.
    unsafe {
        match name {
            "barrier" => fmpl_barrier(WORLD),
            "bcast" => fmpl_bcast(p, bytes, root, WORLD),
            "reduce" => fmpl_reduce(p, count, Some(fmpl_dsum), root, WORLD, null_mut()),
            _ => fmpl_allreduce(p, count, Some(fmpl_dsum), WORLD, null_mut()),
        }
    }
}

/// Makes the call over and over until a rank is lost.
pub fn loses() {
    init(1);
    let kind = std::env::var("CALL").unwrap();
    let mut buf = vec![0u8; 3_000_000];
    barrier();
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
    let since = Instant::now();
    fails(fmpl_barrier_code(), PEER);
    fails(call("allreduce 8", &mut buf, 0), PEER);
    assert!(since.elapsed() < Duration::from_secs(1));
    println!("well");
    let _ = try_finalize();
}

fn fmpl_barrier_code() -> i32 {
    // SAFETY: no memory.
    unsafe { fmpl_barrier(WORLD) }
}

pub fn killed() {
    let mut draw = Draw(std::process::id() as u64);
    let mut slowest = 0.0f64;
    for round in 0..CALLS.len() * if long() { 10 } else { 2 } {
        let ranks = 2 + draw.below(4);
        let kind = CALLS[round % CALLS.len()];
        let settings = ["FMPL_LOG=warn", "FMPL_WAIT=block", "FMPL_CMA=off"][draw.below(3)];
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
        assert!(matches!(outcome.ends[victim], End::Signal { signal: 9, .. }), "{what}: {}", story(&outcome));
        for survivor in (0..ranks).filter(|r| *r != victim) {
            let text = said(&outcome, survivor);
            if !text.contains("begun") {
                // Under load the kill may come before all have met, which is an error of init or of the first barrier.
                continue;
            }
            assert!(outcome.ends[survivor] == End::Exit(0) && text.contains("well"), "{what}: {}", story(&outcome));
            let line = text.lines().find(|l| l.starts_with("error")).unwrap_or_else(|| panic!("{what}: {text}"));
            assert!(line.contains(&format!("rank {victim} has died")), "{what}: {line}");
            let seconds: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            slowest = slowest.max(seconds);
            assert!(seconds < 5.0, "{what}: rank {survivor} heard after {seconds} s");
        }
    }
    println!("  the slowest error came {slowest:.3} s after its call began");
}
