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
use super::function::Vector;
use super::messages::Party;
use super::reduce::{self, To};
use super::team::Team;
use crate::base::bytes::{Bytes, Scratch};
use crate::base::config::{ExchangeWay, ScanWay};
use crate::base::error::Result;
use crate::wait::Operation;

/// One reduce-scatter: `give` has a block for each member, of as many elements, at least one, as `take`, which becomes this member's block,
/// reduced. The two do not overlap.
pub(super) async fn reduce_scatter(team: &Team, give: Bytes<'_>, take: Vector<'_>) -> Result<()> {
    let arena = team.arena()?;
    let (len, count, size) = (take.bytes(), take.n, take.f.size);
    team.enter(Operation::ReduceScatter, len);
    if team.choices.exchange(len * team.n) == ExchangeWay::Pull && team.copies_work(arena).await? {
        return blocks_pulled(team, arena, give, take).await;
    }
    // Half of a ring, so that the next part need not wait for this one to be done with.
    let (half, whole) = (RING_BYTES / 2 / team.n / size, RING_BYTES / team.n / size);
    let most = if half > 0 { half } else { whole };
    if most == 0 {
        // Not even one element of each block fits into a ring: one block after the other.
        let copy = Scratch::new(len);
        for member in 0..team.n {
            // A member that is not the root keeps its vector, which is not to be changed: so it is a copy.
            let at = if member == team.me { take.at } else { copy.room().part(0, len) };
            at.copy_from(give.part(member * len, len));
            reduce::reduce(team, Vector { at, ..take }, To::Root(member)).await?;
        }
        return Ok(());
    }
    let mut at = 0;
    while at < count {
        let n = (count - at).min(most);
        blocks_through_cells(team, arena, give, take.part(at, n), (at * size, len)).await?;
        at += n;
    }
    Ok(())
}

/// A part of each block of `len` bytes, from byte `at` on.
async fn blocks_through_cells(
    team: &Team,
    arena: &Arena,
    give: Bytes<'_>,
    take: Vector<'_>,
    (at, len): (usize, usize),
) -> Result<()> {
    let call = team.begin();
    let part = take.bytes();
    let (number, cell, used) = team.own_run(call, (team.n * part).div_ceil(CELL_BYTES));
    let ring = |member: usize| team.ring_of(member, number);
    let block = |member: usize| give.part(member * len + at, part);
    let part_of = |member: usize| arena.cell(ring(member), cell).part(team.me * part, part);
    team.until_done(arena, used).await?;
    for member in (0..team.n).filter(|m| *m != team.me) {
        // Everybody has done with the cells.
        arena.cell(ring(team.me), cell).part(member * part, part).copy_from(block(member));
    }
    arena.flag(ring(team.me), cell).publish(number, len);
    team.wake(arena);
    for member in 0..team.n {
        let mut from = block(team.me);
        if member != team.me {
            let flag = arena.flag(ring(member), cell);
            team.until(&flag.number, there(number), member).await?;
            if !flag.is_of(len) {
                return Err(team.lengths_differ(arena, member, flag.length(1)));
            }
            team.saw(member, call);
            from = *part_of(member);
        }
        take.f.fold_next(take.at, from, take.n, member == 0).map_err(|panic| team.panicked(panic))?;
        // Of two members each writes next where it has read; else nobody else reads this block, and its giver writes there again only
        // when this member has finished.
        if member != team.me && team.n > 2 {
            part_of(member).take_over();
        }
    }
    team.finish(arena, call);
    Ok(())
}

async fn blocks_pulled(team: &Team, arena: &Arena, give: Bytes<'_>, take: Vector<'_>) -> Result<()> {
    let call = team.begin();
    let (len, size) = (take.bytes(), take.f.size);
    team.offer(arena, call, give);
    for member in (0..team.n).filter(|m| *m != team.me) {
        team.until(&arena.post(member).call, call, member).await?;
        team.saw(member, call);
        let offer = team.offered(arena, call, member);
        if offer.bytes / team.n != len {
            return Err(team.wrong_offer(arena, offer, (offer.bytes / team.n) as u64));
        }
    }
    let elements = (piece_of(len, team.choices.piece) / size).max(1);
    let scratch = team.scratch(elements * size);
    let mut at = 0;
    while at < take.n {
        let part = take.part(at, elements.min(take.n - at));
        let (offset, bytes) = (team.me * len + at * size, part.bytes());
        for member in 0..team.n {
            let from = if member == team.me {
                give.part(offset, bytes)
            } else {
                let offer = team.offered(arena, call, member);
                match team.mapped(offer, offset, bytes) {
                    Some(there) => *there,
                    None => {
                        // The offer is valid until all have finished.
                        let piece = scratch.room().part(0, bytes);
                        team.read(offer, offset, piece)?;
                        *piece
                    }
                }
            };
            part.f.fold_next(part.at, from, part.n, member == 0).map_err(|panic| team.panicked(panic))?;
        }
        at += part.n;
    }
    if let Some(error) = team.failure_since(arena) {
        return Err(error);
    }
    team.finish(arena, call);
    // Others may still read this member's buffer.
    team.until_done(arena, call).await
}

