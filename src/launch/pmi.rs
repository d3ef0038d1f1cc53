//! The rank's side of PMI-1: one question, one answer, over the descriptor that the launcher left in `PMI_FD`.
//!
//! Everything here is off the message path: it runs at init, at first contact and at finalize. Whatever comes back that is
//! not the answer is an error with both lines in it; the connection is then of no use any more and says so.

use super::Store;
use super::costs::{self, Connection};
use super::seal::{Keys, Seal};
use super::wire::{self, Inbox, Line};
use crate::base::error::{Code, Error, Result, error};
use crate::base::system::{self, close_on_exec, is_socket, read};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The connection to a launcher that speaks PMI-1.
pub(crate) struct Client {
    socket: OwnedFd,
    /// What is at the other end, as people read it.
    launcher: String,
    rank: u32,
    inbox: Inbox,
    /// The checks of what is said and heard, where the connection leaves the machine.
    seals: Option<[Seal; 2]>,
    kvsname: String,
    /// The longest key, in characters.
    key_max: usize,
    /// The longest value, in characters.
    value_max: usize,
    broken: bool,
    /// The other end is a [keeper](super::keeper), or can the same.
    spreads: bool,
    counted: Option<Connection>,
}

/// The room that a key leaves for `~` and the number of a piece.
const PIECE_SUFFIX: usize = 6;
/// How long a line that puts a value may be, without the names in it.
const LINE: usize = 1024 - "cmd=put kvsname= key= value=\n".len() - 8;
/// A longer value is not brought to all by a keeper: whoever wants it asks for it.
const TOLD_MAX: usize = 16 << 10;
/// A value of more pieces than this is a mistake (some 10 MB with the usual limits).
const PIECES_MAX: usize = 20_000;

impl Client {
    /// Takes the descriptor over and says hello. From now on children that this process executes do not inherit it.
    pub(crate) fn join(fd: RawFd, rank: u32) -> Result<Client> {
        check(fd)?;
        if close_on_exec(fd).is_err() {
            return Err(Error::system(format_args!("fcntl(PMI_FD={fd}, FD_CLOEXEC)")));
        }
        // SAFETY: the launcher made the descriptor for us, and `Launch::find` takes it only once in the life of a process.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        Client::over(socket, rank, "the launcher".into(), None)
    }

    /// Says hello to `launcher` over a socket, each line with a check if there are keys for it.
    pub(crate) fn over(socket: OwnedFd, rank: u32, launcher: String, keys: Option<Keys>) -> Result<Client> {
        let (inbox, kvsname) = Default::default();
        let seals = keys.map(|keys| [Seal::new(keys.rank), Seal::new(keys.root)]);
        let (key_max, value_max, broken, spreads, counted) = Default::default();
        let mut c =
            Client { socket, launcher, rank, inbox, seals, kvsname, key_max, value_max, broken, spreads, counted };

        c.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", |_| Some(()))?;
        let (key_len, value_len, adds) = c.ask("cmd=get_maxes", "maxes", |l| {
            Some((l.number("keylen_max")?, l.number("vallen_max")?, l.get("fmpl-adds").is_some()))
        })?;
        c.spreads = adds;
        // The limits of PMI count the NUL of a C string.
        (c.key_max, c.value_max) =
            (usize::min(key_len, 64).saturating_sub(1), usize::min(value_len, 4096).saturating_sub(1));
        if c.key_max <= PIECE_SUFFIX || c.value_max < 16 {
            return Err(error!(
                Code::Launch,
                "PMI: keys of {key_len} and values of {value_len} characters are too short"
            ));
        }
        c.kvsname = c.ask("cmd=get_my_kvsname", "my_kvsname", |l| l.get("kvsname").map(str::to_owned))?;
        // Slurm's pmi2 plugin announces values of 1024 characters, and takes lines of no more than that.
        c.value_max = c.value_max.min(LINE.saturating_sub(c.kvsname.len() + c.key_max)).max(16);
        Ok(c)
    }

    /// The other end is a [keeper](super::keeper), which can more than PMI.
    pub(crate) fn of_keeper(mut self) -> Client {
        self.spreads = true;
        // Within this process it is none.
        self.counted = self.seals.as_ref().map(|_| Connection::new());
        self
    }

