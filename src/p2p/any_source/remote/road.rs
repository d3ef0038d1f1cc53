//! The sender's part of remote rings, and what is kept of long messages until their receivers have them.

mod payload;
mod several;
mod sought;

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Away, FREED_AT, HEAD, SENT_AT, SLOT, SLOTS_AT, Stake, host, is_too_many};
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::layout::Cursor;
use crate::base::lock::{Mutex, MutexGuard};
use crate::base::rules::{Rule, holds};
use crate::base::run::Run;
use crate::fabric::network::Place;
use crate::fabric::network::bounce::Bounce;
use crate::fabric::network::cache::Kept;
use crate::lane::record::BLOCK_HEADER;
use crate::lane::remote::{Call, Remote, sum};
use crate::lane::{BlockRef, Lane};
use crate::p2p::any_source::ring::{AREA_BYTES, Kind};
use crate::p2p::any_source::send::copy_into_spool;
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::remote::lend::{is_whole, keys_of};
use crate::p2p::remote::registered;
pub use payload::{Moved, Payload};
pub use several::place_at_all;
pub(in crate::p2p::any_source) use sought::FREED;
pub use sought::Sought;

/// Up to this many bytes a long message is copied into the spool at once rather than registered.
const COPIED_AT_ONCE: usize = 64 << 10;
/// How long a sender leaves a ring alone that is full, or not there yet, at first and at most.
pub(in crate::p2p::any_source) const PAUSE_NS: [u64; 2] = [50_000, 4_000_000];
/// In what a receiver says of its ring, behind the key: the logarithm of the slots, and from here on who has the counters, + 1; 0: itself.
pub(in crate::p2p::any_source) const HOST_AT: u32 = 36;

/// A remote ring of a rank on another node, as a sender.
pub struct RemoteRoad {
    lane: &'static Lane,
    index: usize,
    ring: Place,
    slots: u64,
    /// Processes that may send there.
    senders: u64,
    /// Where its counters are, if not with it.
    host: Option<Elsewhere>,
    state: Mutex<Known>,
    /// The receiver has freed the communicator; when a wait asks for that next, and for how long it waits for the answer.
    is_freed: AtomicBool,
    asks_ns: AtomicU64,
    hears_ns: AtomicU64,
}

/// Counters that another rank than the receiver has.
struct Elsewhere {
    lane: &'static Lane,
    place: Place,
    /// What is said of the receiver when that rank is gone.
    gone: String,
}

/// What is known of the ring.
#[derive(Default)]
struct Known {
    sent: u64,
    freed: u64,
    limit: u64,
    asleep: bool,
    /// A ticket that was drawn and is not used yet.
    held: Option<u64>,
    /// Not to be looked at again before, and the pause after that.
    until_ns: u64,
    pause_ns: u64,
}

impl Known {
    fn room(&self) -> u64 {
        if holds(Rule::SlotIsFree) { self.freed.saturating_add(self.limit) } else { u64::MAX }
    }
    /// Backs off: longer each time.
    fn rest(&mut self) {
        self.pause_ns = (2 * self.pause_ns).clamp(PAUSE_NS[0], PAUSE_NS[1]);
        self.until_ns = now_ns() + self.pause_ns;
    }
}

impl RemoteRoad {
    /// To the ring of which the receiver has said this.
    fn of(lane: &'static Lane, index: usize, [addr, key]: [u64; 2]) -> Option<RemoteRoad> {
        let host = match (key >> HOST_AT).checked_sub(1) {
            None => None,
            Some(host) => {
                let (there, place) = host::ask(host as u32, lane.world, host::name_of(addr, lane.epoch))?;
                let gone = format!("has the counters of its ring with rank {host}, which is gone:");
                Some(Elsewhere { lane: there, place, gone })
            }
        };
        let slots = 1 << (key >> 32 & ((1 << (HOST_AT - 32)) - 1));
        let (ring, senders) = (Place { addr, rkey: key as u32 }, endpoint().ok()?.size as u64);
        let (state, is_freed) = (Mutex::default(), AtomicBool::new(false));
        let (asks_ns, hears_ns) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(RemoteRoad { lane, index, ring, slots, senders, host, state, is_freed, asks_ns, hears_ns })
    }

    /// Where the counters are, and the connection to there.
    fn counters(&self) -> (&'static Remote, Place) {
        match &self.host {
            Some(host) => (host.lane.remote().expect("asked by a lane between nodes"), host.place),
            None => (self.remote(), self.ring),
        }
    }

    fn stake(&self, ticket: Option<u64>) -> Stake {
        Stake { rank: self.lane.world, ring: self.ring.addr, ticket }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remote(&self) -> &'static Remote {
        self.lane.remote().expect("made of a lane between nodes")
    }

