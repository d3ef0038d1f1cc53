//! How a connection ends before its time, and what is said of it.
//!
//! Both ends notice, each in its own way: one by a completion that names the cause, the other because its queue pair is in the error state,
//! and each tells the other by datagram. Whichever comes first ends the connection, but what is said afterwards is the most precise thing
//! known: the *cause* that a completion of this side names, otherwise what was noticed first. The peer's word is taken only when nothing of
//! this side is under way any more that could complete with the cause, or after a moment.
//!
//! A peer that does not answer where there is no connection, or none yet, is **late**: nothing is under way that could be lost, so the
//! connection does not end. Whoever waits for the peer gets an error, and so does who comes within a moment; who comes later tries again, and
//! a word of the peer ends it at once. The same holds where the peer answers, but no place for a connection comes free, here or there; a word of
//! the peer does not end that.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError};

use super::Link;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::log::{Level, tell};
#[cfg(feature = "trace")]
use crate::base::trace::What;
use crate::base::trace::traced;
use crate::fabric::network::device::DeviceError;

/// How long a request of this side that is under way may take to complete with the cause after the peer has given the connection up.
const WORD_NS: u64 = 1_000_000_000;

/// Why a connection has failed, as one end tells the other.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Something else.
    Other = 0,
    /// The device got no answer over it.
    Silent = 1,
    /// A request was refused by the other end.
    Refused = 2,
    /// The queue pair was in the error state.
    Cut = 3,
    /// The process did not answer.
    Stopped = 4,
    /// The device has failed, or its link is down.
    Device = 5,
    /// The other end has written what cannot be.
    Damaged = 6,
}

impl Reason {
    /// As it came in a packet.
    pub(in crate::fabric::network) fn of(number: u32) -> Reason {
        use Reason::*;
        let all = [Silent, Refused, Cut, Stopped, Device, Damaged];
        all.into_iter().find(|r| *r as u32 == number).unwrap_or(Reason::Other)
    }
    /// What the end says that hears of it. "Its" and "there" are of who speaks in the error's text: the peer.
    fn heard(self) -> &'static str {
        match self {
            Reason::Other => "has given the connection up: it cannot go on with it",
            Reason::Silent => "has given the connection up: its device had no answer over it for seconds",
            Reason::Refused => {
                "has given the connection up: a request of its was refused here, since it used a wrong key or address"
            }
            Reason::Cut => {
                "has given the connection up: its queue pair was in the error state, since a request from here was refused there or its \
                 device could not go on"
            }
            Reason::Stopped => "has given the connection up: this process did not answer",
            Reason::Device => "has given the connection up: its device has failed, or its link is down",
            Reason::Damaged => "has given the connection up: what this process has written there is damaged",
        }
    }
}

/// What is known of the end of a connection.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// What was noticed first; from then on nothing goes any more. (Few links have such, so it is not in the link.)
    first: OnceLock<Box<(Reason, String)>>,
    /// What a completion of this side has named, if one has.
    cause: OnceLock<Box<(Reason, String)>>,
    /// What the peer has said, and when.
    word: OnceLock<(Reason, u64)>,
    /// Until when the peer is late, in nanoseconds; 0: it is not; odd: for want of a [place](PLACELESS). And what is said of it.
    late_ns: AtomicU64,
    /// The texts that there were, the current one last. Errors hand them out, so they stay; there are few.
    late: Mutex<Vec<&'static str>>,
    /// Words of the peer that have come by datagrams.
    words: AtomicU32,
}

/// For so long at least a peer that is late is not tried again: every wait for it has looked by then.
pub(in crate::fabric::network) const LATE_NS: u64 = 2_000_000_000;

/// Of a time until which a peer is late: it may have answered, but no place for its connection came free.
const PLACELESS: u64 = 1;

impl Link {
    fn ended(&self) -> Option<&(Reason, String)> {
        let first = self.ending.first.get()?;
        Some(&**self.ending.cause.get().unwrap_or(first))
    }

