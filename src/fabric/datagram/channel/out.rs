//! What goes out: requests and answers become frames, and frames datagrams.

use std::sync::atomic::Ordering;

use super::{AGAIN_NS, ASKS_NS, Channel, HELD_NS, Other, State};
use crate::base::error::{Code, Error, Result};
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::{BATCH, OVERHEAD};
use crate::fabric::datagram::flow::NEVER;
use crate::fabric::datagram::home::count;
use crate::fabric::datagram::packet::{HEAD, Head};
use crate::fabric::network::device::{
    Access, Change, Data, DeviceError, Piece, Place, RECORD_MOST, Request, Status, What,
};
use crate::fabric::network::link::PIECES;
use crate::fabric::served::frame::{HEADER, Header, Kind};
use crate::fabric::served::held_back::{BURST_NS, LEFT_ALONE};
use crate::fabric::served::memory::Memory;

/// Records that are held back until something else goes, at most.
const HELD: u64 = 64;
/// Bytes of short frames in a datagram at most, which its check covers.
const COVERED: usize = 16 << 10;
/// Bytes that are copied for datagrams that leave together at most.
const COPIED: usize = 256 << 10;
/// Bytes of a frame with its header that both ends must be able to take: one of a record.
pub(super) const LEAST: u32 = (HEADER + RECORD_MOST) as u32;

/// Bytes of a frame with its header in a datagram of so many.
pub(super) fn most_of(datagram: usize) -> u32 {
    datagram.saturating_sub(HEAD) as u32
}

/// A request or an answer, of one frame or more.
#[derive(Debug)]
pub(super) struct Queued {
    /// The number of its first frame, and how many there are.
    pub first: u64,
    pub frames: u32,
    /// What it is, and its bytes in all.
    pub header: Header,
    /// So many have been answered.
    pub got: usize,
    body: Body,
}

/// Where its bytes are.
#[derive(Debug)]
pub(super) enum Body {
    Record([u8; RECORD_MOST]),
    Pieces([Piece; PIECES as usize]),
    /// The words of a change, and where what was there goes.
    Change([u64; 2], Piece),
    /// Memory that the other end reads.
    Memory(Place),
}

impl Queued {
    pub fn new(header: Header, body: Body, first: u64, most: u32) -> Queued {
        let frames = header.follows().div_ceil(most as usize - HEADER).max(1) as u32;
        Queued { first, frames, header, got: 0, body }
    }
    /// The pieces to which an answer goes.
    pub fn pieces(&self) -> &[Piece] {
        match &self.body {
            Body::Pieces(pieces) => pieces,
            Body::Change(_, to) => std::slice::from_ref(to),
            _ => &[],
        }
    }
    /// Does it lie in the datagram whole, so that others may stand beside it?
    fn is_short(&self) -> bool {
        match self.body {
            Body::Record(_) | Body::Change(..) => true,
            Body::Pieces(_) => self.header.kind == Kind::Read,
            Body::Memory(_) => false,
        }
    }
    /// Where a frame's bytes begin in the whole, and how many there are.
    fn part(&self, seq: u64, most: u32) -> (usize, usize) {
        let room = most as usize - HEADER;
        let from = (seq - self.first) as usize * room;
        (from, (self.header.follows() - from).min(room))
    }
    /// The header of one of its frames; of a write its number is the bytes that follow in others.
    fn header_of(&self, seq: u64, (from, len): (usize, usize)) -> Header {
        let is_last = seq + 1 == self.first + u64::from(self.frames);
        let mut header = self.header;
        match header.kind {
            Kind::WriteWithNumber if !is_last => header.kind = Kind::Write,
            Kind::Read | Kind::Add | Kind::Swap => return header,
            _ => {}
        }
        if header.kind == Kind::Write {
            header.number = (self.header.follows() - from - len) as u32;
        }
        (header.len, header.asks) = (len as u32, header.asks && is_last);
        header.addr = header.addr.wrapping_add(from as u64);
        header
    }
}

/// The one of a queue to which this frame belongs.
fn of_frame(queue: &std::collections::VecDeque<Box<Queued>>, seq: u64) -> &Queued {
    let k = queue.partition_point(|queued| queued.first <= seq) - 1;
    &queue[k]
}

