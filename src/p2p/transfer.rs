//! Moving a long payload once both ends are known: by a store into shared memory, by the kernel, through a ring of chunks, or
//! by both sides at once.
//!
//! | way | copies | needs |
//! |---|---|---|
//! | store | one, by the sender | the receive buffer in memory from `fmpl_alloc` |
//! | CMA | one, by the sender in the kernel | permission; works while the receiver does something else |
//! | ring | two, overlapped, in the caches | the receiver waits for this message |
//! | cooperative | one, shared by both sides | permission, and the receiver waits |
//! | pull | one, by the receiver in the kernel | permission; the sender offers and goes on |
//!
//! Pieces of a shared copy are claimed by compare-and-swap of a word that carries the transfer's tag, so a latecomer takes no piece
//! of the next one. Whoever claims a piece finishes it; the sender alone finishes the copy when the receiver never comes.

use crate::base::atomics::{Ordering, fence};
use crate::base::config::Way;
use crate::base::error::{Code, Error, Result};
use crate::fabric::shm::cma::CmaError;
use crate::lane::map::{RING_BYTES, RING_CHUNKS, RINGS, TRANSFERS, ring_pitch};
use crate::lane::record::*;
use crate::lane::{Lane, SendState};
use crate::p2p::across::Way::{Pull, Push};
use crate::p2p::across::across;
use crate::p2p::layout::{Block as Shaped, Cursor, Layout, copy};
use crate::p2p::receive::{Awaiting, Receiver};
use crate::p2p::send::{Sender, Waiting};
use crate::wait::{Waiter, doorbell};

/// What became of an attempt to put a message into its posting.
pub(super) enum Put {
    /// It is there, and published.
    Done,
    /// No way is open now; the posting stays.
    NotNow,
    /// It cannot be done; the message is given up.
    Failed(Error),
}

/// May a message go through a ring, which holds its sender up until the receiver has come?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// The sender has something else to wait for.
    Never,
    /// When the receiver waits for this message: it follows at once, so the transfer comes to its end by itself.
    IfAwaited,
}

/// Runs up to this many bytes go through the ring: a call to the kernel takes 150 to 350 ns for each run of the other process.
const SHORT_RUN: usize = 2048;
/// Pieces of a list up to this many bytes in the mean do: they begin and end within pages, and their descriptors must be fetched.
const SHORT_PIECE: usize = 8192;
/// Messages of more bytes than this leave the inner caches on their way through a ring: its chunks lie apart, and copies are wide.
const LONG_IN_RING: usize = 64 << 10;

fn pid_of(lane: &Lane) -> libc::pid_t {
    lane.peer.as_ref().map_or(0, |p| p.pid)
}

fn cma_allowed(lane: &Lane) -> bool {
    lane.peer.as_ref().is_some_and(|p| p.cma())
}

/// Are the runs of one side of `n` bytes so short that copying them twice costs less than having the kernel find each?
fn has_short_runs(n: usize, from: &Layout, to: Option<&Layout>) -> bool {
    let short = |layout: &Layout| match *layout {
        Layout::Contiguous { .. } => false,
        Layout::Block { block, .. } => block.count > 1 && block.run <= SHORT_RUN && block.stride != block.run as isize,
        Layout::List { n: pieces, .. } => pieces > 1 && n / pieces <= SHORT_PIECE,
    };
    short(from) || to.is_some_and(short)
}

