//! Messages of any source between nodes: a second ring beside the one in shared memory, for the senders of other nodes.
//!
//! A device's atomic operations on a word are atomic against each other, and with most devices not against those of processors. So
//! senders of other nodes have a **far ring** of their own for each (communicator, index), in registered memory of the receiver, and only
//! devices change its counter; the receiver reads it, and takes messages from both rings in turn. It is made when its first sender asks.
//!
//! ```text
//!  0     sent                   tickets given out (SendCNT), by remote fetch-and-add
//!  64    freed, limit, asleep   the receiver's: messages taken (RecvCNT); how many may be outstanding; 1: it sleeps
//!  128   slots, 1088 B each     mark | source 32, length 32 | check | up to 1 KiB, or where the message is
//!
//!   S                                                              R
//!   room as far as known?     no: reads the counters, backs off
//!   ticket = fetch-and-add of `sent`
//!   ticket < freed + N?       no: keeps it, reads again, backs off
//!   slot [ticket mod N]       one RDMA write ─────────────────▶    mark of the next ticket, and its check is right? takes the bytes
//!   reads the counters        behind the write                     freed = ticket + 1
//!   asleep?  calls R's thread
//! ```
//! The fetch-and-add is done whether there is room or not, since a compare-and-swap that fails costs a way there and back. A sender looks
//! for room before, so it holds a ticket beyond the room only when others came in between. If its message is not sent after all, the next
//! one to that ring goes under the ticket, or, if there is none, an empty slot ([`FarKind::Nothing`]) does.
//!
//! A message of more than 1 KiB stays at its sender: copied into the spool, or where it is, registered; then a record in the spool
//! says where. The receiver reads it, and when it has, looks at the record: a sender whose patience ends copies the message into the spool and
//! changes the record *before* its memory is the program's again, so a record that still says the same after the bytes have come proves them.
//!
//! **A sender that dies** with a ticket: the receiver asks each of the others whether it has it. A sender's answer comes behind what it has
//! written, so if nobody has, and the slot is still empty, it was the dead one's.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use static_assertions::const_assert;

use super::ring::{AREA_BYTES, Arrival, Kind};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::fabric::verbs::Place;
use crate::fabric::verbs::control::{Bounce, Fabric};
use crate::fabric::verbs::ffi::Access;
use crate::fabric::verbs::link::Piece;
use crate::fabric::verbs::region::{Arena, Region};
use crate::lane::far::{Ask, Asked, Call, Far, sum};
use crate::lane::record::BLOCK_HEADER;
use crate::lane::{BlockRef, Lane};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::far::{Remote, registered, transfer, write_back};
use crate::p2p::layout::Layout;

const SENT_AT: usize = 0;
const FREED_AT: usize = 64;
const SLOTS_AT: usize = 128;
/// Bytes of a slot before the message.
const HEAD: usize = 24;
const SLOT: usize = 64 + AREA_BYTES;
/// Offset of a block's word that says that it is done with.
const DONE_AT: u64 = 68;
const_assert!(core::mem::offset_of!(crate::lane::record::Block, done) == DONE_AT as usize);
const_assert!(HEAD + AREA_BYTES <= SLOT);

/// Up to this many bytes a long message is copied into the spool at once rather than registered.
const COPIED_AT_ONCE: usize = 64 << 10;
/// How long a sender leaves a full ring alone, at first and at most.
const PAUSE_NS: [u64; 2] = [50_000, 4_000_000];

/// A far ring of this process.
pub struct FarRing {
    memory: Arena,
    mask: u64,
    epoch: AtomicU16,
}

