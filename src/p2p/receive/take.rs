//! Taking a message that was found: its bytes come over, it is counted, and its sender told.

use super::awaiting::Splitting;
use super::short::{annex_of, received_annex};
use super::*;
use crate::base::error::error;

/// Where a message was found.
#[derive(Clone, Copy)]
pub(in crate::p2p) enum Found {
    Landing(Land),
    /// The word of its record in the chain.
    Record(u64),
}

impl Found {
    /// Does the landing say that the message is in the spool?
    pub fn is_spooled(self) -> bool {
        matches!(self, Found::Landing(land) if land.kind() == Kind::Spooled as u8)
    }
}

/// Is it handed over? (Not between nodes.)
pub(super) fn is_loan(found: Found) -> bool {
    let kind = match found {
        Found::Landing(land) => land.kind(),
        Found::Record(word) => (word >> 32) as u8,
    };
    kind == Kind::Loan as u8
}

impl Receiver {
    /// Takes a message that was found: delivers it, counts it, acknowledges it.
    pub fn take(&self, found: Found) -> Result<()> {
        if is_loan(found) {
            self.ep.loans.may_hold(self.lane.peer.as_ref())?;
        } else if self.wants_loan {
            return self.take_into_loan(found);
        }
        let taken = match found {
            Found::Landing(land) => self.take_landing(land),
            Found::Record(word) => self.take_record(word),
        };
        let progress = self.lane.progress(self.slot);
        if let Found::Landing(land) = found {
            progress.note_acked(land, self.theirs());
        }
        progress.count_received(self.seq);
        let len = match &taken {
            Ok(len) => *len,
            Err(_) => 0,
        };
        self.lane.note_len(self.lane.progress(self.slot), self.slot, len);
        traced!(self.lane.note_received(self.slot, len, self.seq));
        match found {
            Found::Landing(land) => {
                let mine = self.mine();
                mine.acknowledge(self.seq, mine.rx.load(Ordering::Relaxed) & 0xff);
                if let Some(remote) = self.remote() {
                    self.acknowledge_remote(remote, Some(land));
                }
            }
            Found::Record(_) if self.remote().is_some() => {
                if let Some(remote) = self.remote() {
                    self.acknowledge_remote(remote, None);
                }
            }
            Found::Record(_) => {
                let block = self.lane.receive_side(self.slot).block.get();
                // SYNC POINT: pairs with `Sender::consumed_all`.
                block.header().taken.store(self.seq as u32, Ordering::Release);
            }
        }
        wake_sender(self.lane, self.slot, self.theirs());
        let len = taken?;
        if len > self.cap {
            return Err(self.truncated(len));
        }
        Ok(())
    }

    #[cold]
    pub fn truncated(&self, len: usize) -> Error {
        error!(
            Code::Truncate,
            "rank {}: message of {len} bytes from {} into {} bytes; the first {} are delivered",
            self.ep.rank,
            self.lane.name(self.index()),
            self.cap,
            self.cap
        )
    }

