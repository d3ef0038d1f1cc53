//! What spreading a receiver's counter buys, with up to a million senders: a simulator.
//!
//!     cargo build --release --examples
//!     fmpl run -n 33 --bind none target/release/examples/incast --json times.json --svg incast.svg
//!     target/release/examples/incast --times times.json
//!
//! The times of the model are measured first, each by a block of its own ([`times`]): a message put into a ring with room, a message taken
//! out, a counter's hop, giving way to another rank, waking one. Then the model ([`near`]) is to say what 8, 16 and 32 senders cost on this
//! machine, and is compared with them, measured in the same run. Only if it is right within [`SLACK`] does it go on to more senders than can
//! be measured, each with a processor of its own ([`stations`]). With `--times` nothing is measured, and no job is needed.
//!
//! The blocks take turns, for the machine changes; the raw hop before and after each says in which state it was, and only blocks of
//! the commonest state count.

mod near;
mod picture;
mod stations;
mod times;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fmpl::Comm;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use stations::{Place, Scene, Times, play};
use times::{Block, hop, median, processors};

/// How far the model may be from what was measured.
const SLACK: f64 = 0.20;
/// Slots of a ring, as `FMPL_ANY_SLOTS` has it unless set.
const SLOTS: usize = 512;
/// Messages of each sender in a drain.
const EACH: usize = 1000;
/// Which numbers of senders the model is tried on.
const TRIED: [usize; 3] = [8, 16, 32];
/// Two raw hops further apart than this are of different states of the machine.
const STATES: f64 = 1.5;
/// Blocks of each kind that are wanted for each round asked for, and how many are tried at most for one wanted.
const BLOCKS: usize = 5;
const TRIES: usize = 4;
const SENDERS: [usize; 9] = [16, 64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1_000_000];
const SHARES: [usize; 4] = [1, 4, 16, 64];
const PLACES: [(Place, &str); 3] =
    [(Place::Memory, "receiver's memory"), (Place::Port, "receiver's port"), (Place::Nodes, "other nodes")];

