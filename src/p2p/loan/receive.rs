//! Receiving a message in place: whatever its sender did, the program gets memory that it may read until it returns it.

use super::*;
use crate::base::layout::Run;
use crate::base::looking::between_looks;
use crate::base::trace::traced;
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::record::Kind;
use crate::lane::{RECV_CHAIN, RECV_PENDING, Used};
use crate::p2p::receive::{Found, Receiver, owe_or_acknowledge};
use crate::p2p::request::{begin, complete_loan};
use crate::p2p::{PROC_NULL, TAG_ANY};
use crate::wait::patience;

/// Memory that was received, until it is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Its first byte.
    pub at: *mut u8,
    /// The message's length in bytes.
    pub len: usize,
}

impl Lent {
    /// Of a message from nobody.
    pub const NOTHING: Lent = Lent { at: std::ptr::null_mut(), len: 0 };

    /// What was noted of it.
    pub(in crate::p2p) fn of(run: Run) -> Lent {
        Lent { at: run.ptr(), len: run.len() }
    }

    /// Its bytes.
    pub(in crate::p2p) fn bytes(self) -> Run {
        // SAFETY: a loan has so many bytes until it is returned, and whoever makes one of these has taken or received it.
        unsafe { Run::new(self.at, self.len) }
    }
}

/// The next message on (peer, index), in place.
#[inline(always)]
pub fn recv_loan(comm: i32, src: i32, index: i32) -> Result<Lent> {
    let ep = endpoint()?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, src as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize {
            if let Some(lent) = take_short::<true>(ep, lane, slot, patience()) {
                return Ok(lent);
            }
            return recv_on(ep, lane, slot);
        }
    }
    recv_slow(ep, comm, src, index)
}

/// The short path: within so many turns a loan is in the landing. `OWE`: as for an ordinary receive. `None`: not this way.
#[inline(always)]
fn take_short<const OWE: bool>(ep: &'static Endpoint, lane: &Lane, slot: usize, patience: u32) -> Option<Lent> {
    let progress = lane.progress(slot);
    if progress.recv_flags.load(Ordering::Relaxed) & (RECV_PENDING | RECV_CHAIN) != 0 {
        return None;
    }
    let halves = lane.receiving(slot);
    let (seq, epoch) = (progress.received.load(Ordering::Relaxed) + 1, lane.epoch);
    let mut turns = 1;
    let mut land = halves.0.landing();
    while !land.is(seq, epoch) {
        if turns >= patience {
            return None;
        }
        // The pause matters: see `receive::take_short`.
        between_looks();
        land = halves.0.landing();
        turns += 1;
    }
    if land.kind() != Kind::Loan as u8 {
        return None;
    }
    let words = [halves.0.data[0].load(Ordering::Relaxed), halves.0.data[1].load(Ordering::Relaxed)];
    let lent = ep.loans.hold(&ep.heap, lane.peer.as_ref(), words)?;
    progress.note_acked(land, halves.0);
    progress.count_received(seq);
    lane.note_len(progress, slot, lent.len);
    traced!(lane.note_received(slot, lent.len, seq));
    // Who lends waits for no acknowledgement, so no landing of a loan asks for it.
    owe_or_acknowledge::<OWE>(lane, progress, slot, halves, seq, land);
    Some(lent)
}

#[inline(never)]
fn recv_on(ep: &'static Endpoint, lane: &'static Lane, slot: usize) -> Result<Lent> {
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(crate::p2p::send::busy(ep, lane, slot, "recv"));
    }
    let receiver = Receiver::of_loan(ep, lane, slot);
    receiver.until_received(false)?;
    Ok(receiver.lent())
}

#[cold]
#[inline(never)]
fn recv_slow(ep: &'static Endpoint, comm: i32, src: i32, index: i32) -> Result<Lent> {
    match find(ep, comm, src, index)? {
        Some((lane, slot)) => recv_on(ep, lane.lane(), slot),
        None => Ok(Lent::NOTHING),
    }
}

/// `None`: the peer is nobody.
#[cold]
fn find(ep: &'static Endpoint, comm: i32, src: i32, index: i32) -> Result<Option<(Used, usize)>> {
    if src == PROC_NULL {
        return ep.check_comm(comm).map(|()| None);
    }
    if index == TAG_ANY {
        let text = format!("rank {}: a loan from peer {src}: by its index only, not by any", ep.rank);
        return Err(Error::new(Code::Index, text));
    }
    ep.resolve(comm, src, index).map(Some)
}

/// The same without waiting for it.
pub fn irecv_loan(comm: i32, src: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let Some((used, slot)) = find(ep, comm, src, index)? else { return Ok(()) };
    let lane = used.lane();
    if lane.progress(slot).recv_flags.load(Ordering::Relaxed) & RECV_PENDING != 0 {
        return Err(crate::p2p::send::busy(ep, lane, slot, "irecv_loan"));
    }
    begin(&Receiver::of_loan(ep, lane, slot))
}

/// Completes it.
pub fn irecv_loan_wait(comm: i32, src: i32, index: i32) -> Result<Lent> {
    let ep = endpoint()?;
    let Some((lane, slot)) = find(ep, comm, src, index)? else { return Ok(Lent::NOTHING) };
    let done = complete_loan(ep, lane.lane(), slot, true)?;
    done.ok_or_else(|| Error::new(Code::Request, "a wait ended without its message"))
}

/// Completes it if its message is there.
pub fn irecv_loan_test(comm: i32, src: i32, index: i32) -> Result<Option<Lent>> {
    let ep = endpoint()?;
    match find(ep, comm, src, index)? {
        Some((lane, slot)) => complete_loan(ep, lane.lane(), slot, false),
        None => Ok(Some(Lent::NOTHING)),
    }
}

impl Receiver {
    /// A loan has come over the lane under these words: it is held, or copied out of.
    pub(in crate::p2p) fn take_loan(&self, words: [u64; 2]) -> Result<usize> {
        let Some(lent) = self.ep.loans.hold(&self.ep.heap, self.lane.peer.as_ref(), words) else {
            return Err(self.garbled("the words that name a loan"));
        };
        if self.wants_loan {
            self.lent.set(Some(lent));
            return Ok(lent.len);
        }
        self.ep.loans.copy_out(lent, self.data, self.cap)?;
        Ok(lent.len)
    }

    /// Takes a message that is no loan, for one who wants a loan: into one of this process's. Without room for it the message stays where it is.
    #[cold]
    pub(in crate::p2p) fn take_into_loan(&self, found: Found) -> Result<()> {
        let ep = self.ep;
        let len = self.length(found);
        let at = ep.loans.take(&ep.heap, len)?;
        let data = Lent { at, len }.bytes().into();
        let inner = Receiver::of_message(ep, self.lane, self.slot, data, len, self.seq);
        let taken = inner.take(found);
        if let Err(e) = taken {
            ep.loans.give_back(at)?;
            return Err(e);
        }
        ep.loans.keep_copy(Lent { at, len });
        self.lent.set(Some(Lent { at, len: self.lane.last_len(self.slot).min(len) }));
        Ok(())
    }

    /// What a receive of a loan has got.
    pub(in crate::p2p) fn lent(&self) -> Lent {
        self.lent.get().unwrap_or(Lent::NOTHING)
    }
}
