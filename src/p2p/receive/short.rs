//! The short path of a receive: a message of the landing's own bytes, of an annex, of the chain's next record, or one that came with its
//! announcement; and the posting of a run of bytes.

use super::*;
use crate::base::atomics::Setting;
use crate::base::looking::{between_looks, looks};
use crate::base::prefetch::prefetch_run;
use crate::base::trace::traced;

/// Messages of an annex of more bytes than this are acknowledged by the answer, like those in the landing itself; for those between, the
/// acknowledgement brings the hot line over while the answer is being copied, and costs less than it gains: on some processors, see
/// [`OWE_ALL`].
const OWE_ABOVE: usize = if cfg!(loom) { 0 } else { 768 };
/// 1: those between too.
static OWE_ALL: Setting = Setting::new(0);
/// Pauses before the first turn of a wait for an answer that comes behind its acknowledgement: such a message takes longer than that.
const ANSWER_PAUSES: u32 = if cfg!(loom) { 0 } else { 2 };
/// So much of the next message of a window is asked for while this one is copied; what follows it a processor asks for by itself.
const FETCHED_AHEAD: usize = 1024;

/// The short path: the message is, or within moments will be, in the landing or its annex. `false`: not this way. `OWE`: as for
/// [`take_short`].
#[inline(always)]
pub fn recv_inline<const OWE: bool>(lane: &Lane, slot: usize, run: Run) -> bool {
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_CHAIN) != 0 {
        return false;
    }
    // A small buffer gets a small message: it is worth a moment's patience before anything else is tried.
    take_short::<OWE>(lane, progress, slot, run, || if run.len() <= POST_AT_ONCE { patience() } else { 1 })
}

/// Takes the chain's next record, if the last message came from the chain and that record is there within moments and fits. `false`:
/// not this way.
#[inline(always)]
pub(super) fn take_chained(lane: &Lane, slot: usize, run: Run) -> bool {
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_CHAIN) != RECV_CHAIN {
        return false;
    }
    let seq = progress.received.load(Ordering::Relaxed) + 1;
    let (theirs, _) = lane.receiving(slot);
    let side = lane.receive_side(slot);
    let (block, next) = (side.block.get(), side.next.get());
    let record = block.record(next);
    let patience = if run.len() <= POST_AT_ONCE { patience() } else { 1 };
    let mut turns = 0;
    // SYNC POINT: as in `look_in_chain`.
    let mut word = record.load(Ordering::Acquire);
    while word as u32 != seq as u32 || word == 0 {
        turns += 1;
        if turns >= patience || theirs.landing().is(seq, lane.epoch) {
            return false;
        }
        between_looks();
        word = record.load(Ordering::Acquire);
    }
    let len = (word >> 40) as usize;
    if (word >> 32) as u8 != Kind::Spooled as u8
        || len as u64 >= LONG_LENGTH
        || len > run.len()
        || !block.has_record(next, len as u64)
    {
        return false;
    }
    let payload = block.payload(next, len);
    payload.copy_to(run);
    payload.take_over();
    side.next.set(next + record_bytes(len) as u64);
    progress.count_received(seq);
    lane.note_len(progress, slot, len);
    traced!(lane.note_received(slot, len, seq));
    // SYNC POINT: pairs with `Sender::consumed_all`.
    block.header().taken.store(seq as u32, Ordering::Release);
    wake_sender(lane, slot, theirs);
    true
}

