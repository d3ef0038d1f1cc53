//! A link as it is packed, see [`packed`](super::super::packed): what is said of it, and what the peer has written, without the bytes that are zero.
//!
//! ```text
//!  flags | my life | the peer's | turn | attempts (3) | era | indices | windows
//!  of each window: lane | number << 2, its lane is over, known | runs
//!  of each run: bytes that are zero before it | its bytes | these
//! ```
//! All numbers are as short as they are small. Not in it: keys of the peer's memory, which are of eras that may be over; they are asked for again.

use std::sync::atomic::Ordering;

use super::memory::Name;
use super::{Link, Posted};
use crate::base::error::Result;
use crate::fabric::network::control::WINDOW_BYTES;
use crate::fabric::network::handshake::Handshake;

/// A record that would be longer is not made: then the link stays.
const MOST: usize = 1024;
/// So many bytes that are zero end a run.
const GAP: usize = 3;
/// Flags: the peer has finalized.
const LEFT: u8 = 1;

/// A number, in as many bytes as it needs.
pub(in crate::fabric::network) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The number that comes next.
pub(in crate::fabric::network) fn take(from: &mut &[u8]) -> Option<u64> {
    let (mut number, mut by) = (0u64, 0);
    loop {
        let (first, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(first & 0x7f).checked_shl(by)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
        by += 7;
    }
}

/// The runs of bytes that are not zero: where each begins, and where it ends.
fn runs(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match runs.last_mut().filter(|(_, end)| at - *end < GAP) {
            Some((_, end)) => *end = at + 1,
            None => runs.push((at, at + 1)),
        }
    }
    runs
}

/// Who has a link that is packed, and how far it had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fabric::network) struct Brief {
    lives: [u64; 2],
    pub turn: u32,
    pub has_left: bool,
}

impl Brief {
    pub fn of(record: &[u8]) -> Option<Brief> {
        let (flags, mut rest) = record.split_first()?;
        let lives = [take(&mut rest)?, take(&mut rest)?];
        Some(Brief { lives, turn: u32::try_from(take(&mut rest)?).ok()?, has_left: flags & LEFT != 0 })
    }
    /// This side's life and the peer's, as they are said.
    pub fn said(&self) -> [u64; 2] {
        self.lives
    }
    /// Is a packet of these lives, its sender's and its receiver's?
    pub fn fits(&self, said: [u64; 2]) -> bool {
        said == [self.lives[1], self.lives[0]]
    }
}

/// Bytes of a window of this name.
fn bytes_of(name: Name) -> usize {
    WINDOW_BYTES[usize::from(name.1 != 0)]
}

impl Link {
    /// This process asks for a lane with the peer, or to know whether it is there, so it is not packed. `true`: for the first time.
    pub(in crate::fabric::network) fn is_asked_for(&self) -> bool {
        !self.asked_for.swap(true, Ordering::AcqRel)
    }
    /// Has it?
    pub(in crate::fabric::network) fn was_asked_for(&self) -> bool {
        self.asked_for.load(Ordering::Acquire)
    }

    /// Was it packed, so that nobody has looked yet at what was to be told the peer meanwhile? Once.
    pub(in crate::fabric::network) fn takes_unpacked(&self) -> bool {
        self.unpacked.load(Ordering::Relaxed) && self.unpacked.swap(false, Ordering::AcqRel)
    }

    /// Can it be packed, as far as that is told without its lock?
    pub(in crate::fabric::network) fn may_be_packed(&self) -> bool {
        let none_counted = [&self.counted, &*self.arrived].iter().all(|n| n.load(Ordering::Acquire) == 0);
        let in_use = self.was_asked_for()
            || self.unpacked.load(Ordering::Acquire)
            || self.lives.is_closed()
            || self.has_ended()
            || self.has_heard_of_an_end()
            || self.may_hold_a_ticket()
            || self.knows_end()
            || self.is_in();
        !in_use && self.lives.said()[1] != 0 && self.annexes() == 0 && none_counted
    }