impl FarRing {
    /// An empty ring of so many slots, a power of two.
    pub fn new(fabric: &Fabric, slots: usize, epoch: u16) -> Result<FarRing> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = Arena::new(fabric.domain(), SLOTS_AT + slots * SLOT, access)?;
        let ring = FarRing { memory, mask: slots as u64 - 1, epoch: AtomicU16::new(epoch) };
        ring.set_asleep(true);
        Ok(ring)
    }

    /// Makes an empty ring of one whose communicator is freed. Until somebody looks at it, whoever sends calls this process.
    pub fn renew(&self, epoch: u16) {
        self.epoch.store(epoch, Ordering::Relaxed);
        for at in [SENT_AT, FREED_AT, FREED_AT + 8] {
            self.word(at).store(0, Ordering::Release);
        }
        self.set_asleep(true);
    }

    /// Where senders find it, and how many slots it has.
    pub fn place(&self) -> (Place, u32) {
        let region = self.memory.region();
        (Place { addr: region.addr(), rkey: region.rkey() }, self.mask as u32 + 1)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: offsets are those of the drawing, within the arena; a ring is atomics only.
        unsafe { &*self.memory.as_ptr().add(at).cast() }
    }

    #[inline(always)]
    fn slot(&self, ticket: u64) -> usize {
        SLOTS_AT + (ticket & self.mask) as usize * SLOT
    }

    /// Messages taken so far.
    pub fn freed(&self) -> u64 {
        self.word(FREED_AT).load(Ordering::Acquire)
    }

    /// The message of a ticket, if it is there and whole.
    #[inline]
    pub fn arrival(&self, ticket: u64) -> Option<Arrival> {
        let at = self.slot(ticket);
        let mark = self.word(at).load(Ordering::Acquire);
        if mark as u32 != (ticket + 1) as u32 || (mark >> 48) as u16 != self.epoch.load(Ordering::Relaxed) {
            return None;
        }
        let source = self.word(at + 8).load(Ordering::Acquire);
        let (kind, len) = (Kind::from_number((mark >> 32) as u8)?, (source >> 32) as u32);
        let words = match kind {
            Kind::Nothing => 0,
            Kind::Area => (len as usize).min(AREA_BYTES).div_ceil(8),
            _ => Away::WORDS,
        };
        let mut all = [0u64; 1 + AREA_BYTES / 8];
        all[0] = source;
        for (n, to) in all[1..1 + words].iter_mut().enumerate() {
            *to = self.word(at + HEAD + 8 * n).load(Ordering::Acquire);
        }
        let whole = sum(mark, &all[..1 + words]) == self.word(at + 16).load(Ordering::Acquire);
        whole.then_some(Arrival { kind, source: source as u32, len })
    }

    /// Copies the first `n` bytes of a message that lies in its slot.
    ///
    /// # Safety
    /// `n` writable bytes at `to`; the message of the ticket is there.
    pub unsafe fn deliver(&self, ticket: u64, to: *mut u8, n: usize) {
        // SAFETY: as the caller promises; the bytes stay until the slot is freed.
        unsafe {
            let from = self.memory.as_ptr().add(self.slot(ticket) + HEAD);
            crate::base::atomics::copy(from, to, n.min(AREA_BYTES));
        }
    }

    /// Where the message of a ticket is that lies with its source.
    pub fn away(&self, ticket: u64) -> Away {
        let at = self.slot(ticket) + HEAD;
        Away::decode([0, 1, 2, 3, 4].map(|n| self.word(at + 8 * n).load(Ordering::Relaxed)))
    }

    /// So many messages are taken by now.
    #[inline]
    pub fn free(&self, taken: u64) {
        // SYNC POINT: senders read it before they write to the slots below.
        self.word(FREED_AT).store(taken, Ordering::Release);
    }

    /// Has somebody taken this ticket?
    pub fn is_claimed(&self, ticket: u64) -> bool {
        self.word(SENT_AT).load(Ordering::Acquire) > ticket
    }

    /// How many messages may be outstanding; 0: as many as there are slots.
    pub fn set_limit(&self, most: u64) {
        self.word(FREED_AT + 8).store(most, Ordering::Release);
    }

    /// The receiver sleeps, or does not any more. The caller orders this with its look at the slots.
    pub fn set_asleep(&self, asleep: bool) {
        self.word(FREED_AT + 16).store(asleep as u64, Ordering::SeqCst);
        crate::base::atomics::fence(crate::base::atomics::Ordering::SeqCst);
    }

    /// Does the receiver sleep, or has it an event descriptor?
    pub fn is_asleep(&self) -> bool {
        self.word(FREED_AT + 16).load(Ordering::Relaxed) != 0
    }
}

