//! Simulated processes for tests: threads of which one runs at a time, as a seed says, by a clock of their own.
//!
//! A **thread** is a stack of its own on the test's one thread. It hands on where it waits ([`pause`], [`block`], a lock that is held) and,
//! when the seed says so, where it meets the network ([`step`]). What happens beside the threads, the network's part, is asked for by the
//! scheduler ([`Events`]). Time goes by with every turn; while all threads only look for something that does not come it goes faster
//! and faster, and when all sleep it jumps: so waits of seconds take moments, and the same seed gives the same run.
//!
//! A rank that is [killed](kill) stops where it is: its threads never run again, and what they have is never given back. So runs are made in
//! processes of their own.

#![expect(missing_docs, reason = "for tests only; what is as in the standard library is documented there")]

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{self as real, LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

use generator::{Generator, Gn};

use super::rules::Rule;
use super::scattered::{STEP, scattered};

/// Bytes of a thread's stack.
const STACK: usize = 1 << 20;
/// The clock begins here.
const BEGIN_NS: u64 = 1_000_000_000;
/// Longest time that goes by in one turn of a thread that looks for something in vain.
const LEAP_NS: u64 = 16_000_000;

/// Numbers drawn by lot, the same for the same seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Lot(u64);

impl Lot {
    pub fn new(seed: u64) -> Lot {
        Lot(seed.wrapping_mul(STEP) ^ 0x5851_f42d_4c95_7f2d)
    }
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scattered(self.0)
    }
    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }
    /// Once in so many times; 0: never.
    pub fn once_in(&mut self, n: u64) -> bool {
        n != 0 && self.below(n) == 0
    }
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What may happen beside the threads.
pub trait Events {
    /// Can something happen now?
    fn can_happen(&self, now_ns: u64) -> bool;
    /// When something can by time alone; `u64::MAX`: nothing.
    fn due_ns(&self) -> u64;
    /// One thing happens.
    fn happen(&self, now_ns: u64, lot: &mut Lot);
}

struct Thread {
    rank: u32,
    stack: Option<Generator<'static, (), ()>>,
    is_over: bool,
    /// What it sleeps on, and until when.
    sleeps: Option<(usize, u64)>,
    /// It only looked for something in its last turn,
    looked: bool,
    /// in vain as far as is known: nothing has happened since.
    vain: bool,
}

struct World {
    lot: Lot,
    threads: Vec<Thread>,
    current: Option<usize>,
    dead: Vec<u32>,
    /// A rank that is stopped, and until when.
    stopped: Option<(u32, u64)>,
    /// So much time goes by next in which nobody runs.
    leap_ns: u64,
    /// Once in so many steps the network's thread of events, or another thread, has its turn.
    pace: u64,
    hand_on: u64,
    /// How often all threads that do not sleep have looked for something in vain, since something happened.
    vain: u64,
    turns: u64,
    /// The sum of all that was decided.
    path: u64,
    /// What each process has as its own, where others have one for all.
    own: HashMap<(u32, TypeId), &'static dyn Any>,
}

impl World {
    /// Something has happened that a thread may look for.
    fn stir(&mut self) {
        self.vain = 0;
        self.threads.iter_mut().for_each(|t| t.vain = false);
    }
}

thread_local! {
    static LEFT_OUT: Cell<Option<Rule>> = const { Cell::new(None) };
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with(|w| f(w.borrow_mut().as_mut().expect("a simulated world")))
}

/// Does this rule hold?
pub fn holds(rule: Rule) -> bool {
    LEFT_OUT.get() != Some(rule)
}

/// Leaves a rule out from now on.
pub fn leave_out(rule: Option<Rule>) {
    LEFT_OUT.set(rule);
}

/// Does a simulated thread run here?
#[inline]
pub fn is_active() -> bool {
    ACTIVE.get()
}

/// The time, if a simulated thread asks.
#[inline]
pub fn now_ns() -> Option<u64> {
    is_active().then(|| {
        NOW_NS.set(NOW_NS.get() + 20);
        NOW_NS.get()
    })
}

/// Whose thread runs.
pub fn rank() -> Option<u32> {
    is_active().then(|| with(|w| w.current.map(|n| w.threads[n].rank))).flatten()
}

/// Which thread runs.
pub fn thread() -> Option<usize> {
    is_active().then(|| with(|w| w.current)).flatten()
}

/// What the running thread's process has in place of what is one for all threads here: made when first asked for, and never freed. `None`: no
/// simulated thread runs here.
pub fn own<T: Any>(make: impl FnOnce() -> T) -> Option<&'static T> {
    let rank = rank()?;
    let found = with(|w| *w.own.entry((rank, TypeId::of::<T>())).or_insert_with(|| Box::leak(Box::new(make()))));
    found.downcast_ref()
}

fn hand_on() {
    ACTIVE.set(false);
    #[expect(deprecated, reason = "the other way wants a scope to be handed down to wherever a thread may wait")]
    generator::yield_with(());
    ACTIVE.set(true);
}

