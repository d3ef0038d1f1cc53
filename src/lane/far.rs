//! What a lane between nodes has besides its view: the fronts that the peer writes, and how this side writes the peer's.
//!
//! The records of a far lane are the same as those of a lane on a node, in private memory: the **view**. What this side says is
//! written into the view and posted to the peer's **front**; what the peer has said is taken over from the own front into the view by
//! whoever looks ([`Lane::take_over_incoming`], [`Lane::take_over_outgoing`]). `docs/protocol.md`, "Between nodes", has the reasons.
//!
//! ```text
//!  front of an index, 256 bytes, written by the peer's device
//!  0     landing   land | check | ack | 104 bytes of data             the peer as sender
//!  128   posting   addr | cap | meta + key | seq | shape (3) | check  the peer as receiver: where this side may put
//!  192   ack                                                          the peer as receiver
//!  200   mark      208 tail    216 (unused)                           the peer as sender
//!  224   chain     first | addr | key 32, generation 32 | size/64 32, check 32
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use static_assertions::const_assert;

use super::Lane;
use super::map::{ANNOUNCED_QUEUE, SIDE_FINALIZED, SLOTS, Side};
use super::record::{Half, Land, PostingKind, WANTS, word24};
use crate::base::error::Result;
use crate::fabric::verbs::Place;
use crate::fabric::verbs::control::{CHUNK_BYTES, Fabric, PAGE_BYTES};
use crate::fabric::verbs::link::{COUNTED, Link, Window};
use crate::fabric::verbs::region::Region;

/// In a lane's key: it is between nodes, so the short path does not find it.
pub const FAR: u64 = 1 << 63;
/// Indices in a chunk of fronts.
pub const CHUNK_SLOTS: usize = 256;
/// Bytes of a message that travel in the landing.
pub const FAR_INLINE: usize = 104;
/// Moments that a wait sleeps by the clock before it has the peer wake it, which costs a write and both sides' threads.
pub const NAPS: u32 = 8;
/// Posting hint: the memory is registered, and the key is in the posting.
pub const HINT_KEYED: u8 = 4;
/// The peer has been told of no sleeper, or has woken it.
const UNTOLD: u32 = 0;
/// It has been told, and will answer with *noted* or *wake*, either of which rings for all sleepers of this process.
const TOLD: u32 = 1;
/// It knows, and wakes with the next thing that it publishes.
const NOTED: u32 = 2;
/// In a front's mark: as [`WANTS`], and nobody looks for the posting.
const PENDING: u64 = 3;

/// See the drawing above.
#[repr(C, align(64))]
struct Front {
    landing: [AtomicU64; 16],
    posting: [AtomicU64; 8],
    ack: AtomicU64,
    mark: AtomicU64,
    tail: AtomicU64,
    _pad: AtomicU64,
    chain: [AtomicU64; 4],
}
const POSTING_AT: usize = 128;
const ACK_AT: usize = 192;
const MARK_AT: usize = 200;
const TAIL_AT: usize = 208;
const CHAIN_AT: usize = 224;
const_assert!(size_of::<Front>() == 256 && size_of::<Front>() * CHUNK_SLOTS == CHUNK_BYTES);
const_assert!(core::mem::offset_of!(Front, posting) == POSTING_AT && core::mem::offset_of!(Front, ack) == ACK_AT);
const_assert!(core::mem::offset_of!(Front, tail) == TAIL_AT && core::mem::offset_of!(Front, chain) == CHAIN_AT);

/// What is said of the lane as a whole, written by the peer: its side, how many announcements it has taken, and those it makes.
#[repr(C, align(64))]
struct Page {
    side: Side,
    taken: AtomicU64,
    _pad: [AtomicU64; 7],
    /// number of the request, what, slot, seq, an address
    request: [AtomicU64; 8],
    /// number of the request << 1 | yes
    answer: AtomicU64,
    /// 1: somebody of the peer sleeps; who publishes next wakes it, and sets this to 0.
    asleep: AtomicU64,
    /// What comes with an answer: two words, their sum.
    found: [AtomicU64; 3],
}
const TAKEN_AT: usize = 64;
const REQUEST_AT: usize = 128;
const ANSWER_AT: usize = 192;
const ASLEEP_AT: usize = 200;
const FOUND_AT: usize = 208;
/// Announcements: a line of the reader's own, then the entries, as on a node.
const QUEUE_AT: usize = 1024;
const_assert!(core::mem::offset_of!(Page, taken) == TAKEN_AT && core::mem::offset_of!(Page, request) == REQUEST_AT);
const_assert!(core::mem::offset_of!(Page, answer) == ANSWER_AT && core::mem::offset_of!(Page, asleep) == ASLEEP_AT);
const_assert!(core::mem::offset_of!(Page, found) == FOUND_AT);
const_assert!(QUEUE_AT + 64 + ANNOUNCED_QUEUE * 8 <= PAGE_BYTES);

