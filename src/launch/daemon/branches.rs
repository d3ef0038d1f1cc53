//! The daemons that this machine has started on others, and the connections to them: the launcher has some, and so has a daemon that
//! stands in the middle of the tree.
//!
//! *The tree.* Up to 31 machines are all started by the launcher. More are dealt into about as many groups as each then has members (8 to 32);
//! the first of a group starts the others. So neither time nor descriptors grow with the number of machines, but with its root.

use super::link::{End, Link};
use super::words::{Agent, Down, Plan, Post, Up};
use crate::base::system::exec::{News, Start, fork};
use crate::base::system::process::{Process, Warden};
use crate::base::system::{is_ready, pipe, poll, set_waiting};
use crate::launch::embedded::Refused;
use crate::launch::exec;
use crate::launch::relay::{Sink, Source};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

/// From so many machines on they form a tree.
const FLAT: usize = 32;

/// Lines of an agent that are kept until its daemon has answered.
const LINES: usize = 20;

/// A daemon that was started from here, and those below it.
pub(in crate::launch) struct Branch {
    pub(in crate::launch) host: String,
    /// The numbers of the daemons.
    pub(in crate::launch) first: u32,
    pub(in crate::launch) last: u32,
    /// `None`: it is over, well or not.
    link: Option<Link>,
    agent: Process,
    /// What the agent prints: `ssh` says there why a host cannot be reached.
    stderr: Source,
    lines: Vec<String>,
    /// It has said that nothing more comes.
    done: bool,
}

/// See the head of this file.
pub(in crate::launch) struct Branches {
    // In this order: the warden stands down before the first pid can be reaped.
    _warden: Option<Warden>,
    pub(in crate::launch) all: Vec<Branch>,
}

/// What a descriptor in the poll tells of, by the branch.
#[derive(Clone, Copy)]
pub(in crate::launch) enum Happening {
    Link(usize),
    Stderr(usize),
}

/// Those that one machine starts: each group's first starts the others.
pub(in crate::launch) fn groups(posts: &[Post]) -> Vec<&[Post]> {
    let n = posts.len();
    if n < FLAT {
        return posts.chunks(1).collect();
    }
    let groups = (1..).find(|k| k * k >= n).unwrap_or(n).clamp(8, FLAT);
    (0..groups).map(|k| &posts[k * n / groups..(k + 1) * n / groups]).collect()
}

impl Drop for Branches {
    /// As with the ranks: first they are killed, if any is left, then the warden stands down.
    fn drop(&mut self) {
        self.all.iter().for_each(|b| b.agent.signal(libc::SIGKILL));
    }
}

