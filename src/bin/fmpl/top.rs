//! `fmpl top`: what the ranks of a running job do: for whom they wait, how many messages and bytes they move a second, by which way.
//!
//! The ranks know nothing of it: their notice boards and counts are read from without ([`Watched`]), a few microseconds for each rank and look.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use fmpl::base::clock::now_ns;
use fmpl::base::system::ticks as ticks_of_second;
use fmpl::wait::Waits;
use fmpl::{Traffic, Watched, WayTaken};
use serde_json::{Value, json};

/// The options of `fmpl top`.
#[derive(Args)]
pub struct Options {
    /// The process of a rank, or the one that started them all (fmpl run, mpirun, slurmstepd); without it the only job that
    /// runs here
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Seconds from one look to the next; more where a look takes longer than a 200th of them
    #[arg(short = 'd', long, default_value_t = 2.0, value_parser = seconds)]
    delay: f64,
    /// End after so many looks; without it, when the job ends
    #[arg(short = 'n', long, value_name = "LOOKS")]
    number: Option<u64>,
    /// A line of JSON for each look, for programs
    #[arg(long)]
    json: bool,
}

/// A look takes no more than this share of the time from one to the next.
const SHARE: u32 = 200;

fn seconds(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text} is no number of seconds from 0.05 on");
    text.parse().ok().filter(|s: &f64| *s >= 0.05 && *s <= 1e6).ok_or_else(wrong)
}

/// Shows the job until it ends.
pub fn top(options: &Options) -> ExitCode {
    match watch(options) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has read enough.
        Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Trouble::Output(error)) => failed(&error.to_string()),
        Err(Trouble::Job(text)) => failed(&text),
    }
}

fn failed(text: &str) -> ExitCode {
    eprintln!("fmpl top: {text}");
    ExitCode::FAILURE
}

enum Trouble {
    Job(String),
    Output(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Output(error)
    }
}

fn watch(options: &Options) -> Result<(), Trouble> {
    let mut ranks = job(options.pid).map_err(Trouble::Job)?;
    let mut before: BTreeMap<u32, Seen> = ranks.iter().filter_map(|r| Some((r.rank(), look(r)?))).collect();
    let (mut looks, out) = (0, io::stdout());
    // The first look comes soon: it is the second that has rates.
    let mut pause = Duration::from_secs_f64(options.delay.min(0.5));
    while options.number.is_none_or(|n| looks < n) {
        std::thread::sleep(pause);
        let since = Instant::now();
        let now: BTreeMap<u32, Seen> = ranks.iter().filter_map(|r| Some((r.rank(), look(r)?))).collect();
        if now.is_empty() {
            break;
        }
        let rows: Vec<Row> = now.iter().map(|(rank, seen)| Row::of(*rank, seen, before.get(rank))).collect();
        let mut out = out.lock();
        if options.json {
            writeln!(out, "{}", json!({ "ranks": rows.iter().map(Row::value).collect::<Vec<_>>() }))?;
        } else {
            // In a terminal each look takes the place of the one before.
            let clear = if out.is_terminal() { "\x1b[H\x1b[2J\x1b[3J" } else { "" };
            write!(out, "{clear}{}", table(&rows, ranks.first().map_or(0, Watched::size)))?;
        }
        out.flush()?;
        (before, looks) = (now, looks + 1);
        pause = Duration::from_secs_f64(options.delay).max(since.elapsed() * SHARE);
        // Ranks that were not in the job yet.
        if let Some(first) = ranks.first().filter(|r| (ranks.len() as u32) < r.size()) {
            ranks = job(options.pid.or(Some(first.pid()))).unwrap_or(ranks);
        }
    }
    Ok(())
}

/// What is known of a process: its parent, and its time on processors.
struct Process {
    parent: u32,
    ticks: u64,
}

fn process(pid: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have anything in it (proc_pid_stat(5)): state, parent, …, user and system time as fields 14 and 15.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(Process { parent: number(4)? as u32, ticks: number(14)? + number(15)? })
}

/// The ranks of a job on this node, in order.
fn job(pid: Option<u32>) -> Result<Vec<Watched>, String> {
    let all: BTreeMap<u32, Process> = fs::read_dir("/proc")
        .map_err(|e| format!("/proc: {e}"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, process(pid)?)))
        .collect();
    let below = |top: u32| {
        let is_below = |pid: &u32| {
            let up = |pid: &u32| all.get(pid).map(|process| process.parent);
            std::iter::successors(Some(*pid), up).take(64).any(|pid| pid == top)
        };
        all.keys().copied().filter(is_below).collect::<Vec<_>>()
    };
    let Some(pid) = pid else { return only(&all) };
    let gone = || format!("there is no process {pid}");
    let parent = all.get(&pid).ok_or_else(gone)?.parent;
    match Watched::find(pid) {
        Err(error) => return Err(format!("process {pid}: {error}")),
        Ok(Some(one)) if one.size() > 1 => return Ok(ordered(below(parent).into_iter().filter_map(found).collect())),
        Ok(Some(one)) => return Ok(vec![one]),
        Ok(None) => {}
    }
    let ranks = ordered(below(pid).into_iter().filter_map(found).collect());
    let none =
        || format!("process {pid} is no rank of a job, and none was started by it (on this machine, by this user)");
    if ranks.is_empty() { Err(none()) } else { Ok(ranks) }
}