    /// Why the receiver can do nothing any more; `None`: it can.
    pub fn gone(&self) -> Option<&str> {
        let freed = || self.is_freed.load(Ordering::Relaxed).then_some("has freed the communicator");
        self.lane
            .gone()
            .or_else(freed)
            .or_else(|| self.host.as_ref().filter(|h| h.lane.gone().is_some()).map(|h| &*h.gone))
    }

    /// How many messages may be outstanding, as far as is known.
    pub fn limit(&self) -> u64 {
        self.lock().limit
    }

    /// Takes over the counters that have been read into a part of a bounce buffer.
    fn note(&self, known: &mut Known, bounce: &Bounce<'_>, at: usize) -> Result<()> {
        let word = |offset: usize| bounce.word(at + offset);
        let (sent, freed) = (word(SENT_AT), word(FREED_AT));
        // Counted are processes, each of which has one ticket at most that there is no room for yet.
        if is_too_many(sent, freed, self.slots + self.senders) {
            return Err(self.damaged());
        }
        known.sent = known.sent.max(sent);
        known.freed = known.freed.max(freed);
        known.limit = match word(FREED_AT + 8) {
            0 => self.slots,
            n => n.min(self.slots),
        };
        known.asleep = word(FREED_AT + 16) != 0;
        Ok(())
    }

    /// Any of those who send there can have written to its counters, so nobody is suspected.
    #[cold]
    fn damaged(&self) -> Error {
        let (me, rank) = (self.remote().link.me, self.lane.world);
        let text = format!(
            "rank {me}: any-source send to rank {rank}: the counters of its ring have been damaged by some rank"
        );
        Error::new(Code::Peer, text)
    }

    /// Looks at the counters.
    fn look(&self, known: &mut Known) -> Result<()> {
        let (remote, at) = self.counters();
        self.look_at(known, remote, at)
    }

    fn look_at(&self, known: &mut Known, remote: &Remote, at: Place) -> Result<()> {
        let bounce = remote.fabric().bounce()?;
        let ticket = bounce.post(&remote.link, (false, true), 0, SLOTS_AT, at)?;
        remote.link.wait(ticket)?;
        self.note(known, &bounce, 0)
    }

    /// A ticket with room. `None`: the ring is full, as far as is known.
    fn claim(&self, ep: &Endpoint, known: &mut Known) -> Result<Option<u64>> {
        if known.held.map_or(known.sent, |t| t) >= known.room() {
            if now_ns() < known.until_ns {
                return Ok(None);
            }
            self.look(known)?;
        }
        let ticket = match known.held {
            Some(ticket) => ticket,
            None if known.sent >= known.room() => {
                known.rest();
                return Ok(None);
            }
            None => {
                self.draws(ep);
                let drawn = self.draw();
                self.has_drawn(ep, known, drawn)?
            }
        };
        if ticket >= known.room() {
            known.rest();
            return Ok(None);
        }
        known.pause_ns = 0;
        Ok(Some(ticket))
    }

    /// It is about to draw a ticket.
    fn draws(&self, ep: &Endpoint) {
        ep.any_source.remote_stakes.lock().push(self.stake(None));
    }

    /// It has, or could not.
    fn has_drawn(&self, ep: &Endpoint, known: &mut Known, drawn: Result<u64>) -> Result<u64> {
        let drawing = self.stake(None);
        match drawn {
            Ok(ticket) => {
                let mut all = ep.any_source.remote_stakes.lock();
                if let Some(stake) = all.iter_mut().find(|s| **s == drawing) {
                    stake.ticket = Some(ticket);
                }
            }
            Err(_) => ep.any_source.remote_stakes.remove(drawing),
        }
        let ticket = drawn?;
        if is_too_many(ticket, known.freed, self.slots + self.senders) {
            // It may be long since the counters were read.
            self.look(known)?;
        }
        known.sent = known.sent.max(ticket.saturating_add(1));
        known.held = Some(ticket);
        if ticket >= known.room() {
            self.look(known)?;
        }
        Ok(ticket)
    }

    /// The next ticket.
    fn draw(&self) -> Result<u64> {
        let (remote, at) = self.counters();
        let bounce = remote.fabric().bounce()?;
        bounce.draw(&remote.link, at)
    }

    /// Writes the record of a ticket and looks whether the receiver sleeps.
    fn publish(
        &self,
        ep: &Endpoint,
        known: &mut Known,
        ticket: u64,
        kind: Kind,
        len: u32,
        fill: &dyn Fn(&mut [u64]) -> usize,
    ) -> Result<()> {
        let bounce = self.remote().fabric().bounce()?;
        let over = self.post(ep, known, (&bounce, 0), ticket, (kind, len), fill);
        self.has_published(known, (&bounce, 0), over?)
    }

