//! One end of what two processes have with each other: the network's pair.
//!
//! What is posted becomes frames that leave at once, or with what comes next; the other end carries them out, and its acknowledgement ends
//! the request. A read or a change ends by its answer, frames in the other direction, which are acknowledged like all others: so each is carried
//! out once, whatever is lost. A channel that is quiet has nothing but this structure.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::carrier::{OVERHEAD, SLOTS, SPOT, Spot};
use super::flow::{Incoming, NEVER, Outgoing};
use super::home::{Home, SILENCE_NS};
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::lock;
use crate::fabric::network::device::{Completion, Data, End, OPAQUE, Pair, Request, Status, What};
use crate::fabric::served::frame::{Name, half, word};
use inn::Early;
use out::Queued;

mod inn;
pub(super) mod out;
mod placed;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// What is owed to the other end, or held back, leaves within so long, if nobody waits here before.
const HELD_NS: u64 = 250_000;
/// What the system has not taken is tried again after so long.
const AGAIN_NS: u64 = 100_000;
/// A word is asked for as long as an answer is missing, so often.
const ASKS_NS: u64 = 100_000_000;
/// Nobody was at the other end for so long: its process has ended.
const REFUSED_MS: u32 = 300;

/// See the head of this file.
pub(super) struct Channel {
    home: Arc<Home>,
    this: Weak<Channel>,
    name: Name,
    state: Mutex<State>,
    /// All requests up to here are over; and who polls was told so of those up to there.
    done: AtomicU64,
    told: AtomicU64,
    /// Something else is to be told of.
    speaks: AtomicBool,
    /// Somebody has waited since a record was posted last.
    waited: AtomicBool,
    /// The other end's datagrams come to a [ring](super::carrier::Ring), which the home has.
    has_ring: bool,
    /// Frames that were sent again.
    again: AtomicU32,
}

/// The other end.
#[derive(Debug, Clone, Copy)]
struct Other {
    spot: Spot,
    token: u64,
    number: u32,
    /// Bytes of a frame with its header at most, so that both ends can take a datagram of it; 0: it is not known yet.
    most: u32,
}

impl Other {
    fn is_known(&self) -> bool {
        self.most > 0
    }
}

/// What waits for answers, in turn; and frames that have come before theirs.
#[derive(Debug, Default)]
struct Rare {
    asked: VecDeque<Box<Queued>>,
    early: BTreeMap<u64, Early>,
}

#[derive(Debug)]
struct State {
    to: Other,
    out: Outgoing,
    inn: Incoming,
    /// What is not known to have been carried out there, in turn; and what there is seldom.
    queue: VecDeque<Box<Queued>>,
    rare: Option<Box<Rare>>,
    /// Answers of this end's in the queue.
    answers: u32,
    /// Number of the last frame, of the last request, and of the last that has been carried out.
    end: u64,
    last: u64,
    acked: u64,
    /// Bytes that the other end has not been told of, and since when.
    owed: u32,
    /// It is to be told at once.
    asks: bool,
    is_listed: bool,
    /// Something is held back until then, owed until then; and a word is asked for then.
    held_ns: u64,
    owed_ns: u64,
    asked_ns: u64,
    /// When the other end was heard, or what is under way began.
    heard_ns: u64,
    /// Nobody was there, since then, in milliseconds; 0: somebody was.
    refused_ms: u32,
    /// When a record was posted, in nanoseconds; the lower half of it.
    posted_ns: u32,
    /// In which stretch of time it was heard last.
    stretch: u32,
    failed: Option<(Status, i32)>,
    /// Nothing more is posted or taken; and nothing is sent.
    shut: bool,
    gone: bool,
}

impl State {
    fn new() -> State {
        State {
            to: Other { spot: [0; SPOT], token: 0, number: 0, most: 0 },
            out: Outgoing::new(),
            inn: Incoming::default(),
            queue: VecDeque::new(),
            rare: None,
            answers: 0,
            end: 0,
            last: 0,
            acked: 0,
            owed: 0,
            asks: false,
            is_listed: false,
            held_ns: NEVER,
            owed_ns: NEVER,
            asked_ns: NEVER,
            heard_ns: 0,
            posted_ns: 0,
            refused_ms: 0,
            stretch: 0,
            failed: None,
            shut: false,
            gone: false,
        }
    }

