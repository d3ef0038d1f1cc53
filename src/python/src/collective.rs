//! The collective calls of `Comm`.

use std::collections::HashSet;

use fmpl::base::bytes::{Bytes, Room};
use fmpl::coll::{self, Sizes};
use fmpl::p2p::any_source::multicast;
use fmpl::{Code, Error};
use pyo3::prelude::*;

use crate::comm::Comm;
use crate::error::{raise, wrong};
use crate::life::undisturbed;
use crate::memory::{Export, Memory};
use crate::orphans::again;
use crate::reduce::Operation;

impl Comm {
    /// Makes a collective call.
    pub(crate) fn together(
        &self,
        py: Python<'_>,
        mut call: impl FnMut(i32) -> fmpl::Result<()> + Send,
    ) -> PyResult<()> {
        let group = &*self.0;
        let _in = group.enter(py)?;
        let done = again(|| undisturbed(py, || group.collective(|| call(group.id))));
        done.map_err(|error| raise(py, &error, group.about(None, None)))
    }

    pub(crate) fn wrong(&self, py: Python<'_>, text: &str) -> PyErr {
        wrong(py, Code::Argument, text, self.0.about(None, None))
    }

    /// A vector of a reduction: its memory, how many elements, and what they are combined with.
    pub(crate) fn vector(
        &self,
        export: &mut Export,
        buf: &Bound<'_, PyAny>,
        op: &str,
        written: bool,
    ) -> PyResult<(Memory, i32, Operation)> {
        let py = buf.py();
        let (memory, format) = export.typed(buf, written)?;
        let Some(operation) = Operation::named(op, &format, memory.item) else {
            let text =
                format!("there is no operation \"{op}\" on elements of format \"{format}\" and {} bytes", memory.item);
            return Err(self.wrong(py, &text));
        };
        let count = i32::try_from(memory.len / memory.item);
        let count = count.map_err(|_| self.wrong(py, "at most 2^31 - 1 elements can be combined at once"))?;
        Ok((memory, count, operation))
    }

    /// What is given and what is taken do not overlap, but where the one is its place within the other.
    pub(crate) fn apart(&self, py: Python<'_>, give: Memory, take: Memory, is_place: bool) -> PyResult<()> {
        if is_place || !give.overlaps(take) {
            return Ok(());
        }
        Err(self.wrong(py, "buffers that overlap"))
    }

    pub(crate) fn is_root(&self, root: i32) -> bool {
        usize::try_from(root) == Ok(self.0.rank)
    }
}

/// Lengths in elements as bytes; one that no buffer has stays too long.
fn bytes_of(lengths: &[usize], item: usize) -> Vec<usize> {
    lengths.iter().map(|n| n.saturating_mul(item)).collect()
}

/// Does a part begin so many bytes behind the beginning of the whole?
pub(crate) fn is_place(part: Memory, whole: Memory, at: usize) -> bool {
    part.at as usize == (whole.at as usize).wrapping_add(at)
}

/// What lies before a rank's part.
fn before(sizes: &[usize], rank: usize) -> usize {
    sizes.iter().take(rank).fold(0, |sum, size| sum.wrapping_add(*size))
}

/// A buffer that only the root has, read or written.
pub(crate) fn of_root(export: &mut Export, all: Option<&Bound<'_, PyAny>>, written: bool) -> PyResult<Memory> {
    let Some(all) = all.filter(|all| !all.is_none()) else { return Ok(Memory::NOTHING) };
    if written { export.write(all)?.whole(all.py()) } else { export.read(all)?.whole(all.py()) }
}

/// The lengths of a call, one for each rank, where they are looked at.
fn of_each(lengths: &[usize], ranks: usize, call: &str) -> fmpl::Result<()> {
    if lengths.len() == ranks {
        return Ok(());
    }
    Err(Error::new(Code::Argument, format!("{call} with {} lengths for {ranks} ranks", lengths.len())))
}

