//! What becomes of requests that are under way: completions, whether they move, and what a lasting wait does to find out.

use std::sync::atomic::Ordering;

use super::ending::Reason;
use super::{Link, PROBE_NS, Posted};
use crate::base::atomics::spin_loop;
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::base::thread::yield_core;
use crate::fabric::network::device::{Completion, Pair, Status};
use crate::fabric::network::handshake::State;

/// What is under way is flushed although this side has not ended the connection.
const FLUSHED: &str = "is cut off: the queue pair here is in the error state, since a request from there was refused or the device of this node \
                       cannot go on";
/// Turns of a wait until it lets others run: where a device works meanwhile, and where each turn is a call of the system.
const SPINS: u32 = 64;
const DRIVEN_SPINS: u32 = 2;
/// Requests that do not move for so long make the peer be asked for a word.
const STUCK_NS: u64 = 1_000_000_000;
/// Who waits looks once in so long at least, or has no core.
const LOOK_NS: u64 = 2 * PROBE_NS;

/// The device notices by its own clock, and late, that the last request it sent, or what the peer's answered, was lost; one that comes
/// behind it makes the peer's device complain at once. So a wait sends such an *echo* after so long, and another if that was lost too. More of
/// them do harm: Soft-RoCE puts its clock back at every answer, and so repeats nothing as long as it is asked more often than it would.
const ECHOES_NS: [u64; 2] = [20_000_000, 40_000_000];
/// Later ones are this long apart, several times a device's clock.
const LATE_ECHO_NS: u64 = 3_000_000_000;

/// What is known of the last request that may be lost.
#[derive(Default)]
pub(super) struct Echo {
    /// Its number,
    last: u64,
    /// seen first then, or echoed last,
    since_ns: u64,
    /// and so many echoes were sent.
    sent: usize,
}

/// How long somebody has looked for something in vain. Only time in which somebody looks counts: a program that computes takes no completions
/// and asks the peer for no word.
#[derive(Clone, Copy, Default)]
pub(in crate::fabric::network) struct InVain {
    looked_ns: u64,
    for_ns: u64,
}

impl InVain {
    /// From now on.
    pub fn since(now: u64) -> InVain {
        InVain { looked_ns: now, for_ns: 0 }
    }
    /// Looks again: for so long by now.
    pub fn look(&mut self, now: u64) -> u64 {
        self.for_ns += now.saturating_sub(self.looked_ns).min(LOOK_NS);
        // Which may lie ahead.
        self.looked_ns = self.looked_ns.max(now);
        self.for_ns
    }
}

/// Requests that are under way and do not move: the peer has no receives left for numbers that come with writes, and its device says so (RNR)
/// as long as it lives.
#[derive(Default)]
pub(super) struct Stuck {
    /// So many had completed,
    completed: u64,
    /// of so many that were posted then,
    last: u64,
    /// and the peer had given so many answers.
    answers: u32,
    /// Since then it was looked at in vain.
    vain: InVain,
    /// When the peer was asked last.
    asked_ns: u64,
}

impl Stuck {
    /// How long the first request that is under way has been so for certain, while the peer has given no answer; 0: nothing is, or something
    /// has moved since this was asked last. Of the requests the number of those that have completed, and of those posted.
    fn lasts(&mut self, (completed, last): (u64, u64), answers: u32, now: u64) -> u64 {
        // Where all that was posted then has completed, what is under way now was posted since.
        if completed >= last.min(self.last) || completed != self.completed || answers != self.answers {
            *self = Stuck { completed, last, answers, vain: InVain::since(now), asked_ns: 0 };
            return 0;
        }
        self.vain.look(now)
    }
}

/// What a completion without success says of the peer.
#[cold]
fn cause(pair: &dyn Pair, c: &Completion) -> (Reason, String) {
    let text = pair.explain(c.code);
    match c.status {
        Status::Silent => (
            Reason::Silent,
            format!("does not answer any more: its process or node has died, or the link is down ({text})"),
        ),
        Status::Unlinked => (
            Reason::Device,
            format!("is out of reach: the link of this node is down, or its device has failed ({text})"),
        ),
        Status::Refused => (Reason::Refused, format!("refused a key ({text})")),
        _ => (Reason::Other, format!("is cut off ({text})")),
    }
}

impl Link {
    /// Takes completions. Cheap when there are none; one thread at a time.
    pub fn poll(&self) {
        self.take(|pair, done| pair.poll(done));
    }

    /// The same behind a look at the whole network.
    pub(in crate::fabric::network) fn take_completions(&self) {
        self.take(|pair, done| pair.completions(done));
    }

