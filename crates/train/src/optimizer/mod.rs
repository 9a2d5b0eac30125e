//! Optimizers on one flat vector of parameters.
//!
//! Optimizers see only the noisy means of clipped gradients, so that they are post-processing and
//! cost no privacy. An [`UpdateRule`] computes a step from a gradient. An [`OptimizerConfig`] adds a
//! [`Schedule`] of learning rates, weight decay, and a bound beyond which an update is dropped.
//! [`OptimizerConfig::workload`] is the workload for which a strategy should be designed.

mod config;
mod rule;
mod schedule;
mod step;
mod workload;

pub use config::OptimizerConfig;
pub use rule::UpdateRule;
pub use schedule::{Decay, Schedule};
pub use step::{Optimizer, is_beyond};
