//! What a peer that is late has still to be told: it is said when its connection is there again. Only what nobody would say again and
//! somebody may wait for: postings, acknowledgements, announcements, what this side says of itself, the words by which blocks of its spool
//! come back.
//!
//! The bound is what was there to be said: a posting and an acknowledgement for each slot, a word for each block that the peer has told of,
//! the queue of announcements.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use super::front::queue_at;
use super::{Remote, RemotePosting};
use crate::base::error::{Error, Result};
use crate::base::lock::{Mutex, MutexGuard};
use crate::fabric::network::Place;
use crate::fabric::network::link::How;
use crate::lane::map::Side;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    /// Is there anything? Cleared under the lock, once all is said.
    some: AtomicBool,
    /// Somebody says it just now: on the way another connection may come about, and this be called again.
    saying: AtomicBool,
    what: Mutex<What>,
}

#[derive(Debug, Default)]
struct What {
    /// By slot: the message's number, and where it goes.
    postings: BTreeMap<usize, (u64, RemotePosting)>,
    acknowledgements: BTreeSet<usize>,
    words: Vec<(Place, u32)>,
    /// By their numbers. One that was left out would hide all that follow.
    announcements: BTreeMap<u64, u64>,
    side: Option<SideWords>,
    overflow: bool,
}

/// What one side says of itself: state, bell, whether it receives from any index, whether it sleeps then.
type SideWords = [u32; 4];

fn words_of(side: &Side) -> SideWords {
    [&side.state, &side.bell, &side.any, &side.any_sleep].map(|word| word.load(Ordering::Acquire))
}

impl What {
    fn is_empty(&self) -> bool {
        let What { postings, acknowledgements, words, announcements, side, overflow } = self;
        let none = postings.is_empty() && acknowledgements.is_empty() && words.is_empty();
        none && announcements.is_empty() && side.is_none() && !overflow
    }
}

impl Unsaid {
    fn lock(&self) -> MutexGuard<'_, What> {
        self.what.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // SYNC POINT: pairs with the release in `say_unsaid`: whoever sees nothing left says what is newer than all of it.
        !self.some.load(Ordering::Acquire)
    }
}

impl Remote {
    /// A record could not be written. It is said later, unless the connection has ended for good.
    #[cold]
    fn later(&self, error: Error, note: impl FnOnce(&mut What)) -> Result<()> {
        if self.link.has_ended() {
            return Err(error);
        }
        let mut what = self.unsaid.lock();
        note(&mut what);
        self.unsaid.some.store(true, Ordering::Release);
        Ok(())
    }

    /// Posts: message `seq` may be put there. `seq` 0 withdraws. A peer that is late learns of it when it answers.
    pub fn post(&self, slot: usize, seq: u64, posting: &RemotePosting) -> Result<()> {
        // A posting for message seq says that all before it are received.
        if seq != 0 {
            self.pays_owed(slot);
        }
        let said = if self.unsaid.is_empty() {
            self.write_posting(slot, seq, posting)
        } else {
            self.post_instead(slot, seq, posting)
        };
        said.or_else(|e| self.later(e, |what| _ = what.postings.insert(slot, (seq, *posting))))
    }

    /// The same, where an older posting may be unsaid, which must not come behind this one.
    #[cold]
    fn post_instead(&self, slot: usize, seq: u64, posting: &RemotePosting) -> Result<()> {
        // Who says it just now has the lock. It is not kept: this may wait for a connection, and who makes that wants it.
        self.unsaid.lock().postings.remove(&slot);
        self.write_posting(slot, seq, posting)
    }

    /// Tells the sender how far this side has received; one that is late learns of it when it answers.
    pub fn send_ack(&self, slot: usize) {
        self.send_ack_as(How::Silent, slot);
    }
    /// The same, posted like this.
    #[inline]
    pub(super) fn send_ack_as(&self, how: How, slot: usize) {
        let said = self.write_ack(how, slot);
        // An error of a connection that has ended is everybody's who waits, and is seen there.
        let _ = said.or_else(|e| self.later(e, |what| _ = what.acknowledgements.insert(slot)));
    }

