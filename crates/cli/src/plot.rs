//! Common parts of the figures of several commands.

use antinoise_chart::{Figure, Panel};
use antinoise_mechanism::design::Objective;

use crate::failure::{Failure, Result};

/// Width of figures, and height of what axes enclose, in pixels.
const WIDTH: u32 = 920;
const PLOT_HEIGHT: u32 = 300;
/// Maximum number of steps that are drawn one by one.
pub const MOST_STEPS: usize = 4096;
/// Height of a row of an axis of names.
const NAME_HEIGHT: u32 = 26;

/// Panels in rows, as a separate SVG file.
pub fn file(rows: Vec<Vec<Panel>>) -> Result<String> {
    let figure = Figure { width: WIDTH, plot_height: PLOT_HEIGHT, background: true, rows };
    figure.svg().map_err(Failure::other)
}

/// As `file`, for panels with an axis of names: each name has a row.
pub fn file_of_names(names: usize, panels: impl IntoIterator<Item = Panel>) -> Result<String> {
    let plot_height = NAME_HEIGHT * names.max(2) as u32;
    let rows = panels.into_iter().map(|panel| vec![panel]).collect();
    Figure { width: WIDTH, plot_height, background: true, rows }.svg().map_err(Failure::other)
}

/// Name of a loss.
pub fn name(objective: Objective) -> &'static str {
    match objective {
        Objective::Max => "max loss",
        Objective::Rms => "RMS loss",
    }
}
