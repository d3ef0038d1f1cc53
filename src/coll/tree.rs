//! Collective algorithms over messages, among members that need not share memory: all ranks of a communicator, or one of each node.
//!
//! | call | algorithm | messages one after the other |
//! |---|---|---|
//! | barrier | dissemination (Hensgen, Finkel, Manber 1988) | log n |
//! | bcast | binomial tree | log n |
//! | | chain: each member hands on to the next, in pieces | n + pieces, of a piece each |
//! | | scatter by a binomial tree, allgather round a ring | log n + n, of a n-th each |
//! | reduce | binomial tree whose subtrees are neighbours | log n |
//! | allreduce | doubling: pairs of blocks of neighbours, all elements | log n |
//! | | halving: the same, each pair half of what it has; then back (Rabenseifner 2004) | 2 log n, of 1/2, 1/4, … |
//! | gather, scatter | the root with everybody, some at a time | n |
//! | allgather | a ring | n |
//! | alltoall | pairs at growing distance | n |
//! | scan | blocks that double (Hillis, Steele 1986) | log n |
//!
//! Where it is known which nodes share a switch (`FMPL_TOPOLOGY`), the trees of bcast and reduce reach each switch once, and chains and rings go
//! from neighbour to neighbour.
//!
//! Where elements are combined, it is always a block of ranks with the block right behind it, in this order: functions need not commute. The
//! tree of the combinations depends on the number of members and the topology alone, so every run gives the same bits, and all members do.

use super::between::node_of;
use super::exchange::{Blocks, Pattern};
use super::function::Vector;
use super::messages::Party;
use crate::base::bytes::{Bytes, Room, Scratch};
use crate::base::error::Result;
use crate::base::topology::{Branches, Topology};

/// All have come.
pub(super) async fn barrier(p: &Party<'_>) -> Result<()> {
    let (n, me) = (p.len(), p.me);
    let mut distance = 1;
    while distance < n {
        p.swap((me + distance) % n, Bytes::none(), (me + n - distance) % n, Room::none()).await?;
        distance *= 2;
    }
    Ok(())
}

/// The members as a tree of switches knows them: what is known of that, and the nodes that they are on.
fn topology<'a>(p: &Party<'a>) -> Option<(&'a Topology, Vec<u32>)> {
    let (ep, comm) = (p.team().ep, p.team().comm);
    let topology = ep.topology.as_ref()?;
    let context = ep.context(comm).ok()?;
    Some((topology, (0..p.len()).map(|member| node_of(ep, context, p.rank_of(member))).collect()))
}

/// A member's place in the tree with this root: over switches, if they are known, else the binomial one.
pub(super) fn branches(p: &Party<'_>, root: usize) -> Branches {
    match topology(p) {
        Some((topology, nodes)) => topology.branches(&nodes, root, p.me),
        None => {
            let branch = Branch::of(p, root);
            Branches {
                parent: branch.parent(),
                children: branch.parts().map(|(child, _)| branch.real(child)).collect(),
            }
        }
    }
}

/// The same for vectors that are combined in the members' order at member 0, the nearest child first: over switches only where the
/// members below each are neighbours.
pub(super) fn branches_in_order(p: &Party<'_>) -> Branches {
    let over_switches = topology(p).filter(|(topology, nodes)| topology.order(nodes, 0).is_sorted());
    let mut found = match over_switches {
        Some((topology, nodes)) => topology.branches(&nodes, 0, p.me),
        None => {
            let branch = Branch::of(p, 0);
            Branches { parent: branch.parent(), children: branch.parts().map(|(child, _)| child).collect() }
        }
    };
    found.children.sort_unstable();
    found
}

/// A member and its part of the binomial tree with this root. Members count from the root on, or in the order of their switches; below a
/// member are the next ones.
struct Branch {
    n: usize,
    root: usize,
    /// The order, if it is not that of the members.
    order: Option<Vec<usize>>,
    /// Its number from the root on.
    v: usize,
    /// How many its part of the tree may have, itself included; a power of two.
    top: usize,
}

impl Branch {
    fn of(p: &Party<'_>, root: usize) -> Branch {
        Branch::at(p, root, None, (p.me + p.len() - root) % p.len())
    }

    /// The same in the order of the switches, if they are known.
    fn in_order(p: &Party<'_>, root: usize) -> Branch {
        let order = topology(p).map(|(topology, nodes)| topology.order(&nodes, root));
        match order.as_ref().and_then(|order| order.iter().position(|member| *member == p.me)) {
            Some(v) => Branch::at(p, root, order, v),
            None => Branch::of(p, root),
        }
    }

    fn at(p: &Party<'_>, root: usize, order: Option<Vec<usize>>, v: usize) -> Branch {
        let n = p.len();
        let top = if v == 0 { n.next_power_of_two() } else { 1 << v.trailing_zeros() };
        Branch { n, root, order, v, top }
    }

    /// The member with this number from the root on.
    fn real(&self, v: usize) -> usize {
        match &self.order {
            Some(order) => order[v % self.n],
            None => (v + self.root) % self.n,
        }
    }

