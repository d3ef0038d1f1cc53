//! Messages between nodes: what is done differently where the other side's memory is reached by RDMA.
//!
//! The decisions are those of `super::send`, [`super::receive`] and [`super::transfer`]; here is how a landing is posted, how bytes
//! are put into a posted buffer, and how a receiver fetches what lies in its sender's spool.
//!
//! | way | copies by a processor | needs |
//! |---|---|---|
//! | landing | 2 | up to [`FAR_INLINE`] bytes, everything before received |
//! | direct | none; 1 up to 64 KiB, from short runs or from a list | the receive posted, its memory registered |
//! | spooled, chain | 1 by the sender, 1 by the receiver (none into a long run) | nothing of the sender any more |

mod bulk;
pub(super) mod lend;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lend::{Source, keys_of};

use crate::base::error::Error;
use crate::fabric::verbs::Place;
use crate::fabric::verbs::control::Hooks;
use crate::fabric::verbs::link::ending::Reason;
use crate::fabric::verbs::link::{COMMANDED, Link};
use crate::lane::far::{self, Ask, Asked, Call, ChainStart, FAR_INLINE, Far, FarPosting, HINT_KEYED, WITHDRAWN};
use crate::lane::record::*;
use crate::lane::{BlockRef, Lane};
use crate::p2p::endpoint::{Endpoint, endpoint};
use crate::p2p::layout::{Block as Shaped, Cursor, Layout};
use crate::p2p::receive::Receiver;
use crate::p2p::send::Sender;
use crate::p2p::transfer::Put;
use crate::wait::doorbell;
use bulk::{RUN_FROM, span, start};
pub(super) use bulk::{Remote, registered, transfer};

/// Receive buffers of fewer bytes are not registered: their messages come by landing or through the spool.
const REGISTER_FROM: usize = 16 << 10;
/// Bytes of a chain that are fetched at a time.
const PIECE: u64 = 4096;

impl Sender {
    /// Sends a short message without waiting; everything before it is received. `false`: not possible now, or never again.
    pub(super) unsafe fn place_far(&mut self, far: &Far) -> bool {
        if self.len <= FAR_INLINE {
            let mut words = [0u64; FAR_INLINE / 8];
            // SAFETY: the data is readable, as the caller promises; up to FAR_INLINE bytes into as many.
            unsafe { Cursor::new(self.data, 0).gather(words.as_mut_ptr().cast(), self.len) };
            return self.land_far(far, Kind::FarInline, self.len, &words[..self.len.div_ceil(8)]);
        }
        if self.posting().is(self.seq) {
            // Who sends short messages takes them for sent.
            self.later = false;
            // SAFETY: as above.
            match unsafe { self.put(super::transfer::Ring::Never) } {
                Put::Done | Put::Read => return true,
                // The connection is broken, and whoever waits finds it so.
                Put::Failed(_) => return false,
                Put::NotNow => {}
            }
        }
        // SAFETY: as above.
        unsafe { self.spool_by_landing(false) }
    }

    /// Publishes by the landing at the peer. `false`: the connection has failed; the message is not sent, and who sends it finds the cause
    /// with the peer.
    #[must_use]
    pub(super) fn land_far(&self, far: &Far, kind: Kind, inline_len: usize, words: &[u64]) -> bool {
        let land = Land::new(self.seq, self.got(), kind, inline_len, self.lane.epoch);
        let landed = far.land(self.slot, if self.now { land.now() } else { land }, words).is_ok();
        if landed {
            self.sent();
        }
        landed
    }

    /// The [keys](keys_of) of a block of the spool. `None`: its memory cannot be registered.
    pub(super) fn far_keys(&mut self, far: &Far, block: BlockRef) -> Option<u64> {
        let keys = keys_of(self.ep, far, block).ok();
        self.unkeyed = keys.is_none();
        keys
    }

    /// Says where a spooled message lies, by the landing, as [`land_far`](Sender::land_far).
    #[must_use]
    pub(super) fn publish_spooled_far(&self, far: &Far, at: u64, keys: u64) -> bool {
        far.fabric().count_copied(self.len);
        let addr = self.ep.spool.bytes(at) as u64;
        let words = [self.len as u64, addr, keys];
        self.land_far(far, Kind::Spooled, 24, &words)
    }

