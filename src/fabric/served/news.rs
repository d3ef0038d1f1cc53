//! What has come to a process and is to be told of: by whoever asks next, for which the thread of the fabric is called.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sleeper::Sleeper;
use crate::base::lock::lock;
use crate::fabric::network::device::{Arrived, DATAGRAM, DeviceError};

/// News that wait for the thread at most: then nothing more is taken, and the other ends have to wait.
const MOST: usize = 1 << 16;
/// Datagrams among them; more are lost.
const DATAGRAMS: usize = 128;

/// Something that has come.
#[derive(Debug)]
pub(in crate::fabric) enum Came {
    /// A number, by this pair.
    Number(u32, u32),
    Datagram(Box<[u8; DATAGRAM]>),
    Damaged,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(in crate::fabric) struct News {
    came: Mutex<VecDeque<Came>>,
    has_some: AtomicBool,
    /// The thread was called for them.
    called: AtomicBool,
    errors: Mutex<VecDeque<DeviceError>>,
}

impl News {
    /// Something has come.
    pub fn add(&self, what: Came) {
        let mut came = lock(&self.came);
        if !matches!(what, Came::Number(..))
            && came.iter().filter(|c| !matches!(c, Came::Number(..))).count() >= DATAGRAMS
        {
            return;
        }
        came.push_back(what);
        self.has_some.store(true, Ordering::Release);
    }
    /// Do so many wait that nothing more is to come?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.has_some.load(Ordering::Relaxed) && lock(&self.came).len() >= MOST
    }
    /// What has come by the way is looked at by the thread.
    #[inline]
    pub fn call(&self, sleeper: &Sleeper) {
        if self.has_some.load(Ordering::Acquire) && !self.called.swap(true, Ordering::AcqRel) {
            sleeper.wake();
        }
    }
    /// Tells somebody what has come. Was there anything?
    pub fn take(&self, with: &mut dyn FnMut(Arrived<'_>)) -> bool {
        if !self.has_some.load(Ordering::Acquire) {
            return false;
        }
        let mut came = lock(&self.came);
        self.has_some.store(false, Ordering::Release);
        self.called.store(false, Ordering::Release);
        let some = !came.is_empty();
        came.drain(..).for_each(|what| match what {
            Came::Number(pair, number) => with(Arrived::Number(pair, number)),
            Came::Datagram(datagram) => with(Arrived::Datagram(&datagram)),
            Came::Damaged => with(Arrived::Damaged),
        });
        some
    }
    /// Something is wrong.
    pub fn add_error(&self, error: DeviceError, sleeper: &Sleeper) {
        lock(&self.errors).push_back(error);
        sleeper.wake();
    }
    pub fn next_error(&self) -> Option<DeviceError> {
        lock(&self.errors).pop_front()
    }
    pub fn has_errors(&self) -> bool {
        !lock(&self.errors).is_empty()
    }
}
