//! Meeting at a root, the rank's side: the connection, the proofs that go over it, the thread that watches over it.
//!
//! A rank connects to the root and both prove that they know the secret, without saying it:
//!
//! ```text
//!   root ── fmpl-start version=2 nonce=A ──────────────────────────────────▶ rank           (sealed=… where it has drawn the secret)
//!   root ◀─ fmpl-start version=2 rank=R size=N nonce=B proof=HMAC(secret; "rank" A B R N) ── rank
//!   root ── fmpl-welcome proof=HMAC(secret; "root" A B R N) ───────────────▶ rank          or: fmpl-refused why=…
//! ```
//! From then on the connection carries PMI-1, with the rank's side as under any launcher and [`super::rendezvous`] as the other. Each line has
//! a check (see [`seal`](super::seal)) with keys made from the secret, A, B, R and N, so whoever is on the way, and has passed the proofs on, can
//! neither alter a line nor add one. It is not encrypted.
//!
//! A connection that ends before the answer is no refusal: the root may have needed its place (see [`door`](super::door)), so the rank
//! tries again.

use super::environment::{Place, Secret};
use super::seal::{self, Keys};
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Error, Result, say};
use crate::base::key::{CHECK, Key, random};
use crate::base::system;
use crate::base::thread;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one attempt to connect, and one answer, may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Of the threads of the start.
pub(crate) const STACK: usize = 256 << 10;
/// How much longer than the root a rank waits, so that the root's reason comes first.
pub(crate) const MARGIN: Duration = Duration::from_secs(15);

