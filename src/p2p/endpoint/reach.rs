//! How other ranks are reached: first contact, the lanes on a node and between nodes, and which ranks can be reached no more.

use super::*;
use crate::base::error::error;
use crate::base::named::Named;
use crate::base::system::cpus::CpuSet;
use crate::base::tuning::Distance;
use crate::lane::Place;
use crate::lane::distance::of_binding;
use crate::launch::bind::last_cache;
use crate::p2p::group::words::{Holder, Shelf};

impl Endpoint {
    /// The lane to a rank of a communicator, made when first asked for.
    pub fn lane_of(&self, context: &Context, peer: i32) -> Result<Used> {
        self.check_rank(context, peer)?;
        let rank = peer as u32;
        if context.handle == crate::p2p::COMM_WORLD {
            return self.lane(rank);
        }
        let key = Lane::key_of(context.handle, rank);
        if let Some(lane) = self.find(key) {
            return Ok(lane);
        }
        let of_world = self.lane(context.group.world_rank(rank))?;
        if of_world.remote().is_some() {
            return self.remote_lane_of(context, rank, &of_world);
        }
        let lane = loop {
            let mut wiping = false;
            let made = self.lanes.find_or_make(key, || {
                let (place, guest) = (context.place, self.rank.max(of_world.world));
                let at = PLACES_AT + guest as u64 * UNITS as u64 * UNIT_BYTES + place.unit as u64 * UNIT_BYTES;
                let bytes = Map::of_units(place.units as usize).bytes;
                let window = match &of_world.peer {
                    Some(p) if of_world.world < self.rank => p.region.map(at, bytes)?,
                    _ => self.region.map(at, bytes)?,
                };
                let lane = Lane::of_communicator(context.handle, rank, &of_world, place, window)?;
                wiping = !lane.come_alive(self.common_indices(&lane))?;
                if wiping {
                    return Err(lane.peer_error(self.rank, "clears away", "first contact with", crate::p2p::TAG_ANY));
                }
                self.apply_mode(&lane);
                Ok(lane)
            });
            match made {
                // Not with the lock of the lanes held: its death is told under it, and so are the deaths of others.
                Err(_) if wiping => match of_world.gone() {
                    Some(what) => {
                        return Err(of_world.peer_error(self.rank, what, "first contact with", crate::p2p::TAG_ANY));
                    }
                    None => crate::base::thread::yield_core(),
                },
                made => break made?,
            }
        };
        self.tell_lane(lane);
        if of_world.gone().is_some() {
            lane.special.fetch_or(SPECIAL_GONE, Ordering::AcqRel);
        }
        Ok(Used::here(lane))
    }

    /// The lane of this key, if it exists.
    fn find(&self, key: u64) -> Option<Used> {
        self.lanes.find(key).map(Used::here).or_else(|| self.lanes.find_remote(key))
    }

    /// The world's lane to a peer, made at first contact.
    pub fn lane(&self, peer: u32) -> Result<Used> {
        let key = Lane::key_of(crate::p2p::COMM_WORLD, peer);
        if let Some(lane) = self.find(key) {
            return Ok(lane);
        }
        if self.is_elsewhere(peer)? {
            return self.remote_lane(peer);
        }
        let known = if peer == self.rank { None } else { Some(self.contact(peer)?) };
        let lane = self.lanes.find_or_make(key, || {
            let host = self.rank.min(peer);
            let guest = self.rank.max(peer);
            let at = LANES_AT + guest as u64 * LANE_STRIDE;
            let window = match &known {
                Some(p) if host == peer => p.region.map(at, LANE_BYTES)?,
                _ => self.region.map(at, LANE_BYTES)?,
            };
            let mine = self.region.indices();
            let theirs = known.as_ref().map_or(mine, |p| p.region.header().indices.load(Ordering::Acquire));
            let board: *const Board = known.as_ref().map_or(self.region.board(), |p| p.region.board()).cast();
            let lane = Lane::new(
                crate::p2p::COMM_WORLD,
                WORLD_EPOCH,
                self.rank,
                peer,
                known.clone(),
                board,
                window,
                mine.min(theirs) as usize,
            )?;
            self.apply_mode(&lane);
            self.gauge(&lane);
            Ok(lane)
        })?;
        self.tell_lane(lane);
        self.mark_if_dead(peer);
        if known.is_some_and(|p| p.broken().is_some()) {
            lane.special.fetch_or(SPECIAL_GONE, Ordering::AcqRel);
        }
        Ok(Used::here(lane))
    }

