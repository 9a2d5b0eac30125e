//! Series over two axes.

use plotters::prelude::*;

use crate::color::{GRID, INK};
use crate::error::{Result, failed};
use crate::error_marks::{Context, ErrorMarks, draw_errors};
use crate::header::{Header, LEADING, UNIT, look};
use crate::line_ends::LineEnds;
use crate::pen::{Area, Pen, Words, mark, px, style, width};
use crate::scale::{Direction, Scale, TICK_TEXT};
use crate::series::{runs, thinned};
use crate::text::{ems, wrapped};
use crate::{Axis, LineStyle, Point, Series};

/// Series over two axes.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The title; empty if the page has one.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data. Several series with points have a legend; lines that end together also have their names at
    /// their ends, where these fit. A series' colour follows from its index.
    pub series: Vec<Series>,
}

const TICK: f64 = 4.0;
/// Largest number of points that have marks on a line.
const MAX_MARKS: usize = 80;

impl Chart {
    /// Whether there is no point to draw.
    ///
    /// ```
    /// use antinoise_chart::{Axis, Chart, LineStyle, Series};
    /// let series = vec![Series::new("nothing", LineStyle::Line, [(1.0, f64::NAN)])];
    /// let chart = Chart { title: String::new(), x: Axis::linear("x"), y: Axis::linear("y"), series };
    /// assert!(chart.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.iter().all(|point| !self.shows(point)))
    }

    fn shows(&self, point: &Point) -> bool {
        self.x.shows(point.x) && self.y.shows(point.y)
    }

    /// The header above the plot, and the height of the axis below it, in pixels.
    pub(crate) fn frame(&self, across: f64) -> (Header, f64) {
        let drawn = |series: &Series| series.points.iter().any(|point| self.shows(point));
        let names = self.series.iter().enumerate().filter(|(_, series)| drawn(series));
        let names: Vec<(usize, &str)> = names.map(|(i, series)| (i, &series.name[..])).collect();
        let legend = if self.series.len() > 1 { &names[..] } else { &[] };
        let header = Header::new(&self.title, legend, &self.y.title, across);
        let lines = wrapped(&self.x.title, across / UNIT.size).len() as f64;
        (header, 2.0 * TICK + TICK_TEXT * LEADING + lines * UNIT.size * LEADING)
    }

    /// Draws on an area of this size, with a margin.
    pub(crate) fn draw(&self, area: &Area, (across, down): (f64, f64), margin: f64) -> Result<()> {
        let pen = Pen { area };
        let inner = across - 2.0 * margin;
        let (header, footer) = self.frame(inner);
        let errors = ErrorMarks::of(&self.series);
        header.draw(&pen, margin, &self.series, matches!(errors, ErrorMarks::Bands { .. }))?;
        let top = margin + header.height();
        let height = down - margin - top - footer;
        let place = |x: f64| if self.x.logarithmic { x.ln() } else { x };
        let thin = |series: &Series| runs(series, thinned(&series.points, |point| self.shows(point), place));
        let rows: Vec<Vec<Vec<Point>>> = self.series.iter().map(thin).collect();
        let points = || rows.iter().flatten().flatten();
        let y = Scale::new(&self.y, points().flat_map(Point::ends), Direction::Up, height);
        let left = y.widest() + 2.0 * TICK;
        let ends = LineEnds::of(&self.series, &rows, inner);
        let wide = inner - left - ends.width();
        let x = Scale::new(&self.x, points().map(|point| point.x), Direction::Across, wide);
        // The last number may extend beyond the end of its axis.
        let last = x.ticks.iter().map(|tick| {
            let to_the_right = wide * (1.0 - x.fraction(tick.at));
            0.5 * TICK_TEXT * ems(&tick.label) - to_the_right
        });
        let right = last.fold(ends.width(), f64::max);
        let plot = Plot { margin, left, top, right, height, footer: 2.0 * TICK + TICK_TEXT * LEADING };
        let corners = [(margin + left, top), (across - margin - right, top + height)];
        ends.draw(&pen, (&x, &y), corners, &self.series)?;
        self.plot(area, (x, y), (&rows, errors), plot)?;
        let middle = margin + left + 0.5 * (inner - left - right);
        for (i, text) in wrapped(&self.x.title, inner / UNIT.size).iter().enumerate() {
            let at = top + height + plot.footer + (i as f64 + 0.5) * UNIT.size * LEADING;
            let half = 0.5 * UNIT.size * ems(text);
            let middle = middle.min(across - margin - half).max(margin + half);
            pen.text(text, (middle, at), Words { centered: true, ..UNIT }, INK)?;
        }
        Ok(())
    }

    fn plot(
        &self,
        area: &Area,
        (x, y): (Scale, Scale),
        (rows, errors): (&[Vec<Vec<Point>>], ErrorMarks),
        plot: Plot,
    ) -> Result<()> {
        let scales = [x.clone(), y.clone()];
        let mut builder = ChartBuilder::on(area);
        let (_, down) = area.dim_in_pixel();
        let below = down as i32 - px(plot.top + plot.height + plot.footer);
        builder
            .margin_left(px(plot.margin))
            .margin_right(px(plot.margin + plot.right))
            .margin_top(px(plot.top))
            .margin_bottom(below)
            .x_label_area_size(px(plot.footer))
            .y_label_area_size(px(plot.left));
        let mut context = builder.build_cartesian_2d(x, y).map_err(failed)?;
        let (text, line) = (style(TICK_TEXT, false, INK), GRID.stroke_width(width(1.0)));
        context
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(line)
            .axis_style(INK.mix(0.6).stroke_width(width(1.0)))
            .set_all_tick_mark_size(px(TICK))
            .label_style(text)
            .draw()
            .map_err(failed)?;
        let all = || {
            let series = self.series.iter().zip(rows).enumerate();
            series.flat_map(|(i, (series, runs))| runs.iter().map(move |run| (i, series, run)))
        };
        for (i, series, run) in all() {
            draw_errors(&mut context, (i, series, run), &scales, errors)?;
        }
        for (i, series, run) in all() {
            draw_series(&mut context, series, run, look(i, series))?;
        }
        draw_labels(&mut context, &self.series)
    }
}

