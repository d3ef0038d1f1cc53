//! Shared memory under the model checker.
//!
//! The records of the protocol lie at computed offsets in mapped windows, where no atomic of loom's can stand: those have an
//! identity, a size of their own, and a life of one execution. So each word of memory that is declared shared has a **shadow**, an
//! atomic of loom's, found by the word's address; and each eight bytes that payload is copied to or from have a loom cell, which
//! knows every access that is not ordered against another. The types below have size and place of the machine's atomics, hence
//! the records, the map of the lane and the whole protocol are compiled as they stand.
//!
//! ```text
//!   record in a window          shadow                        what finds a fault
//!   AtomicU64 at 0x…40   -->    loom AtomicU64, by 0x…40      every value that the memory model lets a load return
//!   payload   at 0x…80   -->    loom UnsafeCell, by 0x…80     an access that does not happen before or after a conflicting one
//! ```
//!
//! Shadows must all be made before the threads of an execution start, or their making would order what the protocol has not.
//! Which words a model touches is found out by running it: an execution that meets a new word makes its shadow on the spot, counts
//! for nothing, and the exploration begins again with that word known. Outside of a model, and for memory not declared shared, all
//! of this is the machine's atomics.
//!
//! The membarrier is what the kernel makes of it: every running thread executes a fence where it is at that time, before its next
//! access, and the caller goes on when all have; a thread that sleeps has executed one on its way to sleep, and does on its way
//! back. Who calls no membarrier gets no fence. To a rank it may be refused ([`Membarrier`]). Where the library waits instead for as long as
//! every processor is interrupted ([`pause`]), all threads execute the fence, whatever they are refused. A long sleep ends only when it is
//! rung for, so that a lost wake-up is a deadlock, which loom reports. A short sleep is a yield. The clock goes on by a millisecond
//! whenever it is asked.
//!
//! A thread can be made to die ([`kill`]): its next access to shared memory does not happen, nor anything after it. [`lock`] has the locks
//! of a process, and what it makes and frees.
//!
//! An experiment ([`Weakening`]) takes from one access of the source what it releases or acquires; the models then show whether
//! that was needed.

mod bytes;

mod words;

use core::panic::Location;
use core::sync::atomic::{self as real, Ordering};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use loom::cell::UnsafeCell;
use loom::sync::atomic as checked;

pub use bytes::{copy, reads, writes};
pub use derived::{AtomicBool, AtomicPtr};
pub use lock::{Mutex, MutexGuard, OnceLock, changes, share_lock, share_thing, uses};
pub use words::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Setting};

mod derived;
mod lock;

#[derive(Default)]
struct Memory {
    /// What is shared: from, to.
    areas: Vec<(usize, usize)>,
    words8: HashMap<usize, Rc<checked::AtomicU8>>,
    words16: HashMap<usize, Rc<checked::AtomicU16>>,
    words32: HashMap<usize, Rc<checked::AtomicU32>>,
    words64: HashMap<usize, Rc<checked::AtomicU64>>,
    cells: HashMap<usize, Rc<UnsafeCell<()>>>,
    /// Words met so far in all executions, with their bytes.
    known_words: BTreeMap<usize, usize>,
    /// Granules of payload met so far.
    known_cells: BTreeSet<usize>,
    /// This execution met something new.
    grew: bool,
    locks: HashMap<usize, Rc<lock::Lock>>,
    known_locks: BTreeSet<usize>,
    things: HashMap<usize, Rc<lock::Thing>>,
    known_things: BTreeSet<usize>,
    sleepers: Vec<(usize, u32, loom::thread::Thread)>,
    /// A thread may die: which, and whether it is to.
    dies: bool,
    mortal: Option<loom::thread::ThreadId>,
    doom: Option<Rc<checked::AtomicBool>>,
    /// Threads that run.
    running: Vec<Running>,
    now: u64,
    /// Values of settings, by their addresses.
    settings: HashMap<usize, u64>,
}

