//! The search for the mechanism of a request: candidates, the mechanisms that are tried, the choice, the
//! progress of the work, sweeps over numbers of bands, and proposed requests.

mod bands;
mod buffers;
mod candidate;
mod choice;
mod proposal;
mod trials;
mod work;

pub use bands::{Bands, default_bands, sweep_bands, unamplified_candidates};
pub use candidate::Candidate;
pub use choice::{Choice, Rejected, choose, choose_with};
pub use proposal::{Budget, Proposal, advise, default_delta};
