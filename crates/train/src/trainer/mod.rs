//! Training runs: the plan's batches, clipping, the plan's noise, an optimizer; and learning rates that need
//! no search.

mod default_rate;
mod run;
mod setup;
mod steps;
#[cfg(test)]
mod user_tests;

pub use default_rate::{default_rate, mean_gradient_noise};
pub use run::{CheckpointInterval, Options, Outcome, Run, run};
pub use setup::Setup;
pub use steps::Trainer;
