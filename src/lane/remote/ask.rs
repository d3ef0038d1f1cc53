//! What one side asks of the other's thread, by a number that comes with a write: to be woken, to be answered. `docs/protocol.md` has the
//! table of the calls.

use std::sync::atomic::Ordering;

use super::Remote;
use super::front::{ANSWER_AT, ASLEEP_AT, FOUND_AT, REQUEST_AT, page_of, sum};
use crate::base::clock::now_ns;
use crate::fabric::network::link::Link;
use crate::lane::map::SLOTS;

/// The peer has been told of no sleeper, or has woken it.
pub(super) const UNTOLD: u32 = 0;
/// It has been told, and will answer with *noted* or *wake*, either of which rings for all sleepers of this process.
const TOLD: u32 = 1;
/// It knows, and wakes with the next thing that it publishes.
const NOTED: u32 = 2;

/// What a number that comes with a write is about; the number also has the lane's.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request, see [`Ask`].
    Asks = 0,
    /// A pending send has marked what it waits for: if that is posted, it wants to be called.
    Marks = 1,
    /// What a pending send waits for is posted.
    Posted = 2,
    /// Somebody sleeps: confirm it.
    Sleeps = 3,
    /// Confirmed: from now on a publication wakes.
    Noted = 4,
    /// Something was published for a sleeper.
    Wake = 5,
}

/// How long an answer may look torn.
const TORN_NS: u64 = 1_000_000_000;
/// A question that has no answer is asked again, after so long and then twice as long: the peer may have taken this process for late when it
/// answered, and has said nothing.
const AGAIN_NS: [u64; 2] = [1_000_000_000, 8_000_000_000];

impl Call {
    fn number(self, lane: u64) -> u32 {
        (self as u32) << 28 | lane as u32 & 0xfff_ffff
    }
    /// The call, and the number of the lane as far as it was sent.
    pub fn of(number: u32) -> Option<(Call, u32)> {
        let all = [Call::Asks, Call::Marks, Call::Posted, Call::Sleeps, Call::Noted, Call::Wake];
        Some((*all.get((number >> 28) as usize)?, number & 0xfff_ffff))
    }
}

/// What this side asks the peer's thread to do for it, in [`Remote::ask`].
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The posting of this message is withdrawn: is it too late?
    Withdraw = 1,
    /// Announcements are wanted from now on. Everything published before is here when the answer is.
    Subscribe = 2,
    /// May this message have the receive of any index that is posted?
    Claim = 3,
    /// Where is the ring of this index for messages of any source?
    Ring = 4,
    /// Is this ticket of the ring at this address in use? Everything published before under it is here when the answer is.
    Ticket = 5,
    /// Where are the counters of the share with this name, of a ring of this rank, which the peer has for it?
    Counters = 6,
    /// A key of the spool from this address on, for a piece of a block that cannot be registered whole; 0: none any more.
    Lend = 7,
    /// Where is the peer's block of this multicast, for a leader that reads from it? It stays until that has left.
    Block = 8,
}

impl Ask {
    fn of(number: u64) -> Option<Ask> {
        let all =
            [Ask::Withdraw, Ask::Subscribe, Ask::Claim, Ask::Ring, Ask::Ticket, Ask::Counters, Ask::Lend, Ask::Block];
        all.into_iter().find(|a| *a as u64 == number)
    }
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// See there.
    pub what: Ask,
    /// The slot; for [`Ask::Ring`] the index.
    pub slot: usize,
    /// The message or ticket; for [`Ask::Ring`] 1 if its counters are to be with the peer, for [`Ask::Counters`] the receiver,
    /// for [`Ask::Block`] the multicast's number.
    pub seq: u64,
    /// The address of a ring, or in the spool; the name of a share; a multicast's master; for [`Ask::Ring`] the communicator's epoch 32 | first
    /// unit 32.
    pub at: u64,
}

/// The answer: no, or yes with two words.
pub type Answer = Option<[u64; 2]>;

