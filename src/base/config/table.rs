//! The table of settings but for the numbers of tuning files. Long because it is one table, an entry for each.

use super::ways::Named;
use super::*;

/// These settings, in the order in which `fmpl info` prints them.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "FMPL_WAIT",
        default: "adaptive",
        values: WaitMode::VALUES,
        meaning: "how a thread waits: never sleep; spin, yield, then sleep; sleep almost at once",
        set: |c, v| choose(&mut c.wait, v),
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
        values: OnDeadlock::VALUES,
        meaning: "a cycle of waits is printed once; with abort the waits also end with FMPL_ERR_DEADLOCK",
        set: |c, v| choose(&mut c.deadlock, v),
    },
    Setting {
        name: "FMPL_SHM_PATH",
        default: "auto",
        values: Way::VALUES,
        meaning: "the way of messages that do not fit inline, on a node: by the tuning table, or this one wherever it can be taken",
        set: |c, v| choose(&mut c.way, v),
    },
    Setting {
        name: "FMPL_CMA",
        default: "on",
        values: "on | off",
        meaning: "use process_vm_readv and process_vm_writev where the system allows it",
        set: |c, v| on_off(v).map(|b| c.cma = b),
    },
    Setting {
        name: "FMPL_TUNING",
        default: "auto",
        values: "auto | built-in | the path of a tuning file",
        meaning: "the crossovers of this kind of processor; auto: the file that fmpl tune has written for this user, else the one installed \
                  with the library, else what is built in",
        set: |c, v| {
            c.tuning = match v {
                "auto" => TuningFile::Auto,
                "built-in" => TuningFile::BuiltIn,
                "" => return None,
                path => TuningFile::At(path.into()),
            };
            Some(())
        },
    },
    Setting {
        name: "FMPL_DISTANCE",
        default: "auto",
        values: "auto | shared | apart",
        meaning: "whether the cores of two ranks have a common cache; auto: by where they are bound, and by how long lines take between them",
        set: |c, v| {
            let distances = [("auto", None), ("shared", Some(Distance::Shared)), ("apart", Some(Distance::Apart))];
            one_of(&distances, v).map(|d| c.distance = d)
        },
    },
    Setting {
        name: "FMPL_MOVE",
        default: "off",
        values: "on | off",
        meaning: "where ranks share cores, a thread that receives a long multicast moves to a core with fewer of those that receive it",
        set: |c, v| on_off(v).map(|b| c.moves = b),
    },
    Setting {
        name: "FMPL_COPY",
        default: "the best that the processor runs; libc in unoptimised builds",
        values: "avx512 | avx2 | sse2 | portable | libc",
        meaning: "the loop by which payloads of 128 bytes and more are copied; one that the processor does not run is passed over",
        set: |c, v| Loop::ALL.into_iter().find(|l| l.name() == v).map(|l| c.copy = Some(l)),
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
        name: "FMPL_TURN_MEMORY",
        default: "16M",
        values: "bytes, with k, M or G",
        meaning: "the most memory of that kind that this rank writes to, for all peers together",
        set: |c, v| bytes(v).map(|n| c.turn_memory = n),
    },
    Setting {
        name: "FMPL_LOANS",
        default: "4096,4G",
        values: "1 to 65536, a comma, bytes with k, M or G",
        meaning: "loans that this rank may have made at a time, idle ones apart, and their bytes",
        set: |c, v| {
            let (loans, size) = v.split_once(',')?;
            let loans = loans.trim().parse().ok().filter(|n| (1..=65536).contains(n))?;
            c.loans = (loans, bytes(size).filter(|n| *n <= 1 << 40)?);
            Some(())
        },
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
        name: "FMPL_SPREAD",
        default: "auto",
        values: "auto, or 1 to 64, a power of two",
        meaning: "shares, each with a counter of its own, into which this rank's rings for messages of any source and for remote \
                  commands are split, so that many senders do not meet at one counter; auto: 1 for few senders",
        set: |c, v| {
            let n = |v: &str| v.parse().ok().filter(|n: &usize| n.is_power_of_two() && *n <= 64);
            c.spread = if v == "auto" { 0 } else { n(v)? };
            Some(())
        },
    },
    Setting {
        name: "FMPL_TOPOLOGY",
        default: "none",
        values: "none | blocks:N,N | brackets like ((0-3)(4-7))((8-11)) | file:PATH",
        meaning: "which nodes share a switch, of one level or several; the same on all ranks. Trees between nodes cross upper levels as rarely as can \
                  be, and counters that are elsewhere are spread evenly below each switch",
        set: |c, v| {
            c.topology = (v != "none").then(|| v.to_owned());
            Some(())
        },
    },
    Setting {
        name: "FMPL_COUNTERS",
        default: "receiver",
        values: "receiver | elsewhere",
        meaning: "where the counters are of this rank's rings for messages of any source from other nodes: with it, or of all shares but \
                  the first on other nodes in turn",
        set: |c, v| one_of(&[("receiver", false), ("elsewhere", true)], v).map(|b| c.counters_elsewhere = b),
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
        values: BarrierWay::VALUES,
        meaning: "how a barrier meets; the settings of collective calls must be the same on all ranks",
        set: |c, v| choose(&mut c.coll_barrier, v),
    },
    Setting {
        name: "FMPL_COLL_BCAST",
        default: "auto",
        values: BcastWay::VALUES,
        meaning: "how a broadcast of more than 56 bytes travels",
        set: |c, v| choose(&mut c.coll_bcast, v),
    },
    Setting {
        name: "FMPL_COLL_REDUCE",
        default: "auto",
        values: ReduceWay::VALUES,
        meaning: "how a reduce works",
        set: |c, v| choose(&mut c.coll_reduce, v),
    },
    Setting {
        name: "FMPL_COLL_ALLREDUCE",
        default: "auto",
        values: AllreduceWay::VALUES,
        meaning: "how an allreduce of more than 24 bytes works",
        set: |c, v| choose(&mut c.coll_allreduce, v),
    },
    Setting {
        name: "FMPL_COLL_EXCHANGE",
        default: "auto",
        values: ExchangeWay::VALUES,
        meaning: "how gather, allgather, scatter, alltoall and reduce_scatter move their blocks",
        set: |c, v| choose(&mut c.coll_exchange, v),
    },
    Setting {
        name: "FMPL_COLL_SCAN",
        default: "auto",
        values: ScanWay::VALUES,
        meaning: "how a scan works",
        set: |c, v| choose(&mut c.coll_scan, v),
    },
    Setting {
        name: "FMPL_COLL_BETWEEN",
        default: "auto",
        values: BetweenWay::VALUES,
        meaning: "who talks between nodes in a collective call: one rank of each node, or all",
        set: |c, v| choose(&mut c.coll_between, v),
    },
    Setting {
        name: "FMPL_COLL_FAR_BCAST",
        default: "auto",
        values: FarBcastWay::VALUES,
        meaning: "how a broadcast travels between nodes; multicast: where no group can be joined, as with auto",
        set: |c, v| choose(&mut c.far_bcast, v),
    },
    Setting {
        name: "FMPL_MCAST_FAR",
        default: "auto",
        values: FarMcastWay::VALUES,
        meaning: "how a multicast travels between nodes, where this rank is its master",
        set: |c, v| choose(&mut c.far_mcast, v),
    },
    Setting {
        name: "FMPL_COLL_FAR_ALLREDUCE",
        default: "auto",
        values: FarAllreduceWay::VALUES,
        meaning: "how an allreduce works between nodes",
        set: |c, v| choose(&mut c.far_allreduce, v),
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
        name: "FMPL_ATTACH_TIMEOUT",
        default: "30",
        values: "seconds",
        meaning: "how long a peer on another node may not answer before a contact with it is an error",
        set: |c, v| v.parse().ok().filter(|s: &f64| *s > 0.0).map(|s| c.attach_s = s),
    },
    Setting {
        name: "FMPL_NETWORK",
        default: "auto",
        values: "auto | verbs | tcp | tcp:INTERFACE | udp | udp:INTERFACE | ofi | ofi:PROVIDER | none",
        meaning: "the network that reaches ranks on other nodes: InfiniBand and RoCE (libibverbs), TCP or datagrams of UDP by an interface or \
                  address of this machine, or a provider of libfabric, such as ofi:tcp;ofi_rxm; auto: RDMA if there is a port, else a provider \
                  of libfabric for devices, else TCP",
        set: |c, v| Network::named(v).map(|n| c.network = n),
    },
    Setting {
        name: "FMPL_TCP_CONGESTION",
        default: "auto",
        values: "auto | system | a name of net.ipv4.tcp_available_congestion_control",
        meaning: "with FMPL_NETWORK=tcp: what decides how fast a connection sends; auto: as the system has it, but cubic or reno in place of bbr, \
                  which sends by a timer",
        set: |c, v| Congestion::named(v).map(|n| c.tcp_congestion = n),
    },
    Setting {
        name: "FMPL_WEATHER",
        default: "fine",
        values: "fine | loss=2,double=1,late=1,seed=7, or some of these: percent of the datagrams, and a number",
        meaning: "for tests: with FMPL_NETWORK=udp datagrams are lost, doubled and late before they are sent",
        set: |c, v| {
            let weather = if v == "fine" { None } else { Some(Weather::named(v)?) };
            c.weather = weather;
            Some(())
        },
    },
    Setting {
        name: "FMPL_LIBFABRIC",
        default: "libfabric.so.1, where the loader finds it",
        values: "a path",
        meaning: "libfabric, loaded where ranks are on several nodes, no RDMA port is used, and there are devices for it or it is asked for: a name \
                  that the system looks for, or a path",
        set: |c, v| (!v.is_empty()).then(|| c.libfabric = Some(v.to_owned())),
    },
    Setting {
        name: "FMPL_VERBS",
        default: "on",
        values: "on | off",
        meaning: "auto looks for RDMA ports (libibverbs) first",
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
        name: "FMPL_REGISTRATIONS",
        default: "65536",
        values: "1 to 1048576",
        meaning: "registrations of user memory that the ranks of a node keep together, each an equal share",
        set: |c, v| v.parse().ok().filter(|n| (1..=1 << 20).contains(n)).map(|n| c.registrations = n),
    },
    Setting {
        name: "FMPL_REGISTERED_MEMORY",
        default: "half of the machine's memory",
        values: "bytes, with k, M or G",
        meaning: "user memory that the ranks of a node keep registered together, each an equal share; never more than half of what \
                  the process may lock",
        set: |c, v| bytes(v).map(|n| c.registered_memory = Some(n as u64)),
    },
    Setting {
        name: "FMPL_VERBS_POLL",
        default: "memory",
        values: "memory | cq",
        meaning: "cq: bytes that a device has put into a buffer count as there when their completion says so, as the specification demands",
        set: |c, v| one_of(&[("memory", false), ("cq", true)], v).map(|b| c.verbs_strict = b),
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
        values: "a number from 0 to 65536, the same for all ranks of a node",
        meaning: "connections (RC queue pairs) of all ranks of a node with other nodes, together; beyond that the one used longest ago is \
                  given up until it is used again; 0: none, all goes by datagrams (verbs, udp)",
        set: |c, v| v.parse().ok().filter(|n| (0..=1 << 16).contains(n)).map(|n| c.queue_pairs = n),
    },
    Setting {
        name: "FMPL_CONNECT",
        default: "all",
        values: "all | busiest | datagrams | rings | random, the same for all ranks",
        meaning: "which ranks on other nodes are connected (verbs, tcp): all, when they are first spoken to; or the busiest, of which there are \
                  FMPL_QUEUE_PAIRS, and the others are reached by datagrams; none, with datagrams, or with rings (FMPL_RINGS) as long as there \
                  are some; random, for tests: each changes its way every 50 ms",
        set: |c, v| {
            let all = [
                ("all", Connect::All),
                ("busiest", Connect::Busiest),
                ("datagrams", Connect::Datagrams),
                ("rings", Connect::Rings),
                ("random", Connect::Random),
            ];
            one_of(&all, v).map(|which| c.connect = which)
        },
    },
    Setting {
        name: "FMPL_RINGS",
        default: "256",
        values: "a number from 0 to 65536, the same for all ranks of a node",
        meaning: "peers on other nodes that have room for datagrams for themselves, 16 receives (64 KB with packets of 4096 bytes), of all ranks of a \
                  node together: with FMPL_CONNECT=busiest those that are busy, are not connected, and lose datagrams where all share the room",
        set: |c, v| v.parse().ok().filter(|n| (0..=1 << 16).contains(n)).map(|n| c.rings = n),
    },
    Setting {
        name: "FMPL_CONTEXTS",
        default: "1024",
        values: "a number from 1 to 65536, the same for all ranks of a node",
        meaning: "peers on other nodes that may write into memory of the ranks of a node, counted for each rank, together; beyond that the \
                  one talked to longest ago may not until it is talked to again. There are never more connections than these",
        set: |c, v| v.parse().ok().filter(|n| (1..=1 << 16).contains(n)).map(|n| c.contexts = n),
    },
    Setting {
        name: "FMPL_START_TIMEOUT",
        default: "120",
        values: "seconds",
        meaning: "how long the ranks of a job started by FMPL_RANK and FMPL_ROOT may take to find each other",
        set: |c, v| v.parse().ok().filter(|s: &f64| *s > 0.0 && *s < 1e6).map(|s| c.start_s = s),
    },
    Setting {
        name: "FMPL_ERRORS",
        default: "return",
        values: "return | abort",
        meaning: "what a call of C or Fortran does with an error: returns its code, or says it and ends the job, for programs that look at no code",
        set: |c, v| one_of(&[("return", false), ("abort", true)], v).map(|b| c.errors_abort = b),
    },
    Setting {
        name: "FMPL_PMIX",
        default: "libpmix.so.2, where the loader finds it",
        values: "a path",
        meaning: "the library by which a launcher that speaks PMIx is spoken to, where it is its own and in no place of the system's",
        set: |c, v| (!v.is_empty()).then(|| c.pmix = Some(v.into())),
    },
    Setting {
        name: "FMPL_BLACS_SPOOL",
        default: "1G",
        values: "bytes, with k, M or G",
        meaning: "what a grid of the BLACS (libfmpl_blacs) may spool: a send never waits for its receive",
        set: |c, v| bytes(v).map(|n| c.blacs_spool_bytes = n),
    },
    Setting {
        name: "FMPL_TRACE",
        default: "no file",
        values: "a path; rank 3 writes x.3.json for x.json, which is a trace of Chrome's, and x.3 for x, which is text",
        meaning: "where the events of each rank are written at finalize, in a stall, and at a signal (only if built with the feature trace)",
        set: |c, v| (!v.is_empty()).then(|| c.trace = Some(v.into())),
    },
    Setting {
        name: "FMPL_TRACE_EVENTS",
        default: "16384",
        values: "a number from 16 to 16777216; each takes 56 bytes",
        meaning: "events that are kept of each thread, the last ones (only if built with the feature trace)",
        set: |c, v| v.parse().ok().filter(|n| (16..=1 << 24).contains(n)).map(|n| c.trace_events = n),
    },
    Setting {
        name: "FMPL_TRACE_SIGNAL",
        default: "no signal is taken",
        values: "USR1 | USR2 | a number",
        meaning: "the signal at which events are written, if the program has no handler for it (only if built with the feature trace)",
        set: |c, v| {
            let named = one_of(&[("USR1", libc::SIGUSR1), ("USR2", libc::SIGUSR2)], v);
            let number = named.or_else(|| v.parse().ok()).filter(|n| (1..=64).contains(n))?;
            c.trace_signal = Some(number);
            Some(())
        },
    },
    Setting {
        name: "FMPL_STATS",
        default: "none are left",
        values: "a directory",
        meaning: "where each rank leaves the numbers that fmpl run --stats shows, in a file named by its rank, several times a second",
        set: |c, v| (!v.is_empty()).then(|| c.stats = Some(v.into())),
    },
    Setting {
        name: "FMPL_LOG",
        default: "warn",
        values: "off | error | warn | info | debug",
        meaning: "what is told on standard error: nothing; what stands still or fails; what is probably not meant; also what was found \
                  at init; also what is rare, such as connections",
        set: |c, v| one_of(&Level::NAMED, v).map(|level| c.log = level),
    },
];

/// The value of this name.
fn one_of<T: Copy>(values: &[(&str, T)], name: &str) -> Option<T> {
    values.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
}

/// Sets a setting to the one of its values that has this name.
fn choose<T: Named>(setting: &mut T, name: &str) -> Option<()> {
    one_of(T::NAMED, name).map(|value| *setting = value)
}
