//! Messages of any source: a domain of their own, matched at the receiver, in memory that does not grow.
//!
//! Each (communicator, index) has one **ring** of slots at its receiver, made by whoever comes first. A sender takes a **ticket** from
//! the ring's counter of messages sent if it is less than so many above the counter of messages taken, fills the slot of that ticket, and
//! marks it valid. The receiver takes slots in the order of the tickets and counts them. So the receiver's processor is in no sender's
//! path, its memory is constant however many send, and a message is never dropped: when the ring is full, senders wait. (The
//! counters are those of *Methods for memory saving communication library using remote atomic communication*, section 4: its
//! buffer acquisition and, with a limit below the number of slots, its limit of the number of messages.)
//!
//! Up to 48 bytes lie in the slot's line, up to 1 KiB in the slot's area. A longer message stays at its sender, and the slot says
//! where: in the spool, or in an **offer**, a record in the spool that says from where the receiver may read it itself.
//!
//! Messages of one sender on one index arrive in the order in which they were sent. The indices are those of the receiver's job, but have
//! nothing to do with indexed messages.
//!
//! | file | what it does |
//! |---|---|
//! | `ring` | the shared records and what is done to them: the seam to the fabric |
//! | `share` | a ring split over groups of senders |
//! | `stake` | who has a slot that stays empty: the death of a sender |
//! | `send`, `receive` | one message out, one message in |
//! | `remote` | the second ring, for senders of other nodes |
//! | `offer` | long messages |
//! | `multicast` | one message to a group that is chosen for it |
//! | `request` | non-blocking calls |
//! | `table` | finding a ring |

mod loans;
#[cfg(loom)]
pub mod model;
pub mod multicast;
pub mod offer;
pub mod receive;
pub mod remote;
pub mod request;
pub mod ring;
mod rings;
pub mod send;
pub mod share;
pub mod stake;

use std::sync::{Arc, OnceLock};

use crate::base::atomics::{AtomicU32, AtomicU64, Ordering};
use crate::base::by_rank::ByRank;
use crate::base::clock::now_ns;
use crate::base::error::{Code, Error, Result, error};
use crate::base::lock::Mutex;
use crate::base::run::Run;
use crate::base::table::{Key, Table};
use crate::base::unused::Unused;
use crate::fabric::shm::peer::Peer;
use crate::fabric::shm::region::SPOOL_WINDOW;
use crate::fabric::shm::region::{Mapping, Region, SPOOL_AT};
use crate::lane::map::{INDEX_MAX, SYSTEM_INDICES, UNIT_SLOTS};
use crate::lane::{BlockRef, PeerSpool, Place};
use crate::p2p::context::Context;
use crate::p2p::endpoint::{Endpoint, WORLD_EPOCH};
use crate::p2p::group::Group;
use crate::wait::Board;

pub use loans::{irecv_loan_any, irecv_loan_any_test, irecv_loan_any_wait, recv_loan_any, send_loan_any};
pub use receive::task::{Came, recv_any_or_mcast};
pub use receive::{Arrived, Incoming, probe_any, recv_any, recv_any_limit};
pub use request::{
    irecv_any, irecv_any_cancel, irecv_any_test, irecv_any_wait, isend_any, isend_any_test, isend_any_wait,
};
pub use send::{Outgoing, send_any};

use remote::host::Guests;
use remote::{FREED, Moved, PAUSE_NS, RemoteRing, RemoteRoad, RemoteStakes, Sought};
use ring::{Ring, ring_at};
use send::{Local, Way};
use stake::Stakes;

/// The key of a ring: of a rank of a communicator (-1: this process's own), and an index.
#[inline(always)]
fn key_of(comm: i32, rank: i32, index: i32) -> Key {
    ((comm as u32 as u64) << 32 | rank as u32 as u64, index)
}

