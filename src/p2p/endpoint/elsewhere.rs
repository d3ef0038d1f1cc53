//! Ranks on other nodes: the network that leads there, connections and lanes, who is known to live.

use std::collections::BTreeSet;

use super::*;
use crate::base::error::error;
use crate::base::tuning::Crossovers;
use crate::fabric::network::control::FIRST_CHUNK;

impl Endpoint {
    /// Are there ranks on other nodes?
    pub fn has_other_nodes(&self) -> bool {
        self.launch.nodes().nodes() > 1
    }

    /// The first of these ranks that is on another node than the first; all ranks give the same answer.
    pub fn first_elsewhere(&self, ranks: &[u32]) -> Option<u32> {
        let nodes = self.launch.nodes();
        ranks.iter().copied().find(|rank| nodes.node_of(*rank) != nodes.node_of(ranks[0]))
    }

    /// Is this rank on another node?
    pub fn is_elsewhere(&self, peer: u32) -> Result<bool> {
        let nodes = self.launch.nodes();
        Ok(peer < self.size && self.known(peer).is_none() && nodes.node_of(peer) != nodes.node_of(self.rank))
    }

    /// What was done on the fabric between nodes, see [`Fabric::done`].
    pub fn fabric_done(&self) -> [u64; 14] {
        match self.fabric.get() {
            Some(fabric) => fabric.done(),
            _ => [0; 14],
        }
    }

    /// The fabric between nodes, if this process is on it.
    pub fn fabric_here(&self) -> Option<&Arc<Fabric>> {
        self.fabric.get()
    }

    /// The numbers of calls of so many members, or to so many nodes.
    pub fn crossovers(&self, members: usize) -> Crossovers {
        let network = self.fabric_here().map(|fabric| fabric.device().network());
        self.tuning.team(members, self.crowded, network.as_deref().unwrap_or(""))
    }

    /// Are there members on other nodes that this process can reach?
    pub fn spans_nodes(&self, group: &Group) -> bool {
        let nodes = self.launch.nodes();
        let elsewhere = |rank| nodes.node_of(rank) != nodes.node_of(self.rank);
        self.fabric_here().is_some() && group.members().any(elsewhere)
    }

    /// The ranks on other nodes whose connection has failed for good and that have not said that they leave.
    pub fn lost_elsewhere(&self) -> Vec<u32> {
        self.elsewhere(Link::has_ended)
    }

    /// Those that have not answered for long, and may again.
    pub fn late_elsewhere(&self) -> Vec<u32> {
        self.elsewhere(|link| !link.has_ended() && link.silence().is_some())
    }

    /// Until when a rank on another node is late, in nanoseconds, or was before it was tried again; 0: it has been heard since, or never was.
    pub fn late_until(&self, rank: u32) -> u64 {
        self.link_to(rank).map_or(0, |link| link.late_until())
    }

    fn elsewhere(&self, is: impl Fn(&Link) -> bool) -> Vec<u32> {
        let links = self.fabric_here().map_or(Vec::new(), |fabric| fabric.links());
        links.iter().filter(|l| is(l) && !has_left(l)).map(|l| l.peer).collect()
    }

    /// What waits for these ranks, if they are late, cannot wait any longer: they are lost from here on.
    #[cold]
    pub fn give_up_late(&self, of: impl Fn(&Link) -> bool) {
        let links = self.fabric_here().map_or(Vec::new(), |fabric| fabric.links());
        links.iter().filter(|link| of(link) && !has_left(link)).for_each(|link| link.give_up());
    }

    /// May this rank of another node hold a ticket of a ring of this process for messages of any source?
    pub fn may_hold_a_ticket(&self, rank: u32) -> bool {
        self.link_to(rank).is_some_and(|link| link.may_hold_a_ticket())
    }

    /// The connection with a rank on another node, if there is one.
    pub fn link_to(&self, rank: u32) -> Option<Arc<Link>> {
        self.fabric_here()?.known(rank)
    }

    /// What a wait for nobody in particular does for the connections, now and then: a peer that died silently is noticed.
    pub fn tend_links(&self) {
        let (Some(fabric), now) = (self.fabric_here(), crate::base::clock::now_ns()) else { return };
        if now.saturating_sub(self.tended_ns.load(Ordering::Relaxed)) < 20_000_000 {
            return;
        }
        self.tended_ns.store(now, Ordering::Relaxed);
        fabric.links().iter().for_each(|link| link.tend());
    }

    /// The connection with a rank of another node, made at first contact.
    pub fn link(&self, peer: u32) -> Result<Arc<Link>> {
        let (fabric, card) = (self.fabric(peer)?, self.fabric_card(peer)?);
        Ok(fabric.contact(peer, &card, 0, FIRST_CHUNK, Duration::from_secs_f64(self.config.attach_s))?.0)
    }

