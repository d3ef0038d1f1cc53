//! Jobs on several machines: a daemon on each starts the ranks there, and is to the launcher what the ranks are on one machine.
//!
//! ```text
//!   fmpl run ──ssh──▶ fmpl daemon ─┬─▶ ranks                 standard input and output of ssh carry all that is said;
//!        │                         └──ssh──▶ fmpl daemon …   no port is opened, nothing is listened to
//!        └────ssh──▶ fmpl daemon ───▶ ranks
//! ```
//! | file | what it does |
//! |---|---|
//! | `link` | the connection to a daemon: who is there, and frames with a check |
//! | `words` | what is said over it |
//! | `numbers` | what the ranks here have counted |
//! | `branches` | the daemons that were started from here, the tree |
//! | [`fleet`] | the launcher's side |
//! | here | the daemon's life |
//!
//! A daemon decides nothing: it tells what happened to its ranks, and does what it is told. When its connection ends, for whatever reason, it
//! kills its ranks and ends. So nothing is left anywhere when the launcher dies, and a daemon that dies is noticed by the same means.
//!
//! *Output* is sent as far as the launcher has room for it, a window for each daemon; so a reader who sleeps stops the writers, and not the
//! exchange that goes over the same connection.

pub(super) mod branches;
pub(super) mod fleet;
mod link;
mod numbers;
pub(super) mod words;

use super::activity;
use super::crew::{self, Crew, News};
use super::embedded::{Output, Refused};
use super::relay::Sink;
use super::server::Server;
use super::start::{Input, Team, descriptors_for};
use crate::base::system::signals::{blocked_now, mind_children};
use crate::base::system::{above_stdio, poll, set_waiting, write};
use branches::Branches;
use link::Link;
use numbers::Numbers;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use words::{Down, Plan, Up};

/// Bytes of output that a daemon may have said without hearing that they were taken.
const OUTPUT_WINDOW: u32 = 256 << 10;

/// Milliseconds after which a daemon that has nothing to say says so: to a machine that was switched off nothing else would ever be sent.
const BEAT: i32 = 15_000;

/// The name that this machine gives itself.
pub(super) fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "localhost".into(), |h| h.trim().to_owned())
}

/// The life of `fmpl daemon`: its exit code.
pub fn main() -> i32 {
    match live() {
        Ok(()) => 0,
        // Whoever started it hears it from the launch agent.
        Err(text) => {
            eprintln!("fmpl daemon: {text}");
            1
        }
    }
}

fn live() -> Result<(), String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |e: io::Error| format!("{what}: {e}")
    };
    // What is said goes over descriptors that no rank inherits; what a rank has for its own comes from the plan.
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let from = above_stdio(&stdin).map_err(failed("standard input"))?;
    let to = above_stdio(&stdout).map_err(failed("standard output"))?;
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?.into();
    crate::base::system::replace(&null, &stdin.as_fd()).map_err(failed("standard input"))?;
    crate::base::system::replace(&null, &stdout.as_fd()).map_err(failed("standard output"))?;
    let line = link::first_line(&from)
        .map_err(|e| format!("nobody says what is to be done ({e}); `fmpl run -H` starts daemons"))?;
    for fd in [&from, &to] {
        set_waiting(fd, false).map_err(failed("the connection"))?;
    }
    let mut above = Link::above(from, to, &line)?;
    let Some(plan) = first_word(&mut above)? else { return Ok(()) };
    mind_children();
    Daemon::start(above, plan).run();
    Ok(())
}

/// Waits for the plan. `None`: whoever started us is gone.
fn first_word(above: &mut Link) -> Result<Option<Plan>, String> {
    loop {
        let _ = above.flush();
        let mut fds = [libc::pollfd { fd: above.from(), events: libc::POLLIN, revents: 0 }];
        let _ = poll(&mut fds, -1);
        let over = above.take_in().is_err();
        match above.next() {
            Ok(Some(bytes)) => match Down::decode(bytes) {
                Some(Down::Start(plan)) if !plan.posts.is_empty() => return Ok(Some(*plan)),
                _ => return Err("what came first is no plan of a job".into()),
            },
            Ok(None) if over => return Ok(None),
            Ok(None) => {}
            Err(_) => return Err("what came first was altered on its way".into()),
        }
    }
}

