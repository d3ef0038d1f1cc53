//! Messages of any source between nodes: a second ring beside the one in shared memory, for the senders of other nodes.
//!
//! A device's atomic operations on a word are atomic against each other, and with most devices not against those of processors. So
//! senders of other nodes have a **remote ring** of their own for each (communicator, index), in registered memory of the receiver, and only
//! devices change its counter; the receiver reads it, and takes messages from both rings in turn. It is made when its first sender asks.
//!
//! ```text
//!  0     sent                   tickets given out (SendCNT), by remote fetch-and-add
//!  64    freed, limit, asleep   the receiver's: messages taken (RecvCNT); how many may be outstanding; 1: it sleeps
//!  128   slots, 1088 B each     mark | source 32, length 32 | check | up to 1 KiB, or where the message is
//!
//!   S                                                              R
//!   room as far as known?     no: reads the counters, backs off
//!   ticket = fetch-and-add of `sent`
//!   ticket < freed + N?       no: keeps it, reads again, backs off
//!   slot [ticket mod N]       one RDMA write ─────────────────▶    mark of the next ticket, and its check is right? takes the bytes
//!   reads the counters        behind the write                     freed = ticket + 1
//!   asleep?  calls R's thread
//! ```
//! The fetch-and-add is done whether there is room or not, since a compare-and-swap that fails costs a way there and back. A sender looks
//! for room before, so it holds a ticket beyond the room only when others came in between. If its message is not sent after all, the next
//! one to that ring goes under the ticket, or, if there is none, an empty slot ([`Kind::Nothing`]) does.
//!
//! A message of more than 1 KiB stays at its sender: copied into the spool, or where it is, registered; then a record in the spool
//! says where. The receiver reads it, and when it has, looks at the record: a sender whose patience ends copies the message into the spool and
//! changes the record *before* its memory is the program's again, so a record that still says the same after the bytes have come proves them.
//!
//! The counters of a share may be with another rank: see [`host`].
//!
//! **A sender that dies** with a ticket: the receiver asks each of the others whether it has it. A sender's answer comes behind what it has
//! written, so if nobody has, and the slot is still empty, it was the dead one's.

pub mod host;
mod road;

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use static_assertions::const_assert;

use super::ring::{AREA_BYTES, Arrival, Kind};
use super::share::limit_of;
use crate::base::clock::now_ns;
use crate::base::error::Result;
use crate::base::layout::Run;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::rules::{Rule, holds};
use crate::fabric::network::control::Fabric;
use crate::fabric::network::region::Arena;
use crate::fabric::network::{Access, Place};
use crate::lane::record::BLOCK_HEADER;
use crate::lane::remote::{Remote, sum};
use crate::p2p::remote::lend::Source;
use crate::p2p::remote::{PeerMemory, fetch_words, transfer};
use crate::p2p::spool::PAGE;

use host::Host;
pub(in crate::p2p::any_source) use road::{FREED, HOST_AT, PAUSE_NS};
pub use road::{Moved, Payload, RemoteRoad, Sought, place_at_all};

const SENT_AT: usize = 0;
const FREED_AT: usize = 64;
const SLOTS_AT: usize = 128;
/// Bytes of a slot before the message.
const HEAD: usize = 24;
const SLOT: usize = 64 + AREA_BYTES;
const_assert!(HEAD + AREA_BYTES <= SLOT);
/// How long the record of an offered message may look torn.
const TORN_NS: u64 = 10_000_000_000;

/// A remote ring of this process, in one share or several ([`super::share`]), each laid out as in the drawing.
pub struct RemoteRing {
    memory: Arena,
    /// Slots of a share, less one.
    mask: u64,
    shares: usize,
    epoch: AtomicU16,
    /// Who has the counters of the shares; `None`: they are here.
    hosts: Box<[Option<Host>]>,
    /// What the shares say of this side, which is not read back from memory that others can write.
    own: Box<[Own]>,
    asleep: AtomicBool,
}

/// Of a share: messages taken, and how many may be outstanding, 0: as many as there are slots.
#[derive(Default)]
struct Own {
    freed: AtomicU64,
    limit: AtomicU64,
}

