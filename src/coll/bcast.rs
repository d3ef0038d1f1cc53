//! Broadcast on a node.
//!
//! | way | copies | |
//! |---|---|---|
//! | flag | 1 + 1 | up to 56 bytes, in the line of the flag: one line goes to each member |
//! | cells | 1 + 1 | through the ring that belongs to whoever broadcasts; root and readers overlap cell by cell, and the root goes on when all is in |
//! | pull | 1 | every reader copies from the root's memory, all at once |
//! | coop | 1 | likewise, and the root writes pieces into the readers' memory meanwhile |
//!
//! The ring has few cells, used in turn by all roots: a line is cheapest to write for whoever has read it last.

use super::arena::{Arena, CELLS, FLAG_BYTES, Flag, there};
use super::choose::SEGMENT;
use super::copies::{claim, counted, piece_of};
use super::team::Team;
use crate::base::atomics::{Ordering, copy};
use crate::base::config::BcastWay;
use crate::base::copying::Copying;
use crate::base::error::Result;
use crate::base::ownership::take_over;
use crate::wait::Operation;

/// One broadcast. `ptr` has `len` bytes, at least one; it is read at the root and written elsewhere.
///
/// # Safety
/// The buffer stays the call's until it is complete.
pub(super) async unsafe fn bcast(team: &Team, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    team.enter(Operation::Bcast, len);
    // SAFETY: as the caller promises.
    unsafe { share(team, ptr, len, root).await }
}

/// A broadcast, or the part of another call that is one.
///
/// # Safety
/// As for [`bcast`].
pub(super) async unsafe fn share(team: &Team, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    let arena = team.arena()?;
    let way = team.choices.bcast(len);
    if len <= FLAG_BYTES {
        // SAFETY: as the caller promises.
        return unsafe { through_flag(team, arena, ptr, len, root).await };
    }
    if matches!(way, BcastWay::Pull | BcastWay::Coop) && team.copies_work(arena).await? {
        // SAFETY: as the caller promises.
        return unsafe { pulled(team, arena, ptr, len, root, way == BcastWay::Coop).await };
    }
    let mut at = 0;
    while at < len {
        let part = (len - at).min(SEGMENT);
        // SAFETY: a part of the buffer.
        unsafe { through_cells(team, arena, ptr.add(at), (part, len), root).await? };
        at += part;
    }
    Ok(())
}

/// Copies up to [`FLAG_BYTES`] into a flag's line, without its number.
///
/// # Safety
/// `len` readable bytes at `from`; the flag is the caller's to write.
#[inline(always)]
pub(super) unsafe fn into_flag(flag: &Flag, from: *const u8, len: usize) {
    // SAFETY: seven words have room for them, and nobody reads them before the number is stored.
    unsafe { copy(from, flag.data.as_ptr().cast_mut().cast::<u8>(), len) };
}

/// Copies them out, once the number is there.
///
/// # Safety
/// `len` writable bytes at `to`.
#[inline(always)]
pub(super) unsafe fn out_of_flag(flag: &Flag, to: *mut u8, len: usize) {
    // SAFETY: the writer stored the number after them, and does not write again before this member has finished.
    unsafe { copy(flag.data.as_ptr().cast::<u8>(), to, len) };
}

#[inline]
async unsafe fn through_flag(team: &Team, arena: &Arena, ptr: *mut u8, len: usize, root: usize) -> Result<()> {
    let call = team.begin();
    team.share_ring(root);
    let (number, cell) = team.next_shared(call);
    let flag = arena.flag(arena.shared_ring(), cell.index);
    if team.me == root {
        team.until_done(arena, cell.used).await?;
        // SAFETY: everybody has done with the line.
        unsafe { into_flag(flag, ptr, len) };
        flag.publish_short(number, len);
    } else {
        team.until(&flag.number, there(number), root).await?;
        if !flag.is_short_of(len) {
            return Err(team.lengths_differ(arena, root, flag.length(1)));
        }
        team.saw(root, call);
        // SAFETY: `len` bytes of this member's buffer.
        unsafe { out_of_flag(flag, ptr, len) };
    }
    team.finish(arena, call);
    Ok(())
}

