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
//! both: `FMPL_RING_MAX=128k` is the line `ring_max = 128k` for everything that this process does, and so of every number.

mod find;
mod read;

use super::config::{Setting, bytes, on_off};
use super::processor::Processor;
use crate::base::variants::variants;
pub use find::{Found, Whence, find, installed_place, user_place};
pub use read::Damage;

/// The file that is built in.
pub const SHIPPED: &str = include_str!("tuning/shipped.tuning");
/// The first line of a tuning file.
pub const FORMAT: &str = "fmpl tuning 1";
/// Bytes, or a number of ranks, that nothing reaches.
pub const NEVER: usize = usize::MAX;

variants! {
    /// What two cores have between them.
    pub enum Distance: u8, name {
        /// A common cache.
        Shared => "shared",
        /// None: a line goes from chiplet to chiplet, or from socket to socket.
        Apart => "apart",
    }
}

impl Distance {
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
            (Kind::Switch, _) => on_off(text).map(usize::from),
            (Kind::Bytes, "never") => Some(NEVER),
            (Kind::Bytes, _) => bytes(text),
            (Kind::Within(least, most), _) => bytes(text).filter(|n| (least..=most).contains(n)),
            (Kind::Power(least, most), _) => bytes(text).filter(|n| n.is_power_of_two() && (least..=most).contains(n)),
        }
    }

    fn write(self, value: usize) -> String {
        match self {
            Kind::Switch => if value != 0 { "on" } else { "off" }.into(),
            _ => written(value),
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
    /// The values that it takes.
    values: &'static str,
    field: fn(&mut Crossovers) -> &mut usize,
    given: fn(&Given) -> Option<usize>,
}

/// The values that a number takes, in words.
macro_rules! values {
    (Switch) => {
        "on | off"
    };
    (Bytes) => {
        "bytes, with k, M or G; never"
    };
    (Within $least:literal, $most:literal) => {
        concat!($least, " to ", $most)
    };
    (Power $least:literal, $most:literal) => {
        concat!("a power of two from ", $least, " to ", $most)
    };
}

/// One row a number: its name in files, its setting, of what it is said, its values, and what it means.
macro_rules! crossovers {
    ($($name:ident $setting:ident: $of:ident, $kind:ident $(($least:literal, $most:literal))? = $meaning:literal;)*) => {
        /// The numbers for one case.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Crossovers {
            $(#[doc = $meaning] pub $name: usize,)*
        }

        /// Those that hold for this process, whatever the case and the files.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Given {
            $(#[doc = $meaning] pub $name: Option<usize>,)*
        }

        impl Given {
            /// Puts them over what a file says.
            pub fn over(&self, row: &mut Crossovers) {
                $(row.$name = self.$name.unwrap_or(row.$name);)*
            }
        }

        static KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            of: Of::$of,
            kind: Kind::$kind $(($least, $most))?,
            values: values!($kind $($least, $most)?),
            field: |c| &mut c.$name,
            given: |g| g.$name,
        },)*];

        /// The settings that give them.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($setting),
            default: "tuning table",
            values: values!($kind $($least, $most)?),
            meaning: $meaning,
            set: |c, v| {
                c.numbers.$name = Some((Kind::$kind $(($least, $most))?).read(v)?);
                Some(())
            },
        },)*];
    };
}

