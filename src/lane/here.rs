//! A lane as this process has it: where its records lie.

mod name;

mod opening;

use std::ptr::null_mut;
use std::sync::Arc;

use static_assertions::const_assert;

use super::address::{COMM_WORLD, TAG_ANY};
use super::map::*;
use super::pair::Pair;
use super::peer_spool::PeerSpool;
use super::progress::*;
use super::record::*;
use crate::base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering, spin_loop, uses};
use crate::base::error::{Code, Error, Result, error};
use crate::base::run::Run;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::{LAYOUT_VERSION, Mapping, Region, SPOOL_AT, SPOOL_WINDOW};
use crate::wait::Board;
pub use name::Name;
pub use opening::Place;

/// A lane as this process has it: the records of one communicator with one peer. What all communicators share with this peer is in
/// its [`Pair`], to which a lane dereferences.
#[repr(C, align(64))]
pub struct Lane {
    // The two lines that a short message reads, first.
    /// comm << 32 | peer's rank in the communicator
    pub(super) key: u64,
    pub(super) progress: *mut u8,
    /// `SPECIAL_*`: anything that takes a send off its short path.
    pub special: AtomicU32,
    /// Indices that both sides have, the system's included.
    pub(super) limit: AtomicU32,
    /// The communicator's epoch, as the landings carry it.
    pub epoch: u16,
    /// The first hot line's halves for what this side sends: its own, and the one in which it is answered.
    sending: [*mut u8; 2],
    /// The same for what it receives: the sender's, and the one in which it answers.
    receiving: [*mut u8; 2],
    /// The first postings for what this side sends, and for what it receives.
    postings: [*mut u8; 2],
    my_side: *const Side,
    peer_side: *const Side,
    /// Whose half this process writes when it sends (0 lower, 1 higher rank in the world); the direction's number.
    pub out: usize,
    /// Whose half it reads when it receives.
    pub inn: usize,
    header: *mut u8,
    heads: *mut u8,
    splits: [*mut u8; 3],
    annexes: [*mut u8; 3],
    send_sides: *mut u8,
    receive_sides: *mut u8,
    shapes: *mut u8,
    announced: *mut u8,
    queue: *mut u8,
    map: Map,
    /// What this peer shares with all communicators.
    pub pair: Arc<Pair>,
    /// For the communicator's life: see [`Place`].
    place: Place,
    /// The bytes of private memory from `progress` on.
    private: usize,
    /// The counts of the pair, for those who read them from without.
    pub(super) counts: *const super::traffic::Counts,
    /// What the slots' counts of bytes sent have run over by.
    pub(super) sent_bytes: AtomicU64,
    /// Announcements put into the queue, and of these known to be taken.
    pub announced_queued: AtomicU64,
    /// See above.
    pub announced_taken: AtomicU64,
    /// As a receiver: announcements read from the peer's queue.
    pub announced_read: AtomicU64,
    /// As a receiver: what is announced next is what a receive of any index takes (see `p2p::any_index`).
    pub any_plain: AtomicBool,
    /// As a receiver: the slot of the last message received by any index, 0: none yet, and its length.
    pub any_slot: AtomicU32,
    /// See above.
    pub any_len: AtomicU64,
    /// As a receiver: 1 + the slot whose request was posted last of those for more than a short message; 0: none yet.
    pub posted_long: AtomicU32,
    /// Slots that ever had messages in the spool, each once.
    pub spooled: crate::base::lock::Mutex<Vec<u32>>,
    /// The receives of any index.
    pub any: crate::base::lock::Mutex<super::any::AnyState>,
    /// Threads that hold the lane, see [`Held`](super::table::Held).
    pub(super) held: AtomicU32,
    /// Between nodes: how it is found, and that it is used for good.
    pub(super) door: std::sync::OnceLock<&'static super::table::Door>,
    pub(super) pinned: AtomicBool,
    /// What it has besides when the peer is on another node.
    pub(super) remote: Option<Box<super::remote::Remote>>,
    /// This side's own reservations are unmapped with the lane.
    _window: Option<Mapping>,
}

impl core::ops::Deref for Lane {
    type Target = Pair;
    #[inline(always)]
    fn deref(&self) -> &Pair {
        uses(self);
        &self.pair
    }
}