    /// Puts the pieces of a value by this command.
    fn put_by(&mut self, command: &str, key: &str, value: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let pieces = wire::pieces(value, self.value_max);
        if pieces.len() > PIECES_MAX {
            return Err(error!(Code::Argument, "{} bytes are too many to put under {key}", value.len()));
        }
        for (i, piece) in pieces.iter().enumerate() {
            let (name, key) = (&self.kvsname, wire::piece_key(key, i));
            let question = format!("cmd={command} kvsname={name} key={key} value={piece}");
            self.ask(&question, "put_result", |_| Some(()))?;
        }
        Ok(())
    }

    fn check_key(&self, key: &str) -> Result<()> {
        let most = self.key_max - PIECE_SUFFIX;
        let fits = !key.is_empty() && key.len() <= most;
        if fits && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b)) {
            return Ok(());
        }
        Err(error!(Code::Argument, "{key:?} cannot be a key: 1 to {most} of A-Z a-z 0-9 - _ . /"))
    }

    fn get_piece(&mut self, key: &str, i: usize) -> Result<String> {
        let question = format!("cmd=get kvsname={} key={}", self.kvsname, wire::piece_key(key, i));
        let found = self.ask_lenient(&question, "get_result", |l| match l.number("rc") {
            Some(0) => l.get("value").map(|v| Some(v.to_owned())),
            // It may be there, and is not to be had.
            Some(-2) => None,
            _ => Some(None),
        })?;
        found.ok_or_else(|| error!(Code::Launch, "no rank has put a value under the key {key} before the last fence"))
    }

    /// The descriptor, for a last word by a thread that cannot wait for the others.
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a line and reads the answer, which must be `expected` with no `rc` but 0.
    fn ask<T>(&mut self, question: &str, expected: &str, read: impl FnOnce(&Line) -> Option<T>) -> Result<T> {
        self.ask_lenient(question, expected, |l| if l.get("rc").is_some_and(|rc| rc != "0") { None } else { read(l) })
    }

    fn ask_lenient<T>(&mut self, question: &str, expected: &str, read: impl FnOnce(&Line) -> Option<T>) -> Result<T> {
        let failed = |said: String| error!(Code::Launch, "PMI: {} {said}", wire::shown(question.as_bytes()));
        if self.broken {
            return Err(failed(format!("cannot be asked: the connection to {} was lost before", self.launcher)));
        }
        self.broken = true;
        let line = match &mut self.seals {
            Some([says, _]) => says.put(question),
            None => format!("{question}\n"),
        };
        if let Err(e) = send(self.fd(), &line) {
            self.obey_last_word();
            return Err(failed(format!("could not be sent to {}: {e}", self.launcher)));
        }
        loop {
            match self.inbox.line() {
                Ok(Some(came)) => {
                    let answer = match &mut self.seals {
                        Some([_, hears]) => hears.take(came).ok_or_else(|| altered(&self.launcher, came))?,
                        None => came,
                    };
                    let line = Line::parse(answer);
                    if let Some(abort) = line.as_ref().filter(|l| l.cmd() == "abort") {
                        super::join::obey_abort(abort, self.rank);
                    }
                    let line = line.filter(|l| l.cmd() == expected);
                    // An answer of the right kind that says no leaves the two sides in step.
                    self.broken = line.is_none();
                    return line
                        .and_then(|l| read(&l))
                        .ok_or_else(|| failed(format!("was answered {}, not cmd={expected}", wire::shown(answer))));
                }
                Ok(None) => self.read_on().map_err(failed)?,
                Err(wire::TooLong) => {
                    let rest = wire::shown(self.inbox.rest());
                    return Err(failed(format!("was answered with a line that does not end: {rest}")));
                }
            }
        }
    }

    /// The other side has hung up. It may have said why before: the job was aborted.
    #[cold]
    fn obey_last_word(&mut self) {
        while self.read_on().is_ok() {}
        let key = self.seals.as_ref().map(|[_, hears]| hears.key());
        while let Ok(Some(came)) = self.inbox.line() {
            let line = key.map_or(Some(came), |key| super::seal::last(key, came));
            if let Some(abort) = line.and_then(Line::parse).filter(|l| l.cmd() == "abort") {
                super::join::obey_abort(&abort, self.rank);
            }
        }
    }

    /// Reads more of an answer; what is wrong, in the words of an error.
    fn read_on(&mut self) -> std::result::Result<(), String> {
        let mut bytes = [0u8; 4096];
        let n = match read(&self.socket, &mut bytes) {
            Ok(n) => {
                // Within this process nothing is read from others.
                self.seals.iter().for_each(|_| costs::read(n));
                n
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            // Only where a time-out was set on the socket.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                return Err(format!("was not answered in time by {}: it is stopped, or unreachable", self.launcher));
            }
            Err(e) => return Err(format!("was not answered: {e}")),
        };
        if n == 0 {
            let rest = wire::shown(self.inbox.rest());
            return Err(format!("was not answered: {} closed the connection (after {rest})", self.launcher));
        }
        self.inbox.push(&bytes[..n]);
        Ok(())
    }
}