    /// Tells the peer that its chain begins with this message. If that fails so does [`Far::tail`], which says that it is there.
    pub(super) fn begin_chain_far(&self, far: &Far, block: BlockRef, keys: u64) {
        let _ = far.begin_chain(
            self.slot,
            ChainStart {
                first: self.seq,
                addr: self.ep.spool.bytes(block.at) as u64,
                key: keys as u32,
                generation: (keys >> 32) as u32,
                size: block.size,
            },
        );
    }

    /// Puts the message into its posting, whose mark is set. The message is published when its bytes are on their way before it, and
    /// this returns when they have arrived: then the memory is the caller's again.
    pub(super) unsafe fn put_far(&mut self, far: &Far) -> Put {
        let Some(posting) = far.posting(self.slot, self.seq) else { return Put::NotNow };
        let Some(key) = posting.key() else { return Put::NotNow };
        let n = self.len.min(posting.cap);
        let contiguous = posting.kind() == PostingKind::Contiguous as u8;
        let shape = Shaped {
            run: posting.shape[0] as usize,
            count: posting.shape[1] as usize,
            stride: posting.shape[2] as isize,
        };
        if !contiguous && (posting.kind() != PostingKind::Block as u8 || shape.run < RUN_FROM) {
            return Put::NotNow;
        }
        let mut remote = Remote::run(posting.addr, key);
        if !contiguous {
            remote.shape = shape;
        }
        // SAFETY: the data is readable, as the caller promises; the posting is ours until we publish.
        let mut started = match unsafe { start(far, true, self.data, 0, n, remote) } {
            Ok(started) => started,
            Err(e) => return Put::Failed(e),
        };
        self.take_landing();
        let landed = if far.fabric().strict() {
            let land = Land::new(self.seq, self.got(), Kind::Direct, 16, self.lane.epoch);
            let land = if self.now { land.now() } else { land };
            let landed = far.land_counted(self.slot, land, self.len as u64).is_ok();
            if landed {
                self.sent();
            }
            landed
        } else {
            self.land_far(far, Kind::Direct, 8, &[self.len as u64])
        };
        if self.later
            && landed
            && far.link.failure().is_none()
            && let Some(mine) = far.slot(self.slot)
            && let Some(left) = started.leave()
        {
            *mine.read.lock().unwrap_or_else(|e| e.into_inner()) = Some(left);
            return Put::Read;
        }
        match started.finish().and_then(|()| if landed { Ok(()) } else { far.link.check() }) {
            Err(e) => Put::Failed(e),
            Ok(()) => Put::Done,
        }
    }

    /// Has the device read all of the memory of the request ([`Put::Read`])? `wait`: until it has. When it has, or the connection has failed,
    /// the memory is the caller's again.
    pub(super) fn has_been_read(&self, wait: bool) -> Result<bool, Error> {
        let Some(far) = self.lane.far() else { return Ok(true) };
        let Some(mine) = far.slot(self.slot) else { return Ok(true) };
        let mut read = mine.read.lock().unwrap_or_else(|e| e.into_inner());
        let Some((ticket, _)) = *read else { return Ok(true) };
        if !wait && !far.link.is_over(ticket) && far.link.failure().is_none() {
            return Ok(false);
        }
        let ended = far.link.wait(ticket);
        *read = None;
        ended.map(|()| true)
    }
}

impl Receiver {
    /// Posts at the peer, with the buffer registered if it is worth it.
    pub(super) fn post_far(&self, far: &Far, addr: *mut u8, kind: PostingKind, shape: [u64; 3]) {
        let cap = if self.wants_loan { 0 } else { self.cap };
        let span = span(&self.data, 0, cap);
        // SAFETY: the buffer is the receive's until that is completed or withdrawn, and the registration ends with it.
        let region =
            span.filter(|_| cap >= REGISTER_FROM).and_then(|(at, len)| unsafe { registered(far, at, len, true) });
        let hint = if region.is_some() { HINT_KEYED } else { 0 };
        let key = region.as_ref().map_or(0, |r| r.rkey());
        let meta = Posting::meta(kind, hint, self.lane.epoch) | (key as u64) << 32;
        self.lane.posting_here(self.slot).meta.store(meta, Ordering::Relaxed);
        if let Some(mine) = far.slot(self.slot) {
            *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = region;
        }
        let _ = far.post(self.slot, self.seq, &FarPosting { addr: addr as u64, cap, meta, shape });
        if far.is_pending(self.slot, self.seq) {
            far.call(Call::Posted);
        }
    }

