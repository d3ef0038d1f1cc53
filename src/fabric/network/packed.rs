//! Peers that are not quiet, packed: of one that has sent what nobody receives, and that has no context any more, some 50 bytes are kept in place of
//! a link and the memory that it wrote.
//!
//! Nothing of this is told to the peer. Without a connection and a context it can write nothing here, and what it wants next begins with a packet:
//! then, or when this process wants to speak to it, the link is made again as it was ([`Link::unpacked`]), and nothing above can tell. Packed are
//! only those of which this process has not asked for a lane (so nobody here waits for them), and which have said that something of theirs is
//! under way: all others are forgotten, see [`forget`](super::forget).
//!
//! ```text
//!  blocks, by their first peer: 0 ──▶ [ peer, less the one before | bytes | record ] [ … ] …      a few KiB each, without a gap
//! ```

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::control::{Fabric, Links, Shared};
use super::crowd::Crowd;
use super::handshake::Say;
use super::hello::{Hello, Kind};
use super::link::Link;
use super::link::ending::Reason;
use super::link::packing::{Brief, put, take};
use super::room::Which;
use crate::base::clock::now_ns;
use crate::base::log::{Level, tell};

/// A block that has grown beyond this is split in two.
const BLOCK: usize = 4096;
/// One that has less is joined with the one before it, if both have less than a block then.
const FEW: usize = BLOCK / 4;
/// A link that was packed is looked at after so long.
const LOOK_NS: u64 = 20_000_000;
/// Records of peers, each of less than 64 KiB.
#[derive(Default)]
pub(super) struct Packed {
    blocks: BTreeMap<u32, Box<[u8]>>,
    /// How many there are, and ever were.
    count: usize,
    ever: u64,
    /// There is something to be told all who wait for this process.
    has_news: bool,
}

/// The records of a block, whose key is `first`, in the order of their peers.
fn records(first: u32, mut block: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut peer = first;
    std::iter::from_fn(move || {
        peer += u32::try_from(take(&mut block)?).ok()?;
        let len = usize::try_from(take(&mut block)?).ok()?;
        let (record, rest) = block.split_at(len.min(block.len()));
        block = rest;
        Some((peer, record))
    })
}

/// A block of these records.
fn block_of<'a>(first: u32, records: impl Iterator<Item = (u32, &'a [u8])>) -> Vec<u8> {
    let (mut block, mut before) = (Vec::with_capacity(BLOCK + BLOCK / 8), first);
    for (peer, record) in records {
        put(&mut block, u64::from(peer - before));
        put(&mut block, record.len() as u64);
        block.extend_from_slice(record);
        before = peer;
    }
    block
}

impl Packed {
    /// The key of the block in which this peer is or would be: no peer of it is lower.
    fn key_of(&self, peer: u32) -> Option<u32> {
        self.blocks.range(..=peer).next_back().map(|(first, _)| *first)
    }
    pub fn get(&self, peer: u32) -> Option<&[u8]> {
        let first = self.key_of(peer)?;
        let mut records = records(first, &self.blocks[&first]).skip_while(|(this, _)| *this < peer);
        records.next().filter(|(this, _)| *this == peer).map(|(_, record)| record)
    }
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn ever(&self) -> u64 {
        self.ever
    }
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.blocks.iter().flat_map(|(first, block)| records(*first, block))
    }
    pub fn bytes(&self) -> usize {
        // A block's place in the table beside its own bytes, and what an allocator keeps for it.
        self.blocks.values().map(|block| block.len() + size_of::<(u32, Box<[u8]>)>() + 16).sum()
    }

    pub fn put(&mut self, peer: u32, record: &[u8]) {
        let first = self.key_of(peer).unwrap_or(0);
        let block = self.blocks.remove(&first).unwrap_or_default();
        let others = || records(first, &block).filter(|(this, _)| *this != peer);
        self.count += usize::from(others().count() == records(first, &block).count());
        self.ever += 1;
        let lower = others().take_while(|(this, _)| *this < peer);
        let higher = others().skip_while(|(this, _)| *this < peer);
        let all: Vec<(u32, &[u8])> = lower.chain([(peer, record)]).chain(higher).collect();
        let joined = block_of(first, all.iter().copied());
        if joined.len() <= BLOCK || all.len() == 1 {
            self.blocks.insert(first, joined.into());
            return;
        }
        let (low, high) = all.split_at(all.len() / 2);
        self.blocks.insert(first, block_of(first, low.iter().copied()).into());
        self.blocks.insert(high[0].0, block_of(high[0].0, high.iter().copied()).into());
    }

    pub fn take(&mut self, peer: u32) -> Option<Vec<u8>> {
        let record = self.get(peer)?.to_vec();
        let first = self.key_of(peer)?;
        let block = self.blocks.remove(&first)?;
        let others = || records(first, &block).filter(|(this, _)| *this != peer);
        self.count -= 1;
        let rest = block_of(first, others());
        let before = self.blocks.range(..first).next_back().map(|(key, before)| (*key, before.len()));
        match before.filter(|(_, len)| rest.len() < FEW && len + rest.len() < BLOCK) {
            Some((key, _)) => {
                let joined = block_of(key, records(key, &self.blocks[&key]).chain(others()));
                self.blocks.insert(key, joined.into());
            }
            None if rest.is_empty() => {}
            None => _ = self.blocks.insert(first, rest.into()),
        }
        Some(record)
    }
}

