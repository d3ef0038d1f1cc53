//! A message is published, exactly once: by its landing, and what follows every publication.

use super::*;

impl Sender {
    /// Publishes by the landing what has gone by a way that is counted, or is about to.
    pub fn publish(&self, way: WayTaken, kind: Kind, first: u64, second: u64) {
        self.land(kind, first, second);
        self.sent(way);
    }

    /// Publishes by the landing.
    pub(super) fn land(&self, kind: Kind, first: u64, second: u64) {
        let mine = self.mine();
        mine.data[0].store(first, Ordering::Relaxed);
        mine.data[1].store(second, Ordering::Relaxed);
        mine.publish(Land::new(self.seq, self.got(), kind, 0, self.lane.epoch));
    }

    #[cfg(feature = "trace")]
    fn way_in_words(&self, way: WayTaken) -> &'static str {
        match way {
            WayTaken::Short | WayTaken::RemoteShort if self.flags() & SEND_CHAIN != 0 => "overflow queue",
            WayTaken::Short if self.len <= INLINE_BYTES => "inline",
            WayTaken::Short => "eager slot",
            way => way.name(),
        }
    }

    /// The message is published: it counts.
    pub fn sent(&self, way: WayTaken) {
        match way {
            WayTaken::Short | WayTaken::RemoteShort => {}
            WayTaken::Loan => self.lane.count_loan(self.slot, self.len),
            _ => self.lane.count_taken(self.slot, way, self.len),
        }
        traced!(self.lane.note_sent(self.slot, self.way_in_words(way), self.len, self.seq));
        self.after_counting();
    }

    /// What follows when a message is published and counted by its way.
    pub(super) fn after_counting(&self) {
        if self.seq == 1 {
            self.lane.touch(self.slot);
        }
        self.lane.count_sent(self.lane.progress(self.slot), self.seq, self.len);
        match self.lane.remote() {
            None => after_publish(self.lane, self.slot, self.theirs()),
            Some(remote) if remote.is_subscribed() && holds(Rule::Announced) => {
                any_index::announce(self.lane, self.slot)
            }
            Some(_) => {}
        }
    }
}
