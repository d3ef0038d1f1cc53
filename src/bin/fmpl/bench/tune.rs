//! `fmpl tune`: measures the crossovers of the ways that a message can take on this machine, near and far apart, and those of collective
//! calls of two ranks, and writes them into a tuning file that is found again by itself. The same messages run with every way forced,
//! interleaved; a crossover is where one way begins to beat another for good.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fmpl::base::config::Config;
use fmpl::base::processor::Processor;
use fmpl::base::system::cpus::CpuSet;
use fmpl::base::tuning::{Distance, FORMAT, Rows, Whence, find, installed_place, user_place, written};
use fmpl::launch::last_cache;

use super::against::ours;
use super::measure::{Measured, cores, measure};
use super::pingpong::{self, ECHO, SEPARATE};
use super::state::State;
use super::{Bench, Case, Options, exchange, session, size_text, stream, tune_coll, window};

/// Measure this machine's crossovers, and write them where they are found again by themselves.
#[derive(clap::Args, Debug)]
pub struct Terms {
    /// For all users of what is installed under this prefix, in place of this user
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    prefix: Option<PathBuf>,
    /// Into this file, for FMPL_TUNING; - prints it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rounds over all sizes: more on a machine that others use
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Messages up to this size only
    #[arg(long, value_name = "SIZE", value_parser = super::parse_bytes, default_value = "8M")]
    most: usize,
    /// Blocks in a round, in place of as many as the size deserves
    #[arg(long)]
    blocks: Option<usize>,
    /// Messages in a block, likewise
    #[arg(long)]
    iterations: Option<i64>,
    /// Messages only, no collective calls
    #[arg(long)]
    messages: bool,
    /// No progress line
    #[arg(long, short)]
    quiet: bool,
}

/// Blocks of a state in which a way must have been measured, of the line that has fewest.
const ENOUGH: usize = 3;

/// Lines of a section: a number's name, its value.
type Lines = BTreeMap<&'static str, String>;

/// The command.
pub fn main(terms: &Terms) -> ExitCode {
    match run(terms) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fmpl tune: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(terms: &Terms) -> Result<(), String> {
    let processor = Processor::here();
    let at = match (&terms.output, &terms.prefix) {
        (Some(path), _) => path.clone(),
        (None, Some(prefix)) => installed_place(prefix, &processor),
        (None, None) => user_place(&processor)
            .ok_or("neither XDG_CONFIG_HOME nor HOME says where this user's file goes; --output FILE")?,
    };
    let o = Options {
        rounds: terms.rounds as usize,
        blocks: terms.blocks,
        iterations: terms.iterations,
        patience: 60,
        quiet: terms.quiet,
        ..Options::default()
    };
    let allowed = cores();
    if allowed.len() < 2 {
        return Err("one core may be used; two are needed to measure what goes between cores".into());
    }
    let mut pairs: BTreeMap<&str, Lines> = BTreeMap::new();
    let (mut team, mut process) = (Lines::new(), Lines::new());
    for (n, two) in pairs_of(&allowed, last_cache).into_iter().enumerate() {
        bind_to(&two)?;
        eprintln!("fmpl tune: cores {} and {}", two[0], two[1]);
        let place = session::Scratch::new()?;
        if n == 0 {
            process.extend(switches(&o, &place.0)?);
        }
        for (distance, lines) in messages(&o, &place.0, terms.most)? {
            pairs.entry(distance.name()).or_insert(lines);
        }
        if n == 0 && !terms.messages {
            let place = session::Scratch::new()?;
            let o = Options { ranks: Some(2), sizes: sizes(1 << 12, terms.most), ..o.clone() };
            team.extend(
                tune_coll::measured(&o, &place.0)?.into_iter().map(|(key, v)| (key, written(v.unwrap_or(usize::MAX)))),
            );
        }
    }
    let text = file(&processor, &process, &pairs, &team);
    Rows::read(&text).map_err(|e| format!("what was measured makes no tuning file ({e}):\n{text}"))?;
    publish(&at, &text)?;
    for d in Distance::ALL.iter().filter(|d| !pairs.contains_key(d.name())) {
        println!("Cores that are {} were not met: for these what is built in goes on to hold.", name_of(*d));
    }
    if terms.output.is_none() && at != Path::new("-") {
        tell(&at, &processor);
    }
    Ok(())
}

fn name_of(d: Distance) -> &'static str {
    match d {
        Distance::Shared => "near (with a common cache)",
        Distance::Apart => "far (without one)",
    }
}

