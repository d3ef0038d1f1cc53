//! What comes in: acknowledgements end requests, and frames are carried out in turn, as a device would.

use std::sync::atomic::Ordering;

use super::out::Body;
use super::{Channel, HELD_NS, State};
use crate::base::key::Checks;
use crate::base::lock::lock;
use crate::fabric::datagram::carrier::OVERHEAD;
use crate::fabric::datagram::flow::{Comes, NEVER};
use crate::fabric::datagram::home::count;
use crate::fabric::datagram::packet::{HEAD, Head};
use crate::fabric::network::device::{Change, DeviceError, Place, RECORD_MOST, Status};
use crate::fabric::network::link::DEPTH;
use crate::fabric::served::frame::{HEADER, Header, Kind, word};
use crate::fabric::served::memory::put;

/// Answers to one peer that are under way at most: more than it may have asked for.
const ANSWERS: usize = 2 * DEPTH as usize;

/// A frame that has come before its turn.
#[derive(Debug)]
pub(super) struct Early(Box<[u8]>);

impl Early {
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Why a frame is not carried out.
pub(super) enum Not {
    /// There is no room for what it asks for now: it comes again.
    Now,
    /// The request used a wrong key.
    Allowed(u64),
    /// It is no frame, or makes no sense.
    Possible,
}

impl Channel {
    /// Takes a datagram. `false`: it is not from the other end.
    pub fn take(&self, datagram: &[u8], checks: &Checks) -> bool {
        let Some(head) = Head::open(datagram, self.name.token, checks) else { return false };
        let mut state = lock(&self.state);
        let state = &mut *state;
        if state.gone || !state.to.is_known() {
            // Whoever has not heard of the other end yet hears of this again.
            return true;
        }
        let now = self.home.now();
        if self.is_heard(state, &head, now) && head.frames > 0 && !state.shut {
            let taken = self.take_frames(state, &datagram[HEAD..], &head);
            self.has_taken(state, taken, now);
        }
        true
    }

    /// The other end is there, and has acknowledged so much. `false`: that cannot be.
    pub(super) fn is_heard(&self, state: &mut State, head: &Head, now: u64) -> bool {
        (state.heard_ns, state.refused_ms) = (now, 0);
        state.asks |= head.asks;
        let heard = self.hear(state, head, now).is_ok();
        if !heard {
            self.damaged(state);
        }
        heard
    }

    /// What follows when frames were taken, or not.
    pub(super) fn has_taken(&self, state: &mut State, taken: Result<(), Not>, now: u64) {
        // Whoever has a ring takes nothing of what all others share.
        if !self.has_ring {
            self.home.is_heard(&mut state.stretch, now);
        }
        match taken {
            Ok(()) => {}
            Err(Not::Now) => {
                state.asks = true;
                self.asks_for_words(state, now);
            }
            Err(Not::Allowed(id)) => self.refuse(state, id),
            Err(Not::Possible) => self.damaged(state),
        }
        state.asks |= state.owed > self.grant() / 4;
        if state.owed > 0 && state.owed_ns == NEVER && !state.gone {
            state.owed_ns = now + HELD_NS;
            self.home.turns.store(0, Ordering::Relaxed);
        }
    }

    /// What follows when all datagrams that have come are taken.
    pub fn after(&self, now: u64) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let waits = state.held_ns == NEVER && state.out.next() <= state.end;
        if state.asks || waits || state.out.has_lost() {
            self.transmit(state, now, false, false);
        } else {
            self.note_due(state, now);
        }
    }

