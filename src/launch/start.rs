//! The start of a job: checks what was asked for, wires up each rank, and forks them all before waiting for any.

use super::bind;
use super::crew::{Crew, Rank};
use super::daemon::fleet::{self, Fleet};
use super::daemon::host_name;
use super::debug::Debug;
use super::embedded::{Bind, Debugger, Launcher, Map, Nodes, Output, Program, Refused};
use super::exec;
use super::place;
use super::relay::{Sink, Source, Typing};
use super::server::Server;
use super::supervise::{Ending, Hands, Member, Supervisor};
use crate::base::system::cpus::CpuSet;
use crate::base::system::exec::{News, Start, Step, fork};
use crate::base::system::process::{Process, Warden};
use crate::base::system::signals::{Signals, blocked_now, mind_children};
use crate::base::system::{limit, pipe, set_descriptors, set_waiting};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What the ranks of this machine are started with.
pub(super) struct Team<'a> {
    pub(super) programs: &'a [Program],
    pub(super) env: &'a [(OsString, OsString)],
    /// Where the ranks leave their numbers.
    pub(super) stats: Option<&'a Path>,
    pub(super) wdir: Option<&'a Path>,
    /// The number of ranks of the whole job.
    pub(super) size: usize,
    /// Those of this machine, with the numbers of their programs.
    pub(super) ranks: &'a [(u32, usize)],
    pub(super) input: Input,
    pub(super) outputs: [Output; 2],
    pub(super) debugger: Option<&'a Debugger>,
    pub(super) nodes: Option<Nodes>,
    pub(super) bind: Bind,
    pub(super) map: Map,
    pub(super) blocked: libc::sigset_t,
    pub(super) descriptors: libc::rlimit,
}

/// What rank 0 reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Nothing,
    /// What this process would read.
    Own,
    Pipe,
}

impl Supervisor {
    /// Starts all ranks.
    pub(crate) fn start(l: &Launcher) -> Result<Supervisor, Refused> {
        check(l)?;
        let away = l.spans_machines();
        let n: usize = l.programs.iter().map(|p| p.n).sum();
        let signals = if l.obey_signals { Some(Signals::block().map_err(system("signalfd"))?) } else { None };
        let blocked = signals.as_ref().map_or_else(blocked_now, |s| s.before);
        mind_children();
        let deadline = l.timeout.and_then(|t| Instant::now().checked_add(t));
        let mut maps = Vec::new();
        let (hands, members, hosts, typing) = if away {
            let posts = fleet::posts(l);
            let fleet = Fleet::start(l, &posts, blocked, descriptors_for(0, posts.len())?)?;
            let mut members: Vec<Member> = (0..n).map(|_| Member { pid: 0, host: 0, end: None }).collect();
            posts
                .iter()
                .for_each(|p| p.ranks.iter().for_each(|(rank, _)| members[*rank as usize].host = p.number as usize));
            let hosts = posts.into_iter().map(|p| p.host).collect();
            (Hands::Away(fleet), members, hosts, l.stdin_to_rank_0.then(Typing::away))
        } else {
            let programs = l.programs.iter().enumerate();
            let ranks: Vec<usize> = programs.flat_map(|(i, p)| std::iter::repeat_n(i, p.n)).collect();
            let server = match &l.ghosts {
                Some(ghosts) => Server::with_ghosts(&ranks, ghosts.clone()),
                None => Server::of_many_rounds(&ranks),
            };
            let team = Team {
                programs: &l.programs,
                env: &l.env,
                stats: l.stats.as_deref(),
                wdir: l.wdir.as_deref(),
                size: l.ghosts.as_ref().map_or(n, |ghosts| ghosts.world().max(n)),
                ranks: &(0..).zip(ranks).collect::<Vec<_>>(),
                input: match (l.stdin_to_rank_0, io::stdin().is_terminal()) {
                    (false, _) => Input::Nothing,
                    (true, false) => Input::Own,
                    (true, true) => Input::Pipe,
                },
                outputs: [l.stdout, l.stderr],
                debugger: l.debugger.as_ref(),
                nodes: l.nodes,
                bind: l.bind,
                map: l.map,
                blocked,
                descriptors: descriptors_for(n, 0)?,
            };
            let (crew, input) = Crew::start(&team, server, &mut maps)?;
            let members = crew.ranks.iter().map(|r| Member { pid: r.process.pid, host: 0, end: None }).collect();
            (Hands::Here(crew), members, vec![host_name()], input.map(Typing::new))
        };
        let mut s = Supervisor {
            hands,
            members,
            hosts,
            signals,
            typing,
            out: Sink::new(libc::STDOUT_FILENO),
            err: Sink::new(libc::STDERR_FILENO),
            deadline,
            grace: l.grace,
            keep_going: l.keep_going,
            quiet: l.quiet,
            ending: Ending::No,
            code: None,
            aborted: false,
            exited: None,
            timed_out: false,
            hurried: false,
            reports: Vec::new(),
        };
        if l.verbose {
            maps.into_iter().for_each(|map| s.report(map));
        }
        s.wait_for_fleet()?;
        Ok(s)
    }

