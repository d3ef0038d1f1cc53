//! The root of a job started by environment variables, or by an identifier: a thread of rank 0, or of whoever has made that, which lets in who knows the secret, and serves PMI-1 to them.
//!
//! It serves until the job's end, since a rank asks for the card of another when it first needs it. What strangers can cost is bounded, see
//! [`door`](super::door). A rank costs a connection and what it puts; the store's bounds are the [`Server`]'s.

use super::door::{Door, Word};
use super::environment::{Place, Root as Where, Secret};
use super::join::{self, Helper, Joined, MARGIN, VERSION, is_nonce};
use super::place::ranges;
use super::seal::{self, Keys, Seal};
use super::server::{Server, Stage, Verdict};
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Error, Result, say};
use crate::base::key::Key;
use crate::base::log::Level;
use crate::base::system;
use crate::base::thread;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long the root stays for ranks that have not left when it has.
const LINGER: Duration = Duration::from_secs(30);

impl Place {
    /// Listens, and starts the thread that serves. The socket is rank 0's own connection to it.
    pub(crate) fn open(mut self) -> Result<Joined> {
        let own = self.rank;
        let (secret, sealed) = match &self.secret {
            Secret::Known(secret) => (secret.clone(), None),
            Secret::Sealed(seal) => seal.draw().map(|(secret, text)| (secret, Some(text)))?,
        };
        let door = Door::open(&mut self, sealed)?;
        let failed = |e: io::Error| Error::new(Code::System, format!("rank {own}: serving the start of the job: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(self.patience + MARGIN)).map_err(failed)?;
        theirs.set_nonblocking(true).map_err(failed)?;
        let mut seats: Vec<Option<Seat>> = (0..self.size).map(|_| None).collect();
        seats[own as usize] = Some(Seat::new(Box::new(theirs), "this process".into(), None));
        let root = Root {
            server: Server::new(&vec![0; self.size as usize]),
            seats,
            own: own as usize,
            came: 1,
            door,
            complaints: BTreeSet::new(),
            until: Some(Instant::now() + self.patience),
            left: None,
            secret: secret.clone(),
            place: self,
        };
        root.say_where();
        let thread = thread::spawn("fmpl-root", join::STACK, move || root.run()).map_err(failed)?;
        Ok(Joined { socket: ours.into(), helper: Helper::of_root(thread), keys: None, secret })
    }
}

/// The connection of a rank: TCP, or for rank 0 a socket pair. Both never block here, and never raise SIGPIPE.
trait Stream: Read + Write + AsRawFd + Send {}
impl<T: Read + Write + AsRawFd + Send> Stream for T {}

struct Seat {
    stream: Box<dyn Stream>,
    from: String,
    /// The checks of what is said here and heard, and the keys; rank 0's lines do not leave the process, and have none.
    seals: Option<(Keys, [Seal; 2])>,
    inbox: Inbox,
    /// On its way to the rank, with the checks.
    outbox: Vec<u8>,
}

impl Seat {
    fn new(stream: Box<dyn Stream>, from: String, keys: Option<Keys>) -> Seat {
        let seals = keys.map(|keys| {
            let both = [Seal::new(keys.root.clone()), Seal::new(keys.rank.clone())];
            (keys, both)
        });
        Seat { stream, from, seals, inbox: Inbox::default(), outbox: Vec::new() }
    }

    /// Whole lines of the server, to be sent next.
    fn take_answers(&mut self, lines: &mut Vec<u8>) {
        match &mut self.seals {
            None => self.outbox.append(lines),
            Some((_, [says, _])) => {
                for line in String::from_utf8_lossy(lines).lines() {
                    self.outbox.extend_from_slice(says.put(line).as_bytes());
                }
                lines.clear();
            }
        }
    }

    /// What has come, as the server takes it. `Err`: a line that is not the rank's next.
    fn open(&mut self, bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
        let Some((_, [_, hears])) = &mut self.seals else { return Ok(bytes.to_vec()) };
        self.inbox.push(bytes);
        let mut all = Vec::new();
        loop {
            match self.inbox.line() {
                Ok(None) => return Ok(all),
                Err(wire::TooLong) => return Err(wire::shown(self.inbox.rest())),
                Ok(Some(came)) => {
                    all.extend_from_slice(hears.take(came).ok_or_else(|| wire::shown(came))?);
                    all.push(b'\n');
                }
            }
        }
    }
}

struct Root {
    place: Place,
    /// The job's.
    secret: Key,
    /// The rank whose thread this is.
    own: usize,
    server: Server,
    /// By rank; none: has not come yet, or has gone.
    seats: Vec<Option<Seat>>,
    /// Ranks that ever came.
    came: usize,
    door: Door,
    /// Reasons for which somebody was turned away, each said once.
    complaints: BTreeSet<&'static str>,
    /// Until when all ranks must have come; later, until when the fence that some wait in must be met.
    until: Option<Instant>,
    /// When the own rank left in good order.
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
            let now = Instant::now();
            let (mut fds, what) = self.interests(now);
            let wait = self
                .next_moment(now)
                .map_or(-1, |at| at.saturating_duration_since(now).as_millis().min(60_000) as libc::c_int + 1);
            let _ = system::poll(&mut fds, wait);
            // From the last to the first, so that a stranger that goes does not change the numbers of those still to come.
            for (p, what) in fds.iter().zip(what).rev().filter(|(p, _)| p.revents != 0) {
                match what {
                    Happening::Seat(rank) => self.hear(rank, p.revents),
                    Happening::Stranger(i) => self.hear_stranger(i),
                    Happening::Listener(i) => {
                        let mut complaints = Complaints { seen: &mut self.complaints, place: &self.place };
                        self.door.answer(i, |why, from| complaints.turned_away(from, why, &[]));
                    }
                }
            }
            self.mind_the_clock();
        }
    }

