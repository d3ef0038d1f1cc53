//! Long messages: what the slot says lies with the sender is fetched by the receiver itself.
//!
//! A **spooled** message is a block of the sender's spool, which the receiver maps; it copies the message out, marks the block done, and
//! the sender need not be there. An **offer** is a record in such a block that says where in the sender's memory the message is:
//!
//! ```text
//!   state   OPEN ── receiver ──▶ TAKEN ── reads by the kernel ──▶ block done
//!             │                    └──── the kernel refuses ────▶ ASKED
//!             └─── sender, time-out: copies into the spool ─────▶ MOVED    receiver copies from there, marks both blocks done
//!           CLOSED ── receiver ──▶ ASKED                                   no copies between these processes
//!           ASKED ─── sender: copies into the spool ────────────▶ MOVED
//!                 └── the spool has no room for it ─────────────▶ STREAM   piece by piece through a small block
//! ```
//! OPEN and CLOSED are left by compare-and-swap, so that exactly one side decides. A block belongs to this use until the receiver marks
//! it done with its generation; that is the receiver's last look at it, and the end of the offer for the sender.

use crate::base::record::of_atomics;
use static_assertions::const_assert;

use super::ring::Away;
use super::send::{Local, Outgoing, copy_into_spool};
use super::{garbled, receive::Incoming};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::error::{Code, Error, Result, error};
use crate::base::run::Run;
use crate::fabric::shm::cma::{self, CmaError};
use crate::fabric::shm::peer::Peer;
use crate::lane::record::{ASLEEP, BLOCK_HEADER, EVENT};
use crate::lane::{BlockRef, PeerBlock};
use crate::p2p::endpoint::Endpoint;
use crate::wait::{Board, doorbell};

const OPEN: u32 = 1;
const CLOSED: u32 = 2;
const TAKEN: u32 = 3;
const ASKED: u32 = 4;
const MOVED: u32 = 5;
const STREAM: u32 = 6;

/// Bytes of a piece of a message that goes through a small block; the block holds two.
const PIECE: usize = if cfg!(loom) { 384 } else { 64 << 10 };

of_atomics! { Record:
    /// The record of an offer, behind its block's header.
    #[repr(C, align(64))]
    pub(super) struct Offer {
        /// Written by the sender, and by the receiver as the drawing says.
        state: AtomicU32,
        /// The sender's sleep byte.
        asleep: AtomicU32,
        /// Where in the sender's memory the message is.
        address: AtomicU64,
        /// Where in its spool it was moved to, or the block that it goes through.
        block: AtomicU64,
        generation: AtomicU32,
        _pad: AtomicU32,
        /// Bytes that the sender has put into that block, and that the receiver has taken out.
        filled: AtomicU64,
        taken: AtomicU64,
        _pad1: [AtomicU64; 2],
    }
}

const_assert!(size_of::<Offer>() == 64);
const_assert!(BLOCK_HEADER.is_multiple_of(64));

/// How far the receiver is with an offer, for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// It has not come, or is reading.
    Not,
    /// It needs the sender's help.
    Asked,
    /// It waits for the next piece, or has taken one.
    Streaming,
    /// It has the message.
    Done,
}

/// The record behind a block's header. `None`: there is no room for one.
fn record<'a>(block: PeerBlock) -> Option<&'a Offer> {
    block.at(BLOCK_HEADER as u64)
}

/// Makes an offer of a message, to itself or to another rank. `None`: the spool has no block for it.
pub(super) fn make(ep: &Endpoint, comm: i32, data: Run, to_itself: bool, reachable: bool) -> Option<BlockRef> {
    let block = ep.spool.take(comm, size_of::<Offer>(), 0)?;
    let offer = record(ep.spool.as_peers().block(block.at)?)?;
    if to_itself {
        ep.any_source.lend(block, data);
    }
    offer.address.store(data.ptr() as u64, Ordering::Relaxed);
    offer.asleep.store(0, Ordering::Relaxed);
    offer.filled.store(0, Ordering::Relaxed);
    offer.taken.store(0, Ordering::Relaxed);
    // The slot's mark carries it over to the receiver.
    offer.state.store(if reachable { OPEN } else { CLOSED }, Ordering::Relaxed);
    Some(block)
}

