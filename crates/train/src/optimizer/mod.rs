//! Optimizers on one flat vector of parameters.
//!
//! Optimizers see only releases, the noisy means of clipped gradients, so that they are post-processing and
//! cost no privacy. Two rules change what is released ([`Needs`]): gradients that are scaled before clipping,
//! by numbers that depend on earlier releases only, or gradients followed by their squares; clipping then
//! bounds these. A [`Rule`] computes a step from a gradient. A [`Recipe`] adds what changes over a run: a
//! [`Schedule`] of learning rates, weight decay, and a bound beyond which an update is dropped.
//! [`Recipe::workload`] is the workload for which a strategy should be designed.

mod moments;
mod recipe;
mod rule;
mod schedule;
mod step;
mod workload;

pub(crate) use moments::MOST_SCALE;
pub use recipe::Recipe;
pub(crate) use rule::check_ratio;
pub use rule::{Needs, Rule};
pub use schedule::{Decay, Schedule};
pub use step::Optimizer;
