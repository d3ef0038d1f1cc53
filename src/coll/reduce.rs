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
use super::bcast::{into_flag, share};
use super::choose::SEGMENT;
use super::copies::{Offer, claim, piece_of};
use super::function::Function;
use super::team::{Team, next};
use crate::base::atomics::copy;
use crate::base::config::{AllreduceWay, ReduceWay};
use crate::base::error::Result;
use crate::base::ownership::take_over;
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

/// One reduce or allreduce. `ptr` has `count` elements, at least one.
///
/// # Safety
/// The buffer stays the call's until it is complete; the function is one of such elements.
pub(super) async unsafe fn reduce(team: &Team, ptr: *mut u8, count: usize, f: &Function<'_>, to: To) -> Result<()> {
    let arena = team.arena()?;
    let len = count * f.size;
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
        // SAFETY: as the caller promises.
        return unsafe { small(team, arena, ptr, count, f).await };
    }
    if pull && team.copies_work(arena).await? {
        // SAFETY: as the caller promises.
        return unsafe { pulled(team, arena, ptr, count, f, to).await };
    }
    let slices = slices || pull && to == To::All;
    let mut at = 0;
    while at < count {
        let left = count - at;
        let whole = left.min(RING_BYTES / f.size);
        let sliced = slices && whole >= team.n;
        let n = if sliced { whole } else { left.min(SEGMENT / f.size) };
        // SAFETY: a part of the buffer.
        unsafe {
            let ptr = ptr.add(at * f.size);
            if sliced {
                in_slices(team, arena, ptr, (n, count), f).await?;
            } else if root {
                // Each member in turn: what one folds meanwhile all others pass.
                let root = next(&team.state.turns) as usize % team.n;
                through_cells(team, arena, ptr, (n, count), f, To::Root(root)).await?;
                share(team, ptr, n * f.size, root).await?;
            } else {
                through_cells(team, arena, ptr, (n, count), f, to).await?;
            }
        }
        at += n;
    }
    Ok(())
}

/// Folds the members' vectors of `n` elements in their order into `own`, this member's. `of` gives the others' vectors.
///
/// # Safety
/// `n` elements everywhere; `partial` and `spare` have room for them and overlap with nothing.
#[inline(always)]
unsafe fn fold(
    team: &Team,
    f: &Function<'_>,
    own: *mut u8,
    n: usize,
    of: impl Fn(usize) -> *const u8,
    partial: *mut u8,
    spare: *mut u8,
) -> Result<()> {
    let vector = |member: usize| if member == team.me { own.cast_const() } else { of(member) };
    let mut left = vector(0);
    for member in 1..team.n {
        // In place where the partial result is ours, or nobody needs our vector any more.
        let out = if team.me == 0 || member + 1 == team.n { own } else { partial };
        // SAFETY: as the caller promises; `out` is `left`, or the right vector, or neither.
        unsafe { f.fold(out, left, vector(member), n, spare) }.map_err(|panic| team.panicked(panic))?;
        left = out;
    }
    Ok(())
}

async unsafe fn small(team: &Team, arena: &Arena, ptr: *mut u8, count: usize, f: &Function<'_>) -> Result<()> {
    let len = count * f.size;
    let number = next(&team.state.smalls);
    let turn = (number & 1) as usize;
    let mine = arena.small(turn, team.me);
    // SAFETY: the line is ours: whoever read it two calls ago has published in the last call since.
    unsafe { copy(ptr, mine.data.as_ptr().cast_mut().cast::<u8>(), len) };
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
    // SAFETY: the members' words stay until they have seen our next publication.
    unsafe {
        fold(
            team,
            f,
            ptr,
            count,
            |m| arena.small(turn, m).data.as_ptr().cast(),
            partial.as_mut_ptr().cast(),
            spare.as_mut_ptr().cast(),
        )
    }
}

