//! Moving a long payload once both ends are known: by a store into shared memory, by the kernel, through memory that both sides
//! see, or by both sides at once.
//!
//! | way | copies | needs |
//! |---|---|---|
//! | store | one, by the sender | the receive buffer in memory from `fmpl_alloc` |
//! | CMA | one, by the sender in the kernel | permission; works while the receiver does something else |
//! | in turn ([`turn`]) | two, overlapped | the receiver waits for this message, and the last one of that kind came from there |
//! | ring ([`ring`]) | two, overlapped, in the caches | the receiver waits for this message |
//! | cooperative ([`share`]) | one, shared by both sides as far as both come to it | permission |
//! | pull ([`offer`]) | one, by the receiver in the kernel | permission; the sender offers and goes on |
//!
//! Pieces of a shared copy are claimed by compare-and-swap of a word that carries the transfer's tag, so a latecomer takes no piece
//! of the next one. Whoever claims a piece finishes it; the sender alone finishes the copy when the receiver never comes.

mod offer;
mod ring;
mod share;
mod turn;

use crate::base::atomics::{Ordering, fence};
use crate::base::config::Way;
use crate::base::error::Error;
use crate::base::layout::{Block as Shaped, Cursor, Form, Layout, Run, copy};
use crate::base::rules::{Rule, holds};
use crate::fabric::shm::across::Way::Push;
use crate::fabric::shm::across::across;
use crate::fabric::shm::cma::CmaError;
use crate::lane::map::TRANSFERS;
use crate::lane::record::*;
use crate::lane::{Lane, SendState, WayTaken};
use crate::p2p::receive::{Awaiting, Receiver};
use crate::p2p::send::Sender;
use crate::wait::doorbell;

/// What became of an attempt to put a message into its posting.
pub(super) enum Put {
    /// It is there, and published.
    Done,
    /// It is published; the receiver, or a device ([`Sender::later`]), still reads the request's memory.
    Under(SendState),
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

/// [`across`] with the peer of a lane, if that lives: when it has died, or has executed another program, its number stands for another's memory.
fn across_to(
    lane: &Lane,
    way: crate::fabric::shm::across::Way,
    local: Layout,
    remote: Form,
    at: usize,
    n: usize,
) -> Result<(), CmaError> {
    let peer = lane.peer.as_ref().filter(|p| p.may_copy()).ok_or(CmaError::Gone)?;
    across(peer.pid, way, local, remote, at, n)
}

fn cma_allowed(lane: &Lane) -> bool {
    lane.peer.as_ref().is_some_and(|p| p.cma())
}

/// Are the runs of one side of `n` bytes so short that copying them twice costs less than having the kernel find each?
fn has_short_runs(n: usize, from: Form, to: Form) -> bool {
    let short = |form| match form {
        Form::Contiguous(_) => false,
        Form::Block { block, .. } => block.count > 1 && block.run <= SHORT_RUN && block.stride != block.run as isize,
        Form::List { n: pieces, .. } => pieces > 1 && n / pieces <= SHORT_PIECE,
    };
    short(from) || short(to)
}

impl Sender {
    /// Puts the message into its posting, which is there.
    pub fn put(&mut self, ring: Ring) -> Put {
        let lane = self.lane;
        let posting = lane.posting_there(self.slot);
        let mark = &lane.head(lane.out, self.slot).mark;
        // The receiver may be withdrawing the posting: say that we put, then look whether it is still there.
        // SYNC POINT: pairs with `request::take_back`, which buys the order of both sides with `membarrier`; where it may not call it, or
        // this side is not reached by it, both have a fence.
        let before = mark.load(Ordering::Relaxed);
        if holds(Rule::SaysThatItPuts) {
            mark.store(self.seq << 2 | PUTS, Ordering::Relaxed);
        }
        let ordered = match &lane.peer {
            Some(peer) => peer.region.header().is_ordered(),
            // Between nodes this process withdraws for the receiver.
            None => self.ep.is_ordered(),
        };
        if ordered {
            doorbell::light_barrier();
        } else {
            fence(Ordering::SeqCst);
        }
        if let Some(remote) = lane.remote() {
            let done = self.put_remote(remote);
            if matches!(done, Put::NotNow) {
                mark.store(before, Ordering::Release);
            }
            return done;
        }
        if !posting.is(self.seq) {
            mark.store(before, Ordering::Relaxed);
            return Put::NotNow;
        }
        self.ep.passed(lane, self.len);
        let addr = posting.addr.load(Ordering::Relaxed);
        let cap = posting.cap.load(Ordering::Relaxed) as usize;
        let meta = posting.meta.load(Ordering::Relaxed);
        let (kind, hint) = (meta as u8, (meta >> 8) as u8);
        let n = self.len.min(cap);
        let shape = lane.shape(lane.out, self.slot);
        let [run, count, stride] = [&shape.run, &shape.count, &shape.stride].map(|w| w.load(Ordering::Relaxed));
        let shape = match kind {
            k if k == PostingKind::Contiguous as u8 || k == PostingKind::Loan as u8 => 0,
            k if k == PostingKind::Block as u8 => Posting::check_shape([run, count, stride]),
            _ => Posting::check_shape([0, count, 0]),
        };
        let same = Posting::check(self.seq, addr, cap as u64, kind as u64) ^ shape == meta >> 32;
        let Some(target) = there(kind as u64, addr, [run, count, stride], n).filter(|_| same) else {
            mark.store(before, Ordering::Relaxed);
            let record = format!("a posting ({})", lane.name(self.index()));
            let what = self.ep.break_off(lane.world, &record);
            return Put::Failed(lane.peer_error(self.ep.rank, &what, "send to", self.index()));
        };
        let done = {
            match kind == PostingKind::Loan as u8 {
                true => self.put_loan(),
                false => self.put_into(target, hint & HINT_WAITING != 0, ring, hint & HINT_HEAP != 0, addr, n),
            }
        };
        if matches!(done, Put::NotNow) {
            // It may still want to be found by a receiver of any index.
            // SYNC POINT: pairs with the acquire in `request::take_back`: the kernel may have written some of it.
            mark.store(before, Ordering::Release);
        }
        done
    }

