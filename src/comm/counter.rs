//! What this process has done in its job, in numbers: for tests and for the curious. Reading them costs a walk over the lanes; keeping
//! them costs a message an addition to a line that it writes anyway.

use std::sync::atomic::Ordering;

use crate::base::error::{Code, Result, error};
use crate::base::variants::variants;
use crate::lane::{Traffic, WayTaken};
use crate::p2p::endpoint::endpoint;

variants! {
    /// A number that is kept. The numbers of the variants are those of `FMPL_COUNTER_*`.
    #[non_exhaustive]
    #[derive(Hash)]
    pub enum Counter: i32 {
        /// Other ranks whose memory this process has mapped: with nobody else can anything go through shared memory.
        ShmPeers = 0,
        /// Indexed messages sent to other ranks through shared memory.
        ShmMessages = 1,
        /// The bytes of these messages.
        ShmBytes = 2,
        /// RDMA writes to ranks on other nodes, those that carry a record and those that carry a message's bytes.
        RdmaWrites = 3,
        /// RDMA reads from ranks on other nodes.
        RdmaReads = 4,
        /// The bytes of these writes and reads.
        RdmaBytes = 5,
        /// Bytes of messages that a processor has copied on their way to or from another node, landings apart.
        RdmaCopied = 6,
        /// Completions of writes and reads that were taken.
        RdmaCompletions = 7,
        /// Connections (RC queue pairs) with ranks on other nodes that this process has now.
        RdmaPairs = 8,
        /// Those that all ranks of this node have now.
        RdmaNodePairs = 9,
        /// Connections of this process that were given up so far, because others needed their place.
        RdmaRetired = 10,
        /// Packets sent to multicast groups, each to all members at once.
        MulticastPackets = 11,
        /// Of these packets the ones that some member did not get, and that this process sent to it alone.
        MulticastAgain = 12,
        /// Multicast groups that this process is in now.
        MulticastGroups = 13,
        /// Peers on other nodes with which this process has a context now: memory that they may write.
        RdmaContexts = 14,
        /// Those that all ranks of this node have now.
        RdmaNodeContexts = 15,
        /// Contexts of this process that were put away so far, because others needed their place.
        RdmaPutAway = 16,
        /// Operations on global memory that were refused or have failed, with those that were to follow them.
        GlobalRefused = 17,
        /// Loans that were handed over.
        Loans = 18,
        /// Bytes of messages that this process has copied into loans or out of them.
        LoanCopied = 19,
        /// Sleeps of waits.
        Sleeps = 20,
        /// Nanoseconds that waits have slept, of all threads together.
        SleptNs = 21,
        /// Bytes of the spool that have ever been in use.
        SpoolMost = 22,
        /// Indexed messages received.
        Received = 23,
        /// Short messages that have gone through the overflow queue.
        Queued = 24,
        /// Peers on other nodes that this process has forgotten so far, since nothing was under way with them and others needed their context.
        RdmaForgotten = 25,
        /// Registrations of this program's memory that are kept now for messages to other nodes.
        Registrations = 26,
        /// Their bytes.
        RegisteredBytes = 27,
        /// Times that a message found its memory registered.
        RegistrationsFound = 28,
        /// Registrations made, because none was found.
        RegistrationsMade = 29,
    }
}

/// As a counter's number, with a way's ([`WayTaken`]): the messages sent by it.
pub const BY_WAY: i32 = 32;
/// The same again: their bytes.
pub const BY_WAY_BYTES: i32 = 32;

/// By which way this process's indexed messages went so far.
pub fn traffic() -> Result<Traffic> {
    Ok(Traffic::of(endpoint()?.lanes.all().iter().copied()))
}

/// `fmpl_counter`: the value of the counter with this number.
pub fn counter(which: i32) -> Result<u64> {
    let ep = endpoint()?;
    let way = |base: i32| usize::try_from(which - base).ok().filter(|way| *way < WayTaken::ALL.len());
    for (k, base) in [BY_WAY, BY_WAY + BY_WAY_BYTES].into_iter().enumerate() {
        if let Some(way) = way(base) {
            return Ok(traffic()?.taken[way][k]);
        }
    }
    let Some(which) = Counter::from_number(which) else {
        return Err(error!(Code::Argument, "rank {}: there is no counter {which}", ep.rank));
    };
    if which == Counter::ShmPeers {
        return Ok((0..ep.size).filter(|r| ep.known(*r).is_some()).count() as u64);
    }
    if which == Counter::GlobalRefused {
        return Ok(ep.refused.load(Ordering::Relaxed));
    }
    if let Counter::Loans | Counter::LoanCopied = which {
        return Ok(ep.loans.counts()[which as usize - Counter::Loans as usize]);
    }
    if let Some(n) = (which as usize).checked_sub(Counter::Registrations as usize) {
        let (made, counts) = ep.fabric_here().map(|fabric| fabric.cache().counts()).unwrap_or_default();
        return Ok([counts.kept, counts.bytes, counts.found, made][n]);
    }
    match which {
        Counter::Sleeps | Counter::SleptNs => {
            return Ok(crate::wait::slept()[which as usize - Counter::Sleeps as usize]);
        }
        Counter::SpoolMost => return Ok(ep.spool.most() as u64),
        Counter::Received => return Ok(traffic()?.received),
        Counter::Queued => return Ok(traffic()?.queued),
        Counter::RdmaForgotten => return Ok(ep.fabric_here().map_or(0, |fabric| fabric.forgotten())),
        _ => {}
    }
    if let Some(n) = (which as usize).checked_sub(Counter::RdmaWrites as usize) {
        return Ok(ep.fabric_done()[n]);
    }
    let mut sum = 0;
    for lane in ep.lanes.all().iter().filter(|l| l.peer.is_some()) {
        let slots = crate::lane::map::SYSTEM_INDICES..lane.limit() as usize;
        sum += match which {
            Counter::ShmBytes => lane.sent_bytes(slots),
            _ => slots.map(|slot| lane.progress(slot).sent.load(Ordering::Relaxed)).sum(),
        };
    }
    Ok(sum)
}
