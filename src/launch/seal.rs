//! The check on each line between a rank and its keeper, and between keepers, of a job by variables: that it is the other side's next line, and unaltered.
//!
//! ```text
//!   cmd=barrier_in check=4f0c…            the first 16 bytes of HMAC(key; number of the line, the line), in hexadecimal
//! ```
//! Each connection has a key for each direction, made from the job's secret and from numbers that both sides have drawn by lot for this
//! connection only. So a line cannot be forged, altered, left out, said twice, sent back to its sender or brought to another connection
//! without the other side's noticing. An abort may be said at any time, by a thread that knows of no other, and so is the last line whatever
//! came before it: it has a number of its own.

use super::wire;
use crate::base::key::{CHECK, Key};

const FIELD: &str = " check=";
/// The number of an abort.
const LAST: u64 = u64::MAX;

/// The keys of a connection, by who speaks.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) rank: Key,
    pub(crate) root: Key,
}

/// One direction of a connection: what one side says and the other hears.
pub(crate) struct Seal {
    key: Key,
    next: u64,
}

impl Seal {
    pub(crate) fn new(key: Key) -> Seal {
        Seal { key, next: 0 }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The line (without newline) as it is sent (with it).
    pub(crate) fn put(&mut self, line: &str) -> String {
        let number = self.next;
        self.next += 1;
        sealed(&self.key, number, line)
    }

    /// The line that has come, without its newline, as it was before it was sealed. `None`: it is not the other side's next line.
    pub(crate) fn take<'a>(&mut self, came: &'a [u8]) -> Option<&'a [u8]> {
        let (line, check) = parts(came)?;
        if self.key.verifies(&[&self.next.to_le_bytes(), line], &check) {
            self.next += 1;
            return Some(line);
        }
        last(&self.key, came)
    }
}

/// An abort as it is sent.
pub(crate) fn put_last(key: &Key, line: &str) -> String {
    sealed(key, LAST, line)
}

/// The abort that has come, as it was before. `None`: it is none.
pub(crate) fn last<'a>(key: &Key, came: &'a [u8]) -> Option<&'a [u8]> {
    let (line, check) = parts(came)?;
    key.verifies(&[&LAST.to_le_bytes(), line], &check).then_some(line)
}

fn sealed(key: &Key, number: u64, line: &str) -> String {
    let check = key.check(&[&number.to_le_bytes(), line.as_bytes()]);
    format!("{line}{FIELD}{}\n", wire::hex(&check))
}

fn parts(came: &[u8]) -> Option<(&[u8], [u8; CHECK])> {
    let (rest, check) = came.split_at_checked(came.len().checked_sub(2 * CHECK)?)?;
    let line = rest.strip_suffix(FIELD.as_bytes())?;
    Some((line, wire::unhex(std::str::from_utf8(check).ok()?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seal() -> Seal {
        Seal::new(Key::of(b"a key"))
    }

    #[test]
    fn lines_come_in_order_once_and_whole() {
        let (mut says, mut hears) = (seal(), seal());
        let sent: Vec<String> = ["cmd=init", "cmd=barrier_in", "cmd=barrier_in"].map(|l| says.put(l)).into();
        let bytes = |k: usize| sent[k].trim_end().as_bytes();
        assert_ne!(sent[1], sent[2]);
        assert_eq!(hears.take(bytes(1)), None, "out of order");
        assert_eq!(hears.take(bytes(0)), Some(&b"cmd=init"[..]));
        assert_eq!(hears.take(bytes(0)), None, "twice");
        assert_eq!(hears.take(bytes(2)), None, "one left out");
        assert_eq!(hears.take(b"cmd=barrier_in"), None, "without a check");
        assert_eq!(hears.take(b""), None);
        assert_eq!(hears.take(bytes(1)), Some(&b"cmd=barrier_in"[..]));
        let mut other = Seal::new(Key::of(b"another key"));
        assert_eq!(hears.take(other.put("cmd=barrier_in").trim_end().as_bytes()), None);
    }

    #[test]
    fn an_abort_may_come_at_any_time() {
        let (mut says, mut hears) = (seal(), seal());
        let abort = put_last(&Key::of(b"a key"), "cmd=abort exitcode=3");
        hears.take(says.put("cmd=init").trim_end().as_bytes()).unwrap();
        assert_eq!(hears.take(abort.trim_end().as_bytes()), Some(&b"cmd=abort exitcode=3"[..]));
        let said = says.put("cmd=abort exitcode=3");
        assert_eq!(last(&Key::of(b"a key"), said.trim_end().as_bytes()), None);
    }

    proptest! {
        #[test]
        fn every_bit_counts(line in "cmd=[ -~]{0,100}", at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut came = seal().put(&line).into_bytes();
            came.pop();
            prop_assert_eq!(seal().take(&came), Some(line.as_bytes()));
            let at = at.index(came.len());
            came[at] ^= 1 << bit;
            // Hexadecimal digits may be written in two ways; that changes nothing.
            let same = at >= line.len() + FIELD.len() && bit == 5 && came[at].is_ascii_alphabetic();
            prop_assert_eq!(seal().take(&came).is_some(), same);
        }

        #[test]
        fn any_bytes_are_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(seal().take(&bytes), None);
        }
    }
}
