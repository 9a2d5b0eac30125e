//! The search for the mechanism of a request: candidates, the mechanisms that are tried, the choice, sweeps
//! over numbers of bands, and proposed requests.

mod bands;
mod candidate;
mod choice;
mod proposal;
mod trials;

pub use bands::{Bands, default_bands, sweep_bands, unamplified_candidates};
pub use candidate::Candidate;
pub use choice::{Choice, Rejected, choose};
pub use proposal::{Budget, Proposal, advise, default_delta};
