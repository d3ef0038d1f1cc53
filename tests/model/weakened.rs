//! Experiments: is each ordering of the protocol needed, and would the models notice if it were not there?
//!
//! `tests/model/weakened` is a table of places in the source, what each loses, and the models that must fail then. The place is
//! named by file, function and the text of the call, so that it is found again when lines move:
//!
//! ```text
//! src/lane/record.rs publish | self.land.store( | release | inline_landings
//! src/p2p/transfer.rs Receiver::share | t.claim.load( | acquire | why no model notices: …
//! ```
//!
//! - A place that is not found, or twice, is an error of every run of the models, and so is an ordering stronger than relaxed in `src/coll`,
//!   `src/lane`, `src/p2p` or `src/wait` that the table does not speak of.
//! - `cargo test --test model -- --ignored` makes the experiments, one process each, and fails for what no model notices.
//! - `FMPL_MODEL_LINES=20-40` makes those of these lines of the table only.
//! - `FMPL_MODEL_WEAKEN=N tests/model/run MODEL` makes experiment N (its line in the table) by hand.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fmpl::base::shadow::{Loss, Weakening};

/// A line of the table.
struct Row {
    /// From 1.
    line: usize,
    file: String,
    /// `name` or `Type::name`; `*`: the whole file.
    function: String,
    /// The call up to its parenthesis; `*`: all of them in the function.
    text: String,
    /// `None`: nothing is tried, for `reason`.
    loss: Option<Loss>,
    models: Vec<String>,
    reason: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> Vec<Row> {
    let text = read_to_string(root().join("tests/model/weakened")).expect("the table");
    let rows = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
    rows.map(|(k, l)| parse(k + 1, l).unwrap_or_else(|why| panic!("tests/model/weakened, line {}: {why}", k + 1)))
        .collect()
}

fn parse(line: usize, text: &str) -> Result<Row, String> {
    let columns: Vec<&str> = text.splitn(4, " | ").map(str::trim).collect();
    let [place, call, loss, rest] = columns[..] else { return Err("four columns, please".into()) };
    let (file, function) = place.split_once(' ').ok_or("file and function, please")?;
    let loss = match loss {
        "release" => Some(Loss::Release),
        "acquire" => Some(Loss::Acquire),
        "all" => Some(Loss::All),
        "-" => None,
        other => return Err(format!("{other} is neither release, acquire, all nor -")),
    };
    let reason = rest.strip_prefix("because ").unwrap_or_default().to_owned();
    let models: Vec<String> =
        if reason.is_empty() { rest.split_whitespace().map(str::to_owned).collect() } else { Vec::new() };
    if models.is_empty() && reason.is_empty() || loss.is_none() && reason.is_empty() {
        return Err("models that notice, or \"because\" and a reason, please".into());
    }
    let (file, function, text) = (file.to_owned(), function.to_owned(), call.to_owned());
    Ok(Row { line, file, function, text, loss, models, reason })
}

impl Row {
    /// Lines of its function: from, to (without), from 0.
    fn extent(&self, source: &[&str]) -> Result<(usize, usize), String> {
        if self.function == "*" {
            return Ok((0, source.len()));
        }
        let (owner, name) =
            self.function.split_once("::").map_or((None, self.function.as_str()), |(o, n)| (Some(o), n));
        let begin = match owner {
            None => 0,
            Some(owner) => source
                .iter()
                .position(|l| l.trim_start().starts_with("impl") && l.contains(&format!("{owner}")))
                .ok_or(format!("no impl of {owner}"))?,
        };
        let starts = |l: &str, name: &str| l.contains(&format!("fn {name}(")) || l.contains(&format!("fn {name}<"));
        let found: Vec<usize> = (begin..source.len()).filter(|k| starts(source[*k], name)).collect();
        let from = match found[..] {
            [] => return Err(format!("no function {name}")),
            [one] => one,
            [first, ..] if owner.is_some() => first,
            _ => return Err(format!("several functions {name}: say whose, as in Type::{name}")),
        };
        // To the closing brace in the column of the function's first line.
        let indent = source[from].len() - source[from].trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let end = (from + 1..source.len()).find(|k| source[*k] == close).map_or(source.len(), |k| k + 1);
        Ok((from, end))
    }

