//! One end of a connection, as the protocol between nodes wants it: a connection of TCP, whose bytes this process takes in the place of a device.
//!
//! Both ends are told of each other before either posts; the one whose end comes first in the order of their bytes dials. What is posted goes
//! out at once, in one call of the system, as far as the socket takes it; what it does not take is queued: records as copies, pieces by
//! where they lie, since they stay there until their request is over. What comes is taken by whoever calls, one thread at a time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::greeting::Greeting;
use super::home::Home;
use super::socket;
use crate::base::error::{Code, Error, Result};
use crate::base::lock::lock;
use crate::base::system::unshared::Unshared;
use crate::fabric::network::device::{Change, Completion, Data, End, Pair, Piece, RECORD_MOST, Request, Status, What};
use crate::fabric::network::link::PIECES;
use crate::fabric::served::frame::{HEADER, Header, Kind, Name};
use crate::fabric::served::held_back::HeldBack;
use crate::fabric::served::port::Reached;
pub(super) use inn::Buffer;
use inn::{Asked, In};
use out::{IDLE_MOST, LONG, Out, Part, idle_before, iov};

mod inn;
mod out;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// Bytes of reads under way: what an answerer whose socket is full keeps.
const READS_MOST: usize = 2 << 20;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Connection {
    home: Arc<Home>,
    name: Name,
    /// The socket, once it is known.
    socket: OnceLock<Unshared<OwnedFd>>,
    /// Who has dialled.
    caller: OnceLock<Name>,
    out: Mutex<Out>,
    /// What has not left.
    held: HeldBack,
    /// The last request whose bytes have all left.
    read: AtomicU64,
    inn: Mutex<In>,
    reads: Mutex<(VecDeque<Asked>, usize)>,
    /// The last request of the other end's that it is to be told of; 0: none.
    owed: AtomicU64,
    /// The last request that is known to be over, and the last one that was told of.
    done: AtomicU64,
    told: AtomicU64,
    /// Something else is to be told of.
    speaks: AtomicBool,
    /// Nothing comes any more, for this error of the system's; 0: something may.
    gone: AtomicI32,
}

/// What an error of a socket says of the other end.
fn status_of(code: i32) -> Status {
    match code {
        libc::ENETDOWN | libc::ENETUNREACH => Status::Unlinked,
        libc::ECONNRESET
        | libc::EPIPE
        | libc::ETIMEDOUT
        | libc::ECONNREFUSED
        | libc::ECONNABORTED
        | libc::EHOSTUNREACH
        | libc::EHOSTDOWN => Status::Silent,
        _ => Status::Other,
    }
}