/// Where a message is that lies with its source, on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Bytes of the message.
    pub len: u64,
    /// The message, at first.
    data: Place,
    /// The block of the source's spool.
    block: Place,
    generation: u32,
}

impl Away {
    const WORDS: usize = 5;

    fn encode(&self) -> [u64; Away::WORDS] {
        let keys = self.data.rkey as u64 | (self.block.rkey as u64) << 32;
        [self.len, self.data.addr, keys, self.block.addr, self.generation as u64]
    }
    fn decode([len, addr, keys, block, generation]: [u64; Away::WORDS]) -> Away {
        let data = Place { addr, rkey: keys as u32 };
        Away { len, data, block: Place { addr: block, rkey: (keys >> 32) as u32 }, generation: generation as u32 }
    }

    /// Fetches the message from its source, whose lane is `far`. `offered`: a record says where it is by now.
    ///
    /// # Safety
    /// `cap` writable bytes at `to`.
    pub unsafe fn fetch(&self, far: &Far, offered: bool, to: *mut u8, cap: usize) -> Result<()> {
        let n = cap.min(self.len as usize);
        let mut data = self.data;
        loop {
            if n > 0 {
                let local = Layout::Contiguous { ptr: to, len: n };
                // SAFETY: as the caller promises; the source leaves the bytes alone, or says so in the record.
                unsafe { transfer(far, false, local, 0, n, Remote::run(data.addr, data.rkey))? };
            }
            if !offered {
                break;
            }
            let now = self.record(far)?;
            if now == data {
                break;
            }
            data = now;
        }
        write_back(far, self.block.addr + DONE_AT, self.block.rkey, self.generation);
        Ok(())
    }

    /// Where the message is now.
    fn record(&self, far: &Far) -> Result<Place> {
        let mut words = [0u64; 3];
        loop {
            let local = Layout::Contiguous { ptr: words.as_mut_ptr().cast(), len: 24 };
            let remote = Remote::run(self.block.addr + BLOCK_HEADER as u64, self.block.rkey);
            // SAFETY: three words of ours; the block is the source's until it is marked done.
            unsafe { transfer(far, false, local, 0, 24, remote)? };
            if words[2] == sum(self.generation as u64, &words[..2]) {
                return Ok(Place { addr: words[0], rkey: words[1] as u32 });
            }
        }
    }
}

/// Goods of a long message, ready to be published or published.
pub struct Goods {
    block: BlockRef,
    away: Away,
    /// The program's memory, registered: the message is offered.
    region: Option<Arc<Region>>,
}

impl Goods {
    /// Is the message where the program has it?
    pub fn is_offered(&self) -> bool {
        self.region.is_some()
    }
    /// They were not published, or are done.
    pub fn give_back(self, ep: &Endpoint) {
        ep.spool.give_back(self.block);
    }
    /// Gives an offered message up, of whose sending an error has been told. The receiver may be reading it.
    pub fn abandon(self, ep: &Endpoint) {
        ep.any_source.add_moved(Moved { goods: self, copy: None });
    }
    /// Has the receiver the message?
    pub fn is_done(&self, ep: &Endpoint) -> bool {
        !ep.spool.is_held(self.block) || ep.spool.is_done(self.block)
    }
}

/// A message whose offer was moved into the spool: what must stay until the receiver has it.
pub struct Moved {
    goods: Goods,
    /// None: a message that was given up, whose memory stays registered.
    copy: Option<BlockRef>,
}