/// What a process has of this domain.
pub struct AnySource {
    /// The slots of each share of the own rings, and how many shares there are.
    own: (usize, usize),
    /// Rings of others, as a sender.
    outgoing: Table<Outgoing>,
    /// Own rings, as a receiver.
    incoming: Table<Incoming>,
    /// Which tickets this process is trying for.
    pub stakes: Stakes,
    /// The spools of those who sent long messages, by rank.
    spools: OnceLock<ByRank<OnceLock<Mapping>>>,
    /// Requests that only this process can move.
    waiting: request::Waiting,
    /// Multicasts sent, as their master.
    multicasts: AtomicU64,
    /// Communicators that this process has freed and other members perhaps not.
    left: Mutex<Vec<Left>>,
    /// Which tickets of remote rings this process has.
    pub remote_stakes: RemoteStakes,
    /// Counters that this process has for other receivers.
    pub guests: Guests,
    /// Own remote rings.
    remote_rings: Mutex<RemoteRings>,
    /// How many were ever made.
    remote_made: AtomicU32,
    /// Offers between nodes that were moved, and that their receivers have not fetched.
    moved: Mutex<Vec<Moved>>,
    /// Blocks of multicasts to several nodes, as master or leader, that are not complete.
    wides: Mutex<Vec<multicast::Held>>,
    /// Parts of multicasts that this process, as a leader, has read from other leaders, and from who told it since those were late.
    gathered: [AtomicU64; 2],
    /// See [`AnySource::told_at`].
    told_at: Mutex<Vec<&'static Incoming>>,
    /// The next multicast's number, of those to several nodes of which this process is the master.
    named: AtomicU64,
    /// Memory of this process that a record in its spool names, where this process may be the one that reads it.
    lent: Mutex<Vec<Lent>>,
    /// Blocks of multicasts with a ticket whose end nobody has asked for yet, and their communicators.
    asked: Mutex<Vec<(i32, BlockRef)>>,
    /// Blocks of multicasts whose end nobody asks for.
    unasked: Mutex<std::collections::VecDeque<BlockRef>>,
    /// When the wait for a multicast looks next whether members have freed the communicator.
    looks: Mutex<Vec<(BlockRef, u64)>>,
}

/// The remote rings of this process. Those of freed communicators are used again: one that a sender may still know stays registered.
#[derive(Default)]
struct RemoteRings {
    /// The communicator's number (28 bits of its epoch, 0: the world), the index.
    used: Vec<((u32, i32), Arc<RemoteRing>)>,
    spare: Vec<Arc<RemoteRing>>,
}

/// Memory that this process has named in a record of its spool: the record lies in shared memory, so what it says is not believed.
struct Lent {
    block: BlockRef,
    data: Run,
}

/// A communicator that this process has freed.
struct Left {
    group: Group,
    place: Place,
    /// Blocks of its multicasts whose end nobody asks for.
    blocks: Vec<BlockRef>,
}

/// A communicator, as far as this domain needs to know it.
#[derive(Clone)]
struct Domain {
    group: Group,
    /// The group is the world: ranks are the same here and there.
    world: bool,
    epoch: u16,
    /// Its first unit.
    unit: Option<u32>,
    /// What it is called between nodes.
    number: u32,
}

impl Domain {
    fn of(context: &Context) -> Domain {
        let world = context.handle == crate::p2p::COMM_WORLD;
        let place = context.place;
        Domain {
            group: context.group.clone(),
            world,
            epoch: if world { WORLD_EPOCH } else { place.epoch as u16 },
            unit: (!world).then_some(place.unit),
            number: if world { 0 } else { place.epoch & 0xfff_ffff },
        }
    }
    /// The rank in the communicator of a rank of the world.
    #[inline(always)]
    fn rank_here(&self, rank: u32) -> i32 {
        if self.world {
            if rank < self.group.size() { rank as i32 } else { -1 }
        } else {
            self.group.rank_of(rank).map_or(-1, |r| r as i32)
        }
    }
}

