//! The picture: both axes logarithmic (sizes in powers of two), a line a contestant, and the raw hop as the limit below them.

use std::path::Path;

use plotters::prelude::*;

use super::measure::Measured;
use super::size_text;

const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(230, 159, 0),
    RGBColor(0, 130, 90),
    RGBColor(120, 60, 160),
    RGBColor(90, 90, 90),
];
const GREY: RGBColor = RGBColor(110, 110, 110);

/// Draws the first figure of a benchmark whose cases have sizes or counts.
pub fn draw(m: &Measured, path: &Path) -> Result<(), String> {
    let figure =
        &m.figures[m.figures.len() - 1 - m.figures.iter().rev().position(|f| !f.share && !f.growth).unwrap_or(0)];
    let f = m.figures.iter().position(|x| std::ptr::eq(x, figure)).unwrap_or(0);
    let mut lines: Vec<Line> = Vec::new();
    for (w, name) in m.names.iter().enumerate() {
        // Cases with the same size or count (in order, in reverse) are different lines.
        let mut kinds: Vec<Line> = Vec::new();
        for c in &m.cases {
            let Some(x) = c.case.x else { continue };
            let label = &c.case.label;
            // What the label says besides the size, behind it, or the count, before it.
            let kind = match c.case.bytes {
                Some(n) => label.strip_suffix(&size_text(n)).map_or("", str::trim_end),
                None => label.split_once(' ').map_or("", |k| k.1),
            };
            let title = if kind.is_empty() { name.clone() } else { format!("{name}, {kind}") };
            if c.still.contains(&w) {
                continue;
            }
            let point = (x.log2(), c.summary(w, f, figure).1);
            match kinds.iter_mut().find(|k| k.0 == title) {
                Some(k) => k.1.push(point),
                None => kinds.push((title, vec![point])),
            }
        }
        lines.extend(kinds);
    }
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|l| l.1.iter().copied()).filter(|p| p.1 > 0.0).collect();
    if points.iter().map(|p| p.0.to_bits()).collect::<std::collections::BTreeSet<_>>().len() < 2 {
        return Err(format!("--svg: {} has no sizes to draw along", m.bench));
    }
    let hop = m.cases.iter().filter_map(|c| c.hop()).map(|h| h.1 * figure.scale).fold(f64::INFINITY, f64::min);
    let sized = m.cases.iter().any(|c| c.case.bytes.is_some());
    let span = |get: fn(&(f64, f64)) -> f64| {
        points.iter().map(get).fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)))
    };
    let (x0, x1) = span(|p| p.0);
    let (mut y0, y1) = span(|p| p.1);
    if hop.is_finite() {
        y0 = y0.min(hop);
    }
    let unit = figure.unit.replace("us", "µs");
    let title = format!("{} ({}, median of the blocks)", m.bench, figure.name);
    picture(&title, path, &lines, (x0, x1, y0 * 0.7, y1 * 1.6), hop.is_finite().then_some(hop), sized, &unit)
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// A title and its points.
pub type Line = (String, Vec<(f64, f64)>);

/// Draws lines of times over counts.
pub fn counts(title: &str, path: &Path, lines: &[Line], unit: &str) -> Result<(), String> {
    let lines: Vec<Line> =
        lines.iter().map(|l| (l.0.clone(), l.1.iter().map(|p| (p.0.log2(), p.1)).collect())).collect();
    let all = || lines.iter().flat_map(|l| l.1.iter().copied());
    let least = |v: fn((f64, f64)) -> f64| all().map(v).fold(f64::INFINITY, f64::min);
    let most = |v: fn((f64, f64)) -> f64| all().map(v).fold(0.0, f64::max);
    let span = (least(|p| p.0), most(|p| p.0), least(|p| p.1) * 0.7, most(|p| p.1) * 1.6);
    picture(title, path, &lines, span, None, false, unit).map_err(|e| format!("{}: {e}", path.display()))
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn picture(
    title: &str,
    path: &Path,
    lines: &[Line],
    (x0, x1, y0, y1): (f64, f64, f64, f64),
    hop: Option<f64>,
    sized: bool,
    unit: &str,
) -> Drawn {
    let area = SVGBackend::new(path, (960, 640)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(18)
        .caption(title, ("sans-serif", 24))
        .x_label_area_size(52)
        .y_label_area_size(74)
        .build_cartesian_2d(x0 - 0.3..x1 + 0.3, (y0..y1).log_scale())?;
    // The horizontal axis is in powers of two; labels stand at whole ones.
    let label = |x: &f64| {
        let n = x.exp2().round() as usize;
        if sized { size_text(n) } else { n.to_string() }
    };
    chart
        .configure_mesh()
        .bold_line_style(GREY.mix(0.35))
        .light_line_style(GREY.mix(0.12))
        .x_labels(14)
        .x_desc(if sized { "message size" } else { "number" })
        .y_desc(unit)
        .x_label_formatter(&label)
        .y_label_formatter(&|y: &f64| if *y >= 1.0 { format!("{y:.0}") } else { format!("{y}") })
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .draw()?;
    for (n, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let style = colour.stroke_width(if n == 0 { 3 } else { 2 });
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
        chart.draw_series(points.iter().map(|p| Circle::new(*p, 4, colour.filled())))?;
    }
    if let Some(h) = hop {
        let style = GREY.stroke_width(2);
        chart
            .draw_series(DashedLineSeries::new([(x0, h), (x1, h)], 6, 5, style))?
            .label("raw hop of one cache line")
            .legend(move |(x, y)| {
                let dash = |from: i32, to: i32| PathElement::new(vec![(from, 0), (to, 0)], style);
                EmptyElement::at((x, y)) + dash(0, 9) + dash(13, 22)
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .margin(14)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY.mix(0.5))
        .label_font(("sans-serif", 17))
        .draw()?;
    area.present()?;
    Ok(())
}
