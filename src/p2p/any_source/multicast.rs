//! Multicast to a group that is chosen for each message: a bitmap of ranks, and nobody else takes part.
//!
//! The master describes the multicast in a block of its spool and sends *one* message, to the member of the lowest rank, the root. A
//! member's number is its place among the set bits; whoever has been told tells others, by the binomial tree (*dynamic
//! multicast*, section 3: in stage i of s, number n tells n + 2^(s-i)). What travels down the tree is where the block is; the data
//! each member takes out of the master's block by itself, all at once: on a node the shared memory is crossed once.
//!
//! ```text
//!   master: block [ Record | members | entered | acked | pending of each number | data ]      told: 0 ─▶ 4, 2, 1;  4 ─▶ 6, 5; …
//!   member n: tells its children; entered |= bit; copies; acked |= bit
//!             pending[n] -= 1; the last one at n goes on to n's parent; the last at 0 marks the block done, and rings the master
//! ```
//! So acknowledgements go up the tree to the root, each by whoever comes last, and nobody waits for its children: a member that
//! returns has nothing left to do. The block that is marked done is the one word that the master looks at; a ticket names it. A member that
//! cannot take part because it died is told at the master's wait.
//!
//! The data is in the block, or, with a ticket, stays in the master's memory, from where the members read it through the kernel; the
//! master may be stopped then, but must leave the buffer alone until the ticket is complete.

use static_assertions::const_assert;

use super::receive::Incoming;
use super::ring::{AREA_BYTES, SLOTS_MOST};
use super::send::Message;
use super::table::key_of;
use super::{Arrived, check_buffer};
use crate::base::atomics::{AtomicU32, AtomicU64, Ordering, copy};
use crate::base::error::{Code, Error, Result};
use crate::fabric::shm::cma;
use crate::lane::BlockRef;
use crate::lane::map::{INDEX_MAX, SYSTEM_INDICES, UNIT_SLOTS};
use crate::lane::record::{BLOCK_HEADER, Block};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::spool::SPOOL_WINDOW;
use crate::wait::{Board, Operation, Scene, Waiter, Waits, doorbell};

/// The first lines of a multicast's block, behind the block's header.
#[repr(C, align(64))]
struct Record {
    /// Bytes of the message.
    size: AtomicU64,
    /// Where it is in the master's memory; 0: in the block.
    address: AtomicU64,
    /// Words of each bitmap.
    words: AtomicU32,
    /// Members.
    count: AtomicU32,
    /// 1: the master has given up, since a member has died; who has not entered must not.
    withdrawn: AtomicU32,
    /// The master's sleep byte.
    asleep: AtomicU32,
    /// The communicator, as the master knows it.
    handle: AtomicU32,
    _pad: [AtomicU32; 7],
}

const_assert!(size_of::<Record>() == 64);
const_assert!(SLOTS_MOST >= 256);

/// What is sent down the tree.
#[repr(C)]
#[derive(Clone, Copy)]
struct Told {
    /// The block in the master's spool.
    at: u64,
    generation: u32,
    /// The master: rank in the world.
    master: u32,
}

/// Up to this many bytes are copied into the block in any case: less than a call of the kernel by each member.
const COPIED_AT_ONCE: usize = 256 << 10;

const TOLD_BYTES: usize = size_of::<Told>();
const_assert!(TOLD_BYTES == 16 && TOLD_BYTES <= AREA_BYTES);

/// The index of a communicator's ring for multicasts, behind those of the program.
fn index_of(context: &Context) -> i32 {
    let most = if context.handle == crate::p2p::COMM_WORLD {
        INDEX_MAX
    } else {
        context.place.units as usize * UNIT_SLOTS - SYSTEM_INDICES
    };
    most as i32
}

/// The parent of a number, which is not 0.
fn parent(number: u32) -> u32 {
    number & (number - 1)
}

/// The children of a number among so many, the one with the largest part of the tree first.
fn children(number: u32, count: u32) -> impl Iterator<Item = u32> {
    let top = if number == 0 { 31 } else { number.trailing_zeros() };
    (0..top).rev().map(move |k| number as u64 + (1u64 << k)).filter(move |n| *n < count as u64).map(|n| n as u32)
}

