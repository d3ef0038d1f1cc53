//! The team: a communicator as its collective calls see it. Who the members are, the arena they share, how one waits for
//! another, and what happens when one of them is lost.
//!
//! Calls are numbered; all members make the same calls in the same order, so the numbers agree without being exchanged. A flag
//! carries the number of its call, and whoever has published for call k has done with all calls before k.
//!
//! **Waiting** is always for one word to reach one number, and for the member that writes it ([`Team::until`]). The algorithms
//! are `async` functions for one reason: the same source serves the calls that wait ([`Team::run`], which spins, yields and sleeps
//! between two polls) and those that do not (a boxed future that `test` polls). There is no executor, and wakers do nothing.
//!
//! **Loss.** A member that is lost makes the team fail, for good: whoever finds out says so in the arena's header, where all that
//! wait look. A call that fails returns only when nobody can be writing into this member's buffers any more.

mod failure;

mod scene;
mod state;

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Poll, Waker};
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};

use static_assertions::const_assert;

use super::arena::{Arena, CELLS, MEMBERS_MOST, arena_at};
use super::between::Span;
use super::choose::Choices;
use super::request::Pending;
use crate::base::atomics::{AtomicBool, AtomicU64, Ordering, fence, spin_loop};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Result, error};
use crate::base::lock::Mutex;
use crate::base::named::Named;
use crate::base::unwinding::{NoWayOut, Panic};
use crate::base::variants::variants;
use crate::fabric::shm::peer::Peer;
#[cfg(loom)]
use crate::fabric::shm::region::Mapping;
use crate::lane::map::{DIFFERS, Life, OFFERS_IN_VAIN, PANICKED, UNABLE, WORLD_UNIT, how_lost, rank_lost};
use crate::lane::{Lane, Place};
use crate::p2p::context::Context;
use crate::p2p::endpoint::Endpoint;
use crate::wait::ASLEEP;
use crate::wait::{Board, Scene, Waiter, doorbell};
use scene::{TeamScene, Until};
use state::{Awaited, State};
pub(super) use state::{Own, next};

/// So long a call that waits for members that live goes on after another has died.
const MOURNING_NS: u64 = 500_000_000;

/// A communicator's members on this node, and what they share.
pub struct Team {
    pub(super) ep: &'static Endpoint,
    pub(super) comm: i32,
    epoch: u32,
    /// The first of its units.
    unit: u32,
    /// This process's place among the members.
    pub(super) me: usize,
    /// How many members there are.
    pub(super) n: usize,
    /// Ranks in the world, in the members' order.
    ranks: Box<[u32]>,
    /// This process's rank in the communicator.
    pub(super) rank: usize,
    /// Ranks of the communicator, on all nodes.
    pub(super) whole: usize,
    /// Where they are, if not all are here.
    pub(super) span: Option<Span>,
    /// 0, or why no call can succeed any more, as in the arena's header.
    failed: AtomicU64,
    arena: OnceLock<Arena>,
    pub(super) choices: Choices,
    /// A call that does not wait, from its beginning until it is completed. Before `state`, which it uses when it is dropped.
    pub(super) pending: Mutex<Option<Pending>>,
    /// How many calls with tickets have begun; counted where they are listed.
    pub(super) tickets: AtomicU64,
    pub(super) state: State,
    pub(super) busy: AtomicBool,
    peers: Box<[OnceLock<Arc<Peer>>]>,
}

// SAFETY: `state` is used by the one thread that is in a collective call of this communicator, which is the interface's demand
// and in Rust's safe interface enforced by a claim; a call that does not wait is moved on by whoever has `pending` locked. All
// else is shared by design.
unsafe impl Sync for Team {}
// SAFETY: as above.
unsafe impl Send for Team {}