/// The chain of an index as its receiver follows it.
#[derive(Default)]
pub struct FarChain {
    /// The block in the sender's memory, its key, the generation of its use, its bytes.
    pub addr: u64,
    /// See above.
    pub key: u32,
    /// See above.
    pub generation: u32,
    /// See above.
    pub size: u64,
    /// Offset of the next record in the block.
    pub next: u64,
    /// A piece of the block, fetched when the chain had come as far as `sure`, from offset `from` on.
    pub piece: Vec<u8>,
    /// See above.
    pub from: u64,
    /// See above.
    pub sure: u64,
}

/// What this side keeps of an index of a far lane. Each field belongs to the index's sending or receiving thread, but `acked`.
#[derive(Default)]
pub struct FarSlot {
    /// As sender: everything up to this message is known to be received.
    acked: AtomicU64,
    /// As receiver: everything up to this message is received, its reads are over.
    received: AtomicU64,
    /// As sender: the sum of the posting that was taken over last.
    posting_seen: AtomicU64,
    /// As receiver: the registration of the posted buffer.
    pub buffer: Mutex<Option<Arc<Region>>>,
    /// As receiver: the chain.
    pub chain: Mutex<FarChain>,
}

struct Chunk {
    window: Arc<Window>,
    remote: Place,
    slots: Box<[FarSlot]>,
}

/// A posting as its sender reads it from its front, whole.
#[derive(Clone, Copy, Debug)]
pub struct FarPosting {
    /// Virtual address in the receiver.
    pub addr: u64,
    /// Capacity.
    pub cap: usize,
    /// [`PostingKind`], hints, key.
    pub meta: u64,
    /// Run, count, stride of a block.
    pub shape: [u64; 3],
}

impl FarPosting {
    /// The key, if its memory is registered.
    pub fn key(&self) -> Option<u32> {
        ((self.meta >> 8) as u8 & HINT_KEYED != 0).then_some((self.meta >> 32) as u32)
    }
    /// Its kind.
    pub fn kind(&self) -> u8 {
        self.meta as u8
    }
}

/// Where a chain begins, as its receiver reads it from its front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStart {
    /// Its first message.
    pub first: u64,
    /// The block.
    pub addr: u64,
    /// Its key.
    pub key: u32,
    /// The generation of its use.
    pub generation: u32,
    /// Its bytes.
    pub size: u64,
}

/// The far part of a lane.
pub struct Far {
    /// The connection.
    pub link: Arc<Link>,
    fabric: Arc<Fabric>,
    card: crate::fabric::verbs::Card,
    /// The lane's number between the two.
    number: u64,
    page: Arc<Window>,
    page_remote: Place,
    chunks: Box<[OnceLock<Chunk>]>,
    /// Slot + 1 whose acknowledgement is owed; 0: none.
    owed: AtomicU32,
    /// Does the peer's thread know of a sleeper here? [`UNTOLD`], [`TOLD`] or [`NOTED`].
    sleep: AtomicU32,
    /// Requests to the peer's thread; one at a time.
    asked: Mutex<u64>,
    /// The last of the peer's receives of any index that it was asked about.
    any_seen: AtomicU32,
    attach_s: f64,
}

/// What a number that comes with a write is about; the number also has the lane's.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request, see [`Ask`].
    Asks = 0,
    /// A pending send has marked what it waits for: if that is posted, it wants to be called.
    Marks = 1,
    /// What a pending send waits for is posted.
    Posted = 2,
    /// Somebody sleeps: confirm it.
    Sleeps = 3,
    /// Confirmed: from now on a publication wakes.
    Noted = 4,
    /// Something was published for a sleeper.
    Wake = 5,
}

