//! The posting of kind any-index: one word for the lane, which a synchronous message may claim.

use super::*;
use crate::lane::remote::{Asked, Remote};

/// Is there a receive of any index that a synchronous message could claim?
pub(in crate::p2p) fn is_posted(lane: &Lane) -> bool {
    match lane.remote() {
        None => lane.any_posting(lane.out).load(Ordering::Relaxed) == ANY_POSTED,
        Some(remote) => remote.has_any_posting(),
    }
}

/// Claims the posted receive of any index, if there is one, for message `seq` of a slot: everything before it is received. Nothing but the
/// word itself goes by it: the message is found by its landing, as ever.
pub(in crate::p2p) fn claim(lane: &Lane, slot: usize, seq: u64) -> bool {
    if slot < SYSTEM_INDICES || !is_posted(lane) {
        return false;
    }
    match lane.remote() {
        None => grant_in(lane.any_posting(lane.out), slot, seq),
        Some(remote) => {
            let asked = Asked { what: Ask::Claim, slot, seq, at: 0 };
            let answer = remote.take_any_posting().then(|| remote.ask_for(asked, || lane.gone().is_none()));
            let Some(Some(Some([used, _]))) = answer else { return false };
            if used == 0 {
                // The message had its receive already, and the posting is for another.
                remote.leave_any_posting();
            }
            true
        }
    }
}

/// Gives the posted receive of any index to a message of a peer on another node; was it used? A message that is received by now, which its
/// sender does not know yet, must not take the posting that was made since: nobody would look at that before its receive is waited for.
pub(in crate::p2p) fn grant(lane: &Lane, remote: &Remote, slot: usize, seq: u64) -> Option<bool> {
    if remote.has_received(slot, seq) {
        return Some(false);
    }
    let posting = lane.any_posting(lane.inn);
    if !grant_in(posting, slot, seq) {
        return None;
    }
    // What its receiver had done before it posted is seen from here on.
    doorbell::barrier();
    let late = remote.has_received(slot, seq);
    if late {
        let _ = posting.compare_exchange(any_claim(slot, seq), ANY_POSTED, Ordering::Relaxed, Ordering::Relaxed);
    }
    Some(!late)
}

fn grant_in(posting: &AtomicU64, slot: usize, seq: u64) -> bool {
    posting.compare_exchange(ANY_POSTED, any_claim(slot, seq), Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// This thread is about to sleep until a receive of any index is posted, among other things.
pub(in crate::p2p) fn want_posting(lane: &Lane) {
    // SYNC POINT: pairs with the look in `post`, by the sleeper's `membarrier`.
    lane.any_wanted(lane.out).store(1, Ordering::Relaxed);
}

/// Posts the receive of any index.
pub(super) fn post(lane: &Lane, state: &mut AnyState) {
    lane.any_posting(lane.inn).store(ANY_POSTED, Ordering::Relaxed);
    if let Some(remote) = lane.remote() {
        state.number = (state.number + 1) & (u32::MAX >> 1);
        lane.my_side().any.store(1 | state.number.max(1) << 1, Ordering::Relaxed);
        return remote.say_side(lane.my_side());
    }
    doorbell::light_barrier();
    let wanted = lane.any_wanted(lane.inn);
    if wanted.load(Ordering::Relaxed) != 0 && wanted.swap(0, Ordering::Relaxed) != 0 {
        let board = lane.board();
        doorbell::ring(&board.bell, u32::MAX);
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

/// Takes the posting back; the claim of the message that has it, if one does.
pub(super) fn take_back(lane: &Lane) -> Option<u64> {
    let posting = lane.any_posting(lane.inn);
    let now = match posting.load(Ordering::Relaxed) {
        ANY_POSTED => posting.compare_exchange(ANY_POSTED, 0, Ordering::Relaxed, Ordering::Relaxed).err()?,
        now => now,
    };
    posting.store(0, Ordering::Relaxed);
    (now != 0).then_some(now)
}
