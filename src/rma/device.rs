//! Global memory by RDMA: what the device does for ranks that share no memory with the owner, and without the owner's processor.
//!
//! With ranks on several nodes each registers what it makes reachable with its device as well, and has a **block** of registered memory:
//!
//! ```text
//!  0        shares        128 B for each share of the ring of commands: sent, tickets given out, by the devices
//!                         64: freed, commands taken, by this rank's processor
//!  …        claim         which process from elsewhere wants this one's number, + 1; 8: who has it, and this one's number
//!  …        holders       a bit for each rank that may have entries of this rank's table; by the devices
//!  …        replies       32 B each: word | value | sum | what was there before an atomic operation of this rank's
//!  …        slots         64 B for each command: five words, and their sum with the ticket + 1
//! ```
//! | file | what it does |
//! |---|---|
//! | `word` | atomic operations |
//! | `table` | other ranks' tables of registered memory |
//! | `ring` | remote commands and their replies |

mod ring;
mod table;
mod word;

use crate::base::atomics::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::Rma;
use super::record::Window;
use super::view::View;
use crate::base::bytes::Room;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::lock;
use crate::fabric::network::control::Fabric;
use crate::fabric::network::device::Atomics;
use crate::fabric::network::link::{Last, Link};
use crate::fabric::network::own::Own;
use crate::fabric::network::region::{Arena, Region};
use crate::fabric::network::{Access, Change, Piece, Place};
use crate::p2p::any_source::share::{share_of, shares};
use crate::p2p::endpoint::Endpoint;

pub(super) use ring::WORDS;
pub(super) use table::Table;
pub(super) use word::Next;

/// Bytes of a share's counters, and where the second one is.
const COUNTERS: usize = 128;
const FREED_AT: usize = 64;
const REPLY: usize = 32;
/// Replies that can be awaited; the queue has no more operations.
pub(super) const REMOTE_REPLIES: usize = 4096;
const SLOT: usize = 64;

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
    plan: Plan,
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

/// Where things are in a rank's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Slots of the ring of commands, and shares: powers of two.
    slots: usize,
    shares: usize,
    /// Ranks of the job.
    size: usize,
}

impl Plan {
    /// The tickets of a share that are given out.
    fn sent(self, share: usize) -> usize {
        share * COUNTERS
    }
    fn freed(self, share: usize) -> usize {
        share * COUNTERS + FREED_AT
    }
    fn claim(self) -> usize {
        self.shares * COUNTERS
    }
    /// What others read: who has this rank's number, and its own.
    fn told(self) -> usize {
        self.claim() + 8
    }
    fn holders(self) -> usize {
        self.claim() + 64
    }
    fn replies(self) -> usize {
        (self.holders() + self.size.div_ceil(64) * 8).next_multiple_of(64)
    }
    fn reply(self, place: usize) -> usize {
        self.replies() + place % REMOTE_REPLIES * REPLY
    }
    /// Slots of a share.
    fn each(self) -> u64 {
        (self.slots / self.shares) as u64
    }
    fn slot(self, share: usize, ticket: u64) -> usize {
        let n = share as u64 * self.each() + ticket % self.each();
        self.replies() + REMOTE_REPLIES * REPLY + n as usize * SLOT
    }
    fn bytes(self) -> usize {
        self.replies() + REMOTE_REPLIES * REPLY + self.slots * SLOT
    }
}

/// What a rank publishes with the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    block: Place,
    table: Place,
    slots: u32,
    shares: u16,
    changes: u16,
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
        b.extend(self.shares.to_le_bytes());
        b.extend(self.changes.to_le_bytes());
        b.extend(self.digest.to_le_bytes());
        b
    }

    fn decode(b: &[u8]) -> Option<Card> {
        let word = |at: usize| Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?));
        let place = |at: usize| Some(Place { addr: word(at)?, rkey: half(at + 8)? });
        let (shares, changes) = (half(28)? as u16, (half(28)? >> 16) as u16);
        let (block, table) = (place(0)?, place(12)?);
        let card = Card { block, table, slots: half(24)?, shares, changes, digest: word(32)? };
        let even = card.slots.is_power_of_two() && shares.is_power_of_two() && u32::from(shares) <= card.slots;
        (b.len() == 40 && even).then_some(card)
    }
}

