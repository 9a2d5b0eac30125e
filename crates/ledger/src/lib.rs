//! The ledger of participation: who took part in which step of a federated run, on disk before any gradient is used.
//!
//! A plan for users says that each takes part at most k times, any two steps at least b apart, and leaves it to whoever runs
//! it to keep that: the sampler is external. [`Ledger`] keeps it, in an SQLite file that outlives kills:
//!
//! - [`Ledger::eligible`]: who may take part in the next step;
//! - [`Ledger::charge`]: all of a round's participants or, where one may not, nobody, before their gradients are used;
//! - [`Ledger::release`]: the step is done; it asks for the proof that its participants were charged;
//! - [`Ledger::observed`]: which sets of steps users really took part in, for
//!   [`VerifiedPlan::observed`](antinoise_plan::VerifiedPlan::observed).
//!
//! There are steps and no clock. The file is that of the Python package's `antinoise.flower.Ledger`: application id, version
//! and tables are the same, and each reads what the other wrote.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line.
//!
//! ```layers
//! error: what can go wrong
//! file, past, observed: the SQLite file; what is left to users; who took part, without names
//! ledger: users are charged, steps are released
//! ```

mod error;
mod file;
mod ledger;
mod observed;
mod past;

pub use error::{Error, Result};
pub use ledger::{Charged, Ledger, Release};
pub use observed::Observed;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
