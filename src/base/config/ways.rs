//! Settings whose values are a few names: what each name means.

/// An enumeration whose variants are values of a setting.
pub(super) trait Named: Copy + 'static {
    /// The names, and what they mean.
    const NAMED: &'static [(&'static str, Self)];
}

/// Makes them: `Kind { Variant = "name", … }`; `Kind::VALUES` is how the names are shown.
macro_rules! named {
    ($(
        $(#[$doc:meta])*
        $kind:ident {
            $(#[$first_doc:meta])* $first:ident = $first_name:literal,
            $($(#[$what:meta])* $variant:ident = $name:literal,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $(#[$first_doc])* $first,
            $($(#[$what])* $variant,)*
        }

        impl $kind {
            pub(super) const VALUES: &'static str = concat!($first_name, $(" | ", $name),*);
        }

        impl Named for $kind {
            const NAMED: &'static [(&'static str, $kind)] = &[($first_name, $kind::$first), $(($name, $kind::$variant)),*];
        }
    )*};
}

named! {
    /// How a thread waits for a peer.
    WaitMode {
        /// Never sleeps: the lowest latency, a whole core for each waiter.
        Spin = "spin",
        /// Spins for a while, yields for a while, then sleeps.
        Adaptive = "adaptive",
        /// Sleeps almost at once.
        Block = "block",
    }

    /// What to do about a cycle of waits.
    OnDeadlock {
        /// Print it once and go on waiting.
        Report = "report",
        /// Print it and end the waits with an error.
        Abort = "abort",
    }

    /// The way payloads take on a node: chosen by size and by where the buffers are, or forced.
    Way {
        /// By the tuning table.
        Auto = "auto",
        /// Everything is copied into the spool, and the receiver copies it out.
        Spool = "spool",
        /// Through a small ring of chunks that stay in the cache; two copies, overlapped.
        Ring = "ring",
        /// One copy by the sender into memory that the receiver has from `fmpl_alloc`.
        Store = "store",
        /// One copy by the kernel (`process_vm_writev`, `process_vm_readv`).
        Cma = "cma",
        /// One copy by the kernel, its pieces shared by both sides.
        Coop = "coop",
        /// Through memory that both directions use in turn, or the ring; two copies, overlapped.
        Turn = "turn",
    }

    /// How a barrier meets.
    BarrierWay {
        /// By the number of ranks.
        Auto = "auto",
        /// Everybody looks at everybody.
        Flat = "flat",
        /// Groups of eight, then their first ones.
        Groups = "groups",
    }

    /// How a broadcast travels on a node.
    BcastWay {
        /// By size.
        Auto = "auto",
        /// Through cells in shared memory.
        Cells = "cells",
        /// Each reader copies from the root's memory.
        Pull = "pull",
        /// Likewise, and the root helps.
        Coop = "coop",
    }

    /// How a reduce works on a node.
    ReduceWay {
        /// By size.
        Auto = "auto",
        /// Through cells in shared memory.
        Cells = "cells",
        /// From the ranks' own memory, by all of them.
        Pull = "pull",
    }

    /// How an allreduce works on a node.
    AllreduceWay {
        /// By size.
        Auto = "auto",
        /// Through cells in shared memory, everybody reduces everything.
        Cells = "cells",
        /// Through cells, one rank reduces and broadcasts.
        Root = "root",
        /// Through shared memory, everybody reduces a slice.
        Slices = "slices",
        /// From the ranks' own memory, by all of them.
        Pull = "pull",
    }

    /// How gather, allgather, scatter, alltoall and reduce-scatter move blocks on a node.
    ExchangeWay {
        /// By size.
        Auto = "auto",
        /// Through the cells of the givers.
        Cells = "cells",
        /// Each taker copies out of the givers' memory.
        Pull = "pull",
    }

    /// How a scan works on a node.
    ScanWay {
        /// By size.
        Auto = "auto",
        /// Each rank combines the vectors of all before it.
        Cells = "cells",
        /// Each rank hands its result on to the next.
        Chain = "chain",
    }

    /// Who talks with whom in a collective call between nodes.
    BetweenWay {
        /// By the call.
        Auto = "auto",
        /// One rank of each node.
        Leaders = "leaders",
        /// All ranks.
        Flat = "flat",
    }

    /// How a broadcast travels between nodes.
    RemoteBcastWay {
        /// By size.
        Auto = "auto",
        /// Down a binomial tree.
        Tree = "tree",
        /// In parts down the tree, which then go round a ring.
        Ring = "ring",
        /// From each node to the next, in pieces.
        Chain = "chain",
        /// To all at once by a multicast group.
        Multicast = "multicast",
    }

    /// How a multicast travels between nodes.
    RemoteMcastWay {
        /// By size, members and network.
        Auto = "auto",
        /// Down a binomial tree.
        Tree = "tree",
        /// From each node to the next, in pieces.
        Chain = "chain",
        /// In parts down the tree, which then go round a ring.
        Ring = "ring",
        /// In parts down the tree, which then are exchanged between blocks of nodes that double.
        Doubling = "doubling",
        /// From the master to each node.
        Flat = "flat",
    }

    /// How an allreduce works between nodes.
    RemoteAllreduceWay {
        /// By size.
        Auto = "auto",
        /// Whole vectors between blocks of ranks that double.
        Doubling = "doubling",
        /// Halves of halves, and back.
        Halving = "halving",
    }

    /// Which ranks on other nodes are connected.
    Connect {
        /// Each, when it is first spoken to.
        All = "all",
        /// Those that are among the busiest; the others are reached by datagrams.
        Busiest = "busiest",
        /// None: all are reached by datagrams,
        Datagrams = "datagrams",
        /// into rings, as long as there are some.
        Rings = "rings",
        /// For tests: each changes its way at random.
        Random = "random",
    }
}