/// The members of a bitmap, in order.
fn members(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
    bits.iter()
        .enumerate()
        .flat_map(|(w, word)| (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| w as u32 * 64 + b))
}

/// A multicast's block, mapped.
#[derive(Clone, Copy)]
struct Shared<'a> {
    block: *mut u8,
    record: &'a Record,
    words: usize,
    count: usize,
}

impl<'a> Shared<'a> {
    /// Bytes of a block, without its header and the data.
    fn bytes(words: usize, count: usize) -> usize {
        size_of::<Record>() + (words * 24 + count * 4).next_multiple_of(64)
    }

    /// # Safety
    /// A block that was made for a multicast of so many words and members is at `block`, and stays for `'a`.
    unsafe fn at(block: *mut u8, words: usize, count: usize) -> Shared<'a> {
        // SAFETY: as the caller promises.
        let record = unsafe { &*block.add(BLOCK_HEADER).cast::<Record>() };
        Shared { block, record, words, count }
    }

    fn bitmap(&self, which: usize, word: usize) -> &'a AtomicU64 {
        assert!(which < 3 && word < self.words);
        let at = BLOCK_HEADER + size_of::<Record>() + (which * self.words + word) * 8;
        // SAFETY: within the block; atomics.
        unsafe { &*self.block.add(at).cast() }
    }
    fn members(&self) -> Vec<u64> {
        (0..self.words).map(|w| self.bitmap(0, w).load(Ordering::Relaxed)).collect()
    }
    fn note(&self, which: usize, rank: u32) {
        self.bitmap(which, rank as usize / 64).fetch_or(1 << (rank % 64), Ordering::SeqCst);
    }
    fn has(&self, which: usize, rank: u32) -> bool {
        self.bitmap(which, rank as usize / 64).load(Ordering::SeqCst) >> (rank % 64) & 1 == 1
    }
    fn pending(&self, number: u32) -> &'a AtomicU32 {
        assert!((number as usize) < self.count);
        let at = BLOCK_HEADER + size_of::<Record>() + self.words * 24 + number as usize * 4;
        // SAFETY: within the block; atomics.
        unsafe { &*self.block.add(at).cast() }
    }
    fn data(&self) -> *mut u8 {
        // SAFETY: within the block.
        unsafe { self.block.add(BLOCK_HEADER + Shared::bytes(self.words, self.count)) }
    }

    /// A member has its data: acknowledges, and passes on what is complete. `true`: the root's part was completed by this.
    fn acknowledge(&self, rank: u32, mut number: u32) -> bool {
        self.note(ACKED, rank);
        // SYNC POINT: a chain of these, each an acquire and a release, orders all copies before the end at the root.
        while self.pending(number).fetch_sub(1, Ordering::AcqRel) == 1 {
            if number == 0 {
                return true;
            }
            number = parent(number);
        }
        false
    }
}

const ENTERED: usize = 1;
const ACKED: usize = 2;

/// The number by which a program knows a multicast that is under way.
fn ticket_of(block: BlockRef) -> u64 {
    (block.at >> 8) << 32 | block.generation as u64
}

fn block_of(ticket: u64) -> BlockRef {
    BlockRef { at: (ticket >> 32) << 8, size: 1, generation: ticket as u32 }
}

