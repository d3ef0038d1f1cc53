//! Messages of several buffers, and multicasts.

use std::collections::BTreeSet;

use fmpl::base::layout::{Form, Layout};
use fmpl::base::run::Run;
use fmpl::comm::claim::Direction;
use fmpl::comm::requests::What;
use fmpl::p2p;
use fmpl::p2p::any_source::{self, multicast};
use pyo3::prelude::*;

use crate::comm::{Comm, Received, run};
use crate::error::raise;
use crate::life::wait;
use crate::loan::Loan;
use crate::memory::Export;
use crate::orphans::ORPHANS;
use crate::peer::{Peer, of_receive};
use crate::request::{self, Request};

/// Buffers that are one message, exported.
struct Pieces {
    iov: Box<[libc::iovec]>,
    /// Bytes of an element, where all have the same.
    item: usize,
    // They point into themselves, so each stays where it is.
    _exports: Box<[Export]>,
}

// SAFETY: addresses; the exports belong to no thread.
unsafe impl Send for Pieces {}
// SAFETY: as above.
unsafe impl Sync for Pieces {}

impl Pieces {
    fn of(buffers: &[Bound<'_, PyAny>], written: bool) -> PyResult<Pieces> {
        let mut exports: Box<[Export]> = buffers.iter().map(|_| Export::new()).collect();
        let mut iov = Vec::with_capacity(buffers.len());
        let mut items = Vec::new();
        for (export, buffer) in exports.iter_mut().zip(buffers) {
            let memory = if written { export.write(buffer)? } else { export.read(buffer)? };
            let memory = memory.whole(buffer.py())?;
            items.push(memory.item);
            iov.push(libc::iovec { iov_base: memory.at.cast(), iov_len: memory.len });
        }
        items.dedup();
        let item = if let [one] = items[..] { one } else { 1 };
        Ok(Pieces { iov: iov.into(), item, _exports: exports })
    }

    fn layout(&self) -> Layout {
        // SAFETY: all of them are exported, for writing where that was asked for, and the descriptors stay, as long as this does, which outlasts
        // the call or the request.
        unsafe { Layout::new(Form::List { iov: self.iov.as_ptr(), n: self.iov.len() }) }
    }
}

#[pymethods]
impl Comm {
    /// Sends several buffers, one behind the other, as one message.
    #[pyo3(signature = (bufs, dst, index=0))]
    fn send_list(&self, py: Python<'_>, bufs: Vec<Bound<'_, PyAny>>, dst: Peer, index: i32) -> PyResult<()> {
        let (group, dst) = (&*self.0, dst.of(py, &self.0)?);
        let about = group.about(Some(dst), Some(index));
        let _in = group.enter(py)?;
        let pieces = Pieces::of(&bufs, false)?;
        let _claim = group.claim(Direction::Send, dst, index).map_err(|error| raise(py, &error, about))?;
        let (comm, layout) = (group.id, pieces.layout());
        wait(py, about, || p2p::send(comm, layout, dst, index))
    }

    /// Receives into several buffers, filling one after the other. `Received.len` counts elements where all buffers have such of the same size, else
    /// bytes.
    #[pyo3(signature = (bufs, src, index=0))]
    fn recv_list(&self, py: Python<'_>, bufs: Vec<Bound<'_, PyAny>>, src: Peer, index: i32) -> PyResult<Received> {
        let (group, src) = (&*self.0, src.of(py, &self.0)?);
        let about = group.about(Some(src), Some(index));
        let _in = group.enter(py)?;
        let pieces = Pieces::of(&bufs, true)?;
        let _claim = group.claim(Direction::Receive, src, index).map_err(|error| raise(py, &error, about))?;
        let (comm, layout) = (group.id, pieces.layout());
        let got = wait(py, about, || {
            p2p::recv(comm, layout, src, index)?;
            p2p::received(comm, src, index)
        })?;
        Ok(Received::new((src, got.index, got.len), pieces.item))
    }

    /// Begins to send several buffers as one message.
    #[pyo3(signature = (bufs, dst, index=0))]
    fn isend_list(&self, py: Python<'_>, bufs: Vec<Bound<'_, PyAny>>, dst: Peer, index: i32) -> PyResult<Request> {
        let pieces = Box::new(Pieces::of(&bufs, false)?);
        let (comm, dst, layout, item) = (self.0.id, dst.of(py, &self.0)?, pieces.layout(), pieces.item);
        request::begin(py, &self.0, What::Send, (dst, index), (pieces, item), || p2p::isend(comm, layout, dst, index))
    }

