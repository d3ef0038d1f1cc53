//! Multicast groups: packets that the network brings to all members, at most once each, in any order or not at all.
//!
//! A group has a name that its members derive from the job's key and what it is for, so nobody hands it out. A packet whose tag is not the
//! group's, of another job or communicator at the same address, is dropped and counted.
//!
//! ```text
//!   packet:   [ tag 16 | operation 8 | number 4 | length 4 | bytes of the message ]
//! ```
//! What is lost is for those above to find out.

use std::sync::atomic::AtomicU64;

use super::region::Region;
use crate::base::bytes::Bytes;
use crate::base::key::Key;
use crate::base::thread::yield_core;

/// Packets of a window.
pub const WINDOW: usize = 64;
/// Groups that a process is in at most.
pub const GROUPS_MOST: u64 = 8;

/// In front of each packet's bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(in crate::fabric) tag: [u64; 2],
    /// Which operation of the group it belongs to.
    pub operation: u64,
    /// Which packet of it.
    pub number: u32,
    /// Bytes behind the header.
    pub len: u32,
}

/// Bytes of a [`Header`].
pub const HEADER: usize = size_of::<Header>();
static_assertions::const_assert!(HEADER == 32);

/// What a process has done in all its groups.
#[derive(Debug, Default)]
pub struct Counts {
    /// Packets sent to a group, each once.
    pub sent: AtomicU64,
    /// Packets that a member did not get, and that were sent to it alone.
    pub resent: AtomicU64,
    /// Packets of others that came to a group's address.
    pub strange: AtomicU64,
    /// Groups that the process is in.
    pub groups: AtomicU64,
}

/// What a group is called: the same with all members, different from all others'.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    pub(in crate::fabric) tag: [u64; 2],
    /// The device takes packets with this key only.
    pub(in crate::fabric) key: u32,
    /// Where the address comes from.
    pub(in crate::fabric) place: u64,
}

impl Name {
    /// The name of a group for this purpose, of the job whose key for groups this is.
    pub fn new(groups: &Key, purpose: [u64; 2]) -> Name {
        let purpose = purpose.map(u64::to_le_bytes);
        let [a, b, c, place] = groups.derive("group", &[&purpose[0], &purpose[1]]).words();
        // With verbs a key with its highest bit set is for privileged programs.
        Name { tag: [a, b], key: c as u32 & 0x7fff_ffff, place }
    }
}

/// A group that this process is a member of. One thread at a time uses it.
pub trait Group: Send {
    /// Its address, for messages.
    fn address(&self) -> String;
    /// Bytes of a message that a packet carries at most.
    fn payload(&self) -> usize;
    /// What the process has done in its groups.
    fn counts(&self) -> &Counts;
    /// Sends bytes to all members, as packets of `size` bytes from number `first` on, [`WINDOW`] of them at most.
    /// [`has_left`](Group::has_left) says when they have left; before that nothing else is sent. What cannot be sent counts as lost.
    ///
    /// # Safety
    /// `region` covers the bytes, which stay unchanged until they have left.
    unsafe fn send(&mut self, operation: u64, first: u32, bytes: Bytes<'_>, size: usize, region: &Region);
    /// Sends so many packets of `size` zeros, of operation 0.
    fn send_zeros(&mut self, packets: usize, size: usize);
    /// Has all left that was sent?
    fn has_left(&mut self) -> bool;
    /// Hands the packets that have come to `with`, each with its header and its bytes; how many.
    fn take(&mut self, with: &mut dyn FnMut(&Header, Bytes<'_>)) -> usize;

    /// Waits until all has left.
    fn until_left(&mut self) {
        while !self.has_left() {
            yield_core();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_with_the_key_and_the_purpose() {
        let all = [(1, [7, 8]), (2, [7, 8]), (1, [8, 7]), (1, [7, 9])].map(|(s, p)| Name::new(&Key::of(&[s]), p));
        for (i, a) in all.iter().enumerate() {
            assert!(*a == all[i] && a.key >> 31 == 0);
            for b in &all[..i] {
                assert!(a.tag[0] != b.tag[0] && a.tag[1] != b.tag[1] && a.place != b.place);
            }
        }
    }
}
