//! An audit of one training run: canaries are included at random, and an auditor guesses which ones.

mod canaries;
mod guesses;
mod run;
mod scores;

pub use canaries::Canary;
pub use guesses::Guesses;
pub use run::{OneRunReport, OneRunSettings, has_likelihood_ratio, one_run};
