//! Peers that are not quiet, packed: of one that has sent what nobody receives, and that has no context any more, some 50 bytes are kept in place of
//! a link and the memory that it wrote.
//!
//! Nothing of this is told to the peer. Without a connection and a context it can write nothing here, and what it wants next begins with a packet:
//! then, or when this process wants to speak to it, the link is made again as it was ([`Link::unpacked`]), and nothing above can tell. Packed are
//! only those of which this process has not asked for a lane (so nobody here waits for them), and which have said that something of theirs is
//! under way: all others are forgotten, see [`forget`](super::forget).
//!
//! ```text
//!  blocks, by their first peer: 0 ──▶ [ peer 4 | bytes 2 | record ] [ peer | bytes | record ] …      a few KiB each, without a gap
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::control::{Fabric, Shared};
use super::handshake::Say;
use super::hello::{Hello, Kind};
use super::link::Link;
use super::link::ending::Reason;
use super::link::packing::Brief;
use crate::base::clock::now_ns;
use crate::base::log::{Level, tell};

/// A block that has grown beyond this is split in two.
const BLOCK: usize = 4096;
/// One that has less is joined with the one before it, if both have less than a block then.
const FEW: usize = BLOCK / 4;
/// A link that was packed is looked at after so long.
const LOOK_NS: u64 = 20_000_000;
/// Bytes in front of a record.
const HEAD: usize = 6;

/// Records of peers, each of less than 64 KiB.
#[derive(Default)]
pub(super) struct Packed {
    blocks: BTreeMap<u32, Box<[u8]>>,
    /// How many there are, and ever were.
    count: usize,
    ever: u64,
}

/// Where a record is in its block, or would be.
struct At {
    from: usize,
    to: usize,
    is_there: bool,
}

fn find(block: &[u8], peer: u32) -> At {
    let mut from = 0;
    while let Some((head, rest)) = block[from..].split_first_chunk::<HEAD>() {
        let [a, b, c, d, e, f] = *head;
        let (this, len) = (u32::from_le_bytes([a, b, c, d]), usize::from(u16::from_le_bytes([e, f])));
        debug_assert!(len <= rest.len());
        if this >= peer {
            return At { from, to: from + if this == peer { HEAD + len } else { 0 }, is_there: this == peer };
        }
        from += HEAD + len;
    }
    At { from, to: from, is_there: false }
}

impl Packed {
    /// The first peer of the block in which this one is or would be.
    fn block_of(&self, peer: u32) -> Option<u32> {
        self.blocks.range(..=peer).next_back().map(|(first, _)| *first)
    }
    pub fn get(&self, peer: u32) -> Option<&[u8]> {
        let block = &self.blocks[&self.block_of(peer)?];
        let at = find(block, peer);
        at.is_there.then(|| &block[at.from + HEAD..at.to])
    }
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn ever(&self) -> u64 {
        self.ever
    }
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.blocks.values().flat_map(|block| {
            let mut rest = &block[..];
            std::iter::from_fn(move || {
                let ([a, b, c, d, e, f], after) = rest.split_first_chunk::<HEAD>()?;
                let (record, others) = after.split_at(usize::from(u16::from_le_bytes([*e, *f])));
                rest = others;
                Some((u32::from_le_bytes([*a, *b, *c, *d]), record))
            })
        })
    }
    pub fn bytes(&self) -> usize {
        // A block's place in the table beside its own bytes, and what an allocator keeps for it.
        self.blocks.values().map(|block| block.len() + size_of::<(u32, Box<[u8]>)>() + 16).sum()
    }

    pub fn put(&mut self, peer: u32, record: &[u8]) {
        let len = u16::try_from(record.len()).expect("a short record");
        let first = self.block_of(peer).unwrap_or(0);
        let block = self.blocks.remove(&first).unwrap_or_default();
        let At { from, to, is_there } = find(&block, peer);
        let head = [&peer.to_le_bytes()[..], &len.to_le_bytes()].concat();
        let parts = [&block[..from], &head, record, &block[to..]].concat();
        self.count += usize::from(!is_there);
        self.ever += 1;
        if parts.len() <= BLOCK {
            self.blocks.insert(first, parts.into());
            return;
        }
        let mut at = 0;
        while at < parts.len() / 2 {
            at += HEAD + usize::from(u16::from_le_bytes([parts[at + 4], parts[at + 5]]));
        }
        let (low, high) = parts.split_at(at);
        self.blocks.insert(first, low.into());
        if let Some(first) = high.first_chunk().map(|peer| u32::from_le_bytes(*peer)) {
            self.blocks.insert(first, high.into());
        }
    }

    pub fn take(&mut self, peer: u32) -> Option<Vec<u8>> {
        let first = self.block_of(peer)?;
        let block = &self.blocks[&first];
        let At { from, to, is_there } = find(block, peer);
        let record = is_there.then(|| block[from + HEAD..to].to_vec())?;
        let rest = [&block[..from], &block[to..]].concat();
        self.count -= 1;
        self.blocks.remove(&first);
        let before = self.blocks.range(..first).next_back().map(|(first, before)| (*first, before.len()));
        match before.filter(|(_, len)| rest.len() < FEW && len + rest.len() <= BLOCK) {
            Some((before, _)) if !rest.is_empty() => {
                let joined = [&self.blocks[&before][..], &rest].concat();
                self.blocks.insert(before, joined.into());
            }
            Some(_) => {}
            None if rest.is_empty() => {}
            None => _ = self.blocks.insert(first, rest.into()),
        }
        Some(record)
    }
}

impl Fabric {
    /// Peers of which little is kept since nobody receives what they have sent, and how often one came to be that.
    pub fn packed(&self) -> (u64, u64) {
        let links = self.shared.lock();
        (links.packed.len() as u64, links.packed.ever())
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
        let mut links = self.lock();
        // Who has it from the table may be about to use it; nobody else can get it now.
        let alone = Arc::strong_count(link) == 2 && link.may_be_packed();
        let record = alone.then(|| link.try_lock().and_then(|posted| link.packed(&posted))).flatten();
        let Some(record) = record else { return false };
        links.by_peer.remove(&link.peer);
        links.packed.put(link.peer, &record);
        links.back.has_room(now_ns());
        drop(links);
        // Numbers of packets go on where they are highest, as with who is forgotten: what comes late is harmless.
        self.forget_stamps(link.peer);
        tell(Level::Debug, || format!("rank {} is packed into {} bytes", link.peer, record.len()));
        true
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
            Kind::Say(Say::Retire) if hello.turn <= brief.turn => (Kind::Say(Say::Retired), hello.turn),
            Kind::Open | Kind::Say(Say::Want | Say::Connect) => {
                let known = links.by_peer.len();
                match self.admits(&mut links.back, known) {
                    true => return false,
                    false if hello.kind == Kind::Open => (Kind::Later, links.crowd.puts_off(now_ns())),
                    false => (Kind::Say(Say::Busy), hello.turn),
                }
            }
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
            let bytes: usize = model.values().map(|record| record.len() + HEAD).sum();
            prop_assert!(packed.bytes() <= bytes + (bytes / FEW + 2) * 2 * 40, "{} for {}", packed.bytes(), bytes);
            prop_assert!(packed.all().eq(model.iter().map(|(peer, record)| (*peer, &record[..]))));
        }
    }
}
