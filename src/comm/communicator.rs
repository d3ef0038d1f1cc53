//! The blocking calls of a communicator.
//!
//! Each claims its (peer, index) for its own length, so that threads can do no harm to each other, whatever they call. A program
//! that wants to save that too owns its indices with a [`Channel`].

use std::marker::PhantomData;

use crate::base::error::Result;
use crate::base::layout::Layout;
use crate::comm::claim::{Claim, Claims, Direction};
use crate::comm::plain::{bytes, incoming, outgoing, room};
use crate::comm::shape::{pieces, pieces_mut, with_list};
use crate::comm::{Channel, Job, Mode, Plain, Receiver, Sender, Strided, StridedMut};
use crate::p2p::any_source::{self, Came, multicast};
use crate::p2p::{self, TAG_ANY};

/// The other side of a message: a rank, or nobody.
///
/// Calls take whatever turns into it: a rank as `usize`, `u32` or `i32`; or an `Option<usize>`, whose `None` is [`PROC_NULL`], as
/// it comes from looking for a neighbour at the border of a grid.
///
/// ```
/// # fn neighbours(rank: usize, size: usize) -> (Option<usize>, Option<usize>) {
/// let left = rank.checked_sub(1);
/// let right = Some(rank + 1).filter(|r| *r < size);
/// # (left, right)
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(i32);

/// Nobody: a message to it goes nowhere, a message from it has no bytes, both at once.
pub const PROC_NULL: Peer = Peer(p2p::PROC_NULL);

impl From<usize> for Peer {
    fn from(rank: usize) -> Peer {
        // What is no i32 is no rank either, and gets the same error.
        Peer(i32::try_from(rank).unwrap_or(i32::MAX))
    }
}
impl From<u32> for Peer {
    fn from(rank: u32) -> Peer {
        Peer::from(rank as usize)
    }
}
impl From<i32> for Peer {
    fn from(rank: i32) -> Peer {
        // Negative numbers are no ranks; that -2 is nobody is a matter of C.
        Peer(if rank == p2p::PROC_NULL { i32::MIN } else { rank })
    }
}
impl From<Option<usize>> for Peer {
    fn from(rank: Option<usize>) -> Peer {
        rank.map_or(PROC_NULL, Peer::from)
    }
}

impl Peer {
    pub(crate) fn number(self) -> i32 {
        self.0
    }
}

/// The number that the core knows an index by; what is no i32 is no index either.
pub(crate) fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// What a receive has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Elements of the receive buffer's type that are written to the last byte.
    pub len: usize,
    /// The message's bytes.
    pub bytes: usize,
    /// The index on which it came.
    pub index: usize,
}

impl Received {
    pub(crate) fn new(received: p2p::Received, size: usize) -> Received {
        let bytes = received.len;
        Received { len: bytes.checked_div(size).unwrap_or(0), bytes, index: received.index.max(0) as usize }
    }
}

/// A multicast under way, as its master knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// What a receive from any source has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromAny {
    /// Who sent it.
    pub source: usize,
    /// Elements of the receive buffer's type that are written to the last byte.
    pub len: usize,
    /// The message's bytes.
    pub bytes: usize,
}

impl FromAny {
    pub(crate) fn new(arrived: any_source::Arrived, index: i32, size: usize) -> Result<FromAny> {
        arrived.whole(index)?;
        let len = arrived.len.checked_div(size).unwrap_or(0);
        Ok(FromAny { source: arrived.source as usize, len, bytes: arrived.len })
    }
}

/// A group of ranks that exchange messages: [`Job::world`], or that of a [`Communicator`](crate::Communicator). A small handle that
/// may be copied and used by many threads.
///
/// A message goes from rank to rank on an *index*, which both sides name. At most one thread sends and one receives on a
/// (peer, index) at a time; a second one gets [`Code::Busy`](crate::Code::Busy), and nothing has happened. Different indices are
/// independent of each other.
///
/// Errors of all calls: [`Code::Rank`](crate::Code::Rank), [`Code::Index`](crate::Code::Index) (out of range),
/// [`Code::Busy`](crate::Code::Busy), [`Code::Peer`](crate::Code::Peer) (the peer has died or left),
/// [`Code::Fork`](crate::Code::Fork). They leave the job usable.
#[derive(Clone, Copy)]
pub struct Comm<'job> {
    pub(crate) id: i32,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) claims: &'job Claims,
    pub(crate) _job: PhantomData<&'job Job>,
}