/// [`Lane::special`]: sends of this communicator are synchronous.
pub const SPECIAL_SYNCHRONOUS: u32 = 1;
/// [`Lane::special`]: the peer is dead or has left.
pub const SPECIAL_GONE: u32 = 2;
/// [`Lane::special`]: the peer is on another node.
pub const SPECIAL_REMOTE: u32 = 4;
/// [`Lane::special`]: every message of the program waits for its receive, however short.
pub const SPECIAL_PATIENT: u32 = 8;

// SAFETY: the pointers are to memory that lives as long as the lane; what is behind them is atomics, or cells that one thread at a
// time uses, as `progress` says.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

const SEND_STRIDE: usize = 256;
const RECEIVE_STRIDE: usize = 128;
const_assert!(size_of::<SendSide>() <= SEND_STRIDE);
const_assert!(size_of::<ReceiveSide>() <= RECEIVE_STRIDE);

fn reserve(bytes: usize) -> Result<*mut u8> {
    // SAFETY: a new private mapping at an address of the kernel's choice. PROT_NONE: it counts against no limit yet.
    let p = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED { Err(Error::memory("reserving addresses for a lane (mmap)")) } else { Ok(p.cast()) }
}

fn open(at: *mut u8, bytes: usize) -> Result<()> {
    let bytes = bytes.next_multiple_of(PAGE.max(crate::fabric::shm::region::page_size()));
    // SAFETY: within a reservation of ours.
    let r = unsafe { libc::mprotect(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) };
    if r != 0 { Err(Error::memory("opening memory for a lane's indices (mprotect)")) } else { Ok(()) }
}

