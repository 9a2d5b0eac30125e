//! The plan: one value that states everything a reader needs to believe a privacy claim, and everything a
//! trainer needs to run it.
//!
//! - [`Request`]: what is wanted: data, batches, privacy target, setting;
//! - [`choose`]: candidates for it, and the one of least loss;
//! - [`advise`]: requests worth making, from the number of examples and what can be paid;
//! - [`by_bands`]: the loss by number of bands, with and without amplification by sampling;
//! - [`Plan`]: what is saved as TOML; [`VerifiedPlan`]: one whose claim was recomputed, which alone is run and stated;
//! - [`compose`]: what several models from the same data cost together;
//! - [`Sampler`]: which examples take part in a step;
//! - [`Release`]: how a noisy sum leaves the machine, on a grid or in plain floating point.
//!
//! What is run and what is accounted come from the same value, so they cannot drift apart.
//!
//! # Layers
//!
//! From the ground up; a file uses only what is above its line. `scripts/layers.py` holds every file to it. A plan is
//! numbers; verifying stands on them, and on verified plans all that makes, reads, states or chooses them.
//!
//! ```layers
//! error, sampler, claim: what can go wrong; batches; epsilon, delta and what accounts for them
//! file, range, release, schedule: whole files; single precision; how sums are released; who takes part when
//! request, plan: what is wanted; what is stated
//! verify: that it follows from its numbers
//! saved, make, words: plans in files, from requests, in words
//! statement: the claim of one plan, and of several
//! observed: the claim of the participation that really happened
//! candidate: a mechanism for a request
//! search: which are tried
//! choose: the best
//! bands, advise: the loss by number of bands; settings for who has none
//! ```

mod advise;
mod bands;
mod candidate;
mod choose;
mod claim;
mod error;
mod file;
mod make;
mod observed;
mod plan;
mod range;
mod release;
mod request;
mod sampler;
mod saved;
mod schedule;
mod search;
mod statement;
mod verify;
mod words;

pub use advise::{Means, Proposal, advise};
pub use antinoise_mechanism::PrivacyUnit;
pub use bands::{Bands, by_bands, default_bands, unamplified};
pub use candidate::Candidate;
pub use choose::{Choice, LeftOut, choose};
pub use claim::{Accountant, Privacy};
pub use error::{Error, Result};
pub use file::write_atomically;
pub use observed::ObservedPrivacy;
pub use plan::Plan;
pub use release::{Release, ReleaseKind, SUM_ALLOWANCE};
pub use request::{Length, Request, Setting};
pub use sampler::{Batches, Sampler};
pub use schedule::{Schedule, Scheme};
pub use statement::compose;
pub use verify::VerifiedPlan;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
