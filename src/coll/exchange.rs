//! Gather, allgather, scatter, alltoall on a node: blocks of bytes that each member takes out of the others' memory.
//!
//! | way | copies | |
//! |---|---|---|
//! | flag | 1 + 1 | up to 56 bytes of a giver, in the line of a cell's flag |
//! | cells | 1 + 1 | each giver puts its blocks into its own ring, as many bytes of each as there is room for |
//! | pull | 1 | each taker copies from the givers' memory, beginning with the next rank |

use super::arena::{Arena, CELL_BYTES, CELLS, FLAG_BYTES, there};
use super::team::Team;
use crate::base::bytes::{Bytes, Room};
use crate::base::config::ExchangeWay;
use crate::base::error::Result;
use crate::wait::Operation;

/// Who gives blocks, and who takes which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The root takes everybody's block.
    Gather(usize),
    /// Everybody takes everybody's block.
    Allgather,
    /// Everybody takes its own one of the root's blocks.
    Scatter(usize),
    /// Everybody takes its own one of everybody's blocks.
    Alltoall,
}

impl Pattern {
    pub(super) fn operation(self) -> Operation {
        match self {
            Pattern::Gather(_) => Operation::Gather,
            Pattern::Allgather => Operation::Allgather,
            Pattern::Scatter(_) => Operation::Scatter,
            Pattern::Alltoall => Operation::Alltoall,
        }
    }
    /// Has a member blocks for others?
    pub(super) fn gives(self, member: usize) -> bool {
        match self {
            Pattern::Gather(root) => member != root,
            Pattern::Scatter(root) => member == root,
            Pattern::Allgather | Pattern::Alltoall => true,
        }
    }
    /// Does a member take others' blocks?
    pub(super) fn takes(self, member: usize) -> bool {
        match self {
            Pattern::Gather(root) => member == root,
            Pattern::Scatter(root) => member != root,
            Pattern::Allgather | Pattern::Alltoall => true,
        }
    }
    /// Blocks of a giver, of `members` members.
    pub(super) fn blocks(self, members: usize) -> usize {
        match self {
            Pattern::Gather(_) | Pattern::Allgather => 1,
            Pattern::Scatter(_) | Pattern::Alltoall => members,
        }
    }
    /// Which of a giver's blocks a member takes.
    pub(super) fn block_of(self, member: usize) -> usize {
        match self {
            Pattern::Gather(_) | Pattern::Allgather => 0,
            Pattern::Scatter(_) | Pattern::Alltoall => member,
        }
    }
    /// Where among what is taken a giver's block belongs.
    pub(super) fn place_of(self, giver: usize) -> usize {
        if matches!(self, Pattern::Scatter(_)) { 0 } else { giver }
    }
    /// Is what a member writes read by one other only, and written there again by the same member?
    fn goes_one_way(self, members: usize) -> bool {
        match self {
            Pattern::Gather(_) | Pattern::Scatter(_) => true,
            Pattern::Alltoall => members > 2,
            Pattern::Allgather => false,
        }
    }
    /// Does a member keep one of its own blocks?
    pub(super) fn keeps(self, member: usize) -> bool {
        match self {
            Pattern::Gather(root) | Pattern::Scatter(root) => member == root,
            Pattern::Allgather | Pattern::Alltoall => true,
        }
    }
}

/// The buffers of an exchange of blocks of `size` bytes, at least one: a giver's blocks, and a taker's room for a block of each giver.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub give: Bytes<'a>,
    pub take: Room<'a>,
    pub size: usize,
}

impl<'a> Blocks<'a> {
    /// What this member gives to another one.
    pub(super) fn to(&self, pattern: Pattern, taker: usize) -> Bytes<'a> {
        self.give.part(pattern.block_of(taker) * self.size, self.size)
    }
    /// Room for what comes from another member.
    pub(super) fn of(&self, pattern: Pattern, giver: usize) -> Room<'a> {
        self.take.part(pattern.place_of(giver) * self.size, self.size)
    }
}

/// The member's own block, which nobody else moves. It may be in its place already.
pub(super) fn keep(pattern: Pattern, me: usize, b: Blocks<'_>) {
    if !pattern.keeps(me) {
        return;
    }
    let (from, to) = (b.to(pattern, me), b.of(pattern, me));
    if !core::ptr::eq(from.as_ptr(), to.as_ptr()) {
        to.copy_from(from);
    }
}

