//! The words of a group: of this process alone, or in one place for all members of a node.
//!
//! Each member has made the words by itself, the same ones, when it takes the communicator in. The place is in the region of the lowest
//! member of the node, found by the communicator's epoch. Whoever comes reads it, and stores what is not there yet; so nobody waits for
//! another, and a member may end at any point: who has come through has seen or stored every word. Each counts when it uses them no more,
//! and the last of the node's members gives the memory back, since none can come after it.
//!
//! ```text
//!  GROUPS_AT + epoch * STRIDE
//!  0     members that use them no more                                  1 line
//!  64    words
//! ```
//! A member that has ended without that, or had no room, is not counted; then the memory stays until its owner ends.

use std::ops::Deref;
use std::sync::Arc;

use static_assertions::const_assert;

use crate::base::atomics::{AtomicU64, Ordering};
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{ANY_AT, GROUPS_AT, Mapping, Region, Shown, page_size};

/// From one communicator's words to the next.
const STRIDE: u64 = 1 << 26;
const PLACES: u64 = 1 << 28;
const_assert!(GROUPS_AT + PLACES * STRIDE <= ANY_AT);
/// Before the words.
const HEAD: usize = 64;
/// Fewer bytes each process keeps by itself: a page would be more. Tests, which are not optimised, have no communicators as large as that.
const LEAST: usize = if cfg!(debug_assertions) { 1 } else { 4096 };

/// The words that stand for a group.
#[derive(Clone, Debug)]
pub enum Words {
    /// This process's.
    Own(Arc<[u64]>),
    /// The node's.
    Shared(Arc<Laid>),
}

impl From<Vec<u64>> for Words {
    fn from(words: Vec<u64>) -> Words {
        Words::Own(words.into())
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<T: IntoIterator<Item = u64>>(words: T) -> Words {
        Words::Own(words.into_iter().collect())
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        self.len() == other.len() && (0..self.len()).all(|n| self.get(n) == other.get(n))
    }
}

impl Eq for Words {}

impl Words {
    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "a group that has words has some")]
    pub fn len(&self) -> usize {
        match self {
            Words::Own(words) => words.len(),
            Words::Shared(laid) => laid.len,
        }
    }
    /// Word `n`; 0 beyond the last.
    pub fn get(&self, n: usize) -> u64 {
        match self {
            Words::Own(words) => words.get(n).copied().unwrap_or(0),
            Words::Shared(laid) if n < laid.len => laid.word(n).load(Ordering::Relaxed),
            Words::Shared(_) => 0,
        }
    }
    /// Do other processes have them, too?
    pub fn are_shared(&self) -> bool {
        matches!(self, Words::Shared(_))
    }
}

/// A rank of this node with whom the words of a communicator can lie.
#[derive(Debug)]
pub struct Shelf {
    /// The rank.
    pub holder: Holder,
    /// The communicator's epoch: no other of the holder's has it.
    pub epoch: u32,
    /// Members on this node.
    pub members: u32,
}

/// Whose region it is.
#[derive(Debug)]
pub enum Holder {
    /// This process's.
    Own(Arc<Region>),
    /// A peer's.
    Peer(Arc<Peer>),
}

impl Deref for Holder {
    type Target = Shown;
    fn deref(&self) -> &Shown {
        match self {
            Holder::Own(region) => region,
            Holder::Peer(peer) => &peer.region,
        }
    }
}

impl Shelf {
    /// Are so many bytes worth a place of the node?
    pub fn takes(bytes: usize) -> bool {
        bytes >= LEAST
    }

    fn at(&self) -> u64 {
        GROUPS_AT + u64::from(self.epoch) % PLACES * STRIDE
    }

    /// The same words, in the one place. `None`: there is no room.
    pub fn lay(self, words: &Words) -> Option<Words> {
        let len = words.len();
        let bytes = HEAD + len * size_of::<u64>();
        if bytes as u64 > STRIDE {
            return None;
        }
        // Before anything is stored: want of memory would be a signal there.
        self.holder.commit(self.at(), bytes as u64).ok()?;
        let window = self.holder.map(self.at(), bytes).ok()?;
        let laid = Laid { shelf: self, window, len };
        for n in 0..len {
            let word = words.get(n);
            // Others store the same: what has been read or stored once stays.
            if laid.word(n).load(Ordering::Relaxed) != word {
                laid.word(n).store(word, Ordering::Relaxed);
            }
        }
        Some(Words::Shared(Arc::new(laid)))
    }
}

/// Words in the region of a rank of this node.
#[derive(Debug)]
pub struct Laid {
    shelf: Shelf,
    window: Mapping,
    len: usize,
}

impl Laid {
    fn word(&self, n: usize) -> &AtomicU64 {
        self.window.record(HEAD + n * size_of::<u64>())
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        let gone: &AtomicU64 = self.window.record(0);
        // SYNC POINT: pairs with the same of the others: who gives the memory back does so after all have read what they wanted to.
        if gone.fetch_add(1, Ordering::AcqRel) + 1 == u64::from(self.shelf.members) {
            let pages = self.window.len().next_multiple_of(page_size());
            // If not, it stays until its owner ends.
            let _ = self.shelf.holder.punch(self.shelf.at(), pages as u64);
        }
    }
}
