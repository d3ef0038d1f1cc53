//! The launcher's loop: one poll over everything that can happen to a job, and what follows from it.
//!
//! Signals of the launcher come first, since Ctrl-C may be the cause of everything else; then the ranks' questions, since the
//! last of them may be the finalize that makes the end of a process a good one; then ends, output, and the clock. Nothing
//! in the loop blocks but the poll, and nothing that a rank waits for happens at intervals.
//!
//! The ranks are on this machine (a [`Crew`]) or on others (a [`Fleet`] of daemons, each with a crew). What they do comes here as the
//! same news, and is judged in the same way.

mod judge;

use super::activity;
use super::crew::{self, Crew, News};
use super::daemon::fleet::{self, Fleet};
use super::embedded::Outcome;
use super::place;
use super::relay::{Sink, Source, Typing};
use crate::base::system::poll;
use crate::base::system::process::{End, signal_name};
use crate::base::system::signals::{Signals, stop_here};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// A job that runs.
pub(crate) struct Supervisor {
    pub(super) hands: Hands,
    pub(super) members: Vec<Member>,
    /// The machines, by the numbers that the members have of them.
    pub(super) hosts: Vec<String>,
    pub(super) signals: Option<Signals>,
    pub(super) typing: Option<Typing>,
    pub(super) out: Sink,
    pub(super) err: Sink,
    pub(super) deadline: Option<Instant>,
    pub(super) grace: Duration,
    pub(super) keep_going: bool,
    pub(super) quiet: bool,
    pub(super) ending: Ending,
    pub(super) code: Option<i32>,
    /// That is what a rank aborted the job with.
    pub(super) aborted: bool,
    /// That is what a rank exited with, at this time: perhaps because of a death that comes to be known a little later.
    pub(super) exited: Option<Instant>,
    pub(super) timed_out: bool,
    /// The second signal has come: nothing is waited for any more, not even a reader of the output.
    pub(super) hurried: bool,
    pub(super) reports: Vec<String>,
}

/// Where the ranks are.
#[allow(clippy::large_enum_variant)] // a launcher has one
pub(super) enum Hands {
    Here(Crew),
    Away(Fleet),
}

/// A rank, as the launcher knows it wherever it runs.
pub(super) struct Member {
    pub(super) pid: i32,
    /// The number of its machine.
    pub(super) host: usize,
    pub(super) end: Option<End>,
}

/// How far the end of a job has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The ranks run.
    No,
    /// They were asked to end (SIGTERM), and will be killed at that time.
    Asked(Instant),
    /// They were killed.
    Killed,
}

/// What a descriptor in the poll tells of.
#[derive(Clone, Copy)]
enum Happening {
    Signals,
    Typing,
    Out,
    Err,
    Crew(crew::Happening),
    Fleet(fleet::Happening),
}

