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

use super::arena::{Arena, CELLS, FLAG_BYTES, there};
use super::choose::SEGMENT;
use super::copies::{claim, counted, piece_of};
use super::team::Team;
use crate::base::atomics::Ordering;
use crate::base::bytes::Room;
use crate::base::config::BcastWay;
use crate::base::copying::Copying;
use crate::base::error::Result;
use crate::wait::Operation;

/// One broadcast of at least one byte: `data` is read at the root and written elsewhere.
pub(super) async fn bcast(team: &Team, data: Room<'_>, root: usize) -> Result<()> {
    team.enter(Operation::Bcast, data.len());
    share(team, data, root).await
}

/// A broadcast, or the part of another call that is one.
pub(super) async fn share(team: &Team, data: Room<'_>, root: usize) -> Result<()> {
    let arena = team.arena()?;
    let len = data.len();
    let way = team.choices.bcast(len);
    if len <= FLAG_BYTES {
        return through_flag(team, arena, data, root).await;
    }
    if matches!(way, BcastWay::Pull | BcastWay::Coop) && team.copies_work(arena).await? {
        return pulled(team, arena, data, root, way == BcastWay::Coop).await;
    }
    let mut at = 0;
    while at < len {
        let part = (len - at).min(SEGMENT);
        through_cells(team, arena, data.part(at, part), len, root).await?;
        at += part;
    }
    Ok(())
}

#[inline]
async fn through_flag(team: &Team, arena: &Arena, data: Room<'_>, root: usize) -> Result<()> {
    let len = data.len();
    let call = team.begin();
    team.share_ring(root);
    let (number, cell) = team.next_shared(call);
    let flag = arena.flag(arena.shared_ring(), cell.index);
    if team.me == root {
        team.until_done(arena, cell.used).await?;
        // Everybody has done with the line.
        flag.line().copy_from(*data);
        flag.publish_short(number, len);
    } else {
        team.until(&flag.number, there(number), root).await?;
        if !flag.is_short_of(len) {
            return Err(team.lengths_differ(arena, root, flag.length(1)));
        }
        team.saw(root, call);
        // The root does not write there again before this member has finished.
        data.copy_from(*flag.line().part(0, len));
    }
    team.finish(arena, call);
    Ok(())
}

/// A part of a payload of `whole` bytes.
async fn through_cells(team: &Team, arena: &Arena, data: Room<'_>, whole: usize, root: usize) -> Result<()> {
    let len = data.len();
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
            // Everybody has done with the cell.
            arena.cell(ring, cell.index).copy_from(*data.part(at, n));
            flag.publish(number, whole);
            team.wake(arena);
        } else {
            team.until(&flag.number, there(number), root).await?;
            if !flag.is_of(whole) {
                return Err(team.lengths_differ(arena, root, flag.length(1)));
            }
            let from = arena.cell(ring, cell.index).part(0, n);
            // The root does not write there again before this member has finished; of two members nobody else reads.
            data.part(at, n).copy_by(how, *from);
            if team.n == 2 && (again || whole > SEGMENT) {
                from.take_over();
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

async fn pulled(team: &Team, arena: &Arena, data: Room<'_>, root: usize, coop: bool) -> Result<()> {
    let (call, len) = (team.begin(), data.len());
    // What one reader copies alone goes in one piece.
    let piece = if coop { piece_of(len, team.choices.piece) } else { len };
    let pieces = len.div_ceil(piece);
    let part = |k: usize| data.part(k * piece, (len - k * piece).min(piece));
    if team.me == root {
        team.offer(arena, call, *data);
        for reader in (0..team.n).filter(|r| *r != root && coop) {
            let post = arena.post(reader);
            team.until(&post.call, call, reader).await?;
            // Of a reader that has copied all by itself it may be one of a later call; then there is no piece left to claim. That the
            // lengths are alike is for the reader to find out.
            let offer = team.offered(arena, call, reader);
            let mut pushed = 0;
            if team.may_write(arena, call) {
                while let Some(k) = claim(&post.claim, call, pieces) {
                    // The reader leaves its buffer to us until all pieces are there, or all know that the call has failed.
                    team.write(offer, k * piece, *part(k))?;
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
            team.offer(arena, call, *data);
        }
        let post = arena.post(team.me);
        let mut own = 0;
        while let Some(k) = claim(&post.claim, call, pieces) {
            team.read(offer, k * piece, part(k))?;
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
