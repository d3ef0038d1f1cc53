//! What the master of a multicast waits for.

use super::given_up::of_this_node;
use super::{ACKED, is_complete, members, of_the_dead, own, wide};
use crate::base::atomics::AtomicU32;
use crate::base::error::{Code, Error, error};
use crate::lane::BlockRef;
use crate::p2p::endpoint::Endpoint;
use crate::wait::{Board, Operation, Scene, Waits};

/// A wait for room in the spool, for which nobody rings.
pub(super) struct ForRoom {
    pub ep: &'static Endpoint,
}

/// A wait for the end of a multicast.
pub(super) struct Complete {
    pub ep: &'static Endpoint,
    pub block: BlockRef,
    pub since_ns: u64,
}

impl Complete {
    fn is_wide(&self) -> bool {
        self.ep.spool.is_held(self.block) && own(self.ep, self.block).is_some_and(|shared| shared.extra != 0)
    }
}

pub(super) fn waits(ep: &Endpoint) -> Waits {
    Waits { operation: Operation::Multicast, peer: ep.rank, index: -1, comm: 0, bytes: 0, since_ns: 0 }
}

impl Scene for ForRoom {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        false
    }
    fn meanwhile(&self) -> bool {
        self.ep.waiting_sends.push(self.ep) | self.ep.any_source.push(self.ep)
    }
    fn gone(&self) -> Option<Error> {
        None
    }
    fn waits(&self) -> Waits {
        waits(self.ep)
    }
}

impl Scene for Complete {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        // While the block is held the record is ours; a block that is done is taken again by nobody but this thread's process, whose
        // new record would only be rung for without need.
        own(self.ep, self.block).map(|shared| &shared.record.asleep)
    }
    fn is_ordered(&self) -> bool {
        self.ep.is_ordered()
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        is_complete(self.ep, self.block)
    }
    fn fall_asleep(&self) -> bool {
        // For units that come from other nodes nobody rings.
        !self.is_wide() && self.sleep_word().map(crate::wait::mark_asleep).is_some()
    }
    fn meanwhile(&self) -> bool {
        if self.is_wide() {
            self.ep.tend_links();
            wide::acquaint(self.ep, self.block, self.since_ns);
        }
        self.ep.waiting_sends.push(self.ep) | self.ep.any_source.push(self.ep)
    }
    fn gone(&self) -> Option<Error> {
        of_the_dead(self.ep, self.block).or_else(|| of_the_freed(self.ep, self.block))
    }
    fn waits(&self) -> Waits {
        waits(self.ep)
    }
}

/// The error of a multicast on a node of which a member has freed the communicator without its data. Of other nodes it is not known. Looks now
/// and then only.
pub(super) fn of_the_freed(ep: &Endpoint, block: BlockRef) -> Option<Error> {
    let (shared, context, has_freed) = of_this_node(ep, block)?;
    if context.handle == crate::p2p::COMM_WORLD || !ep.any_source.is_time_to_look(ep, block) {
        return None;
    }
    let is_known = |rank: u32| ep.known(context.group.world_rank(rank)).is_some();
    let is_gone = |rank: u32| !shared.has(ACKED, rank) && is_known(rank) && has_freed(rank);
    let gone = members(&shared.members()).find(|rank| is_gone(*rank))?;
    // What it had of the multicast comes before that.
    if is_complete(ep, block) || shared.has(ACKED, gone) {
        return None;
    }
    let (me, what) = (ep.rank, "others may not have the message");
    Some(error!(Code::Peer, "rank {me}: mcast: rank {gone} has freed the communicator, or left; {what}"))
}
