//! Collective calls that do not wait: one of a communicator at a time, and several.

use super::*;
use crate::base::bytes::{Bytes, Room};
use crate::coll::{self, Ask, Elements, Sides};
use crate::comm::collective::elements;

fn bcast<T: Plain>(data: &mut [T], root: usize) -> Ask {
    let len = size_of_val(data);
    // SAFETY: borrowed until the scope is over, and by then the call is.
    Ask::Bcast(unsafe { Room::new(data.as_mut_ptr().cast(), len) }, len, number(root))
}

/// A vector and its function, both the scope's, which must stay in its box until the call is over.
fn vector<T: Plain>(data: &mut [T], function: &Boxed<'_>) -> Result<Elements> {
    let (count, len) = (elements(data.len())?, size_of_val(data));
    // SAFETY: both last until the scope is over, and by then the call is: the slice is borrowed so long, and what the function points to
    // is in the box, which the record keeps until then.
    let (data, f) = unsafe { (Room::new(data.as_mut_ptr().cast(), len), coll::function::lasting(function.function())) };
    Ok(Elements { data, count, f })
}

/// Blocks of `each` elements.
fn blocks<T: Plain>(give: &[T], take: &mut [T], each: usize) -> Sides {
    let (from, to) = ((give.as_ptr(), size_of_val(give)), (take.as_mut_ptr(), size_of_val(take)));
    // SAFETY: borrowed until the scope is over, and by then the call is.
    let (give, take) = unsafe { (Bytes::new(from.0.cast(), from.1), Room::new(to.0.cast(), to.1)) };
    Sides { give, size: each * size_of::<T>(), take }
}

/// One call at a time, or one of several.
#[derive(Clone, Copy)]
enum Way {
    Single,
    Apart,
}

