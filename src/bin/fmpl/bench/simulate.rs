//! `fmpl bench incast --simulate`: what spreading a receiver's counter buys, with up to a million senders.
//!
//! The times of the model ([`stations`]) are measured first: a message put into a ring with room, a message taken out, a counter's hop. Then
//! the model is to say what 8, 16 and 32 senders cost on this machine, and is compared with them, measured in the same run. Only if it
//! is right within [`SLACK`] does it go on to more senders than can be measured.
//!
//! On a machine with fewer cores than ranks there is one time more: what it costs the receiver that senders want its core. That is taken
//! from 4 senders.

mod stations;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::hop::Hop;
use super::measure::{cores, measure, median};
use super::rank::{Outcome, Rank, now};
use super::{Bench, Case, Figure, Options, against, incast, plot};
use stations::{Place, Scene, Times, play};

/// How far the model may be from what was measured.
const SLACK: f64 = 0.20;
/// Slots of a ring, as `FMPL_ANY_SLOTS` has it unless set.
const SLOTS: usize = 512;
/// Messages that are put into an empty ring.
const FILL: i64 = 256;
/// From which the crowd's time is taken; which the model is tried on.
const CROWD: usize = 4;
const TRIED: [usize; 3] = [8, 16, 32];
const SENDERS: [usize; 9] = [16, 64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1_000_000];
const SHARES: [usize; 4] = [1, 4, 16, 64];
const PLACES: [(Place, &str); 3] =
    [(Place::Memory, "receiver's memory"), (Place::Port, "receiver's port"), (Place::Nodes, "other nodes")];

static BENCH: Bench = Bench {
    name: "fill",
    about: "",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("sent", "ns", 1.0), Figure::time("taken", "ns", 1.0)],
    plan: |o| {
        let n = o.sizes.first().copied().unwrap_or(1024);
        vec![Case::sized(n, format!("fill {n} {FILL}")).blocks(9)]
    },
};

/// `fill SIZE K`: a message sent into a ring with room, and a message taken that is there.
pub fn block(r: &mut Rank, a: &[i64]) -> Outcome {
    let n = a[0] as usize;
    r.need(n.max(8));
    let mut each = [0.0; 2];
    if r.rank == 1 {
        r.barrier()?;
        let t0 = now();
        for _ in 0..a[1] {
            r.send_any(r.sb.at(0), n, 0, 0)?;
        }
        each[0] = (now() - t0) / a[1] as f64;
        r.barrier()?;
        r.send_figures(&each[..1], 0)?;
        return Ok(vec![]);
    }
    r.barrier()?;
    r.barrier()?;
    let t0 = now();
    for _ in 0..a[1] {
        r.recv_any(r.rb.at(0), n, 0)?;
    }
    each[1] = (now() - t0) / a[1] as f64;
    r.recv_figures(&mut each[..1], 1, 0)?;
    Ok(each.to_vec())
}

/// What the model goes by.
struct Known {
    times: Times,
    /// Processors of the machine on which `measured` was.
    processors: usize,
    /// What it costs the receiver, for each message, that ranks share them.
    crowd: f64,
    /// Senders, and ns from one message to the next, as measured.
    measured: Vec<(usize, f64)>,
}

/// Senders and a receiver on one machine: the receiver has a processor to itself, if there are two.
fn here(senders: usize, processors: usize) -> Scene {
    Scene { senders, slots: SLOTS, shares: 1, place: Place::Node(processors.saturating_sub(1).max(1)) }
}