    fn take_landing(&self, land: Land) -> Result<usize> {
        let theirs = self.theirs();
        let words = [theirs.data[0].load(Ordering::Relaxed), theirs.data[1].load(Ordering::Relaxed)];
        if self.flags() & RECV_CHAIN != 0 {
            self.finish_block();
            self.set_flags(self.flags() & !RECV_CHAIN);
        }
        if let Some(remote) = self.remote() {
            return self.take_remote_landing(remote);
        }
        let len = words[0] as usize;
        let n = len.min(self.cap);
        match Kind::from_number(land.kind()) {
            Some(Kind::Inline) => {
                let len = land.inline_len();
                if len > INLINE_BYTES {
                    return Err(self.garbled("a landing"));
                }
                Cursor::new(self.data, 0).scatter_words(words, len.min(self.cap));
                return Ok(len);
            }
            Some(Kind::Split | Kind::OwnSplit | Kind::Annex | Kind::OwnAnnex) => {
                let (which, split) = annex_of(self.lane, land).unwrap_or((0, false));
                let (len, most) = if split { (land.inline_len(), SPLIT_BYTES) } else { (len, ANNEX_MOST) };
                if len > most {
                    return Err(self.garbled("a landing"));
                }
                let n = len.min(self.cap);
                if split {
                    self.until_split(which)?;
                }
                let mut to = Cursor::new(self.data, 0);
                if split {
                    to.scatter_words(words, n);
                    to.scatter(self.lane.split(which, self.slot).first(n.saturating_sub(INLINE_BYTES)));
                } else {
                    to.scatter(self.lane.annex(which, self.slot).first(n));
                    to.scatter(self.lane.long_annex(which, self.slot).first(n.saturating_sub(ANNEX_BYTES)));
                }
                received_annex(self.lane, self.slot, which);
                return Ok(len);
            }
            Some(Kind::Spooled) => {
                let Some((from, block)) = self.lane.peer_spool(&self.ep.region)?.message(words[1], words[0]) else {
                    return Err(self.garbled("a landing, which says that its message is in the spool"));
                };
                let from = from.first(n);
                Cursor::new(self.data, 0).scatter(from);
                from.take_over();
                block.finish_this();
            }
            Some(Kind::Direct) => {}
            Some(Kind::Ring) => self.through_ring(n, words[1])?,
            Some(Kind::Turn) => self.in_turn(n, words[1])?,
            Some(Kind::Coop) => self.share(n, words[1])?,
            Some(Kind::Pull) => self.pull(n, words[1])?,
            Some(Kind::Loan) => return self.take_loan(words),
            Some(Kind::Link | Kind::RemoteInline | Kind::RemoteAnnex) | None => {
                return Err(self.garbled("a landing"));
            }
        }
        self.ep.passed(self.lane, n);
        Ok(len)
    }

    /// Waits for the split line of a message whose landing is there.
    fn until_split(&self, which: usize) -> Result<()> {
        let mut waiter = Waiter::new();
        let scene = Splitting { wait: self.awaiting(), which };
        while !is_split(self.lane, which, self.slot, self.seq) {
            if !waiter.spin() {
                waiter.slow(&scene)?;
            }
        }
        Ok(())
    }

    /// The peer has damaged a record: nothing of it is believed from here on.
    #[cold]
    pub fn garbled(&self, record: &str) -> Error {
        self.lane.peer_error(self.ep.rank, &self.break_off(record), "recv from", self.index())
    }

    /// The same, where there is nobody yet to whom an error is given.
    #[cold]
    pub fn break_off(&self, record: &str) -> String {
        self.ep.break_off(self.lane.world, &format!("{record} ({})", self.lane.name(self.index())))
    }

    /// The length of a message that was found, without taking it.
    pub fn length(&self, found: Found) -> usize {
        match found {
            Found::Landing(land)
                if matches!(
                    Kind::from_number(land.kind()),
                    Some(Kind::Inline | Kind::Split | Kind::OwnSplit | Kind::RemoteInline)
                ) =>
            {
                land.inline_len()
            }
            Found::Landing(_) if is_loan(found) => {
                Descriptor::length(self.theirs().data[0].load(Ordering::Relaxed)) as usize
            }
            Found::Landing(_) => self.theirs().data[0].load(Ordering::Relaxed) as usize,
            Found::Record(_) if is_loan(found) => {
                let side = self.lane.receive_side(self.slot);
                Descriptor::length(side.block.get().record(side.next.get() + 8).load(Ordering::Relaxed)) as usize
            }
            Found::Record(word) if word >> 40 < LONG_LENGTH => (word >> 40) as usize,
            Found::Record(_) => {
                if let Some(remote) = self.remote() {
                    return self.remote_record_len(remote);
                }
                let side = self.lane.receive_side(self.slot);
                side.block.get().record(side.next.get() + 8).load(Ordering::Relaxed) as usize
            }
        }
    }
}
