//! Federated training: users are the units, and a round is a step.
//!
//! ```text
//! cohort: users whom the ledger allows and who are available, at most B of them, at random
//! u_i   = update of user i from theta                     [`LocalSteps`], by the user alone
//! s     = sum of u_i min(1, clip_norm / |u_i|)            in double precision
//! theta = optimizer(theta, (s + noise) / B)               B is the plan's: the number who came would tell who did
//! ```
//!
//! [`Federation`] runs such rounds for a plan of users. A round is charged in the ledger before an update is
//! computed, and its noisy sum recorded before anyone sees its result; checkpoints follow. After a kill at
//! any moment, the run resumes with the cohorts that were charged, so that no round's noise ever hides two
//! different sums (`docs/training.md`).
//!
//! # Layers
//!
//! From the ground up; a file uses only files of lines above its own, which `scripts/layers.py` checks.
//!
//! ```layers
//! error, characters: what can go wrong; a vocabulary of characters
//! plays, population: texts by user; users with their data and a model
//! local_steps, user_examples, lstm: what a user computes; labelled examples by user; a character model
//! cohort: the users of a round, and the sum of their updates
//! setup, non_private: the inputs of a run; training without privacy
//! rounds: rounds of users, charged in a ledger
//! saved: a run in its folder
//! ```

mod characters;
mod cohort;
mod error;
mod local_steps;
#[cfg(test)]
mod local_tests;
pub mod lstm;
mod non_private;
pub mod plays;
mod population;
mod rounds;
mod saved;
mod setup;
mod user_examples;

pub use cohort::{clipped_update_sum, draw_cohort};
pub use error::Error;
pub use local_steps::LocalSteps;
pub use non_private::NonPrivateFederation;
pub use population::Population;
pub use rounds::{Federation, Round};
pub use setup::FederatedSetup;
pub use user_examples::UserExamples;

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
