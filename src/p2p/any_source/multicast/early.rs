//! What tells this process of multicasts and was put aside, so that there is room in the ring for more.
//!
//! The rings by which members are told have room for so many messages. A leader that passes a multicast on waits for room at its child, which may do
//! the same the other way round, or wait for another multicast, or for anything else: if nobody made room before its program comes to
//! receive, both would wait for ever. So every wait of a process whose ring is half full takes the messages out, and keeps them here in
//! order. Each is of a multicast that is not complete, of which its master has a block: the masters' spools are what bounds them.

use std::collections::VecDeque;

use super::note::NEWS_WORDS;
use crate::base::atomics::{AtomicU64, AtomicUsize, Ordering};
use crate::base::error::Result;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::run::Run;
use crate::p2p::any_source::Arrived;
use crate::p2p::any_source::receive::Incoming;
use crate::p2p::endpoint::Endpoint;

/// A message, and what is in it.
pub(in crate::p2p::any_source) type News = (Arrived, [u64; NEWS_WORDS]);

/// Messages that were put aside.
#[derive(Default)]
pub(in crate::p2p::any_source) struct Early {
    all: Mutex<VecDeque<Result<News>>>,
    /// How many there are, and how many there ever were.
    waiting: AtomicUsize,
    count: AtomicU64,
}

impl Early {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Result<News>>> {
        self.all.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub(in crate::p2p::any_source) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
    fn push(&self, news: Result<News>) {
        self.lock().push_back(news);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
    fn pop(&self) -> Option<Result<News>> {
        let first = self.lock().pop_front()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(first)
    }
}

/// Takes the next message by which a member is told, if it is there. The ring is claimed.
pub(in crate::p2p::any_source) fn take(ep: &'static Endpoint, inc: &Incoming) -> Result<Option<News>> {
    if !inc.early.is_empty()
        && let Some(first) = inc.early.pop()
    {
        return first.map(Some);
    }
    take_from_ring(ep, inc)
}

fn take_from_ring(ep: &'static Endpoint, inc: &Incoming) -> Result<Option<News>> {
    let mut news = [0; NEWS_WORDS];
    let taken = Run::with_room(&mut news, |to| inc.take(ep, to))?;
    Ok(taken.map(|arrived| (arrived, news)))
}

impl Incoming {
    /// Takes all messages out of the ring. It is claimed.
    pub(super) fn put_aside(&self, ep: &'static Endpoint) {
        while let Some(news) = take_from_ring(ep, self).transpose() {
            self.early.push(news);
        }
    }
}
