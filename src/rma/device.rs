//! Global memory by RDMA: what the device does for ranks that share no memory with the owner, and without the owner's processor.
//!
//! With ranks on several nodes each registers what it makes reachable with its device as well, and has a **block** of registered memory:
//!
//! ```text
//!  0        sent          tickets of the ring of commands given out, by the devices
//!  64       freed         commands taken; by this rank's processor
//!  128      claim         which process from elsewhere wants this one's number, + 1; 136: who has it, and this one's number
//!  192      holders       a bit for each rank that may have entries of this rank's table; by the devices
//!  …        replies       32 B each: word | value | sum | what was there before an atomic operation of this rank's
//!  …        slots         64 B for each command: five words, and their sum with the ticket + 1
//! ```
//! **Tickets.** A sender adds one to `sent`, waits until its ticket is below `freed` and the number of slots, and writes its slot, with a
//! number that wakes the owner's thread. (Acquisition of a buffer by remote atomics; what a slot holds is whole when its sum fits.)
//!
//! **Entries** are read from the owner's table and kept, a table for each of a bounded number of ranks. Who keeps any has its bit in the
//! owner's holders. An owner that takes a key back clears the bits that it finds, and asks those ranks to discard what they keep of it;
//! their answer comes when no operation of theirs uses it any more. A rank sets its bit before it reads, and the owner clears the entry
//! before it looks at the bits, so one of the two sees the other, as with uses on a node ([`super::view`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Rma;
use super::address::GlobalAddress;
use super::direct::{Atomic, Fetch};
use super::record::{Entry, Window};
use super::view::View;
use crate::base::error::{Code, Error, Result};
use crate::fabric::verbs::Place;
use crate::fabric::verbs::control::Fabric;
use crate::fabric::verbs::ffi::Access;
use crate::fabric::verbs::link::{COMMANDED, Change, Link, Piece};
use crate::fabric::verbs::own::Own;
use crate::fabric::verbs::region::{Arena, Region};
use crate::lane::far::sum;
use crate::p2p::endpoint::Endpoint;

const FREED_AT: usize = 64;
const CLAIM_AT: usize = 128;
const TOLD_AT: usize = 136;
const HOLDERS_AT: usize = 192;
const REPLY: usize = 32;
/// Replies that can be awaited; the queue has no more operations.
pub(super) const FAR_REPLIES: usize = 4096;
const SLOT: usize = 64;
/// Words of a command.
pub(super) const WORDS: usize = 5;
/// Entries that are fetched at a time.
const CHUNK: usize = 256;
/// A ticket that its holder has had for so long may have been given up by the owner.
pub(super) const OLD_TICKET_NS: u64 = 1_000_000_000;
/// A slot that has been empty for so long, while somebody has died, was a dead rank's.
const DEAD_TICKET_NS: u64 = 3_000_000_000;

/// `enum ibv_atomic_cap`.
const ATOMIC_NONE: i32 = 0;
const ATOMIC_GLOBAL: i32 = 2;

/// Who makes the atomic operations on a rank's memory. A device's and a processor's on the same word may lose one of the two, unless the device
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// The device cannot: processors of the owner's node; for other nodes the owner's helper.
    Processors = 0,
    /// The device alone, also for the owner and its node.
    Device = 1,
    /// Whoever comes.
    Both = 2,
}

/// This rank's part.
pub(super) struct Device {
    fabric: Arc<Fabric>,
    rank: u32,
    block: Arena,
    replies_at: usize,
    slots_at: usize,
    mask: u64,
    table: Region,
    pub changes: Changes,
    /// By which this rank's device changes this rank's words.
    own: Own,
    /// By entry.
    regions: Mutex<HashMap<u32, Arc<Region>>>,
    /// What is kept of other ranks' tables, by their number.
    held: Mutex<HashMap<u32, Arc<Table>>>,
    held_most: usize,
    /// One registration after the other asks the holders.
    pub discarding: Mutex<()>,
}

/// What is kept of a rank's table. An operation under way has it too.
#[derive(Debug, Default)]
pub(super) struct Table {
    chunks: Mutex<HashMap<u32, Box<[[u64; 4]]>>>,
}

/// What a rank publishes with the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    block: Place,
    table: Place,
    slots: u32,
    changes: u32,
    digest: u64,
}