    /// The fabric between nodes.
    fn fabric(&self, peer: u32) -> Result<&Arc<Fabric>> {
        match self.fabric.get() {
            Some(fabric) => Ok(fabric),
            None => Err(self.no_way_to(peer, &self.launch.get(peer, &card_key(peer))?)),
        }
    }

    /// Where a rank of another node answers, which must be on the same network.
    fn fabric_card(&self, peer: u32) -> Result<Card> {
        let value = self.launch.get(peer, &fabric_key(peer))?;
        let (card, theirs) = Card::decode(&value)
            .ok_or_else(|| error!(Code::Launch, "what rank {peer} published with the launcher is no card of FMPL"))?;
        let mine = self.fabric.get().map_or(NO_NETWORK.to_owned(), |fabric| fabric.device().network());
        if mine != theirs {
            return Err(error!(
                Code::Unsupported,
                "{} uses the network {mine}, and {} uses {theirs}: all ranks must use the same (FMPL_NETWORK names it)",
                self.named(self.rank),
                self.named(peer),
            ));
        }
        Ok(card)
    }

    /// Where a process answers datagrams of the fabric.
    pub fn card_of(&self, rank: u32) -> Result<Card> {
        self.fabric_card(rank)
    }

    /// The peer is on another node, and nothing leads there.
    pub(super) fn no_way_to(&self, peer: u32, card: &[u8]) -> Error {
        let nodes = self.launch.nodes();
        let theirs = Attach::node_of(card).unwrap_or_else(|| "unknown".into());
        error!(
            Code::Unsupported,
            "rank {} on node {} ({}) and rank {peer} on node {} ({theirs}) share no memory, and nothing else leads from one to the other: {}",
            self.rank,
            nodes.node_of(self.rank),
            self.launch.node(),
            nodes.node_of(peer),
            match self.fabric.get() {
                Some(_) => "this call does not go over a network",
                None => "no network is used, since FMPL_NETWORK=none",
            },
        )
    }

    /// A rank and its node, for messages.
    fn named(&self, rank: u32) -> String {
        let card = self.launch.get(rank, &card_key(rank)).unwrap_or_default();
        let host = Attach::node_of(&card).unwrap_or_else(|| "unknown".into());
        format!("rank {rank} on node {} ({host})", self.launch.nodes().node_of(rank))
    }

    /// Some ranks are elsewhere, and nothing leads there.
    pub(super) fn no_network(&self, why: &Error) -> Error {
        let (nodes, rank) = (self.launch.nodes(), self.rank);
        let place =
            format!("rank {rank} on node {} of {} ({})", nodes.node_of(rank), nodes.nodes(), self.launch.node());
        Error::new(why.code(), format!("{place}: {} (fmpl doctor tells more)", why.detail()))
    }

    /// Finds in init what would be found at some first message: the first rank of each node asks those of two others, of the next node and of
    /// one far away, for an answer over the network, which must be the same. What that takes does not grow with the job.
    pub(super) fn probe_nodes(&self) -> Result<()> {
        let nodes = self.launch.nodes();
        if !self.has_other_nodes() || self.launch.local_ranks().first() != Some(&self.rank) {
            return Ok(());
        }
        let (here, all) = (nodes.node_of(self.rank), nodes.nodes());
        let mut others = vec![(here + 1) % all, (here + all / 2) % all];
        others.dedup();
        let first = |node: &u32| nodes.ranks_on(*node).next().expect("every node has a rank");
        let card = |rank| Ok((rank, self.fabric_card(rank)?));
        let peers: Vec<(u32, Card)> = others.iter().map(first).map(card).collect::<Result<_>>()?;
        let (Some(fabric), timeout) = (self.fabric.get(), Duration::from_secs_f64(self.config.attach_s)) else {
            return Ok(());
        };
        let Some((peer, why)) = fabric.probe(&peers, timeout)? else { return Ok(()) };
        let text = format!(
            "{} cannot reach {}: no answer over {why} within {:.1} s (FMPL_ATTACH_TIMEOUT sets the time)",
            self.named(self.rank),
            self.named(peer),
            self.config.attach_s,
        );
        Err(Error::new(Code::Peer, text))
    }

    /// The world's lane to a peer on another node, made at first contact. Its view lies where this rank's region has room for that peer.
    pub(super) fn remote_lane(&self, peer: u32) -> Result<Used> {
        let (fabric, card) = (self.fabric(peer)?, self.fabric_card(peer)?);
        // Outside the lock of the lanes, since it may take its time.
        let remote = Remote::open(fabric, peer, card, 0, self.config.attach_s)?;
        self.made_remote(Lane::key_of(crate::p2p::COMM_WORLD, peer), remote, |remote| {
            let window = self.region.map(LANES_AT + peer as u64 * LANE_STRIDE, LANE_BYTES)?;
            let mine = self.region.indices();
            let both = mine.min(remote.link.indices.load(Ordering::Acquire)) as usize;
            let (comm, board) = (crate::p2p::COMM_WORLD, self.region.board().cast_const().cast::<Board>());
            Ok(Lane::new(comm, WORLD_EPOCH, self.rank, peer, None, board, window, both)?.between_nodes(remote))
        })
    }