impl Lane {
    /// comm << 32 | peer
    #[inline(always)]
    pub fn key_of(comm: i32, peer: u32) -> u64 {
        (comm as u32 as u64) << 32 | peer as u64
    }
    /// The lane's key.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        uses(self);
        self.key
    }
    /// The peer's rank in the communicator.
    #[inline(always)]
    pub fn peer_rank(&self) -> u32 {
        self.key() as u32
    }
    /// The communicator, by its number in this process.
    #[inline(always)]
    pub fn comm(&self) -> i32 {
        Lane::comm_of(self.key())
    }
    /// The communicator of a key.
    #[inline(always)]
    pub fn comm_of(key: u64) -> i32 {
        ((key & !super::remote::REMOTE) >> 32) as i32
    }
    /// Slots that may be used, the system's first.
    #[inline(always)]
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }
    /// Is a long receive from this peer posted, by the request that was posted last? What is sent there meanwhile goes both ways.
    pub fn awaits_long(&self) -> bool {
        let slot = self.posted_long.load(Ordering::Relaxed);
        let flags = |slot: u32| self.progress(slot as usize - 1).recv_flags.load(Ordering::Relaxed);
        slot != 0 && flags(slot) & RECV_PENDING != 0
    }

    /// Is this the lane to myself?
    #[inline(always)]
    pub fn is_self(&self) -> bool {
        self.out == self.inn
    }

    /// Is it about to be freed, since its peer is being forgotten?
    pub(super) fn is_going(&self) -> bool {
        self.door.get().is_some_and(|door| door.is_closed())
    }

    /// Which communicator it belongs to, for those who agreed on it.
    pub fn place(&self) -> Place {
        self.place
    }
    /// Indices of the program's that there is room for.
    pub fn most_indices(&self) -> usize {
        self.map.slots - SYSTEM_INDICES
    }
    /// Whose block of a spool it is: slot and receiver, and which communicator's. (A stale head never leads into a block of another
    /// communicator's.)
    pub fn owner(&self, slot: usize, receiver: u32) -> u64 {
        (self.place.epoch as u64 & 0x7fff) << 49 | (slot as u64) << 32 | receiver as u64
    }
    /// The slot in what [`Lane::owner`] gave.
    pub fn slot_of_owner(owner: u64) -> usize {
        (owner >> 32 & 0x1_ffff) as usize
    }
    /// The words in which messages name (peer, index).
    pub fn name(&self, index: i32) -> Name {
        Name { comm: self.comm(), peer: self.peer_rank(), world: self.pair.world, index }
    }

    #[inline(always)]
    fn at<T>(&self, base: *mut u8, offset: usize) -> &T {
        // SAFETY: all callers below compute offsets of records within the window (their bounds are asserted in `map`, and
        // slots are below `limit`); the records are atomics, for which any content is valid.
        unsafe { &*base.add(offset).cast::<T>() }
    }
    #[inline(always)]
    fn run(&self, base: *mut u8, offset: usize, len: usize) -> Run {
        // SAFETY: within the window, as in `at`. Who reads and who writes there the protocol says, word by word.
        unsafe { Run::new(base.add(offset), len) }
    }
    /// The halves of a slot's hot line for what this side sends: its own, and the one in which it is answered.
    #[inline(always)]
    pub fn sending(&self, slot: usize) -> (&Half, &Half) {
        let [mine, theirs] = self.sending;
        (self.at(mine, slot * size_of::<Hot>()), self.at(theirs, slot * size_of::<Hot>()))
    }
    /// The halves of a slot's hot line for what this side receives: the sender's, and the one in which it answers.
    #[inline(always)]
    pub fn receiving(&self, slot: usize) -> (&Half, &Half) {
        let [theirs, mine] = self.receiving;
        (self.at(theirs, slot * size_of::<Hot>()), self.at(mine, slot * size_of::<Hot>()))
    }
    /// Place in an array that has both directions: 64 slots of the one, the same of the other. So they share pages, which are
    /// what memory costs, and no lines, which are what time costs.
    #[inline(always)]
    fn paired(direction: usize, slot: usize) -> usize {
        slot + (slot & !63) + direction * 64
    }
    /// The posting of a slot for what this side sends.
    #[inline(always)]
    pub fn posting_there(&self, slot: usize) -> &Posting {
        self.at(self.postings[0], Lane::paired(0, slot) * size_of::<Posting>())
    }
    /// The posting of a slot for what this side receives.
    #[inline(always)]
    pub fn posting_here(&self, slot: usize) -> &Posting {
        self.at(self.postings[1], Lane::paired(0, slot) * size_of::<Posting>())
    }
    /// The shape beside the posting.
    #[inline(always)]
    pub fn shape(&self, direction: usize, slot: usize) -> &Shape {
        self.at(self.shapes, Lane::paired(direction, slot) * size_of::<Shape>())
    }
    /// The head of a slot's chain.
    #[inline(always)]
    pub fn head(&self, direction: usize, slot: usize) -> &Head {
        self.at(self.heads, Lane::paired(direction, slot) * size_of::<Head>())
    }
    /// An annex of a slot, [`ANNEX_BYTES`] long: the one in turn (0), or a direction's own (1, 2).
    #[inline(always)]
    pub fn annex(&self, which: usize, slot: usize) -> Run {
        self.run(self.annexes[which], slot * ANNEX_BYTES, ANNEX_BYTES)
    }
    /// What continues the annex of the same number, [`LONG_ANNEX_BYTES`] long.
    #[inline(always)]
    pub fn long_annex(&self, which: usize, slot: usize) -> Run {
        let at = self.map.long_annex + (which * self.map.slots + slot) * LONG_ANNEX_BYTES;
        self.run(self.header, at, LONG_ANNEX_BYTES)
    }
    /// A split line of a slot, numbered like the annexes: 56 bytes that go with the landing's 16.
    #[inline(always)]
    pub fn split(&self, which: usize, slot: usize) -> Run {
        self.run(self.splits[which], slot * 64, 56)
    }
    /// The split line's last word: which message it belongs to, [`split_mark`].
    #[inline(always)]
    pub fn split_seq(&self, which: usize, slot: usize) -> &AtomicU64 {
        self.at(self.splits[which], slot * 64 + 56)
    }
    /// The first page.
    #[inline(always)]
    pub fn header(&self) -> &LaneHeader {
        self.at(self.header, 0)
    }
    /// What this process says of itself. (For a lane to myself there is one side.)
    #[inline(always)]
    pub fn my_side(&self) -> &Side {
        // SAFETY: in the header, which lives as long as the lane.
        unsafe { &*self.my_side }
    }
    /// What the peer says of itself.
    #[inline(always)]
    pub fn peer_side(&self) -> &Side {
        // SAFETY: as above.
        unsafe { &*self.peer_side }
    }
    /// A transfer block of a direction.
    #[inline]
    pub fn transfer(&self, direction: usize, n: usize) -> &Transfer {
        self.at(
            self.pair.window.as_ptr(),
            TRANSFERS_AT + (direction * TRANSFERS + n % TRANSFERS) * size_of::<Transfer>(),
        )
    }
    /// The flags of a ring: one a chunk, then (line [`RING_CHUNKS`]) the receiver's progress.
    #[inline]
    pub fn ring_flag(&self, direction: usize, ring: usize, line: usize) -> &RingFlag {
        self.at(
            self.pair.window.as_ptr(),
            RING_FLAGS_AT + ((direction * RINGS + ring % RINGS) * RING_FLAG_LINES + 2 * line % RING_FLAG_LINES) * 64,
        )
    }
    /// The flag of a chunk in an area that is used in turn.
    #[inline]
    pub fn turn_flag(&self, area: usize, chunk: usize) -> &RingFlag {
        self.at(self.pair.window.as_ptr(), TURN_FLAGS_AT + (area % TURNS * TURN_CHUNKS + chunk % TURN_CHUNKS) * 128)
    }
    /// The bytes of an area that is used in turn.
    #[inline]
    pub fn turn_data(&self, area: usize) -> Run {
        self.run(self.pair.window.as_ptr(), TURN_DATA_AT + area % TURNS * TURN_BYTES, TURN_BYTES)
    }
    /// The chunks of a ring.
    #[inline]
    pub fn ring_data(&self, direction: usize, ring: usize) -> Run {
        let at = RING_DATA_AT + (direction * RINGS + ring % RINGS) * RING_BYTES;
        self.run(self.pair.window.as_ptr(), at, RING_BYTES)
    }
    /// A word of the announcements of a direction: first the summary, then the bits of the slots.
    #[inline]
    pub fn announced(&self, direction: usize, word: usize) -> &AtomicU64 {
        self.at(self.announced, direction * self.map.announced[1] + word % (self.map.announced[1] / 8) * 8)
    }

    /// Announcement `n` of a direction in the queue. Written by the sender.
    #[inline(always)]
    pub fn announcement(&self, direction: usize, n: u64) -> &Announcement {
        self.at(self.queue, 128 + (n as usize % ANNOUNCED_QUEUE) * 64 + direction * 32)
    }
    /// Announcements that the receiver has taken from the queue.
    #[inline]
    pub fn announcements_taken(&self, direction: usize) -> &AtomicU64 {
        self.at(self.queue, direction * 64)
    }
    /// The posting of kind any-index for messages that `direction` sends: 0, [`ANY_POSTED`], or the message that has it ([`any_claim`]).
    /// Synchronous sends only look at it, so it is in none of the lines that others use.
    #[inline]
    pub fn any_posting(&self, direction: usize) -> &AtomicU64 {
        self.at(self.queue, direction * 64 + 8)
    }
    /// Threads of the sending side sleep that could use such a posting: who posts rings.
    #[inline]
    pub fn any_wanted(&self, direction: usize) -> &AtomicU32 {
        self.at(self.queue, direction * 64 + 16)
    }

    /// This side's record of a slot.
    #[inline(always)]
    pub fn progress(&self, slot: usize) -> &Progress {
        // SAFETY: slots are below `limit`, up to which the reservation is open.
        unsafe { &*self.progress.add(slot * PROGRESS_STRIDE).cast::<Progress>() }
    }
    /// The sending side of a slot; [`progress`](super::progress) says who may use it.
    #[inline(always)]
    pub fn send_side(&self, slot: usize) -> &SendSide {
        // SAFETY: open memory below `limit`, that nobody has an exclusive reference to. All zero bytes are a valid SendSide: cells of
        // numbers, of enums with a fixed layout whose first variant is 0, and of an `Option<Box<_>>`, whose `None` is null.
        unsafe { &*self.send_sides.add(slot * SEND_STRIDE).cast::<SendSide>() }
    }
    /// The receiving side of a slot; [`progress`](super::progress) says who may use it.
    #[inline(always)]
    pub fn receive_side(&self, slot: usize) -> &ReceiveSide {
        // SAFETY: as in `send_side`.
        unsafe { &*self.receive_sides.add(slot * RECEIVE_STRIDE).cast::<ReceiveSide>() }
    }

    /// What the pending receive of a slot was given; for the slot's receiving thread.
    #[inline(always)]
    pub fn wanted(&self, slot: usize) -> &Wanted {
        // SAFETY: as in `send_side`; all zero bytes are a valid Wanted.
        unsafe { &*self.progress.add(slot * PROGRESS_STRIDE + WANTED_AT).cast::<Wanted>() }
    }

    /// Loans that were sent on a slot, and their bytes: its sending thread writes them, any may read.
    #[inline(always)]
    pub fn loaned(&self, slot: usize) -> &[AtomicU64; 2] {
        // SAFETY: as in `progress`, in the same line.
        unsafe { &*self.progress.add(slot * PROGRESS_STRIDE + LOANED_AT).cast() }
    }

    /// This side's own memory for the indices.
    pub fn private_memory(&self) -> (*const u8, usize) {
        uses(self);
        (self.progress, self.private)
    }

    /// Does the peer do its part when this side calls `membarrier`? (Between nodes nothing hangs on it.)
    #[inline(always)]
    pub fn is_ordered(&self) -> bool {
        self.peer.as_ref().is_none_or(|peer| peer.region.header().is_ordered())
    }

    /// Can something be written to the peer without a wait for a connection? If there is none it is [asked for](crate::fabric::network::link::Link::is_there).
    #[inline]
    pub fn is_there(&self) -> bool {
        self.remote().is_none_or(|remote| remote.link.is_there())
    }

    /// Why the peer can do nothing more, if it cannot.
    #[inline]
    pub fn gone(&self) -> Option<&str> {
        if let Some(remote) = self.remote() {
            return remote.link.failure().or(remote.has_left().then_some("has finalized"));
        }
        // A rank that never used this communicator's lane says of itself that it has left, not of its side here.
        if self.peer_side().state.load(Ordering::Acquire) == SIDE_FINALIZED
            || self.place.units != 0 && self.peer.as_ref().is_some_and(|peer| peer.has_left())
        {
            return Some("has finalized");
        }
        if self.place.units != 0 && self.is_freed_there() {
            return Some("has freed the communicator");
        }
        if self.dead.load(Ordering::Acquire) != 0 {
            return Some("has died");
        }
        self.peer.as_ref()?.broken()
    }
    /// Can the peer do nothing more for certain, as the system says? What it writes of itself, and what it has damaged, proves no such thing.
    pub fn is_dead(&self) -> bool {
        if self.remote().is_some() { self.gone().is_some() } else { self.dead.load(Ordering::Acquire) != 0 }
    }
    /// Has the peer freed this lane's communicator?
    pub fn is_freed_there(&self) -> bool {
        self.pair.life(self.place.unit, self.place.epoch) == Life::Freed
    }
    /// The error of a call that needs a peer which is gone.
    #[cold]
    pub fn peer_error(&self, me: u32, what: &str, call: &str, index: i32) -> Error {
        let (name, world) = (self.name(index), self.pair.world);
        error!(Code::Peer, "rank {me}: {call} {name}: rank {world} {what}")
    }
    /// The peer's spool (for a lane to myself, mine).
    #[inline]
    pub fn peer_spool(&self, mine: &Region) -> Result<PeerSpool> {
        if let Some(window) = self.spool.get() {
            return Ok(PeerSpool::new(window));
        }
        self.map_spool(mine)
    }
    #[cold]
    fn map_spool(&self, mine: &Region) -> Result<PeerSpool> {
        let window = match &self.peer {
            Some(peer) => peer.region.map(SPOOL_AT, SPOOL_WINDOW)?,
            None => mine.map(SPOOL_AT, SPOOL_WINDOW)?,
        };
        Ok(PeerSpool::new(self.spool.get_or_init(|| window)))
    }
    /// How many messages of a slot went through the spool, ever. Its sending thread writes it, any may read.
    pub fn spooled_ever(&self, slot: usize) -> &AtomicU64 {
        &self.send_side(slot).spooled
    }
    /// Counts a message that goes through the spool.
    pub fn count_spooled(&self, slot: usize) {
        let ever = self.spooled_ever(slot);
        ever.store(ever.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    /// Notes that the slot has had messages in the spool, for those who count them.
    pub fn note_spooled(&self, slot: usize) {
        let first = self.send_side(slot);
        if !first.listed.replace(true) {
            self.spooled.lock().unwrap_or_else(|e| e.into_inner()).push(slot as u32);
        }
    }

    /// Notes that the slot's group has been used by this side as a sender.
    #[cold]
    pub fn touch(&self, slot: usize) {
        let group = slot / GROUP_INDICES;
        self.header().touched[self.out][group / 64].fetch_or(1 << (group % 64), Ordering::Relaxed);
    }
}
