//! The settings ([`settings`]): a [`table`], and the numbers of [tuning files](crate::base::tuning). Read once from the environment at init,
//! printed by `fmpl info`.
//!
//! A value that cannot be used is an error that shows the possible ones; a name that starts with `FMPL_` and is no setting
//! is reported once, since it is most likely misspelt.
//!
//! Long because each setting has a line of its own where it is kept, and one where it begins.

mod table;
mod ways;

use std::path::PathBuf;

use crate::base::copying::Loop;
use crate::base::error::{Code, Error, Result};
use crate::base::log::Level;
use crate::base::tuning::{self, Distance, Given};
pub use ways::*;

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
    pub(in crate::base) set: fn(&mut Config, &str) -> Option<()>,
}

/// Every setting, in the order in which `fmpl info` prints them.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    table::SETTINGS.iter().chain(tuning::SETTINGS)
}

/// Which network reaches other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The best that there is.
    Auto,
    /// InfiniBand or RoCE, by libibverbs.
    Verbs,
    /// By libfabric; by this provider of it, or the best.
    Ofi(Option<String>),
    /// TCP, by the system's sockets; by this interface or address, or the best.
    Tcp(Option<String>),
    /// Datagrams by UDP, without connections; by this interface or address, or the best.
    Udp(Option<String>),
    /// None.
    None,
}

impl Network {
    fn named(name: &str) -> Option<Network> {
        Some(match name {
            "auto" => Network::Auto,
            "verbs" => Network::Verbs,
            "ofi" => Network::Ofi(None),
            "tcp" => Network::Tcp(None),
            "udp" => Network::Udp(None),
            "none" => Network::None,
            _ => match name.split_once(':').filter(|(_, which)| !which.is_empty())? {
                ("ofi", provider) => Network::Ofi(Some(provider.to_owned())),
                ("tcp", port) => Network::Tcp(Some(port.to_owned())),
                ("udp", port) => Network::Udp(Some(port.to_owned())),
                _ => return None,
            },
        })
    }
}

/// What decides how fast a connection of TCP sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// What the system has, unless that sends by a timer.
    Auto,
    /// What the system has.
    System,
    /// This, as the system calls it.
    Named(String),
}

impl Congestion {
    fn named(name: &str) -> Option<Congestion> {
        Some(match name {
            "auto" => Congestion::Auto,
            "system" => Congestion::System,
            // As long as the system's names may be.
            _ if (1..16).contains(&name.len()) => Congestion::Named(name.to_owned()),
            _ => return None,
        })
    }
}

/// Which ranks on other nodes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// Each, when it is first spoken to.
    All,
    /// Those that are among the busiest; the others are reached by datagrams.
    Busiest,
    /// None: all are reached by datagrams,
    Datagrams,
    /// into rings, as long as there are some.
    Rings,
    /// For tests: each changes its way at random.
    Random,
}

/// What becomes of datagrams on their way, for tests: so many of a hundred are lost, come twice, come late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weather {
    /// Lost.
    pub loss: f64,
    /// Doubled.
    pub double: f64,
    /// Late by up to some milliseconds, so that others overtake them.
    pub late: f64,
    /// The same seed has the same weather.
    pub seed: u64,
}

