//! `fmpl bench`: what a message costs here, and beside the MPIs of this machine.
//!
//! The command is the *driver*. It starts the ranks (of FMPL through `fmpl run`, of each MPI through its own launcher) once, pinned
//! to the same cores, and they sleep in a read of a fifo. Then it wakes one library's ranks at a time for one *block* of a
//! benchmark, in turn, so that all are measured within milliseconds of each other: the speed of a machine's interconnect changes
//! over seconds, and a comparison of runs minutes apart measures that change. Before and after every block the *raw hop* is measured
//! (one cache line written in turn by two processes), the yardstick of short messages and the record of the machine's state: blocks
//! are reported apart by it ([`state`]). All contestants' buffers lie at the same place of a page ([`offset`]).
//!
//! Each benchmark has a file: its plan (the cases, run by the driver) and its block (run by the ranks). `peer.c` holds the same
//! blocks in MPI calls.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use fmpl::base::config::meant;

mod against;
mod anyindex;
mod anysource;
mod blacs;
mod calls;
mod case;
mod collective;
mod exchange;
mod hop;
mod iceoryx;
mod idle;
mod incast;
mod json;
mod loan;
mod mcast;
mod measure;
pub mod memory;
mod offset;
mod overlap;
mod page;
mod pingpong;
mod plot;
mod prepost;
mod rank;
mod ring;
mod rma;
mod session;
mod startup;
mod state;
mod stopped;
mod stream;
mod strided;
mod table;
pub mod tune;
mod tune_coll;
mod ucx;
mod unexpected;
mod window;

use case::{Case, Figure};
use measure::Measured;
use offset::Offset;
use rank::{Outcome, Rank};

/// One benchmark.
pub struct Bench {
    /// What it is called on the command line.
    pub name: &'static str,
    /// A line of help.
    pub about: &'static str,
    /// How many ranks, unless `--ranks` says otherwise.
    pub ranks: usize,
    /// Indices for each peer.
    pub indices: i32,
    /// What a block gives, in order.
    pub figures: &'static [Figure],
    /// The cases to measure.
    pub plan: fn(&Options) -> Vec<Case>,
}

/// Options of `fmpl bench`.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// The benchmark, or several that run by turns, each with sizes of its own if they follow it (echo=8,64k exchange); without
    /// one they are listed
    #[arg(value_name = "NAME[=SIZES]")]
    names: Vec<String>,
    /// Message sizes, such as 8,4k,1M
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes)]
    sizes: Vec<usize>,
    /// Numbers of receives, sends or ranks, where a benchmark counts these
    #[arg(long, value_delimiter = ',')]
    counts: Vec<usize>,
    /// Where buffers lie, in bytes behind a page: what is sent, and what is received into if that differs; may be given more than
    /// once, for lines of each. Where a rank has one buffer for both (echo, collective calls), M is that of odd ranks [default: 16]
    #[arg(long, value_name = "N[,M]", value_parser = Offset::parse)]
    offset: Vec<Offset>,
    /// Compare with these libraries of the machine: openmpi, openmpi-ucx, mpich (rma: also ucx; loan: iceoryx2), or all that are found; and with any
    /// MPI by the path of its mpicc (/path/mpicc+ucx: an Open MPI, over UCX)
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// Leave FMPL out: the first of --against takes its place in the ratios
    #[arg(long, requires = "against")]
    rivals_only: bool,
    /// Rounds over all cases
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Blocks in a round, in place of the benchmark's own number
    #[arg(long)]
    blocks: Option<usize>,
    /// Messages in a block, in place of the benchmark's own number
    #[arg(long)]
    iterations: Option<i64>,
    /// Seconds that a block of a rival may take; one that takes longer stands still, and has no figures on that line
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Both buffers in runs of this many bytes (pingpong, strided)
    #[arg(long, value_name = "RUN", value_parser = parse_bytes)]
    strided: Option<usize>,
    /// FMPL's rings for messages of any source in so many shares each, beside those that it chooses itself (anysource, incast)
    #[arg(long, value_delimiter = ',', value_name = "SHARES")]
    spread: Vec<usize>,
    /// Ranks that a multicast goes to, from 1 on, in place of every other one (mcast)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=63))]
    members: Option<u8>,
    /// FMPL's multicasts between nodes also in each of these forms: flat, tree, chain, ring, doubling (mcast); or its broadcasts: tree, chain,
    /// ring, multicast (bcast)
    #[arg(long, value_delimiter = ',', value_name = "FORM")]
    forms: Vec<String>,
    /// Number of ranks, in place of the benchmark's own
    #[arg(long)]
    ranks: Option<usize>,
    /// FMPL's ranks are on so many pretended nodes, each with neighbouring ranks
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=65536))]
    nodes: Option<u32>,
    /// Also write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the figures into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Also write a page for a browser: pictures, tables and every block, in one file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress line
    #[arg(long, short)]
    quiet: bool,
}

impl Options {
    /// Round trips in a block of messages of this size.
    fn rounds_of(&self, n: usize) -> i64 {
        self.iterations.unwrap_or(match n {
            0..=8192 => 2000,
            8193..=65_536 => 300,
            65_537..=1_048_576 => 40,
            _ => 6,
        })
    }

