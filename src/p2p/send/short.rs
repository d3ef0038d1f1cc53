//! The short path of a send: a message of the landing's own bytes, or of an annex beside it, when everything before it is received.

use super::*;
use crate::base::trace::traced;

/// The short path: the landing, or the landing and an annex. `false`: not this way.
#[inline(always)]
pub(in crate::p2p) fn send_short(lane: &Lane, progress: &Progress, slot: usize, run: Run) -> bool {
    if run.len() <= INLINE_BYTES { send_inline(lane, progress, slot, run) } else { send_annex(lane, slot, run) }
}

/// The landing's own bytes. `progress`: the slot's record; what callers have at hand is handed down, since the compiler would work it out
/// anew after each store to shared memory. `false`: not this way.
#[inline(always)]
pub fn send_inline(lane: &Lane, progress: &Progress, slot: usize, run: Run) -> bool {
    let (mine, theirs) = lane.sending(slot);
    let before = progress.sent.load(Ordering::Relaxed);
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
        || !acked_soon(progress, theirs, before)
    {
        return false;
    }
    let seq = before + 1;
    let ([a, b], len) = (run.words(), run.len());
    if before == 0 {
        lane.touch(slot);
    }
    let land = Land::new(seq, progress.got(), Kind::Inline, len, lane.epoch);
    if lane.peer_side().any.load(Ordering::Relaxed) != 0 {
        publish_announced(lane, slot, land, [a, b]);
        lane.count_sent(progress, seq, len);
        traced!(lane.note_sent(slot, "inline", len, seq));
        return true;
    }
    mine.data[0].store(a, Ordering::Relaxed);
    mine.data[1].store(b, Ordering::Relaxed);
    mine.publish(land);
    lane.count_sent(progress, seq, len);
    after_publish(lane, slot, theirs);
    traced!(lane.note_sent(slot, "inline", len, seq));
    true
}

/// Publishes a landing and its data words to a peer that receives by any index too: first with the announcement, so that nothing else has
/// to come over for it.
#[inline(never)]
fn publish_announced(lane: &Lane, slot: usize, land: Land, words: [u64; 2]) {
    let (mine, theirs) = lane.sending(slot);
    let announced = any_index::announce_message(lane, slot, land, words);
    mine.data[0].store(words[0], Ordering::Relaxed);
    mine.data[1].store(words[1], Ordering::Relaxed);
    mine.publish(land);
    if !announced {
        return after_publish(lane, slot, theirs);
    }
    after_landing(lane, slot, theirs);
    any_index::wake_receiver(lane);
}

/// The next longer path: an annex beside the landing. `false`: not this way.
#[inline(never)]
fn send_annex(lane: &Lane, slot: usize, run: Run) -> bool {
    let len = run.len();
    let progress = lane.progress(slot);
    let theirs = lane.sending(slot).1;
    let before = progress.sent.load(Ordering::Relaxed);
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
        || !acked_soon(progress, theirs, before)
    {
        return false;
    }
    let seq = before + 1;
    if before == 0 {
        lane.touch(slot);
    }
    fill_annex(lane, slot, seq, len, false, || run.sixteen(), |at, to| run.after(at).copy_to(to));
    lane.count_sent(progress, seq, len);
    after_publish(lane, slot, theirs);
    traced!(lane.note_sent(slot, "eager slot", len, seq));
    true
}

/// Is the last message acknowledged, or will be in a moment? Where traffic goes both ways the acknowledgement is likely to be
/// on its way, and the landing is better than the chain; where it goes one way only, the chain is.
#[inline(always)]
pub(in crate::p2p) fn acked_soon(progress: &Progress, theirs: &Half, before: u64) -> bool {
    if progress.is_acked(before) || theirs.acked(before) {
        return true;
    }
    if !progress.is_two_way() {
        return false;
    }
    for _ in 0..ACK_PATIENCE.min(patience()) {
        crate::base::atomics::spin_loop();
        if theirs.acked(before) {
            return true;
        }
    }
    false
}

/// Publishes message `seq` by the landing and an annex, or a split line; `words()` are its first sixteen bytes, `copy(at, to)` copies bytes of it. `now`: it
/// is to be acknowledged at once.
#[inline(always)]
pub(super) fn fill_annex(
    lane: &Lane,
    slot: usize,
    seq: u64,
    len: usize,
    now: bool,
    words: impl Fn() -> [u64; 2],
    copy: impl Fn(usize, Run),
) {
    let progress = lane.progress(slot);
    let mine = lane.sending(slot).0;
    let publish = |kind, inline_len| {
        let land = Land::new(seq, progress.got(), kind, inline_len, lane.epoch);
        mine.publish(if now { land.now() } else { land });
    };
    // Lines that both sides write in turn cost less than lines that only one writes; without the turn there is an own one.
    let turn = holds_annex(lane, progress);
    let which = if turn { 0 } else { 1 + lane.out };
    if turn {
        progress.send_flags.store(progress.send_flags.load(Ordering::Relaxed) ^ SEND_ANNEX, Ordering::Relaxed);
    }
    if len <= SPLIT_BYTES {
        // The landing first, so that it is on its way while the split line comes here; that line says by itself when it is whole.
        let words = words();
        mine.data[0].store(words[0], Ordering::Relaxed);
        mine.data[1].store(words[1], Ordering::Relaxed);
        publish(if turn { Kind::Split } else { Kind::OwnSplit }, len);
        copy(INLINE_BYTES, lane.split(which, slot).first(len - INLINE_BYTES));
        // SYNC POINT: pairs with the acquire in `until_split`.
        lane.split_seq(which, slot).store(split_mark(seq, lane.out), Ordering::Release);
    } else {
        let (begin, rest) = (lane.annex(which, slot).first(len), len.saturating_sub(ANNEX_BYTES));
        // Where messages go one way the receiver has the lines.
        let ahead = copying::ahead();
        if ahead != 0 && !progress.is_two_way() {
            begin.prefetch_to_write(ahead);
            lane.long_annex(which, slot).first(rest).prefetch_to_write(ahead);
        }
        copy(0, begin);
        if rest > 0 {
            copy(ANNEX_BYTES, lane.long_annex(which, slot).first(rest));
        }
        mine.data[0].store(len as u64, Ordering::Relaxed);
        publish(if turn { Kind::Annex } else { Kind::OwnAnnex }, 0);
    }
}

/// The annex belongs to whoever received it last; at first to the lower rank.
#[inline(always)]
fn holds_annex(lane: &Lane, progress: &Progress) -> bool {
    // SYNC POINT: pairs with the receiving thread's release after it has read the annex.
    let got = progress.recv_flags.load(Ordering::Acquire) & RECV_ANNEX != 0;
    let gave = progress.send_flags.load(Ordering::Relaxed) & SEND_ANNEX != 0;
    if lane.is_self() { got == gave } else { (lane.out == 0) ^ got ^ gave }
}
