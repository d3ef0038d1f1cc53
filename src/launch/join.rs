//! Meeting at a root, the side of who comes: the connection, the proofs that go over it, the thread that watches over
//! it.
//!
//! Whoever comes to a [keeper](super::keeper), and the keeper, prove to each other that they know the secret, without
//! saying it:
//!
//! ```text
//!   keeper ── fmpl-start version=3 nonce=A ─────────────────────────────────────────▶ who comes   (sealed=… where the root has drawn the
//!                                                                                    secret; from, to, below: see `keeper`)
//!   keeper ◀─ fmpl-start version=3 as=W rank=R size=N nonce=B at=D proof=HMAC(secret; W A B R N D) ── who comes
//!   keeper ── fmpl-welcome rank=K from=F to=T proof=HMAC(secret; "root" A B R N "K F T") ───▶ who comes   or: fmpl-refused why=…
//! ```
//! W says as what it comes: a `rank` of the keeper's node, a `branch` (a keeper itself, whose door is at D, and which
//! is responsible for the ranks from F to T from now on), or a `guest` (a keeper with a question). K is the keeper's
//! rank. From then on the connection carries lines: of PMI-1 with a rank, with the rank's side as under any launcher
//! and the keeper as the other; much like them with the others. Each line has a check (see [`seal`](super::seal)) with
//! keys made from the secret, A, B, R and N, so whoever is on the way, and has passed the proofs on, can neither alter
//! a line nor add one. It is not encrypted.
//!
//! A connection that ends before the answer is no refusal: the keeper may have needed its place (see
//! [`door`](super::door)), so whoever came tries again.

use super::environment::{Place, Secret};
use super::keeper::Range;
use super::seal::{self, Keys};
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Result, error, say};
use crate::base::key::{CHECK, Key, random};
use crate::base::system;
use crate::base::thread;
use crate::base::variants::variants;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one attempt to connect, and one answer, may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Of the threads of the start.
pub(crate) const STACK: usize = 256 << 10;
/// How much longer than the root a rank waits, so that the root's reason comes first.
pub(crate) const MARGIN: Duration = Duration::from_secs(15);
/// From keeper to keeper on the way down: more than any tree is deep.
const MOVES: usize = 64;

variants! {
    /// As what a process comes.
    pub(crate) enum Part: u8, word {
        Rank => "rank",
        Branch => "branch",
        Guest => "guest",
    }
}

/// What has come of an introduction.
pub(crate) struct Met {
    pub(crate) keys: Keys,
    /// The job's.
    pub(crate) secret: Key,
    /// The same, as the greeting had it.
    pub(crate) sealed: Option<String>,
    /// The keeper's rank, and what this process is responsible for if it is a branch.
    pub(crate) rank: u32,
    pub(crate) range: Range,
}

impl Place {
    /// Connects this process, which is a keeper, with the one that is to stand above it, within the time allowed; with
    /// the door that it has told of.
    pub(super) fn climb(&self) -> Result<(TcpStream, Met, TcpListener)> {
        self.patiently(|left| self.attempt(left))
    }

