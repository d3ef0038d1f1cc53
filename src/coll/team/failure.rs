//! How a team fails: whose fault it was, who is told, in which words.

use super::*;
use crate::base::error::{Error, error};
use crate::base::named::Named;

/// Once in so long a wait for a member looks whether that has said that it cannot do its part.
const HEARS_NS: u64 = 100_000_000;

impl Team {
    /// Has a member died, or left? One that has left has ended as well before long.
    pub(super) fn loss_of(&self, member: usize) -> Option<Reason> {
        let peer = self.peers[member].get();
        if peer.is_some_and(|peer| peer.has_left()) {
            return Some(Reason::Finalized);
        }
        if self.has_died(member) {
            return Some(Reason::Died);
        }
        peer.is_some_and(|peer| peer.broken().is_some()).then_some(Reason::Damaged)
    }

    /// The error of a call that goes on waiting for members that live, although another has died: they may wait for that one, or for each
    /// other, since each has read something else of what that one has damaged. First there is time to end what it had done its part of.
    pub(in super::super) fn mourn(&self) -> Option<Error> {
        let dead = self.ep.dead_member(self.ep.context(self.comm).ok()?)?;
        let (now, since) = (now_ns(), &self.state.mourns);
        if since.get() == 0 {
            since.set(now);
        }
        if now - since.get() < MOURNING_NS {
            return None;
        }
        Some(match self.ranks.iter().position(|rank| *rank == dead) {
            Some(member) => self.fail(Reason::Died, member),
            None => self.fail_by((Reason::Elsewhere as u64) << 32 | (dead as u64 + 1)),
        })
    }

    /// Has its process ended, as the system says?
    pub(super) fn has_died(&self, member: usize) -> bool {
        self.ep.is_dead(self.ranks[member]) || self.peers[member].get().is_some_and(|peer| peer.is_dead())
    }

    /// The team fails because of a member; the error to return.
    #[cold]
    pub(in super::super) fn fail(&self, reason: Reason, member: usize) -> Error {
        self.fail_by((reason as u64) << 32 | (member as u64 + 1))
    }

    /// The team fails because there can be no message with this rank of the world; the error to return.
    #[cold]
    pub(in super::super) fn fail_elsewhere(&self, own: &Own, lane: Option<&Lane>, rank: u32, error: Error) -> Error {
        if error.code() != Code::Peer {
            return self.unable(own, error);
        }
        let context = self.ep.context(self.comm).ok();
        let told = context.zip(lane).and_then(|(context, lane)| self.ep.told_over(lane, context).next());
        let known = || self.ep.dead_member(context?);
        // What it was told comes first: who told it may have left since.
        let lost = told.or_else(known).unwrap_or(rank);
        let word = self.agree_on((Reason::Elsewhere as u64) << 32 | (lost as u64 + 1));
        let failed = self.explain_as(word, self.name_of(own));
        Error::new(failed.code(), format!("{} ({})", failed.detail(), error.detail()))
    }

    /// This rank cannot do its part of a call, whose messages would be taken for the next one's: the team fails; the error to return.
    #[cold]
    pub(super) fn unable(&self, own: &Own, error: Error) -> Error {
        let found = (Reason::Elsewhere as u64) << 32 | (u64::from(self.ep.rank | UNABLE) + 1);
        let word = self.agree_on(found);
        if word == found { error } else { self.explain_as(word, self.name_of(own)) }
    }

    /// A member that has no way into the arena says there what all ranks say of their lives that it could not do its part; or it has freed the
    /// communicator since. What the team [fails by](Team::fail_by) if its part is not there when this returns.
    pub(super) fn says_unable(&self, member: usize) -> Option<u64> {
        let (now, next_ns) = (now_ns(), &self.state.hears_ns);
        // In models all have their arenas.
        if now < next_ns.get() || cfg!(loom) {
            return None;
        }
        // Which may take a map of its memory, so not at once, and not often.
        let first = next_ns.replace(now + HEARS_NS) == 0;
        let place = Place { epoch: self.epoch, unit: self.unit_of_life(), units: 0 };
        let life = if first { None } else { self.ep.life_said(self.ranks[member], place) };
        let unable = self.ranks[member] | UNABLE;
        let is_said = match life? {
            Life::Broken(lost) => lost == unable,
            Life::Freed => true,
            Life::Member => false,
        };
        is_said.then_some((Reason::Elsewhere as u64) << 32 | (u64::from(unable) + 1))
    }

    /// A message of a call is not as long as this side's part of it: the team fails; the error to return.
    #[cold]
    pub(in super::super) fn message_differs(&self, own: &Own, world: u32, came: u64, wanted: usize) -> Error {
        let found = (Reason::Elsewhere as u64) << 32 | (u64::from(world | DIFFERS) + 1);
        let word = self.agree_on(found);
        let call = self.name_of(own);
        if word != found {
            return self.explain_as(word, call);
        }
        let (me, comm) = (self.ep.rank, Named(self.comm));
        let what = format!("rank {world} gives {came} bytes, and {wanted} are expected");
        error!(Code::Argument, "rank {me}: {call} (communicator {comm}): {what}")
    }