    /// Until the ranks run on all machines. They are served meanwhile, since the first wait for the last.
    fn wait_for_fleet(&mut self) -> Result<(), Refused> {
        while let Hands::Away(fleet) = &mut self.hands {
            if let Some(refused) = fleet.take_refusal(&self.hosts, self.deadline) {
                return Err(refused);
            }
            if fleet.has_started() || self.ending != Ending::No {
                break;
            }
            self.turn();
        }
        Ok(())
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Refused {
    move |e| Refused { code: 1, text: format!("{what}: {e}") }
}

/// Makes room for six descriptors a rank, as many a daemon, and a few of our own, as far as the system lets us: the limits that held before.
pub(super) fn descriptors_for(ranks: usize, daemons: usize) -> Result<libc::rlimit, Refused> {
    raise_descriptor_limit(6 * (ranks + daemons) as u64 + 64).map_err(system("the limit of descriptors"))
}

impl Crew {
    /// Starts the ranks of this machine. Gives what rank 0 reads, where that is a pipe; `maps` is told what runs where.
    pub(super) fn start(
        team: &Team,
        server: Server,
        maps: &mut Vec<String>,
    ) -> Result<(Crew, Option<OwnedFd>), Refused> {
        let programs: Vec<PathBuf> = team.programs.iter().map(|p| find(team, p)).collect::<Result<_, _>>()?;
        let n = team.ranks.len();
        let debug = team.debugger.map(|how| Debug::prepare(how, team.ranks.iter().map(|r| r.0))).transpose()?;
        let news = News::new().map_err(system("pipe"))?;
        let warden = Warden::start(n).map_err(system("fork"))?;
        let mut crew = Crew { warden: Some(warden), ranks: Vec::with_capacity(n), server, debug: None };
        let mut input = None;
        // Whenever this is left with an error, dropping the crew kills and reaps the ranks that run already.
        for (i, set) in bind::for_ranks(n, team.bind, team.map).into_iter().enumerate() {
            let (rank, program) = team.ranks[i];
            let map = describe(rank, &team.programs[program], set.as_ref());
            let pipe = crew
                .start_rank(team, &programs[program], i, set, &news, debug.as_ref())
                .map_err(|e| Refused { code: 1, text: format!("starting rank {rank}: {e}") })?;
            input = input.or(pipe);
            maps.push(format!("{map}, pid {}", crew.ranks[i].process.pid));
        }
        match news.wait().map_err(system("waiting for the ranks to start"))? {
            None => {
                if let Some(debug) = debug {
                    crew.attach(debug).map_err(system("starting the debuggers"))?;
                }
                Ok((crew, input))
            }
            Some((i, step, e)) => {
                let (rank, program) = team.ranks[i as usize];
                Err(not_started(team, &team.programs[program], rank, step, e))
            }
        }
    }

    fn start_rank(
        &mut self,
        team: &Team,
        program: &Path,
        local: usize,
        bind: Option<CpuSet>,
        news: &News,
        debug: Option<&Debug>,
    ) -> io::Result<Option<OwnedFd>> {
        let (rank, number) = team.ranks[local];
        let p = &team.programs[number];
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut input = None;
        let terminal = debug.map(|d| d.terminal(local)).transpose()?.flatten();
        let stdin = match team.input {
            _ if terminal.is_some() => None,
            Input::Own if rank == 0 => None,
            Input::Pipe if rank == 0 => {
                let (read, write) = pipe()?;
                set_waiting(&write, false)?;
                input = Some(write);
                Some(read)
            }
            _ => Some(File::open("/dev/null")?.into()),
        };
        let outputs = if terminal.is_some() { [Output::Inherit; 2] } else { team.outputs };
        let (stdout, out) = stream(outputs[0], rank)?;
        let (stderr, err) = stream(outputs[1], rank)?;
        let place = [
            ("PMI_RANK", rank as usize),
            ("PMI_SIZE", team.size),
            ("MPI_LOCALRANKID", local),
            ("MPI_LOCALNRANKS", team.ranks.len()),
            ("FMPL_RUN", 1),
            // 0: the system does not say.
            ("FMPL_CORES", CpuSet::allowed().map_or(0, |set| set.cpus().len())),
        ];
        let mut env: Vec<_> = place.iter().map(|(k, v)| (k.into(), v.to_string().into())).collect();
        if let Some(nodes) = team.nodes {
            env.push(("FMPL_NODE".into(), nodes.of(rank as usize, team.size).to_string().into()));
        }
        env.extend(team.stats.map(|dir| ("FMPL_STATS".into(), dir.into())));
        env.extend(team.env.iter().chain(&p.env).cloned());
        env.push(("PMI_FD".into(), theirs.as_raw_fd().to_string().into()));
        let start = Start {
            program,
            argv: &p.argv,
            env: exec::variables(env),
            wdir: p.wdir.as_deref().or(team.wdir),
            bind,
            stdio: terminal.map_or([stdin, stdout, stderr], |t| t.map(Some)),
            held: debug.is_some(),
            blocked: team.blocked,
            descriptors: team.descriptors,
            handed: Some(theirs.into()),
            leash: self.warden.as_ref().map_or(-1, Warden::leash),
        };
        let process = Process::of(fork(local as u32, &start, news)?)?;
        self.ranks.push(Rank {
            number: rank,
            debugger: None,
            process,
            socket: Some(ours.into()),
            streams: [out, err, None],
        });
        Ok(input)
    }

    /// Lets the ranks, which are all held, go on under their debuggers.
    fn attach(&mut self, mut debug: Debug) -> io::Result<()> {
        for (i, rank) in self.ranks.iter_mut().enumerate() {
            rank.process.leave_stopped()?;
            if let Some((gdb, says)) = debug.attach(i, rank.number, rank.process.pid)? {
                rank.debugger = Some(gdb);
                rank.streams[2] = Some(says);
            }
        }
        debug.hand_over();
        self.debug = Some(debug);
        Ok(())
    }
}

/// Where the program of some ranks is.
fn find(t: &Team, p: &Program) -> Result<PathBuf, Refused> {
    let given = p.env.iter().rev().chain(t.env.iter().rev()).find(|(k, _)| k == "PATH").map(|(_, v)| v.clone());
    let path = given.or_else(|| std::env::var_os("PATH"));
    exec::find(&p.argv[0], path.as_deref()).map_err(|e| not_started(t, p, 0, Step::Exec, e))
}

fn not_started(t: &Team, p: &Program, rank: u32, step: Step, e: io::Error) -> Refused {
    let name = p.argv[0].display();
    let has_slash = p.argv[0].as_encoded_bytes().contains(&b'/');
    let dir = p.wdir.as_deref().or(t.wdir).unwrap_or(Path::new(""));
    let here = dir.join(&p.argv[0]);
    let (code, text) = match (step, e.raw_os_error()) {
        (Step::Exec, Some(libc::ENOENT)) if has_slash && here.is_file() => {
            (127, format!("{name} names an interpreter (its first line, or the loader) that was not found"))
        }
        (Step::Exec, Some(libc::ENOENT | libc::ENOTDIR)) => {
            let mend = match has_slash {
                true => String::new(),
                false if here.is_file() => format!(" in PATH; the one in this directory is ./{name}"),
                false => " in PATH".into(),
            };
            (127, format!("program not found: {name}{mend}"))
        }
        (Step::Exec, _) if here.is_dir() => (126, format!("{name} cannot be executed: it is a directory")),
        (Step::Exec, Some(libc::EACCES)) => {
            let mend = "a program needs `chmod +x`, a script the name of what runs it before its own";
            (126, format!("{name} cannot be executed: {e}; {mend}"))
        }
        (Step::Exec, _) => (126, format!("{name} cannot be executed: {e}")),
        (Step::Chdir, _) => (2, format!("{}: {e}", dir.display())),
        (Step::Trace, _) => (1, format!("{name} cannot be run under a debugger: ptrace is refused here: {e}")),
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
        let dir = p.wdir.as_ref().or(l.wdir.as_ref());
        if let Some(dir) = dir.filter(|d| l.hosts.is_empty() && !d.is_dir()) {
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
    if l.debugger.is_some() && l.spans_machines() {
        return refuse(
            "--debug is for ranks on this machine; elsewhere: gdb -p PID (-v shows where each rank runs)".into(),
        );
    }
    let placed: usize = l.hosts.iter().map(|(_, ranks)| ranks.len()).sum();
    if !l.hosts.is_empty() && (l.nodes.is_some() || placed != l.programs.iter().map(|p| p.n).sum()) {
        return refuse("the hosts do not fit the ranks".into());
    }
    match l.programs.iter().try_fold(0usize, |sum, p| sum.checked_add(p.n)) {
        Some(n) if n <= 1 << 16 => Ok(()),
        _ => refuse("more than 65536 ranks cannot run on one machine".into()),
    }
}

fn describe(rank: u32, program: &Program, set: Option<&CpuSet>) -> String {
    let core = set.map_or("any core".into(), |s| match &s.cpus()[..] {
        [one] => format!("core {one}"),
        several => format!("cores {}", place::ranges(several.iter().map(|c| *c as u32))),
    });
    format!("rank {rank}: {} on {core}", program.argv[0].display())
}

/// What the rank gets, and what of it we read.
fn stream(output: Output, rank: u32) -> io::Result<(Option<OwnedFd>, Option<Source>)> {
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

fn raise_descriptor_limit(need: u64) -> io::Result<libc::rlimit> {
    let before = limit(libc::RLIMIT_NOFILE)?;
    if before.rlim_cur < need {
        set_descriptors(&libc::rlimit { rlim_cur: need.min(before.rlim_max), rlim_max: before.rlim_max });
    }
    Ok(before)
}
