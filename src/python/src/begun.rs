//! The collective calls of `Comm` that do not wait: one of a communicator at a time, or several (`apart`).

use fmpl::coll::{self, Ask, Elements, Sides};
use fmpl::comm::requests::What;
use pyo3::prelude::*;

use crate::collective::{is_place, of_root};
use crate::comm::Comm;
use crate::memory::{Export, Memory};
use crate::request::{self, Held, Request};

/// Exports that a request keeps.
type Exports = Box<[Export; 2]>;

fn exports() -> Exports {
    Box::new([Export::new(), Export::new()])
}

/// Blocks of `size` bytes, which are given and taken.
fn sides(give: Memory, size: usize, take: Memory) -> Sides {
    // SAFETY: both are exported until the request is over, and have been seen not to overlap (`apart`).
    unsafe { Sides { give: *give.room(), size, take: take.room() } }
}

impl Comm {
    fn begin(
        &self,
        py: Python<'_>,
        what: What,
        apart: bool,
        held: (Held, usize),
        ask: impl FnOnce() -> Ask + Send,
    ) -> PyResult<Request> {
        let group = &self.0;
        request::begin_ticketed(py, group, what, (-1, -1), held, || {
            group.collective(|| match apart {
                false => coll::begin(group.id, ask()).map(|()| 0),
                true => coll::begin_apart(group.id, ask()).map(|ticket| ticket.0),
            })
        })
    }

    /// The same of a reduction of vectors: `written` here.
    fn combine(
        &self,
        (what, apart): (What, bool),
        buf: &Bound<'_, PyAny>,
        op: &str,
        written: bool,
        ask: impl FnOnce(Elements) -> Ask + Send,
    ) -> PyResult<Request> {
        let mut exports = exports();
        let (memory, count, operation) = self.vector(&mut exports[0], buf, op, written)?;
        self.begin(buf.py(), what, apart, (exports, memory.item), move || {
            // SAFETY: exported until the request is over.
            let data = unsafe { memory.room() };
            ask(Elements { data, count, f: operation.function() })
        })
    }
}

#[pymethods]
impl Comm {
    /// Begins a barrier. A communicator has at most one collective call under way: until this one is over all others are `Code.BUSY`, but those
    /// begun with `apart=True`, of which it may have 64 beside any other calls. All ranks begin them in the same order.
    #[pyo3(signature = (*, apart=false))]
    fn ibarrier(&self, py: Python<'_>, apart: bool) -> PyResult<Request> {
        self.begin(py, What::Barrier, apart, (exports(), 1), || Ask::Barrier)
    }

    /// Begins to copy the root's buffer to all ranks; see `ibarrier`.
    #[pyo3(signature = (buf, root=0, *, apart=false))]
    fn ibcast(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, root: i32, apart: bool) -> PyResult<Request> {
        let mut exports = exports();
        let memory = of_root(&mut exports[0], Some(buf), !self.is_root(root))?;
        // SAFETY: exported until the request is over; the root's is only read.
        let ask = || Ask::Bcast(unsafe { memory.room() }, memory.len, root);
        self.begin(py, What::Bcast, apart, (exports, memory.item), ask)
    }

    /// Begins to combine the ranks' vectors into the root's; see `reduce` and `ibarrier`.
    #[pyo3(signature = (buf, op="sum", root=0, *, apart=false))]
    fn ireduce(&self, buf: &Bound<'_, PyAny>, op: &str, root: i32, apart: bool) -> PyResult<Request> {
        self.combine((What::Reduce, apart), buf, op, self.is_root(root), |of| Ask::Reduce(of, root))
    }

    /// Begins to combine the ranks' vectors; see `allreduce` and `ibarrier`.
    #[pyo3(signature = (buf, op="sum", *, apart=false))]
    fn iallreduce(&self, buf: &Bound<'_, PyAny>, op: &str, apart: bool) -> PyResult<Request> {
        self.combine((What::Allreduce, apart), buf, op, true, Ask::Allreduce)
    }

    /// Begins to collect a buffer of each rank at the root; see `gather` and `ibarrier`.
    #[pyo3(signature = (buf, all=None, root=0, *, apart=false))]
    fn igather(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        all: Option<&Bound<'_, PyAny>>,
        root: i32,
        apart: bool,
    ) -> PyResult<Request> {
        let mut exports = exports();
        let give = exports[0].read(buf)?.whole(py)?;
        let take = of_root(&mut exports[1], all.filter(|_| self.is_root(root)), true)?;
        self.apart(py, give, take, is_place(give, take, give.len.wrapping_mul(self.0.rank)))?;
        self.begin(py, What::Gather, apart, (exports, give.item), || Ask::Gather(sides(give, give.len, take), root))
    }

    /// Begins to collect a buffer of each rank at all ranks; see `allgather` and `ibarrier`.
    #[pyo3(signature = (buf, all, *, apart=false))]
    fn iallgather(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        all: &Bound<'_, PyAny>,
        apart: bool,
    ) -> PyResult<Request> {
        let mut exports = exports();
        let (give, take) = (exports[0].read(buf)?.whole(py)?, exports[1].write(all)?.whole(py)?);
        self.apart(py, give, take, is_place(give, take, give.len.wrapping_mul(self.0.rank)))?;
        self.begin(py, What::Allgather, apart, (exports, give.item), || Ask::Allgather(sides(give, give.len, take)))
    }

    /// Begins to give each rank its own part of the root's `all`; see `scatter` and `ibarrier`.
    #[pyo3(signature = (all, buf, root=0, *, apart=false))]
    fn iscatter(
        &self,
        py: Python<'_>,
        all: Option<&Bound<'_, PyAny>>,
        buf: &Bound<'_, PyAny>,
        root: i32,
        apart: bool,
    ) -> PyResult<Request> {
        let mut exports = exports();
        let take = exports[1].write(buf)?.whole(py)?;
        let give = of_root(&mut exports[0], all.filter(|_| self.is_root(root)), false)?;
        self.apart(py, give, take, is_place(take, give, take.len.wrapping_mul(self.0.rank)))?;
        self.begin(py, What::Scatter, apart, (exports, take.item), || Ask::Scatter(sides(give, take.len, take), root))
    }

    /// Begins to give each rank its own part of each rank's; see `alltoall` and `ibarrier`.
    #[pyo3(signature = (sent, received, *, apart=false))]
    fn ialltoall(
        &self,
        py: Python<'_>,
        sent: &Bound<'_, PyAny>,
        received: &Bound<'_, PyAny>,
        apart: bool,
    ) -> PyResult<Request> {
        let mut exports = exports();
        let (give, take) = (exports[0].read(sent)?.whole(py)?, exports[1].write(received)?.whole(py)?);
        let size = give.len / self.0.size;
        if !give.len.is_multiple_of(self.0.size * give.item) || take.len != give.len {
            return Err(self.wrong(py, "ialltoall of buffers that are not a block for each rank, the same in both"));
        }
        self.apart(py, give, take, false)?;
        self.begin(py, What::Alltoall, apart, (exports, give.item), || Ask::Alltoall(sides(give, size, take)))
    }
}
