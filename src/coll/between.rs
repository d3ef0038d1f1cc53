//! Collective calls of a communicator whose members are on several nodes.
//!
//! *Leaders*: the members of a node do what they can in their arena, and one of each node talks with those of the other nodes by
//! messages (`tree`). *Flat*: all ranks by messages; the way of exchanges of blocks, and of reductions where a node's ranks are not
//! neighbours, since elements are combined in the order of the ranks.

use super::choose::Choices;
use super::exchange::{Blocks, Pattern, keep};
use super::function::Function;
use super::messages::Party;
use super::reduce::{self, To};
use super::team::Team;
use super::{barrier as node_barrier, bcast as node_bcast, multicast, tree};
use crate::base::config::{BetweenWay, FarAllreduceWay, FarBcastWay, PretendedNodes};
use crate::base::error::Result;
use crate::p2p::context::Context;
use crate::p2p::endpoint::Endpoint;
use crate::wait::Operation;

/// Where the members of a communicator are.
pub(super) struct Span {
    /// The first rank of each node, and the node; in the order of the ranks.
    firsts: Vec<(u32, u32)>,
    /// The ranks of this node.
    pub here: Vec<u32>,
    /// The ranks of each node are neighbours.
    blocks: bool,
}

impl Span {
    /// `None`: all members are on this node.
    pub fn of(ep: &Endpoint, context: &Context) -> Option<Span> {
        let (size, me) = (context.group.size(), context.group.rank());
        let node = |rank: u32| node_of(ep, context, rank);
        let mine = node(me);
        let (mut firsts, mut here, mut blocks, mut last) = (Vec::<(u32, u32)>::new(), Vec::new(), true, None);
        for rank in 0..size {
            let at = node(rank);
            if last != Some(at) {
                let known = firsts.iter().any(|f| f.1 == at);
                blocks &= !known;
                if !known {
                    firsts.push((rank, at));
                }
            }
            if at == mine {
                here.push(rank);
            }
            last = Some(at);
        }
        (firsts.len() > 1).then_some(Span { firsts, here, blocks })
    }

    /// The first rank of each node.
    pub fn first_ranks(&self) -> Vec<u32> {
        self.firsts.iter().map(|f| f.0).collect()
    }
    /// The place among the members here of a rank that is one.
    fn place_here(&self, rank: usize) -> Option<usize> {
        self.here.iter().position(|r| *r as usize == rank)
    }

    /// One rank of each node; `root` stands for its own.
    fn leaders(&self, ep: &Endpoint, context: &Context, root: Option<usize>) -> Vec<u32> {
        let special = root.map(|r| (r as u32, node_of(ep, context, r as u32)));
        let of = |(first, node): &(u32, u32)| special.filter(|s| s.1 == *node).map_or(*first, |s| s.0);
        self.firsts.iter().map(of).collect()
    }
}

fn node_of(ep: &Endpoint, context: &Context, rank: u32) -> u32 {
    match ep.config.coll_nodes {
        PretendedNodes::Off => ep.launch.nodes().node_of(context.group.world_rank(rank)),
        PretendedNodes::Blocks(n) => (rank as u64 * n as u64 / context.group.size() as u64) as u32,
        PretendedNodes::Cyclic(n) => rank % n,
    }
}

/// This process's place in a call.
struct Stand<'a> {
    team: &'a Team,
    span: &'a Span,
    /// The leaders, if this process is one.
    party: Option<Party<'a>>,
    /// The leader of this node among the members here.
    leader: usize,
}

impl<'a> Stand<'a> {
    fn new(team: &'a Team, span: &'a Span, root: Option<usize>) -> Result<Stand<'a>> {
        let who = span.leaders(team.ep, team.ep.context(team.comm)?, root);
        let is_here = |r: &u32| who.contains(r);
        let leader = span.here.iter().position(is_here).unwrap_or(0);
        Ok(Stand { team, span, party: Party::of(team, who), leader })
    }
    /// Are there others here?
    fn shares(&self) -> bool {
        self.span.here.len() > 1
    }
}

fn is_flat(choices: &Choices) -> bool {
    choices.between == BetweenWay::Flat
}

/// `fmpl_barrier`
pub(super) async fn barrier(team: &Team, span: &Span) -> Result<()> {
    team.name(Operation::Barrier, 0);
    if is_flat(&team.choices) {
        return tree::barrier(&Party::all(team)).await;
    }
    let stand = Stand::new(team, span, None)?;
    if stand.shares() {
        node_barrier::barrier(team).await?;
    }
    if let Some(party) = &stand.party {
        tree::barrier(party).await?;
    }
    if stand.shares() {
        node_barrier::barrier(team).await?;
    }
    Ok(())
}

async unsafe fn bcast_among(p: &Party<'_>, team: &Team, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match team.choices.far_bcast(len, p.len(), false) {
            FarBcastWay::Chain => tree::bcast_chain(p, ptr, len, root, team.choices.far_piece).await,
            FarBcastWay::Ring => tree::bcast_ring(p, ptr, len, root).await,
            _ => tree::bcast(p, ptr, len, root).await,
        }
    }
}