    /// When it has something to do by itself.
    fn due_ns(&self) -> u64 {
        self.out.due_ns().min(self.held_ns).min(self.owed_ns).min(self.asked_ns)
    }
    /// Does something wait for an answer?
    fn asks_something(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.asked.is_empty())
    }
    /// Is it to be looked now and then whether something goes on: for an answer, or for room to give one to what has come early?
    fn looks(&self) -> bool {
        self.asks_something() || self.inn.has_next()
    }
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
    /// What is quiet keeps nothing.
    fn tidy(&mut self) {
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        }
        if self.rare.as_ref().is_some_and(|rare| rare.asked.is_empty() && rare.early.is_empty()) {
            self.rare = None;
        }
    }
    /// Is something of this end's not over?
    fn is_waiting(&self) -> bool {
        self.out.is_under_way() || self.asks_something()
    }
}

impl Channel {
    /// Bytes of a request that is under way.
    pub const BYTES_OF_A_REQUEST: usize = size_of::<Queued>() + size_of::<usize>();

    /// One that is not connected yet. What the other end sends comes to a ring, or where all others' does.
    pub fn new(home: &Arc<Home>, this: &Weak<Channel>, name: Name, has_ring: bool) -> Channel {
        Channel {
            home: home.clone(),
            this: this.clone(),
            name,
            state: Mutex::new(State::new()),
            done: AtomicU64::new(0),
            told: AtomicU64::new(0),
            speaks: AtomicBool::new(false),
            waited: AtomicBool::new(true),
            has_ring,
            again: AtomicU32::new(0),
        }
    }

    /// Bytes that the other end may have under way to this one now.
    fn grant(&self) -> u32 {
        if self.has_ring { SLOTS * (self.home.carrier.most() as u32 + OVERHEAD) } else { self.home.grant() }
    }

    /// Notes when it has something to do; whenever that may have changed, with the lock held.
    fn note_due(&self, state: &mut State, now: u64) {
        let due = state.due_ns();
        if due == NEVER {
            return;
        }
        if std::mem::replace(&mut state.is_listed, true) {
            self.home.is_due(due);
        } else {
            self.home.is_busy(self.this.clone(), due, now);
        }
    }

    /// Does what is due, or, with `all`, what can be done now. When the next is due; `None`: nothing is.
    pub fn tick(&self, all: bool, now: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        if !state.gone {
            if state.is_waiting() && now.saturating_sub(state.heard_ns) > SILENCE_NS && state.failed.is_none() {
                self.fail(state, Status::Silent, libc::ETIMEDOUT);
            }
            let waits = state.asked_ns <= now;
            if waits {
                self.goes_on(state, now);
                state.asked_ns = NEVER;
                self.asks_for_words(state, now);
            }
            let pays = state.owed_ns <= now || all && state.owed_ns != NEVER;
            let lets_go = state.held_ns <= now || all && state.held_ns != NEVER;
            let is_lost = state.out.expire(now);
            if pays || lets_go || is_lost || waits {
                self.transmit(state, now, pays || waits, waits);
            }
        }
        let due = state.due_ns();
        state.is_listed = due != NEVER;
        state.is_listed.then_some(due)
    }

    /// Nothing goes any more, for this reason.
    #[cold]
    fn fail(&self, state: &mut State, status: Status, code: i32) {
        if state.failed.is_none() {
            state.failed = Some((status, code));
        }
        self.give_up(state);
        self.speaks.store(true, Ordering::Release);
    }

    /// Nothing is sent any more, and nothing is taken.
    fn give_up(&self, state: &mut State) {
        (state.shut, state.gone) = (true, true);
        let (rare, answers) = (state.rare.take().unwrap_or_default(), std::mem::take(&mut state.answers) as usize);
        self.home.requests.give_back(state.queue.len() + rare.asked.len() - answers);
        self.home.answers.give_back(answers);
        self.home.early.give_back(rare.early.values().map(Early::len).sum());
        state.queue = VecDeque::new();
        state.out = Outgoing::new();
        (state.held_ns, state.owed_ns, state.asked_ns) = (NEVER, NEVER, NEVER);
    }

    /// Nobody was at one of these places.
    pub fn is_refused_at(&self, spots: &[Spot], now: u64) {
        let mut state = lock(&self.state);
        let is_there = spots.contains(&state.to.spot);
        if !is_there || state.gone {
            return;
        }
        let ms = (now / 1_000_000) as u32 | 1;
        if state.refused_ms == 0 {
            state.refused_ms = ms;
        } else if ms.wrapping_sub(state.refused_ms) > REFUSED_MS {
            self.fail(&mut state, Status::Silent, libc::ECONNREFUSED);
        }
    }

    /// A request of the channel with itself.
    fn post_own(&self, state: &mut State, request: &Request<'_>) -> Result<bool> {
        state.last = request.id;
        match (request.what, request.data) {
            (What::Change(change), Data::Pieces([old, ..])) => match self.home.memory.change(request.to, change) {
                // SAFETY: eight bytes that are the request's until it is over.
                Some(was) => unsafe { (old.addr as *mut u64).write_volatile(was) },
                None => self.fail(state, Status::Refused, libc::EACCES),
            },
            (What::Write, Data::Pieces([])) => {}
            _ => return Err(Error::new(Code::Unsupported, "a process changes words of its own only")),
        }
        if state.failed.is_none() {
            self.done.fetch_max(request.id, Ordering::Release);
        }
        Ok(true)
    }

