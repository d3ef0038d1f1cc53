//! The initiator's side of a first contact: to connect, to greet, to hear the answer ([`super::attach`] draws it).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::attach::{Card, Shared};
use super::hello::{self, Flags, HELLO_LEN, Hello, Kind, Packet, Reason};
use super::peer::Peer;
use super::region::{PeerRegion, version_error};
use super::socket;
use crate::base::error::{Code, Error, Result, error};
use crate::base::key::Key;
use crate::base::system;

/// How long an attempt to connect may wait for a place in the peer's queue before this side looks up.
const CONNECT_SLICE: Duration = Duration::from_millis(200);
/// What who greets says last: it stays.
pub(super) const KEPT: u8 = 1;

/// A connection on which a peer has been greeted, that has not answered yet.
pub(super) struct Greeting {
    line: OwnedFd,
    pidfd: OwnedFd,
    pid: libc::pid_t,
}

/// What came of an attempt.
pub(super) enum Greeted {
    Done(Arc<Peer>),
    Again,
    /// The peer lives and has not answered, and the caller waits no longer.
    Late(Greeting),
    /// The peer has died or left.
    Gone(Error),
    /// The peer lacks something.
    Refused(Error),
}

impl Shared {
    pub fn greetings(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Greeting>> {
        self.greetings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a greeting until somebody asks for the peer again, or it has become known in another way.
    pub fn put_aside(&self, peer: u32, greeting: Greeting) {
        let mut greetings = self.greetings();
        match self.known(peer) {
            None => _ = greetings.insert(peer, greeting),
            Some(known) => self.keep_greeting(known, greeting),
        }
    }

    /// The peer has become known in another way. Its answer to this greeting is still to come, and the connection may be the one that both
    /// keep: where each had greeted the other, each may have given up the connection on which it was greeted.
    pub fn keep_greeting(&self, peer: &Peer, greeting: Greeting) {
        self.keep(peer, greeting.line, false);
    }

    /// One attempt to connect, greet and be welcomed, or the rest of one.
    pub fn greet(&self, peer: u32, card: &Card, secret: &Key, goes_on: &mut dyn FnMut() -> bool) -> Result<Greeted> {
        #[cfg(loom)]
        if let Some(answers) = self.answers.get() {
            return Ok(match answers(peer) {
                Some(known) => Greeted::Done(self.install(known).map_err(|e| at_contact(peer, "watching over it", e))?),
                None => self.ended(peer),
            });
        }
        let begun = self.greetings().remove(&peer);
        let greeting = match begun {
            Some(greeting) => greeting,
            None => match self.connect(peer, card, secret)? {
                Ok(greeting) => greeting,
                Err(greeted) => return Ok(greeted),
            },
        };
        self.hear(peer, greeting, secret, goes_on)
    }

    /// The peer has ended; it may have greeted first.
    fn ended(&self, peer: u32) -> Greeted {
        self.known(peer).cloned().map_or_else(|| Greeted::Gone(gone(peer)), Greeted::Done)
    }

    /// Connects and greets, if the peer is there.
    fn connect(&self, peer: u32, card: &Card, secret: &Key) -> Result<std::result::Result<Greeting, Greeted>> {
        let failed = |what: &str, e: io::Error| at_contact(peer, what, e);
        let ended = || Ok(Err(self.ended(peer)));
        let line = match socket::connect(&card.name, CONNECT_SLICE) {
            Ok(line) => line,
            Err(e) => {
                return match e.kind() {
                    // It may have greeted first, and then left.
                    io::ErrorKind::ConnectionRefused => ended(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Err(Greeted::Again)),
                    _ => Err(failed("connecting", e)),
                };
            }
        };
        let fd = line.as_fd();
        let them = socket::credentials(fd).map_err(|e| failed("asking who it is (SO_PEERCRED)", e))?;
        if them.uid != system::user() || them.pid as u32 != card.pid {
            if let Some(p) = self.known(peer) {
                return Ok(Err(Greeted::Done(Arc::clone(p))));
            }
            let text = format!(
                "rank {peer} (process {}) has died or left, and process {} of user {} has taken its name",
                card.pid, them.pid, them.uid
            );
            return Ok(Err(Greeted::Gone(Error::new(Code::Peer, text))));
        }
        let pidfd = match socket::pidfd(fd, them.pid) {
            Ok(Some(pidfd)) => pidfd,
            Ok(None) => return ended(),
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => return Ok(Err(Greeted::Again)),
            Err(e) => return Err(failed("getting its pidfd (Linux 5.3 or later is needed)", e)),
        };
        let hello = self.introduce(Kind::Hello, peer, secret, false);
        match socket::send(fd, &hello, Some(self.region.fd())) {
            Ok(()) => Ok(Ok(Greeting { line, pidfd, pid: them.pid })),
            // It has hung up, and may have said why before that.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {
                Ok(Ok(Greeting { line, pidfd, pid: them.pid }))
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(Err(Greeted::Again)),
            Err(e) => Err(failed("greeting it", e)),
        }
    }

    /// Waits for the answer to a greeting, for the peer's end, or for a contact that it began itself, whichever comes first.
    fn hear(&self, peer: u32, greeting: Greeting, secret: &Key, goes_on: &mut dyn FnMut() -> bool) -> Result<Greeted> {
        let failed = |what: &str, e: io::Error| at_contact(peer, what, e);
        let Greeting { line, pidfd, pid } = greeting;
        let fd = line.as_fd();
        let mut slice = Duration::from_millis(1);
        let mut answer = [0; HELLO_LEN];
        let (len, fds) = loop {
            use std::os::fd::AsRawFd;
            match socket::receive(fd, &mut answer) {
                Ok(got) => break got,
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(e) if e.raw_os_error() == Some(libc::ECONNRESET) => break (0, Vec::new()),
                Err(e) => return Err(failed("taking its answer", e)),
            }
            if let Some(p) = self.known(peer) {
                // Its welcome is still to come on this connection: it may be the one that both keep.
                self.keep(p, line, false);
                return Ok(Greeted::Done(Arc::clone(p)));
            }
            if socket::has_ended(pidfd.as_fd()) {
                return Ok(self.ended(peer));
            }
            if !goes_on() {
                return Ok(Greeted::Late(Greeting { line, pidfd, pid }));
            }
            let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            socket::poll(&mut [watch(fd.as_raw_fd()), watch(pidfd.as_raw_fd())], slice)
                .map_err(|e| failed("waiting for its answer", e))?;
            slice = (slice * 2).min(Duration::from_millis(20));
        };
        if len == 0 {
            if let Some(p) = self.known(peer) {
                return Ok(Greeted::Done(Arc::clone(p)));
            }
            return Ok(if socket::has_ended(pidfd.as_fd()) { self.ended(peer) } else { Greeted::Again });
        }
        let welcome = match self.understand(peer, &answer[..len.min(HELLO_LEN)], secret) {
            Err(e) if matches!(e.code(), Code::System | Code::Memory) => return Ok(Greeted::Refused(e)),
            understood => understood?,
        };
        let [region]: [_; 1] = fds
            .try_into()
            .map_err(|_| error!(Code::Peer, "rank {peer} answered the first contact without its region"))?;
        let region = PeerRegion::adopt(region, peer, self.size, self.version())?;
        let cma = welcome.flags.contains(Flags::CMA_REACHED) && self.reaches(pid, &welcome);
        let known = Peer::new(pid, Some(pidfd), region, cma, self.region.header().is_reached());
        let known = self.install(Arc::new(known)).map_err(|e| failed("watching over it", e))?;
        self.keep(&known, line, true);
        Ok(Greeted::Done(known))
    }

    /// Makes sure that an answer is a welcome from the right rank of the right job.
    fn understand(&self, peer: u32, answer: &[u8], secret: &Key) -> Result<Box<Hello>> {
        let wrong = |what: &str| error!(Code::Peer, "rank {peer} turned down the first contact: {what}");
        match hello::decode(answer, self.version()) {
            Packet::Hello(h)
                if h.kind == Kind::Welcome
                    && h.knows(secret)
                    && (h.from, h.to, h.size) == (peer, self.rank, self.size) =>
            {
                Ok(h)
            }
            Packet::Version(theirs) => Err(version_error(peer, theirs, self.version())),
            Packet::Refused { version, .. } if version != self.version() => {
                Err(version_error(peer, version, self.version()))
            }
            Packet::Refused { reason: Some(reason @ (Reason::Descriptors | Reason::Resources)), .. } => {
                let code = if reason == Reason::Descriptors { Code::System } else { Code::Memory };
                Err(error!(code, "first contact with rank {peer}: it says: {}", reason.text()))
            }
            Packet::Refused { reason: Some(reason), .. } => {
                Err(wrong(&format!("of this process (rank {}) it says: {}", self.rank, reason.text())))
            }
            Packet::Refused { reason: None, .. } => Err(wrong("it gave no reason")),
            Packet::Hello(_) | Packet::Garbage => Err(wrong("its answer is nonsense, or from another job")),
        }
    }
}

#[cold]
fn at_contact(peer: u32, what: &str, e: io::Error) -> Error {
    error!(Code::System, "first contact with rank {peer}: {what}: {e}")
}

#[cold]
fn gone(peer: u32) -> Error {
    error!(Code::Peer, "rank {peer} has died or left before first contact")
}
