//! Messages between nodes: what is done differently where the other side's memory is reached by RDMA.
//!
//! The decisions are those of `super::send`, [`super::receive`] and [`super::transfer`]; here is how a landing is posted, how bytes
//! are put into a posted buffer, and how a receiver fetches what lies in its sender's spool.
//!
//! | way | copies by a processor | needs |
//! |---|---|---|
//! | landing | 2 | up to [`REMOTE_INLINE`] bytes, everything before received |
//! | annex | 1 or 2 | up to 8 KiB, a part of the annex free |
//! | direct | none; 1 up to 64 KiB, from short runs or from a list | the receive posted, its memory registered |
//! | spooled, chain | 1 by the sender, 1 by the receiver (none into a long run) | nothing of the sender any more |

mod annex;
mod bulk;
mod chain;
mod forget;
pub(super) mod lend;
mod post;
mod short;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lend::{Source, keys_of};

use crate::base::error::Error;
use crate::base::layout::{Block as Shaped, Cursor, Form, Layout};
use crate::base::rules::{Rule, holds};
use crate::fabric::network::Place;
use crate::fabric::network::control::Hooks;
use crate::fabric::network::link::ending::Reason;
use crate::fabric::network::link::{COMMANDED, Last, Link};
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::record::*;
use crate::lane::remote::{self, Ask, Asked, Call, ChainStart, Part, REMOTE_INLINE, Remote, RemotePosting, WITHDRAWN};
use crate::lane::{BlockRef, Lane, SEND_CHAIN, SendState, WayTaken};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::p2p::transfer::Put;
use crate::wait::doorbell;
pub(super) use bulk::{PeerMemory, fetch_into, fetch_words, registered, transfer};
use bulk::{RUN_FROM, span, start};
pub use forget::Lately;
pub(super) use short::{recv_remote, send_remote};

impl Sender {
    /// Sends a short message without waiting; everything before it is received. `false`: not possible now, or never again.
    pub(super) fn place_remote(&mut self, remote: &Remote) -> bool {
        if self.len <= REMOTE_INLINE {
            let words: [u64; REMOTE_INLINE / 8] = Cursor::new(self.data, 0).gather_words();
            return self.land_remote(remote, Kind::RemoteInline, self.len, &words[..self.len.div_ceil(8)]);
        }
        if !self.request {
            self.posted_soon();
        }
        if self.posting().is(self.seq) {
            // Who sends short messages takes them for sent.
            self.later = false;
            match self.put(super::transfer::Ring::Never) {
                Put::Done | Put::Under(_) => return true,
                // The connection is broken, and whoever waits finds it so.
                Put::Failed(_) => return false,
                Put::NotNow => {}
            }
        }
        self.spool_by_landing(false)
    }

    /// Publishes by the landing at the peer. `false`: the connection has failed; the message is not sent, and who sends it finds the cause
    /// with the peer.
    #[must_use]
    pub(super) fn land_remote(&self, remote: &Remote, kind: Kind, inline_len: usize, words: &[u64]) -> bool {
        let land = Land::new(self.seq, self.got(), kind, inline_len, self.lane.epoch);
        let landed = remote.land(self.slot, if self.now { land.now() } else { land }, words).is_ok();
        if landed {
            self.sent(match kind {
                Kind::Direct => WayTaken::RemotePut,
                Kind::Spooled => WayTaken::RemoteSpool,
                _ => WayTaken::RemoteShort,
            });
        }
        landed
    }

    /// The [keys](keys_of) of a block of the spool. `None`: its memory cannot be registered.
    pub(super) fn remote_keys(&mut self, remote: &Remote, block: BlockRef) -> Option<u64> {
        let keys = keys_of(self.ep, remote, block).ok();
        self.unkeyed = keys.is_none();
        keys
    }