impl AnySource {
    /// Nothing yet; own rings of so many slots, in so many shares.
    pub fn new(region: &Region, slots: usize, shares: usize) -> Result<AnySource> {
        Ok(AnySource {
            own: (slots / shares, shares),
            outgoing: Table::default(),
            incoming: Table::default(),
            stakes: Stakes::own(region)?,
            spools: OnceLock::new(),
            waiting: Default::default(),
            multicasts: AtomicU64::new(0),
            left: Mutex::default(),
            remote_stakes: RemoteStakes::default(),
            guests: Guests::default(),
            remote_rings: Mutex::default(),
            remote_made: AtomicU32::new(0),
            moved: Mutex::default(),
            wides: Mutex::default(),
            gathered: Default::default(),
            told_at: Mutex::default(),
            named: AtomicU64::new(0),
            lent: Mutex::default(),
            asked: Mutex::default(),
            unasked: Mutex::default(),
            looks: Mutex::default(),
        })
    }

    /// The spool of a rank, mapped when first needed.
    fn spool_of(&self, ep: &Endpoint, source: u32) -> Result<PeerSpool> {
        if source == ep.rank {
            return Ok(ep.spool.as_peers());
        }
        let all = self.spools.get_or_init(|| ByRank::new(ep.size));
        let slot = all.get_or_make(source).ok_or_else(|| garbled(ep, source))?;
        if let Some(window) = slot.get() {
            return Ok(PeerSpool::new(window));
        }
        // Who has reached this rank need not be known here: a contact that this rank began, and gave up before the answer came, is one
        // for the other side all the same.
        let window = ep.contact(source)?.region.map(SPOOL_AT, SPOOL_WINDOW)?;
        Ok(PeerSpool::new(slot.get_or_init(|| window)))
    }

    /// Messages that this process, or another on the same rings, has sent and that are not taken; and requests not completed.
    /// For finalize: (messages, requests, the first (peer, index)).
    pub fn left_over(&self) -> (u64, u64, Option<(u32, i32)>) {
        let (mut messages, mut requests, mut first) = (0, 0, None);
        for out in self.outgoing.all() {
            let left = match &out.way {
                Way::Local(local) => {
                    let header = local.ring.header();
                    header.sent.load(Ordering::Acquire).saturating_sub(header.freed.load(Ordering::Acquire))
                }
                Way::Remote(road) => road.outstanding(),
            };
            let pending = out.is_pending() as u64;
            if left + pending > 0 {
                first = first.or(Some((out.rank, out.index)));
            }
            messages += left;
            requests += pending;
        }
        for inc in self.incoming.all() {
            requests += inc.is_pending() as u64;
        }
        (messages, requests, first)
    }

    /// What is begun on a communicator and not completed, in words. No other thread is in a call on it.
    pub fn begun_on(&self, ep: &Endpoint, context: &Context) -> Option<String> {
        let comm = context.handle;
        if let Some(ticket) = multicast::under_way(ep, comm) {
            return Some(format!("the multicast with ticket {ticket}"));
        }
        if let Some(out) = self.outgoing.all().into_iter().find(|out| out.comm == comm && out.is_pending()) {
            return Some(format!("the any-source send to (rank {}, index {})", out.dst, out.index));
        }
        let inc = self.incoming.all().into_iter().find(|inc| inc.comm == comm && inc.is_pending())?;
        let is_of_program = (inc.index as usize) < context.indices;
        Some(match is_of_program {
            true => format!("the any-source receive on index {}", inc.index),
            false => "the receive of a multicast".to_owned(),
        })
    }

    /// This process has freed a communicator: it uses none of its rings any more, but other members may still send into its own. The
    /// rings' memory, and the units that say where they lie, are free for another communicator when none of them can
    /// ([`AnySource::sweep`]).
    pub fn forget(&self, ep: &Endpoint, context: &Context, unused: &Unused) {
        let of = |key: Key| (key.0 >> 32) as u32 as i32 == context.handle;
        self.told_at().retain(|inc| inc.comm != context.handle);
        self.outgoing.remove(of, unused);
        self.incoming.remove(of, unused);
        let number = Domain::of(context).number;
        let mut rings = self.remote_rings();
        let gone: Vec<_> = rings.used.extract_if(.., |(key, _)| key.0 == number).collect();
        rings.spare.extend(gone.into_iter().map(|(_, ring)| ring));
        drop(rings);
        let blocks = multicast::take_of(ep, context);
        self.left().push(Left { group: context.group.clone(), place: context.place, blocks });
    }

