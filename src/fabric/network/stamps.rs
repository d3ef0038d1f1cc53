//! The stamp on each datagram: a number, and the check that only a process of this job can make of it and of all that it says.
//!
//! ```text
//!   0       8      12        16     20   24       32                                          176     192
//!   ┌───────┬──────┬─────────┬──────┬────┬────────┬───────────────────────────────────────────┬───────┐
//!   │ magic │ kind │ version │ from │ to │ number │ what is said, see `hello`                 │ check │
//!   └───────┴──────┴─────────┴──────┴────┴────────┴───────────────────────────────────────────┴───────┘
//! ```
//! This much is the same in every version, so builds that do not fit can still tell each other so. The numbers of a pair and direction grow:
//! a packet that is said again has a new one, and one that has been taken, or is more than [`WINDOW`] behind the latest, is dropped. So what somebody
//! has listened to is of no use to him: not altered, not to another rank, not back to its sender, not again, not in another job or init, whose
//! key is another. What he holds back and brings later is a late packet, and harmless as these are.
//!
//! Of a peer that is forgotten nothing is kept but that all later numbers are higher than any that was ever used: so it takes them, whether it
//! has forgotten this rank or not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::device::DATAGRAM;
use super::hello::{Hello, MAGIC};
use crate::base::key::{CHECK, Key};

/// As many packets may overtake one.
const WINDOW: u64 = 64;
const CHECK_AT: usize = DATAGRAM - CHECK;

/// The stamps of one process.
pub(super) struct Stamps {
    key: Key,
    rank: u32,
    size: u32,
    peers: Mutex<Peers>,
}

#[derive(Default)]
struct Peers {
    known: HashMap<u32, Numbers>,
    /// The highest number said to a peer that is forgotten.
    floor: u64,
}

impl Peers {
    fn of(&mut self, peer: u32) -> &mut Numbers {
        let said = self.floor;
        self.known.entry(peer).or_insert_with(|| Numbers { said, heard: Heard::default() })
    }
}

/// The numbers of both directions with a peer.
#[derive(Default)]
struct Numbers {
    said: u64,
    heard: Heard,
}

/// The latest number that has come, and which of those before it have: bit k stands for the latest less k.
#[derive(Default)]
struct Heard {
    latest: u64,
    seen: u64,
}

impl Heard {
    /// Takes a number; `false`: it has come before, or may have.
    fn take(&mut self, number: u64) -> bool {
        if number > self.latest {
            let ahead = number - self.latest;
            self.seen = if ahead < WINDOW { self.seen << ahead | 1 } else { 1 };
            self.latest = number;
            return true;
        }
        let behind = self.latest - number;
        let bit = if behind < WINDOW { 1 << behind } else { return false };
        let new = self.seen & bit == 0;
        self.seen |= bit;
        // The first number is 1.
        new && number > 0
    }
}

impl Stamps {
    /// Those of a rank of the job with this key, which has said no number above `before`.
    pub fn new(job: &Key, rank: u32, size: u32, before: u64) -> Stamps {
        let peers = Mutex::new(Peers { floor: before, ..Peers::default() });
        Stamps { key: job.derive("datagrams", &[]), rank, size, peers }
    }

    /// The packet with the next number to its receiver.
    pub fn put(&self, hello: &Hello) -> [u8; DATAGRAM] {
        let number = {
            let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
            let numbers = peers.of(hello.to);
            numbers.said += 1;
            numbers.said
        };
        let mut packet = Hello { number, ..*hello }.encode();
        let check = self.key.check(&[&packet[..CHECK_AT]]);
        packet[CHECK_AT..].copy_from_slice(&check);
        packet
    }

    /// What the packet says, if it is one to this rank, from another of this job, and new. What follows the number is meaningful only if
    /// the version is this build's.
    pub fn take(&self, packet: &[u8]) -> Option<Hello> {
        let (said, check) = packet.split_last_chunk::<CHECK>().filter(|(said, _)| said.len() == CHECK_AT)?;
        if said[..8] != MAGIC.to_le_bytes() || !self.key.verifies(&[said], check) {
            return None;
        }
        let hello = Hello::decode(packet)?;
        if hello.to != self.rank || hello.from >= self.size || hello.from == self.rank {
            return None;
        }
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.of(hello.from).heard.take(hello.number).then_some(hello)
    }

