//! Who may use an index: at most one thread sends and one thread receives on a (peer, index) at a time.
//!
//! The raw interface leaves that to its caller. The safe one claims each direction of a (peer, index) before it uses it: for the
//! length of a call, of a request, or of a [`Channel`](super::Channel). A claim is one atomic exchange on a byte of its own and never
//! waits; who comes second gets [`Code::Busy`].
//!
//! ```text
//!  table ── peer ── page of 1024 indices, made when the first of them is claimed
//!             │        [send: one byte an index] [receive: one byte an index]
//!             └ any: NONE | IDLE | BUSY
//! ```
//! So it is for peers on this node. Of those on others a rank may meet millions, one after the other; what is claimed of them is kept only
//! while it is held, in [`elsewhere`].
//!
//! **Any index.** A receive of any index of a source excludes all indexed receives from it. Both sides write first and then look
//! at what the other wrote, all sequentially consistent, so at least one of them sees the other and steps back. The any-index
//! side looks through all bytes only when an indexed receive has come in between: it leaves `IDLE` behind, which an indexed
//! receive must turn back into `NONE`; while it stands there, nobody but any-index receives has been here.
//!
//! **The gate.** What is in the spool is counted over all indices at once, while no thread sends. The counter closes the gate, looks
//! for senders, and opens it again; a sender that finds it closed waits that moment.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, Weak};

use crate::base::by_rank::ByRank;
use crate::base::error::{Code, Error, Result, error};
use crate::base::published::Published;
use crate::lane::map::INDEX_MAX;
use crate::p2p::context::Context;
use crate::p2p::endpoint::endpoint;
use elsewhere::{Elsewhere, Held};

mod elsewhere;

const PAGE_INDICES: usize = 1024;
const PAGES: usize = INDEX_MAX.div_ceil(PAGE_INDICES);

const NONE: u8 = 0;
const IDLE: u8 = 1;
const BUSY: u8 = 2;

/// Sending or receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sending.
    Send = 0,
    /// Receiving.
    Receive = 1,
}

struct Page {
    taken: [[AtomicU8; PAGE_INDICES]; 2],
}

impl Page {
    fn new() -> Page {
        Page { taken: [const { [const { AtomicU8::new(0) }; PAGE_INDICES] }; 2] }
    }

    /// Neighbouring indices lie in different cache lines, so that threads on them do not disturb each other.
    fn byte(&self, direction: Direction, index: usize) -> &AtomicU8 {
        let place = (index % 16) * 64 + index % PAGE_INDICES / 16;
        &self.taken[direction as usize][place]
    }

    fn is_free(&self, direction: Direction) -> bool {
        self.taken[direction as usize].iter().all(|b| b.load(Ordering::SeqCst) == 0)
    }
}

struct OfPeer {
    any: AtomicU8,
    pages: [Published<Page>; PAGES],
}

impl OfPeer {
    fn new() -> OfPeer {
        OfPeer { any: AtomicU8::new(NONE), pages: [const { Published::nothing() }; PAGES] }
    }

    fn pages(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter().filter_map(Published::get)
    }

    fn is_free(&self, direction: Direction) -> bool {
        self.pages().all(|page| page.is_free(direction))
    }
}

/// All claims of this process. Shared by every [`Job`](super::Job) of the process, since all of them use the same indices.
pub struct Claims {
    peers: ByRank<Published<OfPeer>>,
    elsewhere: Elsewhere,
    gate: AtomicBool,
    collective: AtomicBool,
}

/// The tables that are in use: the world's of the job that is open, so that a further init finds it, and one for each other
/// communicator.
static TABLES: Mutex<Tables> = Mutex::new(Tables { world: Weak::new(), others: Vec::new() });

struct Tables {
    world: Weak<Claims>,
    others: Vec<Weak<Claims>>,
}

impl Claims {
    /// The table of the job, for a job of `size` ranks.
    pub fn of_job(size: usize) -> Arc<Claims> {
        let mut tables = TABLES.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(claims) = tables.world.upgrade() {
            return claims;
        }
        let claims = Arc::new(Claims::new(size));
        tables.world = Arc::downgrade(&claims);
        claims
    }