    /// Posts the record of a ticket, and a look at the counters behind it, by a part of a bounce buffer. What is then waited for.
    fn post(
        &self,
        ep: &Endpoint,
        known: &mut Known,
        (bounce, at): (&Bounce<'_>, usize),
        ticket: u64,
        (kind, len): (Kind, u32),
        fill: &dyn Fn(&mut [u64]) -> usize,
    ) -> Result<u64> {
        let remote = self.remote();
        let (end, slot) = self.compose(ep, (bounce, at), ticket, (kind, len), fill);
        let to = Place { addr: self.ring.addr.wrapping_add(slot), rkey: self.ring.rkey };
        bounce.post_followed(&remote.link, at + SLOTS_AT, end, to)?;
        // Behind the write: either the receiver sees the slot before it sleeps, or this sees that it does.
        let over = bounce.post(&remote.link, (false, true), at, SLOTS_AT, self.ring);
        if holds(Rule::TicketOnce) {
            known.held = None;
        }
        ep.any_source.remote_stakes.remove(self.stake(Some(ticket)));
        over
    }

    /// Composes the record of a ticket in a part of a bounce buffer: its bytes, and where its slot lies in the ring.
    fn compose(
        &self,
        ep: &Endpoint,
        (bounce, at): (&Bounce<'_>, usize),
        ticket: u64,
        (kind, len): (Kind, u32),
        fill: &dyn Fn(&mut [u64]) -> usize,
    ) -> (usize, u64) {
        const HEAD_WORDS: usize = HEAD / 8;
        // What the sum is of stands together, before it takes the place of the last word of the head.
        let mut words = [0u64; HEAD_WORDS + AREA_BYTES / 8];
        let end = HEAD_WORDS + fill(&mut words[HEAD_WORDS..]).div_ceil(8);
        let mark = ticket.wrapping_add(1) & 0xffff_ffff | (kind as u64) << 32 | (self.lane.epoch as u64) << 48;
        let source = ep.rank as u64 | (len as u64) << 32;
        words[2] = source;
        let check = sum(mark, &words[2..end]);
        words[..HEAD_WORDS].copy_from_slice(&[mark, source, check]);
        bounce.run().after(at + SLOTS_AT).write(&words[..end]);
        (8 * end, SLOTS_AT as u64 + ticket % self.slots * SLOT as u64)
    }

    /// Waits for that.
    fn has_published(&self, known: &mut Known, (bounce, at): (&Bounce<'_>, usize), over: u64) -> Result<()> {
        let remote = self.remote();
        remote.link.wait(over)?;
        self.note(known, bounce, at)?;
        if known.asleep {
            remote.call(Call::Wake);
        }
        Ok(())
    }

    /// Puts a message of up to [`AREA_BYTES`] bytes into a slot; its ticket. `None`: no room now.
    pub fn place(&self, ep: &Endpoint, data: Run) -> Result<Option<u64>> {
        let mut known = self.lock();
        let Some(ticket) = self.claim(ep, &mut known)? else { return Ok(None) };
        let fill = |to: &mut [u64]| {
            Cursor::new(data.into(), 0).gather_into(to);
            data.len()
        };
        self.publish(ep, &mut known, ticket, Kind::Area, data.len() as u32, &fill)?;
        Ok(Some(ticket))
    }

    /// The same for a message that lies with this process.
    pub fn place_away(&self, ep: &Endpoint, payload: &Payload) -> Result<Option<u64>> {
        let mut known = self.lock();
        let Some(ticket) = self.claim(ep, &mut known)? else { return Ok(None) };
        let words = payload.away.encode();
        let fill = |to: &mut [u64]| {
            to[..words.len()].copy_from_slice(&words);
            size_of_val(&words)
        };
        let kind = if payload.is_offered() { Kind::Offered } else { Kind::Spooled };
        self.publish(ep, &mut known, ticket, kind, 0, &fill)?;
        Ok(Some(ticket))
    }

    /// Uses a ticket up for which there is no message. `true`: there is one still.
    pub fn settle(&self, ep: &Endpoint) -> bool {
        let Ok(mut known) = self.state.try_lock() else { return true };
        if known.held.is_none() || self.gone().is_some() {
            return false;
        }
        match self.claim(ep, &mut known) {
            Ok(Some(ticket)) => {
                let _ = self.publish(ep, &mut known, ticket, Kind::Nothing, 0, &|_| 0);
                false
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Is the message of this ticket taken?
    pub fn is_taken(&self, ticket: u64) -> Result<bool> {
        let mut known = self.lock();
        if known.freed <= ticket && now_ns() >= known.until_ns {
            // What others are told may be behind.
            self.look_at(&mut known, self.remote(), self.ring)?;
            if known.freed <= ticket {
                known.rest();
            }
        }
        Ok(known.freed > ticket)
    }

    /// Is it worth looking again?
    pub fn is_due(&self) -> bool {
        now_ns() >= self.lock().until_ns
    }

    /// Messages that are sent and not taken, of all senders of other nodes.
    pub fn outstanding(&self) -> u64 {
        let mut known = self.lock();
        let home = self.host.is_none() || self.look_at(&mut known, self.remote(), self.ring).is_ok();
        if self.gone().is_some() || !home || self.look(&mut known).is_err() {
            return 0;
        }
        known.sent.saturating_sub(known.freed)
    }

    /// Prepares a long message. `None`: there is no room in the spool now. `copy`: it must not stay where it is.
    pub fn pack(&self, ep: &Endpoint, comm: i32, message: Run, timeout: i32) -> Result<Option<Payload>> {
        let (remote, len) = (self.remote(), message.len());
        let copy = || -> Result<Option<Payload>> {
            let Some(block) = copy_into_spool(ep, comm, message) else { return Ok(None) };
            self.payload(ep, block, None, message).map(Some)
        };
        // Where the network would follow the program into memory that it has unmapped, the message cannot be withdrawn while it is being read.
        let stays = remote.fabric().device().limits().holds_pages || len > ep.spool.budget(comm).limit();
        if timeout == 0 || timeout > 0 && (len <= COPIED_AT_ONCE || !stays) {
            return copy();
        }
        let Some(region) = registered(remote, message, false) else {
            let payload = copy()?;
            if payload.is_none() && len > ep.spool.budget(comm).limit() {
                return Err(error!(
                    Code::Memory,
                    "rank {}: any-source send of {len} bytes to another node: they cannot be registered with the RDMA device, and \
                         the spool is limited to {}",
                    ep.rank,
                    ep.spool.budget(comm).limit()
                ));
            }
            return Ok(payload);
        };
        let Some(block) = ep.spool.take(comm, 64, 0) else { return Ok(None) };
        self.payload(ep, block, Some(region), message).map(Some)
    }

    fn payload(&self, ep: &Endpoint, block: BlockRef, region: Option<Kept>, message: Run) -> Result<Payload> {
        let keys = keys_of(ep, self.remote(), block).inspect_err(|_| _ = ep.spool.give_back(block))?;
        let rkey = keys as u32;
        let start = ep.spool.bytes(block.at) as u64;
        let data = match &region {
            Some(region) => Place { addr: message.ptr() as u64, rkey: region.rkey() },
            None => Place { addr: start + BLOCK_HEADER as u64, rkey },
        };
        let generation = (keys >> 32) as u32;
        let away = Away { len: message.len() as u64, data, block: Place { addr: start, rkey }, generation };
        let payload = Payload { block, away, region };
        if payload.is_offered() {
            say_where(ep, &payload, data);
        }
        Ok(payload)
    }

    /// Copies an offered message into the spool, so that its memory is the program's again. It comes back if there is no room.
    pub fn withdraw(
        &self,
        ep: &Endpoint,
        comm: i32,
        message: Run,
        payload: Payload,
    ) -> std::result::Result<(), Payload> {
        let copy = copy_into_spool(ep, comm, message);
        let Some(copy) = copy else { return Err(payload) };
        let Some(keys) = keys_of(ep, self.remote(), copy).ok().filter(|keys| is_whole(*keys)) else {
            ep.spool.give_back(copy);
            return Err(payload);
        };
        let rkey = keys as u32;
        say_where(ep, &payload, Place { addr: ep.spool.bytes(copy.at) as u64 + BLOCK_HEADER as u64, rkey });
        ep.any_source.add_moved(Moved { payload, copy: Some(copy) });
        Ok(())
    }
}

/// Writes the record of an offer.
fn say_where(ep: &Endpoint, payload: &Payload, data: Place) {
    let words = [data.addr, data.rkey as u64];
    let check = sum(payload.away.generation as u64, &words);
    for (n, word) in (0..).zip([words[0], words[1], check]) {
        ep.spool.word(payload.block.at + BLOCK_HEADER as u64 + 8 * n).store(word, Ordering::SeqCst);
    }
    // What the program does with the message's memory comes after.
    crate::base::atomics::fence(crate::base::atomics::Ordering::SeqCst);
}
