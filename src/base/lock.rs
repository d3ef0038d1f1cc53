//! Locks of what is no model's business; in the library's own tests they know of simulated threads.

#[cfg(any(loom, miri, not(test)))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(all(test, not(any(loom, miri))))]
pub use super::simulation::{Condvar, Mutex, MutexGuard};
