//! What is posted: at once, or together with what comes next. What nobody waits for goes with the next write, when this side waits, or within
//! a moment; so does a record that is one of many.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use super::{Connection, Live, UnderWay, status_of};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::fabric::network::device::{Change, Completion, Data, Piece, Place, RECORD_MOST, Request, Status, What};
use crate::fabric::network::link::PIECES;
use crate::fabric::ofi::changes::{NOWHERE, Said};
use crate::fabric::ofi::endpoint::{Endpoint, Write};
use crate::fabric::ofi::ffi::RmaIov;
use crate::fabric::ofi::held::Held;
use crate::fabric::ofi::sockets;

/// There was a way to the other end, and for so long there has been none: its process has gone, or the link.
const NO_WAY_NS: u64 = 500_000_000;

/// A request as it is given to the provider.
struct Given<'a> {
    to: u64,
    data: u64,
    context: Option<*mut c_void>,
    delivered: bool,
    pieces: &'a [Piece],
    places: &'a [RmaIov],
}

impl Connection {
    /// As [`Pair::post`](crate::fabric::network::device::Pair::post).
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(super) unsafe fn post_request(&self, request: &Request<'_>) -> Result<bool> {
        let mut live = self.live();
        let live = &mut *live;
        if live.other.is_none() {
            return Err(Error::new(Code::Peer, "the other end is not known"));
        }
        if live.endpoint.is_none() {
            // Broken off: it is flushed.
            live.last = request.id;
            self.speaks.store(true, Ordering::Release);
            return Ok(true);
        }
        // A write behind a change could be there before; and where order is not kept, behind anything.
        if live.changing.is_some() || !self.ordered && !live.under_way.is_empty() {
            return Ok(false);
        }
        let is_nowhere = matches!(request.data, Data::Pieces([])) && request.to.rkey == 0 && request.to.addr == 0;
        match (request.what, request.data) {
            // The other end says that all before it is there, where the provider cannot.
            (What::Write, Data::Pieces([])) if !is_nowhere && !self.delivers_nothing => {
                Ok(self.leaves(live) && self.post_change(live, (request.id, NOWHERE), Change::Add(0), 0))
            }
            (What::Write | What::WriteWithNumber(_), _) if !is_nowhere => Ok(self.post_write(live, request)),
            // What follows comes behind what is held.
            _ if !self.leaves(live) => Ok(false),
            (What::Change(change), Data::Pieces([old, ..])) => {
                Ok(self.post_change(live, (request.id, request.to), change, old.addr))
            }
            // No memory of the other end's is known: it is over as soon as what is before it.
            _ if is_nowhere => {
                live.is_posted(request.id, Some(UnderWay { id: request.id, over: true, delivered: true }));
                self.speaks.store(true, Ordering::Release);
                Ok(true)
            }
            (What::Read, Data::Pieces(pieces)) => {
                let places = [place_of(request, pieces)];
                let context = Some(self.context(request.id));
                let (Some((to, _)), Some(endpoint)) = (live.other, &live.endpoint) else { return Ok(false) };
                let given = Given { to, data: 0, context, delivered: true, pieces, places: &places };
                // SAFETY: as the caller promises.
                let posted = unsafe { self.give(endpoint, What::Read, &given) };
                Ok(self.is_given(live, posted, (request.id, Some(true))))
            }
            _ => Err(Error::new(Code::Unsupported, "what is read goes to pieces of memory")),
        }
    }

    /// Posts a write: alone, or behind what is held. `false`: not now.
    fn post_write(&self, live: &mut Live, request: &Request<'_>) -> bool {
        let number = if let What::WriteWithNumber(n) = request.what { Some(n) } else { None };
        let is_record = matches!(request.data, Data::Record(_));
        let burst = is_record && self.held.is_in_a_burst(&mut live.posted_ns);
        if let Some(number) = number
            && !self.goes_ahead(live, request.to, number)
        {
            return false;
        }
        let waits = (burst || request.later) && self.ordered && number.is_none() && !request.signaled;
        if let Data::Record(record) = request.data
            && !waits
            && !request.signaled
            && live.held.is_empty()
            && let Some(posted) = self.inject(live, request, record, number)
        {
            return posted;
        }
        let copy;
        let pieces = match request.data {
            Data::Record(record) => {
                copy = [self.copy(request.id, record)];
                &copy[..]
            }
            Data::Pieces(pieces) => pieces,
        };
        if !live.held.has_room(pieces.len()) && !self.leaves(live) {
            return false;
        }
        let mark = live.held.mark();
        live.held.add(request.id, pieces, request.to);
        live.held.keeps |= !is_record && !pieces.is_empty();
        (live.held.asks, live.held.number) = (request.signaled || !self.ordered, number);
        if waits && !live.held.is_full() {
            live.last = request.id;
            self.has_left_over(live, burst);
            return true;
        }
        if self.leaves(live) {
            return true;
        }
        live.held.take_back(mark);
        false
    }

