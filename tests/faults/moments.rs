//! A rank is killed at any moment from its `exec` to the end of its finalize: each survivor is told within a second of the death, or of its
//! own end of init, and nothing is left.
//!
//! Who is to die starts a child that follows it (ptrace) from the beginning of `main` on, stops it at each entry into a system call and each
//! return from one, and kills it at the one that the test names: so many stops into a **stage**. What a stage is the system calls tell
//! themselves, so that the library needs no hook:
//!
//! ```text
//!   main │ joins │ region │ listens │ publishes │ fence │ secret │ opened │ in the job │ meets │ leaves │ has left
//!        init    memfd    bind      put         barrier get     epoll    init's end    finalize        finalize's end
//! ```
//!
//! A part of the ranks is killed by the clock instead, which also finds `exec` itself and moments between system calls; all of them, where
//! processes may not be traced.

use crate::ranks::bytes::Draw;
use crate::ranks::calls::*;
use crate::ranks::{Job, complaints, long, said, short, story};
use fmpl::launch::embedded::{End, Outcome};
use std::time::Duration;

const STAGES: [&str; 12] = [
    "main",
    "joins",
    "region",
    "listens",
    "publishes",
    "fence",
    "secret",
    "opened",
    "in the job",
    "meets",
    "leaves",
    "has left",
];
/// The marks that a rank makes itself, by closing what is no descriptor: init has returned, finalize begins, finalize has returned.
const MARKS: [(i32, usize); 3] = [(-1001, 8), (-1002, 9), (-1003, 11)];

fn mark(which: usize) {
    // SAFETY: no descriptor has this number.
    unsafe { libc::close(MARKS[which].0) };
}

/// Nanoseconds of the node's monotonic clock.
fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// The child that follows its parent, and its count of stops.
struct Follower {
    pid: i32,
    stage: usize,
    stops: [usize; STAGES.len()],
    /// Stage and stop at which the parent dies.
    aim: Option<(usize, usize)>,
    /// Stage at whose second stop, when its first call has been made, the parent is held up, for so many milliseconds.
    hold: Option<(usize, u64)>,
}

