//! The overflow queue as its receiver on the same node walks it: from record to record, and by links from block to block.

use super::*;

impl Receiver {
    #[cold]
    pub(super) fn enter_chain(&self) -> bool {
        if let Some(remote) = self.remote() {
            let entered = self.enter_chain_remote(remote);
            if entered {
                self.set_flags(self.flags() | RECV_CHAIN);
            }
            return entered;
        }
        let at = self.lane.head(self.lane.inn, self.slot).chain.load(Ordering::Relaxed);
        // The 24 bits in `tx` may be an old chain's; the block's own number is as wide as it takes.
        let entered = self.enter_block(at);
        if entered {
            self.set_flags(self.flags() | RECV_CHAIN);
        }
        entered
    }

    /// Goes on in the block at an offset of the peer's spool, if that has the next message.
    fn enter_block(&self, at: u64) -> bool {
        let owner = self.lane.owner(self.slot, self.ep.rank);
        let Ok(spool) = self.lane.peer_spool(&self.ep.region) else { return false };
        let Some(block) = spool.chained(at, self.seq, owner) else { return false };
        let side = self.lane.receive_side(self.slot);
        side.block.set(block);
        side.next.set(BLOCK_HEADER as u64);
        true
    }

    #[inline(always)]
    pub(super) fn look_in_chain(&self) -> Option<Found> {
        if let Some(remote) = self.remote() {
            return self.look_in_remote_chain(remote).map(Found::Record);
        }
        let side = self.lane.receive_side(self.slot);
        let (block, next) = (side.block.get(), side.next.get());
        // SYNC POINT: pairs with the release in `Sender::write_record` and of the link.
        let word = block.record(next).load(Ordering::Acquire);
        if word as u32 != self.seq as u32 || word == 0 {
            return None;
        }
        if (word >> 32) as u8 != Kind::Link as u8 {
            return Some(Found::Record(word));
        }
        self.follow_link(block, next)
    }

    /// The chain goes on in another block, which begins with the message that is looked for.
    #[cold]
    fn follow_link(&self, block: PeerBlock, next: u64) -> Option<Found> {
        let at = block.record(next + 8).load(Ordering::Relaxed);
        if !self.enter_block(at) {
            self.break_off("a link of its chain");
            return None;
        }
        block.finish_this();
        let word = self.lane.receive_side(self.slot).block.get().record(BLOCK_HEADER as u64).load(Ordering::Acquire);
        // One link follows another only where the records are damaged.
        if word as u32 == self.seq as u32 && (word >> 32) as u8 != Kind::Link as u8 {
            return Some(Found::Record(word));
        }
        self.break_off("a record of its chain");
        None
    }

    /// The block of the chain will not be looked at again.
    pub(super) fn finish_block(&self) {
        if let Some(remote) = self.remote() {
            return self.finish_block_remote(remote);
        }
        self.lane.receive_side(self.slot).block.get().finish_this();
    }

    pub(super) fn take_record(&self, word: u64) -> Result<usize> {
        if let Some(remote) = self.remote() {
            return self.take_remote_record(remote);
        }
        let side = self.lane.receive_side(self.slot);
        let (block, at) = (side.block.get(), side.next.get());
        if is_loan(Found::Record(word)) {
            if !block.has_record(at, 16) {
                return Err(self.garbled("a record of its chain"));
            }
            let words = [8, 16].map(|k| block.record(at + k).load(Ordering::Relaxed));
            side.next.set(at + record_bytes(16) as u64);
            return self.take_loan(words);
        }
        let short = word >> 40;
        let (len, payload) =
            if short < LONG_LENGTH { (short, 8) } else { (block.record(at + 8).load(Ordering::Relaxed), 16) };
        let from = block.bytes(at + payload, len).filter(|_| block.has_record(at, len));
        let kind = (word >> 32) as u8 == Kind::Spooled as u8;
        let Some(from) = from.filter(|_| kind) else { return Err(self.garbled("a record of its chain")) };
        let len = len as usize;
        Cursor::new(self.data, 0).scatter(from.first(self.cap));
        side.next.set(at + record_bytes(len) as u64);
        Ok(len)
    }
}
