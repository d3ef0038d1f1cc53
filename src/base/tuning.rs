//! Crossovers: numbers that say up to which size, or from which on, a message or a collective call goes which way. They differ from
//! processor to processor, and by whether two cores have a common cache, so they are data: a file of sections, each with the
//! conditions under which its lines hold. Every section whose conditions are met is read, from the top to the bottom of the file; of two
//! lines for one number the later one holds.
//!
//! ```text
//! fmpl tuning 1                                 the format's number, first
//! [any]                                         no condition
//! ring_max = 64k                                # a number of bytes, or "never"
//! [vendor AuthenticAMD, family 25, model 1]     this kind of processor
//! [distance apart]                              a pair of ranks whose cores have no common cache
//! [members 3-4, crowded on]                     a collective call of three or four ranks, which share cores
//! ```
//!
//! The file that is built in, [`SHIPPED`], has them all. One that [`find`] finds for this machine comes after it, and the settings after
//! both: `FMPL_RING_MAX=128k` is the line `ring_max = 128k` for everything that this process does.

mod find;
mod read;

use super::config::bytes;
use super::processor::Processor;
pub use find::{Found, Whence, find, installed_place, user_place};
pub use read::Damage;

/// The file that is built in.
pub const SHIPPED: &str = include_str!("tuning/shipped.tuning");
/// The first line of a tuning file.
pub const FORMAT: &str = "fmpl tuning 1";
/// Bytes, or a number of ranks, that nothing reaches.
pub const NEVER: usize = usize::MAX;

/// What two cores have between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// A common cache.
    Shared,
    /// None: a line goes from chiplet to chiplet, or from socket to socket.
    Apart,
}

impl Distance {
    /// Both.
    pub const ALL: [Distance; 2] = [Distance::Shared, Distance::Apart];

    /// Its name in files and settings.
    pub fn name(self) -> &'static str {
        match self {
            Distance::Shared => "shared",
            Distance::Apart => "apart",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Distance> {
        Distance::ALL.into_iter().find(|d| d.name() == name)
    }
}

/// For whom a number is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The processor.
    pub processor: &'a Processor,
    /// Of the pair.
    pub distance: Distance,
    /// Ranks that call together.
    pub members: usize,
    /// More ranks than cores.
    pub crowded: bool,
    /// Readers take lines over.
    pub take_over: bool,
    /// What is between nodes, as `fmpl info` names it; empty: that is not known, or not asked for.
    pub network: &'a str,
}

/// What a number is said of, and so the conditions that it may hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// All that a process does: by the processor only.
    Process,
    /// A pair of ranks.
    Pair,
    /// Ranks that call together, or nodes. All must choose alike, so what only two of them can know is no condition.
    Team,
}

/// What may stand for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `on` or `off`.
    Switch,
    /// Bytes, or `never`.
    Bytes,
    /// A number within these bounds.
    Within(usize, usize),
    /// Bytes, a power of two within these bounds.
    Power(usize, usize),
}

impl Kind {
    fn read(self, text: &str) -> Option<usize> {
        match (self, text) {
            (Kind::Switch, "on") => Some(1),
            (Kind::Switch, "off") => Some(0),
            (Kind::Bytes, "never") => Some(NEVER),
            (Kind::Bytes, _) => bytes(text),
            (Kind::Within(least, most), _) => bytes(text).filter(|n| (least..=most).contains(n)),
            (Kind::Power(least, most), _) => bytes(text).filter(|n| n.is_power_of_two() && (least..=most).contains(n)),
            _ => None,
        }
    }

    fn write(self, value: usize) -> String {
        match self {
            Kind::Switch => if value != 0 { "on" } else { "off" }.into(),
            _ => written(value),
        }
    }

    fn values(self) -> String {
        match self {
            Kind::Switch => "on | off".into(),
            Kind::Bytes => "bytes, with k, M or G; never".into(),
            Kind::Within(least, most) => format!("{least} to {most}"),
            Kind::Power(least, most) => format!("a power of two from {least} to {most}"),
        }
    }
}

/// A number of bytes as files have it.
pub fn written(n: usize) -> String {
    match n {
        NEVER => "never".into(),
        0 => "0".into(),
        n if n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{}k", n >> 10),
        n => n.to_string(),
    }
}