variants! {
    /// Why a team has failed.
    pub(super) enum Reason: u32 {
        /// A member has died.
        Died = 1,
        /// A member has finalized without making the call.
        Finalized = 2,
        /// A member's buffer cannot be read or written by another process.
        Fault = 3,
        /// A member has left the call by a panic of its function.
        Panicked = 4,
        /// A rank that may be on another node has died or left; its number in the world follows.
        Elsewhere = 5,
        /// A member makes the call with another length than a second one, whose number follows: see [`Team::lengths_differ`].
        Lengths = 6,
        /// A member makes another call than a second one, whose number follows, or with a length that leads it another way.
        Calls = 7,
        /// What a member has said is not what it wrote: some member has damaged the shared memory.
        Damaged = 8,
        /// A rank could not do its part, for want of memory or the like. In no word: there it is [`Reason::Elsewhere`] with [`UNABLE`] in the rank's number.
        Unable = 9,
    }
}

impl Team {
    /// The team of a communicator.
    pub fn new(ep: &'static Endpoint, context: &Context) -> Result<Team> {
        let (whole, rank) = (context.group.size() as usize, context.group.rank() as usize);
        let span = Span::of(ep, context);
        let (ranks, me): (Box<[u32]>, usize) = match &span {
            None => (context.group.members().collect(), rank),
            Some(span) => {
                let me = span.here.iter().position(|r| *r as usize == rank).unwrap_or(0);
                (span.here.iter().map(|r| context.group.world_rank(*r)).collect(), me)
            }
        };
        let n = ranks.len();
        if n > MEMBERS_MOST {
            return Err(error!(
                Code::Unsupported,
                "rank {}: collective calls of {n} ranks on one node; the most is {MEMBERS_MOST}", ep.rank
            ));
        }
        if let Some(remote) = ep.first_elsewhere(&ranks) {
            return Err(error!(
                Code::Unsupported,
                "rank {}: of communicator {} rank {remote} is on another node than rank {}; a team is of one \
                     node",
                ep.rank,
                Named(context.handle),
                ranks[0]
            ));
        }
        Ok(Team {
            ep,
            comm: context.handle,
            epoch: context.place.epoch,
            unit: context.place.unit,
            me,
            n,
            arena: OnceLock::new(),
            choices: Choices::new(ep, n),
            state: State::new(n),
            busy: AtomicBool::new(false),
            peers: (0..n).map(|_| OnceLock::new()).collect(),
            pending: Mutex::new(None),
            tickets: AtomicU64::new(0),
            ranks,
            rank,
            whole,
            span,
            failed: AtomicU64::new(0),
        })
    }

    /// A member in a model: the others are known, the arena is mapped, and copies between members work.
    #[cfg(loom)]
    pub(super) fn in_model(
        ep: &'static Endpoint,
        n: usize,
        place: Place,
        window: Mapping,
        peers: &[Arc<Peer>],
    ) -> Result<Team> {
        let state = State::new(n);
        state.copies.set(Some(true));
        let me = ep.rank as usize;
        Ok(Team {
            ep,
            comm: crate::p2p::COMM_WORLD,
            epoch: place.epoch,
            unit: place.unit,
            me,
            n,
            ranks: (0..n as u32).collect(),
            rank: me,
            whole: n,
            span: None,
            failed: AtomicU64::new(0),
            arena: OnceLock::from(Arena::new(n, |_| Ok(window))?),
            choices: Choices::new(ep, n),
            state,
            busy: AtomicBool::new(false),
            peers: peers.iter().cloned().map(OnceLock::from).collect(),
            pending: Mutex::new(None),
            tickets: AtomicU64::new(0),
        })
    }

    /// The arena, mapped at the first call.
    #[inline(always)]
    pub(super) fn arena(&self) -> Result<&Arena> {
        match self.arena.get() {
            Some(arena) => Ok(arena),
            None => self.map_arena(),
        }
    }

    /// The same; an error that is no loss of the first member is this rank's alone, so the others are told.
    #[cold]
    fn map_arena(&self) -> Result<&Arena> {
        self.reach_arena().map_err(|e| if e.code() == Code::Peer { e } else { self.unable(&self.state.own, e) })
    }