impl Moved {
    /// Gives back what is not needed any more. `true`: it still is.
    pub fn stays(&self, ep: &Endpoint) -> bool {
        let stays = !self.goods.is_done(ep);
        if !stays {
            self.copy.map(|copy| ep.spool.give_back(copy));
            ep.spool.give_back(self.goods.block);
        }
        stays
    }
}

/// What a sender of this process is doing to far rings of others, for a receiver that asks because somebody died.
#[derive(Default)]
pub struct FarStakes(Mutex<Vec<Stake>>);

#[derive(Clone, Copy, PartialEq)]
struct Stake {
    rank: u32,
    ring: u64,
    /// `None`: it is being drawn.
    ticket: Option<u64>,
}

impl FarStakes {
    fn lock(&self) -> MutexGuard<'_, Vec<Stake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Has this process this ticket of the ring at this address of this rank, or may it just be drawing it?
    pub fn has(&self, rank: u32, ring: u64, ticket: u64) -> bool {
        self.lock().iter().any(|s| (s.rank, s.ring) == (rank, ring) && s.ticket.is_none_or(|t| t == ticket))
    }
    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
    fn remove(&self, stake: Stake) {
        let mut all = self.lock();
        if let Some(n) = all.iter().position(|s| *s == stake) {
            all.swap_remove(n);
        }
    }
}

/// A far ring of a rank on another node, as a sender.
pub struct FarRoad {
    lane: &'static Lane,
    ring: Place,
    slots: u64,
    state: Mutex<Known>,
}

/// What is known of the ring.
#[derive(Default)]
struct Known {
    sent: u64,
    freed: u64,
    limit: u64,
    asleep: bool,
    /// A ticket that was drawn and is not used yet.
    held: Option<u64>,
    /// Not to be looked at again before, and the pause after that.
    until_ns: u64,
    pause_ns: u64,
}

impl Known {
    fn room(&self) -> u64 {
        self.freed + self.limit
    }
    /// Backs off: longer each time.
    fn rest(&mut self) {
        self.pause_ns = (2 * self.pause_ns).clamp(PAUSE_NS[0], PAUSE_NS[1]);
        self.until_ns = now_ns() + self.pause_ns;
    }
}

impl FarRoad {
    /// Asks the receiver for its ring of this index. `None`: it is not there yet, and the call is to be made again.
    pub fn find(lane: &'static Lane, index: usize) -> Option<FarRoad> {
        let far = lane.far()?;
        let asked = Asked { what: Ask::Ring, slot: index, seq: 0, at: 0 };
        let found = far.ask_for(asked, || lane.gone().is_none()).flatten();
        found.map(|[addr, key]| FarRoad {
            lane,
            ring: Place { addr, rkey: key as u32 },
            slots: (key >> 32).max(1),
            state: Mutex::default(),
        })
    }

    fn stake(&self, ticket: Option<u64>) -> Stake {
        Stake { rank: self.lane.world, ring: self.ring.addr, ticket }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn far(&self) -> &'static Far {
        self.lane.far().expect("made of a far lane")
    }

    /// Why the receiver can do nothing any more; `None`: it can.
    pub fn gone(&self) -> Option<&str> {
        self.lane.gone()
    }

    /// What a lasting wait does for the connection.
    pub fn tend(&self) {
        self.far().tend();
    }

    /// How many messages may be outstanding, as far as is known.
    pub fn limit(&self) -> u64 {
        self.lock().limit
    }

    fn piece(bounce: &Bounce<'_>, at: usize, len: usize) -> Piece {
        let arena = bounce.arena();
        Piece { addr: arena.as_ptr() as u64 + at as u64, len: len as u32, lkey: arena.region().lkey() }
    }

    /// Takes over the counters that have been read into the beginning of a bounce buffer.
    fn note(&self, known: &mut Known, bounce: &Bounce<'_>) {
        let word = |at: usize| {
            // SAFETY: the buffer is longer, and the device is done with it.
            unsafe { bounce.arena().as_ptr().add(at).cast::<u64>().read() }
        };
        known.sent = known.sent.max(word(SENT_AT));
        known.freed = known.freed.max(word(FREED_AT));
        known.limit = match word(FREED_AT + 8) {
            0 => self.slots,
            n => n.min(self.slots),
        };
        known.asleep = word(FREED_AT + 16) != 0;
    }

