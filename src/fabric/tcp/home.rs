//! What all connections of a process share, and what comes for none of them alone: numbers, errors, what is owed.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::connection::Connection;
use super::socket::Watch;
use crate::base::lock::lock;
use crate::base::system::tell;
use crate::fabric::network::device::DeviceError;
use crate::fabric::served::memory::Memory;
use crate::fabric::served::port::Reached;

/// Up to so many connections are asked themselves what has come; of more the system is asked which have anything.
const FEW: usize = 2;
/// Numbers that wait for the thread at most: then nothing more is taken, and the other ends' sockets fill up.
const NUMBERS: usize = 1 << 16;

/// What all connections of a process share.
#[derive(Debug)]
pub(super) struct Home {
    pub memory: Arc<Memory>,
    pub watch: Watch,
    pub reached: Reached,
    pub silence_ms: u32,
    /// Connections that owe their other ends a word, or hold something back; and does the thread look within a moment, so that they may?
    pub owing: AtomicUsize,
    pub looks: AtomicBool,
    /// By their numbers; and all of them where they are few.
    pub all: RwLock<BTreeMap<u32, Weak<Connection>>>,
    /// Numbers that have come.
    numbers: Mutex<VecDeque<(u32, u32)>>,
    has_numbers: AtomicBool,
    /// The thread was called for them.
    called: AtomicBool,
    pub errors: Mutex<VecDeque<DeviceError>>,
    pub wake: OwnedFd,
}

impl Home {
    pub fn new(memory: Arc<Memory>, (watch, wake): (Watch, OwnedFd), reached: Reached, silence_ms: u32) -> Home {
        Home {
            memory,
            watch,
            reached,
            silence_ms,
            owing: AtomicUsize::new(0),
            looks: AtomicBool::new(false),
            all: RwLock::default(),
            numbers: Mutex::default(),
            has_numbers: AtomicBool::new(false),
            called: AtomicBool::new(false),
            errors: Mutex::default(),
            wake,
        }
    }
    /// A number has come by a connection.
    pub fn tell_number(&self, connection: u32, number: u32) {
        lock(&self.numbers).push_back((connection, number));
        self.has_numbers.store(true, Ordering::Release);
    }
    /// Do so many numbers wait that nothing more is to come?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.has_numbers.load(Ordering::Relaxed) && lock(&self.numbers).len() >= NUMBERS
    }
    /// Numbers that have come by the way are looked at by the thread.
    #[inline]
    pub fn call_for_numbers(&self) {
        if self.has_numbers.load(Ordering::Acquire) && !self.called.swap(true, Ordering::AcqRel) {
            tell(&self.wake);
        }
    }
    /// Gives the numbers that have come to somebody. Were there any?
    pub fn take_numbers(&self, mut with: impl FnMut(u32, u32)) -> bool {
        if !self.has_numbers.load(Ordering::Acquire) {
            return false;
        }
        let mut numbers = lock(&self.numbers);
        self.has_numbers.store(false, Ordering::Release);
        self.called.store(false, Ordering::Release);
        let some = !numbers.is_empty();
        numbers.drain(..).for_each(|(connection, number)| with(connection, number));
        some
    }
    /// May what nobody waits for be held back? Asked when that is counted among what is owed.
    #[inline]
    pub fn lets_wait(&self) -> bool {
        // SYNC POINT: pairs with `sleep`: the thread sees that something is owed, or this that it sleeps.
        self.looks.load(Ordering::SeqCst)
    }
    pub fn tell_error(&self, error: DeviceError) {
        lock(&self.errors).push_back(error);
        tell(&self.wake);
    }
    /// A connection is gone.
    pub fn forget(&self, number: u32) {
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
    pub fn of(&self, number: u32) -> Option<Arc<Connection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(&number)?.upgrade()
    }
    /// The connections, if they are few.
    pub fn few(&self) -> Option<[Option<Arc<Connection>>; FEW]> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut few = [const { None }; FEW];
        if all.len() > FEW {
            return None;
        }
        few.iter_mut().zip(all.values()).for_each(|(to, one)| *to = one.upgrade());
        Some(few)
    }
    pub fn everyone(&self) -> Vec<Arc<Connection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
    }
}