    /// The program's function has panicked here: the call fails, and is left by the panic when its owner completes it.
    #[cold]
    pub(in super::super) fn panicked(&self, panic: Panic) -> Error {
        self.panicked_in(&self.state.own, panic)
    }

    /// The same in one call of several.
    #[cold]
    pub(in super::super) fn panicked_in(&self, own: &Own, panic: Panic) -> Error {
        own.panic.set(Some(panic));
        let word = self.agree_on((Reason::Panicked as u64) << 32 | (self.me as u64 + 1));
        self.explain_as(word, self.name_of(own))
    }

    pub(super) fn fail_by(&self, word: u64) -> Error {
        let word = self.agree_on(word);
        self.explain(word)
    }

    /// Why the team fails: what this member says, or what another one has said before.
    fn agree_on(&self, mut word: u64) -> u64 {
        // Those who come later look there, though this call had no need of it yet.
        let reachable = self.n > 1 && (self.arena.get().is_some() || self.me == 0 || self.peer_soon(0).is_some());
        if let Some(arena) = reachable.then(|| self.reach_arena().ok()).flatten() {
            // SYNC POINT: pairs with the acquire in `failure`: what was found comes before.
            let seen = arena.header().failed.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
            word = seen.err().unwrap_or(word);
        }
        self.tell_failure(word);
        word
    }

    /// The team has failed. A member that waits for a message of this process does not look into this node's arena.
    #[cold]
    fn tell_failure(&self, word: u64) {
        if self.failed.swap(word, Ordering::AcqRel) == 0 {
            let reason = Reason::from_number((word >> 32) as u32);
            let how = match reason {
                Some(Reason::Panicked) => PANICKED,
                Some(Reason::Lengths | Reason::Calls) => DIFFERS,
                Some(Reason::Fault | Reason::Damaged) => OFFERS_IN_VAIN,
                _ => 0,
            };
            let lost = self.lost_by(word) | how;
            let place = Place { epoch: self.epoch, unit: self.unit_of_life(), units: 0 };
            self.ep.say_life(place, Life::Broken(lost));
            // Of one that lives only this communicator hears.
            if matches!(reason, Some(Reason::Died | Reason::Elsewhere)) && how_lost(lost) == 0 {
                self.ep.say_dead(lost);
            }
            if let Ok(context) = self.ep.context(self.comm) {
                self.ep.say_broken_remote(context, lost);
            }
        }
    }

