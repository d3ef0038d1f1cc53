//! A (peer, index) for one owner.
//!
//! The methods of [`Comm`] claim an index for each call. A channel has claimed it for good, and its methods want it mutably, so
//! the compiler sees to it that one thread at a time uses it. It costs what the C interface costs.

use crate::base::error::Result;
use crate::base::layout::Layout;
use crate::comm::claim::{Claim, Direction};
use crate::comm::communicator::number;
use crate::comm::plain::{incoming, outgoing};
use crate::comm::shape::{pieces, pieces_mut, with_list};
use crate::comm::{Comm, PROC_NULL, Peer, Plain, Received, Strided, StridedMut};
use crate::p2p::{self, endpoint::endpoint, sendbuf};

/// Both directions of a (peer, index), for one owner: the fast path for messages of a few bytes.
///
/// Made by [`Comm::channel`]. As long as it lives every other call on this (peer, index) gets
/// [`Code::Busy`](crate::Code::Busy). It may go to another thread; the two directions may go to two.
///
/// ```no_run
/// let job = fmpl::init(4)?;
/// let (mut sender, mut receiver) = job.world().channel(1, 0)?.split();
/// std::thread::scope(|s| {
///     s.spawn(move || (0..1000u64).try_for_each(|k| sender.send(&[k])));
///     s.spawn(move || (0..1000u64).try_for_each(|_| receiver.recv(&mut [0u64]).map(drop)));
/// });
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct Channel<'job> {
    sender: Sender<'job>,
    receiver: Receiver<'job>,
}

/// The sending direction of a (peer, index), for one owner. Made by [`Comm::sender`] or [`Channel::split`].
pub struct Sender<'job> {
    pub(crate) comm: i32,
    pub(crate) dst: Peer,
    pub(crate) index: i32,
    _claim: Option<Claim<'job>>,
}

/// The receiving direction of a (peer, index), for one owner. Made by [`Comm::receiver`] or [`Channel::split`].
pub struct Receiver<'job> {
    pub(crate) comm: i32,
    pub(crate) src: Peer,
    pub(crate) index: i32,
    _claim: Option<Claim<'job>>,
}

/// A wrong rank or index shows when the channel is made; and so does a peer that is not there.
fn reach(comm: i32, peer: Peer, index: i32) -> Result<()> {
    let ep = endpoint()?;
    if peer == PROC_NULL { ep.check_comm(comm) } else { ep.resolve(comm, peer.number(), index).map(drop) }
}

impl<'job> Sender<'job> {
    pub(crate) fn new(comm: Comm<'job>, dst: Peer, index: usize) -> Result<Sender<'job>> {
        reach(comm.id, dst, number(index))?;
        let claim = comm.claim(Direction::Send, dst, index)?;
        Ok(Sender { comm: comm.id, dst, index: number(index), _claim: claim })
    }

    /// As [`Comm::send`].
    #[inline]
    pub fn send<T: Plain>(&mut self, data: &[T]) -> Result<()> {
        self.send_layout(outgoing(data))
    }

    /// As [`Comm::send_block`].
    pub fn send_block<T: Plain>(&mut self, data: Strided<'_, T>) -> Result<()> {
        self.send_layout(data.layout())
    }

    /// As [`Comm::send_list`].
    pub fn send_list<T: Plain>(&mut self, data: &[&[T]]) -> Result<()> {
        with_list(pieces(data), |layout| self.send_layout(layout))
    }

    #[inline(always)]
    fn send_layout(&mut self, data: Layout) -> Result<()> {
        p2p::send(self.comm, data, self.dst.number(), self.index)
    }

    /// Messages sent here that are in the spool and not received yet.
    pub fn in_spool(&mut self) -> Result<usize> {
        let ep = endpoint()?;
        if self.dst == PROC_NULL {
            return Ok(0);
        }
        let (lane, slot) = ep.resolve(self.comm, self.dst.number(), self.index)?;
        Ok(sendbuf::outstanding(ep, &lane, slot) as usize)
    }
}

impl<'job> Receiver<'job> {
    pub(crate) fn new(comm: Comm<'job>, src: Peer, index: usize) -> Result<Receiver<'job>> {
        reach(comm.id, src, number(index))?;
        let claim = comm.claim(Direction::Receive, src, index)?;
        Ok(Receiver { comm: comm.id, src, index: number(index), _claim: claim })
    }

    /// As [`Comm::recv`].
    #[inline]
    pub fn recv<T: Plain>(&mut self, data: &mut [T]) -> Result<Received> {
        self.recv_layout(incoming(data), size_of::<T>())
    }

    /// As [`Comm::recv_block`].
    pub fn recv_block<T: Plain>(&mut self, mut data: StridedMut<'_, T>) -> Result<Received> {
        self.recv_layout(data.layout(), size_of::<T>())
    }

    /// As [`Comm::recv_list`].
    pub fn recv_list<T: Plain>(&mut self, data: &mut [&mut [T]]) -> Result<Received> {
        with_list(pieces_mut(data), |layout| self.recv_layout(layout, size_of::<T>()))
    }

    #[inline(always)]
    fn recv_layout(&mut self, data: Layout, size: usize) -> Result<Received> {
        p2p::recv(self.comm, data, self.src.number(), self.index)?;
        Ok(Received::new(p2p::received(self.comm, self.src.number(), self.index)?, size))
    }

    /// As [`Comm::probe`].
    pub fn probe(&mut self) -> Result<Option<usize>> {
        p2p::probe(self.comm, self.src.number(), self.index)
    }
}

impl<'job> Channel<'job> {
    pub(crate) fn new(sender: Sender<'job>, receiver: Receiver<'job>) -> Channel<'job> {
        Channel { sender, receiver }
    }

    /// The two directions, which are independent of each other.
    pub fn split(self) -> (Sender<'job>, Receiver<'job>) {
        (self.sender, self.receiver)
    }

    /// The two directions, borrowed: for requests in a [`Scope`](crate::Scope).
    pub fn both(&mut self) -> (&mut Sender<'job>, &mut Receiver<'job>) {
        (&mut self.sender, &mut self.receiver)
    }

    /// As [`Comm::send`].
    #[inline]
    pub fn send<T: Plain>(&mut self, data: &[T]) -> Result<()> {
        self.sender.send(data)
    }

    /// As [`Comm::recv`].
    #[inline]
    pub fn recv<T: Plain>(&mut self, data: &mut [T]) -> Result<Received> {
        self.receiver.recv(data)
    }

    /// As [`Comm::sendrecv`], with this peer and index for both.
    #[inline]
    pub fn exchange<S: Plain, R: Plain>(&mut self, sent: &[S], received: &mut [R]) -> Result<Received> {
        let Receiver { comm, src, index, .. } = self.receiver;
        let (dst, src) = (self.sender.dst.number(), src.number());
        p2p::sendrecv(comm, outgoing(sent), dst, index, incoming(received), src, index)?;
        Ok(Received::new(p2p::received(comm, src, index)?, size_of::<R>()))
    }
}

macro_rules! named {
    ($($t:ident: $peer:expr, $index:expr;)*) => { $(
        impl std::fmt::Debug for $t<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let (peer, index): (fn(&Self) -> i32, fn(&Self) -> i32) = ($peer, $index);
                f.debug_struct(stringify!($t)).field("peer", &peer(self)).field("index", &index(self)).finish()
            }
        }
    )* };
}
named! {
    Channel: |c| c.sender.dst.number(), |c| c.sender.index;
    Sender: |s| s.dst.number(), |s| s.index;
    Receiver: |r| r.src.number(), |r| r.index;
}
