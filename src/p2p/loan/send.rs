//! Handing a loan over: a short message whose words name the memory. It never waits for its receive, since its bytes need no room.

use super::*;
use crate::base::layout::{Cursor, Run};
use crate::base::trace::traced;
use crate::lane::map::SYSTEM_INDICES;
use crate::lane::record::{Kind, Land};
use crate::lane::{SEND_CHAIN, SEND_PENDING, SPECIAL_SYNCHRONOUS, WayTaken};
use crate::p2p::PROC_NULL;
use crate::p2p::send::{Sender, acked_soon, after_publish, busy};
use crate::p2p::transfer::Put;

/// A loan that a call sends.
pub(in crate::p2p) struct Claimed {
    pub at: *mut u8,
    pub ticket: u32,
    pub generation: u32,
    pub size: usize,
    pub place: u64,
    /// What names it.
    pub words: [u64; 2],
}

impl Claimed {
    /// What is handed over.
    pub fn bytes(&self) -> Run {
        Lent { at: self.at, len: self.size }.bytes()
    }
    /// What names it to one of several, who returns it by this ticket.
    pub fn words_of(&self, ticket: u32, generation: u32) -> [u64; 2] {
        Descriptor { place: self.place, len: self.size as u64, ticket, generation }.words()
    }
}

/// Hands the first `size` bytes of a loan over. On an error it is still the caller's.
#[inline(always)]
pub fn send_loan(comm: i32, at: *mut u8, size: usize, dst: i32, index: i32) -> Result<()> {
    let ep = endpoint()?;
    let (pool, claimed) = claim(ep, at, size)?;
    if let Some(lane) = ep.lanes.find(Lane::key_of(comm, dst as u32)) {
        let slot = index as u32 as usize + SYSTEM_INDICES;
        if slot < lane.limit() as usize
            && lane.special.load(Ordering::Relaxed) & !SPECIAL_SYNCHRONOUS == 0
            && publish(lane, slot, &claimed)
        {
            pool.hand_over(claimed.ticket, claimed.generation, holder(lane));
            return Ok(());
        }
    }
    send_slow(ep, pool, &claimed, comm, dst, index)
}

#[inline(always)]
pub(super) fn holder(lane: &Lane) -> *const crate::fabric::shm::peer::Peer {
    lane.peer.as_ref().map_or(std::ptr::null(), std::sync::Arc::as_ptr)
}

/// Looks whether the program has this loan and may send it, and what names it.
#[inline(always)]
pub(in crate::p2p) fn claim(ep: &Endpoint, at: *mut u8, size: usize) -> Result<(&Pool, Claimed)> {
    let kept = ep.loans.kept()?;
    let entry = kept.book.find(at).map_or(0, |entry| entry.load(Ordering::Acquire));
    let (Some(pool), OWN) = (kept.pool.get(), lender_of(entry)) else {
        return Err(match entry {
            0 => ep.loans.no_loan(at),
            _ => ep.loans.wrong(at, "sending", Wrong::Received),
        });
    };
    let ticket = ticket_of(entry);
    let (place, generation) = pool.lent(ticket, size).map_err(|w| ep.loans.wrong(at, "sending", w))?;
    let words = Descriptor { place, len: size as u64, ticket, generation }.words();
    Ok((pool, Claimed { at, ticket, generation, size, place, words }))
}

/// The short path: the landing is free. `false`: not this way.
#[inline(always)]
fn publish(lane: &Lane, slot: usize, claimed: &Claimed) -> bool {
    let progress = lane.progress(slot);
    let (mine, theirs) = lane.sending(slot);
    let before = progress.sent.load(Ordering::Relaxed);
    if progress.send_flags.load(Ordering::Relaxed) & (SEND_PENDING | SEND_CHAIN) != 0
        || !acked_soon(progress, theirs, before)
    {
        return false;
    }
    if before == 0 {
        lane.touch(slot);
    }
    mine.data[0].store(claimed.words[0], Ordering::Relaxed);
    mine.data[1].store(claimed.words[1], Ordering::Relaxed);
    mine.publish(Land::new(before + 1, progress.got(), Kind::Loan, 0, lane.epoch));
    lane.count_sent(progress, before + 1, claimed.size);
    lane.count_loan(slot, claimed.size);
    after_publish(lane, slot, theirs);
    traced!(lane.note_sent(slot, WayTaken::Loan.name(), claimed.size, before + 1));
    true
}

#[cold]
#[inline(never)]
fn send_slow(ep: &'static Endpoint, pool: &Pool, claimed: &Claimed, comm: i32, dst: i32, index: i32) -> Result<()> {
    let Claimed { ticket, generation, .. } = *claimed;
    if dst == PROC_NULL {
        ep.check_comm(comm)?;
        pool.drop_sent(ticket, generation);
        return Ok(());
    }
    let (used, slot) = ep.resolve(comm, dst, index)?;
    let lane = used.lane();
    match send_on(ep, claimed, lane, slot)? {
        true => pool.hand_over(ticket, generation, holder(lane)),
        false => pool.drop_sent(ticket, generation),
    }
    Ok(())
}

/// `false`: it is sent, and nobody has it any more.
fn send_on(ep: &'static Endpoint, claimed: &Claimed, lane: &'static Lane, slot: usize) -> Result<bool> {
    let data = claimed.bytes().into();
    if lane.remote().is_some() {
        return crate::p2p::send::send_on(ep, lane, slot, data).map(|()| false);
    }
    if lane.progress(slot).send_flags.load(Ordering::Relaxed) & SEND_PENDING != 0 {
        return Err(busy(ep, lane, slot, "send"));
    }
    let mut sender = Sender::new(ep, lane, slot, data, claimed.size);
    sender.check_peer()?;
    sender.loan = Some(claimed.words);
    if sender.place_short() { Ok(true) } else { Err(sender.spool_full()) }
}

impl Sender {
    /// Copies an ordinary message into a loan and hands that over: its receive is posted, and wants one.
    pub(in crate::p2p) fn put_loan(&mut self) -> Put {
        let (ep, lane) = (self.ep, self.lane);
        let Ok(at) = ep.loans.take(&ep.heap, self.len) else { return Put::NotNow };
        Cursor::new(self.data, 0).gather(Lent { at, len: self.len }.bytes());
        ep.loans.copied(self.len);
        let (pool, claimed) = match claim(ep, at, self.len) {
            Ok(both) => both,
            Err(e) => return Put::Failed(e),
        };
        self.take_landing();
        self.publish(WayTaken::Loan, Kind::Loan, claimed.words[0], claimed.words[1]);
        pool.hand_over(claimed.ticket, claimed.generation, holder(lane));
        Put::Done
    }
}
