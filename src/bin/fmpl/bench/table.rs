//! The tables on the terminal, one for each state of the machine that was met: a line a case; for each contestant the least and the
//! median of the blocks, and how many there were; for FMPL alone the bandwidth too, beside others the ratio to the best of them.

use std::fmt::Write;

use super::Figure;
use super::measure::{CaseResult, Measured};
use super::state::State;

/// The text of all tables of a benchmark.
pub fn text(m: &Measured) -> String {
    let mut out = String::new();
    for (f, figure) in m.figures.iter().enumerate() {
        let told = m.cases.iter().any(|c| !c.states().is_empty());
        if figure.compares() && told {
            State::ALL.into_iter().for_each(|s| table(m, f, figure, Some(s), &mut out));
        } else {
            // What grows or is hidden does so in any state; and better all blocks than none.
            table(m, f, figure, None, &mut out);
        }
    }
    hop_lines(m, &mut out);
    out
}

/// One figure of all lines, in a state or in all.
fn table(m: &Measured, f: usize, figure: &Figure, state: Option<State>, out: &mut String) {
    let cases: Vec<&CaseResult> = m.cases.iter().filter(|c| state.is_none_or(|s| c.states().contains(&s))).collect();
    if cases.is_empty() {
        return;
    }
    let width = m.cases.iter().map(|c| c.case.label.len()).max().unwrap_or(0).max(8);
    let column = m.names.iter().map(|n| n.len()).max().unwrap_or(0).max(19);
    let alone = m.names.len() == 1;
    let bandwidth = alone && figure.bandwidth && m.cases.iter().any(|c| c.case.bytes.is_some());
    let unit = if figure.unit.is_empty() { String::new() } else { format!(", {}", figure.unit) };
    let told = state.filter(|s| *s != State::Untold).map_or(String::new(), |s| format!(", {s} cores"));
    let _ = writeln!(out, "{}: {}{unit}{told}", m.bench, figure.name);
    let mut head = format!("{:<width$}", "");
    if alone {
        let _ = write!(head, "  {:>9} {:>9}", edge(figure), "median");
        if bandwidth {
            let _ = write!(head, " {:>10}", "MB/s");
        }
    } else {
        let mut names = format!("{:<width$}", "");
        for n in &m.names {
            let _ = write!(names, "  {n:>column$}");
            let _ = write!(head, "  {:>w$} {:>9}", edge(figure), "median", w = column - 10);
        }
        if figure.compares() {
            let _ = write!(names, "  {:>15}", "ours / best");
            let _ = write!(head, "  {:>7} {:>7}  best", edge(figure), "median");
        }
        let _ = writeln!(out, "{}", names.trim_end());
    }
    let _ = writeln!(out, "{head}  (blocks)");
    for c in cases {
        let _ = write!(out, "{:<width$}", c.case.label);
        for w in 0..m.names.len() {
            let (edge, mid) = c.summary(w, f, figure, state);
            let first = if alone { 9 } else { column - 10 };
            if c.still.contains(&w) {
                let _ = write!(out, "  {:>1$}", "stood still", first + 10);
                continue;
            }
            let _ = write!(out, "  {:>first$} {:>9}", number(edge), number(mid));
        }
        if bandwidth && let Some(bytes) = c.case.bytes {
            let (_, mid) = c.summary(0, f, figure, state);
            // Bytes per second from the median, so that table and bandwidth agree.
            let _ = write!(out, " {:>10.0}", bytes as f64 / (mid / figure.scale) * 1e3);
        }
        if figure.compares()
            && let Some(r) = state.and_then(|s| c.ratio(f, s))
        {
            let _ = write!(out, "  {:>7.2} {:>7.2}  {}", r.min, r.median, m.names[r.best]);
        }
        let counts = || (0..m.names.len()).filter(|w| !c.still.contains(w)).map(|w| c.count(w, state));
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let _ = match fewest == most {
            true => writeln!(out, "  ({most})"),
            false => writeln!(out, "  ({fewest} to {most})"),
        };
    }
    out.push('\n');
}

/// What stands beside the median.
pub fn edge(figure: &Figure) -> &'static str {
    if figure.growth || figure.share { "most" } else { "min" }
}

/// The raw hop beside the shortest messages, how near we come to it, and how many blocks it tells nothing about.
fn hop_lines(m: &Measured, out: &mut String) {
    let Some(c) = m.cases.first() else { return };
    for state in c.states() {
        let Some((min, mid)) = c.hop(Some(state)) else { continue };
        let _ = write!(out, "raw hop over one cache line, {state}, by {}: {min:.0} ns min, {mid:.0} median", m.hop_by);
        if ["pingpong", "echo"].contains(&m.bench)
            && c.case.bytes == Some(8)
            && let Some((least, median)) = c.over_hop(0, state)
        {
            let _ = write!(out, "; {} ours / hop: {least:.2} of min, {median:.2} of median", c.case.label);
        }
        out.push('\n');
    }
    let aside: usize = m.cases.iter().map(CaseResult::set_aside).sum();
    if aside > 0 {
        let all: usize = m.cases.iter().flat_map(|c| &c.blocks).map(Vec::len).sum();
        let _ = writeln!(out, "set aside: {aside} of {all} blocks, in which the hop changed between near and far");
    }
}

/// Three significant digits, at most three decimals.
pub fn number(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}