    /// A peer is forgotten.
    pub fn forget(&self, peer: u32) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(numbers) = peers.known.remove(&peer) {
            peers.floor = peers.floor.max(numbers.said);
            let room = 2 * peers.known.len();
            peers.known.shrink_to(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::network::hello::tests::sample;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(rank: u32) -> Stamps {
        Stamps::new(&Key::of(b"the job's"), rank, 4, 0)
    }

    fn from_2_to_3() -> Hello {
        Hello { from: 2, to: 3, ..sample() }
    }

    #[test]
    fn what_is_said_arrives_once() {
        let (two, three) = (of(2), of(3));
        let (first, again) = (two.put(&from_2_to_3()), two.put(&from_2_to_3()));
        assert_ne!(first, again, "a repetition has a number of its own");
        let came = three.take(&first).unwrap();
        assert_eq!((came.number, Hello { number: 0, ..came }), (1, Hello { number: 0, ..from_2_to_3() }));
        assert_eq!(three.take(&again).map(|h| h.number), Some(2));
        assert_eq!(three.take(&first).or(three.take(&again)), None, "replayed");
        // Each direction and each peer has numbers of its own.
        assert_eq!(two.take(&three.put(&Hello { from: 3, to: 2, ..sample() })).map(|h| h.number), Some(1));
        assert_eq!(of(1).take(&two.put(&Hello { from: 2, to: 1, ..sample() })).map(|h| h.number), Some(1));
    }

    #[test]
    fn nobody_else_takes_it() {
        let packet = of(2).put(&from_2_to_3());
        assert_eq!(of(2).take(&packet), None, "sent back");
        assert_eq!(of(1).take(&packet), None, "sent to another rank");
        assert_eq!(Stamps::new(&Key::of(b"another job's"), 3, 4, 0).take(&packet), None);
        assert_eq!(of(3).take(&of(3).put(&Hello { from: 3, to: 3, ..sample() })), None, "from oneself");
        assert_eq!(
            of(3).take(&of(2).put(&Hello { from: 4, to: 3, ..sample() })),
            None,
            "from a rank that there is not"
        );
        for len in 0..DATAGRAM {
            assert_eq!(of(3).take(&packet[..len]), None);
        }
    }

    /// All that a stranger can say who knows everything but the key: packets he has heard, altered in any bit, and packets of his own.
    #[test]
    fn forged_with_all_but_the_key() {
        let (two, three) = (of(2), of(3));
        let packet = two.put(&from_2_to_3());
        for bit in 0..8 * DATAGRAM {
            let mut altered = packet;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(three.take(&altered), None, "bit {bit}");
        }
        // The check of one packet under another; all-zero checks; none.
        let other = two.put(&Hello { turn: 99, ..from_2_to_3() });
        let mut mixed = other;
        mixed[CHECK_AT..].copy_from_slice(&packet[CHECK_AT..]);
        assert_eq!(three.take(&mixed), None);
        for n in 1..10_000u64 {
            let mut forged = Hello { number: n, ..from_2_to_3() }.encode();
            assert_eq!(three.take(&forged), None);
            let check = Key::of(&n.to_le_bytes()).check(&[&forged[..CHECK_AT]]);
            forged[CHECK_AT..].copy_from_slice(&check);
            assert_eq!(three.take(&forged), None);
        }
        // None of this has used up a number.
        assert!(three.take(&packet).is_some() && three.take(&other).is_some());
    }

    #[test]
    fn another_version_is_known_as_such() {
        let packet = of(2).put(&Hello { version: 1000, ..from_2_to_3() });
        assert_eq!(of(3).take(&packet).map(|h| h.version), Some(1000));
    }

    proptest! {
        /// Whatever order numbers come in, each is taken at most once, and all that are not far behind are.
        #[test]
        fn a_number_is_taken_once(numbers in proptest::collection::vec(0u64..300, 0..500)) {
            let (mut heard, mut taken) = (Heard::default(), BTreeSet::new());
            for n in numbers {
                let latest = taken.last().copied().unwrap_or(0);
                let fresh = n > 0 && !taken.contains(&n);
                let got = heard.take(n);
                prop_assert!(fresh || !got);
                prop_assert!(got || !fresh || n + WINDOW <= latest);
                if got {
                    taken.insert(n);
                }
            }
        }
    }
}
