//! What comes in: whoever calls takes it, one thread at a time, and does what the frames ask for, as a device would.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use super::out::{Out, iov};
use super::{Connection, READS_MOST, code_of};
use crate::base::lock::lock;
use crate::fabric::network::device::{Access, Change, Completion, DeviceError, Piece, Place, RECORD_MOST, Status};
use crate::fabric::network::link::PIECES;
use crate::fabric::served::frame::{HEADER, Header, Kind, word};
use crate::fabric::served::memory::put;
use crate::fabric::tcp::socket;

/// Bytes that are received at a call before it is known what they are for: a message by an annex, and what goes with it.
const BUFFER: usize = 10 << 10;
/// What follows a header is taken whole up to so many bytes; of more the rest is received to where it belongs.
const WHOLE: usize = 1 << 10;
/// Bytes that are taken at a call at most, so that whoever waits sees what has come before.
const AT_A_TIME: usize = 512 << 10;

/// Bytes that are kept for a peer whose socket is full at most: more than answers to all that it may have asked for, and records.
const COPIES: usize = 2 * READS_MOST;

/// A read or a change that waits for its answer, and where that goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub id: u64,
    pub len: usize,
    pub pieces: [Piece; PIECES as usize],
}

/// Bytes under way to where they belong.
#[derive(Debug)]
enum Rest {
    /// Of a write: the next one's place, and how many there are.
    Write(Header, Place, usize),
    /// Of an answer: how many there are.
    Answer(Box<Asked>, usize),
}

/// What has come and was not looked at. There is one for all connections of a process.
#[derive(Debug)]
pub(in crate::fabric::tcp) struct Buffer {
    bytes: Box<[u8; BUFFER]>,
    begin: usize,
    end: usize,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { bytes: Box::new([0; BUFFER]), begin: 0, end: 0 }
    }
}

impl Buffer {
    /// Takes what a connection has kept.
    fn fill(&mut self, kept: &mut Vec<u8>) {
        (self.begin, self.end) = (0, kept.len());
        self.bytes[..kept.len()].copy_from_slice(kept);
        kept.clear();
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }
    /// What is left goes to the beginning.
    fn moves_up(&mut self) {
        if self.begin > 0 {
            self.bytes.copy_within(self.begin..self.end, 0);
        }
        (self.begin, self.end) = (0, self.end - self.begin);
    }
}

/// What comes in.
#[derive(Debug, Default)]
pub(super) struct In {
    /// The beginning of a frame, whose rest has not come.
    kept: Vec<u8>,
    rest: Option<Rest>,
    /// The last thing that has come asks to be told of.
    asks: bool,
    /// Nothing more is taken.
    over: bool,
}

impl In {
    /// Nothing more is taken.
    pub fn stop(&mut self) {
        self.over = true;
        self.rest = None;
        self.kept = Vec::new();
    }
    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.kept.capacity()
    }
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

/// The first bytes of an answer go where they belong.
fn fill(asked: &Asked, mut bytes: &[u8]) {
    for piece in &asked.pieces {
        let (now, later) = bytes.split_at(bytes.len().min(piece.len as usize));
        // SAFETY: the request's, which is not over.
        unsafe { put(now, piece.addr as *mut u8) };
        bytes = later;
    }
}

/// The answer that says what a word was.
fn answer_of_word(id: u64, old: u64) -> [u8; HEADER + 8] {
    let mut bytes = [0; HEADER + 8];
    bytes[..HEADER].copy_from_slice(&Header { len: 8, ..Header::bare(Kind::Answer, id) }.encode());
    bytes[HEADER..].copy_from_slice(&old.to_ne_bytes());
    bytes
}