    /// The table of a new communicator of `size` ranks.
    pub fn of_communicator(size: usize) -> Arc<Claims> {
        let claims = Arc::new(Claims::new(size));
        let mut tables = TABLES.lock().unwrap_or_else(|e| e.into_inner());
        tables.others.retain(|c| c.strong_count() != 0);
        tables.others.push(Arc::downgrade(&claims));
        claims
    }

    /// All tables of the process.
    fn all() -> Vec<Arc<Claims>> {
        let tables = TABLES.lock().unwrap_or_else(|e| e.into_inner());
        tables.others.iter().chain([&tables.world]).filter_map(Weak::upgrade).collect()
    }

    /// Runs something while no thread of the process sends, on any communicator. [`Code::Busy`] when one does.
    pub fn while_none_sends_anywhere<R>(call: impl FnOnce() -> R) -> Result<R> {
        fn behind<R>(all: &[Arc<Claims>], call: impl FnOnce() -> R) -> Result<R> {
            let Some((first, others)) = all.split_first() else { return Ok(call()) };
            first.while_none_sends(|| behind(others, call))?
        }
        behind(&Claims::all(), call)
    }

    fn new(size: usize) -> Claims {
        Claims {
            peers: ByRank::new(size as u32),
            elsewhere: Elsewhere::default(),
            gate: AtomicBool::new(false),
            collective: AtomicBool::new(false),
        }
    }

    /// The table of a peer; `None`: it is on another node.
    #[inline]
    fn peer(&self, comm: i32, peer: i32, index: i32) -> Result<Option<&OfPeer>> {
        match u32::try_from(peer).ok().and_then(|p| self.peers.get(p)).and_then(Published::get) {
            Some(there) => Ok(Some(there)),
            None => self.new_peer(comm, peer, index),
        }
    }

    #[cold]
    fn new_peer(&self, comm: i32, peer: i32, index: i32) -> Result<Option<&OfPeer>> {
        let rank = u32::try_from(peer).ok().filter(|rank| *rank < self.peers.size());
        match rank.filter(|_| !is_elsewhere(comm, peer)) {
            Some(rank) => Ok(self.peers.get_or_make(rank).map(|slot| slot.get_or_make(OfPeer::new))),
            None if rank.is_some() => Ok(None),
            None => Err(refused(comm, peer, index)),
        }
    }

