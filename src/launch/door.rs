//! Where a keeper listens, and who has come there without having shown yet that it knows the secret: *strangers*.
//!
//! What strangers can cost is bounded: so many of them at a time, each for a few seconds and some hundred bytes. When all places are taken and
//! somebody comes, whoever has been here longest without a proof is put out, so that any number of silent connections keeps no rank
//! from its proof; but nobody within the moment that a rank takes for it, so that they do not put out each other all the time. A rank that was
//! put out comes again. Nothing is to be had by saying something that proves nothing: it does not make a stranger younger.
//!
//! Where the process has no descriptors left the same holds for these: strangers give theirs back first, the last is a spare one, kept for
//! this, and when that is in use the door stays shut for a moment.

use super::environment::{Place, Root};
use super::join::{self, VERSION};
use super::keeper::Stream;
use super::wire::Inbox;
use crate::base::error::{Code, Error, Result, error};
use crate::base::sorting::sort_by;
use crate::base::system::{self, is_ready, limit};
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// Strangers at a time, where there are descriptors enough; more wait in the system's queue.
const PLACES: u64 = 1024;
/// And where there are few. They take no more than an eighth of what the process may have: the job needs the others.
const PLACES_FEW: u64 = 4;
/// How long each may take.
const TIME: Duration = Duration::from_secs(5);
/// For so long nobody is put out for others.
const GRACE: Duration = Duration::from_millis(20);
/// Bytes that each may send.
const BYTES: usize = 1024;
/// How many are taken in before those who are here are heard again.
const BURST: usize = 64;
/// How long the door stays shut when there is no descriptor.
const SHUT: Duration = Duration::from_millis(50);

/// A connection that has not shown that it knows the secret.
pub(super) struct Stranger {
    stream: Box<dyn Stream>,
    pub(super) from: String,
    /// What its proof must be of.
    pub(super) nonce: String,
    inbox: Inbox,
    since: Instant,
}

/// See the head of this file.
pub(super) struct Door {
    listeners: Vec<Listener>,
    /// Where it listens, as people read it.
    at: String,
    sealed: Option<String>,
    /// The one who has been here longest first.
    strangers: Vec<Stranger>,
    places: usize,
    /// A descriptor to be given back when there are no others.
    spare: Option<File>,
    shut_until: Option<Instant>,
}

/// What a stranger's bytes mean.
pub(super) enum Word {
    /// It has not said a whole line yet.
    None,
    /// A line.
    Line(Vec<u8>),
    /// It is to go, for this reason.
    Bad(&'static str),
}

/// Where somebody may knock.
pub(super) enum Listener {
    Remote(TcpListener),
    /// For the ranks of this node.
    Local(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<(Box<dyn Stream>, String)> {
        match self {
            Listener::Remote(listener) => {
                let (stream, from) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                join::keep_alive(&stream);
                Ok((Box::new(stream), from.to_string()))
            }
            Listener::Local(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Box::new(stream), "this node".into()))
            }
        }
    }

    fn fd(&self) -> RawFd {
        match self {
            Listener::Remote(listener) => listener.as_raw_fd(),
            Listener::Local(listener) => listener.as_raw_fd(),
        }
    }
}

/// Listens where the variables say, or goes on to: the root's listeners.
pub(super) fn of_root(place: &mut Place) -> Result<Vec<TcpListener>> {
    match (place.listeners.take(), &place.root) {
        (Some(listeners), _) => Ok(listeners),
        (None, Root::Named(host, port)) => listen_for(place, host, *port),
        (None, Root::At(_)) => Err(Error::new(Code::Launch, "this process does not listen for its job")),
    }
}

