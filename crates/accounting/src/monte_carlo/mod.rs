//! Monte Carlo accounting of a dominating pair, with confidence bounds.
mod estimate;
#[cfg(test)]
pub(crate) mod exact;
mod normals;
mod privacy_curve;
mod settings;
pub(crate) mod simulation;
mod tally;

pub(crate) use crate::pld::Direction;
pub(crate) use estimate::{Tally, half_width};
pub(crate) use normals::{Normals, Source};
pub use privacy_curve::PrivacyCurve;
pub use settings::{MonteCarlo, StatisticalDelta};
pub(crate) use tally::{PILOT, Samples, add, least, tallies};