impl Sender {
    /// Puts the message into its posting, which is there.
    pub unsafe fn put(&mut self, ring: Ring) -> Put {
        let lane = self.lane;
        let posting = lane.posting(lane.out, self.slot);
        let mark = &lane.head(lane.out, self.slot).mark;
        // The receiver may be withdrawing the posting: say that we put, then look whether it is still there.
        // SYNC POINT: pairs with `request::cancel`, which buys the order of both sides with `membarrier`.
        let before = mark.load(Ordering::Relaxed);
        mark.store(self.seq << 2 | PUTS, Ordering::Relaxed);
        if doorbell::has_barrier() {
            doorbell::light_barrier();
        } else {
            fence(Ordering::SeqCst);
        }
        if let Some(far) = lane.far() {
            // SAFETY: the data is readable, as the caller promises.
            let done = unsafe { self.put_far(far) };
            if matches!(done, Put::NotNow) {
                mark.store(before, Ordering::Release);
            }
            return done;
        }
        if !posting.is(self.seq) {
            mark.store(before, Ordering::Relaxed);
            return Put::NotNow;
        }
        let addr = posting.addr.load(Ordering::Relaxed);
        let cap = posting.cap.load(Ordering::Relaxed) as usize;
        let meta = posting.meta.load(Ordering::Relaxed);
        let (kind, hint) = (meta as u8, (meta >> 8) as u8);
        let n = self.len.min(cap);
        let shape = lane.shape(lane.out, self.slot);
        let target = if kind == PostingKind::Block as u8 {
            let block = Shaped {
                run: shape.run.load(Ordering::Relaxed) as usize,
                count: shape.count.load(Ordering::Relaxed) as usize,
                stride: shape.stride.load(Ordering::Relaxed) as isize,
            };
            Some(Layout::Block { ptr: addr as *mut u8, block })
        } else if kind == PostingKind::Contiguous as u8 {
            Some(Layout::Contiguous { ptr: addr as *mut u8, len: cap })
        } else if kind == PostingKind::List as u8 {
            // Its descriptors are the receiver's.
            Some(Layout::List { iov: addr as *const libc::iovec, n: shape.count.load(Ordering::Relaxed) as usize })
        } else {
            None
        };
        // SAFETY: the data is readable, as the caller promises; the posting is valid until we publish.
        let done = unsafe { self.put_into(target, hint & HINT_WAITING != 0, ring, hint & HINT_HEAP != 0, addr, n) };
        if matches!(done, Put::NotNow) {
            // It may still want to be found by a receiver of any index.
            // SYNC POINT: pairs with the acquire in `request::take_back`: the kernel may have written some of it.
            mark.store(before, Ordering::Release);
        }
        done
    }

    unsafe fn put_into(
        &mut self,
        target: Option<Layout>,
        waiting: bool,
        ring: Ring,
        in_heap: bool,
        addr: u64,
        n: usize,
    ) -> Put {
        let (lane, tuning) = (self.lane, &self.ep.tuning);
        if lane.is_self() {
            let Some(to) = target else { return Put::NotNow };
            // SAFETY: both in this process, also the descriptors of a list; n bytes on both sides.
            unsafe { copy(self.data, 0, to, 0, n) };
            return self.direct();
        }
        let way = tuning.way;
        if (way == Way::Auto || way == Way::Store)
            && in_heap
            && let Some(Layout::Contiguous { .. }) = target
            && let Some(to) = lane.peer.as_ref().and_then(|p| p.region.heap()).and_then(|w| w.translate(addr, n))
        {
            // SAFETY: `to` is our mapping of the posted buffer.
            unsafe { Cursor::new(self.data, 0).gather(to, n) };
            return self.direct();
        }
        let cma = cma_allowed(lane) && way != Way::Ring && way != Way::Spool;
        let ring_first = n <= tuning.ring_max
            || !cma
            || way == Way::Auto && n >= tuning.coop_min && has_short_runs(n, &self.data, target.as_ref());
        let reachable = cma && target.is_some();
        let open = match ring {
            Ring::Never => false,
            Ring::IfAwaited => waiting,
        };
        if open && (ring_first && way != Way::Cma && way != Way::Coop || !reachable) {
            // SAFETY: as the caller promises.
            match unsafe { self.through_ring(n) } {
                Ok(true) => return Put::Done,
                Ok(false) => {}
                Err(e) => return Put::Failed(e),
            }
        }
        // SAFETY: as the caller promises.
        if way == Way::Auto && unsafe { self.spool_meanwhile() } {
            return Put::Done;
        }
        if !cma {
            return Put::NotNow;
        }
        let Some(target) = target else { return Put::NotNow };
        if waiting && (n >= tuning.coop_min || way == Way::Coop) && way != Way::Cma && n > 0 {
            // SAFETY: as the caller promises.
            match unsafe { self.share(target, n) } {
                Ok(true) => return Put::Done,
                Ok(false) => {}
                Err(e) => return Put::Failed(e),
            }
        }
        // SAFETY: the posting says that the peer's memory may be written until we publish.
        match unsafe { across(pid_of(lane), Push, self.data, target, 0, n) } {
            Ok(()) => self.direct(),
            Err(CmaError::Gone) => Put::Failed(lane.peer_error(self.ep.rank, "has died", "send to", self.index())),
            // Not allowed, or memory that the kernel does not copy (a device's): the ring and the spool can.
            Err(CmaError::Denied) => {
                if let Some(p) = &lane.peer {
                    p.cma_off();
                }
                Put::NotNow
            }
            Err(CmaError::Fault { .. } | CmaError::System { .. }) => {
                if open {
                    // SAFETY: as the caller promises.
                    match unsafe { self.through_ring(n) } {
                        Ok(true) => return Put::Done,
                        Ok(false) => {}
                        Err(e) => return Put::Failed(e),
                    }
                }
                Put::NotNow
            }
        }
    }

