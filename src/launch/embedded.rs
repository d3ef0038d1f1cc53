//! Our own launcher, as a library: it starts ranks, on this machine or by daemons on several, and serves them PMI-1 until they have ended.
//!
//! `fmpl run` is a command line in front of this; `fmpl bench` and the tests start their ranks through it as well.
//!
//! ```no_run
//! use fmpl::launch::embedded::{Launcher, Output};
//! let outcome = Launcher::new(4, ["./hello", "world"]).stdout(Output::Capture).run()?;
//! assert_eq!(outcome.code, 0);
//! println!("rank 2 said {}", String::from_utf8_lossy(&outcome.stdout[2]));
//! # Ok::<(), fmpl::launch::embedded::Refused>(())
//! ```

pub use super::daemon::main as daemon;
pub use super::ghosts::{Ghosts, Side};
use super::supervise;
pub use crate::base::system::process::End;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A program, and the number of ranks that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The number of ranks, at least 1.
    pub n: usize,
    /// The program, looked for in `PATH` when it has no slash, and its arguments.
    pub argv: Vec<OsString>,
    /// Variables for these ranks, over those of the job.
    pub env: Vec<(OsString, OsString)>,
    /// The directory in which they start, instead of the job's. A relative program is looked for from there.
    pub wdir: Option<PathBuf>,
}

impl Program {
    /// `n` ranks of a program.
    pub fn new<A: AsRef<OsStr>>(n: usize, argv: impl IntoIterator<Item = A>) -> Program {
        let argv = argv.into_iter().map(|a| a.as_ref().to_owned()).collect();
        Program { n, argv, env: Vec::new(), wdir: None }
    }
}

/// Which cores each rank may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// One core for each rank where all cores get as many, or one at most; else any.
    #[default]
    Auto,
    /// One core for each rank, shared when there are more ranks than cores.
    Core,
    /// All cores with the same last-level cache as the rank's own.
    L3,
    /// All cores of its NUMA node.
    Numa,
    /// All cores of its socket.
    Socket,
    /// Any.
    None,
}

/// The order in which the ranks of a node take its cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Map {
    /// Neighbouring ranks have neighbouring cores.
    #[default]
    Core,
    /// They are dealt out over the last-level caches in turn.
    L3,
    /// Over the NUMA nodes.
    Numa,
    /// Over the sockets.
    Socket,
}

/// Nodes that the ranks of one machine pretend to be on (`FMPL_NODE`): they share memory with those on their own node only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// So many, with equal blocks of neighbouring ranks.
    Blocks(u32),
    /// So many, to which the ranks are dealt in turn.
    Cyclic(u32),
}

impl Nodes {
    /// The number of nodes.
    pub fn count(self) -> u32 {
        match self {
            Nodes::Blocks(n) | Nodes::Cyclic(n) => n,
        }
    }

    /// The node of rank `rank` of `size`.
    pub fn of(self, rank: usize, size: usize) -> u32 {
        match self {
            Nodes::Blocks(n) => (rank as u64 * n as u64 / size.max(1) as u64) as u32,
            Nodes::Cyclic(n) => rank as u32 % n,
        }
    }
}

/// Where a stream of the ranks goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Where the launcher's own goes.
    #[default]
    Inherit,
    /// There too, but line by line with `[rank] ` in front; lines are not torn (up to 1 MiB).
    Tagged,
    /// Into the [`Outcome`].
    Capture,
    /// Nowhere.
    Null,
}

/// What the ranks are debugged with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Debugger {
    /// gdb says where a rank is when it gets a signal that means a defect, such as SIGSEGV: the stacks of all threads on the launcher's
    /// standard error, each line with `[rank N] ` in front.
    Backtraces,
    /// Each rank is stopped at its first instruction under a gdb of its own, in a window of a new session of tmux.
    Windows {
        /// The name of the session.
        session: String,
    },
}

