//! Receives of any index: their posting, who has claimed it, and what announces messages to them.

use super::PostingKind;
use crate::base::atomics::AtomicU64;

/// A posting of [`PostingKind::AnyIndex`]: it has no address, and lies beside the announcements. 0: there is none.
pub const ANY_POSTED: u64 = PostingKind::AnyIndex as u64;

/// That posting when a message has claimed it: message `seq` of `slot`. So its sender knows that a receive is posted for it, and the receiver
/// which message the receive is for.
#[inline]
pub fn any_claim(slot: usize, seq: u64) -> u64 {
    1 << 63 | (slot as u64) << 40 | seq & ((1 << 40) - 1)
}

/// The slot of a claim.
#[inline]
pub fn slot_of_claim(claim: u64) -> usize {
    (claim >> 40) as usize & 0x1_ffff
}

/// An announcement to a receiver of any index, by the sender: half a line, whose other half is the other direction's announcement of the
/// same number. Between nodes it is `head` alone.
#[repr(C, align(32))]
pub struct Announcement {
    /// number + 1 32 | [`CARRIES`] | slot. Written last.
    pub head: AtomicU64,
    /// With [`CARRIES`]: the message's landing.
    pub land: AtomicU64,
    /// With [`CARRIES`]: its data words.
    pub data: [AtomicU64; 2],
}

/// The announcement brings its message along.
pub const CARRIES: u64 = 1 << 31;

/// The head of announcement `n`, of a slot.
#[inline(always)]
pub fn announcement_head(n: u64, slot: usize, carries: u64) -> u64 {
    (n + 1) << 32 | carries | slot as u64
}

/// The slot of an announcement's head.
#[inline(always)]
pub fn slot_of_head(head: u64) -> usize {
    (head & (CARRIES - 1)) as usize
}
