//! Messages that are copied into the spool: single ones, which the landing names, and the records of a chain.

use super::*;

/// How long a send waits that ends a long chain until its receiver, which may be just behind, has taken all of it: the landing is free then.
const CHAIN_PATIENCE_NS: u64 = 100_000_000;

impl Sender {
    /// Copies the message into a block and says so in the landing, which is free. `false`: no room.
    pub fn spool_by_landing(&mut self, posted: bool) -> bool {
        debug_assert!(self.flags() & SEND_CHAIN == 0);
        let side = self.lane.send_side(self.slot);
        let need = record_bytes(self.len);
        let spool = &self.ep.spool;
        let old = side.block.get();
        let mut block = None;
        if old.is_some() {
            // Everything is consumed, so the block is done; the same lines again are warm.
            if old.size as usize >= need + BLOCK_HEADER && (old.size as usize) < 4 * (need + BLOCK_HEADER) {
                block = spool.take_again(self.lane.comm(), old, self.len);
            }
            if block.is_none() {
                spool.give_back(old);
                side.block.set(BlockRef::NONE);
            }
        }
        let block = block.or_else(|| spool.take(self.lane.comm(), need, self.len));
        let Some(block) = block.or_else(|| {
            // Between nodes a posted message goes straight into its buffer, if it can be put there, and if that is known: a receive of any
            // index has told of none.
            (posted && (self.claimed || self.lane.remote().is_none_or(|remote| self.is_to_be_fetched(remote))))
                .then(|| spool.take_beyond(self.lane.comm(), need, self.len))?
        }) else {
            return false;
        };
        side.block.set(block);
        let remote = self.lane.remote().map(|remote| (remote, self.remote_keys(remote, block)));
        if let Some((_, None)) = remote {
            spool.give_back(block);
            side.block.set(BlockRef::NONE);
            return false;
        }
        let header = spool.block(block.at);
        self.sign(header);
        // Not part of a chain.
        header.taken.store(self.seq as u32 - 1, Ordering::Relaxed);
        if remote.is_none() {
            // Before the payload: a change of what threads share waits for all stores before it.
            self.lane.count_taken(self.slot, WayTaken::Spool, self.len);
            self.lane.count_apart(self.slot);
        }
        let at = block.at + BLOCK_HEADER as u64;
        self.write_payload(at);
        if let Some((remote, Some(keys))) = remote
            && !self.publish_spooled_remote(remote, at + self.payload_at(), keys)
        {
            return false;
        }
        self.lane.count_spooled(self.slot);
        side.spooled_landing.set(self.seq);
        self.lane.note_spooled(self.slot);
        if remote.is_none() {
            self.land(Kind::Spooled, self.len as u64, at + self.payload_at());
            traced!(self.lane.note_sent(self.slot, WayTaken::Spool.name(), self.len, self.seq));
            self.after_counting();
        } else {
            self.lane.count_apart(self.slot);
        }
        true
    }

    /// Says whose block it is.
    pub fn sign(&self, header: &Block) {
        let place = self.lane.place();
        header.owner.store(self.lane.owner(self.slot, self.lane.world), Ordering::Relaxed);
        header.place.store((place.epoch as u64) << 32 | place.unit as u64, Ordering::Release);
    }

    pub(super) fn payload_at(&self) -> u64 {
        if (self.record_len() as u64) < LONG_LENGTH { 8 } else { 16 }
    }

    #[inline(always)]
    pub(super) fn write_payload(&self, at: u64) {
        if let Some(words) = self.loan {
            for (k, word) in (0..).zip(words) {
                self.word(at + self.payload_at() + 8 * k).store(word, Ordering::Relaxed);
            }
            return;
        }
        if self.payload_at() == 16 {
            self.word(at + 8).store(self.len as u64, Ordering::Relaxed);
        }
        Cursor::new(self.data, 0).by(Copying::Ahead).gather(self.ep.spool.run(at + self.payload_at(), self.len));
    }

    pub(super) fn word(&self, at: u64) -> &crate::base::atomics::AtomicU64 {
        self.ep.spool.word(at)
    }

    /// Appends the message to the chain, beginning one if need be. `false`: no room.
    pub(super) fn chain(&mut self) -> bool {
        let side = self.lane.send_side(self.slot);
        let chained = self.flags() & SEND_CHAIN != 0;
        let spool = &self.ep.spool;
        if chained && self.seq - side.chain_first.get() > CHAIN_MOST {
            return false;
        }
        let mut told = true;
        if !chained || !self.append() {
            let need = record_bytes(self.record_len());
            let Some(block) = self.next_block(need) else { return false };
            let remote = self.lane.remote().map(|remote| (remote, self.remote_keys(remote, block)));
            if let Some((_, None)) = remote {
                spool.give_back(block);
                return false;
            }
            let header = spool.block(block.at);
            self.sign(header);
            header.taken.store(self.seq as u32 - 1, Ordering::Relaxed);
            header.last.store(self.seq as u32, Ordering::Relaxed);
            // SYNC POINT: pairs with `Spool::reclaim`, which compares the two above once it sees this.
            header.first.store(self.seq, Ordering::Release);
            self.write_record(block.at + BLOCK_HEADER as u64, need);
            if chained {
                let link = side.block.get().at + side.used.get();
                let (mut at, mut length) = (block.at, 8);
                if let Some((_, Some(keys))) = remote {
                    (at, length) =
                        (spool.bytes(block.at) as u64, (block.size as usize / 256).min(LONG_LENGTH as usize - 1));
                    self.word(link + 16).store(keys, Ordering::Relaxed);
                }
                self.word(link + 8).store(at, Ordering::Relaxed);
                // SYNC POINT: pairs with the receiver's acquire of the record's word.
                self.word(link).store(record_word(self.seq, Kind::Link, length), Ordering::Release);
                self.leave_behind();
            } else {
                let old = side.block.get();
                if old.is_some() && spool.is_done(old) {
                    spool.give_back(old);
                }
                side.chain_first.set(self.seq);
                self.lane.head(self.lane.out, self.slot).chain.store(block.at, Ordering::Relaxed);
                let tx = &self.mine().tx;
                let sleep = tx.load(Ordering::Relaxed) & 0xff;
                // SYNC POINT: pairs with the receiver's acquire of `tx`.
                tx.store(word24(self.seq, sleep), Ordering::Release);
                if let Some((remote, Some(keys))) = remote {
                    told = self.begin_chain_remote(remote, block, keys);
                }
                self.set_flags(self.flags() | SEND_CHAIN);
            }
            side.block.set(block);
            side.used.set((BLOCK_HEADER + need) as u64);
            self.lane.note_spooled(self.slot);
        }
        if let Some(remote) = self.lane.remote()
            && !(told && remote.tail(self.slot, self.seq).is_ok())
        {
            return false;
        }
        self.lane.count_spooled(self.slot);
        let way = match self.lane.remote() {
            _ if self.loan.is_some() => WayTaken::Loan,
            None if self.is_short() => WayTaken::Short,
            None => WayTaken::Spool,
            Some(_) if self.is_short() => WayTaken::RemoteShort,
            Some(_) => WayTaken::RemoteSpool,
        };
        if !matches!(way, WayTaken::Short | WayTaken::RemoteShort) {
            self.lane.count_apart(self.slot);
        }
        self.sent(way);
        true
    }

