//! Cartesian grids of ranks.

use fmpl::{coll, comm};
use pyo3::prelude::*;

use crate::comm::Comm;
use crate::error::raise;
use crate::memory::{Export, Memory};

impl Comm {
    /// Asks something of the grid that it is.
    fn of_grid<R>(&self, py: Python<'_>, ask: impl FnOnce(i32) -> fmpl::Result<R>) -> PyResult<R> {
        let about = self.0.about(None, None);
        let _in = self.0.enter(py)?;
        ask(self.0.id).map_err(|error| raise(py, &error, about))
    }

    /// An exchange with its neighbours, of as many messages on both sides: `one` for all, or one for each.
    fn with_neighbours(
        &self,
        py: Python<'_>,
        (give, take): (Memory, Memory),
        (size, one): (usize, bool),
    ) -> PyResult<()> {
        self.apart(py, give, take, false)?;
        self.together(py, move |comm| {
            // SAFETY: exported by the caller as long as this lasts; seen not to overlap.
            let (give, take) = unsafe { (*give.room(), take.room()) };
            coll::neighbours(comm, give, one, size, take)
        })
    }
}

#[pymethods]
impl Comm {
    /// Makes a communicator whose ranks form a Cartesian grid: the first ranks of this one, all of whose ranks call it; None at ranks that have no
    /// place in it. `dims` has the ranks along each dimension, `periods` whether it closes (none does without).
    #[pyo3(signature = (dims, periods=None))]
    fn grid(&self, py: Python<'_>, dims: Vec<u32>, periods: Option<Vec<bool>>) -> PyResult<Option<Comm>> {
        let closes = periods.unwrap_or_else(|| vec![false; dims.len()]);
        if closes.len() != dims.len() {
            return Err(self.wrong(py, "a grid whose `periods` are not one for each of its `dims`"));
        }
        let id = self.0.id;
        self.made(py, || comm::cart_create(id, dims.iter().copied().zip(closes.iter().copied())))
    }

    /// The coordinates of a rank of a grid, this one's without.
    #[pyo3(signature = (rank=None))]
    fn coordinates(&self, py: Python<'_>, rank: Option<i32>) -> PyResult<Vec<u32>> {
        let rank = rank.unwrap_or(self.0.rank as i32);
        self.of_grid(py, |cart| comm::cart_coords(cart, rank))
    }

    /// The rank at these coordinates of a grid; None beyond an edge. In a dimension that closes they go round.
    fn rank_at(&self, py: Python<'_>, coordinates: Vec<i64>) -> PyResult<Option<u32>> {
        let dimensions = self.of_grid(py, comm::cart_dimensions)?;
        if coordinates.len() != dimensions {
            return Err(self.wrong(py, "coordinates that are not one for each dimension of the grid"));
        }
        self.of_grid(py, |cart| comm::cart_rank(cart, coordinates.into_iter()))
    }

    /// From whom this rank receives and to whom it sends when all ranks of a grid send so many steps along a dimension; either may be None.
    #[pyo3(signature = (dim, steps=1))]
    fn shift(&self, py: Python<'_>, dim: i32, steps: i32) -> PyResult<(Option<u32>, Option<u32>)> {
        self.of_grid(py, |cart| comm::cart_shift(cart, dim, steps))
    }

    /// Gives each neighbour on a grid the same, and collects one of each in `all`: of each dimension that of the rank before this one, then that
    /// of the rank behind. What would come from beyond an edge is not touched.
    fn neighbour_allgather(&self, py: Python<'_>, buf: &Bound<'_, PyAny>, all: &Bound<'_, PyAny>) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(buf)?.whole(py)?, to.write(all)?.whole(py)?);
        self.with_neighbours(py, (give, take), (give.len, true))
    }

    /// Gives each neighbour on a grid a part of its own, and collects one of each, both in that order.
    fn neighbour_alltoall(&self, py: Python<'_>, sent: &Bound<'_, PyAny>, received: &Bound<'_, PyAny>) -> PyResult<()> {
        let (mut from, mut to) = (Export::new(), Export::new());
        let (give, take) = (from.read(sent)?.whole(py)?, to.write(received)?.whole(py)?);
        let neighbours = 2 * self.of_grid(py, comm::cart_dimensions)?;
        if !give.len.is_multiple_of(neighbours * give.item) || take.len != give.len {
            return Err(self
                .wrong(py, "neighbour_alltoall of buffers that are not a block for each neighbour, the same in both"));
        }
        self.with_neighbours(py, (give, take), (give.len / neighbours, false))
    }
}