/// Takes the next message if within so many turns it is in the landing or an annex, and fits. `false`: not so.
///
/// `OWE`: in traffic that alternates the acknowledgement is left to the answer. Only a blocking receive does so: requests overlap, and
/// a peer that sends before it has looked for what came would find its last message not acknowledged.
#[inline(always)]
pub(in crate::p2p) fn take_short<const OWE: bool>(
    lane: &Lane,
    progress: &Progress,
    slot: usize,
    run: Run,
    patience: impl FnOnce() -> u32,
) -> bool {
    let (theirs, mine) = lane.receiving(slot);
    let seq = progress.received.load(Ordering::Relaxed) + 1;
    let epoch = lane.epoch;
    let mut land = theirs.landing();
    if !land.is(seq, epoch) {
        let in_turn = progress.awaits_answer();
        let patience = if in_turn { looks(patience()) } else { patience() };
        if OWE_ALL.get() == 0 && patience > 1 && is_acknowledged_first(lane, progress, slot) {
            (0..ANSWER_PAUSES).for_each(|_| spin_loop());
        }
        let mut turns = 1;
        while !land.is(seq, epoch) {
            if turns >= patience {
                return false;
            }
            // The pause matters: a poller without it takes the line away between the peer's acknowledgement and its next landing,
            // and a ping-pong takes twice the time.
            if in_turn {
                between_looks()
            } else {
                spin_loop()
            }
            land = theirs.landing();
            turns += 1;
        }
    }
    let len = land.inline_len();
    if len > run.len() {
        return false;
    }
    progress.note_acked(land, theirs);
    if !land.is_plain_inline() {
        return take_other::<OWE>(lane, slot, land, run);
    }
    run.set_words([theirs.data[0].load(Ordering::Relaxed), theirs.data[1].load(Ordering::Relaxed)], len);
    progress.count_received(seq);
    lane.note_len(progress, slot, len);
    traced!(lane.note_received(slot, len, seq));
    owe_or_acknowledge::<OWE>(lane, progress, slot, (theirs, mine), seq, land);
    true
}

/// The rest of [`take_short`]: a message beside its landing, or one whose sender waits for the acknowledgement.
#[inline(never)]
fn take_other<const OWE: bool>(lane: &Lane, slot: usize, land: Land, run: Run) -> bool {
    let (progress, halves) = (lane.progress(slot), lane.receiving(slot));
    let seq = progress.received.load(Ordering::Relaxed) + 1;
    let words = [halves.0.data[0].load(Ordering::Relaxed), halves.0.data[1].load(Ordering::Relaxed)];
    let len = if land.kind() == Kind::Inline as u8 {
        run.set_words(words, land.inline_len());
        land.inline_len()
    } else {
        let Some(len) = from_annex(lane, slot, seq, land, words, run) else { return false };
        len
    };
    progress.count_received(seq);
    lane.note_len(progress, slot, len);
    traced!(lane.note_received(slot, len, seq));
    if OWE && (len > OWE_ABOVE || OWE_ALL.get() != 0) && !land.is_now() {
        owe_or_acknowledge::<true>(lane, progress, slot, halves, seq, land);
    } else {
        acknowledge(lane, slot, halves, seq);
    }
    true
}

/// What follows a message whose sender does not wait for the acknowledgement: `OWE` as for [`take_short`].
#[inline(always)]
pub(in crate::p2p) fn owe_or_acknowledge<const OWE: bool>(
    lane: &Lane,
    progress: &Progress,
    slot: usize,
    (theirs, mine): (&Half, &Half),
    seq: u64,
    land: Land,
) {
    if OWE && progress.alternates(seq, land) && theirs.tx.load(Ordering::Relaxed) & 0xff == 0 {
        owe(progress);
    } else {
        acknowledge(lane, slot, (theirs, mine), seq);
    }
}

/// From the tuning file, or a setting: are all messages beside their landing acknowledged by the answer?
pub fn configure(owe_all: bool) {
    OWE_ALL.set(owe_all as u64);
}

/// Is the message that is awaited an answer whose sender first acknowledges what it answers? So it is in traffic in turn with messages of an
/// annex that are not owed an acknowledgement. A look between the two would take the line away from its writer.
#[inline(always)]
fn is_acknowledged_first(lane: &Lane, progress: &Progress, slot: usize) -> bool {
    progress.awaits_answer() && (INLINE_BYTES + 1..=OWE_ABOVE).contains(&lane.last_len(slot))
}

/// The acknowledgement is left to the answer.
#[inline(always)]
fn owe(progress: &Progress) {
    let flags = progress.recv_flags.load(Ordering::Relaxed);
    if flags & RECV_OWES == 0 {
        progress.recv_flags.store(flags | RECV_OWES, Ordering::Release);
    }
}

