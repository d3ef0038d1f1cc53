//! A remote lane's view: what the peer has written into the fronts is taken over from there by whoever looks.

use std::sync::atomic::Ordering;

use super::front::{CHAIN_AT, PENDING, TAIL_AT, sum};
use super::{ChainStart, NAPS, Remote};
use crate::base::atomics::AtomicU32;
use crate::base::error::Result;
use crate::base::rules::{Rule, holds};
use crate::lane::Lane;
use crate::lane::record::{Half, Land, PostingKind, WANTS, word24};
use crate::wait::mark_asleep;

impl Lane {
    /// The remote part; `None`: the peer is on this node.
    #[inline(always)]
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_deref()
    }

    /// Makes sure that a slot's fronts are there, on both sides, where the peer is on another node.
    pub fn open_fronts(&self, slot: usize) -> Result<()> {
        self.remote().map_or(Ok(()), |remote| remote.open_slot(slot))
    }

    /// How often a wait for this peer sleeps by the clock before it says so.
    pub fn naps(&self) -> u32 {
        if self.remote().is_some() { NAPS } else { 0 }
    }

    /// Longest time for which a wait for this peer may sleep without tending the connection.
    pub fn tend_within_ns(&self) -> u64 {
        self.remote().map_or(u64::MAX, |remote| remote.link.tend_within_ns())
    }

    /// Says to the peer that a thread sleeps, by this word on a node. `false`: there is no way to say so.
    pub fn fall_asleep(&self, word: Option<&AtomicU32>) -> bool {
        match self.remote() {
            Some(remote) => {
                remote.fall_asleep();
                true
            }
            None => word.map(mark_asleep).is_some(),
        }
    }

    /// Does the peer receive from any index, so that it wants to be told of each?
    pub fn is_subscribed(&self) -> bool {
        match self.remote() {
            None => self.peer_side().any.load(Ordering::Relaxed) != 0,
            Some(remote) => remote.is_subscribed(),
        }
    }

    /// Takes over what the peer has published for message `seq`, which is waited for, if that is there and whole.
    pub fn take_over_incoming(&self, slot: usize, seq: u64) {
        let Some(remote) = self.remote() else { return };
        let Some(front) = remote.front(slot) else { return };
        let view: &Half = self.receiving(slot).0;
        let land = Land(front.landing[0].load(Ordering::Acquire));
        if land.is(seq, self.epoch)
            && view.landing() != land
            && let Some([ack, first, second, _]) = front.whole_landing(land)
        {
            view.data[0].store(first, Ordering::Relaxed);
            view.data[1].store(second, Ordering::Relaxed);
            if let Some(mine) = remote.slot(slot) {
                mine.acked.fetch_max(ack, Ordering::AcqRel);
            }
            view.publish(land);
        }
        if let Some(annexed) = remote.annexed(slot, seq, self.epoch)
            && view.landing() != annexed.land
        {
            view.data[0].store(annexed.len, Ordering::Relaxed);
            view.data[1].store(annexed.part, Ordering::Relaxed);
            if let Some(mine) = remote.slot(slot) {
                mine.acked.fetch_max(annexed.ack, Ordering::AcqRel);
            }
            view.publish(annexed.land);
        }
        if front.chain[0].load(Ordering::Acquire) == seq && remote.chain_start(slot).is_some_and(|s| s.first == seq) {
            view.tx.store(word24(seq, 0), Ordering::Release);
        }
        let mark = front.mark.load(Ordering::Acquire);
        if mark != 0 {
            let mark = if mark & 3 == PENDING { mark - PENDING + WANTS } else { mark };
            self.head(self.inn, slot).mark.store(mark, Ordering::Release);
        }
    }

    /// Takes over what the peer has said about this side's messages: acknowledgements, and its posting if that is whole.
    pub fn take_over_outgoing(&self, slot: usize) {
        let Some(remote) = self.remote() else { return };
        let (Some(front), Some(mine)) = (remote.front(slot), remote.slot(slot)) else { return };
        let mut acked = remote.told(slot, front).load(Ordering::Acquire).max(mine.acked.load(Ordering::Acquire));
        let view = self.posting_there(slot);
        if front.posting[7].load(Ordering::Acquire) != mine.posting_seen.load(Ordering::Relaxed)
            && let Some(words) = front.whole_posting()
        {
            if words[2] as u8 != PostingKind::Contiguous as u8 {
                let shape = self.shape(self.out, slot);
                shape.run.store(words[4], Ordering::Relaxed);
                shape.count.store(words[5], Ordering::Relaxed);
                shape.stride.store(words[6], Ordering::Relaxed);
            }
            view.addr.store(words[0], Ordering::Relaxed);
            view.cap.store(words[1], Ordering::Relaxed);
            view.meta.store(words[2], Ordering::Relaxed);
            view.seq.store(words[3], Ordering::Release);
            mine.posting_seen.store(words[7], Ordering::Relaxed);
        }
        acked = acked.max(view.seq.load(Ordering::Relaxed).saturating_sub(1));
        let acked = mine.acked.fetch_max(acked, Ordering::AcqRel).max(acked);
        self.sending(slot).1.rx.store(word24(acked, 0), Ordering::Release);
        let (theirs, mine) = (&remote.page().side, self.peer_side());
        mine.any.store(theirs.any.load(Ordering::Acquire), Ordering::Release);
        mine.state.store(theirs.state.load(Ordering::Acquire), Ordering::Release);
    }
}

