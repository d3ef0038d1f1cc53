//! The launcher's side of a job on several machines: what it says to their daemons, and hears from them.

use super::OUTPUT_WINDOW;
use super::branches::{Branches, SSH, is_here};
use super::words::{Agent, Down, Plan, Post, Up};
use crate::base::config::Config;
use crate::base::config::LAUNCHER_NAMES;
use crate::launch::crew::News;
use crate::launch::embedded::{Launcher, Output, Refused};
use crate::launch::relay::{Lines, Sink, Typing};
use crate::launch::server::Server;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(in crate::launch) use super::branches::Happening;

/// So long a daemon may take to say that killed ranks have ended.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Daemons that are to end, and from which nothing is heard for so long, are given up: a living one says something more often.
const SILENT: Duration = Duration::from_secs(40);

/// See the head of this file.
pub(in crate::launch) struct Fleet {
    branches: Branches,
    server: Server,
    /// The machine of each rank, by its daemon's number.
    of: Vec<u32>,
    /// Lines that ranks have begun, or all that they have said: output and error.
    lines: Vec<[Lines; 2]>,
    /// Daemons whose ranks do not all run yet.
    missing: Vec<bool>,
    /// Until when they must.
    patience: Instant,
    /// Output that was taken from each daemon, which it does not know yet.
    owed: Vec<u32>,
    /// Of a stream that nobody reads, said once.
    closed: [bool; 2],
    refused: Option<Refused>,
    /// Where the ranks' numbers go.
    stats: Option<PathBuf>,
    give_up_at: Option<Instant>,
    finished: bool,
    said: Vec<Said>,
}

/// What the launcher's loop has to know.
pub(in crate::launch) enum Said {
    News(News),
    Pids(Vec<(u32, i32)>),
    Output(u32, usize, Vec<u8>),
    Taken(u32),
    Text(String),
    Lost(RangeInclusive<usize>, String),
}

/// What each machine does, in the order of the hosts; those without ranks do nothing.
pub(in crate::launch) fn posts(l: &Launcher) -> Vec<Post> {
    let programs: Vec<u32> = (0..).zip(&l.programs).flat_map(|(i, p)| std::iter::repeat_n(i, p.n)).collect();
    let busy = l.hosts.iter().filter(|(_, ranks)| !ranks.is_empty());
    let post = |(number, (host, ranks)): (u32, &(String, Vec<u32>))| Post {
        number,
        host: host.clone(),
        ranks: ranks.iter().map(|rank| (*rank, programs[*rank as usize])).collect(),
    };
    (0..).zip(busy).map(post).collect()
}

/// Is all of the job on this machine, where no agent is asked for? Then no daemon is needed.
pub(in crate::launch) fn is_all_here(l: &Launcher) -> bool {
    let mut busy = l.hosts.iter().filter(|(_, ranks)| !ranks.is_empty());
    l.agent.is_none() && busy.all(|(host, _)| is_here(host))
}

/// Where all ranks are, as PMI says it: first node, nodes, ranks on each, in turn until all ranks are placed.
fn mapping(of: &[u32]) -> String {
    let mut parts: Vec<(u32, u32, u32)> = Vec::new();
    for run in of.chunk_by(|a, b| a == b) {
        let each = run.len() as u32;
        match parts.last_mut() {
            Some((first, nodes, of)) if *of == each && *first + *nodes == run[0] => *nodes += 1,
            _ => parts.push((run[0], 1, each)),
        }
    }
    if parts.windows(2).all(|w| w[0] == w[1]) {
        parts.truncate(1);
    }
    let parts: Vec<String> = parts.iter().map(|(a, b, c)| format!("({a},{b},{c})")).collect();
    format!("(vector,{})", parts.join(","))
}