/// Will it be found?
fn tell(at: &Path, processor: &Processor) {
    let config = Config::from_environment().unwrap_or_default();
    match find(&config, processor).map(|f| f.whence) {
        Ok(Whence::File(found)) if found == at => println!("It holds from now on; fmpl info shows it."),
        Ok(Whence::File(found)) => println!("{} comes before it here.", found.display()),
        _ => println!("Programs with a library under that prefix find it."),
    }
}

/// Two cores that have a cache in common, and two that have none, as far as the machine has such and says so.
fn pairs_of(allowed: &[usize], last_cache: impl Fn(usize) -> Vec<usize>) -> Vec<[usize; 2]> {
    let first = allowed[0];
    let cache = last_cache(first);
    let near = allowed[1..].iter().find(|c| cache.contains(c));
    let far = allowed[1..].iter().find(|c| !cache.is_empty() && !cache.contains(c));
    let some = [near, far].into_iter().flatten().map(|c| [first, *c]).collect::<Vec<_>>();
    if some.is_empty() { vec![[first, allowed[1]]] } else { some }
}

/// This process, and those that it starts, run on these cores from now on.
fn bind_to(cpus: &[usize]) -> Result<(), String> {
    CpuSet::of_cpus(cpus.iter().copied()).apply().map_err(|e| format!("cannot run on the cores {cpus:?}: {e}"))
}

/// The crossovers of messages between the two ranks, for each distance at which they were.
fn messages(o: &Options, place: &Path, most: usize) -> Result<Vec<(Distance, Lines)>, String> {
    let all = sizes(2 << 10, most);
    let short: Vec<usize> = all.iter().copied().filter(|n| *n <= 256 << 10).collect();
    let ring: Vec<usize> = all.iter().copied().filter(|n| (4096..=65_536).contains(n)).collect();
    let long: Vec<usize> = all.iter().copied().filter(|n| *n >= 256 << 10).collect();
    let way = |w: &str| vec![("FMPL_SHM_PATH", w.to_string())];
    let ways = compare(o, place, "way", &both(o, &all), &["ring", "cma", "coop"].map(|w| (w.into(), way(w))))?;
    let turns = [("none", "0"), ("all", "16M")].map(|(n, v)| (n.to_string(), vec![("FMPL_TURN_MAX", v.to_string())]));
    let turn = compare(o, place, "in turn", &both(o, &all), &turns)?;
    // Up to the number of the file such messages go by the spool.
    let both_ways = |key| {
        let [spool, kernel] =
            [("4M", "by the spool"), ("0", "by the kernel")].map(|(v, name)| by_file(place, key, v, name));
        Ok::<_, String>([spool?, kernel?])
    };
    let unawaited = compare(o, place, "window", &windows(o, &short), &both_ways("unawaited_isend")?)?;
    // Half of the spool is for what is on its way when nobody waits.
    let crossing: Vec<usize> = all.iter().copied().filter(|n| (16 << 10..=4 << 20).contains(n)).collect();
    let exchange =
        compare(o, place, "exchange", &cases(&exchange::BENCH, o, &crossing), &both_ways("unawaited_exchange")?)?;
    let chunk = best_of(o, place, &ring, "ring", "FMPL_RING_CHUNK", &[1024, 2048, 4096, 8192, 16_384])?;
    let piece =
        best_of(o, place, &long, "coop", "FMPL_COOP_PIECE", &[64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20])?;
    let mut found = Vec::new();
    for (state, distance) in [(State::Near, Distance::Shared), (State::Far, Distance::Apart)] {
        let Some(t) = ways.times(state) else { continue };
        let mut lines = Lines::new();
        // The size below a crossover is the last of the first way, the size at it the first of the second.
        let up_to = |sizes: &[usize], c: usize| {
            written(if c == sizes.len() { usize::MAX } else { c.checked_sub(1).map_or(0, |n| sizes[n]) })
        };
        let from = |sizes: &[usize], c: usize| written(sizes.get(c).map_or(usize::MAX, |n| *n));
        let rest: Vec<f64> = t[1].iter().zip(&t[2]).map(|(a, b)| a.min(*b)).collect();
        lines.insert("ring_max", up_to(&all, crossover(&t[0], &rest)));
        lines.insert("coop_min", from(&all, crossover(&t[1], &t[2])));
        if let Some(t) = turn.times(state) {
            let last = crossover(&t[1], &t[0]);
            lines.insert("turn_max", if last == all.len() { "9M".into() } else { up_to(&all, last) });
        }
        if let Some(t) = unawaited.times(state) {
            let last = crossover(&t[0], &t[1]);
            // As far as was measured, and no further: the spool is not for what is long.
            lines.insert("unawaited_isend", written(last.checked_sub(1).map_or(0, |n| short[n])));
        }
        if let Some(t) = exchange.times(state) {
            let last = crossover(&t[0], &t[1]);
            lines.insert("unawaited_exchange", written(last.checked_sub(1).map_or(0, |n| crossing[n])));
        }
        for (name, best) in [("ring_chunk", &chunk), ("coop_piece", &piece)] {
            if let Some(v) = best.iter().find(|b| b.0 == state) {
                lines.insert(name, written(v.1));
            }
        }
        found.push((distance, lines));
    }
    if found.is_empty() {
        return Err(format!("no state of the machine lasted for {ENOUGH} blocks of every line; more --rounds"));
    }
    Ok(found)
}

