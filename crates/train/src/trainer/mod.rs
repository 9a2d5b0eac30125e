//! Training runs: the plan's batches, clipping, the plan's noise, an optimizer.

mod run;
mod setup;
mod steps;
#[cfg(test)]
mod user_tests;

pub use run::{CheckpointInterval, Options, Outcome};
pub use setup::Setup;
pub use steps::Trainer;