/// A daemon that has its plan.
struct Daemon {
    above: Link,
    number: u32,
    host: String,
    crew: Crew,
    /// Where these ranks leave their numbers.
    numbers: Option<Numbers>,
    branches: Branches,
    input: Option<OwnedFd>,
    /// For rank 0; what it has not read yet.
    pending: Vec<u8>,
    input_ends: bool,
    /// Bytes of output that may be said.
    credit: u32,
    /// All ranks of the job have ended.
    finishing: bool,
}

/// What a descriptor in the poll tells of.
#[derive(Clone, Copy)]
enum Happening {
    Above,
    Input,
    Crew(crew::Happening),
    Branches(branches::Happening),
}

impl Daemon {
    /// Starts the daemons below and the ranks. What goes wrong is said above.
    fn start(mut above: Link, plan: Plan) -> Daemon {
        let post = plan.posts[0].clone();
        let ranks: Vec<(u32, usize)> = post.ranks.iter().map(|(rank, program)| (*rank, *program as usize)).collect();
        let below = branches::groups(&plan.posts[1..]).len();
        let mut numbers = None;
        let began = descriptors_for(ranks.len(), below).and_then(|limit| {
            let branches = Branches::start(&plan, 1, blocked_now(), limit)?;
            numbers = plan.stats.then(Numbers::new).transpose()?;
            let server = Server::part(&ranks, plan.size as usize, below, true).map(plan.mapping.clone());
            let team = Team {
                programs: &plan.programs,
                env: &plan.env,
                stats: numbers.as_ref().map(Numbers::dir),
                wdir: plan.wdir.as_deref().map(Path::new),
                size: plan.size as usize,
                ranks: &ranks,
                input: if plan.stdin { Input::Pipe } else { Input::Nothing },
                outputs: plan.silent.map(|silent| if silent { Output::Null } else { Output::Capture }),
                debugger: None,
                nodes: None,
                bind: plan.bind,
                map: plan.map,
                blocked: blocked_now(),
                descriptors: limit,
            };
            let mut maps = Vec::new();
            // Ranks that do not start leave what is below as it is: the launcher ends all.
            let crew = Crew::start(&team, server, &mut maps);
            Ok((branches, crew.map(|(crew, input)| (crew, input, maps))))
        });
        let (branches, crew) = match began {
            Ok((branches, crew)) => (branches, crew),
            Err(refused) => (Branches::none(), Err(refused)),
        };
        let (crew, input) = match crew {
            Ok((crew, input, maps)) => {
                let pids = crew.ranks.iter().map(|r| r.process.pid).collect();
                above.say(&Up::Started(post.number, pids).encode());
                for map in maps.into_iter().filter(|_| plan.verbose) {
                    above.say(&Up::Say(format!("{map}, node {}", post.host)).encode());
                }
                (crew, input)
            }
            Err(Refused { code, text }) => {
                above.say(&Up::Refused(post.number, code, format!("node {}: {text}", post.host)).encode());
                let server = Server::part(&[], plan.size as usize, branches.all.len(), true);
                (Crew { warden: None, ranks: Vec::new(), server, debug: None }, None)
            }
        };
        let (number, host) = (post.number, post.host);
        Daemon {
            above,
            number,
            host,
            crew,
            numbers,
            branches,
            input,
            pending: Vec::new(),
            input_ends: false,
            credit: OUTPUT_WINDOW,
            finishing: false,
        }
    }

    /// Until all is said and done, or nobody is there to hear it. What is left of the ranks is killed when this returns.
    fn run(mut self) {
        loop {
            self.send();
            if self.finishing && self.has_said_all() {
                // Before the last word: whoever hears it may kill this process.
                self.numbers = None;
                self.above.say(&Up::Done.encode());
                while !self.above.is_flushed() && self.above.flush().is_ok() {
                    let mut fds = [libc::pollfd { fd: self.above.to(), events: libc::POLLOUT, revents: 0 }];
                    let _ = poll(&mut fds, -1);
                }
                return;
            }
            if !self.turn() {
                return;
            }
        }
    }

