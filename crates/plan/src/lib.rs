//! The plan: one value that states everything a reader needs to believe a privacy claim, and everything a
//! trainer needs to run it.
//!
//! - [`Request`]: data, batches, privacy target and setting;
//! - [`choose`]: candidates for it, and the one of least loss;
//! - [`advise`]: proposed requests, from the number of examples and the compute budget;
//! - [`by_bands`]: the loss by number of bands, with and without amplification by sampling;
//! - [`Plan`]: the numbers that are saved as TOML; [`VerifiedPlan`]: a plan whose claim was recomputed. Only verified plans are run and stated;
//! - [`compose`]: the privacy of several models from the same data together;
//! - [`Sampler`]: which examples take part in a step; [`Participations`]: that they did so as the plan says;
//! - [`Release`]: how a noisy sum is released, on a grid or in plain floating point.
//!
//! Training and accounting use the same value, so they cannot disagree.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. A plan is
//! numbers. Verification uses the numbers. Everything that makes, reads, states or chooses plans uses verified plans.
//!
//! ```layers
//! error, sampler, claim: what can go wrong; batches; epsilon, delta and what accounts for them
//! file, range, release, schedule, bins: whole files; single precision; how sums are released; who takes part when; bins
//! min_sep: b-min-sep sampling, and claims that are shown by sampling
//! request, plan: what is wanted; what is stated
//! turns: whether the sampler keeps the schema
//! verify: that it follows from its numbers
//! participations: each example's steps, held against the schema while a run goes on
//! saved, make, words: plans in files, from requests, in words
//! statement: the claim of one plan, and of several
//! by_step: the claim of a run's first steps
//! observed: the claim of the participation that really happened
//! candidate: a mechanism for a request
//! search: which are tried
//! choose: the best
//! bands, advise: the loss by number of bands; settings for who has none
//! ```

mod advise;
mod bands;
mod bins;
mod by_step;
mod candidate;
mod choose;
mod claim;
mod error;
mod file;
mod make;
mod min_sep;
mod observed;
mod participations;
mod plan;
mod range;
mod release;
mod request;
mod sampler;
mod saved;
mod schedule;
mod search;
mod statement;
mod turns;
mod verify;
mod words;

pub use advise::{Means, Proposal, advise};
pub use antinoise_mechanism::PrivacyUnit;
pub use bands::{Bands, by_bands, default_bands, unamplified};
pub use candidate::Candidate;
pub use choose::{Choice, LeftOut, choose};
pub use claim::{Accountant, Privacy};
pub use error::{Error, Figure, Result};
pub use file::write_atomically;
pub use observed::ObservedPrivacy;
pub use participations::Participations;
pub use plan::Plan;
pub use release::{Release, ReleaseKind, SUM_ALLOWANCE, dim_for_spacing};
pub use request::{Length, Request, Setting};
pub use sampler::{Batches, Sampler};
pub use schedule::{Schedule, Scheme};
pub use statement::compose;
pub use verify::VerifiedPlan;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
