//! Global memory: every rank reads, writes and changes atomically what any rank has registered, without the owner's program.
//!
//! A **global address** is a number of 64 bits that names a byte of some rank's registered memory; ranks send them to each other as they
//! are. The first ones need not be sent: each rank has some **starter memory**, whose address everybody can compute. An operation is a
//! copy between any two addresses, also of two other ranks, or an atomic operation on a word. It has a handle, and may name one: then
//! it starts when that operation and all that were issued before it are over. (This is the basic layer of ACP, Advanced
//! Communication Primitives, whose C interface is `include/acp.h`.)
//!
//! Who does the work depends on where the memory is:
//!
//! | memory | copies | atomic operations |
//! |---|---|---|
//! | starter memory, `fmpl_alloc` | loads and stores by whoever asks: all ranks of the node have it mapped | by the processor, on the spot |
//! | any, of a rank on another node | by the RDMA device for whoever asks | by the device, then for all ranks |
//! | any other | by the kernel for whoever asks (`process_vm_readv`, `process_vm_writev`); where that is refused, by the owner | by the owner |
//!
//! so atomic operations on a word are always made by processors of one machine on the memory itself, and go together with each other and
//! with those of the owner's program; or, in a job with ranks on several nodes, by the owner's device, and go together with each other. What the owner must do, it does by its **helper**, a thread that sleeps when there is nothing and
//! does not exist until something is registered that may need it.
//!
//! | file | what it does |
//! |---|---|
//! | `address` | the bits of a global address |
//! | `record` | the shared records |
//! | `registry` | this rank's registrations |
//! | `view` | other ranks' registrations: the seam to the fabric |
//! | `short` | what is done most: with memory that both ranks share |
//! | `direct` | all else that can be done at once |
//! | `delegated` | what whoever is awake does for a third rank |
//! | `device` | what the RDMA device does |
//! | `queue`, `progress` | handles, order, what has to wait; how that moves on |
//! | `command`, `served`, `helper` | what only the owner can do: asked for, done, by whom |
//! | `life` | init, finalize, renumbering, meeting |

pub mod address;
mod command;
mod delegated;
mod device;
mod direct;
mod helper;
mod life;
#[cfg(loom)]
pub mod model;
mod progress;
mod queue;
pub mod record;
mod registry;
mod served;
mod short;
mod view;

use std::sync::Mutex;
use std::thread::JoinHandle;

pub use address::{GlobalAddress, Split};
pub use direct::{Atomic, Fetch};
pub use life::{close, open, reset, rma, sync};
pub use queue::{Failure, Into, REFUSED};
pub use registry::AddressKey;

use crate::base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::p2p::endpoint::Endpoint;
use device::Device;
use queue::Queue;
use record::Window;
use registry::{Entries, Registry};
use served::Served;
use view::Views;

/// As an order or in `complete`: everything issued so far.
pub const ALL: i64 = -1;
/// As an order: right after the operation issued last, and so after everything before it.
pub const CONT: i64 = -2;

/// This process's global memory.
pub struct Rma {
    ep: &'static Endpoint,
    split: Split,
    /// Where ranks are on several nodes.
    device: Option<Device>,
    /// Times that the job has opened global memory before.
    pub generation: u64,
    own: Window,
    /// What this rank has registered.
    entries: Entries,
    /// This rank's number in global addresses: its rank in the world, until it is changed.
    number: AtomicU32,
    renumbered: AtomicBool,
    views: Views,
    registry: Mutex<Registry>,
    /// The starter memory: in the heap, under key 0.
    starter: Run,
    /// Number of the last operation.
    issued: AtomicU64,
    /// Number of the first operation that is not over; the largest number when there is none.
    oldest: AtomicU64,
    /// Failures in the queue that nobody has been told of.
    failed: AtomicU32,
    /// Kinds of refused operations of which something has been said: see [`Rma::refuse`].
    said: AtomicU32,
    /// Delegated copies that this process has asked for.
    delegations: AtomicU64,
    queue: Mutex<Queue>,
    served: Mutex<Served>,
    helper: Mutex<Option<JoinHandle<()>>>,
    has_helper: AtomicBool,
    stop: AtomicBool,
    /// Times that it was opened and not closed.
    uses: AtomicU32,
}

impl Rma {
    /// This rank's number in global addresses.
    #[inline(always)]
    pub fn rank(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.ep.size
    }

    /// How addresses are divided.
    pub fn split(&self) -> Split {
        self.split
    }

    /// Bytes of each rank's starter memory.
    pub fn starter_len(&self) -> usize {
        self.starter.len()
    }

    /// The address of a rank's starter memory.
    pub fn starter(&self, rank: u32) -> Result<GlobalAddress> {
        if rank >= self.ep.size {
            return Err(self.no_rank(rank));
        }
        Ok(self.split.address(rank, 0, 0, 0))
    }

    #[cold]
    fn no_rank(&self, rank: u32) -> crate::Error {
        let text = format!("rank {}: rank {rank} of a job of {}", self.rank(), self.ep.size);
        crate::Error::new(crate::Code::Rank, text)
    }

    /// The rank of an address; an error when it names none of this job.
    pub fn rank_of(&self, ga: GlobalAddress) -> Result<u32> {
        self.parts(ga).map(|p| p.0).ok_or_else(|| self.wrong_address(ga, 0, "query rank"))
    }
}
