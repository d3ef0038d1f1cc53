//! The picture: both axes logarithmic, a line for each number of shares and place of the counters.

use std::path::Path;

use plotters::prelude::*;

const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(230, 159, 0),
    RGBColor(0, 130, 90),
    RGBColor(120, 60, 160),
    RGBColor(90, 90, 90),
];

/// A title, and ns a message over senders.
pub type Line = (String, Vec<(f64, f64)>);

/// Draws the lines.
pub fn draw(path: &Path, lines: &[Line]) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.1);
    let span = |of: fn(&(f64, f64)) -> f64| {
        let (least, most) = points().map(of).fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        (least * 0.7..most * 1.6).log_scale()
    };
    let area = SVGBackend::new(path, (960, 640)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(18)
        .caption("incast: what shares of the counter buy", ("sans-serif", 24))
        .x_label_area_size(52)
        .y_label_area_size(74)
        .build_cartesian_2d(span(|p| p.0), span(|p| p.1))?;
    chart.configure_mesh().x_desc("senders").y_desc("ns a message").label_style(("sans-serif", 16)).draw()?;
    for ((title, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let sample = |at: (i32, i32)| PathElement::new(vec![at, (at.0 + 22, at.1)], colour.stroke_width(2));
        let drawn = chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        drawn.label(title).legend(sample);
        chart.draw_series(points.iter().map(|p| Circle::new(*p, 4, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .label_font(("sans-serif", 17))
        .draw()?;
    area.present()?;
    Ok(())
}
