//! What threads of a process share besides words and payload, in a model: locks, cells that are set once, things that come and go.
//!
//! A **lock** that is declared is one of loom's, so that the threads of a model wait for each other there, and what one has done under it
//! happens before what the next one does. An experiment that takes the lock away ([`Loss::All`]) goes in without it: then two who are not
//! ordered by anything else are found. A **thing** that is declared has a cell: whoever uses it reads the cell, who makes or frees it writes
//! it; so a use that is not ordered before the freeing is a fault, and so is one after it.

use std::mem::forget;
use std::rc::Rc;
use std::sync::{self as real, LockResult, PoisonError, TryLockError, TryLockResult};

use loom::cell::UnsafeCell;
use loom::sync as checked;

use super::{ACTIVE, AtomicU8, Loss, loss, with};
use core::sync::atomic::Ordering;

/// A declared lock in an execution.
#[derive(Default)]
pub(super) struct Lock {
    lock: checked::Mutex<()>,
    /// Written by whoever is in.
    within: UnsafeCell<()>,
    /// In an experiment: what orders nothing, and by which the checker sees that all who come in depend on each other.
    comers: checked::atomic::AtomicUsize,
}

/// A declared thing in an execution.
#[derive(Default)]
pub(super) struct Thing {
    cell: UnsafeCell<()>,
    gone: std::cell::Cell<bool>,
}

/// Declares a lock for the threads of the models to come.
pub fn share_lock<T>(lock: &Mutex<T>) {
    with(|m| m.known_locks.insert(&raw const *lock as usize));
}

/// Declares a thing that comes and goes.
pub fn share_thing<T>(thing: &T) {
    with(|m| m.known_things.insert(&raw const *thing as usize));
}

fn thing(at: usize) -> Option<Rc<Thing>> {
    if ACTIVE.get() { with(|m| m.things.get(&at).cloned()) } else { None }
}

/// Uses a thing.
pub fn uses<T>(at: &T) {
    if let Some(thing) = thing(&raw const *at as usize) {
        thing.cell.with(|_| ());
        assert!(!thing.gone.get(), "something is used that is gone");
    }
}

/// A thing is made, or frees what it has: nobody may use it at the same time, and after its end nobody at all.
pub fn changes<T>(at: *const T, ends: bool) {
    if let Some(thing) = thing(at as usize) {
        thing.cell.with_mut(|_| ());
        thing.gone.set(ends);
    }
}

/// As [`std::sync::Mutex`].
#[derive(Default, Debug)]
pub struct Mutex<T>(real::Mutex<T>);

/// As [`std::sync::MutexGuard`].
pub struct MutexGuard<'a, T> {
    real: real::MutexGuard<'a, T>,
    /// After the real one.
    _held: Option<Held>,
}

struct Held {
    guard: Option<checked::MutexGuard<'static, ()>>,
    /// What the guard refers to.
    _lock: Rc<Lock>,
}

impl Held {
    fn take(lock: Rc<Lock>, waits: bool) -> Option<Held> {
        let guard =
            if waits { lock.lock.lock().unwrap_or_else(PoisonError::into_inner) } else { lock.lock.try_lock().ok()? };
        // SAFETY: the lock lives as long as `_lock`, which goes after the guard.
        let guard =
            unsafe { std::mem::transmute::<checked::MutexGuard<'_, ()>, checked::MutexGuard<'static, ()>>(guard) };
        Some(Held { guard: Some(guard), _lock: lock })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The checker cannot go on in a thread that is unwinding; what is locked stays so.
        if std::thread::panicking() {
            forget(self.guard.take());
        }
    }
}

impl<T> Mutex<T> {
    /// As [`std::sync::Mutex::new`].
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(real::Mutex::new(value))
    }

    fn shadow(&self) -> Option<Rc<Lock>> {
        if !ACTIVE.get() {
            return None;
        }
        super::interrupted();
        let at = &raw const *self as usize;
        with(|m| m.locks.get(&at).cloned())
    }

    /// As [`std::sync::Mutex::lock`].
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let (shadow, lost) = (self.shadow(), loss() == Some(Loss::All));
        if let Some(lock) = shadow.as_ref().filter(|_| super::is_experiment()) {
            lock.comers.fetch_add(1, Ordering::Relaxed);
        }
        let held = shadow.clone().filter(|_| !lost).and_then(|lock| Held::take(lock, true));
        if let Some(lock) = shadow {
            lock.within.with_mut(|_| ());
            let real = self.0.try_lock();
            return Ok(match real {
                Ok(real) => MutexGuard { real, _held: held },
                Err(TryLockError::Poisoned(e)) => MutexGuard { real: e.into_inner(), _held: held },
                Err(TryLockError::WouldBlock) => panic!("two threads are where one may be at a time"),
            });
        }
        match self.0.lock() {
            Ok(real) => Ok(MutexGuard { real, _held: None }),
            Err(e) => Err(PoisonError::new(MutexGuard { real: e.into_inner(), _held: None })),
        }
    }

    /// As [`std::sync::Mutex::try_lock`].
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let shadow = self.shadow();
        let modelled = shadow.is_some();
        let held = shadow.and_then(|lock| Held::take(lock, false));
        if modelled && held.is_none() {
            return Err(TryLockError::WouldBlock);
        }
        match self.0.try_lock() {
            Ok(real) => Ok(MutexGuard { real, _held: held }),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(e)) => {
                Err(TryLockError::Poisoned(PoisonError::new(MutexGuard { real: e.into_inner(), _held: held })))
            }
        }
    }
}

impl<T> core::ops::Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.real
    }
}

impl<T> core::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.real
    }
}

/// As [`std::sync::OnceLock`]. In a model the value stays from execution to execution, and each begins with it unset.
#[derive(Debug)]
pub struct OnceLock<T> {
    set: AtomicU8,
    value: real::OnceLock<T>,
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> OnceLock<T> {
    /// As [`std::sync::OnceLock::new`].
    pub const fn new() -> OnceLock<T> {
        OnceLock { set: AtomicU8::new(0), value: real::OnceLock::new() }
    }

    /// As [`std::sync::OnceLock::get`].
    pub fn get(&self) -> Option<&T> {
        if self.set.load(Ordering::Acquire) == 0 { None } else { self.value.get() }
    }

    /// As [`std::sync::OnceLock::set`].
    pub fn set(&self, value: T) -> Result<(), T> {
        if self.get().is_some() {
            return Err(value);
        }
        // In a later execution of a model it is the same one.
        let _ = self.value.set(value);
        self.set.store(1, Ordering::Release);
        Ok(())
    }

    /// As [`std::sync::OnceLock::get_or_init`].
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            self.value.get_or_init(make);
            self.set.store(1, Ordering::Release);
        }
        self.value.get().expect("just set")
    }

    /// Declares it, unset, for the threads of the models to come.
    pub fn in_model(&self) {
        super::share((&raw const self.set).cast(), 1);
    }
}