    /// Why nothing goes any more, or for now, if it does not.
    #[inline]
    pub fn failure(&self) -> Option<&str> {
        self.ended().map(|(_, why)| why.as_str()).or_else(|| self.lateness())
    }
    /// Does nothing go any more, for good?
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ending.first.get().is_some()
    }
    /// Has the peer said that it has given the connection up, or was it late?
    pub(super) fn has_heard_of_an_end(&self) -> bool {
        self.ending.word.get().is_some() || self.late_until() != 0
    }
    /// What is said of a peer that is late, if it is.
    #[inline]
    pub fn lateness(&self) -> Option<&str> {
        let until = self.late_until();
        if until == 0 { None } else { self.lateness_until(until) }
    }
    /// Until when the peer is late, or was before it was tried again, in nanoseconds; 0: it has been heard since, or never was.
    #[inline]
    pub fn late_until(&self) -> u64 {
        self.ending.late_ns.load(Ordering::Acquire)
    }
    #[cold]
    fn lateness_until(&self, until: u64) -> Option<&str> {
        if now_ns() < until { self.last_lateness() } else { None }
    }
    fn last_lateness(&self) -> Option<&str> {
        self.ending.late.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
    }
    /// Was the peer late for want of a word, and is that all that is known of it since?
    pub(in crate::fabric::network) fn is_unheard(&self) -> bool {
        let until = self.late_until();
        until != 0 && until & PLACELESS == 0
    }
    /// What is said of a peer that is late for want of a word. One that answers, and has no place, is waited for.
    #[inline]
    pub fn silence(&self) -> Option<&str> {
        let until = self.late_until();
        if until == 0 || until & PLACELESS != 0 { None } else { self.lateness_until(until) }
    }

    /// The peer has not answered where it should have, and nothing is under way to it: an error of whoever waits for it, for a moment.
    #[cold]
    pub(in crate::fabric::network) fn is_late(&self, why: String) {
        self.is_late_for(why, 0);
    }
    /// The same where the peer may have answered, but no place for the connection came free.
    #[cold]
    pub(in crate::fabric::network) fn has_no_place(&self, why: String) {
        self.is_late_for(why, PLACELESS);
    }
    fn is_late_for(&self, why: String, what: u64) {
        {
            let mut texts = self.ending.late.lock().unwrap_or_else(PoisonError::into_inner);
            let text = match texts.iter().position(|text| *text == why) {
                Some(n) => texts.remove(n),
                None => Box::leak(why.into()),
            };
            texts.push(text);
        }
        self.ending.late_ns.store((now_ns() + LATE_NS) & !PLACELESS | what, Ordering::Release);
        if let Some(home) = self.home.upgrade() {
            home.answered.notify_all();
        }
    }
    /// The peer is late, as this error of a first contact says.
    pub fn cannot_be_reached(&self, error: &Error) {
        self.is_late(format!("cannot be reached ({})", error.detail()));
    }
    /// A word of the peer has come.
    pub(in crate::fabric::network) fn is_heard(&self) {
        self.ending.words.fetch_add(1, Ordering::AcqRel);
        self.is_not_silent();
    }
    fn is_not_silent(&self) {
        let until = self.ending.late_ns.load(Ordering::Acquire);
        // That there is no place is no less true for that.
        if until != 0 && (until & PLACELESS == 0 || now_ns() >= until) {
            self.is_reached();
        }
    }
    /// How many have.
    pub(in crate::fabric::network) fn words(&self) -> u32 {
        self.ending.words.load(Ordering::Acquire)
    }
    /// The peer is late for want of a word, of which so many had come. One that has come meanwhile is not passed over.
    #[cold]
    pub(in crate::fabric::network) fn is_late_after(&self, words: u32, why: String) {
        self.is_late(why);
        if self.words() != words {
            self.is_not_silent();
        }
    }
    /// There is a connection, or the peer makes one.
    pub(in crate::fabric::network) fn is_reached(&self) {
        if self.ending.late_ns.load(Ordering::Relaxed) != 0 {
            self.ending.late_ns.store(0, Ordering::Release);
        }
    }
    /// A place has come free for it here.
    pub(in crate::fabric::network) fn has_a_place(&self) {
        if self.late_until() & PLACELESS != 0 {
            self.is_reached();
        }
    }
    /// The peer is late for want of a word, and is not waited for any longer: so whatever it has begun is over.
    pub fn give_up(&self) {
        if let Some(why) = self.silence() {
            self.fail(Reason::Silent, why.to_owned());
        }
    }
    /// The same for another peer that needs its place: also when it is about to be tried again.
    pub(in crate::fabric::network) fn give_place_up(&self) {
        if let Some(why) = self.last_lateness().filter(|_| self.is_unheard()) {
            self.fail(Reason::Stopped, why.to_owned());
        }
    }
    /// The reason as it is told to the peer.
    pub(in crate::fabric::network) fn reason(&self) -> Reason {
        self.ended().map_or(Reason::Other, |(reason, _)| *reason)
    }

    /// An event of this connection, see [`trace`](crate::base::trace).
    #[cfg(feature = "trace")]
    pub(crate) fn note(&self, what: What, number: u32) {
        use crate::base::trace::{Event, note};
        note(Event { peer: self.peer, number: number as u64, ..Event::new(what, "") });
    }

    /// Ends the connection for this reason. Afterwards the peer can write nothing here.
    pub fn fail(&self, reason: Reason, why: String) {
        if self.ending.first.set(Box::new((reason, why))).is_ok() {
            traced!(self.note(What::Failed, 0));
            tell(Level::Debug, || format!("rank {} {}", self.peer, self.failure().unwrap_or("is not connected")));
            self.break_off();
            // What is left of it is cleared away by the thread.
            if let Some(home) = self.home.upgrade() {
                home.nudge();
                home.answered.notify_all();
            }
        }
    }

    /// The same for what a completion has named, which replaces whatever else was said.
    pub(super) fn fail_by(&self, reason: Reason, cause: String) {
        let _ = self.ending.cause.set(Box::new((reason, cause.clone())));
        self.fail(reason, cause);
    }

    /// The peer has written into this record what cannot be: nothing more is done with it, and that is the error of whoever waits for it.
    /// `record`: what it is; the words of the error.
    #[cold]
    pub fn damaged(&self, record: &str) -> Error {
        self.fail(Reason::Damaged, format!("has damaged {record}; nothing more is done with it"));
        self.broken()
    }

    /// The peer has given the connection up. What of this side's is under way is let complete first: it may name the cause.
    pub(in crate::fabric::network) fn hear(&self, reason: Reason) {
        self.poll();
        let _ = self.ending.word.set((reason, now_ns()));
        if !self.heed(now_ns())
            && let Some(home) = self.home.upgrade()
        {
            home.nudge();
        }
    }

    /// Ends the connection if the peer has said so, and nothing that is under way can name a cause any more. `false`: not yet.
    pub(in crate::fabric::network) fn heed(&self, now: u64) -> bool {
        let Some((reason, since)) = self.ending.word.get().copied() else { return true };
        if !self.has_ended() {
            let over = || self.try_lock().is_some_and(|posted| self.has_completed(&posted));
            if now.saturating_sub(since) < WORD_NS && !over() {
                return false;
            }
            self.fail(reason, reason.heard().into());
        }
        true
    }

    /// The device has told of an error of this connection, if it is of this one.
    pub(in crate::fabric::network) fn told(&self, error: &DeviceError) {
        let is_this = |number: u32| {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            current.as_ref().is_some_and(|pair| pair.number() == number)
        };
        match *error {
            DeviceError::Overrun(number) if is_this(number) => self.fail_by(
                Reason::Device,
                "is cut off: the completion queue of its connection here was overrun, so completions are lost".into(),
            ),
            DeviceError::Refused(number) if is_this(number) => self.fail_by(
                Reason::Cut,
                "is cut off: a request of its was refused here, since it used a wrong key or address".into(),
            ),
            DeviceError::Pair(number) if is_this(number) => {
                self.fail(Reason::Cut, "is cut off: the device has told that the queue pair here cannot go on".into());
            }
            _ => {}
        }
    }

    /// Makes the completion queue so short that it may be overrun: to see what comes of it.
    pub fn shorten_queue(&self, entries: u32) -> Result<()> {
        match &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(pair) => pair.shorten_queue(entries),
            None => Err(self.broken()),
        }
    }

    /// Puts the queue pair into the error state, as a device does that cannot go on with it.
    pub fn break_off(&self) {
        if let Some(pair) = &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = pair.break_off();
        }
    }

    /// An error if nothing goes any more.
    pub fn check(&self) -> Result<()> {
        if self.failure().is_some() { Err(self.broken()) } else { Ok(()) }
    }

    #[cold]
    pub(super) fn broken(&self) -> Error {
        let (me, peer) = (self.me, self.peer);
        let why = self.failure().unwrap_or("is not connected");
        error!(Code::Peer, "rank {me}: rank {peer} {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn reasons_come_back_as_they_went() {
        for number in 0..8 {
            let reason = Reason::of(number);
            assert_eq!(reason as u32, if number < 7 { number } else { 0 });
            assert!(reason.heard().starts_with("has given the connection up: "));
        }
    }
}
