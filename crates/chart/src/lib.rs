//! Figures as SVG, as separate files and inside pages.
//!
//! A [`Figure`] is rows of panels: a [`Chart`] of [`Series`] over two [`Axis`], or a [`Map`] of a matrix. The caller gives
//! the data. This crate chooses ticks, number formats, label widths and colours, in the same way for all
//! figures:
//!
//! - every axis has a title and at least two labelled ticks, whatever range the data have;
//! - a chart of several series has a legend, in the order in which they are given;
//! - numbers that are not finite are left out, and a panel without points is not an error.
//!
//! ```
//! use antinoise_chart::{Axis, Chart, Figure, Look, Series};
//! let chart = Chart {
//!     title: "Accuracy".into(),
//!     x: Axis::linear("training step").whole(),
//!     y: Axis::linear("test accuracy (percent)").covering(0.0),
//!     series: vec![Series::new("identity", Look::Line, [(10.0, 61.5), (20.0, 74.0)])],
//! };
//! let svg = Figure { width: 720, plot_height: 300, paper: true, rows: vec![vec![chart.into()]] }.svg()?;
//! assert!(svg.starts_with("<svg") && svg.contains("training step"));
//! # Ok::<(), antinoise_chart::Error>(())
//! ```
//!
//! Layers: each line uses only the lines above it.
//!
//! ```layers
//! error, text, tick, color, series: what can go wrong; widths of words; where ticks lie; colours; data
//! axis, pen: an axis and its ticks; lines, marks and words on an area
//! ruler, header: axes as they are drawn; titles and legends
//! chart, map: the two kinds of panels
//! figure: rows of panels
//! ```

mod axis;
mod chart;
mod color;
mod error;
mod figure;
mod header;
mod map;
mod pen;
mod ruler;
mod series;
mod text;
mod tick;

pub use axis::Axis;
pub use chart::Chart;
pub use color::{SERIES, theme};
pub use error::Error;
pub use figure::{Figure, Panel};
pub use map::Map;
pub use series::{Look, Point, Series};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