    /// Says where a spooled message lies, by the landing, as [`land_remote`](Sender::land_remote).
    #[must_use]
    pub(super) fn publish_spooled_remote(&self, remote: &Remote, at: u64, keys: u64) -> bool {
        remote.fabric().count_copied(self.len);
        let addr = self.ep.spool.bytes(at) as u64;
        let words = [self.len as u64, addr, keys];
        self.land_remote(remote, Kind::Spooled, 24, &words)
    }

    /// Tells the peer that its chain begins with this message.
    #[must_use]
    pub(super) fn begin_chain_remote(&self, remote: &Remote, block: BlockRef, keys: u64) -> bool {
        let told = remote.begin_chain(
            self.slot,
            ChainStart {
                first: self.seq,
                addr: self.ep.spool.bytes(block.at) as u64,
                key: keys as u32,
                generation: (keys >> 32) as u32,
                size: block.size,
            },
        );
        told.is_ok()
    }

    /// Is the message posted for, by a receiver on another node, where it cannot be put? Then it is fetched from the spool, however long it is.
    pub(super) fn is_to_be_fetched(&self, remote: &Remote) -> bool {
        remote.posting(self.slot, self.seq).is_some_and(|posting| place_of(&posting).is_none())
    }

    /// Puts the message into its posting, whose mark is set. The message is published when its bytes are on their way before it, and
    /// this returns when they have arrived: then the memory is the caller's again.
    pub(super) fn put_remote(&mut self, remote: &Remote) -> Put {
        let Some(posting) = remote.posting(self.slot, self.seq) else { return Put::NotNow };
        let Some(there) = place_of(&posting) else { return Put::NotNow };
        let n = self.len.min(posting.cap);
        let mut started = match start(remote, true, self.data, 0, n, there, Last::Followed) {
            Ok(started) => started,
            Err(e) => return Put::Failed(e),
        };
        self.take_landing();
        let landed = if remote.fabric().strict() {
            let land = Land::new(self.seq, self.got(), Kind::Direct, 16, self.lane.epoch);
            let land = if self.now { land.now() } else { land };
            let landed = remote.land_counted(self.slot, land, self.len as u64).is_ok();
            if landed {
                self.sent(WayTaken::RemotePut);
            }
            landed
        } else {
            self.land_remote(remote, Kind::Direct, 8, &[self.len as u64])
        };
        if self.later
            && landed
            && remote.link.failure().is_none()
            && let Some(mine) = remote.slot(self.slot)
            && let Some(left) = started.leave()
        {
            *mine.read.lock().unwrap_or_else(|e| e.into_inner()) = Some(left);
            return Put::Under(SendState::Read);
        }
        if !holds(Rule::ReadToTheEnd) {
            core::mem::forget(started);
            return Put::Done;
        }
        match started.finish_reading().and_then(|()| if landed { Ok(()) } else { remote.link.check() }) {
            Err(e) => Put::Failed(e),
            Ok(()) => Put::Done,
        }
    }

    /// Has the device read all of the memory of the request ([`SendState::Read`])? `wait`: until it has. When it has, or the connection has failed,
    /// the memory is the caller's again.
    pub(super) fn has_been_read(&self, wait: bool) -> Result<bool, Error> {
        let Some(remote) = self.lane.remote() else { return Ok(true) };
        let Some(mine) = remote.slot(self.slot) else { return Ok(true) };
        let mut read = mine.read.lock().unwrap_or_else(|e| e.into_inner());
        let Some((ticket, _)) = *read else { return Ok(true) };
        if !wait && !remote.link.is_read(ticket) && !remote.link.has_ended() {
            return Ok(false);
        }
        let ended = remote.link.wait_read(ticket);
        *read = None;
        ended.map(|()| true)
    }
}