/// Peers whose links were made again of what was packed, since they wanted a connection: as many at a time as strangers are let in, whatever this
/// process has with others. More of them than have contexts wait for these, so that each has its turn, and is packed again.
#[derive(Default)]
pub(super) struct Back {
    peers: HashSet<u32>,
    crowd: Crowd,
}

impl Back {
    fn admits(&mut self, peer: u32, places: usize) -> bool {
        let may = self.crowd.admits(self.peers.len(), 0, places, now_ns());
        if may {
            self.peers.insert(peer);
        }
        may
    }
    /// It is packed again, or forgotten, or this process has asked for it since. Was it one of them?
    pub fn leaves(&mut self, peer: u32) -> bool {
        let was = self.peers.remove(&peer);
        if was {
            self.crowd.one_left(now_ns());
        }
        was
    }
}

impl Fabric {
    /// Peers of which little is kept since nobody receives what they have sent, and how often one came to be that.
    pub fn packed(&self) -> (u64, u64) {
        let links = self.shared.lock();
        (links.packed.len() as u64, links.packed.ever())
    }
    /// What all members of some communicator do together is broken here: peers that are packed, and wait for this process, are told when they ask for
    /// a sign of life.
    pub fn has_news(&self) {
        self.shared.lock().packed.has_news = true;
    }
    /// From here on each peer keeps its link, whatever it has sent: others look at all of them.
    pub fn keep_all(&self) {
        self.shared.keeps_all.store(true, Ordering::Release);
    }
}

impl Shared {
    /// Is there a link with this peer, or was there, which is packed now?
    pub fn has(&self, peer: u32) -> bool {
        let links = self.lock();
        links.by_peer.contains_key(&peer) || links.packed.get(peer).is_some()
    }

    /// Packs the link of a peer, if it can be; called while it is at rest, with no hold of it but the caller's and the table's. `true`: it is gone.
    pub(super) fn packs(&self, link: &Arc<Link>) -> bool {
        if !self.may_pack() || !link.may_be_packed() {
            return false;
        }
        let unmade = self.hooks.get().is_some_and(|hooks| (hooks.has_unmade)(link));
        let mut links = self.lock();
        // Who has it from the table may be about to use it; nobody else can get it now.
        let alone = Arc::strong_count(link) == 2 && link.may_be_packed();
        let record = alone.then(|| link.try_lock().and_then(|posted| link.packed(&posted, unmade))).flatten();
        let Some(record) = record else { return false };
        links.by_peer.remove(&link.peer);
        if !links.back.leaves(link.peer) {
            links.crowd.one_packed(now_ns());
        }
        links.packed.put(link.peer, &record);
        drop(links);
        // Numbers of packets go on where they are highest, as with who is forgotten: what comes late is harmless.
        self.forget_stamps(link.peer);
        tell(Level::Debug, || format!("rank {} is packed into {} bytes", link.peer, record.len()));
        true
    }

    /// This process asks for a lane with the peer, or whether it is there.
    pub(super) fn asks_for(&self, link: &Link) {
        if link.is_asked_for() {
            self.lock().back.leaves(link.peer);
        }
    }

    /// May a peer that is packed have its link again?
    fn comes_back(&self, links: &mut Links, peer: u32) -> bool {
        links.back.admits(peer, self.places[Which::Contexts as usize])
    }

