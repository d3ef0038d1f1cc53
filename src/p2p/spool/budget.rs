//! How much of the spool a communicator may have, and has.

use super::*;
use crate::base::record::of_atomics;

/// A look at all blocks that found too little is not repeated before it has been asked for so often.
pub(super) const IN_VAIN: u32 = 64;

of_atomics! { Record:
    /// How much a communicator, or the job, may spool, and how patient its sends are.
    pub struct Budget {
        pub(super) limit: AtomicUsize,
        pub(super) used: AtomicUsize,
        pub(super) timeout_ms: AtomicI32,
        /// 1: it has been set.
        pub(super) own: AtomicU32,
    }
}

impl Budget {
    /// Bytes that may be spooled.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
    /// Bytes that are taken now, or not yet known to be free again.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// The time-out: negative infinite, 0 buffered.
    pub fn timeout_ms(&self) -> i32 {
        self.timeout_ms.load(Ordering::Relaxed)
    }
    /// Sets both; what is spooled stays.
    pub fn set(&self, limit: usize, timeout_ms: i32) {
        self.limit.store(limit, Ordering::Relaxed);
        self.timeout_ms.store(timeout_ms, Ordering::Relaxed);
        self.own.store(1, Ordering::Release);
    }
}

impl Spool {
    /// The budget of a communicator: its own, or the job's.
    #[inline(always)]
    pub fn budget(&self, comm: i32) -> &Budget {
        self.budget_at(self.budget_number(comm))
    }

    #[inline(always)]
    pub(super) fn budget_number(&self, comm: i32) -> usize {
        let n = 1 + (comm as usize & (COMMUNICATORS - 1));
        if self.budget_at(n).own.load(Ordering::Relaxed) != 0 { n } else { 0 }
    }

    #[inline(always)]
    pub(super) fn budget_at(&self, n: usize) -> &Budget {
        &self.tables.budgets[n]
    }

    /// A communicator is freed: its place gets the job's budget again. What is charged to it stays charged until it is received.
    pub fn forget(&self, comm: i32) {
        let budget = self.budget_at(1 + (comm as usize & (COMMUNICATORS - 1)));
        if budget.own.swap(0, Ordering::AcqRel) != 0 {
            budget.limit.store(0, Ordering::Relaxed);
        }
    }

    /// Are so many bytes more within `most`, and within half of the budget? What receivers are done with stays charged until somebody looks:
    /// so before it is said that they are not, somebody does.
    pub fn stays_within(&self, comm: i32, bytes: usize, most: usize) -> bool {
        let budget = self.budget(comm);
        let most = most.min(budget.limit() / 2);
        let fits = || budget.used().saturating_add(bytes) <= most;
        fits() || bytes <= most && self.looks_again(fits)
    }

    #[cold]
    fn looks_again(&self, fits: impl Fn() -> bool) -> bool {
        let passing = self.in_vain.load(Ordering::Relaxed);
        if passing > 0 {
            self.in_vain.store(passing - 1, Ordering::Relaxed);
            return false;
        }
        self.reclaim();
        let fits = fits();
        self.in_vain.store(if fits { 0 } else { IN_VAIN }, Ordering::Relaxed);
        fits
    }

    pub(super) fn charge(&self, budget: &Budget, charge: usize) -> bool {
        let limit = budget.limit();
        let mut used = budget.used.load(Ordering::Relaxed);
        loop {
            let Some(sum) = used.checked_add(charge).filter(|sum| *sum <= limit) else { return false };
            match budget.used.compare_exchange_weak(used, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => used = now,
            }
        }
    }

    pub(super) fn discharge(&self, at: u64) {
        let state = self.state(at);
        let charge = state.charge.swap(0, Ordering::Relaxed) as usize;
        let budget = state.budget.load(Ordering::Relaxed) as usize;
        self.budget_at(budget % BUDGETS).used.fetch_sub(charge, Ordering::Relaxed);
    }
}