    /// A message whose receiver does something else, up to `meanwhile` bytes: copied into the spool and out of it by loads and stores it
    /// costs less than a call to the kernel. Half of the spool stays for what nothing is posted for.
    unsafe fn spool_meanwhile(&mut self) -> bool {
        let budget = self.ep.spool.budget(self.lane.comm());
        if self.len > self.meanwhile || budget.used() + self.len > budget.limit() / 2 {
            return false;
        }
        self.take_landing();
        // SAFETY: as the caller promises; what is posted for finds everything before it consumed.
        unsafe { self.spool_by_landing(false) }
    }

    fn direct(&mut self) -> Put {
        self.take_landing();
        self.publish(Kind::Direct, self.len as u64, 0);
        Put::Done
    }

    /// Through a ring. `false`: none is free.
    unsafe fn through_ring(&mut self, n: usize) -> Result<bool> {
        let lane = self.lane;
        let Some(ring) = claim_ring(lane) else { return Ok(false) };
        let log = self.ep.tuning.ring_chunk_log;
        let spread = self.len > LONG_IN_RING;
        let (chunk, pitch) = (1usize << log, ring_pitch(log, spread));
        let places = (RING_BYTES / pitch).min(RING_CHUNKS).min(self.ep.tuning.ring_chunks);
        let first = lane.ring_sent[ring].load(Ordering::Relaxed);
        self.take_landing();
        self.publish(
            Kind::Ring,
            self.len as u64,
            ring as u64 | (log as u64) << 8 | (spread as u64) << 15 | (places as u64) << 16 | first << 24,
        );
        // The message is published; from here on it is given up only if the peer dies.
        let consumed = &lane.ring_flag(lane.out, ring, RING_CHUNKS).n;
        let data = lane.ring_data(lane.out, ring);
        let scene =
            Waiting { ep: self.ep, lane, slot: self.slot, seq: self.seq, len: self.len, confirm: true, midway: true };
        // SAFETY: the data is readable.
        let mut from = unsafe { Cursor::new(self.data, 0) }.wide(spread);
        // Everything that ever went through it is consumed.
        let mut seen = first;
        let (mut k, mut left) = (first, n);
        while left > 0 {
            if k - seen >= places as u64 {
                let mut waiter = Waiter::new();
                loop {
                    // SYNC POINT: pairs with the release in `Receiver::through_ring`.
                    seen = consumed.load(Ordering::Acquire);
                    if k - seen < places as u64 {
                        break;
                    }
                    if !waiter.spin()
                        && let Err(e) = waiter.slow(&scene)
                    {
                        release_ring(lane, ring);
                        return Err(e);
                    }
                }
            }
            let place = (k % places as u64) as usize;
            let bytes = left.min(chunk);
            // SAFETY: the chunk's place is free: the receiver has consumed what was there.
            unsafe { from.gather(data.add(place * pitch), bytes) };
            // SYNC POINT: pairs with the acquire in `Receiver::through_ring`.
            lane.ring_flag(lane.out, ring, place).n.store(k + 1, Ordering::Release);
            left -= bytes;
            k += 1;
        }
        lane.ring_sent[ring].store(k, Ordering::Relaxed);
        release_ring(lane, ring);
        Ok(true)
    }

