//! A keeper's connection with a rank, with a keeper above or below it, or with one that asks for values: lines, each
//! with its check.

use crate::base::key::Key;
use crate::base::system;
use crate::launch::costs::{self, Connection};
use crate::launch::seal::{self, Keys, Seal};
use crate::launch::wire::{self, Inbox};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// A connection that never blocks, and never raises SIGPIPE: TCP, or a socket of this machine.
pub(in crate::launch) trait Stream: Read + Write + AsRawFd + Send {}
impl<T: Read + Write + AsRawFd + Send> Stream for T {}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A rank of this node, by its place in the server.
    Rank(usize),
    /// The keeper of this part of the range.
    Branch(usize),
    /// The one above.
    Above,
    /// Another that asks.
    Guest,
}

/// See the head of this file.
pub(super) struct Link {
    stream: Box<dyn Stream>,
    pub(super) from: String,
    pub(super) role: Role,
    /// The checks of what is said here and heard; the own rank's lines do not leave the process, and have none.
    seals: Option<[Seal; 2]>,
    inbox: Inbox,
    /// On its way, with the checks.
    outbox: Vec<u8>,
    pub(super) heard: Instant,
    /// It has had an answer.
    pub(super) is_served: bool,
    _counted: Option<Connection>,
}

/// Nothing more comes, or: what came is not what the other side says next.
pub(super) enum End {
    Closed,
    Altered(String),
}

impl Link {
    /// The own rank's, within this process.
    pub(super) fn own(stream: Box<dyn Stream>) -> Link {
        let (inbox, outbox) = Default::default();
        let (from, role, heard) = ("this process".into(), Role::Rank(0), Instant::now());
        Link { stream, from, role, seals: None, inbox, outbox, heard, is_served: false, _counted: None }
    }

    /// With the keys for what is said and heard here.
    pub(super) fn new(stream: Box<dyn Stream>, from: String, role: Role, [says, hears]: [Key; 2]) -> Link {
        let (inbox, outbox) = Default::default();
        let (heard, _counted) = (Instant::now(), Some(Connection::new()));
        let seals = Some([Seal::new(says), Seal::new(hears)]);
        Link { stream, from, role, seals, inbox, outbox, heard, is_served: false, _counted }
    }

    /// From the side of the keeper.
    pub(super) fn let_in(stream: Box<dyn Stream>, from: String, role: Role, keys: Keys) -> Link {
        Link::new(stream, from, role, [keys.root, keys.rank])
    }

    pub(super) fn fd(&self) -> libc::c_int {
        self.stream.as_raw_fd()
    }

    /// Says a line, given without its newline; [`flush`](Link::flush) sends it.
    pub(super) fn say(&mut self, line: &str) {
        match &mut self.seals {
            None => self.outbox.extend_from_slice(format!("{line}\n").as_bytes()),
            Some([says, _]) => self.outbox.extend_from_slice(says.put(line).as_bytes()),
        }
    }

    /// Says whole lines, which are taken.
    pub(super) fn say_all(&mut self, lines: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(lines).into_owned();
        text.lines().for_each(|line| self.say(line));
        lines.clear();
    }

    /// Says something whatever is under way, and nothing after it.
    pub(super) fn say_last(&mut self, line: &str) {
        let last =
            self.seals.as_ref().map_or_else(|| format!("{line}\n"), |[says, _]| seal::put_last(says.key(), line));
        let _ = self.stream.write(last.as_bytes());
        system::shutdown(&*self.stream, libc::SHUT_WR);
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends what can be sent; where it is full, or gone, the poll will tell.
    pub(super) fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(n) => drop(self.outbox.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Whole lines that have come, with their newlines; of the own rank whatever has come.
    pub(super) fn take_in(&mut self) -> Result<Vec<u8>, End> {
        let mut bytes = [0u8; 4096];
        let n = match self.stream.read(&mut bytes) {
            Ok(0) => return Err(End::Closed),
            Ok(n) => n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(Vec::new());
            }
            Err(_) => return Err(End::Closed),
        };
        self.heard = Instant::now();
        let Some([_, hears]) = &mut self.seals else { return Ok(bytes[..n].to_vec()) };
        costs::read(n);
        self.inbox.push(&bytes[..n]);
        let mut all = Vec::new();
        loop {
            match self.inbox.line() {
                Ok(None) => return Ok(all),
                Err(wire::TooLong) => return Err(End::Altered(wire::shown(self.inbox.rest()))),
                Ok(Some(came)) => {
                    let line = hears.take(came).ok_or_else(|| End::Altered(wire::shown(came)))?;
                    all.extend_from_slice(line);
                    all.push(b'\n');
                }
            }
        }
    }
}
