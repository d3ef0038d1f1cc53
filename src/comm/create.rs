//! Making communicators and freeing them, as the C interface calls it.
//!
//! Making one is collective over the communicator it is made from; [`super::agree`] says how. Freeing is not: it takes this process's
//! part away at once, and the part of the memory that it shares with a peer when both have freed theirs. What was sent before remains to be
//! received by those who have not freed theirs yet.

use std::sync::atomic::Ordering;

use super::agree::{Agreed, Call, Wish, agree, part};
use crate::base::error::{Code, Error, Result, error};
use crate::base::named::{self, Named};
use crate::base::unused::Unused;
use crate::lane::map::Life;
use crate::lane::{Place, RECV_PENDING, SEND_PENDING};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::group::Group;
use crate::p2p::{COMM_NULL, COMM_WORLD, any_index};

/// `fmpl_comm_create`: all ranks of the world call it. Equal keys of 0 and more make a communicator, in the order of the world;
/// `None`: the key was negative.
pub fn comm_create(key: i32) -> Result<Option<i32>> {
    make(COMM_WORLD, Call::Create, key, 0)
}

/// `fmpl_comm_split`: all ranks of `comm` call it. Equal colours of 0 and more make a communicator, ordered by `order`, and with equal
/// orders by the rank in `comm`; `None`: the colour was negative.
pub fn comm_split(comm: i32, colour: i32, order: i32) -> Result<Option<i32>> {
    make(comm, Call::Split, colour, order)
}

/// `fmpl_comm_split_node`: a communicator of the ranks of `comm` that share this one's memory.
pub fn comm_split_node(comm: i32, order: i32) -> Result<i32> {
    let ep = endpoint()?;
    let node = ep.launch.nodes().node_of(ep.rank);
    make(comm, Call::Split, node as i32, order)?.ok_or_else(|| Error::new(Code::System, "a node without this rank"))
}

/// `fmpl_comm_dup`: a communicator of the same ranks in the same order.
pub fn comm_dup(comm: i32) -> Result<i32> {
    make(comm, Call::Dup, 0, 0)?.ok_or_else(|| Error::new(Code::System, "a duplicate without this rank"))
}

/// `fmpl_comm_group_create`: a communicator of these ranks of `comm`, in this order; they alone call it, with the same list.
pub fn comm_group_create(comm: i32, ranks: &[i32]) -> Result<i32> {
    let ep = endpoint()?;
    let context = ep.context(comm)?;
    check_part(ep, context, ranks)?;
    let ranks: Vec<u32> = ranks.iter().map(|rank| *rank as u32).collect();
    making(ep, context, || {
        let (Agreed { place, indices, .. }, gone) = part::agree(ep, context, &ranks)?;
        let members = ranks.iter().map(|rank| context.group.world_rank(*rank));
        let taken = match (gone, Group::of(members, ep.rank)) {
            (Some(error), _) => Err(error),
            (None, Some(group)) => ep.contexts.add(ep.kept_on_node(group, place), place, indices).map(Some),
            (None, None) => Err(Error::new(Code::System, "a communicator without this rank")),
        };
        take_part(ep, place, taken)
    })
    .map(or_null)
}

/// Is this a list of ranks of `context`, this one among them, and each once?
fn check_part(ep: &Endpoint, context: &Context, ranks: &[i32]) -> Result<()> {
    let wrong = |what: String| error!(Code::Argument, "rank {}: fmpl_comm_group_create: {what}", ep.rank);
    for rank in ranks {
        ep.check_rank(context, *rank)?;
    }
    let mut sorted: Vec<u32> = ranks.iter().map(|rank| *rank as u32).collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(format!("rank {} is in the list twice", twice[0])));
    }
    let me = context.group.rank();
    if sorted.binary_search(&me).is_ok() {
        return Ok(());
    }
    Err(wrong(format!("this rank, {me} of communicator {}, is not in the list", Named(context.handle))))
}