    /// The lane of this key, made by `make` of what first contact has given if it does not exist.
    fn made_remote(&self, key: u64, remote: Remote, make: impl FnOnce(Remote) -> Result<Lane>) -> Result<Used> {
        let mut ready = Some((remote, make));
        loop {
            let made = self.lanes.find_or_make_remote(key, || {
                let (remote, make) = ready.take().expect("made once");
                let lane = make(remote)?;
                self.apply_mode(&lane);
                Ok(lane)
            })?;
            if let Some(lane) = made {
                self.tell_lane(&lane);
                return Ok(lane);
            }
            // Somebody looks whether it may go, which it may not: it is about to be used.
            crate::base::thread::yield_core();
        }
    }

    /// The same of another communicator.
    pub(super) fn remote_lane_of(&self, context: &Context, rank: u32, of_world: &Lane) -> Result<Used> {
        let (peer, place) = (of_world.world, context.place);
        let (fabric, card) = (self.fabric(peer)?, self.fabric_card(peer)?);
        let remote = Remote::open(fabric, peer, card, place.epoch as u64, self.config.attach_s)?;
        self.made_remote(Lane::key_of(context.handle, rank), remote, |remote| {
            let at = PLACES_AT + peer as u64 * UNITS as u64 * UNIT_BYTES + place.unit as u64 * UNIT_BYTES;
            let window = self.region.map(at, Map::of_units(place.units as usize).bytes)?;
            let mine = self.region.indices();
            let both = mine.min(remote.link.indices.load(Ordering::Acquire)) as usize;
            let lane = Lane::of_communicator(context.handle, rank, of_world, place, window)?.between_nodes(remote);
            while !lane.come_alive(both.min(lane.most_indices()))? {
                crate::base::thread::yield_core();
            }
            Ok(lane)
        })
    }

    /// Sends the acknowledgements that are owed to other nodes, and sees to it that they have arrived: the news that this rank finalizes may
    /// go by other ranks.
    pub fn settle_fabric(&self) {
        let Some(fabric) = self.fabric.get() else { return };
        self.lanes.hold_remote(|_, _| true).iter().for_each(|lane| lane.remote().pay());
        let until = crate::base::clock::now_ns() + 1_000_000_000;
        fabric.links().iter().for_each(|link| link.drain(until));
    }

    /// Tells the peers on other nodes that this rank has left, and sees to it that what was posted has gone out.
    pub(super) fn leave_fabric(&self) {
        let Some(fabric) = self.fabric.get() else { return };
        let until = crate::base::clock::now_ns() + 1_000_000_000;
        fabric.ends_by(until);
        // Who has left before has heard all that it waited for, and its process may be gone.
        let hears = |remote: &Remote| remote.link.is_up() && !remote.has_left();
        for lane in self.lanes.hold_remote(|_, remote| hears(remote)).iter().filter(|lane| hears(lane.remote())) {
            lane.remote().say_side(lane.my_side());
        }
        fabric.links().iter().for_each(|link| link.drain(until));
        fabric.leave(until);
    }

    /// Of a member that nobody here has met no death is told. As long as none is known to live, one more of those on other nodes is met, the
    /// next behind this rank first, so that not all meet the same: it answers when its link is tended, or it is late.
    #[cold]
    pub fn meet_elsewhere(&self, group: &Group) {
        let Some(fabric) = self.fabric_here() else { return };
        let (links, nodes) = (fabric.links(), self.launch.nodes());
        let is_member = |rank: u32| group.rank_of(rank).is_some();
        let answers = |link: &Link| !link.has_ended() && !has_left(link) && link.silence().is_none();
        let has_gone = |rank: u32| self.is_dead(rank) || self.known(rank).is_some_and(|peer| peer.gone().is_some());
        let lives_here = |rank: &u32| *rank != self.rank && is_member(*rank) && !has_gone(*rank);
        let lives = links.iter().any(|link| answers(link) && is_member(link.peer));
        if lives || self.launch.local_ranks().iter().any(lives_here) {
            return;
        }
        let met: BTreeSet<u32> = links.iter().map(|link| link.peer).collect();
        let is_here = |rank: u32| nodes.node_of(rank) == nodes.node_of(self.rank);
        let behind = (1..group.size()).map(|k| group.world_rank((group.rank() + k) % group.size()));
        for rank in behind.filter(|rank| !is_here(*rank) && !met.contains(rank)) {
            if let Ok(card) = self.fabric_card(rank) {
                return fabric.acquaint(rank, &card);
            }
        }
    }
}