    /// The chain begins with this message.
    pub(super) fn enter_chain_far(&self, far: &Far) -> bool {
        let Some(start) = far.chain_start(self.slot).filter(|s| s.first == self.seq) else { return false };
        let Some(mine) = far.slot(self.slot) else { return false };
        let mut chain = mine.chain.lock().unwrap_or_else(|e| e.into_inner());
        (chain.addr, chain.key) = (start.addr, start.key);
        (chain.generation, chain.size) = (start.generation, start.size);
        chain.next = BLOCK_HEADER as u64;
        chain.sure = 0;
        chain.piece.clear();
        true
    }

    /// Looks for the next record of the chain; its word.
    pub(super) fn look_in_far_chain(&self, far: &Far) -> Option<u64> {
        let mine = far.slot(self.slot)?;
        let mut chain = mine.chain.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            let tail = far.chain_tail(self.slot);
            if tail < self.seq {
                return None;
            }
            let have = |chain: &far::FarChain, bytes: u64| {
                chain.sure >= self.seq
                    && chain.next >= chain.from
                    && chain.next + bytes <= chain.from + chain.piece.len() as u64
            };
            let left = chain.size.saturating_sub(chain.next);
            if left < 8 {
                return None;
            }
            if !have(&chain, 24.min(left)) {
                let n = PIECE.min(left) as usize;
                let from = chain.next;
                let (block, there) = (source(&chain), chain.addr + from);
                chain.piece.resize(n, 0);
                let to = Layout::Contiguous { ptr: chain.piece.as_mut_ptr(), len: n };
                // SAFETY: the piece has room; the sender keeps the block until this side has marked it done.
                if unsafe { block.fetch(far, to, n, there) }.is_err() {
                    chain.piece.clear();
                    return None;
                }
                (chain.from, chain.sure) = (from, tail);
            }
            let word = word_at(&chain, 0);
            if word as u32 != self.seq as u32 || word == 0 {
                return None;
            }
            if (word >> 32) as u8 != Kind::Link as u8 {
                return Some(word);
            }
            // A link: the address of the next block, its key and generation; its size in the word, in units of 256 bytes.
            let (addr, keys) = (word_at(&chain, 8), word_at(&chain, 16));
            finish_block(far, &chain);
            (chain.addr, chain.key, chain.generation) = (addr, keys as u32, (keys >> 32) as u32);
            chain.size = (word >> 40) * 256;
            chain.next = BLOCK_HEADER as u64;
            chain.sure = 0;
        }
    }

    /// The length of the record that was found.
    pub(super) fn far_record_len(&self, far: &Far, word: u64) -> usize {
        if word >> 40 < LONG_LENGTH {
            return (word >> 40) as usize;
        }
        far.slot(self.slot).map_or(0, |m| word_at(&m.chain.lock().unwrap_or_else(|e| e.into_inner()), 8) as usize)
    }

    /// The block of the chain will not be looked at again.
    pub(super) fn finish_block_far(&self, far: &Far) {
        if let Some(mine) = far.slot(self.slot) {
            finish_block(far, &mine.chain.lock().unwrap_or_else(|e| e.into_inner()));
        }
    }

    /// Delivers a record of the chain; its length.
    pub(super) unsafe fn take_far_record(&self, far: &Far, word: u64) -> Result<usize, Error> {
        let len = self.far_record_len(far, word);
        let n = len.min(self.cap);
        let Some(mine) = far.slot(self.slot) else { return Ok(len) };
        let mut chain = mine.chain.lock().unwrap_or_else(|e| e.into_inner());
        let payload = if (len as u64) < LONG_LENGTH { 8 } else { 16 };
        let at = chain.next + payload;
        let offset = (at - chain.from) as usize;
        if offset + n <= chain.piece.len() {
            // SAFETY: the piece has the bytes, the buffer room for them.
            unsafe { Cursor::new(self.data, 0).scatter(chain.piece.as_ptr().add(offset), n) };
        } else {
            // SAFETY: the buffer has room; the sender keeps the block until it is marked done.
            unsafe { source(&chain).fetch(far, self.data, n, chain.addr + at)? };
        }
        chain.next += record_bytes(len) as u64;
        write_back(far, chain.addr + 64, chain.key, self.seq as u32);
        Ok(len)
    }

    /// Delivers a message by its landing; its length.
    pub(super) unsafe fn take_far_landing(&self, far: &Far, land: Land, words: [u64; 2]) -> Result<usize, Error> {
        match Kind::from_number(land.kind()) {
            Some(Kind::FarInline) => {
                let len = land.inline_len().min(FAR_INLINE);
                // SAFETY: the landing has `len` bytes until it is acknowledged, the buffer room for those that fit.
                unsafe { Cursor::new(self.data, 0).scatter(far.landed(self.slot), len.min(self.cap)) };
                Ok(len)
            }
            Some(Kind::Direct) => {
                if land.inline_len() == 16 {
                    far.link.until_arrived(words[1])?;
                }
                Ok(words[0] as usize)
            }
            Some(Kind::Spooled) => {
                let (len, addr) = (words[0] as usize, words[1]);
                // SAFETY: three words were published with this landing.
                let keys = unsafe { far.landed(self.slot).cast::<u64>().add(2).read() };
                let n = len.min(self.cap);
                let header = BLOCK_HEADER as u64 + if (len as u64) < LONG_LENGTH { 8 } else { 16 };
                let block = Source::new(addr - header, keys as u32, (keys >> 32) as u32);
                if n > 0 {
                    // SAFETY: the buffer has room; the sender keeps the block until it is marked done.
                    unsafe { block.fetch(far, self.data, n, addr)? };
                }
                block.done(far);
                Ok(len)
            }
            _ => Err(self.garbled("a landing of a kind that does not exist between nodes")),
        }
    }

    /// What follows the delivery: the registration ends, and the sender learns of it, now or with the next thing that goes there.
    pub(super) fn acknowledge_far(&self, far: &Far, land: Option<Land>) {
        let Some(mine) = far.slot(self.slot) else { return };
        *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = None;
        let now = land.is_some_and(|l| l.kind() == Kind::Spooled as u8 || l.is_now());
        match land {
            Some(_) => far.acknowledge(self.slot, self.seq, now),
            None => far.note_received(self.slot, self.seq),
        }
    }
}

