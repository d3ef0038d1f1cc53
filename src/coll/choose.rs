//! Which algorithm a call takes: by its size and the number of members, by the machine's tuning file ([`crate::base::tuning`]), or forced
//! by a setting. The same on all ranks, since they all have the same file.

use crate::base::config::{
    AllreduceWay, BarrierWay, BcastWay, BetweenWay, ExchangeWay, ReduceWay, RemoteAllreduceWay, RemoteBcastWay, ScanWay,
};
use crate::p2p::endpoint::Endpoint;

use super::arena::{CELL_BYTES, CELLS, GROUP, RING_BYTES};

/// The table as it holds for a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choices {
    /// `FMPL_COLL_BARRIER`
    pub barrier: BarrierWay,
    /// `FMPL_COLL_BCAST`
    pub bcast: BcastWay,
    /// `FMPL_COLL_REDUCE`
    pub reduce: ReduceWay,
    /// `FMPL_COLL_ALLREDUCE`
    pub allreduce: AllreduceWay,
    /// `FMPL_COLL_EXCHANGE`
    pub exchange: ExchangeWay,
    /// `FMPL_COLL_SCAN`
    pub scan: ScanWay,
    /// From so many bytes of a member on blocks are copied from the members' memory.
    pub exchange_pull: usize,
    /// From this many bytes on the members of a scan hand their results on.
    pub scan_chain: usize,
    /// From this many bytes on a broadcast is read from the root's memory.
    pub bcast_pull: usize,
    /// From this many bytes on a reduction reads the members' memory.
    pub reduce_pull: usize,
    /// From this many bytes on an allreduce reads the members' memory.
    pub allreduce_pull: usize,
    /// From this many bytes on one member of an allreduce reduces and broadcasts.
    pub allreduce_root: usize,
    /// From this many bytes on each member of an allreduce reduces a slice.
    pub allreduce_slices: usize,
    /// Most bytes of a payload that go into a cell.
    pub chunk: usize,
    /// Bytes of a piece of a copy that several share.
    pub piece: usize,
    /// `FMPL_COLL_BETWEEN`
    pub between: BetweenWay,
    /// `FMPL_COLL_FAR_BCAST`
    pub remote_bcast: RemoteBcastWay,
    /// `FMPL_COLL_FAR_ALLREDUCE`
    pub remote_allreduce: RemoteAllreduceWay,
    /// From so many bytes for each node on a broadcast between nodes takes these ways.
    pub remote_bcast_from: [(RemoteBcastWay, usize); 4],
    /// Bytes of a piece that is handed on along a chain.
    pub remote_piece: usize,
    /// From this many bytes on an allreduce between nodes halves its vectors.
    pub remote_allreduce_halving: usize,
    /// More ranks than cores: nobody has time to share copying.
    pub crowded: bool,
    /// Copies between processes are not turned off.
    pub copies: bool,
    /// What tells one `FMPL_TOPOLOGY` from another; 0: there is none.
    pub topology: u64,
}

/// Members up to which each looks at all others' arrivals.
pub const FLAT_MOST: usize = 2 * GROUP;

impl Choices {
    /// What the tuning file and the settings say.
    pub fn new(ep: &Endpoint, members: usize) -> Choices {
        let config = &ep.config;
        let copies = config.cma;
        let row = ep.crossovers(members);
        let pull = |from: usize| if copies { from } else { usize::MAX };
        Choices {
            barrier: match config.coll_barrier {
                BarrierWay::Auto if members <= FLAT_MOST => BarrierWay::Flat,
                BarrierWay::Auto => BarrierWay::Groups,
                forced => forced,
            },
            bcast: config.coll_bcast,
            reduce: config.coll_reduce,
            allreduce: config.coll_allreduce,
            exchange: config.coll_exchange,
            scan: config.coll_scan,
            exchange_pull: pull(row.coll_exchange_pull),
            scan_chain: row.coll_scan_chain,
            bcast_pull: pull(row.coll_bcast_pull),
            reduce_pull: pull(row.coll_reduce_pull),
            allreduce_pull: pull(row.coll_allreduce_pull),
            allreduce_slices: row.coll_allreduce_slices,
            allreduce_root: row.coll_allreduce_root,
            chunk: row.coll_chunk,
            piece: row.coll_piece,
            between: config.coll_between,
            remote_bcast: config.remote_bcast,
            remote_allreduce: config.remote_allreduce,
            remote_bcast_from: [
                (RemoteBcastWay::Tree, row.coll_far_bcast_tree),
                (RemoteBcastWay::Ring, row.coll_far_bcast_ring),
                (RemoteBcastWay::Chain, row.coll_far_bcast_chain),
                (RemoteBcastWay::Multicast, row.coll_far_bcast_multicast),
            ],
            remote_piece: row.coll_far_piece,
            remote_allreduce_halving: row.coll_far_allreduce_halving,
            crowded: ep.crowded,
            copies,
            topology: ep.topology.as_ref().map_or(0, |t| 1 << 32 | t.digest() as u64),
        }
    }

    /// The way of a broadcast of this many bytes.
    #[inline]
    pub fn bcast(&self, bytes: usize) -> BcastWay {
        match self.bcast {
            BcastWay::Auto if bytes < self.bcast_pull => BcastWay::Cells,
            BcastWay::Auto if self.crowded => BcastWay::Pull,
            BcastWay::Auto => BcastWay::Coop,
            BcastWay::Pull | BcastWay::Coop if !self.copies => BcastWay::Cells,
            forced => forced,
        }
    }

