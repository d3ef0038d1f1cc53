//! The ranks on this machine: their processes, what they ask, what they print, how they end.
//!
//! What follows from that for the job is not decided here: it is handed on as [`News`], to the launcher's loop on the same machine or, by
//! a daemon, on another one.

use super::debug::{Debug, Gdb};
use super::relay::Source;
use super::server::{Server, Stage, Verdict};
use crate::base::system::process::{End, Process, Warden};
use crate::base::system::{read, send};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// See the head of this file.
pub(super) struct Crew {
    // In this order: the warden stands down before the first pid can be reaped.
    pub(super) warden: Option<Warden>,
    pub(super) ranks: Vec<Rank>,
    pub(super) server: Server,
    pub(super) debug: Option<Debug>,
}

pub(super) struct Rank {
    /// Its number in the job.
    pub(super) number: u32,
    /// Ended before the process is waited for, whose end it would be told first.
    pub(super) debugger: Option<Gdb>,
    pub(super) process: Process,
    pub(super) socket: Option<OwnedFd>,
    /// The output that does not go where the launcher's own goes: standard output, standard error, what its debugger says.
    pub(super) streams: [Option<Source>; 3],
}

/// What happened to a rank, by its number in the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It asks for the end of the job, with this exit code.
    Abort(u32, i32),
    /// It sent what is not PMI-1, and is cut off.
    Garbage(u32, String),
    /// Its process has ended, and had not left the job in good order (true).
    Ended(u32, End, bool),
}

/// What a descriptor in the poll tells of, by the rank's place in the crew.
#[derive(Clone, Copy)]
pub(super) enum Happening {
    Socket(usize),
    End(usize),
    Stream(usize, usize),
}

impl Drop for Crew {
    /// The groups are empty before the warden stands down: whoever kills this process in between leaves nothing behind.
    fn drop(&mut self) {
        self.signal_all(libc::SIGKILL);
        if self.ranks.iter().any(|r| r.process.end.is_none()) {
            self.end_debuggers();
        }
    }
}

impl Crew {
    /// The descriptors to be waited for. `reads`: whether output of the stream may be read now.
    pub(super) fn interests(&self, reads: impl Fn(&Source, usize) -> bool, mut add: impl FnMut(RawFd, i16, Happening)) {
        for (i, rank) in self.ranks.iter().enumerate() {
            if let Some(socket) = &rank.socket {
                let read = if self.server.listens_to(i) { libc::POLLIN } else { 0 };
                let write = if self.server.has_answers(i) { libc::POLLOUT } else { 0 };
                add(socket.as_raw_fd(), read | write, Happening::Socket(i));
            }
            if rank.process.end.is_none() {
                add(rank.process.pidfd.as_raw_fd(), libc::POLLIN, Happening::End(i));
            }
            for (s, source) in rank.streams.iter().enumerate() {
                if let Some(source) = source.as_ref().filter(|source| source.is_open() && reads(source, s)) {
                    add(source.fd(), libc::POLLIN, Happening::Stream(i, s));
                }
            }
        }
    }

    /// Reads a rank's questions.
    pub(super) fn serve(&mut self, i: usize, news: &mut Vec<News>) {
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
            let number = self.ranks[i].number;
            match self.server.receive(i, &bytes[..n]) {
                Verdict::Fine => self.send(i),
                Verdict::Abort(code) => news.push(News::Abort(number, code)),
                Verdict::Garbage(what) => {
                    news.push(News::Garbage(number, what));
                    self.ranks[i].socket = None;
                }
            }
        }
    }

    /// Finds out how a rank ended.
    pub(super) fn look_at_end(&mut self, i: usize, news: &mut Vec<News>) {
        let Some(end) = self.ranks[i].process.look() else {
            // It has ended, and its debugger does not know yet; how is told then. Nothing can be waited for in place of that.
            return std::thread::sleep(Duration::from_millis(1));
        };
        // Its last words are still in the socket.
        self.serve(i, news);
        self.ranks[i].socket = None;
        let stage = self.server.stage(i);
        let left_badly = matches!(stage, Stage::Joined | Stage::Cut);
        let why = match (stage, end) {
            (Stage::Left, End::Exit(0)) => "has_left_for_good",
            (_, End::Exit(0)) => "has_exited_without_finalize",
            _ => "died",
        };
        self.server.lose(i, why);
        news.push(News::Ended(self.ranks[i].number, end, left_badly));
    }

    pub(super) fn send_answers(&mut self) {
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

    /// Asks all ranks to end, but for one that is about to by itself.
    pub(super) fn ask_to_end(&self, but: Option<u32>) {
        for rank in self.ranks.iter().filter(|r| Some(r.number) != but && r.process.end.is_none()) {
            rank.process.signal(libc::SIGTERM);
            // A stopped process hears it only when it runs again.
            rank.process.signal(libc::SIGCONT);
        }
    }

    /// The ranks have been killed, and nobody is to look at them any more.
    pub(super) fn end_debuggers(&mut self) {
        self.ranks.iter_mut().for_each(|r| r.debugger = None);
        if let Some(debug) = &mut self.debug {
            debug.close();
        }
    }

    pub(super) fn signal_all(&self, signal: i32) {
        self.ranks.iter().for_each(|r| r.process.signal(signal));
    }
}