/// One exscan of at least one element: the vector of member k becomes x0 ∘ x1 ∘ … ∘ x(k-1), by a scan of copies that each member hands on.
/// Members of several nodes as well.
pub(super) async fn exscan(team: &Team, v: Vector<'_>) -> Result<()> {
    let copy = Scratch::new(v.bytes());
    let own = Vector { at: copy.room().part(0, v.bytes()), ..v };
    own.at.copy_from(*v.at);
    match team.span {
        None => {
            scan_as(team, Operation::Exscan, own).await?;
            team.tell_call(team.arena()?);
        }
        Some(_) => super::between::scan(team, own).await?,
    }
    let p = Party::all(team);
    let next = (p.me + 1 < p.len()).then_some(p.me + 1);
    p.swap_some(next, *own.at, p.me.checked_sub(1), v.at).await
}

/// One scan of at least one element: the vector of member k becomes x0 ∘ x1 ∘ … ∘ xk.
pub(super) async fn scan(team: &Team, v: Vector<'_>) -> Result<()> {
    scan_as(team, Operation::Scan, v).await
}

async fn scan_as(team: &Team, operation: Operation, v: Vector<'_>) -> Result<()> {
    let arena = team.arena()?;
    let (len, count, size) = (v.bytes(), v.n, v.f.size);
    team.enter(operation, len);
    let chain = team.choices.scan(len) == ScanWay::Chain;
    // Half of a ring, so that the next part need not wait for this one to be done with.
    let most = if chain { CELL_BYTES / size * (CELLS / 2) } else { CELLS / 2 * CELL_BYTES / size };
    let mut at = 0;
    while at < count {
        let part = v.part(at, (count - at).min(most));
        if chain {
            handed_on(team, arena, part, len).await?;
        } else {
            read_by_all(team, arena, part, len).await?;
        }
        at += part.n;
    }
    Ok(())
}

/// A part of a vector of `whole` bytes.
async fn read_by_all(team: &Team, arena: &Arena, v: Vector<'_>, whole: usize) -> Result<()> {
    let call = team.begin();
    let bytes = v.bytes();
    let (number, cell, used) = team.own_run(call, bytes.div_ceil(CELL_BYTES));
    let ring = |member: usize| team.ring_of(member, number);
    if team.me + 1 < team.n {
        team.until_done(arena, used).await?;
        // Everybody has done with the cells.
        arena.cell(ring(team.me), cell).copy_from(*v.at);
        arena.flag(ring(team.me), cell).publish(number, whole);
        team.wake(arena);
    }
    if team.me > 0 {
        let scratch = team.scratch(2 * bytes.next_multiple_of(64));
        let (partial, spare) = (scratch.room(), scratch.room().part(bytes.next_multiple_of(64), bytes));
        for member in 0..team.me {
            let flag = arena.flag(ring(member), cell);
            team.until(&flag.number, there(number), member).await?;
            if !flag.is_of(whole) {
                return Err(team.lengths_differ(arena, member, flag.length(1)));
            }
            team.saw(member, call);
            // The cells stay until this member has finished.
            let theirs = *arena.cell(ring(member), cell);
            v.f.fold_next(partial, theirs, v.n, member == 0).map_err(|panic| team.panicked(panic))?;
        }
        v.fold_behind(*partial, spare).map_err(|panic| team.panicked(panic))?;
    }
    team.finish(arena, call);
    Ok(())
}

/// The same, handed on from each to the next.
async fn handed_on(team: &Team, arena: &Arena, v: Vector<'_>, whole: usize) -> Result<()> {
    let call = team.begin();
    let (n, chunk) = (v.n, CELL_BYTES / v.f.size);
    let chunks = n.div_ceil(chunk);
    let (number, cell, used) = team.own_run(call, chunks);
    let ring = |member: usize| team.ring_of(member, number);
    let scratch = team.scratch(CELL_BYTES);
    if team.me + 1 < team.n {
        team.until_done(arena, used).await?;
    }
    for k in 0..chunks {
        let own = v.part(k * chunk, chunk.min(n - k * chunk));
        if let Some(before) = team.me.checked_sub(1) {
            let flag = arena.flag(ring(before), cell + k);
            team.until(&flag.number, there(number + k as u64), before).await?;
            if !flag.is_of(whole) {
                return Err(team.lengths_differ(arena, before, flag.length(1)));
            }
            team.saw(before, call);
            // The cell stays until this member has finished.
            let theirs = *arena.cell(ring(before), cell + k);
            own.fold_behind(theirs, scratch.room()).map_err(|panic| team.panicked(panic))?;
        }
        if team.me + 1 < team.n {
            // Everybody has done with the cell.
            arena.cell(ring(team.me), cell + k).copy_from(*own.at);
            arena.flag(ring(team.me), cell + k).publish(number + k as u64, whole);
            team.wake(arena);
        }
        if let Some(before) = team.me.checked_sub(1) {
            // Nobody else reads the cell, and its member writes there again only when we have finished.
            arena.cell(ring(before), cell + k).part(0, own.bytes()).take_over();
        }
    }
    team.finish(arena, call);
    Ok(())
}