    /// Line and column, from 1, of the name of the call.
    fn place(&self) -> Result<(u32, u32), String> {
        let text = read_to_string(root().join(&self.file)).map_err(|e| format!("{}: {e}", self.file))?;
        let source: Vec<&str> = text.lines().collect();
        let (from, end) = self.extent(&source)?;
        let (text, wanted) = match self.text.rsplit_once(" #") {
            Some((text, n)) => (text, n.parse::<usize>().map_err(|e| e.to_string())?),
            None => (self.text.as_str(), 0),
        };
        let found: Vec<(usize, usize)> =
            (from..end).flat_map(|k| source[k].match_indices(text).map(move |(at, _)| (k, at))).collect();
        let (line, at) = match (found.len(), wanted) {
            (0, _) => return Err(format!("{} has no \"{text}\" in {}", self.file, self.function)),
            (1, 0) => found[0],
            (_, 0) => {
                return Err(format!("{} has \"{text}\" several times in {}: say #1, …", self.file, self.function));
            }
            (n, k) if k <= n => found[k - 1],
            _ => return Err(format!("there are not so many \"{text}\"")),
        };
        let name = text.trim_end_matches('(').rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |k| k + 1);
        // Paths (doorbell::barrier) are named from their beginning.
        let name =
            if text[..name].ends_with("::") { text[..name].rfind([' ', '(', '!']).map_or(0, |k| k + 1) } else { name };
        Ok((line as u32 + 1, (at + name) as u32 + 1))
    }
}

/// The experiment that `FMPL_MODEL_WEAKEN` asks for.
pub fn asked_for() -> Option<Weakening> {
    let line: usize = std::env::var("FMPL_MODEL_WEAKEN").ok()?.parse().expect("FMPL_MODEL_WEAKEN: a line of the table");
    let row = table().into_iter().find(|r| r.line == line).expect("FMPL_MODEL_WEAKEN: there is no such experiment");
    let (line, column) = row.place().expect("FMPL_MODEL_WEAKEN: the place");
    Some(Weakening { file: row.file, line, column, loss: row.loss.expect("FMPL_MODEL_WEAKEN: nothing is tried there") })
}