    /// Begins to receive into several buffers; see `recv_list`.
    #[pyo3(signature = (bufs, src, index=0))]
    fn irecv_list(&self, py: Python<'_>, bufs: Vec<Bound<'_, PyAny>>, src: Peer, index: i32) -> PyResult<Request> {
        let pieces = Box::new(Pieces::of(&bufs, true)?);
        let (comm, src, layout, item) = (self.0.id, src.of(py, &self.0)?, pieces.layout(), pieces.item);
        let index = of_receive(py, index, self.0.about(Some(src), Some(index)))?;
        request::begin(py, &self.0, What::Receive, (src, index), (pieces, item), || {
            p2p::irecv(comm, layout, src, index)
        })
    }

    /// Begins to send to the ranks named, a group chosen for this message. The buffer is not copied: it may not be changed until the request is over,
    /// when all of them have it.
    fn imcast(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, members: Vec<usize>) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let memory = export.read(buf)?;
        let (data, comm, size): (Run, _, _) = (run(py, memory)?, self.0.id, self.0.size);
        request::begin_ticketed(py, &self.0, What::Multicast, (-1, -1), (export, memory.item), || {
            let bits = multicast::bitmap("mcast", comm, size, members)?;
            multicast::mcast(comm, data, &bits, true)
        })
    }

    /// Receives the next multicast of which this rank is a member; `Received.source` is who has sent it, and `Received.index` -1.
    fn mcast_recv(&self, py: Python<'_>, buf: &Bound<'_, PyAny>) -> PyResult<Received> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        ORPHANS.look();
        let mut export = Export::new();
        let memory = export.write(buf)?;
        let (data, comm) = (run(py, memory)?, group.id);
        let got = wait(py, group.about(None, None), || {
            let arrived = multicast::mcast_recv(comm, data)?;
            arrived.whole(-1).map(|()| arrived)
        })?;
        Ok(Received::new((got.source, -1, got.len), memory.item))
    }

    /// Begins to receive the next multicast of which this rank is a member. One at a time: until it is over others are `Code.BUSY`, and members
    /// further down the tree wait for it.
    fn mcast_irecv(&self, py: Python<'_>, buf: &Bound<'_, PyAny>) -> PyResult<Request> {
        let mut export = Box::new(Export::new());
        let memory = export.write(buf)?;
        let (data, comm) = (run(py, memory)?, self.0.id);
        request::begin(py, &self.0, What::ReceiveMulticast, (-1, -1), (export, memory.item), || {
            multicast::mcast_irecv(comm, data)
        })
    }

    /// Hands a loan over, or its first `nbytes` bytes, to the ranks named, a group chosen for this message, who receive it from this rank on
    /// `index`, by `recv_loan` or any other receive, and read the same memory.
    #[pyo3(signature = (loan, members, index=0, nbytes=None))]
    fn mcast_loan(
        &self,
        py: Python<'_>,
        loan: &Loan,
        members: Vec<usize>,
        index: i32,
        nbytes: Option<usize>,
    ) -> PyResult<()> {
        let group = &*self.0;
        let (_in, about) = (group.enter(py)?, group.about(None, Some(index)));
        let mut claims = Vec::new();
        for member in members.iter().collect::<BTreeSet<_>>() {
            let member = i32::try_from(*member).unwrap_or(i32::MAX);
            claims.push(group.claim(Direction::Send, member, index).map_err(|error| raise(py, &error, about))?);
        }
        let (comm, size) = (group.id, group.size);
        loan.hand_over(py, about, nbytes, |at, len| {
            let bits = multicast::bitmap("mcast_loan", comm, size, members)?;
            p2p::mcast_loan(comm, at, len, &bits, index)
        })
    }

    /// Limits how many messages to `index` of this rank may be sent by `send_any` and not yet received; senders beyond wait. 0: as many as there is
    /// room for.
    #[pyo3(signature = (most, index=0))]
    fn recv_any_limit(&self, py: Python<'_>, most: i32, index: i32) -> PyResult<()> {
        let (group, about) = (&*self.0, self.0.about(None, Some(index)));
        let _in = group.enter(py)?;
        any_source::recv_any_limit(group.id, most, index).map_err(|error| raise(py, &error, about))
    }
}