/// A part of `count` elements of a vector of `whole`.
///
/// # Safety
/// As for [`reduce`].
async unsafe fn through_cells(
    team: &Team,
    arena: &Arena,
    ptr: *mut u8,
    (count, whole): (usize, usize),
    f: &Function<'_>,
    to: To,
) -> Result<()> {
    let call = team.begin();
    let takes = to.has(team.me);
    let gives = to == To::All || !takes;
    let flags = count * f.size <= FLAG_BYTES;
    // Whole elements, and no cell twice in one call: a cell that is not read yet would be written again.
    let chunk = (team.choices.chunk(count * f.size, whole * f.size) / f.size).max(count.div_ceil(CELLS)).max(1);
    debug_assert!(chunk * f.size <= CELL_BYTES);
    let scratch = team.scratch(2 * CELL_BYTES);
    let (first, chunks) = (team.own_cells(), count.div_ceil(chunk));
    let mut given = 0;
    let give = |k: usize| {
        let (at, n) = (k * chunk, chunk.min(count - k * chunk));
        let (number, cell) = (first + k as u64 + 1, (first as usize + k) % CELLS);
        let ring = team.ring_of(team.me, number);
        // SAFETY: whoever read the cell has finished that call.
        unsafe {
            let from = ptr.add(at * f.size);
            if flags {
                into_flag(arena.flag(ring, cell), from, n * f.size);
            } else {
                copy(from, arena.cell(ring, cell), n * f.size);
            }
        }
        if flags {
            arena.flag(ring, cell).publish_short(number, n * f.size);
        } else {
            arena.flag(ring, cell).publish(number, whole * f.size);
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
                if if flags { !flag.is_short_of(n * f.size) } else { !flag.is_of(whole * f.size) } {
                    return Err(team.lengths_differ(arena, member, flag.length(1)));
                }
                team.saw(member, call);
            }
        }
        let of = |member: usize| {
            let ring = team.ring_of(member, number);
            if flags { arena.flag(ring, cell).data.as_ptr().cast() } else { arena.cell(ring, cell).cast_const() }
        };
        // SAFETY: the cells stay until this member has finished the call; the scratch has two cells' room.
        unsafe { fold(team, f, ptr.add(at * f.size), n, of, scratch, scratch.add(CELL_BYTES))? };
        if to != To::All && !flags {
            for member in (0..team.n).filter(|m| *m != team.me) {
                // SAFETY: nobody else reads what is given to a root, and its owner writes there again only when we have finished.
                unsafe { take_over(arena.cell(team.ring_of(member, number), cell), n * f.size) };
            }
        }
    }
    team.use_own(call, chunks);
    team.finish(arena, call);
    Ok(())
}

/// The elements of a member's slice: from, to.
fn slice(count: usize, members: usize, member: usize) -> (usize, usize) {
    (count * member / members, count * (member + 1) / members)
}

/// A part of `count` elements of a vector of `whole`.
///
/// # Safety
/// As for [`reduce`].
async unsafe fn in_slices(
    team: &Team,
    arena: &Arena,
    ptr: *mut u8,
    (count, whole): (usize, usize),
    f: &Function<'_>,
) -> Result<()> {
    let call = team.begin();
    let (number, _, used) = team.own_run(call, CELLS);
    team.until_done(arena, used).await?;
    // A ring as one run of bytes, with the flags of its first two cells: the vector is there, the result is there.
    let ring = |member: usize| arena.cell(member, 0);
    let (from, to) = slice(count, team.n, team.me);
    // SAFETY: everybody has done with the rings; the vector has room in one.
    unsafe {
        let mine = ring(team.me);
        copy(ptr, mine, from * f.size);
        copy(ptr.add(to * f.size), mine.add(to * f.size), (count - to) * f.size);
    }
    arena.flag(team.me, 0).publish(number, whole * f.size);
    team.wake(arena);
    for member in (0..team.n).filter(|m| *m != team.me) {
        let flag = arena.flag(member, 0);
        team.until(&flag.number, there(number), member).await?;
        if !flag.is_of(whole * f.size) {
            return Err(team.lengths_differ(arena, member, flag.length(1)));
        }
        team.saw(member, call);
    }
    let bytes = (to - from) * f.size;
    let scratch = team.scratch(2 * RING_BYTES);
    // SAFETY: nobody reads our own slice of our ring before the second flag.
    unsafe {
        let own = ptr.add(from * f.size);
        fold(team, f, own, to - from, |m| ring(m).add(from * f.size), scratch, scratch.add(RING_BYTES))?;
        copy(own, ring(team.me).add(from * f.size), bytes);
    }
    arena.flag(team.me, 1).publish(number, whole * f.size);
    team.wake(arena);
    for member in (0..team.n).filter(|m| *m != team.me) {
        // SAFETY: our slice of the others' rings nobody else reads, and they write there again only when we have finished.
        unsafe { take_over(ring(member).add(from * f.size), bytes) };
    }
    for k in 1..team.n {
        let member = (team.me + k) % team.n;
        team.until(&arena.flag(member, 1).number, there(number), member).await?;
        let (from, to) = slice(count, team.n, member);
        // SAFETY: the result stays until we have finished.
        unsafe {
            copy(ring(member).add(from * f.size), ptr.add(from * f.size), (to - from) * f.size);
            if team.n == 2 {
                take_over(ring(member).add(from * f.size), (to - from) * f.size);
            }
        };
    }
    team.finish(arena, call);
    Ok(())
}

