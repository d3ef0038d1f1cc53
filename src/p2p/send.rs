//! Sending: the sender alone decides how a message travels, and publishes it exactly once.
//!
//! 1. Short, and everything before it is consumed: into the landing, or the annex beside it.
//! 2. Its posting is there: straight into the receiver's buffer ([`super::transfer`]).
//! 3. Otherwise into the spool: by the landing if that is free, else into the **chain**, the packed records that the receiver walks
//!    by itself. A short message does so at once, a long one when the time-out has passed.
//!
//! Whether message s may use the landing is decided once, from one answer to the question whether everything before s is
//! consumed ([`Sender::consumed_all`]).

use crate::base::atomics::Ordering;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result};
use crate::lane::map::{ANNEX_BYTES, SPLIT_BYTES, SYSTEM_INDICES};
use crate::lane::record::*;
use crate::lane::*;
use crate::p2p::PROC_NULL;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::layout::{Cursor, Layout};
use crate::p2p::transfer::{Put, Ring};
use crate::wait::{Board, Operation, Scene, Turn, Waiter, Waits, doorbell, patience};

/// Largest block of a chain of short messages: a few of them in turn stay in the innermost caches of both cores.
const CHAIN_BLOCK: usize = if cfg!(loom) { 512 } else { 4 << 10 };
/// Turns that a send waits for the acknowledgement of the last one before it goes into the chain.
const ACK_PATIENCE: u32 = if cfg!(loom) { 1 } else { 24 };
/// Messages that a chain may have: 24 bits must name its first.
const CHAIN_MOST: u64 = 1 << 22;
/// The longest that a buffered send looks for its posting before it copies.
const SPOOL_PATIENCE_NS: u64 = 50_000;
/// Bytes kept free at the end of a block for the link to the next.
const LINK_BYTES: usize = 24;

/// Blocking send.
///
/// # Safety
/// `data` must describe readable memory for the length of the call.
#[inline(always)]
pub unsafe fn send(comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Layout::Contiguous { ptr, len } = data else {
        // SAFETY: as the caller promises.
        return unsafe { send_slow(ep, comm, data, dst, index) };
    };
    if len <= ep.tuning.annex
        && let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32))
    {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize && lane.special.load(Ordering::Relaxed) == 0 && !(ptr.is_null() && len != 0) {
            // SAFETY: `len` readable bytes at `ptr`, as the caller promises.
            return if unsafe { send_short(lane, slot, ptr, len) } {
                Ok(())
            } else {
                // SAFETY: as above.
                unsafe { send_next(ep, lane, slot, ptr, len) }
            };
        }
    }
    // Put together again, so that on the short path its parts need not go through memory.
    // SAFETY: as the caller promises.
    unsafe { send_slow(ep, comm, Layout::Contiguous { ptr, len }, dst, index) }
}

/// The short path: the landing, or the landing and an annex. `false`: not this way.
///
/// # Safety
/// `len` readable bytes at `ptr`, `len` ≤ [`ANNEX_MOST`](crate::lane::map::ANNEX_MOST), `slot` below the lane's limit.
#[inline(always)]
pub(super) unsafe fn send_short(lane: &Lane, slot: usize, ptr: *const u8, len: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { if len <= INLINE_BYTES { send_inline(lane, slot, ptr, len) } else { send_annex(lane, slot, ptr, len) } }
}

/// The landing's own bytes. `false`: not this way.
///
/// # Safety
/// `len` readable bytes at `ptr`, `len` ≤ [`INLINE_BYTES`], `slot` below the lane's limit.
#[inline(always)]
pub unsafe fn send_inline(lane: &Lane, slot: usize, ptr: *const u8, len: usize) -> bool {
    let progress = lane.progress(slot);
    let (mine, theirs) = lane.sending(slot);
    let before = progress.sent.load(Ordering::Relaxed);
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
        || !acked_soon(progress, theirs, before)
    {
        return false;
    }
    let seq = before + 1;
    // SAFETY: as the caller promises.
    let [a, b] = unsafe { words_of(ptr, len) };
    if before == 0 {
        lane.touch(slot);
    }
    let land = Land::new(seq, progress.got(), Kind::Inline, len, lane.epoch);
    if lane.peer_side().any.load(Ordering::Relaxed) != 0 {
        publish_announced(lane, slot, land, [a, b]);
        progress.count_sent(seq, len);
        return true;
    }
    mine.data[0].store(a, Ordering::Relaxed);
    mine.data[1].store(b, Ordering::Relaxed);
    mine.publish(land);
    progress.count_sent(seq, len);
    after_publish(lane, slot, theirs);
    true
}