    fn parent(&self) -> Option<usize> {
        (self.v != 0).then(|| self.real(self.v - self.top))
    }

    /// The children's numbers from the root on, and how many their parts may have; the largest part first.
    fn parts(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (v, n) = (self.v, self.n);
        let powers = core::iter::successors(Some(self.top / 2), |most| Some(most / 2)).take_while(|most| *most > 0);
        powers.map(move |most| (v + most, most)).filter(move |(child, _)| *child < n)
    }
}

/// The root's bytes to all, by a tree.
pub(super) async fn bcast(p: &Party<'_>, data: Room<'_>, root: usize) -> Result<()> {
    let branches = branches(p, root);
    if let Some(parent) = branches.parent {
        p.receive(parent, data).await?;
    }
    for child in branches.children {
        p.send(child, *data).await?;
    }
    Ok(())
}

/// The same for long messages: a part to each, and the parts round a ring.
pub(super) async fn bcast_ring(p: &Party<'_>, data: Room<'_>, root: usize) -> Result<()> {
    let branch = Branch::in_order(p, root);
    let (n, v, top) = (branch.n, branch.v, branch.top);
    let parts = |from: usize, to: usize| {
        let at = |v: usize| data.len() * v.min(n) / n;
        data.part(at(from), at(to) - at(from))
    };
    if let Some(parent) = branch.parent() {
        p.receive(parent, parts(v, v + top)).await?;
    }
    for (child, most) in branch.parts() {
        p.send(branch.real(child), *parts(child, child + most)).await?;
    }
    for step in 0..n - 1 {
        let (mine, theirs) = ((v + n - step) % n, (v + 2 * n - step - 1) % n);
        let (next, last) = (branch.real(v + 1), branch.real(v + n - 1));
        p.swap(next, *parts(mine, mine + 1), last, parts(theirs, theirs + 1)).await?;
    }
    Ok(())
}

/// The same for long messages: from member to member, in pieces.
pub(super) async fn bcast_chain(p: &Party<'_>, data: Room<'_>, root: usize, piece: usize) -> Result<()> {
    let branch = Branch::in_order(p, root);
    let (n, v) = (branch.n, branch.v);
    let (from, to) = ((v > 0).then(|| branch.real(v + n - 1)), (v + 1 < n).then(|| branch.real(v + 1)));
    p.hand_on(from, to, data, piece).await
}

/// Room for what comes, and for what a function of the program needs: a vector of so many bytes each.
struct Partial(Scratch, usize);

impl Partial {
    fn new(bytes: usize) -> Partial {
        Partial(Scratch::new(2 * bytes.next_multiple_of(8)), bytes)
    }
    fn first(&self) -> Room<'_> {
        self.0.room().part(0, self.1)
    }
    fn spare(&self) -> Room<'_> {
        self.0.room().part(self.1.next_multiple_of(8), self.1)
    }
}

/// All vectors, combined in the members' order, to member 0, whose own becomes the result; the others' are used up.
pub(super) async fn reduce(p: &Party<'_>, vector: Vector<'_>) -> Result<()> {
    let partial = Partial::new(vector.bytes());
    let branches = branches_in_order(p);
    for child in branches.children {
        p.receive(child, partial.first()).await?;
        vector.fold(*partial.first()).map_err(|panic| p.panicked(panic))?;
    }
    match branches.parent {
        Some(parent) => p.send(parent, *vector.at).await,
        None => Ok(()),
    }
}

/// The members of an allreduce as a power of two of blocks of neighbours: of the first ones two make a block.
struct Pairs {
    blocks: usize,
    doubles: usize,
}

impl Pairs {
    fn of(n: usize) -> Pairs {
        let blocks = 1 << n.ilog2();
        Pairs { blocks, doubles: n - blocks }
    }
    /// The block that a member stands for; `None`: its neighbour does.
    fn block(&self, member: usize) -> Option<usize> {
        if member >= 2 * self.doubles {
            Some(member - self.doubles)
        } else {
            member.is_multiple_of(2).then_some(member / 2)
        }
    }
    /// Who stands for a block.
    fn member(&self, block: usize) -> usize {
        if block < self.doubles { 2 * block } else { block + self.doubles }
    }
}

/// All vectors, combined in the members' order, to all. `halving`: for long ones.
pub(super) async fn allreduce(p: &Party<'_>, vector: Vector<'_>, halving: bool) -> Result<()> {
    let pairs = Pairs::of(p.len());
    let Some(block) = pairs.block(p.me) else {
        p.send(p.me - 1, *vector.at).await?;
        return p.receive(p.me - 1, vector.at).await;
    };
    let partial = Partial::new(vector.bytes());
    let double = block < pairs.doubles;
    if double {
        p.receive(p.me + 1, partial.first()).await?;
        vector.fold(*partial.first()).map_err(|panic| p.panicked(panic))?;
    }
    if halving {
        halve(p, vector, &pairs, block, &partial).await?;
    } else {
        double_up(p, vector, &pairs, block, &partial).await?;
    }
    if double {
        p.send(p.me + 1, *vector.at).await?;
    }
    Ok(())
}