impl RemoteRing {
    /// An empty ring of so many slots in so many shares, both powers of two, each with its counters at the rank of `hosts`.
    pub fn new(fabric: &Fabric, slots: usize, hosts: &[Option<u32>], epoch: u16) -> Result<RemoteRing> {
        let shares = hosts.len();
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = Arena::new(fabric.domain(), shares * SLOTS_AT + slots * SLOT, access)?;
        let mask = (slots / shares) as u64 - 1;
        let hosts = hosts.iter().map(|host| host.map(Host::new)).collect();
        let own = (0..shares).map(|_| Own::default()).collect();
        let (epoch, asleep) = (AtomicU16::new(epoch), AtomicBool::new(true));
        let ring = RemoteRing { memory, mask, shares, epoch, hosts, own, asleep };
        ring.set_asleep(true);
        Ok(ring)
    }

    /// Makes an empty ring of one whose communicator is freed. Until somebody looks at it, whoever sends calls this process.
    pub fn renew(&self, epoch: u16) {
        self.epoch.store(epoch, Ordering::Relaxed);
        for share in self.all() {
            // The slots' marks too: of an epoch there are 16 bits in them.
            let marks = (0..share.slots()).map(|ticket| share.slot(ticket));
            for at in marks.chain([SENT_AT, FREED_AT, FREED_AT + 8]) {
                share.word(at).store(0, Ordering::Release);
            }
            share.own().freed.store(0, Ordering::Release);
            share.own().limit.store(0, Ordering::Release);
        }
        self.hosts.iter().flatten().for_each(Host::renew);
        self.set_asleep(true);
    }

    /// Who has the counters of the shares; `None`: they are here.
    pub fn hosts(&self) -> Vec<Option<u32>> {
        self.hosts.iter().map(|host| host.as_ref().map(Host::rank)).collect()
    }

    /// How many shares it has.
    pub fn shares(&self) -> usize {
        self.shares
    }

    /// One of them.
    #[inline(always)]
    pub fn share(&self, n: usize) -> RemoteShare<'_> {
        debug_assert!(n < self.shares);
        RemoteShare { ring: self, n, at: n * (SLOTS_AT + (self.mask as usize + 1) * SLOT) }
    }

    fn all(&self) -> impl Iterator<Item = RemoteShare<'_>> {
        (0..self.shares).map(|n| self.share(n))
    }

    /// How many messages may be outstanding; 0: as many as there are slots.
    pub fn set_limit(&self, most: u64) {
        for (n, share) in self.all().enumerate() {
            let limit = limit_of(most, self.shares, n);
            share.own().limit.store(limit, Ordering::Release);
            share.word(FREED_AT + 8).store(limit, Ordering::Release);
            if let Some(host) = &self.hosts[n] {
                host.tell(&share, share.freed(), limit, true);
            }
        }
    }

    /// The receiver sleeps, or does not any more. The caller orders this with its look at the slots.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::Relaxed);
        self.all().for_each(|share| share.word(FREED_AT + 16).store(asleep as u64, Ordering::SeqCst));
        crate::base::atomics::fence(crate::base::atomics::Ordering::SeqCst);
    }

    /// Does the receiver sleep, or has it an event descriptor?
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }
}

/// A share of a remote ring of this process.
#[derive(Clone, Copy)]
pub struct RemoteShare<'a> {
    ring: &'a RemoteRing,
    /// Which one it is.
    n: usize,
    /// Its offset in the ring's memory.
    at: usize,
}

