//! Sleeping on a doorbell, and ringing it without a fence on the ringer's side.
//!
//! The sleeper reads the bell, says in the line it waits for that it sleeps, makes sure that everybody sees it, looks once
//! more, and sleeps on the value it read. The ringer stores its record, looks at the sleep byte in the same line, and rings only
//! if it is set. Between the ringer's store and its look there is no fence; the sleeper buys the order with `membarrier`, which
//! interrupts every running process of the job. Until the long sleep a short timed one does without.
//!
//! The system may refuse `membarrier` to a process (seccomp), from its start or from some time on. A process to which registering was
//! refused is not **reached** by the barriers of others either; who is registered stays so. So the order is a property of both sides: one
//! must be able to call, the other be reached. What holds where that is not so:
//!
//! | what hangs on the order | then |
//! |---|---|
//! | a sleep; the event descriptor | whoever waits looks again by the clock ([`crate::wait::event`]) |
//! | a receive that is withdrawn, against a put | the sender has a fence of its own, as long as either was refused at its start |
//! | the same, refused later; a first receive of any index | [`pause`] |

use crate::base::atomics::{AtomicU32, Ordering, fence};
use crate::base::clock::now_ns;
use crate::base::system::{futex_wait, futex_wake, membarrier};
use core::sync::atomic::{AtomicBool, compiler_fence};

/// May this process call the barrier, as far as it knows? Who was registered and is refused later will always be.
static BARRIER: AtomicBool = AtomicBool::new(false);
/// Longer than a processor goes without an interrupt while threads run on it: the clock's tick comes each 10 ms at least.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;

/// Registers this process for the expedited membarrier; called at init by every rank.
pub fn register() -> bool {
    let ok = membarrier(REGISTER_GLOBAL_EXPEDITED) == 0;
    BARRIER.store(ok, Ordering::Relaxed);
    ok
}

/// Orders this thread's earlier stores before its later loads, and likewise on every running thread of all processes that are reached.
/// `false` when the system refuses: then for this thread only.
#[cfg_attr(loom, track_caller)]
pub fn barrier() -> bool {
    // SYNC POINT: pairs with the fences of those who are not reached, in `Sender::put` and `RegionHeader::mapped_by`.
    fence(Ordering::SeqCst);
    #[cfg(loom)]
    if crate::base::shadow::is_active() {
        return crate::base::shadow::membarrier();
    }
    #[cfg(all(test, not(any(loom, miri))))]
    if crate::base::simulation::is_active() {
        return true;
    }
    if !BARRIER.load(Ordering::Relaxed) {
        return false;
    }
    let done = membarrier(GLOBAL_EXPEDITED) == 0;
    if !done {
        BARRIER.store(false, Ordering::Relaxed);
    }
    done
}

/// Instead of a barrier that is refused, where somebody relied on it: waits until every other thread has gone through the kernel or stands
/// still. A processor keeps a store to itself for well below a microsecond, and no longer than to the next interrupt.
#[cold]
#[cfg_attr(loom, track_caller)]
pub fn pause() {
    #[cfg(loom)]
    if crate::base::shadow::is_active() {
        return crate::base::shadow::pause();
    }
    #[cfg(all(test, not(any(loom, miri))))]
    if crate::base::simulation::block(0, PAUSE.as_nanos() as u64) {
        return;
    }
    std::thread::sleep(PAUSE);
    fence(Ordering::SeqCst);
}

/// The side that [`barrier`] spares: orders this thread's earlier stores before its later loads, for whoever calls `barrier`.
/// It costs nothing but what the compiler may no longer do.
#[inline(always)]
pub fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// The bit of a futex's bit set that sleepers of this index share.
#[inline]
pub fn bit(index: usize) -> u32 {
    1 << (index & 31)
}

/// Sleeps until the bell's value is no longer `seen`, it is rung for one of `bits`, or `nanoseconds` are over.
pub fn sleep(bell: &AtomicU32, seen: u32, bits: u32, nanoseconds: u64) {
    #[cfg(loom)]
    if crate::base::shadow::sleep(bell, seen, bits, nanoseconds < 1_000_000) {
        return;
    }
    #[cfg(all(test, not(any(loom, miri))))]
    if crate::base::simulation::is_active() {
        // One thread runs at a time: nothing is to be ordered.
        if bell.load(Ordering::Relaxed) == seen {
            crate::base::simulation::block(&raw const *bell as usize, nanoseconds);
        }
        return;
    }
    futex_wait(bell, seen, bits, now_ns().saturating_add(nanoseconds));
}

/// Rings: changes the value and wakes whoever sleeps for one of `bits`.
#[cold]
#[cfg_attr(loom, track_caller)]
pub fn ring(bell: &AtomicU32, bits: u32) {
    #[cfg(loom)]
    if crate::base::shadow::is_lost() {
        return;
    }
    ring_some(bell, bits, i32::MAX);
}

/// Rings for at most so many of those who sleep for one of `bits`; how many were woken. (In a model all are, and none is counted.)
#[cold]
pub fn ring_some(bell: &AtomicU32, bits: u32, most: i32) -> i32 {
    bell.fetch_add(1, Ordering::Release);
    #[cfg(loom)]
    if crate::base::shadow::wake(bell, bits) {
        return 0;
    }
    #[cfg(all(test, not(any(loom, miri))))]
    crate::base::simulation::wake(&raw const *bell as usize);
    futex_wake(bell, bits, most)
}