    /// Something that this end has sent is acknowledged.
    fn hear(&self, state: &mut State, head: &Head, now: u64) -> Result<(), super::super::flow::Impossible> {
        let most = state.to.most;
        let State { out, queue, .. } = state;
        out.hear((head.acked, head.kept, head.granted), |seq| super::out::cost(queue, seq, most), now)?;
        let acked = out.acked();
        while let Some(first) = state.queue.front().filter(|q| q.first + u64::from(q.frames) <= acked + 1) {
            match first.header.kind {
                Kind::Answer | Kind::Refused => {
                    state.queue.pop_front();
                    state.answers -= 1;
                    self.home.answers.give_back(1);
                }
                Kind::Read | Kind::Add | Kind::Swap => {
                    state.acked = first.header.id;
                    let first = state.queue.pop_front();
                    state.rare().asked.extend(first);
                }
                _ => {
                    state.acked = first.header.id;
                    state.queue.pop_front();
                    self.home.requests.give_back(1);
                }
            }
        }
        state.tidy();
        self.asks_for_words(state, now);
        self.is_over(state);
        Ok(())
    }

    /// Tells up to where requests are over.
    fn is_over(&self, state: &mut State) {
        let asked = state.rare.as_ref().and_then(|rare| rare.asked.front());
        let over = asked.map_or(state.acked, |first| first.header.id - 1);
        // SYNC POINT: pairs with the acquire in `poll`.
        self.done.fetch_max(over, Ordering::Release);
    }

    /// Carries out what is in turn, and what has waited for it.
    fn take_frames(&self, state: &mut State, mut bytes: &[u8], head: &Head) -> Result<(), Not> {
        // What the check does not cover is the end of the last frame.
        for (k, seq) in (head.first..).take(usize::from(head.frames)).enumerate() {
            let header = bytes.first_chunk::<HEADER>().and_then(Header::decode).ok_or(Not::Possible)?;
            let whole = HEADER + header.follows();
            let is_last = k + 1 == usize::from(head.frames);
            let (frame, rest) = bytes.split_at_checked(whole).ok_or(Not::Possible)?;
            if is_last && !rest.is_empty() {
                return Err(Not::Possible);
            }
            bytes = rest;
            if state.gone {
                return Ok(());
            }
            match state.inn.what_is(seq) {
                Comes::Next => {
                    self.apply(state, &header, &frame[HEADER..])?;
                    self.take_early(state)?;
                }
                Comes::Early => {
                    state.asks = true;
                    if self.home.early.take(whole) {
                        state.rare().early.insert(seq, Early(frame.into()));
                        state.inn.keep(seq);
                    } else {
                        count(&self.home.counts.dropped, 1);
                    }
                }
                Comes::Again => {
                    count(&self.home.counts.doubled, 1);
                    state.asks = true;
                }
                Comes::Beyond => return Err(Not::Possible),
            }
        }
        Ok(())
    }

    /// Carries out what came early, has its turn, and found no room for an answer then.
    pub(super) fn goes_on(&self, state: &mut State, now: u64) {
        if state.inn.has_next() {
            let taken = self.take_early(state);
            self.has_taken(state, taken, now);
        }
    }

    /// Carries out those that came early, as far as their turn has come.
    pub(super) fn take_early(&self, state: &mut State) -> Result<(), Not> {
        while state.inn.has_next() && !state.gone {
            let seq = state.inn.applied() + 1;
            let Some(early) = state.rare().early.remove(&seq) else { return Err(Not::Possible) };
            let header = early.0.first_chunk::<HEADER>().and_then(Header::decode).ok_or(Not::Possible)?;
            let applied = self.apply(state, &header, &early.0[HEADER..]);
            if matches!(applied, Err(Not::Now)) {
                state.rare().early.insert(seq, early);
                return applied;
            }
            self.home.early.give_back(early.len());
            applied?;
        }
        state.tidy();
        Ok(())
    }

