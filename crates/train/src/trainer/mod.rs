//! Training runs: the plan's batches, clipping, the plan's noise, an optimizer.

mod run;
mod setup;
mod steps;

pub use run::{Options, Outcome, Pace};
pub use setup::Setup;
pub use steps::Trainer;
