//! The picture: both axes logarithmic (sizes in powers of two), a line a contestant and state of the machine, dashed where cores are
//! far apart, and the raw hop as the limit below them.

use std::path::Path;

use plotters::prelude::*;

use super::measure::Measured;
use super::size_text;
use super::state::State;

const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(230, 159, 0),
    RGBColor(0, 130, 90),
    RGBColor(120, 60, 160),
    RGBColor(90, 90, 90),
];
const GREY: RGBColor = RGBColor(110, 110, 110);

/// Draws the last figure of a benchmark that is a time, if its cases have sizes or counts.
pub fn draw(m: &Measured, path: &Path) -> Result<(), String> {
    let f = m.figures.iter().rposition(|f| !f.share && !f.growth).unwrap_or(m.figures.len() - 1);
    let picture = svg(m, f).map_err(|e| format!("--svg: {e}"))?;
    std::fs::write(path, picture).map_err(|e| format!("{}: {e}", path.display()))
}

/// One figure of a benchmark as a picture.
pub fn svg(m: &Measured, f: usize) -> Result<String, String> {
    let figure = &m.figures[f];
    let states = |s: &State| m.cases.iter().any(|c| c.states().contains(s));
    let states: Vec<State> = State::ALL.into_iter().filter(states).collect();
    let told = |s: State| if s == State::Untold { String::new() } else { format!(", {s}") };
    let mut lines: Vec<Line> = Vec::new();
    for (state, (w, name)) in states.iter().flat_map(|s| m.names.iter().enumerate().map(move |n| (*s, n))) {
        for c in m.cases.iter().filter(|c| c.count(w, Some(state)) > 0) {
            let (Some(x), label) = (c.case.x, &c.case.label) else { continue };
            // Cases with the same size or count (in order, in reverse) are different lines: what the label says besides the size, or
            // behind the count.
            let kind = match c.case.bytes {
                Some(n) => label.replacen(&size_text(n), "", 1).trim().to_owned(),
                None => label.split_once(' ').map_or("", |k| k.1).to_owned(),
            };
            let kind = if kind.is_empty() { kind } else { format!(", {kind}") };
            let title = format!("{name}{kind}{}", told(state));
            let point = (x.log2(), c.summary(w, f, figure, Some(state)).1);
            match lines.iter_mut().find(|k| k.title == title) {
                Some(k) => k.points.push(point),
                None => lines.push(Line { title, points: vec![point], colour: w, dashed: state == State::Far }),
            }
        }
    }
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|l| l.points.iter().copied()).filter(|p| p.1 > 0.0).collect();
    if points.iter().map(|p| p.0.to_bits()).collect::<std::collections::BTreeSet<_>>().len() < 2 {
        return Err(format!("{} has no sizes to draw along", m.bench));
    }
    let hop = |s: &State| {
        let hops = m.cases.iter().filter_map(|c| c.hop(Some(*s))).map(|h| h.1 * figure.scale);
        hops.min_by(f64::total_cmp).map(|h| (h, format!("raw hop of one cache line{}", told(*s))))
    };
    let hops: Vec<(f64, String)> = states.iter().filter_map(hop).collect();
    let sized = m.cases.iter().any(|c| c.case.bytes.is_some());
    let span = |get: fn(&(f64, f64)) -> f64| {
        points.iter().map(get).fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)))
    };
    let (x0, x1) = span(|p| p.0);
    let (mut y0, y1) = span(|p| p.1);
    y0 = hops.iter().map(|h| h.0).fold(y0, f64::min);
    let unit = figure.unit.replace("us", "µs");
    let title = format!("{} ({}, median of the blocks)", m.bench, figure.name);
    let mut out = String::new();
    let within = (x0, x1, y0 * 0.7, y1 * 1.6);
    picture(&title, &mut out, &lines, within, &hops, sized, &unit).map_err(|e| e.to_string())?;
    Ok(out)
}

/// A number at the vertical axis, without the last bits of what was computed.
fn tick(y: &f64) -> String {
    if *y >= 1.0 { format!("{y:.0}") } else { ((y * 1e9).round() / 1e9).to_string() }
}

/// A line of the picture.
struct Line {
    title: String,
    points: Vec<(f64, f64)>,
    colour: usize,
    dashed: bool,
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn picture(
    title: &str,
    out: &mut String,
    lines: &[Line],
    (x0, x1, y0, y1): (f64, f64, f64, f64),
    hops: &[(f64, String)],
    sized: bool,
    unit: &str,
) -> Drawn {
    let area = SVGBackend::with_string(out, (960, 640)).into_drawing_area();
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
        .x_max_light_lines(1)
        .y_max_light_lines(5)
        .x_desc(if sized { "message size" } else { "number" })
        .y_desc(unit)
        .x_label_formatter(&label)
        .y_label_formatter(&tick)
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .draw()?;
    // What stands for a line beside its title.
    let sample = |style: ShapeStyle, dashed: bool| {
        move |at: (i32, i32)| {
            let dash = |from: i32, to: i32| PathElement::new(vec![(from, 0), (to, 0)], style);
            let gap = if dashed { 2 } else { 0 };
            EmptyElement::at(at) + dash(0, 11 - gap) + dash(11 + gap, 22)
        }
    };
    for line in lines {
        let colour = COLOURS[line.colour % COLOURS.len()];
        let style = colour.stroke_width(if line.colour == 0 { 3 } else { 2 });
        let points = line.points.iter().copied();
        let drawn = match line.dashed {
            false => chart.draw_series(LineSeries::new(points, style))?,
            true => chart.draw_series(DashedLineSeries::new(points, 6, 5, style))?,
        };
        drawn.label(&line.title).legend(sample(style, line.dashed));
        chart.draw_series(line.points.iter().map(|p| Circle::new(*p, 4, colour.filled())))?;
    }
    for (ns, title) in hops {
        let style = GREY.stroke_width(2);
        let points = [(x0, *ns), (x1, *ns)];
        chart.draw_series(DashedLineSeries::new(points, 2, 4, style))?.label(title).legend(sample(style, true));
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

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn numbers_at_the_axis_are_short() {
        let ticks = [0.1 + 0.2, 0.7000000000000001, 0.001, 1.0, 300.0].map(|y| tick(&y));
        assert_eq!(ticks, ["0.3", "0.7", "0.001", "1", "300"]);
    }
}