impl Remote {
    /// Would a message on this slot leave now? Otherwise a connection is asked for.
    pub fn is_ready(&self, slot: usize) -> bool {
        self.link.is_there() && self.chunk(slot).is_some_and(|chunk| self.link.place_of(&chunk.window).is_some())
    }

    /// All of this side's messages on a slot up to this one are received, as the peer has said.
    pub fn acked(&self, slot: usize) -> u64 {
        let Some(front) = self.front(slot) else { return 0 };
        let land = Land(front.landing[0].load(Ordering::Acquire));
        let told = self.told(slot, front).load(Ordering::Acquire);
        let told = front.whole_landing(land).map_or(0, |[ack, ..]| ack).max(told);
        // Whoever posts for a message has all before it.
        told.max(front.whole_posting().map_or(0, |posting| posting[3].saturating_sub(1)))
    }

    /// Message `seq` is in the chain.
    pub fn tail(&self, slot: usize, seq: u64) -> Result<()> {
        self.write(slot, TAIL_AT, |_, record| record.put(&[seq]))
    }
    /// A chain begins.
    pub fn begin_chain(&self, slot: usize, start: ChainStart) -> Result<()> {
        self.write(slot, CHAIN_AT, |_, record| {
            let key = start.key as u64 | (start.generation as u64) << 32;
            let mut words = [start.first, start.addr, key, (start.size / 64) & 0xffff_ffff];
            words[3] |= sum(CHAIN_AT as u64, &words) << 32;
            record.put(&words);
        })
    }
    /// Where the chain begins that the peer told of last.
    pub fn chain_start(&self, slot: usize) -> Option<ChainStart> {
        let front = self.front(slot)?;
        let mut words = [0u64; 4];
        words.iter_mut().zip(&front.chain).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        let check = words[3] >> 32;
        words[3] &= 0xffff_ffff;
        let whole = sum(CHAIN_AT as u64, &words) & 0xffff_ffff == check || !holds(Rule::WholeQueue);
        whole.then_some(ChainStart {
            first: words[0],
            addr: words[1],
            key: words[2] as u32,
            generation: (words[2] >> 32) as u32,
            size: words[3] * 64,
        })
    }
    /// How far the peer's chain has come.
    pub fn chain_tail(&self, slot: usize) -> u64 {
        self.front(slot).map_or(0, |f| f.tail.load(Ordering::Acquire))
    }
}