/// Takes a message that came with its announcement to a receiver of any index, if it is the slot's next one and fits. `false`: not so. Its
/// landing need not be there yet, and is not looked at: the line stays where it is written next.
#[inline(always)]
pub(in crate::p2p) fn take_carried(lane: &Lane, slot: usize, land: Land, words: [u64; 2], run: Run) -> bool {
    let progress = lane.progress(slot);
    let seq = progress.received.load(Ordering::Relaxed) + 1;
    let len = land.inline_len();
    if progress.recv_flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_CHAIN) != 0
        || !land.is(seq, lane.epoch)
        || len > run.len().min(INLINE_BYTES)
    {
        return false;
    }
    let halves = lane.receiving(slot);
    progress.note_acked(land, halves.0);
    run.set_words(words, len);
    progress.count_received(seq);
    lane.note_len(progress, slot, len);
    traced!(lane.note_received(slot, len, seq));
    // A sender that waits for this acknowledgement said so in the landing; one that waits with its next message announces that, and who
    // looks for it settles.
    if progress.alternates(seq, land) && !land.is_now() {
        owe(progress)
    } else {
        acknowledge(lane, slot, halves, seq)
    }
    true
}

/// Tells the sender that message `seq` and all before it are received, and wakes it. The halves are as [`Lane::receiving`] gives them.
#[inline(always)]
pub(super) fn acknowledge(lane: &Lane, slot: usize, (theirs, mine): (&Half, &Half), seq: u64) {
    mine.acknowledge(seq, mine.rx.load(Ordering::Relaxed) & 0xff);
    wake_sender(lane, slot, theirs);
}

/// Wakes the sender if it sleeps, after what it may wait for has been stored. `theirs`: its half of the slot.
#[inline(always)]
pub(super) fn wake_sender(lane: &Lane, slot: usize, theirs: &Half) {
    doorbell::light_barrier();
    let sleep = theirs.tx.load(Ordering::Relaxed) & 0xff;
    if sleep != 0 {
        wake(lane, slot, sleep);
    }
}

/// Posts the receive of message `seq`, the next one, of a run of bytes into a lane on this node.
///
/// Whether the message is there is looked up when the receive is completed: so posting writes the posting and touches nothing else that the
/// two sides share.
#[inline(always)]
pub(in crate::p2p) fn post_short(ep: &Endpoint, lane: &Lane, slot: usize, seq: u64, run: Run) {
    let posting = lane.posting_here(slot);
    // What fits the landing goes there, wherever the buffer is.
    let hint = if run.len() <= INLINE_BYTES { 0 } else { heap_hint(ep, run) };
    posting.post(seq, run.ptr() as u64, run.len() as u64, PostingKind::Contiguous, hint, lane.epoch);
    lane.wanted(slot).set(run);
    doorbell::light_barrier();
    // SYNC POINT: pairs with the sleeper's count, as its word does in `wake_sender`.
    if lane.peer_side().asleep.load(Ordering::Relaxed) != 0 {
        wake_sender(lane, slot, lane.receiving(slot).0);
    }
}

/// [`HINT_HEAP`] for bytes that the peer can reach in the heap.
#[inline(always)]
pub(super) fn heap_hint(ep: &Endpoint, run: Run) -> u8 {
    if ep.heap.contains(run.ptr(), run.len()) { HINT_HEAP } else { 0 }
}

/// Gives the acknowledgement that is owed, if one is: whoever receives off the short path, or looks for a message, may be what the
/// sender waits for. For the slot's receiving thread.
#[inline(always)]
pub(crate) fn settle(lane: &Lane, slot: usize) {
    let progress = lane.progress(slot);
    let flags = progress.recv_flags.load(Ordering::Relaxed);
    if flags & RECV_OWES != 0 {
        progress.recv_flags.store(flags & !RECV_OWES, Ordering::Release);
        acknowledge(lane, slot, lane.receiving(slot), progress.received.load(Ordering::Relaxed));
    }
}