fn found(pid: u32) -> Option<Watched> {
    Watched::find(pid).ok().flatten()
}

fn ordered(mut ranks: Vec<Watched>) -> Vec<Watched> {
    ranks.sort_by_key(Watched::rank);
    ranks
}

/// The only job that runs here: ranks with one parent are one.
fn only(all: &BTreeMap<u32, Process>) -> Result<Vec<Watched>, String> {
    let mut jobs: BTreeMap<u32, Vec<Watched>> = BTreeMap::new();
    for (pid, process) in all {
        if let Some(rank) = found(*pid) {
            jobs.entry(process.parent).or_default().push(rank);
        }
    }
    if jobs.len() > 1 {
        let one = |(parent, ranks): (&u32, &Vec<Watched>)| format!("\n  fmpl top {parent}   {} ranks", ranks.len());
        return Err(format!("several jobs run here:{}", jobs.iter().map(one).collect::<String>()));
    }
    let none = || "no job runs here that this user may look at".to_owned();
    jobs.into_values().next().map(ordered).ok_or_else(none)
}

/// One look at a rank.
struct Seen {
    pid: u32,
    at: Instant,
    at_ns: u64,
    takes_part: bool,
    ticks: u64,
    waits: Vec<Waits>,
    traffic: Result<Traffic, String>,
}

/// `None`: it has left, or its process has ended.
fn look(rank: &Watched) -> Option<Seen> {
    let takes_part = rank.takes_part()?;
    let ticks = process(rank.pid())?.ticks;
    let traffic = rank.traffic().map_err(|error| error.to_string());
    let waits = rank.waits();
    Some(Seen { pid: rank.pid(), at: Instant::now(), at_ns: now_ns(), takes_part, ticks, waits, traffic })
}

/// What a look comes to beside the one before.
struct Row {
    rank: u32,
    pid: u32,
    takes_part: bool,
    /// Of one core.
    processor: f64,
    /// Messages and bytes sent a second by way, and received ones.
    rates: Result<([[f64; 2]; WAYS], f64), String>,
    totals: Option<Traffic>,
    /// What it has waited in for longest, and for how long.
    wait: Option<(Waits, Duration)>,
}

const WAYS: usize = WayTaken::ALL.len();

impl Row {
    fn of(rank: u32, seen: &Seen, before: Option<&Seen>) -> Row {
        let before = before.filter(|b| b.pid == seen.pid);
        let passed = before.map_or(f64::INFINITY, |b| (seen.at - b.at).as_secs_f64());
        let ticks = before.map_or(0, |b| seen.ticks.saturating_sub(b.ticks));
        let rates = seen.traffic.clone().map(|now| {
            let then = before.and_then(|b| b.traffic.clone().ok()).unwrap_or(now);
            let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed;
            let of_way = |w: usize| [0, 1].map(|k| rate(now.taken[w][k], then.taken[w][k]));
            (std::array::from_fn(of_way), rate(now.received, then.received))
        });
        let longest = seen.waits.iter().min_by_key(|w| w.since_ns);
        let wait = longest.map(|w| (*w, Duration::from_nanos(seen.at_ns.saturating_sub(w.since_ns))));
        let (pid, takes_part, totals) = (seen.pid, seen.takes_part, seen.traffic.clone().ok());
        Row { rank, pid, takes_part, processor: ticks as f64 / ticks_of_second() as f64 / passed, rates, totals, wait }
    }

    fn sent(&self) -> [f64; 2] {
        let ways = self.rates.as_ref().map_or([[0.0; 2]; WAYS], |rates| rates.0);
        ways.iter().fold([0.0; 2], |sum, way| [sum[0] + way[0], sum[1] + way[1]])
    }

    fn received(&self) -> f64 {
        self.rates.as_ref().map_or(0.0, |rates| rates.1)
    }

    fn value(&self) -> Value {
        let ways = |f: &dyn Fn(usize) -> Value| -> Value {
            WayTaken::ALL.iter().enumerate().map(|(w, (_, name))| ((*name).to_owned(), f(w))).collect()
        };
        let rates = self
            .rates
            .as_ref()
            .ok()
            .map(|(rates, received)| json!({ "received": received, "ways": ways(&|w| json!(rates[w])) }));
        let totals = self.totals.map(|t| json!({ "received": t.received, "ways": ways(&|w| json!(t.taken[w])) }));
        let wait = self.wait.map(|(w, lasts)| {
            json!({ "in": w.operation.name(), "peer": w.peer, "index": w.index, "comm": w.comm, "bytes": w.bytes,
                    "seconds": lasts.as_secs_f64() })
        });
        json!({ "rank": self.rank, "pid": self.pid, "takes_part": self.takes_part, "processor": self.processor,
                "per_second": rates, "totals": totals, "waits": wait, "unread": self.rates.as_ref().err() })
    }