struct Running {
    id: loom::thread::ThreadId,
    membarrier: Membarrier,
    /// It is to execute a fence before it goes on.
    due: bool,
    /// Pauses so far.
    spins: usize,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// Threads that are to execute a fence.
    static INTERRUPTS: Cell<usize> = const { Cell::new(0) };
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// What the system lets a rank of a model do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membarrier {
    /// Call it, and be reached by others'.
    Has,
    /// Neither.
    Refused,
    /// Be reached by others': it was refused after the rank had registered.
    RefusedLater,
}

/// What an experiment takes away from one access or fence of the source, so that a model can show that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// What the access releases.
    Release,
    /// What it acquires.
    Acquire,
    /// The access or fence itself: it does not happen.
    All,
}

/// An experiment: one access of the source, named by its place, without something.
#[derive(Clone, Debug)]
pub struct Weakening {
    /// Its file, from the root of the project.
    pub file: String,
    /// The line of the method's name, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
    /// What is taken away.
    pub loss: Loss,
}

thread_local! {
    static WEAKENED: RefCell<Option<Weakening>> = const { RefCell::new(None) };
    static REACHED: Cell<usize> = const { Cell::new(0) };
}

/// Weakens an access in all models of this thread.
pub fn weaken(w: Weakening) {
    WEAKENED.set(Some(w));
}

/// How often the weakened access was executed.
pub fn weakened_accesses() -> usize {
    REACHED.get()
}

/// Is something weakened in the models of this thread?
fn is_experiment() -> bool {
    WEAKENED.with(|w| w.borrow().is_some())
}

/// What the calling access loses.
#[track_caller]
fn loss() -> Option<Loss> {
    let here = Location::caller();
    let loss = WEAKENED.with(|cell| {
        let w = cell.borrow();
        let w = w.as_ref()?;
        (w.line == here.line() && w.column == here.column() && here.file().ends_with(&w.file)).then_some(w.loss)
    });
    if loss.is_some() {
        REACHED.set(REACHED.get() + 1);
    }
    loss
}

fn without(order: Ordering, loss: Option<Loss>) -> Ordering {
    match (loss, order) {
        (Some(Loss::Release), Ordering::Release) | (Some(Loss::Acquire), Ordering::Acquire) => Ordering::Relaxed,
        (Some(Loss::Release), Ordering::AcqRel) => Ordering::Acquire,
        (Some(Loss::Acquire), Ordering::AcqRel) => Ordering::Release,
        _ => order,
    }
}

/// An execution that is to be repeated, because the one before it met words that were not known.
pub struct Again;

fn with<R>(f: impl FnOnce(&mut Memory) -> R) -> R {
    MEMORY.with(|m| f(&mut m.borrow_mut()))
}

impl Memory {
    fn shares(&self, at: usize) -> bool {
        self.areas.iter().any(|(from, to)| (*from..*to).contains(&at))
    }
    fn cell(&mut self, granule: usize) -> Rc<UnsafeCell<()>> {
        if self.known_cells.insert(granule) {
            self.grew = true;
        }
        self.cells.entry(granule).or_insert_with(|| Rc::new(UnsafeCell::new(()))).clone()
    }
}

/// Declares memory as shared by the threads of the models to come.
pub fn share(from: *const u8, bytes: usize) {
    with(|m| m.areas.push((from as usize, from as usize + bytes)));
}

/// Forgets all declarations and everything that is known.
pub fn forget() {
    ACTIVE.set(false);
    with(|m| *m = Memory::default());
}

