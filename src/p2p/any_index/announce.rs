//! Announcements: a small queue, and the bitmap behind it for when that is full. The sender puts them there, the receiver takes them.

use super::*;

/// Marks a slot for a receiver of any index, and wakes it if it sleeps.
#[cold]
#[inline(never)]
pub(in crate::p2p) fn announce(lane: &Lane, slot: usize) {
    if slot < SYSTEM_INDICES {
        // The library's own messages (barriers) are nobody's to receive by any index.
        return;
    }
    if enqueue(lane, slot, None) {
        return wake_receiver(lane);
    }
    if let Some(remote) = lane.remote() {
        // The receiver looks at all indices then.
        return remote.say_overflow();
    }
    set_bits(lane, slot);
    // SYNC POINT: pairs with the acquire in `take_marks`.
    lane.my_side().any_overflow.store(1, Ordering::Release);
    wake_receiver(lane);
}

/// Marks a slot in the bitmap.
fn set_bits(lane: &Lane, slot: usize) {
    let word = ANNOUNCED_SUMMARY + slot / 64;
    // SYNC POINT: each pairs with the acquire of the same word in `take_bits`.
    lane.announced(lane.out, word).fetch_or(1 << (slot % 64), Ordering::Release);
    lane.announced(lane.out, slot / 64 / 64).fetch_or(1 << (slot / 64 % 64), Ordering::Release);
}

/// The bitmap as models use it, with no queue before it.
#[cfg(loom)]
pub struct Bitmap;

#[cfg(loom)]
impl Bitmap {
    /// Marks a slot for the other rank.
    pub fn mark(lane: &Lane, slot: usize) {
        set_bits(lane, slot);
    }
    /// Takes the other rank's marks of one word.
    pub fn take(lane: &Lane) -> Vec<u32> {
        let mut state = AnyState::default();
        take_bits(lane, &mut state);
        state.marked
    }
}

/// Announces a message of the landing's own bytes, which comes along, before its landing is published. `false`: not so.
#[inline(always)]
pub(in crate::p2p) fn announce_message(lane: &Lane, slot: usize, land: Land, words: [u64; 2]) -> bool {
    slot >= SYSTEM_INDICES && lane.remote().is_none() && enqueue(lane, slot, Some((land, words)))
}

/// Wakes the receiver if it sleeps, after an announcement.
pub(in crate::p2p) fn wake_receiver(lane: &Lane) {
    doorbell::light_barrier();
    if lane.peer_side().any_sleep.load(Ordering::Relaxed) & 0xff != 0 {
        let board = lane.board();
        doorbell::ring(&board.bell, doorbell::bit(0));
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

/// Puts the slot into the queue of announcements, which costs the receiver one line, or the message with it. `false`: it is full.
#[inline(always)]
fn enqueue(lane: &Lane, slot: usize, message: Option<(Land, [u64; 2])>) -> bool {
    let mut n = lane.announced_queued.load(Ordering::Relaxed);
    loop {
        if n.wrapping_sub(lane.announced_taken.load(Ordering::Relaxed)) >= ANNOUNCED_QUEUE as u64 {
            // SYNC POINT: pairs with the release in `dequeue`.
            let taken = match lane.remote() {
                None => lane.announcements_taken(lane.out).load(Ordering::Acquire),
                Some(remote) => remote.announcements_taken(),
            };
            lane.announced_taken.store(taken, Ordering::Relaxed);
            // More taken than there were: a damaged word, which counts as a full queue.
            if n.wrapping_sub(taken) >= ANNOUNCED_QUEUE as u64 {
                return false;
            }
        }
        match lane.announced_queued.compare_exchange_weak(n, n + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(now) => n = now,
        }
    }
    let head = announcement_head(n, slot, if message.is_some() { CARRIES } else { 0 });
    if let Some(remote) = lane.remote() {
        remote.announce(n, head);
        return true;
    }
    let entry = lane.announcement(lane.out, n);
    if let Some((land, words)) = message {
        entry.land.store(land.0, Ordering::Relaxed);
        entry.data[0].store(words[0], Ordering::Relaxed);
        entry.data[1].store(words[1], Ordering::Relaxed);
    }
    // SYNC POINT: pairs with the acquire in `announced`.
    entry.head.store(head, Ordering::Release);
    true
}

/// The head of the next announcement in the queue, if there is one.
#[inline(always)]
pub(super) fn announced(lane: &Lane) -> Option<u64> {
    let n = lane.announced_read.load(Ordering::Relaxed);
    let head = match lane.remote() {
        // SYNC POINT: pairs with the release in `enqueue`.
        None => lane.announcement(lane.inn, n).head.load(Ordering::Acquire),
        Some(remote) => remote.announcement(n),
    };
    ((head >> 32) as u32 == (n + 1) as u32).then_some(head)
}

/// Takes the next announcement out of the queue, for who then looks at its slot. One whose landing follows stays until that is there.
pub(super) fn dequeue(ep: &'static Endpoint, lane: &Lane) -> Option<usize> {
    let head = announced(lane)?;
    let slot = slot_of_head(head);
    if head & CARRIES != 0 && is_open(ep, lane, slot) {
        let entry = lane.announcement(lane.inn, lane.announced_read.load(Ordering::Relaxed));
        let seq = lane.progress(slot).received.load(Ordering::Relaxed) + 1;
        let next = Land(entry.land.load(Ordering::Relaxed)).is(seq, lane.epoch);
        if next && !lane.receiving(slot).0.landing().is(seq, lane.epoch) {
            return None;
        }
    }
    // What is looked at next lies on lines that nobody had reason to fetch before.
    if slot < lane.limit() as usize {
        prefetch(lane.receiving(slot).0);
        prefetch(lane.progress(slot));
    }
    pass_over(lane);
    Some(slot)
}

/// The next announcement has been read.
#[inline(always)]
pub(super) fn pass_over(lane: &Lane) {
    let n = lane.announced_read.load(Ordering::Relaxed) + 1;
    lane.announced_read.store(n, Ordering::Relaxed);
    // Now and then is often enough: a full queue only means the way by the bitmap.
    if n.is_multiple_of(ANNOUNCED_QUEUE as u64 / 4) {
        lane.announcements_taken(lane.inn).store(n, Ordering::Release);
        if let Some(remote) = lane.remote() {
            remote.say_taken(n);
        }
    }
}

/// Takes the marks of one word of the bitmap. `false`: there are none.
pub(super) fn take_bits(lane: &Lane, state: &mut AnyState) -> bool {
    for s in 0..ANNOUNCED_SUMMARY {
        let summary = lane.announced(lane.inn, s);
        let words = summary.load(Ordering::Relaxed);
        if words == 0 {
            continue;
        }
        let w = words.trailing_zeros() as usize;
        // The summary first: a mark that comes after it sets it again.
        summary.fetch_and(!(1 << w), Ordering::Acquire);
        let word = s * 64 + w;
        let mut bits = lane.announced(lane.inn, ANNOUNCED_SUMMARY + word).swap(0, Ordering::Acquire);
        let before = state.marked.len();
        while bits != 0 {
            state.marked.push((word * 64) as u32 + bits.trailing_zeros());
            bits &= bits - 1;
        }
        state.marked[before..].reverse();
        return true;
    }
    false
}