    /// What has become of what could not go on.
    fn end_of(&self, state: &State) -> Option<Completion> {
        let id = state.last;
        match state.failed {
            Some((status, code)) => Some(Completion { id, status, code }),
            None if state.shut => Some(Completion { id, status: Status::Flushed, code: libc::ECANCELED }),
            None => None,
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.home.forget(self.name.number);
        let mut state = std::mem::replace(self.state.get_mut().unwrap_or_else(|e| e.into_inner()), State::new());
        self.give_up(&mut state);
    }
}

/// spot 24 | number 4 | token 8 | most 2 | slots 2. Slots: datagrams that may be under way there; 0: as many as there are bytes granted for.
pub(super) fn end(spot: &Spot, name: Name, most: u32, slots: u32) -> End {
    let mut b = [0; OPAQUE];
    b[..SPOT].copy_from_slice(spot);
    b[SPOT..][..4].copy_from_slice(&name.number.to_le_bytes());
    b[SPOT + 4..][..8].copy_from_slice(&name.token.to_le_bytes());
    b[SPOT + 12..].copy_from_slice(&(most | slots << 16).to_le_bytes());
    End(b)
}

impl Pair for Channel {
    fn number(&self) -> u32 {
        self.name.number
    }
    fn end(&self) -> End {
        let most = out::most_of(self.home.carrier.most());
        let (spot, slots) = self.home.spot_of(self.name.number);
        end(&spot, self.name, most, slots)
    }

    fn connect(&self, to: &End) -> Result<()> {
        let mut spot = [0; SPOT];
        spot.copy_from_slice(&to.0[..SPOT]);
        let [most, slots] = [0, 16].map(|shift| half(&to.0, SPOT + 12) >> shift & 0xffff);
        let most = most.min(out::most_of(self.home.carrier.most()));
        if most < out::LEAST {
            return Err(error!(Code::Peer, "it takes {most} bytes at a time, which are too few"));
        }
        let mut state = lock(&self.state);
        if !state.to.is_known() {
            state.to = Other { spot, number: half(&to.0, SPOT), token: word(&to.0, SPOT + 4), most };
            state.out.has_slots(slots);
        }
        Ok(())
    }

    unsafe fn post(&self, request: &Request<'_>) -> Result<bool> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let to = state.to;
        if !to.is_known() {
            return Err(Error::new(Code::Peer, "the other end is not known"));
        }
        if state.shut {
            // Told of as if it had failed later.
            state.last = request.id;
            self.speaks.store(true, Ordering::Release);
            return Ok(true);
        }
        if to.token == self.name.token && to.number == self.name.number {
            return self.post_own(state, request);
        }
        self.post_there(state, request, to)
    }

    fn poll(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        self.waited.store(true, Ordering::Relaxed);
        self.home.receive();
        self.home.tick(false);
        self.let_go();
        self.home.news.call(&self.home.sleeper);
        self.completions(done)
    }

    fn completions(&self, done: &mut dyn FnMut(Completion)) -> Result<()> {
        // SYNC POINT: pairs with the release in `is_acked`.
        let over = self.done.load(Ordering::Acquire);
        if over > self.told.load(Ordering::Relaxed) {
            self.told.store(over, Ordering::Relaxed);
            done(Completion { id: over, status: Status::Done, code: 0 });
        }
        if self.speaks.swap(false, Ordering::AcqRel) {
            let told = self.end_of(&lock(&self.state));
            // Without the lock: whoever hears of it may break the channel off.
            told.into_iter().for_each(done);
        }
        Ok(())
    }

    fn break_off(&self) -> Result<()> {
        // From here on nobody writes anything for the other end.
        let mut state = lock(&self.state);
        self.give_up(&mut state);
        self.speaks.store(true, Ordering::Release);
        Ok(())
    }

    fn explain(&self, code: i32) -> String {
        match code {
            libc::ETIMEDOUT => format!("no datagram of its for {} s; or it is stopped", SILENCE_NS / 1_000_000_000),
            code => io::Error::from_raw_os_error(code).to_string(),
        }
    }
    fn repairs(&self) -> u64 {
        u64::from(self.again.load(Ordering::Relaxed))
    }
    fn bytes(&self) -> usize {
        size_of::<Channel>()
    }
    fn shorten_queue(&self, _entries: u32) -> Result<()> {
        Err(Error::new(Code::Unsupported, "a channel has no completion queue"))
    }
}
