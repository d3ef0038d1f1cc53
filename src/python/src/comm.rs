//! `Comm`: messages, making communicators.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fmpl::base::run::Run;
use fmpl::comm::claim::{Claims, Direction};
use fmpl::comm::requests::What;
use fmpl::p2p::any_source::{self, Came, multicast};
use fmpl::p2p::{self, TAG_ANY};
use fmpl::{Code, comm};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{raise, wrong};
use crate::group::Group;
use crate::life::{Thing, timeout_ms, undisturbed, wait, whole};
use crate::loan::Loan;
use crate::memory::{Export, Memory};
use crate::orphans::{ORPHANS, again, settle};
use crate::peer::{Peer, of_receive};
use crate::request::{self, Request};
use crate::window::SharedWindow;

/// A communicator: `Job.world`, or one made from it by `split`, `split_node` or `dup`.
///
/// A message goes from rank to rank on an index, which both sides name. At most one thread sends and one receives on a (peer, index) at a
/// time; a second one gets an `Error` of `Code.BUSY`, and nothing has happened. Buffers are whatever has the buffer protocol: bytes, bytearray,
/// array.array, memoryview, NumPy arrays; contiguous, or evenly spaced runs. A peer of None is nobody.
#[pyclass(frozen, module = "fmpl")]
pub struct Comm(pub Arc<Group>);

/// What a receive has got.
#[pyclass(frozen, module = "fmpl", get_all)]
pub struct Received {
    /// Who has sent it; None: nobody.
    source: Option<i32>,
    /// The index on which it came.
    index: i32,
    /// The message's bytes.
    nbytes: usize,
    /// Elements of the receive buffer that are written to the last byte.
    len: usize,
}

#[pymethods]
impl Received {
    fn __repr__(&self) -> String {
        let source = self.source.map_or("None".to_string(), |n| n.to_string());
        format!("Received(source={source}, index={}, nbytes={}, len={})", self.index, self.nbytes, self.len)
    }
}

impl Received {
    #[inline]
    pub fn new((source, index, nbytes): (i32, i32, usize), item: usize) -> Received {
        Received { source: (source >= 0).then_some(source), index, nbytes, len: nbytes / item }
    }

    pub fn object(py: Python<'_>, got: (i32, i32, usize), item: usize) -> PyResult<Py<Received>> {
        Py::new(py, Received::new(got, item))
    }
}

/// The bytes of a message of any source.
pub fn run(py: Python<'_>, memory: Memory) -> PyResult<Run> {
    let memory = memory.whole(py)?;
    // SAFETY: exported as long as the call or the request that this is made for.
    Ok(unsafe { Run::new(memory.at, memory.len) })
}

impl Comm {
    /// What has been made by a call that gives a handle; None where this rank takes no part.
    pub fn made(
        &self,
        py: Python<'_>,
        mut make: impl FnMut() -> fmpl::Result<Option<i32>> + Send,
    ) -> PyResult<Option<Comm>> {
        let (_in, about) = (self.0.enter(py)?, self.0.about(None, None));
        let made = again(|| undisturbed(py, &mut make)).and_then(|made| made.map(Group::new).transpose());
        Ok(made.map_err(|error| raise(py, &error, about))?.map(Comm))
    }
}