impl Store for Client {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.put_by("put", key, value)
    }

    fn tell(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.put_by(if self.spreads && value.len() <= TOLD_MAX { "fmpl-tell" } else { "put" }, key, value)
    }

    fn add(&mut self, key: &str) -> Result<bool> {
        if self.spreads {
            self.check_key(key)?;
            let question = format!("cmd=fmpl-add kvsname={} key={key} rank={}", self.kvsname, self.rank);
            self.ask(&question, "put_result", |_| Some(()))?;
        }
        Ok(self.spreads)
    }

    fn get(&mut self, _: u32, key: &str) -> Result<Vec<u8>> {
        let first = self.get_piece(key, 0)?;
        let nonsense = || {
            error!(
                Code::Launch,
                "the value under {key} is not one that FMPL has put: {}",
                wire::shown(first.as_bytes())
            )
        };
        let (count, digits) = wire::first_piece(&first).filter(|(n, _)| *n <= PIECES_MAX).ok_or_else(nonsense)?;
        let mut all = digits.to_owned();
        for i in 1..count {
            all += &self.get_piece(key, i)?;
        }
        wire::unhex(&all).ok_or_else(nonsense)
    }

    fn fence(&mut self) -> Result<()> {
        let failed = self.ask_lenient("cmd=barrier_in", "barrier_out", |l| match l.number::<i32>("rc") {
            None | Some(0) => Some(None),
            Some(_) => Some(Some(l.get("msg").unwrap_or("no reason given").replace('_', " "))),
        })?;
        match failed {
            None => Ok(()),
            Some(why) => {
                Err(error!(Code::Peer, "rank {}: the ranks cannot meet at {}: {why}", self.rank, self.launcher))
            }
        }
    }

    fn finalize(&mut self) -> Result<bool> {
        self.ask("cmd=finalize", "finalize_ack", |l| Some(l.get("again") == Some("1")))
    }

    fn into_socket(self: Box<Self>) -> Option<OwnedFd> {
        Some(self.socket)
    }
}

/// Is it a socket? It may have been inherited without what it was a number of.
fn check(fd: RawFd) -> Result<()> {
    if fd >= 0 && is_socket(fd) {
        return Ok(());
    }
    let text = format!(
        "PMI_FD={fd} is not an open socket. Was this program started by a rank of a job instead of its launcher? \
         Then unset PMI_FD to run it alone, or start it with `fmpl run`"
    );
    Err(Error::new(Code::Launch, text))
}

/// A descriptor of our own of the same connection.
pub(crate) fn second(fd: RawFd) -> Result<OwnedFd> {
    check(fd)?;
    system::second(fd).map_err(|e| error!(Code::System, "a second descriptor of PMI_FD={fd}: {e}"))
}

#[cold]
fn altered(launcher: &str, came: &[u8]) -> Error {
    let text = format!(
        "PMI: {} is not what {launcher} says next: it was altered on its way, or is a stranger's",
        wire::shown(came)
    );
    Error::new(Code::Launch, text)
}