    fn take(&self, poll: impl FnOnce(&dyn Pair, &mut dyn FnMut(Completion)) -> Result<()>) {
        let Ok(one) = self.queue.try_lock() else { return };
        let Some(pair) = &*one else { return };
        let polled = poll(&**pair, &mut |c| {
            self.taken.fetch_add(1, Ordering::Relaxed);
            match c.status {
                Status::Done => {}
                Status::Flushed => self.fail(Reason::Cut, FLUSHED.into()),
                _ => {
                    let (reason, cause) = cause(&**pair, &c);
                    self.fail_by(reason, cause);
                }
            }
            // Failed or not: the device is done with it.
            self.completed.fetch_max(c.id, Ordering::AcqRel);
        });
        self.note_time();
        if let Err(e) = polled {
            self.fail(Reason::Device, format!("is cut off ({})", e.detail()));
        }
    }

    /// Is this request over?
    pub fn is_over(&self, ticket: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= ticket || {
            self.poll();
            self.completed.load(Ordering::Acquire) >= ticket
        }
    }

    /// Has this side's memory of this request been read, so that it may change?
    pub fn is_read(&self, ticket: u64) -> bool {
        let has_read = || {
            let one = self.queue.try_lock();
            one.is_ok_and(|one| one.as_ref().is_some_and(|pair| pair.has_read(ticket)))
        };
        self.completed.load(Ordering::Acquire) >= ticket || has_read() || self.is_over(ticket)
    }

    /// Waits for a request of [`bulk`](Link::bulk): when it returns the device is done with its memory. It ends: the device reports
    /// success or, within about four seconds of silence, failure.
    pub fn wait(&self, ticket: u64) -> Result<()> {
        self.wait_until(ticket, || self.is_over(ticket))
    }

    /// The same for a write, of which only this side's memory counts.
    pub fn wait_read(&self, ticket: u64) -> Result<()> {
        self.wait_until(ticket, || self.is_read(ticket))
    }

    fn wait_until(&self, ticket: u64, over: impl Fn() -> bool) -> Result<()> {
        // Where peers carry requests out themselves, the one that is waited for may have no core.
        let driven = self.limits().is_driven;
        let spins = if driven { DRIVEN_SPINS } else { SPINS };
        let mut turns = 0u32;
        let mut failed_ns = 0;
        while !over() {
            if self.has_ended() && turns.is_multiple_of(SPINS) {
                let now = now_ns();
                failed_ns = if failed_ns == 0 { now } else { failed_ns };
                // What was under way is flushed, and reported, within moments; a device that does not is out of order.
                if now - failed_ns > 1_000_000_000 {
                    return Err(self.broken());
                }
            }
            turns += 1;
            if turns.is_multiple_of(SPINS) {
                self.arrivals.collect();
            }
            if turns.is_multiple_of(64 * SPINS) {
                self.tend();
            }
            if turns.is_multiple_of(spins) {
                // What other peers want of this process meanwhile may be what this peer waits for. What has come is looked at first.
                if !(driven && self.arrivals.drive_others()) {
                    yield_core();
                }
            } else {
                spin_loop();
            }
        }
        if ticket != 0 && self.has_ended() { Err(self.broken()) } else { Ok(()) }
    }

    /// What a lasting wait does for the connection: takes completions, and tries it when nothing was posted for long, so that
    /// a peer that died silently is noticed. Without a connection the peer's thread is asked for a word.
    pub fn tend(&self) {
        self.poll();
        let now = now_ns();
        let Some(mut posted) = self.try_lock() else { return };
        if self.failure().is_some() {
            return;
        }
        let state = posted.hand.state();
        let under_way = !self.has_completed(&posted);
        if under_way && state == State::Up && self.is_silent(&mut posted, now) {
            if self.post_empty(&mut posted) == Ok(true) {
                posted.echo.last = posted.last;
            }
            return;
        }
        if now.saturating_sub(posted.at_ns) < PROBE_NS {
            return;
        }
        posted.at_ns = now;
        match state {
            // The device sees to it that there is an end of it.
            State::Up | State::Closing if under_way => _ = self.is_stuck(&mut posted, now),
            State::Up => _ = self.post_empty(&mut posted),
            State::Down => {
                if let Some(home) = self.home.upgrade() {
                    home.ping(self, &mut posted, now);
                }
            }
            _ => {}
        }
    }

