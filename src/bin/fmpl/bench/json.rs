//! The figures for programs: every block of every round, so that a reader can form other ratios than ours.

use serde_json::{Value, json};

use super::measure::{Measured, cores};

/// Everything measured. Times are in nanoseconds, memory in KiB, shares without unit, as the blocks gave them.
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
            let per_figure: Vec<Value> = m
                .figures
                .iter()
                .enumerate()
                .map(|(f, figure)| {
                    let results: serde_json::Map<String, Value> = m
                        .names
                        .iter()
                        .enumerate()
                        .map(|(w, name)| {
                            let (edge, median) = c.summary(w, f, figure);
                            let key = if figure.growth || figure.share { "most" } else { "min" };
                            let v = json!({ key: edge, "median": median, "blocks": c.values(w, f) });
                            (name.clone(), v)
                        })
                        .collect();
                    let ratio = c.ratio(f).filter(|_| figure.compares());
                    json!({
                        "name": figure.name,
                        "results": results,
                        "ratio": ratio.map(|r| json!({ "min": r.min, "median": r.median, "best": m.names[r.best] })),
                        "over_hop": c.over_hop(f).map(|(min, median)| json!({ "min": min, "median": median })),
                    })
                })
                .collect();
            json!({
                "label": c.case.label,
                "bytes": c.case.bytes,
                "figures": per_figure,
                "stood_still": c.still.iter().map(|w| &m.names[*w]).collect::<Vec<_>>(),
                "hop_ns": c.hop().map(|(min, median)| json!({ "min": min, "median": median, "blocks": c.hops() })),
            })
        })
        .collect();
    json!({
        "benchmark": m.bench,
        "version": env!("CARGO_PKG_VERSION"),
        "cores": cores().len(),
        "hop_by": m.hop_by,
        "contestants": m.names,
        "figures": figures,
        "cases": cases,
    })
}