    /// Appends the message to the chain's block. `false`: that is full, or the chain long enough.
    #[inline(always)]
    pub(super) fn append(&self) -> bool {
        let side = self.lane.send_side(self.slot);
        let need = record_bytes(self.record_len());
        let (block, used) = (side.block.get(), side.used.get());
        if used as usize + need + LINK_BYTES > block.size as usize || self.seq - side.chain_first.get() > CHAIN_MOST {
            return false;
        }
        let at = block.at + used;
        self.ep.spool.block(block.at).last.store(self.seq as u32, Ordering::Relaxed);
        self.write_record(at, need);
        side.used.set(used + need as u64);
        true
    }

    #[inline(always)]
    pub(super) fn write_record(&self, at: u64, need: usize) {
        // The word behind must not look like a record before it is one.
        self.word(at + need as u64).store(0, Ordering::Relaxed);
        self.write_payload(at);
        let kind = if self.loan.is_some() { Kind::Loan } else { Kind::Spooled };
        // SYNC POINT: pairs with the receiver's acquire of the record's word.
        self.word(at).store(record_word(self.seq, kind, self.record_len()), Ordering::Release);
    }

    /// A block for chained records: one left behind that is done, or a new one, larger than the last.
    pub(super) fn next_block(&self, need: usize) -> Option<BlockRef> {
        let side = self.lane.send_side(self.slot);
        let spool = &self.ep.spool;
        let comm = self.lane.comm();
        let payload = need + LINK_BYTES;
        for behind in &side.behind {
            let old = behind.get();
            if old.is_some() && old.size as usize >= payload + BLOCK_HEADER && spool.is_done(old) {
                let again = spool.take_again(comm, old, old.size as usize);
                behind.set(BlockRef::NONE);
                if again.is_some() {
                    return again;
                }
            }
        }
        let last = if self.flags() & SEND_CHAIN != 0 { side.block.get().size as usize } else { 0 };
        let wish = (last * 4).clamp(512, CHAIN_BLOCK);
        if wish >= payload + BLOCK_HEADER
            && let Some(b) = spool.take(comm, wish - BLOCK_HEADER, wish)
        {
            return Some(b);
        }
        let block = spool.take(comm, payload, need);
        // What is handed over needs no room of the spool's but this, and there are not more of these than loans.
        block.or_else(|| self.loan.and_then(|_| spool.take_beyond(comm, payload, need)))
    }

    /// Remembers the chain's block among those left behind. The one that this pushes out is given back if its receiver is done with it,
    /// and otherwise when room is short.
    pub(super) fn leave_behind(&self) {
        let side = self.lane.send_side(self.slot);
        let oldest = side.behind[1].replace(side.behind[0].replace(side.block.get()));
        if oldest.is_some() && self.ep.spool.is_done(oldest) {
            self.ep.spool.give_back(oldest);
        }
    }

    /// Has the chain all the messages that it may have, and has its receiver taken them, if only after a moment?
    #[inline(always)]
    pub(super) fn ends_chain(&self) -> bool {
        self.flags() & SEND_CHAIN != 0
            && self.seq - self.lane.send_side(self.slot).chain_first.get() > CHAIN_MOST
            && self.consumed_within(CHAIN_PATIENCE_NS)
    }

    #[cold]
    pub(super) fn consumed_within(&self, ns: u64) -> bool {
        let end = now_ns() + ns;
        while !self.consumed_all() {
            if now_ns() >= end {
                return false;
            }
            crate::wait::pause();
        }
        true
    }

    /// Back to the landing: everything in the chain is consumed. The receiver still looks at the block's next word, so the block is
    /// not ours to write until the receiver has seen a landing and marked it done.
    pub(super) fn leave_chain(&self) {
        self.leave_behind();
        self.lane.send_side(self.slot).block.set(BlockRef::NONE);
        self.set_flags(self.flags() & !SEND_CHAIN);
    }

    /// Prepares a publication by the landing when everything before is known to be consumed.
    pub fn take_landing(&self) {
        if self.flags() & SEND_CHAIN != 0 {
            self.leave_chain();
        }
    }
}