    /// Gives back what belonged to communicators that all members have freed by now.
    pub fn sweep(&self, ep: &Endpoint) -> Result<()> {
        multicast::sweep(ep);
        let over = |left: &mut Left| {
            left.blocks.retain(|block| !multicast::is_done(ep, *block));
            left.group.members().all(|rank| ep.has_freed(rank, left.place))
        };
        let over: Vec<Left> = self.left().extract_if(.., over).collect();
        over.into_iter()
            .map(|left| {
                left.blocks.iter().for_each(|block| _ = ep.spool.give_back(*block));
                let (at, bytes) = ring::rings_of(left.place.unit, left.place.units);
                let punched = ep.region.punch(at, bytes);
                ep.contexts.give_back(left.place);
                punched
            })
            .fold(Ok(()), Result::and)
    }

    fn remote_rings(&self) -> crate::base::lock::MutexGuard<'_, RemoteRings> {
        self.remote_rings.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The remote ring of an index, if it has been made.
    fn remote_ring(&self, number: u32, index: i32) -> Option<Arc<RemoteRing>> {
        self.remote_rings().used.iter().find(|(key, _)| *key == (number, index)).map(|(_, ring)| ring.clone())
    }

    /// The remote ring of an index, made if need be.
    fn make_remote_ring(&self, ep: &Endpoint, number: u32, index: i32) -> Option<Arc<RemoteRing>> {
        let epoch = if number == 0 { WORLD_EPOCH } else { ep.contexts.place_of(number)?.epoch as u16 };
        let mut rings = self.remote_rings();
        if let Some((_, ring)) = rings.used.iter().find(|(key, _)| *key == (number, index)) {
            return Some(ring.clone());
        }
        let ring = match rings.spare.pop_if(|ring| Arc::strong_count(ring) == 1) {
            Some(ring) => {
                ring.renew(epoch);
                ring
            }
            None => {
                // Half as many as for the senders of this node: a slot here is memory that stays.
                let slots = (self.own.0 * self.own.1 / 2).max(1);
                let mut hosts = vec![None; share::shares(ep.config.spread, ep.size as usize, slots)];
                if ep.config.counters_elsewhere && slots > 1 {
                    hosts = remote::host::hosts(ep.launch.nodes(), ep.topology.as_ref(), ep.rank, hosts.len().max(2));
                }
                Arc::new(RemoteRing::new(ep.fabric_here()?, slots, &hosts, epoch).ok()?)
            }
        };
        rings.used.push(((number, index), ring.clone()));
        // SYNC POINT: pairs with the acquire in `Incoming::remote`.
        self.remote_made.fetch_add(1, Ordering::Release);
        Some(ring)
    }

    /// Answers a sender of another node that asks for a ring, with the share that it is to use; called by the thread of the fabric.
    /// `home`: one whose counters are here; `at`: the communicator's epoch 32 | first unit 32.
    pub fn serve_ring(
        &self,
        ep: &Endpoint,
        (number, index): (u32, i32),
        sender: u32,
        home: bool,
        at: u64,
    ) -> Option<[u64; 2]> {
        // Each ring takes memory, so one of an index that there is not is not made because somebody asks. The last one is multicasts'.
        let place = match (number, ep.contexts.place_of(number)) {
            (0, _) => None,
            (_, None) => return ep.has_itself_freed((at >> 32) as u32, at as u32).then_some(FREED),
            (_, place) => place,
        };
        let last = place.map_or(INDEX_MAX, |place| place.units as usize * UNIT_SLOTS - SYSTEM_INDICES);
        if index < 0 || index as usize >= last.min(ep.region.indices() as usize) && index as usize != last {
            return None;
        }
        let ring = self.make_remote_ring(ep, number, index)?;
        let hosts = ring.hosts();
        let n = if home {
            0
        } else if hosts.iter().any(Option::is_some) {
            remote::host::share_of(ep.launch.nodes(), ep.topology.as_ref(), &hosts, sender)
        } else {
            share::share_of(sender, ring.shares())
        };
        let (place, slots) = ring.share(n).place();
        let host = hosts[n].map_or(0, |host| u64::from(host) + 1);
        Some([place.addr, place.rkey as u64 | u64::from(slots.ilog2()) << 32 | host << remote::HOST_AT])
    }