    /// Messages before those that are timed: the ranks have slept, and others have used the caches.
    fn warm(&self, k: i64) -> i64 {
        if self.iterations.is_some() { 1.max(k / 8).min(100) } else { 2.max(k / 8) }
    }

    fn progress(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }
}

static BENCHES: &[&Bench] = &[
    &pingpong::BENCH,
    &pingpong::ECHOED,
    &exchange::BENCH,
    &stream::BENCH,
    &window::BENCH,
    &window::WAITANY,
    &loan::BENCH,
    &prepost::BENCH,
    &anyindex::BENCH,
    &anysource::BENCH,
    &incast::BENCH,
    &mcast::BENCH,
    &unexpected::BENCH,
    &overlap::BENCH,
    &strided::BENCH,
    &ring::BENCH,
    &rma::BENCH,
    &rma::THIRD,
    &collective::BARRIER,
    &collective::BCAST,
    &collective::REDUCE,
    &collective::ALLREDUCE,
    &collective::ALLGATHER,
    &collective::SCAN,
    &collective::GUIDELINES,
    &idle::BENCH,
    &stopped::BENCH,
    &startup::BENCH,
    &memory::BENCH,
    &blacs::BENCH,
];

type Block = fn(&mut Rank, &[i64]) -> Outcome;

/// The blocks that ranks run, by the first word of a command line.
static BLOCKS: &[(&str, Block)] = &[
    ("pingpong", pingpong::block),
    ("exchange", exchange::block),
    ("stream", stream::block),
    ("window", window::block),
    ("loan", loan::block),
    ("prepost", prepost::block),
    ("anyindex", anyindex::block),
    ("anysource", anysource::block),
    ("incast", incast::block),
    ("mcast", mcast::block),
    ("unexpected", unexpected::block),
    ("overlap", overlap::block),
    ("ring", ring::block),
    ("rma", rma::block),
    ("rma3", rma::third),
    ("barrier", collective::barrier),
    ("bcast", collective::bcast),
    ("reduce", collective::reduce),
    ("allreduce", collective::allreduce),
    ("allgather", collective::allgather),
    ("scan", collective::scan),
    ("guideline", collective::guideline),
    ("idle", idle::block),
    ("stopped", stopped::block),
    ("memory", memory::block),
];

/// The first word of a command line by which the driver starts a part of itself. The words behind it are looked at by nobody but
/// [`part`]: a rank whose memory is measured has not made the tables of all options before.
pub const PART: &str = "bench-part";

/// `rank INDICES [DIR]`: a rank, which has its orders from there; without it starts and ends. `hop A B`: the raw hop between two cores.
pub fn part(words: &[OsString]) -> ExitCode {
    let word = |n: usize| words.get(n).and_then(|word| word.to_str());
    let indices = || word(1)?.parse().ok();
    let core = |n| word(n)?.parse().ok();
    let done = match (word(0), indices(), words.get(2)) {
        (Some("rank"), Some(indices), Some(dir)) => rank::main(Path::new(dir), indices),
        (Some("rank"), Some(indices), None) => rank::startup(indices),
        (Some("hop"), ..) => match (core(1), core(2)) {
            (Some(a), Some(b)) => hop::main(a, b),
            _ => Err("which cores?".into()),
        },
        _ => Err(format!("{PART} is for the driver of the benchmarks")),
    };
    ended(done)
}

/// The command.
pub fn main(o: &Options) -> ExitCode {
    ended(match &o.names[..] {
        [] => {
            list();
            Ok(())
        }
        names => drive(names, o),
    })
}

fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fmpl bench: {e}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    println!("Benchmarks (fmpl bench NAME; --help has the options):\n");
    for b in BENCHES {
        println!("  {:<11} {}", b.name, b.about);
    }
    println!("  {:<11} {}", "tune-coll", tune_coll::ABOUT);
    println!("  {:<11} {}", "hop", hop::ABOUT);
    println!("\nWith --against openmpi,openmpi-ucx,mpich (or all) the same is measured for these in turn.");
}

