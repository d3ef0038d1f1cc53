//! A peer and an index in the words of messages to people.

use super::*;
use crate::base::named::Named;

/// (peer, index) in the words of messages to people: the rank in the communicator, and the world's where that is another.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub(super) comm: i32,
    pub(super) peer: u32,
    pub(super) world: u32,
    pub(super) index: i32,
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Name { comm, peer, world, index } = self;
        let named = Named(*comm);
        match (*comm, *index) {
            (COMM_WORLD, TAG_ANY) => write!(f, "(peer {peer}, any index)"),
            (COMM_WORLD, _) => write!(f, "(peer {peer}, index {index})"),
            (_, TAG_ANY) => {
                write!(f, "(peer {peer} of communicator {named}, rank {world} of the world, any index)")
            }
            _ => write!(f, "(peer {peer} of communicator {named}, rank {world} of the world, index {index})"),
        }
    }
}
