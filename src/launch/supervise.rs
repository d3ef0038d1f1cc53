//! The launcher's loop: one poll over everything that can happen to a job.
//!
//! Signals of the launcher come first, since Ctrl-C may be the cause of everything else; then the ranks' questions, since the
//! last of them may be the finalize that makes the end of a process a good one; then ends, output, and the clock. Nothing
//! in the loop blocks but the poll, and nothing that a rank waits for happens at intervals.

use super::activity;
use super::embedded::Outcome;
use super::place;
use super::relay::{Sink, Source, Typing};
use super::server::{Server, Stage, Verdict};
use crate::base::system::process::{End, Process, Warden, signal_name};
use crate::base::system::signals::{Signals, stop_here};
use crate::base::system::{poll, read, send};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// A job that runs.
pub(crate) struct Supervisor {
    // In this order: the warden stands down before the first pid can be reaped.
    pub(super) warden: Option<Warden>,
    pub(super) ranks: Vec<Rank>,
    pub(super) server: Server,
    pub(super) signals: Option<Signals>,
    pub(super) typing: Option<Typing>,
    pub(super) out: Sink,
    pub(super) err: Sink,
    pub(super) host: String,
    pub(super) deadline: Option<Instant>,
    pub(super) grace: Duration,
    pub(super) keep_going: bool,
    pub(super) quiet: bool,
    pub(super) ending: Ending,
    pub(super) code: Option<i32>,
    /// That is what a rank aborted the job with.
    pub(super) aborted: bool,
    pub(super) timed_out: bool,
    /// The second signal has come: nothing is waited for any more, not even a reader of the output.
    pub(super) hurried: bool,
    pub(super) reports: Vec<String>,
}

pub(super) struct Rank {
    pub(super) process: Process,
    pub(super) socket: Option<OwnedFd>,
    /// The output that does not go where the launcher's own goes.
    pub(super) stdout: Option<Source>,
    pub(super) stderr: Option<Source>,
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
    Socket(usize),
    End(usize),
    Stdout(usize),
    Stderr(usize),
}