impl Remote {
    /// The number that wakes the peer's sleeper, if there is one.
    #[inline]
    pub(super) fn wakes(&self) -> Option<u32> {
        let asleep = &self.page().asleep;
        (asleep.load(Ordering::Acquire) != 0 && asleep.swap(0, Ordering::AcqRel) != 0)
            .then(|| Call::Wake.number(self.number))
    }
    /// Calls the peer's thread.
    pub fn call(&self, call: Call) {
        let _ = self.link.write_into(&self.page, 0, || Some(call.number(self.number)), |_| ());
    }
    /// Somebody of this side goes to sleep and must be woken. What was published before this reached the peer wakes it as well, since
    /// the peer's thread confirms by the same connection.
    ///
    /// Without a connection nothing can come, and all sleepers are woken when there is one.
    pub fn fall_asleep(&self) {
        if !self.link.is_up() {
            return;
        }
        if self.sleep.compare_exchange(UNTOLD, TOLD, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let call = || Some(Call::Sleeps.number(self.number));
            let told = self.link.write_into(&self.page, ASLEEP_AT, call, |record| record.put(&[1]));
            if told.is_err() {
                // It is late, and is told when it answers.
                self.sleep.store(UNTOLD, Ordering::Release);
            }
        }
    }
    /// Confirms to the peer that this side knows of its sleeper, unless that was woken already.
    pub fn confirm_sleep(&self) {
        // Asked under the lock, under which publications take the flag too: so a wake never overtakes the confirmation.
        let asleep = &self.page().asleep;
        let call = || if asleep.load(Ordering::Acquire) != 0 { Call::Noted } else { Call::Wake };
        let _ = self.link.write_into(&self.page, 0, || Some(call().number(self.number)), |_| ());
    }
    /// The peer knows of this side's sleeper, or has woken it.
    pub fn set_noted(&self, noted: bool) {
        self.sleep.store(if noted { NOTED } else { UNTOLD }, Ordering::Release);
    }
    /// Has the peer's thread do something, and gives its answer. `goes_on` is asked now and then whether there is still hope.
    pub fn ask(&self, what: Ask, slot: usize, seq: u64, goes_on: impl Fn() -> bool) -> Option<bool> {
        self.ask_for(Asked { what, slot, seq, at: 0 }, goes_on).map(|answer| answer.is_some())
    }

    /// The same with all of the answer.
    pub fn ask_for(&self, what: Asked, goes_on: impl Fn() -> bool) -> Option<Answer> {
        let mut asked = self.asked.lock().unwrap_or_else(|e| e.into_inner());
        *asked += 1;
        let n = *asked;
        let call = || Some(Call::Asks.number(self.number));
        let ask = || {
            self.link.write_into(&self.page, REQUEST_AT, call, |record| {
                let words = [what.what as u64, what.slot as u64, what.seq, what.at];
                let [what, slot, seq, at] = words;
                record.put(&[n, what, slot, seq, at, sum(n, &words)]);
            })
        };
        ask().ok()?;
        let (mut turns, mut torn_ns) = (0u32, 0);
        let (mut again_ns, mut patience_ns) = (now_ns() + AGAIN_NS[0], AGAIN_NS[0]);
        loop {
            let page = self.page();
            let (answer, found) =
                (page.answer.load(Ordering::Acquire), || [0, 1, 2].map(|i| page.found[i].load(Ordering::Acquire)));
            let taken = take_answer(n, answer, found);
            if let Answered::By(answer) = taken {
                return Some(answer);
            }
            turns += 1;
            if turns.is_multiple_of(64) {
                let now = now_ns();
                if now >= again_ns {
                    patience_ns = (2 * patience_ns).min(AGAIN_NS[1]);
                    again_ns = now + patience_ns;
                    let _ = ask();
                }
                // What it has written may overtake each other, but not for so long.
                if taken == Answered::Torn {
                    torn_ns = if torn_ns == 0 { now } else { torn_ns };
                    if now - torn_ns > TORN_NS {
                        self.link.damaged("an answer");
                        return None;
                    }
                }
                self.tend();
                if !goes_on() {
                    return None;
                }
                crate::base::thread::yield_core();
            }
            crate::base::atomics::spin_loop();
        }
    }
}