impl Branches {
    /// Starts the daemons of `plan` but this machine's own, which is `plan.posts[..skip]`.
    pub(in crate::launch) fn start(
        plan: &Plan,
        skip: usize,
        blocked: libc::sigset_t,
        descriptors: libc::rlimit,
    ) -> Result<Branches, Refused> {
        let groups = groups(&plan.posts[skip..]);
        if groups.is_empty() {
            return Ok(Branches::none());
        }
        let failed = |what: &str, e: io::Error| Refused { code: 1, text: format!("{what}: {e}") };
        let warden = Warden::start(groups.len()).map_err(|e| failed("fork", e))?;
        let news = News::new().map_err(|e| failed("pipe", e))?;
        let mut all = Vec::with_capacity(groups.len());
        for (k, posts) in groups.iter().enumerate() {
            let host = &posts[0].host;
            let began = Branch::start(k as u32, posts, plan, &warden, &news, blocked, descriptors);
            all.push(began.map_err(|e| Refused { code: 1, text: format!("starting the daemon of node {host}: {e}") })?);
        }
        match news.wait().map_err(|e| failed("waiting for the launch agents", e))? {
            None => Ok(Branches { all, _warden: Some(warden) }),
            Some((k, _, e)) => {
                let argv = command(&plan.agent, &groups[k as usize][0].host);
                let text = format!("{} cannot be executed: {e}", argv[0].display());
                Err(Refused { code: if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 }, text })
            }
        }
    }

    pub(in crate::launch) fn none() -> Branches {
        Branches { _warden: None, all: Vec::new() }
    }

    pub(in crate::launch) fn interests(&self, mut add: impl FnMut(RawFd, i16, Happening)) {
        for (i, branch) in self.all.iter().enumerate() {
            if let Some(link) = &branch.link {
                add(link.from(), libc::POLLIN, Happening::Link(i));
                if !link.is_flushed() {
                    add(link.to(), libc::POLLOUT, Happening::Link(i));
                }
            }
            if branch.stderr.is_open() {
                add(branch.stderr.fd(), libc::POLLIN, Happening::Stderr(i));
            }
        }
    }

    /// What a branch has said, the news of its end among it.
    pub(in crate::launch) fn hear(&mut self, what: Happening, events: i16) -> Vec<Up> {
        let mut said = Vec::new();
        match what {
            Happening::Stderr(i) => self.all[i].read_lines(&mut said),
            Happening::Link(i) if events & !libc::POLLOUT != 0 => self.all[i].read(&mut said),
            Happening::Link(_) => {}
        }
        said
    }

    /// Says something to the branch of this number.
    pub(in crate::launch) fn say(&mut self, branch: usize, word: &Down) {
        if let Some(link) = &mut self.all[branch].link {
            link.say(&word.encode());
        }
    }

    pub(in crate::launch) fn say_to_all(&mut self, word: &Down) {
        let bytes = word.encode();
        self.all.iter_mut().filter_map(|b| b.link.as_mut()).for_each(|link| link.say(&bytes));
    }

    /// The branch on which this daemon is.
    pub(in crate::launch) fn towards(&self, daemon: u32) -> Option<usize> {
        self.all.iter().position(|b| (b.first..=b.last).contains(&daemon))
    }

    pub(in crate::launch) fn flush(&mut self) {
        for branch in &mut self.all {
            if let Some(link) = &mut branch.link {
                // Of a broken one the reading tells; nobody waits until more can be written there.
                if link.flush().is_err() {
                    link.forget();
                }
            }
        }
    }

    pub(in crate::launch) fn are_over(&self) -> bool {
        self.all.iter().all(|b| b.link.is_none())
    }

    /// Those that do not answer: their connections are closed, which ends what is left there.
    pub(in crate::launch) fn give_up(&mut self) -> Vec<Up> {
        let still = self.all.iter_mut().filter_map(|b| b.link.take().map(|_| b));
        still.map(|b| Up::Lost(b.first, b.last, format!("node {} does not answer and was given up", b.host))).collect()
    }
}

/// The command that starts the daemon of a host.
fn command(agent: &Agent, host: &str) -> Vec<OsString> {
    if agent.words.is_empty() || (is_default(agent) && is_here(host)) {
        return vec![agent.fmpl.clone(), "daemon".into()];
    }
    agent.words.iter().cloned().chain([host.into(), quoted(&agent.fmpl), "daemon".into()]).collect()
}

/// `ssh` without questions, which nobody could answer; a host that has gone without a word is noticed in some 20 s.
pub(in crate::launch) const SSH: [&str; 10] = [
    "ssh",
    "-T",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=5",
    "-oServerAliveCountMax=3",
];

fn is_default(agent: &Agent) -> bool {
    agent.words.iter().eq(SSH.iter())
}

/// Is it this machine? Then no agent is needed.
pub(in crate::launch) fn is_here(host: &str) -> bool {
    let own = super::host_name();
    let short = |name: &str| name.split('.').next().map(str::to_owned);
    matches!(host, "localhost" | "127.0.0.1" | "::1")
        || host == own
        || (!host.contains('.') && short(&own).as_deref() == Some(host))
}

/// For the shell that `ssh` hands it to.
fn quoted(path: &OsString) -> OsString {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+".contains(b);
    if path.as_encoded_bytes().iter().all(plain) {
        return path.clone();
    }
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''")).into()
}

