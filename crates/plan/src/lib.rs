//! Plans: values that state everything a reader needs to verify a privacy claim, and everything a trainer
//! needs to run it.
//!
//! - [`Request`]: data, batches, privacy target and setting; [`Schedule`]: the sampler and schema that
//!   follow;
//! - [`choose`]: candidates for a request, and the one of least loss;
//! - [`advise`]: proposed requests, from the number of examples and the compute budget;
//! - [`sweep_bands`]: the loss by number of bands, with and without amplification by sampling;
//! - [`Plan::of_strategy`], [`read_strategy`]: plans with matrices from other libraries or the caller's own
//!   code;
//! - [`Plan`]: the numbers in a TOML file; [`VerifiedPlan`]: a plan whose claim was recomputed. Only verified
//!   plans are run and stated;
//! - [`compose`]: the privacy of several models from the same data together;
//! - [`Sampler`]: which examples participate in a step; [`Participations`]: a check that they do so as
//!   planned; [`OwnedExamples`]: batches of examples with several owners;
//! - [`Arithmetic`]: the arithmetic of noisy sums, on a grid or in plain floating point.
//!
//! Training and accounting use the same plan, so that they cannot disagree.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. A
//! plan is numbers. Verification uses the numbers. Everything that makes, reads, states or chooses plans uses
//! verified plans.
//!
//! ```layers
//! error, sampler: errors; how batches are formed
//! batches: the examples of each batch
//! strategy_file: strategies in files, as a request takes them
//! widened_clip_norm: how far one unit moves a sum that is computed in floating point and rounded
//! arithmetic: how noise is added to sums
//! schedule, setting, monte_carlo, unit: sampler, schema and the accountant that they imply; what a caller says about participation; strategies under Monte Carlo accountants; the unit that is drawn
//! plan: the numbers of a plan
//! request: the request
//! verified: plans whose claim follows from their numbers
//! participations: the steps of each example, checked against the schema during a run
//! io, statement_text: plans in files, and in words
//! statement, user: the claim of one plan, of its first steps, of several plans, and of a user with several examples
//! unequal_participation: the claim of the participation that really happened
//! owners: batches of examples that have several owners
//! persons: the claim of persons with several examples, in figures and words
//! search: candidates for a request, the choice, sweeps and proposals
//! ```

mod arithmetic;
mod batches;
mod error;
mod io;
mod monte_carlo;
mod owners;
mod participations;
mod persons;
mod plan;
mod request;
mod sampler;
mod schedule;
mod search;
mod setting;
mod statement;
mod statement_text;
mod strategy_file;
mod unequal_participation;
mod unit;
mod user;
mod verified;
mod widened_clip_norm;

pub use antinoise_mechanism::PrivacyUnit;
pub use arithmetic::{Arithmetic, ArithmeticKind};
pub use batches::Batches;
pub use error::{Error, Figure, Result};
pub use io::write_atomically;
pub use owners::OwnedExamples;
pub use participations::Participations;
pub use persons::{ByExamples, by_examples_in_words};
pub use plan::{Plan, Privacy, neighbours};
pub use request::{Length, MaxBatchSize, Request};
pub use sampler::{Sampler, Spacing};
pub use schedule::{Accountant, Schedule};
pub use search::{
    Bands, Budget, Candidate, Choice, Proposal, Rejected, advise, choose, choose_with, default_bands,
    default_delta, sweep_bands, unamplified_candidates,
};
pub use setting::Setting;
pub use statement::compose;
pub use strategy_file::read_strategy;
pub use unequal_participation::ObservedPrivacy;
pub use verified::VerifiedPlan;
pub use widened_clip_norm::CLIP_ROUNDING;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