/// Makes both forms of each call: the one of which there is one at a time, and, with `_n`, the one of several. An entry says what the two are
/// called and what they are given, and what is asked for. A reduction's function, which must last as long as the call, comes with it.
macro_rules! both {
    ($(
        $(#[$single_doc:meta])* $single:ident,
        $(#[$apart_doc:meta])* $apart:ident $(<$element:ident>)?
            (&$scope:ident $(, $given:ident: $kind:ty)*) = $ask:expr;
    )*) => {
        /// Collective calls. Of those without `_n` a communicator has at most one under way; it is done as the calls that wait are, and until it is
        /// over all other such calls and those that wait get [`Code::Busy`](crate::Code::Busy). Of those with `_n` it may have
        /// [`TICKETS`](coll::TICKETS), and any other calls meanwhile; they are done by messages between the ranks. All ranks begin all of
        /// them in the same order.
        impl<'scope, 'env> Scope<'scope, 'env> {
            $(
                $(#[$single_doc])*
                pub fn $single $(<$element: Plain>)? (&'scope $scope $(, $given: $kind)*)
                    -> Result<CollectiveRequest<'scope, 'env>>
                {
                    let (function, ask) = $ask;
                    $scope.begin_collective(Way::Single, function, ask)
                }

                $(#[$apart_doc])*
                pub fn $apart $(<$element: Plain>)? (&'scope $scope $(, $given: $kind)*)
                    -> Result<CollectiveRequest<'scope, 'env>>
                {
                    let (function, ask) = $ask;
                    $scope.begin_collective(Way::Apart, function, ask)
                }
            )*
        }
    };
}

both! {
    /// Begins a barrier. A communicator has at most one such call under way: until it is over all others but those with `_n` get
    /// [`Code::Busy`](crate::Code::Busy).
    ibarrier,
    /// Begins a barrier, one of several calls that may be under way.
    ibarrier_n(&self) = (None, Ask::Barrier);

    /// Begins to copy the root's slice to all ranks; see [`Scope::ibarrier`].
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut table = [0.0; 100];
    /// world.scope(|s| {
    ///     let coming = s.ibcast(&mut table, 0)?;
    ///     // ... compute ...
    ///     coming.wait()
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ibcast,
    /// The same, one of several calls that may be under way.
    ///
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut tables = [[0.0; 100]; 3];
    /// world.scope(|s| {
    ///     let coming: Vec<_> = tables.iter_mut().map(|t| s.ibcast_n(t, 0)).collect::<Result<_, _>>()?;
    ///     world.barrier()?; // calls that wait are in nobody's way
    ///     coming.into_iter().rev().try_for_each(|one| one.wait())
    /// })?;
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ibcast_n<T>(&self, data: &'scope mut [T], root: usize) = (None, bcast(data, root));

    /// Begins to combine the ranks' slices into the root's; see [`Comm::reduce`] and [`Scope::iallreduce`].
    ireduce,
    /// The same, one of several calls that may be under way. The function must be associative.
    ireduce_n<T>(&self, data: &'scope mut [T], function: impl Reduce<T> + Send + 'scope, root: usize) = {
        let function = function.boxed();
        let ask = Ask::Reduce(vector(data, &function)?, number(root));
        (Some(function), ask)
    };

    /// Begins to combine the ranks' slices; see [`Comm::allreduce`] and [`Scope::ibarrier`]. Whatever thread of the process waits in
    /// the library may call the function.
    iallreduce,
    /// The same, one of several calls that may be under way. The function must be associative.
    iallreduce_n<T>(&self, data: &'scope mut [T], function: impl Reduce<T> + Send + 'scope) = {
        let function = function.boxed();
        let ask = Ask::Allreduce(vector(data, &function)?);
        (Some(function), ask)
    };

    /// Begins to collect a slice of each rank at the root; see [`Comm::gather`] and [`Scope::ibarrier`].
    igather,
    /// The same, one of several calls that may be under way.
    igather_n<T>(&self, data: &'scope [T], all: &'scope mut [T], root: usize) = (None, self.gather(data, all, root)?);

    /// Begins to collect a slice of each rank at all ranks; see [`Comm::allgather`] and [`Scope::ibarrier`].
    iallgather,
    /// The same, one of several calls that may be under way.
    iallgather_n<T>(&self, data: &'scope [T], all: &'scope mut [T]) = (None, self.allgather(data, all)?);

    /// Begins to give each rank its own slice of the root's; see [`Comm::scatter`] and [`Scope::ibarrier`].
    iscatter,
    /// The same, one of several calls that may be under way.
    iscatter_n<T>(&self, all: &'scope [T], data: &'scope mut [T], root: usize)
        = (None, self.scatter(all, data, root)?);

    /// Begins to give each rank its own slice of each rank's; see [`Comm::alltoall`] and [`Scope::ibarrier`].
    ialltoall,
    /// The same, one of several calls that may be under way.
    ialltoall_n<T>(&self, sent: &'scope [T], received: &'scope mut [T]) = (None, self.alltoall(sent, received)?);
}

impl<'scope, 'env> Scope<'scope, 'env> {
    fn gather<T: Plain>(&self, data: &'scope [T], all: &'scope mut [T], root: usize) -> Result<Ask> {
        if self.comm.rank == root {
            self.comm.check_length("gather", all.len(), data.len())?;
        }
        Ok(Ask::Gather(blocks(data, all, data.len()), number(root)))
    }

    fn allgather<T: Plain>(&self, data: &'scope [T], all: &'scope mut [T]) -> Result<Ask> {
        self.comm.check_length("allgather", all.len(), data.len())?;
        Ok(Ask::Allgather(blocks(data, all, data.len())))
    }

    fn scatter<T: Plain>(&self, all: &'scope [T], data: &'scope mut [T], root: usize) -> Result<Ask> {
        if self.comm.rank == root {
            self.comm.check_length("scatter", all.len(), data.len())?;
        }
        let each = data.len();
        Ok(Ask::Scatter(blocks(all, data, each), number(root)))
    }

    fn alltoall<T: Plain>(&self, sent: &'scope [T], received: &'scope mut [T]) -> Result<Ask> {
        let each = sent.len() / self.comm.size;
        self.comm.check_length("alltoall", sent.len(), each)?;
        self.comm.check_length("alltoall", received.len(), each)?;
        Ok(Ask::Alltoall(blocks(sent, received, each)))
    }

    fn begin_collective(
        &'scope self,
        way: Way,
        function: Option<Boxed<'scope>>,
        ask: Ask,
    ) -> Result<CollectiveRequest<'scope, 'env>> {
        let (comm, kind) = (self.comm.id, ask.kind());
        let call = self.comm.claims.collective(|| match way {
            Way::Single => coll::begin(comm, ask).map(|()| Begun::Single(kind)),
            Way::Apart => coll::begin_apart(comm, ask).map(Begun::Apart),
        })??;
        let open = Open { collective: Some(call), _function: function, ..Open::of(comm, -1, -1, Direction::Receive) };
        Ok(CollectiveRequest { record: self.note(open) })
    }
}
