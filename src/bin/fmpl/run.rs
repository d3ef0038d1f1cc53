//! `fmpl run`: the command line in front of [`fmpl::launch::embedded`].

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use fmpl::launch::embedded::{Bind, Launcher, Map, Nodes, Output, Program};
use fmpl::launch::hosts::{self, Wanted};

use super::stats::Place;

mod debug;
mod spelling;

/// The options of `fmpl run`.
#[derive(Args)]
#[command(
    override_usage = "fmpl run [-n <N>] [OPTIONS] [--] <PROGRAM> [ARGS]... [: -n <N> [--env K=V] [--wdir DIR] [--] <PROGRAM> [ARGS]...]",
    after_help = "\
Several programs form one job when they are separated by ':'. A ':' with no option after it is an argument of the program.
Rank 0 has the standard input, the others read /dev/null. The exit code is that of the first rank that failed, 128 + the
signal's number for a signal, 124 for the time-out, 127 for a program that is not found. When a rank fails the others get
SIGTERM, and SIGKILL 2 s later; so they do on Ctrl-C, and a second Ctrl-C kills at once.

Spellings of mpirun and mpiexec are understood too: -np, -ppn, -N, -host, -hostfile, -machinefile, -f, -bind-to, -map-by,
-genv NAME VALUE, -env NAME VALUE, -genvlist A,B, -wdir, -l."
)]
pub struct Options {
    #[command(flatten)]
    first: Part,
    /// Which cores a rank may use: one; all with its last-level cache, of its NUMA node, or of its socket; or any. By default one
    /// each, unless some cores would be shared and others not
    #[arg(long, visible_alias = "bind-to", value_name = "WHAT")]
    bind: Option<To>,
    /// How ranks take places: neighbours on neighbouring cores (core, slot), or dealt out in turn over caches, NUMA nodes, sockets or
    /// machines (node); ppr:N:node: so many on each machine
    #[arg(long, value_name = "WHAT", value_parser = map_by)]
    map_by: Option<By>,
    /// More ranks than there are slots: they share cores
    #[arg(long)]
    oversubscribe: bool,
    /// The machines, with the number of ranks for each; without it, and without --hostfile, those that Slurm, PBS, LSF or Grid
    /// Engine has given this job
    #[arg(short = 'H', long, value_name = "HOST[:N],...")]
    host: Vec<String>,
    /// The same in a file, a line for each: 'HOST:N' or 'HOST slots=N max_slots=M'
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// So many ranks on each machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    ppn: Option<u32>,
    /// What starts a command on another machine, in place of ssh: it gets the host and the command behind its own words
    #[arg(long, value_name = "COMMAND")]
    launch_agent: Option<String>,
    /// On other machines fmpl is DIR/bin/fmpl, in place of where it is here
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Pretend that the ranks are on K nodes: equal blocks of them, or with ':cyclic' dealt out in turn
    #[arg(long, value_name = "K[:cyclic]", value_parser = nodes)]
    nodes: Option<Nodes>,
    /// End the job after so many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Put '[rank] ' in front of every line that a rank prints
    #[arg(long)]
    tag_output: bool,
    /// Load this shared library into every rank first (LD_PRELOAD); a bare name is looked for next to fmpl and in ../lib
    #[arg(long, value_name = "LIBRARY")]
    preload: Option<OsString>,
    /// At the end, what each rank has sent by which way, how it waited, its memory: a table on standard error, or JSON in a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    stats: Option<PathBuf>,
    /// Run the ranks under gdb: each in a window of a tmux session (tmux, the default in a terminal where tmux is installed), or with
    /// the stacks of all threads printed when a rank crashes (backtrace)
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    debug: Option<debug::How>,
    /// A rank's failure does not end the others
    #[arg(long)]
    keep_going: bool,
    /// Say which rank runs where
    #[arg(short, long)]
    verbose: bool,
}

/// What each program of a job has for itself.
#[derive(Args)]
struct Part {
    /// The number of ranks; without it one for each core
    #[arg(short, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=65536))]
    n: Option<u32>,
    /// A variable for the ranks' environment
    #[arg(long, value_name = "K=V", value_parser = variable)]
    env: Vec<(OsString, OsString)>,
    /// The same; without a value, the one that it has here
    #[arg(short, value_name = "NAME[=VALUE]", value_parser = own_variable)]
    x: Vec<(OsString, OsString)>,
    /// The directory in which the ranks start, and from which a relative program is looked for
    #[arg(long, value_name = "DIR")]
    wdir: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Parser)]
