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
//! Where elements are combined, it is always a block of ranks with the block right behind it, in this order: functions need not commute. The
//! tree of the combinations depends on the number of members alone, so every run gives the same bits, and all members do.

use super::exchange::{Blocks, Pattern};
use super::function::Function;
use super::messages::Party;
use crate::base::error::Result;

/// All have come.
pub(super) async fn barrier(p: &Party<'_>) -> Result<()> {
    let (n, me) = (p.len(), p.me);
    let mut distance = 1;
    while distance < n {
        let nothing = core::ptr::null_mut();
        // SAFETY: no bytes.
        unsafe { p.swap((me + distance) % n, nothing, 0, (me + n - distance) % n, nothing, 0).await? };
        distance *= 2;
    }
    Ok(())
}

/// A member and its part of the binomial tree with this root. Members count from the root on; below a member are the next ones.
#[derive(Clone, Copy)]
pub(super) struct Branch {
    n: usize,
    root: usize,
    /// Its number from the root on.
    v: usize,
    /// How many its part of the tree may have, itself included; a power of two.
    top: usize,
}

impl Branch {
    pub(super) fn of(p: &Party<'_>, root: usize) -> Branch {
        let n = p.len();
        let v = (p.me + n - root) % n;
        let top = if v == 0 { n.next_power_of_two() } else { 1 << v.trailing_zeros() };
        Branch { n, root, v, top }
    }

    /// The member with this number from the root on.
    fn real(self, v: usize) -> usize {
        (v + self.root) % self.n
    }

    pub(super) fn parent(self) -> Option<usize> {
        (self.v != 0).then(|| self.real(self.v - self.top))
    }

    /// The children's numbers from the root on, and how many their parts may have; the largest part first.
    fn parts(self) -> impl Iterator<Item = (usize, usize)> {
        let powers = core::iter::successors(Some(self.top / 2), |most| Some(most / 2)).take_while(|most| *most > 0);
        powers.map(move |most| (self.v + most, most)).filter(move |(child, _)| *child < self.n)
    }

    /// The children, the one with the largest part of the tree first.
    pub(super) fn children(self) -> impl Iterator<Item = usize> {
        self.parts().map(move |(child, _)| self.real(child))
    }
}

/// The root's bytes to all, by a binomial tree.
///
/// # Safety
/// `len` bytes at `ptr`, writable but at the root.
pub(super) async unsafe fn bcast(p: &Party<'_>, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    let branch = Branch::of(p, root);
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(parent) = branch.parent() {
            p.receive(parent, ptr, len).await?;
        }
        for child in branch.children() {
            p.send(child, ptr, len).await?;
        }
    }
    Ok(())
}

/// The same for long messages: a part to each, and the parts round a ring.
///
/// # Safety
/// As for [`bcast`].
pub(super) async unsafe fn bcast_ring(p: &Party<'_>, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    let branch = Branch::of(p, root);
    let Branch { n, v, top, .. } = branch;
    let at = |v: usize| len * v.min(n) / n;
    // SAFETY: parts of the buffer.
    unsafe {
        if let Some(parent) = branch.parent() {
            p.receive(parent, ptr.add(at(v)), at(v + top) - at(v)).await?;
        }
        for (child, most) in branch.parts() {
            p.send(branch.real(child), ptr.add(at(child)), at(child + most) - at(child)).await?;
        }
        for step in 0..n - 1 {
            let (mine, theirs) = ((v + n - step) % n, (v + 2 * n - step - 1) % n);
            p.swap(
                branch.real(v + 1),
                ptr.add(at(mine)),
                at(mine + 1) - at(mine),
                branch.real(v + n - 1),
                ptr.add(at(theirs)),
                at(theirs + 1) - at(theirs),
            )
            .await?;
        }
    }
    Ok(())
}

/// The same for long messages: from member to member, in pieces.
///
/// # Safety
/// As for [`bcast`].
pub(super) async unsafe fn bcast_chain(
    p: &Party<'_>,
    ptr: *mut u8,
    len: usize,
    root: usize,
    piece: usize,
) -> Result<()> {
    let n = p.len();
    let v = (p.me + n - root) % n;
    let (from, to) = ((v > 0).then_some((p.me + n - 1) % n), (v + 1 < n).then_some((p.me + 1) % n));
    // SAFETY: as the caller promises.
    unsafe { p.hand_on(from, to, ptr, len, piece).await }
}

/// Room for partial results: two vectors of so many bytes.
struct Room(Vec<u64>, usize);

