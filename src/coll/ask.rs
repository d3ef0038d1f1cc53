//! What a collective call that does not wait is asked for, and the two ways in which it is done: in its communicator's turn, as the calls
//! that wait are, or apart from all others, by messages of its own.

use core::future::Future;
use core::pin::Pin;
use std::rc::Rc;

use super::exchange::{self, Blocks, Pattern};
use super::function::{Function, Vector};
use super::messages::Party;
use super::reduce::{self, To};
use super::team::{Own, Team};
use super::{barrier, bcast, between, check_blocks, check_room, check_root, check_vector, tree};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::Result;
use crate::base::variants::variants;

variants! {
    /// Which call it is.
    pub enum Kind: u8, name {
        /// `fmpl_ibarrier`
        Barrier => "ibarrier",
        /// `fmpl_ibcast`
        Bcast => "ibcast",
        /// `fmpl_ireduce`
        Reduce => "ireduce",
        /// `fmpl_iallreduce`
        Allreduce => "iallreduce",
        /// `fmpl_igather`
        Gather => "igather",
        /// `fmpl_iallgather`
        Allgather => "iallgather",
        /// `fmpl_iscatter`
        Scatter => "iscatter",
        /// `fmpl_ialltoall`
        Alltoall => "ialltoall",
    }
}

/// Blocks of `size` bytes, as [`gather`](super::gather) and its like have them; of a side that a rank has no part in there is no memory.
#[derive(Clone, Copy)]
pub struct Sides {
    /// The blocks that this rank gives.
    pub give: Bytes<'static>,
    /// Bytes of a block.
    pub size: usize,
    /// Room for those that it takes.
    pub take: Room<'static>,
}

/// A vector, and what it is combined with.
pub struct Elements {
    /// Its memory.
    pub data: Room<'static>,
    /// Its length in elements.
    pub count: i32,
    /// How two elements are combined.
    pub f: Function<'static>,
}

/// What is asked for. Its memory is the call's until that is completed.
pub enum Ask {
    /// All have come.
    Barrier,
    /// So many bytes of the root to all.
    Bcast(Room<'static>, usize, i32),
    /// All vectors, combined, to the root.
    Reduce(Elements, i32),
    /// The same to all.
    Allreduce(Elements),
    /// Everybody's block to the root.
    Gather(Sides, i32),
    /// The same to all.
    Allgather(Sides),
    /// Its own of the root's blocks to each.
    Scatter(Sides, i32),
    /// Its own of everybody's blocks to each.
    Alltoall(Sides),
}

pub(super) type Call = Pin<Box<dyn Future<Output = Result<()>>>>;

/// What is asked for, found to be right.
pub(super) enum Asked {
    Barrier,
    Bcast(Room<'static>, usize),
    Reduce(Elements, To),
    Exchange(Pattern, Blocks<'static>),
}

impl Ask {
    /// Which call it is.
    pub fn kind(&self) -> Kind {
        match self {
            Ask::Barrier => Kind::Barrier,
            Ask::Bcast(..) => Kind::Bcast,
            Ask::Reduce(..) => Kind::Reduce,
            Ask::Allreduce(..) => Kind::Allreduce,
            Ask::Gather(..) => Kind::Gather,
            Ask::Allgather(..) => Kind::Allgather,
            Ask::Scatter(..) => Kind::Scatter,
            Ask::Alltoall(..) => Kind::Alltoall,
        }
    }

    pub(super) fn check(self, team: &Team) -> Result<Asked> {
        let call = self.kind().name();
        let root = |root| check_root(team, root, call);
        let vector = |of: &Elements| check_vector(team, of.data, of.count, &of.f, call).map(|_| ());
        let blocks = |pattern, Sides { give, size, take }| {
            Ok(Asked::Exchange(pattern, check_blocks(team, pattern, Blocks { give, take, size }, call)?))
        };
        match self {
            Ask::Barrier => Ok(Asked::Barrier),
            Ask::Bcast(data, len, from) => Ok(Asked::Bcast(check_room(team, data, len, call)?, root(from)?)),
            Ask::Reduce(of, to) => vector(&of).and_then(|()| Ok(Asked::Reduce(of, To::Root(root(to)?)))),
            Ask::Allreduce(of) => vector(&of).map(|()| Asked::Reduce(of, To::All)),
            Ask::Gather(sides, to) => blocks(Pattern::Gather(root(to)?), sides),
            Ask::Allgather(sides) => blocks(Pattern::Allgather, sides),
            Ask::Scatter(sides, from) => blocks(Pattern::Scatter(root(from)?), sides),
            Ask::Alltoall(sides) => blocks(Pattern::Alltoall, sides),
        }
    }
}

impl Elements {
    fn vector(&self) -> Vector<'_> {
        Vector::new(self.data, self.count as usize, &self.f)
    }
}

impl Asked {
    /// Does what needs no other rank. `None`: that is all.
    fn alone(self, team: &Team) -> Option<Asked> {
        let something = match &self {
            Asked::Barrier => true,
            Asked::Bcast(data, _) => !data.is_empty(),
            Asked::Reduce(of, _) => of.count > 0,
            Asked::Exchange(_, blocks) => blocks.size > 0,
        };
        match self {
            Asked::Exchange(pattern, blocks) if something && team.whole == 1 => {
                exchange::keep(pattern, team.rank, blocks);
                None
            }
            asked => (something && team.whole > 1).then_some(asked),
        }
    }

    /// As the calls that wait: a team is in one of them at a time. `None`: nothing is left to be done.
    pub(super) fn in_turn(self, team: &'static Team) -> Option<Call> {
        let span = team.span.as_ref();
        Some(match (self.alone(team)?, span) {
            (Asked::Barrier, None) => Box::pin(barrier::barrier(team)),
            (Asked::Barrier, Some(span)) => Box::pin(between::barrier(team, span)),
            (Asked::Bcast(data, root), None) => Box::pin(bcast::bcast(team, data, root)),
            (Asked::Bcast(data, root), Some(span)) => Box::pin(between::bcast(team, span, data, root)),
            (Asked::Reduce(of, to), None) => Box::pin(async move { reduce::reduce(team, of.vector(), to).await }),
            (Asked::Reduce(of, to), Some(span)) => {
                Box::pin(async move { between::reduce(team, span, of.vector(), to).await })
            }
            (Asked::Exchange(pattern, blocks), None) => Box::pin(exchange::exchange(team, pattern, blocks)),
            (Asked::Exchange(pattern, blocks), Some(_)) => Box::pin(between::exchange(team, pattern, blocks)),
        })
    }

    /// By messages between all ranks on a slot that no other call under way uses. `None`: nothing is left to be done.
    pub(super) fn apart(self, team: &'static Team, slot: usize, own: Rc<Own>) -> Option<Call> {
        let asked = self.alone(team)?;
        Some(Box::pin(async move { asked.by_messages(&Party::apart(team, slot, &own)).await }))
    }

    async fn by_messages(&self, all: &Party<'_>) -> Result<()> {
        match self {
            Asked::Barrier => tree::barrier(all).await,
            Asked::Bcast(data, root) => between::bcast_apart(all, *data, *root).await,
            Asked::Reduce(of, to) => between::reduce_among(all, of.vector(), *to).await,
            Asked::Exchange(pattern, blocks) => between::exchange_among(all, *pattern, *blocks).await,
        }
    }
}
