//! Descriptors that a forked child does not keep: those by whose end others learn of this process's.
//!
//! A child of fork has all descriptors of its parent. What they lead to stays open as long as the child lives, though the parent has ended, and
//! whoever waits at the other end hears nothing. So the child closes these. Which they are says a bit for each number, which the child's
//! handler finds without a lock and without memory.

use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};

use crate::base::atomics::{AtomicU64, Ordering};

/// Words of bits. Numbers behind them are kept.
const WORDS: usize = 1024;

static MARKED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn place(fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((MARKED.get(fd / 64)?, 1 << (fd % 64)))
}

/// One of them.
#[derive(Debug)]
pub struct Unshared<T: AsRawFd>(T);

impl<T: AsRawFd> Unshared<T> {
    /// No child that is forked from here on keeps it.
    pub fn new(fd: T) -> Unshared<T> {
        if let Some((word, bit)) = place(fd.as_raw_fd()) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Unshared(fd)
    }
}

impl<T: AsRawFd> Deref for Unshared<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: AsRawFd> Drop for Unshared<T> {
    /// Before it is closed, and its number is another one's.
    fn drop(&mut self) {
        if let Some((word, bit)) = place(self.0.as_raw_fd()) {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// In a child that was just forked, and uses none of them: closes them.
pub(crate) fn close_all() {
    for (k, word) in MARKED.iter().enumerate() {
        let mut bits = word.load(Ordering::Relaxed);
        while bits != 0 {
            // SAFETY: the descriptor's owner is never dropped in a forked child, where nobody uses the library.
            unsafe { libc::close((k * 64) as RawFd + bits.trailing_zeros() as RawFd) };
            bits &= bits - 1;
        }
    }
}