    /// Was the last request posted a while ago, which is not known to have arrived? `true` when it is time for an echo.
    fn is_silent(&self, posted: &mut Posted, now: u64) -> bool {
        let echo = &mut posted.echo;
        if echo.last != posted.last {
            *echo = Echo { last: posted.last, since_ns: now, sent: 0 };
            return false;
        }
        let due = now.saturating_sub(echo.since_ns) >= ECHOES_NS.get(echo.sent).copied().unwrap_or(LATE_ECHO_NS);
        if due {
            (echo.since_ns, echo.sent) = (now, echo.sent + 1);
        }
        due
    }

    /// Longest time for which a wait may sleep without [tending](Link::tend) the connection.
    pub fn tend_within_ns(&self) -> u64 {
        if self.try_lock().is_some_and(|posted| self.has_completed(&posted)) { u64::MAX } else { ECHOES_NS[0] }
    }

    /// Is something under way that has not moved for long? Then the peer is asked for a word, and given up when there is none for as long as
    /// a first contact may take: its process is stopped, or its thread does not run. (A device or node that is silent is noticed by the device
    /// of this side.)
    pub(super) fn is_stuck(&self, posted: &mut Posted, now: u64) -> bool {
        let (completed, answers) = (self.completed.load(Ordering::Acquire), self.answers());
        let under_way = (completed, posted.last);
        let stuck_ns = posted.stuck.lasts(under_way, answers, now);
        if stuck_ns < STUCK_NS {
            return false;
        }
        let Some(home) = self.home.upgrade() else { return true };
        // A silent device is noticed by ours before that.
        let patience_ns = home.patience_ns.max(self.limits.silence_ns);
        if posted.stuck.asked_ns != 0 && stuck_ns > patience_ns + STUCK_NS {
            let seconds = patience_ns as f64 / 1e9;
            let why = if self.limits.is_driven {
                let cause = home.why_silent(self.card.get());
                format!(
                    "its process has not answered for {seconds:.1} s, so it is stopped, or there is no way to it{cause}"
                )
            } else {
                format!(
                    "its device asks to wait, and its process has not answered for {seconds:.1} s, so it is stopped"
                )
            };
            let why = format!("takes nothing more: {why} (FMPL_ATTACH_TIMEOUT sets the time)");
            self.fail(Reason::Stopped, why);
        } else if now - posted.stuck.asked_ns > PROBE_NS {
            posted.stuck.asked_ns = now;
            home.ask_for_a_word(self);
        }
        true
    }

    /// Is all that was posted known to be over?
    pub(super) fn has_completed(&self, posted: &Posted) -> bool {
        self.completed.load(Ordering::Acquire) >= posted.last
    }

    /// Is all that was posted over? Sees to it that it will be known.
    pub(in crate::fabric::network) fn is_quiet(&self, posted: &mut Posted) -> bool {
        if posted.silent > 0 && !self.has_ended() {
            let _ = self.post_empty(posted);
        }
        self.poll();
        self.has_completed(posted)
    }

    /// Waits until all that was posted is over, or the time.
    pub fn drain(&self, until_ns: u64) {
        loop {
            if self.has_ended() || self.is_quiet(&mut self.lock()) || now_ns() >= until_ns {
                return;
            }
            self.arrivals.collect();
            yield_core();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_after_a_pause_is_not_stuck_since_before_it() {
        let (mut stuck, second) = (Stuck::default(), 1_000_000_000);
        // The first requests of all, long after the processor was started.
        assert_eq!(stuck.lasts((0, 254), 0, 900 * second), 0);
        assert_eq!(stuck.lasts((0, 254), 0, 901 * second), second);
        // They complete, and after a pause others are posted.
        assert_eq!(stuck.lasts((254, 254), 0, 902 * second), 0);
        assert_eq!(stuck.lasts((254, 300), 0, 990 * second), 0);
        assert_eq!(stuck.lasts((254, 310), 0, 991 * second), second);
        // One completes, or the peer gives an answer.
        assert_eq!(stuck.lasts((255, 310), 0, 992 * second), 0);
        assert_eq!(stuck.lasts((255, 310), 1, 993 * second), 0);
        assert_eq!(stuck.lasts((255, 310), 1, 994 * second), second);
    }

    #[test]
    fn time_in_which_the_program_does_not_look_is_not_the_peers_silence() {
        let (mut stuck, second) = (Stuck::default(), 1_000_000_000);
        // Two requests that nobody asked the end of, and one look behind the first of them.
        assert_eq!(stuck.lasts((0, 1), 0, 900 * second), 0);
        // The program computes for a minute. Its next waits have to ask the peer first.
        assert_eq!(stuck.lasts((0, 2), 0, 960 * second), LOOK_NS);
        assert_eq!(stuck.lasts((0, 2), 0, 960 * second + second / 2), LOOK_NS + second / 2);
    }
}