#[command(
    name = "fmpl run … :",
    no_binary_name = true,
    override_usage = ": -n <N> [--env K=V] [--wdir DIR] [--] <PROGRAM> [ARGS]..."
)]
struct Further {
    #[command(flatten)]
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// One core: rank i has the i-th
    Core,
    /// All cores with the same last-level cache
    #[value(alias = "l3cache")]
    L3,
    /// All cores of a NUMA node
    Numa,
    /// All cores of a socket
    #[value(alias = "package")]
    Socket,
    /// Any core
    None,
}

/// What `--map-by` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct By {
    map: Map,
    /// Machines are dealt one rank each in turn.
    in_turn: bool,
    /// So many on each machine.
    each: Option<u32>,
}

impl Part {
    /// The variables, those given by `-x` in front.
    fn env(&mut self) -> Vec<(OsString, OsString)> {
        std::mem::take(&mut self.x).into_iter().chain(std::mem::take(&mut self.env)).collect()
    }

    fn program(mut self) -> Result<Program, String> {
        let env = self.env();
        let n = self.n.ok_or(NUMBERLESS)?;
        Ok(Program { n: n as usize, argv: self.program, env, wdir: self.wdir })
    }
}

const NUMBERLESS: &str = "of several programs each needs its number of ranks (-n)";

/// The words of the command line behind `run`, in our own spellings.
pub fn spelled(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let command = Options::augment_args(clap::Command::new("run"));
    let takes_value = |option: &str| {
        let is_it = |a: &&clap::Arg| match option.strip_prefix("--") {
            Some(long) => a.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long)),
            None => option.len() == 2 && a.get_short() == option.chars().nth(1),
        };
        let optional = |a: &clap::Arg| a.get_num_args().is_some_and(|n| n.min_values() == 0);
        command.get_arguments().find(is_it).is_some_and(|a| a.get_action().takes_values() && !optional(a))
    };
    spelling::translated(words, takes_value)
}

/// Runs the job; its exit code is ours.
pub fn main(mut o: Options) -> ExitCode {
    let stats = o.stats.take();
    let debug = o.debug.map(debug::View::of);
    let mut launcher = match o.launcher() {
        Ok(launcher) => launcher,
        Err(text) => return refused(2, &text),
    };
    let mut told = None;
    if let Some(file) = &stats {
        match Place::new() {
            Ok(place) => {
                launcher = launcher.stats(place.path());
                told = Some((place, file));
            }
            Err(e) => return refused(1, &format!("--stats: a directory for the numbers: {e}")),
        }
    }
    if let Some(view) = &debug {
        launcher = view.set(launcher);
    }
    let job = match launcher.start() {
        Ok(job) => job,
        Err(e) => return refused(e.code, &e.text),
    };
    let shown = debug.as_ref().and_then(debug::View::show);
    let outcome = job.wait();
    if let Some(shown) = shown {
        shown.end(&outcome);
    }
    if let Some((place, file)) = &told
        && let Err(text) = place.tell(&outcome, file)
    {
        eprintln!("fmpl run: {text}");
    }
    ExitCode::from(outcome.code as u8)
}

impl Options {
    /// What is to be run where, and how.
    fn launcher(mut self) -> Result<Launcher, String> {
        let further = self.further_programs()?;
        let more: usize = further.iter().map(|p| p.n).sum();
        self.fits_together()?;
        let hosts = self.hosts(self.first.n.map(|n| n + more as u32))?;
        let placed: usize = hosts.iter().map(|(_, ranks)| ranks.len()).sum();
        let n = match (self.first.n, placed) {
            (Some(n), _) => n as usize,
            (None, 0) => fmpl::launch::cores(),
            (None, placed) => placed,
        };
        // --env and --wdir of the first part are the job's: they stand in front of everything.
        let env = self.first.env();
        let first = Program::new(n, self.first.program);
        let output = if self.tag_output { Output::Tagged } else { Output::Inherit };
        let mut launcher = Launcher::of(std::iter::once(first).chain(further).collect())
            .bind(match self.bind {
                None => Bind::Auto,
                Some(To::Core) => Bind::Core,
                Some(To::L3) => Bind::L3,
                Some(To::Numa) => Bind::Numa,
                Some(To::Socket) => Bind::Socket,
                Some(To::None) => Bind::None,
            })
            .map(self.map_by.map_or(Map::Core, |by| by.map))
            .hosts(hosts)
            .stdin_to_rank_0(true)
            .stdout(output)
            .stderr(output)
            .keep_going(self.keep_going)
            .obey_signals(true)
            .verbose(self.verbose);
        if let Some(agent) = &self.launch_agent {
            launcher = launcher.agent(agent.split_whitespace().map(Into::into).collect());
        }
        if let Some(dir) = &self.prefix {
            launcher = launcher.prefix(dir);
        }
        if let Some(nodes) = self.nodes {
            launcher = launcher.nodes(nodes);
        }
        if let Some(time) = self.timeout {
            launcher = launcher.timeout(time);
        }
        if let Some(dir) = &self.first.wdir {
            launcher = launcher.wdir(dir);
        }
        if let Some(library) = &self.preload {
            launcher = launcher.env("LD_PRELOAD", preload(library)?);
        }
        Ok(env.iter().fold(launcher, |launcher, (name, value)| launcher.env(name, value)))
    }

