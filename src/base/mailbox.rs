//! What is handed to a thread, thing by thing, until it is told that nothing more will come.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::lock::lock;

/// Things for one thread, in the order in which they were put.
pub struct Mailbox<T> {
    held: Mutex<Held<T>>,
    changed: Condvar,
}

struct Held<T> {
    things: VecDeque<T>,
    closed: bool,
}

/// There is nothing more, and will be nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        Mailbox { held: Mutex::new(Held { things: VecDeque::new(), closed: false }), changed: Condvar::new() }
    }
}

impl<T> Mailbox<T> {
    /// For the thread, which wakes if it waits.
    pub fn put(&self, thing: T) {
        lock(&self.held).things.push_back(thing);
        self.changed.notify_one();
    }

    /// What is there is still taken.
    pub fn close(&self) {
        lock(&self.held).closed = true;
        self.changed.notify_all();
    }

    /// The next thing, once there is one. `None`: none came in this time.
    pub fn take(&self, patience: Duration) -> Result<Option<T>, Closed> {
        let empty = |held: &mut Held<T>| held.things.is_empty() && !held.closed;
        let waited = self.changed.wait_timeout_while(lock(&self.held), patience, empty);
        let (mut held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match held.things.pop_front() {
            None if held.closed => Err(Closed),
            thing => Ok(thing),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken_before_the_end_is_told() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.take(Duration::ZERO), Ok(None));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| std::iter::from_fn(|| mailbox.take(Duration::MAX).ok()).collect::<Vec<_>>());
            (0..100).for_each(|n| mailbox.put(n));
            mailbox.close();
            assert_eq!(taken.join().unwrap(), (0..100).map(Some).collect::<Vec<_>>());
        });
        assert_eq!(mailbox.take(Duration::MAX), Err(Closed));
    }
}
