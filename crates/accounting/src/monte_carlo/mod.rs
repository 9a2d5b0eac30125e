//! Figures found by sampling, with a confidence bound.
mod composition;
mod estimate;
mod figure;
mod normals;
pub(crate) mod simulation;
mod tally;

pub(crate) use crate::pld::Direction;
pub(crate) use estimate::{Tally, half_width};
pub use figure::{MonteCarlo, StatisticalDelta};
pub(crate) use normals::{Normals, Source};
pub(crate) use tally::{PILOT, tally};
