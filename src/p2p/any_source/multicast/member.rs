//! A member's part of a multicast: receives the note, tells its children, takes the data, acknowledges.

use super::chunks::Chunks;
use super::record::{ENTERED, Record, Shared, TOLD_BYTES, Told, children, members};
use super::wide::{self, NOTE_BYTES, Note};
use super::{index_of, tell};
use crate::base::atomics::Ordering;
use crate::base::copying::Copying;
use crate::base::error::{Code, Error, Result};
use crate::base::unwinding::NoWayOut;
use crate::fabric::shm::cma;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::BlockRef;
use crate::lane::record::{BLOCK_HEADER, Block};
use crate::p2p::any_source::receive::Incoming;
use crate::p2p::any_source::table::key_of;
use crate::p2p::any_source::{Arrived, check_buffer, garbled};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::wait::{Board, Scene, Waiter, Waits, doorbell};

/// Blocking receive of the next multicast of which this rank is a member; who is its master. A longer message is cut: see
/// [`Arrived::whole`].
///
/// # Safety
/// `cap` writable bytes at `to`.
pub unsafe fn mcast_recv(comm: i32, to: *mut u8, cap: usize) -> Result<Arrived> {
    let ep = endpoint()?;
    check_buffer(ep, to, cap)?;
    let (context, inc) = incoming(ep, comm)?;
    let _claim = inc.claim()?;
    // SAFETY: claimed.
    if unsafe { (*inc.pending.get()).is_some() } {
        return Err(inc.busy_error("a request for the next multicast is not completed"));
    }
    let told = next(ep, context, inc)?;
    // SAFETY: as the caller promises.
    NoWayOut::during("a receive of a multicast", || unsafe { follow(ep, context, told, to, cap) })
}

/// What a member is told: of a block on this node, or of one that is to be forwarded to it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct News([u64; NOTE_BYTES / 8]);

impl News {
    /// Where the multicast is on this node, after it has been forwarded if need be.
    fn told(self, ep: &'static Endpoint, context: &Context, arrived: Arrived) -> Result<Told> {
        match arrived.len {
            // SAFETY: numbers only, and not longer.
            TOLD_BYTES => Ok(unsafe { (&raw const self).cast::<Told>().read() }),
            // SAFETY: as above.
            NOTE_BYTES => wide::forward(ep, context, unsafe { (&raw const self).cast::<Note>().read() }),
            _ => Err(garbled(ep, context.group.world_rank(arrived.source.max(0) as u32))),
        }
    }
}

fn incoming(ep: &'static Endpoint, comm: i32) -> Result<(&'static Context, &'static Incoming)> {
    let context = ep.context(comm)?;
    let index = index_of(context);
    match ep.any_source.incoming.find(key_of(comm, -1, index)) {
        Some(inc) => Ok((context, inc)),
        None => Ok((context, ep.incoming_at(context, index)?)),
    }
}

fn next(ep: &'static Endpoint, context: &Context, inc: &Incoming) -> Result<Told> {
    let mut news = News::default();
    let to = (&raw mut news).cast::<u8>();
    for _ in 0..crate::wait::patience() {
        // SAFETY: room for so many bytes.
        if let Some(arrived) = unsafe { inc.take(ep, to, NOTE_BYTES)? } {
            return news.told(ep, context, arrived);
        }
        crate::base::atomics::spin_loop();
    }
    // SAFETY: as above.
    let arrived = unsafe { inc.wait(ep, to, NOTE_BYTES)? };
    news.told(ep, context, arrived)
}

