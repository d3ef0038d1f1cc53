//! What comes to this process without being asked for: datagrams, and the numbers that come with writes.
//!
//! Each uses up a place at the device, and a peer whose write finds none has to wait. So they are taken at once, by whoever comes along:
//! the thread that deals with what has come, or a thread that waits for room in a connection. Two processes that wait for each
//! other's places would otherwise wait for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use super::device::{Arrived, DATAGRAM, Device};
use crate::base::error::Result;
use crate::base::lock::Mutex;

/// Datagrams that are kept until somebody looks; more are lost, and repeated by their senders.
const DATAGRAMS: usize = 128;

/// A number that is only counted: its completion says that everything written before it on its connection is in memory.
pub const COUNTED: u32 = 6 << 28;

/// Something that has come.
pub(super) enum Arrival {
    /// A datagram.
    Packet([u8; DATAGRAM]),
    /// A number of this peer.
    Number(u32, u32),
}

/// See the head of this file.
pub(super) struct Arrivals {
    device: Arc<dyn Device>,
    pending: Mutex<VecDeque<Arrival>>,
    /// Whose each pair is, and how often [`COUNTED`] has come from there.
    known: Mutex<HashMap<u32, (u32, Arc<AtomicU64>)>>,
    /// Why nothing comes any more, if so.
    pub broken: OnceLock<String>,
    /// Datagrams of a wrong length, or that came damaged.
    pub rejected: AtomicU64,
}

impl Arrivals {
    /// Nothing yet.
    pub fn new(device: &Arc<dyn Device>) -> Arrivals {
        Arrivals {
            device: device.clone(),
            pending: Mutex::default(),
            known: Mutex::default(),
            broken: OnceLock::new(),
            rejected: AtomicU64::new(0),
        }
    }

    /// Notes what has come.
    pub fn collect(&self) {
        // Held over the collecting, so that what comes later is noted later.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_collected(self.device.collect(&mut |arrived| self.take_in(&mut pending, arrived)));
    }

    fn take_in(&self, pending: &mut VecDeque<Arrival>, arrived: Arrived<'_>) {
        if let Some(arrival) = self.note(arrived) {
            put(pending, arrival);
        }
    }

    fn is_collected(&self, collected: Result<()>) {
        if let Err(e) = collected {
            let _ = self.broken.set(e.detail().to_owned());
        }
    }

    /// A part of that, unless somebody is at it: what a thread does that waits, where nothing goes on otherwise.
    pub fn drive(&self) {
        let Ok(mut pending) = self.pending.try_lock() else { return };
        self.is_collected(self.device.drive(&mut |arrived| self.take_in(&mut pending, arrived)));
    }

    /// What comes by this pair is the peer's from now on, and its [`COUNTED`] are counted there.
    pub fn know(&self, pair: u32, peer: u32, counted: &Arc<AtomicU64>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(pair, (peer, counted.clone()));
    }

    /// Nothing comes by this pair any more: what has come is noted first.
    pub fn forget(&self, pair: u32) {
        self.collect();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&pair);
    }

    /// The next of what has come.
    pub fn next(&self) -> Option<Arrival> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next datagram that has come.
    pub fn next_packet(&self) -> Option<[u8; DATAGRAM]> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pending.iter().position(|a| matches!(a, Arrival::Packet(_)))?;
        match pending.remove(at) {
            Some(Arrival::Packet(packet)) => Some(packet),
            _ => None,
        }
    }

    fn note(&self, arrived: Arrived<'_>) -> Option<Arrival> {
        match arrived {
            Arrived::Datagram(packet) => Some(Arrival::Packet(*packet)),
            Arrived::Number(pair, number) => {
                let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                let (peer, counted) = known.get(&pair)?;
                if number == COUNTED {
                    // SYNC POINT: pairs with the acquire in `Link::until_arrived`.
                    counted.fetch_add(1, Ordering::Release);
                    return None;
                }
                Some(Arrival::Number(*peer, number))
            }
            Arrived::Damaged => {
                self.rejected.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

/// Puts it last. A number that waits there already counts once, from now on: all of them are calls to look at something.
fn put(pending: &mut VecDeque<Arrival>, arrival: Arrival) {
    match &arrival {
        Arrival::Number(peer, number) => {
            pending.retain(|a| !matches!(a, Arrival::Number(p, n) if (p, n) == (peer, number)));
        }
        Arrival::Packet(_) => {
            if pending.iter().filter(|a| matches!(a, Arrival::Packet(_))).count() >= DATAGRAMS {
                return;
            }
        }
    }
    pending.push_back(arrival);
}
