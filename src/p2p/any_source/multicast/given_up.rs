//! Which multicasts have a ticket that nobody has asked for yet; and blocks of those whose end nobody asks for any more: it never was to be asked for,
//! or the multicast was given up, since a member has died or freed the communicator without its data. They are the spool's again when no member
//! touches them any more.

use std::collections::VecDeque;

use super::{ACKED, Shared, context_of, give_back, has_strangers, is_complete, members, own, ticket_of};
use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::lock::MutexGuard;
use crate::lane::BlockRef;
use crate::p2p::any_source::AnySource;
use crate::p2p::context::Context;
use crate::p2p::endpoint::Endpoint;

/// Once in so long a wait for a multicast looks whether members have freed the communicator, which may take a map of each one's memory.
const LOOK_NS: u64 = 5_000_000;

fn unasked(ep: &Endpoint) -> MutexGuard<'_, VecDeque<BlockRef>> {
    ep.any_source.unasked.lock().unwrap_or_else(|e| e.into_inner())
}

fn asked(ep: &Endpoint) -> MutexGuard<'_, Vec<(i32, BlockRef)>> {
    ep.any_source.asked.lock().unwrap_or_else(|e| e.into_inner())
}

/// The end of a multicast is to be asked for.
pub(super) fn ask_for(ep: &Endpoint, comm: i32, block: BlockRef) {
    asked(ep).push((comm, block));
}

/// It has been, and the multicast is over.
pub(super) fn is_asked_for(ep: &Endpoint, block: BlockRef) {
    let mut asked = asked(ep);
    let is_it = |(_, other): &(i32, BlockRef)| (other.at, other.generation) == (block.at, block.generation);
    if let Some(n) = asked.iter().position(is_it) {
        asked.swap_remove(n);
    }
}

/// The ticket of a multicast of a communicator that is not complete, and whose end is to be asked for.
pub(in crate::p2p::any_source) fn under_way(ep: &Endpoint, comm: i32) -> Option<u64> {
    let of_it: Vec<BlockRef> = asked(ep).iter().filter(|(of, _)| *of == comm).map(|(_, block)| *block).collect();
    of_it.into_iter().find(|block| !is_complete(ep, *block)).map(ticket_of)
}

/// A multicast whose end nobody asks for: its block is given back in passing, by the multicasts that follow.
pub(super) fn leave(ep: &Endpoint, block: BlockRef) {
    let mut unasked = unasked(ep);
    unasked.push_back(block);
    // Several go for each that comes, and those that stay make room for others' turns.
    for _ in 0..unasked.len().min(4) {
        let Some(oldest) = unasked.pop_front() else { break };
        if !is_done(ep, oldest) {
            unasked.push_back(oldest);
        }
    }
}

/// A multicast is withdrawn, and its wait ends with an error: nobody reads the master's memory any more.
pub(super) fn give_up(ep: &Endpoint, block: BlockRef) {
    is_asked_for(ep, block);
    ep.any_source.take_back(block);
    unasked(ep).push_back(block);
    sweep(ep);
}

/// Gives back what nobody touches any more. Members of live communicators may have freed them since.
pub(in crate::p2p::any_source) fn sweep(ep: &Endpoint) {
    unasked(ep).retain(|block| !is_over(ep, *block));
}

/// Takes out the blocks of a communicator that this process frees: what stays is the spool's again when all members have freed it.
pub(in crate::p2p::any_source) fn take_of(ep: &Endpoint, context: &Context) -> Vec<BlockRef> {
    // These are complete, though nobody has asked.
    asked(ep).retain(|(comm, _)| *comm != context.handle);
    let mut unasked = unasked(ep);
    unasked.retain(|block| !is_over(ep, *block));
    let is_of_it = |block: &BlockRef| {
        let shared = own(ep, *block).filter(|shared| shared.extra == 0);
        shared.is_some_and(|shared| shared.record.handle.load(Ordering::Relaxed) as i32 == context.handle)
    };
    let (of_it, others): (VecDeque<_>, VecDeque<_>) = unasked.drain(..).partition(is_of_it);
    *unasked = others;
    of_it.into()
}

/// Is a block the spool's again, or complete, and now is?
pub(in crate::p2p::any_source) fn is_done(ep: &Endpoint, block: BlockRef) -> bool {
    if ep.spool.is_done(block) {
        give_back(ep, block);
    }
    !ep.spool.is_held(block)
}

/// The same, or is touched by nobody any more?
fn is_over(ep: &Endpoint, block: BlockRef) -> bool {
    is_done(ep, block) || {
        let nobody_comes = nobody_comes(ep, block);
        if nobody_comes {
            give_back(ep, block);
        }
        nobody_comes
    }
}

/// A multicast all of whose members are on this node, and who of them has freed its communicator, or died, or left.
pub(super) fn of_this_node(
    ep: &Endpoint,
    block: BlockRef,
) -> Option<(Shared<'_>, &'static Context, impl Fn(u32) -> bool + '_)> {
    let shared = own(ep, block).filter(|shared| shared.extra == 0 && !has_strangers(ep, shared))?;
    let context = context_of(ep, &shared)?;
    let has_freed = |rank: u32| {
        let world = context.group.world_rank(rank);
        world != ep.rank && ep.has_freed(world, context.place)
    };
    Some((shared, context, has_freed))
}

/// Has each member of a multicast on this node died, or freed the communicator, or acknowledged, and touches the block no more? The multicast
/// is not complete then, and never will be.
fn nobody_comes(ep: &Endpoint, block: BlockRef) -> bool {
    let Some((shared, _, is_gone)) = of_this_node(ep, block) else { return false };
    let bits = shared.members();
    // Before the look at who has acknowledged: who is gone does nothing more.
    let gone: Vec<bool> = members(&bits).map(is_gone).collect();
    let acked: Vec<bool> = members(&bits).map(|rank| shared.has(ACKED, rank)).collect();
    gone.len() == shared.count
        && gone.iter().zip(&acked).all(|(gone, acked)| *gone || *acked)
        && (gone.iter().all(|gone| *gone) || shared.is_passed_on(&acked))
}

impl AnySource {
    /// Is it time to look whether members have freed the communicator? Not at once: nearly all multicasts end before.
    pub(super) fn is_time_to_look(&self, ep: &Endpoint, block: BlockRef) -> bool {
        let now = now_ns();
        let mut looks = self.looks.lock().unwrap_or_else(|e| e.into_inner());
        let name = |block: &BlockRef| (block.at, block.generation);
        if let Some((_, next)) = looks.iter_mut().find(|(of, _)| name(of) == name(&block)) {
            let is_time = now >= *next;
            if is_time {
                *next = now + LOOK_NS;
            }
            return is_time;
        }
        looks.retain(|(block, _)| ep.spool.is_held(*block));
        looks.push((block, now + LOOK_NS));
        false
    }
}