    /// Waits for the next thing to happen, and sees to it. `false`: the connection has ended.
    fn turn(&mut self) -> bool {
        let (mut fds, mut what) = (Vec::new(), Vec::new());
        let mut add = |fd, events, w| {
            fds.push(libc::pollfd { fd, events, revents: 0 });
            what.push(w);
        };
        add(self.above.from(), libc::POLLIN, Happening::Above);
        if !self.above.is_flushed() {
            add(self.above.to(), libc::POLLOUT, Happening::Above);
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.pending.is_empty()) {
            add(input.as_raw_fd(), libc::POLLOUT, Happening::Input);
        }
        self.crew.interests(|_, _| self.credit > 0, |fd, events, w| add(fd, events, Happening::Crew(w)));
        self.branches.interests(|fd, events, w| add(fd, events, Happening::Branches(w)));
        if poll(&mut fds, BEAT).is_ok_and(|n| n == 0) {
            self.say(&Up::Beat(self.number));
        }

        let (mut news, mut ended) = (Vec::new(), Vec::new());
        for (p, what) in fds.iter().zip(what).filter(|(p, _)| p.revents != 0) {
            match what {
                // It may be the writing end that is broken.
                Happening::Above if p.events == libc::POLLOUT && p.revents & libc::POLLERR != 0 => return false,
                Happening::Above if p.events == libc::POLLOUT => {}
                Happening::Above => {
                    if !self.hear_above() {
                        return false;
                    }
                }
                Happening::Input => self.feed(),
                Happening::Crew(crew::Happening::Socket(i)) => self.crew.serve(i, &mut news),
                Happening::Crew(crew::Happening::End(i)) => ended.push(i),
                Happening::Crew(crew::Happening::Stream(i, s)) => self.read_stream(i, s),
                Happening::Branches(w) => self.hear_below(w, p.revents),
            }
        }
        ended.into_iter().for_each(|i| self.crew.look_at_end(i, &mut news));
        for news in news {
            let word = match news {
                News::Abort(rank, code) => Up::Abort(rank, code),
                News::Garbage(rank, what) => Up::Garbage(rank, what),
                News::Ended(rank, end, badly) => {
                    if let Some(text) = self.numbers.as_ref().and_then(|numbers| numbers.of(rank)) {
                        self.say(&Up::Stats(rank, text));
                    }
                    Up::Ended(rank, end, badly)
                }
            };
            self.say(&word);
        }
        true
    }

    fn say(&mut self, word: &Up) {
        self.above.say(&word.encode());
    }

    /// Sends what there is to be said, to all sides.
    fn send(&mut self) {
        for word in self.crew.server.words_above() {
            self.say(&Up::Exchange(word));
        }
        for i in 0..self.branches.all.len() {
            for word in self.crew.server.words_for(i) {
                self.branches.say(i, &Down::Exchange(word));
            }
        }
        self.crew.send_answers();
        self.branches.flush();
        // A broken connection is noticed where it is read.
        let _ = self.above.flush();
    }

    /// `false`: the connection has ended, or is not what it was.
    fn hear_above(&mut self) -> bool {
        let open = self.above.take_in().is_ok();
        loop {
            let word = match self.above.next() {
                Ok(Some(bytes)) => Down::decode(bytes),
                Ok(None) => return open,
                Err(_) => return false,
            };
            let Some(word) = word else { return false };
            match &word {
                Down::Signal(..) | Down::Activity(_) | Down::Finish | Down::Close(_) => self.branches.say_to_all(&word),
                Down::Credit(daemon, _) if *daemon != self.number => {
                    if let Some(branch) = self.branches.towards(*daemon) {
                        self.branches.say(branch, &word);
                    }
                    continue;
                }
                _ => {}
            }
            if !self.obey(word) {
                return false;
            }
        }
    }

