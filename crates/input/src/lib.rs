//! Checks of parameters, [files] that are written completely or not at all, [tables] of Arrow and Parquet,
//! arrays of NumPy and Arrow (`arrays`) and SQLite files (`sqlite`).
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
//! error: the error for a bad parameter, and the trait that tells bad input from other failures
//! checks, numbers: checks of parameters; maxima, numbers and bytes as text
//! files, tables, sqlite, damage: whole files, permissions and locks; cells of tables; databases; damaged files
//! arrays: arrays of numbers and text, and tables of them
//! ```

#[cfg(feature = "arrays")]
pub mod arrays;
mod checks;
#[cfg(feature = "damage")]
pub mod damage;
mod error;
pub mod files;
mod numbers;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod tables;

pub use checks::{at_least, below_one, between, in_open_unit, non_negative, positive};
pub use error::{BadInput, InvalidParameter, printable};
pub use numbers::{hex, larger, largest, rounded_to_4, short, short_down, short_up};

/// The README, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
