//! Requests are posted: records, bulk, atomic changes; on a connection that is made, or made again, if need be.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ending::Reason;
use super::memory::Window;
use super::{DEPTH, InVain, Link, Posted};
use crate::base::atomics::spin_loop;
use crate::base::clock::now_ns;
use crate::base::error::{Error, Result};
use crate::base::lock::MutexGuard;
use crate::base::thread::{sleep, yield_core};
use crate::fabric::network::control::{FINALIZED, FIRST_CHUNK, FIRST_PATIENCE};
use crate::fabric::network::device::{Change, Data, Pair, Piece, Place, Request, What};
use crate::fabric::network::record::Record;

/// One request in so many asks for a completion.
const SIGNAL_EVERY: u64 = 64;
/// Longest writes that make a group, two of which are under way at a time: more than a fast network has on its way, and no more than that,
/// since what comes behind a lost packet is sent again. Of reads each is a group: a device that is slow to answer takes a longer queue for a
/// loss, and repeats it all.
const GROUP: usize = 6;
/// A question for a key is repeated after so long at most.
const LEARN_PATIENCE: Duration = Duration::from_millis(250);

/// From one attempt to the next of posting what there is no room for, after the first ones.
const DOZE: Duration = Duration::from_micros(100);

/// How a request is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Nobody asks when it is over.
    Silent,
    /// Somebody will wait for it.
    Asking,
    /// Nobody waits for it at the other end at this moment ([`Request::later`]).
    Later,
}

/// Is a bulk request the last one of its transfer?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// Others follow.
    No,
    /// Somebody waits for it.
    Yes,
    /// Somebody waits until it is read, and a record follows at once.
    Followed,
}

impl Last {
    /// One that nothing need follow.
    pub fn of(last: bool) -> Last {
        if last { Last::Yes } else { Last::No }
    }
}

impl Posted {
    fn count(&mut self, read: bool, bytes: usize) {
        self.done[read as usize] += 1;
        self.done[2] += bytes as u64;
    }
}