/// The position of the plot on its panel.
#[derive(Clone, Copy)]
struct Plot {
    margin: f64,
    left: f64,
    top: f64,
    right: f64,
    height: f64,
    footer: f64,
}

fn draw_series(context: &mut Context, series: &Series, row: &[Point], look: (RGBColor, bool)) -> Result<()> {
    let points = || row.iter().map(|point| (point.x, point.y));
    let (solid, thin) = (look.0.stroke_width(width(2.25)), look.0.stroke_width(width(1.5)));
    let dashes =
        |dash: f64, gap: f64| DashedLineSeries::new(points().collect::<Vec<_>>(), px(dash), px(gap), thin);
    match series.style {
        LineStyle::Line | LineStyle::Marked => {
            context.draw_series(LineSeries::new(points(), solid)).map(|_| ())
        }
        LineStyle::Dashed => context.draw_series(dashes(8.0, 5.0)).map(|_| ()),
        LineStyle::Dotted => context.draw_series(dashes(2.5, 3.0)).map(|_| ()),
        LineStyle::Points => Ok(()),
    }
    .map_err(failed)?;
    // A line of one point would be invisible.
    let marked = match series.style {
        LineStyle::Marked => row.len() <= MAX_MARKS,
        LineStyle::Points => true,
        LineStyle::Line | LineStyle::Dashed | LineStyle::Dotted => row.len() == 1,
    };
    if marked {
        context.draw_series(points().map(|point| mark(point, look))).map_err(failed)?;
    }
    Ok(())
}

/// Names next to their points, on the left in the chart's right half; none covers an earlier one.
fn draw_labels(context: &mut Context, series: &[Series]) -> Result<()> {
    let (across, down) = context.plotting_area().get_pixel_range();
    let line = TICK_TEXT * LEADING;
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (point, label) in series.iter().flat_map(|series| series.points.iter().zip(&series.labels)) {
        let (x, y) = context.backend_coord(&(point.x, point.y));
        let long = f64::from(px(TICK_TEXT * ems(label)));
        let is_right = 2 * x > across.start + across.end;
        let start = if is_right {
            f64::from(x) - long - f64::from(px(line)) / 2.0
        } else {
            f64::from(x + px(line) / 2)
        };
        let middle = f64::from((y - px(line) * 3 / 4).max(down.start + px(line) / 2));
        let covers = |&(other, width, height): &(f64, f64, f64)| {
            start < other + width && other < start + long && (middle - height).abs() < f64::from(px(line))
        };
        if taken.iter().any(covers) {
            continue;
        }
        taken.push((start, long, middle));
        let at = (start as i32 - x, middle as i32 - y - px(line) / 2);
        let name =
            EmptyElement::at((point.x, point.y)) + Text::new(label.clone(), at, style(TICK_TEXT, false, INK));
        context.draw_series(std::iter::once(name)).map_err(failed)?;
    }
    Ok(())
}