/// What has come of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// Nothing yet.
    NotYet,
    /// Its answer, or one to what was not asked, but not as it was written.
    Torn,
    By(Answer),
}

/// Takes an answer apart: its word, and what it has found, if question `n` is the last one asked.
fn take_answer(n: u64, answer: u64, found: impl Fn() -> [u64; 3]) -> Answered {
    match (answer >> 1).cmp(&n) {
        std::cmp::Ordering::Less => Answered::NotYet,
        std::cmp::Ordering::Greater => Answered::Torn,
        std::cmp::Ordering::Equal if answer & 1 == 0 => Answered::By(None),
        std::cmp::Ordering::Equal => {
            let [first, second, check] = found();
            if check == sum(n, &[first, second]) { Answered::By(Some([first, second])) } else { Answered::Torn }
        }
    }
}

/// Answers a request of the peer of `link` about the lane of this number; called by the thread that got its number. `decide` does
/// what is asked for, once: who asks again gets the same answer.
pub fn answer(link: &Link, number: u32, decide: impl FnOnce(Asked) -> Answer) {
    let Some(window) = link.find_window(|lane| lane as u32 & 0xfff_ffff == number) else { return };
    let page = page_of(&window);
    let [n, what, slot, seq, at, check] = [0, 1, 2, 3, 4, 5].map(|i| page.request[i].load(Ordering::Acquire));
    // It is being written just now: this call was of the one before, and its own call follows.
    if check != sum(n, &[what, slot, seq, at]) {
        return;
    }
    let mut answered = window.answered.lock().unwrap_or_else(|e| e.into_inner());
    let answer = match (&*answered, Ask::of(what)) {
        (Some((number, answer)), _) if *number == n => *answer,
        (_, Some(what)) if slot < SLOTS as u64 => decide(Asked { what, slot: slot as usize, seq, at }),
        _ => None,
    };
    *answered = Some((n, answer));
    let none = || None;
    if let Some([first, second]) = answer {
        let found = link.write_into(&window, FOUND_AT, none, |record| {
            record.put(&[first, second, sum(n, &[first, second])]);
        });
        // Asked again, it is all said again.
        if found.is_err() {
            return;
        }
    }
    let _ = link.write_into(&window, ANSWER_AT, none, |record| record.put(&[n << 1 | answer.is_some() as u64]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Of all that a peer can write, an answer is taken only if it is one to this question, and whole.
        #[test]
        fn an_answer_is_to_what_was_asked(n in 1u64..1 << 62, answer in any::<u64>(), found in any::<[u64; 3]>(), near in 0u64..4) {
            for answer in [answer, (n + near) << 1, (n + near) << 1 | 1, (n - 1) << 1 | 1] {
                match take_answer(n, answer, || found) {
                    Answered::By(None) => prop_assert_eq!(answer, n << 1),
                    Answered::By(Some(words)) => {
                        prop_assert!(answer == n << 1 | 1 && words == found[..2] && found[2] == sum(n, &words));
                    }
                    Answered::NotYet => prop_assert!(answer >> 1 < n),
                    Answered::Torn => prop_assert!(answer >> 1 > n || answer == n << 1 | 1),
                }
            }
            let whole = || [found[0], found[1], sum(n, &found[..2])];
            prop_assert_eq!(take_answer(n, n << 1 | 1, whole), Answered::By(Some([found[0], found[1]])));
        }

        /// A number that comes with a write is a call that there is, or nothing.
        #[test]
        fn numbers_are_calls_or_nothing(number in any::<u32>()) {
            match Call::of(number) {
                Some((call, lane)) => prop_assert_eq!(call.number(lane as u64), number),
                None => prop_assert!(number >> 28 > Call::Wake as u32),
            }
        }
    }
}