impl Place {
    /// Connects this rank, which is not the root, within the time allowed.
    pub(crate) fn join(&self) -> Result<Joined> {
        let deadline = Instant::now() + self.patience;
        let mut pause = Duration::from_millis(5);
        loop {
            let why = match self.attempt(deadline) {
                Ok((stream, keys, secret)) => return self.settle(stream, keys, secret),
                Err(Trouble::Final(text)) => {
                    return Err(Error::new(Code::Launch, format!("rank {}: {text}", self.rank)));
                }
                Err(Trouble::Again(text)) => text,
            };
            if Instant::now() + pause >= deadline {
                let (rank, who, root, s) = (self.rank, self.who(), self.root(), self.patience.as_secs_f64());
                return Err(Error::new(
                    Code::Launch,
                    format!("rank {rank} did not find {who} at {root} within {s} s (FMPL_START_TIMEOUT): {why}"),
                ));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Tries the root's addresses in turn.
    fn attempt(&self, deadline: Instant) -> std::result::Result<(TcpStream, Keys, Key), Trouble> {
        let again = |what: &str, e: io::Error| Trouble::Again(format!("{what}: {e}"));
        let left = || ATTEMPT.min(deadline.saturating_duration_since(Instant::now())).max(Duration::from_millis(1));
        let addresses = self.addresses().map_err(|e| again(&format!("the address of {}", self.root()), e))?;
        let mut failed = Trouble::Again(format!("{} has no address", self.root()));
        for address in addresses {
            let met = TcpStream::connect_timeout(&address, left())
                .map_err(|e| again(&format!("connecting to {address}"), e))
                .and_then(|stream| {
                    stream.set_read_timeout(Some(left())).map_err(|e| again("a time-out for the connection", e))?;
                    self.introduce(stream)
                });
            match met {
                Ok(met) => return Ok(met),
                // At another of the addresses the root may be; if it is not, this is what counts.
                Err(e) if matches!(failed, Trouble::Again(_)) => failed = e,
                Err(_) => {}
            }
        }
        Err(failed)
    }

    /// The exchange of proofs.
    fn introduce(&self, mut stream: TcpStream) -> std::result::Result<(TcpStream, Keys, Key), Trouble> {
        let mut inbox = Inbox::default();
        let greeting = next_line(&mut stream, &mut inbox)?;
        let nonsense = |line: &[u8]| {
            Trouble::Final(format!(
                "what answers at {} is not the root of a job: it says {}",
                self.root(),
                wire::shown(line)
            ))
        };
        let parsed = Line::parse(&greeting).filter(|l| l.cmd() == "fmpl-start");
        let (version, theirs, sealed) = parsed
            .and_then(|l| Some((l.get("version")?, l.get("nonce")?, l.get("sealed"))))
            .ok_or_else(|| nonsense(&greeting))?;
        if version != VERSION {
            return Err(Trouble::Final(format!(
                "the root at {} is of another version of FMPL (start {version}, here {VERSION})",
                self.root()
            )));
        }
        if !is_nonce(theirs) {
            return Err(nonsense(&greeting));
        }
        let secret = match (&self.secret, sealed) {
            (Secret::Known(secret), _) => secret.clone(),
            (Secret::Sealed(seal), Some(text)) => seal.open(text).map_err(Trouble::Again)?,
            (Secret::Sealed(_), None) => return Err(Trouble::Again("another job listens there".into())),
        };
        let ours = nonce().map_err(|e| Trouble::Final(e.detail().to_owned()))?;
        let (rank, size, nonces) = (self.rank, self.size, [theirs, ours.as_str()]);
        let proof = proof(&secret, "rank", nonces, rank, size);
        let line = format!("cmd=fmpl-start version={VERSION} rank={rank} size={size} nonce={ours} proof={proof}\n");
        stream.write_all(line.as_bytes()).map_err(|e| Trouble::Again(format!("the root hung up: {e}")))?;
        let answer = next_line(&mut stream, &mut inbox)?;
        let line = Line::parse(&answer).ok_or_else(|| nonsense(&answer))?;
        match (line.cmd(), line.get("proof"), line.get("why")) {
            ("fmpl-welcome", Some(proof), _) if proves(&secret, proof, "root", nonces, rank, size) => {
                let keys = keys(&secret, nonces, rank, size);
                Ok((stream, keys, secret))
            }
            ("fmpl-welcome", ..) => {
                Err(Trouble::Final(format!("what answers at {} does not know the job's secret", self.root())))
            }
            ("fmpl-refused", _, Some(why)) => Err(Trouble::Final(format!(
                "the root at {} turned this rank away: {}",
                self.root(),
                why.replace('_', " ")
            ))),
            _ => Err(nonsense(&answer)),
        }
    }

    /// The connection as PMI-1 uses it, and the thread that watches over it.
    fn settle(&self, stream: TcpStream, keys: Keys, secret: Key) -> Result<Joined> {
        let failed =
            |e: io::Error| Error::new(Code::System, format!("rank {}: the connection to the root: {e}", self.rank));
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(self.patience + MARGIN)).map_err(failed)?;
        keep_alive(&stream);
        let line: OwnedFd = stream.try_clone().map_err(failed)?.into();
        let watched: OwnedFd = stream.try_clone().map_err(failed)?.into();
        let (rank, root) = (self.rank, keys.root.clone());
        let thread = thread::spawn("fmpl-launch", STACK, move || watch(&watched, rank, &root)).map_err(failed)?;
        Ok(Joined {
            socket: stream.into(),
            helper: Helper { thread: Some(thread), line: Some(line) },
            keys: Some(keys),
            secret,
        })
    }
}

/// What whoever knows the secret can say of two numbers drawn by lot, the root's and the rank's, in hexadecimal.
pub(crate) fn proof(secret: &Key, who: &str, [root, rank]: [&str; 2], number: u32, size: u32) -> String {
    let said = format!("{who} {root} {rank} {number} {size}");
    wire::hex(&secret.derive("proof", &[VERSION.as_bytes()]).check(&[said.as_bytes()]))
}

/// Is this such a proof? Takes as long whatever the answer.
pub(crate) fn proves(secret: &Key, proof: &str, who: &str, [root, rank]: [&str; 2], number: u32, size: u32) -> bool {
    let Some(proof) = wire::unhex(proof).and_then(|p| <[u8; CHECK]>::try_from(p).ok()) else { return false };
    let said = format!("{who} {root} {rank} {number} {size}");
    secret.derive("proof", &[VERSION.as_bytes()]).verifies(&[said.as_bytes()], &proof)
}

/// The keys of the connection of this rank on which these numbers were said.
pub(crate) fn keys(secret: &Key, [root, rank]: [&str; 2], number: u32, size: u32) -> Keys {
    let context = [root.as_bytes(), rank.as_bytes(), &number.to_le_bytes(), &size.to_le_bytes()];
    let of = |who| secret.derive(who, &context);
    Keys { rank: of("lines of the rank"), root: of("lines of the root") }
}

/// Of the lines above, and of what follows them.
pub(crate) const VERSION: &str = "2";

/// A rank's connection to the root.
pub(crate) struct Joined {
    pub(crate) socket: OwnedFd,
    pub(crate) helper: Helper,
    /// `None`: it does not leave this process.
    pub(crate) keys: Option<Keys>,
    /// The job's.
    pub(crate) secret: Key,
}

enum Trouble {
    /// The root may not be there yet.
    Again(String),
    /// Waiting will not help.
    Final(String),
}

/// A thread of the library that goes on while the rank is in its job.
pub(crate) struct Helper {
    thread: Option<JoinHandle<()>>,
    /// Shut down, it ends the thread; the root's thread ends when rank 0's own connection has.
    line: Option<OwnedFd>,
}

impl Helper {
    pub(crate) fn of_root(thread: JoinHandle<()>) -> Helper {
        Helper { thread: Some(thread), line: None }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.line.is_none()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            system::shutdown(line, libc::SHUT_RDWR);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for the root to hang up. When its last word is that the job was aborted, so is this process.
fn watch(line: &OwnedFd, rank: u32, root: &Key) {
    let mut p = [libc::pollfd { fd: line.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 }];
    while !system::poll(&mut p, -1).is_ok_and(|n| n > 0) {}
    let mut bytes = [0u8; 4096];
    // The bytes stay for whoever waits for an answer.
    let n = system::peek(line, &mut bytes).unwrap_or(0);
    for text in bytes[..n].split(|b| *b == b'\n') {
        if let Some(line) = seal::last(root, text).and_then(Line::parse).filter(|l| l.cmd() == "abort") {
            obey_abort(&line, rank);
        }
    }
}

/// Ends this process as an aborted job wants it.
pub(crate) fn obey_abort(line: &Line, rank: u32) -> ! {
    let (code, by) = (line.number("exitcode").unwrap_or(1), line.get("rank").unwrap_or("?"));
    say(&format!("rank {rank}: rank {by} has aborted the job with exit code {code}"));
    system::exit_now(code)
}

/// A machine that goes without a word is noticed within some 30 s.
pub(crate) fn keep_alive(socket: &impl AsRawFd) {
    let set = |level, name, value| system::set_option(socket, level, name, value);
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 10);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 5);
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 4);
    set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 30_000);
}