/// Bytes of a frame as they count where it waits.
pub(super) fn cost(queue: &std::collections::VecDeque<Box<Queued>>, seq: u64, most: u32) -> u32 {
    (HEADER + of_frame(queue, seq).part(seq, most).1) as u32 + OVERHEAD
}

/// Datagrams that leave together.
#[derive(Debug, Default)]
pub(in crate::fabric::datagram) struct Batch {
    /// Heads, headers of frames, and what is copied.
    bytes: Vec<u8>,
    all: Vec<Datagram>,
    /// What lies elsewhere.
    tails: Vec<(u64, usize)>,
    /// Somebody waits for a request among them.
    asks: bool,
}

#[derive(Debug)]
struct Datagram {
    from: usize,
    to: usize,
    tails: (usize, usize),
    first: u64,
    frames: u8,
    /// More short frames may follow.
    open: bool,
    covered: u16,
}

impl Batch {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.capacity() + self.all.capacity() * size_of::<Datagram>()
    }
    fn clear(&mut self) {
        self.bytes.clear();
        self.all.clear();
        self.tails.clear();
        self.asks = false;
    }
    fn is_full(&self) -> bool {
        self.all.len() == BATCH || self.bytes.len() > COPIED
    }
    /// Begins a datagram whose first frame is this one.
    fn begin(&mut self, first: u64) {
        let from = self.bytes.len();
        self.bytes.resize(from + HEAD, 0);
        let tails = (self.tails.len(), self.tails.len());
        self.all.push(Datagram { from, to: from + HEAD, tails, first, frames: 0, open: true, covered: 0 });
    }
    /// Is there room for this frame in the last one, of so many bytes?
    fn takes(&self, seq: u64, bytes: usize, most: u32) -> bool {
        self.all.last().is_some_and(|last| {
            last.first + u64::from(last.frames) == seq
                && last.frames < u8::MAX
                && last.open
                && last.to - last.from - HEAD + bytes <= COVERED.min(most as usize)
        })
    }

    /// Does this frame go with others in the last datagram?
    fn joins(&self, queued: &Queued, seq: u64, most: u32) -> bool {
        queued.is_short() && self.takes(seq, HEADER + queued.part(seq, most).1, most)
    }

    /// Adds a frame. `false`: the memory that it is to be read from may not be, and it says so.
    fn add(&mut self, queued: &Queued, seq: u64, most: u32, memory: &Memory) -> bool {
        let part = queued.part(seq, most);
        let (from, len) = part;
        let is_short = queued.is_short();
        if !self.joins(queued, seq, most) {
            self.begin(seq);
        }
        let (header, at) = (queued.header_of(seq, part), self.bytes.len());
        self.asks |= header.asks;
        self.bytes.extend_from_slice(&header.encode());
        let mut may = true;
        match &queued.body {
            Body::Record(record) => self.bytes.extend_from_slice(&record[from..][..len]),
            Body::Change(words, _) => words.iter().for_each(|w| self.bytes.extend_from_slice(&w.to_le_bytes())),
            Body::Pieces(pieces) => self.add_tails(pieces, from, len),
            Body::Memory(place) => {
                self.bytes.resize(at + HEADER + len, 0);
                let place = place.further(from);
                may = memory.read(place, &mut self.bytes[at + HEADER..]).is_some();
                if !may {
                    self.bytes.truncate(at);
                    self.bytes.extend_from_slice(&Header::bare(Kind::Refused, header.id).encode());
                }
            }
        }
        let (end, tails) = (self.bytes.len(), self.tails.len());
        if let Some(last) = self.all.last_mut() {
            last.frames += 1;
            last.open = is_short;
            last.covered = if is_short { end - last.from - HEAD } else { HEADER } as u16;
            (last.to, last.tails.1) = (end, tails);
        }
        may
    }

    /// A part of these pieces stands behind the last header.
    fn add_tails(&mut self, pieces: &[Piece], mut skip: usize, mut left: usize) {
        for piece in pieces {
            let skipped = skip.min(piece.len as usize);
            skip -= skipped;
            let n = (piece.len as usize - skipped).min(left);
            if n > 0 {
                self.tails.push((piece.addr + skipped as u64, n));
                left -= n;
            }
        }
    }
}