    fn put_into(&mut self, target: Form, waiting: bool, ring: Ring, in_heap: bool, addr: u64, n: usize) -> Put {
        let (lane, ways, way) = (self.lane, self.ways(), self.ep.tuning.way);
        if lane.is_self() {
            // SAFETY: the receive that was posted is this process's, whose buffer and descriptors are there until it is published.
            copy(self.data, 0, unsafe { Layout::new(target) }, 0, n);
            return self.direct(WayTaken::Store);
        }
        if (way == Way::Auto || way == Way::Store)
            && in_heap
            && matches!(target, Form::Contiguous(_))
            && let Some(to) = lane.peer.as_ref().and_then(|p| p.region.heap()).and_then(|w| w.run(addr, n))
        {
            Cursor::new(self.data, 0).gather(to);
            return self.direct(WayTaken::Store);
        }
        if self.request {
            lane.windows.found(waiting);
        }
        let cma = cma_allowed(lane) && !matches!(way, Way::Ring | Way::Turn | Way::Spool);
        let ring_first = n <= ways.ring_max
            || !cma
            || way == Way::Auto && n >= ways.coop_min && has_short_runs(n, self.data.form(), target);
        let open = match ring {
            Ring::Never => false,
            Ring::IfAwaited => waiting,
        };
        if waiting && n <= ways.turn_max && self.in_turn(n) {
            return Put::Done;
        }
        if open && (ring_first && way != Way::Cma && way != Way::Coop || !cma) {
            match self.through_ring(n) {
                Ok(true) => return Put::Done,
                Ok(false) => {}
                Err(e) => return Put::Failed(e),
            }
        }
        if way == Way::Auto && self.spool_unawaited() {
            return Put::Done;
        }
        if !cma {
            return Put::NotNow;
        }
        // Two that cross: each rank copies its own, and has no time for the other's.
        let cross = way == Way::Auto && !waiting && lane.awaits_long();
        let shared = (n >= ways.coop_min || way == Way::Coop) && way != Way::Cma && n > 0;
        // Whether the receiver waits for this message or not: in a window of requests it is behind by a message or two.
        if shared
            && !cross
            && let Some(done) = self.share(target, n)
        {
            return done;
        }
        match across_to(lane, Push, self.data, target, 0, n) {
            Ok(()) => return self.direct(WayTaken::Kernel),
            Err(CmaError::Gone) => {
                return Put::Failed(lane.peer_error(self.ep.rank, "has died", "send to", self.index()));
            }
            Err(CmaError::Denied) => lane.peer.iter().for_each(|p| p.cma_off()),
            Err(CmaError::Fault { .. } | CmaError::System { .. }) if open => match self.through_ring(n) {
                Ok(true) => return Put::Done,
                Ok(false) => {}
                Err(e) => return Put::Failed(e),
            },
            Err(CmaError::Fault { .. } | CmaError::System { .. }) => {}
        }
        // Not allowed, or memory that the kernel does not copy (a device's): the ring and the spool can.
        Put::NotNow
    }

    /// A message whose receiver does something else, up to some size: copied into the spool and out of it by loads and stores it
    /// costs less than a call to the kernel. Half of the spool stays for what nothing is posted for.
    fn spool_unawaited(&mut self) -> bool {
        let most = if self.request { self.ways().unawaited_isend } else { self.ways().unawaited };
        if !self.is_exchanged()
            && (self.len > most || !self.ep.spool.stays_within(self.lane.comm(), self.len, usize::MAX))
        {
            return false;
        }
        self.take_landing();
        self.spool_by_landing(false)
    }

    /// Is it a request of a window that goes by the spool? Then it does so without a look at its posting.
    pub fn is_of_window(&self) -> bool {
        self.lane.peer.is_some()
            && self.lane.special.load(Ordering::Relaxed) == 0
            && self.ep.tuning.way == Way::Auto
            && self.len <= self.ways().unawaited_isend
            && self.lane.windows.goes_on()
            && self.ep.spool.stays_within(self.lane.comm(), self.len, usize::MAX)
    }