/// `fmpl_bcast`
///
/// # Safety
/// As for [`node_bcast::bcast`].
pub(super) async unsafe fn bcast(team: &Team, span: &Span, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    team.name(Operation::Bcast, len);
    // SAFETY: all of it as the caller promises.
    unsafe {
        if is_flat(&team.choices) {
            return bcast_among(&Party::all(team), team, ptr, len, root).await;
        }
        let by_multicast = team.choices.far_bcast(len, span.firsts.len(), true) == FarBcastWay::Multicast;
        if by_multicast && multicast::is_possible(team, span).await? {
            return bcast_by_multicast(team, span, ptr, len, root).await;
        }
        let stand = Stand::new(team, span, Some(root))?;
        if let Some(party) = &stand.party
            && let Some(root) = party.place_of(root)
        {
            bcast_among(party, team, ptr, len, root).await?;
        }
        if stand.shares() {
            node_bcast::bcast(stand.team, ptr, len, stand.leader).await?;
        }
    }
    Ok(())
}

/// The members of the group are always the first ranks of the nodes: another root's bytes come to the first of its node beforehand.
async unsafe fn bcast_by_multicast(team: &Team, span: &Span, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    let stand = Stand::new(team, span, None)?;
    let node = node_of(team.ep, team.ep.context(team.comm)?, root as u32);
    let (of_root, here) = (span.firsts.iter().position(|f| f.1 == node).unwrap_or(0), span.place_here(root));
    let early = here.filter(|place| *place != stand.leader);
    // SAFETY: all of it as the caller promises.
    unsafe {
        if let Some(place) = early {
            node_bcast::bcast(team, ptr, len, place).await?;
        }
        if let Some(party) = &stand.party {
            multicast::bcast(party, team, ptr, len, of_root).await?;
        }
        if early.is_none() && stand.shares() {
            node_bcast::bcast(team, ptr, len, stand.leader).await?;
        }
    }
    Ok(())
}

/// `fmpl_reduce` and `fmpl_allreduce`
///
/// # Safety
/// As for [`reduce::reduce`].
pub(super) async unsafe fn reduce(
    team: &Team,
    span: &Span,
    ptr: *mut u8,
    count: usize,
    f: &Function<'_>,
    to: To,
) -> Result<()> {
    let len = count * f.size;
    team.name(if to == To::All { Operation::Allreduce } else { Operation::Reduce }, len);
    let halving = match team.choices.far_allreduce {
        FarAllreduceWay::Auto => len >= team.choices.far_allreduce_halving,
        way => way == FarAllreduceWay::Halving,
    };
    let flat = is_flat(&team.choices) || !span.blocks;
    // SAFETY: all of it as the caller promises; where a vector must not change, a copy of it is used.
    unsafe {
        let To::Root(root) = to else {
            if flat {
                return tree::allreduce(&Party::all(team), ptr, count, f, halving).await;
            }
            let stand = Stand::new(team, span, None)?;
            if stand.shares() {
                reduce::reduce(team, ptr, count, f, To::Root(0)).await?;
            }
            if let Some(party) = &stand.party {
                tree::allreduce(party, ptr, count, f, halving).await?;
            }
            if stand.shares() {
                node_bcast::bcast(team, ptr, len, 0).await?;
            }
            return Ok(());
        };
        let mut copy = vec![0u64; len.div_ceil(8)];
        let own = copy.as_mut_ptr().cast::<u8>();
        own.copy_from_nonoverlapping(ptr, len);
        let stand = Stand::new(team, span, None)?;
        if flat {
            tree::reduce(&Party::all(team), own, count, f).await?;
        } else {
            if stand.shares() {
                reduce::reduce(team, own, count, f, To::Root(0)).await?;
            }
            if let Some(party) = &stand.party {
                tree::reduce(party, own, count, f).await?;
            }
        }
        // The result is at rank 0, which is the first of its node.
        let all = Party::all(team);
        match (team.rank, root) {
            (0, 0) => ptr.copy_from_nonoverlapping(own, len),
            (0, root) => all.send(root, own, len).await?,
            (me, root) if me == root => all.receive(0, ptr, len).await?,
            _ => {}
        }
    }
    Ok(())
}

/// Gather, allgather, scatter, alltoall.
///
/// # Safety
/// As for [`super::exchange::exchange`].
pub(super) async unsafe fn exchange(team: &Team, pattern: Pattern, b: Blocks) -> Result<()> {
    team.name(pattern.operation(), b.size);
    // SAFETY: as the caller promises.
    unsafe {
        keep(pattern, team.rank, b);
        tree::exchange(&Party::all(team), pattern, b).await
    }
}

/// `fmpl_reduce_scatter`: reduced at rank 0, scattered from there.
///
/// # Safety
/// As for [`super::partial::reduce_scatter`].
pub(super) async unsafe fn reduce_scatter(
    team: &Team,
    give: *const u8,
    take: *mut u8,
    count: usize,
    f: &Function<'_>,
) -> Result<()> {
    let (len, n) = (count * f.size, team.whole);
    team.name(Operation::ReduceScatter, len);
    let all = Party::all(team);
    let mut copy = vec![0u64; (n * len).div_ceil(8)];
    let own = copy.as_mut_ptr().cast::<u8>();
    let (pattern, b) = (Pattern::Scatter(0), Blocks { give: own, take, size: len });
    // SAFETY: as the caller promises; the copy has as many elements.
    unsafe {
        own.copy_from_nonoverlapping(give, n * len);
        tree::reduce(&all, own, n * count, f).await?;
        keep(pattern, team.rank, b);
        tree::exchange(&all, pattern, b).await
    }
}

/// `fmpl_scan`
///
/// # Safety
/// As for [`super::partial::scan`].
pub(super) async unsafe fn scan(team: &Team, ptr: *mut u8, count: usize, f: &Function<'_>) -> Result<()> {
    team.name(Operation::Scan, count * f.size);
    // SAFETY: as the caller promises.
    unsafe { tree::scan(&Party::all(team), ptr, count, f).await }
}