#[derive(Parser)]
struct Options {
    /// Numbers of senders to play, up to a million
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    counts: Vec<u32>,
    /// Blocks of each kind are measured so many times five times
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The times, as --json has written them or made up for another machine, in place of measuring
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
    /// Also write the times to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw what came out into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What the model goes by.
#[derive(Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    times: Times,
    /// Processors of the machine on which `measured` was.
    processors: usize,
    /// Senders, and ns from one message to the next, as measured.
    #[serde(default)]
    measured: BTreeMap<usize, f64>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let known = match &options.times {
        Some(path) => read(path).map(Some),
        None => job(&options),
    };
    match known.and_then(|known| known.map_or(Ok(()), |known| model(&options, &known))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("incast: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the times, compares, and goes on to more senders.
fn model(o: &Options, known: &Known) -> Result<(), String> {
    let t = known.times;
    println!("times, ns, each by a block of its own");
    for (value, what) in [
        (t.take, "a message taken that is there"),
        (t.send, "a message sent that there is room for"),
        (t.taking, "a message taken while one sender that has filled the ring is at it"),
        (t.sending, "a message of that sender"),
        (t.counter, "a ticket, or a look at a counter that others use: the raw hop"),
        (t.way, "a way to the counter or the slot: the raw hop"),
        (t.port, "a request that comes to a node: the raw hop"),
        (t.yields, "a rank gives way to another one on its processor"),
        (t.wake, "a rank wakes one that sleeps"),
        (t.woken, "from that to its first step"),
    ] {
        println!("  {value:>8.1}  {what}");
    }
    println!(
        "\nthe model beside what was measured, ns from one message to the next; {} processors, one of them the receiver's",
        known.processors
    );
    println!("  {:>12} {:>8} {:>8}", "", "model", "measured");
    let mut wrong = Vec::new();
    for (senders, measured) in &known.measured {
        let said = near::drain(*senders, EACH, SLOTS, known.processors.saturating_sub(1), t);
        println!("  {senders:>4} senders {said:>8.0} {measured:>8.0}   {:>+4.0} %", (said / measured - 1.0) * 100.0);
        if (said / measured - 1.0).abs() > SLACK {
            wrong.push(senders.to_string());
        }
    }
    if let Some(path) = &o.json {
        let text = serde_json::to_string_pretty(known).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if known.measured.is_empty() || !wrong.is_empty() {
        let why = match wrong.is_empty() {
            true => "nothing was measured that it could be compared with".to_owned(),
            false => format!("it is off by more than {:.0} % at {} senders", SLACK * 100.0, wrong.join(", ")),
        };
        return Err(format!("the model is not taken further: {why}"));
    }
    extrapolate(o, t)
}

/// Plays all scenes; the table, and the picture if one is wanted.
fn extrapolate(o: &Options, times: Times) -> Result<(), String> {
    let counts: Vec<usize> = o.counts.iter().map(|n| *n as usize).collect();
    let all: &[usize] = if counts.is_empty() { &SENDERS } else { &counts };
    let scene = |n: usize| {
        let (senders, shares) = (all[n % all.len()], SHARES[n / all.len() % SHARES.len()]);
        Scene { senders, slots: SLOTS, shares, place: PLACES[n / all.len() / SHARES.len()].0 }
    };
    let count = all.len() * SHARES.len() * PLACES.len();
    let done: Vec<_> = (0..count).into_par_iter().map(|n| play(scene(n), times)).collect();
    println!(
        "\nns from one message to the next, when each sender has a processor of its own (looks at a counter for each message)"
    );
    print!("  {:<26}", "senders");
    all.iter().for_each(|n| print!("{n:>16}"));
    println!();
    let mut lines = Vec::new();
    for (row, found) in done.chunks(all.len()).enumerate() {
        let (place, shares) = (PLACES[row / SHARES.len()].1, SHARES[row % SHARES.len()]);
        print!("  {:<26}", format!("{place}, {shares}"));
        found.iter().for_each(|o| print!("{:>16}", format!("{:.0} ({:.1})", o.each, o.looks)));
        println!();
        let points = all.iter().zip(found).map(|(n, o)| (*n as f64, o.each)).collect();
        // Those that can be told apart in a picture.
        if row >= SHARES.len() && shares != 16 {
            let shares = if shares == 1 { "1 share".to_owned() } else { format!("{shares} shares") };
            lines.push((format!("{shares}, counters: {place}"), points));
        }
    }
    match &o.svg {
        Some(path) => picture::draw(path, &lines).map_err(|e| format!("{}: {e}", path.display())),
        None => Ok(()),
    }
}

/// A block's raw hop, and what it gave.
type Given = (f64, Vec<f64>);

/// Joins the job; rank 0 gets what was measured.
fn job(o: &Options) -> Result<Option<Known>, String> {
    let job = fmpl::init(3).map_err(|e| e.to_string())?;
    let world = job.world();
    let ranks = TRIED[TRIED.len() - 1] + 1;
    if world.size() != ranks {
        return Err(format!("needs {ranks} ranks, each on all processors: fmpl run -n {ranks} --bind none"));
    }
    let known = measured(o, world)?;
    job.finalize().map_err(|e| e.to_string())?;
    Ok(known)
}

/// The times of this machine, and what it takes of 8 to 32 senders: the blocks in turn, until there are enough of one state.
fn measured(o: &Options, world: Comm) -> Result<Option<Known>, String> {
    let processors = processors();
    if processors.len() < 2 {
        return Err(
            "the receiver wants a processor to itself, and the senders another one (fmpl run --bind none)".into()
        );
    }
    let (first, wanted) = (world.rank() == 0, o.rounds as usize * BLOCKS);
    let blocks: Vec<Block> =
        [Block::Fill, Block::Yields, Block::Wakes].into_iter().chain(TRIED.map(Block::Drain)).collect();
    let mut given: Vec<Vec<Given>> = vec![Vec::new(); blocks.len()];
    let mut chosen = Err(String::new());
    for turn in 0..wanted * TRIES {
        for (block, given) in blocks.iter().zip(&mut given) {
            // By then those who have nothing to do in it sleep.
            let asleep = || world.barrier().map(|()| std::thread::sleep(Duration::from_millis(10)));
            let hop = || asleep().map(|()| if first { hop(&processors) } else { 1.0 });
            let before = hop().map_err(|e| e.to_string())?;
            asleep().map_err(|e| e.to_string())?;
            let values = block.run(world, &processors).map_err(|e| e.to_string())?;
            let after = hop().map_err(|e| e.to_string())?;
            if turn > 0 && same_state(before, after) {
                given.push((before.midpoint(after), values));
            }
        }
        let mut over = [0];
        if turn >= wanted && first {
            chosen = choose(&given, wanted);
            over = [u8::from(chosen.is_ok())];
        }
        world.bcast(&mut over, 0).map_err(|e| e.to_string())?;
        if over == [1] {
            break;
        }
    }
    if !first {
        return Ok(None);
    }
    let (hop, v) = chosen?;
    let times = Times {
        take: v[0][0],
        send: v[0][1],
        counter: hop,
        port: hop,
        way: hop,
        taking: v[0][2],
        sending: v[0][3],
        yields: v[1][0],
        wake: v[2][0],
        woken: v[2][1],
    };
    let measured = TRIED.iter().zip(&v[3..]).map(|(n, v)| (*n, v[0])).collect();
    Ok(Some(Known { times, processors: processors.len(), measured }))
}

/// Are these raw hops of one state of the machine?
fn same_state(a: f64, b: f64) -> bool {
    a.max(b) < a.min(b) * STATES
}

/// The commonest state of the machine, by its hop, and the medians of each block's figures in it; an error while there are fewer than `wanted`
/// blocks of a kind.
fn choose(given: &[Vec<Given>], wanted: usize) -> Result<(f64, Vec<Vec<f64>>), String> {
    let hops: Vec<f64> = given.iter().flatten().map(|g| g.0).collect();
    let count = |h: f64| hops.iter().filter(|other| same_state(h, **other)).count();
    let Some(most) = hops.iter().copied().max_by_key(|h| count(*h)) else {
        return Err("the machine was in no state for long enough".into());
    };
    let mut all = Vec::new();
    for given in given {
        let these: Vec<&Vec<f64>> = given.iter().filter(|g| same_state(g.0, most)).map(|g| &g.1).collect();
        if these.len() < wanted {
            return Err(format!("the machine changes too often: {} of {wanted} blocks in one state", these.len()));
        }
        let figures = these[0].len();
        all.push((0..figures).map(|f| median(&these.iter().map(|v| v[f]).collect::<Vec<_>>())).collect());
    }
    let hops: Vec<f64> = hops.into_iter().filter(|h| same_state(*h, most)).collect();
    Ok((median(&hops), all))
}

/// The times that have been written, or made up.
fn read(path: &Path) -> Result<Known, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e.to_string()))?;
    let known: Known = serde_json::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
    let times = serde_json::to_value(known.times).map_err(|e| wrong(&e.to_string()))?;
    let is_time = |ns: &Value| ns.as_f64().is_some_and(|ns| (0.0..1e12).contains(&ns));
    if !times.as_object().is_some_and(|all| all.values().all(is_time)) {
        return Err(wrong("the times are in ns"));
    }
    if !(1..1 << 20).contains(&known.processors) {
        return Err(wrong("no number of \"processors\""));
    }
    if !known.measured.iter().all(|(senders, ns)| *senders > 0 && *ns > 0.0) {
        return Err(wrong("\"measured\" has a number of senders for each time"));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let ns = Times { take: 150.5, send: 99.0, counter: 40.0, port: 41.0, way: 42.0, ..Times::default() };
        let times = Times { taking: 160.0, sending: 99.5, yields: 500.5, wake: 2e4, woken: 4e4, ..ns };
        let known = Known { times, processors: 2, measured: BTreeMap::from([(8, 200.0), (32, 250.0)]) };
        let path = std::env::temp_dir().join(format!("fmpl-times-{}", std::process::id()));
        std::fs::write(&path, serde_json::to_string(&known).unwrap()).unwrap();
        let back = read(&path).unwrap();
        assert_eq!((back.times, back.processors, back.measured), (times, 2, known.measured));
        std::fs::write(&path, "{\"take\": 5}").unwrap();
        assert!(read(&path).err().unwrap().contains("missing field"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn blocks_of_another_state_do_not_count() {
        let block =
            |v: f64| vec![(40.0, vec![v]), (150.0, vec![9.0 * v]), (44.0, vec![3.0 * v]), (42.0, vec![2.0 * v])];
        let given = [block(10.0), block(5.0)];
        assert_eq!(choose(&given, 3), Ok((42.0, vec![vec![20.0], vec![10.0]])));
        assert!(choose(&given, 4).unwrap_err().contains("3 of 4"));
    }
}
