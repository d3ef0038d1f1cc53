//! The table of settings but for the numbers of tuning files. Long because it is one table, an entry for each.

use std::ops::RangeBounds;
use std::str::FromStr;

use super::ways::Named;
use super::*;

/// One row a setting, in the order in which `fmpl info` prints them: its field and its name; what the field is and where it begins; the default and the
/// values in words; how its text is read. The comment above is what it means, for `fmpl info` as well.
macro_rules! settings {
    ($($(#[doc = $meaning:literal])+
        $field:ident $name:ident: $kind:ty = $begins:expr, $default:literal, $values:expr, $read:expr;
    )*) => {
        /// The settings as they hold for this process.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(#[doc = concat!("`", stringify!($name), "`:", $($meaning),+)] pub $field: $kind,)*
            /// Numbers of tuning files that hold for this process whatever the files say: `FMPL_EAGER` and the like
            pub numbers: Given,
        }

        impl Default for Config {
            fn default() -> Config {
                Config { $($field: $begins,)* numbers: Given::default() }
            }
        }

        /// These settings.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            default: $default,
            values: $values,
            meaning: concat!($($meaning),+).trim_ascii_start(),
            set: |config, text| {
                let read: fn(&str) -> Option<$kind> = $read;
                config.$field = read(text)?;
                Some(())
            },
        },)*];
    };
}

