//! Private training.
//!
//! One step of private training on a batch of examples S with expected size B:
//!
//! ```text
//! g_i   = gradient of example i's loss                      per-example, never stored for linear layers
//! s     = sum over i in S of g_i min(1, clip_norm / |g_i|)  [`clip::clipped_sum`], in double precision
//! u     = (s + noise) / B                                   the noise, in the plan's arithmetic, then the division
//! theta = optimizer(theta, u)                               post-processing: free of privacy cost
//! ```
//!
//! [`trainer::Trainer`] runs a plan with such steps; [`checkpoint::History`] holds the measurements. The
//! model is a [`model::Model`], whose gradients cost one pass per batch, or, with the feature `candle`, any
//! model that is written in candle: `candle::CandleModel`.
//!
//! Parameters are one flat vector everywhere, so that noise, optimizer and checkpoints do not depend on
//! layers. Results do not depend on the number of threads.
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks. Data
//! and models know nothing of privacy, clipping nothing of plans and noise: only the trainer combines them.
//!
//! ```layers
//! error, date, matmul, multiversion: the error type; dates; products of matrices; functions for each instruction set
//! data, optimizer: examples; optimizers
//! checkpoint: saving and resuming the state of a run
//! model: classifiers as sequences of layers
//! saved_model: a trained model in a folder, and its predictions
//! clip: sums of clipped gradients
//! private_model: the trait of a model that can be trained privately, and its implementation for this crate's models
//! candle: models that are written in candle (feature `candle`)
//! reference, probe, trainer: training without privacy; the effect of noise at single steps; private training
//! ```

mod date;
mod error;
mod matmul;
mod multiversion;

#[cfg(feature = "candle")]
pub mod candle;
pub mod checkpoint;
pub mod clip;
pub mod data;
pub mod model;
pub mod optimizer;
pub mod private_model;
pub mod probe;
pub mod reference;
pub mod saved_model;
pub mod trainer;

pub use error::Error;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