/// A variant in which one number is another, by a file that says so.
fn by_file(place: &Path, key: &str, value: &str, name: &str) -> Result<Variant, String> {
    let path = place.join(format!("{key}-{value}.tuning"));
    std::fs::write(&path, format!("{FORMAT}\n[any]\n{key} = {value}\n"))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((name.to_string(), vec![("FMPL_TUNING", path.display().to_string())]))
}

/// What holds for a process: do readers take lines over, by windows of messages of some KiB, through memory that is written again and again;
/// is the clock's counter read between two looks, and are all acknowledged by the answer, by short messages in turn; does a copy ask ahead for
/// the lines that it writes, by streams and windows. Without a number for which no state lasted long enough.
fn switches(o: &Options, place: &Path) -> Result<Lines, String> {
    let windows = windows(o, &[4 << 10, 8 << 10, 16 << 10, 64 << 10]);
    let turns = both(o, &[8, 64, 512, 1 << 10]);
    let one_way = windows.iter().cloned().chain(cases(&stream::BENCH, o, &[1 << 10, 4 << 10])).collect();
    let switch = |setting| ["on", "off"].map(|v| Ok((v.to_string(), vec![(setting, v.to_string())])));
    let ahead = ["1k", "0"].map(|v| by_file(place, "ahead", v, v));
    let mut lines = Lines::new();
    for (name, variants, cases) in [
        ("take_over", switch("FMPL_TAKE_OVER"), windows),
        ("look_by_clock", switch("FMPL_LOOK_BY_CLOCK"), turns.clone()),
        ("owe_all", switch("FMPL_OWE_ALL"), turns),
        ("ahead", ahead, one_way),
    ] {
        let [first, second] = variants;
        let variants = [first?, second?];
        let c = compare(o, place, &name.replace('_', " "), &cases, &variants)?;
        // A process has one answer for all its peers: what is won in one state counts as much as what is lost in the other.
        let cost = |w: usize| c.by_state.iter().flat_map(|(_, times)| &times[w]).map(|t| t.ln()).sum::<f64>();
        if !c.by_state.is_empty() {
            lines.insert(name, variants[(cost(0) > cost(1)) as usize].0.clone());
        }
    }
    Ok(lines)
}

/// Powers of two.
fn sizes(least: usize, most: usize) -> Vec<usize> {
    (0..40).map(|b| 1usize << b).filter(|n| (least..=most.max(64 << 10)).contains(n)).collect()
}

/// From one buffer into another, and echoed: programs have both.
fn both(o: &Options, sizes: &[usize]) -> Vec<Vec<(&'static Bench, Case)>> {
    let case = |n: usize, mode| (&pingpong::BENCH, pingpong::case(o, n, mode, 0));
    sizes.iter().map(|n| vec![case(*n, SEPARATE), case(*n, ECHO)]).collect()
}