    /// Shares the copying with the waiting receiver. `false`: no transfer block is free.
    unsafe fn share(&mut self, target: Layout, n: usize) -> Result<bool> {
        let lane = self.lane;
        let Some((block, tag)) = self.claim_transfer() else { return Ok(false) };
        let t = lane.transfer(lane.out, block);
        let piece = self.ep.tuning.coop_piece;
        let pieces = pieces_of(n, piece);
        self.describe(t, tag, piece);
        t.claim.store(claim_word(tag, 0), Ordering::Relaxed);
        self.take_landing();
        self.publish(Kind::Coop, self.len as u64, block as u64 | (tag as u64) << 32);
        let pid = pid_of(lane);
        let mut done = 0u32;
        let mut fault = None;
        while let Some(k) = t.claim(tag, pieces) {
            let (at, end) = bounds_of(n, piece, k);
            // SAFETY: the posting is ours until both sides are done.
            match unsafe { across(pid, Push, self.data, target, at, end - at) } {
                Ok(()) => done += 1,
                Err(e) => {
                    t.err_s.store((tag as u64) << 32 | (k + 1) as u64, Ordering::Relaxed);
                    fault = Some(e);
                    break;
                }
            }
        }
        // SYNC POINT: pairs with the acquire in `Receiver::share`.
        t.done_s.store((tag as u64) << 32 | done as u64, Ordering::Release);
        let scene =
            Waiting { ep: self.ep, lane, slot: self.slot, seq: self.seq, len: self.len, confirm: true, midway: true };
        let mut waiter = Waiter::new();
        let result = loop {
            match fault {
                Some(CmaError::Gone) => break Err(lane.peer_error(self.ep.rank, "has died", "send to", self.index())),
                Some(_) => break Err(self.fault("written to the receiver's buffer")),
                None => {}
            }
            // SYNC POINT: pairs with the release in `Receiver::share`: it reads our memory no more.
            if word_of(t.err_r.load(Ordering::Acquire), tag).is_some_and(|e| e != 0) {
                break Err(self.fault("read by the receiver"));
            }
            // SYNC POINT: pairs with the release in `Receiver::share`.
            let theirs = word_of(t.done_r.load(Ordering::Acquire), tag).unwrap_or(0);
            if theirs + done == pieces {
                break Ok(true);
            }
            if !waiter.spin()
                && let Err(e) = waiter.slow(&scene)
            {
                break Err(e);
            }
        };
        self.release_transfer(block);
        result
    }

    #[cold]
    fn fault(&self, what: &str) -> Error {
        Error::new(
            Code::Argument,
            format!(
                "rank {}: send of {} bytes to {}: the buffer cannot be {what}; for memory that the kernel does not copy set FMPL_CMA=off",
                self.ep.rank,
                self.len,
                self.lane.name(self.index())
            ),
        )
    }

    /// Writes where the message lies into a transfer block.
    fn describe(&self, t: &Transfer, tag: u32, piece: usize) {
        let (kind, addr, block) = match self.data {
            Layout::Contiguous { ptr, .. } => (PostingKind::Contiguous, ptr, Shaped { run: 0, count: 0, stride: 0 }),
            Layout::Block { ptr, block } => (PostingKind::Block, ptr, block),
            Layout::List { iov, n } => {
                (PostingKind::List, iov.cast_mut().cast(), Shaped { run: 0, count: n, stride: 0 })
            }
        };
        t.kind.store(kind as u64, Ordering::Relaxed);
        t.addr.store(addr as u64, Ordering::Relaxed);
        t.len.store(self.len as u64, Ordering::Relaxed);
        t.piece.store(piece as u64, Ordering::Relaxed);
        t.run.store(block.run as u64, Ordering::Relaxed);
        t.count.store(block.count as u64, Ordering::Relaxed);
        t.stride.store(block.stride as u64, Ordering::Relaxed);
        for word in [&t.err_s, &t.done_r, &t.err_r] {
            word.store((tag as u64) << 32, Ordering::Relaxed);
        }
        // SYNC POINT: pairs with the acquire in `Receiver::share`: who still looks for the transfer before finds it over, and all of it
        // written.
        t.done_s.store((tag as u64) << 32, Ordering::Release);
    }