impl Connection {
    /// Takes what has come; has something, within so many looks? `all`: whoever calls goes away, so the other end is told at once of what is over.
    pub fn receive(&self, all: bool, mut looks: u32) -> bool {
        let Some(fd) = self.fd() else { return false };
        let Ok(mut inn) = self.inn.try_lock() else { return false };
        if inn.over || self.home.news.is_full() {
            return false;
        }
        // Who has it now takes what has come by another connection.
        let Ok(mut buffer) = self.home.buffer.try_lock() else { return false };
        buffer.fill(&mut inn.kept);
        let mut taken = 0;
        let ends = loop {
            let (got, room) = self.receive_some(&inn, &mut buffer, fd);
            let n = match got {
                Ok(None) if taken == 0 && looks > 1 => {
                    looks -= 1;
                    continue;
                }
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
            let looked = self.took(&mut inn, &mut buffer, n).and_then(|()| self.take_frames(&mut inn, &mut buffer));
            if let Err(ends) = looked {
                break Some(ends);
            }
            taken += n;
            // The socket had no more.
            if n < room || taken >= AT_A_TIME {
                break None;
            }
        };
        match ends {
            Some(ends) => self.ends(&mut inn, ends),
            None => inn.kept.extend_from_slice(buffer.bytes()),
        }
        drop(buffer);
        if self.owed.load(Ordering::Relaxed) != 0 && (all || inn.asks || taken == 0) {
            self.pay();
        }
        taken > 0
    }

    /// Receives to where the next bytes belong. And how many might have come?
    fn receive_some(&self, inn: &In, buffer: &mut Buffer, fd: RawFd) -> (io::Result<Option<usize>>, usize) {
        let mut parts = [iov(0, 0); PIECES as usize + 1];
        let mut n = 0;
        let rest = match &inn.rest {
            None => {
                let room = buffer.room();
                return (socket::receive(fd, room), room.len());
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
        let behind = iov(buffer.bytes.as_mut_ptr() as u64, BUFFER);
        let receive = |parts: &mut [libc::iovec]| {
            // SAFETY: memory that is registered, or that of a request that is not over; and the buffer.
            unsafe { socket::receive_all(fd, parts) }
        };
        let got = match rest {
            Rest::Write(_, place, left) => {
                let reached = self.home.memory.reach(*place, *left, Access::REMOTE_WRITE, |at, _| {
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
    fn took(&self, inn: &mut In, buffer: &mut Buffer, n: usize) -> std::result::Result<(), Ends> {
        let Some(rest) = &mut inn.rest else {
            buffer.end += n;
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
            (buffer.begin, buffer.end) = (0, n - taken);
            match inn.rest.take() {
                Some(Rest::Write(header, ..)) => self.wrote(inn, &header),
                Some(Rest::Answer(asked, _)) => self.is_over(inn, asked.id),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks at what is in the buffer, as far as it is whole.
    fn take_frames(&self, inn: &mut In, buffer: &mut Buffer) -> std::result::Result<(), Ends> {
        while let Some((header, behind)) = buffer.bytes().split_first_chunk::<HEADER>() {
            let header = Header::decode(header).ok_or(Ends::Damaged)?;
            let follows = header.follows();
            if let Some(bytes) = behind.get(..follows) {
                self.take(inn, &header, bytes)?;
                buffer.begin += HEADER + follows;
                continue;
            }
            if follows <= WHOLE {
                break;
            }
            if header.kind == Kind::Append {
                return Err(Ends::Damaged);
            }
            // The rest is received to where it belongs.
            let there = behind.len();
            inn.rest = Some(match header.kind {
                Kind::Answer => {
                    let asked = self.answered(&header)?;
                    fill(&asked, behind);
                    Rest::Answer(Box::new(asked), follows - there)
                }
                _ => {
                    let Header { addr, rkey, id, .. } = header;
                    self.write(Place { addr, rkey }, behind, id)?;
                    Rest::Write(header, Place { addr: addr + there as u64, rkey }, follows - there)
                }
            });
            buffer.begin = buffer.end;
        }
        buffer.moves_up();
        Ok(())
    }

    /// Does what a frame asks for whose bytes are in the buffer.
    fn take(&self, inn: &mut In, header: &Header, bytes: &[u8]) -> std::result::Result<(), Ends> {
        let (place, len) = (Place { addr: header.addr, rkey: header.rkey }, header.len as usize);
        match header.kind {
            Kind::Write | Kind::WriteWithNumber => {
                if len > 0 {
                    self.write(place, bytes, header.id)?;
                }
                self.wrote(inn, header);
            }
            Kind::Read => self.answer(header, place, len)?,
            Kind::Add | Kind::Swap => {
                let (a, b) = (word(bytes, 0), word(bytes, 8));
                let change = if header.kind == Kind::Add { Change::Add(a) } else { Change::Swap(a, b) };
                let old = self.home.memory.change(place, change).ok_or(Ends::Refused(header.id))?;
                self.push_answer(&mut lock(&self.out), &answer_of_word(header.id, old), false)?;
            }
            Kind::Append => {
                let (expected, record) = bytes.split_at(8);
                let change = Change::Swap(word(expected, 0), word(expected, 0).wrapping_add(1));
                let old = self.home.memory.change(place, change).ok_or(Ends::Refused(header.id))?;
                if old == word(expected, 0) {
                    let addr = place.addr.wrapping_add(u64::from(header.number));
                    self.write(Place { addr, ..place }, record, header.id)?;
                }
                // With the answer to the read that follows.
                self.push_answer(&mut lock(&self.out), &answer_of_word(header.id, old), true)?;
            }
            Kind::Answer => {
                let asked = self.answered(header)?;
                fill(&asked, bytes);
                self.is_over(inn, asked.id);
            }
            // Who says that what was never posted is over would have us take back memory too early.
            Kind::Over if header.id > lock(&self.out).last => return Err(Ends::Damaged),
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
    fn write(&self, place: Place, bytes: &[u8], id: u64) -> std::result::Result<(), Ends> {
        self.home.memory.write(place, bytes).ok_or(Ends::Refused(id))
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

    /// Sends what a peer reads here.
    fn answer(&self, header: &Header, place: Place, len: usize) -> std::result::Result<(), Ends> {
        let head = Header { len: header.len, ..Header::bare(Kind::Answer, header.id) }.encode();
        let refused = Ends::Refused(header.id);
        if len <= RECORD_MOST {
            let mut bytes = [0; HEADER + RECORD_MOST];
            bytes[..HEADER].copy_from_slice(&head);
            self.home.memory.read(place, &mut bytes[HEADER..][..len]).ok_or(refused)?;
            return self.push_answer(&mut lock(&self.out), &bytes[..HEADER + len], false);
        }
        let mut out = lock(&self.out);
        let answer = |at, _| self.answer_long(&mut out, (&head, header.id), at, len);
        self.home.memory.reach(place, len, Access::REMOTE_READ, answer).unwrap_or(Err(refused))
    }

    /// An answer leaves, `later` with the next. Who asks for more and more and takes none is damaged.
    fn push_answer(&self, out: &mut Out, bytes: &[u8], later: bool) -> std::result::Result<(), Ends> {
        self.push_bytes(out, bytes, later);
        if self.held.is_there() && out.copies() > COPIES { Err(Ends::Damaged) } else { Ok(()) }
    }

    /// The same of more than a record. The memory may change or go as soon as this is over, so that what the socket does not take is copied.
    fn answer_long(
        &self,
        out: &mut Out,
        (head, id): (&[u8], u64),
        at: *mut u8,
        len: usize,
    ) -> std::result::Result<(), Ends> {
        let (mut gone, whole) = (0, head.len() + len);
        let holds = self.held.is_there();
        if let Some(fd) = self.fd().filter(|_| !holds) {
            // SAFETY: registered to be read by peers.
            match unsafe { socket::send_all(fd, &[iov(head.as_ptr() as u64, head.len()), iov(at as u64, len)]) } {
                Ok(n) => gone = n.unwrap_or(0),
                Err(e) if e.raw_os_error() == Some(libc::EFAULT) => return Err(Ends::Refused(id)),
                Err(e) => {
                    self.cannot_send(out, code_of(&e));
                    return Ok(());
                }
            }
        }
        if gone < whole {
            if out.copies() > COPIES {
                return Err(Ends::Damaged);
            }
            out.held.extend_from_slice(&head[gone.min(head.len())..]);
            let skipped = gone.saturating_sub(head.len());
            // Half of it has left, so nothing else can be said.
            let (begin, before) = (out.held.len(), out.held.len() - head.len().saturating_sub(gone));
            out.held.resize(begin + len - skipped, 0);
            if self.home.memory.read_unsure(at.wrapping_add(skipped), &mut out.held[begin..]).is_none() {
                // Of what cannot be read nothing is sent. If half of it has left nothing else can be said.
                out.held.truncate(before);
                return Err(if gone == 0 { Ends::Refused(id) } else { Ends::Damaged });
            }
            self.leave(out, holds, false);
        }
        Ok(())
    }

    /// Tells the other end what is over.
    pub fn pay(&self) {
        let id = self.owed.swap(0, Ordering::AcqRel);
        if id != 0 {
            self.home.owing.fetch_sub(1, Ordering::Relaxed);
            let mut out = lock(&self.out);
            if !out.broken {
                self.push_bytes(&mut out, &Header::bare(Kind::Over, id).encode(), false);
            }
        }
    }

    /// Nothing more is taken.
    #[cold]
    fn ends(&self, inn: &mut In, why: Ends) {
        let number = self.name.number;
        inn.stop();
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
                let mut out = lock(&self.out);
                out.broken = true;
                self.has_nothing(&mut out);
                drop(out);
                self.home.tell_error(DeviceError::Pair(number));
            }
        }
        self.speaks.store(true, Ordering::Release);
    }
}