fn make(comm: i32, call: Call, colour: i32, order: i32) -> Result<Option<i32>> {
    let ep = endpoint()?;
    let context = ep.context(comm)?;
    making(ep, context, || {
        let agreed = agree(ep, context, call, (colour.max(-1) as i64, order as i64))?;
        settle(ep, context, agreed, colour)
    })
}

/// One thread at a time makes a communicator from this one; before, what freed ones have left behind goes.
fn making<T>(ep: &'static Endpoint, context: &Context, make: impl FnOnce() -> Result<T>) -> Result<T> {
    let comm = context.handle;
    if context.making.swap(true, Ordering::Acquire) {
        return Err(error!(
            Code::Busy,
            "rank {}: another thread makes a communicator from communicator {comm}",
            ep.rank,
            comm = Named(comm)
        ));
    }
    if ep.left_over.swap(false, Ordering::AcqRel) {
        ep.spool.reclaim();
    }
    let made = crate::coll::sweep().and_then(|()| ep.any_source.sweep(ep)).and_then(|()| make());
    context.making.store(false, Ordering::Release);
    made
}

/// Takes this rank's part in what was agreed on.
fn settle(ep: &'static Endpoint, context: &Context, agreed: Agreed, colour: i32) -> Result<Option<i32>> {
    let Agreed { wishes, place, indices } = agreed;
    let mut taken = Err(Error::new(Code::System, "the agreement does not know this rank"));
    if let Some(dead) = ep.dead_member(context) {
        ep.say_life(context.place_of_life(), Life::Broken(dead));
        taken = Err(ep.member_died(context, dead));
    } else if colour < 0 {
        taken = Ok(None);
    } else if let Some(group) = group_of(context, &wishes, colour as i64, ep.rank) {
        taken = ep.contexts.add(ep.kept_on_node(group, place), place, indices).map(Some);
    }
    take_part(ep, place, taken)
}

/// Tells the others at a place whether this rank is one of them.
fn take_part(ep: &Endpoint, place: Place, taken: Result<Option<&'static Context>>) -> Result<Option<i32>> {
    if !matches!(taken, Ok(Some(_))) {
        // Those who have it are not to wait for this rank.
        ep.say_life(place, Life::Freed);
        ep.contexts.give_back(place);
    }
    let Some(new) = taken? else { return Ok(None) };
    ep.say_life(place, Life::Member);
    Ok(Some(new.handle))
}

/// The members of a colour, by order and then by rank.
fn group_of(context: &Context, wishes: &[Wish], colour: i64, me: u32) -> Option<Group> {
    let wishes = || wishes.iter().filter(|w| w.colour == colour);
    let each = wishes().flat_map(|w| (0..w.count).map(|k| (w.order + k as i64 * w.step, w.first + k)));
    let sorted = {
        let mut last = i64::MIN;
        each.clone().all(|(order, _)| std::mem::replace(&mut last, order) <= order)
    };
    if sorted {
        return Group::of(each.map(|(_, rank)| context.group.world_rank(rank)), me);
    }
    let mut all: Vec<(i64, u32)> = each.collect();
    all.sort_unstable();
    Group::of(all.into_iter().map(|(_, rank)| context.group.world_rank(rank)), me)
}

/// `fmpl_comm_set_name`: a name for messages to people. An empty one takes it away.
pub fn comm_set_name(comm: i32, name: &str) -> Result<()> {
    let ep = endpoint()?;
    ep.check_comm(comm)?;
    if name.len() > named::MOST || name.contains('\0') {
        let text =
            format!("rank {}: the name of a communicator has {} bytes at most, and no zero", ep.rank, named::MOST);
        return Err(Error::new(Code::Argument, text));
    }
    named::give(comm, name);
    Ok(())
}

/// `fmpl_comm_name`: what it has been named; empty: nothing.
pub fn comm_name(comm: i32) -> Result<String> {
    endpoint()?.check_comm(comm)?;
    Ok(named::of(comm))
}

