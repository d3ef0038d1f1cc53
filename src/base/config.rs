//! The settings: one table, read once from the environment at init, printed by `fmpl info`.
//!
//! A value that cannot be used is an error that shows the possible ones; a name that starts with `FMPL_` and is no setting
//! is reported once, since it is most likely misspelt.

use crate::base::error::{Code, Error, Result};

/// One row of the table of settings.
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// What holds without it, as it would be written.
    pub default: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it does.
    pub meaning: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
}

/// How a thread waits for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Never sleeps: the lowest latency, a whole core for each waiter.
    Spin,
    /// Spins for a while, yields for a while, then sleeps.
    Adaptive,
    /// Sleeps almost at once.
    Block,
}

/// The way payloads take on a node: chosen by size and by where the buffers are, or forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the tuning table.
    Auto,
    /// Everything is copied into the spool, and the receiver copies it out.
    Spool,
    /// Through a small ring of chunks that stay in the cache; two copies, overlapped.
    Ring,
    /// One copy by the sender into memory that the receiver has from `fmpl_alloc`.
    Store,
    /// One copy by the kernel (`process_vm_writev`, `process_vm_readv`).
    Cma,
    /// One copy by the kernel, its pieces shared by both sides.
    Coop,
}

/// How a barrier meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierWay {
    /// By the number of ranks.
    Auto,
    /// Everybody looks at everybody.
    Flat,
    /// Groups of eight, then their first ones.
    Groups,
}

/// How gather, allgather, scatter, alltoall and reduce-scatter move blocks on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeWay {
    /// By size.
    Auto,
    /// Through the cells of the givers.
    Cells,
    /// Each taker copies out of the givers' memory.
    Pull,
}

/// Nodes that collective calls pretend, to try their algorithms between nodes on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PretendedNodes {
    /// The nodes are what they are.
    Off,
    /// So many, each of neighbouring ranks.
    Blocks(u32),
    /// So many, in turn.
    Cyclic(u32),
}

/// Who talks with whom in a collective call between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BetweenWay {
    /// By the call.
    Auto,
    /// One rank of each node.
    Leaders,
    /// All ranks.
    Flat,
}

/// How a broadcast travels between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FarBcastWay {
    /// By size.
    Auto,
    /// Down a binomial tree.
    Tree,
    /// In parts down the tree, which then go round a ring.
    Ring,
}

/// How an allreduce works between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FarAllreduceWay {
    /// By size.
    Auto,
    /// Whole vectors between blocks of ranks that double.
    Doubling,
    /// Halves of halves, and back.
    Halving,
}

/// How a scan works on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanWay {
    /// By size.
    Auto,
    /// Each rank combines the vectors of all before it.
    Cells,
    /// Each rank hands its result on to the next.
    Chain,
}

/// How a broadcast travels on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BcastWay {
    /// By size.
    Auto,
    /// Through cells in shared memory.
    Cells,
    /// Each reader copies from the root's memory.
    Pull,
    /// Likewise, and the root helps.
    Coop,
}

/// How a reduce works on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceWay {
    /// By size.
    Auto,
    /// Through cells in shared memory.
    Cells,
    /// From the ranks' own memory, by all of them.
    Pull,
}

/// How an allreduce works on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllreduceWay {
    /// By size.
    Auto,
    /// Through cells in shared memory, everybody reduces everything.
    Cells,
    /// Through shared memory, everybody reduces a slice.
    Slices,
    /// From the ranks' own memory, by all of them.
    Pull,
}

/// What to do about a cycle of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeadlock {
    /// Print it once and go on waiting.
    Report,
    /// Print it and end the waits with an error.
    Abort,
}

