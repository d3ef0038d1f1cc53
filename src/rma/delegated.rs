//! Delegated copies: from one rank's private memory to another's, which a third one has made by one of the two, if that is awake.
//!
//! No system call copies between two processes for a third. By itself it needs two calls and two copies; either of the two ranks needs one.
//! Up to some ten KiB a call costs as much as a copy, and so does waking a rank up. So whoever is awake is asked, and nobody is waited for who
//! is not: the copy can be taken back until somebody has begun with it.
//!
//! ```text
//!   who asks                                       helper of one of the two, or a thread of its that waits in this module
//!                                                  awake = its processor
//!   awake, on another processor?    no: two copies
//!   word: 0 → mine; what to copy
//!   word = asked ─────────────────────────────▶    word: asked → taken
//!   …                                              one copy
//!   word is done: word = 0   ◀─────────────────    word = done
//!   not taken for 3 us: word: asked → 0; two copies, and the next times too
//! ```
//! Who copies twice again and again, while the other rank waits for something (its notice board says so) and so has no use for its
//! processor, wakes the helper up for the following ones.

use super::Rma;
use super::address::GlobalAddress;
use super::direct::Done;
use super::record::{DelegatedCopy, Window};
use super::view::{Place, View};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, spin_loop};
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::base::thread;
use crate::wait::stall::Job;

/// Most bytes that are asked for: the caller waits meanwhile.
pub(super) const DELEGATED_MOST: usize = 1 << 20;
/// How long somebody who is awake may take until it begins.
const BEGIN_NS: u64 = 3_000;
/// Looks before the clock is asked.
const LOOKS: u32 = 20;
/// Looks at a copy that is being made before the wait becomes an ordinary one: some 200 us, in which a copy is made.
const PATIENCE: u32 = 12_000;
/// Copies that a rank makes by itself after one that nobody began with, though somebody was awake: at first, and at most.
const BACKOFF: [u32; 2] = [4, 256];
/// Copies that follow each other within this time may be worth waking somebody up for …
const TOGETHER_NS: u64 = 20_000;
/// … if there were so many.
const MANY: u32 = 8;

/// What a rank knows of another's being awake.
#[derive(Default)]
pub(super) struct Watch {
    /// It is not asked for so many copies.
    backoff: AtomicU32,
    /// And for how many after the last one that it did not begin with; 0: it has begun with the last one.
    backed_off: AtomicU32,
    /// When the last pair of copies was over, and how many there were, one soon after the other.
    copied_ns: AtomicU64,
    copied: AtomicU32,
}

/// The processor of this thread, + 1.
fn processor() -> u32 {
    thread::processor().map_or(0, |p| p as u32 + 1)
}

impl Window {
    /// The calling thread looks for delegated copies (`true`), or will not any more.
    #[inline]
    pub(super) fn look_out(&self, looks: bool) {
        let at = if looks { processor() } else { 0 };
        if self.awake().load(Ordering::Relaxed) != at {
            self.awake().store(at, Ordering::Relaxed);
        }
    }
}

impl Rma {
    /// Has a copy made by the rank of one of its ends, whose uses the caller has written down. `None`: by itself, then.
    pub(super) fn have_copied(
        &'static self,
        [to, from]: [&Place<'_>; 2],
        [dst, src]: [GlobalAddress; 2],
        len: usize,
    ) -> Option<Result<Done>> {
        let mine = processor();
        let is_awake = |view: &&View| {
            let at = view.local().map_or(0, |local| local.window.awake().load(Ordering::Relaxed));
            at != 0 && at != mine
        };
        let view = [from, to].map(|place| place.view).into_iter().find(is_awake)?;
        let local = view.local()?;
        let backoff = local.watch.backoff.load(Ordering::Relaxed);
        if backoff != 0 {
            local.watch.backoff.store(backoff - 1, Ordering::Relaxed);
            return None;
        }
        let number = self.delegations.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
        let asker = (u64::from(self.ep.rank) + 1) << 32 | number << 2;
        let copy = local.window.delegated();
        if !copy.ask(asker, dst.bits(), src.bits(), len as u64) {
            return None;
        }
        let (mut looks, mut until_ns) = (0, 0);
        while copy.state() == DelegatedCopy::ASKED {
            spin_loop();
            looks += 1;
            if looks % LOOKS != 0 {
                continue;
            }
            let now = now_ns();
            if until_ns == 0 {
                until_ns = now + BEGIN_NS;
            } else if now > until_ns && copy.withdraw(asker) {
                let backoff = (2 * local.watch.backed_off.load(Ordering::Relaxed)).clamp(BACKOFF[0], BACKOFF[1]);
                local.watch.backed_off.store(backoff, Ordering::Relaxed);
                local.watch.backoff.store(backoff, Ordering::Relaxed);
                return None;
            }
        }
        looks = 0;
        while copy.state() != DelegatedCopy::DONE && looks < PATIENCE {
            spin_loop();
            looks += 1;
        }
        if copy.state() != DelegatedCopy::DONE {
            if let Err(error) = self.attend(|| copy.state() == DelegatedCopy::DONE || view.gone().is_some()) {
                return Some(Err(error));
            }
            if copy.state() != DelegatedCopy::DONE {
                return Some(Err(self.peer_error(view.rank, "has died", "copy")));
            }
        }
        local.watch.backed_off.store(0, Ordering::Relaxed);
        // What is wrong with it is found out by whoever asked.
        (copy.clear() == 0).then_some(Ok(Done::Yes))
    }

    /// Two copies were made of one: is it worth waking somebody up for the next ones?
    pub(super) fn copied_twice(&self, ends: [&Place<'_>; 2]) {
        let Some(local) = ends[0].view.local() else { return };
        let (watch, now) = (&local.watch, now_ns());
        let last = watch.copied_ns.swap(now, Ordering::Relaxed);
        if now - last.min(now) > TOGETHER_NS {
            watch.copied.store(0, Ordering::Relaxed);
            return;
        }
        let copied = watch.copied.load(Ordering::Relaxed) + 1;
        watch.copied.store(copied % MANY, Ordering::Relaxed);
        if copied < MANY {
            return;
        }
        let waits = |view: &View| Job::board(self.ep, view.world).is_some_and(|board| board.is_waiting());
        if let Some(local) = ends.into_iter().map(|p| p.view).find(|v| waits(v)).and_then(View::local) {
            local.window.wake();
        }
    }

    /// Makes a copy that somebody asks for. `true`: there was one.
    #[inline]
    pub(super) fn run_delegated(&'static self) -> bool {
        let Some([taken, dst, src, len]) = self.own.delegated().take() else { return false };
        let (dst, src) = (GlobalAddress::from_bits(dst), GlobalAddress::from_bits(src));
        let done = self.copy_at_once::<false>(dst, src, len as usize);
        self.own.delegated().done(taken, if matches!(done, Ok(Done::Yes)) { 0 } else { 1 });
        true
    }

    /// Frees the place of a copy whose asker has died.
    pub(super) fn forget_delegated(&self) {
        let word = &self.own.delegated().word;
        let there = word.load(Ordering::Acquire);
        let idle = matches!(there & DelegatedCopy::STATE, DelegatedCopy::WRITTEN | DelegatedCopy::DONE);
        if there != 0 && idle && self.ep.is_dead(((there >> 32) as u32).wrapping_sub(1)) {
            let _ = word.compare_exchange(there, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
