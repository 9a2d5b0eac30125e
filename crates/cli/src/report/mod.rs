//! Reports: HTML files that need no network.

#[cfg(feature = "train")]
mod content;
#[cfg(feature = "train")]
mod epsilons;
pub mod frame;
#[cfg(feature = "train")]
mod page;
#[cfg(all(test, feature = "train"))]
mod tests;

#[cfg(feature = "train")]
use antinoise_input::InvalidParameter;
#[cfg(feature = "train")]
pub use content::{Accuracy, AtEpsilon, Epsilons, Report, Run};
#[cfg(feature = "train")]
pub use epsilons::TOGETHER;

#[cfg(feature = "train")]
use crate::failure::Result;

#[cfg(feature = "train")]
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

#[cfg(feature = "train")]
impl Epsilons {
    /// Accuracy against epsilon as HTML, with its figure as SVG and its style inside.
    ///
    /// # Errors
    /// When the figure cannot be drawn.
    pub fn to_html(&self) -> Result<String> {
        epsilons::html(self)
    }
}