impl RemoteShare<'_> {
    /// Where its senders find it, and how many slots it has.
    pub fn place(&self) -> (Place, u32) {
        let region = self.ring.memory.region();
        (Place { addr: region.addr() + self.at as u64, rkey: region.rkey() }, self.ring.mask as u32 + 1)
    }

    /// What it is called between its receiver, its senders and who has its counters.
    fn name(&self) -> u64 {
        host::name_of(self.place().0.addr, self.ring.epoch.load(Ordering::Relaxed))
    }

    fn slots(&self) -> u64 {
        self.ring.mask + 1
    }

    fn own(&self) -> &Own {
        &self.ring.own[self.n]
    }

    fn limit(&self) -> u64 {
        self.own().limit.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: offsets are those of the drawing, within the arena; a ring is atomics only.
        unsafe { &*self.ring.memory.as_ptr().add(self.at + at).cast() }
    }

    #[inline(always)]
    fn slot(&self, ticket: u64) -> usize {
        SLOTS_AT + (ticket & self.ring.mask) as usize * SLOT
    }

    /// Messages taken so far.
    pub fn freed(&self) -> u64 {
        self.own().freed.load(Ordering::Acquire)
    }

    /// The message of a ticket, if it is there and whole; where it is, if it lies with its source.
    #[inline]
    pub fn arrival(&self, ticket: u64) -> Option<(Arrival, Option<Away>)> {
        let at = self.slot(ticket);
        let mark = self.word(at).load(Ordering::Acquire);
        if mark as u32 != (ticket + 1) as u32 || (mark >> 48) as u16 != self.ring.epoch.load(Ordering::Relaxed) {
            return None;
        }
        record(mark, |n| self.word(at + 8 * n).load(Ordering::Acquire))
    }

    /// Copies the bytes of a message that lies in its slot.
    pub fn deliver(&self, ticket: u64, to: Run) {
        let from = self.ring.memory.as_ptr().wrapping_add(self.at + self.slot(ticket) + HEAD);
        // SAFETY: a slot of the ring, whose bytes stay until it is freed.
        unsafe { Run::new(from, AREA_BYTES) }.copy_to(to);
    }

    /// So many messages are taken by now.
    #[inline]
    pub fn free(&self, taken: u64) {
        self.own().freed.store(taken, Ordering::Release);
        // SYNC POINT: senders read it before they write to the slots below.
        if holds(Rule::TellsWhatIsTaken) {
            self.word(FREED_AT).store(taken, Ordering::Release);
        }
        if let Some(host) = &self.ring.hosts[self.n] {
            host.tell(self, taken, self.limit(), false);
        }
    }

    /// There is no message: whoever waits for room should know all that there is.
    #[inline]
    pub fn run_dry(&self) {
        if let Some(host) = &self.ring.hosts[self.n]
            && host.is_behind(self.freed())
        {
            host.tell(self, self.freed(), self.limit(), true);
        }
    }

    /// Do the counters say what they never can? A sender of another node may draw a ticket that there is no room for yet, but no second one
    /// before that is used: `senders` of them.
    pub fn is_damaged(&self, taken: u64, senders: u64) -> bool {
        self.ring.hosts[self.n].is_none()
            && is_too_many(self.word(SENT_AT).load(Ordering::Acquire), taken, self.slots() + senders)
    }

    /// Are half of its slots taken, as far as is known here? Who has the counters elsewhere looks whether there is a message at all.
    pub fn is_half_full(&self) -> bool {
        let taken = self.freed();
        match self.ring.hosts[self.n] {
            None => self.word(SENT_AT).load(Ordering::Relaxed).saturating_sub(taken) > self.slots() / 2,
            Some(_) => self.arrival(taken).is_some(),
        }
    }

    /// Has somebody taken this ticket?
    pub fn is_claimed(&self, ticket: u64) -> bool {
        if let Some(host) = &self.ring.hosts[self.n] {
            // When nobody can tell any more, nobody draws tickets either.
            return host.sent(self).is_some_and(|sent| sent > ticket);
        }
        self.word(SENT_AT).load(Ordering::Acquire) > ticket
    }
}

/// Two counters that are read one after the other may be apart by what has come in between: less than this.
const BETWEEN: u64 = 1 << 20;

/// Are more tickets given out than these many beyond those of messages that are taken?
fn is_too_many(sent: u64, taken: u64, most: u64) -> bool {
    sent.checked_sub(taken).is_some_and(|beyond| beyond > most + BETWEEN)
}

/// Takes a slot's record apart whose mark is that of its ticket; `word`: its words, of which the mark is the first. `None`: it is not whole yet.
fn record(mark: u64, word: impl Fn(usize) -> u64) -> Option<(Arrival, Option<Away>)> {
    let source = word(1);
    let len = (source >> 32) as u32;
    let of = |kind| Arrival { kind, source: source as u32, len };
    let words = match Kind::from_number((mark >> 32) as u8) {
        Some(Kind::Nothing) => 0,
        Some(Kind::Area) if len as usize <= AREA_BYTES => (len as usize).div_ceil(8),
        Some(Kind::Spooled | Kind::Offered) => Away::WORDS,
        // No sender writes such a mark, whatever follows it.
        _ => return Some((of(Kind::Damaged), None)),
    };
    let mut all = [0u64; 1 + AREA_BYTES / 8];
    all[0] = source;
    all[1..1 + words].iter_mut().enumerate().for_each(|(n, to)| *to = word(HEAD / 8 + n));
    if sum(mark, &all[..1 + words]) != word(2) && holds(Rule::WholeSlot) {
        return None;
    }
    let kind = Kind::from_number((mark >> 32) as u8)?;
    if words != Away::WORDS || kind == Kind::Area {
        return Some((of(kind), None));
    }
    let away = Away::decode([all[1], all[2], all[3], all[4], all[5]]);
    Some(if away.is_possible() { (of(kind), Some(away)) } else { (of(Kind::Damaged), None) })
}

