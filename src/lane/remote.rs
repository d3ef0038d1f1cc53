//! What a lane between nodes has besides its view: the fronts that the peer writes, and how this side writes the peer's.
//!
//! The records of a remote lane are the same as those of a lane on a node, in private memory: the **view**. What this side says is
//! written into the view and posted to the peer's **front**; what the peer has said is taken over from the own front into the view by
//! whoever looks ([`Lane::take_over_incoming`](super::Lane::take_over_incoming),
//! [`Lane::take_over_outgoing`](super::Lane::take_over_outgoing)). `docs/protocol.md`, "Between nodes", has the reasons.
//!
//! [`front`] says what lies in a front, [`ask`] what is asked of the peer's thread, [`view`] how a view follows its fronts, [`unsaid`]
//! what a late peer is told when it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::map::{SIDE_FINALIZED, SLOTS};
use super::progress::Progress;
use super::record::{Kind, Land, WANTS};
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::fabric::network::Record;
use crate::fabric::network::control::{ANNEX_CHUNK, FIRST_CHUNK, Fabric};
use crate::fabric::network::link::{COUNTED, How, Link, Window};
use ask::UNTOLD;
use front::*;
use unsaid::Unsaid;

mod annex;
pub mod ask;
mod board;
mod freed;
pub mod front;
mod short;
mod unsaid;
mod view;

pub use annex::Part;
pub use ask::{Answer, Ask, Asked, Call, answer};
pub use freed::is_freed;
pub use front::{ChainStart, RemoteChain, RemotePosting, RemoteSlot, WITHDRAWN, sum};

/// In a lane's key: it is between nodes, so the short path does not find it.
pub const REMOTE: u64 = 1 << 63;
/// Indices in a chunk of fronts.
pub const CHUNK_SLOTS: usize = 32;
/// Bytes of a message that travel in the landing.
pub const REMOTE_INLINE: usize = 104;
/// Moments that a wait sleeps by the clock before it has the peer wake it, which costs a write and both sides' threads.
pub const NAPS: u32 = 8;
/// Posting hint: the memory is registered, and the key is in the posting.
pub const HINT_KEYED: u8 = 4;

/// When a sender is told that its message is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It waits for that.
    Now,
    /// With other words that go there about now.
    Soon,
    /// The same, or in a row with neighbours.
    InRow,
    /// With the next thing that goes there on this index, or when this side waits.
    WithNext,
}

/// Has the peer ever sent a message into this chunk of fronts, or annex?
pub fn has_messages(window: &Window) -> bool {
    if window.is_annex() { annex::slots_of(window).next().is_some() } else { front::has_messages(window) }
}

/// The remote part of a lane.
pub struct Remote {
    /// The connection.
    pub link: Arc<Link>,
    fabric: Arc<Fabric>,
    card: crate::fabric::network::Card,
    /// The lane's number between the two.
    number: u64,
    page: Arc<Window>,
    chunks: Chunks,
    /// Slot + 1 whose acknowledgement is owed; 0: none.
    owed: AtomicU32,
    /// Acknowledgements of neighbouring slots that wait for one another.
    row: board::Row,
    /// Does the peer's thread know of a sleeper here? [`UNTOLD`], [`TOLD`] or [`NOTED`].
    sleep: AtomicU32,
    /// Requests to the peer's thread; one at a time.
    asked: Mutex<u64>,
    /// The last of the peer's receives of any index that it was asked about.
    any_seen: AtomicU32,
    attach_s: f64,
    unsaid: Unsaid,
    annex: annex::Annex,
}

impl Remote {
    /// First contact for a lane: its page and its first chunk.
    pub fn open(
        fabric: &Arc<Fabric>,
        peer: u32,
        card: crate::fabric::network::Card,
        number: u64,
        attach_s: f64,
    ) -> Result<Remote> {
        let time = std::time::Duration::from_secs_f64(attach_s);
        let (link, page, fronts) = fabric.contact(peer, &card, number, FIRST_CHUNK, time)?;
        Ok(Remote::of(fabric, card, number, (link, [page, fronts]), attach_s))
    }