/// Does a member's part of a multicast.
///
/// # Safety
/// As for [`mcast_recv`].
unsafe fn follow(ep: &'static Endpoint, context: &Context, told: Told, to: *mut u8, cap: usize) -> Result<Arrived> {
    let me = context.group.rank();
    let wrong = || garbled(ep, told.master);
    let spool = ep.any_source.spool_of(ep, told.master)?;
    // Who is said to be the master need not be: a block in another use is left alone, and one of this process must be one that it has taken.
    let own = || ep.spool.is_held(BlockRef { at: told.at, size: 1, generation: told.generation });
    let named = spool
        .block(told.at)
        .filter(|block| block.header().gener.load(Ordering::Relaxed) == told.generation)
        .filter(|_| told.master != ep.rank || own())
        .ok_or_else(wrong)?;
    let room = named.room();
    let block = named.bytes(0, (BLOCK_HEADER + size_of::<Record>()) as u64).ok_or_else(wrong)?;
    // SAFETY: within the window.
    let record = unsafe { Shared::at(block.ptr(), [0; 4]) }.record;
    let (words, count) = (record.words.load(Ordering::Relaxed) as usize, record.count.load(Ordering::Relaxed));
    let (len, address) = (record.size.load(Ordering::Relaxed), record.address.load(Ordering::Relaxed));
    let extra = record.extra.load(Ordering::Relaxed) as usize;
    let held = if address == 0 { len } else { 0 }.saturating_add(extra as u64);
    let followed = record.followed.load(Ordering::Relaxed) != 0;
    let track = if followed { Chunks::bytes(held.min(SPOOL_WINDOW as u64) as usize, count as usize) } else { 0 };
    let held = held.saturating_add(track as u64);
    let need = held.checked_add((BLOCK_HEADER + Shared::bytes(words.min(1 << 20), count as usize)) as u64);
    if words != (context.group.size() as usize).div_ceil(64)
        || count > context.group.size()
        || need.is_none_or(|n| n > room)
    {
        return Err(wrong());
    }
    if extra != 0 && extra < wide::wide_bytes(words) {
        return Err(wrong());
    }
    // SAFETY: within the window.
    let shared = unsafe { Shared::at(block.ptr(), [words, count as usize, len as usize, extra]) };
    let group = shared.members();
    let number = members(&group).position(|r| r == me).ok_or_else(wrong)? as u32;
    if number >= count {
        return Err(wrong());
    }
    // Those behind wait for this, so it comes first. A child that is gone is the master's to find out.
    let mut told_all = Ok(());
    for child in children(number, count) {
        let Some(rank) = members(&group).nth(child as usize) else { continue };
        told_all = told_all.and(tell(ep, context, rank, told));
    }
    shared.note(ENTERED, me);
    crate::base::atomics::fence(Ordering::SeqCst);
    let n = cap.min(len as usize);
    // SYNC POINT: pairs with `withdraw`.
    let read = if record.withdrawn.load(Ordering::SeqCst) != 0 {
        Err(Error::new(
            Code::Peer,
            format!("rank {}: a multicast of rank {} was given up: another member has died", ep.rank, told.master),
        ))
    } else {
        // SAFETY: the master keeps the bytes until all members have acknowledged; ours has room for `n`.
        unsafe { fetch(ep, &shared, told, number, (address, followed), to, n) }
    };
    let arrived = wide::arrived(context, &shared, told, len as usize, cap);
    if shared.acknowledge(me, number) {
        complete(ep, context, &shared, told);
    }
    match (read, told_all) {
        (Err(e), _) => Err(e),
        (Ok(()), Err(e)) if e.code() != Code::Peer => Err(e),
        _ => Ok(arrived),
    }
}

/// # Safety
/// `n` bytes of the multicast's data, in the block or at `address` of the master; as many writable ones at `to`.
unsafe fn fetch(
    ep: &'static Endpoint,
    shared: &Shared<'_>,
    told: Told,
    number: u32,
    (address, followed): (u64, bool),
    to: *mut u8,
    n: usize,
) -> Result<()> {
    let master = told.master;
    if address == 0 {
        if !followed {
            // SAFETY: as the caller promises.
            unsafe { Copying::of(n).copy(shared.data(), to, n) };
            return Ok(());
        }
        let whole = shared.size;
        let (chunks, mut at) = (Chunks::new(shared), 0);
        if ep.crowded {
            chunks.set_out(number, ep.config.moves);
        }
        // Who is done with the block before the master is would give it away under the master's hands.
        while at < whole {
            let there = Arriving { ep, chunks: &chunks, master, at }.wait()?;
            // SAFETY: as the caller promises, and these bytes are there.
            at = unsafe { chunks.take(number, at..there, to, n) }.ok_or_else(|| garbled(ep, master))?;
        }
        return Ok(());
    }
    if master == ep.rank {
        // Where it is, this process knows by itself.
        let from = ep.any_source.lent_by(told.at, told.generation, n).ok_or_else(|| garbled(ep, master))?;
        // SAFETY: as the caller promises.
        unsafe { Copying::of(n).copy(from, to, n) };
        return Ok(());
    }
    let peer = ep.known(master).ok_or_else(|| garbled(ep, master))?;
    if shared.record.in_heap.load(Ordering::Relaxed) != 0
        && let Some(from) = peer.region.heap().and_then(|heap| heap.translate(address, n))
    {
        // SAFETY: as the caller promises; the peer's memory stays mapped as long as the peer is known.
        unsafe { Copying::of(n).copy(from, to, n) };
        return Ok(());
    }
    let gone = || died(ep, master);
    if !peer.may_copy() {
        return Err(gone());
    }
    // SAFETY: as the caller promises.
    unsafe { cma::read_run(peer.pid, to, address, n) }.map_err(|e| match e {
        cma::CmaError::Gone => gone(),
        e => Error::new(
            Code::Unsupported,
            format!(
                "rank {}: reading a multicast out of rank {master}: {e}; with FMPL_CMA=off it comes through its spool",
                ep.rank
            ),
        ),
    })
}