/// Sends to the members of a bitmap (bit r % 64 of word r / 64: rank r of the communicator). `keeps`: the buffer stays unchanged until
/// the ticket is complete; otherwise it may be changed on return.
///
/// # Safety
/// `len` readable bytes at `ptr`, for as long as said; a word for each 64 ranks at `bits`.
pub unsafe fn mcast(comm: i32, ptr: *const u8, len: usize, bits: *const u64, keeps: bool) -> Result<u64> {
    let ep = endpoint()?;
    check_buffer(ep, ptr, len)?;
    let context = ep.context(comm)?;
    let size = context.group.size();
    let words = (size as usize).div_ceil(64);
    if bits.is_null() {
        return Err(Error::new(Code::Argument, format!("rank {}: mcast with no bitmap", ep.rank)));
    }
    // SAFETY: as the caller promises.
    let bits = unsafe { std::slice::from_raw_parts(bits, words) };
    let count = bits.iter().map(|w| w.count_ones()).sum::<u32>();
    if let Some(rank) = members(bits).find(|r| *r >= size) {
        let text = format!("rank {}: mcast to rank {rank} of communicator {comm} of {size} ranks", ep.rank);
        return Err(Error::new(Code::Rank, text));
    }
    let Some(root) = members(bits).next() else {
        return Err(Error::new(Code::Argument, format!("rank {}: mcast to nobody: no bit is set", ep.rank)));
    };
    // Members must be able to reach this process's memory even if it does nothing from now on.
    let mut reachable = true;
    for rank in members(bits) {
        let world = context.group.world_rank(rank);
        if world == ep.rank {
            continue;
        }
        let peer = ep.known(world).map_or_else(|| ep.contact(world), Ok)?;
        reachable &= peer.cma();
        if peer.is_dead() {
            return Err(dead(ep, rank));
        }
    }
    let stays = keeps && reachable && len > COPIED_AT_ONCE;
    let bytes = Shared::bytes(words, count as usize) + if stays { 0 } else { len };
    let block = take(ep, comm, bytes, if stays { 0 } else { bytes })?;
    // SAFETY: taken with this many bytes, and ours alone until it is told of.
    let shared = unsafe { Shared::at(ep.spool.bytes(block.at), words, count as usize) };
    let record = shared.record;
    record.size.store(len as u64, Ordering::Relaxed);
    record.address.store(if stays { ptr as u64 } else { 0 }, Ordering::Relaxed);
    record.words.store(words as u32, Ordering::Relaxed);
    record.count.store(count, Ordering::Relaxed);
    record.withdrawn.store(0, Ordering::Relaxed);
    record.asleep.store(0, Ordering::Relaxed);
    record.handle.store(comm as u32, Ordering::Relaxed);
    for (w, word) in bits.iter().enumerate() {
        shared.bitmap(0, w).store(*word, Ordering::Relaxed);
        shared.bitmap(ENTERED, w).store(0, Ordering::Relaxed);
        shared.bitmap(ACKED, w).store(0, Ordering::Relaxed);
    }
    for number in 0..count {
        shared.pending(number).store(1 + children(number, count).count() as u32, Ordering::Relaxed);
    }
    if !stays {
        // SAFETY: the block has room for `len` bytes behind its records.
        unsafe { copy(ptr, shared.data(), len) };
    }
    let told = Told { at: block.at, generation: block.generation, master: ep.rank };
    if let Err(e) = tell(ep, context, root, told) {
        ep.spool.give_back(block);
        return Err(e);
    }
    ep.any_source.multicasts.fetch_add(1, Ordering::Relaxed);
    Ok(ticket_of(block))
}

/// A block for a multicast; waits for room in standard and synchronous mode.
fn take(ep: &'static Endpoint, comm: i32, bytes: usize, charge: usize) -> Result<BlockRef> {
    let budget = ep.spool.budget(comm);
    let full = || {
        let text = format!(
            "rank {}: mcast of {bytes} bytes with its records: {} of {} bytes of the spool are taken",
            ep.rank,
            budget.used(),
            budget.limit()
        );
        Error::new(Code::SpoolFull, text)
    };
    let mut waiter = Waiter::new();
    loop {
        if let Some(block) = ep.spool.take(comm, bytes, charge) {
            return Ok(block);
        }
        if budget.timeout_ms() == 0 || charge > budget.limit() {
            return Err(full());
        }
        if !waiter.spin() {
            waiter.slow(&ForRoom { ep })?;
        }
    }
}

/// Tells a rank of the communicator where a multicast is.
fn tell(ep: &'static Endpoint, context: &Context, rank: u32, told: Told) -> Result<()> {
    let index = index_of(context);
    let out = match ep.any_source.outgoing.find(key_of(context.handle, rank as i32, index)) {
        Some(out) => out,
        None => ep.outgoing_at(context, rank as i32, index)?,
    };
    out.check_peer(ep)?;
    let mut message = Message::told(out, (&raw const told).cast(), TOLD_BYTES);
    let mut waiter = Waiter::new();
    // SAFETY: the message lives on this stack until it is placed.
    while !unsafe { message.step(ep)? } {
        if !waiter.spin() {
            waiter.slow(&message.scene(ep))?;
        }
    }
    Ok(())
}