settings! {
    /// how a thread waits: never sleep; spin, yield, then sleep; sleep almost at once
    wait FMPL_WAIT: WaitMode = WaitMode::Adaptive, "adaptive", WaitMode::VALUES, named;

    /// how long a waiter spins before it yields its core
    spin_us FMPL_SPIN: Option<u32> = None, "by the number of ranks and cores", "microseconds",
        |v| v.parse().ok().map(Some);

    /// a wait longer than this prints who waits for whom
    stall_s FMPL_STALL: f64 = 10.0, "10", "seconds, 0 = never", |v| within(v, 0.0..);

    /// a cycle of waits is printed once; with abort the waits also end with FMPL_ERR_DEADLOCK
    deadlock FMPL_DEADLOCK: OnDeadlock = OnDeadlock::Report, "report", OnDeadlock::VALUES, named;

    /// the way of messages that do not fit inline, on a node: by the tuning table, or this one wherever it can
    /// be taken
    way FMPL_SHM_PATH: Way = Way::Auto, "auto", Way::VALUES, named;

    /// use process_vm_readv and process_vm_writev where the system allows it
    cma FMPL_CMA: bool = true, "on", "on | off", on_off;

    /// the crossovers of this kind of processor; auto: the file that fmpl tune has written for this user, else
    /// the one installed with the library, else what is built in
    tuning FMPL_TUNING: TuningFile = TuningFile::Auto, "auto", "auto | built-in | the path of a tuning file",
        TuningFile::named;

    /// whether the cores of two ranks have a common cache; auto: by where they are bound, and by how long lines
    /// take between them
    distance FMPL_DISTANCE: Option<Distance> = None, "auto", "auto | shared | apart", distance;

    /// where ranks share cores, a thread that receives a long multicast moves to a core with fewer of those
    /// that receive it
    moves FMPL_MOVE: bool = false, "off", "on | off", on_off;

    /// the loop by which payloads of 128 bytes and more are copied; one that the processor does not run is
    /// passed over
    copy FMPL_COPY: Option<Loop> = None, "the best that the processor runs; libc in unoptimised builds",
        "avx512 | avx2 | sse2 | portable | libc", |v| Loop::ALL.into_iter().find(|l| l.name() == v).map(Some);

    /// the size of the spool when fmpl_sendbuf_set was not called
    spool_bytes FMPL_SPOOL: usize = 16 << 20, "16M", "bytes, with k, M or G, up to 8G",
        |v| bytes(v).filter(|n| *n <= SPOOL_MOST);

    /// how long a send waits for its receive before it buffers, when fmpl_sendbuf_set was not called
    timeout_ms FMPL_TIMEOUT: i32 = 10, "10", "milliseconds, 0 = buffered, -1 = synchronous", |v| within(v, -1..);

    /// the most memory of that kind that this rank writes to, for all peers together
    turn_memory FMPL_TURN_MEMORY: usize = 16 << 20, "16M", "bytes, with k, M or G", bytes;

    /// loans that this rank may have made at a time, idle ones apart, and their bytes
    // Loans, bytes.
    loans FMPL_LOANS: (usize, usize) = (4096, 4 << 30), "4096,4G", "1 to 65536, a comma, bytes with k, M or G", loans;

    /// messages of any source that an index of this rank holds before their senders wait
    any_slots FMPL_ANY_SLOTS: usize = 512, "512", "2 to 4096, a power of two", |v| power(v, 2..=4096);

    /// shares, each with a counter of its own, into which this rank's rings for messages of any source and for
    /// remote commands are split, so that many senders do not meet at one counter; auto: 1 for few senders
    // 0: by the number of senders.
    spread FMPL_SPREAD: usize = 0, "auto", "auto, or 1 to 64, a power of two",
        |v| if v == "auto" { Some(0) } else { power(v, 1..=64) };

    /// which nodes share a switch, of one level or several; the same on all ranks. Trees between nodes cross
    /// upper levels as rarely as can be, and counters that are elsewhere are spread evenly below each switch
    topology FMPL_TOPOLOGY: Option<String> = None, "none",
        "none | blocks:N,N | brackets like ((0-3)(4-7))((8-11)) | file:PATH", |v| Some((v != "none").then(|| v.into()));

    /// where the counters are of this rank's rings for messages of any source from other nodes: with it, or of
    /// all shares but the first on other nodes in turn
    counters_elsewhere FMPL_COUNTERS: bool = false, "receiver", "receiver | elsewhere",
        |v| one_of(&[("receiver", false), ("elsewhere", true)], v);

    /// the starter memory of each rank, which global addresses reach right after init
    rma_starter FMPL_RMA_STARTER: usize = 10 << 10, "10k", "bytes, with k, M or G; the same on all ranks",
        |v| bytes(v).filter(|n| (8..=1 << 30).contains(n));

    /// registrations of global memory that a rank can have at a time; more than 255 take bits from the rank in
    /// an address
    rma_keys FMPL_RMA_KEYS: usize = 255, "255", "1 to 65535; the same on all ranks", |v| within(v, 1..=65535);

    /// remote commands of all ranks together that this rank holds before those that come later wait
    rma_commands FMPL_RMA_COMMANDS: usize = 4096, "4096", "2 to 4096, a power of two", |v| power(v, 2..=4096);

    /// ranks whose tables of registered memory this rank has at hand at a time
    rma_peers FMPL_RMA_PEERS: usize = 1024, "1024", "1 to 65536", |v| within(v, 1..=65536);

    /// how a barrier meets; the settings of collective calls must be the same on all ranks
    coll_barrier FMPL_COLL_BARRIER: BarrierWay = BarrierWay::Auto, "auto", BarrierWay::VALUES, named;

    /// how a broadcast of more than 56 bytes travels
    coll_bcast FMPL_COLL_BCAST: BcastWay = BcastWay::Auto, "auto", BcastWay::VALUES, named;

    /// how a reduce works
    coll_reduce FMPL_COLL_REDUCE: ReduceWay = ReduceWay::Auto, "auto", ReduceWay::VALUES, named;

    /// how an allreduce of more than 24 bytes works
    coll_allreduce FMPL_COLL_ALLREDUCE: AllreduceWay = AllreduceWay::Auto, "auto", AllreduceWay::VALUES, named;

    /// how gather, allgather, scatter, alltoall and reduce_scatter move their blocks
    coll_exchange FMPL_COLL_EXCHANGE: ExchangeWay = ExchangeWay::Auto, "auto", ExchangeWay::VALUES, named;

    /// how a scan works
    coll_scan FMPL_COLL_SCAN: ScanWay = ScanWay::Auto, "auto", ScanWay::VALUES, named;

    /// who talks between nodes in a collective call: one rank of each node, or all
    coll_between FMPL_COLL_BETWEEN: BetweenWay = BetweenWay::Auto, "auto", BetweenWay::VALUES, named;

    /// how a broadcast travels between nodes; multicast: where no group can be joined, as with auto
    remote_bcast FMPL_COLL_FAR_BCAST: RemoteBcastWay = RemoteBcastWay::Auto, "auto", RemoteBcastWay::VALUES, named;

    /// how a multicast travels between nodes, where this rank is its master
    remote_mcast FMPL_MCAST_FAR: RemoteMcastWay = RemoteMcastWay::Auto, "auto", RemoteMcastWay::VALUES, named;

    /// how an allreduce works between nodes
    remote_allreduce FMPL_COLL_FAR_ALLREDUCE: RemoteAllreduceWay = RemoteAllreduceWay::Auto, "auto", RemoteAllreduceWay::VALUES,
        named;

    /// collective calls take the ranks of this node for those of several
    coll_nodes FMPL_COLL_NODES: PretendedNodes = PretendedNodes::Off, "off",
        "off | a number of nodes, of neighbouring ranks | c and a number, of ranks in turn", PretendedNodes::named;

    /// how long a peer on another node may not answer before a contact with it is an error
    attach_s FMPL_ATTACH_TIMEOUT: f64 = 30.0, "30", "seconds, up to 1000000", |v| within(v, f64::MIN_POSITIVE..=1e6);

    /// the network that reaches ranks on other nodes: InfiniBand and RoCE (libibverbs), TCP or datagrams of UDP
    /// by an interface or address of this machine, or a provider of libfabric, such as ofi:tcp;ofi_rxm; auto:
    /// RDMA if there is a port, else a provider of libfabric for devices, else TCP
    network FMPL_NETWORK: Network = Network::Auto, "auto",
        "auto | verbs | tcp | tcp:INTERFACE | udp | udp:INTERFACE | ofi | ofi:PROVIDER | none", Network::named;

    /// over TCP, also libfabric's: what decides how fast a connection sends; auto: as the system has it, but
    /// cubic or reno in place of bbr, which sends by a timer
    tcp_congestion FMPL_TCP_CONGESTION: Congestion = Congestion::Auto, "auto",
        "auto | system | a name of net.ipv4.tcp_available_congestion_control", Congestion::named;

    /// for tests: with FMPL_NETWORK=udp datagrams are lost, doubled and late before they are sent
    weather FMPL_WEATHER: Option<Weather> = None, "fine",
        "fine | loss=2,double=1,late=1,seed=7, or some of these: percent of the datagrams, and a number", |v| if v == "fine" { Some(None) } else { Weather::named(v).map(Some) };

    /// libfabric, loaded where ranks are on several nodes, no RDMA port is used, and there are devices for it
    /// or it is asked for: a name that the system looks for, or a path
    libfabric FMPL_LIBFABRIC: Option<String> = None, "libfabric.so.1, where the loader finds it", "a path", text;

    /// auto looks for RDMA ports (libibverbs) first
    verbs FMPL_VERBS: bool = true, "on", "on | off", on_off;

    /// the RDMA ports among which the ranks of a node are spread
    verbs_devices FMPL_VERBS_DEVICE: Option<String> = None, "the nearest active ports, in turn",
        "names as fmpl info shows them, with :port or without, separated by commas", text;

    /// user memory stays registered from one message to the next, until it is unmapped
    verbs_cache FMPL_VERBS_CACHE: bool = true, "on", "on | off", on_off;

    /// registrations of user memory that the ranks of a node keep together, each an equal share
    registrations FMPL_REGISTRATIONS: usize = 65_536, "65536", "1 to 1048576", |v| within(v, 1..=1 << 20);

    /// user memory that the ranks of a node keep registered together, each an equal share; never more than half
    /// of what the process may lock
    registered_memory FMPL_REGISTERED_MEMORY: Option<u64> = None, "half of the machine's memory",
        "bytes, with k, M or G", |v| bytes(v).map(|n| Some(n as u64));

    /// cq: bytes that a device has put into a buffer count as there when their completion says so, as the
    /// specification demands
    verbs_strict FMPL_VERBS_POLL: bool = false, "memory", "memory | cq",
        |v| one_of(&[("memory", false), ("cq", true)], v);

    /// the address (gid) of the port
    verbs_gid FMPL_VERBS_GID: Option<u32> = None, "RoCE v2 with IPv4, then v2 with IPv6, then v1",
        "an index of the port's table of addresses", |v| v.parse().ok().map(Some);

    /// bytes in a packet
    verbs_mtu FMPL_VERBS_MTU: Option<u32> = None, "the port's active one", "256 | 512 | 1024 | 2048 | 4096",
        |v| v.parse().ok().map(Some);

    /// the InfiniBand partition
    verbs_pkey FMPL_VERBS_PKEY: Option<u16> = None, "the first with full membership", "a key, such as 0x8001",
        |v| u16::from_str_radix(v.strip_prefix("0x").unwrap_or(v), 16).ok().map(Some);

    /// connections (RC queue pairs) of all ranks of a node with other nodes, together; beyond that the one used
    /// longest ago is given up until it is used again; 0: none, all goes by datagrams (verbs, udp)
    queue_pairs FMPL_QUEUE_PAIRS: usize = 128, "128", "a number from 0 to 65536, the same for all ranks of a node",
        |v| within(v, 0..=1 << 16);

    /// which ranks on other nodes are connected (verbs, tcp), the same for all ranks: all, when they are first
    /// spoken to; or the busiest, of which there are FMPL_QUEUE_PAIRS, and the others are reached by datagrams;
    /// none, with datagrams, or with rings (FMPL_RINGS) as long as there are some; random, for tests: each
    /// changes its way every 50 ms
    connect FMPL_CONNECT: Connect = Connect::All, "all", Connect::VALUES, named;

    /// peers on other nodes that have room for datagrams for themselves, 16 receives (64 KB with packets of
    /// 4096 bytes), of all ranks of a node together: with FMPL_CONNECT=busiest those that are busy, are not
    /// connected, and lose datagrams where all share the room
    rings FMPL_RINGS: usize = 256, "256", "a number from 0 to 65536, the same for all ranks of a node",
        |v| within(v, 0..=1 << 16);

    /// peers on other nodes that may write into memory of the ranks of a node, counted for each rank, together;
    /// beyond that the one talked to longest ago may not until it is talked to again. There are never more
    /// connections than these
    contexts FMPL_CONTEXTS: usize = 1024, "1024", "a number from 1 to 65536, the same for all ranks of a node",
        |v| within(v, 1..=1 << 16);

    /// how long the ranks of a job started by FMPL_RANK and FMPL_ROOT may take to find each other
    start_s FMPL_START_TIMEOUT: f64 = 120.0, "120", "seconds", |v| within(v, f64::MIN_POSITIVE..1e6);

    /// what a call of C or Fortran does with an error: returns its code, or says it and ends the job, for
    /// programs that look at no code
    errors_abort FMPL_ERRORS: bool = false, "return", "return | abort",
        |v| one_of(&[("return", false), ("abort", true)], v);

    /// the library by which a launcher that speaks PMIx is spoken to, where it is its own and in no place of
    /// the system's
    pmix FMPL_PMIX: Option<String> = None, "libpmix.so.2, where the loader finds it", "a path", text;

    /// what a grid of the BLACS (libfmpl_blacs) may spool: a send never waits for its receive
    blacs_spool_bytes FMPL_BLACS_SPOOL: usize = 1 << 30, "1G", "bytes, with k, M or G", bytes;

    /// where the events of each rank are written at finalize, in a stall, and at a signal (only if built with
    /// the feature trace)
    trace FMPL_TRACE: Option<PathBuf> = None, "no file",
        "a path; rank 3 writes x.3.json for x.json, which is a trace of Chrome's, and x.3 for x, which is text", text;

    /// events that are kept of each thread, the last ones (only if built with the feature trace)
    trace_events FMPL_TRACE_EVENTS: usize = 16384, "16384", "a number from 16 to 16777216; each takes 56 bytes",
        |v| within(v, 16..=1 << 24);

    /// the signal at which events are written, if the program has no handler for it (only if built with the
    /// feature trace)
    trace_signal FMPL_TRACE_SIGNAL: Option<i32> = None, "no signal is taken", "USR1 | USR2 | a number", signal;

    /// where each rank leaves the numbers that fmpl run --stats shows, in a file named by its rank, several
    /// times a second
    stats FMPL_STATS: Option<PathBuf> = None, "none are left", "a directory", text;

    /// what is told on standard error: nothing; what stands still or fails; what is probably not meant; also
    /// what was found at init; also what is rare, such as connections
    log FMPL_LOG: Level = Level::Warn, "warn", "off | error | warn | info | debug", |v| one_of(&Level::NAMED, v);
}

