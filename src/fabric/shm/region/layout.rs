//! What lies where in a region, and its header.

use super::*;

/// The version of everything that two ranks share: this map, the header, the lane's records. Any change to one of them changes it.
pub const LAYOUT_VERSION: u32 = 41;

/// Where the owner's pulse is, a word: see [`pulse`](super::super::pulse). A region of before it has 0 there, which is no pulse.
pub const PULSE_AT: u64 = 2048;

/// Where the notice board begins.
pub const BOARD_AT: u64 = 4096;

/// Where the notice board ends.
pub const BOARD_END: u64 = 16384;

/// The notice board's length in bytes.
pub const BOARD_LEN: usize = (BOARD_END - BOARD_AT) as usize;

/// Where this rank's stakes in rings of others begin.
pub const STAKES_AT: u64 = BOARD_END;

/// Their length in bytes.
pub const STAKES_LEN: usize = 64 << 10;

/// Where the lives of communicators are: for each unit a word that says which communicator the owner has there, and whether it has
/// freed it. Written by the owner only.
pub const LIVES_AT: u64 = 1 << 30;

/// Where the records of global memory begin.
pub const RMA_AT: u64 = 2 << 30;

/// Where they end.
pub const RMA_END: u64 = RMA_AT + (16 << 20);

/// Where the lowest rank of a node has the tables of the node's connections, contexts and rings with others.
pub const NODE_AT: u64 = 3 << 30;

/// Where the spools begin.
pub const SPOOL_AT: u64 = 1 << 36;

/// Most bytes that all spools of a process may take together.
pub const SPOOL_WINDOW: usize = 16 << 30;

/// Where the memory of `fmpl_alloc` begins.
pub const HEAP_AT: u64 = 1 << 40;

/// Where the lanes begin.
pub const LANES_AT: u64 = 1 << 41;

/// Where the rings begin in which messages of any source arrive.
pub const ANY_AT: u64 = 1 << 56;

/// Where the lanes of communicators other than the world begin.
pub const PLACES_AT: u64 = 1 << 61;

/// Where the arenas of collective calls begin, of the communicators whose first member this rank is.
pub const ARENAS_AT: u64 = 1 << 55;

/// Where the ranks of communicators are that consist of no pattern, for their members on the node of which this rank is the lowest.
pub const GROUPS_AT: u64 = 3 << 54;

/// The length of the file.
pub const REGION_END: u64 = 1 << 62;

/// "FMPLREGN", so that a dump shows it.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"FMPLREGN");

/// [`RegionHeader::state`]: the owner is still in init.
pub const STARTING: u32 = 0;

/// [`RegionHeader::state`]: the owner takes part in the job.
pub const ALIVE: u32 = 1;

/// [`RegionHeader::state`]: the owner has left in good order; its end is no death.
pub const FINALIZED: u32 = 2;

/// [`RegionHeader::order`]: the owner's threads execute a fence whenever another process calls `membarrier`.
pub const REACHED: u32 = 1;

/// [`RegionHeader::order`]: a process that is not reached has mapped the region.
pub const STRANGER: u32 = 2;

