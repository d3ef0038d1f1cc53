//! What a message that is not published yet does next: one decision for blocking sends, requests, and requests that other waits move on.
//!
//! [`decide`] says what is tried, in this order, as far as it applies; what does not succeed is followed by the next.
//!
//! | step | when | what comes of it |
//! |---|---|---|
//! | put | its receive is posted | it is in the buffer, or on its way there |
//! | hand over | posted for, and it waits for no more than that, or there is no other way; or a request that crosses another | it is in the spool |
//! | claim | synchronous | a receive of any index is its own |
//! | place | short, not synchronous | landing, annex, chain |
//! | place and confirm | short, synchronous, everything before it received | published; waits for its receive |
//! | offer | a request, long | published; the receiver pulls, or it is moved later |
//! | keep | long, its time-out is over | it is in the spool |
//! | give up | its time-out is over, and there was none | an error: the spool is full |
//! | wait | always | nothing |

use super::{SYSTEM_INDICES, Sender, waits};
use crate::base::error::Result;
use crate::lane::SendState;
use crate::p2p::any_index;
use crate::p2p::transfer::{Put, Ring};

/// What a decision depends on.
#[derive(Clone, Copy, Debug)]
pub(in crate::p2p) struct Known {
    /// Its receive is posted.
    posted: bool,
    /// It waits until its receive is there.
    synchronous: bool,
    /// It is sent without waiting if there is room.
    short: bool,
    /// The receiver fetches it from the spool by itself, or nothing else has room for it.
    by_spool: bool,
    /// Everything before it is received.
    consumed: bool,
    /// It is long, and one comes the other way.
    exchanged: bool,
    /// It is completed by another call.
    request: bool,
    /// It is a request to the rank itself, which cannot receive it while it waits.
    to_itself: bool,
    /// Its time-out is over.
    late: bool,
    /// There was no time to wait.
    at_once: bool,
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Put,
    HandOver,
    Claim,
    Place,
    PlaceAndConfirm,
    Offer,
    Keep,
    GiveUp,
    Wait,
}

/// All steps, in the order in which they are tried.
const STEPS: [Step; 9] = [
    Step::Put,
    Step::HandOver,
    Step::Claim,
    Step::Place,
    Step::PlaceAndConfirm,
    Step::Offer,
    Step::Keep,
    Step::GiveUp,
    Step::Wait,
];

/// Does a step apply?
fn applies(step: Step, k: &Known) -> bool {
    match step {
        Step::Put => k.posted,
        Step::HandOver if k.posted => k.synchronous || k.by_spool,
        Step::HandOver => k.exchanged && k.request && !k.synchronous,
        Step::Claim => k.synchronous,
        Step::Place => k.short && !k.synchronous,
        Step::PlaceAndConfirm => k.short && k.synchronous && k.consumed && !k.to_itself,
        Step::Offer => k.request && !k.short,
        Step::Keep => k.late && !k.short,
        Step::GiveUp => k.late && k.at_once,
        Step::Wait => true,
    }
}

/// What a message tries next, after so many of [`STEPS`]: which of them.
fn decide(k: &Known, tried: usize) -> usize {
    (tried..STEPS.len()).find(|n| applies(STEPS[*n], k)).unwrap_or(STEPS.len() - 1)
}

/// How a call waits for its message.
#[derive(Clone, Copy, Debug)]
pub(in crate::p2p) struct Patience {
    /// Until its receive is there.
    pub synchronous: bool,
    /// The time-out is over.
    pub late: bool,
    /// There was no time to wait.
    pub at_once: bool,
    /// It does not even wait until there is a connection with another node: somebody moves it on by the way.
    pub by_the_way: bool,
}

impl Sender {
    fn known(&self, patience: Patience) -> Known {
        let posted = self.posting().is(self.seq);
        // What has waited although it fits beside the landing goes there.
        let waited = posted && self.len <= self.ep.tuning.annex && waits(self.lane, self.slot);
        let Patience { synchronous, late, at_once, .. } = patience;
        // The library's own messages wait for their postings only where there is no other way.
        let may = self.slot < SYSTEM_INDICES || !synchronous && !waits(self.lane, self.slot);
        let annexed = may && self.fits_annex();
        let (posted, short) = (posted && !waited && !annexed, waited || annexed || self.is_short());
        let synchronous = synchronous && !annexed;
        Known {
            posted,
            synchronous,
            short,
            by_spool: posted && (self.fits_nowhere() || self.lane.remote().is_some()),
            exchanged: self.request && !short && !posted && self.is_exchanged() && self.consumed_all(),
            consumed: short && synchronous && self.consumed_all(),
            request: self.request,
            to_itself: self.request && self.lane.is_self(),
            late,
            at_once,
        }
    }

