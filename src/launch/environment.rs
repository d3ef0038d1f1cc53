//! Starting by environment variables: ranks started by anything, on any machines, find each other at a port where rank 0 listens.
//!
//! ```text
//!   FMPL_RANK=3 FMPL_SIZE=8 FMPL_ROOT=node1:29500 FMPL_SECRET=…    (rank and size also as Slurm's and Open MPI's launchers say them)
//! ```
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

use super::seal::{self, Keys};
use super::slurm;
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Error, Result, say};
use crate::base::key::{CHECK, Key, random};
use crate::base::log::Level;
use crate::base::system;
use crate::base::thread;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A rank's place in a job that meets at a root: as the variables say it, as an [identifier](super::id) does, or a Slurm step.
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) root: Root,
    pub(crate) secret: Secret,
    /// Of the process that serves the others, if it listens already. (One that is named by `FMPL_ROOT` opens its door itself.)
    pub(crate) listeners: Option<Vec<TcpListener>>,
    /// `FMPL_START_TIMEOUT`
    pub(crate) patience: Duration,
    /// `FMPL_LOG`
    pub(crate) log: Level,
}

/// Where the root is.
pub(crate) enum Root {
    /// `FMPL_ROOT`: where rank 0 listens, at what the name stands for there.
    Named(String, u16),
    /// It listens at one of these, whichever rank it is.
    At(Vec<SocketAddr>),
}

/// How the ranks know their secret.
pub(crate) enum Secret {
    Known(Key),
    /// The root draws one, and says it in its greeting so that only this user's processes can read it.
    Sealed(slurm::Seal),
}

/// A shorter secret could be guessed.
const SECRET_MIN: usize = 8;
/// A longer file is none with a secret.
const SECRET_MAX: u64 = 64 << 10;
/// How long one attempt to connect, and one answer, may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Of the threads of the start.
pub(crate) const STACK: usize = 256 << 10;
/// How much longer than the root a rank waits, so that the root's reason comes first.
pub(crate) const MARGIN: Duration = Duration::from_secs(15);

impl Place {
    /// Reads the variables. `None`: nothing says that this process was started this way.
    pub(crate) fn find(var: &impl Fn(&str) -> Option<String>) -> Result<Option<Place>> {
        let bad = |text: String| Err(Error::new(Code::Launch, text));
        let (own, root) = (var("FMPL_RANK"), var("FMPL_ROOT"));
        // A launcher's descriptor counts for more than variables that the whole session has; so does our own launcher always.
        let launched = var("PMI_FD").is_some() && (own.is_none() || var("FMPL_RUN").is_some());
        if launched || (own.is_none() && root.is_none()) {
            return Ok(None);
        }
        let names = [
            ("FMPL_RANK", "FMPL_SIZE"),
            ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ];
        let Some((rank_name, size_name)) = names.into_iter().find(|(rank, _)| var(rank).is_some()) else {
            return bad("FMPL_ROOT is set but not FMPL_RANK: each rank needs FMPL_RANK and FMPL_SIZE, or must be started by srun or mpirun, \
                        which number their processes; to run alone, unset FMPL_ROOT".into());
        };
        let number = |name: &str| {
            let text =
                var(name).ok_or_else(|| Error::new(Code::Launch, format!("{rank_name} is set but not {name}")))?;
            let number = text.trim().parse::<u32>();
            number.map_err(|_| Error::new(Code::Launch, format!("{name}={text} is not a number")))
        };
        let (rank, size) = (number(rank_name)?, number(size_name)?);
        if rank >= size {
            return bad(format!("{rank_name}={rank} of {size_name}={size}"));
        }
        let Some(root) = root else {
            return bad(format!(
                "{rank_name}={rank} is set but not FMPL_ROOT: the host and port where rank 0 is to be found, such as FMPL_ROOT=node1:29500"
            ));
        };
        let Some((host, port)) = split_root(&root) else {
            return bad(format!("FMPL_ROOT={root}: possible values: host:port, [IPv6 address]:port"));
        };
        let config = crate::base::config::Config::from_environment()?;
        let patience = Duration::from_secs_f64(config.start_s);
        Ok(Some(Place {
            rank,
            size,
            root: Root::Named(host, port),
            secret: Secret::Known(secret(var)?),
            listeners: None,
            patience,
            log: config.log,
        }))
    }

    /// The root's address as people write it.
    pub(crate) fn root(&self) -> String {
        match &self.root {
            Root::Named(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Root::Named(host, port) => format!("{host}:{port}"),
            Root::At(all) => all.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" or "),
        }
    }

    /// Who the root is.
    pub(crate) fn who(&self) -> &'static str {
        if matches!(self.root, Root::Named(..)) { "rank 0" } else { "the job's root" }
    }

    /// Is it this process that serves the others?
    pub(crate) fn is_root(&self) -> bool {
        self.listeners.is_some() || matches!(self.root, Root::Named(..)) && self.rank == 0
    }

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match &self.root {
            Root::Named(host, port) => Ok((host.as_str(), *port).to_socket_addrs()?.collect()),
            Root::At(all) => Ok(all.clone()),
        }
    }

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

