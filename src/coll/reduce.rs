//! Reduce and allreduce on a node.
//!
//! Whatever the way, an element of the result is ((x0 ∘ x1) ∘ x2) ∘ …, in the members' order: so the bits are the same on all
//! ranks, in every run, by every way, and a function need neither commute nor be associative.
//!
//! | way | |
//! |---|---|
//! | small | allreduce of up to 24 bytes: two members' payloads share a line, everybody reads all of them |
//! | cells | each member puts its vector into its own ring; the root, or everybody, folds them, cell by cell |
//! | root | allreduce: one member folds as for a reduce, and broadcasts: less work than everybody's where members share cores |
//! | slices | allreduce: each member folds one slice of all rings, puts the result there, and takes the others' |
//! | pull | pieces are claimed by whoever has time, folded from the members' memory, and written to where they belong |

use super::arena::{Arena, CELL_BYTES, CELLS, FLAG_BYTES, RING_BYTES, SMALL_BYTES, there};
use super::bcast::share;
use super::choose::SEGMENT;
use super::copies::{Offer, claim, piece_of};
use super::function::Vector;
use super::team::{Team, next};
use crate::base::bytes::{Bytes, Room, Scratch};
use crate::base::config::{AllreduceWay, ReduceWay};
use crate::base::error::Result;
use crate::wait::Operation;

/// Who gets the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Root(usize),
    All,
}

impl To {
    fn has(self, member: usize) -> bool {
        self == To::All || self == To::Root(member)
    }
}

/// One reduce or allreduce of at least one element.
pub(super) async fn reduce(team: &Team, v: Vector<'_>, to: To) -> Result<()> {
    let arena = team.arena()?;
    let (len, count, size) = (v.bytes(), v.n, v.f.size);
    let (pull, slices, root) = match to {
        To::Root(_) => {
            team.enter(Operation::Reduce, len);
            (team.choices.reduce(len) == ReduceWay::Pull, false, false)
        }
        To::All => {
            team.enter(Operation::Allreduce, len);
            let way = team.choices.allreduce(len);
            (way == AllreduceWay::Pull, way == AllreduceWay::Slices, way == AllreduceWay::Root)
        }
    };
    if to == To::All && len <= SMALL_BYTES {
        return small(team, arena, v).await;
    }
    if pull && team.copies_work(arena).await? {
        return pulled(team, arena, v, to).await;
    }
    let slices = slices || pull && to == To::All;
    let mut at = 0;
    while at < count {
        let left = count - at;
        let whole = left.min(RING_BYTES / size);
        let sliced = slices && whole >= team.n;
        let n = if sliced { whole } else { left.min(SEGMENT / size) };
        let part = v.part(at, n);
        if sliced {
            in_slices(team, arena, part, len).await?;
        } else if root {
            // Each member in turn: what one folds meanwhile all others pass.
            let root = next(&team.state.turns) as usize % team.n;
            through_cells(team, arena, part, len, To::Root(root)).await?;
            share(team, part.at, root).await?;
        } else {
            through_cells(team, arena, part, len, to).await?;
        }
        at += n;
    }
    Ok(())
}

/// Folds the members' vectors in their order into `own`, this member's. `of` gives the others' vectors; `partial` and `spare` have room
/// for as many elements.
#[inline(always)]
fn fold<'a>(
    team: &Team,
    own: Vector<'a>,
    of: impl Fn(usize) -> Bytes<'a>,
    partial: Room<'a>,
    spare: Room<'_>,
) -> Result<()> {
    let vector = |member: usize| if member == team.me { *own.at } else { of(member) };
    let mut left = vector(0);
    for member in 1..team.n {
        // In place where the partial result is ours, or nobody needs our vector any more.
        let out = if team.me == 0 || member + 1 == team.n { own.at } else { partial };
        own.f.fold(out, left, vector(member), own.n, spare).map_err(|panic| team.panicked(panic))?;
        left = *out;
    }
    Ok(())
}

async fn small(team: &Team, arena: &Arena, v: Vector<'_>) -> Result<()> {
    let len = v.bytes();
    let number = next(&team.state.smalls);
    let turn = (number & 1) as usize;
    let mine = arena.small(turn, team.me);
    // The line is ours: whoever read it two calls ago has published in the last call since.
    mine.line().copy_from(*v.at);
    mine.publish(number, len);
    team.wake(arena);
    for member in 0..team.n {
        if member != team.me {
            let theirs = arena.small(turn, member);
            team.until(&theirs.call, there(number), member).await?;
            if theirs.bytes() != len as u64 {
                return Err(team.lengths_differ(arena, member, theirs.bytes()));
            }
        }
    }
    let (mut partial, mut spare) = ([0u64; SMALL_BYTES / 8], [0u64; SMALL_BYTES / 8]);
    // The members' words stay until they have seen our next publication.
    let of = |m| *arena.small(turn, m).line();
    fold(team, v, of, Room::of(&mut partial), Room::of(&mut spare))
}