    /// Sees to it that the upper half of a number is there before the lower one comes. `false`: it is not yet, or nothing may follow it now.
    fn goes_ahead(&self, live: &mut Live, to: Place, number: u32) -> bool {
        let Some(data) = live.sends.ahead(number) else { return true };
        if !self.leaves(live) {
            return false;
        }
        let (Some((other, _)), Some(endpoint)) = (live.other, &live.endpoint) else { return false };
        // Where order is not kept what follows waits for its end, with which nothing completes but what was over before.
        let id = live.last;
        let context = (!self.ordered).then(|| self.context(id));
        let places = [RmaIov { addr: to.addr, len: 0, key: u64::from(to.rkey) }];
        let given = Given { to: other, data, context, delivered: true, pieces: &[], places: &places };
        // SAFETY: it has no pieces.
        let posted = unsafe { self.give(endpoint, What::Write, &given) };
        if posted == Ok(true) {
            live.sends.left(data);
        }
        self.is_given(live, posted, (id, context.map(|_| true))) && self.ordered
    }

    /// Something is held. It leaves when somebody calls next, which the thread does within a moment, or now. `soon`: at the first turn of a wait.
    fn has_left_over(&self, live: &mut Live, soon: bool) {
        self.held.begins(&self.inlets.holding);
        if soon {
            self.held.is_waited_for();
        }
        if !self.inlets.sleeper.lets_wait() {
            self.leaves(live);
        }
    }

    /// Nothing is held any more.
    pub(super) fn has_nothing(&self, live: &mut Live) {
        live.held.clear();
        self.held.ends(&self.inlets.holding);
    }

    /// Posts what is held, if anything. `false`: not now.
    fn leaves(&self, live: &mut Live) -> bool {
        if live.held.is_empty() {
            return true;
        }
        let (Some((to, _)), Some(endpoint)) = (live.other, &live.endpoint) else { return false };
        let (id, asks, keeps) = (live.held.last, live.held.asks, live.held.keeps);
        let context = (asks || keeps).then(|| self.context(id));
        let mut places = Held::no_places();
        let n = live.held.places(&mut places);
        let data = live.sends.along(live.held.number);
        let given = Given { to, data, context, delivered: asks, pieces: live.held.pieces(), places: &places[..n] };
        // SAFETY: copies of the requests', and memory that stays until they are over.
        let posted = unsafe { self.give(endpoint, What::Write, &given) };
        if posted == Ok(true) {
            live.sends.left(data);
        }
        let gone = self.is_given(live, posted, (id, context.map(|_| asks)));
        if gone {
            self.has_nothing(live);
        }
        gone
    }

    /// Posts what is held.
    #[inline]
    pub fn flush(&self) {
        if self.held.is_there() {
            self.leaves(&mut self.live());
        }
    }

    /// The same at a turn of a wait, if it is time.
    #[inline]
    pub fn turn(&self) {
        if self.held.turn() {
            self.flush();
        }
    }

    fn context(&self, id: u64) -> *mut c_void {
        self.contexts.of((id % u64::from(self.depth)) as usize)
    }

    /// Posts a short write whose bytes the provider takes at once; `None`: it takes none, or not so many.
    fn inject(&self, live: &mut Live, request: &Request<'_>, record: &[u8], number: Option<u32>) -> Option<bool> {
        let (Some((to, _)), Some(endpoint)) = (live.other, &live.endpoint) else { return Some(false) };
        if !self.ordered || endpoint.inject_most().is_none_or(|most| record.len() > most) {
            return None;
        }
        let data = live.sends.along(number);
        let posted = endpoint.inject(record, to, request.to, data);
        if posted == Ok(true) {
            live.sends.left(data);
        }
        Some(self.is_given(live, posted, (request.id, None)))
    }

    /// What the provider has said of requests up to this one, which tells that they are `delivered`, or read. `false`: not now.
    fn is_given(
        &self,
        live: &mut Live,
        posted: std::result::Result<bool, c_int>,
        (id, tells): (u64, Option<bool>),
    ) -> bool {
        match posted {
            Ok(true) => {
                if !live.was_there {
                    self.settle_sockets(live);
                }
                live.is_posted(id, tells.map(|delivered| UnderWay { id, over: false, delivered }));
                true
            }
            Ok(false) => self.has_no_way(live, id),
            Err(error) => self.cannot_post(live, Completion { id, status: status_of(error), code: error }),
        }
    }