/// Publishes a landing and its data words to a peer that receives by any index too: first with the announcement, so that nothing else has
/// to come over for it.
#[inline(never)]
fn publish_announced(lane: &Lane, slot: usize, land: Land, words: [u64; 2]) {
    let (mine, theirs) = lane.sending(slot);
    let announced = super::any_index::announce_message(lane, slot, land, words);
    mine.data[0].store(words[0], Ordering::Relaxed);
    mine.data[1].store(words[1], Ordering::Relaxed);
    mine.publish(land);
    if !announced {
        return after_publish(lane, slot, theirs);
    }
    after_landing(lane, slot, theirs);
    super::any_index::wake_receiver(lane);
}

/// The next longer path: an annex beside the landing. `false`: not this way.
///
/// # Safety
/// `len` readable bytes at `ptr`, [`INLINE_BYTES`] < `len` ≤ [`ANNEX_MOST`](crate::lane::map::ANNEX_MOST), `slot` below the lane's limit.
#[inline(never)]
unsafe fn send_annex(lane: &Lane, slot: usize, ptr: *const u8, len: usize) -> bool {
    let progress = lane.progress(slot);
    let theirs = lane.sending(slot).1;
    let before = progress.sent.load(Ordering::Relaxed);
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
        || !acked_soon(progress, theirs, before)
    {
        return false;
    }
    let seq = before + 1;
    if before == 0 {
        lane.touch(slot);
    }
    // SAFETY: as the caller promises; everything before is consumed.
    unsafe { fill_annex(lane, slot, seq, len, false, |at, to, n| crate::base::atomics::copy(ptr.add(at), to, n)) };
    progress.count_sent(seq, len);
    after_publish(lane, slot, theirs);
    true
}

/// A send off the short path whose lane is found: most likely the chain's next record.
///
/// # Safety
/// As for [`send_short`].
#[inline(never)]
unsafe fn send_next(ep: &'static Endpoint, lane: &'static Lane, slot: usize, ptr: *const u8, len: usize) -> Result<()> {
    let progress = lane.progress(slot);
    let data = Layout::Contiguous { ptr: ptr.cast_mut(), len };
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) == SEND_CHAIN && !progress.is_two_way()
    {
        let sender = Sender::new(ep, lane, slot, data, len);
        // SAFETY: as the caller promises.
        if sender.is_short() && unsafe { sender.append() } {
            lane.count_spooled(slot);
            progress.count_sent(sender.seq, len);
            after_publish(lane, slot, sender.theirs());
            return Ok(());
        }
    }
    // SAFETY: as the caller promises.
    unsafe { send_on(ep, lane, slot, data) }
}

/// Is the last message acknowledged, or will be in a moment? Where traffic goes both ways the acknowledgement is likely to be
/// on its way, and the landing is better than the chain; where it goes one way only, the chain is.
#[inline(always)]
fn acked_soon(progress: &Progress, theirs: &Half, before: u64) -> bool {
    if progress.is_acked(before) || theirs.acked(before) {
        return true;
    }
    if !progress.is_two_way() {
        return false;
    }
    for _ in 0..ACK_PATIENCE.min(patience()) {
        crate::base::atomics::spin_loop();
        if theirs.acked(before) {
            return true;
        }
    }
    false
}

/// Publishes message `seq` by the landing and an annex, or a split line; `copy(at, to, n)` copies bytes of the message. `now`: it
/// is to be acknowledged at once.
///
/// # Safety
/// Everything before `seq` is consumed; [`INLINE_BYTES`] < `len` ≤ [`ANNEX_MOST`](crate::lane::map::ANNEX_MOST).
#[inline(always)]
unsafe fn fill_annex(lane: &Lane, slot: usize, seq: u64, len: usize, now: bool, copy: impl Fn(usize, *mut u8, usize)) {
    let progress = lane.progress(slot);
    let mine = lane.sending(slot).0;
    let publish = |kind, inline_len| {
        let land = Land::new(seq, progress.got(), kind, inline_len, lane.epoch);
        mine.publish(if now { land.now() } else { land });
    };
    // Lines that both sides write in turn cost less than lines that only one writes; without the turn there is an own one.
    let turn = holds_annex(lane, progress);
    let which = if turn { 0 } else { 1 + lane.out };
    if turn {
        progress.send_flags.store(progress.send_flags.load(Ordering::Relaxed) ^ SEND_ANNEX, Ordering::Relaxed);
    }
    if len <= SPLIT_BYTES {
        // The landing first, so that it is on its way while the split line comes here; that line says by itself when it is whole.
        let mut words = [0u64; 2];
        copy(0, words.as_mut_ptr().cast(), INLINE_BYTES);
        mine.data[0].store(words[0], Ordering::Relaxed);
        mine.data[1].store(words[1], Ordering::Relaxed);
        publish(if turn { Kind::Split } else { Kind::OwnSplit }, len);
        copy(INLINE_BYTES, lane.split(which, slot), len - INLINE_BYTES);
        // SYNC POINT: pairs with the acquire in `until_split`.
        lane.split_seq(which, slot).store(split_mark(seq, lane.out), Ordering::Release);
    } else {
        copy(0, lane.annex(which, slot), len.min(ANNEX_BYTES));
        if len > ANNEX_BYTES {
            copy(ANNEX_BYTES, lane.long_annex(which, slot), len - ANNEX_BYTES);
        }
        mine.data[0].store(len as u64, Ordering::Relaxed);
        publish(if turn { Kind::Annex } else { Kind::OwnAnnex }, 0);
    }
}