impl Channel {
    /// Posts a request to another process.
    pub(super) fn post_there(&self, state: &mut State, request: &Request<'_>, to: Other) -> Result<bool> {
        let Request { id, what, data, to: place, signaled, later } = *request;
        let mut header = Header { asks: signaled, rkey: place.rkey, addr: place.addr, ..Header::bare(Kind::Write, id) };
        let (body, len) = match (data, what) {
            (_, What::Append { .. }) => return Err(Error::new(Code::Unsupported, "datagrams cannot append")),
            (Data::Record(_), What::Read | What::Change(_)) | (Data::Pieces([]), What::Change(_)) => {
                return Err(Error::new(Code::Unsupported, "what is read goes to pieces of memory"));
            }
            (Data::Record(record), _) => {
                let mut bytes = [0; RECORD_MOST];
                bytes[..record.len()].copy_from_slice(record);
                (Body::Record(bytes), record.len())
            }
            // Of none nothing is read, so it may stand with others in a datagram.
            (Data::Pieces([]), _) => (Body::Record([0; RECORD_MOST]), 0),
            (Data::Pieces([old, ..]), What::Change(Change::Add(n))) => (Body::Change([n, 0], *old), 8),
            (Data::Pieces([old, ..]), What::Change(Change::Swap(is, new))) => (Body::Change([is, new], *old), 8),
            (Data::Pieces(given), _) => {
                let mut pieces = [Piece { addr: 0, len: 0, lkey: 0 }; PIECES as usize];
                pieces[..given.len()].copy_from_slice(given);
                (Body::Pieces(pieces), given.iter().map(|p| p.len as usize).sum())
            }
        };
        header.len = len as u32;
        header.kind = match what {
            What::Write => Kind::Write,
            What::WriteWithNumber(_) => Kind::WriteWithNumber,
            What::Read | What::Append { .. } => Kind::Read,
            What::Change(Change::Add(_)) => Kind::Add,
            What::Change(Change::Swap(..)) => Kind::Swap,
        };
        if let What::WriteWithNumber(number) = what {
            header.number = number;
        }
        if !self.home.requests.take(1) {
            return Ok(false);
        }
        let now = self.home.now();
        self.enqueue(state, header, body, to.most);
        state.last = id;
        let is_record = matches!(data, Data::Record(_));
        let soon = (now as u32).wrapping_sub(std::mem::replace(&mut state.posted_ns, now as u32)) < BURST_NS;
        let burst = is_record && !self.waited.swap(false, Ordering::Relaxed) && soon;
        let held = state.end - state.out.acked();
        if (later || burst) && held < HELD {
            if state.held_ns == NEVER {
                state.held_ns = now + HELD_NS;
                self.home.turns.store(if burst { LEFT_ALONE } else { 0 }, Ordering::Relaxed);
            }
            self.note_due(state, now);
        } else {
            self.transmit(state, now, false, false);
        }
        Ok(true)
    }

    /// The next in turn.
    pub(super) fn enqueue(&self, state: &mut State, header: Header, body: Body, most: u32) {
        let queued = Box::new(Queued::new(header, body, state.end + 1, most));
        state.end += u64::from(queued.frames);
        state.queue.push_back(queued);
    }

    /// What is held back leaves: this end waits.
    pub(super) fn let_go(&self) {
        let mut state = lock(&self.state);
        if state.held_ns != NEVER {
            let now = self.home.now();
            self.transmit(&mut state, now, false, false);
        }
    }

    /// Sends what may leave now. `word`: an acknowledgement leaves in any case; `asks`: one is wanted.
    pub(super) fn transmit(&self, state: &mut State, now: u64, mut word: bool, asks: bool) {
        let to = state.to;
        if state.gone || !to.is_known() {
            return;
        }
        state.held_ns = NEVER;
        if !state.is_waiting() {
            state.heard_ns = now;
        }
        let mut batch = lock(&self.home.batch);
        loop {
            batch.clear();
            let refused = self.fill(state, &mut batch, to.most, now);
            let more = batch.is_full();
            if batch.all.is_empty() {
                if !word && !state.asks {
                    break;
                }
                batch.begin(0);
            }
            word = false;
            // If somebody waits for a request, or something waits for room, or the next would.
            let asks = asks || batch.asks || state.out.next() <= state.end || state.out.is_full();
            let left = self.send(state, &mut batch, &to, asks, now);
            if refused.is_some() {
                self.shut(state);
            }
            if !left || !more {
                break;
            }
        }
        drop(batch);
        self.note_due(state, now);
    }