#[pymethods]
impl Comm {
    /// This process's rank: 0 to `size - 1`.
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.0.size
    }

    /// Sends a buffer. Returns when it may be changed again.
    #[pyo3(signature = (buf, dst, index=0))]
    fn send(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, dst: Peer, index: i32) -> PyResult<()> {
        let (group, dst) = (&*self.0, dst.of(py, &self.0)?);
        let about = group.about(Some(dst), Some(index));
        let _in = group.enter(py)?;
        let mut export = Export::new();
        let Memory { layout, .. } = export.read(buf)?;
        let _claim = group.claim(Direction::Send, dst, index).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        match p2p::send_soon(comm, layout, dst, index) {
            Ok(true) => Ok(()),
            Ok(false) => wait(py, about, || p2p::send(comm, layout, dst, index)),
            Err(error) => Err(raise(py, &error, about)),
        }
    }

    /// Receives into a buffer. A message shorter than it is fine; of a longer one the first bytes are in it, and the `Error` is of
    /// `Code.TRUNCATE`.
    #[pyo3(signature = (buf, src, index=0))]
    fn recv(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, src: Peer, index: i32) -> PyResult<Received> {
        let (group, src) = (&*self.0, src.of(py, &self.0)?);
        let about = group.about(Some(src), Some(index));
        let _in = group.enter(py)?;
        let mut export = Export::new();
        let Memory { layout, item, .. } = export.write(buf)?;
        let _claim = group.claim(Direction::Receive, src, index).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        let soon = p2p::recv_soon(comm, layout, src, index).map_err(|error| raise(py, &error, about))?;
        if !soon {
            wait(py, about, || p2p::recv(comm, layout, src, index))?;
        }
        let got = p2p::received(comm, src, index).map_err(|error| raise(py, &error, about))?;
        Ok(Received::new((src, got.index, got.len), item))
    }

    /// Receives from any index of `src`. No order is promised between this and receives on an index.
    fn recv_any_index(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, src: Peer) -> PyResult<Received> {
        let (group, src) = (&*self.0, src.of(py, &self.0)?);
        let about = group.about(Some(src), None);
        let _in = group.enter(py)?;
        let mut export = Export::new();
        let Memory { layout, item, .. } = export.write(buf)?;
        let _claim = group.claim_any(src).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        let got = wait(py, about, || {
            p2p::recv(comm, layout, src, TAG_ANY)?;
            p2p::received(comm, src, TAG_ANY)
        })?;
        Ok(Received::new((src, got.index, got.len), item))
    }

    /// Sends and receives at the same time. The two buffers must not overlap.
    #[pyo3(signature = (sent, dst, received, src, send_index=0, recv_index=0))]
    #[expect(clippy::too_many_arguments, reason = "two messages")]
    fn sendrecv(
        &self,
        py: Python<'_>,
        sent: &Bound<'_, PyAny>,
        dst: Peer,
        received: &Bound<'_, PyAny>,
        src: Peer,
        send_index: i32,
        recv_index: i32,
    ) -> PyResult<Received> {
        let (group, dst, src) = (&*self.0, dst.of(py, &self.0)?, src.of(py, &self.0)?);
        let about = group.about(Some(src), Some(recv_index));
        let _in = group.enter(py)?;
        let (mut from, mut to) = (Export::new(), Export::new());
        let (given, taken) = (from.read(sent)?, to.write(received)?);
        if given.overlaps(taken) {
            return Err(wrong(py, Code::Argument, "sendrecv with buffers that overlap", about));
        }
        let fail = |error| raise(py, &error, about);
        let _send = group.claim(Direction::Send, dst, send_index).map_err(fail)?;
        let _receive = group.claim(Direction::Receive, src, recv_index).map_err(fail)?;
        let (comm, s, r) = (group.id, given.layout, taken.layout);
        let got = wait(py, about, || {
            p2p::sendrecv(comm, s, dst, send_index, r, src, recv_index)?;
            p2p::received(comm, src, recv_index)
        })?;
        Ok(Received::new((src, got.index, got.len), taken.item))
    }

    /// The bytes of the message that a receive would find now, or None. Takes nothing.
    #[pyo3(signature = (src, index=0))]
    fn probe(&self, py: Python<'_>, src: Peer, index: i32) -> PyResult<Option<usize>> {
        let (group, src) = (&*self.0, src.of(py, &self.0)?);
        let about = group.about(Some(src), Some(index));
        let _in = group.enter(py)?;
        let _claim = group.claim(Direction::Receive, src, index).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        wait(py, about, || p2p::probe(comm, src, index))
    }

    /// Sends to whoever receives from any source on `index` of rank `dst`. These indices have nothing to do with those of `send`.
    #[pyo3(signature = (buf, dst, index=0))]
    fn send_any(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, dst: Peer, index: i32) -> PyResult<()> {
        let (group, dst) = (&*self.0, dst.of(py, &self.0)?);
        let _in = group.enter(py)?;
        ORPHANS.look();
        let mut export = Export::new();
        let (data, comm) = (run(py, export.read(buf)?)?, group.id);
        wait(py, group.about(Some(dst), Some(index)), || any_source::send_any(comm, data, dst, index))
    }

    /// Receives the next message of any source on `index`; `Received.source` tells who has sent it.
    #[pyo3(signature = (buf, index=0))]
    fn recv_any(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, index: i32) -> PyResult<Received> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        ORPHANS.look();
        let mut export = Export::new();
        let memory = export.write(buf)?;
        let (data, comm) = (run(py, memory)?, group.id);
        let got = wait(py, group.about(None, Some(index)), || {
            let arrived = any_source::recv_any(comm, data, index)?;
            arrived.whole(index).map(|()| arrived)
        })?;
        Ok(Received::new((got.source, index, got.len), memory.item))
    }

    /// Sends to the ranks named, a group chosen for this call: nobody else takes part. The message is copied; each of them receives it with
    /// `recv_any_or_mcast`.
    fn mcast(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, members: Vec<u32>) -> PyResult<()> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        ORPHANS.look();
        let mut export = Export::new();
        let (data, comm) = (run(py, export.read(buf)?)?, group.id);
        wait(py, group.about(None, None), || {
            let members = members.iter().map(|rank| *rank as usize);
            let bits = multicast::bitmap("mcast", comm, group.size, members)?;
            multicast::mcast(comm, data, &bits, false).map(drop)
        })
    }

    /// Receives the next message of any source on `index`, or the next multicast of which this rank is a member, whichever comes first; and
    /// whether it is a multicast, whose `Received.source` is its master and whose `Received.index` is -1.
    #[pyo3(signature = (buf, index=0))]
    fn recv_any_or_mcast(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, index: i32) -> PyResult<(Received, bool)> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        ORPHANS.look();
        let mut export = Export::new();
        let memory = export.write(buf)?;
        let (data, comm) = (run(py, memory)?, group.id);
        let (got, index) = wait(py, group.about(None, Some(index)), || {
            let (arrived, index) = match any_source::recv_any_or_mcast(comm, data, index)? {
                Came::Message(arrived) => (arrived, index),
                Came::Multicast(arrived) => (arrived, -1),
            };
            arrived.whole(index).map(|()| (arrived, index))
        })?;
        Ok((Received::new((got.source, index, got.len), memory.item), index < 0))
    }

    /// Who has sent the message that `recv_any` would find now, and its bytes, or None. Takes nothing.
    #[pyo3(signature = (index=0))]
    fn probe_any(&self, py: Python<'_>, index: i32) -> PyResult<Option<(i32, usize)>> {
        let _in = self.0.enter(py)?;
        ORPHANS.look();
        let comm = self.0.id;
        let found = wait(py, self.0.about(None, Some(index)), || any_source::probe_any(comm, index))?;
        Ok(found.map(|found| (found.source, found.len)))
    }

    /// Begins to send; the buffer may not be changed until the request is over.
    #[pyo3(signature = (buf, dst, index=0))]
    fn isend(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, dst: Peer, index: i32) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let Memory { layout, item, .. } = export.read(buf)?;
        let (comm, dst) = (self.0.id, dst.of(py, &self.0)?);
        request::begin(py, &self.0, What::Send, (dst, index), (export, item), || p2p::isend(comm, layout, dst, index))
    }

    /// Begins to receive: tells the sender where the message may be put. The buffer may not be used until the request is over; it is when a
    /// `with` block of the request ends.
    #[pyo3(signature = (buf, src, index=0))]
    fn irecv(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, src: Peer, index: i32) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let Memory { layout, item, .. } = export.write(buf)?;
        let (comm, src) = (self.0.id, src.of(py, &self.0)?);
        let index = of_receive(py, index, self.0.about(Some(src), Some(index)))?;
        request::begin(py, &self.0, What::Receive, (src, index), (export, item), || {
            p2p::irecv(comm, layout, src, index)
        })
    }

    /// Begins to receive from any index of `src`. Until it is over other receives from `src` are `Code.BUSY`.
    fn irecv_any_index(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, src: Peer) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let Memory { layout, item, .. } = export.write(buf)?;
        let (comm, src) = (self.0.id, src.of(py, &self.0)?);
        request::begin(py, &self.0, What::Receive, (src, TAG_ANY), (export, item), || {
            p2p::irecv(comm, layout, src, TAG_ANY)
        })
    }

    /// Begins to send to a receiver of any source; see `send_any`.
    #[pyo3(signature = (buf, dst, index=0))]
    fn isend_any(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, dst: Peer, index: i32) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let memory = export.read(buf)?;
        let (data, comm, dst) = (run(py, memory)?, self.0.id, dst.of(py, &self.0)?);
        request::begin(py, &self.0, What::SendAny, (dst, index), (export, memory.item), || {
            any_source::isend_any(comm, data, dst, index)
        })
    }

    /// Begins to receive from any source; see `recv_any`.
    #[pyo3(signature = (buf, index=0))]
    fn irecv_any(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, index: i32) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let memory = export.write(buf)?;
        let (data, comm) = (run(py, memory)?, self.0.id);
        request::begin(py, &self.0, What::ReceiveAny, (-1, index), (export, memory.item), || {
            any_source::irecv_any(comm, data, index)
        })
    }

    /// Hands a loan over, or its first `nbytes` bytes. No view of it may be alive; afterwards it is the receiver's.
    #[pyo3(signature = (loan, dst, index=0, nbytes=None))]
    fn send_loan(&self, py: Python<'_>, loan: &Loan, dst: Peer, index: i32, nbytes: Option<usize>) -> PyResult<()> {
        let (group, dst) = (&*self.0, dst.of(py, &self.0)?);
        let about = group.about(Some(dst), Some(index));
        let _in = group.enter(py)?;
        let _claim = group.claim(Direction::Send, dst, index).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        loan.hand_over(py, about, nbytes, |at, len| p2p::send_loan(comm, at, len, dst, index))
    }

    /// Receives a message in place, whatever its length: `with comm.recv_loan(src) as view:`. One that was not handed over is copied into a
    /// loan of this rank's.
    #[pyo3(signature = (src, index=0))]
    fn recv_loan(&self, py: Python<'_>, src: Peer, index: i32) -> PyResult<Loan> {
        let (group, src) = (&*self.0, src.of(py, &self.0)?);
        let about = group.about(Some(src), Some(index));
        let _in = group.enter(py)?;
        let _claim = group.claim(Direction::Receive, src, index).map_err(|error| raise(py, &error, about))?;
        let comm = group.id;
        Loan::received(py, about, group.generation, || Ok((p2p::recv_loan(comm, src, index)?, src)))
    }

    /// Hands a loan over to whoever receives from any source on `index` of rank `dst`.
    #[pyo3(signature = (loan, dst, index=0, nbytes=None))]
    fn send_loan_any(&self, py: Python<'_>, loan: &Loan, dst: Peer, index: i32, nbytes: Option<usize>) -> PyResult<()> {
        let (group, dst) = (&*self.0, dst.of(py, &self.0)?);
        let _in = group.enter(py)?;
        ORPHANS.look();
        let comm = group.id;
        loan.hand_over(py, group.about(Some(dst), Some(index)), nbytes, |at, len| {
            any_source::send_loan_any(comm, at, len, dst, index)
        })
    }

    /// Receives the next message of any source on `index` in place; `Loan.source` tells who has sent it.
    #[pyo3(signature = (index=0))]
    fn recv_loan_any(&self, py: Python<'_>, index: i32) -> PyResult<Loan> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        ORPHANS.look();
        let comm = group.id;
        Loan::received(py, group.about(None, Some(index)), group.generation, || any_source::recv_loan_any(comm, index))
    }

    /// Sends any object, pickled. It is received by `recv_object`.
    #[pyo3(signature = (obj, dst, index=0))]
    fn send_object(&self, py: Python<'_>, obj: &Bound<'_, PyAny>, dst: Peer, index: i32) -> PyResult<()> {
        // The newest protocol: both sides are of one job.
        let data = py.import("pickle")?.call_method1("dumps", (obj, -1))?;
        self.send(py, &data, dst, index)
    }

    /// Receives an object that was sent by `send_object`. Unpickling runs what the sender wants: it must be trusted, as ranks of a job are.
    #[pyo3(signature = (src, index=0))]
    fn recv_object<'py>(&self, py: Python<'py>, src: Peer, index: i32) -> PyResult<Bound<'py, PyAny>> {
        let loan = Bound::new(py, self.recv_loan(py, src, index)?)?;
        py.import("pickle")?.call_method1("loads", (loan,))
    }

    /// Receives a message of any length as bytes.
    #[pyo3(signature = (src, index=0))]
    fn recv_bytes<'py>(&self, py: Python<'py>, src: Peer, index: i32) -> PyResult<Bound<'py, PyBytes>> {
        let loan = Bound::new(py, self.recv_loan(py, src, index)?)?;
        let mut export = Export::new();
        let memory = export.read(loan.as_any())?;
        // SAFETY: the loan's bytes, which nobody writes until it is returned; it is exported.
        Ok(PyBytes::new(py, unsafe { std::slice::from_raw_parts(memory.at, memory.len) }))
    }

    /// Makes communicators of this one's ranks, all of which call it: those with equal colours form one, ordered by `order` and then by their
    /// ranks here. A colour of None takes no part and gets None.
    #[pyo3(signature = (colour, order=0))]
    fn split(&self, py: Python<'_>, colour: Option<u32>, order: i32) -> PyResult<Option<Comm>> {
        let colour = match colour.map(i32::try_from) {
            None => -1,
            Some(Ok(colour)) => colour,
            Some(Err(_)) => {
                return Err(wrong(py, Code::Argument, "a colour beyond 2^31 - 1", self.0.about(None, None)));
            }
        };
        let id = self.0.id;
        self.made(py, || comm::comm_split(id, colour, order))
    }

    /// Makes a communicator of the ranks of each node, which share memory; all ranks call it.
    #[pyo3(signature = (order=0))]
    fn split_node(&self, py: Python<'_>, order: i32) -> PyResult<Option<Comm>> {
        let id = self.0.id;
        self.made(py, || comm::comm_split_node(id, order).map(Some))
    }

    /// A communicator of the same ranks in the same order, with indices of its own; all ranks call it.
    fn dup(&self, py: Python<'_>) -> PyResult<Option<Comm>> {
        let id = self.0.id;
        self.made(py, || comm::comm_dup(id).map(Some))
    }

    /// Makes a communicator of some of the ranks, in the order of the list; they alone call it, all with the same list. The others know
    /// nothing of it, and may be dead.
    fn group(&self, py: Python<'_>, ranks: Vec<i32>) -> PyResult<Option<Comm>> {
        let id = self.0.id;
        self.made(py, || comm::comm_group_create(id, &ranks).map(Some))
    }

    /// Makes memory of `size` bytes for this rank and as many as they like for the others, side by side, which all of them read and write:
    /// `window[rank]`. All ranks call it, and are on one node (`split_node` makes a communicator of one): otherwise an `Error` of
    /// `Code.COMM`. Zeros at first.
    fn shared_window(&self, py: Python<'_>, size: usize) -> PyResult<SharedWindow> {
        SharedWindow::new(py, &self.0, size)
    }

    /// Frees a communicator: this process's part, waiting for nobody. One that is let go is freed, too.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        settle(&self.0);
        self.0.free(py)
    }

    /// Its name, which stands behind its number in errors, in reports of stalls and of events; "" when it has none. Each rank has its own.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        let (_in, about) = (self.0.enter(py)?, self.0.about(None, None));
        comm::comm_name(self.0.id).map_err(|error| raise(py, &error, about))
    }

    #[setter]
    fn set_name(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let (_in, about) = (self.0.enter(py)?, self.0.about(None, None));
        comm::comm_set_name(self.0.id, name).map_err(|error| raise(py, &error, about))
    }

    /// The rank in `other` of the process that has `rank` here; None if it is no member.
    fn translate(&self, py: Python<'_>, rank: Peer, other: &Comm) -> PyResult<Option<i32>> {
        let rank = rank.of(py, &self.0)?;
        let about = self.0.about(Some(rank), None);
        let (_in, _there) = (self.0.enter(py)?, other.0.enter(py)?);
        comm::comm_translate(self.0.id, rank, other.0.id).map_err(|error| raise(py, &error, about))
    }

    /// Sets the spool's size in bytes and the mode of sending of this communicator: `"buffered"`, `"synchronous"`, or milliseconds.
    fn set_send_buffer(&self, py: Python<'_>, size: usize, mode: &Bound<'_, PyAny>) -> PyResult<()> {
        let (timeout, _in, id) = (timeout_ms(mode)?, self.0.enter(py)?, self.0.id);
        whole(py, self.0.about(None, None), || p2p::sendbuf_set(Some(id), size, timeout))
    }

    /// How many spooled messages were delivered since the last such call, and how many still wait. `Code.BUSY` while anybody sends.
    fn sendbuf_check(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        let _in = self.0.enter(py)?;
        ORPHANS.look();
        wait(py, self.0.about(None, None), || Claims::while_none_sends_anywhere(p2p::sendbuf_check)?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        // Behind an exception requests may be open: then it is freed when they are let go.
        if !kind.is_none() { Ok(()) } else { self.free(py) }
    }

    fn __repr__(&self) -> String {
        let open = self.0.open.load(Ordering::Relaxed);
        format!("<fmpl.Comm {}: rank {} of {}, {open} requests under way>", self.0.id, self.0.rank, self.0.size)
    }
}