    /// Is it long, and one of two that cross? Then both ranks copy twice what stays in their caches, at the same time, and neither waits for the
    /// other: that is faster than the kernel's copies, up to some size, and as long as not much more is on its way through the spool. On one node:
    /// to another the spool is a detour.
    pub(super) fn is_exchanged(&self) -> bool {
        let most = self.ways().unawaited_exchange;
        self.len <= most
            && self.lane.peer.is_some()
            && self.ep.tuning.way == Way::Auto
            && self.lane.awaits_long()
            && self.ep.spool.stays_within(self.lane.comm(), self.len, 2 * most)
    }

    fn direct(&mut self, way: WayTaken) -> Put {
        self.take_landing();
        self.publish(way, Kind::Direct, self.len as u64, 0);
        Put::Done
    }

    /// Writes where the message lies into a transfer block. Its claims are closed: an offer has no pieces, a shared copy opens them.
    fn describe(&self, t: &Transfer, tag: u32, piece: usize) {
        let (kind, addr, block) = match self.data.form() {
            Form::Contiguous(run) => (PostingKind::Contiguous, run.ptr(), Shaped { run: 0, count: 0, stride: 0 }),
            Form::Block { ptr, block } => (PostingKind::Block, ptr, block),
            Form::List { iov, n } => (PostingKind::List, iov.cast_mut().cast(), Shaped { run: 0, count: n, stride: 0 }),
        };
        // SYNC POINT: pairs with the acquire in `Receiver::share`: the transfer before is over, and all of it written.
        t.claim.store(claim_word(tag, u32::MAX), Ordering::Release);
        // SYNC POINT: pairs with the fence in `Receiver::share`: who still looks for the transfer before, and has read a word of this one,
        // finds the claims closed.
        fence(Ordering::Release);
        t.kind.store(kind as u64, Ordering::Relaxed);
        t.addr.store(addr as u64, Ordering::Relaxed);
        t.len.store(self.len as u64, Ordering::Relaxed);
        t.piece.store(piece as u64, Ordering::Relaxed);
        t.run.store(block.run as u64, Ordering::Relaxed);
        t.count.store(block.count as u64, Ordering::Relaxed);
        t.stride.store(block.stride as u64, Ordering::Relaxed);
        t.done_r.store((tag as u64) << 32, Ordering::Relaxed);
        // SYNC POINT: with the fence above, these pair with the acquires in `Receiver::take_moved`, where who still looks for the offer before
        // finds where that was moved to, and in `Receiver::share`, where who still looks for the copy before finds all of it written.
        t.offer.store(claim_word(tag, OFFER_OPEN), Ordering::Relaxed);
        t.done_s.store((tag as u64) << 32, Ordering::Relaxed);
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
}

impl Receiver {
    pub(super) fn awaiting(&self) -> Awaiting {
        Awaiting { ep: self.ep, lane: self.lane, slot: self.slot, seq: self.seq }
    }

    /// Where the sender's message lies, by its transfer block.
    fn source(&self, t: &Transfer, n: usize) -> Option<Form> {
        let [kind, addr, run, count, stride] =
            [&t.kind, &t.addr, &t.run, &t.count, &t.stride].map(|w| w.load(Ordering::Relaxed));
        there(kind, addr, [run, count, stride], n)
    }
}

/// Where `n` bytes of a message lie in a peer's memory, by what the peer says of it. `None`: no memory has such a shape. Of a list the
/// descriptors are the peer's too.
fn there(kind: u64, addr: u64, [run, count, stride]: [u64; 3], n: usize) -> Option<Form> {
    let ptr = addr as *mut u8;
    if kind == PostingKind::Contiguous as u64 || kind == PostingKind::Loan as u64 {
        addr.checked_add(n as u64)?;
        // SAFETY: an address of the peer's, where this process looks only if the peer is itself.
        return Some(Form::Contiguous(unsafe { Run::new(ptr, n) }));
    }
    if kind == PostingKind::Block as u64 {
        let block = Shaped { run: run as usize, count: count as usize, stride: stride as isize };
        // Beyond all memory nothing is computed: the kernel says what of the rest is there.
        let spans = (block.count as u64) < 1 << 48 && (stride as i64).checked_mul(count as i64).is_some();
        let has = block.run.checked_mul(block.count).filter(|all| *all <= isize::MAX as usize)?;
        return (spans && has >= n).then_some(Form::Block { ptr, block });
    }
    let ends = count.checked_mul(size_of::<libc::iovec>() as u64).and_then(|bytes| addr.checked_add(bytes));
    (kind == PostingKind::List as u64 && ends.is_some())
        .then_some(Form::List { iov: ptr.cast_const().cast(), n: count as usize })
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
        self.wait.ep.peer_gone(self.wait.lane, self.wait.slot, "recv from")
    }
    fn waits(&self) -> crate::wait::Waits {
        self.wait.waits()
    }
}
