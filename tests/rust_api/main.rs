//! The Rust interface between real ranks. Each test starts itself again under `fmpl run`, on as many ranks as it says, and there
//! does what its body says; a rank that fails fails the test, with all that the ranks printed.
//!
//! | file | what it shows |
//! |---|---|
//! | `calls` | every blocking call does what its documentation says |
//! | `collective` | collective calls of slices, with closures; a closure that panics |
//! | `reductions` | every predefined function on every type, on 1 to 8 ranks |
//! | `scopes` | requests, and how a scope ends: by return, error, panic, with forgotten requests, with a dead peer |
//! | `tasks` | requests as futures, on smol and on tokio |
//! | `threads` | threads on different indices at once; threads on the same index are told |
//! | `unwinding` | a panic of a function that the library calls stays with its call; the others are told |
//! | `misuse` | wrong arguments get an error that names them, and the job goes on |
//! | `events` | the event descriptor in an event loop |
//! | `global` | global memory: shared values, remote words, copies in order |
//! | `groups` | communicators as values: made, used at once, freed |
//! | `interrupts` | waits that a hook ends; calls that do not wait |
//! | `loans` | messages that are handed over |
//! | `life` | init and finalize |

#![allow(clippy::forget_non_drop, reason = "that forgetting does no harm is tested, whatever requests are made of")]

mod calls;
mod collective;
mod events;
mod global;
mod groups;
mod interrupts;
mod life;
mod loans;
mod misuse;
mod reductions;
mod scopes;
mod tasks;
mod threads;
mod unwinding;

use std::process::{Command, Stdio};

use fmpl::{Comm, Job};

/// The body of a test that runs on ranks.
macro_rules! on_ranks {
    ($(#[$doc:meta])* $name:ident, $ranks:expr, $indices:expr, |$job:ident, $world:ident| $body:block) => {
        $(#[$doc])*
        #[test]
        fn $name() {
            fn body($job: &fmpl::Job, $world: fmpl::Comm<'_>) -> fmpl::Result<()> {
                $body
                #[allow(unreachable_code, reason = "a body may end the process")]
                Ok(())
            }
            for ranks in $ranks {
                crate::run(concat!(module_path!(), "::", stringify!($name)), ranks, $indices, body);
            }
        }
    };
}
pub(crate) use on_ranks;

/// Numbers of ranks for what is the same with all: 1 to 8 in a long run, one of each kind otherwise (one, two, odd, a prime).
fn many_ranks() -> impl Iterator<Item = usize> {
    let long = std::env::var_os("FMPL_TEST_LONG").is_some_and(|v| v == "1");
    (1..=8).filter(move |n| long || [1, 2, 3, 7].contains(n))
}

const AS_RANK: &str = "FMPL_TEST_AS_RANK";

/// In a rank, the number of ranks.
fn as_rank() -> Option<usize> {
    std::env::var(AS_RANK).ok().map(|size| size.parse().unwrap())
}

/// As the test: starts the ranks and looks at how they end. As a rank: runs the body, with a job around it.
fn run(path: &str, ranks: usize, indices: usize, body: fn(&Job, Comm<'_>) -> fmpl::Result<()>) {
    if let Some(size) = as_rank() {
        // The test runs its body for several numbers of ranks; this rank belongs to one of them.
        if size != ranks {
            return;
        }
        let job = fmpl::init(indices).unwrap();
        body(&job, job.world()).unwrap_or_else(|e| panic!("rank {}: {e}", job.world().rank()));
        job.finalize().unwrap();
        return;
    }
    let output = start(path, ranks);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{path} on {ranks} ranks: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// Runs one test of this binary as ranks of a job, to its end.
fn start(path: &str, ranks: usize) -> std::process::Output {
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    Command::new("timeout")
        .args(["-k", "5", "100", env!("CARGO_BIN_EXE_fmpl"), "run", "-n", &ranks.to_string(), "--env"])
        .arg(format!("{AS_RANK}={ranks}"))
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Numbers that differ by message: the contents of each are checked.
fn filled(len: usize, seed: usize) -> Vec<u64> {
    (0..len as u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ((seed as u64) << 40)).collect()
}