    /// Does what a frame asks for.
    fn apply(&self, state: &mut State, header: &Header, body: &[u8]) -> Result<(), Not> {
        let place = Place { addr: header.addr, rkey: header.rkey };
        let refused = Not::Allowed(header.id);
        match header.kind {
            Kind::Write | Kind::WriteWithNumber => {
                if !body.is_empty() {
                    self.home.memory.write(place, body).ok_or(refused)?;
                }
                if header.kind == Kind::WriteWithNumber {
                    self.home.tell_number(self.name.number, header.number);
                }
            }
            Kind::Read => {
                let len = header.len as usize;
                self.answer(state, header, |channel, record| {
                    if len > RECORD_MOST {
                        return channel.may_read(place, len).then_some(Body::Memory(place));
                    }
                    channel.home.memory.read(place, &mut record[..len])?;
                    Some(Body::Record(*record))
                })?;
            }
            Kind::Add | Kind::Swap => {
                let (a, b) = (word(body, 0), word(body, 8));
                let change = if header.kind == Kind::Add { Change::Add(a) } else { Change::Swap(a, b) };
                self.answer(state, header, |channel, record| {
                    let old = channel.home.memory.change(place, change)?;
                    record[..8].copy_from_slice(&old.to_ne_bytes());
                    Some(Body::Record(*record))
                })?;
            }
            Kind::Answer => self.is_answered(state, header, body)?,
            Kind::Refused => self.fail(state, Status::Refused, libc::EACCES),
            Kind::Over | Kind::Append => return Err(Not::Possible),
        }
        self.is_applied(state, body.len());
        Ok(())
    }

    /// The next frame, with so many bytes, is carried out.
    pub(super) fn is_applied(&self, state: &mut State, len: usize) {
        state.inn.apply();
        state.owed = state.owed.saturating_add(len as u32 + OVERHEAD);
    }

    /// Makes an answer, if there is room for one.
    fn answer(
        &self,
        state: &mut State,
        header: &Header,
        make: impl FnOnce(&Channel, &mut [u8; RECORD_MOST]) -> Option<Body>,
    ) -> Result<(), Not> {
        let most = state.to.most;
        if state.answers as usize >= ANSWERS {
            return Err(Not::Possible);
        }
        if !self.home.answers.take(1) {
            return Err(Not::Now);
        }
        state.answers += 1;
        let len = if header.kind == Kind::Read { header.len } else { 8 };
        let (answer, body) = match make(self, &mut [0; RECORD_MOST]) {
            Some(body) => (Header { len, ..Header::bare(Kind::Answer, header.id) }, body),
            None => {
                state.answers -= 1;
                self.home.answers.give_back(1);
                return Err(Not::Allowed(header.id));
            }
        };
        self.enqueue(state, answer, body, most);
        Ok(())
    }

    /// A part of what this end has asked for.
    fn is_answered(&self, state: &mut State, header: &Header, body: &[u8]) -> Result<(), Not> {
        let first = state.rare.as_mut().and_then(|rare| rare.asked.front_mut()).ok_or(Not::Possible)?;
        let whole = first.header.len as usize;
        if header.id != first.header.id || header.addr != first.got as u64 || body.len() > whole - first.got {
            return Err(Not::Possible);
        }
        let (mut skip, mut left) = (first.got, body);
        for piece in first.pieces() {
            let skipped = skip.min(piece.len as usize);
            skip -= skipped;
            let (now, later) = left.split_at(left.len().min(piece.len as usize - skipped));
            if !now.is_empty() {
                // SAFETY: the request's, which is not over.
                unsafe { put(now, (piece.addr + skipped as u64) as *mut u8) };
            }
            left = later;
        }
        first.got += body.len();
        if first.got == whole {
            state.rare().asked.pop_front();
            self.home.requests.give_back(1);
            if !state.looks() {
                state.asked_ns = NEVER;
            }
            state.tidy();
            self.is_over(state);
        }
        Ok(())
    }

    /// The other end has said what cannot be: nothing of it is believed any more.
    #[cold]
    fn damaged(&self, state: &mut State) {
        self.give_up(state);
        self.home.news.add_error(DeviceError::Pair(self.name.number), &self.home.sleeper);
        self.speaks.store(true, Ordering::Release);
    }
}