    /// Claims one direction of (peer, index).
    #[inline]
    pub fn claim(&self, comm: i32, direction: Direction, peer: i32, index: i32) -> Result<Claim<'_>> {
        let claim = self.take(comm, direction, peer, index)?;
        // SYNC POINT: pairs with `close`: it sees the claim, or this sees the gate.
        if direction == Direction::Send && self.gate.load(Ordering::SeqCst) {
            drop(claim);
            return self.behind_gate(comm, peer, index);
        }
        Ok(claim)
    }

    #[inline]
    fn take(&self, comm: i32, direction: Direction, peer: i32, index: i32) -> Result<Claim<'_>> {
        let Some(of_peer) = self.peer(comm, peer, index)? else {
            let here = u32::try_from(index).ok().filter(|index| (*index as usize) < INDEX_MAX);
            let Some(index) = here else { return Err(refused(comm, peer, index)) };
            return self.elsewhere.claim(direction, peer as u32, index).map(|held| Claim(Kind::There(held)));
        };
        let Some(page) = usize::try_from(index).ok().and_then(|i| of_peer.pages.get(i / PAGE_INDICES)) else {
            return Err(refused(comm, peer, index));
        };
        let byte = page.get_or_make(Page::new).byte(direction, index as usize);
        // SYNC POINT: the exchange here and the look at the other side's word below, against the same in `claim_any` and `close`.
        if byte.swap(1, Ordering::SeqCst) != 0 {
            return Err(busy(direction, peer, index));
        }
        let claim = Claim(Kind::Here { byte, free: 0 });
        if direction == Direction::Receive {
            let any = of_peer.any.load(Ordering::SeqCst);
            if any != NONE && (any == BUSY || !take_back(&of_peer.any)) {
                return Err(busy_any(peer));
            }
        }
        Ok(claim)
    }

    #[cold]
    fn behind_gate(&self, comm: i32, peer: i32, index: i32) -> Result<Claim<'_>> {
        loop {
            while self.gate.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let claim = self.take(comm, Direction::Send, peer, index)?;
            if !self.gate.load(Ordering::SeqCst) {
                return Ok(claim);
            }
        }
    }

    /// Claims the whole receiving side of a peer.
    pub fn claim_any(&self, comm: i32, peer: i32) -> Result<Claim<'_>> {
        let Some(of_peer) = self.peer(comm, peer, 0)? else {
            return self.elsewhere.claim_any(peer as u32).map(|held| Claim(Kind::There(held)));
        };
        let any = &of_peer.any;
        if any.compare_exchange(IDLE, BUSY, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return Ok(Claim(Kind::Here { byte: any, free: IDLE }));
        }
        if any.compare_exchange(NONE, BUSY, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Err(busy_any(peer));
        }
        if !of_peer.is_free(Direction::Receive) {
            any.store(NONE, Ordering::SeqCst);
            return Err(busy_any(peer));
        }
        // What the last indexed receives wrote comes before what this one reads.
        fence(Ordering::Acquire);
        Ok(Claim(Kind::Here { byte: any, free: IDLE }))
    }

    /// Runs something while no thread of the process sends. [`Code::Busy`] when one does.
    pub fn while_none_sends<R>(&self, call: impl FnOnce() -> R) -> Result<R> {
        if self.gate.swap(true, Ordering::SeqCst) {
            return Err(Error::new(Code::Busy, "another thread looks at the spool"));
        }
        let _gate = Claimed(&self.gate);
        let sends = |slot: &Published<OfPeer>| slot.get().is_some_and(|of_peer| !of_peer.is_free(Direction::Send));
        if self.peers.all().into_iter().any(|(_, slot)| sends(slot)) || self.elsewhere.sends() {
            return Err(Error::new(
                Code::Busy,
                "a send call, a send request or a Sender is alive; the spool can be looked at when there is none",
            ));
        }
        fence(Ordering::Acquire);
        Ok(call())
    }

    /// Runs a collective call, unless another thread is in one.
    pub fn collective<R>(&self, call: impl FnOnce() -> R) -> Result<R> {
        if self.collective.swap(true, Ordering::Acquire) {
            return Err(Error::new(Code::Busy, "another thread of this process is in a collective call"));
        }
        let _claimed = Claimed(&self.collective);
        Ok(call())
    }
}

/// An indexed receive finds that any-index receives were here: from now on they must look for it.
#[cold]
fn take_back(any: &AtomicU8) -> bool {
    match any.compare_exchange(IDLE, NONE, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => true,
        // Another indexed receive was faster.
        Err(now) => now == NONE,
    }
}

struct Claimed<'c>(&'c AtomicBool);

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A direction of a (peer, index), or all receives from a peer, until it is dropped.
pub struct Claim<'c>(Kind<'c>);

enum Kind<'c> {
    Here { byte: &'c AtomicU8, free: u8 },
    There(#[expect(dead_code, reason = "it ends with this")] Held<'c>),
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Kind::Here { byte, free } = &self.0 {
            byte.store(*free, Ordering::Release);
        }
    }
}

/// Is this member of a communicator on another node? (Who is none is refused later.)
fn is_elsewhere(comm: i32, peer: i32) -> bool {
    endpoint().is_ok_and(|ep| {
        let nodes = ep.launch.nodes();
        let world = |context: &Context| nodes.node_of(context.group.world_rank(peer as u32)) != nodes.node_of(ep.rank);
        nodes.nodes() > 1 && ep.context(comm).is_ok_and(world)
    })
}

#[cold]
fn busy(direction: Direction, peer: i32, index: i32) -> Error {
    let (verb, handle) = match direction {
        Direction::Send => ("sending", "Sender"),
        Direction::Receive => ("receiving", "Receiver"),
    };
    error!(
        Code::Busy,
        "(peer {peer}, index {index}) is taken for {verb}: by another thread, by a request that is not completed, or by a {handle}"
    )
}

#[cold]
fn busy_any(peer: i32) -> Error {
    error!(
        Code::Busy,
        "a receive of any index from peer {peer} and another receive from it, or a Receiver, exclude each other"
    )
}

