//! How a peer reaches a block of the spool: by a key of the whole block, or, where so much memory cannot be locked, by one of its first page
//! and by pieces that are lent.
//!
//! ```text
//!   receiver                               thread of the sender's fabric
//!   reads the block's first page
//!   Lend: from this address on  ─────────▶ ends the registration of the piece before, registers this one
//!                               ◀───────── its key, and its bytes
//!   reads it, and so on
//!   Lend: nothing more          ─────────▶ ends the registration
//! ```
//! A sender says so with the key, in the highest bit of the number of the block's use ([`PART`]). Over a connection one piece is lent at a
//! time, to the thread that holds [`Link::borrow`]; how long it is the sender decides, by what it can register.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{PeerMemory, transfer, write_back};
use crate::base::error::{Code, Error, Result};
use crate::base::layout::Layout;
use crate::fabric::network::link::Link;
use crate::fabric::network::region::memory_limit;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::lane::BlockRef;
use crate::lane::remote::{Answer, Ask, Asked, Remote};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::spool::PAGE;

/// In the number of a block's use, which has 31 bits: the key covers the first page only.
const PART: u32 = 1 << 31;
/// Bytes of pieces that a sender tries to lend.
const PIECES: [usize; 2] = [256 << 10, PAGE];
/// Longer blocks are not registered whole. Falls when that fails: the messages after it need some memory too.
static WHOLE_MOST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Offset of a block's word that says that it is done with.
const DONE_AT: u64 = 68;
static_assertions::const_assert!(core::mem::offset_of!(crate::lane::record::Block, done) == DONE_AT as usize);

/// The key of a block of the spool, in the lower half, and the number of its use, as they are published. `Memory`: not even its first page
/// can be registered.
pub(in crate::p2p) fn keys_of(ep: &Endpoint, remote: &Remote, block: BlockRef) -> Result<u64> {
    let fabric = remote.fabric();
    let all = ep.spool.extent(block);
    let key = |len: usize| fabric.spool_key(all.first(len));
    let or_instead = |len: usize| {
        key(len).or_else(|e| {
            // In place of what was registered for messages that have been received.
            ep.spool.free_what_is_done();
            if fabric.shed_spool(|at, len| ep.spool.is_free(at, len)) { key(len) } else { Err(e) }
        })
    };
    let keys = |key: u32, mark: u32| key as u64 | ((block.generation | mark) as u64) << 32;
    let len = all.len();
    if len <= WHOLE_MOST.load(Ordering::Relaxed).max(PAGE) {
        match or_instead(len) {
            Ok(key) => return Ok(keys(key, 0)),
            Err(e) if len <= PAGE => return Err(e),
            Err(_) => _ = WHOLE_MOST.fetch_min(len / 16, Ordering::Relaxed),
        }
    }
    or_instead(PAGE).map(|key| keys(key, PART)).inspect_err(|_| WHOLE_MOST.store(PAGE, Ordering::Relaxed))
}

/// Does the key cover all of its block?
pub(in crate::p2p) fn is_whole(keys: u64) -> bool {
    (keys >> 32) as u32 & PART == 0
}

/// A block of the peer's spool.
#[derive(Clone, Copy)]
pub(in crate::p2p) struct Source {
    addr: u64,
    key: u32,
    generation: u32,
}

impl Source {
    /// The block at this address there, with key and generation as the peer has published them ([`keys_of`]).
    pub fn new(addr: u64, key: u32, generation: u32) -> Source {
        Source { addr, key, generation }
    }

    /// Fetches `n` bytes of it, from that address there.
    pub fn fetch(&self, remote: &Remote, to: Layout, n: usize, from: u64) -> Result<()> {
        // Addresses there, as the peer says: what is not its own its device refuses.
        let within = |from: u64| (PAGE as u64).checked_sub(from.wrapping_sub(self.addr)).filter(|left| *left > 0);
        if self.generation & PART == 0 || within(from).is_some_and(|left| n as u64 <= left) {
            return transfer(remote, false, to, 0, n, PeerMemory::run(from, self.key));
        }
        let _alone = remote.link.borrow();
        let fetch_all = || -> Result<()> {
            let mut done = 0;
            while done < n {
                let at = from.wrapping_add(done as u64);
                let (key, most) = within(at).map_or_else(|| ask(remote, at), |left| Ok((self.key, left)))?;
                let bytes = (n - done).min(usize::try_from(most).unwrap_or(usize::MAX));
                transfer(remote, false, to, done, bytes, PeerMemory::run(at, key))?;
                done += bytes;
            }
            Ok(())
        };
        let outcome = fetch_all();
        let _ = remote.ask_for(asked(0), || goes_on(remote));
        outcome
    }

    /// Says that this side is done with it.
    pub fn done(&self, remote: &Remote) {
        write_back(remote, self.addr.wrapping_add(DONE_AT), self.key, self.generation & !PART);
    }
}

fn asked(at: u64) -> Asked {
    Asked { what: Ask::Lend, slot: 0, seq: 0, at }
}

fn goes_on(remote: &Remote) -> bool {
    remote.link.failure().is_none() && !remote.has_left()
}

/// The key of the piece that begins at this address of the peer's spool, and its bytes.
fn ask(remote: &Remote, at: u64) -> Result<(u32, u64)> {
    let (me, peer) = (remote.link.me, remote.link.peer);
    match remote.ask_for(asked(at), || goes_on(remote)) {
        Some(Some([key, bytes])) if bytes > 0 => Ok((key as u32, bytes)),
        Some(_) => Err(Error::new(
            Code::Memory,
            format!(
                "rank {me}: rank {peer} cannot register {PAGE} bytes of a message with its RDMA device: start it with a higher limit on \
                 locked memory (`ulimit -l unlimited`; limits.conf: memlock)"
            ),
        )),
        None => {
            remote.link.check()?;
            Err(Error::new(Code::Peer, format!("rank {me}: rank {peer} has left in the middle of a message")))
        }
    }
}

/// Lends a peer the piece of the spool that begins at this address; 0: it wants none any more.
pub(in crate::p2p) fn lend(ep: &Endpoint, link: &Link, at: u64) -> Answer {
    link.end_loan();
    if at == 0 {
        return Some([0; 2]);
    }
    let window = ep.spool.bytes(0) as u64;
    let left =
        (window + SPOOL_WINDOW as u64).checked_sub(at).filter(|left| (1..=SPOOL_WINDOW as u64).contains(left))?;
    PIECES.into_iter().find_map(|most| {
        let bytes = left.min(most as u64);
        let key = link.lend(ep.spool.run(at - window, bytes as usize)).ok()?;
        Some([key as u64, bytes])
    })
}

/// Why a message cannot be left in the spool for a peer on another node.
#[cold]
pub(in crate::p2p) fn no_key(rank: u32, len: usize, whose: &str) -> Error {
    let limit = memory_limit();
    Error::new(
        Code::Memory,
        format!(
            "rank {rank}: send of {len} bytes to {whose}: {PAGE} bytes of the spool cannot be registered with the RDMA device; {limit}"
        ),
    )
}
