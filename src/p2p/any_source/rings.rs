//! Making the rings: those of others, as a sender, and a process's own, as a receiver, when each is first needed.

use super::*;
use crate::base::error::error;
use crate::base::named::Named;

impl Endpoint {
    /// The ring of an index at a rank, as a sender.
    pub(super) fn outgoing(&self, comm: i32, dst: i32, index: i32) -> Result<&'static Outgoing> {
        self.any_source.outgoing.find(key_of(comm, dst, index)).map_or_else(|| self.new_outgoing(comm, dst, index), Ok)
    }

    #[cold]
    fn new_outgoing(&self, comm: i32, dst: i32, index: i32) -> Result<&'static Outgoing> {
        let context = self.context(comm)?;
        let size = context.group.size();
        if dst < 0 || dst as u32 >= size {
            return Err(error!(
                Code::Rank,
                "rank {}: any-source send to rank {dst} of communicator {comm} of {size} ranks",
                self.rank,
                comm = Named(comm)
            ));
        }
        check_index(self, context, index)?;
        self.outgoing_at(context, dst, index)
    }

    /// The same, of a rank that exists and of any index, the library's own too.
    #[cold]
    pub(super) fn outgoing_at(&self, context: &Context, dst: i32, index: i32) -> Result<&'static Outgoing> {
        let (comm, rank) = (context.handle, context.group.world_rank(dst as u32));
        let key = key_of(comm, dst, index);
        if let Some(out) = self.any_source.outgoing.find(key) {
            return Ok(out);
        }
        if rank != self.rank && self.is_elsewhere(rank)? {
            return self.remote_outgoing_at(context, dst, index);
        }
        let peer = if rank == self.rank { None } else { Some(self.contact(rank)?) };
        let have = peer.as_ref().map_or(self.region.indices(), |p| p.region.header().indices.load(Ordering::Acquire));
        if (index as usize) < context.indices.min(INDEX_MAX) && index as u32 >= have {
            return Err(error!(
                Code::Index,
                "rank {}: any-source index {index} at rank {dst}: there are {have}, from 0 on", self.rank
            ));
        }
        let shape = peer.as_ref().map_or(Some(self.any_source.own), |p| share::of_region(p.region.header()));
        let Some((slots, shares)) = shape else {
            let what = self.break_off(rank, "the shape of its rings of any source, in the header of its region");
            let text =
                format!("rank {}: any-source send to (rank {dst}, index {index}): rank {rank} {what}", self.rank);
            return Err(Error::new(Code::Peer, text));
        };
        let domain = Domain::of(context);
        // Neighbours among the ranks of the node are in different shares.
        let number = self.launch.local_ranks().iter().position(|r| *r == self.rank).unwrap_or(0);
        let at = share::share_at(ring_at(domain.unit, index as usize), slots, share::share_of(number as u32, shares));
        self.any_source.outgoing.find_or_make(key, || {
            let window = match &peer {
                Some(p) => p.region.map(at, Ring::bytes(slots))?,
                None => self.region.map(at, Ring::bytes(slots))?,
            };
            let board: &Board = peer.as_ref().map_or(self.region.board_of(), |p| p.region.board_of());
            // SAFETY: mapped as long as the peer is held, which stands beside it; our own as long as the endpoint lives.
            let board: &'static Board = unsafe { &*std::ptr::from_ref(board) };
            let ring = Ring::new(window, slots, domain.epoch);
            let local = Local { ring, ring_at: at, board, peer: peer.clone() };
            Ok(Outgoing::new(key, (comm, dst, index), rank, Way::Local(local)))
        })
    }

    /// The same of a rank on another node.
    #[cold]
    fn remote_outgoing_at(&self, context: &Context, dst: i32, index: i32) -> Result<&'static Outgoing> {
        let (comm, rank) = (context.handle, context.group.world_rank(dst as u32));
        let used = self.lane_of(context, dst)?;
        let lane = used.lane();
        let Some(remote) = lane.remote() else { return Err(garbled(self, rank)) };
        if (index as usize) < context.indices.min(INDEX_MAX)
            && index as u32 >= remote.link.indices.load(Ordering::Acquire)
        {
            let have = remote.ask_indices()?;
            if index as u32 >= have {
                return Err(error!(
                    Code::Index,
                    "rank {}: any-source index {index} at rank {dst}: there are {have}, from 0 on", self.rank
                ));
            }
        }
        // Where the receiver is still starting, or making this communicator, it comes soon.
        let until = now_ns() + (self.config.attach_s * 1e9) as u64;
        let mut pause_ns = PAUSE_NS[0];
        let road = loop {
            let freed = match RemoteRoad::find(lane, index as usize) {
                Sought::Found(road) => break road,
                Sought::Freed => Some("has freed the communicator"),
                Sought::NotYet => None,
            };
            let what = lane.gone().or(freed).or_else(|| (now_ns() > until).then_some("has no ring for it"));
            if let Some(what) = what {
                return Err(lane.peer_error(self.rank, what, "any-source send to", index));
            }
            crate::base::thread::sleep(std::time::Duration::from_nanos(pause_ns));
            pause_ns = (2 * pause_ns).min(PAUSE_NS[1]);
        };
        let key = key_of(comm, dst, index);
        // The road stays, and so does what it was made of.
        used.for_good();
        let way = Way::Remote(road);
        self.any_source.outgoing.find_or_make(key, || Ok(Outgoing::new(key, (comm, dst, index), rank, way)))
    }

    /// The own ring of an index.
    #[cold]
    pub(super) fn incoming(&self, comm: i32, index: i32) -> Result<&'static Incoming> {
        let context = self.context(comm)?;
        check_index(self, context, index)?;
        self.incoming_at(context, index)
    }

    /// The same of any index, the library's own too.
    #[cold]
    pub(super) fn incoming_at(&self, context: &Context, index: i32) -> Result<&'static Incoming> {
        let comm = context.handle;
        let key = key_of(comm, -1, index);
        let domain = Domain::of(context);
        let (slots, shares) = self.any_source.own;
        let at = ring_at(domain.unit, index as usize);
        self.any_source.incoming.find_or_make(key, || {
            let share = |k| {
                let at = share::share_at(at, slots, k);
                let ring = Ring::new(self.region.map(at, Ring::bytes(slots))?, slots, domain.epoch);
                Ok(share::Share::new(at, ring))
            };
            let spans = self.spans_nodes(&domain.group);
            let all = (0..shares).map(share).collect::<Result<Vec<_>>>()?;
            Ok(Incoming::new(key, domain.clone(), (comm, index), all, spans))
        })
    }
}