/// The error of a rank or an index that does not exist, in the words of the calls that take them.
#[cold]
fn refused(comm: i32, peer: i32, index: i32) -> Error {
    match endpoint().and_then(|ep| ep.resolve(comm, peer, index)) {
        Err(error) => error,
        Ok(_) => error!(Code::Rank, "(peer {peer}, index {index}) cannot be claimed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_comes_too_late_until_the_first_is_gone() {
        let claims = Claims::new(3);
        for index in [0, 1, 63, 64, 1023, 1024, (INDEX_MAX - 1) as i32] {
            let first = claims.claim(0, Direction::Send, 2, index).unwrap();
            assert_eq!(claims.claim(0, Direction::Send, 2, index).err().map(|e| e.code()), Some(Code::Busy));
            // The other direction, index, or peer is another matter.
            let _other = claims.claim(0, Direction::Receive, 2, index).unwrap();
            let _next = claims.claim(0, Direction::Send, 2, (index + 1) % 1000 + 2000).unwrap();
            let _peer = claims.claim(0, Direction::Send, 1, index).unwrap();
            drop(first);
            claims.claim(0, Direction::Send, 2, index).unwrap();
        }
    }

    #[test]
    fn every_index_of_a_page_has_a_byte_of_its_own() {
        let claims = Claims::new(1);
        let held: Vec<Claim<'_>> = (0..2048).map(|i| claims.claim(0, Direction::Receive, 0, i).unwrap()).collect();
        assert_eq!(held.len(), 2048);
    }

    #[test]
    fn any_index_and_indexed_receives_exclude_each_other() {
        let claims = Claims::new(2);
        let code = |c: Result<Claim<'_>>| c.err().map(|e| e.code());
        let any = claims.claim_any(0, 1).unwrap();
        assert_eq!(code(claims.claim(0, Direction::Receive, 1, 7)), Some(Code::Busy));
        assert_eq!(code(claims.claim_any(0, 1)), Some(Code::Busy));
        claims.claim(0, Direction::Send, 1, 7).unwrap();
        claims.claim(0, Direction::Receive, 0, 7).unwrap();
        drop(any);
        // Twice: over what the first left behind.
        for _ in 0..2 {
            let indexed = claims.claim(0, Direction::Receive, 1, 7).unwrap();
            assert_eq!(code(claims.claim_any(0, 1)), Some(Code::Busy));
            let _second = claims.claim(0, Direction::Receive, 1, 8).unwrap();
            drop(indexed);
            assert_eq!(code(claims.claim_any(0, 1)), Some(Code::Busy));
            drop(_second);
            drop(claims.claim_any(0, 1).unwrap());
            drop(claims.claim_any(0, 1).unwrap());
        }
    }

    #[test]
    fn threads_never_hold_any_and_an_index_at_once() {
        use std::sync::atomic::{AtomicI32, AtomicU32};
        let claims = Claims::new(1);
        // Indexed receives count upwards, any-index receives hold -1.
        let holders = AtomicI32::new(0);
        let (got_any, got_index) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|s| {
            for t in 0..2 {
                let (claims, holders, got_index, got_any) = (&claims, &holders, &got_index, &got_any);
                s.spawn(move || {
                    for k in 0..if cfg!(miri) { 60 } else { 20_000 } {
                        if let Ok(_claim) = claims.claim(0, Direction::Receive, 0, t * 2000 + k % 3) {
                            assert!(holders.fetch_add(1, Ordering::SeqCst) >= 0);
                            holders.fetch_sub(1, Ordering::SeqCst);
                            got_index.fetch_add(1, Ordering::Relaxed);
                        }
                        if k % 4 == 0
                            && let Ok(_claim) = claims.claim_any(0, 0)
                        {
                            assert_eq!(holders.swap(-1, Ordering::SeqCst), 0);
                            holders.store(0, Ordering::SeqCst);
                            got_any.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(got_any.into_inner() > 0 && got_index.into_inner() > 0);
    }

    #[test]
    fn the_spool_is_counted_when_nobody_sends() {
        let claims = Claims::new(2);
        assert_eq!(claims.while_none_sends(|| 5).unwrap(), 5);
        let sender = claims.claim(0, Direction::Send, 1, 5000).unwrap();
        assert_eq!(claims.while_none_sends(|| 5).unwrap_err().code(), Code::Busy);
        drop(sender);
        std::thread::scope(|s| {
            let late = claims.while_none_sends(|| s.spawn(|| claims.claim(0, Direction::Send, 1, 3).is_ok())).unwrap();
            // The sender waits for the gate and then gets its index.
            assert!(late.join().unwrap());
        });
    }
}
