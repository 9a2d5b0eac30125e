//! An audit of one training: canaries that take part or not, and guesses which did.

mod canaries;
mod guesses;
mod run;
mod scores;

pub use canaries::Canary;
pub use guesses::Guesses;
pub use run::{OneRun, OneRunReport, one_run};
