//! Which connection a write has come by, and that none is missed: every write brings a number along, one more than the write before.
//!
//! ```text
//!   data of a write   | pair 16 | with a number 1 | which write 15 | the number 32 |
//! ```

use std::collections::HashMap;

/// Writes are counted up to this.
pub(super) const WRITES: u16 = 1 << 15;

/// The pairs of a process, by their numbers: which write is the next to come.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    next: HashMap<u16, u16>,
    last: u16,
}

/// What has come with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Nothing but the write; or it is of a pair that is gone.
    Nothing,
    /// A number, by this pair.
    Number(u32, u32),
    /// By this pair, and one before it has not come.
    Missed(u32),
}

impl Pairs {
    /// A number for a new pair.
    pub fn add(&mut self) -> Option<u16> {
        for _ in 0..=u16::MAX {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.next.contains_key(&self.last) {
                self.next.insert(self.last, 0);
                return Some(self.last);
            }
        }
        None
    }
    /// A pair is gone.
    pub fn remove(&mut self, number: u16) {
        self.next.remove(&number);
    }
    /// Notes what has come with a write.
    pub fn note(&mut self, data: u64) -> Came {
        let (pair, counted, number) = ((data >> 48) as u16, (data >> 32) as u16, data as u32);
        let Some(next) = self.next.get_mut(&pair) else { return Came::Nothing };
        if *next != counted % WRITES {
            return Came::Missed(u32::from(pair));
        }
        *next = (*next + 1) % WRITES;
        if counted & WRITES != 0 { Came::Number(u32::from(pair), number) } else { Came::Nothing }
    }
}

/// What comes with a write.
pub(super) fn data(pair: u16, count: u16, number: Option<u32>) -> u64 {
    let count = count | if number.is_some() { WRITES } else { 0 };
    u64::from(pair) << 48 | u64::from(count) << 32 | u64::from(number.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_missed_is_noticed() {
        let mut pairs = Pairs::default();
        let (a, b) = (pairs.add().expect("a number"), pairs.add().expect("another"));
        assert_ne!(a, b);
        for n in 0..3 * u32::from(WRITES) {
            let count = (n % u32::from(WRITES)) as u16;
            assert_eq!(pairs.note(data(a, count, Some(n))), Came::Number(u32::from(a), n));
            assert_eq!(pairs.note(data(b, count, None)), Came::Nothing);
        }
        assert_eq!(pairs.note(data(a, 1, None)), Came::Missed(u32::from(a)));
        assert_eq!(pairs.note(data(b, 0, Some(u32::MAX))), Came::Number(u32::from(b), u32::MAX));
        assert_eq!(pairs.note(data(999, 0, None)), Came::Nothing);
    }
}