    /// What is kept of it. `None`: something is under way, or nothing has come that nobody has received, or there is too much of it.
    /// `unmade`: there is a message for a lane that is yet to be made; otherwise the peer must have said that it is not done.
    pub(in crate::fabric::network) fn packed(&self, posted: &Posted, unmade: bool) -> Option<Vec<u8>> {
        let rests = posted.hand.is_at_rest() && posted.made.is_none() && !posted.switch.is_under_way();
        let theirs = unmade || self.has_left() || posted.attempts.is_kept_in(posted.hand.turn());
        if !rests || !theirs || self.lends() {
            return None;
        }
        let windows = self.windows();
        if windows.is_in() {
            return None;
        }
        let [mine, theirs] = self.lives.said();
        let mut record = vec![if self.has_left() { LEFT } else { 0 }];
        let attempts = posted.attempts.numbers();
        let indices = self.indices.load(Ordering::Acquire);
        [mine, theirs, posted.hand.turn().into()].into_iter().for_each(|number| put(&mut record, number));
        attempts.into_iter().chain([windows.era, indices]).for_each(|number| put(&mut record, number.into()));
        put(&mut record, windows.all.len() as u64);
        let mut has_come = false;
        for window in windows.all.values() {
            let name @ (lane, number) = window.name();
            let asked = window.answered.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some();
            if window.is_annex() || asked {
                return None;
            }
            let bytes = window.memory.bytes(bytes_of(name));
            let runs = runs(&bytes);
            has_come |= !runs.is_empty();
            put(&mut record, lane);
            put(&mut record, u64::from(number) << 2 | u64::from(window.is_over()) << 1 | u64::from(window.is_known()));
            put(&mut record, runs.len() as u64);
            let mut before = 0;
            for (from, to) in runs {
                put(&mut record, (from - before) as u64);
                put(&mut record, (to - from) as u64);
                record.extend_from_slice(&bytes[from..to]);
                before = to;
            }
            if record.len() > MOST {
                return None;
            }
        }
        has_come.then_some(record)
    }

    /// The link of a peer as it was packed. `None`: it is none.
    pub(in crate::fabric::network) fn unpacked(self, mut record: &[u8]) -> Option<Result<Link>> {
        let record = &mut record;
        self.unpacked.store(true, Ordering::Relaxed);
        let flags = take(record)?;
        self.left.store(flags as u8 & LEFT != 0, Ordering::Relaxed);
        let _mine = take(record)?;
        self.lives.knows(take(record)?);
        let word = |record: &mut &[u8]| u32::try_from(take(record)?).ok();
        {
            let mut posted = self.lock();
            posted.hand = Handshake::after(posted.hand.is_first(), word(record)?);
            let attempts = [word(record)?, word(record)?, word(record)?];
            posted.attempts.go_on(attempts);
        }
        let era = word(record)?;
        self.indices.store(word(record)?, Ordering::Relaxed);
        self.windows().era = era;
        for _ in 0..take(record)? {
            let (lane, number) = (take(record)?, take(record)?);
            let (name, over, known) = ((lane, u32::try_from(number >> 2).ok()?), number & 2 != 0, number & 1 != 0);
            let window = match self.window(name, bytes_of(name)) {
                Ok(window) => window,
                Err(e) => return Some(Err(e)),
            };
            if known {
                window.was_known();
            }
            if over {
                window.set_over();
            }
            if let Some(chunk) = name.1.checked_sub(1) {
                // The peer wants to know most likely where this one is now.
                self.windows().recent = (name.0, chunk);
            }
            let mut at = 0;
            for _ in 0..take(record)? {
                at += usize::try_from(take(record)?).ok()?;
                let len = usize::try_from(take(record)?).ok()?;
                let (run, rest) = record.split_at_checked(len)?;
                window.memory.put_back(at, run);
                (*record, at) = (rest, at + len);
            }
        }
        Some(Ok(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec(any::<u64>().prop_map(|n| n >> (n % 64)), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            let mut rest = &bytes[..];
            for number in &numbers {
                prop_assert_eq!(take(&mut rest), Some(*number));
            }
            prop_assert_eq!((rest.len(), take(&mut rest)), (0, None));
        }

        /// All bytes that are not zero are in a run, and runs are apart.
        #[test]
        fn runs_have_all_that_is_not_zero(bytes in proptest::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 0..300)) {
            let mut again = vec![0; bytes.len()];
            let mut before = None;
            for (from, to) in runs(&bytes) {
                prop_assert!(bytes[from] != 0 && bytes[to - 1] != 0 && before.is_none_or(|end| from >= end + GAP));
                again[from..to].copy_from_slice(&bytes[from..to]);
                before = Some(to);
            }
            prop_assert_eq!(again, bytes);
        }
    }
}