impl Follower {
    /// Starts the child, which follows the calling process from when this returns.
    fn start(aim: Option<(usize, usize)>, hold: Option<(usize, u64)>) {
        let (mut ready, mut word) = ([0; 2], [0u8; 1]);
        // SAFETY: a process of one thread; the child uses no library and leaves by _exit. The parent waits for one byte, or the pipe's end.
        unsafe {
            libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY);
            let pid = libc::getpid();
            assert_eq!(libc::pipe2(ready.as_mut_ptr(), libc::O_CLOEXEC), 0);
            if libc::fork() == 0 {
                // Nothing of the parent's stays open by this child but its output.
                for fd in (3..256).filter(|fd| *fd != ready[1]) {
                    libc::close(fd);
                }
                let mut follower = Follower { pid, stage: 0, stops: [0; STAGES.len()], aim, hold };
                if follower.seize() {
                    libc::write(ready[1], word.as_ptr().cast(), 1);
                    libc::close(ready[1]);
                    follower.follow();
                }
                libc::_exit(0);
            }
            libc::close(ready[1]);
            while libc::read(ready[0], word.as_mut_ptr().cast(), 1) < 0 {}
            libc::close(ready[0]);
        }
    }

    fn trace(&self, request: libc::c_uint, data: usize) -> bool {
        // SAFETY: requests without memory.
        unsafe { libc::ptrace(request, self.pid, 0usize, data) == 0 }
    }

    fn seize(&self) -> bool {
        self.trace(libc::PTRACE_SEIZE, (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXIT) as usize)
            && self.trace(libc::PTRACE_INTERRUPT, 0)
            && self.wait().is_some()
            && self.trace(libc::PTRACE_SYSCALL, 0)
    }

    /// The next stop of the parent; `None`: it has ended.
    fn wait(&self) -> Option<i32> {
        let mut status = 0;
        loop {
            // SAFETY: a place of ours.
            let got = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
            if got == self.pid {
                return libc::WIFSTOPPED(status).then_some(status);
            }
            if got < 0 && std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return None;
            }
        }
    }

    fn follow(&mut self) {
        while let Some(status) = self.wait() {
            let signal = match libc::WSTOPSIG(status) {
                // At a system call.
                s if s == libc::SIGTRAP | 0x80 => {
                    self.look();
                    if let Some((_, ms)) =
                        self.hold.take_if(|(stage, _)| *stage == self.stage && self.stops[*stage] > 0)
                    {
                        println!("held");
                        std::thread::sleep(Duration::from_millis(ms));
                    }
                    if self.aim.is_some_and(|aim| (self.stage, self.stops[self.stage]) >= aim) {
                        println!("died in {} at {}", self.stage, now());
                        // SAFETY: no memory.
                        unsafe { libc::kill(self.pid, libc::SIGKILL) };
                        return;
                    }
                    self.stops[self.stage] += 1;
                    0
                }
                // The parent is about to end; afterwards the launcher does not wait for words of this child.
                _ if status >> 16 == libc::PTRACE_EVENT_EXIT => {
                    println!("stops {:?}", self.stops);
                    0
                }
                // The stop that begins the tracing, or a stop of the whole process.
                _ if status >> 16 != 0 => 0,
                signal => signal as usize,
            };
            if !self.trace(libc::PTRACE_SYSCALL, signal) {
                break;
            }
        }
    }

    /// Finds out whether another stage begins with this system call.
    fn look(&mut self) {
        // SAFETY: all zero is a valid record, and the request fills as much of it as there is.
        let (info, got) = unsafe {
            let mut info: libc::ptrace_syscall_info = std::mem::zeroed();
            let size = size_of::<libc::ptrace_syscall_info>();
            let got = libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, self.pid, size, &mut info);
            (info, got)
        };
        if got <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
            return;
        }
        // SAFETY: the record is of an entry.
        let (number, args) = unsafe { (info.u.entry.nr as i64, info.u.entry.args) };
        let begins = match number {
            libc::SYS_memfd_create => 2,
            libc::SYS_bind => 3,
            libc::SYS_epoll_ctl if self.stage >= 5 => 7,
            libc::SYS_close => MARKS.iter().find(|m| m.0 == args[0] as i32).map_or(0, |m| m.1),
            libc::SYS_write | libc::SYS_sendto => self.said_to_launcher(args[1], args[2] as usize),
            _ => 0,
        };
        self.stage = self.stage.max(begins);
    }

    /// Which stage begins with what the parent says to its launcher; 0: none.
    fn said_to_launcher(&self, at: u64, len: usize) -> usize {
        let mut text = [0u8; 120];
        let local = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: len.min(text.len()) };
        let remote = libc::iovec { iov_base: at as *mut _, iov_len: len.min(text.len()) };
        // SAFETY: bytes of ours are written; the parent's may not be there, which is an error.
        unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
        let has = |word: &str| text.windows(word.len()).any(|w| w == word.as_bytes());
        match () {
            _ if has("cmd=init ") => 1,
            _ if self.stage == 3 && has("cmd=put ") => 4,
            _ if self.stage == 4 && has("cmd=barrier_in") => 5,
            _ if self.stage == 5 && has("cmd=get ") => 6,
            _ if self.stage >= 8 && has("cmd=finalize") => 10,
            _ => 0,
        }
    }
}

