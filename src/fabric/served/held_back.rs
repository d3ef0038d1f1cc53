//! When what a connection holds back leaves: one call of the system, or of a library, takes longer than to put ten records into one. The first of
//! many goes at once; the rest when they are many, when somebody waits, or within a moment.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::base::clock::now_ns;

/// A record that comes so soon behind another, with no wait between them, is one of many, and goes with the next.
pub(in crate::fabric) const BURST_NS: u32 = 10_000;
/// Turns of a wait in which what nobody waits for is left alone.
pub(in crate::fabric) const LEFT_ALONE: u32 = 4;

/// See the head of this file.
#[derive(Debug)]
pub(in crate::fabric) struct HeldBack {
    /// There is something; and in so many turns of waits it was left alone.
    some: AtomicBool,
    turns: AtomicU32,
    /// Somebody has waited since a record was posted last.
    waited: AtomicBool,
}

impl HeldBack {
    /// Nothing yet, and the first record is one alone.
    pub fn new() -> HeldBack {
        HeldBack { some: AtomicBool::new(false), turns: AtomicU32::new(0), waited: AtomicBool::new(true) }
    }
    /// Is there something?
    #[inline]
    pub fn is_there(&self) -> bool {
        self.some.load(Ordering::Acquire)
    }
    /// Something is; counted among the connections of which that is so.
    pub fn begins(&self, connections: &AtomicUsize) {
        if !self.some.swap(true, Ordering::AcqRel) {
            self.turns.store(0, Ordering::Relaxed);
            connections.fetch_add(1, Ordering::SeqCst);
        }
    }
    /// Nothing is any more.
    pub fn ends(&self, connections: &AtomicUsize) {
        if self.some.swap(false, Ordering::AcqRel) {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Is the record that is posted now one of many? `posted_ns`: when one was posted last.
    #[inline]
    pub fn is_in_a_burst(&self, posted_ns: &mut u64) -> bool {
        let now = now_ns();
        let soon = now.saturating_sub(std::mem::replace(posted_ns, now)) < u64::from(BURST_NS);
        !self.waited.swap(false, Ordering::Relaxed) && soon
    }
    /// It leaves at the first turn of who waits next.
    #[inline]
    pub fn is_waited_for(&self) {
        self.turns.store(LEFT_ALONE, Ordering::Relaxed);
    }
    /// Somebody waits.
    #[inline]
    pub fn sees_a_wait(&self) {
        self.waited.store(true, Ordering::Relaxed);
    }
    /// A turn of a wait. Is there something that is to leave now? What nobody waits for is left alone for some, since what the wait brings may go along.
    #[inline]
    pub fn turn(&self) -> bool {
        self.sees_a_wait();
        self.is_there() && self.turns.fetch_add(1, Ordering::Relaxed) >= LEFT_ALONE
    }
}
