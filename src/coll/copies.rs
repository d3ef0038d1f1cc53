//! Reaching into another member's private memory: what long payloads are made of.
//!
//! Memory of `fmpl_alloc` is mapped and read or written directly, all else is copied by the kernel. Pieces of a payload are claimed
//! by compare-and-swap of a word that carries the call's number, so that nobody takes a piece of another call; whoever claims a
//! piece finishes it.

use super::arena::{Arena, Post};
use super::team::{Reason, Team};
use crate::base::atomics::{AtomicU64, Ordering};
use crate::base::bytes::{Bytes, Room};
use crate::base::error::{Error, Result};
use crate::fabric::shm::cma::{self, CmaError};
use crate::lane::record::Posting;

/// Bits of a word of claims that count pieces; the call is above them.
pub(super) const PIECE_BITS: u32 = 20;

/// A word of claims or of pieces done.
#[inline]
pub(super) fn counted(call: u64, pieces: usize) -> u64 {
    call << PIECE_BITS | pieces as u64
}

/// The size of pieces of a payload, not below `least`, so that they can be counted.
pub(super) fn piece_of(bytes: usize, least: usize) -> usize {
    least.max((bytes >> (PIECE_BITS - 1)).next_multiple_of(4096))
}

/// Claims the next of `total` pieces. That orders nothing: the buffers were offered before, and whoever has done a piece says so.
pub(super) fn claim(word: &AtomicU64, call: u64, total: usize) -> Option<usize> {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let next = if seen >> PIECE_BITS == call { seen & ((1 << PIECE_BITS) - 1) } else { 0 };
        if seen >> PIECE_BITS > call || next as usize >= total {
            return None;
        }
        match word.compare_exchange(seen, counted(call, next as usize + 1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(next as usize),
            Err(now) => seen = now,
        }
    }
}

/// A member's buffer as it has been offered.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub member: usize,
    addr: u64,
    /// What it has there. Others may have made the call with more: that is an error, and nobody's other memory is touched.
    pub bytes: usize,
    in_heap: bool,
    /// It is not what the member wrote.
    damaged: bool,
}

impl Offer {
    /// Are there `bytes` bytes from `at` on?
    fn holds(&self, at: usize, bytes: usize) -> bool {
        !self.damaged && at.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }
}

impl Team {
    /// Offers this member's buffer to the others for `call`.
    pub(super) fn offer(&self, arena: &Arena, call: u64, data: Bytes<'_>) {
        let post = arena.post(self.me);
        let (ptr, bytes) = (data.as_ptr(), data.len());
        post.addr.store(ptr as u64, Ordering::Relaxed);
        post.bytes.store(bytes as u64, Ordering::Relaxed);
        let in_heap = self.ep.heap.contains(ptr, bytes) as u64;
        post.in_heap.store(in_heap, Ordering::Relaxed);
        post.check.store(Posting::check(call, ptr as u64, bytes as u64, in_heap), Ordering::Relaxed);
        // SYNC POINT: pairs with the acquire in `Until` before `offered`.
        post.call.store(call, Ordering::Release);
        self.wake(arena);
    }

    /// Another member's offer, which has been waited for.
    pub(super) fn offered(&self, arena: &Arena, call: u64, member: usize) -> Offer {
        let post: &Post = arena.post(member);
        let [addr, bytes, in_heap] = [&post.addr, &post.bytes, &post.in_heap].map(|w| w.load(Ordering::Relaxed));
        let damaged = Posting::check(call, addr, bytes, in_heap) != post.check.load(Ordering::Relaxed);
        Offer { member, addr, bytes: bytes as usize, in_heap: in_heap != 0, damaged }
    }

    /// Where this process has a part of an offered buffer mapped, if it has.
    pub(super) fn mapped(&self, offer: Offer, at: usize, bytes: usize) -> Option<Room<'_>> {
        if !offer.in_heap || !offer.holds(at, bytes) {
            return None;
        }
        self.peer(offer.member).ok()?.region.heap()?.room(offer.addr + at as u64, bytes)
    }

    /// Copies from `at` of an offered buffer, which is valid until this member has finished the call.
    pub(super) fn read(&self, offer: Offer, at: usize, to: Room<'_>) -> Result<()> {
        if let Some(from) = self.mapped(offer, at, to.len()) {
            to.copy_from(*from);
            return Ok(());
        }
        if !offer.holds(at, to.len()) {
            return Err(self.wrong_offer(self.arena()?, offer, offer.bytes as u64));
        }
        let pid = self.pid_of(offer.member)?;
        cma::read_into(pid, to, offer.addr + at as u64).map_err(|e| self.copy_failed(offer, e))
    }

    /// Copies to `at` of an offered buffer, between [`Team::may_write`] and [`Team::wrote`].
    pub(super) fn write(&self, offer: Offer, at: usize, from: Bytes<'_>) -> Result<()> {
        if let Some(to) = self.mapped(offer, at, from.len()) {
            to.copy_from(from);
            return Ok(());
        }
        if !offer.holds(at, from.len()) {
            return Err(self.wrong_offer(self.arena()?, offer, offer.bytes as u64));
        }
        let pid = self.pid_of(offer.member)?;
        cma::write_from(pid, from, offer.addr + at as u64).map_err(|e| self.copy_failed(offer, e))
    }

    /// The process of a member, if that lives: its number may stand for another's memory otherwise.
    fn pid_of(&self, member: usize) -> Result<libc::pid_t> {
        let peer = self.peer(member)?;
        if peer.may_copy() { Ok(peer.pid) } else { Err(self.fail(Reason::Died, member)) }
    }

    /// The error of an offer of other bytes than the call has, by the `length` that it means, or of one that is not as it was written.
    #[cold]
    pub(super) fn wrong_offer(&self, arena: &Arena, offer: Offer, length: u64) -> Error {
        match offer.damaged {
            true => self.fail(Reason::Damaged, offer.member),
            false => self.lengths_differ(arena, offer.member, length),
        }
    }

    #[cold]
    fn copy_failed(&self, offer: Offer, e: CmaError) -> Error {
        self.fail(if e == CmaError::Gone { Reason::Died } else { Reason::Fault }, offer.member)
    }

    /// Do copies between processes work for everybody with everybody? Found out at the first call that would use them.
    pub(super) async fn copies_work(&self, arena: &Arena) -> Result<bool> {
        if let Some(known) = self.state.copies.get() {
            return Ok(known);
        }
        let mut mine = true;
        for member in (0..self.n).filter(|m| *m != self.me) {
            match self.peer(member) {
                Ok(peer) => mine &= peer.cma(),
                Err(e) if e.code() == crate::Code::Peer => return Err(self.fail(Reason::Died, member)),
                Err(e) => return Err(e),
            }
        }
        arena.post(self.me).copies.store(if mine { 1 } else { 2 }, Ordering::Relaxed);
        self.wake(arena);
        let mut all = mine;
        for member in (0..self.n).filter(|m| *m != self.me) {
            let word = &arena.post(member).copies;
            self.until(word, 1, member).await?;
            match word.load(Ordering::Relaxed) {
                1 => {}
                2 => all = false,
                _ => return Err(self.fail(Reason::Damaged, member)),
            }
        }
        self.state.copies.set(Some(all));
        Ok(all)
    }
}