fn word_at(chain: &far::FarChain, beyond: u64) -> u64 {
    let at = (chain.next - chain.from + beyond) as usize;
    chain.piece.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("eight bytes")))
}

/// The block of a chain.
fn source(chain: &far::FarChain) -> Source {
    Source::new(chain.addr, chain.key, chain.generation)
}

fn finish_block(far: &Far, chain: &far::FarChain) {
    source(chain).done(far);
}

/// Writes a word of four bytes into the peer's spool.
pub(super) fn write_back(far: &Far, addr: u64, rkey: u32, word: u32) {
    let _ = far.link.write(Place { addr, rkey }, 0, |record| {
        record[..4].copy_from_slice(&word.to_ne_bytes());
        4
    });
}

/// Takes a posting back at the peer. `false`: its message is there or being put; the posting stays.
pub(super) fn take_back(receiver: &Receiver, far: &Far) -> bool {
    let (lane, slot) = (receiver.lane, receiver.slot);
    let view = lane.posting_here(slot);
    let meta = view.meta.load(Ordering::Relaxed);
    let _ = far.post(slot, 0, &WITHDRAWN);
    // The posting may have been what acknowledged the message before.
    far.send_ack(slot);
    let keyed = (meta >> 8) as u8 & HINT_KEYED != 0;
    // Without a key nothing can be put there, so nobody need be asked.
    let late = keyed && far.ask(Ask::Withdraw, slot, receiver.seq, || lane.gone().is_none()) == Some(true);
    if lane.gone().is_some() {
        far.link.fail(Reason::Other, "is cut off: a receive was withdrawn after it had gone".into());
    }
    if late || receiver.look().is_some() {
        view.seq.store(receiver.seq, Ordering::Release);
        let shape = lane.shape(lane.inn, slot);
        let shape = [&shape.run, &shape.count, &shape.stride].map(|w| w.load(Ordering::Relaxed));
        let (addr, cap) = (view.addr.load(Ordering::Relaxed), view.cap.load(Ordering::Relaxed) as usize);
        let _ = far.post(slot, receiver.seq, &FarPosting { addr, cap, meta, shape });
        return false;
    }
    if let Some(mine) = far.slot(slot) {
        *mine.buffer.lock().unwrap_or_else(|e| e.into_inner()) = None;
    }
    true
}