    /// The same where contact is made already.
    pub fn of(
        fabric: &Arc<Fabric>,
        card: crate::fabric::network::Card,
        number: u64,
        (link, [page, fronts]): (Arc<Link>, [Arc<Window>; 2]),
        attach_s: f64,
    ) -> Remote {
        let chunks = Chunks::default();
        chunks.get_or_make(FIRST_CHUNK as usize, || Chunk::new(fronts));
        Remote {
            link,
            fabric: fabric.clone(),
            card,
            number,
            page,
            chunks,
            owed: AtomicU32::new(0),
            row: board::Row::default(),
            sleep: AtomicU32::new(UNTOLD),
            asked: Mutex::new(0),
            any_seen: AtomicU32::new(0),
            attach_s,
            unsaid: Unsaid::default(),
            annex: annex::Annex::default(),
        }
    }

    /// Makes sure that a slot's fronts are there, on both sides.
    pub fn open_slot(&self, slot: usize) -> Result<()> {
        let chunk = slot / CHUNK_SLOTS;
        if self.chunk(slot).is_none() {
            let time = std::time::Duration::from_secs_f64(self.attach_s);
            let (_, _, fronts) = self.fabric.contact(self.link.peer, &self.card, self.number, chunk as u32, time)?;
            self.chunks.get_or_make(chunk, || Chunk::new(fronts));
        }
        Ok(())
    }

    /// Asks the peer how many indices it has by now.
    pub fn ask_indices(&self) -> Result<u32> {
        let time = std::time::Duration::from_secs_f64(self.attach_s);
        self.fabric.contact(self.link.peer, &self.card, self.number, FIRST_CHUNK, time)?;
        Ok(self.link.indices.load(Ordering::Acquire))
    }