crossovers! {
    take_over FMPL_TAKE_OVER: Process, Switch =
        "who reads lines that another core writes again and again stores into them, so that they are its own by then";
    look_by_clock FMPL_LOOK_BY_CLOCK: Process, Switch =
        "between two looks at what another core is about to write the clock's counter is read, rather than pausing as the processor offers it";
    owe_all FMPL_OWE_ALL: Process, Switch =
        "messages of 17 to 768 bytes that go to and fro are acknowledged by the answer, like shorter and longer ones, rather than before it";
    eager FMPL_EAGER: Process, Bytes =
        "up to this size a message is sent without waiting for its receive; 0: in standard mode every message waits";
    apart FMPL_APART: Process, Within(1, 1048576) =
        "nanoseconds from which on fetching a line that another core has written says that the two have no common cache";
    past FMPL_PAST: Process, Bytes = "from this size on no core's own cache keeps a payload: it is copied past the caches";
    ahead FMPL_AHEAD: Process, Within(0, 4096) =
        "so many bytes ahead of its stores a copy asks for the lines that it writes; 0: it does not";
    ring_max FMPL_RING_MAX: Pair, Bytes =
        "up to this size a message to a waiting receiver goes through the ring of chunks, above it by CMA";
    ring_chunk FMPL_RING_CHUNK: Pair, Power(256, 65536) = "the size of a chunk of the ring";
    ring_chunks FMPL_RING_CHUNKS: Pair, Within(2, 16) =
        "how many chunks of the ring are in use: few, so that they stay in the innermost caches";
    turn_max FMPL_TURN_MAX: Pair, Bytes =
        "up to this size, 16M at most, a message to a waiting receiver goes through memory that both use in turn";
    turn_string FMPL_TURN_STRING: Pair, Bytes =
        "from this size on a message through memory used in turn is written by the processor's own instruction for strings";
    turn_past FMPL_TURN_PAST: Pair, Bytes =
        "up to this size a message through memory used in turn is written into the caches, above it past the receiver's";
    coop_min FMPL_COOP_MIN: Pair, Bytes = "from this size on sender and waiting receiver share the copying";
    coop_piece FMPL_COOP_PIECE: Pair, Within(4096, 1099511627776) =
        "up to twice this size a shared copy is cut in two halves, a longer one into runs of eight times as much";
    unawaited FMPL_UNAWAITED: Pair, Bytes =
        "up to this size a blocking send whose receive is posted, but not waited for, goes by the spool";
    unawaited_isend FMPL_UNAWAITED_ISEND: Pair, Bytes =
        "up to this size an isend whose receive is posted, but not waited for, goes by the spool";
    unawaited_exchange FMPL_UNAWAITED_EXCHANGE: Pair, Bytes =
        "the same of both while a long receive from that rank is posted here: the two exchange messages";
    coll_bcast_pull FMPL_COLL_BCAST_PULL: Team, Bytes = "from this size on a broadcast is copied from the root's memory";
    coll_reduce_pull FMPL_COLL_REDUCE_PULL: Team, Bytes = "from this size on a reduce reads the ranks' memory";
    coll_allreduce_pull FMPL_COLL_ALLREDUCE_PULL: Team, Bytes = "from this size on an allreduce reads the ranks' memory";
    coll_allreduce_root FMPL_COLL_ALLREDUCE_ROOT: Team, Bytes = "from this size on one rank of an allreduce reduces and broadcasts";
    coll_allreduce_slices FMPL_COLL_ALLREDUCE_SLICES: Team, Bytes = "from this size on each rank of an allreduce reduces a slice";
    coll_exchange_pull FMPL_COLL_EXCHANGE_PULL: Team, Bytes = "from so many bytes of a rank on blocks are copied from the ranks' memory";
    coll_scan_chain FMPL_COLL_SCAN_CHAIN: Team, Bytes = "from this size on the ranks of a scan hand their results on";
    coll_chunk FMPL_COLL_CHUNK: Team, Within(64, 8192) = "how much of a collective call's payload goes into a cell";
    coll_piece FMPL_COLL_PIECE: Team, Within(4096, 1099511627776) =
        "the size of the pieces in which the ranks share the copying of a collective call";
    coll_far_bcast_tree FMPL_COLL_FAR_BCAST_TREE: Team, Bytes =
        "from so many bytes for each node on a broadcast between nodes goes down a tree, until another way begins";
    coll_far_bcast_ring FMPL_COLL_FAR_BCAST_RING: Team, Bytes = "the same of parts that go round a ring";
    coll_far_bcast_chain FMPL_COLL_FAR_BCAST_CHAIN: Team, Bytes = "the same of pieces that go along a chain";
    coll_far_bcast_multicast FMPL_COLL_FAR_BCAST_MULTICAST: Team, Bytes =
        "the same of multicast, where a group can be joined";
    coll_far_piece FMPL_COLL_FAR_PIECE: Team, Within(4096, 1099511627776) =
        "the size of the pieces that are handed on along a chain between nodes";
    coll_far_allreduce_halving FMPL_COLL_FAR_ALLREDUCE_HALVING: Team, Bytes =
        "from this size on an allreduce between nodes halves its vectors";
    mcast_tree FMPL_MCAST_TREE: Team, Bytes =
        "below this size a multicast between few nodes goes from its master to each, from it on down a tree";
    mcast_doubling FMPL_MCAST_DOUBLING: Team, Bytes =
        "from this size on a multicast between nodes is scattered, and gathered by doubling";
    mcast_ring FMPL_MCAST_RING: Team, Bytes = "from this size on a multicast between nodes is scattered, and gathered round a ring";
    mcast_chain FMPL_MCAST_CHAIN: Team, Bytes = "from this size on a multicast between nodes goes along a chain";
}

impl Given {
    /// Do readers take lines over? As the setting says, else as these rows say of the processor.
    pub fn takes_over(&self, rows: &Rows, processor: &Processor) -> bool {
        self.take_over.map_or_else(|| rows.take_over(processor), |on| on != 0)
    }
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

    /// Every number's name, its value in this case as a file would have it, and what says so: a section, or the setting that gives it.
    pub fn explain(&self, case: &Case, given: &Given) -> Vec<(&'static str, String, String)> {
        let mut all: Vec<(&str, String, String)> =
            KEYS.iter().map(|k| (k.name, String::new(), String::new())).collect();
        for section in self.sections.iter().filter(|s| s.conditions.iter().all(|c| c.holds(case))) {
            for (key, value) in &section.lines {
                (all[*key].1, all[*key].2) = (KEYS[*key].kind.write(*value), format!("[{}]", section.heading));
            }
        }
        for ((row, key), setting) in all.iter_mut().zip(KEYS).zip(SETTINGS) {
            if let Some(value) = (key.given)(given) {
                (row.1, row.2) = (key.kind.write(value), setting.name.to_owned());
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
