//! Blocks of multicasts to several nodes, while others may look into them.
//!
//! Whoever tells of a block keeps it until those whom it has told have acknowledged: the block's counts say so. Leaders that gather parts
//! read from others, too, who are not above them. Such a reader asks where the block is, by a question to the thread between nodes; from then
//! on it belongs to the block's *readers*, and the block stays until it has written that it *left*, or is dead. Nobody waits for a
//! reader but the block's memory: the multicast is complete without it.
//!
//! ```text
//!   reader                                    who has the block
//!   where is it? (multicast's name)    ───▶   not here: asks again, or has it from who told
//!                                      ◀───   address, key, its word
//!   parts, data                        ◀───   reads
//!   left                               ───▶   its word = 1
//! ```
//! A block whose multicast is complete stays a moment ([`STAYS_NS`]) for readers that have not asked yet, unless its room is wanted.

use super::forms::Form;
use super::wide::left_at;
use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::fabric::network::Place;
use crate::lane::BlockRef;
use crate::p2p::any_source::AnySource;
use crate::p2p::endpoint::Endpoint;

/// Which multicast: its master's rank in the world, and the master's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::p2p) struct Name {
    pub(in crate::p2p) master: u32,
    pub(in crate::p2p) number: u64,
}

/// Readers that a block can have: more than there are levels in any tree. Who comes later has all from who told it.
pub(super) const LEFT: usize = 32;
/// How long a block in parts stays at least, and so how long a leader has hopes of one that it reads from.
pub(super) const STAYS_NS: u64 = 10_000_000;

/// A block that this process has of a multicast to several nodes.
pub(in crate::p2p::any_source) struct Held {
    pub(super) block: BlockRef,
    parts: Option<InParts>,
    /// This process's own multicast, which others hand on in this form: to this group.
    handed_on: Option<(Form, Box<[u64]>)>,
}

/// Where other leaders read as well.
struct InParts {
    name: Name,
    place: Place,
    /// Ranks of the world.
    readers: Vec<u32>,
    /// Until when it stays; `None`: this leader is at it.
    until_ns: Option<u64>,
}

impl Held {
    /// One that only those look into whom this process has told.
    pub(super) fn of_tree(block: BlockRef) -> Held {
        Held { block, parts: None, handed_on: None }
    }

    /// One that its master has sent to the members of this bitmap.
    pub(super) fn sent(block: BlockRef, form: Form, bits: &[u64]) -> Held {
        // Of what the master tells all itself nothing is on its way any more.
        let handed_on = (form != Form::Flat).then(|| (form, bits.into()));
        Held { handed_on, ..Held::of_tree(block) }
    }

    /// One that other leaders find there.
    pub(super) fn in_parts(block: BlockRef, name: Name, place: Place) -> Held {
        let parts = InParts { name, place, readers: Vec::new(), until_ns: None };
        Held { parts: Some(parts), ..Held::of_tree(block) }
    }

    /// This leader has all, or has given up.
    pub(super) fn is_over(&mut self) {
        if let Some(parts) = &mut self.parts {
            parts.until_ns = Some(now_ns() + STAYS_NS);
        }
    }

    /// Has it never been found by anybody?
    pub(super) fn is_unread(&self) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.readers.is_empty())
    }

    /// Does no reader need it? `pressed`: its room is wanted.
    pub(super) fn may_go(&self, ep: &Endpoint, pressed: bool) -> bool {
        let Some(parts) = &self.parts else { return true };
        if !parts.until_ns.is_some_and(|until| pressed || now_ns() >= until) {
            return false;
        }
        let Some(shared) = super::own(ep, self.block) else { return true };
        let has_left = |slot: usize| {
            let word: Option<&AtomicU64> = shared.records_end().record(left_at(shared.words) + 8 * slot);
            // SYNC POINT: the reader has written it behind its reads.
            word.is_none_or(|word| word.load(Ordering::Acquire) != 0)
        };
        let mut stay = (0..parts.readers.len()).filter(|slot| !has_left(*slot)).peekable();
        if stay.peek().is_none() {
            return true;
        }
        let lost = ep.lost_elsewhere();
        stay.all(|slot| ep.is_dead(parts.readers[slot]) || lost.contains(&parts.readers[slot]))
    }
}

impl AnySource {
    /// Answers a leader of another node that wants to read from this one's block of a multicast: address, key and its word's number.
    pub fn serve_block(&self, reader: u32, master: u32, number: u64) -> Option<[u64; 2]> {
        let (name, mut all) = (Name { master, number }, self.wides());
        let parts = all.iter_mut().find_map(|held| held.parts.as_mut().filter(|parts| parts.name == name))?;
        let slot = parts.readers.len();
        if slot == LEFT {
            return None;
        }
        parts.readers.push(reader);
        Some([parts.place.addr, parts.place.rkey as u64 | (slot as u64) << 32])
    }

    /// Are there multicasts of this process to the members of this bitmap that others hand on? In which form, a chain first.
    pub(super) fn handed_on_to(&self, bits: &[u64]) -> Option<Form> {
        let all = self.wides();
        let to_them = all.iter().filter_map(|held| held.handed_on.as_ref().filter(|(_, group)| **group == *bits));
        to_them.map(|(form, _)| *form).max_by_key(|form| *form == Form::Chain)
    }

    /// Blocks of multicasts to several nodes that this process has.
    pub fn blocks_held(&self) -> usize {
        self.wides().len()
    }
}