    /// Would this step write something to the peer?
    fn says_something(&self, step: Step) -> bool {
        match step {
            Step::Claim => any_index::is_posted(self.lane),
            Step::Offer | Step::GiveUp | Step::Wait => false,
            Step::Put | Step::HandOver | Step::Place | Step::PlaceAndConfirm | Step::Keep => true,
        }
    }

    /// Tries what can be done now. How far the message has come then: [`SendState::Waits`] if nothing could.
    pub(in crate::p2p) fn attempt(&mut self, patience: Patience, ring: Ring) -> Result<SendState> {
        let known = self.known(patience);
        let mut tried = 0;
        loop {
            let at = decide(&known, tried);
            tried = at + 1;
            if patience.by_the_way && self.says_something(STEPS[at]) && !self.lane.is_there() {
                return Ok(SendState::Waits);
            }
            let sent = match STEPS[at] {
                Step::Put => match self.put(ring) {
                    Put::Done => true,
                    Put::Under(state) => return Ok(state),
                    Put::Failed(e) => return Err(e),
                    Put::NotNow => false,
                },
                Step::HandOver | Step::Keep => self.spool(),
                Step::Claim => self.place_claimed(),
                Step::Place => self.place_short(),
                Step::PlaceAndConfirm => match self.place_synchronous() {
                    true => return Ok(SendState::Unconfirmed),
                    false => false,
                },
                Step::Offer => match self.offer() {
                    true => return Ok(SendState::Offered),
                    false => false,
                },
                Step::GiveUp => {
                    self.check_peer()?;
                    return Err(self.spool_full());
                }
                Step::Wait => {
                    self.check_key()?;
                    return Ok(SendState::Waits);
                }
            };
            if sent {
                return Ok(SendState::Sent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that can be known.
    fn all() -> impl Iterator<Item = Known> {
        (0..1u32 << 10).map(|bits| {
            let bit = |n: u32| bits >> n & 1 != 0;
            Known {
                posted: bit(0),
                synchronous: bit(1),
                short: bit(2),
                by_spool: bit(3),
                consumed: bit(4),
                request: bit(5),
                to_itself: bit(6),
                late: bit(7),
                at_once: bit(8),
                exchanged: bit(9),
            }
        })
    }

    /// What is tried if nothing succeeds.
    fn tried(k: &Known) -> Vec<Step> {
        let (mut at, mut steps) = (0, Vec::new());
        while !matches!(steps.last(), Some(Step::GiveUp | Step::Wait)) {
            let n = decide(k, at);
            steps.push(STEPS[n]);
            at = n + 1;
        }
        steps
    }

    #[test]
    fn every_message_gets_what_its_mode_promises() {
        for k in all() {
            let steps = tried(&k);
            let has = |step| steps.contains(&step);
            let first = |step| steps.first() == Some(&step);
            // Straight into its buffer before anything else.
            assert_eq!(first(Step::Put), k.posted, "{k:?}: {steps:?}");
            // A synchronous message is published only for a receive that is there, or with a word that this is waited for.
            if k.synchronous && !k.posted {
                assert!(!has(Step::Place) && !has(Step::HandOver), "{k:?}: {steps:?}");
            }
            // A short one that is not synchronous always goes, as far as there is room.
            assert_eq!(has(Step::Place), k.short && !k.synchronous, "{k:?}: {steps:?}");
            // A long one is copied before its time only for a receive that is posted, or as a request while another crosses it.
            if !(k.posted || k.late || k.exchanged && k.request) {
                assert!(!has(Step::HandOver) && !has(Step::Keep), "{k:?}: {steps:?}");
            }
            // Nobody offers what the caller gets back when the call returns.
            assert!(!has(Step::Offer) || k.request && !k.short, "{k:?}: {steps:?}");
            // A rank does not wait for itself.
            assert!(!has(Step::PlaceAndConfirm) || !k.to_itself, "{k:?}: {steps:?}");
            // An error only where there is no time to wait, and at the end.
            assert_eq!(has(Step::GiveUp), k.late && k.at_once, "{k:?}: {steps:?}");
            assert!(matches!(steps.last(), Some(Step::Wait | Step::GiveUp)), "{k:?}: {steps:?}");
        }
    }

    #[test]
    fn steps_follow_the_table_and_none_comes_twice() {
        for k in all() {
            let places: Vec<usize> =
                tried(&k).iter().map(|s| STEPS.iter().position(|t| t == s).expect("a step")).collect();
            assert!(places.windows(2).all(|w| w[0] < w[1]), "{k:?}: {places:?}");
        }
    }
}
