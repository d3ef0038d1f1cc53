//! What two processes say to each other over datagrams: where their memory lies, and about their connection. Each packet is repeated until
//! it is answered, and taking one in twice changes nothing.
//!
//! All packets carry a number and a check, see [`stamps`](super::stamps), and otherwise the same: where the sender is reached, its end of the connection, and where a lane's page and a chunk of its
//! fronts lie, with their keys; the kind says which of it is meant.

use super::device::{Address, DATAGRAM, End, Place};
use super::handshake::Say;
use super::link::memory::Told;
use super::room::Which;
use super::ways::Way;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"FMPLverb");

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// "Here is my memory; where is yours?"
    Open,
    /// The answer: "Here."
    Opened,
    /// "I will not have you": another build.
    Refuse,
    /// Of the connection of some turn.
    Say(Say),
    /// "I have finalized."
    Leave,
    /// The answer: "I know."
    Left,
    /// "Are you there?"
    Probe,
    /// The answer: "Yes."
    Probed,
    /// To a process of the same node: "I need one of your places."
    Yield(Which),
    /// "Our connection has failed here, for good", and why (in place of the turn). Not answered; said again whenever the peer speaks of the
    /// connection.
    Broken,
    /// "Let us forget each other: nothing of mine is under way." Of an attempt (in place of the turn).
    Forget,
    /// The answer, for an attempt: "Something is, or somebody here is about to use it",
    Kept,
    /// or: "You are forgotten." Also to who speaks of what was forgotten.
    Forgotten,
    /// The answer to [`Kind::Open`] of a stranger where too many are known: "I am here; ask again in so many milliseconds" (in place of the turn).
    /// Nothing is kept of it.
    Later,
}

const KINDS: [Kind; 21] = [
    Kind::Open,
    Kind::Opened,
    Kind::Refuse,
    Kind::Leave,
    Kind::Left,
    Kind::Yield(Which::Pairs),
    Kind::Yield(Which::Contexts),
    Kind::Broken,
    Kind::Say(Say::Want),
    Kind::Say(Say::Connect),
    Kind::Say(Say::Accept),
    Kind::Say(Say::Confirm),
    Kind::Say(Say::Busy),
    Kind::Say(Say::Retire),
    Kind::Say(Say::Retired),
    Kind::Probe,
    Kind::Probed,
    Kind::Forget,
    Kind::Kept,
    Kind::Forgotten,
    Kind::Later,
];

/// The ways that a packet can name.
const ON_THE_WIRE: [Way; 3] = [Way::Connected, Way::Shared, Way::Ring];

/// Where a process answers datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// As its network has it.
    pub address: Address,
}

/// In front of a published card.
const CARD: &[u8; 4] = b"FMv5";

impl Card {
    /// As it is published with the launcher, beside the network on which it holds.
    pub fn encode(&self, network: &str) -> Vec<u8> {
        [CARD.as_slice(), &self.address.0, network.as_bytes()].concat()
    }
    /// As it was published, if it is a card.
    pub fn decode(b: &[u8]) -> Option<(Card, String)> {
        let (address, network) = b.strip_prefix(CARD)?.split_first_chunk()?;
        Some((Card { address: Address(*address) }, String::from_utf8_lossy(network).into_owned()))
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub kind: Kind,
    pub version: u32,
    pub from: u32,
    pub to: u32,
    /// Which of the sender's to this receiver.
    pub number: u64,
    /// Where the sender answers.
    pub card: Card,
    /// The sender's life with the receiver, and the receiver's as the sender knows it, see `forget`; 0: none, or unknown.
    pub lives: [u64; 2],
    /// Which turn of the connection; of [`Kind::Broken`] the reason.
    pub turn: u32,
    /// By which way it goes, or is to go; and is it a connection that the sender has kept? Of [`Say::Busy`]: has no place come free there for long?
    pub way: Way,
    pub kept: bool,
    /// The sender's end of it.
    pub end: End,
    /// Indices that the sender has.
    pub indices: u32,
    /// Where a lane's page and a chunk of its fronts lie.
    pub memory: Option<Told>,
}

/// For which rank a packet is, as it says itself.
pub fn addressee(packet: &[u8; DATAGRAM]) -> Option<u32> {
    Hello::decode(packet).map(|hello| hello.to)
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let all = std::mem::take(&mut self.0);
        let (to, rest) = all.split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        self.0 = rest;
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, rest) = self.0.split_at_checked(N)?;
        self.0 = rest;
        now.try_into().ok()
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

impl Hello {
    pub fn encode(&self) -> [u8; DATAGRAM] {
        let mut b = [0u8; DATAGRAM];
        let mut w = Writer(&mut b);
        w.put(&MAGIC.to_le_bytes());
        let kind = KINDS.iter().position(|k| *k == self.kind).unwrap_or(0) as u32;
        let by = ON_THE_WIRE.iter().position(|way| *way == self.way).unwrap_or(0) as u32;
        for n in [kind | by << 16 | u32::from(self.kept) << 31, self.version, self.from, self.to] {
            w.put(&n.to_le_bytes());
        }
        w.put(&self.number.to_le_bytes());
        w.put(&self.turn.to_le_bytes());
        w.put(&self.card.address.0);
        w.put(&self.end.0);
        w.put(&self.indices.to_le_bytes());
        self.lives.iter().for_each(|life| w.put(&life.to_le_bytes()));
        if let Some(told) = &self.memory {
            w.put(&told.era.to_le_bytes());
            w.put(&told.lane.to_le_bytes());
            w.put(&told.chunk.to_le_bytes());
            for p in [told.page, told.fronts] {
                w.put(&p.addr.to_le_bytes());
                w.put(&p.rkey.to_le_bytes());
            }
        }
        b
    }

