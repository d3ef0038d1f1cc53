//! Non-blocking calls. Their buffers are lent to a scope, and the scope does not end before the library has done with them: the idea of
//! [`std::thread::scope`]. It holds however the scope ends, by return, error or panic, and whatever became of the request values.
//!
//! A scope keeps a record of each open request: a few in itself, more in a vector. A request value is the number of its
//! record; when it is dropped or forgotten the record stays, and the scope completes it.

mod collective;
mod open;
mod requests;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::base::error::{Code, Result};
use crate::base::layout::Layout;
use crate::base::unwinding::{self, NoWayOut};
use crate::coll::Begun;
use crate::comm::claim::{Claim, Direction};
use crate::comm::communicator::number;
use crate::comm::plain::{bytes, incoming, outgoing, room};
use crate::comm::reductions::{Boxed, Reduce};
use crate::comm::shape::{List, pieces, pieces_mut};
use crate::comm::{Comm, Peer, Plain, Receiver, Sender, Strided, StridedMut};
use crate::p2p::any_source::multicast;
use crate::p2p::{self, TAG_ANY, any_source};
use open::{Domain, Open, Register};
use requests::Record;
pub use requests::{AnyRequest, CollectiveRequest, Lent, McastRequest, RecvRequest, SendRequest};

/// Makes a call until no other thread is at what it needs, which nobody is for long.
fn until_free<R>(mut call: impl FnMut() -> Result<R>) -> Result<R> {
    loop {
        match call() {
            Err(error) if error.code() == Code::Busy => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// The place of non-blocking calls; see [`Comm::scope`]. It stays with its thread; other threads make scopes of their own.
pub struct Scope<'scope, 'env: 'scope> {
    comm: Comm<'scope>,
    /// Not dropped: `end` takes all that is in it.
    open: ManuallyDrop<RefCell<Register<'scope>>>,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// In place of a peer or an index where there is none.
const NO_PEER: i32 = -1;

/// Buffers of requests that are not noted, or not over, must never be freed.
const GUARD: NoWayOut = NoWayOut("a scope with requests that are not over");

impl<'job> Comm<'job> {
    /// Makes a scope for non-blocking calls. Their buffers are borrowed until it ends, and it ends when all its requests are over.
    ///
    /// ```no_run
    /// # fn compute() {}
    /// let job = fmpl::init(2)?;
    /// let world = job.world();
    /// let (left, right) = (Some(0), None);
    /// let (border, mut halo) = ([1.0; 100], [0.0; 100]);
    /// world.scope(|s| {
    ///     let arriving = s.irecv(&mut halo, left, 0)?; // the peer may now write into it
    ///     let leaving = s.isend(&border, right, 0)?;
    ///     compute();
    ///     arriving.wait()?;
    ///     leaving.wait()
    /// })?;
    /// println!("{}", halo[0]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// When the closure returns `Ok`, the scope waits for the requests that are not completed, and returns the first error
    /// among them. When it returns an error or panics, the scope withdraws its receives, as far as no message is on its way
    /// into their buffers, waits for the rest, and passes the error or panic on. The death of a peer ends a wait for it.
    ///
    /// The closure of an [`iallreduce`](Scope::iallreduce) may panic in whatever thread moves the call on. The panic goes on where the call
    /// is completed: in its `wait` or `test`, else at the end of the scope, before an error but not in place of a panic of the scope's own.
    ///
    /// A buffer cannot be used, nor go away, while it is lent:
    ///
    /// ```compile_fail,E0502
    /// # let job = fmpl::init(2)?;
    /// # let world = job.world();
    /// let mut halo = [0.0; 100];
    /// world.scope(|s| {
    ///     s.irecv(&mut halo, 1, 0)?;
    ///     println!("{}", halo[0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # let job = fmpl::init(2)?;
    /// # let world = job.world();
    /// world.scope(|s| {
    ///     let mut halo = [0.0; 100];
    ///     s.irecv(&mut halo, 1, 0)?;
    ///     Ok(()) // `halo` does not live long enough
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// Nor can it be lent twice, or a scope be used by another thread:
    ///
    /// ```compile_fail,E0499
    /// # let job = fmpl::init(2)?;
    /// # let world = job.world();
    /// let mut halo = [0.0; 100];
    /// world.scope(|s| {
    ///     s.irecv(&mut halo, 1, 0)?;
    ///     s.irecv(&mut halo, 1, 1)?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # let job = fmpl::init(2)?;
    /// # let world = job.world();
    /// world.scope(|s| {
    ///     std::thread::scope(|t| {
    ///         t.spawn(|| s.isend(&[1.0], 1, 0).map(drop));
    ///     });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn scope<'env, F, R>(&self, work: F) -> Result<R>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    {
        let scope = Scope { comm: *self, open: ManuallyDrop::default(), _scope: PhantomData, _env: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        let ended = scope.end(matches!(result, Ok(Ok(_))));
        match (result, ended) {
            (Err(panic), ended) => {
                ended.err().into_iter().for_each(unwinding::forget);
                resume_unwind(panic)
            }
            (_, Err(panic)) => resume_unwind(panic),
            (Ok(Err(error)), _) => Err(error),
            (Ok(Ok(value)), Ok(ended)) => ended.map(|()| value),
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The communicator that the scope was made from.
    pub fn comm(&self) -> Comm<'scope> {
        self.comm
    }

    /// Begins to send a slice. The time-out of standard mode runs from here.
    pub fn isend<T: Plain>(
        &'scope self,
        data: &'scope [T],
        dst: impl Into<Peer>,
        index: usize,
    ) -> Result<SendRequest<'scope, 'env>> {
        self.begin_send(outgoing(data), None, dst.into(), index)
    }

    /// Begins to send a sub-matrix.
    pub fn isend_block<T: Plain>(
        &'scope self,
        data: Strided<'scope, T>,
        dst: impl Into<Peer>,
        index: usize,
    ) -> Result<SendRequest<'scope, 'env>> {
        self.begin_send(data.layout(), None, dst.into(), index)
    }

    /// Begins to send slices one after the other as one message.
    pub fn isend_list<T: Plain>(
        &'scope self,
        data: &[&'scope [T]],
        dst: impl Into<Peer>,
        index: usize,
    ) -> Result<SendRequest<'scope, 'env>> {
        let list = List::new(pieces(data));
        self.begin_send(list.layout(), Some(list), dst.into(), index)
    }

    /// Begins to send by a [`Sender`], which is borrowed as long as the slice is.
    pub fn isend_by<T: Plain>(
        &'scope self,
        sender: &'scope mut Sender<'_>,
        data: &'scope [T],
    ) -> Result<SendRequest<'scope, 'env>> {
        let (comm, peer, index) = (sender.comm, sender.dst.number(), sender.index);
        p2p::isend(comm, outgoing(data), peer, index)?;
        Ok(SendRequest { record: self.note(Open::of(comm, peer, index, Direction::Send)) })
    }

    /// Begins to receive into a slice: tells the sender where the message may be put. The earlier, the better.
    pub fn irecv<T: Plain>(
        &'scope self,
        data: &'scope mut [T],
        src: impl Into<Peer>,
        index: usize,
    ) -> Result<RecvRequest<'scope, 'env, Lent<'scope, T>>> {
        let (layout, lent) = (incoming(data), Lent::new(data));
        self.begin_receive(layout, None, src.into(), Some(index), size_of::<T>(), lent)
    }

    /// Begins to receive from any index of `src`. While it is pending other receives from `src` get
    /// [`Code::Busy`](crate::Code::Busy).
    pub fn irecv_any_index<T: Plain>(
        &'scope self,
        data: &'scope mut [T],
        src: impl Into<Peer>,
    ) -> Result<RecvRequest<'scope, 'env, Lent<'scope, T>>> {
        let (layout, lent) = (incoming(data), Lent::new(data));
        self.begin_receive(layout, None, src.into(), None, size_of::<T>(), lent)
    }

    /// Begins to receive into a sub-matrix.
    pub fn irecv_block<T: Plain>(
        &'scope self,
        mut data: StridedMut<'scope, T>,
        src: impl Into<Peer>,
        index: usize,
    ) -> Result<RecvRequest<'scope, 'env>> {
        self.begin_receive(data.layout(), None, src.into(), Some(index), size_of::<T>(), ())
    }

    /// Begins to receive into slices, filling one after the other.
    pub fn irecv_list<T: Plain>(
        &'scope self,
        data: &'scope mut [&mut [T]],
        src: impl Into<Peer>,
        index: usize,
    ) -> Result<RecvRequest<'scope, 'env>> {
        let list = List::new(pieces_mut(data));
        self.begin_receive(list.layout(), Some(list), src.into(), Some(index), size_of::<T>(), ())
    }

    /// Begins to receive by a [`Receiver`], which is borrowed as long as the slice is.
    pub fn irecv_by<T: Plain>(
        &'scope self,
        receiver: &'scope mut Receiver<'_>,
        data: &'scope mut [T],
    ) -> Result<RecvRequest<'scope, 'env, Lent<'scope, T>>> {
        let (comm, peer, index) = (receiver.comm, receiver.src.number(), receiver.index);
        let (layout, data) = (incoming(data), Lent::new(data));
        p2p::irecv(comm, layout, peer, index)?;
        let record = self.note(Open::of(comm, peer, index, Direction::Receive));
        Ok(RecvRequest { record, size: size_of::<T>(), outcome: None, data })
    }

    /// Begins to send a slice to a receiver of any source; see [`Comm::send_any`].
    pub fn isend_any<T: Plain>(
        &'scope self,
        data: &'scope [T],
        dst: impl Into<Peer>,
        index: usize,
    ) -> Result<SendRequest<'scope, 'env>> {
        let (comm, peer, index) = (self.comm.id, dst.into().number(), number(index));
        // The slice is borrowed until the scope is over; the core refuses a second request of this name.
        any_source::isend_any(comm, bytes(data), peer, index)?;
        Ok(SendRequest {
            record: self
                .note(Open { domain: Domain::AnySource, ..Open::of(self.comm.id, peer, index, Direction::Send) }),
        })
    }

    /// Begins to receive a slice from any source; see [`Comm::recv_any`].
    pub fn irecv_any<T: Plain>(
        &'scope self,
        data: &'scope mut [T],
        index: usize,
    ) -> Result<AnyRequest<'scope, 'env, T>> {
        let (comm, index) = (self.comm.id, number(index));
        any_source::irecv_any(comm, room(data), index)?;
        let record =
            self.note(Open { domain: Domain::AnySource, ..Open::of(self.comm.id, NO_PEER, index, Direction::Receive) });
        Ok(AnyRequest { record, comm, index, _data: PhantomData })
    }

    /// Begins to receive the next multicast of which this rank is a member; see [`Comm::mcast_recv`]. One at a time: until it is over,
    /// or withdrawn, every other receive of a multicast on this communicator gets [`Code::Busy`](crate::Code::Busy). Members further
    /// down the tree wait for it to be completed.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut parameters = [0.0; 3];
    /// world.scope(|s| {
    ///     let coming = s.mcast_irecv(&mut parameters)?;
    ///     world.mcast(&[1.0, 2.0, 3.0], [0])?;
    ///     assert_eq!(coming.wait()?.source, 0);
    ///     Ok(())
    /// })?;
    /// assert_eq!(parameters, [1.0, 2.0, 3.0]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn mcast_irecv<T: Plain>(&'scope self, data: &'scope mut [T]) -> Result<McastRequest<'scope, 'env, T>> {
        let comm = self.comm.id;
        multicast::mcast_irecv(comm, room(data))?;
        let record = self
            .note(Open { domain: Domain::Multicast, ..Open::of(self.comm.id, NO_PEER, NO_PEER, Direction::Receive) });
        Ok(McastRequest { record, comm, _data: PhantomData })
    }

    fn begin_send(
        &'scope self,
        layout: Layout,
        list: Option<List>,
        dst: Peer,
        index: usize,
    ) -> Result<SendRequest<'scope, 'env>> {
        let claim = self.comm.claim(Direction::Send, dst, index)?;
        let (comm, peer, index) = (self.comm.id, dst.number(), number(index));
        p2p::isend(comm, layout, peer, index)?;
        let open = Open { _claim: claim, _list: list, ..Open::of(comm, peer, index, Direction::Send) };
        Ok(SendRequest { record: self.note(open) })
    }

    fn begin_receive<D>(
        &'scope self,
        layout: Layout,
        list: Option<List>,
        src: Peer,
        index: Option<usize>,
        size: usize,
        data: D,
    ) -> Result<RecvRequest<'scope, 'env, D>> {
        let claim = match index {
            Some(index) => self.comm.claim(Direction::Receive, src, index)?,
            None => self.comm.claim_any(src)?,
        };
        let (comm, peer, index) = (self.comm.id, src.number(), index.map_or(TAG_ANY, number));
        p2p::irecv(comm, layout, peer, index)?;
        let record = self.note(Open { _claim: claim, _list: list, ..Open::of(comm, peer, index, Direction::Receive) });
        Ok(RecvRequest { record, size, outcome: None, data })
    }

    /// Notes what has begun.
    fn note(&'scope self, open: Open<'scope>) -> Record<'scope, 'env> {
        // A failure to note it (no memory) aborts: the library has the buffer already.
        let guard = GUARD;
        let id = self.open.borrow_mut().add(open);
        guard.open();
        Record { scope: self, id: Some(id) }
    }

    /// Brings all requests to their end: the first error or, before errors, the first panic. `whole`: their messages are wanted.
    fn end(&self, mut whole: bool) -> std::thread::Result<Result<()>> {
        let guard = GUARD;
        let mut register = self.open.take();
        let mut first = Ok(Ok(()));
        // Before the others, which go on meanwhile: as in `requests::wait_all`.
        if whole && register.all().any(|open| open.taken().is_some()) {
            let taken;
            (taken, whole) = register.take();
            first = Ok(taken);
        }
        for open in register.all() {
            match open.end(whole) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    // After a truncated message the others still come; after anything else nothing is certain.
                    whole &= error.code() == Code::Truncate;
                    first = first.map(|first| first.and(Err(error)));
                }
                Err(panic) => {
                    whole = false;
                    match &first {
                        Ok(_) => first = Err(panic),
                        Err(_) => unwinding::forget(panic),
                    }
                }
            }
        }
        // What functions own may panic when it goes: when all are over.
        guard.open();
        first
    }
}