/// A part of a vector of `whole` bytes.
async fn through_cells(team: &Team, arena: &Arena, v: Vector<'_>, whole: usize, to: To) -> Result<()> {
    let (count, size) = (v.n, v.f.size);
    let call = team.begin();
    let takes = to.has(team.me);
    let gives = to == To::All || !takes;
    let flags = v.bytes() <= FLAG_BYTES;
    // Whole elements, and no cell twice in one call: a cell that is not read yet would be written again.
    let chunk = (team.choices.chunk(v.bytes(), whole) / size).max(count.div_ceil(CELLS)).max(1);
    debug_assert!(chunk * size <= CELL_BYTES);
    let scratch = team.scratch(2 * CELL_BYTES);
    let (first, chunks) = (team.own_cells(), count.div_ceil(chunk));
    let mut given = 0;
    let give = |k: usize| {
        let (at, n) = (k * chunk, chunk.min(count - k * chunk));
        let (number, cell) = (first + k as u64 + 1, (first as usize + k) % CELLS);
        let ring = team.ring_of(team.me, number);
        // Whoever read the cell has finished that call.
        let from = *v.part(at, n).at;
        if flags {
            arena.flag(ring, cell).line().copy_from(from);
            arena.flag(ring, cell).publish_short(number, from.len());
        } else {
            arena.cell(ring, cell).copy_from(from);
            arena.flag(ring, cell).publish(number, whole);
        }
        team.wake(arena);
    };
    for k in 0..chunks {
        if gives {
            // All that there is room for at once; the vector is folded in place, but each chunk only after it has been given.
            while given < chunks {
                let used = team.own_used(first + given as u64);
                team.until_done(arena, used).await?;
                give(given);
                given += 1;
            }
        }
        if !takes {
            break;
        }
        let (at, n) = (k * chunk, chunk.min(count - k * chunk));
        let (number, cell) = (first + k as u64 + 1, (first as usize + k) % CELLS);
        for member in 0..team.n {
            if member != team.me {
                let flag = arena.flag(team.ring_of(member, number), cell);
                team.until(&flag.number, there(number), member).await?;
                if if flags { !flag.is_short_of(n * size) } else { !flag.is_of(whole) } {
                    return Err(team.lengths_differ(arena, member, flag.length(1)));
                }
                team.saw(member, call);
            }
        }
        let of = |member: usize| {
            let ring = team.ring_of(member, number);
            if flags { *arena.flag(ring, cell).line() } else { *arena.cell(ring, cell) }
        };
        // The cells stay until this member has finished the call.
        fold(team, v.part(at, n), of, scratch.room(), scratch.room().part(CELL_BYTES, CELL_BYTES))?;
        if to != To::All && !flags {
            for member in (0..team.n).filter(|m| *m != team.me) {
                // Nobody else reads what is given to a root, and its owner writes there again only when we have finished.
                arena.cell(team.ring_of(member, number), cell).part(0, n * size).take_over();
            }
        }
    }
    team.use_own(call, chunks);
    team.finish(arena, call);
    Ok(())
}

