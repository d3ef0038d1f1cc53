//! Communicators beside the world, as values.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::base::error::{Code, Result, error};
use crate::base::unused::Unused;
use crate::comm::claim::Claims;
use crate::comm::{Comm, Job, create, grid, job};

/// A communicator that this process belongs to, made by [`Comm::split`], [`Comm::duplicate`] or [`Job::create`]. Messages on it never
/// mix with those of another, on equal indices either.
///
/// [`Communicator::comm`] has the calls. Whatever uses it, a [`Scope`](crate::Scope) and its requests, a
/// [`Channel`](crate::Channel), borrows it, so that nothing is under way when it is freed. Dropping it frees it: this process's part at
/// once, waiting for nobody. What was sent on it can still be received by ranks that have theirs; what was not received is lost.
///
/// ```no_run
/// let job = fmpl::init(4)?;
/// let world = job.world();
/// // The rows of a grid that is 4 wide; in each the highest rank of the world comes first.
/// let row = world.split(Some(world.rank() / 4), -(world.rank() as i32))?.expect("every rank has a colour");
/// row.comm().barrier()?;
/// if row.rank() == 0 && row.size() > 1 {
///     row.comm().send(&[1.5], 1, 0)?;
/// }
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// ```compile_fail,E0505
/// # let job = fmpl::init(4)?;
/// let pair = job.world().duplicate()?;
/// let channel = pair.comm().channel(0, 0)?;
/// drop(pair); // cannot move out of `pair` because it is borrowed
/// channel.split();
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct Communicator<'job> {
    id: i32,
    rank: usize,
    size: usize,
    claims: Arc<Claims>,
    /// Freed: dropping it does nothing more.
    freed: bool,
    _job: PhantomData<&'job Job>,
}

impl<'job> Communicator<'job> {
    fn new(id: i32) -> Result<Communicator<'job>> {
        let (rank, size) = (job::comm_rank(id)? as usize, job::comm_size(id)? as usize);
        Ok(Communicator { id, rank, size, claims: Claims::of_communicator(size), freed: false, _job: PhantomData })
    }

    /// The calls on it; as [`Job::world`] for the world.
    pub fn comm(&self) -> Comm<'_> {
        Comm { id: self.id, rank: self.rank, size: self.size, claims: &self.claims, _job: PhantomData }
    }

    /// This process's rank in it.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of its ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// As dropping it, and tells how it went. A request that was forgotten in raw calls is [`Code::Busy`], and leaves it unfreed.
    pub fn free(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.freed = true;
        // SAFETY: everything that uses the communicator borrows it, and it goes now.
        create::comm_free(self.id, unsafe { Unused::promised() })
    }
}

impl Drop for Communicator<'_> {
    fn drop(&mut self) {
        if !self.freed {
            let _ = self.end();
        }
    }
}

impl std::fmt::Debug for Communicator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Communicator { id, rank, size, .. } = self;
        f.debug_struct("Communicator").field("id", id).field("rank", rank).field("size", size).finish()
    }
}

fn number(colour: Option<usize>) -> Result<i32> {
    let Some(colour) = colour else { return Ok(-1) };
    i32::try_from(colour).map_err(|_| error!(Code::Argument, "a communicator of colour {colour}"))
}

impl Job {
    /// Makes communicators of the ranks of the world, all of which call it: those with equal keys form one, in the world's order.
    /// `None` takes no part and gets none. The paper's `fmpl_comm_create`.
    ///
    /// [`Code::Peer`] when a rank has died, [`Code::Argument`] when others make another call.
    pub fn create(&self, key: Option<usize>) -> Result<Option<Communicator<'_>>> {
        create::comm_create(number(key)?)?.map(Communicator::new).transpose()
    }
}