#[test]
fn the_table_fits_the_source() {
    let rows = table();
    assert!(!rows.is_empty());
    let wrong: Vec<String> = rows
        .iter()
        .filter(|r| r.text != "*")
        .filter_map(|r| r.place().err().map(|why| format!("tests/model/weakened, line {}: {why}", r.line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Orderings stronger than relaxed, by the place of their call: file, line, column, and what they order.
fn orderings() -> Vec<(String, u32, u32, Loss)> {
    let mut all = Vec::new();
    for name in ["src/coll", "src/lane", "src/p2p", "src/wait"].into_iter().flat_map(sources_below) {
        all.extend(orderings_of(&root().join(&name)).into_iter().map(|(l, c, loss)| (name.clone(), l, c, loss)));
    }
    all
}

/// Sources of a directory and of all in it, without those that make models and those that only test.
fn sources_below(dir: &str) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root().join(dir)).expect("sources") {
        let entry = entry.expect("sources");
        let name = format!("{dir}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            all.extend(sources_below(&name));
        } else if name.ends_with(".rs") && !name.ends_with("/model.rs") && !name.ends_with("/tests.rs") {
            all.push(name);
        }
    }
    all.sort();
    all
}

fn orderings_of(path: &Path) -> Vec<(u32, u32, Loss)> {
    let text = read_to_string(path).expect("a source");
    // Tests come last in a file.
    let text = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let mut all = BTreeSet::new();
    for (word, losses) in [
        ("Release", &[Loss::Release][..]),
        ("Acquire", &[Loss::Acquire]),
        ("AcqRel", &[Loss::Release, Loss::Acquire]),
        ("SeqCst", &[Loss::All]),
    ] {
        for (at, _) in text.match_indices(&format!("Ordering::{word}")) {
            if text[at + 10 + word.len()..].starts_with(|c: char| c.is_alphanumeric()) {
                continue;
            }
            let Some((line, column)) = call_around(text, at) else { continue };
            for loss in losses {
                all.insert((line, column, *loss as u8));
            }
        }
    }
    let loss = |n: u8| [Loss::Release, Loss::Acquire, Loss::All][n as usize];
    all.into_iter().map(|(l, c, n)| (l, c, loss(n))).collect()
}

/// Line and column, from 1, of the name of the call among whose arguments `at` is.
fn call_around(text: &str, at: usize) -> Option<(u32, u32)> {
    let mut depth = 0;
    let open = text[..at].rfind(|c| {
        depth += (c == ')') as i32 - (c == '(') as i32;
        depth < 0
    })?;
    let name = text[..open].rfind(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').map_or(0, |k| k + 1);
    let line = text[..name].matches('\n').count();
    let column = name - text[..name].rfind('\n').map_or(0, |k| k + 1);
    Some((line as u32 + 1, column as u32 + 1))
}

/// Orderings that no line of the table speaks of.
fn unspoken(rows: &[Row]) -> Vec<String> {
    let mut places = Vec::new();
    let mut areas = Vec::new();
    for r in rows {
        if r.text == "*" {
            let text = read_to_string(root().join(&r.file)).expect("a source");
            let source: Vec<&str> = text.lines().collect();
            let (from, end) = r.extent(&source).unwrap_or_else(|why| panic!("line {}: {why}", r.line));
            areas.push((r.file.clone(), from as u32 + 1, end as u32));
        } else {
            let (line, column) = r.place().unwrap_or_else(|why| panic!("line {}: {why}", r.line));
            places.push((r.file.clone(), line, column, r.loss));
        }
    }
    let spoken = |(file, line, column, loss): &(String, u32, u32, Loss)| {
        areas.iter().any(|(f, from, to)| f == file && (from..=to).contains(&line))
            || places.iter().any(|(f, l, c, what)| {
                f == file && l == line && c == column && what.is_none_or(|w| w == *loss || w == Loss::All)
            })
    };
    orderings()
        .iter()
        .filter(|o| !spoken(o))
        .map(|(file, line, column, loss)| {
            format!("{file}:{line}:{column}: what it orders ({loss:?}) is in no line of the table")
        })
        .collect()
}

/// Seconds that a model has to notice.
const PATIENCE: &str = "60";

/// `None`: noticed. Otherwise what happened.
fn experiment(row: &Row, model: &str) -> Option<String> {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args([model, "--nocapture", "--test-threads=1"]);
    child.env("FMPL_MODEL_WEAKEN", row.line.to_string()).env("FMPL_MODEL_SECONDS", PATIENCE).env("RUST_BACKTRACE", "0");
    let out = child.stdin(Stdio::null()).output().expect("this program again");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    if !said.contains("running 1 test") {
        return Some(format!("{model} names no model, or several"));
    }
    if !out.status.success() {
        // It is the model that must fail, not the experiment.
        return said.contains("FMPL_MODEL_WEAKEN").then(|| format!("{model} could not be run: {said}"));
    }
    let seen = said.lines().find(|l| l.contains(" executions with ")).unwrap_or("nothing was run");
    Some(format!("not noticed by {seen}"))
}

#[test]
fn every_ordering_is_spoken_of() {
    let wrong = unspoken(&table());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes long: one process for each experiment"]
fn every_weakening_is_noticed() {
    let mut rows = table();
    if let Ok(lines) = std::env::var("FMPL_MODEL_LINES") {
        let (from, to) = lines.split_once('-').expect("FMPL_MODEL_LINES: from-to");
        let (from, to): (usize, usize) = (from.parse().expect("a line"), to.parse().expect("a line"));
        rows.retain(|r| (from..=to).contains(&r.line));
    }
    let mut wrong = Vec::new();
    let trials: Vec<(&Row, &String)> =
        rows.iter().filter(|r| r.loss.is_some()).flat_map(|r| r.models.iter().map(move |m| (r, m))).collect();
    let next = AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((row, model)) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let outcome = experiment(row, model);
                    let place =
                        format!("{}: {} {} loses {:?}", row.line, row.function, row.text, row.loss.expect("one"));
                    let took = began.elapsed().max(Duration::from_millis(100)).as_secs_f64();
                    match outcome {
                        None => println!("{place}: {model} notices, {took:.1} s"),
                        Some(what) => {
                            println!("{place}: {what}");
                            found.lock().expect("a list").push(format!("tests/model/weakened, line {place}: {what}"));
                        }
                    }
                }
            });
        }
    });
    wrong.extend(found.into_inner().expect("a list"));
    let reasons = rows.iter().filter(|r| !r.reason.is_empty()).count();
    println!("{} experiments; {reasons} lines give a reason instead", trials.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