fn windows(o: &Options, sizes: &[usize]) -> Vec<Vec<(&'static Bench, Case)>> {
    cases(&window::BENCH, o, sizes)
}

fn cases(bench: &'static Bench, o: &Options, sizes: &[usize]) -> Vec<Vec<(&'static Bench, Case)>> {
    let o = Options { sizes: sizes.to_vec(), ..o.clone() };
    (bench.plan)(&o).into_iter().map(|case| vec![(bench, case)]).collect()
}

/// Where to change from the first way to the second: the place that makes the product of all times least, so that one noisy size
/// does not decide. The number of sizes: the second never pays.
pub fn crossover(first: &[f64], second: &[f64]) -> usize {
    let cost = |cut: usize| -> f64 {
        let (a, b) = (&first[..cut], &second[cut..]);
        a.iter().chain(b).map(|t| t.ln()).sum()
    };
    (0..=first.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(first.len())
}

/// The times of some variants, by state: `[variant][size]`, in µs.
struct Compared {
    by_state: Vec<(State, Vec<Vec<f64>>)>,
}

impl Compared {
    fn times(&self, state: State) -> Option<&Vec<Vec<f64>>> {
        self.by_state.iter().find(|t| t.0 == state).map(|t| &t.1)
    }
}

type Variant = (String, Vec<(&'static str, String)>);

/// Measures the lines of each size with each variant; of several lines the geometric mean counts, so that a factor gained in one weighs as
/// much as one lost in the other.
fn compare(
    o: &Options,
    place: &Path,
    what: &str,
    lines: &[Vec<(&'static Bench, Case)>],
    variants: &[Variant],
) -> Result<Compared, String> {
    if lines.is_empty() {
        return Ok(Compared { by_state: vec![] });
    }
    let with_own = |(name, settings): &Variant| {
        // Whatever file was found before says nothing here.
        let mut all = vec![("FMPL_TUNING", "built-in".to_string())];
        all.extend(settings.iter().cloned());
        ours(&format!("{what} {name}"), &all)
    };
    let contestants: Vec<_> = variants.iter().map(with_own).collect();
    let bench = lines[0][0].0;
    let cases = lines.iter().flatten().map(|l| l.1.clone()).collect();
    let m = measure(vec![(bench, cases)], &contestants, o, place)?.remove(0);
    if m.names.len() != contestants.len() {
        return Err(format!("not every variant of {what} could be measured"));
    }
    let mut by_state = Vec::new();
    for state in [State::Near, State::Far] {
        let least = m.cases.iter().flat_map(|c| (0..m.names.len()).map(|w| c.count(w, Some(state)))).min();
        if least.unwrap_or(0) < ENOUGH {
            continue;
        }
        let mean = |w: usize, cases: &[super::measure::CaseResult]| {
            let log: f64 = cases.iter().map(|c| c.summary(w, 0, &m.figures[0], Some(state)).1.ln()).sum();
            (log / cases.len() as f64).exp()
        };
        let each = lines[0].len();
        let times: Vec<Vec<f64>> =
            (0..m.names.len()).map(|w| m.cases.chunks(each).map(|cases| mean(w, cases)).collect()).collect();
        print(&m, state, each, &times);
        by_state.push((state, times));
    }
    Ok(Compared { by_state })
}

fn print(m: &Measured, state: State, each: usize, times: &[Vec<f64>]) {
    eprintln!("\n{:<10} {}", format!("us, {state}"), m.names.iter().map(|n| format!("{n:>16}")).collect::<String>());
    for (n, cases) in m.cases.chunks(each).enumerate() {
        let size = cases[0].case.bytes.map_or_else(|| cases[0].case.label.clone(), size_text);
        eprintln!("{size:<10} {}", times.iter().map(|t| format!("{:>16.2}", t[n])).collect::<String>());
    }
}

/// The value of a setting with the least product of times over the sizes, for each state.
fn best_of(
    o: &Options,
    place: &Path,
    sizes: &[usize],
    way: &str,
    setting: &'static str,
    values: &[usize],
) -> Result<Vec<(State, usize)>, String> {
    let variant = |v: &usize| (size_text(*v), vec![("FMPL_SHM_PATH", way.to_string()), (setting, v.to_string())]);
    let c = compare(o, place, way, &both(o, sizes), &values.iter().map(variant).collect::<Vec<_>>())?;
    let product = |t: &[f64]| t.iter().map(|t| t.ln()).sum::<f64>();
    let best = |(state, times): &(State, Vec<Vec<f64>>)| {
        let least = (0..values.len()).min_by(|a, b| product(&times[*a]).total_cmp(&product(&times[*b])));
        least.map(|w| (*state, values[w]))
    };
    Ok(c.by_state.iter().filter_map(best).collect())
}

/// The file's text.
fn file(processor: &Processor, process: &Lines, pairs: &BTreeMap<&str, Lines>, team: &Lines) -> String {
    let Processor { vendor, family, model } = processor;
    let version = env!("CARGO_PKG_VERSION");
    let mut text =
        format!("{FORMAT}\n# Measured by fmpl tune of FMPL {version}. docs/tuning.md says what the numbers mean.\n");
    let mut section = |more: &str, lines: &Lines| {
        let _ = writeln!(text, "\n[vendor {vendor}, family {family}, model {model}{more}]");
        for (name, value) in lines {
            let _ = writeln!(text, "{name} = {value}");
        }
    };
    if !process.is_empty() {
        section("", process);
    }
    for (distance, lines) in pairs {
        section(&format!(", distance {distance}, crowded off"), lines);
    }
    if !team.is_empty() {
        section(", members 2, crowded off", team);
    }
    text
}

/// Writes it in one piece: who starts meanwhile finds the old file or the new one.
fn publish(at: &Path, text: &str) -> Result<(), String> {
    if at == Path::new("-") {
        print!("{text}");
        return Ok(());
    }
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", at.display());
    if let Some(parent) = at.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let beside = at.with_extension(format!("new-{}", std::process::id()));
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, at)).map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        failed(e)
    })?;
    println!("{} is written:\n\n{text}", at.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_noisy_size_does_not_move_the_crossover() {
        let slow_start = [9.0, 9.0, 9.0, 9.0, 9.5, 9.0];
        let fast_start = [1.0, 2.0, 4.0, 16.0, 9.4, 64.0];
        assert_eq!(crossover(&fast_start, &slow_start), 3);
        assert_eq!(crossover(&[1.0, 1.0], &[2.0, 2.0]), 2);
        assert_eq!(crossover(&[2.0, 2.0], &[1.0, 1.0]), 0);
    }

    #[test]
    fn cores_are_taken_from_both_sides_of_a_cache() {
        let caches = |c: usize| (c / 4 * 4..c / 4 * 4 + 4).collect::<Vec<_>>();
        assert_eq!(pairs_of(&[0, 1, 2, 3, 4, 5], caches), [[0, 1], [0, 4]]);
        assert_eq!(pairs_of(&[2, 6, 7], caches), [[2, 6]]);
        assert_eq!(pairs_of(&[0, 3], caches), [[0, 3]]);
        assert_eq!(pairs_of(&[5, 9], |_| vec![]), [[5, 9]]);
    }

    /// What is written is a tuning file, for this processor.
    #[test]
    fn a_file_is_read_back() {
        let processor = Processor { vendor: "AuthenticAMD".into(), family: 25, model: 1 };
        let lines = |n: &str| Lines::from([("ring_max", n.to_string()), ("coop_min", "never".to_string())]);
        let pairs = BTreeMap::from([("shared", lines("64k")), ("apart", lines("0"))]);
        let team = Lines::from([("coll_bcast_pull", "never".to_string())]);
        let process = Lines::from([("take_over", "on".to_string())]);
        let rows = Rows::read(&file(&processor, &process, &pairs, &team)).unwrap();
        assert!(rows.knows(&processor) && !rows.knows(&Processor { model: 2, ..processor.clone() }));
        let of = |distance| {
            rows.at(&fmpl::base::tuning::Case {
                processor: &processor,
                distance,
                members: 2,
                crowded: false,
                take_over: false,
                network: "",
            })
        };
        assert_eq!((of(Distance::Shared).ring_max, of(Distance::Apart).ring_max), (64 << 10, 0));
        assert_eq!(of(Distance::Apart).coll_bcast_pull, usize::MAX);
    }
}