    /// The programs behind each ':', which are taken off the first one's words. A wrong command line ends here, with clap's own message.
    fn further_programs(&mut self) -> Result<Vec<Program>, String> {
        let mut parts = split(std::mem::take(&mut self.first.program)).into_iter();
        self.first.program = parts.next().unwrap_or_default();
        let parts: Vec<_> = parts.collect();
        let read = |part: &Vec<OsString>| Further::parse_from(part).part.program();
        let further: Vec<Program> = super::with_room(|| parts.iter().map(read).collect::<Result<_, _>>())?;
        if further.is_empty() || self.first.n.is_some() { Ok(further) } else { Err(NUMBERLESS.into()) }
    }

    /// Refuses options of which one makes another senseless.
    fn fits_together(&self) -> Result<(), String> {
        if self.bind == Some(To::None) && self.map_by.is_some_and(|by| by.map != Map::Core) {
            return Err("--map-by says which cores the ranks get, and --bind-to none that they get none".into());
        }
        let listed = !self.host.is_empty() || self.hostfile.is_some();
        match () {
            () if !self.host.is_empty() && self.hostfile.is_some() => {
                Err("the machines are named by -H or by --hostfile, not by both".into())
            }
            () if self.nodes.is_some() && (listed || self.ppn.is_some() || self.launch_agent.is_some()) => Err(
                "--nodes pretends that this machine is several; it does not go with real ones (-H, --hostfile, --ppn)"
                    .into(),
            ),
            () if self.ppn.is_some() && self.map_by.is_some_and(|by| by.each.is_some()) => {
                Err("--ppn and --map-by ppr say the same; give one of them".into())
            }
            () => Ok(()),
        }
    }

    /// The machines and the ranks of each, of so many in all; none: this machine.
    fn hosts(&self, wanted: Option<u32>) -> Result<Vec<(String, Vec<u32>)>, String> {
        let (from, found) = match &self.hostfile {
            _ if self.nodes.is_some() => return Ok(Vec::new()),
            _ if !self.host.is_empty() => (String::new(), hosts::of_list(&self.host.join(","))?),
            Some(file) => {
                let from = file.display().to_string();
                let text = std::fs::read_to_string(file).map_err(|e| format!("--hostfile {from}: {e}"))?;
                (from, hosts::of_file(&text).map_err(|e| format!("--hostfile {}: {e}", file.display()))?)
            }
            None => {
                let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
                match hosts::of_batch_system(var, |file| std::fs::read_to_string(file))? {
                    Some((from, found)) => (from.to_owned(), found),
                    None if self.ppn.is_some() => (String::new(), hosts::of_list("localhost")?),
                    None if self.launch_agent.is_some() || self.prefix.is_some() => {
                        return Err("--launch-agent and --prefix are for other machines, and none is named (-H)".into());
                    }
                    None => return Ok(Vec::new()),
                }
            }
        };
        let by = self.map_by.unwrap_or(By { map: Map::Core, in_turn: false, each: None });
        let each = self.ppn.or(by.each);
        let wanted = Wanted { n: wanted, each, in_turn: by.in_turn, oversubscribe: self.oversubscribe };
        let at = |e: String| if from.is_empty() { e } else { format!("{from}: {e}") };
        let ranks = hosts::ranks_of(&found, wanted).map_err(at)?;
        Ok(found.into_iter().map(|host| host.name).zip(ranks).collect())
    }
}

/// Says why a job is not started.
pub fn refused(code: i32, text: &str) -> ExitCode {
    eprintln!("fmpl run: {text}");
    ExitCode::from(code as u8)
}

