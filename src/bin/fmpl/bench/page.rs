//! One page for a browser: of each benchmark the pictures, the tables beside them, and every block behind a fold. Everything is in the one
//! file, so that it opens anywhere, without a network.

use std::fmt::Write;
use std::path::Path;

use fmpl::base::processor::Processor;

use super::measure::{CaseResult, Measured, cores};
use super::state::{NEAR_NS, State};
use super::table::{edge, number};
use super::{Figure, plot};

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; background: #fff }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 2px solid #ddd; padding-top: 1rem }
code { background: #f2f2f2; padding: .1em .3em; overflow-wrap: anywhere }
svg { display: block; width: 100%; height: auto; max-width: 960px }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } caption { text-align: left; font-weight: 600; padding: .3rem 0 }
.less { color: #00643c; font-weight: 600 } .more { color: #b41e14; font-weight: 600 } .quiet { color: #666 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } code { background: #333 } svg { background: #fff }
 th, td, h2 { border-color: #444 } .less { color: #5fd39a } .more { color: #ff8a80 } .quiet { color: #999 } }
";

/// Writes the page.
pub fn write(all: &[Measured], path: &Path) -> Result<(), String> {
    std::fs::write(path, text(all)).map_err(|e| format!("{}: {e}", path.display()))
}

fn text(all: &[Measured]) -> String {
    let names: Vec<&str> = all.iter().map(|m| m.bench).collect();
    let command: Vec<String> = std::env::args().collect();
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    let _ = writeln!(out, "<title>fmpl bench {}</title><style>{STYLE}</style></head><body>", plain(&names.join(", ")));
    let _ = writeln!(out, "<h1>fmpl bench</h1>\n<p><code>{}</code></p>", plain(&command.join(" ")));
    let (version, processor, cores) = (env!("CARGO_PKG_VERSION"), Processor::here().to_string(), cores().len());
    let _ = writeln!(
        out,
        "<p>FMPL {version} on {} with {cores} cores. Of each block of messages that was timed the tables give",
        plain(&processor)
    );
    let _ = writeln!(
        out,
        "the least and the median; cores are <em>near</em> when a line goes from one to the other in less than {NEAR_NS} ns"
    );
    out += "(they share a cache), else <em>far</em>; the raw hop is that line, measured beside each block.</p>\n";
    all.iter().for_each(|m| benchmark(m, &mut out));
    out + "</body></html>\n"
}

fn benchmark(m: &Measured, out: &mut String) {
    let _ = writeln!(out, "<h2>{}</h2>\n<p>{}</p>", plain(m.bench), plain(m.about));
    for (f, figure) in m.figures.iter().enumerate() {
        if let Ok(picture) = plot::svg(m, f) {
            out.push_str(&picture);
        }
        let told = m.cases.iter().any(|c| !c.states().is_empty());
        if figure.compares() && told {
            State::ALL.into_iter().for_each(|s| table(m, f, Some(s), out));
        } else {
            table(m, f, None, out);
        }
    }
    for (state, c) in m.cases.first().into_iter().flat_map(|c| c.states().into_iter().map(move |s| (s, c))) {
        if let Some((least, median)) = c.hop(Some(state)) {
            let _ = write!(out, "<p class=\"quiet\">Raw hop, {state}, by {}: {least:.0} ns least, ", plain(m.hop_by));
            let _ = writeln!(out, "{median:.0} median.</p>");
        }
    }
    blocks(m, out);
}

/// One figure of all lines, in a state or in all.
fn table(m: &Measured, f: usize, state: Option<State>, out: &mut String) {
    let figure = &m.figures[f];
    let cases: Vec<&CaseResult> = m.cases.iter().filter(|c| state.is_none_or(|s| c.states().contains(&s))).collect();
    if cases.is_empty() {
        return;
    }
    let (beside, compares) = (m.names.len() > 1, figure.compares() && m.names.len() > 1);
    let told = state.filter(|s| *s != State::Untold).map_or(String::new(), |s| format!(", {s} cores"));
    let _ = writeln!(
        out,
        "<div class=\"wide\"><table><caption>{}{}{told}</caption><tr><th></th>",
        plain(figure.name),
        unit(figure)
    );
    for name in &m.names {
        let name = if beside { format!("{} ", plain(name)) } else { String::new() };
        let _ = write!(out, "<th>{name}{}</th><th>median</th>", edge(figure));
    }
    out.push_str(if compares { "<th>ours / best</th><th>best</th></tr>\n" } else { "</tr>\n" });
    for c in cases {
        let _ = write!(out, "<tr><td>{}</td>", plain(&c.case.label));
        for w in 0..m.names.len() {
            if c.still.contains(&w) {
                out.push_str("<td colspan=\"2\">stood still</td>");
                continue;
            }
            let (edge, median) = c.summary(w, f, figure, state);
            let _ = write!(out, "<td>{}</td><td>{}</td>", number(edge), number(median));
        }
        match state.and_then(|s| c.ratio(f, s)).filter(|_| compares) {
            Some(ratio) => {
                let class = if ratio.median <= 1.0 { "less" } else { "more" };
                let best = plain(&m.names[ratio.best]);
                let _ = write!(out, "<td class=\"{class}\">{:.2}</td><td>{best}</td>", ratio.median);
            }
            None if compares => out.push_str("<td></td><td></td>"),
            None => {}
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// What every block gave.
fn blocks(m: &Measured, out: &mut String) {
    out.push_str("<details><summary>Every block</summary><div class=\"wide\"><table>\n<tr><th></th><th></th><th></th><th>blocks</th></tr>\n");
    for c in &m.cases {
        for (w, name) in m.names.iter().enumerate() {
            for (f, figure) in m.figures.iter().enumerate() {
                let values: Vec<String> = c.blocks[w].iter().map(|b| number(b.values[f] * figure.scale)).collect();
                let (label, figure_name) = (plain(&c.case.label), plain(figure.name));
                let _ =
                    write!(out, "<tr><td>{label}</td><td>{}</td><td>{figure_name}{}</td>", plain(name), unit(figure));
                let _ = writeln!(out, "<td>{}</td></tr>", values.join(" "));
            }
        }
    }
    out.push_str("</table></div></details>\n");
}

fn unit(figure: &Figure) -> String {
    if figure.unit.is_empty() { String::new() } else { format!(", {}", plain(&figure.unit.replace("us", "µs"))) }
}

/// Text in HTML.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
