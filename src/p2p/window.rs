//! Shared windows: what a process knows of memory that the ranks of a node have side by side.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::base::lock::{Mutex, MutexGuard};

/// A window, as this process has it.
#[derive(Clone, Debug)]
pub struct Window {
    /// The communicator whose ranks have it.
    pub comm: i32,
    /// This process's rank there.
    pub rank: usize,
    /// Where the block begins.
    pub at: usize,
    /// Where the part of each rank ends, from there on.
    pub ends: Box<[u64]>,
    /// What its ranks alone know: that they all speak of this window.
    pub token: u64,
}

impl Window {
    /// Where the part of a rank lies in the block: from, to.
    pub fn part(&self, rank: usize) -> Option<(usize, usize)> {
        let from = if rank == 0 { 0 } else { *self.ends.get(rank - 1)? as usize };
        Some((from, *self.ends.get(rank)? as usize))
    }
}

/// The windows of a process, by where its own part begins.
#[derive(Default)]
pub struct Windows(Mutex<BTreeMap<usize, Window>>);

impl Windows {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one in; where this rank's part begins.
    pub fn add(&self, window: Window) -> *mut u8 {
        let (from, _) = window.part(window.rank).unwrap_or_default();
        let mine = window.at + from;
        self.all().insert(mine, window);
        mine as *mut u8
    }

    /// The one whose part of this rank begins here.
    pub fn find(&self, mine: *const u8) -> Option<Window> {
        self.all().get(&(mine as usize)).cloned()
    }

    /// Takes it out: before its memory can be another one's.
    pub fn take(&self, mine: *const u8) -> Option<Window> {
        self.all().remove(&(mine as usize))
    }

    /// Does the block of one begin here?
    pub fn begins(&self, at: *const u8) -> bool {
        self.all().values().any(|window| window.at == at as usize)
    }
}