/// A part of `len` bytes of a payload of `whole`.
///
/// # Safety
/// As for [`bcast`].
async unsafe fn through_cells(
    team: &Team,
    arena: &Arena,
    ptr: *mut u8,
    (len, whole): (usize, usize),
    root: usize,
) -> Result<()> {
    let call = team.begin();
    let again = team.share_ring(root);
    let ring = arena.shared_ring();
    let chunk = team.choices.chunk(len, whole);
    // Who has a core to itself has the time to fetch the lines that it writes.
    let how = if team.choices.crowded && team.n > 2 { Copying::of(whole) } else { Copying::Cached };
    debug_assert!(len.div_ceil(chunk) <= CELLS);
    let mut at = 0;
    while at < len {
        let n = (len - at).min(chunk);
        let (number, cell) = team.next_shared(call);
        let flag = arena.flag(ring, cell.index);
        if team.me == root {
            team.until_done(arena, cell.used).await?;
            // SAFETY: everybody has done with the cell, and `n` bytes of the buffer are there.
            unsafe { copy(ptr.add(at), arena.cell(ring, cell.index), n) };
            flag.publish(number, whole);
            team.wake(arena);
        } else {
            team.until(&flag.number, there(number), root).await?;
            if !flag.is_of(whole) {
                return Err(team.lengths_differ(arena, root, flag.length(1)));
            }
            let from = arena.cell(ring, cell.index);
            // SAFETY: the root does not write there again before this member has finished; of two members nobody else reads.
            unsafe {
                how.copy(from, ptr.add(at), n);
                if team.n == 2 && (again || whole > SEGMENT) {
                    take_over(from, n);
                }
            }
        }
        at += n;
    }
    if team.me != root {
        team.saw(root, call);
    }
    team.finish(arena, call);
    Ok(())
}

async unsafe fn pulled(team: &Team, arena: &Arena, ptr: *mut u8, len: usize, root: usize, coop: bool) -> Result<()> {
    let call = team.begin();
    // What one reader copies alone goes in one piece.
    let piece = if coop { piece_of(len, team.choices.piece) } else { len };
    let pieces = len.div_ceil(piece);
    let bounds = |k: usize| (k * piece, (len - k * piece).min(piece));
    if team.me == root {
        team.offer(arena, call, ptr, len);
        for reader in (0..team.n).filter(|r| *r != root && coop) {
            let post = arena.post(reader);
            team.until(&post.call, call, reader).await?;
            // Of a reader that has copied all by itself it may be one of a later call; then there is no piece left to claim. That the
            // lengths are alike is for the reader to find out.
            let offer = team.offered(arena, call, reader);
            let mut pushed = 0;
            if team.may_write(arena, call) {
                while let Some(k) = claim(&post.claim, call, pieces) {
                    let (at, n) = bounds(k);
                    // SAFETY: the reader leaves its buffer to us until all pieces are there, or all know that the call has failed.
                    unsafe { team.write(offer, at, ptr.add(at), n)? };
                    pushed += 1;
                    // SYNC POINT: pairs with the acquire in the reader's wait for the last piece.
                    post.pushed.store(counted(call, pushed), Ordering::Release);
                }
                team.wrote(arena);
            }
            team.wake(arena);
        }
        for reader in (0..team.n).filter(|r| *r != root) {
            team.until(&arena.post(reader).finished, call, reader).await?;
        }
    } else {
        team.until(&arena.post(root).call, call, root).await?;
        let offer = team.offered(arena, call, root);
        if offer.bytes != len {
            return Err(team.wrong_offer(arena, offer, offer.bytes as u64));
        }
        if coop {
            team.offer(arena, call, ptr, len);
        }
        let post = arena.post(team.me);
        let mut own = 0;
        while let Some(k) = claim(&post.claim, call, pieces) {
            let (at, n) = bounds(k);
            // SAFETY: the root's buffer stays until we have finished, ours is this call's.
            unsafe { team.read(offer, at, ptr.add(at), n)? };
            own += 1;
        }
        if own < pieces {
            team.until(&post.pushed, counted(call, pieces - own), root).await?;
        }
        if let Some(error) = team.failure_since(arena) {
            // The root may have gone on with its buffer while we copied.
            return Err(error);
        }
    }
    team.finish(arena, call);
    Ok(())
}
