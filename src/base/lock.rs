//! Locks of what is no model's business; in the library's own tests they know of simulated threads.

#[cfg(any(loom, miri, not(test)))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(all(test, not(any(loom, miri))))]
pub use super::simulation::{Condvar, Mutex, MutexGuard};

/// The lock, also of a thread that panicked with it held: for what no panic leaves half done.
pub fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