    fn look(&self, known: &mut Known) -> Result<()> {
        let far = self.far();
        let bounce = far.fabric().bounce()?;
        // SAFETY: the buffer is ours until the wait is over.
        let ticket = unsafe { far.link.bulk(false, true, &[FarRoad::piece(&bounce, 0, SLOTS_AT)], self.ring)? };
        far.link.wait(ticket)?;
        self.note(known, &bounce);
        Ok(())
    }

    /// A ticket with room. `None`: the ring is full, as far as is known.
    fn claim(&self, ep: &Endpoint, known: &mut Known) -> Result<Option<u64>> {
        if known.held.map_or(known.sent, |t| t) >= known.room() {
            if now_ns() < known.until_ns {
                return Ok(None);
            }
            self.look(known)?;
        }
        let ticket = match known.held {
            Some(ticket) => ticket,
            None if known.sent >= known.room() => {
                known.rest();
                return Ok(None);
            }
            None => {
                let drawing = self.stake(None);
                ep.any_source.far_stakes.lock().push(drawing);
                let drawn = self.draw();
                match drawn {
                    Ok(ticket) => {
                        let mut all = ep.any_source.far_stakes.lock();
                        if let Some(stake) = all.iter_mut().find(|s| **s == drawing) {
                            stake.ticket = Some(ticket);
                        }
                    }
                    Err(_) => ep.any_source.far_stakes.remove(drawing),
                }
                let ticket = drawn?;
                known.sent = known.sent.max(ticket + 1);
                known.held = Some(ticket);
                if ticket >= known.room() {
                    self.look(known)?;
                }
                ticket
            }
        };
        if ticket >= known.room() {
            known.rest();
            return Ok(None);
        }
        known.pause_ns = 0;
        Ok(Some(ticket))
    }

    /// The next ticket.
    fn draw(&self) -> Result<u64> {
        let far = self.far();
        let bounce = far.fabric().bounce()?;
        // SAFETY: the buffer is ours until the wait is over.
        let ticket = unsafe { far.link.fetch_add(self.ring, 1, FarRoad::piece(&bounce, 0, 8))? };
        far.link.wait(ticket)?;
        // SAFETY: as in `note`.
        Ok(unsafe { bounce.arena().as_ptr().cast::<u64>().read() })
    }

    /// Writes the record of a ticket and looks whether the receiver sleeps.
    fn publish(
        &self,
        ep: &Endpoint,
        known: &mut Known,
        ticket: u64,
        kind: Kind,
        len: u32,
        fill: &dyn Fn(*mut u8) -> usize,
    ) -> Result<()> {
        let far = self.far();
        let bounce = far.fabric().bounce()?;
        const AT: usize = SLOTS_AT;
        // SAFETY: the buffer is longer than counters and a slot, and ours.
        let (bytes, words) = unsafe {
            let record = bounce.arena().as_ptr().add(AT);
            let bytes = fill(record.add(HEAD));
            let padded = bytes.next_multiple_of(8);
            record.add(HEAD + bytes).write_bytes(0, padded - bytes);
            let words = std::slice::from_raw_parts_mut(record.cast::<u64>(), (HEAD + padded) / 8);
            (HEAD + padded, words)
        };
        words[0] = (ticket + 1) & 0xffff_ffff | (kind as u64) << 32 | (self.lane.epoch as u64) << 48;
        words[1] = ep.rank as u64 | (len as u64) << 32;
        let mut all = [0u64; 1 + AREA_BYTES / 8];
        all[0] = words[1];
        all[1..words.len() - 2].copy_from_slice(&words[3..]);
        words[2] = sum(words[0], &all[..words.len() - 2]);
        let slot = SLOTS_AT as u64 + ticket % self.slots * SLOT as u64;
        let to = Place { addr: self.ring.addr + slot, rkey: self.ring.rkey };
        // SAFETY: the buffer is ours until the wait is over, which is that of both.
        let over = unsafe {
            far.link.bulk(true, false, &[FarRoad::piece(&bounce, AT, bytes)], to)?;
            // Behind the write: either the receiver sees the slot before it sleeps, or this sees that it does.
            far.link.bulk(false, true, &[FarRoad::piece(&bounce, 0, SLOTS_AT)], self.ring)
        };
        known.held = None;
        ep.any_source.far_stakes.remove(self.stake(Some(ticket)));
        far.link.wait(over?)?;
        self.note(known, &bounce);
        if known.asleep {
            far.call(Call::Wake);
        }
        Ok(())
    }