impl<'job> Comm<'job> {
    /// Makes communicators of this one's ranks, all of which call it: those with equal colours form one, ordered by `order` and,
    /// where that is equal, by their ranks here. `None` takes no part and gets none.
    ///
    /// What is made from a [`Communicator`] borrows that one; what is made from the world borrows the job only.
    ///
    /// Errors as for [`Job::create`]; [`Code::Busy`] when another thread is in such a call on this communicator.
    pub fn split(&self, colour: Option<usize>, order: i32) -> Result<Option<Communicator<'job>>> {
        create::comm_split(self.id, number(colour)?, order)?.map(Communicator::new).transpose()
    }

    /// Makes a communicator of the ranks of each node, which share memory; all ranks call it. Ordered as by [`Comm::split`].
    pub fn split_node(&self, order: i32) -> Result<Communicator<'job>> {
        Communicator::new(create::comm_split_node(self.id, order)?)
    }

    /// A communicator of the same ranks in the same order, all of which call it.
    pub fn duplicate(&self) -> Result<Communicator<'job>> {
        Communicator::new(create::comm_dup(self.id)?)
    }

    /// Makes a communicator of some of the ranks, in the order of the list; they alone call it, all with the same list. The others know nothing
    /// of it, and may be dead: so those who live go on without the dead.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let living: Vec<usize> = (0..world.size()).filter(|rank| *rank != 5).collect();
    /// if world.rank() != 5 {
    ///     let survivors = world.group(&living)?;
    ///     survivors.comm().barrier()?;
    /// }
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// Errors: [`Code::Argument`] for a list that is empty, has a rank twice, not this one, or others than another rank's;
    /// [`Code::Peer`] when one of them has died.
    pub fn group(&self, ranks: &[usize]) -> Result<Communicator<'job>> {
        let ranks: Vec<i32> = ranks.iter().map(|rank| i32::try_from(*rank).unwrap_or(i32::MAX)).collect();
        Communicator::new(create::comm_group_create(self.id, &ranks)?)
    }

    /// Makes a communicator of the first ranks, which form a grid: so many along each dimension, and whether it closes there. All ranks call it
    /// with the same; `None`: this one has no place in it. The last dimension's neighbours have neighbouring ranks.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let ring = world.grid(&[(world.size(), true)])?.expect("all ranks are in it");
    /// let mut halo = [0; 2];
    /// ring.comm().neighbour_allgather(&[ring.rank()], &mut halo)?; // from the one before, from the one behind
    /// # assert_eq!(halo, [0; 2]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ///
    /// Errors as for [`Job::create`]; [`Code::Argument`] for more places than ranks.
    pub fn grid(&self, sides: &[(usize, bool)]) -> Result<Option<Communicator<'job>>> {
        let sides = sides.iter().map(|(n, closes)| (u32::try_from(*n).unwrap_or(u32::MAX), *closes));
        grid::cart_create(self.id, sides)?.map(Communicator::new).transpose()
    }

    /// Where in the grid a rank is; [`Code::Comm`] if this communicator is none.
    pub fn coordinates(&self, rank: usize) -> Result<Vec<usize>> {
        let at = grid::cart_coords(self.id, i32::try_from(rank).unwrap_or(i32::MAX))?;
        Ok(at.into_iter().map(|at| at as usize).collect())
    }

    /// The rank there in the grid, one coordinate for each dimension; `None`: beyond an edge.
    pub fn rank_at(&self, coordinates: &[i64]) -> Result<Option<usize>> {
        if grid::cart_dimensions(self.id)? != coordinates.len() {
            return Err(error!(Code::Argument, "{} coordinates", coordinates.len()));
        }
        Ok(grid::cart_rank(self.id, coordinates.iter().copied())?.map(|rank| rank as usize))
    }

    /// From whom, and to whom, when all ranks send so many steps along a dimension; `None`: nobody, beyond an edge.
    pub fn shift(&self, dimension: usize, steps: i32) -> Result<(Option<usize>, Option<usize>)> {
        let (from, to) = grid::cart_shift(self.id, i32::try_from(dimension).unwrap_or(-1), steps)?;
        Ok((from.map(|rank| rank as usize), to.map(|rank| rank as usize)))
    }

    /// Gives it a name, which stands behind its number in errors, in reports of stalls and of events; an empty one takes the name away. Each
    /// rank has its own. [`Code::Argument`]: more than 63 bytes.
    pub fn set_name(&self, name: &str) -> Result<()> {
        create::comm_set_name(self.id, name)
    }

    /// What this rank has named it; empty: nothing.
    pub fn name(&self) -> Result<String> {
        create::comm_name(self.id)
    }

    /// The rank in `other` of the process that has `rank` here; `None` if it is no member.
    pub fn translate(&self, rank: usize, other: &Comm<'_>) -> Result<Option<usize>> {
        let rank = i32::try_from(rank).unwrap_or(i32::MAX);
        Ok(create::comm_translate(self.id, rank, other.id)?.map(|r| r as usize))
    }
}