impl Call {
    fn number(self, lane: u64) -> u32 {
        (self as u32) << 28 | lane as u32 & 0xfff_ffff
    }
    /// The call, and the number of the lane as far as it was sent.
    pub fn of(number: u32) -> Option<(Call, u32)> {
        let all = [Call::Asks, Call::Marks, Call::Posted, Call::Sleeps, Call::Noted, Call::Wake];
        Some((*all.get((number >> 28) as usize)?, number & 0xfff_ffff))
    }
}

/// What this side asks the peer's thread to do for it, in [`Far::ask`].
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The posting of this message is withdrawn: is it too late?
    Withdraw = 1,
    /// Announcements are wanted from now on. Everything published before is here when the answer is.
    Subscribe = 2,
    /// May this message have the receive of any index that is posted?
    Claim = 3,
    /// Where is the ring of this index for messages of any source?
    Ring = 4,
    /// Is this ticket of the ring at this address in use? Everything published before under it is here when the answer is.
    Ticket = 5,
}

impl Ask {
    fn of(number: u64) -> Option<Ask> {
        let all = [Ask::Withdraw, Ask::Subscribe, Ask::Claim, Ask::Ring, Ask::Ticket];
        all.into_iter().find(|a| *a as u64 == number)
    }
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// See there.
    pub what: Ask,
    /// The slot; for [`Ask::Ring`] the index.
    pub slot: usize,
    /// The message or ticket.
    pub seq: u64,
    /// The address of a ring.
    pub at: u64,
}

/// The answer: no, or yes with two words.
pub type Answer = Option<[u64; 2]>;

/// The sum that shows that a record is whole.
pub fn sum(key: u64, words: &[u64]) -> u64 {
    let mut h = key ^ 0x9e37_79b9_7f4a_7c15;
    for w in words {
        h = (h ^ w).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h ^= h >> 32;
    }
    h | 1
}

impl Far {
    /// First contact for a lane: its page and its first chunk.
    pub fn open(
        fabric: &Arc<Fabric>,
        peer: u32,
        card: crate::fabric::verbs::Card,
        number: u64,
        attach_s: f64,
    ) -> Result<Far> {
        let time = std::time::Duration::from_secs_f64(attach_s);
        let (link, page, fronts) = fabric.contact(peer, &card, number, 0, time)?;
        let chunks: Box<[OnceLock<Chunk>]> = (0..SLOTS / CHUNK_SLOTS).map(|_| OnceLock::new()).collect();
        let page_remote = *page.remote.get().expect("contact returns what the peer has told");
        let _ = chunks[0].set(Chunk::new(fronts));
        Ok(Far {
            link,
            fabric: fabric.clone(),
            card,
            number,
            page,
            page_remote,
            chunks,
            owed: AtomicU32::new(0),
            sleep: AtomicU32::new(UNTOLD),
            asked: Mutex::new(0),
            any_seen: AtomicU32::new(0),
            attach_s,
        })
    }

    /// Makes sure that a slot's fronts are there, on both sides.
    pub fn open_slot(&self, slot: usize) -> Result<()> {
        let chunk = slot / CHUNK_SLOTS;
        if self.chunks[chunk].get().is_none() {
            let time = std::time::Duration::from_secs_f64(self.attach_s);
            let (_, _, fronts) = self.fabric.contact(self.link.peer, &self.card, self.number, chunk as u32, time)?;
            let _ = self.chunks[chunk].set(Chunk::new(fronts));
        }
        Ok(())
    }

    /// Asks the peer how many indices it has by now.
    pub fn ask_indices(&self) -> Result<u32> {
        let time = std::time::Duration::from_secs_f64(self.attach_s);
        self.fabric.contact(self.link.peer, &self.card, self.number, 0, time)?;
        Ok(self.link.indices.load(Ordering::Acquire))
    }

