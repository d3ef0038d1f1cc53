//! Tests whose subject is a job of several processes: the test binary starts itself again under the library's own launcher.
//!
//! A target that uses this has `harness = false` and a `main` that calls [`main`] with two tables: the **tests**, which the first
//! process runs one after the other, and the **bodies**, what a rank does. A test starts jobs with [`Job`]; the ranks run
//! the named body on their main thread, alone in their process, as a program of a user would.
//!
//! `cargo test --test conformance -- name` runs the tests whose name contains a word; `FMPL_TEST_LONG=1` the long versions too.

#![allow(dead_code, reason = "each target uses the part that it needs")]

pub mod bytes;
pub mod calls;
pub mod damage;
pub mod links;
pub mod placed;
#[path = "../skip/mod.rs"]
pub mod skip;
pub mod stepped;

pub use fmpl::launch::embedded::Nodes;
use fmpl::launch::embedded::{Launcher, Outcome, Output};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BODY: &str = "RANKS_BODY";

/// A test and its name.
pub type Test = (&'static str, fn());
/// What a rank does, and its name.
pub type Body = (&'static str, fn());

/// The `main` of a target.
pub fn main(tests: &[Test], bodies: &[Body]) {
    if let Ok(name) = std::env::var(BODY) {
        let body = bodies.iter().find(|b| b.0 == name).unwrap_or_else(|| panic!("there is no body {name}"));
        links::enter();
        body.1();
        if calls::FINALIZE_FAILED.load(Ordering::Relaxed) {
            std::io::stdout().flush().unwrap();
            // SAFETY: ends the process, whose body has found everything as it should be, a finalize that fails among it.
            unsafe { libc::_exit(0) }
        }
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    if arguments.iter().any(|a| a == "--list") {
        tests.iter().for_each(|t| println!("{}: test", t.0));
        return;
    }
    let mut failed = Vec::new();
    for (name, test) in tests {
        if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        println!("test {name} ...");
        *NOW.lock().unwrap() = Some((name, Instant::now()));
        let since = Instant::now();
        let well = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {} ({:.1} s)", if well { "ok" } else { "FAILED" }, since.elapsed().as_secs_f64());
        if !well {
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
        std::process::exit(101);
    }
}

/// The test that runs, and when it last had something to say.
static NOW: Mutex<Option<(&str, Instant)>> = Mutex::new(None);

/// Are the long versions of the tests asked for?
pub fn long() -> bool {
    std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1")
}

/// Is everything to be done once rather than often? For runs that look at each access (AddressSanitizer), which repetition tells
/// nothing new.
pub fn short() -> bool {
    std::env::var_os("FMPL_TEST_SHORT").is_some_and(|v| v == "1")
}

/// Is this tests/rig, where there are links to break?
pub fn in_rig() -> bool {
    std::env::var_os("RIG_NODES").is_some()
}

/// Does to the link of a node what is told, in the rig (tests/rig/link) or where there are [`links`].
pub fn link(node: u32, what: &str) {
    if links::does(node, what) {
        return;
    }
    let words = what.split_whitespace().map(str::to_string);
    let done = std::process::Command::new("rig-link").arg(node.to_string()).args(words).status();
    assert!(done.as_ref().is_ok_and(|s| s.success()), "rig-link {node} {what}: {done:?}");
}

/// Is the network between nodes one by libfabric, as the setting says?
pub fn by_libfabric() -> bool {
    std::env::var("FMPL_NETWORK").is_ok_and(|name| name.starts_with("ofi"))
}

/// Do all data go by datagrams, without connections?
pub fn by_datagrams() -> bool {
    std::env::var("FMPL_NETWORK").is_ok_and(|name| name.starts_with("udp"))
        || std::env::var("FMPL_QUEUE_PAIRS").is_ok_and(|n| n == "0")
}

/// Does the network between nodes do its part only in processes that run: by libfabric, TCP, or datagrams?
pub fn in_software() -> bool {
    by_libfabric() || by_datagrams() || std::env::var("FMPL_NETWORK").is_ok_and(|name| name.starts_with("tcp"))
}

/// Are there RDMA devices here, or another network is named, so that pretended nodes can reach each other? See `tests/rig`.
pub fn has_devices() -> bool {
    if in_software() {
        return true;
    }
    use fmpl::fabric::verbs::device::{Wishes, survey};
    let found = survey(&Wishes::default()).unwrap_or_default().iter().any(|(_, port)| port.is_ok());
    if !found {
        skipped("no active RDMA port");
    }
    found
}

/// A test with links between two nodes that can be broken: those of the rig, or others, where TCP goes over them.
pub fn with_links(test: impl FnOnce()) {
    if in_rig() {
        return test();
    }
    if !in_software() {
        return skipped("only in tests/rig there is a link to break, and over TCP or UDP");
    }
    match links::Links::new(2) {
        Some(_links) => test(),
        None => skip::skip("network namespaces can be made by root only, with `ip`"),
    }
}

/// Does the kernel copy between processes here? Sandboxes refuse it, even of a process's own memory.
pub fn kernel_copies() -> bool {
    let (mut to, mut from) = ([0u8; 8], [1u8; 8]);
    let at = |bytes: &mut [u8; 8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 8 };
    // SAFETY: both are whole, and this process's.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &at(&mut to), 1, &at(&mut from), 1, 0) };
    if copied != 8 {
        skipped("copies between processes are refused here");
    }
    copied == 8
}

/// The test that runs, or a part of it, is skipped here, which is no failure.
pub fn skipped(why: &str) {
    skip::note(NOW.lock().unwrap().map_or("a test", |now| now.0), why);
}

/// A job of ranks that run one body.
pub struct Job {
    ranks: usize,
    body: String,
    env: Vec<(String, String)>,
    seconds: u64,
    keep_going: bool,
    nodes: Option<Nodes>,
}

impl Job {
    pub fn new(ranks: usize, body: &str) -> Job {
        Job { ranks, body: body.to_owned(), env: Vec::new(), seconds: 90, keep_going: false, nodes: None }
    }

    /// A variable of the ranks' environment.
    pub fn env(mut self, name: &str, value: impl ToString) -> Job {
        self.env.push((name.to_owned(), value.to_string()));
        self
    }

    /// Several, as `A=B C=D`.
    pub fn settings(mut self, text: &str) -> Job {
        for pair in text.split_whitespace() {
            let (name, value) = pair.split_once('=').expect("A=B");
            self.env.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// How long the job may take before it counts as hanging.
    pub fn seconds(mut self, seconds: u64) -> Job {
        self.seconds = seconds;
        self
    }

    /// A rank that fails does not end the others.
    pub fn keep_going(mut self) -> Job {
        self.keep_going = true;
        self
    }

    /// The ranks are on several pretended nodes.
    pub fn nodes(mut self, nodes: Nodes) -> Job {
        self.nodes = Some(nodes);
        self
    }

    /// The launcher of this job, to be used by hand.
    pub fn launcher(&self) -> Launcher {
        let program = std::env::current_exe().expect("the path of this program");
        let mut launcher = Launcher::new(self.ranks, [program])
            .env(BODY, &self.body)
            .env("RUST_BACKTRACE", "0")
            .timeout(Duration::from_secs(self.seconds))
            .stdout(Output::Capture)
            .stderr(Output::Capture)
            .keep_going(self.keep_going)
            .quiet(true);
        if !self.env.iter().any(|(name, _)| name == "FMPL_STALL") {
            launcher = launcher.env("FMPL_STALL", "20");
        }
        if let Some(nodes) = self.nodes {
            launcher = launcher.nodes(nodes);
        }
        for (name, value) in &self.env {
            launcher = launcher.env(name, value);
        }
        launcher
    }

    /// Runs the job to its end, however that is. A test of many jobs says each minute what it is at: silence is a hang.
    pub fn outcome(&self) -> Outcome {
        if let Some((name, said)) = NOW.lock().unwrap().as_mut().filter(|now| now.1.elapsed().as_secs() >= 60) {
            println!("test {name} ... goes on: {} on {} ranks", self.body, self.ranks);
            *said = Instant::now();
        }
        self.launcher().run().unwrap_or_else(|e| panic!("{e}"))
    }

    /// Runs the job, all of whose ranks must do well.
    pub fn run(&self) -> Outcome {
        let outcome = self.outcome();
        if outcome.code != 0 {
            let settings: Vec<String> = self.env.iter().map(|(n, v)| format!("{n}={v}")).collect();
            panic!("{} on {} ranks with {}: {}", self.body, self.ranks, settings.join(" "), story(&outcome));
        }
        outcome
    }
}

/// What a job that went wrong has to say.
pub fn story(outcome: &Outcome) -> String {
    let mut text = format!("code {}, {:?}\n", outcome.code, outcome.reports);
    for (rank, (out, err)) in outcome.stdout.iter().zip(&outcome.stderr).enumerate() {
        for (name, bytes) in [("out", out), ("err", err)] {
            let all = String::from_utf8_lossy(bytes).into_owned();
            let lines: Vec<&str> = all.lines().collect();
            for line in &lines[lines.len().saturating_sub(12)..] {
                text += &format!("  rank {rank} {name}: {line}\n");
            }
        }
    }
    text
}

/// The standard output of a rank.
pub fn said(outcome: &Outcome, rank: usize) -> String {
    String::from_utf8_lossy(&outcome.stdout[rank]).into_owned()
}

/// The standard error of all ranks, together.
pub fn complaints(outcome: &Outcome) -> String {
    outcome.stderr.iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect()
}