impl Room {
    fn new(bytes: usize) -> Room {
        let words = bytes.div_ceil(8);
        Room(vec![0; 2 * words], words)
    }
    fn first(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
    fn spare(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().wrapping_add(self.1).cast()
    }
}

/// All vectors, combined in the members' order, to member 0, whose own becomes the result; the others' are used up.
///
/// # Safety
/// `count` elements at `ptr`.
pub(super) async unsafe fn reduce(p: &Party<'_>, ptr: *mut u8, count: usize, f: &Function<'_>) -> Result<()> {
    let (n, bytes) = (p.len(), count * f.size);
    let mut room = Room::new(bytes);
    let mut mask = 1;
    while mask < n {
        // SAFETY: vectors of as many elements.
        unsafe {
            if p.me & mask != 0 {
                return p.send(p.me - mask, ptr, bytes).await;
            }
            if p.me + mask < n {
                p.receive(p.me + mask, room.first(), bytes).await?;
                f.fold(ptr, ptr, room.first(), count, room.spare()).map_err(|panic| p.panicked(panic))?;
            }
        }
        mask *= 2;
    }
    Ok(())
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
///
/// # Safety
/// `count` elements at `ptr`.
pub(super) async unsafe fn allreduce(
    p: &Party<'_>,
    ptr: *mut u8,
    count: usize,
    f: &Function<'_>,
    halving: bool,
) -> Result<()> {
    let (pairs, bytes) = (Pairs::of(p.len()), count * f.size);
    let Some(block) = pairs.block(p.me) else {
        // SAFETY: the vector.
        unsafe {
            p.send(p.me - 1, ptr, bytes).await?;
            return p.receive(p.me - 1, ptr, bytes).await;
        }
    };
    let mut room = Room::new(bytes);
    let double = block < pairs.doubles;
    // SAFETY: all of it: parts of the vector, and of a room as large.
    unsafe {
        if double {
            p.receive(p.me + 1, room.first(), bytes).await?;
            f.fold(ptr, ptr, room.first(), count, room.spare()).map_err(|panic| p.panicked(panic))?;
        }
        // The elements that this member combines, and what it had before each halving.
        let (mut from, mut to) = (0, count);
        let mut before = Vec::new();
        let mut mask = 1;
        while mask < pairs.blocks {
            let other = block ^ mask;
            let (mut give_from, mut give_to) = (from, to);
            if halving {
                before.push((from, to));
                let middle = from + (to - from) / 2;
                if block & mask == 0 {
                    (to, give_from) = (middle, middle);
                } else {
                    (from, give_to) = (middle, middle);
                }
            }
            let (peer, own, n) = (pairs.member(other), ptr.add(from * f.size), to - from);
            let give = ptr.add(give_from * f.size);
            p.swap(peer, give, (give_to - give_from) * f.size, peer, room.first(), n * f.size).await?;
            if other < block {
                f.fold(own, room.first(), own, n, room.spare()).map_err(|panic| p.panicked(panic))?;
            } else {
                f.fold(own, own, room.first(), n, room.spare()).map_err(|panic| p.panicked(panic))?;
            }
            mask *= 2;
        }
        while let Some((all_from, all_to)) = before.pop() {
            mask /= 2;
            let peer = pairs.member(block ^ mask);
            let (their_from, their_to) = if block & mask == 0 { (to, all_to) } else { (all_from, from) };
            let (own, theirs) = (ptr.add(from * f.size), ptr.add(their_from * f.size));
            p.swap(peer, own, (to - from) * f.size, peer, theirs, (their_to - their_from) * f.size).await?;
            (from, to) = (all_from, all_to);
        }
        if double {
            p.send(p.me + 1, ptr, bytes).await?;
        }
    }
    Ok(())
}

/// Blocks between members, but for those that stay where they are.
///
/// # Safety
/// As for [`super::exchange::exchange`].
pub(super) async unsafe fn exchange(p: &Party<'_>, pattern: Pattern, b: Blocks) -> Result<()> {
    let (n, me) = (p.len(), p.me);
    let give = |to: usize| b.give.wrapping_add(pattern.block_of(to) * b.size);
    let take = |from: usize| b.take.wrapping_add(pattern.place_of(from) * b.size);
    // SAFETY: blocks of the buffers.
    unsafe {
        match pattern {
            Pattern::Gather(root) if me != root => p.send(root, give(root), b.size).await,
            Pattern::Gather(_) => p.receive_all((1..n).map(|k| (me + k) % n).map(|m| (m, take(m))), b.size).await,
            Pattern::Scatter(root) if me != root => p.receive(root, take(root), b.size).await,
            Pattern::Scatter(_) => p.send_all((1..n).map(|k| (me + k) % n).map(|m| (m, give(m))), b.size).await,
            Pattern::Allgather => {
                for step in 0..n - 1 {
                    let (mine, theirs) = ((me + n - step) % n, (me + 2 * n - step - 1) % n);
                    let from = if step == 0 { b.give } else { take(mine).cast_const() };
                    p.swap((me + 1) % n, from, b.size, (me + n - 1) % n, take(theirs), b.size).await?;
                }
                Ok(())
            }
            Pattern::Alltoall => {
                for distance in 1..n {
                    let (to, from) = ((me + distance) % n, (me + n - distance) % n);
                    p.swap(to, give(to), b.size, from, take(from), b.size).await?;
                }
                Ok(())
            }
        }
    }
}

/// The vector of member k becomes x0 ∘ … ∘ xk.
///
/// # Safety
/// `count` elements at `ptr`.
pub(super) async unsafe fn scan(p: &Party<'_>, ptr: *mut u8, count: usize, f: &Function<'_>) -> Result<()> {
    let (n, me, bytes) = (p.len(), p.me, count * f.size);
    let mut room = Room::new(bytes);
    let mut distance = 1;
    while distance < n {
        let (to, from) = ((me + distance < n).then_some(me + distance), me.checked_sub(distance));
        // SAFETY: vectors of as many elements.
        unsafe {
            p.swap_some(to, ptr, from, room.first(), bytes).await?;
            if from.is_some() {
                // What comes is the block right before this member's.
                f.fold(ptr, room.first(), ptr, count, room.spare()).map_err(|panic| p.panicked(panic))?;
            }
        }
        distance *= 2;
    }
    Ok(())
}