impl Weather {
    /// As it is written: `loss=2,double=1,late=1,seed=7`, any of them.
    fn named(text: &str) -> Option<Weather> {
        let mut weather = Weather::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=')?;
            let percent = || value.parse().ok().filter(|p: &f64| (0.0..100.0).contains(p));
            match name {
                "loss" => weather.loss = percent()?,
                "double" => weather.double = percent()?,
                "late" => weather.late = percent()?,
                "seed" => weather.seed = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(weather)
    }
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

/// Which tuning file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TuningFile {
    /// The user's, or the one that is installed, if there is one.
    Auto,
    /// What is built in.
    BuiltIn,
    /// This one.
    At(PathBuf),
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
    /// `FMPL_TUNING`
    pub tuning: TuningFile,
    /// Numbers of tuning files that hold for this process whatever the files say: `FMPL_EAGER` and the like
    pub numbers: Given,
    /// `FMPL_DISTANCE`
    pub distance: Option<Distance>,
    /// `FMPL_MOVE`
    pub moves: bool,
    /// `FMPL_COPY`
    pub copy: Option<Loop>,
    /// `FMPL_SPOOL`, bytes
    pub spool_bytes: usize,
    /// `FMPL_TIMEOUT`, milliseconds; negative: infinite
    pub timeout_ms: i32,
    /// `FMPL_TURN_MEMORY`, bytes
    pub turn_memory: usize,
    /// `FMPL_LOANS`: loans, bytes
    pub loans: (usize, usize),
    /// `FMPL_ANY_SLOTS`
    pub any_slots: usize,
    /// `FMPL_SPREAD`; 0: by the number of senders
    pub spread: usize,
    /// `FMPL_COUNTERS`: on other nodes
    pub counters_elsewhere: bool,
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
    /// `FMPL_TOPOLOGY`
    pub topology: Option<String>,
    /// `FMPL_MCAST_FAR`
    pub far_mcast: FarMcastWay,
    /// `FMPL_COLL_FAR_ALLREDUCE`
    pub far_allreduce: FarAllreduceWay,
    /// `FMPL_ATTACH_TIMEOUT`, seconds
    pub attach_s: f64,
    /// `FMPL_NETWORK`
    pub network: Network,
    /// `FMPL_TCP_CONGESTION`
    pub tcp_congestion: Congestion,
    /// `FMPL_WEATHER`
    pub weather: Option<Weather>,
    /// `FMPL_LIBFABRIC`: the file, if not the one that the system finds
    pub libfabric: Option<String>,
    /// `FMPL_VERBS`
    pub verbs: bool,
    /// `FMPL_VERBS_DEVICE`
    pub verbs_devices: Option<String>,
    /// `FMPL_VERBS_CACHE`
    pub verbs_cache: bool,
    /// `FMPL_REGISTRATIONS`, of a node
    pub registrations: usize,
    /// `FMPL_REGISTERED_MEMORY`, bytes of a node
    pub registered_memory: Option<u64>,
    /// `FMPL_VERBS_POLL`: is a completion at the receiver waited for before bytes are believed to be there?
    pub verbs_strict: bool,
    /// `FMPL_VERBS_GID`
    pub verbs_gid: Option<u32>,
    /// `FMPL_VERBS_MTU`, bytes
    pub verbs_mtu: Option<u32>,
    /// `FMPL_VERBS_PKEY`
    pub verbs_pkey: Option<u16>,
    /// `FMPL_QUEUE_PAIRS`: connections of all processes of a node with other nodes, at most; 0: none at all, but channels.
    pub queue_pairs: usize,
    /// `FMPL_CONNECT`
    pub connect: Connect,
    /// `FMPL_RINGS`: peers of all processes of a node whose datagrams have room of their own, at most.
    pub rings: usize,
    /// `FMPL_CONTEXTS`: peers on other nodes that may write into memory of the processes of a node, at most.
    pub contexts: usize,
    /// `FMPL_START_TIMEOUT`, seconds
    pub start_s: f64,
    /// `FMPL_ERRORS`: does an error of a call of C or Fortran end the job?
    pub errors_abort: bool,
    /// `FMPL_PMIX`
    pub pmix: Option<String>,
    /// `FMPL_BLACS_SPOOL`, bytes; read by `libfmpl_blacs`
    pub blacs_spool_bytes: usize,
    /// `FMPL_TRACE`
    pub trace: Option<PathBuf>,
    /// `FMPL_TRACE_EVENTS`
    pub trace_events: usize,
    /// `FMPL_TRACE_SIGNAL`
    pub trace_signal: Option<i32>,
    /// `FMPL_STATS`
    pub stats: Option<PathBuf>,
    /// `FMPL_LOG`
    pub log: Level,
}

impl Default for Config {
    /// Long because each setting has a line.
    fn default() -> Config {
        Config {
            wait: WaitMode::Adaptive,
            spin_us: None,
            stall_s: 10.0,
            deadlock: OnDeadlock::Report,
            way: Way::Auto,
            cma: true,
            moves: false,
            spool_bytes: 16 << 20,
            timeout_ms: 10,
            turn_memory: 16 << 20,
            loans: (4096, 4 << 30),
            any_slots: 512,
            spread: 0,
            counters_elsewhere: false,
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
            topology: None,
            far_mcast: FarMcastWay::Auto,
            far_allreduce: FarAllreduceWay::Auto,
            tuning: TuningFile::Auto,
            numbers: Given::default(),
            distance: None,
            copy: None,
            attach_s: 30.0,
            start_s: 120.0,
            errors_abort: false,
            pmix: None,
            network: Network::Auto,
            tcp_congestion: Congestion::Auto,
            weather: None,
            libfabric: None,
            verbs: true,
            verbs_devices: None,
            verbs_cache: true,
            registrations: 65_536,
            registered_memory: None,
            verbs_strict: false,
            verbs_gid: None,
            verbs_mtu: None,
            verbs_pkey: None,
            queue_pairs: 128,
            connect: Connect::All,
            rings: 256,
            contexts: 1024,
            blacs_spool_bytes: 1 << 30,
            trace: None,
            trace_events: 16384,
            trace_signal: None,
            stats: None,
            log: Level::Warn,
        }
    }
}

/// Names that begin with `FMPL_` and are set by the launcher, not by users.
pub static LAUNCHER_NAMES: &[&str] =
    &["FMPL_RANK", "FMPL_SIZE", "FMPL_ROOT", "FMPL_NODE", "FMPL_SECRET", "FMPL_SECRET_FILE", "FMPL_RUN"];

impl Config {
    /// Are there connections between nodes? Otherwise there are channels, of which contexts are the only bound.
    pub fn has_connections(&self) -> bool {
        self.queue_pairs > 0
    }