    /// The way of a broadcast of this many bytes between so many nodes. `multicast`: it may go that way.
    pub fn remote_bcast(&self, bytes: usize, nodes: usize, multicast: bool) -> RemoteBcastWay {
        match self.remote_bcast {
            RemoteBcastWay::Auto => self.usual_remote_bcast(bytes, nodes, multicast),
            RemoteBcastWay::Multicast if !multicast => self.usual_remote_bcast(bytes, nodes, false),
            forced => forced,
        }
    }

    fn usual_remote_bcast(&self, bytes: usize, nodes: usize, multicast: bool) -> RemoteBcastWay {
        let possible = self.remote_bcast_from.iter().filter(|of| multicast || of.0 != RemoteBcastWay::Multicast);
        if nodes > 2 { latest(possible, bytes / nodes) } else { RemoteBcastWay::Tree }
    }

    /// The way of a reduction of this many bytes.
    #[inline]
    pub fn reduce(&self, bytes: usize) -> ReduceWay {
        match self.reduce {
            ReduceWay::Auto if bytes < self.reduce_pull => ReduceWay::Cells,
            ReduceWay::Auto => ReduceWay::Pull,
            ReduceWay::Pull if !self.copies => ReduceWay::Cells,
            forced => forced,
        }
    }

    /// The way of an allreduce of this many bytes.
    #[inline]
    pub fn allreduce(&self, bytes: usize) -> AllreduceWay {
        match self.allreduce {
            AllreduceWay::Auto if bytes >= self.allreduce_pull => AllreduceWay::Pull,
            AllreduceWay::Auto if bytes >= self.allreduce_slices => AllreduceWay::Slices,
            AllreduceWay::Auto if bytes >= self.allreduce_root => AllreduceWay::Root,
            AllreduceWay::Auto => AllreduceWay::Cells,
            AllreduceWay::Pull if !self.copies => AllreduceWay::Slices,
            forced => forced,
        }
    }

    /// The way of an exchange in which a member gives this many bytes.
    #[inline]
    pub fn exchange(&self, bytes: usize) -> ExchangeWay {
        match self.exchange {
            ExchangeWay::Auto if bytes < self.exchange_pull => ExchangeWay::Cells,
            ExchangeWay::Auto => ExchangeWay::Pull,
            ExchangeWay::Pull if !self.copies => ExchangeWay::Cells,
            forced => forced,
        }
    }

    /// The way of a scan of this many bytes.
    #[inline]
    pub fn scan(&self, bytes: usize) -> ScanWay {
        match self.scan {
            ScanWay::Auto if bytes < self.scan_chain => ScanWay::Cells,
            ScanWay::Auto => ScanWay::Chain,
            forced => forced,
        }
    }

    /// Bytes in a cell for a part of `bytes` bytes, up to [`SEGMENT`], of a payload of `whole`: a short payload takes several cells, so that
    /// writers and readers work at the same time, and no more than a ring has; of a long one the next part is written meanwhile, so
    /// that each takes half a ring.
    #[inline]
    pub fn chunk(&self, bytes: usize, whole: usize) -> usize {
        let least = bytes.div_ceil(CELLS).next_multiple_of(64);
        if self.crowded || whole > SEGMENT {
            CELL_BYTES
        } else {
            bytes.div_ceil(2).next_multiple_of(64).clamp(LEAST_CHUNK, self.chunk).max(least)
        }
    }

    /// A number that tells two tables apart; never 0.
    pub fn digest(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        // The keys of this hasher are fixed, so processes agree.
        #[expect(deprecated, reason = "a hash that is the same in all processes")]
        let mut hasher = std::hash::SipHasher::new();
        self.hash(&mut hasher);
        hasher.finish() | 1
    }
}

/// Least bytes of a long payload's cell; a model has small cells.
const LEAST_CHUNK: usize = if cfg!(loom) { 64 } else { 1024 };

/// Bytes of a payload that go through cells in one call; longer ones are cut.
pub const SEGMENT: usize = RING_BYTES / 2;

/// The way that begins last of those that have begun with so many bytes for each node; of several that begin at once the last one.
fn latest<'a>(ways: impl Iterator<Item = &'a (RemoteBcastWay, usize)>, share: usize) -> RemoteBcastWay {
    let begun = ways.filter(|(_, from)| *from <= share);
    begun.max_by_key(|(_, from)| *from).map_or(RemoteBcastWay::Tree, |(way, _)| *way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RemoteBcastWay::{Chain, Multicast, Ring, Tree};

    #[test]
    fn of_the_ways_that_have_begun_the_latest_is_taken() {
        let ways = [(Tree, 0), (Ring, 64), (Chain, 64), (Multicast, usize::MAX)];
        let at = |share| latest(ways.iter(), share);
        assert_eq!([at(0), at(63), at(64), at(1 << 40)], [Tree, Tree, Chain, Chain]);
        let ways = [(Tree, 100), (Ring, 50), (Chain, usize::MAX), (Multicast, 0)];
        let at = |share| latest(ways.iter(), share);
        assert_eq!([at(0), at(50), at(99), at(100)], [Multicast, Ring, Ring, Tree]);
        assert_eq!(latest(ways[..3].iter(), 49), Tree, "none has begun");
    }
}