#[cold]
fn died(ep: &Endpoint, master: u32) -> Error {
    let text = format!("rank {}: rank {master}, master of a multicast, has died with its message", ep.rank);
    Error::new(Code::Peer, text)
}

/// A wait for more of a message that its master is copying into the block.
struct Arriving<'a> {
    ep: &'static Endpoint,
    chunks: &'a Chunks<'a>,
    master: u32,
    /// What this member has.
    at: usize,
}

impl Arriving<'_> {
    /// How much of the message is there: more than this member has.
    fn wait(&self) -> Result<usize> {
        let mut waiter = Waiter::new();
        while !self.ready() {
            if !waiter.spin() {
                waiter.slow(self)?;
            }
        }
        Ok(self.chunks.there())
    }
}

impl Scene for Arriving<'_> {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        self.chunks.there() > self.at
    }
    fn gone(&self) -> Option<Error> {
        let peer = self.ep.known(self.master)?;
        (peer.check_dead() && !self.ready()).then(|| died(self.ep, self.master))
    }
    fn may_end(&self) -> bool {
        false
    }
    fn waits(&self) -> Waits {
        Waits { peer: self.master, ..super::waits(self.ep) }
    }
}

/// All members have their data: the block is the master's again.
fn complete(ep: &'static Endpoint, context: &Context, shared: &Shared<'_>, told: Told) {
    if shared.extra != 0 {
        return wide::complete(ep, context, shared);
    }
    // SAFETY: the block's header; atomics only.
    let header = unsafe { &*shared.block.cast::<Block>() };
    // SYNC POINT: pairs with the acquire in `Spool::is_done`.
    header.done.store(told.generation, Ordering::Release);
    doorbell::light_barrier();
    // The block may be another's by now: then this wakes somebody for nothing.
    if shared.record.asleep.load(Ordering::Relaxed) == 0 {
        return;
    }
    let peer = if told.master == ep.rank { None } else { ep.known(told.master) };
    let board = peer.as_ref().map_or(ep.region.board(), |p| p.region.board()).cast::<Board>();
    // SAFETY: the board of a known peer stays mapped, and our own.
    doorbell::ring(unsafe { &(*board).bell }, u32::MAX);
}

/// Begins to receive the next multicast.
///
/// # Safety
/// `cap` bytes at `to` that nobody uses until the request is completed or withdrawn.
pub unsafe fn mcast_irecv(comm: i32, to: *mut u8, cap: usize) -> Result<()> {
    let ep = endpoint()?;
    check_buffer(ep, to, cap)?;
    let (_, inc) = incoming(ep, comm)?;
    inc.begin(ep, to, cap)
}

/// Completes the receive that [`mcast_irecv`] has begun; `None` if that would take waiting and `wait` says no.
pub fn mcast_irecv_end(comm: i32, wait: bool) -> Result<Option<Arrived>> {
    let ep = endpoint()?;
    let (context, inc) = incoming(ep, comm)?;
    let Some(_claim) = inc.claim_to_complete(wait)? else { return Ok(None) };
    // SAFETY: claimed.
    let Some(wanted) = (unsafe { *inc.pending.get() }) else {
        return Err(Error::new(Code::Request, format!("rank {}: no receive of a multicast is pending", ep.rank)));
    };
    let told = if wait {
        next(ep, context, inc)
    } else {
        let mut news = News::default();
        ep.waiting_sends.push(ep);
        ep.any_source.push(ep);
        // SAFETY: room for so many bytes.
        match unsafe { inc.take(ep, (&raw mut news).cast(), NOTE_BYTES) } {
            Ok(Some(arrived)) => news.told(ep, context, arrived),
            Ok(None) => {
                inc.run_dry(false);
                match inc.after_death(ep) {
                    Some(e) => Err(e),
                    None => return Ok(None),
                }
            }
            Err(e) => Err(e),
        }
    };
    inc.end();
    // SAFETY: the buffer was the request's until here.
    told.and_then(|told| unsafe { follow(ep, context, told, wanted.ptr, wanted.len) }).map(Some)
}

/// Withdraws the receive that [`mcast_irecv`] has begun.
pub fn mcast_irecv_cancel(comm: i32) -> Result<()> {
    let ep = endpoint()?;
    let (_, inc) = incoming(ep, comm)?;
    let _claim = inc.claim_to_complete(true)?;
    // SAFETY: claimed.
    if unsafe { (*inc.pending.get()).is_none() } {
        return Err(Error::new(Code::Request, format!("rank {}: no receive of a multicast is pending", ep.rank)));
    }
    inc.end();
    Ok(())
}
