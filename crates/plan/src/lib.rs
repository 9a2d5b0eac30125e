//! The plan: one value that states everything a reader needs to believe a privacy claim, and everything a
//! trainer needs to run it.
//!
//! - [`Request`]: what is wanted: data, batches, privacy target, setting;
//! - [`choose`]: candidates for it, and the one of least loss;
//! - [`by_bands`]: the loss by number of bands, with and without amplification by sampling;
//! - [`Plan`]: what is saved as TOML, verified when it is read, accounted and run;
//! - [`compose`]: what several models from the same data cost together;
//! - [`Sampler`]: which examples take part in a step;
//! - [`Release`]: how a noisy sum leaves the machine, on a grid or in plain floating point.
//!
//! What is run and what is accounted come from the same value, so they cannot drift apart.

mod bands;
mod choose;
mod error;
mod file;
mod plan;
mod release;
mod request;
mod sampler;
mod statement;
mod verify;
mod words;

pub use antinoise_mechanism::PrivacyUnit;
pub use bands::{Bands, by_bands, default_bands, unamplified};
pub use choose::{Candidate, Choice, choose};
pub use error::{Error, Result};
pub use file::write_atomically;
pub use plan::{Accountant, Plan, Privacy};
pub use release::{Release, ReleaseKind, SUM_ALLOWANCE};
pub use request::{Length, Request, Schedule, Setting};
pub use sampler::{Batches, Sampler};
pub use statement::compose;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
