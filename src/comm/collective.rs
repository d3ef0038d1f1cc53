//! The collective calls of a communicator.

use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Code, Error, Result, error};
use crate::coll::{self, Function, Sizes};
use crate::comm::communicator::number;
use crate::comm::{Comm, Plain, Reduce};

/// Lengths in elements, in bytes. One that no slice can have stays too long.
fn bytes_of<T>(lengths: &[usize]) -> Vec<usize> {
    lengths.iter().map(|n| n.saturating_mul(size_of::<T>())).collect()
}

/// How many elements a call combines; no more than the core can count.
pub(super) fn elements(len: usize) -> Result<i32> {
    i32::try_from(len)
        .map_err(|_| error!(Code::Argument, "{len} elements; at most {} can be combined at once", i32::MAX))
}

/// What collective calls have in common: every rank of the communicator makes them, in the same order, with the same sizes and root; one
/// thread of each process at a time ([`Code::Busy`](crate::Code::Busy)). After a rank has died they end with
/// [`Code::Peer`](crate::Code::Peer), this one and all later ones.
impl Comm<'_> {
    /// Waits until all ranks have come here.
    pub fn barrier(&self) -> Result<()> {
        self.claims.collective(|| coll::barrier(self.id))?
    }

    /// Copies the root's slice to all ranks.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut numbers = if world.rank() == 0 { [1.5, 2.5] } else { [0.0; 2] };
    /// world.bcast(&mut numbers, 0)?;
    /// assert_eq!(numbers, [1.5, 2.5]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn bcast<T: Plain>(&self, data: &mut [T], root: usize) -> Result<()> {
        let len = size_of_val(data);
        self.claims.collective(|| coll::bcast(self.id, Room::of(data), len, number(root)))?
    }

    /// Combines the ranks' slices element by element into the root's; the others' stay as they are.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut parts = [world.rank() as f64; 3];
    /// world.reduce(&mut parts, fmpl::Sum, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn reduce<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>, root: usize) -> Result<()> {
        let (count, data) = (elements(data.len())?, Room::of(data));
        function.with(|f| self.claims.collective(|| coll::reduce(self.id, data, count, f, number(root))))?
    }

    /// Combines the ranks' slices element by element; everybody's becomes the result, with the same bits.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut most = [world.rank() as i64];
    /// world.allreduce(&mut most, |a: i64, b: i64| a.max(b))?;
    /// assert_eq!(most[0], world.size() as i64 - 1);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn allreduce<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>) -> Result<()> {
        let (count, data) = (elements(data.len())?, Room::of(data));
        function.with(|f| self.claims.collective(|| coll::allreduce(self.id, data, count, f)))?
    }

    /// Collects a slice of each rank at the root, in the order of the ranks. `all` is the root's alone: elsewhere it is not looked at,
    /// and may be empty.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut all = if world.rank() == 0 { vec![0.0; 2 * world.size()] } else { vec![] };
    /// world.gather(&[1.0, 2.0], &mut all, 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn gather<T: Plain>(&self, data: &[T], all: &mut [T], root: usize) -> Result<()> {
        if self.rank == root {
            self.check_length("gather", all.len(), data.len())?;
        }
        let (give, size, take) = (Bytes::of(data), size_of_val(data), Room::of(all));
        self.claims.collective(|| coll::gather(self.id, give, size, take, number(root)))?
    }

    /// Collects a slice of each rank at all ranks, in the order of the ranks.
    pub fn allgather<T: Plain>(&self, data: &[T], all: &mut [T]) -> Result<()> {
        self.check_length("allgather", all.len(), data.len())?;
        let (give, size, take) = (Bytes::of(data), size_of_val(data), Room::of(all));
        self.claims.collective(|| coll::allgather(self.id, give, size, take))?
    }

    /// Gives each rank its own slice of the root's, in the order of the ranks. `all` is the root's alone: elsewhere it is not looked
    /// at, and may be empty.
    pub fn scatter<T: Plain>(&self, all: &[T], data: &mut [T], root: usize) -> Result<()> {
        if self.rank == root {
            self.check_length("scatter", all.len(), data.len())?;
        }
        let (give, size, take) = (Bytes::of(all), size_of_val(data), Room::of(data));
        self.claims.collective(|| coll::scatter(self.id, give, size, take, number(root)))?
    }

    /// Gives each rank its own slice of each rank's, in the order of the ranks. Both are as many slices as there are ranks.
    pub fn alltoall<T: Plain>(&self, sent: &[T], received: &mut [T]) -> Result<()> {
        self.check_length("alltoall", sent.len(), sent.len() / self.size)?;
        self.check_length("alltoall", received.len(), sent.len() / self.size)?;
        let (give, size, take) = (Bytes::of(sent), size_of_val(sent) / self.size, Room::of(received));
        self.claims.collective(|| coll::alltoall(self.id, give, size, take))?
    }

    /// Collects slices of different lengths at the root, in the order of the ranks: `lengths` has that of each rank. `all` and `lengths` are the
    /// root's alone: elsewhere they are not looked at, and may be empty.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let lengths: Vec<usize> = (1..=world.size()).collect();
    /// let mut all = vec![0u32; lengths.iter().sum()];
    /// world.gatherv(&vec![7; world.rank() + 1], &mut all, &lengths, 0)?;
    /// # assert_eq!(all, [7]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn gatherv<T: Plain>(&self, data: &[T], all: &mut [T], lengths: &[usize], root: usize) -> Result<()> {
        let (sizes, give, take) = (bytes_of::<T>(lengths), Bytes::of(data), Room::of(all));
        let sizes = Sizes { sizes: &sizes, places: &[] };
        self.claims.collective(|| coll::gatherv(self.id, give, give.len(), take, sizes, number(root)))?
    }

    /// Collects slices of different lengths at all ranks, in the order of the ranks; `lengths` has that of each rank.
    pub fn allgatherv<T: Plain>(&self, data: &[T], all: &mut [T], lengths: &[usize]) -> Result<()> {
        let (sizes, give, take) = (bytes_of::<T>(lengths), Bytes::of(data), Room::of(all));
        let sizes = Sizes { sizes: &sizes, places: &[] };
        self.claims.collective(|| coll::allgatherv(self.id, give, give.len(), take, sizes))?
    }

    /// Gives each rank its own slice of the root's, of different lengths, in the order of the ranks; the root's `lengths` has that of each rank,
    /// which is that of its `data`. Elsewhere `all` and `lengths` are not looked at.
    pub fn scatterv<T: Plain>(&self, all: &[T], lengths: &[usize], data: &mut [T], root: usize) -> Result<()> {
        let (sizes, give, size, take) = (bytes_of::<T>(lengths), Bytes::of(all), size_of_val(data), Room::of(data));
        let sizes = Sizes { sizes: &sizes, places: &[] };
        self.claims.collective(|| coll::scatterv(self.id, give, sizes, take, size, number(root)))?
    }

    /// Gives each rank its own slice of each rank's, of different lengths, in the order of the ranks: what goes to each rank, and what comes
    /// from each.
    pub fn alltoallv<T: Plain>(&self, sent: (&[T], &[usize]), received: (&mut [T], &[usize])) -> Result<()> {
        let (given, taken) = (bytes_of::<T>(sent.1), bytes_of::<T>(received.1));
        let (given, taken) = (Sizes { sizes: &given, places: &[] }, Sizes { sizes: &taken, places: &[] });
        let (give, take) = (Bytes::of(sent.0), Room::of(received.0));
        self.claims.collective(|| coll::alltoallv(self.id, give, given, take, taken))?
    }

    /// Gives the neighbours on the grid a slice, the same to all, and gets one of each: of each dimension that of the rank before and that of the
    /// rank behind. What would come from beyond an edge stays as it is. See [`Comm::grid`].
    pub fn neighbour_allgather<T: Plain>(&self, data: &[T], all: &mut [T]) -> Result<()> {
        let blocks = 2 * crate::comm::cart_dimensions(self.id)?;
        self.check_blocks("neighbour_allgather", all.len(), data.len(), blocks)?;
        let (give, size, take) = (Bytes::of(data), size_of_val(data), Room::of(all));
        self.claims.collective(|| coll::neighbours(self.id, give, true, size, take))?
    }

    /// The same with a slice of its own for each neighbour.
    pub fn neighbour_alltoall<T: Plain>(&self, sent: &[T], received: &mut [T]) -> Result<()> {
        let blocks = 2 * crate::comm::cart_dimensions(self.id)?;
        self.check_blocks("neighbour_alltoall", sent.len(), sent.len() / blocks, blocks)?;
        self.check_blocks("neighbour_alltoall", received.len(), sent.len() / blocks, blocks)?;
        let (give, size, take) = (Bytes::of(sent), size_of_val(sent) / blocks, Room::of(received));
        self.claims.collective(|| coll::neighbours(self.id, give, false, size, take))?
    }

    fn check_blocks(&self, call: &str, all: usize, each: usize, blocks: usize) -> Result<()> {
        if each.checked_mul(blocks) == Some(all) {
            return Ok(());
        }
        let text = format!("{call} with {each} elements of each of {blocks} neighbours and {all} of all");
        Err(Error::new(Code::Argument, text))
    }

    /// As [`Comm::scan`] without each rank's own slice: that of rank k becomes what those of ranks 0 to k - 1 are together; rank 0's stays.
    pub fn exscan<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>) -> Result<()> {
        let (count, data) = (elements(data.len())?, Room::of(data));
        function.with(|f| self.claims.collective(|| coll::exscan(self.id, data, count, f)))?
    }

    /// Combines the ranks' slices `all` element by element; each rank gets its block of the result, in the order of the ranks.
    pub fn reduce_scatter<T: Plain>(&self, all: &[T], data: &mut [T], function: impl Reduce<T>) -> Result<()> {
        self.check_length("reduce_scatter", all.len(), data.len())?;
        let (give, count, take) = (Bytes::of(all), elements(data.len())?, Room::of(data));
        function.with(|f| self.claims.collective(|| coll::reduce_scatter(self.id, give, take, count, f)))?
    }

    /// Combines the slices of the ranks up to each element by element: the first rank's stays, the last one's becomes what
    /// [`Comm::allreduce`] gives.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut until = [10u64];
    /// world.scan(&mut until, |a: u64, b: u64| a + b)?;
    /// assert_eq!(until[0], 10 * (world.rank() as u64 + 1));
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    pub fn scan<T: Plain>(&self, data: &mut [T], function: impl Reduce<T>) -> Result<()> {
        let (count, data) = (elements(data.len())?, Room::of(data));
        function.with(|f| self.claims.collective(|| coll::scan(self.id, data, count, f)))?
    }

    /// Combines the slices of the ranks named, a group chosen for this call, in their order; the root's becomes the result. All of them
    /// make the call, this one and the root among them, and nobody else takes part.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut sum = [1.0];
    /// world.mcast_reduce(&mut sum, fmpl::Sum, [0], 0)?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::Peer`] when a member has died, at those who wait for it; the communicator is as usable as before.
    pub fn mcast_reduce<T: Plain>(
        &self,
        data: &mut [T],
        function: impl Reduce<T>,
        members: impl IntoIterator<Item = usize>,
        root: usize,
    ) -> Result<()> {
        let bits = self.bitmap("mcast_reduce", members)?;
        let (count, data) = (elements(data.len())?, Room::of(data));
        let call = |f: &Function<'_>| coll::mcast_reduce(self.id, data, count, f, Bytes::of(&bits), number(root));
        function.with(|f| self.claims.collective(|| call(f)))?
    }

    /// Gives each of the ranks named, a group chosen for this call, its own block of `sent`, which has one for each of them in the order of the ranks; theirs
    /// come to `received` in the same order. All of them make the call, this one among them, and nobody else takes part.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut received = [0u32; 2];
    /// world.mcast_alltoall(&[3, 4], &mut received, [0])?;
    /// assert_eq!(received, [3, 4]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// [`Code::Argument`]: the two are not as long as each other, or no block for each; [`Code::Peer`] when a member has died: the blocks of the others
    /// have come all the same, and the communicator is as usable as before.
    pub fn mcast_alltoall<T: Plain>(
        &self,
        sent: &[T],
        received: &mut [T],
        members: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        let bits = self.bitmap("mcast_alltoall", members)?;
        let many = bits.iter().map(|word| word.count_ones() as usize).sum::<usize>().max(1);
        if sent.len() != received.len() || !sent.len().is_multiple_of(many) {
            let text = format!("mcast_alltoall of {} elements for {} of {many} ranks", sent.len(), received.len());
            return Err(Error::new(Code::Argument, text));
        }
        let (size, give, take) = (size_of_val(sent) / many, Bytes::of(sent), Room::of(received));
        let bits = Bytes::of(&bits);
        self.claims.collective(|| coll::mcast_alltoall(self.id, give, size, take, bits))?
    }

    /// `all` is a block of `each` elements for each rank.
    pub(super) fn check_length(&self, call: &str, all: usize, each: usize) -> Result<()> {
        if each.checked_mul(self.size) == Some(all) {
            return Ok(());
        }
        let text = format!("{call} with {each} elements of each of {} ranks and room for {all} of all", self.size);
        Err(Error::new(Code::Argument, text))
    }
}