/// A turn of a wait: the others have theirs. `false`: no simulated thread runs here.
#[inline]
pub fn pause() -> bool {
    if !is_active() {
        return false;
    }
    if std::thread::panicking() {
        return true;
    }
    with(|w| {
        let n = w.current.expect("a thread");
        w.threads[n].looked = true;
    });
    hand_on();
    true
}

/// The network is used: others may have their turn first.
pub fn step() {
    if is_active() && !std::thread::panicking() {
        let now = with(|w| w.lot.once_in(w.hand_on));
        if now {
            hand_on();
        }
    }
}

/// Sleeps until somebody [wakes](wake) who sleeps on this, or so many nanoseconds are over. `false`: no simulated thread runs here.
pub fn block(on: usize, at_most_ns: u64) -> bool {
    if !is_active() {
        return false;
    }
    with(|w| {
        let n = w.current.expect("a thread");
        w.threads[n].sleeps = Some((on, NOW_NS.get().saturating_add(at_most_ns)));
    });
    hand_on();
    true
}

/// Wakes all that sleep on this.
pub fn wake(on: usize) {
    WORLD.with(|w| {
        if let Some(w) = w.borrow_mut().as_mut() {
            for thread in w.threads.iter_mut().filter(|t| t.sleeps.is_some_and(|(key, _)| key == on)) {
                thread.sleeps = None;
                thread.vain = false;
                w.vain = 0;
            }
        }
    });
}

/// A rank ends where it is.
pub fn kill(rank: u32) {
    with(|w| w.dead.push(rank));
    if self::rank() == Some(rank) {
        hand_on();
        unreachable!("a thread of a rank that was killed");
    }
}

/// A rank does nothing for so long; what others do to its memory is done.
pub fn stop(rank: u32, for_ns: u64) {
    with(|w| w.stopped = Some((rank, NOW_NS.get() + for_ns)));
}

/// No rank does anything for so long; what is under way arrives.
pub fn stop_all(for_ns: u64) {
    with(|w| w.leap_ns = for_ns);
}

/// Starts a thread of the caller's rank; its number.
pub fn spawn(run: impl FnOnce() + Send + 'static) -> usize {
    let rank = rank().expect("started by a simulated thread");
    spawn_of(rank, run)
}

fn spawn_of(rank: u32, run: impl FnOnce() + Send + 'static) -> usize {
    let stack = Gn::new_opt(STACK / size_of::<usize>(), move || {
        ACTIVE.set(true);
        run();
        ACTIVE.set(false);
    });
    with(|w| {
        w.threads.push(Thread { rank, stack: Some(stack), is_over: false, sleeps: None, looked: false, vain: false });
        w.threads.len() - 1
    })
}

/// Waits for the end of a thread.
pub fn join(thread: usize) {
    while !with(|w| w.threads[thread].is_over) {
        pause();
    }
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Turns of threads and the network's events.
    pub turns: u64,
    /// How long it took by its own clock.
    pub took_ns: u64,
    /// A sum over all that was decided.
    pub path: u64,
}

/// Runs a thread for each rank, as the seed says, until all have ended that were not killed. An error: they have not within so many turns.
pub fn run(seed: u64, events: &dyn Events, ranks: Vec<Box<dyn FnOnce() + Send>>, most: u64) -> Result<Run, String> {
    let mut lot = Lot::new(seed);
    let (pace, hand_on) = (lot.one_of(&[2, 2, 4, 16, 64]), lot.one_of(&[0, 2, 4, 16]));
    let (threads, dead) = (Vec::new(), Vec::new());
    let world = World {
        lot,
        threads,
        current: None,
        dead,
        stopped: None,
        leap_ns: 0,
        pace,
        hand_on,
        vain: 0,
        turns: 0,
        path: 0,
        own: HashMap::new(),
    };
    WORLD.with(|w| *w.borrow_mut() = Some(world));
    NOW_NS.set(BEGIN_NS);
    for (rank, run) in ranks.into_iter().enumerate() {
        spawn_of(rank as u32, run);
    }
    let ended = schedule(events, most);
    let world = WORLD.with(|w| w.borrow_mut().take()).expect("the world");
    // What did not come to its end must not be unwound: who knows what it waits for.
    world.threads.into_iter().filter_map(|t| t.stack).for_each(std::mem::forget);
    ended
}