impl Receiver {
    /// Delivers a message by its landing; its length. What the landing says is read from the front, not from the view, which lies in shared
    /// memory: so the peer is not asked for what another rank of this node has written there.
    pub(super) fn take_remote_landing(&self, remote: &Remote) -> Result<usize, Error> {
        if let Some((bytes, len)) = remote.in_annex(self.slot, self.seq, self.lane.epoch) {
            Cursor::new(self.data, 0).scatter(bytes.first(len.min(self.cap)));
            remote.came_by_annex(self.slot, true);
            return Ok(len);
        }
        let landing = remote.landing(self.slot).filter(|(land, _)| land.is(self.seq, self.lane.epoch));
        match landing.and_then(|(land, words)| arrived(land, words)) {
            Some(Arrived::Inline(len)) => {
                Cursor::new(self.data, 0).scatter(remote.landed(self.slot).first(len.min(self.cap)));
                Ok(len)
            }
            Some(Arrived::Put { len, counted }) => {
                if let Some(number) = counted {
                    remote.link.until_arrived(number)?;
                }
                remote.came_by_annex(self.slot, false);
                Ok(len)
            }
            Some(Arrived::Spooled { len, header, addr, keys }) => {
                let n = len.min(self.cap);
                let block = Source::new(addr - header, keys as u32, (keys >> 32) as u32);
                if n > 0 {
                    block.fetch(remote, self.data, n, addr)?;
                }
                block.done(remote);
                remote.came_by_annex(self.slot, false);
                Ok(len)
            }
            None => Err(self.garbled("a landing")),
        }
    }

    /// What follows the delivery: the registration ends, and the sender learns of it, now or with the next thing that goes there.
    pub(super) fn acknowledge_remote(&self, remote: &Remote, land: Option<Land>) {
        let Some(mine) = remote.slot(self.slot) else { return };
        remote.is_posted(self.slot);
        *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = None;
        match land {
            Some(land) => {
                let when = remote.acknowledges(self.lane.progress(self.slot), self.slot, self.seq, land);
                remote.acknowledge(self.slot, self.seq, when);
            }
            None => remote.note_received(self.slot, self.seq),
        }
    }
}

/// Where a message that is posted for is put. `None`: that memory is not registered, or lies in pieces, or in runs so short that one copy
/// more takes less than a request for each.
fn place_of(posting: &RemotePosting) -> Option<PeerMemory> {
    let mut there = PeerMemory::run(posting.addr, posting.key()?);
    if posting.kind() == PostingKind::Contiguous as u8 {
        return Some(there);
    }
    let [run, count, stride] = posting.shape;
    there.shape = Shaped { run: run as usize, count: count as usize, stride: stride as isize };
    (posting.kind() == PostingKind::Block as u8 && there.shape.run >= RUN_FROM).then_some(there)
}

/// What a landing says of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrived {
    /// So many bytes of it are in the landing.
    Inline(usize),
    /// It is in the posted buffer, or will be when so many writes have been counted.
    Put { len: usize, counted: Option<u64> },
    /// It lies at this address of the sender's spool, behind so many bytes of its block.
    Spooled { len: usize, header: u64, addr: u64, keys: u64 },
}

/// Takes a landing apart: its word, and the first of the words that come along. `None`: no sender says so.
fn arrived(land: Land, [first, second, third]: [u64; 3]) -> Option<Arrived> {
    let len = usize::try_from(first).ok().filter(|len| *len <= isize::MAX as usize);
    Some(match Kind::from_number(land.kind())? {
        Kind::RemoteInline if land.inline_len() <= REMOTE_INLINE => Arrived::Inline(land.inline_len()),
        Kind::Direct => Arrived::Put { len: len?, counted: (land.inline_len() == 16).then_some(second) },
        Kind::Spooled => {
            let (len, addr) = (len.filter(|len| *len <= SPOOL_WINDOW)?, second);
            let header = BLOCK_HEADER as u64 + if (len as u64) < LONG_LENGTH { 8 } else { 16 };
            addr.checked_sub(header).filter(|block| *block != 0)?;
            addr.checked_add(len as u64)?;
            Arrived::Spooled { len, header, addr, keys: third }
        }
        _ => return None,
    })
}

/// Writes a word of four bytes into the peer's spool.
pub(super) fn write_back(remote: &Remote, addr: u64, rkey: u32, word: u32) {
    remote.write_back(Place { addr, rkey }, word);
}