/// An offer that is published, as its sender has it.
pub(super) struct Offered {
    block: BlockRef,
    /// The block that the pieces go through.
    stream: Option<BlockRef>,
    /// Bytes put into it.
    filled: u64,
}

impl Offered {
    pub fn new(block: BlockRef) -> Offered {
        Offered { block, stream: None, filled: 0 }
    }

    fn record<'a>(&self, ep: &'a Endpoint) -> &'a Offer {
        let block = ep.spool.as_peers().block(self.block.at);
        block.and_then(record).expect("a block that was taken for an offer is in the spool")
    }

    /// The sender's sleep byte.
    pub fn asleep<'a>(&self, ep: &'a Endpoint) -> &'a AtomicU32 {
        &self.record(ep).asleep
    }

    /// How far the receiver is.
    pub fn fetch(&self, ep: &Endpoint) -> Fetch {
        let offer = self.record(ep);
        if ep.spool.is_done(self.block) {
            return Fetch::Done;
        }
        match offer.state.load(Ordering::Acquire) {
            ASKED => Fetch::Asked,
            STREAM if self.room_in_stream(offer) => Fetch::Streaming,
            _ => Fetch::Not,
        }
    }

    /// Its blocks are the spool's again: the receiver looks at them no more.
    pub fn take_back(&mut self, ep: &Endpoint) {
        ep.any_source.take_back(self.block);
        ep.spool.give_back(self.block);
        if let Some(stream) = self.stream.take() {
            ep.spool.give_back(stream);
        }
    }

    fn room_in_stream(&self, offer: &Offer) -> bool {
        // SYNC POINT: pairs with the receiver's release after it has copied a piece.
        let taken = offer.taken.load(Ordering::Acquire);
        self.filled.saturating_sub(taken) < 2 * PIECE as u64
    }

    /// Does what the receiver needs of the sender; `late`: the sender's patience is over. `true`: the memory is the caller's again.
    pub fn serve(&mut self, ep: &Endpoint, out: &Outgoing, local: &Local, data: Run, late: bool) -> Result<bool> {
        let offer = self.record(ep);
        if ep.spool.is_done(self.block) {
            self.take_back(ep);
            return Ok(true);
        }
        // SYNC POINT: pairs with the receiver's exchange.
        let state = offer.state.load(Ordering::Acquire);
        match state {
            OPEN | CLOSED if late => self.move_it(ep, out, local, data, state),
            ASKED => {
                if self.move_it(ep, out, local, data, ASKED)? {
                    return Ok(true);
                }
                self.begin_stream(ep, out, local);
                Ok(false)
            }
            STREAM => {
                self.fill(ep, out, local, data);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Copies the message into the spool, if there is room and the offer is still in this state. `true`: it is there.
    fn move_it(&mut self, ep: &Endpoint, out: &Outgoing, local: &Local, data: Run, state: u32) -> Result<bool> {
        let Some(block) = copy_into_spool(ep, out.comm, data) else { return Ok(false) };
        let offer = self.record(ep);
        offer.block.store(block.at, Ordering::Relaxed);
        offer.generation.store(block.generation, Ordering::Relaxed);
        // SYNC POINT: pairs with the receiver's acquire of the state.
        if offer.state.compare_exchange(state, MOVED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            ep.spool.give_back(block);
            return Ok(false);
        }
        local.wake_receiver(out.index);
        Ok(true)
    }

    fn begin_stream(&mut self, ep: &Endpoint, out: &Outgoing, local: &Local) {
        let Some(block) = ep.spool.take(out.comm, 2 * PIECE, 0) else { return };
        let offer = self.record(ep);
        offer.block.store(block.at, Ordering::Relaxed);
        offer.generation.store(block.generation, Ordering::Relaxed);
        self.stream = Some(block);
        // ASKED is the sender's to leave. SYNC POINT: pairs with the receiver's acquire of the state.
        offer.state.store(STREAM, Ordering::Release);
        local.wake_receiver(out.index);
    }

    fn fill(&mut self, ep: &Endpoint, out: &Outgoing, local: &Local, data: Run) {
        let offer = self.record(ep);
        let Some(block) = self.stream else { return };
        while self.filled < data.len() as u64 && self.room_in_stream(offer) {
            let filled = self.filled;
            let n = PIECE.min(data.len() - filled as usize);
            let half = (filled as usize / PIECE % 2) * PIECE;
            data.after(filled as usize).copy_to(ep.spool.run(block.at + (BLOCK_HEADER + half) as u64, n));
            self.filled += n as u64;
            // SYNC POINT: pairs with the receiver's acquire.
            offer.filled.store(self.filled, Ordering::Release);
            local.wake_receiver(out.index);
        }
    }

    /// With an event descriptor: the receiver is to ring for the end of the offer.
    pub fn arm(&self, ep: &Endpoint) {
        let Some(event) = ep.event.get() else { return };
        let word = self.asleep(ep);
        // SYNC POINT: as in `fall_asleep`.
        word.store(word.load(Ordering::Relaxed) | EVENT, Ordering::Relaxed);
        ep.order_event(event, || ep.is_ordered());
        if self.fetch(ep) != Fetch::Not {
            event.signal();
        }
    }
}

/// The receiver's side of a message that lies with its source.
pub(super) struct Fetching<'a> {
    pub ep: &'static Endpoint,
    pub inc: &'a Incoming,
    pub source: u32,
    pub away: Away,
}

impl Fetching<'_> {
    /// The block that the source has named in this use, and so many bytes behind its header. Who is said to be the source need not be: any
    /// member can have filled the slot. So a block in another use is left alone, and one of this process must be one that it has taken.
    fn block(&self, at: u64, bytes: u64, generation: u32) -> Result<(PeerBlock, Run)> {
        let block = self.ep.any_source.spool_of(self.ep, self.source)?.block(at);
        let found = block.and_then(|block| Some((block, block.bytes(BLOCK_HEADER as u64, bytes)?)));
        let own = || self.ep.spool.is_held(BlockRef { at, size: bytes, generation });
        found
            .filter(|(block, _)| block.header().gener.load(Ordering::Relaxed) == generation)
            .filter(|_| self.source != self.ep.rank || own())
            .ok_or_else(|| garbled(self.ep, self.source))
    }

    /// Copies a spooled message out.
    pub fn spooled(&self, to: Run) -> Result<()> {
        let (block, from) = self.block(self.away.at, self.away.len, self.away.generation)?;
        from.copy_to(to);
        block.finish(self.away.generation);
        Ok(())
    }

    fn offer(&self) -> Result<&Offer> {
        let (block, _) = self.block(self.away.at, size_of::<Offer>() as u64, self.away.generation)?;
        record(block).ok_or_else(|| garbled(self.ep, self.source))
    }

    /// Is there anything new to an offer that was not fetched whole by the last [`Fetching::offered`]?
    pub fn is_ready(&self) -> bool {
        let Ok(offer) = self.offer() else { return true };
        match offer.state.load(Ordering::Acquire) {
            ASKED | TAKEN => false,
            STREAM => offer.filled.load(Ordering::Acquire) > offer.taken.load(Ordering::Relaxed),
            _ => true,
        }
    }

    /// Has a part of the message been taken?
    pub fn is_underway(&self) -> bool {
        self.offer().is_ok_and(|o| o.state.load(Ordering::Acquire) == STREAM && o.taken.load(Ordering::Relaxed) != 0)
    }

    /// Fetches an offered message as far as that goes now. `false`: the sender has to do something first.
    pub fn offered(&self, to: Run) -> Result<bool> {
        let offer = self.offer()?;
        let to = to.first(self.away.len as usize);
        loop {
            // SYNC POINT: pairs with the sender's releases and exchange.
            let state = offer.state.load(Ordering::Acquire);
            let swap = |to| offer.state.compare_exchange(state, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
            match state {
                OPEN if swap(TAKEN) => match self.read(offer.address.load(Ordering::Relaxed), to) {
                    Ok(()) => {
                        self.end(offer);
                        return Ok(true);
                    }
                    Err(_) if self.source == self.ep.rank => return Err(garbled(self.ep, self.source)),
                    Err(CmaError::Gone) => return Err(self.lost()),
                    Err(CmaError::Denied | CmaError::Fault { .. } | CmaError::System { .. }) => {
                        offer.state.store(ASKED, Ordering::Release);
                        self.wake_source(offer);
                    }
                },
                CLOSED if swap(ASKED) => self.wake_source(offer),
                OPEN | CLOSED => {}
                MOVED => {
                    let generation = offer.generation.load(Ordering::Relaxed);
                    let (block, from) = self.block(offer.block.load(Ordering::Relaxed), self.away.len, generation)?;
                    from.copy_to(to);
                    block.finish(generation);
                    self.end(offer);
                    return Ok(true);
                }
                STREAM => {
                    let whole = self.drain(offer, to)?;
                    if whole {
                        self.end(offer);
                    }
                    return Ok(whole);
                }
                _ => return Ok(false),
            }
        }
    }

    fn read(&self, address: u64, to: Run) -> std::result::Result<(), CmaError> {
        if self.source == self.ep.rank {
            // Where it is, this process knows by itself.
            let own = self.ep.any_source.lent_by(self.away.at, self.away.generation);
            let from = own.filter(|from| from.len() >= to.len()).ok_or(CmaError::Fault { done: 0 })?;
            from.copy_to(to);
            return Ok(());
        }
        let Some(peer) = self.peer() else { return Err(CmaError::Gone) };
        if to.is_empty() {
            return Ok(());
        }
        // A process of a model has no end that could be asked for.
        if if cfg!(loom) { peer.is_dead() } else { !peer.may_copy() } {
            return Err(CmaError::Gone);
        }
        let read = cma::read_into(peer.pid, to.into(), address);
        if read == Err(CmaError::Denied) {
            peer.cma_off();
        }
        read
    }

    fn peer(&self) -> Option<std::sync::Arc<Peer>> {
        #[cfg(loom)]
        if let Some(peer) = super::model::peer_of(self.ep) {
            return Some(peer);
        }
        self.ep.known(self.source)
    }

    fn drain(&self, offer: &Offer, to: Run) -> Result<bool> {
        let generation = offer.generation.load(Ordering::Relaxed);
        let (block, from) = self.block(offer.block.load(Ordering::Relaxed), 2 * PIECE as u64, generation)?;
        let mut taken = offer.taken.load(Ordering::Relaxed);
        // SYNC POINT: pairs with the sender's release after it has filled a piece.
        let filled = offer.filled.load(Ordering::Acquire).min(self.away.len);
        while taken < filled {
            let piece = (PIECE as u64).min(self.away.len - taken) as usize;
            let half = (taken as usize / PIECE % 2) * PIECE;
            from.part(half, piece).copy_to(to.after(taken as usize));
            taken += piece as u64;
            // SYNC POINT: pairs with the sender's acquire: the half is free again.
            offer.taken.store(taken, Ordering::Release);
            self.wake_source(offer);
        }
        if taken < self.away.len {
            return Ok(false);
        }
        block.finish(generation);
        Ok(true)
    }

    /// The receiver's last look at the offer.
    fn end(&self, offer: &Offer) {
        if let Ok((block, _)) = self.block(self.away.at, size_of::<Offer>() as u64, self.away.generation) {
            block.finish(self.away.generation);
        }
        // The record may serve another offer by now: then this wakes somebody for nothing.
        self.wake_source(offer);
    }

    fn wake_source(&self, offer: &Offer) {
        // SYNC POINT: pairs with the sender's `fall_asleep`.
        doorbell::light_barrier();
        let sleep = offer.asleep.load(Ordering::Relaxed);
        if sleep != 0 {
            self.ring_source(sleep);
        }
    }

    #[cold]
    fn ring_source(&self, sleep: u32) {
        let peer = if self.source == self.ep.rank { None } else { self.peer() };
        let board: &Board = peer.as_ref().map_or(self.ep.region.board_of(), |p| p.region.board_of());
        if sleep & ASLEEP != 0 {
            doorbell::ring(&board.bell, doorbell::bit(self.inc.index as usize));
        }
        if sleep & EVENT != 0 {
            doorbell::ring(&board.event_bell, u32::MAX);
        }
    }

    /// The source has died with the message.
    #[cold]
    pub fn lost(&self) -> Error {
        error!(
            Code::Peer,
            "rank {}: any-source receive on index {}: rank {} has died while its message of {} bytes was being fetched; it is lost, later receives go on",
            self.ep.rank,
            self.inc.index,
            self.source,
            self.away.len
        )
    }
}
