//! Figures as SVG, as separate files and inside pages, which [`page`] frames.
//!
//! A [`Figure`] is rows of panels: a [`Chart`] of [`Series`] over two [`Axis`], or a [`Heatmap`] of a matrix.
//! The caller gives the data. This crate chooses ticks, number formats, label widths and colours, in the same
//! way for all figures:
//!
//! - every axis has a title and at least two labelled ticks, whatever range the data have;
//! - a chart of several series has a legend, in the order of the series; names at the ends of lines keep a
//!   distance;
//! - errors of up to three lines are bands, and those of more lines bars at a few places;
//! - numbers that are not finite are omitted, and a panel without points is not an error.
//!
//! ```
//! use antinoise_chart::{Axis, Chart, Figure, LineStyle, Series};
//! let chart = Chart {
//!     title: "Accuracy".into(),
//!     x: Axis::linear("training step").whole(),
//!     y: Axis::linear("test accuracy (percent)").covering(0.0),
//!     series: vec![Series::new("identity", LineStyle::Line, [(10.0, 61.5), (20.0, 74.0)])],
//! };
//! let svg = Figure { width: 720, plot_height: 300, background: true, rows: vec![vec![chart.into()]] }.svg()?;
//! assert!(svg.starts_with("<svg") && svg.contains("training step"));
//! # Ok::<(), antinoise_chart::Error>(())
//! ```
//!
//! Layers: each line uses only the lines above it.
//!
//! ```layers
//! error, text, tick, color, series: errors; widths of text; positions of ticks; colours; data
//! axis, pen: an axis and its ticks; lines, marks and text on an area
//! scale, header: the scale and ticks of a drawn axis; titles and legends
//! error_marks, line_ends: error bands and bars; names at the ends of lines
//! chart, heatmap: the two kinds of panels
//! figure: rows of panels
//! page: an HTML page around figures
//! ```

mod axis;
mod chart;
mod color;
mod error;
mod error_marks;
mod figure;
mod header;
mod heatmap;
mod line_ends;
pub mod page;
mod pen;
mod scale;
mod series;
mod text;
mod tick;

pub use axis::Axis;
pub use chart::Chart;
pub use color::{SERIES, theme};
pub use error::Error;
pub use figure::{Figure, Panel};
pub use heatmap::Heatmap;
pub use series::{LineStyle, Point, Series};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