    fn obey(&mut self, word: Down) -> bool {
        match word {
            Down::Start(_) => return false,
            Down::Exchange(word) => return self.crew.server.hear_above(word),
            Down::Signal(libc::SIGTERM, but) => self.crew.ask_to_end(but),
            Down::Signal(signal, _) => self.crew.signal_all(signal),
            Down::Credit(_, bytes) => self.credit = self.credit.saturating_add(bytes),
            Down::Input(bytes) if bytes.is_empty() => {
                self.input_ends = true;
                self.feed();
            }
            Down::Input(bytes) => {
                self.pending.extend_from_slice(&bytes);
                self.feed();
            }
            Down::Close(stream) => {
                for i in 0..self.crew.ranks.len() {
                    self.close(i, stream as usize);
                }
            }
            Down::Activity(ranks) => {
                let (own, host) = (self.crew.ranks.iter(), &self.host);
                let tell = |r: &crew::Rank| {
                    let (rank, pid) = (r.number, r.process.pid);
                    Up::Say(format!("rank {rank} (pid {pid}, {host}): {}", activity::of(pid)))
                };
                let words: Vec<Up> = own.filter(|r| ranks.contains(&r.number)).map(tell).collect();
                words.iter().for_each(|word| self.say(word));
            }
            Down::Finish => {
                // What the ranks have started themselves does not outlive the job.
                self.crew.signal_all(libc::SIGKILL);
                self.finishing = true;
            }
        }
        true
    }

    /// Hands input to rank 0; of one that reads no more it is thrown away.
    fn feed(&mut self) {
        let taken = match &self.input {
            Some(input) if !self.pending.is_empty() => match write(input, &self.pending) {
                Ok(n) => n,
                Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => 0,
                Err(_) => {
                    self.input = None;
                    self.pending.len()
                }
            },
            _ => self.pending.len(),
        };
        if taken > 0 {
            self.pending.drain(..taken);
            self.say(&Up::Taken(taken as u32));
        }
        if self.input_ends && self.pending.is_empty() {
            self.input = None;
        }
    }

    /// Says what a rank has printed, as far as it is wanted.
    fn read_stream(&mut self, i: usize, s: usize) {
        let rank = self.crew.ranks[i].number;
        let Some(source) = self.crew.ranks[i].streams[s].as_mut().filter(|_| self.credit > 0) else { return };
        let goes_on = source.take_in(&mut Sink::new(-1), 1);
        let bytes = std::mem::take(&mut source.lines.held);
        if !bytes.is_empty() {
            self.credit = self.credit.saturating_sub(bytes.len() as u32);
            self.say(&Up::Output(rank, s as u8, bytes));
        } else if self.finishing {
            // Whoever still holds it has left the job.
            return self.close(i, s);
        }
        if !goes_on {
            self.close(i, s);
        }
    }

    fn close(&mut self, i: usize, s: usize) {
        let rank = self.crew.ranks[i].number;
        if self.crew.ranks[i].streams[s].take().is_some() {
            self.say(&Up::Closed(rank, s as u8));
        }
    }

    /// At the end: nothing comes from the ranks any more, nor from below.
    fn has_said_all(&mut self) -> bool {
        for i in 0..self.crew.ranks.len() {
            for s in 0..2 {
                while self.credit > 0 && self.crew.ranks[i].streams[s].is_some() {
                    self.read_stream(i, s);
                }
            }
        }
        let streams = self.crew.ranks.iter().flat_map(|r| &r.streams);
        streams.flatten().next().is_none() && self.branches.are_over()
    }

    /// What comes from below goes on above, but for what the machines exchange.
    fn hear_below(&mut self, what: branches::Happening, events: i16) {
        let (branches::Happening::Link(i) | branches::Happening::Stderr(i)) = what;
        for word in self.branches.hear(what, events) {
            match word {
                Up::Exchange(word) => {
                    // What makes no sense is left alone; who says it notices by the fence that does not come.
                    let _ = self.crew.server.hear_below(i, word);
                }
                Up::Lost(first, last, why) => {
                    let branch = &self.branches.all[i];
                    if (branch.first, branch.last) == (first, last) {
                        self.crew.server.lose_branch(i, &format!("node_{}_is_lost", branch.host));
                    }
                    self.say(&Up::Lost(first, last, why));
                }
                word => self.say(&word),
            }
        }
    }
}
