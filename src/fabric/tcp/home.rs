//! What all connections of a process share, and what comes for none of them alone: numbers, errors, what is owed.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::connection::{Buffer, Connection};
use super::socket::{Terms, Watch};
use crate::fabric::network::device::DeviceError;
use crate::fabric::served::memory::Memory;
use crate::fabric::served::news::{Came, News};
use crate::fabric::served::port::Reached;
use crate::fabric::served::sleeper::Sleeper;

/// Up to so many connections are asked themselves what has come; of more the system is asked which have anything.
const FEW: usize = 2;

/// What all connections of a process share.
#[derive(Debug)]
pub(super) struct Home {
    pub memory: Arc<Memory>,
    pub watch: Watch,
    pub reached: Reached,
    pub terms: Terms,
    /// Connections that owe their other ends a word, or hold something back.
    pub owing: AtomicUsize,
    /// By their numbers; and all of them where they are few.
    pub all: RwLock<BTreeMap<u32, Weak<Connection>>>,
    /// Of who receives.
    pub buffer: Mutex<Buffer>,
    pub news: News,
    pub sleeper: Sleeper,
}

impl Home {
    pub fn new(memory: Arc<Memory>, (watch, sleeper): (Watch, Sleeper), reached: Reached, terms: Terms) -> Home {
        Home {
            memory,
            watch,
            reached,
            terms,
            owing: AtomicUsize::new(0),
            all: RwLock::default(),
            buffer: Mutex::default(),
            news: News::default(),
            sleeper,
        }
    }
    /// A number has come by a connection.
    pub fn tell_number(&self, connection: u32, number: u32) {
        self.news.add(Came::Number(connection, number));
    }
    /// May what nobody waits for be held back? Asked when that is counted among what is owed.
    #[inline]
    pub fn lets_wait(&self) -> bool {
        self.sleeper.lets_wait()
    }
    pub fn tell_error(&self, error: DeviceError) {
        self.news.add_error(error, &self.sleeper);
    }
    /// A connection is gone.
    pub fn forget(&self, number: u32) {
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
    pub fn of(&self, number: u32) -> Option<Arc<Connection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(&number)?.upgrade()
    }
    /// The connections, if they are few.
    pub fn few(&self) -> Option<[Option<Arc<Connection>>; FEW]> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut few = [const { None }; FEW];
        if all.len() > FEW {
            return None;
        }
        few.iter_mut().zip(all.values()).for_each(|(to, one)| *to = one.upgrade());
        Some(few)
    }
    pub fn everyone(&self) -> Vec<Arc<Connection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
    }
}