/// Begins an execution, before its threads are made: known payload is zeroed, known words have the values of real memory.
pub fn begin() {
    ACTIVE.set(false);
    if with(|m| m.grew) {
        std::panic::resume_unwind(Box::new(Again));
    }
    with(|m| {
        (m.words8, m.words16, m.words32, m.words64, m.cells) = Default::default();
        m.sleepers.clear();
        m.running.clear();
        m.mortal = None;
        m.doom = m.dies.then(Rc::default);
        INTERRUPTS.set(0);
        m.locks = m.known_locks.iter().map(|at| (*at, Rc::default())).collect();
        m.things = m.known_things.iter().map(|at| (*at, Rc::default())).collect();
        m.now = 1;
        for granule in &m.known_cells {
            // SAFETY: a granule of an area, which is mapped, writable memory.
            unsafe { (*granule as *mut u64).write(0) };
            m.cells.insert(*granule, Rc::new(UnsafeCell::new(())));
        }
        /// A word of an area, as real memory has it.
        fn word<T: Copy>(at: usize) -> T {
            // SAFETY: mapped memory.
            unsafe { (at as *const T).read() }
        }
        for (&at, bytes) in &m.known_words {
            match bytes {
                1 => drop(m.words8.insert(at, Rc::new(checked::AtomicU8::new(word(at))))),
                2 => drop(m.words16.insert(at, Rc::new(checked::AtomicU16::new(word(at))))),
                4 => drop(m.words32.insert(at, Rc::new(checked::AtomicU32::new(word(at))))),
                _ => drop(m.words64.insert(at, Rc::new(checked::AtomicU64::new(word(at))))),
            }
        }
    });
    ACTIVE.set(true);
}

/// Ends an execution: accesses are the machine's again.
pub fn end() {
    ACTIVE.set(false);
}

/// Begins an exploration again, with all that is known by now.
pub fn again() {
    with(|m| m.grew = false);
}

/// Did the execution so far meet what was not known? Then what it found counts for nothing.
pub fn is_provisional() -> bool {
    MEMORY.with(|m| m.try_borrow().is_ok_and(|m| m.grew))
}

/// A thread of the model begins to run, or comes back from sleep.
pub fn enter(membarrier: Membarrier) {
    checked::fence(Ordering::SeqCst);
    with(|m| m.running.push(Running { id: loom::thread::current().id(), membarrier, due: false, spins: 0 }));
}

/// A thread of the model ends, or goes to sleep.
pub fn leave() {
    let me = loom::thread::current().id();
    checked::fence(Ordering::SeqCst);
    with(|m| {
        m.running.retain(|r| {
            if r.id == me && r.due {
                INTERRUPTS.set(INTERRUPTS.get() - 1);
            }
            r.id != me
        });
        m.mortal = m.mortal.filter(|mortal| *mortal != me);
    });
}

fn allowed() -> Membarrier {
    let me = loom::thread::current().id();
    with(|m| m.running.iter().find(|r| r.id == me).map_or(Membarrier::Has, |r| r.membarrier))
}

/// What a thread that dies is unwound with.
pub struct Died;

/// In the models to come a thread may die.
pub fn may_die() {
    with(|m| m.dies = true);
}

/// As [`enter`], of the thread that may die.
pub fn enter_mortal(membarrier: Membarrier) {
    enter(membarrier);
    with(|m| m.mortal = Some(loom::thread::current().id()));
}

/// The thread that may die does: an access of it to shared memory does not happen, nor anything after it. The checker has this at each of
/// its accesses.
pub fn kill() {
    if let Some(doom) = with(|m| m.doom.clone()) {
        doom.store(true, Ordering::Relaxed);
    }
}

/// Ends the calling thread, if it was killed.
fn dies() {
    let me = loom::thread::current().id();
    let doom = with(|m| m.doom.clone().filter(|_| m.mortal == Some(me)));
    if doom.is_some_and(|doom| doom.load(Ordering::Relaxed)) {
        with(|m| m.mortal = None);
        std::panic::resume_unwind(Box::new(Died));
    }
}

/// Executes the fence that somebody's membarrier has asked this thread for; or ends, if it was killed.
fn interrupted() {
    if with(|m| m.mortal.is_some()) {
        dies();
    }
    if INTERRUPTS.get() == 0 {
        return;
    }
    let me = loom::thread::current().id();
    let due = with(|m| m.running.iter_mut().find(|r| r.id == me && r.due).map(|r| r.due = false)).is_some();
    if due {
        INTERRUPTS.set(INTERRUPTS.get() - 1);
        checked::fence(Ordering::SeqCst);
    }
}