/// Multicasts that this process has sent as their master, a message each.
pub fn multicasts_sent() -> Result<u64> {
    Ok(endpoint()?.any_source.multicasts.load(Ordering::Relaxed))
}

/// Is the multicast complete: has every member its data? `Peer`: a member has died without, and nobody will use the buffer any more.
pub fn mcast_test(ticket: u64) -> Result<bool> {
    let ep = endpoint()?;
    let block = check_ticket(ep, ticket)?;
    ep.waiting_sends.push(ep);
    ep.any_source.push(ep);
    if is_complete(ep, block) {
        ep.spool.give_back(block);
        return Ok(true);
    }
    match of_the_dead(ep, block) {
        Some(e) if withdraw(ep, block) => Err(e),
        _ => Ok(false),
    }
}

/// Waits until every member has its data.
pub fn mcast_wait(ticket: u64) -> Result<()> {
    let ep = endpoint()?;
    let block = check_ticket(ep, ticket)?;
    let scene = Complete { ep, block };
    let mut waiter = Waiter::new();
    while !is_complete(ep, block) {
        if !waiter.spin()
            && let Err(e) = waiter.slow(&scene)
        {
            // Members that have entered are still reading.
            while !withdraw(ep, block) {
                std::thread::yield_now();
            }
            return Err(e);
        }
    }
    ep.spool.give_back(block);
    Ok(())
}

fn check_ticket(ep: &Endpoint, ticket: u64) -> Result<BlockRef> {
    let block = block_of(ticket);
    if block.at as usize + 4096 > SPOOL_WINDOW || block.generation == 0 {
        return Err(Error::new(Code::Request, format!("rank {}: {ticket} is no ticket of a multicast", ep.rank)));
    }
    Ok(block)
}

fn is_complete(ep: &Endpoint, block: BlockRef) -> bool {
    // Given back, and perhaps another's: it was complete then.
    ep.spool.is_done(block) || !ep.spool.is_held(block)
}

/// A multicast of this process that is not complete.
fn own<'a>(ep: &'a Endpoint, block: BlockRef) -> Shared<'a> {
    let at = ep.spool.bytes(block.at);
    // SAFETY: a block of ours that was made for a multicast.
    let record = unsafe { Shared::at(at, 0, 0) }.record;
    let (words, count) = (record.words.load(Ordering::Relaxed), record.count.load(Ordering::Relaxed));
    // SAFETY: as above.
    unsafe { Shared::at(at, words as usize, count as usize) }
}

/// The error of a multicast of which a member has died without its data.
fn of_the_dead(ep: &Endpoint, block: BlockRef) -> Option<Error> {
    if ep.deaths() == 0 || is_complete(ep, block) {
        return None;
    }
    let shared = own(ep, block);
    let dies = is_dead_in(ep, &shared);
    let lost = members(&shared.members()).find(|r| dies(*r) && !shared.has(ACKED, *r))?;
    Some(dead(ep, lost))
}

/// Which ranks of a multicast's communicator are known to be dead.
fn is_dead_in<'a>(ep: &'a Endpoint, shared: &Shared<'_>) -> impl Fn(u32) -> bool + 'a {
    let context = ep.contexts.find(shared.record.handle.load(Ordering::Relaxed) as i32);
    move |rank| context.is_some_and(|c| ep.is_dead(c.group.world_rank(rank)))
}

#[cold]
fn dead(ep: &Endpoint, rank: u32) -> Error {
    Error::new(Code::Peer, format!("rank {}: mcast: rank {rank} has died; others may not have the message", ep.rank))
}

/// Gives a multicast up. `true`: nobody reads the master's buffer any more.
fn withdraw(ep: &Endpoint, block: BlockRef) -> bool {
    let shared = own(ep, block);
    // SYNC POINT: pairs with a member's entry: either it sees this, or it is seen to have entered.
    shared.record.withdrawn.store(1, Ordering::SeqCst);
    crate::base::atomics::fence(Ordering::SeqCst);
    let dies = is_dead_in(ep, &shared);
    is_complete(ep, block)
        || members(&shared.members()).all(|r| shared.has(ACKED, r) || !shared.has(ENTERED, r) || dies(r))
}

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
    let told = next(ep, inc)?;
    // SAFETY: as the caller promises.
    unsafe { follow(ep, context, told, to, cap) }
}

