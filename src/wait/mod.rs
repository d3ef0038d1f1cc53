//! Waiting for another process: spin, then yield, then sleep on the process's doorbell.
//!
//! A wait loop looks at its record, calls [`Waiter::spin`], and every so often [`Waiter::slow`], where everything is that must not
//! cost anything while a message is on its way: the clock, the peer's death, yielding, sleeping, the stall report.

pub mod board;
pub mod doorbell;
pub mod event;
pub mod stall;

use std::cell::Cell;
use std::sync::{Arc, PoisonError, RwLock};

use crate::base::atomics::{AtomicU32, Ordering, Setting, spin_loop};
use crate::base::clock::now_ns;
use crate::base::config::{Config, WaitMode};
use crate::base::error::{Code, Error, Result};
use crate::base::thread::yield_core;
use crate::base::trace::traced;
#[cfg(feature = "trace")]
use crate::base::trace::{Event, What, note};
pub use board::{Board, Operation, Waits};

static SPIN_NS: Setting = Setting::new(20_000);
static YIELD_NS: Setting = Setting::new(200_000);
/// As the two above, where the peer is in the middle of its part: what is waited for comes within moments, and nobody rings for it.
static MIDWAY_SPIN_NS: Setting = Setting::new(20_000);
static MIDWAY_YIELD_NS: Setting = Setting::new(200_000);
static STALL_NS: Setting = Setting::new(u64::MAX);

/// How often waits have slept since init, and for how many nanoseconds.
static SLEPT: [std::sync::atomic::AtomicU64; 2] = [const { std::sync::atomic::AtomicU64::new(0) }; 2];

/// How often waits of this process have slept, and for how many nanoseconds.
pub fn slept() -> [u64; 2] {
    [0, 1].map(|k| SLEPT[k].load(Ordering::Relaxed))
}

/// Longest sleep: a dead waker never wakes anybody, so a sleeper looks by itself now and then.
const LONG_SLEEP_NS: u64 = 250_000_000;
/// Sleep without the order of both sides: a wake-up can be missed for this long.
const SHORT_SLEEP_NS: u64 = 200_000;
/// Spins from one slow turn to the next, when every rank has a core.
const SPINS: u32 = if cfg!(loom) { 1 } else { 64 };
/// Short sleeps before the first long one.
const SHORT_SLEEPS: u32 = if cfg!(loom) { 0 } else { 2 };
/// A wait goes onto the notice board when it has lasted so long.
const NOTICE_NS: u64 = 100_000;

/// Turns before the first slow one, and yields from one to the next, when ranks share cores.
pub(crate) const YIELDS: u32 = 8;

/// Turns for which a call looks at its record before it makes a wait of it; one when other ranks need the core.
static PATIENCE: Setting = Setting::new(48);
/// What a turn of a wait is, if it is more than a pause: [`YIELDS_CORE`], [`DRIVES`] or both.
static TURNS: Setting = Setting::new(0);
/// Ranks share cores, so a wait yields from its first turn on. Whoever is waited for may need this core, and looking again costs less than
/// the pause of a spin.
const YIELDS_CORE: u64 = 1;
/// What comes from other nodes goes on only while somebody calls the network.
const DRIVES: u64 = 2;

/// Calls the network, which looks so many times before it says that nothing has come; `true`: something has.
pub type Drive = Arc<dyn Fn(u32) -> bool + Send + Sync>;
/// Looks in a turn of a thread that has its core for itself: what a turn takes beside the look is as long as one over TCP.
const LOOKS: u32 = 4;
static DRIVE: RwLock<Option<Drive>> = RwLock::new(None);

/// From now on each turn of a wait does this; `None`: nothing.
pub fn drive_by(drive: Option<Drive>) {
    let bit = if drive.is_some() { DRIVES } else { 0 };
    *DRIVE.write().unwrap_or_else(PoisonError::into_inner) = drive;
    TURNS.set(TURNS.get() & YIELDS_CORE | bit);
}

/// A wait asks whether it is to be ended when it has lasted so long.
const INTERRUPT_NS: u64 = 1_000_000;

