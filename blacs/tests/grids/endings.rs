//! Wrong arguments and the ends of a job.

use std::time::Duration;

use crate::names::*;

use crate::Table;
use fmpl::{Code, Mode};

use crate::grid::{ALL, Grid, letters, pinfo, system};
use crate::ranks::{Job, complaints, story};

pub const TABLE: Table = (
    &[
        ("wrong_arguments_end_the_job_with_their_reason", wrong),
        ("abort_ends_those_who_never_call", aborts),
        ("a_crash_ends_the_job_with_a_name", crashes),
        ("beside_fmpl", beside),
    ],
    &[("wrong", wrong_body), ("abort", abort_body), ("crash", crash_body), ("beside", beside_body)],
);

type Mistake = (&'static str, fn(&Grid), &'static str);

const MISTAKES: &[Mistake] = &[
    ("large", |_| _ = Grid::init(system(), b"R\0", 2, 2), "Illegal grid (2 x 2), #procs=2"),
    ("none", |_| _ = Grid::init(system(), b"R\0", 0, 2), "Illegal grid (0 x 2), #procs=2"),
    ("twice", |_| _ = Grid::map(system(), &[1, 1], 1, 2), "Illegal process 1 at (0,1)"),
    ("nobody", |_| _ = Grid::map(system(), &[0, 2], 1, 2), "Illegal process 2 at (0,1)"),
    ("system", |_| _ = Grid::init(77, b"R\0", 1, 2), "Invalid system context handle: 77"),
    ("handle", |_| Cblacs_gridexit(5), "Invalid context handle: 5"),
    (
        "dead",
        |g| {
            g.exit();
            g.send(&[1.0], 0, 0)
        },
        "Invalid context handle: 0",
    ),
    ("place", |g| g.send(&[1.0], 1, 0), "process {1,0} is not in the grid of 1 x 2"),
    ("scope", |g| _ = g.sum(b"x\0", 1), "Unknown scope 'x'"),
    (
        "topology",
        // SAFETY: letters with their ends, and one element.
        |g| unsafe { Cdgebs2d(g.handle, letters(ALL), letters(b"q\0"), 1, 1, &1.0, 1) },
        "Unknown topology 'q'",
    ),
    (
        "long",
        |g| {
            g.send(&[1.0; 100], 0, g.col);
            g.receive(99, 0, g.col);
        },
        "Cdgerv2d",
    ),
];

fn wrong() {
    for (name, _, text) in MISTAKES {
        let outcome = Job::new(2, "wrong").env("MISTAKE", name).outcome();
        let said = complaints(&outcome);
        assert!(outcome.code != 0 && said.contains(text), "{name}: {}", story(&outcome));
        assert!(
            said.contains("BLACS ERROR '") && said.contains("killed other procs, exiting with error #1."),
            "{name}: {said}"
        );
    }
}

fn wrong_body() {
    let name = std::env::var("MISTAKE").expect("which mistake");
    let (_, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    let mistake = MISTAKES.iter().find(|m| m.0 == name).expect("a mistake of that name");
    mistake.1(&grid);
    unreachable!("the mistake went unnoticed");
}

fn aborts() {
    let outcome = Job::new(3, "abort").seconds(60).outcome();
    assert_eq!(outcome.code, 42, "{}", story(&outcome));
    let said = complaints(&outcome);
    assert!(said.contains("{0,1}, pnum=1, Contxt=0, killed other procs, exiting with error #42."), "{said}");
}

#[allow(clippy::empty_loop, reason = "a process that never calls the library again is the subject")]
fn abort_body() {
    let (me, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    grid.barrier();
    if me == 1 {
        Cblacs_abort(grid.handle, 42);
    }
    loop {}
}

fn crashes() {
    let outcome = Job::new(3, "crash").seconds(20).outcome();
    assert_eq!(outcome.code, 128 + libc::SIGSEGV, "{}", story(&outcome));
    assert!(format!("{:?}", outcome.reports).contains("rank 2"), "{}", story(&outcome));
}

fn crash_body() {
    let (me, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    if me == 2 {
        std::thread::sleep(Duration::from_millis(50));
        // Without the handler of Rust's runtime, which looks for a fault.
        // SAFETY: calls of numbers only; the process is about to end.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::raise(libc::SIGSEGV);
        }
    }
    grid.receive(1, 0, 2);
    unreachable!("a message of the dead");
}

fn beside() {
    for first in ["fmpl", "blacs"] {
        Job::new(3, "beside").env("FIRST", first).run();
    }
}

/// FMPL and the BLACS in one program, whichever initialises first; each has its own end.
fn beside_body() {
    let fmpl_first = std::env::var("FIRST").expect("which") == "fmpl";
    let early = fmpl_first.then(|| fmpl::init(2).expect("init"));
    let (me, all) = pinfo();
    let job = early.unwrap_or_else(|| fmpl::init(2).expect("init"));
    let world = job.world();
    assert_eq!((world.rank() as i32, world.size() as i32), (me, all));
    world.set_send_buffer(1024, Mode::Buffered).expect("the world's mode");
    let grid = Grid::init(system(), b"R\0", 1, all);
    let (next, last) = ((me + 1) % all, (me + all - 1) % all);
    // The world's spool is full with what a grid's takes: each has its own.
    let long = vec![me as f64; 8192];
    let refused = world.send(&long, next as usize, 0).expect_err("more than the world may spool");
    assert_eq!(refused.code(), Code::SpoolFull);
    grid.send(&long, 0, next);
    assert_eq!(grid.receive(8192, 0, last), vec![last as f64; 8192]);
    world.send(&[me; 3], next as usize, 1).expect("sent");
    grid.send(&[me as f64], 0, next);
    assert_eq!(grid.sum(ALL, 1), all);
    assert_eq!(grid.receive(1, 0, last), [last as f64]);
    let mut got = [0; 3];
    world.recv(&mut got, last as usize, 1).expect("received");
    assert_eq!(got, [last; 3]);
    Cblacs_exit(0);
    world.barrier().expect("FMPL goes on");
    job.finalize().expect("finalized");
}
