//! Figures: rows of panels.

use plotters::prelude::*;

use crate::error::{Result, failed};
use crate::header::Header;
use crate::pen::{Area, PIXELS, px};
use crate::{Chart, Heatmap};

/// A part of a figure.
#[derive(Debug, Clone)]
pub enum Panel {
    /// Series over two axes.
    Chart(Chart),
    /// A matrix.
    Heatmap(Heatmap),
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Heatmap> for Panel {
    fn from(map: Heatmap) -> Self {
        Self::Heatmap(map)
    }
}

/// Rows of panels; the panels of a row are equally wide.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Width in pixels of the page; sizes of text are in the same pixels.
    pub width: u32,
    /// Height of the area that axes enclose, in the same pixels; titles and legends add to it.
    pub plot_height: u32,
    /// Whether the background is white instead of transparent.
    pub background: bool,
    /// The rows, from the top.
    pub rows: Vec<Vec<Panel>>,
}

/// Space around a panel with a background, and without, in pixels.
const MARGIN: f64 = 14.0;
const EDGE: f64 = 2.0;
const CRISP: &str = "<style>rect { shape-rendering: crispEdges; }</style>\n";

impl Panel {
    fn height(&self, across: f64, plot: f64, margin: f64) -> f64 {
        let inner = across - 2.0 * margin;
        let (header, footer): (Header, f64) = match self {
            Self::Chart(chart) => chart.frame(inner),
            Self::Heatmap(map) => map.frame(inner),
        };
        2.0 * margin + header.height() + plot + footer
    }

    fn draw(&self, area: &Area, size: (f64, f64), margin: f64) -> Result<()> {
        match self {
            Self::Chart(chart) => chart.draw(area, size, margin),
            Self::Heatmap(map) => map.draw(area, size, margin),
        }
    }
}

impl Figure {
    /// The figure as an SVG element, `width` pixels wide.
    ///
    /// # Errors
    /// When the drawing library refuses.
    pub fn svg(&self) -> Result<String> {
        let (width, plot) = (f64::from(self.width), f64::from(self.plot_height));
        let margin = if self.background { MARGIN } else { EDGE };
        let across = |row: &[Panel]| width / row.len().max(1) as f64;
        let heights: Vec<f64> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|panel| panel.height(across(row), plot, margin)).fold(0.0, f64::max))
            .collect();
        let height = heights.iter().sum::<f64>().ceil();
        let size = (px(width).unsigned_abs(), px(height).unsigned_abs());
        let mut svg = String::new();
        {
            let mut rest = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            if self.background {
                rest.fill(&WHITE).map_err(failed)?;
            }
            for (row, &height) in self.rows.iter().zip(&heights) {
                let (upper, lower) = rest.split_vertically(px(height));
                for (area, panel) in upper.split_evenly((1, row.len().max(1))).iter().zip(row) {
                    panel.draw(area, (across(row), height), margin)?;
                }
                rest = lower;
            }
            rest.present().map_err(failed)?;
        }
        let drawn = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
        let shown = format!("width=\"{}\" height=\"{}\"", width, f64::from(size.1) / PIXELS);
        let svg = svg.replacen(&drawn, &shown, 1);
        let has_map = self.rows.iter().flatten().any(|panel| matches!(panel, Panel::Heatmap(_)));
        // Without it the background shows between cells, which are smoothed separately.
        Ok(if has_map { svg.replacen(">\n", &format!(">\n{CRISP}"), 1) } else { svg })
    }
}