impl Fleet {
    pub(in crate::launch) fn start(
        l: &Launcher,
        posts: &[Post],
        blocked: libc::sigset_t,
        descriptors: libc::rlimit,
    ) -> Result<Fleet, Refused> {
        let size = posts.iter().map(|p| p.ranks.len()).sum::<usize>();
        let mut of = vec![0; size];
        posts.iter().for_each(|p| p.ranks.iter().for_each(|(rank, _)| of[*rank as usize] = p.number));
        let mapping = mapping(&of);
        let patience =
            Config::from_environment().map_err(|e| Refused { code: 2, text: e.detail().to_owned() })?.start_s;
        let plan = plan(l, posts, size as u32, mapping)?;
        let branches = Branches::start(&plan, 0, blocked, descriptors)?;
        let lines = |output, rank| match output {
            Output::Tagged => Lines::new(Some(format!("[{rank}] "))),
            Output::Inherit | Output::Null => Lines::new(Some(String::new())),
            Output::Capture => Lines::new(None),
        };
        let lines = (0..size).map(|rank| [lines(l.stdout, rank), lines(l.stderr, rank)]).collect();
        Ok(Fleet {
            server: Server::part(&[], size, branches.all.len(), false),
            branches,
            of,
            lines,
            missing: vec![true; posts.len()],
            patience: Instant::now() + Duration::from_secs_f64(patience),
            owed: vec![0; posts.len()],
            closed: [false; 2],
            refused: None,
            stats: l.stats.clone(),
            give_up_at: None,
            finished: false,
            said: Vec::new(),
        })
    }

    pub(in crate::launch) fn interests(&self, add: impl FnMut(RawFd, i16, Happening)) {
        self.branches.interests(add);
    }

    /// Takes in what has come.
    pub(in crate::launch) fn hear(&mut self, what: Happening, events: i16) {
        let branch = match what {
            Happening::Link(i) | Happening::Stderr(i) => i,
        };
        let said = self.branches.hear(what, events);
        if self.finished && !said.is_empty() && self.give_up_at.is_some() {
            // The rest of what ranks have printed may wait for its reader.
            self.give_up_at = Some(Instant::now() + SILENT);
        }
        for word in said {
            self.take(branch, word);
        }
    }

    fn take(&mut self, branch: usize, word: Up) {
        // Ranks and daemons are counted by those who speak; a wrong number is not to fell the launcher.
        let known = |rank: u32| (rank as usize) < self.of.len();
        match word {
            Up::Started(daemon, pids) => {
                let own = (0..self.of.len() as u32).filter(|rank| self.of[*rank as usize] == daemon);
                self.said.push(Said::Pids(own.zip(pids).collect()));
                if let Some(missing) = self.missing.get_mut(daemon as usize) {
                    *missing = false;
                }
            }
            Up::Refused(_, code, text) => self.refuse(code, text),
            Up::Exchange(word) => {
                if !self.server.hear_below(branch, word) {
                    self.said.push(Said::Text("a daemon asks what daemons do not ask".into()));
                }
            }
            Up::Ended(rank, end, badly) if known(rank) => self.said.push(Said::News(News::Ended(rank, end, badly))),
            Up::Stats(rank, text) if known(rank) => {
                if let Some(dir) = &self.stats
                    && let Err(e) = std::fs::write(dir.join(rank.to_string()), text)
                {
                    self.said.push(Said::Text(format!("the numbers of rank {rank}: {e}")));
                }
            }
            Up::Abort(rank, code) if known(rank) => self.said.push(Said::News(News::Abort(rank, code))),
            Up::Garbage(rank, what) if known(rank) => self.said.push(Said::News(News::Garbage(rank, what))),
            Up::Output(rank, stream, bytes) if known(rank) && stream < 2 => {
                self.owed[self.of[rank as usize] as usize] += bytes.len() as u32;
                self.said.push(Said::Output(rank, stream as usize, bytes));
            }
            Up::Closed(rank, stream) if known(rank) && stream < 2 => {
                self.said.push(Said::Output(rank, stream as usize, Vec::new()));
            }
            Up::Taken(bytes) => self.said.push(Said::Taken(bytes)),
            Up::Say(text) => self.said.push(Said::Text(text)),
            Up::Lost(first, last, why) => {
                let b = &self.branches.all[branch];
                if (b.first, b.last) == (first, last) {
                    self.server.lose_branch(branch, &format!("node_{}_is_lost", b.host));
                }
                if self.has_started() {
                    self.said.push(Said::Lost(first as usize..=last as usize, why));
                } else {
                    self.refuse(1, why);
                }
            }
            _ => self.said.push(Said::Text("a daemon speaks of what there is not".into())),
        }
    }