    fn claim_transfer(&self) -> Option<(usize, u32)> {
        let used = &self.lane.transfers_used;
        let mut now = used.load(Ordering::Relaxed);
        loop {
            let free = (!now).trailing_zeros() as usize;
            if free >= TRANSFERS {
                return None;
            }
            match used.compare_exchange_weak(now, now | 1 << free, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break Some((free, self.lane.transfer_tag.fetch_add(1, Ordering::Relaxed).max(1))),
                Err(other) => now = other,
            }
        }
    }
    fn release_transfer(&self, block: usize) {
        self.lane.transfers_used.fetch_and(!(1 << block), Ordering::Release);
    }

    /// Offers the message for the receiver to pull. `false`: it must wait for its posting.
    pub unsafe fn offer(&mut self) -> bool {
        let lane = self.lane;
        let way = self.ep.tuning.way;
        if lane.is_self() || !cma_allowed(lane) || !matches!(way, Way::Auto | Way::Cma | Way::Coop) {
            return false;
        }
        if !self.consumed_all() {
            return false;
        }
        let Some((block, tag)) = self.claim_transfer() else { return false };
        let t = lane.transfer(lane.out, block);
        self.describe(t, tag, self.len.max(1));
        t.offer.store(claim_word(tag, OFFER_OPEN), Ordering::Release);
        self.take_landing();
        let side = lane.send_side(self.slot);
        side.transfer.set(block as u32 + 1);
        side.tag.set(tag);
        self.publish(Kind::Pull, self.len as u64, block as u64 | (tag as u64) << 32);
        true
    }

    /// The offer's block is free again: its message is acknowledged, or was moved.
    pub fn end_offer(&self) {
        let side = self.lane.send_side(self.slot);
        if side.transfer.get() != 0 {
            self.release_transfer(side.transfer.get() as usize - 1);
            side.transfer.set(0);
        }
    }

    /// Has the receiver refused the offer, because the kernel would not copy?
    pub fn is_refused(&self) -> bool {
        let side = self.lane.send_side(self.slot);
        let t = self.lane.transfer(self.lane.out, side.transfer.get() as usize - 1);
        t.offer.load(Ordering::Relaxed) == claim_word(side.tag.get(), OFFER_REFUSED)
    }

    /// Moves an offered message into the spool, so that its memory is the caller's again. `false`: no room, or the receiver
    /// has it already and will acknowledge. `posted`: a receive is posted for it, and for that there is room beyond the limit.
    pub unsafe fn move_offer(&mut self, posted: bool) -> bool {
        let (lane, spool) = (self.lane, &self.ep.spool);
        let side = lane.send_side(self.slot);
        let t = lane.transfer(lane.out, side.transfer.get() as usize - 1);
        let open = claim_word(side.tag.get(), OFFER_OPEN);
        let refused = claim_word(side.tag.get(), OFFER_REFUSED);
        let state = t.offer.load(Ordering::Relaxed);
        if state != open && state != refused {
            return false;
        }
        if side.block.get().is_some() {
            spool.give_back(side.block.get());
            side.block.set(crate::lane::BlockRef::NONE);
        }
        let block = spool.take(lane.comm(), self.len, self.len);
        let beyond = || posted.then(|| spool.take_beyond(lane.comm(), self.len, self.len)).flatten();
        let Some(block) = block.or_else(beyond) else { return false };
        self.sign(spool.block(block.at));
        let at = block.at + BLOCK_HEADER as u64;
        // SAFETY: the block has room; the data is readable, as the caller promises.
        unsafe { Cursor::new(self.data, 0).gather(spool.bytes(at), self.len) };
        // Beside the posting, not in the block, which is free for another offer once this one is moved.
        lane.shape(lane.out, self.slot).moved.store(at, Ordering::Relaxed);
        // SYNC POINT: pairs with the receiver's compare-and-swap in `Receiver::pull`: one of the two wins.
        if t.offer
            .compare_exchange(state, claim_word(side.tag.get(), OFFER_MOVED), Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            spool.give_back(block);
            return false;
        }
        side.block.set(block);
        lane.count_spooled(self.slot);
        spool.block(block.at).owner.store(lane.owner(self.slot, lane.world), Ordering::Relaxed);
        side.spooled_landing.set(self.seq_sent());
        lane.note_spooled(self.slot);
        side.state.set(SendState::Sent);
        true
    }