impl Branch {
    fn start(
        number: u32,
        posts: &[Post],
        plan: &Plan,
        warden: &Warden,
        news: &News,
        blocked: libc::sigset_t,
        descriptors: libc::rlimit,
    ) -> io::Result<Branch> {
        let host = posts[0].host.clone();
        let argv = command(&plan.agent, &host);
        let path = std::env::var_os("PATH");
        let program: PathBuf = exec::find(&argv[0], path.as_deref())
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", argv[0].display())))?;
        // A pipe each way and not one socket: the daemon does not wait at its output, and whatever else the agent has started may read the input
        // in its own way.
        let (input, to) = pipe()?;
        let (from, output) = pipe()?;
        let (read, write) = pipe()?;
        set_waiting(&to, false)?;
        set_waiting(&from, false)?;
        set_waiting(&read, false)?;
        let start = Start {
            program: &program,
            argv: &argv,
            env: exec::variables(Vec::new()),
            wdir: None,
            bind: None,
            stdio: [Some(input), Some(output), Some(write)],
            blocked,
            descriptors,
            held: false,
            handed: None,
            leash: warden.leash(),
        };
        let agent = Process::of(fork(number, &start, news)?)?;
        let mut link = Link::below(from, to).map_err(|e| io::Error::other(e.detail().to_owned()))?;
        let plan = Plan { posts: posts.to_vec(), ..plan.clone() };
        link.say(&Down::Start(Box::new(plan)).encode());
        let _ = link.flush();
        Ok(Branch {
            host,
            first: posts[0].number,
            last: posts[posts.len() - 1].number,
            link: Some(link),
            agent,
            stderr: Source::new(read, Some(String::new())),
            lines: Vec::new(),
            done: false,
        })
    }

    fn read(&mut self, said: &mut Vec<Up>) {
        let Some(link) = &mut self.link else { return };
        let before = link.greeted;
        let mut end = link.take_in().err();
        loop {
            match link.next() {
                Ok(Some(bytes)) => match Up::decode(bytes) {
                    Some(Up::Done) => self.done = true,
                    Some(Up::Beat(_)) => {}
                    Some(word) => said.push(word),
                    None => end = Some(End::Wrong("what is no word of a daemon".into())),
                },
                Ok(None) => break,
                Err(wrong) => {
                    end = Some(wrong);
                    break;
                }
            }
        }
        let greeted = link.greeted;
        if greeted && !before {
            let lines = std::mem::take(&mut self.lines);
            said.splice(0..0, lines.into_iter().map(|line| Up::Say(format!("node {}: {line}", self.host))));
        }
        let Some(end) = end else { return };
        self.link = None;
        if !self.done {
            said.push(Up::Lost(self.first, self.last, self.why_lost(end, greeted)));
        }
    }