    fn reach_arena(&self) -> Result<&Arena> {
        if let Some(arena) = self.arena.get() {
            return Ok(arena);
        }
        let at = arena_at(self.epoch);
        let arena = Arena::new(self.n, |bytes| match self.me {
            0 => self.ep.region.map(at, bytes),
            _ => self
                .peer(0)
                .map_err(|e| if self.ep.is_dead(self.ranks[0]) { self.fail(Reason::Died, 0) } else { e })?
                .region
                .map(at, bytes),
        })?;
        // Members that choose differently would wait for each other for ever.
        let digest = self.choices.digest();
        let seen = arena.header().digest.compare_exchange(0, digest, Ordering::Relaxed, Ordering::Relaxed);
        if seen.is_err_and(|other| other != digest) {
            return Err(error!(
                Code::Setting,
                "rank {}: the settings of collective calls (FMPL_COLL_*, FMPL_CMA, FMPL_TAKE_OVER, FMPL_TOPOLOGY) or the tuning file (FMPL_TUNING) differ from those of rank {}; give all ranks the same",
                self.ep.rank,
                self.ranks[0]
            ));
        }
        Ok(self.arena.get_or_init(|| arena))
    }

    /// Are all who write in the arena, which is in the first member's region, reached by this one's `membarrier`?
    fn is_ordered(&self) -> bool {
        match self.me {
            0 => self.ep.is_ordered(),
            _ => self.peers[0].get().is_some_and(|first| first.region.header().is_ordered()),
        }
    }

    /// Will no member use its memory any more? Asked when this member has freed the communicator.
    pub fn is_over(&self) -> bool {
        let freed = |rank: &u32| {
            // Freeing waits for nobody, so not for one either that does not answer.
            if self.ep.contact_soon(*rank).is_none() {
                return self.ep.is_dead(*rank);
            }
            let lane = self.ep.lane(*rank);
            lane.is_ok_and(|l| l.pair.life(self.unit, self.epoch) == Life::Freed || l.gone().is_some())
        };
        self.me != 0 || self.arena.get().is_none() || self.ranks[1..].iter().all(freed)
    }

    /// The communicator is freed: its memory goes back to the system.
    pub fn free(self) -> Result<()> {
        match self.arena.get() {
            Some(arena) if self.me == 0 => {
                arena.goes();
                self.ep.region.punch(arena_at(self.epoch), arena.bytes() as u64)
            }
            _ => Ok(()),
        }
    }

    /// Another member as a process: first contact if there was none.
    #[inline]
    pub(super) fn peer(&self, member: usize) -> Result<&Peer> {
        if let Some(peer) = self.peers[member].get() {
            return Ok(peer);
        }
        let peer = self.ep.contact(self.ranks[member])?;
        Ok(self.peers[member].get_or_init(|| peer))
    }

    /// Another member, if it is known or can be made known within moments.
    fn peer_soon(&self, member: usize) -> Option<&Peer> {
        if let Some(peer) = self.peers[member].get() {
            return Some(peer);
        }
        let peer = self.ep.contact_soon(self.ranks[member])?;
        Some(self.peers[member].get_or_init(|| peer))
    }

    /// The ring that a member writes. Of two members each takes in turn the one that it has read last: lines are cheapest to write
    /// for whoever has read them last.
    #[inline(always)]
    pub(super) fn ring_of(&self, member: usize, number: u64) -> usize {
        if self.n == 2 { (member as u64 + (number - 1) / CELLS as u64) as usize & 1 } else { member }
    }

