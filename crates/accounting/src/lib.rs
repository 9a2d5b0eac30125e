//! Differential privacy accounting whose rounding direction is part of each operation's name.
//!
//! An accountant turns a noise multiplier `sigma` (noise standard deviation over l2 sensitivity) into
//! `(epsilon, delta)`. What ends in `_upper` is never below the truth and may be stated; what ends in
//! `_lower` is never above it and says how tight the statement is.
//!
//! - [`Gdp`]: one release, or any unamplified composition, exactly; [`Zcdp`]: zero-concentrated privacy;
//! - [`Composition`] of [`SampledGaussian`] phases: Poisson sampling, bracketed from above and below;
//!   [`Composition::epsilon_estimate_from_renyi`] checks it by other means, [`calibrate`] turns it around;
//! - [`banded_to_sampled`]: banded correlated noise under block-cyclic Poisson sampling, as such phases;
//! - [`BallsInBins`]: any non-negative correlated noise under balls-in-bins sampling, statistically;
//! - [`group_privacy_upper`] and [`add_or_remove_to_replace_one_upper`]: other units and adjacencies;
//! - [`PrivacyStatement`]: all of it in words.
//!
//! ```
//! use antinoise_accounting::Gdp;
//! let privacy = Gdp::from_noise_multiplier(2.23048)?;
//! let epsilon = privacy.epsilon_upper(1e-6)?;
//! assert!((epsilon - 2.0).abs() < 1e-4 && privacy.epsilon_lower(1e-6)? <= epsilon);
//! # Ok::<(), antinoise_accounting::Error>(())
//! ```
mod adjacency;
mod amplify;
mod balls_in_bins;
pub mod calibrate;
mod checked;
mod error;
mod gdp;
mod group;
mod monte_carlo;
mod normal;
mod pld;
mod renyi;
mod root;
mod statement;
mod zcdp;

pub use adjacency::Adjacency;
pub use amplify::{BlockCyclicPoisson, banded_to_sampled};
pub use balls_in_bins::BallsInBins;
pub use checked::NUMERICAL_ASSUMPTION;
pub use error::{Error, Result};
pub use gdp::{Gdp, noise_multiplier_for};
pub use group::{add_or_remove_to_replace_one_upper, group_privacy_upper};
pub use monte_carlo::{MonteCarlo, StatisticalDelta};
pub use pld::{Bracket, Composition, SampledGaussian};
pub use statement::{Fact, PrivacyStatement, delta_warning};
pub use zcdp::Zcdp;

/// The first page, whose code must run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