    /// The own rings by which this process is told of multicasts, of communicators by which it has sent or received some.
    fn told_at(&self) -> crate::base::lock::MutexGuard<'_, Vec<&'static Incoming>> {
        self.told_at.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn lent(&self) -> crate::base::lock::MutexGuard<'_, Vec<Lent>> {
        self.lent.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A record in a block of the own spool names this memory.
    fn lend(&self, block: BlockRef, data: Run) {
        self.lent().push(Lent { block, data });
    }

    /// It does so no more.
    fn take_back(&self, block: BlockRef) {
        self.lent().retain(|lent| (lent.block.at, lent.block.generation) != (block.at, block.generation));
    }

    /// The memory that a record in the own spool names.
    fn lent_by(&self, at: u64, generation: u32) -> Option<Run> {
        let lent = self.lent();
        lent.iter().find(|lent| (lent.block.at, lent.block.generation) == (at, generation)).map(|lent| lent.data)
    }

    fn moved(&self) -> crate::base::lock::MutexGuard<'_, Vec<Moved>> {
        self.moved.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn wides(&self) -> crate::base::lock::MutexGuard<'_, Vec<multicast::Held>> {
        self.wides.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn add_moved(&self, moved: Moved) {
        self.moved().push(moved);
    }

    /// Before this process leaves: uses tickets of remote rings up that it has drawn and not needed.
    pub fn settle(&self, ep: &Endpoint) {
        let until = now_ns() + 1_000_000_000;
        while self.push_remote(ep) && now_ns() < until {
            crate::base::thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// What is left to be done for other nodes without a call of the program. `true`: it still is.
    pub fn push_remote(&self, ep: &Endpoint) -> bool {
        self.moved().retain(|moved| moved.stays(ep));
        multicast::push_wide(ep);
        if self.remote_stakes.is_empty() {
            return false;
        }
        let held = |out: &&'static Outgoing| match &out.way {
            Way::Remote(road) => !out.is_waited_for() && road.settle(ep),
            Way::Local(_) => false,
        };
        self.outgoing.all().iter().filter(|out| held(out)).count() > 0
    }

    fn left(&self) -> crate::base::lock::MutexGuard<'_, Vec<Left>> {
        self.left.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Moves on what only this process can move. `true`: something is left.
    pub fn push(&self, ep: &'static Endpoint) -> bool {
        let more = self.waiting.push(ep);
        multicast::put_aside(ep);
        if ep.fabric_here().is_some() { more | self.push_remote(ep) } else { more }
    }
}

/// The index of a call, or the error.
fn check_index(ep: &Endpoint, context: &Context, index: i32) -> Result<()> {
    let have = (ep.region.indices() as usize).min(context.indices);
    if index >= 0 && (index as usize) < have {
        return Ok(());
    }
    Err(error!(Code::Index, "rank {}: any-source index {index}: there are {have}, from 0 on", ep.rank))
}

fn check_buffer(ep: &Endpoint, data: Run) -> Result<()> {
    if data.is_nowhere() {
        return Err(error!(Code::Argument, "rank {}: null buffer with a size", ep.rank));
    }
    if data.len() > isize::MAX as usize {
        return Err(error!(Code::Argument, "rank {}: size overflows", ep.rank));
    }
    Ok(())
}

#[cold]
fn garbled(ep: &Endpoint, source: u32) -> Error {
    error!(Code::Peer, "rank {}: a message of rank {source} to any source is not what it should be", ep.rank)
}

/// Why a peer can do nothing any more; `None`: it can.
fn gone(peer: &Option<Arc<Peer>>) -> Option<&'static str> {
    peer.as_ref()?.gone()
}
