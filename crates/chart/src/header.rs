//! The header of a plot: its title, the legend and the unit.

use plotters::style::{Color, RGBColor};

use crate::color::{INK, of_series};
use crate::error::Result;
use crate::pen::{Pen, Words};
use crate::text::{ems, line, wrapped};
use crate::{LineStyle, SERIES, Series};

/// Opacity of an error band.
pub(crate) const BAND: f64 = 0.18;
const TITLE: Words = Words { size: 15.0, bold: true, centered: false };
const NAME: Words = Words { size: 13.0, bold: false, centered: false };
/// The style of axis titles.
pub(crate) const UNIT: Words = Words { size: 12.5, bold: false, centered: false };
/// Height of a line of text, as a multiple of its size.
pub(crate) const LEADING: f64 = 1.4;
/// Widths of the sample of a series before its name, and of the space after the name.
const SAMPLE: f64 = 26.0;
const AFTER_NAME: f64 = 18.0;

/// A name in the legend and its position.
struct Entry {
    series: usize,
    x: f64,
    row: usize,
    name: String,
}

/// The text above a chart.
pub(crate) struct Header {
    title: Vec<String>,
    legend: Vec<Entry>,
    unit: Vec<String>,
}

impl Header {
    /// Creates a header whose legend has these series, by index.
    pub(crate) fn new(title: &str, legend: &[(usize, &str)], unit: &str, across: f64) -> Self {
        let title = wrapped(&line(title, f64::INFINITY), across / TITLE.size);
        Self { title, legend: entries(legend, across), unit: wrapped(unit, across / UNIT.size) }
    }

    pub(crate) fn height(&self) -> f64 {
        let rows = self.legend.last().map_or(0, |entry| entry.row + 1) as f64;
        let lines = |count: usize, words: Words| count as f64 * words.size * LEADING;
        let gap = if rows > 0.0 { 8.0 } else { 0.0 };
        lines(self.title.len(), TITLE) + rows * NAME.size * LEADING + gap + lines(self.unit.len(), UNIT) + 8.0
    }

    /// Draws from the upper left corner, to the right of the margin. `has_bands` says whether the errors of
    /// lines are bands.
    pub(crate) fn draw(&self, pen: &Pen, margin: f64, series: &[Series], has_bands: bool) -> Result<()> {
        let mut y = margin;
        for text in &self.title {
            y += TITLE.size * LEADING;
            pen.text(text, (margin, y - 0.5 * TITLE.size * LEADING), TITLE, INK)?;
        }
        for entry in &self.legend {
            let at = (margin + entry.x, y + (entry.row as f64 + 0.5) * NAME.size * LEADING + 4.0);
            sample(pen, at, (entry.series, &series[entry.series]), has_bands)?;
            pen.text(&entry.name, (at.0 + SAMPLE + 6.0, at.1), NAME, INK)?;
        }
        let rows = self.legend.last().map_or(0, |entry| entry.row + 1) as f64;
        y += rows * NAME.size * LEADING + if rows > 0.0 { 8.0 } else { 0.0 };
        for text in &self.unit {
            y += UNIT.size * LEADING;
            pen.text(text, (margin, y - 0.5 * UNIT.size * LEADING), UNIT, INK)?;
        }
        Ok(())
    }
}

/// The legend of these series, in rows.
fn entries(names: &[(usize, &str)], across: f64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut x, mut row) = (0.0, 0);
    for &(series, name) in names {
        let name = line(name, (across - SAMPLE - 6.0) / NAME.size);
        let needed = SAMPLE + 6.0 + NAME.size * ems(&name);
        if x > 0.0 && x + needed > across {
            (x, row) = (0.0, row + 1);
        }
        entries.push(Entry { series, x, row, name });
        x += needed + AFTER_NAME;
    }
    entries
}

/// The colour of series `i`, and whether its marks are filled.
pub(crate) fn look(i: usize, series: &Series) -> (RGBColor, bool) {
    let color = if series.is_reference() { INK } else { of_series(i) };
    // Alternately hollow marks keep two equal series visible; the order flips after a round of colours.
    (color, (i + i / SERIES).is_multiple_of(2))
}

fn sample(pen: &Pen, (x, y): (f64, f64), (i, series): (usize, &Series), has_bands: bool) -> Result<()> {
    let (color, filled) = look(i, series);
    if series.points.iter().any(|point| point.error.is_some()) && series.style != LineStyle::Points {
        if has_bands {
            pen.rectangle([(x, y - 5.0), (x + SAMPLE, y + 5.0)], &color.mix(BAND))?;
        } else {
            let middle = x + 0.5 * SAMPLE;
            pen.line([(middle, y - 5.0), (middle, y + 5.0)], 1.25, color)?;
        }
    }
    match series.style {
        LineStyle::Line | LineStyle::Marked => pen.line([(x, y), (x + SAMPLE, y)], 2.25, color)?,
        LineStyle::Dashed => {
            for (from, to) in [(0.0, 10.0), (16.0, 26.0)] {
                pen.line([(x + from, y), (x + to, y)], 1.5, color)?;
            }
        }
        LineStyle::Dotted => {
            for i in 0..5 {
                let from = x + 5.6 * f64::from(i);
                pen.line([(from, y), (from + 2.8, y)], 1.5, color)?;
            }
        }
        LineStyle::Points => {}
    }
    if matches!(series.style, LineStyle::Marked | LineStyle::Points) {
        pen.mark((x + 0.5 * SAMPLE, y), (color, filled))?;
    }
    Ok(())
}
