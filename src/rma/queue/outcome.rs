//! How an operation ended: handles that are asked for, failures that are told once.

use super::*;
use crate::base::error::error;

/// A failure of the call itself.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { number: 0, refused: false, error }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        failure.error
    }
}

/// Why an operation has failed.
pub struct Failure {
    /// Its number.
    pub(in super::super) number: u64,
    /// It was never issued.
    pub refused: bool,
    /// Why.
    pub error: Error,
}

impl Rma {
    /// What `copy` or `fetch` has just refused becomes an operation that has failed, for those who are given no more than a handle: the handle,
    /// and whether this is the first time in this job that an operation of this kind (below 16) is refused.
    #[cold]
    pub fn refuse(&self, kind: u32, order: i64, error: &Error) -> (i64, bool) {
        let follows = order != 0 && self.number_of_order(order).is_some_and(|n| self.kept_back(order, n).is_some());
        let bit = 1 << (kind % 16 + if follows { 16 } else { 0 });
        let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        let number = self.next_number() as u64;
        queue.note(Failure { number, refused: true, error: error.clone() });
        self.failed.store(queue.failures.len() as u32, Ordering::Release);
        (REFUSED | number as i64, self.said.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// Is this the handle of an operation that was refused?
    #[inline(always)]
    pub fn is_refused(handle: i64) -> bool {
        handle >= REFUSED
    }

    /// Waits until an operation and all before it are over. The first failure among them is the error.
    #[inline]
    pub fn complete(&'static self, handle: i64) -> core::result::Result<(), Failure> {
        let idle = self.oldest.load(Ordering::Acquire) == u64::MAX && self.failed.load(Ordering::Acquire) == 0;
        if idle && !Rma::is_refused(handle) {
            return Ok(());
        }
        let number = self.number_of_handle(handle);
        if !self.is_over(number) {
            self.wait_for(number)?;
        }
        self.told(handle, number)
    }

    /// Is an operation, or one before it, not over? A failure among those that are over is the error.
    #[inline]
    pub fn inquire(&'static self, handle: i64) -> core::result::Result<bool, Failure> {
        let number = self.number_of_handle(handle);
        if !self.is_over(number) {
            self.drive();
            self.serve();
        }
        self.told(handle, number)?;
        Ok(!self.is_over(number))
    }

    #[inline(always)]
    pub(super) fn told(&self, handle: i64, number: u64) -> core::result::Result<(), Failure> {
        if self.failed.load(Ordering::Acquire) == 0 && !Rma::is_refused(handle) {
            return Ok(());
        }
        self.tell(handle, number)
    }

    #[cold]
    pub(super) fn tell(&self, handle: i64, number: u64) -> core::result::Result<(), Failure> {
        match self.take_failure(|n| n <= number) {
            Some(failure) => Err(failure),
            None if Rma::is_refused(handle) && number != 0 => {
                let text = format!("rank {}: operation {number} was refused, as was said then", self.rank());
                Err(Failure { number, refused: true, error: Error::new(Code::Argument, text) })
            }
            None => Ok(()),
        }
    }

    #[cold]
    pub(in super::super) fn take_failure(&self, of: impl Fn(u64) -> bool) -> Option<Failure> {
        let mut queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        let first = queue.failures.iter().position(|f| of(f.number))?;
        let failure = queue.failures.remove(first)?;
        queue.failures.retain(|f| !of(f.number));
        // The one with the smallest number comes first.
        let least = (0..queue.failures.len()).min_by_key(|n| queue.failures[*n].number);
        least.into_iter().for_each(|n| queue.failures.swap(0, n));
        self.failed.store(queue.failures.len() as u32, Ordering::Release);
        Some(failure)
    }

    /// Why what has this order, which means this number, will never start, if so: what it is to follow was refused, or has failed and nobody has
    /// been told of that.
    #[inline(always)]
    pub(super) fn kept_back(&self, order: i64, number: u64) -> Option<(Code, String)> {
        if self.failed.load(Ordering::Acquire) == 0 && !Rma::is_refused(order) {
            return None;
        }
        self.kept_back_by(order, number)
    }

    #[cold]
    pub(super) fn kept_back_by(&self, order: i64, number: u64) -> Option<(Code, String)> {
        let queue = self.queue.lock().unwrap_or_else(|e| e.into_inner());
        let first = queue.failures.iter().find(|f| f.number <= number);
        let why = first.map(|f| {
            let how = if f.refused { "was refused" } else { "has failed" };
            (f.error.code(), format!("operation {}, which it was to follow, {how}: {}", f.number, f.error.detail()))
        });
        let named = || (Code::Argument, format!("operation {number}, which it was to follow, was refused"));
        why.or_else(|| Rma::is_refused(order).then(named))
    }

    #[cold]
    pub(super) fn no_handle(&self, order: i64) -> Error {
        error!(Code::Argument, "rank {}: the order {order} is no handle", self.rank())
    }
}