    /// Puts a message of up to [`AREA_BYTES`] bytes into a slot; its ticket. `None`: no room now.
    ///
    /// # Safety
    /// `len` readable bytes at `ptr`.
    pub unsafe fn place(&self, ep: &Endpoint, ptr: *const u8, len: usize) -> Result<Option<u64>> {
        let mut known = self.lock();
        let Some(ticket) = self.claim(ep, &mut known)? else { return Ok(None) };
        let fill = |to: *mut u8| {
            // SAFETY: as the caller promises; a slot has room for it.
            unsafe { crate::base::atomics::copy(ptr, to, len) };
            len
        };
        self.publish(ep, &mut known, ticket, Kind::Area, len as u32, &fill)?;
        Ok(Some(ticket))
    }

    /// The same for a message that lies with this process.
    pub fn place_away(&self, ep: &Endpoint, goods: &Goods) -> Result<Option<u64>> {
        let mut known = self.lock();
        let Some(ticket) = self.claim(ep, &mut known)? else { return Ok(None) };
        let words = goods.away.encode();
        let fill = |to: *mut u8| {
            // SAFETY: a slot has room for it.
            unsafe { to.cast::<[u64; Away::WORDS]>().write(words) };
            size_of_val(&words)
        };
        let kind = if goods.is_offered() { Kind::Offered } else { Kind::Spooled };
        self.publish(ep, &mut known, ticket, kind, 0, &fill)?;
        Ok(Some(ticket))
    }

