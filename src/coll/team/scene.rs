//! One member's wait for a word of another: how it looks, what it does meanwhile, how it hears of a loss.

use core::future::Future;
use core::pin::Pin;
use core::task::Poll;

use super::Team;
use super::state::Awaited;
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::clock::now_ns;
use crate::base::error::{Error, Result};
use crate::base::looking::between_looks;
use crate::wait::{Board, Scene, Waits, doorbell, patience};

/// A wait for one word.
pub(in crate::coll) struct Until<'a> {
    pub(super) team: &'a Team,
    pub(super) word: &'a AtomicU64,
    pub(super) number: u64,
    pub(super) who: usize,
}

impl Future for Until<'_> {
    type Output = Result<()>;
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut core::task::Context<'_>) -> Poll<Result<()>> {
        for _ in 0..patience() {
            // SYNC POINT: pairs with the release store of whoever publishes.
            if self.word.load(Ordering::Acquire) >= self.number {
                return Poll::Ready(Ok(()));
            }
            between_looks();
        }
        self.team.awaits(self.word, self.number, self.who);
        Poll::Pending
    }
}

/// What a member waits for.
pub(super) struct TeamScene<'a> {
    team: &'a Team,
    word: Option<&'a AtomicU64>,
    number: u64,
    who: usize,
}

impl<'a> TeamScene<'a> {
    pub(super) fn new(team: &'a Team, awaited: Awaited) -> TeamScene<'a> {
        let word = team.arena.get().map(|arena| arena.word(awaited.word));
        TeamScene { team, word, number: awaited.number, who: awaited.who }
    }

    /// A look; the call looks again, and acquires.
    #[inline(always)]
    pub(super) fn arrived(&self) -> bool {
        self.word.is_some_and(|word| word.load(Ordering::Relaxed) >= self.number)
    }
}

/// Who waits so long makes the acquaintance of the one it waits for, so as to hear of its death.
const ACQUAINTANCE_NS: u64 = 2_000_000;

impl Scene for TeamScene<'_> {
    fn board(&self) -> &'static Board {
        self.team.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        Some(self.team.arena.get()?.sleep(self.team.me))
    }
    fn is_ordered(&self) -> bool {
        self.team.is_ordered()
    }
    fn bits(&self) -> u32 {
        doorbell::bit(self.team.comm as usize)
    }
    fn ready(&self) -> bool {
        self.arrived() || self.team.arena.get().is_some_and(|a| a.header().failed.load(Ordering::Relaxed) != 0)
    }
    fn meanwhile(&self) -> bool {
        self.team.ep.waiting_sends.push(self.team.ep)
    }
    fn gone(&self) -> Option<Error> {
        let team = self.team;
        let arena = team.arena.get()?;
        if self.arrived() {
            return None;
        }
        if let Some(error) = team.failure(arena) {
            return Some(error);
        }
        if team.peers[self.who].get().is_none() {
            let (now, stranger) = (now_ns(), &team.state.stranger);
            match stranger.get() {
                (who, since) if who == self.who && since != 0 => {
                    if now - since > ACQUAINTANCE_NS {
                        stranger.set((who, now));
                        team.peer_soon(who);
                    }
                }
                _ => stranger.set((self.who, now)),
            }
        }
        if let Some(error) = team.compare_calls(arena, self.who, || self.arrived()) {
            return Some(error);
        }
        if let Some(word) = team.says_unable(self.who).filter(|_| !self.arrived()) {
            return Some(team.fail_by(word));
        }
        let Some(reason) = team.loss_of(self.who) else { return team.mourn().filter(|_| !self.arrived()) };
        // What it did last comes before its end.
        if self.arrived() { None } else { Some(team.fail(reason, self.who)) }
    }
    fn waits(&self) -> Waits {
        let state = &self.team.state;
        Waits {
            operation: state.operation.get(),
            peer: self.team.ranks[self.who],
            index: 0,
            comm: self.team.comm,
            bytes: state.bytes.get(),
            since_ns: 0,
        }
    }
}