impl Supervisor {
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.members.iter().map(|m| m.pid).collect()
    }

    /// Serves the ranks until all have ended, cleans up behind them, and sums up.
    pub(crate) fn wait(mut self) -> Outcome {
        while self.members.iter().any(|m| m.end.is_none()) {
            self.turn();
        }
        self.typing = None;
        let [stdout, stderr] = match &self.hands {
            Hands::Here(_) => self.clean_up_here(),
            Hands::Away(_) => self.clean_up_away(),
        };
        self.flush();
        Outcome {
            code: self.code.unwrap_or(0),
            ends: self.members.iter().filter_map(|m| m.end).collect(),
            timed_out: self.timed_out,
            stdout,
            stderr,
            reports: std::mem::take(&mut self.reports),
        }
    }

    /// What the ranks have started themselves does not outlive the job. Gives what they have printed, where it was kept.
    fn clean_up_here(&mut self) -> [Vec<Vec<u8>>; 2] {
        self.signal_all(libc::SIGKILL);
        for i in 0..self.members.len() {
            let Hands::Here(crew) = &mut self.hands else { break };
            for (s, source) in crew.ranks[i].streams.iter_mut().enumerate() {
                let sink = if s == 0 { &mut self.out } else { &mut self.err };
                if let Some(source) = source {
                    source.take_in(sink, usize::MAX);
                    source.finish(sink);
                }
            }
            self.flush();
        }
        let Hands::Here(crew) = &mut self.hands else { return Default::default() };
        // Groups are empty and nobody will be signalled by number again: now pids may be reaped.
        crew.warden = None;
        let take = |s: &mut Option<Source>| s.as_mut().map(|s| std::mem::take(&mut s.lines.held)).unwrap_or_default();
        [0, 1].map(|s| crew.ranks.iter_mut().map(|r| take(&mut r.streams[s])).collect())
    }

    /// The same on the other machines: the daemons see to it, say the rest, and end.
    fn clean_up_away(&mut self) -> [Vec<Vec<u8>>; 2] {
        if let Hands::Away(fleet) = &mut self.hands {
            fleet.finish();
        }
        while matches!(&self.hands, Hands::Away(fleet) if !fleet.is_over()) && !self.hurried {
            self.turn();
        }
        match &mut self.hands {
            Hands::Away(fleet) => fleet.streams_at_end(&mut self.out, &mut self.err),
            Hands::Here(_) => Default::default(),
        }
    }

    /// Waits until the output has been read, or a signal says that nobody is going to.
    fn flush(&mut self) {
        self.drain();
        while !(self.hurried || self.out.is_empty() && self.err.is_empty()) {
            let (fds, what) = self.interests();
            let now = |w: &Happening| matches!(w, Happening::Signals | Happening::Out | Happening::Err);
            let (fds, what) = fds.into_iter().zip(what).filter(|(_, w)| now(w)).unzip();
            self.poll(fds, what, None);
            self.drain();
            self.hurry();
        }
    }

    /// Writes what can be written. Output that is lost, on a full disk perhaps, is a failure of the job.
    fn drain(&mut self) {
        self.out.drain();
        self.err.drain();
        let lost = [self.out.lost.take().map(|e| ("output", e)), self.err.lost.take().map(|e| ("error", e))];
        for (name, e) in lost.into_iter().flatten() {
            self.code.get_or_insert(1);
            self.report(format!("standard {name} cannot be written: {e}; the rest of it is lost"));
        }
    }

    /// A signal, when all ranks have ended: nobody is going to read the rest.
    fn hurry(&mut self) {
        if let Some(signal) = self.signals.as_ref().and_then(Signals::take) {
            self.code.get_or_insert(128 + signal);
            self.hurried = true;
        }
    }

    fn interests(&self) -> (Vec<libc::pollfd>, Vec<Happening>) {
        let (mut fds, mut what) =
            (Vec::with_capacity(4 * self.members.len() + 4), Vec::with_capacity(4 * self.members.len() + 4));
        let mut add = |fd: RawFd, events: i16, w: Happening| {
            fds.push(libc::pollfd { fd, events, revents: 0 });
            what.push(w);
        };
        if let Some(s) = &self.signals {
            add(s.fd.as_raw_fd(), libc::POLLIN, Happening::Signals);
        }
        if let Some((fd, events)) = self.typing.as_ref().and_then(Typing::interest) {
            add(fd, events, Happening::Typing);
        }
        for (sink, w) in [(&self.out, Happening::Out), (&self.err, Happening::Err)] {
            if !sink.is_empty() {
                add(sink.fd(), libc::POLLOUT, w);
            }
        }
        match &self.hands {
            Hands::Here(crew) => {
                let full = [self.out.is_full(), self.err.is_full(), self.err.is_full()];
                let reads = |source: &Source, s: usize| !(source.is_tagged() && full[s]);
                crew.interests(reads, |fd, events, w| add(fd, events, Happening::Crew(w)));
            }
            Hands::Away(fleet) => fleet.interests(|fd, events, w| add(fd, events, Happening::Fleet(w))),
        }
        (fds, what)
    }

    fn poll(&self, mut fds: Vec<libc::pollfd>, what: Vec<Happening>, until: Option<Instant>) -> Vec<(Happening, i16)> {
        let mut ms = until
            .map_or(-1, |t| t.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000).min(1 << 30) as i32);
        if self.typing.as_ref().is_some_and(Typing::looks_again) {
            // The terminal is not ours to read at present, and nothing tells when it becomes ours again.
            ms = if ms < 0 { 500 } else { ms.min(500) };
        }
        let _ = poll(&mut fds, ms);
        fds.iter().zip(what).filter(|(p, _)| p.revents != 0).map(|(p, w)| (w, p.revents)).collect()
    }

    /// Waits for the next thing to happen, and sees to it.
    pub(super) fn turn(&mut self) {
        let runs = self.members.iter().any(|m| m.end.is_none());
        let until = match (self.ending, &self.hands) {
            // Nobody is left who could be late.
            _ if !runs => None,
            (Ending::No, Hands::Away(fleet)) if !fleet.has_started() => {
                self.deadline.into_iter().chain([fleet.patience()]).min()
            }
            (Ending::No, _) => self.deadline,
            (Ending::Asked(kill_at), _) => Some(kill_at),
            (Ending::Killed, _) => None,
        };
        let given_up = if let Hands::Away(fleet) = &self.hands { fleet.gives_up_at() } else { None };
        let until = until.into_iter().chain(given_up).min();
        let (fds, what) = self.interests();
        let ready = self.poll(fds, what, until);
        let (mut typing, mut ended, mut news) = (true, Vec::new(), Vec::new());
        for (what, events) in &ready {
            match (*what, &mut self.hands) {
                (Happening::Signals, _) => self.obey(),
                (Happening::Typing, Hands::Away(fleet)) => typing = self.typing.as_mut().is_some_and(|t| fleet.feed(t)),
                (Happening::Typing, _) => typing = self.typing.as_mut().is_some_and(Typing::step),
                (Happening::Out, _) => self.out.drain(),
                (Happening::Err, _) => self.err.drain(),
                (Happening::Crew(crew::Happening::Socket(i)), Hands::Here(crew)) => crew.serve(i, &mut news),
                (Happening::Crew(crew::Happening::End(i)), _) => ended.push(i),
                (Happening::Crew(crew::Happening::Stream(i, s)), Hands::Here(crew)) => {
                    let sink = if s == 0 { &mut self.out } else { &mut self.err };
                    read_stream(&mut crew.ranks[i].streams[s], sink);
                }
                (Happening::Fleet(w), Hands::Away(fleet)) => fleet.hear(w, *events),
                _ => {}
            }
        }
        if !typing {
            self.typing = None;
        }
        if let Hands::Here(crew) = &mut self.hands {
            ended.into_iter().for_each(|i| crew.look_at_end(i, &mut news));
        }
        self.hear_fleet(&mut news);
        self.judge(news);
        self.look_at_the_clock();
        match &mut self.hands {
            Hands::Here(crew) => crew.send_answers(),
            Hands::Away(fleet) => fleet.send([&self.out, &self.err]),
        }
        self.drain();
    }

    /// What the daemons have said.
    fn hear_fleet(&mut self, news: &mut Vec<News>) {
        let Hands::Away(fleet) = &mut self.hands else { return };
        let mut says = Vec::new();
        for said in fleet.take_said() {
            match said {
                fleet::Said::News(n) => news.push(n),
                fleet::Said::Pids(pids) => {
                    pids.into_iter().for_each(|(rank, pid)| self.members[rank as usize].pid = pid);
                }
                fleet::Said::Output(rank, stream, bytes) => {
                    let sink = if stream == 0 { &mut self.out } else { &mut self.err };
                    fleet.lines(rank, stream, &bytes, sink);
                }
                fleet::Said::Taken(n) => {
                    if let Some(typing) = &mut self.typing {
                        typing.taken(n);
                    }
                }
                fleet::Said::Text(text) => says.push((text, None)),
                fleet::Said::Lost(hosts, why) => says.push((why, Some(hosts))),
            }
        }
        for (text, lost) in says {
            match lost {
                None => self.report(text),
                Some(hosts) => self.lose(hosts, &text),
            }
        }
    }

    /// Machines are gone, and their ranks with them.
    fn lose(&mut self, hosts: std::ops::RangeInclusive<usize>, why: &str) {
        let mut ranks = Vec::new();
        for (rank, m) in (0..).zip(&mut self.members).filter(|(_, m)| hosts.contains(&m.host) && m.end.is_none()) {
            // How they ended nobody knows.
            m.end = Some(End::Exit(255));
            ranks.push(rank);
        }
        let told = self.ending != Ending::No;
        if told || ranks.is_empty() {
            return self.report(why.to_owned());
        }
        self.code.get_or_insert(1);
        let more = if hosts.start() == hosts.end() { "" } else { ", and the nodes that were reached through it" };
        let text = format!("{why}{more}; lost: {}", named(&ranks));
        self.fail(&text);
    }

    /// Says what went wrong, and ends the others unless they are to go on.
    fn fail(&mut self, what: &str) {
        let running = self.running();
        let told = self.ending != Ending::No;
        let ending = if self.keep_going || told || running.is_empty() {
            String::new()
        } else {
            format!("; ending {}", named(&running))
        };
        self.report(format!("{what}{ending}"));
        if !self.keep_going {
            self.end(None);
        }
    }

    fn running(&self) -> Vec<u32> {
        (0..).zip(&self.members).filter(|(_, m)| m.end.is_none()).map(|(rank, _)| rank).collect()
    }

    fn who(&self, rank: u32) -> String {
        let member = &self.members[rank as usize];
        format!("rank {rank} (pid {}, {})", member.pid, self.hosts[member.host])
    }

    /// Asks all ranks to end, but for one that is about to by itself.
    pub(super) fn end(&mut self, but: Option<u32>) {
        if self.ending == Ending::No {
            self.ending = Ending::Asked(Instant::now() + self.grace);
            match &mut self.hands {
                Hands::Here(crew) => crew.ask_to_end(but),
                Hands::Away(fleet) => fleet.signal(libc::SIGTERM, but),
            }
        }
    }

    fn kill(&mut self) {
        self.ending = Ending::Killed;
        self.signal_all(libc::SIGKILL);
        match &mut self.hands {
            Hands::Here(crew) => crew.end_debuggers(),
            Hands::Away(fleet) => fleet.give_up_soon(),
        }
    }

    fn signal_all(&mut self, signal: i32) {
        match &mut self.hands {
            Hands::Here(crew) => crew.signal_all(signal),
            Hands::Away(fleet) => fleet.signal(signal, None),
        }
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        if let Hands::Away(fleet) = &mut self.hands
            && fleet.give_up(now)
        {
            let mut news = Vec::new();
            self.hear_fleet(&mut news);
            self.judge(news);
            if !self.running().is_empty() {
                self.lose(0..=usize::MAX, "nobody has told how these ranks ended");
            }
        }
        let running = self.running();
        if running.is_empty() {
            return;
        }
        match self.ending {
            Ending::Asked(kill_at) if now >= kill_at => {
                self.report(format!(
                    "{} did not end within {} s of SIGTERM: killed",
                    named(&running),
                    self.grace.as_secs_f64()
                ));
                self.kill();
            }
            Ending::No if self.deadline.is_some_and(|d| now >= d) => {
                self.timed_out = true;
                self.code.get_or_insert(124);
                self.report(format!("the time-out has passed: ending {}", named(&running)));
                // What they are at: of so many as one reads.
                self.tell_activity(&running[..running.len().min(16)]);
                self.end(None);
            }
            _ => {}
        }
    }

    fn tell_activity(&mut self, ranks: &[u32]) {
        if let Hands::Away(fleet) = &mut self.hands {
            // Each daemon says it before it hears of the end.
            return fleet.ask_activity(ranks);
        }
        for &rank in ranks {
            let text = activity::of(self.members[rank as usize].pid);
            self.report(format!("{}: {text}", self.who(rank)));
        }
    }

    /// A signal for the launcher.
    fn obey(&mut self) {
        let running = self.running();
        if running.is_empty() {
            return self.hurry();
        }
        let Some(signal) = self.signals.as_ref().and_then(Signals::take) else { return };
        if signal == libc::SIGTSTP {
            // Ctrl-Z: the job stops with its launcher and goes on with it.
            self.signal_all(libc::SIGSTOP);
            if let Hands::Away(fleet) = &mut self.hands {
                fleet.send([&self.out, &self.err]);
            }
            stop_here();
            self.signal_all(libc::SIGCONT);
            return;
        }
        let running = named(&running);
        if self.ending == Ending::No {
            self.code.get_or_insert(128 + signal);
            self.report(format!("{}: ending {running} (once more to kill at once)", signal_name(signal)));
            self.end(None);
        } else if self.ending != Ending::Killed {
            self.code.get_or_insert(128 + signal);
            self.report(format!("{}: killing {running}", signal_name(signal)));
            self.hurried = true;
            self.kill();
        }
    }

    pub(super) fn report(&mut self, text: String) {
        if !self.quiet {
            self.err.push(format!("fmpl run: {text}\n").as_bytes());
        }
        self.reports.push(text);
    }
}

fn read_stream(source: &mut Option<Source>, sink: &mut Sink) {
    if let Some(source) = source
        && ((sink.closed && source.is_tagged()) || !source.take_in(sink, 4))
    {
        source.finish(sink);
    }
}

/// `rank 3`, `ranks 0-2,5`.
pub(super) fn named(ranks: &[u32]) -> String {
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, place::ranges(ranks.iter().copied()))
}