struct Key {
    name: &'static str,
    of: Of,
    kind: Kind,
    field: fn(&mut Crossovers) -> &mut usize,
}

macro_rules! crossovers {
    ($($(#[$doc:meta])* $name:ident: $of:ident, $kind:expr;)*) => {
        /// The numbers for one case.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Crossovers {
            $($(#[$doc])* pub $name: usize,)*
        }

        static KEYS: &[Key] = &[
            $(Key { name: stringify!($name), of: Of::$of, kind: $kind, field: |c| &mut c.$name },)*
        ];
    };
}

crossovers! {
    /// 1: who reads lines that another core writes again and again stores into them ([`super::ownership`]).
    take_over: Process, Kind::Switch;
    /// 1: between two looks at a word that another core is about to write the clock's counter is read ([`super::looking`]).
    look_by_clock: Process, Kind::Switch;
    /// 1: messages beside their landing are acknowledged by the answer whatever their length, in traffic in turn.
    owe_all: Process, Kind::Switch;
    /// Up to this many bytes a message is sent without waiting for its receive.
    eager: Process, Kind::Bytes;
    /// From this many nanoseconds on, what it takes to fetch a line that another core has written says that they have no common cache.
    apart: Process, Kind::Within(1, 1 << 20);
    /// From this many bytes on no core's own cache keeps a payload: it is copied past the caches.
    past: Process, Kind::Bytes;
    /// So many bytes ahead of its stores a copy asks for the lines that it writes. 0: it does not.
    ahead: Process, Kind::Within(0, 4096);
    /// Up to this many bytes a message to a waiting receiver goes through the ring.
    ring_max: Pair, Kind::Bytes;
    /// Bytes of a chunk of the ring.
    ring_chunk: Pair, Kind::Power(256, 65536);
    /// Chunks of the ring that are in use: few, so that they stay in the caches.
    ring_chunks: Pair, Kind::Within(2, 16);
    /// Up to this many bytes a message to a waiting receiver goes through memory used in turn. 0: never.
    turn_max: Pair, Kind::Bytes;
    /// From this many bytes on such a message is written by the processor's own instruction for strings.
    turn_string: Pair, Kind::Bytes;
    /// From one byte more on such a message is written past the receiver's caches.
    turn_past: Pair, Kind::Bytes;
    /// From this many bytes on the copying is shared.
    coop_min: Pair, Kind::Bytes;
    /// Up to twice these bytes a shared copy is cut in two halves; longer ones into runs of eight times as much.
    coop_piece: Pair, Kind::Within(4096, 1 << 40);
    /// Up to this many bytes a blocking send whose receive is posted, but not waited for, goes by the spool.
    unawaited: Pair, Kind::Bytes;
    /// The same of `isend`.
    unawaited_isend: Pair, Kind::Bytes;
    /// The same of both while a long receive from that rank is posted here: the two exchange messages.
    unawaited_exchange: Pair, Kind::Bytes;
    /// From this many bytes on a broadcast is read from the root's memory.
    coll_bcast_pull: Team, Kind::Bytes;
    /// From this many bytes on a reduction reads the members' memory.
    coll_reduce_pull: Team, Kind::Bytes;
    /// From this many bytes on an allreduce reads the members' memory.
    coll_allreduce_pull: Team, Kind::Bytes;
    /// From this many bytes on one member of an allreduce reduces and broadcasts.
    coll_allreduce_root: Team, Kind::Bytes;
    /// From this many bytes on each member of an allreduce reduces a slice.
    coll_allreduce_slices: Team, Kind::Bytes;
    /// From so many bytes of a member on blocks are copied from the members' memory.
    coll_exchange_pull: Team, Kind::Bytes;
    /// From this many bytes on the members of a scan hand their results on.
    coll_scan_chain: Team, Kind::Bytes;
    /// Most bytes of a payload that go into a cell.
    coll_chunk: Team, Kind::Within(64, 8192);
    /// Bytes of a piece of a copy that several share.
    coll_piece: Team, Kind::Within(4096, 1 << 40);
    /// From this many bytes on a broadcast between nodes goes along a chain, or round a ring.
    coll_far_bcast_long: Team, Kind::Bytes;
    /// From this many bytes on a broadcast between nodes goes by multicast, if it can.
    coll_far_bcast_multicast: Team, Kind::Bytes;
    /// Bytes of a piece that is handed on along a chain between nodes.
    coll_far_piece: Team, Kind::Within(4096, 1 << 40);
    /// From this many bytes on an allreduce between nodes halves its vectors.
    coll_far_allreduce_halving: Team, Kind::Bytes;
    /// From this many bytes on a multicast to so many nodes is scattered, and gathered by doubling.
    mcast_doubling: Team, Kind::Bytes;
    /// From this many bytes on it is gathered round a ring.
    mcast_ring: Team, Kind::Bytes;
    /// From this many bytes on it goes along a chain.
    mcast_chain: Team, Kind::Bytes;
}

/// A condition of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Vendor(String),
    Family(u32),
    Model(u32),
    Distance(Distance),
    Members(usize, usize),
    Crowded(bool),
    TakeOver(bool),
    Network(String),
}

impl Condition {
    fn holds(&self, case: &Case) -> bool {
        match self {
            Condition::Vendor(name) => *name == case.processor.vendor,
            Condition::Family(n) => *n == case.processor.family,
            Condition::Model(n) => *n == case.processor.model,
            Condition::Distance(d) => *d == case.distance,
            Condition::Members(least, most) => (*least..=*most).contains(&case.members),
            Condition::Crowded(c) => *c == case.crowded,
            Condition::TakeOver(t) => *t == case.take_over,
            // What stands in brackets behind a network's name is what both ends must have in common besides.
            Condition::Network(name) => {
                case.network.split(" (").next().is_some_and(|network| name.eq_ignore_ascii_case(network))
            }
        }
    }

    fn is_of_processor(&self) -> bool {
        matches!(self, Condition::Vendor(_) | Condition::Family(_) | Condition::Model(_))
    }

    /// May numbers of this kind hang on it?
    fn fits(&self, of: Of) -> bool {
        match self {
            Condition::Vendor(_) | Condition::Family(_) | Condition::Model(_) => true,
            Condition::Distance(_) => of == Of::Pair,
            Condition::Members(..) | Condition::Network(_) => of == Of::Team,
            Condition::Crowded(_) | Condition::TakeOver(_) => of != Of::Process,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Section {
    /// As it stands between the brackets.
    heading: String,
    conditions: Vec<Condition>,
    lines: Vec<(usize, usize)>,
}

/// What stands in one file, or in several one after the other.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    sections: Vec<Section>,
}

impl Rows {
    /// What is built in.
    pub fn shipped() -> Rows {
        Rows::read(SHIPPED).unwrap_or_default()
    }

    /// What is built in, and after it what was found.
    pub fn with(self, found: Rows) -> Rows {
        Rows { sections: self.sections.into_iter().chain(found.sections).collect() }
    }

    /// Has it anything for this processor?
    pub fn knows(&self, processor: &Processor) -> bool {
        let (distance, members) = (Distance::Shared, 0);
        let case = Case { processor, distance, members, crowded: false, take_over: false, network: "" };
        self.sections.iter().any(|s| s.conditions.iter().filter(|c| c.is_of_processor()).all(|c| c.holds(&case)))
    }

    /// The numbers for a case.
    pub fn at(&self, case: &Case) -> Crossovers {
        let mut all = Crossovers::default();
        for section in self.sections.iter().filter(|s| s.conditions.iter().all(|c| c.holds(case))) {
            for (key, value) in &section.lines {
                *(KEYS[*key].field)(&mut all) = *value;
            }
        }
        all
    }

    /// Every number's name, its value in this case as a file would have it, and the section that says so.
    pub fn explain(&self, case: &Case) -> Vec<(&'static str, String, &str)> {
        let mut all: Vec<(&str, String, &str)> = KEYS.iter().map(|k| (k.name, String::new(), "")).collect();
        for section in self.sections.iter().filter(|s| s.conditions.iter().all(|c| c.holds(case))) {
            for (key, value) in &section.lines {
                (all[*key].1, all[*key].2) = (KEYS[*key].kind.write(*value), &section.heading);
            }
        }
        all
    }

    /// Do readers take lines over on this processor? What else hangs on that is looked up with it.
    pub fn take_over(&self, processor: &Processor) -> bool {
        let (distance, members) = (Distance::Shared, 0);
        self.at(&Case { processor, distance, members, crowded: false, take_over: false, network: "" }).take_over != 0
    }
}

#[cfg(test)]
mod tests;
