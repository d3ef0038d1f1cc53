//! What a datagram of a channel looks like.
//!
//! ```text
//!   0       4    8       16      24      32     40        44        46      47       48
//!   ┌───────┬────┬───────┬───────┬───────┬──────┬─────────┬─────────┬───────┬────────┬────────────────────────────┐
//!   │ magic │ to │ check │ first │ acked │ kept │ granted │ covered │ flags │ frames │ frames, each with its bytes│
//!   └───────┴────┴───────┴───────┴───────┴──────┴─────────┴─────────┴───────┴────────┴────────────────────────────┘
//! ```
//! `to` is the number of the channel at the receiver; `first` the number of the first frame, behind which the others follow in turn; `acked`, `kept`
//! and `granted` are what the sender has received ([`flow`](super::flow)). The check is of the head, of `covered` bytes behind it (all but what lies
//! in registered memory), and of a random word of the receiving channel's that its peer alone has been told, with a key of the job. So what comes
//! from strangers, from other jobs, or belongs to an earlier channel of the same two processes, is known for what it is.

use crate::base::key::Checks;
use crate::fabric::served::frame::{HEADER, Header, Kind, half, word};

/// Bytes of a head.
pub(super) const HEAD: usize = 48;
/// Bytes before those of a long frame, which lies in a datagram by itself: of the datagram's head, and the frame's.
pub(super) const HEAD_OF_LONG: usize = HEAD + HEADER;
const MAGIC: u32 = u32::from_le_bytes(*b"FMdg");
const CHECK_AT: usize = 8;
/// The flag that an acknowledgement is wanted at once.
const ASKS: u8 = 1;

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub to: u32,
    pub first: u64,
    pub acked: u64,
    pub kept: u64,
    pub granted: u32,
    pub covered: u16,
    pub asks: bool,
    pub frames: u8,
}

/// Of a datagram that brings a part of a long write by itself: how many bytes of that are in it and in those behind, as far as it says.
pub(super) fn of_long_write(begins: &[u8]) -> Option<usize> {
    let header = begins.get(HEAD..)?.first_chunk::<HEADER>().and_then(Header::decode)?;
    let follows = match header.kind {
        Kind::Write => header.number as usize,
        Kind::WriteWithNumber => 0,
        _ => return None,
    };
    let is_alone = begins[47] == 1 && half(begins, 44) as u16 == HEADER as u16;
    is_alone.then_some(header.len as usize + follows)
}

/// Is this a datagram of a channel? And of which?
pub(super) fn channel_of(datagram: &[u8]) -> Option<u32> {
    (datagram.len() >= HEAD && half(datagram, 0) == MAGIC).then(|| half(datagram, 4))
}

impl Head {
    /// Writes it where the bytes that it covers follow, with its check.
    pub fn seal(&self, datagram: &mut [u8], token: u64, checks: &Checks) {
        datagram[..4].copy_from_slice(&MAGIC.to_le_bytes());
        datagram[4..8].copy_from_slice(&self.to.to_le_bytes());
        datagram[16..24].copy_from_slice(&self.first.to_le_bytes());
        datagram[24..32].copy_from_slice(&self.acked.to_le_bytes());
        datagram[32..40].copy_from_slice(&self.kept.to_le_bytes());
        datagram[40..44].copy_from_slice(&self.granted.to_le_bytes());
        datagram[44..46].copy_from_slice(&self.covered.to_le_bytes());
        (datagram[46], datagram[47]) = (if self.asks { ASKS } else { 0 }, self.frames);
        let check = check(datagram, self.covered, token, checks);
        datagram[CHECK_AT..][..8].copy_from_slice(&check.to_le_bytes());
    }

    /// `None`: it is not from whom it should be.
    pub fn open(datagram: &[u8], token: u64, checks: &Checks) -> Option<Head> {
        let covered = half(datagram, 44) as u16;
        if datagram.len() < HEAD + usize::from(covered)
            || check(datagram, covered, token, checks) != word(datagram, CHECK_AT)
        {
            return None;
        }
        Some(Head {
            to: half(datagram, 4),
            first: word(datagram, 16),
            acked: word(datagram, 24),
            kept: word(datagram, 32),
            granted: half(datagram, 40),
            covered,
            asks: datagram[46] & ASKS != 0,
            frames: datagram[47],
        })
    }
}

fn check(datagram: &[u8], covered: u16, token: u64, checks: &Checks) -> u64 {
    checks.of(&[
        &token.to_le_bytes(),
        &datagram[..CHECK_AT],
        &datagram[CHECK_AT + 8..HEAD],
        &datagram[HEAD..][..usize::from(covered)],
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::Key;

    #[test]
    fn every_bit_that_is_covered_counts() {
        let checks = Key::of(b"the job's").checks();
        let head = Head { to: 7, first: 1 << 40, acked: !3, kept: 5, granted: 9, covered: 20, asks: true, frames: 2 };
        let mut datagram = vec![3; HEAD + 30];
        head.seal(&mut datagram, 11, &checks);
        assert_eq!(channel_of(&datagram), Some(7));
        assert_eq!(Head::open(&datagram, 11, &checks), Some(head));
        assert_eq!(Head::open(&datagram, 12, &checks), None, "an earlier channel's");
        assert_eq!(Head::open(&datagram, 11, &Key::of(b"another job's").checks()), None);
        for len in 0..HEAD + 20 {
            let cut = &datagram[..len];
            assert!(channel_of(cut).is_none() || Head::open(cut, 11, &checks).is_none(), "cut to {len}");
        }
        for bit in 0..8 * datagram.len() {
            let mut altered = datagram.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let is_covered = bit / 8 < HEAD + 20;
            assert_eq!(Head::open(&altered, 11, &checks).is_none(), is_covered, "bit {bit}");
        }
    }
}
