//! Counters on other nodes: those of a share of a remote ring can be with a rank that is neither its receiver nor on a node of its senders.
//!
//! ```text
//!   S                              H                               R
//!   ticket = fetch-and-add ─────▶  sent
//!   room? reads it, backs off ──▶  freed, limit   ◀──────────────  as it takes messages: now and then, and when there is none
//!   slot [ticket mod N] ───────────────────────────────────────▶   slots
//!   reads behind it ───────────────────────────────────────────▶   freed, limit, asleep
//! ```
//! So those who look for room again and again, because a ring is full, do that at another node each, and not at the receiver's. The
//! receiver chooses its hosts evenly over the other nodes, and for each sender a share whose host is on another node than the sender, since
//! ranks of one node have no connection by the device; the first share has its counters at home, for those for whom there is none.
//! (*Methods for memory saving communication library using remote atomic communication*, section 4.4.)

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FREED_AT, RemoteShare, SENT_AT, SLOTS_AT};
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::topology::Topology;
use crate::fabric::network::control::Fabric;
use crate::fabric::network::region::Arena;
use crate::fabric::network::{Access, Place};
use crate::lane::Lane;
use crate::lane::remote::{Ask, Asked};
use crate::launch::place::NodeMap;
use crate::p2p::COMM_WORLD;
use crate::p2p::endpoint::endpoint;

/// Shares of other ranks whose counters a process has, at most.
const GUESTS: usize = 1024;

/// The counters that this process has for others.
#[derive(Default)]
pub struct Guests(Mutex<Rooms>);

#[derive(Default)]
struct Rooms {
    memory: Option<Arena>,
    /// Whose they are: the receiver, and the share's address with its epoch.
    used: Vec<(u32, u64)>,
}

impl Guests {
    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a receiver or a sender that asks where the counters of a share are.
    pub fn serve(&self, fabric: &Fabric, receiver: u32, share: u64) -> Option<[u64; 2]> {
        let mut rooms = self.lock();
        if rooms.memory.is_none() {
            let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
            rooms.memory = Some(Arena::new(fabric.domain(), GUESTS * SLOTS_AT, access).ok()?);
        }
        let n = match rooms.used.iter().position(|key| *key == (receiver, share)) {
            Some(n) => n,
            None if rooms.used.len() == GUESTS => return None,
            None => {
                rooms.used.push((receiver, share));
                rooms.used.len() - 1
            }
        };
        let region = rooms.memory.as_ref()?.region();
        Some([region.addr() + (n * SLOTS_AT) as u64, region.rkey() as u64])
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().used.len()
    }
}

/// Asks a host for the counters of a share of a receiver. `share`: its address, with its epoch.
pub(super) fn ask(host: u32, receiver: u32, share: u64) -> Option<(&'static Lane, Place)> {
    let ep = endpoint().ok()?;
    let lane = ep.context(COMM_WORLD).and_then(|world| ep.lane_of(world, host as i32)).ok()?;
    let asked = Asked { what: Ask::Counters, slot: 0, seq: receiver as u64, at: share };
    let [addr, key] = lane.remote()?.ask_for(asked, || lane.gone().is_none()).flatten()?;
    // Whose counters are there stays known.
    Some((lane.for_good(), Place { addr, rkey: key as u32 }))
}

/// The name of a share between its receiver, its senders and its host.
pub(super) fn name_of(addr: u64, epoch: u16) -> u64 {
    addr & ((1 << 48) - 1) | (epoch as u64) << 48
}

/// The ranks that have the counters of the shares of a receiver's rings; `None`: itself. Where it is known which nodes share a switch, they are even
/// below each.
pub fn hosts(nodes: &NodeMap, topology: Option<&Topology>, receiver: u32, shares: usize) -> Vec<Option<u32>> {
    let (all, here) = (nodes.nodes(), nodes.node_of(receiver));
    if all <= 2 {
        // With two nodes all senders are on the other one.
        return vec![None; shares];
    }
    let places = match topology {
        Some(topology) => topology.spread((0..all).filter(|node| *node != here), here, shares - 1),
        // The first one behind this node, and the others at even distances from that.
        None => {
            let step = |k: usize| k as u64 * (all as u64 - 1) / (shares as u64 - 1);
            (0..shares - 1).map(|k| ((here as u64 + 1 + step(k)) % all as u64) as u32).collect()
        }
    };
    let host = |node: u32| {
        let there: Vec<u32> = nodes.ranks_on(node).collect();
        there[receiver as usize % there.len()]
    };
    std::iter::once(None).chain(places.into_iter().map(|node| Some(host(node)))).collect()
}

/// The share of a sender: one whose counters it reaches by the device, and of these, one of the nearest.
pub fn share_of(nodes: &NodeMap, topology: Option<&Topology>, hosts: &[Option<u32>], sender: u32) -> usize {
    let (away, here) = (hosts.len().saturating_sub(1), nodes.node_of(sender));
    let node = |k: usize| hosts[k].map(|host| nodes.node_of(host)).filter(|node| *node != here);
    let distance = |k: usize| topology.map_or(0, |topology| node(k).map_or(0, |node| topology.distance(node, here)));
    let all: Vec<usize> = (1..=away).filter(|k| node(*k).is_some()).collect();
    let Some(least) = all.iter().map(|k| distance(*k)).min() else { return 0 };
    // In turn among those; where all are as near, as they are counted.
    let near: Vec<usize> = all.into_iter().filter(|k| distance(*k) == least).collect();
    let wanted = 1 + sender as usize % away;
    match topology {
        None => near.iter().copied().find(|k| *k >= wanted).unwrap_or(near[0]),
        Some(_) => near[sender as usize % near.len()],
    }
}