    /// A lane has come about.
    pub(super) fn tell_lane(&self, lane: &Lane) {
        tell(Level::Debug, || {
            let how = match &lane.peer {
                Some(peer) if peer.cma() => {
                    format!("shared memory with process {}, and copies by the kernel", peer.pid)
                }
                Some(peer) => format!("shared memory with process {}", peer.pid),
                None if lane.remote().is_some() => "RDMA".to_owned(),
                None => "memory of its own".to_owned(),
            };
            let indices = lane.limit() as usize - SYSTEM_INDICES;
            format!("lane to rank {} in communicator {} by {how}, {indices} indices", lane.world, Named(lane.comm()))
        });
    }

    /// A message of `n` bytes passes on a lane that is not short: looks at the distance of the two now and then.
    #[inline]
    pub fn passed(&self, lane: &Lane, n: usize) {
        if lane.passed(n, lane.out) {
            self.tell_distance(lane);
        }
    }

    #[cold]
    fn tell_distance(&self, lane: &Lane) {
        tell(Level::Debug, || {
            let what = if lane.distance() == Distance::Shared { "a" } else { "no" };
            let ns = lane.gauge.looks().1;
            format!("{what} common cache with rank {}: a line takes {ns} ns", lane.world)
        });
    }

    /// What is known of the distance to a peer at first contact: what a setting says, else what binding does, until lines tell.
    fn gauge(&self, lane: &Lane) {
        let Some(peer) = &lane.peer else { return };
        if let Some(distance) = self.config.distance {
            return lane.gauge.fix(distance);
        }
        // A rank's cache is looked up once: reading its files takes longer than all else at first contact.
        static CACHE: OnceLock<(usize, Vec<usize>)> = OnceLock::new();
        let cpus = |pid| CpuSet::of(pid).map(|set| set.cpus()).unwrap_or_default();
        let (mine, theirs) = (cpus(0), cpus(peer.pid));
        let first = mine.first().copied().unwrap_or(0);
        let (of, cache) = CACHE.get_or_init(|| (first, last_cache(first)));
        let bound = if *of == first { of_binding(&mine, &theirs, cache) } else { None };
        lane.gauge.begin(bound.unwrap_or(Distance::Shared), self.tuning.apart_ns);
    }

    /// The tables of the node's connections, contexts and rings, which its lowest rank has in its region; if that has died already, this rank has its
    /// own. `None`: not yet.
    pub fn node_tables(&self) -> Option<Mapping> {
        let lowest = *self.launch.local_ranks().first()?;
        let own = || self.region.map(NODE_AT, TABLES_BYTES).ok();
        if lowest == self.rank {
            return own();
        }
        match self.contact_soon(lowest) {
            Some(peer) => peer.region.map(NODE_AT, TABLES_BYTES).ok().or_else(own),
            None if self.is_dead(lowest) => own(),
            None => None,
        }
    }

    /// First contact, or the peer as it is known. One that lives is waited for however late it is, since a stopped process goes on some time;
    /// a long wait says so.
    pub fn contact(&self, peer: u32) -> Result<Arc<Peer>> {
        let attach = self.attach.get().ok_or_else(|| error!(Code::Rank, "rank {}: no peer {peer}", self.rank))?;
        if let Some(p) = attach.known(peer) {
            return Ok(p.clone());
        }
        let card = self.launch.get(peer, &card_key(peer))?;
        if !attach.same_node(&card) {
            return Err(self.no_way_to(peer, &card));
        }
        let mut silent = self.config.stall_s > 0.0;
        let found = attach.contact(peer, &card, |waited| {
            if silent && waited.as_secs_f64() >= self.config.stall_s {
                silent = false;
                log::report(&format!(
                    "stalled: rank {}: {:.1} s in the first contact with rank {peer}, which lives and does not answer: it is stopped, or \
                     still on its way through init, or the machine is overloaded",
                    self.rank,
                    waited.as_secs_f64()
                ));
            }
            true
        });
        found?.ok_or_else(|| error!(Code::System, "first contact with rank {peer} was given up"))
    }

    /// The peer as it is known, or as it becomes known within moments; for those who can do without.
    #[cold]
    pub fn contact_soon(&self, peer: u32) -> Option<Arc<Peer>> {
        let attach = self.attach.get()?;
        if let Some(p) = attach.known(peer) {
            return Some(p.clone());
        }
        let card = self.launch.get(peer, &card_key(peer)).ok().filter(|card| attach.same_node(card))?;
        attach.contact(peer, &card, |waited| waited < Duration::from_millis(5)).ok().flatten()
    }