    /// May any link be packed?
    fn may_pack(&self) -> bool {
        !self.keeps_all.load(Ordering::Acquire) && !self.stops()
    }

    /// The link of a peer as it was packed; `named`: one of this life that has nothing but a name.
    pub(super) fn unpacks(&self, record: &[u8], named: impl Fn(u64) -> Link) -> Link {
        let life = Brief::of(record).map_or(0, |brief| brief.said()[0]);
        // It is looked at soon: maybe it is packed again.
        self.due_ns.fetch_min(now_ns() + LOOK_NS, Ordering::AcqRel);
        match named(life).unpacked(record) {
            Some(Ok(link)) => link,
            // Its memory is not to be had now.
            failed => {
                let why = failed.and_then(Result::err).map_or(String::new(), |e| e.detail().to_owned());
                let link = named(life);
                link.fail(Reason::Other, format!("cannot go on with what it has sent ({why})"));
                link
            }
        }
    }

    /// Answers a packet of a peer that is packed where that needs no more. `false`: its link is to be made again, or it has none.
    pub(super) fn answers_packed(&self, hello: &Hello) -> bool {
        let mut links = self.lock();
        let Some(brief) = links.packed.get(hello.from).and_then(Brief::of).filter(|brief| brief.fits(hello.lives))
        else {
            return false;
        };
        let (kind, turn) = match hello.kind {
            // It asks for a sign of life.
            Kind::Say(Say::Retire) if hello.turn <= brief.turn => {
                if links.packed.has_news && self.comes_back(&mut links, hello.from) {
                    return false;
                }
                (Kind::Say(Say::Retired), hello.turn)
            }
            Kind::Open | Kind::Say(Say::Want | Say::Connect) => match self.comes_back(&mut links, hello.from) {
                true => return false,
                false if hello.kind == Kind::Open => (Kind::Later, links.crowd.puts_off(now_ns())),
                false => (Kind::Say(Say::Busy), hello.turn),
            },
            // It knows that this process leaves.
            Kind::Left => {
                links.packed.take(hello.from);
                drop(links);
                self.answered.notify_all();
                return true;
            }
            _ => return false,
        };
        drop(links);
        let answer = Hello { lives: brief.said(), turn, ..self.hello(kind, hello.from) };
        let _ = self.send(&hello.card, &answer);
        self.forget_stamps(hello.from);
        true
    }

    /// Tells the peers that are packed that this process leaves, as far as there is time. Is there one that does not know it?
    pub(super) fn leaves_packed(&self, until_ns: u64) -> bool {
        let all: Vec<(u32, Brief)> = {
            let links = self.lock();
            let briefs = links.packed.all().filter_map(|(peer, record)| Some((peer, Brief::of(record)?)));
            briefs.filter(|(_, brief)| !brief.has_left).collect()
        };
        let card_of = |peer| self.hooks.get().and_then(|hooks| (hooks.card_of)(peer).ok());
        for (peer, brief) in &all {
            if now_ns() >= until_ns {
                break;
            }
            if let Some(card) = card_of(*peer) {
                let _ = self.send(&card, &Hello { lives: brief.said(), ..self.hello(Kind::Leave, *peer) });
            }
        }
        !all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What was put is there until it is taken, whoever else comes and goes; and it takes little more than its bytes.
        #[test]
        fn records_are_kept(does in proptest::collection::vec((any::<bool>(), 0u32..600, 0usize..90), 0..900)) {
            let (mut packed, mut model) = (Packed::default(), BTreeMap::new());
            for (puts, peer, len) in does {
                let peer = peer * 7919;
                if puts {
                    let record: Vec<u8> = (0..len).map(|k| (peer as usize + k) as u8).collect();
                    packed.put(peer, &record);
                    model.insert(peer, record);
                } else {
                    prop_assert_eq!(packed.take(peer), model.remove(&peer));
                }
                prop_assert_eq!(packed.len(), model.len());
                prop_assert_eq!(packed.get(peer), model.get(&peer).map(Vec::as_slice));
            }
            // A head has a byte of length here, and peers are less than 2 M apart but for the first.
            let bytes: usize = model.values().map(|record| record.len() + 4).sum();
            prop_assert!(packed.bytes() <= bytes + (bytes / FEW + 2) * 2 * 40, "{} for {}", packed.bytes(), bytes);
            prop_assert!(packed.all().eq(model.iter().map(|(peer, record)| (*peer, &record[..]))));
        }
    }
}