/// The same for a caller that has room for so many bytes.
pub fn comm_name_within(comm: i32, room: usize) -> Result<String> {
    let name = comm_name(comm)?;
    if name.len() <= room {
        return Ok(name);
    }
    let text = format!("communicator {}: its name has {} bytes, and there is room for {room}", Named(comm), name.len());
    Err(Error::new(Code::Truncate, text))
}

/// `fmpl_comm_free`: this process uses the communicator no more. Not collective, and waits for nobody. `Busy`: a request on it is not
/// completed; the communicator is as it was.
///
/// `unused`: no other thread is in a call on this communicator, and no reference to its lanes is used afterwards.
pub fn comm_free(comm: i32, unused: Unused) -> Result<()> {
    let ep = endpoint()?;
    let context = ep.context(comm)?;
    if comm == COMM_WORLD {
        return Err(error!(Code::Comm, "rank {}: FMPL_COMM_WORLD cannot be freed", ep.rank));
    }
    if crate::coll::is_pending(comm) {
        return Err(error!(
            Code::Busy,
            "rank {}: freeing communicator {comm}: complete its collective call first",
            ep.rank,
            comm = Named(comm)
        ));
    }
    if let Some(request) = ep.any_source.begun_on(ep, context) {
        let (me, name) = (ep.rank, Named(comm));
        return Err(error!(Code::Busy, "rank {me}: freeing communicator {name}: complete {request} first"));
    }
    let result = {
        let lanes = ep.lanes.all();
        let mine = || lanes.iter().filter(|l| l.comm() == comm);
        for lane in mine() {
            let pending = (0..lane.limit() as usize).find(|slot| {
                let progress = lane.progress(*slot);
                progress.send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0
                    || progress.recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0
            });
            let index = pending.map(|slot| slot as i32 - crate::lane::map::SYSTEM_INDICES as i32);
            if let Some(index) = index.or_else(|| any_index::is_begun(lane).then_some(crate::p2p::TAG_ANY)) {
                let name = lane.name(index);
                return Err(error!(
                    Code::Busy,
                    "rank {}: freeing communicator {comm}: complete the request on {name} first",
                    ep.rank,
                    comm = Named(comm)
                ));
            }
        }
        mine().try_for_each(|lane| {
            crate::p2p::sendbuf::let_go(ep, lane, false);
            lane.close(|| lane.is_freed_there())
        })
    };
    let place = context.place;
    ep.keeps_what_is_broken(context);
    ep.say_life(place, Life::Freed);
    ep.any_source.forget(ep, context, &unused);
    let rings = ep.any_source.sweep(ep);
    ep.spool.forget(comm);
    named::give(comm, "");
    ep.waiting_sends.forget(comm);
    ep.prepared.forget(comm);
    ep.lately.forget(comm);
    let team = crate::coll::forget(comm, &unused);
    ep.lanes.forget(comm, &unused);
    let links = ep.fabric_here().map_or(Vec::new(), |fabric| fabric.links());
    links.iter().for_each(|link| crate::lane::remote::is_freed(link, u64::from(place.epoch)));
    ep.contexts.remove(comm, &unused);
    result.and(rings).and(team)
}

/// `fmpl_comm_translate`: the rank in communicator `to` of rank `rank` of communicator `from`; `None`: it is no member.
pub fn comm_translate(from: i32, rank: i32, to: i32) -> Result<Option<i32>> {
    let ep = endpoint()?;
    let (from, to) = (ep.context(from)?, ep.context(to)?);
    if rank == crate::p2p::PROC_NULL {
        return Ok(None);
    }
    ep.check_rank(from, rank)?;
    Ok(to.group.rank_of(from.group.world_rank(rank as u32)).map(|r| r as i32))
}

/// The handle that C has for no communicator.
pub fn or_null(comm: Option<i32>) -> i32 {
    comm.unwrap_or(COMM_NULL)
}