    /// Takes a packet apart; `None`: it is none of ours. What follows the version is meaningful only if that is this build's.
    pub fn decode(b: &[u8]) -> Option<Hello> {
        if b.len() != DATAGRAM {
            return None;
        }
        let mut r = Reader(b);
        if r.u64()? != MAGIC {
            return None;
        }
        let said = r.u32()?;
        let (kind, way) = (*KINDS.get(said as usize & 0xffff)?, *ON_THE_WIRE.get(said as usize >> 16 & 0x7fff)?);
        let kept = said >> 31 != 0;
        let (version, from, to, number, turn) = (r.u32()?, r.u32()?, r.u32()?, r.u64()?, r.u32()?);
        let (card, end) = (Card { address: Address(r.take()?) }, End(r.take()?));
        let (indices, lives) = (r.u32()?, [r.u64()?, r.u64()?]);
        let (era, lane, chunk) = (r.u32()?, r.u64()?, r.u32()?);
        let page = Place { addr: r.u64()?, rkey: r.u32()? };
        let fronts = Place { addr: r.u64()?, rkey: r.u32()? };
        // Nothing lies at address 0.
        let memory = (page.addr != 0).then_some(Told { era, lane, chunk, page, fronts });
        Some(Hello { kind, version, from, to, turn, way, kept, number, card, end, indices, lives, memory })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fabric::network::device::OPAQUE;
    use proptest::prelude::*;

    pub fn sample() -> Hello {
        let (card, end) = (Card { address: Address([9; OPAQUE]) }, End([8; OPAQUE]));
        let (page, fronts) = (Place { addr: 1 << 40, rkey: 5 }, Place { addr: 7 << 33, rkey: 6 });
        Hello {
            kind: Kind::Say(Say::Accept),
            turn: 5,
            way: Way::Shared,
            kept: true,
            version: 1,
            from: 2,
            to: 3,
            number: 1 << 50,
            card,
            end,
            indices: 99,
            lives: [7, 1 << 40],
            memory: Some(Told { era: 6, lane: 1 << 63, chunk: 4, page, fronts }),
        }
    }

    #[test]
    fn packets_come_back_as_they_went() {
        let hello = sample();
        let silent = Hello { kind: Kind::Yield(Which::Contexts), memory: None, ..hello };
        assert_eq!(Hello::decode(&silent.encode()), Some(silent));
        let b = hello.encode();
        assert_eq!(Hello::decode(&b), Some(hello));
        assert_eq!(Hello::decode(&b[1..]), None);
        assert_eq!(Hello::decode(&[0; DATAGRAM]), None);
        assert_eq!(Card::decode(&hello.card.encode("a network")), Some((hello.card, "a network".to_owned())));
        assert_eq!(Card::decode(b"garbage"), None);
    }

    proptest! {
        /// Of any bytes nothing is taken but what says the same when it is put together again.
        #[test]
        fn any_bytes(mut b in proptest::collection::vec(any::<u8>(), DATAGRAM), kind in 0u8..24, way in 0u8..4, magic: bool) {
            if magic {
                b[..8].copy_from_slice(&MAGIC.to_le_bytes());
                b[8..12].copy_from_slice(&[kind, 0, way, 0]);
            }
            match Hello::decode(&b) {
                Some(hello) => {
                    prop_assert!(magic && (kind as usize) < KINDS.len());
                    prop_assert_eq!(Hello::decode(&hello.encode()), Some(hello));
                }
                None => prop_assert!(!magic || kind as usize >= KINDS.len() || way as usize >= ON_THE_WIRE.len()),
            }
        }
    }
}