impl Link {
    /// Locks the connection, which is there then: made, or made again, if need be.
    #[inline]
    fn lock_up(&self) -> Result<MutexGuard<'_, Posted>> {
        let posted = self.lock();
        if posted.hand.is_up() {
            return Ok(posted);
        }
        drop(posted);
        self.come_up()
    }

    /// The same, and where the peer's part of a window is, for whose key it is asked if need be; `None`: nothing is written there any more.
    #[inline]
    fn lock_up_for(&self, window: &Window) -> Result<(MutexGuard<'_, Posted>, Option<Place>)> {
        loop {
            let posted = self.lock_up()?;
            let place = window.place_in(self.peer_era());
            if place.is_some() || window.is_closed() {
                return Ok((posted, place));
            }
            drop(posted);
            self.learn(window)?;
        }
    }

    /// Waits for the connection, which is made, or made again, if need be; no longer than `goes_on`.
    pub fn until_up(&self, goes_on: impl Fn() -> bool) {
        drop(self.come_up_while(goes_on));
    }

    fn come_up(&self) -> Result<MutexGuard<'_, Posted>> {
        self.come_up_while(|| true)?.ok_or_else(|| self.broken())
    }

    /// The connection, once it is there; `None`: that is not waited for any longer.
    #[cold]
    fn come_up_while(&self, goes_on: impl Fn() -> bool) -> Result<Option<MutexGuard<'_, Posted>>> {
        while self.failure().is_none() {
            let posted = self.lock();
            if posted.hand.is_up() {
                return Ok(Some(posted));
            }
            drop(posted);
            if !goes_on() {
                return Ok(None);
            }
            let Some(home) = self.home.upgrade() else { break };
            // Who ends this process's part waits for the fabric's thread, and a peer that has left connects to nobody.
            if home.is_its_thread() && home.stops() {
                self.fail(Reason::Other, FINALIZED.into());
            } else {
                home.wait_for(self);
            }
        }
        Err(self.broken())
    }

    /// Are as many requests under way as there may be?
    #[inline(always)]
    fn is_full(&self, posted: &Posted) -> bool {
        posted.last - self.completed.load(Ordering::Acquire) >= DEPTH as u64 - 1
    }

    /// Posts one request.
    #[inline(never)]
    pub(super) fn post(&self, posted: &mut Posted, what: What, data: Data<'_>, to: Place, how: How) -> Result<u64> {
        self.post_here(posted, what, data, to, how)
    }

    /// The same, on the short path.
    #[inline(always)]
    fn post_here(&self, posted: &mut Posted, what: What, data: Data<'_>, to: Place, how: How) -> Result<u64> {
        if self.is_full(posted) {
            self.until_fewer(posted)?;
        }
        if self.has_ended() {
            return Err(self.broken());
        }
        posted.silent += 1;
        let signaled = how == How::Asking || posted.silent >= SIGNAL_EVERY;
        if signaled {
            posted.silent = 0;
        }
        let Some(made) = &mut posted.made else { return Err(self.broken()) };
        if signaled {
            self.take_time(posted.last + 1, made.way);
        }
        let request = Request { id: posted.last + 1, what, data, to, signaled, later: how == How::Later };
        // SAFETY: registered pieces stay so until their ticket is over, and there are fewer than DEPTH under way, see above.
        match unsafe { made.pair.post(&request) } {
            Ok(true) => {}
            Ok(false) => self.post_later(&*made.pair, &request)?,
            // What was posted before without asking for a completion gets one now.
            Err(e) => return Err(self.cannot_post(&e)),
        }
        posted.last += 1;
        // What is only noted comes behind the deed.
        let now = made.room.now();
        if now != made.used {
            made.room.use_now(made.place, now);
            made.used = now;
        }
        Ok(posted.last)
    }

    /// Posts a request that does nothing but complete after all before it. `false`: there is no room for it now. Nobody waits for that: the
    /// fabric's thread, which has all other peers too, would for one that has died.
    pub(in crate::fabric::network) fn post_empty(&self, posted: &mut Posted) -> Result<bool> {
        let to = self.any_place().unwrap_or(Place { addr: 0, rkey: 0 });
        self.post_if_room(posted, Data::Pieces(&[]), to)
    }

    /// Posts a write of no memory of the program, whose completion is asked for. `false`: there is no room for it now.
    fn post_if_room(&self, posted: &mut Posted, data: Data<'_>, to: Place) -> Result<bool> {
        if self.is_full(posted) {
            return Ok(false);
        }
        let Some(made) = posted.made.as_ref().filter(|_| !self.has_ended()) else { return Err(self.broken()) };
        self.take_time(posted.last + 1, made.way);
        let request = Request { id: posted.last + 1, what: What::Write, data, to, signaled: true, later: false };
        // SAFETY: it has no pieces that last, and there are fewer than DEPTH under way.
        let is_posted = unsafe { made.pair.post(&request) }.map_err(|e| self.cannot_post(&e))?;
        if is_posted {
            (posted.silent, posted.last) = (0, posted.last + 1);
        }
        Ok(is_posted)
    }

    /// Waits until fewer requests are under way than there may be.
    #[cold]
    fn until_fewer(&self, posted: &mut Posted) -> Result<()> {
        let mut turns = 0u32;
        while self.is_full(posted) {
            if self.has_ended() {
                return Err(self.broken());
            }
            turns += 1;
            if turns.is_multiple_of(1024) {
                self.is_stuck(posted, now_ns());
                yield_core();
            }
            // Of so many requests one asked for a completion. What is under way may wait for the peer's receives as the peer's does for
            // ours.
            self.poll();
            self.arrivals.collect();
            spin_loop();
        }
        Ok(())
    }

    #[cold]
    fn cannot_post(&self, error: &Error) -> Error {
        self.fail(Reason::Other, format!("cannot be written to ({})", error.detail()));
        self.broken()
    }

    /// Posts a request as soon as there is room for it, or a way; a peer to whom there is none for as long as a first contact may take has
    /// gone, or is stopped.
    #[cold]
    fn post_later(&self, pair: &dyn Pair, request: &Request<'_>) -> Result<()> {
        let (mut vain, mut turns) = (InVain::since(now_ns()), 0u32);
        loop {
            self.poll();
            self.arrivals.collect();
            if self.has_ended() {
                return Err(self.broken());
            }
            if self.home.upgrade().is_some_and(|home| now_ns() > home.ends_ns.load(Ordering::Acquire)) {
                self.fail(Reason::Silent, "takes nothing more".into());
                continue;
            }
            // SAFETY: as in `post`.
            match unsafe { pair.post(request) } {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(e) => return Err(self.cannot_post(&e)),
            }
            turns += 1;
            if turns.is_multiple_of(64) {
                let home = self.home.upgrade();
                let patience = home.as_ref().map_or(0, |home| home.patience_ns).max(self.limits.silence_ns);
                if vain.look(now_ns()) > patience {
                    let why = home.map_or_else(|| "takes nothing more".to_owned(), |home| home.no_answer(self));
                    self.fail(Reason::Silent, why);
                }
            }
            // What is waited for may take as long as a connection.
            if turns < 256 { yield_core() } else { sleep(DOZE) }
        }
    }

    /// Writes a record to the peer, as `fill` makes it while the lock is held. Returns its ticket.
    #[inline]
    pub fn write(&self, to: Place, at: usize, fill: impl FnOnce(&mut Record)) -> Result<u64> {
        self.write_with(to, at, || None, fill)
    }

    /// As [`write`](Link::write); when `imm`, asked while the lock is held, has a number, the peer's thread gets it when the record is there.
    pub fn write_with(
        &self,
        to: Place,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut Record),
    ) -> Result<u64> {
        let posted = self.lock_up()?;
        self.post_record(posted, to, at, imm, How::Silent, fill)
    }

    /// As [`write_with`](Link::write_with), into the peer's part of a window.
    #[inline]
    pub fn write_into(
        &self,
        window: &Window,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut Record),
    ) -> Result<u64> {
        self.write_into_as(How::Silent, window, at, imm, fill)
    }

    /// The same, posted like this.
    #[inline]
    pub fn write_into_as(
        &self,
        how: How,
        window: &Window,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        fill: impl FnOnce(&mut Record),
    ) -> Result<u64> {
        let (posted, place) = self.lock_up_for(window)?;
        let Some(place) = place else { return Ok(posted.last) };
        self.post_record(posted, place, at, imm, how, fill)
    }

    /// Writes words into the peer's part of a window, if there is a connection and the window's key is known: otherwise `false`, as where it
    /// fails. `imm` as for [`write_with`](Link::write_with).
    #[inline(always)]
    pub fn write_at_once(&self, window: &Window, at: usize, imm: impl FnOnce() -> Option<u32>, words: &[u64]) -> bool {
        let mut posted = self.lock();
        if !posted.hand.is_up() {
            return false;
        }
        let Some(place) = window.place_in(self.peer_era()) else { return false };
        let what = imm().map_or(What::Write, What::WriteWithNumber);
        let to = place.further(at);
        // SAFETY: words are bytes.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
        let done = self.post_here(&mut posted, what, Data::Record(bytes), to, How::Silent).is_ok();
        posted.count(false, bytes.len());
        done
    }

    /// The same of one word, without any wait, which `closes` the windows of that lane: nothing is written there after it.
    #[cold]
    pub(super) fn write_last(&self, window: &Window, at: usize, word: u64, closes: bool) -> bool {
        let Some(mut posted) = self.try_lock() else { return false };
        let place = window.place_in(self.peer_era()).filter(|_| posted.hand.is_up());
        let Some(place) = place.filter(|_| !closes || self.windows().leaves_others(window.lane())) else {
            return false;
        };
        let to = place.further(at);
        let is_posted = matches!(self.post_if_room(&mut posted, Data::Record(&word.to_ne_bytes()), to), Ok(true));
        if is_posted {
            posted.count(false, size_of_val(&word));
        }
        if is_posted && closes {
            self.windows().of(window.lane()).for_each(|window| window.close());
        }
        is_posted
    }

    /// Waits until the peer has told the key of its memory since the connection was made, or the connection is another one.
    #[cold]
    fn learn(&self, window: &Window) -> Result<()> {
        let Some(home) = self.home.upgrade() else { return Err(self.broken()) };
        let (mut vain, mut patience) = (InVain::since(now_ns()), FIRST_PATIENCE);
        let (lane, number) = window.name();
        let over = || !self.is_up() || window.is_closed() || window.place_in(self.peer_era()).is_some();
        while !over() {
            home.ask_where(self, lane, number.checked_sub(1).unwrap_or(FIRST_CHUNK), patience, over);
            patience = (patience * 2).min(LEARN_PATIENCE);
            self.tend();
            if vain.look(now_ns()) > home.patience_ns.max(self.limits.silence_ns) {
                self.is_late(home.no_answer(self));
            }
            self.check()?;
        }
        // It is not up, and never will be again: whoever asks must not try for ever.
        if self.has_ended() { Err(self.broken()) } else { Ok(()) }
    }

    fn post_record(
        &self,
        mut posted: MutexGuard<'_, Posted>,
        to: Place,
        at: usize,
        imm: impl FnOnce() -> Option<u32>,
        how: How,
        fill: impl FnOnce(&mut Record),
    ) -> Result<u64> {
        let mut record = Record::new();
        fill(&mut record);
        let imm = imm();
        let what = imm.map_or(What::Write, What::WriteWithNumber);
        let to = to.further(at);
        posted.count(false, record.bytes().len());
        // Whom it wakes waits for it.
        let how = if imm.is_some() { How::Silent } else { how };
        self.post(&mut posted, what, Data::Record(record.bytes()), to, how)
    }

    /// Waits until no more than the last group of bulk requests, and what has been added to it, is under way.
    pub fn until_room(&self) -> Result<()> {
        let before = self.lock().ends[0];
        self.wait(before)
    }

    /// Starts an RDMA write (`push`) of registered pieces to the peer, or a read of the peer's memory into them. At most
    /// [`pieces`](Link::pieces), together at most [`longest`](Link::longest) bytes. Returns the ticket, which is over only after that of the
    /// last request of a transfer (`last`). A last write that a [record](Link::write) follows at once ends [read](Link::is_read) only, where the
    /// network tells that early.
    ///
    /// # Safety
    /// The pieces stay registered, and unchanged or unread, until the ticket is over.
    pub unsafe fn bulk(&self, push: bool, last: Last, pieces: &[Piece], remote: Place) -> Result<u64> {
        let posted = self.lock_up()?;
        self.post_bulk(posted, push, last, pieces, remote)
    }

    /// [`bulk`](Link::bulk) into the peer's part of a window, which a record follows at once.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn bulk_into(&self, window: &Window, at: usize, pieces: &[Piece]) -> Result<u64> {
        let (posted, place) = self.lock_up_for(window)?;
        let Some(place) = place else { return Ok(posted.last) };
        let to = place.further(at);
        self.post_bulk(posted, true, Last::Followed, pieces, to)
    }

    fn post_bulk(
        &self,
        mut posted: MutexGuard<'_, Posted>,
        push: bool,
        last: Last,
        pieces: &[Piece],
        remote: Place,
    ) -> Result<u64> {
        let what = if push { What::Write } else { What::Read };
        let bytes = pieces.iter().map(|p| p.len as usize).sum();
        posted.count(!push, bytes);
        posted.group += bytes;
        let ends = !push || posted.group >= GROUP * self.write_most();
        let how = match last {
            Last::No if !ends => How::Silent,
            Last::Followed if !ends && self.limits.reads_early => How::Later,
            _ => How::Asking,
        };
        let ticket = self.post(&mut posted, what, Data::Pieces(pieces), remote, how)?;
        if ends {
            (posted.ends, posted.group) = ([posted.ends[1], ticket], 0);
        }
        Ok(ticket)
    }

    /// Posts requests until they are of `n` bytes: `post` the next one, of which so many are behind it, which says of how many it is, with its
    /// ticket. The last ticket; when one cannot be posted nothing of those before is under way any more.
    pub fn post_all(&self, n: usize, mut post: impl FnMut(usize) -> Result<(usize, u64)>) -> Result<u64> {
        let (mut done, mut ticket) = (0, 0);
        while done < n {
            let (bytes, next) = post(done).inspect_err(|_| _ = self.wait(ticket))?;
            (done, ticket) = (done + bytes, next);
        }
        Ok(ticket)
    }

    /// Starts a change of an aligned word of eight bytes of the peer's, by its device. What was there goes to `old`, eight bytes.
    ///
    /// # Safety
    /// `old` stays registered, and unread, until the ticket is over.
    pub unsafe fn atomic(&self, change: Change, old: Piece, remote: Place) -> Result<u64> {
        let mut posted = self.lock_up()?;
        posted.count(true, 8);
        self.post(&mut posted, What::Change(change), Data::Pieces(&[Piece { len: 8, ..old }]), remote, How::Asking)
    }

    /// Starts to [append](What::Append) to a word of the peer's, where the network [can](super::super::device::Limits::appends): what was there
    /// goes to `old`, eight bytes. A [read](Link::bulk) follows at once, and is waited for.
    ///
    /// # Safety
    /// `old` stays registered, and unread, until that is over.
    pub unsafe fn append(&self, (expected, at): (u64, u32), [old, new]: [Piece; 2], remote: Place) -> Result<u64> {
        let mut posted = self.lock_up()?;
        posted.count(true, 8);
        let (what, pieces) = (What::Append { expected, at }, [Piece { len: 8, ..old }, new]);
        self.post(&mut posted, what, Data::Pieces(&pieces), remote, How::Later)
    }
}