    /// This process on the fabric.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The chunk of a slot; the peer may have opened it.
    fn chunk(&self, slot: usize) -> Option<&Chunk> {
        if let Some(chunk) = self.chunks.get(slot / CHUNK_SLOTS) {
            return Some(chunk);
        }
        let fronts = self.link.open_window(self.number, (slot / CHUNK_SLOTS) as u32 + 1)?;
        Some(self.chunks.get_or_make(slot / CHUNK_SLOTS, || Chunk::new(fronts)))
    }
    /// Slots whose fronts are there.
    pub fn open_slots(&self) -> impl Iterator<Item = usize> + '_ {
        let chunks = self.link.open_windows(self.number).into_iter().filter_map(|number| number.checked_sub(1));
        let chunks = chunks.filter(|chunk| *chunk != ANNEX_CHUNK);
        let chunks = chunks.map(|c| c as usize * CHUNK_SLOTS).filter(|first| self.chunk(*first).is_some());
        chunks.flat_map(|first| first..first + CHUNK_SLOTS)
    }
    /// Slots that this side has used, and some of their neighbours.
    pub fn used_slots(&self) -> impl Iterator<Item = usize> + '_ {
        let firsts = self.open_slots().step_by(front::FEW).filter(|slot| self.is_used(*slot));
        firsts.flat_map(|slot| slot..slot + front::FEW)
    }
    /// Has this side used a slot, or one of its neighbours?
    fn is_used(&self, slot: usize) -> bool {
        self.chunks.get(slot / CHUNK_SLOTS).is_some_and(|chunk| chunk.known_slot(slot % CHUNK_SLOTS).is_some())
    }
    /// Has the peer sent a message on a slot that this side has never used?
    pub fn has_unseen(&self) -> bool {
        let has_message = |slot: usize| self.front(slot).is_some_and(Front::has_message);
        self.open_slots().any(|slot| !self.is_used(slot) && has_message(slot))
            || self.annex().is_some_and(|annex| annex::slots_of(annex).any(|slot| slot >= SLOTS || !self.is_used(slot)))
    }
    /// Is memory of the program in use by the device for a slot, or by the peer?
    pub fn has_memory(&self, slot: usize) -> bool {
        let Some(mine) = self.slot(slot) else { return false };
        mine.read.lock().unwrap_or_else(|e| e.into_inner()).is_some()
            || mine.buffer.lock().unwrap_or_else(|e| e.into_inner()).is_some()
    }
    /// Is there an acknowledgement that is owed, or anything else that the peer is to be told?
    pub fn owes(&self) -> bool {
        self.owes_acknowledgements() || !self.unsaid.is_empty()
    }
    fn owes_acknowledgements(&self) -> bool {
        self.owed.load(Ordering::Relaxed) != 0 || self.row.waits()
    }
    /// Bytes of what this side keeps of its slots.
    pub fn state_bytes(&self) -> usize {
        self.chunks.bytes()
    }
    /// What this side keeps of a slot, which is open.
    pub fn slot(&self, slot: usize) -> Option<&RemoteSlot> {
        self.chunk(slot).map(|c| c.slot(slot % CHUNK_SLOTS))
    }

    fn page(&self) -> &Page {
        page_of(&self.page)
    }
    /// Has the peer finalized?
    pub fn has_left(&self) -> bool {
        self.page().side.state.load(Ordering::Acquire) == SIDE_FINALIZED || self.link.has_left()
    }
    /// The head of the peer's announcement `n`.
    pub fn announcement(&self, n: u64) -> u64 {
        // SAFETY: the queue lies within the page (asserted above), which lives as long as self.
        let head = unsafe { &*self.page.memory.as_ptr().add(queue_at(n)).cast::<AtomicU64>() };
        head.load(Ordering::Acquire)
    }

    #[cold]
    fn closed(&self, slot: usize) -> Error {
        let (me, peer) = (self.link.me, self.link.peer);
        error!(Code::Peer, "rank {me}: rank {peer} has not told where slot {slot} lies there")
    }

    /// Writes words to the peer's front of a slot, composed while the connection is locked.
    fn write(&self, slot: usize, at: usize, words: impl FnOnce(&RemoteSlot, &mut Record)) -> Result<()> {
        self.write_as(How::Silent, slot, at, words)
    }
    /// The same, posted like this.
    #[inline]
    fn write_as(&self, how: How, slot: usize, at: usize, words: impl FnOnce(&RemoteSlot, &mut Record)) -> Result<()> {
        let Some(chunk) = self.chunk(slot) else { return Err(self.closed(slot)) };
        let n = slot % CHUNK_SLOTS;
        self.link.write_into_as(
            how,
            &chunk.window,
            n * size_of::<Front>() + at,
            || self.wakes(),
            |record| words(chunk.slot(n), record),
        )?;
        Ok(())
    }

    /// Publishes: the landing of a message with up to [`REMOTE_INLINE`] bytes of data. It carries the slot's acknowledgement.
    pub fn land(&self, slot: usize, land: Land, data: &[u64]) -> Result<()> {
        let owed = self.pays_owed(slot);
        self.say_what_waits();
        let landed = self.write(slot, 0, |mine, record| {
            record.put(&[land.0, 0, mine.tells()]);
            record.put(data);
            let words = record.words();
            words[1] = sum(land.0, &words[2..]);
        });
        landed.inspect_err(|_| {
            if owed {
                self.send_ack(slot);
            }
        })
    }

    /// Publishes a message whose bytes were written before on this connection; with a completion at the receiver, which waits for as many
    /// as the landing says.
    pub fn land_counted(&self, slot: usize, land: Land, len: u64) -> Result<()> {
        let Some(chunk) = self.chunk(slot) else { return Err(self.closed(slot)) };
        let n = slot % CHUNK_SLOTS;
        let at = n * size_of::<Front>();
        self.link.write_into(
            &chunk.window,
            at,
            || Some(COUNTED),
            |record| {
                let mut words =
                    [land.0, 0, chunk.slot(n).received.load(Ordering::Acquire), len, self.link.next_counted()];
                words[1] = sum(land.0, &words[2..]);
                record.put(&words);
            },
        )?;
        if self.page().asleep.load(Ordering::Acquire) != 0 {
            self.link.write_into(&self.page, 0, || self.wakes(), |_| ())?;
        }
        Ok(())
    }

    /// A message has been received and its memory read. `when`: its sender is told.
    pub fn acknowledge(&self, slot: usize, seq: u64, when: When) {
        let Some(mine) = self.slot(slot) else { return };
        self.acknowledge_on(mine, slot, seq, when);
    }
    #[inline(always)]
    fn acknowledge_on(&self, mine: &RemoteSlot, slot: usize, seq: u64, when: When) {
        // SYNC POINT: pairs with the acquire loads of whoever posts it.
        mine.received.store(seq, Ordering::Release);
        match when {
            When::Now => return self.send_ack(slot),
            When::Soon => {
                self.pays_owed(slot);
                return self.send_ack_as(How::Later, slot);
            }
            When::InRow => {
                self.pays_owed(slot);
                return self.acknowledge_in_row(slot);
            }
            When::WithNext => {}
        }
        let before = self.owed.swap(slot as u32 + 1, Ordering::AcqRel);
        if before != 0 && before != slot as u32 + 1 {
            self.acknowledge_in_row(before as usize - 1);
        }
    }
    /// What is said now is said for what is owed of this slot; was something?
    #[inline]
    fn pays_owed(&self, slot: usize) -> bool {
        self.owed.compare_exchange(slot as u32 + 1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
    /// When the sender of message `seq` is told that it is received. May that be left to an answer? Over a network that is driven only where
    /// there will be one: what a sender does not know to be received costs more than a word that says so.
    #[inline(always)]
    pub fn acknowledges(&self, progress: &Progress, slot: usize, seq: u64, land: Land) -> When {
        if land.is_now() {
            When::Now
        } else if land.kind() == Kind::RemoteAnnex as u8 {
            if self.says_of_annex(slot, seq) { When::Soon } else { When::WithNext }
        } else if land.kind() == Kind::Spooled as u8 {
            When::Soon
        } else if self.link.limits().is_driven && !progress.alternates(seq, land) {
            When::InRow
        } else {
            When::WithNext
        }
    }
    /// A message of the chain has been received; its sender learns of it by the block.
    pub fn note_received(&self, slot: usize, seq: u64) {
        if let Some(mine) = self.slot(slot) {
            mine.received.store(seq, Ordering::Release);
        }
    }
    fn write_ack(&self, how: How, slot: usize) -> Result<()> {
        let Some(n) = board::place_of(slot) else {
            return self.write_as(how, slot, ACK_AT, |mine, record| record.put(&[mine.tells()]));
        };
        let Some(mine) = self.slot(slot) else { return Ok(()) };
        let tells = |record: &mut Record| record.put(&[mine.tells()]);
        self.link.write_into_as(how, &self.page, BOARD_AT + 8 * n, || None, tells).map(|_| ())
    }
    /// Sends the acknowledgement that is owed, and what else is unsaid.
    pub fn pay(&self) {
        self.say_unsaid();
        if !holds(Rule::OwedIsPaid) {
            return;
        }
        self.say_what_waits();
        if self.owed.load(Ordering::Relaxed) != 0 {
            let slot = self.owed.swap(0, Ordering::AcqRel);
            if slot != 0 {
                self.send_ack_as(How::Later, slot as usize - 1);
            }
        }
    }

    /// The same, unless the peer would have to be asked where to.
    pub fn pay_at_once(&self) {
        let owed = self.owed.load(Ordering::Relaxed) as usize;
        let is_known = |window| self.link.place_of(window).is_some();
        let chunk = || owed == 0 || self.chunk(owed - 1).is_some_and(|chunk| is_known(&chunk.window));
        if self.owes_acknowledgements() && is_known(&self.page) && chunk() {
            self.pay();
        }
    }

    fn write_posting(&self, slot: usize, seq: u64, posting: &RemotePosting) -> Result<()> {
        let RemotePosting { addr, cap, meta, shape } = *posting;
        let words = [addr, cap as u64, meta, seq, shape[0], shape[1], shape[2]];
        // A message that fits its landing, or its annex, waits for no posting.
        let how =
            if seq != 0 && (cap <= REMOTE_INLINE || self.awaits_annex(slot, cap)) { How::Later } else { How::Silent };
        self.write_as(how, slot, POSTING_AT, |_, record| {
            record.put(&words);
            record.put(&[sum(POSTING_AT as u64, &words)]);
        })
    }
    /// Marks the message that this side wants to put. `pending`: nobody here looks, so the peer is to call when it posts.
    pub fn mark(&self, slot: usize, seq: u64, pending: bool) {
        let (state, how) = if pending { (PENDING, How::Silent) } else { (WANTS, How::Later) };
        let _ = self.write_as(how, slot, MARK_AT, |_, record| record.put(&[seq << 2 | state]));
    }
    /// Has the peer a pending send that waits for a posting of this message?
    pub fn is_pending(&self, slot: usize, seq: u64) -> bool {
        self.front(slot).is_some_and(|f| f.mark.load(Ordering::Acquire) == seq << 2 | PENDING)
    }
    /// Does the peer receive from any index?
    pub fn is_subscribed(&self) -> bool {
        self.page().side.any.load(Ordering::Acquire) != 0
    }
    /// Has the peer posted a receive of any index that it was not asked about yet?
    pub fn has_any_posting(&self) -> bool {
        let number = self.page().side.any.load(Ordering::Acquire) >> 1;
        number != 0 && self.any_seen.load(Ordering::Relaxed) != number
    }
    /// It was not used: whoever comes next asks again.
    pub fn leave_any_posting(&self) {
        self.any_seen.store(0, Ordering::Relaxed);
    }
    /// Is everything up to this message of a slot received?
    pub fn has_received(&self, slot: usize, seq: u64) -> bool {
        self.slot(slot).is_some_and(|mine| mine.received.load(Ordering::Acquire) >= seq)
    }
    /// It is being asked about: `false`: somebody else has.
    pub fn take_any_posting(&self) -> bool {
        let number = self.page().side.any.load(Ordering::Acquire) >> 1;
        self.any_seen.swap(number, Ordering::Relaxed) != number
    }
    /// The peer's queue of announcements was full: has it said so since this was asked last?
    pub fn take_overflow(&self) -> bool {
        let flag = &self.page().side.any_overflow;
        flag.load(Ordering::Acquire) != 0 && flag.swap(0, Ordering::AcqRel) != 0
    }
    /// Announcements that the peer has taken.
    pub fn announcements_taken(&self) -> u64 {
        self.page().taken.load(Ordering::Acquire)
    }
    /// Tells the peer how many announcements this side has taken.
    pub fn say_taken(&self, n: u64) {
        let none = || None;
        let _ = self.link.write_into(&self.page, TAKEN_AT, none, |record| record.put(&[n]));
    }
    /// The rank of the world for whose loss, and how it is lost, the peer has left what all members of the communicator do together.
    pub fn broken(&self) -> Option<u32> {
        (self.page().broken.load(Ordering::Acquire) as u32).checked_sub(1)
    }
    /// Tells the peer that this side has left it for this loss. Has it been told?
    pub fn say_broken(&self, dead: u32) -> bool {
        let word = |record: &mut Record| record.put(&[dead as u64 + 1]);
        let hears = self.link.failure().is_none() && !self.has_left();
        hears && self.link.write_into(&self.page, BROKEN_AT, || self.wakes(), word).is_ok()
    }
    /// The lane's number between the two.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn front(&self, slot: usize) -> Option<&Front> {
        Some(self.chunk(slot)?.front(slot % CHUNK_SLOTS))
    }

    /// The posting for message `seq`, if it is there and whole.
    pub fn posting(&self, slot: usize, seq: u64) -> Option<RemotePosting> {
        let words = self.front(slot)?.whole_posting()?;
        (words[3] == seq).then_some(())?;
        let posting = RemotePosting::of(words);
        if posting.is_none() {
            self.link.damaged("a posting");
        }
        posting
    }

    /// The landing that is there, if it is whole: its word, and the first words of its data.
    pub fn landing(&self, slot: usize) -> Option<(Land, [u64; 3])> {
        let front = self.front(slot)?;
        let land = Land(front.landing[0].load(Ordering::Acquire));
        front.whole_landing(land).map(|[_, first, second, third]| (land, [first, second, third]))
    }

    /// The [`REMOTE_INLINE`] bytes of the data of a landing, of a slot that is open: they stay until it is acknowledged.
    pub fn landed(&self, slot: usize) -> Run {
        // SAFETY: in a mailbox, which stays as long as the lane; only read.
        self.front(slot)
            .map_or(Run::NOTHING, |f| unsafe { Run::new((&raw const f.landing[3]).cast_mut().cast(), REMOTE_INLINE) })
    }

    /// What a lasting wait does for the connection. It never waits for one.
    pub fn tend(&self) {
        if !self.owes_acknowledgements() || self.link.is_there() {
            self.pay();
        }
        self.link.tend();
    }
}

/// Has the peer of this connection finalized, as far as it has said so on some lane?
pub fn has_left(link: &Link) -> bool {
    link.has_left()
        || link.pages().iter().any(|window| page_of(window).side.state.load(Ordering::Acquire) == SIDE_FINALIZED)
}
