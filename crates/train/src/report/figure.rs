//! Line charts as SVG, in colours that the page's style replaces by those of its theme.

use std::fmt::Display;

use plotters::prelude::*;

use crate::Error;

/// One colour a run; the page's style knows each and has another for dark screens.
pub(super) const SERIES: [RGBColor; 6] = [
    RGBColor(217, 119, 6),
    RGBColor(37, 99, 235),
    RGBColor(5, 150, 105),
    RGBColor(147, 51, 234),
    RGBColor(219, 39, 119),
    RGBColor(87, 83, 78),
];
const INK: RGBColor = RGBColor(75, 85, 99);
const GRID: RGBColor = RGBColor(229, 231, 235);
/// The backend rounds to whole pixels: with many of them curves stay smooth. The page scales the figure.
const PIXELS: u32 = 4;
const MOST_POINTS: usize = 360;

/// A line chart, one curve a run.
pub(super) struct Figure<'a> {
    /// Width and height in the page's pixels, which text is sized for.
    pub(super) size: (u32, u32),
    pub(super) x_label: &'a str,
    /// How a number on the y axis is written.
    pub(super) y_format: fn(f64) -> String,
    /// What the y axis covers at least.
    pub(super) y_covers: (f64, f64),
    /// Whether values at whole numbers alone have a meaning: then each gets a mark.
    pub(super) marks: bool,
    pub(super) curves: Vec<Vec<(f64, f64)>>,
}

type Points = Vec<(f64, f64)>;

impl Figure<'_> {
    /// The figure as an SVG element, or nothing where there is no finite point to draw.
    pub(super) fn svg(&self) -> Result<Option<String>, Error> {
        let curves: Vec<Points> = self.curves.iter().map(|curve| thinned(curve)).collect();
        let points = || curves.iter().flatten();
        let Some((x_low, x_high)) = range(points().map(|point| point.0)) else {
            return Ok(None);
        };
        let y_all = points().map(|point| point.1).chain([self.y_covers.0, self.y_covers.1]);
        let (y_low, y_high) = range(y_all).unwrap_or(self.y_covers);
        let room = 0.04 * (y_high - y_low).max(f64::MIN_POSITIVE);
        let y_low = if y_low == self.y_covers.0 { y_low } else { y_low - room };
        let x_high = if x_high > x_low { x_high } else { x_low + 1.0 };
        let mut svg = String::new();
        self.draw(&mut svg, &curves, (x_low, x_high), (y_low, y_high + room)).map_err(failed)?;
        Ok(Some(svg))
    }

    fn draw(
        &self,
        svg: &mut String,
        curves: &[Points],
        x: (f64, f64),
        y: (f64, f64),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let px = |pixels: u32| pixels * PIXELS;
        let size = (px(self.size.0), px(self.size.1));
        let font = |size: u32| ("system-ui, sans-serif", px(size)).into_font().color(&INK);
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(px(8))
            .margin_right(px(16))
            .x_label_area_size(px(48))
            .y_label_area_size(px(56))
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(self.size.0 as usize / 80)
            .y_labels(self.size.1 as usize / 40)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(PIXELS))
            .axis_style(GRID.stroke_width(PIXELS))
            .set_all_tick_mark_size(px(5))
            .label_style(font(17))
            .axis_desc_style(font(17))
            .x_desc(self.x_label)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|&y| (self.y_format)(y))
            .draw()?;
        for (curve, color) in curves.iter().zip(SERIES.iter().cycle()) {
            chart.draw_series(LineSeries::new(curve.iter().copied(), color.stroke_width(5 * PIXELS / 2)))?;
            if self.marks {
                let mark = |&point: &(f64, f64)| Circle::new(point, px(3), color.filled());
                chart.draw_series(curve.iter().map(mark))?;
            }
        }
        area.present()?;
        Ok(())
    }
}

fn failed(error: impl Display) -> Error {
    Error::Figure(error.to_string())
}

/// The finite points, at most `MOST_POINTS` of them, evenly spaced, the last included.
fn thinned(curve: &[(f64, f64)]) -> Points {
    let finite: Points = curve.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    if finite.len() <= MOST_POINTS {
        return finite;
    }
    (0..MOST_POINTS).map(|i| finite[i * (finite.len() - 1) / (MOST_POINTS - 1)]).collect()
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        Some((low, high)) => Some((value.min(low), value.max(high))),
        None => Some((value, value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_are_thinned_and_what_is_not_finite_is_left_out() {
        let curve: Points = (0..10_000).map(|i| (i.into(), 1.0)).collect();
        let thin = thinned(&curve);
        assert!(thin.len() == MOST_POINTS && thin[0].0 == 0.0 && thin[MOST_POINTS - 1].0 == 9999.0);
        assert_eq!(thinned(&[(0.0, f64::NAN), (1.0, 2.0), (f64::INFINITY, 1.0)]), [(1.0, 2.0)]);
    }

    #[test]
    fn no_point_is_no_figure_and_one_point_is_one() {
        let figure = |curves| Figure {
            size: (300, 200),
            x_label: "step",
            y_format: |y| y.to_string(),
            y_covers: (0.0, 0.0),
            marks: true,
            curves,
        };
        assert_eq!(figure(vec![vec![], vec![(0.0, f64::NAN)]]).svg().unwrap(), None);
        assert!(figure(vec![vec![(3.0, 0.0)]]).svg().unwrap().unwrap().contains("<circle"));
    }
}