/// The settings of this process.
#[derive(Clone, Debug)]
pub struct Config {
    /// `FMPL_WAIT`
    pub wait: WaitMode,
    /// `FMPL_SPIN`, microseconds
    pub spin_us: Option<u32>,
    /// `FMPL_STALL`, seconds; 0: never
    pub stall_s: f64,
    /// `FMPL_DEADLOCK`
    pub deadlock: OnDeadlock,
    /// `FMPL_SHM_PATH`
    pub way: Way,
    /// `FMPL_CMA`
    pub cma: bool,
    /// `FMPL_SPOOL`, bytes
    pub spool_bytes: usize,
    /// `FMPL_TIMEOUT`, milliseconds; negative: infinite
    pub timeout_ms: i32,
    /// `FMPL_EAGER`, bytes
    pub eager_bytes: Option<usize>,
    /// `FMPL_RING_MAX`, bytes
    pub ring_max: Option<usize>,
    /// `FMPL_COOP_MIN`, bytes
    pub coop_min: Option<usize>,
    /// `FMPL_COOP_PIECE`, bytes
    pub coop_piece: Option<usize>,
    /// `FMPL_RING_CHUNK`, bytes
    pub ring_chunk: Option<usize>,
    /// `FMPL_RING_CHUNKS`
    pub ring_chunks: Option<usize>,
    /// `FMPL_ANY_SLOTS`
    pub any_slots: usize,
    /// `FMPL_RMA_STARTER`, bytes
    pub rma_starter: usize,
    /// `FMPL_RMA_KEYS`
    pub rma_keys: usize,
    /// `FMPL_RMA_COMMANDS`
    pub rma_commands: usize,
    /// `FMPL_RMA_PEERS`
    pub rma_peers: usize,
    /// `FMPL_COLL_BARRIER`
    pub coll_barrier: BarrierWay,
    /// `FMPL_COLL_BCAST`
    pub coll_bcast: BcastWay,
    /// `FMPL_COLL_REDUCE`
    pub coll_reduce: ReduceWay,
    /// `FMPL_COLL_ALLREDUCE`
    pub coll_allreduce: AllreduceWay,
    /// `FMPL_COLL_EXCHANGE`
    pub coll_exchange: ExchangeWay,
    /// `FMPL_COLL_SCAN`
    pub coll_scan: ScanWay,
    /// `FMPL_COLL_NODES`
    pub coll_nodes: PretendedNodes,
    /// `FMPL_COLL_BETWEEN`
    pub coll_between: BetweenWay,
    /// `FMPL_COLL_FAR_BCAST`
    pub far_bcast: FarBcastWay,
    /// `FMPL_COLL_FAR_ALLREDUCE`
    pub far_allreduce: FarAllreduceWay,
    /// `FMPL_COLL_EXCHANGE_PULL`, bytes
    pub exchange_pull: Option<usize>,
    /// `FMPL_COLL_SCAN_CHAIN`, bytes
    pub scan_chain: Option<usize>,
    /// `FMPL_COLL_BCAST_PULL`, bytes
    pub bcast_pull: Option<usize>,
    /// `FMPL_COLL_REDUCE_PULL`, bytes
    pub reduce_pull: Option<usize>,
    /// `FMPL_COLL_ALLREDUCE_PULL`, bytes
    pub allreduce_pull: Option<usize>,
    /// `FMPL_COLL_ALLREDUCE_SLICES`, bytes
    pub allreduce_slices: Option<usize>,
    /// `FMPL_COLL_CHUNK`, bytes
    pub coll_chunk: Option<usize>,
    /// `FMPL_COLL_PIECE`, bytes
    pub coll_piece: Option<usize>,
    /// `FMPL_ATTACH_TIMEOUT`, seconds
    pub attach_s: f64,
    /// `FMPL_VERBS`
    pub verbs: bool,
    /// `FMPL_VERBS_DEVICE`
    pub verbs_devices: Option<String>,
    /// `FMPL_VERBS_CACHE`
    pub verbs_cache: bool,
    /// `FMPL_VERBS_POLL`: is a completion at the receiver waited for before bytes are believed to be there?
    pub verbs_strict: bool,
    /// `FMPL_VERBS_GID`
    pub verbs_gid: Option<u32>,
    /// `FMPL_VERBS_MTU`, bytes
    pub verbs_mtu: Option<u32>,
    /// `FMPL_VERBS_PKEY`
    pub verbs_pkey: Option<u16>,
    /// `FMPL_QUEUE_PAIRS`: connections of all processes of a node with other nodes, at most.
    pub queue_pairs: usize,
    /// `FMPL_START_TIMEOUT`, seconds
    pub start_s: f64,
    /// `FMPL_BLACS_SPOOL`, bytes; read by `libfmpl_blacs`
    pub blacs_spool_bytes: usize,
    /// `FMPL_LOG`
    pub log: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            wait: WaitMode::Adaptive,
            spin_us: None,
            stall_s: 10.0,
            deadlock: OnDeadlock::Report,
            way: Way::Auto,
            cma: true,
            spool_bytes: 16 << 20,
            timeout_ms: 10,
            eager_bytes: None,
            ring_max: None,
            coop_min: None,
            coop_piece: None,
            ring_chunk: None,
            ring_chunks: None,
            any_slots: 512,
            rma_starter: 10 << 10,
            rma_keys: 255,
            rma_commands: 4096,
            rma_peers: 1024,
            coll_barrier: BarrierWay::Auto,
            coll_bcast: BcastWay::Auto,
            coll_reduce: ReduceWay::Auto,
            coll_allreduce: AllreduceWay::Auto,
            coll_exchange: ExchangeWay::Auto,
            coll_scan: ScanWay::Auto,
            coll_nodes: PretendedNodes::Off,
            coll_between: BetweenWay::Auto,
            far_bcast: FarBcastWay::Auto,
            far_allreduce: FarAllreduceWay::Auto,
            exchange_pull: None,
            scan_chain: None,
            bcast_pull: None,
            reduce_pull: None,
            allreduce_pull: None,
            allreduce_slices: None,
            coll_chunk: None,
            coll_piece: None,
            attach_s: 30.0,
            start_s: 120.0,
            verbs: true,
            verbs_devices: None,
            verbs_cache: true,
            verbs_strict: false,
            verbs_gid: None,
            verbs_mtu: None,
            verbs_pkey: None,
            queue_pairs: 128,
            blacs_spool_bytes: 1 << 30,
            log: 1,
        }
    }
}

