//! Gather, allgather, scatter, alltoall on a node: blocks of bytes that each member takes out of the others' memory.
//!
//! | way | copies | |
//! |---|---|---|
//! | flag | 1 + 1 | up to 56 bytes of a giver, in the line of a cell's flag |
//! | cells | 1 + 1 | each giver puts its blocks into its own ring, as many bytes of each as there is room for |
//! | pull | 1 | each taker copies from the givers' memory, beginning with the next rank |

use super::arena::{Arena, CELL_BYTES, CELLS, FLAG_BYTES, there};
use super::team::Team;
use crate::base::atomics::copy;
use crate::base::config::ExchangeWay;
use crate::base::error::Result;
use crate::base::ownership::take_over;
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

/// The buffers of an exchange of blocks of `size` bytes, at least one.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub give: *const u8,
    pub take: *mut u8,
    pub size: usize,
}

/// The member's own block, which nobody else moves. It may be in its place already.
///
/// # Safety
/// As for [`exchange`].
pub(super) unsafe fn keep(pattern: Pattern, me: usize, b: Blocks) {
    if !pattern.keeps(me) {
        return;
    }
    let from = b.give.wrapping_add(pattern.block_of(me) * b.size);
    let to = b.take.wrapping_add(pattern.place_of(me) * b.size);
    if !core::ptr::eq(from, to) {
        // SAFETY: blocks of the two buffers, which do not overlap but for a block that is in its place.
        unsafe { copy(from, to, b.size) };
    }
}

/// One exchange. A giver has `blocks` blocks at `give`, a taker room for a block of each giver at `take`.
///
/// # Safety
/// The buffers stay the call's until it is complete.
pub(super) async unsafe fn exchange(team: &Team, pattern: Pattern, b: Blocks) -> Result<()> {
    let arena = team.arena()?;
    team.enter(pattern.operation(), b.size);
    // SAFETY: as the caller promises.
    unsafe { keep(pattern, team.me, b) };
    if team.choices.exchange(b.size * pattern.blocks(team.n)) == ExchangeWay::Pull && team.copies_work(arena).await? {
        // SAFETY: as the caller promises.
        return unsafe { pulled(team, arena, pattern, b).await };
    }
    let most = room(pattern.blocks(team.n));
    let mut at = 0;
    while at < b.size {
        let part = (b.size - at).min(most);
        // SAFETY: a part of each block.
        unsafe { through_cells(team, arena, pattern, b, at, part).await? };
        at += part;
    }
    Ok(())
}

/// Bytes of each of so many blocks that go through a ring at once: half of it, so that the next call need not wait for this one.
fn room(blocks: usize) -> usize {
    (CELLS / 2 * CELL_BYTES / blocks) & !63
}

async unsafe fn through_cells(
    team: &Team,
    arena: &Arena,
    pattern: Pattern,
    b: Blocks,
    at: usize,
    part: usize,
) -> Result<()> {
    let call = team.begin();
    let blocks = pattern.blocks(team.n);
    let (number, cell, used) = team.own_run(call, (blocks * part).div_ceil(CELL_BYTES));
    let in_flag = blocks * part <= FLAG_BYTES;
    let flag = |member: usize| arena.flag(team.ring_of(member, number), cell);
    let place = |member: usize| {
        if in_flag {
            flag(member).data.as_ptr().cast_mut().cast::<u8>()
        } else {
            arena.cell(team.ring_of(member, number), cell)
        }
    };
    if pattern.gives(team.me) {
        team.until_done(arena, used).await?;
        let mine = place(team.me);
        for block in (0..blocks).filter(|k| blocks == 1 || *k != team.me) {
            // SAFETY: everybody has done with the cells, and the block has as many bytes from `at` on.
            unsafe { copy(b.give.add(block * b.size + at), mine.add(block * part), part) };
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
                // SAFETY: the giver writes there again only when this member has finished; `take` has room for the block.
                unsafe {
                    let to = b.take.add(pattern.place_of(member) * b.size + at);
                    let from = place(member).add(pattern.block_of(team.me) * part);
                    copy(from, to, part);
                    if pattern.goes_one_way(team.n) && !in_flag {
                        take_over(from, part);
                    }
                }
            }
        }
    }
    team.finish(arena, call);
    Ok(())
}

async unsafe fn pulled(team: &Team, arena: &Arena, pattern: Pattern, b: Blocks) -> Result<()> {
    let call = team.begin();
    if pattern.gives(team.me) {
        team.offer(arena, call, b.give, pattern.blocks(team.n) * b.size);
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
                let to = b.take.wrapping_add(pattern.place_of(member) * b.size);
                // SAFETY: the giver's buffer stays until we have finished, ours is this call's.
                unsafe { team.read(offer, pattern.block_of(team.me) * b.size, to, b.size)? };
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
