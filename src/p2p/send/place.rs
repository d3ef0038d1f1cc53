//! Where a message goes that does not wait for its receive: the landing, an eager slot, the overflow queue, the spool.

use super::*;
use crate::base::error::error;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::record::PostingKind;

/// The longest message that all of the spool's window can hold, with what stands before it.
const LONGEST: usize = SPOOL_WINDOW - (64 << 10);

impl Sender {
    /// Sends a short message without waiting. `false`: the spool has no room.
    pub fn place_short(&mut self) -> bool {
        let flags = self.flags();
        if let Some(remote) = self.lane.remote()
            && self.by_annex(remote)
        {
            return true;
        }
        if flags & SEND_CHAIN != 0 {
            let stays = match self.lane.remote() {
                None => !self.lane.progress(self.slot).is_two_way() || !self.consumed_soon(),
                // Every record of a chain costs its receiver a fetch.
                Some(remote) => !self.consumed_remote(remote),
            };
            if stays && !self.ends_chain() {
                return self.chain();
            }
            // The traffic goes both ways again: back to the landing, where a message costs one line.
            self.leave_chain();
        } else if !self.lane.remote().map_or_else(|| self.consumed_all(), |remote| self.consumed_remote(remote)) {
            return self.chain();
        }
        if let Some(remote) = self.lane.remote() {
            return self.place_remote(remote);
        }
        if let Some([first, second]) = self.loan {
            self.publish(WayTaken::Loan, Kind::Loan, first, second);
            return true;
        }
        if self.len <= INLINE_BYTES {
            let words: [u64; 2] = Cursor::new(self.data, 0).gather_words();
            let mine = self.mine();
            mine.data[0].store(words[0], Ordering::Relaxed);
            mine.data[1].store(words[1], Ordering::Relaxed);
            let land = Land::new(self.seq, self.got(), Kind::Inline, self.len, self.lane.epoch);
            mine.publish(if self.now { land.now() } else { land });
            self.sent(WayTaken::Short);
            return true;
        }
        if self.len <= self.ep.tuning.annex {
            fill_annex(
                self.lane,
                self.slot,
                self.seq,
                self.len,
                self.now,
                || Cursor::new(self.data, 0).gather_words(),
                |at, to| Cursor::new(self.data, at).gather(to),
            );
            self.sent(WayTaken::Short);
            return true;
        }
        self.spool_by_landing(false)
    }

    /// As [`Sender::place_short`], for a message whose sender then waits until it is known to be received.
    pub fn place_synchronous(&mut self) -> bool {
        self.now = true;
        self.place_short()
    }

    /// As [`Sender::place_short`], for a synchronous message of any length, if it can have a receive of any index that is posted: which
    /// is all that it waits for. Nobody is in a wait there, so there is no shorter way than the spool.
    pub fn place_claimed(&mut self) -> bool {
        let claims = || {
            any_index::is_posted(self.lane) && self.consumed_all() && any_index::claim(self.lane, self.slot, self.seq)
        };
        self.claimed = self.claimed || claims();
        self.claimed && (self.is_short() && self.place_short() || self.spool())
    }

    /// Copies a message of any length into the spool and publishes it. `false`: no room. What is posted for has room beyond the
    /// limit: it leaves the spool as soon as its receiver looks, and two ranks that wait for each other's long messages, neither of
    /// which has another way, must not wait for ever.
    pub fn spool(&mut self) -> bool {
        let posted = self.claimed || self.posting().is(self.seq);
        if self.len > self.ep.spool.budget(self.lane.comm()).limit() && !posted {
            return false;
        }
        if self.consumed_all() || self.ends_chain() {
            self.take_landing();
            self.spool_by_landing(posted)
        } else {
            self.chain()
        }
    }

    /// Sent without waiting for its receive, but longer than all of the spool: only what is posted finds room.
    pub fn fits_nowhere(&self) -> bool {
        self.is_short() && self.len > self.ep.spool.budget(self.lane.comm()).limit()
    }

    /// An error if a receiver on another node can have no message of this side's spool, be there room or not.
    pub fn check_key(&self) -> Result<()> {
        // What is under way will make some memory free.
        if self.unkeyed && self.ep.spool.is_unused() {
            return Err(self.no_key());
        }
        if self.len > LONGEST && self.is_fetched() { Err(self.too_long()) } else { Ok(()) }
    }

    /// Is its receive, on another node, there, and such that the message cannot be put?
    #[cold]
    fn is_fetched(&self) -> bool {
        self.lane.remote().is_some_and(|remote| self.claimed || self.is_to_be_fetched(remote))
    }

    #[cold]
    fn too_long(&self) -> Error {
        let posting = self.lane.remote().and_then(|remote| remote.posting(self.slot, self.seq));
        let (why, advice) = match posting {
            Some(posting) if posting.kind() == PostingKind::Contiguous as u8 => {
                ("no device can write where it is received", "send it in parts")
            }
            _ => ("it is received in pieces, or on any index", "receive it as one run, on its index"),
        };
        error!(
            Code::Memory,
            "rank {}: send of {} bytes to {}: {why}, so it goes through the spool, which has room for {LONGEST} bytes at most; {advice}",
            self.ep.rank,
            self.len,
            self.lane.name(self.index())
        )
    }

    #[cold]
    fn no_key(&self) -> Error {
        lend::no_key(self.ep.rank, self.len, &self.lane.name(self.index()).to_string())
    }

    #[cold]
    pub fn spool_full(&self) -> Error {
        if self.unkeyed {
            return self.no_key();
        }
        let budget = self.ep.spool.budget(self.lane.comm());
        error!(
            Code::SpoolFull,
            "rank {}: send of {} bytes to {}: {} of {} bytes of the spool are taken; fmpl_sendbuf_set makes it larger",
            self.ep.rank,
            self.len,
            self.lane.name(self.index()),
            budget.used(),
            budget.limit()
        )
    }
}