async unsafe fn pulled(team: &Team, arena: &Arena, ptr: *mut u8, count: usize, f: &Function<'_>, to: To) -> Result<()> {
    let call = team.begin();
    let len = count * f.size;
    team.offer(arena, call, ptr, len);
    let elements = (piece_of(len, team.choices.piece) / f.size).max(1);
    let pieces = count.div_ceil(elements);
    for member in (0..team.n).filter(|m| *m != team.me) {
        team.until(&arena.post(member).call, call, member).await?;
        team.saw(member, call);
        let offer = team.offered(arena, call, member);
        if offer.bytes != len {
            return Err(team.wrong_offer(arena, offer, offer.bytes as u64));
        }
    }
    let bytes = elements * f.size;
    // Two vectors that were fetched, a partial result, and what a function of the program needs.
    let scratch = team.scratch(4 * bytes);
    if team.may_write(arena, call) {
        while let Some(k) = claim(&arena.header().claim.word, call, pieces) {
            let at = k * elements;
            // SAFETY: the members leave their buffers to whoever has claimed a piece until all have finished.
            unsafe { piece(team, arena, call, ptr, at * f.size, elements.min(count - at), f, to, scratch, bytes)? };
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

/// Folds one piece and writes the result to where it belongs.
#[expect(clippy::too_many_arguments, reason = "the call's own variables")]
unsafe fn piece(
    team: &Team,
    arena: &Arena,
    call: u64,
    ptr: *mut u8,
    at: usize,
    n: usize,
    f: &Function<'_>,
    to: To,
    scratch: *mut u8,
    room: usize,
) -> Result<()> {
    let bytes = n * f.size;
    let place = |k: usize| scratch.wrapping_add(k * room);
    let own = ptr.wrapping_add(at);
    let fetch = |member: usize, into: *mut u8| -> Result<*const u8> {
        if member == team.me {
            return Ok(own.cast_const());
        }
        let offer = team.offered(arena, call, member);
        if let Some(there) = team.mapped(offer, at, bytes) {
            return Ok(there.cast_const());
        }
        // SAFETY: `scratch` has four times `room`; the offer is valid until all have finished.
        unsafe { team.read(offer, at, into, bytes)? };
        Ok(into.cast_const())
    };
    let keep = to.has(team.me);
    let mut left = fetch(0, place(0))?;
    for member in 1..team.n {
        let right = fetch(member, place(1))?;
        // The result is made in our own vector if it belongs there and nobody needs it any more; a reduce leaves it alone elsewhere.
        let ours = keep && (team.me == 0 || member + 1 == team.n);
        let out = if ours { own } else { place(2) };
        // SAFETY: as above; `out` is `left` from the second fold on, or overlaps with neither, or is our own vector as one of them.
        unsafe { f.fold(out, left, right, n, place(3)) }.map_err(|panic| team.panicked(panic))?;
        left = out.cast_const();
    }
    for member in (0..team.n).filter(|m| to.has(*m) && *m != team.me) {
        let offer: Offer = team.offered(arena, call, member);
        // SAFETY: this piece of the others' vectors is ours to write.
        unsafe { team.write(offer, at, left, bytes)? };
    }
    Ok(())
}
