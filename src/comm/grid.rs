//! Grids of ranks, as the C interface calls them.

use crate::base::error::{Code, Error, Result, error};
use crate::base::named::Named;
use crate::comm::create::{comm_dup, comm_split};
use crate::p2p::context::Context;
use crate::p2p::endpoint::endpoint;
use crate::p2p::grid::Grid;

/// `fmpl_cart_create`: a communicator of the first ranks, which form a grid of these dimensions; all ranks of `comm` call it. `None`: this rank
/// has no place in it.
pub fn cart_create(comm: i32, sides: impl Iterator<Item = (u32, bool)>) -> Result<Option<i32>> {
    let ep = endpoint()?;
    let size = ep.context(comm)?.group.size();
    let wrong = || {
        let text = format!(
            "rank {}: cart_create: no grid of 1 to {size} ranks of communicator {comm}",
            ep.rank,
            comm = Named(comm)
        );
        Error::new(Code::Argument, text)
    };
    let grid = Grid::new(sides, size).ok_or_else(wrong)?;
    let inside = ep.context(comm)?.group.rank() < grid.ranks();
    let made =
        if grid.ranks() == size { Some(comm_dup(comm)?) } else { comm_split(comm, if inside { 0 } else { -1 }, 0)? };
    if let Some(made) = made {
        let _ = ep.context(made)?.grid.set(grid);
    }
    Ok(made)
}

/// Calls with a communicator and its grid.
fn with<R>(cart: i32, call: &str, work: impl FnOnce(&Context, &Grid) -> Result<R>) -> Result<R> {
    let ep = endpoint()?;
    let context = ep.context(cart)?;
    match context.grid.get() {
        Some(grid) => work(context, grid),
        None => {
            let text = format!(
                "rank {}: {call}: communicator {cart} was not made by cart_create",
                ep.rank,
                cart = Named(cart)
            );
            Err(Error::new(Code::Comm, text))
        }
    }
}

/// `fmpl_cart_coords`: where in the grid a rank is.
pub fn cart_coords(cart: i32, rank: i32) -> Result<Vec<u32>> {
    with(cart, "cart_coords", |context, grid| {
        endpoint()?.check_rank(context, rank)?;
        Ok(grid.coordinates(rank as u32))
    })
}

/// How many dimensions a grid has.
pub fn cart_dimensions(cart: i32) -> Result<usize> {
    with(cart, "cart", |_, grid| Ok(grid.dimensions()))
}

/// `fmpl_cart_rank`: the rank there; `None`: beyond an edge.
pub fn cart_rank(cart: i32, at: impl Iterator<Item = i64>) -> Result<Option<u32>> {
    with(cart, "cart_rank", |_, grid| Ok(grid.rank(at)))
}

/// `fmpl_cart_shift`: from whom, and to whom, when all ranks send so many steps along a dimension.
pub fn cart_shift(cart: i32, dimension: i32, steps: i32) -> Result<(Option<u32>, Option<u32>)> {
    with(cart, "cart_shift", |context, grid| {
        let rank = endpoint()?.rank;
        let wrong = || {
            let (cart, n) = (Named(cart), grid.dimensions());
            error!(
                Code::Argument,
                "rank {rank}: cart_shift along dimension {dimension} of communicator {cart}, a grid that has {n}"
            )
        };
        let d = usize::try_from(dimension).ok().filter(|d| *d < grid.dimensions()).ok_or_else(wrong)?;
        let (me, steps) = (context.group.rank(), i64::from(steps));
        Ok((grid.away(me, d, -steps), grid.away(me, d, steps)))
    })
}