/// A job in which all need the one that may die, `VICTIM`: init, one of the ways to wait for it, finalize.
pub fn needs_one_that_may_die() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<usize>().ok());
    let (victim, way) = (number("VICTIM").unwrap() as i32, number("WAY").unwrap());
    let me: i32 = std::env::var("PMI_RANK").unwrap().parse().unwrap();
    if me == victim && number("FOLLOW") == Some(1) {
        Follower::start(number("STAGE").zip(number("STOP")), None);
    }
    let code = try_init(16);
    let joined = now();
    mark(0);
    let told = |what: &str, code: i32| {
        let at = now();
        let text = last_error();
        assert!(code == PEER, "{what}: code {code}: {text}");
        println!("told {joined} {at} in {what}: {text}");
    };
    if code != 0 {
        return told("init", code);
    }
    let ranks = size();
    let code = if me == victim { is_needed(way, ranks) } else { needs(way, victim) };
    if code != 0 {
        told("a call", code);
    }
    mark(1);
    let code = try_finalize();
    if code == PEER {
        told("finalize", code);
    } else {
        assert!(code == 0 || code == PENDING, "finalize: code {code}: {}", last_error());
        println!("ended {joined} {}", now());
    }
    mark(2);
}

/// The ways to wait for a rank.
const WAYS: usize = 9;

fn first_error(codes: impl IntoIterator<Item = i32>) -> i32 {
    codes.into_iter().find(|c| *c != 0).unwrap_or(0)
}

/// What the one does for the others, after a moment.
fn is_needed(way: usize, ranks: i32) -> i32 {
    let me = rank();
    let others = || (0..ranks).filter(move |r| *r != me);
    std::thread::sleep(Duration::from_millis(1));
    let mut long = vec![0; 300_000];
    match way {
        0 | 2 => first_error(others().map(|r| try_send(&[1; 8], r, 0))),
        1 => first_error(others().map(|r| try_recv(&mut long, r, 1))),
        3 => first_error((0..3).map(|_| try_barrier())),
        4 => first_error(others().map(|r| try_send_any(&[1; 8], r, 4))),
        5 => first_error(others().map(|r| try_send(&long, r, 5))),
        6 => try_bcast(me),
        7 => {
            let mut new = NULL;
            try_create(0, &mut new)
        }
        _ => 0,
    }
}

fn needs(way: usize, victim: i32) -> i32 {
    let (mut buf, mut long) = ([0; 8], vec![0; 300_000]);
    match way {
        0 => try_recv(&mut buf, victim, 0),
        1 => {
            sendbuf_set(16 << 20, -1);
            try_send(&long, victim, 1)
        }
        2 => match try_irecv(&mut buf, victim, 0) {
            0 => try_irecv_wait(victim, 0),
            code => code,
        },
        3 => first_error((0..3).map(|_| try_barrier())),
        4 => try_recv_any(&mut buf, 4).0,
        5 => try_recv(&mut long, victim, ANY),
        6 => try_bcast(victim),
        7 => {
            let mut new = NULL;
            try_create(0, &mut new)
        }
        _ => 0,
    }
}

fn try_barrier() -> i32 {
    fmpl::ffi::c::fmpl_barrier(WORLD)
}

fn try_bcast(from: i32) -> i32 {
    let mut buf = vec![1u8; 30_000];
    // SAFETY: so many bytes of ours.
    unsafe { fmpl::ffi::c::fmpl_bcast(buf.as_mut_ptr().cast(), buf.len(), from, WORLD) }
}

/// What came of many rounds.
#[derive(Default)]
struct Tally {
    /// Deaths in each stage; the last: by the clock.
    deaths: [usize; STAGES.len() + 1],
    told: usize,
    told_in_init: usize,
    slowest_ns: u64,
    slowest: String,
}

struct Round {
    ranks: usize,
    victim: usize,
    way: usize,
    settings: &'static str,
    aim: Option<(usize, usize)>,
}

impl Round {
    fn job(&self) -> Job {
        let job = Job::new(self.ranks, "needs one that may die").settings(self.settings).seconds(30).keep_going();
        job.env("VICTIM", self.victim).env("WAY", self.way)
    }

