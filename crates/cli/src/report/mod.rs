//! Reports of several runs: HTML files that need no network.

mod content;
mod epsilons;
mod page;
#[cfg(test)]
mod tests;

use antinoise_input::InvalidParameter;
pub use content::{Accuracy, AtEpsilon, Epsilons, Report, Run};
pub use epsilons::TOGETHER;

use crate::failure::Result;

impl Report {
    /// The report as HTML, with its figures as SVG and its style inside.
    ///
    /// # Errors
    /// When there is no run, or a figure cannot be drawn.
    pub fn to_html(&self) -> Result<String> {
        if self.runs.is_empty() {
            return Err(InvalidParameter::new("number of runs in a report", 0, "at least 1").into());
        }
        page::html(self)
    }
}

impl Epsilons {
    /// Accuracy against epsilon as HTML, with its figure as SVG and its style inside.
    ///
    /// # Errors
    /// When the figure cannot be drawn.
    pub fn to_html(&self) -> Result<String> {
        epsilons::html(self)
    }
}