    /// Connections, contexts and rings of all processes of a node; of channels only contexts are counted.
    pub fn places(&self) -> [usize; 3] {
        [self.queue_pairs, self.contexts, self.rings]
    }

    /// Reads the environment. The error names the variable, its value and the possible values.
    pub fn from_environment() -> Result<Config> {
        let mut config = Config::default();
        for s in settings() {
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
                    && !settings().any(|s| s.name == n)
                    && !LAUNCHER_NAMES.contains(&n.as_str())
                    && !n.starts_with("FMPL_TEST_")
                    && !n.starts_with("FMPL_BENCH_")
            })
            .collect()
    }
}

/// Says of a variable that looks like a setting that it is none, and which was meant, if one is like it.
pub fn unknown(name: &str) -> String {
    match meant(name, settings().map(|s| s.name)) {
        Some(meant) => format!("{name} is no setting of FMPL; did you mean {meant}?"),
        None => format!("{name} is no setting of FMPL; `fmpl info` lists them"),
    }
}

/// Which of these words somebody may have meant who wrote this one: the likest, if it is like it.
pub fn meant<'a>(name: &str, of: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = 3.min(2 * name.len() / 3);
    let likest = of.into_iter().map(|word| (distance(name, word), word)).min();
    likest.filter(|(distance, _)| *distance <= most).map(|(_, word)| word)
}

/// How many letters must be put in, taken out or changed to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// Whether a setting is switched on.
pub fn on_off(v: &str) -> Option<bool> {
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
    fn a_misspelt_setting_is_known_by_its_likeness() {
        for (name, meant) in [("FMPL_EAGRE", "FMPL_EAGER"), ("FMPL_NETWORKS", "FMPL_NETWORK"), ("FMPL_Spin_us", "")] {
            let text = unknown(name);
            match meant {
                "" => assert!(text.contains("fmpl info"), "{text}"),
                _ => assert!(text.ends_with(&format!("did you mean {meant}?")), "{text}"),
            }
        }
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("abc", "abc")), (3, 3, 0));
    }

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
        let wait = settings().find(|s| s.name == "FMPL_WAIT").unwrap();
        let e = c.set(wait, "often").unwrap_err();
        assert_eq!(e.code(), Code::Setting);
        assert!(e.detail().contains("FMPL_WAIT=often") && e.detail().contains("adaptive"), "{e}");
        assert!(c.set(wait, "block").is_ok());
        assert_eq!(c.wait, WaitMode::Block);
    }

    #[test]
    fn loops_are_known_by_their_names() {
        let setting = settings().find(|s| s.name == "FMPL_COPY").unwrap();
        for l in Loop::ALL {
            let mut c = Config::default();
            c.set(setting, l.name()).unwrap();
            assert_eq!(c.copy, Some(l));
            assert!(setting.values.split(" | ").any(|v| v == l.name()));
        }
    }

    #[test]
    fn defaults_as_printed_are_the_defaults() {
        for s in settings().filter(|s| !s.default.contains(' ')) {
            let mut c = Config::default();
            c.set(s, s.default).unwrap();
            assert_eq!(format!("{c:?}"), format!("{:?}", Config::default()), "{}", s.name);
        }
    }
}