    fn refuse(&mut self, code: i32, text: String) {
        self.refused.get_or_insert(Refused { code, text });
    }

    pub(in crate::launch) fn take_said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    /// Output that has come; no bytes: the stream has ended.
    pub(in crate::launch) fn lines(&mut self, rank: u32, stream: usize, bytes: &[u8], sink: &mut Sink) {
        let lines = &mut self.lines[rank as usize][stream];
        if bytes.is_empty() { lines.finish(sink) } else { lines.arrived(bytes, sink) }
    }

    /// The rest of all streams; what was kept of them, by stream and rank.
    pub(in crate::launch) fn streams_at_end(&mut self, out: &mut Sink, err: &mut Sink) -> [Vec<Vec<u8>>; 2] {
        for [o, e] in &mut self.lines {
            o.finish(out);
            e.finish(err);
        }
        [0, 1].map(|s| self.lines.iter_mut().map(|of| std::mem::take(&mut of[s].held)).collect())
    }

    /// Hands what was typed, or comes from a pipe or file, to rank 0. `false`: that was the end.
    pub(in crate::launch) fn feed(&mut self, typing: &mut Typing) -> bool {
        let Some(bytes) = typing.take() else { return true };
        let more = !bytes.is_empty();
        if let Some(branch) = self.branches.towards(self.of[0]) {
            self.branches.say(branch, &Down::Input(bytes));
        }
        more
    }

    pub(in crate::launch) fn signal(&mut self, signal: i32, but: Option<u32>) {
        self.branches.say_to_all(&Down::Signal(signal, but));
    }

    pub(in crate::launch) fn ask_activity(&mut self, ranks: &[u32]) {
        self.branches.say_to_all(&Down::Activity(ranks.to_vec()));
    }

    /// Sends what there is to be said. Output that was taken may be followed by more where the sinks are not full.
    pub(in crate::launch) fn send(&mut self, sinks: [&Sink; 2]) {
        for i in 0..self.branches.all.len() {
            for word in self.server.words_for(i) {
                self.branches.say(i, &Down::Exchange(word));
            }
        }
        if !sinks.iter().any(|s| s.is_full()) {
            for (daemon, owed) in (0..).zip(&mut self.owed) {
                if *owed > OUTPUT_WINDOW / 4
                    && let Some(branch) = self.branches.towards(daemon)
                {
                    self.branches.say(branch, &Down::Credit(daemon, std::mem::take(owed)));
                }
            }
        }
        for (s, sink) in sinks.iter().enumerate() {
            if sink.closed && !self.closed[s] {
                self.closed[s] = true;
                self.branches.say_to_all(&Down::Close(s as u8));
            }
        }
        self.branches.flush();
    }

    /// All ranks run, on all machines.
    pub(in crate::launch) fn has_started(&self) -> bool {
        !self.missing.contains(&true)
    }

    /// Until when they must.
    pub(in crate::launch) fn patience(&self) -> Instant {
        self.patience
    }