/// Sends the whole text; a launcher that is gone is an error, not a SIGPIPE.
pub(crate) fn send(fd: RawFd, text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match system::send(&fd, rest, 0) {
            Ok(n) => rest = &rest[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;

    /// Joins a launcher that answers the n-th question with the n-th text, then hangs up.
    fn with_answers<T>(answers: &[&str], then: impl FnOnce(Result<Client>) -> T) -> T {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let answers: Vec<Vec<u8>> = answers.iter().map(|a| a.as_bytes().to_vec()).collect();
        let server = std::thread::spawn(move || {
            let mut questions = BufReader::new(theirs.try_clone().unwrap()).lines();
            for a in answers {
                questions.next().unwrap().unwrap();
                (&theirs).write_all(&a).unwrap();
            }
        });
        let result = then(Client::join(ours.into_raw_fd(), 1));
        server.join().unwrap();
        result
    }

    const HELLO: [&str; 3] = [
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
        "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
        "cmd=my_kvsname kvsname=kvs_1\n",
    ];

    fn joined_then<T>(more: &[&str], then: impl FnOnce(Client) -> T) -> T {
        with_answers(&[&HELLO[..], more].concat(), |c| then(c.unwrap()))
    }

    #[test]
    fn hello() {
        joined_then(&[], |c| {
            assert_eq!((c.kvsname.as_str(), c.key_max, c.value_max), ("kvs_1", 63, 919));
            // SAFETY: plain fcntl on an open descriptor.
            assert_eq!(unsafe { libc::fcntl(c.fd(), libc::F_GETFD) }, libc::FD_CLOEXEC);
        });
    }

    #[test]
    fn an_absent_key_is_named_and_the_connection_lives() {
        let absent = "cmd=get_result rc=-1 msg=key_k_not_found value=unknown\n";
        joined_then(&[absent, "cmd=get_result rc=0 value=1:6869\n", "cmd=get_result rc=0 value=rubbish\n"], |mut c| {
            let e = c.get(0, "where-is-7").unwrap_err();
            assert!(e.code() == Code::Launch && e.detail().contains("where-is-7"), "{e}");
            assert_eq!(c.get(0, "k").unwrap(), b"hi");
            let e = c.get(0, "k").unwrap_err();
            assert!(e.detail().contains("rubbish"), "{e}");
        });
    }

    #[test]
    fn garbage_and_silence_are_named() {
        let e = with_answers(&["\x01\x02what?\n"], |c| c.err().unwrap());
        assert!(e.code() == Code::Launch && e.detail().contains("cmd=init") && e.detail().contains("what?"), "{e}");
        let e = with_answers(&[HELLO[0], "cmd=maxes keylen_max=many vallen_max=1024\n"], |c| c.err().unwrap());
        assert!(e.detail().contains("cmd=get_maxes") && e.detail().contains("many"), "{e}");
        let e = with_answers(&[HELLO[0], "cmd=ma"], |c| c.err().unwrap());
        assert!(e.detail().contains("cmd=get_maxes") && e.detail().contains("closed"), "{e}");
        let e = with_answers(&["cmd=response_to_init rc=-1 msg=no\n"], |c| c.err().unwrap());
        assert!(e.detail().contains("rc=-1"), "{e}");
        let long = "x".repeat(2 * wire::LINE_MAX);
        joined_then(&[&long], |mut c| {
            let e = c.fence().unwrap_err();
            assert!(e.code() == Code::Launch && e.detail().contains("barrier_in") && e.detail().len() < 1000, "{e}");
            let e = c.put("k", b"v").unwrap_err();
            assert!(e.detail().contains("lost before"), "{e}");
        });
    }

    #[test]
    fn a_fence_that_cannot_be_met_is_a_dead_peer() {
        joined_then(&["cmd=barrier_out rc=-1 msg=rank_1_died\n", "cmd=barrier_out\n"], |mut c| {
            let e = c.fence().unwrap_err();
            assert!(e.code() == Code::Peer && e.detail().contains("rank 1 died"), "{e}");
            c.fence().unwrap();
        });
    }

    #[test]
    fn keys_that_would_break_the_line_are_refused() {
        joined_then(&[], |mut c| {
            for bad in ["", "a b", "a=b\n", "a~1", &"k".repeat(60)] {
                assert_eq!(c.put(bad, b"v").unwrap_err().code(), Code::Argument, "{bad:?}");
            }
        });
    }

    #[test]
    fn what_is_no_socket_is_not_taken() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let e = Client::join(file.as_raw_fd(), 1).err().unwrap();
        assert!(e.code() == Code::Launch && e.detail().contains("not an open socket"), "{e}");
        assert!(Client::join(-1, 1).is_err() && Client::join(1 << 20, 1).is_err());
    }
}
