//! The short way: a copy or an atomic operation between this rank's memory and memory that it shares with another rank of its node.
//!
//! Nothing is explained here. Whatever is not as it should be, or not of this kind, goes the long way ([`super::direct`]), which finds
//! out by itself, and says, what it is.

use super::Rma;
use super::address::{GlobalAddress, Split};
use super::direct::Fetch;
use super::record::{Entry, Window};
use super::view::{Local, Using, using};
use crate::base::atomics::Ordering;
use crate::base::bytes::Room;

/// The other rank of an operation, whose key is written down as used.
struct Other<'a> {
    local: &'a Local,
    /// The processor may change words there.
    words: bool,
    _use: Using<'a>,
}

impl Rma {
    /// Copies, if one end is this rank's and the other in memory that both share. The caller does not end registrations of its own meanwhile.
    #[inline(always)]
    pub(super) fn copy_short(&self, dst: GlobalAddress, src: GlobalAddress, len: usize) -> Option<()> {
        let (me, split) = (self.rank(), self.split);
        if split.rank(src) == Some(me) {
            let from = self.own_short(split, src, len)?;
            let other = self.other(split, dst)?;
            let to = self.here_short(split, &other, dst, len)?;
            to.copy_as_words(*from);
        } else if split.rank(dst) == Some(me) {
            let to = self.own_short(split, dst, len)?;
            let other = self.other(split, src)?;
            let from = self.here_short(split, &other, src, len)?;
            to.copy_as_words(*from);
        } else {
            return None;
        }
        Some(())
    }

    /// Does an atomic operation on a word of memory that both share; what was there goes to memory of this rank. As for `copy_short`.
    #[inline(always)]
    pub(super) fn fetch_short(&self, fetch: &Fetch, dst: GlobalAddress) -> Option<()> {
        let split = self.split;
        if split.rank(dst) != Some(self.rank()) {
            return None;
        }
        let bytes = fetch.bytes();
        let into = self.own_short(split, dst, bytes)?;
        let other = self.other(split, fetch.at)?;
        let at = self.here_short(split, &other, fetch.at, bytes)?;
        if !other.words || !at.is_word(bytes) || !into.is_word(bytes) {
            return None;
        }
        let old = fetch.apply(at);
        Fetch { value: old, ..*fetch }.put(into);
        Some(())
    }

    /// The rank of an address, if it is another one of this node.
    #[inline(always)]
    fn other(&self, split: Split, ga: GlobalAddress) -> Option<Other<'_>> {
        let rank = split.rank(ga)?;
        let usage = using(&self.own, rank, split.key(ga)).ok()?;
        let view = self.view_short(rank)?;
        let local = view.local()?;
        Some(Other { local, words: !view.changes, _use: usage })
    }

    /// Where this process has `len` bytes of another's shared memory.
    #[inline(always)]
    fn here_short<'a>(&self, split: Split, other: &Other<'a>, ga: GlobalAddress, len: usize) -> Option<Room<'a>> {
        let peer = other.local.peer.as_ref()?;
        if other.local.gone().is_some() {
            return None;
        }
        let (addr, life) = entry_short(split, &other.local.window, ga, len)?;
        if life & Entry::SHARED == 0 {
            return None;
        }
        peer.region.heap()?.room(addr, len)
    }

    #[inline(always)]
    fn own_short(&self, split: Split, ga: GlobalAddress, len: usize) -> Option<Room<'_>> {
        let entry = self.entries.of(split.key(ga));
        // SAFETY: as this rank has registered it; the caller ends no registrations of its own meanwhile. See `resolve`.
        fitting(split, entry, ga, len).map(|(addr, _)| unsafe { Room::known(addr as *mut u8, len) })
    }
}

/// What a table says about `len` bytes from an address on: the owner's address, and the entry's life.
#[inline(always)]
fn entry_short(split: Split, window: &Window, ga: GlobalAddress, len: usize) -> Option<(u64, u64)> {
    let entry = window.entry(split.key(ga) as usize);
    // SYNC POINT: as in `look_up`.
    let life = entry.life.load(Ordering::Acquire);
    let (base, have) = (entry.base.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed));
    fitting(split, [life, base, have], ga, len)
}

/// Is what an entry says what an address wants? The owner's address, and the entry's life.
#[inline(always)]
fn fitting(split: Split, [life, base, have]: [u64; 3], ga: GlobalAddress, len: usize) -> Option<(u64, u64)> {
    let offset = split.offset(ga);
    let (flags, want) =
        (Entry::VALID | 1 << Entry::COLOUR_AT, Entry::VALID | u64::from(split.colour(ga)) << Entry::COLOUR_AT);
    let fits = offset <= have && have - offset >= len as u64;
    (life & flags == want && fits).then(|| (base.wrapping_add(offset), life))
}