    /// What a call is called. That of the team is known to the thread that is in it alone.
    fn name_of(&self, own: &Own) -> &'static str {
        own.name.unwrap_or_else(|| self.state.operation.get().name())
    }

    /// Why no call with a ticket can succeed any more, if it is known.
    pub(in super::super) fn failure_of(&self, own: &Own) -> Option<Error> {
        let known = self.failed.load(Ordering::Relaxed);
        let word = if known != 0 { Some(known) } else { self.failed_in(self.arena.get()?) };
        word.map(|word| self.explain_as(word, self.name_of(own)))
    }

    /// Why the team has failed, if it is known to without looking further than this member has looked before.
    #[inline(always)]
    pub(in super::super) fn known_failure(&self) -> Option<Error> {
        let elsewhere = self.failed.load(Ordering::Relaxed);
        if elsewhere != 0 {
            return Some(self.explain(elsewhere));
        }
        self.arena.get().and_then(|arena| self.failure(arena))
    }

    /// Why the team has failed, if it has.
    #[inline(always)]
    pub(in super::super) fn failure(&self, arena: &Arena) -> Option<Error> {
        self.failed_in(arena).map(|word| self.explain(word))
    }

    #[inline(always)]
    fn failed_in(&self, arena: &Arena) -> Option<u64> {
        let word = arena.header().failed.load(Ordering::Acquire);
        if word == 0 {
            return None;
        }
        self.tell_failure(word);
        Some(word)
    }

    /// The same when this member has read what others had offered: those of a call that has failed may have used their buffers since.
    pub(in super::super) fn failure_since(&self, arena: &Arena) -> Option<Error> {
        // SYNC POINT: pairs with the fence in `settle`: who has read what a member wrote after that sees the failure.
        fence(Ordering::Acquire);
        self.failure(arena)
    }

    /// Which rank of the world a failure is about.
    pub(super) fn lost_by(&self, word: u64) -> u32 {
        let who = word as u32;
        if word >> 32 == Reason::Elsewhere as u64 {
            return who.saturating_sub(1);
        }
        let member = (who & ((1 << FINDER_SHIFT) - 1)).saturating_sub(1);
        self.ranks[(member as usize).min(self.n - 1)]
    }

    #[cold]
    pub(super) fn explain(&self, word: u64) -> Error {
        self.explain_as(word, self.state.operation.get().name())
    }

    #[cold]
    fn explain_as(&self, word: u64, call: &str) -> Error {
        // No member says anything else.
        let reason = Reason::from_number((word >> 32) as u32).unwrap_or(Reason::Damaged);
        if matches!(reason, Reason::Lengths | Reason::Calls) {
            return self.differs(word, reason == Reason::Lengths, call);
        }
        let lost = self.lost_by(word);
        let reason = match how_lost(lost) {
            PANICKED => Reason::Panicked,
            DIFFERS => Reason::Calls,
            OFFERS_IN_VAIN => Reason::Damaged,
            UNABLE => Reason::Unable,
            _ => reason,
        };
        self.error(reason, rank_lost(lost), call)
    }

    fn error(&self, reason: Reason, rank: u32, call: &str) -> Error {
        let (code, what) = match reason {
            Reason::Died => (Code::Peer, format!("rank {rank} has died")),
            Reason::Elsewhere => (Code::Peer, format!("rank {rank} has died, or the way to it is lost")),
            Reason::Finalized => (Code::Peer, format!("rank {rank} has finalized")),
            Reason::Damaged => {
                (Code::Peer, format!("what rank {rank} has offered there has been damaged by some member"))
            }
            Reason::Panicked => (Code::Peer, format!("the function of rank {rank} has panicked")),
            Reason::Unable => (Code::Peer, format!("rank {rank} could not do its part of a call")),
            Reason::Lengths | Reason::Calls => {
                (Code::Argument, format!("rank {rank} makes another call than a second one, or one of another length"))
            }
            Reason::Fault => (
                Code::Argument,
                format!(
                    "the buffer of rank {rank} cannot be copied by another process; for memory that the kernel does not copy set FMPL_CMA=off"
                ),
            ),
        };
        error!(code, "rank {}: {call} (communicator {}): {what}", self.ep.rank, Named(self.comm))
    }

    /// A member makes the call with `theirs` bytes, which are not as many as this one's: the team fails; the error to return.
    #[cold]
    pub(in super::super) fn lengths_differ(&self, arena: &Arena, member: usize, theirs: u64) -> Error {
        let found = &arena.post(self.me).found;
        found[0].store(self.state.bytes.get(), Ordering::Relaxed);
        found[1].store(theirs, Ordering::Relaxed);
        self.fail_by((Reason::Lengths as u64) << 32 | self.pair(member))
    }

    /// Another member and this one, as a failure that is about two has them.
    pub(super) fn pair(&self, member: usize) -> u64 {
        (self.me as u64 + 1) << FINDER_SHIFT | (member as u64 + 1)
    }

    /// What a failure that is about two members says.
    fn differs(&self, word: u64, lengths: bool, call: &str) -> Error {
        let finder = ((word as u32 >> FINDER_SHIFT) as usize).saturating_sub(1).min(self.n - 1);
        let (other, finder_rank) = (self.lost_by(word), self.ranks[finder]);
        let what = match self.arena.get().filter(|_| lengths) {
            Some(arena) => {
                let [own, theirs] = arena.post(finder).found.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
                format!("rank {other} makes the call with {theirs} bytes, rank {finder_rank} with {own}")
            }
            None => format!("rank {other} makes another call than rank {finder_rank}, or one of another length"),
        };
        error!(Code::Argument, "rank {}: {call} (communicator {}): {what}", self.ep.rank, Named(self.comm))
    }

    /// Tells in which call this member is.
    pub(in super::super) fn tell_call(&self, arena: &Arena) {
        let (mine, state) = (arena.post(self.me), &self.state);
        let (entered, which) = (state.entered.get(), state.operation.get() as u64);
        if state.told.replace(entered) != entered {
            mine.entered.store(0, Ordering::Relaxed);
            // SYNC POINT: pairs with the fence in `compare_calls`: a length of this call is not taken for one of the call told before.
            fence(Ordering::Release);
            mine.length.store(state.bytes.get(), Ordering::Relaxed);
            // SYNC POINT: pairs with the acquire there, of whoever waits for this member: what it has published comes before.
            mine.entered.store(entered << 8 | which, Ordering::Release);
        }
    }

    /// Waits long for a member: tells in which call, and looks whether that one waits in another, or has gone on to one, so that what this
    /// one waits for never comes.
    #[cold]
    pub(super) fn compare_calls(&self, arena: &Arena, member: usize, arrived: impl Fn() -> bool) -> Option<Error> {
        self.tell_call(arena);
        let state = &self.state;
        let (entered, which) = (state.entered.get(), state.operation.get() as u64);
        let theirs = arena.post(member);
        let word = theirs.entered.load(Ordering::Acquire);
        let length = theirs.length.load(Ordering::Relaxed);
        // SYNC POINT: pairs with the fence in `tell_call`. It may have gone on between the two looks.
        fence(Ordering::Acquire);
        if theirs.entered.load(Ordering::Relaxed) != word {
            return None;
        }
        if word >> 8 < entered {
            // It is behind. In another call than this member made then, it waits for what never comes.
            let other = word != 0 && self.was(word >> 8).is_some_and(|was| was != word & 0xff);
            return other.then(|| self.fail_by((Reason::Calls as u64) << 32 | self.pair(member)));
        }
        if word == entered << 8 | which {
            return (length != state.bytes.get()).then(|| self.lengths_differ(arena, member, length));
        }
        // What it did before it went on comes before what it told.
        (!arrived()).then(|| self.fail_by((Reason::Calls as u64) << 32 | self.pair(member)))
    }
}
