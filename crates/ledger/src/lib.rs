//! The ledger of a federated run, which records on disk which users take part in a step, before any of their
//! gradients are used.
//!
//! In a federated plan for users, each user takes part in at most k steps, any two of them at least b apart.
//! Its sampler is external, so that the caller must enforce this. [`Ledger`] does so, with an SQLite file
//! that survives a killed process:
//!
//! - [`Ledger::eligible`]: the users who may take part in the next step;
//! - [`Ledger::charge`]: charges all participants of a round, or nobody if one of them may not take part,
//!   before their gradients are used;
//! - [`Ledger::record_noisy_sum`]: records the step's noisy sum; it requires the proof that its participants
//!   were charged;
//! - [`Ledger::observed`]: the sets of steps in which users took part, for
//!   [`VerifiedPlan::observed`](antinoise_plan::VerifiedPlan::observed).
//!
//! Time is counted in steps, not by a clock. `antinoise.flower.Ledger` of the Python package is this ledger.
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own.
//!
//! ```layers
//! chain: digests
//! format: the tables
//! error: what can go wrong
//! rows, past, observed: rows; who may still take part; who took part, without names
//! file: the SQLite file
//! ledger: users are charged, noisy sums are recorded
//! rounds: the rounds that were begun, and one that was interrupted
//! ```

mod chain;
mod error;
mod file;
mod format;
mod ledger;
mod observed;
mod past;
mod rounds;
mod rows;

pub use error::{Error, Result};
pub use ledger::{Charged, Ledger};
pub use observed::Observed;
pub use rounds::NoisySum;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