/// One exchange.
pub(super) async fn exchange(team: &Team, pattern: Pattern, b: Blocks<'_>) -> Result<()> {
    let arena = team.arena()?;
    team.enter(pattern.operation(), b.size);
    keep(pattern, team.me, b);
    if team.choices.exchange(b.size * pattern.blocks(team.n)) == ExchangeWay::Pull && team.copies_work(arena).await? {
        return pulled(team, arena, pattern, b).await;
    }
    let most = room(pattern.blocks(team.n));
    let mut at = 0;
    while at < b.size {
        let part = (b.size - at).min(most);
        through_cells(team, arena, pattern, b, at, part).await?;
        at += part;
    }
    Ok(())
}

/// Bytes of each of so many blocks that go through a ring at once: half of it, so that the next call need not wait for this one.
fn room(blocks: usize) -> usize {
    (CELLS / 2 * CELL_BYTES / blocks) & !63
}

async fn through_cells(
    team: &Team,
    arena: &Arena,
    pattern: Pattern,
    b: Blocks<'_>,
    at: usize,
    part: usize,
) -> Result<()> {
    let call = team.begin();
    let blocks = pattern.blocks(team.n);
    let (number, cell, used) = team.own_run(call, (blocks * part).div_ceil(CELL_BYTES));
    let in_flag = blocks * part <= FLAG_BYTES;
    let flag = |member: usize| arena.flag(team.ring_of(member, number), cell);
    let place = |member: usize, block: usize| {
        let whole = if in_flag { flag(member).line() } else { arena.cell(team.ring_of(member, number), cell) };
        whole.part(block * part, part)
    };
    if pattern.gives(team.me) {
        team.until_done(arena, used).await?;
        for block in (0..blocks).filter(|k| blocks == 1 || *k != team.me) {
            // Everybody has done with the cells.
            place(team.me, block).copy_from(b.give.part(block * b.size + at, part));
        }
        if in_flag {
            flag(team.me).publish_short(number, blocks * part);
        } else {
            flag(team.me).publish(number, b.size);
        }
        team.wake(arena);
    }
    if pattern.takes(team.me) {
        for k in 1..team.n {
            let member = (team.me + k) % team.n;
            if pattern.gives(member) {
                let flag = flag(member);
                team.until(&flag.number, there(number), member).await?;
                if if in_flag { !flag.is_short_of(blocks * part) } else { !flag.is_of(b.size) } {
                    return Err(team.lengths_differ(arena, member, flag.length(blocks)));
                }
                team.saw(member, call);
                // The giver writes there again only when this member has finished.
                let from = place(member, pattern.block_of(team.me));
                b.of(pattern, member).part(at, part).copy_from(*from);
                if pattern.goes_one_way(team.n) && !in_flag {
                    from.take_over();
                }
            }
        }
    }
    team.finish(arena, call);
    Ok(())
}

async fn pulled(team: &Team, arena: &Arena, pattern: Pattern, b: Blocks<'_>) -> Result<()> {
    let call = team.begin();
    if pattern.gives(team.me) {
        team.offer(arena, call, b.give.part(0, pattern.blocks(team.n) * b.size));
    }
    if pattern.takes(team.me) {
        for k in 1..team.n {
            let member = (team.me + k) % team.n;
            if pattern.gives(member) {
                team.until(&arena.post(member).call, call, member).await?;
                team.saw(member, call);
                let offer = team.offered(arena, call, member);
                let blocks = pattern.blocks(team.n);
                if offer.bytes != blocks * b.size {
                    return Err(team.wrong_offer(arena, offer, (offer.bytes / blocks) as u64));
                }
                team.read(offer, pattern.block_of(team.me) * b.size, b.of(pattern, member))?;
            }
        }
        if let Some(error) = team.failure_since(arena) {
            // A giver may have gone on with its buffer while we copied.
            return Err(error);
        }
    }
    team.finish(arena, call);
    if pattern.gives(team.me) {
        for reader in (0..team.n).filter(|r| *r != team.me && pattern.takes(*r)) {
            team.until(&arena.post(reader).finished, call, reader).await?;
        }
    }
    Ok(())
}