/// The first bytes of a region.
///
/// ```text
///  0         8         12     16     20    24        28       32          40         48         56          60
///  ┌─────────┬─────────┬──────┬──────┬─────┬─────────┬────────┬───────────┬──────────┬──────────┬───────────┬────────────┐
///  │ magic   │ version │ rank │ size │ pid │ indices │ state  │ heap_base │ heap_len │ start_ns │ any_slots │ any_shares │
///  └─────────┴─────────┴──────┴──────┴─────┴─────────┴────────┴───────────┴──────────┴──────────┴───────────┴────────────┘
///  64      68     72      80
///  ┌───────┬──────┬───────┬──────────┐
///  │ order │      │ loans │ signpost │
///  └───────┴──────┴───────┴──────────┘
/// ```
/// Written by the owner only, but for the order, in which whoever maps the region may set [`STRANGER`]. Magic, version, rank, size, pid and
/// start are written once, before anybody else has the file.
#[repr(C)]
pub struct RegionHeader {
    pub(super) magic: AtomicU64,
    pub(super) layout_version: AtomicU32,
    pub(super) rank: AtomicU32,
    pub(super) size: AtomicU32,
    pub(super) pid: AtomicU32,
    /// How many indices this rank has for each peer; the smaller of a pair's numbers holds for it.
    pub indices: AtomicU32,
    /// [`STARTING`], [`ALIVE`] or [`FINALIZED`].
    pub state: AtomicU32,
    /// The owner's own address of [`HEAP_AT`]; 0 as long as it has no heap. Stored with release after `heap_len`.
    pub heap_base: AtomicU64,
    /// The length in bytes of the owner's heap window.
    pub heap_len: AtomicU64,
    pub(super) start_ns: AtomicU64,
    /// The slots of each ring of this rank in which messages of any source arrive; written once, before anybody else has the file.
    pub any_slots: AtomicU32,
    /// How many shares these are split into (`FMPL_SPREAD`); written once, as above. 0 is 1.
    pub any_shares: AtomicU32,
    /// [`REACHED`], [`STRANGER`]: see [`RegionHeader::is_ordered`].
    pub(super) order: AtomicU32,
    pub(super) _pad0: AtomicU32,
    /// The owner's own address of the words by which its loans come back, in its heap; 0: it has made none.
    pub loans: AtomicU64,
    /// The owner's own address of what says where its private numbers lie, for those who only look (`fmpl top`); 0: not in the job yet.
    pub signpost: AtomicU64,
    pub(super) _pad: [AtomicU32; 10],
}

const_assert!(size_of::<usize>() == 8);

const_assert!(size_of::<RegionHeader>() == 128);

const_assert!(size_of::<RegionHeader>() as u64 <= BOARD_AT);

const_assert!(core::mem::offset_of!(RegionHeader, magic) == 0);

const_assert!(core::mem::offset_of!(RegionHeader, layout_version) == 8);

const_assert!(core::mem::offset_of!(RegionHeader, rank) == 12);

const_assert!(core::mem::offset_of!(RegionHeader, size) == 16);

const_assert!(core::mem::offset_of!(RegionHeader, pid) == 20);

const_assert!(core::mem::offset_of!(RegionHeader, indices) == 24);

const_assert!(core::mem::offset_of!(RegionHeader, state) == 28);

const_assert!(core::mem::offset_of!(RegionHeader, heap_base) == 32);

const_assert!(core::mem::offset_of!(RegionHeader, heap_len) == 40);

const_assert!(core::mem::offset_of!(RegionHeader, start_ns) == 48);

const_assert!(core::mem::offset_of!(RegionHeader, any_slots) == 56);

const_assert!(core::mem::offset_of!(RegionHeader, any_shares) == 60);

const_assert!(core::mem::offset_of!(RegionHeader, order) == 64);

const_assert!(core::mem::offset_of!(RegionHeader, loans) == 72);

const_assert!(core::mem::offset_of!(RegionHeader, signpost) == 80);

impl RegionHeader {
    /// The owner's version of the shared layout.
    pub fn layout_version(&self) -> u32 {
        self.layout_version.load(Ordering::Relaxed)
    }
    /// The owner's rank.
    pub fn rank(&self) -> u32 {
        self.rank.load(Ordering::Relaxed)
    }
    /// The number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }
    /// The owner's process id, as the owner sees it.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }
    /// When the region was made, in nanoseconds of [`clock::now_ns`].
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Relaxed)
    }
    /// The owner says, before anybody else has the file, that it is reached by the `membarrier` of others.
    pub fn say_reached(&self) {
        self.order.store(REACHED, Ordering::Relaxed);
    }
    /// Is the owner reached by the `membarrier` of others?
    pub fn is_reached(&self) -> bool {
        self.order.load(Ordering::Relaxed) & REACHED != 0
    }
    /// Are all reached that can write in this region: its owner and all who have mapped it? Then one of them that calls `membarrier`
    /// has the order of all bought. Who buys it asks *afterwards*.
    #[inline(always)]
    pub fn is_ordered(&self) -> bool {
        self.order.load(Ordering::Relaxed) == REACHED
    }
    /// A process has mapped the region, and says what it is before it uses anything in it.
    pub(in super::super) fn mapped_by(&self, reached: bool) {
        if !reached {
            self.order.fetch_or(STRANGER, Ordering::SeqCst);
            // SYNC POINT: pairs with the fence of `doorbell::barrier`: either who buys the order sees the stranger afterwards, or the stranger
            // sees all that was stored before.
            fence(Ordering::SeqCst);
        }
    }
}