thread_local! {
    static INTERRUPT: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// From now on long waits of this thread for messages ask `hook` now and then, and end with an error when it says so, unless the peer is in the
/// middle of its part. Other waits (collective calls, the making of communicators) go on whatever it says. For bindings to languages in which a
/// thread handles its signals itself. The hook is called in the middle of a call: it must not call the library, nor wait for a thread that
/// may be in one.
pub fn interrupt_by(hook: Option<fn() -> bool>) {
    INTERRUPT.set(hook);
}

fn interrupted() -> Option<Error> {
    let hook = INTERRUPT.try_with(Cell::get).ok().flatten()?;
    hook().then(|| Error::new(Code::System, "the wait was interrupted"))
}

/// A turn that is more than a pause.
#[inline(never)]
fn turn() {
    let turns = TURNS.get();
    let mut came = false;
    if turns & DRIVES != 0 {
        // Held while it runs: who takes it away waits until nobody is in there.
        if let Some(drive) = &*DRIVE.read().unwrap_or_else(PoisonError::into_inner) {
            came = drive(if turns & YIELDS_CORE == 0 { LOOKS } else { 1 });
        }
    }
    // Others have the core while nothing comes: what has come is looked at first, since it may be their turn for long.
    if turns & YIELDS_CORE != 0 && !came {
        yield_core();
    }
}

/// A short pause, in which what comes from other nodes goes on.
#[inline(always)]
pub fn pause() {
    if TURNS.get() == 0 { spin_loop() } else { turn() }
}

/// See [`PATIENCE`].
#[inline(always)]
pub fn patience() -> u32 {
    PATIENCE.get() as u32
}

/// How long waiters spin and yield, from the settings and from whether every rank has a core.
pub fn configure(config: &Config, ranks_here: usize, cores: usize) {
    let crowded = ranks_here > cores;
    let (spin, yields) = match config.wait {
        WaitMode::Spin => (u64::MAX, 0),
        WaitMode::Block => (0, 0),
        WaitMode::Adaptive if crowded => (0, 1_000_000),
        WaitMode::Adaptive => (100_000, 4_900_000),
    };
    let spin = config.spin_us.map_or(spin, |us| us as u64 * 1000);
    PATIENCE.set(if cfg!(loom) || spin == 0 { 1 } else { 48 });
    let shares = if spin == 0 && yields != 0 { YIELDS_CORE } else { 0 };
    TURNS.set(TURNS.get() & DRIVES | shares);
    SPIN_NS.set(spin);
    YIELD_NS.set(yields);
    MIDWAY_SPIN_NS.set(if crowded || config.spin_us.is_some() { spin } else { spin.max(20_000) });
    MIDWAY_YIELD_NS.set(yields.max(200_000));
    let stall = if config.stall_s > 0.0 { (config.stall_s * 1e9) as u64 } else { u64::MAX };
    STALL_NS.set(stall);
    SLEPT.iter().for_each(|n| n.store(0, Ordering::Relaxed));
}

/// What a slow turn found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Look again.
    Again,
    /// The deadline has passed.
    TimedOut,
}

/// Sleep byte, the lowest of a word that a waker looks at: waits on its doorbell.
pub const ASLEEP: u32 = 1;
/// Sleep byte: wants its event descriptor written to.
pub const EVENT: u32 = 2;

/// Sets the sleep byte of a word.
pub(crate) fn mark_asleep(word: &AtomicU32) {
    // SYNC POINT: pairs with the waker's look at the sleep byte after its store; `membarrier` orders the two sides.
    word.store(word.load(Ordering::Relaxed) | ASLEEP, Ordering::Relaxed);
}

/// Clears the sleep byte of a word of what a thread has set there to sleep.
pub(crate) fn mark_awake(word: &AtomicU32) {
    word.store(word.load(Ordering::Relaxed) & !ASLEEP, Ordering::Relaxed);
}