    /// Puts frames into datagrams. `Some`: one of them is that an answer is refused, since its memory has gone.
    fn fill(&self, state: &mut State, batch: &mut Batch, most: u32, now: u64) -> Option<()> {
        let State { out, queue, end, .. } = state;
        while !batch.is_full() {
            let before = out.next();
            let joins = |seq| batch.joins(of_frame(queue, seq), seq, most);
            let seq = out.send(*end, |seq| cost(queue, seq, most), joins, now)?;
            if seq < before {
                self.again.fetch_add(1, Ordering::Relaxed);
                count(&self.home.counts.again, 1);
            } else {
                count(&self.home.counts.sent, 1);
            }
            let queued = of_frame(queue, seq);
            if !batch.add(queued, seq, most, &self.home.memory) {
                return Some(());
            }
        }
        None
    }

    /// Sends them; have all left?
    fn send(&self, state: &mut State, batch: &mut Batch, to: &Other, asks: bool, now: u64) -> bool {
        let Some(checks) = self.home.checks() else { return false };
        let granted = self.grant();
        let n = batch.all.len();
        for (k, one) in batch.all.iter().enumerate() {
            let head = Head {
                to: to.number,
                first: one.first,
                acked: state.inn.applied(),
                kept: state.inn.kept(),
                granted,
                covered: one.covered,
                asks: asks && k + 1 == n,
                frames: one.frames,
            };
            head.seal(&mut batch.bytes[one.from..one.to], to.token, checks);
        }
        let mut parts: Vec<libc::iovec> = Vec::with_capacity(n + batch.tails.len());
        let iov = |at: u64, len: usize| libc::iovec { iov_base: at as *mut _, iov_len: len };
        let base = batch.bytes.as_ptr() as u64;
        let mut ends = [0; BATCH];
        for (one, end) in batch.all.iter().zip(&mut ends) {
            parts.push(iov(base + one.from as u64, one.to - one.from));
            parts.extend(batch.tails[one.tails.0..one.tails.1].iter().map(|(at, len)| iov(*at, *len)));
            *end = parts.len();
        }
        // SAFETY: copies of the batch's, and pieces of requests that are not over.
        let left = match unsafe { self.home.carrier.send(&to.spot, &parts, &ends[..n]) } {
            Ok(left) => left,
            Err(e) => {
                self.fail(state, Status::Other, e.raw_os_error().unwrap_or(libc::EIO));
                return false;
            }
        };
        for one in &batch.all[left..] {
            for seq in (one.first..).take(usize::from(one.frames)) {
                let bytes = cost(&state.queue, seq, to.most);
                state.out.has_not_left(seq, bytes);
            }
        }
        if left > 0 {
            (state.owed, state.owed_ns, state.asks) = (0, NEVER, false);
        }
        if left < n {
            state.held_ns = now + AGAIN_NS;
        }
        left == n
    }

    /// The other end asks for what it may not: it is told so, and nothing more is done for it.
    #[cold]
    pub(super) fn refuse(&self, state: &mut State, id: u64) {
        let to = state.to;
        self.shut(state);
        if self.home.answers.take(1) {
            state.answers += 1;
            self.enqueue(state, Header::bare(Kind::Refused, id), Body::Record([0; RECORD_MOST]), to.most);
        }
        state.asks = true;
        // At once: whoever hears of it on this side may break the channel off.
        self.transmit(state, self.home.now(), false, false);
    }

    /// Nothing more is taken from the other end, or goes there but that it was refused.
    #[cold]
    fn shut(&self, state: &mut State) {
        if !std::mem::replace(&mut state.shut, true) {
            self.home.news.add_error(DeviceError::Refused(self.name.number), &self.home.sleeper);
            self.speaks.store(true, Ordering::Release);
        }
    }

    /// May the other end read this?
    pub(super) fn may_read(&self, place: Place, len: usize) -> bool {
        self.home.memory.reach(place, len, Access::REMOTE_READ, |_, _| ()).is_some()
    }

    /// As long as something is asked for and nothing is under way a word is asked for now and then.
    pub(super) fn asks_for_words(&self, state: &mut State, now: u64) {
        if !state.looks() {
            state.asked_ns = NEVER;
        } else if state.asked_ns == NEVER {
            state.asked_ns = now + ASKS_NS;
        }
    }
}