/// The annex belongs to whoever received it last; at first to the lower rank.
#[inline(always)]
fn holds_annex(lane: &Lane, progress: &Progress) -> bool {
    // SYNC POINT: pairs with the receiving thread's release after it has read the annex.
    let got = progress.recv_flags.load(Ordering::Acquire) & RECV_ANNEX != 0;
    let gave = progress.send_flags.load(Ordering::Relaxed) & SEND_ANNEX != 0;
    if lane.is_self() { got == gave } else { (lane.out == 0) ^ got ^ gave }
}

/// Up to sixteen bytes as two words, in memory order (little endian: byte 0 is the lowest).
///
/// # Safety
/// `len` readable bytes at `ptr`, `len` ≤ 16.
#[inline(always)]
pub(super) unsafe fn words_of(ptr: *const u8, len: usize) -> [u64; 2] {
    // Reads that overlap instead of a loop or a call; only the first `len` bytes are read.
    // SAFETY: as the caller promises.
    unsafe {
        let word = |at: usize| u64::from_le(ptr.add(at).cast::<u64>().read_unaligned());
        let half = |at: usize| u32::from_le(ptr.add(at).cast::<u32>().read_unaligned()) as u64;
        let words = match len {
            8 => [word(0), 0],
            16 => [word(0), word(8)],
            9..16 => [word(0), word(len - 8) >> (8 * (16 - len))],
            4..8 => [half(0) | half(len - 4) << (8 * (len - 4)), 0],
            0 => [0, 0],
            _ => {
                let (first, middle, last) = (*ptr as u64, *ptr.add(len / 2) as u64, *ptr.add(len - 1) as u64);
                [first | middle << (8 * (len / 2)) | last << (8 * (len - 1)), 0]
            }
        };
        words.map(u64::to_le)
    }
}

/// What follows every publication: wake the receiver if it sleeps, announce the index if it receives from any.
#[inline(always)]
pub(super) fn after_publish(lane: &Lane, slot: usize, theirs: &Half) {
    after_landing(lane, slot, theirs);
    if lane.peer_side().any.load(Ordering::Relaxed) != 0 {
        super::any_index::announce(lane, slot);
    }
}

/// The first half of it: wakes who sleeps on the slot.
#[inline(always)]
fn after_landing(lane: &Lane, slot: usize, theirs: &Half) {
    // SYNC POINT: the sleeper sets its byte and has the order bought by `membarrier`; no fence here.
    doorbell::light_barrier();
    let sleep = theirs.rx.load(Ordering::Relaxed) & 0xff;
    if sleep != 0 {
        wake(lane, slot, sleep);
    }
}

/// Rings for the peer's threads that sleep on this slot.
#[cold]
#[inline(never)]
pub(super) fn wake(lane: &Lane, slot: usize, sleep: u32) {
    // SAFETY: the peer's board is mapped as long as the lane lives.
    let board: &Board = unsafe { &*lane.peer_board };
    if sleep & ASLEEP != 0 {
        doorbell::ring(&board.bell, doorbell::bit(slot));
    }
    if sleep & EVENT != 0 {
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

#[cold]
#[inline(never)]
unsafe fn send_slow(ep: &'static Endpoint, comm: i32, data: Layout, dst: i32, index: i32) -> Result<()> {
    if dst == PROC_NULL {
        return ep.check_comm(comm);
    }
    let (lane, slot) = ep.resolve(comm, dst, index)?;
    // SAFETY: as the caller of `send` promises.
    unsafe { send_on(ep, lane, slot, data) }
}

/// Blocking send on a slot.
///
/// # Safety
/// As for [`send`].
pub unsafe fn send_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout) -> Result<()> {
    // SAFETY: as the caller promises.
    let len = unsafe { data.len_checked()? };
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "send"));
    }
    let mut sender = Sender::new(ep, lane, slot, data, len);
    if sender.is_short()
        && lane.special.load(Ordering::Relaxed) & !SPECIAL_FAR == 0
        // SAFETY: as the caller promises.
        && unsafe { sender.place_short() }
    {
        return Ok(());
    }
    sender.check_peer()?;
    let timeout = ep.spool.budget(lane.comm()).timeout_ms();
    let deadline = match timeout {
        t if t < 0 => u64::MAX,
        0 => 0,
        t => now_ns() + t as u64 * 1_000_000,
    };
    if timeout == 0 && !lane.is_self() {
        sender.posted_soon();
    }
    if lane.is_self() {
        // Nobody else will post while this thread waits, unless the program has other threads.
        let posted = lane.posting(lane.out, slot).is(sender.seq) || super::any_index::is_posted(lane);
        if timeout < 0 && !posted && ep.single_threaded() {
            return Err(sender.never_received());
        }
        // SAFETY: as the caller promises.
        return unsafe { sender.until_sent(if timeout < 0 { u64::MAX } else { 0 }, timeout) };
    }
    // SAFETY: as the caller promises.
    unsafe { sender.until_sent(deadline, timeout) }
}