impl Card {
    fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        for place in [self.block, self.table] {
            b.extend(place.addr.to_le_bytes());
            b.extend(place.rkey.to_le_bytes());
        }
        b.extend(self.slots.to_le_bytes());
        b.extend(self.changes.to_le_bytes());
        b.extend(self.digest.to_le_bytes());
        b
    }

    fn decode(b: &[u8]) -> Option<Card> {
        let word = |at: usize| Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
        let place = |at: usize| Some(Place { addr: word(at)?, rkey: half(at + 8)? });
        let card =
            Card { block: place(0)?, table: place(12)?, slots: half(24)?, changes: half(28)?, digest: word(32)? };
        (b.len() == 40 && card.slots.is_power_of_two()).then_some(card)
    }
}

/// A rank as the device reaches it.
pub(super) struct Far {
    pub link: Arc<Link>,
    card: Card,
    /// Below which ticket there was room in its ring when somebody looked last.
    room: AtomicU64,
}

impl Far {
    /// Where a word of its block is.
    fn word(&self, at: usize) -> Place {
        Place { addr: self.card.block.addr + at as u64, rkey: self.card.block.rkey }
    }

    /// Are atomic operations on its memory made by its device only?
    pub fn changes(&self) -> bool {
        self.card.changes == Changes::Device as u32
    }

    /// Can its device make them?
    pub fn able(&self) -> bool {
        self.card.changes != Changes::Processors as u32
    }

    /// Tries the connection when nothing has gone by it for long.
    pub fn tend(&self) {
        self.link.tend();
    }

    /// Why nothing can be done with it any more.
    pub fn gone(&self) -> Option<&str> {
        self.link.failure()
    }
}

/// Memory of a rank that the device reaches, as long as this lives: its owner waits for it before it takes the memory back.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub place: Place,
    pub table: Arc<Table>,
}

/// Requests under way by a connection, and what must stay until they are over.
pub(super) struct Flight {
    link: Arc<Link>,
    ticket: u64,
    _table: Arc<Table>,
    _region: Option<Arc<Region>>,
}

impl Flight {
    /// Is it over? An error: the connection has failed.
    pub fn is_over(&self) -> Result<bool> {
        if !self.link.is_over(self.ticket) {
            return Ok(false);
        }
        match self.link.failure() {
            None => Ok(true),
            Some(_) => self.link.wait(self.ticket).map(|()| true),
        }
    }

    pub fn wait(&self) -> Result<()> {
        self.link.wait(self.ticket)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Whatever comes of it: the memory is the device's until then.
        let _ = self.link.wait(self.ticket);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const ALL_ACCESS: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_WRITE).union(Access::REMOTE_ATOMIC);

impl Device {
    /// Nothing yet, if this process is not on the fabric or all ranks are on its node.
    pub fn new(ep: &Endpoint, own: &Window, slots: usize, keys: usize) -> Result<Option<Device>> {
        let Some(fabric) = ep.fabric_here().filter(|_| ep.has_other_nodes()) else { return Ok(None) };
        let domain = fabric.domain();
        let replies_at = HOLDERS_AT + (ep.size as usize).div_ceil(64) * 8;
        let replies_at = replies_at.next_multiple_of(64);
        let slots_at = replies_at + FAR_REPLIES * REPLY;
        let block = Arena::new(domain, slots_at + slots * SLOT, ALL_ACCESS)?;
        let (at, bytes) = own.table(keys);
        // SAFETY: the window stays mapped longer than this; others read it only.
        let table = unsafe { domain.register(at, bytes, Access::REMOTE_READ)? };
        Ok(Some(Device {
            fabric: fabric.clone(),
            rank: ep.rank,
            block,
            replies_at,
            slots_at,
            mask: slots as u64 - 1,
            table,
            changes: match domain.device().attr().atomic_cap {
                ATOMIC_NONE => Changes::Processors,
                ATOMIC_GLOBAL => Changes::Both,
                _ => Changes::Device,
            },
            own: Own::new(domain, fabric.port())?,
            regions: Mutex::default(),
            held: Mutex::default(),
            held_most: ep.config.rma_peers,
            discarding: Mutex::new(()),
        }))
    }

