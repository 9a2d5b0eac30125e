//! Private training of models that are written in candle (feature `candle`).
//!
//! An [`ExampleModel`] computes the loss of one example; [`CandleModel`] takes its gradients, one backward
//! pass per example, and clips and sums them as those of this crate's models.
//! `examples/candle_model.rs` trains a small transformer.

mod example_model;
mod gradient;
mod model;
mod worker;

pub use example_model::ExampleModel;
pub use model::CandleModel;