/// One row an option of a job: what it is, where it begins, and what is given for it.
macro_rules! options {
    ($($(#[$doc:meta])+ $name:ident: $kind:ty = $begins:expr, |$given:ident: $from:ty| $value:expr;)*) => {
        /// A job to be started.
        #[derive(Clone, Debug)]
        pub struct Launcher {
            pub(super) programs: Vec<Program>,
            pub(super) env: Vec<(OsString, OsString)>,
            $($(#[$doc])+ pub(super) $name: $kind,)*
        }

        impl Launcher {
            /// Several programs in one job; the ranks of the first come first.
            pub fn of(programs: Vec<Program>) -> Launcher {
                Launcher { programs, env: Vec::new(), $($name: $begins,)* }
            }

            $($(#[$doc])+
            pub fn $name(mut self, $given: $from) -> Launcher {
                self.$name = $value;
                self
            })*
        }
    };
}

options! {
    /// The directory in which the ranks start.
    wdir: Option<PathBuf> = None, |dir: impl Into<PathBuf>| Some(dir.into());
    /// Which cores the ranks may use.
    bind: Bind = Bind::Auto, |bind: Bind| bind;
    /// In which order they take the cores.
    map: Map = Map::Core, |map: Map| map;
    /// Pretends that the ranks are on several nodes.
    nodes: Option<Nodes> = None, |nodes: Nodes| Some(nodes);
    /// The machines of the job, with the ranks of each ([`hosts::ranks_of`](super::hosts::ranks_of)); none: all ranks run
    /// on this one. A daemon is started on each, by the launch agent.
    hosts: Vec<(String, Vec<u32>)> = Vec::new(), |hosts: Vec<(String, Vec<u32>)>| hosts;
    /// The command that starts a daemon on a host, in place of `ssh`: it gets the host and a command for there behind its
    /// own words.
    agent: Option<Vec<OsString>> = None, |words: Vec<OsString>| Some(words);
    /// On other machines the command is `bin/fmpl` below this directory, in place of where it is here.
    prefix: Option<PathBuf> = None, |dir: impl Into<PathBuf>| Some(dir.into());
    /// Ends the job after this time, with [`Outcome::code`] 124.
    timeout: Option<Duration> = None, |time: Duration| Some(time);
    /// How long ranks have between SIGTERM and SIGKILL; 2 s by default.
    grace: Duration = Duration::from_secs(2), |time: Duration| time;
    /// Gives the launcher's standard input to rank 0; by default all ranks read `/dev/null`.
    stdin_to_rank_0: bool = false, |yes: bool| yes;
    /// Where the ranks' standard output goes.
    stdout: Output = Output::Inherit, |to: Output| to;
    /// Where the ranks' standard error goes.
    stderr: Output = Output::Inherit, |to: Output| to;
    /// One rank's failure does not end the others. It is reported all the same.
    keep_going: bool = false, |yes: bool| yes;
    /// SIGINT, SIGTERM, SIGHUP, SIGQUIT to this process end the job, and SIGTSTP stops it. They are blocked in the calling
    /// thread for the life of the job; a process with other threads must have them blocked there too.
    obey_signals: bool = false, |yes: bool| yes;
    /// Reports are not printed; [`Outcome::reports`] has them in any case.
    quiet: bool = false, |yes: bool| yes;
    /// Also reports what runs where.
    verbose: bool = false, |yes: bool| yes;
    /// Each rank's numbers are left in this directory, in a file with the rank's number as its name; those of other
    /// machines too.
    stats: Option<PathBuf> = None, |dir: impl Into<PathBuf>| Some(dir.into());
    /// Runs the ranks under a debugger; all on this machine.
    debugger: Option<Debugger> = None, |debugger: Debugger| Some(debugger);
    /// The job has more ranks than those that are started; all of these on this machine.
    ghosts: Option<Ghosts> = None, |ghosts: Ghosts| Some(ghosts);
}

impl Launcher {
    /// `n` ranks of a program.
    pub fn new<A: AsRef<OsStr>>(n: usize, argv: impl IntoIterator<Item = A>) -> Launcher {
        Launcher::of(vec![Program::new(n, argv)])
    }

    /// A variable for all ranks.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Launcher {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Whether daemons are needed: not all of the job is on this machine, or an agent is asked for.
    pub fn spans_machines(&self) -> bool {
        !(self.hosts.is_empty() || super::daemon::fleet::is_all_here(self))
    }

    /// Starts the ranks. They die with the calling thread.
    pub fn start(&self) -> Result<Job, Refused> {
        supervise::Supervisor::start(self).map(Job)
    }

    /// Starts the ranks and serves them until all have ended.
    pub fn run(&self) -> Result<Outcome, Refused> {
        Ok(self.start()?.wait())
    }
}

/// A job that runs. Dropped, it is killed.
pub struct Job(supervise::Supervisor);

impl Job {
    /// The processes of the ranks. A pid means the rank until [`wait`](Job::wait) returns, also when the rank has ended.
    pub fn pids(&self) -> Vec<i32> {
        self.0.pids()
    }

    /// Serves the ranks until all have ended. It may be called by another thread than the one that started them, which must
    /// live on meanwhile.
    pub fn wait(self) -> Outcome {
        self.0.wait()
    }
}

/// How a job went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// 0 when every rank did well, else the exit code of the first that did not (128 + the signal's number for a signal,
    /// 1 for one that left without finalize), of the rank that aborted, of the launcher's signal, or 124 for the time-out.
    pub code: i32,
    /// How each rank ended.
    pub ends: Vec<End>,
    /// What the launcher had to say.
    pub reports: Vec<String>,
    /// The job was ended by the time-out.
    pub timed_out: bool,
    /// Each rank's standard output, with [`Output::Capture`].
    pub stdout: Vec<Vec<u8>>,
    /// Each rank's standard error, with [`Output::Capture`].
    pub stderr: Vec<Vec<u8>>,
}

/// Why a job could not be started; none of its processes is left.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The exit code that says so in a shell: 127 program not found, 126 program cannot be executed, 2 wrong arguments, else 1.
    pub code: i32,
    /// What is wrong, and with which program or argument.
    pub text: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}