fn incoming(ep: &'static Endpoint, comm: i32) -> Result<(&'static Context, &'static Incoming)> {
    let context = ep.context(comm)?;
    let index = index_of(context);
    match ep.any_source.incoming.find(key_of(comm, -1, index)) {
        Some(inc) => Ok((context, inc)),
        None => Ok((context, ep.incoming_at(context, index)?)),
    }
}

fn next(ep: &'static Endpoint, inc: &Incoming) -> Result<Told> {
    let mut told = Told { at: 0, generation: 0, master: 0 };
    let to = (&raw mut told).cast::<u8>();
    for _ in 0..crate::wait::patience() {
        // SAFETY: room for so many bytes.
        if unsafe { inc.take(ep, to, TOLD_BYTES)? }.is_some() {
            return Ok(told);
        }
        crate::base::atomics::spin_loop();
    }
    // SAFETY: as above.
    unsafe { inc.wait(ep, to, TOLD_BYTES)? };
    Ok(told)
}

/// Does a member's part of a multicast.
///
/// # Safety
/// As for [`mcast_recv`].
unsafe fn follow(ep: &'static Endpoint, context: &Context, told: Told, to: *mut u8, cap: usize) -> Result<Arrived> {
    let me = context.group.rank();
    let wrong = || super::garbled(ep, told.master);
    let spool = ep.any_source.spool_of(ep, told.master)?;
    let room = (SPOOL_WINDOW as u64).checked_sub(told.at).filter(|_| told.at.is_multiple_of(64)).ok_or_else(wrong)?;
    if room < (BLOCK_HEADER + size_of::<Record>()) as u64 {
        return Err(wrong());
    }
    // SAFETY: within the window; a block for a multicast, which the master keeps until it is done.
    let block = unsafe { spool.add(told.at as usize) };
    // SAFETY: as above.
    let record = unsafe { Shared::at(block, 0, 0) }.record;
    let (words, count) = (record.words.load(Ordering::Relaxed) as usize, record.count.load(Ordering::Relaxed));
    let (len, address) = (record.size.load(Ordering::Relaxed), record.address.load(Ordering::Relaxed));
    let held = if address == 0 { len } else { 0 };
    let need = held.checked_add((BLOCK_HEADER + Shared::bytes(words.min(1 << 20), count as usize)) as u64);
    if words != (context.group.size() as usize).div_ceil(64)
        || count > context.group.size()
        || need.is_none_or(|n| n > room)
    {
        return Err(wrong());
    }
    // SAFETY: within the window.
    let shared = unsafe { Shared::at(block, words, count as usize) };
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
        unsafe { fetch(ep, &shared, told.master, address, to, n) }
    };
    if shared.acknowledge(me, number) {
        complete(ep, &shared, told);
    }
    let source = context.group.rank_of(told.master).map_or(-1, |r| r as i32);
    match (read, told_all) {
        (Err(e), _) => Err(e),
        (Ok(()), Err(e)) if e.code() != Code::Peer => Err(e),
        _ => Ok(Arrived { source, len: len as usize, capacity: cap }),
    }
}

