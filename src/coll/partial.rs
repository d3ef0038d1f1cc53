//! Reduce-scatter and scan on a node: reductions of which each member gets another part. The elements are folded in the members' order, as in
//! `reduce`.
//!
//! | call | way | |
//! |---|---|---|
//! | reduce-scatter | cells | each member puts its blocks into its ring, and folds one block of all rings |
//! | | pull | each member folds one block out of the members' memory, piece by piece |
//! | scan | cells | each member puts its vector into its ring, and folds those of the members before it with its own |
//! | | chain | each member folds its vector to what the one before it hands on, cell by cell, and hands that on |

use super::arena::{Arena, CELL_BYTES, CELLS, RING_BYTES, there};
use super::copies::piece_of;
use super::function::Function;
use super::reduce::{self, To};
use super::team::Team;
use crate::base::atomics::copy;
use crate::base::config::{ExchangeWay, ScanWay};
use crate::base::error::Result;
use crate::base::ownership::take_over;
use crate::wait::Operation;

/// One reduce-scatter: `give` has a block of `count` elements, at least one, for each member; this member's comes to `take`, reduced.
///
/// # Safety
/// The buffers stay the call's until it is complete, and do not overlap; the function is one of such elements.
pub(super) async unsafe fn reduce_scatter(
    team: &Team,
    give: *const u8,
    take: *mut u8,
    count: usize,
    f: &Function<'_>,
) -> Result<()> {
    let arena = team.arena()?;
    let len = count * f.size;
    team.enter(Operation::ReduceScatter, len);
    if team.choices.exchange(len * team.n) == ExchangeWay::Pull && team.copies_work(arena).await? {
        // SAFETY: as the caller promises.
        return unsafe { blocks_pulled(team, arena, give, take, count, f).await };
    }
    // Half of a ring, so that the next part need not wait for this one to be done with.
    let (half, whole) = (RING_BYTES / 2 / team.n / f.size, RING_BYTES / team.n / f.size);
    let most = if half > 0 { half } else { whole };
    if most == 0 {
        // Not even one element of each block fits into a ring: one block after the other.
        for member in 0..team.n {
            let mut block = give.wrapping_add(member * len).cast_mut();
            if member == team.me {
                // SAFETY: a block of each buffer.
                unsafe { copy(block, take, len) };
                block = take;
            }
            // SAFETY: as above; a member that is not the root only reads its vector.
            unsafe { reduce::reduce(team, block, count, f, To::Root(member)).await? };
        }
        return Ok(());
    }
    let mut at = 0;
    while at < count {
        let n = (count - at).min(most);
        // SAFETY: a part of each block.
        unsafe { blocks_through_cells(team, arena, give, take, count, at, n, f).await? };
        at += n;
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the call's own variables")]
async unsafe fn blocks_through_cells(
    team: &Team,
    arena: &Arena,
    give: *const u8,
    take: *mut u8,
    count: usize,
    at: usize,
    n: usize,
    f: &Function<'_>,
) -> Result<()> {
    let call = team.begin();
    let part = n * f.size;
    let (number, cell, used) = team.own_run(call, (team.n * part).div_ceil(CELL_BYTES));
    let ring = |member: usize| team.ring_of(member, number);
    let block = |member: usize| give.wrapping_add((member * count + at) * f.size);
    team.until_done(arena, used).await?;
    for member in (0..team.n).filter(|m| *m != team.me) {
        // SAFETY: everybody has done with the cells, which have room for a part of each block.
        unsafe {
            copy(block(member), arena.cell(ring(team.me), cell).add(member * part), part);
        }
    }
    arena.flag(ring(team.me), cell).publish(number, count * f.size);
    team.wake(arena);
    let to = take.wrapping_add(at * f.size);
    for member in 0..team.n {
        let mut from = block(team.me);
        if member != team.me {
            let flag = arena.flag(ring(member), cell);
            team.until(&flag.number, there(number), member).await?;
            if !flag.is_of(count * f.size) {
                return Err(team.lengths_differ(arena, member, flag.length(1)));
            }
            team.saw(member, call);
            from = arena.cell(ring(member), cell).wrapping_add(team.me * part);
        }
        // SAFETY: the cells stay until this member has finished; `take` is no part of them or of `give`.
        unsafe { f.fold_next(to, from, n, member == 0) }.map_err(|panic| team.panicked(panic))?;
        // Of two members each writes next where it has read.
        if member != team.me && team.n > 2 {
            // SAFETY: nobody else reads this block, and its giver writes there again only when this member has finished.
            unsafe { take_over(from.cast_mut(), part) };
        }
    }
    team.finish(arena, call);
    Ok(())
}

async unsafe fn blocks_pulled(
    team: &Team,
    arena: &Arena,
    give: *const u8,
    take: *mut u8,
    count: usize,
    f: &Function<'_>,
) -> Result<()> {
    let call = team.begin();
    let begin = team.me * count * f.size;
    team.offer(arena, call, give, team.n * count * f.size);
    for member in (0..team.n).filter(|m| *m != team.me) {
        team.until(&arena.post(member).call, call, member).await?;
        team.saw(member, call);
        let offer = team.offered(arena, call, member);
        if offer.bytes / team.n != count * f.size {
            return Err(team.wrong_offer(arena, offer, (offer.bytes / team.n) as u64));
        }
    }
    let elements = (piece_of(count * f.size, team.choices.piece) / f.size).max(1);
    let scratch = team.scratch(elements * f.size);
    let mut at = 0;
    while at < count {
        let n = elements.min(count - at);
        let (offset, bytes) = (begin + at * f.size, n * f.size);
        let to = take.wrapping_add(at * f.size);
        for member in 0..team.n {
            let from = if member == team.me {
                give.wrapping_add(offset)
            } else {
                let offer = team.offered(arena, call, member);
                match team.mapped(offer, offset, bytes) {
                    Some(there) => there.cast_const(),
                    None => {
                        // SAFETY: the scratch has room for a piece, and the offer is valid until all have finished.
                        unsafe { team.read(offer, offset, scratch, bytes)? };
                        scratch.cast_const()
                    }
                }
            };
            // SAFETY: `n` elements at each, which do not overlap.
            unsafe { f.fold_next(to, from, n, member == 0) }.map_err(|panic| team.panicked(panic))?;
        }
        at += n;
    }
    if let Some(error) = team.failure_since(arena) {
        return Err(error);
    }
    team.finish(arena, call);
    // Others may still read this member's buffer.
    team.until_done(arena, call).await
}

/// One scan: the vector of member k becomes x0 ∘ x1 ∘ … ∘ xk. `ptr` has `count` elements, at least one.
///
/// # Safety
/// The buffer stays the call's until it is complete; the function is one of such elements.
pub(super) async unsafe fn scan(team: &Team, ptr: *mut u8, count: usize, f: &Function<'_>) -> Result<()> {
    let arena = team.arena()?;
    team.enter(Operation::Scan, count * f.size);
    let chain = team.choices.scan(count * f.size) == ScanWay::Chain;
    // Half of a ring, so that the next part need not wait for this one to be done with.
    let most = if chain { CELL_BYTES / f.size * (CELLS / 2) } else { CELLS / 2 * CELL_BYTES / f.size };
    let mut at = 0;
    while at < count {
        let n = (count - at).min(most);
        // SAFETY: a part of the buffer.
        unsafe {
            let ptr = ptr.add(at * f.size);
            if chain {
                handed_on(team, arena, ptr, (n, count), f).await?;
            } else {
                read_by_all(team, arena, ptr, (n, count), f).await?;
            }
        }
        at += n;
    }
    Ok(())
}

/// A part of `n` elements of a vector of `whole`.
///
/// # Safety
/// As for [`scan`].
async unsafe fn read_by_all(
    team: &Team,
    arena: &Arena,
    ptr: *mut u8,
    (n, whole): (usize, usize),
    f: &Function<'_>,
) -> Result<()> {
    let call = team.begin();
    let bytes = n * f.size;
    let (number, cell, used) = team.own_run(call, bytes.div_ceil(CELL_BYTES));
    let ring = |member: usize| team.ring_of(member, number);
    if team.me + 1 < team.n {
        team.until_done(arena, used).await?;
        // SAFETY: everybody has done with the cells, which have room for the vector.
        unsafe { copy(ptr, arena.cell(ring(team.me), cell), bytes) };
        arena.flag(ring(team.me), cell).publish(number, whole * f.size);
        team.wake(arena);
    }
    if team.me > 0 {
        let scratch = team.scratch(2 * bytes.next_multiple_of(64));
        let spare = scratch.wrapping_add(bytes.next_multiple_of(64));
        for member in 0..team.me {
            let flag = arena.flag(ring(member), cell);
            team.until(&flag.number, there(number), member).await?;
            if !flag.is_of(whole * f.size) {
                return Err(team.lengths_differ(arena, member, flag.length(1)));
            }
            team.saw(member, call);
            // SAFETY: the cells stay until this member has finished; the scratch has room for two vectors.
            unsafe { f.fold_next(scratch, arena.cell(ring(member), cell), n, member == 0) }
                .map_err(|panic| team.panicked(panic))?;
        }
        // SAFETY: `ptr` is the right vector and takes the result.
        unsafe { f.fold(ptr, scratch, ptr, n, spare) }.map_err(|panic| team.panicked(panic))?;
    }
    team.finish(arena, call);
    Ok(())
}

/// The same, handed on from each to the next.
///
/// # Safety
/// As for [`scan`].
async unsafe fn handed_on(
    team: &Team,
    arena: &Arena,
    ptr: *mut u8,
    (n, whole): (usize, usize),
    f: &Function<'_>,
) -> Result<()> {
    let call = team.begin();
    let chunk = CELL_BYTES / f.size;
    let chunks = n.div_ceil(chunk);
    let (number, cell, used) = team.own_run(call, chunks);
    let ring = |member: usize| team.ring_of(member, number);
    let scratch = team.scratch(CELL_BYTES);
    if team.me + 1 < team.n {
        team.until_done(arena, used).await?;
    }
    for k in 0..chunks {
        let elements = chunk.min(n - k * chunk);
        let own = ptr.wrapping_add(k * chunk * f.size);
        if let Some(before) = team.me.checked_sub(1) {
            let flag = arena.flag(ring(before), cell + k);
            team.until(&flag.number, there(number + k as u64), before).await?;
            if !flag.is_of(whole * f.size) {
                return Err(team.lengths_differ(arena, before, flag.length(1)));
            }
            team.saw(before, call);
            // SAFETY: the cell stays until this member has finished; `own` is the right vector and takes the result.
            unsafe { f.fold(own, arena.cell(ring(before), cell + k), own, elements, scratch) }
                .map_err(|panic| team.panicked(panic))?;
        }
        if team.me + 1 < team.n {
            // SAFETY: everybody has done with the cell.
            unsafe { copy(own, arena.cell(ring(team.me), cell + k), elements * f.size) };
            arena.flag(ring(team.me), cell + k).publish(number + k as u64, whole * f.size);
            team.wake(arena);
        }
        if let Some(before) = team.me.checked_sub(1) {
            // SAFETY: nobody else reads the cell, and its member writes there again only when we have finished.
            unsafe { take_over(arena.cell(ring(before), cell + k), elements * f.size) };
        }
    }
    team.finish(arena, call);
    Ok(())
}