    /// By which ways its messages go, the most used first.
    fn ways(&self) -> String {
        let Ok((rates, _)) = &self.rates else { return String::new() };
        let all = self.sent()[0];
        let mut used: Vec<(f64, &str)> = rates
            .iter()
            .zip(WayTaken::ALL)
            .filter(|(r, _)| r[0] > 0.0)
            .map(|(r, (_, name))| (r[0] / all, name))
            .collect();
        used.sort_by(|a, b| b.0.total_cmp(&a.0));
        used.iter().take(3).map(|(share, name)| format!("{name} {:.0}%", share * 100.0)).collect::<Vec<_>>().join(" ")
    }

    fn state(&self) -> String {
        match (&self.rates, &self.wait) {
            (Err(error), _) => format!("its memory cannot be read ({error})"),
            _ if !self.takes_part => "in init".into(),
            (_, None) => String::new(),
            (_, Some((w, lasts))) => {
                let name = w.operation.name();
                let whom = match name {
                    "send" | "recv" | "waitany" | "send_any" => format!(" {}, index {}", w.peer, w.index),
                    "recv_any" => format!(", index {}", w.index),
                    "barrier" | "finalize" => String::new(),
                    _ => format!(" {}", w.peer),
                };
                let comm = if w.comm == 0 { String::new() } else { format!(", communicator {}", w.comm) };
                format!("{name}{whom}{comm}: {:.1} s", lasts.as_secs_f64())
            }
        }
    }
}

/// A row for each rank, and the sums.
fn table(rows: &[Row], size: u32) -> String {
    let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).sum::<f64>();
    let waiting = rows.iter().filter(|r| r.wait.is_some()).count();
    let mut text = format!(
        "{} of {size} ranks here, {waiting} waiting; sent {} messages/s, {}B/s; received {} messages/s\n",
        rows.len(),
        short(sum(&|r| r.sent()[0])),
        short(sum(&|r| r.sent()[1])),
        short(sum(&Row::received)),
    );
    text += &format!(
        "{:>6} {:>8} {:>5} {:>8} {:>9} {:>10}  {:<28} {}\n",
        "rank", "pid", "cpu", "sent/s", "bytes/s", "received/s", "by way", "waits in (for whom, how long)"
    );
    for row in rows {
        let [messages, bytes] = row.sent().map(short);
        let line = format!(
            "{:>6} {:>8} {:>4.0}% {messages:>8} {:>9} {:>10}  {:<28} {}",
            row.rank,
            row.pid,
            row.processor * 100.0,
            format!("{bytes}B"),
            short(row.received()),
            row.ways(),
            row.state()
        );
        text += &format!("{}\n", line.trim_end());
    }
    text
}

/// A number in at most six characters, with a space or the letter of its thousands.
fn short(number: f64) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match scales.iter().find(|(scale, _)| number >= *scale) {
        Some((scale, letter)) if number / scale >= 100.0 => format!("{:.0} {letter}", number / scale),
        Some((scale, letter)) => format!("{:.1} {letter}", number / scale),
        None => format!("{number:.0} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fmpl::wait::Operation;

    #[test]
    fn a_row_says_how_fast_and_for_whom() {
        let start = Instant::now();
        let mut then = Traffic::default();
        (then.taken[WayTaken::Short as usize], then.received) = ([1000, 8000], 10);
        let mut now = then;
        (now.taken[WayTaken::Short as usize], now.taken[WayTaken::Ring as usize], now.received) =
            ([4000, 32_000], [1000, 9_000_000], 2010);
        let w = Waits { operation: Operation::Recv, peer: 3, index: 7, comm: 0, bytes: 0, since_ns: 1_000_000_000 };
        let seen =
            |at, at_ns, ticks, traffic, waits| Seen { pid: 5, at, at_ns, takes_part: true, ticks, waits, traffic };
        let before = seen(start, 0, 100, Ok(then), vec![]);
        let after = seen(
            start + Duration::from_secs(2),
            3_500_000_000,
            100 + 3 * ticks_of_second() as u64 / 2,
            Ok(now),
            vec![w],
        );
        let row = Row::of(1, &after, Some(&before));
        assert_eq!((row.sent(), row.received(), row.processor), ([2000.0, 4_512_000.0], 1000.0, 0.75));
        let text = table(&[row], 4);
        assert!(text.starts_with("1 of 4 ranks here, 1 waiting; sent 2.0 k messages/s, 4.5 MB/s"), "{text}");
        assert!(text.contains("75%") && text.contains("short 75% ring 25%"), "{text}");
        assert!(text.trim_end().ends_with("recv 3, index 7: 2.5 s"), "{text}");
        // The first look has no rates; and memory that cannot be read is told.
        assert_eq!(Row::of(1, &after, None).sent(), [0.0; 2]);
        let closed = seen(start, 0, 0, Err("no".into()), vec![]);
        assert!(Row::of(1, &closed, None).state().contains("cannot be read (no)"));
    }
}