/// `host:port`, an IPv6 address in brackets.
fn split_root(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let bare = host.strip_prefix('[').map_or(Some(host), |h| h.strip_suffix(']'))?;
    let sound = !bare.is_empty() && (bare.len() < host.len() || !bare.contains(':'));
    Some((bare.to_owned(), port.parse().ok().filter(|p| *p != 0)?)).filter(|_| sound)
}

fn secret(var: &impl Fn(&str) -> Option<String>) -> Result<Key> {
    let bad = |text: String| Err(Error::new(Code::Launch, text));
    let (name, text) = match (var("FMPL_SECRET"), var("FMPL_SECRET_FILE")) {
        (Some(text), _) => ("FMPL_SECRET", text.into_bytes()),
        (None, Some(path)) => match read_secret(&path) {
            Ok(bytes) => ("the file in FMPL_SECRET_FILE", bytes.trim_ascii().to_vec()),
            Err(why) => return bad(format!("FMPL_SECRET_FILE={path}: {why}")),
        },
        (None, None) => {
            return bad("a job started by FMPL_RANK and FMPL_ROOT needs a secret, or anybody could join it: set FMPL_SECRET to the same random \
                        text for all its ranks (openssl rand -hex 16), or FMPL_SECRET_FILE to a file that has it".into());
        }
    };
    if text.len() < SECRET_MIN {
        return bad(format!("{name} is too short: at least {SECRET_MIN} characters"));
    }
    Ok(Key::of(&text))
}

/// What is in the file, if nobody else can know it. The file that is looked at is the one that is read.
fn read_secret(path: &str) -> std::result::Result<Vec<u8>, String> {
    let said = |e: io::Error| e.to_string();
    // A pipe that nobody will write to holds nobody up.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(said)?;
    system::set_waiting(&file, true).map_err(said)?;
    let about = file.metadata().map_err(said)?;
    let user = system::user();
    if about.uid() != user {
        return Err(format!(
            "it belongs to user {}, who knows the secret then; it must be a file of this user ({user})",
            about.uid()
        ));
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        return Err(format!("others can read or write it (mode {mode:03o}): chmod 600, and a new secret"));
    }
    let mut bytes = Vec::new();
    file.take(SECRET_MAX).read_to_end(&mut bytes).map_err(said)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        let root = |text| split_root(text).map(|(h, p)| format!("{h} {p}"));
        assert_eq!(root("node1:29500").as_deref(), Some("node1 29500"));
        assert_eq!(root("[fe80::1]:7").as_deref(), Some("fe80::1 7"));
        for bad in ["", "node1", ":7", "node1:", "node1:0", "node1:70000", "fe80::1:7", "[fe80::1:7", "[]:7"] {
            assert_eq!(root(bad), None, "{bad}");
        }
    }

    fn find(vars: &str) -> Result<Option<Place>> {
        let vars: Vec<(&str, &str)> = vars.split_whitespace().filter_map(|v| v.split_once('=')).collect();
        Place::find(&|name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn variables() {
        const REST: &str = "FMPL_ROOT=h:7 FMPL_SECRET=12345678";
        let place = |vars: &str| find(vars).unwrap().map(|p| (p.rank, p.size, p.root()));
        assert_eq!(place(&format!("FMPL_RANK=1 FMPL_SIZE=2 {REST}")), Some((1, 2, "h:7".into())));
        assert_eq!(place(&format!("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=9 {REST}")), Some((3, 9, "h:7".into())));
        assert_eq!(place(&format!("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 {REST}")), Some((0, 2, "h:7".into())));
        assert_eq!(place("SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=9"), None);
        assert_eq!(place(&format!("PMI_FD=3 {REST}")), None);
        assert_eq!(place(&format!("PMI_FD=3 FMPL_RUN=1 FMPL_RANK=1 FMPL_SIZE=2 {REST}")), None);
        assert!(place(&format!("PMI_FD=3 FMPL_RANK=1 FMPL_SIZE=2 {REST}")).is_some());
        for (vars, says) in [
            ("FMPL_ROOT=h:7", "not FMPL_RANK"),
            ("FMPL_RANK=1", "not FMPL_SIZE"),
            ("FMPL_RANK=x FMPL_SIZE=2", "FMPL_RANK=x is not a number"),
            ("FMPL_RANK=2 FMPL_SIZE=2", "FMPL_RANK=2 of FMPL_SIZE=2"),
            ("FMPL_RANK=1 FMPL_SIZE=2", "not FMPL_ROOT"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h", "FMPL_ROOT=h: possible values"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7", "needs a secret"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7 FMPL_SECRET=1234567", "too short"),
            ("FMPL_RANK=1 FMPL_SIZE=2 FMPL_ROOT=h:7 FMPL_SECRET_FILE=/none", "FMPL_SECRET_FILE=/none: No such file"),
        ] {
            let e = find(vars).err().unwrap_or_else(|| panic!("{vars}"));
            assert!(e.code() == Code::Launch && e.detail().contains(says), "{vars}: {e}");
        }
    }
}
