//! One file a command: its options, what it runs, what it prints.

pub mod account;
pub mod audit;
pub mod bands;
pub mod batches;
pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod loss;
pub mod noise;
pub mod plan;
pub mod privacy;
pub mod show;
pub mod train;
pub mod verify;