    /// There is a way to the other end: what it sends by is set up.
    #[cold]
    fn settle_sockets(&self, live: &Live) {
        if let (Some(algorithm), Some(near)) = (self.net.algorithm, self.arrived.fd()) {
            sockets::settle(algorithm, &self.net.offer, near, &self.address, &live.there);
        }
    }

    /// Copies a record to the place of its request.
    fn copy(&self, id: u64, record: &[u8]) -> Piece {
        let place = (id % u64::from(self.depth)) as usize * RECORD_MOST;
        debug_assert!(record.len() <= RECORD_MOST);
        // SAFETY: the place's last request was `depth` requests ago, so it has completed; places lie in the arena.
        let to = unsafe { self.copies.as_ptr().add(place) };
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(record.as_ptr(), to, record.len()) };
        Piece { addr: to as u64, len: record.len() as u32, lkey: self.copies.region().lkey() }
    }

    /// Asks for a change of a word at `to`; what was there goes to `old`. `false`: not now.
    #[cold]
    fn post_change(&self, live: &mut Live, (id, to): (u64, Place), change: Change, old: u64) -> bool {
        let (Some((there, pair)), Some(endpoint)) = (live.other, &live.endpoint) else { return false };
        let own = self.is_own(pair);
        let asks = Said::Asks(id, to, change);
        if !own && (!live.unsaid.is_empty() || self.say(endpoint, &mut live.says, &asks, there) == Ok(false)) {
            return false;
        }
        live.changing = Some((id, old));
        live.is_posted(id, Some(UnderWay { id, over: false, delivered: true }));
        if own {
            let was = self.net.words.change(to, change);
            self.changed(live, id, was);
        }
        true
    }

    /// The library takes nothing now. That lasts: there is no way any more, and the request has failed. `false`: not yet.
    #[cold]
    fn has_no_way(&self, live: &mut Live, id: u64) -> bool {
        let now = now_ns();
        if live.was_there && live.lost_ns == 0 {
            live.lost_ns = now;
        }
        let is_lost = live.was_there && now - live.lost_ns >= NO_WAY_NS;
        is_lost && self.cannot_post(live, Completion { id, status: Status::Silent, code: libc::ETIMEDOUT })
    }

    /// It is told of as if it had failed later.
    #[cold]
    fn cannot_post(&self, live: &mut Live, failed: Completion) -> bool {
        live.last = failed.id;
        live.failed = Some(failed);
        self.speaks.store(true, Ordering::Release);
        true
    }

    /// Gives a request to the provider.
    ///
    /// # Safety
    /// The pieces stay registered, and unread or unchanged, until it is over.
    unsafe fn give(&self, endpoint: &Endpoint, what: What, given: &Given<'_>) -> std::result::Result<bool, c_int> {
        let mut from = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES as usize];
        let mut names = [std::ptr::null_mut(); PIECES as usize];
        // Where memory is named, a provider looks at the first name even if there is no memory (`verbs;ofi_rxm` 1.17).
        let nothing = [Piece { addr: self.copies.as_ptr() as u64, len: 0, lkey: self.copies.region().lkey() }];
        let pieces = if given.pieces.is_empty() && self.net.names_local() { &nothing[..] } else { given.pieces };
        for (n, piece) in pieces.iter().enumerate() {
            from[n] = libc::iovec { iov_base: piece.addr as *mut c_void, iov_len: piece.len as usize };
            if self.net.names_local() {
                names[n] = self.net.descriptor(piece.lkey);
            }
        }
        let (from, names) = (&from[..pieces.len()], &names[..pieces.len()]);
        let Given { to, data, context, places, .. } = *given;
        // Where nothing is under way when this is posted it is over in its turn all the same, and there are no bytes that could be missing.
        let delivered = given.delivered && (self.delivers_nothing || pieces.iter().any(|piece| piece.len > 0));
        let write = Write { to, places, data, context, delivered, from, names };
        // SAFETY: as the caller promises.
        unsafe { if what == What::Read { endpoint.read(&write) } else { endpoint.write(&write) } }
    }
}

/// The other end's memory of a request.
fn place_of(request: &Request<'_>, pieces: &[Piece]) -> RmaIov {
    let len = pieces.iter().map(|p| p.len as usize).sum();
    RmaIov { addr: request.to.addr, len, key: u64::from(request.to.rkey) }
}

impl Live {
    /// A request is posted; `tells`: of its end.
    fn is_posted(&mut self, id: u64, tells: Option<UnderWay>) {
        (self.last, self.was_there, self.lost_ns) = (id, true, 0);
        self.under_way.extend(tells);
    }
}