    /// The stops of each stage of a job in which nobody dies; none where processes may not be traced.
    fn stops(&self) -> [usize; STAGES.len()] {
        let outcome = self.job().env("FOLLOW", 1).run();
        let text = said(&outcome, self.victim);
        let line = text.lines().find_map(|l| l.strip_prefix("stops [")?.strip_suffix(']'));
        let mut stops = [0; STAGES.len()];
        let counts = line.unwrap_or_default().split(", ").filter_map(|n| n.parse().ok());
        stops.iter_mut().zip(counts).for_each(|(stop, n)| *stop = n);
        stops
    }

    /// Runs it, with a death where it is aimed at, or by the clock.
    fn run(&self, draw: &mut Draw, tally: &mut Tally) {
        let mut what = format!("{} ranks, way {}, {}, rank {}", self.ranks, self.way, self.settings, self.victim);
        let (outcome, pids, death) = match self.aim {
            Some((stage, stop)) => {
                what += &format!(" killed at stop {stop} of stage \"{}\"", STAGES[stage]);
                let job = self.job().env("FOLLOW", 1).env("STAGE", stage).env("STOP", stop);
                let running = job.launcher().start().unwrap();
                let pids = running.pids();
                let outcome = running.wait();
                let text = said(&outcome, self.victim);
                let line = text.lines().find_map(|l| l.strip_prefix("died in ")?.split_once(" at "));
                let Some((stage, at)) = line else { panic!("{what}: nobody died: {}", story(&outcome)) };
                tally.deaths[stage.parse::<usize>().unwrap()] += 1;
                (outcome, pids, at.trim().parse().unwrap())
            }
            None => {
                let most = [1000, 8000, 40_000][draw.below(3)];
                let wait = Duration::from_micros(draw.below(most) as u64);
                what += &format!(" killed after {wait:?}");
                let running = self.job().launcher().start().unwrap();
                let pids = running.pids();
                let pid = pids[self.victim];
                let killer = std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    let at = now();
                    // SAFETY: no memory; the pid is the rank's until the job has ended, and the launcher's zombie for as long.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                    at
                });
                let outcome = running.wait();
                tally.deaths[STAGES.len()] += 1;
                (outcome, pids, killer.join().unwrap())
            }
        };
        self.judge(&what, &outcome, death, tally);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{what}: process {pid} is left");
        }
    }

    fn judge(&self, what: &str, outcome: &Outcome, death: u64, tally: &mut Tally) {
        let ends = &outcome.ends;
        // It may have been through before the clock struck.
        let died = matches!(ends[self.victim], End::Signal { signal: 9, .. });
        assert!(died || self.aim.is_none(), "{what}: {}", story(outcome));
        for survivor in (0..self.ranks).filter(|r| *r != self.victim) {
            let whole = || format!("{what}: rank {survivor}: {}\n{}", story(outcome), complaints(outcome));
            // A rank whose init has failed may end without finalize.
            assert!(!outcome.timed_out && ends[survivor] == End::Exit(0), "{}", whole());
            let text = said(outcome, survivor);
            for line in text.lines() {
                let mut words = line.split(' ');
                let heard = words.next() == Some("told");
                let [joined, at] = [0; 2].map(|_: i32| words.next().and_then(|n| n.parse::<u64>().ok()).unwrap());
                if !heard && !died {
                    continue;
                }
                // Who is told by init itself has no end of init before.
                let by_init = line.contains(" in init:");
                let late = at.saturating_sub(if by_init { death } else { death.max(joined) });
                tally.told += heard as usize;
                tally.told_in_init += (heard && by_init) as usize;
                if late > tally.slowest_ns {
                    (tally.slowest_ns, tally.slowest) = (late, format!("{what}: rank {survivor}: {line}"));
                }
                assert!(late < 5_000_000_000, "told after {:.3} s: {}", late as f64 / 1e9, whole());
            }
            assert!(text.lines().any(|l| l.starts_with("told") || l.starts_with("ended")), "{}", whole());
        }
    }
}

