//! Optimisers on one flat vector of parameters.
//!
//! They only see what was released: the noisy mean of clipped gradients, so that whatever they do costs no privacy. Two of
//! them say what is released ([`Needs`]): gradients that are scaled before they are clipped, by numbers that follow from earlier
//! releases, or gradients and their squares. Clipping then bounds what they ask for. A [`Rule`] says how a
//! step follows from a gradient; a [`Recipe`] adds what changes over a run: a [`Schedule`] of learning rates, weight
//! decay, and a bound beyond which an update is dropped. [`Recipe::workload`] is what a strategy should be designed for.

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
