//! The root of a job started by environment variables: a thread of rank 0 that listens, lets in who knows the secret, and serves PMI-1.
//!
//! It serves until the job's end, since a rank asks for the card of another when it first needs it. What strangers can cost is bounded: so
//! many connections that have not shown the secret, each for a few seconds and some hundred bytes. A rank costs a connection
//! and what it puts; the store's bounds are the [`Server`]'s.

use super::environment::{self, Helper, MARGIN, Place, VERSION, same};
use super::place::ranges;
use super::server::{Server, Stage, Verdict};
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Error, Result, say};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Connections that have not shown the secret yet; more wait in the system's queue.
const STRANGERS: usize = 64;
/// How long each may take.
const STRANGER_TIME: Duration = Duration::from_secs(5);
/// Bytes that it may send.
const STRANGER_BYTES: usize = 1024;
/// How long the root stays for ranks that have not left when it has.
const LINGER: Duration = Duration::from_secs(30);

impl Place {
    /// Listens, and starts the thread that serves. The socket is rank 0's own connection to it.
    pub(crate) fn open(self) -> Result<(OwnedFd, Helper)> {
        let listeners = self.listen()?;
        let failed = |e: io::Error| Error::new(Code::System, format!("rank 0: serving the start of the job: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(self.patience + MARGIN)).map_err(failed)?;
        theirs.set_nonblocking(true).map_err(failed)?;
        let mut seats: Vec<Option<Seat>> = (0..self.size).map(|_| None).collect();
        seats[0] = Some(Seat { stream: Box::new(theirs), from: "this process".into() });
        let root = Root {
            server: Server::new(&vec![0; self.size as usize]),
            seats,
            came: 1,
            strangers: Vec::new(),
            listeners,
            complaints: BTreeSet::new(),
            until: Some(Instant::now() + self.patience),
            left: None,
            place: self,
        };
        let thread = environment::thread("fmpl-root", move || root.run()).map_err(failed)?;
        Ok((ours.into(), Helper::of_root(thread)))
    }

    /// A given address is taken as it is. A name may stand for other addresses here than elsewhere (many systems give the host's own
    /// name a loopback address), so then it is all addresses of this machine.
    fn listen(&self) -> Result<Vec<TcpListener>> {
        let any = |address: [u8; 16]| SocketAddr::new(IpAddr::from(address), self.port);
        let addresses: Vec<SocketAddr> = match self.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, self.port)],
            Err(_) if self.host == "localhost" => {
                (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
            }
            Err(_) => vec![any([0; 16])],
        };
        let everywhere = addresses == [any([0; 16])];
        let (listeners, errors): (Vec<_>, Vec<_>) = addresses.into_iter().map(listen).partition(io::Result::is_ok);
        let mut listeners: Vec<TcpListener> = listeners.into_iter().flatten().collect();
        let mut error = errors.into_iter().find_map(io::Result::err);
        if listeners.is_empty() && everywhere {
            // Where there is no IPv6.
            match listen(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), self.port)) {
                Ok(listener) => listeners.push(listener),
                Err(e) => error = Some(e),
            }
        }
        if !listeners.is_empty() {
            return Ok(listeners);
        }
        let why = match error {
            Some(e) if e.kind() == io::ErrorKind::AddrInUse => {
                "another job, or another rank 0 of this one, listens there; each job needs a port of its own".into()
            }
            Some(e) if e.kind() == io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address; FMPL_ROOT must name the machine on which rank 0 runs".into()
            }
            Some(e) => e.to_string(),
            None => "the name has no address".to_owned(),
        };
        Err(Error::new(Code::Launch, format!("rank 0 cannot listen at {} (FMPL_ROOT): {why}", self.root())))
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    // SAFETY: a socket of ours that listens already; its queue becomes as long as the system allows.
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    Ok(listener)
}