/// Delivers a message that lies in an annex, or partly in a split line, if it fits; its length.
#[inline]
fn from_annex(lane: &Lane, slot: usize, seq: u64, land: Land, words: [u64; 2], run: Run) -> Option<usize> {
    let (which, split) = annex_of(lane, land)?;
    let len =
        if split { land.inline_len().clamp(INLINE_BYTES, SPLIT_BYTES) } else { (words[0] as usize).min(ANNEX_MOST) };
    // A split line that does not come is the long way's business.
    if len > run.len() || split && !split_soon(lane, which, slot, seq) {
        return None;
    }
    if split {
        run.set_sixteen(words);
        lane.split(which, slot).copy_to(run.first(len).after(INLINE_BYTES));
    } else {
        let parts =
            [lane.annex(which, slot).first(len), lane.long_annex(which, slot).first(len.saturating_sub(ANNEX_BYTES))];
        parts.iter().for_each(|part| part.prefetch());
        parts[0].copy_to(run);
        if len > ANNEX_BYTES {
            parts[1].copy_to(run.after(ANNEX_BYTES));
        }
        // Where both sides send at once, the taking over is only one more thing to wait for.
        if which != 0 && lane.progress(slot).is_inward() {
            parts.iter().for_each(|part| part.take_over());
        }
    }
    received_annex(lane, slot, which);
    Some(len)
}

/// Has the annex of a slot's next message come, if its landing is there already. `most`: no more bytes than these.
#[inline(always)]
pub(in crate::p2p) fn fetch_annex(lane: &Lane, slot: usize, progress: &Progress, most: usize) {
    let theirs = lane.receiving(slot).0;
    let land = theirs.landing();
    if land.is(progress.received.load(Ordering::Relaxed) + 1, lane.epoch)
        && let Some((which, false)) = annex_of(lane, land)
    {
        let len = theirs.data[0].load(Ordering::Relaxed) as usize;
        lane.annex(which, slot).first(len.min(most)).prefetch();
    }
}

/// Has what comes first of a slot's next message come, if its landing is there already and says that it is in the spool.
pub(in crate::p2p) fn fetch_spooled(ep: &Endpoint, lane: &Lane, slot: usize, progress: &Progress) {
    let theirs = lane.receiving(slot).0;
    let land = theirs.landing();
    if land.is(progress.received.load(Ordering::Relaxed) + 1, lane.epoch) && land.kind() == Kind::Spooled as u8 {
        let [len, at] = [0, 1].map(|k| theirs.data[k].load(Ordering::Relaxed));
        if let Ok(spool) = lane.peer_spool(&ep.region)
            && let Some((from, block)) = spool.message(at, len)
        {
            prefetch_run((&raw const *block.header()).cast(), size_of::<Block>());
            from.first(FETCHED_AHEAD).prefetch();
        }
    }
}

/// Which annex or split line a landing means, and whether it is a split line.
#[inline(always)]
pub(super) fn annex_of(lane: &Lane, land: Land) -> Option<(usize, bool)> {
    Some(match Kind::from_number(land.kind())? {
        Kind::Split => (0, true),
        Kind::OwnSplit => (1 + lane.inn, true),
        Kind::Annex => (0, false),
        Kind::OwnAnnex => (1 + lane.inn, false),
        _ => return None,
    })
}

/// An annex has been read. The one in turn is this side's from now on.
#[inline(always)]
pub(super) fn received_annex(lane: &Lane, slot: usize, which: usize) {
    if which == 0 {
        let flags = &lane.progress(slot).recv_flags;
        // SYNC POINT: pairs with the acquire in `holds_annex`.
        flags.store(flags.load(Ordering::Relaxed) ^ RECV_ANNEX, Ordering::Release);
    }
}

/// Is the split line of a message there?
#[inline(always)]
pub(super) fn is_split(lane: &Lane, which: usize, slot: usize, seq: u64) -> bool {
    // SYNC POINT: pairs with the release in `fill_annex`.
    lane.split_seq(which, slot).load(Ordering::Acquire) == split_mark(seq, lane.inn)
}

/// Is it there within moments? Its sender writes it right behind the landing, unless it loses its core between the two, or dies.
#[inline(always)]
fn split_soon(lane: &Lane, which: usize, slot: usize, seq: u64) -> bool {
    for _ in 0..SPLIT_PATIENCE {
        if is_split(lane, which, slot, seq) {
            return true;
        }
        between_looks();
    }
    false
}
