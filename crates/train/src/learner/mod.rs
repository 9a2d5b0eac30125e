//! The interface between a trainer and a model.
//!
//! A [`Learner`] computes sums of clipped gradients with a proven sensitivity, and can be evaluated. There
//! are two kinds: this crate's [`Model`](crate::model::Model), which never computes per-example gradients,
//! and [`Own`], which takes any [`Network`] written in candle and computes them one by one, a pass per
//! example. `examples/own_model.rs` trains a small transformer with it.

mod contract;
mod ghost;
mod gradient;
mod network;
mod own;
mod place;

pub use contract::Learner;
pub use network::Network;
pub use own::Own;
