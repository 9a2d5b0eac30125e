//! One file a command: its options, what it runs, what it prints.

pub mod account;
pub mod calibrate;
pub mod loss;
pub mod plan;
pub mod privacy;
pub mod train;