    /// Why the job cannot be started.
    pub(in crate::launch) fn take_refusal(&mut self, hosts: &[String], limit: Option<Instant>) -> Option<Refused> {
        let now = Instant::now();
        if self.refused.is_none() && !self.has_started() {
            let late: Vec<&str> =
                self.missing.iter().zip(hosts).filter(|(m, _)| **m).map(|(_, h)| h.as_str()).collect();
            let (nodes, have) = if late.len() == 1 { ("node", "has") } else { ("nodes", "have") };
            let late = format!("{nodes} {} {have} not started", late.join(", "));
            if limit.is_some_and(|limit| limit <= now) {
                self.refuse(124, format!("{late} before the time-out"));
            } else if self.patience <= now {
                self.refuse(1, format!("{late} within the time for starting (FMPL_START_TIMEOUT)"));
            }
        }
        self.refused.take()
    }

    /// All ranks have ended: the daemons clean up, and end; those that do not are given up.
    pub(in crate::launch) fn finish(&mut self) {
        self.finished = true;
        self.give_up_at.get_or_insert(Instant::now() + SILENT);
        self.branches.say_to_all(&Down::Finish);
        self.branches.flush();
    }

    pub(in crate::launch) fn is_over(&self) -> bool {
        self.finished && self.branches.are_over()
    }

    pub(in crate::launch) fn give_up_soon(&mut self) {
        self.give_up_at.get_or_insert(Instant::now() + GIVE_UP);
    }

    pub(in crate::launch) fn gives_up_at(&self) -> Option<Instant> {
        self.give_up_at
    }

    /// Gives up who has not ended, when the time for that is over. `true`: it is; nobody says anything from here on.
    pub(in crate::launch) fn give_up(&mut self, now: Instant) -> bool {
        if self.give_up_at.is_none_or(|at| at > now) {
            return false;
        }
        self.give_up_at = None;
        for word in self.branches.give_up() {
            if let Up::Lost(first, last, why) = word {
                self.said.push(Said::Lost(first as usize..=last as usize, why));
            }
        }
        true
    }
}

fn plan(l: &Launcher, posts: &[Post], size: u32, mapping: String) -> Result<Plan, Refused> {
    let refuse = |text: String| Refused { code: 2, text };
    let full =
        |dir: &Path| std::path::absolute(dir).map_err(|e| Refused { code: 2, text: format!("{}: {e}", dir.display()) });
    let own = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|n| n.starts_with("FMPL_") && !LAUNCHER_NAMES.contains(&n)));
    let mut programs = l.programs.clone();
    for program in &mut programs {
        program.wdir = program.wdir.as_deref().map(full).transpose()?;
    }
    let agent = match &l.agent {
        Some(words) if words.is_empty() => return Err(refuse("the launch agent is no command".into())),
        Some(words) => words.clone(),
        None => SSH.iter().map(OsString::from).collect(),
    };
    let fmpl = match &l.prefix {
        Some(prefix) => prefix.join("bin/fmpl"),
        None => std::env::current_exe().map_err(|e| refuse(format!("where fmpl is: {e}")))?,
    };
    Ok(Plan {
        size,
        programs,
        env: own.chain(l.env.iter().cloned()).collect(),
        wdir: Some(full(l.wdir.as_deref().unwrap_or(Path::new(".")))?.into()),
        bind: l.bind,
        map: l.map,
        verbose: l.verbose,
        stdin: l.stdin_to_rank_0,
        stats: l.stats.is_some(),
        silent: [l.stdout == Output::Null, l.stderr == Output::Null],
        mapping,
        agent: Agent { words: agent, fmpl: fmpl.into() },
        posts: posts.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::mapping;

    #[test]
    fn places_in_the_words_of_pmi() {
        for (of, text) in [
            (&[0, 0, 1, 1][..], "(vector,(0,2,2))"),
            (&[0, 0, 0, 1, 1, 2, 2], "(vector,(0,1,3),(1,2,2))"),
            (&[0, 1, 2, 0, 1, 2], "(vector,(0,3,1))"),
            (&[0, 1, 0], "(vector,(0,2,1),(0,1,1))"),
            (&[0], "(vector,(0,1,1))"),
        ] {
            assert_eq!(mapping(of), text);
        }
    }
}