fn drive(names: &[String], o: &Options) -> Result<(), String> {
    if o.rounds == 0 || o.blocks == Some(0) || o.iterations.is_some_and(|k| k < 1) || o.sizes.contains(&0) {
        return Err("rounds, blocks, iterations and sizes must be positive".into());
    }
    let place = session::Scratch::new()?;
    let only = |name: &str| names.len() == 1 && names[0] == name;
    match &names[0][..] {
        "tune-coll" => return tune_coll::main(o, &place.0),
        "hop" => return hop::show(&place.0),
        _ => {}
    }
    let plans = names.iter().map(|name| plan(name, o)).collect::<Result<Vec<_>, _>>()?;
    let is = |bench: &Bench| only(bench.name) || names.len() == 1 && plans[0].0.name == bench.name;
    if let Some(alone) = ALONE.iter().find(|b| names.len() > 1 && plans.iter().any(|p| p.0.name == b.name)) {
        return Err(format!("{} has contestants of its own: it is measured alone", alone.name));
    }
    let mut contestants = Vec::new();
    if !o.rivals_only {
        contestants.push(match () {
            _ if is(&blacs::BENCH) => blacs::ours(&place.0)?,
            _ if is(&mcast::BENCH) => against::ours_in_part("fmpl", &[]),
            _ => against::ours("fmpl", &[]),
        });
    }
    if !o.spread.is_empty() && !is(&incast::BENCH) && !is(&anysource::BENCH) {
        return Err("--spread is of anysource and incast".into());
    }
    if o.members.is_some() && !is(&mcast::BENCH) {
        return Err("--members is of mcast".into());
    }
    if !o.forms.is_empty() && !is(&mcast::BENCH) && !is(&collective::BCAST) {
        return Err("--forms is of mcast and of bcast".into());
    }
    let form = |form: &String| match is(&mcast::BENCH) {
        true => against::ours_in_part(form, &[("FMPL_MCAST_FAR", form.clone())]),
        false => against::ours(form, &[("FMPL_COLL_FAR_BCAST", form.clone())]),
    };
    contestants.extend(o.forms.iter().map(form));
    let spread = |n: &usize| against::ours(&format!("in {n} shares"), &[("FMPL_SPREAD", n.to_string())]);
    contestants.extend(o.spread.iter().map(spread));
    // Loans have this rival, and MPI has none.
    if is(&loan::BENCH) && o.against == [iceoryx::NAME] {
        contestants.push(iceoryx::rival()?);
    } else {
        contestants.extend(against::rivals(&o.against, &place.0, is(&blacs::BENCH), is(&rma::BENCH))?);
    }
    let measured = measure::measure(plans, &contestants, o, &place.0)?;
    publish(&measured, o)
}

/// Benchmarks whose contestants are others than those of the rest, or are started in another way.
static ALONE: &[&Bench] = &[&blacs::BENCH, &mcast::BENCH, &startup::BENCH];

/// A benchmark by its name, with sizes of its own if they follow, and its cases at each offset asked for.
fn plan(name: &str, o: &Options) -> Result<(&'static Bench, Vec<Case>), String> {
    let (name, sizes) = name.split_once('=').map_or((name, None), |(name, sizes)| (name, Some(sizes)));
    let Some(bench) = BENCHES.iter().find(|b| b.name == name) else {
        let names: Vec<&str> = BENCHES.iter().map(|b| b.name).chain(["tune-coll", "hop"]).collect();
        let like = meant(name, names.iter().copied()).map_or(String::new(), |like| format!("did you mean {like}? "));
        return Err(format!("no benchmark {name}; {like}there are {}", names.join(", ")));
    };
    let mut o = o.clone();
    if let Some(sizes) = sizes {
        o.sizes = sizes.split(',').map(parse_bytes).collect::<Result<_, _>>()?;
    }
    let mut cases = (bench.plan)(&o);
    if let [offset] = o.offset[..] {
        cases.iter_mut().for_each(|case| case.offset = offset);
    } else if !o.offset.is_empty() {
        let at = |case: &Case, offset: &Offset| Case {
            label: format!("{} at {offset}", case.label),
            offset: *offset,
            ..case.clone()
        };
        cases = cases.iter().flat_map(|case| o.offset.iter().map(|offset| at(case, offset))).collect();
    }
    if let Some(case) = cases.iter().find(|case| !case.offset.is_multiple_of(case.unit)) {
        return Err(format!("{name} is of elements: --offset {} is no multiple of {}", case.offset, case.unit));
    }
    if cases.is_empty() { Err(format!("no case of {name} is left with these options")) } else { Ok((bench, cases)) }
}

/// The tables, and the files that were asked for.
fn publish(all: &[Measured], o: &Options) -> Result<(), String> {
    for measured in all {
        print!("{}", table::text(measured));
    }
    if let Some(path) = &o.json {
        let text = match all {
            [one] => serde_json::to_string_pretty(&json::value(one)),
            all => serde_json::to_string_pretty(&all.iter().map(json::value).collect::<Vec<_>>()),
        };
        let text = text.map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if let Some(path) = &o.html {
        page::write(all, path)?;
    }
    match (&o.svg, all) {
        (Some(path), [one]) => plot::draw(one, path),
        (Some(_), _) => Err("--svg: a picture is of one benchmark".into()),
        (None, _) => Ok(()),
    }
}

/// The sizes asked for, or the powers of two, by factors that keep the table short, from `least` to `most`.
fn sizes(o: &Options, least: usize, most: usize) -> Vec<usize> {
    if !o.sizes.is_empty() {
        return o.sizes.clone();
    }
    [8, 64, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20]
        .into_iter()
        .filter(|n| (least..=most).contains(n))
        .collect()
}

fn parse_bytes(text: &str) -> Result<usize, String> {
    fmpl::base::config::bytes(text).ok_or_else(|| format!("{text}: not a number of bytes (such as 8, 4k, 1M)"))
}

/// `4 KB`
pub fn size_text(n: usize) -> String {
    match n {
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MB", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KB", n >> 10),
        n => format!("{n} B"),
    }
}
