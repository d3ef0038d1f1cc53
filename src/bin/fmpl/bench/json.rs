//! The figures for programs: every block with the hop beside it, so that a reader can form other ratios than ours.

use serde_json::{Map, Value, json};

use super::measure::{CaseResult, Measured, cores};
use super::state::{NEAR_NS, State};

/// Everything measured. The blocks' times are in nanoseconds, memory in KiB, shares without unit; what they come to is in the figure's
/// unit.
pub fn value(m: &Measured) -> Value {
    let figures: Vec<Value> = m
        .figures
        .iter()
        .map(|f| json!({ "name": f.name, "unit": f.unit, "scale": f.scale, "growth": f.growth }))
        .collect();
    let cases: Vec<Value> = m
        .cases
        .iter()
        .map(|c| {
            json!({
                "label": c.case.label,
                "bytes": c.case.bytes,
                "offset": [c.case.offset.send, c.case.offset.receive],
                "figures": (0..m.figures.len()).map(|f| figure(m, c, f)).collect::<Vec<_>>(),
                "stood_still": c.still.iter().map(|w| &m.names[*w]).collect::<Vec<_>>(),
                "set_aside": c.set_aside(),
                "hop_ns": by_state(c, |state| hop(c, Some(state))),
            })
        })
        .collect();
    json!({
        "benchmark": m.bench,
        "version": env!("CARGO_PKG_VERSION"),
        "cores": cores().len(),
        "hop_by": m.hop_by,
        "near_below_ns": NEAR_NS,
        "contestants": m.names,
        "figures": figures,
        "cases": cases,
    })
}

/// All blocks' values, whatever the state; and what they come to in each state that was met.
fn figure(m: &Measured, c: &CaseResult, f: usize) -> Value {
    let states = by_state(c, |state| {
        let ratio = c.ratio(f, state).filter(|_| m.figures[f].compares());
        Some(json!({
            "results": results(m, c, f, Some(state)),
            "ratio": ratio.map(|r| json!({ "min": r.min, "median": r.median, "best": m.names[r.best] })),
            "over_hop": c.over_hop(f, state).map(|(min, median)| json!({ "min": min, "median": median })),
        }))
    });
    json!({ "name": m.figures[f].name, "results": results(m, c, f, None), "states": states })
}

fn results(m: &Measured, c: &CaseResult, f: usize, state: Option<State>) -> Map<String, Value> {
    let figure = &m.figures[f];
    let key = if figure.growth || figure.share { "most" } else { "min" };
    let one = |w: usize| {
        let (edge, median) = c.summary(w, f, figure, state);
        json!({ key: edge, "median": median, "blocks": c.values(w, f, state) })
    };
    m.names.iter().enumerate().map(|(w, name)| (name.clone(), one(w))).collect()
}

fn hop(c: &CaseResult, state: Option<State>) -> Option<Value> {
    c.hop(state).map(|(min, median)| json!({ "min": min, "median": median }))
}

fn by_state(c: &CaseResult, value: impl Fn(State) -> Option<Value>) -> Map<String, Value> {
    c.states().into_iter().filter_map(|s| Some((s.to_string(), value(s)?))).collect()
}
