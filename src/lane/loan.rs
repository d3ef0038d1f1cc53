//! The record of a message that is handed over: the descriptor, which goes where the bytes of a short message would, and the word by which
//! the memory comes back to its owner.
//!
//! ```text
//!   data 0   length 40 | generation 24                      of a landing of kind loan, or of such a record in a chain
//!   data 1   place / 64: 32 | ticket 20 | generation 4 | check 8
//!   words    a table of 32 bits for each ticket, in the owner's heap; by the holder: the generation that has come back
//! ```
//! A **ticket** is the right to hold a block of the owner's heap, and its **generation** says which of the ticket's uses this is. The holder
//! returns a loan by one store of the generation into the ticket's word, at which the owner looks when it needs memory. Nobody else writes
//! there, and the owner does not, so the word needs no clearing, and one that comes late, of an older use, means nothing.

use crate::base::atomics::{AtomicU32, Ordering};
use crate::base::record::Record;
use crate::fabric::shm::peer::{Lending, Peer};

/// Tickets that a rank has.
pub const TICKETS: usize = if cfg!(loom) { 64 } else { 1 << 18 };
/// Loans begin at a multiple of this.
pub const LOAN_GRAIN: usize = 64;

const LEN_BITS: u32 = 40;
const TICKET_BITS: u32 = 20;
/// Generations go from 1 to this, and begin again.
pub const GENERATION_MOST: u32 = (1 << 28) - 1;

static_assertions::const_assert!(TICKETS <= 1 << TICKET_BITS);

/// Which memory a message is, and which use of its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Offset in the owner's heap.
    pub place: u64,
    /// Bytes of the message.
    pub len: u64,
    /// Whose word it comes back by.
    pub ticket: u32,
    /// See above.
    pub generation: u32,
}

impl Descriptor {
    /// The two words that travel.
    #[inline(always)]
    pub fn words(self) -> [u64; 2] {
        let first = self.len | (self.generation as u64) << LEN_BITS;
        let ticket = (self.ticket as u64) << 32 | (self.generation as u64 >> 24) << (32 + TICKET_BITS);
        let second = (self.place / LOAN_GRAIN as u64) | ticket;
        [first, second | Descriptor::check(first, second) << 56]
    }

    /// What they say; `None`: nobody has written these. Whether such memory is there is another question.
    #[inline(always)]
    pub fn read([first, second]: [u64; 2]) -> Option<Descriptor> {
        let own = second & (u64::MAX >> 8);
        let generation = (first >> LEN_BITS) as u32 | ((own >> (32 + TICKET_BITS)) as u32) << 24;
        let ticket = (own >> 32) as u32 & ((1 << TICKET_BITS) - 1);
        let there = second >> 56 == Descriptor::check(first, own) && ticket < TICKETS as u32 && generation != 0;
        there.then_some(Descriptor {
            place: (own & u32::MAX as u64) * LOAN_GRAIN as u64,
            len: Descriptor::length(first),
            ticket,
            generation,
        })
    }

    /// The length in the first word.
    #[inline(always)]
    pub fn length(first: u64) -> u64 {
        first & ((1 << LEN_BITS) - 1)
    }

    fn check(first: u64, second: u64) -> u64 {
        (first.rotate_left(23) ^ second).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
    }
}

/// The generation after this one.
#[inline(always)]
pub fn next_generation(generation: u32) -> u32 {
    if generation >= GENERATION_MOST { 1 } else { generation + 1 }
}

/// A ticket's word. Written by holders only.
#[repr(transparent)]
pub struct Returned(AtomicU32);

const _: () = assert!(size_of::<Returned>() == 4);
// SAFETY: an atomic number.
unsafe impl Record for Returned {}

impl Returned {
    /// The holder reads this use of the memory no more.
    /// SYNC POINT: pairs with [`Returned::is`].
    #[inline(always)]
    pub fn say(&self, generation: u32) {
        self.0.store(generation, Ordering::Release);
    }
    /// Has this use come back? Then the owner may write there. SYNC POINT: pairs with [`Returned::say`].
    #[inline(always)]
    pub fn is(&self, generation: u32) -> bool {
        self.0.load(Ordering::Acquire) == generation
    }
}

/// A peer whose loans this process receives: its heap, and its tickets' words.
#[derive(Clone, Copy)]
pub struct Lender<'a>(&'a Lending);

impl<'a> Lender<'a> {
    /// A peer that is known to lend.
    #[inline(always)]
    pub fn of(peer: &'a Peer) -> Option<Lender<'a>> {
        peer.lending.get().map(Lender)
    }

    /// The same, to be known as that by this number, if it is not yet. `None`: it has made no loans, or its heap cannot be mapped.
    pub fn meet(peer: &'a Peer, number: u32) -> Option<Lender<'a>> {
        let (window, words) = peer.region.loans(TICKETS * size_of::<Returned>())?;
        let (heap, len) = window.parts();
        Some(Lender(peer.lending.get_or_init(|| Lending { number, words, heap, len })))
    }

    /// Its number in this process.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.0.number
    }

    /// The first of its tickets' words.
    pub fn words(self) -> *mut Returned {
        self.0.words.cast()
    }

    /// The address of what a descriptor names, if that lies in the peer's heap.
    #[inline(always)]
    pub fn at(self, d: Descriptor) -> Option<*mut u8> {
        if d.place > self.0.len || d.len > self.0.len - d.place {
            return None;
        }
        // SAFETY: within the heap's window, or just behind its end when there are no bytes.
        Some(unsafe { self.0.heap.add(d.place as usize) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn descriptors_survive_their_words_and_others_are_told_apart() {
        let most = Descriptor {
            place: (u32::MAX as u64) * 64,
            len: (1 << LEN_BITS) - 1,
            ticket: TICKETS as u32 - 1,
            generation: GENERATION_MOST,
        };
        for d in [most, Descriptor { place: 64, len: 0, ticket: 0, generation: 1 }, Descriptor { ticket: 77, ..most }] {
            let words = d.words();
            assert_eq!(Descriptor::read(words), Some(d));
            assert_eq!(Descriptor::length(words[0]), d.len);
        }
        assert_eq!(Descriptor::read([0; 2]), None);
        let [a, b] = most.words();
        let flipped = (0..128).filter(|bit| {
            let (x, y) = if *bit < 64 { (a ^ 1 << bit, b) } else { (a, b ^ 1 << (bit - 64)) };
            Descriptor::read([x, y]).is_some()
        });
        assert!(flipped.count() < 4);
        assert_eq!(next_generation(GENERATION_MOST), 1);
    }
}
