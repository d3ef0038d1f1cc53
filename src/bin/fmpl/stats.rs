//! `fmpl run --stats`: what the ranks of a job have sent and by which way, how they waited, and what memory they took.
//!
//! The ranks leave their numbers in files of a directory (`FMPL_STATS`), also while they run: so there are numbers of a rank that has died.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fmpl::WayTaken;
use fmpl::launch::embedded::{End, Outcome};
use serde_json::{Value, json};

/// Of more ranks the sums are shown.
const MOST: usize = 16;

/// Where the ranks leave their numbers, until this is dropped.
pub struct Place(PathBuf);

impl Place {
    /// A directory that only this user can write to.
    pub fn new() -> io::Result<Place> {
        fmpl::base::system::temporary("fmpl-stats").map(Place)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What all ranks have left, and how each ended.
    fn read(&self, outcome: &Outcome) -> Vec<Value> {
        let of = |(rank, end): (usize, &End)| {
            let text = fs::read_to_string(self.0.join(rank.to_string())).unwrap_or_default();
            let mut numbers = serde_json::from_str(&text).unwrap_or_else(|_| json!({"rank": rank}));
            numbers["end"] = json!(end.to_string());
            numbers
        };
        outcome.ends.iter().enumerate().map(of).collect()
    }

    /// Shows the numbers on standard error, or leaves them in a file.
    pub fn tell(&self, outcome: &Outcome, file: &Path) -> Result<(), String> {
        let ranks = self.read(outcome);
        if file.as_os_str() == "-" {
            eprint!("{}", table(&ranks));
            return Ok(());
        }
        let text = format!("{:#}\n", json!({"code": outcome.code, "ranks": ranks}));
        fs::write(file, text).map_err(|e| format!("--stats={}: {e}", file.display()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or(0)
}

fn by_way(of: &Value, way: &str) -> [u64; 2] {
    [0, 1].map(|k| of["ways"][way][k].as_u64().unwrap_or(0))
}

/// A row for each rank, or one for all; a column for each way that any message went.
fn table(ranks: &[Value]) -> String {
    let rows: Vec<&[Value]> = if ranks.len() > MOST { vec![ranks] } else { ranks.chunks(1).collect() };
    let sum = |row: &[Value], of: &dyn Fn(&Value) -> u64| row.iter().map(of).sum::<u64>();
    let ways: Vec<&str> =
        WayTaken::ALL.iter().map(|(_, name)| *name).filter(|w| sum(ranks, &|r| by_way(r, w)[0]) > 0).collect();
    let mut head = vec!["rank", "received"];
    head.extend(&ways);
    head.extend(["of short queued", "sleeps", "slept", "spool", "memory", ""]);
    let mut lines = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for row in rows {
        let all = |name: &str| sum(row, &|r| number(r, name));
        let most = |name: &str| row.iter().map(|r| number(r, name)).max().unwrap_or(0);
        let mut line = vec![if row.len() > 1 { format!("all {}", row.len()) } else { row[0]["rank"].to_string() }];
        line.push(all("received").to_string());
        for way in &ways {
            let [messages, bytes] = [0, 1].map(|k| sum(row, &|r| by_way(r, way)[k]));
            line.push(if messages == 0 { "-".into() } else { format!("{messages} ({})", size(bytes)) });
        }
        line.extend([all("queued").to_string(), all("sleeps").to_string()]);
        line.push(format!("{:.3} s", all("slept_ns") as f64 / 1e9));
        line.extend([size(most("spool_most")), size(all("memory"))]);
        line.push(lacks(row));
        lines.push(line);
    }
    let width = |c: usize| lines.iter().map(|l| l[c].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::from(
        "fmpl run: messages to an index (and their bytes) by the way that they went; docs/tuning.md explains the ways\n",
    );
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        text += &format!("{}\n", cells.join("  ").trim_end());
    }
    text
}

/// What is to be known of numbers that are not a rank's last ones.
fn lacks(row: &[Value]) -> String {
    let early: Vec<&Value> = row.iter().filter(|r| r["complete"] != json!(true)).collect();
    let none = |r: &Value| r["ways"].is_null();
    match early.as_slice() {
        [] => String::new(),
        [one] if row.len() == 1 && none(one) => {
            format!("no numbers: never joined the job; {}", one["end"].as_str().unwrap_or(""))
        }
        [one] if row.len() == 1 => format!("of moments before its end: {}", one["end"].as_str().unwrap_or("")),
        some => format!(
            "{} of them ended without finalize, {} without numbers",
            some.len(),
            some.iter().filter(|r| none(r)).count()
        ),
    }
}

/// Bytes, in short.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(n: usize, complete: bool) -> Value {
        json!({"rank": n, "complete": complete, "ways": {"short": [3, 24], "ring": [n, 9000 * n]}, "queued": 1, "received": 3,
               "sleeps": 0, "slept_ns": 0, "spool_most": 65536, "memory": 1000, "end": "was killed by signal 9"})
    }

    #[test]
    fn a_row_for_each_of_few_ranks_and_a_sum_of_many() {
        let few = table(&[rank(0, true), rank(1, false), json!({"rank": 2, "end": "exited with code 1"})]);
        let lines: Vec<&str> = few.lines().collect();
        assert_eq!(lines.len(), 5, "{few}");
        assert!(lines[1].contains("short") && lines[1].contains("ring") && !lines[1].contains("pulled"), "{few}");
        assert!(lines[2].contains("3 (24 B)") && !lines[2].contains("signal"), "{few}");
        assert!(
            lines[3].contains("1 (9000 B)") && lines[3].ends_with("of moments before its end: was killed by signal 9"),
            "{few}"
        );
        assert!(lines[4].ends_with("never joined the job; exited with code 1"), "{few}");
        let many = table(&(0..17).map(|n| rank(n, n > 0)).collect::<Vec<_>>());
        assert_eq!(many.lines().count(), 3, "{many}");
        assert!(many.contains("all 17") && many.contains("51 (408 B)"), "{many}");
        assert!(many.trim_end().ends_with("1 of them ended without finalize, 0 without numbers"), "{many}");
    }
}
