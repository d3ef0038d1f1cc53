//! `fmpl run` as users meet it: real processes, real signals, real launchers of others.
//!
//! | file | what it shows |
//! |---|---|
//! | `command_line` | what is refused and how; several programs; environment, directory, preload |
//! | `endings` | exit codes, signals, time-out, Ctrl-C, SIGKILL of the launcher: what is said and that nothing is left |
//! | `finalize` | a finalize that fails makes the exit code non-zero, under every launcher |
//! | `debug` | ranks under gdb: where they crash, and each in a window of tmux |
//! | `output` | standard input, output and the terminal |
//! | `exchange` | PMI-1: ours with our client, ours with garbage, MPICH's mpiexec with our client, MPICH's programs with ours |
//! | `environment` | jobs started by variables alone: in any order, incomplete, beside strangers |
//! | `strangers` | such jobs on a hostile network: silence, garbage, replays, somebody in between |
//! | `spread` | the same, many ranks on many pretended nodes: what meeting costs each |
//! | `beside` | an MPI and FMPL in one process; ranks from outside |
//! | `launchers` | Open MPI's mpirun, PRRTE's prterun, Slurm: jobs of theirs, ends of them, a rank killed |
//! | `pmix` | our declarations of PMIx are those of its header |
//! | `hosts` | several machines: daemons, what they forward, how jobs end with them |
//! | `nodes` | which ranks share a node, pretended ones too |

mod beside;
mod command_line;
mod debug;
mod endings;
mod environment;
mod exchange;
mod finalize;
#[path = "../headers/mod.rs"]
mod headers;
mod hosts;
mod launchers;
mod nodes;
mod output;
mod pmix;
#[path = "../skip/mod.rs"]
mod skip;
mod spread;
mod strangers;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `fmpl run` with these arguments, and an end to everything when it hangs.
fn fmpl_run(args: &[&str]) -> Command {
    let mut c = Command::new("timeout");
    // --foreground: signals for the process that the test sees reach fmpl by way of timeout.
    c.args(["--foreground", "-k", "5", "60", env!("CARGO_BIN_EXE_fmpl"), "run"]).args(args);
    c.stdin(Stdio::null());
    c
}

struct Ran {
    /// What it ended with; 128 more than the signal that ended it, as a shell says it.
    code: i32,
    out: String,
    err: String,
}

fn ran(o: Output) -> Ran {
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    let code = o.status.code().or_else(|| o.status.signal().map(|signal| 128 + signal));
    Ran { code: code.unwrap(), out: text(o.stdout), err: text(o.stderr) }
}

fn run(args: &[&str]) -> Ran {
    ran(fmpl_run(args).output().unwrap())
}

/// The command itself, without anything around it that would hide a signal. Who starts these tests in the background, or by nohup, has signals
/// ignored, which is inherited.
fn fmpl() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_fmpl"));
    // SAFETY: between fork and exec only `signal` is called, which may be called there.
    unsafe {
        c.pre_exec(|| {
            let ours = |sig: &libc::c_int| libc::signal(*sig, libc::SIG_DFL) != libc::SIG_ERR;
            [libc::SIGINT, libc::SIGHUP].iter().all(ours).then_some(()).ok_or_else(std::io::Error::last_os_error)
        })
    };
    c
}

fn spawn(args: &[&str]) -> Child {
    fmpl().arg("run").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The numbers on the first `lines` lines that the job prints: by then its ranks have set up what the test needs.
fn numbers(child: &mut Child, lines: usize) -> Vec<i32> {
    let out = child.stdout.as_mut().unwrap();
    let mut numbers = Vec::new();
    let mut reader = BufReader::new(out);
    for _ in 0..lines {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        numbers.extend(line.split_whitespace().map(|w| w.parse::<i32>().unwrap()));
    }
    numbers
}

/// What holds a rank back until the test has heard of the others: a file that is made then.
struct Gate(PathBuf);

/// A path that nothing else here has.
fn fresh(within: &Path, name: &str) -> PathBuf {
    static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    within.join(format!("{name}-{}-{number}", std::process::id()))
}

impl Gate {
    fn new() -> Gate {
        Gate(fresh(Path::new(env!("CARGO_TARGET_TMPDIR")), "gate"))
    }

    /// What a shell does when it is open.
    fn then(&self, does: &str) -> String {
        format!("while [ ! -e '{}' ]; do sleep 0.02; done; {does}", self.0.display())
    }

    fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The exit code, and what is said on standard error.
fn rest(child: &mut Child) -> (i32, String) {
    let mut err = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), err)
}

/// Says its process's number, and its parent's, and does not end when it is told to.
const DEAF: &str = "trap 'echo 0' TERM; echo $$ $PPID; while :; do sleep 0.1; done";

/// A job of two ranks that are [`DEAF`] is killed by the second Ctrl-C, and leaves nothing.
fn ends_by_the_second_ctrl_c(job: &mut Child) {
    let pids = numbers(job, 2);
    signal(job, libc::SIGINT);
    // The ranks have heard of the first.
    numbers(job, 1);
    signal(job, libc::SIGINT);
    let (code, err) = rest(job);
    assert!(code == 130 && err.contains(": killing rank"), "{code} {err}");
    assert!(!err.contains("did not end within"), "{err}");
    assert_gone(&pids);
}

fn is_alive(pid: i32) -> bool {
    // A zombie that nobody has reaped yet does nothing any more.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s[s.rfind(')').unwrap()..].starts_with(") Z"))
}

/// Waits for processes to be gone; one that stays is a failure of the test, not a hang of it.
fn assert_gone(pids: &[i32]) {
    let since = Instant::now();
    while let Some(pid) = pids.iter().find(|p| is_alive(**p)) {
        assert!(since.elapsed() < Duration::from_secs(30), "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: no memory is involved; the child is not reaped yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// The example `place`.
fn place() -> String {
    example("place")
}

/// An example. When only this test was built it is not there, or is of an earlier library: a rank of that kind does what has been
/// mended since.
fn example(name: &str) -> String {
    static LOOK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = LOOK.lock().unwrap_or_else(|e| e.into_inner());
    let (command, written) =
        (Path::new(env!("CARGO_BIN_EXE_fmpl")), |p: &Path| p.metadata().and_then(|m| m.modified()));
    let here = command.parent().unwrap();
    let program = here.join("examples").join(name);
    if written(&program).is_err() || written(&program).unwrap() < written(command).unwrap() {
        let mut c = Command::new(env!("CARGO"));
        c.args(["build", "--quiet", "--example", name]);
        if here.ends_with("release") {
            c.arg("--release");
        }
        c.env("CARGO_TARGET_DIR", here.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(c.status().unwrap().success());
    }
    program.to_str().unwrap().to_owned()
}

/// A program of this machine, if it is there.
fn found(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(name)).find(|p| p.is_file())
}