/// The parts of a command line between those ':' that have an option after them.
fn split(words: Vec<OsString>) -> Vec<Vec<OsString>> {
    let mut parts = vec![Vec::new()];
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word == ":" && words.peek().is_some_and(|w| w.as_encoded_bytes().starts_with(b"-")) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(word);
        }
    }
    parts
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("a variable is given as NAME=VALUE".into()),
    }
}

/// Also without a value.
fn own_variable(text: &str) -> Result<(OsString, OsString), String> {
    if text.contains('=') {
        return variable(text);
    }
    let value = std::env::var_os(text).ok_or_else(|| format!("there is no variable {text} here to be handed on"))?;
    Ok((text.into(), value))
}

fn map_by(text: &str) -> Result<By, String> {
    let by = |map| By { map, in_turn: false, each: None };
    let wrong = || "possible values: slot, core, l3, numa, socket, node, ppr:N:node".to_owned();
    Ok(match text {
        "core" | "slot" => by(Map::Core),
        "l3" | "l3cache" => by(Map::L3),
        "numa" => by(Map::Numa),
        "socket" | "package" => by(Map::Socket),
        "node" => By { in_turn: true, ..by(Map::Core) },
        _ => {
            let each = text.strip_prefix("ppr:").and_then(|t| t.strip_suffix(":node")).and_then(|n| n.parse().ok());
            By { each: Some(each.filter(|n| (1..=65536).contains(n)).ok_or_else(wrong)?), ..by(Map::Core) }
        }
    })
}

fn nodes(text: &str) -> Result<Nodes, String> {
    let (count, deal) = text.split_once(':').map_or((text, Nodes::Blocks as fn(u32) -> Nodes), |(count, how)| {
        (if how == "cyclic" { count } else { "" }, Nodes::Cyclic as fn(u32) -> Nodes)
    });
    let wrong = || "a number of nodes above 0, with :cyclic behind it or not".to_owned();
    count.parse().ok().filter(|n| *n > 0).map(deal).ok_or_else(wrong)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "a time-out is a number of seconds above 0".to_owned();
    let s: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(s).ok().filter(|d| !d.is_zero()).ok_or_else(wrong)
}

/// The value of LD_PRELOAD that loads the library before what is there already.
fn preload(library: &OsStr) -> Result<OsString, String> {
    let mut tried = Vec::new();
    if library.as_encoded_bytes().contains(&b'/') {
        tried.push(PathBuf::from(library));
    } else {
        let exe =
            std::env::current_exe().map_err(|e| format!("--preload {}: where fmpl is: {e}", library.display()))?;
        let here = exe.parent().unwrap_or(Path::new("."));
        tried.extend([here.join(library), here.join("../lib").join(library)]);
    }
    let Some(path) = tried.iter().find_map(|p| p.canonicalize().ok().filter(|p| p.is_file())) else {
        let places: Vec<_> = tried.iter().map(|p| p.display().to_string()).collect();
        return Err(format!("--preload {}: there is no file {}", library.display(), places.join(" nor ")));
    };
    if path.as_os_str().as_encoded_bytes().iter().any(|b| b": ".contains(b)) {
        return Err(format!("--preload {}: the loader takes no path with a blank or a colon in it", path.display()));
    }
    let mut value = path.into_os_string();
    if let Some(before) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        value.push(":");
        value.push(before);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nodes() {
        assert_eq!(nodes("3"), Ok(Nodes::Blocks(3)));
        assert_eq!(nodes("3:cyclic"), Ok(Nodes::Cyclic(3)));
        assert!(["", "0", "-1", "3:", "3:blocks", "x"].iter().all(|bad| nodes(bad).is_err()));
        let of = |n: Nodes| (0..5).map(|r| n.of(r, 5)).collect::<Vec<_>>();
        assert_eq!((of(Nodes::Blocks(2)), of(Nodes::Cyclic(2))), (vec![0, 0, 0, 1, 1], vec![0, 1, 0, 1, 0]));
    }

    #[test]
    fn colons_split_only_before_options() {
        let words = |s: &str| s.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(split(words("a b : -n 2 c")), [words("a b"), words("-n 2 c")]);
        assert_eq!(split(words("sh -c :")), [words("sh -c :")]);
        assert_eq!(split(words("sh -c : x : --env A=B -n 1 y")), [words("sh -c : x"), words("--env A=B -n 1 y")]);
    }
}
