//! One end of a connection, as the protocol between nodes wants it: a connection of TCP, whose bytes this process takes in the place of a device.
//!
//! Both ends are told of each other before either posts; the one whose end comes first in the order of their bytes dials. What is posted goes
//! out at once, in one call of the system, as far as the socket takes it; what it does not take is queued: records as copies, pieces by
//! where they lie, since they stay there until their request is over. What comes is taken by whoever calls, one thread at a time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::frame::{Greeting, HEADER, Header, Kind, Name};
use super::memory::{look, show};
use super::network::Home;
use super::port::Reached;
use super::socket;
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::device::{
    Access, Change, Completion, Data, DeviceError, End, Pair, Piece, Place, RECORD_MOST, Request, Status, What,
};
use crate::fabric::network::link::PIECES;

/// Bytes that are received before it is known what they are for.
const BUFFER: usize = 8 << 10;
/// What follows a header is taken whole up to so many bytes; of more the rest is received to where it belongs.
const WHOLE: usize = 1 << 10;
/// Bytes that are taken at a call at most, so that whoever waits sees what has come before.
const AT_A_TIME: usize = 512 << 10;
/// Bytes of reads under way: what an answerer whose socket is full keeps.
const READS_MOST: usize = 2 << 20;
/// Bytes of records that are held back at most until something else goes.
const HELD: usize = 8 << 10;
/// Turns of a wait in which what nobody waits for is left alone.
const LEFT_ALONE: u32 = 4;
/// Parts of what is queued that leave by one call.
const PARTS: usize = 16;

/// What the socket has not taken.
#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    Memory(u64, usize),
}

impl Part {
    fn iov(&self) -> libc::iovec {
        match self {
            Part::Bytes(bytes) => iov(bytes.as_ptr() as u64, bytes.len()),
            Part::Memory(at, len) => iov(*at, *len),
        }
    }
}

fn iov(at: u64, len: usize) -> libc::iovec {
    libc::iovec { iov_base: at as *mut _, iov_len: len }
}

/// What goes out.
#[derive(Debug, Default)]
struct Out {
    other: Option<Name>,
    /// Number of the last request, and of the last one that tells of its end.
    last: u64,
    asked: u64,
    /// What the socket has not taken, or was not given: what nobody waits for goes with the next frame, or when this side waits. The frames that
    /// were held back last stand together behind the rest.
    queue: VecDeque<Part>,
    held: Vec<u8>,
    /// Bytes of its first part that have left.
    left: usize,
    /// The system is asked to tell when the socket takes more.
    watched: bool,
    failed: Option<Completion>,
    /// Broken off, or refused.
    broken: bool,
}

/// A read or a change that waits for its answer, and where that goes.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u64,
    len: usize,
    pieces: [Piece; PIECES as usize],
}

/// Bytes under way to where they belong.
#[derive(Debug)]
enum Rest {
    /// Of a write: the next one's place, and how many there are.
    Write(Header, Place, usize),
    /// Of an answer: how many there are.
    Answer(Box<Asked>, usize),
}

/// What comes in.
#[derive(Debug)]
struct In {
    buffer: Box<[u8; BUFFER]>,
    /// What has come and was not looked at.
    begin: usize,
    end: usize,
    rest: Option<Rest>,
    /// The last thing that has come asks to be told of.
    asks: bool,
    /// Nothing more is taken.
    over: bool,
}

/// Why nothing more comes.
enum Ends {
    /// The other end has hung up, or the system says so.
    Silent(i32),
    /// A request was refused.
    Refused(u64),
    /// It is no frame.
    Damaged,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Connection {
    home: Arc<Home>,
    name: Name,
    /// The socket, once it is known.
    socket: OnceLock<OwnedFd>,
    /// Who has dialled.
    caller: OnceLock<Name>,
    out: Mutex<Out>,
    /// Something has not left; and in so many turns of waits it was left alone.
    holds: AtomicBool,
    turns: AtomicU32,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let inn = In { buffer: Box::new([0; BUFFER]), begin: 0, end: 0, rest: None, asks: false, over: false };
        Connection {
            home: home.clone(),
            name,
            socket: OnceLock::new(),
            caller: OnceLock::new(),
            out: Mutex::default(),
            holds: AtomicBool::new(false),
            turns: AtomicU32::new(0),
            read: AtomicU64::new(0),
            inn: Mutex::new(inn),
            reads: Mutex::default(),
            owed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            told: AtomicU64::new(0),
            speaks: AtomicBool::new(false),
            gone: AtomicI32::new(0),
        }
    }

