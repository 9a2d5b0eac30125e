//! What a trainer needs of a model.
//!
//! A [`Learner`] makes sums of clipped gradients whose sensitivity it proves, and can be evaluated. There are two: this crate's
//! [`Model`](crate::model::Model), whose per-example gradients are never made, and [`Own`], which takes any [`Network`] written
//! on candle and makes them one by one, a pass an example. `examples/own_model.rs` trains a small transformer so.

mod contract;
mod ghost;
mod gradient;
mod network;
mod own;
mod place;

pub use contract::Learner;
pub use network::Network;
pub use own::Own;