/// A rank as the device reaches it.
pub(super) struct Remote {
    pub link: Arc<Link>,
    card: Card,
    plan: Plan,
    /// The share of its ring that is this rank's.
    share: usize,
    /// Below which ticket there was room in its ring when somebody looked last.
    room: AtomicU64,
}

impl Remote {
    /// Where a word of its block is.
    fn word(&self, at: usize) -> Place {
        Place { addr: self.card.block.addr + at as u64, rkey: self.card.block.rkey }
    }

    /// Are atomic operations on its memory made by its device only?
    pub fn changes(&self) -> bool {
        self.card.changes == Changes::Device as u16
    }

    /// Can its device make them?
    pub fn able(&self) -> bool {
        self.card.changes != Changes::Processors as u16
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
        if !self.link.has_ended() {
            return Ok(true);
        }
        self.link.wait(self.ticket).map(|()| true)
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

const ALL_ACCESS: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_WRITE).union(Access::REMOTE_ATOMIC);

impl Device {
    /// Nothing yet, if this process is not on the fabric or all ranks are on its node.
    pub fn new(ep: &Endpoint, own: &Window, slots: usize, keys: usize) -> Result<Option<Device>> {
        let Some(fabric) = ep.fabric_here().filter(|_| ep.has_other_nodes()) else { return Ok(None) };
        let domain = fabric.domain();
        let size = ep.size as usize;
        let plan = Plan { slots, shares: shares(ep.config.spread, size, slots), size };
        let block = Arena::new(domain, plan.bytes(), ALL_ACCESS)?;
        let (at, bytes) = own.table(keys);
        // SAFETY: the window stays mapped longer than this; others read it only.
        let table = unsafe { domain.register(at, bytes, Access::REMOTE_READ)? };
        Ok(Some(Device {
            fabric: fabric.clone(),
            rank: ep.rank,
            block,
            plan,
            table,
            changes: match fabric.device().limits().atomics {
                Atomics::None => Changes::Processors,
                Atomics::Both => Changes::Both,
                Atomics::Device => Changes::Device,
            },
            own: Own::new(fabric.device())?,
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
        let (slots, shares) = (self.plan.slots as u32, self.plan.shares as u16);
        Card { block, table, slots, shares, changes: self.changes as u16, digest }.encode()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        self.block.word(at)
    }

    /// Nothing is held, and nothing registered but what `keep` says; all ranks are here and use nothing.
    pub fn begin_anew(&self, keep: impl Fn(u32) -> bool) {
        lock(&self.held).clear();
        lock(&self.regions).retain(|n, _| keep(*n));
        let holders = self.plan.holders()..self.plan.replies();
        holders.step_by(8).for_each(|at| self.word(at).store(0, Ordering::Relaxed));
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
        let register = |access| unsafe { domain.register(start as *mut u8, bytes, access) };
        let (writable, region) = match register(ALL_ACCESS) {
            Ok(region) => (true, region),
            Err(e) => match register(Access::REMOTE_READ) {
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
    fn change(&self, remote: &Remote, at: Place, change: Change) -> Result<u64> {
        self.fabric.bounce()?.change(&remote.link, change, at)
    }

    /// Reads words of a rank.
    fn read(&self, remote: &Remote, from: Place, words: &mut [u64]) -> Result<()> {
        let bounce = self.fabric.bounce()?;
        let arena = bounce.arena();
        let bytes = size_of_val(words);
        let ticket = remote.link.post_all(bytes, |done| {
            let n = (bytes - done).min(remote.link.longest());
            let place = Place { addr: from.addr + done as u64, rkey: from.rkey };
            Ok((n, bounce.post(&remote.link, (false, done + n == bytes), done, n, place)?))
        })?;
        remote.link.wait(ticket)?;
        Room::of(words).copy_from(*arena.room().part(0, bytes));
        Ok(())
    }

    /// Claims a rank's number for this process; `false`: another from elsewhere has it.
    pub fn claim_number(&self, remote: &Remote, world: u32) -> Result<bool> {
        Ok(self.change(remote, remote.word(remote.plan.claim()), Change::Swap(0, u64::from(world) + 1))? == 0)
    }

    /// Who from elsewhere has claimed this rank's number.
    pub fn claim(&self) -> &AtomicU64 {
        self.word(self.plan.claim())
    }

    /// What others read: who has this rank's number, + 1, and this one's number.
    pub fn tell(&self, claim: u64, number: u32) {
        self.word(self.plan.told()).store(claim, Ordering::Release);
        self.word(self.plan.told() + 8).store(u64::from(number), Ordering::Release);
    }

    /// What a rank tells.
    pub fn told(&self, remote: &Remote) -> Result<(u64, u32)> {
        let mut words = [0; 2];
        self.read(remote, remote.word(remote.plan.told()), &mut words)?;
        Ok((words[0], words[1] as u32))
    }

    // ---- operations

    /// Starts copying between this rank's memory, of entry `n`, and a rank's.
    pub fn copy(&self, remote: &Remote, push: bool, n: u32, at: *mut u8, len: usize, to: Reach) -> Result<Flight> {
        let Some(region) = self.region(n).filter(|r| r.covers(at as u64, len)) else {
            let text = format!("rank {}: copy: its registration of {len} bytes at {at:p} has ended", self.rank);
            return Err(Error::new(Code::Argument, text));
        };
        let link = &remote.link;
        let mut flight = Flight { link: link.clone(), ticket: 0, _table: to.table, _region: Some(region.clone()) };
        let mut done = 0;
        while done < len {
            let bytes = (len - done).min(link.longest());
            let piece = Piece { addr: at as u64 + done as u64, len: bytes as u32, lkey: region.lkey() };
            let place = Place { addr: to.place.addr.wrapping_add(done as u64), rkey: to.place.rkey };
            // SAFETY: registered as long as the flight lives, which waits for the last ticket.
            flight.ticket = unsafe { link.bulk(push, Last::of(done + bytes == len), &[piece], place)? };
            done += bytes;
        }
        Ok(flight)
    }

    /// Starts a change of a word; what was there comes to the place of a reply.
    pub fn start_change(&self, remote: &Remote, reach: &Reach, change: Change, place: usize) -> Result<Flight> {
        let at = self.plan.reply(place) + 24;
        let old = Piece { addr: self.block.region().addr() + at as u64, len: 8, lkey: self.block.region().lkey() };
        // SAFETY: the block lives longer than any operation; the place is the operation's.
        let ticket = unsafe { remote.link.atomic(change, old, reach.place)? };
        Ok(Flight { link: remote.link.clone(), ticket, _table: reach.table.clone(), _region: None })
    }

    /// What was there.
    pub fn changed(&self, place: usize) -> u64 {
        self.word(self.plan.reply(place) + 24).load(Ordering::Acquire)
    }
}

impl Rma {
    /// A rank of the world as the device reaches it.
    pub(super) fn open_remote(&self, world: u32) -> Result<Remote> {
        let link = self.ep.link(world)?;
        let card = self.ep.launch.get(world, &card_key(self.generation, world))?;
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
        let (slots, shares) = (card.slots as usize, usize::from(card.shares));
        let plan = Plan { slots, shares, size: self.ep.size as usize };
        let share = share_of(self.ep.rank, shares);
        Ok(Remote { link, card, plan, share, room: AtomicU64::new(plan.each()) })
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
    pub(super) fn remote<'a>(&self, view: &'a View) -> Result<(&Device, &'a Remote)> {
        let device = self
            .device
            .as_ref()
            .ok_or_else(|| error!(Code::Unsupported, "rank {}: no RDMA device for global memory", self.rank()))?;
        let remote = view
            .remote
            .as_ref()
            .ok_or_else(|| error!(Code::Unsupported, "rank {}: rank {} is on this node", self.rank(), view.rank))?;
        Ok((device, remote))
    }
}

fn card_key(generation: u64, rank: u32) -> String {
    format!("fmpl-rma-{generation}-{rank}")
}

#[cfg(test)]
mod tests;