/// Pairs of blocks exchange all that they have. What comes next is expected before the one before it has come, in a room of its own.
async fn double_up(p: &Party<'_>, vector: Vector<'_>, pairs: &Pairs, block: usize, partial: &Partial) -> Result<()> {
    let other_half = Scratch::new(vector.bytes());
    let rooms = [partial.first(), other_half.room().part(0, vector.bytes())];
    let expect = |round: usize| {
        let there = 1 << round < pairs.blocks;
        there.then(|| p.expect(pairs.member(block ^ 1 << round), rooms[round % 2])).transpose()
    };
    let mut coming = [expect(0)?, expect(1)?];
    let mut round = 0;
    while let Some(next) = coming[round % 2].take() {
        let (other, theirs) = (block ^ 1 << round, rooms[round % 2]);
        p.swap_expected(pairs.member(other), *vector.at, next).await?;
        let folded = if other < block { vector.fold_behind(*theirs, partial.spare()) } else { vector.fold(*theirs) };
        folded.map_err(|panic| p.panicked(panic))?;
        coming[round % 2] = expect(round + 2)?;
        round += 1;
    }
    Ok(())
}

/// Pairs of blocks exchange the half that the other one combines, of what they had; then the way back.
async fn halve(p: &Party<'_>, vector: Vector<'_>, pairs: &Pairs, block: usize, partial: &Partial) -> Result<()> {
    let elements = |from: usize, to: usize| vector.part(from, to - from);
    // The elements that this member combines, and what it had before each halving.
    let (mut from, mut to) = (0, vector.n);
    let mut before = Vec::new();
    let mut mask = 1;
    while mask < pairs.blocks {
        let (other, all_from, all_to) = (block ^ mask, from, to);
        let middle = from + (to - from) / 2;
        before.push((from, to));
        if block & mask == 0 {
            to = middle
        } else {
            from = middle
        }
        let (give_from, give_to) = if block & mask == 0 { (to, all_to) } else { (all_from, from) };
        let (peer, own) = (pairs.member(other), elements(from, to));
        let theirs = partial.first().part(0, own.bytes());
        p.swap(peer, *elements(give_from, give_to).at, peer, theirs).await?;
        let folded = if other < block { own.fold_behind(*theirs, partial.spare()) } else { own.fold(*theirs) };
        folded.map_err(|panic| p.panicked(panic))?;
        mask *= 2;
    }
    while let Some((all_from, all_to)) = before.pop() {
        mask /= 2;
        let peer = pairs.member(block ^ mask);
        let (their_from, their_to) = if block & mask == 0 { (to, all_to) } else { (all_from, from) };
        p.swap(peer, *elements(from, to).at, peer, elements(their_from, their_to).at).await?;
        (from, to) = (all_from, all_to);
    }
    Ok(())
}

/// Blocks between members, but for those that stay where they are.
pub(super) async fn exchange(p: &Party<'_>, pattern: Pattern, b: Blocks<'_>) -> Result<()> {
    let (n, me) = (p.len(), p.me);
    let others = || (1..n).map(|k| (me + k) % n);
    match pattern {
        Pattern::Gather(root) if me != root => p.send(root, b.to(pattern, root)).await,
        Pattern::Gather(_) => p.receive_all(others().map(|m| (m, b.of(pattern, m)))).await,
        Pattern::Scatter(root) if me != root => p.receive(root, b.of(pattern, root)).await,
        Pattern::Scatter(_) => p.send_all(others().map(|m| (m, b.to(pattern, m)))).await,
        Pattern::Allgather => {
            for step in 0..n - 1 {
                let (mine, theirs) = ((me + n - step) % n, (me + 2 * n - step - 1) % n);
                let from = if step == 0 { b.give } else { *b.of(pattern, mine) };
                p.swap((me + 1) % n, from, (me + n - 1) % n, b.of(pattern, theirs)).await?;
            }
            Ok(())
        }
        Pattern::Alltoall => {
            for distance in 1..n {
                let (to, from) = ((me + distance) % n, (me + n - distance) % n);
                p.swap(to, b.to(pattern, to), from, b.of(pattern, from)).await?;
            }
            Ok(())
        }
    }
}

/// The vector of member k becomes x0 ∘ … ∘ xk.
pub(super) async fn scan(p: &Party<'_>, vector: Vector<'_>) -> Result<()> {
    let (n, me) = (p.len(), p.me);
    let partial = Partial::new(vector.bytes());
    let mut distance = 1;
    while distance < n {
        let (to, from) = ((me + distance < n).then_some(me + distance), me.checked_sub(distance));
        p.swap_some(to, *vector.at, from, partial.first()).await?;
        if from.is_some() {
            // What comes is the block right before this member's.
            vector.fold_behind(*partial.first(), partial.spare()).map_err(|panic| p.panicked(panic))?;
        }
        distance *= 2;
    }
    Ok(())
}