/// The error of a call on an index whose request is not completed.
#[cold]
pub(super) fn busy(ep: &Endpoint, lane: &Lane, slot: usize, what: &str) -> Error {
    let name = lane.name(slot as i32 - SYSTEM_INDICES as i32);
    Error::new(Code::Busy, format!("rank {}: {what} on {name}: complete the pending one first", ep.rank))
}

/// One message on its way out.
pub(super) struct Sender {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub data: Layout,
    pub len: usize,
    /// Its number.
    pub seq: u64,
    /// It waits for its acknowledgement: synchronous.
    pub now: bool,
    /// A receive of any index is this message's.
    claimed: bool,
}

impl Sender {
    pub fn new(ep: &'static Endpoint, lane: &'static Lane, slot: usize, data: Layout, len: usize) -> Sender {
        let seq = lane.progress(slot).sent.load(Ordering::Relaxed) + 1;
        Sender { ep, lane, slot, data, len, seq, now: false, claimed: false }
    }

    pub fn got(&self) -> u64 {
        self.lane.progress(self.slot).got()
    }

    pub fn index(&self) -> i32 {
        self.slot as i32 - SYSTEM_INDICES as i32
    }
    pub fn is_short(&self) -> bool {
        self.len <= self.ep.tuning.eager
    }
    fn flags(&self) -> u32 {
        self.lane.progress(self.slot).send_flags.load(Ordering::Relaxed)
    }
    fn set_flags(&self, flags: u32) {
        self.lane.progress(self.slot).send_flags.store(flags, Ordering::Relaxed);
    }
    fn mine(&self) -> &'static Half {
        self.lane.sending(self.slot).0
    }
    fn theirs(&self) -> &'static Half {
        self.lane.sending(self.slot).1
    }
    pub fn posting(&self) -> &'static Posting {
        self.lane.take_over_outgoing(self.slot);
        self.lane.posting(self.lane.out, self.slot)
    }

    /// The error of a synchronous send to itself that only the thread which waits in it could receive.
    #[cold]
    pub fn never_received(&self) -> Error {
        Error::new(
            Code::Argument,
            format!(
                "rank {}: synchronous send to itself on index {}: no receive is posted, so it would wait for ever",
                self.ep.rank,
                self.index()
            ),
        )
    }

    /// An error if the peer is dead or has left.
    pub fn check_peer(&self) -> Result<()> {
        match self.lane.gone() {
            Some(what) => Err(self.lane.peer_error(self.ep.rank, what, "send to", self.index())),
            None => Ok(()),
        }
    }

    /// Has the receiver consumed everything before this message? Then the landing is free.
    pub fn consumed_all(&self) -> bool {
        is_consumed(self.ep, self.lane, self.slot, self.seq - 1)
    }

    /// As [`acked_soon`], for a chain.
    fn consumed_soon(&self) -> bool {
        (0..ACK_PATIENCE.min(patience())).any(|_| {
            crate::base::atomics::spin_loop();
            self.consumed_all()
        })
    }

    /// In buffered mode: before a longer message is copied into the spool, and out of it again, looks for its posting for a quarter of
    /// the time that this would take. An answer often comes while its receiver is on its way to the receive. Where both sides send before
    /// they receive it never comes: each look in vain halves the next.
    fn posted_soon(&self) {
        if cfg!(loom) || self.is_short() || patience() == 0 {
            return;
        }
        let vain = &self.lane.send_side(self.slot).vain;
        if self.posting().is(self.seq) {
            return vain.set(vain.get().saturating_sub(1));
        }
        let end = now_ns() + ((self.len as u64 / 16).min(SPOOL_PATIENCE_NS) >> vain.get());
        while !self.posting().is(self.seq) {
            if now_ns() >= end {
                return vain.set((vain.get() + 1).min(4));
            }
            crate::base::atomics::spin_loop();
        }
        vain.set(0);
    }

    /// Publishes by the landing.
    pub fn publish(&self, kind: Kind, first: u64, second: u64) {
        let mine = self.mine();
        mine.data[0].store(first, Ordering::Relaxed);
        mine.data[1].store(second, Ordering::Relaxed);
        mine.publish(Land::new(self.seq, self.got(), kind, 0, self.lane.epoch));
        self.sent();
    }

    /// The message is published: it counts.
    pub fn sent(&self) {
        if self.seq == 1 {
            self.lane.touch(self.slot);
        }
        self.lane.progress(self.slot).count_sent(self.seq, self.len);
        match self.lane.far() {
            None => after_publish(self.lane, self.slot, self.theirs()),
            Some(far) if far.is_subscribed() => super::any_index::announce(self.lane, self.slot),
            Some(_) => {}
        }
    }

    /// Sends a short message without waiting. `false`: the spool has no room.
    pub unsafe fn place_short(&mut self) -> bool {
        // SAFETY (whole body): the data is readable, as the caller of `send` promised.
        let flags = self.flags();
        if flags & SEND_CHAIN != 0 {
            let progress = self.lane.progress(self.slot);
            if !progress.is_two_way() || !self.consumed_soon() {
                // SAFETY: as above.
                return unsafe { self.chain() };
            }
            // The traffic goes both ways again: back to the landing, where a message costs one line.
            self.leave_chain();
        } else if !self.consumed_all() {
            // SAFETY: as above.
            return unsafe { self.chain() };
        }
        if let Some(far) = self.lane.far() {
            // SAFETY: as above.
            return unsafe { self.place_far(far) };
        }
        if self.len <= INLINE_BYTES {
            let mut words = [0u64; 2];
            // SAFETY: up to 16 bytes into 16 bytes.
            unsafe { Cursor::new(self.data, 0).gather(words.as_mut_ptr().cast(), self.len) };
            let mine = self.mine();
            mine.data[0].store(words[0], Ordering::Relaxed);
            mine.data[1].store(words[1], Ordering::Relaxed);
            let land = Land::new(self.seq, self.got(), Kind::Inline, self.len, self.lane.epoch);
            mine.publish(if self.now { land.now() } else { land });
            self.sent();
            return true;
        }
        if self.len <= self.ep.tuning.annex {
            // SAFETY: everything before is consumed; the data is readable.
            unsafe {
                fill_annex(self.lane, self.slot, self.seq, self.len, self.now, |at, to, n| {
                    Cursor::new(self.data, at).gather(to, n)
                });
            }
            self.sent();
            return true;
        }
        // SAFETY: as above.
        unsafe { self.spool_by_landing(false) }
    }

    /// As [`Sender::place_short`], for a message whose sender then waits until it is known to be received.
    pub unsafe fn place_synchronous(&mut self) -> bool {
        self.now = true;
        // SAFETY: as the caller promises.
        unsafe { self.place_short() }
    }

    /// As [`Sender::place_short`], for a synchronous message of any length, if it can have a receive of any index that is posted: which
    /// is all that it waits for. Nobody is in a wait there, so there is no shorter way than the spool.
    pub unsafe fn place_claimed(&mut self) -> bool {
        let claims = || {
            super::any_index::is_posted(self.lane)
                && self.consumed_all()
                && super::any_index::claim(self.lane, self.slot, self.seq)
        };
        self.claimed = self.claimed || claims();
        // SAFETY: as the caller promises.
        self.claimed && unsafe { self.is_short() && self.place_short() || self.spool() }
    }

    /// Copies the message into a block and says so in the landing, which is free. `false`: no room.
    pub unsafe fn spool_by_landing(&mut self, posted: bool) -> bool {
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
            // Between nodes a posted message goes straight into its buffer, but one for a receive of any index, which has told of none.
            (posted && (self.claimed || self.lane.far().is_none()))
                .then(|| spool.take_beyond(self.lane.comm(), need, self.len))?
        }) else {
            return false;
        };
        side.block.set(block);
        let far = self.lane.far().map(|far| (far, self.far_key(far, block)));
        if let Some((_, None)) = far {
            spool.give_back(block);
            side.block.set(BlockRef::NONE);
            return false;
        }
        let header = spool.block(block.at);
        self.sign(header);
        // Not part of a chain.
        header.taken.store(self.seq as u32 - 1, Ordering::Relaxed);
        let at = block.at + BLOCK_HEADER as u64;
        // SAFETY: the block has room for the record.
        unsafe { self.write_payload(at) };
        if let Some((far, Some(key))) = far
            && !self.publish_spooled_far(far, block, at + self.payload_at(), key)
        {
            return false;
        }
        self.lane.count_spooled(self.slot);
        side.spooled_landing.set(self.seq);
        self.lane.note_spooled(self.slot);
        if far.is_none() {
            self.publish(Kind::Spooled, self.len as u64, at + self.payload_at());
        }
        true
    }

    /// Says whose block it is.
    pub fn sign(&self, header: &Block) {
        let place = self.lane.place();
        header.owner.store(self.lane.owner(self.slot, self.lane.world), Ordering::Relaxed);
        header.place.store((place.epoch as u64) << 32 | place.unit as u64, Ordering::Release);
    }

    fn payload_at(&self) -> u64 {
        if (self.len as u64) < LONG_LENGTH { 8 } else { 16 }
    }

    #[inline(always)]
    unsafe fn write_payload(&self, at: u64) {
        // SAFETY: the caller has made sure of the room; the data is readable.
        unsafe {
            let to = self.ep.spool.bytes(at + self.payload_at());
            if self.payload_at() == 16 {
                (*self.ep.spool.bytes(at + 8).cast::<crate::base::atomics::AtomicU64>())
                    .store(self.len as u64, Ordering::Relaxed);
            }
            Cursor::new(self.data, 0).gather(to, self.len);
        }
    }

    fn word(&self, at: u64) -> &crate::base::atomics::AtomicU64 {
        // SAFETY: offsets of records are multiples of 8 within a block of ours.
        unsafe { &*self.ep.spool.bytes(at).cast() }
    }

    /// Appends the message to the chain, beginning one if need be. `false`: no room.
    unsafe fn chain(&mut self) -> bool {
        let side = self.lane.send_side(self.slot);
        let chained = self.flags() & SEND_CHAIN != 0;
        let spool = &self.ep.spool;
        if chained && self.seq - side.chain_first.get() > CHAIN_MOST {
            return false;
        }
        // SAFETY: as the caller promises.
        if !chained || !unsafe { self.append() } {
            let need = record_bytes(self.len);
            let Some(block) = self.next_block(need) else { return false };
            let far = self.lane.far().map(|far| (far, self.far_key(far, block)));
            if let Some((_, None)) = far {
                spool.give_back(block);
                return false;
            }
            let header = spool.block(block.at);
            self.sign(header);
            header.taken.store(self.seq as u32 - 1, Ordering::Relaxed);
            header.last.store(self.seq as u32, Ordering::Relaxed);
            // SYNC POINT: pairs with `Spool::reclaim`, which compares the two above once it sees this.
            header.first.store(self.seq, Ordering::Release);
            // SAFETY: `next_block` made sure of the room.
            unsafe { self.write_record(block.at + BLOCK_HEADER as u64, need) };
            if chained {
                let link = side.block.get().at + side.used.get();
                let (mut at, mut length) = (block.at, 8);
                if let Some((_, Some(key))) = far {
                    (at, length) =
                        (spool.bytes(block.at) as u64, (block.size as usize / 256).min(LONG_LENGTH as usize - 1));
                    let keys = key as u64 | (block.generation as u64) << 32;
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
                if let Some((far, Some(key))) = far {
                    self.begin_chain_far(far, block, key);
                }
                self.set_flags(self.flags() | SEND_CHAIN);
            }
            side.block.set(block);
            side.used.set((BLOCK_HEADER + need) as u64);
            self.lane.note_spooled(self.slot);
        }
        if let Some(far) = self.lane.far()
            && far.tail(self.slot, self.seq).is_err()
        {
            return false;
        }
        self.lane.count_spooled(self.slot);
        self.sent();
        true
    }

    /// Appends the message to the chain's block. `false`: that is full, or the chain long enough.
    #[inline(always)]
    unsafe fn append(&self) -> bool {
        let side = self.lane.send_side(self.slot);
        let need = record_bytes(self.len);
        let (block, used) = (side.block.get(), side.used.get());
        if used as usize + need + LINK_BYTES > block.size as usize || self.seq - side.chain_first.get() > CHAIN_MOST {
            return false;
        }
        let at = block.at + used;
        self.ep.spool.block(block.at).last.store(self.seq as u32, Ordering::Relaxed);
        // SAFETY: room for the record, the word behind it, and a link; the data is readable, as the caller promises.
        unsafe { self.write_record(at, need) };
        side.used.set(used + need as u64);
        true
    }

    #[inline(always)]
    unsafe fn write_record(&self, at: u64, need: usize) {
        // The word behind must not look like a record before it is one.
        self.word(at + need as u64).store(0, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.write_payload(at) };
        // SYNC POINT: pairs with the receiver's acquire of the record's word.
        self.word(at).store(record_word(self.seq, Kind::Spooled, self.len), Ordering::Release);
    }

    /// A block for chained records: one left behind that is done, or a new one, larger than the last.
    fn next_block(&self, need: usize) -> Option<BlockRef> {
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
        spool.take(comm, payload, need)
    }

    /// Remembers the chain's block among those left behind. The one that this pushes out is given back if its receiver is done with it,
    /// and otherwise when room is short.
    fn leave_behind(&self) {
        let side = self.lane.send_side(self.slot);
        let oldest = side.behind[1].replace(side.behind[0].replace(side.block.get()));
        if oldest.is_some() && self.ep.spool.is_done(oldest) {
            self.ep.spool.give_back(oldest);
        }
    }

    /// Back to the landing: everything in the chain is consumed. The receiver still looks at the block's next word, so the block is
    /// not ours to write until the receiver has seen a landing and marked it done.
    fn leave_chain(&self) {
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

    /// Waits for the posting, or for the landing, or for the time to spool; returns when the message is sent, in the sense of the
    /// mode. `deadline`: 0 now, `u64::MAX` never.
    pub unsafe fn until_sent(&mut self, deadline: u64, timeout: i32) -> Result<()> {
        let synchronous = timeout < 0;
        let scene = Waiting {
            ep: self.ep,
            lane: self.lane,
            slot: self.slot,
            seq: self.seq,
            len: self.len,
            confirm: false,
            midway: false,
        };
        let mut waiter = Waiter::until((deadline != u64::MAX && deadline != 0).then_some(deadline));
        let mut wants = false;
        let mut tight = false;
        loop {
            if self.posting().is(self.seq) {
                // SAFETY: the data is readable, as the caller of `send` promised.
                match unsafe { self.put(Ring::IfAwaited) } {
                    Put::Done => return Ok(()),
                    Put::Failed(e) => return Err(e),
                    Put::NotNow => {}
                }
                // The receive is known to be posted, which is all that a synchronous send waits for; but the bytes cannot go there
                // without the receiver, which does something else. Between nodes it fetches them by itself from the spool.
                // SAFETY: as above.
                if (synchronous || self.fits_nowhere() || self.lane.far().is_some()) && unsafe { self.spool() } {
                    return Ok(());
                }
            }
            // SAFETY: as above.
            if synchronous && unsafe { self.place_claimed() } {
                return Ok(());
            }
            // SAFETY: as above.
            if self.is_short() && !synchronous && unsafe { self.place_short() } {
                return Ok(());
            }
            // SAFETY: as above.
            if self.is_short() && synchronous && self.consumed_all() && unsafe { self.place_synchronous() } {
                return self.until_confirmed();
            }
            let late = deadline == 0 || tight;
            if late && !self.is_short() {
                // SAFETY: as above.
                if unsafe { self.spool() } {
                    return Ok(());
                }
            }
            if late && timeout == 0 {
                self.check_peer()?;
                return Err(self.spool_full());
            }
            if !wants {
                // An any-index receiver finds this message by its announcement, and posts for it; one that begins later looks
                // through all indices that were ever touched.
                self.lane.touch(self.slot);
                self.lane.head(self.lane.out, self.slot).mark.store(self.seq << 2 | WANTS, Ordering::Relaxed);
                if let Some(far) = self.lane.far() {
                    far.mark(self.slot, self.seq, false);
                }
                doorbell::light_barrier();
                if self.lane.is_subscribed() {
                    super::any_index::announce(self.lane, self.slot);
                }
                wants = true;
            }
            if waiter.spin() {
                continue;
            }
            // Between nodes once is enough: whoever subscribes later sees the mark.
            if self.lane.far().is_none() && self.lane.peer_side().any.load(Ordering::Relaxed) != 0 {
                super::any_index::announce(self.lane, self.slot);
            }
            if waiter.slow(&scene)? == Turn::TimedOut {
                // From now on spool as soon as there is room; without room wait for it or for the posting.
                tight = true;
                waiter = Waiter::new();
            }
        }
    }

    /// Copies a message of any length into the spool and publishes it. `false`: no room. What is posted for has room beyond the
    /// limit: it leaves the spool as soon as its receiver looks, and two ranks that wait for each other's long messages, neither of
    /// which has another way, must not wait for ever.
    pub unsafe fn spool(&mut self) -> bool {
        let posted = self.claimed || self.posting().is(self.seq);
        if self.len > self.ep.spool.budget(self.lane.comm()).limit() && !posted {
            return false;
        }
        if self.consumed_all() {
            self.take_landing();
            // SAFETY: as the caller promises.
            unsafe { self.spool_by_landing(posted) }
        } else {
            // SAFETY: as the caller promises.
            unsafe { self.chain() }
        }
    }

    /// Sent without waiting for its receive, but longer than all of the spool: only what is posted finds room.
    pub fn fits_nowhere(&self) -> bool {
        self.is_short() && self.len > self.ep.spool.budget(self.lane.comm()).limit()
    }

    #[cold]
    pub fn spool_full(&self) -> Error {
        let budget = self.ep.spool.budget(self.lane.comm());
        Error::new(
            Code::SpoolFull,
            format!(
                "rank {}: send of {} bytes to {}: {} of {} bytes of the spool are taken; fmpl_sendbuf_set makes it larger",
                self.ep.rank,
                self.len,
                self.lane.name(self.index()),
                budget.used(),
                budget.limit()
            ),
        )
    }

    /// A synchronous message is published: waits until its receive is known to be there.
    fn until_confirmed(&self) -> Result<()> {
        let scene = Waiting {
            ep: self.ep,
            lane: self.lane,
            slot: self.slot,
            seq: self.seq,
            len: self.len,
            confirm: true,
            midway: false,
        };
        let mut waiter = Waiter::new();
        while !self.confirmed() && !super::any_index::claim(self.lane, self.slot, self.seq) {
            if !waiter.spin() {
                waiter.slow(&scene)?;
            }
        }
        Ok(())
    }

    /// Has the receiver finished with this message, which is published?
    pub fn acknowledged(&self) -> bool {
        self.lane.take_over_outgoing(self.slot);
        self.theirs().acked(self.seq)
    }

    /// Is the receive of this message, which is published, known to be posted or done?
    pub fn confirmed(&self) -> bool {
        is_confirmed(self.ep, self.lane, self.slot, self.seq)
    }
}

/// Is the receive of message `seq`, the last one published, known to be posted or done?
fn is_confirmed(ep: &Endpoint, lane: &Lane, slot: usize, seq: u64) -> bool {
    lane.take_over_outgoing(slot);
    lane.posting(lane.out, slot).seq.load(Ordering::Relaxed) >= seq || is_consumed(ep, lane, slot, seq)
}

/// Has the receiver consumed message `seq`, the last one published?
pub(crate) fn is_consumed(ep: &Endpoint, lane: &Lane, slot: usize, seq: u64) -> bool {
    lane.take_over_outgoing(slot);
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_CHAIN != 0 {
        // The receiver's progress in the chain stands in the block's own line.
        // SYNC POINT: pairs with the release in `Receiver::take`.
        ep.spool.block(lane.send_side(slot).block.get().at).taken.load(Ordering::Acquire) == seq as u32
    } else {
        lane.progress(slot).is_acked(seq) || lane.sending(slot).1.acked(seq)
    }
}

/// What a send waits for.
pub(super) struct Waiting {
    pub ep: &'static Endpoint,
    pub lane: &'static Lane,
    pub slot: usize,
    pub seq: u64,
    pub len: usize,
    /// Waits until the message is acknowledged, not until it can go.
    pub confirm: bool,
    /// The receiver is at work in a transfer and rings for nothing in between: sleep shortly only.
    pub midway: bool,
}

impl Waiting {
    /// Would a receive of any index end this wait?
    fn synchronous(&self) -> bool {
        !self.midway
            && self.slot >= SYSTEM_INDICES
            && self.lane.special.load(Ordering::Relaxed) & SPECIAL_SYNCHRONOUS != 0
    }
}

impl Scene for Waiting {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&crate::base::atomics::AtomicU32> {
        (!self.midway && self.lane.far().is_none()).then(|| &self.lane.sending(self.slot).0.tx)
    }
    fn bits(&self) -> u32 {
        doorbell::bit(self.slot)
    }
    fn ready(&self) -> bool {
        self.lane.take_over_outgoing(self.slot);
        let any = self.synchronous() && super::any_index::is_posted(self.lane);
        if self.confirm {
            return any || is_confirmed(self.ep, self.lane, self.slot, self.seq);
        }
        let posted = self.lane.posting(self.lane.out, self.slot).seq.load(Ordering::Relaxed) >= self.seq;
        posted || (any || self.len <= self.ep.tuning.eager) && is_consumed(self.ep, self.lane, self.slot, self.seq - 1)
    }
    fn naps(&self) -> u32 {
        if self.lane.far().is_some() { crate::lane::far::NAPS } else { 0 }
    }
    fn fall_asleep(&self) -> bool {
        match self.lane.far() {
            Some(far) => {
                far.fall_asleep();
                true
            }
            None => {
                if self.synchronous() {
                    super::any_index::want_posting(self.lane);
                }
                self.sleep_word().map(crate::wait::mark_asleep).is_some()
            }
        }
    }
    fn meanwhile(&self) -> bool {
        self.ep.tend(self.lane);
        self.ep.waiting_sends.push(self.ep)
    }
    fn may_end(&self) -> bool {
        !self.midway
    }
    fn gone(&self) -> Option<Error> {
        self.ep.gone(self.lane, self.slot, "send to")
    }
    fn waits(&self) -> Waits {
        Waits {
            operation: Operation::Send,
            peer: self.lane.world,
            index: self.slot as i32 - SYSTEM_INDICES as i32,
            comm: self.lane.comm(),
            bytes: self.len as u64,
            since_ns: 0,
        }
    }
}