    fn fd(&self) -> Option<RawFd> {
        self.socket.get().map(AsRawFd::as_raw_fd)
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
        self.socket.set(socket).is_ok() && self.home.watch.add(fd, u64::from(self.name.number), false).is_ok()
    }

    fn dial(&self, out: &mut Out, to: SocketAddr, other: Name) -> io::Result<()> {
        let socket = socket::dial(to)?;
        socket::settle(&socket, self.home.silence_ms);
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

    /// Something has not left. It does when somebody calls next, which the thread does within a moment, or now.
    fn has_left_over(&self, out: &mut Out, later: bool) {
        if !self.holds.swap(true, Ordering::AcqRel) {
            self.turns.store(0, Ordering::Relaxed);
            self.home.owing.fetch_add(1, Ordering::SeqCst);
        }
        if !later {
            self.turns.store(LEFT_ALONE, Ordering::Relaxed);
        }
        if !self.home.lets_wait() {
            self.send_queue(out);
        }
    }

    /// Nothing is to leave any more.
    fn has_nothing(&self, out: &mut Out) {
        out.queue.clear();
        out.held.clear();
        out.left = 0;
        self.wait_for_room(out, false);
        if self.holds.swap(false, Ordering::AcqRel) {
            self.home.owing.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends parts, of which the first is the caller's again; the others stay where they are until their request is over. `later`: with what comes
    /// next.
    ///
    /// # Safety
    /// They can be read, and the others stay so; memory that is unmapped is an error.
    unsafe fn push(&self, out: &mut Out, parts: &[libc::iovec], later: bool) {
        let mut gone = 0;
        let holds = self.holds.load(Ordering::Acquire);
        if !holds
            && !later
            && let Some(fd) = self.fd()
        {
            // SAFETY: as the caller promises.
            match unsafe { socket::send_all(fd, parts) } {
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) => return self.cannot_send(out, code_of(&e)),
            }
        }
        let mut before = std::mem::take(&mut out.held);
        for (k, part) in parts.iter().enumerate() {
            let skipped = gone.min(part.iov_len);
            gone -= skipped;
            let (at, len) = (part.iov_base as u64 + skipped as u64, part.iov_len - skipped);
            if k == 0 {
                // SAFETY: as the caller promises.
                before.extend_from_slice(unsafe { std::slice::from_raw_parts(at as *const u8, len) });
                if !before.is_empty() {
                    out.queue.push_back(Part::Bytes(std::mem::take(&mut before)));
                }
            } else if len > 0 {
                out.queue.push_back(Part::Memory(at, len));
            }
        }
        self.leave(out, holds && !later, later);
    }

    /// The same for bytes that are the caller's again.
    #[inline]
    fn push_bytes(&self, out: &mut Out, bytes: &[u8], later: bool) {
        let mut gone = 0;
        let holds = self.holds.load(Ordering::Acquire);
        if !holds
            && !later
            && let Some(fd) = self.fd()
        {
            match socket::send(fd, bytes) {
                Ok(Some(n)) if n == bytes.len() => return,
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) => return self.cannot_send(out, code_of(&e)),
            }
        }
        out.held.extend_from_slice(&bytes[gone..]);
        self.leave(out, holds && !later || out.held.len() > HELD, later);
    }

    /// What was queued leaves, `now` or when somebody calls.
    fn leave(&self, out: &mut Out, now: bool, later: bool) {
        if out.queue.is_empty() && out.held.is_empty() {
            self.read.store(out.last, Ordering::Release);
        } else if now {
            self.send_queue(out);
        } else {
            self.has_left_over(out, later);
        }
    }

    #[cold]
    fn cannot_send(&self, out: &mut Out, code: i32) {
        // What has come is still taken: it may say why.
        let _ = self.gone.compare_exchange(0, code, Ordering::AcqRel, Ordering::Relaxed);
        self.has_nothing(out);
        self.speaks.store(true, Ordering::Release);
    }

    /// Sends what has not left, as far as the socket takes it.
    #[inline]
    pub fn flush(&self) {
        if self.holds.load(Ordering::Acquire) {
            self.send_queue(&mut lock(&self.out));
        }
    }

    /// The same at a turn of a wait. What nobody waits for is left alone for some, since what the wait brings may go along.
    #[inline]
    pub fn turn(&self) {
        if self.holds.load(Ordering::Acquire) && self.turns.fetch_add(1, Ordering::Relaxed) >= LEFT_ALONE {
            self.flush();
        }
    }

    /// The same before the thread sleeps, who is told when the socket takes more.
    pub fn flush_or_watch(&self) {
        self.flush();
        if self.holds.load(Ordering::Acquire) {
            self.wait_for_room(&mut lock(&self.out), true);
        }
    }

    fn send_queue(&self, out: &mut Out) {
        let Some(fd) = self.fd() else { return };
        if !out.held.is_empty() {
            out.queue.push_back(Part::Bytes(std::mem::take(&mut out.held)));
        }
        while !out.queue.is_empty() {
            let mut parts = [iov(0, 0); PARTS];
            let mut n = 0;
            for (to, part) in parts.iter_mut().zip(&out.queue) {
                *to = part.iov();
                n += 1;
            }
            parts[0] = iov(parts[0].iov_base as u64 + out.left as u64, parts[0].iov_len - out.left);
            // SAFETY: copies of this queue's, and pieces of requests that are not over.
            let mut gone = match unsafe { socket::send_all(fd, &parts[..n]) } {
                Ok(Some(n)) => n,
                Ok(None) => break,
                Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => break,
                Err(e) => return self.cannot_send(out, code_of(&e)),
            };
            while gone > 0 {
                let Some(first) = out.queue.front() else { break };
                let rest = first.iov().iov_len - out.left;
                if gone < rest {
                    out.left += gone;
                    break;
                }
                gone -= rest;
                out.left = 0;
                out.queue.pop_front();
            }
        }
        if out.queue.is_empty() {
            self.has_nothing(out);
            self.read.store(out.last, Ordering::Release);
            return;
        }
        self.turns.store(LEFT_ALONE, Ordering::Relaxed);
        if !self.home.lets_wait() {
            self.wait_for_room(out, true);
        }
    }

    /// Takes what has come. `all`: whoever calls goes away, so the other end is told at once of what is over.
    pub fn receive(&self, all: bool) {
        let Some(fd) = self.fd() else { return };
        let Ok(mut inn) = self.inn.try_lock() else { return };
        if inn.over {
            return;
        }
        let mut taken = 0;
        let ends = loop {
            let (got, room) = self.receive_some(&mut inn, fd);
            let n = match got {
                Ok(None) => break None,
                Ok(Some(0)) => break Some(Ends::Silent(libc::ECONNRESET)),
                Ok(Some(n)) => n,
                Err(e) if e.raw_os_error() == Some(libc::ENOTCONN) => break None,
                // Memory of a request's that is not there any more.
                Err(e) if e.raw_os_error() == Some(libc::EFAULT) => {
                    break Some(match &inn.rest {
                        Some(Rest::Write(header, ..)) => Ends::Refused(header.id),
                        _ => Ends::Damaged,
                    });
                }
                Err(e) => break Some(Ends::Silent(code_of(&e))),
            };
            if let Err(ends) = self.took(&mut inn, n).and_then(|()| self.take_frames(&mut inn)) {
                break Some(ends);
            }
            taken += n;
            // The socket had no more.
            if n < room || taken >= AT_A_TIME {
                break None;
            }
        };
        if self.owed.load(Ordering::Relaxed) != 0 && (all || inn.asks || taken == 0) {
            self.pay();
        }
        if let Some(ends) = ends {
            self.ends(&mut inn, ends);
        }
    }

    /// Receives to where the next bytes belong. And how many might have come?
    fn receive_some(&self, inn: &mut In, fd: RawFd) -> (io::Result<Option<usize>>, usize) {
        let mut parts = [iov(0, 0); PIECES as usize + 1];
        let mut n = 0;
        let rest = match &inn.rest {
            None => {
                let end = inn.end;
                return (socket::receive(fd, &mut inn.buffer[end..]), BUFFER - end);
            }
            Some(rest) => rest,
        };
        let bytes = match rest {
            Rest::Write(.., left) => *left,
            Rest::Answer(asked, left) => {
                let mut skip = asked.len - left;
                for piece in &asked.pieces {
                    let skipped = skip.min(piece.len as usize);
                    skip -= skipped;
                    if piece.len as usize > skipped {
                        parts[n] = iov(piece.addr + skipped as u64, piece.len as usize - skipped);
                        n += 1;
                    }
                }
                *left
            }
        };
        // What comes behind it goes to the buffer, which is empty.
        let behind = iov(inn.buffer.as_mut_ptr() as u64, BUFFER);
        let receive = |parts: &mut [libc::iovec]| {
            // SAFETY: memory that is registered, or that of a request that is not over; and the buffer.
            unsafe { socket::receive_all(fd, parts) }
        };
        let got = match rest {
            Rest::Write(_, place, left) => {
                let reached = self.home.memory.reach(*place, *left, Access::REMOTE_WRITE, |at| {
                    (parts[0], parts[1]) = (iov(at as u64, *left), behind);
                    receive(&mut parts[..2])
                });
                reached.unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EFAULT)))
            }
            Rest::Answer(..) => {
                parts[n] = behind;
                receive(&mut parts[..=n])
            }
        };
        (got, bytes + BUFFER)
    }

    /// So many bytes have come.
    fn took(&self, inn: &mut In, n: usize) -> std::result::Result<(), Ends> {
        let Some(rest) = &mut inn.rest else {
            inn.end += n;
            return Ok(());
        };
        let (Rest::Write(.., left) | Rest::Answer(_, left)) = rest;
        let taken = n.min(*left);
        *left -= taken;
        let more = *left > 0;
        if let Rest::Write(_, place, _) = rest {
            place.addr += taken as u64;
        }
        if !more {
            (inn.begin, inn.end) = (0, n - taken);
            match inn.rest.take() {
                Some(Rest::Write(header, ..)) => self.wrote(inn, &header),
                Some(Rest::Answer(asked, _)) => self.is_over(inn, asked.id),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks at what is in the buffer, as far as it is whole.
    fn take_frames(&self, inn: &mut In) -> std::result::Result<(), Ends> {
        while let Some(header) = inn.buffer[inn.begin..inn.end].first_chunk::<HEADER>() {
            let header = Header::decode(header).ok_or(Ends::Damaged)?;
            let (from, follows) = (inn.begin + HEADER, header.follows());
            let there = (inn.end - from).min(follows);
            if there == follows {
                inn.begin = from + follows;
                self.take(inn, &header, from)?;
                continue;
            }
            if follows <= WHOLE {
                break;
            }
            // The rest is received to where it belongs.
            inn.begin = from + there;
            inn.rest = Some(match header.kind {
                Kind::Answer => {
                    let asked = self.answered(&header)?;
                    self.fill(inn, &asked, from, there);
                    Rest::Answer(Box::new(asked), follows - there)
                }
                _ => {
                    let Header { addr, rkey, id, .. } = header;
                    self.write(inn, Place { addr, rkey }, from, there, id)?;
                    Rest::Write(header, Place { addr: addr + there as u64, rkey }, follows - there)
                }
            });
        }
        let (begin, end) = (inn.begin, inn.end);
        if begin == end {
            (inn.begin, inn.end) = (0, 0);
        } else if begin > 0 {
            inn.buffer.copy_within(begin..end, 0);
            (inn.begin, inn.end) = (0, end - begin);
        }
        Ok(())
    }

    /// Does what a frame asks for whose bytes are in the buffer.
    fn take(&self, inn: &mut In, header: &Header, from: usize) -> std::result::Result<(), Ends> {
        let (place, len) = (Place { addr: header.addr, rkey: header.rkey }, header.len as usize);
        match header.kind {
            Kind::Write | Kind::WriteWithNumber => {
                if len > 0 {
                    self.write(inn, place, from, len, header.id)?;
                }
                self.wrote(inn, header);
            }
            Kind::Read => self.answer(header, place, len)?,
            Kind::Add | Kind::Swap => {
                let word = |at: usize| {
                    let bytes = inn.buffer[at..].first_chunk().copied().unwrap_or_default();
                    u64::from_le_bytes(bytes)
                };
                let (a, b) = (word(from), word(from + 8));
                let change = if header.kind == Kind::Add { Change::Add(a) } else { Change::Swap(a, b) };
                let old = self.home.memory.change(place, change).ok_or(Ends::Refused(header.id))?;
                let mut bytes = [0; HEADER + 8];
                bytes[..HEADER].copy_from_slice(&Header { len: 8, ..Header::bare(Kind::Answer, header.id) }.encode());
                bytes[HEADER..].copy_from_slice(&old.to_ne_bytes());
                self.push_bytes(&mut lock(&self.out), &bytes, false);
            }
            Kind::Answer => {
                let asked = self.answered(header)?;
                self.fill(inn, &asked, from, len);
                self.is_over(inn, asked.id);
            }
            Kind::Over => self.is_over(inn, header.id),
            Kind::Refused => {
                let mut out = lock(&self.out);
                out.failed = Some(Completion { id: out.last, status: Status::Refused, code: libc::EACCES });
                self.speaks.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Writes from the buffer to where a peer wants it.
    fn write(&self, inn: &In, place: Place, from: usize, len: usize, id: u64) -> std::result::Result<(), Ends> {
        let bytes = &inn.buffer[from..from + len];
        // SAFETY: registered to be written by peers, which other threads know.
        let wrote = self.home.memory.reach(place, len, Access::REMOTE_WRITE, |at| unsafe { put(bytes, at) });
        wrote.ok_or(Ends::Refused(id))
    }

    /// A write is in memory.
    fn wrote(&self, inn: &mut In, header: &Header) {
        if header.kind == Kind::WriteWithNumber {
            self.home.tell_number(self.name.number, header.number);
        }
        inn.asks = header.asks;
        if header.asks && self.owed.swap(header.id, Ordering::AcqRel) == 0 {
            self.home.owing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request of this end is over, and all before it.
    fn is_over(&self, inn: &mut In, id: u64) {
        inn.asks = false;
        // SYNC POINT: pairs with the acquire in `poll`.
        self.done.fetch_max(id, Ordering::Release);
    }

    /// What has been answered.
    fn answered(&self, header: &Header) -> std::result::Result<Asked, Ends> {
        let mut reads = lock(&self.reads);
        let asked = reads.0.pop_front().ok_or(Ends::Damaged)?;
        reads.1 -= asked.len;
        if asked.id != header.id || asked.len != header.len as usize { Err(Ends::Damaged) } else { Ok(asked) }
    }

    /// The first bytes of an answer go where they belong.
    fn fill(&self, inn: &In, asked: &Asked, from: usize, len: usize) {
        let mut bytes = &inn.buffer[from..from + len];
        for piece in &asked.pieces {
            let (now, later) = bytes.split_at(bytes.len().min(piece.len as usize));
            // SAFETY: the request's, which is not over.
            unsafe { put(now, piece.addr as *mut u8) };
            bytes = later;
        }
    }

    /// Sends what a peer reads here.
    fn answer(&self, header: &Header, place: Place, len: usize) -> std::result::Result<(), Ends> {
        let head = Header { len: header.len, ..Header::bare(Kind::Answer, header.id) }.encode();
        let mut out = lock(&self.out);
        let sent = self.home.memory.reach(place, len, Access::REMOTE_READ, |at| {
            if len <= RECORD_MOST {
                let mut bytes = [0; HEADER + RECORD_MOST];
                bytes[..HEADER].copy_from_slice(&head);
                // SAFETY: registered to be read by peers.
                unsafe { look(at, &mut bytes[HEADER..][..len]) };
                self.push_bytes(&mut out, &bytes[..HEADER + len], false);
                Ok(())
            } else {
                self.answer_long(&mut out, &head, at, len)
            }
        });
        sent.unwrap_or(Err(Ends::Refused(header.id)))
    }

    /// The same of more than a record. The memory may change or go as soon as this is over, so that what the socket does not take is copied.
    fn answer_long(&self, out: &mut Out, head: &[u8], at: *mut u8, len: usize) -> std::result::Result<(), Ends> {
        let (mut gone, whole) = (0, head.len() + len);
        let holds = self.holds.load(Ordering::Acquire);
        if let Some(fd) = self.fd().filter(|_| !holds) {
            // SAFETY: registered to be read by peers.
            match unsafe { socket::send_all(fd, &[iov(head.as_ptr() as u64, head.len()), iov(at as u64, len)]) } {
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) => {
                    self.cannot_send(out, code_of(&e));
                    return Ok(());
                }
            }
        }
        if gone < whole {
            out.held.extend_from_slice(&head[gone.min(head.len())..]);
            let skipped = gone.saturating_sub(head.len());
            // Half of it has left, so nothing else can be said.
            socket::copy(at as usize + skipped, len - skipped, &mut out.held).ok_or(Ends::Damaged)?;
            self.leave(out, holds, false);
        }
        Ok(())
    }

    /// Tells the other end what is over.
    pub fn pay(&self) {
        let id = self.owed.swap(0, Ordering::AcqRel);
        if id != 0 {
            self.home.owing.fetch_sub(1, Ordering::Relaxed);
            self.push_bytes(&mut lock(&self.out), &Header::bare(Kind::Over, id).encode(), false);
        }
    }

    /// Nothing more is taken.
    #[cold]
    fn ends(&self, inn: &mut In, why: Ends) {
        let number = self.name.number;
        inn.over = true;
        inn.rest = None;
        if let Some(fd) = self.fd() {
            self.home.watch.remove(fd);
        }
        match why {
            Ends::Silent(code) => {
                let _ = self.gone.compare_exchange(0, code, Ordering::AcqRel, Ordering::Relaxed);
            }
            Ends::Refused(id) => {
                let mut out = lock(&self.out);
                self.push_bytes(&mut out, &Header::bare(Kind::Refused, id).encode(), false);
                out.broken = true;
                drop(out);
                self.home.tell_error(DeviceError::Refused(number));
            }
            Ends::Damaged => {
                lock(&self.out).broken = true;
                self.home.tell_error(DeviceError::Pair(number));
            }
        }
        self.speaks.store(true, Ordering::Release);
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
}

/// Copies to memory that others look at.
///
/// # Safety
/// So many bytes may be written there.
#[inline]
unsafe fn put(bytes: &[u8], to: *mut u8) {
    if bytes.len() <= WHOLE {
        // SAFETY: as the caller promises.
        unsafe { show(bytes, to) };
    } else {
        // SAFETY: as the caller promises; of longer ones no word is looked at before a later one says that they are there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.home.forget(self.name.number);
        let owing = (self.owed.load(Ordering::Relaxed) != 0) as usize + self.holds.load(Ordering::Relaxed) as usize;
        self.home.owing.fetch_sub(owing, Ordering::Relaxed);
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
            What::Read | What::Change(_) => {
                let Data::Pieces(pieces) = data else {
                    return Err(Error::new(Code::Unsupported, "what is read goes to pieces of memory"));
                };
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
                let words = match what {
                    What::Change(Change::Add(n)) => Some((Kind::Add, [n, 0])),
                    What::Change(Change::Swap(expected, new)) => Some((Kind::Swap, [expected, new])),
                    _ => None,
                };
                let mut bytes = [0; HEADER + 16];
                let mut n = HEADER;
                header.kind = Kind::Read;
                if let Some((kind, [a, b])) = words {
                    header.kind = kind;
                    bytes[HEADER..][..8].copy_from_slice(&a.to_le_bytes());
                    bytes[HEADER + 8..].copy_from_slice(&b.to_le_bytes());
                    n += 16;
                }
                bytes[..HEADER].copy_from_slice(&header.encode());
                self.push_bytes(out, &bytes[..n], false);
                return Ok(true);
            }
        }
        out.last = id;
        if signaled {
            out.asked = id;
        }
        // What is owed goes along.
        let mut bytes = [0; 2 * HEADER + RECORD_MOST];
        let mut n = 0;
        if self.owed.load(Ordering::Relaxed) != 0 {
            let over = self.owed.swap(0, Ordering::AcqRel);
            if over != 0 {
                self.home.owing.fetch_sub(1, Ordering::Relaxed);
                bytes[..HEADER].copy_from_slice(&Header::bare(Kind::Over, over).encode());
                n = HEADER;
            }
        }
        bytes[n..][..HEADER].copy_from_slice(&header.encode());
        n += HEADER;
        match data {
            Data::Record(record) => {
                bytes[n..][..len].copy_from_slice(record);
                self.push_bytes(out, &bytes[..n + len], later);
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
        self.flush();
        self.receive(false);
        self.home.call_for_numbers();
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
        {
            // From here on nobody writes anything for the other end.
            let mut inn = lock(&self.inn);
            inn.over = true;
            inn.rest = None;
        }
        if let Some(socket) = self.socket.get() {
            self.home.watch.remove(socket.as_raw_fd());
            crate::base::system::shutdown(socket, libc::SHUT_RDWR);
        }
        self.speaks.store(true, Ordering::Release);
        Ok(())
    }

    fn explain(&self, code: i32) -> String {
        io::Error::from_raw_os_error(code).to_string()
    }
    fn bytes(&self) -> usize {
        BUFFER
    }
    fn shorten_queue(&self, _entries: u32) -> Result<()> {
        Err(Error::new(Code::Unsupported, "TCP has no completion queue"))
    }
}