    /// This process on the fabric.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The chunk of a slot; the peer may have opened it.
    fn chunk(&self, slot: usize) -> Option<&Chunk> {
        let cell = &self.chunks[slot / CHUNK_SLOTS];
        if let Some(chunk) = cell.get() {
            return Some(chunk);
        }
        let fronts = self.link.open_window(self.number, (slot / CHUNK_SLOTS) as u32 + 1)?;
        Some(cell.get_or_init(|| Chunk::new(fronts)))
    }
    /// Slots whose fronts are there.
    pub fn open_slots(&self) -> impl Iterator<Item = usize> + '_ {
        let chunks = (0..self.chunks.len()).filter(|c| self.chunk(c * CHUNK_SLOTS).is_some());
        chunks.flat_map(|c| c * CHUNK_SLOTS..(c + 1) * CHUNK_SLOTS)
    }
    /// Chunks that this side has opened.
    pub fn open_chunks(&self) -> usize {
        self.chunks.iter().filter(|c| c.get().is_some()).count()
    }
    /// What this side keeps of a slot, which is open.
    pub fn slot(&self, slot: usize) -> Option<&FarSlot> {
        self.chunk(slot).map(|c| &c.slots[slot % CHUNK_SLOTS])
    }

    fn page(&self) -> &Page {
        // SAFETY: the arena is longer, lives as long as self, and a page is atomics only.
        unsafe { &*self.page.arena.as_ptr().cast::<Page>() }
    }
    /// Has the peer finalized?
    pub fn has_left(&self) -> bool {
        self.page().side.state.load(Ordering::Acquire) == SIDE_FINALIZED || self.link.has_left()
    }
    /// The announcements' memory, as the lane's accessors count it.
    pub(super) fn queue(&self) -> *mut u8 {
        self.page.arena.as_ptr().wrapping_add(QUEUE_AT)
    }

    /// Writes words to the peer's front of a slot, read while the connection is locked.
    fn write(&self, slot: usize, at: usize, words: impl FnOnce(&FarSlot) -> ([u64; 16], usize)) -> Result<()> {
        let Some(chunk) = self.chunk(slot) else { return Ok(()) };
        let n = slot % CHUNK_SLOTS;
        self.link.write_with(
            chunk.remote,
            n * size_of::<Front>() + at,
            || self.wakes(),
            |record| {
                let (words, count) = words(&chunk.slots[n]);
                for (to, w) in record.chunks_exact_mut(8).zip(&words[..count]) {
                    to.copy_from_slice(&w.to_ne_bytes());
                }
                count * 8
            },
        )?;
        Ok(())
    }
    /// The number that wakes the peer's sleeper, if there is one.
    #[inline]
    fn wakes(&self) -> Option<u32> {
        let asleep = &self.page().asleep;
        (asleep.load(Ordering::Acquire) != 0 && asleep.swap(0, Ordering::AcqRel) != 0)
            .then(|| Call::Wake.number(self.number))
    }
    /// Calls the peer's thread.
    pub fn call(&self, call: Call) {
        let _ = self.link.write_with(self.page_remote, 0, || Some(call.number(self.number)), |_| 0);
    }
    /// Somebody of this side goes to sleep and must be woken. What was published before this reached the peer wakes it as well, since
    /// the peer's thread confirms by the same connection.
    ///
    /// Without a connection nothing can come, and all sleepers are woken when there is one.
    pub fn fall_asleep(&self) {
        if !self.link.is_up() {
            return;
        }
        if self.sleep.compare_exchange(UNTOLD, TOLD, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let _ = self.link.write_with(
                self.page_remote,
                ASLEEP_AT,
                || Some(Call::Sleeps.number(self.number)),
                |record| {
                    record[..8].copy_from_slice(&1u64.to_ne_bytes());
                    8
                },
            );
        }
    }
    /// Confirms to the peer that this side knows of its sleeper, unless that was woken already.
    pub fn confirm_sleep(&self) {
        // Asked under the lock, under which publications take the flag too: so a wake never overtakes the confirmation.
        let asleep = &self.page().asleep;
        let call = || if asleep.load(Ordering::Acquire) != 0 { Call::Noted } else { Call::Wake };
        let _ = self.link.write_with(self.page_remote, 0, || Some(call().number(self.number)), |_| 0);
    }
    /// The peer knows of this side's sleeper, or has woken it.
    pub fn set_noted(&self, noted: bool) {
        self.sleep.store(if noted { NOTED } else { UNTOLD }, Ordering::Release);
    }
    fn write_word(&self, slot: usize, at: usize, word: u64) -> Result<()> {
        self.write(slot, at, |_| one(word))
    }

    /// Publishes: the landing of a message with up to [`FAR_INLINE`] bytes of data. It carries the slot's acknowledgement.
    pub fn land(&self, slot: usize, land: Land, data: &[u64]) -> Result<()> {
        let _ = self.owed.compare_exchange(slot as u32 + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        self.write(slot, 0, |mine| {
            let mut words = [0u64; 16];
            words[0] = land.0;
            words[2] = mine.received.load(Ordering::Acquire);
            words[3..3 + data.len()].copy_from_slice(data);
            words[1] = sum(land.0, &words[2..3 + data.len()]);
            (words, 3 + data.len())
        })
    }

    /// Publishes a message whose bytes were written before on this connection; with a completion at the receiver, which waits for as many
    /// as the landing says.
    pub fn land_counted(&self, slot: usize, land: Land, len: u64) -> Result<()> {
        let Some(chunk) = self.chunk(slot) else { return Ok(()) };
        let n = slot % CHUNK_SLOTS;
        let at = n * size_of::<Front>();
        self.link.write_with(
            chunk.remote,
            at,
            || Some(COUNTED),
            |record| {
                let mut words =
                    [land.0, 0, chunk.slots[n].received.load(Ordering::Acquire), len, self.link.next_counted()];
                words[1] = sum(land.0, &words[2..]);
                for (to, w) in record.chunks_exact_mut(8).zip(words) {
                    to.copy_from_slice(&w.to_ne_bytes());
                }
                words.len() * 8
            },
        )?;
        if self.page().asleep.load(Ordering::Acquire) != 0 {
            self.link.write_with(self.page_remote, 0, || self.wakes(), |_| 0)?;
        }
        Ok(())
    }

    /// A message has been received and its memory read. `now`: its sender is told at once; otherwise with the next thing that
    /// goes to the peer on this index, or when this side waits.
    pub fn acknowledge(&self, slot: usize, seq: u64, now: bool) {
        let Some(mine) = self.slot(slot) else { return };
        // SYNC POINT: pairs with the acquire loads of whoever posts it.
        mine.received.store(seq, Ordering::Release);
        if now {
            self.send_ack(slot);
            return;
        }
        let before = self.owed.swap(slot as u32 + 1, Ordering::AcqRel);
        if before != 0 && before != slot as u32 + 1 {
            self.send_ack(before as usize - 1);
        }
    }
    /// A message of the chain has been received; its sender learns of it by the block.
    pub fn note_received(&self, slot: usize, seq: u64) {
        if let Some(mine) = self.slot(slot) {
            mine.received.store(seq, Ordering::Release);
        }
    }
    /// Tells the sender how far this side has received.
    pub fn send_ack(&self, slot: usize) {
        // An error is the connection's, and every wait sees it there.
        let _ = self.write(slot, ACK_AT, |mine| one(mine.received.load(Ordering::Acquire)));
    }
    /// Sends the acknowledgement that is owed.
    pub fn pay(&self) {
        if self.owed.load(Ordering::Relaxed) != 0 {
            let slot = self.owed.swap(0, Ordering::AcqRel);
            if slot != 0 {
                self.send_ack(slot as usize - 1);
            }
        }
    }

    /// Posts: message `seq` may be put there. `seq` 0 withdraws.
    pub fn post(&self, slot: usize, seq: u64, posting: &FarPosting) -> Result<()> {
        // A posting for message seq says that all before it are received.
        if seq != 0 {
            let _ = self.owed.compare_exchange(slot as u32 + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        let FarPosting { addr, cap, meta, shape } = *posting;
        self.write(slot, POSTING_AT, |_| {
            let mut words = [0u64; 16];
            words[..7].copy_from_slice(&[addr, cap as u64, meta, seq, shape[0], shape[1], shape[2]]);
            words[7] = sum(POSTING_AT as u64, &words[..7]);
            (words, 8)
        })
    }
    /// Marks the message that this side wants to put. `pending`: nobody here looks, so the peer is to call when it posts.
    pub fn mark(&self, slot: usize, seq: u64, pending: bool) {
        let _ = self.write_word(slot, MARK_AT, seq << 2 | if pending { PENDING } else { WANTS });
    }
    /// Has the peer a pending send that waits for a posting of this message?
    pub fn is_pending(&self, slot: usize, seq: u64) -> bool {
        self.front(slot).is_some_and(|f| f.mark.load(Ordering::Acquire) == seq << 2 | PENDING)
    }
    /// Message `seq` is in the chain.
    pub fn tail(&self, slot: usize, seq: u64) -> Result<()> {
        self.write_word(slot, TAIL_AT, seq)
    }
    /// A chain begins.
    pub fn begin_chain(&self, slot: usize, start: ChainStart) -> Result<()> {
        self.write(slot, CHAIN_AT, |_| {
            let mut words = [0u64; 16];
            words[0] = start.first;
            words[1] = start.addr;
            words[2] = start.key as u64 | (start.generation as u64) << 32;
            words[3] = (start.size / 64) & 0xffff_ffff;
            words[3] |= sum(CHAIN_AT as u64, &words[..4]) << 32;
            (words, 4)
        })
    }
    /// Where the chain begins that the peer told of last.
    pub fn chain_start(&self, slot: usize) -> Option<ChainStart> {
        let front = self.front(slot)?;
        let mut words = [0u64; 4];
        words.iter_mut().zip(&front.chain).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        let check = words[3] >> 32;
        words[3] &= 0xffff_ffff;
        (sum(CHAIN_AT as u64, &words) & 0xffff_ffff == check).then_some(ChainStart {
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
    /// Tells the peer what this side says of itself.
    pub fn say_side(&self, side: &Side) {
        let _ = self.link.write_with(
            self.page_remote,
            0,
            || self.wakes(),
            |record| {
                let words = [&side.state, &side.bell, &side.any, &side.any_sleep, &side.any_overflow];
                for (to, w) in record.chunks_exact_mut(4).zip(words) {
                    to.copy_from_slice(&w.load(Ordering::Acquire).to_ne_bytes());
                }
                words.len() * 4
            },
        );
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
        let _ = self.link.write(self.page_remote, TAKEN_AT, |record| {
            record[..8].copy_from_slice(&n.to_ne_bytes());
            8
        });
    }
    /// Announces: entry `n` of the peer's queue.
    pub fn announce(&self, n: u64, entry: u64) {
        let at = QUEUE_AT + 64 + (n as usize % ANNOUNCED_QUEUE) * 8;
        let _ = self.link.write_with(
            self.page_remote,
            at,
            || self.wakes(),
            |record| {
                record[..8].copy_from_slice(&entry.to_ne_bytes());
                8
            },
        );
    }

    /// Has the peer's thread do something, and gives its answer. `goes_on` is asked now and then whether there is still hope.
    pub fn ask(&self, what: Ask, slot: usize, seq: u64, goes_on: impl Fn() -> bool) -> Option<bool> {
        self.ask_for(Asked { what, slot, seq, at: 0 }, goes_on).map(|answer| answer.is_some())
    }

    /// The same with all of the answer.
    pub fn ask_for(&self, what: Asked, goes_on: impl Fn() -> bool) -> Option<Answer> {
        let mut asked = self.asked.lock().unwrap_or_else(|e| e.into_inner());
        *asked += 1;
        let n = *asked;
        let call = || Some(Call::Asks.number(self.number));
        let posted = self.link.write_with(self.page_remote, REQUEST_AT, call, |record| {
            for (to, w) in record.chunks_exact_mut(8).zip([n, what.what as u64, what.slot as u64, what.seq, what.at]) {
                to.copy_from_slice(&w.to_ne_bytes());
            }
            40
        });
        posted.ok()?;
        let mut turns = 0u32;
        loop {
            let answer = self.page().answer.load(Ordering::Acquire);
            if answer >> 1 == n {
                let [first, second, check] = [0, 1, 2].map(|i| self.page().found[i].load(Ordering::Acquire));
                if answer & 1 == 0 {
                    return Some(None);
                }
                if check == sum(n, &[first, second]) {
                    return Some(Some([first, second]));
                }
            }
            turns += 1;
            if turns.is_multiple_of(64) {
                self.tend();
                if !goes_on() {
                    return None;
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// The lane's number between the two.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn front(&self, slot: usize) -> Option<&Front> {
        let chunk = self.chunk(slot)?;
        // SAFETY: within the chunk's arena, which lives as long as self; a front is atomics only.
        Some(unsafe { &*chunk.window.arena.as_ptr().cast::<Front>().add(slot % CHUNK_SLOTS) })
    }

    /// The posting for message `seq`, if it is there and whole.
    pub fn posting(&self, slot: usize, seq: u64) -> Option<FarPosting> {
        let words = self.front(slot)?.whole_posting()?;
        (words[3] == seq).then_some(FarPosting {
            addr: words[0],
            cap: words[1] as usize,
            meta: words[2],
            shape: [words[4], words[5], words[6]],
        })
    }

    /// Bytes of the landing that was taken over last.
    ///
    /// # Safety
    /// `n` ≤ [`FAR_INLINE`]; the landing is whole and not acknowledged.
    pub unsafe fn landed(&self, slot: usize) -> *const u8 {
        self.front(slot).map_or(std::ptr::null(), |f| (&raw const f.landing[3]).cast())
    }

    /// What a lasting wait does for the connection.
    pub fn tend(&self) {
        self.pay();
        self.link.tend();
    }
}

/// Answers a request of the peer of `link` about the lane of this number; called by the thread that got its number. `decide` does
/// what is asked for.
pub fn answer(link: &Link, number: u32, decide: impl FnOnce(Asked) -> Answer) {
    let Some(window) = link.find_window(|lane| lane as u32 & 0xfff_ffff == number) else { return };
    // SAFETY: the arena is longer and lives as long as the window; a page is atomics only.
    let page = unsafe { &*window.arena.as_ptr().cast::<Page>() };
    let [n, what, slot, seq, at] = [0, 1, 2, 3, 4].map(|i| page.request[i].load(Ordering::Acquire));
    let answer = match Ask::of(what) {
        Some(what) if slot < SLOTS as u64 => decide(Asked { what, slot: slot as usize, seq, at }),
        _ => None,
    };
    let Some(remote) = window.remote.get() else { return };
    if let Some([first, second]) = answer {
        let _ = link.write(*remote, FOUND_AT, |record| {
            for (to, w) in record.chunks_exact_mut(8).zip([first, second, sum(n, &[first, second])]) {
                to.copy_from_slice(&w.to_ne_bytes());
            }
            24
        });
    }
    let _ = link.write(*remote, ANSWER_AT, |record| {
        record[..8].copy_from_slice(&(n << 1 | answer.is_some() as u64).to_ne_bytes());
        8
    });
}

/// Has the peer of this connection finalized, as far as it has said so on some lane?
pub fn has_left(link: &Link) -> bool {
    link.has_left()
        || link.pages().iter().any(|window| {
            // SAFETY: as in `answer`.
            let page = unsafe { &*window.arena.as_ptr().cast::<Page>() };
            page.side.state.load(Ordering::Acquire) == SIDE_FINALIZED
        })
}

fn one(word: u64) -> ([u64; 16], usize) {
    let mut words = [0u64; 16];
    words[0] = word;
    (words, 1)
}

impl Chunk {
    fn new(window: Arc<Window>) -> Chunk {
        let remote = *window.remote.get().expect("chunks are made of windows that the peer has told of");
        Chunk { window, remote, slots: (0..CHUNK_SLOTS).map(|_| FarSlot::default()).collect() }
    }
}

impl Front {
    fn whole_posting(&self) -> Option<[u64; 8]> {
        let mut words = [0u64; 8];
        words.iter_mut().zip(&self.posting).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        (sum(POSTING_AT as u64, &words[..7]) == words[7]).then_some(words)
    }

    /// The acknowledgement that comes with this landing, if the landing is whole.
    fn whole_landing(&self, land: Land) -> Option<[u64; 3]> {
        let count = 1 + land.inline_len().min(FAR_INLINE).div_ceil(8);
        let mut words = [0u64; 14];
        words.iter_mut().zip(&self.landing[2..]).for_each(|(to, w)| *to = w.load(Ordering::Acquire));
        let check = self.landing[1].load(Ordering::Acquire);
        (sum(land.0, &words[..count]) == check).then_some([words[0], words[1], words[2]])
    }
}

impl Lane {
    /// The far part; `None`: the peer is on this node.
    #[inline(always)]
    pub fn far(&self) -> Option<&Far> {
        self.far.as_deref()
    }

    /// Does the peer receive from any index, so that it wants to be told of each?
    pub fn is_subscribed(&self) -> bool {
        match self.far() {
            None => self.peer_side().any.load(Ordering::Relaxed) != 0,
            Some(far) => far.is_subscribed(),
        }
    }

    /// Takes over what the peer has published for message `seq`, which is waited for, if that is there and whole.
    pub fn take_over_incoming(&self, slot: usize, seq: u64) {
        let Some(far) = self.far() else { return };
        let Some(front) = far.front(slot) else { return };
        let view: &Half = self.receiving(slot).0;
        let land = Land(front.landing[0].load(Ordering::Acquire));
        if land.is(seq, self.epoch)
            && view.landing() != land
            && let Some([ack, first, second]) = front.whole_landing(land)
        {
            view.data[0].store(first, Ordering::Relaxed);
            view.data[1].store(second, Ordering::Relaxed);
            if let Some(mine) = far.slot(slot) {
                mine.acked.fetch_max(ack, Ordering::AcqRel);
            }
            view.publish(land);
        }
        if front.chain[0].load(Ordering::Acquire) == seq && far.chain_start(slot).is_some_and(|s| s.first == seq) {
            view.tx.store(word24(seq, 0), Ordering::Release);
        }
        let mark = front.mark.load(Ordering::Acquire);
        let mark = if mark & 3 == PENDING { mark - PENDING + WANTS } else { mark };
        self.head(self.inn, slot).mark.store(mark, Ordering::Release);
    }

    /// Takes over what the peer has said about this side's messages: acknowledgements, and its posting if that is whole.
    pub fn take_over_outgoing(&self, slot: usize) {
        let Some(far) = self.far() else { return };
        let (Some(front), Some(mine)) = (far.front(slot), far.slot(slot)) else { return };
        let mut acked = front.ack.load(Ordering::Acquire).max(mine.acked.load(Ordering::Acquire));
        let view = self.posting(self.out, slot);
        if front.posting[7].load(Ordering::Acquire) != mine.posting_seen.load(Ordering::Relaxed)
            && let Some(words) = front.whole_posting()
        {
            let shape = self.shape(self.out, slot);
            shape.run.store(words[4], Ordering::Relaxed);
            shape.count.store(words[5], Ordering::Relaxed);
            shape.stride.store(words[6], Ordering::Relaxed);
            view.addr.store(words[0], Ordering::Relaxed);
            view.cap.store(words[1], Ordering::Relaxed);
            view.meta.store(words[2], Ordering::Relaxed);
            view.seq.store(words[3], Ordering::Release);
            mine.posting_seen.store(words[7], Ordering::Relaxed);
        }
        acked = acked.max(view.seq.load(Ordering::Relaxed).saturating_sub(1));
        let acked = mine.acked.fetch_max(acked, Ordering::AcqRel).max(acked);
        self.sending(slot).1.rx.store(word24(acked, 0), Ordering::Release);
        let (theirs, mine) = (&far.page().side, self.peer_side());
        mine.any.store(theirs.any.load(Ordering::Acquire), Ordering::Release);
        mine.state.store(theirs.state.load(Ordering::Acquire), Ordering::Release);
    }
}

/// The word of a posting that is withdrawn.
pub const WITHDRAWN: FarPosting = FarPosting { addr: 0, cap: 0, meta: PostingKind::Contiguous as u64, shape: [0; 3] };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::record::Kind;

    /// A mixture of two records of one place is not taken for a record.
    #[test]
    fn torn_records_are_not_whole() {
        // SAFETY: a front is atomics only; all zero is its first state.
        let front: Box<Front> = unsafe { Box::new(core::mem::zeroed()) };
        let record = |seq: u64, byte: u8| {
            let land = Land::new(seq, 0, Kind::Inline, 40, 7);
            let mut words = [0u64; 8];
            words[0] = land.0;
            words[2] = seq * 3;
            words[3..].fill(u64::from_ne_bytes([byte; 8]));
            words[1] = sum(land.0, &words[2..]);
            (land, words)
        };
        let ((old_land, old), (land, new)) = (record(4, 0x11), record(5, 0x22));
        for mixture in 0..1u32 << 8 {
            for (n, word) in front.landing.iter().enumerate().take(8) {
                word.store(if mixture >> n & 1 == 1 { new[n] } else { old[n] }, Ordering::Relaxed);
            }
            // The words of the data are equal, so which of them came does not matter, as long as it is one of each record's.
            let whole = front.whole_landing(land).is_some();
            assert_eq!(whole && mixture & 1 == 1, mixture == 0xff, "{mixture:#b}");
            assert_eq!(front.whole_landing(old_land).is_some(), mixture & 0xfe == 0, "{mixture:#b}");
        }
    }
}
