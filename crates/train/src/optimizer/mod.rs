//! Optimisers on one flat vector of parameters.
//!
//! They only see the noisy mean of clipped gradients, so that whatever they do costs no privacy. A [`Rule`] says how a
//! step follows from a gradient; a [`Recipe`] adds what changes over a run: a [`Schedule`] of learning rates, weight
//! decay, and a bound beyond which an update is dropped. [`Recipe::workload`] is what a strategy should be designed for.

mod recipe;
mod rule;
mod schedule;
mod step;
mod workload;

pub use recipe::Recipe;
pub use rule::Rule;
pub use schedule::{Decay, Schedule};
pub use step::Optimizer;