/// # Safety
/// `n` bytes of the multicast's data, in the block or at `address` of the master; as many writable ones at `to`.
unsafe fn fetch(
    ep: &'static Endpoint,
    shared: &Shared<'_>,
    master: u32,
    address: u64,
    to: *mut u8,
    n: usize,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        if address == 0 {
            copy(shared.data(), to, n);
            return Ok(());
        }
        if master == ep.rank {
            copy(address as *const u8, to, n);
            return Ok(());
        }
    }
    let peer = ep.known(master).ok_or_else(|| super::garbled(ep, master))?;
    let gone = || {
        let text = format!("rank {}: rank {master}, master of a multicast, has died with its message", ep.rank);
        Error::new(Code::Peer, text)
    };
    if peer.check_dead() {
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

/// All members have their data: the block is the master's again.
fn complete(ep: &'static Endpoint, shared: &Shared<'_>, told: Told) {
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
    let _claim = inc.claim()?;
    // SAFETY: claimed.
    let pending = unsafe { &mut *inc.pending.get() };
    let Some(wanted) = *pending else {
        return Err(Error::new(Code::Request, format!("rank {}: no receive of a multicast is pending", ep.rank)));
    };
    let told = if wait {
        next(ep, inc)
    } else {
        let mut told = Told { at: 0, generation: 0, master: 0 };
        ep.waiting_sends.push(ep);
        ep.any_source.push(ep);
        // SAFETY: room for so many bytes.
        match unsafe { inc.take(ep, (&raw mut told).cast(), TOLD_BYTES) } {
            Ok(Some(_)) => Ok(told),
            Ok(None) => {
                inc.run_dry();
                match inc.after_death(ep) {
                    Some(e) => Err(e),
                    None => return Ok(None),
                }
            }
            Err(e) => Err(e),
        }
    };
    *pending = None;
    inc.disarm();
    // SAFETY: the buffer was the request's until here.
    told.and_then(|told| unsafe { follow(ep, context, told, wanted.ptr, wanted.len) }).map(Some)
}

/// Withdraws the receive that [`mcast_irecv`] has begun.
pub fn mcast_irecv_cancel(comm: i32) -> Result<()> {
    let ep = endpoint()?;
    let (_, inc) = incoming(ep, comm)?;
    let _claim = inc.claim()?;
    // SAFETY: claimed.
    let pending = unsafe { &mut *inc.pending.get() };
    if pending.take().is_none() {
        return Err(Error::new(Code::Request, format!("rank {}: no receive of a multicast is pending", ep.rank)));
    }
    inc.disarm();
    Ok(())
}

/// A wait for room in the spool, for which nobody rings.
struct ForRoom {
    ep: &'static Endpoint,
}

/// A wait for the end of a multicast.
struct Complete {
    ep: &'static Endpoint,
    block: BlockRef,
}

fn waits(ep: &Endpoint) -> Waits {
    Waits { operation: Operation::Multicast, peer: ep.rank, index: -1, comm: 0, bytes: 0, since_ns: 0 }
}

impl Scene for ForRoom {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        None
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        false
    }
    fn meanwhile(&self) -> bool {
        self.ep.waiting_sends.push(self.ep) | self.ep.any_source.push(self.ep)
    }
    fn gone(&self) -> Option<Error> {
        None
    }
    fn waits(&self) -> Waits {
        waits(self.ep)
    }
}

impl Scene for Complete {
    fn board(&self) -> &'static Board {
        self.ep.board()
    }
    fn sleep_word(&self) -> Option<&AtomicU32> {
        // While the block is held the record is ours; a block that is done is taken again by nobody but this thread's process, whose
        // new record would only be rung for without need.
        Some(&own(self.ep, self.block).record.asleep)
    }
    fn bits(&self) -> u32 {
        u32::MAX
    }
    fn ready(&self) -> bool {
        is_complete(self.ep, self.block)
    }
    fn meanwhile(&self) -> bool {
        self.ep.waiting_sends.push(self.ep) | self.ep.any_source.push(self.ep)
    }
    fn gone(&self) -> Option<Error> {
        of_the_dead(self.ep, self.block)
    }
    fn waits(&self) -> Waits {
        waits(self.ep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In stage i of s, whoever has the data sends to number + 2^(s-i).
    #[test]
    fn the_tree_is_the_papers() {
        for count in 1..200u32 {
            let stages = count.next_power_of_two().trailing_zeros();
            let mut has = vec![0u32];
            let mut from = vec![None; count as usize];
            for i in 1..=stages {
                for n in has.clone() {
                    let to = n + (1 << (stages - i));
                    if to < count {
                        assert_eq!(from[to as usize].replace(n), None);
                        has.push(to);
                    }
                }
            }
            assert_eq!(has.len() as u32, count);
            for n in 1..count {
                assert_eq!(from[n as usize], Some(parent(n)));
            }
            for n in 0..count {
                let theirs: Vec<u32> = (0..count).filter(|c| from[*c as usize] == Some(n)).collect();
                let mut mine: Vec<u32> = children(n, count).collect();
                mine.sort_unstable();
                assert_eq!(mine, theirs, "children of {n} of {count}");
            }
        }
    }
}
