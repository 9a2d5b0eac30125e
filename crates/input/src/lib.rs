//! Checks of parameters, [files](mod@file) that are written completely or not at all, [permissions](owner),
//! [locks](lock), and [tables](table) of Arrow and Parquet.
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
//! parameter: the error, checks, and the text of numbers and bytes
//! owner: permissions
//! file, lock, table: files that are written completely or not at all; locks; tables
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
