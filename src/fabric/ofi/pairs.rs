//! What every write brings along, so that none is missed: one more than the write before; and the numbers of a process's connections.
//!
//! Four bytes are what all providers bring, and a number takes 32 bits itself. What a number is for is in its first four bits, and which lane
//! in the others; with these four behind the others the upper half of most is 0. Where it is another than that of the number before, it goes
//! ahead with a write of no bytes.
//!
//! ```text
//!   data of a write   | what 2 | which write 14 | a half of the number 16 |
//! ```

use std::collections::HashSet;

/// Bytes that a write must be able to bring along.
pub(super) const ALONG: usize = 4;
/// Writes are counted up to this.
const WRITES: u16 = 1 << 14;
/// The first bits of a number, which say what it is for.
const FIRST: u32 = 4;

/// The connections of a process, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    all: HashSet<u16>,
    last: u16,
}

impl Pairs {
    /// A number for a new pair.
    pub fn add(&mut self) -> Option<u16> {
        for _ in 0..=u16::MAX {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && self.all.insert(self.last) {
                return Some(self.last);
            }
        }
        None
    }
    /// A pair is gone.
    pub fn remove(&mut self, number: u16) {
        self.all.remove(&number);
    }
}

/// What a write says beside its place in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// The upper half of the number that comes next.
    Ahead,
    /// The lower half of a number.
    Number,
}

/// One direction of a connection, at either of its ends: which write is the next, and the upper half of the last number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    next: u16,
    upper: u16,
}

/// What has come with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Nothing but the write.
    Nothing,
    /// A number.
    Number(u32),
    /// One before it has not come.
    Missed,
}

impl Row {
    fn data(&self, kind: Kind, half: u16) -> u64 {
        u64::from(kind as u32) << 30 | u64::from(self.next) << 16 | u64::from(half)
    }

    /// What a write of no bytes has to bring before one with this number, if it has to go ahead.
    pub fn ahead(&self, number: u32) -> Option<u64> {
        let upper = (number.rotate_left(FIRST) >> 16) as u16;
        (upper != self.upper).then(|| self.data(Kind::Ahead, upper))
    }

    /// What the next write brings along.
    pub fn along(&self, number: Option<u32>) -> u64 {
        match number {
            None => self.data(Kind::Plain, 0),
            Some(number) => self.data(Kind::Number, number.rotate_left(FIRST) as u16),
        }
    }

    /// A write has left with this.
    pub fn left(&mut self, data: u64) {
        self.came(data);
    }

    /// A write has come with this.
    pub fn came(&mut self, data: u64) -> Came {
        let (count, half) = ((data >> 16) as u16 % WRITES, data as u16);
        if count != self.next {
            return Came::Missed;
        }
        self.next = (self.next + 1) % WRITES;
        let is = |kind: Kind| data >> 30 & 3 == kind as u64;
        if is(Kind::Number) {
            return Came::Number((u32::from(self.upper) << 16 | u32::from(half)).rotate_right(FIRST));
        }
        if is(Kind::Ahead) {
            self.upper = half;
        }
        Came::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a write with this number, and how many writes that took.
    fn write(from: &mut Row, to: &mut Row, number: Option<u32>) -> (Came, usize) {
        let mut writes = 1;
        if let Some(ahead) = number.and_then(|n| from.ahead(n)) {
            from.left(ahead);
            assert_eq!(to.came(ahead), Came::Nothing);
            writes += 1;
        }
        let along = from.along(number);
        assert!(u32::try_from(along).is_ok(), "no more than four bytes");
        from.left(along);
        (to.came(along), writes)
    }

    #[test]
    fn numbers_come_as_they_left() {
        let (mut from, mut to) = (Row::default(), Row::default());
        for n in 0..3 * u32::from(WRITES) {
            let number = ((n % 16) << 28) | (n / 16 % 4096);
            assert_eq!(
                write(&mut from, &mut to, Some(number)),
                (Came::Number(number), 1),
                "those of few lanes take one"
            );
        }
        for (number, writes) in [(7, 1), (u32::MAX, 2), (6 << 28, 2), (1 << 12, 2), (3 << 28 | 1 << 12 | 5, 1), (0, 2)]
        {
            assert_eq!(write(&mut from, &mut to, Some(number)), (Came::Number(number), writes));
            assert_eq!(write(&mut from, &mut to, None), (Came::Nothing, 1));
        }
        assert_eq!(from, to);
    }

    #[test]
    fn a_write_that_is_missed_is_noticed() {
        let (mut from, mut to) = (Row::default(), Row::default());
        write(&mut from, &mut to, Some(1));
        from.left(from.along(None));
        let behind = from.along(Some(2));
        assert_eq!(to.came(behind), Came::Missed);
        assert_eq!(to.came(behind), Came::Missed);
    }

    #[test]
    fn a_number_of_a_connection_is_used_once() {
        let mut pairs = Pairs::default();
        let (a, b) = (pairs.add(), pairs.add());
        assert!(a.is_some() && a != b);
        let rest = std::iter::from_fn(|| pairs.add()).count();
        assert_eq!(rest, usize::from(u16::MAX) - 2);
        pairs.remove(a.expect("a number"));
        assert_eq!(pairs.add(), a);
    }
}