    /// Uses a ticket up for which there is no message. `true`: there is one still.
    pub fn settle(&self, ep: &Endpoint) -> bool {
        let Ok(mut known) = self.state.try_lock() else { return true };
        if known.held.is_none() || self.gone().is_some() {
            return false;
        }
        match self.claim(ep, &mut known) {
            Ok(Some(ticket)) => {
                let _ = self.publish(ep, &mut known, ticket, Kind::Nothing, 0, &|_| 0);
                false
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Is the message of this ticket taken?
    pub fn is_taken(&self, ticket: u64) -> Result<bool> {
        let mut known = self.lock();
        if known.freed <= ticket && now_ns() >= known.until_ns {
            self.look(&mut known)?;
            if known.freed <= ticket {
                known.rest();
            }
        }
        Ok(known.freed > ticket)
    }

    /// Is it worth looking again?
    pub fn is_due(&self) -> bool {
        now_ns() >= self.lock().until_ns
    }

    /// Messages that are sent and not taken, of all senders of other nodes.
    pub fn outstanding(&self) -> u64 {
        let mut known = self.lock();
        if self.gone().is_some() || self.look(&mut known).is_err() {
            return 0;
        }
        known.sent.saturating_sub(known.freed)
    }

    /// Prepares a long message. `None`: there is no room in the spool now. `copy`: it must not stay where it is.
    ///
    /// # Safety
    /// `len` readable bytes at `ptr`; if the goods are offered, until they are done or moved.
    pub unsafe fn pack(
        &self,
        ep: &Endpoint,
        comm: i32,
        ptr: *const u8,
        len: usize,
        timeout: i32,
    ) -> Result<Option<Goods>> {
        let far = self.far();
        let copy = || -> Result<Option<Goods>> {
            // SAFETY: as the caller promises.
            let Some(block) = (unsafe { super::send::copy_into_spool(ep, comm, ptr, len) }) else { return Ok(None) };
            self.goods(ep, block, None, len, ptr).map(Some)
        };
        if timeout == 0 || timeout > 0 && len <= COPIED_AT_ONCE {
            return copy();
        }
        // SAFETY: as the caller promises; the registration lives as long as the goods.
        let Some(region) = (unsafe { registered(far, ptr.cast_mut(), len, false) }) else {
            let goods = copy()?;
            if goods.is_none() && len > ep.spool.budget(comm).limit() {
                return Err(Error::new(
                    Code::Memory,
                    format!(
                        "rank {}: any-source send of {len} bytes to another node: they cannot be registered with the RDMA device, and \
                         the spool is limited to {}",
                        ep.rank,
                        ep.spool.budget(comm).limit()
                    ),
                ));
            }
            return Ok(goods);
        };
        let Some(block) = ep.spool.take(comm, 64, 0) else { return Ok(None) };
        self.goods(ep, block, Some(region), len, ptr).map(Some)
    }

    fn goods(
        &self,
        ep: &Endpoint,
        block: BlockRef,
        region: Option<Arc<Region>>,
        len: usize,
        ptr: *const u8,
    ) -> Result<Goods> {
        let (at, bytes) = ep.spool.extent(block);
        // SAFETY: the spool's memory stays mapped as long as the process is on the fabric, and the allocator gives out what is free.
        let key = unsafe { self.far().fabric().spool_key(at, bytes) };
        let rkey = key.inspect_err(|_| _ = ep.spool.give_back(block))?;
        let start = ep.spool.bytes(block.at) as u64;
        let data = match &region {
            Some(region) => Place { addr: ptr as u64, rkey: region.rkey() },
            None => Place { addr: start + BLOCK_HEADER as u64, rkey },
        };
        let away = Away { len: len as u64, data, block: Place { addr: start, rkey }, generation: block.generation };
        let goods = Goods { block, away, region };
        if goods.is_offered() {
            say_where(ep, &goods, data);
        }
        Ok(goods)
    }

    /// Copies an offered message into the spool, so that its memory is the program's again. The goods come back if there is no room.
    ///
    /// # Safety
    /// The message's bytes at `ptr`.
    pub unsafe fn withdraw(
        &self,
        ep: &Endpoint,
        comm: i32,
        ptr: *const u8,
        goods: Goods,
    ) -> std::result::Result<(), Goods> {
        // SAFETY: as the caller promises.
        let copy = unsafe { super::send::copy_into_spool(ep, comm, ptr, goods.away.len as usize) };
        let Some(copy) = copy else { return Err(goods) };
        let (at, bytes) = ep.spool.extent(copy);
        // SAFETY: as in `goods`.
        let Ok(rkey) = (unsafe { self.far().fabric().spool_key(at, bytes) }) else {
            ep.spool.give_back(copy);
            return Err(goods);
        };
        say_where(ep, &goods, Place { addr: ep.spool.bytes(copy.at) as u64 + BLOCK_HEADER as u64, rkey });
        ep.any_source.add_moved(Moved { goods, copy: Some(copy) });
        Ok(())
    }
}

/// Writes the record of an offer.
fn say_where(ep: &Endpoint, goods: &Goods, data: Place) {
    let record = ep.spool.bytes(goods.block.at + BLOCK_HEADER as u64);
    let words = [data.addr, data.rkey as u64];
    let check = sum(goods.away.generation as u64, &words);
    for (n, word) in [words[0], words[1], check].into_iter().enumerate() {
        // SAFETY: the block was taken with room for three words, which are atomics from now on.
        unsafe { &*record.cast::<AtomicU64>().add(n) }.store(word, Ordering::SeqCst);
    }
    // What the program does with the message's memory comes after.
    crate::base::atomics::fence(crate::base::atomics::Ordering::SeqCst);
}