    /// In words for people.
    fn why_lost(&mut self, end: End, greeted: bool) -> String {
        let host = self.host.clone();
        if let End::Wrong(what) = end {
            return format!("node {host}: {what}");
        }
        // The agent is about to end, if it has not yet, and may have said why.
        let mut fds = [libc::pollfd { fd: self.agent.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        let _ = poll(&mut fds, 500);
        let how = match is_ready(&self.agent.pidfd, libc::POLLIN).then(|| self.agent.look()).flatten() {
            Some(end) => format!("what started it {end}"),
            None => "the connection to it was closed".into(),
        };
        let mut said = Vec::new();
        self.read_lines(&mut said);
        let words = match &self.lines[..] {
            [] => String::new(),
            lines => format!(": {}", lines[lines.len().saturating_sub(3)..].join("; ")),
        };
        match greeted {
            true => format!("node {host} is lost: its daemon has ended, {how}{words}"),
            false => format!("node {host} cannot be reached: no daemon answers, {how}{words}"),
        }
    }

    /// What the agent prints is for people; of one whose daemon has not answered yet it may be the reason.
    fn read_lines(&mut self, said: &mut Vec<Up>) {
        let mut sink = Sink::new(-1);
        if !self.stderr.take_in(&mut sink, 4) {
            self.stderr.finish(&mut sink);
        }
        for line in String::from_utf8_lossy(&sink.take()).lines() {
            let line = line.trim_end().to_owned();
            match &self.link {
                Some(link) if link.greeted => said.push(Up::Say(format!("node {}: {line}", self.host))),
                _ if self.lines.len() < LINES => self.lines.push(line),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::system::read;

    fn posts(n: u32) -> Vec<Post> {
        (0..n).map(|number| Post { number, host: format!("h{number}"), ranks: Vec::new() }).collect()
    }

    /// Everybody is started once, by somebody; nobody starts many, and the way is short.
    #[test]
    fn all_machines_are_in_one_tree() {
        fn walk(posts: &[Post], depth: usize, seen: &mut Vec<u32>, widest: &mut usize, deepest: &mut usize) {
            let groups = groups(posts);
            (*widest, *deepest) = ((*widest).max(groups.len()), (*deepest).max(depth));
            for group in groups {
                seen.push(group[0].number);
                assert!(group.windows(2).all(|w| w[1].number == w[0].number + 1));
                walk(&group[1..], depth + 1, seen, widest, deepest);
            }
        }
        for (n, width, depth) in
            [(0, 0, 0), (1, 1, 1), (31, 31, 1), (32, 8, 2), (64, 8, 2), (1000, 32, 2), (5000, 32, 3)]
        {
            let (mut seen, mut widest, mut deepest) = (Vec::new(), 0, 0);
            walk(&posts(n), 0, &mut seen, &mut widest, &mut deepest);
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n));
            assert!(widest <= width.max(31) && deepest <= depth, "{n}: {widest} wide, {deepest} deep");
            assert!(groups(&posts(n)).len() <= width, "{n}");
        }
    }

    /// Also where nothing comes from below meanwhile.
    #[test]
    fn what_a_full_pipe_does_not_take_leaves_when_there_is_room() {
        const LONG: usize = 1 << 20;
        let ((input, to), (from, output), (stderr, said)) = (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
        [&input, &to, &from].into_iter().for_each(|fd| set_waiting(fd, false).unwrap());
        let mut agent = std::process::Command::new("true").spawn().unwrap();
        let branch = Branch {
            host: "b".into(),
            first: 0,
            last: 0,
            link: Some(Link::below(from, to).unwrap()),
            agent: Process::of(agent.id() as i32).unwrap(),
            stderr: Source::new(stderr, None),
            lines: Vec::new(),
            done: false,
        };
        let mut branches = Branches { _warden: None, all: vec![branch] };
        branches.say(0, &Down::Input(vec![7; LONG]));
        branches.flush();
        let (mut came, mut bytes) = (0, [0; 64 << 10]);
        loop {
            let flushed = branches.all[0].link.as_ref().unwrap().is_flushed();
            while let Ok(n @ 1..) = read(&input, &mut bytes) {
                came += n;
            }
            if flushed {
                break;
            }
            let mut fds = Vec::new();
            branches.interests(|fd, events, _| fds.push(libc::pollfd { fd, events, revents: 0 }));
            assert!(poll(&mut fds, 10_000).unwrap() > 0, "nobody looks whether there is room");
            branches.flush();
        }
        assert!(came > LONG);
        drop((branches, output, said));
        let _ = agent.wait();
    }

    #[test]
    fn the_command_of_a_host() {
        let agent =
            |words: &[&str], fmpl: &str| Agent { words: words.iter().map(Into::into).collect(), fmpl: fmpl.into() };
        let line = |agent: &Agent, host: &str| {
            command(agent, host).iter().map(|w| w.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert!(line(&agent(&SSH, "/opt/fmpl"), "b").starts_with("ssh -T -x -o BatchMode=yes "));
        assert!(line(&agent(&SSH, "/opt/fmpl"), "b").ends_with(" b /opt/fmpl daemon"));
        assert_eq!(line(&agent(&SSH, "/opt/fmpl"), "localhost"), "/opt/fmpl daemon");
        assert_eq!(
            line(&agent(&["./into", "-v"], "/my fmpl's"), "localhost"),
            "./into -v localhost '/my fmpl'\\''s' daemon"
        );
    }
}