/// The value of this name.
fn one_of<T: Copy>(values: &[(&str, T)], name: &str) -> Option<T> {
    values.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
}

fn named<T: Named>(name: &str) -> Option<T> {
    one_of(T::NAMED, name)
}

fn within<T: FromStr + PartialOrd>(text: &str, bounds: impl RangeBounds<T>) -> Option<T> {
    text.parse().ok().filter(|n| bounds.contains(n))
}

fn power(text: &str, bounds: impl RangeBounds<usize>) -> Option<usize> {
    within(text, bounds).filter(|n| n.is_power_of_two())
}

fn text<T: for<'a> From<&'a str>>(text: &str) -> Option<Option<T>> {
    (!text.is_empty()).then(|| Some(text.into()))
}

fn distance(name: &str) -> Option<Option<Distance>> {
    if name == "auto" { Some(None) } else { Distance::named(name).map(Some) }
}

fn loans(text: &str) -> Option<(usize, usize)> {
    let (loans, size) = text.split_once(',')?;
    Some((within(loans.trim(), 1..=65536)?, bytes(size).filter(|n| *n <= 1 << 40)?))
}

fn signal(name: &str) -> Option<Option<i32>> {
    let number = one_of(&[("USR1", libc::SIGUSR1), ("USR2", libc::SIGUSR2)], name);
    number.or_else(|| within(name, 1..=64)).map(Some)
}