/// Takes a posting back at the peer. `false`: its message is there or being put; the posting stays.
pub(super) fn take_back(receiver: &Receiver, remote: &Remote) -> bool {
    let (lane, slot) = (receiver.lane, receiver.slot);
    remote.is_posted(slot);
    let key =
        || remote.slot(slot)?.buffer.lock().unwrap_or_else(|e| e.into_inner()).as_ref().map(|region| region.rkey());
    let key = key();
    let _ = remote.post(slot, 0, &WITHDRAWN);
    // The posting may have been what acknowledged the message before.
    remote.send_ack(slot);
    // Without a key nothing can be put there, so nobody need be asked.
    let asks = key.is_some() && holds(Rule::AsksBeforeTakingBack);
    let late = asks && remote.ask(Ask::Withdraw, slot, receiver.seq, || lane.gone().is_none()) == Some(true);
    if key.is_some() && lane.gone().is_some() {
        remote.link.fail(Reason::Other, "is cut off: a receive was withdrawn after it had gone".into());
    }
    if late || receiver.look().is_some() {
        lane.posting_here(slot).seq.store(receiver.seq, Ordering::Release);
        receiver.say_posted(remote, key);
        return false;
    }
    if let Some(mine) = remote.slot(slot) {
        *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = None;
    }
    true
}

/// What the fabric calls.
pub(super) fn hooks() -> Hooks {
    Hooks {
        on_number: Box::new(on_number),
        moves_on: Box::new(|| {
            if let Ok(ep) = endpoint() {
                ep.waiting_sends.push(ep);
            }
        }),
        came_up: Box::new(|link| {
            let Ok(ep) = endpoint() else { return };
            let lanes = ep.lanes.hold_remote(|_, remote| is_of(remote, link));
            // What was received without a connection too: its sender could not be forgotten.
            lanes.iter().map(|lane| lane.remote()).for_each(Remote::say_what_is_owed);
            if let Some(link) = ep.fabric_here().and_then(|fabric| fabric.known(link.peer)) {
                link.pages().iter().for_each(|page| ep.hears_what_is_broken(&link, page.lane()));
            }
            ring_all(ep);
            if ep.event.get().is_some() {
                lanes.iter().for_each(|lane| lane.remote().fall_asleep());
            }
        }),
        opened: Box::new(|link, number| {
            if let Ok(ep) = endpoint() {
                ep.hears_what_is_broken(link, number);
            }
        }),
        settle: Box::new(|link| {
            // What is not sent now is sent over the next connection.
            let lanes = endpoint()
                .map_or(Vec::new(), |ep| ep.lanes.try_hold_remote(|_, remote| is_of(remote, link) && link.is_up()));
            lanes.iter().for_each(|lane| lane.remote().pay_at_once());
        }),
        owes: Box::new(forget::owes),
        has_unmade: Box::new(forget::has_unmade),
        close: Box::new(forget::close),
        open: Box::new(forget::open),
        free: Box::new(forget::free),
        card_of: Box::new(|rank| endpoint()?.card_of(rank)),
        tables: Box::new(|| endpoint().ok()?.node_tables().map(Arc::new)),
    }
}

/// Does this lane use the link?
fn is_of(remote: &Remote, link: &Link) -> bool {
    std::ptr::eq(&*remote.link, link)
}

/// The peer of a lane, if there is one here, calls.
fn told(ep: &'static Endpoint, lane: Option<(&Lane, &Remote)>, call: Call) {
    let Some((lane, remote)) = lane else {
        // A sender that this side has no lane to, of a message of any source.
        if call == Call::Wake {
            ring_all(ep);
        }
        return;
    };
    match call {
        Call::Marks => {
            // It may have been posted while the mark was on its way.
            let posted = |slot: &usize| {
                let view = lane.posting_here(*slot);
                let seq = view.seq.load(Ordering::Acquire);
                seq != 0 && remote.is_pending(*slot, seq)
            };
            if remote.open_slots().filter(|s| *s < lane.limit() as usize).any(|slot| posted(&slot)) {
                remote.call(Call::Posted);
            }
        }
        Call::Posted => {
            ep.waiting_sends.push(ep);
        }
        Call::Sleeps => remote.confirm_sleep(),
        Call::Noted | Call::Wake | Call::Asks => {
            remote.set_noted(call == Call::Noted);
            ring_all(ep);
            if ep.event.get().is_some() && call == Call::Wake {
                remote.fall_asleep();
            }
        }
    }
}