/// What one wait is about; made once, before its loop.
pub trait Scene {
    /// The board of this process.
    fn board(&self) -> &'static Board;
    /// The word whose sleep byte tells the peer that this thread sleeps; only this thread writes it. Without one nobody rings.
    fn sleep_word(&self) -> Option<&AtomicU32> {
        None
    }
    /// Which sleepers share a wake-up.
    fn bits(&self) -> u32;
    /// What this thread sleeps on: its process's bell, unless many processes wait for one thing.
    fn bell(&self) -> &AtomicU32 {
        &self.board().bell
    }
    /// Says that this thread is going to sleep, so that whoever ends its wait rings. `false`: there is no way to say so.
    fn fall_asleep(&self) -> bool {
        self.sleep_word().map(mark_asleep).is_some()
    }
    /// How often it sleeps for a moment, by the clock, before it says that it sleeps: where saying so is dear.
    fn naps(&self) -> u32 {
        0
    }
    /// Does who ends the wait look for sleepers without a fence, so that this side has to buy the order by `membarrier`?
    fn needs_barrier(&self) -> bool {
        true
    }
    /// Are all who may end the wait reached by this side's `membarrier`? Asked after it.
    fn is_ordered(&self) -> bool {
        false
    }
    /// How long it yields its core at most before it sleeps.
    fn yields_ns(&self) -> u64 {
        u64::MAX
    }
    /// Longest time for which it may sleep before it does again what it does [meanwhile](Scene::meanwhile).
    fn longest_ns(&self) -> u64 {
        LONG_SLEEP_NS
    }
    /// It sleeps no more.
    fn wake_up(&self) {
        if let Some(word) = self.sleep_word() {
            mark_awake(word);
        }
    }
    /// Is what is waited for there?
    fn ready(&self) -> bool;
    /// What this thread can do for its process while it waits. `true`: there is more to be done that nobody wakes it for.
    fn meanwhile(&self) -> bool {
        false
    }
    /// Is the peer dead, or gone so that it cannot come any more?
    fn gone(&self) -> Option<Error>;
    /// May the wait be ended as part of a deadlock? Not when the peer is in the middle of its part, which ends by itself.
    fn may_end(&self) -> bool {
        true
    }
    /// May the wait be ended by a [hook of its thread](interrupt_by)? Where a peer that lives then touches nothing of this call any more, and
    /// nobody relies on its going on.
    fn may_be_left(&self) -> bool {
        false
    }
    /// For the notice board.
    fn waits(&self) -> Waits;
}

/// The state of one wait.
pub struct Waiter {
    turns: u32,
    started_ns: u64,
    sleeps: u32,
    stalled: bool,
    suspicion: Option<Box<stall::Suspicion>>,
    /// The peer is gone, and what it left has been looked at.
    looked: bool,
    deadline_ns: Option<u64>,
    notice: Option<board::Notice<'static>>,
}

impl Waiter {
    /// A wait with no end but success or error.
    #[inline(always)]
    pub fn new() -> Waiter {
        // Where patience is short, so are the turns to the first slow one.
        Waiter {
            turns: SPINS.saturating_sub(YIELDS * patience()),
            started_ns: 0,
            sleeps: 0,
            stalled: false,
            suspicion: None,
            looked: false,
            deadline_ns: None,
            notice: None,
        }
    }

    /// A wait until a time of [`now_ns`].
    #[inline(always)]
    pub fn until(deadline_ns: Option<u64>) -> Waiter {
        let mut waiter = Waiter::new();
        waiter.deadline_ns = deadline_ns;
        waiter
    }

    /// One short pause, or a yield; `false` when it is time for a slow turn.
    #[inline(always)]
    pub fn spin(&mut self) -> bool {
        self.turns += 1;
        pause();
        self.turns & (SPINS - 1) != 0
    }

