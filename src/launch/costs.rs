//! What meeting costs this process: connections to other processes, and bytes that it has read from them.

use std::sync::atomic::{AtomicUsize, Ordering};

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicUsize = AtomicUsize::new(0);

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Connections that this process has had at the same time, at most: with its keeper, or as a keeper with others. A
    /// stranger that has not shown yet that it knows the secret is none.
    pub connections: usize,
    /// Bytes that it has read on them.
    pub bytes_read: usize,
}

/// Of all jobs that this process has joined.
pub(super) fn costs() -> Costs {
    Costs { connections: MOST.load(Ordering::Relaxed), bytes_read: READ.load(Ordering::Relaxed) }
}

/// A connection counts as long as this lives.
pub(super) struct Connection(());

impl Connection {
    pub(super) fn new() -> Connection {
        let now = CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
        MOST.fetch_max(now, Ordering::Relaxed);
        Connection(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// So many bytes of others have come.
pub(super) fn read(bytes: usize) {
    READ.fetch_add(bytes, Ordering::Relaxed);
}