    /// What this rank publishes.
    pub fn card(&self, digest: u64) -> Vec<u8> {
        let place = |r: &Region| Place { addr: r.addr(), rkey: r.rkey() };
        let (block, table) = (place(self.block.region()), place(&self.table));
        Card { block, table, slots: self.mask as u32 + 1, changes: self.changes as u32, digest }.encode()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= self.block.len());
        // SAFETY: within the block, which lives as long as self; any content is valid for an atomic.
        unsafe { &*self.block.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Nothing is held, and nothing registered but what `keep` says; all ranks are here and use nothing.
    pub fn begin_anew(&self, keep: impl Fn(u32) -> bool) {
        lock(&self.held).clear();
        lock(&self.regions).retain(|n, _| keep(*n));
        (HOLDERS_AT..self.replies_at).step_by(8).for_each(|at| self.word(at).store(0, Ordering::Relaxed));
    }

    // ---- this rank's memory

    /// Registers an entry's memory; whether it can be written, and its keys as the entry has them.
    ///
    /// # Safety
    /// The memory stays until [`Device::forget`].
    pub unsafe fn register(&self, n: u32, at: *mut u8, len: usize) -> Result<(bool, u64)> {
        // Whole words: atomic operations on four bytes are made on the eight that they lie in.
        let start = at as usize & !7;
        let bytes = (at as usize + len).next_multiple_of(8) - start;
        let domain = self.fabric.domain();
        // SAFETY: as the caller promises; a word of eight bytes lies in one page.
        let (writable, region) = match unsafe { domain.register(start as *mut u8, bytes, ALL_ACCESS) } {
            Ok(region) => (true, region),
            // SAFETY: as above.
            Err(e) => match unsafe { domain.register(start as *mut u8, bytes, Access::REMOTE_READ) } {
                Ok(region) => (false, region),
                Err(_) => return Err(e),
            },
        };
        let keys = u64::from(region.rkey());
        lock(&self.regions).insert(n, Arc::new(region));
        Ok((writable, keys))
    }

    /// The registration of an entry.
    fn region(&self, n: u32) -> Option<Arc<Region>> {
        lock(&self.regions).get(&n).cloned()
    }

    /// Takes an entry's memory from the device, when no operation of this rank uses it any more; `false`: one does.
    pub fn forget(&self, n: u32) -> bool {
        let mut regions = lock(&self.regions);
        if regions.get(&n).is_some_and(|r| Arc::strong_count(r) > 1) {
            return false;
        }
        regions.remove(&n);
        true
    }

    // ---- requests that are waited for

    /// Changes a word of a rank's block; what was there.
    fn change(&self, far: &Far, at: Place, change: Change) -> Result<u64> {
        let bounce = self.fabric.bounce()?;
        let arena = bounce.arena();
        let old = Piece { addr: arena.as_ptr() as u64, len: 8, lkey: arena.region().lkey() };
        // SAFETY: the buffer is this call's until the ticket is over.
        let ticket = unsafe { far.link.atomic(change, old, at)? };
        far.link.wait(ticket)?;
        // SAFETY: eight bytes that the device has written.
        Ok(unsafe { arena.as_ptr().cast::<u64>().read_volatile() })
    }

    /// Reads words of a rank.
    fn read(&self, far: &Far, from: Place, words: &mut [u64]) -> Result<()> {
        let bounce = self.fabric.bounce()?;
        let arena = bounce.arena();
        let (bytes, mut done, mut ticket) = (size_of_val(words), 0, 0);
        assert!(bytes <= arena.len());
        while done < bytes {
            let n = (bytes - done).min(far.link.longest());
            let piece = Piece { addr: arena.as_ptr() as u64 + done as u64, len: n as u32, lkey: arena.region().lkey() };
            let place = Place { addr: from.addr + done as u64, rkey: from.rkey };
            // SAFETY: the buffer is this call's until the last ticket is over.
            ticket = match unsafe { far.link.bulk(false, done + n == bytes, &[piece], place) } {
                Ok(ticket) => ticket,
                Err(e) => {
                    let _ = far.link.wait(ticket);
                    return Err(e);
                }
            };
            done += n;
        }
        far.link.wait(ticket)?;
        // SAFETY: as many bytes, which the device has written.
        unsafe { arena.as_ptr().cast::<u64>().copy_to_nonoverlapping(words.as_mut_ptr(), words.len()) };
        Ok(())
    }

    /// Claims a rank's number for this process; `false`: another from elsewhere has it.
    pub fn claim_number(&self, far: &Far, world: u32) -> Result<bool> {
        Ok(self.change(far, far.word(CLAIM_AT), Change::Swap(0, u64::from(world) + 1))? == 0)
    }

    /// Who from elsewhere has claimed this rank's number.
    pub fn claim(&self) -> &AtomicU64 {
        self.word(CLAIM_AT)
    }

    /// What others read: who has this rank's number, + 1, and this one's number.
    pub fn tell(&self, claim: u64, number: u32) {
        self.word(TOLD_AT).store(claim, Ordering::Release);
        self.word(TOLD_AT + 8).store(u64::from(number), Ordering::Release);
    }

    /// What a rank tells.
    pub fn told(&self, far: &Far) -> Result<(u64, u32)> {
        let mut words = [0; 2];
        self.read(far, far.word(TOLD_AT), &mut words)?;
        Ok((words[0], words[1] as u32))
    }

    /// Does an atomic operation on a word of this rank; what was there.
    pub fn fetch(&self, n: u32, at: u64, fetch: &Fetch) -> Result<u64> {
        let rkey = self.region(n).map_or(0, |r| r.rkey());
        let (high, place) = (!at.is_multiple_of(8), Place { addr: at & !7, rkey });
        let (mut there, mut guess) = (None, None);
        loop {
            match fetch.by_device(there, guess, high) {
                Next::Over(old) => return Ok(old),
                Next::Try(change) => {
                    guess = if let Change::Swap(expected, _) = change { Some(expected) } else { None };
                    there = Some(self.own.change(place, change)?);
                }
            }
        }
    }

    // ---- other ranks' entries

    /// What is kept of a rank's table; from here on the rank knows it.
    fn table_of(&self, far: &Far, rank: u32) -> Result<Arc<Table>> {
        let mut held = lock(&self.held);
        if let Some(table) = held.get(&rank) {
            return Ok(table.clone());
        }
        if held.len() >= self.held_most {
            let unused = held.iter().find(|(_, t)| Arc::strong_count(t) == 1).map(|(rank, _)| *rank);
            unused.and_then(|rank| held.remove(&rank));
        }
        // Under the lock: who is asked to discard in the meantime waits for it, and finds the table.
        let (word, bit) = (far.word(HOLDERS_AT + self.rank as usize / 64 * 8), 1u64 << (self.rank % 64));
        // Only this rank sets its bit, and only the owner clears it.
        if self.change(far, word, Change::Add(0))? & bit == 0 {
            self.change(far, word, Change::Add(bit))?;
        }
        let table = Arc::new(Table::default());
        held.insert(rank, table.clone());
        Ok(table)
    }

    /// Words of an entry: life, first byte, length, keys.
    fn entry(&self, far: &Far, table: &Table, n: u32, anew: bool) -> Result<[u64; 4]> {
        let chunk = n / CHUNK as u32;
        if let Some(kept) = lock(&table.chunks).get(&chunk).filter(|_| !anew) {
            return Ok(kept[n as usize % CHUNK]);
        }
        let mut words = [0u64; CHUNK * 4];
        let place = Place {
            addr: far.card.table.addr + u64::from(chunk) * (CHUNK * size_of::<Entry>()) as u64,
            rkey: far.card.table.rkey,
        };
        self.read(far, place, &mut words)?;
        let fresh: Box<[[u64; 4]]> = words.chunks_exact(4).map(|w| [w[0], w[1], w[2], w[3]]).collect();
        let entry = fresh[n as usize % CHUNK];
        lock(&table.chunks).insert(chunk, fresh);
        Ok(entry)
    }

    /// Takes out what is kept of a rank.
    pub fn discard(&self, rank: u32) -> Option<Arc<Table>> {
        lock(&self.held).remove(&rank)
    }

    /// Takes out the ranks of the world that may have entries of this one.
    pub fn take_holders(&self) -> Result<Vec<u32>> {
        let mut ranks = Vec::new();
        for (group, at) in (HOLDERS_AT..self.replies_at).step_by(8).enumerate() {
            let mut bits = self.word(at).load(Ordering::Acquire);
            if bits != 0 {
                // What another rank sets meanwhile stays: it is a bit of its own.
                let region = self.block.region();
                let place = Place { addr: region.addr() + at as u64, rkey: region.rkey() };
                self.own.change(place, Change::Add(bits.wrapping_neg()))?;
            }
            while bits != 0 {
                ranks.push(group as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        Ok(ranks)
    }

    // ---- remote commands

    /// Takes the next ticket of a rank's ring.
    pub fn ticket(&self, far: &Far) -> Result<u64> {
        self.change(far, far.word(0), Change::Add(1))
    }

    /// Puts a command under a ticket into a rank's ring. `Some(false)`: there is no room yet; `None`: the owner has given the ticket up, which
    /// is asked only of one that is `old`.
    pub fn put(&self, far: &Far, ticket: u64, old: bool, words: [u64; WORDS]) -> Result<Option<bool>> {
        let slots = u64::from(far.card.slots);
        if old || ticket >= far.room.load(Ordering::Relaxed) {
            let mut freed = [0];
            self.read(far, far.word(FREED_AT), &mut freed)?;
            far.room.fetch_max(freed[0] + slots, Ordering::Relaxed);
            if ticket < freed[0] {
                return Ok(None);
            }
            if ticket >= freed[0] + slots {
                return Ok(Some(false));
            }
        }
        // Its block is laid out as this one's.
        let at = self.slots_at + (ticket & (slots - 1)) as usize * SLOT;
        let mut slot = [0u64; SLOT / 8];
        slot[..WORDS].copy_from_slice(&words);
        slot[WORDS] = sum(ticket + 1, &words);
        let number = || Some(COMMANDED);
        far.link.write_with(far.card.block, at, number, |record| put_words(record, &slot[..=WORDS]))?;
        Ok(Some(true))
    }

    /// The command of a ticket of this rank's ring, if it is there.
    pub fn arrival(&self, ticket: u64) -> Option<[u64; WORDS]> {
        let at = self.slots_at + (ticket & self.mask) as usize * SLOT;
        let words: [u64; WORDS] = std::array::from_fn(|k| self.word(at + 8 * k).load(Ordering::Acquire));
        (self.word(at + 8 * WORDS).load(Ordering::Acquire) == sum(ticket + 1, &words)).then_some(words)
    }

    /// So many commands are taken.
    pub fn free(&self, taken: u64) {
        self.word(FREED_AT).store(taken, Ordering::Release);
    }

    /// Has somebody this ticket?
    pub fn is_claimed(&self, ticket: u64) -> bool {
        self.word(0).load(Ordering::Acquire) > ticket
    }

    /// Is the holder of a ticket dead, whose slot has been empty for so long? A holder that lives, and is slower than that, looks whether its
    /// ticket is still good.
    pub fn is_orphan(&self, empty_ns: u64) -> bool {
        empty_ns > DEAD_TICKET_NS && self.fabric.links().iter().any(|l| l.failure().is_some())
    }

    /// Answers a rank's command.
    pub fn reply(&self, far: &Far, place: usize, word: u64, value: u64) -> Result<()> {
        let reply = [word, value, sum(word, &[value])];
        let number = || Some(COMMANDED);
        let at = self.replies_at + (place % FAR_REPLIES) * REPLY;
        far.link.write_with(far.card.block, at, number, |record| put_words(record, &reply)).map(|_| ())
    }

    /// The reply at a place: its word and value, if it is whole.
    pub fn replied(&self, place: usize) -> Option<(u64, u64)> {
        let at = self.replies_at + (place % FAR_REPLIES) * REPLY;
        let [word, value, check] = [0, 8, 16].map(|k| self.word(at + k).load(Ordering::Acquire));
        (check == sum(word, &[value])).then_some((word, value))
    }

    // ---- operations

    /// Starts copying between this rank's memory, of entry `n`, and a rank's.
    pub fn copy(&self, far: &Far, push: bool, n: u32, at: *mut u8, len: usize, to: Reach) -> Result<Flight> {
        let Some(region) = self.region(n).filter(|r| r.covers(at as u64, len)) else {
            let text = format!("rank {}: copy: its registration of {len} bytes at {at:p} has ended", self.rank);
            return Err(Error::new(Code::Argument, text));
        };
        let link = &far.link;
        let mut flight = Flight { link: link.clone(), ticket: 0, _table: to.table, _region: Some(region.clone()) };
        let mut done = 0;
        while done < len {
            let bytes = (len - done).min(link.longest());
            let piece = Piece { addr: at as u64 + done as u64, len: bytes as u32, lkey: region.lkey() };
            let place = Place { addr: to.place.addr + done as u64, rkey: to.place.rkey };
            // SAFETY: registered as long as the flight lives, which waits for the last ticket.
            flight.ticket = unsafe { link.bulk(push, done + bytes == len, &[piece], place)? };
            done += bytes;
        }
        Ok(flight)
    }

    /// Starts a change of a word; what was there comes to the place of a reply.
    pub fn start_change(&self, far: &Far, reach: &Reach, change: Change, place: usize) -> Result<Flight> {
        let at = self.replies_at + (place % FAR_REPLIES) * REPLY + 24;
        let old = Piece { addr: self.block.region().addr() + at as u64, len: 8, lkey: self.block.region().lkey() };
        // SAFETY: the block lives longer than any operation; the place is the operation's.
        let ticket = unsafe { far.link.atomic(change, old, reach.place)? };
        Ok(Flight { link: far.link.clone(), ticket, _table: reach.table.clone(), _region: None })
    }

    /// What was there.
    pub fn changed(&self, place: usize) -> u64 {
        self.word(self.replies_at + (place % FAR_REPLIES) * REPLY + 24).load(Ordering::Acquire)
    }
}

fn put_words(record: &mut [u8], words: &[u64]) -> usize {
    for (to, w) in record.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&w.to_ne_bytes());
    }
    words.len() * 8
}

/// What comes next in an atomic operation that the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is over; what was there.
    Over(u64),
    /// This change of the eight bytes in which the word lies.
    Try(Change),
}

impl Fetch {
    /// How the device does it: additions and comparisons of eight bytes by itself. All else is computed here from what is there, and put in its
    /// place if that is still there; the other half of the eight bytes stays as it is. `there`: what was there at the last look, and
    /// whether that look was a try that had to find `guess`.
    pub(super) fn by_device(&self, there: Option<u64>, guess: Option<u64>, high: bool) -> Next {
        let Some(old) = there else {
            return Next::Try(match (self.wide, self.op) {
                (true, Atomic::Add) => Change::Add(self.value),
                (true, Atomic::Cas) => Change::Swap(self.expected, self.value),
                _ => Change::Add(0),
            });
        };
        let shift = if high { 32 } else { 0 };
        let part = |word: u64| if self.wide { word } else { word >> shift & 0xffff_ffff };
        if self.wide && matches!(self.op, Atomic::Add | Atomic::Cas) || guess == Some(old) {
            return Next::Over(part(old));
        }
        let was = part(old);
        let value = if self.wide { self.value } else { self.value & 0xffff_ffff };
        let new = match self.op {
            Atomic::Cas if was != part_of(self.expected, self.wide) => was,
            Atomic::Cas | Atomic::Swap => value,
            Atomic::Add => part_of(was.wrapping_add(value), self.wide),
            Atomic::Xor => was ^ value,
            Atomic::Or => was | value,
            Atomic::And => was & value,
        };
        if new == was {
            return Next::Over(was);
        }
        let word = if self.wide { new } else { old & !(0xffff_ffff << shift) | new << shift };
        Next::Try(Change::Swap(old, word))
    }
}

fn part_of(value: u64, wide: bool) -> u64 {
    if wide { value } else { value & 0xffff_ffff }
}

impl Rma {
    /// A rank of the world as the device reaches it.
    pub(super) fn open_far(&self, world: u32) -> Result<Far> {
        let link = self.ep.link(world)?;
        let card = self.ep.launch.get(&card_key(self.generation, world))?;
        let Some(card) = Card::decode(&card) else {
            let text = format!("rank {}: rank {world} has no RDMA device for global memory", self.rank());
            return Err(Error::new(Code::Unsupported, text));
        };
        if card.digest != self.split.digest() {
            let text = format!(
                "rank {}: rank {world} divides addresses in another way; give FMPL_RMA_KEYS the same value on all ranks",
                self.rank()
            );
            return Err(Error::new(Code::Setting, text));
        }
        Ok(Far { link, card, room: AtomicU64::new(u64::from(card.slots)) })
    }

