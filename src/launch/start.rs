//! The start of a job: checks what was asked for, wires up each rank, and forks them all before waiting for any.

use super::bind;
use super::embedded::{Launcher, Output, Program, Refused};
use super::exec;
use super::place;
use super::relay::{Sink, Source, Typing};
use super::server::Server;
use super::supervise::{Ending, Rank, Supervisor};
use crate::base::system::cpus::CpuSet;
use crate::base::system::exec::{News, Start, Step, fork};
use crate::base::system::process::{Process, Warden};
use crate::base::system::signals::{Signals, blocked_now, mind_children};
use crate::base::system::{limit, pipe, set_descriptors, set_waiting};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What all ranks have in common.
struct Common<'a> {
    launcher: &'a Launcher,
    n: usize,
    blocked: libc::sigset_t,
    descriptors: libc::rlimit,
    news: News,
}

impl Supervisor {
    /// Starts all ranks.
    pub(crate) fn start(l: &Launcher) -> Result<Supervisor, Refused> {
        check(l)?;
        let system = |what: &'static str| move |e: io::Error| Refused { code: 1, text: format!("{what}: {e}") };
        let programs: Vec<PathBuf> = l.programs.iter().map(|p| find(l, p)).collect::<Result<_, _>>()?;
        let n: usize = l.programs.iter().map(|p| p.n).sum();
        let signals = if l.signals { Some(Signals::block().map_err(system("signalfd"))?) } else { None };
        let common = Common {
            launcher: l,
            n,
            blocked: signals.as_ref().map_or_else(blocked_now, |s| s.before),
            // Six descriptors a rank and a few of our own.
            descriptors: raise_descriptor_limit(6 * n as u64 + 64).map_err(system("the limit of descriptors"))?,
            news: News::new().map_err(system("pipe"))?,
        };
        mind_children();
        let sets = bind::for_ranks(n, l.bind, l.map);
        let appnums: Vec<usize> =
            l.programs.iter().enumerate().flat_map(|(i, p)| std::iter::repeat_n(i, p.n)).collect();

        let mut s = Supervisor {
            warden: Some(Warden::start(n).map_err(system("fork"))?),
            ranks: Vec::with_capacity(n),
            server: Server::of_many_rounds(&appnums),
            signals,
            typing: None,
            out: Sink::new(libc::STDOUT_FILENO),
            err: Sink::new(libc::STDERR_FILENO),
            host: host_name(),
            deadline: l.timeout.and_then(|t| Instant::now().checked_add(t)),
            grace: l.grace,
            keep_going: l.keep_going,
            quiet: l.quiet,
            ending: Ending::No,
            code: None,
            aborted: false,
            timed_out: false,
            hurried: false,
            reports: Vec::new(),
        };
        // Whenever this is left with an error, dropping `s` kills and reaps the ranks that run already.
        for (rank, (appnum, set)) in appnums.iter().zip(sets).enumerate() {
            let map = l.verbose.then(|| describe(rank, &l.programs[*appnum], set.as_ref()));
            s.start_rank(&common, &l.programs[*appnum], &programs[*appnum], rank, set)
                .map_err(|e| Refused { code: 1, text: format!("starting rank {rank}: {e}") })?;
            if let Some(map) = map {
                s.report(format!("{map}, pid {}", s.ranks[rank].process.pid));
            }
        }
        match common.news.wait().map_err(system("waiting for the ranks to start"))? {
            None => Ok(s),
            Some((rank, step, e)) => Err(not_started(l, &l.programs[appnums[rank as usize]], rank, step, e)),
        }
    }

    fn start_rank(
        &mut self,
        c: &Common,
        p: &Program,
        program: &Path,
        rank: usize,
        bind: Option<CpuSet>,
    ) -> io::Result<()> {
        let l = c.launcher;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stdin = match (l.stdin && rank == 0, io::stdin().is_terminal()) {
            (true, true) => {
                let (read, write) = pipe()?;
                set_waiting(&write, false)?;
                self.typing = Some(Typing::new(write));
                Some(read)
            }
            (true, false) => None,
            (false, _) => Some(File::open("/dev/null")?.into()),
        };
        let (stdout, out) = stream(l.stdout, rank)?;
        let (stderr, err) = stream(l.stderr, rank)?;
        let place = [
            ("PMI_RANK", rank),
            ("PMI_SIZE", c.n),
            ("MPI_LOCALRANKID", rank),
            ("MPI_LOCALNRANKS", c.n),
            ("FMPL_RUN", 1),
        ];
        let mut env: Vec<_> = place.iter().map(|(k, v)| (k.into(), v.to_string().into())).collect();
        if let Some(nodes) = l.nodes {
            env.push(("FMPL_NODE".into(), nodes.of(rank, c.n).to_string().into()));
        }
        env.extend(l.env.iter().chain(&p.env).cloned());
        env.push(("PMI_FD".into(), theirs.as_raw_fd().to_string().into()));
        let start = Start {
            program,
            argv: &p.argv,
            env: exec::variables(env),
            wdir: p.wdir.as_deref().or(l.wdir.as_deref()),
            bind,
            stdio: [stdin, stdout, stderr],
            blocked: c.blocked,
            descriptors: c.descriptors,
            handed: theirs.into(),
            leash: self.warden.as_ref().map_or(-1, Warden::leash),
        };
        let process = Process::of(fork(rank as u32, &start, &c.news)?)?;
        self.ranks.push(Rank { process, socket: Some(ours.into()), stdout: out, stderr: err });
        Ok(())
    }
}