    /// Tries again until it is done, or the time is over.
    pub(super) fn patiently<T>(
        &self,
        mut attempt: impl FnMut(Duration) -> std::result::Result<T, Trouble>,
    ) -> Result<T> {
        let deadline = Instant::now() + self.patience;
        let mut pause = Duration::from_millis(5);
        loop {
            let left = ATTEMPT.min(deadline.saturating_duration_since(Instant::now())).max(Duration::from_millis(1));
            let why = match attempt(left) {
                Ok(done) => return Ok(done),
                Err(Trouble::Final(text) | Trouble::Refused(text)) => {
                    return Err(error!(Code::Launch, "rank {}: {text}", self.rank));
                }
                Err(Trouble::Again(text) | Trouble::Unreachable(text) | Trouble::Moved(text)) => text,
            };
            if Instant::now() + pause >= deadline {
                let (rank, who, root, s) = (self.rank, self.who(), self.root(), self.patience.as_secs_f64());
                return Err(error!(
                    Code::Launch,
                    "rank {rank} did not find {who} at {root} within {s} s (FMPL_START_TIMEOUT): {why}"
                ));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Tries the root's addresses in turn, and goes where it is sent from there.
    fn attempt(&self, left: Duration) -> std::result::Result<(TcpStream, Met, TcpListener), Trouble> {
        let addresses = self.addresses().map_err(|e| Trouble::Again(format!("the address of {}: {e}", self.root())))?;
        let mut failed = Trouble::Again(format!("{} has no address", self.root()));
        for address in addresses {
            let mut met = self.attempt_at(address, left);
            for _ in 0..MOVES {
                let Err(Trouble::Moved(at)) = &met else { break };
                met = match at.parse() {
                    Ok(at) => self.attempt_at(at, left),
                    Err(_) => {
                        Err(Trouble::Again(format!("{} has sent this rank to {at}, which is no address", self.root())))
                    }
                };
            }
            match met {
                Ok(met) => return Ok(met),
                // At another of the addresses the root may be; if it is not, this is what counts.
                Err(e) if matches!(failed, Trouble::Again(_) | Trouble::Unreachable(_)) => failed = e,
                Err(_) => {}
            }
        }
        Err(failed)
    }

    fn attempt_at(
        &self,
        at: SocketAddr,
        left: Duration,
    ) -> std::result::Result<(TcpStream, Met, TcpListener), Trouble> {
        let mut stream = connect(at, left)?;
        let listening = |e: io::Error| Trouble::Again(format!("a door for other keepers: {e}"));
        let here = stream.local_addr().map_err(listening)?;
        let door = super::door::listen(SocketAddr::new(here.ip(), 0)).map_err(listening)?;
        let address = door.local_addr().map_err(listening)?.to_string();
        let met = self.introduce(&mut stream, Part::Branch, &address)?;
        Ok((stream, met, door))
    }

    /// Connects with another keeper, to ask it something.
    pub(super) fn visit(&self, at: SocketAddr) -> std::result::Result<(TcpStream, Met), Trouble> {
        let mut stream = connect(at, ATTEMPT)?;
        let met = self.introduce(&mut stream, Part::Guest, "")?;
        Ok((stream, met))
    }

    /// The exchange of proofs.
    pub(super) fn introduce(
        &self,
        stream: &mut (impl Read + Write),
        part: Part,
        door: &str,
    ) -> std::result::Result<Met, Trouble> {
        let mut inbox = Inbox::default();
        let greeting = next_line(stream, &mut inbox)?;
        let (theirs, sealed) = self.greeted(&greeting, part)?;
        let secret = match (&self.secret, &sealed) {
            (Secret::Known(secret), _) => secret.clone(),
            (Secret::Sealed(seal), Some(text)) => seal.open(text).map_err(Trouble::Again)?,
            (Secret::Sealed(_), None) => return Err(Trouble::Again("another job listens there".into())),
        };
        let ours = nonce().map_err(|e| Trouble::Final(e.detail().to_owned()))?;
        let (rank, size, nonces, word) = (self.rank, self.size, [theirs.as_str(), ours.as_str()], part.word());
        let proof = proof(&secret, word, nonces, [rank, size], door);
        let line = format!(
            "cmd=fmpl-start version={VERSION} as={word} rank={rank} size={size} nonce={ours} at={door} proof={proof}\n"
        );
        stream.write_all(line.as_bytes()).map_err(|e| Trouble::Again(format!("the root hung up: {e}")))?;
        let answer = next_line(stream, &mut inbox)?;
        let line = Line::parse(&answer).ok_or_else(|| self.nonsense(&answer))?;
        match (line.cmd(), line.get("proof"), line.get("why").or(line.get("at"))) {
            ("fmpl-welcome", Some(proof), _) => {
                let said = || Some((line.number("rank")?, line.number("from")?, line.number("to")?));
                let (keeper, from, to) = said().ok_or_else(|| self.nonsense(&answer))?;
                let more = format!("{keeper} {from} {to}");
                if !proves(&secret, proof, "root", nonces, [rank, size], &more) {
                    return Err(Trouble::Final(format!(
                        "what answers at {} does not know the job's secret",
                        self.root()
                    )));
                }
                let keys = keys(&secret, nonces, rank, size);
                Ok(Met { keys, secret, sealed, rank: keeper, range: Range(from, to) })
            }
            ("fmpl-refused", _, Some(why)) => Err(Trouble::Refused(format!(
                "the root at {} turned this rank away: {}",
                self.root(),
                why.replace('_', " ")
            ))),
            ("fmpl-moved", _, Some(at)) => Err(Trouble::Moved(at.to_owned())),
            _ => Err(self.nonsense(&answer)),
        }
    }

    /// What a greeting has in it: the number drawn by lot, the secret as it was sealed. Or where to go instead.
    fn greeted(&self, greeting: &[u8], part: Part) -> std::result::Result<(String, Option<String>), Trouble> {
        let line = Line::parse(greeting).filter(|l| l.cmd() == "fmpl-start");
        let said = line.as_ref().and_then(|l| Some((l, l.get("version")?, l.get("nonce")?)));
        let (line, version, theirs) = said.ok_or_else(|| self.nonsense(greeting))?;
        if version != VERSION {
            return Err(Trouble::Final(format!(
                "the root at {} is of another version of FMPL (start {version}, here {VERSION})",
                self.root()
            )));
        }
        if !is_nonce(theirs) {
            return Err(self.nonsense(greeting));
        }
        let below = || {
            let range = Range(line.number("from")?, line.number("to")?);
            line.list("below")?.nth(range.part_of(self.rank)?).filter(|at| *at != "-")
        };
        match below() {
            Some(at) if part == Part::Branch => Err(Trouble::Moved(at.to_owned())),
            _ => Ok((theirs.to_owned(), line.get("sealed").map(str::to_owned))),
        }
    }

    fn nonsense(&self, line: &[u8]) -> Trouble {
        Trouble::Final(format!(
            "what answers at {} is not the root of a job: it says {}",
            self.root(),
            wire::shown(line)
        ))
    }

    /// The connection of a rank with its keeper as PMI-1 uses it, and the thread that watches over it.
    pub(super) fn settle(&self, stream: UnixStream, met: Met) -> Result<Joined> {
        let failed = |e: io::Error| error!(Code::System, "rank {}: the connection to its keeper: {e}", self.rank);
        stream.set_read_timeout(Some(self.patience + MARGIN)).map_err(failed)?;
        let line: OwnedFd = stream.try_clone().map_err(failed)?.into();
        let watched: OwnedFd = stream.try_clone().map_err(failed)?.into();
        let (rank, root) = (self.rank, met.keys.root.clone());
        let thread = thread::spawn("fmpl-launch", STACK, move || watch(&watched, rank, &root)).map_err(failed)?;
        Ok(Joined {
            socket: stream.into(),
            helper: Helper { thread: Some(thread), line: Some(line) },
            keys: Some(met.keys),
            secret: met.secret,
            keeper: Some(met.rank),
        })
    }
}

fn connect(at: SocketAddr, left: Duration) -> std::result::Result<TcpStream, Trouble> {
    TcpStream::connect_timeout(&at, left)
        .and_then(|stream| {
            stream.set_read_timeout(Some(left))?;
            stream.set_nodelay(true)?;
            keep_alive(&stream);
            Ok(stream)
        })
        .map_err(|e| Trouble::Unreachable(format!("connecting to {at}: {e}")))
}

/// What whoever knows the secret can say of two numbers drawn by lot, the root's and the rank's, in hexadecimal.
pub(crate) fn proof(secret: &Key, who: &str, nonces: [&str; 2], of: [u32; 2], more: &str) -> String {
    let said = said(who, nonces, of, more);
    wire::hex(&secret.derive("proof", &[VERSION.as_bytes()]).check(&[said.as_bytes()]))
}

/// Is this such a proof? Takes as long whatever the answer.
pub(crate) fn proves(secret: &Key, proof: &str, who: &str, nonces: [&str; 2], of: [u32; 2], more: &str) -> bool {
    let Some(proof) = wire::unhex(proof).and_then(|p| <[u8; CHECK]>::try_from(p).ok()) else { return false };
    let said = said(who, nonces, of, more);
    secret.derive("proof", &[VERSION.as_bytes()]).verifies(&[said.as_bytes()], &proof)
}

fn said(who: &str, [keeper, other]: [&str; 2], [rank, size]: [u32; 2], more: &str) -> String {
    format!("{who} {keeper} {other} {rank} {size} {more}")
}

/// The keys of the connection of this rank on which these numbers were said.
pub(crate) fn keys(secret: &Key, [root, rank]: [&str; 2], number: u32, size: u32) -> Keys {
    let context = [root.as_bytes(), rank.as_bytes(), &number.to_le_bytes(), &size.to_le_bytes()];
    let of = |who| secret.derive(who, &context);
    Keys { rank: of("lines of the rank"), root: of("lines of the root") }
}

/// Of the lines above, and of what follows them.
pub(crate) const VERSION: &str = "3";

/// A rank's connection to its keeper.
pub(crate) struct Joined {
    pub(crate) socket: OwnedFd,
    pub(crate) helper: Helper,
    /// `None`: it does not leave this process.
    pub(crate) keys: Option<Keys>,
    /// The job's.
    pub(crate) secret: Key,
    /// The keeper's rank, if it is another process.
    pub(crate) keeper: Option<u32>,
}

pub(super) enum Trouble {
    /// The root may not be there yet.
    Again(String),
    /// Waiting will not help.
    Final(String),
    /// Nor here: the root has said no.
    Refused(String),
    /// Nobody is there, or not yet.
    Unreachable(String),
    /// Another keeper, at this address, is responsible.
    Moved(String),
}

/// A thread of the library that goes on while the rank is in its job.
pub(crate) struct Helper {
    thread: Option<JoinHandle<()>>,
    /// Shut down, it ends the thread; a keeper's thread ends when its own rank's connection has.
    line: Option<OwnedFd>,
}

impl Helper {
    pub(crate) fn of_keeper(thread: JoinHandle<()>) -> Helper {
        Helper { thread: Some(thread), line: None }
    }

    pub(crate) fn is_keeper(&self) -> bool {
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

/// Waits for the keeper to hang up. When its last word is that the job was aborted, so is this process.
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

fn next_line(stream: &mut impl Read, inbox: &mut Inbox) -> std::result::Result<Vec<u8>, Trouble> {
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