/// The membarrier in a model: `false` when it is refused.
#[track_caller]
pub fn membarrier() -> bool {
    if allowed() != Membarrier::Has {
        return false;
    }
    if loss().is_none() {
        interrupt(|r| r.membarrier != Membarrier::Refused);
    }
    true
}

/// So long a wait in a model that every processor is interrupted.
#[track_caller]
pub fn pause() {
    if loss().is_none() {
        interrupt(|_| true);
    }
}

/// Does an experiment take the calling place away?
#[track_caller]
pub fn is_lost() -> bool {
    loss().is_some()
}

/// Has other threads execute a fence, and waits until they have.
fn interrupt(whom: impl Fn(&Running) -> bool) {
    let me = loom::thread::current().id();
    checked::fence(Ordering::SeqCst);
    with(|m| {
        for r in m.running.iter_mut().filter(|r| r.id != me && !r.due && whom(r)) {
            r.due = true;
            INTERRUPTS.set(INTERRUPTS.get() + 1);
        }
    });
    while with(|m| m.running.iter().any(|r| r.id != me && r.due && whom(r))) {
        interrupted();
        loom::thread::yield_now();
    }
    checked::fence(Ordering::SeqCst);
}

/// An atomic access is no payload access: a payload access that is not ordered against it is a fault.
fn guard(at: usize) {
    if let Some(cell) = with(|m| m.cells.get(&(at & !7)).cloned()) {
        cell.with(|_| ());
    }
}

/// As [`core::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    if loss().is_some() {
        return;
    }
    if ACTIVE.get() { checked::fence(order) } else { real::fence(order) }
}

/// A pause of a loop that waits for another thread, which in a model has its turn now.
///
/// Only each second one gives the turn away: the checker gives it back to a thread that has yielded only when all others have, too,
/// or wait, so what this thread does while another is just a step ahead would never be looked at.
pub fn spin_loop() {
    if ACTIVE.get() {
        interrupted();
        let me = loom::thread::current().id();
        let yields = with(|m| {
            let found = m.running.iter_mut().find(|r| r.id == me)?;
            found.spins += 1;
            Some(found.spins % 2 == 0)
        });
        if yields != Some(false) {
            loom::thread::yield_now();
        }
    } else {
        core::hint::spin_loop()
    }
}

/// The model's clock; `None` outside of models.
pub fn now_ns() -> Option<u64> {
    ACTIVE.get().then(|| {
        with(|m| {
            m.now += 1_000_000;
            m.now
        })
    })
}

/// Sleeps on a bell in a model, if this is one: until it is rung for one of `bits`, or, `briefly`, for a turn of the others.
pub fn sleep(bell: &AtomicU32, seen: u32, bits: u32, briefly: bool) -> bool {
    if !ACTIVE.get() {
        return false;
    }
    if briefly {
        loom::thread::yield_now();
    } else if bell.fetch_add(0, Ordering::AcqRel) == seen {
        // The kernel compares and goes to sleep in one step; no other thread runs between here and the parking.
        let at = bell as *const AtomicU32 as usize;
        let membarrier = allowed();
        with(|m| m.sleepers.push((at, bits, loom::thread::current())));
        leave();
        loom::thread::park();
        enter(membarrier);
    }
    true
}

/// Wakes who sleeps on a bell for one of `bits` in a model, if this is one.
pub fn wake(bell: &AtomicU32, bits: u32) -> bool {
    if !ACTIVE.get() {
        return false;
    }
    let at = bell as *const AtomicU32 as usize;
    let woken: Vec<_> = with(|m| m.sleepers.extract_if(.., |(b, mask, _)| *b == at && *mask & bits != 0).collect());
    for (_, _, thread) in woken {
        thread.unpark();
    }
    true
}

/// Is this thread in a model?
pub fn is_active() -> bool {
    ACTIVE.get()
}
