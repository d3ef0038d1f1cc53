//! What the end that dials says before its first frame: which connection this is.

use crate::fabric::served::frame::{Name, half, word};

/// Bytes of a [`Greeting`].
pub(super) const GREETING: usize = 32;
const GREETS: u64 = u64::from_le_bytes(*b"FMPL tcp");

/// With whom it wants to speak, and who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub to: Name,
    pub from: Name,
}

impl Greeting {
    pub fn encode(&self) -> [u8; GREETING] {
        let mut b = [0; GREETING];
        b[..8].copy_from_slice(&GREETS.to_le_bytes());
        b[8..12].copy_from_slice(&self.to.number.to_le_bytes());
        b[12..16].copy_from_slice(&self.from.number.to_le_bytes());
        b[16..24].copy_from_slice(&self.to.token.to_le_bytes());
        b[24..].copy_from_slice(&self.from.token.to_le_bytes());
        b
    }
    /// `None`: somebody else has dialled.
    pub fn decode(b: &[u8; GREETING]) -> Option<Greeting> {
        let name = |number: usize, token: usize| Name { number: half(b, number), token: word(b, token) };
        (word(b, 0) == GREETS).then(|| Greeting { to: name(8, 16), from: name(12, 24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_comes_as_it_went() {
        let greeting = Greeting { to: Name { number: 1, token: !2 }, from: Name { number: !3, token: 4 } };
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        assert_eq!(Greeting::decode(&[b'G'; GREETING]), None);
    }
}
