//! Strangers: whether a peer that is not known is let in, or asks again later, so that what it has to say waits with it and takes no memory here.
//!
//! As many are known as a node has contexts, and some that come or go. Where those that have come are [packed](super::packed) when their contexts are
//! needed there is always room for the next, and strangers come as fast as contexts change hands; but not while this process itself waits for the
//! context of a peer that it has asked for, whose turn they would take: then those that are packed count as known. Where nothing moves some come all
//! the same.

use super::control::Shared;
use super::link::Link;
use super::room::Which;
use crate::base::clock::now_ns;

/// Peers that have come are known beyond the contexts of a node: a share of these, and so many.
const BEYOND: (usize, usize) = (8, 16);
/// Where too many are known and none has gone for so long, strangers are let in all the same: what is known may wait for them. From one to the
/// next.
const STUCK_NS: [u64; 2] = [1_000_000_000, 10_000_000];
/// Who has waited for a context asks for the next one soon.
const WANTS_NS: u64 = 1_000_000_000;

/// How long a stranger is told to wait before it asks again, in milliseconds, at least and at most: so that so many ask a second, however many wait.
const PAUSE_MS: [u32; 2] = [50, 16_000];
const ASK_A_SECOND: u32 = 2048;

/// Whether strangers are let in.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Strangers that were put off since then, and how long they are told to wait.
    put_off: u32,
    since_ns: u64,
    pause_ms: u32,
    /// Since when there are too many, and when the last was forgotten, packed for the first time, and let in beyond that; 0: it is not so.
    full_ns: u64,
    forgot_ns: u64,
    packed_ns: u64,
    beyond_ns: u64,
    /// Let in beyond what there is room for, so far.
    beyond: u64,
    /// Until then this process counts as waiting for a context.
    wants_until_ns: u64,
}

impl Crowd {
    /// May one more come to so many, beside those that are packed, where `places` are to be had of contexts?
    pub fn admits(&mut self, known: usize, packed: usize, places: usize, now: u64) -> bool {
        let most = places + places / BEYOND.0 + BEYOND.1;
        let is_full = known >= most;
        if !is_full && (now >= self.wants_until_ns || known + packed < most) {
            self.full_ns = 0;
            return true;
        }
        if self.full_ns == 0 {
            self.full_ns = now;
        }
        // Who is packed makes room among the known, but not among those that wait for contexts.
        let left_ns = self.forgot_ns.max(if is_full { self.packed_ns } else { 0 });
        let stuck = now.saturating_sub(self.full_ns.max(left_ns)) > STUCK_NS[0]
            && now.saturating_sub(self.beyond_ns) > STUCK_NS[1];
        if stuck {
            self.beyond_ns = now;
            self.beyond += 1;
        }
        stuck
    }

    /// One is not known any more.
    pub fn one_left(&mut self, now: u64) {
        self.forgot_ns = now;
    }
    /// One that had not been so is packed.
    pub fn one_packed(&mut self, now: u64) {
        self.packed_ns = now;
    }

    /// How many were let in beyond what there is room for.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// A stranger is put off: for how many milliseconds.
    pub fn puts_off(&mut self, now: u64) -> u32 {
        self.put_off += 1;
        let ms = now.saturating_sub(self.since_ns) / 1_000_000;
        if ms >= 1000 {
            let asked = u64::from(self.put_off) * 1000 / ms;
            let pause = u64::from(self.pause_ms) * asked / u64::from(ASK_A_SECOND);
            self.pause_ms = u32::try_from(pause).unwrap_or(u32::MAX).max(self.pause_ms / 2);
            (self.put_off, self.since_ns) = (0, now);
        }
        self.pause_ms = self.pause_ms.clamp(PAUSE_MS[0], PAUSE_MS[1]);
        self.pause_ms
    }
}

impl Shared {
    /// `None`: this peer is known, or there is room for one more. Otherwise it is to ask again after so many milliseconds.
    pub(super) fn puts_off(&self, peer: u32) -> Option<u32> {
        let (mut links, now) = (self.lock(), now_ns());
        let (known, packed, places) = (links.by_peer.len(), links.packed.len(), self.places[Which::Contexts as usize]);
        let is_known = links.by_peer.contains_key(&peer) || links.packed.get(peer).is_some();
        let admits = is_known || links.crowd.admits(known, packed, places, now);
        (!admits).then(|| links.crowd.puts_off(now))
    }

    /// The connection with a peer waits for a place.
    pub(super) fn waits_for_room(&self, link: &Link, now: u64) {
        if link.was_asked_for() {
            self.lock().crowd.wants_until_ns = now + WANTS_NS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where those that come are packed they come freely, unless this process waits for a context; and some in any case.
    #[test]
    fn strangers_take_no_turn_of_those_that_are_asked_for() {
        let (mut crowd, second) = (Crowd::default(), 1_000_000_000);
        let most = 64 + 64 / 8 + 16;
        assert!(crowd.admits(most - 1, 60_000, 64, second) && !crowd.admits(most, 60_000, 64, second));
        crowd.wants_until_ns = 4 * second;
        assert!(crowd.admits(1, most - 2, 64, second) && !crowd.admits(1, 60_000, 64, second));
        // One each 10 ms after a second.
        let come = |crowd: &mut Crowd, known, second: u64| {
            (second * 1000..(second + 1) * 1000).filter(|ms| crowd.admits(known, 60_000, 64, ms * 1_000_000)).count()
        };
        assert!((85..=100).contains(&come(&mut crowd, 1, 3)));
        assert_eq!(come(&mut crowd, 1, 4), 1000);
        crowd.one_packed(6 * second);
        assert_eq!((come(&mut crowd, most, 5), come(&mut crowd, most, 6)), (0, 0));
        assert!((85..=100).contains(&come(&mut crowd, most, 8)));
    }

    /// As long as strangers ask as they are told to.
    #[test]
    fn the_more_strangers_wait_the_seldomer_they_ask() {
        let asked_of = |crowd: &mut Crowd, strangers: u64, seconds: u64| {
            let (mut next, mut asked) = (vec![0u64; strangers as usize], 0u64);
            let from = crowd.since_ns / 1_000_000;
            for ms in 0..1000 * seconds {
                for at in next.iter_mut().filter(|at| **at <= ms) {
                    *at = ms + u64::from(crowd.puts_off((from + ms) * 1_000_000));
                    asked += u64::from(ms >= 1000 * (seconds - 10));
                }
            }
            asked / 10
        };
        let mut crowd = Crowd::default();
        let few = asked_of(&mut crowd, 20, 20);
        assert!((100..=20 * 20).contains(&few), "{few} a second");
        let many = asked_of(&mut crowd, 8000, 40);
        assert!((200..=8192).contains(&many), "{many} a second");
        assert!(asked_of(&mut crowd, 20, 40) > 50, "and soon again when they are few");
    }
}
