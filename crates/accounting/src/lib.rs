//! Differential privacy accounting whose rounding direction is part of each operation's name.
//!
//! An accountant turns a noise multiplier `sigma` (noise standard deviation over l2 sensitivity) into
//! `(epsilon, delta)`. What ends in `_upper` is never below the truth and may be stated; what ends in
//! `_lower` is never above it and says how tight the statement is.
//!
//! - [`Gdp`]: one release, or any unamplified composition, exactly;
//! - [`Zcdp`]: zero-concentrated privacy, composition by addition.
//!
//! ```
//! use antinoise_accounting::Gdp;
//! let privacy = Gdp::from_noise_multiplier(2.23048)?;
//! let epsilon = privacy.epsilon_upper(1e-6)?;
//! assert!((epsilon - 2.0).abs() < 1e-4 && privacy.epsilon_lower(1e-6)? <= epsilon);
//! # Ok::<(), antinoise_accounting::Error>(())
//! ```
pub mod calibrate;
mod error;
mod gdp;
mod normal;
mod pld;
mod root;
mod zcdp;

pub use error::{Error, Result};
pub use gdp::{Gdp, noise_multiplier_for};
pub use pld::{Bracket, Composition, SampledGaussian};
pub use zcdp::Zcdp;
