//! Writes that leave as one: a call of the provider, with the calls of the system behind it, takes longer than to make several writes of it.
//!
//! The parts of a write with several are put down in their order: over a stream the system copies what has come from the first byte to the last.
//! Whoever sees the second part sees the first, where a processor makes its stores seen in the order in which it makes them; elsewhere, and over
//! providers that promise less, each write is one of its own.

use super::ffi::RmaIov;
use crate::fabric::network::device::{Piece, Place};
use crate::fabric::network::link::PIECES;

/// Parts of a write at most.
const PARTS: usize = 8;
/// Do this processor's stores become seen in their order?
const STORES_IN_ORDER: bool = cfg!(target_arch = "x86_64");

/// Writes that are held back, in the order in which they were posted.
#[derive(Debug)]
pub(super) struct Held {
    pieces: [Piece; PIECES as usize],
    n: usize,
    parts: [(Place, usize); PARTS],
    n_parts: usize,
    /// How many fit.
    most: Most,
    /// Number of the last request; 0: nothing is held.
    pub last: u64,
    /// The last one tells of its end.
    pub asks: bool,
    /// Some of it is memory that has to be kept until it is read.
    pub keeps: bool,
    /// What comes along.
    pub number: Option<u32>,
}

/// How many pieces of this side's memory, and how many places at the other end, a write may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub pieces: usize,
    pub parts: usize,
}

impl Most {
    /// By what the provider takes; `ordered`: over a stream.
    pub fn of(pieces: usize, parts: usize, ordered: bool) -> Most {
        let several = ordered && STORES_IN_ORDER;
        Most { pieces: pieces.clamp(1, PIECES as usize), parts: if several { parts.clamp(1, PARTS) } else { 1 } }
    }
}

impl Held {
    pub fn new(most: Most) -> Held {
        Held {
            pieces: [Piece { addr: 0, len: 0, lkey: 0 }; PIECES as usize],
            n: 0,
            parts: [(Place { addr: 0, rkey: 0 }, 0); PARTS],
            n_parts: 0,
            most,
            last: 0,
            asks: false,
            keeps: false,
            number: None,
        }
    }
    pub fn is_empty(&self) -> bool {
        self.last == 0
    }
    /// Is there nothing that could be added?
    pub fn is_full(&self) -> bool {
        self.n_parts == self.most.parts || self.n == self.most.pieces
    }
    /// Is there room for a write of so many pieces, behind what is there?
    pub fn has_room(&self, pieces: usize) -> bool {
        self.is_empty() || self.n_parts < self.most.parts && self.n + pieces <= self.most.pieces
    }
    /// How far it is filled, to be [taken back](Held::take_back) to.
    pub fn mark(&self) -> (usize, usize, u64, bool) {
        (self.n, self.n_parts, self.last, self.keeps)
    }
    /// What was added since is not held.
    pub fn take_back(&mut self, (n, n_parts, last, keeps): (usize, usize, u64, bool)) {
        (self.n, self.n_parts, self.last, self.keeps) = (n, n_parts, last, keeps);
        (self.asks, self.number) = (false, None);
    }
    /// Adds a write, for which there is room. One of nothing behind others needs no part of its own.
    pub fn add(&mut self, id: u64, pieces: &[Piece], to: Place) {
        if !pieces.is_empty() || self.is_empty() {
            self.pieces[self.n..][..pieces.len()].copy_from_slice(pieces);
            self.parts[self.n_parts] = (to, pieces.iter().map(|p| p.len as usize).sum());
            (self.n, self.n_parts) = (self.n + pieces.len(), self.n_parts + 1);
        }
        self.last = id;
    }
    pub fn clear(&mut self) {
        self.take_back((0, 0, 0, false));
    }
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces[..self.n]
    }
    /// Where the parts go.
    pub fn places(&self, places: &mut [RmaIov; PARTS]) -> usize {
        for (to, (Place { addr, rkey }, len)) in places.iter_mut().zip(&self.parts[..self.n_parts]) {
            *to = RmaIov { addr: *addr, len: *len, key: u64::from(*rkey) };
        }
        self.n_parts
    }
    /// Room for that.
    pub fn no_places() -> [RmaIov; PARTS] {
        [const { RmaIov { addr: 0, len: 0, key: 0 } }; PARTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(addr: u64) -> Piece {
        Piece { addr, len: 8, lkey: 1 }
    }

    #[test]
    fn as_many_are_held_as_the_provider_takes() {
        let mut held = Held::new(Most { pieces: 4, parts: 3 });
        assert!(held.is_empty() && held.has_room(16), "a single write goes in any case");
        held.add(1, &[piece(1)], Place { addr: 10, rkey: 2 });
        held.add(2, &[piece(2), piece(3)], Place { addr: 20, rkey: 2 });
        assert!(!held.is_full() && held.has_room(1) && !held.has_room(2));
        let mark = held.mark();
        held.add(3, &[piece(4)], Place { addr: 30, rkey: 3 });
        assert!(held.is_full() && !held.has_room(1));
        held.take_back(mark);
        held.add(3, &[], Place { addr: 30, rkey: 3 });
        assert_eq!((held.last, held.pieces().len()), (3, 3));
        let mut places = Held::no_places();
        let n = held.places(&mut places);
        assert_eq!(places[..n].iter().map(|p| (p.addr, p.len, p.key)).collect::<Vec<_>>(), [(10, 8, 2), (20, 16, 2)]);
        held.clear();
        assert!(held.is_empty() && held.pieces().is_empty());
    }

    #[test]
    fn nothing_is_held_where_order_is_not_promised() {
        assert_eq!(Most::of(4, 4, false).parts, 1);
        assert_eq!(Most::of(0, 0, true).pieces, 1);
        let mut held = Held::new(Most::of(4, 4, false));
        held.add(1, &[piece(1)], Place { addr: 1, rkey: 1 });
        assert!(held.is_full());
    }
}