/// Memory of an export, for a call that is over before it is.
fn lent(_export: &Export, memory: Memory) -> Room<'_> {
    // SAFETY: exported as long as it is borrowed, for writing where a call of this file writes. Where both sides of a call could overlap
    // they have been seen not to (`apart`).
    unsafe { memory.room() }
}

#[pymethods]
impl Comm {
    /// Waits until all ranks have come here.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.together(py, coll::barrier)
    }

    /// Copies the root's buffer to all ranks.
    #[pyo3(signature = (buf, root=0))]
    fn bcast(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, root: i32) -> PyResult<()> {
        let mut export = Export::new();
        let memory = of_root(&mut export, Some(buf), !self.is_root(root))?;
        self.together(py, |comm| coll::bcast(comm, lent(&export, memory), memory.len, root))
    }

    /// Combines the ranks' vectors, element by element and in the order of the ranks, into the root's; the others' stay.
    ///
    /// Operations: sum, prod, max, min, absmax, absmin (by the absolute value), land, lor, lxor, band, bor, bxor.
    #[pyo3(signature = (buf, op="sum", root=0))]
    fn reduce(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, op: &str, root: i32) -> PyResult<()> {
        let mut export = Export::new();
        let (memory, count, operation) = self.vector(&mut export, buf, op, self.is_root(root))?;
        self.together(py, |comm| coll::reduce(comm, lent(&export, memory), count, &operation.function(), root))
    }

    /// Combines the ranks' vectors; everybody's becomes the result, with the same bits.
    #[pyo3(signature = (buf, op="sum"))]
    fn allreduce(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, op: &str) -> PyResult<()> {
        let mut export = Export::new();
        let (memory, count, operation) = self.vector(&mut export, buf, op, true)?;
        self.together(py, |comm| coll::allreduce(comm, lent(&export, memory), count, &operation.function()))
    }

    /// Combines the vectors of the ranks up to each: the first rank's stays, the last one's becomes what `allreduce` gives.
    #[pyo3(signature = (buf, op="sum"))]
    fn scan(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, op: &str) -> PyResult<()> {
        let mut export = Export::new();
        let (memory, count, operation) = self.vector(&mut export, buf, op, true)?;
        self.together(py, |comm| coll::scan(comm, lent(&export, memory), count, &operation.function()))
    }

    /// The same without each rank's own: that of rank 0 stays.
    #[pyo3(signature = (buf, op="sum"))]
    fn exscan(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, op: &str) -> PyResult<()> {
        let mut export = Export::new();
        let (memory, count, operation) = self.vector(&mut export, buf, op, true)?;
        self.together(py, |comm| coll::exscan(comm, lent(&export, memory), count, &operation.function()))
    }

    /// Combines the ranks' vectors `all`; each rank gets its block of the result in `buf`, in the order of the ranks.
    #[pyo3(signature = (all, buf, op="sum"))]
    fn reduce_scatter(&self, py: Python<'_>, all: &Bound<'_, PyAny>, buf: &Bound<'_, PyAny>, op: &str) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, _, operation) = self.vector(&mut from, all, op, false)?;
        let (take, count, _) = self.vector(&mut to, buf, op, true)?;
        if take.item != give.item || take.len.checked_mul(self.0.size) != Some(give.len) {
            return Err(self.wrong(py, "reduce_scatter of a vector that is not a block of the result for each rank"));
        }
        self.apart(py, give, take, false)?;
        let call = |comm| coll::reduce_scatter(comm, *lent(&from, give), lent(&to, take), count, &operation.function());
        self.together(py, call)
    }

    /// Collects a buffer of each rank at the root, in the order of the ranks. `all` is the root's alone.
    #[pyo3(signature = (buf, all=None, root=0))]
    fn gather(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        all: Option<&Bound<'_, PyAny>>,
        root: i32,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let give = from.read(buf)?.whole(py)?;
        let all = all.filter(|_| self.is_root(root));
        let take = of_root(&mut to, all, true)?;
        self.apart(py, give, take, is_place(give, take, give.len.wrapping_mul(self.0.rank)))?;
        self.together(py, |comm| coll::gather(comm, *lent(&from, give), give.len, lent(&to, take), root))
    }

    /// Collects a buffer of each rank at all ranks, in the order of the ranks.
    fn allgather(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, all: &Bound<'_, PyAny>) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(buf)?.whole(py)?, to.write(all)?.whole(py)?);
        self.apart(py, give, take, is_place(give, take, give.len.wrapping_mul(self.0.rank)))?;
        self.together(py, |comm| coll::allgather(comm, *lent(&from, give), give.len, lent(&to, take)))
    }

    /// Gives each rank its own part of the root's `all`, in the order of the ranks.
    #[pyo3(signature = (all, buf, root=0))]
    fn scatter(
        &self,
        py: Python<'_>,
        all: Option<&Bound<'_, PyAny>>,
        buf: &Bound<'_, PyAny>,
        root: i32,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let take = to.write(buf)?.whole(py)?;
        let all = all.filter(|_| self.is_root(root));
        let give = of_root(&mut from, all, false)?;
        self.apart(py, give, take, is_place(take, give, take.len.wrapping_mul(self.0.rank)))?;
        self.together(py, |comm| coll::scatter(comm, *lent(&from, give), take.len, lent(&to, take), root))
    }

    /// Gives each rank its own part of each rank's, in the order of the ranks.
    fn alltoall(&self, py: Python<'_>, sent: &Bound<'_, PyAny>, received: &Bound<'_, PyAny>) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(sent)?.whole(py)?, to.write(received)?.whole(py)?);
        let size = give.len / self.0.size;
        if !give.len.is_multiple_of(self.0.size * give.item) || take.len != give.len {
            return Err(self.wrong(py, "alltoall of buffers that are not a block for each rank, the same in both"));
        }
        self.apart(py, give, take, false)?;
        self.together(py, |comm| coll::alltoall(comm, *lent(&from, give), size, lent(&to, take)))
    }

    /// Collects buffers of different lengths at the root: `lengths` has that of each rank, in elements of `all`. Both are the root's alone.
    #[pyo3(signature = (buf, all=None, lengths=None, root=0))]
    fn gatherv(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        all: Option<&Bound<'_, PyAny>>,
        lengths: Option<Vec<usize>>,
        root: i32,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let give = from.read(buf)?.whole(py)?;
        let is_root = self.is_root(root);
        let take = of_root(&mut to, all.filter(|_| is_root), true)?;
        let sizes = bytes_of(&lengths.filter(|_| is_root).unwrap_or_default(), take.item);
        self.apart(py, give, take, is_place(give, take, before(&sizes, self.0.rank)))?;
        let ranks = self.0.size;
        self.together(py, |comm| {
            if is_root {
                of_each(&sizes, ranks, "gatherv")?;
            }
            let sizes = Sizes { sizes: &sizes, places: &[] };
            coll::gatherv(comm, *lent(&from, give), give.len, lent(&to, take), sizes, root)
        })
    }

    /// Collects buffers of different lengths at all ranks: `lengths` has that of each rank, in elements of `all`.
    fn allgatherv(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        all: &Bound<'_, PyAny>,
        lengths: Vec<usize>,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(buf)?.whole(py)?, to.write(all)?.whole(py)?);
        let sizes = bytes_of(&lengths, take.item);
        self.apart(py, give, take, is_place(give, take, before(&sizes, self.0.rank)))?;
        let ranks = self.0.size;
        self.together(py, |comm| {
            of_each(&sizes, ranks, "allgatherv")?;
            let (give, take, len) = (*lent(&from, give), lent(&to, take), give.len);
            coll::allgatherv(comm, give, len, take, Sizes { sizes: &sizes, places: &[] })
        })
    }

    /// Gives each rank its own part of the root's `all`, of different lengths: `lengths` has that of each rank, in elements of `all`. Both are
    /// the root's alone.
    #[pyo3(signature = (all, lengths, buf, root=0))]
    fn scatterv(
        &self,
        py: Python<'_>,
        all: Option<&Bound<'_, PyAny>>,
        lengths: Option<Vec<usize>>,
        buf: &Bound<'_, PyAny>,
        root: i32,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let take = to.write(buf)?.whole(py)?;
        let is_root = self.is_root(root);
        let give = of_root(&mut from, all.filter(|_| is_root), false)?;
        let sizes = bytes_of(&lengths.filter(|_| is_root).unwrap_or_default(), give.item);
        self.apart(py, give, take, is_place(take, give, before(&sizes, self.0.rank)))?;
        let ranks = self.0.size;
        self.together(py, |comm| {
            if is_root {
                of_each(&sizes, ranks, "scatterv")?;
            }
            let (give, take, len) = (*lent(&from, give), lent(&to, take), take.len);
            coll::scatterv(comm, give, Sizes { sizes: &sizes, places: &[] }, take, len, root)
        })
    }

    /// Gives each rank its own part of each rank's, of different lengths, in elements of each buffer: what goes to each rank, and what comes from
    /// each.
    fn alltoallv(
        &self,
        py: Python<'_>,
        sent: &Bound<'_, PyAny>,
        sent_lengths: Vec<usize>,
        received: &Bound<'_, PyAny>,
        received_lengths: Vec<usize>,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(sent)?.whole(py)?, to.write(received)?.whole(py)?);
        self.apart(py, give, take, false)?;
        let (given, taken) = (bytes_of(&sent_lengths, give.item), bytes_of(&received_lengths, take.item));
        let ranks = self.0.size;
        self.together(py, |comm| {
            of_each(&given, ranks, "alltoallv")?;
            of_each(&taken, ranks, "alltoallv")?;
            let [given, taken] = [&given, &taken].map(|sizes| Sizes { sizes, places: &[] });
            coll::alltoallv(comm, *lent(&from, give), given, lent(&to, take), taken)
        })
    }

    /// Combines the vectors of the ranks named, a group chosen for this call, into that of `root`, one of them. All of them make the call, and
    /// nobody else takes part.
    #[pyo3(signature = (buf, members, root, op="sum"))]
    fn mcast_reduce(
        &self,
        py: Python<'_>,
        buf: &Bound<'_, PyAny>,
        members: Vec<usize>,
        root: i32,
        op: &str,
    ) -> PyResult<()> {
        let mut export = Export::new();
        let (memory, count, operation) = self.vector(&mut export, buf, op, true)?;
        let size = self.0.size;
        self.together(py, |comm| {
            let bits = multicast::bitmap("mcast_reduce", comm, size, members.iter().copied())?;
            let (data, function) = (lent(&export, memory), operation.function());
            coll::mcast_reduce(comm, data, count, &function, Bytes::of(&bits), root)
        })
    }

    /// Gives each of the ranks named its own part of each other's, in the order of their ranks; a group chosen for this call. All of them make it,
    /// and nobody else takes part.
    fn mcast_alltoall(
        &self,
        py: Python<'_>,
        sent: &Bound<'_, PyAny>,
        received: &Bound<'_, PyAny>,
        members: Vec<usize>,
    ) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(sent)?.whole(py)?, to.write(received)?.whole(py)?);
        let many = members.iter().collect::<HashSet<_>>().len().max(1);
        if !give.len.is_multiple_of(many * give.item) || take.len != give.len {
            return Err(
                self.wrong(py, "mcast_alltoall of buffers that are not a block for each member, the same in both")
            );
        }
        self.apart(py, give, take, false)?;
        let size = self.0.size;
        self.together(py, |comm| {
            let bits = multicast::bitmap("mcast_alltoall", comm, size, members.iter().copied())?;
            coll::mcast_alltoall(comm, *lent(&from, give), give.len / many, lent(&to, take), Bytes::of(&bits))
        })
    }
}
