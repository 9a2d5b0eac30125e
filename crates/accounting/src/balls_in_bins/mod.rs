//! Balls-in-bins sampling of correlated noise, by Monte Carlo with a confidence bound.

mod claim;
mod mechanism;
mod sample;

pub use mechanism::BallsInBins;