    /// The end: the own rank has failed, or has left and the others have too, or had their time to.
    fn serves(&self) -> bool {
        let others = self.seats.iter().flatten().count();
        match (&self.seats[self.own], self.left) {
            (Some(_), _) => true,
            (None, Some(since)) => others > 0 && since.elapsed() < LINGER,
            (None, None) => false,
        }
    }

    fn interests(&self, now: Instant) -> (Vec<libc::pollfd>, Vec<Happening>) {
        let (mut fds, mut what) = (Vec::new(), Vec::new());
        let mut add = |fd, events, w| {
            fds.push(libc::pollfd { fd, events, revents: 0 });
            what.push(w);
        };
        let (listeners, strangers) = self.door.interests(now);
        listeners.into_iter().enumerate().for_each(|(i, fd)| add(fd, libc::POLLIN, Happening::Listener(i)));
        strangers.into_iter().enumerate().for_each(|(i, fd)| add(fd, libc::POLLIN, Happening::Stranger(i)));
        for (rank, seat) in self.seats.iter().enumerate() {
            let Some(seat) = seat else { continue };
            let listens = if self.server.listens_to(rank) { libc::POLLIN } else { 0 };
            let answers = if self.server.has_answers(rank) || !seat.outbox.is_empty() { libc::POLLOUT } else { 0 };
            add(seat.stream.as_raw_fd(), listens | answers, Happening::Seat(rank));
        }
        (fds, what)
    }

    fn next_moment(&self, now: Instant) -> Option<Instant> {
        let left = self.left.map(|l| l + LINGER);
        [self.until, self.door.next_moment(now), left].into_iter().flatten().min()
    }

