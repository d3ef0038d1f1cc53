//! What tells a leader of a multicast to several nodes.

use static_assertions::const_assert;

use super::forms::Form;
use super::held::Name;
use crate::fabric::network::Place;
use crate::p2p::any_source::ring::AREA_BYTES;
use crate::p2p::endpoint::Endpoint;

/// What is sent to a leader.
#[derive(Clone, Copy)]
pub(super) struct Note {
    /// Where the wide record is: in the sender's spool, and its address and key.
    pub(super) at: u64,
    pub(super) addr: u64,
    pub(super) key: u32,
    /// Bytes of the message.
    pub(super) size: u64,
    /// Who has sent it: rank in the world.
    pub(super) holder: u32,
    /// How the message is handed on.
    pub(super) form: Form,
    /// The multicast.
    pub(super) name: Name,
    /// What tells the sender's topology from others; 0: it has none.
    pub(super) topology: u32,
    /// Bytes of the message that are in the block already, in a form without parts.
    pub(super) there: u64,
}

impl Note {
    /// As it is sent, with the group behind it if that is short.
    pub(super) fn words(self, group: &[u64]) -> Vec<u64> {
        let master = self.key as u64 | (self.name.master as u64) << 32;
        let how = self.form as u64 | (self.topology as u64) << 8;
        let mut words =
            vec![self.at, self.addr, master, self.size, self.holder as u64 | how << 32, self.name.number, self.there];
        words.extend(group.iter().filter(|_| group.len() <= GROUP_WORDS));
        words
    }
    /// `None`: there is no such form.
    pub(super) fn of(words: &[u64; NEWS_WORDS]) -> Option<Note> {
        let [at, addr, whose, size, from, number, there, ..] = *words;
        let (form, name) = (Form::of((from >> 32) as u8)?, Name { master: (whose >> 32) as u32, number });
        Some(Note {
            at,
            addr,
            key: whose as u32,
            size,
            holder: from as u32,
            form,
            name,
            topology: (from >> 40) as u32,
            there,
        })
    }
    /// Where other leaders find the block.
    pub(super) fn place(&self) -> Place {
        Place { addr: self.addr, rkey: self.key }
    }
}

pub(super) const NOTE_WORDS: usize = 7;
/// Words of the longest bitmap that goes with it.
const GROUP_WORDS: usize = 16;
pub(super) const NEWS_WORDS: usize = NOTE_WORDS + GROUP_WORDS;
const_assert!(NEWS_WORDS * 8 <= AREA_BYTES);

/// What tells this process's topology from others, in 24 bits.
pub(super) fn topology_of(ep: &Endpoint) -> u32 {
    ep.topology.as_ref().map_or(0, |topology| topology.digest() >> 8 | 1)
}