    /// Makes the acquaintance of those members of a group on this node that answer at once; of the others later.
    #[cold]
    pub fn meet_members(&self, group: &Group) {
        let nodes = self.launch.nodes();
        let here = |rank: &u32| *rank != self.rank && nodes.node_of(*rank) == nodes.node_of(self.rank);
        group.members().filter(here).filter(|rank| !self.is_dead(*rank)).for_each(|rank| drop(self.contact_soon(rank)));
    }

    /// The group of a communicator at a place, whose words all its members on this node have in one place, if they are many: with the lowest.
    #[cold]
    pub fn kept_on_node(&self, group: Group, place: Place) -> Group {
        if !Shelf::takes(group.bytes()) {
            return group;
        }
        let nodes = self.launch.nodes();
        let here = group.members_among(nodes.ranks_on(nodes.node_of(self.rank)).collect());
        let holder = match here[..] {
            [] | [_] => None,
            [lowest, ..] if lowest == self.rank => Some(Holder::Own(self.region.clone())),
            // One that does not answer is not waited for.
            [lowest, ..] => self.contact_soon(lowest).map(Holder::Peer),
        };
        match holder {
            Some(holder) => group.laid(Shelf { holder, epoch: place.epoch, members: here.len() as u32 }),
            None => group,
        }
    }

    /// The peer, if there has been contact.
    pub fn known(&self, peer: u32) -> Option<Arc<Peer>> {
        self.attach.get()?.known(peer).cloned()
    }

    /// Is this rank known to be dead?
    pub fn is_dead(&self, rank: u32) -> bool {
        self.dead.get(rank).is_some_and(|d| d.load(Ordering::Acquire))
    }

    /// A rank has written into a record what cannot be there: all that is done with it ends in an error from here on, and names it. `record`:
    /// what it is; the words of the error.
    #[cold]
    pub fn break_off(&self, rank: u32, record: &str) -> String {
        if cfg!(loom) {
            panic!("no rank of a model damages {record}");
        }
        let Some(peer) = self.known(rank).filter(|_| rank != self.rank) else {
            if let Some(link) = self.link_to(rank) {
                link.damaged(record);
            }
            return format!("has damaged {record}");
        };
        let what = peer.break_off(record);
        for lane in self.lanes.all().iter().filter(|l| l.world == rank) {
            lane.special.fetch_or(SPECIAL_GONE, Ordering::AcqRel);
        }
        let board = self.board();
        doorbell::ring(&board.bell, u32::MAX);
        doorbell::ring(&board.event_bell, u32::MAX);
        what.to_owned()
    }

    fn count_death(&self, rank: u32) {
        if self.dead.get_or_make(rank).is_some_and(|dead| !dead.swap(true, Ordering::AcqRel)) {
            self.deaths.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How many ranks are known to be dead.
    #[inline]
    pub fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// A death between contact and the lane's coming into the table was not seen by the lane.
    #[cfg_attr(loom, track_caller)]
    fn mark_if_dead(&self, rank: u32) {
        #[cfg(loom)]
        if crate::base::shadow::is_lost() {
            return;
        }
        if self.is_dead(rank) {
            self.mark_dead(rank);
        }
    }

    /// A peer has died: its lanes say so from now on, and whoever sleeps looks.
    pub(super) fn mark_dead(&self, rank: u32) {
        let _one = self.bound.lock().unwrap_or_else(|e| e.into_inner());
        self.count_death(rank);
        for lane in self.lanes.all().iter().filter(|l| l.world == rank) {
            lane.dead.store(1, Ordering::Release);
            lane.special.fetch_or(SPECIAL_GONE, Ordering::AcqRel);
        }
        let board = self.board();
        doorbell::ring(&board.bell, u32::MAX);
        doorbell::ring(&board.event_bell, u32::MAX);
    }
}

/// What a rank publishes as its network that wants none.
pub(super) const NO_NETWORK: &str = "none";

/// Under which a rank publishes where it answers other nodes, before its number.
pub(in crate::p2p) const FABRIC_KEY: &str = "fmpl-network-";

pub(super) fn fabric_key(rank: u32) -> String {
    format!("{FABRIC_KEY}{rank}")
}

pub(super) fn card_key(rank: u32) -> String {
    format!("fmpl-card-{rank}")
}