fn schedule(events: &dyn Events, most: u64) -> Result<Run, String> {
    let mut runnable = Vec::new();
    loop {
        let now = NOW_NS.get();
        let (next, all_over, turns) = with(|w| {
            w.turns += 1;
            runnable.clear();
            let (mut next, mut all_over) = (u64::MAX, true);
            w.stopped = w.stopped.filter(|(_, until)| *until > now);
            for (n, t) in w.threads.iter_mut().enumerate() {
                if t.is_over || w.dead.contains(&t.rank) {
                    continue;
                }
                all_over = false;
                if let Some((_, until)) = w.stopped.filter(|(rank, _)| *rank == t.rank) {
                    next = next.min(until);
                    continue;
                }
                if t.sleeps.is_some_and(|(_, until)| until <= now) {
                    t.sleeps = None;
                    t.vain = false;
                }
                match t.sleeps {
                    Some((_, until)) => next = next.min(until),
                    None => runnable.push(n),
                }
            }
            (next, all_over, w.turns)
        });
        if all_over {
            return Ok(with(|w| Run { turns, took_ns: now - BEGIN_NS, path: w.path }));
        }
        if turns > most {
            let at = with(|w| w.threads.iter().filter(|t| !t.is_over).map(|t| (t.rank, t.sleeps)).collect::<Vec<_>>());
            return Err(format!(
                "does not end: {turns} turns, {:.3} s; (rank, sleeps): {at:?}",
                (now - BEGIN_NS) as f64 / 1e9
            ));
        }
        // Who has looked in vain looks again when something has happened, or time has gone by.
        with(|w| {
            if runnable.iter().any(|n| !w.threads[*n].vain) {
                runnable.retain(|n| !w.threads[*n].vain);
            } else {
                w.vain += u64::from(!runnable.is_empty());
            }
        });
        let all_vain = with(|w| runnable.iter().all(|n| w.threads[*n].vain));
        let can_happen = events.can_happen(now);
        if can_happen && (all_vain || with(|w| w.lot.once_in(w.pace))) {
            // Its lots are the world's, which is not to be held meanwhile: what happens may wake threads.
            let mut lot = with(|w| w.lot.clone());
            events.happen(now, &mut lot);
            with(|w| {
                w.lot = lot;
                w.stir();
                w.path = w.path.rotate_left(7) ^ 0xff;
                NOW_NS.set(now + 20 + w.lot.below(400) + std::mem::take(&mut w.leap_ns));
            });
            continue;
        }
        if all_vain {
            // Nobody's time is passed by.
            let next = next.min(events.due_ns());
            if runnable.is_empty() {
                if next == u64::MAX {
                    return Err("all sleep, and nothing is to come".into());
                }
                NOW_NS.set(next.max(now));
            } else {
                with(|w| {
                    let later = now + (500u64 << w.vain.min(15)).min(LEAP_NS);
                    NOW_NS.set(later.min(next.max(now)));
                    w.threads.iter_mut().for_each(|t| t.vain = false);
                });
            }
            continue;
        }
        let (n, mut stack) = with(|w| {
            let n = w.lot.one_of(&runnable);
            w.current = Some(n);
            w.path = w.path.rotate_left(7) ^ n as u64 ^ NOW_NS.get();
            (n, w.threads[n].stack.take().expect("a stack"))
        });
        stack.resume();
        ACTIVE.set(false);
        with(|w| {
            w.current = None;
            let t = &mut w.threads[n];
            t.is_over = stack.is_done();
            if !t.is_over {
                t.stack = Some(stack);
            }
            let looked = std::mem::take(&mut t.looked);
            if looked && !t.is_over {
                t.vain = true;
            } else {
                w.stir();
            }
            NOW_NS.set(NOW_NS.get() + 20 + w.lot.below(100));
        });
    }
}

/// As [`std::sync::Mutex`].
#[derive(Default, Debug)]
pub struct Mutex<T>(real::Mutex<T>);

/// As [`std::sync::MutexGuard`].
pub struct MutexGuard<'a, T> {
    real: Option<real::MutexGuard<'a, T>>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(real::Mutex::new(value))
    }
    fn guard<'a>(&'a self, real: real::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { real: Some(real), mutex: self }
    }
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        while is_active() {
            match self.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(e)) => return Err(e),
                Err(TryLockError::WouldBlock) => _ = pause(),
            }
        }
        match self.0.lock() {
            Ok(real) => Ok(self.guard(real)),
            Err(e) => Err(PoisonError::new(self.guard(e.into_inner()))),
        }
    }
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(real) => Ok(self.guard(real)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(e)) => Err(TryLockError::Poisoned(PoisonError::new(self.guard(e.into_inner())))),
        }
    }
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T> core::ops::Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.real.as_ref().expect("held")
    }
}

impl<T> core::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.real.as_mut().expect("held")
    }
}

/// As [`std::sync::Condvar`], as far as it is used.
#[derive(Default, Debug)]
pub struct Condvar(real::Condvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(real::Condvar::new())
    }
    fn key(&self) -> usize {
        &raw const *self as usize
    }
    pub fn notify_all(&self) {
        wake(self.key());
        self.0.notify_all();
    }
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        at_most: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let mutex = guard.mutex;
        if is_active() {
            drop(guard);
            block(self.key(), at_most.as_nanos() as u64);
            return Ok((mutex.lock().unwrap_or_else(PoisonError::into_inner), ()));
        }
        let real = guard.real.take().expect("held");
        let (real, _) = self.0.wait_timeout(real, at_most).unwrap_or_else(PoisonError::into_inner);
        Ok((mutex.guard(real), ()))
    }
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        at_most: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let until = super::clock::now_ns() + at_most.as_nanos() as u64;
        while condition(&mut guard) {
            let now = super::clock::now_ns();
            if now >= until {
                break;
            }
            guard =
                self.wait_timeout(guard, Duration::from_nanos(until - now)).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok((guard, ()))
    }
}