    fn seq_sent(&self) -> u64 {
        self.lane.progress(self.slot).sent.load(Ordering::Relaxed)
    }
}

/// Pieces of a shared copy of `n` bytes: two halves when a half is no longer than `piece`, since each call to the kernel costs as
/// much as copying 20 KiB; for more bytes runs of four, two long ones and two short ones that even out who was late.
fn pieces_of(n: usize, piece: usize) -> u32 {
    if n <= 2 * piece { 2 } else { 4 * n.div_ceil(8 * piece) as u32 }
}

/// Where piece `k` begins and ends.
fn bounds_of(n: usize, piece: usize, k: u32) -> (usize, usize) {
    // A model's messages are short.
    const GRAIN: usize = if cfg!(loom) { 16 } else { 4096 };
    let place =
        |tenths: usize, run: usize, from: usize| (from + (run * tenths / 16).next_multiple_of(GRAIN)).min(from + run);
    if n <= 2 * piece {
        let half = place(8, n, 0);
        return if k == 0 { (0, half) } else { (half, n) };
    }
    let runs = pieces_of(n, piece) as usize / 4;
    let (run, part) = (k as usize / 4, k as usize % 4);
    let from = n * run / runs;
    let len = n * (run + 1) / runs - from;
    let cuts = [0, 6, 12, 14, 16];
    (
        if part == 0 { from } else { place(cuts[part], len, from) },
        if part == 3 { from + len } else { place(cuts[part + 1], len, from) },
    )
}

fn word_of(word: u64, tag: u32) -> Option<u32> {
    ((word >> 32) as u32 == tag).then_some(word as u32)
}

/// A ring that nobody uses and whose chunks are all consumed.
fn claim_ring(lane: &Lane) -> Option<usize> {
    for ring in 0..RINGS {
        let bit = 1u32 << ring;
        if lane.rings_used.load(Ordering::Relaxed) & bit != 0
            || lane.rings_used.fetch_or(bit, Ordering::Acquire) & bit != 0
        {
            continue;
        }
        let sent = lane.ring_sent[ring].load(Ordering::Relaxed);
        if lane.ring_flag(lane.out, ring, RING_CHUNKS).n.load(Ordering::Acquire) == sent {
            return Some(ring);
        }
        release_ring(lane, ring);
    }
    None
}

fn release_ring(lane: &Lane, ring: usize) {
    lane.rings_used.fetch_and(!(1 << ring), Ordering::Release);
}

impl Receiver {
    /// Takes `n` bytes out of a ring as they come.
    pub unsafe fn through_ring(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (ring, log, places, first) = ((at & 0xff) as usize, (at >> 8 & 0x7f) as u32, (at >> 16 & 0xff), at >> 24);
        let spread = at >> 15 & 1 != 0;
        if ring >= RINGS
            || !(8..=16).contains(&log)
            || places == 0
            || places as usize * ring_pitch(log, spread) > RING_BYTES
        {
            return Err(self.garbled("a ring of a shape that does not exist"));
        }
        let pitch = ring_pitch(log, spread);
        let data = lane.ring_data(lane.inn, ring);
        let consumed = &lane.ring_flag(lane.inn, ring, RING_CHUNKS).n;
        // SAFETY: the buffer has room for `n` bytes.
        let mut to = unsafe { Cursor::new(self.data, 0) }.wide(spread);
        let (mut k, mut left) = (first, n);
        while left > 0 {
            let place = k % places;
            let flag = &lane.ring_flag(lane.inn, ring, place as usize).n;
            let mut waiter = Waiter::new();
            // SYNC POINT: pairs with the release in `Sender::through_ring`.
            while flag.load(Ordering::Acquire) != k + 1 {
                if !waiter.spin() {
                    waiter.slow(&Chunk { wait: self.awaiting(), ready: &|| flag.load(Ordering::Relaxed) == k + 1 })?;
                }
            }
            let bytes = left.min(1 << log);
            // SAFETY: the chunk is ours until we say that it is consumed.
            unsafe { to.scatter(data.add(place as usize * pitch), bytes) };
            left -= bytes;
            k += 1;
            consumed.store(k, Ordering::Release);
        }
        Ok(())
    }