impl Supervisor {
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.ranks.iter().map(|r| r.process.pid).collect()
    }

    /// Serves the ranks until all have ended, cleans up behind them, and sums up.
    pub(crate) fn wait(mut self) -> Outcome {
        while self.ranks.iter().any(|r| r.process.end.is_none()) {
            self.turn();
        }
        // What the ranks have started themselves does not outlive the job.
        self.signal_all(libc::SIGKILL);
        self.typing = None;
        for i in 0..self.ranks.len() {
            let rank = &mut self.ranks[i];
            for (source, sink) in [(&mut rank.stdout, &mut self.out), (&mut rank.stderr, &mut self.err)] {
                if let Some(source) = source {
                    source.take_in(sink, usize::MAX);
                    source.finish(sink);
                }
            }
            self.flush();
        }
        self.flush();
        // Groups are empty and nobody will be signalled by number again: now pids may be reaped.
        self.warden = None;
        let take = |s: &mut Option<Source>| s.as_mut().map(|s| std::mem::take(&mut s.held)).unwrap_or_default();
        Outcome {
            code: self.code.unwrap_or(0),
            ends: self.ranks.iter().filter_map(|r| r.process.end).collect(),
            timed_out: self.timed_out,
            stdout: self.ranks.iter_mut().map(|r| take(&mut r.stdout)).collect(),
            stderr: self.ranks.iter_mut().map(|r| take(&mut r.stderr)).collect(),
            reports: std::mem::take(&mut self.reports),
        }
    }

    /// Waits until the output has been read, or a signal says that nobody is going to.
    fn flush(&mut self) {
        self.out.drain();
        self.err.drain();
        while !(self.hurried || self.out.is_empty() && self.err.is_empty()) {
            let (fds, what) = self.interests();
            let now = |w: &Happening| matches!(w, Happening::Signals | Happening::Out | Happening::Err);
            let (fds, what) = fds.into_iter().zip(what).filter(|(_, w)| now(w)).unzip();
            self.poll(fds, what, None);
            self.out.drain();
            self.err.drain();
            if let Some(signal) = self.signals.as_ref().and_then(Signals::take) {
                self.code.get_or_insert(128 + signal);
                self.hurried = true;
            }
        }
    }

    fn interests(&self) -> (Vec<libc::pollfd>, Vec<Happening>) {
        let (mut fds, mut what) =
            (Vec::with_capacity(4 * self.ranks.len() + 4), Vec::with_capacity(4 * self.ranks.len() + 4));
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
        for (i, rank) in self.ranks.iter().enumerate() {
            if let Some(socket) = &rank.socket {
                let read = if self.server.listens_to(i) { libc::POLLIN } else { 0 };
                let write = if self.server.has_answers(i) { libc::POLLOUT } else { 0 };
                add(socket.as_raw_fd(), read | write, Happening::Socket(i));
            }
            if rank.process.end.is_none() {
                add(rank.process.pidfd.as_raw_fd(), libc::POLLIN, Happening::End(i));
            }
            for (source, sink, w) in
                [(&rank.stdout, &self.out, Happening::Stdout(i)), (&rank.stderr, &self.err, Happening::Stderr(i))]
            {
                if let Some(source) = source.as_ref().filter(|s| s.is_open() && !(s.is_tagged() && sink.is_full())) {
                    add(source.fd(), libc::POLLIN, w);
                }
            }
        }
        (fds, what)
    }

    fn poll(&self, mut fds: Vec<libc::pollfd>, what: Vec<Happening>, until: Option<Instant>) -> Vec<(Happening, i16)> {
        let mut ms = until
            .map_or(-1, |t| t.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000).min(1 << 30) as i32);
        if self.typing.as_ref().is_some_and(|t| t.interest().is_none()) {
            // The terminal is not ours to read at present, and nothing tells when it becomes ours again.
            ms = if ms < 0 { 500 } else { ms.min(500) };
        }
        let _ = poll(&mut fds, ms);
        fds.iter().zip(what).filter(|(p, _)| p.revents != 0).map(|(p, w)| (w, p.revents)).collect()
    }

    /// Waits for the next thing to happen, and sees to it.
    fn turn(&mut self) {
        let until = match self.ending {
            Ending::No => self.deadline,
            Ending::Asked(kill_at) => Some(kill_at),
            Ending::Killed => None,
        };
        let (fds, what) = self.interests();
        let ready = self.poll(fds, what, until);
        let (mut typing, mut ended) = (true, Vec::new());
        for (what, _) in &ready {
            match *what {
                Happening::Signals => self.obey(),
                Happening::Typing => typing = self.typing.as_mut().is_some_and(Typing::step),
                Happening::Out => self.out.drain(),
                Happening::Err => self.err.drain(),
                Happening::Socket(i) => self.serve(i),
                Happening::End(i) => ended.push(i),
                Happening::Stdout(i) => read_stream(&mut self.ranks[i].stdout, &mut self.out),
                Happening::Stderr(i) => read_stream(&mut self.ranks[i].stderr, &mut self.err),
            }
        }
        if !typing {
            self.typing = None;
        }
        self.judge(ended);
        self.look_at_the_clock();
        self.send_answers();
        self.out.drain();
        self.err.drain();
    }

    /// Reads a rank's questions.
    fn serve(&mut self, i: usize) {
        while let Some(socket) = &self.ranks[i].socket
            && self.server.listens_to(i)
        {
            let mut bytes = [0u8; 4096];
            let n = match read(socket, &mut bytes) {
                Ok(n @ 1..) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => {
                    self.server.hung_up(i);
                    self.ranks[i].socket = None;
                    return;
                }
            };
            match self.server.receive(i, &bytes[..n]) {
                Verdict::Fine => self.send(i),
                Verdict::Abort(code) => {
                    self.report(format!("{} aborted the job with exit code {code}", self.who(i)));
                    self.aborted |= self.code.is_none();
                    self.code.get_or_insert(code & 0xff);
                    self.end(Some(i));
                }
                Verdict::Garbage(what) => {
                    self.report(format!(
                        "{} sent {what} on its PMI descriptor, which is not PMI-1; it was cut off",
                        self.who(i)
                    ));
                    self.ranks[i].socket = None;
                }
            }
        }
    }

    fn send_answers(&mut self) {
        for i in 0..self.ranks.len() {
            if self.server.has_answers(i) {
                self.send(i);
            }
        }
    }

    fn send(&mut self, i: usize) {
        let outbox = self.server.outbox(i);
        let Some(socket) = &self.ranks[i].socket else { return outbox.clear() };
        match send(socket, outbox, libc::MSG_DONTWAIT) {
            Ok(n) => drop(outbox.drain(..n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // The rank is gone; its end tells the rest.
            _ => outbox.clear(),
        }
    }

    /// Finds out how ranks ended, and what follows for the others.
    fn judge(&mut self, ended: Vec<usize>) {
        let mut failures = Vec::new();
        for i in ended {
            let Some(end) = self.ranks[i].process.look() else { continue };
            // Its last words are still in the socket.
            self.serve(i);
            self.ranks[i].socket = None;
            let stage = self.server.stage(i);
            let left_badly = matches!(stage, Stage::Joined | Stage::Cut);
            let why = match (stage, end) {
                (Stage::Left, End::Exit(0)) => "has_left_for_good",
                (_, End::Exit(0)) => "has_exited_without_finalize",
                _ => "died",
            };
            self.server.lose(i, why);
            if end != End::Exit(0) || left_badly {
                failures.push((i, end));
            }
        }
        // Of several that ended at once, the one that died of a signal is the cause and the others' exits are the effect.
        failures.sort_by_key(|(_, end)| matches!(end, End::Exit(_)));
        for (i, end) in failures {
            // What dies when it was told to is no news.
            let told = self.ending != Ending::No;
            if told && matches!(end, End::Exit(_) | End::Signal { signal: libc::SIGTERM | libc::SIGKILL, .. }) {
                continue;
            }
            let code = if end == End::Exit(0) { 1 } else { end.code() };
            if told && self.aborted {
                // It crashed, which nobody told it to: another rank noticed that, and aborted, before its end came here.
                self.code = Some(code);
            }
            self.code.get_or_insert(code);
            let what = if end == End::Exit(0) { "exited with code 0 without finalize".into() } else { end.to_string() };
            let running = self.running();
            let ending = if self.keep_going || told || running.is_empty() {
                String::new()
            } else {
                format!("; ending {}", named(&running))
            };
            self.report(format!("{} {what}{ending}", self.who(i)));
            if !self.keep_going {
                self.end(None);
            }
        }
    }

    fn running(&self) -> Vec<u32> {
        (0..self.ranks.len() as u32).filter(|i| self.ranks[*i as usize].process.end.is_none()).collect()
    }

    fn who(&self, i: usize) -> String {
        format!("rank {i} (pid {}, {})", self.ranks[i].process.pid, self.host)
    }

    /// Asks all ranks to end, but for one that is about to by itself.
    fn end(&mut self, but: Option<usize>) {
        if self.ending == Ending::No {
            self.ending = Ending::Asked(Instant::now() + self.grace);
            for (i, rank) in self.ranks.iter().enumerate().filter(|(i, _)| Some(*i) != but) {
                if self.ranks[i].process.end.is_none() {
                    rank.process.signal(libc::SIGTERM);
                    // A stopped process hears it only when it runs again.
                    rank.process.signal(libc::SIGCONT);
                }
            }
        }
    }

    fn kill(&mut self) {
        self.ending = Ending::Killed;
        self.signal_all(libc::SIGKILL);
    }

    fn signal_all(&self, signal: i32) {
        self.ranks.iter().for_each(|r| r.process.signal(signal));
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
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
                for &rank in running.iter().take(16) {
                    let who = self.who(rank as usize);
                    self.report(format!("{who}: {}", activity::of(self.ranks[rank as usize].process.pid)));
                }
                self.end(None);
            }
            _ => {}
        }
    }

    /// A signal for the launcher.
    fn obey(&mut self) {
        let Some(signal) = self.signals.as_ref().and_then(Signals::take) else { return };
        if signal == libc::SIGTSTP {
            // Ctrl-Z: the job stops with its launcher and goes on with it.
            self.signal_all(libc::SIGSTOP);
            stop_here();
            self.signal_all(libc::SIGCONT);
            return;
        }
        let running = named(&self.running());
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
fn named(ranks: &[u32]) -> String {
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, place::ranges(ranks.iter().copied()))
}
