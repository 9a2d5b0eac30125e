//! One file for each command: options, computation and output.

pub mod account;
pub mod advise;
pub mod audit;
#[cfg(feature = "train")]
pub mod audit_training;
pub mod bands;
pub mod batches;
pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod completions;
#[cfg(feature = "train")]
pub mod evaluate;
pub mod loss;
pub mod man;
#[cfg(feature = "train")]
mod model_rows;
pub mod noise;
pub mod observed;
pub mod plan;
#[cfg(feature = "train")]
pub mod predict;
pub mod privacy;
#[cfg(feature = "train")]
pub mod probe;
#[cfg(feature = "release")]
pub mod release;
mod sampling;
pub mod show;
mod simulated;
pub mod statement;
#[cfg(feature = "train")]
pub mod train;
pub mod verify;
