//! Optimizers on one flat vector of parameters.
//!
//! Optimizers see only releases, the noisy means of clipped gradients, so that they are post-processing and
//! cost no privacy. A [`Rule`] computes a step from a gradient. A [`Recipe`] adds what changes over a run: a
//! [`Schedule`] of learning rates, weight decay, and a bound beyond which an update is dropped.
//! [`Recipe::workload`] is the workload for which a strategy should be designed.

mod recipe;
mod rule;
mod schedule;
mod step;
mod workload;

pub use recipe::Recipe;
pub use rule::Rule;
pub use schedule::{Decay, Schedule};
pub use step::Optimizer;
