//! Runs of a scene with many seeds, in processes of their own: what a rank that dies leaves behind goes with its process.
//!
//! `FMPL_SEEDS=17` or `FMPL_SEEDS=100-200` plays these of the test that is named, here and now.

use std::fmt::Debug;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::base::rules::Rule;
use crate::base::simulation;

/// Seeds that a process plays.
const EACH: u64 = 200;

static SEED: AtomicU64 = AtomicU64::new(0);

fn wanted() -> Option<(u64, u64)> {
    let text = std::env::var("FMPL_SEEDS").ok()?;
    let (from, to) = text.split_once('-').unwrap_or((&text, &text));
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// As many seeds as `FMPL_SCHEDULES` says of each scene.
fn many(few: u64) -> u64 {
    std::env::var("FMPL_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

/// What fails ends the process at once: the threads of the run cannot go on.
fn play_here(from: u64, to: u64, scene: fn(u64)) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        hook(what);
        eprintln!("seed {}", SEED.load(Ordering::Relaxed));
        std::process::exit(3);
    }));
    for seed in from..=to {
        SEED.store(seed, Ordering::Relaxed);
        scene(seed);
    }
    let _ = std::panic::take_hook();
}

/// Plays a scene with so many seeds. `name`: of the test that calls this, and no other.
pub fn batch(name: &str, few: u64, scene: fn(u64)) {
    if let Some((from, to)) = wanted() {
        return play_here(from, to, scene);
    }
    let (last, next, failed) = (many(few), AtomicU64::new(1), Mutex::new(Vec::new()));
    let since = Instant::now();
    let work = || loop {
        let from = next.fetch_add(EACH, Ordering::Relaxed);
        if from > last || failed.lock().expect("a list").len() > 3 {
            return;
        }
        let to = (from + EACH - 1).min(last);
        let ran = process(name, from, to, None);
        if !ran.status.success() {
            let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            failed.lock().expect("a list").push(format!("seeds {from}-{to}: {}\n{text}", ran.status));
        }
    };
    std::thread::scope(|s| (0..2).for_each(|_| _ = s.spawn(work)));
    let failed = failed.into_inner().expect("a list");
    assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
    let took = since.elapsed().as_secs_f64();
    println!("{name}: {last} schedules in {took:.1} s, {:.0} a second", last as f64 / took);
}

/// A rule, what it is called, and the scene by which it is noticed that it is left out.
pub type LeftOut = (Rule, &'static str, fn(u64));

/// The first few of a table; all, where `FMPL_SCHEDULES` asks for more than the ordinary.
pub fn some<T>(of: &[T], few: usize) -> &[T] {
    if std::env::var_os("FMPL_SCHEDULES").is_some() { of } else { &of[..few] }
}

/// Leaves out one rule after the other, and plays its scene until one of so many seeds notices. `FMPL_LEFT_OUT` names the one of a process.
pub fn noticed(name: &str, most: u64, table: &[LeftOut]) {
    if let (Some((from, to)), Ok(left_out)) = (wanted(), std::env::var("FMPL_LEFT_OUT")) {
        let (rule, _, scene) = table.iter().find(|(_, name, _)| *name == left_out).expect("a rule of the table");
        simulation::leave_out(Some(*rule));
        return play_here(from, to, *scene);
    }
    let mut unnoticed = Vec::new();
    for (_, left_out, _) in table {
        let ran = process(name, 1, most, Some(left_out));
        let text = String::from_utf8_lossy(&ran.stderr);
        let said = text
            .lines()
            .filter(|l| l.starts_with("seed ") || l.contains("rank ") || l.contains("not end"))
            .collect::<Vec<_>>();
        println!("{left_out}: {} {}", ran.status, said.join("; ").chars().take(300).collect::<String>());
        if ran.status.success() {
            unnoticed.push(*left_out);
        }
    }
    assert!(unnoticed.is_empty(), "nobody notices that these are left out: {unnoticed:?}");
}

/// Plays some seeds twice, and compares.
pub fn again<T: PartialEq + Debug>(seeds: u64, scene: fn(u64) -> T) {
    for seed in 1..=seeds {
        assert_eq!(scene(seed), scene(seed), "seed {seed}");
    }
}

/// Plays seeds of a test in a process of its own.
fn process(name: &str, from: u64, to: u64, left_out: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([&format!("::{name}"), "--nocapture", "--test-threads=1", "-q"]);
    command.env("FMPL_SEEDS", format!("{from}-{to}")).env("RUST_BACKTRACE", "0");
    if let Some(rule) = left_out {
        command.env("FMPL_LEFT_OUT", rule);
    }
    command.output().expect("this program again")
}
