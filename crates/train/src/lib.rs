//! Private training on candle.
//!
//! One step of private training on a batch of examples S with expected size B:
//!
//! ```text
//! g_i   = gradient of example i's loss                      per-example, never stored for linear layers
//! s     = sum over i in S of g_i min(1, clip_norm / |g_i|)  [`clip::clipped_sum`], in double precision
//! u     = (s + noise) / B                                   the plan's release of the sum, then the division
//! theta = optimizer(theta, u)                               post-processing: free of privacy cost
//! ```
//!
//! [`trainer::Trainer`] runs a plan so; [`trainer::History`] holds what was measured on the way. The model is one of
//! [`model::Model`], whose gradients cost one pass a batch, or any that is written on candle: [`learner::Own`].
//!
//! Everything works on one flat vector of parameters, so that noise, optimiser and checkpoint need not know
//! what a layer is. Results do not depend on the number of threads.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. Data and
//! models know nothing of privacy, clipping nothing of plans and noise: only the trainer brings them together.
//!
//! ```layers
//! error, date, tensor, product, vectorized: what can go wrong; days; what candle's tensors hold; products of matrices; functions for each instruction set
//! data, optimizer: examples; how a step follows from a gradient
//! model: layers in a row
//! clip: sums of clipped gradients
//! learner: what a trainer needs of a model: this crate's, or anyone's
//! local: what a user of a federated run computes, and the sum of a cohort (feature `federated`, and what follows)
//! lstm: a character model for users
//! reference, trainer: training without privacy, and with it
//! federated: rounds of users, charged in a ledger
//! ```

mod date;
mod error;
mod product;
mod vectorized;

pub mod clip;
pub mod data;
#[cfg(feature = "federated")]
pub mod federated;
pub mod learner;
#[cfg(feature = "federated")]
pub mod local;
#[cfg(feature = "federated")]
pub mod lstm;
pub mod model;
pub mod optimizer;
pub mod reference;
mod tensor;
pub mod trainer;

pub use error::Error;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