    /// Rings for members that sleep until this one publishes. Called after every publication.
    #[inline(always)]
    pub(super) fn wake(&self, arena: &Arena) {
        // SYNC POINT: the sleeper sets its word and has the order bought by `membarrier`; no fence here.
        doorbell::light_barrier();
        for member in 0..self.n {
            if arena.sleep(member).load(Ordering::Relaxed) & ASLEEP != 0 {
                self.ring(arena, member);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn ring(&self, arena: &Arena, member: usize) {
        let word = arena.sleep(member).load(Ordering::Relaxed);
        if word & ASLEEP == 0 || (word >> 8) as usize != self.me || member == self.me {
            return;
        }
        // One that cannot be reached now wakes by itself before long.
        if let Some(peer) = self.peer_soon(member) {
            let board: &Board = peer.region.board_of();
            #[cfg(loom)]
            let board = super::model::board_of(member).unwrap_or(board);
            doorbell::ring(&board.bell, doorbell::bit(self.comm as usize));
        }
    }

    /// Waits until `word`, which `who` writes, is `number` or more.
    #[inline(always)]
    pub(super) fn until<'a>(&'a self, word: &'a AtomicU64, number: u64, who: usize) -> Until<'a> {
        Until { team: self, word, number, who }
    }

    /// Notes what this member waits for, for whoever goes on waiting.
    #[inline]
    fn awaits(&self, word: &AtomicU64, number: u64, who: usize) {
        let awaited = self.arena.get().map(|arena| Awaited { word: arena.place_of(word), number, who });
        self.state.own.awaited.set(awaited);
    }

    /// Runs a call to its end. `0` bytes of it are on the heap. Left by the panic of its function, if that is how it has ended.
    #[inline(always)]
    pub(super) fn run<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let done = self.bring_to_its_end(call);
        if done.is_ok() { done } else { self.leave(done) }
    }

    #[cold]
    fn leave<T>(&self, done: Result<T>) -> Result<T> {
        match self.take_panic() {
            Some(panic) => resume_unwind(panic),
            None => done,
        }
    }

    /// As [`Team::run`]; the panic of its function stays.
    #[inline(always)]
    pub(super) fn bring_to_its_end<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut call = pin!(call);
        self.state.own.patient.set(true);
        let mut context = core::task::Context::from_waker(Waker::noop());
        let guard = NoWayOut("a collective call");
        let done = match call.as_mut().poll(&mut context) {
            Poll::Ready(done) => done,
            Poll::Pending => self.run_slowly(&mut || match call.as_mut().poll(&mut context) {
                Poll::Ready(done) => Some(done),
                Poll::Pending => None,
            }),
        };
        guard.open();
        if done.is_ok() { done } else { self.settle(done) }
    }

    /// The panic by which a call that has failed is left, if it is that of the program's function. Asked before the team is free for another
    /// call.
    pub(super) fn take_panic(&self) -> Option<Panic> {
        self.state.own.panic.take()
    }

    /// Polls a call that does not wait: what it came to, or nothing yet.
    pub(super) fn poll<T>(&self, call: Pin<&mut (impl Future<Output = Result<T>> + ?Sized)>) -> Option<Result<T>> {
        let guard = NoWayOut("a collective call");
        self.state.own.patient.set(false);
        let polled = call.poll(&mut core::task::Context::from_waker(Waker::noop()));
        guard.open();
        let Poll::Ready(done) = polled else {
            // A member that is lost publishes nothing more: nobody else looks for that here.
            let awaited = self.state.own.awaited.get()?;
            return TeamScene::new(self, awaited).gone().map(|error| self.settle(Err(error)));
        };
        Some(if done.is_ok() { done } else { self.settle(done) })
    }

    /// Polls a call that waits whenever what it waits for has come. One loop for all calls.
    #[inline(never)]
    fn run_slowly<T>(&self, poll: &mut dyn FnMut() -> Option<Result<T>>) -> Result<T> {
        let mut waiter = Waiter::new();
        let mut word = usize::MAX;
        loop {
            let awaited = self.state.own.awaited.take();
            if let Some(awaited) = awaited {
                if awaited.word != word {
                    // Another wait: it begins with spinning again.
                    word = awaited.word;
                    waiter = Waiter::new();
                }
                let scene = TeamScene::new(self, awaited);
                while !scene.arrived() {
                    if !waiter.spin() {
                        let sleep = self.arena()?.sleep(self.me);
                        sleep.store((awaited.who as u32) << 8, Ordering::Relaxed);
                        waiter.slow(&scene)?;
                    }
                }
            }
            if let Some(done) = poll() {
                return done;
            }
        }
    }

    /// The call has failed: says so to all, and waits until nobody writes into this member's buffers.
    #[cold]
    fn settle<T>(&self, result: Result<T>) -> Result<T> {
        let Some(arena) = self.arena.get() else { return result };
        if arena.header().failed.load(Ordering::Relaxed) == 0 {
            // A call that fails before it has touched the arena (a wrong argument) leaves the team whole; all others have said why.
            return result;
        }
        arena.post(self.me).writing.store(0, Ordering::Release);
        // SYNC POINT: `failed` is stored before this; pairs with the fence in `may_write`.
        fence(Ordering::SeqCst);
        // Nobody writes here for another call than this one: what else the word says is damage, which only its writer would mend.
        let call = self.state.call();
        for member in (0..self.n).filter(|m| *m != self.me && call != 0) {
            // One that lives may be writing, whatever it says of itself or has damaged.
            while arena.post(member).writing.load(Ordering::Acquire) == call && !self.has_died(member) {
                spin_loop();
                crate::base::thread::yield_core();
            }
        }
        result
    }

    /// From here to [`Team::wrote`] this member may write into others' buffers. `false`: the team has failed.
    pub(super) fn may_write(&self, arena: &Arena, call: u64) -> bool {
        arena.post(self.me).writing.store(call, Ordering::Relaxed);
        // SYNC POINT: either this member sees the failure, or whoever fails sees that it writes; pairs with `settle`.
        fence(Ordering::SeqCst);
        arena.header().failed.load(Ordering::Relaxed) == 0
    }

    /// The end of what [`Team::may_write`] began.
    pub(super) fn wrote(&self, arena: &Arena) {
        // SYNC POINT: pairs with the acquire in `settle`: what was written comes before the buffer is its owner's again.
        arena.post(self.me).writing.store(0, Ordering::Release);
    }

    /// What its multicast group is named by: communicators that were made together differ in their first member.
    pub(super) fn name_of_group(&self) -> Result<[u64; 2]> {
        let first = self.ep.context(self.comm)?.group.world_rank(0);
        Ok([(self.epoch as u64) << 32 | self.unit as u64, first as u64])
    }

    /// The unit under which this process tells of its part in the communicator.
    fn unit_of_life(&self) -> u32 {
        if self.comm == crate::p2p::COMM_WORLD { WORLD_UNIT } else { self.unit }
    }

    /// Says that this member has done with the shared memory of `call`.
    #[inline(always)]
    pub(super) fn finish(&self, arena: &Arena, call: u64) {
        // SYNC POINT: pairs with the acquire in `until_done`: the reads from cells come before.
        arena.post(self.me).finished.store(call, Ordering::Release);
        self.wake(arena);
    }

    /// Waits until all have done with `call`.
    pub(super) async fn until_done(&self, arena: &Arena, call: u64) -> Result<()> {
        for member in 0..self.n {
            if member != self.me && self.state.known[member].get() < call {
                let finished = &arena.post(member).finished;
                self.until(finished, call, member).await?;
                // SYNC POINT: pairs with the release in `finish`. It may be further by now, and what it has read since is used again with
                // no other look.
                self.state.known[member].set(finished.load(Ordering::Acquire));
            }
        }
        Ok(())
    }
}

/// Where a failure that is about two members has the one that has found out.
const FINDER_SHIFT: u32 = 16;
const_assert!(MEMBERS_MOST < 1 << FINDER_SHIFT);