pub fn killed_at_any_moment() {
    let times = match () {
        _ if long() => 1000,
        _ if short() => 12,
        _ => 60,
    };
    let mut draw = Draw(std::process::id() as u64);
    let before = super::kill::litter();
    let of = |victim| Round { ranks: 2, victim, way: 0, settings: "FMPL_WAIT=adaptive", aim: None };
    let stops = [of(0).stops(), of(1).stops()];
    let traced = stops[1][0] > 0;
    let stages: Vec<usize> = (0..STAGES.len()).filter(|s| stops[1][*s] > 0).collect();
    let mut tally = Tally::default();
    for round in 0..times {
        let ranks = 2 + draw.below(3);
        let victim = draw.below(ranks);
        let aimed = traced && round % 4 != 3;
        let aim = aimed.then(|| {
            let stage = stages[(round - round / 4) % stages.len()];
            (stage, draw.below(stops[victim.min(1)][stage].max(1)))
        });
        let settings = ["FMPL_WAIT=adaptive", "FMPL_WAIT=block", "FMPL_CMA=off"][draw.below(3)];
        Round { ranks, victim, way: draw.below(WAYS), settings, aim }.run(&mut draw, &mut tally);
    }
    assert_eq!(super::kill::litter(), before, "files are left behind");
    let clock = tally.deaths[STAGES.len()];
    let in_stages: Vec<String> = STAGES.iter().zip(tally.deaths).map(|(name, n)| format!("{name} {n}")).collect();
    println!(
        "  {times} ranks killed ({}, by the clock {clock}), {} survivors told, {} of them by init; the slowest after {:.3} s",
        in_stages.join(", "),
        tally.told,
        tally.told_in_init,
        tally.slowest_ns as f64 / 1e9
    );
    if tally.slowest_ns > 1_000_000_000 {
        println!("  the slowest: {}", tally.slowest);
    }
    if !traced {
        return println!("  processes may not be traced here: all were killed by the clock");
    }
    let least = stages.iter().map(|s| tally.deaths[*s]).min().unwrap_or(0);
    println!("  stages {}, least deaths in one {least}", stages.len());
    assert!(stages.len() >= 10 && least >= if long() { 20 } else { 1 } || short());
}

/// Rank 0 is held up before the end of its init, when first contacts are open; rank 1 greets it meanwhile, and dies.
pub fn dies_in_the_others_init() {
    let me: i32 = std::env::var("PMI_RANK").unwrap().parse().unwrap();
    if me == 0 {
        Follower::start(None, Some((OPENED, 300)));
    }
    init(4);
    let mut b = [5; 8];
    if me == 1 {
        send(&b, 0, 0);
        // SAFETY: no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let joined = now();
    println!("first {}", try_recv(&mut b, 1, 0));
    fails(try_recv(&mut b, 1, 0), PEER);
    println!("told {:.3}", (now() - joined) as f64 / 1e9);
    fails(try_finalize(), PEER);
}

/// It begins with the call that opens first contacts.
const OPENED: usize = 7;

pub fn death_in_init() {
    let times = if long() { 50 } else { 5 };
    let (mut held, mut slowest) = (0, 0.0f64);
    for _ in 0..times {
        let outcome = Job::new(2, "dies in the other's init").seconds(20).keep_going().outcome();
        let text = said(&outcome, 0);
        assert!(outcome.ends[0] == End::Exit(0), "{}", story(&outcome));
        held += text.contains("held") as usize;
        let told = text.lines().find_map(|l| l.strip_prefix("told ")?.parse::<f64>().ok());
        slowest = slowest.max(told.unwrap());
    }
    println!("  held in init {held} times: the second receive is told after {slowest:.3} s at most");
    assert!(slowest < 5.0 && (held == times || held == 0), "held {held} of {times} times");
}