/// Where the program of some ranks is.
fn find(l: &Launcher, p: &Program) -> Result<PathBuf, Refused> {
    let given = p.env.iter().rev().chain(l.env.iter().rev()).find(|(k, _)| k == "PATH").map(|(_, v)| v.clone());
    let path = given.or_else(|| std::env::var_os("PATH"));
    exec::find(&p.argv[0], path.as_deref()).map_err(|e| not_started(l, p, 0, Step::Exec, e))
}

fn not_started(l: &Launcher, p: &Program, rank: u32, step: Step, e: io::Error) -> Refused {
    let name = p.argv[0].display();
    let has_slash = p.argv[0].as_encoded_bytes().contains(&b'/');
    let dir = p.wdir.as_deref().or(l.wdir.as_deref()).unwrap_or(Path::new(""));
    let (code, text) = match (step, e.raw_os_error()) {
        (Step::Exec, Some(libc::ENOENT)) if has_slash && dir.join(&p.argv[0]).is_file() => {
            (127, format!("{name} names an interpreter (its first line, or the loader) that was not found"))
        }
        (Step::Exec, Some(libc::ENOENT | libc::ENOTDIR)) => (127, format!("program not found: {name}")),
        (Step::Exec, _) => (126, format!("{name} cannot be executed: {e}")),
        (Step::Chdir, _) => (2, format!("{}: {e}", dir.display())),
        (Step::Prepare, _) => (1, format!("starting rank {rank} ({name}): {e}")),
    };
    Refused { code, text }
}

fn check(l: &Launcher) -> Result<(), Refused> {
    let refuse = |text: String| Err(Refused { code: 2, text });
    for p in &l.programs {
        let Some(name) = p.argv.first().filter(|a| !a.is_empty()) else { return refuse("no program is given".into()) };
        if p.n < 1 {
            return refuse(format!("-n {}: at least one rank of {} must run", p.n, name.display()));
        }
        if let Some(dir) = p.wdir.as_ref().or(l.wdir.as_ref()).filter(|d| !d.is_dir()) {
            return refuse(format!("{} is not a directory to start in", dir.display()));
        }
        if let Some((name, _)) =
            l.env.iter().chain(&p.env).find(|(k, _)| k.is_empty() || k.as_encoded_bytes().contains(&b'='))
        {
            return refuse(format!("{:?} cannot be the name of a variable", name.display().to_string()));
        }
    }
    if l.programs.is_empty() {
        return refuse("no program is given".into());
    }
    if l.nodes.is_some_and(|nodes| nodes.count() < 1) {
        return refuse("at least one node is needed".into());
    }
    match l.programs.iter().try_fold(0usize, |sum, p| sum.checked_add(p.n)) {
        Some(n) if n <= 1 << 16 => Ok(()),
        _ => refuse("more than 65536 ranks cannot run on one machine".into()),
    }
}

fn describe(rank: usize, program: &Program, set: Option<&CpuSet>) -> String {
    let core = set.map_or("any core".into(), |s| match &s.cpus()[..] {
        [one] => format!("core {one}"),
        several => format!("cores {}", place::ranges(several.iter().map(|c| *c as u32))),
    });
    format!("rank {rank}: {} on {core}", program.argv[0].display())
}

/// What the rank gets, and what of it we read.
fn stream(output: Output, rank: usize) -> io::Result<(Option<OwnedFd>, Option<Source>)> {
    let tag = match output {
        Output::Inherit => return Ok((None, None)),
        Output::Null => return Ok((Some(File::options().write(true).open("/dev/null")?.into()), None)),
        Output::Tagged => Some(format!("[{rank}] ")),
        Output::Capture => None,
    };
    let (read, write) = pipe()?;
    set_waiting(&read, false)?;
    Ok((Some(write), Some(Source::new(read, tag))))
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "localhost".into(), |h| h.trim().to_owned())
}

/// Makes room for so many descriptors, as far as the system lets us: the limits that held before.
fn raise_descriptor_limit(need: u64) -> io::Result<libc::rlimit> {
    let before = limit(libc::RLIMIT_NOFILE)?;
    if before.rlim_cur < need {
        set_descriptors(&libc::rlimit { rlim_cur: need.min(before.rlim_max), rlim_max: before.rlim_max });
    }
    Ok(before)
}