/// The host of a share, for its receiver.
pub(super) struct Host {
    rank: u32,
    at: Mutex<At>,
    /// Messages taken, as the host knows.
    told: AtomicU64,
}

/// Where the counters are.
#[derive(Clone, Copy, Default)]
enum At {
    #[default]
    Unknown,
    There(&'static Lane, Place),
    /// It is gone, or has no room for them, so nobody has.
    Nowhere,
}

impl Host {
    pub fn new(rank: u32) -> Host {
        Host { rank, at: Mutex::default(), told: AtomicU64::new(0) }
    }

    /// The ring is another communicator's from now on.
    pub fn renew(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = At::Unknown;
        self.told.store(0, Ordering::Relaxed);
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    fn place(&self, share: &RemoteShare<'_>) -> Option<(&'static Lane, Place)> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if let At::Unknown = *at {
            let found = ask(self.rank, endpoint().ok()?.rank, share.name());
            *at = found.map_or(At::Nowhere, |(lane, place)| At::There(lane, place));
        }
        match *at {
            At::There(lane, place) if lane.gone().is_none() => Some((lane, place)),
            _ => None,
        }
    }

    /// So many messages are taken by now. The host is told when a quarter of the slots is free again, or `now`.
    pub fn tell(&self, share: &RemoteShare<'_>, taken: u64, limit: u64, now: bool) {
        let told = self.told.load(Ordering::Relaxed);
        let room = if limit == 0 { share.slots() } else { limit };
        if !now && taken - told.min(taken) < (room / 4).max(1) {
            return;
        }
        let Some((lane, place)) = self.place(share) else { return };
        self.told.store(taken, Ordering::Relaxed);
        if let Some(remote) = lane.remote() {
            // Without a connection no sender has one to it either, or will be told by the next one.
            let _ = remote.link.write_with(place, FREED_AT, || None, |record| record.put(&[taken, limit]));
        }
    }

    /// Does the host know of fewer messages taken than these?
    pub fn is_behind(&self, taken: u64) -> bool {
        self.told.load(Ordering::Relaxed) != taken
    }

    /// Tickets that are given out. `None`: nobody can tell any more.
    pub fn sent(&self, share: &RemoteShare<'_>) -> Option<u64> {
        let (lane, place) = self.place(share)?;
        let remote = lane.remote()?;
        let bounce = remote.fabric().bounce().ok()?;
        let place = Place { addr: place.addr + SENT_AT as u64, ..place };
        let ticket = bounce.post(&remote.link, (false, true), 0, 8, place).ok()?;
        remote.link.wait(ticket).ok()?;
        Some(bounce.word(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(size: u32, nodes: u32) -> NodeMap {
        NodeMap::new(&(0..size).map(|r| r / size.div_ceil(nodes)).collect::<Vec<_>>())
    }

    #[test]
    fn counters_are_even_and_apart() {
        for (size, nodes) in [(12, 3), (40, 5), (64, 16)] {
            let map = blocks(size, nodes);
            for shares in [2, 4, 8] {
                let mut rooms = vec![0; nodes as usize];
                for receiver in 0..size {
                    let hosts = hosts(&map, None, receiver, shares);
                    assert!(hosts[0].is_none() && hosts[1..].iter().all(Option::is_some));
                    for host in hosts.iter().flatten() {
                        assert_ne!(map.node_of(*host), map.node_of(receiver));
                        rooms[map.node_of(*host) as usize] += 1;
                    }
                    let mut members = vec![0; shares];
                    for sender in (0..size).filter(|s| map.node_of(*s) != map.node_of(receiver)) {
                        let k = share_of(&map, None, &hosts, sender);
                        assert!(hosts[k].is_none_or(|host| map.node_of(host) != map.node_of(sender)));
                        members[k] += 1;
                    }
                    // Who has no other is at home: no more than the ranks of a node that has all counters.
                    assert!(members[0] <= size / nodes && (shares == 2 || members[0] == 0), "{members:?}");
                }
                let (least, most) = (rooms.iter().min().unwrap(), rooms.iter().max().unwrap());
                assert!(most - least <= size / nodes, "{rooms:?}");
            }
        }
        let map = blocks(8, 2);
        let none = hosts(&map, None, 0, 4);
        assert!(none.iter().all(Option::is_none) && share_of(&map, None, &none, 7) == 0);
    }

    /// Below each switch there are as many, and a sender looks at one below its own.
    #[test]
    fn counters_are_even_below_switches() {
        let (map, topology) = (blocks(64, 32), Topology::parse("blocks:4,16", 32).unwrap());
        for receiver in 0..64 {
            let here = map.node_of(receiver);
            let hosts = hosts(&map, Some(&topology), receiver, 9);
            let mut below = [0; 8];
            hosts.iter().flatten().for_each(|host| below[map.node_of(*host) as usize / 4] += 1);
            assert_eq!(below, [1; 8], "of rank {receiver}");
            let mut members = [0; 9];
            for sender in (0..64).filter(|s| map.node_of(*s) != here) {
                let k = share_of(&map, Some(&topology), &hosts, sender);
                let (there, from) = (map.node_of(hosts[k].unwrap()), map.node_of(sender));
                assert!(there != from && topology.distance(there, from) <= 1, "{from} looks at {there}");
                members[k] += 1;
            }
            assert!(members[1..].iter().all(|m| (4..=10).contains(m)), "{members:?}");
        }
    }
}
