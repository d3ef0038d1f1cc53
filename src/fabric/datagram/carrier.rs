//! The seam between channels and who carries their datagrams. Datagrams may be lost, doubled and late, and overtake each other; what arrives
//! is whole. (What arrives damaged has a check that is wrong.)

use std::io;
use std::os::fd::RawFd;

use super::packet::HEAD_OF_LONG;
use crate::base::error::Result;
use crate::fabric::served::memory::Target;

/// Bytes by which a carrier knows where a process is reached.
pub(in crate::fabric) const SPOT: usize = 24;
/// Where datagrams reach a process; what is in it the carrier knows.
pub(in crate::fabric) type Spot = [u8; SPOT];

/// Datagrams of a [batch](Carrier::send) at most.
pub(in crate::fabric) const BATCH: usize = 32;

/// What a datagram, or a short frame, costs beside its bytes where it waits to be received.
pub(in crate::fabric) const OVERHEAD: u32 = 512;

/// Datagrams of one peer for which there is room in a [`Ring`] until they are received; and what is received there beside them: words without
/// frames, and what comes again.
pub(in crate::fabric) const SLOTS: u32 = 12;
pub(in crate::fabric) const SLOTS_BESIDE: u32 = 4;

/// Room for the datagrams of one peer, which no other's take up, as long as it lives.
pub(in crate::fabric) trait Ring: Send + Sync {
    /// Where the peer reaches it.
    fn spot(&self) -> Spot;
    /// Datagrams for which it has room, [`SLOTS`] at most.
    fn slots(&self) -> u32 {
        SLOTS
    }
    /// Bytes of its memory.
    fn bytes(&self) -> usize;
}

/// Who takes datagrams that have come.
pub(in crate::fabric) trait Taker {
    /// This one.
    fn take(&mut self, datagram: &[u8]);
    /// Has long ones received where they belong, by calling `receive` once. `true`: they are dealt with, received or lost. `false`: it was not
    /// called, and they are to be taken whole.
    fn place(&mut self, _long: &Long, _receive: &mut Receive<'_>) -> bool {
        false
    }
}

impl<F: FnMut(&[u8])> Taker for F {
    fn take(&mut self, datagram: &[u8]) {
        self(datagram);
    }
}

/// Receives what a [`Long`] announces: the heads of the datagrams side by side, and what follows each of them, one behind the other. Have all
/// come?
pub(in crate::fabric) type Receive<'a> = dyn FnMut(&Target<'_>, &mut [u8]) -> bool + 'a;

/// Datagrams that go, or come, in one piece, at most.
pub(in crate::fabric) const GROUPED: usize = 64;

/// Datagrams that have come in one piece, [`GROUPED`] at most, all but the last as long as the first: how the first begins, how long it is, and
/// all of it.
pub(in crate::fabric) struct Long {
    pub head: [u8; HEAD_OF_LONG],
    pub each: usize,
    pub whole: usize,
}

/// What carries the datagrams of a process. All calls may come from several threads at a time, but [`receive`](Carrier::receive).
pub(in crate::fabric) trait Carrier: Send + Sync {
    /// What and where it is, for messages.
    fn describe(&self) -> String;
    /// The network, as both ends must have it.
    fn network(&self) -> String;
    /// Bytes of a datagram at most.
    fn most(&self) -> usize;
    /// Bytes of datagrams, each counted with [`OVERHEAD`], for which there is room until they are received.
    fn room(&self) -> u32;
    /// Where datagrams reach this process.
    fn spot(&self) -> Spot;
    /// A ring for a peer. What comes there is [received](Carrier::receive) with all else, and what is sent to the peer leaves as ever.
    fn ring(&self) -> Result<Box<dyn Ring>>;
    /// Sends datagrams, [`BATCH`] at most: each of the parts from where the one before ends up to its own end. How many have left; the others
    /// have not.
    ///
    /// # Safety
    /// The parts can be read.
    unsafe fn send(&self, to: &Spot, parts: &[libc::iovec], ends: &[usize]) -> io::Result<usize>;
    /// Hands over what has come, a batch of it; may there be more? By one thread at a time.
    fn receive(&self, with: &mut dyn Taker) -> io::Result<bool>;
    /// Hands over where nobody was when datagrams came.
    fn refusals(&self, with: &mut dyn FnMut(&Spot));
    /// Is readable when something has come, since it was armed.
    fn fd(&self) -> RawFd;
    /// The same for rings, where they have a descriptor of their own.
    fn rings_fd(&self) -> Option<RawFd> {
        None
    }
    /// The next to come is told. What came before is to be received afterwards, once more.
    fn arm(&self) -> Result<()> {
        Ok(())
    }
    /// Who waited there is awake.
    fn is_awake(&self) {}
    /// Why somebody may not have answered, as far as can be told.
    fn why_silent(&self, _of: &Spot) -> Option<String> {
        None
    }
    /// Bytes of memory for what comes.
    fn bytes(&self) -> usize;
}
