//! Messages that are prepared once and begun over and over, with buffers of their own.

use std::marker::PhantomData;

use crate::base::error::{Code, Error, Result};
use crate::base::run::Run;
use crate::comm::claim::{Claim, Direction};
use crate::comm::communicator::number;
use crate::comm::{Comm, Peer, Plain, Received};
use crate::p2p;

/// A direction of a (peer, index) with its buffer. The library may use the buffer as long as `begun` says, and after that if the value is
/// forgotten: so the buffer is its own, and never freed then.
struct Prepared<'job, T: Plain> {
    comm: i32,
    peer: i32,
    index: i32,
    sends: bool,
    data: Vec<T>,
    begun: bool,
    _claim: Option<Claim<'job>>,
    /// The buffer's elements are the library's at times.
    _data: PhantomData<*mut T>,
}

// SAFETY: the (peer, index) is claimed for this value, which owns the buffer.
unsafe impl<T: Plain + Send> Send for Prepared<'_, T> {}

impl<'job, T: Plain> Prepared<'job, T> {
    fn new(comm: Comm<'job>, direction: Direction, peer: Peer, index: usize, mut data: Vec<T>) -> Result<Self> {
        let claim = comm.claim(direction, peer, index)?;
        let (id, number, at) = (comm.id, number(index), peer.number());
        // SAFETY: the vector does not move its elements, and is not freed before the last request is over.
        let run = unsafe { Run::new(data.as_mut_ptr().cast(), size_of_val(&data[..])) };
        match direction {
            Direction::Send => p2p::send_init(id, run, at, number)?,
            Direction::Receive => p2p::recv_init(id, run, at, number)?,
        }
        let sends = matches!(direction, Direction::Send);
        Ok(Prepared { comm: id, sends, peer: at, index: number, data, begun: false, _claim: claim, _data: PhantomData })
    }

    fn idle(&self) -> Result<()> {
        if !self.begun {
            return Ok(());
        }
        let text = format!("the message on (rank {}, index {}) is begun and not completed", self.peer, self.index);
        Err(Error::new(Code::Busy, text))
    }

    /// Notes how a request went: but after [`Code::Busy`] it is over.
    fn over(&mut self, done: &Result<bool>) {
        self.begun = match done {
            Ok(done) => !done,
            Err(error) => error.code() == Code::Busy,
        };
    }
}

/// A send that is prepared once and begun over and over. Made by [`Comm::prepare_send`], and owns the buffer. As long as it lives every other send
/// on this (peer, index) gets [`Code::Busy`](crate::Code::Busy). Dropped, it completes the send that is begun.
///
/// ```
/// # let job = fmpl::init(1)?;
/// # let world = job.world();
/// let mut halo = world.prepare_recv(vec![0.0; 3], 0, 0)?;
/// let mut border = world.prepare_send(vec![0.0; 3], 0, 0)?;
/// for step in 0..10 {
///     halo.start()?;
///     border.data()?.fill(f64::from(step));
///     border.start()?;
///     // ... compute ...
///     assert_eq!(halo.wait()?.len, 3);
///     border.wait()?;
///     assert_eq!(halo.data()?[2], f64::from(step));
/// }
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct PreparedSend<'job, T: Plain>(Prepared<'job, T>);

/// A receive that is prepared once and begun over and over; as [`PreparedSend`]. Made by [`Comm::prepare_recv`].
pub struct PreparedRecv<'job, T: Plain>(Prepared<'job, T>);

impl<'job> Comm<'job> {
    /// Prepares the send of a vector, which can be changed between two sends.
    pub fn prepare_send<T: Plain>(
        &self,
        data: Vec<T>,
        dst: impl Into<Peer>,
        index: usize,
    ) -> Result<PreparedSend<'job, T>> {
        Prepared::new(*self, Direction::Send, dst.into(), index, data).map(PreparedSend)
    }

    /// Prepares the receive of messages of up to the vector's length into it.
    pub fn prepare_recv<T: Plain>(
        &self,
        data: Vec<T>,
        src: impl Into<Peer>,
        index: usize,
    ) -> Result<PreparedRecv<'job, T>> {
        Prepared::new(*self, Direction::Receive, src.into(), index, data).map(PreparedRecv)
    }
}

impl<T: Plain> PreparedSend<'_, T> {
    /// The message. [`Code::Busy`](crate::Code::Busy) while a send is under way.
    pub fn data(&mut self) -> Result<&mut [T]> {
        self.0.idle()?;
        Ok(&mut self.0.data)
    }

    /// Begins to send what is in the buffer.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        p2p::send_start(self.0.comm, self.0.peer, self.0.index)?;
        self.0.begun = true;
        Ok(())
    }

    /// Waits until the message is sent, in the sense of the [`Mode`](crate::Mode). At once if none is begun.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        if !self.0.begun {
            return Ok(());
        }
        let done = p2p::isend_wait(self.0.comm, self.0.peer, self.0.index).map(|()| true);
        self.0.over(&done);
        done.map(|_| ())
    }

    /// Is the message sent, or none begun?
    pub fn test(&mut self) -> Result<bool> {
        if !self.0.begun {
            return Ok(true);
        }
        let done = p2p::isend_test(self.0.comm, self.0.peer, self.0.index);
        self.0.over(&done);
        done
    }
}

impl<T: Plain> PreparedRecv<'_, T> {
    /// The buffer. [`Code::Busy`](crate::Code::Busy) while a receive is under way.
    pub fn data(&mut self) -> Result<&mut [T]> {
        self.0.idle()?;
        Ok(&mut self.0.data)
    }

    /// Begins to receive into the buffer.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        p2p::recv_start(self.0.comm, self.0.peer, self.0.index)?;
        self.0.begun = true;
        Ok(())
    }

    fn received(&self) -> Result<Received> {
        Ok(Received::new(p2p::received(self.0.comm, self.0.peer, self.0.index)?, size_of::<T>()))
    }

    /// Waits for the message that a start wants; [`Code::Request`](crate::Code::Request) if none is begun.
    pub fn wait(&mut self) -> Result<Received> {
        let done = p2p::irecv_wait(self.0.comm, self.0.peer, self.0.index).map(|()| true);
        self.0.over(&done);
        done?;
        self.received()
    }

    /// Has the message come? [`Code::Request`](crate::Code::Request) if none is begun.
    pub fn test(&mut self) -> Result<Option<Received>> {
        let done = p2p::irecv_test(self.0.comm, self.0.peer, self.0.index);
        self.0.over(&done);
        if done? { self.received().map(Some) } else { Ok(None) }
    }
}

impl<T: Plain> Drop for Prepared<'_, T> {
    fn drop(&mut self) {
        while self.begun {
            let done = match self.sends {
                true => p2p::isend_wait(self.comm, self.peer, self.index).map(|()| true),
                false => match p2p::irecv_cancel(self.comm, self.peer, self.index) {
                    Ok(false) => p2p::irecv_wait(self.comm, self.peer, self.index).map(|()| true),
                    done => done,
                },
            };
            self.over(&done);
        }
    }
}

impl<T: Plain> std::fmt::Debug for PreparedSend<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedSend").field("peer", &self.0.peer).field("index", &self.0.index).finish()
    }
}

impl<T: Plain> std::fmt::Debug for PreparedRecv<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedRecv").field("peer", &self.0.peer).field("index", &self.0.index).finish()
    }
}