fn next_line(stream: &mut TcpStream, inbox: &mut Inbox) -> std::result::Result<Vec<u8>, Trouble> {
    let deadline = Instant::now() + ATTEMPT;
    loop {
        match inbox.line() {
            Ok(Some(line)) => return Ok(line.to_vec()),
            Ok(None) if Instant::now() < deadline => {}
            Ok(None) => return Err(Trouble::Again("what answers there says nothing to the point".into())),
            Err(wire::TooLong) => {
                return Err(Trouble::Final(format!(
                    "what answers there is not the root of a job: {}",
                    wire::shown(inbox.rest())
                )));
            }
        }
        let mut bytes = [0u8; 512];
        match stream.read(&mut bytes) {
            Ok(0) => {
                return Err(Trouble::Again(format!(
                    "what answers there hung up (after {})",
                    wire::shown(inbox.rest())
                )));
            }
            Ok(n) => inbox.push(&bytes[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Trouble::Again(format!("what answers there says nothing: {e}"))),
        }
    }
}

/// Sixteen random bytes, in hexadecimal.
pub(crate) fn nonce() -> Result<String> {
    random::<16>().map(|bytes| wire::hex(&bytes))
}

/// Is it as long as [`nonce`] makes it?
pub(crate) fn is_nonce(text: &str) -> bool {
    text.len() == 32
}