fn code_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Connection {
    pub fn new(home: &Arc<Home>, name: Name) -> Connection {
        Connection {
            home: home.clone(),
            name,
            socket: OnceLock::new(),
            caller: OnceLock::new(),
            out: Mutex::default(),
            held: HeldBack::new(),
            read: AtomicU64::new(0),
            inn: Mutex::default(),
            reads: Mutex::default(),
            owed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            told: AtomicU64::new(0),
            speaks: AtomicBool::new(false),
            gone: AtomicI32::new(0),
        }
    }

    fn fd(&self) -> Option<RawFd> {
        self.socket.get().map(|socket| socket.as_raw_fd())
    }
    fn is_own(&self, other: Name) -> bool {
        other == self.name
    }

    /// Somebody has dialled who greets this end. `false`: it is not for him.
    pub fn is_called(&self, socket: OwnedFd, greeting: Greeting) -> bool {
        if greeting.to != self.name {
            return false;
        }
        let out = lock(&self.out);
        if out.broken
            || out.other.is_some_and(|other| other != greeting.from)
            || self.caller.set(greeting.from).is_err()
        {
            return false;
        }
        self.has(socket)
    }

    /// This is the socket from now on.
    fn has(&self, socket: OwnedFd) -> bool {
        let fd = socket.as_raw_fd();
        self.socket.set(Unshared::new(socket)).is_ok()
            && self.home.watch.add(fd, u64::from(self.name.number), false).is_ok()
    }

    fn dial(&self, out: &mut Out, to: SocketAddr, other: Name) -> io::Result<()> {
        let socket = socket::dial(to)?;
        self.home.terms.settle(&socket);
        let greeting = Greeting { to: other, from: self.name };
        // It leaves as soon as there is a connection.
        out.queue.push_back(Part::Bytes(greeting.encode().to_vec()));
        self.has(socket);
        self.wait_for_room(out, true);
        self.has_left_over(out, false);
        Ok(())
    }

    fn wait_for_room(&self, out: &mut Out, wait: bool) {
        if out.watched != wait
            && let Some(fd) = self.fd()
        {
            out.watched = wait;
            let _ = self.home.watch.change(fd, u64::from(self.name.number), wait);
        }
    }

    /// A request of the connection with itself.
    fn post_own(&self, out: &mut Out, request: &Request<'_>) -> Result<bool> {
        match (request.what, request.data) {
            (What::Change(change), Data::Pieces([old, ..])) => match self.home.memory.change(request.to, change) {
                // SAFETY: eight bytes that are the request's until it is over.
                Some(was) => unsafe { (old.addr as *mut u64).write_volatile(was) },
                None => out.failed = Some(Completion { id: request.id, status: Status::Refused, code: libc::EACCES }),
            },
            (What::Write, Data::Pieces([])) => {}
            _ => return Err(Error::new(Code::Unsupported, "a process changes words of its own only")),
        }
        out.last = request.id;
        match out.failed {
            Some(_) => self.speaks.store(true, Ordering::Release),
            None => _ = self.done.fetch_max(request.id, Ordering::Release),
        }
        Ok(true)
    }

    /// Posts what waits for its answer.
    fn post_read(&self, out: &mut Out, request: &Request<'_>, header: Header) -> Result<bool> {
        let Data::Pieces(mut pieces) = request.data else {
            return Err(Error::new(Code::Unsupported, "what is read goes to pieces of memory"));
        };
        let mut record: &[u8] = &[];
        if let (What::Append { .. }, [old, new]) = (request.what, pieces) {
            // SAFETY: the caller's, and left alone until this is over.
            record = unsafe { std::slice::from_raw_parts(new.addr as *const u8, new.len as usize) };
            pieces = std::slice::from_ref(old);
        }
        let (id, len) = (request.id, pieces.iter().map(|piece| piece.len as usize).sum());
        let mut asked = Asked { id, len, pieces: [Piece { addr: 0, len: 0, lkey: 0 }; PIECES as usize] };
        asked.pieces[..pieces.len()].copy_from_slice(pieces);
        let mut reads = lock(&self.reads);
        if reads.1 > 0 && reads.1 + len > READS_MOST {
            return Ok(false);
        }
        reads.0.push_back(asked);
        reads.1 += len;
        drop(reads);
        (out.last, out.asked) = (id, id);
        let (kind, words) = match request.what {
            What::Change(Change::Add(n)) => (Kind::Add, [n, 0]),
            What::Change(Change::Swap(expected, new)) => (Kind::Swap, [expected, new]),
            What::Append { expected, .. } => (Kind::Append, [expected, 0]),
            _ => (Kind::Read, [0; 2]),
        };
        let mut header = Header { kind, ..header };
        if let What::Append { at, .. } = request.what {
            (header.len, header.number) = (record.len() as u32, at);
        }
        let mut bytes = [0; HEADER + 8 + RECORD_MOST];
        bytes[..HEADER].copy_from_slice(&header.encode());
        bytes[HEADER..][..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[HEADER + 8..][..8].copy_from_slice(&words[1].to_le_bytes());
        bytes[HEADER + 8..][..record.len()].copy_from_slice(record);
        self.push_bytes(out, &bytes[..HEADER + header.follows()], request.later);
        Ok(true)
    }

    /// What is owed leaves with what is posted: its bytes, at the beginning of these.
    fn owed_goes_along(&self, bytes: &mut [u8]) -> usize {
        let over = if self.owed.load(Ordering::Relaxed) == 0 { 0 } else { self.owed.swap(0, Ordering::AcqRel) };
        if over == 0 {
            return 0;
        }
        self.home.owing.fetch_sub(1, Ordering::Relaxed);
        bytes[..HEADER].copy_from_slice(&Header::bare(Kind::Over, over).encode());
        HEADER
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.home.forget(self.name.number);
        self.home.owing.fetch_sub((self.owed.load(Ordering::Relaxed) != 0) as usize, Ordering::Relaxed);
        self.held.ends(&self.home.owing);
        if let Some(fd) = self.fd() {
            self.home.watch.remove(fd);
        }
    }
}

impl Pair for Connection {
    fn number(&self) -> u32 {
        self.name.number
    }
    fn end(&self) -> End {
        self.home.reached.end(self.name)
    }

    fn connect(&self, to: &End) -> Result<()> {
        let (there, other) = Reached::of_end(to);
        let mut out = lock(&self.out);
        if out.other.replace(other).is_some() || self.is_own(other) {
            return Ok(());
        }
        if self.caller.get().is_some_and(|caller| *caller != other) {
            return Err(Error::new(Code::Peer, "somebody else has dialled it"));
        }
        if self.end().0 > to.0 {
            return Ok(());
        }
        let at = there.at(there.connections);
        self.dial(&mut out, at, other).map_err(|e| Error::new(Code::Peer, format!("dialling {at}: {e}")))
    }

    unsafe fn post(&self, request: &Request<'_>) -> Result<bool> {
        let mut out = lock(&self.out);
        let out = &mut *out;
        let Some(other) = out.other else { return Err(Error::new(Code::Peer, "the other end is not known")) };
        let gone = self.gone.load(Ordering::Acquire);
        if out.broken || gone != 0 {
            if !out.broken && out.failed.is_none() {
                out.failed = Some(Completion { id: request.id, status: status_of(gone), code: gone });
            }
            // Told of as if it had failed later.
            out.last = request.id;
            self.speaks.store(true, Ordering::Release);
            return Ok(true);
        }
        if self.is_own(other) {
            return self.post_own(out, request);
        }
        if self.fd().is_none() {
            return Ok(false);
        }
        let Request { id, what, data, to, signaled, later } = *request;
        let len = match data {
            Data::Record(record) => record.len(),
            Data::Pieces(pieces) => pieces.iter().map(|p| p.len as usize).sum(),
        };
        let mut header = Header { asks: signaled, rkey: to.rkey, addr: to.addr, ..Header::bare(Kind::Write, id) };
        header.len = len as u32;
        match what {
            What::Write => {}
            What::WriteWithNumber(number) => (header.kind, header.number) = (Kind::WriteWithNumber, number),
            What::Read | What::Change(_) | What::Append { .. } => return self.post_read(out, request, header),
        }
        out.last = id;
        if signaled {
            out.asked = id;
        }
        let mut bytes = [0; (2 + IDLE_MOST) * HEADER + RECORD_MOST];
        let mut n = self.owed_goes_along(&mut bytes);
        if let Data::Pieces([first, ..]) = data
            && len >= LONG
        {
            for _ in 0..idle_before(first.addr, n + HEADER) {
                bytes[n..][..HEADER].copy_from_slice(&Header::bare(Kind::Over, 0).encode());
                n += HEADER;
            }
        }
        bytes[n..][..HEADER].copy_from_slice(&header.encode());
        n += HEADER;
        match data {
            Data::Record(record) => {
                bytes[n..][..len].copy_from_slice(record);
                let burst = self.held.is_in_a_burst(&mut out.posted_ns);
                self.push_bytes(out, &bytes[..n + len], later || burst);
                if burst {
                    self.held.is_waited_for();
                }
            }
            Data::Pieces(pieces) => {
                let mut parts = [iov(0, 0); PIECES as usize + 1];
                parts[0] = iov(bytes.as_ptr() as u64, n);
                for (to, piece) in parts[1..].iter_mut().zip(pieces) {
                    *to = iov(piece.addr, piece.len as usize);
                }
                // SAFETY: the pieces stay until the request is over.
                unsafe { self.push(out, &parts[..=pieces.len()], later) };
            }
        }
        Ok(true)
    }

    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        self.held.sees_a_wait();
        self.flush();
        self.receive(false, 1);
        self.home.news.call(&self.home.sleeper);
        // SYNC POINT: pairs with the release in `is_over`.
        let over = self.done.load(Ordering::Acquire);
        if over > self.told.load(Ordering::Relaxed) {
            self.told.store(over, Ordering::Relaxed);
            done(Completion { id: over, status: Status::Done, code: 0 });
        }
        if !self.speaks.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let told = {
            let mut out = lock(&self.out);
            let gone = self.gone.load(Ordering::Acquire);
            if let Some(failed) = out.failed.take() {
                Some(failed)
            } else if out.broken {
                Some(Completion { id: out.last, status: Status::Flushed, code: libc::ECANCELED })
            } else if gone != 0 && out.asked > over {
                Some(Completion { id: out.last, status: status_of(gone), code: gone })
            } else {
                None
            }
        };
        // Without the lock: whoever hears of it may break the connection off.
        told.into_iter().for_each(done);
        Ok(())
    }

    fn has_read(&self, id: u64) -> bool {
        self.read.load(Ordering::Acquire) >= id
    }

    fn break_off(&self) -> Result<()> {
        {
            let mut out = lock(&self.out);
            out.broken = true;
            self.has_nothing(&mut out);
        }
        // From here on nobody writes anything for the other end.
        lock(&self.inn).stop();
        if let Some(socket) = self.socket.get() {
            self.home.watch.remove(socket.as_raw_fd());
            crate::base::system::shutdown(&**socket, libc::SHUT_RDWR);
        }
        self.speaks.store(true, Ordering::Release);
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.gone.load(Ordering::Acquire) == 0 && !lock(&self.out).broken
    }
    fn explain(&self, code: i32) -> String {
        io::Error::from_raw_os_error(code).to_string()
    }
    fn bytes(&self) -> usize {
        lock(&self.inn).bytes()
    }
    fn shorten_queue(&self, _entries: u32) -> Result<()> {
        Err(Error::new(Code::Unsupported, "TCP has no completion queue"))
    }
}
