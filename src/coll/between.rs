//! Collective calls of a communicator whose members are on several nodes.
//!
//! *Leaders*: the members of a node do what they can in their arena, and one of each node talks with those of the other nodes by
//! messages (`tree`). *Flat*: all ranks by messages; the way of exchanges of blocks, and of reductions where a node's ranks are not
//! neighbours, since elements are combined in the order of the ranks.

use super::choose::Choices;
use super::exchange::{Blocks, Pattern, keep};
use super::function::Vector;
use super::messages::Party;
use super::reduce::{self, To};
use super::team::Team;
use super::{barrier as node_barrier, bcast as node_bcast, multicast, tree};
use crate::base::bytes::{Bytes, Room, Scratch};
use crate::base::config::{BetweenWay, PretendedNodes, RemoteAllreduceWay, RemoteBcastWay};
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

pub(super) fn node_of(ep: &Endpoint, context: &Context, rank: u32) -> u32 {
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

async fn bcast_among(p: &Party<'_>, team: &Team, data: Room<'_>, root: usize) -> Result<()> {
    match team.choices.remote_bcast(data.len(), p.len(), false) {
        RemoteBcastWay::Chain => tree::bcast_chain(p, data, root, team.choices.remote_piece).await,
        RemoteBcastWay::Ring => tree::bcast_ring(p, data, root).await,
        _ => tree::bcast(p, data, root).await,
    }
}

/// The same of one of several calls that are under way, which has one slot: no chain.
pub(super) async fn bcast_apart(p: &Party<'_>, data: Room<'_>, root: usize) -> Result<()> {
    match p.team().choices.remote_bcast(data.len(), p.len(), false) {
        RemoteBcastWay::Chain | RemoteBcastWay::Ring => tree::bcast_ring(p, data, root).await,
        _ => tree::bcast(p, data, root).await,
    }
}

/// `fmpl_bcast`
pub(super) async fn bcast(team: &Team, span: &Span, data: Room<'_>, root: usize) -> Result<()> {
    team.name(Operation::Bcast, data.len());
    if is_flat(&team.choices) {
        return bcast_among(&Party::all(team), team, data, root).await;
    }
    let by_multicast = team.choices.remote_bcast(data.len(), span.firsts.len(), true) == RemoteBcastWay::Multicast;
    if by_multicast && multicast::is_possible(team, span).await? {
        return bcast_by_multicast(team, span, data, root).await;
    }
    let stand = Stand::new(team, span, Some(root))?;
    if let Some(party) = &stand.party
        && let Some(root) = party.place_of(root)
    {
        bcast_among(party, team, data, root).await?;
    }
    if stand.shares() {
        node_bcast::bcast(stand.team, data, stand.leader).await?;
    }
    Ok(())
}

/// The members of the group are always the first ranks of the nodes: another root's bytes come to the first of its node beforehand.
async fn bcast_by_multicast(team: &Team, span: &Span, data: Room<'_>, root: usize) -> Result<()> {
    let stand = Stand::new(team, span, None)?;
    let node = node_of(team.ep, team.ep.context(team.comm)?, root as u32);
    let (of_root, here) = (span.firsts.iter().position(|f| f.1 == node).unwrap_or(0), span.place_here(root));
    let early = here.filter(|place| *place != stand.leader);
    if let Some(place) = early {
        node_bcast::bcast(team, data, place).await?;
    }
    if let Some(party) = &stand.party {
        multicast::bcast(party, team, data, of_root).await?;
    }
    if early.is_none() && stand.shares() {
        node_bcast::bcast(team, data, stand.leader).await?;
    }
    Ok(())
}

fn halves(choices: &Choices, len: usize) -> bool {
    match choices.remote_allreduce {
        RemoteAllreduceWay::Auto => len >= choices.remote_allreduce_halving,
        way => way == RemoteAllreduceWay::Halving,
    }
}

/// A reduction of all ranks, by messages alone.
pub(super) async fn reduce_among(all: &Party<'_>, v: Vector<'_>, to: To) -> Result<()> {
    let len = v.bytes();
    let To::Root(root) = to else { return tree::allreduce(all, v, halves(&all.team().choices, len)).await };
    // The vector must not change but at the root: a copy of it is used.
    let copy = Scratch::new(len);
    let own = Vector::new(copy.room(), v.n, v.f);
    own.at.copy_from(*v.at);
    tree::reduce(all, own).await?;
    from_first(all, own, v, root).await
}

/// The result of a reduction is at rank 0; the root gets it.
async fn from_first(all: &Party<'_>, own: Vector<'_>, v: Vector<'_>, root: usize) -> Result<()> {
    match (all.me, root) {
        (0, 0) => v.at.copy_from(*own.at),
        (0, root) => all.send(root, *own.at).await?,
        (me, root) if me == root => all.receive(0, v.at).await?,
        _ => {}
    }
    Ok(())
}

/// `fmpl_reduce` and `fmpl_allreduce`
pub(super) async fn reduce(team: &Team, span: &Span, v: Vector<'_>, to: To) -> Result<()> {
    let len = v.bytes();
    team.name(if to == To::All { Operation::Allreduce } else { Operation::Reduce }, len);
    let halving = halves(&team.choices, len);
    let flat = is_flat(&team.choices) || !span.blocks;
    let To::Root(root) = to else {
        if flat {
            return tree::allreduce(&Party::all(team), v, halving).await;
        }
        let stand = Stand::new(team, span, None)?;
        if stand.shares() {
            reduce::reduce(team, v, To::Root(0)).await?;
        }
        if let Some(party) = &stand.party {
            tree::allreduce(party, v, halving).await?;
        }
        if stand.shares() {
            node_bcast::bcast(team, v.at, 0).await?;
        }
        return Ok(());
    };
    // The vector must not change but at the root: a copy of it is used.
    let copy = Scratch::new(len);
    let own = Vector::new(copy.room(), v.n, v.f);
    own.at.copy_from(*v.at);
    let stand = Stand::new(team, span, None)?;
    if flat {
        tree::reduce(&Party::all(team), own).await?;
    } else {
        if stand.shares() {
            reduce::reduce(team, own, To::Root(0)).await?;
        }
        if let Some(party) = &stand.party {
            tree::reduce(party, own).await?;
        }
    }
    // Rank 0 is the first of its node.
    from_first(&Party::all(team), own, v, root).await
}

/// Gather, allgather, scatter, alltoall.
pub(super) async fn exchange(team: &Team, pattern: Pattern, b: Blocks<'_>) -> Result<()> {
    team.name(pattern.operation(), b.size);
    exchange_among(&Party::all(team), pattern, b).await
}

/// The same without a name.
pub(super) async fn exchange_among(all: &Party<'_>, pattern: Pattern, b: Blocks<'_>) -> Result<()> {
    keep(pattern, all.me, b);
    tree::exchange(all, pattern, b).await
}

/// `fmpl_reduce_scatter`: reduced at rank 0, scattered from there.
pub(super) async fn reduce_scatter(team: &Team, give: Bytes<'_>, take: Vector<'_>) -> Result<()> {
    let size = take.bytes();
    team.name(Operation::ReduceScatter, size);
    let all = Party::all(team);
    let copy = Scratch::new(give.len());
    let own = Vector::new(copy.room(), team.whole * take.n, take.f);
    own.at.copy_from(give);
    tree::reduce(&all, own).await?;
    let (pattern, b) = (Pattern::Scatter(0), Blocks { give: *own.at, take: take.at, size });
    keep(pattern, team.rank, b);
    tree::exchange(&all, pattern, b).await
}

/// `fmpl_scan`
pub(super) async fn scan(team: &Team, v: Vector<'_>) -> Result<()> {
    team.name(Operation::Scan, v.bytes());
    tree::scan(&Party::all(team), v).await
}