    fn mind_the_clock(&mut self) {
        let now = Instant::now();
        let mut complaints = Complaints { seen: &mut self.complaints, place: &self.place };
        self.door.mind_the_clock(now, |why, from| complaints.turned_away(from, why, &[]));
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
            let (missing, all, at) = (ranges(missing), self.seats.len(), self.door.at());
            let why =
                format!("{are} {missing} of {all} {have} not {what} within {s} s; rank {} listens at {at}", self.own);
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
            loop {
                if seat.outbox.is_empty() {
                    seat.take_answers(self.server.outbox(rank));
                }
                if seat.outbox.is_empty() {
                    break;
                }
                match seat.stream.write(&seat.outbox) {
                    Ok(n) => drop(seat.outbox.drain(..n)),
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
        let Some(seat) = &mut self.seats[rank] else { return };
        let came = match seat.stream.read(&mut bytes) {
            Ok(0) => return self.gone(rank),
            Ok(n) => seat.open(&bytes[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return,
            Err(_) => return self.gone(rank),
        };
        let (what, text) = match came {
            Ok(lines) => match self.server.receive(rank, &lines) {
                Verdict::Fine => return,
                Verdict::Abort(code) => return self.abort(rank, code),
                Verdict::Garbage(text) => ("what is not PMI-1", text),
            },
            Err(text) => {
                self.server.cut(rank);
                ("what is not its next line, altered on its way or a stranger's,", text)
            }
        };
        self.say(&format!("rank {rank} sent {what} and is cut off: {text}"));
        self.seats[rank] = None;
    }

    /// A rank's connection has ended.
    fn gone(&mut self, rank: usize) {
        let from = self.seats[rank].take().map(|s| s.from).unwrap_or_default();
        match self.server.stage(rank) {
            Stage::Left if rank == self.own => self.left = Some(Instant::now()),
            Stage::Left | Stage::Cut => {}
            Stage::Fresh | Stage::Joined => {
                self.server.lose(rank, "has_left_without_finalize,_or_died");
                if rank != self.own {
                    self.say(&format!("rank {rank} ({from}) has left without finalize, or died"));
                }
            }
        }
        self.flush();
    }

    /// The whole job ends, as `fmpl_abort` says: every rank is told. This process ends itself, or when it was its own rank that asked, is
    /// ended by the caller when this thread is over.
    fn abort(&mut self, by: usize, code: i32) {
        let word = format!("cmd=abort exitcode={code} rank={by}");
        for seat in self.seats.iter_mut().flatten() {
            let sealed =
                seat.seals.as_ref().map_or_else(|| format!("{word}\n"), |(k, _)| seal::put_last(&k.root, &word));
            let _ = seat.stream.write(sealed.as_bytes());
            system::shutdown(&*seat.stream, libc::SHUT_WR);
        }
        if by != self.own
            && let Some(line) = Line::parse(word.as_bytes())
        {
            join::obey_abort(&line, self.own as u32);
        }
        self.seats.iter_mut().for_each(|s| *s = None);
    }

    fn hear_stranger(&mut self, i: usize) {
        match self.door.hear(i) {
            Word::None => {}
            Word::Bad(why) => self.turn_away(i, why),
            Word::Line(line) => match self.judge(&self.door.stranger(i).nonce, &line) {
                Ok(proved) => self.let_in(i, proved),
                Err(why) => self.turn_away(i, why),
            },
        }
    }

    /// Whether the line proves that its sender, who was asked with this number, belongs to the job.
    fn judge(&self, asked: &str, line: &[u8]) -> std::result::Result<Proved, &'static str> {
        let line = Line::parse(line).filter(|l| l.cmd() == "fmpl-start").ok_or("sent_garbage")?;
        if line.get("version") != Some(VERSION) {
            return Err("it_is_of_another_version_of_FMPL");
        }
        let said = || Some((line.number("rank")?, line.number("size")?, line.get("nonce")?, line.get("proof")?));
        let (rank, size, nonce, proof): (u32, u32, _, _) = said().filter(|s| is_nonce(s.2)).ok_or("sent_garbage")?;
        let nonces = [asked, nonce];
        if !join::proves(&self.secret, proof, "rank", nonces, rank, size) {
            return Err("it_does_not_know_the_secret_of_this_job");
        }
        if size != self.place.size || rank >= size {
            return Err("it_is_of_a_job_of_another_size_(FMPL_SIZE)");
        }
        if rank as usize == self.own
            || self.seats[rank as usize].is_some()
            || self.server.stage(rank as usize) != Stage::Fresh
        {
            return Err("another_process_has_the_same_rank");
        }
        if self.server.has_failed() {
            return Err("the_job_has_failed_to_start");
        }
        let proof = join::proof(&self.secret, "root", nonces, rank, size);
        let keys = join::keys(&self.secret, nonces, rank, size);
        Ok(Proved { rank: rank as usize, keys, welcome: format!("cmd=fmpl-welcome proof={proof}\n") })
    }

    fn let_in(&mut self, i: usize, proved: Proved) {
        let Some((stream, from)) = self.door.let_in(i, &proved.welcome) else { return };
        self.seats[proved.rank] = Some(Seat::new(Box::new(stream), from, Some(proved.keys)));
        self.came += 1;
        if self.came == self.seats.len() {
            self.until = None;
        }
    }

    fn turn_away(&mut self, i: usize, why: &'static str) {
        let (from, sent) = self.door.turn_away(i, why);
        Complaints { seen: &mut self.complaints, place: &self.place }.turned_away(&from, why, &sent);
    }

    /// A name may stand for another address here than elsewhere: many systems give the host's own name a loopback address.
    fn say_where(&self) {
        let (root, at) = (self.place.root(), self.door.at());
        let named = match &self.place.root {
            Where::Named(host, _) => host.parse::<std::net::IpAddr>().is_err() && host != "localhost",
            Where::At(_) => false,
        };
        if named && self.door.is_local() {
            self.say(&format!(
                "listens at {at}, which {root} (FMPL_ROOT) stands for here: no other machine can reach it"
            ));
        } else if self.place.log >= Level::Info {
            let what = if named { "FMPL_ROOT=" } else { "" };
            self.say(&format!("listens at {at} ({what}{root})"));
        }
    }

    fn say(&self, text: &str) {
        if self.place.log >= Level::Warn {
            say(&format!("rank {}: {text}", self.own));
        }
    }
}

/// Who has shown that it belongs to the job.
struct Proved {
    rank: usize,
    keys: Keys,
    welcome: String,
}

/// What is said of those who are turned away, once for each reason.
struct Complaints<'a> {
    seen: &'a mut BTreeSet<&'static str>,
    place: &'a Place,
}

impl Complaints<'_> {
    fn turned_away(&mut self, from: &str, why: &'static str, sent: &[u8]) {
        if self.seen.insert(why) && self.place.log >= Level::Warn {
            let shown = if sent.is_empty() { String::new() } else { format!(" ({})", wire::shown(sent)) };
            let (to, why) = (self.place.root(), why.replace('_', " "));
            let text =
                format!("turned away a connection from {from} to {to}: {why}{shown} (said once for each reason)");
            say(&format!("rank {}: {text}", self.place.rank));
        }
    }
}