/// What the fabric calls.
pub(super) fn hooks() -> Hooks {
    Hooks {
        on_number: Box::new(on_number),
        came_up: Box::new(|link| {
            let Ok(ep) = endpoint() else { return };
            ring_all(ep);
            if ep.event.get().is_some() {
                ep.lanes.hold(|_, far| is_of(far, link)).iter().for_each(|lane| lane.far().fall_asleep());
            }
        }),
        settle: Box::new(|link| {
            // What is not sent now is sent over the next connection.
            let lanes =
                endpoint().map_or(Vec::new(), |ep| ep.lanes.try_hold(|_, far| is_of(far, link) && link.is_up()));
            lanes.iter().for_each(|lane| lane.far().pay_at_once());
        }),
        card_of: Box::new(|rank| endpoint()?.card_of(rank)),
        tables: Box::new(|| endpoint().ok()?.node_tables()),
    }
}

/// Does this lane use the link?
fn is_of(far: &Far, link: &Link) -> bool {
    std::ptr::eq(&*far.link, link)
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
            far::answer(link, number, |_| None);
        }
        return;
    };
    let held = ep.lanes.hold(|_, far| is_of(far, link) && far.number() as u32 & 0xfff_ffff == number);
    let lane = held.first();
    if call != Call::Asks {
        let Some((lane, far)) = lane.map(|lane| (lane, lane.far())) else {
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
                    seq != 0 && far.is_pending(*slot, seq)
                };
                if far.open_slots().filter(|s| *s < lane.limit() as usize).any(|slot| posted(&slot)) {
                    far.call(Call::Posted);
                }
            }
            Call::Posted => {
                ep.waiting_sends.push(ep);
            }
            Call::Sleeps => far.confirm_sleep(),
            Call::Noted | Call::Wake | Call::Asks => {
                far.set_noted(call == Call::Noted);
                ring_all(ep);
                if ep.event.get().is_some() && call == Call::Wake {
                    far.fall_asleep();
                }
            }
        }
        return;
    }
    far::answer(link, number, |Asked { what, slot, seq, at }| {
        let yes = match what {
            Ask::Ring => return ep.any_source.serve_ring(ep, number, slot as i32, link.peer, seq != 0),
            Ask::Counters => {
                let fabric = ep.fabric_here()?;
                return ep.any_source.guests.serve(fabric, u32::try_from(seq).ok()?, at);
            }
            Ask::Ticket => ep.any_source.far_stakes.has(link.peer, at, seq),
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
            Ask::Subscribe => {
                if !doorbell::barrier() {
                    doorbell::pause();
                }
                lane.is_some()
            }
            Ask::Claim => {
                doorbell::barrier();
                lane.is_some_and(|lane| super::any_index::grant(lane, slot, seq))
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
pub(super) fn all_slots(far: &Far, limit: usize, first: usize) -> Vec<u32> {
    let mut all: Vec<u32> = far.open_slots().filter(|s| (first..limit).contains(s)).map(|s| s as u32).collect();
    all.reverse();
    all
}

impl Endpoint {
    /// What a lasting wait for a peer does meanwhile: tends the connection, and moves other sends of this process on. `true`: there is more
    /// to be done that nobody wakes it for.
    pub(super) fn meanwhile(&'static self, lane: &Lane) -> bool {
        if let Some(far) = lane.far() {
            far.tend();
        }
        self.waiting_sends.push(self)
    }
}