/// Serves a peer that asks; called by the thread of the fabric.
fn on_number(link: &Arc<Link>, number: u32) {
    if number == COMMANDED {
        if let Some(come) = endpoint().ok().and_then(|ep| ep.on_command.get()) {
            come();
        }
        return;
    }
    let Some((call, number)) = Call::of(number) else { return };
    let Ok(ep) = endpoint() else {
        // Between the others' start and the end of ours.
        if call == Call::Asks {
            remote::answer(link, number, |_| None);
        }
        return;
    };
    let held = ep.lanes.hold_remote(|_, remote| is_of(remote, link) && remote.number() as u32 & 0xfff_ffff == number);
    let lane = held.first();
    if call != Call::Asks {
        return told(ep, lane.map(|lane| (&**lane, lane.remote())), call);
    }
    remote::answer(link, number, |Asked { what, slot, seq, at }| {
        let yes = match what {
            Ask::Ring => {
                link.is_told_of_a_ring();
                return ep.any_source.serve_ring(ep, (number, slot as i32), link.peer, seq != 0, at);
            }
            Ask::Counters => {
                let fabric = ep.fabric_here()?;
                let receiver = u32::try_from(seq).ok().filter(|rank| *rank < ep.size)?;
                return ep.any_source.guests.serve(fabric, receiver, at);
            }
            Ask::Ticket => ep.any_source.remote_stakes.has(link.peer, at, seq),
            // SYNC POINT: pairs with `Sender::put`: either it sees the posting gone, or this sees its mark.
            Ask::Withdraw => {
                if !doorbell::barrier() && ep.region.header().is_reached() {
                    doorbell::pause();
                }
                lane.filter(|lane| slot < lane.limit() as usize).is_some_and(|lane| {
                    lane.take_over_outgoing(slot);
                    lane.head(lane.out, slot).mark.load(Ordering::Acquire) == (seq << 2 | PUTS)
                })
            }
            Ask::Lend => return lend::lend(ep, link, at),
            Ask::Block => return ep.any_source.serve_block(link.peer, u32::try_from(at).ok()?, seq),
            Ask::Subscribe => {
                if !doorbell::barrier() {
                    doorbell::pause();
                }
                lane.is_some()
            }
            Ask::Claim => {
                doorbell::barrier();
                let used = lane.and_then(|lane| super::any_index::grant(lane, lane.remote(), slot, seq));
                return used.map(|used| [u64::from(used), 0]);
            }
        };
        yes.then_some([0; 2])
    });
}

/// Wakes whoever sleeps in this process.
fn ring_all(ep: &Endpoint) {
    let board = ep.board();
    doorbell::ring(&board.bell, u32::MAX);
    if ep.event.get().is_some() {
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

/// Marks of a lane's slots on which something may have come: all that are open, the lowest last.
pub(super) fn all_slots(remote: &Remote, limit: usize, first: usize) -> Vec<u32> {
    let mut all: Vec<u32> = remote.open_slots().filter(|s| (first..limit).contains(s)).map(|s| s as u32).collect();
    all.reverse();
    all
}

impl Endpoint {
    /// What a lasting wait for a peer does meanwhile: tends the connection, and moves other sends of this process on. `true`: there is more
    /// to be done that nobody wakes it for.
    pub(super) fn meanwhile(&'static self, lane: &Lane) -> bool {
        if let Some(remote) = lane.remote() {
            remote.tend();
        }
        let more = self.waiting_sends.push(self);
        more | self.any_source.push(self)
    }
}

#[cfg(test)]
mod tests;
