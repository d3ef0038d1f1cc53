//! A rank as another process of the same user sees it that only looks: `fmpl top`.

use std::io;

use crate::base::atomics::Ordering;
use crate::fabric::shm::region::{ALIVE, FINALIZED, PeerRegion};
use crate::lane::{Traffic, watched};
use crate::wait::{Board, Waits};

/// A rank of a job that runs on this node, seen from without: nothing is asked of it, and nothing written into its memory.
pub struct Watched {
    pid: u32,
    region: PeerRegion,
}

impl Watched {
    /// The rank that a process is; `None`: it is none, or not yet.
    ///
    /// Errors are the system's, where this process may not look at that one, and say when that one has another version of FMPL.
    pub fn find(pid: u32) -> io::Result<Option<Watched>> {
        Ok(PeerRegion::of_process(pid)?.map(|region| Watched { pid, region }))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its rank.
    pub fn rank(&self) -> u32 {
        self.region.rank()
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.region.header().size()
    }

    /// Is it in the job: behind init, and before the end of finalize? `None`: it has left.
    pub fn takes_part(&self) -> Option<bool> {
        match self.region.header().state.load(Ordering::Relaxed) {
            FINALIZED => None,
            state => Some(state == ALIVE),
        }
    }

    /// What its threads wait for that have waited for a while, and since when in nanoseconds of the node's clock.
    pub fn waits(&self) -> Vec<Waits> {
        self.region.board_of::<Board>().read()
    }

    /// The messages that it has sent and received. An error where the system does not let this process read the memory of that one.
    pub fn traffic(&self) -> io::Result<Traffic> {
        match self.region.header().signpost.load(Ordering::Relaxed) {
            0 => Ok(Traffic::default()),
            at => watched::traffic(self.pid as libc::pid_t, at),
        }
    }
}