    /// Tells the others where this rank's block is; collective where ranks are on several nodes.
    pub(super) fn publish_card(&self) -> Result<()> {
        if !self.ep.has_other_nodes() {
            return Ok(());
        }
        let card = self.device.as_ref().map_or(Vec::new(), |d| d.card(self.split.digest()));
        self.ep.launch.put(&card_key(self.generation, self.ep.rank), &card)?;
        self.ep.launch.fence()
    }

    /// A view's rank as the device reaches it.
    pub(super) fn far<'a>(&self, view: &'a View) -> Result<(&Device, &'a Far)> {
        let device = self.device.as_ref().ok_or_else(|| {
            Error::new(Code::Unsupported, format!("rank {}: no RDMA device for global memory", self.rank()))
        })?;
        let far = view.far.as_ref().ok_or_else(|| {
            Error::new(Code::Unsupported, format!("rank {}: rank {} is on this node", self.rank(), view.rank))
        })?;
        Ok((device, far))
    }

    /// What an address means to the device.
    pub(super) fn reach(&self, view: &View, ga: GlobalAddress, len: usize, writes: bool, what: &str) -> Result<Reach> {
        let (device, far) = self.far(view)?;
        if let Some(why) = far.gone() {
            return Err(self.peer_error(view.rank, why, what));
        }
        let table = device.table_of(far, view.rank)?;
        let n = self.split.key(ga);
        let mut looked = false;
        loop {
            // What is not there in the copy may have come since it was made.
            let [life, base, have, keys] = device.entry(far, &table, n, looked)?;
            match self.judge([life, base, have], ga, n, self.split.offset(ga), len, what) {
                Ok((addr, _)) if writes && life & Entry::READ_ONLY != 0 => {
                    let text = format!(
                        "rank {}: {what}: the memory at {ga} ({addr:#x} of its owner) can only be read",
                        self.rank()
                    );
                    return Err(Error::new(Code::Argument, text));
                }
                Ok((addr, _)) => return Ok(Reach { place: Place { addr, rkey: keys as u32 }, table }),
                Err(e) if looked => return Err(e),
                Err(_) => looked = true,
            }
        }
    }
}

fn card_key(generation: u64, rank: u32) -> String {
    format!("fmpl-rma-{generation}-{rank}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_come_back_as_they_went() {
        let place = |addr, rkey| Place { addr, rkey };
        let card = Card { block: place(1 << 50, 7), table: place(3, u32::MAX), slots: 4096, changes: 1, digest: 77 };
        assert_eq!(Card::decode(&card.encode()), Some(card));
        assert_eq!(Card::decode(&[]), None);
    }

    /// Every operation on words that a device changes, with others that change them in between, against the processor's.
    #[test]
    fn the_device_does_what_the_processor_does() {
        use Atomic::*;
        let mut seed = 5u64;
        let mut draw = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed ^ seed >> 29
        };
        for round in 0..4000 {
            let op = [Cas, Swap, Add, Xor, Or, And][round % 6];
            let (wide, high) = (round % 4 < 2, round % 4 == 3);
            let mut memory = [draw(), draw()];
            let there = |m: [u64; 2]| if wide { m[0] } else { m[0] >> if high { 32 } else { 0 } & 0xffff_ffff };
            let expected = if draw() % 2 == 0 { there(memory) } else { draw() };
            let fetch = Fetch { at: GlobalAddress::NULL, op, wide, value: draw(), expected };
            let (mut before, mut guess, mut last) = (memory, None, None);
            let old = loop {
                match fetch.by_device(last, guess, high) {
                    Next::Over(old) => break old,
                    Next::Try(change) => {
                        if draw() % 4 == 0 {
                            memory[0] ^= draw();
                        }
                        before = memory;
                        last = Some(memory[0]);
                        match change {
                            Change::Add(n) => memory[0] = memory[0].wrapping_add(n),
                            Change::Swap(expected, new) if memory[0] == expected => memory[0] = new,
                            Change::Swap(..) => {}
                        }
                        guess = if let Change::Swap(expected, _) = change { Some(expected) } else { None };
                    }
                }
            };
            let mut want = before;
            let at = want.as_mut_ptr().cast::<u8>().wrapping_add(if high { 4 } else { 0 });
            // SAFETY: an aligned word of the array.
            assert_eq!(unsafe { fetch.apply(at) }, old, "{fetch:?}");
            assert_eq!(memory, want, "{fetch:?} {high}");
        }
    }
}
