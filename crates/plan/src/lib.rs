//! The plan: one value that states everything a reader needs to believe a privacy claim, and everything a
//! trainer needs to run it.
//!
//! - [`Request`]: data, batches, privacy target and setting; [`Schedule`]: the sampler and schema that
//!   follow;
//! - [`choose`]: candidates for a request, and the one of least loss;
//! - [`advise`]: proposed requests, from the number of examples and the compute budget;
//! - [`sweep_bands`]: the loss by number of bands, with and without amplification by sampling;
//! - [`Plan`]: the numbers in a TOML file; [`VerifiedPlan`]: a plan whose claim was recomputed, the only kind
//!   that is run and stated;
//! - [`compose`]: the privacy of several models from the same data together;
//! - [`Sampler`]: which examples participate in a step; [`Participations`]: a check that they do so as
//!   planned;
//! - [`Release`]: how a noisy sum is released, on a grid or in plain floating point.
//!
//! Training and accounting use the same value, so they cannot disagree.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. A
//! plan is numbers. Verification uses the numbers. Everything that makes, reads, states or chooses plans uses
//! verified plans.
//!
//! ```layers
//! error, sampler, privacy: errors; batches; epsilon, delta and their accountants
//! range, release: single precision; how sums are released
//! schedule, monte_carlo: sampler, schema and the accountant that they imply; strategies under Monte Carlo accountants
//! request, plan: the request; the numbers of a plan
//! verified: plans whose claim follows from their numbers
//! participations: the steps of each example, checked against the schema during a run
//! io, text: plans in files, and in words
//! statement: the claim of one plan, and of several
//! by_step: the claim of a run's first steps
//! observed: the claim of the participation that really happened
//! candidate: a mechanism for a request
//! search: the mechanisms to try
//! choose: the best mechanism
//! bands, advise: the loss by number of bands; proposed requests
//! ```

mod advise;
mod bands;
mod by_step;
mod candidate;
mod choose;
mod error;
mod io;
mod monte_carlo;
mod observed;
mod participations;
mod plan;
mod privacy;
mod range;
mod release;
mod request;
mod sampler;
mod schedule;
mod search;
mod statement;
mod text;
mod verified;

pub use advise::{Budget, Proposal, advise};
pub use antinoise_mechanism::PrivacyUnit;
pub use bands::{Bands, default_bands, sweep_bands, unamplified_candidates};
pub use candidate::Candidate;
pub use choose::{Choice, Rejected, choose};
pub use error::{Error, Figure, Result};
pub use io::write_atomically;
pub use observed::ObservedPrivacy;
pub use participations::Participations;
pub use plan::Plan;
pub use privacy::{Accountant, Privacy};
pub use release::{CLIP_ROUNDING, Release, ReleaseKind};
pub use request::{Length, Request, Setting};
pub use sampler::{Batches, Sampler};
pub use schedule::Schedule;
pub use statement::compose;
pub use verified::VerifiedPlan;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