    fn awaiting(&self) -> Awaiting {
        Awaiting { ep: self.ep, lane: self.lane, slot: self.slot, seq: self.seq }
    }

    /// Where the sender's message lies, by its transfer block.
    fn source(&self, t: &Transfer) -> Result<Layout> {
        let addr = t.addr.load(Ordering::Relaxed) as *mut u8;
        let len = t.len.load(Ordering::Relaxed) as usize;
        let kind = t.kind.load(Ordering::Relaxed);
        if kind == PostingKind::Contiguous as u64 {
            return Ok(Layout::Contiguous { ptr: addr, len });
        }
        if kind == PostingKind::Block as u64 {
            let block = Shaped {
                run: t.run.load(Ordering::Relaxed) as usize,
                count: t.count.load(Ordering::Relaxed) as usize,
                stride: t.stride.load(Ordering::Relaxed) as isize,
            };
            return Ok(Layout::Block { ptr: addr, block });
        }
        if kind == PostingKind::List as u64 {
            // Its descriptors are the sender's.
            let n = t.count.load(Ordering::Relaxed) as usize;
            return Ok(Layout::List { iov: addr.cast_const().cast(), n });
        }
        Err(self.garbled("a transfer of a kind that does not exist"))
    }

    /// Does its share of a copy that the sender has begun, and waits for the sender's.
    pub unsafe fn share(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (block, tag) = ((at & 0xffff_ffff) as usize, (at >> 32) as u32);
        if block >= TRANSFERS {
            return Err(self.garbled("a transfer block that does not exist"));
        }
        let t = lane.transfer(lane.inn, block);
        let piece = t.piece.load(Ordering::Relaxed) as usize;
        // A transfer that is over may have made room for the next one in its block; then the tag no longer fits, here or below.
        if piece == 0 || word_of(t.done_s.load(Ordering::Acquire), tag).is_none() {
            return Ok(());
        }
        let source = self.source(t)?;
        let pieces = pieces_of(n, piece);
        let mut done = 0u32;
        let mut failed = false;
        while let Some(k) = t.claim(tag, pieces) {
            let (from, end) = bounds_of(n, piece, k);
            // SAFETY: the sender keeps its memory until both are done; ours has room for `n` bytes.
            if let Err(e) = unsafe { across(pid_of(lane), Pull, self.data, source, from, end - from) } {
                if matches!(e, CmaError::Gone) {
                    return Err(lane.peer_error(self.ep.rank, "has died", "recv from", self.index()));
                }
                t.err_r.store((tag as u64) << 32 | (k + 1) as u64, Ordering::Release);
                failed = true;
                break;
            }
            done += 1;
            // SYNC POINT: pairs with the acquire in `Sender::share`.
            t.done_r.store((tag as u64) << 32 | done as u64, Ordering::Release);
        }
        let mut waiter = Waiter::new();
        loop {
            let now = t.done_s.load(Ordering::Acquire);
            // Stored before the count.
            let error = t.err_s.load(Ordering::Relaxed);
            match word_of(now, tag) {
                // The sender has finished and gone on.
                None => break,
                Some(theirs) if theirs + done == pieces => break,
                _ => {}
            }
            if failed || word_of(error, tag).is_some_and(|e| e != 0) {
                return Err(self.lost());
            }
            if !waiter.spin() {
                let ready = || t.done_s.load(Ordering::Relaxed) != now || t.err_s.load(Ordering::Relaxed) != error;
                waiter.slow(&Chunk { wait: self.awaiting(), ready: &ready })?;
            }
        }
        Ok(())
    }