/// A part of a vector of `whole` bytes.
async fn in_slices(team: &Team, arena: &Arena, v: Vector<'_>, whole: usize) -> Result<()> {
    let call = team.begin();
    let (number, _, used) = team.own_run(call, CELLS);
    team.until_done(arena, used).await?;
    // A ring as one run of bytes, with the flags of its first two cells: the vector is there, the result is there.
    let ring = |member: usize| arena.cell(member, 0);
    // The bytes of a member's slice.
    let slice = |member: usize| {
        let at = |member: usize| v.n * member / team.n * v.f.size;
        (at(member), at(member + 1) - at(member))
    };
    let (from, bytes) = slice(team.me);
    let to = from + bytes;
    // Everybody has done with the rings.
    ring(team.me).copy_from(*v.at.part(0, from));
    ring(team.me).part(to, v.bytes() - to).copy_from(*v.at.part(to, v.bytes() - to));
    arena.flag(team.me, 0).publish(number, whole);
    team.wake(arena);
    for member in (0..team.n).filter(|m| *m != team.me) {
        let flag = arena.flag(member, 0);
        team.until(&flag.number, there(number), member).await?;
        if !flag.is_of(whole) {
            return Err(team.lengths_differ(arena, member, flag.length(1)));
        }
        team.saw(member, call);
    }
    {
        let scratch = team.scratch(2 * RING_BYTES);
        let own = v.part(from / v.f.size, bytes / v.f.size);
        fold(team, own, |m| *ring(m).part(from, bytes), scratch.room(), scratch.room().part(RING_BYTES, RING_BYTES))?;
        // Nobody reads our own slice of our ring before the second flag.
        ring(team.me).part(from, bytes).copy_from(*own.at);
    }
    arena.flag(team.me, 1).publish(number, whole);
    team.wake(arena);
    for member in (0..team.n).filter(|m| *m != team.me) {
        // Our slice of the others' rings nobody else reads, and they write there again only when we have finished.
        ring(member).part(from, bytes).take_over();
    }
    for k in 1..team.n {
        let member = (team.me + k) % team.n;
        team.until(&arena.flag(member, 1).number, there(number), member).await?;
        let (from, bytes) = slice(member);
        // The result stays until we have finished.
        let result = ring(member).part(from, bytes);
        v.at.part(from, bytes).copy_from(*result);
        if team.n == 2 {
            result.take_over();
        }
    }
    team.finish(arena, call);
    Ok(())
}

async fn pulled(team: &Team, arena: &Arena, v: Vector<'_>, to: To) -> Result<()> {
    let call = team.begin();
    let (count, len) = (v.n, v.bytes());
    team.offer(arena, call, *v.at);
    let elements = (piece_of(len, team.choices.piece) / v.f.size).max(1);
    let pieces = count.div_ceil(elements);
    for member in (0..team.n).filter(|m| *m != team.me) {
        team.until(&arena.post(member).call, call, member).await?;
        team.saw(member, call);
        let offer = team.offered(arena, call, member);
        if offer.bytes != len {
            return Err(team.wrong_offer(arena, offer, offer.bytes as u64));
        }
    }
    let bytes = elements * v.f.size;
    // Two vectors that were fetched, a partial result, and what a function of the program needs.
    let scratch = team.scratch(4 * bytes);
    if team.may_write(arena, call) {
        while let Some(k) = claim(&arena.header().claim.word, call, pieces) {
            let at = k * elements;
            // The members leave their buffers to whoever has claimed a piece until all have finished.
            let own = v.part(at, elements.min(count - at));
            piece(team, arena, (call, at * v.f.size), own, to, &scratch, bytes)?;
        }
        team.wrote(arena);
    }
    team.finish(arena, call);
    // Others may still read this member's buffer, or write into it.
    team.until_done(arena, call).await?;
    match team.failure_since(arena) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Folds one piece, `own` in this member's vector, `at` from the beginning in all, and writes the result to where it belongs.
fn piece(
    team: &Team,
    arena: &Arena,
    (call, at): (u64, usize),
    own: Vector<'_>,
    to: To,
    scratch: &Scratch,
    room: usize,
) -> Result<()> {
    let bytes = own.bytes();
    let place = |k: usize| scratch.room().part(k * room, bytes);
    let fetch = |member: usize, into: usize| -> Result<Bytes<'_>> {
        if member == team.me {
            return Ok(*own.at);
        }
        let offer = team.offered(arena, call, member);
        if let Some(there) = team.mapped(offer, at, bytes) {
            return Ok(*there);
        }
        team.read(offer, at, place(into))?;
        Ok(*place(into))
    };
    let keep = to.has(team.me);
    let mut left = fetch(0, 0)?;
    for member in 1..team.n {
        let right = fetch(member, 1)?;
        // The result is made in our own vector if it belongs there and nobody needs it any more; a reduce leaves it alone elsewhere.
        let ours = keep && (team.me == 0 || member + 1 == team.n);
        let out = if ours { own.at } else { place(2) };
        own.f.fold(out, left, right, own.n, place(3)).map_err(|panic| team.panicked(panic))?;
        left = *out;
    }
    for member in (0..team.n).filter(|m| to.has(*m) && *m != team.me) {
        let offer: Offer = team.offered(arena, call, member);
        // This piece of the others' vectors is ours to write.
        team.write(offer, at, left)?;
    }
    Ok(())
}
