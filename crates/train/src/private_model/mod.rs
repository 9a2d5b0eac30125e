//! The interface between a trainer and a model.
//!
//! A [`PrivateModel`] computes sums of clipped gradients with a proven sensitivity, and can be evaluated.
//! There are two kinds: this crate's [`Model`](crate::model::Model), which never computes per-example
//! gradients, and, with the feature `candle`, any model that is written in candle, with a pass per example.

mod contract;
mod ghost;

pub use contract::PrivateModel;
