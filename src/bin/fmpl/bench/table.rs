//! The table on the terminal: a line a case; for each contestant the least and the median of the blocks; for FMPL alone the
//! bandwidth too, beside others the ratio to the best of them.

use std::fmt::Write;

use super::measure::Measured;

/// The text of all tables of a benchmark.
pub fn text(m: &Measured) -> String {
    let mut out = String::new();
    let width = m.cases.iter().map(|c| c.case.label.len()).max().unwrap_or(0).max(8);
    let column = m.names.iter().map(|n| n.len()).max().unwrap_or(0).max(19);
    for (f, figure) in m.figures.iter().enumerate() {
        let alone = m.names.len() == 1;
        let bandwidth = alone && figure.bandwidth && m.cases.iter().any(|c| c.case.bytes.is_some());
        let unit = if figure.unit.is_empty() { String::new() } else { format!(", {}", figure.unit) };
        let _ = writeln!(out, "{}: {}{unit}", m.bench, figure.name);
        let mut head = format!("{:<width$}", "");
        if alone {
            let edge = edge(figure);
            let _ = write!(head, "  {edge:>9} {:>9}", "median");
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
        let _ = writeln!(out, "{head}");
        for c in &m.cases {
            let _ = write!(out, "{:<width$}", c.case.label);
            for w in 0..m.names.len() {
                let (edge, mid) = c.summary(w, f, figure);
                let first = if alone { 9 } else { column - 10 };
                if c.still.contains(&w) {
                    let _ = write!(out, "  {:>1$}", "stood still", first + 10);
                    continue;
                }
                let _ = write!(out, "  {:>first$} {:>9}", number(edge), number(mid));
            }
            if bandwidth && let Some(bytes) = c.case.bytes {
                let (_, mid) = c.summary(0, f, figure);
                // Bytes per second from the median, so that table and bandwidth agree.
                let _ = write!(out, " {:>10.0}", bytes as f64 / (mid / figure.scale) * 1e3);
            }
            if figure.compares()
                && let Some(r) = c.ratio(f)
            {
                let _ = write!(out, "  {:>7.2} {:>7.2}  {}", r.min, r.median, m.names[r.best]);
            }
            out.push('\n');
        }
        out.push('\n');
    }
    hop_line(m, &mut out);
    out
}

fn edge(figure: &super::Figure) -> &'static str {
    if figure.growth || figure.share { "most" } else { "min" }
}

/// The raw hop around the shortest messages, and how near we come to it.
fn hop_line(m: &Measured, out: &mut String) {
    let Some(c) = m.cases.iter().find(|c| c.hop().is_some()) else { return };
    let Some((min, mid)) = c.hop() else { return };
    let _ = write!(out, "raw hop over one cache line, by {}: {min:.0} ns min, {mid:.0} median", m.hop_by);
    if m.bench == "pingpong"
        && c.case.bytes == Some(8)
        && let Some((least, median)) = c.over_hop(0)
    {
        let _ = write!(out, "; 8 B ours / hop: {least:.2} of min, {median:.2} of median");
    }
    out.push('\n');
}

/// Three significant digits, at most three decimals.
fn number(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 100.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}