/// Where a message is that lies with its source, on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Bytes of the message.
    pub len: u64,
    /// The message, at first.
    data: Place,
    /// The block of the source's spool.
    block: Place,
    generation: u32,
}

impl Away {
    const WORDS: usize = 5;

    fn encode(&self) -> [u64; Away::WORDS] {
        let keys = self.data.rkey as u64 | (self.block.rkey as u64) << 32;
        [self.len, self.data.addr, keys, self.block.addr, self.generation as u64]
    }
    fn decode([len, addr, keys, block, generation]: [u64; Away::WORDS]) -> Away {
        let data = Place { addr, rkey: keys as u32 };
        Away { len, data, block: Place { addr: block, rkey: (keys >> 32) as u32 }, generation: generation as u32 }
    }

    /// Can a message lie there?
    fn is_possible(&self) -> bool {
        let ends = |place: Place, bytes: u64| place.addr.checked_add(bytes).is_some();
        self.len <= isize::MAX as u64
            && self.block.addr != 0
            && ends(self.data, self.len)
            && ends(self.block, PAGE as u64)
    }

    /// Fetches the message from its source, whose lane is `remote`. `offered`: a record says where it is by now.
    pub fn fetch(&self, remote: &Remote, offered: bool, to: Run) -> Result<()> {
        let local = to.first(self.len as usize);
        let (local, n) = (local.into(), local.len());
        let block = Source::new(self.block.addr, self.block.rkey, self.generation);
        if !offered {
            if n > 0 {
                block.fetch(remote, local, n, self.data.addr)?;
            }
            block.done(remote);
            return Ok(());
        }
        let mut data = self.data;
        // It is moved once, so at the third look at the latest it is where it was read.
        for _ in 0..3 {
            if n > 0 {
                transfer(remote, false, local, 0, n, PeerMemory::run(data.addr, data.rkey))?;
            }
            let now = self.record(remote)?;
            if now == data {
                block.done(remote);
                return Ok(());
            }
            data = now;
        }
        Err(remote.link.damaged("the record of a message that it offers"))
    }

    /// Where the message is now.
    fn record(&self, remote: &Remote) -> Result<Place> {
        let since = now_ns();
        loop {
            let there = PeerMemory::run(self.block.addr.wrapping_add(BLOCK_HEADER as u64), self.block.rkey);
            let words: [u64; 3] = fetch_words(remote, there)?;
            if words[2] == sum(self.generation as u64, &words[..2]) {
                return Ok(Place { addr: words[0], rkey: words[1] as u32 });
            }
            // The source writes three words, which takes long only while it is stopped.
            if now_ns() - since > TORN_NS {
                return Err(remote.link.damaged("the record of a message that it offers"));
            }
            crate::base::thread::yield_core();
        }
    }
}

/// What a sender of this process is doing to remote rings of others, for a receiver that asks because somebody died.
#[derive(Default)]
pub struct RemoteStakes(Mutex<Vec<Stake>>);

#[derive(Clone, Copy, PartialEq)]
struct Stake {
    rank: u32,
    ring: u64,
    /// `None`: it is being drawn.
    ticket: Option<u64>,
}

impl RemoteStakes {
    fn lock(&self) -> MutexGuard<'_, Vec<Stake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Has this process this ticket of the ring at this address of this rank, or may it just be drawing it?
    pub fn has(&self, rank: u32, ring: u64, ticket: u64) -> bool {
        self.lock().iter().any(|s| (s.rank, s.ring) == (rank, ring) && s.ticket.is_none_or(|t| t == ticket))
    }
    /// A ticket is about to be drawn.
    pub fn begin(&self, rank: u32, ring: u64) {
        self.lock().push(Stake { rank, ring, ticket: None });
    }
    /// It is drawn, or cannot be.
    pub fn hold(&self, rank: u32, ring: u64, ticket: Option<u64>) {
        let (mut all, drawing) = (self.lock(), Stake { rank, ring, ticket: None });
        if let Some(n) = all.iter().position(|s| *s == drawing) {
            match ticket {
                Some(_) => all[n].ticket = ticket,
                None => drop(all.swap_remove(n)),
            }
        }
    }
    /// What it was drawn for is on its way, or will never be.
    pub fn end(&self, rank: u32, ring: u64, ticket: u64) {
        self.remove(Stake { rank, ring, ticket: Some(ticket) });
    }
    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
    fn remove(&self, stake: Stake) {
        let mut all = self.lock();
        if let Some(n) = all.iter().position(|s| *s == stake) {
            all.swap_remove(n);
        }
    }
}

#[cfg(test)]
mod tests;
