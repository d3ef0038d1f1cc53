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

/// Numbers of one peer that are kept, all of them different, until somebody looks. A peer that is in order has six calls for each
/// communicator that it uses with this process; one with more waiting here writes whatever comes to its mind.
const NUMBERS: usize = 1 << 14;

/// A number that is only counted: its completion says that everything written before it on its connection is in memory.
pub const COUNTED: u32 = 6 << 28;

/// Something that has come.
pub(super) enum Arrival {
    /// A datagram.
    Packet([u8; DATAGRAM]),
    /// A number of this peer.
    Number(u32, u32),
    /// More different numbers than there can be came from this peer.
    Flood(u32),
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

    /// A part of that, unless somebody is at it: what a thread does that waits, where nothing goes on otherwise. `true`: something has
    /// come, within so many looks.
    pub fn drive(&self, looks: u32) -> bool {
        let Ok(mut pending) = self.pending.try_lock() else { return false };
        let driven = self.device.drive(looks, &mut |arrived| self.take_in(&mut pending, arrived));
        let came = matches!(driven, Ok(true));
        self.is_collected(driven.map(drop));
        came
    }

    /// The same of who waits for one peer, where there are others.
    pub fn drive_others(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len() > 1 && self.drive(1)
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
            let mut of_peer = 0;
            pending.retain(|a| match a {
                Arrival::Number(p, n) if p == peer => {
                    of_peer += usize::from(n != number);
                    n != number
                }
                _ => true,
            });
            if of_peer >= NUMBERS {
                // Its connection ends, and with it what else it has called for.
                pending.retain(|a| !matches!(a, Arrival::Number(p, _) | Arrival::Flood(p) if p == peer));
                pending.push_back(Arrival::Flood(*peer));
                return;
            }
        }
        Arrival::Packet(_) => {
            if pending.iter().filter(|a| matches!(a, Arrival::Packet(_))).count() >= DATAGRAMS {
                return;
            }
        }
        Arrival::Flood(_) => {}
    }
    pending.push_back(arrival);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_once_and_from_the_last_time() {
        let mut pending = VecDeque::new();
        for number in [1, 2, 1] {
            put(&mut pending, Arrival::Number(7, number));
        }
        put(&mut pending, Arrival::Number(8, 2));
        let numbers: Vec<_> = pending
            .iter()
            .map(|a| match a {
                Arrival::Number(peer, number) => (*peer, *number),
                _ => panic!("no number"),
            })
            .collect();
        assert_eq!(numbers, [(7, 2), (7, 1), (8, 2)]);
    }

    #[test]
    fn a_peer_that_sends_ever_new_numbers_takes_no_more_memory_and_is_told_of() {
        let mut pending = VecDeque::from([Arrival::Number(8, 3)]);
        for number in 0..NUMBERS as u32 {
            put(&mut pending, Arrival::Number(7, number));
            put(&mut pending, Arrival::Number(7, number));
        }
        assert_eq!(pending.len(), 1 + NUMBERS);
        put(&mut pending, Arrival::Number(7, u32::MAX));
        assert!(matches!(pending.make_contiguous(), [Arrival::Number(8, 3), Arrival::Flood(7)]));
    }

    #[test]
    fn datagrams_have_a_bound() {
        let mut pending = VecDeque::new();
        (0..2 * DATAGRAMS).for_each(|_| put(&mut pending, Arrival::Packet([0; DATAGRAM])));
        assert_eq!(pending.len(), DATAGRAMS);
    }
}