/// The connection of a rank: TCP, or for rank 0 a socket pair. Both never block here, and never raise SIGPIPE.
trait Stream: Read + Write + AsRawFd + Send {}
impl<T: Read + Write + AsRawFd + Send> Stream for T {}

struct Seat {
    stream: Box<dyn Stream>,
    from: String,
}

/// A connection that has not shown that it knows the secret.
struct Stranger {
    stream: TcpStream,
    from: String,
    nonce: String,
    inbox: Inbox,
    until: Instant,
}

struct Root {
    place: Place,
    server: Server,
    /// By rank; none: has not come yet, or has gone.
    seats: Vec<Option<Seat>>,
    /// Ranks that ever came.
    came: usize,
    strangers: Vec<Stranger>,
    listeners: Vec<TcpListener>,
    /// Reasons for which somebody was turned away, each said once.
    complaints: BTreeSet<&'static str>,
    /// Until when all ranks must have come; later, until when the fence that some wait in must be met.
    until: Option<Instant>,
    /// When rank 0 left in good order.
    left: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Happening {
    Listener(usize),
    Stranger(usize),
    Seat(usize),
}

impl Root {
    fn run(mut self) {
        while self.serves() {
            let (mut fds, what) = self.interests();
            let wait = self.next_moment().map_or(-1, |at| {
                at.saturating_duration_since(Instant::now()).as_millis().min(60_000) as libc::c_int + 1
            });
            // SAFETY: as many pollfds as said.
            unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, wait) };
            // From the last to the first, so that a stranger that goes does not change the numbers of those still to come.
            for (p, what) in fds.iter().zip(what).rev().filter(|(p, _)| p.revents != 0) {
                match what {
                    Happening::Seat(rank) => self.hear(rank, p.revents),
                    Happening::Stranger(i) => self.hear_stranger(i),
                    Happening::Listener(i) => self.answer_the_door(i),
                }
            }
            self.mind_the_clock();
        }
    }

    /// The end: rank 0 has failed, or has left and the others have too, or had their time to.
    fn serves(&self) -> bool {
        let others = self.seats.iter().skip(1).flatten().count();
        match (&self.seats[0], self.left) {
            (Some(_), _) => true,
            (None, Some(since)) => others > 0 && since.elapsed() < LINGER,
            (None, None) => false,
        }
    }

    fn interests(&self) -> (Vec<libc::pollfd>, Vec<Happening>) {
        let (mut fds, mut what) = (Vec::new(), Vec::new());
        let mut add = |fd, events, w| {
            fds.push(libc::pollfd { fd, events, revents: 0 });
            what.push(w);
        };
        if self.strangers.len() < STRANGERS {
            self.listeners
                .iter()
                .enumerate()
                .for_each(|(i, l)| add(l.as_raw_fd(), libc::POLLIN, Happening::Listener(i)));
        }
        for (i, s) in self.strangers.iter().enumerate() {
            add(s.stream.as_raw_fd(), libc::POLLIN, Happening::Stranger(i));
        }
        for (rank, seat) in self.seats.iter().enumerate() {
            let Some(seat) = seat else { continue };
            let listens = if self.server.listens_to(rank) { libc::POLLIN } else { 0 };
            let answers = if self.server.has_answers(rank) { libc::POLLOUT } else { 0 };
            add(seat.stream.as_raw_fd(), listens | answers, Happening::Seat(rank));
        }
        (fds, what)
    }

    fn next_moment(&self) -> Option<Instant> {
        let strangers = self.strangers.iter().map(|s| s.until).min();
        [self.until, strangers, self.left.map(|l| l + LINGER)].into_iter().flatten().min()
    }

    fn mind_the_clock(&mut self) {
        let now = Instant::now();
        while let Some(i) = self.strangers.iter().position(|s| s.until <= now) {
            self.turn_away(i, "took_too_long_to_show_that_it_knows_the_secret");
        }
        let all_here = self.came == self.seats.len();
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            let s = self.place.patience.as_secs_f64();
            let (missing, what) = if all_here {
                (self.server.not_in_fence(), "come to the fence that the others wait in")
            } else {
                (
                    (0..self.seats.len() as u32)
                        .filter(|r| self.server.stage(*r as usize) == Stage::Fresh && self.seats[*r as usize].is_none())
                        .collect(),
                    "come",
                )
            };
            let (are, have) = if missing.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
            let why = format!("{are} {} of {} {have} not {what} within {s} s", ranges(missing), self.seats.len());
            self.server.fail(&why.replace(' ', "_"));
        } else if all_here {
            match (self.server.in_fence(), self.until) {
                (true, None) => self.until = Some(now + self.place.patience),
                (false, Some(_)) => self.until = None,
                _ => {}
            }
        }
        self.flush();
    }

    /// Sends what can be sent.
    fn flush(&mut self) {
        for rank in 0..self.seats.len() {
            let Some(seat) = &mut self.seats[rank] else { continue };
            while self.server.has_answers(rank) {
                match seat.stream.write(self.server.outbox(rank)) {
                    Ok(n) => drop(self.server.outbox(rank).drain(..n)),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    // Full, or gone: the poll will tell.
                    Err(_) => break,
                }
            }
        }
    }

    fn hear(&mut self, rank: usize, events: libc::c_short) {
        if events & !libc::POLLOUT == 0 || self.seats[rank].is_none() {
            return;
        }
        let mut bytes = [0u8; 4096];
        let got = self.seats[rank].as_mut().map_or(Ok(0), |s| s.stream.read(&mut bytes));
        match got {
            Ok(0) => self.gone(rank),
            Ok(n) => match self.server.receive(rank, &bytes[..n]) {
                Verdict::Fine => {}
                Verdict::Abort(code) => self.abort(rank, code),
                Verdict::Garbage(text) => {
                    self.say(&format!("rank {rank} sent what is not PMI-1 and is cut off: {text}"));
                    self.seats[rank] = None;
                }
            },
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone(rank),
        }
    }

    /// A rank's connection has ended.
    fn gone(&mut self, rank: usize) {
        let from = self.seats[rank].take().map(|s| s.from).unwrap_or_default();
        match self.server.stage(rank) {
            Stage::Left if rank == 0 => self.left = Some(Instant::now()),
            Stage::Left | Stage::Cut => {}
            Stage::Fresh | Stage::Joined => {
                self.server.lose(rank, "has_left_without_finalize,_or_died");
                if rank > 0 {
                    self.say(&format!("rank {rank} ({from}) has left without finalize, or died"));
                }
            }
        }
        self.flush();
    }

    /// The whole job ends, as `fmpl_abort` says: every rank is told. This process ends itself, or when it was rank 0 that asked, is
    /// ended by the caller when this thread is over.
    fn abort(&mut self, by: usize, code: i32) {
        let word = format!("cmd=abort exitcode={code} rank={by}\n");
        for seat in self.seats.iter_mut().flatten() {
            let _ = seat.stream.write(word.as_bytes());
            // SAFETY: a descriptor of ours; no memory is involved.
            unsafe { libc::shutdown(seat.stream.as_raw_fd(), libc::SHUT_WR) };
        }
        if by != 0
            && let Some(line) = Line::parse(word.trim_end().as_bytes())
        {
            environment::obey_abort(&line, 0);
        }
        self.seats.iter_mut().for_each(|s| *s = None);
    }

    fn answer_the_door(&mut self, i: usize) {
        while self.strangers.len() < STRANGERS {
            // A connection that ended in the queue, or too many open files: there may be a better moment.
            let Ok((mut stream, from)) = self.listeners[i].accept() else { return };
            let ready = stream
                .set_nonblocking(true)
                .and_then(|()| stream.set_nodelay(true))
                .and_then(|()| environment::nonce());
            let Ok(nonce) = ready else { continue };
            environment::keep_alive(&stream);
            let greeting = format!("cmd=fmpl-start version={VERSION} nonce={nonce}\n");
            if stream.write_all(greeting.as_bytes()).is_ok() {
                let until = Instant::now() + STRANGER_TIME;
                self.strangers.push(Stranger { stream, from: from.to_string(), nonce, inbox: Inbox::default(), until });
            }
        }
    }

    fn hear_stranger(&mut self, i: usize) {
        let s = &mut self.strangers[i];
        let mut bytes = [0u8; STRANGER_BYTES];
        match s.stream.read(&mut bytes) {
            Ok(0) => return self.turn_away(i, "hung_up_without_a_word"),
            Ok(n) => s.inbox.push(&bytes[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            Err(_) => return self.turn_away(i, "hung_up_without_a_word"),
        }
        let line = match s.inbox.line() {
            Ok(Some(line)) => line.to_vec(),
            Ok(None) => {
                if s.inbox.rest().len() < STRANGER_BYTES {
                    return;
                }
                return self.turn_away(i, "sent_garbage");
            }
            Err(wire::TooLong) => return self.turn_away(i, "sent_garbage"),
        };
        match self.judge(i, &line) {
            Ok((rank, welcome)) => self.let_in(i, rank, &welcome),
            Err(why) => self.turn_away(i, why),
        }
    }

    /// Whether the line proves that its sender belongs to the job: then its rank, and the answer.
    fn judge(&self, i: usize, line: &[u8]) -> std::result::Result<(usize, String), &'static str> {
        let s = &self.strangers[i];
        let line = Line::parse(line).filter(|l| l.cmd() == "fmpl-start").ok_or("sent_garbage")?;
        if line.get("version") != Some(VERSION) {
            return Err("it_is_of_another_version_of_FMPL");
        }
        let said = || Some((line.number("rank")?, line.number("size")?, line.get("nonce")?, line.get("proof")?));
        let (rank, size, nonce, proof): (u32, u32, _, _) = said().ok_or("sent_garbage")?;
        let nonces = [s.nonce.as_str(), nonce];
        if !same(proof, &self.place.proof("rank", nonces, rank, size)) {
            return Err("it_does_not_know_the_secret_of_this_job");
        }
        if size != self.place.size || rank >= size {
            return Err("it_is_of_a_job_of_another_size_(FMPL_SIZE)");
        }
        if rank == 0 || self.seats[rank as usize].is_some() || self.server.stage(rank as usize) != Stage::Fresh {
            return Err("another_process_has_the_same_rank");
        }
        if self.server.has_failed() {
            return Err("the_job_has_failed_to_start");
        }
        let proof = self.place.proof("root", nonces, rank, size);
        Ok((rank as usize, format!("cmd=fmpl-welcome proof={proof}\n")))
    }

    fn let_in(&mut self, i: usize, rank: usize, welcome: &str) {
        let mut s = self.strangers.swap_remove(i);
        if s.stream.write_all(welcome.as_bytes()).is_err() || !s.inbox.rest().is_empty() {
            return;
        }
        self.seats[rank] = Some(Seat { stream: Box::new(s.stream), from: s.from });
        self.came += 1;
        if self.came == self.seats.len() {
            self.until = None;
        }
    }

    fn turn_away(&mut self, i: usize, why: &'static str) {
        let mut s = self.strangers.swap_remove(i);
        let _ = s.stream.write_all(format!("cmd=fmpl-refused why={why}\n").as_bytes());
        let _ = s.stream.shutdown(Shutdown::Write);
        if self.complaints.insert(why) {
            let shown =
                if s.inbox.rest().is_empty() { String::new() } else { format!(" ({})", wire::shown(s.inbox.rest())) };
            let text = format!(
                "turned away a connection from {} to {}: {}{shown}",
                s.from,
                self.place.root(),
                why.replace('_', " ")
            );
            self.say(&format!("{text} (said once for each reason)"));
        }
    }

    fn say(&self, text: &str) {
        if self.place.log >= 1 {
            say(&format!("rank 0: {text}"));
        }
    }
}