impl Door {
    /// `sealed`: what its greeting has in it for those who can read it.
    pub(super) fn open(listeners: Vec<TcpListener>, local: Option<UnixListener>, sealed: Option<String>) -> Door {
        let at: Vec<String> = listeners.iter().filter_map(|l| l.local_addr().ok()).map(|a| a.to_string()).collect();
        let places =
            (limit(libc::RLIMIT_NOFILE).map_or(0, |limit| limit.rlim_cur) / 8).clamp(PLACES_FEW, PLACES) as usize;
        let (strangers, at) = (Vec::new(), at.join(" and "));
        let listeners = listeners.into_iter().map(Listener::Remote).chain(local.map(Listener::Local)).collect();
        Door { listeners, at, sealed, strangers, places, spare: spare(), shut_until: None }
    }

    /// Where it listens, as people read it.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Are all its addresses such as no other machine can reach?
    pub(super) fn is_local(&self) -> bool {
        self.listeners.iter().all(|l| match l {
            Listener::Remote(l) => l.local_addr().is_ok_and(|a| a.ip().is_loopback()),
            Listener::Local(_) => true,
        })
    }

    /// The descriptors to be waited for: first those where somebody may knock, then the strangers'.
    pub(super) fn interests(&self, now: Instant) -> (Vec<libc::c_int>, Vec<libc::c_int>) {
        let listens = self.opens_at().is_none_or(|at| at <= now);
        let listeners = self.listeners.iter().filter(|_| listens).map(Listener::fd).collect();
        (listeners, self.strangers.iter().map(|s| s.stream.as_raw_fd()).collect())
    }

    /// When somebody can be taken in again; `None`: now.
    fn opens_at(&self) -> Option<Instant> {
        let full = self.strangers.len() >= self.places;
        let oldest = self.strangers.first().filter(|_| full).map(|s| s.since + GRACE);
        self.shut_until.into_iter().chain(oldest).max()
    }

    /// When there is something to be done though nobody says anything.
    pub(super) fn next_moment(&self, now: Instant) -> Option<Instant> {
        let opens = self.opens_at().filter(|at| *at > now);
        self.strangers.first().map(|s| s.since + TIME).into_iter().chain(opens).min()
    }