    /// What these slots have received could not be said.
    #[cold]
    pub(super) fn leave_unsaid(&self, e: Error, slots: Range<usize>) {
        let _ = self.later(e, |what| what.acknowledgements.extend(slots));
    }

    /// Writes a word of four bytes into the peer's spool; if it is late, when it answers.
    pub fn write_back(&self, to: Place, word: u32) {
        let said = self.link.write(to, 0, |record| record.put_halves(&[word])).map(|_| ());
        let _ = said.or_else(|e| self.later(e, |what| what.words.push((to, word))));
    }

    /// Announces: entry `n` of the peer's queue.
    pub fn announce(&self, n: u64, entry: u64) {
        let said = self.write_announcement(n, entry);
        let _ = said.or_else(|e| self.later(e, |what| _ = what.announcements.insert(n, entry)));
    }
    fn write_announcement(&self, n: u64, entry: u64) -> Result<()> {
        self.link.write_into(&self.page, queue_at(n), || self.wakes(), |record| record.put(&[entry])).map(|_| ())
    }

    /// Tells the peer what this side says of itself, as it is when it is written: of two that say so, the later has the newer.
    pub fn say_side(&self, side: &Side) {
        if !self.unsaid.is_empty() {
            // An older one must not come behind this one. It is written with the lock, if it is being written.
            self.unsaid.lock().side = None;
        }
        let said = self.write_side(|| words_of(side));
        let _ = said.or_else(|e| self.later(e, |what| what.side = Some(words_of(side))));
    }
    fn write_side(&self, words: impl FnOnce() -> SideWords) -> Result<()> {
        self.link.write_into(&self.page, 0, || self.wakes(), |record| record.put_halves(&words())).map(|_| ())
    }

    /// Tells the peer that something was not announced, since the queue was full. It takes the word back when it looks for that.
    pub fn say_overflow(&self) {
        let said = self.write_overflow();
        let _ = said.or_else(|e| self.later(e, |what| what.overflow = true));
    }
    fn write_overflow(&self) -> Result<()> {
        let at = core::mem::offset_of!(Side, any_overflow);
        self.link.write_into(&self.page, at, || self.wakes(), |record| record.put_halves(&[1])).map(|_| ())
    }

    /// There is a connection again: says what is left to be said, if the peer need not be asked where to.
    pub fn say_what_is_owed(&self) {
        self.say_unsaid();
        self.pay_at_once();
    }

    /// Says what could not be said before: the peer answers again.
    #[inline]
    pub fn say_unsaid(&self) {
        if !self.unsaid.is_empty() {
            self.say_it_now();
        }
    }

    #[cold]
    fn say_it_now(&self) {
        if !self.link.is_up() || self.unsaid.saying.swap(true, Ordering::AcqRel) {
            return;
        }
        {
            let mut what = self.unsaid.lock();
            // When it is late again the rest stays unsaid, without a wait for each.
            let up = || self.link.is_up();
            let put = |to: Place, word| self.link.write(to, 0, |record| record.put_halves(&[word])).is_ok();
            what.words.retain(|(to, word)| !(up() && put(*to, *word)));
            what.acknowledgements.retain(|slot| !(up() && self.write_ack(How::Silent, *slot).is_ok()));
            what.postings.retain(|slot, (seq, posting)| !(up() && self.write_posting(*slot, *seq, posting).is_ok()));
            what.side.take_if(|side| up() && self.write_side(|| *side).is_ok());
            what.overflow &= !(up() && self.write_overflow().is_ok());
            what.announcements.retain(|n, entry| !(up() && self.write_announcement(*n, *entry).is_ok()));
            // SYNC POINT: pairs with the acquire in `is_empty`.
            self.unsaid.some.store(!what.is_empty(), Ordering::Release);
        }
        self.unsaid.saying.store(false, Ordering::Release);
    }
}