    #[cold]
    fn lost(&self) -> Error {
        Error::new(
            Code::Argument,
            format!(
                "rank {}: recv from {}: one of the two buffers cannot be copied by the kernel; for such memory set FMPL_CMA=off",
                self.ep.rank,
                self.lane.name(self.index())
            ),
        )
    }

    /// Fetches an offered message, or what the sender has moved into its spool meanwhile.
    pub unsafe fn pull(&self, n: usize, at: u64) -> Result<()> {
        let lane = self.lane;
        let (block, tag) = ((at & 0xffff_ffff) as usize, (at >> 32) as u32);
        if block >= TRANSFERS {
            return Err(self.garbled("a transfer block that does not exist"));
        }
        let t = lane.transfer(lane.inn, block);
        if t.settle(tag, OFFER_TAKEN) {
            let source = self.source(t)?;
            // SAFETY: the sender keeps its memory until we acknowledge; ours has room for `n` bytes.
            match unsafe { across(pid_of(lane), Pull, self.data, source, 0, n) } {
                Ok(()) => return Ok(()),
                Err(CmaError::Gone) => {
                    return Err(lane.peer_error(self.ep.rank, "has died", "recv from", self.index()));
                }
                Err(_) => t.offer.store(claim_word(tag, OFFER_REFUSED), Ordering::Relaxed),
            }
            // The sender may sleep in its wait.
            doorbell::light_barrier();
            let sleep = lane.receiving(self.slot).0.tx.load(Ordering::Relaxed) & 0xff;
            if sleep != 0 {
                super::send::wake(lane, self.slot, sleep);
            }
        }
        // Anything but what this side wrote there means that it is moved, and perhaps that the block serves another offer by now.
        // SYNC POINT: pairs with `Sender::move_offer`; a later offer's word is stored after the block was released and claimed.
        let refused = claim_word(tag, OFFER_REFUSED);
        let mut waiter = Waiter::new();
        while t.offer.load(Ordering::Acquire) == refused {
            if !waiter.spin() {
                waiter.slow(&Chunk { wait: self.awaiting(), ready: &|| t.offer.load(Ordering::Relaxed) != refused })?;
            }
        }
        let base = lane.peer_spool(&self.ep.region)?;
        let from = lane.shape(lane.inn, self.slot).moved.load(Ordering::Relaxed) as usize;
        if from.checked_add(n).is_none_or(|end| end > crate::p2p::spool::SPOOL_WINDOW) || from < BLOCK_HEADER {
            return Err(self.garbled("a moved message outside the spool"));
        }
        // SAFETY: the sender keeps the block until we acknowledge; a block is atomics and bytes.
        unsafe {
            Cursor::new(self.data, 0).scatter(base.add(from), n);
            let header = &*base.add(from - BLOCK_HEADER).cast::<Block>();
            header.done.store(header.gener.load(Ordering::Relaxed), Ordering::Release);
        }
        Ok(())
    }
}

/// A wait in the middle of a transfer; the sender is known to be at work.
struct Chunk<'a> {
    wait: Awaiting,
    ready: &'a dyn Fn() -> bool,
}

impl crate::wait::Scene for Chunk<'_> {
    fn board(&self) -> &'static crate::wait::Board {
        self.wait.board()
    }
    fn sleep_word(&self) -> Option<&crate::base::atomics::AtomicU32> {
        None
    }
    fn bits(&self) -> u32 {
        self.wait.bits()
    }
    fn ready(&self) -> bool {
        (self.ready)()
    }
    fn may_end(&self) -> bool {
        false
    }
    fn gone(&self) -> Option<Error> {
        self.wait.gone()
    }
    fn waits(&self) -> crate::wait::Waits {
        self.wait.waits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_cover_every_byte_once(n in 1usize..50_000_000, piece in 1usize..2_000_000) {
            let pieces = pieces_of(n, piece);
            let mut at = 0;
            for k in 0..pieces {
                let (from, end) = bounds_of(n, piece, k);
                prop_assert_eq!(from, at);
                prop_assert!(end >= from);
                at = end;
            }
            prop_assert_eq!(at, n);
        }
    }
}