    /// Takes in those who knock, and greets them with these words too. Says of those who had to go for it, and where no descriptor was left,
    /// why and from where they were.
    pub(super) fn answer(&mut self, listener: usize, also: &str, mut said: impl FnMut(&'static str, &str)) {
        for _ in 0..BURST {
            let full = self.strangers.len() >= self.places;
            if full && !self.may_put_out() {
                return;
            }
            match self.listeners[listener].accept() {
                Ok((stream, from)) => {
                    if full {
                        self.put_out(&mut said);
                    }
                    let _ = self.greet(stream, from, also);
                }
                Err(e) => match e.raw_os_error() {
                    // Said even if nobody knocks.
                    Some(libc::EMFILE | libc::ENFILE) if !is_ready(&self.listeners[listener].fd(), libc::POLLIN) => {
                        return;
                    }
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => {
                        if self.may_put_out() {
                            self.put_out(&mut said);
                        } else if self.spare.take().is_none() {
                            said("this process has no descriptor left for it", "somebody");
                            self.shut_until = Some(Instant::now() + SHUT);
                            return;
                        }
                    }
                    // One that ended in the queue, or a signal.
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ => return,
                },
            }
        }
    }

    /// Has the one who has been here longest had its moment?
    fn may_put_out(&self) -> bool {
        self.strangers.first().is_some_and(|s| s.since.elapsed() >= GRACE)
    }

    fn put_out(&mut self, said: &mut impl FnMut(&'static str, &str)) {
        said("it did not show at once that it knows the secret, and others needed its place", &self.strangers[0].from);
        self.strangers.remove(0);
    }

    fn greet(&mut self, mut stream: Box<dyn Stream>, from: String, also: &str) -> Result<()> {
        let failed = |e: io::Error| Error::new(Code::System, e.to_string());
        let nonce = join::nonce()?;
        let sealed = self.sealed.as_ref().map_or_else(String::new, |text| format!(" sealed={text}"));
        stream
            .write_all(format!("cmd=fmpl-start version={VERSION} nonce={nonce}{sealed}{also}\n").as_bytes())
            .map_err(failed)?;
        self.strangers.push(Stranger { stream, from, nonce, inbox: Inbox::default(), since: Instant::now() });
        Ok(())
    }

    /// Takes what a stranger has said.
    pub(super) fn hear(&mut self, i: usize) -> Word {
        let s = &mut self.strangers[i];
        let mut bytes = [0u8; BYTES];
        match s.stream.read(&mut bytes) {
            Ok(0) => return Word::Bad("hung_up_without_a_word"),
            Ok(n) => s.inbox.push(&bytes[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return Word::None,
            Err(_) => return Word::Bad("hung_up_without_a_word"),
        }
        match s.inbox.line().map(|line| line.map(<[u8]>::to_vec)) {
            Ok(Some(line)) => Word::Line(line),
            Ok(None) if s.inbox.rest().len() < BYTES => Word::None,
            _ => Word::Bad("sent_garbage"),
        }
    }

    pub(super) fn stranger(&self, i: usize) -> &Stranger {
        &self.strangers[i]
    }

    /// It belongs to the job. `None`: it has hung up, or has said more than it was asked.
    pub(super) fn let_in(&mut self, i: usize, welcome: &str) -> Option<(Box<dyn Stream>, String)> {
        let mut s = self.strangers.remove(i);
        (s.stream.write_all(welcome.as_bytes()).is_ok() && s.inbox.rest().is_empty()).then_some((s.stream, s.from))
    }

    /// It goes, and is told why: where it is from, and what it has sent.
    pub(super) fn turn_away(&mut self, i: usize, why: &str) -> (String, Vec<u8>) {
        self.part_with(i, &format!("cmd=fmpl-refused why={why}\n"))
    }

    /// It goes, with this word.
    pub(super) fn part_with(&mut self, i: usize, word: &str) -> (String, Vec<u8>) {
        let mut s = self.strangers.remove(i);
        let _ = s.stream.write_all(word.as_bytes());
        system::shutdown(&*s.stream, libc::SHUT_WR);
        (s.from, s.inbox.rest().to_vec())
    }

    /// Those go whose time is over, without a word: a rank that was stopped on its way comes again.
    pub(super) fn mind_the_clock(&mut self, now: Instant, mut said: impl FnMut(&'static str, &str)) {
        while self.strangers.first().is_some_and(|s| s.since + TIME <= now) {
            said("it took too long to show that it knows the secret", &self.strangers[0].from);
            self.strangers.remove(0);
        }
        if self.shut_until.is_some_and(|at| at <= now) {
            self.shut_until = None;
        }
        if self.spare.is_none() && self.strangers.is_empty() {
            self.spare = spare();
        }
    }
}

/// At exactly the addresses that were named, as far as this machine has them. A name stands for what it stands for here.
fn listen_for(place: &Place, host: &str, port: u16) -> Result<Vec<TcpListener>> {
    let cannot = |why: String| error!(Code::Launch, "rank 0 cannot listen at {} (FMPL_ROOT): {why}", place.root());
    let mut addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => {
            let found = (host, port).to_socket_addrs();
            found.map_err(|e| cannot(format!("looking the name up: {e}")))?.collect()
        }
    };
    sort_by(&mut addresses, Ord::cmp);
    addresses.dedup();
    let (mut listeners, mut error) = (Vec::new(), None);
    for at in addresses {
        match listen(at) {
            Ok(listener) => listeners.push(listener),
            // Whoever has one of the addresses would be taken for the root.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                let who = "another job, or another rank 0 of this one, listens there";
                return Err(cannot(format!("{who}; each job needs a port of its own ({at})")));
            }
            Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => {
                let what = "this machine has no such address; FMPL_ROOT must name the machine on which rank 0 runs";
                error = Some(format!("{what} ({at})"));
            }
            Err(e) => error = Some(format!("{at}: {e}")),
        }
    }
    match listeners.is_empty() {
        false => Ok(listeners),
        true => Err(cannot(error.unwrap_or_else(|| "the name has no address".into()))),
    }
}

pub(super) fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let _ = system::listen(&listener, 4096);
    Ok(listener)
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
