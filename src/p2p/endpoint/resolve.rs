//! What the arguments of a call name: a communicator, a rank of it, the lane to that rank, an index of the lane.

use super::Endpoint;
use crate::base::atomics::Ordering;
use crate::base::error::{Code, Error, Result, error};
use crate::base::named::Named;
use crate::lane::map::{INDEX_MAX, SYSTEM_INDICES};
use crate::lane::{Lane, Used};
use crate::p2p::context::Context;

impl Endpoint {
    /// The lane to a peer for a call with these arguments, used from here on, and the slot of the index; the error says which argument is
    /// wrong.
    #[cold]
    #[inline(never)]
    pub fn resolve(&self, comm: i32, peer: i32, index: i32) -> Result<(Used, usize)> {
        let context = self.context(comm)?;
        self.check_rank(context, peer)?;
        if index < 0 || index as usize >= context.indices {
            return Err(self.bad_index(peer as u32, index, context.indices));
        }
        let mine = self.region.indices() as usize;
        if index as usize >= mine {
            return Err(self.bad_index(peer as u32, index, mine));
        }
        let lane = self.lane_of(context, peer)?;
        let slot = index as usize + SYSTEM_INDICES;
        lane.open_fronts(slot)?;
        if slot >= lane.limit() as usize {
            let both = self.widen(&lane)?;
            if index as usize >= both {
                return Err(self.bad_index(peer as u32, index, both));
            }
        }
        Ok((lane, slot))
    }

    /// Opens a lane as far as both sides have indices by now; how far that is.
    pub fn widen(&self, lane: &Lane) -> Result<usize> {
        let both = self.common_indices(lane);
        lane.widen(both)?;
        Ok(both)
    }

    /// So many indices both sides of a lane have.
    pub(super) fn common_indices(&self, lane: &Lane) -> usize {
        let mine = self.region.indices();
        if let Some(remote) = lane.remote() {
            return (mine.min(remote.ask_indices().unwrap_or(0)) as usize).min(lane.most_indices());
        }
        let theirs = lane.peer.as_ref().map_or(mine, |p| p.region.header().indices.load(Ordering::Acquire));
        (mine.min(theirs) as usize).min(lane.most_indices())
    }

    fn bad_index(&self, peer: u32, index: i32, have: usize) -> Error {
        error!(Code::Index, "rank {}: index {index} with peer {peer}: there are {have}, from 0 on", self.rank)
    }

    /// Is this a communicator?
    pub fn check_comm(&self, comm: i32) -> Result<()> {
        self.context(comm).map(|_| ())
    }

    /// The communicator of a handle.
    #[inline]
    pub fn context(&self, comm: i32) -> Result<&'static Context> {
        self.contexts.find(comm).ok_or_else(|| self.bad_comm(comm))
    }

    #[cold]
    fn bad_comm(&self, comm: i32) -> Error {
        let what = match comm {
            crate::p2p::COMM_NULL => "FMPL_COMM_NULL".to_string(),
            _ if self.contexts.was_freed(comm) => format!("communicator {comm} has been freed"),
            _ => format!("{comm} is not a communicator"),
        };
        error!(Code::Comm, "rank {}: {what}", self.rank)
    }

    /// An error if this is no rank of the communicator.
    pub fn check_rank(&self, context: &Context, peer: i32) -> Result<()> {
        let size = context.group.size();
        if peer >= 0 && (peer as u32) < size {
            return Ok(());
        }
        let comm = Named(context.handle);
        Err(error!(Code::Rank, "rank {}: peer {peer} in communicator {comm} of {size} ranks", self.rank))
    }
}

/// Can a process ask for so many indices?
pub(super) fn check_indices(indices: usize) -> Result<()> {
    if indices > INDEX_MAX {
        return Err(error!(Code::Argument, "{indices} indices; the most is {INDEX_MAX}"));
    }
    Ok(())
}
