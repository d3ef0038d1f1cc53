//! The short path of a remote lane: a landing whose data is a run of bytes is composed and posted, and a landing that is there is taken, at once
//! or not at all. Everything else is [`Remote`]'s business, and the view's.

use std::sync::atomic::Ordering;

use super::front::{Chunk, Front, RemoteSlot, SumOf, sum};
use super::{CHUNK_SLOTS, REMOTE_INLINE, Remote};
use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::lane::progress::Progress;
use crate::lane::record::{Kind, Land};

/// A landing that has been taken.
pub struct Taken<'a> {
    mine: &'a RemoteSlot,
    /// Its word.
    pub land: Land,
    /// Bytes of the message.
    pub len: usize,
}

impl Remote {
    /// What there is of a slot that was used before.
    #[inline(always)]
    fn known(&self, slot: usize) -> Option<(&Chunk, &Front, &RemoteSlot)> {
        let (chunk, n) = (self.chunks.get(slot / CHUNK_SLOTS)?, slot % CHUNK_SLOTS);
        Some((chunk, chunk.front(n), chunk.known_slot(n)?))
    }

    /// Publishes a run of at most [`REMOTE_INLINE`] bytes by its landing, if everything up to message `before` is known to be received, and nothing
    /// has to be waited for. `false`: it is not published.
    #[inline(always)]
    pub fn land_run(&self, slot: usize, before: u64, land: impl FnOnce() -> Land, run: Run) -> bool {
        let Some((chunk, front, mine)) = self.known(slot) else { return false };
        // SYNC POINT: as in `take_over_outgoing`.
        if mine.acked.load(Ordering::Acquire) < before && self.told(slot, front).load(Ordering::Acquire) < before {
            return false;
        }
        let owed = self.owed.load(Ordering::Acquire) == slot as u32 + 1 && self.pays_owed(slot);
        self.say_what_waits();
        let (land, received) = (land(), mine.received.load(Ordering::Acquire));
        let landed = if run.len() <= 16 {
            let [first, second] = run.words();
            let mut sum = SumOf::key(land.0);
            sum.take(received);
            if !run.is_empty() {
                sum.take(first);
            }
            if run.len() > 8 {
                sum.take(second);
            }
            let words = [land.0, sum.end(), received, first, second];
            self.write_landing(chunk, slot, &words[..3 + run.len().div_ceil(8)])
        } else {
            self.land_longer(chunk, slot, [land.0, received], run)
        };
        if !landed && owed {
            self.send_ack(slot);
        }
        landed
    }

    #[inline(always)]
    fn write_landing(&self, chunk: &Chunk, slot: usize, words: &[u64]) -> bool {
        let at = slot % CHUNK_SLOTS * size_of::<Front>();
        self.link.write_at_once(&chunk.window, at, || self.wakes(), words)
    }

    /// [`land_run`](Remote::land_run) of more than two words.
    #[inline(never)]
    fn land_longer(&self, chunk: &Chunk, slot: usize, [land, received]: [u64; 2], run: Run) -> bool {
        let mut words = [0; REMOTE_INLINE / 8 + 3];
        let used = 3 + run.len().div_ceil(8);
        let mut rest = run;
        for pair in words[3..used].chunks_mut(2) {
            pair.copy_from_slice(&rest.first(16).words()[..pair.len()]);
            rest = rest.after(16);
        }
        (words[0], words[2]) = (land, received);
        words[1] = sum(land, &words[2..used]);
        self.write_landing(chunk, slot, &words[..used])
    }

    /// Takes message `seq` of a slot into a run of bytes, if it has come whole in its landing within so many turns, and fits. What the peer has
    /// acknowledged with it is noted.
    #[inline(always)]
    pub fn take_landed(&self, slot: usize, seq: u64, epoch: u16, run: Run, patience: u32) -> Option<Taken<'_>> {
        let (_, front, mine) = self.known(slot)?;
        let mut turns = 1;
        let land = loop {
            let land = Land(front.landing[0].load(Ordering::Acquire));
            if land.is(seq, epoch) {
                break land;
            }
            if turns >= patience {
                return None;
            }
            crate::wait::pause();
            turns += 1;
        };
        let len = land.inline_len();
        if land.kind() != Kind::RemoteInline as u8 || len > run.len().min(REMOTE_INLINE) {
            return None;
        }
        let acked = front.landing[2].load(Ordering::Acquire);
        let mut sum = SumOf::key(land.0);
        sum.take(acked);
        // What is not whole is copied all the same, and again when it is: it is the buffer of a receive that goes on.
        let mut to = run.first(len);
        for pair in front.landing[3..].chunks(2) {
            if to.is_empty() {
                break;
            }
            let first = pair[0].load(Ordering::Acquire);
            sum.take(first);
            let second = if to.len() > 8 { pair[1].load(Ordering::Acquire) } else { 0 };
            if to.len() > 8 {
                sum.take(second);
            }
            to.set_words([first, second], 16);
            to = to.after(16);
        }
        if sum.end() != front.landing[1].load(Ordering::Acquire) && holds(Rule::WholeLanding) {
            return None;
        }
        if mine.acked.load(Ordering::Relaxed) < acked {
            mine.acked.fetch_max(acked, Ordering::AcqRel);
        }
        Some(Taken { land, len, mine })
    }

    /// [`acknowledge`](Remote::acknowledge) of a message that was taken so.
    #[inline(always)]
    pub fn acknowledge_taken(&self, slot: usize, seq: u64, taken: &Taken<'_>, progress: &Progress) {
        self.acknowledge_on(taken.mine, slot, seq, self.acknowledges(progress, slot, seq, taken.land));
    }
}