/// Every setting, in the order in which `fmpl info` prints them.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "FMPL_WAIT",
        default: "adaptive",
        values: "spin | adaptive | block",
        meaning: "how a thread waits: never sleep; spin, yield, then sleep; sleep almost at once",
        set: |c, v| {
            c.wait = match v {
                "spin" => WaitMode::Spin,
                "adaptive" => WaitMode::Adaptive,
                "block" => WaitMode::Block,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_SPIN",
        default: "by the number of ranks and cores",
        values: "microseconds",
        meaning: "how long a waiter spins before it yields its core",
        set: |c, v| v.parse().ok().map(|n| c.spin_us = Some(n)),
    },
    Setting {
        name: "FMPL_STALL",
        default: "10",
        values: "seconds, 0 = never",
        meaning: "a wait longer than this prints who waits for whom",
        set: |c, v| v.parse().ok().filter(|s: &f64| *s >= 0.0).map(|s| c.stall_s = s),
    },
    Setting {
        name: "FMPL_DEADLOCK",
        default: "report",
        values: "report | abort",
        meaning: "a cycle of waits is printed once; with abort the waits also end with FMPL_ERR_DEADLOCK",
        set: |c, v| {
            c.deadlock = match v {
                "report" => OnDeadlock::Report,
                "abort" => OnDeadlock::Abort,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_SHM_PATH",
        default: "auto",
        values: "auto | spool | ring | store | cma | coop",
        meaning: "the way of messages that do not fit inline, on a node: by the tuning table, or this one wherever it can be taken",
        set: |c, v| {
            c.way = match v {
                "auto" => Way::Auto,
                "spool" => Way::Spool,
                "ring" => Way::Ring,
                "store" => Way::Store,
                "cma" => Way::Cma,
                "coop" => Way::Coop,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_CMA",
        default: "on",
        values: "on | off",
        meaning: "use process_vm_readv and process_vm_writev where the system allows it",
        set: |c, v| on_off(v).map(|b| c.cma = b),
    },
    Setting {
        name: "FMPL_SPOOL",
        default: "16M",
        values: "bytes, with k, M or G",
        meaning: "the size of the spool when fmpl_sendbuf_set was not called",
        set: |c, v| bytes(v).map(|n| c.spool_bytes = n),
    },
    Setting {
        name: "FMPL_TIMEOUT",
        default: "10",
        values: "milliseconds, 0 = buffered, -1 = synchronous",
        meaning: "how long a send waits for its receive before it buffers, when fmpl_sendbuf_set was not called",
        set: |c, v| v.parse().ok().filter(|t| *t >= -1).map(|t| c.timeout_ms = t),
    },
    Setting {
        name: "FMPL_EAGER",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "up to this size a message is sent without waiting for its receive",
        set: |c, v| bytes(v).map(|n| c.eager_bytes = Some(n)),
    },
    Setting {
        name: "FMPL_RING_MAX",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "up to this size a message to a waiting receiver goes through the ring of chunks, above it by CMA",
        set: |c, v| bytes(v).map(|n| c.ring_max = Some(n)),
    },
    Setting {
        name: "FMPL_RING_CHUNK",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "the size of a chunk of the ring",
        set: |c, v| {
            bytes(v).filter(|n| n.is_power_of_two() && (256..=65536).contains(n)).map(|n| c.ring_chunk = Some(n))
        },
    },
    Setting {
        name: "FMPL_RING_CHUNKS",
        default: "tuning table",
        values: "2 to 16",
        meaning: "the chunks of the ring: few, so that they stay in the innermost caches",
        set: |c, v| v.parse().ok().filter(|n| (2..=16).contains(n)).map(|n| c.ring_chunks = Some(n)),
    },
    Setting {
        name: "FMPL_COOP_MIN",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on sender and waiting receiver share the copying",
        set: |c, v| bytes(v).map(|n| c.coop_min = Some(n)),
    },
    Setting {
        name: "FMPL_COOP_PIECE",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "the size of the pieces in which the copying is shared",
        set: |c, v| bytes(v).filter(|n| *n >= 4096).map(|n| c.coop_piece = Some(n)),
    },
    Setting {
        name: "FMPL_ANY_SLOTS",
        default: "512",
        values: "2 to 4096, a power of two",
        meaning: "messages of any source that an index of this rank holds before their senders wait",
        set: |c, v| {
            let n = v.parse().ok().filter(|n: &usize| n.is_power_of_two() && (2..=4096).contains(n))?;
            c.any_slots = n;
            Some(())
        },
    },
    Setting {
        name: "FMPL_RMA_STARTER",
        default: "10k",
        values: "bytes, with k, M or G; the same on all ranks",
        meaning: "the starter memory of each rank, which global addresses reach right after init",
        set: |c, v| bytes(v).filter(|n| (8..=1 << 30).contains(n)).map(|n| c.rma_starter = n),
    },
    Setting {
        name: "FMPL_RMA_KEYS",
        default: "255",
        values: "1 to 65535; the same on all ranks",
        meaning: "registrations of global memory that a rank can have at a time; more than 255 take bits from the rank in an address",
        set: |c, v| v.parse().ok().filter(|n| (1..=65535).contains(n)).map(|n| c.rma_keys = n),
    },
    Setting {
        name: "FMPL_RMA_COMMANDS",
        default: "4096",
        values: "2 to 4096, a power of two",
        meaning: "remote commands of all ranks together that this rank holds before those that come later wait",
        set: |c, v| {
            let n = v.parse().ok().filter(|n: &usize| n.is_power_of_two() && (2..=4096).contains(n))?;
            c.rma_commands = n;
            Some(())
        },
    },
    Setting {
        name: "FMPL_RMA_PEERS",
        default: "1024",
        values: "1 to 65536",
        meaning: "ranks whose tables of registered memory this rank has at hand at a time",
        set: |c, v| v.parse().ok().filter(|n| (1..=65536).contains(n)).map(|n| c.rma_peers = n),
    },
    Setting {
        name: "FMPL_COLL_BARRIER",
        default: "auto",
        values: "auto | flat | groups",
        meaning: "how a barrier meets; the settings of collective calls must be the same on all ranks",
        set: |c, v| {
            c.coll_barrier = match v {
                "auto" => BarrierWay::Auto,
                "flat" => BarrierWay::Flat,
                "groups" => BarrierWay::Groups,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_BCAST",
        default: "auto",
        values: "auto | cells | pull | coop",
        meaning: "how a broadcast of more than 56 bytes travels",
        set: |c, v| {
            c.coll_bcast = match v {
                "auto" => BcastWay::Auto,
                "cells" => BcastWay::Cells,
                "pull" => BcastWay::Pull,
                "coop" => BcastWay::Coop,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_REDUCE",
        default: "auto",
        values: "auto | cells | pull",
        meaning: "how a reduce works",
        set: |c, v| {
            c.coll_reduce = match v {
                "auto" => ReduceWay::Auto,
                "cells" => ReduceWay::Cells,
                "pull" => ReduceWay::Pull,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_ALLREDUCE",
        default: "auto",
        values: "auto | cells | slices | pull",
        meaning: "how an allreduce of more than 24 bytes works",
        set: |c, v| {
            c.coll_allreduce = match v {
                "auto" => AllreduceWay::Auto,
                "cells" => AllreduceWay::Cells,
                "slices" => AllreduceWay::Slices,
                "pull" => AllreduceWay::Pull,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_EXCHANGE",
        default: "auto",
        values: "auto | cells | pull",
        meaning: "how gather, allgather, scatter, alltoall and reduce_scatter move their blocks",
        set: |c, v| {
            c.coll_exchange = match v {
                "auto" => ExchangeWay::Auto,
                "cells" => ExchangeWay::Cells,
                "pull" => ExchangeWay::Pull,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_SCAN",
        default: "auto",
        values: "auto | cells | chain",
        meaning: "how a scan works",
        set: |c, v| {
            c.coll_scan = match v {
                "auto" => ScanWay::Auto,
                "cells" => ScanWay::Cells,
                "chain" => ScanWay::Chain,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_BETWEEN",
        default: "auto",
        values: "auto | leaders | flat",
        meaning: "who talks between nodes in a collective call: one rank of each node, or all",
        set: |c, v| {
            c.coll_between = match v {
                "auto" => BetweenWay::Auto,
                "leaders" => BetweenWay::Leaders,
                "flat" => BetweenWay::Flat,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_FAR_BCAST",
        default: "auto",
        values: "auto | tree | ring",
        meaning: "how a broadcast travels between nodes",
        set: |c, v| {
            c.far_bcast = match v {
                "auto" => FarBcastWay::Auto,
                "tree" => FarBcastWay::Tree,
                "ring" => FarBcastWay::Ring,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_FAR_ALLREDUCE",
        default: "auto",
        values: "auto | doubling | halving",
        meaning: "how an allreduce works between nodes",
        set: |c, v| {
            c.far_allreduce = match v {
                "auto" => FarAllreduceWay::Auto,
                "doubling" => FarAllreduceWay::Doubling,
                "halving" => FarAllreduceWay::Halving,
                _ => return None,
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_NODES",
        default: "off",
        values: "off | a number of nodes, of neighbouring ranks | c and a number, of ranks in turn",
        meaning: "collective calls take the ranks of this node for those of several",
        set: |c, v| {
            let count = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0);
            c.coll_nodes = match v.strip_prefix('c') {
                _ if v == "off" => PretendedNodes::Off,
                Some(n) => PretendedNodes::Cyclic(count(n)?),
                None => PretendedNodes::Blocks(count(v)?),
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_COLL_BCAST_PULL",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on a broadcast is copied from the root's memory",
        set: |c, v| bytes(v).map(|n| c.bcast_pull = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_REDUCE_PULL",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on a reduce reads the ranks' memory",
        set: |c, v| bytes(v).map(|n| c.reduce_pull = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_ALLREDUCE_PULL",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on an allreduce reads the ranks' memory",
        set: |c, v| bytes(v).map(|n| c.allreduce_pull = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_ALLREDUCE_SLICES",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on each rank of an allreduce reduces a slice",
        set: |c, v| bytes(v).map(|n| c.allreduce_slices = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_EXCHANGE_PULL",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from so many bytes of a rank on blocks are copied from the ranks' memory",
        set: |c, v| bytes(v).map(|n| c.exchange_pull = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_SCAN_CHAIN",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "from this size on the ranks of a scan hand their results on",
        set: |c, v| bytes(v).map(|n| c.scan_chain = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_CHUNK",
        default: "tuning table",
        values: "bytes, from 1k to 8k",
        meaning: "how much of a collective call's payload goes into a cell",
        set: |c, v| bytes(v).filter(|n| (1024..=8192).contains(n)).map(|n| c.coll_chunk = Some(n)),
    },
    Setting {
        name: "FMPL_COLL_PIECE",
        default: "tuning table",
        values: "bytes, with k, M or G",
        meaning: "the size of the pieces in which the ranks share the copying of a collective call",
        set: |c, v| bytes(v).filter(|n| *n >= 4096).map(|n| c.coll_piece = Some(n)),
    },
    Setting {
        name: "FMPL_ATTACH_TIMEOUT",
        default: "30",
        values: "seconds",
        meaning: "how long the first contact with a peer may take",
        set: |c, v| v.parse().ok().filter(|s: &f64| *s > 0.0).map(|s| c.attach_s = s),
    },
    Setting {
        name: "FMPL_VERBS",
        default: "on",
        values: "on | off",
        meaning: "reach ranks on other nodes by RDMA (libibverbs), where there are devices",
        set: |c, v| on_off(v).map(|b| c.verbs = b),
    },
    Setting {
        name: "FMPL_VERBS_DEVICE",
        default: "the nearest active ports, in turn",
        values: "names as fmpl info shows them, with :port or without, separated by commas",
        meaning: "the RDMA ports among which the ranks of a node are spread",
        set: |c, v| (!v.is_empty()).then(|| c.verbs_devices = Some(v.to_owned())),
    },
    Setting {
        name: "FMPL_VERBS_CACHE",
        default: "on",
        values: "on | off",
        meaning: "user memory stays registered from one message to the next, until it is unmapped",
        set: |c, v| on_off(v).map(|b| c.verbs_cache = b),
    },
    Setting {
        name: "FMPL_VERBS_POLL",
        default: "memory",
        values: "memory | cq",
        meaning: "cq: bytes that a device has put into a buffer count as there when their completion says so, as the specification demands",
        set: |c, v| match v {
            "memory" | "cq" => {
                c.verbs_strict = v == "cq";
                Some(())
            }
            _ => None,
        },
    },
    Setting {
        name: "FMPL_VERBS_GID",
        default: "RoCE v2 with IPv4, then v2 with IPv6, then v1",
        values: "an index of the port's table of addresses",
        meaning: "the address (gid) of the port",
        set: |c, v| v.parse().ok().map(|n| c.verbs_gid = Some(n)),
    },
    Setting {
        name: "FMPL_VERBS_MTU",
        default: "the port's active one",
        values: "256 | 512 | 1024 | 2048 | 4096",
        meaning: "bytes in a packet",
        set: |c, v| v.parse().ok().map(|n| c.verbs_mtu = Some(n)),
    },
    Setting {
        name: "FMPL_VERBS_PKEY",
        default: "the first with full membership",
        values: "a key, such as 0x8001",
        meaning: "the InfiniBand partition",
        set: |c, v| {
            let digits = v.strip_prefix("0x").unwrap_or(v);
            u16::from_str_radix(digits, 16).ok().map(|n| c.verbs_pkey = Some(n))
        },
    },
    Setting {
        name: "FMPL_QUEUE_PAIRS",
        default: "128",
        values: "a number from 1 to 65536, the same for all ranks of a node",
        meaning: "connections (RC queue pairs) of all ranks of a node with other nodes, together; beyond that the one used longest ago is \
                  given up until it is used again",
        set: |c, v| v.parse().ok().filter(|n| (1..=1 << 16).contains(n)).map(|n| c.queue_pairs = n),
    },
    Setting {
        name: "FMPL_START_TIMEOUT",
        default: "120",
        values: "seconds",
        meaning: "how long the ranks of a job started by FMPL_RANK and FMPL_ROOT may take to find each other",
        set: |c, v| v.parse().ok().filter(|s: &f64| *s > 0.0 && *s < 1e6).map(|s| c.start_s = s),
    },
    Setting {
        name: "FMPL_BLACS_SPOOL",
        default: "1G",
        values: "bytes, with k, M or G",
        meaning: "what a grid of the BLACS (libfmpl_blacs) may spool: a send never waits for its receive",
        set: |c, v| bytes(v).map(|n| c.blacs_spool_bytes = n),
    },
    Setting {
        name: "FMPL_LOG",
        default: "warn",
        values: "off | warn | info | debug",
        meaning: "what is written to standard error",
        set: |c, v| {
            c.log = ["off", "warn", "info", "debug"].iter().position(|n| *n == v)? as u8;
            Some(())
        },
    },
];

/// Names that begin with `FMPL_` and are set by the launcher, not by users.
pub static LAUNCHER_NAMES: &[&str] =
    &["FMPL_RANK", "FMPL_SIZE", "FMPL_ROOT", "FMPL_NODE", "FMPL_SECRET", "FMPL_SECRET_FILE", "FMPL_RUN"];

impl Config {
    /// Reads the environment. The error names the variable, its value and the possible values.
    pub fn from_environment() -> Result<Config> {
        let mut config = Config::default();
        for s in SETTINGS {
            if let Ok(value) = std::env::var(s.name) {
                config.set(s, &value)?;
            }
        }
        Ok(config)
    }

    fn set(&mut self, setting: &Setting, value: &str) -> Result<()> {
        (setting.set)(self, value.trim()).ok_or_else(|| {
            Error::new(Code::Setting, format!("{}={value}: possible values: {}", setting.name, setting.values))
        })
    }

    /// Variables in the environment that look like settings and are none.
    pub fn unknown_names() -> Vec<String> {
        std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|n| {
                n.starts_with("FMPL_")
                    && !SETTINGS.iter().any(|s| s.name == n)
                    && !LAUNCHER_NAMES.contains(&n.as_str())
                    && !n.starts_with("FMPL_TEST_")
                    && !n.starts_with("FMPL_BENCH_")
            })
            .collect()
    }
}

fn on_off(v: &str) -> Option<bool> {
    match v {
        "on" | "1" | "yes" | "true" => Some(true),
        "off" | "0" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A number of bytes: `4096`, `64k`, `16M`, `1G`.
pub fn bytes(v: &str) -> Option<usize> {
    let v = v.trim();
    let (digits, shift) = match v.char_indices().last()? {
        (i, 'k' | 'K') => (&v[..i], 10),
        (i, 'm' | 'M') => (&v[..i], 20),
        (i, 'g' | 'G') => (&v[..i], 30),
        _ => (v, 0),
    };
    let n: usize = digits.parse().ok()?;
    n.checked_mul(1usize << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("64k"), Some(65536));
        assert_eq!(bytes(" 2G "), Some(2 << 30));
        for bad in ["", "k", "-1", "1T", "1.5M", "99999999999999999999", "18446744073709551615G"] {
            assert_eq!(bytes(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn bad_values_name_the_possible_ones() {
        let mut c = Config::default();
        let wait = SETTINGS.iter().find(|s| s.name == "FMPL_WAIT").unwrap();
        let e = c.set(wait, "often").unwrap_err();
        assert_eq!(e.code(), Code::Setting);
        assert!(e.detail().contains("FMPL_WAIT=often") && e.detail().contains("adaptive"), "{e}");
        assert!(c.set(wait, "block").is_ok());
        assert_eq!(c.wait, WaitMode::Block);
    }

    #[test]
    fn defaults_as_printed_are_the_defaults() {
        for s in SETTINGS.iter().filter(|s| !s.default.contains(' ')) {
            let mut c = Config::default();
            c.set(s, s.default).unwrap();
            assert_eq!(format!("{c:?}"), format!("{:?}", Config::default()), "{}", s.name);
        }
    }
}
