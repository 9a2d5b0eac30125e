//! A matrix as a map of its entries.

use plotters::prelude::*;

use crate::Axis;
use crate::color::INK;
use crate::error::{Result, failed};
use crate::header::Header;
use crate::pen::{Area, Pen, Words, px, style, width};
use crate::scale::{Direction, Scale, TICK_TEXT};
use crate::tick::short;

/// A matrix drawn as a map, with a key to its colours: blue above zero, orange below, darker with the root of
/// the magnitude, so that small entries show.
#[derive(Debug, Clone)]
pub struct Heatmap {
    /// The title.
    pub title: String,
    /// Title of the columns.
    pub x: String,
    /// Title of the rows.
    pub y: String,
    cells: Vec<Cell>,
    /// Numbers of rows and columns of the matrix.
    size: (usize, usize),
}

/// A block of entries by its first row and column, one past its last ones, and the entry of largest
/// magnitude.
#[derive(Debug, Clone)]
struct Cell {
    from: (usize, usize),
    to: (usize, usize),
    entry: f64,
}

/// Largest number of cells in each direction.
const MAX_CELLS: usize = 64;

const BELOW: f64 = 48.0;
const TICK: f64 = 4.0;
/// Widths of the colour key and of its numbers.
const KEY: f64 = 12.0;
const KEY_TEXT: f64 = 46.0;
const KEY_STEPS: u32 = 48;

impl Heatmap {
    /// A map of the matrix with these columns, at most 64 cells a side: each shows the covered entry of
    /// largest magnitude. Columns may be shorter than the matrix; missing entries are 0.
    ///
    /// ```
    /// use antinoise_chart::{Figure, Heatmap};
    /// let map = Heatmap::of_columns("A", ("column", "row"), &[vec![1.0, 0.5], vec![0.0, 1.0]]);
    /// let svg = Figure { width: 400, plot_height: 300, background: true, rows: vec![vec![map.into()]] }.svg()?;
    /// assert!(svg.contains("column") && !svg.contains("NaN"));
    /// # Ok::<(), antinoise_chart::Error>(())
    /// ```
    pub fn of_columns(title: impl Into<String>, (x, y): (&str, &str), columns: &[Vec<f64>]) -> Self {
        let (rows, width) = (columns.iter().map(Vec::len).max().unwrap_or(0), columns.len());
        let (down, across) = (rows.div_ceil(MAX_CELLS).max(1), width.div_ceil(MAX_CELLS).max(1));
        let mut cells = Vec::new();
        for j in (0..width).step_by(across) {
            let right = (j + across).min(width);
            for i in (0..rows).step_by(down) {
                let below = (i + down).min(rows);
                let block = columns[j..right].iter().flat_map(|column| column.iter().take(below).skip(i));
                let entry = block
                    .copied()
                    .filter(|x| x.is_finite())
                    .fold(0.0, |most: f64, x| if x.abs() > most.abs() { x } else { most });
                cells.push(Cell { from: (i, j), to: (below, right), entry });
            }
        }
        cells.retain(|cell| cell.entry != 0.0);
        Self { title: title.into(), x: x.into(), y: y.into(), cells, size: (rows, width) }
    }

    pub(crate) fn frame(&self, across: f64) -> (Header, f64) {
        (Header::new(&self.title, &[], &self.y, across), BELOW)
    }

    fn largest(&self) -> f64 {
        self.cells.iter().fold(0.0, |largest, cell| cell.entry.abs().max(largest))
    }

    /// Draws on an area of this size, with a margin.
    pub(crate) fn draw(&self, area: &Area, (across, down): (f64, f64), margin: f64) -> Result<()> {
        let pen = Pen { area };
        let inner = across - 2.0 * margin;
        let (header, _) = self.frame(inner);
        header.draw(&pen, margin, &[], true)?;
        let top = margin + header.height();
        let height = down - margin - top - BELOW;
        let (rows, columns) = (self.size.0.max(1) as f64, self.size.1.max(1) as f64);
        let axis = |size: f64| Axis::linear("").whole().covering(0.0).covering(size);
        let y = Scale::new(&axis(rows).reversed(), std::iter::empty(), Direction::Up, height);
        let left = y.widest() + 2.0 * TICK;
        let right = KEY + KEY_TEXT + 12.0;
        let x = Scale::new(&axis(columns), std::iter::empty(), Direction::Across, inner - left - right);
        let mut builder = ChartBuilder::on(area);
        builder
            .margin_left(px(margin))
            .margin_right(px(margin + right))
            .margin_top(px(top))
            .margin_bottom(px(margin + BELOW - 24.0))
            .x_label_area_size(px(24.0))
            .y_label_area_size(px(left));
        let mut context = builder.build_cartesian_2d(x, y).map_err(failed)?;
        context
            .configure_mesh()
            .disable_mesh()
            .axis_style(INK.mix(0.6).stroke_width(width(1.0)))
            .set_all_tick_mark_size(px(TICK))
            .label_style(style(TICK_TEXT, false, INK))
            .draw()
            .map_err(failed)?;
        let largest = self.largest();
        context.draw_series(self.rectangles(largest)).map_err(failed)?;
        let words = Words { size: 12.5, bold: false, centered: true };
        let middle = margin + left + 0.5 * (inner - left - right);
        pen.text(&self.x, (middle, down - margin - 10.0), words, INK)?;
        self.key(&pen, largest, (margin + inner - KEY - KEY_TEXT, top), height)
    }

    /// The rectangles of the non-zero cells.
    fn rectangles(&self, largest: f64) -> impl Iterator<Item = Rectangle<(f64, f64)>> {
        self.cells.iter().map(move |cell| {
            let corner = |(i, j): (usize, usize)| (j as f64, i as f64);
            Rectangle::new([corner(cell.from), corner(cell.to)], shade(cell.entry, largest).filled())
        })
    }

    fn key(&self, pen: &Pen, largest: f64, (x, top): (f64, f64), height: f64) -> Result<()> {
        let lowest = if self.cells.iter().any(|cell| cell.entry < 0.0) { -1.0 } else { 0.0 };
        let step = height / f64::from(KEY_STEPS);
        for i in 0..KEY_STEPS {
            let share = 1.0 - (f64::from(i) + 0.5) / f64::from(KEY_STEPS) * (1.0 - lowest);
            let y = top + f64::from(i) * step;
            pen.rectangle([(x, y), (x + KEY, y + step)], &shade(share * largest, largest))?;
        }
        let words = Words { size: TICK_TEXT, bold: false, centered: false };
        for share in if lowest < 0.0 { vec![1.0, 0.0, -1.0] } else { vec![1.0, 0.0] } {
            let y = top + height * (1.0 - share) / (1.0 - lowest);
            pen.text(&short(share * largest, 2), (x + KEY + 6.0, y), words, INK)?;
        }
        Ok(())
    }
}

/// Blue above zero, orange below.
fn shade(x: f64, largest: f64) -> RGBColor {
    let strength = if largest > 0.0 { (x.abs() / largest).sqrt() } else { 0.0 };
    let base = if x >= 0.0 { (0.0, 90.0, 160.0) } else { (213.0, 94.0, 0.0) };
    let mix = |channel: f64| (255.0 + (channel - 255.0) * strength).round() as u8;
    RGBColor(mix(base.0), mix(base.1), mix(base.2))
}
