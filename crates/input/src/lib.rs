//! Checks of parameters, [files](mod@file) that are complete or absent, [what is its owner's alone](owner), [locks](lock), and [tables of others](table).
//!
//! Every crate of antinoise refuses a bad parameter with the same error, [`InvalidParameter`], which names
//! the parameter, what it got and what it must be. The checks of this crate return their argument, so that
//! a check can be part of an assignment.
//!
//! ```
//! use antinoise_input::positive;
//! let clip_norm = positive("clip_norm", 0.5)?;
//! assert_eq!(clip_norm, 0.5);
//! let error = positive("clip_norm", f64::NAN).unwrap_err();
//! assert_eq!(error.to_string(), "clip_norm is NaN but must be a finite number above 0");
//! # Ok::<(), antinoise_input::InvalidParameter>(())
//! ```
//!
//! ```layers
//! parameter: the error, checks, how numbers and bytes are written
//! owner: what is its owner's alone
//! file, lock, table: files that are whole or absent; one process at a time; tables of others
//! ```

pub mod file;
pub mod lock;
pub mod owner;
mod parameter;
pub mod table;

pub use parameter::{
    InvalidParameter, at_least, below_one, between, four_decimals, hex, in_open_unit, larger, largest,
    non_negative, positive, printable,
};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