    /// A slow turn: clock, death, yield, sleep, stall. Everything that is not a hot loop's business.
    #[cold]
    #[inline(never)]
    pub fn slow(&mut self, scene: &dyn Scene) -> Result<Turn> {
        let now = now_ns();
        if self.started_ns == 0 {
            self.started_ns = now;
            traced!(scene.waits().note(What::WaitBegins));
        }
        let more = scene.meanwhile();
        // Before the looks at the peer and at the record: a ring from here on, such as that of a death, changes its value, and a sleep ends at once.
        let seen = scene.bell().load(Ordering::Acquire);
        if let Some(error) = scene.gone() {
            // The last thing a peer did may have been to answer: look once more. But only once: what is there may be of no use, such as
            // a posting into memory that died with its process.
            if scene.ready() && !self.looked {
                self.looked = true;
                return Ok(Turn::Again);
            }
            return Err(error);
        }
        if self.deadline_ns.is_some_and(|d| now >= d) {
            return Ok(Turn::TimedOut);
        }
        let waited = now - self.started_ns;
        let (spin, yields) = match scene.may_end() {
            true => (SPIN_NS.get(), YIELD_NS.get()),
            false => (MIDWAY_SPIN_NS.get(), MIDWAY_YIELD_NS.get()),
        };
        if waited < spin && waited < NOTICE_NS {
            return Ok(Turn::Again);
        }
        let waits = || Waits { since_ns: self.started_ns, ..scene.waits() };
        match &self.notice {
            // A wait that ends by itself is no part of a deadlock: it counts no looks.
            Some(notice) if self.deadline_ns.unwrap_or(u64::MAX) == u64::MAX => notice.look(),
            Some(_) => {}
            None if waited > NOTICE_NS => self.notice = scene.board().hang(&waits()),
            None => {}
        }
        if waited >= spin && waited - spin < yields.min(scene.yields_ns()) {
            // Where ranks share cores, the turns themselves yield.
            let shared = TURNS.get() & YIELDS_CORE != 0;
            if !shared {
                yield_core();
            }
            self.turns = SPINS.saturating_sub(if shared { YIELDS } else { 2 });
            return Ok(Turn::Again);
        }
        if !self.stalled && waited > STALL_NS.get() {
            self.stalled = true;
            self.suspicion = stall::report(&waits());
        }
        if self.suspicion.as_mut().is_some_and(|suspicion| !suspicion.goes_on(&waits(), now)) {
            self.suspicion = None;
        }
        if scene.may_end()
            && let Some(error) = stall::verdict(scene.board(), self.started_ns)
        {
            return Err(error);
        }
        if waited > INTERRUPT_NS
            && scene.may_be_left()
            && let Some(error) = interrupted()
        {
            return Err(error);
        }
        if waited < spin {
            return Ok(Turn::Again);
        }
        self.sleep(scene, now, more, seen);
        self.turns = SPINS - 1;
        Ok(Turn::Again)
    }

    fn sleep(&mut self, scene: &dyn Scene, now: u64, more: bool, seen: u32) {
        let left = self.deadline_ns.map_or(u64::MAX, |d| d.saturating_sub(now)).min(if more {
            SHORT_SLEEP_NS
        } else {
            u64::MAX
        });
        let bell = scene.bell();
        let nap = self.sleeps < scene.naps();
        if nap || !scene.fall_asleep() {
            self.sleeps += nap as u32;
            doze(bell, seen, scene.bits(), left.min(SHORT_SLEEP_NS));
            return;
        }
        self.sleeps += 1;
        let long = !more
            && (!scene.needs_barrier() || self.sleeps > SHORT_SLEEPS && doorbell::barrier() && scene.is_ordered());
        if !scene.ready() {
            let limit = if long { scene.longest_ns().min(LONG_SLEEP_NS) } else { SHORT_SLEEP_NS };
            doze(bell, seen, scene.bits(), left.min(limit));
        }
        scene.wake_up();
    }
}

#[cfg(feature = "trace")]
impl Drop for Waiter {
    fn drop(&mut self) {
        if self.started_ns != 0 {
            note(Event::new(What::WaitEnds, ""));
        }
    }
}

#[cfg(feature = "trace")]
impl Waits {
    fn note(&self, what: What) {
        let Waits { peer, index, comm, bytes, .. } = *self;
        note(Event { peer, index, comm, bytes, ..Event::new(what, self.operation.name()) });
    }
}

/// A sleep that is counted.
fn doze(bell: &AtomicU32, seen: u32, bits: u32, nanoseconds: u64) {
    let since = now_ns();
    traced!(note(Event::new(What::WaitSleeps, "")));
    doorbell::sleep(bell, seen, bits, nanoseconds);
    SLEPT[0].fetch_add(1, Ordering::Relaxed);
    SLEPT[1].fetch_add(now_ns().saturating_sub(since), Ordering::Relaxed);
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}