/// The command.
pub fn main(o: &Options, place: &Path) -> Result<(), String> {
    let known = match &o.times {
        Some(path) => read(path)?,
        None => measured(o, place)?,
    };
    let t = known.times;
    println!("times, ns");
    for (value, what) in [
        (t.take, "a message taken that is there"),
        (t.send, "a message sent that there is room for"),
        (t.counter, "a ticket, or a look at a counter that others use: the raw hop"),
        (t.way, "a way to the counter or the slot: the raw hop"),
        (t.port, "a request that comes to a node: the raw hop"),
        (known.crowd, "more for each message, where ranks share cores: from 4 senders"),
    ] {
        println!("  {value:>8.1}  {what}");
    }
    println!("\nthe model beside what was measured, ns from one message to the next");
    let mut wrong = Vec::new();
    for (senders, measured) in &known.measured {
        let said = play(here(*senders, known.processors), t).each + known.crowd;
        println!("  {senders:>4} senders {said:>8.0} {measured:>8.0}   {:>+4.0} %", (said / measured - 1.0) * 100.0);
        if (said / measured - 1.0).abs() > SLACK {
            wrong.push(senders.to_string());
        }
    }
    if let Some(path) = &o.json {
        let text = serde_json::to_string_pretty(&written(&known)).map_err(|e| e.to_string())?;
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
    let scene = |n: usize| {
        let (senders, shares) = (SENDERS[n % SENDERS.len()], SHARES[n / SENDERS.len() % SHARES.len()]);
        Scene { senders, slots: SLOTS, shares, place: PLACES[n / SENDERS.len() / SHARES.len()].0 }
    };
    let count = SENDERS.len() * SHARES.len() * PLACES.len();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![(0.0, 0.0); count]));
    std::thread::scope(|s| {
        for _ in 0..cores().len() {
            s.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        break;
                    }
                    let outcome = play(scene(n), times);
                    done.lock().unwrap_or_else(|e| e.into_inner())[n] = (outcome.each, outcome.looks);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    println!(
        "\nns from one message to the next, when each sender has a processor of its own (looks at a counter for each message)"
    );
    print!("  {:<26}", "senders");
    SENDERS.iter().for_each(|n| print!("{n:>16}"));
    println!();
    let mut lines = Vec::new();
    for (row, all) in done.chunks(SENDERS.len()).enumerate() {
        let (place, shares) = (PLACES[row / SHARES.len()].1, SHARES[row % SHARES.len()]);
        print!("  {:<26}", format!("{place}, {shares}"));
        all.iter().for_each(|(each, looks)| print!("{:>16}", format!("{each:.0} ({looks:.1})")));
        println!();
        let points = SENDERS.iter().zip(all).map(|(n, (each, _))| (*n as f64, *each)).collect();
        lines.push((format!("{shares} in {place}"), points));
    }
    match &o.svg {
        Some(path) => plot::counts("incast: what shares of the counter buy", path, &lines, "ns a message"),
        None => Ok(()),
    }
}

/// The times of this machine, and what it takes of 4 to 32 senders.
fn measured(o: &Options, place: &Path) -> Result<Known, String> {
    let one = |bench: &Bench, o: &Options, figures: usize| -> Result<Vec<f64>, String> {
        let m = measure(bench, (bench.plan)(o), &[against::ours("fmpl", &[])], o, place)?;
        Ok((0..figures).map(|n| median(&m.cases[0].values(0, n))).collect())
    };
    let mut hop = Hop::start(place, false)?;
    let mut hops = Vec::new();
    let (mut sends, mut takes) = (Vec::new(), Vec::new());
    let all: Vec<usize> = std::iter::once(CROWD).chain(TRIED).collect();
    let mut drains = vec![Vec::new(); all.len()];
    // In turn, since the machine changes.
    for _ in 0..o.rounds {
        hops.extend(hop.measure()?);
        let small = Options { rounds: 1, ranks: None, ..o.clone() };
        let figures = one(&BENCH, &small, 2)?;
        sends.push(figures[0]);
        takes.push(figures[1]);
        for (senders, drains) in all.iter().zip(&mut drains) {
            let o = Options { rounds: 1, ranks: Some(senders + 1), blocks: Some(o.blocks.unwrap_or(11)), ..o.clone() };
            drains.push(one(&incast::SOON, &o, 1)?[0]);
        }
    }
    let hop = if hops.is_empty() { 50.0 } else { median(&hops) };
    let times = Times { take: median(&takes), send: median(&sends), counter: hop, port: hop, way: hop };
    let drains: Vec<f64> = drains.iter().map(|d| median(d)).collect();
    let processors = cores().len();
    let alone = play(here(CROWD, processors), times).each;
    let crowd = if processors <= CROWD { drains[0] - alone } else { 0.0 };
    Ok(Known { times, processors, crowd, measured: TRIED.into_iter().zip(drains[1..].iter().copied()).collect() })
}

fn written(known: &Known) -> Value {
    let t = known.times;
    let measured: serde_json::Map<String, Value> =
        known.measured.iter().map(|(n, ns)| (n.to_string(), json!(ns))).collect();
    json!({
        "take": t.take, "send": t.send, "counter": t.counter, "port": t.port, "way": t.way, "crowd": known.crowd,
        "processors": known.processors,
        "measured": measured,
    })
}

fn read(path: &Path) -> Result<Known, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
    let time = |name: &str| {
        let found = value[name].as_f64().filter(|t| (0.0..1e12).contains(t));
        found.ok_or_else(|| wrong(&format!("no time {name:?}, in ns")))
    };
    let of = |(n, ns): (&String, &Value)| Some((n.parse().ok().filter(|n| *n > 0)?, ns.as_f64().filter(|t| *t > 0.0)?));
    let measured: Option<Vec<(usize, f64)>> =
        value["measured"].as_object().map(|m| m.iter().map(of).collect()).unwrap_or(Some(vec![]));
    let mut measured = measured.ok_or_else(|| wrong("\"measured\" has a number of senders for each time"))?;
    measured.sort_by_key(|m| m.0);
    let times = Times {
        take: time("take")?,
        send: time("send")?,
        counter: time("counter")?,
        port: time("port")?,
        way: time("way")?,
    };
    let crowd = value["crowd"].as_f64().ok_or_else(|| wrong("no time \"crowd\""))?;
    let processors = value["processors"].as_u64().filter(|n| (1..1 << 20).contains(n));
    let processors = processors.ok_or_else(|| wrong("no number of \"processors\""))? as usize;
    Ok(Known { times, processors, crowd, measured })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let times = Times { take: 150.5, send: 99.0, counter: 40.0, port: 41.0, way: 42.0 };
        let known = Known { times, processors: 2, crowd: 12.0, measured: vec![(8, 200.0), (32, 250.0)] };
        let path = std::env::temp_dir().join(format!("fmpl-times-{}", std::process::id()));
        std::fs::write(&path, written(&known).to_string()).unwrap();
        let back = read(&path).unwrap();
        assert_eq!((back.times, back.processors, back.crowd, back.measured), (times, 2, 12.0, known.measured));
        std::fs::write(&path, "{\"take\": 5}").unwrap();
        assert!(read(&path).err().unwrap().contains("send"));
        std::fs::remove_file(&path).unwrap();
    }
}