impl<'job> Comm<'job> {
    /// This process's rank: 0 to `size() - 1`.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sends a slice. Returns when it may be changed again; [`Mode`] says when that is.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// world.send(&[1.0, 2.0, 3.0], 1, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::SpoolFull`](crate::Code::SpoolFull) in buffered mode.
    #[inline]
    pub fn send<T: Plain>(&self, data: &[T], dst: impl Into<Peer>, index: usize) -> Result<()> {
        self.send_layout(outgoing(data), dst.into(), index)
    }

    /// Sends a sub-matrix.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// # let matrix = [0.0; 600];
    /// // Column 3 of a matrix of 30 rows of 20.
    /// world.send_block(fmpl::Strided::new(&matrix[3..], 30, 1, 20)?, 1, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn send_block<T: Plain>(&self, data: Strided<'_, T>, dst: impl Into<Peer>, index: usize) -> Result<()> {
        self.send_layout(data.layout(), dst.into(), index)
    }

    /// Sends slices one after the other as one message.
    pub fn send_list<T: Plain>(&self, data: &[&[T]], dst: impl Into<Peer>, index: usize) -> Result<()> {
        with_list(pieces(data), |layout| self.send_layout(layout, dst.into(), index))
    }

    #[inline]
    fn send_layout(&self, data: Layout, dst: Peer, index: usize) -> Result<()> {
        let _claim = self.claim(Direction::Send, dst, index)?;
        p2p::send(self.id, data, dst.0, number(index))
    }

    /// Receives into a slice. A message shorter than it is fine.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut numbers = [0.0; 100];
    /// let got = world.recv(&mut numbers, 0, 0)?.len;
    /// println!("{:?}", &numbers[..got]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::Truncate`](crate::Code::Truncate) when the message is longer: its first bytes are in the slice, the rest is lost.
    #[inline]
    pub fn recv<T: Plain>(&self, data: &mut [T], src: impl Into<Peer>, index: usize) -> Result<Received> {
        self.recv_layout(incoming(data), size_of::<T>(), src.into(), index)
    }

    /// Receives into a sub-matrix.
    pub fn recv_block<T: Plain>(
        &self,
        mut data: StridedMut<'_, T>,
        src: impl Into<Peer>,
        index: usize,
    ) -> Result<Received> {
        self.recv_layout(data.layout(), size_of::<T>(), src.into(), index)
    }

    /// Receives into slices, filling one after the other.
    pub fn recv_list<T: Plain>(&self, data: &mut [&mut [T]], src: impl Into<Peer>, index: usize) -> Result<Received> {
        with_list(pieces_mut(data), |layout| self.recv_layout(layout, size_of::<T>(), src.into(), index))
    }

    #[inline]
    fn recv_layout(&self, data: Layout, size: usize, src: Peer, index: usize) -> Result<Received> {
        let _claim = self.claim(Direction::Receive, src, index)?;
        p2p::recv(self.id, data, src.0, number(index))?;
        Ok(Received::new(p2p::received(self.id, src.0, number(index))?, size))
    }

    /// Receives from any index of `src`; [`Received::index`] tells which. No order is promised between messages on different
    /// indices, nor between this and indexed receives.
    ///
    /// [`Code::Busy`](crate::Code::Busy) while a receive from this source is under way elsewhere in the process, or a
    /// [`Receiver`] for it is alive.
    pub fn recv_any_index<T: Plain>(&self, data: &mut [T], src: impl Into<Peer>) -> Result<Received> {
        let src = src.into();
        let _claim = self.claim_any(src)?;
        p2p::recv(self.id, incoming(data), src.0, TAG_ANY)?;
        Ok(Received::new(p2p::received(self.id, src.0, TAG_ANY)?, size_of::<T>()))
    }

    /// Sends and receives at the same time. Two ranks that exchange messages this way wait for no time-out.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let (next, last) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// let mut arriving = [0u64];
    /// world.sendrecv(&[world.rank() as u64], next, 0, &mut arriving, last, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    #[inline]
    pub fn sendrecv<S: Plain, R: Plain>(
        &self,
        sent: &[S],
        dst: impl Into<Peer>,
        send_index: usize,
        received: &mut [R],
        src: impl Into<Peer>,
        recv_index: usize,
    ) -> Result<Received> {
        let (dst, src) = (dst.into(), src.into());
        let (send_at, recv_at) = (number(send_index), number(recv_index));
        let _send = self.claim(Direction::Send, dst, send_index)?;
        let _receive = self.claim(Direction::Receive, src, recv_index)?;
        p2p::sendrecv(self.id, outgoing(sent), dst.0, send_at, incoming(received), src.0, recv_at)?;
        Ok(Received::new(p2p::received(self.id, src.0, recv_at)?, size_of::<R>()))
    }

    /// The length in bytes of the message that a receive would find now, if there is one. Takes nothing.
    pub fn probe(&self, src: impl Into<Peer>, index: usize) -> Result<Option<usize>> {
        let src = src.into();
        let _claim = self.claim(Direction::Receive, src, index)?;
        p2p::probe(self.id, src.0, number(index))
    }

    /// The same for any index of `src`.
    pub fn probe_any_index(&self, src: impl Into<Peer>) -> Result<Option<usize>> {
        let src = src.into();
        let _claim = self.claim_any(src)?;
        p2p::probe(self.id, src.0, TAG_ANY)
    }

    /// Sends a slice to whoever receives from any source on `index` of rank `dst`, with [`Comm::recv_any`]. These indices have nothing
    /// to do with those of [`Comm::send`].
    ///
    /// The receiver has room for a fixed number of messages, however many send; when it is taken the send waits. Up to 1 KiB is at the
    /// receiver when this returns; more is fetched by the receiver, or in the spool when the time-out of the [`Mode`] has passed.
    /// In synchronous mode it is received. Messages of one thread to one (receiver, index) arrive in order; any number of threads
    /// may send at once.
    ///
    /// [`Code::SpoolFull`](crate::Code::SpoolFull) in buffered mode: no room, nothing was sent.
    #[inline]
    pub fn send_any<T: Plain>(&self, data: &[T], dst: impl Into<Peer>, index: usize) -> Result<()> {
        any_source::send_any(self.id, bytes(data), dst.into().0, number(index))
    }

    /// Receives the next message on `index`, whoever sends it.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut result = [0.0; 16];
    /// let got = world.recv_any(&mut result, 0)?;
    /// println!("{:?} from rank {}", &result[..got.len], got.source);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::Truncate`](crate::Code::Truncate) as for [`Comm::recv`]; [`Code::Busy`](crate::Code::Busy) when another thread
    /// receives on this index. [`Code::Peer`](crate::Code::Peer) when a rank has died: told once on each index on which somebody
    /// waits; later receives go on with what the others send.
    #[inline]
    pub fn recv_any<T: Plain>(&self, data: &mut [T], index: usize) -> Result<FromAny> {
        let index = number(index);
        FromAny::new(any_source::recv_any(self.id, room(data), index)?, index, size_of::<T>())
    }

    /// Who sent the message that a receive from any source would find now, and its length in bytes. Takes nothing.
    pub fn probe_any(&self, index: usize) -> Result<Option<(usize, usize)>> {
        let found = any_source::probe_any(self.id, number(index))?;
        Ok(found.map(|f| (f.source as usize, f.len)))
    }

    /// Limits how many messages from any source may be outstanding on an index of this rank: sent and not yet received. Senders beyond
    /// wait. 0: as many as there is room for, which is also the most.
    pub fn limit_any(&self, most: usize, index: usize) -> Result<()> {
        any_source::recv_any_limit(self.id, i32::try_from(most).unwrap_or(i32::MAX), number(index))
    }

    /// Sends a slice to the ranks named, a group chosen for this call: nobody else takes part. The message is copied, and its members
    /// call [`Comm::mcast_recv`]. One message leaves this rank, whatever the group.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let ticket = world.mcast(&[1.0, 2.0], [1, 3, 6])?;
    /// world.mcast_wait(ticket)?; // all three have it
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::Argument`](crate::Code::Argument) when nobody is named; [`Code::SpoolFull`](crate::Code::SpoolFull) when the spool can
    /// never hold the message, or in buffered mode.
    pub fn mcast<T: Plain>(&self, data: &[T], members: impl IntoIterator<Item = usize>) -> Result<Ticket> {
        let bits = self.bitmap("mcast", members)?;
        multicast::mcast(self.id, bytes(data), &bits, false).map(Ticket)
    }

    /// A bit for each of these ranks.
    pub(super) fn bitmap(&self, call: &str, members: impl IntoIterator<Item = usize>) -> Result<Vec<u64>> {
        multicast::bitmap(call, self.id, self.size, members)
    }

    /// Waits until every member of a multicast has it. [`Code::Peer`](crate::Code::Peer) when one has died without.
    pub fn mcast_wait(&self, ticket: Ticket) -> Result<()> {
        multicast::mcast_wait(ticket.0)
    }

    /// Has every member of a multicast got it?
    pub fn mcast_test(&self, ticket: Ticket) -> Result<bool> {
        multicast::mcast_test(ticket.0)
    }

    /// Receives the next multicast of which this rank is a member; [`FromAny::source`] is its master.
    pub fn mcast_recv<T: Plain>(&self, data: &mut [T]) -> Result<FromAny> {
        FromAny::new(multicast::mcast_recv(self.id, room(data))?, -1, size_of::<T>())
    }

    /// Receives the next message of any source on `index` or the next multicast of which this rank is a member, whichever comes first: what a
    /// worker waits for that gets tasks of its own and is a member of groups that it does not know beforehand. `true`: it is a multicast, and
    /// [`FromAny::source`] its master.
    ///
    /// ```no_run
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut data = [0.0; 1024];
    /// match world.recv_any_or_mcast(&mut data, 0)? {
    ///     (got, true) => println!("new parameters: {:?}", &data[..got.len]),
    ///     (got, false) => println!("a task of rank {}", got.source),
    /// }
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// Errors are those of [`Comm::recv_any`] and [`Comm::mcast_recv`]; a death is told once for both.
    pub fn recv_any_or_mcast<T: Plain>(&self, data: &mut [T], index: usize) -> Result<(FromAny, bool)> {
        let index = number(index);
        match any_source::recv_any_or_mcast(self.id, room(data), index)? {
            Came::Message(arrived) => FromAny::new(arrived, index, size_of::<T>()).map(|got| (got, false)),
            Came::Multicast(arrived) => FromAny::new(arrived, -1, size_of::<T>()).map(|got| (got, true)),
        }
    }

    /// Sets the spool's size in bytes and the mode of sending for this communicator.
    pub fn set_send_buffer(&self, size: usize, mode: Mode) -> Result<()> {
        p2p::sendbuf_set(Some(self.id), size, mode.timeout_ms())
    }

    /// How many spooled messages were delivered since the last such call, and how many still wait.
    ///
    /// [`Code::Busy`](crate::Code::Busy) while another thread sends, a send request is pending, or a [`Sender`] is alive.
    pub fn sendbuf_check(&self) -> Result<(usize, usize)> {
        let (delivered, waiting) = Claims::while_none_sends_anywhere(p2p::sendbuf_check)??;
        Ok((delivered.max(0) as usize, waiting.max(0) as usize))
    }

    /// Takes (peer, index) for one owner, both directions: the fast path. See [`Channel`].
    pub fn channel(&self, peer: impl Into<Peer>, index: usize) -> Result<Channel<'job>> {
        let peer = peer.into();
        Ok(Channel::new(self.sender(peer, index)?, self.receiver(peer, index)?))
    }

    /// The sending half of a channel alone.
    pub fn sender(&self, dst: impl Into<Peer>, index: usize) -> Result<Sender<'job>> {
        Sender::new(*self, dst.into(), index)
    }

    /// The receiving half of a channel alone.
    pub fn receiver(&self, src: impl Into<Peer>, index: usize) -> Result<Receiver<'job>> {
        Receiver::new(*self, src.into(), index)
    }

    /// Nobody needs no claim.
    #[inline]
    pub(crate) fn claim(&self, direction: Direction, peer: Peer, index: usize) -> Result<Option<Claim<'job>>> {
        if peer == PROC_NULL {
            return Ok(None);
        }
        self.claims.claim(self.id, direction, peer.0, number(index)).map(Some)
    }

    pub(crate) fn claim_any(&self, src: Peer) -> Result<Option<Claim<'job>>> {
        if src == PROC_NULL {
            return Ok(None);
        }
        self.claims.claim_any(self.id, src.0).map(Some)
    }
}

impl std::fmt::Debug for Comm<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comm").field("id", &self.id).field("rank", &self.rank).field("size", &self.size).finish()
    }
}
