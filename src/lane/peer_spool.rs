//! A peer's spool, which the peer may have damaged: what lies there is reached by an offset that has been checked, and in no other way.
//!
//! Offsets and lengths come out of shared memory, where the peer may write them again at any time. So they are read once by whoever asks,
//! and handed to [`PeerSpool::block`] and [`PeerBlock::bytes`], which give an address only for what lies within the window.

use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::record::Record;
use crate::base::run::Run;
use crate::fabric::shm::region::{Mapping, SPOOL_WINDOW};
use crate::lane::record::{BLOCK_HEADER, Block, LONG_LENGTH};

/// Blocks begin at a multiple of this.
const GRAIN: u64 = 64;
/// A record's header, what its end is rounded up by, and the two words of the next one that may be read.
const SLACK: u64 = 64;

/// The spool of a rank as this process has it mapped.
#[derive(Clone, Copy)]
pub struct PeerSpool(*mut u8);

// SAFETY: an address of memory that stays mapped as long as the peer is known, shared by design; what is there is atomics and bytes.
unsafe impl Send for PeerSpool {}
// SAFETY: as above.
unsafe impl Sync for PeerSpool {}

impl PeerSpool {
    /// The spool in a window, which stays mapped as long as this is used.
    pub fn new(window: &Mapping) -> PeerSpool {
        assert!(window.len() >= SPOOL_WINDOW);
        PeerSpool(window.as_ptr())
    }

    /// The block that begins a chain with message `seq`, or goes on with it, if such a one of this owner's is there.
    #[inline]
    pub fn chained(self, at: u64, seq: u64, owner: u64) -> Option<PeerBlock> {
        let block = self.block(at)?;
        // SYNC POINT: pairs with the release in `Sender::chain`, since the word that led here may be an old one.
        let same = block.header().first.load(Ordering::Acquire) == seq;
        (same && block.header().owner.load(Ordering::Relaxed) == owner).then_some(block)
    }

    /// The block at an offset, if one can lie there.
    #[inline]
    pub fn block(self, at: u64) -> Option<PeerBlock> {
        let room = (SPOOL_WINDOW as u64).checked_sub(at)?;
        if !at.is_multiple_of(GRAIN) || room < BLOCK_HEADER as u64 + SLACK {
            return None;
        }
        // SAFETY: within the window.
        Some(PeerBlock { at: unsafe { self.0.add(at as usize) }, room })
    }

    /// The block whose only message has `len` bytes of payload at this offset: the payload and its block.
    pub fn message(self, payload: u64, len: u64) -> Option<(Run, PeerBlock)> {
        let header = BLOCK_HEADER as u64 + if len < LONG_LENGTH { 8 } else { 16 };
        let block = self.block(payload.checked_sub(header)?)?;
        Some((block.bytes(header, len)?, block))
    }
}

/// A block of a peer's spool: its header, and what is behind it as far as the window goes. All zero bytes are no block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PeerBlock {
    at: *mut u8,
    room: u64,
}

impl PeerBlock {
    /// The header.
    #[inline]
    pub fn header<'a>(self) -> &'a Block {
        // SAFETY: within the window, aligned, as `PeerSpool::block` has seen to; atomics only. The window stays mapped.
        unsafe { &*self.at.cast::<Block>() }
    }

    /// Bytes from its beginning to the end of the window.
    #[inline]
    pub fn room(self) -> u64 {
        self.room
    }

    /// `len` bytes from `from` on, counted from the block's beginning, if they lie within the window.
    #[inline]
    pub fn bytes(self, from: u64, len: u64) -> Option<Run> {
        if from > self.room || len > self.room - from {
            return None;
        }
        // SAFETY: within the window. The peer writes there before it says so, and again when this side has said that it is done.
        Some(unsafe { Run::new(self.at.add(from as usize), len as usize) })
    }

    /// The record at `from`, counted from the block's beginning, if it lies within the window and can begin there.
    #[inline]
    pub(crate) fn at<'a, T: Record>(self, from: u64) -> Option<&'a T> {
        self.bytes(from, size_of::<T>() as u64)?.record(0)
    }

    /// The `len` bytes of payload of the record at `next`, which [`PeerBlock::has_record`] is true of.
    #[inline(always)]
    pub fn payload(self, next: u64, len: usize) -> Run {
        debug_assert!(self.has_record(next, len as u64));
        // SAFETY: within the window, as said, and as in `bytes`.
        unsafe { Run::new(self.at.add(next as usize + 8), len) }
    }

    /// The receiver will never look at this use of the block again.
    #[inline]
    pub fn finish(self, generation: u32) {
        // SYNC POINT: pairs with `Spool::is_done`: all reads of the block come before.
        self.header().done.store(generation, Ordering::Release);
    }

    /// The same, of whatever use it is in.
    #[inline]
    pub fn finish_this(self) {
        self.finish(self.header().gener.load(Ordering::Relaxed));
    }

    /// The same, if it is in the use that somebody has named; `false`: it is not, and is left alone.
    #[inline]
    pub fn finish_if(self, generation: u32) -> bool {
        let same = self.header().gener.load(Ordering::Relaxed) == generation;
        if same {
            self.finish(generation);
        }
        same
    }

    /// Do the `len` bytes of a record at `next`, and the words behind it that are read before its length is known, lie within the window?
    #[inline(always)]
    pub fn has_record(self, next: u64, len: u64) -> bool {
        next + len + SLACK <= self.room
    }

    /// The first word of the record at `next`: behind the header, or behind a record that [`PeerBlock::has_record`] was true of.
    #[inline(always)]
    pub fn record<'a>(self, next: u64) -> &'a AtomicU64 {
        debug_assert!(next.is_multiple_of(8) && next + 16 <= self.room);
        // SAFETY: within the window, as said, at a multiple of 8; an atomic.
        unsafe { &*self.at.add(next as usize).cast::<AtomicU64>() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::fabric::shm::region::{Region, SPOOL_AT};

    #[test]
    fn nothing_beyond_the_window_has_an_address() {
        let region = Region::create(0, 1).unwrap();
        let window = region.map(SPOOL_AT, SPOOL_WINDOW).unwrap();
        let spool = PeerSpool::new(&window);
        let end = SPOOL_WINDOW as u64;
        for at in [1, 8, 63, end - 128, end - 64, end, end + 64, u64::MAX - 63, u64::MAX, 1 << 63] {
            assert!(spool.block(at).is_none(), "{at:#x}");
        }
        for at in [0, 64, end - 192] {
            let block = spool.block(at).unwrap();
            assert_eq!(block.room(), end - at);
            assert!(block.bytes(0, end - at).is_some() && block.bytes(end - at, 0).is_some());
            for (from, len) in [(0, end - at + 1), (end - at + 1, 0), (u64::MAX, 1), (1, u64::MAX), (128, end)] {
                assert!(block.bytes(from, len).is_none(), "{from:#x} {len:#x} of {at:#x}");
            }
        }
        let last = spool.block(end - 4096).unwrap();
        assert!(last.has_record(128, 4096 - 192) && !last.has_record(128, 4096 - 191) && !last.has_record(4096, 0));
        assert!(spool.message(136, 8).is_some() && spool.message(135, 8).is_none() && spool.message(8, 8).is_none());
        assert!(spool.message(136, end).is_none() && spool.message(end, 0).is_none());
    }
}
